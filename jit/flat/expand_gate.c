/*
 * Expansions of functions that gate a number: x, or 1, times how likely a smaller one is. sigmoid(x) = 1 / (1 + exp(-x)),
 * silu(x) = x sigmoid(x), gelu(x) = x Phi(x), and x sigmoid(y) with y = 2 sqrt(2 / pi) (x + 0.044715 x^3), which is gelu with
 * tanh. Exponents have two parts: what is lost of a large one would be lost many times of the result.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* x without its low bits: the product of two such is exact. */
static dc_fv short_of(const use *u, dc_fv x)
{
    const dc_dtype un = unsigned_word(u);
    const dc_fv mask = bits(u, un, u->t == DC_F64 ? UINT64_MAX << 32 : 0xfffff000);
    return as(u, op2(u, DC_K_AND, as(u, x, un), mask), u->t);
}

dc_fv dc_expand_sigmoid(const use *u)
{
    return dc_expand_gate(u, flt(u, 1), op1(u, DC_K_NEG, u->in[0]), flt(u, 0));
}

/* x, but no less than what the gate closes for: a product with the least quotient is 0. NaN stays. */
static dc_fv no_less(const use *u, dc_fv x, dc_fv least)
{
    return pick(u, op2(u, DC_K_LT, x, least), least, x);
}

dc_fv dc_expand_silu(const use *u)
{
    const dc_fv x = no_less(u, u->in[0], flt_of(u, -112, -760));
    return dc_expand_gate(u, x, op1(u, DC_K_NEG, x), flt(u, 0));
}

/*
 * With c0 and c1 the coefficients of -y, c1 a^2 + c0 and its product with a have two parts, of which the high ones are exact
 * products of short numbers.
 */
dc_fv dc_expand_gelu_tanh(const use *u)
{
    const dc_fv x = no_less(u, u->in[0], flt_of(u, -15, -25)), end = flt_of(u, 15, 25);
    const dc_fv a = pick(u, op2(u, DC_K_LT, end, x), end, x);
    const dc_fv first = flt_of(u, -0x1.988p0, -0x1.98846p0),
                third = flt_of(u, -0x1.244p-4, -0x1.24450p-4);
    const dc_fv first_low = flt_of(u, -0x1.14cf50d942344p-14, 0x1.9857935ee5e07p-21);
    const dc_fv third_low = flt_of(u, -0x1.3ca9362d2bd27p-18, 0x1.ab64e96a16c84p-25);
    const dc_fv high = short_of(u, a), low = op2(u, DC_K_SUB, a, high),
                square = op2(u, DC_K_MUL, high, high);
    const dc_fv square_high = short_of(u, square);
    const dc_fv square_low =
        fma3(u, low, op2(u, DC_K_ADD, a, high), op2(u, DC_K_SUB, square, square_high));
    const dc_fv cube = op2(u, DC_K_MUL, third, square_high), sum = op2(u, DC_K_ADD, cube, first);
    const dc_fv left =
        op2(u, DC_K_SUB, cube, op2(u, DC_K_SUB, sum, first)); /* exact: `first` is short */
    const dc_fv whole = flt(u, -0.0713548162726002488);
    dc_fv rest = fma3(u, third_low, square_high, fma3(u, whole, square_low, first_low));
    rest = op2(u, DC_K_ADD, left, rest);
    const dc_fv sum_high = short_of(u, sum), y = op2(u, DC_K_MUL, high, sum_high);
    rest = op2(u, DC_K_ADD, rest, op2(u, DC_K_SUB, sum, sum_high));
    const dc_fv more = fma3(u, high, rest, op2(u, DC_K_MUL, low, op2(u, DC_K_ADD, sum_high, rest)));
    return dc_expand_gate(u, x, y, more);
}

/*
 * max(x, 0) - R(s) exp(-s^2 / 2), s = |x|: R(s) = s / 2 erfc(s / sqrt(2)) exp(s^2 / 2) is z P(z) with z = s / (s + m). Of P the
 * 1/2 is apart, whose product with z is exact. Below 0.6 it is x / 2 + x^2 Q(x^2).
 */
dc_fv dc_expand_gelu(const use *u)
{
    static const series near_f32 = {
        5,
        {0.000107274859361, -0.00118479155572, 0.00997323279508, -0.0664903655163, 0.398942280297}};
    static const series near_f64 = {10,
                                    {-1.0419303205171430509e-10, 2.2668789504624142505e-9,
                                     -4.1223876970448652081e-8, 6.659686386412997501e-7,
                                     -9.4446561468579380939e-6, 0.0001154346876053116267,
                                     -0.0011873282154798545095, 0.0099735570100358000887,
                                     -0.066490380066905446139, 0.39894228040143267794}};
    static const series tail_f32 = {
        10,
        {0.518662894267, -0.0251770317563, -0.293027554298, -0.235767269874, 0.000782358158236,
         0.240671584851, 0.218671947738, -0.158416969629, -0.465227665281, 0.133825105527}};
    static const series tail_f64 = {
        24, {-0.006100311940249587915, -0.010591367129536854517,  0.00402277987667970571,
             0.02058203008045937881,   0.0069661828975516926355,  -0.022392039132806813933,
             -0.020313039309842243641, 0.017813373616806663916,   0.033474603303608464976,
             -0.010316972081657007969, -0.048498100155842494547,  0.0029354645879359379736,
             0.071976320143635533813,  -0.0019540564819307351109, -0.11832060695419012762,
             0.034136143963732941061,  0.20874476257550048771,    -0.22270031151278882746,
             -0.24128604693532069889,  0.96634519825497927094,    -1.4921748636772575349,
             1.5485496029688581939,    -1.2157932839437842161,    0.25528513041575149325}};
    const dc_fv x = u->in[0], end = flt_of(u, 14.5, 38.7), half = flt(u, 0.5);
    dc_fv s = magnitude_of(u, x);
    s = pick(u, op2(u, DC_K_LT, end, s), end, s); /* NaN stays */
    const dc_fv high = short_of(u, s), square = op2(u, DC_K_MUL, high, high);
    const dc_fv left = op2(u, DC_K_MUL, op2(u, DC_K_SUB, high, s), op2(u, DC_K_ADD, high, s));
    const dc_fv m = flt_of(u, 1.625, 4), below = op2(u, DC_K_ADD, s, m),
                z = op2(u, DC_K_DIV, s, below);
    const dc_fv lost = op2(u, DC_K_SUB, s, op2(u, DC_K_SUB, below, m)); /* by the denominator */
    const dc_fv inverse = fma3(u, z, flt_of(u, -0.8, -0.25), flt_of(u, 0.615, 0.25)); /* of it */
    const dc_fv more =
        op2(u, DC_K_SUB, op2(u, DC_K_MUL, left, half), op2(u, DC_K_MUL, lost, inverse));
    const dc_fv part =
        op2(u, DC_K_MUL, z, series_at(u, op2(u, DC_K_SUB, z, half), &tail_f32, &tail_f64));
    const dc_fv tail = dc_expand_times_exp(u, op2(u, DC_K_MUL, z, half), part,
                                           op2(u, DC_K_MUL, square, flt(u, -0.5)), more);
    const dc_fv far = op2(u, DC_K_SUB, pick(u, op2(u, DC_K_LT, x, flt(u, 0)), flt(u, 0), x), tail);
    const dc_fv whole = op2(u, DC_K_MUL, s, s);
    const dc_fv near =
        fma3(u, whole, series_at(u, whole, &near_f32, &near_f64), op2(u, DC_K_MUL, x, half));
    return with_sign_of(u, pick(u, op2(u, DC_K_LT, s, flt(u, 0.6)), near, far), x);
}
