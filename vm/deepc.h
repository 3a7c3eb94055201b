/*
 * deepc as a library: the one installed header.
 *
 *     dc_config cfg = DC_CONFIG_INIT;
 *     dc_rt *ctx;
 *     cfg.device = "cpu";
 *     cfg.log = on_log;
 *     if (dc_open(&cfg, &ctx) != DC_OK || dc_attach(L, ctx) != DC_OK) {
 *         fprintf(stderr, "%s\n", dc_errmsg(ctx));
 *         dc_close(ctx);
 *     }
 *
 * A context is everything deepc holds: no globals, any number of contexts in a process, each used
 * by one thread at a time. Nothing here aborts, exits, jumps out with longjmp or writes to stdout
 * or stderr; every failure is a status and a sentence.
 *
 * A context belongs to the process that opened it. In a child of fork every function refuses it with
 * DC_E_STATE, in Lua with an error; dc_close, dc_unload and lua_close return at once and leave what it holds
 * to the end of the child. A child opens a context of its own. No handler of fork or signals is installed.
 *
 * Each function tells in brackets from where it may be called, and whether it may raise a Lua error:
 *
 *     any thread        at any time
 *     its thread        the one that uses the context now, with its functions and its lua_State: no other call with
 *                       any of these runs, so not from the functions of dc_config either. Where another thread's call
 *                       runs, DC_E_STATE, and nothing is touched, the lua_State and its stack included; functions that
 *                       give nothing do nothing; dc_errmsg says so
 *     signal handlers   on any thread, whatever it was doing
 *
 * NULL where a context or a function is needed is DC_E_STATE, for any other pointer DC_E_VALUE, but where NULL is
 * said to be fine; that changes nothing.
 *
 * libdeepc.so holds all of it but what takes a lua_State, and luaopen_deepc, which are in deepc.so (they need Lua
 * 5.4, and use the lua_* of the program that loads them). A host that attaches links with both:
 *
 *     cc host.c -l:deepc.so -ldeepc -llua5.4      (-L where they are)
 */
#ifndef DC_VM_DEEPC_H
#define DC_VM_DEEPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DC_VERSION "0.1.0"

/*
 * How much of the interface there is: 1 more with each version of deepc that adds a function, a constant, a member of
 * dc_config or of another struct with a size. Nothing of a level is taken away or means something else in a later one;
 * a version that has to do that has another SONAME (libdeepc.so.1), and its levels begin again at 1. A program runs with every
 * library of its SONAME and of at least the level that what it uses came with; the loader refuses it at its start where a
 * function is missing, which is a version of a symbol: DEEPC_1 for those of level 1.
 */
#define DC_API_LEVEL 1

#ifndef DC_CORE_BASE_BASE_H /* the library's own files have the same from there */
typedef enum dc_status {
    DC_OK = 0,
    DC_E_TYPE = 1,   /* types, shapes, axes or names do not fit */
    DC_E_VALUE = 2,  /* a value is outside what is allowed */
    DC_E_STATE = 3,  /* not possible now */
    DC_E_FILE = 4,   /* a file is missing, damaged or of another kind */
    DC_E_NOMEM = 5,  /* no memory, for metadata or for tensors */
    DC_E_DEVICE = 6, /* a device is absent or failed */
    DC_E_BUILD = 7,  /* a kernel did not compile */
    DC_E_BUG = 8,    /* a mistake of deepc; the context can only be closed */
    DC_E_STOPPED = 9 /* dc_stop or a deadline ended it */
} dc_status;
#endif

struct lua_State;
typedef struct dc_rt dc_rt;
typedef struct dc_ranks dc_ranks;

/* What a context may do besides computing. */
typedef enum dc_allow {
    DC_ALLOW_ALL = 0,
    /*
     * No files and no processes. What a script asks for (dc.save, dc.load, data.idx, f:export) is an error,
     * and so is dc_load. There is no cache on disk and no C compiler; mistakes of deepc leave no file; of the
     * environment, DEEPC_CACHE, DEEPC_DUMP, DEEPC_SCHEDULE are without effect. Libraries are opened (LLVM,
     * OpenCL); what drivers of OpenCL do is theirs. io and os are for the host to give to its lua_State, or not.
     */
    DC_ALLOW_COMPUTE = 1
} dc_allow;

/* Settings of a context. The first member is the struct's size, so that it can grow. */
typedef struct dc_config {
    size_t size;
    const char *device; /* "cpu", "opencl:0"; NULL: DEEPC_DEVICE, else the default */
    const char *debug;  /* channels, "graph,time"; NULL: DEEPC_DEBUG */
    /*
     * Receives what is logged: n bytes, whole lines of the channel ("note", "kernel", ...; `debug` switches
     * them on, notes are on always), each event behind "[channel] ". Called on the thread that uses the
     * context, in the middle of what it does: the function may not use the context. NULL: nothing is logged.
     */
    void (*log)(void *log_ctx, const char *channel, const char *text, size_t n);
    void *log_ctx;
    int threads; /* that run kernels on the CPU; 0: DEEPC_THREADS, else one per core */
    /*
     * Called once when deepc finds that it broke a promise of its own, before DC_E_BUG is returned;
     * file holds what reproduces it (`deepc --replay FILE`), NULL where there is none. The host may
     * end the process here; deepc never does. NULL: only the status tells.
     */
    void (*on_bug)(void *bug_ctx, const char *file);
    void *bug_ctx;
    /*
     * Most bytes that the context holds: the device's memory of tensors, parameters and compiled functions,
     * and all metadata (graphs, types, names, files that are read, what a compilation needs), together;
     * 0: DEEPC_MEMORY, else no limit. What an empty context takes does not count, nor does what `alloc`
     * below does not cover. A function that needs more by itself is refused when it is compiled, before
     * anything is allocated; the sentence names its largest values, their types and the lines of the
     * script that made them. What comes on top later, a graph as it is traced or a file as it is read
     * too, is refused when it is asked for. Either is DC_E_NOMEM, and what was there before stays.
     */
    size_t memory_limit;
    /*
     * Where the context's memory comes from; NULL: malloc. As lua_Alloc: gives new_size bytes, aligned as
     * malloc does, resizes block (old_size > 0), takes it back (new_size = 0); NULL says that there is
     * none, which becomes DC_E_NOMEM. Called by several threads at once. All of it is given back by
     * dc_close. It covers what deepc allocates, tensors on the CPU included; not the Lua state's own
     * memory, machine code and threads' stacks, nor what the C library and LLVM take for themselves.
     */
    void *(*alloc)(void *alloc_ctx, void *block, size_t old_size, size_t new_size);
    void *alloc_ctx;
    /*
     * Folder that keeps compiled kernels for the next process, "off": none; NULL: DEEPC_CACHE, else
     * deepc in the user's folder for caches. It has to be the user's alone (mode 700).
     */
    const char *cache;
    /*
     * What may be compiled, for hosts that have no room for a compiler or no wish for one. "cache": kernels
     * come from the cache on disk alone, which another process filled; functions with a kernel that is not
     * there run on the interpreter, and a log line says so. "off": everything runs on the interpreter.
     * "process": LLVM works in a process of its own, the installed program deepc or what DEEPC_COMPILER names,
     * which starts with the first kernel, ends with the context, and is no more than a log line and the
     * interpreter's work when it crashes or hangs. It is a child of the host's: a host that waits for any
     * child may see its end. Not with DC_ALLOW_COMPUTE.
     * NULL: DEEPC_COMPILE, else what is needed is compiled. LLVM ends the process when a malloc of its own fails;
     * with any of these words it is not opened in the host's.
     */
    const char *compile;
    uint64_t allow; /* a dc_allow; DEEPC_ALLOW=compute says the same, and nothing takes it back */
    /*
     * The stream of the host in which the device does all of the context's work, behind what the host put there before
     * a call and before what it puts there afterwards. A device without streams (all but CUDA's) refuses it
     * (DC_E_VALUE), and CUDA one of another device or context. NULL: a stream of the context's own.
     */
    void *stream;
    /*
     * The context is rank number `rank` of these, of which each thread of the host opens one; what they do together is
     * as if they were processes (docs/ranks.md). A rank is opened once: where that fails, it has ended for the others.
     * NULL, and 0: the process is a rank, if a launcher of MPI says so.
     */
    dc_ranks *ranks;
    int rank;
} dc_config;

#define DC_CONFIG_INIT                                                                         \
    {                                                                                          \
        sizeof(dc_config), NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0, NULL, \
            NULL, 0                                                                            \
    }

/*
 * The DC_API_LEVEL of the library that is there, which may be an older or a newer one than that of the header.
 * [any thread, signal handlers; raises nothing]
 */
int dc_api_level(void);

/*
 * Opens a context. cfg may be NULL: all defaults. Other settings come from the environment
 * (DEEPC_*, `deepc --options` lists them). DC_E_VALUE: a setting says what it cannot, cfg->size is no
 * size of a dc_config, or a member is set that this version does not know; DC_E_DEVICE: the device is not
 * there. *out is then a context that is good for dc_errmsg and dc_close only. DC_E_NOMEM: *out is NULL.
 * [any thread; raises nothing]
 */
dc_status dc_open(const dc_config *cfg, dc_rt **out);

/*
 * Closes a context, its device and its compiled code. To be done before the process ends by exit,
 * which destroys what a compiler on another thread may be using. One that was attached closes with its
 * lua_State: before that this does nothing, and after it ctx is gone. In a child of the process that
 * opened it nothing is freed, written or waited for. NULL is fine.
 * [its thread; raises nothing]
 */
void dc_close(dc_rt *ctx);

/*
 * Ranks that are threads of this process: `size` contexts, each with a device of its own, that exchange values and run the
 * same scripts, each on a thread of the host, since they wait for each other there. At most 1024. DC_E_VALUE: another size;
 * DC_E_NOMEM: *out is NULL. dc_close of a context waits for the others, as long as they live, where they have
 * exchanged something and none has failed.
 * [any thread; raises nothing]
 */
#define DC_RANKS_MOST 1024
dc_status dc_ranks_new(int size, dc_ranks **out);
/* When their contexts are closed. NULL is fine. [any thread; raises nothing] */
void dc_ranks_free(dc_ranks *ranks);

/*
 * Ends what the context is doing: a script of its lua_State receives an error, a compiled function
 * returns DC_E_STATE between two kernels, or parts of a long one; one that has begun to write a parameter or a state
 * comes to its end first. What is not running now ends the next time it runs. A script may catch the error and
 * go on: it is asked once. While the context is open; NULL is fine.
 * [any thread, signal handlers; raises nothing]
 */
void dc_interrupt(dc_rt *ctx);

/*
 * Ends what the context is doing, and insists: until the host's entry is reached (dc_pcall, dc_call, dc_load), the
 * error is raised again wherever a script catches it, in every coroutine and in functions called back from C. The
 * entry ends with DC_E_STOPPED and "stopped by the host", and takes the request back. What is not running now ends
 * the next time it runs. Where Lua is run by plain lua_pcall, the request stays until dc_resume, which comes before
 * anything else that is done with the state, luaL_tolstring of the error included. A compiled function
 * that has begun to write parameters gets 5 ms to come to its end; if that is not enough, what it was
 * writing counts as half written, as after a device that failed. While the context is open; NULL is fine.
 * [any thread, signal handlers; raises nothing]
 */
void dc_stop(dc_rt *ctx);

/* Takes back what dc_interrupt and dc_stop asked for. NULL is fine. [any thread; raises nothing] */
void dc_resume(dc_rt *ctx);

/*
 * From now on each dc_call and dc_load of the context may take so many milliseconds; 0: as long as it needs, as in
 * the beginning. One that takes longer ends as by dc_stop, with DC_E_STOPPED and "ran longer than 5 ms". The first
 * deadline of a context starts a thread (DC_E_DEVICE where that is impossible, DC_E_NOMEM). NULL is fine.
 * [its thread; raises nothing]
 */
void dc_deadline(dc_rt *ctx, int64_t ms);

/*
 * The text of the last failure: a sentence, then lines with what is known around it (operands, hint,
 * code), as scripts read it; no newline at the end. Valid until the next call with this context.
 * Never NULL. ctx may be NULL, as dc_open leaves it without memory.
 * [its thread; raises nothing]
 */
const char *dc_errmsg(dc_rt *ctx);

/*
 * What deepc raises in Lua is a table that a host finds on the stack after lua_pcall. dc_error_text
 * gives its text, as of any error value; its fields, strings unless told otherwise, are
 *
 *     code       "DC0301"; `deepc explain DC0301` tells about it
 *     op         the operation, "matmul"; nil where the mistake is in none
 *     at         "train.lua:15", the line of the script; nil where none is on the stack
 *     path       the layer, "net.2 (nn.Linear 784 -> 10)", or nil
 *     expected, got   types, or nil
 *     operands   a list of tables { role, type, origin }
 *     dims       sizes that names stand for in the function being traced, "batch=64, t=128", or nil
 *     hint       or nil
 *     message    all of it as one text
 *     traceback  as debug.traceback gave it where the error was raised
 */

/*
 * Makes `require "deepc"` work in a Lua 5.4 state and gives it the context, which from then on is
 * closed when the state is. Protected: does not raise. One context per state and one state per context:
 * DC_E_STATE if either has one, or the context is no good (NULL, or of a dc_open that failed); DC_E_NOMEM.
 * The context is then still the caller's, and it may be tried again.
 * [the thread of L and of ctx; raises nothing]
 */
dc_status dc_attach(struct lua_State *L, dc_rt *ctx);

/*
 * The text of the error value at idx of the stack of L, whatever it is: a string, one of ours, an object of the
 * script. As snprintf: writes at most n bytes, a zero at the end included, and returns the length of the whole
 * text. buf may be NULL, L too.
 *
 * For printing an error where nothing else may go wrong: luaL_tolstring calls the script's __tostring and allocates,
 * and ends the process (lua_atpanic) where either fails outside of a lua_pcall. Here an object's __tostring runs in a
 * call of its own; where it raises, yields, gives no string, or may not run, since an interruption is pending or the
 * coroutine has died, the text is the field `message` of a table, if that is a string, else
 * "(error object is a table value)". An interruption that is pending stays so. Needs no memory but for __tostring, and
 * leaves the stack as it was. A zero byte in the text becomes '?'.
 * [the thread of L; raises nothing]
 */
size_t dc_error_text(struct lua_State *L, int idx, char *buf, size_t n);

/*
 * The host's entry into Lua: lua_pcall(L, nargs, nresults, msgh) that others can end, of a state with a context. It
 * ends with DC_E_STOPPED, and an error value as above, where dc_stop asks for it or ms milliseconds have passed (ms <=
 * 0: no deadline); else with lua_pcall's status. Whatever insisted is taken back. Entries may be nested, by functions
 * of the host that scripts call: none lasts longer than the one round it, and dc_stop ends all of them.
 *
 * Lua looks every 1000 instructions whether it is to end, in a hook that stands as long as the entry; a hook of the
 * host is called by it. No other thread touches the state, so this is the entry for scripts that the host did not
 * write. With plain lua_pcall requests put a hook into the state when they come, which is right in a handler of the
 * same thread, and of another thread what Lua does not promise. Loops of plain Lua run half as fast inside.
 *
 * Out of reach: one long call of a C function, of Lua's libraries (a string pattern that backtracks, a sort of very
 * many values by a C function) or the host's; a finalizer (__gc), since Lua runs it without hooks; coroutines that
 * were made before the entry and are resumed by lua_resume of the host.
 * [the thread of L; raises nothing]
 */
int dc_pcall(struct lua_State *L, int nargs, int nresults, int msgh, int64_t ms);

/*
 * ---- Scripts of others ----------------------------------------------------------------------------
 *
 * What a script may do that the host did not write: everything is off that is not named here. It computes, with
 * the memory of its context and of its state; it reads and writes no file, sees no clock and no environment, prints
 * nowhere, and finds no module but deepc's. Devices, threads, processes and the cache are the context's (dc_config):
 * scripts have no word for them.
 */
typedef struct dc_sandbox_options {
    size_t size;
    dc_rt *context; /* of dc_open; becomes the state's, as with dc_attach */
    /*
     * Folders, lists that end with NULL: files beneath them may be read (dc.load, checkpoints, data.idx), or written
     * (dc.save, f:export, charts); what is to be saved and loaded stands in both. A path of a script may be absolute or
     * count from the working directory of now; ".." and symbolic links in it are refused, and so is all that
     * lies outside, in words that do not tell what is there (DC0805). NULL: none. dc_load and what else the host
     * does with the context are not bound by them.
     */
    const char *const *read, *const *write;
    bool clock;          /* os.time, os.clock, os.date, os.difftime */
    size_t memory_limit; /* most bytes of the lua_State itself, what it holds now included; 0: as many as there are */
    /* What print and dc.print print, a line or more with its end at once. NULL: nothing is printed. */
    void (*print)(void *print_ctx, const char *text, size_t n);
    void *print_ctx;
    /*
     * The text of a module for `require name`, good until the next call; NULL: there is none. Names are words of
     * letters, digits, _ and - with dots between them, at most 200 bytes; "deepc" and "deepc.*" are not asked for. The
     * text is run once, with the script's globals; it is never taken for bytecode.
     */
    const char *(*require)(void *require_ctx, const char *name, size_t *n);
    void *require_ctx;
} dc_sandbox_options;

#define DC_SANDBOX_INIT                                                                        \
    {                                                                                          \
        sizeof(dc_sandbox_options), NULL, NULL, NULL, false, 0, NULL, NULL, NULL, NULL         \
    }

/*
 * Makes a lua_State one for scripts of others, and attaches the context: instead of dc_attach. A new one of
 * luaL_newstate needs no libraries; of one that has some, the globals and the functions of strings are replaced, so
 * what the host wants its scripts to find is set after this call (lua_setglobal). One state for each script that
 * is not to see the others. Where it fails, L and the context are as they were: DC_E_STATE as dc_attach; DC_E_FILE:
 * a folder cannot be opened; DC_E_VALUE: o->size is no size of these options, or folders are named where
 * DC_ALLOW_COMPUTE forbids files; DC_E_NOMEM.
 * [the thread of L and of the context; raises nothing]
 */
dc_status dc_sandbox(struct lua_State *L, const dc_sandbox_options *o);

/*
 * Runs a script of n bytes in such a state, as text, never as bytecode, through dc_pcall: dc_stop ends it, and so do
 * ms milliseconds (<= 0: no deadline). Messages call it `name`, which is shown to the script: no path of the
 * host. DC_E_VALUE: it does not parse, has more than 1 MiB, or raised an error; DC_E_STOPPED: it was ended;
 * DC_E_NOMEM: the state has no memory left for it. Then a string that says why is left on the stack, else nothing.
 * Runs no metamethod of an error value.
 * [the thread of L; raises nothing]
 */
dc_status dc_sandbox_run(struct lua_State *L, const char *name, const char *text, size_t n,
                         int64_t ms);

/*
 * ---- Functions without Lua ------------------------------------------------------------------------
 *
 * A script writes a typed function to a file, with the values of its parameters and states:
 *
 *     policy:export("policy.dcfn", { batch = 1 }, { batch = 64 })
 *
 * A host loads and calls it; there is no lua_State, and none of Lua is needed to link.
 *
 *     float x[4] = {...}, y[2];
 *     dc_array in = {DC_F32, 2, {1, 4}, x, sizeof x}, out = {.data = y, .bytes = sizeof y};
 *     if (dc_load(ctx, "policy.dcfn", &policy) != DC_OK ||
 *         dc_call(policy, &in, 1, &out, 1) != DC_OK)
 *         fprintf(stderr, "%s\n", dc_errmsg(ctx));
 *
 * The file has one variant for each set of sizes that it was exported with. A call takes the variant whose
 * arguments have the types of those that are given; sizes are never made up. Arguments and results of
 * records and lists are their tensors, in the order of the signature.
 *
 * States change from call to call as they do in Lua; a step of training is a function like others. All
 * variants of a file share parameters and states.
 */
#ifndef DC_CORE_BASE_TYPE_H /* the library's own files have the same from there */
typedef enum dc_dtype {
    DC_BOOL, /* one byte, 0 or 1 */
    DC_I8,
    DC_I16,
    DC_I32,
    DC_I64,
    DC_U8,
    DC_U16,
    DC_U32,
    DC_U64,
    DC_F16,  /* IEEE 754 binary16 */
    DC_BF16, /* the upper half of an F32 */
    DC_F32,
    DC_F64,
    DC_F8E4M3FN, /* OCP E4M3: no infinities, NaN is 0x7f and 0xff, 448 the largest */
    DC_F8E5M2    /* OCP E5M2: the upper half of an F16 */
} dc_dtype;
#endif

/*
 * A tensor in memory of the host: elements side by side in its byte order, the last axis first, no padding;
 * at any address. rank is 0 to 8; of rank 0 is a single number.
 */
typedef struct dc_array {
    dc_dtype dtype;
    int rank;
    int64_t dim[8];
    void *data;
    size_t bytes; /* at data; of arguments at least the size of the tensor */
} dc_array;

typedef struct dc_function dc_function;

/*
 * Reads a file and compiles all of its variants. The file is not trusted: what it computes is its own
 * matter, but nothing in it leads to other files or outside of its memory. DC_E_FILE: it cannot be read, or
 * is not such a file; DC_E_NOMEM: there is no memory, or cfg.memory_limit refuses it, which counts what is read as it grows; DC_E_DEVICE,
 * DC_E_BUILD: a kernel could not be compiled. *out is NULL then. Several functions may be loaded from one
 * file; each has parameters and states of its own.
 * [its thread; raises nothing]
 */
dc_status dc_load(dc_rt *ctx, const char *path, dc_function **out);

/*
 * dc_load of a function that shares parameters and states with another one of the same context: those that have a name
 * in both are one, with the value that `beside` has, whichever of the two changes it. So one function trains what another
 * one predicts with. What `beside` does not have is read from the file. DC_E_FILE: one of a shared name has another type
 * there; DC_E_VALUE: `beside` is of another context. NULL: as dc_load. Either may be unloaded first.
 * [its thread; raises nothing]
 */
dc_status dc_load_beside(dc_rt *ctx, const char *path, const dc_function *beside,
                         dc_function **out);

/* Frees it; NULL is fine. dc_close does it for those that are left. [its thread; raises nothing] */
void dc_unload(dc_function *fn);

/*
 * Calls it with nin arguments; nout is the number of its results. For each result, out[i].data with
 * out[i].bytes is where it is stored, and the other members are filled in; where data is NULL it points
 * afterwards to memory of fn, good until the next call of fn. out[i].bytes is the size of the result after
 * the call.
 *
 * DC_E_TYPE: no variant has such arguments; DC_E_VALUE: another number of results, an argument with fewer
 * bytes than its type has, too little room for a result, or an index among the data that is outside its axis;
 * DC_E_STATE: it was interrupted (dc_interrupt), or a state was left half written by a call that failed. In
 * all of these nothing has changed. DC_E_STOPPED: it was ended by dc_stop or a deadline (dc_deadline). DC_E_NOMEM, DC_E_DEVICE: states may be half written where the device fails
 * on the way; calls refuse them (DC_E_STATE) until dc_function_set. A call that could be made before allocates
 * nothing. in, or out, may be NULL where there are none.
 * [its thread; raises nothing]
 */
dc_status dc_call(dc_function *fn, const dc_array *in, size_t nin, dc_array *out, size_t nout);

/*
 * ---- Memory of the device -------------------------------------------------------------------------
 *
 * For hosts that own memory there: their data stay where they are. Addresses are those of the device's own
 * interface: on the CPU (and eval, sim:*) pointers, on CUDA what cuMemAlloc gives. OpenCL has none
 * that a host could give: all of these refuse it with DC_E_VALUE. An address is a multiple of 64, elsewhere DC_E_VALUE.
 *
 * Who may touch what: the memory of an argument, and of a tensor over memory of the host, stays as it is until the work
 * that reads it has ended, and deepc never writes it. Where the device works by itself, that is when dc_wait returns, or in
 * the order of dc_config.stream; a call that returns has begun its work, not ended it.
 */

/*
 * dc_call whose arrays are on the device, numbers too: nothing passes through the host and nothing is waited for. in[i].data is
 * read where it is. out[i].data is where the device copies the result to, at any address; where it is NULL it points afterwards
 * to memory of fn, good until the next call of fn, to which it may be given as an argument. Statuses are those of dc_call;
 * what fails on the device later is told by dc_wait, or by the next call.
 * [its thread; raises nothing]
 */
dc_status dc_call_device(dc_function *fn, const dc_array *in, size_t nin, dc_array *out,
                         size_t nout);

/* Until all that was begun has ended; DC_E_DEVICE: something of it failed. [its thread; raises nothing] */
dc_status dc_wait(dc_rt *ctx);

/*
 * Pushes a tensor over memory of the device that is the host's: a->bytes at a->data, at least those of its type. Scripts
 * use it as any other. When its value is needed no more, by no view and no job either, release(release_ctx) is
 * called, once, at a collection, a close or lua_close, on the thread that uses the state: it may use neither the state nor
 * the context, and work that reads the memory may still be under way. The memory counts towards no limit. NULL: nothing is
 * called. Where it fails nothing is pushed and nothing called: DC_E_VALUE, DC_E_NOMEM, DC_E_STATE (no context).
 * [the thread of L; raises nothing]
 */
dc_status dc_push_array(struct lua_State *L, const dc_array *a, void (*release)(void *release_ctx),
                        void *release_ctx);

/*
 * Where the tensor at idx of the stack is on the device, computed now if it was not: a type and an address, good and
 * unchanged as long as the value at idx is alive and not closed; to be read only. DC_E_VALUE: it is no tensor, or a
 * parameter or state, whose memory changes (x * 1 is a tensor); other statuses are those of computing it.
 * [the thread of L; raises nothing]
 */
dc_status dc_to_array(struct lua_State *L, int idx, dc_array *out);

/*
 * What there is: "policy(x: f32[batch, 4]) -> f32[batch, 2]"; numbers count from 0. Of what a number
 * asks for there is none: false. data is NULL, bytes the size of the tensor; name and out may be NULL. Texts are
 * good until dc_unload. Of fn = NULL there is nothing, and the signature is "".
 * [any thread, while fn is loaded; raises nothing]
 */
const char *dc_function_signature(const dc_function *fn);
size_t dc_function_variants(const dc_function *fn);
bool dc_function_argument(const dc_function *fn, size_t variant, size_t number, const char **name,
                          dc_array *out);
bool dc_function_result(const dc_function *fn, size_t variant, size_t number, dc_array *out);

/*
 * Parameters and states: those there are, by number (name and out may be NULL); their values, by name
 * ("net.1.weight"). To get one, out->data has out->bytes of room; the other members are filled in. DC_E_VALUE: none is called so, or there is
 * too little room; DC_E_TYPE: the value is of another type or has too few bytes; DC_E_STATE: a call that
 * failed has left it half written (get only; set makes it whole again). Nothing has changed then.
 * [its thread; raises nothing]
 */
bool dc_function_cell(const dc_function *fn, size_t number, const char **name, dc_array *out);
dc_status dc_function_get(dc_function *fn, const char *name, dc_array *out);
dc_status dc_function_set(dc_function *fn, const char *name, const dc_array *value);

#ifdef __cplusplus
}
#endif

#endif
