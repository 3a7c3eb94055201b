/*
 * Expansions of log, log2, log10 and the cube root. The log of f32 follows Cephes (S. Moshier, Methods and Programs for
 * Mathematical Functions, 1989), that of f64 fdlibm (Sun Microsystems, 1993): the series of atanh, economised. Other
 * bases take the logarithm in two parts, as in fdlibm.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* x = 2^exponent * (1 + f), 1 + f in sqrt(1/2) .. sqrt(2) */
typedef struct parts {
    dc_fv exponent, f;
} parts;

static parts take_apart(const use *u, dc_fv x)
{
    const bool wide = u->t == DC_F64;
    const dc_dtype whole = signed_word(u);
    const int fraction = dc_dtype_fraction(u->t);
    const dc_fv half_root = bits(u, whole, wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
    const dc_fv tiny = op2(u, DC_K_LT, x, flt_of(u, 0x1p-126, 0x1p-1022));
    const dc_fv normal = pick(u, tiny, op2(u, DC_K_MUL, x, flt(u, ldexp(1, fraction))), x);
    const dc_fv above = op2(u, DC_K_SUB, as(u, normal, whole), half_root);
    const dc_fv by = bits(u, whole, (uint64_t)fraction);
    dc_fv e = op2(u, DC_K_SHR, above, by);
    e = pick(u, tiny, op2(u, DC_K_SUB, e, by), e);
    const dc_fv rest = op2(u, DC_K_AND, above, bits(u, whole, ((uint64_t)1 << fraction) - 1));
    const dc_fv m = as(u, op2(u, DC_K_ADD, rest, half_root), u->t);
    return (parts){.exponent = dc_fb_convert(u->b, e, u->t), .f = op2(u, DC_K_SUB, m, flt(u, 1))};
}

/* r for x from the smallest float to the largest; -infinity at 0, NaN below. */
static dc_fv inside(const use *u, dc_fv r)
{
    const dc_fv x = u->in[0], zero = flt(u, 0);
    r = pick(u, op2(u, DC_K_LT, x, flt(u, INFINITY)), r, x); /* infinity and NaN */
    r = pick(u, op2(u, DC_K_LT, x, zero), flt(u, NAN), r);
    return pick(u, op2(u, DC_K_EQ, x, zero), flt(u, -INFINITY), r);
}

/* f^3 P(f) = log(1 + f) - f + f^2 / 2 of f32 */
static dc_fv cubic_f32(const use *u, dc_fv f, dc_fv square)
{
    static const double coef[] = {7.0376836292e-2,  -1.1514610310e-1, 1.1676998740e-1,
                                  -1.2420140846e-1, 1.4249322787e-1,  -1.6668057665e-1,
                                  2.0000714765e-1,  -2.4999993993e-1, 3.3333331174e-1};
    const dc_fv p = polynomial(u, f, coef, (int)DC_COUNTOF(coef));
    return op2(u, DC_K_MUL, p, op2(u, DC_K_MUL, f, square));
}

/* s * (f^2 / 2 + R(s^2)) with s = f / (2 + f), h = f^2 / 2, which is log(1 + f) - f + h, of f64 */
static dc_fv cubic_f64(const use *u, dc_fv f, dc_fv h)
{
    static const double coef[] = {1.479819860510658591e-01, 1.531383769920937332e-01,
                                  1.818357216161805012e-01, 2.222219843214978396e-01,
                                  2.857142874366239149e-01, 3.999999999940941908e-01,
                                  6.666666666666735130e-01};
    const dc_fv s = op2(u, DC_K_DIV, f, op2(u, DC_K_ADD, f, flt(u, 2)));
    const dc_fv square = op2(u, DC_K_MUL, s, s);
    const dc_fv r = op2(u, DC_K_MUL, polynomial(u, square, coef, (int)DC_COUNTOF(coef)), square);
    return op2(u, DC_K_MUL, s, op2(u, DC_K_ADD, h, r));
}

/* ln 2 = high - low; a product of high and an exponent is exact. */
static dc_fv log_f32(const use *u)
{
    const parts x = take_apart(u, u->in[0]);
    const dc_fv square = op2(u, DC_K_MUL, x.f, x.f);
    dc_fv p = fma3(u, x.exponent, flt(u, -2.12194440054690583e-4), cubic_f32(u, x.f, square));
    p = fma3(u, square, flt(u, -0.5), p);
    return fma3(u, x.exponent, flt(u, 0.693359375), op2(u, DC_K_ADD, x.f, p));
}

static dc_fv log_f64(const use *u)
{
    const parts x = take_apart(u, u->in[0]);
    const dc_fv h = op2(u, DC_K_MUL, op2(u, DC_K_MUL, x.f, x.f), flt(u, 0.5));
    dc_fv r = fma3(u, x.exponent, flt(u, -0x1.718432a1b0e26p-35), cubic_f64(u, x.f, h));
    r = op2(u, DC_K_SUB, h, r); /* small parts first */
    return fma3(u, x.exponent, flt(u, 0x1.62e42ffp-1), op2(u, DC_K_SUB, x.f, r));
}

dc_fv dc_expand_log(const use *u)
{
    return inside(u, u->t == DC_F64 ? log_f64(u) : log_f32(u));
}

/* The parts of a number inside are the large one and what is added to it, at most 0.09. */
void dc_expand_log_parts(const use *u, dc_fv v, dc_fv *high, dc_fv *low)
{
    use inner = *u;
    inner.in[0] = v;
    const parts x = take_apart(u, v);
    const dc_fv square = op2(u, DC_K_MUL, x.f, x.f);
    dc_fv rest = fma3(u, x.exponent, flt(u, -2.12194440054690583e-4), cubic_f32(u, x.f, square));
    rest = fma3(u, square, flt(u, -0.5), rest);
    const dc_fv whole = op2(u, DC_K_MUL, x.exponent, flt(u, 0.693359375)); /* exact */
    const dc_fv top = op2(u, DC_K_ADD, whole, x.f);
    const dc_fv lost = op2(u, DC_K_ADD, op2(u, DC_K_SUB, whole, top), x.f);
    *high = inside(&inner, top);
    *low = op2(u, DC_K_ADD, lost, rest);
}

/* ---- other bases ---- */

/* log(1 + f) in two parts, the first of which has half the digits. */
static void halves(const use *u, dc_fv f, dc_fv *high, dc_fv *low)
{
    const dc_fv square = op2(u, DC_K_MUL, f, f), h = op2(u, DC_K_MUL, square, flt(u, 0.5));
    const dc_fv rest = u->t == DC_F64 ? cubic_f64(u, f, h) : cubic_f32(u, f, square);
    *high = short_of(u, op2(u, DC_K_SUB, f, h));
    *low = op2(u, DC_K_ADD, op2(u, DC_K_SUB, op2(u, DC_K_SUB, f, *high), h), rest);
}

/* What of a base b the logarithm is made of, in two parts each: 1 / log(b), the logarithm of 2. */
typedef struct base {
    double scale[2], unit[2];
} base;

static dc_fv log_of_base(const use *u, const base *k)
{
    const parts x = take_apart(u, u->in[0]);
    dc_fv high, low;
    halves(u, x.f, &high, &low);
    dc_fv r = op2(u, DC_K_MUL, op2(u, DC_K_ADD, high, low), flt(u, k->scale[1]));
    r = fma3(u, low, flt(u, k->scale[0]), r);
    if (k->unit[1] != 0)
        r = fma3(u, x.exponent, flt(u, k->unit[1]), r);
    const dc_fv large = op2(u, DC_K_MUL, high, flt(u, k->scale[0])); /* exact */
    const dc_fv whole = op2(u, DC_K_MUL, x.exponent, flt(u, k->unit[0]));
    const dc_fv top = op2(u, DC_K_ADD, whole, large);
    r = op2(u, DC_K_ADD, op2(u, DC_K_ADD, op2(u, DC_K_SUB, whole, top), large), r);
    return inside(u, op2(u, DC_K_ADD, top, r));
}

/* 1 / ln 2 = 1 + scale: what f is multiplied by is less than half of it. */
static dc_fv log2_f32(const use *u)
{
    const parts x = take_apart(u, u->in[0]);
    const dc_fv square = op2(u, DC_K_MUL, x.f, x.f), scale = flt(u, 0.442695040888963407);
    const dc_fv rest = fma3(u, square, flt(u, -0.5), cubic_f32(u, x.f, square));
    const dc_fv more = fma3(u, op2(u, DC_K_ADD, x.f, rest), scale, rest);
    return op2(u, DC_K_ADD, x.exponent, op2(u, DC_K_ADD, x.f, more));
}

dc_fv dc_expand_log2(const use *u)
{
    static const base of_f64 = {{0x1.71547652p+0, 0x1.705fc2eefa2p-33}, {1, 0}};
    return u->t == DC_F64 ? log_of_base(u, &of_f64) : inside(u, log2_f32(u));
}

dc_fv dc_expand_log10(const use *u)
{
    static const base of_f32 = {{0x1.bccp-2, -0x1.09d5b235e39abp-15},
                                {0x1.344p-2, 0x1.3509f79fef312p-18}};
    static const base of_f64 = {{0x1.bcb7b152p-2, 0x1.b9438ca9aadd5p-36},
                                {0x1.3441350ap-2, -0x1.0c0219dc1da99p-39}};
    return log_of_base(u, u->t == DC_F64 ? &of_f64 : &of_f32);
}

/* ---- the cube root ---- */

/*
 * Of f64: a third of the bits, with what they lack of the exponent, is a root within 4 %; times a polynomial for the
 * inverse root of t^3 / x, and a step of Halley's, from a t of so few digits that t^2 is exact.
 */
static dc_fv root_f64(const use *u, dc_fv x)
{
    static const double near[] = {0.14543150262171, -0.17441251238878, 0.22221871850236,
                                  -0.33332939289078, 1.0};
    const dc_fv high = op2(u, DC_K_SHR, as(u, x, DC_U64), bits(u, DC_U64, 32));
    const dc_fv third =
        op2(u, DC_K_SHR, op2(u, DC_K_MUL, high, bits(u, DC_U64, 0xaaaaaaab)), bits(u, DC_U64, 33));
    const dc_fv sum = op2(u, DC_K_ADD, third, bits(u, DC_U64, 715094163));
    dc_fv t = as(u, op2(u, DC_K_SHL, sum, bits(u, DC_U64, 32)), DC_F64);
    const dc_fv part = op2(u, DC_K_DIV, op2(u, DC_K_MUL, t, t), x);
    const dc_fv off = op2(u, DC_K_SUB, op2(u, DC_K_MUL, part, t), flt(u, 1));
    t = op2(u, DC_K_MUL, t, polynomial(u, off, near, (int)DC_COUNTOF(near)));
    t = as(u, op2(u, DC_K_AND, as(u, t, DC_U64), bits(u, DC_U64, UINT64_MAX << 30)), DC_F64);
    const dc_fv q = op2(u, DC_K_DIV, x, op2(u, DC_K_MUL, t, t));
    const dc_fv twice = op2(u, DC_K_ADD, t, t);
    const dc_fv step = op2(u, DC_K_DIV, op2(u, DC_K_SUB, q, t), op2(u, DC_K_ADD, twice, q));
    return fma3(u, t, step, t);
}

/*
 * Of f32 by the inverse root y, which needs no division: from the bits, then times a polynomial in 1 - x y^3. t = x y^2 of
 * 12 digits, whose square is exact, is off by the factor of (1 + r)^(1/3), r = (t^3 - x) / x.
 */
static dc_fv root_f32(const use *u, dc_fv x)
{
    static const double near[] = {0.174280279108, 0.223884085975, 0.33333126903, 0.999997619038};
    const dc_fv high = op2(u, DC_K_SHR, as(u, x, DC_U32), bits(u, DC_U32, 16));
    const dc_fv third = op2(u, DC_K_MUL, high, bits(u, DC_U32, 21846)); /* 2^16 / 3 */
    dc_fv y = as(u, op2(u, DC_K_SUB, bits(u, DC_U32, 0x54a20000), third), DC_F32);
    const dc_fv cube = op2(u, DC_K_MUL, op2(u, DC_K_MUL, op2(u, DC_K_MUL, x, y), y), y);
    const dc_fv off = op2(u, DC_K_SUB, flt(u, 1), cube);
    y = op2(u, DC_K_MUL, y, polynomial(u, off, near, (int)DC_COUNTOF(near)));
    const dc_fv rough = op2(u, DC_K_MUL, op2(u, DC_K_MUL, x, y), y);
    const dc_fv t = short_of(u, rough), square = op2(u, DC_K_MUL, t, t);
    dc_fv r = fma3(u, square, t, op1(u, DC_K_NEG, x));
    for (int i = 0; i < 3; i++)
        r = op2(u, DC_K_MUL, r, y);
    const dc_fv step = op2(u, DC_K_MUL, r, fma3(u, r, flt(u, 2. / 9), flt(u, -1. / 3)));
    return fma3(u, t, step, t);
}

dc_fv dc_expand_cbrt(const use *u)
{
    const dc_fv x = u->in[0], size = magnitude_of(u, x);
    const dc_fv tiny = op2(u, DC_K_LT, size, flt_of(u, 0x1p-126, 0x1p-1022));
    const dc_fv normal = pick(u, tiny, op2(u, DC_K_MUL, size, flt_of(u, 0x1p24, 0x1p54)), size);
    dc_fv t = u->t == DC_F64 ? root_f64(u, normal) : root_f32(u, normal);
    t = pick(u, tiny, op2(u, DC_K_MUL, t, flt_of(u, 0x1p-8, 0x1p-18)), t);
    const dc_fv finite = op2(u, DC_K_LT, size, flt(u, INFINITY));
    const dc_fv has_one = op2(u, DC_K_AND, op2(u, DC_K_LT, flt(u, 0), size), finite);
    /* The sign last: to pick x behind it is what LLVM 15 gets wrong with AVX-512, for x from a bf16. */
    return with_sign_of(u, pick(u, has_one, t, size), x);
}
