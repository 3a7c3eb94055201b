/*
 * Expansions of f64: exp, expm1, log and the remainder.
 *
 * exp is its series after argument reduction with ln 2 in two parts. log follows fdlibm (Sun
 * Microsystems, 1993): the series of atanh, economised. The remainder is arithmetic modulo the
 * divisor's mantissa, without a loop.
 */
#include "jit/expand_impl.h"

#include <math.h>

static const uint64_t sign_bit = (uint64_t)1 << 63, infinity_bits = (uint64_t)0x7ff << 52,
                      nan_bits = (uint64_t)0x7ff8 << 48;

/* 2^n, for n in -1022..1023 as i64. */
static dc_fv power_of_two(const use *u, dc_fv n)
{
    const dc_fv biased = op2(u, DC_K_ADD, n, bits(u, DC_I64, 1023));
    return as(u, op2(u, DC_K_SHL, biased, bits(u, DC_I64, 52)), DC_F64);
}

/* x * 2^n in two steps, so that n may be -2044..2046; one rounding, at the second step. */
static dc_fv scale(const use *u, dc_fv x, dc_fv n)
{
    const dc_fv half = op2(u, DC_K_SHR, n, bits(u, DC_I64, 1));
    const dc_fv first = op2(u, DC_K_MUL, x, power_of_two(u, half));
    return op2(u, DC_K_MUL, first, power_of_two(u, op2(u, DC_K_SUB, n, half)));
}

/* ln 2 = high - low; the high part has 32 bits, so that its product with an exponent is exact. */
static const double ln2_high = 0x1.62e42ffp-1, ln2_low = 0x1.718432a1b0e26p-35;

/* exp(r) - 1 for what is left of x after n = round(x / ln 2) times ln 2. */
static dc_fv reduced(const use *u, dc_fv x, dc_fv *exponent)
{
    static const double coef[] = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800,
                                  1. / 362880,     1. / 40320,     1. / 5040,     1. / 720,
                                  1. / 120,        1. / 24,        1. / 6,        1. / 2};
    const dc_fv shifter = flt(u, 0x1.8p52); /* its sum ends in the rounded integer */
    const dc_fv sum = fma3(u, x, flt(u, 0x1.71547652b82fep0), shifter);
    const dc_fv n = op2(u, DC_K_SUB, sum, shifter);
    *exponent = op2(u, DC_K_SUB, as(u, sum, DC_I64), as(u, shifter, DC_I64));
    dc_fv r = fma3(u, n, flt(u, -ln2_high), x);
    r = fma3(u, n, flt(u, ln2_low), r);
    const dc_fv p = polynomial(u, r, coef, (int)DC_COUNTOF(coef));
    return fma3(u, p, op2(u, DC_K_MUL, r, r), r);
}

/* exp(x) = 2^n * exp(r); what overflows is picked, as in f32. */
dc_fv dc_expand_exp_f64(const use *u)
{
    const dc_fv most = flt(u, 0x1.62e42fefa39efp9), low = flt(u, -746);
    const dc_fv over = op2(u, DC_K_LT, most, u->in[0]);
    const dc_fv x = pick(u, op2(u, DC_K_LT, u->in[0], low), low, u->in[0]); /* NaN stays */
    dc_fv exponent;
    const dc_fv p = reduced(u, x, &exponent);
    return pick(u, over, flt(u, INFINITY), scale(u, op2(u, DC_K_ADD, p, flt(u, 1)), exponent));
}

/* exp(x) - 1 = (2^n - 1) + 2^n (exp(r) - 1), for |x| up to 40. */
dc_fv dc_expand_expm1_f64(const use *u)
{
    dc_fv exponent;
    const dc_fv p = reduced(u, u->in[0], &exponent), power = power_of_two(u, exponent);
    return fma3(u, power, p, op2(u, DC_K_SUB, power, flt(u, 1)));
}

/*
 * log(x) = e * ln 2 + log(1 + f), 1 + f in sqrt(1/2) .. sqrt(2). With s = f / (2 + f) and h = f^2 / 2,
 * log(1 + f) = f - (h - s * (h + R(s^2))).
 */
dc_fv dc_expand_log_f64(const use *u)
{
    static const double coef[] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                                  1.818357216161805012e-01, 2.222219843214978396e-01,
                                  2.857142874366239149e-01, 3.999999999940941908e-01,
                                  6.666666666666735130e-01};
    const dc_fv x = u->in[0], zero = flt(u, 0), shift_by = bits(u, DC_I64, 52);
    const dc_fv half_root = bits(u, DC_I64, 0x3fe6a09e667f3bcd);
    const dc_fv tiny = op2(u, DC_K_LT, x, flt(u, 0x1p-1022));
    const dc_fv normal = pick(u, tiny, op2(u, DC_K_MUL, x, flt(u, 0x1p52)), x);
    const dc_fv above = op2(u, DC_K_SUB, as(u, normal, DC_I64), half_root);
    dc_fv e = op2(u, DC_K_SHR, above, shift_by);
    e = pick(u, tiny, op2(u, DC_K_SUB, e, shift_by), e);
    const dc_fv fraction = op2(u, DC_K_AND, above, bits(u, DC_I64, ((uint64_t)1 << 52) - 1));
    const dc_fv m = as(u, op2(u, DC_K_ADD, fraction, half_root), DC_F64);
    const dc_fv f = op2(u, DC_K_SUB, m, flt(u, 1)), n = dc_fb_convert(u->b, e, DC_F64);
    const dc_fv s = op2(u, DC_K_DIV, f, op2(u, DC_K_ADD, f, flt(u, 2)));
    const dc_fv h = op2(u, DC_K_MUL, op2(u, DC_K_MUL, f, f), flt(u, 0.5));
    const dc_fv square = op2(u, DC_K_MUL, s, s);
    dc_fv r = op2(u, DC_K_MUL, polynomial(u, square, coef, (int)DC_COUNTOF(coef)), square);
    r = op2(u, DC_K_MUL, s, op2(u, DC_K_ADD, h, r));
    r = op2(u, DC_K_SUB, h, fma3(u, n, flt(u, -ln2_low), r)); /* small parts first */
    dc_fv p = fma3(u, n, flt(u, ln2_high), op2(u, DC_K_SUB, f, r));
    p = pick(u, op2(u, DC_K_LT, x, flt(u, INFINITY)), p, x); /* infinity and NaN */
    p = pick(u, op2(u, DC_K_LT, x, zero), bits(u, DC_F64, nan_bits), p);
    return pick(u, op2(u, DC_K_EQ, x, zero), flt(u, -INFINITY), p);
}

/* Remainder --------------------------------------------------------------------------------- */

/* A finite float's magnitude is mantissa * 2^(exponent - 1075), the exponent 1 or more. */
typedef struct parts {
    dc_fv magnitude, mantissa, exponent; /* bits as u64; i64; i64 */
} parts;

static parts take_apart(const use *u, dc_fv x)
{
    const uint64_t leading = (uint64_t)1 << 52;
    parts p;
    p.magnitude = op2(u, DC_K_AND, as(u, x, DC_U64), bits(u, DC_U64, ~sign_bit));
    const dc_fv field = op2(u, DC_K_SHR, p.magnitude, bits(u, DC_U64, 52));
    const dc_fv fraction = op2(u, DC_K_AND, p.magnitude, bits(u, DC_U64, leading - 1));
    const dc_fv normal = op2(u, DC_K_LT, bits(u, DC_U64, 0), field);
    const dc_fv whole = op2(u, DC_K_OR, fraction, bits(u, DC_U64, leading));
    p.mantissa = as(u, pick(u, normal, whole, fraction), DC_I64);
    p.exponent = as(u, pick(u, normal, field, bits(u, DC_U64, 1)), DC_I64);
    return p;
}

/*
 * a * c mod d, all of them below 2^53 and a, c at most d. The quotient as computed in f64 is off by
 * 2 at most; the remainder for it is small, so its low 64 bits are all of it.
 */
static dc_fv multiply_mod(const use *u, dc_fv a, dc_fv c, dc_fv d, dc_fv d_float)
{
    const dc_fv product =
        op2(u, DC_K_MUL, dc_fb_convert(u->b, a, DC_F64), dc_fb_convert(u->b, c, DC_F64));
    const dc_fv q = dc_fb_convert(u->b, op2(u, DC_K_DIV, product, d_float), DC_I64);
    const dc_fv zero = bits(u, DC_I64, 0);
    dc_fv r = op2(u, DC_K_SUB, op2(u, DC_K_MUL, a, c), op2(u, DC_K_MUL, q, d));
    for (int i = 0; i < 2; i++)
        r = pick(u, op2(u, DC_K_LT, r, zero), op2(u, DC_K_ADD, r, d), r);
    for (int i = 0; i < 2; i++)
        r = pick(u, op2(u, DC_K_LE, d, r), op2(u, DC_K_SUB, r, d), r);
    return r;
}

/* 2^n mod d for n in 0..2047: the exponent's bits from the top, the first five at once. */
static dc_fv power_mod(const use *u, dc_fv n, dc_fv d, dc_fv d_float)
{
    const dc_fv one = bits(u, DC_I64, 1);
    const dc_fv top = op2(u, DC_K_SHL, one, op2(u, DC_K_SHR, n, bits(u, DC_I64, 6)));
    dc_fv r = multiply_mod(u, top, one, d, d_float);
    for (int bit = 5; bit >= 0; bit--) {
        const dc_fv set = op2(u, DC_K_AND, n, bits(u, DC_I64, (uint64_t)1 << bit));
        r = multiply_mod(u, r, r, d, d_float);
        const dc_fv twice = op2(u, DC_K_ADD, r, r);
        const dc_fv over = op2(u, DC_K_LE, d, twice);
        const dc_fv doubled = pick(u, over, op2(u, DC_K_SUB, twice, d), twice);
        r = pick(u, op2(u, DC_K_EQ, set, bits(u, DC_I64, 0)), r, doubled);
    }
    return r;
}

/* fmod: exact for all operands. */
dc_fv dc_expand_rem_f64(const use *u)
{
    const dc_fv x = u->in[0], y = u->in[1], zero = bits(u, DC_U64, 0);
    const dc_fv infinite = bits(u, DC_U64, infinity_bits), none = bits(u, DC_I64, 0);
    const parts a = take_apart(u, x), c = take_apart(u, y);
    const dc_fv apart = op2(u, DC_K_SUB, a.exponent, c.exponent);
    const dc_fv n = pick(u, op2(u, DC_K_LT, apart, none), none, apart);
    const dc_fv y_zero = op2(u, DC_K_EQ, c.magnitude, zero);
    const dc_fv d = pick(u, y_zero, bits(u, DC_I64, 1), c.mantissa);
    const dc_fv d_float = dc_fb_convert(u->b, d, DC_F64), one = bits(u, DC_I64, 1);
    const dc_fv m = multiply_mod(u, a.mantissa, one, d, d_float);
    const dc_fv r = multiply_mod(u, m, power_mod(u, n, d, d_float), d, d_float);
    const dc_fv magnitude = scale(u, dc_fb_convert(u->b, r, DC_F64),
                                  op2(u, DC_K_SUB, c.exponent, bits(u, DC_I64, 1075)));
    const dc_fv sign = op2(u, DC_K_AND, as(u, x, DC_U64), bits(u, DC_U64, sign_bit));
    const dc_fv exact = as(u, op2(u, DC_K_OR, as(u, magnitude, DC_U64), sign), DC_F64);
    /* |x| < |y| keeps x, infinite y included; then what has no remainder */
    const dc_fv result = pick(u, op2(u, DC_K_LT, a.magnitude, c.magnitude), x, exact);
    dc_fv none_of = op2(u, DC_K_OR, y_zero, op2(u, DC_K_LE, infinite, a.magnitude));
    none_of = op2(u, DC_K_OR, none_of, op2(u, DC_K_LT, infinite, c.magnitude));
    return pick(u, none_of, bits(u, DC_F64, nan_bits), result);
}
