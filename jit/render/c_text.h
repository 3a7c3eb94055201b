/*
 * Words of the C family: types, literals, operands. What jit/render/render_c.c and c_expr.c write with.
 *
 * Values are v<n> by their id, buffers b<n>, a lane of a vector is v<n>[l]; constants, splats and the
 * like are written where they are used.
 */
#ifndef DC_JIT_RENDER_C_TEXT_H
#define DC_JIT_RENDER_C_TEXT_H

#include "jit/render/c_plan.h"
#include "jit/render/dialect.h"

typedef struct dc_c_text {
    const dc_dialect *d;
    const dc_flat *f; /* the kernel being written */
    dc_text *out;
    dc_c_plan plan; /* of it */
} dc_c_text;

static inline const dc_finst *dc_ctext_at(const dc_c_text *r, dc_fv v)
{
    return dc_finst_at(r->f, v);
}

/* A bool is a byte in memory. */
const char *dc_c_text_type(const dc_c_text *r, int type, bool memory);

/* A float, exactly, and in no locale's way. */
void dc_c_text_float(dc_c_text *r, dc_dtype t, uint64_t bits);

/* Does a table of constants need 64 bits for its numbers? */
bool dc_c_text_wide_table(const dc_ftable *t);

void dc_c_text_literal(dc_c_text *r, int type, uint64_t bits);

/* The value; of a vector the lane l. Binds like a cast or tighter. */
void dc_c_text_value(dc_c_text *r, dc_fv v);

/* printf with %V: a value (dc_fv); beside it %s, %u (uint32_t), %d, %l (int64_t). */
void dc_c_text_put(dc_c_text *r, const char *fmt, ...);

/* A bug: the dialect cannot say the instruction. */
DC_NORETURN void dc_c_text_no_rendering(const dc_c_text *r, const dc_finst *i);

#endif
