/*
 * Floats of 16 and 8 bits: every pattern, every tie between two of them and what lies beside it, in core/base/bits.c,
 * in the interpreter and in kernels on cpu, there with the machine's conversions and without.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include <math.h>

#include "tests/unit/ew_rows.h"

enum { PATTERNS = 65536 }; /* most of one format */

static const dc_dtype shorts[] = {DC_F16, DC_BF16, DC_F8E4M3FN, DC_F8E5M2};

enum { SHORTS = DC_COUNTOF(shorts) };

static uint32_t patterns_of(dc_dtype t)
{
    return 1u << dc_dtype_bits(t);
}

/* The value by the definition of the format: IEEE 754, and the OCP 8-bit floating point specification. */
static double by_definition(dc_dtype t, uint32_t p)
{
    static const struct {
        dc_dtype t;
        int width, fraction, bias;
        bool finite; /* the largest exponent is one of numbers; all ones are NaN */
    } formats[] = {{DC_F16, 16, 10, 15, false},
                   {DC_BF16, 16, 7, 127, false},
                   {DC_F8E4M3FN, 8, 3, 7, true},
                   {DC_F8E5M2, 8, 2, 15, false}};
    int i = 0;
    while (formats[i].t != t)
        i++;
    const int fraction = formats[i].fraction, bias = formats[i].bias;
    const int most = (1 << (formats[i].width - 1 - fraction)) - 1;
    const int exponent = (int)(p >> fraction) & most;
    const uint32_t size = p & ((1u << (formats[i].width - 1)) - 1);
    const double part = (double)(p & ((1u << fraction) - 1)), sign = size != p ? -1 : 1;
    const double one = ldexp(1, fraction);
    if (formats[i].finite && size == (1u << (formats[i].width - 1)) - 1)
        return NAN;
    if (!formats[i].finite && exponent == most)
        return part != 0 ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? ldexp(part, 1 - bias - fraction)
                                 : ldexp(one + part, exponent - bias - fraction));
}

/* Between the finite p and the next larger in size; behind the last one as if there were one more. */
static double tie(dc_dtype t, uint32_t p)
{
    const double v = by_definition(t, p);
    const double after = by_definition(t, p + 1), before = by_definition(t, p - 1);
    return !isfinite(after) ? v + (v - before) / 2 : v + (after - v) / 2;
}

static bool is_finite(dc_dtype t, uint32_t p)
{
    return isfinite(by_definition(t, p));
}

/* Patterns ----------------------------------------------------------------------------------- */

static void test_patterns(dc_dtype t)
{
    int wrong = 0;
    for (uint32_t p = 0; p < patterns_of(t); p++) {
        const double v = by_definition(t, p), got = dc_value_of(t, p);
        const uint16_t word = (uint16_t)p;
        uint16_t memory = 0;
        wrong += isnan(v) ? !isnan(got) : got != v || signbit(got) != signbit(v);
        wrong += isnan(v) ? !isnan(dc_value_of(t, dc_bits_of(t, v))) : dc_bits_of(t, v) != p;
        dc_bits_store(t, &memory, dc_bits_load(t, &word));
        wrong += memory != word;
        wrong += !isnan(v) && dc_bits_cast(t, DC_F32, p) != dc_f32_bits((float)v);
    }
    CHECK_EQ(wrong, 0);
}

static void test_ties(dc_dtype t)
{
    int wrong = 0;
    for (uint32_t p = 0; p < patterns_of(t); p++) {
        if (!is_finite(t, p))
            continue;
        const double mid = tie(t, p);
        const float narrow = (float)mid;
        const uint32_t even = p + (p & 1);
        wrong += dc_bits_of(t, mid) != even;
        wrong += dc_bits_of(t, nextafter(mid, 0)) != p;
        wrong += dc_bits_of(t, nextafter(mid, mid * 2)) != p + 1;
        wrong += dc_bits_cast(DC_F32, t, dc_f32_bits(narrow)) != even;
        wrong += dc_bits_cast(DC_F32, t, dc_f32_bits(nextafterf(narrow, 0))) != p;
        wrong += dc_bits_cast(DC_F32, t, dc_f32_bits(nextafterf(narrow, narrow * 2))) != p + 1;
    }
    CHECK_EQ(wrong, 0);
}

static void test_integers(void)
{
    for (int64_t i = -70000; i <= 70000; i++)
        for (int k = 0; k < SHORTS; k++)
            CHECK(dc_bits_cast(DC_I32, shorts[k], (uint64_t)i) == dc_bits_of(shorts[k], (double)i));
    const uint64_t one = (uint64_t)1 << 60, step = (uint64_t)1 << 53, half = step / 2;
    const uint64_t bits = dc_bits_of(DC_BF16, 0x1p60); /* its pattern is even */
    CHECK_EQ(dc_bits_cast(DC_U64, DC_BF16, one + half - 1), bits);
    CHECK_EQ(dc_bits_cast(DC_U64, DC_BF16, one + half), bits);
    CHECK_EQ(dc_bits_cast(DC_U64, DC_BF16, one + half + 1), bits + 1);
    CHECK_EQ(dc_bits_cast(DC_U64, DC_BF16, one + step + half), bits + 2);
    CHECK_EQ(dc_bits_cast(DC_I64, DC_BF16, 0 - (one + half + 1)), (bits + 1) | 0x8000);
    CHECK_EQ(dc_bits_cast(DC_U64, DC_BF16, UINT64_MAX), dc_bits_of(DC_BF16, 0x1p64));
    CHECK_EQ(dc_bits_cast(DC_U64, DC_F16, UINT64_MAX), 0x7c00);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F16, (uint64_t)-65520), 0xfc00);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F16, 65519), 0x7bff);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F8E4M3FN, 464), 0x7e);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F8E4M3FN, (uint64_t)-465), 0xff);
    CHECK_EQ(dc_bits_cast(DC_U64, DC_F8E4M3FN, UINT64_MAX), 0x7f);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F8E5M2, 61439), 0x7b);
    CHECK_EQ(dc_bits_cast(DC_I32, DC_F8E5M2, (uint64_t)-61440), 0xfc);
}

/* The interpreter ---------------------------------------------------------------------------- */

static dc_job job;

static void evaluate(const char *text, dc_eval_mode mode, const void *in, void *out)
{
    dc_module *m = NULL;
    if (CHECK_EQ(dc_module_parse(&job, text, &m), DC_OK))
        CHECK_EQ(
            dc_eval(&job, m->func.at[0], mode, (const void *const[]){in}, (void *const[]){out}),
            DC_OK);
    if (m != NULL)
        dc_module_free(m);
}

/* Every pattern to f32 and back. */
static void test_eval(dc_dtype t)
{
    static uint16_t in[PATTERNS], out[PATTERNS];
    const uint32_t n = patterns_of(t);
    const size_t size = dc_dtype_size(t);
    char text[200];
    snprintf(text, sizeof text,
             "func f(%%1: %s[%u]) {\n  %%2 = cast %%1 : f32[%u]\n"
             "  %%3 = cast %%2 : %s[%u]\n  return %%3\n}\n",
             dc_dtype_name(t), n, n, dc_dtype_name(t), n);
    for (uint32_t p = 0; p < n; p++)
        dc_bits_store(t, (char *)in + p * size, p);
    evaluate(text, DC_EVAL_ROUND, in, out);
    int wrong = 0;
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t got = (uint32_t)dc_bits_load(t, (char *)out + p * size);
        wrong += isnan(by_definition(t, p)) ? !isnan(by_definition(t, got)) : got != p;
    }
    CHECK_EQ(wrong, 0);
}

/* Sums have more digits than what they add up: 1 + 1 + ... stays at 2048, 256, 16 or 8 otherwise. */
static void test_sums(dc_dtype t)
{
    static const dc_eval_mode modes[2] = {DC_EVAL_ROUND, DC_EVAL_STRICT};
    static uint16_t in[4096];
    const int n = dc_dtype_is_half(t) ? 4096 : 256;
    char text[200];
    snprintf(text, sizeof text,
             "func f(%%1: %s[%d]) {\n  %%2 = sum %%1 {1} : %s[]\n  return %%2\n}\n",
             dc_dtype_name(t), n, dc_dtype_name(t));
    for (int i = 0; i < n; i++)
        dc_bits_store(t, (char *)in + (size_t)i * dc_dtype_size(t), dc_bits_of(t, 1));
    for (int k = 0; k < 2; k++) {
        uint16_t out = 0;
        evaluate(text, modes[k], in, &out);
        CHECK(dc_value_of(t, dc_bits_load(t, &out)) == n);
    }
}

/* Kernels ------------------------------------------------------------------------------------ */

/* What is cast: all patterns of a short float, or ties and their neighbours. */
static uint64_t input(dc_dtype from, dc_dtype to, int i)
{
    if (dc_dtype_is_short(from))
        return (uint32_t)i;
    const uint32_t p = (uint32_t)(i / 3) & (patterns_of(to) - 1);
    const double mid = is_finite(to, p) ? tie(to, p) : by_definition(to, p);
    const int beside = i % 3 - 1;
    if (dc_dtype_is_float(from))
        return dc_bits_of(from, mid) + (isfinite(mid) ? (uint64_t)(int64_t)beside : 0);
    return dc_bits_canonical(from, dc_bits_of(from, mid) + (uint64_t)(int64_t)beside);
}

static void add(runner *r, oneop *c, dc_dtype from, dc_dtype to)
{
    *c = (oneop){.op = DC_OP_CAST, .t = from, .to = to, .nin = 1};
    c->count = (int)(dc_dtype_is_short(from) ? patterns_of(from) : 3 * patterns_of(to));
    c->in[0] = malloc((size_t)c->count * sizeof *c->in[0]);
    for (int i = 0; i < c->count; i++)
        c->in[0][i] = input(from, to, i);
    for (int v = 0; v < 3; v++) {
        c->kernel[v] = -1;
        if (v == 2)
            continue;
        c->nest[v] = nest_of(c, v == 0, false);
        c->kernel[v] = runner_add(r, c->nest[v], 0);
    }
}

static void test_kernels(bool portable)
{
    static const dc_dtype wide[] = {DC_F32, DC_F64, DC_I32, DC_I64, DC_U32, DC_U64};
    static oneop cases[SHORTS * (DC_DTYPE__COUNT + DC_COUNTOF(wide))];
    runner r;
    double worst = 0;
    int n = 0;
    if (!runner_open(&r))
        return;
    r.portable = portable;
    for (int k = 0; k < SHORTS; k++) {
        for (int to = 0; to < DC_DTYPE__COUNT; to++)
            if (to != (int)shorts[k])
                add(&r, &cases[n++], shorts[k], (dc_dtype)to);
        for (size_t i = 0; i < DC_COUNTOF(wide); i++)
            add(&r, &cases[n++], wide[i], shorts[k]);
    }
    const bool built = runner_build(&r);
    for (int i = 0; i < n; i++) {
        if (built)
            run_case(&r, &cases[i], &worst);
        free(cases[i].in[0]);
        for (int v = 0; v < 2; v++)
            dc_kernel_free(cases[i].nest[v]);
    }
    runner_close(&r);
}

int main(void)
{
    static dc_opts opts;
    static dc_log log;
    const char *bad;
    dc_opts_init(&opts, &bad);
    dc_job_init(&job, &opts, &log);
    for (int k = 0; k < SHORTS; k++) {
        test_patterns(shorts[k]);
        test_ties(shorts[k]);
        test_eval(shorts[k]);
        test_sums(shorts[k]);
    }
    test_integers();
    dc_job_fini(&job);
    test_kernels(false);
    test_kernels(true);
    return t_done();
}
