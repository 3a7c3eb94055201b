/*
 * Expansions of lgamma and digamma of f64. From 8 on (digamma: 7) they are asymptotic series; below, the argument is
 * moved to an interval of about length 1, where a polynomial (a Chebyshev fit, scripts/minimax) is exact at the zeros 1,
 * 2 and 1.4616; negative ones are reflected. Where lgamma is near 0 for a negative argument the error is small beside the
 * terms that cancel.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* lgamma(2 + y) / y, y from -3/4 to 1/2 */
static const series lgamma_near_f64 = {
    22, {7.5584726967884471303e-8,   5.025731736555141283e-8,    6.242628681779386868e-9,
         -1.9264000508094272229e-7,  2.0758927598859587305e-7,   -4.0183304160594520303e-7,
         9.6702549168270040251e-7,   -2.0524824167248728013e-6,  4.3700893078402946834e-6,
         -9.4372702065555100078e-6,  0.000020508175353649692356, -0.000044926464931326536577,
         0.000099457401988949338893, -0.00022315474408602819124, 0.00050966953206487143944,
         -0.0011927539122376618957,  0.0028905103304820636811,   -0.0073855510286631931336,
         0.020580808427788702375,    -0.067352301053198189676,   0.32246703342411319886,
         0.42278433509846713955}};
/* digamma(x) / (x - zero) in x - 3/2, x in 1..2 */
static const series digamma_near_f64 = {
    22, {-0.00017312261802727393258, 0.00025968482126430746555,  -0.00015148586836773365902,
         0.00022723316609873758807,  -0.00048219905305667888755, 0.00072332662792875541556,
         -0.001037637409841860467,   0.0015566317474486839277,   -0.002345267632540769041,
         0.0035190064015022760473,   -0.0052799648732574042082,  0.0079269446464037960374,
         -0.011908218001568644751,   0.017907252439451199397,    -0.026975796756138248795,
         0.040760833812420736017,    -0.06192213327306453169,    0.094988724454941213253,
         -0.14840492305390885721,    0.24054248424077421856,     -0.42362742128146050498,
         0.95105587603183289283}};
/* sin(pi r) / r and cos(pi r) in r^2, |r| up to 1/2 */
static const series sine_f64 = {
    9,
    {7.697826767219945264e-7, -0.00002190349707451930688, 0.00046629981618979268976,
     -0.0073704305059169325646, 0.082145886573102893586, -0.59926452931894468121,
     2.5501640398773004745, -5.1677127800499696077, 3.1415926535897932378}};
static const series cosine_f64 = {
    9,
    {4.1495643533370151474e-6, -0.00010456655338684390156, 0.0019295562724814315949,
     -0.025806888737002137901, 0.23533063012953284526, -1.3352627688434470927,
     4.0587121264164969995, -4.9348022005446767673, 0.99999999999999999608}};

/* B(2n) / (2n (2n - 1)) and B(2n) / (2n), the last one first */
static const series stirling_f64 = {8,
                                    {-3617. / 122400, 1. / 156, -691. / 360360, 1. / 1188,
                                     -1. / 1680, 1. / 1260, -1. / 360, 1. / 12}};
static const series harmonic_f64 = {11,
                                    {854513. / 3036, -174611. / 6600, 43867. / 14364, -3617. / 8160,
                                     1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252,
                                     -1. / 120, 1. / 12}};

static dc_fv series_of(const use *u, dc_fv x, const series *s)
{
    return polynomial(u, x, s->coef, s->terms);
}

/* x without its integer nearest to it: exact. */
static dc_fv fraction_of(const use *u, dc_fv x)
{
    return op2(u, DC_K_SUB, x, apply_to(u, dc_expand_round, x));
}

/* ---- lgamma ---- */

enum { LGAMMA_STEPS = 6 };

/*
 * (t - 1/2) (log t - 1) + (log(2 pi) - 1) / 2 + 1 / (12 t) - ..., for t from 8.5 on
 */
static dc_fv stirling(const use *u, dc_fv t, dc_fv log_t)
{
    const dc_fv one = flt(u, 1), inverse = op2(u, DC_K_DIV, one, t);
    const dc_fv square = op2(u, DC_K_MUL, inverse, inverse);
    const dc_fv more =
        fma3(u, inverse, series_of(u, square, &stirling_f64), flt(u, 0.418938533204672742));
    return fma3(u, op2(u, DC_K_SUB, t, flt(u, 0.5)), op2(u, DC_K_SUB, log_t, one), more);
}

/*
 * lgamma(t) = lgamma(2 + y) + or - log(w) with y from -3/4 to 1/2:
 *
 *     |x| < 1/2       y = x       - log |x (1 + x)|     x itself
 *     1/2 .. 5/4      y = t - 1   - log t               t = |x| from here on
 *     5/4 .. 5/2      y = t - 2   w = 1
 *     5/2 .. 17/2     y = t - n   + log((t - 1) (t - 2) ... (t - n + 2))
 */
dc_fv dc_expand_lgamma_f64(const use *u)
{
    const dc_fv x = u->in[0], t = magnitude_of(u, x), one = flt(u, 1);
    const dc_fv small = op2(u, DC_K_LT, t, flt(u, 0.5)), low = op2(u, DC_K_LT, t, flt(u, 1.25));
    const dc_fv large = op2(u, DC_K_LE, flt(u, LGAMMA_STEPS + 2.5), t);
    dc_fv y = op2(u, DC_K_SUB, t, flt(u, 2)), w = one;
    for (int i = 1; i <= LGAMMA_STEPS; i++) {
        const dc_fv factor = op2(u, DC_K_SUB, t, flt(u, i));
        const dc_fv takes = op2(u, DC_K_LE, flt(u, i + 1.5), t);
        w = pick(u, takes, i == 1 ? factor : op2(u, DC_K_MUL, w, factor), w);
        y = pick(u, takes, op2(u, DC_K_SUB, t, flt(u, i + 2)), y);
    }
    const dc_fv above = op2(u, DC_K_ADD, x, one);
    const dc_fv tiny = magnitude_of(u, op2(u, DC_K_MUL, x, above));
    y = pick(u, small, x, pick(u, low, op2(u, DC_K_SUB, t, one), y));
    w = pick(u, small, tiny, pick(u, op2(u, DC_K_OR, low, large), t, w));
    const dc_fv log_w = apply_to(u, dc_expand_log, w);
    const dc_fv part = pick(u, low, op1(u, DC_K_NEG, log_w), log_w);
    const dc_fv level = series_of(u, y, &lgamma_near_f64);
    const dc_fv near = fma3(u, y, level, part);
    const dc_fv r = pick(u, large, stirling(u, t, log_w), near);
    /* log(pi / |x sin(pi x)|) - lgamma(|x|) */
    const dc_fv turn = magnitude_of(u, fraction_of(u, t));
    const dc_fv sine =
        op2(u, DC_K_MUL, turn, series_of(u, op2(u, DC_K_MUL, turn, turn), &sine_f64));
    const dc_fv log_sine = apply_to(u, dc_expand_log, op2(u, DC_K_MUL, t, sine));
    const dc_fv other =
        op2(u, DC_K_SUB, op2(u, DC_K_SUB, flt(u, 1.14472988584940017), log_sine), r);
    const dc_fv reflects = op2(u, DC_K_LE, x, flt(u, -0.5));
    const dc_fv pole = op2(u, DC_K_AND, reflects, op2(u, DC_K_EQ, turn, flt(u, 0)));
    const dc_fv endless = op2(u, DC_K_OR, pole, op2(u, DC_K_EQ, t, flt(u, INFINITY)));
    return pick(u, endless, flt(u, INFINITY), pick(u, reflects, other, r));
}

/* ---- digamma ---- */

enum { DIGAMMA_STEPS = 5 };

/*
 * digamma(t) for t > 0, and digamma(1 + t) = digamma(t) + 1 / t where `next`: without the sum 1 + t, which would be
 * rounded. From 7 on log t - 1 / (2 t) - 1 / (12 t^2) + ...
 */
static dc_fv far_digamma(const use *u, dc_fv t, dc_fv next)
{
    const dc_fv inverse = op2(u, DC_K_DIV, flt(u, 1), t);
    const dc_fv square = op2(u, DC_K_MUL, inverse, inverse);
    const dc_fv more = fma3(u, square, series_of(u, square, &harmonic_f64),
                            op2(u, DC_K_MUL, inverse, pick(u, next, flt(u, -0.5), flt(u, 0.5))));
    return op2(u, DC_K_SUB, apply_to(u, dc_expand_log, t), more);
}

/*
 * Below: digamma(c + 3/2), |c| up to 1/2, and the sum of 1 / (t - i) of as many i from 1 on as leave t - i from 1 on; of 1 / t,
 * too, for the next one. Below 1 it is less 1 / t, but not for the next one. The sum is two quotients. c is t less
 * something, exact, and so is how far it is from the zero.
 */
static dc_fv near_digamma(const use *u, dc_fv t, dc_fv next)
{
    const dc_fv one = flt(u, 1), zero = flt(u, 0), below = op2(u, DC_K_LT, t, one);
    dc_fv c = op2(u, DC_K_SUB, t, flt(u, 1.5));
    dc_fv top[2] = {pick(u, next, one, zero), zero}, bottom[2] = {pick(u, next, t, one), one};
    for (int i = 1; i <= DIGAMMA_STEPS; i++) {
        const int part = i <= 2 ? 0 : 1;
        const dc_fv takes = op2(u, DC_K_LE, flt(u, i + 1), t);
        const dc_fv term = op2(u, DC_K_SUB, t, flt(u, i));
        top[part] = pick(u, takes, fma3(u, top[part], term, bottom[part]), top[part]);
        bottom[part] = pick(u, takes, op2(u, DC_K_MUL, bottom[part], term), bottom[part]);
        c = pick(u, takes, op2(u, DC_K_SUB, t, flt(u, i + 1.5)), c);
    }
    c = pick(u, below, op2(u, DC_K_SUB, t, flt(u, 0.5)), c);
    top[0] = pick(u, below, pick(u, next, zero, flt(u, -1)), top[0]);
    bottom[0] = pick(u, below, pick(u, next, one, t), bottom[0]);
    const dc_fv sum =
        op2(u, DC_K_ADD, op2(u, DC_K_DIV, top[0], bottom[0]), op2(u, DC_K_DIV, top[1], bottom[1]));
    const dc_fv away = op2(u, DC_K_ADD, c, flt(u, 0x1.3a4f395283812p-5));
    const dc_fv rest = op2(u, DC_K_ADD, away, flt(u, 0x1.e563779a1f5b1p-60));
    return fma3(u, rest, series_of(u, c, &digamma_near_f64), sum);
}

/* pi / tan(pi r) for |r| up to 1/2, from what is left to the nearer one of 0 and 1/2. */
static dc_fv cotangent(const use *u, dc_fv r)
{
    const dc_fv half = flt(u, 0.5), size = magnitude_of(u, r);
    const dc_fv steep = op2(u, DC_K_LT, flt(u, 0.25), size);
    const dc_fv q = pick(u, steep, op2(u, DC_K_SUB, half, size), size);
    const dc_fv square = op2(u, DC_K_MUL, q, q);
    const dc_fv cosine = series_of(u, square, &cosine_f64);
    const dc_fv sine = series_of(u, square, &sine_f64); /* by q */
    const dc_fv pi = flt(u, 3.14159265358979324);
    const dc_fv top = op2(u, DC_K_MUL, pick(u, steep, op2(u, DC_K_MUL, q, sine), cosine), pi);
    const dc_fv whole = op2(u, DC_K_DIV, top, pick(u, steep, cosine, sine));
    /* q last: it may be no normal number */
    return with_sign_of(u, pick(u, steep, whole, op2(u, DC_K_DIV, whole, q)), r);
}

/* digamma(1 - x) - pi / tan(pi x) for x up to 0: NaN for a negative integer, infinite at 0. */
dc_fv dc_expand_digamma_f64(const use *u)
{
    const dc_fv x = u->in[0], zero = flt(u, 0), t = magnitude_of(u, x);
    const dc_fv reflects = op2(u, DC_K_LE, x, zero);
    const dc_fv far = op2(u, DC_K_LE, flt(u, DIGAMMA_STEPS + 2), t);
    const dc_fv r = pick(u, far, far_digamma(u, t, reflects), near_digamma(u, t, reflects));
    const dc_fv left = fraction_of(u, x), small = op2(u, DC_K_LT, t, flt(u, 0.5));
    const dc_fv turn = pick(u, small, x, left); /* keeps the sign of 0 */
    const dc_fv other = op2(u, DC_K_SUB, r, cotangent(u, turn));
    const dc_fv pole = op2(u, DC_K_AND, op2(u, DC_K_EQ, turn, zero), op2(u, DC_K_LT, x, zero));
    return pick(u, pole, flt(u, NAN), pick(u, reflects, other, r));
}
