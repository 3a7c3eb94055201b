/*
 * The sum of the parts of a cotangent. Gradients of slices are the parts of what was sliced, padded. Many
 * of them are added up in layers: those that do not overlap first, then layer by layer, so that a
 * layer is one value each of whose elements comes from one slice (jit/rewrite/disjoint_sum.h stores it that way). With few
 * slices it is the sum in the order in which the parts were given.
 */
#ifndef DC_CORE_GRAPH_GRADSUM_H
#define DC_CORE_GRAPH_GRADSUM_H

#include "core/graph/graph.h"

enum { DC_GRADSUM_FEW = 8 }; /* padded parts that need no layers */

/* Parts of one cotangent, the last one first. */
typedef struct dc_gradpart {
    dc_ref ref;
    const struct dc_gradpart *before;
} dc_gradpart;

/* in_order: their sum as they were given, 0 for none. */
dc_ref dc_gradsum(dc_arena *scratch, dc_func *f, const dc_gradpart *last, dc_ref in_order);

#endif
