/*
 * Axes and buffers of moves: are they as a move needs them, and new ones with their names (jit/moves/move_impl.h).
 */
#include "jit/moves/move_impl.h"

#include <string.h>

bool dc_move_has_axis(dc_nest_edit *v, uint32_t axis)
{
    const bool known = axis < v->k->axis.n;
    return (known && dc_nest_has_loop(v->k->root, axis)) ||
           dc_nest_refuse(v, "there is no loop over %s",
                          known ? v->k->axis.at[axis].name : "an axis that was not made");
}

bool dc_move_has_serial_axis(dc_nest_edit *v, const dc_move *m, uint32_t axis)
{
    static const char *const kinds[] = {"serial",   "the grid",          "vectorized",
                                        "unrolled", "threads (a block)", "threads (lanes)"};
    if (!dc_move_has_axis(v, axis))
        return false;
    const dc_axis *a = &v->k->axis.at[axis];
    return a->kind == DC_AXIS_SERIAL ||
           dc_nest_refuse(v, "%s takes a serial axis, %s is %s", dc_move_name(m->kind), a->name,
                          kinds[a->kind]);
}

bool dc_move_has_buffer(dc_nest_edit *v, uint32_t buf)
{
    return buf < v->k->buf.n || dc_nest_refuse(v, "there is no buffer number %u", buf);
}

static bool new_axis(dc_nest_edit *v, uint32_t *axis, const char *name, int64_t extent, bool reduce)
{
    if (dc_axis_find(v->k, name) >= 0)
        return dc_nest_refuse(v, "there is an axis %s already", name);
    *axis = dc_axis_new(v->k, name, extent, reduce);
    return true;
}

bool dc_move_new_axis(dc_nest_edit *v, uint32_t *axis, uint32_t of, int64_t extent, bool reduce,
                      const char *suffix)
{
    const char *name = dc_arena_printf(v->tmp, "%s.%s", v->k->axis.at[of].name, suffix);
    if (!new_axis(v, axis, name, extent, reduce))
        return false;
    v->k->axis.at[*axis].of = of;
    return true;
}

bool dc_move_dim_axis(dc_nest_edit *v, uint32_t *axis, uint32_t buf, int dim, int64_t extent)
{
    const char *name = dc_arena_printf(v->tmp, "%s.%d", v->k->buf.at[buf].name, dim);
    return new_axis(v, axis, name, extent, false);
}

uint32_t dc_move_copy_axis(dc_nest_edit *v, uint32_t buf, uint32_t of)
{
    const dc_axis a = v->k->axis.at[of];
    const char *prefix = v->k->buf.at[buf].name;
    const char *name = dc_arena_printf(v->tmp, "%s.%s", prefix, a.name);
    for (unsigned n = 2; dc_axis_find(v->k, name) >= 0; n++)
        name = dc_arena_printf(v->tmp, "%s.%s%u", prefix, a.name, n);
    const uint32_t axis = dc_axis_new(v->k, name, a.extent, false);
    v->k->axis.at[axis].of = of;
    return axis;
}

static bool buffer_exists(const dc_kernel *k, const char *name)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (strcmp(k->buf.at[b].name, name) == 0)
            return true;
    return false;
}

uint32_t dc_move_new_buffer(dc_nest_edit *v, uint32_t like, const char *suffix, dc_dtype t,
                            int64_t count)
{
    dc_kernel *k = v->k;
    const dc_buffer b = k->buf.at[like];
    const char *name = dc_arena_printf(v->tmp, "%s%s", b.name, suffix);
    for (unsigned n = 2; buffer_exists(k, name); n++)
        name = dc_arena_printf(v->tmp, "%s%s%u", b.name, suffix, n);
    return dc_buffer_new(k, name, t, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
}

uint32_t dc_move_new_part(dc_nest_edit *v, uint32_t of, dc_dtype t, int64_t count)
{
    dc_kernel *k = v->k;
    const char *name = k->buf.at[of].name;
    unsigned n = k->buf.n;
    const char *part = dc_arena_printf(v->tmp, "%.8s.%u", name, n);
    while (buffer_exists(k, part))
        part = dc_arena_printf(v->tmp, "%.8s.%u", name, ++n);
    return dc_buffer_new(k, part, t, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
}
