/*
 * Gradients given by hand, and values computed again for the gradient.
 *
 * The gradient of a custom node is a piece of the same graph, made when the operation is recorded:
 * its leaves are the node's inputs and two holes, one for the cotangent of the value and one for the
 * value itself. dc_grad copies the piece with the holes filled and looks no further below the node.
 * So gradients of gradients, lazy expressions and clones need nothing of their own, and there are no
 * callbacks. Everything after the gradients sees the value alone (core/ir/simplify.c).
 *
 * A body is recorded on placeholders of its inputs, which are barriers: what it reads besides them is
 * captured, and substituting the placeholders instantiates the body again.
 */
#ifndef DC_CORE_AUTODIFF_CUSTOM_H
#define DC_CORE_AUTODIFF_CUSTOM_H

#include "core/ir/subgraph.h"

typedef struct dc_custom {
    dc_func *f;
    int n;
    dc_ref x[DC_CUSTOM_INPUTS];
    dc_ref stand_in[DC_CUSTOM_INPUTS]; /* of x: what the forward body is recorded on */
    int64_t id;
    dc_ref y;           /* the value, made of x */
    dc_ref dy, y_again; /* holes: what the backward body is recorded on, with x */
} dc_custom;

/* The value of a, which gradients tell from other nodes of the same value: no other node is the same. */
dc_ref dc_custom_leaf(dc_func *f, dc_ref a);

/* Stand-ins for n inputs; n is at most DC_CUSTOM_INPUTS. */
void dc_custom_begin(dc_func *f, const dc_ref *x, int n, dc_custom *out);

/*
 * The forward body made y of the stand-ins. GRAD_CAPTURED if it read anything else that a gradient
 * can flow to; *captured is one such node.
 */
dc_status dc_custom_value(dc_job *j, dc_custom *c, dc_ref y, dc_ref *captured);

/* Instead of these two: y is there, made of x. */
void dc_custom_given(dc_func *f, const dc_ref *x, int n, dc_ref y, dc_custom *out);

/* The backward body made dx, 0 where an input has no gradient. GRAD_CUSTOM if a type is wrong. */
dc_status dc_custom_end(dc_job *j, dc_custom *c, const dc_ref *dx, dc_ref *out);

/*
 * Instead of the last two: the same value, computed again from x for the gradient. What else the body
 * read gets its gradient, too. ARG if that is too much for one node.
 */
dc_status dc_custom_remat(dc_job *j, dc_custom *c, dc_ref y, dc_ref *out);

/* For dc_grad: the gradients of custom node r for its inputs, given its cotangent; 0 for none. */
void dc_custom_pull(dc_job *j, dc_func *f, dc_ref r, dc_ref cotangent, dc_ref *out);

#endif
