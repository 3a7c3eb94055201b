/*
 * Updates in place do not change what is computed: random functions whose random parameters are cells
 * that are set to random values of their type (tests/random/calls.h).
 *
 *   donate DEVICE GRAPHS BATCH [SEED]      (tests/random/suite.h)
 *
 * The program large_donate_graphs is the same with axes as long as those of small networks.
 */
#include "tests/random/calls.h"

enum { LARGEST = 24, MORE_CELLS = 2 };

typedef calls batch;

static bool chance(batch *b, int percent)
{
    return rng_below(&b->rnd, 100) < percent;
}

/* The function -------------------------------------------------------------------------------- */

static void make_params(batch *b, const dc_func *g, uint32_t first, uint32_t n, dc_ref *map)
{
    for (uint32_t i = first; i < n; i++) {
        const dc_type t = dc_node_type(g, g->param.at[i]);
        map[g->param.at[i]] = dc_graph_param(b->f, &t, "x");
    }
}

/* Parameters `first` and up become cells; so do some that the graph does not know. */
static void make_cell_params(batch *b, rng *r, const dc_func *g, uint32_t first, dc_ref *map)
{
    make_params(b, g, first, g->param.n, map);
    for (int i = 0; i < MORE_CELLS; i++) {
        const dc_type t = dc_node_type(g, 1 + (dc_ref)rng_below(r, (int)g->node.n - 1));
        dc_graph_param(b->f, &t, "cell");
    }
}

/* Joins graphs, all free parameters in front of all cells. */
static void join(batch *b, dc_module *m, int n)
{
    const dc_func *g[SUITE_BATCH];
    uint32_t nfree[SUITE_BATCH];
    dc_ref *map[SUITE_BATCH];
    rng r[SUITE_BATCH];
    b->f = dc_func_new(m, "batch");
    for (int i = 0; i < n; i++) { /* with BATCH 1 each graph is the same */
        const uint64_t seed = b->seed + (uint64_t)i;
        r[i] = (rng){~seed};
        g[i] = suite_graph(m, seed, 4 + rng_below(&r[i], LARGEST));
        nfree[i] = (uint32_t)(rng_below(&r[i], 2) * rng_below(&r[i], (int)g[i]->param.n + 1));
        map[i] = dc_xalloc(g[i]->node.n * sizeof *map[i]);
        make_params(b, g[i], 0, nfree[i], map[i]);
    }
    b->donating = (dc_exec_desc){.fn = b->f, .name = "donating", .nfree = b->f->param.n};
    for (int i = 0; i < n; i++)
        make_cell_params(b, &r[i], g[i], nfree[i], map[i]);
    for (int i = 0; i < n; i++) {
        suite_append(b->f, g[i], map[i]);
        for (uint32_t k = 0; k < g[i]->result.n; k++)
            DC_PUSH(b->f->result, map[i][g[i]->result.at[k]]);
        dc_xfree(map[i]);
    }
    b->donating.ncell = b->f->param.n - b->donating.nfree;
    b->donating.nresult = b->f->result.n;
}

/* Some live node of the type among the first `n`, at random; 0 if there is none. */
static dc_ref any_of_type(batch *b, const bool *live, dc_ref n, const dc_type *want)
{
    dc_ref found = 0;
    int seen = 0;
    for (dc_ref r = 1; r < n; r++) {
        const dc_type t = dc_node_type(b->f, r);
        if (live[r] && graphgen_whole(b->f, r) == r && dc_type_same(&t, want) &&
            rng_below(&b->rnd, ++seen) == 0)
            found = r;
    }
    return found;
}

/*
 * A new node that reads the cell, at its own place or elsewhere, beside some value of its type: what
 * optimisers do, and what must not happen in place.
 */
static dc_ref update(batch *b, dc_ref cell, dc_ref value)
{
    static const dc_op numeric[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MAX, DC_OP_MUL};
    static const dc_op logical[] = {DC_OP_AND, DC_OP_OR, DC_OP_XOR};
    const dc_node *n = dc_node_at(b->f, cell);
    const dc_op op = n->dtype == DC_BOOL ? logical[rng_below(&b->rnd, DC_COUNTOF(logical))]
                                         : numeric[rng_below(&b->rnd, DC_COUNTOF(numeric))];
    const uint32_t axes = (uint32_t)rng_below(&b->rnd, 1 << n->rank);
    return dc_graph_op2(b->f, op, value, chance(b, 65) ? dc_graph_flip(b->f, cell, axes) : cell);
}

/* Most cells are set to a value of their type, which becomes a result behind the others. */
static void choose_sets(batch *b)
{
    dc_exec_desc *d = &b->donating;
    const bool *live = dc_func_live(b->f, &b->j->scratch);
    const dc_ref n = b->f->node.n;
    uint32_t *set = DC_NEW_ARRAY(&b->j->scratch, uint32_t, d->ncell + 1);
    for (uint32_t c = 0; c < d->ncell; c++) {
        const dc_ref cell = b->f->param.at[d->nfree + c];
        const dc_ref value = any_of_type(b, live, n, &b->type[d->nfree + c]);
        if (value == 0 || chance(b, 15))
            continue;
        set[d->nset++] = c;
        DC_PUSH(b->f->result, chance(b, 40) ? value : update(b, cell, value));
    }
    d->set = set;
    /* with a prologue, products and sums contract elsewhere than in the function without cells */
    d->once = !dc_opts_math(&b->rt->opt, "strict");
    d->no_reuse = chance(b, 25);
    b->plain = (dc_exec_desc){.fn = b->f, .name = "plain", .nfree = b->f->param.n, .once = d->once};
    b->plain.nresult = b->f->result.n;
}

static void refill(batch *b, uint32_t i)
{
    graphgen_input(&b->rnd, &b->type[i], false, b->param[i]);
}

static dc_status try_batch(dc_job *j, suite *s, uint64_t seed, int n, calls_totals *all)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    batch *b = DC_NEW(&j->scratch, batch);
    dc_module *m = dc_module_new();
    *b = (batch){
        .s = s, .rt = s->rt, .j = j, .rnd = {seed}, .seed = seed, .print = n == 1, .any = true};
    b->refill = refill;
    join(b, m, n);
    calls_params(b);
    const bool special = chance(b, 25);
    for (uint32_t i = 0; i < b->f->param.n; i++)
        graphgen_input(&b->rnd, &b->type[i], special, b->param[i]);
    choose_sets(b);
    const dc_status status = calls_run(b, all);
    dc_module_free(m);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status body(dc_job *j, suite *s)
{
    calls_totals all = {0};
    for (long g = 0; g < s->graphs && t_failed == 0; g += s->batch) {
        const int n = (int)(s->graphs - g < s->batch ? s->graphs - g : s->batch);
        DC_TRY(try_batch(j, s, s->seed + (uint64_t)g, n, &all));
    }
    CHECK(all.compared > 0);
    if (!s->interpret && s->graphs >= 100) { /* both occur, many times */
        CHECK(all.donated * 2 > (uint64_t)s->graphs);
        CHECK(all.denied * 32 > (uint64_t)s->graphs);
    }
    printf("%s: %ld graphs, %llu cells in place, %llu by copy, %ld elements, %llu kernels, "
           "%llu fallbacks\n",
           s->device, s->graphs, (unsigned long long)all.donated, (unsigned long long)all.denied,
           all.compared, (unsigned long long)s->rt->stats.kernels,
           (unsigned long long)s->rt->stats.fallbacks);
    return DC_OK;
}

int main(int argc, char **argv)
{
    return suite_main(argc, argv, body);
}
