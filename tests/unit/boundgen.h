/*
 * Random functions with sizes that are known at run time (core/base/extent.h): dims are numbers, one to three variables
 * of least size 0, 1 or 3, and expressions of them. Every value is exact: floats are whole numbers from -8 to 8 after
 * each operation, as in tests/unit/loopgen.h, and inputs are such numbers. Of some there are gradients, too, whose
 * values may grow until they are rounded.
 */
#ifndef DC_TESTS_BOUNDGEN_H
#define DC_TESTS_BOUNDGEN_H

#include "core/base/extent.h"
#include "core/ir/control.h"

#include "tests/unit/rng.h"

enum { BOUNDGEN_VARS = 3, BOUNDGEN_DIMS = 24 };

typedef struct boundgen {
    dc_extents *table; /* the caller frees it */
    dc_func *f;
    int nvar, ndim;
    int64_t var[BOUNDGEN_VARS], least[BOUNDGEN_VARS], most[BOUNDGEN_VARS];
    int64_t dim[BOUNDGEN_DIMS]; /* what there is to choose from */
} boundgen;

/*
 * The same seed and size give the same function; `size` is about the number of operations outside of bodies. The table
 * becomes that of the job and of the module.
 */
void boundgen_make(dc_job *j, dc_module *m, uint64_t seed, int size, boundgen *out);

/* The value of a variable (dc_extent_value): ctx is of boundgen_sizes. */
typedef struct boundgen_sizes {
    const boundgen *g;
    int64_t value[BOUNDGEN_VARS];
} boundgen_sizes;
int64_t boundgen_value(void *ctx, int64_t var);

/* Sizes of this number: 0 the least, 1 the largest, others random. */
boundgen_sizes boundgen_choose(const boundgen *g, rng *r, int number);

/*
 * Copies elements between an array of the type with sizes put in (`part`) and one of its bounds (`whole`), in which they
 * lie at the same positions.
 */
void boundgen_copy(const dc_type *part, const dc_type *whole, void *to, const void *from,
                   bool to_whole);

/* NaN, large integers; a bool is one. */
void boundgen_junk(rng *r, const dc_type *t, void *out);

#endif
