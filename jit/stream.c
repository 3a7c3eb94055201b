#include "jit/stream.h"

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

static size_t bytes_of(const dc_buffer *b)
{
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

/*
 * A kernel that touches less than the last cache holds leaves its results there. One that touches
 * more leaves their ends, whoever reads them begins at the other one.
 */
void dc_stream_mark(dc_kernel *k, const dc_group *g, const dc_plan *plan, const dc_target *t)
{
    if (t->simt || t->l3 == 0 || (size_t)k->bytes < t->l3)
        return;
    for (uint32_t o = 0; o < g->nout; o++)
        k->buf.at[o].stream =
            bytes_of(&k->buf.at[o]) >= t->l3 / 8 && !is_in_place(g, plan, o) && !is_loaded(k, o);
}
