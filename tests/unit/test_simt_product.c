/*
 * Rules for contractions of groups of threads (jit/schedule/schedule_simt_product.c): products of every layout, with
 * odd extents, batches, several axes on a side, several element types, something before and after the sum, get
 * their moves for targets with few and with many processors. What comes out
 *   - has the results of the naive kernel, bit for bit, in the interpreter of the flat form, which finds no race;
 *   - copies stages of 16-bit floats ahead, where elements are aligned to 4 bytes;
 *   - is tiled, both operands in shared memory, where both sides are long enough;
 *   - exchanges registers, without shared memory, where one side is short and sums are long.
 * Whatever a search asks the rules for instead, results are the same.
 *
 *   test_simt_product [SEED]
 */
#include "tests/t.h"

#include "jit/flat/flatten.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_knobs.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/rng.h"

enum { MOST_PARAMS = 5, LAYOUTS = 4, HEADS = 4, HEAD = 32 };

static dc_opts opts;
static dc_log kernel_log;
static dc_job job;
static rng seeds;

typedef struct shape {
    int64_t b, m, n, k; /* b 0: no batch */
} shape;

typedef struct kind {
    const char *in, *sum, *out; /* element types */
    const char *left, *right;   /* of an element of an operand at %s */
    const char *after;          /* of acc[0] and x2[n] */
    const char *word;           /* of the kernel */
} kind;

static const kind plain = {"f32", "f32", "f32", "%s", "%s", "acc[0]", ""};
static const kind biased = {"f32", "f32", "f32", "%s", "%s", "maximum(add(acc[0], x2[n]), 0:f32)",
                            ""};
static const kind halves = {
    "f16", "f32", "f16", "cast.f32(%s)", "cast.f32(%s)", "cast.f16(add(acc[0], cast.f32(x2[n])))",
    ""};
static const kind bfloats = {
    "bf16", "f32", "bf16", "cast.f32(%s)", "cast.f32(%s)", "cast.bf16(acc[0])", ""};
static const kind whole = {"i32", "i32", "i32", "%s", "%s", "add(acc[0], x2[n])", ""};
static const kind bytes = {"i8", "i32", "i32", "cast.i32(%s)", "cast.i32(%s)", "acc[0]", ""};
static const kind doubles = {"f64", "f64", "f64", "%s", "%s", "acc[0]", ""};
static const kind scaled = {"f32",    "f32", "f32", "mul(%s, x3[0])", "maximum(%s, 0:f32)",
                            "acc[0]", ""};
static const kind rounded = {"f32", "f32", "f32", "%s", "%s", "add(acc[0], x2[n])", " tf32"};

/* A product as lowering writes it; layout & 1: the left operand is transposed; & 2: the right one is;
 * & HEADS: rows of the left one are in parts of HEAD elements, all rows of a part together. */
static void write_kernel(dc_text *to, const shape *s, int layout, const kind *v)
{
    const long long b = s->b > 0 ? s->b : 1, m = s->m, n = s->n, k = s->k;
    const char *const in = s->b > 0 ? "  " : "";
    char left[100], right[100], batch[2][40] = {"", ""};
    if (s->b > 0) {
        snprintf(batch[0], sizeof batch[0], "%lld*b + ", m * k);
        snprintf(batch[1], sizeof batch[1], "%lld*b + ", k * n);
    }
    snprintf(left, sizeof left, "x0[%s%lld*m + %lld*k]", batch[0], layout & 1 ? 1 : k,
             layout & 1 ? m : 1);
    if (layout & HEADS)
        snprintf(left, sizeof left, "x0[%s%lld*(k/%d) + %d*m + (k%%%d)]", batch[0], m * HEAD, HEAD,
                 HEAD, HEAD);
    snprintf(right, sizeof right, "x1[%s%lld*k + %lld*n]", batch[1], layout & 2 ? 1 : n,
             layout & 2 ? k : 1);
    dc_text_printf(to, "kernel product(out0: %s[%lld] out, x0: %s[%lld], x1: %s[%lld], ", v->out,
                   b * m * n, v->in, b * m * k, v->in, b * k * n);
    dc_text_printf(to, "x2: %s[%lld], x3: %s[1])%s {\n  local acc: %s[1]\n", v->out, n, v->in,
                   v->word, v->sum);
    if (s->b > 0)
        dc_text_printf(to, "  for b in %lld\n", b);
    dc_text_printf(to, "  %sfor m in %lld\n    %sfor n in %lld\n", in, m, in, n);
    dc_text_printf(to, "      %sacc[0] = 0:%s\n      %sfor k in %lld reduce\n", in, v->sum, in, k);
    dc_text_printf(to, "        %sacc[0] add= mul(", in);
    dc_text_printf(to, v->left, left);
    dc_text_puts(to, ", ");
    dc_text_printf(to, v->right, right);
    dc_text_printf(to, ")\n      %sout0[%s%lld*m + n] = %s\n}\n", in,
                   s->b > 0 ? dc_arena_printf(&job.scratch, "%lld*b + ", m * n) : "", n, v->after);
}

/* Running -------------------------------------------------------------------------------------- */

static const dc_buffer *param_of(const dc_kernel *k, uint32_t p)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM && k->buf.at[b].param == p)
            return &k->buf.at[b];
    DC_BUG("no parameter %u", p);
}

static size_t bytes_of(const dc_kernel *k, uint32_t p)
{
    const dc_buffer *b = param_of(k, p);
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

/* Small whole numbers: sums of their products are exact in every order. */
static char **make_memory(const dc_kernel *k, uint64_t seed)
{
    rng r = {seed};
    char **mem = calloc(MOST_PARAMS, sizeof *mem);
    for (uint32_t p = 0; p < k->nparam; p++) {
        const dc_dtype t = (dc_dtype)param_of(k, p)->dtype;
        mem[p] = calloc(bytes_of(k, p) + 1, 1);
        for (int64_t i = 0; i < param_of(k, p)->count; i++)
            dc_bits_store(t, mem[p] + (size_t)i * dc_dtype_size(t),
                          dc_bits_of(t, rng_below(&r, 5) - 2));
    }
    return mem;
}

static void free_memory(char **mem)
{
    for (int p = 0; p < MOST_PARAMS; p++)
        free(mem[p]);
    free(mem);
}

static bool fail(const char *what, const dc_target *t, const char *text)
{
    char why[700];
    dc_err_render(&job.err, 0, why, sizeof why);
    job.err = (dc_err){0};
    printf("%s for %s: %s\n%s\n", what, t->name, why, text);
    return false;
}

/* Group memory that the flat form has: a buffer for each operand that is staged. */
static int staged(const dc_flat *f)
{
    int n = 0;
    for (uint32_t b = 0; b < f->buf.n; b++)
        n += f->buf.at[b].scope == DC_SCOPE_GROUP;
    return n;
}

/* The kernel by the rules and knobs for the target beside *want; what it is like goes to *made. */
static bool run_rules(const char *text, const dc_target *t, uint64_t seed, char **want,
                      const dc_knobs *knobs, dc_knob_space *space, dc_flat **made)
{
    dc_kernel *k = NULL;
    bool same = true;
    if (dc_nest_parse(&job, text, &k) != DC_OK ||
        dc_schedule_search(&job, k, t, knobs, space) != DC_OK || dc_nest_check(&job, k) != DC_OK ||
        dc_flatten_for(&job, k, t, 0, made) != DC_OK || dc_flat_check(&job, *made) != DC_OK)
        return fail("building", t, text);
    char **got = make_memory(k, seed);
    if (dc_flat_run(&job, *made, (void **)got, 0, (*made)->positions) != DC_OK)
        return fail("running", t, text);
    for (uint32_t p = 0; p < k->nparam && same; p++)
        same = memcmp(want[p], got[p], bytes_of(k, p)) == 0;
    free_memory(got);
    dc_kernel_free(k);
    return same || fail("results differ", t, text);
}

/* NULL after a failed check. */
static char **run_naive(const char *text, uint64_t seed)
{
    dc_kernel *k = NULL;
    dc_flat *f = NULL;
    char **mem = NULL;
    if (CHECK(dc_nest_parse(&job, text, &k) == DC_OK && dc_flatten(&job, k, &f) == DC_OK)) {
        mem = make_memory(k, seed);
        CHECK(dc_flat_run(&job, f, (void **)mem, 0, 1) == DC_OK);
    } else {
        fail("naive", dc_sim_target_named("cpu"), text);
    }
    dc_flat_free(f);
    dc_kernel_free(k);
    return mem;
}

static bool uses(const dc_flat *f, dc_kop op)
{
    for (uint32_t i = 0; i < f->order.n; i++)
        if (f->inst.at[f->order.at[i]].op == op)
            return true;
    return false;
}

/* The flat form as it is read from its text prints the same. */
static bool reads_back(const dc_flat *f)
{
    dc_text a = {0}, b = {0};
    dc_flat *back = NULL;
    dc_flat_print(f, &a);
    const char *text = a.s;
    bool same = dc_flat_parse(&job, &text, &back) == DC_OK && dc_flat_check(&job, back) == DC_OK;
    if (same) {
        dc_flat_print(back, &b);
        same = strcmp(a.s, b.s) == 0;
    }
    dc_flat_free(back);
    dc_text_free(&a);
    dc_text_free(&b);
    return same;
}

/* Two stages at least, and 4 bytes of each operand together; operands that are not computed, casts of halves aside. */
static bool runs_ahead(const shape *s, int layout, const char *text)
{
    const bool halves_of = strstr(text, "x0: f16") != NULL || strstr(text, "x0: bf16") != NULL;
    const int64_t along[] = {layout & 1 ? s->m : s->k, layout & 2 ? s->k : s->n};
    if (strstr(text, "x0: i8") != NULL) /* bytes are copied together along k alone */
        return s->k > 64 && layout == 2 && s->k % 4 == 0;
    if (!halves_of)
        return s->k > 16 && strstr(text, "mul(mul") == NULL;
    return s->k > 32 && along[0] % 2 == 0 && along[1] % 2 == 0;
}

/* Any values of some of the knobs that the rules offer. */
static void try_knobs(const char *text, const dc_target *t, const dc_knob_space *space,
                      uint64_t seed, char **want)
{
    rng r = {seed};
    dc_knobs knobs = {{0}};
    dc_knob_space made;
    dc_flat *f = NULL;
    for (int n = 0; n < DC_KNOB__COUNT; n++)
        if (space->offer[n].n > 0 && rng_below(&r, 2) == 0)
            knobs.value[n] = space->offer[n].value[rng_below(&r, space->offer[n].n)];
    if (!CHECK(run_rules(text, t, seed, want, &knobs, &made, &f) && made.complete))
        for (int n = 0; n < DC_KNOB__COUNT; n++)
            if (knobs.value[n] != 0)
                printf("  %s %d\n", dc_knob_name((dc_knob)n), knobs.value[n]);
    dc_flat_free(f);
}

/* 16 bytes of each operand beside each other, of f16 and bf16. */
static bool comes_in_runs(const shape *s, int layout)
{
    const int64_t along[] = {layout & 1 ? s->m : s->k, layout & 2 ? s->k : s->n};
    return along[0] % 8 == 0 && along[1] % 8 == 0;
}

static void try_target(const char *text, const shape *s, int layout, const char *name, int units,
                       uint64_t seed, char **want)
{
    dc_target t = *dc_sim_target_named(name);
    dc_flat *f = NULL;
    dc_knob_space space;
    const bool halves_of = strstr(text, "x0: f16") != NULL || strstr(text, "x0: bf16") != NULL;
    const bool matrices =
        halves_of || strstr(text, "x0: i8") != NULL || strstr(text, ") tf32 {") != NULL;
    const int64_t few = matrices && t.sm >= 80 ? 7 : 8;
    t.units = units;
    if (!CHECK(run_rules(text, &t, seed, want, &(dc_knobs){{0}}, &space, &f)))
        return;
    if (seed % 3 == 0) /* they take as long again */
        try_knobs(text, &t, &space, seed, want);
    if (s->n > 1 && (s->m <= few || s->n <= few) && s->k >= 32) {
        if (!CHECK_EQ(uses(f, DC_K_SHUFFLE), t.lanes > 0) ||
            !CHECK(t.lanes == 0 || staged(f) == 0) || !CHECK(reads_back(f)))
            printf("%s\n", text);
    } else if (s->m > few && s->n > few && s->k > 1) {
        if (!CHECK_EQ(staged(f), 2) || !CHECK(f->threads >= 32) || !CHECK(reads_back(f)) ||
            !CHECK_EQ(uses(f, DC_K_WGMMA), t.warpgroups && comes_in_runs(s, layout)) ||
            !CHECK_EQ(uses(f, DC_K_MMA) || uses(f, DC_K_WGMMA), matrices && t.sm >= 80) ||
            !CHECK_EQ(uses(f, DC_K_STORE_ASYNC),
                      t.sm >= 80 && runs_ahead(s, layout, text) &&
                          (!uses(f, DC_K_WGMMA) || s->k > 64))) /* of one stage */
            printf("%s\n", text);
    }
    dc_flat_free(f);
}

static void try_product(const shape *s, int layout, const kind *v)
{
    const uint64_t seed = rng_next(&seeds);
    dc_text text = {0};
    write_kernel(&text, s, layout, v);
    char **want = run_naive(text.s, seed);
    if (want != NULL) {
        try_target(text.s, s, layout, "sim:cuda", 1, seed, want);
        try_target(text.s, s, layout, "sim:cuda", 100, seed, want);
        try_target(text.s, s, layout, "sim:opencl", 4, seed, want);
        if (strstr(v->in, "f16") != NULL)
            try_target(text.s, s, layout, "sim:wgmma", 1, seed, want);
        free_memory(want);
    }
    dc_text_free(&text);
}

/* Cases ---------------------------------------------------------------------------------------- */

static void test_extents(void)
{
    static const int64_t n[] = {1, 3, 17, 63, 65, 127, 129};
    int layout = 0;
    for (size_t i = 0; i < DC_COUNTOF(n); i++)
        for (size_t j = 0; j < DC_COUNTOF(n); j++) {
            const shape s = {0, n[i], n[j], n[(i + 2 * j + 3) % 5]};
            try_product(&s, layout++ % LAYOUTS, i % 2 ? &plain : &biased);
        }
    try_product(&(shape){0, 1000, 9, 17}, 0, &plain);
    try_product(&(shape){0, 9, 1000, 17}, 0, &plain);
    try_product(&(shape){0, 17, 17, 1000}, 3, &plain);
}

static void test_layouts(void)
{
    static const kind *const kinds[] = {&plain, &biased, &halves,  &bfloats,
                                        &whole, &bytes,  &doubles, &scaled};
    for (size_t v = 0; v < DC_COUNTOF(kinds); v++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            try_product(&(shape){0, 64, 32, 48}, layout, kinds[v]);
            try_product(&(shape){3, 20, 33, 18}, layout, kinds[v]);
            if (kinds[v] == &halves || kinds[v] == &bfloats || kinds[v] == &bytes ||
                kinds[v] == &rounded)
                try_product(&(shape){0, 129, 136, 72}, layout, kinds[v]);
            if (kinds[v] == (layout == 0 || layout == 3 ? &halves : &bfloats)) /* rings go round */
                try_product(&(shape){0, 72, 264, 328}, layout, kinds[v]);
        }
}

/* Attention's heads, side by side behind each other. */
static void test_heads(void)
{
    static const kind *const kinds[] = {&plain, &halves, &bfloats, &doubles, &scaled};
    for (size_t v = 0; v < DC_COUNTOF(kinds); v++)
        for (int layout = HEADS; layout < HEADS + 4; layout += 2) {
            try_product(&(shape){0, 64, 32, 3 * HEAD}, layout, kinds[v]);
            try_product(&(shape){2, 33, 40, 2 * HEAD}, layout, kinds[v]);
            try_product(&(shape){0, 70, 20, HEAD}, layout, kinds[v]);
        }
}

/* One side of 1 to 8, the other one and sums of odd lengths too. */
static void test_few_rows(void)
{
    static const kind *const kinds[] = {&plain, &biased,  &halves, &bfloats,
                                        &whole, &doubles, &scaled, &bytes};
    static const int64_t n[] = {1, 9, 65, 136}, k[] = {32, 61, 128, 257, 400};
    int round = 0;
    for (int64_t m = 1; m <= 8; m++)
        for (size_t i = 0; i < DC_COUNTOF(n); i++, round++) {
            const shape s = {round % 5 == 0 ? 3 : 0, m, n[i], k[(i + (size_t)m) % DC_COUNTOF(k)]};
            const shape turned = {s.b, s.n, s.m, s.k};
            const kind *v = kinds[(size_t)round % DC_COUNTOF(kinds)];
            try_product(&s, round % LAYOUTS, v);
            try_product(&turned, (round + 1) % LAYOUTS, v);
            try_product(&s, (round + 2) % LAYOUTS, &plain);
            try_product(&turned, (round + 3) % LAYOUTS, &halves);
        }
}

static dc_status test(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_extents();
    test_layouts();
    test_heads();
    test_few_rows();
    return DC_OK;
}

int main(int argc, char **argv)
{
    const char *bad;
    seeds = (rng){argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    dc_opts_init(&opts, &bad);
    dc_job_init(&job, &opts, &kernel_log);
    CHECK(dc_protect(&job, test, NULL) == DC_OK);
    dc_job_fini(&job);
    return t_done();
}
