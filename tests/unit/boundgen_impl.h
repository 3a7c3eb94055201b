/* What tests/unit/boundgen.c and boundgen_steps.c share. */
#ifndef DC_TESTS_BOUNDGEN_IMPL_H
#define DC_TESTS_BOUNDGEN_IMPL_H

#include "tests/unit/boundgen.h"

enum { RANK = 3, LARGEST = 4000, TRIES = 8 }; /* axes, elements */

typedef struct gen {
    rng *r;
    dc_job *j;
    dc_func *f;
    const boundgen *b;
    int depth;  /* of bodies around */
    int params; /* that may be added */
} gen;

static inline int below(gen *g, int n)
{
    return rng_below(g->r, n);
}

static inline bool chance(gen *g, int percent)
{
    return below(g, 100) < percent;
}

static inline int64_t any_dim(gen *g)
{
    return g->b->dim[below(g, g->b->ndim)];
}

static inline dc_type type_of(gen *g, dc_ref r)
{
    return dc_node_type(g->f, r);
}

dc_type bg_random_type(gen *g, int most_rank);

/* 0: such a node is not allowed, or an operand was not. */
dc_ref bg_make(gen *g, dc_op op, const dc_ref *in, int nin, const int64_t *attr, int nattr,
               const dc_type *want);

static inline dc_ref make2(gen *g, dc_op op, dc_ref a, dc_ref b)
{
    return bg_make(g, op, (dc_ref[]){a, b}, 2, NULL, 0, NULL);
}

dc_ref bg_any_node(gen *g);

/* Whole numbers from -limit to limit; from -8 to 8. */
dc_ref bg_within(gen *g, dc_ref r, double limit);
dc_ref bg_tamed(gen *g, dc_ref r);

dc_ref bg_cast(gen *g, dc_ref r, dc_dtype t);
dc_ref bg_constant_of(gen *g, const dc_type *t);

/* A node of the type: one that is there, a parameter, or made. 0: it would be too large. */
dc_ref bg_fetch(gen *g, const dc_type *t);
dc_ref bg_fetch_as(gen *g, dc_dtype dtype, int rank, const int64_t *dim);

/* An operation more, or none. */
void bg_step(gen *g);

#endif
