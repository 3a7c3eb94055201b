/*
 * Tables of the flat form (dc_ftable) in the C family: numbers are an array of constants, in front of the kernel; a scope that
 * chooses a row declares the pointers of that row. Where parameters can be found by number, they are one array; else
 * a switch over the rows names them.
 */
#ifndef DC_JIT_RENDER_C_TABLES_H
#define DC_JIT_RENDER_C_TABLES_H

#include "jit/render/c_text.h"

/* The arrays of constants. */
void dc_c_tables_define(dc_c_text *r);

/* Opens the scope of a ROWS at a depth. */
void dc_c_tables_choose(dc_c_text *r, const dc_finst *rows, int depth);

/* Where the parameter begins that the buffer is in a row. */
void dc_c_tables_parameter(dc_c_text *r, const dc_buffer *b, uint32_t row);

/* The type of a pointer to it. */
void dc_c_tables_pointer(dc_c_text *r, const dc_buffer *b);

#endif
