/*
 * Lifetimes to offsets: temporaries that are never alive at the same step may share memory.
 *
 * The offsets are found greedily, the largest temporary first, each in the tightest gap that those
 * already placed leave it; where that takes more than is alive at once, other orders are tried, a
 * fixed number of them. Reference: Pisarchyk and Lee, Efficient Memory Management for Deep
 * Neural Net Inference, 2020 ("greedy by size").
 */
#ifndef DC_JIT_PLAN_PLAN_MEMORY_H
#define DC_JIT_PLAN_PLAN_MEMORY_H

#include "jit/plan/plan.h"

/*
 * Fills in the offsets: multiples of DC_PLAN_ALIGN, with `guard` free bytes (a multiple of it too)
 * on both sides. *bytes is what the arena needs, *lower_bound the largest sum of what is alive at
 * one step. A total that cannot be addressed is a failure.
 */
dc_status dc_plan_memory_pack(dc_job *j, dc_arena *a, dc_temp *temp, uint32_t n, size_t guard,
                              bool no_reuse, size_t *bytes, size_t *lower_bound);

#endif
