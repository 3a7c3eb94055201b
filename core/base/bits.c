/*
 * Patterns of elements: values to bits, bits to values, conversions between dtypes, memory.
 *
 * A float is rounded to nearest, ties to even, once, from whatever it is made of: a double, or an
 * integer of 64 bits. The two halves of that are round_double, which packs the parts of a double
 * into a shorter format, and odd_double, which gives an integer that a double cannot hold a value
 * that every shorter format rounds alike.
 */
#include "core/base/bits.h"

#include <math.h>
#include <string.h>

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023 };

int dc_bits_width(dc_dtype t)
{
    return t == DC_BOOL ? 1 : dc_dtype_bits(dc_dtype_part(t));
}

uint64_t dc_bits_canonical(dc_dtype t, uint64_t bits)
{
    const int unused = 64 - dc_bits_width(t);
    bits <<= unused;
    return dc_dtype_is_signed(t) ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
}

/* Floats ------------------------------------------------------------------------------------- */

static uint64_t double_bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static double bits_double(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

uint64_t dc_bits_infinity(dc_dtype t)
{
    const int fraction = dc_dtype_is_finite(t) ? 0 : dc_dtype_fraction(t);
    return (((uint64_t)1 << (dc_dtype_bits(t) - 1)) - 1) >> fraction << fraction;
}

uint64_t dc_bits_nan(dc_dtype t)
{
    return dc_bits_infinity(t) | (uint64_t)1 << (dc_dtype_fraction(t) - 1);
}

bool dc_bits_is_nan(dc_dtype t, uint64_t bits)
{
    const uint64_t size = bits & (((uint64_t)1 << (dc_dtype_bits(t) - 1)) - 1);
    return size > dc_bits_infinity(t) - dc_dtype_is_finite(t);
}

/* x / 2^n, to nearest, ties to even. */
static uint64_t shift_even(uint64_t x, int n)
{
    if (n > 60)
        return 0;
    const uint64_t kept = x >> n, half = (uint64_t)1 << (n - 1), rest = x - (kept << n);
    return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

/* v in a format shorter than a double, whose least normal number is a normal double. */
static uint64_t round_double(dc_dtype t, double v)
{
    const int fraction = dc_dtype_fraction(t), width = dc_dtype_bits(t);
    const int bias = dc_dtype_bias(t), most = bias + dc_dtype_is_finite(t);
    const uint64_t u = double_bits(v), infinity = dc_bits_infinity(t);
    const uint64_t sign = u >> 63 << (width - 1);
    const uint64_t size = u & INT64_MAX, part = u & (((uint64_t)1 << DOUBLE_FRACTION) - 1);
    const int exponent = (int)(size >> DOUBLE_FRACTION) - DOUBLE_BIAS;
    const int cut = DOUBLE_FRACTION - fraction;
    if (isnan(v))
        return sign | dc_bits_nan(t) | part >> cut;
    if (exponent > most)
        return sign | infinity;
    if (exponent <= -DOUBLE_BIAS)
        return sign; /* zero, or less than any of this format */
    const uint64_t digits = part | (uint64_t)1 << DOUBLE_FRACTION;
    if (exponent < 1 - bias)
        return sign | shift_even(digits, cut + 1 - bias - exponent);
    /* the leading digit adds 1 to the exponent; a carry goes on to it, and to infinity */
    const uint64_t size_there =
        ((uint64_t)(exponent + bias - 1) << fraction) + shift_even(digits, cut);
    return sign | (size_there < infinity ? size_there : infinity);
}

static double widen(dc_dtype t, uint64_t bits)
{
    const int fraction = dc_dtype_fraction(t), width = dc_dtype_bits(t);
    const int bias = dc_dtype_bias(t);
    const uint64_t size = bits & (((uint64_t)1 << (width - 1)) - 1);
    const uint64_t sign = bits >> (width - 1) << 63;
    const uint64_t part = size & (((uint64_t)1 << fraction) - 1);
    const int exponent = (int)(size >> fraction);
    if (size >= dc_bits_infinity(t))
        return bits_double(sign | (uint64_t)0x7ff << DOUBLE_FRACTION |
                           part << (DOUBLE_FRACTION - fraction));
    const double v =
        exponent > 0 ? ldexp((double)(part | (uint64_t)1 << fraction), exponent - bias - fraction)
                     : ldexp((double)part, 1 - bias - fraction);
    return sign != 0 ? -v : v;
}

/* An integer as a double; where it has too many digits, one that is odd in the last place kept. */
static double odd_double(uint64_t size)
{
    const uint64_t low = (1u << 11) - 1;
    if (size >> 53 != 0)
        size = (size & ~low) | (uint64_t)((size & low) != 0) << 11;
    return (double)size;
}

static uint64_t float_of_integer(dc_dtype to, bool is_signed, uint64_t bits)
{
    const bool negative = is_signed && (int64_t)bits < 0;
    if (dc_dtype_bits(to) == 64)
        return double_bits(is_signed ? (double)(int64_t)bits : (double)bits);
    if (dc_dtype_bits(to) == 32)
        return dc_f32_bits(is_signed ? (float)(int64_t)bits : (float)bits);
    const double size = odd_double(negative ? 0 - bits : bits);
    return round_double(to, negative ? -size : size);
}

/* Values ------------------------------------------------------------------------------------- */

uint64_t dc_bits_of(dc_dtype t, double v)
{
    switch (dc_dtype_kind(t)) {
    case DC_KIND_COMPLEX:
        return dc_bits_of(dc_dtype_part(t), v);
    case DC_KIND_BOOL:
        return v != 0; /* true for NaN: a comparison with 0, as of any other value */
    case DC_KIND_FLOAT:
        return dc_dtype_bits(t) == 64   ? double_bits(v)
               : dc_dtype_bits(t) == 32 ? dc_f32_bits((float)v)
                                        : round_double(t, v);
    case DC_KIND_UINT:
        return !(v > 0)                          ? 0
               : v >= ldexp(1, dc_bits_width(t)) ? dc_bits_canonical(t, UINT64_MAX)
                                                 : (uint64_t)v;
    case DC_KIND_SINT: {
        const double limit = ldexp(1, dc_bits_width(t) - 1);
        const uint64_t top = dc_bits_canonical(t, (uint64_t)1 << (dc_bits_width(t) - 1));
        return isnan(v) ? 0 : v >= limit ? ~top : v < -limit ? top : (uint64_t)(int64_t)v;
    }
    }
    DC_BUG("dtype %d", (int)t);
}

double dc_value_of(dc_dtype t, uint64_t bits)
{
    t = dc_dtype_part(t);
    if (!dc_dtype_is_float(t))
        return dc_dtype_is_signed(t) ? (double)(int64_t)bits : (double)bits;
    return dc_dtype_bits(t) == 64   ? bits_double(bits)
           : dc_dtype_bits(t) == 32 ? (double)dc_bits_f32((uint32_t)bits)
                                    : widen(t, bits);
}

uint64_t dc_bits_cast(dc_dtype from, dc_dtype to, uint64_t bits)
{
    if (from == to)
        return bits;
    if (dc_dtype_is_float(from))
        return dc_bits_of(to, dc_value_of(from, bits));
    if (dc_dtype_is_float(to))
        return float_of_integer(to, dc_dtype_is_signed(from), bits);
    return to == DC_BOOL ? bits != 0 : dc_bits_canonical(to, bits);
}

/* Memory ------------------------------------------------------------------------------------- */

uint64_t dc_bits_load(dc_dtype t, const void *at)
{
    uint64_t u64 = 0;
    uint32_t u32;
    uint16_t u16;
    t = dc_dtype_part(t);
    switch (dc_dtype_size(t)) {
    case 1:
        u64 = *(const uint8_t *)at;
        break;
    case 2:
        memcpy(&u16, at, sizeof u16);
        u64 = u16;
        break;
    case 4:
        memcpy(&u32, at, sizeof u32);
        u64 = u32;
        break;
    default:
        memcpy(&u64, at, sizeof u64);
    }
    return t == DC_BOOL ? u64 != 0 : dc_bits_canonical(t, u64);
}

void dc_bits_store(dc_dtype t, void *at, uint64_t bits)
{
    const uint32_t u32 = (uint32_t)bits;
    const uint16_t u16 = (uint16_t)bits;
    if (dc_dtype_is_complex(t)) {
        memset(at, 0, dc_dtype_size(t));
        t = dc_dtype_part(t);
    }
    switch (dc_dtype_size(t)) {
    case 1:
        *(uint8_t *)at = (uint8_t)bits;
        return;
    case 2:
        memcpy(at, &u16, sizeof u16);
        return;
    case 4:
        memcpy(at, &u32, sizeof u32);
        return;
    default:
        memcpy(at, &bits, sizeof bits);
    }
}

/* Of T, a type of the elements' size that is extended as they are. */
#define LOAD_MANY(T)                                        \
    for (int64_t i = 0; i < n; i++) {                       \
        T v;                                                \
        memcpy(&v, from + i * (int64_t)sizeof v, sizeof v); \
        out[i] = (uint64_t)(int64_t)v;                      \
    }

#define STORE_MANY(T)                                     \
    for (int64_t i = 0; i < n; i++) {                     \
        const T v = (T)bits[i];                           \
        memcpy(to + i * (int64_t)sizeof v, &v, sizeof v); \
    }

void dc_bits_load_many(dc_dtype t, const void *at, int64_t n, uint64_t *out)
{
    const char *from = at;
    const size_t size = dc_dtype_size(t);
    const bool sg = dc_dtype_is_signed(t);
    if (t == DC_BOOL || dc_dtype_is_complex(t))
        for (int64_t i = 0; i < n; i++)
            out[i] = dc_bits_load(t, from + (size_t)i * size);
    else if (size == 1 && sg)
        LOAD_MANY(int8_t)
    else if (size == 1)
        LOAD_MANY(uint8_t)
    else if (size == 2 && sg)
        LOAD_MANY(int16_t)
    else if (size == 2)
        LOAD_MANY(uint16_t)
    else if (size == 4 && sg)
        LOAD_MANY(int32_t)
    else if (size == 4)
        LOAD_MANY(uint32_t)
    else
        LOAD_MANY(uint64_t)
}

void dc_bits_store_many(dc_dtype t, void *at, int64_t n, const uint64_t *bits)
{
    char *to = at;
    const size_t size = dc_dtype_size(t);
    if (dc_dtype_is_complex(t))
        for (int64_t i = 0; i < n; i++)
            dc_bits_store(t, to + (size_t)i * size, bits[i]);
    else if (size == 1)
        STORE_MANY(uint8_t)
    else if (size == 2)
        STORE_MANY(uint16_t)
    else if (size == 4)
        STORE_MANY(uint32_t)
    else
        STORE_MANY(uint64_t)
}
