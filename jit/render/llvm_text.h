/*
 * Words and lines of LLVM IR: types, names of intrinsics, values, instructions, declarations. What
 * jit/render/render_llvm.c, llvm_expr.c and llvm_memory.c write with.
 *
 * Names: %b<n> buffers; %v<n> values by their id (with suffixes for what one value needs on the
 * way). Constants are written where they are used. A bool is i1 in registers and a byte in memory.
 */
#ifndef DC_JIT_RENDER_LLVM_TEXT_H
#define DC_JIT_RENDER_LLVM_TEXT_H

#include "jit/flat/flat.h"

typedef struct dc_llvm_text {
    dc_job *j;
    const dc_flat *f; /* the kernel being written */
    dc_text *out;
    dc_text declared; /* declarations, each a line, at the end of the module */
    int vector_bytes; /* of the target */
} dc_llvm_text;

enum { DC_LLNAME = 48 };

typedef struct dc_llname {
    char s[DC_LLNAME];
} dc_llname;

static inline const dc_finst *dc_lltext_at(const dc_llvm_text *r, dc_fv v)
{
    return dc_finst_at(r->f, v);
}

/* The type of one lane, in memory or in a register. */
const char *dc_llvm_text_scalar(const dc_llvm_text *r, int type, bool memory);

/* A vector of them, if lanes > 1. */
dc_llname dc_llvm_text_spread(const char *scalar, int lanes);

dc_llname dc_llvm_text_type(const dc_llvm_text *r, int type, int lanes);
dc_llname dc_llvm_text_memory_type(const dc_llvm_text *r, int type, int lanes);

/* As it is written in the name of an intrinsic: v16f32. */
dc_llname dc_llvm_text_mangled(const char *scalar, int lanes);

/* The value's name, or the constant that it is. */
void dc_llvm_text_value(dc_llvm_text *r, dc_fv v);

/*
 * printf of one line with two more: %T a value with its type, %V a value alone (both dc_fv); beside
 * them %s, %u (uint32_t), %d, %l (int64_t).
 */
void dc_llvm_text_line(dc_llvm_text *r, const char *fmt, ...);

/* Once for each text. */
void dc_llvm_text_declare(dc_llvm_text *r, const char *fmt, ...) DC_PRINTF(2, 3);

#endif
