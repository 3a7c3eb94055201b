/*
 * The compilation of an executable as its users see it: a task of the context (core/runtime/work.h) that fills the
 * executable in. Until the task is settled it owns all of the executable but its description. The body of the task
 * is in jit/compile/.
 */
#ifndef DC_JIT_EXEC_EXEC_TASK_H
#define DC_JIT_EXEC_EXEC_TASK_H

#include "core/runtime/work.h"
#include "jit/exec/exec.h"
#include "jit/exec/kernel_table.h"

/* What the compilations of a context share. */
struct dc_jit {
    dc_kernels *kernels;
    struct dc_cache *cache;            /* on disk; NULL none */
    struct dc_schedule_file *schedule; /* DEEPC_SCHEDULE; NULL none */
    struct dc_tuned_store *tuned; /* schedules found by timing; NULL before the first compilation */
};

typedef struct dc_exec_task {
    dc_task task;
    dc_exec *exec;
    dc_kernels *kernels;
    bool pending;         /* not settled */
    bool queued;          /* a thread may run it */
    bool told;            /* its failure has been returned to a caller */
    bool profiled;        /* counters of DEEPC_DEBUG=time are made */
    bool dropped;         /* the executable has been released */
    atomic_bool compiles; /* it is in no cache: the compiler is at work, or was */
} dc_exec_task;

/* Does a channel or a dump want every function compiled, called or not? */
bool dc_exec_task_wants_all(const dc_rt *rt);

/* The executable is being freed. false: its compilation is running, and frees it at its end. */
bool dc_exec_task_end(dc_exec *e);

#endif
