/*
 * Gradients by hand: conventions at kinks, and what dc_grad promises beside the rules of operations.
 * Differences are in test_grad.c.
 */
#include "core/autodiff/grad.h"
#include "core/eval/eval.h"

#include "tests/t.h"

static dc_job job;
static dc_func *fn;

static dc_ref param(int rank, int64_t n)
{
    const dc_type type = dc_type_make(DC_F32, rank, &n);
    return dc_graph_param(fn, &type, "x");
}

static dc_ref sum1(dc_ref r)
{
    return dc_graph_reduce(fn, DC_OP_SUM, r, 1);
}

static void want(dc_ref r, const void *const *params, int n, const float *value)
{
    float out[8];
    CHECK(r != 0);
    if (r == 0)
        return;
    CHECK_EQ(dc_node_count(dc_node_at(fn, r)), n);
    fn->result.n = 0;
    DC_PUSH(fn->result, r);
    CHECK_EQ(dc_eval(&job, fn, DC_EVAL_ROUND, params, (void *const[]){out}), DC_OK);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(out[i], value[i], 0);
}

#define WANT(r, params, ...) \
    want(r, params, (int)DC_COUNTOF(((const float[]){__VA_ARGS__})), (const float[]){__VA_ARGS__})
#define IN(...) ((const void *const[]){__VA_ARGS__})

static dc_ref grad1(dc_ref loss, dc_ref wrt)
{
    dc_ref out = 77;
    CHECK_EQ(dc_grad(&job, fn, loss, &wrt, 1, &out), DC_OK);
    return out;
}

static void conventions(void)
{
    static const float x[4] = {-2, 0, 3, 3}, y[4] = {-2, -1, 3, 5};
    const dc_ref a = param(1, 4), b = param(1, 4), zero = dc_graph_like(fn, a, 0);
    dc_ref both[2], out[2];
    WANT(grad1(sum1(dc_graph_op1(fn, DC_OP_ABS, a)), a), IN(x, y), -1, 0, 1, 1);
    WANT(grad1(sum1(dc_graph_op2(fn, DC_OP_MAX, a, zero)), a), IN(x, y), 0, 0.5f, 1, 1);
    both[0] = a, both[1] = b;
    CHECK_EQ(dc_grad(&job, fn, sum1(dc_graph_op2(fn, DC_OP_MAX, a, b)), both, 2, out), DC_OK);
    WANT(out[0], IN(x, y), 0.5f, 1, 0.5f, 0);
    WANT(out[1], IN(x, y), 0.5f, 0, 0.5f, 1);
    CHECK_EQ(dc_grad(&job, fn, sum1(dc_graph_op2(fn, DC_OP_MIN, a, b)), both, 2, out), DC_OK);
    WANT(out[0], IN(x, y), 0.5f, 0, 0.5f, 1);
    WANT(out[1], IN(x, y), 0.5f, 1, 0.5f, 0);
    WANT(grad1(dc_graph_reduce(fn, DC_OP_MAXR, a, 1), a), IN(x, y), 0, 0, 0.5f, 0.5f);
    WANT(grad1(dc_graph_reduce(fn, DC_OP_MINR, a, 1), a), IN(x, y), 1, 0, 0, 0);
    /* rem: the quotient is whole, and that of the remainder */
    const float p[4] = {7, -7, 6, 1.4f}, q[4] = {2, 2, 2, 0.1f};
    CHECK_EQ(dc_grad(&job, fn, sum1(dc_graph_op2(fn, DC_OP_REM, a, b)), both, 2, out), DC_OK);
    WANT(out[0], IN(p, q), 1, 1, 1, 1);
    WANT(out[1], IN(p, q), -3, 3, -3, -13); /* 1.4 / 0.1 rounds to 14 */
}

/* A product's slope is the product of the others, zeros among them or not; and once more. */
static void products(void)
{
    static const float none[4] = {2, 3, -1, 4}, one[4] = {2, 0, -1, 4}, two[4] = {0, 3, -1, 0};
    const dc_ref a = param(1, 4), p = dc_graph_reduce(fn, DC_OP_PROD, a, 1), g = grad1(p, a);
    WANT(g, IN(none), -12, -8, 24, -6);
    WANT(g, IN(one), 0, -8, 0, 0);
    WANT(g, IN(two), 0, 0, 0, 0);
    const dc_ref h = grad1(sum1(g), a);
    WANT(h, IN(one), 0 - 4 + 0, 4 * -1 + 2 * 4 + 2 * -1, 2 * 4, -2);
    WANT(h, IN(two), -3, 0, 0, -3);
    const dc_ref scalar = param(0, 0);
    static const float three[1] = {3};
    WANT(grad1(dc_graph_reduce(fn, DC_OP_PROD, scalar, 0), scalar), IN(none, three), 1);
}

/* What scatter puts there twice has a slope only where it stays. */
static void overwritten(void)
{
    static const float x[3] = {1, 2, 3}, u[4] = {4, 5, 6, 7};
    static const int32_t at[4] = {1, 2, 1, 9};
    const dc_ref a = param(1, 3), b = param(1, 4);
    const dc_type four = dc_type_make(DC_I32, 1, (const int64_t[]){4});
    const dc_ref i = dc_graph_param(fn, &four, "i");
    const dc_ref s = dc_graph_scatter(fn, DC_OP_SCATTER, a, i, b, 0, 0);
    const dc_ref both[2] = {a, b}, loss = sum1(dc_graph_op2(fn, DC_OP_MUL, s, s));
    dc_ref out[2];
    CHECK_EQ(dc_grad(&job, fn, loss, both, 2, out), DC_OK);
    WANT(out[0], IN(x, u, at), 2, 0, 0);
    WANT(out[1], IN(x, u, at), 0, 10, 12, 0);
}

/* Of what a scatter combines: the winners share equally; of products the others, zeros among them or not. */
static void combined(void)
{
    static const float x[3] = {1, 2, 3}, u[5] = {2, 3, 3, 2, 7};
    static const int32_t at[5] = {1, 2, 2, 1, 9};
    const dc_ref a = param(1, 3), b = param(1, 5);
    const dc_type five = dc_type_make(DC_I32, 1, (const int64_t[]){5});
    const dc_ref i = dc_graph_param(fn, &five, "i"), both[2] = {a, b};
    dc_ref out[2], s = dc_graph_scatter(fn, DC_OP_SCATTER_MAX, a, i, b, 0, 0);
    CHECK_EQ(dc_grad(&job, fn, sum1(dc_graph_op2(fn, DC_OP_MUL, s, s)), both, 2, out), DC_OK);
    WANT(out[0], IN(x, u, at), 2, 4.0f / 3, 2);
    WANT(out[1], IN(x, u, at), 4.0f / 3, 2, 2, 4.0f / 3, 0);
    s = dc_graph_scatter(fn, DC_OP_SCATTER_MIN, a, i, b, 0, 0);
    CHECK_EQ(dc_grad(&job, fn, sum1(s), both, 2, out), DC_OK);
    WANT(out[1], IN(x, ((float[]){1, 4, 5, 2, 0}), at), 1, 0, 0, 0, 0);
    s = dc_graph_scatter(fn, DC_OP_SCATTER_MUL, a, i, b, 0, 0);
    CHECK_EQ(dc_grad(&job, fn, sum1(s), both, 2, out), DC_OK);
    static const float none[5] = {2, 4, 8, 4, 7}, one[5] = {0, 4, 8, 4, 7},
                       two[5] = {0, 4, 8, 0, 7};
    WANT(out[0], IN(x, none, at), 1, 8, 32);
    WANT(out[1], IN(x, none, at), 8, 24, 12, 4, 0);
    WANT(out[0], IN(x, one, at), 1, 0, 32);
    WANT(out[1], IN(x, one, at), 8, 24, 12, 0, 0);
    WANT(out[1], IN(x, two, at), 0, 24, 12, 0, 0);
    const dc_ref again =
        grad1(sum1(out[1]), b); /* of 2 p q and 3 r s: by p 2 + 2 q, by r 3 + 3 s, .. */
    WANT(again, IN(x, none, at), 2, 3, 3, 2, 0);
    WANT(again, IN(x, two, at), 2, 3, 3, 2, 0);
    WANT(again, IN(x, one, at), 2, 3, 3, 2, 0);
}

/* Operations without slope: zeros where the loss reads wrt, "none" where it does not. */
static void flat(void)
{
    static const float x[2] = {0.5f, 2.5f};
    const dc_ref a = param(1, 2), b = param(1, 2);
    const dc_ref up = dc_graph_op2(fn, DC_OP_LT, a, dc_graph_like(fn, a, 1));
    WANT(grad1(sum1(dc_graph_op1(fn, DC_OP_FLOOR, a)), a), IN(x, x), 0, 0);
    WANT(grad1(sum1(dc_graph_op1(fn, DC_OP_STOP, a)), a), IN(x, x), 0, 0);
    WANT(grad1(sum1(dc_graph_cast(fn, up, DC_F32)), a), IN(x, x), 0, 0);
    WANT(grad1(sum1(dc_graph_cast(fn, dc_graph_cast(fn, a, DC_I32), DC_F32)), a), IN(x, x), 0, 0);
    WANT(grad1(sum1(dc_graph_op2(fn, DC_OP_MUL, a, dc_graph_op1(fn, DC_OP_STOP, a))), a), IN(x, x),
         0.5f, 2.5f);
    WANT(grad1(sum1(dc_graph_op2(fn, DC_OP_MUL, a, dc_graph_op1(fn, DC_OP_FLOOR, a))), a), IN(x, x),
         0, 2);
    WANT(grad1(sum1(dc_graph_op3(fn, DC_OP_WHERE, up, a, dc_graph_op1(fn, DC_OP_NEG, a))), a),
         IN(x, x), 1, -1);
    CHECK_EQ(grad1(sum1(a), b), 0);
    CHECK_EQ(grad1(sum1(a), dc_graph_op1(fn, DC_OP_EXP, a)), 0); /* made after the loss */
}

static void any_node(void)
{
    static const float x[2] = {3, 5};
    const dc_ref a = param(1, 2), sq = dc_graph_op2(fn, DC_OP_MUL, a, a);
    const dc_ref other = dc_graph_op1(fn, DC_OP_EXP, a);
    const dc_ref loss = sum1(dc_graph_op2(fn, DC_OP_ADD, dc_graph_op2(fn, DC_OP_MUL, sq, sq), a));
    const dc_ref wrt[6] = {a, sq, loss, a, other, sq};
    dc_ref out[6];
    CHECK_EQ(dc_grad(&job, fn, loss, wrt, 6, out), DC_OK);
    WANT(out[0], IN(x), 4 * 27 + 1, 4 * 125 + 1);
    WANT(out[1], IN(x), 18, 50);
    WANT(out[2], IN(x), 1);
    CHECK_EQ(out[3], out[0]);
    CHECK_EQ(out[4], 0);
    CHECK_EQ(out[5], out[1]);
    CHECK_EQ(dc_grad(&job, fn, loss, NULL, 0, NULL), DC_OK);
    /* of the gradient again: 12 x^2, then 24 x, 24, and then nothing is left */
    const dc_ref second = grad1(sum1(out[0]), a), third = grad1(sum1(second), a);
    WANT(second, IN(x), 12 * 9, 12 * 25);
    WANT(third, IN(x), 24 * 3, 24 * 5);
    WANT(grad1(sum1(third), a), IN(x), 24, 24);
}

/* Tensors without elements. */
static void empty(void)
{
    static const float one[1] = {2};
    const dc_ref a = param(1, 0), s = param(0, 0);
    const dc_ref wide =
        dc_graph_pad(fn, a, (const int64_t[]){9}, (const int64_t[]){1}, (const int64_t[]){3}, 0);
    CHECK_EQ(dc_node_count(dc_node_at(fn, grad1(sum1(wide), a))), 0);
    CHECK_EQ(dc_node_count(dc_node_at(fn, grad1(dc_graph_reduce(fn, DC_OP_MAXR, a, 1), a))), 0);
    const dc_ref none = dc_graph_unreduce(fn, s, 1, 1, (const int64_t[]){0});
    WANT(grad1(sum1(dc_graph_op2(fn, DC_OP_MUL, none, a)), s), IN(one, one), 0);
}

static void refusals(void)
{
    const dc_ref a = param(1, 2);
    const dc_ref i = dc_graph_cast(fn, a, DC_I32);
    dc_ref out;
    CHECK_EQ(dc_grad(&job, fn, a, &a, 1, &out), DC_E_TYPE);
    CHECK_EQ(job.err.id, DC_ERR_GRAD_SCALAR);
    job.err = (dc_err){0};
    CHECK_EQ(dc_grad(&job, fn, sum1(i), &a, 1, &out), DC_E_TYPE);
    CHECK_EQ(job.err.id, DC_ERR_GRAD_SCALAR);
    job.err = (dc_err){0};
    CHECK_EQ(dc_grad(&job, fn, sum1(a), &i, 1, &out), DC_E_TYPE);
    CHECK_EQ(job.err.id, DC_ERR_DTYPE);
    job.err = (dc_err){0};
}

/* The gradient's nodes point at the line of what they differentiate. */
static void origins(void)
{
    dc_func_from(fn, "train.lua:3", NULL);
    const dc_ref a = param(1, 2), e = dc_graph_op1(fn, DC_OP_EXP, a);
    dc_func_from(fn, "train.lua:9", NULL);
    const dc_ref loss = sum1(e), g = grad1(loss, a);
    const uint32_t origin = dc_node_at(fn, g)->origin;
    CHECK(origin != 0);
    CHECK_STR(fn->origins.at[origin].where, "train.lua:3");
    CHECK_STR(fn->where, "train.lua:9");
}

static void in_function(void (*test)(void))
{
    dc_module *m = dc_module_new();
    dc_job_init(&job, NULL, NULL);
    fn = dc_func_new(m, "test");
    test();
    dc_module_free(m);
    dc_job_fini(&job);
}

int main(void)
{
    in_function(conventions);
    in_function(products);
    in_function(overwritten);
    in_function(combined);
    in_function(flat);
    in_function(any_node);
    in_function(empty);
    in_function(refusals);
    in_function(origins);
    return t_done();
}
