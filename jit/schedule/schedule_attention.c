/*
 * The rule for kernels of attention (jit/lower/lower_attention.c): rows are lanes, so vectors lie along them in every loop; what is
 * computed of a strip of terms or columns at a time is written out, so that its sums stay in registers.
 */
#include "jit/schedule/schedule_impl.h"

/* Loops over lanes are vectors, several of them written out; axes may be made meanwhile. */
static bool make_vectors(dc_sketch *s)
{
    const uint32_t n = s->k->axis.n;
    dc_split v;
    for (uint32_t a = 0; a < n; a++) {
        if (s->k->axis.at[a].role != DC_ROLE_LANE)
            continue;
        const int64_t extent = dc_sketch_extent(s, a);
        if (!dc_do_split(s, a, dc_sketch_lanes(s, extent), &v) || !dc_do_vectorize(s, v.i))
            return false;
        if (dc_sketch_extent(s, v.o) > 1 && !dc_do_unroll(s, v.o))
            return false;
    }
    return true;
}

static bool write_out_strips(dc_sketch *s)
{
    const uint32_t n = s->k->axis.n;
    for (uint32_t a = 0; a < n; a++)
        if (s->k->axis.at[a].role == DC_ROLE_M && s->k->axis.at[a].extent > 1 &&
            !dc_do_unroll(s, a))
            return false;
    return true;
}

bool dc_schedule_attention(dc_sketch *s, dc_shape *p, bool *is)
{
    DC_UNUSED(p);
    *is = true;
    return make_vectors(s) && write_out_strips(s) && dc_sketch_grid_all(s);
}
