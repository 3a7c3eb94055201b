/*
 * Conversions of f16 and bf16 by integer arithmetic, so that a kernel calls nothing and needs no
 * instruction for them; by the target's own where it has them.
 *
 * What is rounded to 16 bits is brought to f32 first. That must not be a second rounding to nearest:
 * what f32 has no room for is rounded to odd (the neighbour whose last bit is 1), from where every
 * shorter format rounds as from the number itself.
 */
#include "jit/flat/expand_impl.h"

static dc_fv u32(const use *u, uint32_t pattern)
{
    return bits(u, DC_U32, pattern);
}

/* To f32 --------------------------------------------------------------------------------------- */

/*
 * The exponent's bias is 15 there and 127 here. A number without a leading 1 gets one, and loses it
 * by subtraction; infinities and NaN keep the largest exponent.
 */
static dc_fv widen_f16(const use *u, dc_fv word)
{
    const dc_fv shift_by = u32(u, 13), least = u32(u, 113u << 23), rebias = u32(u, 112u << 23);
    const dc_fv size = op2(u, DC_K_AND, word, u32(u, 0x7fff));
    const dc_fv sign = op2(u, DC_K_SHL, op2(u, DC_K_AND, word, u32(u, 0x8000)), u32(u, 16));
    const dc_fv moved = op2(u, DC_K_SHL, size, shift_by);
    const dc_fv normal = op2(u, DC_K_ADD, moved, rebias);
    const dc_fv with_one = as(u, op2(u, DC_K_ADD, moved, least), DC_F32);
    const dc_fv small = as(u, op2(u, DC_K_SUB, with_one, as(u, least, DC_F32)), DC_U32);
    const dc_fv special = op2(u, DC_K_ADD, normal, rebias);
    dc_fv r = pick(u, op2(u, DC_K_LT, size, u32(u, 0x400)), small, normal);
    r = pick(u, op2(u, DC_K_LE, u32(u, 0x7c00), size), special, r);
    return as(u, op2(u, DC_K_OR, r, sign), DC_F32);
}

dc_fv dc_expand_widen(const use *u, dc_fv x, dc_dtype from)
{
    if (from == DC_F16 && u->b->half)
        return dc_fb_convert(u->b, x, DC_F32);
    const dc_fv word = dc_fb_convert(u->b, as(u, x, DC_U16), DC_U32);
    if (from == DC_F16)
        return widen_f16(u, word);
    return as(u, op2(u, DC_K_SHL, word, u32(u, 16)), DC_F32);
}

/*
 * Of a scalar by integers on CPUs: one that a comparison gives is a mask to LLVM (14 and 15, with AVX512-FP16), which
 * has no instruction from there to an f16, and ends the process.
 */
dc_fv dc_expand_pattern(const use *u, dc_fv pattern)
{
    if (u->lanes > 1 || u->b->f->simt)
        return dc_expand_widen(u, as(u, pattern, DC_F16), DC_F16);
    return widen_f16(u, dc_fb_convert(u->b, pattern, DC_U32));
}

/* From f32 ------------------------------------------------------------------------------------- */

/* Adding a half rounds a number below the least normal one at the place where f16 ends. */
static dc_fv shorten_f16(const use *u, dc_fv x)
{
    const dc_fv size = op2(u, DC_K_AND, x, u32(u, 0x7fffffff)), half = u32(u, 0x3f000000);
    const dc_fv sign = op2(u, DC_K_AND, op2(u, DC_K_SHR, x, u32(u, 16)), u32(u, 0x8000));
    const dc_fv kept = op2(u, DC_K_SHR, size, u32(u, 13));
    const dc_fv odd = op2(u, DC_K_AND, kept, u32(u, 1));
    const dc_fv carry = op2(u, DC_K_ADD, odd, u32(u, 0xfffu - (112u << 23)));
    const dc_fv normal = op2(u, DC_K_SHR, op2(u, DC_K_ADD, size, carry), u32(u, 13));
    const dc_fv sum = op2(u, DC_K_ADD, as(u, size, DC_F32), as(u, half, DC_F32));
    const dc_fv small = op2(u, DC_K_SUB, as(u, sum, DC_U32), half);
    const dc_fv is_nan = op2(u, DC_K_LT, u32(u, 0x7f800000), size);
    const dc_fv nan = op2(u, DC_K_OR, u32(u, 0x7e00), op2(u, DC_K_AND, kept, u32(u, 0x3ff)));
    dc_fv r = pick(u, op2(u, DC_K_LT, size, u32(u, 113u << 23)), small, normal);
    r = pick(u, op2(u, DC_K_LT, size, u32(u, 143u << 23)), r, u32(u, 0x7c00));
    r = pick(u, is_nan, nan, r);
    return op2(u, DC_K_OR, r, sign);
}

static dc_fv shorten_bf16(const use *u, dc_fv x)
{
    const dc_fv size = op2(u, DC_K_AND, x, u32(u, 0x7fffffff)), shift_by = u32(u, 16);
    const dc_fv kept = op2(u, DC_K_SHR, x, shift_by);
    const dc_fv odd = op2(u, DC_K_AND, kept, u32(u, 1));
    const dc_fv carry = op2(u, DC_K_ADD, odd, u32(u, 0x7fff));
    const dc_fv r = op2(u, DC_K_SHR, op2(u, DC_K_ADD, x, carry), shift_by);
    const dc_fv is_nan = op2(u, DC_K_LT, u32(u, 0x7f800000), size);
    return pick(u, is_nan, op2(u, DC_K_OR, kept, u32(u, 0x40)), r);
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
    else if (digits > 24 && to == DC_BF16) /* integers that long are infinite in f16 */
        x = odd_of_integer(u, x, t);
    else
        x = dc_fb_convert(u->b, x, DC_F32);
    if (to == DC_F16 ? u->b->half : u->b->bfloat)
        return dc_fb_convert(u->b, x, to);
    const dc_fv pattern = as(u, x, DC_U32);
    const dc_fv word = to == DC_F16 ? shorten_f16(u, pattern) : shorten_bf16(u, pattern);
    return as(u, dc_fb_convert(u->b, word, DC_U16), to);
}
