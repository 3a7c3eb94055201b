/*
 * Which iterations touch the same memory. What cannot be proved is taken for a dependence.
 *
 * Two proofs: positions of different iterations are disjoint (jit/nest/nest_disjoint.c), or the buffer is
 * private to an iteration, because each iteration writes what it reads. The latter is found by following
 * the stores of a list of statements in order.
 */
#include "jit/nest/nest_dependence.h"

#include "jit/nest/nest_disjoint.h"

#include <stdlib.h>

/* Written before read ------------------------------------------------------------------------ */

enum { MAX_DIMS = 16 };

/* An element that is written by now, for all iterations of the loops that have ended. */
typedef struct fact {
    dc_ix at;
    dc_pred pred;
    dc_ix base; /* `at` in the first of these iterations, */
    struct {    /* and how each loop moves it, by growing step; */
        uint32_t axis;
        int64_t step, count;
    } dim[MAX_DIMS];
    int n;
    bool tested; /* though not in all iterations: `pred` depends on them; */
    bool one;    /* and here nothing is known other than `at` */
} fact;

/* Elements from base on that are written without a gap. */
static int64_t written_from(const fact *f)
{
    int64_t span = 1;
    for (int i = 0; i < f->n && f->dim[i].step <= span; i++)
        span += f->dim[i].step * (f->dim[i].count - 1);
    return f->one || f->tested ? 0 : span;
}

typedef struct following {
    dc_nest_edit *v;
    uint32_t buf;
    DC_VEC(fact) fact;
} following;

bool dc_pred_implied(dc_pred p, dc_pred a, dc_pred b)
{
    for (uint32_t i = 0; i < p.n; i++) {
        bool found = false;
        for (uint32_t j = 0; j < a.n + b.n && !found; j++) {
            const dc_range r = j < a.n ? a.range[j] : b.range[j - a.n];
            found = r.ix == p.range[i].ix && r.n <= p.range[i].n;
        }
        if (!found)
            return false;
    }
    return true;
}

/*
 * A digit of a position for each dim of a fact. Where a step is no multiple of the shorter one, as that of padded rows, the
 * shorter one divides what the longer one leaves. Dims may overlap, where tests keep iterations apart: whether the digits
 * make the position is for the caller to ask.
 */
static void find_digits(const following *w, const fact *f, dc_ix position, dc_ix *digit)
{
    dc_kernel *k = w->v->k;
    for (int i = f->n - 1; i >= 0; i--) {
        const int64_t step = f->dim[i].step, next = i + 1 < f->n ? f->dim[i + 1].step : 0;
        if (next % step != 0)
            position = dc_ix_mod(k, position, next);
        digit[i] = dc_ix_div(k, position, step);
        if (next != 0 && next % step == 0)
            digit[i] = dc_ix_mod(k, digit[i], next / step);
    }
}

/*
 * Is each digit of the position an iteration of its loop? The one of the longest step is the position, divided: so what tests
 * say of the position holds for it, too.
 */
static bool are_iterations(const following *w, const fact *f, const dc_access *x, dc_ix position,
                           const dc_ix *digit)
{
    for (int i = 0; i < f->n; i++) {
        int64_t lo, hi, first, last;
        dc_nest_range(w->v, digit[i], dc_access_tests(x), x->pred, &lo, &hi);
        if (i == f->n - 1) {
            dc_nest_range(w->v, position, dc_access_tests(x), x->pred, &first, &last);
            lo = first >= 0 ? dc_max_i64(lo, 0) : lo;
            hi = last >= 0 ? dc_min_i64(hi, last / f->dim[i].step) : hi;
        }
        if (lo < 0 || hi >= f->dim[i].count)
            return false;
    }
    return true;
}

/*
 * Was the element stored in the iterations that digits of its position name, under tests that hold
 * for them?
 */
static bool is_written_in(const following *w, const fact *f, const dc_access *x)
{
    dc_kernel *k = w->v->k;
    const dc_ix rest = dc_ix_add(k, x->at, dc_ix_mul(k, f->base, -1));
    dc_pred tests = f->pred;
    dc_ix at = f->at, to[MAX_DIMS];
    if (f->one || x->tile)
        return false;
    find_digits(w, f, rest, to);
    if (!are_iterations(w, f, x, rest, to))
        return false;
    for (int i = 0; i < f->n; i++) {
        for (int j = 0; j < i; j++) /* one axis after the other is replaced */
            if (dc_ix_uses(k, to[j], f->dim[i].axis) && to[i] != dc_ix_axis(k, f->dim[i].axis))
                return false;
        dc_subst s = dc_subst_axis(k, f->dim[i].axis, to[i]);
        tests = dc_subst_pred(&s, tests);
        at = dc_subst_ix(&s, at);
    }
    return at == x->at && dc_pred_implied(tests, dc_access_tests(x), x->pred);
}

static bool is_written(const following *w, const dc_access *x)
{
    dc_kernel *k = w->v->k;
    for (uint32_t i = 0; i < w->fact.n; i++) {
        const fact *f = &w->fact.at[i];
        const int64_t span = written_from(f);
        int64_t lo, hi;
        if (!dc_pred_implied(f->pred, dc_access_tests(x), x->pred)) {
            if (f->tested && is_written_in(w, f, x))
                return true;
            continue;
        }
        if (f->at == x->at && !x->tile)
            return true;
        dc_nest_range(w->v, dc_ix_add(k, x->at, dc_ix_mul(k, f->base, -1)), dc_access_tests(x),
                      x->pred, &lo, &hi);
        if ((lo + x->lo >= 0 && hi + x->hi < span) || is_written_in(w, f, x))
            return true;
    }
    return false;
}

static bool pred_loads(const dc_kernel *k, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (dc_ix_loads(k, p.range[i].ix))
            return true;
    return false;
}

static bool follow_stmt(following *w, dc_stmt *t, const dc_path *path)
{
    const dc_kernel *k = w->v->k;
    const dc_accesses a = dc_nest_accesses_of(w->v, t, path);
    for (uint32_t i = 0; i < a.n; i++)
        if (a.at[i].buf == w->buf && !a.at[i].store && !is_written(w, &a.at[i]))
            return false;
    for (uint32_t i = 0; i < a.n; i++) {
        const dc_access *x = &a.at[i];
        if (x->buf != w->buf || !x->store || t->kind == DC_STMT_TILE || dc_ix_loads(k, x->at) ||
            pred_loads(k, t->pred))
            continue;
        const fact f = {.at = x->at, .pred = t->pred, .base = x->at};
        DC_PUSH_IN(w->v->tmp, w->fact, f);
    }
    return true;
}

static void add_dim(fact *f, uint32_t axis, int64_t step, int64_t count)
{
    int i = f->n;
    if (f->n == MAX_DIMS) {
        f->one = true;
        return;
    }
    for (; i > 0 && f->dim[i - 1].step > step; i--)
        f->dim[i] = f->dim[i - 1];
    f->dim[i].axis = axis;
    f->dim[i].step = step;
    f->dim[i].count = count;
    f->n++;
}

static bool tests_use(const dc_kernel *k, dc_pred p, uint32_t axis)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (dc_ix_uses(k, p.range[i].ix, axis))
            return true;
    return false;
}

/* The loop over the axis has ended. */
static void close_fact(following *w, fact *f, uint32_t axis)
{
    dc_kernel *k = w->v->k;
    const int64_t extent = k->axis.at[axis].extent;
    bool affine = true;
    const int64_t c = dc_ix_stride(k, f->base, axis, &affine);
    const bool tested = tests_use(k, f->pred, axis);
    f->tested |= tested;
    f->one |= !affine || c < 0 || (tested && c == 0);
    if (f->one || c == 0)
        return;
    f->base = dc_ix_add(k, f->base, dc_ix_mul(k, dc_ix_axis(k, axis), -c));
    add_dim(f, axis, c, extent);
}

static bool follow_list(following *w, dc_stmt *first)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP) {
            if (!follow_stmt(w, t, NULL))
                return false;
            continue;
        }
        const uint32_t before = w->fact.n;
        if (w->v->k->axis.at[t->axis].extent == 0)
            continue;
        if (!follow_list(w, t->body))
            return false;
        for (uint32_t i = before; i < w->fact.n; i++)
            close_fact(w, &w->fact.at[i], t->axis);
    }
    return true;
}

bool dc_nest_written_first(dc_nest_edit *v, dc_stmt *first, uint32_t buf)
{
    following w = {.v = v, .buf = buf};
    return follow_list(&w, first);
}

static bool touched_outside(const dc_accesses *a, const dc_stmt *loop, uint32_t buf)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].buf == buf && !dc_path_has(a->at[i].path, loop))
            return true;
    return false;
}

static bool is_private(dc_nest_edit *v, const dc_accesses *all, dc_stmt *loop, uint32_t buf)
{
    return v->k->buf.at[buf].scope != DC_SCOPE_PARAM && !touched_outside(all, loop, buf) &&
           dc_nest_written_first(v, loop->body, buf);
}

/* Independence ------------------------------------------------------------------------------- */

/* Where there are more pairs than in any kernel of ours, the answer is that they may meet, and soon. */
static bool apart_in(dc_nest_edit *v, const dc_accesses *all, const dc_stmt *whole, uint32_t axis,
                     const bool *moves, uint32_t buf)
{
    enum { MOST_PAIRS = 1 << 20 };
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_access *f = &all->at[i];
        if (f->buf != buf || !f->store || !dc_path_has(f->path, whole))
            continue;
        for (uint32_t j = 0; j < all->n; j++) {
            const dc_access *g = &all->at[j];
            if (g->buf == buf && dc_path_has(g->path, whole) &&
                (++pairs > MOST_PAIRS || !dc_access_apart(v, f, g, axis, moves)))
                return false;
        }
    }
    return true;
}

/* Axes of loops inside, but for the one. */
static const bool *axes_inside(dc_nest_edit *v, const dc_stmt *whole, uint32_t axis)
{
    bool *moves = dc_nest_axis_set(v);
    moves[whole->axis] = true;
    dc_nest_axes_of(whole->body, moves);
    moves[axis] = false;
    return moves;
}

bool dc_nest_buffer_apart(dc_nest_edit *v, const dc_accesses *all, dc_stmt *whole, uint32_t axis,
                          uint32_t buf)
{
    return apart_in(v, all, whole, axis, axes_inside(v, whole, axis), buf);
}

/* Inside a loop of no iterations? */
static bool never(const dc_kernel *k, const dc_path *path)
{
    for (; path != NULL; path = path->up)
        if (k->axis.at[path->loop->axis].extent == 0)
            return true;
    return false;
}

/* Without those in loops of no iterations. */
static dc_accesses living(dc_nest_edit *v)
{
    const dc_accesses all = dc_nest_accesses(v, v->k->root, NULL);
    dc_accesses out = {0};
    for (uint32_t i = 0; i < all.n; i++)
        if (!never(v->k, all.at[i].path))
            DC_PUSH_IN(v->tmp, out, all.at[i]);
    return out;
}

bool dc_nest_independent(dc_nest_edit *v, dc_stmt *whole, dc_stmt *loop)
{
    dc_kernel *k = v->k;
    const dc_accesses all = living(v);
    const bool *moves = axes_inside(v, whole, loop->axis);
    if (k->axis.at[loop->axis].extent < 2)
        return true;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (!apart_in(v, &all, whole, loop->axis, moves, b) && !is_private(v, &all, loop, b))
            return dc_nest_refuse(v, "iterations of %s depend on each other, they meet in %s",
                                  k->axis.at[loop->axis].name, k->buf.at[b].name);
    return true;
}
