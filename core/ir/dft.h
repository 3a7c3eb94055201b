/*
 * Discrete Fourier transforms along an axis: the operation, its tables, and how it is taken apart.
 *
 *   y[k] = sum over j of x[j] exp(sign 2 pi i j k / n)
 *
 * x is a node of parts (core/build/complex.h): the axis is any but the last one, which is of 2. The transform goes
 * through stages, one for each radix of a factorization of n (Stockham's order, which needs no permutation): at stride s,
 * with n = r m s, element j m s + p s + q of r inputs goes through a transform of length r, and result k, times
 * exp(sign 2 pi i p k / (r m)), to p r s + k s + q. These factors are operands of the node: cos and sin of each stage
 * but the last, [r, m], computed where nothing has to be computed again (jit/rewrite/prologue.c). So is the inverse
 * transform the same node with the other sign, and its gradient, too.
 *
 * jit/rewrite/fft_stages.c makes a node of each stage, which is one kernel; on CPUs transforms of many rows are one.
 */
#ifndef DC_CORE_IR_DFT_H
#define DC_CORE_IR_DFT_H

#include "core/ir/graph.h"

enum {
    DC_DFT_STAGES = 32,
    DC_DFT_PRIME = 31, /* the largest factor that cannot be taken apart */
    DC_DFT_RADIX = 32, /* the largest radix */
    DC_DFT_ATTRS = 2,  /* axis, sign */
    DC_STAGE_ATTRS = 6
};

/* The radices of n; how many, 0: a prime factor is too large. Of 1 there is one, 1. */
int dc_dft_radices(int64_t n, int radix[DC_DFT_STAGES]);

/* cos and sin of 2 pi v / n, as t, of integers v from 0 to n - 1; 8 n fits their dtype. */
void dc_graph_turns(dc_func *f, dc_dtype t, dc_ref v, int64_t n, dc_ref out[2]);

/* The transform of r along an axis, which has radices. sign is 1 or -1. */
dc_ref dc_graph_dft(dc_func *f, dc_ref r, int axis, int sign);

/*
 * Attributes of a stage: radix, m, s, sign, whether the parts of its input lie along axis 1 of [before, 2, n, after] or last,
 * as [before, n, after, 2], and the same of its result.
 */
typedef struct dc_stage {
    int64_t radix, m, s, before, after; /* the last two from the operand */
    int sign;
    bool from_planes, to_planes;
} dc_stage;

dc_stage dc_stage_of(const dc_func *f, const dc_node *n);
/* The same of an operand of these dims; false: they do not fit the attributes. */
bool dc_stage_read(const int64_t *attr, int rank, const int64_t *dim, dc_stage *out);
void dc_stage_write(const dc_stage *s, int64_t attr[DC_STAGE_ATTRS]);

#endif
