/* Scalars: the bits of one element. */
#ifndef DC_CORE_BASE_BITS_H
#define DC_CORE_BASE_BITS_H

#include "core/base/type.h"

/*
 * A pattern holds one element in the low bits of a uint64_t: the bits of a
 * float, an integer sign- or zero-extended to 64 bits, 0 or 1 for bool; of a complex number those of its real part,
 * where the other one is 0. Conversions are exact or
 * rounded once, those of 64-bit integers too; only dc_value_of has no more than a double to give.
 */
int dc_bits_width(dc_dtype t);                         /* bits in arithmetic: 1 of bool */
uint64_t dc_bits_canonical(dc_dtype t, uint64_t bits); /* cut to the width, extended again */
/* Of floats: the first pattern beyond the largest number, which is infinity or, without infinities, NaN. */
uint64_t dc_bits_infinity(dc_dtype t);
uint64_t dc_bits_nan(dc_dtype t); /* the quiet one, without other bits */
bool dc_bits_is_nan(dc_dtype t, uint64_t bits);
uint64_t dc_bits_of(dc_dtype t, double v); /* saturates, truncates, NaN to 0, as :cast does */
double dc_value_of(dc_dtype t, uint64_t bits);
uint64_t dc_bits_load(dc_dtype t, const void *at);
void dc_bits_store(dc_dtype t, void *at, uint64_t bits);
/* n elements one after the other. */
void dc_bits_load_many(dc_dtype t, const void *at, int64_t n, uint64_t *out);
void dc_bits_store_many(dc_dtype t, void *at, int64_t n, const uint64_t *bits);
uint64_t dc_bits_cast(dc_dtype from, dc_dtype to, uint64_t bits);

/* A pattern of f32 to the nearest TF32, ties away from zero; a NaN stays what it is. */
static inline uint32_t dc_tf32_bits(uint32_t f32)
{
    return (f32 & 0x7fffffff) > 0x7f800000 ? f32 : (f32 + 0x1000) & ~(uint32_t)0x1fff;
}

#endif
