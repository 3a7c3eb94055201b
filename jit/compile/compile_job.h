/*
 * How executables come to be: what the compilations of a context share, and the one of an
 * executable, from the moment it is asked for until the executable goes.
 */
#ifndef DC_JIT_COMPILE_COMPILE_JOB_H
#define DC_JIT_COMPILE_COMPILE_JOB_H

#include "core/runtime/work.h"
#include "jit/compile/pipeline.h"

struct dc_jit {
    dc_kernels *kernels;
    struct dc_cache *cache;        /* on disk; NULL none */
    struct dc_schedfile *schedule; /* DEEPC_SCHEDULE; NULL none */
};

typedef struct dc_build {
    dc_task task;
    dc_exec *exec;
    dc_env env;
    dc_mark described; /* of the executable's memory, before anything compiled is in it */
    dc_counts counts;
    bool pending;  /* not settled */
    bool queued;   /* a thread may run it */
    bool told;     /* somebody has received its failure */
    bool profiled; /* counters of DEEPC_DEBUG=time are made */
    bool dropped;  /* nobody wants the executable any more */
} dc_build;

/* The executable is going. false: its compilation is running, and frees it at its end. */
bool dc_build_end(dc_rt *rt, dc_exec *e);

/* How lazy expressions are compiled (jit/compile/lazy_exec.c); for dc_rt.lazy_exec. */
const struct dc_lazy_exec *dc_jit_lazy(void);

#endif
