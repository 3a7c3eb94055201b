/*
 * What the files of the expansions share: one use of a row, and short names for formulas. Private to
 * jit/flat/expand*.c.
 *
 *   expand.c       rows whose expansion is the same for all dtypes, and those of f32
 *   expand_exp.c   exp, exp2, expm1, powers of two
 *   expand_erf.c   erf, erfc, the inverse of erf
 *   expand_gate.c sigmoid, silu, gelu in both forms
 *   expand_f64.c   the remainder of f64
 *   expand_trig.c  sine, cosine, tangent
 *   expand_arc.c   asin, acos, atan, atan2
 *   expand_hyper.c sinh, cosh and their inverses, that of tanh
 *   expand_log.c   log, log2, log10, the cube root
 *   expand_gamma.c lgamma, digamma of f32; expand_gamma_f64.c of f64
 *   expand_pow.c   powers
 *   expand_half.c  conversions of floats of 16 and 8 bits
 *
 * Functions of floats see f32 and f64 only: shorter ones are memory (jit/lower/lower.c).
 */
#ifndef DC_JIT_FLAT_EXPAND_IMPL_H
#define DC_JIT_FLAT_EXPAND_IMPL_H

#include "jit/flat/expand.h"

enum { DC_POLYNOMIAL_TERMS = 20 };

/* One use of a row. */
typedef struct use {
    dc_fbuild *b;
    dc_dtype t, to; /* of the last operand, of the result */
    int lanes;
    dc_fv in[4];
} use;

static inline dc_fv bits(const use *u, dc_dtype t, uint64_t pattern)
{
    return dc_fb_const(u->b, t, u->lanes, pattern);
}

/* A float of the use's dtype. */
static inline dc_fv flt(const use *u, double v)
{
    return bits(u, u->t, dc_bits_of(u->t, v));
}

static inline dc_fv op1(const use *u, dc_kop op, dc_fv a)
{
    return dc_fb_op1(u->b, op, a);
}

static inline dc_fv op2(const use *u, dc_kop op, dc_fv a, dc_fv c)
{
    return dc_fb_op2(u->b, op, a, c);
}

static inline dc_fv pick(const use *u, dc_fv cond, dc_fv yes, dc_fv no)
{
    return dc_fb_op3(u->b, DC_K_SELECT, cond, yes, no);
}

static inline dc_fv fma3(const use *u, dc_fv a, dc_fv c, dc_fv d)
{
    return dc_fb_op3(u->b, DC_K_FMA, a, c, d);
}

static inline dc_fv as(const use *u, dc_fv a, dc_dtype t)
{
    return dc_fb_bitcast(u->b, a, t);
}

/* Does one instruction multiply by 2^n? */
static inline bool has_scale(const use *u)
{
    return u->b->scales && u->t == DC_F32 && u->lanes % 16 == 0;
}

/* coef[0] * x^(n-1) + ... + coef[n-1] */
static inline dc_fv polynomial(const use *u, dc_fv x, const double *coef, int n)
{
    dc_fv r = flt(u, coef[0]);
    for (int i = 1; i < n; i++)
        r = fma3(u, r, x, flt(u, coef[i]));
    return r;
}

/* The same with a short chain, for a product or two more: pairs of terms, then pairs of those. */
static inline dc_fv polynomial_by_pairs(const use *u, dc_fv x, const double *coef, int n)
{
    dc_fv term[DC_POLYNOMIAL_TERMS] = {0}; /* the lowest first */
    for (int i = 0; i < n; i++)
        term[i] = flt(u, coef[n - 1 - i]);
    for (; n > 3; x = op2(u, DC_K_MUL, x, x)) {
        for (int i = 0; i < n / 2; i++)
            term[i] = fma3(u, term[2 * i + 1], x, term[2 * i]);
        if (n % 2 != 0)
            term[n / 2] = term[n - 1];
        n = (n + 1) / 2;
    }
    dc_fv r = term[n - 1];
    for (int i = n - 2; i >= 0; i--)
        r = fma3(u, r, x, term[i]);
    return r;
}

/* The unsigned and the signed integers of the width of the use's dtype. */
static inline dc_dtype unsigned_word(const use *u)
{
    return u->t == DC_F64 ? DC_U64 : DC_U32;
}

static inline dc_dtype signed_word(const use *u)
{
    return u->t == DC_F64 ? DC_I64 : DC_I32;
}

static inline dc_fv sign_bit_of(const use *u, dc_fv x)
{
    const dc_dtype un = unsigned_word(u);
    const uint64_t sign = (uint64_t)1 << (dc_dtype_bits(u->t) - 1);
    return op2(u, DC_K_AND, as(u, x, un), bits(u, un, sign));
}

static inline dc_fv magnitude_of(const use *u, dc_fv x)
{
    const dc_dtype un = unsigned_word(u);
    const uint64_t sign = (uint64_t)1 << (dc_dtype_bits(u->t) - 1);
    return as(u, op2(u, DC_K_AND, as(u, x, un), bits(u, un, sign - 1)), u->t);
}

/* The sign of x with the magnitude of y. */
static inline dc_fv with_sign_of(const use *u, dc_fv y, dc_fv x)
{
    const dc_dtype un = unsigned_word(u);
    const dc_fv size = as(u, magnitude_of(u, y), un);
    return as(u, op2(u, DC_K_OR, sign_bit_of(u, x), size), u->t);
}

/* A polynomial of f32 and one of f64 for the same function, the highest power first. */
typedef struct series {
    int terms;
    double coef[26];
} series;

static inline dc_fv series_at(const use *u, dc_fv x, const series *of_f32, const series *of_f64)
{
    const series *s = u->t == DC_F64 ? of_f64 : of_f32;
    return polynomial(u, x, s->coef, s->terms);
}

/* Of what is close to x: a number of f32, another one of f64. */
static inline dc_fv flt_of(const use *u, double of_f32, double of_f64)
{
    return flt(u, u->t == DC_F64 ? of_f64 : of_f32);
}

/* x without its low bits: the product of two such is exact. */
static inline dc_fv short_of(const use *u, dc_fv x)
{
    const dc_dtype un = unsigned_word(u);
    const dc_fv mask = bits(u, un, u->t == DC_F64 ? UINT64_MAX << 32 : 0xfffff000);
    return as(u, op2(u, DC_K_AND, as(u, x, un), mask), u->t);
}

/* by x^2, by a power of 2: the float, and what it lacks, from an fma that rounds once or from halves of the digits. */
static inline dc_fv square_by(const use *u, dc_fv x, double by, dc_fv *left)
{
    const dc_fv scaled = by == 1    ? x
                         : by == -1 ? op1(u, DC_K_NEG, x)
                                    : op2(u, DC_K_MUL, x, flt(u, by));
    if (u->b->fused) {
        const dc_fv high = op2(u, DC_K_MUL, x, scaled);
        *left = fma3(u, x, scaled, op1(u, DC_K_NEG, high));
        return high;
    }
    const dc_fv upper = short_of(u, x);
    const dc_fv rest = op2(u, DC_K_MUL, op2(u, DC_K_SUB, x, upper), flt(u, by));
    *left = op2(u, DC_K_MUL, rest, op2(u, DC_K_ADD, x, upper));
    return op2(u, DC_K_MUL, op2(u, DC_K_MUL, upper, upper), flt(u, by));
}

/* A row for another operand. */
static inline dc_fv apply_to(const use *u, dc_fv (*expand)(const use *u), dc_fv x)
{
    use inner = *u;
    inner.in[0] = x;
    return expand(&inner);
}

dc_dtype dc_expand_word(dc_dtype t); /* the unsigned integer of its width */
dc_fv dc_expand_exp(const use *u);
dc_fv dc_expand_half_exp(const use *u,
                         dc_fv x); /* exp(x) / 2 for x from 0 on; overflows where that does */
/* An integer n from 0 down to where 2^n is less than a float; a float whose bits end in it and more. */
typedef struct dc_exp_scale {
    dc_fv n, sum;
} dc_exp_scale;
/*
 * rest of (1 + rest) 2^n = exp(x + more), for an x <= 0 that is not far below the least that has an exponential, a small `more`.
 * fine: a quarter of an ulp closer, for one instruction.
 */
dc_fv dc_expand_exp_rest(const use *u, dc_fv x, dc_fv more, bool fine, dc_exp_scale *scale);
dc_fv dc_expand_by_exp_scale(const use *u, dc_fv p, const dc_exp_scale *scale); /* p * 2^n */
/* c (1 + exp(-x - more)), for x from where its inverse is nothing on (-112, of f64 -760), and a small `more` or NULL. */
dc_fv dc_expand_gate(const use *u, dc_fv x, const dc_fv *more, double *c);
dc_fv dc_expand_exp2(const use *u);
dc_fv dc_expand_exp_near(const use *u, dc_fv x); /* for |x| up to 80 */
dc_fv dc_expand_expm1_near(const use *u);        /* for |x| up to 40 */
/* exp(x + more) - 1 of f32, for a small part `more` of a sum of -20 .. 20. */
dc_fv dc_expand_expm1_sum(const use *u, dc_fv x, dc_fv more);
dc_fv dc_expand_log(const use *u);
/* The logarithm of an f32 in two parts, whose sum has some five bits more than an f32; infinity and NaN are the high one. */
void dc_expand_log_parts(const use *u, dc_fv x, dc_fv *high, dc_fv *low);
dc_fv dc_expand_erf(const use *u);
dc_fv dc_expand_erfc(const use *u);
dc_fv dc_expand_erf_inv(const use *u);
dc_fv dc_expand_sigmoid(const use *u);
dc_fv dc_expand_silu(const use *u);
dc_fv dc_expand_gelu(const use *u);
dc_fv dc_expand_gelu_tanh(const use *u);

/*
 * x * 2^n in two steps, so that n may be twice what an exponent may; one rounding, at the second step.
 * n has integers of the width of the use's dtype, which is x's.
 */
dc_fv dc_expand_scale(const use *u, dc_fv x, dc_fv n);

dc_fv dc_expand_rem_f64(const use *u);
dc_fv dc_expand_sin(const use *u);
dc_fv dc_expand_cos(const use *u);
dc_fv dc_expand_tan(const use *u);
dc_fv dc_expand_asin(const use *u);
dc_fv dc_expand_acos(const use *u);
dc_fv dc_expand_atan(const use *u);
dc_fv dc_expand_atan2(const use *u);
dc_fv dc_expand_pow(const use *u);
dc_fv dc_expand_power(const use *u);
dc_fv dc_expand_sinh(const use *u);
dc_fv dc_expand_cosh(const use *u);
dc_fv dc_expand_asinh(const use *u);
dc_fv dc_expand_acosh(const use *u);
dc_fv dc_expand_atanh(const use *u);
dc_fv dc_expand_log2(const use *u);
dc_fv dc_expand_log10(const use *u);
dc_fv dc_expand_cbrt(const use *u);
dc_fv dc_expand_lgamma(const use *u);
dc_fv dc_expand_digamma(const use *u);
dc_fv dc_expand_lgamma_f64(const use *u);
dc_fv dc_expand_digamma_f64(const use *u);
dc_fv dc_expand_round(const use *u);

/* From a short float to f32; to one of them from any other number, which is rounded once. */
dc_fv dc_expand_widen(const use *u, dc_fv x, dc_dtype from);
dc_fv dc_expand_pattern(const use *u, dc_fv pattern); /* of f16, as u16; to f32 */
dc_fv dc_expand_shorten(const use *u, dc_fv x, dc_dtype to);

#endif
