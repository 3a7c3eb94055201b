/*
 * Requests wait here for the one thread that calls the function. It takes as many as fit into a call, and waits for more of
 * them no longer than the first one may wait, nor where every open connection has one in the queue.
 */
#include <stdio.h>
#include <time.h>

#include "host.h"

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Under the lock: until there is a whole batch, the first request has waited long enough, or the queue closes. */
static void wait_for_batch(queue *q, int64_t most)
{
    while (q->first == NULL && !q->closing)
        pthread_cond_wait(&q->more, &q->lock);
    if (q->first == NULL)
        return;
    double end = q->first->arrived + 1e-6 * (double)q->s->wait_us;
    struct timespec until = {(time_t)end, (long)(1e9 * (end - (double)(time_t)end))};
    while (q->rows < most && !q->closing &&
           q->length < q->count->connections) /* is there one that may send another? */
        if (pthread_cond_timedwait(&q->more, &q->lock, &until) != 0)
            break;
}

/* Under the lock: the next requests that share a call. */
static size_t take(queue *q, request **list, int64_t most)
{
    size_t n = 0;
    int64_t rows = 0;
    while (q->first != NULL && n < MOST_BATCH && (n == 0 || rows + q->first->rows <= most)) {
        request *r = q->first;
        q->first = r->next;
        if (q->first == NULL)
            q->last = &q->first;
        q->length--;
        q->rows -= r->rows;
        rows += r->rows;
        list[n++] = r;
    }
    q->count->waiting = q->length;
    return n;
}

/* Those that have waited too long get no call. */
static size_t drop_late(queue *q, request **list, size_t n)
{
    size_t kept = 0;
    double now = now_seconds();
    for (size_t k = 0; k < n; k++) {
        request *r = list[k];
        if (now - r->arrived < 1e-3 * (double)q->s->timeout_ms) {
            list[kept++] = r;
            continue;
        }
        r->code = 503;
        snprintf(r->error, TEXT, "waited longer than %lld ms", (long long)q->s->timeout_ms);
        r->done(r);
    }
    return kept;
}

static void *run(void *arg)
{
    queue *q = arg;
    request *list[MOST_BATCH];
    int64_t most = q->m->rows && q->s->batch < q->m->most ? q->s->batch : q->m->most;
    for (;;) {
        pthread_mutex_lock(&q->lock);
        wait_for_batch(q, most);
        size_t n = take(q, list, most);
        pthread_mutex_unlock(&q->lock);
        if (n == 0)
            return NULL; /* closing, and nothing is left */
        n = drop_late(q, list, n);
        if (n == 0)
            continue;
        int64_t rows = 0;
        for (size_t k = 0; k < n; k++)
            rows += list[k]->rows;
        metrics_batch(q->count, rows);
        model_run(q->m, list, n);
        for (size_t k = 0; k < n; k++)
            list[k]->done(list[k]);
    }
}

bool queue_start(queue *q, model *m, metrics *count, const settings *s)
{
    pthread_condattr_t clock;
    q->m = m;
    q->count = count;
    q->s = s;
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->more, &clock);
    pthread_condattr_destroy(&clock);
    return pthread_create(&q->thread, NULL, run, q) == 0;
}

bool queue_add(queue *q, request *r)
{
    bool added = false;
    pthread_mutex_lock(&q->lock);
    if (!q->closing && q->length < q->s->queue) {
        r->next = NULL;
        r->arrived = now_seconds();
        *q->last = r;
        q->last = &r->next;
        q->length++;
        q->rows += r->rows;
        q->count->waiting = q->length;
        added = true;
        pthread_cond_signal(&q->more);
    }
    pthread_mutex_unlock(&q->lock);
    return added;
}

void queue_finish(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
}

void queue_free(queue *q)
{
    pthread_cond_destroy(&q->more);
    pthread_mutex_destroy(&q->lock);
}
