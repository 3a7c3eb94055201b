/*
 * Gradients against central differences, driven by the op table: every row that names a gradient is
 * tried with random operands in its lo..hi, shapes with ones and primes, operands that come through
 * broadcasting, permutation, reduction, slicing, flipping, padding, or twice from one parameter.
 * First and second order. The seed is printed; argument 1 sets it.
 *
 * Differences are taken in double precision (DC_EVAL_WIDE) with five points:
 *   d = (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12h,   h = 2^-12
 * Their error is h^4/30 |L^(5)| + 1.5 eps/h S, where S adds up the magnitudes of all terms. Inside
 * lo..hi the steepest row is log at 0.1: first order 24/x^5 gives 3e-10, second order 120/x^6 gives
 * 2e-8; rounding, with S at most 5000, gives 7e-9. TOLERANCE is some four times that, one for all
 * rows.
 *
 * A kink within reach (max of near equals, a jump of rem) shows as a disagreement between the
 * differences with h and h/2. This depends on the function alone, not on the gradient under test;
 * such elements are left out, and there must be few. Conventions at kinks: test_grad_rules.c.
 */
#include "core/autodiff/custom.h"
#include "core/autodiff/grad.h"
#include "core/eval/eval.h"
#include "core/ir/dft.h"
#include "core/ir/exchange.h"
#include "core/ir/running.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/convgen.h"
#include "tests/unit/hostgen.h"
#include "tests/unit/rng.h"

static const double TOLERANCE = 1e-7, STEP = 0x1p-12, KINK = 1e-6;
enum { MAX_PARAMS = 16, MAX_ELEMENTS = 4096, ROUNDS = 40 };

typedef struct trial {
    dc_job job;
    rng rnd;
    dc_module *m;
    dc_func *f;
    double lo, hi;
    int wrt[MAX_PARAMS], nwrt;              /* indices of float parameters that are operands */
    double value[MAX_PARAMS][MAX_ELEMENTS]; /* of every parameter; bool ones reuse the memory */
} trial;

static long elements, left_out;

static void begin(trial *t, uint64_t seed, double lo, double hi)
{
    t->rnd = (rng){seed};
    t->m = dc_module_new();
    t->f = dc_func_new(t->m, "trial");
    t->lo = lo;
    t->hi = hi;
    t->nwrt = 0;
}

static int64_t count_of(const trial *t, dc_ref r)
{
    return dc_node_count(dc_node_at(t->f, r));
}

/* A parameter filled from lo..hi. */
static dc_ref add_param(trial *t, int rank, const int64_t *dim, double lo, double hi)
{
    const dc_type type = dc_type_make(DC_F32, rank, dim);
    const uint32_t at = t->f->param.n;
    const int64_t n = dc_type_count(&type);
    if (at >= MAX_PARAMS || n > MAX_ELEMENTS)
        DC_BUG("trial is too large");
    for (int64_t i = 0; i < n; i++)
        t->value[at][i] = rng_uniform(&t->rnd, lo, hi);
    return dc_graph_param(t->f, &type, "x");
}

static dc_ref add_wrt(trial *t, int rank, const int64_t *dim)
{
    t->wrt[t->nwrt++] = (int)t->f->param.n;
    return add_param(t, rank, dim, t->lo, t->hi);
}

static dc_ref add_flags(trial *t, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(DC_BOOL, rank, dim);
    uint8_t *flag = (uint8_t *)t->value[t->f->param.n];
    for (int64_t i = 0; i < dc_type_count(&type); i++)
        flag[i] = (uint8_t)rng_below(&t->rnd, 2);
    return dc_graph_param(t->f, &type, "flags");
}

/* ---- operands that reach the operation in different ways; values stay within lo..hi ---- */

static dc_ref plain(trial *t, int rank, const int64_t *dim)
{
    return add_wrt(t, rank, dim);
}

static dc_ref broadcast(trial *t, int rank, const int64_t *dim)
{
    int64_t small[DC_MAX_RANK];
    for (int i = 0; i < rank; i++)
        small[i] = rng_below(&t->rnd, 2) ? 1 : dim[i];
    return dc_graph_expand(t->f, add_wrt(t, rank, small), dim);
}

static dc_ref spread_scalar(trial *t, int rank, const int64_t *dim)
{
    return dc_graph_unreduce(t->f, add_wrt(t, 0, NULL), (1u << rank) - 1, rank, dim);
}

static void shuffle(trial *t, int n, int64_t *perm)
{
    for (int i = 0; i < n; i++)
        perm[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int k = rng_below(&t->rnd, i + 1);
        const int64_t swap = perm[i];
        perm[i] = perm[k];
        perm[k] = swap;
    }
}

static dc_ref permuted(trial *t, int rank, const int64_t *dim)
{
    int64_t perm[DC_MAX_RANK], from[DC_MAX_RANK];
    shuffle(t, rank, perm);
    for (int i = 0; i < rank; i++)
        from[perm[i]] = dim[i];
    return dc_graph_permute(t->f, add_wrt(t, rank, from), perm);
}

/* A mean over a new axis. */
static dc_ref reduced(trial *t, int rank, const int64_t *dim)
{
    int64_t more[DC_MAX_RANK];
    const int at = rng_below(&t->rnd, rank + 1);
    for (int i = 0; i <= rank; i++)
        more[i] = i < at ? dim[i] : i == at ? 2 : dim[i - 1];
    const dc_ref sum = dc_graph_reduce(t->f, DC_OP_SUM, add_wrt(t, rank + 1, more), 1u << at);
    return dc_graph_op2(t->f, DC_OP_MUL, sum, dc_graph_like(t->f, sum, 0.5));
}

static dc_ref sliced(trial *t, int rank, const int64_t *dim)
{
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK], from[DC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        start[i] = rng_below(&t->rnd, 2);
        step[i] = 1 + rng_below(&t->rnd, 2);
        from[i] = start[i] + (dim[i] - 1) * step[i] + 1 + rng_below(&t->rnd, 2);
    }
    return dc_graph_slice(t->f, add_wrt(t, rank, from), start, step, dim);
}

/* The first along axis 0 is the fill, which is inside lo..hi. */
static dc_ref padded(trial *t, int rank, const int64_t *dim)
{
    int64_t lo[DC_MAX_RANK] = {1}, step[DC_MAX_RANK], from[DC_MAX_RANK];
    if (rank == 0)
        return plain(t, rank, dim);
    for (int i = 0; i < rank; i++) {
        step[i] = 1;
        from[i] = i == 0 ? dim[i] - 1 : dim[i];
    }
    const float fill = (float)rng_uniform(&t->rnd, t->lo, t->hi);
    return dc_graph_pad(t->f, add_wrt(t, rank, from), lo, step, dim, dc_f32_bits(fill));
}

static dc_ref flipped(trial *t, int rank, const int64_t *dim)
{
    const uint32_t axes = (uint32_t)rng_below(&t->rnd, 1 << rank);
    return dc_graph_flip(t->f, add_wrt(t, rank, dim), axes);
}

static dc_ref reshaped(trial *t, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(DC_F32, rank, dim);
    const int64_t n = dc_type_count(&type);
    return dc_graph_reshape(t->f, add_wrt(t, 1, &n), rank, dim);
}

static dc_ref (*const ways[])(trial *, int, const int64_t *) = {
    plain, plain, broadcast, spread_scalar, permuted, reduced, sliced, padded, flipped, reshaped,
};

static dc_ref operand(trial *t, int rank, const int64_t *dim)
{
    return ways[rng_below(&t->rnd, DC_COUNTOF(ways))](t, rank, dim);
}

/* ---- differences ---- */

static double loss_at(trial *t)
{
    const void *params[MAX_PARAMS];
    double loss = 0;
    for (uint32_t i = 0; i < t->f->param.n; i++)
        params[i] = t->value[i];
    CHECK_EQ(dc_eval(&t->job, t->f, DC_EVAL_WIDE, params, (void *const[]){&loss}), DC_OK);
    return loss;
}

static double difference(trial *t, double *x, double h)
{
    const double at = *x;
    double l[4];
    for (int i = 0; i < 4; i++) {
        *x = at + h * (i < 2 ? i - 2 : i - 1);
        l[i] = loss_at(t);
    }
    *x = at;
    return (8 * (l[2] - l[1]) - (l[3] - l[0])) / (12 * h);
}

/* Does the gradient node (0: none) agree with the differences of the loss, at every element? */
static bool agrees(trial *t, dc_ref loss, dc_ref gradient, int param)
{
    static double g[MAX_ELEMENTS];
    const int64_t n = count_of(t, t->f->param.at[param]);
    const void *params[MAX_PARAMS];
    bool ok = true;
    memset(g, 0, sizeof g);
    for (uint32_t i = 0; i < t->f->param.n; i++)
        params[i] = t->value[i];
    t->f->result.n = 0;
    if (gradient != 0) {
        DC_PUSH(t->f->result, gradient);
        CHECK_EQ(count_of(t, gradient), n);
        CHECK_EQ(dc_eval(&t->job, t->f, DC_EVAL_WIDE, params, (void *const[]){g}), DC_OK);
        t->f->result.n = 0;
    }
    DC_PUSH(t->f->result, loss);
    for (int64_t i = 0; i < n; i++) {
        const double d = difference(t, &t->value[param][i], STEP);
        const double closer = difference(t, &t->value[param][i], STEP / 2);
        elements++;
        if (!(fabs(d - closer) <= KINK * (1 + fabs(d)))) {
            left_out++;
            continue;
        }
        if (!(fabs(g[i] - d) <= TOLERANCE * (1 + fabs(d)))) {
            printf("    parameter %d element %d: %.12g, by differences %.12g\n", param, (int)i,
                   g[i], d);
            ok = false;
        }
    }
    return ok;
}

/* sum(r * w) with weights of either sign, so that cotangents differ from element to element. */
static dc_ref weighted_sum(trial *t, dc_ref r)
{
    const dc_node n = *dc_node_at(t->f, r);
    const dc_ref w = add_param(t, n.rank, n.dim, 0.5, 1.5);
    double *value = t->value[t->f->param.n - 1];
    for (int64_t i = 0; i < dc_node_count(&n); i++)
        value[i] = rng_below(&t->rnd, 2) ? value[i] : -value[i];
    return dc_graph_reduce(t->f, DC_OP_SUM, dc_graph_op2(t->f, DC_OP_MUL, r, w),
                           (1u << n.rank) - 1);
}

static bool first_order(trial *t, dc_ref loss, dc_ref *gradient)
{
    dc_ref wrt[MAX_PARAMS];
    bool ok = true;
    for (int i = 0; i < t->nwrt; i++)
        wrt[i] = t->f->param.at[t->wrt[i]];
    CHECK_EQ(dc_grad(&t->job, t->f, loss, wrt, t->nwrt, gradient), DC_OK);
    for (int i = 0; i < t->nwrt; i++)
        ok = agrees(t, loss, gradient[i], t->wrt[i]) && ok;
    return ok;
}

static bool second_order(trial *t, const dc_ref *gradient)
{
    dc_ref loss = 0, again[MAX_PARAMS];
    for (int i = 0; i < t->nwrt; i++) {
        if (gradient[i] == 0)
            continue;
        const dc_ref part = weighted_sum(t, gradient[i]);
        loss = loss == 0 ? part : dc_graph_op2(t->f, DC_OP_ADD, loss, part);
    }
    return loss == 0 || first_order(t, loss, again);
}

/* Consumes the trial. */
static void check(trial *t, dc_ref value, const char *what, uint64_t seed)
{
    dc_ref gradient[MAX_PARAMS];
    const dc_ref loss = weighted_sum(t, value);
    if (!CHECK(first_order(t, loss, gradient)))
        printf("    %s, first order, seed %llu\n", what, (unsigned long long)seed);
    else if (!CHECK(second_order(t, gradient)))
        printf("    %s, second order, seed %llu\n", what, (unsigned long long)seed);
    dc_module_free(t->m);
    dc_job_fini(&t->job);
    dc_job_init(&t->job, NULL, NULL);
}

/* ---- the rows ---- */

static const struct {
    int rank;
    int64_t dim[4];
} shapes[] = {{0, {0}},    {1, {1}},       {1, {5}},       {2, {1, 7}},
              {2, {2, 3}}, {3, {3, 1, 2}}, {3, {2, 3, 2}}, {2, {5, 1}}};

typedef enum type_rule {
    RULE_any,
    RULE_num,
    RULE_flt,
    RULE_bits,
    RULE_sel,
    RULE_u32,
    RULE_half,
    RULE_pattern,
    RULE_int
} type_rule;

/* clang-format off */
static const struct {
    const char *grad;
    type_rule type;
} rows[DC_OP__COUNT] = {
#define RULE_accum RULE_num
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = {#grad, RULE_##type},
#define RED(id, lua, combine, type, names, grad, lo, hi) [DC_OP_##id] = {#grad, RULE_##type},
#define MOV(id, lua, names, grad)                        [DC_OP_##id] = {#grad, RULE_any},
#define SRC(id, lua)                                     [DC_OP_##id] = {"none", RULE_any},
#define CON(id, lua, type, names, grad, lo, hi)          [DC_OP_##id] = {#grad, RULE_##type},
#define FFT(id, lua, grad)                               [DC_OP_##id] = {#grad, RULE_any},
#define SAME(id, lua, n, grad)                           [DC_OP_##id] = {#grad, RULE_any},
#define PART(id, lua, n)                                 [DC_OP_##id] = {"none", RULE_any},
#define CTL(id, lua, n)                                  [DC_OP_##id] = {"none", RULE_any}, /* test_control */
#define COM(id, lua, grad, lo, hi)                       [DC_OP_##id] = {#grad, RULE_any},
#define MSG(id, lua, n, grad)                            [DC_OP_##id] = {"none", RULE_any}, /* test_exchange */
#define IDX(id, lua, n, combine, type, grad, lo, hi)     [DC_OP_##id] = {#grad, RULE_any},
#define HST(id, lua, n, rule, grad, lo, hi)              [DC_OP_##id] = {#grad, RULE_any},
#include "core/ir/ops.def"
};
/* clang-format on */

static dc_ref element_wise(trial *t, dc_op op, int rank, const int64_t *dim)
{
    dc_ref in[4];
    const int n = dc_op_row_of(op)->n;
    const dc_type want = dc_type_make(DC_F32, rank, dim);
    const bool one_for_all = n > 1 && rng_below(&t->rnd, 6) == 0;
    for (int i = 0; i < n; i++)
        if (rows[op].type == RULE_sel && i == 0)
            in[i] = add_flags(t, rank, dim);
        else if (one_for_all && i == n - 1)
            in[i] = in[i - 1];
        else
            in[i] = operand(t, rank, dim);
    return dc_graph_make(t->f, op, in, n, NULL, 0, op == DC_OP_CAST ? &want : NULL);
}

static dc_ref reduction(trial *t, dc_op op, int rank, const int64_t *dim)
{
    const int64_t axes = rng_below(&t->rnd, 1 << rank);
    const dc_ref a = operand(t, rank, dim);
    return dc_graph_make(t->f, op, &a, 1, &axes, 1, NULL);
}

/* A movement operation that gives [dim]: what `operand` puts in front of others, on its own. */
static dc_ref movement(trial *t, dc_op op, int rank, const int64_t *dim)
{
    switch ((int)op) {
    case DC_OP_RESHAPE:
        return reshaped(t, rank, dim);
    case DC_OP_PERMUTE:
        return permuted(t, rank, dim);
    case DC_OP_EXPAND:
        return broadcast(t, rank, dim);
    case DC_OP_SLICE:
        return sliced(t, rank, dim);
    case DC_OP_PAD:
        return padded(t, rank, dim);
    case DC_OP_FLIP:
        return flipped(t, rank, dim);
    default:
        break;
    }
    DC_BUG("no case for %s", dc_op_row_of(op)->name);
}

static dc_ref convolution(trial *t)
{
    dc_conv c;
    int64_t dim[2][DC_CONV_AXES];
    convgen(&t->rnd, &c, dim[0], dim[1]);
    const dc_ref x = operand(t, 2 + c.n, dim[0]);
    return dc_graph_conv(t->f, x, operand(t, 2 + c.n, dim[1]), &c);
}

/* Each side: its own axes, batch and contracted ones (of shared extents) in any order. */
static dc_ref contraction(trial *t, dc_op op)
{
    static const int64_t extents[4] = {1, 2, 3, 5};
    const int nb = rng_below(&t->rnd, 3), nc = rng_below(&t->rnd, 3);
    int64_t shared[4], attr[2 + 8] = {nb, nc};
    dc_ref in[2];
    for (int i = 0; i < nb + nc; i++)
        shared[i] = extents[rng_below(&t->rnd, 3)];
    for (int side = 0; side < 2; side++) {
        const int own = rng_below(&t->rnd, 3), rank = nb + nc + own;
        int64_t place[DC_MAX_RANK], dim[DC_MAX_RANK];
        shuffle(t, rank, place);
        for (int i = 0; i < rank; i++)
            dim[place[i]] =
                i < nb + nc ? shared[i] : extents[rng_below(&t->rnd, side == 0 ? 4 : 3)];
        for (int i = 0; i < nb; i++)
            attr[2 + side * nb + i] = place[i];
        for (int i = 0; i < nc; i++)
            attr[2 + 2 * nb + side * nc + i] = place[nb + i];
        in[side] = side == 1 && rng_below(&t->rnd, 2) ? operand(t, rank, dim) : plain(t, rank, dim);
    }
    return dc_graph_make(t->f, op, in, 2, attr, 2 + 2 * (nb + nc), NULL);
}

/* Integers for an axis, now and then one outside. */
static dc_ref add_integers(trial *t, int rank, const int64_t *dim, int64_t axis)
{
    const dc_type type = dc_type_make(DC_I32, rank, dim);
    int32_t *at = (int32_t *)t->value[t->f->param.n];
    for (int64_t i = 0; i < dc_type_count(&type); i++)
        at[i] = (int32_t)rng_below(&t->rnd, (int)axis + 2) - 1;
    return dc_graph_param(t->f, &type, "i");
}

static dc_ref indexing(trial *t, dc_op op, int rank, const int64_t *shape)
{
    static const int64_t extents[4] = {1, 2, 3, 5};
    int64_t dim[DC_MAX_RANK] = {3}, index[DC_MAX_RANK], picked[DC_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = shape[i];
    rank = rank == 0 ? 1 : rank;
    const int axis = rng_below(&t->rnd, rank), nb = rng_below(&t->rnd, axis + 1);
    const int own = rng_below(&t->rnd, 3), n = rank - 1 + own;
    for (int i = 0; i < nb + own; i++)
        index[i] = i < nb ? dim[i] : extents[rng_below(&t->rnd, 4)];
    for (int i = 0; i < n; i++)
        picked[i] = i < axis ? dim[i] : i < axis + own ? index[nb + i - axis] : dim[i + 1 - own];
    const dc_ref x = operand(t, rank, dim), i = add_integers(t, nb + own, index, dim[axis]);
    if (op == DC_OP_GATHER)
        return dc_graph_gather(t->f, x, i, axis, nb);
    return dc_graph_scatter(t->f, op, x, i, operand(t, n, picked), axis, nb);
}

/* A matrix that is none of the awkward ones: what is drawn, made small, and 2, 3, 4 ... on its diagonal. */
static dc_ref matrix(trial *t, int rank, const int64_t *dim)
{
    dc_func *f = t->f;
    const dc_ref x = plain(t, rank, dim);
    const int64_t row = rank - 2, column = rank - 1;
    dc_type i32 = dc_node_type(f, x);
    i32.dtype = DC_I32;
    const dc_ref i = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &row, 1, &i32);
    const dc_ref k = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &column, 1, &i32);
    const dc_ref value =
        dc_graph_cast(f, dc_graph_op2(f, DC_OP_ADD, i, dc_graph_const(f, &i32, 2)), DC_F32);
    const dc_ref diagonal = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, i, k), value,
                                         dc_graph_like(f, value, 0));
    return dc_graph_op2(f, DC_OP_ADD, diagonal,
                        dc_graph_op2(f, DC_OP_MUL, x, dc_graph_like(f, x, 0.1)));
}

static dc_ref symmetric(trial *t, int rank, const int64_t *dim)
{
    const dc_ref a = matrix(t, rank, dim);
    return dc_graph_op2(
        t->f, DC_OP_ADD, a,
        dc_graph_permute(t->f, a,
                         rank == 2 ? (const int64_t[]){1, 0} : (const int64_t[]){0, 2, 1}));
}

/* Symmetric, each column by a number of its own: eigenvalues are real, so that vectors have no other phases. */
static dc_ref of_real_values(trial *t, int rank, const int64_t *dim)
{
    dc_func *f = t->f;
    const dc_ref a = symmetric(t, rank, dim);
    const int64_t column = rank - 1;
    dc_type i32 = dc_node_type(f, a);
    i32.dtype = DC_I32;
    const dc_ref k = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &column, 1, &i32);
    const dc_ref by = dc_graph_op2(f, DC_OP_ADD, k, dc_graph_const(f, &i32, 1));
    return dc_graph_op2(f, DC_OP_MUL, a, dc_graph_cast(f, by, DC_F32));
}

/* Sorted along the last axis; factors of the last two. */
static dc_ref on_host(trial *t, dc_op op, int rank, const int64_t *shape)
{
    static const int64_t square[][2] = {{1, 1}, {3, 3}, {4, 4}},
                         any[][2] = {{3, 3}, {4, 2}, {2, 4}};
    const int64_t three = 3;
    const int which = rng_below(&t->rnd, 3);
    int64_t attr[3] = {rng_below(&t->rnd, 2), rng_below(&t->rnd, 2), rng_below(&t->rnd, 2)};
    int64_t dim[3] = {2, square[which][0], square[which][1]};
    dc_ref in[3];
    if (op == DC_OP_SORT) {
        in[0] = rank == 0 ? operand(t, 1, &three) : operand(t, rank, shape);
        return dc_graph_make(t->f, op, in, 1, attr, 1, NULL);
    }
    const int batch = rng_below(&t->rnd, 2);
    rank = 2 + batch;
    if (op == DC_OP_RUN) { /* some are longer than a block */
        attr[2] = rng_below(&t->rnd, 2);
        dim[2 - attr[2]] = 1 + rng_below(&t->rnd, 20);
        dim[1 + attr[2]] = 1 + rng_below(&t->rnd, 2);
        attr[0] = rng_below(&t->rnd, DC_RUN__COUNT);
        in[0] = plain(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, attr, 3, NULL);
    }
    switch ((int)op) {
    case DC_OP_CHOLESKY:
    case DC_OP_EIGH:
        in[0] = symmetric(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, NULL, 0, NULL);
    case DC_OP_EIGVALSH:
        in[0] = symmetric(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, NULL, 0, NULL);
    case DC_OP_LU:
        in[0] = matrix(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, attr, 1, NULL);
    case DC_OP_EIG:
    case DC_OP_EIGVALS:
        in[0] = of_real_values(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, NULL, 0, NULL);
    case DC_OP_MATRIX_EXP:
        in[0] = matrix(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, NULL, 0, NULL);
    case DC_OP_DET:
    case DC_OP_LUSOLVE:
        in[0] = matrix(t, rank, dim + 1 - batch);
        in[1] = dc_graph_make(t->f, DC_OP_LU, in, 1, attr + 1, 1, NULL);
        dim[2] = 2;
        in[2] = op == DC_OP_DET ? 0 : plain(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, op == DC_OP_DET ? 2 : 3, attr, 2, NULL);
    case DC_OP_LSTSQ:
    case DC_OP_PINV:
        attr[0] = (int64_t)dc_bits_of(DC_F64, 1e-6);
        dim[1] = any[which][0];
        dim[2] = any[which][1];
        in[0] = matrix(t, rank, dim + 1 - batch);
        dim[2] = 2;
        in[1] = op == DC_OP_PINV ? 0 : plain(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, op == DC_OP_PINV ? 1 : 2, attr, 1, NULL);
    case DC_OP_QR:
        dim[1] = any[which][0];
        dim[2] = any[which][1];
        attr[0] = 0; /* of the other columns there is no derivative */
        in[0] = matrix(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, attr, 1, NULL);
    case DC_OP_SVD:
    case DC_OP_SVDVALS:
        dim[1] = any[which][0];
        dim[2] = any[which][1];
        in[0] = matrix(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 1, NULL, 0, NULL);
    case DC_OP_TRSOLVE:
        in[0] = matrix(t, rank, dim + 1 - batch);
        dim[2] = 2;
        in[1] = plain(t, rank, dim + 1 - batch);
        return dc_graph_make(t->f, op, in, 2, attr, 3, NULL);
    }
    return 0;
}

/* a * exp(b) with its gradient written out, or the same computed again. */
static dc_ref custom(trial *t, int rank, const int64_t *dim)
{
    dc_func *f = t->f;
    const dc_ref x[2] = {operand(t, rank, dim), operand(t, rank, dim)};
    dc_custom c;
    dc_ref out = 0, captured = 0;
    dc_custom_begin(f, x, 2, &c);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, c.stand_in[1]);
    const dc_ref y = dc_graph_op2(f, DC_OP_MUL, c.stand_in[0], e);
    if (rng_below(&t->rnd, 2)) {
        CHECK_EQ(dc_custom_remat(&t->job, &c, y, &out), DC_OK);
        return out;
    }
    CHECK_EQ(dc_custom_value(&t->job, &c, y, &captured), DC_OK);
    const dc_ref dx[2] = {dc_graph_op2(f, DC_OP_MUL, c.dy, dc_graph_op1(f, DC_OP_EXP, x[1])),
                          dc_graph_op2(f, DC_OP_MUL, c.dy, c.y_again)};
    CHECK_EQ(dc_custom_end(&t->job, &c, dx, &out), DC_OK);
    return out;
}

static dc_ref other_name(trial *t, dc_op op, int rank, const int64_t *dim)
{
    const dc_type size = dc_type_scalar(DC_I32);
    const dc_ref x = operand(t, rank, dim);
    return op == DC_OP_BARRIER || rank == 0
               ? dc_graph_barrier(t->f, x, operand(t, rank, dim))
               : dc_graph_set_size(t->f, x, 0, dc_graph_const(t->f, &size, (double)dim[0]));
}

static dc_ref transform(trial *t)
{
    const int64_t dim[4] = {1 + rng_below(&t->rnd, 2), 1 + rng_below(&t->rnd, 12), 2, 2};
    const int axis = rng_below(&t->rnd, 3);
    return dc_graph_dft(t->f, operand(t, 4, dim), axis, rng_below(&t->rnd, 2) == 0 ? 1 : -1);
}

/* In a group of one member; of several: tests/unit/test_exchange.c. */
static dc_ref alone(trial *t, dc_op op, int rank, const int64_t *dim)
{
    const dc_exchange_attr x = {.group = {1, 1, {1}}};
    const bool any = op == DC_OP_ALL_REDUCE || op == DC_OP_BROADCAST;
    return dc_graph_exchange(t->f, op, operand(t, any || rank > 0 ? rank : 1, any || rank > 0 ? dim : (const int64_t[]){3}), &x);
}

static void check_row(dc_op op, uint64_t seed)
{
    static trial t;
    const dc_op_row *row = dc_op_row_of(op);
    for (int round = 0; round < ROUNDS; round++, seed++) {
        begin(&t, seed, row->lo, row->hi);
        const int s = rng_below(&t.rnd, DC_COUNTOF(shapes)), rank = shapes[s].rank;
        dc_ref value = 0;
        switch ((dc_op_class)row->cls) {
        case DC_CLASS_EW:
            value = element_wise(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_RED:
            value = reduction(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_MOV:
            value = movement(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_CON:
            value = op == DC_OP_CONV ? convolution(&t) : contraction(&t, op);
            break;
        case DC_CLASS_SAME:
            value = op == DC_OP_CUSTOM ? custom(&t, rank, shapes[s].dim)
                                       : other_name(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_IDX:
            value = indexing(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_HST:
            value = on_host(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_FFT:
            value = transform(&t);
            break;
        case DC_CLASS_COM:
            value = alone(&t, op, rank, shapes[s].dim);
            break;
        case DC_CLASS_SRC:
        case DC_CLASS_PART:
        case DC_CLASS_CTL:
            break;
        }
        check(&t, value, row->name, seed);
    }
}

/* ---- all of it ---- */

/* Softmax cross entropy over two layers: everything together. */
static void network(uint64_t seed)
{
    static trial t;
    const int64_t zero[1] = {0}, first[1] = {1};
    begin(&t, seed, -1, 1);
    dc_func *f = t.f;
    const dc_ref x = add_param(&t, 2, (const int64_t[]){3, 5}, -1, 1);
    const dc_ref w = add_wrt(&t, 2, (const int64_t[]){5, 4}),
                 b = add_wrt(&t, 1, (const int64_t[]){4});
    const dc_ref v = add_wrt(&t, 2, (const int64_t[]){4, 3});
    const int64_t d34[2] = {3, 4}, d33[2] = {3, 3};
    dc_ref h = dc_graph_dot(f, x, w, 0, NULL, NULL, 1, first, zero);
    h = dc_graph_op2(f, DC_OP_ADD, h, dc_graph_unreduce(f, b, 1, 2, d34));
    h = dc_graph_op2(f, DC_OP_MAX, h, dc_graph_like(f, h, 0));
    const dc_ref z = dc_graph_dot(f, h, v, 0, NULL, NULL, 1, first, zero);
    const dc_ref top = dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_MAXR, z, 2), 2, 2, d33);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, dc_graph_op2(f, DC_OP_SUB, z, top));
    const dc_ref p = dc_graph_op2(
        f, DC_OP_DIV, e, dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_SUM, e, 2), 2, 2, d33));
    check(&t, dc_graph_op1(f, DC_OP_LOG, p), "network", seed);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 20);
    for (int op = 0; op < DC_OP__COUNT; op++)
        if (strcmp(rows[op].grad, "none") != 0 && hostgen_can((dc_op)op))
            check_row((dc_op)op, seed + (uint64_t)op * 1000);
    for (uint64_t i = 0; i < 4; i++)
        network(seed + i);
    printf("%ld elements, %ld left out near kinks\n", elements, left_out);
    CHECK(left_out * 50 < elements);
    if (hostgen_missing() != NULL)
        T_SKIP(hostgen_missing());
    return t_done();
}
