/* Walks over a nest: its loops, its accesses with the loops around them; rewriting of loads. */
#include "jit/nest/nest_access.h"

#include "jit/nest/matrix_tile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LOCAL = 1 << 26 }; /* elements */

bool dc_nest_refuse(dc_nest_edit *v, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    if (v->why != NULL)
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    v->why = dc_arena_strdup(&v->k->arena, text);
    return false;
}

/* Accesses ----------------------------------------------------------------------------------- */

typedef struct gathering {
    dc_nest_edit *v;
    dc_stmt *stmt;
    const dc_path *path;
    bool *seen; /* by value */
    bool testing;
    dc_accesses out;
} gathering;

static void gather_vx(gathering *g, dc_vx a);

static void gather_ix(gathering *g, dc_ix a)
{
    const dc_ix_node *x = &g->v->k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &g->v->k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_DIV || t->kind == DC_ATOM_MOD)
            gather_ix(g, t->of);
        else if (t->kind == DC_ATOM_VALUE)
            gather_vx(g, t->value);
    }
}

static void gather_pred(gathering *g, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        gather_ix(g, p.range[i].ix);
}

static void gather_vx(gathering *g, dc_vx a)
{
    const dc_vx_node *n = &g->v->k->vx.at[a];
    if (g->seen[a])
        return;
    g->seen[a] = true;
    if (n->kind == DC_VX_LOAD || n->kind == DC_VX_INDEX)
        gather_ix(g, n->at);
    gather_pred(g, n->pred);
    for (int i = 0; i < n->n; i++)
        gather_vx(g, n->in[i]);
    if (n->kind == DC_VX_LOAD) {
        const dc_access x = {.buf = n->buf,
                             .at = n->at,
                             .pred = n->pred,
                             .load = a,
                             .test = g->testing,
                             .stmt = g->stmt,
                             .path = g->path};
        DC_PUSH_IN(g->v->tmp, g->out, x);
    }
}

static void push_operand(gathering *g, const dc_tile_operand *o, int rows, int cols, bool store)
{
    const int64_t down = (rows - 1) * o->row, right = (cols - 1) * o->col;
    const dc_access x = {.buf = o->buf,
                         .at = o->at,
                         .store = store,
                         .tile = true,
                         .lo = dc_min_i64(down, 0) + dc_min_i64(right, 0),
                         .hi = dc_max_i64(down, 0) + dc_max_i64(right, 0),
                         .stmt = g->stmt,
                         .path = g->path};
    gather_ix(g, o->at);
    DC_PUSH_IN(g->v->tmp, g->out, x);
}

static void gather_stmt(gathering *g)
{
    const dc_stmt *t = g->stmt;
    g->seen = DC_NEW_ARRAY(g->v->tmp, bool, g->v->k->vx.n);
    g->testing = true;
    gather_pred(g, t->pred);
    g->testing = false;
    if (t->kind == DC_STMT_TILE) {
        const dc_tile_row *r = dc_tile_row_of(t->tile->which);
        push_operand(g, &t->tile->a, r->m, r->k, false);
        push_operand(g, &t->tile->b, r->k, r->n, false);
        push_operand(g, &t->tile->c, r->m, r->n, false);
        push_operand(g, &t->tile->c, r->m, r->n, true);
    }
    for (uint32_t i = 0; i < t->nput; i++) {
        gather_ix(g, t->put[i].at);
        gather_vx(g, t->put[i].value);
    }
    for (uint32_t i = 0; i < t->nput; i++) {
        const dc_access x = {.buf = t->put[i].buf,
                             .at = t->put[i].at,
                             .put = i,
                             .store = true,
                             .stmt = g->stmt,
                             .path = g->path};
        DC_PUSH_IN(g->v->tmp, g->out, x);
    }
}

static void gather_list(gathering *g, dc_stmt *first, const dc_path *up)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            dc_path *p = DC_NEW(g->v->tmp, dc_path);
            *p = (dc_path){up, t};
            gather_list(g, t->body, p);
            continue;
        }
        g->stmt = t;
        g->path = up;
        gather_stmt(g);
    }
}

dc_accesses dc_nest_accesses(dc_nest_edit *v, dc_stmt *first, const dc_path *up)
{
    gathering g = {.v = v};
    gather_list(&g, first, up);
    return g.out;
}

dc_accesses dc_nest_accesses_of(dc_nest_edit *v, dc_stmt *stmt, const dc_path *up)
{
    gathering g = {.v = v, .stmt = stmt, .path = up};
    gather_stmt(&g);
    return g.out;
}

bool dc_path_has(const dc_path *path, const dc_stmt *loop)
{
    for (; path != NULL; path = path->up)
        if (path->loop == loop)
            return true;
    return false;
}

bool dc_access_loads(const dc_accesses *a, uint32_t buf)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].buf == buf && !a->at[i].store)
            return true;
    return false;
}

bool dc_access_stores(const dc_accesses *a, uint32_t buf)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].buf == buf && a->at[i].store)
            return true;
    return false;
}

/* Loops and axes ----------------------------------------------------------------------------- */

bool dc_nest_each_loop(dc_nest_edit *v, dc_stmt **first, uint32_t axis, dc_loop_fn see, void *arg)
{
    for (dc_stmt **s = first; *s != NULL; s = &(*s)->next) {
        if ((*s)->kind != DC_STMT_LOOP)
            continue;
        if ((*s)->axis == axis) {
            if (!see(v, s, arg))
                return false;
        } else if (!dc_nest_each_loop(v, &(*s)->body, axis, see, arg)) {
            return false;
        }
    }
    return true;
}

bool dc_nest_has_loop(const dc_stmt *first, uint32_t axis)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && (t->axis == axis || dc_nest_has_loop(t->body, axis)))
            return true;
    return false;
}

void dc_nest_axes_of(const dc_stmt *first, bool *set)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP) {
            set[t->axis] = true;
            dc_nest_axes_of(t->body, set);
        }
}

bool *dc_nest_axis_set(dc_nest_edit *v)
{
    return DC_NEW_ARRAY(v->tmp, bool, v->k->axis.n);
}

static bool any_of(const dc_kernel *k, dc_axes axes, const bool *set)
{
    for (uint32_t a = 0; a < k->axis.n && a / 64 < axes.nword; a++)
        if (dc_axes_has(axes, a) && set[a])
            return true;
    return false;
}

bool dc_vx_uses_any(const dc_kernel *k, dc_vx a, const bool *set)
{
    return any_of(k, k->vx.at[a].axes, set);
}

bool dc_ix_uses_any(const dc_kernel *k, dc_ix a, const bool *set)
{
    return any_of(k, k->ix.at[a].axes, set);
}

bool dc_ix_loads(const dc_kernel *k, dc_ix a)
{
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_VALUE)
            return true;
        if (t->kind != DC_ATOM_AXIS && dc_ix_loads(k, t->of))
            return true;
    }
    return false;
}

/* Rewriting ---------------------------------------------------------------------------------- */

dc_vx_map dc_nest_vx_map(dc_nest_edit *v)
{
    return (dc_vx_map){DC_NEW_ARRAY(v->tmp, dc_vx, v->k->vx.n), v->k->vx.n};
}

void dc_nest_replace(dc_nest_edit *v, dc_stmt *stmt, dc_vx_map map)
{
    dc_kernel *k = v->k;
    dc_subst s = dc_subst_axis(k, DC_NO_AXIS, dc_ix_const(k, 0));
    dc_stmt *const next = stmt->next;
    memcpy(s.vxmap, map.to, map.n * sizeof *map.to);
    stmt->next = NULL;
    dc_subst_stmt(&s, stmt);
    stmt->next = next;
}

bool dc_nest_widen(dc_nest_edit *v, dc_stmt *loop, uint32_t buf)
{
    dc_kernel *k = v->k;
    const int64_t extent = k->axis.at[loop->axis].extent, count = k->buf.at[buf].count;
    if (count > 0 && extent > MAX_LOCAL / count)
        return dc_nest_refuse(v, "%s would get an element for each iteration of %s, too many",
                              k->buf.at[buf].name, k->axis.at[loop->axis].name);
    dc_subst s = dc_subst_buf(k, buf, dc_ix_mul(k, dc_ix_axis(k, loop->axis), count));
    dc_subst_stmt(&s, loop->body);
    k->buf.at[buf].count = count * extent;
    return true;
}

void dc_nest_place(dc_nest_edit *v, const dc_accesses *all, uint32_t buf, const dc_ix *to)
{
    dc_vx_map map = dc_nest_vx_map(v);
    const dc_stmt *done = NULL; /* accesses of a statement follow one another */
    for (uint32_t i = 0; i < all->n; i++)
        if (all->at[i].buf == buf && all->at[i].load != 0)
            map.to[all->at[i].load] = dc_vx_load(v->k, buf, to[i], all->at[i].pred);
    for (uint32_t i = 0; i < all->n; i++) {
        const dc_access *x = &all->at[i];
        if (x->buf != buf)
            continue;
        if (x->load != 0 && x->stmt != done)
            dc_nest_replace(v, x->stmt, map);
        done = x->stmt;
    }
    for (uint32_t i = 0; i < all->n; i++) /* last: replacing goes over these positions too */
        if (all->at[i].buf == buf && all->at[i].store)
            all->at[i].stmt->put[all->at[i].put].at = to[i];
}

bool dc_nest_fits(dc_nest_edit *v, int64_t a, int64_t b)
{
    const dc_kernel *k = v->k;
    const int64_t times = a / b + 1, limit = INT64_MAX / 4;
    for (uint32_t i = 1; i < k->ix.n; i++)
        if (k->ix.at[i].lo < -limit / times || k->ix.at[i].hi > limit / times)
            return dc_nest_refuse(v, "positions would leave 64 bits");
    return true;
}

/* Integers that positions are made of ---------------------------------------------------------- */

static bool value_uses(const dc_kernel *k, dc_atom atom, const bool *set)
{
    const dc_atom_node *t = &k->atom.at[atom];
    if (t->kind == DC_ATOM_AXIS)
        return false;
    if (t->kind == DC_ATOM_VALUE)
        return dc_vx_uses_any(k, t->value, set);
    const dc_ix_node *x = &k->ix.at[t->of];
    for (uint32_t i = 0; i < x->n; i++)
        if (value_uses(k, x->term[i].atom, set))
            return true;
    return false;
}

static bool ix_picks(const dc_kernel *k, dc_ix a, const bool *set)
{
    const dc_ix_node *x = &k->ix.at[a];
    for (uint32_t i = 0; i < x->n; i++)
        if (value_uses(k, x->term[i].atom, set))
            return true;
    return false;
}

static bool pred_picks(const dc_kernel *k, dc_pred p, const bool *set)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (ix_picks(k, p.range[i].ix, set))
            return true;
    return false;
}

/* Does a value or test that is no access depend on an integer that is loaded along the axis? */
static bool values_pick(const dc_kernel *k, const bool *set)
{
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if ((n->kind == DC_VX_INDEX && ix_picks(k, n->at, set)) ||
            (n->kind == DC_VX_TEST && pred_picks(k, n->pred, set)))
            return true;
    }
    return false;
}

bool dc_nest_picks_along(dc_nest_edit *v, uint32_t axis)
{
    const dc_kernel *k = v->k;
    bool *set = dc_nest_axis_set(v);
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    set[axis] = true;
    bool picks = values_pick(k, set);
    for (uint32_t i = 0; i < all.n && !picks; i++) {
        const dc_access *x = &all.at[i];
        picks = ix_picks(k, x->at, set) || pred_picks(k, x->pred, set) ||
                pred_picks(k, x->stmt->pred, set);
    }
    return picks;
}
