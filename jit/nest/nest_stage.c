#include "jit/nest/nest_stage.h"

#include "jit/nest/nest_access.h"

uint32_t dc_nest_stores_to(const dc_stmt *s)
{
    while (s->kind == DC_STMT_LOOP && s->body != NULL)
        s = s->body;
    return s->kind == DC_STMT_SET && s->nput > 0 ? s->put[0].buf : DC_NO_BUF;
}

/* Of one statement of a list. */
static dc_accesses accesses_in(dc_nest_edit *v, const dc_stmt *s)
{
    dc_stmt *alone = DC_NEW(v->tmp, dc_stmt);
    *alone = *s;
    alone->next = NULL;
    return dc_nest_accesses(v, alone, NULL);
}

static bool touches(dc_nest_edit *v, const dc_stmt *s, uint32_t buf)
{
    const dc_accesses a = accesses_in(v, s);
    return dc_access_loads(&a, buf) || dc_access_stores(&a, buf);
}

/* The loops that all accesses of the buffer stand in, and the first statement in the last of them that does. */
static const char *find_loop(dc_nest_edit *v, uint32_t buf, const dc_stmt **loop,
                             const dc_stmt **fill)
{
    *loop = NULL;
    for (const dc_stmt *list = v->k->root;;) {
        int n = 0;
        for (const dc_stmt *s = list; s != NULL; s = s->next)
            if (touches(v, s, buf) && n++ == 0)
                *fill = s;
        if (n == 0)
            return "nothing uses it";
        if (n > 1)
            break;
        if ((*fill)->kind != DC_STMT_LOOP)
            return "what fills it does not stand before what reads it in a loop";
        if (dc_axis_is_thread(v->k->axis.at[(*fill)->axis].kind))
            return "it is filled and read in one loop of threads";
        *loop = *fill;
        list = (*fill)->body;
    }
    if (*loop == NULL || v->k->axis.at[(*loop)->axis].kind != DC_AXIS_SERIAL ||
        v->k->axis.at[(*loop)->axis].extent < 2)
        return "what fills it and reads it stands in no serial loop";
    return NULL;
}

static bool pred_uses(const dc_kernel *k, dc_pred p, uint32_t axis)
{
    for (uint32_t n = 0; n < p.n; n++)
        if (dc_ix_uses(k, p.range[n].ix, axis))
            return true;
    return false;
}

/* Copies of inputs to the same elements in each iteration. */
static bool is_fill(dc_nest_edit *v, const dc_stmt *s, uint32_t buf, uint32_t axis)
{
    const dc_kernel *k = v->k;
    const dc_accesses all = accesses_in(v, s);
    for (uint32_t n = 0; n < all.n; n++) {
        const dc_access *a = &all.at[n];
        const dc_buffer *b = &k->buf.at[a->buf];
        if (a->tile)
            return false;
        if (!a->store && (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_IN))
            return false;
        if (a->store && (a->buf != buf || a->stmt->reduces || dc_ix_uses(k, a->at, axis) ||
                         dc_ix_loads(k, a->at) || pred_uses(k, a->stmt->pred, axis) ||
                         k->vx.at[a->stmt->put[a->put].value].kind != DC_VX_LOAD))
            return false;
    }
    return all.n > 0;
}

const char *dc_nest_stage(const dc_kernel *k, dc_arena *scratch, uint32_t buf, uint32_t stages,
                          const dc_stmt **loop)
{
    dc_nest_edit v = {.k = (dc_kernel *)k, .tmp = scratch};
    const dc_stmt *fill = NULL, *other, *before = NULL;
    const char *why = find_loop(&v, buf, loop, &fill);
    if (why != NULL)
        return why;
    if (!is_fill(&v, fill, buf, (*loop)->axis))
        return "it is filled by more than copies of an input";
    for (const dc_stmt *s = (*loop)->body; s != fill; s = s->next)
        before = s;
    const uint32_t first = before != NULL ? dc_nest_stores_to(before) : DC_NO_BUF;
    if (before != NULL && first != DC_NO_BUF && k->buf.at[first].stages != stages &&
        dc_nest_stage(k, scratch, first, stages, &other) == NULL)
        return "what is filled before it is to have as many stages";
    if (before != NULL && (first == DC_NO_BUF || k->buf.at[first].stages != stages ||
                           dc_nest_stage(k, scratch, first, stages, &other) != NULL))
        return "something stands before what fills it";
    for (const dc_stmt *s = fill->next; s != NULL; s = s->next) {
        const dc_accesses all = accesses_in(&v, s);
        for (uint32_t n = 0; n < all.n; n++)
            if (all.at[n].store &&
                (all.at[n].buf == buf || k->buf.at[all.at[n].buf].scope == DC_SCOPE_PARAM))
                return "the loop stores to it again, or to an output";
    }
    return NULL;
}
