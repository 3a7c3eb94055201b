/*
 * Batching (core/transform/batch.h): what a batched function computes is what the function computes of each row, bit for
 * bit, with each set of parameters batched: every operation of the table, then random functions with loops and
 * branches. Terms are added in the same order, in double, so no bound is needed. Then the form: one product stays one.
 *
 *   test_batch [seed [functions]]
 */
#include "core/autodiff/custom.h"
#include "core/autodiff/grad.h"
#include "core/ir/control.h"
#include "core/ir/conv.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "core/transform/batch.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/bodygen.h"
#include "tests/unit/convgen.h"
#include "tests/unit/funcrun.h"
#include "tests/unit/hostgen.h"
#include "tests/unit/opgen.h"

static dc_job job;
static long compared, too_deep;

/* f with an axis on the parameters of the mask; which results have it. NULL: it would have too many axes. */
static dc_func *batched(const dc_func *f, uint64_t mask, int64_t size, bool *is)
{
    dc_func *g = dc_func_new(f->module, "batched");
    dc_ref param[64], result[64];
    bool flag[64];
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        int64_t dim[DC_MAX_RANK + 1] = {size};
        flag[i] = mask >> i & 1;
        memcpy(dim + 1, t.dim, t.rank * sizeof *dim);
        const dc_type with = dc_type_make((dc_dtype)t.dtype, t.rank + 1, dim);
        param[i] = dc_graph_param(g, flag[i] ? &with : &t, f->label.at[i]);
    }
    job.err = (dc_err){0};
    if (dc_batch_inline(&job, g, f, param, flag, size, result, is) != DC_OK) {
        if (!CHECK_EQ(job.err.id, DC_ERR_TOO_MANY_AXES)) {
            char text[400];
            dc_err_render(&job.err, 0, text, sizeof text);
            printf("    %s\n", text);
        }
        too_deep++;
        return NULL;
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(g->result, result[i]);
    CHECK_EQ(dc_func_check(&job, g), DC_OK);
    return g;
}

/* Row b of what stands for value r of f. */
static void *row(const dc_func *f, dc_ref r, void *all, bool is, int64_t b)
{
    const dc_type t = dc_node_type(f, r);
    const size_t bytes = (size_t)dc_type_count(&t) * dc_dtype_size((dc_dtype)t.dtype);
    return (char *)all + (is ? (size_t)b * bytes : 0);
}

static bool same_rows(const dc_func *f, void **in, void **all, uint64_t mask, int64_t size,
                      const bool *is)
{
    dc_arena *a = &job.scratch;
    void **out = funcrun_results(a, f);
    const void **one = DC_NEW_ARRAY(a, const void *, f->param.n + 1);
    for (int64_t b = 0; b < size; b++) {
        for (uint32_t i = 0; i < f->param.n; i++)
            one[i] = row(f, f->param.at[i], in[i], mask >> i & 1, b);
        if (!CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, one, out), DC_OK))
            return false;
        for (uint32_t i = 0; i < f->result.n; i++) {
            const dc_node *n = dc_node_at(f, f->result.at[i]);
            const void *got = row(f, f->result.at[i], all[i], is[i], b);
            const int64_t at = funcrun_differs((dc_dtype)n->dtype, got, out[i], dc_node_count(n));
            if (at >= 0) {
                printf("    row %lld of result %u (%s) differs at %lld\n", (long long)b, i,
                       dc_op_row_of((dc_op)n->op)->name, (long long)at);
                return false;
            }
            compared++;
        }
    }
    return true;
}

static bool try_mask(const dc_func *f, rng *r, uint64_t mask, int64_t size, bool special)
{
    const dc_mark mark = dc_arena_mark(&job.scratch);
    bool is[64] = {false}, said[64] = {false}, flag[64], good;
    dc_func *g = batched(f, mask, size, is);
    if (g == NULL)
        return true;
    for (uint32_t i = 0; i < f->param.n; i++)
        flag[i] = mask >> i & 1;
    dc_batch_results(&job, f, flag, said);
    CHECK(memcmp(is, said, sizeof is) == 0);
    void **in = funcrun_inputs(&job.scratch, r, g, special);
    void **all = funcrun_results(&job.scratch, g);
    good = dc_eval(&job, g, DC_EVAL_ROUND, (const void *const *)in, all) == DC_OK &&
           same_rows(f, in, all, mask, size, is);
    if (!CHECK(good)) {
        dc_text text = {0};
        dc_module_print(f->module, &text);
        printf("mask %llx of\n%s\n", (unsigned long long)mask, text.s);
        dc_text_free(&text);
    }
    dc_arena_rewind(&job.scratch, mark);
    return good;
}

/* Every set of parameters, of many a few; at least one. */
static bool try_masks(const dc_func *f, rng *r, bool special)
{
    const uint64_t all = (UINT64_C(1) << f->param.n) - 1;
    const int64_t size = 1 + rng_below(r, 4);
    bool good = true;
    if (f->param.n <= 3)
        for (uint64_t mask = 1; mask <= all; mask++)
            good = good && try_mask(f, r, mask, size, special);
    else
        for (int k = 0; k < 8; k++)
            good = good && try_mask(f, r, k == 0 ? all : rng_next(r) & all, size, special);
    return good;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void test_rows(rng *r)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 4, 5}, {2, 1, 7}};
    for (int op = 0; op < DC_OP__COUNT; op++) {
        long cases = 0;
        if (op == DC_OP_PARAM || dc_op_is((dc_op)op, DC_CLASS_PART) || op == DC_OP_STAGE ||
            dc_op_is((dc_op)op, DC_CLASS_CTL))
            continue;
        dc_module *m = dc_module_new();
        for (int t = 0; t < DC_DTYPE__COUNT; t++)
            for (size_t s = 0; s < DC_COUNTOF(shapes); s++) {
                dc_func *f = opgen_func(&job, m, (dc_op)op, (dc_dtype)t, DC_I32, shapes[s]);
                if (f == NULL)
                    continue;
                cases++;
                if (f->param.n > 0)
                    try_masks(f, r, s == 1);
            }
        if (!CHECK(cases > 0 || !hostgen_can((dc_op)op)))
            printf("no case for %s\n", dc_op_row_of((dc_op)op)->name);
        dc_module_free(m);
    }
}

static void test_convolutions(rng *r)
{
    for (int k = 0; k < 200; k++) {
        dc_module *m = dc_module_new();
        dc_func *f = dc_func_new(m, "conv");
        int64_t dim[2][DC_CONV_AXES];
        dc_conv c;
        convgen(r, &c, dim[0], dim[1]);
        dc_type t[2];
        for (int i = 0; i < 2; i++)
            t[i] = dc_type_make(DC_F32, 2 + c.n, dim[i]);
        const dc_ref x = dc_graph_param(f, &t[0], "x"), w = dc_graph_param(f, &t[1], "w");
        DC_PUSH(f->result, dc_graph_conv(f, x, w, &c));
        try_masks(f, r, false);
        dc_module_free(m);
    }
}

/* Contractions and picks of all kinds of axes are in random functions. */
static void test_random(uint64_t seed, int functions, rng *r)
{
    for (int k = 0; k < functions; k++) {
        dc_module *m = dc_module_new();
        dc_func *f = bodygen_func(m, seed + (uint64_t)k, 3 + k % 10, k % 4);
        if (f->param.n > 0 && !try_masks(f, r, k % 5 == 4))
            printf("seed %llu size %d depth %d\n", (unsigned long long)(seed + (uint64_t)k),
                   3 + k % 10, k % 4);
        dc_module_free(m);
    }
}

/* ---- the form -------------------------------------------------------------------------------- */

static dc_func *parse(dc_module **m, const char *s)
{
    job.err = (dc_err){0};
    if (CHECK_EQ(dc_module_parse(&job, s, m), DC_OK))
        return (*m)->func.at[0];
    char text[400];
    dc_err_render(&job.err, 1, text, sizeof text);
    printf("%s\n", text);
    return NULL;
}

static void check_form(const char *s, uint64_t mask, int64_t size, const char *want)
{
    dc_module *m = NULL;
    dc_func *f = parse(&m, s);
    bool is[64];
    dc_text text = {0};
    if (f == NULL)
        return;
    dc_func *g = batched(f, mask, size, is);
    if (CHECK(g != NULL)) {
        dc_func_print(dc_simplify(g), &text);
        CHECK_STR(strstr(text.s, "func"), want);
    }
    dc_text_free(&text);
    dc_module_free(m);
}

static const char product[] = "func f(%1: f32[4, 5], %2: f32[5, 6]) {\n"
                              "  %3 = dot %1, %2 {0, 1, 1, 0} : f32[4, 6]\n"
                              "  return %3\n}\n";

static void test_form(void)
{
    check_form(product, 1, 3,
               "func batched(%1: f32[3, 4, 5], %2: f32[5, 6]) {\n"
               "  %3 = dot %1, %2 {0, 1, 2, 0} : f32[3, 4, 6]\n"
               "  return %3\n}\n");
    check_form(product, 2, 3,
               "func batched(%1: f32[4, 5], %2: f32[3, 5, 6]) {\n"
               "  %3 = dot %1, %2 {0, 1, 1, 1} : f32[4, 3, 6]\n"
               "  %4 = permute %3 {1, 0, 2} : f32[3, 4, 6]\n"
               "  return %4\n}\n");
    check_form(product, 3, 3,
               "func batched(%1: f32[3, 4, 5], %2: f32[3, 5, 6]) {\n"
               "  %3 = dot %1, %2 {1, 1, 0, 0, 2, 1} : f32[3, 4, 6]\n"
               "  return %3\n}\n");
    /* What depends on no batched parameter is made once. */
    check_form("func f(%1: f32[4], %2: f32[4]) {\n"
               "  %3 = exp %1 : f32[4]\n"
               "  %4 = add %3, %2 : f32[4]\n"
               "  return %4, %3\n}\n",
               2, 3,
               "func batched(%1: f32[4], %2: f32[3, 4]) {\n"
               "  %3 = exp %1 : f32[4]\n"
               "  %4 = reshape %3 : f32[1, 4]\n"
               "  %5 = expand %4 : f32[3, 4]\n"
               "  %6 = add %2, %5 : f32[3, 4]\n"
               "  return %6, %3\n}\n");
}

/* Carries that have no rows stay as they are; xs and ys have the axis behind that of the elements. */
static void test_loop_form(void)
{
    check_form("body 0(%1: i32[], %2: f32[], %3: i32[], %4: f32[]) {\n"
               "  %5 = mul %2, %4 : f32[]\n"
               "  %6 = add %3, %1 : i32[]\n"
               "  return %5, %6, %5\n}\n"
               "func f(%1: f32[], %2: i32[], %3: f32[4]) {\n"
               "  %4 = loop %1, %2, %3 {0, 4, 0, 0, 2, 1, 1} : bool[0]\n"
               "  %5 = pick %4 {0} : f32[]\n"
               "  %6 = pick %4 {1} : i32[]\n"
               "  %7 = pick %4 {2} : f32[4]\n"
               "  return %5, %6, %7\n}\n",
               4, 3,
               "func batched(%1: f32[], %2: i32[], %3: f32[3, 4]) {\n"
               "  %4 = reshape %1 : f32[1]\n"
               "  %5 = expand %4 : f32[3]\n"
               "  %6 = permute %3 {1, 0} : f32[4, 3]\n"
               "  %7 = loop %5, %2, %6 {0, 4, 0, 0, 2, 1, 1} : bool[0]\n"
               "  %8 = pick %7 {0} : f32[3]\n"
               "  %9 = pick %7 {1} : i32[]\n"
               "  %10 = pick %7 {2} : f32[4, 3]\n"
               "  %11 = permute %10 {1, 0} : f32[3, 4]\n"
               "  return %8, %9, %11\n}\n");
}

/* Of a flag without rows both bodies are batched; of one with rows the flag selects. */
static void test_branch_form(void)
{
    static const char branch[] = "body 0(%1: f32[], %2: f32[]) {\n"
                                 "  %3 = add %1, %2 : f32[]\n"
                                 "  return %3, %1\n}\n"
                                 "body 1(%1: f32[], %2: f32[]) {\n"
                                 "  %3 = mul %1, %2 : f32[]\n"
                                 "  return %3, %1\n}\n"
                                 "func f(%1: bool[], %2: f32[], %3: f32[]) {\n"
                                 "  %4 = branch %1, %2, %3 {0, 1} : bool[0]\n"
                                 "  %5 = pick %4 {0} : f32[]\n"
                                 "  %6 = pick %4 {1} : f32[]\n"
                                 "  return %5, %6\n}\n";
    check_form(branch, 2, 3,
               "func batched(%1: bool[], %2: f32[3], %3: f32[]) {\n"
               "  %4 = branch %1, %2, %3 {0, 1} : bool[0]\n"
               "  %5 = pick %4 {0} : f32[3]\n"
               "  %6 = pick %4 {1} : f32[3]\n"
               "  return %5, %6\n}\n");
    check_form(branch, 3, 3,
               "func batched(%1: bool[3], %2: f32[3], %3: f32[]) {\n"
               "  %4 = reshape %3 : f32[1]\n"
               "  %5 = expand %4 : f32[3]\n"
               "  %6 = add %2, %5 : f32[3]\n"
               "  %7 = mul %2, %5 : f32[3]\n"
               "  %8 = where %1, %6, %7 : f32[3]\n"
               "  return %8, %2\n}\n");
}

/* ---- loops whose rows end at different iterations -------------------------------------------- */

static void test_ends(rng *r)
{
    static const char doubling[] =
        "body 0(%1: i32[], %2: f32[], %3: bool[], %4: f32[], %5: i32[], %6: f32[]) {\n"
        "  %7 = add %4, %4 : f32[]\n"
        "  %8 = lt %7, %2 : bool[]\n"
        "  %9 = const {1} : i32[]\n"
        "  %10 = add %1, %9 : i32[]\n"
        "  %11 = add %6, %7 : f32[]\n"
        "  return %8, %7, %10, %11\n"
        "}\n"
        "func f(%1: f32[], %2: f32[], %3: i32[], %4: f32[6], %5: f32[6]) {\n"
        "  %6 = lt %1, %2 : bool[]\n"
        "  %7 = const {0} : i32[]\n"
        "  %8 = loop %3, %2, %6, %1, %7, %4, %5 {0, 6, FLAGS, 1, 3, 1, 1} : bool[0]\n"
        "  %9 = pick %8 {0} : bool[]\n"
        "  %10 = pick %8 {1} : f32[]\n"
        "  %11 = pick %8 {2} : i32[]\n"
        "  %12 = pick %8 {3} : f32[6]\n"
        "  return %9, %10, %11, %12\n"
        "}\n";
    for (int flags = 6; flags < 8; flags++) {
        char text[sizeof doubling];
        dc_module *m = NULL;
        snprintf(text, sizeof text, "%s", doubling);
        char *at = strstr(text, "FLAGS");
        at[0] = (char)('0' + flags);
        memset(at + 1, ' ', 4);
        dc_func *f = parse(&m, text);
        for (uint64_t mask = 1; f != NULL && mask < 32; mask++)
            for (int64_t size = 0; size < 5; size++)
                try_mask(f, r, mask, size, false);
        dc_module_free(m);
    }
}

static void test_refused(void)
{
    dc_module *m = NULL;
    dc_func *f = parse(&m, "func f(%1: f32[1, 1, 1, 1, 1, 1, 1], %2: f32[2]) {\n"
                           "  %3 = reshape %1 : f32[1, 1, 1, 1, 1, 1, 1, 1]\n"
                           "  %4 = add %2, %2 : f32[2]\n"
                           "  return %3, %4\n}\n");
    bool is[64];
    const long before = too_deep;
    if (f != NULL) {
        CHECK(batched(f, 1, 2, is) == NULL);
        CHECK(batched(f, 2, 2, is) != NULL);
    }
    CHECK_EQ(too_deep, before + 1);
    too_deep = before;
    dc_module_free(m);
}

/* ---- gradients given by hand ----------------------------------------------------------------- */

/* exp(x) * c with three times the gradient that it has, so that it can be told from the real one. */
static dc_ref tripled(dc_func *f, dc_ref x, dc_ref y)
{
    dc_custom c;
    dc_ref out = 0;
    dc_custom_given(f, &x, 1, y, &c);
    const dc_ref d = dc_graph_op2(f, DC_OP_MUL, c.dy, c.y_again);
    const dc_ref dx = dc_graph_op2(f, DC_OP_MUL, d, dc_graph_like(f, d, 3));
    CHECK_EQ(dc_custom_end(&job, &c, &dx, &out), DC_OK);
    return out;
}

/* exp(x) * k, computed again for the gradient. */
static dc_ref repeated(dc_func *f, dc_ref x, dc_ref k)
{
    dc_custom c;
    dc_ref out = 0;
    dc_custom_begin(f, &x, 1, &c);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, c.stand_in[0]);
    CHECK_EQ(dc_custom_remat(&job, &c, dc_graph_op2(f, DC_OP_MUL, e, k), &out), DC_OK);
    return out;
}

/* Adds the gradient of the sum of result 0 for parameter i. */
static void add_gradient(dc_func *f, int i)
{
    const dc_ref y = f->result.at[0];
    const dc_ref loss = dc_graph_reduce(f, DC_OP_SUM, y, (1u << dc_node_at(f, y)->rank) - 1);
    dc_ref d = 0;
    CHECK_EQ(dc_grad(&job, f, loss, &f->param.at[i], 1, &d), DC_OK);
    DC_PUSH(f->result, d);
}

/* The gradient of the batched function is the batched gradient, also where the value itself has no rows. */
static void test_custom(rng *r)
{
    for (int which = 0; which < 3; which++)
        for (uint64_t mask = 1; mask < 4; mask++) {
            dc_module *m = dc_module_new();
            dc_func *f = dc_func_new(m, "custom");
            const dc_type t = dc_type_make(DC_F32, 1, (const int64_t[]){3});
            const dc_ref x = dc_graph_param(f, &t, "x"), k = dc_graph_param(f, &t, "k");
            const dc_ref e = dc_graph_op1(f, DC_OP_EXP, which == 0 ? x : k);
            DC_PUSH(f->result, which == 2 ? repeated(f, x, k)
                                          : dc_graph_op2(f, DC_OP_MUL, tripled(f, x, e), k));
            bool is[64];
            dc_func *g = batched(f, mask, 2, is);
            if (!CHECK(g != NULL))
                return;
            add_gradient(f, 0);
            add_gradient(g, 0);
            void **in = funcrun_inputs(&job.scratch, r, g, false);
            void **all = funcrun_results(&job.scratch, g);
            CHECK_EQ(dc_eval(&job, g, DC_EVAL_ROUND, (const void *const *)in, all), DC_OK);
            is[1] = mask & 1;
            if (mask & 1) { /* else the parts of the rows are added up */
                CHECK(same_rows(f, in, all, mask, 2, is));
            } else {
                void **out = funcrun_results(&job.scratch, f);
                float sum[3] = {0};
                for (int b = 0; b < 2; b++) {
                    const void *const one[2] = {in[0], (float *)in[1] + 3 * b};
                    CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, one, out), DC_OK);
                    for (int i = 0; i < 3; i++)
                        sum[i] += ((float *)out[1])[i];
                }
                for (int i = 0; i < 3; i++)
                    CHECK_NEAR(((float *)all[1])[i], sum[i], 1e-5 * fabsf(sum[i]));
            }
            dc_module_free(m);
        }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    test_form();
    test_loop_form();
    test_branch_form();
    test_refused();
    test_custom(&r);
    test_ends(&r);
    test_rows(&r);
    test_convolutions(&r);
    test_random(opt[0], (int)opt[1], &r);
    printf("%ld rows of results, %ld with too many axes\n", compared, too_deep);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 20261124), 300};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    if (!CHECK_EQ(dc_protect(&job, body, opt), DC_OK)) {
        char text[400];
        dc_err_render(&job.err, 0, text, sizeof text);
        printf("%s\n", text);
    }
    dc_job_fini(&job);
    if (hostgen_missing() != NULL)
        T_SKIP(hostgen_missing());
    return t_done();
}
