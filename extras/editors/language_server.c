#define _GNU_SOURCE
#include "extras/editors/language_server.h"

#include "dsl/dsl.h"
#include "extras/editors/rpc.h"
#include "vm/deepc.h"
#include "extras/editors/language_check.h"
#include "vm/program/say.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lualib.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    JOBS = 4,        /* checks that run at once */
    PIECE = 1 << 16, /* read at once */
    GRACE = 1500,    /* ms that a check has to tell what it found when its time is over */
    MOST_RESULT = 64 << 20,
    ARGUMENTS = 64
};

typedef struct job {
    int64_t id; /* of Lua's; 0: free */
    pid_t child;
    int fd;
    int64_t deadline; /* ms */
    dc_text result;
    const char *why; /* it is ended; NULL: it has not been */
} job;

typedef struct server {
    dc_rt *rt;
    lua_State *L;
    dc_warm *warm;
    dc_rpc in;
    dc_text out;
    size_t written; /* of out */
    job job[JOBS];
    int64_t alarm; /* ms; 0: none */
    int status;    /* to end with; -1: goes on */
    int handlers;  /* a reference */
} server;

static int64_t now_ms(void)
{
    return (int64_t)(dc_clock_ns() / 1000000);
}

/* ---- functions for Lua; upvalue: the server ---------------------------------------------------- */

static server *server_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* send(text) */
static int l_send(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    dc_rpc_print(&server_of(L)->out, text, n);
    return 0;
}

static void free_job(job *j)
{
    int status;
    if (j->child > 0)
        while (waitpid(j->child, &status, 0) < 0 && errno == EINTR)
            ;
    close(j->fd);
    dc_text_free(&j->result);
    *j = (job){0};
}

static job *find_job(server *s, int64_t id)
{
    for (int i = 0; i < JOBS; i++)
        if (s->job[i].id == id)
            return &s->job[i];
    return NULL;
}

/* The list of texts at idx, which the stack keeps; as arguments behind the file. */
static int read_arguments(lua_State *L, int idx, char **argv)
{
    int n = 0;
    const lua_Integer all = (lua_Integer)lua_rawlen(L, idx);
    luaL_checkstack(L, ARGUMENTS + 4, "arguments");
    for (lua_Integer i = 1; i <= all && i < ARGUMENTS; i++) {
        lua_rawgeti(L, idx, i);
        argv[++n] = (char *)(uintptr_t)luaL_checkstring(L, -1);
    }
    return n;
}

/* start(id, file, folder, text, arguments, ms, mib): true; nil where none is free; nil and why it could not be */
static int l_start(lua_State *L)
{
    server *s = server_of(L);
    char *argv[ARGUMENTS + 1];
    job *j = find_job(s, 0);
    dc_warm_script script = {.file = luaL_checkstring(L, 2),
                             .folder = luaL_checkstring(L, 3),
                             .ms = luaL_checkinteger(L, 6),
                             .mib = luaL_checkinteger(L, 7),
                             .argv = argv};
    script.text = luaL_checklstring(L, 4, &script.n);
    luaL_checktype(L, 5, LUA_TTABLE);
    argv[0] = (char *)(uintptr_t)script.file;
    script.argc = 1 + read_arguments(L, 5, argv);
    if (j == NULL)
        return 0;
    const pid_t child = dc_warm_check(s->warm, &script, &j->fd);
    if (child < 0) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    j->id = luaL_checkinteger(L, 1);
    j->child = child;
    j->deadline = now_ms() + script.ms + GRACE;
    lua_pushboolean(L, 1);
    return 1;
}

/* stop(id): nothing is told of it any more */
static int l_stop(lua_State *L)
{
    job *j = find_job(server_of(L), luaL_checkinteger(L, 1));
    if (j != NULL && j->id != 0) {
        kill(j->child, SIGKILL);
        free_job(j);
    }
    return 0;
}

/* alarm(ms): handlers.wake is called then; alarm(): not */
static int l_alarm(lua_State *L)
{
    server_of(L)->alarm = lua_isnoneornil(L, 1) ? 0 : now_ms() + luaL_checkinteger(L, 1);
    return 0;
}

static int l_now(lua_State *L)
{
    lua_pushinteger(L, now_ms());
    return 1;
}

static int l_exit(lua_State *L)
{
    server_of(L)->status = (int)luaL_checkinteger(L, 1);
    return 0;
}

static int l_log(lua_State *L)
{
    dc_sayf(stderr, "deepc: %s\n", luaL_checkstring(L, 1));
    return 0;
}

/* The folder of the annotations, where the program is: build/dev, or bin of what is installed. */
static void push_library(lua_State *L)
{
    static const char *const places[] = {"library", "../share/deepc/library"};
    char program[PATH_MAX], path[PATH_MAX + 40];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash;
    program[n > 0 ? n : 0] = '\0';
    slash = strrchr(program, '/');
    for (size_t i = 0; i < DC_COUNTOF(places) && slash != NULL; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - program), program, places[i]);
        char *whole = realpath(path, NULL);
        if (whole != NULL) {
            lua_pushstring(L, whole);
            free(whole);
            return;
        }
    }
    lua_pushnil(L);
}

/* Argument: the server. Leaves the handlers in the registry. */
static int open_server(lua_State *L)
{
    server *s = lua_touserdata(L, 1);
    static const luaL_Reg functions[] = {{"send", l_send},   {"start", l_start}, {"stop", l_stop},
                                         {"alarm", l_alarm}, {"now", l_now},     {"exit", l_exit},
                                         {"log", l_log},     {NULL, NULL}};
    luaL_openlibs(L);
    if (dc_attach(L, s->rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(s->rt));
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.language.server");
    lua_call(L, 1, 1);
    luaL_newlibtable(L, functions);
    lua_pushvalue(L, 1);
    luaL_setfuncs(L, functions, 1);
    push_library(L);
    lua_setfield(L, -2, "library");
    lua_pushliteral(L, DC_VERSION);
    lua_setfield(L, -2, "version");
    lua_call(L, 1, 1);
    s->handlers = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- what happens ------------------------------------------------------------------------------ */

/* Calls handlers.NAME with the n values on top, which are popped. A mistake of ours is logged, and the server goes on. */
static void tell(server *s, const char *name, int n)
{
    lua_State *L = s->L;
    const int first = lua_gettop(L) - n + 1;
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->handlers);
    lua_getfield(L, -1, name);
    lua_insert(L, first);
    lua_pop(L, 1);
    if (lua_pcall(L, n, 0, 0) != LUA_OK)
        dc_sayf(stderr, "deepc: language server: %s: %s\n", name, luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
}

static void read_input(server *s)
{
    static char piece[PIECE];
    const char *text;
    char why[96];
    size_t length;
    dc_rpc_got got;
    const ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        s->status = 1; /* the client is gone without a word */
        return;
    }
    dc_rpc_add(&s->in, piece, n > 0 ? (size_t)n : 0);
    while (s->status < 0 && (got = dc_rpc_take(&s->in, &text, &length, why)) != DC_RPC_MORE) {
        lua_pushlstring(s->L, got == DC_RPC_MESSAGE ? text : why,
                        got == DC_RPC_MESSAGE ? length : strlen(why));
        tell(s, got == DC_RPC_MESSAGE ? "receive" : "refuse", 1);
    }
}

/* Of a pipe that can be written to, so many bytes are taken without waiting. False where nobody reads. */
static bool write_output(server *s)
{
    const size_t left = s->out.n - s->written;
    const ssize_t n = write(STDOUT_FILENO, s->out.s + s->written, left < 4096 ? left : 4096);
    const bool fails = n < 0 && errno != EINTR && errno != EAGAIN;
    if (fails)
        s->status = 1;
    s->written += n > 0 ? (size_t)n : 0;
    if (s->written == s->out.n)
        s->written = s->out.n = 0;
    return !fails;
}

/* finished(id, result or nil, why there is none) */
static void finish_job(server *s, job *j)
{
    char why[80] = "";
    int status = 0;
    while (waitpid(j->child, &status, 0) < 0 && errno == EINTR)
        ;
    j->child = 0;
    if (j->why != NULL)
        snprintf(why, sizeof why, "%s", j->why);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "it crashed (signal %d, %s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || j->result.n == 0)
        snprintf(why, sizeof why, "its process ended");
    lua_pushinteger(s->L, j->id);
    if (why[0] == '\0')
        lua_pushlstring(s->L, j->result.s, j->result.n);
    else
        lua_pushnil(s->L);
    if (why[0] == '\0')
        lua_pushnil(s->L);
    else
        lua_pushstring(s->L, why);
    free_job(j);
    tell(s, "finished", 3);
}

static void read_job(server *s, job *j)
{
    static char piece[PIECE];
    const ssize_t n = read(j->fd, piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && j->result.n + (size_t)n <= MOST_RESULT) {
        dc_text_put(&j->result, piece, (size_t)n);
        return;
    }
    if (n > 0) {
        j->why = "its result is too long";
        kill(j->child, SIGKILL);
    }
    finish_job(s, j);
}

static void look_at_clock(server *s)
{
    const int64_t now = now_ms();
    for (int i = 0; i < JOBS; i++)
        if (s->job[i].id != 0 && now >= s->job[i].deadline) {
            s->job[i].why = "it did not end in time";
            kill(s->job[i].child, SIGKILL);
            finish_job(s, &s->job[i]);
        }
    if (s->alarm != 0 && now >= s->alarm) {
        s->alarm = 0;
        tell(s, "wake", 0);
    }
}

static int time_left(const server *s)
{
    int64_t at = s->alarm;
    for (int i = 0; i < JOBS; i++)
        if (s->job[i].id != 0 && (at == 0 || s->job[i].deadline < at))
            at = s->job[i].deadline;
    if (at == 0)
        return -1;
    const int64_t left = at - now_ms();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void wait_once(server *s)
{
    struct pollfd p[JOBS + 2];
    int64_t id[JOBS + 2] = {0};
    int n = 2;
    p[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    p[1] = (struct pollfd){.fd = s->out.n > 0 ? STDOUT_FILENO : -1, .events = POLLOUT};
    for (int i = 0; i < JOBS; i++)
        if (s->job[i].id != 0) {
            id[n] = s->job[i].id;
            p[n++] = (struct pollfd){.fd = s->job[i].fd, .events = POLLIN};
        }
    if (poll(p, (nfds_t)n, time_left(s)) < 0)
        return;
    if (p[1].revents != 0)
        write_output(s);
    for (int i = 2; i < n; i++) {
        job *j = p[i].revents != 0 ? find_job(s, id[i]) : NULL;
        if (j != NULL) /* a handler may have stopped it */
            read_job(s, j);
    }
    if (p[0].revents != 0)
        read_input(s);
    look_at_clock(s);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static bool open_context(server *s)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    cfg.log = dc_sink_stderr;
    if (dc_open(&cfg, &s->rt) != DC_OK) {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(s->rt));
        dc_close(s->rt);
        return false;
    }
    s->L = luaL_newstate();
    if (s->L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(s->rt);
        return false;
    }
    lua_pushcfunction(s->L, open_server);
    lua_pushlightuserdata(s->L, s);
    if (lua_pcall(s->L, 1, 0, 0) == LUA_OK)
        return true;
    dc_sayf(stderr, "deepc: %s\n", luaL_tolstring(s->L, -1, NULL));
    const bool attached = dc_dsl_rt(s->L) != NULL;
    lua_close(s->L);
    if (!attached)
        dc_close(s->rt);
    return false;
}

static void run(server *s)
{
    while (s->status < 0)
        wait_once(s);
    while (s->out.n > 0) { /* answers, also to who has said nothing of an end */
        struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&p, 1, GRACE) <= 0 || !write_output(s))
            break;
    }
}

int dc_language_server_main(int argc, char **argv)
{
    static const char usage[] =
        "usage: deepc language-server [--stdio]\n"
        "The Language Server Protocol on standard input and output, for editors: docs/editors.md\n";
    static server s;
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--stdio") != 0)) {
        fputs(usage, stderr);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    s.status = -1;
    s.warm = dc_warm_open();
    if (s.warm == NULL || !open_context(&s)) {
        dc_warm_close(s.warm);
        return 1;
    }
    run(&s);
    for (int i = 0; i < JOBS; i++)
        if (s.job[i].id != 0) {
            kill(s.job[i].child, SIGKILL);
            free_job(&s.job[i]);
        }
    lua_close(s.L); /* and its context */
    dc_warm_close(s.warm);
    dc_rpc_free(&s.in);
    dc_text_free(&s.out);
    return s.status;
}
