/*
 * Arithmetic operations of nodes, for reports: of a contraction or convolution 2 for each product that is added up, of
 * other operations 1 for each element computed, of reductions for each element read; nothing for what moves values. With
 * sizes that are known when a function runs: at most.
 */
#ifndef DC_CORE_IR_FLOPS_H
#define DC_CORE_IR_FLOPS_H

#include "core/ir/graph.h"

/*
 * Of node r alone. Of a loop as often as it runs at most, of a branch the larger side. Matrix factorizations by the term of
 * the largest power, sorting by its comparisons.
 */
double dc_flops_node(const dc_func *f, dc_ref r);
/* Of what the results of f need. */
double dc_flops_func(const dc_func *f);

#endif
