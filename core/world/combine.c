/*
 * The loops of core/world/combine.h: a function for each dtype and operation, made of a few macros.
 *
 * Elements go through a block that lies in the first cache: the compiler sees that it is apart from everything else and has
 * a constant length, and makes vector instructions without asking how the arrays lie.
 */
#include "core/world/combine.h"

#include "core/base/bits.h"

#include <string.h>

enum { BLOCK = 512 };

/* ---- elements ---------------------------------------------------------------------------------- */

typedef struct c64 {
    float re, im;
} c64;

typedef struct c128 {
    double re, im;
} c128;

static inline float f32_of_bf16(uint16_t x)
{
    return dc_bits_f32((uint32_t)x << 16);
}

/* To nearest, ties to even; a NaN stays one. */
static inline uint16_t bf16_of_f32(float x)
{
    const uint32_t u = dc_f32_bits(x);
    const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16, quiet = (u >> 16) | 0x40;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* Exponents are moved by a product, which also makes denormal numbers normal ones. */
static inline float f32_of_f16(uint16_t x)
{
    const uint32_t w = (uint32_t)x << 16, sign = w & 0x80000000, size = w + w;
    const float normal = dc_bits_f32((size >> 4) + (0xe0u << 23)) * 0x1p-112f;
    const float denormal = dc_bits_f32((size >> 17) | (126u << 23)) - 0.5f;
    return dc_bits_f32(sign | (size < 1u << 27 ? dc_f32_bits(denormal) : dc_f32_bits(normal)));
}

/* To nearest, ties to even, by adding a number whose last place is where to round. */
static inline uint16_t f16_of_f32(float x)
{
    const uint32_t w = dc_f32_bits(x), sign = w & 0x80000000, size = w + w;
    const uint32_t exponent = size & 0xff000000;
    const float scaled = dc_bits_f32(w & 0x7fffffff) * 0x1p+112f * 0x1p-110f;
    const float last =
        dc_bits_f32(((exponent < 0x71000000 ? 0x71000000 : exponent) >> 1) + 0x07800000);
    const uint32_t u = dc_f32_bits(last + scaled);
    const uint32_t number = ((u >> 13) & 0x7c00) + (u & 0xfff);
    return (uint16_t)(sign >> 16 | (size > 0xff000000 ? 0x7e00 : number));
}

/* Of 8 bits, from their rows; beyond the largest number of one without infinities is NaN. */
#define FLOAT8(t, ...)                                 \
    static inline float f32_of_##t(uint8_t x)          \
    {                                                  \
        return (float)dc_value_of(DC_##t, x);          \
    }                                                  \
    static inline uint8_t t##_of_f32(float x)          \
    {                                                  \
        return (uint8_t)dc_bits_of(DC_##t, (double)x); \
    }
#include "core/base/dtype.def"

#define SAME(x)  (x)
#define TRUTH(x) ((uint8_t)((x) != 0))

/* ---- operations: a and b to one ------------------------------------------------------------------ */

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define WRAP_PROD(a, b) \
    ((a)*1u * (b)) /* in unsigned int at least: of two uint16_t an int has no room */
#define OR(a, b)   ((a) | (b))
#define AND(a, b)  ((a) & (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))

/* As dc_flt_max of core/ir/op.c: NaN wins, -0 is less than +0. Equal numbers differ in the sign of zero alone. */
#define FLOAT_ORDER(T, bits, number, name, before, both)  \
    static inline T name(T a, T b)                        \
    {                                                     \
        const T nan = a + b, chosen = a before b ? a : b; \
        const T equal = number(bits(a) both bits(b));     \
        const T known = a == b ? equal : chosen;          \
        return a != a || b != b ? nan : known;            \
    }

static inline uint64_t f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

FLOAT_ORDER(float, dc_f32_bits, dc_bits_f32, max_f32, >, &)
FLOAT_ORDER(float, dc_f32_bits, dc_bits_f32, min_f32, <, |)
FLOAT_ORDER(double, f64_bits, bits_f64, max_f64, >, &)
FLOAT_ORDER(double, f64_bits, bits_f64, min_f64, <, |)

static inline c64 sum_c64(c64 a, c64 b)
{
    return (c64){a.re + b.re, a.im + b.im};
}

static inline c64 prod_c64(c64 a, c64 b)
{
    return (c64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline c128 sum_c128(c128 a, c128 b)
{
    return (c128){a.re + b.re, a.im + b.im};
}

static inline c128 prod_c128(c128 a, c128 b)
{
    return (c128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* ---- loops --------------------------------------------------------------------------------------- */

/* What is combined is what is stored, or is made it. */
#define AS_IT_IS(out) memcpy(to + at, all, count * sizeof *to);
#define AS(PUT, out)                   \
    out result[BLOCK];                 \
    for (size_t i = 0; i < count; i++) \
        result[i] = PUT(all[i]);       \
    memcpy(to + at, result, count * sizeof *to);

/*
 * name: from `in`, read by GET, to `out`, in arithmetic of T. The body is compiled twice: for a whole block, whose length is
 * known, and for what is left.
 */
#define LOOP(name, in, GET, T, OP, out, STORE)                               \
    static inline __attribute__((always_inline)) void name##_block(          \
        out *to, const void *const *from, int n, size_t at, size_t count)    \
    {                                                                        \
        T all[BLOCK];                                                        \
        const in *first = (const in *)from[0] + at;                          \
        if (n == 1) {                                                        \
            for (size_t i = 0; i < count; i++)                               \
                all[i] = GET(first[i]);                                      \
        } else {                                                             \
            const in *second = (const in *)from[1] + at;                     \
            for (size_t i = 0; i < count; i++)                               \
                all[i] = OP(GET(first[i]), GET(second[i]));                  \
        }                                                                    \
        for (int k = 2; k < n; k++) {                                        \
            const in *next = (const in *)from[k] + at;                       \
            for (size_t i = 0; i < count; i++)                               \
                all[i] = OP(all[i], GET(next[i]));                           \
        }                                                                    \
        STORE                                                                \
    }                                                                        \
    static void name(void *to, const void *const *from, int n, size_t count) \
    {                                                                        \
        size_t at = 0;                                                       \
        for (; count - at >= BLOCK; at += BLOCK)                             \
            name##_block(to, from, n, at, BLOCK);                            \
        if (at < count)                                                      \
            name##_block(to, from, n, at, count - at);                       \
    }

#define PLAIN(name, T, OP) LOOP(name, T, SAME, T, OP, T, AS_IT_IS(T))

#define WHOLE(u, s, U, S)         \
    PLAIN(sum_##u, U, SUM)        \
    PLAIN(prod_##u, U, WRAP_PROD) \
    PLAIN(max_##u, U, MORE)       \
    PLAIN(min_##u, U, LESS)       \
    PLAIN(max_##s, S, MORE)       \
    PLAIN(min_##s, S, LESS)

WHOLE(u8, i8, uint8_t, int8_t)
WHOLE(u16, i16, uint16_t, int16_t)
WHOLE(u32, i32, uint32_t, int32_t)
WHOLE(u64, i64, uint64_t, int64_t)

LOOP(or_bool, uint8_t, TRUTH, uint8_t, OR, uint8_t, AS_IT_IS(uint8_t))
LOOP(and_bool, uint8_t, TRUTH, uint8_t, AND, uint8_t, AS_IT_IS(uint8_t))

PLAIN(sum_f32, float, SUM)
PLAIN(prod_f32, float, PROD)
PLAIN(max_f32s, float, max_f32)
PLAIN(min_f32s, float, min_f32)
PLAIN(sum_f64, double, SUM)
PLAIN(prod_f64, double, PROD)
PLAIN(max_f64s, double, max_f64)
PLAIN(min_f64s, double, min_f64)
PLAIN(sum_c64s, c64, sum_c64)
PLAIN(prod_c64s, c64, prod_c64)
PLAIN(sum_c128s, c128, sum_c128)
PLAIN(prod_c128s, c128, prod_c128)

/* Short floats: to themselves, to f32, from f32. */
#define SHORT_OP(t, word, op, OP)                                             \
    LOOP(op##_##t, word, f32_of_##t, float, OP, word, AS(t##_of_f32, word))   \
    LOOP(op##_##t##_f32, word, f32_of_##t, float, OP, float, AS_IT_IS(float)) \
    LOOP(op##_f32_##t, float, SAME, float, OP, word, AS(t##_of_f32, word))
#define SHORT(t, word)              \
    SHORT_OP(t, word, sum, SUM)     \
    SHORT_OP(t, word, prod, PROD)   \
    SHORT_OP(t, word, max, max_f32) \
    SHORT_OP(t, word, min, min_f32)

SHORT(f16, uint16_t)
SHORT(bf16, uint16_t)
#define FLOAT8(t, ...) SHORT(t, uint8_t)
#include "core/base/dtype.def"

/* ---- the table ------------------------------------------------------------------------------------- */

enum { NOP = 4 };

#define FLOAT8(...) +1
enum {
    ROWS8 = 0
#include "core/base/dtype.def"
};
_Static_assert(DC_DTYPE__ALL - ROWS8 == 15,
               "each other element type has its loops in these tables");

/* clang-format off */
static dc_combine_fn *const same[DC_DTYPE__ALL][NOP] = { /* sum, prod, max, min */
    [DC_BOOL] = {or_bool, and_bool, or_bool, and_bool},
    [DC_I8]   = {sum_u8, prod_u8, max_i8, min_i8},
    [DC_I16]  = {sum_u16, prod_u16, max_i16, min_i16},
    [DC_I32]  = {sum_u32, prod_u32, max_i32, min_i32},
    [DC_I64]  = {sum_u64, prod_u64, max_i64, min_i64},
    [DC_U8]   = {sum_u8, prod_u8, max_u8, min_u8},
    [DC_U16]  = {sum_u16, prod_u16, max_u16, min_u16},
    [DC_U32]  = {sum_u32, prod_u32, max_u32, min_u32},
    [DC_U64]  = {sum_u64, prod_u64, max_u64, min_u64},
    [DC_F16]  = {sum_f16, prod_f16, max_f16, min_f16},
    [DC_BF16] = {sum_bf16, prod_bf16, max_bf16, min_bf16},
    [DC_F32]  = {sum_f32, prod_f32, max_f32s, min_f32s},
    [DC_F64]  = {sum_f64, prod_f64, max_f64s, min_f64s},
#define FLOAT8(t, ...) [DC_##t] = {sum_##t, prod_##t, max_##t, min_##t},
#include "core/base/dtype.def"
    [DC_C64]  = {sum_c64s, prod_c64s, NULL, NULL},
    [DC_C128] = {sum_c128s, prod_c128s, NULL, NULL},
};

/* Of short floats: to f32, and back. */
static dc_combine_fn *const widening[DC_DTYPE__COUNT][NOP] = {
    [DC_F16]  = {sum_f16_f32, prod_f16_f32, max_f16_f32, min_f16_f32},
    [DC_BF16] = {sum_bf16_f32, prod_bf16_f32, max_bf16_f32, min_bf16_f32},
#define FLOAT8(t, ...) [DC_##t] = {sum_##t##_f32, prod_##t##_f32, max_##t##_f32, min_##t##_f32},
#include "core/base/dtype.def"
};

static dc_combine_fn *const rounding[DC_DTYPE__COUNT][NOP] = {
    [DC_F16]  = {sum_f32_f16, prod_f32_f16, max_f32_f16, min_f32_f16},
    [DC_BF16] = {sum_f32_bf16, prod_f32_bf16, max_f32_bf16, min_f32_bf16},
#define FLOAT8(t, ...) [DC_##t] = {sum_f32_##t, prod_f32_##t, max_f32_##t, min_f32_##t},
#include "core/base/dtype.def"
};
/* clang-format on */

dc_combine_fn *dc_combine_find(dc_combine op, dc_dtype from, dc_dtype to)
{
    DC_ASSERT(from == to || from == dc_combine_between(to) || to == dc_combine_between(from),
              "%s combined to %s", dc_dtype_name(from), dc_dtype_name(to));
    if (from == to)
        return same[from][op];
    return dc_dtype_is_short(from) ? widening[from][op] : rounding[to][op];
}
