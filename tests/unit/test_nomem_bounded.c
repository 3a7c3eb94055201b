/*
 * Out of memory (tests/unit/nomem.h tells how) in what makes graphs of bounds of those with sizes that are known at run
 * time, and puts sizes in.
 *
 *   test_nomem_bounded [seed]
 */
#include "core/ir/gtext.h"
#include "core/transform/bounded.h"

#include "tests/unit/boundgen.h"
#include "tests/unit/nomem.h"

enum { GRAPHS = 12, SIZE = 14 };

static uint64_t seed;
static boundgen made;
static dc_module *module;
static dc_extent_list sizes;
static dc_func *lowered, *fixed;

static dc_status do_make(dc_job *j, void *ctx)
{
    (void)ctx;
    boundgen_make(j, module, seed, SIZE, &made);
    return DC_OK;
}

static void make_graph(void)
{
    module = dc_module_new();
    must(dc_protect(job, do_make, NULL) == DC_OK, "a graph");
    lowered = fixed = NULL;
}

static dc_status do_lower(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_bounded_lower(j, made.f, 1, &sizes, &lowered);
}

static dc_status do_fix(dc_job *j, void *ctx)
{
    boundgen_sizes at = {.g = &made};
    (void)ctx;
    for (int v = 0; v < made.nvar; v++)
        at.value[v] = made.most[v];
    return dc_bounded_fix(j, made.f, boundgen_value, &at, &fixed);
}

static void after(bool done)
{
    const dc_func *f = lowered != NULL ? lowered : fixed;
    CHECK_EQ(f != NULL, done);
    if (f != NULL) {
        const uint64_t hash = dc_func_hash(f);
        same(&hash, sizeof hash);
        CHECK_EQ(dc_func_check(job, f), DC_OK);
    }
    CHECK_EQ(dc_func_check(job, made.f), DC_OK);
    DC_VEC_FREE(sizes);
    dc_module_free(module);
    dc_extents_free(made.table);
    job->extents = rt->extents;
}

/* Some reshapes and pads are refused. */
static bool can_be_lowered(void)
{
    expected.known = false;
    make_graph();
    const dc_status status = dc_protect(job, do_lower, NULL);
    must(status == DC_OK || job->err.id == DC_ERR_EXTENT_TEXT, "a graph of bounds");
    after(status == DC_OK);
    expected.n = 0;
    return status == DC_OK;
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
        if (!can_be_lowered())
            continue;
        try(&(trial){
            .name = "lower", .before = make_graph, .body = do_lower, .after = after, .most = 60});
        try(&(trial){
            .name = "fix", .before = make_graph, .body = do_fix, .after = after, .most = 60});
    }
    close_world();
    return t_done();
}
