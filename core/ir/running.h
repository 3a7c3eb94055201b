/*
 * Running reductions: y[i] is x[0] to x[i] reduced, along the middle one of three axes, or from the other end.
 *
 * The operation RUN (core/ir/ops.def) is what the host computes one element after the other. The same can be said in
 * blocks, by ordinary operations, where there are many threads or an order of its own is needed (jit/rewrite/running.h,
 * gradients): of three axes, each of at least one element.
 */
#ifndef DC_CORE_IR_RUNNING_H
#define DC_CORE_IR_RUNNING_H

#include "core/base/extent.h"
#include "core/ir/graph.h"

typedef enum dc_run_kind {
    DC_RUN_SUM,
    DC_RUN_PROD,
    DC_RUN_MAX,
    DC_RUN_MIN,
    DC_RUN__COUNT
} dc_run_kind;

/* The operation; x may have any axes, and sizes of those behind it are known. */
dc_ref dc_running(dc_func *f, dc_run_kind kind, bool reverse, dc_ref x, int axis);
/* The axes before and behind one as one axis each; false where sizes of them that are not known have no product. */
bool dc_running_flat(dc_extents *e, const dc_type *t, int axis, int64_t dim[3]);
/* Whether so few elements are better in blocks, which then fuse with what is around them. */
bool dc_running_is_short(dc_run_kind kind, int64_t n);
dc_ref dc_running_blocks(dc_func *f, dc_run_kind kind, bool reverse, dc_ref x);
/* log of the running sum of exp(x); in blocks. */
dc_ref dc_running_logsumexp(dc_func *f, bool reverse, dc_ref x);
/* Running products of complex numbers, in place: their real and imaginary parts; in blocks. */
void dc_running_complex(dc_func *f, bool reverse, dc_ref part[2]);
/* y[i] = a[i] y[i - 1] + b[i]; of floats, in blocks. */
dc_ref dc_running_recurrence(dc_func *f, bool reverse, dc_ref a, dc_ref b);
/* The running sum of v, which begins anew where the key changes; equal keys stand side by side. In blocks. */
dc_ref dc_running_segments(dc_func *f, bool reverse, dc_ref key, dc_ref v);

#endif
