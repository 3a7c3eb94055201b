/*
 * How operations that work element by element, move elements or reduce axes are computed in parts.
 *
 * Of an axis of the mesh that splits different axes of two operands, one stays: that of an operand that depends on the data
 * of the call rather than on parameters alone, which are fewer bytes to bring there in a layer.
 */
#include "core/ir/subgraph.h"
#include "core/transform/partition_impl.h"

#include <string.h>

/* ---- which shardings go together ----------------------------------------------------------------- */

/* Axes of two shapes that have as many elements together: where they begin, and the first that is not 1. */
typedef struct side {
    const dc_type *t;
    int at, major;
    int64_t count;
} side;

static void take_axis(side *x)
{
    x->major = x->major < 0 && x->t->dim[x->at] != 1 ? x->at : x->major;
    x->count *= x->t->dim[x->at++];
}

/* The next group of both; false: there is none. */
static bool next_group(side *x, side *y)
{
    x->count = y->count = 1;
    x->major = y->major = -1;
    if (x->at == x->t->rank || y->at == y->t->rank)
        return false;
    take_axis(x);
    take_axis(y);
    while (x->count != y->count) {
        side *less = x->count < y->count ? x : y;
        if (less->at == less->t->rank)
            return false;
        take_axis(less);
    }
    return true;
}

/* Of the same elements under other axes: what splits the slowest axis of a group does so there. The rest is dropped. */
static dc_sharding regroup(const dc_mesh *m, const dc_type *in, const dc_type *out,
                           const dc_sharding *s)
{
    dc_sharding to = {.partial = s->partial};
    side x = {.t = in}, y = {.t = out};
    while (next_group(&x, &y)) {
        if (x.major < 0 || y.major < 0 || y.t->dim[y.major] % dc_sharding_parts(s, m, x.major) != 0)
            continue;
        for (uint32_t a = 0; a < m->naxis; a++)
            if (s->dim[a] == x.major + 1)
                to.dim[a] = (uint8_t)(y.major + 1);
    }
    return to;
}

static dc_sharding permuted(const dc_partitioner *p, const dc_node *n, const dc_sharding *s,
                            bool back)
{
    dc_sharding to = {.partial = s->partial};
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        for (int k = 0; k < n->rank && s->dim[a] != 0; k++)
            if (back ? k + 1 == s->dim[a] : n->attr[k] + 1 == s->dim[a])
                to.dim[a] = (uint8_t)(1 + (back ? n->attr[k] : k));
    return to;
}

/* Without the axes that have another size there. */
static dc_sharding where_alike(const dc_partitioner *p, const dc_type *x, const dc_type *y,
                               const dc_sharding *s)
{
    dc_sharding to = *s;
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        if (s->dim[a] != 0 && x->dim[s->dim[a] - 1] != y->dim[s->dim[a] - 1])
            to.dim[a] = 0;
    return to;
}

static dc_sharding regrouped(const dc_partitioner *p, dc_ref from, dc_ref to, const dc_sharding *s)
{
    const dc_type x = dc_node_type(p->from, from), y = dc_node_type(p->from, to);
    return regroup(p->mesh, &x, &y, s);
}

bool dc_shard_back(const dc_partitioner *p, dc_ref r, const dc_sharding *result, dc_sharding *in)
{
    const dc_node *n = dc_shard_node(p, r);
    if (n->op == DC_OP_RESHAPE) {
        in[0] = regrouped(p, r, n->in[0], result);
        const dc_sharding there = regrouped(p, n->in[0], r, &in[0]);
        return dc_sharding_same(&there, result);
    }
    if (n->op == DC_OP_PERMUTE) {
        in[0] = permuted(p, n, result, true);
        return true;
    }
    if (n->op == DC_OP_EXPAND) {
        const dc_type x = dc_node_type(p->from, n->in[0]), y = dc_node_type(p->from, r);
        in[0] = where_alike(p, &x, &y, result);
        return true;
    }
    for (int i = 0; i < n->nin; i++)
        in[i] = *result;
    return dc_op_is((dc_op)n->op, DC_CLASS_EW) || n->nin == 0;
}

/* ---- element by element -------------------------------------------------------------------------- */

static bool keeps_terms(dc_op op)
{
    return op == DC_OP_NEG || op == DC_OP_ADD || op == DC_OP_SUB;
}

/* Are all operands terms of sums over the same axes of the mesh, lie alike, and is only their sum of use to nobody? */
static bool all_terms(const dc_partitioner *p, const dc_node *n)
{
    const dc_sharding *s = dc_shard_of(p, n->in[0]);
    bool all = s->partial != 0 && keeps_terms((dc_op)n->op);
    for (int i = 0; i < n->nin && all; i++)
        all = !p->forced[n->in[i]] && dc_sharding_same(s, dc_shard_of(p, n->in[i]));
    return all;
}

/* Which axis of the result axis a of the mesh splits. */
static uint8_t choose(const dc_partitioner *p, dc_ref r, uint32_t a, const dc_sharding *so_far)
{
    const dc_node *n = dc_shard_node(p, r);
    uint8_t best = 0, wish = 0;
    bool data = false;
    for (int i = 0; i < n->nin; i++) {
        const dc_sharding *s = dc_shard_of(p, n->in[i]);
        if (s->partial >> a & 1)
            wish = p->hint[r].dim[a] != 0 ? p->hint[r].dim[a] : p->hint[n->in[i]].dim[a];
        if (s->dim[a] == 0 || (best != 0 && (data || !p->data[n->in[i]])))
            continue;
        best = s->dim[a];
        data = p->data[n->in[i]];
    }
    if (best == 0)
        best = wish;
    dc_sharding s = *so_far;
    s.dim[a] = best;
    return dc_shard_fits(p, r, &s) ? best : 0;
}

/* Terms by a constant. */
static bool scale_terms(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    const int at = dc_shard_scaled(p, n);
    if (at < 0 || p->forced[n->in[at]] || dc_shard_of(p, n->in[at])->partial == 0)
        return false;
    const dc_sharding s = *dc_shard_of(p, n->in[at]);
    dc_sharding summed = s;
    dc_ref in[2];
    summed.partial = 0;
    in[at] = p->version[n->in[at]]->at;
    in[1 - at] = dc_shard_as(p, n->in[1 - at], &summed);
    dc_shard_add(p, r, &s, dc_shard_make(p, r, in, &s));
    return true;
}

void dc_shard_ew(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    dc_sharding s = {0};
    dc_ref in[DC_MAX_TYPED];
    if (scale_terms(p, r))
        return;
    if (all_terms(p, n))
        s = *dc_shard_of(p, n->in[0]);
    else
        for (uint32_t a = 0; a < p->mesh->naxis; a++)
            s.dim[a] = choose(p, r, a, &s);
    for (int i = 0; i < n->nin; i++)
        in[i] = dc_shard_as(p, n->in[i], &s);
    dc_shard_add(p, r, &s, dc_shard_make(p, r, in, &s));
}

/* ---- reductions ---------------------------------------------------------------------------------- */

/* What of a sharding of the operand is left of it, and which axes of the mesh split axes that go. */
static dc_sharding dropped(const dc_partitioner *p, const dc_sharding *s, uint32_t axes,
                           uint32_t *gone)
{
    dc_sharding to = {.partial = s->partial};
    *gone = 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++) {
        const int dim = s->dim[a] - 1;
        if (dim < 0)
            continue;
        if (axes >> dim & 1)
            *gone |= 1u << a;
        else
            to.dim[a] = (uint8_t)(1 + dim - __builtin_popcount(axes & ((1u << dim) - 1)));
    }
    return to;
}

/* The sharding that r is read in by an operation that may keep terms. */
static dc_sharding operand_of(const dc_partitioner *p, dc_ref r, bool keeps)
{
    return keeps && !p->forced[r] ? *dc_shard_of(p, r) : dc_shard_summed(p, r);
}

static dc_combine combine_of(dc_op op)
{
    return op == DC_OP_MAXR ? DC_COMBINE_MAX : DC_COMBINE_MIN;
}

void dc_shard_reduction(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_ref x = n->in[0];
    const uint32_t axes = (uint32_t)n->attr[0];
    const bool sums = n->op == DC_OP_SUM;
    uint32_t gone;
    dc_sharding in = operand_of(p, x, sums), out = dropped(p, &in, axes, &gone);
    if (n->op == DC_OP_PROD && gone != 0) {
        for (uint32_t a = 0; a < p->mesh->naxis; a++)
            in.dim[a] = gone >> a & 1 ? 0 : in.dim[a];
        out = dropped(p, &in, axes, &gone);
    }
    dc_ref operand = dc_shard_as(p, x, &in);
    if (sums)
        out.partial |= (uint8_t)gone;
    dc_ref at = dc_shard_make(p, r, &operand, &out);
    if (!sums)
        at = dc_shard_reduce(p, at, combine_of((dc_op)n->op), gone);
    dc_shard_add(p, r, &out, at);
}

/* ---- movement ------------------------------------------------------------------------------------ */

/* Axes of which a part is taken, or that grow, are whole; so are those that are turned round. */
static dc_sharding untouched(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_type x = dc_node_type(p->from, n->in[0]), y = dc_node_type(p->from, r);
    dc_sharding to = where_alike(p, &x, &y, s);
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        if (n->op == DC_OP_FLIP && to.dim[a] != 0 && (n->attr[0] >> (to.dim[a] - 1) & 1))
            to.dim[a] = 0;
    return to;
}

void dc_shard_move(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_ref x = n->in[0];
    const bool keeps = n->op == DC_OP_RESHAPE || n->op == DC_OP_PERMUTE;
    dc_sharding in = operand_of(p, x, keeps), out;
    if (n->op == DC_OP_RESHAPE) {
        out = regrouped(p, x, r, &in);
        in = regrouped(p, r, x, &out); /* what is left of it */
    } else if (n->op == DC_OP_PERMUTE) {
        out = permuted(p, n, &in, false);
    } else {
        in = out = untouched(p, r, &in);
    }
    const dc_ref operand = dc_shard_as(p, x, &in);
    dc_shard_add(p, r, &out, dc_shard_make(p, r, &operand, &out));
}

/* ---- the rest ------------------------------------------------------------------------------------ */

void dc_shard_source(dc_partitioner *p, dc_ref r)
{
    const dc_sharding whole = {0};
    dc_shard_add(p, r, &whole, dc_shard_make(p, r, NULL, &whole));
}

void dc_shard_fallback(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_sharding whole = {0};
    dc_ref in[DC_MAX_TYPED];
    for (int i = 0; i < n->nin; i++)
        in[i] = dc_shard_whole(p, n->in[i]);
    dc_shard_add(p, r, &whole, dc_graph_again(p->to, p->from, r, in));
}

void dc_shard_rows(dc_partitioner *p, dc_ref r, int axes)
{
    const dc_node *n = dc_shard_node(p, r);
    const int batch = dc_shard_node(p, n->in[0])->rank - axes;
    dc_sharding s = {0};
    dc_ref in[DC_MAX_TYPED];
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        for (int i = 0; i < n->nin && s.dim[a] == 0; i++) {
            const uint8_t dim = dc_shard_of(p, n->in[i])->dim[a];
            s.dim[a] = dim <= batch ? dim : 0;
        }
    for (int i = 0; i < n->nin; i++)
        in[i] = dc_shard_as(p, n->in[i], &s);
    dc_shard_add(p, r, &s, dc_shard_make(p, r, in, &s));
}
