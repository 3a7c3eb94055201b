#include "jit/plan/residency.h"

#include "jit/base/tuning.h"

/* Is the output in the memory of an input? Then its lines are in the cache when it is stored. */
static bool is_in_place(const dc_group *g, const dc_plan *plan, uint32_t out)
{
    const dc_place to = plan->home[g->out[out]];
    for (uint32_t i = 0; i < g->nin; i++) {
        const dc_place from = plan->home[g->in[i]];
        if (from.kind == to.kind && from.index == to.index)
            return true;
    }
    return false;
}

static bool is_loaded(const dc_kernel *k, uint32_t buf)
{
    for (dc_vx v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_LOAD && k->vx.at[v].buf == buf)
            return true;
    return false;
}

void dc_residency_mark(dc_kernel *k, const dc_group *g, const dc_plan *plan, const dc_target *t)
{
    if (t->l3 == 0 || (size_t)k->bytes < t->l3)
        return;
    for (uint32_t b = 0; b < k->buf.n; b++) {
        dc_buffer *x = &k->buf.at[b];
        const size_t bytes = (size_t)x->count * dc_dtype_size((dc_dtype)x->dtype);
        const bool reused = b < g->nout && (is_in_place(g, plan, b) || is_loaded(k, b));
        x->uncached = x->scope == DC_SCOPE_PARAM && bytes >= t->l3 / DC_TUNE_CACHE_SHARE && !reused;
    }
}
