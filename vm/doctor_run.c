#define _GNU_SOURCE /* pipe2, wait4, environ */
#include "vm/doctor_run.h"

#include "core/base/base.h"
#include "core/base/thread.h"

#include <lauxlib.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 1 << 16, WORDS = 64, VARIABLES = 1024, SLICE_MS = 50 };

/* One output of the process; fd is -1 when it has come to its end. */
typedef struct output {
    int fd;
    size_t n;
    char text[KEPT];
} output;

typedef struct child {
    output out, err;
    pid_t pid;
    bool late, ended;
    int status;
    struct rusage usage;
} child;

/* Reads what is there; what does not fit is dropped. */
static void take(output *o)
{
    char more[4096];
    const ssize_t n = read(o->fd, more, sizeof more);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        close(o->fd);
        o->fd = -1;
        return;
    }
    const size_t fits = (size_t)n < KEPT - o->n ? (size_t)n : KEPT - o->n;
    memcpy(o->text + o->n, more, fits);
    o->n += fits;
}

/* Waits for output for a moment at most. False: there was none. */
static bool poll_outputs(child *c, int ms)
{
    struct pollfd p[2] = {{c->out.fd, POLLIN, 0}, {c->err.fd, POLLIN, 0}};
    if (poll(p, 2, ms) <= 0)
        return false;
    if (p[0].revents != 0)
        take(&c->out);
    if (p[1].revents != 0)
        take(&c->err);
    return true;
}

/* Until it has ended; what it started itself may hold the outputs for longer, and is not waited for. */
static void follow(child *c, double seconds)
{
    const uint64_t from = dc_clock_ns();
    while (!c->ended) {
        if (!c->late && (double)(dc_clock_ns() - from) * 1e-9 > seconds) {
            c->late = true;
            kill(-c->pid, SIGKILL);
        }
        poll_outputs(c, c->out.fd < 0 && c->err.fd < 0 ? 1 : SLICE_MS);
        c->ended = wait4(c->pid, &c->status, WNOHANG, &c->usage) == c->pid;
    }
    while ((c->out.fd >= 0 || c->err.fd >= 0) && poll_outputs(c, 0))
        ;
}

static int start(child *c, char *const *words, char *const *variables)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    int bad = pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ? errno : 0;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, err[1], 2);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); /* what it starts ends with it */
    if (bad == 0)
        bad = posix_spawnp(&c->pid, words[0], &files, &attributes, words, variables);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    close(err[1]);
    c->out.fd = out[0];
    c->err.fd = err[0];
    return bad;
}

/* The strings of the list at idx, behind what is there; they stay while the table does. */
static size_t read_words(lua_State *L, int idx, char **word, size_t n, size_t most)
{
    const lua_Integer count = luaL_len(L, idx);
    luaL_argcheck(L, count >= 0 && n + (size_t)count < most, idx, "too many words");
    for (lua_Integer i = 1; i <= count; i++) {
        lua_geti(L, idx, i);
        union {
            const char *in;
            char *out;
        } text = {.in = luaL_checkstring(L, -1)};
        word[n++] = text.out; /* exec's type has no const */
        lua_pop(L, 1);
    }
    word[n] = NULL;
    return n;
}

static bool is_set_by(char *const *list, size_t n, const char *variable)
{
    const size_t length = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i], variable, length) == 0)
            return true;
    return false;
}

/* Ours, then those of the environment that are not among them. */
static void read_variables(lua_State *L, int idx, char **variable)
{
    const size_t ours = read_words(L, idx, variable, 0, VARIABLES);
    size_t n = ours;
    for (char **v = environ; *v != NULL && n + 1 < VARIABLES; v++)
        if (!is_set_by(variable, ours, *v))
            variable[n++] = *v;
    variable[n] = NULL;
}

static void push_end(lua_State *L, const child *c)
{
    const bool signal = WIFSIGNALED(c->status);
    lua_pushstring(L, c->late ? "time" : signal ? "signal" : "exit");
    lua_setfield(L, -2, "how");
    lua_pushinteger(L, signal ? WTERMSIG(c->status) : WEXITSTATUS(c->status));
    lua_setfield(L, -2, "number");
    lua_pushinteger(L, c->usage.ru_maxrss);
    lua_setfield(L, -2, "kib");
}

int dc_doctor_run(lua_State *L)
{
    char *word[WORDS], *variable[VARIABLES];
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    const double seconds = luaL_checknumber(L, 3);
    luaL_argcheck(L, read_words(L, 1, word, 0, WORDS) > 0, 1, "a program is needed");
    read_variables(L, 2, variable);
    child *c = lua_newuserdatauv(L, sizeof *c, 0);
    memset(c, 0, sizeof *c);
    const uint64_t from = dc_clock_ns();
    const int bad = start(c, word, variable);
    if (bad == 0)
        follow(c, seconds);
    const double lasted = (double)(dc_clock_ns() - from) * 1e-9;
    if (c->out.fd >= 0)
        close(c->out.fd);
    if (c->err.fd >= 0)
        close(c->err.fd);
    if (bad != 0) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s", word[0], strerror(bad));
        return 2;
    }
    lua_createtable(L, 0, 6);
    lua_pushlstring(L, c->out.text, c->out.n);
    lua_setfield(L, -2, "out");
    lua_pushlstring(L, c->err.text, c->err.n);
    lua_setfield(L, -2, "err");
    lua_pushnumber(L, lasted);
    lua_setfield(L, -2, "seconds");
    push_end(L, c);
    return 1;
}
