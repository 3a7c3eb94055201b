/*
 * The program: runs scripts as `lua` does, with a context attached.
 *
 *   deepc [-e CODE] [-l MODULE] [-i] [-v] [--ranks N] [--trace FILE] [FILE ARGS | -] | plan FILE |
 *         dot FILE | kernel FILE | explain CODE | sandbox FILE | inspect FILE | convert FROM TO | top | cache | doctor |
 *         --replay FILE | --devices | --options | --help
 */
#define _POSIX_C_SOURCE 200809L

#include "backends/cpu/server.h"
#include "backends/registry.h"
#include "dsl/base/hints.h"
#include "dsl/dsl.h"
#include "formats/trace_events.h"
#include "jit/jit.h"
#include "vm/deepc.h"
#include "vm/program/cache_main.h"
#include "vm/program/check_main.h"
#include "vm/program/dot_main.h"
#include "vm/program/ending.h"
#include "vm/program/explain.h"
#include "vm/program/extras.h"
#include "vm/program/kernel.h"
#include "vm/program/launched.h"
#include "vm/program/luaerror.h"
#include "vm/program/module_option.h"
#include "vm/program/plan_main.h"
#include "vm/program/prompt.h"
#include "vm/program/ranks_main.h"
#include "vm/program/replay.h"
#include "vm/program/sandbox_main.h"
#include "vm/program/say.h"
#include "vm/program/signals.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage_options[] =
    "usage: deepc [options] [FILE [ARGS]]\n"
    "Without a file, -e or -v: the prompt; standard input where that is no terminal\n"
    "  FILE ARGS   run a script; its arguments are in the table arg; - is standard input\n"
    "  -e CODE     run a piece of Lua\n"
    "  -l MODULE   require a module into a global of its name; -l NAME=MODULE: of that name\n"
    "  -i          the prompt, after the rest\n"
    "  -v          print the version\n"
    "  --ranks N   run it as N ranks, threads of this process; --ranks cuda:0,cuda:1: one on each "
    "device\n";

static const char usage_commands[] =
    "  --trace FILE  record what runs when, for https://ui.perfetto.dev: run.json, run.json.gz\n"
    "  --          no more options\n"
    "  check FILE ARGS  look for mistakes: trace without a device, list what is wrong (-t SECONDS: "
    "how long; --json: as JSON)\n"
    "  plan --mesh data=8 FILE ARGS  time and memory of a step on ranks that are not there; deepc "
    "plan tells more\n"
    "  dot FILE ARGS    graphs of the script's typed functions, for Graphviz; deepc dot tells "
    "more\n"
    "  kernel FILE      schedule a kernel and print one of its forms; deepc kernel tells more\n"
    "  explain DC0301   what the code of an error means; without a code, all codes\n"
    "  sandbox FILE ARGS  run a script that may compute and print, and nothing else; deepc sandbox "
    "tells more\n"
    "  inspect FILE     what is in a file of tensors; deepc inspect --help tells more\n"
    "  convert FROM TO  writes its tensors as another file\n"
    "  top FILE         follows what a script writes with DEEPC_LOG=FILE; deepc top --help tells "
    "more\n"
    "  cache [--clear]  what the cache of compiled kernels holds; empties it\n"
    "  doctor           what there is to compute on, with a test of it, and which libraries are "
    "missing\n";

static const char usage_questions[] =
    "  --replay FILE    run again what a file about a bug tells; ends with 1 if it still fails\n"
    "  --devices        what there is to compute on, and why not\n"
    "  --options        every setting, its default and its value\n"
    "  --help           this text\n"
    "Settings are variables of the environment: DEEPC_DEVICE=cpu:cc deepc FILE\n";

static void print_usage(FILE *to)
{
    fputs(usage_options, to);
    for (const dc_extra_option *o = dc_extra_options; o->name != NULL; o++)
        fputs(o->usage, to);
    fputs(usage_commands, to);
    for (const dc_extra_command *e = dc_extra_commands; e->name != NULL; e++)
        fputs(e->usage, to);
    fputs(usage_questions, to);
}

static void print_device(void *ctx, const char *name, bool usable, const char *line)
{
    DC_UNUSED(ctx);
    dc_sayf(stdout, "%-10s %s%s\n", name, usable ? "" : "absent: ", line);
    fflush(stdout); /* the next may not come back */
}

static void print_option(void *ctx, const char *env, const char *dflt, const char *now,
                         const char *help)
{
    DC_UNUSED(ctx);
    dc_sayf(stdout, "%-15s default '%s'", env, dflt);
    if (strcmp(dflt, now) != 0)
        dc_sayf(stdout, ", now '%s'", now);
    dc_sayf(stdout, "\n                %s\n", help);
}

/* Prints the error value on top, where it is not another rank's. */
static int report_error(lua_State *L, int status, bool interrupted)
{
    if (status == LUA_OK)
        return LUA_OK;
    dc_luaerror e;
    dc_luaerror_read(L, -1, &e);
    if (status == LUA_ERRSYNTAX && dc_luaerror_hint(e.text) != NULL) {
        lua_pushfstring(L, "%s\n  hint: %s", e.text, dc_luaerror_hint(e.text));
        lua_replace(L, -2);
        dc_luaerror_read(L, -1, &e);
    }
    dc_module_option_failed(L, e.text, e.n);
    if (!dc_launched_report(dc_dsl_rt(L), e.text, interrupted))
        dc_sayf(stderr, "deepc: %.*s\n", (int)e.n, e.text);
    lua_pop(L, 1);
    return status;
}

/*
 * Calls the function under its arguments with tracebacks; Lua reports errors in tables of ours. The
 * first Ctrl-C is an error, the second one ends the process.
 */
static int docall(lua_State *L, int narg, int nresult)
{
    const int base = lua_gettop(L) - narg;
    lua_pushcfunction(L, dc_luaerror_handler);
    lua_insert(L, base);
    dc_signals_catch(dc_dsl_rt(L), false);
    int status = lua_pcall(L, narg, nresult, base);
    if (status == LUA_OK) {
        lua_pushcfunction(L, dc_dsl_settle);
        status = lua_pcall(L, 0, 0, base);
    }
    dc_signals_leave();
    const bool interrupted = dc_signals_pending() > 0;
    dc_signals_forget(L);
    lua_remove(L, base);
    return report_error(L, status, interrupted);
}

static int run_text(lua_State *L, const char *text, const char *name)
{
    const int status = luaL_loadbuffer(L, text, strlen(text), name);
    return status == LUA_OK ? docall(L, 0, 0) : report_error(L, status, false);
}

/* MODULE, or NAME=MODULE. */
static int load_module(lua_State *L, const char *text)
{
    const char *equals = strchr(text, '=');
    lua_pushlstring(L, text, equals != NULL ? (size_t)(equals - text) : strlen(text));
    lua_getglobal(L, "require");
    lua_pushstring(L, equals != NULL ? equals + 1 : text);
    const int status = docall(L, 1, 1);
    if (status == LUA_OK)
        lua_setglobal(L, lua_tostring(L, -2));
    lua_settop(L, 0);
    return status;
}

/* A word in the place of a file that is nearly one of the tools, "chekc"; NULL: none, or there is such a file. */
static const char *tool_meant(lua_State *L, const char *word)
{
    static const char *const words[] = {"check",   "plan",    "dot", "kernel", "explain", "sandbox",
                                        "inspect", "convert", "top", "cache",  "doctor",  NULL};
    if (strpbrk(word, "./") != NULL || access(word, F_OK) == 0)
        return NULL;
    lua_newtable(L);
    for (const dc_extra_command *e = dc_extra_commands; e->name != NULL; e++) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, e->name);
    }
    return dc_hint_spelling(L, -1, words, word);
}

static int run_file(lua_State *L, const char *name, int argc, char **argv)
{
    const int status = luaL_loadfile(L, name);
    if (status == LUA_ERRFILE && name != NULL) {
        const char *error = lua_tostring(L, -1), *meant = tool_meant(L, name);
        if (meant != NULL)
            lua_pushfstring(L, "%s\n  hint: %s deepc --help lists the commands", error, meant);
        else
            lua_pushstring(L, error);
    }
    if (status != LUA_OK)
        return report_error(L, status, false);
    luaL_checkstack(L, argc, "too many arguments");
    for (int i = 0; i < argc; i++)
        lua_pushstring(L, argv[i]);
    return docall(L, argc, 0);
}

/* arg[0] is the script, arg[1].. its arguments, arg[-1].. what stands before it. */
static void set_arg(lua_State *L, int argc, char **argv, int script)
{
    lua_createtable(L, argc, 4);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

/* deepc NAME ARGUMENTS: the function of that name in a module. It computes on `device`; NULL: on the setting's. */
typedef struct tool {
    const char *name, *module, *device;
} tool;

static const tool tools[] = {{"inspect", "deepc.tensor_tool", NULL},
                             {"convert", "deepc.tensor_tool", NULL},
                             {"top", "deepc.top", "eval"},
                             {"doctor", "deepc.doctor", "eval"}};

typedef struct command {
    int argc;
    char **argv;
    dc_rt *rt;
    const tool *tool;   /* a script that is run instead; NULL */
    tool extra;         /* one of extras/ */
    int script;         /* its index, or argc */
    bool i, e, v;       /* options given */
    const char *ranks;  /* --ranks; NULL */
    const char *option; /* the argument of an option of extras/; NULL */
    const char *module; /* that the option is for */
    const char *trace;  /* --trace; NULL */
    bool prompt;        /* there was one */
    int status;
} command;

/* What no thread of several may do: stdin is one. */
static bool fits_ranks(const command *c)
{
    if (!c->i && (c->e || (c->script < c->argc && strcmp(c->argv[c->script], "-") != 0)))
        return true;
    dc_sayf(stderr, "deepc: --ranks %s: a FILE is needed, or -e CODE, and no -i\n", c->ranks);
    return false;
}

static int missing(const char *option)
{
    dc_sayf(stderr, "deepc: %s needs an argument\n", option);
    print_usage(stderr);
    return 1;
}

static int unknown_option(const char *option)
{
    dc_sayf(stderr, "deepc: no option '%s'\n", option);
    print_usage(stderr);
    return 1;
}

/* -e and -l take what follows in the word, else the next word; *at goes to the last word taken. */
static const char *argument_of(const command *c, int *at)
{
    const char *word = c->argv[*at];
    if (word[2] != '\0')
        return word + 2;
    return *at + 1 < c->argc ? c->argv[++*at] : NULL;
}

/* Long options with an argument, and where it goes; NULL: it is none. */
static const char **word_of(command *c, const char *option)
{
    if (strcmp(option, "--ranks") == 0)
        return &c->ranks;
    if (strcmp(option, "--trace") == 0)
        return &c->trace;
    for (const dc_extra_option *o = dc_extra_options; o->name != NULL; o++)
        if (strcmp(option, o->name) == 0) {
            c->module = o->module;
            return &c->option;
        }
    return NULL;
}

/* What is asked for, before anything is done. */
static bool read_options(command *c)
{
    int i = 1;
    for (; i < c->argc && c->argv[i][0] == '-' && c->argv[i][1] != '\0'; i++) {
        const char *a = c->argv[i];
        if (strcmp(a, "--") == 0) {
            i++;
            break;
        }
        const bool whole = a[2] == '\0';
        if (whole && a[1] == 'i')
            c->i = true;
        else if (whole && a[1] == 'v')
            c->v = true;
        else if (a[1] == 'e' || a[1] == 'l') {
            c->e = c->e || a[1] == 'e';
            if (argument_of(c, &i) == NULL) {
                c->status = missing(a);
                return false;
            }
        } else if (word_of(c, a) != NULL) {
            if (i + 1 == c->argc) {
                c->status = missing(a);
                return false;
            }
            *word_of(c, a) = c->argv[++i];
        } else {
            c->status = unknown_option(a);
            return false;
        }
    }
    c->script = i < c->argc ? i : c->argc;
    return c->ranks == NULL || fits_ranks(c);
}

/* Runs -e and -l in their order. */
static int run_options(lua_State *L, command *c)
{
    for (int i = 1; i < c->script && strcmp(c->argv[i], "--") != 0; i++) {
        const char kind = c->argv[i][1];
        i += word_of(c, c->argv[i]) != NULL;
        if (kind != 'e' && kind != 'l')
            continue;
        const char *text = argument_of(c, &i);
        const int status =
            kind == 'e' ? run_text(L, text, "=(command line)") : load_module(L, text);
        if (status != LUA_OK)
            return 1;
    }
    return 0;
}

static int run_tool(lua_State *L, const command *c)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, c->tool->module);
    if (docall(L, 1, 1) != LUA_OK)
        return 1;
    lua_getfield(L, -1, c->tool->name);
    lua_getglobal(L, "arg");
    const int status = docall(L, 1, 0) != LUA_OK;
    lua_settop(L, 0);
    return status;
}

/* The script, or what stands in its place. */
static int run_rest(lua_State *L, command *c)
{
    if (c->tool != NULL)
        return run_tool(L, c);
    const bool script = c->script < c->argc;
    if (script) {
        const char *name = c->argv[c->script];
        const bool is_stdin = strcmp(name, "-") == 0 && strcmp(c->argv[c->script - 1], "--") != 0;
        const int argc = c->argc - c->script - 1;
        if (run_file(L, is_stdin ? NULL : name, argc, c->argv + c->script + 1) != LUA_OK && !c->i)
            return 1;
    }
    if (!c->i && (script || c->e || c->v))
        return 0;
    c->prompt = c->i || isatty(STDIN_FILENO);
    return c->prompt ? dc_prompt_run(L, c->rt) : run_file(L, NULL, 0, NULL) != LUA_OK;
}

typedef struct recording {
    dc_rt *rt;
    const char *path;
} recording;

static dc_status start_trace_body(dc_job *j, void *arg)
{
    const recording *r = arg;
    return dc_trace_start(r->rt, j, r->path, DC_TRACE_SPANS);
}

static void start_trace(lua_State *L, const command *c)
{
    recording r = {c->rt, c->trace};
    if (c->trace != NULL && dc_protect(&c->rt->job, start_trace_body, &r) != DC_OK)
        luaL_error(L, "%s", dc_errmsg(c->rt));
}

/* What the module of an option raises is an error before anything runs. */
static int docall_module(lua_State *L, command *c)
{
    const char *script = c->script < c->argc ? c->argv[c->script] : NULL;
    dc_module_option_push_begin(L);
    lua_pushstring(L, c->option);
    lua_pushstring(L, script);
    lua_getglobal(L, "arg");
    lua_pushstring(L, c->module);
    const int status = docall(L, 4, 0);
    c->status = status != LUA_OK;
    return status;
}

static int end_script(lua_State *L)
{
    const command *c = lua_touserdata(L, 1);
    lua_pushboolean(L, dc_ending(L, c->status != 0 || c->prompt));
    return 1;
}

static int run_command(lua_State *L)
{
    command *c = lua_touserdata(L, 1);
    lua_settop(L, 0);
    luaL_openlibs(L);
    set_arg(L, c->argc, c->argv, c->script < c->argc ? c->script : 0);
    dc_launched_guard(L);
    if (dc_attach(L, c->rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(c->rt));
    dc_ending_guard(L);
    start_trace(L, c);
    lua_gc(L, LUA_GCGEN, 0, 0);
    if (c->option != NULL && docall_module(L, c) != LUA_OK)
        return 0;
    c->status = run_options(L, c);
    if (c->status == 0)
        c->status = run_rest(L, c);
    lua_pushcfunction(L, end_script);
    lua_pushlightuserdata(L, c);
    if (docall(L, 1, 1) != LUA_OK || !lua_toboolean(L, -1))
        c->status = c->status != 0 ? c->status : 1;
    dc_profile_report_all(c->rt);
    return 0;
}

/* Questions that need no context; -1 if this is none. */
/*
 * In a process of its own: drivers that are asked what there is have been seen to end the process,
 * and the other devices are listed all the same.
 */
static void list_devices(const dc_opts *opt)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child <= 0) {
        dc_backend_list(opt, print_device, NULL);
        fflush(stdout);
        if (child == 0)
            _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        dc_sayf(stdout, "          the next one ended the process that asked it (signal %d)\n",
                WTERMSIG(status));
    dc_sim_list(print_device, NULL);
}

static int answer(const char *question)
{
    const char *bad;
    dc_opts opt;
    dc_opts_init(&opt, &bad);
    if (bad != NULL) {
        dc_sayf(stderr, "deepc: %s: not %s\n", bad, dc_opts_wants(bad));
        return 1;
    }
    if (strcmp(question, "--devices") == 0)
        list_devices(&opt);
    else if (strcmp(question, "--options") == 0)
        dc_opts_each(&opt, print_option, NULL);
    else if (strcmp(question, "--version") == 0)
        dc_sayf(stdout, "deepc %s, %s\n", DC_VERSION, LUA_RELEASE);
    else if (strcmp(question, "--help") == 0 || strcmp(question, "-h") == 0 ||
             (strcmp(question, "help") == 0 && access(question, F_OK) != 0))
        print_usage(stdout);
    else
        return -1;
    return 0;
}

/* deepc TOOL ARGUMENTS: the tool is the script of its arguments. */
static bool read_tool(command *c)
{
    for (size_t i = 0; i < DC_COUNTOF(tools) && c->argc >= 2; i++)
        if (strcmp(c->argv[1], tools[i].name) == 0)
            c->tool = &tools[i];
    for (const dc_extra_command *e = dc_extra_commands; e->name != NULL && c->argc >= 2; e++)
        if (e->main == NULL && strcmp(c->argv[1], e->name) == 0) {
            c->extra = (tool){e->name, e->module, NULL};
            c->tool = &c->extra;
        }
    c->script = c->tool != NULL ? 1 : c->argc;
    return c->tool != NULL;
}

/* In a context and a state of its own; several threads may do it at once. */
static int run_scripts(void *arg, const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    command c = *(const command *)arg;
    const dc_rank_thread *thread = dc_launched_thread();
    cfg.log = dc_sink_stderr;
    cfg.device = c.tool != NULL && c.tool->device != NULL ? c.tool->device : device;
    if (thread != NULL) {
        cfg.ranks = thread->ranks;
        cfg.rank = thread->rank;
        cfg.threads = thread->threads;
    }
    if (dc_open(&cfg, &c.rt) != DC_OK) {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(c.rt));
        dc_close(c.rt);
        return 1;
    }
    if (!c.i && c.tool == NULL)
        dc_launched_begin(c.rt);
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(c.rt);
        return 1;
    }
    lua_pushcfunction(L, run_command);
    lua_pushlightuserdata(L, &c);
    if (report_error(L, lua_pcall(L, 1, 0, 0), false) != LUA_OK && c.status == 0)
        c.status = 1;
    const bool attached = dc_dsl_rt(L) != NULL;
    c.status = dc_launched_finish(dc_dsl_rt(L), c.status);
    dc_launched_leave();
    lua_close(L);
    if (!attached)
        dc_close(c.rt);
    return c.status;
}

static int run_program(int argc, char **argv)
{
    command c = {.argc = argc, .argv = argv, .status = 1};
    if (!read_tool(&c) && !read_options(&c))
        return c.status;
    if (c.v && !c.i)
        dc_sayf(stdout, "deepc %s, %s\n", DC_VERSION, LUA_RELEASE);
    return c.ranks != NULL ? dc_ranks_main(c.ranks, run_scripts, &c) : run_scripts(&c, NULL);
}

static int choose(int argc, char **argv)
{
    const int answered = argc == 2 ? answer(argv[1]) : -1;
    if (answered >= 0)
        return answered;
    if (argc >= 2 && strcmp(argv[1], "check") == 0)
        return dc_check_main(argc - 2, argv + 2);
    for (const dc_extra_command *e = dc_extra_commands; e->name != NULL && argc >= 2; e++)
        if (e->main != NULL && strcmp(argv[1], e->name) == 0)
            return e->main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "plan") == 0)
        return dc_plan_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "dot") == 0)
        return dc_dot_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "kernel") == 0)
        return dc_vm_kernel(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "explain") == 0)
        return dc_vm_explain(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        return dc_sandbox_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "cache") == 0)
        return dc_vm_cache(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "--compile-server") == 0) /* for ourselves: not in the usage */
        return dc_server_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "--replay") == 0)
        return argc == 3 ? dc_replay(argv[2]) : missing("--replay");
    return run_program(argc, argv);
}

/*
 * OpenBLAS takes kernels for processors that it knows by their model, and plain ones for those made after it: Debian 12's,
 * of 2022, knows no recent Xeon. What this one can do decides, unless the user has. Hosts of the library do as they like.
 */
static void choose_blas_kernels(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        setenv("OPENBLAS_CORETYPE", "HASWELL", 0);
#endif
}

/* Output that is not where it was to go is a failure, whatever else has been done. */
int main(int argc, char **argv)
{
    choose_blas_kernels();
    const int status = choose(argc, argv);
    return dc_ending_output() || status != 0 ? status : 1;
}
