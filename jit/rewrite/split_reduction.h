/*
 * Large sums in two steps: a reduction to few numbers becomes one to more of them, which workers can
 * share, and one of those. How many parts there are depends on the shape alone, so results do not
 * depend on the number of threads.
 */
#ifndef DC_JIT_REWRITE_SPLIT_REDUCTION_H
#define DC_JIT_REWRITE_SPLIT_REDUCTION_H

#include "core/graph/graph.h"

/* Reduction r of a function in another one, where its operand is `in`; 0: one step will do. */
dc_ref dc_split_reduction(dc_func *to, const dc_func *f, dc_ref r, dc_ref in);

#endif
