/*
 * The C family (jit/render/render_c.h). What the text means is tested on cpu:cc: every element-wise row, and
 * random kernels in flat form against their interpreter, bit for bit, in sanitized kernels where
 * the test is sanitized. What only the text shows is tested on the text.
 *
 *   test_render_c [seed [kernels]]
 */
#include "jit/sim/flat_interp.h"

#include "tests/unit/ew_rows.h"
#include "tests/unit/flat_random.h"

/* Random kernels ---------------------------------------------------------------------------- */

static void fill_param(rng *r, int t, void *mem)
{
    for (int i = 0; i < FLAT_COUNT * FLAT_POSITIONS; i++) {
        const dc_dtype d = (dc_dtype)t;
        uint64_t word = rng_next(r) >> rng_below(r, 64); /* a bool may be any byte */
        if (dc_dtype_is_float(d)) {
            const uint64_t lowest = (uint64_t)1 << dc_dtype_fraction(d);
            word = rng_below(r, 8) ? dc_bits_of(d, rng_uniform(r, -9, 9)) : word & ~lowest;
        }
        memcpy((char *)mem + (size_t)i * dc_dtype_size((dc_dtype)t), &word,
               dc_dtype_size((dc_dtype)t));
    }
}

static bool same_values(int t, const char *a, const char *b)
{
    for (size_t i = 0; i < FLAT_COUNT * FLAT_POSITIONS; i++) {
        const size_t at = i * dc_dtype_size((dc_dtype)t);
        if (!equal((dc_dtype)t, dc_bits_load((dc_dtype)t, a + at),
                   dc_bits_load((dc_dtype)t, b + at)))
            return false;
    }
    return true;
}

static void run_random(runner *r, int kernel, uint64_t seed)
{
    rng random = {seed};
    void *want[FLAT_PARAMS], *got[FLAT_PARAMS];
    bool right = true;
    const size_t bytes = sizeof(uint64_t) * FLAT_COUNT * FLAT_POSITIONS;
    for (int p = 0; p < FLAT_PARAMS; p++) {
        want[p] = calloc(bytes, 1);
        if (p >= DC_DTYPE__COUNT)
            fill_param(&random, p - DC_DTYPE__COUNT, want[p]);
        got[p] = memcpy(malloc(bytes), want[p], bytes);
    }
    const bool ran =
        CHECK(dc_flat_run(&r->job, r->flat.at[kernel], want, 0, FLAT_POSITIONS) == DC_OK);
    if (!ran)
        runner_complain(r);
    runner_run_range(r, kernel, FLAT_POSITIONS, got);
    for (int t = 0; t < DC_DTYPE__COUNT && ran; t++)
        right = right && same_values(t, got[t], want[t]);
    for (int p = 0; p < FLAT_PARAMS; p++) {
        free(want[p]);
        free(got[p]);
    }
    if (!CHECK(right)) {
        dc_text text = {0};
        dc_flat_print(r->flat.at[kernel], &text);
        printf("    seed %llu\n%s\n", (unsigned long long)seed, text.s);
        dc_text_free(&text);
    }
}

static void test_random(uint64_t seed, int kernels, const char *device)
{
    runner r;
    if (!runner_open_on(&r, device))
        return;
    for (int n = 0; n < kernels; n++) {
        rng random = {seed + (uint64_t)n};
        dc_flat *f = flat_random(&random, 10 + n % 50, n % 3 == 0 ? 4 : n % 3 == 1 ? 16 : 8, false);
        if (!CHECK(dc_flat_check(&r.job, f) == DC_OK))
            runner_complain(&r);
        runner_add_flat(&r, f);
    }
    const bool built = runner_build(&r);
    if (built)
        for (int n = 0; n < kernels; n++)
            run_random(&r, n, seed + (uint64_t)n);
    runner_close(&r);
}

/* Text --------------------------------------------------------------------------------------- */

static const char map_text[] = "kernel map (out0: f32[100] out, x0: f32[100], x1: f32[1]) {\n"
                               "  %1 = load f32 x1[0]\n"
                               "  %2 = splat f32x16 %1\n"
                               "  %3 = lanes u32x16 1\n"
                               "  %4 = loop begin, end\n"
                               "    %5 = mul index %4, 16\n"
                               "    %6 = convert u32 %5\n"
                               "    %7 = splat u32x16 %6\n"
                               "    %8 = add u32x16 %7, %3\n"
                               "    %9 = lt boolx16 %8, 100\n"
                               "    %10 = load f32x16 x0[%5], mask %9, align 64\n"
                               "    %11 = mul f32x16 %10, %2\n"
                               "    %12 = add f32x16 %11, 0.5\n"
                               "    store f32x16 out0[%5], %12, mask %9, align 64\n"
                               "  end\n"
                               "}\n";

static const char sums_text[] =
    "kernel sums (out0: f32[4] out, x0: f32[256], part: f32[2] group) strict simt 64 lanes 32 "
    "positions 4 {\n"
    "  %1 = mul index group, 64\n"
    "  %2 = add index %1, thread\n"
    "  %3 = load f32 x0[%2]\n"
    "  %4 = mul f32 %3, -2.5\n"
    "  %5 = convert u32 thread\n"
    "  %6 = and u32 %5, 31\n"
    "  %7 = xor u32 %6, 16\n"
    "  %8 = shuffle f32 %4, %7\n"
    "  %9 = add f32 %4, %8\n"
    "  %10 = eq bool %6, 0\n"
    "  if %10\n"
    "    %11 = div index thread, 32\n"
    "    store f32 part[%11], %9\n"
    "  end\n"
    "  barrier group\n"
    "  %12 = load f32 part[1]\n"
    "  store f32 out0[group], %12\n"
    "}\n";

/* Whole vectors of each type of memory; what is masked, less aligned or strided is read lane by lane. */
static const char wide_text[] =
    "kernel wide (out0: f16[64] out, out1: bool[64] out, out2: f32[64] out, x0: f32[64], "
    "x1: bool[64], x2: f16[64]) simt 8 positions 2 {\n"
    "  %1 = mul index thread, 8\n"
    "  %2 = load f16x8 x2[%1], align 16\n"
    "  store f16x8 out0[%1], %2, align 16\n"
    "  %3 = mul index thread, 4\n"
    "  %4 = load f32x4 x0[%3], align 8\n"
    "  %5 = load boolx4 x1[%3], align 4\n"
    "  %6 = lt boolx4 %4, 0.5\n"
    "  %7 = and boolx4 %5, %6\n"
    "  store boolx4 out1[%3], %7, align 4\n"
    "  %8 = lt bool thread, 4\n"
    "  %9 = splat boolx4 %8\n"
    "  %10 = load f32x4 x0[%3], mask %9, align 16\n"
    "  store f32x4 out2[%3], %10, mask %9, align 16\n"
    "}\n";

/* The text of a kernel behind the prelude, in the dialect; to be freed. */
static dc_text text_of(dc_job *j, const char *flat, const char *dialect)
{
    dc_target t = {.vector_bytes = 4};
    dc_text with = {0}, without = {0}, body = {0};
    dc_flat *f = NULL;
    snprintf(t.dialect, sizeof t.dialect, "%s", dialect);
    if (CHECK(dc_flat_parse(j, &flat, &f) == DC_OK) && CHECK(dc_flat_check(j, f) == DC_OK)) {
        CHECK(dc_render(j, (const dc_flat *const[]){f}, 1, &t, &with) == DC_OK);
        CHECK(dc_render(j, NULL, 0, &t, &without) == DC_OK);
        CHECK(strncmp(with.s, without.s, without.n) == 0);
        dc_text_puts(&body, with.s + without.n);
    }
    dc_flat_free(f);
    dc_text_free(&with);
    dc_text_free(&without);
    return body;
}

static void expect_text(dc_job *j, const char *flat, const char *dialect, const char *want)
{
    dc_text text = text_of(j, flat, dialect);
    CHECK_STR(text.s, want);
    dc_text_free(&text);
}

static void test_golden(dc_job *j)
{
    expect_text(j, map_text, "c11",
                "\n"
                "void map(void *const *buf, const void *block, void *scratch, i64 begin, i64 end)\n"
                "{\n"
                "    f32 *const b0 = (f32 *)buf[0]; /* out0, 100 */\n"
                "    const f32 *const b1 = (const f32 *)buf[1]; /* x0, 100 */\n"
                "    const f32 *const b2 = (const f32 *)buf[2]; /* x1, 1 */\n"
                "    const f32 v2 = b2[0];\n"
                "    for (u64 v7 = (u64)begin; (i64)v7 < end; v7++) {\n"
                "        const u64 v9 = v7 * 16;\n"
                "        const u32 v10 = (u32)v9;\n"
                "        LANES(16) {\n"
                "            const u32 v12 = v10 + (u32)l;\n"
                "            const bool v14 = v12 < 100u;\n"
                "            const f32 v15 = v14 ? b1[v9 + l] : 0.0f;\n"
                "            const f32 v18 = fma(v15, v2, 0.5f);\n"
                "            if (v14) b0[v9 + l] = v18;\n"
                "        }\n"
                "    }\n"
                "}\n");
    expect_text(
        j, map_text, "opencl",
        "\n"
        "__kernel void map(__global u8 *g0, u64 o0, __global u8 *g1, u64 o1, __global u8 "
        "*g2, u64 o2, __global u8 *scratches, i64 first, i64 last)\n"
        "{\n"
        "    const i64 worker = get_global_id(0), workers = get_global_size(0);\n"
        "    const i64 begin = first + (last - first) * worker / workers;\n"
        "    const i64 end = first + (last - first) * (worker + 1) / workers;\n"
        "    __global f32 *const b0 = (__global f32 *)(g0 + o0); /* out0, 100 */\n"
        "    __global const f32 *const b1 = (__global const f32 *)(g1 + o1); /* x0, 100 */\n"
        "    __global const f32 *const b2 = (__global const f32 *)(g2 + o2); /* x1, 1 */\n"
        "    const f32 v2 = b2[0];\n"
        "    for (u64 v7 = (u64)begin; (i64)v7 < end; v7++) {\n"
        "        const u64 v9 = v7 * 16;\n"
        "        const u32 v10 = (u32)v9;\n"
        "        LANES(16) {\n"
        "            const u32 v12 = v10 + (u32)l;\n"
        "            const bool v14 = v12 < 100u;\n"
        "            const f32 v15 = v14 ? b1[v9 + l] : 0.0f;\n"
        "            const f32 v18 = fma(v15, v2, 0.5f);\n"
        "            if (v14) b0[v9 + l] = v18;\n"
        "        }\n"
        "    }\n"
        "}\n");
    expect_text(j, sums_text, "cuda",
                "\n"
                "extern \"C\" __global__ void __launch_bounds__(64) sums(u8 *const base, "
                "const u64 stop, const u64 p0, const u64 p1)\n"
                "{\n"
                "    if (stop != 0 && *(const i32 *)(base + stop) != 0)\n"
                "        return;\n"
                "    const u64 group = blockIdx.x, thread = threadIdx.x;\n"
                "    f32 *const b0 = (f32 *)at(base, p0); /* out0, 4 */\n"
                "    const f32 *const b1 = (const f32 *)at(base, p1); /* x0, 256 */\n"
                "    __shared__ __align__(16) f32 b2[2]; /* part */\n"
                "    const u64 v3 = group * 64;\n"
                "    const u64 v5 = v3 + thread;\n"
                "    const f32 v6 = b1[v5];\n"
                "    const f32 v8 = __fmul_rn(v6, (-2.5f));\n"
                "    const u32 v9 = (u32)thread;\n"
                "    const u32 v11 = v9 & 31u;\n"
                "    const u32 v13 = v11 ^ 16u;\n"
                "    const f32 v14 = (f32)__shfl_sync(0xffffffffu, v8, v13, 32);\n"
                "    const f32 v15 = __fadd_rn(v8, v14);\n"
                "    const bool v17 = v11 == 0u;\n"
                "    if (v17) {\n"
                "        const u64 v20 = thread / 32;\n"
                "        b2[v20] = v15;\n"
                "    }\n"
                "    __syncthreads();\n"
                "    const f32 v25 = b2[1];\n"
                "    b0[group] = v25;\n"
                "}\n");
}

/* How often `word` occurs. */
static int count_in(const char *text, const char *word)
{
    int n = 0;
    for (; text != NULL && (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

static void expect_count(dc_job *j, const char *flat, const char *dialect, const char *word, int n)
{
    dc_text text = text_of(j, flat, dialect);
    if (!CHECK_EQ(count_in(text.s, word), n))
        printf("%s\n", text.s);
    dc_text_free(&text);
}

static void test_wide(dc_job *j)
{
    expect_count(j, wide_text, "cuda", "uint4", 8);
    expect_count(j, wide_text, "cuda", "if (v", 2); /* of all lanes */
    expect_count(j, wide_text, "cuda", "(u32 *)", 2);
    expect_count(j, wide_text, "cuda", "(const u32 *)", 2);
    expect_count(j, wide_text, "cuda", "+ l]", 1); /* x0, lane by lane */
    expect_count(j, wide_text, "opencl", "ushort8", 4);
    expect_count(j, wide_text, "opencl", "uchar4", 4);
    expect_count(j, wide_text, "opencl", "+ l]", 1);
}

/* A product used once, in the same block, by a sum; %s: strict or not. */
#define PRODUCTS                                            \
    "kernel products (out0: f32[9] out, x0: f32[9]) %s {\n" \
    "  %%1 = load f32 x0[0]\n"                              \
    "  %%2 = load f32 x0[1]\n"                              \
    "  %%3 = mul f32 %%1, %%2\n"                            \
    "  %%4 = add f32 %%3, %%2\n" /* contracted */           \
    "  store f32 out0[0], %%4\n"                            \
    "  %%5 = mul f32 %%1, 3\n"                              \
    "  %%6 = sub f32 %%1, %%5\n" /* contracted */           \
    "  store f32 out0[1], %%6\n"                            \
    "  %%7 = mul f32 %%2, %%2\n"                            \
    "  %%8 = sub f32 %%7, %%7\n" /* used twice */           \
    "  store f32 out0[2], %%8\n"                            \
    "  %%9 = mul f32 %%2, 5\n"                              \
    "  %%10 = loop begin, end\n"                            \
    "    %%11 = add f32 %%9, %%1\n" /* another block */     \
    "    store f32 out0[3], %%11\n"                         \
    "  end\n"                                               \
    "  %%12 = fma f32 %%1, %%2, %%4\n"                      \
    "  store f32 out0[4], %%12\n"                           \
    "}\n"

static void test_contraction(dc_job *j)
{
    char loose[1200], strict[1200];
    snprintf(loose, sizeof loose, PRODUCTS, "");
    snprintf(strict, sizeof strict, PRODUCTS, "strict");
    expect_count(j, loose, "c11", "fma(", 3);
    expect_count(j, strict, "c11", "fma(", 0);
    expect_count(j, loose, "opencl", "fma(", 3);
    expect_count(j, strict, "opencl", "fma(", 0);
}

/* Lanes meet in memory only from loop to loop. */
static void test_lane_loops(dc_job *j)
{
    static const char apart[] = /* one loop: same place, or far enough */
        "kernel k (out0: f32[64] out, x0: f32[64], l: f32[64] local) {\n"
        "  %1 = loop begin, end\n"
        "    %2 = load f32x8 x0[%1]\n"
        "    store f32x8 l[%1], %2\n"
        "    %3 = load f32x8 l[%1]\n"
        "    %4 = add index %1, 8\n"
        "    store f32x8 l[%4], %3\n"
        "    %5 = load f32x8 x0[0]\n"
        "    store f32x8 l[%4], %5\n"
        "  end\n"
        "}\n";
    static const char near[] = /* the second reads what other lanes of the first wrote */
        "kernel k (out0: f32[64] out, x0: f32[64], l: f32[64] local) {\n"
        "  %1 = load f32x8 x0[0]\n"
        "  store f32x8 l[0], %1\n"
        "  %2 = load f32x8 l[1]\n"
        "  store f32x8 out0[0], %2\n" /* x0 may be the same memory: the same lanes */
        "  %3 = load f32x8 x0[8]\n"
        "  store f32x8 out0[9], %3\n" /* and here they are not */
        "}\n";
    expect_count(j, apart, "c11", "LANES(8)", 1);
    expect_count(j, near, "c11", "LANES(8)", 3);
}

static void test_text(void)
{
    dc_opts opt;
    dc_job j;
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    test_golden(&j);
    test_wide(&j);
    test_contraction(&j);
    test_lane_loops(&j);
    dc_job_fini(&j);
}

/*
 * An update in place: outputs in the memory of the inputs, each at the position that it reads. Lanes
 * share a loop, so one is stored before the next is read.
 */
static void test_in_place(void)
{
    static const char text[] =
        "kernel k0 (out0: f32[21] out, out1: f32[21] out, x0: f32[21], x1: f32[21]) {\n"
        "  %1 = lanes u32x8 1\n"
        "  %2 = loop begin, end\n"
        "    %3 = mul index %2, 8\n"
        "    %4 = convert u32 %3\n"
        "    %5 = splat u32x8 %4\n"
        "    %6 = add u32x8 %5, %1\n"
        "    %7 = lt boolx8 %6, 21\n"
        "    %8 = load f32x8 x0[%3], mask %7\n"
        "    %9 = load f32x8 x1[%3], mask %7\n"
        "    %10 = add f32x8 %8, %9\n"
        "    store f32x8 out0[%3], %10, mask %7\n"
        "    %11 = sub f32x8 %8, %9\n"
        "    store f32x8 out1[%3], %11, mask %7\n"
        "  end\n"
        "}\n";
    const dc_bind bind[4] = {{1, 0}, {2, 0}, {1, 0}, {2, 0}};
    const char *at = text;
    dc_recording *recording = NULL;
    dc_flat *f = NULL;
    dc_run_info info = {0};
    float x[24], y[24];
    runner r;
    if (!runner_open_on(&r, "cpu:cc"))
        return;
    CHECK(dc_flat_parse(&r.job, &at, &f) == DC_OK);
    runner_add_flat(&r, f);
    if (runner_build(&r)) {
        const dc_device_ops *ops = r.device->ops;
        const dc_command item = {.kind = DC_COMMAND_LAUNCH,
                                 .program = r.program,
                                 .grid = 3,
                                 .nbind = 4,
                                 .bind = bind,
                                 .label = "in place"};
        for (int i = 0; i < 24; i++)
            x[i] = (float)i, y[i] = (float)(i + 100);
        CHECK(ops->record(r.device, &r.job, &item, 1, &recording) == DC_OK);
        CHECK(ops->run(r.device, &r.job, recording, (void *[]){NULL, x, y}, &info) == DC_OK);
        ops->recording_free(r.device, recording);
        for (int i = 0; i < 24; i++) {
            CHECK_EQ(x[i], i < 21 ? 2 * i + 100 : i);
            CHECK_EQ(y[i], i < 21 ? -100 : i + 100);
        }
    }
    runner_close(&r);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const int kernels = argc > 2 ? atoi(argv[2]) : 12;
    test_text();
    test_in_place();
    ew_rows_all("cpu:cc");
    test_random(seed, kernels, "cpu:cc");
    return t_done();
}
