/*
 * Random legal graphs, inputs for them, and how far apart two correct evaluations may be.
 *
 * graphgen_func makes a function over all operations, dtypes, and shapes with ones, primes and
 * sometimes zeros; the same seed and size give the same function. `size` is about the number of
 * operations. For two thirds of the seeds dtypes are mixed; for the others they are bool, u8, i32,
 * u32 and f32.
 *
 * graphgen_bound is a running error analysis: the wide interpreter gives every node's value, and a
 * bound on the distance of any legal evaluation follows node by node from the bounds of the
 * operands, the slope of the operation and one rounding. Legal is: every operation rounded once (of short
 * floats to f32, or to the dtype too) or contracted to FMA, transcendental ones within 2 ulp, sums and products of reductions and dot in
 * any order. Where the analysis cannot tell (a comparison of values closer than their bounds, an
 * overflow within reach, an integer made from such a value) the bound is infinite and nothing is
 * demanded there; where all steps are exact it is 0. So a test needs one constant, 1, for all
 * graphs: |got - value| <= bound
 */
#ifndef DC_TESTS_GRAPHGEN_H
#define DC_TESTS_GRAPHGEN_H

#include "core/ir/graph.h"

#include "tests/unit/rng.h"

dc_func *graphgen_func(dc_module *m, uint64_t seed, int size);

/* With operations that the host computes, which have no kernels. */
dc_func *graphgen_host(dc_module *m, uint64_t seed, int size);

/* The same with axes of up to 2048: kernels have whole tiles, several vectors, work items for several threads. */
dc_func *graphgen_large(dc_module *m, uint64_t seed, int size);

/* Fills a dense array of the type. special: now and then NaN, infinities, zeros, extremes. */
void graphgen_input(rng *r, const dc_type *t, bool special, void *out);

/* params as dc_eval takes them (not wide); value[i] and bound[i] hold the elements of result i. */
dc_status graphgen_bound(dc_job *j, const dc_func *f, const void *const *params,
                         double *const *value, double *const *bound);

/* As if all floats were computed in f32. */
dc_status graphgen_bound_f32(dc_job *j, const dc_func *f, const void *const *params,
                             double *const *value, double *const *bound);

/* Position of the first element that is farther from value than c * bound; -1 if there is none. */
int64_t graphgen_differs(dc_dtype t, const void *got, const double *value, const double *bound,
                         int64_t n, double c);

/* The value of a node, all of which may be read: behind the size of a set_size there is anything. */
static inline dc_ref graphgen_whole(const dc_func *f, dc_ref r)
{
    while (dc_node_at(f, r)->op == DC_OP_SET_SIZE)
        r = dc_node_at(f, r)->in[0];
    return r;
}

#endif
