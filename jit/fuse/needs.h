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

#include "core/graph/graph.h"

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

/* Behind which terms along its reduced axis number i reduction or dot r adds nothing; 0: unknown. */
dc_ref dc_needs_term_end(const dc_needs *n, dc_ref r, int i);

#endif
