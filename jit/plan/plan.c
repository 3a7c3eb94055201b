/*
 * Groups to ordered steps and places: see jit/plan/plan.h for what holds.
 *
 * The order is that of a graph whose vertices are the groups, the checks and one barrier behind all
 * checks. Edges say "before": from the producer of a value to its readers, and for each cell that
 * is donated from every reader of the old value, and from the barrier, to the group that overwrites
 * it. A donation that would close a cycle is denied. What remains is put in order (jit/plan/plan_order.c).
 * Then groups that do not wait for each other become one launch (jit/plan/plan_bundle.c), and all of it steps
 * (jit/plan/plan_steps.c).
 */
#include "core/ir/exchange.h"
#include "jit/base/tuning.h"
#include "jit/plan/plan_impl.h"
#include "jit/plan/plan_memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- vertices and edges ---------------------------------------------------------------------- */

static void edge(dc_planner *p, uint32_t from, uint32_t to)
{
    DC_PUSH_IN(p->a, p->v[from].after, to);
    p->v[to].before++;
}

static void list_readers(dc_planner *p)
{
    const uint32_t n = p->fn->node.n;
    p->first_reader = DC_NEW_ARRAY(p->a, uint32_t, n + 1);
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < dc_plan_reads(p, v); i++)
            p->first_reader[dc_plan_read(p, v, i) + 1]++;
    for (uint32_t r = 0; r < n; r++)
        p->first_reader[r + 1] += p->first_reader[r];
    p->reader = DC_NEW_ARRAY(p->a, uint32_t, p->first_reader[n]);
    uint32_t *next = DC_NEW_ARRAY(p->a, uint32_t, n + 1);
    memcpy(next, p->first_reader, n * sizeof *next);
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < dc_plan_reads(p, v); i++)
            p->reader[next[dc_plan_read(p, v, i)]++] = v;
}

static uint32_t producer(const dc_planner *p, dc_ref r)
{
    const uint32_t g = p->g->group_of[r];
    if (g == DC_NO_GROUP && !dc_plan_is_param(p, r))
        DC_BUG("%%%u (%s) needs memory and belongs to no group", r,
               dc_op_row_of((dc_op)dc_plan_node(p, r)->op)->name);
    return g;
}

static void add_data_edges(dc_planner *p)
{
    for (uint32_t v = 0; v < p->barrier; v++)
        for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
            const uint32_t from = producer(p, dc_plan_read(p, v, i));
            if (from != DC_NO_GROUP && from != v)
                edge(p, from, v);
            p->unread[dc_plan_read(p, v, i)]++;
        }
    for (uint32_t c = 0; c < p->d->ncheck; c++) /* the first that fails is the one reported */
        edge(p, dc_plan_check_vertex(p, c),
             c + 1 < p->d->ncheck ? dc_plan_check_vertex(p, c + 1) : p->barrier);
}

/* Does v come after what mark_after was last called for? */
static bool is_after(const dc_planner *p, uint32_t v)
{
    return p->v[v].seen == p->walk;
}

/* Marks everything that comes after any of n vertices, which are included. */
static void mark_after(dc_planner *p, const uint32_t *v, uint32_t n)
{
    p->walk++;
    p->todo.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        DC_PUSH_IN(p->a, p->todo, v[i]);
        p->v[v[i]].seen = p->walk;
    }
    while (p->todo.n > 0) {
        const dc_plan_vertex *x = &p->v[p->todo.at[--p->todo.n]];
        for (uint32_t i = 0; i < x->after.n; i++)
            if (!is_after(p, x->after.at[i])) {
                p->v[x->after.at[i]].seen = p->walk;
                DC_PUSH_IN(p->a, p->todo, x->after.at[i]);
            }
    }
}

/*
 * What a script has written that ranks do together, and its messages, keep their order, so that it is one on all ranks, whatever
 * else they compute. Where kernels that were fused need another one, it stays (jit/fuse/fuse_messages.c fuses none so).
 */
static void add_exchange_edges(dc_planner *p)
{
    uint32_t *group = NULL, last = DC_NO_GROUP; /* by ref: of a group, + 1 */
    for (uint32_t g = 0; g < p->g->n; g++) {
        const dc_ref r = p->g->at[g].control;
        if (r == 0 || !dc_exchange_is_ordered(p->fn, dc_plan_node(p, r)))
            continue;
        if (group == NULL)
            group = DC_NEW_ARRAY(p->a, uint32_t, p->fn->node.n);
        group[r] = g + 1;
    }
    for (dc_ref r = 1; group != NULL && r < p->fn->node.n; r++) {
        if (group[r] == 0)
            continue;
        const uint32_t next = group[r] - 1;
        mark_after(p, &next, 1);
        if (last != DC_NO_GROUP && !is_after(p, last))
            edge(p, last, next);
        last = next;
    }
}

/* Edges of barriers are soft: one that would close a cycle is dropped, and the value is computed earlier. */
static void add_barrier_edges(dc_planner *p)
{
    for (uint32_t g = 0; g < p->g->n; g++)
        for (uint32_t i = 0; i < p->g->at[g].nafter; i++) {
            const uint32_t from = producer(p, p->g->at[g].after[i]);
            if (from == DC_NO_GROUP || from == g)
                continue;
            mark_after(p, &g, 1);
            if (!is_after(p, from))
                edge(p, from, g);
        }
}

/* ---- donation -------------------------------------------------------------------------------- */

static void read_sets(dc_planner *p)
{
    const dc_exec_desc *d = p->d;
    for (uint32_t i = 0; i < d->nset; i++) {
        const dc_ref r = p->fn->result.at[d->nresult + i];
        const uint32_t cell = d->set[i];
        if (r == dc_plan_cell_param(p, cell) || dc_plan_bytes(p, r) == 0)
            continue;
        if (p->new_value[cell] != 0)
            DC_BUG("cell %u is set twice", cell);
        p->new_value[cell] = r;
        uint32_t other;
        if (dc_plan_is_cell(p, r, &other))
            p->kept[other] = true;
    }
}

static int by_bytes(const void *x, const void *y)
{
    const dc_plan_wish *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->cell < b->cell ? -1 : 1;
}

/* Cells set to something that a kernel computes, the largest first. */
static void list_wishes(dc_planner *p)
{
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        const dc_ref r = p->new_value[c];
        if (r == 0 || dc_plan_is_param(p, r))
            continue;
        dc_plan_wish w = {
            .cell = c, .group = producer(p, r), .ref = r, .bytes = dc_plan_bytes(p, r)};
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

/* What a scatter changes, a loop begins a pick with or ranks make a sum of; else 0. */
static dc_ref begins_as(const dc_planner *p, dc_ref r)
{
    const dc_node *n = dc_plan_node(p, r);
    if (n->op == DC_OP_PICK)
        return dc_loop_start(p->fn, r);
    if (n->op == DC_OP_ALL_REDUCE)
        return n->in[0];
    return dc_op_is((dc_op)n->op, DC_CLASS_IDX) ? dc_below_sizes(p->fn, n->in[0]) : 0;
}

/* The same, if it is changed where it is, or 0. */
static dc_ref changed_by(const dc_planner *p, dc_ref r)
{
    const dc_ref x = begins_as(p, r);
    return x != 0 && p->becomes[x] == r ? x : 0;
}

static uint32_t output_of(const dc_planner *p, uint32_t g, dc_ref r)
{
    uint32_t out = 0;
    while (out < p->g->at[g].nout && p->g->at[g].out[out] != r)
        out++;
    return out;
}

/* The groups that store value r, or pieces of it, or what it was before a scatter changed it. */
static void find_writers(dc_planner *p, dc_ref r)
{
    p->writers.n = 0;
    for (; r != 0; r = changed_by(p, r)) {
        if (dc_plan_node(p, r)->op != DC_OP_JOIN) {
            if (producer(p, r) != DC_NO_GROUP)
                DC_PUSH_IN(p->a, p->writers, producer(p, r));
            continue;
        }
        for (dc_ref q = 1; q < p->fn->node.n; q++)
            if (p->g->join_of[q] == r && dc_plan_is_piece(p, q)) {
                const uint32_t g = producer(p, q);
                if (p->writers.n == 0 || p->writers.at[p->writers.n - 1] != g)
                    DC_PUSH_IN(p->a, p->writers, g);
            }
    }
}

/* Which of its outputs does group g store in the memory of r? nout for pieces. */
static uint32_t output_in(const dc_planner *p, uint32_t g, dc_ref r)
{
    for (; r != 0; r = changed_by(p, r))
        if (output_of(p, g, r) < p->g->at[g].nout)
            return output_of(p, g, r);
    return p->g->at[g].nout;
}

/* May group g, which stores the new value or pieces of it, do so in the cell? */
static bool group_allows(const dc_planner *p, const dc_plan_wish *w, uint32_t g)
{
    const dc_group *x = &p->g->at[g];
    const uint32_t out = output_in(p, g, w->ref);
    for (uint32_t i = 0; i < x->nin; i++)
        if (x->in[i] == dc_plan_cell_param(p, w->cell) &&
            (out == x->nout || !p->in->in_place(p->in->ctx, g, out, i)))
            return false;
    return true;
}

static bool is_kept(const dc_planner *p, dc_ref r)
{
    for (uint32_t i = 0; i < p->fn->result.n; i++)
        if (p->fn->result.at[i] == r)
            return true;
    return false;
}

/* Vertices but `except` that read r. */
static void find_readers_of(dc_planner *p, dc_ref r, uint32_t except)
{
    p->readers.n = 0;
    for (uint32_t i = p->first_reader[r]; i < p->first_reader[r + 1]; i++) {
        const uint32_t v = p->reader[i], n = p->readers.n;
        if (v != except && (n == 0 || p->readers.at[n - 1] != v))
            DC_PUSH_IN(p->a, p->readers, v);
    }
}

/* May group g, a scatter or a loop, change value x, which another group stores, to its output `out` where it is? */
static bool may_change(dc_planner *p, uint32_t g, uint32_t out, dc_ref x)
{
    const dc_group *s = &p->g->at[g];
    for (uint32_t i = 0; i < s->nin; i++)
        if (s->in[i] == x && !p->in->in_place(p->in->ctx, g, out, i))
            return false;
    find_readers_of(p, x, g);
    mark_after(p, &g, 1);
    for (uint32_t i = 0; i < p->readers.n; i++)
        if (is_after(p, p->readers.at[i]))
            return false;
    return true;
}

static void decide_change(dc_planner *p, uint32_t g, uint32_t out)
{
    const dc_ref r = p->g->at[g].out[out], x = begins_as(p, r);
    if (x == 0 || dc_plan_bytes(p, r) == 0 || dc_plan_node(p, r)->op == DC_OP_GATHER ||
        p->g->group_of[x] == DC_NO_GROUP || is_kept(p, x) || p->becomes[x] != 0 ||
        !may_change(p, g, out, x))
        return;
    for (uint32_t i = 0; i < p->readers.n; i++)
        edge(p, p->readers.at[i], g);
    p->becomes[x] = r;
}

/* The operand of a scatter, or what a loop begins with, is updated in place if it is dead afterwards. */
static void decide_changes(dc_planner *p)
{
    for (uint32_t g = 0; g < p->g->n; g++)
        for (uint32_t out = 0; out < (p->g->at[g].control != 0 ? p->g->at[g].nout : 1); out++)
            decide_change(p, g, out);
}

static bool is_writer(const dc_planner *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->writers.n; i++)
        if (p->writers.at[i] == v)
            return true;
    return false;
}

/* Why not, or NULL. */
static const char *grant(dc_planner *p, const dc_plan_wish *w)
{
    if (p->kept[w->cell])
        return "another cell is set to its old value";
    if (dc_plan_has_memory(p->out->home[w->ref]))
        return "its new value is another cell's or result's too";
    find_writers(p, w->ref);
    for (uint32_t i = 0; i < p->writers.n; i++)
        if (!group_allows(p, w, p->writers.at[i]))
            return "its kernel reads the old value elsewhere than it writes";
    find_readers_of(p, dc_plan_cell_param(p, w->cell), UINT32_MAX);
    mark_after(p, p->writers.at, p->writers.n);
    if (is_after(p, p->barrier))
        return "a check needs the new value";
    for (uint32_t i = 0; i < p->readers.n; i++)
        if (is_after(p, p->readers.at[i]) && !is_writer(p, p->readers.at[i]))
            return "a kernel that needs the old value needs the new one too"; /* a cycle */
    for (uint32_t k = 0; k < p->writers.n; k++) {
        for (uint32_t i = 0; i < p->readers.n; i++)
            if (p->readers.at[i] != p->writers.at[k])
                edge(p, p->readers.at[i], p->writers.at[k]);
        edge(p, p->barrier, p->writers.at[k]);
    }
    p->out->home[w->ref] = (dc_place){.kind = DC_PLACE_CELL, .index = w->cell};
    p->granted[w->cell] = true;
    return NULL;
}

static void decide_donations(dc_planner *p)
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

static void place_params(dc_planner *p)
{
    const uint32_t nfree = p->d->nfree;
    for (uint32_t i = 0; i < p->fn->param.n; i++) {
        const dc_ref r = p->fn->param.at[i];
        if (dc_plan_bytes(p, r) == 0)
            continue;
        p->out->home[r] = i >= nfree ? (dc_place){.kind = DC_PLACE_CELL, .index = i - nfree}
                          : dc_plan_node(p, r)->rank > 0
                              ? (dc_place){.kind = DC_PLACE_FREE, .index = i}
                              : (dc_place){.kind = DC_PLACE_BLOCK, .index = i};
    }
}

/* What is changed where it is lies where its last value does, pieces in their joins. */
static void place_parts(dc_planner *p)
{
    for (dc_ref r = 1; r < p->fn->node.n; r++) {
        dc_ref last = r;
        while (p->becomes[last] != 0)
            last = p->becomes[last];
        p->out->home[r] = p->out->home[last];
    }
    for (dc_ref r = 1; r < p->fn->node.n; r++) {
        const dc_ref whole = p->g->join_of[r];
        if (whole == 0 || whole == r)
            continue;
        p->out->home[r] = p->out->home[whole];
        if (dc_plan_is_piece(p, r))
            p->out->home[r].at = (size_t)dc_group_window(p->g, r).first *
                                 dc_dtype_size((dc_dtype)dc_plan_node(p, r)->dtype);
    }
}

/* What the bodies of a loop or a branch compute with. */
static void place_work(dc_planner *p, uint32_t g)
{
    DC_PUSH_IN(p->a, p->temps,
               ((dc_temp){.ref = p->g->at[g].control,
                          .bytes = p->in->work(p->in->ctx, g),
                          .first = UINT32_MAX,
                          .last = UINT32_MAX}));
    p->out->work[g] = p->temps.n - 1;
}

/* After the donations: results that kernels store go to the result's own memory, the rest to the
 * arena. */
static void place_outputs(dc_planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        if (!dc_plan_has_memory(p->out->home[r]) && dc_plan_bytes(p, r) > 0)
            p->out->home[r] = (dc_place){.kind = DC_PLACE_RESULT, .index = i};
    }
    for (uint32_t g = 0; g < p->g->n; g++)
        for (uint32_t i = 0; i < p->g->at[g].nout; i++) {
            const dc_ref r = p->g->at[g].out[i];
            const bool whole = p->g->join_of[r] == 0 || p->g->join_of[r] == r;
            if (whole && p->becomes[r] == 0 && !dc_plan_has_memory(p->out->home[r]) &&
                dc_plan_bytes(p, r) > 0)
                p->out->home[r] =
                    (dc_place){.kind = DC_PLACE_TEMP, .index = dc_plan_new_temp(p, r)};
        }
    place_parts(p);
    for (uint32_t g = 0; g < p->g->n; g++)
        if (p->g->at[g].control != 0)
            place_work(p, g);
}

/* ---- bundles --------------------------------------------------------------------------------- */

/* Results that end in the arena are copied at the end; so are the values of denied cells. */
static dc_bundle_temp *temps_to_bundle(dc_planner *p)
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
        for (uint32_t i = 0; i < dc_plan_reads(p, v); i++)
            if (dc_plan_in_arena(p, dc_plan_read(p, v, i)))
                temp[p->out->home[dc_plan_read(p, v, i)].index].reads++;
    return temp;
}

/* Is the temporary of r alive from where r is stored? A join is from its first piece on. */
static bool begins(dc_planner *p, dc_ref r)
{
    const dc_ref whole = p->g->join_of[r];
    if (changed_by(p, r) != 0)
        return false;
    if (whole == 0)
        return true;
    const bool first = dc_plan_is_piece(p, r) && !p->begun[whole];
    p->begun[whole] = true;
    return first;
}

/* On thread groups a kernel of a bundle has the registers that the largest one needs. */
static bool may_bundle(const dc_planner *p, uint32_t v)
{
    const dc_group *g = v < p->g->n ? &p->g->at[v] : NULL;
    if (!p->in->bundles || g == NULL || g->control != 0 || dc_plan_is_empty(p, v))
        return false;
    return !p->in->simt || g->nreduce == 0 || p->in->cost_ns[v] <= DC_TUNE_JOIN_REDUCE_NS;
}

/* Asked in the order of the plan. */
/* A message to another rank, or a loop or a branch with one. */
static bool is_fence(const dc_planner *p, uint32_t v)
{
    const dc_ref r = v < p->g->n ? p->g->at[v].control : 0;
    return r != 0 && (dc_op_is_message((dc_op)dc_plan_node(p, r)->op) ||
                      dc_exchange_is_message(p->fn, dc_plan_node(p, r)));
}

static dc_bundle_vertex vertex_to_bundle(dc_planner *p, uint32_t v)
{
    const dc_group *g = v < p->g->n ? &p->g->at[v] : NULL;
    const uint32_t nout = g != NULL ? g->nout : 0;
    uint32_t *in = DC_NEW_ARRAY(p->a, uint32_t, dc_plan_reads(p, v));
    uint32_t *out = DC_NEW_ARRAY(p->a, uint32_t, nout);
    dc_bundle_vertex x = {.launch = may_bundle(p, v),
                          .fence = is_fence(p, v),
                          .late = dc_plan_awaits(p, v),
                          .cost_ns = g != NULL && p->in->cost_ns != NULL ? p->in->cost_ns[v] : 0,
                          .nafter = p->v[v].after.n,
                          .after = p->v[v].after.at,
                          .in = in,
                          .out = out};
    for (uint32_t i = 0; i < dc_plan_reads(p, v); i++) {
        x.bytes += dc_plan_bytes(p, dc_plan_read(p, v, i));
        if (dc_plan_in_arena(p, dc_plan_read(p, v, i)))
            in[x.nin++] = p->out->home[dc_plan_read(p, v, i)].index;
    }
    for (uint32_t i = 0; i < nout; i++) {
        x.bytes += dc_plan_bytes(p, g->out[i]);
        if (dc_plan_in_arena(p, g->out[i]) && begins(p, g->out[i]))
            out[x.nout++] = p->out->home[g->out[i]].index;
    }
    return x;
}

static void make_slots(dc_planner *p)
{
    dc_bundle_vertex *at = DC_NEW_ARRAY(p->a, dc_bundle_vertex, p->nv);
    for (uint32_t i = 0; i < p->order.n; i++)
        at[p->order.at[i]] = vertex_to_bundle(p, p->order.at[i]);
    const dc_bundle_in in = {.n = p->nv,
                             .ntemp = p->temps.n,
                             .at = at,
                             .order = p->order.at,
                             .temp = temps_to_bundle(p),
                             .cache = p->in->cache};
    p->slot = dc_plan_bundle(p->a, &in, &p->nslot);
}

dc_status dc_plan_make(dc_job *j, dc_arena *a, const dc_plan_in *in, dc_plan *out)
{
    const dc_groups *g = in->groups;
    const dc_exec_desc *d = in->desc;
    *out = (dc_plan){.home = DC_NEW_ARRAY(a, dc_place, g->fn->node.n),
                     .work = DC_NEW_ARRAY(a, uint32_t, g->n)};
    dc_planner p = {.a = a, .in = in, .g = g, .fn = g->fn, .d = d, .out = out};
    p.barrier = g->n + d->ncheck;
    p.nv = p.barrier + 1;
    p.v = DC_NEW_ARRAY(a, dc_plan_vertex, p.nv);
    p.new_value = DC_NEW_ARRAY(a, dc_ref, d->ncell);
    p.kept = DC_NEW_ARRAY(a, bool, d->ncell);
    p.granted = DC_NEW_ARRAY(a, bool, d->ncell);
    p.snapshot = DC_NEW_ARRAY(a, uint32_t, d->ncell);
    p.unread = DC_NEW_ARRAY(a, uint32_t, g->fn->node.n);
    p.becomes = DC_NEW_ARRAY(a, dc_ref, g->fn->node.n);
    p.begun = DC_NEW_ARRAY(a, bool, g->fn->node.n);

    list_readers(&p);
    add_data_edges(&p);
    add_exchange_edges(&p);
    add_barrier_edges(&p);
    decide_changes(&p);
    decide_donations(&p);
    place_params(&p);
    place_outputs(&p);
    dc_plan_make_order(&p);
    make_slots(&p);
    dc_plan_make_steps(&p);

    out->step = p.steps.at;
    out->nstep = p.steps.n;
    out->temp = p.temps.at;
    out->ntemp = p.temps.n;
    DC_TRY(dc_plan_memory_pack(j, a, out->temp, out->ntemp, in->guard, in->no_reuse, &out->bytes,
                               &out->lower_bound));
    dc_plan_find_deps(&p);
    return DC_OK;
}
