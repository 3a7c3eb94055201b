/*
 * Expansions of lgamma and digamma of f32, within 2 ulp; those of f64 are in expand_gamma_f64.c. Each is a polynomial near its
 * zeros, times the distances to these; an asymptotic series far from them. Negative arguments are reflected. Logarithms have two
 * parts, and the small parts of a sum are added first. Where terms cancel for a negative argument, the error is small beside
 * the largest of them.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

typedef struct two {
    dc_fv high, low; /* the sum of both is meant */
} two;

static two log_of(const use *u, dc_fv x)
{
    two r;
    dc_expand_log_parts(u, x, &r.high, &r.low);
    return r;
}

/* x less the integer nearest to it: exact. */
static dc_fv fraction_of(const use *u, dc_fv x)
{
    return op2(u, DC_K_SUB, x, apply_to(u, dc_expand_round, x));
}

/* a + b, rounded, and what that leaves. */
static two sum_of(const use *u, dc_fv a, dc_fv b)
{
    const dc_fv sum = op2(u, DC_K_ADD, a, b), part = op2(u, DC_K_SUB, sum, a);
    const dc_fv rest = op2(u, DC_K_SUB, a, op2(u, DC_K_SUB, sum, part));
    return (two){sum, op2(u, DC_K_ADD, rest, op2(u, DC_K_SUB, b, part))};
}

static dc_fv twice(const use *u, dc_fv a)
{
    return op2(u, DC_K_ADD, a, a);
}

/* ---- lgamma ---- */

enum { LGAMMA_STEPS = 6 };

/*
 * d (d - 1) L(d) = lgamma(1 + d), d from -1/2 to 3/2, where L is 1/2 and a polynomial in d less 535 / 1024, which is at most
 * 0.27: half of the product before it is exact.
 */
static dc_fv lgamma_near(const use *u, dc_fv d)
{
    static const double coef[] = {0.00033003423013,  -0.00039925718157,   -0.000742716282407,
                                  0.000706576839304, 0.00126167087229,    -0.00130516181187,
                                  -8.60762230928e-5, -0.000463410080382,  0.0019669596917,
                                  -0.00306652856439, 0.00491327265298,    -0.00869405904606,
                                  0.0157839473103,   -0.0298479978634,    0.0608513423486,
                                  -0.143180383815,   0.479881943482 - 0.5};
    const dc_fv level =
        polynomial(u, op2(u, DC_K_SUB, d, flt(u, 535. / 1024)), coef, (int)DC_COUNTOF(coef));
    const dc_fv left = fma3(u, d, d, op1(u, DC_K_NEG, d));
    const dc_fv right = op2(u, DC_K_MUL, d, op2(u, DC_K_SUB, d, flt(u, 1)));
    const dc_fv q = pick(u, op2(u, DC_K_LT, d, flt(u, 0.5)), left, right);
    return fma3(u, q, level, op2(u, DC_K_MUL, q, flt(u, 0.5)));
}

/*
 * Half of lgamma(t), from 8.5 on: (t - 1/2) (log t - 1) + (log(2 pi) - 1) / 2 + 1 / (12 t) - ...; `next`: of
 * lgamma(t + 1). Of the largest t twice the high part overflows where the sum does not; t - 1/2 may be no float.
 */
static two lgamma_far(const use *u, dc_fv t, two log_t, dc_fv next)
{
    static const double coef[] = {0.5 / 1260, -0.5 / 360, 0.5 / 12};
    const dc_fv inverse = op2(u, DC_K_DIV, flt(u, 1), t),
                square = op2(u, DC_K_MUL, inverse, inverse);
    const dc_fv level = pick(u, next, flt(u, 0.709469266602336), flt(u, 0.209469266602336371));
    const dc_fv by = op2(u, DC_K_SUB, log_t.high, flt(u, 1)),
                factor = op2(u, DC_K_MUL, t, flt(u, 0.5));
    dc_fv more = fma3(u, inverse, polynomial(u, square, coef, (int)DC_COUNTOF(coef)), level);
    more =
        fma3(u, op2(u, DC_K_ADD, by, log_t.low), pick(u, next, flt(u, 0.25), flt(u, -0.25)), more);
    return (two){op2(u, DC_K_MUL, factor, by), fma3(u, factor, log_t.low, more)};
}

/* -log(sin(pi r) / (pi r)) for r up to 1/2 */
static dc_fv sine_log(const use *u, dc_fv r)
{
    static const double coef[] = {0.332585564403, 0.0905559561901, 0.214173414498, 0.249745272897,
                                  0.33916870232,  0.541160757574,  1.64493406905};
    const dc_fv square = op2(u, DC_K_MUL, r, r);
    return op2(u, DC_K_MUL, square, polynomial(u, square, coef, (int)DC_COUNTOF(coef)));
}

/*
 * lgamma(t) = lgamma(1 + d) + or - log(w), of t = |x|:
 *
 *     -1/2 < x < 3/4  d = x           - log t
 *     3/4 .. 5/2      d = t - 1       w = 1
 *     5/2 .. 17/2     d = t - n - 1   + log((t - 1) (t - 2) ... (t - n))
 *
 * From -1/2 down -log(sin(pi r) / (pi r)) - log r - lgamma(t + 1), r the distance to the nearest integer; t is one factor more
 * of w.
 */
static dc_fv lgamma_f32(const use *u)
{
    const dc_fv x = u->in[0], t = magnitude_of(u, x), one = flt(u, 1), zero = flt(u, 0);
    const dc_fv reflects = op2(u, DC_K_LE, x, flt(u, -0.5));
    const dc_fv small =
        op2(u, DC_K_AND, op2(u, DC_K_LT, flt(u, -0.5), x), op2(u, DC_K_LT, x, flt(u, 0.75)));
    const dc_fv large = op2(u, DC_K_LE, flt(u, LGAMMA_STEPS + 2.5), t);
    dc_fv d = op2(u, DC_K_SUB, t, one), w = pick(u, reflects, t, one);
    for (int i = 1; i <= LGAMMA_STEPS; i++) {
        const dc_fv takes = op2(u, DC_K_LE, flt(u, i + 1.5), t);
        w = pick(u, takes, op2(u, DC_K_MUL, w, op2(u, DC_K_SUB, t, flt(u, i))), w);
        d = pick(u, takes, op2(u, DC_K_SUB, t, flt(u, i + 1)), d);
    }
    two part = log_of(u, pick(u, op2(u, DC_K_OR, small, large), t, w));
    const two half = lgamma_far(u, t, part, reflects);
    part.high = pick(u, small, op1(u, DC_K_NEG, part.high), part.high);
    part.low = pick(u, small, op1(u, DC_K_NEG, part.low), part.low);
    part.low = op2(u, DC_K_ADD, part.low, lgamma_near(u, pick(u, small, x, d)));
    const dc_fv high = pick(u, large, twice(u, half.high), part.high);
    const dc_fv low = pick(u, large, twice(u, half.low), part.low);
    const dc_fv far = twice(u, op2(u, DC_K_ADD, half.high, half.low));
    const dc_fv positive = pick(u, large, far, op2(u, DC_K_ADD, part.high, part.low));
    const dc_fv r = magnitude_of(u, fraction_of(u, t));
    const two log_r = log_of(u, r), sum = sum_of(u, high, log_r.high);
    dc_fv rest = op2(u, DC_K_SUB, op2(u, DC_K_SUB, sine_log(u, r), low), log_r.low);
    rest = op2(u, DC_K_SUB, rest, sum.low);
    const dc_fv other = op2(u, DC_K_SUB, rest, sum.high);
    const dc_fv pole = op2(u, DC_K_AND, reflects, op2(u, DC_K_EQ, r, zero));
    const dc_fv endless = op2(u, DC_K_OR, pole, op2(u, DC_K_EQ, t, flt(u, INFINITY)));
    return pick(u, endless, flt(u, INFINITY), pick(u, reflects, other, positive));
}

dc_fv dc_expand_lgamma(const use *u)
{
    return u->t == DC_F64 ? dc_expand_lgamma_f64(u) : lgamma_f32(u);
}

/* ---- digamma ---- */

static const double root = 0x1.762d86p0,
                    root_low = 0x1.ab5f1fb70d4e4p-27; /* of digamma: the sum of both */

/* digamma(t), t from 3/4 to 5/2; `next`: digamma(t + 1), without that sum, which would be rounded. */
static two digamma_near(const use *u, dc_fv t, dc_fv next)
{
    static const double coef[] = {0.00160788976364,   -0.00131615891053,    -0.00184074594182,
                                  -0.000221376727816, 0.00450577531676,     -0.00447933902556,
                                  0.00539083828152,   -0.0105767788827,     0.0185886610653,
                                  -0.0314231508641,   0.0542047887605,      -0.0955791536051,
                                  0.17505620542,      0.5 - 0.348607440784, 0.880906694564 - 1};
    const double middle = 1723. / 1024;
    const dc_fv c = op2(u, DC_K_SUB, t, pick(u, next, flt(u, middle - 1), flt(u, middle)));
    const dc_fv away = op2(u, DC_K_SUB, t,
                           pick(u, next, flt(u, root - 1), flt(u, root))); /* exact near the root */
    const dc_fv rest = op2(u, DC_K_SUB, away, flt(u, root_low));
    const dc_fv level = fma3(u, c, flt(u, -0.5), polynomial(u, c, coef, (int)DC_COUNTOF(coef)));
    return (two){away, fma3(u, rest, level, flt(u, -root_low))};
}

/* The same from 5/2 on: log s - 1 / (2 s) - 1 / (12 s^2) + ... */
static two digamma_far(const use *u, dc_fv t, dc_fv next)
{
    static const double coef[] = {-0.00262496531521, 0.00383535232354, -0.00832932167953,
                                  0.0833333134944};
    const dc_fv one = flt(u, 1), above = op2(u, DC_K_ADD, t, one), s = pick(u, next, above, t);
    const dc_fv lost = pick(u, next, op2(u, DC_K_SUB, t, op2(u, DC_K_SUB, above, one)), flt(u, 0));
    const dc_fv inverse = op2(u, DC_K_DIV, one, s), square = op2(u, DC_K_MUL, inverse, inverse);
    const dc_fv more = fma3(u, square, polynomial(u, square, coef, (int)DC_COUNTOF(coef)),
                            op2(u, DC_K_MUL, inverse, flt(u, 0.5)));
    two r = log_of(u, s);
    r.low = op2(u, DC_K_SUB, fma3(u, lost, inverse, r.low), more);
    return r;
}

/* pi tan(pi q) = q (exact + L(q^2)), |q| up to 0.29; the power of 2 `exact` is 8, for |q| above 1/4 16: L is -4 to 5. */
static dc_fv tangent_level(const use *u, dc_fv square, dc_fv exact)
{
    static const double coef[] = {621487.31653,  -53696.4970582, 15147.6904276, 1753.74033276,
                                  518.658890731, 128.114226711,  32.469985203};
    const dc_fv level = op2(u, DC_K_SUB, flt(u, 9.86960421124), exact);
    return fma3(u, square, polynomial(u, square, coef, (int)DC_COUNTOF(coef)), level);
}

/* 1 / r - pi / tan(pi r) = r K(r^2), |r| up to 0.21 */
static dc_fv pole_level(const use *u, dc_fv square)
{
    static const double coef[] = {2.19601494556, 2.02940975198, 2.16469335361, 3.28986806899};
    return polynomial(u, square, coef, (int)DC_COUNTOF(coef));
}

/*
 * Below 3/4 it is digamma(t + 1) - 1 / t; for x up to 0 digamma(1 - x) - pi / tan(pi x), NaN for a negative integer. With r, what
 * x is more than its nearest integer, pi / tan(pi x) is 1 / r - r K(r^2), and pi tan(pi q) of q = 1/2 - |r| beyond 0.21.
 */
static dc_fv digamma_f32(const use *u)
{
    const dc_fv x = u->in[0], t = magnitude_of(u, x), zero = flt(u, 0);
    const dc_fv reflects = op2(u, DC_K_LE, x, zero);
    const dc_fv next = op2(u, DC_K_OR, reflects, op2(u, DC_K_LT, t, flt(u, 0.75)));
    const dc_fv is_far = op2(u, DC_K_LE, pick(u, next, flt(u, 1.5), flt(u, 2.5)), t);
    const two near = digamma_near(u, t, next), far = digamma_far(u, t, next);
    const dc_fv high = pick(u, is_far, far.high, near.high);
    dc_fv low = pick(u, is_far, far.low, near.low);
    const dc_fv left = fraction_of(u, x);
    const dc_fv r = pick(u, op2(u, DC_K_LT, t, flt(u, 0.5)), x, left); /* keeps the sign of 0 */
    const dc_fv size = magnitude_of(u, r);
    const dc_fv steep = op2(u, DC_K_AND, reflects, op2(u, DC_K_LT, flt(u, 0.21), size));
    const dc_fv half = with_sign_of(u, flt(u, 0.5), r), q = op2(u, DC_K_SUB, r, half);
    const dc_fv lost = op2(u, DC_K_SUB, r, op2(u, DC_K_ADD, q, half)); /* below 1/4 alone */
    low = pick(u, steep, fma3(u, lost, flt(u, 23), low), low); /* the slope is 20 to 26 there */
    const dc_fv g = pick(u, reflects, pick(u, steep, q, r), zero), square = op2(u, DC_K_MUL, g, g);
    const dc_fv exact = pick(u, op2(u, DC_K_LT, size, flt(u, 0.25)), flt(u, 16), flt(u, 8));
    const dc_fv level = pick(u, steep, tangent_level(u, square, exact), pole_level(u, square));
    const dc_fv inverse = op2(u, DC_K_DIV, flt(u, 1), pick(u, reflects, r, x));
    const dc_fv flat = pick(u, next, op1(u, DC_K_NEG, inverse), zero);
    const two sum = sum_of(u, high, pick(u, steep, op2(u, DC_K_MUL, g, exact), flat));
    const dc_fv result =
        op2(u, DC_K_ADD, sum.high, op2(u, DC_K_ADD, sum.low, fma3(u, g, level, low)));
    const dc_fv endless = op2(u, DC_K_EQ, magnitude_of(u, sum.high), flt(u, INFINITY));
    const dc_fv pole = op2(u, DC_K_AND, op2(u, DC_K_EQ, r, zero), op2(u, DC_K_LT, x, zero));
    return pick(u, pole, flt(u, NAN), pick(u, endless, sum.high, result));
}

dc_fv dc_expand_digamma(const use *u)
{
    return u->t == DC_F64 ? dc_expand_digamma_f64(u) : digamma_f32(u);
}
