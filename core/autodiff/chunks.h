/*
 * A loop in chunks, for gradients that keep little: an outer loop over chunks of about sqrt(n) iterations, whose body
 * runs an inner loop over one of them. The outer one has DC_LOOP_REMAT, so of the forward pass only the carries at the
 * beginning of each chunk are kept; the backward pass computes a chunk again and keeps what it needs of that one alone.
 * Memory for the gradient goes from n to about 2 sqrt(n) times what an iteration keeps; time by one forward pass.
 * Reference: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
 */
#ifndef DC_CORE_AUTODIFF_CHUNKS_H
#define DC_CORE_AUTODIFF_CHUNKS_H

#include "core/ir/control.h"

/*
 * The results of the loop l of these operands, carries and then ys. A loop that may end, or whose values have no room
 * for another axis, or of few iterations, is one loop with DC_LOOP_REMAT.
 */
void dc_chunks_loop(dc_func *f, const dc_loop *l, const dc_ref *in, dc_ref *result);

/*
 * In chunks of k, which divides n, that keep what they keep: the outer loop has DC_LOOP_ROWS. Of a loop that does not end
 * early, whose n is a number.
 */
void dc_chunks_split(dc_func *f, const dc_loop *l, const dc_ref *in, int64_t k, dc_ref *result);

#endif
