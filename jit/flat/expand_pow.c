/*
 * The expansion of pow: of floats the steps of core/ir/power_steps.def, of integers products.
 */
#include "core/ir/power.h"
#include "jit/flat/expand_impl.h"

#include <math.h>

/*
 * a b of a >= 0 where the condition holds, else a. Where the machine can multiply some lanes alone it does, others by 1: a
 * product that is not wanted may be no normal number. AMD's processors take 40 cycles for such a product, not for an fma.
 */
static dc_fv times_where(const use *u, dc_fv c, dc_fv a, dc_fv b)
{
    const bool some = u->b->scales;
    const dc_fv by = some ? b : pick(u, c, b, flt(u, 1));
    const dc_fv r = u->b->fused ? fma3(u, a, by, flt(u, 0)) : op2(u, DC_K_MUL_ALONE, a, by);
    return some ? pick(u, c, r, a) : r;
}

#define CTX            const use *u,
#define PASS           u,
#define FLT            dc_fv
#define INT            dc_fv
#define TEST           dc_fv
#define ADD(a, b)      op2(u, DC_K_ADD, a, b)
#define SUB(a, b)      op2(u, DC_K_SUB, a, b)
#define MUL(a, b)      op2(u, DC_K_MUL_ALONE, a, b)
#define DIV(a, b)      op2(u, DC_K_DIV, a, b)
#define LT(a, b)       op2(u, DC_K_LT, a, b)
#define LE(a, b)       op2(u, DC_K_LE, a, b)
#define EQ(a, b)       op2(u, DC_K_EQ, a, b)
#define BOTH(a, b)     op2(u, DC_K_AND, a, b)
#define EITHER(a, b)   op2(u, DC_K_OR, a, b)
#define DIFFER(a, b)   op2(u, DC_K_XOR, a, b)
#define PICK(c, a, b)  pick(u, c, a, b)
#define TIMES(c, a, b) times_where(u, c, a, b)
#define SQRT(a)        op1(u, DC_K_SQRT, a)
#define LOST(a, b, p)                                  \
    do {                                               \
        if (u->b->fused)                               \
            return fma3(u, a, b, op1(u, DC_K_NEG, p)); \
    } while (0)
#define REST(a, b, c)                                  \
    do {                                               \
        if (u->b->fused)                               \
            return fma3(u, op1(u, DC_K_NEG, a), b, c); \
    } while (0)
#define SUM(a, b, c)                 \
    do {                             \
        if (u->b->fused)             \
            return fma3(u, a, b, c); \
    } while (0)
#define SCALED(p, n)                         \
    do {                                     \
        if (has_scale(u))                    \
            return op2(u, DC_K_SCALE, p, n); \
    } while (0)
#define NUM(v)           flt(u, v)
#define WORD(v)          bits(u, signed_word(u), v)
#define IADD(a, b)       op2(u, DC_K_ADD, a, b)
#define ISUB(a, b)       op2(u, DC_K_SUB, a, b)
#define IAND(a, b)       op2(u, DC_K_AND, a, b)
#define IOR(a, b)        op2(u, DC_K_OR, a, b)
#define ISHL(a, b)       op2(u, DC_K_SHL, a, b)
#define ISHR(a, b)       op2(u, DC_K_SHR, a, b)
#define BITS(a)          as(u, a, signed_word(u))
#define FROM_BITS(i)     as(u, i, u->t)
#define TO_FLT(i)        dc_fb_convert(u->b, i, u->t)
#define POWER_NAME(part) part##_of
#include "core/ir/power_steps.def"

/* dc_int_pow of core/ir/op.c: by squaring, a bit of the exponent after the other. */
static dc_fv integer_power(const use *u)
{
    const bool has_sign = dc_dtype_is_signed(u->t);
    const dc_fv a = u->in[0], n = u->in[1], zero = bits(u, u->t, 0), one = bits(u, u->t, 1);
    const dc_fv minus_one = bits(u, u->t, UINT64_MAX);
    dc_fv r = one, square = a;
    const int width = dc_dtype_bits(u->t) - (has_sign ? 1 : 0);
    for (int i = 0; i < width; i++) {
        const dc_fv bit = op2(u, DC_K_AND, n, bits(u, u->t, (uint64_t)1 << i));
        r = pick(u, op2(u, DC_K_NE, bit, zero), op2(u, DC_K_MUL, r, square), r);
        square = op2(u, DC_K_MUL, square, square);
    }
    if (!has_sign)
        return r;
    const dc_fv odd = op2(u, DC_K_NE, op2(u, DC_K_AND, n, one), zero);
    dc_fv inverse = pick(u, op2(u, DC_K_EQ, a, one), one, zero);
    inverse = pick(u, op2(u, DC_K_EQ, a, minus_one), pick(u, odd, minus_one, one), inverse);
    inverse = pick(u, op2(u, DC_K_EQ, a, zero), minus_one, inverse);
    return pick(u, op2(u, DC_K_LT, n, zero), inverse, r);
}

/* The number that an operand is, where it is one; false for what is computed. */
static bool is_number(const use *u, dc_fv of, double *v)
{
    const dc_finst *i = dc_fb_at(u->b, of);
    if (i->op == DC_K_SPLAT)
        i = dc_fb_at(u->b, i->in[0]);
    *v = i->op == DC_K_CONST ? dc_value_of(u->t, i->imm) : 0;
    return i->op == DC_K_CONST;
}

/* Of a positive number other than 1: its logarithm is a number, too, and nothing else of it needs care. */
static dc_fv power_of_number(const use *u, const dc_power_kind *k, double x)
{
    dc_power_number log;
    dc_power_log2(&log, x, u->t == DC_F64);
    /* From there on the power is 0 or infinite. */
    const double most = fmin(k->most, k->range / fabs(log.high));
    const dc_fv y = within_of(u, u->in[1], most);
    return by_log_of(u, k, y, flt(u, log.high), flt(u, log.low), 1); /* nothing more is cut */
}

dc_fv dc_expand_pow(const use *u)
{
    const dc_power_kind *k = u->t == DC_F64 ? &dc_power_of_f64 : &dc_power_of_f32;
    double v;
    if (!dc_dtype_is_float(u->t))
        return integer_power(u);
    if (is_number(u, u->in[1], &v) && v != 0 && isfinite(v))
        return known_power_of(u, k, u->in[0], v);
    if (is_number(u, u->in[0], &v) && v > 0 && v != 1 && isfinite(v))
        return power_of_number(u, k, v);
    return power_of(u, k, u->in[0], u->in[1]);
}

/* Is an operand the float of an integer of 8 bits? */
static bool is_of_i8(const use *u, dc_fv of)
{
    const dc_finst *i = dc_fb_at(u->b, of);
    if (i->op == DC_K_SPLAT)
        i = dc_fb_at(u->b, i->in[0]);
    return i->op == DC_K_CONVERT && dc_fb_at(u->b, i->in[0])->type == DC_I8;
}

/*
 * In lazy code whole exponents are arguments, but for small ones: of 8 bits, so the kernel needs the steps of those alone.
 * Any other exponent that is no constant here may be any of the short ones, which is a lot of code: x ^ 1.5 is a power alone
 * where the 1.5 stays a constant (dsl/ops/operators.c, jit/lower/lift_constants.c), unless stages are left out.
 */
dc_fv dc_expand_power(const use *u)
{
    const dc_power_kind *k = u->t == DC_F64 ? &dc_power_of_f64 : &dc_power_of_f32;
    const dc_fv y = u->in[1];
    double v;
    if (is_number(u, y, &v))
        return dc_power_is_short(v) ? short_power_of(u, k, u->in[0], v) : dc_expand_pow(u);
    if (is_of_i8(u, y))
        return any_whole_power_of(u, k, u->in[0], y);
    const dc_fv n = dc_fb_convert(u->b, dc_fb_convert(u->b, y, DC_I8), u->t);
    dc_fv r =
        pick(u, op2(u, DC_K_EQ, n, y), any_whole_power_of(u, k, u->in[0], n), dc_expand_pow(u));
    for (int quarters = -11; quarters <= 11; quarters++)
        if (quarters % 4 != 0)
            r = pick(u, op2(u, DC_K_EQ, y, flt(u, 0.25 * quarters)),
                     short_power_of(u, k, u->in[0], 0.25 * quarters), r);
    return r;
}
