/*
 * Instructions of a flat form that compute, in LLVM IR: arithmetic, tests, choices, conversions.
 */
#ifndef DC_JIT_LLEXPR_H
#define DC_JIT_LLEXPR_H

#include "jit/lltext.h"

void dc_llexpr_put(dc_lltext *r, dc_fv v);

#endif
