/*
 * The schedule move window_read (jit/moves/move_impl.h): a loop copies all that its iteration reads of a
 * buffer through sliding windows.
 *
 * cache_read has a dim for each axis that a position depends on, so where windows overlap it holds
 * elements several times. Here axes that move along the same dim of the buffer, an output index and a
 * tap of the window, share one dim of the copy, which has each element once. Padding, where the tests of the load
 * fail, is copied as zeros, so the loads from the copy need no test.
 *
 * Dims are found in the tests, 0 <= 2*x + q - 1 < 28, where all axes are in the position with one
 * factor; then in what is left of the position, where factors that overlap belong to one dim. Where the
 * last dim is tested, its extent is made whole, a multiple of 8, so that vectors along it have no tail.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_in_place.h"

#include <string.h>

enum { MAX_DIMS = 8, MAX_TERMS = 16, MAX_PART = 1 << 24, WHOLE = 8 };

typedef struct part { /* an axis inside and its factor */
    uint32_t axis;
    int64_t coef;
} part;

typedef struct dim { /* of the copy: (sum of part) - lo, 0 .. extent - 1 */
    int64_t unit;    /* what one step along it is in the buffer */
    int64_t lo, extent;
    int n;
    part part[MAX_TERMS];
    bool tested;
    dc_range test; /* without the axes inside; 0 <= ix + place < n */
    uint32_t axis; /* of the copying loop */
    int64_t step;  /* in the copy */
} dim;

typedef struct window {
    dc_nest_edit *v;
    uint32_t of;
    bool *inner; /* axes of loops inside */
    dc_ix at;
    dc_pred pred, rest; /* of the load; those of its tests that no axis inside moves */
    part left[MAX_TERMS];
    int nleft;
    dim dim[MAX_DIMS];
    int n;
    uint32_t buf;
} window;

/* ---- dims ---- */

static const char *name_of(const window *w)
{
    return w->v->k->buf.at[w->of].name;
}

/* The terms of a sum that are axes inside; false where one is part of something else. */
static bool inner_terms(const window *w, dc_ix a, part *out, int *n)
{
    const dc_kernel *k = w->v->k;
    const dc_ix_node *x = &k->ix.at[a];
    *n = 0;
    if (dc_ix_loads(k, a))
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_AXIS && !w->inner[t->axis])
            continue;
        if (t->kind != DC_ATOM_AXIS && !dc_ix_uses_any(k, t->of, w->inner))
            continue;
        if (t->kind != DC_ATOM_AXIS || *n == MAX_TERMS)
            return false;
        out[(*n)++] = (part){t->axis, x->term[i].coef};
    }
    return true;
}

/* The sum without these axes. */
static dc_ix without(dc_kernel *k, dc_ix a, const part *p, int n)
{
    for (int i = 0; i < n; i++)
        a = dc_ix_add(k, a, dc_ix_mul(k, dc_ix_axis(k, p[i].axis), -p[i].coef));
    return a;
}

static void measure(const dc_kernel *k, dim *d)
{
    int64_t hi = 0;
    d->lo = 0;
    for (int i = 0; i < d->n; i++) {
        const int64_t far = d->part[i].coef * (k->axis.at[d->part[i].axis].extent - 1);
        hi += far > 0 ? far : 0;
        d->lo += far < 0 ? far : 0;
    }
    d->extent = hi - d->lo + 1;
}

static int find_left(const window *w, uint32_t axis)
{
    for (int i = 0; i < w->nleft; i++)
        if (w->left[i].axis == axis)
            return i;
    return -1;
}

/* A test whose axes are in the position, all with its factor times the same number. */
static bool add_tested(window *w, dc_range r)
{
    dim d = {.tested = true, .test = {.n = r.n}};
    if (!inner_terms(w, r.ix, d.part, &d.n))
        return dc_nest_refuse(w->v, "a test of %s is no sum of axes", name_of(w));
    if (d.n == 0) {
        w->rest = dc_pred_and(w->v->k, w->rest, r.ix, r.n);
        return true;
    }
    for (int i = 0; i < d.n; i++) {
        const int at = find_left(w, d.part[i].axis);
        const int64_t coef = at < 0 ? 0 : w->left[at].coef;
        if (at < 0 || coef % d.part[i].coef != 0 || coef / d.part[i].coef <= 0 ||
            (i > 0 && coef / d.part[i].coef != d.unit))
            return dc_nest_refuse(w->v, "a test of %s is along no dim", name_of(w));
        d.unit = coef / d.part[i].coef;
        w->left[at] = w->left[--w->nleft];
    }
    if (w->n == MAX_DIMS)
        return dc_nest_refuse(w->v, "more than %d dims", MAX_DIMS);
    d.test.ix = without(w->v->k, r.ix, d.part, d.n);
    measure(w->v->k, &d);
    w->dim[w->n++] = d;
    return true;
}

static int64_t size_of(int64_t coef)
{
    return coef < 0 ? -coef : coef;
}

/* The axes in no test, by size of their factors; one whose step is smaller than the span of a dim belongs to it. */
static bool add_left(window *w)
{
    const dc_kernel *k = w->v->k;
    dim *d = NULL;
    for (int i = 1; i < w->nleft; i++)
        for (int j = i; j > 0 && size_of(w->left[j].coef) < size_of(w->left[j - 1].coef); j--) {
            const part swap = w->left[j];
            w->left[j] = w->left[j - 1];
            w->left[j - 1] = swap;
        }
    for (int i = 0; i < w->nleft; i++) {
        const part p = w->left[i];
        const bool same = d != NULL && p.coef % d->unit == 0 && d->n < MAX_TERMS &&
                          size_of(p.coef) < d->unit * d->extent;
        if (!same && w->n == MAX_DIMS)
            return dc_nest_refuse(w->v, "more than %d dims", MAX_DIMS);
        if (!same) {
            d = &w->dim[w->n++];
            *d = (dim){.unit = size_of(p.coef)};
        }
        d->part[d->n++] = (part){p.axis, p.coef / d->unit};
        measure(k, d);
    }
    return true;
}

/* Outermost first, as in the buffer. */
static void sort_dims(window *w)
{
    for (int i = 1; i < w->n; i++)
        for (int j = i; j > 0 && w->dim[j].unit > w->dim[j - 1].unit; j--) {
            const dim swap = w->dim[j];
            w->dim[j] = w->dim[j - 1];
            w->dim[j - 1] = swap;
        }
}

static bool find_dims(window *w)
{
    w->n = 0;
    w->rest = (dc_pred){0};
    if (!inner_terms(w, w->at, w->left, &w->nleft))
        return dc_nest_refuse(w->v, "positions in %s are not linear in the axes inside",
                              name_of(w));
    for (uint32_t i = 0; i < w->pred.n; i++)
        if (!add_tested(w, w->pred.range[i]))
            return false;
    if (!add_left(w))
        return false;
    sort_dims(w);
    return true;
}

/* ---- the copy ---- */

static bool make_copy(window *w)
{
    dc_nest_edit *v = w->v;
    int64_t count = 1;
    if (w->n > 0 && w->dim[w->n - 1].tested && w->dim[w->n - 1].extent >= WHOLE)
        w->dim[w->n - 1].extent = (w->dim[w->n - 1].extent + WHOLE - 1) / WHOLE * WHOLE;
    for (int i = w->n - 1; i >= 0; i--) {
        w->dim[i].step = count;
        if (w->dim[i].extent > MAX_PART / count)
            return dc_nest_refuse(v, "the part of %s has more than %d elements", name_of(w),
                                  MAX_PART);
        count *= w->dim[i].extent;
    }
    for (int i = 0; i < w->n; i++)
        if (!dc_move_dim_axis(v, &w->dim[i].axis, w->of, i, w->dim[i].extent))
            return false;
    w->buf = dc_move_new_buffer(v, w->of, ".w", (dc_dtype)v->k->buf.at[w->of].dtype, count);
    return true;
}

/* Where the loops that were there read the copy. */
static dc_ix read_place(const window *w)
{
    dc_kernel *k = w->v->k;
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < w->n; i++) {
        const dim *d = &w->dim[i];
        at = dc_ix_add(k, at, dc_ix_const(k, -d->lo * d->step));
        for (int p = 0; p < d->n; p++)
            at = dc_ix_add(k, at,
                           dc_ix_mul(k, dc_ix_axis(k, d->part[p].axis), d->part[p].coef * d->step));
    }
    return at;
}

/*
 * Is the position in the buffer wherever the tests hold? What is tested is 0 at least and below its
 * number; the rest has its range.
 */
static bool stays_inside(window *w, dc_ix from, dc_pred pred)
{
    dc_kernel *k = w->v->k;
    int64_t lo, hi, more = 0;
    for (int i = 0; i < w->n; i++) {
        const dim *d = &w->dim[i];
        if (!d->tested)
            continue;
        const dc_ix place = dc_ix_add(k, dc_ix_axis(k, d->axis), dc_ix_const(k, d->lo));
        const dc_ix tested = dc_ix_add(k, d->test.ix, place);
        from = dc_ix_add(k, from, dc_ix_mul(k, tested, -d->unit));
        more += d->unit * (d->test.n - 1);
    }
    dc_nest_range(w->v, from, pred, (dc_pred){0}, &lo, &hi);
    return (lo >= 0 && hi + more < k->buf.at[w->of].count) ||
           dc_nest_refuse(w->v, "the copy would read outside of %s", name_of(w));
}

/* The loops that fill it. False if they would read outside the buffer. */
static bool fill(window *w, dc_stmt **out)
{
    dc_kernel *k = w->v->k;
    dc_ix from = w->at, to = dc_ix_const(k, 0);
    dc_pred pred = w->rest;
    for (int i = 0; i < w->n; i++) {
        const dim *d = &w->dim[i];
        const dc_ix place = dc_ix_add(k, dc_ix_axis(k, d->axis), dc_ix_const(k, d->lo));
        for (int p = 0; p < d->n; p++)
            from = dc_ix_add(
                k, from, dc_ix_mul(k, dc_ix_axis(k, d->part[p].axis), -d->part[p].coef * d->unit));
        from = dc_ix_add(k, from, dc_ix_mul(k, place, d->unit));
        to = dc_ix_add(k, to, dc_ix_mul(k, dc_ix_axis(k, d->axis), d->step));
        if (d->tested)
            pred = dc_pred_and(k, pred, dc_ix_add(k, d->test.ix, place), d->test.n);
    }
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] = (dc_put){w->buf, to, dc_vx_load(k, w->of, from, pred)};
    for (int i = w->n - 1; i >= 0; i--)
        set = dc_stmt_loop(k, w->dim[i].axis, set);
    *out = set;
    return stays_inside(w, from, pred);
}

/* All loads of the buffer in the list, which have to be one. */
static bool find_load(window *w, const dc_accesses *a)
{
    w->at = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const dc_access *x = &a->at[i];
        if (x->buf != w->of)
            continue;
        if (x->load == 0)
            return dc_nest_refuse(w->v, "iterations also store to %s", name_of(w));
        if (w->at != 0 && (w->at != x->at || w->pred.range != x->pred.range))
            return dc_nest_refuse(w->v, "%s is read at more than one position", name_of(w));
        w->at = x->at;
        w->pred = x->pred;
        for (const dc_path *p = x->path; p != NULL; p = p->up)
            if (w->v->k->axis.at[p->loop->axis].extent == 0)
                return dc_nest_refuse(w->v, "%s has no iterations",
                                      w->v->k->axis.at[p->loop->axis].name);
    }
    return true;
}

static bool in_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    window *w = arg;
    dc_stmt *loop = *slot, *first;
    const dc_accesses a = dc_nest_accesses(v, loop->body, NULL);
    if (!dc_access_loads(&a, w->of))
        return true;
    if (w->buf != 0)
        return dc_nest_refuse(v, "several loops read %s", name_of(w));
    w->inner = dc_nest_axis_set(v);
    dc_nest_axes_of(loop->body, w->inner);
    if (!find_load(w, &a) || !find_dims(w) || !make_copy(w) || !fill(w, &first))
        return false;
    const dc_ix place = read_place(w);
    const dc_stmt *done = NULL;
    dc_vx_map map = dc_nest_vx_map(v);
    for (uint32_t i = 0; i < a.n; i++)
        if (a.at[i].buf == w->of)
            map.to[a.at[i].load] = dc_vx_load(v->k, w->buf, place, (dc_pred){0});
    for (uint32_t i = 0; i < a.n; i++)
        if (a.at[i].buf == w->of && a.at[i].stmt != done) {
            dc_nest_replace(v, a.at[i].stmt, map);
            done = a.at[i].stmt;
        }
    dc_stmt **end = &first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = loop->body;
    loop->body = first;
    return true;
}

bool dc_move_window_read(dc_nest_edit *v, const dc_move *m)
{
    const uint32_t axis = m->axis[0];
    window w = {.v = v, .of = m->buf};
    if (!dc_move_has_buffer(v, w.of) || !dc_move_has_axis(v, axis))
        return false;
    if (v->k->buf.at[w.of].scope != DC_SCOPE_PARAM || v->k->buf.at[w.of].mode != DC_MODE_IN)
        return dc_nest_refuse(v, "%s is no input: what is there depends on what was stored",
                              name_of(&w));
    if (v->k->axis.at[axis].kind == DC_AXIS_VECTOR)
        return dc_nest_refuse(v, "%s is vectorized: nothing can stand beside its assignments",
                              v->k->axis.at[axis].name);
    return dc_nest_each_loop(v, &v->k->root, axis, in_loop, &w) &&
           (w.buf != 0 || dc_nest_refuse(v, "nothing inside %s reads %s", v->k->axis.at[axis].name,
                                         name_of(&w))) &&
           dc_nest_keeps_in_place(v, axis);
}
