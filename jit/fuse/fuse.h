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
 * A group by rows may also have sums over its rows: the gradients of a norm's weight and bias beside
 * that of its input. They are sums of bands, which are so many rows in a row: one worker goes through
 * a band whole and adds each row up, while it has it, to a sum for each column. Such a sum is an output
 * with an element for each band and column; what adds the bands up is another group.
 *
 * A result that is itself a parameter has no group. Groups are not ordered; jit/plan/plan.c orders them.
 */
#ifndef DC_JIT_FUSE_FUSE_H
#define DC_JIT_FUSE_FUSE_H

#include "core/graph/graph.h"
#include "core/runtime/device.h"

typedef struct dc_group {
    uint32_t nout, nin, nafter, nreduce, nkept, nsum;
    dc_ref *out;   /* stored; of one shape, unless by rows */
    dc_ref *in;    /* read: parameters and outputs of other groups */
    dc_ref *after; /* outputs of other groups that a barrier wants to have been computed */
    dc_ref
        *reduce; /* ascending; each may also be one of `out`. Not by rows: all over the same axes */
    bool is_join; /* no kernel: its output is made of what other groups store there */
    bool by_rows;
    dc_ref
        shape; /* by rows: a node whose dims before `split` are the rows, the others the columns */
    int split;
    dc_ref
        *kept;   /* by rows, ascending: computed once for a row or its points, used several times */
    dc_ref *sum; /* by rows: those of `out` that are sums over the rows of a band */
    int64_t bands; /* of equally many rows; 0 where there are no such sums */
} dc_group;

/* A value that could be computed again wherever it is wanted, or stored (jit/fuse/fuse_cost.c). */
typedef enum dc_choice_way {
    DC_CHOICE_KERNELS,   /* wanted in several kernels */
    DC_CHOICE_MAPS,      /* under several access maps in one */
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
    dc_ref
        *join_of; /* by ref: of a piece, or of a join with some of the pieces, the whole; else 0 */
    const dc_choice *choice;
    uint32_t nchoice;
    struct dc_lower_scratch *lower; /* of dc_lower_prepare; NULL: none */
} dc_groups;

#define DC_NO_GROUP UINT32_MAX

/* Where a piece lies in its join: element 0, and how far the last one is from it, in elements. */
typedef struct dc_window {
    int64_t first, span;
    int rank;
    const int64_t *dim;          /* of the block */
    int64_t stride[DC_MAX_RANK]; /* in memory, from one of its elements to the next along an axis */
} dc_window;

dc_window dc_group_window(const dc_groups *g, dc_ref piece);

/* All arrays are in the arena. level 0: every node is a group of its own. */
dc_status dc_fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, dc_groups *out);

/* The same for a device: at most so many buffers to a group; bands for workers only. */
dc_status dc_fuse_for(dc_job *j, dc_arena *a, const dc_func *fn, int level, const dc_target *t,
                      dc_groups *out);

/* Is output `out` of the group a sum over the rows of its bands? */
static inline bool dc_group_is_sum(const dc_group *g, uint32_t out)
{
    for (uint32_t i = 0; i < g->nsum; i++)
        if (g->sum[i] == g->out[out])
            return true;
    return false;
}

#endif
