/*
 * Reverse-mode gradient: graph in, graph out. Adds nodes to f that compute d loss / d wrt[i].
 * out[i] is 0 where loss does not depend on wrt[i] at all, and a constant of zeros where it depends
 * only through what has no slope (floor, stop_gradient, comparisons, integers). loss must be a float
 * scalar (GRAD_SCALAR), every wrt[i] a float (DTYPE); wrt may be any nodes and may repeat.
 * Reference: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3.
 */
#ifndef DC_CORE_GRAPH_GRAD_H
#define DC_CORE_GRAPH_GRAD_H

#include "core/graph/graph.h"

dc_status dc_grad(dc_job *j, dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *out);

/*
 * The same for any float node y with a given cotangent, and nothing is followed below a wrt node: how
 * y depends on each with all others held. out[i] is 0 where it does not, or has no slope.
 */
dc_status dc_grad_pull(dc_job *j, dc_func *f, dc_ref y, dc_ref cotangent, const dc_ref *wrt, int n,
                       dc_ref *out);

#endif
