/*
 * Which elements of a value anybody needs, where sizes are known at run time (the operation set_size).
 *
 * Along an axis either all elements are needed, or those before a number that is a parameter of type i32[]. Kernels
 * may leave the others out (dc_limit of jit/nest/nest.h). What is not recognised is needed whole.
 *
 *   - Of set_size(x, e) the elements before e are needed, of what results and of operands of loops are made, too.
 *   - Of where(i < e, x, c) x is needed before e: what is behind is not looked at.
 *   - A reduction whose operand is neutral behind e (such a `where`, c being the neutral element) adds nothing from
 *     there on: its terms end at e.
 */
#ifndef DC_JIT_FUSE_NEEDS_H
#define DC_JIT_FUSE_NEEDS_H

#include "core/ir/graph.h"

typedef struct dc_needs {
    const dc_func *fn;
    dc_ref (*end)[DC_MAX_RANK]; /* by ref and axis: the number; 0: all. NULL: all of everything */
} dc_needs;

/* In the arena. */
dc_needs dc_needs_of(const dc_func *fn, dc_arena *a);

static inline dc_ref dc_needs_end(const dc_needs *n, dc_ref r, int axis)
{
    return n->end == NULL ? 0 : n->end[r][axis];
}

/* Is it where(i < e, x, constant) for such a number? What is read of x is read before it. The same with 0. */
bool dc_needs_is_mask(const dc_needs *n, dc_ref r);
bool dc_needs_is_zero_mask(const dc_needs *n, dc_ref r);

/* The number before which boolean r is true along the axis, and false behind it; 0: it is something else. */
dc_ref dc_needs_before(const dc_needs *n, dc_ref r, int axis);
/* What r has neutral elements `bits` of where that has them, besides those of its own mask; 0: nothing. */
dc_ref dc_needs_through(const dc_needs *n, dc_ref r, uint64_t bits);
/* Of a reduction or a contraction. */
uint64_t dc_needs_neutral(const dc_func *f, dc_ref r);
/* Number i of those that terms of reduction or contraction r may end at (jit/lower/lower_limit.c); 0: there are no more. */
dc_ref dc_needs_term_number(const dc_needs *n, dc_ref r, int i);

#endif
