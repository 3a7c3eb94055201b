/*
 * Gradient rules of what moves elements and of contractions: movement operations, gather and scatter, dot
 * and convolution. Each is made of operations of the same kind.
 */
#include "core/autodiff/grad_impl.h"
#include "core/base/extent.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"

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

/* The matrix is symmetric, so its adjoint is its conjugate: the same with the other sign. */
void dc_grad_dft(const dc_vjp *v)
{
    const int64_t attr[2] = {v->n.attr[0], -v->n.attr[1]};
    dc_ref in[DC_MAX_TYPED];
    for (int i = 0; i < v->n.nin; i++)
        in[i] = i == 0 ? v->g : v->n.in[i];
    dc_vjp_give(v, 0, dc_graph_make(v->f, DC_OP_DFT, in, v->n.nin, attr, 2, NULL));
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

/* Elements of operand 2 whose integers are inside. */
static dc_ref arrivals(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    const dc_ref i = v->n.in[1];
    const dc_node index = *dc_node_at(f, i), in = dc_vjp_operand(v, 2);
    const int64_t n = dc_vjp_operand(v, 0).dim[axis];
    const dc_ref inside = dc_graph_op2(f, DC_OP_EQ, comparable(f, i, n), clamped(v, n));
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < in.rank; k++)
        dim[k] = k < nb                                    ? index.dim[k]
                 : k >= axis && k < axis + index.rank - nb ? index.dim[nb + k - axis]
                                                           : 1;
    return dc_graph_expand(f, dc_graph_reshape(f, inside, in.rank, dim), in.dim);
}

void dc_grad_scatter_add(const dc_vjp *v)
{
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, v->g);
    if (dc_vjp_wants(v, 2))
        give_updates(v, arrivals(v));
}

/* A value like the node's at the places of the elements of operand 2. */
static dc_ref read_back(const dc_vjp *v, dc_ref of)
{
    return dc_graph_gather(v->f, of, v->n.in[1], (int)v->n.attr[0], (int)v->n.attr[1]);
}

/* Such a scatter of other values. */
static dc_ref scattered(const dc_vjp *v, dc_op op, dc_ref x, dc_ref u)
{
    return dc_graph_scatter(v->f, op, x, v->n.in[1], u, (int)v->n.attr[0], (int)v->n.attr[1]);
}

/* Elements of both operands that are equal to the result share equally. */
static void give_to_winners(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref x = v->n.in[0], u = v->n.in[2];
    const dc_dtype t = (dc_dtype)v->n.dtype;
    if (dc_node_count(&v->n) == 0) {
        give_updates(v, 0);
        return;
    }
    const dc_ref stayed = dc_graph_op2(f, DC_OP_EQ, x, v->r);
    const dc_ref won =
        dc_graph_op2(f, DC_OP_AND, arrivals(v), dc_graph_op2(f, DC_OP_EQ, u, read_back(v, v->r)));
    const dc_ref count =
        scattered(v, DC_OP_SCATTER_ADD, dc_graph_cast(f, stayed, t), dc_graph_cast(f, won, t));
    const dc_ref share = dc_graph_op2(f, DC_OP_DIV, v->g, count);
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, dc_graph_op3(f, DC_OP_WHERE, stayed, share, dc_vjp_zero_like(v, share)));
    if (dc_vjp_wants(v, 2))
        dc_vjp_give(v, 2,
                    dc_graph_op3(f, DC_OP_WHERE, won, read_back(v, share), dc_vjp_zero_like(v, u)));
}

void dc_grad_scatter_max(const dc_vjp *v)
{
    give_to_winners(v);
}

void dc_grad_scatter_min(const dc_vjp *v)
{
    give_to_winners(v);
}

/*
 * The product of all others at the place: P / e, where P is the product of what is not zero there, and 0 if another one
 * is zero. In place of that 0 stands the sum of the other zeros where there is one of them, so that the gradient of the
 * gradient is right, too.
 */
typedef struct factors {
    dc_ref product, zeros,
        sum; /* P, how many are zero, their sum, as numbers are that the gradient has */
} factors;

static dc_ref others_product(dc_func *f, dc_ref e, const factors *at)
{
    const dc_ref nil = dc_graph_like(f, e, 0), one = dc_graph_like(f, e, 1);
    const dc_ref is_zero = dc_graph_op2(f, DC_OP_EQ, e, nil);
    const dc_ref rest =
        dc_graph_op2(f, DC_OP_DIV, at->product, dc_graph_op3(f, DC_OP_WHERE, is_zero, one, e));
    const dc_ref zeros =
        dc_graph_op2(f, DC_OP_SUB, at->zeros, dc_graph_op3(f, DC_OP_WHERE, is_zero, one, nil));
    const dc_ref sum =
        dc_graph_op2(f, DC_OP_SUB, at->sum, dc_graph_op3(f, DC_OP_WHERE, is_zero, e, nil));
    const dc_ref other =
        dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, zeros, one), sum, nil);
    return dc_graph_op2(
        f, DC_OP_MUL, rest,
        dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, zeros, nil), one, other));
}

void dc_grad_scatter_mul(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_dtype t = (dc_dtype)v->n.dtype, wide = dc_dtype_is_short(t) ? DC_F32 : t;
    const dc_ref g = dc_graph_cast(f, v->g, wide);
    dc_ref e[2], nil[2], one[2], is_zero[2];
    if (dc_node_count(&v->n) == 0) {
        give_updates(v, 0);
        return;
    }
    for (int k = 0; k < 2; k++) {
        e[k] = dc_graph_cast(f, v->n.in[2 * k], wide);
        nil[k] = dc_graph_like(f, e[k], 0);
        one[k] = dc_graph_like(f, e[k], 1);
        is_zero[k] = dc_graph_op2(f, DC_OP_EQ, e[k], nil[k]);
    }
#define OF(k, yes, no) dc_graph_op3(f, DC_OP_WHERE, is_zero[k], (yes)[k], (no)[k])
    const factors at = {scattered(v, DC_OP_SCATTER_MUL, OF(0, one, e), OF(1, one, e)),
                        scattered(v, DC_OP_SCATTER_ADD, OF(0, one, nil), OF(1, one, nil)),
                        scattered(v, DC_OP_SCATTER_ADD, OF(0, e, nil), OF(1, e, nil))};
#undef OF
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(
            v, 0, dc_graph_cast(f, dc_graph_op2(f, DC_OP_MUL, g, others_product(f, e[0], &at)), t));
    if (!dc_vjp_wants(v, 2))
        return;
    const factors there = {read_back(v, at.product), read_back(v, at.zeros), read_back(v, at.sum)};
    const dc_ref part =
        dc_graph_op2(f, DC_OP_MUL, read_back(v, g), others_product(f, e[1], &there));
    dc_vjp_give(v, 2, dc_graph_cast(f, dc_graph_op3(f, DC_OP_WHERE, arrivals(v), part, nil[1]), t));
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
