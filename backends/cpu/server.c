#define _GNU_SOURCE /* dladdr, environ, closefrom */
#include "backends/cpu/server.h"

#include "backends/cpu/toolchain.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPARE = 4, MOST_LOST = 4, LOOK_MS = 20, MAX_ANSWER = 256 << 20 };

/* A process and the socket that leads to it. */
typedef struct server {
    pid_t pid;
    int socket;
} server;

struct dc_servers {
    char program[PATH_MAX];
    dc_llvm_conf conf;
    char level[8];
    pid_t owner; /* the process that starts them */
    pthread_mutex_t lock;
    server spare[SPARE]; /* not in use now */
    int nspare, lost;
};

/* ---- the program ----------------------------------------------------------------------------- */

/* FOLDER/UP/deepc, where FOLDER is that of `file`. */
static bool is_beside(const char *file, const char *up, char *path)
{
    char at[PATH_MAX];
    const char *slash = strrchr(file, '/');
    if (slash == NULL)
        return false;
    const int n = snprintf(at, sizeof at, "%.*s/%sdeepc", (int)(slash - file), file, up);
    return n < (int)sizeof at && realpath(at, path) != NULL && access(path, X_OK) == 0;
}

/* As `cmake --install` puts them: bin/deepc; lib, lib/ARCH or lib/lua/5.4 with the library. */
static bool find_program(const char *wanted, char *path)
{
    static const char *const up[] = {"", "../bin/", "../../bin/", "../../../bin/"};
    static const char here = 0;
    char self[PATH_MAX];
    Dl_info where;
    if (wanted[0] != '\0')
        return dc_toolchain_find_program(wanted, path, PATH_MAX);
    if (dladdr(&here, &where) != 0 && where.dli_fname != NULL)
        for (size_t i = 0; i < DC_COUNTOF(up); i++)
            if (is_beside(where.dli_fname, up[i], path))
                return true;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    return is_beside(self, "", path);
}

dc_status dc_servers_open(dc_job *j, const dc_llvm_conf *conf, const char *wanted, dc_servers **out)
{
    char path[PATH_MAX];
    if (!find_program(wanted, path))
        return dc_failf(
            j, DC_ERR_DEVICE, "cpu",
            wanted[0] != '\0'
                ? "there is no program '%.200s' to compile with (DEEPC_COMPILER)"
                : "the program deepc%.0s, which compiles in a process of its own, is not "
                  "beside the library (DEEPC_COMPILER names it)",
            wanted);
    dc_servers *s = dc_xalloc(sizeof *s);
    memcpy(s->program, path, sizeof path);
    s->conf = *conf;
    snprintf(s->level, sizeof s->level, "%d", conf->level);
    s->owner = getpid();
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return DC_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void add_files(posix_spawn_file_actions_t *files, int socket)
{
    posix_spawn_file_actions_adddup2(files, socket, 0); /* first: it may be 1 or 2 */
    posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(files,
                                             3); /* those of a host that does not mark its own */
#endif
}

/* An errno, or 0. What adding actions lacks memory for makes the server useless, which is noticed. */
static int spawn(const dc_servers *s, int socket, pid_t *pid)
{
    const char *const arg[] = {s->program,
                               "--compile-server",
                               s->conf.path != NULL ? s->conf.path : "",
                               s->conf.triple,
                               s->conf.cpu != NULL ? s->conf.cpu : "",
                               s->level,
                               NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    posix_spawnattr_init(&attr); /* takes no memory */
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &usual);
    posix_spawnattr_setpgroup(&attr,
                              0); /* Ctrl-C is for the host; ended with what it has started */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    add_files(&files, socket);
    /* exec's arguments are not const, and not written */
    const int e =
        posix_spawn(pid, s->program, &files, &attr, (char **)(uintptr_t)(const void *)arg, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return e;
}

static int start_server(const dc_servers *s, server *out)
{
    int end[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
        return errno;
    const int e = spawn(s, end[1], &out->pid);
    close(end[1]);
    if (e != 0)
        close(end[0]);
    out->socket = end[0];
    return e;
}

static pid_t wait_for(pid_t pid, int *status, int how)
{
    pid_t who;
    do
        who = waitpid(pid, status, how);
    while (who < 0 && errno == EINTR);
    return who;
}

/*
 * Ends it within `grace` ms, if it does not end by itself, and reaps it. What waitpid tells; -1 where the host
 * has asked first, and the number may be another process's.
 */
static int end_server(const dc_servers *s, server it, int grace)
{
    static const struct timespec a_little = {.tv_nsec = 1000000};
    int status = -1;
    close(it.socket);
    if (getpid() != s->owner)
        return -1;
    pid_t who = wait_for(it.pid, &status, WNOHANG);
    for (; who == 0 && grace > 0; grace--) {
        nanosleep(&a_little, NULL);
        who = wait_for(it.pid, &status, WNOHANG);
    }
    if (who == 0) {
        kill(-it.pid, SIGKILL);
        kill(it.pid, SIGKILL);
        who = wait_for(it.pid, &status, 0);
    }
    return who == it.pid ? status : -1;
}

void dc_servers_close(dc_servers *s)
{
    if (s == NULL)
        return;
    while (s->nspare > 0)
        end_server(s, s->spare[--s->nspare], 0);
    pthread_mutex_destroy(&s->lock);
    dc_xfree(s);
}

/* One that has ended, or says something unasked, is none to talk to. */
static bool is_quiet(server it)
{
    struct pollfd p = {.fd = it.socket, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

static bool take_spare(dc_servers *s, server *out)
{
    pthread_mutex_lock(&s->lock);
    const bool found = s->nspare > 0;
    if (found)
        *out = s->spare[--s->nspare];
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void give_back(dc_servers *s, server it)
{
    pthread_mutex_lock(&s->lock);
    const bool room = s->nspare < SPARE;
    if (room)
        s->spare[s->nspare++] = it;
    pthread_mutex_unlock(&s->lock);
    if (!room)
        end_server(s, it, 0);
}

/* Counts one more lost, or none: how many there are. */
static int count_lost(dc_servers *s, int more)
{
    pthread_mutex_lock(&s->lock);
    const int n = s->lost += more;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static dc_status take_server(dc_servers *s, dc_job *j, server *out)
{
    while (take_spare(s, out)) {
        if (is_quiet(*out))
            return DC_OK;
        end_server(s, *out, 0);
    }
    if (count_lost(s, 0) >= MOST_LOST)
        return dc_failf(j, DC_ERR_BUILD, "cpu",
                        "the compiler's process was lost %d times and is not started again",
                        MOST_LOST);
    const int e = start_server(s, out);
    if (e == 0)
        return DC_OK;
    count_lost(s, 1);
    return dc_failf(j, DC_ERR_DEVICE, "cpu",
                    "the compiler's process '%.200s' cannot be started: %s", s->program,
                    strerror(e));
}

/* ---- messages -------------------------------------------------------------------------------- */

typedef enum ending { DONE, GONE, LATE, CANCELLED, NONSENSE } ending;

/* One exchange. It is on the job's cleanup list while it lives. */
typedef struct talk {
    dc_servers *all;
    dc_job *j;
    server with;
    uint64_t until; /* of dc_clock_ns; 0: any time */
} talk;

static void hang_up(void *what)
{
    talk *t = what;
    end_server(t->all, t->with, 0);
}

static ending wait_until(const talk *t, short events)
{
    for (;;) {
        struct pollfd p = {.fd = t->with.socket, .events = events};
        if (dc_job_cancelled(t->j))
            return CANCELLED;
        if (t->until != 0 && dc_clock_ns() > t->until)
            return LATE;
        const int n = poll(&p, 1, LOOK_MS);
        if (n > 0)
            return DONE;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return GONE;
    }
}

static bool is_over(ssize_t moved)
{
    return moved == 0 || (moved < 0 && errno != EINTR && errno != EAGAIN);
}

static ending send_all(const talk *t, const void *from, size_t n)
{
    const char *at = from;
    while (n > 0) {
        const ending how = wait_until(t, POLLOUT);
        if (how != DONE)
            return how;
        const ssize_t sent = send(t->with.socket, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (is_over(sent))
            return GONE;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return DONE;
}

static ending receive(const talk *t, void *to, size_t n)
{
    char *at = to;
    while (n > 0) {
        const ending how = wait_until(t, POLLIN);
        if (how != DONE)
            return how;
        const ssize_t got = recv(t->with.socket, at, n, MSG_DONTWAIT);
        if (is_over(got))
            return GONE;
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return DONE;
}

static ending ask(talk *t, const char *text, dc_server_head *head)
{
    const int64_t seconds = t->j->opt->compile_seconds;
    const dc_server_head request = {.magic = DC_SERVER_MAGIC,
                                    .kind = DC_SERVER_TEXT,
                                    .seconds = (uint32_t)seconds,
                                    .bytes = strlen(text)};
    t->until = seconds > 0 ? dc_clock_ns() + (uint64_t)seconds * 1000000000 : 0;
    ending how = send_all(t, &request, sizeof request);
    if (how == DONE)
        how = send_all(t, text, request.bytes);
    if (how == DONE)
        how = receive(t, head, sizeof *head);
    if (how == DONE && (head->magic != DC_SERVER_MAGIC || head->kind < DC_SERVER_OBJECT ||
                        head->kind > DC_SERVER_DEVICE || head->bytes > MAX_ANSWER))
        how = NONSENSE;
    return how;
}

/* ---- one compilation ------------------------------------------------------------------------- */

/* `status`: what waitpid told. */
static dc_status tell_lost(dc_job *j, ending how, int status)
{
    char end[60] = "is gone";
    if (how == CANCELLED)
        return dc_failf(j, DC_ERR_REENTER, NULL, "no longer wanted");
    if (how == LATE)
        return dc_failf(j, DC_ERR_BUILD, "cpu",
                        "the compiler's process did not answer within %lld s and was ended "
                        "(DEEPC_COMPILE_SECONDS)",
                        (long long)j->opt->compile_seconds);
    if (how == NONSENSE)
        return dc_failf(j, DC_ERR_BUILD, "cpu",
                        "the compiler's process gave an answer that is none and was ended");
    if (status != -1 && WIFSIGNALED(status))
        snprintf(end, sizeof end, "was ended by signal %d", WTERMSIG(status));
    else if (status != -1)
        snprintf(end, sizeof end, "ended with status %d", WEXITSTATUS(status));
    return dc_failf(j, DC_ERR_BUILD, "cpu", "the compiler's process %s at a kernel", end);
}

static dc_status lose(talk *t, ending how)
{
    enum { GRACE_MS = 200 }; /* an end of file is seen before the process has ended */
    dc_job_keep(t->j, t);
    if (how != CANCELLED)
        count_lost(t->all, 1);
    return tell_lost(t->j, how, end_server(t->all, t->with, how == GONE ? GRACE_MS : 0));
}

dc_status dc_servers_compile(dc_servers *s, dc_job *j, const char *text, const void **object,
                             size_t *bytes)
{
    dc_server_head head;
    talk *t = DC_NEW(&j->scratch, talk);
    t->all = s;
    t->j = j;
    DC_TRY(take_server(s, j, &t->with));
    dc_job_defer(j, hang_up, t);
    ending how = ask(t, text, &head);
    char *answer = NULL;
    if (how == DONE) {
        answer = dc_arena_alloc(&j->scratch, head.bytes + 1);
        answer[head.bytes] = '\0';
        how = receive(t, answer, head.bytes);
    }
    if (how != DONE)
        return lose(t, how);
    dc_job_keep(j, t);
    give_back(s, t->with);
    *object = answer;
    *bytes = head.bytes;
    if (head.kind == DC_SERVER_OBJECT)
        return DC_OK;
    return dc_failf(j, head.kind == DC_SERVER_DEVICE ? DC_ERR_DEVICE : DC_ERR_BUILD, "cpu", "%s",
                    answer);
}
