#include "jit/render_c.h"

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out)
{
    DC_UNUSED(kernels);
    DC_UNUSED(n);
    DC_UNUSED(out);
    return dc_failf(j, DC_ERR_BUILD, NULL, "no renderer for '%s'", target->dialect);
}
