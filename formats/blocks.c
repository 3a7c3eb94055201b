#include "formats/blocks.h"

#include "formats/floats.h"
#include "formats/packing.h"

#include <string.h>

enum { MOST = DC_PACKING_MOST, SCALES = MOST / 16 };

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static float half_at(const unsigned char *p)
{
    return dc_float_of_half(get16(p));
}

/* ---- blocks of 32 ----------------------------------------------------------------------------- */

static void halves(const unsigned char *p, uint8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = p[i] & 15;
        q[16 + i] = p[i] >> 4;
    }
}

static void fifth_bits(uint32_t high, uint8_t *q)
{
    for (int i = 0; i < 32; i++)
        q[i] |= (uint8_t)((high >> i & 1) << 4);
}

static void digits_q8_0(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    DC_UNUSED(min);
    scale[0] = half_at(p);
    for (int i = 0; i < 32; i++)
        q[i] = p[2 + i] ^ 0x80; /* from 0 to 255 for -128 to 127 */
}

static void digits_q4_0(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    DC_UNUSED(min);
    scale[0] = half_at(p);
    halves(p + 2, q);
}

static void digits_q4_1(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    scale[0] = half_at(p);
    min[0] = half_at(p + 2);
    halves(p + 4, q);
}

static void digits_q5_0(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    DC_UNUSED(min);
    scale[0] = half_at(p);
    halves(p + 6, q);
    fifth_bits(get32(p + 2), q);
}

static void digits_q5_1(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    scale[0] = half_at(p);
    min[0] = half_at(p + 2);
    halves(p + 8, q);
    fifth_bits(get32(p + 4), q);
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

static void digits_of_k(const unsigned char *low, uint8_t *q)
{
    for (int sub = 0; sub < 8; sub++)
        for (int i = 0; i < 32; i++)
            q[sub * 32 + i] = low[sub / 2 * 32 + i] >> (sub % 2 * 4) & 15;
}

static void digits_q4_k(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    scales_of_k(p, scale, min);
    digits_of_k(p + 16, q);
}

static void digits_q5_k(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    scales_of_k(p, scale, min);
    digits_of_k(p + 48, q);
    for (int i = 0; i < MOST; i++)
        q[i] |= (uint8_t)((p[16 + i % 32] >> (i / 32) & 1) << 4);
}

static void digits_q6_k(const unsigned char *p, uint8_t *q, float *scale, float *min)
{
    const float d = half_at(p + 208);
    DC_UNUSED(min);
    for (int i = 0; i < SCALES; i++)
        scale[i] = d * (float)(int8_t)p[192 + i];
    for (int sub = 0; sub < 8; sub++)
        for (int i = 0; i < 32; i++) {
            const int low = p[sub / 4 * 64 + sub % 2 * 32 + i] >> (sub / 2 % 2 * 4) & 15;
            const int high = p[128 + sub / 4 * 32 + i] >> (sub % 4 * 2) & 3;
            q[sub * 32 + i] = (uint8_t)(low | high << 4);
        }
}

/* Scales of the larger blocks are products, which f16 does not hold. */
static const dc_blocks all[] = {
    {"q4_0", 4, 32, 8, false, DC_F16, digits_q4_0},
    {"q4_1", 4, 32, 0, true, DC_F16, digits_q4_1},
    {"q5_0", 8, 32, 16, false, DC_F16, digits_q5_0},
    {"q5_1", 8, 32, 0, true, DC_F16, digits_q5_1},
    {"q8_0", 8, 32, 128, false, DC_F16, digits_q8_0},
    {"q4_k", 4, 32, 0, true, DC_F32, digits_q4_k},
    {"q5_k", 8, 32, 0, true, DC_F32, digits_q5_k},
    {"q6_k", 8, 16, 32, false, DC_F32, digits_q6_k},
};

const dc_blocks *dc_blocks_find(const char *packing)
{
    for (size_t i = 0; i < DC_COUNTOF(all); i++)
        if (strcmp(all[i].name, packing) == 0)
            return &all[i];
    return NULL;
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

void dc_blocks_unpack(const dc_blocks *b, const unsigned char *from, float *to, size_t n)
{
    const dc_packing *p = dc_packing_find(b->name);
    const int parts = (int)p->elements / b->block;
    uint8_t q[MOST];
    float scale[SCALES], min[SCALES] = {0};
    for (; n-- > 0; from += p->bytes) {
        b->digits(from, q, scale, min);
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

static uint32_t word_of(const dc_blocks *b, const uint8_t *q, int word)
{
    uint32_t w = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t byte = q[4 * word + i];
        if (b->bits == 4)
            byte |= (uint32_t)q[b->block / 2 + 4 * word + i] << 4;
        w |= byte << 8 * i;
    }
    return w;
}

static void put_float(const dc_blocks *b, void *to, size_t at, float v)
{
    if (b->scale == DC_F16)
        ((uint16_t *)to)[at] = (uint16_t)dc_half_of_float(v);
    else
        ((float *)to)[at] = v;
}

/* A packed block of row r of 16, the first one of whose parts is part `at` of the row. */
static void lay_block(const dc_blocks *b, const unsigned char *from, size_t parts, size_t at,
                      uint32_t *words, void *scales, void *mins)
{
    const int n = dc_blocks_words(b);
    uint8_t q[MOST];
    float scale[SCALES], min[SCALES];
    b->digits(from, q, scale, min);
    for (size_t p = 0; p < parts; p++) {
        for (int w = 0; w < n; w++)
            words[((at + p) * (size_t)n + (size_t)w) * DC_BLOCKS_LANES] =
                word_of(b, q + p * (size_t)b->block, w);
        put_float(b, scales, (at + p) * DC_BLOCKS_LANES, scale[p]);
        if (b->mins)
            put_float(b, mins, (at + p) * DC_BLOCKS_LANES, min[p]);
    }
}

void dc_blocks_lay(const dc_blocks *b, const unsigned char *rows, size_t n, size_t columns,
                   uint32_t *words, void *scales, void *mins)
{
    const dc_packing *p = dc_packing_find(b->name);
    const size_t lanes = DC_BLOCKS_LANES, parts = columns / (size_t)b->block,
                 inside = p->elements / (size_t)b->block;
    const size_t most = (n + lanes - 1) / lanes * lanes, size = b->scale == DC_F16 ? 2 : 4;
    const size_t row_words = parts * (size_t)dc_blocks_words(b) * lanes, row_scales = parts * lanes;
    if (most > n) { /* of the last 16 rows those that are not there */
        const size_t last = most / lanes - 1;
        memset(words + last * row_words, 0, row_words * sizeof *words);
        memset((char *)scales + last * row_scales * size, 0, row_scales * size);
        if (b->mins)
            memset((char *)mins + last * row_scales * size, 0, row_scales * size);
    }
    for (size_t r = 0; r < n; r++) {
        const size_t strip = r / lanes, lane = r % lanes;
        char *to = (char *)scales + (strip * row_scales + lane) * size;
        char *to_min = b->mins ? (char *)mins + (strip * row_scales + lane) * size : NULL;
        for (size_t at = 0; at < parts; at += inside, rows += p->bytes)
            lay_block(b, rows, inside, at, words + strip * row_words + lane, to, to_min);
    }
}
