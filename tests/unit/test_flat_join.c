/*
 * Kernels of thread groups joined to one (jit/flat/flat_join.h): the joined kernel is legal, its text comes back, it does
 * what its parts do, whatever groups they were made for; what is alike is one body; and what may not be joined.
 */
#include "jit/flat/flat_join.h"

#include "tests/unit/flat_run.h"
#include "tests/unit/rng.h"

/* out0[i] = 2 * x0[i], 3 groups of 4 threads */
static const char twice[] = "kernel twice (out0: f32[12] out, x0: f32[12]) simt 4 positions 3 {\n"
                            "  %1 = mul index group, 4\n"
                            "  %2 = add index %1, thread\n"
                            "  %3 = load f32 x0[%2]\n"
                            "  %4 = add f32 %3, %3\n"
                            "  store f32 out0[%2], %4\n"
                            "}\n";

/* Two results of two inputs, 5 groups of 2 threads; a loop, and a local array */
static const char both[] = "kernel both (out0: f32[10] out, out1: f32[10] out, x0: f32[10], x1: "
                           "f32[10], t: f32[1] local) simt 2 positions 5 {\n"
                           "  %1 = mul index group, 2\n"
                           "  %2 = add index %1, thread\n"
                           "  %3 = load f32 x0[%2]\n"
                           "  %4 = load f32 x1[%2]\n"
                           "  store f32 t[0], %3\n"
                           "  %5 = loop 0, 3\n"
                           "    %6 = load f32 t[0]\n"
                           "    %7 = add f32 %6, %4\n"
                           "    store f32 t[0], %7\n"
                           "  end\n"
                           "  %8 = load f32 t[0]\n"
                           "  store f32 out0[%2], %8\n"
                           "  %9 = sub f32 %3, %4\n"
                           "  store f32 out1[%2], %9\n"
                           "}\n";

/* The elements of each of 3 groups of 4 threads in reverse: they meet */
static const char reverse[] =
    "kernel reverse (out0: f32[12] out, x0: f32[12], g: f32[4] group) simt 4 positions 3 {\n"
    "  %1 = mul index group, 4\n"
    "  %2 = add index %1, thread\n"
    "  %3 = load f32 x0[%2]\n"
    "  %4 = sub index 3, thread\n"
    "  store f32 g[%4], %3\n"
    "  barrier group\n"
    "  %5 = load f32 g[thread]\n"
    "  store f32 out0[%2], %5\n"
    "}\n";

enum { MOST = 40, ELEMENTS = 12 };

static float memory[2 * MOST][ELEMENTS], wanted[2 * MOST][ELEMENTS];

static void fill(float to[][ELEMENTS], uint32_t n)
{
    for (uint32_t p = 0; p < n; p++)
        for (int i = 0; i < ELEMENTS; i++)
            to[p][i] = (float)((int)p * 100 + i);
}

/* The joined kernel's outputs are those of its parts, one after the other. */
static void runs_as_its_parts(const dc_flat *f, const dc_flat *const *part, uint32_t n)
{
    void *mem[2 * MOST], *own[8];
    uint32_t out = 0, in = dc_flat_outputs(f);
    fill(memory, f->nparam);
    fill(wanted, f->nparam);
    for (uint32_t p = 0; p < f->nparam; p++)
        mem[p] = memory[p];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t nout = dc_flat_outputs(part[i]);
        for (uint32_t p = 0; p < part[i]->nparam; p++)
            own[p] = p < nout ? wanted[out + p] : wanted[in + p - nout];
        CHECK(flat_runs(part[i], own, part[i]->positions));
        out += nout;
        in += part[i]->nparam - nout;
    }
    CHECK_EQ(out, dc_flat_outputs(f));
    CHECK_EQ(in, f->nparam);
    if (!CHECK(flat_runs(f, mem, f->positions)))
        printf("    %s\n", flat_said());
    CHECK(memcmp(memory, wanted, sizeof memory[0] * f->nparam) == 0);
}

static void comes_back(const dc_flat *f)
{
    dc_text once = {0}, again = {0};
    dc_flat *read = NULL;
    dc_flat_print(f, &once);
    const char *at = once.s;
    if (CHECK(dc_flat_parse(&flat_job, &at, &read) == DC_OK && read != NULL)) {
        dc_flat_print(read, &again);
        CHECK_STR(again.s, once.s);
    }
    dc_flat_free(read);
    dc_text_free(&once);
    dc_text_free(&again);
}

static void joins(const dc_flat *const *part, uint32_t n, uint32_t threads, int64_t positions)
{
    dc_flat *f = dc_flat_join(&flat_job, part, n, "joined");
    if (!CHECK(dc_flat_check(&flat_job, f) == DC_OK))
        printf("    %s\n", flat_said());
    CHECK_EQ(f->threads, threads);
    CHECK_EQ(f->positions, positions);
    comes_back(f);
    runs_as_its_parts(f, part, n);
    dc_flat_free(f);
}

static void test_joined(void)
{
    dc_flat *a = flat_of(twice), *b = flat_of(both), *c = flat_of(reverse);
    const dc_flat *many[MOST / 2];
    for (int i = 0; i < MOST / 2; i++)
        many[i] = i % 3 == 0 ? a : i % 3 == 1 ? b : c;
    joins((const dc_flat *[]){a, a}, 2, 4, 6);
    joins((const dc_flat *[]){b, b, b}, 3, 2, 15);
    joins((const dc_flat *[]){a, b, c, a}, 4, 4, 3 + 3 + 3 + 3); /* 5 groups of 2 are 3 of 4 */
    joins(many, MOST / 2, 4, 3 * (MOST / 2));
    a->threads = 3; /* 9 of 12 elements: threads that belong to no group do nothing */
    joins((const dc_flat *[]){c, a}, 2, 4, 6);
    dc_flat_free(a);
    dc_flat_free(b);
    dc_flat_free(c);
}

/* Group memory of another part is that of products of warp groups, too: where it begins is theirs. */
static void test_warpgroups(void)
{
    static const char plain[] = "kernel plain (out0: f32[128] out, s: f16[8] group, g: f16[128] "
                                "group) simt 128 lanes 32 index "
                                "32 positions 1 {\n"
                                "  store f16 g[thread], 1\n"
                                "  barrier group\n"
                                "  store f32 out0[thread], 3\n"
                                "}\n";
    static const char groups[] = "kernel groups (out0: f32[4096] out, acc: f32[32] local, a: "
                                 "f16[4096] group atoms, b: f16[4096] "
                                 "group atoms) simt 128 lanes 32 index 32 positions 1 {\n"
                                 "  %1 = mul index thread, 32\n"
                                 "  store f16x32 a[%1], 1, align 64\n"
                                 "  store f16x32 b[%1], 2, align 64\n"
                                 "  store f32x32 acc[0], 1, align 64\n"
                                 "  barrier async\n"
                                 "  %2 = matrix f16 a[0]\n"
                                 "  %3 = matrix f16 b[0]\n"
                                 "  wgmma f32x32 acc[0], %2, %3 begin end\n"
                                 "  wgmma_wait f32x32 acc[0], 0\n"
                                 "  %4 = load f32x32 acc[0], align 64\n"
                                 "  store f32x32 out0[%1], %4, align 64\n"
                                 "}\n";
    static float first[128], second[4096];
    void *mem[] = {first, second};
    dc_flat *p = flat_of(plain), *q = flat_of(groups);
    dc_flat *f = dc_flat_join(&flat_job, (const dc_flat *[]){p, q}, 2, "joined");
    if (!CHECK(dc_flat_check(&flat_job, f) == DC_OK) || !CHECK(flat_runs(f, mem, f->positions)))
        printf("    %s\n", flat_said());
    for (int i = 0; i < 4096; i++)
        CHECK(second[i] == 33 && first[i % 128] == 3);
    for (uint32_t b = 0; b < f->buf.n; b++)
        CHECK(!f->buf.at[b].atoms || dc_flat_group_offset(f, b) % 1024 == 0);
    comes_back(f);
    dc_flat_free(f);
    dc_flat_free(p);
    dc_flat_free(q);
}

/* ---- families -------------------------------------------------------------------------------- */

/* out0[i] = a number * x0[i] for i < n, in groups of `threads`; with a sum of a local array, whose size is `loops`. */
static dc_flat *scaled(int n, int threads, int factor, int loops)
{
    char text[900];
    snprintf(
        text, sizeof text,
        "kernel scaled (out0: f32[%d] out, x0: f32[%d], t: f32[%d] local) simt %d positions %d {\n"
        "  %%1 = mul index group, %d\n"
        "  %%2 = add index %%1, thread\n"
        "  %%3 = lt bool %%2, %d\n"
        "  if %%3\n"
        "    %%4 = load f32 x0[%%2]\n"
        "    %%5 = mul f32 %%4, %d\n"
        "    store f32 t[%d], %%5\n"
        "    %%6 = loop 0, %d\n"
        "      %%7 = load f32 t[%d]\n"
        "      store f32 out0[%%2], %%7\n"
        "    end\n"
        "  end\n"
        "}\n",
        n, n, loops, threads, (n + threads - 1) / threads, threads, n, factor, loops - 1, loops,
        loops - 1);
    return flat_of(text);
}

static uint32_t bodies_of(const dc_flat *f)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->order.n; k++)
        n += dc_finst_at(f, f->order.at[k])->op == DC_K_ROWS;
    return n;
}

/* Alike parts are one body: numbers and sizes differ, not what a local array is. */
static void test_family(void)
{
    dc_flat *a = scaled(12, 4, 2, 3), *b = scaled(7, 3, 5, 3), *c = scaled(12, 4, 2, 2);
    dc_flat *d = flat_of(twice), *e = flat_of(reverse);
    dc_flat *f = dc_flat_join(&flat_job, (const dc_flat *[]){a, b, a, c, d, e, e}, 7, "joined");
    CHECK_EQ(bodies_of(f), 4);
    CHECK_EQ(f->table.at[0].rows, 3);
    CHECK_EQ(f->table.at[1].columns, 0); /* one row: all is known */
    runs_as_its_parts(f, (const dc_flat *[]){a, b, a, c, d, e, e}, 7);
    comes_back(f);
    dc_flat_free(f);
    f = dc_flat_join(&flat_job, (const dc_flat *[]){e, e}, 2, "joined");
    CHECK_EQ(f->buf.at[2].scope, DC_SCOPE_GROUP);
    CHECK_EQ(f->buf.n, 3); /* group memory once */
    dc_flat_free(f);
    for (dc_flat **x = (dc_flat *[]){a, b, c, d, e, NULL}; *x != NULL; x++)
        dc_flat_free(*x);
}

/* Random sizes, groups and numbers, neighbours or not: each part is done, all by at most as many bodies as there are loops. */
static void test_random(uint64_t seed)
{
    rng r = {seed};
    for (int trial = 0; trial < 300; trial++) {
        dc_flat *part[MOST];
        const int n = 2 + rng_below(&r, MOST - 2), kinds = 1 + rng_below(&r, 3);
        int changes = 1, last = 0;
        for (int i = 0; i < n; i++) {
            const int loops = 1 + rng_below(&r, kinds);
            part[i] = scaled(1 + rng_below(&r, ELEMENTS), 1 + rng_below(&r, 9), rng_below(&r, 100),
                             loops);
            changes += i > 0 && loops != last;
            last = loops;
        }
        dc_flat *f = dc_flat_join(&flat_job, (const dc_flat *const *)part, (uint32_t)n, "joined");
        if (!CHECK(dc_flat_check(&flat_job, f) == DC_OK))
            printf("    seed %llu, trial %d: %s\n", (unsigned long long)seed, trial, flat_said());
        CHECK_EQ(bodies_of(f), (uint32_t)changes);
        runs_as_its_parts(f, (const dc_flat *const *)part, (uint32_t)n);
        comes_back(f);
        dc_flat_free(f);
        for (int i = 0; i < n; i++)
            dc_flat_free(part[i]);
    }
}

static void test_refused(void)
{
    dc_flat *a = flat_of(twice), *c = flat_of(reverse);
    CHECK(dc_flat_may_join(a, c) && dc_flat_may_join(c, a));
    CHECK(!dc_flat_threads_meet(a) && dc_flat_threads_meet(c));
    a->threads = 8; /* the threads of c would not all be there */
    CHECK(!dc_flat_may_join(a, c) && !dc_flat_may_join(c, a));
    a->threads = 2;
    CHECK(dc_flat_may_join(a, c) && dc_flat_may_join(c, a));
    a->strict = true;
    CHECK(!dc_flat_may_join(a, c));
    a->strict = false;
    a->index_bits = 32;
    CHECK(!dc_flat_may_join(a, c));
    a->index_bits = 64;
    a->positions = 0;
    CHECK(!dc_flat_may_join(a, c) && !dc_flat_may_join(c, a));
    a->positions = 3;
    a->simt = false;
    CHECK(!dc_flat_may_join(a, c));
    dc_flat_free(a);
    dc_flat_free(c);
}

int main(void)
{
    flat_open();
    test_joined();
    test_warpgroups();
    test_family();
    test_random(20261123);
    test_refused();
    flat_close();
    return t_done();
}
