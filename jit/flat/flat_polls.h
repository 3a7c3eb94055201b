/*
 * Loops of a kernel that run so long that the kernel itself has to look whether it is to end (core/runtime/halt.h). Launches
 * are divided by positions, so this is for positions of more than about a millisecond; ordinary kernels have no
 * such loop and stay as they are.
 */
#ifndef DC_JIT_FLAT_FLAT_POLLS_H
#define DC_JIT_FLAT_FLAT_POLLS_H

#include "jit/flat/flat.h"

/* By value: is it a LOOP that looks in each iteration? NULL where none does. In arena a. */
const bool *dc_flat_polls_find(const dc_flat *f, dc_arena *a);

#endif
