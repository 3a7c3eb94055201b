/*
 * Random functions with loops and branches inside each other, in which every value is exact: floats are whole
 * numbers from -8 to 8 after each operation, so sums of products may be added up in any order. Every correct
 * evaluation gives the same bits, if inputs are such numbers (loopgen_input).
 */
#ifndef DC_TESTS_LOOPGEN_H
#define DC_TESTS_LOOPGEN_H

#include "core/ir/control.h"

#include "tests/unit/rng.h"

/* The same seed and size give the same function; `size` is about the number of operations outside of bodies. */
dc_func *loopgen_func(dc_module *m, uint64_t seed, int size);

/* Fills a dense array of the type. */
void loopgen_input(rng *r, const dc_type *t, void *out);

#endif
