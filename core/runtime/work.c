/*
 * Tasks and the threads that run them (core/runtime/work.h).
 *
 * One mutex guards the list and the states; a body runs outside it. The list is changed by the
 * context's thread only, so this thread may walk it without the mutex where states do not matter.
 * Nothing that can unwind happens while the mutex is held.
 */
#define _POSIX_C_SOURCE 200809L /* sysconf */
#include "core/runtime/work.h"

#include "core/base/thread.h"

#include <pthread.h>
#include <unistd.h>

enum { MOST_THREADS = 16 };

struct dc_work {
    dc_log *log; /* of the context: where lines are delivered to */
    const char *name;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* threads: something is queued, or `stop` */
    pthread_cond_t done; /* the context's thread: a task is done */
    dc_task *first, *last;
    uint32_t nqueued;
    uint32_t nthread, nwaiting, most;
    pthread_t thread[MOST_THREADS];
    bool stop;
};

dc_work *dc_work_new(dc_log *log, const char *name, int threads)
{
    const int64_t cores = (int64_t)sysconf(_SC_NPROCESSORS_ONLN);
    dc_work *w = dc_xalloc(sizeof *w);
    w->log = log;
    w->name = name;
    w->most = (uint32_t)dc_max_i64(1, dc_min_i64(cores, dc_min_i64(threads, MOST_THREADS)));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    dc_thread_condition(&w->done);
    return w;
}

/* ---- running --------------------------------------------------------------------------------- */

/* State is RUNNING: the task belongs to this thread. */
static void run_task(dc_task *t)
{
    const uint64_t start = dc_clock_ns();
    dc_job_init(&t->job, t->opt, &t->log);
    t->job.cancel = &t->cancel;
    t->status = dc_protect(&t->job, t->body, t->arg);
    dc_job_fini(&t->job);
    t->ns = dc_clock_ns() - start;
}

static void set_state(dc_work *w, dc_task *t, dc_task_state state)
{
    w->nqueued += (state == DC_TASK_QUEUED) - (t->state == DC_TASK_QUEUED);
    t->state = state;
    if (state == DC_TASK_DONE)
        pthread_cond_broadcast(&w->done);
}

/* Entered and left with the lock. */
static void run_unlocked(dc_work *w, dc_task *t)
{
    set_state(w, t, DC_TASK_RUNNING);
    pthread_mutex_unlock(&w->lock);
    run_task(t);
    pthread_mutex_lock(&w->lock);
    set_state(w, t, DC_TASK_DONE);
}

static dc_task *first_queued(const dc_work *w)
{
    dc_task *t = w->first;
    while (t != NULL && t->state != DC_TASK_QUEUED)
        t = t->next;
    return t;
}

static void *serve(void *arg)
{
    dc_work *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        dc_task *t = w->nqueued > 0 ? first_queued(w) : NULL;
        if (t != NULL) {
            run_unlocked(w, t);
            continue;
        }
        w->nwaiting++;
        pthread_cond_wait(&w->wake, &w->lock);
        w->nwaiting--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Failure is no harm: tasks run where they are needed. */
static void start_thread(dc_work *w)
{
    if (dc_thread_start(&w->thread[w->nthread], w->name, DC_THREAD_DEEP_STACK, serve, w))
        w->nthread++;
}

/* ---- the list -------------------------------------------------------------------------------- */

void dc_work_add(dc_work *w, dc_task *t)
{
    DC_ASSERT(!t->listed && (t->state == DC_TASK_IDLE || t->state == DC_TASK_DONE),
              "a task of state %d is added", (int)t->state);
    t->log =
        (dc_log){.on = w->log->on, .write = dc_log_keep, .ctx = &t->said, .spans = w->log->spans};
    dc_err_clear(&t->job.err);
    atomic_store(&t->cancel, false);
    t->listed = true;
    t->next = NULL;
    pthread_mutex_lock(&w->lock);
    t->state = DC_TASK_IDLE;
    if (w->last != NULL)
        w->last->next = t;
    else
        w->first = t;
    w->last = t;
    pthread_mutex_unlock(&w->lock);
}

static void unlist(dc_work *w, dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    dc_task **at = &w->first, *before = NULL;
    while (*at != t) {
        before = *at;
        at = &(*at)->next;
    }
    *at = t->next;
    if (w->last == t)
        w->last = before;
    pthread_mutex_unlock(&w->lock);
    t->listed = false;
}

/* The log's sink may come back in here, and free the task: all is done before it hears anything. */
static void settle_task(dc_work *w, dc_task *t)
{
    dc_log_buffer said = t->said;
    t->said = (dc_log_buffer){0};
    unlist(w, t);
    t->settle(t->arg);
    dc_log_deliver(&said, w->log);
}

static dc_task_state state_of(dc_work *w, const dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    const dc_task_state state = t->state;
    pthread_mutex_unlock(&w->lock);
    return state;
}

void dc_work_settle(dc_work *w)
{
    while (w->first != NULL && state_of(w, w->first) == DC_TASK_DONE)
        settle_task(w, w->first);
}

/* ---- what the context's thread does with a task ---------------------------------------------- */

void dc_work_queue(dc_work *w, dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    set_state(w, t, DC_TASK_QUEUED);
    const bool more = w->nqueued > w->nwaiting && w->nthread < w->most;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (more)
        start_thread(w);
}

static void wait_until_done(dc_work *w, dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    if (t->state == DC_TASK_IDLE || t->state == DC_TASK_QUEUED)
        run_unlocked(w, t);
    while (t->state != DC_TASK_DONE)
        pthread_cond_wait(&w->done, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static bool is_under_way(const dc_work *w, const dc_task *t, bool patient)
{
    return t->state == DC_TASK_RUNNING ||
           (patient && t->state == DC_TASK_QUEUED && w->nthread > 0 && !w->stop);
}

bool dc_work_await(dc_work *w, dc_task *t, bool patient, const atomic_bool *stop)
{
    enum { PART_NS = 2000000 };
    bool wanted = true;
    pthread_mutex_lock(&w->lock);
    while (is_under_way(w, t, patient) && wanted) {
        dc_thread_await(&w->done, &w->lock, dc_clock_ns() + PART_NS);
        wanted = stop == NULL || !atomic_load(stop);
    }
    pthread_mutex_unlock(&w->lock);
    return wanted;
}

bool dc_work_soon(dc_work *w, const dc_task *t, uint64_t ns)
{
    const uint64_t end = dc_clock_ns() + ns;
    pthread_mutex_lock(&w->lock);
    while (is_under_way(w, t, true) && dc_clock_ns() < end)
        dc_thread_await(&w->done, &w->lock, end);
    const bool done = t->state == DC_TASK_DONE;
    pthread_mutex_unlock(&w->lock);
    return done;
}

bool dc_work_under_way(dc_work *w, const dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    const bool under_way = is_under_way(w, t, true);
    pthread_mutex_unlock(&w->lock);
    return under_way;
}

/* Those before it that are done come first. */
void dc_work_finish(dc_work *w, dc_task *t)
{
    wait_until_done(w, t);
    while (t->listed)
        settle_task(w, state_of(w, w->first) == DC_TASK_DONE ? w->first : t);
}

bool dc_work_drop(dc_work *w, dc_task *t)
{
    pthread_mutex_lock(&w->lock);
    const dc_task_state state = t->state;
    atomic_store(&t->cancel, true);
    if (state == DC_TASK_QUEUED)
        set_state(w, t, DC_TASK_IDLE);
    pthread_mutex_unlock(&w->lock);
    if (state == DC_TASK_IDLE || state == DC_TASK_QUEUED)
        unlist(w, t);
    if (state == DC_TASK_DONE)
        settle_task(w, t);
    return state == DC_TASK_IDLE || state == DC_TASK_QUEUED;
}

void dc_work_drain(dc_work *w)
{
    for (dc_task *t; (t = w->first) != NULL;) {
        if (state_of(w, t) == DC_TASK_IDLE)
            return; /* never queued: its owner has not asked for it yet */
        wait_until_done(w, t);
        settle_task(w, t);
    }
}

void dc_work_stop(dc_work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    for (dc_task *t = w->first; t != NULL; t = t->next) {
        if (t->state == DC_TASK_QUEUED)
            set_state(w, t, DC_TASK_IDLE);
        if (t->state == DC_TASK_RUNNING)
            atomic_store(&t->cancel, true);
    }
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->nthread; i++)
        pthread_join(w->thread[i], NULL);
    w->nthread = w->most = 0; /* and no new ones */
}

void dc_work_free(dc_work *w)
{
    if (w == NULL)
        return;
    dc_work_stop(w);
    while (w->first != NULL)
        settle_task(w, w->first);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->lock);
    dc_xfree(w);
}
