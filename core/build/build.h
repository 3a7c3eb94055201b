/*
 * Building with typed handles: what the language calls. A dc_val is a node with its named type.
 * These functions check arguments as a user means them (broadcasting from the right, negative axes
 * already resolved by the caller to 0-based ones) and insert the movement nodes.
 */
#ifndef DC_CORE_BUILD_BUILD_H
#define DC_CORE_BUILD_BUILD_H

#include "core/ir/dot.h"

typedef struct dc_val {
    dc_ref ref;
    dc_type type; /* with names */
} dc_val;

/*
 * Element-wise. Ranks align from the right; an unnamed axis of size 1 stretches; names must agree.
 * DIMS, NAMES, STRETCH, DTYPE_MIX, DTYPE name the operation; axes are those of the result.
 */
dc_status dc_build_ew(dc_job *j, dc_func *f, dc_op op, const dc_val *in, int n, dc_val *out);
dc_status dc_build_cast(dc_job *j, dc_func *f, dc_val a, dc_dtype t, dc_val *out);
dc_status dc_build_bitcast(dc_job *j, dc_func *f, dc_val a, dc_dtype t, dc_val *out);

/* As NumPy's matmul: the last two axes, the rest broadcasts; rank 1 is a row or a column. */
dc_status dc_build_matmul(dc_job *j, dc_func *f, dc_val a, dc_val b, dc_val *out);
/* In a dtype that was asked for; -1: that of the operation. */
dc_status dc_build_matmul_in(dc_job *j, dc_func *f, dc_val a, dc_val b, int dtype, dc_val *out);

/* A contraction over the batch and contracting axes of d. */
dc_status dc_build_dot(dc_job *j, dc_func *f, dc_val a, dc_val b, const dc_dot *d, dc_val *out);

/* a with those of v at the integers of index; v has the type that gather gives, or stretches. */
dc_status dc_build_scatter(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val index, dc_val v,
                           int axis, int nb, dc_val *out);
/* Elements of a at the integers of index, which stand in the place of the axis. */
dc_status dc_build_gather(dc_job *j, dc_func *f, dc_val a, dc_val index, int axis, int nb,
                          dc_val *out);

/* axes is a mask; keep leaves size 1 (unnamed). */
dc_status dc_build_reduce(dc_job *j, dc_func *f, dc_op op, dc_val a, uint32_t axes, bool keep,
                          dc_val *out);
/* Integers and bool as 64 bits, which hold what is summed: u64 for unsigned, i64; floats as they are. */
dc_status dc_build_wide(dc_job *j, dc_func *f, dc_val a, dc_val *out);
/*
 * Factors of products of which so many are summed: integers of 8 bits as i32, which is refused where it may not hold
 * the sum, others as 64 bits.
 */
dc_status dc_build_factors(dc_job *j, dc_func *f, dc_val *a, dc_val *b, double terms);
/* The sum, of integers and bool in 64 bits. */
dc_status dc_build_sum(dc_job *j, dc_func *f, dc_val a, uint32_t axes, bool keep, dc_val *out);
/* The number of elements of t times `each`, a scalar of its dtype: for sizes known at run time. */
dc_status dc_build_count(dc_job *j, dc_func *f, const dc_type *t, double each, dc_val *out);
/* Of integers f32: their sum in 64 bits by the count in f64, rounded once. */
dc_status dc_build_mean(dc_job *j, dc_func *f, dc_val a, uint32_t axes, bool keep, dc_val *out);

/* dims of `want`, of which one may be -1; its names go before those of the longest common run. */
dc_status dc_build_reshape(dc_job *j, dc_func *f, dc_val a, const dc_type *want, dc_val *out);
/* The elements of a as a value of type `to`, which has as many of them. */
dc_val dc_build_as(dc_func *f, dc_val a, const dc_type *to);
/*
 * Axes of the mask whose size is known at run time, with `fill` up to their bounds: for what needs a fixed size. And the
 * part of these sizes of what came of it, which begins with them.
 */
dc_status dc_build_at_bound(dc_job *j, dc_func *f, dc_val a, uint32_t axes, double fill,
                            dc_val *out);
dc_status dc_build_up_to(dc_job *j, dc_func *f, dc_val a, const int64_t *dim, dc_val *out);
/* Is an axis of the mask of such a size? */
bool dc_build_is_bounded(const dc_type *t, uint32_t axes);

/* An operation of class HST of real operands. */
dc_status dc_build_host(dc_job *j, dc_func *f, dc_op op, const dc_val *in, const int64_t *attr,
                        int nattr, dc_val *out);
dc_status dc_build_permute(dc_job *j, dc_func *f, dc_val a, const int64_t *perm, int n,
                           dc_val *out);
dc_status dc_build_expand(dc_job *j, dc_func *f, dc_val a, const dc_type *want, dc_val *out);
/* inclusive 0-based first, last; step >= 1 */
dc_status dc_build_slice(dc_job *j, dc_func *f, dc_val a, const int64_t *first, const int64_t *last,
                         const int64_t *step, dc_val *out);
/* Axes of the mask in reverse order. */
dc_status dc_build_flip(dc_job *j, dc_func *f, dc_val a, uint32_t axes, dc_val *out);
/* Without these axes, which have size 1. */
dc_status dc_build_drop(dc_job *j, dc_func *f, dc_val a, uint32_t axes, dc_val *out);
/* Element p of an axis lands at lo + p * step of the dims of `want`; fill elsewhere. An axis that
   grows loses its name. */
dc_status dc_build_pad(dc_job *j, dc_func *f, dc_val a, const int64_t *lo, const int64_t *step,
                       const dc_type *want, double fill, dc_val *out);
dc_status dc_build_const(dc_job *j, dc_func *f, const dc_type *t, double v, dc_val *out);
/* The same from a pattern, which holds integers that a double does not. */
dc_status dc_build_bits(dc_job *j, dc_func *f, const dc_type *t, uint64_t bits, dc_val *out);
dc_status dc_build_iota(dc_job *j, dc_func *f, const dc_type *t, int axis, dc_val *out);

#endif
