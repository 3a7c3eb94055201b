/* The remainder of f64: arithmetic modulo the divisor's mantissa, without a loop. */
#include "jit/flat/expand_impl.h"

static const uint64_t sign_bit = (uint64_t)1 << 63, infinity_bits = (uint64_t)0x7ff << 52,
                      nan_bits = (uint64_t)0x7ff8 << 48;

/* A finite float's magnitude is mantissa * 2^(exponent - 1075), the exponent 1 or more. */
typedef struct parts {
    dc_fv magnitude, mantissa, exponent; /* bits as u64; i64; i64 */
} parts;

static parts take_apart(const use *u, dc_fv x)
{
    const uint64_t leading = (uint64_t)1 << 52;
    parts p;
    p.magnitude = op2(u, DC_K_AND, as(u, x, DC_U64), bits(u, DC_U64, ~sign_bit));
    const dc_fv field = op2(u, DC_K_SHR, p.magnitude, bits(u, DC_U64, 52));
    const dc_fv fraction = op2(u, DC_K_AND, p.magnitude, bits(u, DC_U64, leading - 1));
    const dc_fv normal = op2(u, DC_K_LT, bits(u, DC_U64, 0), field);
    const dc_fv whole = op2(u, DC_K_OR, fraction, bits(u, DC_U64, leading));
    p.mantissa = as(u, pick(u, normal, whole, fraction), DC_I64);
    p.exponent = as(u, pick(u, normal, field, bits(u, DC_U64, 1)), DC_I64);
    return p;
}

/*
 * a * c mod d, all of them below 2^53 and a, c at most d. The quotient as computed in f64 is off by
 * 2 at most; the remainder for it is small, so its low 64 bits are all of it.
 */
static dc_fv multiply_mod(const use *u, dc_fv a, dc_fv c, dc_fv d, dc_fv d_float)
{
    const dc_fv product =
        op2(u, DC_K_MUL, dc_fb_convert(u->b, a, DC_F64), dc_fb_convert(u->b, c, DC_F64));
    const dc_fv q = dc_fb_convert(u->b, op2(u, DC_K_DIV, product, d_float), DC_I64);
    const dc_fv zero = bits(u, DC_I64, 0);
    dc_fv r = op2(u, DC_K_SUB, op2(u, DC_K_MUL, a, c), op2(u, DC_K_MUL, q, d));
    for (int i = 0; i < 2; i++)
        r = pick(u, op2(u, DC_K_LT, r, zero), op2(u, DC_K_ADD, r, d), r);
    for (int i = 0; i < 2; i++)
        r = pick(u, op2(u, DC_K_LE, d, r), op2(u, DC_K_SUB, r, d), r);
    return r;
}

/* 2^n mod d for n in 0..2047: the exponent's bits from the top, the first five at once. */
static dc_fv power_mod(const use *u, dc_fv n, dc_fv d, dc_fv d_float)
{
    const dc_fv one = bits(u, DC_I64, 1);
    const dc_fv top = op2(u, DC_K_SHL, one, op2(u, DC_K_SHR, n, bits(u, DC_I64, 6)));
    dc_fv r = multiply_mod(u, top, one, d, d_float);
    for (int bit = 5; bit >= 0; bit--) {
        const dc_fv set = op2(u, DC_K_AND, n, bits(u, DC_I64, (uint64_t)1 << bit));
        r = multiply_mod(u, r, r, d, d_float);
        const dc_fv twice = op2(u, DC_K_ADD, r, r);
        const dc_fv over = op2(u, DC_K_LE, d, twice);
        const dc_fv doubled = pick(u, over, op2(u, DC_K_SUB, twice, d), twice);
        r = pick(u, op2(u, DC_K_EQ, set, bits(u, DC_I64, 0)), r, doubled);
    }
    return r;
}

/* fmod: exact for all operands. */
dc_fv dc_expand_rem_f64(const use *u)
{
    const dc_fv x = u->in[0], y = u->in[1], zero = bits(u, DC_U64, 0);
    const dc_fv infinite = bits(u, DC_U64, infinity_bits), none = bits(u, DC_I64, 0);
    const parts a = take_apart(u, x), c = take_apart(u, y);
    const dc_fv apart = op2(u, DC_K_SUB, a.exponent, c.exponent);
    const dc_fv n = pick(u, op2(u, DC_K_LT, apart, none), none, apart);
    const dc_fv y_zero = op2(u, DC_K_EQ, c.magnitude, zero);
    const dc_fv d = pick(u, y_zero, bits(u, DC_I64, 1), c.mantissa);
    const dc_fv d_float = dc_fb_convert(u->b, d, DC_F64), one = bits(u, DC_I64, 1);
    const dc_fv m = multiply_mod(u, a.mantissa, one, d, d_float);
    const dc_fv r = multiply_mod(u, m, power_mod(u, n, d, d_float), d, d_float);
    const dc_fv magnitude = dc_expand_scale(u, dc_fb_convert(u->b, r, DC_F64),
                                            op2(u, DC_K_SUB, c.exponent, bits(u, DC_I64, 1075)));
    const dc_fv sign = op2(u, DC_K_AND, as(u, x, DC_U64), bits(u, DC_U64, sign_bit));
    const dc_fv exact = as(u, op2(u, DC_K_OR, as(u, magnitude, DC_U64), sign), DC_F64);
    /* |x| < |y| keeps x, infinite y included; then what has no remainder */
    const dc_fv result = pick(u, op2(u, DC_K_LT, a.magnitude, c.magnitude), x, exact);
    dc_fv none_of = op2(u, DC_K_OR, y_zero, op2(u, DC_K_LE, infinite, a.magnitude));
    none_of = op2(u, DC_K_OR, none_of, op2(u, DC_K_LT, infinite, c.magnitude));
    return pick(u, none_of, bits(u, DC_F64, nan_bits), result);
}
