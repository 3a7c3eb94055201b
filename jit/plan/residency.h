/*
 * Which parameters of a kernel do not stay in the caches. A kernel that touches less than the last-level cache holds
 * leaves its results there; one that touches more leaves the ends of its large ones, and what reads them
 * begins at the other end. The plan states that as dc_buffer.uncached; schedule rules decide what to do about it
 * (jit/schedule/schedule_memory.c).
 */
#ifndef DC_JIT_PLAN_RESIDENCY_H
#define DC_JIT_PLAN_RESIDENCY_H

#include "core/runtime/device.h"
#include "jit/nest/nest.h"
#include "jit/plan/plan.h"

/* Marks buffers of the kernel that group g was lowered to. Before equal kernels are joined. */
void dc_residency_mark(dc_kernel *k, const dc_group *g, const dc_plan *plan, const dc_target *t);

#endif
