/*
 * Knobs of schedules for groups of threads (jit/schedule/schedule_knobs.h): every value that a rule offers, and some of
 * them together, give a kernel with the results of the naive one, bit for bit, in the interpreter of the flat form, which
 * finds no race and no access outside of a buffer; what the rules decide themselves is what nothing asked for gives;
 * kernels have the knobs of their kind. test_simt_product asks for more of products.
 *
 *   test_simt_knobs [SEED [COMBINATIONS]]
 */
#include "jit/flat/flatten.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_knobs.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <string.h>

#include "tests/unit/nest_texts.h"
#include "tests/unit/rng.h"

enum { MOST_PARAMS = 4 };

static const char product[] =
    "kernel product(out0: f32[2640] out, x0: f32[2880], x1: f32[2112]) {\n"
    "  local acc: f32[1]\n"
    "  for m in 60\n"
    "    for n in 44\n"
    "      acc[0] = 0:f32\n"
    "      for k in 48 reduce\n"
    "        acc[0] add= mul(x0[48*m + k], x1[44*k + n])\n"
    "      out0[44*m + n] = acc[0]\n"
    "}\n";
static const char halves[] =
    "kernel halves(out0: f16[5280] out, x0: f16[9600], x1: f16[7040]) {\n"
    "  local acc: f32[1]\n"
    "  for m in 60\n"
    "    for n in 88\n"
    "      acc[0] = 0:f32\n"
    "      for k in 80 reduce\n"
    "        acc[0] add= mul(cast.f32(x0[80*m + k]), cast.f32(x1[80*n + k]))\n"
    "      out0[88*m + n] = cast.f16(acc[0])\n"
    "}\n";
static const char few[] = "kernel few(out0: f32[176] out, x0: f32[512], x1: f32[5632]) {\n"
                          "  local acc: f32[1]\n"
                          "  for m in 4\n"
                          "    for n in 44\n"
                          "      acc[0] = 0:f32\n"
                          "      for k in 128 reduce\n"
                          "        acc[0] add= mul(x0[128*m + k], x1[128*n + k])\n"
                          "      out0[44*m + n] = acc[0]\n"
                          "}\n";
static const char across[] = "kernel across(out0: f32[176] out, x0: f32[512], x1: f32[5632]) {\n"
                             "  local acc: f32[1]\n"
                             "  for m in 4\n"
                             "    for n in 44\n"
                             "      acc[0] = 0:f32\n"
                             "      for k in 128 reduce\n"
                             "        acc[0] add= mul(x0[128*m + k], x1[44*k + n])\n"
                             "      out0[44*m + n] = acc[0]\n"
                             "}\n";
static const char map[] = "kernel map(out0: f32[5002] out, x0: f32[5002]) {\n"
                          "  for i in 5002\n"
                          "    out0[i] = mul(x0[i], x0[i])\n"
                          "}\n";
static const char plane[] = "kernel plane(out0: f32[6120] out, x0: f32[6120], x1: f32[120]) {\n"
                            "  for i in 51\n"
                            "    for n in 120\n"
                            "      out0[120*i + n] = add(x0[120*i + n], x1[n])\n"
                            "}\n";
static const char rows[] = "kernel rows(out0: f32[4800] out, x0: f32[4800]) {\n"
                           "  local top: f32[1]\n"
                           "  local sum: f32[1]\n"
                           "  for i in 24\n"
                           "    top[0] = -inf:f32\n"
                           "    for k in 200 reduce\n"
                           "      top[0] maximum= x0[200*i + k]\n"
                           "    sum[0] = 0:f32\n"
                           "    for j in 200 reduce\n"
                           "      sum[0] add= sub(x0[200*i + j], top[0])\n"
                           "    for n in 200\n"
                           "      out0[200*i + n] = sub(x0[200*i + n], sum[0])\n"
                           "}\n";
static const char total[] = "kernel total(out0: f32[1] out, x0: f32[3000]) {\n"
                            "  local acc: f32[1]\n"
                            "  acc[0] = 0:f32\n"
                            "  for k in 3000 reduce\n"
                            "    acc[0] add= x0[k]\n"
                            "  out0[0] = acc[0]\n"
                            "}\n";
static const char columns[] = "kernel columns(out0: f32[72] out, x0: f32[6480]) {\n"
                              "  local acc: f32[1]\n"
                              "  for n in 72\n"
                              "    acc[0] = 0:f32\n"
                              "    for m in 90 reduce\n"
                              "      acc[0] add= x0[72*m + n]\n"
                              "    out0[n] = acc[0]\n"
                              "}\n";
static const char windows[] =
    "kernel windows(out0: f32[2304] out, x0: f32[2592], x1: f32[72]) {\n"
    "  local acc: f32[1]\n"
    "  for y in 4\n"
    "    for x in 16\n"
    "      for c in 36\n"
    "        acc[0] = 0:f32\n"
    "        for r in 2 reduce\n"
    "          acc[0] add= mul(x0[648*y + 36*x + 36*r + c], x1[36*r + c])\n"
    "        out0[576*y + 36*x + c] = acc[0]\n"
    "}\n";
/* Extents that no tile divides: of positions, of threads. */
static const char odd_windows[] =
    "kernel odd_windows(out0: f32[3864] out, x0: f32[4200], x1: f32[56]) {\n"
    "  local acc: f32[1]\n"
    "  for y in 6\n"
    "    for x in 23\n"
    "      for c in 28\n"
    "        acc[0] = 0:f32\n"
    "        for r in 2 reduce\n"
    "          acc[0] add= mul(x0[700*y + 28*x + 28*r + c], x1[28*r + c])\n"
    "        out0[644*y + 28*x + c] = acc[0]\n"
    "}\n";
static const char scatter[] =
    "kernel scatter(out0: f32[1120] out, x0: f32[1120], x1: i32[60], x2: f32[960]) {\n"
    "  for n in 16\n"
    "    for a in 70\n"
    "      out0[16*a + n] = x0[16*a + n]\n"
    "    for k in 60\n"
    "      t0 = minimum(maximum(x1[k], 0:i32), 69:i32)\n"
    "      out0[16*int(t0) + n] = add(out0[16*int(t0) + n], x2[16*k + n])\n"
    "}\n";

static const char odd_scatter[] =
    "kernel odd_scatter(out0: f32[852] out, x0: f32[852], x1: i32[60], x2: f32[720]) {\n"
    "  for n in 12\n"
    "    for a in 71\n"
    "      out0[12*a + n] = x0[12*a + n]\n"
    "    for k in 60\n"
    "      t0 = minimum(maximum(x1[k], 0:i32), 70:i32)\n"
    "      out0[12*int(t0) + n] = add(out0[12*int(t0) + n], x2[12*k + n])\n"
    "}\n";

static const char narrow_scatter[] =
    "kernel narrow_scatter(out0: f32[1004] out, x0: f32[1004], x1: i32[60], x2: f32[240]) {\n"
    "  for n in 4\n"
    "    for a in 251\n"
    "      out0[4*a + n] = x0[4*a + n]\n"
    "    for k in 60\n"
    "      t0 = minimum(maximum(x1[k], 0:i32), 250:i32)\n"
    "      out0[4*int(t0) + n] = add(out0[4*int(t0) + n], x2[4*k + n])\n"
    "}\n";

/* A row that shared memory has room for, with several sums of two types. */
static const char long_rows[] =
    "kernel long_rows(out0: i32[4] out, x0: f16[49156]) {\n"
    "  local top: f32[1]\n"
    "  local place: i32[1]\n"
    "  local low: f32[1]\n"
    "  local there: i32[1]\n"
    "  local sum: f32[1]\n"
    "  local all: f32[1]\n"
    "  for i in 4\n"
    "    top[0] = -inf:f32\n"
    "    for k in 12289 reduce\n"
    "      top[0] maximum= cast.f32(x0[12289*i + k])\n"
    "    place[0] = 12289:i32\n"
    "    for ka in 12289 reduce\n"
    "      place[0] minimum= where(eq(cast.f32(x0[12289*i + ka]), top[0]), "
    "cast.i32(i32(ka)), 12289:i32)\n"
    "    low[0] = inf:f32\n"
    "    for kb in 12289 reduce\n"
    "      low[0] minimum= cast.f32(x0[12289*i + kb])\n"
    "    there[0] = 12289:i32\n"
    "    for kc in 12289 reduce\n"
    "      there[0] minimum= where(eq(cast.f32(x0[12289*i + kc]), low[0]), "
    "cast.i32(i32(kc)), 12289:i32)\n"
    "    sum[0] = 0:f32\n"
    "    for kd in 12289 reduce\n"
    "      sum[0] add= cast.f32(x0[12289*i + kd])\n"
    "    all[0] = 0:f32\n"
    "    for ke in 12289 reduce\n"
    "      all[0] add= mul(cast.f32(x0[12289*i + ke]), low[0])\n"
    "    out0[i] = add(add(place[0], there[0]), cast.i32(add(sum[0], all[0])))\n"
    "}\n";

/* Memory -------------------------------------------------------------------------------------------- */

typedef struct memory {
    char *at[MOST_PARAMS];
} memory;

static const dc_buffer *param_of(const dc_kernel *k, uint32_t p)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM && k->buf.at[b].param == p)
            return &k->buf.at[b];
    DC_BUG("no parameter %u", p);
}

static size_t bytes_of(const dc_kernel *k, uint32_t p)
{
    return (size_t)param_of(k, p)->count * dc_dtype_size((dc_dtype)param_of(k, p)->dtype);
}

/* Small whole numbers: sums of their products are exact in every order. */
static memory new_memory(const dc_kernel *k, uint64_t seed)
{
    memory m = {{NULL}};
    rng r = {seed};
    for (uint32_t p = 0; p < k->nparam; p++) {
        const dc_dtype t = (dc_dtype)param_of(k, p)->dtype;
        m.at[p] = calloc(bytes_of(k, p) + 1, 1);
        for (int64_t i = 0; i < param_of(k, p)->count; i++)
            dc_bits_store(t, m.at[p] + (size_t)i * dc_dtype_size(t),
                          dc_bits_of(t, t == DC_I32 ? rng_below(&r, 70) : rng_below(&r, 5) - 2));
    }
    return m;
}

static void free_memory(memory *m)
{
    for (int p = 0; p < MOST_PARAMS; p++)
        free(m->at[p]);
}

static void tell_failure(void)
{
    char why[700];
    dc_err_render(&nest_job.err, 0, why, sizeof why);
    nest_job.err = (dc_err){0};
    printf("    %s\n", why);
}

/* Of a kernel as it is scheduled. */
static bool run(dc_kernel *k, const dc_target *t, uint64_t seed, memory *out)
{
    dc_flat *f = NULL;
    *out = new_memory(k, seed);
    const bool ran = dc_nest_check(&nest_job, k) == DC_OK &&
                     dc_flatten_for(&nest_job, k, t, 0, &f) == DC_OK &&
                     dc_flat_check(&nest_job, f) == DC_OK &&
                     dc_flat_run(&nest_job, f, (void **)out->at, 0, f->positions) == DC_OK;
    if (!CHECK(ran))
        tell_failure();
    dc_flat_free(f);
    return ran;
}

/* Asking -------------------------------------------------------------------------------------------- */

static void try_knobs(const char *text, const dc_target *t, const dc_knobs *knobs,
                      const memory *want, uint64_t seed, const char *what)
{
    dc_knob_space space;
    memory got = {{NULL}};
    dc_kernel *k = nest_of(text);
    CHECK(dc_schedule_search(&nest_job, k, t, knobs, &space) == DC_OK);
    const bool right = CHECK(space.complete) && run(k, t, seed, &got) &&
                       CHECK(memcmp(got.at[0], want->at[0], bytes_of(k, 0)) == 0);
    if (!right)
        printf("    %s for %s with %d units: %s\n", k->name, t->name, t->units, what);
    free_memory(&got);
    dc_kernel_free(k);
}

static char *text_of(dc_kernel *k)
{
    dc_text text = {0};
    dc_nest_print(k, &text);
    return text.s;
}

static dc_knob_space space_of(const char *text, const dc_target *t)
{
    dc_knob_space space;
    dc_kernel *rule = nest_of(text), *searched = nest_of(text);
    CHECK(dc_schedule(&nest_job, rule, t, 2) == DC_OK);
    CHECK(dc_schedule_search(&nest_job, searched, t, &(dc_knobs){{0}}, &space) == DC_OK);
    char *a = text_of(rule), *b = text_of(searched);
    CHECK_STR(b, a);
    CHECK(space.complete);
    dc_xfree(a);
    dc_xfree(b);
    dc_kernel_free(rule);
    dc_kernel_free(searched);
    return space;
}

static void try_each(const char *text, const dc_target *t, const dc_knob_space *space,
                     const memory *want, uint64_t seed)
{
    char what[64];
    for (int n = 0; n < DC_KNOB__COUNT; n++)
        for (int i = 0; i < space->offer[n].n; i++) {
            dc_knobs knobs = {{0}};
            knobs.value[n] = space->offer[n].value[i];
            snprintf(what, sizeof what, "%s %d", dc_knob_name((dc_knob)n), knobs.value[n]);
            CHECK(knobs.value[n] != space->offer[n].rule && knobs.value[n] > 0);
            try_knobs(text, t, &knobs, want, seed, what);
        }
}

/* Of all that the kernel has, whatever the others are. */
static void try_together(const char *text, const dc_target *t, const dc_knob_space *space,
                         const memory *want, uint64_t seed, rng *r, int times)
{
    for (int i = 0; i < times; i++) {
        dc_knobs knobs = {{0}};
        char what[300] = "";
        for (int n = 0; n < DC_KNOB__COUNT; n++)
            if (space->offer[n].n > 0 && rng_below(r, 2) == 0) {
                knobs.value[n] = space->offer[n].value[rng_below(r, space->offer[n].n)];
                snprintf(what + strlen(what), sizeof what - strlen(what), " %s %d",
                         dc_knob_name((dc_knob)n), knobs.value[n]);
            }
        try_knobs(text, t, &knobs, want, seed, what);
    }
}

/* "group access flight": those that offer something. */
static void check_kind(const dc_knob_space *space, const char *want)
{
    char names[300] = "";
    for (int n = 0; n < DC_KNOB__COUNT; n++)
        if (space->offer[n].n > 0)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     names[0] != '\0' ? " " : "", dc_knob_name((dc_knob)n));
    CHECK_STR(names, want);
}

static void test_kernel(const char *text, const char *kind, uint64_t seed, int times)
{
    dc_target t[] = {*dc_sim_target_named("sim:cuda"), *dc_sim_target_named("sim:opencl"),
                     *dc_sim_target_named("sim:cuda")};
    dc_kernel *naive = nest_of(text);
    memory want;
    rng r = {seed};
    t[0].units = 1; /* so that few threads fill it; the last one is never full */
    t[2].units = 100;
    CHECK(run(naive, dc_sim_target_named("sim:cpu"), seed, &want));
    for (size_t i = 0; i < DC_COUNTOF(t); i++) {
        const dc_knob_space space = space_of(text, &t[i]);
        if (i == 0)
            check_kind(&space, kind);
        try_each(text, &t[i], &space, &want, seed);
        try_together(text, &t[i], &space, &want, seed, &r, times);
    }
    free_memory(&want);
    dc_kernel_free(naive);
}

/* What the rules decide themselves. */
static void test_rules(const char *text, const char *target, uint64_t seed)
{
    dc_kernel *naive = nest_of(text), *k = nest_of(text);
    memory want, got = {{NULL}};
    CHECK(dc_schedule(&nest_job, k, dc_sim_target_named(target), 2) == DC_OK);
    if (run(naive, dc_sim_target_named("sim:cpu"), seed, &want) &&
        run(k, dc_sim_target_named(target), seed, &got))
        CHECK(memcmp(got.at[0], want.at[0], bytes_of(k, 0)) == 0);
    free_memory(&want);
    free_memory(&got);
    dc_kernel_free(naive);
    dc_kernel_free(k);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *text, *knobs;
    } kernels[] = {
        {product, "group_tile warp_tile depth stages"},
        {halves, "group_tile warp_tile depth stages"},
        {few, "skinny_share skinny_terms skinny_own skinny_group"},
        {across, "skinny_share skinny_terms skinny_own skinny_group"},
        {map, "group access flight"},
        {plane, "group access flight"},
        {rows, "group access row_threads rows"},
        {total, "group access row_threads rows"},
        {columns, "group warps"},
        {windows, "group access warps positions"},
        {odd_windows, "group access warps positions"},
        {scatter, "group range"},
        {odd_scatter, "group range"},
        {narrow_scatter, "group range"},
    };
    const uint64_t seed = rng_seed(argc, argv, 1);
    nest_open();
    for (size_t i = 0; i < DC_COUNTOF(kernels); i++)
        test_kernel(kernels[i].text, kernels[i].knobs, seed,
                    argc > 2 ? (int)strtoul(argv[2], NULL, 0) : 6);
    test_rules(long_rows, "sim:opencl", seed);
    test_rules(long_rows, "sim:cuda", seed);
    nest_close();
    return t_done();
}
