/*
 * Knobs of schedules: what a search asks of the rules, and what the rules offer to search (jit/schedule/knobs.def). Which
 * knobs a kernel has, and what their values are, is found by scheduling it: the rules that apply to it offer theirs.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_KNOBS_H
#define DC_JIT_SCHEDULE_SCHEDULE_KNOBS_H

#include "core/runtime/device.h"
#include "jit/nest/nest.h"

typedef enum dc_knob {
#define KNOB(id, ...) DC_KNOB_##id,
#include "jit/schedule/knobs.def"
    DC_KNOB__COUNT
} dc_knob;

enum { DC_KNOB_VALUES = 24 };

typedef struct dc_knobs { /* 0: as the rule decides */
    int32_t value[DC_KNOB__COUNT];
} dc_knobs;

/* Of one knob: the rule's value, and others, the most promising first. */
typedef struct dc_knob_offer {
    int32_t rule, value[DC_KNOB_VALUES];
    uint8_t n;
} dc_knob_offer;

typedef struct dc_knob_space {
    dc_knob_offer offer[DC_KNOB__COUNT]; /* none where the kernel has no such knob */
    bool complete;                       /* no move was refused */
} dc_knob_space;

const char *dc_knob_name(dc_knob knob);

/* dc_schedule (jit/schedule/schedule.h) with knobs, and what there was to choose from. */
dc_status dc_schedule_search(dc_job *j, dc_kernel *k, const dc_target *t, const dc_knobs *knobs,
                             dc_knob_space *space);

#endif
