/*
 * How executables are made: the task that compiles one, and the settings of its context, frozen when it is asked for.
 */
#ifndef DC_JIT_COMPILE_COMPILE_JOB_H
#define DC_JIT_COMPILE_COMPILE_JOB_H

#include "jit/compile/compile.h"
#include "jit/compile/pipeline.h"
#include "jit/exec/exec_task.h"

typedef struct dc_compile_job {
    dc_exec_task of; /* first: dc_exec.task points to it */
    dc_env env;
    dc_mark described; /* of the executable's memory, before anything compiled is in it */
    dc_counts counts;
} dc_compile_job;

/* Opens what compilations share, once (dc_jit_open without lazy expressions). */
dc_status dc_compile_open(dc_rt *rt, dc_job *j);

/* The settings of a compilation that is asked for now; after dc_compile_open. */
dc_status dc_compile_env(dc_rt *rt, dc_job *j, dc_env *env);

/* Fills in the parts of e that are known before it is compiled (jit/compile/exec_describe.c). */
dc_status dc_exec_describe(dc_exec *e, dc_job *j, const dc_exec_desc *d);

/* Where a kernel's text is made for; NULL where nothing was compiled. */
const dc_target *dc_exec_target(const dc_exec *e, uint32_t *skip_passes);

#endif
