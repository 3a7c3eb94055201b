/*
 * Random graphs with sizes that are known at run time (tests/unit/boundgen.h): lowered to their bounds
 * (core/transform/bounded.h), compiled once and called with several sizes, what lies behind the actual sizes being NaN and
 * large integers. The part of these sizes is what the interpreter gives for the graph with the sizes put in.
 *
 *   bounded_graphs DEVICE GRAPHS BATCH [SEED]      (tests/random/suite.h)
 */
#include "core/transform/bounded.h"

#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include "tests/random/suite.h"
#include "tests/unit/boundgen.h"

enum { GRAPH_SIZES = 14, CALLS = 5 };

typedef struct graph { /* one of a batch */
    boundgen g;
    uint64_t seed;
    int size;
    dc_extent_list sizes;
    uint32_t before; /* parameters before those of the sizes */
    uint32_t param, result,
        nparam;        /* where its own begin in the whole function, and how many there are */
    boundgen_sizes at; /* of this call */
    void ***want;      /* arrays by mode and result; NULL: sizes that it is not defined for */
    dc_func *fixed;
} graph;

typedef struct run {
    suite *s;
    dc_rt *rt;
    dc_func *f;
    graph at[SUITE_BATCH];
    int n;
    void **param, **got;
    long compared, rounded, refused, undefined;
} run;

/* ---- many graphs in one function -------------------------------------------------------------- */

/* With a module and a table of its own; a copy of what it is lowered to has numbers alone. */
static dc_status lower(run *x, dc_job *j, graph *g, rng *r, dc_func **out)
{
    dc_func *low = NULL;
    dc_module *m = dc_module_new();
    boundgen_make(j, m, g->seed, g->size, &g->g);
    g->before = (uint32_t)rng_below(r, (int)g->g.f->param.n + 1);
    const dc_status status = dc_bounded_lower(j, g->g.f, g->before, &g->sizes, &low);
    if (status == DC_OK)
        DC_TRY(dc_func_check(j, low));
    j->extents = m->extents = NULL;
    if (status == DC_OK)
        *out = dc_func_clone(x->f->module, low, NULL);
    return status;
}

static void drop_graph(const graph *g)
{
    dc_extents_free(g->g.table);
    dc_module_free(g->g.f->module);
}

static dc_status add_graph(run *x, dc_job *j, rng *r, uint64_t seed, int size)
{
    graph *g = &x->at[x->n];
    dc_func *low = NULL;
    if (dc_log_on(&x->rt->log, DC_CH_GRAPH)) {
        printf("graph %llu %d\n", (unsigned long long)seed, size);
        fflush(stdout);
    }
    *g = (graph){.seed = seed, .size = size};
    const dc_status status = lower(x, j, g, r, &low);
    if (status != DC_OK) {
        DC_VEC_FREE(g->sizes);
        drop_graph(g);
        x->refused++;
        if (j->err.id != DC_ERR_EXTENT_TEXT)
            return status;
        j->err = (dc_err){0};
        return DC_OK;
    }
    CHECK(!dc_bounded_any(low));
    g->param = x->f->param.n;
    g->result = x->f->result.n;
    dc_ref *map = dc_xalloc(low->node.n * sizeof *map);
    suite_append(x->f, low, map);
    for (uint32_t i = 0; i < low->result.n; i++)
        DC_PUSH(x->f->result, map[low->result.at[i]]);
    dc_xfree(map);
    dc_func_drop(low);
    x->n++;
    return DC_OK;
}

static void drop_graphs(run *x)
{
    for (int i = 0; i < x->n; i++) {
        DC_VEC_FREE(x->at[i].sizes);
        drop_graph(&x->at[i]);
    }
    x->n = 0;
}

/* ---- what a call has to give ------------------------------------------------------------------ */

static const dc_eval_mode modes[] = {DC_EVAL_ROUND, DC_EVAL_STRICT, DC_EVAL_WIDE};

static void *room_for(dc_job *j, const dc_type *t)
{
    return dc_arena_alloc(&j->scratch, (size_t)dc_type_count(t) * sizeof(double) + 8);
}

/* Whole numbers where the sizes reach, junk behind them; the interpreter's values, in each mode. */
static dc_status prepare_graph(run *x, dc_job *j, rng *r, graph *g)
{
    dc_extents *e = j->extents = g->g.f->module->extents = g->g.table;
    const dc_func *f = g->g.f;
    const void **in[2];
    for (int i = 0; i < 2; i++)
        in[i] = DC_NEW_ARRAY(&j->scratch, const void *, f->param.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        dc_type part = dc_node_type(f, f->param.at[i]), whole = part;
        for (int k = 0; k < part.rank; k++) {
            part.dim[k] = dc_extent_eval(e, part.dim[k], boundgen_value, &g->at);
            whole.dim[k] = dc_extent_bound(whole.dim[k]);
        }
        void *values = room_for(j, &part);
        double *wide = room_for(j, &part);
        void *at = x->param[g->param + i + (i < g->before ? 0 : g->sizes.n)];
        loopgen_input(r, &part, values);
        boundgen_junk(r, &whole, at);
        boundgen_copy(&part, &whole, at, values, true);
        for (int64_t k = 0; k < dc_type_count(&part) && part.dtype == DC_F32; k++)
            wide[k] = (double)((const float *)values)[k];
        in[0][i] = values;
        in[1][i] = part.dtype == DC_F32 ? (void *)wide : values;
    }
    for (uint32_t i = 0; i < g->sizes.n; i++) {
        const int32_t v = (int32_t)dc_extent_eval(e, g->sizes.at[i], boundgen_value, &g->at);
        memcpy(x->param[g->param + g->before + i], &v, sizeof v);
    }
    g->want = NULL;
    const dc_status status = dc_bounded_fix(j, f, boundgen_value, &g->at, &g->fixed);
    j->extents = f->module->extents = NULL;
    if (status == DC_E_TYPE || status == DC_E_VALUE) {
        j->err = (dc_err){0};
        x->undefined++;
        return DC_OK;
    }
    DC_TRY(status);
    g->want = DC_NEW_ARRAY(&j->scratch, void **, DC_COUNTOF(modes));
    for (size_t k = 0; k < DC_COUNTOF(modes); k++) {
        g->want[k] = DC_NEW_ARRAY(&j->scratch, void *, f->result.n + 1);
        for (uint32_t i = 0; i < f->result.n; i++) {
            const dc_type t = dc_node_type(g->fixed, g->fixed->result.at[i]);
            g->want[k][i] = room_for(j, &t);
        }
        DC_TRY(dc_eval(j, g->fixed, modes[k], in[modes[k] == DC_EVAL_WIDE], g->want[k]));
    }
    return DC_OK;
}

static double value_at(dc_dtype t, const void *array, int64_t i)
{
    return dc_value_of(t, dc_bits_load(t, (const char *)array + (size_t)i * dc_dtype_size(t)));
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void print_failure(const run *x, const graph *g, uint32_t i, int64_t k, double got,
                          double want)
{
    dc_text text = {0};
    printf("%s: graph %llu %d, result %u element %lld: %.9g, want %.9g, with", x->s->device,
           (unsigned long long)g->seed, g->size, i, (long long)k, got, want);
    for (int v = 0; v < g->g.nvar; v++)
        printf(" %lld", (long long)g->at.value[v]);
    dc_func_print(g->g.f, &text);
    dc_text_puts(&text, "with sizes\n");
    dc_func_print(g->fixed, &text);
    printf("\n%s\n", text.s);
    dc_text_free(&text);
}

/* Where values are rounded, which those of gradients may be, any order of terms is right. */
static bool is_exact(const graph *g, const dc_type *t, uint32_t i, int64_t k)
{
    const double v = value_at((dc_dtype)t->dtype, g->want[0][i], k);
    return same(v, value_at((dc_dtype)t->dtype, g->want[1][i], k)) &&
           (t->dtype != DC_F32 ||
            (same(v, ((const double *)g->want[2][i])[k]) && fabs(v) < 0x1p20));
}

static void compare_graph(run *x, dc_job *j, const graph *g)
{
    for (uint32_t i = 0; g->want != NULL && i < g->g.f->result.n; i++) {
        const dc_type t = dc_node_type(g->fixed, g->fixed->result.at[i]);
        const dc_type whole = dc_node_type(x->f, x->f->result.at[g->result + i]);
        void *got = room_for(j, &t);
        boundgen_copy(&t, &whole, got, x->got[g->result + i], false);
        for (int64_t k = 0; k < dc_type_count(&t); k++) {
            const double want = value_at((dc_dtype)t.dtype, g->want[0][i], k);
            const double is = value_at((dc_dtype)t.dtype, got, k);
            if (!is_exact(g, &t, i, k)) {
                x->rounded++;
                continue;
            }
            x->compared++;
            if (CHECK(same(is, want)))
                continue;
            print_failure(x, g, i, k, is, want);
            return;
        }
    }
}

/* ---- running ---------------------------------------------------------------------------------- */

static dc_status one_call(run *x, dc_job *j, dc_inst *inst, rng *r, int number)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_tensor **in = DC_NEW_ARRAY(&j->scratch, dc_tensor *, x->f->param.n + 1);
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, x->f->result.n + 1);
    x->param = DC_NEW_ARRAY(&j->scratch, void *, x->f->param.n + 1);
    x->got = DC_NEW_ARRAY(&j->scratch, void *, x->f->result.n + 1);
    for (uint32_t i = 0; i < x->f->param.n; i++) {
        const dc_type t = dc_node_type(x->f, x->f->param.at[i]);
        x->param[i] = room_for(j, &t);
    }
    for (uint32_t i = 0; i < x->f->result.n; i++) {
        const dc_type t = dc_node_type(x->f, x->f->result.at[i]);
        x->got[i] = room_for(j, &t);
    }
    for (int i = 0; i < x->n; i++) {
        x->at[i].at = boundgen_choose(&x->at[i].g, r, number);
        DC_TRY(prepare_graph(x, j, r, &x->at[i]));
    }
    const dc_status s = suite_call(x->rt, j, x->f, inst, x->param, x->got, in, out);
    for (uint32_t i = 0; i < x->f->param.n; i++)
        dc_tensor_release(in[i]);
    for (uint32_t i = 0; i < x->f->result.n; i++)
        dc_tensor_release(out[i]);
    for (int i = 0; i < x->n && s == DC_OK; i++)
        compare_graph(x, j, &x->at[i]);
    dc_arena_rewind(&j->scratch, mark);
    return s;
}

static dc_status run_batch(run *x, dc_job *j, rng *r)
{
    const dc_exec_desc d = {
        .fn = x->f, .name = "bounded", .nfree = x->f->param.n, .nresult = x->f->result.n};
    dc_exec *e;
    dc_inst *inst = NULL;
    DC_TRY(dc_exec_build(x->rt, j, &d, &e));
    dc_status s = dc_inst_new(x->rt, j, e, NULL, &inst);
    for (int number = 0; number < CALLS && s == DC_OK; number++)
        s = one_call(x, j, inst, r, number);
    dc_inst_free(inst);
    dc_exec_release(e);
    return s;
}

static dc_status body(dc_job *j, suite *s)
{
    run *x = DC_NEW(&j->scratch, run);
    rng r = {s->seed};
    *x = (run){.s = s, .rt = s->rt};
    for (long g = 0; g < s->graphs;) {
        const long first = g;
        const dc_mark mark = dc_arena_mark(&j->scratch);
        dc_module *m = dc_module_new();
        dc_status status = DC_OK;
        x->f = dc_func_new(m, "batch");
        for (; x->n < s->batch && g < s->graphs && status == DC_OK; g++)
            status = add_graph(x, j, &r, s->seed + (uint64_t)g, 3 + (int)(g % GRAPH_SIZES));
        if (status == DC_OK)
            status = run_batch(x, j, &r);
        if (status != DC_OK) /* (an unwinding passes by) */
            printf("%s: graphs from %llu to %llu\n", s->device,
                   (unsigned long long)s->seed + (unsigned long long)first,
                   (unsigned long long)s->seed + (unsigned long long)g - 1);
        drop_graphs(x);
        dc_module_free(m);
        dc_arena_rewind(&j->scratch, mark);
        j->extents = s->rt->extents;
        DC_TRY(status);
    }
    CHECK(x->compared > x->rounded);
    CHECK(s->graphs < 50 || x->refused * 5 < s->graphs);
    printf("%s: %ld graphs, %ld refused, %ld elements, %ld rounded, %ld sizes of nothing, %llu "
           "kernels, "
           "%llu fallbacks\n",
           s->device, s->graphs, x->refused, x->compared, x->rounded, x->undefined,
           (unsigned long long)s->rt->stats.kernels, (unsigned long long)s->rt->stats.fallbacks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
