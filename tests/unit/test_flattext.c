/*
 * The text of the flat form: what is printed is read back to the same text, for kernels that are
 * written here and for those of random graphs; damaged texts are refused with a line or give what the
 * verifier can judge; and the rules of the verifier, one by one.
 *
 *   test_flattext [seed [graphs]]
 */
#include "core/ir/simplify.h"
#include "jit/flat/flatten.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/rewrite/rules.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/sim_target.h"

#include <stdlib.h>

#include "tests/unit/flat_run.h"
#include "tests/unit/graphgen.h"

static long kernels;

/* Printed and read again ---------------------------------------------------------------------- */

static void comes_back(const char *text)
{
    const char *at = text;
    dc_flat *f = NULL;
    dc_text again = {0};
    if (CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK) && CHECK(f != NULL)) {
        dc_flat_print(f, &again);
        CHECK_STR(again.s, text);
    } else {
        printf("    %s\n%s\n", flat_said(), text);
    }
    dc_text_free(&again);
    dc_flat_free(f);
}

/* Everything that the form has, types that do not fit each other included. */
static const char *const texts[] = {
    "kernel empty () {\n}\n",
    "kernel E_100 (out0: f32[100] out nontemporal, x0: f32[100] prefetch 2, x1: u8[7] inout) "
    "strict "
    "positions 7 {\n"
    "  %1 = loop begin, end\n"
    "    %2 = mul index %1, 16\n"
    "    %3 = load f32x16 x0[%2], align 64\n"
    "    %4 = add f32x16 %3, 0.1\n"
    "    store f32x16 out0[%2], %4, align 64\n"
    "    %5 = add index %2, 16\n"
    "    %6 = load f32x4 x0[%2], prefetch %5, align 16\n"
    "    %7 = load f32x4 x0[0], prefetch 80\n"
    "    %8 = scale f32x16 %3, %4\n"
    "  end\n"
    "}\n",
    "kernel memory (x0: bool[3] param 1, out0: i32[9] out param 0, acc: f32[4] local, acc@3: "
    "u32[8] "
    "scratch 64, g: f32[2] local inout, t: u8[1] thread) lanes 4 index 32 scratch 128 {\n"
    "  %1 = lanes i32x4 -3\n"
    "  %2 = lt boolx4 %1, 5\n"
    "  %3 = load i32x4 out0[2 step -1], mask %2\n"
    "  %4 = gather i32x4 out0[4], mask 1\n"
    "  %5 = gather i32x4 out0[u32x4 4]\n"
    "  scatter i32x4 out0[0], 7, mask %2\n"
    "  store u32 acc@3[4294967295], 4294967295, align 1\n"
    "  store f32 acc[0], 0x7fc00001, align 0\n"
    "  %6 = any bool %2\n"
    "  if %6\n"
    "    if 1\n"
    "    end\n"
    "  end\n"
    "}\n",
    "kernel types () simt 64 lanes 32 {\n"
    "  %1 = lt bool i32 -5, i32 7\n"
    "  %2 = lt bool u8 200, thread\n"
    "  %3 = lt bool 7, thread\n"
    "  %4 = convert i32 f32 -0.5\n"
    "  %5 = bitcast f32 u32 4\n"
    "  %6 = splat f32x8 1\n"
    "  %7 = select f32x8 1, %6, -0\n"
    "  %8 = any bool boolx8 0\n"
    "  %9 = shuffle f32 %5, 31\n"
    "  %10 = shuffle f32 inf, 0\n"
    "  %11 = fma f32 -inf, 1.4013e-45, 3.40282347e+38\n"
    "  %12 = sub index group, thread\n"
    "  %13 = loop %12, -1\n"
    "    barrier group\n"
    "    barrier lanes\n"
    "  end\n"
    "}\n",
    "kernel wrong () {\n" /* what no verifier lets pass comes back too */
    "  %1 = add f32x4 i32 3, f32 0\n"
    "  if f32 0\n"
    "  end\n"
    "end\n"
    "}\n",
};

static void test_texts(void)
{
    for (size_t i = 0; i < DC_COUNTOF(texts); i++)
        comes_back(texts[i]);
}

/* All floats of interest, and pseudo-random ones: the bits come back. */
static void test_floats(rng *r)
{
    static const uint32_t special[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                       0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffc00000,
                                       0x7fffffff, 0x4b800001, 0x3dcccccd, 0x00000003, 0x2edbe6ff};
    int decimal = 0;
    for (int n = 0; n < 4000; n++) {
        const uint32_t bits = n < (int)DC_COUNTOF(special) ? special[n] : (uint32_t)rng_next(r);
        dc_flat *f = dc_xalloc(sizeof *f);
        dc_text text = {0};
        const char *at;
        f->index_bits = 64;
        dc_fbuild *b = dc_fb_new(f);
        strcpy(f->name, "floats");
        dc_fb_op1(b, DC_K_NEG, dc_fb_const(b, DC_F32, 1, bits));
        dc_flat_print(f, &text);
        dc_flat_free(f);
        decimal += strstr(text.s, " 0x") == NULL;
        at = text.s;
        if (CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK)) {
            if (!CHECK_EQ(f->inst.at[1].imm, bits))
                printf("    %s", text.s);
            dc_flat_free(f);
        }
        dc_text_free(&text);
    }
    CHECK(decimal > 3000);
}

/* Several kernels in one text, with comments; then nothing. */
static void test_several(void)
{
    const char *at = "# two\nkernel a () {\n}  # and\n\nkernel b () {\n}\n# no more";
    dc_flat *f;
    CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK);
    CHECK_STR(f->name, "a");
    dc_flat_free(f);
    CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK);
    CHECK_STR(f->name, "b");
    dc_flat_free(f);
    CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK);
    CHECK(f == NULL);
    CHECK_STR(at, "");
}

/* Kernels of random graphs -------------------------------------------------------------------- */

static void damage(rng *r, const char *text, size_t n);

static void try_kernel(dc_kernel *k, const dc_target *t, uint32_t skip, rng *r)
{
    dc_flat *f;
    dc_text text = {0};
    const dc_status s = dc_flatten_for(&flat_job, k, t, skip, &f);
    if (!CHECK(s == DC_OK)) {
        printf("    %s: %s\n", t->name, flat_said());
        return;
    }
    dc_flat_print(f, &text);
    comes_back(text.s);
    if (kernels++ % 8 == 0)
        damage(r, text.s, text.n);
    dc_text_free(&text);
    dc_flat_free(f);
}

static void try_graph(const dc_func *f, uint64_t seed, rng *r)
{
    static const char *const names[] = {"cpu", "sim:cpu", "sim:cuda", "sim:opencl"};
    const dc_target *t = dc_sim_target_named(names[seed % DC_COUNTOF(names)]);
    dc_groups gs;
    if (!CHECK(dc_fuse(&flat_job, &flat_job.scratch, f, seed % 3 == 0 ? 0 : 2, &gs) == DC_OK))
        return;
    for (uint32_t g = 0; g < gs.n; g++) {
        dc_kernel *k;
        if (dc_node_count(dc_node_at(f, gs.at[g].out[0])) == 0 ||
            !CHECK(dc_lower(&flat_job, &gs, g, &k) == DC_OK))
            continue;
        if (CHECK(dc_schedule(&flat_job, k, t, 2) == DC_OK))
            try_kernel(k, t, (uint32_t)(seed % 4), r);
        dc_kernel_free(k);
    }
}

static void test_graphs(uint64_t seed, uint64_t graphs, rng *r)
{
    for (uint64_t g = 0; g < graphs; g++) {
        const dc_mark mark = dc_arena_mark(&flat_job.scratch);
        dc_module *m = dc_module_new();
        const dc_func *f = dc_simplify(graphgen_func(m, seed + g, 4 + (int)(g % 20)));
        try_graph(dc_rules_apply(&flat_job.scratch, f, NULL), seed + g, r);
        dc_module_free(m);
        dc_arena_rewind(&flat_job.scratch, mark);
    }
    CHECK(kernels > (long)graphs);
    printf("%ld kernels\n", kernels);
}

/* Damage ------------------------------------------------------------------------------------ */

/* A record with a line, or a kernel that is judged and, where it is legal, comes back as it is. */
static void survives(const char *text)
{
    const char *at = text;
    dc_flat *f;
    dc_text once = {0};
    const dc_status s = dc_flat_parse(&flat_job, &at, &f);
    if (s != DC_OK) {
        CHECK(f == NULL && flat_job.err.id == DC_ERR_PARSE && flat_job.err.fact.num[0] > 0);
    } else if (f != NULL) {
        const dc_status checked = dc_flat_check(&flat_job, f);
        CHECK(checked == DC_OK || checked == DC_E_BUG);
        dc_flat_print(f, &once);
        flat_job.err = (dc_err){0};
        comes_back(once.s);
    }
    flat_job.err = (dc_err){0};
    dc_text_free(&once);
    dc_flat_free(f);
}

static void mutate(rng *r, char *s, size_t *n)
{
    static const char *const words[] = {"%1",
                                        "%9999",
                                        "index",
                                        "f32x16",
                                        "boolx3",
                                        "end\n",
                                        "loop ",
                                        "if 1\n",
                                        "4294967296",
                                        "-1",
                                        "0x",
                                        "1e999",
                                        "[",
                                        "]",
                                        ",",
                                        " = ",
                                        "\n",
                                        "local",
                                        "group",
                                        "simt 4",
                                        "barrier group\n",
                                        "shuffle f32 0, 0\n",
                                        "}",
                                        "kernel ",
                                        "\x80",
                                        "x65536"};
    const size_t at = (size_t)rng_below(r, (int)*n + 1);
    const char *w = words[rng_below(r, (int)DC_COUNTOF(words))];
    const size_t k = strlen(w);
    size_t cut;
    switch (rng_below(r, 4)) {
    case 0: /* a byte */
        if (at < *n)
            s[at] = (char)(1 + rng_below(r, 255));
        break;
    case 1: /* a word more */
        memmove(s + at + k, s + at, *n - at + 1);
        memcpy(s + at, w, k);
        *n += k;
        break;
    case 2: /* some less */
        cut = (size_t)rng_below(r, 12);
        cut = cut < *n - at ? cut : *n - at;
        memmove(s + at, s + at + cut, *n - at - cut + 1);
        *n -= cut;
        break;
    default: /* a digit for a digit */
        for (size_t i = at; i < *n; i++)
            if (s[i] >= '0' && s[i] <= '9') {
                s[i] = (char)('0' + rng_below(r, 10));
                break;
            }
    }
}

static void damage(rng *r, const char *text, size_t n)
{
    enum { ROUNDS = 40, ROOM = 400 };
    char *s = malloc(n + ROOM);
    for (int i = 0; i < ROUNDS; i++) {
        size_t now = n;
        memcpy(s, text, n + 1);
        for (int k = 1 + rng_below(r, 6); k > 0; k--)
            mutate(r, s, &now);
        survives(s);
        memcpy(s, text, n + 1);
        s[rng_below(r, (int)n + 1)] = '\0';
        survives(s);
    }
    free(s);
}

static void test_damage(rng *r)
{
    for (size_t i = 0; i < DC_COUNTOF(texts); i++)
        for (int n = 0; n < 25; n++)
            damage(r, texts[i], strlen(texts[i]));
}

/* Refusals ---------------------------------------------------------------------------------- */

static void test_parser_refusals(void)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"kernel", "line 1: a name expected, not the end"},
        {"kernel 5 () {}", "a name expected, not '5'"},
        {"nest a () {}", "'kernel' expected, not 'nest'"},
        {"kernel a (x0: index[4]) {}", "buffer 'x0' has no dtype"},
        {"kernel a (x0: f32[-4]) {}", "-4 is not in 0.."},
        {"kernel a () index 16 {}", "32 or 64 bits"},
        {"kernel a () {\n\n  %1 = plus f32 1, 2\n}", "line 3: an instruction expected, not 'plus'"},
        {"kernel a () {\n  %2 = add index 1, %1\n}", "%1 does not stand before"},
        {"kernel a () {\n  %1 = add index 1, 2\n  %1 = add index 1, 2\n}", "%1 is out of order"},
        {"kernel a () {\n  add index 1, 2\n}", "line 2: add without a number"},
        {"kernel a () {\n  %1 = end\n}", "end has no value"},
        {"kernel a () {\n  %1 = add index 1\n}", "',' expected"},
        {"kernel a () {\n  %1 = lt bool 1, 2\n}", "the type of '1' is not known here"},
        {"kernel a () {\n  %1 = add u8 1, 256\n}", "256 does not fit u8"},
        {"kernel a () {\n  %1 = add i32 1, 2.5\n}", "'2.5' is no integer"},
        {"kernel a () {\n  %1 = add f32 1, 1e39\n}", "'1e39' is no f32"},
        {"kernel a () {\n  %1 = load f32 x0[0]\n}", "no buffer 'x0'"},
        {"kernel a () {\n  barrier all\n}", "'group' or 'lanes' expected, not 'all'"},
        {"kernel a () {\n  %1 = splat f32x0 1\n}", "a type expected, not 'f32x0'"},
        {"kernel a_name_that_is_longer_than_any_kernel_of_this_form_can_ever_be_named () {}",
         "more than 63 letters"},
        {"kernel a () {\n \x01 }", "not byte 1"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        const char *at = cases[i].text;
        dc_flat *f;
        CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_E_VALUE);
        CHECK(f == NULL);
        flat_says(cases[i].reason);
    }
}

/* Bodies inside the usual heading, and headings; with the reason that the verifier gives. */
static void test_verifier(void)
{
#define WORKERS "kernel w (out0: f32[64] out, x0: f32[64], f: i32[8] local) {\n"
#define THREADS "kernel t (out0: f32[64] out, x0: f32[64], g: f32[8] group) simt 64 lanes 32 {\n"
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"kernel a () simt 0 {\n}\n", "no such number of threads"},
        {"kernel a () simt 100000 {\n}\n", "no such number of threads"},
        {"kernel a (g: f32[4] group) {\n}\n", "workers have no group to share"},
        {"kernel a (g: f32[4] thread) simt 4 {\n}\n", "a scope that the flat form has not"},
        {"kernel a (g: f32[4] scratch 0) simt 4 scratch 64 {\n}\n", "have no scratch memory"},
        {"kernel a (g: f32[4] scratch 8) scratch 64 {\n}\n", "is not aligned"},
        {"kernel a (g: f32[17] scratch 0) scratch 64 {\n}\n", "outside the scratch memory"},
        {"kernel a (x0: f32[4] param 1, x1: f32[4] param 1) {\n}\n", "the same parameter"},
        {"kernel a (x0: f32[4] param 1) {\n}\n", "a parameter has no number"},
        {"kernel a (x0: f32[9223372036854775807]) {\n}\n", "has no size"},
        {WORKERS "  %1 = add index thread, 1\n}\n", "workers have no group and thread"},
        {THREADS "  %1 = add index begin, 1\n}\n", "groups have no begin and end"},
        {WORKERS "  barrier group\n}\n", "workers do not meet"},
        {WORKERS "  %1 = shuffle f32 0, 0\n}\n", "workers do not meet"},
        {"kernel a () simt 4 {\n  barrier lanes\n}\n", "the group has no lanes"},
        {THREADS "  %1 = shuffle f32 0, i32 0\n}\n", "the lane is no u32"},
        {THREADS "  %1 = shuffle f32x4 0, u32x4 0\n}\n", "differ in type"},
        {THREADS "  %1 = lt bool thread, 3\n  if %1\n    barrier group\n  end\n}\n",
         "barrier at 4: not all threads of the group come by"},
        {THREADS "  %1 = loop 0, thread\n    barrier lanes\n  end\n}\n", "not all threads"},
        {THREADS "  %1 = loop 0, thread\n    %2 = loop 0, 4\n      %3 = shuffle f32 0, 1\n"
                 "    end\n  end\n}\n",
         "not all threads"},
        {THREADS
         "  %1 = load f32 x0[0]\n  %2 = lt bool %1, 3\n  if %2\n    barrier group\n  end\n}\n",
         "not all threads"},
        {THREADS "  %1 = shuffle f32 0, 1\n  %2 = lt bool %1, 3\n  if %2\n    barrier group\n"
                 "  end\n}\n",
         "not all threads"},
        {WORKERS "  store f32 x0[0], 1\n}\n", "an input is stored to"},
        {WORKERS "  store i32 out0[0], 1\n}\n", "no buffer of that type"},
        {WORKERS "  %1 = load f32 x0[u32 0]\n}\n", "the index is none"},
        {WORKERS "  %1 = load f32x4 x0[0 step 2], mask 1\n}\n", "a mask and a step"},
        {WORKERS "  %1 = load f32x4 x0[0], mask boolx8 1\n}\n", "the mask is none"},
        {WORKERS "  store f32 out0[0], 1.0, mask 1\n}\n", "the mask is none"},
        {WORKERS "  %1 = load f32 x0[0], align 12\n}\n", "no power of two"},
        {WORKERS "  %1 = gather f32 x0[0]\n}\n", "one lane is not spread"},
        {WORKERS "  store f32 out0[0], i32 1\n}\n", "the value stored is of another type"},
        {WORKERS "  %1 = rem f32 1, 2\n}\n", "an operand of a type without it"},
        {WORKERS "  %1 = add f32 1, i32 2\n}\n", "operand and result differ in type"},
        {WORKERS "  %1 = lt bool begin, i32 2\n}\n", "operands differ in type"},
        {WORKERS "  %1 = lt u8 begin, 2\n}\n", "operands differ in type"},
        {WORKERS "  %1 = select f32 i32 1, 1, 1\n}\n", "operands differ in type"},
        {WORKERS "  %1 = splat f32x4 f32x4 1\n}\n", "splat of what is no scalar"},
        {WORKERS "  %1 = any bool i32 1\n}\n", "any of what is not bool"},
        {WORKERS "  %1 = bitcast u8 i32 1\n}\n", "widths differ"},
        {WORKERS "  %1 = convert u8x4 i32 1\n}\n", "lanes differ"},
        {WORKERS "  %1 = lanes f32x4 1\n}\n", "lanes of what is no integer"},
        {WORKERS "  %1 = add f32x2000 1, 1\n}\n", "no such number of lanes"},
        {WORKERS "  %1 = loop 4, 4\n  end\n}\n", "a loop that never runs"},
        {WORKERS "  %1 = loop 0, u32 4\n  end\n}\n", "the bounds of a loop are no index"},
        {WORKERS "  if i32 1\n  end\n}\n", "the condition is no bool"},
        {WORKERS "  if 1\n}\n", "a scope stays open"},
        {WORKERS "  end\n}\n", "end without a beginning"},
        {WORKERS "  if 1\n    %1 = add index begin, 1\n  end\n  %2 = add index %1, 1\n}\n",
         "a scope that is closed"},
    };
    for (size_t i = 0; i < DC_COUNTOF(cases); i++) {
        const char *at = cases[i].text;
        dc_flat *f;
        if (!CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK)) {
            printf("    %s: %s\n", flat_said(), cases[i].text);
            continue;
        }
        CHECK(dc_flat_check(&flat_job, f) == DC_E_BUG);
        if (!flat_says(cases[i].reason))
            printf("%s", cases[i].text);
        dc_flat_free(f);
    }
}

/* Barriers and shuffles where all threads come by. */
static void test_uniform(void)
{
    dc_flat *f = flat_of(THREADS "  %1 = lt bool group, 3\n"
                                 "  if %1\n"
                                 "    %2 = loop 0, group\n"
                                 "      barrier group\n"
                                 "      %3 = convert f32 %2\n"
                                 "      %4 = shuffle f32 %3, 1\n"
                                 "    end\n"
                                 "  end\n"
                                 "  %5 = loop 0, thread\n"
                                 "    store f32 out0[thread], 0\n"
                                 "  end\n"
                                 "  barrier lanes\n"
                                 "}\n");
    dc_flat_free(f);
}

/* Passes ------------------------------------------------------------------------------------ */

/* Neither moves nor drops a barrier, nor moves a shuffle; a shuffle that is not read may go. */
static void test_passes(void)
{
    dc_flat *f = flat_of(THREADS "  %1 = loop 0, 4\n"
                                 "    %2 = load f32 x0[thread]\n"
                                 "    store f32 g[0], %2\n"
                                 "    barrier group\n"
                                 "    %3 = load f32 g[0]\n"
                                 "    %4 = shuffle f32 1, 1\n"
                                 "    %5 = shuffle f32 1, 1\n"
                                 "    %6 = shuffle f32 1, 1\n"
                                 "    %7 = add f32 %4, %5\n"
                                 "    barrier group\n"
                                 "    %8 = add f32 %3, %7\n"
                                 "    store f32 out0[thread], %8\n"
                                 "  end\n"
                                 "}\n");
    static const char after[] = THREADS "  %1 = load f32 x0[thread]\n"
                                        "  %2 = loop 0, 4\n"
                                        "    store f32 g[0], %1\n"
                                        "    barrier group\n"
                                        "    %3 = load f32 g[0]\n"
                                        "    %4 = shuffle f32 1, 1\n"
                                        "    %5 = shuffle f32 1, 1\n"
                                        "    barrier group\n"
                                        "    %6 = add f32 %4, %5\n"
                                        "    %7 = add f32 %3, %6\n"
                                        "    store f32 out0[thread], %7\n"
                                        "  end\n"
                                        "}\n";
    dc_text text = {0};
    if (f == NULL || !CHECK(dc_flat_optimize(&flat_job, f, 0, true) == DC_OK))
        return;
    dc_flat_print(f, &text);
    CHECK_STR(text.s, after);
    dc_text_free(&text);
    dc_flat_free(f);
}

/* Built, not read: what the builder makes of barriers and shuffles. */
static void test_builder(void)
{
    dc_flat *f = dc_xalloc(sizeof *f);
    dc_text text = {0};
    f->index_bits = 64;
    f->simt = true;
    f->threads = 8;
    f->lanes = 4;
    strcpy(f->name, "built");
    dc_fbuild *b = dc_fb_new(f);
    const dc_fv x = dc_fb_convert(b, dc_fb_arg(b, DC_KARG_THREAD), DC_F32);
    const dc_fv lane = dc_fb_const(b, DC_U32, 1, 2);
    CHECK(dc_fb_shuffle(b, x, lane) != dc_fb_shuffle(b, x, lane));
    dc_fb_barrier(b, DC_BARRIER_LANES);
    dc_fb_barrier(b, DC_BARRIER_GROUP);
    CHECK(dc_flat_check(&flat_job, f) == DC_OK);
    dc_flat_print(f, &text);
    CHECK_STR(text.s, "kernel built () simt 8 lanes 4 {\n"
                      "  %1 = convert f32 thread\n"
                      "  %2 = shuffle f32 %1, 2\n"
                      "  %3 = shuffle f32 %1, 2\n"
                      "  barrier lanes\n"
                      "  barrier group\n"
                      "}\n");
    dc_text_free(&text);
    dc_flat_free(f);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 20261121);
    rng r = {seed};
    flat_open();
    test_texts();
    test_floats(&r);
    test_several();
    test_parser_refusals();
    test_verifier();
    test_uniform();
    test_passes();
    test_builder();
    test_damage(&r);
    test_graphs(seed, argc > 2 ? strtoull(argv[2], NULL, 0) : 120, &r);
    flat_close();
    return t_done();
}
