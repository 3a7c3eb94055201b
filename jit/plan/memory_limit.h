/*
 * The limit of memory (DEEPC_MEMORY), for one function: what it needs by itself, all of it in memory at
 * once, is known when it is compiled. A function that needs more than the limit is refused then.
 */
#ifndef DC_JIT_PLAN_MEMORY_LIMIT_H
#define DC_JIT_PLAN_MEMORY_LIMIT_H

#include "jit/plan/plan.h"

/*
 * MEMORY where the plan's arena, the cells, the arguments and the results are more than opt->memory; the
 * sentence has the largest of them with type, operation and line. Nothing where there is no limit.
 */
dc_status dc_memory_limit_plan(dc_job *j, const dc_exec_desc *d, const dc_func *fn,
                               const dc_plan *plan);

/*
 * The same as a text in the arena, for a device whose own memory may be too small: "the function needs 3.1 GB of memory: ...".
 */
const char *dc_memory_limit_needs(dc_job *j, dc_arena *a, const dc_exec_desc *d, const dc_func *fn,
                                  const dc_plan *plan);

/* Is there room for so much beside the cells, the arguments and the results? */
bool dc_memory_limit_allows(dc_job *j, const dc_exec_desc *d, const dc_func *fn, size_t bytes);

/* The same of a function that the interpreter runs, where each value has memory from its node to its last use. */
dc_status dc_memory_limit_eval(dc_job *j, const dc_exec_desc *d);

#endif
