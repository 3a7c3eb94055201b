/*
 * Waiting for other ranks, and what may end it: the failure of one, its death, the limit of time, the job of the caller.
 *
 * Who waits looks at memory for some microseconds, gives its core away between looks for a millisecond, then sleeps longer and
 * longer. Meanwhile it looks, by the clock, at all that may have ended what it waits for.
 */
#define _DEFAULT_SOURCE /* nanosleep, kill */
#include "core/world/world_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define MS 1000000u

enum {
    PAUSES = 16,           /* between two looks, while spinning */
    LOOK_NS = 2 * MS,      /* from one look at the clock's business to the next */
    DEATHS_NS = 50 * MS,   /* at other processes */
    STOPPED_NS = 500 * MS, /* a longer time without a look does not count: the job was stopped */
    YIELD_NS = 1 * MS,     /* from then on it sleeps; */
    CROWDED_NS = MS / 10,  /* the same where there are more ranks than processors */
    MOST_SLEEP_NS = 1 * MS
};

static void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/* ---- failures ---------------------------------------------------------------------------------------- */

/* Is the text of another rank of this host there? It gets some time to be written. */
static bool host_has_failed(const dc_board *b)
{
    _Atomic uint32_t *failed = dc_board_failed(b);
    for (int i = 0; i < 10000 && atomic_load(failed) == 1; i++)
        sched_yield();
    return atomic_load(failed) == 2;
}

/* Writes it for all ranks of this host, unless one has before; then takes those words. True: it is the first. */
static bool publish(dc_world *w, char *text)
{
    uint32_t none = 0;
    dc_board *b = w->board;
    if (b == NULL)
        return true;
    if (atomic_compare_exchange_strong(dc_board_failed(b), &none, 1)) {
        memcpy(dc_board_failure(b), text, DC_TEXT_BYTES);
        atomic_store(dc_board_failed(b), 2);
        return true;
    }
    if (host_has_failed(b)) {
        memcpy(text, dc_board_failure(b), DC_TEXT_BYTES);
        text[DC_TEXT_BYTES - 1] = '\0';
    }
    return false;
}

static void set_failure(dc_world *w, bool here, bool everywhere, const char *text)
{
    pthread_mutex_lock(&w->failing);
    if (!atomic_load(&w->failed)) {
        char words[DC_TEXT_BYTES] = "";
        snprintf(words, sizeof words, "%.*s", (int)sizeof words - 1, text); /* another rank's */
        const bool first = publish(w, words);
        w->failed_here = here && first;
        w->origin = everywhere && first;
        memcpy(w->failure, words, sizeof words);
        atomic_store(&w->failed, true);
    }
    if (w->board != NULL)
        atomic_store(&dc_board_rank_of(w->board, w->board->me)->knows, true);
    pthread_mutex_unlock(&w->failing);
}

bool dc_world_break(dc_world *w, bool here, const char *fmt, ...)
{
    char text[DC_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    set_failure(w, here, true, text);
    return false;
}

bool dc_world_engine_failed(dc_call *c, const char *what)
{
    return dc_world_break(c->w, false, "rank %d (%s): %s, %s: %s", c->w->rank,
                          dc_world_host(c->w, c->w->rank), dc_call_label(c), what,
                          c->w->engine->why);
}

bool dc_world_no_memory(dc_call *c)
{
    return dc_world_break(c->w, false, "rank %d (%s) has no memory for %s", c->w->rank,
                          dc_world_host(c->w, c->w->rank), dc_call_label(c));
}

bool dc_world_failed(dc_world *w)
{
    if (atomic_load_explicit(&w->failed, memory_order_acquire))
        return true;
    if (w->board == NULL || atomic_load(dc_board_failed(w->board)) == 0 ||
        !host_has_failed(w->board))
        return false;
    set_failure(w, false, false, dc_board_failure(w->board));
    return true;
}

/* A notice for each rank on another host; those that take none within a second are left alone. */
static void tell_others(dc_world *w)
{
    dc_engine *e = w->engine;
    const uint64_t until = dc_clock_ns() + 1000 * (uint64_t)MS;
    for (int r = 0; r < w->size; r++) {
        dc_request q;
        bool done = e->host[r] == e->host[w->rank];
        if (done || !e->ops->send(e, r, DC_TAG_NOTICE, w->failure, sizeof w->failure, &q))
            continue;
        while (e->ops->test(e, &q, &done) && !done && dc_clock_ns() < until)
            sched_yield();
        if (!done)
            e->ops->cancel(e, &q);
    }
}

void dc_world_look_out(dc_world *w)
{
    char text[DC_TEXT_BYTES] = ""; /* a message may be shorter */
    if (w->board == NULL || w->board->n < w->size) {
        if (!dc_world_failed(w) &&
            w->engine->ops->poll(w->engine, DC_TAG_NOTICE, text, sizeof text)) {
            text[sizeof text - 1] = '\0';
            set_failure(w, false, false, text);
        }
        if (dc_world_failed(w) && w->origin && !atomic_load(&w->told))
            tell_others(w);
    }
    if (dc_world_failed(w))
        atomic_store(&w->told, true);
}

/* ---- deaths ------------------------------------------------------------------------------------------ */

/* The letter behind the last bracket of /proc/PID/stat: the name before it may have any. */
static bool is_zombie(int pid)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && (strncmp(end, ") Z", 3) == 0 || strncmp(end, ") X", 3) == 0);
}

bool dc_world_process_gone(int pid)
{
    return (kill(pid, 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

/* A rank of this host whose process has ended in this state, without a word; -1 none. */
static int find_dead(const dc_world *w, dc_board_state state)
{
    const dc_board *b = w->board;
    const dc_board_rank *mine = b != NULL ? dc_board_rank_of(b, b->me) : NULL;
    for (int k = 0; b != NULL && k < b->n; k++) {
        const dc_board_rank *r = dc_board_rank_of(b, k);
        if (atomic_load(&r->state) == state && k != b->me && r->space == mine->space &&
            w->engine->ops->gone(w->engine, b->rank[k], r->pid))
            return b->rank[k];
    }
    return -1;
}

/* Has it come to its end, or ended without having been here? Of processes the latter is not known. */
static bool has_closed(const dc_world *w, int rank)
{
    const dc_board *b = w->board;
    if (b == NULL || b->local[rank] < 0)
        return false;
    const uint32_t state = atomic_load(&dc_board_rank_of(b, b->local[rank])->state);
    return state == DC_BOARD_CLOSED ||
           (state == DC_BOARD_ABSENT && w->engine->ops->gone(w->engine, rank, 0));
}

/* The rank that is waited for, if it has; of all other members the first that has. -1: none. */
static int find_closed(const dc_call *c, int awaited)
{
    if (awaited >= 0)
        return has_closed(c->w, awaited) ? awaited : -1;
    for (int m = 0; m < c->team->n; m++)
        if (m != c->team->me && has_closed(c->w, c->team->rank[m]))
            return c->team->rank[m];
    return -1;
}

/*
 * Is a rank of this host no longer there? All are looked at: the one that is waited for may wait for another itself. It has to
 * be so twice: what it did before it ended is there then.
 */
static bool all_there(dc_watch *p, dc_call *c, int awaited)
{
    dc_world *w = c->w;
    const int dead = find_dead(w, DC_BOARD_HERE), asked = find_dead(w, DC_BOARD_ASKED);
    const int closed = dead < 0 ? find_closed(c, awaited) : -1;
    const bool missed = p->missed;
    p->missed = dead >= 0 || asked >= 0 || closed >= 0;
    if (dead >= 0 && missed)
        return dc_world_break(w, false, "rank %d (%s) was killed or has crashed; %s waited for it",
                              dead, dc_world_host(w, dead), dc_call_label(c));
    if (asked >= 0 && missed)
        return dc_world_break(w, false, "rank %d (%s) was told to end (SIGTERM); %s waited for it",
                              asked, dc_world_host(w, asked), dc_call_label(c));
    if (closed >= 0 && missed)
        return dc_world_break(w, false, "rank %d (%s) has ended, and rank %d waits for it in %s",
                              closed, dc_world_host(w, closed), w->rank, dc_call_label(c));
    return true;
}

/* "rank 1 (host)", as failures begin that are of this rank. */
static int name_rank(const dc_world *w, char *out, size_t size)
{
    return snprintf(out, size, "rank %d (%s)", w->rank, w->here);
}

bool dc_world_sentence(dc_world *w, bool asked, char *out, size_t size)
{
    char me[300], text[DC_TEXT_BYTES] = "";
    int dead = -1;
    pthread_mutex_lock(&w->failing);
    if (atomic_load(&w->failed))
        memcpy(text, w->failure, sizeof text);
    else if (w->board != NULL && host_has_failed(w->board))
        memcpy(text, dc_board_failure(w->board), sizeof text);
    else if (asked && (dead = find_dead(w, DC_BOARD_HERE)) >= 0)
        snprintf(text, sizeof text, "rank %d (%s) was killed or has crashed", dead,
                 dc_world_host(w, dead));
    if (asked && w->board != NULL)
        atomic_store(&dc_board_rank_of(w->board, w->board->me)->state, DC_BOARD_ASKED);
    pthread_mutex_unlock(&w->failing);
    const int n = name_rank(w, me, sizeof me);
    if (strncmp(text, me, (size_t)n) == 0)
        snprintf(out, size, "%s", text);
    else
        snprintf(out, size, "%s: ended because %s", me, text);
    return text[0] != '\0';
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static bool look_round(dc_watch *p, dc_call *c, int rank, uint64_t now)
{
    dc_world *w = c->w;
    p->look_ns = now + LOOK_NS;
    p->waited_ns += dc_min_i64((int64_t)(now - p->seen_ns), STOPPED_NS);
    p->seen_ns = now;
    if (c->job == NULL && !c->beside)
        dc_world_look_out(w);
    if (dc_world_failed(w))
        return false;
    if (now >= p->deaths_ns) {
        if (!all_there(p, c, rank))
            return false;
        p->deaths_ns = now + (p->missed ? LOOK_NS : DEATHS_NS);
    }
    if (w->limit_ns > 0 && p->waited_ns >= w->limit_ns && rank < 0)
        return dc_world_break(w, false, "others have not answered rank %d (%s) for %.0f s in %s",
                              w->rank, w->here, (double)w->limit_ns / 1e9, dc_call_label(c));
    if (w->limit_ns > 0 && p->waited_ns >= w->limit_ns)
        return dc_world_break(w, false, "rank %d (%s) has not answered for %.0f s in %s", rank,
                              dc_world_host(w, rank), (double)w->limit_ns / 1e9, dc_call_label(c));
    if (c->job != NULL && dc_job_ended(c->job) != DC_OK)
        return dc_world_break(w, true, "rank %d (%s) was interrupted in %s", w->rank,
                              dc_world_host(w, w->rank), dc_call_label(c));
    return true;
}

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(ns < MOST_SLEEP_NS ? ns : MOST_SLEEP_NS)}, NULL);
}

bool dc_watch_pause(dc_watch *p, dc_call *c, int rank)
{
    const uint32_t spins = c->job != NULL || c->beside ? c->w->spins : c->w->thread_spins;
    if (p->rounds++ < spins) {
        for (int i = 0; i < PAUSES; i++)
            relax();
        return true;
    }
    const uint64_t now = dc_clock_ns();
    if (p->begun_ns == 0) {
        p->begun_ns = now;
        p->look_ns = now;
        p->seen_ns = now;
        p->deaths_ns = now + DEATHS_NS / 2;
    }
    if (now >= p->look_ns && !look_round(p, c, rank, now))
        return false;
    if (now - p->begun_ns < (spins > 0 ? YIELD_NS : CROWDED_NS))
        sched_yield();
    else
        sleep_ns((now - p->begun_ns) / 16);
    return true;
}

bool dc_watch_word(dc_call *c, const _Atomic uint64_t *word, uint64_t least, int rank)
{
    dc_watch p = {0};
    while (atomic_load_explicit(word, memory_order_acquire) < least)
        if (!dc_watch_pause(&p, c, rank))
            return false;
    return true;
}
