/*
 * Staged buffers (dc_buffer.stages): memory of a thread group that an iteration of a loop fills, by copies of inputs, and then
 * reads. Where it is a ring of N such memories, the copies of iteration i + N - 1 may run before iteration i reads
 * its own, and are on their way meanwhile:
 *
 *   copies of 0 .. N-2;   for i:   copies of i + N - 1, what reads those of i
 *
 * It is right where copies do not depend on anything that the loop computes, and each iteration stores to the same elements.
 * Every element is what it was, so bits are the same.
 */
#ifndef DC_JIT_NEST_NEST_STAGE_H
#define DC_JIT_NEST_NEST_STAGE_H

#include "jit/nest/nest.h"

enum { DC_NEST_STAGES = 8 }; /* at most */

/* NULL, and the loop; or why the buffer cannot be staged, static. What fills it stands at the loop's begin, behind only
 * what fills other buffers of as many stages. */
const char *dc_nest_stage(const dc_kernel *k, dc_arena *scratch, uint32_t buf, uint32_t stages,
                          const dc_stmt **loop);
/* The buffer that a statement stores to first; DC_NO_BUF of a matrix instruction. */
uint32_t dc_nest_stores_to(const dc_stmt *s);

#endif
