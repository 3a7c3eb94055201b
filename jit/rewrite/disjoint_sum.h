/*
 * Sums of padded pieces that are disjoint, the way concatenations and gradients of slices are written,
 * become joins: one buffer in which each kernel that computes a piece stores it where it belongs. As a
 * sum, each element of the whole would test every piece for its range, which costs the square of their
 * number; a join costs one store of each element.
 *
 * In:  a function after simplification and layout. Out: a new function of the same module, NULL where
 *      there is nothing to join.
 *
 * What holds of every join (core/ir/ops.def): its pieces do not overlap and leave no element out. What no
 * piece covers of the sum becomes a piece of its own, or part of a padded one, so that all of them
 * together are no larger than the whole. Where pieces of a sum overlap, its two operands are tried in its place: each
 * layer of disjoint pieces is a join, and joins are added up in the order of the sum. A few pieces stay a sum, which
 * is computed in the kernels that use it. Exact: a + 0 remains where the sum adds 0 to an element that may be -0.
 */
#ifndef DC_JIT_REWRITE_DISJOINT_SUM_H
#define DC_JIT_REWRITE_DISJOINT_SUM_H

#include "core/ir/graph.h"

dc_func *dc_disjoint_sum(dc_arena *scratch, const dc_func *f);

#endif
