/*
 * From a checked function to machine code: the stages of compilation, in order, in one function.
 */
#ifndef DC_JIT_COMPILE_PIPELINE_H
#define DC_JIT_COMPILE_PIPELINE_H

#include "jit/compile/stage_skip.h"
#include "jit/exec/exec.h"
#include "jit/exec/kernel_table.h"

/*
 * What a compilation knows of its context, frozen when it is asked for. It may run on another
 * thread: of the device it calls `compile` alone.
 */
typedef struct dc_env {
    dc_device *device;
    const dc_target *target;
    dc_opts opt;
    dc_skip skip;
    dc_kernels *kernels;
    struct dc_cache *cache;              /* on disk; NULL none */
    const struct dc_schedule_file *schedule; /* DEEPC_SCHEDULE; NULL none */
    const struct dc_tuned *tuned;            /* schedules found by timing; NULL none */
} dc_env;

typedef struct dc_counts { /* for dc_stats */
    uint32_t compiled, cached, shared, fallbacks;
} dc_counts;

/*
 * Fills in the compiled part of e from e->desc; touches nothing else that others may see. BUILD or
 * DEVICE when the device's compiler failed, STATE when the job was cancelled. e then holds nothing
 * compiled but kernels, for dc_exec_drop_kernels.
 */
dc_status dc_pipeline_compile(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n);

/* Channel `graph`: the function as it is compiled or interpreted. */
void dc_pipeline_log_graph(dc_job *j, const char *name, const dc_func *fn);

#endif
