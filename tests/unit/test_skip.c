/*
 * DEEPC_SKIP: results stay right without each stage and pass alone, and without all of them. Random
 * graphs and a training step, against the bound of tests/unit/graphgen.h.
 *
 *   test_skip [seed [graphs]]
 */
#include "jit/compile/stage_skip.h"

#include "tests/unit/diff.h"
#include "tests/unit/trainstep.h"

typedef struct plan {
    const char *words;
    uint64_t seed, graphs;
} plan;

/* ---- words ----------------------------------------------------------------------------------- */

static void test_words(void)
{
    dc_skip s;
    dc_job j;
    dc_opts none = {0};
    char why[600];
    dc_job_init(&j, &none, NULL);
    CHECK_EQ(dc_skip_parse(&j, "", &s), DC_OK);
    CHECK_EQ(s.stages | s.passes, 0);
    CHECK_EQ(dc_skip_parse(&j, "fuse, licm,schedule", &s), DC_OK);
    CHECK(dc_skips(s, DC_STAGE_fuse) && dc_skips(s, DC_STAGE_schedule));
    CHECK(!dc_skips(s, DC_STAGE_simplify));
    CHECK_EQ(s.passes, 1);
    CHECK_EQ(dc_skip_parse(&j, "all", &s), DC_OK);
    for (uint32_t i = 0; i < DC_STAGE__COUNT; i++)
        CHECK(dc_skips(s, (dc_stage)i));
    CHECK(s.passes != 0);
    CHECK_EQ(dc_skip_parse(&j, "licm,fusion", &s), DC_E_VALUE);
    CHECK_EQ(j.err.id, DC_ERR_OPTION);
    dc_err_render(&j.err, 1, why, sizeof why);
    CHECK(strstr(why, "DEEPC_SKIP: nothing is called 'fusion'; there are: simplify ") != NULL);
    CHECK(strstr(why, " licm ") != NULL && strstr(why, " all") != NULL);
    dc_job_fini(&j);
}

/* ---- a step with cells ----------------------------------------------------------------------- */

typedef struct stepping {
    trainstep step;
    dc_exec *exec;
    dc_inst *inst;
    dc_cell *cell[STEP_NCELL];
    dc_tensor *in[STEP_NFREE + STEP_NCELL], *out[STEP_NRESULT];
} stepping;

static dc_status run_step(dc_job *j, stepping *s, const problem *p)
{
    const dc_exec_desc d = trainstep_desc(&s->step);
    dc_arg arg[STEP_NFREE] = {0};
    dc_fault fault;
    for (int i = 0; i < STEP_NFREE + STEP_NCELL; i++) {
        const dc_type *t = &s->step.param[i].type;
        DC_TRY(dc_tensor_new(rt, j, t, &s->in[i]));
        memcpy(dc_tensor_mem(s->in[i]), trainstep_value[i], dc_type_bytes(t));
        memcpy(p->param[i], trainstep_value[i], dc_type_bytes(t));
        if (i < STEP_NFREE) {
            arg[i].tensor = s->in[i];
            continue;
        }
        DC_TRY(dc_cell_new(rt, j, t, NULL, true, &s->cell[i - STEP_NFREE]));
        DC_TRY(dc_cell_write(s->cell[i - STEP_NFREE], j, s->in[i]));
    }
    DC_TRY(dc_exec_build(rt, j, &d, &s->exec));
    DC_TRY(dc_inst_new(rt, j, s->exec, s->cell, &s->inst));
    DC_TRY(dc_inst_call(s->inst, j, arg, s->out, &fault));
    for (int i = 0; i < STEP_NRESULT; i++)
        memcpy(p->got[i], dc_tensor_mem(s->out[i]), trainstep_bytes[i]);
    for (int i = 0; i < STEP_NCELL; i++)
        memcpy(p->got[STEP_NRESULT + i], s->cell[i]->store->mem, trainstep_bytes[STEP_NRESULT + i]);
    return DC_OK;
}

static void test_step(bool donates)
{
    stepping s = {0};
    rng r = {1};
    dc_exec_info info;
    s.step.module = dc_module_new();
    if (!CHECK_EQ(trainstep_build(&rt->job, &s.step), DC_OK))
        return;
    problem p = prepare(s.step.fn, &r, false);
    CHECK_EQ(run_step(&rt->job, &s, &p), DC_OK);
    CHECK(graphgen_bound(&rt->job, s.step.fn, (const void *const *)p.param, p.value, p.bound) ==
          DC_OK);
    for (int i = 0; i < STEP_NRESULT + STEP_NCELL; i++) {
        const dc_type t = dc_node_type(s.step.fn, s.step.fn->result.at[i]);
        CHECK_EQ(graphgen_differs(t.dtype, p.got[i], p.value[i], p.bound[i], dc_type_count(&t), 1),
                 -1);
    }
    dc_exec_info_of(s.exec, &info);
    CHECK_EQ(info.donated > 0, donates);
    for (int i = 0; i < STEP_NFREE + STEP_NCELL; i++)
        dc_tensor_release(s.in[i]);
    for (int i = 0; i < STEP_NRESULT; i++)
        dc_tensor_release(s.out[i]);
    dc_inst_free(s.inst);
    for (int i = 0; i < STEP_NCELL; i++)
        dc_cell_release(s.cell[i]);
    dc_exec_release(s.exec);
    dc_module_free(s.step.module);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static dc_status body(dc_job *j, void *arg)
{
    const plan *a = arg;
    dc_skip skip;
    rng r = {a->seed};
    DC_TRY(dc_skip_parse(j, a->words, &skip));
    for (uint64_t g = 0; g < a->graphs; g++) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        dc_module *m = dc_module_new();
        const dc_func *f =
            (g % 4 == 1 ? graphgen_host : graphgen_func)(m, a->seed + g, 4 + (int)(g % 12));
        const problem p = prepare(f, &r, g % 4 == 3);
        const dc_status s = run_compiled(&p);
        if (s != DC_OK)
            print_failure(f, a->words);
        if (!CHECK(s == DC_OK && compare(&p, a->words)))
            printf("DEEPC_SKIP=%s, graph seed %llu\n", a->words, (unsigned long long)(a->seed + g));
        dc_module_free(m);
        dc_arena_rewind(&j->scratch, mark);
    }
    test_step(!dc_skips(skip, DC_STAGE_donate));
    return DC_OK;
}

static void test_without(const char *words, uint64_t seed, uint64_t graphs)
{
    static dc_log log = {.write = show};
    plan a = {words, seed, graphs};
    dc_opts opts;
    dc_device *dev;
    bool interpret;
    const char *bad;
    dc_opts_init(&opts, &bad);
    opts.check = 1;
    snprintf(opts.skip, sizeof opts.skip, "%s", words);
    dc_log_select(&log, opts.debug);
    rt = dc_rt_new(&opts, &log);
    if (CHECK(dc_backend_open(&rt->job, "cpu", &dev, &interpret) == DC_OK)) {
        dc_rt_set_device(rt, dev, interpret);
        CHECK_EQ(dc_protect(&rt->job, body, &a), DC_OK);
        CHECK_EQ(rt->stats.fallbacks, 0);
    }
    dc_rt_free(rt);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 31);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 20;
    test_words();
    test_without("", seed, graphs);
    test_without("all", seed, graphs);
    for (uint32_t i = 0; dc_skip_word(i) != NULL; i++)
        test_without(dc_skip_word(i), seed, graphs);
    printf("%ld elements\n", compared);
    return t_done();
}
