/*
 * Batching: a function over one more axis of some of its parameters.
 *
 * Batched values have a new axis 0 of `size`; row b of a batched result is what the function computes of row b of
 * the batched parameters and of the others as they are. A node is made once where it depends on no batched
 * parameter. Where it does, it becomes one node over all rows, or a few: element-wise operations expand operands
 * that have no rows; a contraction of which one operand has rows gets one more free axis and stays one product, of two
 * one more batch axis; loops run until every row is done. Terms are added in the order in which they were.
 *
 * Gradients given by hand stay what they are: holes get the new type, so the gradient of a batched function is the
 * batched gradient.
 */
#ifndef DC_CORE_TRANSFORM_BATCH_H
#define DC_CORE_TRANSFORM_BATCH_H

#include "core/ir/graph.h"

/*
 * Makes the live nodes of `from` again in f, another function, on these values of the parameters; batched[i] says which
 * have the axis. result[i] receives what the results are then, result_batched[i] whether they have it.
 * TOO_MANY_AXES, TOO_LARGE, ARG: a batched value would be none; f->where is then where it was made in `from`.
 */
dc_status dc_batch_inline(dc_job *j, dc_func *f, const dc_func *from, const dc_ref *param,
                          const bool *batched, int64_t size, dc_ref *result, bool *result_batched);

/* The same answer to which results have the axis, without making anything. */
void dc_batch_results(dc_job *j, const dc_func *from, const bool *batched, bool *result_batched);

/* r for each of `size` rows. TOO_MANY_AXES, TOO_LARGE. */
dc_status dc_batch_spread(dc_job *j, dc_func *f, dc_ref r, int64_t size, dc_ref *out);

#endif
