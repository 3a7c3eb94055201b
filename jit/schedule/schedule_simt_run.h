/* Runs of access maps, for the rules of thread groups. */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_SIMT_RUN_H
#define DC_JIT_SCHEDULE_SCHEDULE_SIMT_RUN_H

#include "jit/nest/nest.h"

/*
 * Neighbours along the axis that are neighbours in memory, in runs as aligned as they are long, a power of two of them
 * up to `most` wherever the other axes are; 1: but no longer runs; 0: they are none.
 */
int64_t dc_simt_run(const dc_kernel *k, const dc_vx_node *load, uint32_t axis, int64_t most);

#endif
