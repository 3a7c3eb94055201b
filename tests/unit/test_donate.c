/*
 * Updates in place do not change what is computed: random functions run twice on the CPU, once with
 * every value an argument or a result, once with random parameters as cells that are set to random
 * values of their type. Both run the same kernels, so every bit must agree, call after call. Guard
 * zones are on. The seed is printed.
 *
 *   test_donate [seed [graphs]]
 */
#include "backends/registry.h"
#include "core/gtext.h"
#include "jit/jit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"

enum { MANY = 64, CALLS = 3 };

typedef struct trial {
    dc_rt *rt;
    dc_job *j;
    dc_func *f;
    dc_exec_desc plain, donating;
    uint32_t set[MANY];
    dc_tensor *param[MANY], *plain_out[MANY], *out[MANY];
    dc_cell *cell[MANY];
} trial;

static uint64_t donated, denied;

/* Sets about half of the cells to values of their type, which become results behind the others. */
static void choose_sets(trial *t, rng *r)
{
    dc_func *f = t->f;
    const uint32_t nresult = f->result.n;
    const uint32_t nfree = (uint32_t)rng_below(r, (int)f->param.n + 1);
    const bool *live = dc_func_live(f, &t->j->scratch);
    t->donating = (dc_exec_desc){.fn = f, .name = "donating", .nfree = nfree, .nresult = nresult};
    t->donating.ncell = f->param.n - nfree;
    for (uint32_t c = 0; c < t->donating.ncell; c++) {
        const dc_type want = dc_node_type(f, f->param.at[nfree + c]);
        dc_ref fits[MANY];
        int n = 0;
        for (dc_ref k = 1; k < f->node.n && n < MANY; k++) {
            const dc_type type = dc_node_type(f, k);
            if (live[k] && dc_type_same(&type, &want))
                fits[n++] = k;
        }
        if (n == 0 || rng_below(r, 4) == 0)
            continue;
        t->set[t->donating.nset++] = c;
        DC_PUSH(f->result, fits[rng_below(r, n)]);
    }
    t->donating.set = t->set;
    t->plain = (dc_exec_desc){.fn = f, .name = "plain", .nfree = f->param.n};
    t->plain.nresult = f->result.n;
}

static bool fill_params(trial *t, rng *r)
{
    dc_status status = DC_OK;
    for (uint32_t i = 0; i < t->f->param.n && status == DC_OK; i++) {
        const dc_type type = dc_node_type(t->f, t->f->param.at[i]);
        status = dc_tensor_new(t->rt, t->j, &type, &t->param[i]);
        if (status == DC_OK)
            graphgen_input(r, &type, rng_below(r, 4) == 0, dc_tensor_mem(t->param[i]));
    }
    for (uint32_t c = 0; c < t->donating.ncell && status == DC_OK; c++) {
        const dc_tensor *value = t->param[t->donating.nfree + c];
        status = dc_cell_new(t->rt, t->j, &value->type, NULL, false, &t->cell[c]);
        if (status == DC_OK)
            status = dc_cell_write(t->cell[c], t->j, value);
    }
    return CHECK_EQ(status, DC_OK);
}

static bool equal(const dc_tensor *a, const dc_store *b)
{
    return memcmp(dc_tensor_mem(a), b->mem, dc_type_bytes(&a->type)) == 0;
}

/* Do results and cells agree with what the plain run gave? */
static bool agree(const trial *t)
{
    const dc_exec_desc *d = &t->donating;
    bool ok = true;
    for (uint32_t i = 0; i < d->nresult; i++)
        ok &= equal(t->plain_out[i], t->out[i]->store);
    for (uint32_t c = 0; c < d->ncell; c++) {
        const dc_tensor *want = t->param[d->nfree + c];
        for (uint32_t i = 0; i < d->nset; i++)
            if (t->set[i] == c)
                want = t->plain_out[d->nresult + i];
        ok &= equal(want, t->cell[c]->store);
    }
    return ok;
}

/* The plain run's new values are its next arguments. */
static void carry_over(trial *t)
{
    const dc_exec_desc *d = &t->donating;
    for (uint32_t i = 0; i < d->nset; i++) {
        dc_tensor **p = &t->param[d->nfree + t->set[i]];
        dc_tensor_release(*p);
        *p = dc_tensor_retain(t->plain_out[d->nresult + i]);
    }
    for (uint32_t i = 0; i < t->plain.nresult; i++)
        dc_tensor_release(t->plain_out[i]);
    for (uint32_t i = 0; i < d->nresult; i++)
        dc_tensor_release(t->out[i]);
}

static bool call_both(trial *t, dc_inst *plain, dc_inst *donating)
{
    dc_arg arg[MANY];
    dc_fault fault;
    for (uint32_t i = 0; i < t->f->param.n; i++)
        arg[i] = (dc_arg){.tensor = t->param[i]};
    if (!CHECK_EQ(dc_inst_call(plain, t->j, arg, t->plain_out, &fault), DC_OK) ||
        !CHECK_EQ(dc_inst_call(donating, t->j, arg, t->out, &fault), DC_OK))
        return false;
    return CHECK(agree(t));
}

static bool run_trial(trial *t)
{
    dc_exec *a, *b;
    dc_inst *ia, *ib;
    dc_exec_info info;
    bool ok = CHECK_EQ(dc_exec_build(t->rt, t->j, &t->plain, &a), DC_OK) &&
              CHECK_EQ(dc_exec_build(t->rt, t->j, &t->donating, &b), DC_OK) &&
              CHECK_EQ(dc_inst_new(t->rt, t->j, a, NULL, &ia), DC_OK) &&
              CHECK_EQ(dc_inst_new(t->rt, t->j, b, t->cell, &ib), DC_OK);
    if (!ok)
        return false;
    dc_exec_info_of(b, &info);
    ok = CHECK(!info.interpreted);
    donated += info.donated;
    denied += info.denied;
    for (int n = 0; n < CALLS && ok; n++) {
        ok = call_both(t, ia, ib);
        if (ok)
            carry_over(t);
    }
    dc_inst_free(ia);
    dc_inst_free(ib);
    dc_exec_release(a);
    dc_exec_release(b);
    return ok;
}

static bool test_graph(dc_rt *rt, uint64_t seed)
{
    trial t = {.rt = rt, .j = &rt->job};
    rng r = {seed};
    dc_module *m = dc_module_new();
    t.f = graphgen_func(m, seed, 4 + rng_below(&r, 24));
    if (t.f->param.n > 24 || t.f->result.n > 16) {
        dc_module_free(m);
        return true;
    }
    choose_sets(&t, &r);
    t.donating.no_reuse = rng_below(&r, 4) == 0;
    const bool ok = fill_params(&t, &r) && run_trial(&t);
    if (!ok) {
        char why[600];
        dc_text text = {0};
        dc_err_render(&rt->job.err, 0, why, sizeof why);
        dc_func_print(t.f, &text);
        printf("seed %llu: %u free, %u results, %u sets; %s\n%s\n", (unsigned long long)seed,
               t.donating.nfree, t.donating.nresult, t.donating.nset, why, text.s);
        dc_text_free(&text);
    }
    for (uint32_t i = 0; i < t.f->param.n; i++)
        dc_tensor_release(t.param[i]);
    for (uint32_t c = 0; c < t.donating.ncell; c++)
        dc_cell_release(t.cell[c]);
    dc_module_free(m);
    return ok;
}

static dc_rt *open_cpu(int level)
{
    dc_opts opt;
    const char *bad;
    dc_device *d = NULL;
    bool interpret = false;
    dc_opts_init(&opt, &bad);
    opt.opt = level;
    opt.check = 2;
    dc_rt *rt = dc_rt_new(&opt, NULL);
    if (!CHECK_EQ(dc_backend_open(&rt->job, "cpu", &d, &interpret), DC_OK))
        exit(1);
    dc_rt_set_device(rt, d, interpret);
    return rt;
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 31);
    const int graphs = argc > 2 ? atoi(argv[2]) : 40;
    for (int level = 0; level <= 2; level++) {
        dc_rt *rt = open_cpu(level);
        bool ok = true;
        for (int i = 0; i < graphs && ok; i++)
            ok = test_graph(rt, seed + (uint64_t)(level * graphs + i));
        CHECK_EQ(rt->stats.fallbacks, 0);
        if (!ok)
            return t_done(); /* what the failed call held is not given back */
        dc_rt_free(rt);
    }
    printf("%llu cells in place, %llu by copy\n", (unsigned long long)donated,
           (unsigned long long)denied);
    CHECK(donated > 0 && denied > 0);
    return t_done();
}
