/*
 * Reverse-mode gradient: graph in, graph out. Adds nodes to f that compute d loss / d wrt[i].
 * out[i] is 0 where loss does not depend on wrt[i] at all, and a constant of zeros where it depends
 * only through what has no slope (floor, stop_gradient, comparisons, integers). loss must be a float
 * scalar (GRAD_SCALAR), every wrt[i] a float (DTYPE); wrt may be any nodes and may repeat.
 * GRAD_UNBOUNDED, before any node is made: the gradient goes through a loop without a largest number of iterations.
 * Reference: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
 */
#ifndef DC_CORE_AUTODIFF_GRAD_H
#define DC_CORE_AUTODIFF_GRAD_H

#include "core/ir/graph.h"

dc_status dc_grad(dc_job *j, dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *out);

/*
 * The same for float nodes y (they may repeat) with a given cotangent each, and nothing is followed below a
 * wrt node: how all y together depend on each with all others held. out[i] is 0 where they do not, or have no slope.
 */
dc_status dc_grad_pull(dc_job *j, dc_func *f, const dc_ref *y, const dc_ref *cotangent, int ny,
                       const dc_ref *wrt, int n, dc_ref *out);

/*
 * Bytes that loops of the forward pass keep for the loop node r, which dc_grad made to go through them backwards; 0 for
 * other loops. What is read behind it alone is not among them.
 */
int64_t dc_grad_kept(const dc_func *f, dc_ref r);

#endif
