/* Schedule moves of memory traffic (jit/nest/nest_traffic.h): stage, nontemporal, prefetch, pipeline. */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_stage.h"
#include "jit/nest/nest_traffic.h"

bool dc_move_nontemporal(dc_nest_edit *v, const dc_move *m)
{
    if (!dc_move_has_buffer(v, m->buf))
        return false;
    dc_buffer *b = &v->k->buf.at[m->buf];
    if (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_OUT)
        return dc_nest_refuse(v, "%s is no output that is only stored to", b->name);
    b->nontemporal = true;
    return true;
}

bool dc_move_prefetch(dc_nest_edit *v, const dc_move *m)
{
    if (!dc_move_has_buffer(v, m->buf) || !dc_move_has_axis(v, m->axis[0]) ||
        !dc_move_has_axis(v, m->axis[1]))
        return false;
    dc_buffer *b = &v->k->buf.at[m->buf];
    if (m->count > 2)
        return dc_nest_refuse(v, "it prefetches into cache 1 or 2");
    if (b->prefetch != 0)
        return dc_nest_refuse(v, "%s is prefetched already", b->name);
    const char *why = dc_nest_prefetches(v->k, v->tmp, m->buf, m->axis[0], m->axis[1]);
    if (why != NULL)
        return dc_nest_refuse(v, "%s cannot be prefetched: %s", b->name, why);
    b->prefetch = (uint8_t)m->count;
    b->over = m->axis[0];
    b->within = m->axis[1];
    return true;
}

bool dc_move_stage(dc_nest_edit *v, const dc_move *m)
{
    const dc_stmt *loop;
    if (!dc_move_has_buffer(v, m->buf))
        return false;
    dc_buffer *b = &v->k->buf.at[m->buf];
    if (m->count < 2 || m->count > DC_NEST_STAGES)
        return dc_nest_refuse(v, "there are 2 to %d stages", DC_NEST_STAGES);
    if (b->scope != DC_SCOPE_GROUP)
        return dc_nest_refuse(v, "%s is not shared by the threads of a group", b->name);
    const char *why = dc_nest_stage(v->k, v->tmp, m->buf, (uint32_t)m->count, &loop);
    if (why != NULL)
        return dc_nest_refuse(v, "%s cannot be staged: %s", b->name, why);
    b->stages = (uint32_t)m->count;
    return true;
}

/* Of all grid loops over the axis, of which there is one. */
bool dc_move_pipeline(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t axis = m->axis[0];
    dc_overlap overlap;
    if (!dc_move_has_axis(v, axis))
        return false;
    if (k->axis.at[axis].kind != DC_AXIS_GRID)
        return dc_nest_refuse(v, "pipeline takes a loop of the grid, %s is none",
                              k->axis.at[axis].name);
    for (const dc_stmt *t = k->root; t != NULL; t = t->next) {
        const char *why = t->axis == axis ? dc_nest_overlap(k, v->tmp, t, &overlap) : NULL;
        if (why != NULL)
            return dc_nest_refuse(v, "%s cannot be pipelined: %s", k->axis.at[axis].name, why);
    }
    k->axis.at[axis].pipeline = true;
    return true;
}
