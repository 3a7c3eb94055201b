/*
 * Rewrites of loops and branches (jit/rewrite/loops.h): each by its text before and after, then random functions, whose
 * results have the same bits.
 *
 *   test_loops [seed [functions]]
 */
#include "core/ir/control.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "jit/rewrite/loops.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/bodygen.h"
#include "tests/unit/funcrun.h"
#include "tests/unit/loop_cases.h"

static dc_job job;
static long compared, loops[2];

static void count_control(const dc_func *f, long *out)
{
    const bool *live = dc_func_live(f, &job.scratch);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (!live[r] || !dc_is_control(n))
            continue;
        ++*out;
        for (int i = 0; i < dc_node_bodies(n); i++)
            count_control(dc_body_at(f->module, n->attr[i]), out);
    }
}

/* ---- each rewrite ---------------------------------------------------------------------------- */

static bool same_results(const dc_func *f, const dc_func *g, rng *r, bool special);

/* Matrices of any size in panels of two columns of f32; stacks of more than 200 bytes by chunks of some 140. */
static const dc_loop_sizes all = {
    .vector_bytes = 4, .stack_bytes = 200, .chunk_bytes = 140, .chunk_rows = 2};

static void test_cases(rng *r, const loop_case *cases, size_t n, const dc_loop_sizes *sizes)
{
    for (size_t i = 0; i < n; i++) {
        dc_module *m = NULL;
        dc_text text = {0};
        job.err = (dc_err){0};
        if (!CHECK_EQ(dc_module_parse(&job, cases[i].before, &m), DC_OK)) {
            char why[400];
            dc_err_render(&job.err, 1, why, sizeof why);
            printf("%s: %s\n", cases[i].what, why);
            continue;
        }
        const dc_func *f = m->func.at[0], *g = dc_loops(&job, f, sizes);
        dc_func_print(g, &text);
        if (!CHECK_STR(text.s, cases[i].after))
            printf("%s\n", cases[i].what);
        CHECK_EQ(dc_func_check(&job, g), DC_OK);
        for (int k = 0; k < 10; k++)
            CHECK(same_results(f, g, r, k > 5));
        dc_text_free(&text);
        dc_module_free(m);
    }
}

/* ---- random functions ------------------------------------------------------------------------ */

static double value_at(dc_dtype t, const void *array, int64_t i)
{
    return dc_value_of(t, dc_bits_load(t, (const char *)array + (size_t)i * dc_dtype_size(t)));
}

static bool same_results(const dc_func *f, const dc_func *g, rng *r, bool special)
{
    const dc_mark mark = dc_arena_mark(&job.scratch);
    void **in = funcrun_inputs(&job.scratch, r, f, special);
    void **want = funcrun_results(&job.scratch, f), **got = funcrun_results(&job.scratch, g);
    bool good = CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, (const void *const *)in, want), DC_OK) &&
                CHECK_EQ(dc_eval(&job, g, DC_EVAL_ROUND, (const void *const *)in, got), DC_OK);
    for (uint32_t i = 0; good && i < f->result.n; i++) {
        const dc_node *n = dc_node_at(f, f->result.at[i]);
        const int64_t at = funcrun_differs((dc_dtype)n->dtype, want[i], got[i], dc_node_count(n));
        if (at >= 0)
            printf("    result %u (%s) differs at %lld: %.9g, %.9g before\n", i,
                   dc_op_row_of((dc_op)n->op)->name, (long long)at,
                   value_at((dc_dtype)n->dtype, got[i], at),
                   value_at((dc_dtype)n->dtype, want[i], at));
        good = at < 0;
        compared++;
    }
    dc_arena_rewind(&job.scratch, mark);
    return good;
}

static bool try_function(dc_func *f, rng *r, bool special)
{
    /* Whatever may be in chunks is. */
    static const dc_loop_sizes few = {
        .vector_bytes = 4, .stack_bytes = 1, .chunk_bytes = 16, .chunk_rows = 1};
    const dc_func *g = dc_loops(&job, f, &few);
    count_control(f, &loops[0]);
    count_control(g, &loops[1]);
    bool good = CHECK_EQ(dc_func_check(&job, g), DC_OK) && same_results(f, g, r, special);
    if (good) { /* what follows in compilation */
        const dc_func *s = dc_simplify(dc_loops(&job, dc_simplify(f), &few));
        good = CHECK_EQ(dc_func_check(&job, s), DC_OK) && same_results(f, s, r, special);
    }
    if (!CHECK(good)) {
        dc_text text = {0};
        dc_func_print(f, &text);
        dc_text_puts(&text, "becomes\n");
        dc_func_print(g, &text);
        printf("%s\n", text.s);
        dc_text_free(&text);
    }
    return good;
}

static void test_random(uint64_t seed, int functions, rng *r)
{
    for (int k = 0; k < functions; k++) {
        dc_module *m = dc_module_new();
        dc_func *f = bodygen_func(m, seed + (uint64_t)k, 2 + k % 8, 1 + k % 3);
        if (!try_function(f, r, k % 5 == 4))
            printf("seed %llu size %d depth %d\n", (unsigned long long)(seed + (uint64_t)k),
                   2 + k % 8, 1 + k % 3);
        dc_module_free(m);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    test_cases(&r, loop_cases, DC_COUNTOF(loop_cases), &(dc_loop_sizes){0});
    test_cases(&r, panel_cases, DC_COUNTOF(panel_cases), &all);
    test_random(opt[0], (int)opt[1], &r);
    printf("%ld results, %ld loops and branches became %ld\n", compared, loops[0], loops[1]);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 20261125), 400};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    if (!CHECK_EQ(dc_protect(&job, body, opt), DC_OK)) {
        char text[400];
        dc_err_render(&job.err, 0, text, sizeof text);
        printf("%s\n", text);
    }
    dc_job_fini(&job);
    return t_done();
}
