/*
 * The sum of the parts of a cotangent. Gradients of slices are the parts of what was sliced, padded. Many
 * of them are added up in layers of parts that do not overlap, and then the layers. Each element of a layer comes
 * from one slice, so jit/rewrite/disjoint_sum.h can store every part in place. With few slices it is the sum in the
 * order in which the parts were given.
 */
#ifndef DC_CORE_AUTODIFF_GRADSUM_H
#define DC_CORE_AUTODIFF_GRADSUM_H

#include "core/ir/graph.h"

enum { DC_GRADSUM_FEW = 8 }; /* padded parts that need no layers */

/* Parts of one cotangent, the last one first. */
typedef struct dc_gradpart {
    dc_ref ref;
    const struct dc_gradpart *before;
} dc_gradpart;

/* in_order: their sum as they were given, 0 for none. */
dc_ref dc_gradsum(dc_arena *scratch, dc_func *f, const dc_gradpart *last, dc_ref in_order);

#endif
