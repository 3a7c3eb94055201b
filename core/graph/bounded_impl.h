/* What core/graph/bounded.c, bounded_move.c and bounded_reshape.c share. */
#ifndef DC_CORE_GRAPH_BOUNDED_IMPL_H
#define DC_CORE_GRAPH_BOUNDED_IMPL_H

#include "core/graph/bounded.h"

typedef struct lowering {
    dc_job *j;
    const dc_func *from;
    dc_func *to;
    dc_ref *map; /* in `to`, by ref of `from` */
    const int64_t *size;
    uint32_t nsize;
    const int64_t *rows; /* of dc_bounded_lower_into; NULL in bodies */
    dc_ref *value;       /* the parameter of each size */
} lowering;

/* EXTENT_TEXT: node r of `from`, where it was written, and why. */
dc_status dc_bound_refuse(const lowering *l, dc_ref r, const char *why);

/* The type of node r with bounds for sizes. */
dc_type dc_bound_type(const dc_func *f, dc_ref r);

/* An i32[]: the actual size, or the number that it is. */
dc_ref dc_bound_size(const lowering *l, int64_t dim);

/* A scalar everywhere in dims of a type; positions along an axis, i32. */
dc_ref dc_bound_spread(dc_func *f, dc_ref scalar, const dc_type *like);
dc_ref dc_bound_iota(dc_func *f, const dc_type *like, int axis);

/* The value, with the pattern `bits` behind the sizes dim[axis] of the axes in the mask. */
dc_ref dc_bound_mask(const lowering *l, dc_ref value, const int64_t *dim, uint32_t axes,
                     uint64_t bits);

/* What node `old` of `from` is, of which the part of its sizes is needed. */
dc_ref dc_bound_operand(const lowering *l, dc_ref old);

/* bounded_move.c: what moves elements along axes, and what integers index */
dc_ref dc_bound_flip(const lowering *l, dc_ref r);
dc_ref dc_bound_slice(const lowering *l, dc_ref r);
dc_status dc_bound_pad(const lowering *l, dc_ref r, dc_ref *out);
dc_ref dc_bound_gather(const lowering *l, dc_ref r);
dc_ref dc_bound_scatter(const lowering *l, dc_ref r);

dc_status dc_bound_reshape(const lowering *l, dc_ref r, dc_ref *out); /* bounded_reshape.c */

#endif
