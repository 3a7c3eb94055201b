/*
 * Recompute or store: on random graphs what is told is what was decided, and what costs less; by hand
 * the numbers. The seed is printed; argument 1 sets it.
 */
#include "tests/t.h"

#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"

#include "tests/unit/graphgen.h"
#include "tests/unit/rng.h"

static dc_job job;
static const dc_opts opts;

static void check_choice(const dc_groups *g, const dc_choice *c)
{
    const double again = dc_choice_again(c), moved = dc_choice_moved(c);
    if (c->way == DC_CHOICE_NONE) {
        CHECK(c->stored && c->times == 0 && c->but != NULL && *c->but != '\0');
        CHECK(g->group_of[c->ref] != DC_NO_GROUP);
        return;
    }
    CHECK(c->times > 1 && c->ops > 0);
    CHECK_EQ(c->elements, dc_node_count(dc_node_at(g->fn, c->ref)));
    if (!c->stored && c->way == DC_CHOICE_ROW)
        CHECK(c->but != NULL || again <= moved);
    else
        CHECK(c->but == NULL);
    if (!c->stored && c->way != DC_CHOICE_ROW)
        CHECK_EQ(g->group_of[c->ref], DC_NO_GROUP);
}

static void test_random(uint64_t seed)
{
    uint32_t stored = 0, again = 0, given = 0;
    for (uint64_t k = 0; k < 400; k++) {
        dc_module *m = dc_module_new();
        const dc_func *f = dc_simplify(graphgen_func(m, seed + k, 25));
        dc_groups g;
        CHECK_EQ(dc_fuse(&job, &job.scratch, f, 2, &g), DC_OK);
        for (uint32_t i = 0; i < g.nchoice; i++) {
            check_choice(&g, &g.choice[i]);
            const dc_choice *c = &g.choice[i];
            *(c->way == DC_CHOICE_NONE ? &given : c->stored ? &stored : &again) += 1;
        }
        dc_module_free(m);
    }
    printf("%u stored, %u recomputed, %u no choice\n", stored, again, given);
    CHECK(stored > 0 && again > 0 && given > 0);
}

static const dc_choice *only_choice(dc_module **m, const char *text)
{
    dc_groups g;
    CHECK_EQ(dc_module_parse(&job, text, m), DC_OK);
    CHECK_EQ(dc_fuse(&job, &job.scratch, (*m)->func.at[0], 2, &g), DC_OK);
    CHECK_EQ(g.nchoice, 1);
    return &g.choice[0];
}

static void expect(const char *text, dc_choice_way way, bool stored, int64_t times, double again,
                   double moved)
{
    dc_module *m = NULL;
    const dc_choice *c = only_choice(&m, text);
    CHECK_EQ(c->way, way);
    CHECK_EQ(c->stored, stored);
    CHECK_EQ(c->times, times);
    CHECK_EQ((int64_t)dc_choice_again(c), (int64_t)again);
    CHECK_EQ((int64_t)dc_choice_moved(c), (int64_t)moved);
    dc_module_free(m);
}

#define TWO_SUMS(op)                    \
    "func f(%1: f32[64, 100]) {\n"      \
    "  %2 = " op " %1 : f32[64, 100]\n" \
    "  %3 = sum %2 {1} : f32[100]\n"    \
    "  %4 = sum %2 {2} : f32[64]\n"     \
    "  return %3, %4\n}\n"

static void test_numbers(void)
{
    expect(TWO_SUMS("neg"), DC_CHOICE_KERNELS, false, 2, 6400, 51200);
    expect(TWO_SUMS("exp"), DC_CHOICE_KERNELS, true, 2, 16 * 6400, 51200);
    expect("func f(%1: f32[100], %2: f32[64, 100]) {\n"
           "  %3 = exp %1 : f32[100]\n"
           "  %4 = reshape %3 : f32[1, 100]\n"
           "  %5 = expand %4 : f32[64, 100]\n"
           "  %6 = mul %2, %5 : f32[64, 100]\n"
           "  return %6\n}\n",
           DC_CHOICE_BROADCAST, true, 64, 63 * 1600, 65 * 400);
}

/* Out of the caches: made of one value of its size, or of two. */
static void test_far(void)
{
    expect("func f(%1: f32[2048, 1024]) {\n"
           "  %2 = exp %1 : f32[2048, 1024]\n"
           "  %3 = sum %2 {1} : f32[1024]\n"
           "  %4 = sum %2 {2} : f32[2048]\n"
           "  return %3, %4\n}\n",
           DC_CHOICE_KERNELS, false, 2, 16.0 * 2048 * 1024, 8.0 * 2048 * 1024);
    expect("func f(%1: f32[2048, 1024], %2: f32[2048, 1024]) {\n"
           "  %3 = div %1, %2 : f32[2048, 1024]\n"
           "  %4 = sum %3 {1} : f32[1024]\n"
           "  %5 = sum %3 {2} : f32[2048]\n"
           "  return %4, %5\n}\n",
           DC_CHOICE_KERNELS, true, 2, 16.0 * 2048 * 1024, 8.0 * 2048 * 1024);
}

/* Values between two kernels that are no choice: which access map, or which limit, parts these. */
static void expect_stored(const char *text, const char *why)
{
    dc_module *m = NULL;
    const dc_choice *c = only_choice(&m, text);
    CHECK_EQ(c->way, DC_CHOICE_NONE);
    CHECK(c->stored);
    CHECK_STR(c->but, why);
    dc_module_free(m);
}

static void test_reasons(void)
{
    expect_stored("func f(%1: f32[64, 100]) {\n"
                  "  %2 = sum %1 {1} : f32[100]\n"
                  "  %3 = reshape %2 : f32[1, 100]\n"
                  "  %4 = expand %3 : f32[64, 100]\n"
                  "  %5 = sub %1, %4 : f32[64, 100]\n"
                  "  return %5\n}\n",
                  "read through expand");
    expect_stored("func f(%1: f32[64, 100], %2: f32[64, 64]) {\n"
                  "  %3 = sum %1 {2} : f32[64]\n"
                  "  %4 = neg %3 : f32[64]\n"
                  "  %5 = reshape %4 : f32[1, 64]\n"
                  "  %6 = dot %5, %2 {0, 1, 1, 0} : f32[1, 64]\n"
                  "  return %6\n}\n",
                  "operand of a contraction");
}

/* By thread groups: casts to fewer bits are stored before a large product, folded into a small one; others are folded. */
static void try_cast(int n, const char *from, const char *to, bool stored)
{
    const dc_target groups = {.simt = true};
    dc_module *m = NULL;
    dc_groups g;
    char text[512];
    snprintf(text, sizeof text,
             "func f(%%1: %s[%d, %d], %%2: %s[%d, %d]) {\n"
             "  %%3 = cast %%1 : %s[%d, %d]\n"
             "  %%4 = cast %%2 : %s[%d, %d]\n"
             "  %%5 = dot %%3, %%4 {0, 1, 1, 0} : %s[%d, %d]\n"
             "  return %%5\n}\n",
             from, n, n, from, n, n, to, n, n, to, n, n, to, n, n);
    if (!CHECK_EQ(dc_module_parse(&job, text, &m), DC_OK))
        return;
    const dc_func *f = m->func.at[0];
    CHECK_EQ(dc_fuse_for(&job, &job.scratch, f, 2, &groups, &g), DC_OK);
    CHECK_EQ(g.group_of[3] != DC_NO_GROUP, stored);
    CHECK_EQ(g.group_of[4] != DC_NO_GROUP, stored);
    CHECK_EQ(g.n, stored ? 3 : 1);
    dc_module_free(m);
}

static void test_casts_of_operands(void)
{
    try_cast(512, "f32", "f16", true);
    try_cast(64, "f32", "f16", false);
    try_cast(512, "f16", "f32", false);
}

/* A constant that is a result, too, is not read from memory. */
static void test_constant_results(void)
{
    dc_module *m = NULL;
    dc_groups g;
    CHECK_EQ(dc_module_parse(&job,
                             "func f(%1: f32[8, 8]) {\n"
                             "  %2 = const {1074790400} : f32[8, 8]\n"
                             "  %3 = dot %1, %2 {0, 1, 1, 0} : f32[8, 8]\n"
                             "  return %3, %2\n}\n",
                             &m),
             DC_OK);
    CHECK_EQ(dc_fuse(&job, &job.scratch, m->func.at[0], 2, &g), DC_OK);
    CHECK(g.group_of[2] != DC_NO_GROUP && g.group_of[2] != g.group_of[3]);
    CHECK_EQ(g.at[g.group_of[3]].nin, 1);
    dc_module_free(m);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 40);
    dc_job_init(&job, &opts, NULL);
    test_numbers();
    test_far();
    test_reasons();
    test_casts_of_operands();
    test_constant_results();
    test_random(seed);
    test_random(1000); /* has values that are stored although it costs less to compute them again */
    dc_job_fini(&job);
    return t_done();
}
