/* Softmax of rows that no thread group holds. */
#ifndef DC_JIT_REWRITE_ONLINE_SOFTMAX_H
#define DC_JIT_REWRITE_ONLINE_SOFTMAX_H

#include "core/ir/graph.h"

/*
 * Node r of f, whose operands are map[...] in `to`, if it is the maximum of such rows or the sum of their exponentials; 0: it
 * is not. The map has the maximum when the sum is asked for.
 */
dc_ref dc_online_softmax(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *map);

#endif
