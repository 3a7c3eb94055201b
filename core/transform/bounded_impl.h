/* What core/transform/bounded.c, bounded_move.c and bounded_reshape.c share. */
#ifndef DC_CORE_TRANSFORM_BOUNDED_IMPL_H
#define DC_CORE_TRANSFORM_BOUNDED_IMPL_H

#include "core/transform/bounded.h"

typedef struct lowering {
    dc_job *j;
    const dc_func *from;
    dc_func *to;
    dc_ref *map; /* in `to`, by ref of `from` */
    bool in_body;
    const int64_t *size;
    uint32_t nsize;
    const dc_bounded_place *place; /* of dc_bounded_lower_into; NULL in bodies */
    dc_ref *value;                 /* the parameter of each size */
    int64_t *
        grown; /* by ref of `from`, bounded_grow.c: rows of the memory that its own are added to; or 0 */
    dc_ref *room; /* what lies in that memory, or 0; NULL as grown is: in bodies */
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

/* The value, of which elements before the sizes are needed. */
dc_ref dc_bound_with_sizes(const lowering *l, dc_ref value, const int64_t *dim, int rank);

/* What node `old` of `from` is, of which the part of its sizes is needed. */
dc_ref dc_bound_operand(const lowering *l, dc_ref old);

/* bounded_move.c: what moves elements along axes, and what integers index */
dc_ref dc_bound_flip(const lowering *l, dc_ref r);
dc_ref dc_bound_slice(const lowering *l, dc_ref r);
dc_status dc_bound_pad(const lowering *l, dc_ref r, dc_ref *out);
dc_ref dc_bound_gather(const lowering *l, dc_ref r);
dc_ref dc_bound_scatter(const lowering *l, dc_ref r);

dc_status dc_bound_reshape(const lowering *l, dc_ref r, dc_ref *out); /* bounded_reshape.c */

/* bounded_grow.c: rows behind those of a state that grows */
void dc_bound_find_growth(lowering *l);
bool dc_bound_append(const lowering *l, dc_ref r, dc_ref *out);
/* The result as its place wants it. */
dc_ref dc_bound_place(const lowering *l, uint32_t result);
/* Is it another value at some places, changed where it is: nothing is computed behind a size? A result in such memory? */
bool dc_bound_is_changed(const lowering *l, dc_ref r);
bool dc_bound_is_in_room(const lowering *l, uint32_t result);
/* Is it what a state is set to, given back, too? */
bool dc_bound_is_returned(const lowering *l, uint32_t result);
/* A parameter; one that a loop may change where it is: what the body of another one changes, or a state. */
bool dc_bound_is_param(const lowering *l, dc_ref r);
bool dc_bound_is_changed_param(const lowering *l, dc_ref r);

#endif
