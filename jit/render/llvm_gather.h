/*
 * Loads whose lanes stand at constant distances from each other, in LLVM IR: whole vectors and shuffles of
 * them in place of a gather or of a load for each lane.
 */
#ifndef DC_JIT_RENDER_LLVM_GATHER_H
#define DC_JIT_RENDER_LLVM_GATHER_H

#include "jit/render/llvm_text.h"

/*
 * Loads a vector, a GATHER or a LOAD with a step, to %v<v><suffix>. False, and nothing is put, where the
 * distances or the mask are not known.
 */
bool dc_llvm_gather_put(dc_llvm_text *r, dc_fv v, const char *suffix);

#endif
