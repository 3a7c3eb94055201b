/*
 * Interpreter of the flat form on host memory: ranges of work items as a thread of a pool runs them, or groups of
 * threads with barriers and shuffles. Slow; reports as BUG records, naming kernel, instruction and
 * buffer: accesses outside a buffer, threads of a group that touch one element without a barrier
 * between (one of them writing), work items that touch one element (one writing), a barrier or shuffle
 * that not all threads come to.
 */
#ifndef DC_JIT_SIM_FLAT_INTERP_H
#define DC_JIT_SIM_FLAT_INTERP_H

#include "jit/flat/flat.h"

/*
 * mem[p] is the memory of parameter p. Work items begin to end - 1. Parameters of mode IN may share
 * memory with an output as the plan allows (an update in place).
 */
dc_status dc_flat_run(dc_job *j, const dc_flat *f, void *const *mem, int64_t begin, int64_t end);

#endif
