/*
 * compute_at: the loops that produce a local move into the loop that consumes it (jit/moves/move_impl.h).
 *
 * One dim of the local is the digit (at / step) % extent of its positions. Where each iteration of the
 * producing loops and of the consuming loop only accesses the digit of its own number, their iterations can be
 * interleaved.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_in_place.h"

typedef struct filling {
    uint32_t buf, axis;
    dc_stmt **first; /* link to the first statement that moves */
    dc_stmt *loop;   /* that they move into */
    int64_t step, extent;
} filling;

/* Finding ------------------------------------------------------------------------------------ */

static bool fills(dc_nest_edit *v, dc_stmt *t, uint32_t buf)
{
    dc_stmt *const next = t->next;
    t->next = NULL;
    const dc_accesses a = dc_nest_accesses(v, t, NULL);
    t->next = next;
    return dc_access_stores(&a, buf);
}

/* The run of statements that fill the buffer, directly before a loop over the axis. */
static bool find_fill(dc_nest_edit *v, filling *f, dc_stmt **list)
{
    dc_stmt **first = NULL;
    for (dc_stmt **s = list; *s != NULL; s = &(*s)->next) {
        const bool is_loop = (*s)->kind == DC_STMT_LOOP;
        if (is_loop && (*s)->axis == f->axis && first != NULL) {
            f->first = first;
            f->loop = *s;
            return true;
        }
        if (!fills(v, *s, f->buf))
            first = NULL;
        else if (first == NULL)
            first = s;
        if (is_loop && find_fill(v, f, &(*s)->body))
            return true;
    }
    return false;
}

/* Legality ----------------------------------------------------------------------------------- */

/* Do all accesses to the buffer in the statement have the number of the iteration as their digit? */
static bool stays(dc_nest_edit *v, const filling *f, const dc_accesses *a, uint32_t axis)
{
    dc_kernel *k = v->k;
    for (uint32_t i = 0; i < a->n; i++) {
        const dc_access *x = &a->at[i];
        if (x->buf != f->buf)
            continue;
        if (x->tile || dc_ix_loads(k, x->at) ||
            dc_ix_mod(k, dc_ix_div(k, x->at, f->step), f->extent) != dc_ix_axis(k, axis))
            return dc_nest_refuse(v, "an iteration of %s does not keep to its own part of %s",
                                  k->axis.at[axis].name, k->buf.at[f->buf].name);
    }
    return true;
}

static bool find_step(dc_nest_edit *v, filling *f, const dc_accesses *a, uint32_t axis)
{
    const dc_kernel *k = v->k;
    bool affine = true;
    f->step = 1;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].buf == f->buf && a->at[i].store) {
            f->step = dc_ix_stride(k, a->at[i].at, axis, &affine);
            break;
        }
    if (k->axis.at[axis].extent < 2)
        f->step = 1;
    return (affine && f->step > 0) || dc_nest_refuse(v, "%s does not run over a dim of %s",
                                                     k->axis.at[axis].name, k->buf.at[f->buf].name);
}

/* Is there no dependence between two statements other than through the buffer? */
static bool apart_but(dc_nest_edit *v, const filling *f, const dc_accesses *a, const dc_accesses *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++)
            if (a->at[i].buf == b->at[j].buf && a->at[i].buf != f->buf &&
                (a->at[i].store || b->at[j].store))
                return dc_nest_refuse(v, "what fills %s and %s also meet in %s",
                                      v->k->buf.at[f->buf].name, v->k->axis.at[f->axis].name,
                                      v->k->buf.at[a->at[i].buf].name);
    return true;
}

static bool may_fill(dc_nest_edit *v, const filling *f, const dc_stmt *t)
{
    const dc_kernel *k = v->k;
    const char *name = k->buf.at[f->buf].name;
    if (t->kind != DC_STMT_LOOP)
        return dc_nest_refuse(v, "%s is also filled outside of loops", name);
    const dc_axis *a = &k->axis.at[t->axis];
    if (a->kind != DC_AXIS_SERIAL)
        return dc_nest_refuse(v, "%s, which fills %s, is no serial loop", a->name, name);
    if (a->extent != f->extent)
        return dc_nest_refuse(v, "%s, which fills %s, has %lld iterations, %s has %lld", a->name,
                              name, (long long)a->extent, k->axis.at[f->axis].name,
                              (long long)f->extent);
    return !dc_nest_has_loop(t->body, f->axis) ||
           dc_nest_refuse(v, "what fills %s itself loops over %s", name, k->axis.at[f->axis].name);
}

static dc_accesses accesses_of(dc_nest_edit *v, dc_stmt *loop)
{
    dc_stmt alone = *loop;
    alone.next = NULL;
    return dc_nest_accesses(v, &alone, NULL);
}

static bool is_legal(dc_nest_edit *v, filling *f)
{
    const dc_accesses into = accesses_of(v, f->loop);
    for (dc_stmt *t = *f->first; t != f->loop; t = t->next) {
        if (!may_fill(v, f, t))
            return false;
        const dc_accesses a = accesses_of(v, t);
        if (t == *f->first && !find_step(v, f, &a, t->axis))
            return false;
        if (!stays(v, f, &a, t->axis) || !apart_but(v, f, &a, &into))
            return false;
        for (dc_stmt *u = *f->first; u != t; u = u->next) {
            const dc_accesses b = accesses_of(v, u);
            if (!apart_but(v, f, &a, &b))
                return false;
        }
    }
    return stays(v, f, &into, f->axis);
}

/* Moving ------------------------------------------------------------------------------------- */

static void move_in(dc_nest_edit *v, const filling *f)
{
    dc_stmt *head = NULL, **tail = &head;
    for (dc_stmt *t = *f->first; t != f->loop; t = t->next) {
        dc_subst s = dc_subst_axis(v->k, t->axis, dc_ix_axis(v->k, f->axis));
        dc_subst_stmt(&s, t->body);
        *tail = t->body;
        while (*tail != NULL)
            tail = &(*tail)->next;
    }
    *tail = f->loop->body;
    f->loop->body = head;
    *f->first = f->loop;
}

/* Where the buffer is private to an iteration, it loses the dim. */
static void shrink(dc_nest_edit *v, const filling *f)
{
    dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    const int64_t whole = f->step * f->extent;
    dc_ix *to = DC_NEW_ARRAY(v->tmp, dc_ix, all.n);
    for (uint32_t i = 0; i < all.n; i++) {
        const dc_ix at = all.at[i].at;
        if (all.at[i].buf != f->buf)
            continue;
        if (!dc_path_has(all.at[i].path, f->loop))
            return;
        to[i] =
            dc_ix_add(k, dc_ix_mul(k, dc_ix_div(k, at, whole), f->step), dc_ix_mod(k, at, f->step));
    }
    if (!dc_nest_written_first(v, f->loop->body, f->buf))
        return; /* what an iteration leaves there is read when the loop is entered again */
    dc_nest_place(v, &all, f->buf, to);
    k->buf.at[f->buf].count = (k->buf.at[f->buf].count + whole - 1) / whole * f->step;
}

bool dc_move_compute_at(dc_nest_edit *v, const dc_move *m)
{
    filling f = {.buf = m->buf, .axis = m->axis[0]};
    if (!dc_move_has_buffer(v, f.buf) || !dc_move_has_serial_axis(v, m, f.axis))
        return false;
    if (v->k->buf.at[f.buf].scope == DC_SCOPE_PARAM)
        return dc_nest_refuse(v, "%s is a parameter, not a local", v->k->buf.at[f.buf].name);
    f.extent = v->k->axis.at[f.axis].extent;
    if (f.extent == 0 || !find_fill(v, &f, &v->k->root))
        return dc_nest_refuse(v, "nothing that fills %s stands directly before a loop over %s",
                              v->k->buf.at[f.buf].name, v->k->axis.at[f.axis].name);
    if (!is_legal(v, &f))
        return false;
    move_in(v, &f);
    shrink(v, &f);
    return dc_nest_keeps_in_place(v, f.axis);
}
