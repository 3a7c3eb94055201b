/*
 * Times of kernels: DEEPC_DEBUG=time. Counters hang on the executable and are reported when asked
 * (dc_profile_report_all) or when the executable goes. Without the channel no clock is read.
 */
#ifndef DC_JIT_EXEC_PROFILE_H
#define DC_JIT_EXEC_PROFILE_H

#include "jit/exec/exec.h"

/* Makes the counters when the channel is on. */
void dc_profile_init(dc_exec *e);

/* Are times taken now? */
static inline bool dc_profile_on(const dc_exec *e)
{
    return e->rt->first->measure || dc_log_on(&e->rt->log, DC_CH_TIME);
}

/* Makes the counters of one that was compiled before somebody began to measure; without memory there are none. */
void dc_profile_late(dc_exec *e);
void dc_profile_drop_late(dc_exec *e);

/* Prints what was counted since the last report, if anything, and starts again at zero. */
void dc_profile_report(dc_exec *e);

#endif
