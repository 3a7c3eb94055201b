/*
 * Updates in place. A kernel does not know that an input shares memory with an output (jit/lower/README.md). As it was
 * lowered it reads an element of such an input in the iteration that stores to the same element, before that; moves that
 * read other elements, or read later, have to ask whether that still holds.
 */
#ifndef DC_JIT_NEST_NEST_IN_PLACE_H
#define DC_JIT_NEST_NEST_IN_PLACE_H

#include "jit/nest/nest_access.h"

/*
 * May an output live in the memory of an input? Asked of the naive kernel, whose list of statements this is: every read of
 * the input has to stand at the very place that the same iteration stores to, and before it is stored.
 */
bool dc_nest_in_place(dc_kernel *k, const dc_stmt *first, uint32_t out, uint32_t in);

/*
 * Of the inputs that may live in the memory of an output, by the naive kernel: does no load of them inside the axis read
 * what another iteration of a loop stores? False with the reason.
 */
bool dc_nest_keeps_in_place(dc_nest_edit *v, uint32_t axis);

/*
 * May an input lie in the memory of an output, as far as a kernel with moves tells: do its loads, under their tests, stay
 * apart from what other work items and threads store to the output?
 */
bool dc_nest_may_be_in_place(dc_nest_edit *v, uint32_t buf);

#endif
