/*
 * What the printer, the parser and the verifier of the nest form share: constants as text, the
 * dtypes of operations, the shape of an accumulation.
 */
#ifndef DC_JIT_NEST_NEST_PRINT_H
#define DC_JIT_NEST_NEST_PRINT_H

#include "jit/nest/nest.h"

/*
 * A constant: "0.5:f32", "-3:i32", "true". Floats are the shortest decimal that reads back as the same
 * bits, else hexadecimal; "nan" is the quiet NaN 0x7fc00000, "nan(0x7fc00001)" any other.
 */
void dc_const_print(dc_dtype t, uint64_t bits, dc_text *out);
/* Reads one at *text and moves *text behind it; false, with the reason, leaves *text. */
bool dc_const_parse(const char **text, dc_dtype *t, uint64_t *bits, const char **why);

/* Has it a dtype of its own, which its text names? */
static inline bool dc_nest_op_converts(dc_op op)
{
    return op == DC_OP_CAST || op == DC_OP_BITCAST;
}

/* The dtype of an operation that does not convert on these operands; false: it takes others. */
bool dc_nest_op_dtype(const dc_kernel *k, dc_op op, const dc_vx *in, dc_dtype *out);

/* put[0] is buf[at] = op(buf[at], term) with an associative op: what `reduces` promises. */
bool dc_nest_accumulates(const dc_kernel *k, const dc_stmt *t);

/* NULL, or what there is too much of, and the loop where it is. */
const char *dc_nest_too_large(const dc_kernel *k, const dc_stmt **loop);

#endif
