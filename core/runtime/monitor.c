/*
 * Counters of a monitor, and what is going on (core/runtime/monitor.h).
 *
 * What the thread is at is one word, so that a call costs two stores and no lock: kind (8 bits), row of the name (16), and when it
 * began (40), in units of 2^16 ns since the monitor was opened.
 */
#include "core/runtime/monitor.h"

#include "core/base/heap.h"
#include "core/runtime/storage.h"

#include <stdio.h>
#include <string.h>

enum { TIME_UNIT = 16, TIME_BITS = 40, ROW_BITS = 16 };

/* Metrics begin with a point for so many seconds. */
static const float FIRST_EVERY = 0.25f;

static uint64_t word_of(const dc_monitor *m, dc_doing what, uint32_t row, uint64_t now_ns)
{
    const uint64_t time = ((now_ns - m->opened_ns) >> TIME_UNIT) & ((UINT64_C(1) << TIME_BITS) - 1);
    return time | (uint64_t)row << TIME_BITS | (uint64_t)what << (TIME_BITS + ROW_BITS);
}

static dc_doing doing_of(uint64_t word)
{
    return (dc_doing)(word >> (TIME_BITS + ROW_BITS));
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from != NULL ? from : "");
}

dc_monitor *dc_monitor_new(dc_rt *rt)
{
    dc_monitor *m = dc_try_alloc(sizeof *m);
    if (m == NULL)
        return NULL;
    m->opened_ns = dc_clock_ns();
    pthread_mutex_init(&m->lock, NULL);
    m->live.ranks = m->shown.ranks = 1;
    rt->monitor = m;
    return m;
}

void dc_monitor_free(dc_rt *rt)
{
    dc_monitor *m = rt->monitor;
    if (m == NULL)
        return;
    if (m->times)
        rt->measure = false;
    rt->monitor = NULL;
    pthread_mutex_destroy(&m->lock);
    dc_xfree(m);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

uint32_t dc_monitor_row(dc_monitor *m, const char *name)
{
    char cut[DC_MONITOR_NAME];
    dc_monitor_data *d = &m->live;
    uint32_t row = 0;
    copy_text(cut, sizeof cut, name);
    while (row < d->nfunction && strcmp(m->name[row], cut) != 0)
        row++;
    if (row == DC_MONITOR_FUNCTIONS)
        return row - 1;
    if (row < d->nfunction)
        return row;
    pthread_mutex_lock(&m->lock);
    if (row + 1 < DC_MONITOR_FUNCTIONS) /* the last one stands for all that come */
        copy_text(m->name[row], sizeof m->name[row], cut);
    pthread_mutex_unlock(&m->lock);
    d->nfunction++;
    return row;
}

uint64_t dc_monitor_enter(dc_monitor *m, dc_doing what, uint32_t row, uint64_t now_ns)
{
    const uint64_t before = atomic_load_explicit(&m->now, memory_order_relaxed);
    atomic_store_explicit(&m->now, word_of(m, what, row, now_ns), memory_order_relaxed);
    return before;
}

void dc_monitor_leave(dc_monitor *m, uint64_t before, uint64_t now_ns)
{
    const bool inside = doing_of(before) != DC_DOING_SCRIPT;
    atomic_store_explicit(&m->now, inside ? before : word_of(m, DC_DOING_SCRIPT, 0, now_ns),
                          memory_order_relaxed);
}

void dc_monitor_drop(void *monitor)
{
    dc_monitor *m = monitor;
    dc_monitor_leave(m, 0, dc_clock_ns());
}

/* ---- publishing ------------------------------------------------------------------------------------------ */

/* rt->measure is of others too, as of the prompt: what they have switched on stays on. */
static void switch_times(dc_rt *rt, dc_monitor *m)
{
    const bool timed = atomic_load(&m->timed);
    if (timed && !rt->measure)
        rt->measure = m->times = true;
    else if (!timed && m->times)
        rt->measure = m->times = false;
}

static void count_memory(const dc_rt *rt, dc_monitor_data *d)
{
    d->stats = rt->stats;
    d->metadata = dc_heap_used(rt->heap);
    d->limit = rt->opt.memory > 0 ? (uint64_t)rt->opt.memory : 0;
    d->held = 0;
    for (const dc_rt *r = rt; r != NULL; r = r->next)
        d->held += r->held;
}

void dc_monitor_publish(dc_rt *rt)
{
    dc_monitor *m = rt->monitor;
    dc_monitor_data *d = &m->live;
    atomic_store(&m->wanted, false);
    switch_times(rt, m);
    count_memory(rt, d);
    d->measured = rt->measure;
    if (rt->world != NULL) {
        d->rank = dc_world_rank(rt->world);
        d->ranks = dc_world_size(rt->world);
    }
    d->nkernel = d->ncompilation = 0;
    if (rt->gather != NULL)
        rt->gather(rt);
    pthread_mutex_lock(&m->lock);
    m->shown = *d;
    m->shown_ns = dc_clock_ns();
    m->number++;
    m->world = rt->world;
    pthread_mutex_unlock(&m->lock);
}

void dc_monitor_join(dc_rt *rt)
{
    dc_monitor *m = rt->monitor;
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->world = rt->world;
    m->shown.rank = dc_world_rank(rt->world);
    m->shown.ranks = dc_world_size(rt->world);
    pthread_mutex_unlock(&m->lock);
}

/* ---- metrics --------------------------------------------------------------------------------------------- */

/* NULL: it is not there, and `add` where there is no room. */
static dc_monitor_metric *metric_of(dc_monitor *m, const char *name, bool add)
{
    char cut[DC_MONITOR_NAME];
    dc_monitor_data *d = &m->live;
    copy_text(cut, sizeof cut, name);
    for (uint32_t i = 0; i < d->nmetric; i++)
        if (strcmp(d->metric[i].name, cut) == 0)
            return &d->metric[i];
    if (!add || d->nmetric == DC_MONITOR_METRICS)
        return NULL;
    dc_monitor_metric *x = &d->metric[d->nmetric++];
    *x = (dc_monitor_metric){.every = FIRST_EVERY};
    memcpy(x->name, cut, sizeof cut);
    return x;
}

bool dc_monitor_is_due(dc_monitor *m, const char *name)
{
    const uint32_t round = atomic_load_explicit(&m->round, memory_order_relaxed);
    if (round == 0)
        return false;
    const dc_monitor_metric *x = metric_of(m, name, true);
    return x != NULL && x->round != round;
}

/* Every second point goes, so that there is room for twice the time. */
static void thin_out(dc_monitor_metric *x)
{
    for (uint32_t i = 0; 2 * i < x->npoint; i++)
        x->point[i] = x->point[2 * i];
    x->npoint = (x->npoint + 1) / 2;
    x->every *= 2;
}

void dc_monitor_tell(dc_monitor *m, const char *name, double value)
{
    const uint64_t now = dc_clock_ns();
    const float seconds = (float)((double)(now - m->opened_ns) * 1e-9);
    dc_monitor_metric *x = metric_of(m, name, true);
    if (x == NULL)
        return;
    x->value = value;
    x->told_ns = now;
    x->round = atomic_load_explicit(&m->round, memory_order_relaxed);
    if (x->npoint > 0 && seconds - x->point[x->npoint - 1].seconds < x->every)
        return;
    if (x->npoint == DC_MONITOR_POINTS)
        thin_out(x);
    x->point[x->npoint++] = (dc_monitor_point){seconds, (float)value};
}

void dc_monitor_hold(dc_rt *rt, bool holds)
{
    rt->first->monitor->holds = holds;
    dc_monitor_breathe(rt);
}

/* ---- loops ------------------------------------------------------------------------------------------------ */

int dc_monitor_loop_begin(dc_monitor *m, const char *title, int64_t total, int64_t size)
{
    dc_monitor_data *d = &m->live;
    if (d->nloop == DC_MONITOR_LOOPS)
        return -1;
    dc_monitor_loop *x = &d->loop[d->nloop];
    *x = (dc_monitor_loop){.total = total, .size = size, .begun_ns = dc_clock_ns()};
    copy_text(x->title, sizeof x->title, title);
    return (int)d->nloop++;
}

bool dc_monitor_loop_at(dc_monitor *m, int loop, int64_t done)
{
    dc_monitor_data *d = &m->live;
    const uint32_t round = atomic_load_explicit(&m->round, memory_order_relaxed);
    if (loop < 0 || (uint32_t)loop >= d->nloop)
        return false;
    dc_monitor_loop *x = &d->loop[loop];
    m->holds = false; /* an error may have left it so */
    if (done > x->done)
        d->rounds += (uint64_t)(done - x->done);
    x->done = done;
    if (x->first_ns == 0 && done > 0)
        x->first_ns = dc_clock_ns();
    if (round == 0 || round == x->round ||
        done <= 0) /* before the first round there is nothing to tell */
        return false;
    x->round = round;
    return true;
}

void dc_monitor_loop_end(dc_monitor *m, int loop)
{
    dc_monitor_data *d = &m->live;
    m->holds = false;
    if (loop >= 0 && (uint32_t)loop < d->nloop)
        d->nloop = (uint32_t)loop;
}

/* ---- other threads ----------------------------------------------------------------------------------------- */

uint64_t dc_monitor_ask(dc_monitor *m, bool timed)
{
    uint32_t round = atomic_load(&m->round) + 1;
    atomic_store(&m->round, round != 0 ? round : 1);
    atomic_store(&m->timed, timed);
    const uint64_t number = dc_monitor_number(m);
    atomic_store(&m->wanted, true);
    return number;
}

void dc_monitor_rest(dc_monitor *m)
{
    atomic_store(&m->round, 0);
    atomic_store(&m->timed, false);
    atomic_store(&m->wanted, true); /* so that kernels are timed no more */
}

uint64_t dc_monitor_number(dc_monitor *m)
{
    pthread_mutex_lock(&m->lock);
    const uint64_t number = m->number;
    pthread_mutex_unlock(&m->lock);
    return number;
}

void dc_monitor_read(dc_monitor *m, dc_monitor_data *out, uint64_t *age_ns)
{
    pthread_mutex_lock(&m->lock);
    *out = m->shown;
    *age_ns = m->number > 0 ? dc_clock_ns() - m->shown_ns : UINT64_MAX;
    pthread_mutex_unlock(&m->lock);
}

void dc_monitor_read_name(dc_monitor *m, uint32_t row, char *out)
{
    pthread_mutex_lock(&m->lock);
    memcpy(out, m->name[row < DC_MONITOR_FUNCTIONS ? row : 0], DC_MONITOR_NAME);
    pthread_mutex_unlock(&m->lock);
}

void dc_monitor_read_now(dc_monitor *m, dc_monitor_now *out)
{
    const uint64_t word = atomic_load(&m->now);
    const uint64_t mask = (UINT64_C(1) << TIME_BITS) - 1;
    const uint64_t begun = m->opened_ns + ((word & mask) << TIME_UNIT), now = dc_clock_ns();
    const uint32_t row = (uint32_t)(word >> TIME_BITS) & ((1u << ROW_BITS) - 1);
    *out = (dc_monitor_now){.what = doing_of(word), .ns = now > begun ? now - begun : 0};
    if (out->what == DC_DOING_CALL || out->what == DC_DOING_COMPILATION)
        dc_monitor_read_name(m, row, out->name);
}

bool dc_monitor_read_wait(dc_monitor *m, dc_world_wait *out)
{
    pthread_mutex_lock(&m->lock);
    const bool waits = m->world != NULL && dc_world_waits(m->world, out);
    pthread_mutex_unlock(&m->lock);
    return waits;
}
