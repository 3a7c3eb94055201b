/*
 * Out of memory in jit/ and backends/ (tests/unit/nomem.h tells how), and broken promises there:
 * the status is BUG, nothing is lost, and the context can only be closed.
 */
#define _GNU_SOURCE /* mkdtemp */
#include "jit/cache/tuned_schedules.h"
#include "jit/compile/compile_job.h"
#include "jit/jit.h"

#include <dirent.h>
#include <unistd.h>

#include "tests/unit/nomem.h"
#include "tests/unit/trainstep.h"

static trainstep step;
static dc_exec *exec;
static dc_inst *inst;
static dc_cell *cell[STEP_NCELL];
static dc_tensor *argument[2]; /* x and y; lr is a number */
static dc_tensor *out[STEP_NRESULT];
static dc_tensor *held[STEP_NRESULT + 1]; /* results of an earlier call; the value of a cell */

static const size_t *const bytes_of = trainstep_bytes;

/* ---- what calls need ---- */

static void make_step(void)
{
    must(dc_protect(job, trainstep_make, &step) == DC_OK, "the step");
}

static dc_tensor *tensor(int param)
{
    dc_tensor *t = NULL;
    const dc_type *type = &step.param[param].type;
    must(dc_tensor_new(rt, job, type, &t) == DC_OK, "a tensor");
    memcpy(dc_tensor_mem(t), trainstep_value[param], dc_type_bytes(type));
    return t;
}

static void make_cells(void)
{
    for (int i = 0; i < STEP_NCELL; i++) {
        dc_tensor *t = tensor(STEP_NFREE + i);
        const char *label = i == 0 ? "net.1.weight" : NULL;
        must(dc_cell_new(rt, job, &t->type, label, true, &cell[i]) == DC_OK &&
                 dc_cell_write(cell[i], job, t) == DC_OK,
             "a cell");
        dc_tensor_release(t);
    }
    argument[0] = tensor(0);
    argument[1] = tensor(1);
}

static void release_results(void)
{
    for (int i = 0; i < STEP_NRESULT; i++) {
        dc_tensor_release(out[i]);
        out[i] = NULL;
    }
}

static void free_inst(void)
{
    dc_inst_free(inst);
    inst = NULL;
    for (int i = 0; i < STEP_NCELL; i++)
        dc_cell_release(cell[i]);
    dc_tensor_release(argument[0]);
    dc_tensor_release(argument[1]);
}

/* ---- the operations ---- */

static dc_status do_exec(dc_job *j, void *ctx)
{
    const dc_exec_desc d = trainstep_desc(&step);
    (void)ctx;
    return dc_exec_build(rt, j, &d, &exec);
}

static dc_status do_inst(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_inst_new(rt, j, exec, cell, &inst);
}

static dc_status do_call(dc_job *j, void *ctx)
{
    uint32_t lr;
    memcpy(&lr, trainstep_value[2], sizeof lr);
    const dc_arg arg[STEP_NFREE] = {{.tensor = argument[0]}, {.tensor = argument[1]}, {.bits = lr}};
    dc_fault fault;
    (void)ctx;
    return dc_inst_call(inst, j, arg, out, &fault);
}

/* The same in slices. */
static dc_status do_job(dc_job *j, void *ctx)
{
    uint32_t lr;
    memcpy(&lr, trainstep_value[2], sizeof lr);
    const dc_arg arg[STEP_NFREE] = {{.tensor = argument[0]}, {.tensor = argument[1]}, {.bits = lr}};
    dc_fault fault;
    bool done = false;
    (void)ctx;
    DC_TRY(dc_inst_start(inst, j, arg));
    while (!done)
        DC_TRY(dc_inst_poll(inst, j, 0, &done, &fault));
    return dc_inst_take(inst, j, out);
}

/* ---- and what they leave ---- */

static void same_state(void)
{
    for (int i = 0; i < STEP_NRESULT; i++)
        same(dc_tensor_mem(out[i]), bytes_of[i]);
    for (int i = 0; i < STEP_NCELL; i++)
        same(cell[i]->store->mem, bytes_of[STEP_NRESULT + i]);
}

static void same_call(void)
{
    must(dc_protect(job, do_call, NULL) == DC_OK, "a call");
    same_state();
    release_results();
}

static void after_exec(bool done)
{
    if (rt->jit != NULL) /* what it still has to write is memory */
        dc_cache_flush(rt->jit->cache);
    CHECK((exec != NULL) == done);
    if (done) {
        dc_exec_info info;
        dc_exec_info_of(exec, &info);
        same(&info.launches, sizeof info.launches);
        same(&info.arena_bytes, sizeof info.arena_bytes);
        make_cells();
        must(do_inst(job, NULL) == DC_OK, "an instance");
        same_call();
        free_inst();
    }
    dc_exec_release(exec);
    exec = NULL;
    dc_module_free(step.module);
}

static void after_inst(bool done)
{
    CHECK((inst != NULL) == done);
    for (int i = 0; i < STEP_NCELL && !done; i++)
        CHECK_EQ(cell[i]->refs, 1);
    if (done)
        same_call();
    free_inst();
}

/* Called once before; its results are held, and a tensor shows a cell. */
static void make_called(void)
{
    make_cells();
    must(do_inst(job, NULL) == DC_OK, "an instance");
    must(dc_protect(job, do_call, NULL) == DC_OK, "a call");
    for (int i = 0; i < STEP_NRESULT; i++) {
        held[i] = out[i];
        out[i] = NULL;
    }
    held[STEP_NRESULT] = dc_cell_show(cell[0]);
}

/* A call inside a call finds the arena in use. */
static void make_called_inside(void)
{
    make_called();
    rt->arena_busy = true;
}

static void nothing_set(void)
{
    CHECK(out[0] == NULL && out[1] == NULL);
    CHECK_EQ(memcmp(cell[0]->store->mem, dc_tensor_mem(held[STEP_NRESULT]), bytes_of[STEP_NRESULT]),
             0);
    CHECK(!cell[0]->torn && !cell[1]->torn);
}

static void after_call(bool done)
{
    if (done)
        same_state();
    for (int i = 0; i < STEP_NRESULT && done; i++)
        same(dc_tensor_mem(held[i]), bytes_of[i]);
    rt->arena_busy = false;
    for (int i = 0; i <= STEP_NRESULT; i++)
        dc_tensor_release(held[i]);
    release_results();
    free_inst();
}

/* ---- all of it ---- */

/* most: failures while an executable is built; 0: every single one. */
/* ---- a search for schedules ---- */

static dc_arena rows; /* of its report */

static dc_status do_tune(dc_job *j, void *ctx)
{
    dc_tune_report report = {.mem = &rows};
    (void)ctx;
    return dc_exec_tune(exec, j, &(dc_tune_options){.seconds = 0.02}, &report);
}

static void free_store(void)
{
    if (rt->jit != NULL) {
        dc_tuned_store_free(rt->jit->tuned);
        rt->jit->tuned = NULL;
    }
}

/* Nothing is known, so that each search begins anew. */
static void make_store(void)
{
    free_store();
    if (rt->jit != NULL) {
        rt->jit->tuned = dc_tuned_store_new();
        rt->jit->tuned->opened = true;
    }
}

static void nothing_stored(void)
{
    CHECK(rt->jit == NULL || rt->jit->tuned->newest == NULL);
}

static void after_tune(bool done)
{
    (void)done;
    free_store();
    dc_arena_free(&rows);
}

static void try_on(const char *what, const char *device, const dc_opts *opt, const char *channels,
                   int most)
{
    const trial trials[] = {
        {.name = "  executable",
         .before = make_step,
         .body = do_exec,
         .after = after_exec,
         .most = most},
        {.name = "  instance", .before = make_cells, .body = do_inst, .after = after_inst},
        {.name = "  call",
         .before = make_called,
         .body = do_call,
         .refused = nothing_set,
         .after = after_call,
         .evicts = true},
        {.name = "  job",
         .before = make_called,
         .body = do_job,
         .refused = nothing_set,
         .after = after_call,
         .evicts = true},
        {.name = "  call inside a call",
         .before = make_called_inside,
         .body = do_call,
         .refused = nothing_set,
         .after = after_call,
         .evicts = true},
        {.name = "  search",
         .before = make_store,
         .body = do_tune,
         .refused = nothing_stored,
         .after = after_tune,
         .most = 10,
         .timed = true},
    };
    printf("%s\n", what);
    open_world(device, opt, channels);
    try(&trials[0]);
    make_step();
    must(do_exec(job, NULL) == DC_OK, "an executable");
    dc_module_free(step.module);
    CHECK((rt->stats.fallbacks > 0) == (opt->llvm[0] != '\0'));
    for (size_t i = 1; i < DC_COUNTOF(trials); i++)
        try(&trials[i]);
    dc_exec_release(exec);
    exec = NULL;
    close_world();
}

/* ---- broken promises ---- */

static int released;

static void release_count(void *what)
{
    released++;
    dc_xfree(what);
}

static dc_status do_bug(dc_job *j, void *ctx)
{
    (void)ctx;
    dc_job_defer(j, release_count, dc_xalloc(10));
    dc_arena_alloc(&j->scratch, 100);
    dc_failf(j, DC_ERR_BUILD, NULL, "something that is about to be worked round");
    DC_BUG("%d is not %d", 1, 2);
}

static void expect_broken(void)
{
    dc_exec *const e = exec;
    dc_inst *const i = inst;
    CHECK(rt->broken && job->cleanup.n == 0 && is_rewound());
    CHECK_EQ(dc_protect(job, do_exec, NULL), DC_E_STATE);
    CHECK_EQ(dc_protect(job, do_inst, NULL), DC_E_STATE);
    CHECK_EQ(job->err.id, DC_ERR_REENTER);
    if (inst != NULL)
        CHECK_EQ(dc_protect(job, do_call, NULL), DC_E_STATE);
    CHECK(exec == e && inst == i && out[0] == NULL);
}

/* In the middle of anything. */
static void test_bug(const char *device)
{
    char words[300];
    open_world(device, &(dc_opts){.opt = 2}, "");
    make_step();
    make_cells();
    must(do_exec(job, NULL) == DC_OK && do_inst(job, NULL) == DC_OK, "an instance");
    const long blocks = mem.blocks;
    CHECK(!rt->broken);
    released = 0;
    CHECK_EQ(dc_protect(job, do_bug, NULL), DC_E_BUG);
    CHECK_EQ(released, 1);
    CHECK_EQ(mem.blocks, blocks);
    CHECK_EQ(job->err.id, DC_ERR_BUG);
    dc_err_render(&job->err, 1, words, sizeof words);
    CHECK(strstr(words, "1 is not 2") != NULL);
    expect_broken();
    free_inst();
    dc_exec_release(exec);
    exec = NULL;
    dc_module_free(step.module);
    close_world();
}

static dc_status do_wrong_exec(dc_job *j, void *ctx)
{
    const dc_exec_desc d = {.fn = step.fn, .name = "step", .nfree = STEP_NFREE, .ncell = 7};
    (void)ctx;
    return dc_exec_build(rt, j, &d, &exec);
}

static dc_status do_wrong_inst(dc_job *j, void *ctx)
{
    dc_cell *const twice[STEP_NCELL] = {cell[0], cell[0]};
    (void)ctx;
    return dc_inst_new(rt, j, exec, twice, &inst);
}

/* While an executable or an instance is half made. */
static void test_bug_inside(const char *device)
{
    for (int with_exec = 0; with_exec < 2; with_exec++) {
        open_world(device, &(dc_opts){.opt = 2}, "");
        make_step();
        make_cells();
        if (with_exec)
            must(do_exec(job, NULL) == DC_OK, "an executable");
        const uint64_t live = rt->stats.bytes_live;
        CHECK_EQ(dc_protect(job, with_exec ? do_wrong_inst : do_wrong_exec, NULL), DC_E_BUG);
        CHECK_EQ(rt->stats.bytes_live, live);
        CHECK((exec != NULL) == (with_exec == 1) && inst == NULL);
        CHECK_EQ(cell[0]->refs, 1);
        if (with_exec)
            expect_broken();
        CHECK(rt->broken);
        free_inst();
        dc_exec_release(exec);
        exec = NULL;
        dc_module_free(step.module);
        close_world();
    }
}

/* Executables that are found whole; those whose entry cannot be read are compiled, and stored again. */
static void try_warm(void)
{
    dc_opts opt = {.opt = 2, .cache_size = 16};
    char path[600];
    snprintf(opt.cache, sizeof opt.cache, "%.200s/deepc-nomem-XXXXXX", dc_opts_temporary());
    if (mkdtemp(opt.cache) == NULL) {
        T_SKIP("no temporary folder");
        return;
    }
    try_on("cpu with a cache on disk", "cpu", &opt, "cache", 200);
    DIR *d = opendir(opt.cache);
    for (const struct dirent *f; d != NULL && (f = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", opt.cache, f->d_name);
        unlink(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(opt.cache);
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    try_on("eval", "eval", &(dc_opts){.opt = 2}, "", 0);
    /* LLVM takes its time at each attempt: a sample; the simulated devices take more of them. */
    try_on("cpu", "cpu", &(dc_opts){.opt = 2}, "", 40);
    try_warm();
    try_on("cpu with guards and verifiers", "cpu", &(dc_opts){.opt = 2, .check = 2}, "", 20);
    try_on("cpu beside eval", "cpu", &(dc_opts){.opt = 2, .compare = "eval"}, "time", 8);
    try_on("cpu without a compiler, all logged", "cpu",
           &(dc_opts){.opt = 2, .llvm = "/nonexistent"}, "all", 300);
    test_bug("eval");
    test_bug("cpu");
    test_bug_inside("eval");
    test_bug_inside("cpu");
    CHECK_EQ(mem.blocks, 0);
    return t_done();
}
