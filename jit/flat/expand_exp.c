/*
 * Expansions of exp, exp2 and expm1, and powers of two.
 *
 * exp is 2^n * exp(r) with ln 2 in two parts and a minimax polynomial (scripts/minimax; in f64 the
 * series). The errors of f32 were measured over all floats (tests/unit/test_expand.c repeats that on
 * samples).
 *
 * n is found by a sum so large that its last bits are integers: bits of 1.5 * 2^23, plus n. With a
 * multiple of the exponent's bias in it besides, a shift of those bits is a power of two.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

enum { LIFT = 64 }; /* exponents of dc_exp_scale and so much are those of normal numbers */

typedef struct kind { /* what f32 and f64 differ in */
    dc_dtype whole;   /* the signed integers of the same width */
    int fraction;
    uint64_t bias;
    double most, least; /* exp of more is infinite, of less 0 */
    double shifter;     /* its sum ends in the rounded integer; the low bits are zero */
    double log2_e;
    double ln2_high, ln2_low; /* ln 2 = high - low; a product of high and an exponent is exact */
    double coef[12];
    int terms;
} kind;

static const kind f32_kind = {
    .whole = DC_I32,
    .fraction = 23,
    .bias = 127,
    .most = 0x1.62e42ep6,
    .least = -104,
    .shifter = 0x1.8p23,
    .log2_e = 1.44269504088896341,
    .ln2_high = 0.693359375,
    .ln2_low = 2.12194440054690583e-4,
    .coef = {0.0013814604246, 0.00836871687979, 0.0416683879547, 0.166665206318, 0.499999934481},
    .terms = 5,
};

static const kind f64_kind = {
    .whole = DC_I64,
    .fraction = 52,
    .bias = 1023,
    .most = 0x1.62e42fefa39efp9,
    .least = -746,
    .shifter = 0x1.8p52,
    .log2_e = 0x1.71547652b82fep0,
    .ln2_high = 0x1.62e42ffp-1,
    .ln2_low = 0x1.718432a1b0e26p-35,
    .coef = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
             1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2},
    .terms = 12,
};

static const kind *kind_of(const use *u)
{
    return u->t == DC_F64 ? &f64_kind : &f32_kind;
}

/* 2^n, for exponents n of normal numbers, as integers of the float's width. */
static dc_fv power_of_two(const use *u, dc_fv n)
{
    const kind *k = kind_of(u);
    const dc_fv biased = op2(u, DC_K_ADD, n, bits(u, k->whole, k->bias));
    return as(u, op2(u, DC_K_SHL, biased, bits(u, k->whole, (uint64_t)k->fraction)), u->t);
}

dc_fv dc_expand_scale(const use *u, dc_fv x, dc_fv n)
{
    const dc_fv half = op2(u, DC_K_SHR, n, bits(u, kind_of(u)->whole, 1));
    const dc_fv first = op2(u, DC_K_MUL, x, power_of_two(u, half));
    return op2(u, DC_K_MUL, first, power_of_two(u, op2(u, DC_K_SUB, n, half)));
}

/* x / ln 2, rounded to an integer n; *sum: a float whose bits end in n + above. */
static dc_fv exponent_above(const use *u, dc_fv x, double above, dc_fv *sum)
{
    const kind *k = kind_of(u);
    const dc_fv shifter = flt(u, k->shifter + above);
    *sum = fma3(u, x, flt(u, k->log2_e), shifter);
    return op2(u, DC_K_SUB, *sum, shifter);
}

/* The same with n + times * bias. */
static dc_fv exponent_of(const use *u, dc_fv x, uint64_t times, dc_fv *sum)
{
    return exponent_above(u, x, (double)(times * kind_of(u)->bias), sum);
}

/* A sum with one bias in it: 2^n where that is a normal number. */
static dc_fv power_of_sum(const use *u, dc_fv sum)
{
    const kind *k = kind_of(u);
    const dc_fv whole = as(u, sum, k->whole);
    return as(u, op2(u, DC_K_SHL, whole, bits(u, k->whole, (uint64_t)k->fraction)), u->t);
}

/* (exp(r) - 1 - r) / r^2 */
static dc_fv bend_of(const use *u, dc_fv r)
{
    const kind *k = kind_of(u);
    return k == &f64_kind ? polynomial(u, r, k->coef, k->terms)
                          : polynomial_by_pairs(u, r, k->coef, k->terms);
}

/* exp(r) - 1 for what is left of x after n times ln 2. */
static dc_fv reduced(const use *u, dc_fv x, dc_fv n)
{
    const kind *k = kind_of(u);
    dc_fv r = fma3(u, n, flt(u, -k->ln2_high), x);
    r = fma3(u, n, flt(u, k->ln2_low), r);
    return fma3(u, bend_of(u, r), op2(u, DC_K_MUL, r, r), r);
}

/*
 * exp(x) = 2^n * exp(r), where one instruction multiplies by 2^n. What is larger than the most that
 * has an exponential overflows there, so a few more do for infinity.
 */
static dc_fv exp_by_scale(const use *u, dc_fv x, dc_fv under)
{
    dc_fv sum;
    const dc_fv above = flt(u, 89);
    x = pick(u, op2(u, DC_K_LT, above, x), above, x); /* NaN stays */
    const dc_fv n = exponent_of(u, x, 0, &sum);
    const dc_fv p = op2(u, DC_K_ADD, reduced(u, x, n), flt(u, 1));
    return op2(u, DC_K_SCALE, pick(u, under, flt(u, 0), p), n);
}

/* p * 2^(n - less), for a sum whose bits end in n + 2 * bias; one instruction where there is one. */
static dc_fv times_power(const use *u, dc_fv p, dc_fv n, dc_fv sum, uint64_t less)
{
    const kind *k = kind_of(u);
    if (has_scale(u))
        return op2(u, DC_K_SCALE, p, less != 0 ? op2(u, DC_K_SUB, n, flt(u, (double)less)) : n);
    const dc_fv whole = as(u, sum, k->whole);
    const dc_fv half = op2(u, DC_K_SHR, whole, bits(u, k->whole, 1));
    dc_fv rest = op2(u, DC_K_SUB, whole, half);
    if (less != 0)
        rest = op2(u, DC_K_SUB, rest, bits(u, k->whole, less));
    return op2(u, DC_K_MUL, op2(u, DC_K_MUL, p, power_of_sum(u, half)), power_of_sum(u, rest));
}

/*
 * exp(x) = 2^n * exp(r). 2^n may be no normal number, so it is the product of two, of half of n each:
 * bits that end in n + 2 * bias are halved, which leaves one bias for each of them. What overflows is
 * picked, not left to the last product: contracted with a sum, that product would not overflow. What underflows to 0 is a
 * product with 0: processors take ten times as long for an instruction that rounds to nothing, and softmax with a mask has
 * many of them.
 */
dc_fv dc_expand_exp(const use *u)
{
    const kind *k = kind_of(u);
    const dc_fv most = flt(u, k->most), least = flt(u, k->least);
    const dc_fv over = op2(u, DC_K_LT, most, u->in[0]);
    const dc_fv under = op2(u, DC_K_LT, u->in[0], least);
    const dc_fv x = pick(u, under, least, u->in[0]); /* NaN stays */
    dc_fv sum;
    if (has_scale(u))
        return exp_by_scale(u, x, under);
    const dc_fv n = exponent_of(u, x, 2, &sum);
    const dc_fv p = pick(u, under, flt(u, 0), op2(u, DC_K_ADD, reduced(u, x, n), flt(u, 1)));
    return pick(u, over, flt(u, INFINITY), times_power(u, p, n, sum, 0));
}

dc_fv dc_expand_half_exp(const use *u, dc_fv x)
{
    const dc_fv most = flt_of(u, 0x1.65a9f8p6, 0x1.633ce8fb9f87dp9);
    const dc_fv over = op2(u, DC_K_LT, most, x);
    dc_fv sum;
    const dc_fv n = exponent_of(u, x, 2, &sum);
    const dc_fv p = op2(u, DC_K_ADD, reduced(u, x, n), flt(u, 1));
    return pick(u, over, flt(u, INFINITY), times_power(u, p, n, sum, 1));
}

/* exp(x + more) = (1 + rest) 2^n, the exponent being found from x alone. */
dc_fv dc_expand_exp_rest(const use *u, dc_fv x, dc_fv more, bool fine, dc_exp_scale *scale)
{
    const kind *k = kind_of(u);
    const dc_fv least = flt(u, k->least);
    if (!u->b->fused) /* halves of the digits of a NaN may be those of infinity */
        x = pick(u, op2(u, DC_K_LT, x, least), least, x);
    scale->n = exponent_above(u, x, (double)k->bias + LIFT, &scale->sum);
    const dc_fv far = fma3(u, scale->n, flt(u, -k->ln2_high), x), /* exact */
        low = fma3(u, scale->n, flt(u, k->ln2_low), more), r = op2(u, DC_K_ADD, far, low);
    const dc_fv square = op2(u, DC_K_MUL, r, r);
    if (!fine)
        return fma3(u, bend_of(u, r), square, r);
    return op2(u, DC_K_ADD, far, fma3(u, bend_of(u, r), square, low));
}

/* Times 2^LIFT 2^n, a normal number, then 2^-LIFT: rounded once. */
dc_fv dc_expand_by_exp_scale(const use *u, dc_fv p, const dc_exp_scale *scale)
{
    if (has_scale(u))
        return op2(u, DC_K_SCALE, p, scale->n);
    const dc_fv lifted = op2(u, DC_K_MUL, p, power_of_sum(u, scale->sum));
    return op2(u, DC_K_MUL, lifted, flt(u, ldexp(1, -LIFT)));
}

/*
 * c + c 2^n + c 2^n (exp(r) - 1), rounded once. c is a power of 2 so small that c 2^n is a normal number where exp(-x)
 * overflows; from an x on of which c 2^n is nothing beside c, it may be less.
 */
dc_fv dc_expand_gate(const use *u, dc_fv x, const dc_fv *more, double *c)
{
    const kind *k = kind_of(u);
    const int down = k == &f64_kind ? 128 : 36;
    const dc_fv most = flt_of(u, 30, 60), small = flt(u, ldexp(1, -down));
    dc_fv sum;
    x = pick(u, op2(u, DC_K_LT, most, x), most, x); /* NaN stays */
    const bool much =
        more != NULL && !u->b->fused; /* fma leaves so little that x alone has the exponent */
    const dc_fv minus = op1(u, DC_K_NEG, much ? op2(u, DC_K_ADD, x, *more) : x);
    const dc_fv n = exponent_above(u, minus, (double)k->bias - down, &sum);
    const dc_fv far = fma3(u, n, flt(u, -k->ln2_high), op1(u, DC_K_NEG, x));
    dc_fv rest;
    if (more != NULL) {
        const dc_fv low = fma3(u, n, flt(u, k->ln2_low), op1(u, DC_K_NEG, *more)),
                    r = op2(u, DC_K_ADD, far, low);
        rest = op2(u, DC_K_ADD, far, fma3(u, bend_of(u, r), op2(u, DC_K_MUL, r, r), low));
    } else {
        const dc_fv r = fma3(u, n, flt(u, k->ln2_low), far);
        rest = fma3(u, bend_of(u, r), op2(u, DC_K_MUL, r, r), r);
    }
    const dc_fv power = power_of_sum(u, sum), base = op2(u, DC_K_ADD, power, small);
    const dc_fv lost =
        op2(u, DC_K_SUB, small, op2(u, DC_K_SUB, base, power)); /* of a large power */
    *c = ldexp(1, -down);
    return op2(u, DC_K_ADD, base, fma3(u, power, rest, lost));
}

/* 2^x = 2^n * 2^r, r = x - n exact. */
dc_fv dc_expand_exp2(const use *u)
{
    static const series near_f32 = {6,
                                    {0.000154531629451, 0.00133908633647, 0.00961808255728,
                                     0.0555035711422, 0.240226507606, 0.693147188026}};
    static const series near_f64 = {
        12,
        {2.5729324177362304214e-11, 4.455817908336064493e-10, 7.0548973041554992774e-9,
         1.0178057087733941105e-7, 1.321548680870556279e-6, 0.000015252733841556772589,
         0.00015403530393370733411, 0.0013333558146406470697, 0.0096181291076284794928,
         0.055504108664821627039, 0.24022650695910071233, 0.69314718055994530925}};
    const kind *k = kind_of(u);
    const int most = u->t == DC_F64 ? 1024 : 128;
    const dc_fv least = flt(u, -most - k->fraction - 1),
                shifter = flt(u, k->shifter + (double)(2 * k->bias));
    const dc_fv over = op2(u, DC_K_LE, flt(u, most), u->in[0]);
    const dc_fv under = op2(u, DC_K_LT, u->in[0], least);
    const dc_fv x = pick(u, under, least, u->in[0]); /* NaN stays */
    const dc_fv sum = op2(u, DC_K_ADD, x, shifter), n = op2(u, DC_K_SUB, sum, shifter);
    const dc_fv r = op2(u, DC_K_SUB, x, n);
    const dc_fv p =
        pick(u, under, flt(u, 0), fma3(u, r, series_at(u, r, &near_f32, &near_f64), flt(u, 1)));
    return pick(u, over, flt(u, INFINITY), times_power(u, p, n, sum, 0));
}

/* Where 2^n is a normal number. */
dc_fv dc_expand_exp_near(const use *u, dc_fv x)
{
    dc_fv sum;
    const dc_fv n = exponent_of(u, x, 1, &sum);
    const dc_fv p = op2(u, DC_K_ADD, reduced(u, x, n), flt(u, 1));
    return op2(u, DC_K_MUL, p, power_of_sum(u, sum));
}

/* exp(x) - 1 = (2^n - 1) + 2^n (exp(r) - 1). */
static dc_fv expm1_of(const use *u, dc_fv p, dc_fv sum)
{
    const dc_fv power = power_of_sum(u, sum);
    return fma3(u, power, p, op2(u, DC_K_SUB, power, flt(u, 1)));
}

dc_fv dc_expand_expm1_near(const use *u)
{
    dc_fv sum;
    const dc_fv n = exponent_of(u, u->in[0], 1, &sum);
    return expm1_of(u, reduced(u, u->in[0], n), sum);
}

/* For so small n one product with ln 2 does: as an f32 it is 10 times as good as others. */
dc_fv dc_expand_expm1_sum(const use *u, dc_fv x, dc_fv more)
{
    dc_fv sum;
    const dc_fv n = exponent_of(u, op2(u, DC_K_ADD, x, more), 1, &sum);
    const dc_fv rest = fma3(u, n, flt(u, -0.693147180559945309), x);
    const dc_fv r = op2(u, DC_K_ADD, rest, more);
    const dc_fv p = polynomial_by_pairs(u, r, f32_kind.coef, f32_kind.terms);
    const dc_fv square = op2(u, DC_K_MUL, r, r);
    return expm1_of(u, op2(u, DC_K_ADD, fma3(u, p, square, more), rest), sum);
}
