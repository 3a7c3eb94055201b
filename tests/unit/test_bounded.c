/*
 * core/transform/bounded.c and its parts: each kind of node with sizes that are known at run time, lowered and interpreted
 * on arrays of the bounds in which NaN and large integers lie behind the actual sizes, beside the same graph with the
 * sizes put in. Values are whole numbers, so results are equal.
 *
 *   test_bounded [seed]
 */
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "core/ir/gtext.h"
#include "core/transform/bounded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/boundgen.h"
#include "tests/unit/funcrun.h"
#include "tests/unit/loopgen.h"

static dc_job job;
static boundgen g; /* the variables */
static dc_func *f; /* what a case makes */
static int64_t n, m, half;
static const char *title;
static rng dice;
static long compared;

/* ---- making ----------------------------------------------------------------------------------- */

static dc_ref in(dc_dtype t, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(t, rank, dim);
    return dc_graph_param(f, &type, "x");
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define F(...)    in(DC_F32, sizeof DIMS(__VA_ARGS__) / sizeof(int64_t), DIMS(__VA_ARGS__))
#define I(...)    in(DC_I32, sizeof DIMS(__VA_ARGS__) / sizeof(int64_t), DIMS(__VA_ARGS__))

static void out(dc_ref r)
{
    DC_PUSH(f->result, r);
}

static int64_t plus(int64_t a, int64_t b)
{
    return dc_extent_add(g.table, a, b);
}

static int64_t times(int64_t a, int64_t b)
{
    return dc_extent_mul(g.table, a, b);
}

static dc_ref constant(dc_dtype t, double v, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(t, rank, dim);
    return dc_graph_const(f, &type, v);
}

static void reductions(void)
{
    static const dc_op op[] = {DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR, DC_OP_PROD};
    const dc_ref x = F(n, m, 3), y = I(n, m), flags = in(DC_BOOL, 2, DIMS(n, m));
    const dc_ref one = dc_graph_op2(f, DC_OP_MIN, x, dc_graph_like(f, x, 1));
    const dc_ref small = dc_graph_op2(f, DC_OP_MAX, one, dc_graph_like(f, x, -1));
    for (int k = 0; k < 4; k++)
        for (uint32_t axes = 1; axes < 8; axes++)
            out(dc_graph_reduce(f, op[k], k == 3 ? small : x, axes));
    for (int k = 0; k < 4; k++)
        out(dc_graph_reduce(f, op[k], y, 1));
    out(dc_graph_reduce(f, DC_OP_SUM, flags, 3));
}

/* Numbers of elements, also of constants that a product with them would spoil. */
static void counts(void)
{
    static const double v[] = {1, -3, 0, INFINITY, -INFINITY, NAN};
    for (int k = 0; k < 6; k++)
        for (uint32_t axes = 1; axes < 8; axes++)
            out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_F32, v[k], 3, DIMS(n, 3, m)), axes));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_I32, -7, 2, DIMS(n, m)), 3));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_I8, -7, 2, DIMS(n, m)), 3));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_BOOL, 1, 2, DIMS(n, m)), 2));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_I64, 1 << 20, 2, DIMS(n, m)), 1));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_F16, 2, 2, DIMS(n, 3)), 3));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_F16, 0, 3, DIMS(n, 300, 300)), 7));
    out(dc_graph_reduce(f, DC_OP_SUM, constant(DC_F16, 0x1p-10, 3, DIMS(n, 256, 512)), 7));
    out(dc_graph_reduce(f, DC_OP_MAXR, constant(DC_F32, 2, 2, DIMS(n, 3)), 1));
    out(dc_graph_reduce(f, DC_OP_PROD, constant(DC_F32, 2, 2, DIMS(n, 3)), 1));
    out(dc_graph_extent(f, times(n, m)));
}

static void dots(void)
{
    const dc_ref a = F(n, m, 3), b = F(m, n, 3), w = F(3, n);
    out(dc_graph_dot(f, a, w, 0, NULL, NULL, 1, DIMS(2), DIMS(0)));       /* free sizes */
    out(dc_graph_dot(f, a, w, 0, NULL, NULL, 1, DIMS(0), DIMS(1)));       /* contracted */
    out(dc_graph_dot(f, a, w, 0, NULL, NULL, 2, DIMS(0, 2), DIMS(1, 0))); /* with a number */
    out(dc_graph_dot(f, a, b, 0, NULL, NULL, 2, DIMS(0, 1), DIMS(1, 0)));
    out(dc_graph_dot(f, a, b, 1, DIMS(0), DIMS(1), 1, DIMS(1), DIMS(0))); /* batch */
    out(dc_graph_dot(f, a, b, 1, DIMS(2), DIMS(2), 1, DIMS(0), DIMS(1)));
    out(dc_graph_dot(f, I(n, m), I(m, 2), 0, NULL, NULL, 1, DIMS(1), DIMS(0)));
}

static void convolutions(void)
{
    dc_conv c = dc_conv_plain(1), d;
    c.dim[0].lo = 1;
    out(dc_graph_conv(f, F(n, 2, 5), F(3, 2, 3), &c)); /* batch */
    out(dc_graph_conv(f, F(2, n, 5), F(3, n, 3), &c)); /* channels */
    out(dc_graph_conv(f, F(2, 3, 5), F(n, 3, 3), &c));
    out(dc_graph_conv(f, F(n, m, 5), F(m, m, 3), &c));
    d = dc_conv_plain(1); /* as for the gradient of a kernel: the batch is added up */
    d.in[0] = 1;
    d.in[1] = 0;
    d.kernel[0] = 1;
    d.kernel[1] = 0;
    out(dc_graph_conv(f, F(n, 2, 5), F(n, 3, 4), &d));
}

static void reshapes(void)
{
    out(dc_graph_reshape(f, F(n, 6), 1, DIMS(times(n, 6))));
    out(dc_graph_reshape(f, F(n, 6), 2, DIMS(times(n, 2), 3)));
    out(dc_graph_reshape(f, F(times(n, 2), 3), 2, DIMS(n, 6)));
    out(dc_graph_reshape(f, F(4, n), 1, DIMS(times(n, 4))));
    out(dc_graph_reshape(f, F(times(n, 4)), 2, DIMS(4, n)));
    out(dc_graph_reshape(f, F(4, n), 3, DIMS(2, 2, n)));
    out(dc_graph_reshape(f, F(6, n), 2, DIMS(n, 6)));
    out(dc_graph_reshape(f, F(n, m), 1, DIMS(times(n, m))));
    out(dc_graph_reshape(f, F(times(n, m)), 2, DIMS(m, n)));
    out(dc_graph_reshape(f, F(n, m, 2), 3, DIMS(2, m, n)));
    out(dc_graph_reshape(f, F(2, n, 3), 2, DIMS(2, times(n, 3))));
    out(dc_graph_reshape(f, F(2, n, 3, m), 2, DIMS(times(n, 6), m)));
    out(dc_graph_reshape(f, F(1, n, 1), 3, DIMS(n, 1, 1)));
    out(dc_graph_reshape(f, F(1, n), 4, DIMS(1, 1, n, 1)));
    out(dc_graph_reshape(f, F(n, plus(n, 1)), 2, DIMS(plus(n, 1), n)));
    out(dc_graph_reshape(f, F(half, 2, m), 1, DIMS(times(times(half, 2), m))));
    out(dc_graph_reshape(f, F(0, 3), 2, DIMS(0, 5)));
    out(dc_graph_reshape(f, F(0, n), 2, DIMS(m, 0)));
    out(dc_graph_reshape(f, F(3, 4), 2, DIMS(2, 6)));
}

static dc_ref sliced(dc_ref x, int64_t start, int64_t step, int64_t size)
{
    int64_t at[DC_MAX_RANK] = {start}, by[DC_MAX_RANK] = {step, 1, 1}, dim[DC_MAX_RANK];
    memcpy(dim, dc_node_at(f, x)->dim, sizeof *dim * dc_node_at(f, x)->rank);
    dim[0] = size;
    return dc_graph_slice(f, x, at, by, dim);
}

static void slices(void)
{
    const dc_ref x = F(plus(n, 1), 2), both = F(plus(n, m), m);
    const int64_t odd = dc_extent_sub(g.table, n, times(dc_extent_div(g.table, n, 2), 2));
    out(sliced(x, 1, 1, n));
    out(sliced(x, 0, 1, n));
    out(sliced(x, n, 1, 1));
    out(sliced(x, 0, 2, dc_extent_div(g.table, plus(n, 2), 2)));
    out(sliced(both, m, 1, n));
    out(sliced(both, n, 1, m));
    out(sliced(F(plus(times(n, 2), m)), m, 2, n)); /* from m, every second one */
    out(sliced(F(9), n, 1, 1));
    out(sliced(F(1, m), 0, 1, odd)); /* at most one */
    out(dc_graph_slice(f, F(n, plus(m, 2), plus(n, m)), DIMS(0, 2, m), DIMS(1, 1, 1),
                       DIMS(n, m, n)));
}

static dc_ref padded(dc_ref x, int64_t lo, int64_t step, int64_t size, double fill)
{
    int64_t at[DC_MAX_RANK] = {lo}, by[DC_MAX_RANK] = {step, 1, 1}, dim[DC_MAX_RANK];
    const dc_dtype t = (dc_dtype)dc_node_at(f, x)->dtype;
    memcpy(dim, dc_node_at(f, x)->dim, sizeof *dim * dc_node_at(f, x)->rank);
    dim[0] = size;
    return dc_graph_pad(f, x, at, by, dim, dc_bits_of(t, fill));
}

static void pads(void)
{
    const dc_ref x = F(n, 2), y = I(n, m);
    out(padded(x, 0, 1, plus(n, 3), 2));
    out(padded(x, 1, 1, plus(n, 3), -INFINITY));
    out(padded(x, m, 1, plus(n, m), 3));
    out(padded(x, m, 1, plus(plus(n, m), 2), 3));
    out(padded(y, m, 1, plus(plus(n, m), n), 5));
    out(padded(F(3), n, 1, plus(n, 4), 1));
    out(padded(F(0), n, 1, plus(n, 4), 1));
    out(padded(F(plus(n, 1)), 1, 2, plus(times(n, 2), 3), 4)); /* between them, too */
    out(dc_graph_pad(f, F(n, m), DIMS(m, 1), DIMS(1, 1), DIMS(plus(n, m), plus(m, 2)),
                     dc_bits_of(DC_F32, 7)));
}

static void flips(void)
{
    const dc_ref x = F(n, 3, m);
    for (uint32_t axes = 1; axes < 8; axes++)
        out(dc_graph_flip(f, x, axes));
}

/* What is above every size, also as a signed number. */
static dc_ref extreme(dc_dtype t)
{
    const dc_ref i = I(3);
    return dc_graph_cast(f, i, t);
}

static void picks(void)
{
    static const dc_dtype dtypes[] = {DC_I8, DC_U8, DC_I16, DC_I32, DC_U32, DC_I64, DC_U64};
    const dc_ref x = F(plus(n, 1), 3), i = I(m), k = I(n, 2);
    for (int t = 0; t < 7; t++)
        out(dc_graph_gather(f, x, extreme(dtypes[t]), 0, 0));
    out(dc_graph_gather(f, x, i, 0, 0));
    out(dc_graph_gather(f, x, i, 1, 0));
    out(dc_graph_gather(f, F(5, m), i, 0, 0));
    out(dc_graph_gather(f, F(n, plus(m, 1), 2), k, 1, 1)); /* along axis 1, n in common */
}

static void scatters(void)
{
    static const dc_dtype dtypes[] = {DC_I8, DC_U8, DC_I32, DC_U32, DC_I64, DC_U64};
    const dc_ref x = F(n, 2), u = F(m, 2), i = I(m);
    for (int op = 0; op < 3; op++) {
        const dc_op how = (const dc_op[]){DC_OP_SCATTER, DC_OP_SCATTER_ADD, DC_OP_SCATTER_MAX}[op];
        for (int t = 0; t < 6; t++)
            out(dc_graph_scatter(f, how, x, dc_graph_cast(f, i, dtypes[t]), u, 0, 0));
        out(dc_graph_scatter(f, how, F(5, m), i, F(m, m), 0, 0));
        out(dc_graph_scatter(f, how, F(n, plus(m, 1)), I(n, 2), F(n, 2), 1, 1));
        out(dc_graph_scatter(f, how, x, extreme(DC_U64), F(3, 2), 0, 0));
    }
}

static void element_wise(void)
{
    const dc_ref x = F(n, m), y = F(n, m), one = F(1, m);
    const int64_t along = 0;
    const dc_type t = dc_type_make(DC_I32, 2, DIMS(n, m));
    out(dc_graph_op2(f, DC_OP_ADD, x, y));
    out(dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, x, y), x, y));
    out(dc_graph_expand(f, one, DIMS(n, m)));
    out(dc_graph_permute(f, x, DIMS(1, 0)));
    out(dc_graph_cast(f, x, DC_I32));
    out(dc_graph_make(f, DC_OP_IOTA, NULL, 0, &along, 1, &t));
    out(constant(DC_F32, 3, 2, DIMS(m, n)));
}

/* ---- loops and branches ----------------------------------------------------------------------- */

/* c, x -> [while c is not 5] c + x * i + the sum of a constant of n; ys: that and x */
static uint32_t body_of(bool test, int64_t size)
{
    dc_func *outside = f;
    f = dc_func_new(f->module, "body");
    const dc_ref i = in(DC_I32, 0, NULL), k = F(n);
    const dc_ref go = test ? in(DC_BOOL, 0, NULL) : 0;
    const dc_ref c = F(size), x = F(size);
    const dc_ref all = dc_graph_reduce(f, DC_OP_SUM, k, 1);
    const dc_ref by = dc_graph_expand(
        f, dc_graph_reshape(f, dc_graph_cast(f, i, DC_F32), 1, DIMS(1)), DIMS(size));
    dc_ref next = dc_graph_op2(f, DC_OP_ADD, c, dc_graph_op2(f, DC_OP_MUL, x, by));
    next = dc_graph_op2(f, DC_OP_ADD, next,
                        dc_graph_expand(f, dc_graph_reshape(f, all, 1, DIMS(1)), DIMS(size)));
    next = dc_graph_op2(f, DC_OP_MIN, next, dc_graph_like(f, next, 64));
    next = dc_graph_op2(f, DC_OP_MAX, next, dc_graph_like(f, next, -64));
    if (go != 0) {
        const dc_ref stop = dc_graph_op2(f, DC_OP_LT, i, dc_graph_like(f, i, 2));
        out(dc_graph_op2(f, DC_OP_AND, go, stop));
    }
    out(next);
    out(dc_graph_reduce(f, DC_OP_SUM, next, 1));
    out(x);
    dc_func *body = f;
    f = outside;
    const uint32_t made = dc_body_add(f->module, body);
    dc_func_drop(body);
    return made;
}

static void loop_with(uint32_t flags, int64_t count, int64_t size)
{
    const bool test = (flags & DC_LOOP_TEST) != 0,
               ends = (flags & (DC_LOOP_TEST | DC_LOOP_LIMIT)) != 0;
    dc_loop l = {.n = count, .flags = flags, .nconst = 1, .ncarry = 1 + test, .nx = 1, .ny = 2};
    dc_ref at[8];
    int k = 0;
    l.body = body_of(test, size);
    if (flags & DC_LOOP_LIMIT)
        at[k++] = in(DC_I32, 0, NULL);
    at[k++] = F(n);
    if (test)
        at[k++] = constant(DC_BOOL, 1, 0, NULL);
    at[k++] = F(size);
    at[k++] = F(count, size);
    if (ends) {
        at[k++] = F(count);
        at[k++] = F(count, size);
    }
    const dc_ref r = dc_graph_loop(f, &l, at);
    for (int i = test; i < l.ncarry + l.ny; i++)
        out(dc_graph_pick(f, r, i));
}

static void loops(void)
{
    static const uint32_t flags[] = {0,
                                     DC_LOOP_REVERSE,
                                     DC_LOOP_LIMIT,
                                     DC_LOOP_LIMIT | DC_LOOP_REVERSE,
                                     DC_LOOP_TEST,
                                     DC_LOOP_TEST | DC_LOOP_LIMIT};
    for (int i = 0; i < 6; i++) {
        loop_with(flags[i], n, 3); /* so many iterations, */
        loop_with(flags[i], 4, m); /* carries and elements so large, */
        loop_with(flags[i], plus(n, m), n);
    }
}

/* A loop of m in one of n; a branch in it whose sides add up different axes. */
static void nested(void)
{
    dc_func *outside = f, *inner, *side[2];
    uint32_t body[2];
    for (int k = 0; k < 2; k++) {
        f = side[k] = dc_func_new(outside->module, "side");
        const dc_ref x = F(m);
        const dc_ref r = dc_graph_reduce(f, k ? DC_OP_MAXR : DC_OP_SUM, x, 1);
        out(dc_graph_op2(f, DC_OP_MIN, r, dc_graph_like(f, r, 8)));
        body[k] = dc_body_add(outside->module, f);
        dc_func_drop(f);
    }
    f = inner = dc_func_new(outside->module, "inner");
    dc_ref i = in(DC_I32, 0, NULL), k = F(m), c = in(DC_F32, 0, NULL), v = in(DC_F32, 0, NULL);
    const dc_ref odd = dc_graph_op2(f, DC_OP_LT, i, dc_graph_like(f, i, 1));
    const dc_ref b = dc_graph_branch(f, body[0], body[1], (dc_ref[]){odd, k}, 2);
    out(dc_graph_op2(f, DC_OP_ADD, dc_graph_op2(f, DC_OP_ADD, c, v), dc_graph_pick(f, b, 0)));
    const uint32_t one = dc_body_add(outside->module, f);
    dc_func_drop(inner);
    f = inner = dc_func_new(outside->module, "outer");
    i = in(DC_I32, 0, NULL), c = in(DC_F32, 0, NULL), k = F(m);
    const dc_loop of_m = {.body = one, .n = m, .nconst = 1, .ncarry = 1, .nx = 1};
    const dc_ref r = dc_graph_pick(f, dc_graph_loop(f, &of_m, (dc_ref[]){k, c, k}), 0);
    out(dc_graph_op2(f, DC_OP_MIN, r, dc_graph_like(f, r, 30)));
    out(r);
    const uint32_t two = dc_body_add(outside->module, f);
    dc_func_drop(inner);
    f = outside;
    const dc_loop of_n = {.body = two, .n = n, .ncarry = 1, .nx = 1, .ny = 1};
    const dc_ref all = dc_graph_loop(f, &of_n, (dc_ref[]){in(DC_F32, 0, NULL), F(n, m)});
    out(dc_graph_pick(f, all, 0));
    out(dc_graph_pick(f, all, 1));
    const dc_ref last =
        dc_graph_branch(f, body[0], body[1], (dc_ref[]){in(DC_BOOL, 0, NULL), F(m)}, 2);
    out(dc_graph_pick(f, last, 0));
}

/* ---- running ---------------------------------------------------------------------------------- */

static double value_at(dc_dtype t, const void *array, int64_t i)
{
    return dc_value_of(t, dc_bits_load(t, (const char *)array + (size_t)i * dc_dtype_size(t)));
}

static void fill(const dc_type *t, void *to)
{
    loopgen_input(&dice, t, to);
}

static void run_with(const dc_func *low, const dc_extent_list *sizes, uint32_t before,
                     boundgen_sizes *at)
{
    dc_arena *a = &job.scratch;
    const dc_mark mark = dc_arena_mark(a);
    dc_func *fixed = NULL;
    if (!CHECK_EQ(dc_bounded_fix(&job, f, boundgen_value, at, &fixed), DC_OK))
        return;
    CHECK_EQ(dc_func_check(&job, fixed), DC_OK);
    CHECK(!dc_bounded_any(fixed));
    void **few = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    void **all = DC_NEW_ARRAY(a, void *, low->param.n + 1);
    for (uint32_t i = 0; i < low->param.n; i++) {
        const dc_type whole = dc_node_type(low, low->param.at[i]);
        all[i] = funcrun_array(a, &whole);
        if (i >= before && i < before + sizes->n) {
            const int32_t v =
                (int32_t)dc_extent_eval(g.table, sizes->at[i - before], boundgen_value, at);
            memcpy(all[i], &v, sizeof v);
            continue;
        }
        const uint32_t k = i < before ? i : i - sizes->n;
        const dc_type part = dc_node_type(fixed, fixed->param.at[k]);
        few[k] = funcrun_array(a, &part);
        fill(&part, few[k]);
        boundgen_junk(&dice, &whole, all[i]);
        boundgen_copy(&part, &whole, all[i], few[k], true);
    }
    void **want = funcrun_results(a, fixed), **got = funcrun_results(a, low);
    CHECK_EQ(dc_eval(&job, fixed, DC_EVAL_ROUND, (const void *const *)few, want), DC_OK);
    CHECK_EQ(dc_eval(&job, low, DC_EVAL_ROUND, (const void *const *)all, got), DC_OK);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type part = dc_node_type(fixed, fixed->result.at[i]);
        const dc_type whole = dc_node_type(low, low->result.at[i]);
        void *is = funcrun_array(a, &part);
        boundgen_copy(&part, &whole, is, got[i], false);
        for (int64_t k = 0; k < dc_type_count(&part); k++) {
            const double x = value_at((dc_dtype)part.dtype, is, k);
            const double y = value_at((dc_dtype)part.dtype, want[i], k);
            compared++;
            if (CHECK(x == y || (isnan(x) && isnan(y))))
                continue;
            printf("    %s, result %u element %lld: %g, not %g, where n = %lld and m = %lld\n",
                   title, i, (long long)k, x, y, (long long)at->value[0], (long long)at->value[1]);
            break;
        }
    }
    dc_arena_rewind(a, mark);
}

static void run_all(int64_t least)
{
    for (uint32_t before = 0; before <= f->param.n; before += f->param.n > 0 ? f->param.n : 1) {
        dc_extent_list sizes = {0};
        dc_func *low = NULL;
        CHECK(dc_bounded_any(f));
        const dc_status status = dc_bounded_lower(&job, f, before, &sizes, &low);
        if (!CHECK_EQ(status, DC_OK)) {
            char why[600];
            dc_err_render(&job.err, 0, why, sizeof why);
            printf("    %s: %s\n", title, why);
            return;
        }
        CHECK_EQ(dc_func_check(&job, low), DC_OK);
        CHECK(!dc_bounded_any(low));
        CHECK_EQ(low->param.n, f->param.n + sizes.n);
        for (uint32_t i = 0; i < sizes.n; i++)
            for (uint32_t k = 0; k < i; k++)
                CHECK(dc_extent_is(sizes.at[i]) && sizes.at[i] != sizes.at[k]);
        boundgen_sizes at = {.g = &g};
        for (at.value[0] = least; at.value[0] <= g.most[0]; at.value[0]++)
            for (at.value[1] = least; at.value[1] <= g.most[1]; at.value[1]++)
                run_with(low, &sizes, before, &at);
        DC_VEC_FREE(sizes);
    }
}

static void open_case(int64_t least)
{
    dc_module *module = dc_module_new();
    g = (boundgen){.table = dc_extents_new(), .nvar = 2};
    const int64_t most[] = {5, 3};
    for (int v = 0; v < 2; v++) {
        g.least[v] = least;
        g.most[v] = most[v];
        g.var[v] = dc_extent_var(g.table, v ? "m" : "n", least, most[v]);
    }
    n = g.var[0];
    m = g.var[1];
    half = dc_extent_div(g.table, plus(n, 1), 2);
    job.extents = module->extents = g.table;
    f = dc_func_new(module, "f");
}

static void close_case(void)
{
    dc_module_free(f->module);
    dc_extents_free(g.table);
    job.extents = NULL;
}

typedef struct test_case {
    const char *what;
    void (*make)(void);
    int64_t least;
} test_case;

static dc_status run_cases(dc_job *j, void *arg)
{
    static const test_case all[] = {
        {"reductions", reductions, 0},
        {"counts", counts, 0},
        {"dots", dots, 0},
        {"conv", convolutions, 0},
        {"reshapes", reshapes, 0},
        {"slices", slices, 0},
        {"pads", pads, 0},
        {"flips", flips, 0},
        {"picks", picks, 0},
        {"scatters", scatters, 0},
        {"ew", element_wise, 0},
        {"loops", loops, 0},
        {"nested", nested, 0},
        {"reductions", reductions, 1},
        {"slices", slices, 1},
        {"reshapes", reshapes, 1},
        {"loops", loops, 1},
        {"pads", pads, 1},
    };
    DC_UNUSED(j);
    DC_UNUSED(arg);
    for (size_t i = 0; i < DC_COUNTOF(all); i++) {
        title = all[i].what;
        open_case(all[i].least);
        all[i].make();
        run_all(all[i].least);
        close_case();
    }
    return DC_OK;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static dc_status refused(dc_job *j, void *arg)
{
    dc_extent_list sizes = {0};
    dc_func *low = NULL;
    char why[600];
    DC_UNUSED(arg);
    open_case(1);
    out(padded(F(n, 2), m, 2, plus(plus(times(n, 2), m), 4), 0));
    CHECK_EQ(dc_bounded_lower(j, f, 0, &sizes, &low), DC_E_TYPE);
    CHECK_EQ(j->err.id, DC_ERR_EXTENT_TEXT);
    dc_err_render(&j->err, 0, why, sizeof why);
    CHECK(strstr(why, "a margin known at run time and a step") != NULL);
    CHECK(low == NULL);
    DC_VEC_FREE(sizes);
    close_case();
    open_case(1); /* numbers alone are left as they are */
    out(dc_graph_reduce(f, DC_OP_SUM, F(3, 4), 1));
    CHECK(!dc_bounded_any(f));
    CHECK_EQ(dc_bounded_lower(j, f, 0, &sizes, &low), DC_OK);
    CHECK_EQ(sizes.n, 0);
    CHECK_EQ((long long)dc_func_hash(low), (long long)dc_func_hash(f));
    close_case();
    return DC_OK;
}

int main(int argc, char **argv)
{
    dice.state = rng_seed(argc, argv, 3);
    CHECK_EQ(dc_protect(&job, run_cases, NULL), DC_OK);
    if (job.err.status != DC_OK) {
        char why[600];
        dc_err_render(&job.err, 0, why, sizeof why);
        printf("%s: %s\n", title, why);
    }
    CHECK_EQ(dc_protect(&job, refused, NULL), DC_OK);
    dc_job_fini(&job);
    printf("%ld elements\n", compared);
    return t_done();
}
