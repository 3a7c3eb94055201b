/*
 * Random functions with loops and branches, nested, of float values: for tests that compare them with the same function
 * without any (smoothgen_unrolled), by value or by gradient. Values stay of moderate size. Limits of loops are constants.
 */
#ifndef DC_TESTS_SMOOTHGEN_H
#define DC_TESTS_SMOOTHGEN_H

#include "core/ir/control.h"

#include "tests/unit/rng.h"

typedef struct smoothgen_opts {
    int depth;      /* of loops and branches in each other */
    int n;          /* operations of a body, about */
    bool by_hand;   /* with gradients given by hand and recomputed values, too */
    uint32_t flags; /* more flags of every loop: DC_LOOP_REMAT */
    int most;       /* iterations of a loop; 0: 4 */
} smoothgen_opts;

/* A new function of m: float parameters, float results; the outermost operation is a loop, now and then a branch. */
dc_func *smoothgen(dc_module *m, rng *r, const smoothgen_opts *o);

/* The same, every loop as so many copies of its body, every branch as both sides and a choice. */
dc_func *smoothgen_unrolled(const dc_func *f);

#endif
