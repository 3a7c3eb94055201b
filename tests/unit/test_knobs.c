/*
 * Knobs of schedules (jit/schedule/schedule_knobs.h): every value that a rule offers gives a legal schedule of the same
 * meaning, whose moves read back from their text; what the rule decides itself is what nothing asked for gives; and
 * kernels have the knobs of their kind.
 *
 *   test_knobs [SEED]
 */
#include "jit/moves/move.h"
#include "jit/nest/nest_roles.h"
#include "jit/schedule/schedule_file.h"
#include "jit/schedule/schedule_knobs.h"

#include <math.h>
#include <string.h>

#include "tests/unit/nest_interp.h"
#include "tests/unit/nest_texts.h"
#include "tests/unit/rng.h"

enum { PARAMS = 4 };

static const char dots[] = "kernel dots(out0: f32[60] out, x0: f32[960], x1: f32[1600]) strict {\n"
                           "  local acc: f32[1]\n"
                           "  for m in 6\n"
                           "    for n in 10\n"
                           "      acc[0] = 0:f32\n"
                           "      for k in 160 reduce\n"
                           "        acc[0] add= mul(x0[160*m + k], x1[160*n + k])\n"
                           "      out0[10*m + n] = acc[0]\n"
                           "}\n";
static const char product[] =
    "kernel product(out0: f32[960] out, x0: f32[1152], x1: f32[1920], x2: f32[960]) strict {\n"
    "  local acc: f32[1]\n"
    "  for m in 24\n"
    "    for n in 40\n"
    "      acc[0] = 0:f32\n"
    "      for k in 48 reduce\n"
    "        acc[0] add= mul(x0[48*m + k], x1[40*k + n])\n"
    "      out0[40*m + n] = sub(mul(acc[0], 2:f32), x2[40*m + n])\n"
    "}\n";
static const char outer[] =
    "kernel outer(out0: f32[60] out, x0: f32[1152], x1: f32[1920]) strict {\n"
    "  local acc: f32[1]\n"
    "  for m in 6\n"
    "    for n in 10\n"
    "      acc[0] = 0:f32\n"
    "      for z in 2 reduce\n"
    "        for k in 96 reduce\n"
    "          acc[0] add= mul(x0[576*z + 96*m + k], x1[960*z + 96*n + k])\n"
    "      out0[10*m + n] = acc[0]\n"
    "}\n";
static const char picked[] =
    "kernel picked(out0: f32[208] out, x0: f32[64], x1: f32[3328], x2: f32[104]) strict {\n"
    "  local acc: f32[1]\n"
    "  for m in 2\n"
    "    for n in 104\n"
    "      acc[0] = 0:f32\n"
    "      for k in 32 reduce\n"
    "        acc[0] add= mul(x0[32*m + k], x1[32*n + k])\n"
    "      out0[104*m + n] = add(acc[0], x2[int(minimum(maximum(cast.i32(x2[n]), 0:i32), "
    "103:i32))])\n"
    "}\n";
static const char columns[] = "kernel columns(out0: f32[100] out, x0: f32[3000]) strict {\n"
                              "  local acc: f32[1]\n"
                              "  for n in 100\n"
                              "    acc[0] = 0:f32\n"
                              "    for m in 30 reduce\n"
                              "      acc[0] add= x0[100*m + n]\n"
                              "    out0[n] = acc[0]\n"
                              "}\n";
static const char map[] = "kernel map(out0: f32[5000] out, x0: f32[5000]) strict {\n"
                          "  for i in 5000\n"
                          "    out0[i] = mul(x0[i], x0[i])\n"
                          "}\n";
static const char transposed[] = "kernel turn(out0: f32[6144] out, x0: f32[6144]) strict {\n"
                                 "  for m in 96\n"
                                 "    for n in 64\n"
                                 "      out0[64*m + n] = x0[96*n + m]\n"
                                 "}\n";
static const char sums[] = "kernel sums(out0: f32[4] out, x0: f32[4000]) strict {\n"
                           "  local acc: f32[1]\n"
                           "  for g in 4\n"
                           "    acc[0] = 0:f32\n"
                           "    for k in 1000 reduce\n"
                           "      acc[0] add= x0[1000*g + k]\n"
                           "    out0[g] = acc[0]\n"
                           "}\n";
static const char conv[] =
    "kernel conv(out0: f32[1536] out, x0: f32[1600], x1: f32[2304]) strict {\n"
    "  local acc: f32[1]\n"
    "  for b: m in 1\n"
    "    for y: spatial in 8\n"
    "      for x: spatial in 8\n"
    "        for o: n in 16\n"
    "          acc[0] = 0:f32\n"
    "          for r: window in 3 reduce\n"
    "            for t: window in 3 reduce\n"
    "              for c: k in 16 reduce\n"
    "                acc[0] add= mul(x0[160*y + 160*r + 16*x + 16*t + c], "
    "x1[768*r + 256*t + 16*c + o])\n"
    "          out0[128*y + 16*x + o] = acc[0]\n"
    "}\n";

/* ---- meaning --------------------------------------------------------------------------------- */

typedef struct memory {
    void *at[PARAMS];
} memory;

static const dc_buffer *param_of(const dc_kernel *k, uint32_t param)
{
    for (uint32_t n = 0; n < k->buf.n; n++)
        if (k->buf.at[n].scope == DC_SCOPE_PARAM && k->buf.at[n].param == param)
            return &k->buf.at[n];
    DC_BUG("no parameter %u", param);
}

static size_t bytes_of(const dc_kernel *k, uint32_t param)
{
    return (size_t)param_of(k, param)->count * sizeof(float);
}

/* Multiples of an eighth, all f32: sums are exact in any order. */
static memory new_memory(const dc_kernel *k, uint64_t seed)
{
    memory m = {{NULL}};
    rng r = {seed};
    for (uint32_t p = 0; p < k->nparam; p++) {
        float *x = m.at[p] = malloc(bytes_of(k, p) + 1);
        for (int64_t i = 0; i < param_of(k, p)->count; i++)
            x[i] = (float)(rng_below(&r, 33) - 16) / 8;
    }
    return m;
}

static void free_memory(memory *m)
{
    for (int p = 0; p < PARAMS; p++)
        free(m->at[p]);
}

/* Output 0 after a run. */
static memory run(const dc_kernel *k, uint64_t seed)
{
    memory m = new_memory(k, seed);
    if (!CHECK(dc_nest_run(&nest_job, k, m.at) == DC_OK))
        printf("    %s\n", nest_said());
    return m;
}

/* The moves give the same kernel, but for roles, which rules derive where a text says nothing. */
static dc_kernel *replayed(const char *text, const dc_kernel *k)
{
    dc_kernel *again = nest_of(text);
    dc_roles_derive(again);
    const char *why = "";
    for (uint32_t i = 0; i < k->moves.n; i++) {
        const char *move = dc_move_text(k, k->moves.at[i], &again->arena);
        if (!CHECK(dc_move_apply_text(again, move, &why)))
            printf("    %s: %s\n", move, why);
    }
    return again;
}

static bool prints_alike(dc_kernel *a, dc_kernel *b)
{
    dc_text x = {0}, y = {0};
    dc_nest_print(a, &x);
    dc_nest_print(b, &y);
    const bool alike = strcmp(x.s, y.s) == 0;
    dc_text_free(&x);
    dc_text_free(&y);
    return alike;
}

static void try_knobs(const char *text, const dc_target *t, const dc_knobs *knobs,
                      const memory *want, uint64_t seed, const char *what)
{
    dc_knob_space space;
    dc_kernel *k = nest_of(text);
    CHECK(dc_schedule_search(&nest_job, k, t, knobs, &space) == DC_OK);
    bool right = CHECK(dc_nest_check(&nest_job, k) == DC_OK);
    dc_kernel *again = replayed(text, k);
    right = CHECK(prints_alike(k, again)) && right;
    memory got = run(k, seed);
    right = CHECK(memcmp(got.at[0], want->at[0], bytes_of(k, 0)) == 0) && right;
    if (!right)
        printf("    %s, %s, complete %d\n", k->name, what, space.complete);
    free_memory(&got);
    dc_kernel_free(again);
    dc_kernel_free(k);
}

/* What is decided without knobs is what dc_schedule decides. */
static dc_knob_space space_of(const char *text, const dc_target *t)
{
    dc_knob_space space;
    dc_kernel *rule = nest_of(text), *searched = nest_of(text);
    CHECK(dc_schedule(&nest_job, rule, t, 2) == DC_OK);
    CHECK(dc_schedule_search(&nest_job, searched, t, &(dc_knobs){{0}}, &space) == DC_OK);
    CHECK(prints_alike(rule, searched));
    CHECK(space.complete);
    dc_kernel_free(rule);
    dc_kernel_free(searched);
    return space;
}

static void test_every_offer(const char *text, const dc_target *t, uint64_t seed)
{
    char what[64];
    dc_kernel *naive = nest_of(text);
    memory want = run(naive, seed);
    const dc_knob_space space = space_of(text, t);
    rng r = {seed};
    for (int n = 0; n < DC_KNOB__COUNT; n++)
        for (int i = 0; i < space.offer[n].n; i++) {
            dc_knobs knobs = {{0}};
            knobs.value[n] = space.offer[n].value[i];
            snprintf(what, sizeof what, "%s %d", dc_knob_name((dc_knob)n), knobs.value[n]);
            CHECK(knobs.value[n] != space.offer[n].rule && knobs.value[n] > 0);
            try_knobs(text, t, &knobs, &want, seed, what);
        }
    for (int i = 0; i < 12; i++) { /* several at once */
        dc_knobs knobs = {{0}};
        for (int n = 0; n < DC_KNOB__COUNT; n++)
            if (space.offer[n].n > 0 && rng_below(&r, 2) == 0)
                knobs.value[n] = space.offer[n].value[rng_below(&r, space.offer[n].n)];
        snprintf(what, sizeof what, "combination %d", i);
        try_knobs(text, t, &knobs, &want, seed, what);
    }
    free_memory(&want);
    dc_kernel_free(naive);
}

/* ---- which knobs there are --------------------------------------------------------------------- */

/* "tile pack items": those that offer something. */
static void test_kinds(const char *text, const char *want)
{
    char names[300] = "";
    const dc_knob_space space = space_of(text, &nest_target);
    for (int n = 0; n < DC_KNOB__COUNT; n++)
        if (space.offer[n].n > 0)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     names[0] != '\0' ? " " : "", dc_knob_name((dc_knob)n));
    CHECK_STR(names, want);
}

/* Tiles come by the model's cost: the first one is the rule's, and not offered again. */
static void test_tiles(void)
{
    const dc_knob_space space = space_of(product, &nest_target);
    const dc_knob_offer *o = &space.offer[DC_KNOB_TILE];
    CHECK(o->n > 8);
    for (int i = 0; i < o->n; i++) {
        const int rows = o->value[i] / 100, vectors = o->value[i] % 100;
        CHECK(rows >= 1 && vectors >= 1);
        CHECK(rows * vectors + vectors + 1 < nest_target.vector_registers);
    }
}

int main(int argc, char **argv)
{
    static const char *const texts[] = {dots, outer,      product, picked, columns,
                                        map,  transposed, sums,    conv};
    static const dc_target narrow = {.name = "narrow", .vector_bytes = 16, .vector_registers = 16};
    const uint64_t seed = rng_seed(argc, argv, 1);
    nest_open();
    for (size_t i = 0; i < DC_COUNTOF(texts); i++) {
        test_every_offer(texts[i], &nest_target, seed);
        test_every_offer(texts[i], &narrow, seed);
    }
    test_kinds(product, "lanes tile stream pack order items apart prefetch");
    test_kinds(dots, "lanes panel_k items dots dot_rows dot_columns");
    test_kinds(columns, "lanes strip");
    test_kinds(map, "lanes vectors");
    test_kinds(transposed, "lanes blocks");
    test_kinds(sums, "lanes sum_vectors");
    test_kinds(conv, "lanes conv_rows conv_bytes");
    test_tiles();
    nest_close();
    return t_done();
}
