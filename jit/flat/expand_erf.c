/*
 * Expansions of erf.
 *
 * With Q(t) = -log(1 - erf(t)), erf(x) = -expm1(-Q(|x|)), which is as good near zero as anywhere. f32
 * has one polynomial for all arguments, by scripts/minimax, weighed by what its error does to the
 * result; f64 has x + x P(x^2) below 1 and 1 - exp(-Q) above, Q in two pieces, by Chebyshev fits.
 */
#include "jit/flat/expand_impl.h"

/* The sign of x with the magnitude of y. */
static dc_fv with_sign_of(const use *u, dc_fv y, dc_fv x)
{
    const bool wide = dc_dtype_bits(u->t) == 64;
    const dc_dtype un = wide ? DC_U64 : DC_U32;
    const uint64_t sign = (uint64_t)1 << (wide ? 63 : 31);
    const dc_fv of_x = op2(u, DC_K_AND, as(u, x, un), bits(u, un, sign));
    const dc_fv of_y = op2(u, DC_K_AND, as(u, y, un), bits(u, un, sign - 1));
    return as(u, op2(u, DC_K_OR, of_x, of_y), u->t);
}

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
