/*
 * Polls for a request to end (core/runtime/halt.h) in the long loops of a kernel. Launches are divided by work items,
 * so these are for work items of more than about a millisecond; ordinary kernels have no such loop and stay as they
 * are.
 */
#ifndef DC_JIT_FLAT_FLAT_POLLS_H
#define DC_JIT_FLAT_FLAT_POLLS_H

#include "jit/flat/flat.h"

/* By value: is it a LOOP that looks in each iteration? NULL where none does. In arena a. */
const bool *dc_flat_polls_find(const dc_flat *f, dc_arena *a);

#endif
