/*
 * Lowering: one group to a naive kernel, always correct, never clever: loops over the shape of the
 * outputs, inside them the reduction as initialise / accumulate / use. Movement operations become
 * access maps. Speed comes from the moves that follow (jit/schedule/schedule.h).
 *
 * Parameters of the kernel: the outputs in the order of group.out, then the inputs in that of
 * group.in. The kernel is the caller's (dc_kernel_free).
 */
#ifndef DC_JIT_LOWER_LOWER_H
#define DC_JIT_LOWER_LOWER_H

#include "jit/fuse/fuse.h"
#include "jit/nest/nest.h"

/*
 * Before groups are planned. Memory in a for lowering one group after the other; without it each dc_lower takes and clears its
 * own. A dot of one value with itself reads it as two inputs, where a kernel may have so many buffers (0: any number): what
 * schedules do with one operand they would do with both.
 */
void dc_lower_prepare(dc_groups *groups, dc_arena *a, uint32_t buffers);

dc_status dc_lower(dc_job *j, const dc_groups *g, uint32_t index, dc_kernel **out);

/*
 * A scatter, or a part that is set (where() with a padded constant for a test): the value that the group's only
 * output is but for that, which it reads; 0 for other groups. Where both are in the same memory, dc_lower_updates
 * gives the kernel that stores what changes alone.
 */
dc_ref dc_lower_changes(const dc_groups *g, uint32_t index);
dc_status dc_lower_updates(dc_job *j, const dc_groups *g, uint32_t index, dc_kernel **out);

/*
 * May input `in` (index into group.in) live in the memory of output `out`? True if every read of it
 * is at the very position that the same iteration stores to, outside any reduction loop.
 */
bool dc_lower_in_place(dc_kernel *k, const dc_group *g, uint32_t out, uint32_t in);

#endif
