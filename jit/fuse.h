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

/* A value that could be computed again wherever it is wanted, or stored (jit/fuse_cost.c). */
typedef enum dc_choice_way {
    DC_CHOICE_KERNELS,   /* wanted in several kernels */
    DC_CHOICE_PLACES,    /* at several positions of one */
    DC_CHOICE_BROADCAST, /* repeated along other axes */
    DC_CHOICE_ROW        /* in several parts of a row's computation; stored: kept beside the row */
} dc_choice_way;

typedef struct dc_choice {
    dc_ref ref;
    uint8_t way;     /* dc_choice_way */
    bool stored;     /* what is cheaper, unless: */
    const char *but; /* why it is not stored though that would be; NULL */
    uint32_t ops;    /* of one element, down to memory */
    size_t bytes;    /* of one element */
    int64_t times;   /* that an element is computed if it is not stored */
    int64_t elements;
} dc_choice;

/* Operations more if it is not stored; bytes written and read back if it is. */
static inline double dc_choice_again(const dc_choice *c)
{
    return (double)(c->times - 1) * (double)c->elements * c->ops;
}

static inline double dc_choice_moved(const dc_choice *c)
{
    const bool first = c->way == DC_CHOICE_KERNELS || c->way == DC_CHOICE_ROW; /* has it at hand */
    return (double)(c->times + !first) * (double)c->elements * (double)c->bytes;
}

typedef struct dc_groups {
    const dc_func *fn;
    uint32_t n;
    dc_group *at;
    uint32_t *group_of; /* by ref: the group that stores it, or DC_NO_GROUP */
    const dc_choice *choice;
    uint32_t nchoice;
} dc_groups;

#define DC_NO_GROUP UINT32_MAX

/* All arrays are in the arena. level 0: every node is a group of its own. */
dc_status dc_fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, dc_groups *out);

/* The same with at most so many buffers to a group (dc_target.buffers); 0: any number. */
dc_status dc_fuse_within(dc_job *j, dc_arena *a, const dc_func *fn, int level, uint32_t buffers,
                         dc_groups *out);

#endif
