/*
 * Packed floats: types of files that deepc has no tensors of. A block of some bytes holds some elements of a row, which
 * become f32: the quantised types of GGUF (https://github.com/ggml-org/ggml, ggml-common.h) and the floats of 8 bits.
 *
 * A block of q4_1 is 20 bytes for 32 elements: two f16, d and m, and 32 numbers q of 4 bits, which mean d*q + m. What
 * unpack gives has the bits that dequantize of the `gguf` package for Python gives.
 */
#ifndef DC_FORMATS_PACKING_H
#define DC_FORMATS_PACKING_H

#include "core/base/type.h"

typedef struct dc_packing {
    const char *name;         /* "q4_1" */
    uint32_t elements, bytes; /* of a block */
    void (*unpack)(const unsigned char *from, float *to, size_t blocks);
    /* False where an element is no finite number, or a scale is beyond f16. NULL: the type is not written. */
    bool (*pack)(const float *from, unsigned char *to, size_t blocks);
} dc_packing;

/*
 * Floats of 8 bits of a finite number: to nearest, ties to even; what is beyond the largest becomes that one, 448 of
 * "f8_e4m3" and 57344 of "f8_e5m2".
 */
uint8_t dc_f8_e4m3_of_float(float x);
uint8_t dc_f8_e5m2_of_float(float x);

enum { DC_PACKING_MOST = 256 }; /* elements of a block */

const dc_packing *dc_packing_find(const char *name); /* or NULL */
/* What layers call codes of this element type, as which they have it; NULL: none has. */
const char *dc_packing_codes(dc_dtype t);

/* Of n elements, a multiple of a block's. */
static inline size_t dc_packing_bytes(const dc_packing *p, size_t n)
{
    return n / p->elements * p->bytes;
}

#endif
