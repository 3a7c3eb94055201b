#include "formats/packing.h"

#include "formats/floats.h"

#include <math.h>
#include <string.h>

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static void put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static float half_at(const unsigned char *p)
{
    return dc_float_of_half(get16(p));
}

/* ---- blocks of 32 ----------------------------------------------------------------------------- */

/* d, then 32 numbers of 8 bits. */
static void unpack_q8_0(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 34, to += 32) {
        const float d = half_at(p);
        for (int i = 0; i < 32; i++)
            to[i] = (float)(int8_t)p[2 + i] * d;
    }
}

/* d, then 16 bytes: the low halves are elements 0 to 15, the high ones 16 to 31. */
static void unpack_q4_0(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 18, to += 32) {
        const float d = half_at(p);
        for (int i = 0; i < 16; i++) {
            to[i] = d * (float)((p[2 + i] & 15) - 8);
            to[16 + i] = d * (float)((p[2 + i] >> 4) - 8);
        }
    }
}

static void unpack_q4_1(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 20, to += 32) {
        const float d = half_at(p), m = half_at(p + 2);
        for (int i = 0; i < 16; i++) {
            to[i] = d * (float)(p[4 + i] & 15) + m;
            to[16 + i] = d * (float)(p[4 + i] >> 4) + m;
        }
    }
}

/* The fifth bits of all elements are a word of 32 bits. */
static int low5(const unsigned char *q, uint32_t high, int i)
{
    return (q[i] & 15) | (int)(high >> i & 1) << 4;
}

static int high5(const unsigned char *q, uint32_t high, int i)
{
    return q[i] >> 4 | (int)(high >> (16 + i) & 1) << 4;
}

static void unpack_q5_0(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 22, to += 32) {
        const float d = half_at(p);
        const uint32_t high = get32(p + 2);
        for (int i = 0; i < 16; i++) {
            to[i] = d * (float)(low5(p + 6, high, i) - 16);
            to[16 + i] = d * (float)(high5(p + 6, high, i) - 16);
        }
    }
}

static void unpack_q5_1(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 24, to += 32) {
        const float d = half_at(p), m = half_at(p + 2);
        const uint32_t high = get32(p + 4);
        for (int i = 0; i < 16; i++) {
            to[i] = d * (float)low5(p + 8, high, i) + m;
            to[16 + i] = d * (float)high5(p + 8, high, i) + m;
        }
    }
}

/* ---- blocks of 256 ---------------------------------------------------------------------------- */

/* Scale and minimum of sub-block i of 8, 6 bits each, in 12 bytes. */
static void scale_min(const unsigned char *s, int i, float *scale, float *min)
{
    if (i < 4) {
        *scale = (float)(s[i] & 63);
        *min = (float)(s[4 + i] & 63);
    } else {
        *scale = (float)((s[4 + i] & 15) | (s[i - 4] >> 2 & 0x30));
        *min = (float)(s[4 + i] >> 4 | (s[i] >> 2 & 0x30));
    }
}

/* d and dmin, scales of 8 sub-blocks; a run of 32 bytes has two of them, in its low and high halves. */
static void unpack_q4_k(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 144, to += 256)
        for (int sub = 0; sub < 8; sub++) {
            const unsigned char *q = p + 16 + sub / 2 * 32;
            const int shift = sub % 2 * 4;
            float scale, min;
            scale_min(p + 4, sub, &scale, &min);
            const float d = half_at(p) * scale, m = half_at(p + 2) * min;
            for (int i = 0; i < 32; i++)
                to[sub * 32 + i] = d * (float)(q[i] >> shift & 15) - m;
        }
}

/* The fifth bit of element i of sub-block s is bit s of byte i of 32. */
static void unpack_q5_k(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 176, to += 256)
        for (int sub = 0; sub < 8; sub++) {
            const unsigned char *high = p + 16, *q = p + 48 + sub / 2 * 32;
            const int shift = sub % 2 * 4;
            float scale, min;
            scale_min(p + 4, sub, &scale, &min);
            const float d = half_at(p) * scale, m = half_at(p + 2) * min;
            for (int i = 0; i < 32; i++)
                to[sub * 32 + i] =
                    d * (float)((q[i] >> shift & 15) | (high[i] >> sub & 1) << 4) - m;
        }
}

/* Two halves of 128 elements: low four bits in 64 bytes, high two in 32; 16 scales of 8 bits, d at the end. */
static void unpack_q6_k(const unsigned char *p, float *to, size_t blocks)
{
    for (; blocks-- > 0; p += 210, to += 256) {
        const float all = half_at(p + 208);
        for (int sub = 0; sub < 8; sub++) {
            const unsigned char *low = p + sub / 4 * 64 + sub % 2 * 32;
            const unsigned char *high = p + 128 + sub / 4 * 32;
            const int low_shift = sub / 2 % 2 * 4, high_shift = sub % 4 * 2;
            for (int i = 0; i < 32; i++) {
                const float d = all * (float)(int8_t)p[192 + sub * 2 + i / 16];
                const int q = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
                to[sub * 32 + i] = d * (float)(q - 32);
            }
        }
    }
}

/* ---- floats of 8 bits (OCP 8-bit floating point specification) -------------------------------- */

/* Four bits of exponent; no infinities, all ones are NaN. */
static void unpack_f8_e4m3(const unsigned char *p, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = p[i] & 0x7f, sign = (uint32_t)(p[i] & 0x80) << 24;
        const float v = size == 0x7f ? dc_bits_f32(0x7fc00000)
                        : size >= 8  ? dc_bits_f32((size << 20) + (120u << 23))
                                     : (float)size * 0.001953125f;
        to[i] = dc_bits_f32(dc_f32_bits(v) | sign);
    }
}

static void unpack_f8_e5m2(const unsigned char *p, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = dc_float_of_half((uint32_t)p[i] << 8);
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
    {"q4_0", 32, 18, unpack_q4_0, pack_q4_0}, {"q4_1", 32, 20, unpack_q4_1, NULL},
    {"q5_0", 32, 22, unpack_q5_0, NULL},      {"q5_1", 32, 24, unpack_q5_1, NULL},
    {"q8_0", 32, 34, unpack_q8_0, pack_q8_0}, {"q4_k", 256, 144, unpack_q4_k, NULL},
    {"q5_k", 256, 176, unpack_q5_k, NULL},    {"q6_k", 256, 210, unpack_q6_k, NULL},
    {"f8_e4m3", 1, 1, unpack_f8_e4m3, NULL},  {"f8_e5m2", 1, 1, unpack_f8_e5m2, NULL},
};

const dc_packing *dc_packing_find(const char *name)
{
    for (size_t i = 0; i < DC_COUNTOF(packings); i++)
        if (strcmp(packings[i].name, name) == 0)
            return &packings[i];
    return NULL;
}
