/*
 * Long reductions in two steps: a reduction to few numbers becomes one to partial results, which threads can
 * share, and one of these. How many parts there are depends on the shape and the kind of device alone, so results do
 * not depend on the number of threads.
 */
#ifndef DC_JIT_REWRITE_SPLIT_REDUCTION_H
#define DC_JIT_REWRITE_SPLIT_REDUCTION_H

#include "core/ir/graph.h"

/*
 * Reduction r of a function in another one, where its operand is `in`; 0: one step will do. groups: parts are groups of
 * threads, of which a device runs hundreds, each with fewer terms.
 */
dc_ref dc_split_reduce(dc_func *to, const dc_func *f, dc_ref r, dc_ref in, bool groups);

/*
 * What a reduction does, in the order of its operand's memory. Splitting, which expects a row-wise kernel to take the
 * first step in, and fusion (jit/fuse), which decides that, read the same facts.
 */
typedef struct dc_split_rows {
    int split; /* dims of the operand before it are rows, the others columns */
    int64_t rows, columns;
} dc_split_rows;

/* Is r a reduction over trailing axes, of columns > 1 to each of its rows? */
bool dc_split_is_row_wise(const dc_func *f, dc_ref r, dc_split_rows *out);

typedef struct dc_split_blocks {
    int64_t blocks, rows, columns; /* rows of each block */
} dc_split_blocks;

/* Is r a reduction over the rows of each block, an element for each block and column? */
bool dc_split_is_of_blocks(const dc_func *f, dc_ref r, dc_split_blocks *out);

#endif
