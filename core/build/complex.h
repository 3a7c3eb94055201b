/*
 * Complex numbers, which no node has.
 *
 * A value of type c64[3, 4] is a node of type f32[3, 4, 2]: real and imaginary parts along a last axis, as they lie in
 * memory. Only its named type (dc_val) says that it is complex. So parameters, carries of loops, gradients and vmap
 * treat it as the real tensor that it is, and nothing behind the builders knows complex numbers. The derivative of
 * a loss for such a value is dL/dre + i dL/dim.
 *
 * Builders (core/build/build.c) make real operations here of what is said of complex operands. Parts are slices, also of
 * what was just put together: gradients may be taken for the whole. core/ir/simplify.c finds the part again.
 */
#ifndef DC_CORE_BUILD_COMPLEX_H
#define DC_CORE_BUILD_COMPLEX_H

#include "core/build/build.h"

static inline bool dc_complex_is(const dc_val *v)
{
    return dc_dtype_is_complex((dc_dtype)v->type.dtype);
}

/* The value whose parts these are, of equal float types. TOO_MANY_AXES. */
dc_status dc_complex_join(dc_job *j, dc_func *f, dc_val re, dc_val im, dc_val *out);
/* Its real (0) or imaginary (1) part, of a real value itself or zeros. */
dc_val dc_complex_part(dc_func *f, dc_val v, int which);
/* The type of a value that node r is, with the names of `like`, and complex where that is. */
dc_type dc_complex_type(const dc_func *f, dc_ref r, const dc_type *like);
/* Its angle, of a float value 0 or pi: atan2(im, re). */
dc_ref dc_complex_angle(dc_job *j, dc_func *f, dc_ref re, dc_ref im);

/* Movement `op` of a complex value of type `from` to one of type `to`; attributes are those of these types. */
dc_ref dc_complex_move(dc_func *f, dc_op op, dc_ref r, const int64_t *attr, const dc_type *from,
                       const dc_type *to);
/* An element-wise operation that core/ir/infer.c allows; the operands have equal dims, in[i] of type `type`. */
dc_ref dc_complex_ew(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int n);
/* A sum or a product; both types without the axis of the parts. */
dc_ref dc_complex_reduce(dc_job *j, dc_func *f, dc_op op, dc_ref r, uint32_t axes);
dc_ref dc_complex_dot(dc_func *f, dc_ref a, dc_ref b, const int64_t *attr, int nattr);
/* `bits` is the pattern of the real part, the other is 0. */
dc_ref dc_complex_const(dc_func *f, const dc_type *t, uint64_t bits);
/* Of real numbers, or of those of another precision. */
dc_ref dc_complex_cast(dc_func *f, dc_val a, dc_dtype t);

#endif
