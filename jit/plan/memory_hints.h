/*
 * Which outputs of a kernel are stored past the caches: those that would push everything else out
 * of them and be gone themselves before anybody reads them. And which inputs of a kernel that goes by
 * rows are fetched a row ahead: rows are read and stored at some times and computed with at others,
 * and what the machine fetches by itself ends with the row. So are rows that integers choose.
 */
#ifndef DC_JIT_PLAN_MEMORY_HINTS_H
#define DC_JIT_PLAN_MEMORY_HINTS_H

#include "core/runtime/device.h"
#include "jit/nest/nest.h"
#include "jit/plan/plan.h"

/* Marks buffers of the kernel that group g was lowered to. Before equal kernels are joined. */
void dc_memory_hints_mark(dc_kernel *k, const dc_group *g, const dc_plan *plan, const dc_target *t);

#endif
