/*
 * The order of a plan: of the vertices that wait for nothing any more, what a check needs goes first, because it
 * holds up every donated writer; then what ranks exchange, which goes on while kernels run, and what makes that. What reads
 * it goes last, in the order of the exchanges. Else what frees most memory goes first; then what comes first in the function.
 *
 * A function that sends or receives is ordered as it is written, but for checks: what one rank sends before it computes
 * something else another one waits for, and schedules of pipelines say how much is kept (stdlib/pipeline.lua).
 *
 * What is ready is a heap. What a vertex frees changes once for each value that it is the last to read: when the
 * last but one has been ordered.
 */
#include "core/ir/exchange.h"
#include "jit/plan/plan_impl.h"

enum { WAITING = UINT32_MAX, ORDERED = UINT32_MAX - 1 };

/* Which of those that are ready goes first. */
enum { TURN_URGENT, TURN_EXCHANGE, TURN_FEED, TURN_ANY, TURN_LATE };

typedef struct ordering {
    dc_planner *p;
    dc_ref *written; /* by vertex: where it stands in the function; NULL: that does not matter */
    uint8_t *turn;   /* by vertex: */
    uint32_t
        *since; /* by vertex that is ready and late: behind how many its last exchange stands */
    uint32_t *place; /* by vertex that is ordered */
    int64_t *growth; /* by vertex: what the arena's live bytes change by when it runs next */
    uint32_t *at;    /* by vertex: its place in the heap, or one of the above */
    dc_plan_list heap;
} ordering;

static void mark_urgent(dc_planner *p)
{
    bool again = p->d->ncheck > 0;
    for (uint32_t c = 0; c < p->d->ncheck; c++)
        p->v[dc_plan_check_vertex(p, c)].urgent = true;
    while (again) {
        again = false;
        for (uint32_t v = p->nv; v-- > 0;)
            for (uint32_t i = 0; i < p->v[v].after.n && !p->v[v].urgent; i++) {
                const uint32_t w = p->v[v].after.at[i];
                if (w != p->barrier && p->v[w].urgent)
                    p->v[v].urgent = again = true;
            }
    }
}

bool dc_plan_awaits(const dc_planner *p, uint32_t v)
{
    for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
        const uint32_t from = p->g->group_of[dc_plan_read(p, v, i)];
        if (from != DC_NO_GROUP && dc_plan_exchanges(p, from))
            return true;
    }
    return false;
}

static bool feeds_exchange(const dc_planner *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->v[v].after.n; i++)
        if (dc_plan_exchanges(p, p->v[v].after.at[i]))
            return true;
    return false;
}

static uint8_t turn_of(const dc_planner *p, uint32_t v)
{
    if (p->v[v].urgent)
        return TURN_URGENT;
    if (dc_plan_exchanges(p, v))
        return TURN_EXCHANGE;
    if (dc_plan_awaits(p, v))
        return TURN_LATE;
    return feeds_exchange(p, v) ? TURN_FEED : TURN_ANY;
}

static int64_t growth_of(const dc_planner *p, uint32_t v)
{
    int64_t n = 0;
    if (v < p->g->n && p->g->at[v].is_join) /* its pieces have been counted */
        return 0;
    if (v < p->g->n)
        for (uint32_t i = 0; i < p->g->at[v].nout; i++)
            if (dc_plan_in_arena(p, p->g->at[v].out[i]))
                n += (int64_t)dc_plan_bytes(p, p->g->at[v].out[i]);
    for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
        const dc_ref r = dc_plan_read(p, v, i);
        if (dc_plan_in_arena(p, r) && p->unread[r] == 1)
            n -= (int64_t)dc_plan_bytes(p, r);
    }
    return n;
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool goes_first(const ordering *o, uint32_t a, uint32_t b)
{
    if (o->written != NULL)
        return o->written[a] != o->written[b] ? o->written[a] < o->written[b] : a < b;
    if (o->turn[a] != o->turn[b])
        return o->turn[a] < o->turn[b];
    if (o->turn[a] == TURN_LATE && o->since[a] != o->since[b])
        return o->since[a] < o->since[b];
    return o->growth[a] != o->growth[b] ? o->growth[a] < o->growth[b] : a < b;
}

static void put_at(ordering *o, uint32_t v, uint32_t i)
{
    o->heap.at[i] = v;
    o->at[v] = i;
}

static void rise(ordering *o, uint32_t v)
{
    uint32_t i = o->at[v];
    for (; i > 0 && goes_first(o, v, o->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        put_at(o, o->heap.at[(i - 1) / 2], i);
    put_at(o, v, i);
}

static void sink(ordering *o, uint32_t v)
{
    uint32_t i = o->at[v];
    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k + 1 < o->heap.n && goes_first(o, o->heap.at[k + 1], o->heap.at[k]))
            k++;
        if (k >= o->heap.n || !goes_first(o, o->heap.at[k], v))
            break;
        put_at(o, o->heap.at[k], i);
        i = k;
    }
    put_at(o, v, i);
}

static uint32_t last_exchange(const ordering *o, uint32_t v)
{
    const dc_planner *p = o->p;
    uint32_t last = 0;
    for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
        const uint32_t from = p->g->group_of[dc_plan_read(p, v, i)];
        if (from != DC_NO_GROUP && dc_plan_exchanges(p, from) && o->place[from] > last)
            last = o->place[from];
    }
    return last;
}

static void push(ordering *o, uint32_t v)
{
    DC_PUSH_IN(o->p->a, o->heap, v);
    o->since[v] = o->turn[v] == TURN_LATE ? last_exchange(o, v) : 0;
    o->at[v] = o->heap.n - 1;
    rise(o, v);
}

static uint32_t pop(ordering *o)
{
    const uint32_t v = o->heap.at[0], last = o->heap.at[--o->heap.n];
    o->at[v] = ORDERED;
    if (o->heap.n > 0) {
        o->at[last] = 0;
        sink(o, last);
    }
    return v;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* One vertex is left that reads r, or copies do at the end: it will free r. */
static void last_reader_frees(ordering *o, dc_ref r)
{
    const dc_planner *p = o->p;
    for (uint32_t i = p->first_reader[r]; i < p->first_reader[r + 1]; i++) {
        const uint32_t v = p->reader[i];
        if (o->at[v] == ORDERED || (v < p->g->n && p->g->at[v].is_join))
            continue;
        o->growth[v] -= (int64_t)dc_plan_bytes(p, r);
        if (o->at[v] != WAITING)
            rise(o, v);
    }
}

static void take(ordering *o, uint32_t v)
{
    dc_planner *p = o->p;
    o->place[v] = p->order.n;
    DC_PUSH_IN(p->a, p->order, v);
    for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
        const dc_ref r = dc_plan_read(p, v, i);
        if (--p->unread[r] == 1 && dc_plan_in_arena(p, r))
            last_reader_frees(o, r);
    }
    for (uint32_t i = 0; i < p->v[v].after.n; i++)
        if (--p->v[p->v[v].after.at[i]].before == 0)
            push(o, p->v[v].after.at[i]);
}

/* Where a group stands: where the last value is that it stores. Checks, which are none, come first. */
static dc_ref *places_written(const dc_planner *p)
{
    bool any = false;
    for (uint32_t g = 0; g < p->g->n && !any; g++)
        any = p->g->at[g].control != 0 &&
              dc_exchange_is_message(p->fn, dc_plan_node(p, p->g->at[g].control));
    dc_ref *place = any ? DC_NEW_ARRAY(p->a, dc_ref, p->nv) : NULL;
    for (uint32_t g = 0; g < p->g->n && any; g++)
        for (uint32_t i = 0; i < p->g->at[g].nout; i++)
            place[g] = p->g->at[g].out[i] > place[g] ? p->g->at[g].out[i] : place[g];
    return place;
}

void dc_plan_make_order(dc_planner *p)
{
    ordering o = {.p = p,
                  .written = places_written(p),
                  .turn = DC_NEW_ARRAY(p->a, uint8_t, p->nv),
                  .since = DC_NEW_ARRAY(p->a, uint32_t, p->nv),
                  .place = DC_NEW_ARRAY(p->a, uint32_t, p->nv),
                  .growth = DC_NEW_ARRAY(p->a, int64_t, p->nv),
                  .at = DC_NEW_ARRAY(p->a, uint32_t, p->nv)};
    mark_urgent(p);
    for (uint32_t i = 0; i < p->fn->result.n; i++)
        p->unread[p->fn->result.at[i]] += i < p->d->nresult + p->d->nset; /* copies at the end */
    for (uint32_t v = 0; v < p->nv; v++) {
        o.turn[v] = turn_of(p, v);
        o.growth[v] = growth_of(p, v);
        o.at[v] = WAITING;
    }
    for (uint32_t v = 0; v < p->nv; v++)
        if (p->v[v].before == 0)
            push(&o, v);
    while (o.heap.n > 0)
        take(&o, pop(&o));
    if (p->order.n != p->nv)
        DC_BUG("groups depend on each other in a circle");
}
