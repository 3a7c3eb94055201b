/*
 * Exchanges from device to device: which may be, what members say to each other before one, and waiting for one. A device
 * carries them out (backends/cuda/cu_nccl.c); here is what keeps some members from doing so while others go by way of the host.
 */
#include "core/world/world_impl.h"

#include <string.h>

enum { REASON_NS = 2000000000 }; /* so long a device has failed before the world must know why */

bool dc_world_is_direct(const dc_world *w)
{
    return w->direct;
}

bool dc_world_is_broken(dc_world *w)
{
    return dc_world_failed(w);
}

void dc_world_add_sent(dc_world *w, uint64_t bytes)
{
    dc_world_count_sent(w, (size_t)bytes);
}

void dc_world_add_user(dc_world *w, dc_world_user *u)
{
    u->next = w->user;
    w->user = u;
}

void dc_world_remove_user(dc_world *w, dc_world_user *u)
{
    for (dc_world_user **at = &w->user; *at != NULL; at = &(*at)->next)
        if (*at == u) {
            *at = u->next;
            return;
        }
}

void dc_world_tell_users(dc_world *w)
{
    while (w->user != NULL) {
        dc_world_user *u = w->user;
        w->user = u->next;
        u->leave(u->arg);
    }
}

/* ---- which may be ---------------------------------------------------------------------------------------- */

/*
 * What a device combines as core/world does, or in another order of the members. Floats of 16 bits are rounded once here, and
 * by others after each step: the same of two. Maxima of floats differ in NaN and -0.
 */
static bool is_combined_alike(const dc_exchange *x, int64_t n)
{
    const bool adds = x->combine == DC_COMBINE_SUM || x->combine == DC_COMBINE_PROD;
    if (dc_dtype_is_short(x->dtype) && !dc_dtype_is_half(x->dtype))
        return false;
    switch (x->dtype) {
    case DC_I16:
    case DC_U16:
    case DC_C128:
        return false;
    case DC_F16:
    case DC_BF16:
        return adds && n == 2;
    case DC_F32:
    case DC_F64:
        return adds;
    case DC_C64:
        return x->combine == DC_COMBINE_SUM;
    default: /* whole numbers, bool */
        return true;
    }
}

bool dc_exchange_is_fit(const dc_exchange *x)
{
    const int64_t n = dc_group_size(&x->axes);
    if (n < 2 || x->n != 1 || x->at->outer != 1 || x->at->inner < 1)
        return false;
    switch (x->kind) {
    case DC_ALL_REDUCE:
    case DC_REDUCE_SCATTER:
        return is_combined_alike(x, n);
    case DC_ALL_GATHER:
    case DC_ALL_TO_ALL:
    case DC_BROADCAST:
        return true;
    case DC_SEND: /* of two that send to each other neither may wait for the other */
    case DC_RECV:
        break;
    }
    return false;
}

/* ---- what members say ------------------------------------------------------------------------------------ */

static dc_status run_aside(dc_world *w, dc_job *j, const dc_exchange *about, dc_exchange *x,
                           const dc_transfer *at)
{
    x->axes = about->axes;
    x->label = about->label;
    x->where = about->where;
    x->n = 1;
    x->at = at;
    x->about = about;
    return dc_world_run(w, j, x);
}

dc_status dc_world_open_direct(dc_world *w, dc_job *j, bool can)
{
    uint8_t mine = can, all = 0;
    const dc_transfer at = {&mine, &all, 1, 1};
    dc_exchange x = {.kind = DC_ALL_REDUCE,
                     .combine = DC_COMBINE_MIN,
                     .dtype = DC_U8,
                     .label = "the opening of the world",
                     .axes = {.naxis = 1, .mask = 1, .size = {w->size}},
                     .n = 1,
                     .at = &at};
    const dc_exchange about = x;
    if (w->engine == NULL || w->size == 1)
        return DC_OK;
    DC_TRY(run_aside(w, j, &about, &x, &at));
    w->direct = all != 0;
    if (can && !w->direct)
        dc_logf(j->log, DC_CH_EXCHANGE,
                "values go through the host: not all ranks have devices that exchange them");
    return DC_OK;
}

dc_status dc_world_vote(dc_world *w, dc_job *j, const dc_exchange *x, dc_direct_vote mine,
                        dc_direct_vote *all)
{
    const uint64_t say[3] = {mine.can, mine.with, ~mine.with};
    uint64_t hear[3] = {0};
    const dc_transfer at = {say, hear, 1, 3};
    dc_exchange vote = {.kind = DC_ALL_REDUCE, .combine = DC_COMBINE_MIN, .dtype = DC_U64};
    w->voted = false;
    DC_TRY(run_aside(w, j, x, &vote, &at));
    *all = (dc_direct_vote){hear[0] != 0, hear[1] == ~hear[2] ? hear[1] : 0};
    return DC_OK;
}

void dc_world_set_voted(dc_world *w, bool voted)
{
    w->voted = voted;
}

dc_status dc_world_vote_for_host(dc_world *w, dc_job *j, const dc_exchange *x)
{
    dc_direct_vote all;
    const bool voted = w->voted;
    w->voted = false;
    if (!w->direct || voted || !dc_exchange_is_fit(x))
        return DC_OK;
    return dc_world_vote(w, j, x, (dc_direct_vote){false, 0}, &all);
}

dc_status dc_world_tell(dc_world *w, dc_job *j, const dc_exchange *x, const void *mine, void *all,
                        size_t bytes)
{
    const dc_transfer at = {mine, all, 1, (int64_t)bytes};
    dc_exchange tell = {.kind = DC_ALL_GATHER, .dtype = DC_U8};
    return run_aside(w, j, x, &tell, &at);
}

dc_status dc_world_tell_from(dc_world *w, dc_job *j, const dc_exchange *x, int from, void *text,
                             size_t bytes)
{
    const dc_transfer at = {text, text, 1, (int64_t)bytes};
    dc_exchange tell = {.kind = DC_BROADCAST, .dtype = DC_U8, .peer = from};
    return run_aside(w, j, x, &tell, &at);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

typedef struct wait {
    int (*state)(void *);
    void *arg;
    const char *const *why;
    uint64_t failed_ns; /* when the device had; 0: it has not */
} wait;

/* 1: it is over, -1: the world has failed, 0: a moment later. */
static int look(wait *p, dc_call *c)
{
    const int state = p->failed_ns == 0 ? p->state(p->arg) : -1;
    if (state > 0)
        return 1;
    if (state == 0)
        return 0;
    if (p->failed_ns == 0)
        p->failed_ns = dc_clock_ns();
    if (dc_clock_ns() - p->failed_ns < REASON_NS)
        return 0;
    dc_world_break(c->w, false, "rank %d (%s): %s: %s", c->w->rank, c->w->here, dc_call_label(c),
                   *p->why);
    return -1;
}

dc_status dc_world_await(dc_world *w, dc_job *j, const dc_exchange *x, int (*state)(void *),
                         void *arg, const char *const *why)
{
    const dc_team *t;
    wait p = {.state = state, .arg = arg, .why = why};
    dc_watch watch = {0};
    DC_TRY(dc_team_of(j, w, x, &t));
    dc_call c = dc_call_of(w, x, t, j);
    c.beside = true;
    pthread_mutex_lock(&w->lock);
    w->waiting++;
    pthread_mutex_unlock(&w->lock);
    int over = 0;
    while (over == 0) {
        over = look(&p, &c);
        if (over == 0 && !dc_watch_pause(&watch, &c, -1))
            over = -1;
    }
    pthread_mutex_lock(&w->lock);
    w->waiting--;
    pthread_mutex_unlock(&w->lock);
    if (over > 0)
        return DC_OK;
    return j != NULL ? dc_world_status(w, j) : DC_E_DEVICE;
}
