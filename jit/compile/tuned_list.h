/* Which schedules found by timing (jit/cache/tuned_schedules.h) a compilation goes by. */
#ifndef DC_JIT_COMPILE_TUNED_LIST_H
#define DC_JIT_COMPILE_TUNED_LIST_H

#include "jit/cache/tuned_schedules.h"
#include "jit/compile/pipeline.h"

/* The list of now; the first call takes up what is on disk for this target and build. */
const dc_tuned *dc_tuned_list(dc_rt *rt, dc_job *j, const dc_env *env);

/*
 * The schedule that is known for a kernel as lowered, whose text is `nest`: applied, *is true. One that does not apply
 * leaves another kernel in *k, as it was lowered, and *is false.
 */
dc_status dc_tuned_apply(dc_job *j, const dc_tuned *list, const char *nest, dc_kernel **k,
                         bool *is);

#endif
