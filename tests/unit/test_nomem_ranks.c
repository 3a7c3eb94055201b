/*
 * Out of memory (tests/unit/nomem.h tells how) in what makes the function that a rank runs of one about whole values.
 *
 *   test_nomem_ranks [seed]
 */
#include "core/ir/gtext.h"
#include "core/transform/partition.h"

#include "tests/unit/graphgen.h"
#include "tests/unit/loopgen.h"
#include "tests/unit/nomem.h"
#include "tests/unit/shardgen.h"

enum { GRAPHS = 16, SIZE = 14, MOST = 40 };

static uint64_t seed;
static bool loops;
static dc_module *module;
static dc_func *whole, *part;
static const dc_mesh *mesh;
static dc_sharding param[MOST], result[MOST];

static dc_status do_make(dc_job *j, void *ctx)
{
    rng r = {seed};
    (void)ctx;
    whole = loops ? loopgen_func(module, seed, SIZE) : graphgen_func(module, seed, SIZE);
    must(whole->param.n <= MOST && whole->result.n <= MOST, "room for shardings");
    mesh = shardgen_mesh(&r);
    const dc_sharding *p = shardgen_list(&r, j, mesh, whole, whole->param.at, whole->param.n);
    const dc_sharding *q = shardgen_list(&r, j, mesh, whole, whole->result.at, whole->result.n);
    memcpy(param, p, whole->param.n * sizeof *p);
    memcpy(result, q, whole->result.n * sizeof *q);
    return DC_OK;
}

static void make_graph(void)
{
    module = dc_module_new();
    must(dc_protect(job, do_make, NULL) == DC_OK, "a graph");
    part = NULL;
}

static dc_status do_partition(dc_job *j, void *ctx)
{
    dc_partition how = {.mesh = mesh, .param = param, .result = result, .wide = true};
    (void)ctx;
    return dc_partition_func(j, whole, &how, &part);
}

static void after(bool done)
{
    CHECK_EQ(part != NULL, done);
    if (part != NULL) {
        const uint64_t hash = dc_func_hash(part);
        same(&hash, sizeof hash);
        CHECK_EQ(dc_func_check(job, part), DC_OK);
    }
    CHECK_EQ(dc_func_check(job, whole), DC_OK);
    dc_module_free(module);
}

int main(int argc, char **argv)
{
    dc_opts opt;
    const char *bad;
    nomem_begin(argc, argv);
    dc_opts_init(&opt, &bad);
    open_world("eval", &opt, "");
    const uint64_t first = dice.state;
    for (int i = 0; i < GRAPHS; i++) {
        seed = first + (uint64_t)i;
        loops = i % 2 == 1;
        try(&(trial){.name = loops ? "a graph with loops in parts" : "a graph in parts",
                     .before = make_graph,
                     .body = do_partition,
                     .after = after,
                     .most = 60});
    }
    close_world();
    return t_done();
}
