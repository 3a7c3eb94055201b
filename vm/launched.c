/*
 * Lines with the number of a rank, and the ends of ranks (vm/launched.h).
 *
 * stdout and stderr become streams over a function that writes whole lines, each with its number in front, by one write().
 * What a child process writes goes past them.
 *
 * SIGTERM, with which launchers end the ranks that are left, wakes a thread: that may look for the reason. Handler and thread
 * find what they are about in a variable of the file: a process has one handler.
 */
#define _GNU_SOURCE /* fopencookie */
#include "vm/launched.h"

#include "backends/mpi/mpi.h"
#include "core/base/thread.h"

#include <lauxlib.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    INTERRUPTED = 128 + SIGINT,
    TERMINATED = 128 + SIGTERM,
    ROOM = 1 << 16,      /* of whole lines that are written at once; longer ones are cut */
    LAST_WORDS_MS = 200, /* of a thread that is saying something */
    SENTENCE = 700
};

typedef struct stream {
    int file;
    bool inside; /* of a line */
    size_t n;
    char text[ROOM];
} stream;

static struct {
    bool launched; /* with others */
    bool numbered; /* lines are */
    int rank;
    const char *launcher;
    char number[16]; /* "[3] " */
    stream out, err;
    pthread_mutex_t lock; /* of rt */
    dc_rt *rt;
    sem_t wake;
    atomic_bool said; /* why it ends */
    int status;       /* to exit with; 0 none */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- lines ----------------------------------------------------------------------------------------- */

static bool write_all(int file, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(file, text, n);
        if (done < 0 && errno != EINTR)
            return false;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* The first n bytes of what is kept. */
static bool put_out(stream *s, size_t n)
{
    const bool fine = write_all(s->file, s->text, n);
    memmove(s->text, s->text + n, s->n - n);
    s->n -= n;
    return fine;
}

static bool keep(stream *s, const char *text, size_t n)
{
    bool fine = true;
    while (n > 0) {
        const size_t room = sizeof s->text - s->n, part = n < room ? n : room;
        memcpy(s->text + s->n, text, part);
        s->n += part;
        text += part;
        n -= part;
        if (s->n == sizeof s->text)
            fine = put_out(s, s->n) && fine;
    }
    return fine;
}

/* A line that is drawn again and again (dc.progress) is not held back until it ends. */
static ssize_t write_lines(void *arg, const char *text, size_t size)
{
    stream *s = arg;
    const bool drawn = size > 0 && text[0] == '\r';
    bool fine = true;
    size_t whole = s->inside ? 0 : s->n;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end != NULL ? (size_t)(end - text) + 1 - at : size - at;
        if (!s->inside && !drawn)
            fine = keep(s, self.number, strlen(self.number)) && fine;
        fine = keep(s, text + at, n) && fine;
        s->inside = end == NULL;
        whole = end != NULL || drawn ? s->n : whole;
        at += n;
    }
    whole = whole < s->n ? whole : s->n;
    fine = put_out(s, whole) && fine;
    return fine ? (ssize_t)size : 0;
}

static FILE *open_stream(stream *s, FILE *f, int file, int mode)
{
    const cookie_io_functions_t io = {.write = write_lines};
    fflush(f);
    s->file = file;
    FILE *numbered = fopencookie(s, "w", io);
    if (numbered == NULL)
        return f;
    setvbuf(numbered, NULL, mode, BUFSIZ);
    return numbered;
}

static void end_line(stream *s)
{
    if (s->inside)
        keep(s, "\n", 1);
    put_out(s, s->n);
    s->inside = false;
}

static void end_lines(void)
{
    fflush(stdout);
    fflush(stderr);
    end_line(&self.out);
    end_line(&self.err);
}

static void number_lines(void)
{
    snprintf(self.number, sizeof self.number, "[%d] ", self.rank);
    self.numbered = true;
    stdout = open_stream(&self.out, stdout, STDOUT_FILENO, _IOLBF);
    stderr = open_stream(&self.err, stderr, STDERR_FILENO, _IONBF);
    atexit(end_lines);
}

/* ---- the launcher ends this rank ----------------------------------------------------------------------- */

/* On the thread, past the streams: another thread may be in them. */
static void say_last(const char *text)
{
    char line[SENTENCE + 40];
    const int n = snprintf(line, sizeof line, "%sdeepc: %s\n", self.number, text);
    if (!atomic_exchange(&self.said, true))
        write_all(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    else
        nanosleep(&(struct timespec){.tv_nsec = LAST_WORDS_MS * 1000000L}, NULL);
}

/* Of an interruption, which all ranks get, rank 0 alone speaks. */
static bool concerns(const char *text)
{
    return self.rank == 0 || strstr(text, "interrupted") == NULL;
}

static void end_process(void)
{
    char text[SENTENCE], host[65] = "";
    pthread_mutex_lock(&self.lock);
    dc_world *w = self.rt != NULL ? self.rt->world : NULL;
    const bool known = w != NULL && dc_world_sentence(w, true, text, sizeof text);
    pthread_mutex_unlock(&self.lock);
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "localhost");
    if (!known)
        snprintf(text, sizeof text, "rank %d (%s): ended by %s (SIGTERM)", self.rank, host,
                 self.launcher);
    if (known ? concerns(text) : self.rank == 0)
        say_last(text);
    _exit(TERMINATED);
}

static void *await_signal(void *arg)
{
    while (sem_wait(&self.wake) != 0 && errno == EINTR)
        ;
    end_process();
    return arg;
}

static void on_terminate(int sig)
{
    DC_UNUSED(sig);
    sem_post(&self.wake);
}

static void catch_terminate(void)
{
    struct sigaction action = {.sa_handler = on_terminate, .sa_flags = SA_RESTART};
    pthread_t thread;
    sigemptyset(&action.sa_mask);
    if (sem_init(&self.wake, 0, 0) != 0 || !dc_thread_start(&thread, 0, await_signal, NULL))
        return;
    pthread_detach(thread);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- life -------------------------------------------------------------------------------------------- */

void dc_launched_begin(dc_rt *rt)
{
    int size = 0;
    self.launcher = dc_mpi_launcher(&rt->opt);
    self.launched = self.launcher != NULL && dc_mpi_place(&self.rank, &size) && size != 1;
    if (!self.launched)
        return;
    self.rt = rt;
    if (strcmp(rt->opt.rank_prefix, "off") != 0)
        number_lines();
    catch_terminate();
}

void dc_launched_leave(void)
{
    pthread_mutex_lock(&self.lock);
    self.rt = NULL;
    pthread_mutex_unlock(&self.lock);
}

static void say(const char *text)
{
    if (!atomic_exchange(&self.said, true))
        fprintf(stderr, "deepc: %s\n", text);
}

static void say_reason(dc_world *w)
{
    char text[SENTENCE];
    if (dc_world_sentence(w, false, text, sizeof text) && concerns(text))
        say(text);
    atomic_store(&self.said, true);
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

static bool report_interrupted(dc_world *w, const char *line)
{
    char text[SENTENCE];
    self.status = INTERRUPTED;
    snprintf(text, sizeof text, "rank %d: %s", self.rank,
             strstr(line, "rank ") == NULL ? line : "interrupted"); /* by way of another rank */
    if (self.rank == 0)
        say(text);
    atomic_store(&self.said, true);
    if (w != NULL)
        dc_world_fail(w, line);
    return true;
}

bool dc_launched_report(dc_rt *rt, const char *text, bool interrupted)
{
    char line[300];
    dc_world *w = rt != NULL ? rt->world : NULL;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    if (interrupted && self.launched)
        return report_interrupted(w, line);
    if (w == NULL || dc_world_size(w) == 1)
        return false;
    self.status = 1;
    dc_world_say(w, line);
    const char *failure = dc_world_failure(w);
    if (failure != NULL && says_no_more(w, failure, text, line))
        say_reason(w);
    else
        say(text);
    dc_world_fail(w, line);
    return true;
}

int dc_launched_finish(dc_rt *rt, int status)
{
    char text[40];
    dc_world *w = rt != NULL ? rt->world : NULL;
    if (self.status != 0 || w == NULL || dc_world_size(w) == 1)
        return self.status != 0 ? self.status : status;
    if (status != 0) {
        snprintf(text, sizeof text, "it ended with status %d", status);
        dc_world_fail(w, text);
        return status;
    }
    if (dc_world_finish(w))
        return 0;
    say_reason(w);
    return self.status = 1;
}

/* ---- os.exit ------------------------------------------------------------------------------------------- */

/* Upvalue: the function that was there. */
static int l_exit(lua_State *L)
{
    dc_rt *rt = self.rt;
    const bool number = lua_isinteger(L, 1) != 0;
    if (number || lua_isboolean(L, 1) || lua_isnoneornil(L, 1)) {
        const int asked = number                  ? (int)lua_tointeger(L, 1)
                          : lua_isnoneornil(L, 1) ? 0
                                                  : !lua_toboolean(L, 1);
        const bool close = lua_toboolean(L, 2) != 0;
        lua_settop(L, 0);
        lua_pushinteger(L, rt == NULL || dc_rt_forked(rt) ? asked : dc_launched_finish(rt, asked));
        lua_pushboolean(L, close);
    }
    dc_launched_leave();
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

void dc_launched_guard_exit(lua_State *L)
{
    if (!self.launched)
        return;
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, l_exit, 1);
    lua_setfield(L, -2, "exit");
    lua_pop(L, 1);
}
