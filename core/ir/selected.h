/*
 * Values that are compared with what has been selected among them, as x == max(x) of an argmax or of the gradient of a
 * maximum. Such a comparison finds nothing if the two sides are computed apart and rounded differently: a product may be
 * contracted with a sum in one kernel and not in another. So what computes it sees to it that both read one x.
 */
#ifndef DC_CORE_IR_SELECTED_H
#define DC_CORE_IR_SELECTED_H

#include "core/ir/graph.h"

typedef struct dc_selected {
    const dc_func *f;
    uint32_t *seen; /* by ref: the last search that saw it */
    uint32_t search;
} dc_selected;

/* Searches are made in memory of the arena. */
dc_selected dc_selected_in(const dc_func *f, dc_arena *a);
/* The value that comparison r compares with a selection among its own elements; 0: r is no such comparison. */
dc_ref dc_selected_by(dc_selected *s, dc_ref r);
/* What the last search went through, on the side of the selection. */
bool dc_selected_saw(const dc_selected *s, dc_ref r);

#endif
