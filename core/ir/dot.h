/*
 * Contraction of two operands (dot): the attributes of a node as a structure.
 *
 *   result[batch..., free of the left..., free of the right...] =
 *       sum over the contracting axes of  left[...] * right[...]
 *
 * The i-th batch axis of the left operand goes with the i-th of the right one, contracting axes too. Free
 * axes are those that remain; they stand in the result in ascending order. Terms are added in row-major
 * order of the contracting axes as they are listed.
 */
#ifndef DC_CORE_IR_DOT_H
#define DC_CORE_IR_DOT_H

#include "core/ir/graph.h"

enum { DC_DOT_ATTRS = 2 + 4 * DC_MAX_RANK };

typedef struct dc_dot { /* by side: 0 left, 1 right */
    int nbatch, ncontract, nfree[2];
    int64_t batch[2][DC_MAX_RANK], contract[2][DC_MAX_RANK], free[2][DC_MAX_RANK];
} dc_dot;

/* How many attributes a dot has whose counts these are; -1: there are no counts, or they are out of bounds. */
int dc_dot_nattr(const int64_t *attr, int nattr);
/*
 * Attributes of operands of these ranks, as many as dc_dot_nattr says. Axes may be out of range: the type
 * rule checks them (core/ir/infer_shape.c).
 */
dc_dot dc_dot_read(const int64_t *attr, int left_rank, int right_rank);
int dc_dot_write(const dc_dot *d, int64_t attr[DC_DOT_ATTRS]);
dc_dot dc_dot_of(const dc_func *f, const dc_node *n); /* of a dot node */

/* Of nodes of f, with the batch and contracting axes of d. */
dc_ref dc_dot_make(dc_func *f, dc_ref left, dc_ref right, const dc_dot *d);

#endif
