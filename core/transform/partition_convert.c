/*
 * A value in another sharding. What is made of positions, of constants and element by element of such is made again, in
 * parts; the part of a value that is whole here is cut out; the rest is exchanged:
 *
 *   terms are added up, by reduce_scatter where the sum is to be split, else by all_reduce;
 *   an axis of the mesh that splits one axis and is to split another one moves by all_to_all, else it is gathered.
 *
 * Where several axes of the mesh split one axis, a list in ascending order, the front that both lists have in common stays.
 */
#include "core/base/extent.h"
#include "core/transform/partition_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 200 }; /* made again from, one of the other */

dc_type dc_shard_type(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    const dc_type whole = dc_node_type(p->from, r);
    dc_type part;
    int axis;
    if (!dc_sharding_part(s, p->mesh, &whole, &part, &axis))
        DC_BUG("axis %d of node %u in parts", axis, r);
    if (dc_shard_wide(p, r, s))
        part.dtype = DC_F32;
    return part;
}

bool dc_shard_fits(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    const dc_type whole = dc_node_type(p->from, r);
    dc_type part;
    int axis;
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        if (s->dim[a] > whole.rank)
            return false;
    return dc_sharding_part(s, p->mesh, &whole, &part, &axis);
}

void dc_shard_add(dc_partitioner *p, dc_ref r, const dc_sharding *s, dc_ref at)
{
    dc_version *v = DC_NEW(&p->j->scratch, dc_version);
    *v = (dc_version){*s, at, NULL};
    if (p->version[r] == NULL) {
        p->version[r] = v;
        return;
    }
    v->next = p->version[r]->next;
    p->version[r]->next = v;
}

/* Axes of the mesh that split axis `dim`. */
static uint32_t axes_of(const dc_sharding *s, int dim)
{
    uint32_t mask = 0;
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        mask |= s->dim[a] == dim + 1 ? 1u << a : 0;
    return mask;
}

/* Those of list `have` that are not in the front that it shares with list `want`. */
static uint32_t behind_common(uint32_t have, uint32_t want)
{
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        if ((have ^ want) >> a & 1)
            return have >> a << a;
    return 0;
}

/* Is the list `have` with axis a behind it a front of list `want`? */
static bool leads(uint32_t have, uint32_t a, uint32_t want)
{
    const uint32_t more = have | 1u << a;
    return have >> a == 0 && (want & more) == more && (want & ((1u << a) - 1)) == have;
}

/* ---- one exchange after the other ---------------------------------------------------------------- */

/* A value on its way; at 0: only what it costs is counted. */
typedef struct route {
    dc_partitioner *p;
    dc_sharding s;
    dc_type type; /* of the part */
    dc_ref at;
    double bytes;
} route;

static int64_t members_of(const dc_partitioner *p, uint32_t mask)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        n *= mask >> a & 1 ? p->mesh->size[a] : 1;
    return n;
}

static const char *where_of(const dc_partitioner *p)
{
    const uint32_t origin = p->user != 0 ? dc_shard_node(p, p->user)->origin : 0;
    return origin != 0 ? p->from->origins.at[origin].where : NULL;
}

static void note_step(dc_partitioner *p, dc_ref at, uint32_t mask, const dc_type *t, double bytes)
{
    const dc_partition_step step = {.op = (dc_op)dc_node_at(p->to, at)->op,
                                    .mask = mask,
                                    .type = *t,
                                    .bytes = bytes,
                                    .times = 1,
                                    .written = p->written,
                                    .where = where_of(p)};
    for (uint32_t i = 0; i < p->step.n; i++)
        if (p->step.at[i].at == at)
            return;
    DC_PUSH_IN(&p->j->scratch, p->step, ((dc_shard_step){at, step}));
}

void dc_shard_keep_steps(const dc_partitioner *p, int64_t times, dc_partitioner *outer,
                         dc_partition *out)
{
    const bool *live = dc_func_live(p->to, &p->j->scratch);
    for (uint32_t i = 0; i < p->step.n; i++) {
        dc_shard_step s = p->step.at[i];
        if (s.at != 0 && !live[s.at])
            continue;
        s.at = 0;
        s.step.times *= times;
        if (outer != NULL)
            DC_PUSH_IN(&p->j->scratch, outer->step, s);
        if (out != NULL)
            DC_PUSH_IN(&p->to->module->arena, out->step, s.step);
    }
}

static void exchange(route *w, dc_op op, int axis, int64_t other, uint32_t mask)
{
    const dc_exchange_attr x = {axis, other, dc_mesh_group(w->p->mesh, mask), 0};
    const int64_t n = members_of(w->p, mask);
    const double bytes = dc_exchange_bytes(op, &x, &w->type);
    w->bytes += bytes;
    if (w->at != 0) {
        w->at = dc_graph_exchange(w->p->to, op, w->at, &x);
        note_step(w->p, w->at, mask, &w->type, bytes);
    }
    if (op == DC_OP_ALL_GATHER)
        w->type.dim[axis] *= n;
    if (op == DC_OP_REDUCE_SCATTER || op == DC_OP_ALL_TO_ALL)
        w->type.dim[axis] /= n;
    if (op == DC_OP_ALL_TO_ALL)
        w->type.dim[other] *= n;
}

static void add_up(route *w, const dc_sharding *want)
{
    const uint32_t mask = w->s.partial & ~(uint32_t)want->partial;
    uint32_t rest = mask;
    for (uint32_t a = 0; a < DC_MESH_AXES; a++) {
        const int dim = want->dim[a] - 1;
        if (!(mask >> a & 1) || dim < 0 || !leads(axes_of(&w->s, dim), a, axes_of(want, dim)))
            continue;
        exchange(w, DC_OP_REDUCE_SCATTER, dim, DC_COMBINE_SUM, 1u << a);
        w->s.dim[a] = want->dim[a];
        rest &= ~(1u << a);
    }
    if (rest != 0)
        exchange(w, DC_OP_ALL_REDUCE, 0, DC_COMBINE_SUM, rest);
    w->s.partial &= (uint8_t)~mask;
}

static void gather(route *w, const dc_sharding *want)
{
    for (int dim = 0; dim < w->type.rank; dim++) {
        const uint32_t gone = behind_common(axes_of(&w->s, dim), axes_of(want, dim));
        const uint32_t a = gone != 0 ? (uint32_t)__builtin_ctz(gone) : 0;
        if (gone == 0)
            continue;
        const int to = want->dim[a] - 1;
        const bool moves = gone == 1u << a && to >= 0 && to != dim &&
                           leads(axes_of(&w->s, to), a, axes_of(want, to)) &&
                           w->type.dim[to] % w->p->mesh->size[a] == 0;
        if (moves)
            exchange(w, DC_OP_ALL_TO_ALL, to, dim, gone);
        else
            exchange(w, DC_OP_ALL_GATHER, dim, 0, gone);
        for (uint32_t b = 0; b < DC_MESH_AXES; b++)
            if (gone >> b & 1)
                w->s.dim[b] = moves ? (uint8_t)(to + 1) : 0;
    }
}

/* The part of this rank along an axis of the mesh: [before, n, part, behind] at the place of the rank. */
static dc_ref cut_out(const dc_partitioner *p, dc_ref at, int dim, uint32_t a)
{
    dc_type t = dc_node_type(p->to, at);
    int64_t before = 1, behind = 1;
    for (int k = 0; k < t.rank; k++) {
        before *= k < dim ? t.dim[k] : 1;
        behind *= k > dim ? t.dim[k] : 1;
    }
    const int64_t n = p->mesh->size[a], part = t.dim[dim] / n;
    const dc_ref parts = dc_graph_reshape(p->to, at, 4, (int64_t[]){before, n, part, behind});
    t.dim[dim] = part;
    return dc_graph_reshape(p->to, dc_graph_gather(p->to, parts, p->index[a], 1, 0), t.rank, t.dim);
}

static void cut(route *w, const dc_sharding *want)
{
    for (uint32_t a = 0; a < w->p->mesh->naxis; a++) {
        const int dim = want->dim[a] - 1;
        if (want->dim[a] == w->s.dim[a])
            continue;
        if (w->at != 0)
            w->at = cut_out(w->p, w->at, dim, a);
        w->type.dim[dim] /= w->p->mesh->size[a];
        w->s.dim[a] = want->dim[a];
    }
}

static route take(dc_partitioner *p, dc_ref r, const dc_version *from, const dc_sharding *want,
                  bool make)
{
    route w = {.p = p, .s = from->s, .at = make ? from->at : 0};
    w.type = dc_shard_type(p, r, &from->s);
    add_up(&w, want);
    if (w.at != 0 && w.s.partial == 0)
        w.at = dc_graph_cast(p->to, w.at, (dc_dtype)dc_shard_node(p, r)->dtype);
    w.type.dtype = dc_shard_type(p, r, &w.s).dtype;
    gather(&w, want);
    cut(&w, want);
    return w;
}

/* The version that is nearest. */
static const dc_version *nearest(const dc_partitioner *p, dc_ref r, const dc_sharding *want,
                                 double *bytes)
{
    const dc_version *best = NULL;
    for (const dc_version *v = p->version[r]; v != NULL; v = v->next) {
        if (want->partial & ~(uint32_t)v->s.partial)
            continue; /* nobody splits a sum in terms again */
        const double cost = take((dc_partitioner *)(uintptr_t)p, r, v, want, false).bytes;
        if (best != NULL && cost >= *bytes)
            continue;
        best = v;
        *bytes = cost;
    }
    return best;
}

bool dc_shard_gives(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    return take((dc_partitioner *)(uintptr_t)p, r, p->version[r], s, false).bytes > 0;
}

/* ---- made again ---------------------------------------------------------------------------------- */

enum { COST_DEEP = 6 };

static bool only_splits_more(const dc_sharding *from, const dc_sharding *to)
{
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        if (from->dim[a] != 0 && from->dim[a] != to->dim[a])
            return false;
    return from->partial == 0 && to->partial == 0;
}

/* Is it cheap to compute, and does it say how its operands lie if it lies so? */
static bool may_make(const dc_partitioner *p, dc_ref r, const dc_sharding *s, dc_sharding *of)
{
    const dc_op op = (dc_op)dc_shard_node(p, r)->op;
    const bool kind = op == DC_OP_CONST || op == DC_OP_IOTA || dc_op_is(op, DC_CLASS_EW) ||
                      op == DC_OP_EXPAND || op == DC_OP_RESHAPE || op == DC_OP_PERMUTE;
    return kind && s->partial == 0 && dc_shard_of(p, r)->partial == 0 && dc_shard_back(p, r, s, of);
}

/* What is given to others, in bytes, if it is exchanged or if it is made of operands that are. */
static double cost_of(const dc_partitioner *p, dc_ref r, const dc_sharding *s, int deep);

static double cost_made(const dc_partitioner *p, dc_ref r, const dc_sharding *s, int deep)
{
    const dc_node *n = dc_shard_node(p, r);
    dc_sharding of[DC_MAX_TYPED];
    double all = 0;
    if (deep == 0 || !may_make(p, r, s, of))
        return INFINITY;
    for (int i = 0; i < n->nin; i++)
        all += cost_of(p, n->in[i], &of[i], deep - 1);
    return all;
}

static double cost_of(const dc_partitioner *p, dc_ref r, const dc_sharding *s, int deep)
{
    double bytes = 0;
    nearest(p, r, s, &bytes);
    if (bytes == 0)
        return 0;
    const double made = cost_made(p, r, s, deep);
    return made < bytes ? made : bytes;
}

static bool makes_again(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    dc_sharding of[DC_MAX_TYPED];
    double bytes = 0;
    if (!may_make(p, r, s, of))
        return false;
    nearest(p, r, s, &bytes);
    return only_splits_more(dc_shard_of(p, r), s) || cost_made(p, r, s, COST_DEEP) <= bytes;
}

dc_ref dc_shard_number(dc_partitioner *p, const dc_sharding *s, int dim)
{
    dc_ref number = 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++) {
        if (s->dim[a] != dim + 1)
            continue;
        if (number != 0)
            number = dc_graph_op2(p->to, DC_OP_MUL, number,
                                  dc_graph_like(p->to, number, (double)p->mesh->size[a]));
        number = number != 0 ? dc_graph_op2(p->to, DC_OP_ADD, number, p->index[a]) : p->index[a];
    }
    return number;
}

/* Positions of the part: those of its first element and on. In i32 or i64 until the end, where floats would round. */
static dc_ref positions(dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    const dc_node n = *dc_shard_node(p, r);
    const int axis = (int)n.attr[0];
    const dc_type t = dc_shard_type(p, r, s);
    const dc_ref number = dc_shard_number(p, s, axis);
    if (number == 0)
        return dc_graph_make(p->to, DC_OP_IOTA, NULL, 0, n.attr, 1, &t);
    dc_type whole = t;
    whole.dtype = t.dtype == DC_I64 || t.dtype == DC_U64 ? DC_I64 : DC_I32;
    int64_t ones[DC_MAX_RANK];
    for (int k = 0; k < t.rank; k++)
        ones[k] = 1;
    const dc_ref wide = dc_graph_cast(p->to, number, (dc_dtype)whole.dtype);
    const dc_ref first =
        dc_graph_op2(p->to, DC_OP_MUL, wide, dc_graph_like(p->to, wide, (double)t.dim[axis]));
    const dc_ref spread =
        dc_graph_expand(p->to, dc_graph_reshape(p->to, first, t.rank, ones), t.dim);
    const dc_ref here = dc_graph_make(p->to, DC_OP_IOTA, NULL, 0, n.attr, 1, &whole);
    return dc_graph_cast(p->to, dc_graph_op2(p->to, DC_OP_ADD, here, spread), (dc_dtype)t.dtype);
}

static dc_ref as(dc_partitioner *p, dc_ref r, const dc_sharding *s, int depth);

static dc_ref make_again(dc_partitioner *p, dc_ref r, const dc_sharding *s, int depth)
{
    const dc_node n = *dc_shard_node(p, r);
    dc_sharding of[DC_MAX_TYPED];
    dc_ref in[DC_MAX_TYPED];
    if (n.op == DC_OP_IOTA)
        return positions(p, r, s);
    if (!dc_shard_back(p, r, s, of))
        return 0;
    for (int i = 0; i < n.nin; i++)
        in[i] = as(p, n.in[i], &of[i], depth + 1);
    return dc_shard_make(p, r, in, s);
}

bool dc_shard_is_zero(const dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    while (n->op == DC_OP_EXPAND || n->op == DC_OP_RESHAPE) {
        r = n->in[0];
        n = dc_shard_node(p, r);
    }
    return dc_is_const(p->from, r, 0);
}

static dc_ref zero_terms(dc_partitioner *p, dc_ref r, const dc_sharding *s, int depth)
{
    dc_sharding summed = *s;
    summed.partial = 0;
    const dc_type t = dc_shard_type(p, r, s);
    return dc_graph_cast(p->to, as(p, r, &summed, depth + 1), (dc_dtype)t.dtype);
}

static dc_ref as(dc_partitioner *p, dc_ref r, const dc_sharding *s, int depth)
{
    double bytes;
    for (const dc_version *v = p->version[r]; v != NULL; v = v->next)
        if (dc_sharding_same(&v->s, s))
            return v->at;
    if (s->partial != 0 && dc_shard_is_zero(p, r)) {
        const dc_ref zero = zero_terms(p, r, s, depth);
        dc_shard_add(p, r, s, zero);
        return zero;
    }
    dc_ref at = depth < DEEPEST && makes_again(p, r, s) ? make_again(p, r, s, depth) : 0;
    if (at == 0)
        at = take(p, r, nearest(p, r, s, &bytes), s, true).at;
    dc_shard_add(p, r, s, at);
    return at;
}

dc_ref dc_shard_as(dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    return as(p, r, s, 0);
}

dc_ref dc_shard_whole(dc_partitioner *p, dc_ref r)
{
    const dc_sharding whole = {0};
    return dc_shard_as(p, r, &whole);
}

dc_sharding dc_shard_summed(const dc_partitioner *p, dc_ref r)
{
    dc_sharding s = *dc_shard_of(p, r);
    const uint8_t mask = s.partial;
    s.partial = 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++) {
        dc_sharding split = s;
        split.dim[a] = p->hint[r].dim[a];
        if ((mask >> a & 1) && split.dim[a] != 0 && dc_shard_fits(p, r, &split))
            s = split;
    }
    return s;
}

dc_ref dc_shard_reduce(dc_partitioner *p, dc_ref at, dc_combine by, uint32_t mask)
{
    const dc_group_axes group = dc_mesh_group(p->mesh, mask);
    const dc_exchange_attr x = {0, by, group, 0};
    const dc_type t = dc_node_type(p->to, at);
    if (mask == 0)
        return at;
    const dc_ref all = dc_graph_all_reduce(p->to, at, by, &group);
    note_step(p, all, mask, &t, dc_exchange_bytes(DC_OP_ALL_REDUCE, &x, &t));
    return all;
}

dc_ref dc_shard_make(dc_partitioner *p, dc_ref r, const dc_ref *in, const dc_sharding *s)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_type want = dc_shard_type(p, r, s);
    dc_ref wide[DC_MAX_TYPED];
    for (int i = 0; i < n->nin; i++)
        wide[i] = dc_shard_wide(p, r, s) && dc_node_at(p->to, in[i])->dtype == n->dtype
                      ? dc_graph_cast(p->to, in[i], DC_F32)
                      : in[i];
    return dc_graph_make(p->to, (dc_op)n->op, wide, n->nin, n->attr, n->nattr, &want);
}
