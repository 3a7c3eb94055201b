/*
 * What the printer (jit/flat/flat_print.c) and the parser (jit/flat/flat_parse.c) of the flat form agree on.
 *
 *   kernel R_4 (out0: f32[4] out, x0: f32[1024], part: f32[256] group) simt 256 lanes 32 positions 4 {
 *     %1 = mul index group, 256
 *     %2 = add index %1, thread
 *     %3 = load f32 x0[%2]
 *     store f32 part[thread], %3
 *     barrier group
 *     ...
 *   }
 *
 * Behind a buffer stands what it is, if not a parameter that is only read: `out`, `inout`, `group`,
 * `local`, `thread`, `scratch OFFSET`; `param NUMBER` where parameters are not numbered as they
 * stand, `@POSITION` in a name that an earlier buffer has. Behind the buffers stand `strict`, `simt
 * THREADS`, `lanes N`, `index BITS` (if not 64), `positions N`, `scratch BYTES`, and each table: how many columns it has,
 * and its rows. A buffer of a table says which one, the step between its parameters, the column with its count.
 *
 *   kernel two (out: f32[9] out table 0 step 1 column 1 param 0, x: f32[9] table 0 step 1 column 1 param 2) simt 9
 *       positions 2 table 2 (0 9, 1 5) {
 *     rows 0, group
 *       %1 = cell index 0 1, group
 *
 * Values are numbered in the order they stand; constants and arguments stand where they are used.
 * The type of a constant is the one that dc_flat_print_operand tells, else it stands before it: `lt
 * bool i32 3, i32 4`. Floats are decimal if that gives the same bits again, else hexadecimal
 * patterns. '#' begins a comment.
 */
#ifndef DC_JIT_FLAT_FLAT_PRINT_H
#define DC_JIT_FLAT_FLAT_PRINT_H

#include "jit/flat/flat.h"

typedef struct dc_ftype {
    int type, lanes; /* lanes 0: it cannot be told */
} dc_ftype;

/* What operand n of the instruction has to be. `other`: of the other operand of a comparison. */
dc_ftype dc_flat_print_operand(const dc_finst *i, int n, dc_ftype other);

const char *dc_flat_print_type(int type);
extern const char *const dc_flattext_args[4];     /* dc_karg */
extern const char *const dc_flattext_barriers[3]; /* dc_kbarrier */
extern const char *const dc_flattext_scopes[5];   /* dc_scope, "" for PARAM */
extern const char *const dc_flattext_modes[3];    /* dc_mode */

/* "-1.5e-9", "inf" or "0x7fc00000", all n characters of it. */
bool dc_flat_print_float(dc_dtype t, const char *s, size_t n, uint64_t *bits);

#endif
