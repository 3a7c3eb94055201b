/*
 * The ends of ranks (vm/program/launched.h).
 *
 * SIGTERM, with which launchers end the ranks that are left, wakes a thread: that may look for the reason. Handler and thread
 * find what they are about in a variable of the file: a process has one handler.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/launched.h"

#include "backends/mpi/mpi.h"
#include "core/base/thread.h"
#include "vm/program/lines.h"
#include "vm/program/say.h"

#include <lauxlib.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    INTERRUPTED = 128 + SIGINT,
    TERMINATED = 128 + SIGTERM,
    LAST_WORDS_MS = 200, /* of a thread that is saying something */
    SENTENCE = 700
};

/* What a rank is: the process, or a thread of it. */
typedef struct rank {
    bool launched; /* with others */
    int number;
    const char *launcher;
    dc_lines *lines;      /* NULL: they are as they are */
    pthread_mutex_t lock; /* of rt */
    dc_rt *rt;
    atomic_bool said; /* why it ends */
    int status;       /* to exit with; 0 none */
    dc_rank_thread *thread;
} rank;

static rank process = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local rank *mine; /* of a thread that is one */
static sem_t wake;

static rank *self(void)
{
    return mine != NULL ? mine : &process;
}

/* ---- the launcher ends this rank ----------------------------------------------------------------------- */

/* On the thread, past the streams: another thread may be in them. */
static void say_last(const char *text)
{
    if (!atomic_exchange(&process.said, true))
        dc_lines_shout(process.lines, text);
    else
        nanosleep(&(struct timespec){.tv_nsec = LAST_WORDS_MS * 1000000L}, NULL);
}

/* Of an interruption, which all ranks get, rank 0 alone speaks. */
static bool concerns(const rank *r, const char *text)
{
    return r->number == 0 || strstr(text, "interrupted") == NULL;
}

static void end_process(void)
{
    char text[SENTENCE], host[65] = "";
    pthread_mutex_lock(&process.lock);
    dc_world *w = process.rt != NULL ? process.rt->world : NULL;
    const bool known = w != NULL && dc_world_sentence(w, true, text, sizeof text);
    pthread_mutex_unlock(&process.lock);
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "localhost");
    if (!known)
        snprintf(text, sizeof text, "rank %d (%s): ended by %s (SIGTERM)", process.number, host,
                 process.launcher);
    if (known ? concerns(&process, text) : process.number == 0)
        say_last(text);
    _exit(TERMINATED);
}

static void *await_signal(void *arg)
{
    while (sem_wait(&wake) != 0 && errno == EINTR)
        ;
    end_process();
    return arg;
}

static void on_terminate(int sig)
{
    DC_UNUSED(sig);
    sem_post(&wake);
}

static void catch_terminate(void)
{
    struct sigaction action = {.sa_handler = on_terminate, .sa_flags = SA_RESTART};
    pthread_t thread;
    sigemptyset(&action.sa_mask);
    if (sem_init(&wake, 0, 0) != 0 ||
        !dc_thread_start(&thread, "deepc signals", 0, await_signal, NULL))
        return;
    pthread_detach(thread);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- life -------------------------------------------------------------------------------------------- */

void dc_launched_begin(dc_rt *rt)
{
    rank *r = self();
    char number[16];
    int size = 0;
    if (r->thread == NULL) {
        r->launcher = dc_mpi_launcher(&rt->opt);
        r->launched = r->launcher != NULL && dc_mpi_place(&r->number, &size) && size != 1;
    }
    if (!r->launched)
        return;
    r->rt = rt;
    if (r->thread != NULL)
        return;
    snprintf(number, sizeof number, "[%d] ", r->number);
    if (strcmp(rt->opt.rank_prefix, "off") != 0 && (r->lines = dc_lines_new(number)) != NULL)
        dc_lines_install(r->lines, false);
    catch_terminate();
}

void dc_launched_as(dc_rank_thread *t, void (*body)(void *), void *arg)
{
    rank r = {.launched = true,
              .number = t->rank,
              .lines = t->lines,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .thread = t};
    mine = &r;
    dc_lines_use(t->lines);
    if (setjmp(t->exit) == 0)
        body(arg);
    dc_lines_use(NULL);
    mine = NULL;
}

dc_rank_thread *dc_launched_thread(void)
{
    return self()->thread;
}

void dc_launched_leave(void)
{
    rank *r = self();
    pthread_mutex_lock(&r->lock);
    r->rt = NULL;
    pthread_mutex_unlock(&r->lock);
}

static void say(rank *r, const char *text)
{
    if (!atomic_exchange(&r->said, true))
        dc_sayf(stderr, "deepc: %s\n", text);
}

static void say_reason(rank *r, dc_world *w)
{
    char text[SENTENCE];
    if (dc_world_sentence(w, false, text, sizeof text) && concerns(r, text))
        say(r, text);
    atomic_store(&r->said, true);
}

/* An error that other ranks have as well, or that says no more than that another one has failed. */
static bool says_no_more(const dc_world *w, const char *failure, const char *text, const char *line)
{
    char own[300];
    const char *of_other = strstr(failure, "failed: ");
    const int n = snprintf(own, sizeof own, "rank %d (%s)", dc_world_rank(w),
                           dc_world_host(w, dc_world_rank(w)));
    if (strncmp(failure, own, (size_t)n) == 0) /* this is the one: where it was is of interest */
        return false;
    return strstr(text, failure) != NULL || (of_other != NULL && strcmp(of_other + 8, line) == 0);
}

static dc_status open_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    return rt->open_world(rt, j, &rt->world);
}

/* A thread opens it to tell of its failure, if it has not: that waits for nobody. Of processes the launcher tells. */
static dc_world *world_of(const rank *r, dc_rt *rt, bool failed)
{
    if (rt == NULL)
        return NULL;
    if (failed && r->thread != NULL && rt->world == NULL && !rt->broken && !dc_rt_forked(rt))
        dc_protect(&rt->job, open_body, rt);
    return rt->world;
}

static bool report_interrupted(rank *r, dc_world *w, const char *line)
{
    char text[SENTENCE];
    r->status = INTERRUPTED;
    snprintf(text, sizeof text, "rank %d: %s", r->number,
             strstr(line, "rank ") == NULL ? line : "interrupted"); /* by way of another rank */
    if (r->number == 0)
        say(r, text);
    atomic_store(&r->said, true);
    if (w != NULL)
        dc_world_fail(w, line);
    return true;
}

bool dc_launched_report(dc_rt *rt, const char *text, bool interrupted)
{
    char line[300];
    rank *r = self();
    dc_world *w = world_of(r, rt, true);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    if (interrupted && r->launched)
        return report_interrupted(r, w, line);
    if (w == NULL || dc_world_size(w) == 1)
        return false;
    r->status =
        r->status != 0 ? r->status : 1; /* of the first error: another may come on the way out */
    dc_world_say(w, line);
    const char *failure = dc_world_failure(w);
    if (failure != NULL && says_no_more(w, failure, text, line))
        say_reason(r, w);
    else
        say(r, text);
    dc_world_fail(w, line);
    return true;
}

int dc_launched_finish(dc_rt *rt, int status)
{
    char text[40];
    rank *r = self();
    dc_world *w = world_of(r, rt, status != 0);
    if (r->status != 0 || w == NULL || dc_world_size(w) == 1)
        return r->status != 0 ? r->status : status;
    if (status != 0) {
        snprintf(text, sizeof text, "it ended with status %d", status);
        dc_world_fail(w, text);
        return status;
    }
    if (dc_world_finish(w))
        return 0;
    say_reason(r, w);
    return r->status = 1;
}

/* ---- functions of Lua ------------------------------------------------------------------------------------------- */

/* Of a thread: its state is closed where that is asked for, else left as it is, as the end of a process leaves it. */
DC_NORETURN static void exit_thread(lua_State *L, dc_rank_thread *t, int status, bool close)
{
    t->status = status;
    dc_launched_leave();
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    t->left = lua_tothread(L, -1);
    if (close) {
        lua_close(t->left);
        t->left = NULL;
    }
    longjmp(t->exit, 1);
}

/* Upvalue: the function that was there. */
static int l_exit(lua_State *L)
{
    rank *r = self();
    dc_rt *rt = r->rt;
    const bool number = lua_isinteger(L, 1) != 0;
    if (number || lua_isboolean(L, 1) || lua_isnoneornil(L, 1)) {
        const int asked = number                  ? (int)lua_tointeger(L, 1)
                          : lua_isnoneornil(L, 1) ? 0
                                                  : !lua_toboolean(L, 1);
        const bool close = lua_toboolean(L, 2) != 0;
        const int status = rt == NULL || dc_rt_forked(rt) ? asked : dc_launched_finish(rt, asked);
        if (r->thread != NULL)
            exit_thread(L, r->thread, status, close);
        lua_settop(L, 0);
        lua_pushinteger(L, status);
        lua_pushboolean(L, close);
    }
    dc_launched_leave();
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

/* Upvalue: file:setvbuf. What threads print is not kept in one place: lines would mix (vm/program/lines.h). */
static int l_setvbuf(lua_State *L)
{
    const luaL_Stream *file = luaL_testudata(L, 1, LUA_FILEHANDLE);
    if (file != NULL && file->closef != NULL && (file->f == stdout || file->f == stderr)) {
        lua_pushboolean(L, true);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Of the table on top. */
static void wrap(lua_State *L, const char *name, lua_CFunction by)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, by, 1);
    lua_setfield(L, -2, name);
}

void dc_launched_guard(lua_State *L)
{
    const rank *r = self();
    if (!r->launched)
        return;
    const int top = lua_gettop(L);
    lua_getglobal(L, "os");
    wrap(L, "exit", l_exit);
    if (r->thread != NULL) {
        luaL_getmetatable(L, LUA_FILEHANDLE);
        lua_getfield(L, -1, "__index");
        wrap(L, "setvbuf", l_setvbuf);
    }
    lua_settop(L, top);
}
