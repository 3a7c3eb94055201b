/* Calls as a monitor of the context sees them (core/runtime/monitor.h); nothing where there is none. */
#ifndef DC_JIT_EXEC_MONITORED_H
#define DC_JIT_EXEC_MONITORED_H

#include "core/runtime/monitor.h"
#include "jit/exec/exec.h"

static inline bool dc_is_monitored(const dc_exec *e)
{
    return e->rt->first->monitor != NULL;
}

/* What the thread is at is now a call of e, since `start`. For the end: what it was at before. */
uint64_t dc_monitored_begin(dc_exec *e, uint64_t start);
/* The call, or a slice of one, has ended; `calls`: 1 with the last slice, else 0. A safe point. */
void dc_monitored_end(dc_exec *e, uint64_t before, uint64_t start, int calls);

/* The same of a wait for its compilation; `j` drops it where it unwinds. */
uint64_t dc_monitored_begin_wait(dc_exec *e, dc_job *j);
void dc_monitored_end_wait(dc_exec *e, dc_job *j, uint64_t before);

/* Times of kernels of the context, into the copy that is being made. */
void dc_monitored_kernels(dc_rt *rt);

#endif
