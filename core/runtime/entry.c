/* Entries of the host and their deadlines (core/runtime/entry.h). */
#define _POSIX_C_SOURCE 200809L
#include "core/runtime/entry.h"

#include "core/base/thread.h"

#include <pthread.h>
#include <time.h>

enum { NONE = 0, FIRED = 1 }; /* values of `due` that are no time */

#define NEVER     UINT64_MAX
#define SECOND_NS 1000000000u

struct dc_timer {
    _Atomic uint64_t due;   /* NONE, FIRED or a time of dc_clock_ns */
    _Atomic uint64_t looks; /* when the thread looks next, unless it is woken */
    _Atomic uint64_t
        usual;        /* how far the last deadline was away: the thread stays awake that long */
    atomic_bool used; /* a deadline was set since the last look */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool stop; /* guarded by lock */
    dc_rt *rt;
};

/* ---- requests -------------------------------------------------------------------------------- */

void dc_entry_ask(dc_rt *rt, int why)
{
    if (why != 0) {
        atomic_fetch_or(&rt->why, why);
        atomic_store(&rt->insist, true);
    }
    atomic_store(&rt->interrupt, true);
    if (rt->stop_lua != NULL)
        rt->stop_lua(rt->stop_lua_ctx);
}

/* What others ask for meanwhile is raised again. */
void dc_entry_take_back(dc_rt *rt, int why)
{
    const int had = atomic_fetch_and(&rt->why, ~why);
    if ((had & why) != 0)
        atomic_fetch_add(&rt->taken_back, 1);
    if ((had & why) == 0 || (had & ~why) != 0)
        return;
    atomic_store(&rt->insist, false);
    atomic_store(&rt->interrupt, false);
    if (atomic_load(&rt->why) != 0)
        dc_entry_ask(rt, atomic_load(&rt->why));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* When to look next; raises the flags of a deadline that has passed. With the lock. */
static uint64_t look(struct dc_timer *t)
{
    const uint64_t now = dc_clock_ns();
    uint64_t due = atomic_load(&t->due);
    if (due > FIRED && due <= now && atomic_compare_exchange_strong(&t->due, &due, FIRED))
        dc_entry_ask(t->rt, DC_WHY_LATE);
    if (due > now)
        return due;
    return atomic_exchange(&t->used, false) ? now + atomic_load(&t->usual) : NEVER;
}

static void *wait_for_deadlines(void *arg)
{
    struct dc_timer *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        const uint64_t when = look(t);
        atomic_store(&t->looks, when);
        const uint64_t due = atomic_load(&t->due); /* set before `looks` was: no wake-up comes */
        if (due <= FIRED || due >= when)
            dc_thread_await(&t->wake, &t->lock, when);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void free_timer(void *what)
{
    struct dc_timer *t = what;
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    dc_xfree(t);
}

static dc_status make_timer(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    struct dc_timer *t = dc_xalloc(sizeof *t);
    *t = (struct dc_timer){.rt = rt, .looks = NEVER};
    pthread_mutex_init(&t->lock, NULL);
    dc_thread_condition(&t->wake);
    if (!dc_thread_start(&t->thread, "deepc deadlines", 0, wait_for_deadlines, t)) {
        free_timer(t);
        return dc_failf(j, DC_ERR_DEVICE, NULL,
                        "no thread can be started that waits for deadlines");
    }
    rt->timer = t;
    return DC_OK;
}

void dc_entry_close(dc_rt *rt)
{
    struct dc_timer *t = rt->timer;
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    free_timer(t);
    rt->timer = NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* `due` has been set: the thread is to look by then. */
static void look_by(struct dc_timer *t, uint64_t due)
{
    atomic_store(&t->used, true);
    if (due >= atomic_load(&t->looks))
        return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

static dc_status set_deadline(dc_rt *rt, dc_entry *e, int64_t ms)
{
    const int64_t most = INT64_MAX / 4 / 1000000;
    if (rt->timer == NULL)
        DC_TRY(dc_protect(&rt->job, make_timer, rt));
    struct dc_timer *t = rt->timer;
    const uint64_t span = (uint64_t)(ms < most ? ms : most) * 1000000u;
    const uint64_t due = dc_clock_ns() + span;
    e->before = atomic_load(&t->due);
    if (e->before == FIRED || (e->before != NONE && e->before <= due) ||
        !atomic_compare_exchange_strong(&t->due, &e->before, due))
        return DC_OK; /* the one round it comes first, or has come */
    e->due = due;
    e->ms = rt->late_ms;
    rt->late_ms = ms;
    atomic_store(&t->usual, span < SECOND_NS ? span : SECOND_NS);
    look_by(t, due);
    return DC_OK;
}

/* Its own deadline is the timer's again what it was before. */
static void end_deadline(dc_rt *rt, dc_entry *e)
{
    struct dc_timer *t = rt->timer;
    if (atomic_exchange(&t->due, e->before) == FIRED) {
        pthread_mutex_lock(
            &t->lock); /* the thread has raised the flags when it gives the lock back */
        pthread_mutex_unlock(&t->lock);
        dc_entry_take_back(rt, DC_WHY_LATE);
    }
    rt->late_ms = e->ms;
    if (e->before > FIRED)
        look_by(t, e->before);
}

dc_status dc_entry_begin(dc_rt *rt, dc_entry *e, int64_t ms)
{
    bool first;
    if (!dc_job_enter(&rt->job, &first))
        return DC_E_STATE;
    *e = (dc_entry){.outer = rt->entry, .first = first};
    const dc_status status = ms > 0 ? set_deadline(rt, e, ms) : DC_OK;
    if (status == DC_OK)
        rt->entry = e;
    else
        dc_job_leave(&rt->job, first);
    return status;
}

void dc_entry_end(dc_rt *rt, dc_entry *e)
{
    if (e->due != 0)
        end_deadline(rt, e);
    rt->entry = e->outer;
    if (rt->entry == NULL)
        dc_entry_take_back(rt, DC_WHY_HOST);
    dc_job_leave(&rt->job, e->first);
}
