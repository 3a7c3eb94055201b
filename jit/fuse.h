/*
 * Fusion: which nodes of a graph share a kernel.
 *
 * In:  a simplified, checked function.
 * Out: groups. Every live node that needs memory is an output of exactly one group; every other live
 *      element-wise or movement node is computed inside the groups that use it. Parameters and
 *      constants are read where needed and belong to no group.
 *
 * A group is one loop nest over the common shape of its outputs, with at most one reduction or
 * product (`reduce`) evaluated at each position. A result that is itself a parameter has no group.
 * Groups are not ordered; jit/plan.c orders them.
 */
#ifndef DC_JIT_FUSE_H
#define DC_JIT_FUSE_H

#include "core/graph.h"

typedef struct dc_group {
    uint32_t nout, nin;
    dc_ref *out;   /* stored, all of one shape */
    dc_ref *in;    /* read: parameters and outputs of other groups */
    uint32_t nafter;
    dc_ref *after; /* outputs of other groups that a barrier wants to have been computed */
    dc_ref reduce; /* the RED or DOT inside, or 0; may also be one of `out` */
} dc_group;

typedef struct dc_groups {
    const dc_func *fn;
    uint32_t n;
    dc_group *at;
    uint32_t *group_of; /* by ref: the group that stores it, or DC_NO_GROUP */
} dc_groups;

#define DC_NO_GROUP UINT32_MAX

/* All arrays are in the arena. level 0: every node is a group of its own. */
dc_status dc_fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, dc_groups *out);

/* The same with at most so many buffers to a group (dc_target.buffers); 0: any number. */
dc_status dc_fuse_within(dc_job *j, dc_arena *a, const dc_func *fn, int level, uint32_t buffers,
                         dc_groups *out);

#endif
