/*
 * Times of kernels: DEEPC_DEBUG=time. Counters hang on the executable and are reported when asked
 * (dc_profile_report_all) or when the executable goes. Without the channel no clock is read.
 */
#ifndef DC_JIT_EXEC_PROFILE_H
#define DC_JIT_EXEC_PROFILE_H

#include "core/base/spans.h"
#include "jit/exec/exec.h"

/* Are times taken now: DEEPC_DEBUG=time, dc_exec_measure, dc.trace? */
static inline bool dc_profile_on(const dc_exec *e)
{
    return e->rt->first->measure || dc_log_on(&e->rt->log, DC_CH_TIME) ||
           dc_span_wanted(&e->rt->log);
}

/* Makes the counters where they are. */
void dc_profile_init(dc_exec *e);
/* Makes the counters of one that was compiled before somebody began to measure; without memory there are none. */
void dc_profile_late(dc_exec *e);
void dc_profile_drop_late(dc_exec *e);

/*
 * For a run of the commands from `first` on: NULL where no times are taken, or *out: its counters and, while dc.trace records,
 * spans of each command with its label, lines, layers and counts.
 */
const dc_run_watch *dc_profile_watch(dc_exec *e, uint32_t first, dc_run_watch *out);
/* A call ended that took so long. */
static inline void dc_profile_call(dc_exec *e, uint64_t ns)
{
    e->profile.calls++;
    e->profile.call_ns += ns;
}

/* Prints what was counted since the last report, if anything, and starts again at zero. */
void dc_profile_report(dc_exec *e);

#endif
