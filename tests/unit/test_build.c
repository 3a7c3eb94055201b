/*
 * core/build/build.c: result types with names, sentences with operand types and axes, and values of
 * broadcast, batched products, means and slices on the interpreter.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include "tests/unit/typed.h"

static const char *ew(dc_op op, const char *a, const char *b)
{
    dc_val out, in[2] = {val(a), val(b)};
    return told(dc_build_ew(&job, f, op, in, 2, &out), &out);
}

static const char *where(const char *a, const char *b, const char *c)
{
    dc_val out, in[3] = {val(a), val(b), val(c)};
    return told(dc_build_ew(&job, f, DC_OP_WHERE, in, 3, &out), &out);
}

static const char *matmul(const char *a, const char *b)
{
    dc_val out;
    return told(dc_build_matmul(&job, f, val(a), val(b), &out), &out);
}

static void test_broadcast(void)
{
    CHECK_STR(ew(DC_OP_ADD, "f32[64, 10]", "f32[10]"), "f32[64, 10]");
    CHECK_STR(ew(DC_OP_ADD, "f32[]", "f32[64, 10]"), "f32[64, 10]");
    CHECK_STR(ew(DC_OP_ADD, "f32[3, 1]", "f32[1, 4]"), "f32[3, 4]");
    CHECK_STR(ew(DC_OP_LT, "i32[3, 1]", "i32[4]"), "bool[3, 4]");
    CHECK_STR(ew(DC_OP_ADD, "f32[n=3, 1]", "f32[3, k=4]"), "f32[n=3, k=4]");
    CHECK_STR(ew(DC_OP_ADD, "f32[1]", "f32[0]"), "f32[0]");
    CHECK_STR(ew(DC_OP_ADD, "f32[1]", "f32[n=1]"), "f32[n=1]");
    CHECK_STR(where("bool[3, 1]", "f32[4]", "f32[]"), "f32[3, 4]");
    CHECK_STR(where("bool[]", "f32[2, 1]", "f32[1, n=3]"), "f32[2, n=3]");

    CHECK_STR(ew(DC_OP_MUL, "f32[64, 784]", "f32[784, 10]"), "mul: axis 2: 784 against 10");
    CHECK_STR(ew(DC_OP_MUL, "f32[64, 784]", "f32[64, 10]"), "mul: axis 2: 784 against 10");
    CHECK_STR(ew(DC_OP_MUL, "f32[5, 64, 784]", "f32[10]"), "mul: axis 3 = 784 against axis 1 = 10");
    CHECK_STR(ew(DC_OP_ADD, "f32[2]", "i32[2]"), "add: dtypes differ: f32[2] and i32[2]");
    CHECK_STR(ew(DC_OP_ADD, "bool[2]", "bool[2]"), "add: bool[2]: a number is needed");
    CHECK_STR(ew(DC_OP_ADD, "f32[n=2]", "f32[k=2]"), "add: axis 1: 'n' against 'k'");
    CHECK_STR(ew(DC_OP_ADD, "f32[n=1]", "f32[5]"),
              "add: axis 1: named 'n' of size 1 does not stretch to 5");
    CHECK_STR(ew(DC_OP_ADD, "f32[5]", "f32[n=1]"),
              "add: axis 1: named 'n' of size 1 does not stretch to 5");
    CHECK_STR(where("bool[2]", "f32[2]", "f32[3]"), "where: axis 1: 2 against 3");
    CHECK_STR(where("f32[2]", "f32[2]", "f32[2]"), "where: f32[2]: bool is needed");
    CHECK_STR(ew(DC_OP_ADD, "f32[4294967296, 1]", "f32[1, 4294967296]"),
              "add: a tensor of f32[4294967296, 4294967296] is too large to address");

    dc_val out, in[2] = {val("f32[64, n=784]"), val("f32[10]")};
    CHECK(dc_build_ew(&job, f, DC_OP_MUL, in, 2, &out) == DC_E_TYPE);
    const dc_fact *fact = &job.err.fact;
    CHECK_STR(fact->op, "mul");
    CHECK_EQ(job.err.id, DC_ERR_DIMS_ALIGN);
    CHECK_EQ(fact->axis[0], 1);
    CHECK_EQ(fact->axis[1], 0);
    CHECK_EQ(fact->operand, 2);
    CHECK(dc_type_same(&fact->type[0], &in[0].type) && dc_type_same(&fact->type[1], &in[1].type));
    CHECK_STR(fact->type[0].name[1], "n");
    job.err = (dc_err){0};
}

static void test_matmul(void)
{
    CHECK_STR(matmul("f32[64, 784]", "f32[784, 10]"), "f32[64, 10]");
    CHECK_STR(matmul("f32[batch=64, 784]", "f32[784, out=10]"), "f32[batch=64, out=10]");
    CHECK_STR(matmul("f32[784]", "f32[784, 10]"), "f32[10]");
    CHECK_STR(matmul("f32[64, 784]", "f32[784]"), "f32[64]");
    CHECK_STR(matmul("f32[784]", "f32[784]"), "f32[]");
    CHECK_STR(matmul("f32[5, 2, 3]", "f32[3, 4]"), "f32[5, 2, 4]");
    CHECK_STR(matmul("f32[r=2, 3]", "f32[b=5, 3, c=4]"), "f32[b=5, r=2, c=4]");
    CHECK_STR(matmul("f32[3]", "f32[6, 5, 3, 4]"), "f32[6, 5, 4]");
    CHECK_STR(matmul("f32[6, 5, 2, 3]", "f32[3]"), "f32[6, 5, 2]");
    CHECK_STR(matmul("f32[5, 2, 3]", "f32[5, 3, 4]"), "f32[5, 2, 4]");
    CHECK_STR(matmul("f32[6, 1, 2, 3]", "f32[b=5, 3, 4]"), "f32[6, b=5, 2, 4]");
    CHECK_STR(matmul("u8[2, 3]", "u8[3, 4]"), "i32[2, 4]");
    CHECK_STR(matmul("f32[2, 0]", "f32[0, 4]"), "f32[2, 4]");

    CHECK_STR(matmul("f32[batch=32, 28, 28]", "f32[784, 10]"),
              "matmul: inner dims differ: axis 3 = 28 against axis 1 = 784");
    CHECK_STR(matmul("f32[2, 3]", "f32[5, 4, 4]"),
              "matmul: inner dims differ: axis 2 = 3 against axis 2 = 4");
    CHECK_STR(matmul("f32[5, 2, 3]", "f32[6, 3, 4]"), "matmul: axis 1: 5 against 6");
    CHECK_STR(matmul("f32[2, i=3]", "f32[k=3, 4]"), "matmul: axis 2: 'i' against 'k'");
    CHECK_STR(matmul("f32[]", "f32[3]"), "matmul: f32[] has 0 axes, at least 1 is needed");
    CHECK_STR(matmul("f32[2, 3]", "i32[3, 4]"), "matmul: dtypes differ: f32[2, 3] and i32[3, 4]");
    CHECK_STR(matmul("bool[2, 3]", "bool[3, 4]"), "matmul: bool[2, 3]: a number is needed");
    CHECK_STR(matmul("f32[4294967296, 1]", "f32[1, 4294967296]"),
              "matmul: a tensor of f32[4294967296, 4294967296] is too large to address");
}

static const char *reduce(dc_op op, const char *a, uint32_t axes, bool keep)
{
    dc_val out;
    return told(dc_build_reduce(&job, f, op, val(a), axes, keep, &out), &out);
}

static void test_reduce(void)
{
    dc_val out;
    CHECK_STR(reduce(DC_OP_SUM, "f32[n=2, k=3]", 2, false), "f32[n=2]");
    CHECK_STR(reduce(DC_OP_SUM, "f32[n=2, k=3]", 2, true), "f32[n=2, 1]");
    CHECK_STR(reduce(DC_OP_MAXR, "u8[2, 3]", 3, true), "u8[1, 1]");
    CHECK_STR(reduce(DC_OP_SUM, "bool[2, 3]", 3, false), "i32[]");
    CHECK_STR(reduce(DC_OP_SUM, "f32[2, 3]", 4, false),
              "sum: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name");
    CHECK_STR(told(dc_build_mean(&job, f, val("u8[n=2, 3]"), 2, false, &out), &out), "f32[n=2]");
    CHECK_STR(told(dc_build_mean(&job, f, val("f32[n=2, 3]"), 1, true, &out), &out), "f32[1, 3]");
}

static const char *reshape(const char *a, const char *want, int open)
{
    dc_val out;
    dc_type t = type(want);
    if (open >= 0)
        t.dim[open] = -1;
    return told(dc_build_reshape(&job, f, val(a), &t, &out), &out);
}

static const char *expand(const char *a, const char *want)
{
    dc_val out;
    const dc_type t = type(want);
    return told(dc_build_expand(&job, f, val(a), &t, &out), &out);
}

static void test_movement(void)
{
    dc_val out;
    CHECK_STR(reshape("f32[batch=64, 28, 28]", "f32[64, 784]", -1), "f32[batch=64, 784]");
    CHECK_STR(reshape("f32[batch=64, 28, 28]", "f32[64, 0]", 1), "f32[batch=64, 784]");
    CHECK_STR(reshape("f32[batch=64, 28, 28]", "f32[0, 784]", 0), "f32[batch=64, 784]");
    CHECK_STR(reshape("i32[64]", "f32[b=8, t=8]", -1), "i32[b=8, t=8]");
    CHECK_STR(reshape("f32[n=4]", "f32[4]", -1), "f32[n=4]");
    CHECK_STR(reshape("f32[6]", "f32[4]", -1), "reshape: f32[6] has 6 elements, f32[4] has 4");
    CHECK_STR(reshape("f32[6]", "f32[4, 0]", 1),
              "reshape: 6 elements are no multiple of 4, the product of the other sizes");
    CHECK_STR(reshape("f32[0]", "f32[0, 0]", 1),
              "reshape: -1 beside a size of 0 could be any size");
    dc_type two = {.rank = 2, .dim = {-1, -1}};
    CHECK_STR(told(dc_build_reshape(&job, f, val("f32[6]"), &two, &out), &out),
              "reshape: only one size may be -1");

    CHECK_STR(expand("f32[10]", "f32[64, 10]"), "f32[64, 10]");
    CHECK_STR(expand("f32[1, k=10]", "f32[n=64, 10]"), "f32[n=64, k=10]");
    CHECK_STR(expand("f32[10]", "f32[64, 1]"), "expand: axis 2: 10 against 1");
    CHECK_STR(expand("f32[n=1]", "f32[5]"),
              "expand: axis 1: named 'n' of size 1 does not stretch to 5");
    CHECK_STR(expand("f32[1, 1]", "f32[5]"), "expand: f32[1, 1] has 2 axes, 1 are wanted");

    const int64_t perm[] = {1, 0};
    CHECK_STR(told(dc_build_permute(&job, f, val("f32[n=2, k=3]"), perm, 2, &out), &out),
              "f32[k=3, n=2]");
    CHECK_STR(told(dc_build_permute(&job, f, val("f32[2, 3, 4]"), perm, 2, &out), &out),
              "permute: f32[2, 3, 4] has 3 axes, 2 are listed");
    const dc_type t = type("f32[n=2]");
    CHECK_STR(told(dc_build_const(&job, f, &t, 0.5, &out), &out), "f32[n=2]");
    CHECK(dc_is_const(f, out.ref, 0.5));
    CHECK_STR(told(dc_build_iota(&job, f, &t, 0, &out), &out), "f32[n=2]");
    CHECK_STR(told(dc_build_cast(&job, f, val("u8[n=2]"), DC_F32, &out), &out), "f32[n=2]");
}

static const char *slice(const char *a, int64_t first, int64_t last, int64_t step)
{
    dc_val out;
    return told(dc_build_slice(&job, f, val(a), &first, &last, &step, &out), &out);
}

static void test_slice(void)
{
    CHECK_STR(slice("f32[n=10]", 0, 9, 1), "f32[n=10]");
    CHECK_STR(slice("f32[n=10]", 1, 9, 1), "f32[9]");
    CHECK_STR(slice("f32[10]", 1, 9, 3), "f32[3]");
    CHECK_STR(slice("f32[10]", 1, 8, 3), "f32[3]");
    CHECK_STR(slice("f32[10]", 5, 4, 1), "f32[0]");
    CHECK_STR(slice("f32[0]", 0, -1, 1), "f32[0]");
    CHECK_STR(slice("f32[10]", 1, 10, 1), "slice: axis 1 of f32[10] has no range 2 to 11");
    CHECK_STR(slice("f32[10]", -1, 3, 1), "slice: axis 1 of f32[10] has no range 0 to 4");
    CHECK_STR(slice("f32[10]", 5, 3, 1), "slice: axis 1 of f32[10] has no range 6 to 4");
    CHECK_STR(slice("f32[10]", 0, 3, 0), "slice: a step is at least 1");
}

/* ---- values ---- */

/* Evaluates v of a function whose parameters count 0, 1, 2 ... across all of them. */
static const float *values(const dc_val *v)
{
    static float in[8][200], out[200];
    const void *params[8];
    int next = 0;
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        for (int64_t k = 0; k < dc_type_count(&t); k++)
            in[i][k] = (float)next++;
        params[i] = in[i];
    }
    DC_PUSH(f->result, v->ref);
    void *results[1] = {out};
    CHECK(dc_eval(&job, f, DC_EVAL_ROUND, params, results) == DC_OK);
    CHECK(dc_func_check(&job, f) == DC_OK);
    return out;
}

static dc_val fresh(const char *t)
{
    f = dc_func_new(module, "values");
    return val(t);
}

/* [b, m, k] x [b, k, n] with either batch left out. */
static void check_batches(const char *left, const char *right, bool lb, bool rb)
{
    enum { B = 2, M = 3, K = 4, N = 5 };
    dc_val out;
    const dc_val a = fresh(left), b = val(right);
    const int na = (lb ? B : 1) * M * K;
    CHECK(dc_build_matmul(&job, f, a, b, &out) == DC_OK);
    const float *got = values(&out);
    for (int i = 0; i < (lb || rb ? B : 1); i++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                float want = 0;
                for (int k = 0; k < K; k++)
                    want += (float)((lb ? i * M * K : 0) + m * K + k) *
                            (float)(na + (rb ? i * K * N : 0) + k * N + n);
                CHECK_NEAR(got[(i * M + m) * N + n], want, 0);
            }
}

static void test_values(void)
{
    dc_val out;
    dc_val in[2];
    in[0] = fresh("f32[2, 1]");
    in[1] = val("f32[3]");
    CHECK(dc_build_ew(&job, f, DC_OP_SUB, in, 2, &out) == DC_OK);
    const float *got = values(&out);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(got[i], (float)(i / 3 - (2 + i % 3)), 0);

    check_batches("f32[3, 4]", "f32[4, 5]", false, false);
    check_batches("f32[2, 3, 4]", "f32[4, 5]", true, false);
    check_batches("f32[3, 4]", "f32[2, 4, 5]", false, true);
    check_batches("f32[2, 3, 4]", "f32[2, 4, 5]", true, true);
    check_batches("f32[2, 3, 4]", "f32[1, 4, 5]", true, false);

    dc_val a = fresh("f32[2, 3]");
    CHECK(dc_build_mean(&job, f, a, 1, false, &out) == DC_OK);
    CHECK_NEAR(values(&out)[1], 2.5, 0);
    a = fresh("f32[0, 3]");
    CHECK(dc_build_mean(&job, f, a, 1, false, &out) == DC_OK);
    CHECK(isnan(values(&out)[0]));
    const int64_t first[] = {1, 0}, last[] = {1, 2}, step[] = {1, 2};
    a = fresh("f32[2, 3]");
    CHECK(dc_build_slice(&job, f, a, first, last, step, &out) == DC_OK);
    got = values(&out);
    CHECK(got[0] == 3 && got[1] == 5);
}

int main(void)
{
    dc_job_init(&job, NULL, NULL);
    names = dc_names_new();
    module = dc_module_new();
    f = dc_func_new(module, "build");
    test_broadcast();
    test_matmul();
    test_reduce();
    test_movement();
    test_slice();
    CHECK(dc_func_check(&job, f) == DC_OK);
    test_values();
    dc_module_free(module);
    dc_names_free(names);
    dc_job_fini(&job);
    return t_done();
}
