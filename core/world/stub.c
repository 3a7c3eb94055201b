#include "core/world/world.h"
int64_t dc_group_size(const dc_group_axes *g)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < g->naxis; i++)
        n *= g->mask >> i & 1 ? g->size[i] : 1;
    return n;
}
dc_status dc_world_run(dc_world *w, dc_job *j, const dc_exchange *x)
{
    DC_UNUSED(w);
    DC_UNUSED(j);
    DC_UNUSED(x);
    return DC_OK;
}
