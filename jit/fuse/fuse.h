/*
 * Fusion: which nodes of a graph share a kernel.
 *
 * In:  a simplified, checked function.
 * Out: groups. Every live node that needs memory is an output of exactly one group; every other live
 *      element-wise or movement node is computed inside the groups that use it. Parameters and
 *      constants are read where needed and belong to no group.
 *
 * A group is one loop nest. Its outputs have one element for each of its points; reductions and
 * products are evaluated at each point, one after the other. In a row-wise group the reduced axes are
 * the last ones of `shape`, so that a row of it lies in one piece: outputs have an element for each row or
 * for each point (rows times columns), a later reduction may read what an earlier one gave, and
 * values that several of them need are buffered for the row.
 *
 * A row-wise group may also have partial sums over its rows: the gradients of a norm's weight and bias
 * beside that of its input. Rows that follow one another form blocks of equally many. One thread goes through
 * a block whole and adds each row up, while it has it, to a sum for each column. Such a sum is an output
 * with an element for each block and column; what adds the blocks up is another group.
 *
 * A loop or a branch is a group by itself: it reads its operands, all of which are in memory, and stores its picks.
 *
 * A result that is itself a parameter has no group. Groups are not ordered; jit/plan/plan.c orders them.
 */
#ifndef DC_JIT_FUSE_FUSE_H
#define DC_JIT_FUSE_FUSE_H

#include "core/ir/graph.h"
#include "core/runtime/device.h"
#include "jit/base/kinds.h"
#include "jit/fuse/needs.h"
#include "jit/rewrite/attention.h"

typedef struct dc_group {
    uint32_t nout, nin, nafter, nreduce, nbuffered, npartial;
    dc_ref *out;    /* stored; of one shape, unless row-wise */
    dc_ref *in;     /* read: parameters and outputs of other groups */
    dc_ref *after;  /* outputs of other groups that a barrier wants to have been computed */
    dc_ref *reduce; /* ascending; each may be one of `out`. Not row-wise: all over the same axes */
    bool is_join;   /* no kernel: its output is made of what other groups store there */
    dc_ref
        control; /* a loop or a branch, whose picks are its outputs: no kernel, but its bodies'. What the host computes, its output. Else 0 */
    const dc_attention_kernel *attention; /* NULL: it is none */
    bool row_wise;
    dc_kernel_kind kind; /* of the kernel; no meaning where there is none */
    dc_ref
        shape; /* row-wise: a node whose dims before `split` are the rows, the others the columns */
    int split;
    dc_ref *
        buffered; /* row-wise, ascending: computed once for a row or its points, read several times */
    dc_ref *partial; /* row-wise: those of `out` that are sums over the rows of a block */
    int64_t blocks;  /* of equally many rows; 0 where there are no such sums */
} dc_group;

/* A value that can be recomputed at each use, or stored (jit/fuse/fuse_cost.c). */
typedef enum dc_choice_way {
    DC_CHOICE_NONE,      /* there is no choice: stored, because of `but` */
    DC_CHOICE_KERNELS,   /* read in several kernels */
    DC_CHOICE_MAPS,      /* under several access maps in one */
    DC_CHOICE_BROADCAST, /* repeated along other axes */
    DC_CHOICE_ROW        /* in several reductions of a row; stored: in a buffer for it */
} dc_choice_way;

typedef struct dc_choice {
    dc_ref ref;
    uint8_t way; /* dc_choice_way */
    bool stored; /* what is cheaper, unless: */
    const char
        *but;      /* why it is not stored though that would be, or why there is no choice; NULL */
    uint32_t ops;  /* of one element, down to memory */
    size_t bytes;  /* of one element */
    int64_t times; /* that an element is computed if it is not stored */
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
    dc_needs needs;                 /* which elements of values are */
    int vector_bytes;               /* of the target; 0: unknown */
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

/* The same for a device: at most so many buffers to a group; row blocks on CPUs alone. */
dc_status dc_fuse_for(dc_job *j, dc_arena *a, const dc_func *fn, int level, const dc_target *t,
                      dc_groups *out);

/* Is output `out` of the group a sum over the rows of its blocks? */
static inline bool dc_group_is_partial(const dc_group *g, uint32_t out)
{
    for (uint32_t i = 0; i < g->npartial; i++)
        if (g->partial[i] == g->out[out])
            return true;
    return false;
}

#endif
