/*
 * From a checked function to machine code: the stages of compilation, in order, in one function.
 */
#ifndef DC_JIT_PIPELINE_H
#define DC_JIT_PIPELINE_H

#include "jit/exec.h"

/*
 * Fills in the compiled part of e from e->desc. BUILD or DEVICE when the device's compiler failed;
 * e then holds nothing that must not be run by the interpreter instead.
 */
dc_status dc_pipeline_compile(dc_rt *rt, dc_job *j, dc_exec *e);

/* Channel `graph`: the function as it is compiled or interpreted. */
void dc_pipeline_log_graph(dc_job *j, const char *name, const dc_func *fn);

#endif
