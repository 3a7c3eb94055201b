/*
 * Expansions of erf, erfc = 1 - erf and the inverse of erf.
 *
 * With Q(t) = -log(1 - erf(t)), erf(x) = -expm1(-Q(|x|)), which is as good near zero as anywhere. f32
 * has one polynomial for all arguments, by scripts/minimax, weighed by what its error does to the
 * result; f64 has x + x P(x^2) below 1 and 1 - exp(-Q) above, Q in two pieces, by Chebyshev fits.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/*
 * In t = -|x|, cut at -4, from where on erf is -1 in f32: -Q = t + t P(t). The second summand is kept
 * apart, so that small results are t and little more. 1.47 ulp off at most, 1.64 without FMA.
 */
static dc_fv erf_f32(const use *u)
{
    static const double coef[] = {-9.25626671723e-6, -0.000117641350259, -0.000632837285925,
                                  -0.00166702841327, -0.000160397125815, 0.0191530632771,
                                  0.102777830324,    -0.636619381987,    0.128379171611};
    const dc_fv x = u->in[0], end = flt(u, -4);
    const dc_fv below = op2(u, DC_K_OR, as(u, x, DC_U32), bits(u, DC_U32, 0x80000000));
    dc_fv t = as(u, below, DC_F32);
    t = pick(u, op2(u, DC_K_LT, t, end), end, t); /* NaN stays */
    const dc_fv more = op2(u, DC_K_MUL, t, polynomial_by_pairs(u, t, coef, (int)DC_COUNTOF(coef)));
    return with_sign_of(u, dc_expand_expm1_sum(u, t, more), x);
}

/* 1 from 6 on. Coefficients have the highest first; Q is in the distance from the middle. */
static dc_fv erf_f64(const use *u)
{
    static const double small[] = {
        2.8067128195611262471e-13,  -6.1967364287876999834e-12,  9.3237235181530266337e-11,
        -1.2277734486795523848e-9,  1.4806027146128751663e-8,    -1.6365768648832072118e-7,
        1.6462110782018636387e-6,   -0.000014925650236967501742, 0.00012055332978879483867,
        -0.00085483270234030006089, 0.0052239776254416740139,    -0.026866170645131218518,
        0.11283791670955125626,     -0.37612638903183752462,     0.1283791670955125739};
    static const double middle[] = {
        -1.25770728474477617e-9,  -9.290400609911463649e-10, 2.713135870023150128e-8,
        -1.513955727443893582e-7, 5.827230585633948888e-7,   -1.500721297760181768e-6,
        4.966577961359654014e-7,  0.00002396395972375218735, -0.0001954904432101820639,
        0.001102840923188588626,  -0.005270029325472056553,  0.02300896732567727865,
        0.901785029657921282,     3.733125959072618186,      3.837088703777942675};
    static const double large[] = {
        9.242656579931413002e-14,  -4.707764680799048002e-13,  5.635897302571697655e-13,
        2.624110092627132345e-12,  -4.691347500081684944e-11,  5.343008573016182298e-10,
        -4.745053349602410923e-9,  3.704032557280597033e-8,    -2.686889556175413127e-7,
        1.855652094132194822e-6,   -0.00001239124373834055975, 0.00008109266799469994111,
        -0.0005284298716106280451, 0.003515757109358091087,    0.9748141681567095509,
        8.479911403956949282,      19.03254276446739192};
    const dc_fv x = u->in[0], one = flt(u, 1), limit = flt(u, 6);
    const dc_fv magnitude = bits(u, DC_U64, ((uint64_t)1 << 63) - 1);
    const dc_fv size = as(u, op2(u, DC_K_AND, as(u, x, DC_U64), magnitude), u->t);
    const dc_fv square = op2(u, DC_K_MUL, x, x);
    const dc_fv low = fma3(u, x, polynomial(u, square, small, (int)DC_COUNTOF(small)), x);
    const dc_fv t = pick(u, op2(u, DC_K_LT, limit, size), limit, size); /* NaN stays */
    const dc_fv near = op2(u, DC_K_SUB, t, flt(u, 1.625)), far = op2(u, DC_K_SUB, t, flt(u, 4.125));
    const dc_fv q = pick(u, op2(u, DC_K_LT, t, flt(u, 2.25)),
                         polynomial(u, near, middle, (int)DC_COUNTOF(middle)),
                         polynomial(u, far, large, (int)DC_COUNTOF(large)));
    const dc_fv tail = dc_expand_exp_near(u, op1(u, DC_K_NEG, q));
    const dc_fv high = with_sign_of(u, op2(u, DC_K_SUB, one, tail), x);
    return pick(u, op2(u, DC_K_LT, size, one), low, high);
}

dc_fv dc_expand_erf(const use *u)
{
    return u->t == DC_F64 ? erf_f64(u) : erf_f32(u);
}

/* ---- 1 - erf ---- */

/*
 * exp(-a^2) erfcx(a) of a = |x|, where (1 + 2 a) erfcx(a) is a polynomial in (a - 4) / (a + 4) (M. Shepherd, J. Laframboise,
 * Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, 1981); of f32 with 3.6875 instead of 4, for which the constant term is
 * nearly a float. Half the digits of a have an exact square. Below 1/2, of f32 0.6, it is 1 less a polynomial for erf.
 */
dc_fv dc_expand_erfc(const use *u)
{
    static const series scaled_f32 = {11,
                                      {0.000888155853221, 0.00123615115095, -0.00845932451904,
                                       0.0259586567179, -0.056402496819, 0.0915413683358,
                                       -0.110546701259, 0.0859948707487, 0.000285597344528,
                                       -0.140273231263, 1.23869132709}};
    static const series scaled_f64 = {
        22, {-1.0633087846768292526e-8, -1.2343205537795277776e-8,   1.0610226619873635844e-7,
             6.7342310199236502554e-8,  -8.230444021617981686e-7,    2.9919858568607331032e-7,
             5.7089520797291767612e-6,  -0.000011224507914751285551, -0.000024399103618533449802,
             0.00015062241074223898402, -0.00019925668448291109137,  -0.00075777342910003743492,
             0.0050319699712873074492,  -0.016197734041020008178,    0.037167515538570171762,
             -0.066330365813385583159,  0.093732834998269492493,     -0.10103906603626274954,
             0.068097054254695173382,   0.015379652102619167145,     -0.1396211168405625355,
             1.232995118625552511}};
    static const series small_f32 = {6,
                                     {-0.000734893058309, 0.00517670764274, -0.0268574592672,
                                      0.112837186601, -0.376126366576, 0.128379166983}};
    static const series small_f64 = {10,
                                     {-1.4620913409445107079e-7, 1.6371234425769211828e-6,
                                      -0.000014923003368152059328, 0.00012055286202005712175,
                                      -0.00085483265107247963809, 0.0052239776220169363621,
                                      -0.026866170644999719804, 0.11283791670954869097,
                                      -0.3761263890318375052, 0.1283791670955125739}};
    const dc_fv x = u->in[0], one = flt(u, 1), middle = flt_of(u, 3.6875, 4),
                end = flt_of(u, 10.1, 27.3);
    dc_fv a = magnitude_of(u, x), left;
    a = pick(u, op2(u, DC_K_LT, end, a), end, a); /* NaN stays */
    const dc_fv exponent = square_by(u, a, -1, &left);
    /* One division serves 1 / (1 + 2 a) and q = (a - middle) / (a + middle). */
    const dc_fv twice = op2(u, DC_K_ADD, a, a), below = op2(u, DC_K_ADD, twice, one);
    const dc_fv sum = op2(u, DC_K_ADD, a, middle),
                both = op2(u, DC_K_DIV, one, op2(u, DC_K_MUL, sum, below));
    const dc_fv inverse = op2(u, DC_K_MUL, both, sum);
    const dc_fv q = op2(u, DC_K_MUL, op2(u, DC_K_SUB, a, middle), op2(u, DC_K_MUL, both, below));
    const series *of = u->t == DC_F64 ? &scaled_f64 : &scaled_f32;
    const dc_fv bend = op2(u, DC_K_MUL, q, polynomial(u, q, of->coef, of->terms - 1));
    const dc_fv level = flt(u, of->coef[of->terms - 1]);
    /* What the rounding of 1 + 2 a leaves is left to the exponential. */
    const dc_fv off = op2(u, DC_K_SUB, op2(u, DC_K_SUB, below, twice), one);
    dc_exp_scale scale;
    const dc_fv rest = dc_expand_exp_rest(u, exponent, fma3(u, off, inverse, left),
                                          of == &scaled_f64 || !u->b->fused, &scale);
    const dc_fv p = op2(u, DC_K_ADD, fma3(u, level, rest, fma3(u, bend, rest, bend)), level);
    dc_fv r = u->b->fused ? op2(u, DC_K_MUL, p, inverse) : op2(u, DC_K_DIV, p, below);
    if (u->b->fused) /* the product is corrected by what it leaves of p */
        r = fma3(u, fma3(u, op1(u, DC_K_NEG, r), below, p), inverse, r);
    r = dc_expand_by_exp_scale(u, r, &scale);
    const dc_fv far = pick(u, op2(u, DC_K_LT, x, flt(u, 0)), op2(u, DC_K_SUB, flt(u, 2), r), r);
    const dc_fv small = series_at(u, op2(u, DC_K_MUL, x, x), &small_f32, &small_f64);
    const dc_fv near = fma3(u, op1(u, DC_K_NEG, x), small, op2(u, DC_K_SUB, one, x));
    return pick(u, op2(u, DC_K_LT, a, flt_of(u, 0.6, 0.5)), near, far);
}

/* ---- the inverse ---- */

/*
 * x P(w) with w = -log(1 - x^2), of sqrt(w) where it is large (M. Giles, Approximating the erfinv function, 2010). The
 * polynomials are Chebyshev fits (scripts/minimax), of f32 about a place where the constant term is nearly a float; below 0.6
 * that of f32 is one in x^2.
 */
dc_fv dc_expand_erf_inv(const use *u)
{
    static const series middle_f32 = {11,
                                      {4.67193250904e-10, -8.69566757897e-9, 1.52564423677e-8,
                                       4.66576712771e-7, -3.39315147738e-6, -5.14941101446e-6,
                                       0.000218023253398, -0.00124465341843, -0.00421207390452,
                                       0.246562457788, 1.50369715732}};
    static const series middle_f64 = {
        25, {-3.5932028927020695337e-22, 3.1940155481362710878e-21,   1.9992599888615348824e-20,
             -3.4734793888538034974e-19, 6.0750507020724138813e-19,   1.5510787009902524519e-17,
             -1.2215637192404172343e-16, -3.9401881223043201388e-17,  6.5213335115022384649e-15,
             -4.0020031087558495143e-14, -8.0719259389900406758e-14,  2.6305268312595183062e-12,
             -1.29788053699325656e-11,   -5.4143032839195044138e-11,  1.0512233770504290202e-9,
             -4.1126604371632181964e-9,  -2.9070391275641319497e-8,   4.2347881682224595795e-7,
             -1.3654691758785657116e-6,  -0.000013882523393957482189, 0.00018673420801981186737,
             -0.00074070253415464312196, -0.0060336708714268510801,   0.24015818242558834244,
             1.653654562683102712}};
    static const series tail_f32 = {10,
                                    {0.000111870195041, -0.00030615421535, -5.0545257456e-5,
                                     0.00148036852364, -0.00360103246005, 0.00568899551013,
                                     -0.00763643708997, 0.00944501601838, 1.00167490821,
                                     2.8329768066}};
    static const series tail_f64 = {
        21, {7.6802004790770527426e-9,   -1.5305397964152548213e-8,   -2.0914533347731259665e-8,
             1.3158663683192965965e-7,   -2.4549818963339822496e-7,   -2.7617162238162412496e-8,
             1.4815977874022538655e-6,   -3.9857059456481733275e-6,   2.9325784553853499679e-6,
             0.000012465028224217455259, -0.000047320680665446968429, 0.000068287117392519557239,
             0.000024031512865758356261, -0.00035503781378524517743,  0.00095328934157941372065,
             -0.0016882755354488555375,  0.0024914420979569603915,    -0.0037512085082247340335,
             0.0053709145535550330329,   1.005258967694165383,        3.0838856104922206763}};
    static const series end_f64 = {
        19,
        {-1.5439278197208337765e-11, 4.2802433037309419462e-11, 4.697730344596280542e-11,
         -4.3738896637340692863e-10, 1.358936534157709283e-9, -3.4714379338967189619e-9,
         7.7774285398266345844e-9, -1.5255160181292629919e-8, 2.9044909320789474099e-8,
         -6.7556030353736606166e-8, 2.2904362741369038603e-7, -9.9302947749828854404e-7,
         4.5260543285596711929e-6, -0.000019681770676949252684, 0.00007599527792024939873,
         -0.00021503011983024693834, -0.0001387193183735169747, 1.0103004648645454135,
         4.849906401408584301}};
    static const series small_f32 = {8,
                                     {0.156160523753, -0.0466209007863, 0.0824024478475,
                                      0.059417865987, 0.0870817610697, 0.127531727502,
                                      0.23201409123, 0.886226924255}};
    const bool wide = u->t == DC_F64;
    const dc_fv x = u->in[0], size = magnitude_of(u, x), one = flt(u, 1);
    const dc_fv product =
        op2(u, DC_K_MUL, op2(u, DC_K_SUB, one, size), op2(u, DC_K_ADD, one, size));
    const dc_fv w = op1(u, DC_K_NEG, apply_to(u, dc_expand_log, product));
    const dc_fv root = op1(u, DC_K_SQRT, w);
    const dc_fv t = op2(u, DC_K_SUB, w, flt_of(u, 2.50927734375, 3.125));
    const series *of = wide ? &middle_f64 : &middle_f32;
    const dc_fv rest = polynomial(u, t, of->coef, of->terms - 1);
    const dc_fv level = flt(u, of->coef[of->terms - 1]), near = fma3(u, rest, t, level);
    dc_fv far = series_at(u, op2(u, DC_K_SUB, root, flt_of(u, 3, 3.25)), &tail_f32, &tail_f64);
    if (wide) {
        const dc_fv last =
            polynomial(u, op2(u, DC_K_SUB, root, flt(u, 5)), end_f64.coef, end_f64.terms);
        far = pick(u, op2(u, DC_K_LT, root, flt(u, 4)), far, last);
    }
    const dc_fv is_near = op2(u, DC_K_LT, w, flt_of(u, 5, 6.25));
    const dc_fv p = pick(u, is_near, near, far);
    const dc_fv infinite = with_sign_of(u, flt(u, INFINITY), x);
    dc_fv r = op2(u, DC_K_MUL, x, p);
    if (!wide) { /* what the last sum of the polynomial loses is 0.8 ulp without a multiply-add */
        const dc_fv lost =
            op2(u, DC_K_SUB, op2(u, DC_K_MUL, t, rest), op2(u, DC_K_SUB, near, level));
        r = pick(u, is_near, fma3(u, x, p, op2(u, DC_K_MUL, x, lost)), r);
        const dc_fv square = op2(u, DC_K_MUL, x, x);
        const dc_fv low =
            op2(u, DC_K_MUL, x, polynomial(u, square, small_f32.coef, small_f32.terms));
        r = pick(u, op2(u, DC_K_LT, size, flt(u, 0.6)), low, r);
    }
    return pick(u, op2(u, DC_K_EQ, size, one), infinite, r);
}
