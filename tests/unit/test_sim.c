/*
 * The devices sim:cpu, sim:cuda and sim:opencl: items of every kind with kernels written by hand, what
 * they refuse, and random graphs through jit/, whose results must agree with the interpreter of
 * graphs within the bound of tests/unit/graphgen.h.
 *
 *   test_sim [seed [graphs]]
 */
#include "jit/sim/sim.h"
#include "jit/sim/sim_target.h"

#include "tests/unit/diff.h"

static const char *const names[] = {"sim:cpu", "sim:cuda", "sim:opencl"};

/* Devices by name --------------------------------------------------------------------------- */

static void test_names(dc_job *j)
{
    static const char *const targets[] = {"cpu",     "c11",        "opencl",  "cuda",
                                          "sim:cpu", "sim:opencl", "sim:cuda"};
    dc_device *d = NULL;
    for (size_t i = 0; i < DC_COUNTOF(targets); i++) {
        const dc_target *t = dc_sim_target_named(targets[i]);
        if (!CHECK(t != NULL))
            continue;
        CHECK_STR(t->name, targets[i]);
        CHECK(t->simt == (strstr(t->name, "cuda") != NULL || strstr(t->name, "opencl") != NULL));
        CHECK(t->simt == (t->group_threads > 0));
        CHECK((strncmp(t->name, "sim:", 4) == 0) == (strcmp(t->dialect, "flat") == 0));
    }
    CHECK(dc_sim_target_named("sim:") == NULL);
    CHECK(dc_sim_open(j, "sim:abacus", &d) == DC_E_DEVICE);
    CHECK(d == NULL);
    j->err = (dc_err){0};
    CHECK(dc_sim_open(j, "cpu", &d) == DC_E_DEVICE);
    j->err = (dc_err){0};
}

/* Items ------------------------------------------------------------------------------------- */

static const char kernels[] = "kernel add (out0: i32[1] out, x0: i32[1], x1: i32[1]) {\n"
                              "  %1 = load i32 x0[0]\n"
                              "  %2 = load i32 x1[0]\n"
                              "  %3 = add i32 %1, %2\n"
                              "  store i32 out0[0], %3\n"
                              "}\n"
                              "kernel less (out0: bool[1] out, x0: i32[1], x1: i32[1]) {\n"
                              "  %1 = load i32 x0[0]\n"
                              "  %2 = load i32 x1[0]\n"
                              "  %3 = lt bool %1, %2\n"
                              "  store bool out0[0], %3\n"
                              "}\n"
                              "kernel wide (out0: i32[8] out) positions 8 scratch 64 {\n"
                              "  %1 = loop begin, end\n"
                              "    %2 = convert i32 %1\n"
                              "    store i32 out0[%1], %2\n"
                              "  end\n"
                              "}\n"
                              "kernel over (out0: i32[2] out) {\n"
                              "  store i32 out0[2], 1\n"
                              "}\n";

enum { ADD, LESS, WIDE, OVER, ENTRIES };

static const char *const entries[] = {"add", "less", "wide", "over"};

typedef struct machine { /* slots: 0 the argument block, 1 numbers, 2 more room */
    dc_device *d;
    dc_program *p;
    int32_t *number;
    void *slot[3];
} machine;

static bool open_machine(dc_job *j, machine *m)
{
    const dc_source src = {kernels, "flat", entries, ENTRIES};
    void *mem;
    *m = (machine){0};
    if (!CHECK(dc_sim_open(j, "sim:cpu", &m->d) == DC_OK) ||
        !CHECK(m->d->ops->compile(m->d, j, &src, &m->p) == DC_OK) ||
        !CHECK(m->d->ops->alloc(m->d, j, 256, &mem) == DC_OK))
        return false;
    CHECK_EQ((uintptr_t)mem % 64, 0);
    CHECK_EQ(*(unsigned char *)mem, 0xff); /* what is new is no number */
    m->number = m->slot[1] = mem;
    return true;
}

static void close_machine(machine *m)
{
    m->d->ops->release(m->d, m->slot[1]);
    m->d->ops->program_free(m->d, m->p);
    m->d->ops->free(m->d);
}

/* number[n], as a bind */
#define AT(n)      \
    {              \
        1, 4 * (n) \
    }

static dc_command launch_of(const machine *m, uint32_t entry, uint32_t nbind, const dc_bind *bind)
{
    return (dc_command){.kind = DC_COMMAND_LAUNCH,
                        .program = m->p,
                        .entry = entry,
                        .grid = 1,
                        .nbind = nbind,
                        .bind = bind,
                        .label = entries[entry]};
}

static dc_status run_items(dc_job *j, machine *m, const dc_command *item, uint32_t n,
                           dc_run_info *info)
{
    dc_recording *r;
    DC_TRY(m->d->ops->record(m->d, j, item, n, &r));
    const dc_status s = m->d->ops->run(m->d, j, r, m->slot, info);
    m->d->ops->recording_free(m->d, r);
    return s;
}

/*
 * while number[3] { number[0] += number[1]; number[3] = number[0] < number[2] }, the iteration in
 * number[4]; if number[3] then number[5] = number[0] else number[5] = number[4]; then a check.
 */
static void test_control(dc_job *j)
{
    machine m;
    if (!open_machine(j, &m))
        return;
    const dc_bind add[] = {AT(0), AT(0), AT(1)}, less[] = {AT(3), AT(0), AT(2)};
    const dc_bind loop[] = {AT(3), AT(4)}, branch[] = {AT(3)};
    const dc_bind yes[] = {AT(5), AT(0)}, no[] = {AT(5), AT(4)}, check[] = {AT(5)};
    const dc_command item[] = {
        {.kind = DC_COMMAND_LOOP, .grid = 100, .nbind = 2, .bind = loop, .nbody = 2},
        launch_of(&m, ADD, 3, add),
        launch_of(&m, LESS, 3, less),
        {.kind = DC_COMMAND_BRANCH, .nbind = 1, .bind = branch, .nbody = 1, .nelse = 1},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = yes, .bytes = 4},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = no, .bytes = 4},
        {.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = check},
    };
    uint64_t ns[DC_COUNTOF(item)] = {0};
    const dc_run_watch watch = {.ns = ns};
    dc_run_info info = {.watch = &watch};
    const int32_t start[] = {0, 3, 20, 1, -1, -1};
    memcpy(m.number, start, sizeof start);
    CHECK(run_items(j, &m, item, DC_COUNTOF(item), &info) == DC_OK);
    CHECK_EQ(m.number[0], 21);
    CHECK_EQ(m.number[4], 6);
    CHECK_EQ(m.number[5], 6);
    CHECK_EQ(info.fault_command, 6);
    CHECK_EQ(info.fault_value, 6);
    CHECK(ns[1] > 0);
    close_machine(&m);
}

static void refused(dc_job *j, machine *m, dc_command item, dc_status status, const char *part)
{
    char said[700];
    dc_run_info info = {0};
    CHECK(run_items(j, m, &item, 1, &info) == status);
    dc_err_render(&j->err, 0, said, sizeof said);
    if (!CHECK(strstr(said, part) != NULL))
        printf("    '%s' says nothing of '%s'\n", said, part);
    j->err = (dc_err){0};
}

static void test_launches(dc_job *j)
{
    machine m;
    if (!open_machine(j, &m))
        return;
    const dc_bind bind[] = {AT(0), AT(8), AT(9)};
    dc_command wide = launch_of(&m, WIDE, 1, bind);
    wide.grid = 8;
    wide.scratch = 64;
    CHECK(run_items(j, &m, &wide, 1, NULL) == DC_OK);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(m.number[i], i);
    wide.grid = 7;
    refused(j, &m, wide, DC_E_DEVICE, "wide has other positions");
    wide.grid = 8;
    wide.scratch = 0;
    refused(j, &m, wide, DC_E_DEVICE, "wide has other scratch memory");
    refused(j, &m, launch_of(&m, ADD, 2, bind), DC_E_DEVICE, "add has other parameters");
    refused(j, &m, launch_of(&m, OVER, 1, bind), DC_E_BUG, "over:2: store: out0[2] is outside");
    close_machine(&m);
}

static void test_sources(dc_job *j)
{
    static const struct {
        dc_source src;
        dc_status status;
    } cases[] = {
        {{"kernel a () {\n}\n", "llvm", entries, 0}, DC_E_BUILD},
        {{"kernel a () {\n}\n", "flat", entries, 1}, DC_E_BUILD},
        {{"kernel a () {\n", "flat", entries, 0}, DC_E_VALUE},
        {{"kernel a () {\n  barrier group\n}\n", "flat", entries, 0}, DC_E_BUG},
    };
    dc_device *d;
    CHECK(dc_sim_open(j, "sim:cuda", &d) == DC_OK);
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        dc_program *p = NULL;
        CHECK(d->ops->compile(d, j, &cases[i].src, &p) == cases[i].status);
        CHECK(p == NULL);
        j->err = (dc_err){0};
    }
    d->ops->free(d);
}

/* Random graphs ----------------------------------------------------------------------------- */

static bool try_graph(const dc_func *f, rng *r, bool special, const char *device)
{
    const dc_mark mark = dc_arena_mark(&rt->job.scratch);
    const problem p = prepare(f, r, special);
    const dc_status s = run_compiled(&p);
    if (s != DC_OK)
        print_failure(f, device);
    const bool ok = s == DC_OK && compare(&p, device);
    rt->job.err = (dc_err){0};
    dc_arena_rewind(&rt->job.scratch, mark);
    return ok;
}

static dc_status graphs_on(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    const char *device = names[opt[2]];
    rng r = {opt[0]};
    DC_UNUSED(j);
    for (uint64_t g = 0; g < opt[1]; g++) {
        const uint64_t seed = opt[0] + g;
        const int size = 4 + (int)(g % 16);
        dc_module *m = dc_module_new();
        if (!CHECK(try_graph((g % 4 == 1 ? graphgen_host : graphgen_func)(m, seed, size), &r,
                             g % 4 == 3, device)))
            printf("graph seed %llu size %d on %s\n", (unsigned long long)seed, size, device);
        dc_module_free(m);
    }
    return DC_OK;
}

static void test_graphs(uint64_t *opt)
{
    static dc_opts opts;
    static dc_log log = {.write = show};
    dc_device *dev;
    const char *bad;
    dc_opts_init(&opts, &bad);
    opts.check = 1;
    dc_log_select(&log, opts.debug);
    rt = dc_rt_new(&opts, &log);
    if (CHECK(dc_sim_open(&rt->job, names[opt[2]], &dev) == DC_OK)) {
        dc_rt_set_device(rt, dev, false);
        CHECK(dc_protect(&rt->job, graphs_on, opt) == DC_OK);
        CHECK_EQ((long long)rt->stats.fallbacks, 0);
        CHECK(rt->stats.kernels >= opt[1]);
        printf("%s: %ld elements, %llu kernels\n", names[opt[2]], compared,
               (unsigned long long)rt->stats.kernels);
    }
    dc_rt_free(rt);
}

static dc_status items(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    test_names(j);
    test_control(j);
    test_launches(j);
    test_sources(j);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[3] = {rng_seed(argc, argv, 20261121), 200, 0};
    dc_opts none = {0};
    dc_job j;
    dc_job_init(&j, &none, NULL);
    CHECK(dc_protect(&j, items, NULL) == DC_OK);
    dc_job_fini(&j);
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    for (opt[2] = 0; opt[2] < DC_COUNTOF(names); opt[2]++)
        test_graphs(opt);
    return t_done();
}
