/*
 * States whose first axis grows (core/runtime/storage.h). In functions the size is a variable of the cell. Its number is
 * the least that no other such cell has, so that a program that makes and drops states needs as many variables as there
 * were states at once.
 */
#include "core/base/extent.h"
#include "core/runtime/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The list is ordered by number. Returns what the new one stands behind; NULL: at the head. */
static dc_growth *before_first_gap(const dc_rt *rt, uint32_t *number)
{
    dc_growth *before = NULL;
    *number = 1;
    for (dc_growth *g = rt->first->growing; g != NULL && g->number == *number; g = g->next) {
        before = g;
        ++*number;
    }
    return before;
}

dc_status dc_growth_of(dc_rt *rt, dc_job *j, const dc_type *t, const char *axis, int64_t least,
                       int64_t most, dc_growth *out)
{
    char name[80];
    *out = (dc_growth){.least = least, .most = most, .inside = *t};
    before_first_gap(rt, &out->number);
    snprintf(name, sizeof name, "%.60s#%" PRIu32, axis, out->number);
    out->inside.dim[0] =
        dc_extent_var(rt->extents, dc_name_intern_text(rt->names, name), least, most);
    return out->inside.dim[0] != DC_EXTENT_NONE
               ? DC_OK
               : dc_failf(j, DC_ERR_BOUND, "state", "no more sizes that are known at run time");
}

dc_status dc_growth_add(dc_cell *c, dc_job *j, const dc_growth *as)
{
    dc_rt *rt = c->rt;
    dc_growth *g = dc_try_alloc(sizeof *g);
    uint32_t number;
    if (g == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    *g = *as;
    g->cell = c;
    g->prev = before_first_gap(rt, &number);
    g->next = g->prev != NULL ? g->prev->next : rt->first->growing;
    *(g->prev != NULL ? &g->prev->next : &rt->first->growing) = g;
    if (g->next != NULL)
        g->next->prev = g;
    c->growth = g;
    return DC_OK;
}

void dc_growth_remove(dc_cell *c)
{
    dc_growth *g = c->growth;
    if (g == NULL)
        return;
    *(g->prev != NULL ? &g->prev->next : &c->rt->first->growing) = g->next;
    if (g->next != NULL)
        g->next->prev = g->prev;
    c->growth = NULL;
    dc_xfree(g);
}

dc_cell *dc_cell_of_size(const dc_rt *rt, int64_t var)
{
    for (const dc_growth *g = rt->first->growing; g != NULL; g = g->next)
        if (g->inside.dim[0] == var)
            return g->cell;
    return NULL;
}

dc_type dc_cell_room_type(const dc_cell *c)
{
    dc_type room = c->type;
    if (c->growth != NULL)
        room.dim[0] = c->growth->most;
    return room;
}

bool dc_cell_takes(const dc_cell *c, const dc_type *value)
{
    dc_type want = c->type;
    if (c->growth != NULL && value->rank > 0) {
        want.dim[0] = value->dim[0];
        want.name[0] = NULL;
    }
    return dc_type_agrees(&want, value);
}

dc_status dc_cell_check_size(const dc_cell *c, dc_job *j, const char *op, int64_t size)
{
    const dc_growth *g = c->growth;
    if (g == NULL || (size >= g->least && size <= g->most))
        return DC_OK;
    const dc_status failed = dc_failf(
        j, DC_ERR_BOUND, op,
        "%s would have %" PRId64 " rows: a size from %" PRId64 " to %" PRId64 " is declared",
        c->label != NULL ? c->label : "a state", size, g->least, g->most);
    if (size < g->least)
        snprintf(j->err.hint, sizeof j->err.hint,
                 "a smaller least size is declared as in %" PRId64 " <= t <= %" PRId64
                 "; what reads the state is then checked for that size, too",
                 size, g->most);
    return failed;
}
