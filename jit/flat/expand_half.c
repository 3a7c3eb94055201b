/*
 * Conversions of floats shorter than f32 by integer arithmetic, from what their rows say, so that a kernel calls nothing
 * and needs no instruction for them; by the target's own where it has them.
 *
 * What is rounded to 16 or 8 bits is brought to f32 first. That must not be a second rounding to nearest:
 * what f32 has no room for is rounded to odd (the neighbour whose last bit is 1), from where every
 * shorter format rounds as from the number itself.
 */
#include "jit/flat/expand_impl.h"

static dc_fv u32(const use *u, uint32_t pattern)
{
    return bits(u, DC_U32, pattern);
}

/* To f32 --------------------------------------------------------------------------------------- */

/* What the formats are made of, beside f32. */
typedef struct format {
    int width, cut;  /* bits; how many less of the fraction than f32 */
    uint32_t rebias; /* from its exponents to those of f32, in place */
} format;

static format format_of(dc_dtype t)
{
    return (format){.width = dc_dtype_bits(t),
                    .cut = dc_dtype_fraction(DC_F32) - dc_dtype_fraction(t),
                    .rebias = (uint32_t)(dc_dtype_bias(DC_F32) - dc_dtype_bias(t)) << 23};
}

/* Is it the upper part of an f32? */
static bool is_cut(dc_dtype t)
{
    return dc_dtype_exponent(t) == dc_dtype_exponent(DC_F32);
}

/*
 * A number without a leading 1 gets one, and loses it by subtraction; infinities and NaN get the largest exponent.
 */
static dc_fv widen(const use *u, dc_fv word, dc_dtype from)
{
    const format f = format_of(from);
    const uint32_t sign_bit = 1u << (f.width - 1), least = f.rebias + (1u << 23);
    const dc_fv size = op2(u, DC_K_AND, word, u32(u, sign_bit - 1));
    const dc_fv sign =
        op2(u, DC_K_SHL, op2(u, DC_K_AND, word, u32(u, sign_bit)), u32(u, 32 - (uint32_t)f.width));
    const dc_fv moved = op2(u, DC_K_SHL, size, u32(u, (uint32_t)f.cut));
    const dc_fv normal = op2(u, DC_K_ADD, moved, u32(u, f.rebias));
    const dc_fv with_one = as(u, op2(u, DC_K_ADD, moved, u32(u, least)), DC_F32);
    const dc_fv small = as(u, op2(u, DC_K_SUB, with_one, as(u, u32(u, least), DC_F32)), DC_U32);
    const dc_fv special = op2(u, DC_K_OR, moved, u32(u, 0x7f800000));
    const dc_fv one = u32(u, 1u << dc_dtype_fraction(from));
    dc_fv r = pick(u, op2(u, DC_K_LT, size, one), small, normal);
    r = pick(u, op2(u, DC_K_LE, u32(u, (uint32_t)dc_bits_infinity(from)), size), special, r);
    return as(u, op2(u, DC_K_OR, r, sign), DC_F32);
}

dc_fv dc_expand_widen(const use *u, dc_fv x, dc_dtype from)
{
    if (from == DC_F16 && u->b->half)
        return dc_fb_convert(u->b, x, DC_F32);
    const dc_fv word = dc_fb_convert(u->b, as(u, x, dc_expand_word(from)), DC_U32);
    if (is_cut(from))
        return as(u, op2(u, DC_K_SHL, word, u32(u, (uint32_t)format_of(from).cut)), DC_F32);
    return widen(u, word, from);
}

/*
 * Of a scalar by integers on CPUs: one that a comparison gives is a mask to LLVM (14 and 15, with AVX512-FP16), which
 * has no instruction from there to an f16, and ends the process.
 */
dc_fv dc_expand_pattern(const use *u, dc_fv pattern)
{
    if (u->lanes > 1 || u->b->f->simt)
        return dc_expand_widen(u, as(u, pattern, DC_F16), DC_F16);
    return widen(u, dc_fb_convert(u->b, pattern, DC_U32), DC_F16);
}

/* From f32 ------------------------------------------------------------------------------------- */

/*
 * Below the least normal number adding a number whose last place is that of the format rounds there. From the pattern of
 * infinity on, as the number that it would be, there is none to round to.
 */
static dc_fv shorten(const use *u, dc_fv x, dc_dtype to)
{
    const format f = format_of(to);
    const uint32_t infinity = (uint32_t)dc_bits_infinity(to), part = (1u << (23 - f.cut)) - 1;
    const uint32_t last = f.rebias + ((uint32_t)f.cut + 1) * (1u << 23);
    const dc_fv size = op2(u, DC_K_AND, x, u32(u, 0x7fffffff)), adds = u32(u, last);
    const dc_fv sign = op2(u, DC_K_AND, op2(u, DC_K_SHR, x, u32(u, 32 - (uint32_t)f.width)),
                           u32(u, 1u << (f.width - 1)));
    const dc_fv cut = u32(u, (uint32_t)f.cut), kept = op2(u, DC_K_SHR, size, cut);
    const dc_fv odd = op2(u, DC_K_AND, kept, u32(u, 1));
    const dc_fv carry = op2(u, DC_K_ADD, odd, u32(u, (1u << (f.cut - 1)) - 1 - f.rebias));
    const dc_fv normal = op2(u, DC_K_SHR, op2(u, DC_K_ADD, size, carry), cut);
    const dc_fv sum = op2(u, DC_K_ADD, as(u, size, DC_F32), as(u, adds, DC_F32));
    const dc_fv small = op2(u, DC_K_SUB, as(u, sum, DC_U32), adds);
    const dc_fv is_nan = op2(u, DC_K_LT, u32(u, 0x7f800000), size);
    const dc_fv nan =
        op2(u, DC_K_OR, u32(u, (uint32_t)dc_bits_nan(to)), op2(u, DC_K_AND, kept, u32(u, part)));
    dc_fv r = pick(u, op2(u, DC_K_LT, size, u32(u, f.rebias + (1u << 23))), small, normal);
    r = pick(u, op2(u, DC_K_LT, size, u32(u, f.rebias + (infinity << f.cut))), r, u32(u, infinity));
    r = pick(u, is_nan, nan, r);
    return op2(u, DC_K_OR, r, sign);
}

/* To what is the upper part of an f32. */
static dc_fv shorten_cut(const use *u, dc_fv x, dc_dtype to)
{
    const uint32_t cut = (uint32_t)format_of(to).cut;
    const dc_fv size = op2(u, DC_K_AND, x, u32(u, 0x7fffffff)), shift_by = u32(u, cut);
    const dc_fv kept = op2(u, DC_K_SHR, x, shift_by);
    const dc_fv odd = op2(u, DC_K_AND, kept, u32(u, 1));
    const dc_fv carry = op2(u, DC_K_ADD, odd, u32(u, (1u << (cut - 1)) - 1));
    const dc_fv r = op2(u, DC_K_SHR, op2(u, DC_K_ADD, x, carry), shift_by);
    const dc_fv is_nan = op2(u, DC_K_LT, u32(u, 0x7f800000), size);
    const uint32_t quiet = 1u << (dc_dtype_fraction(to) - 1);
    return pick(u, is_nan, op2(u, DC_K_OR, kept, u32(u, quiet)), r);
}

/* To f32, odd --------------------------------------------------------------------------------- */

/* The float r beside x, which is not x itself: the odd one of the two that x lies between. */
static dc_fv odd_of(const use *u, dc_fv r, dc_fv inexact, dc_fv beyond)
{
    const dc_fv p = as(u, r, DC_U32), one = u32(u, 1);
    const dc_fv even = op2(u, DC_K_EQ, op2(u, DC_K_AND, p, one), u32(u, 0));
    const dc_fv other = pick(u, beyond, op2(u, DC_K_SUB, p, one), op2(u, DC_K_ADD, p, one));
    return as(u, pick(u, op2(u, DC_K_AND, inexact, even), other, p), DC_F32);
}

/* At the largest integers going back saturates; there the rounded float is right, too. */
static dc_fv odd_of_integer(const use *u, dc_fv x, dc_dtype t)
{
    const dc_fv r = dc_fb_convert(u->b, x, DC_F32), back = dc_fb_convert(u->b, r, t);
    const dc_fv zero = bits(u, t, 0), above = op2(u, DC_K_LT, x, back);
    dc_fv beyond = above;
    if (dc_dtype_is_signed(t))
        beyond = pick(u, op2(u, DC_K_LT, x, zero), op2(u, DC_K_LT, back, x), above);
    return odd_of(u, r, op2(u, DC_K_NE, back, x), beyond);
}

static dc_fv magnitude(const use *u, dc_fv x)
{
    return op2(u, DC_K_AND, as(u, x, DC_U64), bits(u, DC_U64, INT64_MAX));
}

/* A NaN stays one. */
static dc_fv odd_of_f64(const use *u, dc_fv x)
{
    const dc_fv r = dc_fb_convert(u->b, x, DC_F32), back = dc_fb_convert(u->b, r, DC_F64);
    const dc_fv beyond = op2(u, DC_K_LT, magnitude(u, x), magnitude(u, back));
    return odd_of(u, r, op2(u, DC_K_NE, back, x), beyond);
}

dc_fv dc_expand_shorten(const use *u, dc_fv x, dc_dtype to)
{
    const dc_dtype t = (dc_dtype)dc_fb_at(u->b, x)->type;
    const int digits = dc_dtype_is_float(t) ? dc_dtype_fraction(t) + 1 : dc_bits_width(t);
    if (t == DC_F64)
        x = odd_of_f64(u, x);
    else if (digits > 24 && is_cut(to)) /* integers that long are beyond the others */
        x = odd_of_integer(u, x, t);
    else
        x = dc_fb_convert(u->b, x, DC_F32);
    if ((to == DC_F16 && u->b->half) || (to == DC_BF16 && u->b->bfloat))
        return dc_fb_convert(u->b, x, to);
    const dc_fv pattern = as(u, x, DC_U32);
    const dc_fv word = is_cut(to) ? shorten_cut(u, pattern, to) : shorten(u, pattern, to);
    return as(u, dc_fb_convert(u->b, word, dc_expand_word(to)), to);
}
