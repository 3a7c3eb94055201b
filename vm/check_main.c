/*
 * `deepc check FILE`: see vm/check_main.h.
 *
 * The script runs with a context in which nothing is compiled and calls of typed functions return
 * zeros of the declared types (dc_rt.check). What it would do to the world, it does not: printing,
 * writing files, removing them, running programs. A loop over batches runs once. A function that
 * does not pass is reported where it is defined, and the script goes on to the next one.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/check_main.h"

#include "backends/registry.h"
#include "core/base/digits.h"
#include "dsl/base/handle.h"
#include "dsl/base/uses.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"
#include "vm/luaerror.h"
#include "vm/sink.h"

#include <lualib.h>

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 10000 };

static const char SECONDS[] = "20";

typedef struct problem {
    char *file, *text;
    int line, number; /* in the order of finding */
} problem;

typedef struct dc_check {
    dc_rt *rt;
    uint64_t deadline;
    uint32_t errors;
    bool over; /* the script is to end: too long, os.exit, a function that did not pass is called */
    bool late, ended; /* too long; the script came to its end */
    dc_uses_watch watch;
    DC_VEC(problem) found;
} dc_check;

static const char KEY = 0; /* its address: where the registry has the dc_check */
static const char STOPPED[] = "the script is at its end";

static dc_check *check_of(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &KEY);
    dc_check *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
}

/* ---- problems -------------------------------------------------------------------------------- */

/* The number that the text begins with; 0 where it is no line of a file. */
static int line_of(const char *text)
{
    uint64_t n = 0;
    return dc_digits_unsigned(&text, NULL, INT_MAX, &n) == DC_DIGITS_OK ? (int)n : 0;
}

static char *copy_of(const char *text)
{
    char *copy = dc_xalloc(strlen(text) + 1);
    return strcpy(copy, text);
}

/* at: "train.lua:15" or "train.lua"; hint may be NULL. */
static void add_problem(dc_check *c, const char *at, const char *what, const char *sentence,
                        const char *hint)
{
    char text[2000];
    const char *colon = strrchr(at, ':');
    problem p = {.file = copy_of(at), .number = (int)c->found.n};
    if (colon != NULL && isdigit((unsigned char)colon[1])) {
        p.line = line_of(colon + 1);
        p.file[colon - at] = '\0';
    }
    const int n = snprintf(text, sizeof text, "%s: %s: %s", at, what, sentence);
    if (hint != NULL && *hint != '\0' && n > 0 && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "\n  hint: %s", hint);
    p.text = copy_of(text);
    DC_PUSH(c->found, p);
}

static void report_mistake(dc_check *c, const char *at, const char *code, const char *sentence,
                           const char *hint)
{
    add_problem(c, at, code, sentence, hint);
    c->errors++;
}

/* Nothing uses the results of this operation: of a comparison, they were most likely a condition. */
static void tell_unused(void *arg, const dc_use *use)
{
    const dc_err_row *row = dc_err_row_of(DC_ERR_UNUSED);
    char sentence[200], code[16];
    snprintf(sentence, sizeof sentence, "nothing uses the value of %s%s", use->op,
             use->test ? ": a tensor is always true" : "");
    snprintf(code, sizeof code, "DC%04d", row->code);
    if (use->test)
        report_mistake(arg, use->where, code, sentence, row->hint);
    else
        add_problem(arg, use->where, "warning", sentence, NULL);
}

/*
 * Outside traces, where a value may be kept for later: comparisons alone. A script that was stopped might have
 * come to it, unless there were several.
 */
static void tell_lazy(void *arg, const dc_use *use)
{
    const dc_check *c = arg;
    if ((c->ended || use->n > 1) && use->test)
        tell_unused(arg, use);
}

static int by_file_and_line(const void *x, const void *y)
{
    const problem *a = x, *b = y;
    const int files = strcmp(a->file, b->file);
    if (files != 0)
        return files;
    return a->line != b->line ? (a->line > b->line) - (a->line < b->line)
                              : (a->number > b->number) - (a->number < b->number);
}

static void print_problems(dc_check *c)
{
    if (c->found.n > 1)
        qsort(c->found.at, c->found.n, sizeof *c->found.at, by_file_and_line);
    for (uint32_t i = 0; i < c->found.n; i++)
        puts(c->found.at[i].text);
}

/* ---- error values ---------------------------------------------------------------------------- */

static const char *field(lua_State *L, int idx, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, idx); /* stays, so that its text does */
    return lua_tostring(L, -1);
}

/* One of ours: its own fields, the first line of its text. */
static void report_record(dc_check *c, lua_State *L, int idx, const char *file)
{
    char sentence[1000];
    const char *at = field(L, idx, "at"), *code = field(L, idx, "code");
    const char *hint = field(L, idx, "hint"), *message = field(L, idx, "message");
    const size_t n = at != NULL ? strlen(at) : 0;
    if (message == NULL)
        message = "";
    if (at != NULL && strncmp(message, at, n) == 0 && message[n] == ':')
        message += n + 1 + (message[n + 1] == ' ');
    snprintf(sentence, sizeof sentence, "%.*s", (int)strcspn(message, "\n"), message);
    report_mistake(c, at != NULL ? at : file, code, sentence, hint);
}

/* Lua's own: "train.lua:3: attempt to ...". */
static void report_text(dc_check *c, const char *text, const char *kind, const char *file)
{
    char at[400];
    const char *colon = strchr(text, ':');
    while (colon != NULL && !isdigit((unsigned char)colon[1]))
        colon = strchr(colon + 1, ':');
    size_t n = colon != NULL ? 1 + strspn(colon + 1, "0123456789") : 0;
    if (colon == NULL || colon[n] != ':' || (size_t)(colon - text) + n >= sizeof at) {
        snprintf(at, sizeof at, "%s", file);
        n = 0;
        colon = text;
    } else {
        snprintf(at, sizeof at, "%.*s", (int)((size_t)(colon - text) + n), text);
        n += 1 + (colon[n + 1] == ' ');
    }
    const char *sentence = colon + n;
    char line[1000];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(sentence, "\n"), sentence);
    if (c->rt->check_unknown) /* it may have been about a value that is not there */
        add_problem(c, at, "note", line,
                    "the script stopped here; values are not computed by deepc check");
    else
        report_mistake(c, at, kind, line, NULL);
}

static bool is_stop(lua_State *L, int idx)
{
    return lua_touserdata(L, idx) == (const void *)STOPPED;
}

/* The error value on top; pops it. */
static void report_error(dc_check *c, lua_State *L, const char *kind, const char *file)
{
    const int idx = lua_gettop(L);
    luaL_checkstack(L, 8, "an error");
    lua_pushliteral(L, "code");
    const bool ours = lua_type(L, idx) == LUA_TTABLE && lua_rawget(L, idx) == LUA_TSTRING;
    if (!is_stop(L, idx) && ours) {
        report_record(c, L, idx, file);
    } else if (!is_stop(L, idx)) {
        lua_settop(L, idx);
        dc_luaerror e;
        dc_luaerror_read(L, idx, &e);
        report_text(c, e.text, kind, file);
    }
    lua_settop(L, idx - 1);
}

static DC_NORETURN void stop(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)STOPPED);
    for (;;)
        lua_error(L);
}

/* ---- the hook -------------------------------------------------------------------------------- */

static void hook(lua_State *L, lua_Debug *ar)
{
    dc_check *c = check_of(L);
    DC_UNUSED(ar);
    if (!c->over && dc_clock_ns() > c->deadline)
        c->over = c->late = true;
    if (c->over)
        stop(L);
}

/* ---- what a script would do to the world ----------------------------------------------------- */

/* Arguments of output functions, which print nothing here, count as used. */
static void see_arguments(lua_State *L)
{
    for (int i = lua_gettop(L); i > 0; i--) {
        dc_handle *h = dc_handle_look(L, i);
        if (h != NULL)
            dc_uses_mark(h);
    }
}

static int l_nothing(lua_State *L)
{
    see_arguments(L);
    return 0;
}

static int l_true(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

static int l_exit(lua_State *L)
{
    check_of(L)->over = true;
    stop(L);
}

/* Upvalues: io.stdout, io.stderr, the method that was there. */
static int l_write(lua_State *L)
{
    see_arguments(L);
    if (lua_rawequal(L, 1, lua_upvalueindex(1)) || lua_rawequal(L, 1, lua_upvalueindex(2))) {
        lua_settop(L, 1);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* io.write and io.output; upvalue: io.stdout. */
static int l_stdout(lua_State *L)
{
    see_arguments(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* io.open, io.popen; upvalue: io.open. What would be written goes nowhere. */
static int l_open(lua_State *L)
{
    const char *mode = luaL_optstring(L, 2, "r");
    const bool reads = strpbrk(mode, "wa+") == NULL && lua_toboolean(L, lua_upvalueindex(2));
    lua_settop(L, 2);
    if (!reads) {
        lua_pushliteral(L, "/dev/null");
        lua_replace(L, 1);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, LUA_MULTRET);
    return lua_gettop(L);
}

static void replace_function(lua_State *L, const char *library, const char *name, lua_CFunction fn)
{
    if (lua_getglobal(L, library) == LUA_TTABLE) {
        lua_pushcfunction(L, fn);
        lua_setfield(L, -2, name);
    }
    lua_pop(L, 1);
}

static void silence_files(lua_State *L)
{
    static const char *const names[] = {"write", "output"};
    lua_getglobal(L, "io");
    const int io = lua_gettop(L);
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        lua_getfield(L, io, "stdout");
        lua_pushcclosure(L, l_stdout, 1);
        lua_setfield(L, io, names[i]);
    }
    for (int reads = 0; reads < 2; reads++) {
        lua_getfield(L, io, "open");
        lua_pushboolean(L, reads);
        lua_pushcclosure(L, l_open, 2);
        lua_setfield(L, io, reads ? "open" : "popen");
    }
    if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE &&
        lua_getfield(L, -1, "__index") == LUA_TTABLE) {
        const int methods = lua_gettop(L);
        lua_getfield(L, io, "stdout");
        lua_getfield(L, io, "stderr");
        lua_getfield(L, methods, "write");
        lua_pushcclosure(L, l_write, 3);
        lua_setfield(L, methods, "write");
    }
    lua_settop(L, io - 1);
}

static void silence(lua_State *L)
{
    lua_pushcfunction(L, l_nothing);
    lua_setglobal(L, "print");
    silence_files(L);
    replace_function(L, "io", "read", l_nothing);
    replace_function(L, "os", "exit", l_exit);
    replace_function(L, "os", "execute", l_true);
    replace_function(L, "os", "remove", l_true);
    replace_function(L, "os", "rename", l_true);
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* What stands for a function that did not pass: code that calls it is not checked. */
static int l_failed(lua_State *L)
{
    check_of(L)->over = true;
    stop(L);
}

static void push_failed(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__call", l_failed}, {"__index", l_failed}, {NULL, NULL}};
    lua_newtable(L);
    luaL_newlib(L, meta);
    lua_setmetatable(L, -2);
}

/* dc.fn; upvalue: the one that was there. Inside a trace the outer definition is what fails. */
static int l_fn(lua_State *L)
{
    dc_check *c = check_of(L);
    const dc_dsl *d = dc_dsl_in(L);
    const bool outermost = d->trace == NULL;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    if (lua_pcall(L, lua_gettop(L) - 1, 1, 0) == LUA_OK)
        return 1;
    if (!outermost || is_stop(L, -1))
        return lua_error(L);
    report_error(c, L, "error", "?");
    push_failed(L);
    return 1;
}

static void watch_definitions(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc");
    lua_call(L, 1, 1);
    lua_pushliteral(L, "fn");
    lua_pushliteral(L, "fn");
    lua_rawget(L, -3);
    lua_pushcclosure(L, l_fn, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* ---- the whole ------------------------------------------------------------------------------- */

typedef struct request {
    dc_check *c;
    const char *file;
    int argc;
    char **argv; /* the file and what follows */
    const dc_check_run *run;
} request;

static dc_status unused_body(dc_job *j, void *arg)
{
    dc_check *c = arg;
    DC_UNUSED(j);
    dc_uses_end(&c->watch.lazy, &c->watch.seen, tell_lazy, c);
    return DC_OK;
}

static void run_script(lua_State *L, const request *r)
{
    dc_check *c = r->c;
    if (luaL_loadfile(L, r->file) != LUA_OK) {
        report_error(c, L, "syntax", r->file);
        return;
    }
    luaL_checkstack(L, r->argc, "arguments");
    for (int i = 1; i < r->argc; i++)
        lua_pushstring(L, r->argv[i]);
    lua_sethook(L, hook, LUA_MASKCOUNT, COUNT);
    const int status = lua_pcall(L, r->argc - 1, 0, 0);
    lua_sethook(L, NULL, 0, 0);
    c->ended = status == LUA_OK;
    if (status != LUA_OK)
        report_error(c, L, "error", r->file);
    if (c->late)
        add_problem(c, r->file, "note", "the script had not ended when its time was over",
                    "what it would have done is not checked; -t SECONDS gives it more");
}

/* Argument: the request. */
static int check_script(lua_State *L)
{
    const request *r = lua_touserdata(L, 1);
    luaL_openlibs(L);
    lua_createtable(L, r->argc, 0);
    for (int i = 0; i < r->argc; i++) {
        lua_pushstring(L, r->argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
    if (dc_attach(L, r->c->rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(r->c->rt));
    lua_pushlightuserdata(L, r->c);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &KEY);
    watch_definitions(L);
    silence(L);
    dc_dsl *d = dc_dsl_in(L);
    r->c->watch.tell = tell_unused;
    r->c->watch.arg = r->c;
    d->watch = &r->c->watch;
    run_script(L, r);
    d->watch = NULL;
    dc_protect(&d->rt->job, unused_body, r->c);
    if (r->run->finish != NULL && r->c->errors == 0)
        r->run->finish(L, r->run->ctx);
    return 0;
}

static void free_check(dc_check *c)
{
    for (uint32_t i = 0; i < c->found.n; i++) {
        dc_xfree(c->found.at[i].file);
        dc_xfree(c->found.at[i].text);
    }
    DC_VEC_FREE(c->found);
    dc_uses_free(&c->watch.lazy);
    dc_uses_free(&c->watch.seen);
}

/* Nothing is computed, and yet the script is told the device that it would run on. */
static void name_device(dc_rt *rt)
{
    const char *bad;
    dc_opts opt;
    dc_opts_init(&opt, &bad);
    dc_backend_name(opt.device, rt->device_name, sizeof rt->device_name);
}

static int check_file(const request *r)
{
    dc_check *c = r->c;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = r->run->device;
    cfg.log = dc_sink_stderr;
    if (dc_open(&cfg, &c->rt) != DC_OK) {
        fprintf(stderr, "deepc: %s\n", dc_errmsg(c->rt));
        dc_close(c->rt);
        return 1;
    }
    c->rt->check = true;
    name_device(c->rt);
    if (r->run->prepare != NULL)
        r->run->prepare(c->rt, r->run->ctx);
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(c->rt);
        return 1;
    }
    lua_pushcfunction(L, check_script);
    lua_pushlightuserdata(L, (void *)(uintptr_t)r);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        report_error(c, L, "error", r->file);
    print_problems(c);
    const bool attached = dc_dsl_rt(L) != NULL;
    lua_close(L);
    if (!attached)
        dc_close(c->rt);
    return c->errors > 0;
}

/* "5", "0.5": nanoseconds, above 0. */
static bool read_seconds(const char *text, uint64_t *ns)
{
    uint64_t whole;
    if (dc_digits_unsigned(&text, NULL, 1000000000, &whole) != DC_DIGITS_OK)
        return false;
    *ns = whole * 1000000000;
    if (*text == '.' && isdigit((unsigned char)text[1]))
        for (uint64_t place = 100000000; isdigit((unsigned char)*++text); place /= 10)
            *ns += place * (uint64_t)(*text - '0');
    return *text == '\0' && *ns > 0;
}

int dc_check_script(const dc_check_run *run)
{
    uint64_t ns;
    if (!read_seconds(run->seconds, &ns)) {
        fprintf(stderr, "deepc: -t is a number of seconds, not '%s'\n", run->seconds);
        return 1;
    }
    dc_check c = {.deadline = dc_clock_ns() + ns};
    const request r = {&c, run->argv[0], run->argc, run->argv, run};
    const int status = check_file(&r);
    free_check(&c);
    return status;
}

int dc_check_main(int argc, char **argv)
{
    static const char usage[] = "usage: deepc check [-t SECONDS] FILE [ARGS]\n";
    dc_check_run run = {.device = "eval", .seconds = SECONDS};
    uint64_t ns;
    int i = 0;
    if (argc >= 2 && strcmp(argv[0], "-t") == 0) {
        run.seconds = argv[1];
        i = read_seconds(argv[1], &ns) ? 2 : argc;
    }
    if (i >= argc || argv[i][0] == '-') {
        fputs(usage, stderr);
        return 1;
    }
    run.argc = argc - i;
    run.argv = argv + i;
    return dc_check_script(&run);
}
