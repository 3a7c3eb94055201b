/*
 * Gradient rules of what moves elements and of contractions: movement operations, gather and scatter, dot
 * and convolution. Each is made of operations of the same kind.
 */
#include "core/base/extent.h"
#include "core/graph/conv.h"
#include "core/graph/dot.h"
#include "core/graph/grad_impl.h"

/* ---- movement: every element goes back to where it came from ---- */

void dc_grad_reshape(const dc_vjp *v)
{
    const dc_node in = dc_vjp_operand(v, 0);
    dc_vjp_give(v, 0, dc_graph_reshape(v->f, v->g, in.rank, in.dim));
}

void dc_grad_permute(const dc_vjp *v)
{
    int64_t back[DC_MAX_RANK];
    for (int i = 0; i < v->n.rank; i++)
        back[v->n.attr[i]] = i;
    dc_vjp_give(v, 0, dc_graph_permute(v->f, v->g, back));
}

void dc_grad_expand(const dc_vjp *v)
{
    const dc_node in = dc_vjp_operand(v, 0);
    uint32_t grown = 0;
    for (int i = 0; i < in.rank; i++)
        if (in.dim[i] != v->n.dim[i])
            grown |= 1u << i;
    dc_vjp_give(
        v, 0,
        dc_graph_reshape(v->f, dc_graph_reduce(v->f, DC_OP_SUM, v->g, grown), in.rank, in.dim));
}

void dc_grad_slice(const dc_vjp *v)
{
    const dc_node in = dc_vjp_operand(v, 0);
    dc_vjp_give(v, 0, dc_graph_pad(v->f, v->g, v->n.attr, v->n.attr + in.rank, in.dim, 0));
}

/* An operand without elements may lie anywhere, also where no slice may start. */
void dc_grad_pad(const dc_vjp *v)
{
    const dc_node in = dc_vjp_operand(v, 0);
    if (dc_node_count(&in) == 0)
        dc_vjp_give(v, 0, dc_vjp_zero_like(v, v->n.in[0]));
    else
        dc_vjp_give(v, 0, dc_graph_slice(v->f, v->g, v->n.attr, v->n.attr + in.rank, in.dim));
}

void dc_grad_flip(const dc_vjp *v)
{
    dc_vjp_give(v, 0, dc_graph_flip(v->f, v->g, (uint32_t)v->n.attr[0]));
}

/* ---- indexing ---- */

/* A scalar in the dims of r. */
static dc_ref spread_as(dc_func *f, dc_ref scalar, dc_ref r)
{
    const dc_node like = *dc_node_at(f, r);
    return dc_graph_unreduce(f, scalar, (1u << like.rank) - 1, like.rank, like.dim);
}

/* The integers of a dtype that the size n has, too; those above all sizes stay so. */
static dc_ref comparable(dc_func *f, dc_ref i, int64_t n)
{
    const dc_dtype t = (dc_dtype)dc_node_at(f, i)->dtype;
    if (!dc_extent_is(n))
        return i;
    if (t == DC_U64)
        i = dc_graph_op2(f, DC_OP_MIN, i, dc_graph_like(f, i, 0x1p62));
    return dc_graph_cast(f, i, t == DC_U32 || t == DC_U64 || t == DC_I64 ? DC_I64 : DC_I32);
}

/* The integers, those outside 0..n-1 moved to the nearest inside, as gather reads them. */
static dc_ref clamped(const dc_vjp *v, int64_t n)
{
    dc_func *f = v->f;
    dc_ref i = comparable(f, v->n.in[1], n);
    const dc_dtype t = (dc_dtype)dc_node_at(f, i)->dtype;
    if (dc_dtype_kind(t) == DC_KIND_SINT)
        i = dc_graph_op2(f, DC_OP_MAX, i, dc_graph_like(f, i, 0));
    if (dc_extent_is(n)) {
        const dc_type one = dc_type_scalar(DC_I32);
        const dc_ref last =
            dc_graph_op2(f, DC_OP_SUB, dc_graph_extent(f, n), dc_graph_const(f, &one, 1));
        return dc_graph_op2(f, DC_OP_MIN, i, spread_as(f, dc_graph_cast(f, last, t), i));
    }
    if (dc_value_of(t, dc_bits_of(t, (double)(n - 1))) == (double)(n - 1)) /* else all are less */
        i = dc_graph_op2(f, DC_OP_MIN, i, dc_graph_like(f, i, (double)(n - 1)));
    return i;
}

void dc_grad_gather(const dc_vjp *v)
{
    const int axis = (int)v->n.attr[0];
    const dc_ref x = v->n.in[0], i = clamped(v, dc_vjp_operand(v, 0).dim[axis]);
    dc_vjp_give(v, 0,
                dc_graph_scatter(v->f, DC_OP_SCATTER_ADD, dc_vjp_zero_like(v, x), i, v->g, axis,
                                 (int)v->n.attr[1]));
}

/* What elements of operand 2 get: the cotangent where they went; 0 where they went nowhere. */
static void give_updates(const dc_vjp *v, dc_ref arrived)
{
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    if (dc_node_count(dc_node_at(v->f, v->r)) == 0) {
        dc_vjp_give(v, 2, dc_vjp_zero_like(v, v->n.in[2]));
        return;
    }
    const dc_ref at = dc_graph_gather(v->f, v->g, v->n.in[1], axis, nb);
    dc_vjp_give(v, 2, dc_graph_op3(v->f, DC_OP_WHERE, arrived, at, dc_vjp_zero_like(v, at)));
}

/* A number of each element, i32: its position, or that in an array of the bounds. */
static dc_ref numbers_of(dc_func *f, const dc_node *n)
{
    const dc_type t = dc_type_make(DC_I32, n->rank, n->dim);
    const int64_t count = dc_extent_product(f->module->extents, n->rank, n->dim), along = 0;
    if (!dc_extent_is(count) && count != DC_EXTENT_NONE) {
        const dc_type line = dc_type_make(DC_I32, 1, &count);
        const dc_ref i = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &along, 1, &line);
        return dc_graph_reshape(f, i, n->rank, n->dim);
    }
    dc_ref sum = dc_graph_const(f, &t, 0);
    int64_t step = 1;
    for (int64_t k = n->rank - 1; k >= 0; k--) {
        const dc_ref i = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &k, 1, &t);
        const dc_ref part = dc_graph_op2(f, DC_OP_MUL, i, dc_graph_const(f, &t, (double)step));
        sum = dc_graph_op2(f, DC_OP_ADD, sum, part);
        step *= dc_extent_bound(n->dim[k]);
    }
    return sum;
}

/* The number of each element of operand 2, and -1 where none is put, tell which one is seen. */
void dc_grad_scatter(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    const dc_ref x = v->n.in[0], i = v->n.in[1], u = v->n.in[2];
    const dc_node in = dc_vjp_operand(v, 2);
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0,
                    dc_graph_scatter(f, DC_OP_SCATTER, v->g, i, dc_vjp_zero_like(v, u), axis, nb));
    if (!dc_vjp_wants(v, 2))
        return;
    dc_type board = dc_node_type(f, x);
    board.dtype = DC_I32;
    const dc_ref number = numbers_of(f, &in);
    const dc_ref last =
        dc_graph_scatter(f, DC_OP_SCATTER, dc_graph_const(f, &board, -1), i, number, axis, nb);
    if (dc_node_count(dc_node_at(f, last)) == 0)
        give_updates(v, 0);
    else
        give_updates(v, dc_graph_op2(f, DC_OP_EQ, dc_graph_gather(f, last, i, axis, nb), number));
}

void dc_grad_scatter_add(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    const dc_ref i = v->n.in[1];
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, v->g);
    if (!dc_vjp_wants(v, 2))
        return;
    const dc_node index = *dc_node_at(f, i), in = dc_vjp_operand(v, 2);
    const int64_t n = dc_vjp_operand(v, 0).dim[axis];
    const dc_ref inside = dc_graph_op2(f, DC_OP_EQ, comparable(f, i, n), clamped(v, n));
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < in.rank; k++)
        dim[k] = k < nb                                    ? index.dim[k]
                 : k >= axis && k < axis + index.rank - nb ? index.dim[nb + k - axis]
                                                           : 1;
    give_updates(v, dc_graph_expand(f, dc_graph_reshape(f, inside, in.rank, dim), in.dim));
}

/* ---- dot ---- */

/*
 * The product of the cotangent and the other operand, over the other's free axes. For operand 0 its
 * axes are batch, free, contracted; for operand 1 batch, contracted, free (so that the gradient of a
 * weight x:matmul(w) comes out as it lies). Contracted ones stand in the order of the other
 * operand.
 */
static dc_ref dot_part(const dc_vjp *v, const dc_dot *d, int side)
{
    const int other = 1 - side; /* the place of the other operand in the part's product, too */
    dc_dot part = {.nbatch = d->nbatch, .ncontract = d->nfree[other]};
    for (int i = 0; i < d->nbatch; i++) {
        part.batch[side][i] = i;
        part.batch[other][i] = d->batch[other][i];
    }
    for (int i = 0; i < d->nfree[other]; i++) {
        part.contract[side][i] = d->nbatch + (other == 1 ? d->nfree[0] : 0) + i;
        part.contract[other][i] = d->free[other][i];
    }
    const dc_ref o = v->n.in[other];
    return side == 0 ? dc_dot_make(v->f, v->g, o, &part) : dc_dot_make(v->f, o, v->g, &part);
}

void dc_grad_dot(const dc_vjp *v)
{
    const dc_dot d = dc_dot_of(v->f, &v->n);
    for (int side = 0; side < 2; side++) {
        const int64_t *theirs = d.contract[1 - side];
        const int free_at = d.nbatch + (side == 0 ? 0 : d.ncontract);
        const int contracted_at = d.nbatch + (side == 0 ? d.nfree[0] : 0);
        int64_t from[DC_MAX_RANK] = {0}; /* axis of the part, by axis of the operand */
        if (!dc_vjp_wants(v, side))
            continue;
        for (int i = 0; i < d.nbatch; i++)
            from[d.batch[side][i]] = i;
        for (int i = 0; i < d.nfree[side]; i++)
            from[d.free[side][i]] = free_at + i;
        for (int i = 0; i < d.ncontract; i++) {
            int before = 0;
            for (int k = 0; k < d.ncontract; k++)
                before += theirs[k] < theirs[i];
            from[d.contract[side][i]] = contracted_at + before;
        }
        dc_vjp_give(v, side, dc_graph_permute(v->f, dot_part(v, &d, side), from));
    }
}

void dc_grad_conv(const dc_vjp *v)
{
    for (int side = 0; side < 2; side++)
        if (dc_vjp_wants(v, side))
            dc_vjp_give(v, side, dc_conv_grad(v->f, v->r, v->g, side));
}
