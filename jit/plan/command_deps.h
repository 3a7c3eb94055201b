/*
 * The dependencies of the commands of a list: dc_command.dep (core/runtime/device.h), found from the memory that
 * they read and write.
 *
 * Of two commands that touch the same memory, at least one of them writing, the later depends on the
 * earlier. Besides, a write to a cell depends on every check before it, and a check on the check
 * before it, so that the same one reports whatever the order. What follows from other dependencies
 * is left out: deps are the transitive reduction, so a device that respects them in any order
 * computes what the list computes. In lists of more than some thousand commands, a redundant dep on one long before
 * may stay.
 */
#ifndef DC_JIT_PLAN_COMMAND_DEPS_H
#define DC_JIT_PLAN_COMMAND_DEPS_H

#include "core/base/arena.h"

typedef struct dc_access {
    uint32_t mem; /* memories with different numbers are apart */
    bool write;
    size_t begin, end; /* bytes; SIZE_MAX: to its end */
    uint32_t join; /* not 0: it writes some of these, apart from what others of this number write */
} dc_access;

typedef struct dc_visit { /* what a command does */
    uint32_t naccess;
    const dc_access *access;
    bool check;            /* it may stop the run */
    bool sets;             /* it writes a cell */
    uint32_t nbody, nelse; /* LOOP, BRANCH, BUNDLE: of the commands that follow, those inside */
} dc_visit;

typedef struct dc_deps {
    uint32_t n;
    const uint32_t
        *at; /* ascending; counted from the begin of the list that the command stands in */
} dc_deps;

/* out: one for each of the n commands. What is inside a command counts as done by it. */
void dc_command_deps_find(dc_arena *a, const dc_visit *v, uint32_t n, dc_deps *out);

#endif
