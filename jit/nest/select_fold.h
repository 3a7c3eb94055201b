/*
 * Values of kernels that only choose: padding, concatenation, what a test decides. Exact, but for which NaN it is.
 */
#ifndef DC_JIT_NEST_SELECT_FOLD_H
#define DC_JIT_NEST_SELECT_FOLD_H

#include "jit/nest/nest.h"

/* The operand that an operation gives as it is, where its tests are decided or it adds nothing; 0: none. */
dc_vx dc_select_operand(const dc_kernel *k, const dc_vx_node *n);

/* a + b, or all of their bits, of which no more than one is anything but a border of zeros anywhere, as a choice; 0: they may meet. */
dc_vx dc_select_sum(dc_kernel *k, dc_vx a, dc_vx b);

/* A value of f32 that chooses among numbers of 16 bits, as one of them; 0: it computes something. */
dc_vx dc_select_short(dc_kernel *k, dc_vx v, dc_dtype t);

#endif
