/*
 * Lowering: one group to a naive kernel, always correct, never clever: loops over the shape of the
 * outputs, inside them the reduction as initialise / accumulate / use. Movement operations become
 * access maps. Speed comes from the moves that follow (jit/schedule.h).
 *
 * Parameters of the kernel: the outputs in the order of group.out, then the inputs in that of
 * group.in. The kernel is the caller's (dc_kernel_free).
 */
#ifndef DC_JIT_LOWER_H
#define DC_JIT_LOWER_H

#include "jit/fuse.h"
#include "jit/nest.h"

dc_status dc_lower(dc_job *j, const dc_groups *g, uint32_t index, dc_kernel **out);

/*
 * The kernel of a scatter whose result is in the memory of what it changes: the updates alone are stored.
 * For groups that dc_lower_is_scatter says are one.
 */
dc_status dc_lower_updates(dc_job *j, const dc_groups *g, uint32_t index, dc_kernel **out);
bool dc_lower_is_scatter(const dc_groups *g, uint32_t index);

/*
 * May input `in` (index into group.in) live in the memory of output `out`? True if every read of it
 * is at the very position that the same iteration stores to, outside any reduction loop.
 */
bool dc_lower_in_place(dc_kernel *k, const dc_group *g, uint32_t out, uint32_t in);

#endif
