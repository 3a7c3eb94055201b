#include "formats/packing.h"

#include "formats/blocks.h"
#include "formats/floats.h"

#include <math.h>
#include <string.h>

static void put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

/* ---- blocks of numbers (formats/blocks.h) ------------------------------------------------------ */

#define UNPACK(type)                                                               \
    static void unpack_##type(const unsigned char *from, float *to, size_t blocks) \
    {                                                                              \
        dc_blocks_unpack(dc_blocks_find(#type), from, to, blocks);                 \
    }
UNPACK(q4_0)
UNPACK(q4_1)
UNPACK(q5_0)
UNPACK(q5_1)
UNPACK(q8_0)
UNPACK(q4_k)
UNPACK(q5_k)
UNPACK(q6_k)
#undef UNPACK

/* ---- floats of 8 bits (OCP 8-bit floating point specification) -------------------------------- */

/* As AMD and Graphcore have them: no infinities and no -0, whose pattern is NaN. */
static float f8_fnuz(uint32_t p, int fraction, int bias)
{
    const int exponent = (int)(p & 0x7f) >> fraction, one = 1 << fraction;
    const int part = (int)p & (one - 1);
    const float size = ldexpf((float)(exponent > 0 ? part + one : part),
                              (exponent > 0 ? exponent : 1) - bias - fraction);
    return p == 0x80 ? dc_bits_f32(0x7fc00000) : (p & 0x80) != 0 ? -size : size;
}

static void unpack_f8_e4m3fnuz(const unsigned char *p, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = f8_fnuz(p[i], 3, 8);
}

static void unpack_f8_e5m2fnuz(const unsigned char *p, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = f8_fnuz(p[i], 2, 16);
}

/* Powers of 2, which blocks of numbers are multiplied by (OCP microscaling formats); all ones are NaN. */
static void unpack_f8_e8m0(const unsigned char *p, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = p[i] == 0xff ? dc_bits_f32(0x7fc00000) : ldexpf(1, p[i] - 127);
}

/* With so many bits of fraction; `most` is the pattern of the largest number. */
static uint8_t f8_of_float(float x, int fraction, int bias, uint32_t most)
{
    const uint32_t u = dc_f32_bits(x), sign = u >> 24 & 0x80, cut = 23 - (uint32_t)fraction;
    const uint32_t least = (uint32_t)(128 - bias) << 23; /* the least normal number */
    uint32_t size = u & 0x7fffffff;
    if (size < least) {
        size = (uint32_t)rintf(ldexpf(fabsf(x), bias - 1 + fraction));
    } else {
        size -= (uint32_t)(127 - bias) << 23;
        size = (size + (1u << (cut - 1)) - 1 + (size >> cut & 1)) >> cut;
    }
    return (uint8_t)(sign | (size < most ? size : most));
}

uint8_t dc_f8_e4m3_of_float(float x)
{
    return f8_of_float(x, 3, 7, 0x7e);
}

uint8_t dc_f8_e5m2_of_float(float x)
{
    return f8_of_float(x, 2, 15, 0x7b);
}

/* ---- packing ---------------------------------------------------------------------------------- */

/* The element of largest size, the first of several; NaN where there is one. */
static float largest(const float *x)
{
    float v = x[0];
    for (int i = 0; i < 32; i++) {
        if (isnan(x[i]))
            return x[i];
        if (fabsf(x[i]) > fabsf(v))
            v = x[i];
    }
    return v;
}

/* 1 / d; 0 for what is too small to have one: all elements are 0 then. */
static float reciprocal(float d)
{
    const float r = d == 0 ? 0 : 1 / d;
    return isfinite(r) ? r : 0;
}

/* To nearest, ties away from zero. */
static float round_away(float x)
{
    const float a = fabsf(x), whole = floorf(a), v = whole + floorf(2 * (a - whole));
    return x < 0 ? -v : v;
}

static bool fits_half(float d)
{
    return fabsf(d) < 65520; /* false for NaN */
}

static bool pack_q8_0(const float *x, unsigned char *p, size_t blocks)
{
    for (; blocks-- > 0; p += 34, x += 32) {
        const float d = fabsf(largest(x)) / 127, r = reciprocal(d);
        if (!fits_half(d))
            return false;
        put16(p, dc_half_of_float(d));
        for (int i = 0; i < 32; i++)
            p[2 + i] = (unsigned char)(int8_t)round_away(x[i] * r);
    }
    return true;
}

static int nearest4(float x)
{
    const int q = (int)(x + 8.5f);
    return q < 0 ? 0 : q > 15 ? 15 : q;
}

static bool pack_q4_0(const float *x, unsigned char *p, size_t blocks)
{
    for (; blocks-- > 0; p += 18, x += 32) {
        const float d = largest(x) / -8, r = reciprocal(d);
        if (!fits_half(d))
            return false;
        put16(p, dc_half_of_float(d));
        for (int i = 0; i < 16; i++)
            p[2 + i] = (unsigned char)(nearest4(x[i] * r) | nearest4(x[16 + i] * r) << 4);
    }
    return true;
}

static const dc_packing packings[] = {
    {"q4_0", 32, 18, unpack_q4_0, pack_q4_0},
    {"q4_1", 32, 20, unpack_q4_1, NULL},
    {"q5_0", 32, 22, unpack_q5_0, NULL},
    {"q5_1", 32, 24, unpack_q5_1, NULL},
    {"q8_0", 32, 34, unpack_q8_0, pack_q8_0},
    {"q4_k", 256, 144, unpack_q4_k, NULL},
    {"q5_k", 256, 176, unpack_q5_k, NULL},
    {"q6_k", 256, 210, unpack_q6_k, NULL},
    {"f8_e4m3fnuz", 1, 1, unpack_f8_e4m3fnuz, NULL},
    {"f8_e5m2fnuz", 1, 1, unpack_f8_e5m2fnuz, NULL},
    {"f8_e8m0", 1, 1, unpack_f8_e8m0, NULL},
};

const char *dc_packing_codes(dc_dtype t)
{
    return t == DC_F8E4M3FN ? "f8_e4m3" : t == DC_F8E5M2 ? "f8_e5m2" : NULL;
}

const dc_packing *dc_packing_find(const char *name)
{
    for (size_t i = 0; i < DC_COUNTOF(packings); i++)
        if (strcmp(packings[i].name, name) == 0)
            return &packings[i];
    return NULL;
}
