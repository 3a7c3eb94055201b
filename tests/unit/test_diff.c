/*
 * Compiled code against the interpreter (tests/unit/diff.h): every row of the op table by itself,
 * graphs that failed once, then random graphs.
 *
 *   test_diff [seed [graphs]]
 */
#include "tests/unit/diff.h"
#include "tests/unit/hostgen.h"
#include "tests/unit/opgen.h"

static long by_row;

/* Rows ---------------------------------------------------------------------------------------- */

static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 16, 33}, {13, 1, 64}};

static void test_rows(dc_module *m, rng *r)
{
    for (int op = 0; op < DC_OP__COUNT; op++) {
        long cases = 0;
        if (op == DC_OP_PARAM || dc_op_is((dc_op)op, DC_CLASS_PART) || op == DC_OP_STAGE ||
            dc_op_is((dc_op)op, DC_CLASS_CTL)) /* test_eval, lua/test_slices, test_control */
            continue;
        for (int t = 0; t < DC_DTYPE__COUNT; t++)
            for (size_t s = 0; s < DC_COUNTOF(shapes); s++)
                for (int to = 0; to < DC_DTYPE__COUNT; to++) {
                    const bool any_index = t == DC_F32 || to == DC_I32;
                    if (dc_op_is((dc_op)op, DC_CLASS_IDX)
                            ? !any_index
                            : op != DC_OP_CAST && op != DC_OP_BITCAST && to > 0)
                        continue;
                    dc_func *f =
                        opgen_func(&rt->job, m, (dc_op)op, (dc_dtype)t, (dc_dtype)to, shapes[s]);
                    if (f == NULL)
                        continue;
                    cases++;
                    CHECK(diff_try(f, r, false, s == 2 || dc_op_is((dc_op)op, DC_CLASS_CON)));
                }
        if (!CHECK(cases > 0 || !hostgen_can((dc_op)op)))
            printf("no case for %s\n", dc_op_row_of((dc_op)op)->name);
        by_row += cases;
    }
}

/* Graphs that failed once: seed and size. */
static const struct {
    uint64_t seed;
    int size;
    const char *what;
} regressions[] = {
    {3701792, 12, "two groups that waited for each other"},
};

static void test_regressions(rng *r)
{
    for (size_t i = 0; i < DC_COUNTOF(regressions); i++) {
        dc_module *m = dc_module_new();
        if (!CHECK(diff_try(graphgen_func(m, regressions[i].seed, regressions[i].size), r, false,
                            true)))
            printf("%s\n", regressions[i].what);
        dc_module_free(m);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    dc_module *m = dc_module_new();
    test_rows(m, &r);
    dc_module_free(m);
    test_regressions(&r);
    for (uint64_t g = 0; g < opt[1]; g++) {
        const uint64_t seed = opt[0] + g;
        m = dc_module_new();
        dc_func *f = (g % 4 == 1 ? graphgen_host : graphgen_func)(m, seed, 4 + (int)(g % 16));
        if (!CHECK(diff_try(f, &r, g % 4 == 3, true)))
            printf("graph seed %llu size %d\n", (unsigned long long)seed, 4 + (int)(g % 16));
        dc_module_free(m);
    }
    printf("%ld cases by row, %llu graphs, ", by_row, (unsigned long long)opt[1]);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 20261121), 120};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    if (hostgen_missing() != NULL)
        T_SKIP(hostgen_missing());
    return diff_main(body, opt);
}
