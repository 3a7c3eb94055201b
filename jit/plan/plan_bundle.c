/*
 * Launches into slots (jit/plan/plan_bundle.h): a vertex of the order given goes to the first slot that it may
 * be in, or opens one at the end.
 *
 * Going back past other launches is for what is small, or passes little: then what those left in
 * the cache is still there when its readers come, and the few microseconds between two launches
 * count. A bundle that would take long stays as it is, so that a run can be sliced. What waits for exchanges of ranks would
 * make the others of a bundle wait too.
 */
#include "jit/plan/plan_bundle.h"

#include "core/base/vec.h"
#include "jit/base/tuning.h"

typedef struct slot {
    DC_VEC(uint32_t) vertex;
    bool open; /* of launches */
    bool late; /* of those that wait for exchanges */
    size_t bytes, alive;
    uint64_t cost_ns;
} slot;

typedef struct bundling {
    dc_arena *a;
    const dc_bundle_in *in;
    DC_VEC(slot) slot;
    uint32_t *earliest; /* by vertex: behind all it has to come after */
    uint32_t fenced;    /* slots up to the last fence */
    uint32_t *unread;   /* by temporary: reads of it that have no slot yet */
    uint32_t *last;     /* by temporary: the last slot so far that touches it */
    size_t alive;       /* bytes of temporaries that have a slot and are to be read yet */
    size_t most;        /* bytes that may be alive at a slot */
} bundling;

static size_t temps_bytes(const bundling *b, uint32_t n, const uint32_t *temp)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += b->in->temp[temp[i]].bytes;
    return bytes;
}

static void forget_reads(bundling *b)
{
    for (uint32_t t = 0; t < b->in->ntemp; t++)
        b->unread[t] = b->in->temp[t].reads;
}

/* What the order given needs. */
static size_t peak_of_order(bundling *b)
{
    size_t alive = 0, peak = 0;
    forget_reads(b);
    for (uint32_t i = 0; i < b->in->n; i++) {
        const dc_bundle_vertex *v = &b->in->at[b->in->order[i]];
        alive += temps_bytes(b, v->nout, v->out);
        peak = alive > peak ? alive : peak;
        for (uint32_t k = 0; k < v->nin; k++)
            if (--b->unread[v->in[k]] == 0)
                alive -= b->in->temp[v->in[k]].bytes;
    }
    forget_reads(b);
    return peak;
}

/* May v be added to slot s, with `passed` bytes in the slots behind it? */
static bool may_join(const bundling *b, const dc_bundle_vertex *v, uint32_t s, size_t passed)
{
    const slot *x = &b->slot.at[s];
    const size_t near = b->in->cache / DC_TUNE_BUNDLE_NEAR;
    const bool close = s + 1 == b->slot.n || v->bytes <= near || passed <= near;
    return x->open && x->late == v->late && close && x->cost_ns + v->cost_ns <= DC_TUNE_BUNDLE_NS;
}

/* The first slot that v may join, where its results have room from then on; none: their number. */
static uint32_t slot_for(const bundling *b, uint32_t vertex)
{
    const dc_bundle_vertex *v = &b->in->at[vertex];
    const size_t more = temps_bytes(b, v->nout, v->out);
    uint32_t best = b->slot.n;
    size_t passed = 0;
    const uint32_t first = b->earliest[vertex] > b->fenced ? b->earliest[vertex] : b->fenced;
    for (uint32_t s = b->slot.n; v->launch && s-- > first;) {
        if (v->late && (s + 1 < b->slot.n || b->slot.at[s].bytes + v->bytes > DC_TUNE_LATE_BYTES))
            break;
        if (more > 0 && b->slot.at[s].alive + more > b->most)
            break;
        if (may_join(b, v, s, passed))
            best = s;
        passed += b->slot.at[s].bytes;
    }
    return best;
}

static void extend_life(bundling *b, uint32_t temp, uint32_t s)
{
    if (s > b->last[temp])
        b->last[temp] = s;
}

/* Its results are alive from slot s on; what it read last, until its last reader. */
static void count(bundling *b, const dc_bundle_vertex *v, uint32_t s)
{
    const size_t more = temps_bytes(b, v->nout, v->out);
    b->alive += more;
    for (uint32_t k = s; k < b->slot.n; k++)
        b->slot.at[k].alive += more;
    for (uint32_t i = 0; i < v->nout; i++)
        extend_life(b, v->out[i], s);
    for (uint32_t i = 0; i < v->nin; i++) {
        const uint32_t t = v->in[i];
        extend_life(b, t, s);
        if (--b->unread[t] > 0)
            continue;
        b->alive -= b->in->temp[t].bytes;
        for (uint32_t k = b->last[t] + 1; k < b->slot.n; k++)
            b->slot.at[k].alive -= b->in->temp[t].bytes;
    }
}

static void place_vertex(bundling *b, uint32_t vertex)
{
    const dc_bundle_vertex *v = &b->in->at[vertex];
    const uint32_t s = slot_for(b, vertex);
    if (s == b->slot.n)
        DC_PUSH_IN(b->a, b->slot, ((slot){.open = v->launch, .late = v->late, .alive = b->alive}));
    slot *x = &b->slot.at[s];
    DC_PUSH_IN(b->a, x->vertex, vertex);
    x->bytes += v->bytes;
    x->cost_ns += v->cost_ns;
    count(b, v, s);
    if (v->fence)
        b->fenced = b->slot.n;
    for (uint32_t i = 0; i < v->nafter; i++)
        if (b->earliest[v->after[i]] < s + 1)
            b->earliest[v->after[i]] = s + 1;
}

const dc_slot *dc_plan_bundle(dc_arena *a, const dc_bundle_in *in, uint32_t *out)
{
    bundling b = {.a = a, .in = in};
    b.earliest = DC_NEW_ARRAY(a, uint32_t, in->n);
    b.unread = DC_NEW_ARRAY(a, uint32_t, in->ntemp);
    b.last = DC_NEW_ARRAY(a, uint32_t, in->ntemp);
    const size_t peak = peak_of_order(&b);
    b.most =
        peak + (peak / DC_TUNE_BUNDLE_SHARE > DC_TUNE_BUNDLE_BYTES ? peak / DC_TUNE_BUNDLE_SHARE
                                                                   : DC_TUNE_BUNDLE_BYTES);
    for (uint32_t i = 0; i < in->n; i++)
        place_vertex(&b, in->order[i]);
    dc_slot *made = DC_NEW_ARRAY(a, dc_slot, b.slot.n);
    for (uint32_t s = 0; s < b.slot.n; s++)
        made[s] = (dc_slot){b.slot.at[s].vertex.n, b.slot.at[s].vertex.at};
    *out = b.slot.n;
    return made;
}
