/*
 * Which launches of a plan become one (DC_COMMAND_BUNDLE): ordered vertices to ordered slots.
 *
 * What holds of the slots, for any order given that has every edge going forward:
 *   - a vertex stands in a later slot than its predecessors, so no two of a slot depend on each
 *     other;
 *   - a slot has several vertices only if all of them are launches;
 *   - what waits for an exchange of ranks shares a slot with the one in front of it alone, which waits too;
 *   - no vertex stands in front of a fence that it was ordered behind: of functions with messages to other ranks, which keep
 *     their order;
 *   - values that are alive at a slot, its own operands and results all at once, take little more
 *     than the order given needs at its worst.
 */
#ifndef DC_JIT_PLAN_PLAN_BUNDLE_H
#define DC_JIT_PLAN_PLAN_BUNDLE_H

#include "core/base/arena.h"

typedef struct dc_bundle_vertex {
    bool launch;      /* else a slot of its own */
    bool fence;       /* what comes behind it stays there */
    bool late;        /* reads what ranks exchange while kernels run */
    size_t bytes;     /* that it reads and writes */
    uint64_t cost_ns; /* a guess */
    uint32_t nafter;  /* vertices that come after it */
    const uint32_t *after;
    uint32_t nin, nout; /* temporaries */
    const uint32_t *in, *out;
} dc_bundle_vertex;

typedef struct dc_bundle_temp {
    size_t bytes;
    uint32_t reads; /* how many of all `in` it is; one more if it is needed at the end */
} dc_bundle_temp;

typedef struct dc_bundle_in {
    uint32_t n, ntemp;
    const dc_bundle_vertex *at; /* by vertex */
    const uint32_t *order;
    const dc_bundle_temp *temp;
    size_t cache; /* of a core: dc_target.l2 */
} dc_bundle_in;

typedef struct dc_slot {
    uint32_t n;
    const uint32_t *vertex;
} dc_slot;

/* In the arena, as *out says how many. */
const dc_slot *dc_plan_bundle(dc_arena *a, const dc_bundle_in *in, uint32_t *out);

#endif
