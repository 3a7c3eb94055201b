/* What the files of attention share (jit/rewrite/attention.h). */
#ifndef DC_JIT_REWRITE_ATTENTION_IMPL_H
#define DC_JIT_REWRITE_ATTENTION_IMPL_H

#include "core/ir/dot.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/attention.h"

#include <string.h>

/* What a value is made of, by element-wise operations and other dims of the same memory. */
enum {
    DC_CARRIES_DOT = 1, /* a contraction that tiles can compute */
    DC_CARRIES_EXP = 2  /* an exponential of one */
};

typedef struct finding {
    const dc_func *f;
    dc_arena *a;
    const bool *live;
    const uint8_t *carries;
    uint32_t *first, *nuser; /* by ref; of `user` */
    dc_ref *user;
    bool *is_result, *refused; /* by ref */
    uint32_t *seen, search;
    DC_VEC(dc_attention_kernel) kernel;
    DC_VEC(dc_ref) met; /* nodes of the tiles of one kernel */
} finding;

static inline const dc_node *at(const finding *w, dc_ref r)
{
    return dc_node_at(w->f, r);
}

/* Of its first contraction. */
static inline const dc_node *weights_of(const finding *w, const dc_attention_kernel *k)
{
    return at(w, dc_attention_weights(w->f, k, 0));
}

static inline bool same_dims(const dc_node *a, const dc_node *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* By ref; NULL: no exponential of a contraction is in the function. */
const uint8_t *dc_attention_carries(const dc_func *f, const bool *live, dc_arena *a);

/* Are the operands on this side weights, and is the result one that a kernel of attention can have? */
bool dc_attention_is_chain(const dc_func *f, const dc_dot *d, const uint8_t *carries,
                           const dc_node *n, int side);

/* Does r depend on `on`, which has a larger or equal number than `least`, but for what is met? */
bool dc_attention_depends(finding *w, dc_ref r, const dc_ref *on, int n, dc_ref least);

/* Joins kernels. */
void dc_attention_join(finding *w);

#endif
