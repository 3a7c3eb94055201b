/* What the files of attention share (jit/rewrite/attention.h). */
#ifndef DC_JIT_REWRITE_ATTENTION_IMPL_H
#define DC_JIT_REWRITE_ATTENTION_IMPL_H

#include "core/graph/dot.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/attention.h"

/* What a value is made of, by element-wise operations and other dims of the same memory. */
enum {
    DC_CARRIES_DOT = 1, /* a contraction that tiles can compute */
    DC_CARRIES_EXP = 2  /* an exponential of one */
};

/* By ref; NULL: no exponential of a contraction is in the function. */
const uint8_t *dc_attention_carries(const dc_func *f, const bool *live, dc_arena *a);

/* Are the operands on this side weights, and is the result one that a kernel of attention can have? */
bool dc_attention_is_chain(const dc_func *f, const dc_dot *d, const uint8_t *carries,
                           const dc_node *n, int side);

#endif
