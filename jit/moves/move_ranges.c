/*
 * The move ranges: a scatter by ranges of places (jit/moves/move_impl.h).
 *
 *   for a: y[a] = ...                     for k.r in ceil(A / N):
 *   for k: y[int(x[k])] = ...               for a.i in N: y[N*k.r + a.i] = ...
 *                                           for k: y[N*k.r + int(x[k])%N] = ... if int(x[k])/N is k.r
 *
 * Each range sees all updates and makes its own, in their order. Its places are its own, so ranges are independent.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_roles.h"

typedef struct scatter {
    dc_stmt **list; /* link to the first statement that becomes a loop over ranges */
    dc_stmt *fill;  /* NULL: none */
    dc_stmt *updates, *update;
    dc_atom place; /* a loaded integer */
    dc_ix rest;    /* of the position without it */
    int64_t coef, places;
} scatter;

/* The assignment in a nest of one loop in another, or NULL. */
static dc_stmt *only_set(dc_stmt *t)
{
    while (t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL)
        t = t->body;
    return t != NULL && t->kind == DC_STMT_SET && t->next == NULL && t->nput == 1 ? t : NULL;
}

/* The list that the loop over the axis stands in, from its first statement on. */
static dc_stmt **list_of(dc_stmt **first, uint32_t axis)
{
    for (dc_stmt *t = *first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && t->axis == axis)
            return first;
    for (dc_stmt *t = *first; t != NULL; t = t->next) {
        dc_stmt **found = t->kind == DC_STMT_LOOP ? list_of(&t->body, axis) : NULL;
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Takes the one loaded integer out of the position. */
static bool find_place(dc_nest_edit *v, scatter *s)
{
    dc_kernel *k = v->k;
    const dc_put p = s->update->put[0];
    const dc_ix_node *at = &k->ix.at[p.at];
    uint32_t n = 0;
    for (uint32_t i = 0; i < at->n; i++)
        if (k->atom.at[at->term[i].atom].kind == DC_ATOM_VALUE) {
            s->place = at->term[i].atom;
            s->coef = at->term[i].coef;
            n++;
        }
    if (n != 1 || s->coef <= 0 || k->atom.at[s->place].lo < 0)
        return false;
    s->places = k->atom.at[s->place].hi + 1;
    const dc_ix place = dc_ix_value(k, k->atom.at[s->place].value);
    s->rest = dc_ix_add(k, p.at, dc_ix_mul(k, place, -s->coef));
    return !dc_ix_loads(k, s->rest);
}

/* Does an update read of what is stored its own place alone? */
static bool keeps_to_place(dc_nest_edit *v, const scatter *s)
{
    const dc_put p = s->update->put[0];
    const dc_accesses a = dc_nest_accesses_of(v, s->update, NULL);
    for (uint32_t i = 0; i < a.n; i++)
        if (a.at[i].buf == p.buf && a.at[i].at != p.at)
            return false;
    return v->k->buf.at[p.buf].scope == DC_SCOPE_PARAM;
}

static bool is_scatter(dc_nest_edit *v, scatter *s, uint32_t axis)
{
    dc_kernel *k = v->k;
    const char *name = k->axis.at[axis].name;
    s->updates = *s->list;
    while (s->updates->axis != axis || s->updates->kind != DC_STMT_LOOP)
        s->updates = s->updates->next;
    s->fill = s->updates == *s->list ? NULL : *s->list;
    if (s->updates->next != NULL || (s->fill != NULL && s->fill->next != s->updates) ||
        dc_nest_has_loop(s->updates->body, axis))
        return dc_nest_refuse(v, "something else stands beside %s", name);
    s->update = only_set(s->updates->body);
    return (s->update != NULL && !s->update->reduces && find_place(v, s) && keeps_to_place(v, s)) ||
           dc_nest_refuse(v, "%s does not update what one loaded integer chooses", name);
}

/* Does a loop fill the same places, one after the other? */
static bool fills_places(dc_nest_edit *v, scatter *s)
{
    dc_kernel *k = v->k;
    if (s->fill->kind != DC_STMT_LOOP)
        return false;
    const dc_axis *a = &k->axis.at[s->fill->axis];
    const dc_stmt *set = only_set(s->fill->body);
    if (set == NULL || a->kind != DC_AXIS_SERIAL || a->reduce || a->extent < s->places ||
        dc_nest_has_loop(s->updates, s->fill->axis) || set->put[0].buf != s->update->put[0].buf)
        return false;
    s->places = a->extent;
    const dc_ix moves = dc_ix_mul(k, dc_ix_axis(k, s->fill->axis), s->coef);
    const dc_accesses all = dc_nest_accesses(v, s->fill->body, NULL);
    return !dc_access_loads(&all, set->put[0].buf) &&
           dc_ix_add(k, s->rest, moves) == set->put[0].at;
}

static void fill_range(dc_nest_edit *v, const scatter *s, uint32_t range, uint32_t part, int64_t n)
{
    dc_kernel *k = v->k;
    const dc_ix at = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, range), n), dc_ix_axis(k, part));
    dc_subst to = dc_subst_axis(k, s->fill->axis, at);
    dc_stmt *set = only_set(s->fill->body);
    dc_subst_stmt(&to, s->fill->body);
    s->fill->axis = part;
    set->pred = dc_pred_and(k, set->pred, at, s->places);
}

static void update_range(dc_nest_edit *v, const scatter *s, uint32_t range, int64_t n)
{
    dc_kernel *k = v->k;
    dc_put *p = &s->update->put[0];
    const dc_ix place = dc_ix_value(k, k->atom.at[s->place].value), r = dc_ix_axis(k, range);
    const dc_ix in_range = dc_ix_add(k, dc_ix_mul(k, r, n), dc_ix_mod(k, place, n));
    const dc_ix at = dc_ix_add(k, s->rest, dc_ix_mul(k, in_range, s->coef));
    const dc_accesses all = dc_nest_accesses_of(v, s->update, NULL);
    dc_vx_map map = dc_nest_vx_map(v);
    for (uint32_t i = 0; i < all.n; i++)
        if (!all.at[i].store && all.at[i].buf == p->buf)
            map.to[all.at[i].load] = dc_vx_load(k, p->buf, at, all.at[i].pred);
    dc_nest_replace(v, s->update, map);
    p->at = at;
    s->update->pred = dc_pred_and(k, s->update->pred,
                                  dc_ix_add(k, dc_ix_div(k, place, n), dc_ix_mul(k, r, -1)), 1);
}

bool dc_move_ranges(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t axis = m->axis[0];
    scatter s = {.fill = NULL};
    uint32_t range, part = DC_NO_AXIS;
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    s.list = list_of(&k->root, axis);
    if (!is_scatter(v, &s, axis))
        return false;
    if (s.fill != NULL && !fills_places(v, &s))
        return dc_nest_refuse(v, "what stands before %s does not fill what it updates",
                              k->axis.at[axis].name);
    if (m->count >= s.places)
        return dc_nest_refuse(v, "%s updates %lld places only", k->axis.at[axis].name,
                              (long long)s.places);
    const int64_t ranges = (s.places + m->count - 1) / m->count;
    if (!dc_move_new_axis(v, &range, axis, ranges, false, "r") ||
        (s.fill != NULL && !dc_move_new_axis(v, &part, s.fill->axis, m->count, false, "i")))
        return false;
    if (s.fill != NULL) {
        dc_axis_inherit(k, part, s.fill->axis);
        fill_range(v, &s, range, part, m->count);
    }
    update_range(v, &s, range, m->count);
    *s.list = dc_stmt_loop(k, range, *s.list);
    return true;
}
