/*
 * Gradient rules of what computes: element-wise operations and reductions. Where a derivative jumps, the
 * choice is JAX's: abs has 0 at 0, ties of max and min share equally.
 */
#include "core/autodiff/grad_impl.h"
#include "core/base/extent.h"

/* ---- element-wise ---- */

void dc_grad_neg(const dc_vjp *v)
{
    dc_vjp_give(v, 0, dc_graph_op1(v->f, DC_OP_NEG, v->g));
}

void dc_grad_abs(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], zero = dc_vjp_zero_like(v, a);
    const dc_ref negative = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, a, zero),
                                         dc_graph_op1(f, DC_OP_NEG, v->g), zero);
    dc_vjp_give(v, 0,
                dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, zero, a), v->g, negative));
}

void dc_grad_exp(const dc_vjp *v)
{
    dc_vjp_give(v, 0, dc_graph_op2(v->f, DC_OP_MUL, v->g, v->r));
}

void dc_grad_log(const dc_vjp *v)
{
    dc_vjp_give(v, 0, dc_graph_op2(v->f, DC_OP_DIV, v->g, v->n.in[0]));
}

void dc_grad_sqrt(const dc_vjp *v)
{
    const dc_ref half = dc_graph_op2(v->f, DC_OP_MUL, v->g, dc_graph_like(v->f, v->g, 0.5));
    dc_vjp_give(v, 0, dc_graph_op2(v->f, DC_OP_DIV, half, v->r));
}

void dc_grad_expm1(const dc_vjp *v)
{
    dc_func *f = v->f;
    dc_vjp_give(v, 0,
                dc_graph_op2(f, DC_OP_MUL, v->g,
                             dc_graph_op2(f, DC_OP_ADD, v->r, dc_graph_like(f, v->r, 1))));
}

void dc_grad_log1p(const dc_vjp *v)
{
    const dc_ref a = v->n.in[0];
    dc_vjp_give(v, 0,
                dc_graph_op2(v->f, DC_OP_DIV, v->g,
                             dc_graph_op2(v->f, DC_OP_ADD, a, dc_graph_like(v->f, a, 1))));
}

void dc_grad_sin(const dc_vjp *v)
{
    dc_vjp_give(v, 0,
                dc_graph_op2(v->f, DC_OP_MUL, v->g, dc_graph_op1(v->f, DC_OP_COS, v->n.in[0])));
}

void dc_grad_cos(const dc_vjp *v)
{
    const dc_ref slope = dc_graph_op1(v->f, DC_OP_NEG, dc_graph_op1(v->f, DC_OP_SIN, v->n.in[0]));
    dc_vjp_give(v, 0, dc_graph_op2(v->f, DC_OP_MUL, v->g, slope));
}

void dc_grad_cast(const dc_vjp *v)
{
    dc_vjp_give(v, 0, dc_graph_cast(v->f, v->g, (dc_dtype)dc_vjp_operand(v, 0).dtype));
}

void dc_grad_add(const dc_vjp *v)
{
    for (int i = 0; i < 2; i++)
        if (dc_vjp_wants(v, i))
            dc_vjp_give(v, i, v->g);
}

void dc_grad_sub(const dc_vjp *v)
{
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, v->g);
    if (dc_vjp_wants(v, 1))
        dc_vjp_give(v, 1, dc_graph_op1(v->f, DC_OP_NEG, v->g));
}

void dc_grad_mul(const dc_vjp *v)
{
    for (int i = 0; i < 2; i++)
        if (dc_vjp_wants(v, i))
            dc_vjp_give(v, i, dc_graph_op2(v->f, DC_OP_MUL, v->g, v->n.in[1 - i]));
}

/* d (a / b) / db = -(a / b) / b */
void dc_grad_div(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref b = v->n.in[1];
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, dc_graph_op2(f, DC_OP_DIV, v->g, b));
    if (dc_vjp_wants(v, 1))
        dc_vjp_give(
            v, 1,
            dc_graph_op1(f, DC_OP_NEG,
                         dc_graph_op2(f, DC_OP_DIV, dc_graph_op2(f, DC_OP_MUL, v->g, v->r), b)));
}

/*
 * rem(a, b) = a - b * q with a whole q, flat except where it jumps. q comes from the remainder
 * itself, since trunc(a / b) may round to the wrong side of a jump; floor makes it whole again.
 */
void dc_grad_rem(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], b = v->n.in[1];
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, v->g);
    if (!dc_vjp_wants(v, 1))
        return;
    const dc_ref q = dc_graph_op2(f, DC_OP_DIV, dc_graph_op2(f, DC_OP_SUB, a, v->r), b);
    const dc_ref whole =
        dc_graph_op1(f, DC_OP_FLOOR, dc_graph_op2(f, DC_OP_ADD, q, dc_graph_like(f, q, 0.5)));
    dc_vjp_give(v, 1, dc_graph_op1(f, DC_OP_NEG, dc_graph_op2(f, DC_OP_MUL, v->g, whole)));
}

/* The operand that won gets all, equal ones half each. */
static void give_winner(const dc_vjp *v, bool larger_wins)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], b = v->n.in[1];
    const dc_ref half = dc_graph_op2(f, DC_OP_MUL, v->g, dc_graph_like(f, v->g, 0.5));
    const dc_ref tie = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, a, b), half,
                                    dc_vjp_zero_like(v, v->g));
    for (int i = 0; i < 2; i++) {
        const dc_ref mine = i == 0 ? a : b, other = i == 0 ? b : a;
        const dc_ref low = larger_wins ? other : mine, high = larger_wins ? mine : other;
        if (dc_vjp_wants(v, i))
            dc_vjp_give(
                v, i,
                dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, low, high), v->g, tie));
    }
}

void dc_grad_max(const dc_vjp *v)
{
    give_winner(v, true);
}

void dc_grad_min(const dc_vjp *v)
{
    give_winner(v, false);
}

void dc_grad_where(const dc_vjp *v)
{
    const dc_ref cond = v->n.in[0], zero = dc_vjp_zero_like(v, v->g);
    if (dc_vjp_wants(v, 1))
        dc_vjp_give(v, 1, dc_graph_op3(v->f, DC_OP_WHERE, cond, v->g, zero));
    if (dc_vjp_wants(v, 2))
        dc_vjp_give(v, 2, dc_graph_op3(v->f, DC_OP_WHERE, cond, zero, v->g));
}

/* ---- reductions ---- */

void dc_grad_rsum(const dc_vjp *v)
{
    const dc_node in = dc_vjp_operand(v, 0);
    dc_vjp_give(v, 0, dc_graph_unreduce(v->f, v->g, (uint32_t)v->n.attr[0], in.rank, in.dim));
}

/* Elements equal to the result share equally. */
static void share_among_winners(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_node in = dc_vjp_operand(v, 0);
    const dc_ref x = v->n.in[0];
    const uint32_t axes = (uint32_t)v->n.attr[0];
    const dc_ref won =
        dc_graph_op2(f, DC_OP_EQ, x, dc_graph_unreduce(f, v->r, axes, in.rank, in.dim));
    const dc_ref count =
        dc_graph_reduce(f, DC_OP_SUM, dc_graph_cast(f, won, (dc_dtype)in.dtype), axes);
    const dc_ref share = dc_graph_op2(f, DC_OP_DIV, v->g, count);
    const dc_ref spread = dc_graph_unreduce(f, share, axes, in.rank, in.dim);
    dc_vjp_give(v, 0, dc_graph_op3(f, DC_OP_WHERE, won, spread, dc_vjp_zero_like(v, x)));
}

void dc_grad_rmax(const dc_vjp *v)
{
    share_among_winners(v);
}

void dc_grad_rmin(const dc_vjp *v)
{
    share_among_winners(v);
}

/* The last axis moved on by so many places, to its end or its beginning; 1 where nothing arrives. */
static dc_ref shifted(dc_func *f, dc_ref x, int64_t by, bool to_end)
{
    const dc_node n = *dc_node_at(f, x);
    const int last = n.rank - 1;
    int64_t start[DC_MAX_RANK] = {0}, lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i < n.rank; i++) {
        step[i] = 1;
        dim[i] = n.dim[i] - (i == last ? by : 0);
    }
    (to_end ? lo : start)[last] = by;
    const dc_ref part = dc_graph_slice(f, x, start, step, dim);
    return dc_graph_pad(f, part, lo, step, n.dim, dc_bits_of((dc_dtype)n.dtype, 1));
}

/* For each element of the last axis, the product of those before it, or behind it. */
static dc_ref product_beside(dc_func *f, dc_ref x, bool before)
{
    const dc_node n = *dc_node_at(f, x);
    const int64_t count = n.dim[n.rank - 1];
    if (count <= 1)
        return dc_graph_like(f, x, 1);
    x = shifted(f, x, 1, before);
    for (int64_t by = 1; by < count; by *= 2)
        x = dc_graph_op2(f, DC_OP_MUL, x, shifted(f, x, by, before));
    return x;
}

/* With ones up to the bounds of axes whose size is known at run time, of those in the mask. */
static dc_ref at_bounds(dc_func *f, dc_ref x, uint32_t axes)
{
    const dc_node n = *dc_node_at(f, x);
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    bool any = false;
    for (int i = 0; i < n.rank; i++) {
        step[i] = 1;
        dim[i] = axes >> i & 1 ? dc_extent_bound(n.dim[i]) : n.dim[i];
        any = any || dim[i] != n.dim[i];
    }
    return any ? dc_graph_pad(f, x, lo, step, dim, dc_bits_of((dc_dtype)n.dtype, 1)) : x;
}

static dc_ref up_to(dc_func *f, dc_ref x, int rank, const int64_t *dim)
{
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    bool any = false;
    for (int i = 0; i < rank; i++) {
        step[i] = 1;
        any = any || dim[i] != dc_node_at(f, x)->dim[i];
    }
    return any ? dc_graph_slice(f, x, start, step, dim) : x;
}

/*
 * The product of all others: of those before an element and those behind it, so that zeros are
 * nothing special, in gradients of any order. The dropped axes become one, the last.
 */
void dc_grad_rprod(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_node whole = dc_vjp_operand(v, 0);
    const dc_ref all = at_bounds(f, v->n.in[0], (uint32_t)v->n.attr[0]);
    const dc_node in = *dc_node_at(f, all);
    const uint32_t axes = (uint32_t)v->n.attr[0];
    int64_t perm[DC_MAX_RANK], back[DC_MAX_RANK], moved[DC_MAX_RANK], flat[DC_MAX_RANK + 1];
    int rank = 0, kept = 0;
    for (int i = 0; i < in.rank; i++)
        if ((axes >> i & 1) == 0) {
            perm[rank++] = i;
            flat[kept++] = in.dim[i];
        }
    flat[kept] = 1;
    for (int i = 0; i < in.rank; i++)
        if (axes >> i & 1) {
            perm[rank++] = i;
            flat[kept] *= in.dim[i]; /* numbers: the axes are at their bounds */
        }
    for (int i = 0; i < in.rank; i++) {
        back[perm[i]] = i;
        moved[i] = in.dim[perm[i]];
    }
    if (kept == DC_MAX_RANK) { /* no axis is dropped */
        dc_vjp_give(v, 0, v->g);
        return;
    }
    const dc_ref x = dc_graph_reshape(f, dc_graph_permute(f, all, perm), kept + 1, flat);
    const dc_ref others =
        dc_graph_op2(f, DC_OP_MUL, product_beside(f, x, true), product_beside(f, x, false));
    const dc_ref as_in = dc_graph_permute(f, dc_graph_reshape(f, others, in.rank, moved), back);
    const dc_ref part =
        dc_graph_op2(f, DC_OP_MUL, dc_graph_unreduce(f, v->g, axes, in.rank, in.dim), as_in);
    dc_vjp_give(v, 0, up_to(f, part, whole.rank, whole.dim));
}
