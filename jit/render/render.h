/*
 * Flat forms to the text that a device compiles: the table of dialects.
 *
 *   llvm    jit/render/render_llvm.h     c11, opencl, cuda   jit/render/render_c.h     flat   the flat form's own text
 */
#ifndef DC_JIT_RENDER_RENDER_H
#define DC_JIT_RENDER_RENDER_H

#include "core/runtime/device.h"
#include "jit/flat/flat.h"

/* In the dialect target->dialect. */
dc_status dc_render(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                    dc_text *out);

#endif
