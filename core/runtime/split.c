#define _GNU_SOURCE /* sched_getaffinity */
#include "core/runtime/split.h"

#include "core/base/thread.h"

#include <pthread.h>
#include <sched.h>

enum { MOST_HELPERS = 7 };

typedef struct split split;

typedef struct helper {
    split *of;
    pthread_t thread;
    dc_job job;
    dc_log log;
    dc_log_buffer said;
} helper;

struct split {
    dc_piece piece;
    void *ctx;
    uint32_t n;
    _Atomic uint32_t next;
    atomic_bool stop;
    pthread_mutex_t lock;
    uint32_t failed; /* the smallest piece that failed, n: none */
    dc_err err;
    uint32_t nhelper;
    helper helper[MOST_HELPERS];
};

typedef struct one {
    split *s;
    uint32_t piece;
} one;

static dc_status run_one(dc_job *j, void *arg)
{
    const one *o = arg;
    return o->s->piece(j, o->s->ctx, o->piece);
}

static void note_failure(split *s, uint32_t piece, const dc_err *err)
{
    pthread_mutex_lock(&s->lock);
    if (piece < s->failed) {
        s->failed = piece;
        dc_err_copy(&s->err, err);
    }
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->stop, true);
}

static bool take_piece(split *s, uint32_t *piece)
{
    if (atomic_load(&s->stop))
        return false;
    *piece = atomic_fetch_add(&s->next, 1);
    return *piece < s->n;
}

static void *help(void *arg)
{
    helper *h = arg;
    one o = {.s = h->of};
    while (take_piece(o.s, &o.piece))
        if (dc_protect(&h->job, run_one, &o) != DC_OK)
            note_failure(o.s, o.piece, &h->job.err);
    return NULL;
}

static uint32_t allowed_cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (uint32_t)n : 1;
}

/* Without a thread the others do more. */
static void start_helpers(split *s, dc_job *j)
{
    uint32_t wanted = allowed_cores() - 1;
    if (wanted > s->n - 1)
        wanted = s->n - 1;
    if (wanted > MOST_HELPERS)
        wanted = MOST_HELPERS;
    for (; s->nhelper < wanted; s->nhelper++) {
        helper *h = &s->helper[s->nhelper];
        h->of = s;
        h->log = (dc_log){.write = dc_log_keep, .ctx = &h->said};
        if (j->log != NULL) {
            h->log.on = j->log->on;
            h->log.spans = j->log->spans;
        }
        dc_job_init(&h->job, j->opt, &h->log);
        h->job.cancel = j->cancel;
        if (!dc_thread_start(&h->thread, "deepc compile", DC_THREAD_DEEP_STACK, help, h))
            break;
    }
}

/* Without `log`, lines are lost. */
static void join_helpers(split *s, dc_log *log)
{
    dc_log nowhere = {0};
    for (uint32_t i = 0; i < s->nhelper; i++) {
        pthread_join(s->helper[i].thread, NULL);
        dc_job_fini(&s->helper[i].job);
    }
    for (uint32_t i = 0; i < s->nhelper; i++)
        dc_log_deliver(&s->helper[i].said, log != NULL ? log : &nowhere);
    s->nhelper = 0;
}

/* Also when the caller's own piece unwinds. */
static void end_split(void *arg)
{
    split *s = arg;
    atomic_store(&s->stop, true);
    join_helpers(s, NULL);
    pthread_mutex_destroy(&s->lock);
}

static void run_here(split *s, dc_job *j)
{
    uint32_t piece;
    while (take_piece(s, &piece)) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        if (s->piece(j, s->ctx, piece) != DC_OK)
            note_failure(s, piece, &j->err);
        dc_arena_rewind(&j->scratch, mark);
    }
}

dc_status dc_split(dc_job *j, uint32_t n, dc_piece piece, void *ctx)
{
    if (n == 0)
        return DC_OK;
    split *s = DC_NEW(&j->scratch, split);
    s->piece = piece;
    s->ctx = ctx;
    s->n = s->failed = n;
    pthread_mutex_init(&s->lock, NULL);
    dc_job_defer(j, end_split, s);
    start_helpers(s, j);
    run_here(s, j);
    join_helpers(s, j->log);
    dc_job_keep(j, s);
    end_split(s);
    if (s->failed == n)
        return DC_OK;
    dc_err_copy(&j->err, &s->err);
    return s->err.status;
}
