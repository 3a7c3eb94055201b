#define _GNU_SOURCE /* pipe2 */
#include "extras/editors/language_check.h"

#include "dsl/dsl.h"
#include "vm/program/check.h"
#include "vm/program/check_main.h"
#include "vm/deepc.h"
#include "vm/program/say.h"

#include <lauxlib.h>
#include <lualib.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

struct dc_warm {
    dc_check check;
    lua_State *L;
};

enum {
    PAUSE = 400
}; /* of the collector: what a script leaves behind is seldom worth looking for */

/* ---- the warm state --------------------------------------------------------------------------- */

/* Argument: the dc_warm. What a script may require is loaded, and what the library loads when it is first called. */
static int warm_up(lua_State *L)
{
    dc_warm *w = lua_touserdata(L, 1);
    luaL_openlibs(L);
    if (dc_attach(L, w->check.rt) != DC_OK)
        return luaL_error(L, "%s", dc_errmsg(w->check.rt));
    dc_check_prepare(L, &w->check);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.language.warm");
    lua_call(L, 1, 0);
    lua_settop(L, 0);
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCINC, PAUSE, 0, 0);
    return 0;
}

static bool open_state(dc_warm *w)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    if (dc_open(&cfg, &w->check.rt) != DC_OK) {
        dc_sayf(stderr, "deepc: %s\n", dc_errmsg(w->check.rt));
        dc_close(w->check.rt);
        return false;
    }
    w->check.rt->check = true;
    dc_check_name_device(w->check.rt);
    w->L = luaL_newstate();
    if (w->L == NULL) {
        fputs("deepc: out of memory\n", stderr);
        dc_close(w->check.rt);
        return false;
    }
    lua_pushcfunction(w->L, warm_up);
    lua_pushlightuserdata(w->L, w);
    if (lua_pcall(w->L, 1, 0, 0) == LUA_OK)
        return true;
    dc_sayf(stderr, "deepc: %s\n", luaL_tolstring(w->L, -1, NULL));
    const bool attached = dc_dsl_rt(w->L) != NULL;
    lua_close(w->L);
    if (!attached)
        dc_close(w->check.rt);
    return false;
}

dc_warm *dc_warm_open(void)
{
    dc_warm *w = dc_xalloc(sizeof *w);
    if (open_state(w))
        return w;
    dc_xfree(w);
    return NULL;
}

void dc_warm_close(dc_warm *w)
{
    if (w == NULL)
        return;
    lua_close(w->L); /* and the context */
    dc_xfree(w);
}

/* ---- in the child ----------------------------------------------------------------------------- */

static void limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return;
    now.rlim_cur = now.rlim_max == RLIM_INFINITY || most < now.rlim_max ? most : now.rlim_max;
    now.rlim_max = now.rlim_cur;
    setrlimit(what, &now);
}

/* What a script does stays in here: no output, no files that grow, so much memory, and the end of the server ends it. */
static void confine(pid_t server, const dc_warm_script *s)
{
    const int null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
        dup2(null, fd);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != server)
        _exit(1);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (rlim_t)(s->ms / 1000 + 5));
#ifndef __SANITIZE_ADDRESS__ /* whose shadow counts */
    limit(RLIMIT_DATA, (rlim_t)s->mib << 20);
#endif
    if (chdir(s->folder) != 0)
        errno = 0; /* where the server is */
}

static dc_check *running; /* by the handler: of this process, which checks one script */

static void on_alarm(int sig)
{
    DC_UNUSED(sig);
    atomic_store(&running->stopped, true);
    dc_stop(running->rt);
}

/* What runs ends after so many milliseconds, in the library too; what does not is killed by the server. */
static void set_alarm(dc_check *c, int64_t ms)
{
    const struct itimerval t = {.it_value = {ms / 1000, ms % 1000 * 1000}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    running = c;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &t, NULL);
}

typedef struct task {
    dc_warm *w;
    const dc_warm_script *s;
    dc_text *out;
} task;

/* Argument: the task. */
static int check_script(lua_State *L)
{
    const task *k = lua_touserdata(L, 1);
    const dc_warm_script *s = k->s;
    const dc_check_source source = {s->file, s->text, s->n, s->argc, s->argv};
    dc_check_trace(L, &k->w->check, &source);
    return 0;
}

/* Argument: the task. */
static int print_types(lua_State *L)
{
    const task *k = lua_touserdata(L, 1);
    dc_check_types_print(L, k->w->check.types, k->s->file, k->out);
    return 0;
}

static void call(lua_State *L, lua_CFunction fn, task *k)
{
    lua_settop(L, 0);
    lua_pushcfunction(L, fn);
    lua_pushlightuserdata(L, k);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        dc_check_report(L, &k->w->check, "error");
}

static void print_result(task *k)
{
    dc_check *c = &k->w->check;
    dc_check_sort(c);
    dc_text_printf(k->out,
                   "{\"complete\":%s,\"late\":%s,\"problems\":", c->ended ? "true" : "false",
                   c->late ? "true" : "false");
    dc_check_print_problems(c, k->s->text, k->s->n, k->out);
    const size_t n = k->out->n;
    const uint32_t problems = c->found.n;
    dc_text_puts(k->out, ",\n");
    call(k->w->L, print_types, k);
    if (c->found.n != problems) /* out of memory: what was begun is no JSON */
        k->out->n = n;
    dc_text_puts(k->out, "}");
}

static DC_NORETURN void be_child(dc_warm *w, const dc_warm_script *s, int fd)
{
    dc_text out = {0};
    task k = {w, s, &out};
    dc_check *c = &w->check;
    dc_owner_adopt(&c->rt->owner);
    c->file = s->file;
    c->types = dc_check_types_new(c->rt, s->text, s->n);
    set_alarm(c, s->ms);
    call(w->L, check_script, &k);
    print_result(&k);
    for (size_t at = 0; at < out.n;) {
        const ssize_t n = write(fd, out.s + at, out.n - at);
        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    _exit(0); /* nothing of the parent's is closed or flushed */
}

/* ---- in the server ---------------------------------------------------------------------------- */

pid_t dc_warm_check(dc_warm *w, const dc_warm_script *s, int *fd)
{
    int ends[2];
    const pid_t server = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        confine(server, s);
        be_child(w, s, ends[1]);
    }
    close(ends[1]);
    *fd = ends[0];
    if (child < 0)
        close(ends[0]);
    return child;
}
