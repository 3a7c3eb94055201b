/* How scatters that add, or combine in another way, are computed. */
#ifndef DC_JIT_REWRITE_SCATTER_LAYOUT_H
#define DC_JIT_REWRITE_SCATTER_LAYOUT_H

#include "core/ir/graph.h"

/* Scatter n, one that combines, with these operands. Sums of 16-bit floats are in memory of f32, which is where a scatter adds. */
dc_ref dc_scatter_layout(dc_func *to, const dc_node *n, const dc_ref *in, bool groups);

#endif
