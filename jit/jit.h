/*
 * The whole of jit/ as others see it: a checked function becomes an executable, an executable is
 * bound to memory as an instance, an instance is called.
 *
 *   dc_exec   shared, immutable: items, memory plan, signature; no pointers to tensors.
 *   dc_inst   an executable with its cells, result stores, arena and recording.
 */
#ifndef DC_JIT_JIT_H
#define DC_JIT_JIT_H

#include "core/runtime/store.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/kernel_forms.h"
#include "jit/sim/sim.h"

typedef struct dc_exec dc_exec;
typedef struct dc_inst dc_inst;

/*
 * Results of fn come in this order: nresult tensors, nset new values of cells, then pairs of checks
 * (position i32[] of the first offender or -1; its value i32[] or i64[]), two results per check.
 * Parameters: nfree first (arguments and captured tensors, given at each call), then ncell cells.
 * set[i] is the cell (index among the cells) that result nresult + i is stored to. It is donated
 * the cell's own store where that is safe, else goes through a temporary and a copy; either way
 * cells change only after every check has passed and every kernel that reads the old value has run.
 */
typedef struct dc_exec_desc {
    const dc_func *fn; /* copied; simplified and checked by the builder */
    const char *name;  /* of the typed function, for logs */
    uint32_t nfree, ncell, nresult, nset, ncheck;
    const uint32_t *set;
    const bool *
        anywhere; /* by free parameter: its memory begins at any element; NULL: at multiples of 64 bytes */
    uint32_t nfixed; /* the last of the free parameters: tensors that are the same at each call */
    bool once;       /* few calls are expected: nothing is kept from one to the next */
    bool no_reuse;   /* for tests: every temporary has memory of its own */
    bool relayout_small; /* for tests: also cells that are not worth it (jit/rewrite/weight_layout.h) */
} dc_exec_desc;

/* FORMAT where the parts do not fit together: of descriptions that come from files. */
dc_status dc_exec_desc_check(dc_job *j, const dc_exec_desc *d, const char *op);
/* What an executable was made from; its copy. */
const dc_exec_desc *dc_exec_desc_of(const dc_exec *e);

/*
 * start: the compilation begins on another thread (DEEPC_COMPILE=now: it runs here); wait: until it
 * has ended, here if nobody has begun it, and its failure, if any. A failure for lack of memory is
 * tried again by the next wait, others stay. build: both, here. What the compiler logs is delivered
 * to the context's sink by the next call with the context, in the order of the starts.
 *
 * Releasing an executable that is being compiled does not wait for the end.
 */
dc_status dc_exec_start(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out);
dc_status dc_exec_wait(dc_rt *rt, dc_job *j, dc_exec *e);
dc_status dc_exec_build(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out);
dc_exec *dc_exec_retain(dc_exec *e);
void dc_exec_release(dc_exec *e);

/* Facts for dc.stats, :explain and tests. */
typedef struct dc_exec_info {
    uint32_t launches, copies, kernels; /* a bundle is one; distinct kernels */
    uint32_t derived;           /* values that are kept from call to call (jit/rewrite/prologue.h) */
    uint32_t prologue_launches; /* when they are computed; not among `launches` and `copies` */
    size_t derived_bytes;
    size_t arena_bytes, arena_lower_bound;
    uint32_t donated, denied; /* cells updated in place; through a temporary */
    bool interpreted;         /* runs on the interpreter */
    uint64_t nodes;           /* of the graph after simplification */
} dc_exec_info;

/* Of one that has been waited for. */
void dc_exec_info_of(const dc_exec *e, dc_exec_info *out);

/* What there is to look at, of one that has been waited for (jit/compile/exec_report.c). */
typedef struct dc_exec_kernel {
    const char *name;
    uint32_t launches;    /* per call */
    uint32_t prologue;    /* launches when derived values are computed */
    int64_t flops, bytes; /* of all these */
    uint64_t calls, ns;   /* launches that were timed, and what they took */
    const char *where[3]; /* script lines, NULL behind the last one */
} dc_exec_kernel;

/* Distinct kernels, in the order of the numbers below; none where the interpreter runs it. */
uint32_t dc_exec_kernel_count(const dc_exec *e);
void dc_exec_kernel_of(const dc_exec *e, uint32_t kernel, dc_exec_kernel *out);
/* The text of a kernel, as it was compiled. */
dc_status dc_exec_source(dc_exec *e, dc_job *j, uint32_t kernel, dc_form form, dc_text *out);
/* Values that could be computed again or stored, and what was cheaper (jit/fuse/fuse.h); NULL: none. */
typedef struct dc_exec_choice {
    const char *op, *type; /* "exp", "f32[64, 10]" */
    const char *times_of;  /* "kernels": what `times` counts */
    const char *where;     /* script line, or NULL */
    const char *but;       /* why it is not stored though that would cost less, or NULL */
    bool stored;
    int64_t times;
    double again, moved; /* operations more if it is not stored; bytes written and read if it is */
} dc_exec_choice;

const dc_exec_choice *dc_exec_choices(const dc_exec *e, uint32_t *n);

/* Of a value that is kept from call to call (jit/rewrite/prologue.h): operation, type, script line or NULL. */
typedef struct dc_exec_derived {
    const char *op, *type, *where;
} dc_exec_derived;

/* Value i of info.derived. */
dc_exec_derived dc_exec_derived_of(const dc_exec *e, uint32_t i);

/* Items in their order: what runs, what it writes and reads. */
void dc_exec_plan(const dc_exec *e, dc_text *out);
/* How the memory of a cell is laid out while it is called (jit/rewrite/weight_layout.h). */
const dc_cell_layout *dc_exec_layout(const dc_exec *e, uint32_t cell);
/* Why the cell is not set in place; NULL where it is. *set: the function sets it. */
const char *dc_exec_denied(const dc_exec *e, uint32_t cell, bool *set);
/* Is the cell set in place, and what changes stored alone? */
bool dc_exec_in_part(const dc_exec *e, uint32_t cell);
/* Kernels of the context, of this executable to begin with, are timed from now on. */
void dc_exec_measure(dc_exec *e);

/*
 * Prepares a context for compilations and checks the settings that they read (DEEPC_SKIP,
 * DEEPC_SCHEDULE, DEEPC_DUMP, DEEPC_COMPILE). The first executable does it too.
 */
dc_status dc_jit_open(dc_rt *rt, dc_job *j);

/*
 * Before the process ends without the context being closed: the end destroys what compilers on other
 * threads are using. Waits for those that are running; with DEEPC_DUMP or a channel of compilation on,
 * for all that is queued.
 */
void dc_jit_stop(dc_rt *rt);

/* Delivers log lines and counters of compilations that have ended. */
void dc_jit_settle(dc_rt *rt);

/* Takes a reference on the executable and on each of the cells. */
dc_status dc_inst_new(dc_rt *rt, dc_job *j, dc_exec *e, dc_cell *const *cell, dc_inst **out);
void dc_inst_free(dc_inst *i);
uint64_t dc_inst_calls(const dc_inst *i); /* begun so far */

/* A value for one of the nfree parameters: a tensor, or (rank 0) a number as a pattern. */
typedef struct dc_arg {
    const dc_tensor *tensor; /* NULL: `bits` */
    uint64_t bits;
} dc_arg;

/* A check that failed: which one, where, what value stood there. */
typedef struct dc_fault {
    int32_t check; /* -1: none */
    int64_t position, value;
} dc_fault;

/*
 * One call. out[0..nresult-1] receive new references; a later call never changes what they hold
 * (it takes other memory where they are held). Types of the arguments are the caller's duty.
 * On a fault the status is DC_E_VALUE, no cell has changed, and *fault tells (the job's record is
 * left empty: only the caller knows what the check is about). A call while one of the same instance
 * runs is REENTER, one that reads a cell half written by a failed device TORN.
 */
dc_status dc_inst_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_tensor **out, dc_fault *fault);

/*
 * Between calls: the memory of results belongs to whoever holds them from now on, and the next call
 * takes other memory. For programs whose results are all kept.
 */
void dc_inst_detach(dc_inst *i);

/*
 * A call in slices, a job: start, poll until done, take. dc_inst_call is the same without pauses.
 *
 * start binds the arguments, whose values are kept for the job. Each poll runs for about budget_ns,
 * at least one kernel (the interpreter: all of it); UINT64_MAX is no limit. A fault or failure ends
 * the job. While it is there: the same instance is REENTER; cells that it sets are JOB for everybody
 * else, to read and to set; cells that it only reads may be set, the job goes on with their old
 * values; the context's arena is the job's, other calls take memory of their own.
 *
 * cancel ends a job, wherever it is, and forgets results not taken. Before the first write to a cell
 * nothing has changed; after it, the cells that the job sets are torn. (A loop that writes a cell
 * counts as a write as soon as it may have begun.)
 */
dc_status dc_inst_start(dc_inst *i, dc_job *j, const dc_arg *arg);
dc_status dc_inst_poll(dc_inst *i, dc_job *j, uint64_t budget_ns, bool *done, dc_fault *fault);
dc_status dc_inst_take(dc_inst *i, dc_job *j, dc_tensor **out); /* once, after done */
void dc_inst_cancel(dc_inst *i);

/* DEEPC_DEBUG=time: one line per kernel: name, calls, ms, GFLOP/s, GB/s, Lua lines. */
void dc_time_report(dc_rt *rt);

#endif
