/*
 * Instructions of a flat form as expressions of the C family, without name and semicolon.
 *
 * Integers wrap: what is signed is computed unsigned and converted. A bool is a byte in memory, and
 * a byte other than 0 reads as true. Whatever could be undefined in C is written so that it is not.
 */
#ifndef DC_JIT_RENDER_C_EXPR_H
#define DC_JIT_RENDER_C_EXPR_H

#include "jit/render/c_text.h"

/* What v computes or loads; of a vector its lane l. */
void dc_c_expr_put(dc_c_text *r, dc_fv v);

/* The element of a buffer that a load or store touches; of a vector that of its lane l. */
void dc_c_expr_element(dc_c_text *r, const dc_finst *i);

#endif
