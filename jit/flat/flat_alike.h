/*
 * Are two kernels the same but for their buffers and numbers? Then one body does the work of both, which has the numbers from
 * a table (dc_ftable).
 *
 * Numbers that may differ are scalar constants, sizes of parameters and of group memory. What a compiler has to know is
 * equal: bounds of loops, which it unrolls, and places in arrays of a thread, which are registers only then.
 */
#ifndef DC_JIT_FLAT_FLAT_ALIKE_H
#define DC_JIT_FLAT_FLAT_ALIKE_H

#include "jit/flat/flat.h"

/* A kernel as a list of what is neither constant nor argument. */
typedef struct dc_flat_body {
    const dc_flat *f;
    dc_fv *at; /* n instructions, in order */
    uint32_t n;
    uint32_t *number; /* by value: where it is in the list */
    bool *known;      /* by value: constants it is made of have to be known */
} dc_flat_body;

dc_flat_body dc_flat_body_of(dc_arena *a, const dc_flat *f);

bool dc_flat_alike(const dc_flat_body *a, const dc_flat_body *b);

#endif
