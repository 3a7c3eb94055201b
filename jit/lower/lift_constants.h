/*
 * Kernels that differ only in constants become equal: where many kernels of a function do, the constants that differ
 * are read from memory that the executable brings along. T pieces, each times a number of its own, are then one
 * kernel.
 */
#ifndef DC_JIT_LOWER_LIFT_CONSTANTS_H
#define DC_JIT_LOWER_LIFT_CONSTANTS_H

#include "core/base/job.h"
#include "jit/nest/nest.h"

typedef struct
    dc_lifted { /* of a kernel: what its last parameter shows; n = 0: it has no other than before */
    uint32_t n;
    dc_dtype dtype;
    const uint64_t *bits;
} dc_lifted;

/*
 * By kernel, of naive ones; NULL among them stand for none. buffers: parameters that a kernel has at most, 0 any
 * number. Constants that are part of a position, and kernels that add up, are left alone.
 */
const dc_lifted *dc_lift_constants(dc_job *j, dc_kernel *const *kernel, uint32_t n,
                                   uint32_t buffers);

#endif
