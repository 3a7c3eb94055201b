#include "formats/blocks.h"

#include "formats/floats.h"
#include "formats/packing.h"

#include <string.h>

enum { MOST = DC_PACKING_MOST, SCALES = MOST / 16, LANES = DC_BLOCKS_LANES };

/* Four words, and where 16 bytes of a file are read as four. */
typedef uint32_t four __attribute__((vector_size(16)));

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static inline four get_four(const unsigned char *p)
{
    four v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline four each(uint32_t v)
{
    return (four){v, v, v, v};
}

static float half_at(const unsigned char *p)
{
    return dc_float_of_half(get16(p));
}

/*
 * What each type says of a block at p:
 *
 *   TYPE_words(p, i)             its words 4 i to 4 i + 3, as they are laid out: part after part
 *   TYPE_scales(p, scale, min)   scales and mins of its parts
 *
 * All bytes of a word, or of four words, are worked on at once: LOW has the low half of each byte, BIT its lowest bit.
 */
enum { LOW = 0x0f0f0f0f, BIT = 0x01010101 };

/* ---- blocks of 32 ----------------------------------------------------------------------------- */

static inline void one_scale(const unsigned char *p, float *scale, float *min)
{
    DC_UNUSED(min);
    scale[0] = half_at(p);
}

static inline void scale_and_min(const unsigned char *p, float *scale, float *min)
{
    scale[0] = half_at(p);
    min[0] = half_at(p + 2);
}

/* The file's words are those that are wanted: halves of a byte are 16 elements apart. */
static inline four q4_0_words(const unsigned char *p, int i)
{
    return get_four(p + 2 + 16 * i);
}

static inline four q4_1_words(const unsigned char *p, int i)
{
    return get_four(p + 4 + 16 * i);
}

/* From 0 to 255 for -128 to 127. */
static inline four q8_0_words(const unsigned char *p, int i)
{
    return get_four(p + 2 + 16 * i) ^ each(0x80808080);
}

/* Of 32 numbers of 5 bits the low halves at `low`, the highest bits in `high`: the latter go from a half to four bytes. */
static inline four five_bits(const unsigned char *low, uint32_t high, int i)
{
    const four bits = each(high >> 16 * i) >> (four){0, 4, 8, 12} & each(15);
    const four spread = (bits | bits << 7 | bits << 14 | bits << 21) & each(BIT);
    return (get_four(low) >> (uint32_t)(4 * i) & each(LOW)) | spread << 4;
}

static inline four q5_0_words(const unsigned char *p, int i)
{
    return five_bits(p + 6, get32(p + 2), i);
}

static inline four q5_1_words(const unsigned char *p, int i)
{
    return five_bits(p + 8, get32(p + 4), i);
}

/* ---- blocks of 256 ---------------------------------------------------------------------------- */

/* Of 6 bits each: 8 scales and 8 minima in 12 bytes, the last four of each in what the first ones leave. */
static void scales_of_k(const unsigned char *p, float *scale, float *min)
{
    const float d = half_at(p), dmin = half_at(p + 2);
    const unsigned char *s = p + 4;
    for (int i = 0; i < 8; i++) {
        const int a = i < 4 ? s[i] & 63 : (s[4 + i] & 15) | (s[i - 4] >> 2 & 0x30);
        const int b = i < 4 ? s[4 + i] & 63 : s[4 + i] >> 4 | (s[i] >> 2 & 0x30);
        scale[i] = d * (float)a;
        min[i] = -(dmin * (float)b);
    }
}

/* Part i: of 32 bytes the low or the high halves. */
static inline four q4_k_words(const unsigned char *p, int i)
{
    const four a = get_four(p + 16 + i / 2 * 32), b = get_four(p + 32 + i / 2 * 32);
    return i % 2 == 0 ? (a & each(LOW)) | (b & each(LOW)) << 4
                      : (a >> 4 & each(LOW)) | (b & ~each(LOW));
}

static inline four q5_k_words(const unsigned char *p, int i)
{
    const uint32_t part = (uint32_t)i / 2, in = (uint32_t)i % 2 * 16;
    const four high = get_four(p + 16 + in) >> part & each(BIT);
    return (get_four(p + 48 + part / 2 * 32 + in) >> part % 2 * 4 & each(LOW)) | high << 4;
}

static inline four q6_k_words(const unsigned char *p, int i)
{
    const uint32_t n = (uint32_t)i / 2, in = (uint32_t)i % 2 * 16; /* the n-th 32 elements */
    const four low = get_four(p + n / 4 * 64 + n % 2 * 32 + in) >> n / 2 % 2 * 4 & each(LOW);
    const four high = get_four(p + 128 + n / 4 * 32 + in) >> n % 4 * 2 & each(3 * BIT);
    return low | high << 4;
}

static void q6_k_scales(const unsigned char *p, float *scale, float *min)
{
    const float d = half_at(p + 208);
    DC_UNUSED(min);
    for (int i = 0; i < SCALES; i++)
        scale[i] = d * (float)(int8_t)p[192 + i];
}

/* ---- as floats -------------------------------------------------------------------------------- */

/* n is a number where it is called, so that there are vectors of it. */
static inline void scaled(const dc_blocks *b, const uint8_t *q, float scale, float min, float *to,
                          int n)
{
    if (b->mins)
        for (int i = 0; i < n; i++)
            to[i] = scale * (float)q[i] + min;
    else
        for (int i = 0; i < n; i++)
            to[i] = scale * (float)(q[i] - b->zero);
}

/* The numbers of a block out of its words. */
static void numbers(const dc_blocks *b, const four *words, int n, uint8_t *q)
{
    const unsigned char *x = (const unsigned char *)words;
    if (b->bits == 8) {
        memcpy(q, x, (size_t)n);
        return;
    }
    for (; n > 0; n -= 32, x += 16, q += 32)
        for (int i = 0; i < 16; i++) {
            q[i] = x[i] & 15;
            q[16 + i] = x[i] >> 4;
        }
}

void dc_blocks_unpack(const dc_blocks *b, const unsigned char *from, float *to, size_t n)
{
    const dc_packing *p = dc_packing_find(b->name);
    const int elements = (int)p->elements, parts = elements / b->block;
    four words[MOST / 16];
    uint8_t q[MOST];
    float scale[SCALES], min[SCALES] = {0};
    for (; n-- > 0; from += p->bytes) {
        b->words(from, words);
        b->scales(from, scale, min);
        numbers(b, words, elements, q);
        for (int part = 0; part < parts; part++, to += b->block) {
            const uint8_t *x = q + part * b->block;
            if (b->block == 32)
                scaled(b, x, scale[part], min[part], to, 32);
            else
                scaled(b, x, scale[part], min[part], to, 16);
        }
    }
}

/* ---- laying out ------------------------------------------------------------------------------- */

/* Four words of each of four rows to four rows of each of four words. */
static inline void put_turned(four a, four b, four c, four d, uint32_t *to)
{
    const four ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const four ac1 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const four bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const four bd1 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    const four row[4] = {__builtin_shufflevector(ac0, bd0, 0, 4, 1, 5),
                         __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7),
                         __builtin_shufflevector(ac1, bd1, 0, 4, 1, 5),
                         __builtin_shufflevector(ac1, bd1, 2, 6, 3, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + i * LANES, &row[i], sizeof row[i]);
}

/*
 * TYPE_all: the words of a block; TYPE_strip: those of 16 blocks, one for each row, which are `row` bytes apart. A block
 * has n times four words.
 */
#define WORDS(type, n)                                                                 \
    static void type##_all(const unsigned char *p, void *to)                           \
    {                                                                                  \
        four *words = to;                                                              \
        for (int i = 0; i < (n); i++)                                                  \
            words[i] = type##_words(p, i);                                             \
    }                                                                                  \
    static void type##_strip(const unsigned char *p, size_t row, uint32_t *to)         \
    {                                                                                  \
        for (int lane = 0; lane < LANES; lane += 4, p += 4 * row)                      \
            for (int i = 0; i < (n); i++)                                              \
                put_turned(type##_words(p, i), type##_words(p + row, i),               \
                           type##_words(p + 2 * row, i), type##_words(p + 3 * row, i), \
                           to + 4 * LANES * i + lane);                                 \
    }
WORDS(q4_0, 1)
WORDS(q4_1, 1)
WORDS(q5_0, 2)
WORDS(q5_1, 2)
WORDS(q8_0, 2)
WORDS(q4_k, 8)
WORDS(q5_k, 16)
WORDS(q6_k, 16)
#undef WORDS

/* Scales of the larger blocks are products, which f16 does not hold. */
static const dc_blocks all[] = {
    {"q4_0", 4, 32, 8, false, DC_F16, q4_0_all, one_scale, q4_0_strip},
    {"q4_1", 4, 32, 0, true, DC_F16, q4_1_all, scale_and_min, q4_1_strip},
    {"q5_0", 8, 32, 16, false, DC_F16, q5_0_all, one_scale, q5_0_strip},
    {"q5_1", 8, 32, 0, true, DC_F16, q5_1_all, scale_and_min, q5_1_strip},
    {"q8_0", 8, 32, 128, false, DC_F16, q8_0_all, one_scale, q8_0_strip},
    {"q4_k", 4, 32, 0, true, DC_F32, q4_k_all, scales_of_k, q4_k_strip},
    {"q5_k", 8, 32, 0, true, DC_F32, q5_k_all, scales_of_k, q5_k_strip},
    {"q6_k", 8, 16, 32, false, DC_F32, q6_k_all, q6_k_scales, q6_k_strip},
};

const dc_blocks *dc_blocks_find(const char *packing)
{
    for (size_t i = 0; i < DC_COUNTOF(all); i++)
        if (strcmp(all[i].name, packing) == 0)
            return &all[i];
    return NULL;
}

/* As it is; a NaN becomes quiet, as by way of f32. */
static uint16_t quiet_half(const unsigned char *p)
{
    const uint32_t h = get16(p);
    return (uint16_t)(h | ((h & 0x7fff) > 0x7c00 ? 0x200 : 0));
}

/* Scales and mins of 16 blocks with one of each, in f16. */
static void put_halves(const unsigned char *p, size_t row, uint16_t *scales, uint16_t *mins)
{
    for (int lane = 0; lane < LANES; lane++)
        scales[lane] = quiet_half(p + (size_t)lane * row);
    for (int lane = 0; lane < LANES && mins != NULL; lane++)
        mins[lane] = quiet_half(p + (size_t)lane * row + 2);
}

static void put_floats(const dc_blocks *b, size_t parts, const unsigned char *p, size_t row,
                       float *scales, float *mins)
{
    float scale[SCALES], min[SCALES];
    for (size_t lane = 0; lane < LANES; lane++) {
        b->scales(p + lane * row, scale, min);
        for (size_t i = 0; i < parts; i++)
            scales[i * LANES + lane] = scale[i];
        for (size_t i = 0; i < parts && mins != NULL; i++)
            mins[i * LANES + lane] = min[i];
    }
}

/* A packed block of each of 16 rows, which are `row` bytes apart. */
static void lay_column(const dc_blocks *b, size_t parts, const unsigned char *from, size_t row,
                       uint32_t *words, void *scales, void *mins)
{
    b->strip(from, row, words);
    if (b->scale == DC_F16)
        put_halves(from, row, scales, mins);
    else
        put_floats(b, parts, from, row, scales, mins);
}

/* Zeros in lanes from n on, of `groups` times 16 elements. */
static void clear_lanes(void *at, size_t groups, size_t n, size_t size)
{
    for (char *to = at; to != NULL && groups-- > 0; to += LANES * size)
        memset(to + n * size, 0, (LANES - n) * size);
}

/* A packed block of each of n < 16 rows, the last ones. */
static void lay_last(const dc_blocks *b, size_t parts, const unsigned char *from, size_t row,
                     size_t n, uint32_t *words, void *scales, void *mins)
{
    enum { LONGEST = 210 }; /* bytes of a packed block */
    unsigned char there[LANES * LONGEST] = {0};
    const size_t bytes = dc_packing_find(b->name)->bytes, size = dc_dtype_size(b->scale);
    DC_ASSERT(bytes <= LONGEST, "blocks of %zu bytes", bytes);
    for (size_t lane = 0; lane < n; lane++)
        memcpy(there + lane * bytes, from + lane * row, bytes);
    lay_column(b, parts, there, bytes, words, scales, mins);
    clear_lanes(words, parts * (size_t)dc_blocks_words(b), n, sizeof *words);
    clear_lanes(scales, parts, n, size);
    clear_lanes(mins, parts, n, size);
}

void dc_blocks_lay(const dc_blocks *b, const unsigned char *rows, size_t n, size_t columns,
                   uint32_t *words, void *scales, void *mins)
{
    const dc_packing *p = dc_packing_find(b->name);
    const size_t blocks = columns / p->elements, parts = p->elements / (size_t)b->block;
    const size_t row = blocks * p->bytes, group = parts * LANES;
    const size_t size = group * dc_dtype_size(b->scale);
    char *to = scales, *to_min = mins;
    for (size_t r = 0; r < n; r += LANES, rows += LANES * row)
        for (size_t i = 0; i < blocks; i++) {
            const unsigned char *from = rows + i * p->bytes;
            if (n - r < LANES)
                lay_last(b, parts, from, row, n - r, words, to, to_min);
            else
                lay_column(b, parts, from, row, words, to, to_min);
            words += group * (size_t)dc_blocks_words(b);
            to += size;
            to_min = to_min != NULL ? to_min + size : NULL;
        }
}
