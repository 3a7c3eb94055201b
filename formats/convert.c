#include "formats/convert.h"

#include "core/base/bits.h"
#include "formats/floats.h"

#include <string.h>

bool dc_convert_exact(dc_dtype from, dc_dtype to)
{
    return from == to || dc_dtype_bits(from) < dc_dtype_bits(to);
}

/* ---- floats of 16 bits, eight at once ---------------------------------------------------------- */

/* What formats/floats.h has for one: the same bits, by masks in place of branches. */
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint16_t eight __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));

enum { AT_ONCE = 8 };

static inline four each(uint32_t v)
{
    return (four){v, v, v, v};
}

static inline four choose(four mask, four a, four b)
{
    return (mask & a) | (~mask & b);
}

/* Halves are in the low 16 bits. */
static inline four words_of_halves(four h)
{
    const four exponent = each(0x7c00u << 13), u = (h & 0x7fff) << 13, e = u & exponent;
    const four large = (four)(e == exponent) & each(112u << 23); /* infinities, NaNs */
    const four small = (four)((floats)(u + (113u << 23)) - (floats)each(113u << 23));
    const four size = choose((four)(e == each(0)), small, u + (112u << 23) + large);
    return size | (h & 0x8000) << 16;
}

/* Below the normal halves adding 0.5 rounds to multiples of the least one. */
static inline four halves_of_words(four u)
{
    const four sign = u >> 16 & 0x8000, size = u & 0x7fffffff, half = each(0x3f000000);
    const four nan = (size >> 13 & 0x3ff) | 0x7e00;
    const four normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const four small = (four)((floats)size + (floats)half) - half;
    four h = choose((four)(size < each(0x38800000)), small, normal);
    h = choose((four)(size >= each(0x47800000)), each(0x7c00), h);
    return choose((four)(size > each(0x7f800000)), nan, h) | sign;
}

static inline four words_of_bfloats(four b)
{
    return b << 16;
}

static inline four bfloats_of_words(four u)
{
    const four size = u & 0x7fffffff, nan = u >> 16 | 0x40;
    return choose((four)(size > each(0x7f800000)), nan, (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* From 16 bits to f32 and back, n of them; what is left of eights one by one. */
#define WIDEN(name, words_of, float_of)                                                       \
    static void name(const uint16_t *src, float *dst, size_t n)                               \
    {                                                                                         \
        const eight none = {0};                                                               \
        for (; n >= AT_ONCE; n -= AT_ONCE, src += AT_ONCE, dst += AT_ONCE) {                  \
            eight x;                                                                          \
            memcpy(&x, src, sizeof x);                                                        \
            const four a =                                                                    \
                words_of((four)__builtin_shufflevector(x, none, 0, 8, 1, 9, 2, 10, 3, 11));   \
            const four b =                                                                    \
                words_of((four)__builtin_shufflevector(x, none, 4, 12, 5, 13, 6, 14, 7, 15)); \
            memcpy(dst, &a, sizeof a);                                                        \
            memcpy(dst + 4, &b, sizeof b);                                                    \
        }                                                                                     \
        for (size_t i = 0; i < n; i++)                                                        \
            dst[i] = float_of(src[i]);                                                        \
    }
#define NARROW(name, of_words, of_float)                                                          \
    static void name(const float *src, uint16_t *dst, size_t n)                                   \
    {                                                                                             \
        for (; n >= AT_ONCE; n -= AT_ONCE, src += AT_ONCE, dst += AT_ONCE) {                      \
            four a, b;                                                                            \
            memcpy(&a, src, sizeof a);                                                            \
            memcpy(&b, src + 4, sizeof b);                                                        \
            const eight x = __builtin_shufflevector((eight)of_words(a), (eight)of_words(b), 0, 2, \
                                                    4, 6, 8, 10, 12, 14);                         \
            memcpy(dst, &x, sizeof x);                                                            \
        }                                                                                         \
        for (size_t i = 0; i < n; i++)                                                            \
            dst[i] = of_float(src[i]);                                                            \
    }
WIDEN(halves_to_f32, words_of_halves, dc_float_of_half)
WIDEN(bfloats_to_f32, words_of_bfloats, dc_float_of_bfloat)
NARROW(f32_to_halves, halves_of_words, dc_half_of_float)
NARROW(f32_to_bfloats, bfloats_of_words, dc_bfloat_of_float)
#undef WIDEN
#undef NARROW

/* ---- all pairs --------------------------------------------------------------------------------- */

static void to_f32(dc_dtype from, const void *src, float *dst, size_t n)
{
    const double *d = src;
    if (from == DC_F16)
        halves_to_f32(src, dst, n);
    else if (from == DC_BF16)
        bfloats_to_f32(src, dst, n);
    else
        for (size_t i = 0; i < n; i++)
            dst[i] = (float)d[i];
}

static void of_f32(const float *src, dc_dtype to, void *dst, size_t n)
{
    double *d = dst;
    if (to == DC_F16)
        f32_to_halves(src, dst, n);
    else if (to == DC_BF16)
        f32_to_bfloats(src, dst, n);
    else
        for (size_t i = 0; i < n; i++)
            d[i] = src[i];
}

/* Each pattern of 8 bits as f32, where there are so many elements that this pays. */
static void of_bytes(dc_dtype from, const uint8_t *src, float *dst, size_t n)
{
    float value[256];
    for (uint32_t p = 0; p < DC_COUNTOF(value); p++)
        value[p] = dc_bits_f32((uint32_t)dc_bits_cast(from, DC_F32, p));
    for (size_t i = 0; i < n; i++)
        dst[i] = value[src[i]];
}

/* All other pairs. */
static void other(dc_dtype from, const char *src, dc_dtype to, char *dst, size_t n)
{
    const size_t m = dc_dtype_size(from), k = dc_dtype_size(to);
    for (size_t i = 0; i < n; i++)
        dc_bits_store(to, dst + i * k, dc_bits_cast(from, to, dc_bits_load(from, src + i * m)));
}

void dc_convert(dc_dtype from, const void *src, dc_dtype to, void *dst, size_t n)
{
    if (from == to)
        memcpy(dst, src, n * dc_dtype_size(from));
    else if (to == DC_F32 && dc_dtype_is_short(from) && !dc_dtype_is_half(from) && n >= 256)
        of_bytes(from, src, dst, n);
    else if (to == DC_F32 && dc_dtype_bits(from) >= 16)
        to_f32(from, src, dst, n);
    else if (from == DC_F32 && dc_dtype_bits(to) >= 16)
        of_f32(src, to, dst, n);
    else
        other(from, src, to, dst, n);
}
