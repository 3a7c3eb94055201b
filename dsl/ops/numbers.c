/*
 * Functions of numbers that are made of rows: of one, two or three floats, of the bits of integers; tests that are not
 * exact. No step overflows where the whole does not, and gradients of every order are those of the whole: choices
 * that a derivative could see are made by `where`, of values that do no harm where they are not chosen.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>

static const double pi = 3.14159265358979324;

static dc_dtype dtype_of(dc_val a)
{
    return (dc_dtype)a.type.dtype;
}

/* a op v */
static dc_status by(dc_job *j, dc_func *f, dc_op op, dc_val a, double v, dc_val *out)
{
    dc_val k;
    DC_TRY(dc_ops_number(j, f, a, v, &k));
    return dc_ops_2(j, f, op, a, k, out);
}

static dc_status where_number(dc_job *j, dc_func *f, dc_val m, double v, dc_val a, dc_val *out)
{
    dc_val k;
    DC_TRY(dc_ops_number(j, f, a, v, &k));
    return dc_ops_where(j, f, m, k, a, out);
}

static dc_status is_infinite(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, a, out));
    return by(j, f, DC_OP_EQ, *out, INFINITY, out);
}

/* ---- of one ----------------------------------------------------------------------------------- */

static dc_status times(dc_job *j, dc_func *f, const dc_val *in, double v, dc_val *out)
{
    dc_val a;
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    return by(j, f, DC_OP_MUL, a, v, out);
}

static dc_status build_deg2rad(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    DC_UNUSED(arg);
    return times(j, f, in, pi / 180, out);
}

static dc_status build_rad2deg(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    DC_UNUSED(arg);
    return times(j, f, in, 180 / pi, out);
}

/* a less a without its fraction, of the sign of a */
static dc_status build_frac(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val whole, r;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, in[0], &whole));
    DC_TRY(dc_ops_1(j, f, DC_OP_FLOOR, whole, &whole));
    DC_TRY(dc_ops_2(j, f, DC_OP_COPYSIGN, whole, in[0], &whole));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, whole, &whole));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, in[0], whole, &r));
    return dc_ops_2(j, f, DC_OP_COPYSIGN, r, in[0], out);
}

/* The series of sin(pi r) / (pi r) - 1 in r^2, of r up to 1/2; -2 r^2, which is exact, is apart from it. */
static dc_status sinc_series(dc_job *j, dc_func *f, dc_val square, dc_val *out)
{
    const int terms = dtype_of(square) == DC_F64 ? 12 : 7;
    double c[12] = {1};
    dc_val twice;
    for (int i = 1; i < terms; i++)
        c[i] = -c[i - 1] * pi * pi / (2 * i * (2 * i + 1));
    c[1] += 2;
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, square, square, &twice));
    DC_TRY(dc_ops_number(j, f, square, c[terms - 1], out));
    for (int i = terms - 2; i > 0; i--) {
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, square, out));
        DC_TRY(by(j, f, DC_OP_ADD, *out, c[i], out));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, square, out));
    return dc_ops_2(j, f, DC_OP_SUB, *out, twice, out);
}

/*
 * sin(pi a) / (pi a): with r = a - n, n the nearest integer, (-1)^n r / a times the series of r. Where n is 0 the quotient is
 * left out, of which a derivative is the difference of large numbers. r of an infinite a is NaN.
 */
static dc_status build_sinc(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val small, safe, n, r, half, odd, minus, square;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, in[0], &small));
    DC_TRY(by(j, f, DC_OP_LE, small, 0.5, &small));
    DC_TRY(where_number(j, f, small, 1, in[0], &safe));
    DC_TRY(dc_ops_1(j, f, DC_OP_ROUND, in[0], &n));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, n, &n));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, in[0], n, &r));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, r, r, &square));
    DC_TRY(sinc_series(j, f, square, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, r, safe, &r));
    DC_TRY(dc_ops_1(j, f, DC_OP_NEG, r, &minus));
    DC_TRY(by(j, f, DC_OP_MUL, n, 0.5, &half)); /* is n odd? */
    DC_TRY(dc_ops_1(j, f, DC_OP_FLOOR, half, &odd));
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, half, odd, &odd));
    DC_TRY(dc_ops_where(j, f, odd, minus, r, &r));
    DC_TRY(where_number(j, f, small, 1, r, &r));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, r, out));
    return dc_ops_2(j, f, DC_OP_ADD, r, *out, out);
}

/* log(a / (1 - a)); near 1/2, where that is 0, 2 atanh(2 a - 1) */
static dc_status build_logit(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val middle, twice, half, near, far, rest, one;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[0], 1, &one));
    DC_TRY(dc_ops_number(j, f, in[0], 0.5, &half));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, in[0], half, &middle));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, middle, &middle));
    DC_TRY(by(j, f, DC_OP_LT, middle, 0.25, &middle));
    DC_TRY(dc_ops_where(j, f, middle, in[0], half, &near));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, near, near, &twice));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, twice, one, &near));
    DC_TRY(dc_ops_1(j, f, DC_OP_ATANH, near, &near));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, near, near, &near));
    DC_TRY(dc_ops_where(j, f, middle, half, in[0], &far));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, one, far, &rest));
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, far, rest, &far));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, far, &far));
    return dc_ops_where(j, f, middle, near, far, out);
}

/* ---- of two ----------------------------------------------------------------------------------- */

/* The larger one, and what the smaller one is less, 0 where both are the same infinity. */
static dc_status apart(dc_job *j, dc_func *f, const dc_val *in, dc_val *large, dc_val *less)
{
    dc_val order, small, infinite, same;
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, in[0], in[1], &order));
    DC_TRY(dc_ops_where(j, f, order, in[1], in[0], large));
    DC_TRY(dc_ops_where(j, f, order, in[0], in[1], &small));
    DC_TRY(is_infinite(j, f, *large, &infinite));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, small, *large, &same));
    DC_TRY(dc_ops_2(j, f, DC_OP_AND, infinite, same, &infinite));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, small, *large, less));
    return where_number(j, f, infinite, 0, *less, less);
}

/* log(exp(a) + exp(b)) */
static dc_status build_logaddexp(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    dc_val large, e;
    DC_UNUSED(arg);
    DC_TRY(apart(j, f, in, &large, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG1P, e, &e));
    return dc_ops_2(j, f, DC_OP_ADD, large, e, out);
}

/* log2(1 + 2^d) of f32 for d from -2 to 0: 1 + d / 2 + d^2 P(d^2), which is even but for d / 2 */
static dc_status near_log2(dc_job *j, dc_func *f, dc_val d, dc_val *out)
{
    static const double coef[] = {-2.00131187017e-9, 7.40082266279e-8,  -2.0161270938e-6,
                                  5.5547708049e-5,   -0.00173450045705, 0.0866433973985};
    dc_val square, half;
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, d, d, &square));
    DC_TRY(dc_ops_number(j, f, d, coef[0], out));
    for (size_t i = 1; i < DC_COUNTOF(coef); i++) {
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, square, out));
        DC_TRY(by(j, f, DC_OP_ADD, *out, coef[i], out));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, square, out));
    DC_TRY(by(j, f, DC_OP_MUL, d, 0.5, &half));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, half, *out, out));
    return by(j, f, DC_OP_ADD, *out, 1, out);
}

/* log2(2^a + 2^b) */
static dc_status build_logaddexp2(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    dc_val large, less, e, far, near;
    DC_UNUSED(arg);
    DC_TRY(apart(j, f, in, &large, &less));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP2, less, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG1P, e, &e));
    DC_TRY(by(j, f, DC_OP_MUL, e, 1.44269504088896341, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, e,
                    &e)); /* as it is: a product by itself, which is 1 where a = b */
    if (dtype_of(e) == DC_F32) {
        DC_TRY(by(j, f, DC_OP_LT, less, -2, &far));
        DC_TRY(where_number(j, f, far, 0, less, &near));
        DC_TRY(near_log2(j, f, near, &near));
        DC_TRY(dc_ops_where(j, f, far, e, near, &e));
    }
    return dc_ops_2(j, f, DC_OP_ADD, large, e, out);
}

/* a log(b), 0 where a is 0 and b no NaN */
static dc_status build_xlogy(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val none, low, infinite, b;
    DC_UNUSED(arg);
    DC_TRY(by(j, f, DC_OP_LE, in[1], 0, &low));
    DC_TRY(by(j, f, DC_OP_EQ, in[1], INFINITY, &infinite));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, low, infinite, &low));
    DC_TRY(by(j, f, DC_OP_EQ, in[0], 0, &none));
    DC_TRY(dc_ops_2(j, f, DC_OP_AND, none, low, &none));
    DC_TRY(where_number(j, f, none, 1, in[1], &b));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, b, &b));
    return dc_ops_2(j, f, DC_OP_MUL, in[0], b, out);
}

/*
 * sqrt(a^2 + b^2) of a and b by the larger magnitude, which only scales, so no derivative goes through it. Infinite where
 * one is, also beside NaN; the gradient at (0, 0) is 0.
 */
static dc_status build_hypot(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val size[2], part[2], scale, odd, test, infinite, none;
    DC_UNUSED(arg);
    for (int i = 0; i < 2; i++)
        DC_TRY(dc_ops_1(j, f, DC_OP_ABS, in[i], &size[i]));
    DC_TRY(dc_ops_2(j, f, DC_OP_MAX, size[0], size[1], &scale));
    DC_TRY(by(j, f, DC_OP_EQ, scale, 0, &odd));
    DC_TRY(by(j, f, DC_OP_EQ, scale, INFINITY, &test));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, odd, test, &odd));
    DC_TRY(where_number(j, f, odd, 1, scale, &scale));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, scale, &scale));
    for (int i = 0; i < 2; i++) {
        DC_TRY(dc_ops_2(j, f, DC_OP_DIV, in[i], scale, &part[i]));
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, part[i], part[i], &part[i]));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, part[0], part[1], out));
    DC_TRY(by(j, f, DC_OP_EQ, *out, 0, &none));
    DC_TRY(where_number(j, f, none, 1, *out, out));
    DC_TRY(dc_ops_1(j, f, DC_OP_SQRT, *out, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, scale, out));
    DC_TRY(where_number(j, f, none, 0, *out, out));
    DC_TRY(by(j, f, DC_OP_EQ, size[0], INFINITY, &infinite));
    DC_TRY(by(j, f, DC_OP_EQ, size[1], INFINITY, &test));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, infinite, test, &infinite));
    return where_number(j, f, infinite, INFINITY, *out, out);
}

/* 0 below 0, 1 above, b at 0; NaN stays */
static dc_status build_heaviside(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    dc_val test, rest;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, in[0], &rest));
    DC_TRY(by(j, f, DC_OP_EQ, rest, 0, &test));
    DC_TRY(dc_ops_where(j, f, test, in[1], rest, out));
    if (dc_dtype_kind(dtype_of(in[0])) != DC_KIND_UINT) {
        DC_TRY(by(j, f, DC_OP_LT, rest, 0, &test));
        DC_TRY(where_number(j, f, test, 0, *out, out));
    }
    DC_TRY(dc_ops_number(j, f, rest, 0, &test));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, test, rest, &test));
    return where_number(j, f, test, 1, *out, out);
}

/* a + w (b - a), or b - (b - a) (1 - w) from a half on, so that 1 gives b */
static dc_status build_lerp(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val apart_by, near, far, rest, one, test;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[2], 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, in[1], in[0], &apart_by));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, in[2], apart_by, &near));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, in[0], near, &near));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, one, in[2], &rest));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, apart_by, rest, &far));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, in[1], far, &far));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, in[2], &test));
    DC_TRY(by(j, f, DC_OP_LT, test, 0.5, &test));
    return dc_ops_where(j, f, test, near, far, out);
}

/* ---- logic of anything: what is not 0 is true ------------------------------------------------- */

static dc_status is_true(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    *out = a;
    return dtype_of(a) == DC_BOOL ? DC_OK : by(j, f, DC_OP_NE, a, 0, out);
}

static dc_status logical(dc_job *j, dc_func *f, dc_op op, const dc_val *in, dc_val *out)
{
    dc_val a, b;
    DC_TRY(is_true(j, f, in[0], &a));
    DC_TRY(is_true(j, f, in[1], &b));
    return dc_ops_2(j, f, op, a, b, out);
}

static dc_status build_and(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return logical(j, f, DC_OP_AND, in, out);
}

static dc_status build_or(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return logical(j, f, DC_OP_OR, in, out);
}

static dc_status build_xor(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return logical(j, f, DC_OP_XOR, in, out);
}

static dc_status build_not(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val a;
    DC_UNUSED(arg);
    DC_TRY(is_true(j, f, in[0], &a));
    return dc_ops_1(j, f, DC_OP_NOT, a, out);
}

/* ---- bits ------------------------------------------------------------------------------------- */

/* The number of bits that are set, of u32. */
static dc_status count_bits(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    dc_val part;
    DC_TRY(by(j, f, DC_OP_SHR, a, 1, &part));
    DC_TRY(by(j, f, DC_OP_AND, part, 0x55555555, &part));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, part, out)); /* in pairs, fours, bytes */
    DC_TRY(by(j, f, DC_OP_SHR, *out, 2, &part));
    DC_TRY(by(j, f, DC_OP_AND, part, 0x33333333, &part));
    DC_TRY(by(j, f, DC_OP_AND, *out, 0x33333333, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, *out, part, out));
    DC_TRY(by(j, f, DC_OP_SHR, *out, 4, &part));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, *out, part, out));
    DC_TRY(by(j, f, DC_OP_AND, *out, 0x0f0f0f0f, out));
    DC_TRY(by(j, f, DC_OP_MUL, *out, 0x01010101, out)); /* their sum in the highest one */
    return by(j, f, DC_OP_SHR, *out, 24, out);
}

/* 32 bits at a time, lowest first, without the sign extended; returns how many. NULL: needs an integer. */
static dc_status words_of(dc_job *j, dc_func *f, dc_val a, dc_val *word, int *n)
{
    static const dc_dtype of_width[4] = {DC_U8, DC_U16, DC_U32, DC_U64};
    const int width = dc_dtype_bits(dtype_of(a));
    *n = 1;
    if (dc_dtype_is_float(dtype_of(a)) || dtype_of(a) == DC_BOOL) /* told of the operand as it is */
        return dc_ops_2(j, f, DC_OP_SHR, a, a, &word[0]);
    DC_TRY(dc_build_cast(j, f, a,
                         of_width[width == 8    ? 0
                                  : width == 16 ? 1
                                  : width == 32 ? 2
                                                : 3],
                         &a));
    DC_TRY(dc_build_cast(j, f, a, DC_U32, &word[0]));
    if (width < 64)
        return DC_OK;
    *n = 2;
    DC_TRY(by(j, f, DC_OP_SHR, a, 32, &word[1]));
    return dc_build_cast(j, f, word[1], DC_U32, &word[1]);
}

static dc_status build_popcount(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    dc_val word[2];
    int n;
    DC_UNUSED(arg);
    DC_TRY(words_of(j, f, in[0], word, &n));
    for (int i = 0; i < n; i++)
        DC_TRY(count_bits(j, f, word[i], &word[i]));
    if (n == 2)
        DC_TRY(dc_ops_2(j, f, DC_OP_ADD, word[0], word[1], &word[0]));
    return dc_build_cast(j, f, word[0], dtype_of(in[0]), out);
}

/* The zeros before the first bit of u32: those that are left when it is set in all places behind it, too. */
static dc_status leading_zeros(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    for (int step = 1; step < 32; step *= 2) {
        dc_val part;
        DC_TRY(by(j, f, DC_OP_SHR, a, step, &part));
        DC_TRY(dc_ops_2(j, f, DC_OP_OR, a, part, &a));
    }
    DC_TRY(dc_ops_1(j, f, DC_OP_NOT, a, &a));
    return count_bits(j, f, a, out);
}

static dc_status build_clz(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val word[2], test, sum;
    const int width = dc_dtype_bits(dtype_of(in[0]));
    int n;
    DC_UNUSED(arg);
    DC_TRY(words_of(j, f, in[0], word, &n));
    for (int i = 0; i < n; i++)
        DC_TRY(leading_zeros(j, f, word[i], &word[i]));
    if (n == 2) {
        DC_TRY(by(j, f, DC_OP_EQ, word[1], 32, &test));
        DC_TRY(by(j, f, DC_OP_ADD, word[0], 32, &sum));
        DC_TRY(dc_ops_where(j, f, test, sum, word[1], &word[0]));
    } else if (width < 32) {
        DC_TRY(by(j, f, DC_OP_SUB, word[0], 32 - width, &word[0]));
    }
    return dc_build_cast(j, f, word[0], dtype_of(in[0]), out);
}

/* ---- with options ----------------------------------------------------------------------------- */

typedef struct closeness {
    double relative, absolute;
    bool nan;
} closeness;

/* a is b, or |a - b| <= absolute + relative |b|; integers and bool as f64 */
static dc_status build_isclose(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const closeness *c = arg;
    dc_val a = in[0], b = in[1], same, off, room, finite, nan;
    if (dtype_of(a) == dtype_of(b) && !dc_dtype_is_float(dtype_of(a))) {
        DC_TRY(dc_build_cast(j, f, in[0], DC_F64, &a));
        DC_TRY(dc_build_cast(j, f, in[1], DC_F64, &b));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, in[0], in[1], &same));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, b, &off));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, off, &off));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, b, &room));
    DC_TRY(by(j, f, DC_OP_MUL, room, c->relative, &room));
    DC_TRY(by(j, f, DC_OP_ADD, room, c->absolute, &room));
    DC_TRY(by(j, f, DC_OP_LT, off, INFINITY, &finite));
    DC_TRY(dc_ops_2(j, f, DC_OP_LE, off, room, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_AND, *out, finite, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_OR, *out, same, out));
    if (!c->nan)
        return DC_OK;
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, a, a, &nan));
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, b, b, &same));
    DC_TRY(dc_ops_2(j, f, DC_OP_AND, nan, same, &nan));
    return dc_ops_2(j, f, DC_OP_OR, *out, nan, out);
}

static dc_status build_allclose(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    DC_TRY(build_isclose(j, f, arg, in, out));
    return dc_build_reduce(j, f, DC_OP_MINR, *out, ((uint32_t)1 << out->type.rank) - 1, false, out);
}

/* a:isclose(b, { rtol = 1e-5, atol = 1e-8, equal_nan = false }) */
static int close_to(lua_State *L, const char *name, dc_build_fn *build)
{
    dc_dsl *d = dc_dsl_of(L);
    closeness c = {1e-5, 1e-8, false};
    lua_settop(L, 3);
    dc_args_options(L, d, 3, name, (const char *const[]){"rtol", "atol", "equal_nan", NULL});
    c.relative = dc_args_option(L, d, 3, name, "rtol", c.relative);
    c.absolute = dc_args_option(L, d, 3, name, "atol", c.absolute);
    if (!(c.relative >= 0 && c.absolute >= 0))
        dc_error_raisef(L, d, DC_ERR_ARG, name, "rtol and atol are not negative");
    if (lua_type(L, 3) == LUA_TTABLE && lua_getfield(L, 3, "equal_nan") != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TBOOLEAN)
            dc_error_raisef(L, d, DC_ERR_ARG, name, "equal_nan is true or false, not %s",
                            dc_handle_describe(L, lua_gettop(L)));
        c.nan = lua_toboolean(L, -1);
    }
    dc_apply a = {.build = build, .arg = &c, .once = true, .pairs = true};
    dc_apply_operands(L, d, &a, name, (const int[]){1, 2}, 2);
    dc_apply_run(L, d, &a);
    return 1;
}

static int l_isclose(lua_State *L)
{
    return close_to(L, "isclose", build_isclose);
}

/* A boolean, for conditions; where values are not computed nothing is known to differ. */
static int l_allclose(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    close_to(L, "allclose", build_allclose);
    dc_handle *h = dc_handle_check(L, d, lua_gettop(L), "allclose");
    if (h->kind == DC_HANDLE_TRACED) {
        const dc_operand in = {.h = h, .role = "of", .type = *dc_handle_type(h)};
        dc_error_fact(
            L, d, DC_ERR_NO_VALUE,
            &(dc_fact){.op = "allclose", .type = {in.type}, .word = {dc_trace_current(L, d)->name}},
            &(dc_blame){.in = &in, .n = 1, .hint = "a:isclose(b):all() is a tensor"});
    }
    if (d->watch != NULL) {
        lua_pushboolean(L, 1);
        return 1;
    }
    bool all;
    memcpy(&all, dc_handle_read(L, d, h, "allclose"), sizeof all);
    lua_pushboolean(L, all);
    return 1;
}

/* What stands for NaN, infinity, -infinity. */
typedef struct stand_ins {
    double nan, above, below;
    bool has_above, has_below; /* else the largest and the smallest finite number */
} stand_ins;

static dc_status build_nan_to_num(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    const stand_ins *s = arg;
    const dc_dtype t = dtype_of(in[0]);
    dc_val test;
    if (!dc_dtype_is_float(t))
        return dc_ops_2(j, f, DC_OP_MAX, in[0], in[0], out);
    const double most = dc_value_of(t, dc_bits_infinity(t) - 1);
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, in[0], in[0], &test));
    DC_TRY(where_number(j, f, test, s->nan, in[0], out));
    DC_TRY(by(j, f, DC_OP_EQ, in[0], INFINITY, &test));
    DC_TRY(where_number(j, f, test, s->has_above ? s->above : most, *out, out));
    DC_TRY(by(j, f, DC_OP_EQ, in[0], -INFINITY, &test));
    return where_number(j, f, test, s->has_below ? s->below : -most, *out, out);
}

static bool has(lua_State *L, int idx, const char *name)
{
    const bool found = lua_type(L, idx) == LUA_TTABLE && lua_getfield(L, idx, name) != LUA_TNIL;
    return found;
}

/* x:nan_to_num { nan = 0, posinf = .., neginf = .. } */
static int l_nan_to_num(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const char name[] = "nan_to_num";
    lua_settop(L, 2);
    dc_handle_check(L, d, 1, name);
    dc_args_options(L, d, 2, name, (const char *const[]){"nan", "posinf", "neginf", NULL});
    stand_ins s = {.has_above = has(L, 2, "posinf"), .has_below = has(L, 2, "neginf")};
    s.nan = dc_args_option(L, d, 2, name, "nan", 0);
    s.above = dc_args_option(L, d, 2, name, "posinf", 0);
    s.below = dc_args_option(L, d, 2, name, "neginf", 0);
    lua_settop(L, 2);
    dc_apply a = {.build = build_nan_to_num, .arg = &s};
    dc_apply_operands(L, d, &a, name, (const int[]){1}, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* ---- registration ----------------------------------------------------------------------------- */

static const dc_composite rows[] = {
    {{"deg2rad", dc_ops_composite, 1, DC_IN_BOTH}, build_deg2rad, true, true},
    {{"rad2deg", dc_ops_composite, 1, DC_IN_BOTH}, build_rad2deg, true, true},
    {{"frac", dc_ops_composite, 1, DC_IN_BOTH}, build_frac, false, false},
    {{"sinc", dc_ops_composite, 1, DC_IN_BOTH}, build_sinc, false, true},
    {{"logit", dc_ops_composite, 1, DC_IN_BOTH}, build_logit, false, true},
    {{"logaddexp", dc_ops_composite, 2, DC_IN_BOTH}, build_logaddexp, false, true},
    {{"logaddexp2", dc_ops_composite, 2, DC_IN_BOTH}, build_logaddexp2, false, true},
    {{"xlogy", dc_ops_composite, 2, DC_IN_BOTH}, build_xlogy, false, true},
    {{"hypot", dc_ops_composite, 2, DC_IN_BOTH}, build_hypot, false, true},
    {{"heaviside", dc_ops_composite, 2, DC_IN_BOTH}, build_heaviside, false, false},
    {{"lerp", dc_ops_composite, 3, DC_IN_BOTH}, build_lerp, false, true},
    {{"logical_and", dc_ops_composite, 2, DC_IN_BOTH}, build_and, false, false},
    {{"logical_or", dc_ops_composite, 2, DC_IN_BOTH}, build_or, false, false},
    {{"logical_xor", dc_ops_composite, 2, DC_IN_BOTH}, build_xor, false, false},
    {{"logical_not", dc_ops_composite, 1, DC_IN_BOTH}, build_not, false, false},
    {{"popcount", dc_ops_composite, 1, DC_IN_BOTH}, build_popcount, false, false},
    {{"clz", dc_ops_composite, 1, DC_IN_BOTH}, build_clz, false, false},
};

static const dc_binding others[] = {
    {"isclose", l_isclose, 3, DC_IN_BOTH},
    {"allclose", l_allclose, 3, DC_IN_BOTH},
    {"nan_to_num", l_nan_to_num, 2, DC_IN_BOTH},
};

const dc_bindings dc_number_bindings[] = {
    {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]},
    DC_BINDINGS(others),
};
