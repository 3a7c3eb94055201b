/*
 * Instructions of a flat form that compute, in LLVM IR: arithmetic, tests, choices, conversions.
 */
#ifndef DC_JIT_RENDER_LLVM_EXPR_H
#define DC_JIT_RENDER_LLVM_EXPR_H

#include "jit/render/llvm_text.h"

void dc_llvm_expr_put(dc_llvm_text *r, dc_fv v);

#endif
