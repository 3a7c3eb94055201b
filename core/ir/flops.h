/*
 * Arithmetic operations of nodes, for reports: of a contraction or convolution 2 for each product that is added up, of
 * other operations 1 for each element computed, of reductions for each element read; nothing for what moves values. With
 * sizes that are known when a function runs: at most.
 */
#ifndef DC_CORE_IR_FLOPS_H
#define DC_CORE_IR_FLOPS_H

#include "core/ir/graph.h"

/*
 * Products that an element of the result adds up, of DOT and CONV: the extents that are contracted; the elements of the
 * kernel for one of its channels. 0 where there is no channel.
 */
double dc_flops_terms(dc_op op, const int64_t *attr, int nattr, const dc_type *left,
                      const dc_type *right);

/*
 * Of node r alone. Of a loop as often as it runs at most, of a branch the larger side. Matrix factorizations by the term of
 * the largest power, sorting by its comparisons.
 */
double dc_flops_node(const dc_func *f, dc_ref r);
/* Of what the results of f need. */
double dc_flops_func(const dc_func *f);

#endif
