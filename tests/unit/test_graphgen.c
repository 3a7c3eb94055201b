/*
 * The graph generator and its error bound, tested on the interpreter itself: rounded and strict
 * evaluations stay within the bound of the wide one, on many random graphs, with ordinary and with
 * special inputs; the bound is not so wide that it says nothing. The seed is printed; argument 1
 * sets it, argument 2 the number of graphs.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/hostgen.h"

enum { MAX_SIZE = 40 };

static dc_job job;
static long seen_op[DC_OP__COUNT], seen_dtype[DC_DTYPE__COUNT];
static long elements, known, tight, empty_nodes, graphs;

typedef struct run {
    dc_func *f;
    void **in, **out;
    double **value, **bound;
} run;

static void *array(dc_module *m, int64_t n, size_t size)
{
    return dc_arena_alloc(&m->arena, (size_t)n * size);
}

/* Some with operations of the host. */
static dc_func *function_of(dc_module *m, uint64_t seed, int size)
{
    return seed % 3 == 0 ? graphgen_host(m, seed, size) : graphgen_func(m, seed, size);
}

static run prepare(dc_module *m, uint64_t seed, int size, bool special)
{
    rng r = {seed ^ 0x5eed};
    run x = {.f = function_of(m, seed, size)};
    x.in = array(m, x.f->param.n, sizeof *x.in);
    x.out = array(m, x.f->result.n, sizeof *x.out);
    x.value = array(m, x.f->result.n, sizeof *x.value);
    x.bound = array(m, x.f->result.n, sizeof *x.bound);
    for (uint32_t i = 0; i < x.f->param.n; i++) {
        const dc_type t = dc_node_type(x.f, x.f->param.at[i]);
        x.in[i] = array(m, dc_type_count(&t), dc_dtype_size((dc_dtype)t.dtype));
        graphgen_input(&r, &t, special, x.in[i]);
    }
    for (uint32_t i = 0; i < x.f->result.n; i++) {
        const int64_t n = dc_node_count(dc_node_at(x.f, x.f->result.at[i]));
        x.out[i] = array(m, n, sizeof(double));
        x.value[i] = array(m, n, sizeof(double));
        x.bound[i] = array(m, n, sizeof(double));
    }
    return x;
}

static void within_bound(const run *x, dc_eval_mode mode, uint64_t seed)
{
    CHECK_EQ(dc_eval(&job, x->f, mode, (const void *const *)x->in, x->out), DC_OK);
    for (uint32_t i = 0; i < x->f->result.n; i++) {
        const dc_node *n = dc_node_at(x->f, x->f->result.at[i]);
        const dc_dtype t = (dc_dtype)n->dtype;
        const int64_t at =
            graphgen_differs(t, x->out[i], x->value[i], x->bound[i], dc_node_count(n), 1);
        if (CHECK(at < 0))
            continue;
        const char *got = (const char *)x->out[i] + (size_t)at * dc_dtype_size(t);
        printf(
            "    seed %llu mode %d: result %u (%s), element %lld is %.9g, not %.9g within %.3g\n",
            (unsigned long long)seed, (int)mode, i, dc_op_row_of((dc_op)n->op)->name, (long long)at,
            dc_value_of(t, dc_bits_load(t, got)), x->value[i][at], x->bound[i][at]);
    }
}

static void count(const run *x)
{
    const bool *live = dc_func_live(x->f, &job.scratch);
    graphs++;
    for (dc_ref r = 1; r < x->f->node.n; r++) {
        const dc_node *n = dc_node_at(x->f, r);
        seen_op[n->op] += live[r];
        seen_dtype[n->dtype] += live[r];
        empty_nodes += live[r] && dc_node_count(n) == 0;
    }
    for (uint32_t i = 0; i < x->f->result.n; i++)
        for (int64_t k = 0; k < dc_node_count(dc_node_at(x->f, x->f->result.at[i])); k++) {
            elements++;
            known += isfinite(x->bound[i][k]);
            tight += x->bound[i][k] <= 1e-4 * (1 + fabs(x->value[i][k]));
        }
}

static void check_seed(uint64_t seed, bool special)
{
    dc_module *m = dc_module_new();
    const dc_mark mark = dc_arena_mark(&job.scratch);
    const int size = 1 + (int)(seed % MAX_SIZE);
    const run x = prepare(m, seed, size, special);
    CHECK(x.f->result.n > 0);
    if (!CHECK_EQ(dc_func_check(&job, x.f), DC_OK))
        printf("    seed %llu\n", (unsigned long long)seed);
    CHECK_EQ(dc_func_hash(x.f), dc_func_hash(function_of(m, seed, size)));
    CHECK_EQ(graphgen_bound(&job, x.f, (const void *const *)x.in, x.value, x.bound), DC_OK);
    within_bound(&x, DC_EVAL_ROUND, seed);
    within_bound(&x, DC_EVAL_STRICT, seed);
    if (!special)
        count(&x);
    dc_arena_rewind(&job.scratch, mark);
    dc_module_free(m);
}

/* A bound on one graph worked out by hand: (a + b) * c with inexact steps, then a comparison. */
static void by_hand(void)
{
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "hand");
    const dc_type t = dc_type_make(DC_F32, 1, (const int64_t[]){3});
    const dc_ref a = dc_graph_param(f, &t, "a"), b = dc_graph_param(f, &t, "b"),
                 c = dc_graph_param(f, &t, "c");
    const dc_ref sum = dc_graph_op2(f, DC_OP_ADD, a, b),
                 product = dc_graph_op2(f, DC_OP_MUL, sum, c);
    const dc_ref same = dc_graph_op2(f, DC_OP_LT, product, sum);
    DC_PUSH(f->result, product);
    DC_PUSH(f->result, same);
    DC_PUSH(f->result, a);
    const float x[3] = {1, 1, 1}, y[3] = {0x1p-24f, 2, 0x1p-24f}, z[3] = {1, -2, 3};
    double value[3][3], bound[3][3];
    CHECK_EQ(graphgen_bound(&job, f, (const void *const[]){x, y, z},
                            (double *const[]){value[0], value[1], value[2]},
                            (double *const[]){bound[0], bound[1], bound[2]}),
             DC_OK);
    CHECK(value[0][0] == 1 + 0x1p-24);
    CHECK_NEAR(bound[0][0], 2 * 0x1p-24, 0x1p-30); /* one rounding of the sum, one of the product */
    CHECK_NEAR(bound[0][1], 12 * 0x1p-24, 0x1p-28);
    CHECK(isinf(bound[1][0])); /* 1 + e < 1 + e: unknown */
    CHECK(bound[1][1] == 0);   /* -6 < 3 */
    CHECK(bound[1][2] == 0);
    CHECK(bound[2][0] == 0);
    const float far[3] = {1, -6.00001f, 3};
    CHECK_EQ(graphgen_differs(DC_F32, far, value[0], bound[0], 3, 1), 1);
    CHECK_EQ(graphgen_differs(DC_F32, x, value[2], bound[2], 3, 1), -1);
    dc_module_free(m);
}

enum { PLACES = 4, UPDATES = 24 };

static void fill(rng *r, dc_dtype t, double most, int n, char *out)
{
    for (int i = 0; i < n; i++)
        dc_bits_store(t, out + (size_t)i * dc_dtype_size(t),
                      dc_bits_of(t, rng_uniform(r, -most, most)));
}

/* Elements scattered one by one, each result rounded to the dtype, as devices may that bring none to f32. */
static void scatter_by_one(dc_op op, dc_dtype t, const int32_t *at, const char *y, int n, char *x)
{
    const size_t size = dc_dtype_size(t);
    for (int i = 0; i < n; i++) {
        char *to = x + (size_t)at[i] * size;
        const double a = dc_value_of(t, dc_bits_load(t, to));
        const double b = dc_value_of(t, dc_bits_load(t, y + (size_t)i * size));
        dc_bits_store(t, to, dc_bits_of(t, op == DC_OP_SCATTER_ADD ? a + b : a * b));
    }
}

/* Numbers up to `most`; returns how many results are known. */
static int scattered(dc_op op, dc_dtype t, double most, rng *r)
{
    double value[PLACES], bound[PLACES];
    int32_t at[UPDATES];
    char x[2 * PLACES], y[2 * UPDATES];
    const int n = 1 + rng_below(r, UPDATES);
    int known_here = 0;
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "scattered");
    const dc_type tx = dc_type_make(t, 1, (const int64_t[]){PLACES});
    const dc_type ty = dc_type_make(t, 1, (const int64_t[]){n});
    const dc_type ti = dc_type_make(DC_I32, 1, (const int64_t[]){n});
    const dc_ref a = dc_graph_param(f, &tx, "x"), i = dc_graph_param(f, &ti, "i"),
                 b = dc_graph_param(f, &ty, "y");
    DC_PUSH(f->result, dc_graph_scatter(f, op, a, i, b, 0, 0));
    for (int k = 0; k < n; k++)
        at[k] = rng_below(r, 1 + rng_below(r, PLACES));
    fill(r, t, most, PLACES, x);
    fill(r, t, most, n, y);
    CHECK_EQ(graphgen_bound(&job, f, (const void *const[]){x, at, y}, (double *const[]){value},
                            (double *const[]){bound}),
             DC_OK);
    scatter_by_one(op, t, at, y, n, x);
    CHECK_EQ(graphgen_differs(t, x, value, bound, PLACES, 1), -1);
    for (int k = 0; k < PLACES; k++)
        known_here += isfinite(bound[k]);
    dc_module_free(m);
    return known_here;
}

/* What is within reach at the end may be beyond the largest number, or below the smallest one, on its way. */
static void by_one(uint64_t seed)
{
    static const dc_dtype shorts[] = {DC_F16, DC_BF16, DC_F8E4M3FN, DC_F8E5M2};
    static const dc_op ops[] = {DC_OP_SCATTER_ADD, DC_OP_SCATTER_MUL};
    rng r = {seed};
    for (size_t i = 0; i < DC_COUNTOF(shorts) * DC_COUNTOF(ops); i++) {
        int known_there = 0;
        for (int k = 0; k < 400; k++)
            known_there += scattered(ops[i % 2], shorts[i / 2], ldexp(1, k % 16), &r);
        CHECK(known_there > 0);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 800;
    dc_job_init(&job, NULL, NULL);
    by_hand();
    by_one(seed);
    for (uint64_t i = 0; i < n; i++) {
        check_seed(seed + i, false);
        check_seed(seed + i, true);
    }
    printf("%ld graphs, %ld elements, bound known for %ld, tight for %ld; %ld empty nodes\n",
           graphs, elements, known, tight, empty_nodes);
    if (n >= 300) { /* enough to have met everything */
        CHECK(known > elements * 9 / 10);
        CHECK(tight > elements * 3 / 4); /* 75 to 83 of a hundred, by the seed */
        CHECK(empty_nodes > 0);
        for (int op = 0; op < DC_OP__COUNT; op++)
            if (!CHECK(seen_op[op] > 0 || dc_op_is((dc_op)op, DC_CLASS_PART) ||
                       dc_op_is((dc_op)op, DC_CLASS_FFT) || dc_op_is((dc_op)op, DC_CLASS_CTL) ||
                       !hostgen_can((dc_op)op)))
                printf("    never met: %s\n", dc_op_row_of((dc_op)op)->name);
        for (int t = 0; t < DC_DTYPE__COUNT; t++)
            CHECK(seen_dtype[t] > 0);
    }
    dc_job_fini(&job);
    if (hostgen_missing() != NULL)
        T_SKIP(hostgen_missing());
    return t_done();
}
