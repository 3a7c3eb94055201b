/*
 * What ends a run in the middle of a launch. A device asks between pieces of long launches, kernels with long loops ask
 * in them (jit/flat/flat_polls.h).
 *
 * Up to command `whole` nothing that outlives the run is written: there a run ends at the first request. From
 * there on it goes on to its end, unless the request insists: then it has GRACE_NS left, and what it was
 * writing is half written (`torn`).
 */
#ifndef DC_CORE_RUNTIME_HALT_H
#define DC_CORE_RUNTIME_HALT_H

#include "core/base/look.h"

typedef struct dc_halt {
    const atomic_bool *asked, *insist; /* in */
    uint32_t whole;                    /* in: a command of the recording */
    _Atomic uint64_t until;            /* 0, or when the time is over that insisting leaves */
    atomic_bool cut, torn;             /* out: a launch was ended; one of those that write */
} dc_halt;

/* Is the launch that ends with this command to end now? Called by several threads at once. */
bool dc_halt_now(dc_halt *h, uint32_t command);

/* When the time is over, from the first question on. */
uint64_t dc_halt_until(dc_halt *h);

/* The same question for work inside of a command; of a halt of NULL never. *at stays while it is asked. */
typedef struct dc_halt_at {
    dc_halt *halt;
    uint32_t command;
} dc_halt_at;

dc_look dc_halt_look(dc_halt_at *at);

#endif
