/*
 * A pipelined loop over rows (jit/nest/nest_traffic.h), in the order that its header gives:
 *
 *   for i in begin .. end:   parts before `with` of row i;  `late` of row i - 1 with `with` of row i;  parts after `with`
 *
 * without the row that is not there at both ends.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/nest_traffic.h"

static void flatten_some(flattener *l, const dc_stmt *from, const dc_stmt *to)
{
    for (const dc_stmt *s = from; s != to; s = s->next)
        dc_flatten_stmt(l, s);
}

static void flatten_turn(flattener *l, const dc_stmt *s, dc_fv counter)
{
    l->bind[s->axis] = (bind){.kind = BIND_VALUE, .v = counter};
    dc_flatten_list(l, s->body);
    l->bind[s->axis] = (bind){0};
}

static dc_fv open_loop(flattener *l, const dc_stmt *s)
{
    const uint64_t n = (uint64_t)l->k->axis.at[s->axis].extent;
    return dc_fb_loop(l->b, dc_fb_const(l->b, DC_INDEX, 1, 0), dc_fb_const(l->b, DC_INDEX, 1, n));
}

/* `with` of row `here`, and in each turn before it `late` of row `before`, if there is one. */
static void flatten_both(flattener *l, uint32_t rows, bind here, bind before, dc_fv has_late,
                         const dc_overlap *o)
{
    const dc_fv counter = open_loop(l, o->with);
    dc_fb_if(l->b, has_late);
    l->bind[rows] = before;
    flatten_turn(l, o->late, counter);
    dc_fb_end(l->b);
    l->bind[rows] = here;
    flatten_turn(l, o->with, counter);
    dc_fb_end(l->b);
}

void dc_flatten_pipelined(flattener *l, const dc_stmt *rows, dc_fv begin, dc_fv end, dc_fv first)
{
    dc_fbuild *b = l->b;
    dc_overlap o;
    const char *why = dc_nest_overlap(l->k, &l->j->scratch, rows, &o);
    if (why != NULL)
        DC_BUG("%s: a loop that cannot be pipelined: %s", l->k->name, why);
    const dc_fv one = dc_fb_const(b, DC_INDEX, 1, 1);
    const dc_fv counter = dc_fb_loop(b, begin, dc_fb_op2(b, DC_K_ADD, end, one));
    const dc_fv has_row = dc_fb_op2(b, DC_K_LT, counter, end);
    const dc_fv has_late = dc_fb_op2(b, DC_K_LT, begin, counter);
    const dc_fv row = dc_fb_op2(b, DC_K_SUB, counter, first);
    const bind here = {.kind = BIND_VALUE, .v = row};
    const bind before = {.kind = BIND_VALUE, .v = dc_fb_op2(b, DC_K_SUB, row, one)};
    l->bind[rows->axis] = here;
    dc_fb_if(b, has_row);
    flatten_some(l, rows->body, o.with);
    dc_fb_end(b);
    l->bind[rows->axis] = before;
    dc_fb_if(b, dc_fb_op2(b, DC_K_LT, has_row, has_late)); /* behind the last */
    flatten_turn(l, o.late, open_loop(l, o.late));
    dc_fb_end(b);
    dc_fb_end(b);
    dc_fb_if(b, has_row);
    flatten_both(l, rows->axis, here, before, has_late, &o);
    flatten_some(l, o.with->next, o.late);
    dc_fb_end(b);
    dc_fb_end(b);
    l->bind[rows->axis] = (bind){0};
}
