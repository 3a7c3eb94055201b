/*
 * Floats of 16 and 8 bits to f32 and back, an element at a time. To f32 is exact; back is to the nearest, ties to even.
 * No operand or result of the arithmetic in here is denormal, so flushing modes (DEEPC_MATH=ftz) change nothing.
 */
#ifndef DC_FORMATS_FLOATS_H
#define DC_FORMATS_FLOATS_H

#include "core/base/base.h"

static inline float dc_float_of_half(uint32_t h)
{
    const uint32_t exponent = 0x7c00u << 13, magic = 113u << 23;
    uint32_t u = (h & 0x7fff) << 13;
    const uint32_t e = u & exponent;
    u += 112u << 23;
    if (e == exponent)
        u += 112u << 23; /* an infinity or NaN */
    else if (e == 0)
        u = dc_f32_bits(dc_bits_f32(u + (1u << 23)) - dc_bits_f32(magic));
    return dc_bits_f32(u | (h & 0x8000) << 16);
}

static inline float dc_float_of_bfloat(uint32_t b)
{
    return dc_bits_f32(b << 16);
}

/* NaNs stay NaNs, quiet. */
static inline uint16_t dc_half_of_float(float x)
{
    const uint32_t u = dc_f32_bits(x), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x47800000) /* 65536 */
        return (uint16_t)(sign | 0x7c00);
    if (size >= 0x38800000) /* a normal half: a carry may make it an infinity */
        return (uint16_t)(sign | (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13);
    if (size < 0x33000000) /* less than half of the smallest */
        return (uint16_t)sign;
    const uint32_t shift = 126 - (size >> 23), digits = (size & 0x7fffff) | 0x800000;
    const uint32_t kept = digits >> shift, rest = digits - (kept << shift),
                   half = 1u << (shift - 1);
    return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1) != 0))));
}

static inline uint16_t dc_bfloat_of_float(float x)
{
    const uint32_t u = dc_f32_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
