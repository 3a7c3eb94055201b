/*
 * Expansions of log2, log10 and the cube root, after fdlibm (Sun Microsystems, 1993). The coefficients of f32 are
 * Chebyshev fits (scripts/minimax).
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/*
 * x = 2^exponent * (1 + f), 1 + f in sqrt(1/2) .. sqrt(2); log(1 + f) in two parts, the first of which has half the
 * digits: f - f^2 / 2 and s * (f^2 / 2 + R(s^2)) with s = f / (2 + f).
 */
typedef struct split_log {
    dc_fv exponent, high, low;
} split_log;

static const series log_f32 = {3, {0.295821589816, 0.399887318299, 0.666666851588}};
static const series log_f64 = {7,
                               {1.479819860510658591e-01, 1.531383769920937332e-01,
                                1.818357216161805012e-01, 2.222219843214978396e-01,
                                2.857142874366239149e-01, 3.999999999940941908e-01,
                                6.666666666666735130e-01}};

static split_log split(const use *u, dc_fv x)
{
    const bool wide = u->t == DC_F64;
    const dc_dtype whole = signed_word(u), un = unsigned_word(u);
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
    const dc_fv f = op2(u, DC_K_SUB, m, flt(u, 1));
    const dc_fv s = op2(u, DC_K_DIV, f, op2(u, DC_K_ADD, f, flt(u, 2)));
    const dc_fv h = op2(u, DC_K_MUL, op2(u, DC_K_MUL, f, f), flt(u, 0.5));
    const dc_fv square = op2(u, DC_K_MUL, s, s);
    const dc_fv r = op2(u, DC_K_MUL, square, series_at(u, square, &log_f32, &log_f64));
    const dc_fv mask = bits(u, un, wide ? UINT64_MAX << 32 : 0xfffff000);
    split_log l = {.exponent = dc_fb_convert(u->b, e, u->t)};
    l.high = as(u, op2(u, DC_K_AND, as(u, op2(u, DC_K_SUB, f, h), un), mask), u->t);
    const dc_fv left = op2(u, DC_K_SUB, op2(u, DC_K_SUB, f, l.high), h);
    l.low = fma3(u, s, op2(u, DC_K_ADD, h, r), left);
    return l;
}

/* What of a base b the logarithm is made of, in two parts each: 1 / log(b), the logarithm of 2. */
typedef struct base {
    double scale[2], unit[2];
} base;

static dc_fv log_of_base(const use *u, const base *k)
{
    const dc_fv x = u->in[0], zero = flt(u, 0);
    const split_log l = split(u, x);
    dc_fv r = op2(u, DC_K_MUL, op2(u, DC_K_ADD, l.high, l.low), flt(u, k->scale[1]));
    r = fma3(u, l.low, flt(u, k->scale[0]), r);
    if (k->unit[1] != 0)
        r = fma3(u, l.exponent, flt(u, k->unit[1]), r);
    const dc_fv large = op2(u, DC_K_MUL, l.high, flt(u, k->scale[0])); /* exact */
    const dc_fv whole = op2(u, DC_K_MUL, l.exponent, flt(u, k->unit[0]));
    const dc_fv top = op2(u, DC_K_ADD, whole, large);
    r = op2(u, DC_K_ADD, op2(u, DC_K_ADD, op2(u, DC_K_SUB, whole, top), large), r);
    r = op2(u, DC_K_ADD, top, r);
    r = pick(u, op2(u, DC_K_LT, x, flt(u, INFINITY)), r, x); /* infinity and NaN */
    r = pick(u, op2(u, DC_K_LT, x, zero), flt(u, NAN), r);
    return pick(u, op2(u, DC_K_EQ, x, zero), flt(u, -INFINITY), r);
}

dc_fv dc_expand_log2(const use *u)
{
    static const base of_f32 = {{0x1.716p+0, -0x1.7135a8fa03d11p-13}, {1, 0}};
    static const base of_f64 = {{0x1.71547652p+0, 0x1.705fc2eefa2p-33}, {1, 0}};
    return log_of_base(u, u->t == DC_F64 ? &of_f64 : &of_f32);
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

/* A third of the bits of x, with what it lacks of the exponent: the root within 4 %. */
static dc_fv rough_root(const use *u, dc_fv x)
{
    if (u->t == DC_F64) { /* the product of the upper half with 2^33 / 3 fits */
        const dc_fv high = op2(u, DC_K_SHR, as(u, x, DC_U64), bits(u, DC_U64, 32));
        const dc_fv third = op2(u, DC_K_SHR, op2(u, DC_K_MUL, high, bits(u, DC_U64, 0xaaaaaaab)),
                                bits(u, DC_U64, 33));
        const dc_fv sum = op2(u, DC_K_ADD, third, bits(u, DC_U64, 715094163));
        return as(u, op2(u, DC_K_SHL, sum, bits(u, DC_U64, 32)), DC_F64);
    }
    const dc_fv high = op2(u, DC_K_SHR, as(u, x, DC_U32), bits(u, DC_U32, 16));
    const dc_fv third = op2(u, DC_K_MUL, high, bits(u, DC_U32, 21846)); /* 2^16 / 3 */
    return as(u, op2(u, DC_K_ADD, third, bits(u, DC_U32, 709958130 + 10923)), DC_F32);
}

/*
 * A rough root t, times a polynomial for the inverse root of t^3 / x; then a step of Halley's, from a t of so few
 * digits that t^2 is exact.
 */
dc_fv dc_expand_cbrt(const use *u)
{
    static const series near_f32 = {3, {0.22330874963889, -0.3346366938585, 1.0}};
    static const series near_f64 = {
        5, {0.14543150262171, -0.17441251238878, 0.22221871850236, -0.33332939289078, 1.0}};
    const bool wide = u->t == DC_F64;
    const dc_fv x = u->in[0], size = magnitude_of(u, x), zero = flt(u, 0);
    const dc_fv tiny = op2(u, DC_K_LT, size, flt_of(u, 0x1p-126, 0x1p-1022));
    const dc_fv normal = pick(u, tiny, op2(u, DC_K_MUL, size, flt_of(u, 0x1p24, 0x1p54)), size);
    dc_fv t = rough_root(u, normal);
    const dc_fv part = op2(u, DC_K_DIV, op2(u, DC_K_MUL, t, t), normal);
    const dc_fv off = op2(u, DC_K_SUB, op2(u, DC_K_MUL, part, t), flt(u, 1));
    t = op2(u, DC_K_MUL, t, series_at(u, off, &near_f32, &near_f64));
    const dc_dtype un = unsigned_word(u);
    const dc_fv mask = bits(u, un, wide ? UINT64_MAX << 30 : 0xfffff000);
    t = as(u, op2(u, DC_K_AND, as(u, t, un), mask), u->t);
    const dc_fv q = op2(u, DC_K_DIV, normal, op2(u, DC_K_MUL, t, t));
    const dc_fv step =
        op2(u, DC_K_DIV, op2(u, DC_K_SUB, q, t), op2(u, DC_K_ADD, op2(u, DC_K_ADD, t, t), q));
    t = fma3(u, t, step, t);
    t = pick(u, tiny, op2(u, DC_K_MUL, t, flt_of(u, 0x1p-8, 0x1p-18)), t);
    const dc_fv inside =
        op2(u, DC_K_AND, op2(u, DC_K_LT, zero, size), op2(u, DC_K_LT, size, flt(u, INFINITY)));
    /* The sign last: to pick x behind it is what LLVM 15 gets wrong with AVX-512, for x from a bf16. */
    return with_sign_of(u, pick(u, inside, t, size), x);
}
