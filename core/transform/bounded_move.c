/*
 * Movement along axes whose size is known at run time, and integers that index such. Elements that do not lie where
 * they would with the bound for the size are picked by their places.
 */
#include "core/transform/bounded_impl.h"

/* first + i * step for i of so many, i32. */
static dc_ref places(dc_func *f, dc_ref first, int64_t step, int64_t n)
{
    const dc_type t = dc_type_make(DC_I32, 1, &n);
    const dc_ref i =
        dc_graph_op2(f, DC_OP_MUL, dc_bound_iota(f, &t, 0), dc_graph_const(f, &t, (double)step));
    return dc_graph_op2(f, DC_OP_ADD, i, dc_bound_spread(f, first, &t));
}

/* Elements of x along the axis at first + i * step; of an axis without any, zeros. */
static dc_ref pick_along(dc_func *f, dc_ref x, int axis, dc_ref first, int64_t step, int64_t n)
{
    dc_type t = dc_node_type(f, x);
    const bool none = t.dim[axis] == 0;
    t.dim[axis] = n;
    return none ? dc_graph_const(f, &t, 0)
                : dc_graph_gather(f, x, places(f, first, step, n), axis, 0);
}

/* Are n elements from lo by step inside of a dim? (Bounds of sums may be larger than what they reach.) */
static bool fits(int64_t lo, int64_t step, int64_t n, int64_t dim)
{
    return n == 0 || lo + (n - 1) * step < dim;
}

dc_ref dc_bound_flip(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    const dc_type one = dc_type_scalar(DC_I32);
    dc_func *f = l->to;
    uint32_t fixed = (uint32_t)n->attr[0];
    dc_ref v = dc_bound_operand(l, n->in[0]);
    for (int i = 0; i < n->rank; i++) {
        if (!dc_extent_is(n->dim[i]) || (n->attr[0] >> i & 1) == 0)
            continue;
        const dc_ref last =
            dc_graph_op2(f, DC_OP_SUB, dc_bound_size(l, n->dim[i]), dc_graph_const(f, &one, 1));
        v = pick_along(f, v, i, last, -1, dc_extent_bound(n->dim[i]));
        fixed &= ~(1u << i);
    }
    return fixed != 0 ? dc_graph_flip(f, v, fixed) : v;
}

dc_ref dc_bound_slice(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r);
    dc_func *f = l->to;
    const dc_type t = dc_bound_type(l->from, r);
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK];
    dc_ref v = dc_bound_operand(l, n->in[0]);
    for (int i = 0; i < n->rank; i++) {
        start[i] = n->attr[i];
        step[i] = n->attr[n->rank + i];
        if (!dc_extent_is(start[i]) && fits(start[i], step[i], t.dim[i], dc_node_at(f, v)->dim[i]))
            continue;
        v = pick_along(f, v, i, dc_bound_size(l, start[i]), step[i], t.dim[i]);
        start[i] = 0;
        step[i] = 1;
    }
    return dc_graph_slice(f, v, start, step, t.dim);
}

/* result[p] is v[p - lo] along the axis where that is one of so many elements. */
static dc_ref shifted(const lowering *l, dc_ref v, int axis, int64_t lo, int64_t size, int64_t dim,
                      uint64_t fill)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    const int64_t bits = (int64_t)fill;
    dc_func *f = l->to;
    const dc_ref at = dc_bound_size(l, lo),
                 end = dc_graph_op2(f, DC_OP_ADD, at, dc_bound_size(l, size));
    const dc_ref from = dc_graph_op2(f, DC_OP_SUB, dc_graph_const(f, &i32, 0), at);
    v = pick_along(f, v, axis, from, 1, dim);
    const dc_type t = dc_node_type(f, v);
    const dc_ref p = dc_bound_iota(f, &t, axis);
    const dc_ref below = dc_graph_op2(f, DC_OP_LT, p, dc_bound_spread(f, at, &t));
    const dc_ref above = dc_graph_op2(f, DC_OP_LE, dc_bound_spread(f, end, &t), p);
    const dc_ref rest = dc_graph_make(f, DC_OP_CONST, NULL, 0, &bits, 1, &t);
    return dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_OR, below, above), rest, v);
}

/* Axes along which nothing is between the last element and the end of the result, whatever the size is. */
static uint32_t kept_axes(const dc_node *n, const dc_node *x)
{
    uint32_t axes = 0;
    for (int i = 0; i < n->rank; i++)
        axes |= (uint32_t)(n->attr[i] == 0 && n->attr[n->rank + i] == 1 && n->dim[i] == x->dim[i])
                << i;
    return axes;
}

/* What lies between the last element and the end of the result is `fill`, which stands behind the operand's size. */
dc_status dc_bound_pad(const lowering *l, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const uint64_t fill = (uint64_t)n->attr[2 * n->rank];
    const dc_type is = dc_bound_type(l->from, n->in[0]), want = dc_bound_type(l->from, r);
    int64_t lo[DC_MAX_RANK], step[DC_MAX_RANK];
    dc_ref v = l->map[n->in[0]];
    if (dc_node_at(l->to, v)->op != DC_OP_CONST) /* dc_bound_mask knows one */
        v = dc_bound_with_sizes(l, v, x->dim, x->rank);
    v = dc_bound_mask(l, v, x->dim, ((1u << n->rank) - 1) & ~kept_axes(n, x), fill);
    for (int i = 0; i < n->rank; i++) {
        lo[i] = n->attr[i];
        step[i] = n->attr[n->rank + i];
        if (!dc_extent_is(lo[i]) && fits(lo[i], step[i], is.dim[i], want.dim[i]))
            continue;
        if (step[i] != 1)
            return dc_bound_refuse(l, r, "a margin known at run time and a step");
        v = shifted(l, v, i, lo[i], x->dim[i], want.dim[i], fill);
        lo[i] = 0;
    }
    *out = dc_graph_pad(l->to, v, lo, step, want.dim, fill);
    return DC_OK;
}

/* ---- integers that index ---------------------------------------------------------------------- */

/* Integers that index, as i32 or i64; those above all sizes stay so. */
static dc_ref index_wide(const lowering *l, dc_ref old)
{
    const dc_dtype t = (dc_dtype)dc_node_at(l->from, old)->dtype;
    const dc_dtype wide = t == DC_U32 || t == DC_U64 || t == DC_I64 ? DC_I64 : DC_I32;
    dc_func *f = l->to;
    dc_ref v = l->map[old];
    if (t == DC_U64)
        v = dc_graph_op2(f, DC_OP_MIN, v, dc_graph_like(f, v, 0x1p62));
    return t == wide ? v : dc_graph_cast(f, v, wide);
}

dc_ref dc_bound_gather(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const int64_t dim = x->dim[n->attr[0]];
    const dc_type one = dc_type_scalar(DC_I32);
    dc_func *f = l->to;
    const dc_type want = dc_bound_type(l->from, r);
    dc_ref index = l->map[n->in[1]];
    if (dc_extent_bound(dim) == 0) /* there is nothing, whatever the sizes */
        return dc_graph_const(f, &want, 0);
    if (dc_extent_is(dim)) {
        index = index_wide(l, n->in[1]);
        const dc_type t = dc_node_type(f, index);
        const dc_ref last =
            dc_graph_op2(f, DC_OP_SUB, dc_bound_size(l, dim), dc_graph_const(f, &one, 1));
        index = dc_graph_op2(f, DC_OP_MIN, index,
                             dc_bound_spread(f, dc_graph_cast(f, last, (dc_dtype)t.dtype), &t));
    }
    return dc_graph_make(f, DC_OP_GATHER, (dc_ref[]){dc_bound_operand(l, n->in[0]), index}, 2,
                         n->attr, n->nattr, NULL);
}

/* Integers behind their size are outside of every axis. */
dc_ref dc_bound_scatter(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, r), *i = dc_node_at(l->from, n->in[1]);
    dc_ref index = l->map[n->in[1]];
    bool any = false;
    for (int k = 0; k < i->rank; k++)
        any = any || dc_extent_is(i->dim[k]);
    if (any) {
        index = index_wide(l, n->in[1]);
        const dc_dtype t = (dc_dtype)dc_node_at(l->to, index)->dtype;
        index = dc_bound_mask(l, index, i->dim, (1u << i->rank) - 1, dc_bits_of(t, -1));
    }
    const dc_node *x = dc_node_at(l->from, n->in[0]);
    const dc_ref of = dc_bound_with_sizes(l, l->map[n->in[0]], x->dim, x->rank);
    return dc_graph_make(l->to, (dc_op)n->op, (dc_ref[]){of, index, dc_bound_operand(l, n->in[2])},
                         3, n->attr, n->nattr, NULL);
}
