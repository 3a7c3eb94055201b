#define _GNU_SOURCE /* accept4, poll */
#include "vm/monitor.h"

#include "backends/cpu/pool.h"
#include "backends/mpi/mpi.h"
#include "core/base/heap.h"
#include "core/base/path.h"
#include "core/base/thread.h"
#include "core/runtime/monitor.h"
#include "core/world/threads.h"
#include "vm/monitor_folder.h"
#include "vm/monitor_text.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENTS = 8,
    REQUEST = 64,      /* bytes of a line */
    ACCEPTS = 64,      /* connections taken in a second, the useless ones included */
    BUFFER = 16 << 10, /* bytes that the system keeps of an answer for a client */
    STACK = 256 << 10,
    LOOK_MS = 5,        /* while a copy is waited for */
    COPY_MS = 250,      /* a copy that has not come by then is not waited for */
    BETWEEN_MS = 50,    /* two answers to a client */
    PATIENCE_MS = 2000, /* with a client that does not read, or has begun a request */
    IDLE_MS = 60000,    /* with one that asks nothing */
    WATCHED_MS = 2000   /* since the last request */
};

typedef struct client {
    int fd; /* -1: none */
    char line[REQUEST];
    size_t n;
    bool asked;      /* a request waits for its copy, */
    uint64_t number; /* which comes after so many */
    uint64_t since_ns,
        next_ns; /* the last thing that happened; when the next request is looked at */
    bool ends;   /* with what is to be written */
    dc_text out;
    size_t written;
} client;

typedef struct server {
    dc_monitor *m;
    dc_monitor_folder folder;
    dc_monitor_process process;
    int listener, wake;
    pthread_t thread;
    dc_opts opt;
    dc_job job;           /* of the thread: memory for what is written */
    dc_monitor_data copy; /* that is being written */
    client client[CLIENTS];
    int accepted; /* in the second that began then */
    uint64_t second_ns;
    uint64_t watched_ns, timed_ns; /* the last request; with kernels. 0: none, or it is long ago */
} server;

static uint64_t ms(uint64_t n)
{
    return n * 1000000u;
}

/* ---- clients --------------------------------------------------------------------------------- */

static void let_go(client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    dc_text_free(&c->out);
    *c = (client){.fd = -1};
}

typedef struct writing {
    server *s;
    client *c;
    const char *error; /* NULL: a copy is written */
    uint64_t age_ns;
} writing;

static dc_status write_body(dc_job *j, void *arg)
{
    writing *w = arg;
    DC_UNUSED(j);
    if (w->error != NULL)
        dc_monitor_print_error(&w->c->out, w->error);
    else
        dc_monitor_print(&w->c->out, w->s->m, &w->s->process, &w->s->copy, w->age_ns);
    return DC_OK;
}

/* Without memory for it the client is let go. */
static void answer(server *s, client *c, const char *error, uint64_t now)
{
    writing w = {.s = s, .c = c, .error = error};
    if (error == NULL)
        dc_monitor_read(s->m, &s->copy, &w.age_ns);
    c->asked = false;
    c->ends = error != NULL;
    c->since_ns = now;
    c->next_ns = now + ms(BETWEEN_MS);
    if (dc_protect(&s->job, write_body, &w) != DC_OK)
        let_go(c);
}

/* A whole line. */
static void take_request(server *s, client *c, uint64_t now)
{
    const bool kernels = strcmp(c->line, "snapshot kernels") == 0;
    if (!kernels && strcmp(c->line, "snapshot") != 0) {
        answer(s, c, "a request is 'snapshot' or 'snapshot kernels'", now);
        return;
    }
    s->watched_ns = now;
    s->timed_ns = kernels ? now : s->timed_ns;
    c->asked = true;
    c->number = dc_monitor_ask(s->m, s->timed_ns != 0);
    c->since_ns = now;
}

/* What has been read and has no request yet. */
static void read_request(server *s, client *c, uint64_t now)
{
    char *end = memchr(c->line, '\n', c->n);
    if (end == NULL) {
        if (c->n == sizeof c->line)
            answer(s, c, "the request is too long", now);
        return;
    }
    char rest[REQUEST];
    const size_t left = c->n - (size_t)(end + 1 - c->line);
    *end = '\0';
    if (memchr(c->line, '\0', (size_t)(end - c->line)) != NULL) /* else a part would be compared */
        c->line[0] = '\0';
    memcpy(rest, end + 1, left);
    take_request(s, c, now);
    memcpy(c->line, rest, left);
    c->n = c->fd >= 0 ? left : 0;
}

static void listen_to(client *c, uint64_t now)
{
    const ssize_t n = recv(c->fd, c->line + c->n, sizeof c->line - c->n, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        let_go(c);
        return;
    }
    if (c->n == 0)
        c->since_ns = now;
    c->n += (size_t)n;
}

static void speak_to(client *c, uint64_t now)
{
    const ssize_t n =
        send(c->fd, c->out.s + c->written, c->out.n - c->written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        let_go(c);
        return;
    }
    c->since_ns = now;
    c->written += (size_t)n;
    if (c->written < c->out.n)
        return;
    dc_text_free(&c->out);
    c->written = 0;
    if (c->ends)
        let_go(c);
}

static bool speaks(const client *c)
{
    return c->written < c->out.n;
}

/* Is it to be heard now? One request at a time, and not too often. */
static bool hears(const client *c, uint64_t now)
{
    return c->fd >= 0 && !c->asked && !speaks(c) && now >= c->next_ns;
}

static uint64_t patience_of(const client *c)
{
    return ms(speaks(c) || c->n > 0 ? PATIENCE_MS : IDLE_MS);
}

/* What has to be done for it without a word from outside. */
static void look_after(server *s, client *c, uint64_t now)
{
    if (c->fd < 0)
        return;
    if (c->asked && (dc_monitor_number(s->m) != c->number || now >= c->since_ns + ms(COPY_MS)))
        answer(s, c, NULL, now);
    if (hears(c, now) && c->n > 0)
        read_request(s, c, now);
    if (c->fd >= 0 && !c->asked && now >= c->since_ns + patience_of(c))
        let_go(c);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_welcome(int fd)
{
    uid_t user;
    pid_t process;
    return dc_monitor_peer(fd, &user, &process) && (user == geteuid() || user == 0);
}

/* One that has no place is told so, if it can be without waiting. */
static void accept_one(server *s, uint64_t now)
{
    static const char full[] =
        "{\"error\": \"others watch it already, as many as there may be\"}\n";
    const int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int room = BUFFER;
    int at = 0;
    s->accepted++;
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    while (at < CLIENTS && s->client[at].fd >= 0)
        at++;
    if (at < CLIENTS && is_welcome(fd)) {
        s->client[at] = (client){.fd = fd, .since_ns = now};
        return;
    }
    if (at == CLIENTS)
        (void)!send(fd, full, sizeof full - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When something has to be done without a word from outside. */
static uint64_t next_time(const server *s, uint64_t now)
{
    uint64_t when = UINT64_MAX;
    for (int i = 0; i < CLIENTS; i++) {
        const client *c = &s->client[i];
        if (c->fd < 0)
            continue;
        when = sooner(when, c->asked ? now + ms(LOOK_MS) : c->since_ns + patience_of(c));
        if (!c->asked && !speaks(c) && now < c->next_ns)
            when = sooner(when, c->next_ns);
    }
    if (s->watched_ns != 0)
        when = sooner(when, s->watched_ns + ms(WATCHED_MS));
    if (s->timed_ns != 0)
        when = sooner(when, s->timed_ns + ms(WATCHED_MS));
    if (s->accepted >= ACCEPTS)
        when = sooner(when, s->second_ns + ms(1000));
    return when;
}

/* Those who have not asked for a while watch no more. */
static void look_round(server *s, uint64_t now)
{
    if (now >= s->second_ns + ms(1000)) {
        s->second_ns = now;
        s->accepted = 0;
    }
    for (int i = 0; i < CLIENTS; i++)
        look_after(s, &s->client[i], now);
    const bool watched = s->watched_ns != 0 && now < s->watched_ns + ms(WATCHED_MS);
    const bool timed = s->timed_ns != 0 && now < s->timed_ns + ms(WATCHED_MS);
    if (s->timed_ns != 0 && !timed && watched)
        dc_monitor_ask(s->m, false);
    if (s->watched_ns != 0 && !watched)
        dc_monitor_rest(s->m);
    s->watched_ns = watched ? s->watched_ns : 0;
    s->timed_ns = timed ? s->timed_ns : 0;
}

static int wait_ms(const server *s, uint64_t now)
{
    const uint64_t when = next_time(s, now);
    if (when == UINT64_MAX)
        return -1;
    return when <= now ? 0 : (int)sooner((when - now) / 1000000 + 1, IDLE_MS);
}

static void hear(server *s, struct pollfd *p, uint64_t now)
{
    if (p[1].revents != 0)
        accept_one(s, now);
    for (int i = 0; i < CLIENTS; i++) {
        client *c = &s->client[i];
        if (c->fd < 0 || c->fd != p[2 + i].fd || p[2 + i].revents == 0)
            continue;
        if (speaks(c))
            speak_to(c, now);
        else if (hears(c, now))
            listen_to(c, now);
        else
            let_go(c); /* it is gone, and waits for an answer */
    }
}

static void *serve(void *arg)
{
    server *s = arg;
    struct pollfd p[2 + CLIENTS];
    for (uint64_t now = dc_clock_ns();; now = dc_clock_ns()) {
        look_round(s, now);
        p[0] = (struct pollfd){.fd = s->wake, .events = POLLIN};
        p[1] = (struct pollfd){.fd = s->accepted < ACCEPTS ? s->listener : -1, .events = POLLIN};
        for (int i = 0; i < CLIENTS; i++) {
            const client *c = &s->client[i];
            const short events = speaks(c) ? POLLOUT : hears(c, now) ? POLLIN : 0;
            p[2 + i] = (struct pollfd){.fd = c->fd, .events = events};
        }
        if (poll(p, 2 + CLIENTS, wait_ms(s, now)) <= 0)
            continue;
        if (p[0].revents != 0)
            return NULL;
        hear(s, p, dc_clock_ns());
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

/* As the launcher or the host says: the world is opened later, if at all. */
static void place(dc_monitor *m, const dc_rt *rt)
{
    int rank = rt->launched, ranks = 1;
    if (rt->ranks != NULL)
        ranks = dc_threads_size(rt->ranks);
    else if (dc_mpi_launcher(&rt->opt) == NULL || !dc_mpi_place(&rank, &ranks))
        rank = 0, ranks = 1;
    m->live.rank = m->shown.rank = rank;
    m->live.ranks = m->shown.ranks = ranks;
}

static void describe(server *s, const dc_rt *rt)
{
    dc_monitor_process *p = &s->process;
    place(s->m, rt);
    p->pid = (int)getpid();
    p->parent = (int)getppid();
    p->threads = rt->opt.threads > 0 ? (int)rt->opt.threads : (int)dc_cpu_pool_cores();
    snprintf(p->device, sizeof p->device, "%s", rt->interpret ? "eval" : rt->device_name);
    if (gethostname(p->host, sizeof p->host - 1) != 0)
        p->host[0] = '\0';
    dc_monitor_command(p->command, sizeof p->command);
    snprintf(s->m->path, sizeof s->m->path, "%s/%s", s->folder.path, p->file);
}

static bool listen_somewhere(server *s, const char *setting, char *why)
{
    int which = 0;
    while (dc_monitor_folder_open(setting, geteuid(), true, &which, &s->folder, why)) {
        s->listener = dc_monitor_listen(&s->folder, s->process.file, why);
        if (s->listener >= 0)
            return true;
        dc_monitor_folder_close(&s->folder);
    }
    return false;
}

static void stop_listening(server *s)
{
    dc_monitor_unlink(&s->folder, s->process.file);
    close(s->listener);
    dc_monitor_folder_close(&s->folder);
}

static bool start(server *s, dc_rt *rt, char *why)
{
    if (!listen_somewhere(s, rt->opt.monitor, why))
        return false;
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    describe(s, rt);
    dc_job_init(&s->job, &s->opt, NULL);
    if (s->wake >= 0 && dc_thread_start(&s->thread, "deepc monitor", STACK, serve, s))
        return true;
    snprintf(why, DC_MONITOR_WHY, "%s", s->wake < 0 ? strerror(errno) : "no thread can be started");
    dc_job_fini(&s->job);
    if (s->wake >= 0)
        close(s->wake);
    stop_listening(s);
    return false;
}

dc_status dc_monitor_open(dc_rt *rt, dc_job *j)
{
    char why[DC_MONITOR_WHY];
    if (!dc_opts_files(&rt->opt) || rt->folders != NULL)
        return dc_path_fail(j, DC_ERR_ALLOW, "a monitor", "%s", "sockets may not be opened here");
    if (rt->monitor != NULL)
        return DC_OK;
    server *s = dc_try_alloc(sizeof *s);
    dc_monitor *m = s != NULL ? dc_monitor_new(rt) : NULL;
    if (m == NULL) {
        dc_xfree(s);
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    }
    m->server = s;
    s->m = m;
    s->opt = rt->opt;
    for (int i = 0; i < CLIENTS; i++)
        s->client[i].fd = -1;
    if (start(s, rt, why)) {
        if (rt->world != NULL)
            dc_monitor_join(rt);
        return DC_OK;
    }
    dc_monitor_free(rt);
    dc_xfree(s);
    return dc_failf(j, DC_ERR_FILE_TEXT, NULL, "%s", why);
}

void dc_monitor_close(dc_rt *rt)
{
    server *s = rt->monitor != NULL ? rt->monitor->server : NULL;
    const uint64_t one = 1;
    if (s == NULL ||
        dc_rt_forked(rt)) /* a child has no such thread, and the socket is its parent's */
        return;
    (void)!write(s->wake, &one, sizeof one);
    pthread_join(s->thread, NULL);
    stop_listening(s); /* the thread polls its descriptors, whose numbers others could get */
    for (int i = 0; i < CLIENTS; i++)
        let_go(&s->client[i]);
    close(s->wake);
    dc_job_fini(&s->job);
    dc_monitor_free(rt);
    dc_xfree(s);
}
