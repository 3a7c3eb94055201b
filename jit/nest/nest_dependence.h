/* Dependences between iterations of a loop, through memory. What is not proved independent depends. */
#ifndef DC_JIT_NEST_NEST_DEPENDENCE_H
#define DC_JIT_NEST_NEST_DEPENDENCE_H

#include "jit/nest/nest_access.h"

/*
 * Does no iteration of `loop` touch what another one writes, whatever the iterations of the other loops
 * inside `whole` (the loop itself, or one around it) are? Buffers private to an iteration do not count.
 * False with the reason.
 */
bool dc_nest_independent(dc_nest_edit *v, dc_stmt *whole, dc_stmt *loop);

/* The same for one buffer, not regarding whether it is private. */
bool dc_nest_buffer_apart(dc_nest_edit *v, const dc_accesses *all, dc_stmt *whole, uint32_t axis,
                          uint32_t buf);

/* Are all loads of the buffer in the list of elements that the list has stored before? */
bool dc_nest_written_first(dc_nest_edit *v, dc_stmt *first, uint32_t buf);
/* Does p hold wherever a and b do? */
bool dc_pred_implied(dc_pred p, dc_pred a, dc_pred b);

#endif
