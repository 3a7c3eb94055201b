/*
 * Gradients given by hand and values computed again (core/autodiff/custom.h): what is refused, any order,
 * bodies inside bodies, the text form, and that recomputation saves memory where it is compiled.
 */
#include "core/autodiff/custom.h"
#include "core/autodiff/grad.h"

#include "tests/unit/diff.h"

static dc_module *module;
static dc_func *fn;

static void begin(void)
{
    module = dc_module_new();
    fn = dc_func_new(module, "custom");
}

static dc_ref param(dc_dtype t, int rank, int64_t a, int64_t b)
{
    const dc_type type = dc_type_make(t, rank, (const int64_t[]){a, b});
    return dc_graph_param(fn, &type, "x");
}

static dc_ref sum(dc_ref r)
{
    return dc_graph_reduce(fn, DC_OP_SUM, r, (1u << dc_node_at(fn, r)->rank) - 1);
}

static dc_ref grad1(dc_ref loss, dc_ref wrt)
{
    dc_ref out = 0;
    CHECK_EQ(dc_grad(&rt->job, fn, loss, &wrt, 1, &out), DC_OK);
    return out;
}

static void want(dc_ref r, const void *const *params, int n, const float *value)
{
    float out[8];
    if (!CHECK(r != 0))
        return;
    fn->result.n = 0;
    DC_PUSH(fn->result, r);
    CHECK_EQ(dc_eval(&rt->job, fn, DC_EVAL_ROUND, params, (void *const[]){out}), DC_OK);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(out[i], value[i], 1e-6 * (1 + fabs((double)value[i])));
}

#define IN(...) ((const void *const[]){__VA_ARGS__})
#define WANT(r, params, ...) \
    want(r, params, (int)DC_COUNTOF(((const float[]){__VA_ARGS__})), (const float[]){__VA_ARGS__})

static void expect(dc_status got, dc_err_id id, const char *text)
{
    char is[256] = "";
    CHECK(got != DC_OK);
    CHECK_EQ(rt->job.err.id, id);
    dc_err_render(&rt->job.err, 1, is, sizeof is);
    CHECK_STR(is, text);
    rt->job.err = (dc_err){0};
}

/* y = floor(x), straight through: the gradient is that of y. */
static dc_ref straight(dc_ref x, bool none)
{
    dc_custom c;
    dc_ref captured, out = 0;
    dc_custom_begin(fn, &x, 1, &c);
    CHECK_EQ(dc_custom_value(&rt->job, &c, dc_graph_op1(fn, DC_OP_FLOOR, c.stand_in[0]), &captured),
             DC_OK);
    const dc_ref dx = none ? 0 : c.dy;
    CHECK_EQ(dc_custom_end(&rt->job, &c, &dx, &out), DC_OK);
    return out;
}

static void test_by_hand(void)
{
    static const float x[2] = {1.5f, -2.25f};
    begin();
    const dc_ref a = param(DC_F32, 1, 2, 0), s = straight(a, false);
    WANT(s, IN(x), 1, -3);
    WANT(grad1(sum(dc_graph_op2(fn, DC_OP_MUL, s, a)), a), IN(x), 2.5f, -5.25f);
    WANT(grad1(sum(dc_graph_op2(fn, DC_OP_MUL, straight(a, true), a)), a), IN(x), 1, -3);
    WANT(grad1(sum(straight(s, false)), a), IN(x), 1, 1); /* two in a row */
    dc_module_free(module);
}

/* exp with its value as its gradient: right in any order, and the rule is used each time. */
static void test_orders(void)
{
    static const float x[1] = {0.5f};
    const float e = 1.6487212707f;
    dc_custom c;
    dc_ref captured, y = 0;
    begin();
    const dc_ref a = param(DC_F32, 0, 0, 0);
    dc_custom_begin(fn, &a, 1, &c);
    CHECK_EQ(dc_custom_value(&rt->job, &c, dc_graph_op1(fn, DC_OP_EXP, c.stand_in[0]), &captured),
             DC_OK);
    const dc_ref dx = dc_graph_op2(fn, DC_OP_MUL, c.dy,
                                   dc_graph_op2(fn, DC_OP_MUL, c.y_again, dc_graph_like(fn, a, 2)));
    CHECK_EQ(dc_custom_end(&rt->job, &c, &dx, &y), DC_OK);
    const dc_ref first = grad1(y, a), second = grad1(first, a), third = grad1(second, a);
    WANT(y, IN(x), e);
    WANT(first, IN(x), 2 * e);
    WANT(second, IN(x), 4 * e);
    WANT(third, IN(x), 8 * e);
    dc_module_free(module);
}

static void test_refusals(void)
{
    dc_custom c;
    dc_ref captured = 0, out;
    begin();
    const dc_ref a = param(DC_F32, 1, 2, 0), w = param(DC_F32, 1, 2, 0), i = param(DC_I32, 1, 2, 0);
    const dc_ref ew = dc_graph_op1(fn, DC_OP_EXP, w), in[2] = {a, i};
    dc_custom_begin(fn, in, 2, &c);
    dc_ref y = dc_graph_op2(fn, DC_OP_MUL, c.stand_in[0], ew);
    expect(dc_custom_value(&rt->job, &c, y, &captured), DC_ERR_GRAD_CAPTURED,
           "custom_grad: the forward function reads a tensor that is none of its arguments: its "
           "gradient would be lost");
    CHECK_EQ(captured, ew);
    y = dc_graph_op2(fn, DC_OP_MUL, c.stand_in[0], a); /* also what is an argument elsewhere */
    CHECK(dc_custom_value(&rt->job, &c, y, &captured) != DC_OK);
    CHECK_EQ(captured, a);
    CHECK(dc_custom_value(&rt->job, &c, w, &captured) != DC_OK);
    rt->job.err = (dc_err){0};
    y = dc_graph_op2(fn, DC_OP_MUL, c.stand_in[0], dc_graph_op1(fn, DC_OP_STOP, w));
    y = dc_graph_op2(fn, DC_OP_ADD, y, dc_graph_cast(fn, i, DC_F32));
    y = dc_graph_op2(fn, DC_OP_ADD, y, dc_graph_like(fn, y, 3));
    CHECK_EQ(dc_custom_value(&rt->job, &c, y, &captured), DC_OK);
    expect(dc_custom_end(&rt->job, &c, (dc_ref[]){sum(a), 0}, &out), DC_ERR_GRAD_CUSTOM,
           "custom_grad: the gradient of argument 1 is f32[], the argument is f32[2]");
    expect(dc_custom_end(&rt->job, &c, (dc_ref[]){c.dy, c.dy}, &out), DC_ERR_GRAD_CUSTOM,
           "custom_grad: argument 2 is i32[2] and has no gradient, nil stands for none");
    CHECK_EQ(dc_custom_end(&rt->job, &c, (dc_ref[]){c.dy, 0}, &out), DC_OK);
    dc_module_free(module);
}

static int count(const dc_func *f, dc_op op)
{
    const bool *live = dc_func_live(f, &f->module->arena);
    int n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        n += live[r] && dc_node_at(f, r)->op == op;
    return n;
}

static dc_ref remat(const dc_ref *x, int n, dc_ref (*body)(const dc_ref *x, dc_ref more),
                    dc_ref more)
{
    dc_custom c;
    dc_ref out = 0;
    dc_custom_begin(fn, x, n, &c);
    CHECK_EQ(dc_custom_remat(&rt->job, &c, body(c.stand_in, more), &out), DC_OK);
    return out;
}

/* exp(x * w) * w, with w and exp(w) captured */
static dc_ref captures(const dc_ref *x, dc_ref w)
{
    const dc_ref e = dc_graph_op1(fn, DC_OP_EXP, w);
    return dc_graph_op2(fn, DC_OP_MUL,
                        dc_graph_op1(fn, DC_OP_EXP, dc_graph_op2(fn, DC_OP_MUL, x[0], w)),
                        dc_graph_op2(fn, DC_OP_ADD, e, w));
}

static dc_ref nested(const dc_ref *x, dc_ref w)
{
    return dc_graph_op2(fn, DC_OP_MUL, remat(x, 1, captures, w), x[0]);
}

/* The same gradients, first and second, as without. */
/* What a body costs is its length, whatever was recorded before it. */
static void test_many(void)
{
    enum { BEFORE = 200000, MOST = 1 << 18 };
    dc_custom c;
    dc_ref captured, out;
    begin();
    dc_ref x = param(DC_F32, 1, 4, 0), bias = param(DC_F32, 1, 4, 0);
    for (int i = 0; i < BEFORE; i++)
        x = dc_graph_op2(fn, DC_OP_ADD, x, x);
    const dc_ref count = dc_graph_cast(fn, dc_graph_cast(fn, x, DC_I32), DC_F32);
    const size_t held = rt->job.scratch.total;
    for (int i = 0; i < 100; i++) {
        dc_custom_begin(fn, &x, 1, &c);
        const dc_ref y = dc_graph_op2(fn, DC_OP_MUL, c.stand_in[0], count);
        CHECK_EQ(dc_custom_value(&rt->job, &c, y, &captured), DC_OK);
        CHECK_EQ(dc_custom_end(&rt->job, &c, &c.dy, &x), DC_OK);
    }
    CHECK(rt->job.scratch.total - held < MOST);
    dc_custom_begin(fn, &x, 1, &c); /* the oldest one that it reads is told */
    const dc_ref old = dc_graph_op2(fn, DC_OP_ADD, x, bias);
    out = dc_graph_op2(fn, DC_OP_MUL, dc_graph_op2(fn, DC_OP_MUL, c.stand_in[0], old), bias);
    CHECK(dc_custom_value(&rt->job, &c, out, &captured) != DC_OK);
    CHECK_EQ(captured, bias);
    rt->job.err = (dc_err){0};
    dc_module_free(module);
}

static void test_remat(void)
{
    rng r = {11};
    begin();
    const dc_ref a = param(DC_F32, 2, 4, 8), w = param(DC_F32, 2, 4, 8), wrt[2] = {a, w};
    for (int again = 0; again < 2; again++) {
        const dc_ref plain =
            sum(again ? dc_graph_op2(fn, DC_OP_MUL, captures(&a, w), a) : captures(&a, w));
        const dc_ref once_more = sum(remat(&a, 1, again ? nested : captures, w));
        dc_ref g[2][2], h[2][2];
        for (int k = 0; k < 2; k++) {
            CHECK_EQ(dc_grad(&rt->job, fn, k ? once_more : plain, wrt, 2, g[k]), DC_OK);
            const dc_ref both = dc_graph_op2(fn, DC_OP_MUL, g[k][0], g[k][1]);
            CHECK_EQ(dc_grad(&rt->job, fn, sum(both), wrt, 2, h[k]), DC_OK);
        }
        CHECK(g[0][0] != g[1][0]);
        fn->result.n = 0;
        DC_PUSH(fn->result, once_more);
        for (int i = 0; i < 2; i++) {
            DC_PUSH(fn->result, dc_graph_op2(fn, DC_OP_SUB, g[0][i], g[1][i]));
            DC_PUSH(fn->result, dc_graph_op2(fn, DC_OP_SUB, h[0][i], h[1][i]));
            DC_PUSH(fn->result, h[1][i]);
        }
        CHECK(count(fn, DC_OP_CUSTOM) > again && count(fn, DC_OP_HOLE) > 0);
        const dc_func *s = dc_simplify(fn);
        CHECK_EQ(count(s, DC_OP_CUSTOM), 0);
        CHECK_EQ(count(s, DC_OP_HOLE), 0);
        CHECK(count(s, DC_OP_BARRIER) >= 1 + again);
        float x[2][32], *out[7], room[7][32];
        for (int i = 0; i < 32; i++) {
            x[0][i] = (float)rng_uniform(&r, -1, 1);
            x[1][i] = (float)rng_uniform(&r, -1, 1);
        }
        for (int i = 0; i < 7; i++)
            out[i] = room[i];
        CHECK_EQ(dc_eval(&rt->job, fn, DC_EVAL_ROUND, IN(x[0], x[1]), (void *const *)(void *)out),
                 DC_OK);
        for (int i = 1; i < 7; i++)
            for (int k = 0; i % 3 != 0 && k < 32; k++)
                CHECK_NEAR(room[i][k], 0, 2e-4 * (1 + fabs((double)room[i <= 3 ? 3 : 6][k])));
        CHECK(diff_try(fn, &r, false, true));
    }
    dc_module_free(module);
}

static void test_text(void)
{
    dc_text first = {0}, second = {0};
    dc_module *again = NULL;
    begin();
    const dc_ref a = param(DC_F32, 1, 3, 0), w = param(DC_F32, 1, 3, 0);
    DC_PUSH(fn->result, grad1(sum(remat(&a, 1, captures, w)), a));
    DC_PUSH(fn->result, remat(&a, 1, nested, w));
    CHECK_EQ(dc_func_check(&rt->job, fn), DC_OK);
    dc_module_print(module, &first);
    CHECK_EQ(dc_module_parse(&rt->job, first.s, &again), DC_OK);
    dc_module_print(again, &second);
    CHECK_STR(second.s, first.s);
    CHECK_EQ(dc_func_hash(again->func.at[0]), dc_func_hash(fn));
    dc_module_free(again);
    CHECK(dc_module_parse(&rt->job,
                          "func f(%1: f32[2]) {\n %2 = custom_grad %1, %1 {1, 0, 1} : f32[2]\n"
                          " return %2 }",
                          &again) != DC_OK);
    rt->job.err = (dc_err){0};
    dc_text_free(&first);
    dc_text_free(&second);
    dc_module_free(module);
}

enum { LAYERS = 12, PER_BODY = 3, WIDE = 16 };

static dc_ref weight[LAYERS];
static int next_layer;

/* 1 / (1 + exp(x w)), some times */
static dc_ref layers(const dc_ref *x, dc_ref more)
{
    dc_ref h = x[0];
    DC_UNUSED(more);
    for (int i = 0; i < PER_BODY; i++) {
        const dc_ref p = dc_graph_dot(fn, h, weight[next_layer++], 0, NULL, NULL, 1,
                                      (const int64_t[]){1}, (const int64_t[]){0});
        const dc_ref one = dc_graph_like(fn, p, 1);
        h = dc_graph_op2(fn, DC_OP_DIV, one,
                         dc_graph_op2(fn, DC_OP_ADD, dc_graph_op1(fn, DC_OP_EXP, p), one));
    }
    return h;
}

/* Memory for what is computed between; the gradient of a deep chain. */
static size_t arena_of(bool again)
{
    dc_exec *e;
    dc_exec_info info = {0};
    dc_ref g[LAYERS];
    rng r = {5};
    begin();
    dc_ref h = param(DC_F32, 2, 64, WIDE);
    for (int i = 0; i < LAYERS; i++)
        weight[i] = param(DC_F32, 2, WIDE, WIDE);
    next_layer = 0;
    for (int i = 0; i < LAYERS; i += PER_BODY)
        h = again ? remat(&h, 1, layers, 0) : layers(&h, 0);
    CHECK_EQ(dc_grad(&rt->job, fn, sum(h), weight, LAYERS, g), DC_OK);
    for (int i = 0; i < LAYERS; i++)
        DC_PUSH(fn->result, g[i]);
    fn = dc_simplify(fn);
    const int products = count(fn, DC_OP_DOT); /* no loss is asked for: the last body runs once */
    CHECK_EQ(products, 3 * LAYERS - (again ? 1 + PER_BODY - LAYERS : 1));
    const dc_exec_desc d = {
        .fn = fn, .name = "chain", .nfree = fn->param.n, .nresult = fn->result.n};
    CHECK_EQ(dc_exec_build(rt, &rt->job, &d, &e), DC_OK);
    CHECK_EQ(dc_exec_wait(rt, &rt->job, e), DC_OK);
    dc_exec_info_of(e, &info);
    dc_exec_release(e);
    if (again)
        CHECK(diff_try(fn, &r, false, true));
    dc_module_free(module);
    return info.arena_bytes;
}

static dc_status body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_by_hand();
    test_orders();
    test_refusals();
    test_many();
    test_remat();
    test_text();
    const size_t kept = arena_of(false), again = arena_of(true);
    printf("%zu bytes kept, %zu computed again, ", kept, again);
    CHECK(again < kept * 7 / 10);
    return DC_OK;
}

int main(void)
{
    return diff_main(body, NULL);
}
