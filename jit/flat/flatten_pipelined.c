/*
 * Rows whose last part is stored while the next row is computed.
 *
 * A kernel that goes by rows computes with a row in the caches, then stores it past them: in bursts,
 * memory idle in between, arithmetic idle meanwhile. Where a part P before the last part L goes round
 * as often and only fills buffers of the thread, row i of L is done in the loop of P over row i + 1:
 *
 *   for i in begin .. end:   parts before P of row i;  L of row i - 1 with P of row i;  parts after P
 *
 * without the row that is not there at both ends. Every element is computed as before, so bits are
 * the same. It is right where what L reads of the thread's buffers is not written in between: not by
 * the parts before P, and by P only at the place that L has read in the same turn.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/nest_access.h"

static bool is_serial(const dc_kernel *k, const dc_stmt *s)
{
    return s->kind == DC_STMT_LOOP && k->axis.at[s->axis].kind == DC_AXIS_SERIAL &&
           k->axis.at[s->axis].extent > 1;
}

/* A loop round one assignment, nothing beside any of its loops; NULL else. */
static const dc_stmt *only_set(const dc_stmt *s)
{
    while (s->kind == DC_STMT_LOOP && s->body != NULL && s->body->next == NULL)
        s = s->body;
    return s->kind == DC_STMT_SET && !s->reduces ? s : NULL;
}

static bool stores_late(const dc_kernel *k, const dc_stmt *s)
{
    const dc_stmt *set = is_serial(k, s) ? only_set(s) : NULL;
    for (uint32_t n = 0; set != NULL && n < set->nput; n++)
        if (!k->buf.at[set->put[n].buf].stream)
            return false;
    return set != NULL;
}

static bool fills_own(const dc_kernel *k, const dc_stmt *s)
{
    const dc_stmt *set = is_serial(k, s) ? only_set(s) : NULL;
    for (uint32_t n = 0; set != NULL && n < set->nput; n++)
        if (k->buf.at[set->put[n].buf].scope == DC_SCOPE_PARAM)
            return false;
    return set != NULL;
}

/* A place of loop `from` as that of loop `to`, whose axes stand alike; 0: they do not. */
static dc_ix in_terms_of(dc_kernel *k, dc_ix at, const dc_stmt *from, const dc_stmt *to)
{
    for (; from->kind == DC_STMT_LOOP; from = from->body, to = to->body) {
        if (to->kind != DC_STMT_LOOP ||
            k->axis.at[from->axis].extent != k->axis.at[to->axis].extent)
            return 0;
        dc_subst s = dc_subst_axis(k, from->axis, dc_ix_axis(k, to->axis));
        at = dc_subst_ix(&s, at);
    }
    return to->kind == DC_STMT_SET ? at : 0;
}

/* Is another turn of the loop another place, whatever the loops inside it do? */
static bool turns_apart(dc_kernel *k, dc_ix at, uint32_t axis)
{
    bool affine = true;
    const int64_t step = dc_ix_stride(k, at, axis, &affine);
    const dc_ix rest = dc_ix_add(k, at, dc_ix_mul(k, dc_ix_axis(k, axis), -step));
    return affine && k->ix.at[rest].hi - k->ix.at[rest].lo < step;
}

static dc_accesses accesses_of(flattener *l, const dc_stmt *s)
{
    dc_nest_edit v = {.k = l->k, .tmp = &l->j->scratch};
    dc_stmt *one = DC_NEW(&l->j->scratch, dc_stmt);
    *one = *s;
    one->next = NULL;
    return dc_nest_accesses(&v, one, NULL);
}

/* Does every element of the thread's that `late` reads outlive the parts from `first` to `with`? */
static bool outlives(flattener *l, const dc_stmt *first, const dc_stmt *with, const dc_stmt *late)
{
    const dc_accesses read = accesses_of(l, late);
    for (const dc_stmt *s = first; s != with->next; s = s->next) {
        const dc_accesses done = accesses_of(l, s);
        for (uint32_t r = 0; r < read.n; r++)
            for (uint32_t w = 0; w < done.n; w++) {
                const dc_access *a = &read.at[r], *b = &done.at[w];
                if (a->store || !b->store || a->buf != b->buf)
                    continue;
                if (s != with || in_terms_of(l->k, b->at, with, late) != a->at ||
                    !turns_apart(l->k, a->at, late->axis))
                    return false;
            }
    }
    return true;
}

/* The part in whose loop the last one can be done a row late; NULL: there is none. */
static const dc_stmt *part_beside(flattener *l, const dc_stmt *first, const dc_stmt *late)
{
    const dc_stmt *with = NULL;
    for (const dc_stmt *s = first; s != late; s = s->next)
        if (fills_own(l->k, s) && l->k->axis.at[s->axis].extent == l->k->axis.at[late->axis].extent)
            with = s;
    return with != NULL && outlives(l, first, with, late) ? with : NULL;
}

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
                         const dc_stmt *with, const dc_stmt *late)
{
    const dc_fv counter = open_loop(l, with);
    dc_fb_if(l->b, has_late);
    l->bind[rows] = before;
    flatten_turn(l, late, counter);
    dc_fb_end(l->b);
    l->bind[rows] = here;
    flatten_turn(l, with, counter);
    dc_fb_end(l->b);
}

bool dc_flatten_pipelined(flattener *l, const dc_stmt *rows, dc_fv begin, dc_fv end, dc_fv first)
{
    dc_fbuild *b = l->b;
    const dc_stmt *late = rows->body;
    while (late != NULL && late->next != NULL)
        late = late->next;
    if (late == NULL || !stores_late(l->k, late))
        return false;
    const dc_stmt *with = part_beside(l, rows->body, late);
    if (with == NULL)
        return false;
    const dc_fv one = dc_fb_const(b, DC_INDEX, 1, 1);
    const dc_fv counter = dc_fb_loop(b, begin, dc_fb_op2(b, DC_K_ADD, end, one));
    const dc_fv has_row = dc_fb_op2(b, DC_K_LT, counter, end);
    const dc_fv has_late = dc_fb_op2(b, DC_K_LT, begin, counter);
    const dc_fv row = dc_fb_op2(b, DC_K_SUB, counter, first);
    const bind here = {.kind = BIND_VALUE, .v = row};
    const bind before = {.kind = BIND_VALUE, .v = dc_fb_op2(b, DC_K_SUB, row, one)};
    l->bind[rows->axis] = here;
    dc_fb_if(b, has_row);
    flatten_some(l, rows->body, with);
    dc_fb_end(b);
    l->bind[rows->axis] = before;
    dc_fb_if(b, dc_fb_op2(b, DC_K_LT, has_row, has_late)); /* behind the last */
    flatten_turn(l, late, open_loop(l, late));
    dc_fb_end(b);
    dc_fb_end(b);
    dc_fb_if(b, has_row);
    flatten_both(l, rows->axis, here, before, has_late, with, late);
    flatten_some(l, with->next, late);
    dc_fb_end(b);
    dc_fb_end(b);
    l->bind[rows->axis] = (bind){0};
    return true;
}
