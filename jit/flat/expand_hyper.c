/*
 * Expansions of sinh, cosh, asinh, acosh and atanh: a polynomial for small arguments, exp or log for others.
 * Coefficients are Chebyshev fits (scripts/minimax).
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* (f(x) / x - 1) / s in s = x^2: for |x| up to 1, asinh of f32 up to 1.1752, atanh up to 1/2. */
static const series sinh_near_f32 = {
    4, {2.80628025828e-6, 0.000198381019687, 0.00833333967592, 0.166666666468}};
static const series sinh_near_f64 = {8,
                                     {2.8445264170227454935e-15, 7.6466253616554120708e-13,
                                      1.6059048396350580323e-10, 2.5052108364058040609e-8,
                                      2.7557319224040338599e-6, 0.00019841269841269773197,
                                      0.0083333333333333333658, 0.16666666666666666667}};
static const series asinh_near_f32 = {
    10,
    {0.00011951025413, -0.000973304610528, 0.0036336236047, -0.00849587108412, 0.0146795675623,
     -0.0215115052386, 0.0302147058298, -0.0446257831716, 0.0749993059453, -0.166666661902}};
static const series asinh_near_f64 = {
    20, {2.6494776932591694641e-6,   -0.000029430312234240151786, 0.00015516973872509846697,
         -0.00051995927244528861797, 0.0012552340757521972473,    -0.002357616442647475313,
         0.0036558529449080400106,   -0.0049355696090848710069,   0.0060957839909286894282,
         -0.007189420710483474676,   0.0083562558689977584722,    -0.0097542809912570759156,
         0.011550603223481240339,    -0.013964699244809561624,    0.017352752052879009824,
         -0.022372158381225734182,   0.030381944419423802187,     -0.044642857142388177874,
         0.074999999999996494028,    -0.16666666666666666229}};
static const series atanh_near_f32 = {6,
                                      {0.157517803033, 0.0649348953752, 0.114698751691,
                                       0.142639798518, 0.200004733096, 0.333333316848}};
static const series atanh_near_f64 = {
    14,
    {0.21098098034542087919, -0.14450491433494440404, 0.13557904100746587271,
     0.01229244790933120648, 0.054419154415345038418, 0.051607698766352624661,
     0.058930996931964775479, 0.06665886352645268395, 0.07692345940274253153,
     0.090909078815090355253, 0.11111111133938972817, 0.14285714285490104964,
     0.20000000000000864857, 0.33333333333333332781}};

static dc_fv odd_series(const use *u, dc_fv x, const series *of_f32, const series *of_f64)
{
    const dc_fv square = op2(u, DC_K_MUL, x, x);
    return fma3(u, op2(u, DC_K_MUL, x, square), series_at(u, square, of_f32, of_f64), x);
}

/* exp(|x|) / 2, and a quarter of its inverse, which is exp(-|x|) / 2. */
static dc_fv halves(const use *u, dc_fv size, dc_fv *inverse)
{
    const dc_fv h = dc_expand_half_exp(u, size);
    *inverse = op2(u, DC_K_DIV, flt(u, 0.25), h);
    return h;
}

dc_fv dc_expand_sinh(const use *u)
{
    const dc_fv x = u->in[0], size = magnitude_of(u, x);
    dc_fv inverse;
    const dc_fv h = halves(u, size, &inverse);
    const dc_fv near = odd_series(u, size, &sinh_near_f32, &sinh_near_f64);
    const dc_fv r = pick(u, op2(u, DC_K_LT, size, flt(u, 1)), near, op2(u, DC_K_SUB, h, inverse));
    return with_sign_of(u, r, x);
}

dc_fv dc_expand_cosh(const use *u)
{
    dc_fv inverse;
    const dc_fv h = halves(u, magnitude_of(u, u->in[0]), &inverse);
    return op2(u, DC_K_ADD, h, inverse);
}

/* asinh of what is not negative: log(x + sqrt(x^2 + 1)); log(2 x) where the square adds nothing to that or overflows. */
static dc_fv positive_asinh(const use *u, dc_fv x)
{
    const dc_fv one = flt(u, 1), large = op2(u, DC_K_LT, flt_of(u, 0x1p13, 0x1p28), x);
    const dc_fv root = op1(u, DC_K_SQRT, fma3(u, x, x, one));
    const dc_fv l = apply_to(u, dc_expand_log, pick(u, large, x, op2(u, DC_K_ADD, x, root)));
    const dc_fv far = op2(u, DC_K_ADD, l, pick(u, large, flt(u, 0.693147180559945309), flt(u, 0)));
    const dc_fv near = odd_series(u, x, &asinh_near_f32, &asinh_near_f64);
    return pick(u, op2(u, DC_K_LT, x, flt_of(u, 1.1752, 1)), near,
                far); /* of f32 where that is 1 */
}

dc_fv dc_expand_asinh(const use *u)
{
    const dc_fv x = u->in[0];
    return with_sign_of(u, positive_asinh(u, magnitude_of(u, x)), x);
}

/* 2 asinh(sqrt((x - 1) / 2)), which is as good near 1 as anywhere; below, the root is NaN. */
dc_fv dc_expand_acosh(const use *u)
{
    const dc_fv rest = op2(u, DC_K_SUB, u->in[0], flt(u, 1));
    const dc_fv s = op1(u, DC_K_SQRT, op2(u, DC_K_MUL, rest, flt(u, 0.5)));
    return op2(u, DC_K_MUL, positive_asinh(u, s), flt(u, 2));
}

/* log((1 + x) / (1 - x)) / 2; beyond 1 the quotient is negative. */
dc_fv dc_expand_atanh(const use *u)
{
    const dc_fv x = u->in[0], size = magnitude_of(u, x), one = flt(u, 1);
    const dc_fv quotient =
        op2(u, DC_K_DIV, op2(u, DC_K_ADD, one, size), op2(u, DC_K_SUB, one, size));
    const dc_fv far = op2(u, DC_K_MUL, apply_to(u, dc_expand_log, quotient), flt(u, 0.5));
    const dc_fv near = odd_series(u, size, &atanh_near_f32, &atanh_near_f64);
    return with_sign_of(u, pick(u, op2(u, DC_K_LT, size, flt(u, 0.5)), near, far), x);
}
