/*
 * Packed matrices as kernels multiply them: rows of blocks (formats/packing.h), 16 rows side by side, so that the lanes
 * of a vector are 16 results. Element (r, c) of a matrix of n rows is scale * (q - zero), or scale * q + min, where
 *
 *   q       are numbers without a sign, of 4 or 8 bits, in words of 32 bits: u32[ceil(n / 16), columns / block, words, 16].
 *           Of 8 bits word w has elements 4 w to 4 w + 3, the first one in its lowest byte. Of 4 bits the low halves of
 *           the bytes of word w are elements 4 w to 4 w + 3, the high ones elements block / 2 later.
 *   scale   and min are f16 or f32 [ceil(n / 16), columns / block, 16].
 *
 * Rows behind the last one are zeros.
 */
#ifndef DC_FORMATS_BLOCKS_H
#define DC_FORMATS_BLOCKS_H

#include "core/base/type.h"

enum { DC_BLOCKS_LANES = 16 };

typedef struct dc_blocks {
    const char *name; /* of the packing */
    int bits;         /* of a number: 4 or 8 */
    int block;        /* elements with one scale: 16 or 32 */
    int zero;         /* what is subtracted from numbers; 0 where there are mins */
    bool mins;
    dc_dtype scale; /* F16, F32 */
    /* Of one block of the packing: its words, part after part, aligned to 16 bytes; scales and mins of its parts. */
    void (*words)(const unsigned char *from, void *to);
    void (*scales)(const unsigned char *from, float *scale, float *min);
    /* The words of a block of each of 16 rows, which are `row` bytes apart, as they are laid out. */
    void (*strip)(const unsigned char *from, size_t row, uint32_t *to);
} dc_blocks;

/* Words of a block of 16 rows. */
static inline int dc_blocks_words(const dc_blocks *b)
{
    return b->block * b->bits / 32;
}

const dc_blocks *dc_blocks_find(const char *packing); /* NULL: none that is multiplied so */
/* n packed blocks as floats. */
void dc_blocks_unpack(const dc_blocks *b, const unsigned char *from, float *to, size_t n);
/* n rows of packed blocks, `columns` elements each, a multiple of a packed block's. mins: NULL where there are none. */
void dc_blocks_lay(const dc_blocks *b, const unsigned char *rows, size_t n, size_t columns,
                   uint32_t *words, void *scales, void *mins);

#endif
