/*
 * Reverse-mode gradient: a function and a scalar node in, nodes for its derivatives out.
 *
 * The walk goes from the loss down. A node's cotangent is d loss / d node, of the node's own type;
 * when the walk reaches a node, all its users have added their part. Active nodes are those that a
 * wrt node reaches through floats; only they get a cotangent. Every gradient named in core/graph/ops.def
 * is one function <grad>_vjp that turns the cotangent of a node into parts for its active operands.
 * Parts are ordinary nodes, so gradients of gradients need nothing more.
 *
 * Where a derivative jumps, the choice is JAX's: abs has 0 at 0, ties of max and min share equally,
 * flat operations (floor, comparisons, whatever leaves the floats) have 0.
 */
#include "core/graph/grad.h"

#include "core/graph/conv.h"
#include "core/graph/custom.h"
#include "core/graph/dot.h"
#include "core/graph/gradsum.h"

typedef struct vjp {
    dc_job *j;
    dc_func *f;
    dc_ref r, g; /* the node, which is also its value; its cotangent */
    dc_node n;   /* a copy, since making nodes moves the array */
    const bool *active;
    dc_ref *cotangent;
    const dc_gradpart **part; /* by ref: the last part of its cotangent so far */
} vjp;

/* A rule runs if an operand wants its part; with one operand it need not ask. */
static bool wants(const vjp *v, int i)
{
    return v->active[v->n.in[i]];
}

/* Adds a part to the cotangent of operand i. */
static void give(const vjp *v, int i, dc_ref part)
{
    dc_ref *sum = &v->cotangent[v->n.in[i]];
    dc_gradpart *p = DC_NEW(&v->j->scratch, dc_gradpart);
    *sum = *sum == 0 ? part : dc_graph_op2(v->f, DC_OP_ADD, *sum, part);
    *p = (dc_gradpart){part, v->part[v->n.in[i]]};
    v->part[v->n.in[i]] = p;
}

static dc_node operand(const vjp *v, int i)
{
    return *dc_node_at(v->f, v->n.in[i]);
}

static dc_ref zero_like(const vjp *v, dc_ref r)
{
    return dc_graph_like(v->f, r, 0);
}

/* ---- element-wise ---- */

static void neg_vjp(const vjp *v)
{
    give(v, 0, dc_graph_op1(v->f, DC_OP_NEG, v->g));
}

static void abs_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], zero = zero_like(v, a);
    const dc_ref negative = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, a, zero),
                                         dc_graph_op1(f, DC_OP_NEG, v->g), zero);
    give(v, 0, dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, zero, a), v->g, negative));
}

static void exp_vjp(const vjp *v)
{
    give(v, 0, dc_graph_op2(v->f, DC_OP_MUL, v->g, v->r));
}

static void log_vjp(const vjp *v)
{
    give(v, 0, dc_graph_op2(v->f, DC_OP_DIV, v->g, v->n.in[0]));
}

static void sqrt_vjp(const vjp *v)
{
    const dc_ref half = dc_graph_op2(v->f, DC_OP_MUL, v->g, dc_graph_like(v->f, v->g, 0.5));
    give(v, 0, dc_graph_op2(v->f, DC_OP_DIV, half, v->r));
}

static void expm1_vjp(const vjp *v)
{
    dc_func *f = v->f;
    give(v, 0,
         dc_graph_op2(f, DC_OP_MUL, v->g,
                      dc_graph_op2(f, DC_OP_ADD, v->r, dc_graph_like(f, v->r, 1))));
}

static void log1p_vjp(const vjp *v)
{
    const dc_ref a = v->n.in[0];
    give(v, 0,
         dc_graph_op2(v->f, DC_OP_DIV, v->g,
                      dc_graph_op2(v->f, DC_OP_ADD, a, dc_graph_like(v->f, a, 1))));
}

/* 2 / sqrt(pi) exp(-a^2); the factor is no number of 16 bits, so those are computed in f32. */
static void erf_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_dtype t = (dc_dtype)v->n.dtype, wide = dc_dtype_is_short(t) ? DC_F32 : t;
    const dc_ref a = wide != t ? dc_graph_cast(f, v->n.in[0], wide) : v->n.in[0];
    const dc_ref g = wide != t ? dc_graph_cast(f, v->g, wide) : v->g;
    const dc_ref bell =
        dc_graph_op1(f, DC_OP_EXP, dc_graph_op1(f, DC_OP_NEG, dc_graph_op2(f, DC_OP_MUL, a, a)));
    const dc_ref slope = dc_graph_op2(f, DC_OP_MUL, bell, dc_graph_like(f, a, 1.1283791670955126));
    const dc_ref product = dc_graph_op2(f, DC_OP_MUL, g, slope);
    give(v, 0, wide != t ? dc_graph_cast(f, product, t) : product);
}

static void sin_vjp(const vjp *v)
{
    give(v, 0, dc_graph_op2(v->f, DC_OP_MUL, v->g, dc_graph_op1(v->f, DC_OP_COS, v->n.in[0])));
}

static void cos_vjp(const vjp *v)
{
    const dc_ref slope = dc_graph_op1(v->f, DC_OP_NEG, dc_graph_op1(v->f, DC_OP_SIN, v->n.in[0]));
    give(v, 0, dc_graph_op2(v->f, DC_OP_MUL, v->g, slope));
}

static void cast_vjp(const vjp *v)
{
    give(v, 0, dc_graph_cast(v->f, v->g, (dc_dtype)operand(v, 0).dtype));
}

static void add_vjp(const vjp *v)
{
    for (int i = 0; i < 2; i++)
        if (wants(v, i))
            give(v, i, v->g);
}

static void sub_vjp(const vjp *v)
{
    if (wants(v, 0))
        give(v, 0, v->g);
    if (wants(v, 1))
        give(v, 1, dc_graph_op1(v->f, DC_OP_NEG, v->g));
}

static void mul_vjp(const vjp *v)
{
    for (int i = 0; i < 2; i++)
        if (wants(v, i))
            give(v, i, dc_graph_op2(v->f, DC_OP_MUL, v->g, v->n.in[1 - i]));
}

/* d (a / b) / db = -(a / b) / b */
static void div_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_ref b = v->n.in[1];
    if (wants(v, 0))
        give(v, 0, dc_graph_op2(f, DC_OP_DIV, v->g, b));
    if (wants(v, 1))
        give(v, 1,
             dc_graph_op1(f, DC_OP_NEG,
                          dc_graph_op2(f, DC_OP_DIV, dc_graph_op2(f, DC_OP_MUL, v->g, v->r), b)));
}

/*
 * rem(a, b) = a - b * q with a whole q, flat except where it jumps. q comes from the remainder
 * itself, since trunc(a / b) may round to the wrong side of a jump; floor makes it whole again.
 */
static void rem_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], b = v->n.in[1];
    if (wants(v, 0))
        give(v, 0, v->g);
    if (!wants(v, 1))
        return;
    const dc_ref q = dc_graph_op2(f, DC_OP_DIV, dc_graph_op2(f, DC_OP_SUB, a, v->r), b);
    const dc_ref whole =
        dc_graph_op1(f, DC_OP_FLOOR, dc_graph_op2(f, DC_OP_ADD, q, dc_graph_like(f, q, 0.5)));
    give(v, 1, dc_graph_op1(f, DC_OP_NEG, dc_graph_op2(f, DC_OP_MUL, v->g, whole)));
}

/* The operand that won gets all, equal ones half each. */
static void win_vjp(const vjp *v, bool larger_wins)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], b = v->n.in[1];
    const dc_ref half = dc_graph_op2(f, DC_OP_MUL, v->g, dc_graph_like(f, v->g, 0.5));
    const dc_ref tie =
        dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, a, b), half, zero_like(v, v->g));
    for (int i = 0; i < 2; i++) {
        const dc_ref mine = i == 0 ? a : b, other = i == 0 ? b : a;
        const dc_ref low = larger_wins ? other : mine, high = larger_wins ? mine : other;
        if (wants(v, i))
            give(v, i,
                 dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, low, high), v->g, tie));
    }
}

static void max_vjp(const vjp *v)
{
    win_vjp(v, true);
}

static void min_vjp(const vjp *v)
{
    win_vjp(v, false);
}

static void where_vjp(const vjp *v)
{
    const dc_ref cond = v->n.in[0], zero = zero_like(v, v->g);
    if (wants(v, 1))
        give(v, 1, dc_graph_op3(v->f, DC_OP_WHERE, cond, v->g, zero));
    if (wants(v, 2))
        give(v, 2, dc_graph_op3(v->f, DC_OP_WHERE, cond, zero, v->g));
}

/* ---- reductions ---- */

static void rsum_vjp(const vjp *v)
{
    const dc_node in = operand(v, 0);
    give(v, 0, dc_graph_unreduce(v->f, v->g, (uint32_t)v->n.attr[0], in.rank, in.dim));
}

/* Elements equal to the result share equally. */
static void winners_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_node in = operand(v, 0);
    const dc_ref x = v->n.in[0];
    const uint32_t axes = (uint32_t)v->n.attr[0];
    const dc_ref won =
        dc_graph_op2(f, DC_OP_EQ, x, dc_graph_unreduce(f, v->r, axes, in.rank, in.dim));
    const dc_ref count =
        dc_graph_reduce(f, DC_OP_SUM, dc_graph_cast(f, won, (dc_dtype)in.dtype), axes);
    const dc_ref share = dc_graph_op2(f, DC_OP_DIV, v->g, count);
    const dc_ref spread = dc_graph_unreduce(f, share, axes, in.rank, in.dim);
    give(v, 0, dc_graph_op3(f, DC_OP_WHERE, won, spread, zero_like(v, x)));
}

static void rmax_vjp(const vjp *v)
{
    winners_vjp(v);
}

static void rmin_vjp(const vjp *v)
{
    winners_vjp(v);
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

/*
 * The product of all others: of those before an element and those behind it, so that zeros are
 * nothing special, in gradients of any order. The dropped axes become one, the last.
 */
static void rprod_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const dc_node in = operand(v, 0);
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
            flat[kept] *= in.dim[i];
        }
    for (int i = 0; i < in.rank; i++) {
        back[perm[i]] = i;
        moved[i] = in.dim[perm[i]];
    }
    if (kept == DC_MAX_RANK) { /* no axis is dropped */
        give(v, 0, v->g);
        return;
    }
    const dc_ref x = dc_graph_reshape(f, dc_graph_permute(f, v->n.in[0], perm), kept + 1, flat);
    const dc_ref others =
        dc_graph_op2(f, DC_OP_MUL, product_beside(f, x, true), product_beside(f, x, false));
    const dc_ref as_in = dc_graph_permute(f, dc_graph_reshape(f, others, in.rank, moved), back);
    give(v, 0,
         dc_graph_op2(f, DC_OP_MUL, dc_graph_unreduce(f, v->g, axes, in.rank, in.dim), as_in));
}

/* ---- movement: every element goes back to where it came from ---- */

static void reshape_vjp(const vjp *v)
{
    const dc_node in = operand(v, 0);
    give(v, 0, dc_graph_reshape(v->f, v->g, in.rank, in.dim));
}

static void permute_vjp(const vjp *v)
{
    int64_t back[DC_MAX_RANK];
    for (int i = 0; i < v->n.rank; i++)
        back[v->n.attr[i]] = i;
    give(v, 0, dc_graph_permute(v->f, v->g, back));
}

static void expand_vjp(const vjp *v)
{
    const dc_node in = operand(v, 0);
    uint32_t grown = 0;
    for (int i = 0; i < in.rank; i++)
        if (in.dim[i] != v->n.dim[i])
            grown |= 1u << i;
    give(v, 0,
         dc_graph_reshape(v->f, dc_graph_reduce(v->f, DC_OP_SUM, v->g, grown), in.rank, in.dim));
}

static void slice_vjp(const vjp *v)
{
    const dc_node in = operand(v, 0);
    give(v, 0, dc_graph_pad(v->f, v->g, v->n.attr, v->n.attr + in.rank, in.dim, 0));
}

/* An operand without elements may lie anywhere, also where no slice may start. */
static void pad_vjp(const vjp *v)
{
    const dc_node in = operand(v, 0);
    if (dc_node_count(&in) == 0)
        give(v, 0, zero_like(v, v->n.in[0]));
    else
        give(v, 0, dc_graph_slice(v->f, v->g, v->n.attr, v->n.attr + in.rank, in.dim));
}

static void flip_vjp(const vjp *v)
{
    give(v, 0, dc_graph_flip(v->f, v->g, (uint32_t)v->n.attr[0]));
}

/* ---- indexing ---- */

/* The integers, those outside 0..n-1 moved to the nearest inside, as gather reads them. */
static dc_ref clamped(const vjp *v, int64_t n)
{
    dc_func *f = v->f;
    dc_ref i = v->n.in[1];
    const dc_dtype t = (dc_dtype)dc_node_at(f, i)->dtype;
    if (dc_dtype_kind(t) == DC_KIND_SINT)
        i = dc_graph_op2(f, DC_OP_MAX, i, dc_graph_like(f, i, 0));
    if (dc_value_of(t, dc_bits_of(t, (double)(n - 1))) == (double)(n - 1)) /* else all are less */
        i = dc_graph_op2(f, DC_OP_MIN, i, dc_graph_like(f, i, (double)(n - 1)));
    return i;
}

static void gather_vjp(const vjp *v)
{
    const int axis = (int)v->n.attr[0];
    const dc_ref x = v->n.in[0], i = clamped(v, operand(v, 0).dim[axis]);
    give(v, 0,
         dc_graph_scatter(v->f, DC_OP_SCATTER_ADD, zero_like(v, x), i, v->g, axis,
                          (int)v->n.attr[1]));
}

/* What elements of operand 2 get: the cotangent where they went; 0 where they went nowhere. */
static void updates_vjp(const vjp *v, dc_ref arrived)
{
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    if (dc_node_count(dc_node_at(v->f, v->r)) == 0) {
        give(v, 2, zero_like(v, v->n.in[2]));
        return;
    }
    const dc_ref at = dc_graph_gather(v->f, v->g, v->n.in[1], axis, nb);
    give(v, 2, dc_graph_op3(v->f, DC_OP_WHERE, arrived, at, zero_like(v, at)));
}

/* The number of each element of operand 2, and -1 where none is put, tell which one is seen. */
static void scatter_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    const dc_ref x = v->n.in[0], i = v->n.in[1], u = v->n.in[2];
    const dc_node in = operand(v, 2);
    if (wants(v, 0))
        give(v, 0, dc_graph_scatter(f, DC_OP_SCATTER, v->g, i, zero_like(v, u), axis, nb));
    if (!wants(v, 2))
        return;
    const int64_t count = dc_node_count(&in), along = 0;
    const dc_type line = dc_type_make(DC_I32, 1, &count);
    dc_type board = dc_node_type(f, x);
    board.dtype = line.dtype;
    const dc_ref number = dc_graph_reshape(
        f, dc_graph_make(f, DC_OP_IOTA, NULL, 0, &along, 1, &line), in.rank, in.dim);
    const dc_ref last =
        dc_graph_scatter(f, DC_OP_SCATTER, dc_graph_const(f, &board, -1), i, number, axis, nb);
    if (dc_node_count(dc_node_at(f, last)) == 0)
        updates_vjp(v, 0);
    else
        updates_vjp(v, dc_graph_op2(f, DC_OP_EQ, dc_graph_gather(f, last, i, axis, nb), number));
}

static void scatter_add_vjp(const vjp *v)
{
    dc_func *f = v->f;
    const int axis = (int)v->n.attr[0], nb = (int)v->n.attr[1];
    const dc_ref i = v->n.in[1];
    if (wants(v, 0))
        give(v, 0, v->g);
    if (!wants(v, 2))
        return;
    const dc_node index = *dc_node_at(f, i), in = operand(v, 2);
    const dc_ref inside = dc_graph_op2(f, DC_OP_EQ, i, clamped(v, operand(v, 0).dim[axis]));
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < in.rank; k++)
        dim[k] = k < nb                                    ? index.dim[k]
                 : k >= axis && k < axis + index.rank - nb ? index.dim[nb + k - axis]
                                                           : 1;
    updates_vjp(v, dc_graph_expand(f, dc_graph_reshape(f, inside, in.rank, dim), in.dim));
}

/* ---- given by hand ---- */

static void custom_vjp(const vjp *v)
{
    dc_ref part[DC_CUSTOM_INPUTS];
    dc_custom_pull(v->j, v->f, v->r, v->g, part);
    for (int i = 0; i < (int)v->n.attr[0]; i++)
        if (part[i] != 0 && wants(v, 1 + i))
            give(v, 1 + i, part[i]);
}

static void barrier_vjp(const vjp *v)
{
    if (wants(v, 0))
        give(v, 0, v->g);
}

/* ---- dot ---- */

/*
 * The product of the cotangent and the other operand, over the other's free axes. For operand 0 its
 * axes are batch, free, contracted; for operand 1 batch, contracted, free (so that the gradient of a
 * weight x:matmul(w) comes out as it lies). Contracted ones stand in the order of the other
 * operand.
 */
static dc_ref dot_part(const vjp *v, const dc_dot *d, int side)
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

static void dot_vjp(const vjp *v)
{
    const dc_dot d = dc_dot_of(v->f, &v->n);
    for (int side = 0; side < 2; side++) {
        const int64_t *theirs = d.contract[1 - side];
        const int free_at = d.nbatch + (side == 0 ? 0 : d.ncontract);
        const int contracted_at = d.nbatch + (side == 0 ? d.nfree[0] : 0);
        int64_t from[DC_MAX_RANK] = {0}; /* axis of the part, by axis of the operand */
        if (!wants(v, side))
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
        give(v, side, dc_graph_permute(v->f, dot_part(v, &d, side), from));
    }
}

static void conv_vjp(const vjp *v)
{
    for (int side = 0; side < 2; side++)
        if (wants(v, side))
            give(v, side, dc_conv_grad(v->f, v->r, v->g, side));
}

/* ---- the walk ---- */

/* clang-format off */
#define none_vjp NULL
static void (*const rules[DC_OP__COUNT])(const vjp *) = {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = grad##_vjp,
#define RED(id, lua, combine, type, names, grad, lo, hi) [DC_OP_##id] = grad##_vjp,
#define MOV(id, lua, names, grad)                        [DC_OP_##id] = grad##_vjp,
#define CON(id, lua, type, names, grad, lo, hi)          [DC_OP_##id] = grad##_vjp,
#define IDX(id, lua, n, type, grad, lo, hi)              [DC_OP_##id] = grad##_vjp,
#define SAME(id, lua, n, grad)                           [DC_OP_##id] = grad##_vjp,
#include "core/graph/ops.def"
};
/* clang-format on */

/* Up to the loss: what a wrt node reaches through floats and operations with a gradient. */
static bool *active_nodes(dc_job *j, const dc_func *f, dc_ref loss, const dc_ref *wrt, int n)
{
    bool *active = DC_NEW_ARRAY(&j->scratch, bool, loss + 1);
    for (int i = 0; i < n; i++)
        if (wrt[i] <= loss)
            active[wrt[i]] = true;
    for (dc_ref r = 1; r <= loss; r++) {
        const dc_node *node = dc_node_at(f, r);
        const bool flows = rules[node->op] != NULL && dc_dtype_is_float((dc_dtype)node->dtype);
        for (int i = 0; flows && i < dc_node_inputs(node); i++)
            active[r] = active[r] || active[node->in[i]];
    }
    return active;
}

/* What the loss is made of, on any path. */
static bool *read_nodes(dc_job *j, const dc_func *f, dc_ref loss)
{
    bool *read = DC_NEW_ARRAY(&j->scratch, bool, loss + 1);
    read[loss] = true;
    for (dc_ref r = loss; r > 0; r--)
        for (int i = 0; read[r] && i < dc_node_inputs(dc_node_at(f, r)); i++)
            read[dc_node_at(f, r)->in[i]] = true;
    return read;
}

/* New nodes come from where the node that they differentiate came from. */
static void run_rule(const vjp *v)
{
    dc_func *f = v->f;
    const char *where = f->where, *path = f->path;
    if (v->n.origin != 0) {
        f->where = f->origins.at[v->n.origin].where;
        f->path = f->origins.at[v->n.origin].path;
    }
    rules[v->n.op](v);
    f->where = where;
    f->path = path;
}

static dc_status check_request(dc_job *j, const dc_func *f, dc_ref loss, const dc_ref *wrt, int n)
{
    const dc_type t = dc_node_type(f, loss);
    if (t.rank != 0 || !dc_dtype_is_float((dc_dtype)t.dtype))
        return dc_fail(j, DC_ERR_GRAD_SCALAR, &(dc_fact){.op = "grad", .type = {t}});
    for (int i = 0; i < n; i++) {
        const dc_type w = dc_node_type(f, wrt[i]);
        if (!dc_dtype_is_float((dc_dtype)w.dtype))
            return dc_fail(j, DC_ERR_DTYPE,
                           &(dc_fact){.op = "grad", .type = {w}, .word = {"a float"}});
    }
    return DC_OK;
}

/*
 * From node y, whose cotangent is given, down; a part for each active node in what is returned. Below
 * a leaf nothing is followed.
 */
static dc_ref *walk(dc_job *j, dc_func *f, dc_ref y, dc_ref g, const bool *active, const bool *leaf)
{
    dc_ref *cotangent = DC_NEW_ARRAY(&j->scratch, dc_ref, y + 1);
    const dc_gradpart **part = DC_NEW_ARRAY(&j->scratch, const dc_gradpart *, y + 1);
    cotangent[y] = g;
    for (dc_ref r = y; r > 0; r--) {
        cotangent[r] = dc_gradsum(&j->scratch, f, part[r], cotangent[r]);
        const dc_node *node = dc_node_at(f, r);
        const vjp v = {j, f, r, cotangent[r], *node, active, cotangent, part};
        bool wanted = false;
        for (int i = 0; i < dc_node_inputs(node); i++)
            wanted = wanted || active[node->in[i]];
        if (wanted && v.g != 0 && rules[v.n.op] != NULL && !leaf[r])
            run_rule(&v);
    }
    return cotangent;
}

dc_status dc_grad(dc_job *j, dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *out)
{
    DC_TRY(check_request(j, f, loss, wrt, n));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const bool *active = active_nodes(j, f, loss, wrt, n), *read = read_nodes(j, f, loss);
    const bool *no_leaf = DC_NEW_ARRAY(&j->scratch, bool, loss + 1);
    const dc_ref *cotangent = walk(j, f, loss, dc_graph_like(f, loss, 1), active, no_leaf);
    for (int i = 0; i < n; i++) {
        out[i] = 0;
        if (wrt[i] > loss || !read[wrt[i]])
            continue;
        out[i] = cotangent[wrt[i]] != 0 ? cotangent[wrt[i]] : dc_graph_like(f, wrt[i], 0);
    }
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

dc_status dc_grad_pull(dc_job *j, dc_func *f, dc_ref y, dc_ref cotangent, const dc_ref *wrt, int n,
                       dc_ref *out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const bool *active = active_nodes(j, f, y, wrt, n);
    bool *leaf = DC_NEW_ARRAY(&j->scratch, bool, y + 1);
    for (int i = 0; i < n; i++)
        if (wrt[i] <= y)
            leaf[wrt[i]] = true;
    const dc_ref *parts = walk(j, f, y, cotangent, active, leaf);
    for (int i = 0; i < n; i++)
        out[i] = wrt[i] <= y ? parts[wrt[i]] : 0;
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}
