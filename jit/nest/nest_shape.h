/*
 * What a naive nest looks like, as lowering writes it: which loops stand outside each other, what they add up,
 * how what they read moves through memory. Roles (jit/nest/nest_roles.h) and schedule rules are told by it.
 */
#ifndef DC_JIT_NEST_NEST_SHAPE_H
#define DC_JIT_NEST_NEST_SHAPE_H

#include "jit/nest/nest.h"

enum { DC_SHAPE_AXES = 2 * DC_MAX_RANK };

typedef struct dc_shape {
    uint32_t out[DC_SHAPE_AXES], red[DC_SHAPE_AXES]; /* axes, outermost first */
    int nout, nred;
    const dc_stmt *add; /* the first accumulation, NULL in a map */
    bool one_sum;       /* it is the only one, alone in the loops of red */
    bool by_rows;       /* in the loops of out stand further ones that reduce nothing */
} dc_shape;

dc_shape dc_shape_of(const dc_kernel *k);

/* What the accumulation adds up. */
dc_vx dc_shape_term(const dc_kernel *k, const dc_shape *p);

/* How loads of parameters move along an axis from one iteration to the next: which kinds of them there are. */
typedef struct dc_strides {
    bool invariant; /* the same element */
    bool unit;      /* the next element */
    bool strided;   /* an element at another constant distance */
    bool irregular; /* the place is no linear function of the axis */
} dc_strides;

/* Of the loads below a value. */
dc_strides dc_strides_of(dc_kernel *k, dc_vx v, uint32_t axis);

/* None of the loads moves; each moves at a constant distance. */
static inline bool dc_strides_none(dc_strides s)
{
    return !s.unit && !s.strided && !s.irregular;
}

static inline bool dc_strides_all(dc_strides s)
{
    return !s.invariant && !s.irregular && (s.unit || s.strided);
}

/* Do iterations of two axes read the same elements by a load at `at`, as positions and taps of a window do? */
bool dc_axes_overlap(const dc_kernel *k, dc_ix at, uint32_t a, uint32_t b);

#endif
