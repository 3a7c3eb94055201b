/*
 * Flat form to LLVM IR text, as LLVM 15 to 21 read it (opaque pointers): one module, one function
 * per kernel, with the signature that core/runtime/device.h gives.
 *
 * The text is a function of the kernels and of target->triple and vector_bytes. It calls nothing
 * but LLVM intrinsics that every CPU has instructions for, so no library is needed to run it.
 */
#ifndef DC_JIT_RENDER_RENDER_LLVM_H
#define DC_JIT_RENDER_RENDER_LLVM_H

#include "core/runtime/device.h"
#include "jit/flat/flat.h"

dc_status dc_render_llvm(dc_job *j, const dc_flat *const *kernels, uint32_t n,
                         const dc_target *target, dc_text *out);

#endif
