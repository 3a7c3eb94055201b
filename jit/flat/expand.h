/*
 * Element-wise rows of core/ir/ops.def as kernel instructions, by their column `expand`.
 *
 * The result is what dc_op_eval gives, bit for bit (a NaN is a NaN), but for rows marked NEAR (exp,
 * log, sin ...), which are polynomials: at most 2 ulp off, whatever the operand. No expansion
 * branches, calls a library or can trap; so all are vectors as well as scalars.
 */
#ifndef DC_JIT_FLAT_EXPAND_H
#define DC_JIT_FLAT_EXPAND_H

#include "jit/flat/flat.h"

/* Operands have equal lanes and the dtypes the row wants; `to` is the dtype of the result. */
dc_fv dc_expand(dc_fbuild *b, dc_op op, dc_dtype to, const dc_fv *in);

#endif
