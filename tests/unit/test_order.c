/*
 * Dependencies of commands say all that matters: random functions with donations run on the CPU in the
 * order of the plan, in random orders that the dependencies allow, and in slices; every bit must
 * agree, call after call. Orders that ignore the dependencies must be found out. Arenas stay close
 * to what they could not do without. The seed is printed.
 *
 *   test_order [seed [graphs]]
 */
#include "jit/exec/exec.h"
#include "jit/plan/plan.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/world.h"

enum { MANY = 64, CALLS = 2, ORDERS = 4 };

typedef enum way { IN_ORDER, SHUFFLED, SLICED, WITHOUT_DEPS, WAYS } way;

typedef struct trial {
    world *w;
    dc_func *f;
    dc_exec_desc desc;
    uint32_t set[MANY];
    dc_tensor *param[MANY];
    dc_cell *cell[MANY];
    dc_exec *exec;
    char *want; /* results and cells of every call, one after the other */
    size_t bytes;
} trial;

static uint32_t graphs_run, graphs_torn, deps_seen, items_seen;
static double worst_ratio = 1.0;

/* Sets about half of the cells to values of their type, which become results behind the others. */
static void choose_sets(trial *t, rng *r)
{
    dc_func *f = t->f;
    const uint32_t nfree = (uint32_t)rng_below(r, (int)f->param.n + 1);
    const bool *live = dc_func_live(f, &t->w->j->scratch);
    t->desc = (dc_exec_desc){.fn = f, .name = "random", .nfree = nfree, .nresult = f->result.n};
    t->desc.ncell = f->param.n - nfree;
    for (uint32_t c = 0; c < t->desc.ncell; c++) {
        const dc_type want = dc_node_type(f, f->param.at[nfree + c]);
        dc_ref fits[MANY];
        int n = 0;
        for (dc_ref k = 1; k < f->node.n && n < MANY; k++) {
            const dc_type type = dc_node_type(f, k);
            if (live[k] && graphgen_whole(f, k) == k && dc_type_same(&type, &want))
                fits[n++] = k;
        }
        if (n == 0 || rng_below(r, 4) == 0)
            continue;
        t->set[t->desc.nset++] = c;
        DC_PUSH(f->result, fits[rng_below(r, n)]);
    }
    t->desc.set = t->set;
}

static bool make_params(trial *t, rng *r)
{
    dc_status status = DC_OK;
    for (uint32_t i = 0; i < t->f->param.n && status == DC_OK; i++) {
        const dc_type type = dc_node_type(t->f, t->f->param.at[i]);
        status = dc_tensor_new(t->w->rt, t->w->j, &type, &t->param[i]);
        if (status == DC_OK)
            graphgen_input(r, &type, false, dc_tensor_mem(t->param[i]));
        if (status == DC_OK && i >= t->desc.nfree)
            status =
                dc_cell_new(t->w->rt, t->w->j, &type, NULL, false, &t->cell[i - t->desc.nfree]);
    }
    return CHECK_EQ(status, DC_OK);
}

static bool call(trial *t, dc_inst *i, const dc_arg *arg, bool sliced, dc_tensor **out)
{
    bool done = false;
    dc_fault fault;
    if (!sliced)
        return CHECK_EQ(dc_inst_call(i, t->w->j, arg, out, &fault), DC_OK);
    if (!CHECK_EQ(dc_inst_start(i, t->w->j, arg), DC_OK))
        return false;
    while (!done)
        if (!CHECK_EQ(dc_inst_poll(i, t->w->j, 0, &done, &fault), DC_OK))
            return false;
    return CHECK_EQ(dc_inst_take(i, t->w->j, out), DC_OK);
}

/* Appends what a call left to `to`, or only counts the bytes. */
static size_t collect(const trial *t, dc_tensor *const *out, char *to)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->desc.nresult + t->desc.ncell; i++) {
        const bool result = i < t->desc.nresult;
        const dc_cell *c = result ? NULL : t->cell[i - t->desc.nresult];
        const size_t bytes = dc_type_bytes(result ? &out[i]->type : &c->type);
        if (to != NULL && bytes > 0)
            memcpy(to + n, result ? dc_tensor_mem(out[i]) : c->store->mem, bytes);
        n += bytes;
    }
    return n;
}

/* Do all calls of a new instance leave what those in order did? */
static bool run(trial *t, way how, uint64_t seed, bool *agrees)
{
    dc_inst *i = NULL;
    dc_arg arg[MANY];
    size_t at = 0;
    t->w->dev->seed = how == SHUFFLED || how == WITHOUT_DEPS ? seed : 0;
    t->w->dev->no_deps = how == WITHOUT_DEPS;
    bool ok = CHECK_EQ(dc_inst_new(t->w->rt, t->w->j, t->exec, t->cell, &i), DC_OK);
    for (uint32_t p = 0; p < t->f->param.n && ok; p++) {
        arg[p] = (dc_arg){.tensor = t->param[p]};
        if (p >= t->desc.nfree)
            ok = CHECK_EQ(dc_cell_write(t->cell[p - t->desc.nfree], t->w->j, t->param[p]), DC_OK);
    }
    for (int n = 0; n < CALLS && ok; n++) {
        dc_tensor *out[MANY];
        ok = call(t, i, arg, how == SLICED, out);
        if (!ok)
            break;
        if (how == IN_ORDER) {
            const size_t bytes = collect(t, out, NULL);
            t->want = realloc(t->want, t->bytes + bytes + 1);
            collect(t, out, t->want + t->bytes);
            t->bytes += bytes;
        } else {
            char *got = malloc(t->bytes + 1);
            const size_t bytes = collect(t, out, got);
            *agrees &= memcmp(got, t->want + at, bytes) == 0;
            at += bytes;
            free(got);
        }
        world_release(out, t->desc.nresult);
    }
    dc_inst_free(i);
    return ok;
}

static void look(const trial *t)
{
    const dc_exec_info *info = &t->exec->info;
    const double ratio = dc_plan_ratio(info->arena_bytes, info->arena_lower_bound);
    worst_ratio = ratio > worst_ratio ? ratio : worst_ratio;
    CHECK(!info->interpreted && ratio >= 1.0);
    items_seen += t->exec->ncommand;
    for (uint32_t n = 0; n < t->exec->ncommand; n++)
        deps_seen += t->exec->command[n].ndep;
}

static bool test_all_ways(trial *t, uint64_t seed)
{
    bool same = true, torn = false;
    bool ok = CHECK_EQ(dc_exec_build(t->w->rt, t->w->j, &t->desc, &t->exec), DC_OK);
    if (!ok)
        return false;
    look(t);
    ok = run(t, IN_ORDER, 0, &same) && run(t, SLICED, 0, &same);
    for (uint64_t k = 1; k <= ORDERS && ok; k++)
        ok = run(t, SHUFFLED, seed + k, &same);
    ok &= CHECK(same);
    if (t->desc.ncheck == 0 && ok) {
        bool lucky = true;
        for (uint64_t k = 1; k <= ORDERS && ok; k++)
            ok = run(t, WITHOUT_DEPS, seed + k, &lucky);
        torn = !lucky;
    }
    graphs_run++;
    graphs_torn += torn;
    dc_exec_release(t->exec);
    free(t->want);
    return ok;
}

static bool test_graph(world *w, uint64_t seed)
{
    trial t = {.w = w};
    rng r = {seed};
    dc_module *m = dc_module_new();
    t.f = graphgen_func(m, seed, 4 + rng_below(&r, 24));
    if (t.f->param.n > 24 || t.f->result.n > 16) {
        dc_module_free(m);
        return true;
    }
    choose_sets(&t, &r);
    const bool ok = make_params(&t, &r) && test_all_ways(&t, seed);
    if (!ok)
        printf("seed %llu\n", (unsigned long long)seed);
    world_release(t.param, t.f->param.n);
    for (uint32_t c = 0; c < t.desc.ncell; c++)
        dc_cell_release(t.cell[c]);
    dc_module_free(m);
    return ok;
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 47);
    const int graphs = argc > 2 ? atoi(argv[2]) : 40;
    for (int level = 0; level <= 2; level++) {
        const dc_opts opt = {.opt = level};
        world w;
        bool ok = true;
        world_open(&w, ON_CPU, &opt, "");
        for (int i = 0; i < graphs && ok; i++)
            ok = test_graph(&w, seed + (uint64_t)(level * graphs + i));
        CHECK_EQ(w.rt->stats.fallbacks, 0);
        if (!ok)
            return t_done(); /* what the failed call held is not given back */
        world_close(&w);
    }
    printf("%u graphs, %u of them torn by other orders; %.2f deps per command; arenas at worst "
           "%.2f of "
           "what is alive at once\n",
           graphs_run, graphs_torn, (double)deps_seen / (double)items_seen, worst_ratio);
    CHECK(graphs_torn * 4 > graphs_run); /* the test would notice */
    CHECK(worst_ratio < 1.3);
    return t_done();
}
