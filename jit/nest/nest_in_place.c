/* Inputs whose memory an output may have (jit/nest/nest_in_place.h). */
#include "jit/nest/nest_in_place.h"

#include "jit/nest/nest_disjoint.h"

/* Do all loads of buf that the statement makes stand at `at`? Those of positions and tests, too. */
static bool reads_only_at(dc_kernel *k, const dc_stmt *t, uint32_t buf, dc_ix at)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    bool *seen = DC_NEW_ARRAY(&k->arena, bool, k->vx.n), only = true;
    for (uint32_t i = 0; i < t->nlimit; i++)
        only = only && t->limit[i].buf != buf; /* at any time */
    dc_pred_mark(k, t->pred, seen);
    for (uint32_t i = 0; i < t->nput; i++) {
        seen[t->put[i].value] = true;
        dc_ix_mark(k, t->put[i].at, seen);
    }
    dc_vx_mark_parts(k, seen);
    for (dc_vx v = 1; v < k->vx.n && only; v++)
        only = !seen[v] || k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf ||
               k->vx.at[v].at == at;
    dc_arena_rewind(&k->arena, mark);
    return only;
}

typedef struct allowing { /* input `buf` in the memory of `out`, which is first stored at `at` */
    uint32_t buf, out;
    dc_ix at;
    bool stored;
} allowing;

/* Only statements up to the first that stores may read the input, and there at its own position. */
static bool stmt_allows(dc_kernel *k, const dc_stmt *first, allowing *w)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            if (!stmt_allows(k, t->body, w))
                return false;
            continue;
        }
        if (!reads_only_at(k, t, w->buf, t->reduces || w->stored ? 0 : w->at))
            return false;
        for (uint32_t i = 0; i < t->nput; i++)
            w->stored |= t->put[i].buf == w->out;
    }
    return true;
}

static dc_ix store_map(const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            const dc_ix at = store_map(t->body, buf);
            if (at != 0)
                return at;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf)
                return t->put[i].at;
    }
    return 0;
}

bool dc_nest_in_place(dc_kernel *k, const dc_stmt *first, uint32_t out, uint32_t in)
{
    const dc_buffer *a = &k->buf.at[out], *b = &k->buf.at[in];
    if (a->dtype != b->dtype || a->count != b->count)
        return false;
    allowing w = {.buf = in, .out = out, .at = store_map(first, out)};
    return stmt_allows(k, first, &w);
}

/* May the parameter stored to live in the memory of the input, as the kernel was lowered? */
static bool may_be_input(dc_kernel *k, uint32_t out, uint32_t in)
{
    const dc_buffer *b = &k->buf.at[out];
    return b->scope == DC_SCOPE_PARAM && b->mode != DC_MODE_IN &&
           dc_nest_in_place(k, k->naive != NULL ? k->naive : k->root, out, in);
}

/* In every parallel loop round both accesses: does no iteration read what another one stores? */
static bool is_parallel_apart(dc_nest_edit *v, const dc_access *load, const dc_access *store)
{
    const dc_kernel *k = v->k;
    bool *inside = dc_nest_axis_set(v);
    for (const dc_path *p = load->path; p != NULL; p = p->up) {
        const dc_axis *a = &k->axis.at[p->loop->axis];
        const bool parallel = dc_axis_is_thread(a->kind) || a->kind == DC_AXIS_GRID;
        dc_nest_axes_of(p->loop->body, inside);
        if (parallel && a->extent > 1 && dc_path_has(store->path, p->loop) &&
            !dc_access_apart(v, load, store, p->loop->axis, inside))
            return false;
    }
    return true;
}

bool dc_nest_may_be_in_place(dc_nest_edit *v, uint32_t buf)
{
    const dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    const dc_buffer *in = &k->buf.at[buf];
    bool any = false;
    for (uint32_t o = 0; o < all.n && in->mode == DC_MODE_IN; o++) {
        const dc_buffer *out = &k->buf.at[all.at[o].buf];
        if (!all.at[o].store || out->scope != DC_SCOPE_PARAM || out->dtype != in->dtype ||
            out->count != in->count)
            continue;
        bool apart = true;
        for (uint32_t i = 0; i < all.n && apart; i++)
            apart = all.at[i].buf != buf || is_parallel_apart(v, &all.at[i], &all.at[o]);
        any |= apart;
    }
    return any;
}

/* In every loop round both accesses: does no iteration read what another one stores? */
static bool are_apart(dc_nest_edit *v, const dc_access *load, const dc_access *store)
{
    const dc_kernel *k = v->k;
    bool *inside = dc_nest_axis_set(v);
    for (const dc_path *p = load->path; p != NULL; p = p->up) {
        const uint32_t axis = p->loop->axis;
        if (!dc_path_has(store->path, p->loop) || k->axis.at[axis].extent < 2)
            continue;
        dc_nest_axes_of(p->loop->body, inside);
        if (!dc_access_apart(v, load, store, axis, inside))
            return dc_nest_refuse(v,
                                  "%s may be updated in place: an iteration of %s would read what "
                                  "another one stores to %s",
                                  k->buf.at[load->buf].name, k->axis.at[axis].name,
                                  k->buf.at[store->buf].name);
    }
    return true;
}

static bool is_inside(const dc_path *path, uint32_t axis)
{
    for (; path != NULL; path = path->up)
        if (path->loop->axis == axis)
            return true;
    return false;
}

bool dc_nest_keeps_in_place(dc_nest_edit *v, uint32_t axis)
{
    const dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    for (uint32_t i = 0; i < all.n; i++) {
        const dc_access *x = &all.at[i];
        if (x->store || k->buf.at[x->buf].scope != DC_SCOPE_PARAM ||
            k->buf.at[x->buf].mode != DC_MODE_IN || !is_inside(x->path, axis))
            continue;
        for (uint32_t o = 0; o < all.n; o++)
            if (all.at[o].store && may_be_input(v->k, all.at[o].buf, x->buf) &&
                !are_apart(v, x, &all.at[o]))
                return false;
    }
    return true;
}
