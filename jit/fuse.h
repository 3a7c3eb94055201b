/*
 * Fusion: which nodes of a graph share a kernel.
 *
 * In:  a simplified, checked function.
 * Out: groups. Every live node that needs memory is an output of exactly one group; every other live
 *      element-wise or movement node is computed inside the groups that use it. Parameters and
 *      constants are read where needed and belong to no group.
 *
 * A group is one loop nest. Its outputs have one element for each of its rows; reductions and
 * products are evaluated at each row, one after the other. In a group by rows the reduced axes are
 * the last ones of `shape`, so that a row of it lies in one piece: outputs may also have one element
 * for each of its points (rows times columns), a later reduction may read what an earlier one gave,
 * and values that several of them need are kept for the row (`kept`).
 *
 * A result that is itself a parameter has no group. Groups are not ordered; jit/plan.c orders them.
 */
#ifndef DC_JIT_FUSE_H
#define DC_JIT_FUSE_H

#include "core/graph.h"

typedef struct dc_group {
    uint32_t nout, nin, nafter, nreduce, nkept;
    dc_ref *out;   /* stored; of one shape, unless by rows */
    dc_ref *in;    /* read: parameters and outputs of other groups */
    dc_ref *after; /* outputs of other groups that a barrier wants to have been computed */
    dc_ref
        *reduce; /* ascending; each may also be one of `out`. Not by rows: all over the same axes */
    bool by_rows;
    dc_ref
        shape; /* by rows: a node whose dims before `split` are the rows, the others the columns */
    int split;
    dc_ref
        *kept; /* by rows, ascending: computed once for a row or its points, used several times */
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
