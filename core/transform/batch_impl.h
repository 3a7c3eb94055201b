/*
 * What the files of batching share. Private to core/transform/batch*.c.
 *
 *   batch.c          the walk; element-wise operations, movement, reductions, gradients given by hand
 *   batch_marks.c    which nodes have the axis
 *   batch_rules.c    contractions, gather and scatter
 *   batch_control.c  loops and branches
 */
#ifndef DC_CORE_TRANSFORM_BATCH_IMPL_H
#define DC_CORE_TRANSFORM_BATCH_IMPL_H

#include "core/ir/control.h"
#include "core/transform/batch.h"

typedef struct dc_batch_marks {
    bool *node;  /* by node: has it the axis? */
    bool **many; /* by loop or branch: which results have it */
} dc_batch_marks;

typedef struct dc_batch_id {
    int64_t from, to;
} dc_batch_id;

typedef struct dc_batch {
    dc_job *j;
    dc_func *f;
    const dc_func *from;
    int64_t size;
    dc_batch_marks is;
    dc_ref *map;   /* by node of `from`: what it is in f */
    dc_ref **many; /* by loop or branch that was made anew: its results, the axis in front */
    DC_VEC(dc_batch_id) id; /* of gradients given by hand */
} dc_batch;

/* In the job's scratch memory. */
dc_batch_marks dc_batch_mark(dc_job *j, const dc_func *f, const bool *batched);

/*
 * Which parameters of the body of loop n, and which results of the loop have the axis, if these operands do. True: rows
 * end at different iterations.
 */
bool dc_batch_mark_loop(dc_job *j, const dc_func *f, const dc_node *n, const bool *operand,
                        bool *param, bool *result);

/* The axis in front of t. TOO_MANY_AXES, TOO_LARGE name op. */
dc_status dc_batch_type(dc_job *j, dc_op op, const dc_type *t, int64_t size, dc_type *out);

/* Operand i of n with the axis, whether it depends on a batched value or not. */
dc_status dc_batch_operand(dc_batch *b, const dc_node *n, int i, dc_ref *out);
static inline bool dc_batch_is(const dc_batch *b, const dc_node *n, int i)
{
    return b->is.node[n->in[i]];
}

/* r with its axis `from` at place `to`. */
dc_ref dc_batch_move(dc_func *f, dc_ref r, int from, int to);

/* Node r of b->from, one operand of which at least has the axis. */
dc_status dc_batch_dot(dc_batch *b, dc_ref r, dc_ref *out);
dc_status dc_batch_conv(dc_batch *b, dc_ref r, dc_ref *out);
dc_status dc_batch_gather(dc_batch *b, dc_ref r, dc_ref *out);
dc_status dc_batch_scatter(dc_batch *b, dc_ref r, dc_ref *out);
dc_status dc_batch_control(dc_batch *b, dc_ref r); /* into b->many[r] */

#endif
