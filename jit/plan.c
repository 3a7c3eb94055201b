/*
 * Groups to ordered steps and places: see jit/plan.h for what holds.
 *
 * The order is that of a graph whose vertices are the groups, the checks and one barrier behind all
 * checks. Edges say "before": from the producer of a value to its readers, and for each cell that
 * is donated from every reader of the old value, and from the barrier, to the group that overwrites
 * it. A donation that would close a cycle is denied. Among what is ready the scheduler takes what
 * frees most memory; whatever a check needs goes first, because it holds up every donated writer.
 * Then groups that do not wait for each other become one launch (jit/bundle.c).
 */
#include "jit/plan.h"

#include "jit/bundle.h"
#include "jit/deps.h"
#include "jit/memplan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef DC_VEC(uint32_t) u32s;

typedef struct vertex {
    u32s after;      /* vertices that come after this one */
    uint32_t before; /* of those that come before, how many are not ordered yet */
    bool urgent;     /* a check waits for it */
    bool seen;       /* of a walk */
} vertex;

/* A cell that wants the memory of its new value to be its own. */
typedef struct wish {
    uint32_t cell, group, out; /* output `out` of the group is the new value */
    dc_ref ref;
    size_t bytes;
} wish;

typedef struct planner {
    dc_arena *a;
    const dc_plan_in *in;
    const dc_groups *g;
    const dc_func *fn;
    const dc_exec_desc *d;
    dc_plan *out;
    vertex *v; /* groups, checks, barrier */
    uint32_t nv, barrier;
    dc_ref *new_value;  /* by cell: 0 when it keeps its value */
    bool *kept;         /* by cell: the old value is read by a copy at the end */
    bool *granted;      /* by cell */
    uint32_t *snapshot; /* by cell: temporary that keeps the old value, or NO_TEMP */
    uint32_t *unread;   /* by ref: readers not ordered yet */
    DC_VEC(wish) wishes;
    u32s order, todo, readers; /* the last two are filled again and again */
    const dc_slot *slot;
    uint32_t nslot;
    DC_VEC(dc_step) steps;
    DC_VEC(dc_temp) temps;
} planner;

#define NO_TEMP UINT32_MAX

static const dc_node *node(const planner *p, dc_ref r)
{
    return dc_node_at(p->fn, r);
}

static bool is_param(const planner *p, dc_ref r)
{
    return node(p, r)->op == DC_OP_PARAM;
}

static size_t bytes_of(const planner *p, dc_ref r)
{
    const dc_type t = dc_node_type(p->fn, r);
    return dc_type_bytes(&t);
}

static bool has_memory(dc_place at)
{
    return at.kind != DC_PLACE_NONE;
}

/* ---- vertices and edges ---------------------------------------------------------------------- */

static void edge(planner *p, uint32_t from, uint32_t to)
{
    DC_PUSH_IN(p->a, p->v[from].after, to);
    p->v[to].before++;
}

static uint32_t check_vertex(const planner *p, uint32_t check)
{
    return p->g->n + check;
}

static dc_ref check_ref(const planner *p, uint32_t check, int which)
{
    const dc_exec_desc *d = p->d;
    return p->fn->result.at[d->nresult + d->nset + 2 * check + (uint32_t)which];
}

/* How many values vertex v reads, and the i-th. */
static uint32_t reads(const planner *p, uint32_t v)
{
    return v < p->g->n ? p->g->at[v].nin : v < p->barrier ? 2 : 0;
}

static dc_ref read_ref(const planner *p, uint32_t v, uint32_t i)
{
    return v < p->g->n ? p->g->at[v].in[i] : check_ref(p, v - p->g->n, (int)i);
}

static uint32_t producer(const planner *p, dc_ref r)
{
    const uint32_t g = p->g->group_of[r];
    if (g == DC_NO_GROUP && !is_param(p, r))
        DC_BUG("%%%u (%s) needs memory and belongs to no group", r,
               dc_op_row_of((dc_op)node(p, r)->op)->name);
    return g;
}

static void add_data_edges(planner *p)
{
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < reads(p, v); i++) {
            const uint32_t from = producer(p, read_ref(p, v, i));
            if (from != DC_NO_GROUP && from != v)
                edge(p, from, v);
            p->unread[read_ref(p, v, i)]++;
        }
    for (uint32_t c = 0; c < p->d->ncheck; c++) /* the first that fails is the one reported */
        edge(p, check_vertex(p, c), c + 1 < p->d->ncheck ? check_vertex(p, c + 1) : p->barrier);
}

/* Marks everything that comes after v, v included. */
static void mark_after(planner *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->nv; i++)
        p->v[i].seen = false;
    p->todo.n = 0;
    DC_PUSH_IN(p->a, p->todo, v);
    p->v[v].seen = true;
    while (p->todo.n > 0) {
        const vertex *x = &p->v[p->todo.at[--p->todo.n]];
        for (uint32_t i = 0; i < x->after.n; i++)
            if (!p->v[x->after.at[i]].seen) {
                p->v[x->after.at[i]].seen = true;
                DC_PUSH_IN(p->a, p->todo, x->after.at[i]);
            }
    }
}

/* Barriers are wishes: where a circle would close, the value is computed earlier. */
static void add_barrier_edges(planner *p)
{
    for (uint32_t g = 0; g < p->g->n; g++)
        for (uint32_t i = 0; i < p->g->at[g].nafter; i++) {
            const uint32_t from = producer(p, p->g->at[g].after[i]);
            if (from == DC_NO_GROUP || from == g)
                continue;
            mark_after(p, g);
            if (!p->v[from].seen)
                edge(p, from, g);
        }
}

/* ---- donation -------------------------------------------------------------------------------- */

static dc_ref cell_param(const planner *p, uint32_t cell)
{
    return p->fn->param.at[p->d->nfree + cell];
}

static bool is_cell(const planner *p, dc_ref r, uint32_t *cell)
{
    if (!is_param(p, r) || node(p, r)->attr[0] < (int64_t)p->d->nfree)
        return false;
    *cell = (uint32_t)node(p, r)->attr[0] - p->d->nfree;
    return true;
}

static void read_sets(planner *p)
{
    const dc_exec_desc *d = p->d;
    for (uint32_t i = 0; i < d->nset; i++) {
        const dc_ref r = p->fn->result.at[d->nresult + i];
        const uint32_t cell = d->set[i];
        if (r == cell_param(p, cell) || bytes_of(p, r) == 0)
            continue;
        if (p->new_value[cell] != 0)
            DC_BUG("cell %u is set twice", cell);
        p->new_value[cell] = r;
        uint32_t other;
        if (is_cell(p, r, &other))
            p->kept[other] = true;
    }
}

static int by_bytes(const void *x, const void *y)
{
    const wish *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->cell < b->cell ? -1 : 1;
}

/* Cells set to something that a kernel computes, the largest first. */
static void list_wishes(planner *p)
{
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        const dc_ref r = p->new_value[c];
        if (r == 0 || is_param(p, r))
            continue;
        wish w = {.cell = c, .group = producer(p, r), .ref = r, .bytes = bytes_of(p, r)};
        const dc_group *g = &p->g->at[w.group];
        while (w.out < g->nout && g->out[w.out] != r)
            w.out++;
        if (w.out == g->nout)
            DC_BUG("%%%u is no output of its group", r);
        DC_PUSH_IN(p->a, p->wishes, w);
    }
    if (p->wishes.n > 1)
        qsort(p->wishes.at, p->wishes.n, sizeof *p->wishes.at, by_bytes);
}

/* Vertices other than `except` that read the old value of the cell. */
static void find_readers(planner *p, uint32_t cell, uint32_t except)
{
    p->readers.n = 0;
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < reads(p, v) && v != except; i++)
            if (read_ref(p, v, i) == cell_param(p, cell)) {
                DC_PUSH_IN(p->a, p->readers, v);
                break;
            }
}

static bool group_allows(const planner *p, const wish *w)
{
    const dc_group *g = &p->g->at[w->group];
    for (uint32_t i = 0; i < g->nin; i++)
        if (g->in[i] == cell_param(p, w->cell) && !p->in->in_place(p->in->ctx, w->group, w->out, i))
            return false;
    return true;
}

/* Why not, or NULL. */
static const char *grant(planner *p, const wish *w)
{
    if (p->kept[w->cell])
        return "another cell is set to its old value";
    if (has_memory(p->out->home[w->ref]))
        return "its new value is another cell's or result's too";
    if (!group_allows(p, w))
        return "its kernel reads the old value elsewhere than it writes";
    find_readers(p, w->cell, w->group);
    mark_after(p, w->group);
    if (p->v[p->barrier].seen)
        return "a check needs the new value";
    for (uint32_t i = 0; i < p->readers.n; i++)
        if (p->v[p->readers.at[i]].seen)
            return "a kernel that needs the old value needs the new one too"; /* a circle */
    for (uint32_t i = 0; i < p->readers.n; i++)
        edge(p, p->readers.at[i], w->group);
    edge(p, p->barrier, w->group);
    p->out->home[w->ref] = (dc_place){DC_PLACE_CELL, w->cell};
    p->granted[w->cell] = true;
    return NULL;
}

static void decide_donations(planner *p)
{
    read_sets(p);
    list_wishes(p);
    p->out->denied_why = DC_NEW_ARRAY(p->a, const char *, p->d->ncell);
    for (uint32_t c = 0; c < p->d->ncell; c++)
        if (p->new_value[c] != 0)
            p->out->denied_why[c] = "it is set to a value that no kernel makes";
    for (uint32_t i = 0; i < p->wishes.n; i++)
        p->out->denied_why[p->wishes.at[i].cell] = grant(p, &p->wishes.at[i]);
    for (uint32_t c = 0; c < p->d->ncell; c++)
        if (p->new_value[c] != 0) {
            p->out->donated += p->granted[c];
            p->out->denied += !p->granted[c];
        }
}

/* ---- homes ----------------------------------------------------------------------------------- */

static uint32_t new_temp(planner *p, dc_ref r)
{
    DC_PUSH_IN(p->a, p->temps, ((dc_temp){.ref = r, .bytes = bytes_of(p, r), .first = UINT32_MAX}));
    return p->temps.n - 1;
}

static void place_params(planner *p)
{
    const uint32_t nfree = p->d->nfree;
    for (uint32_t i = 0; i < p->fn->param.n; i++) {
        const dc_ref r = p->fn->param.at[i];
        if (bytes_of(p, r) == 0)
            continue;
        p->out->home[r] = i >= nfree             ? (dc_place){DC_PLACE_CELL, i - nfree}
                          : node(p, r)->rank > 0 ? (dc_place){DC_PLACE_FREE, i}
                                                 : (dc_place){DC_PLACE_BLOCK, i};
    }
}

/* After the donations: results that kernels store go to the result's own memory, the rest to the
 * arena. */
static void place_outputs(planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        if (!has_memory(p->out->home[r]) && bytes_of(p, r) > 0)
            p->out->home[r] = (dc_place){DC_PLACE_RESULT, i};
    }
    for (uint32_t g = 0; g < p->g->n; g++)
        for (uint32_t i = 0; i < p->g->at[g].nout; i++) {
            const dc_ref r = p->g->at[g].out[i];
            if (!has_memory(p->out->home[r]) && bytes_of(p, r) > 0)
                p->out->home[r] = (dc_place){DC_PLACE_TEMP, new_temp(p, r)};
        }
}

/* ---- order ----------------------------------------------------------------------------------- */

static void mark_urgent(planner *p)
{
    bool again = p->d->ncheck > 0;
    for (uint32_t c = 0; c < p->d->ncheck; c++)
        p->v[check_vertex(p, c)].urgent = true;
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

static bool in_arena(const planner *p, dc_ref r)
{
    return p->out->home[r].kind == DC_PLACE_TEMP;
}

/* What the arena's live bytes change by when v runs next. */
static int64_t growth(const planner *p, uint32_t v)
{
    int64_t n = 0;
    if (v < p->g->n)
        for (uint32_t i = 0; i < p->g->at[v].nout; i++)
            if (in_arena(p, p->g->at[v].out[i]))
                n += (int64_t)bytes_of(p, p->g->at[v].out[i]);
    for (uint32_t i = 0; i < reads(p, v); i++) {
        const dc_ref r = read_ref(p, v, i);
        if (in_arena(p, r) && p->unread[r] == 1)
            n -= (int64_t)bytes_of(p, r);
    }
    return n;
}

static bool goes_first(const planner *p, uint32_t a, uint32_t b)
{
    if (p->v[a].urgent != p->v[b].urgent)
        return p->v[a].urgent;
    const int64_t ga = growth(p, a), gb = growth(p, b);
    return ga != gb ? ga < gb : a < b;
}

static void make_order(planner *p)
{
    u32s ready = {0};
    mark_urgent(p);
    for (uint32_t i = 0; i < p->fn->result.n; i++)
        p->unread[p->fn->result.at[i]] += i < p->d->nresult + p->d->nset; /* copies at the end */
    for (uint32_t v = 0; v < p->nv; v++)
        if (p->v[v].before == 0)
            DC_PUSH_IN(p->a, ready, v);
    while (ready.n > 0) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < ready.n; i++)
            if (goes_first(p, ready.at[i], ready.at[best]))
                best = i;
        const uint32_t v = ready.at[best];
        ready.at[best] = ready.at[--ready.n];
        DC_PUSH_IN(p->a, p->order, v);
        for (uint32_t i = 0; i < reads(p, v); i++)
            p->unread[read_ref(p, v, i)]--;
        for (uint32_t i = 0; i < p->v[v].after.n; i++)
            if (--p->v[p->v[v].after.at[i]].before == 0)
                DC_PUSH_IN(p->a, ready, p->v[v].after.at[i]);
    }
    if (p->order.n != p->nv)
        DC_BUG("groups depend on each other in a circle");
}

/* ---- bundles --------------------------------------------------------------------------------- */

/* Results that end in the arena are copied at the end; so are the values of denied cells. */
static dc_bundle_temp *temps_to_bundle(planner *p)
{
    dc_bundle_temp *temp = DC_NEW_ARRAY(p->a, dc_bundle_temp, p->temps.n);
    for (uint32_t t = 0; t < p->temps.n; t++)
        temp[t].bytes = p->temps.at[t].bytes;
    for (uint32_t i = 0; i < p->d->nresult + p->d->nset; i++) {
        const dc_place at = p->out->home[p->fn->result.at[i]];
        if (at.kind == DC_PLACE_TEMP)
            temp[at.index].reads = 1;
    }
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < reads(p, v); i++)
            if (in_arena(p, read_ref(p, v, i)))
                temp[p->out->home[read_ref(p, v, i)].index].reads++;
    return temp;
}

static bool is_empty(const planner *p, uint32_t group)
{
    return bytes_of(p, p->g->at[group].out[0]) == 0;
}

static dc_bundle_vertex vertex_to_bundle(planner *p, uint32_t v)
{
    const dc_group *g = v < p->g->n ? &p->g->at[v] : NULL;
    const uint32_t nout = g != NULL ? g->nout : 0;
    uint32_t *in = DC_NEW_ARRAY(p->a, uint32_t, reads(p, v));
    uint32_t *out = DC_NEW_ARRAY(p->a, uint32_t, nout);
    dc_bundle_vertex x = {.launch = p->in->bundles && g != NULL && !is_empty(p, v),
                          .cost_ns = g != NULL && p->in->cost_ns != NULL ? p->in->cost_ns[v] : 0,
                          .nafter = p->v[v].after.n,
                          .after = p->v[v].after.at,
                          .in = in,
                          .out = out};
    for (uint32_t i = 0; i < reads(p, v); i++) {
        x.bytes += bytes_of(p, read_ref(p, v, i));
        if (in_arena(p, read_ref(p, v, i)))
            in[x.nin++] = p->out->home[read_ref(p, v, i)].index;
    }
    for (uint32_t i = 0; i < nout; i++) {
        x.bytes += bytes_of(p, g->out[i]);
        if (in_arena(p, g->out[i]))
            out[x.nout++] = p->out->home[g->out[i]].index;
    }
    return x;
}

static void make_slots(planner *p)
{
    dc_bundle_vertex *at = DC_NEW_ARRAY(p->a, dc_bundle_vertex, p->nv);
    for (uint32_t v = 0; v < p->nv; v++)
        at[v] = vertex_to_bundle(p, v);
    const dc_bundle_in in = {.n = p->nv,
                             .ntemp = p->temps.n,
                             .at = at,
                             .order = p->order.at,
                             .temp = temps_to_bundle(p),
                             .cache = p->in->cache};
    p->slot = dc_bundle_make(p->a, &in, &p->nslot);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static dc_step *step(planner *p, dc_step_kind kind, uint32_t index)
{
    DC_PUSH_IN(p->a, p->steps, ((dc_step){.kind = (uint8_t)kind, .index = index}));
    return &p->steps.at[p->steps.n - 1];
}

static void copy(planner *p, dc_place to, dc_place from, size_t bytes)
{
    dc_step *s = step(p, DC_STEP_COPY, 0);
    s->to = to;
    s->from = from;
    s->bytes = bytes;
}

/* Results that are parameters: before any cell changes. */
static void copies_at_start(planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        if (is_param(p, r) && bytes_of(p, r) > 0)
            copy(p, (dc_place){DC_PLACE_RESULT, i}, p->out->home[r], bytes_of(p, r));
    }
}

static void check(planner *p, uint32_t c)
{
    dc_step *s = step(p, DC_STEP_CHECK, c);
    s->from = p->out->home[check_ref(p, c, 0)];
    s->to = p->out->home[check_ref(p, c, 1)];
}

static void kernels_and_checks(planner *p)
{
    for (uint32_t i = 0; i < p->nslot; i++) {
        const dc_slot *x = &p->slot[i];
        if (x->n > 1)
            step(p, DC_STEP_BUNDLE, 0)->nbody = x->n;
        for (uint32_t k = 0; k < x->n; k++) {
            const uint32_t v = x->vertex[k];
            if (v < p->g->n && !is_empty(p, v))
                step(p, DC_STEP_GROUP, v);
            else if (v >= p->g->n && v < p->barrier)
                check(p, v - p->g->n);
        }
    }
}

/* Old values that other cells are set to, and that are overwritten at the end: kept aside. */
static void snapshots(planner *p)
{
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        p->snapshot[c] = NO_TEMP;
        if (!p->kept[c] || p->new_value[c] == 0)
            continue;
        const dc_ref r = cell_param(p, c);
        p->snapshot[c] = new_temp(p, r);
        copy(p, (dc_place){DC_PLACE_TEMP, p->snapshot[c]}, p->out->home[r], bytes_of(p, r));
    }
}

static void copies_at_end(planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        const dc_place to = {DC_PLACE_RESULT, i}, from = p->out->home[r];
        if (is_param(p, r) || !has_memory(from) || (from.kind == to.kind && from.index == to.index))
            continue;
        copy(p, to, from, bytes_of(p, r));
    }
    snapshots(p);
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        const dc_ref r = p->new_value[c];
        uint32_t other;
        if (r == 0 || p->granted[c])
            continue;
        dc_place from = p->out->home[r];
        if (is_cell(p, r, &other) && p->snapshot[other] != NO_TEMP)
            from = (dc_place){DC_PLACE_TEMP, p->snapshot[other]};
        copy(p, (dc_place){DC_PLACE_CELL, c}, from, bytes_of(p, r));
    }
}

static void touch(planner *p, dc_place at, uint32_t s)
{
    if (at.kind != DC_PLACE_TEMP)
        return;
    dc_temp *t = &p->temps.at[at.index];
    if (t->first == UINT32_MAX)
        t->first = s;
    t->last = s;
}

/* A bundle's groups run at the same time: all that they touch is alive at its head. */
static void find_lifetimes(planner *p)
{
    uint32_t head = 0, inside = 0; /* groups to come of the bundle that begins at the head */
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const dc_step *s = &p->steps.at[i];
        head = inside > 0 ? head : i;
        inside = s->kind == DC_STEP_BUNDLE ? s->nbody : inside > 0 ? inside - 1 : 0;
        if (s->kind == DC_STEP_GROUP) {
            const dc_group *g = &p->g->at[s->index];
            for (uint32_t k = 0; k < g->nout; k++)
                touch(p, p->out->home[g->out[k]], head);
            for (uint32_t k = 0; k < g->nin; k++)
                touch(p, p->out->home[g->in[k]], head);
        } else if (s->kind != DC_STEP_BUNDLE) {
            touch(p, s->to, i);
            touch(p, s->from, i);
        }
    }
}

/* ---- dependencies ---------------------------------------------------------------------------- */

/* Memory numbered: cells, results, the arena. What no step writes is left out. */
static void access(planner *p, dc_visit *v, dc_access *room, dc_place at, bool write)
{
    dc_access x = {.write = write, .end = SIZE_MAX};
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE:
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return;
    case DC_PLACE_CELL:
        x.mem = at.index;
        v->sets |= write;
        break;
    case DC_PLACE_RESULT:
        x.mem = p->d->ncell + at.index;
        break;
    case DC_PLACE_TEMP:
        x.mem = p->d->ncell + p->d->nresult;
        x.begin = p->temps.at[at.index].offset;
        x.end = x.begin + p->temps.at[at.index].bytes;
        break;
    }
    room[v->naccess++] = x;
}

static dc_visit visit(planner *p, const dc_step *s)
{
    dc_visit v = {.check = s->kind == DC_STEP_CHECK, .nbody = s->nbody};
    const dc_group *g = s->kind == DC_STEP_GROUP ? &p->g->at[s->index] : NULL;
    dc_access *room = DC_NEW_ARRAY(p->a, dc_access, g != NULL ? g->nin + g->nout : 2);
    if (g == NULL && s->kind != DC_STEP_BUNDLE) {
        access(p, &v, room, s->from, false);
        access(p, &v, room, s->to, s->kind == DC_STEP_COPY);
    }
    for (uint32_t i = 0; g != NULL && i < g->nin; i++)
        access(p, &v, room, p->out->home[g->in[i]], false);
    for (uint32_t i = 0; g != NULL && i < g->nout; i++)
        access(p, &v, room, p->out->home[g->out[i]], true);
    v.access = room;
    return v;
}

/* After packing: memory that temporaries share counts. */
static void find_deps(planner *p)
{
    const uint32_t n = p->steps.n;
    dc_visit *v = DC_NEW_ARRAY(p->a, dc_visit, n);
    dc_deps *deps = DC_NEW_ARRAY(p->a, dc_deps, n);
    p->out->first_set = n;
    for (uint32_t i = n; i-- > 0;) {
        v[i] = visit(p, &p->steps.at[i]);
        if (v[i].sets)
            p->out->first_set = i;
    }
    dc_deps_find(p->a, v, n, deps);
    for (uint32_t i = 0; i < n; i++) {
        p->steps.at[i].ndep = deps[i].n;
        p->steps.at[i].dep = deps[i].at;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 1; k <= v[i].nbody; k++)
            DC_ASSERT(deps[i + k].n == 0, "groups %u and %u of a bundle depend on each other",
                      p->steps.at[i + k].index, p->steps.at[i + 1 + deps[i + k].at[0]].index);
}

dc_status dc_plan_make(dc_job *j, dc_arena *a, const dc_plan_in *in, dc_plan *out)
{
    const dc_groups *g = in->groups;
    const dc_exec_desc *d = in->desc;
    *out = (dc_plan){.home = DC_NEW_ARRAY(a, dc_place, g->fn->node.n)};
    planner p = {.a = a, .in = in, .g = g, .fn = g->fn, .d = d, .out = out};
    p.barrier = g->n + d->ncheck;
    p.nv = p.barrier + 1;
    p.v = DC_NEW_ARRAY(a, vertex, p.nv);
    p.new_value = DC_NEW_ARRAY(a, dc_ref, d->ncell);
    p.kept = DC_NEW_ARRAY(a, bool, d->ncell);
    p.granted = DC_NEW_ARRAY(a, bool, d->ncell);
    p.snapshot = DC_NEW_ARRAY(a, uint32_t, d->ncell);
    p.unread = DC_NEW_ARRAY(a, uint32_t, g->fn->node.n);

    add_data_edges(&p);
    add_barrier_edges(&p);
    decide_donations(&p);
    place_params(&p);
    place_outputs(&p);
    make_order(&p);
    make_slots(&p);
    copies_at_start(&p);
    kernels_and_checks(&p);
    copies_at_end(&p);
    find_lifetimes(&p);

    out->step = p.steps.at;
    out->nstep = p.steps.n;
    out->temp = p.temps.at;
    out->ntemp = p.temps.n;
    DC_TRY(dc_memplan_pack(j, a, out->temp, out->ntemp, in->guard, in->no_reuse, &out->bytes,
                           &out->lower_bound));
    find_deps(&p);
    return DC_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_place(const dc_plan *p, dc_place at, dc_text *out)
{
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE:
        dc_text_puts(out, "none");
        return;
    case DC_PLACE_BLOCK:
        dc_text_printf(out, "block.%u", at.index);
        return;
    case DC_PLACE_FREE:
        dc_text_printf(out, "arg.%u", at.index);
        return;
    case DC_PLACE_CELL:
        dc_text_printf(out, "cell.%u", at.index);
        return;
    case DC_PLACE_RESULT:
        dc_text_printf(out, "result.%u", at.index);
        return;
    case DC_PLACE_TEMP:
        dc_text_printf(out, "temp@%zu", p->temp[at.index].offset);
        return;
    }
}

static void print_group(const dc_plan *p, const dc_group *g, dc_text *out)
{
    for (uint32_t i = 0; i < g->nout; i++) {
        dc_text_puts(out, i > 0 ? ", " : " ");
        print_place(p, p->home[g->out[i]], out);
    }
    dc_text_puts(out, " <-");
    for (uint32_t i = 0; i < g->nin; i++) {
        dc_text_puts(out, i > 0 ? ", " : " ");
        print_place(p, p->home[g->in[i]], out);
    }
}

static void print_deps(const dc_step *s, dc_text *out)
{
    for (uint32_t i = 0; i < s->ndep; i++)
        dc_text_printf(out, "%s%u", i == 0 ? "  after " : ", ", s->dep[i]);
    dc_text_puts(out, "\n");
}

void dc_plan_print(const dc_plan *p, const dc_groups *g,
                   const char *(*label)(const void *ctx, uint32_t group), const void *ctx,
                   dc_text *out)
{
    uint32_t inside = 0; /* groups to come of a bundle */
    for (uint32_t i = 0; i < p->nstep; i++) {
        const dc_step *s = &p->step[i];
        dc_text_printf(out, "%4u  %s", i, inside > 0 ? "  " : "");
        inside = s->kind == DC_STEP_BUNDLE ? s->nbody : inside > 0 ? inside - 1 : 0;
        if (s->kind == DC_STEP_GROUP) {
            dc_text_puts(out, label(ctx, s->index));
            print_group(p, &g->at[s->index], out);
        } else if (s->kind == DC_STEP_BUNDLE) {
            dc_text_printf(out, "bundle of %u", s->nbody);
        } else if (s->kind == DC_STEP_CHECK) {
            dc_text_printf(out, "check %u ", s->index);
            print_place(p, s->from, out);
        } else {
            dc_text_puts(out, "copy ");
            print_place(p, s->to, out);
            dc_text_puts(out, " <- ");
            print_place(p, s->from, out);
            dc_text_printf(out, " %zu bytes", s->bytes);
        }
        print_deps(s, out);
    }
    dc_text_printf(
        out, "arena %zu bytes, %.3f of the %zu alive at once; cells in place %u, by copy %u\n",
        p->bytes, dc_plan_ratio(p->bytes, p->lower_bound), p->lower_bound, p->donated, p->denied);
}
