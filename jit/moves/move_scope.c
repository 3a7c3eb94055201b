/*
 * Scopes of the buffers of a nest, for the schedule moves (jit/moves/move_impl.h): which threads may access
 * what (jit/nest/nest.h), and the scope of a local that several threads access.
 *
 * A buffer fits THREAD if one digit of its positions, (at / c) % threads, is the number of the
 * thread that accesses it, or, in loads, of another lane; or if several digits are, one for each loop over threads.
 * They become its outermost dim.
 */
#include "jit/moves/move_impl.h"

#include <string.h>

typedef struct group { /* the threads around a statement */
    int64_t threads;
    dc_ix number;       /* of the thread */
    uint32_t innermost; /* axis */
    bool lanes;
} group;

static group group_of(dc_kernel *k, const dc_path *path)
{
    if (path == NULL)
        return (group){.threads = 1, .number = dc_ix_const(k, 0), .innermost = DC_NO_AXIS};
    group g = group_of(k, path->up);
    const dc_axis *a = &k->axis.at[path->loop->axis];
    if (!dc_axis_is_thread(a->kind))
        return g;
    const int64_t extent = a->extent;
    g.lanes = a->kind == DC_AXIS_LANE;
    g.number = dc_ix_add(k, dc_ix_mul(k, g.number, extent), dc_ix_axis(k, path->loop->axis));
    g.threads *= extent;
    g.innermost = path->loop->axis;
    return g;
}

/* The innermost parallel loop around a statement, NULL if there is none. */
static const dc_stmt *parallel_loop(const dc_kernel *k, const dc_path *path)
{
    for (; path != NULL; path = path->up) {
        const uint8_t kind = k->axis.at[path->loop->axis].kind;
        if (dc_axis_is_thread(kind) || kind == DC_AXIS_GRID)
            return path->loop;
    }
    return NULL;
}

/* Are all accesses in the same innermost parallel loop? */
static bool fits_local(const dc_kernel *k, const dc_accesses *all, uint32_t buf)
{
    const dc_access *one = NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_access *x = &all->at[i];
        if (x->buf != buf)
            continue;
        if (one != NULL && parallel_loop(k, x->path) != parallel_loop(k, one->path))
            return false;
        one = x;
    }
    return true;
}

/* Rows for threads ---------------------------------------------------------------------------- */

enum { MOST_DIGITS = 6 };

typedef struct digit { /* (at / step) % n */
    int64_t step, n;
} digit;

typedef struct rows {
    int64_t threads, step;    /* of the innermost digit */
    int64_t row;              /* elements of one thread */
    digit digit[MOST_DIGITS]; /* of the number of the thread, the outermost first */
    int ndigit;
} rows;

/* Is the access under a test on the axis? Then some lanes may not execute it. */
static bool tests_use(const dc_kernel *k, const dc_access *x, uint32_t axis)
{
    for (uint32_t i = 0; i < x->pred.n; i++)
        if (dc_ix_uses(k, x->pred.range[i].ix, axis))
            return true;
    for (uint32_t i = 0; i < x->stmt->pred.n; i++)
        if (dc_ix_uses(k, x->stmt->pred.range[i].ix, axis))
            return true;
    return false;
}

/* The number of the thread whose row a position is in. */
static dc_ix digits_of(dc_kernel *k, const rows *r, dc_ix at)
{
    dc_ix number = dc_ix_const(k, 0);
    for (int i = 0; i < r->ndigit; i++) {
        const digit d = r->digit[i];
        number =
            dc_ix_add(k, dc_ix_mul(k, number, d.n), dc_ix_mod(k, dc_ix_div(k, at, d.step), d.n));
    }
    return number;
}

/* The position without these digits. */
static dc_ix place_of(dc_kernel *k, const rows *r, dc_ix at)
{
    digit left[MOST_DIGITS];
    memcpy(left, r->digit, sizeof left);
    for (int n = r->ndigit; n > 0; n--) { /* the one with the largest step first */
        int at_most = 0;
        for (int i = 1; i < n; i++)
            if (left[i].step > left[at_most].step)
                at_most = i;
        const digit d = left[at_most];
        at = dc_ix_add(k, dc_ix_mul(k, dc_ix_div(k, at, d.step * d.n), d.step),
                       dc_ix_mod(k, at, d.step));
        left[at_most] = left[n - 1];
    }
    return at;
}

/* The position in [threads][row]; 0: the access is not to a row that its thread may access. */
static dc_ix row_place(dc_kernel *k, const dc_access *x, const rows *r)
{
    const group g = group_of(k, x->path);
    const int64_t extent = g.innermost == DC_NO_AXIS ? 1 : k->axis.at[g.innermost].extent;
    const bool some = /* a phase that only the first of the threads execute */
        g.threads == extent && extent < r->threads && r->row == 1 && r->ndigit == 1;
    if ((g.threads != r->threads && !some) || dc_ix_loads(k, x->at))
        return 0;
    const dc_ix number = digits_of(k, r, x->at), place = place_of(k, r, x->at);
    if (x->tile) /* stays where it is, in one row */
        return number == g.number && r->row == r->step && x->lo >= 0 &&
                       k->ix.at[place].hi + x->hi < r->step
                   ? x->at
                   : 0;
    if (number != g.number) { /* a shuffle: the same group of lanes, the same place for all */
        const int64_t lanes = some ? r->threads : extent;
        const bool own_place = dc_ix_uses(k, place, g.innermost);
        const bool exchange = own_place && !some && extent == 2; /* jit/flat/flatten_exchange.c */
        if (x->store || !g.lanes || dc_ix_div(k, number, lanes) != dc_ix_div(k, g.number, lanes) ||
            (!exchange && (own_place || tests_use(k, x, g.innermost))))
            return 0;
    }
    return dc_ix_add(k, dc_ix_mul(k, number, r->row), place);
}

static const dc_access *first_store(const dc_accesses *all, uint32_t buf)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i].buf == buf && all->at[i].store)
            return &all->at[i];
    return NULL;
}

/* One digit by the stride of the innermost thread axis in a store, or one by each. */
static bool find_rows(dc_kernel *k, const dc_accesses *all, uint32_t buf, bool each, rows *r)
{
    const dc_access *x = first_store(all, buf);
    const int64_t threads = x != NULL ? group_of(k, x->path).threads : 1;
    digit found[MOST_DIGITS] = {0};
    int n = 0;
    if (threads < 2)
        return false;
    for (const dc_path *p = x->path; p != NULL && (each || n == 0); p = p->up) {
        const dc_axis *a = &k->axis.at[p->loop->axis];
        bool affine = true;
        if (!dc_axis_is_thread(a->kind) || a->extent < 2)
            continue;
        const int64_t step = dc_ix_stride(k, x->at, p->loop->axis, &affine);
        if (!affine || step < 1 || n == MOST_DIGITS)
            return false;
        found[n++] = (digit){step, each ? a->extent : threads};
    }
    *r = (rows){.threads = threads, .step = found[0].step, .ndigit = n};
    if (n == 0)
        return false;
    int64_t cover = 1;
    for (int i = 0; i < n; i++) {
        r->digit[i] = found[n - 1 - i];
        cover = dc_max_i64(cover, found[i].step * found[i].n);
    }
    r->row = (k->buf.at[buf].count + cover - 1) / cover * (cover / threads);
    return cover % threads == 0;
}

static bool lay_rows(dc_nest_edit *v, const dc_accesses *all, uint32_t buf, bool each)
{
    dc_kernel *k = v->k;
    dc_ix *to = DC_NEW_ARRAY(v->tmp, dc_ix, all->n);
    rows r;
    bool moved = false;
    if (!find_rows(k, all, buf, each, &r) || r.threads != dc_nest_launch(k).threads)
        return false;
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_access *x = &all->at[i];
        if (x->buf != buf)
            continue;
        to[i] = row_place(k, x, &r);
        if (to[i] == 0)
            return false;
        moved |= to[i] != x->at;
    }
    if (moved)
        dc_nest_place(v, all, buf, to);
    k->buf.at[buf].count = r.threads * r.row;
    k->buf.at[buf].scope = DC_SCOPE_THREAD;
    return true;
}

/* Makes the scope THREAD, if every access allows that. */
static bool make_thread(dc_nest_edit *v, const dc_accesses *all, uint32_t buf)
{
    return lay_rows(v, all, buf, false) || lay_rows(v, all, buf, true);
}

/* The innermost loop around all accesses to the buffer. */
static const dc_path *common_loop(const dc_accesses *all, uint32_t buf)
{
    const dc_path *common = NULL;
    bool any = false;
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_access *x = &all->at[i];
        if (x->buf != buf)
            continue;
        if (!any)
            common = x->path;
        any = true;
        while (common != NULL && !dc_path_has(x->path, common->loop))
            common = common->up;
    }
    return common;
}

/* A buffer that was private to iterations of thread loops around all its uses gets a dim for each of these loops. */
static bool widen(dc_nest_edit *v, uint32_t buf)
{
    dc_kernel *k = v->k;
    dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    for (const dc_path *p = common_loop(&all, buf); p != NULL; p = p->up) {
        if (!dc_axis_is_thread(k->axis.at[p->loop->axis].kind) ||
            dc_nest_buffer_apart(v, &all, p->loop, p->loop->axis, buf))
            continue;
        if (!dc_nest_widen(v, p->loop, buf))
            return false;
        all = dc_nest_accesses(v, k->root, NULL);
    }
    return true;
}

static bool settle(dc_nest_edit *v, uint32_t buf, bool binds)
{
    dc_kernel *k = v->k;
    const uint8_t scope = k->buf.at[buf].scope;
    dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    if (scope == DC_SCOPE_PARAM || (scope == DC_SCOPE_LOCAL && fits_local(k, &all, buf)) ||
        (scope == DC_SCOPE_GROUP && (!binds || k->buf.at[buf].fixed)))
        return true;
    if (scope == DC_SCOPE_LOCAL && !widen(v, buf))
        return false;
    all = dc_nest_accesses(v, k->root, NULL);
    if (!make_thread(v, &all, buf))
        k->buf.at[buf].scope = DC_SCOPE_GROUP;
    return true;
}

bool dc_move_settle_scopes(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const bool binds = m->kind == DC_MOVE_BLOCK || m->kind == DC_MOVE_LANE;
    bool threads = false;
    for (uint32_t a = 0; a < k->axis.n; a++)
        threads |= dc_axis_is_thread(k->axis.at[a].kind);
    for (uint32_t b = 0; b < k->buf.n && threads; b++)
        if (!settle(v, b, binds))
            return false;
    return true;
}

/* scope -------------------------------------------------------------------------------------- */

bool dc_move_scope(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t buf = m->buf;
    if (!dc_move_has_buffer(v, buf))
        return false;
    dc_buffer *b = &k->buf.at[buf];
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    if (b->scope == DC_SCOPE_PARAM)
        return dc_nest_refuse(v, "%s is a parameter, it has no other scope", b->name);
    b->fixed = false;
    if (m->scope == DC_SCOPE_LOCAL) {
        if (!fits_local(k, &all, buf))
            return dc_nest_refuse(v,
                                  "%s is reached from more than one iteration of the parallel "
                                  "loops",
                                  b->name);
        b->scope = DC_SCOPE_LOCAL;
        return true;
    }
    if (m->scope == DC_SCOPE_THREAD)
        return make_thread(v, &all, buf) ||
               dc_nest_refuse(v, "not every access to %s is to the row of its own thread", b->name);
    for (const dc_path *p = common_loop(&all, buf); p != NULL; p = p->up)
        if (dc_axis_is_thread(k->axis.at[p->loop->axis].kind) &&
            !dc_nest_buffer_apart(v, &all, p->loop, p->loop->axis, buf))
            return dc_nest_refuse(v, "threads of %s use the same elements of %s",
                                  k->axis.at[p->loop->axis].name, b->name);
    b->scope = DC_SCOPE_GROUP;
    b->fixed = true;
    return true;
}
