/* What the files of schedules share: jit/schedule.c for workers, jit/schedule_simt.c for groups. */
#ifndef DC_JIT_SCHEDULE_IMPL_H
#define DC_JIT_SCHEDULE_IMPL_H

#include "jit/schedule.h"

enum { DC_SHAPE_AXES = 2 * DC_MAX_RANK };

typedef struct dc_shape { /* of a naive nest */
    uint32_t out[DC_SHAPE_AXES], red[DC_SHAPE_AXES]; /* axes, outermost first */
    int nout, nred;
    const dc_stmt *add; /* the accumulation, NULL in a map */
} dc_shape;

dc_shape dc_shape_of(const dc_kernel *k);

/* Applies the moves of the rules for groups of threads; why: the reason of the move that did not. */
bool dc_schedule_simt(dc_kernel *k, const dc_target *t, const dc_shape *shape, const char **why);

#endif
