/*
 * Random graphs on one device against the interpreter, within the bound that running error analysis
 * gives (tests/unit/graphgen.h), constant 1.
 *
 *   random DEVICE GRAPHS BATCH [SEED]      (tests/random/suite.h)
 *
 * After fresh graphs come those of tests/random/corpus.txt: "seed size" a line, those that failed
 * once. The program large_graphs is the same with axes as long as those of small networks, and with
 * tests/random/corpus_large.txt; loop_graphs with loops and branches, where every value is exact
 * (tests/unit/loopgen.h), and with tests/random/corpus_loops.txt.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include "tests/random/suite.h"

enum { GRAPH_SIZES = 16 };

#if defined RANDOM_LOOPS
#define CORPUS "tests/random/corpus_loops.txt"
#elif defined RANDOM_LARGE
#define CORPUS "tests/random/corpus_large.txt"
#else
#define CORPUS "tests/random/corpus.txt"
#endif

typedef struct graph { /* one of a batch */
    uint64_t seed;
    int size;
    uint32_t first, count; /* its results */
} graph;

typedef struct run {
    suite *s;
    dc_rt *rt;
    dc_func *f;
    graph at[SUITE_BATCH];
    int n;
    void **param, **got;
    double **value, **bound;
    long compared;
} run;

/* Many graphs in one function ----------------------------------------------------------------- */

static void add_graph(run *x, dc_module *m, uint64_t seed, int size)
{
    const dc_func *g = suite_graph(m, seed, size);
    x->at[x->n++] = (graph){seed, size, x->f->result.n, g->result.n};
    dc_ref *map = dc_xalloc(g->node.n * sizeof *map);
    suite_append(x->f, g, map);
    for (uint32_t i = 0; i < g->result.n; i++)
        DC_PUSH(x->f->result, map[g->result.at[i]]);
    dc_xfree(map);
}

/* Running ----------------------------------------------------------------------------------------- */

static dc_status compute(run *x, dc_job *j)
{
    const dc_exec_desc d = {
        .fn = x->f, .name = "random", .nfree = x->f->param.n, .nresult = x->f->result.n};
    dc_tensor **in = DC_NEW_ARRAY(&j->scratch, dc_tensor *, x->f->param.n + 1);
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, x->f->result.n + 1);
    dc_exec *e;
    dc_inst *inst = NULL;
    DC_TRY(dc_exec_build(x->rt, j, &d, &e));
    dc_status s = dc_inst_new(x->rt, j, e, NULL, &inst);
    if (s == DC_OK)
        s = suite_call(x->rt, j, x->f, inst, x->param, x->got, in, out);
    for (uint32_t i = 0; i < x->f->param.n; i++)
        dc_tensor_release(in[i]);
    for (uint32_t i = 0; i < x->f->result.n; i++)
        dc_tensor_release(out[i]);
    dc_inst_free(inst);
    dc_exec_release(e);
    return s;
}

#ifdef RANDOM_LOOPS
static void fill(rng *r, const dc_type *t, bool special, void *out)
{
    DC_UNUSED(special);
    loopgen_input(r, t, out);
}

/* The interpreter's values, exactly; bounds stay 0. */
static dc_status want(run *x, dc_job *j)
{
    const dc_func *f = x->f;
    DC_TRY(dc_eval(j, f, DC_EVAL_ROUND, (const void *const *)x->param, x->got));
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        const dc_dtype d = (dc_dtype)t.dtype;
        for (int64_t k = 0; k < dc_type_count(&t); k++)
            x->value[i][k] =
                dc_value_of(d, dc_bits_load(d, (char *)x->got[i] + (size_t)k * dc_dtype_size(d)));
        memset(x->got[i], 0xa5, dc_type_bytes(&t));
    }
    return DC_OK;
}
#else
static void fill(rng *r, const dc_type *t, bool special, void *out)
{
    graphgen_input(r, t, special, out);
}

static dc_status want(run *x, dc_job *j)
{
    return graphgen_bound(j, x->f, (const void *const *)x->param, x->value, x->bound);
}
#endif

static dc_status prepare(run *x, dc_job *j, rng *r, bool special)
{
    const dc_func *f = x->f;
    dc_arena *a = &j->scratch;
    x->param = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    x->got = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    x->value = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    x->bound = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        x->param[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        fill(r, &t, special, x->param[i]);
    }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        x->got[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        x->value[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
        x->bound[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
    }
    return want(x, j);
}

static void print_graph(const graph *g)
{
    dc_module *m = dc_module_new();
    dc_text text = {0};
    dc_func_print(suite_graph(m, g->seed, g->size), &text);
    printf("%s\n", text.s);
    dc_text_free(&text);
    dc_module_free(m);
}

static void compare(run *x, const graph *g)
{
    for (uint32_t i = g->first; i < g->first + g->count; i++) {
        const dc_type t = dc_node_type(x->f, x->f->result.at[i]);
        const int64_t n = dc_type_count(&t);
        const int64_t at =
            graphgen_differs((dc_dtype)t.dtype, x->got[i], x->value[i], x->bound[i], n, 1);
        x->compared += (long)n;
        if (CHECK(at < 0))
            continue;
        const size_t size = dc_dtype_size((dc_dtype)t.dtype);
        const uint64_t bits =
            dc_bits_load((dc_dtype)t.dtype, (const char *)x->got[i] + (size_t)at * size);
        printf("%s: graph %llu %d, result %u element %lld: %.9g, want %.9g within %g\n",
               x->s->device, (unsigned long long)g->seed, g->size, i - g->first, (long long)at,
               dc_value_of((dc_dtype)t.dtype, bits), x->value[i][at], x->bound[i][at]);
        print_graph(g);
        return;
    }
}

static dc_status run_batch(run *x, dc_job *j, rng *r, bool special)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    DC_TRY(prepare(x, j, r, special));
    const dc_status s = compute(x, j);
    if (s != DC_OK)
        printf("%s: batch of graphs from %llu %d:\n", x->s->device,
               (unsigned long long)x->at[0].seed, x->at[0].size);
    DC_TRY(s);
    for (int i = 0; i < x->n; i++)
        compare(x, &x->at[i]);
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

/* The suites -------------------------------------------------------------------------------------- */

static dc_status fresh_graphs(dc_job *j, run *x)
{
    rng r = {x->s->seed};
    for (long g = 0; g < x->s->graphs;) {
        dc_module *m = dc_module_new();
        const bool special = g / x->s->batch % 4 == 3;
        x->f = dc_func_new(m, "batch");
        x->n = 0;
        for (; x->n < x->s->batch && g < x->s->graphs; g++)
            add_graph(x, m, x->s->seed + (uint64_t)g, 4 + (int)(g % GRAPH_SIZES));
        const dc_status s = run_batch(x, j, &r, special);
        dc_module_free(m);
        DC_TRY(s);
    }
    return DC_OK;
}

static dc_status corpus(dc_job *j, run *x)
{
    FILE *in = fopen(CORPUS, "r");
    char line[200];
    rng r = {1};
    int n = 0;
    if (!CHECK(in != NULL))
        return DC_OK;
    dc_module *m = dc_module_new();
    x->f = dc_func_new(m, "corpus");
    x->n = 0;
    while (fgets(line, sizeof line, in) != NULL && x->n < SUITE_BATCH) {
        unsigned long long seed;
        int size;
        if (sscanf(line, "%llu %d", &seed, &size) == 2) {
            add_graph(x, m, seed, size);
            n++;
        }
    }
    fclose(in);
    CHECK(n > 0);
    dc_status s = DC_OK;
    for (int special = 0; special < 2 && s == DC_OK; special++)
        s = run_batch(x, j, &r, special);
    dc_module_free(m);
    return s;
}

static dc_status body(dc_job *j, suite *s)
{
    run x = {.s = s, .rt = s->rt};
    DC_TRY(fresh_graphs(j, &x));
    DC_TRY(corpus(j, &x));
    CHECK(x.compared > 0);
    printf("%s: %ld graphs, %ld elements, %llu kernels, %llu fallbacks\n", s->device, s->graphs,
           x.compared, (unsigned long long)s->rt->stats.kernels,
           (unsigned long long)s->rt->stats.fallbacks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
