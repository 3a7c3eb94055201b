/*
 * Results do not depend on the number of threads: random graphs and a large one give the same bits
 * with 1, 2, 3 and 8. Kernels are compiled once; only the pool that runs them changes. Contexts on
 * several threads at once have a pool each.
 *
 *   test_threads [seed [graphs]]        DEEPC_DEVICE=cpu:cc: from C
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/cpu_impl.h"
#include "backends/registry.h"
#include "core/ir/gtext.h"
#include "jit/exec/exec.h"
#include "jit/jit.h"
#include "vm/deepc.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"

enum { NPOOL = 4, TURNS = 6 };

static const int64_t widths[NPOOL] = {1, 2, 3, 8};

typedef struct world {
    dc_opts opt;
    dc_log log;
    dc_rt *rt;
    dc_cpu *cpu;
    dc_cpu_pool *pool[NPOOL]; /* [0] is the device's own */
    uint64_t seed, graphs;
    uint64_t split; /* launches that can be */
    uint64_t compared, wrong;
    uint32_t width; /* of a context's own pool */
} world;

typedef struct problem {
    const dc_func *f;
    void **param;
    void **want, **got; /* bytes of the results */
} problem;

static dc_status call(world *w, dc_inst *inst, const problem *p, dc_tensor *const *in, void **to)
{
    dc_job *j = &w->rt->job;
    dc_arg *arg = DC_NEW_ARRAY(&j->scratch, dc_arg, p->f->param.n + 1);
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, p->f->result.n + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < p->f->param.n; i++)
        arg[i] = (dc_arg){.tensor = in[i]};
    DC_TRY(dc_inst_call(inst, j, arg, out, &fault));
    for (uint32_t i = 0; i < p->f->result.n; i++) {
        memcpy(to[i], dc_tensor_mem(out[i]), dc_type_bytes(&out[i]->type));
        dc_tensor_release(out[i]);
    }
    return DC_OK;
}

/* All pools in turn: an instance for each, since scratch is made where a launch is recorded. */
static dc_status run_each(world *w, dc_exec *e, const problem *p, dc_tensor *const *in, int turns)
{
    dc_job *j = &w->rt->job;
    dc_status s = DC_OK;
    for (int k = 0; k < NPOOL && s == DC_OK; k++) {
        dc_inst *inst = NULL;
        w->cpu->pool = w->pool[k];
        s = dc_inst_new(w->rt, j, e, NULL, &inst);
        for (int turn = 0; turn < turns && s == DC_OK; turn++) {
            const bool first = k + turn == 0;
            s = call(w, inst, p, in, first ? p->want : p->got);
            for (uint32_t i = 0; i < p->f->result.n && s == DC_OK && !first; i++) {
                const dc_type t = dc_node_type(p->f, p->f->result.at[i]);
                w->compared++;
                if (memcmp(p->want[i], p->got[i], dc_type_bytes(&t)) == 0)
                    continue;
                w->wrong++;
                printf("result %u, %d threads, turn %d\n", i, (int)widths[k], turn);
            }
        }
        if (inst != NULL)
            dc_inst_free(inst);
    }
    w->cpu->pool = w->pool[0];
    return s;
}

static dc_status try_func(world *w, const dc_func *f, rng *r, int turns)
{
    dc_job *j = &w->rt->job;
    dc_arena *a = &j->scratch;
    problem p = {.f = f};
    const dc_exec_desc d = {.fn = f, .name = "f", .nfree = f->param.n, .nresult = f->result.n};
    dc_tensor **in = DC_NEW_ARRAY(a, dc_tensor *, f->param.n + 1);
    dc_exec *e = NULL;
    p.want = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    p.got = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        p.want[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        p.got[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
    }
    dc_status s = dc_exec_build(w->rt, j, &d, &e);
    for (uint32_t i = 0; i < f->param.n && s == DC_OK; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        s = dc_tensor_new(w->rt, j, &t, &in[i]);
        if (s == DC_OK)
            graphgen_input(r, &t, false, dc_tensor_mem(in[i]));
    }
    if (s == DC_OK) {
        for (uint32_t i = 0; i < e->ncommand; i++)
            w->split += e->command[i].kind == DC_COMMAND_LAUNCH && e->command[i].grid > 1;
        s = run_each(w, e, &p, in, turns);
    }
    for (uint32_t i = 0; i < f->param.n; i++)
        dc_tensor_release(in[i]);
    if (e != NULL)
        dc_exec_release(e);
    return s;
}

static dc_status random_graphs(dc_job *j, void *arg)
{
    world *w = arg;
    rng r = {w->seed};
    /* more of them where none of a few has launches that are split */
    for (uint64_t g = 0; g < w->graphs || (w->split < w->graphs / 2 && g < 10 * w->graphs); g++) {
        const dc_mark mark = dc_arena_mark(&j->scratch);
        dc_module *m = dc_module_new();
        const dc_status s = try_func(
            w, (g % 4 == 1 ? graphgen_host : graphgen_func)(m, w->seed + g, 6 + (int)(g % 12)), &r,
            1);
        if (s != DC_OK)
            printf("graph seed %llu\n", (unsigned long long)(w->seed + g));
        dc_module_free(m);
        dc_arena_rewind(&j->scratch, mark);
        DC_TRY(s);
    }
    CHECK(w->split >= w->graphs / 2);
    CHECK_EQ(w->rt->stats.fallbacks, 0);
    return DC_OK;
}

/* Products, reductions along and across rows, and all of it once more in the other layout. */
static const char *const large_text =
    "func f(%1: f32[200, 300] \"x\", %2: f32[300, 257] \"w\", %3: f32[257, 64] \"v\") {\n"
    "  %4 = dot %1, %2 {0, 1, 1, 0} : f32[200, 257]\n"
    "  %5 = abs %4 : f32[200, 257]\n"
    "  %6 = dot %5, %3 {0, 1, 1, 0} : f32[200, 64]\n"
    "  %7 = sqrt %6 : f32[200, 64]\n"
    "  %8 = sum %7 {2} : f32[200]\n"
    "  %9 = sum %5 {1} : f32[257]\n"
    "  %10 = dot %5, %1 {0, 1, 0, 0} : f32[257, 300]\n"
    "  %11 = max %10 {3} : f32[]\n"
    "  %12 = sum %10 {3} : f32[]\n"
    "  return %4, %6, %8, %9, %10, %11, %12\n}\n";

static dc_status large_graph(dc_job *j, void *arg)
{
    world *w = arg;
    rng r = {w->seed};
    dc_module *m = NULL;
    DC_TRY(dc_module_parse(j, large_text, &m));
    const dc_status s = try_func(w, m->func.at[0], &r, TURNS);
    dc_module_free(m);
    return s;
}

static void show(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    (void)ctx;
    fwrite(text, 1, n, stdout);
}

/* check 2: every launch is split as fine as can be; 0: where it is worth it. */
static void in_world(world *w, int check, dc_status (*body)(dc_job *j, void *arg))
{
    dc_device *dev;
    bool interpret;
    w->opt.check = check;
    w->opt.threads = widths[0];
    w->rt = dc_rt_new(&w->opt, &w->log);
    if (!CHECK_EQ(dc_backend_open(&w->rt->job, w->opt.device, &dev, &interpret), DC_OK))
        exit(t_done());
    dc_rt_set_device(w->rt, dev, interpret);
    w->cpu = (dc_cpu *)dev;
    w->pool[0] = w->cpu->pool;
    for (int k = 1; k < NPOOL; k++)
        w->pool[k] = dc_cpu_pool_new(widths[k]);
    const dc_status s = dc_protect(&w->rt->job, body, w);
    if (!CHECK_EQ(s, DC_OK)) {
        char text[700];
        dc_err_render(&w->rt->job.err, 0, text, sizeof text);
        printf("%s\n", text);
    }
    CHECK(w->compared > 0);
    CHECK_EQ(w->wrong, 0);
    for (int k = 1; k < NPOOL; k++)
        dc_cpu_pool_free(w->pool[k]);
    dc_rt_free(w->rt);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void *run_context(void *arg)
{
    world *w = arg;
    dc_rt *rt = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = w->opt.device;
    cfg.threads = 3;
    dc_status s = dc_open(&cfg, &rt);
    if (s == DC_OK) {
        w->rt = rt;
        w->cpu = (dc_cpu *)rt->device;
        w->width = dc_cpu_pool_width(w->cpu->pool);
        for (int k = 0; k < NPOOL; k++)
            w->pool[k] = w->cpu->pool;
        w->cpu->split_all = true;
        s = dc_protect(&rt->job, large_graph, w);
    }
    dc_close(rt);
    return s == DC_OK ? w : NULL;
}

static void test_contexts(const world *like, int n)
{
    static world w[4];
    pthread_t thread[4];
    for (int i = 0; i < n; i++) {
        w[i].opt = like->opt;
        w[i].seed = like->seed;
        CHECK_EQ(pthread_create(&thread[i], NULL, run_context, &w[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        void *end = NULL;
        pthread_join(thread[i], &end);
        CHECK(end == &w[i]);
        CHECK_EQ(w[i].wrong, 0);
        CHECK(w[i].compared > 0);
        CHECK_EQ(w[i].width, 3);
    }
}

int main(int argc, char **argv)
{
    static world w = {.log = {.write = show}};
    const char *bad;
    char line[400];
    dc_opts_init(&w.opt, &bad);
    w.seed = rng_seed(argc, argv, dc_clock_ns());
    if (strncmp(w.opt.device, "cpu", 3) != 0)
        snprintf(w.opt.device, sizeof w.opt.device, "cpu");
    const bool llvm = strcmp(w.opt.device, "cpu") == 0;
    w.graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : llvm ? 60 : 3;
    if (llvm && !dc_cpu_describe(&w.opt, "", line, sizeof line)) {
        T_SKIP(line);
        return t_done();
    }
    in_world(&w, 2, random_graphs);
    in_world(&w, 0, large_graph);
    in_world(&w, 2, large_graph);
    test_contexts(&w, llvm ? 4 : 2);
    return t_done();
}
