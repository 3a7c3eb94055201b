/*
 * A box of a tensor: some elements along each axis. Both are dense, in row-major order, so elements of the box stand in the
 * same order in the whole: those between two of the whole follow each other in the box.
 */
#ifndef DC_FORMATS_BOX_H
#define DC_FORMATS_BOX_H

#include "core/base/type.h"

typedef struct dc_box {
    int rank;
    int64_t whole[DC_MAX_RANK], start[DC_MAX_RANK], dim[DC_MAX_RANK]; /* it lies inside */
} dc_box;

size_t dc_box_count(const dc_box *b);
/* How many of its elements stand before element x of the whole, or are there in all. */
size_t dc_box_below(const dc_box *b, size_t x);
/* Which element of the whole its element i is. */
size_t dc_box_place(const dc_box *b, size_t i);
/* So many follow each other in the whole, from each multiple of it on; 1 at least. */
size_t dc_box_run(const dc_box *b);

/* Elements from `at` to `to` of the box, run by run. */
typedef struct dc_box_walk {
    const dc_box *box;
    size_t at, to, run;
} dc_box_walk;

dc_box_walk dc_box_begin(const dc_box *b, size_t from, size_t to);
/* *n elements, from *i of the box and *place of the whole on; false: there are no more. */
bool dc_box_next(dc_box_walk *w, size_t *i, size_t *place, size_t *n);

#endif
