/*
 * Schedules by rule: looks at a naive kernel and the target, applies moves (jit/moves/move.h). Every
 * prefix of the list of moves leaves a correct kernel; level 0 applies none.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_H
#define DC_JIT_SCHEDULE_SCHEDULE_H

#include "core/runtime/device.h"
#include "jit/nest/nest.h"

dc_status dc_schedule(dc_job *j, dc_kernel *k, const dc_target *t, int level);

#endif
