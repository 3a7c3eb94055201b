/*
 * Instructions of a flat form that touch memory, in LLVM IR: loads, stores, gathers, scatters.
 */
#ifndef DC_JIT_RENDER_LLVM_MEMORY_H
#define DC_JIT_RENDER_LLVM_MEMORY_H

#include "jit/render/llvm_text.h"

void dc_llvm_memory_put(dc_llvm_text *r, dc_fv v);

#endif
