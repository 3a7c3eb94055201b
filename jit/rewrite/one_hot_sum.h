/* Sums over what an integer of each row chooses. */
#ifndef DC_JIT_REWRITE_ONE_HOT_SUM_H
#define DC_JIT_REWRITE_ONE_HOT_SUM_H

#include "core/ir/graph.h"

/*
 * Node r of f, whose operands are map[...] in `to`, if it is the sum of where(column == integer of the row, value, 0) over the
 * last axis, or over it and others: the value is gathered instead. 0: it is not.
 */
dc_ref dc_one_hot_sum(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *map);

#endif
