/*
 * Random functions with loops and branches: what graphgen makes, and around more of it, as bodies, loops with all flags
 * and branches. Bodies have such nodes, too, to `depth`. The same seed, size and depth give the same function. There
 * is what passes look for: carries that stay what they are, that nothing reads, or that others are equal to; results that
 * are parameters; operands given twice; loops of no and of one iteration.
 *
 * Runs below a recovery point (dc_protect).
 */
#ifndef DC_TESTS_BODYGEN_H
#define DC_TESTS_BODYGEN_H

#include "tests/unit/graphgen.h"

dc_func *bodygen_func(dc_module *m, uint64_t seed, int size, int depth);

/* Elements of r, over and over, as a value of this type. */
dc_ref bodygen_fit(dc_func *f, dc_ref r, const dc_type *t);

#endif
