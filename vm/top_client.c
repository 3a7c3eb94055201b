#define _GNU_SOURCE /* dprintf, poll */
#include "vm/top_client.h"

#include "core/base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SILENT_MS = 100,
    ANSWER_MS = 2000, /* a monitor answers within a quarter of a second */
    LARGEST = 4 << 20 /* bytes of an answer */
};

/* ---- finding --------------------------------------------------------------------------------- */

typedef struct found {
    int process, number;
    char file[DC_MONITOR_FILE];
} found;

typedef struct finding {
    int process; /* wanted; 0: all */
    uint32_t n;
    found at[DC_TOP_MOST];
} finding;

static void note(void *ctx, const char *name, int process, int number)
{
    finding *f = ctx;
    if ((f->process != 0 && f->process != process) || f->n == DC_TOP_MOST)
        return;
    found *x = &f->at[f->n++];
    *x = (found){.process = process, .number = number};
    snprintf(x->file, sizeof x->file, "%s", name);
}

static int by_process(const void *x, const void *y)
{
    const found *a = x, *b = y;
    return a->process != b->process ? (a->process < b->process ? -1 : 1) : a->number - b->number;
}

/* A connection that fails leaves why. */
static void add(dc_top_clients *all, const dc_monitor_folder *f, const char *file, uid_t user,
                bool tidy, char *why)
{
    char reason[DC_MONITOR_WHY];
    const int fd = all->n < DC_TOP_MOST ? dc_monitor_connect(f, file, user, tidy, reason) : -1;
    if (fd >= 0)
        all->at[all->n++] = (dc_top_client){.fd = fd};
    else if (all->n < DC_TOP_MOST)
        snprintf(why, DC_MONITOR_WHY, "%s", reason);
}

/* Whose processes are looked for. For root: of who owns the folder that is said, or this process; else of this user. */
static uid_t owner_of(const char *setting, int process)
{
    struct stat s;
    char path[40];
    snprintf(path, sizeof path, "/proc/%d", process);
    if (geteuid() != 0 || (setting[0] != '/' && process == 0))
        return geteuid();
    return stat(setting[0] == '/' ? setting : path, &s) == 0 ? s.st_uid : geteuid();
}

static bool find(dc_top_clients *all, const char *setting, uid_t user, int process,
                 char why[DC_MONITOR_WHY])
{
    dc_monitor_folder folder;
    char bad[DC_MONITOR_WHY];
    int which = 0;
    why[0] = '\0';
    while (dc_monitor_folder_open(setting, user, false, &which, &folder, bad)) {
        finding f = {.process = process};
        dc_monitor_folder_each(&folder, note, &f);
        qsort(f.at, f.n, sizeof *f.at, by_process);
        for (uint32_t i = 0; i < f.n; i++)
            add(all, &folder, f.at[i].file, user, true, why);
        dc_monitor_folder_close(&folder);
    }
    if (bad[0] != '\0')
        snprintf(why, DC_MONITOR_WHY, "%s", bad);
    return all->n > 0;
}

bool dc_top_find(dc_top_clients *all, const char *setting, int process, char why[DC_MONITOR_WHY])
{
    return find(all, setting, owner_of(setting, process), process, why);
}

/* The folder that a path leads to, from the root on; or why not. */
static bool resolve(char where[DC_MONITOR_PATH], char why[DC_MONITOR_WHY])
{
    char *whole = realpath(where, NULL);
    const bool fits = whole != NULL && strlen(whole) < DC_MONITOR_PATH;
    if (fits)
        strcpy(where, whole);
    else
        snprintf(why, DC_MONITOR_WHY, "%s: %s", where,
                 whole != NULL     ? "the path is too long"
                 : errno == ENOENT ? "there is no such folder"
                                   : strerror(errno));
    free(whole);
    return fits;
}

bool dc_top_connect(dc_top_clients *all, const char *path, char why[DC_MONITOR_WHY])
{
    char where[DC_MONITOR_PATH];
    struct stat s;
    dc_monitor_folder folder;
    int which = 0;
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof where) {
        snprintf(why, DC_MONITOR_WHY, "%s: no path of a socket in a folder", path);
        return false;
    }
    snprintf(where, sizeof where, "%.*s", (int)(slash - path), path);
    if (!resolve(where, why))
        return false;
    const uid_t user = geteuid() == 0 && stat(where, &s) == 0 ? s.st_uid : geteuid();
    if (!dc_monitor_folder_open(where, user, false, &which, &folder, why)) {
        if (why[0] == '\0')
            snprintf(why, DC_MONITOR_WHY, "%s: there is no such folder", where);
        return false;
    }
    add(all, &folder, slash + 1, user, false, why);
    dc_monitor_folder_close(&folder);
    return all->n > 0;
}

static void end(dc_top_client *c, const char *why)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    if (why != NULL)
        snprintf(c->why, sizeof c->why, "%s", why);
}

static void drop(dc_top_client *c)
{
    end(c, NULL);
    free(c->text);
    free(c->now);
    free(c->last);
    *c = (dc_top_client){.fd = -1};
}

void dc_top_close(dc_top_clients *all)
{
    for (uint32_t i = 0; i < all->n; i++)
        drop(&all->at[i]);
    all->n = 0;
}

bool dc_top_drop_silent(dc_top_clients *all, char why[DC_MONITOR_WHY])
{
    uint32_t n = 0;
    snprintf(why, DC_MONITOR_WHY, "out of memory");
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->at[i].now != NULL) {
            all->at[n++] = all->at[i];
            continue;
        }
        if (all->at[i].why[0] != '\0')
            snprintf(why, DC_MONITOR_WHY, "%s", all->at[i].why);
        drop(&all->at[i]);
    }
    all->n = n;
    return n > 0;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static bool is_same_run(const dc_top_snapshot *a, const dc_top_snapshot *b)
{
    return a->ranks > 1 && a->ranks == b->ranks && a->pid != b->pid && a->parent == b->parent &&
           strcmp(a->host, b->host) == 0;
}

static int by_rank(const void *x, const void *y)
{
    const dc_top_client *a = x, *b = y;
    const double p = a->now != NULL ? a->now->rank : 0, q = b->now != NULL ? b->now->rank : 0;
    return p < q ? -1 : p > q;
}

bool dc_top_find_launched(dc_top_clients *all, const char *setting, double process)
{
    char why[DC_MONITOR_WHY];
    uint32_t n = 0;
    if (!find(all, setting, owner_of(setting, (int)process), 0, why))
        return false;
    dc_top_ask(all, false);
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_top_snapshot *s = all->at[i].now;
        if (s != NULL && s->ranks > 1 && s->parent == process)
            all->at[n++] = all->at[i];
        else
            drop(&all->at[i]);
    }
    all->n = n;
    return n > 0;
}

void dc_top_add_ranks(dc_top_clients *all, const char *setting)
{
    dc_top_clients others = {0};
    char why[DC_MONITOR_WHY];
    const dc_top_snapshot *first = all->at[0].now;
    if (first->ranks <= 1)
        return;
    if (all->n < first->ranks && find(&others, setting, owner_of(setting, (int)first->pid), 0, why))
        dc_top_ask(&others, false);
    for (uint32_t i = 0; i < others.n; i++) {
        dc_top_client *c = &others.at[i];
        if (c->now == NULL || all->n == DC_TOP_MOST || !is_same_run(first, c->now))
            continue;
        all->at[all->n++] = *c;
        *c = (dc_top_client){.fd = -1};
    }
    dc_top_close(&others);
    qsort(all->at, all->n, sizeof *all->at, by_rank);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool send_request(dc_top_client *c, bool kernels)
{
    const char *request = kernels ? "snapshot kernels\n" : "snapshot\n";
    c->n = 0;
    return send(c->fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request);
}

static bool make_room(dc_top_client *c)
{
    if (c->n < c->room)
        return true;
    const size_t room = c->room == 0 ? 1 << 16 : 2 * c->room;
    char *text = room <= LARGEST ? realloc(c->text, room) : NULL;
    if (text == NULL)
        return false;
    c->text = text;
    c->room = room;
    return true;
}

/* A whole line has come. */
static bool has_answered(const dc_top_client *c)
{
    return c->n > 0 && c->text[c->n - 1] == '\n';
}

static void receive(dc_top_client *c)
{
    if (!make_room(c)) {
        end(c, "the answer is too long");
        return;
    }
    const ssize_t n = recv(c->fd, c->text + c->n, c->room - c->n, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        end(c, "it has ended");
    else
        c->n += (size_t)n;
}

/* Those that have been silent before do not hold the others up. */
static uint64_t patience(const dc_top_clients *all)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i].fd >= 0 && !all->at[i].silent)
            return ANSWER_MS * UINT64_C(1000000);
    return SILENT_MS * UINT64_C(1000000);
}

static void wait_for_all(dc_top_clients *all)
{
    struct pollfd p[DC_TOP_MOST];
    const uint64_t until = dc_clock_ns() + patience(all);
    for (uint64_t now; (now = dc_clock_ns()) < until;) {
        uint32_t open = 0, owing = 0;
        for (uint32_t i = 0; i < all->n; i++) {
            const bool waits = all->at[i].fd >= 0 && !has_answered(&all->at[i]);
            p[i] = (struct pollfd){.fd = waits ? all->at[i].fd : -1, .events = POLLIN};
            owing += waits;
            open += waits && !all->at[i].silent;
        }
        if (owing == 0)
            return;
        if (open == 0 && patience(all) > SILENT_MS * UINT64_C(1000000))
            return;
        poll(p, all->n, (int)((until - now) / 1000000 + 1));
        for (uint32_t i = 0; i < all->n; i++)
            if (p[i].fd >= 0 && p[i].revents != 0)
                receive(&all->at[i]);
    }
}

/* When its counters were taken, on the clock of the process. */
static double time_of(const dc_top_snapshot *s)
{
    return s->age < 0 ? -1 : s->open - s->age;
}

/* `text` stays as it is, for --json. */
static void read_answer(dc_top_client *c)
{
    char why[96];
    char *copy = malloc(c->n);
    dc_top_snapshot *s = malloc(sizeof *s);
    if (copy == NULL || s == NULL) {
        free(copy);
        free(s);
        return;
    }
    memcpy(copy, c->text, c->n);
    const bool fine = dc_top_read(s, copy, c->n - 1, why);
    free(copy);
    if (!fine || s->error[0] != '\0') {
        end(c, fine ? s->error : why);
        free(s);
        return;
    }
    if (c->now != NULL && time_of(s) > time_of(c->now)) {
        free(c->last);
        c->last = c->now;
    } else
        free(c->now);
    c->now = s;
}

/* One that owes an answer is not asked again before that has come. */
static void ask_all(dc_top_clients *all, bool kernels)
{
    for (uint32_t i = 0; i < all->n; i++) {
        dc_top_client *c = &all->at[i];
        if (c->fd >= 0 && !c->silent && !send_request(c, kernels))
            receive(c); /* what it said when it let go of us */
    }
    wait_for_all(all);
    for (uint32_t i = 0; i < all->n; i++) {
        dc_top_client *c = &all->at[i];
        c->silent = c->fd >= 0 && !has_answered(c);
        if (c->silent)
            snprintf(c->why, sizeof c->why, "it does not answer; perhaps it has been stopped");
    }
}

void dc_top_keep(dc_top_clients *all, bool kernels)
{
    ask_all(all, kernels);
}

bool dc_top_ask(dc_top_clients *all, bool kernels)
{
    bool lives = false;
    ask_all(all, kernels);
    for (uint32_t i = 0; i < all->n; i++) {
        dc_top_client *c = &all->at[i];
        if (has_answered(c))
            read_answer(c);
        lives = lives || c->fd >= 0;
    }
    return lives;
}
