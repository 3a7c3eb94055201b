/*
 * The interpreter of the flat form: kernels as text, for threads of a CPU and for groups of threads, their
 * results against C written out, and what it has to report. Kernels of random graphs are in
 * test_finterp_graphs.c.
 */
#include "core/ir/op.h"

#include "tests/unit/flat_run.h"

/* Threads of a CPU -------------------------------------------------------------------------- */

static const char map_text[] = "kernel map (out0: f32[100] out, x0: f32[100], x1: f32[1]) {\n"
                               "  %1 = load f32 x1[0]\n"
                               "  %2 = lanes u32x16 1\n"
                               "  %3 = splat f32x16 %1\n"
                               "  %4 = loop begin, end\n"
                               "    %5 = mul index %4, 16\n"
                               "    %6 = convert u32 %5\n"
                               "    %7 = splat u32x16 %6\n"
                               "    %8 = add u32x16 %7, %2\n"
                               "    %9 = lt boolx16 %8, 100\n"
                               "    %10 = load f32x16 x0[%5], mask %9, align 64\n"
                               "    %11 = mul f32x16 %10, %3\n"
                               "    %12 = bitcast i32x16 %8\n"
                               "    %13 = convert f32x16 %12\n"
                               "    %14 = add f32x16 %11, %13\n"
                               "    store f32x16 out0[%5], %14, mask %9, align 64\n"
                               "  end\n"
                               "}\n";

static void test_map(void)
{
    float out[100], x[100], y = 3;
    for (int i = 0; i < 100; i++)
        x[i] = (float)(i * 7 % 23 - 9);
    if (flat_do(map_text, (void *[]){out, x, &y}, 7))
        for (int i = 0; i < 100; i++)
            CHECK_EQ(out[i], x[i] * y + (float)i);
}

/* A sum in scratch memory of each work item, its parts strided, gathered and scattered. */
static void test_memory(void)
{
    static const char text[] =
        "kernel memory (out0: i32[12] out, x0: i32[24], tmp: i32[8] scratch 64, acc: i32[1] local)"
        " scratch 128 {\n"
        "  %1 = loop begin, end\n"
        "    %2 = mul index %1, 8\n"
        "    %3 = load i32x4 x0[%2 step 2]\n" /* 0 2 4 6 */
        "    %4 = lanes u32x4 2\n"
        "    store i32x4 tmp[7 step -2], %3\n" /* 7 5 3 1 */
        "    %5 = add index %2, 1\n"
        "    %6 = load i32x4 x0[%5 step 2]\n" /* 1 3 5 7 */
        "    scatter i32x4 tmp[%4], %6\n"     /* 0 2 4 6 */
        "    store i32 acc[0], 0\n"
        "    %7 = loop 0, 8\n"
        "      %8 = load i32 acc[0]\n"
        "      %9 = load i32 tmp[%7]\n"
        "      %10 = convert i32 %7\n"
        "      %11 = mul i32 %9, %10\n"
        "      %12 = add i32 %8, %11\n"
        "      store i32 acc[0], %12\n"
        "    end\n"
        "    %13 = load i32 acc[0]\n"
        "    %14 = mul index %1, 4\n"
        "    store i32 out0[%14], %13\n"
        "    %15 = add index %14, 1\n"
        "    %16 = gather i32x2 tmp[u32x2 3]\n"
        "    %17 = lanes indexx2 1\n"
        "    %18 = lt boolx2 %17, 1\n"
        "    store i32x2 out0[%15], %16, mask %18\n"
        "  end\n"
        "}\n";
    int32_t out[12], x[24];
    for (int i = 0; i < 24; i++)
        x[i] = i * i - 50;
    memset(out, 0x11, sizeof out);
    if (!flat_do(text, (void *[]){out, x}, 3))
        return;
    for (int p = 0; p < 3; p++) {
        int32_t tmp[8], sum = 0;
        for (int n = 0; n < 4; n++) {
            tmp[7 - 2 * n] = x[8 * p + 2 * n];
            tmp[2 * n] = x[8 * p + 2 * n + 1];
        }
        for (int n = 0; n < 8; n++)
            sum += tmp[n] * n;
        CHECK_EQ(out[4 * p], sum);
        CHECK_EQ(out[4 * p + 1], tmp[3]);
        CHECK_EQ(out[4 * p + 2], 0x11111111); /* masked */
        CHECK_EQ(out[4 * p + 3], 0x11111111);
    }
}

/* Rows -------------------------------------------------------------------------------------- */

static const uint64_t samples[] = {0,          1,          2,          3,          7,
                                   31,         0x7f,       0x80,       0xff,       0x7fffffff,
                                   0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x3f800000,
                                   0xbf800000, 0x40490fdb, 0x7f800000, 0xff800000, 0x7fc00000,
                                   0x00000001, 0x4f000000, 0x4f800000, 0xcf000000, 0x437f8000};

static uint64_t pattern_of(dc_dtype t, uint64_t bits)
{
    if (dc_dtype_is_float(t) && t != DC_F32)
        return dc_bits_cast(DC_F32, t, bits);
    return dc_bits_canonical(t,
                             dc_dtype_is_signed(t) && bits >> 31 != 0 ? bits - (1ll << 32) : bits);
}

/* out[0] = row of two scalars, through a kernel. */
static bool run_row(const char *row, dc_dtype t, dc_dtype to, const uint64_t *in, uint64_t *got)
{
    char text[400];
    _Alignas(8) char a[8], b[8], out[8];
    const bool two = row[0] != '1';
    snprintf(text, sizeof text,
             "kernel row (out0: %s[1] out, x0: %s[1], x1: %s[1]) {\n"
             "  %%1 = load %s x0[0]\n  %%2 = load %s x1[0]\n"
             "  %%3 = %s %s %%1%s\n  store %s out0[0], %%3\n}\n",
             dc_dtype_name(to), dc_dtype_name(t), dc_dtype_name(t), dc_dtype_name(t),
             dc_dtype_name(t), two ? row : row + 1, dc_dtype_name(to), two ? ", %2" : "",
             dc_dtype_name(to));
    dc_bits_store(t, a, in[0]);
    dc_bits_store(t, b, in[1]);
    if (!flat_do(text, (void *[]){out, a, b}, 1)) {
        printf("    %s %s\n", row, dc_dtype_name(t));
        return false;
    }
    *got = dc_bits_load(to, out);
    return true;
}

/* Rows that mean what the operation of the same kind means. */
static void test_rows(void)
{
    static const struct {
        const char *row;
        dc_op op;
        bool flt, integer, boolean, test;
    } rows[] = {
        {"add", DC_OP_ADD, true, true, false, false},
        {"sub", DC_OP_SUB, true, true, false, false},
        {"mul", DC_OP_MUL, true, true, false, false},
        {"div", DC_OP_DIV, true, true, false, false},
        {"rem", DC_OP_REM, false, true, false, false},
        {"and", DC_OP_AND, false, true, true, false},
        {"or", DC_OP_OR, false, true, true, false},
        {"xor", DC_OP_XOR, false, true, true, false},
        {"shl", DC_OP_SHL, false, true, false, false},
        {"shr", DC_OP_SHR, false, true, false, false},
        {"lt", DC_OP_LT, true, true, true, true},
        {"le", DC_OP_LE, true, true, true, true},
        {"eq", DC_OP_EQ, true, true, true, true},
        {"ne", DC_OP_NE, true, true, true, true},
    };
    for (size_t r = 0; r < DC_COUNTOF(rows); r++)
        for (int t = 0; t < DC_DTYPE__COUNT; t++) {
            if (dc_dtype_is_short((dc_dtype)t)) /* memory */
                continue;
            const bool has = dc_dtype_is_float((dc_dtype)t) ? rows[r].flt
                             : t == DC_BOOL                 ? rows[r].boolean
                                                            : rows[r].integer;
            const bool divides =
                (rows[r].op == DC_OP_DIV || rows[r].op == DC_OP_REM) && !dc_ftype_is_float(t);
            const bool shifts = rows[r].op == DC_OP_SHL || rows[r].op == DC_OP_SHR;
            const dc_dtype to = rows[r].test ? DC_BOOL : (dc_dtype)t;
            for (size_t a = 0; a < DC_COUNTOF(samples) && has; a++)
                for (size_t b = a % 2; b < DC_COUNTOF(samples); b += 2) {
                    const uint64_t in[2] = {pattern_of((dc_dtype)t, samples[a]),
                                            pattern_of((dc_dtype)t, samples[b])};
                    uint64_t got;
                    if (divides && (in[1] == 0 || (dc_ftype_is_signed(t) && in[1] == UINT64_MAX)))
                        continue;
                    if (shifts && in[1] >= (uint64_t)dc_dtype_bits((dc_dtype)t))
                        continue;
                    if (!run_row(rows[r].row, (dc_dtype)t, to, in, &got))
                        return;
                    const uint64_t want = dc_op_eval(rows[r].op, (dc_dtype)t, to, in);
                    if (!CHECK(flat_same(to, got, want)))
                        printf("    %s %s %llx %llx\n", rows[r].row, dc_dtype_name((dc_dtype)t),
                               (unsigned long long)in[0], (unsigned long long)in[1]);
                }
        }
}

/* Of all types to all others; to bool only the lowest bit counts, or whether a float reaches 1. */
static void test_conversions(void)
{
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int to = 0; to < DC_DTYPE__COUNT; to++)
            for (size_t a = 0; a < DC_COUNTOF(samples); a++) {
                const uint64_t in[2] = {pattern_of((dc_dtype)t, samples[a]), 0};
                const bool half = (t == DC_F16 && to == DC_F32) ||
                                  (t == DC_F32 && dc_dtype_is_half((dc_dtype)to));
                if (!half && (dc_ftype_is_short(t) || dc_ftype_is_short(to)))
                    continue;
                uint64_t got, want = dc_bits_cast((dc_dtype)t, (dc_dtype)to, in[0]);
                if (to == DC_BOOL && t != DC_BOOL)
                    want = dc_ftype_is_float(t) ? dc_value_of((dc_dtype)t, in[0]) >= 1 : in[0] & 1;
                if (!run_row("1convert", (dc_dtype)t, (dc_dtype)to, in, &got))
                    return;
                if (!CHECK(flat_same((dc_dtype)to, got, want)))
                    printf("    %s to %s of %llx: %llx\n", dc_dtype_name((dc_dtype)t),
                           dc_dtype_name((dc_dtype)to), (unsigned long long)in[0],
                           (unsigned long long)got);
            }
}

/* Sums of the index type wrap, comparisons and quotients are unsigned; 32 bits and 64. */
static void test_index(void)
{
    static const char form[] = "kernel index (out0: u32[4] out) index %d {\n"
                               "  %%1 = loop begin, end\n"
                               "    %%2 = sub index %%1, 1\n"
                               "    %%3 = lt bool %%2, 5\n"
                               "    %%4 = convert u32 %%3\n"
                               "    store u32 out0[0], %%4\n"
                               "    %%5 = div index %%2, 65536\n"
                               "    %%6 = div index %%5, 32768\n"
                               "    %%7 = convert u32 %%6\n"
                               "    store u32 out0[1], %%7\n"
                               "    %%8 = add index %%2, 3\n"
                               "    %%9 = lt bool %%8, 5\n"
                               "    %%10 = convert u32 %%9\n"
                               "    store u32 out0[%%8], %%10\n"
                               "    %%11 = loop %%2, 1\n" /* from -1: loops have a sign */
                               "      %%12 = convert u32 %%11\n"
                               "      store u32 out0[3], %%12\n"
                               "    end\n"
                               "  end\n"
                               "}\n";
    for (int bits = 32; bits <= 64; bits += 32) {
        char text[sizeof form + 8];
        uint32_t out[4] = {9, 9, 9, 9};
        snprintf(text, sizeof text, form, bits);
        if (!flat_do(text, (void *[]){out}, 1))
            return;
        CHECK_EQ(out[0], 0);
        CHECK_EQ(out[1], bits == 32 ? 1 : 0xffffffff);
        CHECK_EQ(out[2], 1);
        CHECK_EQ(out[3], 0);
    }
}

static void test_float_rows(void)
{
    static const char form[] = "kernel fma (out0: f32[4] out, x0: f32[3]) %s{\n"
                               "  %%1 = load f32 x0[0]\n"
                               "  %%2 = load f32 x0[1]\n"
                               "  %%3 = load f32 x0[2]\n"
                               "  %%4 = fma f32 %%1, %%2, %%3\n"
                               "  store f32 out0[0], %%4\n"
                               "  %%5 = sqrt f32 %%1\n"
                               "  store f32 out0[1], %%5\n"
                               "  %%6 = neg f32 %%1\n"
                               "  store f32 out0[2], %%6\n"
                               "  %%7 = lt bool %%6, %%1\n"
                               "  %%8 = select f32 %%7, 0.1, 0x7fc00001\n"
                               "  store f32 out0[3], %%8\n"
                               "}\n";
    for (int strict = 0; strict < 2; strict++) {
        char text[sizeof form + 8];
        float out[4], x[3] = {1.0f + 0x1p-23f, 1.0f + 0x1p-23f, -1.0f - 0x1p-22f};
        snprintf(text, sizeof text, form, strict ? "strict " : "");
        if (!flat_do(text, (void *[]){out, x}, 1))
            return;
        const float product = x[0] * x[1];
        CHECK_EQ(dc_f32_bits(out[0]), dc_f32_bits(strict ? product + x[2] : 0x1p-46f));
        CHECK_EQ(dc_f32_bits(out[1]), dc_f32_bits(sqrtf(x[0])));
        CHECK_EQ(dc_f32_bits(out[2]), dc_f32_bits(-x[0]));
        CHECK_EQ(dc_f32_bits(out[3]), dc_f32_bits(0.1f));
    }
}

/* Groups of threads ------------------------------------------------------------------------- */

/* Each group adds up 256 numbers in a tree, with a barrier where %s stands. */
static const char tree_form[] =
    "kernel tree (out0: f32[4] out, x0: f32[1024], part: f32[256] group) simt 256 positions 4 {\n"
    "  %%1 = mul index group, 256\n"
    "  %%2 = add index %%1, thread\n"
    "  %%3 = load f32 x0[%%2]\n"
    "  store f32 part[thread], %%3\n"
    "  %s\n"
    "  %%4 = loop 0, 8\n"
    "    %%5 = shr index 128, %%4\n"
    "    %%6 = lt bool thread, %%5\n"
    "    if %%6\n"
    "      %%7 = add index thread, %%5\n"
    "      %%8 = load f32 part[%%7]\n"
    "      %%9 = load f32 part[thread]\n"
    "      %%10 = add f32 %%8, %%9\n"
    "      store f32 part[thread], %%10\n"
    "    end\n"
    "    %s\n"
    "  end\n"
    "  %%11 = eq bool thread, 0\n"
    "  if %%11\n"
    "    %%12 = load f32 part[0]\n"
    "    store f32 out0[group], %%12\n"
    "  end\n"
    "}\n";

static void tree_input(float *x, float *sum)
{
    for (int g = 0; g < 4; g++) {
        sum[g] = 0;
        for (int i = 0; i < 256; i++)
            sum[g] += x[256 * g + i] = (float)((i * 7 + g * 3) % 23 - 9);
    }
}

static void test_tree(void)
{
    char text[sizeof tree_form + 40];
    float out[4], x[1024], sum[4];
    tree_input(x, sum);
    snprintf(text, sizeof text, tree_form, "barrier group", "barrier group");
    if (flat_do(text, (void *[]){out, x}, 4))
        for (int g = 0; g < 4; g++)
            CHECK_EQ(out[g], sum[g]);
    snprintf(text, sizeof text, tree_form, "", "barrier group");
    flat_fails(text, (void *[]){out, x}, 4,
               "store: part[128] races: thread 0 reads it too, with no barrier");
    snprintf(text, sizeof text, tree_form, "barrier group", "");
    flat_fails(text, (void *[]){out, x}, 4, "with no barrier between");
}

/* Barriers of 32 lanes are enough among 32 threads, not among 64. */
static void test_lane_barriers(void)
{
    static const char form[] =
        "kernel lanes (out0: i32[128] out, part: i32[64] group) simt 64 lanes 32 {\n"
        "  %%1 = convert i32 thread\n"
        "  store i32 part[thread], %%1\n"
        "  barrier lanes\n"
        "  %%2 = xor index thread, %d\n"
        "  %%3 = load i32 part[%%2]\n"
        "  barrier lanes\n"
        "  store i32 part[thread], %%3\n"
        "  barrier lanes\n"
        "  %%4 = load i32 part[thread]\n"
        "  %%5 = mul index group, 64\n"
        "  %%6 = add index %%5, thread\n"
        "  store i32 out0[%%6], %%4\n"
        "}\n";
    char text[sizeof form + 8];
    int32_t out[128];
    snprintf(text, sizeof text, form, 5);
    if (flat_do(text, (void *[]){out}, 2))
        for (int i = 0; i < 128; i++)
            CHECK_EQ(out[i], (i % 64) ^ 5);
    snprintf(text, sizeof text, form, 32);
    flat_fails(text, (void *[]){out}, 2,
               "part[32] races: thread 32 writes it too, with no barrier");
}

static const char shuffle_form[] =
    "kernel shuffled (out0: f32[2] out, x0: f32[64], acc: f32[1] local) simt 32 lanes 32 {\n"
    "  %%1 = mul index group, 32\n"
    "  %%2 = add index %%1, thread\n"
    "  %%3 = load f32 x0[%%2]\n"
    "  store f32 acc[0], %%3\n"
    "  %%4 = convert u32 thread\n"
    "  %%5 = loop 0, 5\n"
    "    %%6 = convert u32 %%5\n"
    "    %%7 = shl u32 1, %%6\n"
    "    %%8 = %s u32 %%4, %%7\n"
    "    %%9 = load f32 acc[0]\n"
    "    %%10 = shuffle f32 %%9, %%8\n"
    "    %%11 = add f32 %%9, %%10\n"
    "    store f32 acc[0], %%11\n"
    "  end\n"
    "  %%12 = load f32 acc[0]\n"
    "  %%13 = eq bool thread, 7\n"
    "  if %%13\n"
    "    store f32 out0[group], %%12\n"
    "  end\n"
    "}\n";

static void test_shuffles(void)
{
    char text[sizeof shuffle_form + 8];
    float out[2], x[64], sum[2] = {0, 0};
    for (int i = 0; i < 64; i++)
        sum[i / 32] += x[i] = (float)(i * 5 % 17 - 3);
    snprintf(text, sizeof text, shuffle_form, "xor");
    if (flat_do(text, (void *[]){out, x}, 2)) {
        CHECK_EQ(out[0], sum[0]);
        CHECK_EQ(out[1], sum[1]);
    }
    snprintf(text, sizeof text, shuffle_form, "add");
    flat_fails(text, (void *[]){out, x}, 2, "there is no lane 32");
}

/* Failures ---------------------------------------------------------------------------------- */

static void test_out_of_range(void)
{
    int32_t out[4], x[4] = {0, 1, 2, 3};
    static const char read[] = "kernel over (out0: i32[4] out, x0: i32[4]) {\n"
                               "  %1 = loop begin, end\n"
                               "    %2 = add index %1, 1\n"
                               "    %3 = load i32 x0[%2]\n"
                               "    store i32 out0[%1], %3\n"
                               "  end\n"
                               "}\n";
    flat_fails(read, (void *[]){out, x}, 4, "over:4: load: x0[4] is outside the buffer of 4");
    static const char below[] = "kernel below (out0: i32[4] out, x0: i32[4]) {\n"
                                "  %1 = loop begin, end\n"
                                "    %2 = sub index %1, 2\n"
                                "    %3 = load i32x4 x0[%2]\n"
                                "    store i32 out0[%1], 0\n"
                                "  end\n"
                                "}\n";
    flat_fails(below, (void *[]){out, x}, 4, "below:4: load: x0[-2] is outside");
    static const char local[] = "kernel local (out0: i32[4] out, acc: i32[2] local) simt 4 {\n"
                                "  store i32 acc[thread], 1\n"
                                "}\n";
    flat_fails(local, (void *[]){out}, 1,
               "acc[2] is outside the buffer of 2 elements, position 0, "
               "thread 2");
    static const char skew[] = "kernel skew (out0: i32[4] out, x0: i32[4]) {\n"
                               "  %1 = loop begin, end\n"
                               "    %2 = load i32x2 x0[%1], align 8\n"
                               "  end\n"
                               "}\n";
    flat_fails(skew, (void *[]){out, x}, 3, "x0[1] is not aligned to 8 bytes, position 1");
}

static void test_division(void)
{
    int32_t out[1], x[2] = {INT32_MIN, 0};
    static const char form[] = "kernel division (out0: i32[1] out, x0: i32[2]) {\n"
                               "  %%1 = load i32 x0[0]\n"
                               "  %%2 = load i32 x0[1]\n"
                               "  %%3 = %s i32 %%1, %%2\n"
                               "}\n";
    char text[sizeof form + 8];
    snprintf(text, sizeof text, form, "rem");
    flat_fails(text, (void *[]){out, x}, 1, "divided by 0");
    x[1] = -1;
    snprintf(text, sizeof text, form, "div");
    flat_fails(text, (void *[]){out, x}, 1, "does not fit");
}

/* Work items and groups are in no order; threads of a group are in one between barriers. */
static void test_races(void)
{
    int32_t out[64], x[4] = {0, 1, 2, 3};
    static const char writes[] = "kernel writes (out0: i32[4] out) {\n"
                                 "  %1 = loop begin, end\n"
                                 "    %2 = div index %1, 2\n"
                                 "    store i32 out0[%2], 1\n"
                                 "  end\n"
                                 "}\n";
    flat_fails(writes, (void *[]){out}, 4, "out0[0] races: position 0 writes it too, position 1");
    static const char reads[] = "kernel reads (out0: i32[4] out, x0: i32[4]) {\n"
                                "  %1 = loop begin, end\n"
                                "    %2 = sub index 3, %1\n"
                                "    %3 = load i32 x0[%2]\n"
                                "    store i32 out0[%1], %3\n"
                                "  end\n"
                                "}\n";
    if (flat_do(reads, (void *[]){out, x}, 4))
        CHECK_EQ(out[0], 3);
    flat_fails(reads, (void *[]){x, x}, 4, "x0[1] races: position 1 writes it too, position 2");
    flat_fails(reads, (void *[]){x + 1, x}, 3, "it too"); /* overlapping in part */
    static const char groups[] = "kernel groups (out0: i32[4] inout) simt 4 {\n"
                                 "  %1 = load i32 out0[thread]\n"
                                 "  %2 = add i32 %1, 1\n"
                                 "  store i32 out0[thread], %2\n"
                                 "}\n";
    if (flat_do(groups, (void *[]){x}, 1))
        CHECK_EQ(x[2], 3);
    flat_fails(groups, (void *[]){x}, 2, "out0[0] races: position 0 writes it too, position 1");
    static const char many[] = "kernel many (out0: i32[64] out, x0: i32[4] inout) simt 32 {\n"
                               "  %1 = load i32 x0[0]\n"
                               "  %2 = mul index group, 32\n"
                               "  %3 = add index %2, thread\n"
                               "  store i32 out0[%3], %1\n"
                               "  barrier group\n"
                               "  %4 = eq bool thread, 5\n"
                               "  if %4\n"
                               "    store i32 x0[0], 7\n"
                               "  end\n"
                               "}\n";
    flat_do(many, (void *[]){out, x}, 1);
    flat_fails(many, (void *[]){out, x}, 2, "x0[0] races: position 0 writes it too, position 1");
    static const char bytes[] = "kernel bytes (out0: u8[16] out, x0: i32[4]) {\n"
                                "  %1 = loop begin, end\n"
                                "    %2 = load i32 x0[%1]\n"
                                "    %3 = convert u8 %2\n"
                                "    store u8 out0[%1], %3\n"
                                "  end\n"
                                "}\n";
    flat_fails(bytes, (void *[]){x, x}, 4, "out0[1] races: position 0 reads it too, position 1");
}

/* Two threads copy an element each; then each reads the other's. `between` stands between. */
static dc_flat *exchange(const char *between)
{
    char text[600];
    snprintf(text, sizeof text,
             "kernel swap (out0: i32[2] out, x0: i32[2], s: i32[2] group) simt 2 {\n"
             "  %%1 = load i32 x0[thread]\n"
             "  store_async i32 s[thread], %%1\n"
             "%s"
             "  %%2 = sub index 1, thread\n"
             "  %%3 = load i32 s[%%2]\n"
             "  store i32 out0[thread], %%3\n"
             "}\n",
             between);
    return flat_of(text);
}

/* Async stores happen at the wait for their group, and are seen behind a barrier after it. */
static void test_async(void)
{
    static const char *const late[] = {
        "  commit\n  barrier group\n", "  wait 0\n  commit\n  barrier group\n",
        "  commit\n  wait 1\n  barrier group\n", "  commit\n  wait 0\n  commit\n  barrier group\n"};
    static const char *const racing[] = {"  commit\n  wait 0\n",
                                         "  commit\n  barrier group\n  wait 0\n"};
    const int32_t x[2] = {5, 6};
    int32_t out[2];
    for (size_t i = 0; i < DC_COUNTOF(late); i++) {
        dc_flat *f = exchange(late[i]);
        CHECK(flat_runs(f, (void *[]){out, (void *)x}, 1));
        const bool right = out[0] == 6 && out[1] == 5;
        CHECK_EQ(right, i == 3);
        CHECK(right || (out[0] == -1 && out[1] == -1));
        dc_flat_free(f);
    }
    for (size_t i = 0; i < DC_COUNTOF(racing); i++) {
        dc_flat *f = exchange(racing[i]);
        CHECK(!flat_runs(f, (void *[]){out, (void *)x}, 1));
        flat_says("races: thread");
        dc_flat_free(f);
    }
}

/* What the verifier would refuse: half of the threads come to a barrier. */
static void test_divergence(void)
{
    static const char text[] = "kernel half (out0: i32[4] out) simt 4 {\n"
                               "  %1 = lt bool thread, 2\n"
                               "  if %1\n"
                               "    barrier group\n"
                               "  end\n"
                               "  barrier group\n"
                               "}\n";
    const char *at = text;
    int32_t out[4];
    dc_flat *f;
    CHECK(dc_flat_parse(&flat_job, &at, &f) == DC_OK);
    CHECK(dc_flat_check(&flat_job, f) == DC_E_BUG);
    flat_says("barrier at 4: not all threads of the group come by");
    CHECK(!flat_runs(f, (void *[]){out}, 1));
    flat_says("half:4: barrier: not all threads come by; this one does not, position 0, thread 2");
    dc_flat_free(f);
}

static void test_too_many(void)
{
    float out[100], x[100] = {0}, y = 3;
    dc_flat *f = flat_of(map_text);
    CHECK(dc_flat_run(&flat_job, f, (void *[]){out, x, &y}, 0, (int64_t)1 << 40) == DC_E_DEVICE);
    flat_says("too many");
    dc_flat_free(f);
}

int main(void)
{
    flat_open();
    test_map();
    test_memory();
    test_rows();
    test_conversions();
    test_index();
    test_float_rows();
    test_tree();
    test_lane_barriers();
    test_shuffles();
    test_out_of_range();
    test_division();
    test_races();
    test_async();
    test_divergence();
    test_too_many();
    flat_close();
    return t_done();
}
