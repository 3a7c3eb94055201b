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

/* One of the largest values. Names of parameters are the description's: a packed executable has none. */
typedef struct dc_memory_value {
    size_t bytes;
    const char *type, *op; /* op: that computes it */
    const char *where;     /* line of the script; NULL unknown */
    uint32_t param;        /* one more than the number of a parameter; 0: it is computed */
} dc_memory_value;

/* What a function needs, for a device whose own memory may be too small. */
typedef struct dc_memory_needs {
    size_t temps, cells, arguments, results;
    dc_memory_value *value; /* nvalue of them, the largest first */
    uint32_t nvalue;
} dc_memory_needs;

dc_memory_needs dc_memory_needs_of(dc_job *j, dc_arena *a, const dc_exec_desc *d, const dc_func *fn,
                                   const dc_plan *plan);

/* "the function needs 3.1 GB of memory: ...", with names from a description. */
enum { DC_MEMORY_TEXT = 430 }; /* an error record has room for it and a name */
void dc_memory_needs_print(const dc_memory_needs *n, const dc_exec_desc *d, const dc_func *fn,
                           char text[DC_MEMORY_TEXT]);

/* Is there room for so much beside the cells, the arguments and the results? */
bool dc_memory_limit_allows(dc_job *j, const dc_exec_desc *d, const dc_func *fn, size_t bytes);

/* The same of a function that the interpreter runs, where each value has memory from its node to its last use. */
dc_status dc_memory_limit_eval(dc_job *j, const dc_exec_desc *d);

#endif
