/*
 * Times of kernels: DEEPC_DEBUG=time. Counters hang on the executable and are reported when asked
 * (dc_profile_report_all) or when the executable goes. Without the channel no clock is read.
 */
#ifndef DC_JIT_EXEC_PROFILE_H
#define DC_JIT_EXEC_PROFILE_H

#include "jit/exec/exec.h"

/* Makes the counters when the channel is on. */
void dc_profile_init(dc_exec *e);

/* Prints what was counted since the last report, if anything, and starts again at zero. */
void dc_profile_report(dc_exec *e);

#endif
