/*
 * The life of a world: its thread, which alone calls the engine; the queue of exchanges; failures that are told.
 *
 * The thread performs exchanges in the order of their tickets. Where nothing is under way and all members are on one host,
 * whose shared memory needs no engine, the caller of dc_world_run performs its exchange itself: `taken` says that one is
 * being performed, whoever does it.
 */
#define _GNU_SOURCE /* sysconf, gethostname, sched_getaffinity */
#include "core/base/heap.h"
#include "core/base/spans.h"
#include "core/base/thread.h"
#include "core/world/world_impl.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS = 150,       /* looks at memory: some 50 us */
    LOOK_OUT_MS = 100, /* the idle thread, at what others tell */
    LOOK_JOB_MS = 10,  /* a caller who waits, at its job */
    SLICE_NS = 100000, /* of the thread */
    TOLD_MS = 1000,    /* a rank that has failed waits for others to hear of it, at most; */
    SAID_MS = 200      /* and to say so: a launcher may end them as soon as this one has ended */
};

typedef struct dc_item {
    struct dc_item *next;
    uint64_t ticket;
    const dc_team *team;
    dc_exchange x;
    dc_pair *pair; /* of one that is under way with others */
    uint64_t begun_ns;
    dc_spans *spans; /* who hears of it; NULL: nobody */
    dc_transfer at[];
} item;

/* ---- what a world is --------------------------------------------------------------------------------- */

int dc_world_rank(const dc_world *w)
{
    return w->rank;
}

int dc_world_size(const dc_world *w)
{
    return w->size;
}

const char *dc_world_host(const dc_world *w, int rank)
{
    return w->engine != NULL && !atomic_load(&w->shut) ? w->engine->name[rank] : w->here;
}

uint64_t dc_world_sent(const dc_world *w)
{
    return atomic_load(&w->sent);
}

void dc_world_count_sent(dc_world *w, size_t bytes)
{
    atomic_fetch_add_explicit(&w->sent, bytes, memory_order_relaxed);
}

/* False after so many milliseconds. */
static bool await_ms(dc_world *w, pthread_cond_t *c, uint64_t ms)
{
    return dc_thread_await(c, &w->lock, dc_clock_ns() + ms * 1000000);
}

/* ---- the thread -------------------------------------------------------------------------------------- */

static void end_ticket(dc_world *w, uint64_t ticket, bool ok)
{
    if (!ok && (w->failed_from == 0 || ticket < w->failed_from))
        w->failed_from = ticket;
    w->taken = false;
    if (ticket > atomic_load(&w->ended))
        atomic_store(&w->ended, ticket);
    pthread_cond_broadcast(&w->done);
}

static int64_t bytes_of(const dc_exchange *x)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < x->n; i++)
        bytes += x->at[i].outer * x->at[i].inner * (int64_t)dc_dtype_size(x->dtype);
    return bytes;
}

/* Its span, with its bytes. A label may have the line behind it: "all_reduce, train.lua:12". */
static void tell_spans(dc_spans *s, const dc_exchange *x, uint64_t begun)
{
    char text[120];
    const char *line = strstr(x->label, ", ");
    if (s == NULL || dc_spans_recording(s) == 0)
        return;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(x->label, ","), x->label);
    const dc_span_name name = {.kind = DC_SPAN_EXCHANGE,
                               .text = text,
                               .where = x->where != NULL || line == NULL ? x->where : line + 2,
                               .bytes = (double)bytes_of(x)};
    dc_spans_add(s, dc_spans_name(s, &name), 0, begun, dc_clock_ns(), bytes_of(x));
}

static void tell(const item *it, uint64_t begun)
{
    tell_spans(it->spans, &it->x, begun);
}

/* With the lock, which is not held while the exchange is performed. */
static void perform_first(dc_world *w)
{
    item *it = w->first;
    w->first = it->next;
    if (w->first == NULL)
        w->last = NULL;
    w->taken = true;
    pthread_mutex_unlock(&w->lock);
    dc_call c = dc_call_of(w, &it->x, it->team, NULL);
    const uint64_t begun = dc_clock_ns();
    if (it->x.time != NULL)
        it->x.time->begun_ns = begun;
    const bool ok = dc_call_run(&c);
    tell(it, begun);
    if (it->x.time != NULL)
        it->x.time->ended_ns = dc_clock_ns();
    if (!ok)
        dc_world_look_out(w);
    pthread_mutex_lock(&w->lock);
    end_ticket(w, it->ticket, ok);
    dc_xfree(it);
}

static bool is_pair(const item *it)
{
    return it->x.kind == DC_SEND || it->x.kind == DC_RECV;
}

/* With the lock: those at the front of the queue that may join the ones that are under way. */
static item **take_pairs(dc_world *w, item **end)
{
    while (w->first != NULL && is_pair(w->first)) {
        *end = w->first;
        end = &w->first->next;
        w->first = *end;
        *end = NULL;
    }
    if (w->first == NULL)
        w->last = NULL;
    return end;
}

/* A step of each whose turn it is. */
static bool step_pairs(dc_world *w, item *all, bool *moved)
{
    for (item *it = all; it != NULL; it = it->next) {
        dc_call c = dc_call_of(w, &it->x, it->team, NULL);
        bool turn = true;
        if (it->pair == NULL && (it->pair = dc_pair_new(&c)) == NULL)
            return dc_world_no_memory(&c);
        it->begun_ns = it->begun_ns == 0 ? dc_clock_ns() : it->begun_ns;
        for (const item *before = all; before != it && turn; before = before->next)
            turn = !dc_pair_waits_for(it->pair, before->pair);
        if (turn && !dc_pair_step(it->pair, moved))
            return false;
    }
    return true;
}

/*
 * With the lock: ends those that are done, or after a failure all; in their order, but nobody waits for a SEND that was copied.
 * Where the list ends.
 */
static item **end_pairs(dc_world *w, item **all, bool ok)
{
    bool blocked = false;
    while (*all != NULL) {
        item *it = *all;
        if (ok && (blocked || !dc_pair_done(it->pair))) {
            blocked = blocked || !it->x.copied;
            all = &it->next;
            continue;
        }
        *all = it->next;
        if (ok) {
            tell(it, it->begun_ns);
            dc_pair_free(it->pair);
        } else if (it->pair != NULL)
            dc_pair_give_up(it->pair);
        end_ticket(w, it->ticket, ok);
        dc_xfree(it);
    }
    return all;
}

static bool wait_for_pair(dc_world *w, const item *first, dc_watch *watch)
{
    dc_call c = dc_call_of(w, &first->x, first->team, NULL);
    return dc_pair_done(first->pair) || dc_watch_pause(watch, &c, first->team->rank[first->x.peer]);
}

/* SEND and RECV at the front of the queue, and those that come behind them meanwhile. */
static void perform_pairs(dc_world *w)
{
    item *all = NULL, **end = take_pairs(w, &all);
    dc_watch watch = {0};
    w->taken = true;
    while (all != NULL) {
        pthread_mutex_unlock(&w->lock);
        bool moved = false, ok = !dc_world_failed(w) && step_pairs(w, all, &moved);
        if (moved)
            watch = (dc_watch){0};
        else if (ok)
            ok = wait_for_pair(w, all, &watch);
        if (!ok)
            dc_world_look_out(w);
        pthread_mutex_lock(&w->lock);
        end = end_pairs(w, &all, ok);
        w->taken = all != NULL;
        if (all == NULL)
            return;
        end = take_pairs(w, end);
    }
}

/* A caller who waits hears of a failure anyway. With the lock: none is called after dc_world_alarm(w, NULL, NULL). */
static void sound_alarm(dc_world *w)
{
    void (*alarm)(void *) = w->alarm;
    if (alarm == NULL || w->waiting > 0 || !atomic_load(&w->failed) || w->failed_here)
        return;
    w->alarm = NULL;
    alarm(w->alarm_arg);
}

static void look_out(dc_world *w)
{
    pthread_mutex_unlock(&w->lock);
    dc_world_look_out(w);
    pthread_mutex_lock(&w->lock);
    sound_alarm(w);
}

static void serve(dc_world *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stop || w->first != NULL || w->taken) {
        if (w->first != NULL && !w->taken && is_pair(w->first))
            perform_pairs(w);
        else if (w->first != NULL && !w->taken)
            perform_first(w);
        else if (!await_ms(w, &w->wake, LOOK_OUT_MS) ||
                 (atomic_load(&w->failed) && !atomic_load(&w->told)))
            look_out(w);
    }
    pthread_mutex_unlock(&w->lock);
}

/* All ranks come to the end, none has failed. */
static bool end_together(dc_world *w)
{
    uint8_t here = 1, all;
    const dc_transfer at = {&here, &all, 1, 1};
    const dc_exchange x = {
        .dtype = DC_U8, .axes = w->all->axes, .label = "the end", .n = 1, .at = &at};
    dc_call c = dc_call_of(w, &x, w->all, NULL);
    c.head.end = 1;
    w->limit_ns = 0; /* others may have much to save */
    return w->size == 1 || dc_call_run(&c);
}

/* Numbers of processes mean something to those in the same namespace; containers may have one each. */
static uint64_t process_space(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 ? (uint64_t)s.st_ino : 0;
}

/*
 * Who waits spins only where all ranks have a processor; the thread, which waits while its rank computes, only where each has
 * two.
 */
static void choose_spins(dc_world *w, int nlocal)
{
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t mine;
    const bool alone = sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) < 2;
    w->spins = nlocal <= all ? SPINS : 0;
    w->thread_spins = 2 * nlocal <= all && !alone ? SPINS : 0;
}

static bool open_engine(dc_world *w)
{
    dc_engine *e = w->engine;
    if (!e->ops->open(e))
        return false;
    w->rank = e->rank;
    w->size = e->size;
    snprintf(w->here, sizeof w->here, "%s", e->name[e->rank]);
    dc_board *b = dc_board_new(e->host, e->size, e->rank);
    choose_spins(w, b != NULL ? b->n : 1);
    void *segment = b != NULL && b->n > 1 ? e->ops->segment(e, dc_board_bytes(b->n)) : NULL;
    if (segment != NULL) {
        dc_board_attach(b, segment, (int)getpid(), process_space());
        w->board = b;
        return true;
    }
    const bool fine = b != NULL && b->n == 1;
    if (b == NULL)
        snprintf(e->why, sizeof e->why, "out of memory");
    dc_board_free(b);
    return fine;
}

static void tell_opener(dc_world *w, bool open)
{
    pthread_mutex_lock(&w->lock);
    w->state = open ? DC_WORLD_OPEN : DC_WORLD_SHUT;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
}

/*
 * Where the thread shares its core with one that computes, it does little, and at once when it wakes: a time slice as short as
 * can be says so to Linux (6.12). It does not matter whether that is known.
 */
static void ask_for_little(void)
{
#if defined(SYS_sched_setattr)
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice_ns, deadline, period;
    } attr = {.size = sizeof attr, .nice = getpriority(PRIO_PROCESS, 0), .slice_ns = SLICE_NS};
    if (sched_getscheduler(0) == SCHED_OTHER)
        (void)syscall(SYS_sched_setattr, 0, &attr, 0);
#endif
}

static void *run_thread(void *arg)
{
    dc_world *w = arg;
    dc_engine *e = w->engine;
    ask_for_little();
    if (!open_engine(w)) {
        snprintf(w->failure, sizeof w->failure, "%s", e->why);
        e->ops->close(e, false);
        tell_opener(w, false);
        return NULL;
    }
    tell_opener(w, true);
    serve(w);
    w->clean = !dc_world_failed(w) && end_together(w);
    dc_world_look_out(w);
    pthread_mutex_lock(&w->failing); /* dc_world_sentence looks at both */
    if (w->board != NULL)
        atomic_store(&dc_board_rank_of(w->board, w->board->me)->state, DC_BOARD_CLOSED);
    dc_board_free(w->board);
    w->board = NULL;
    atomic_store(&w->shut, true);
    pthread_mutex_unlock(&w->failing);
    e->ops->close(e, w->clean);
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static dc_world *new_world(dc_job *j)
{
    dc_world *w = dc_xalloc(sizeof *w);
    w->size = 1;
    w->limit_ns = (uint64_t)dc_max_i64(0, dc_min_i64(j->opt->rank_seconds, 1 << 30)) * 1000000000u;
    if (gethostname(w->here, sizeof w->here - 1) != 0)
        strcpy(w->here, "localhost");
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->failing, NULL);
    dc_thread_condition(&w->wake);
    dc_thread_condition(&w->done);
    return w;
}

static void free_world(dc_world *w)
{
    dc_board_free(w->board);
    dc_team_free(w->team);
    dc_xfree(w->scratch);
    dc_pair_free(w->kept);
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->failing);
    pthread_mutex_destroy(&w->lock);
    dc_xfree(w);
}

dc_status dc_world_alone(dc_job *j, dc_world **out)
{
    *out = new_world(j);
    return DC_OK;
}

static void release_world(void *arg)
{
    dc_world *w = arg;
    if (w->all == NULL) /* it does not come to its end with the others: they hear of it */
        dc_world_fail(w, "there is no memory for the world");
    dc_world_close(w);
}

static void release_engine(void *arg)
{
    dc_engine *e = arg;
    e->ops->close(e, false);
}

/*
 * Until the world is open or shut. The library that opens it may wait for a rank that never comes, and cannot be told to stop:
 * then the thread stays in it, with the world, and false is returned.
 */
static bool await_opening(dc_world *w, dc_job *j)
{
    const uint64_t begun = dc_clock_ns();
    dc_status ended = DC_OK;
    bool late = false;
    pthread_mutex_lock(&w->lock);
    while (w->state == DC_WORLD_OPENING && ended == DC_OK && !late) {
        if (!await_ms(w, &w->done, LOOK_JOB_MS))
            ended = dc_job_ended(j);
        late = w->limit_ns > 0 && dc_clock_ns() - begun > w->limit_ns;
    }
    const bool done = w->state != DC_WORLD_OPENING;
    pthread_mutex_unlock(&w->lock);
    if (!done && ended == DC_OK)
        dc_failf(j, DC_ERR_WORLD, NULL, "the other ranks have not begun for %.0f s",
                 (double)w->limit_ns / 1e9);
    return done;
}

dc_status dc_world_open(dc_job *j, dc_engine *e, dc_world **out)
{
    dc_job_defer(j, release_engine, e);
    dc_world *w = new_world(j);
    dc_job_keep(j, e);
    w->engine = e;
    if (!dc_thread_start(&w->thread, "deepc exchanges", 0, run_thread, w)) {
        e->ops->close(e, false);
        free_world(w);
        return dc_failf(j, DC_ERR_WORLD, NULL, "no thread for exchanges is to be had");
    }
    if (!await_opening(w, j))
        return j->err.status;
    if (w->state == DC_WORLD_SHUT) {
        pthread_join(w->thread, NULL);
        dc_failf(j, DC_ERR_WORLD, NULL, "%s", w->failure);
        free_world(w);
        return j->err.status;
    }
    dc_job_defer(j, release_world, w);
    const dc_exchange all = {.axes = {.naxis = 1, .mask = 1, .size = {w->size}}};
    DC_TRY(dc_job_settle(j, w, dc_team_of(j, w, &all, &w->all)));
    *out = w;
    return DC_OK;
}

bool dc_world_finish(dc_world *w)
{
    if (w->engine == NULL)
        return true;
    dc_world_tell_users(w);
    if (!w->joined) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        w->alarm = NULL;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        w->joined = true;
    }
    return w->clean;
}

void dc_world_close(dc_world *w)
{
    if (w == NULL)
        return;
    dc_world_finish(w);
    free_world(w);
}

/* ---- exchanges ----------------------------------------------------------------------------------------- */

dc_status dc_world_status(dc_world *w, dc_job *j)
{
    dc_world_alarm(w, NULL, NULL); /* the caller hears of it here */
    DC_TRY(dc_job_ended(j));
    return dc_failf(j, DC_ERR_WORLD, NULL, "%s", w->failure);
}

static dc_status check_exchange(dc_job *j, const dc_exchange *x, const dc_team *t)
{
    const bool pair = x->kind == DC_SEND || x->kind == DC_RECV;
    const bool combines = x->kind == DC_ALL_REDUCE || x->kind == DC_REDUCE_SCATTER;
    if (combines && dc_combine_find(x->combine, x->dtype, x->dtype) == NULL)
        return dc_failf(j, DC_ERR_DTYPE_TEXT, NULL, "%s: complex numbers have no order", x->label);
    if ((pair || x->kind == DC_BROADCAST) && (x->peer < 0 || x->peer >= t->n))
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s: there is no member %d of %d", x->label, x->peer,
                        t->n);
    if (pair && x->peer == t->me)
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s: rank %d would wait for itself", x->label,
                        t->rank[t->me]);
    return DC_OK;
}

static void copy_alone(dc_world *w, const dc_exchange *x, const dc_team *t)
{
    const dc_call c = dc_call_of(w, x, t, NULL);
    dc_row from = dc_row_from(&c, 0, 1), to = dc_row_to(&c, 0, 1);
    dc_row_copy(&to, &from, c.elements);
}

/* Behind those that are under way. */
static uint64_t enqueue(dc_world *w, item *it)
{
    pthread_mutex_lock(&w->lock);
    const uint64_t ticket = it->ticket = ++w->given;
    if (w->last != NULL)
        w->last->next = it;
    else
        w->first = it;
    w->last = it;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock); /* from here on the thread may free it */
    return ticket;
}

/* Labels and arrays of the caller are copied to `to`, which has room for them. */
static void take_copies(item *it, char *to)
{
    const size_t size = dc_dtype_size(it->x.dtype);
    for (uint32_t i = 0; i < it->x.n; i++) {
        const size_t bytes = (size_t)(it->at[i].outer * it->at[i].inner) * size;
        if (bytes > 0)
            memcpy(to, it->at[i].from, bytes);
        it->at[i].from = to;
        to += bytes;
    }
    for (int i = 0; i < 2; i++) {
        const char **text = i == 0 ? &it->x.label : &it->x.where;
        if (*text != NULL)
            *text = strcpy(to, *text);
        to += *text != NULL ? strlen(*text) + 1 : 0;
    }
}

static size_t bytes_of_copies(const dc_exchange *x)
{
    size_t bytes = strlen(x->label) + 1 + (x->where != NULL ? strlen(x->where) + 1 : 0);
    for (uint32_t i = 0; i < x->n; i++)
        bytes += (size_t)(x->at[i].outer * x->at[i].inner) * dc_dtype_size(x->dtype);
    return bytes;
}

static dc_status begin(dc_world *w, dc_job *j, const dc_exchange *x, const dc_team *t,
                       dc_ticket *out)
{
    const size_t bytes = x->n * sizeof *x->at;
    const size_t all = sizeof(item) + bytes + (x->copied ? bytes_of_copies(x) : 0);
    item *it = dc_try_alloc(all);
    if (it == NULL)
        return dc_fail_memory(j, all);
    *it = (item){.team = t, .x = *x, .spans = j->log != NULL ? j->log->spans : NULL};
    it->x.at = it->at;
    if (bytes > 0)
        memcpy(it->at, x->at, bytes);
    if (x->copied)
        take_copies(it, (char *)it->at + bytes);
    const uint64_t ticket = enqueue(w, it);
    *out = x->copied ? 0 : ticket;
    return DC_OK;
}

dc_status dc_world_begin(dc_world *w, dc_job *j, const dc_exchange *x, dc_ticket *out)
{
    const dc_team *t;
    *out = 0;
    if (w->pretends) {
        dc_world_pretend_run(x);
        return DC_OK;
    }
    DC_TRY(dc_team_of(j, w, x, &t));
    DC_TRY(check_exchange(j, x, t));
    if (t->n > 1 && w->stop)
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s: the ranks have come to their end", x->label);
    if (dc_world_failed(w))
        return dc_world_status(w, j);
    if (t->n > 1)
        return begin(w, j, x, t, out);
    copy_alone(w, x, t);
    return DC_OK;
}

bool dc_world_ended(dc_world *w, dc_ticket t)
{
    return atomic_load(&w->ended) >= t;
}

dc_status dc_world_end(dc_world *w, dc_job *j, dc_ticket t)
{
    const uint64_t begun = dc_world_ended(w, t) ? 0 : dc_span_begin(j->log);
    pthread_mutex_lock(&w->lock);
    w->waiting++;
    while (atomic_load(&w->ended) < t) {
        if (await_ms(w, &w->done, LOOK_JOB_MS) || dc_job_ended(j) == DC_OK)
            continue;
        dc_world_break(w, true, "rank %d (%s) was interrupted while it waited for others", w->rank,
                       dc_world_host(w, w->rank));
    }
    w->waiting--;
    const bool ok = t == 0 || w->failed_from == 0 || t < w->failed_from;
    pthread_mutex_unlock(&w->lock);
    dc_span_end(j->log, begun, DC_SPAN_WAIT, "wait for other ranks");
    return ok ? DC_OK : dc_world_status(w, j);
}

/* Takes the place of the thread, where nothing is under way. Its ticket, or 0. */
static uint64_t take_place(dc_world *w)
{
    uint64_t ticket = 0;
    pthread_mutex_lock(&w->lock);
    if (w->first == NULL && !w->taken && !w->stop) {
        w->taken = true;
        w->waiting++;
        ticket = ++w->given;
    }
    pthread_mutex_unlock(&w->lock);
    return ticket;
}

static dc_status run_here(dc_world *w, dc_job *j, const dc_exchange *x, const dc_team *t,
                          uint64_t ticket)
{
    dc_call c = dc_call_of(w, x, t, j);
    const uint64_t begun = dc_clock_ns();
    const bool ok = dc_call_run(&c);
    tell_spans(j->log != NULL ? j->log->spans : NULL, x, begun);
    pthread_mutex_lock(&w->lock);
    w->waiting--;
    end_ticket(w, ticket, ok);
    if (w->first != NULL || !ok || w->stop)
        pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return ok ? DC_OK : dc_world_status(w, j);
}

dc_status dc_world_run(dc_world *w, dc_job *j, const dc_exchange *x)
{
    const dc_team *t;
    dc_ticket ticket;
    if (w->pretends)
        return dc_world_begin(w, j, x, &ticket);
    DC_TRY(dc_team_of(j, w, x, &t));
    if (t->n > 1 && t->nlocal == t->n && !x->copied) {
        DC_TRY(check_exchange(j, x, t));
        const uint64_t own = take_place(w);
        if (own > 0)
            return run_here(w, j, x, t, own);
    }
    DC_TRY(dc_world_begin(w, j, x, &ticket));
    return dc_world_end(w, j, ticket);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* Do all that can be told know? */
static bool all_know(const dc_world *w)
{
    const dc_board *b = w->board;
    for (int k = 0; b != NULL && k < b->n; k++) {
        const dc_board_rank *r = dc_board_rank_of(b, k);
        if (atomic_load(&r->state) == DC_BOARD_HERE && !atomic_load(&r->knows))
            return false;
    }
    return atomic_load(&w->told);
}

/* Those that have come to their end say it then. */
static bool all_have_said(const dc_world *w)
{
    const dc_board *b = w->board;
    for (int k = 0; b != NULL && k < b->n; k++)
        if (!atomic_load(&dc_board_rank_of(b, k)->said))
            return false;
    return true;
}

static void wait_for(const dc_world *w, bool (*holds)(const dc_world *), uint64_t ms)
{
    const uint64_t until = dc_clock_ns() + ms * 1000000;
    while (!holds(w) && dc_clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

bool dc_world_say(dc_world *w, const char *text)
{
    if (w->engine == NULL || w->joined)
        return w->engine == NULL;
    dc_world_break(w, true, "rank %d (%s) failed: %s", w->rank, w->here, text);
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return w->failed_here;
}

void dc_world_fail(dc_world *w, const char *text)
{
    dc_world_say(w, text);
    if (w->engine == NULL || w->joined)
        return;
    if (w->board != NULL)
        atomic_store(&dc_board_rank_of(w->board, w->board->me)->said, true);
    wait_for(w, all_know, TOLD_MS);
    wait_for(w, all_have_said, SAID_MS);
}

void dc_world_alarm(dc_world *w, void (*alarm)(void *), void *arg)
{
    pthread_mutex_lock(&w->lock);
    w->alarm = alarm;
    w->alarm_arg = arg;
    pthread_mutex_unlock(&w->lock);
}

const char *dc_world_failure(dc_world *w)
{
    return dc_world_failed(w) && !w->failed_here ? w->failure : NULL;
}
