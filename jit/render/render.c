#include "jit/render/render.h"

#include "jit/render/render_c.h"
#include "jit/render/render_llvm.h"

#include <string.h>

static dc_status render_flat(dc_job *j, const dc_flat *const *kernels, uint32_t n,
                             const dc_target *target, dc_text *out)
{
    DC_UNUSED(j);
    DC_UNUSED(target);
    for (uint32_t i = 0; i < n; i++)
        dc_flat_print(kernels[i], out);
    return DC_OK;
}

static const struct renderer {
    const char *dialect;
    dc_status (*render)(dc_job *j, const dc_flat *const *kernels, uint32_t n,
                        const dc_target *target, dc_text *out);
} renderers[] = {
    {"llvm", dc_render_llvm}, {"c11", dc_render_c},    {"opencl", dc_render_c},
    {"cuda", dc_render_c},    {"flat", render_flat},
};

dc_status dc_render(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                    dc_text *out)
{
    for (size_t i = 0; i < DC_COUNTOF(renderers); i++)
        if (strcmp(renderers[i].dialect, target->dialect) == 0)
            return renderers[i].render(j, kernels, n, target, out);
    DC_BUG("no renderer for '%s'", target->dialect);
}
