/*
 * Schedule moves that make loops parallel (jit/moves/move_impl.h): grid, block, lane; and how parallel
 * loops may be nested (jit/nest/nest.h).
 */
#include "jit/moves/move_impl.h"

enum { MAX_THREADS = 1024 };

/* grid --------------------------------------------------------------------------------------- */

/* Is the axis among the arguments? */
static bool is_named(const dc_move *m, uint32_t axis)
{
    for (uint32_t i = 0; i < m->naxis; i++)
        if (m->axis[i] == axis)
            return true;
    return false;
}

/* Are the elements that two accesses touch in disjoint ranges of the buffer? */
static bool ranges_disjoint(dc_nest_edit *v, const dc_access *f, const dc_access *g)
{
    int64_t lo[2], hi[2];
    dc_nest_range(v, f->at, dc_access_tests(f), f->pred, &lo[0], &hi[0]);
    dc_nest_range(v, g->at, dc_access_tests(g), g->pred, &lo[1], &hi[1]);
    return hi[0] + f->hi < lo[1] + g->lo || hi[1] + g->hi < lo[0] + f->lo;
}

static bool nests_independent(dc_nest_edit *v)
{
    const dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    for (const dc_stmt *t = k->root; t != NULL; t = t->next)
        for (uint32_t i = 0; i < all.n; i++)
            for (uint32_t j = 0; j < all.n; j++) {
                const dc_access *f = &all.at[i], *g = &all.at[j];
                if (f->store && f->buf == g->buf && dc_path_has(f->path, t) &&
                    !dc_path_has(g->path, t) && !ranges_disjoint(v, f, g))
                    return dc_nest_refuse(v,
                                          "the loops at the root depend on each other, they "
                                          "meet in %s",
                                          k->buf.at[f->buf].name);
            }
    return true;
}

static bool may_be_grid(dc_nest_edit *v, const dc_move *m, dc_stmt *loop)
{
    const dc_kernel *k = v->k;
    if (loop->kind != DC_STMT_LOOP)
        return dc_nest_refuse(v, "there is more than loops at the root");
    const dc_axis *a = &k->axis.at[loop->axis];
    if (!is_named(m, loop->axis))
        return dc_nest_refuse(v, "%s is a loop at the root too: grid takes all of them", a->name);
    if (a->reduce)
        return dc_nest_refuse(v, "%s is a reduction, its iterations add up", a->name);
    return dc_nest_independent(v, loop, loop);
}

bool dc_move_grid(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    for (uint32_t i = 0; i < m->naxis; i++) {
        const uint32_t axis = m->axis[i];
        if (!dc_move_has_serial_axis(v, m, axis))
            return false;
        bool at_root = false;
        for (const dc_stmt *t = k->root; t != NULL; t = t->next) {
            at_root |= t->kind == DC_STMT_LOOP && t->axis == axis;
            if (t->kind == DC_STMT_LOOP && dc_nest_has_loop(t->body, axis))
                return dc_nest_refuse(v, "%s also stands inside another loop",
                                      k->axis.at[axis].name);
        }
        if (!at_root)
            return dc_nest_refuse(v, "%s is not an outermost loop", k->axis.at[axis].name);
    }
    for (dc_stmt *t = k->root; t != NULL; t = t->next)
        if (!may_be_grid(v, m, t))
            return false;
    if (k->root->next != NULL && !nests_independent(v))
        return false;
    for (const dc_stmt *t = k->root; t != NULL; t = t->next)
        k->axis.at[t->axis].kind = DC_AXIS_GRID;
    return true;
}

/* block, lane -------------------------------------------------------------------------------- */

static bool has_threads(const dc_kernel *k, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP &&
            (dc_axis_is_thread(k->axis.at[t->axis].kind) || has_threads(k, t->body)))
            return true;
    return false;
}

/*
 * Group and thread memory that is used in one iteration of the loop only gets a copy for each iteration, since
 * iterations now run at the same time.
 */
static bool spread(dc_nest_edit *v, dc_stmt *loop)
{
    dc_kernel *k = v->k;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const bool shared =
            k->buf.at[b].scope == DC_SCOPE_GROUP || k->buf.at[b].scope == DC_SCOPE_THREAD;
        bool inside = false, outside = false;
        for (uint32_t i = 0; i < all.n; i++)
            if (all.at[i].buf == b) {
                inside |= dc_path_has(all.at[i].path, loop);
                outside |= !dc_path_has(all.at[i].path, loop);
            }
        if (!shared || !inside || outside || dc_nest_buffer_apart(v, &all, loop, loop->axis, b))
            continue;
        if (!dc_nest_widen(v, loop, b))
            return false;
    }
    return true;
}

static bool bind_loop(dc_nest_edit *v, dc_stmt **slot, void *arg)
{
    DC_UNUSED(arg);
    return dc_nest_independent(v, *slot, *slot) && spread(v, *slot);
}

bool dc_move_block(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const uint32_t axis = m->axis[0];
    if (!dc_move_has_serial_axis(v, m, axis))
        return false;
    dc_axis *a = &k->axis.at[axis];
    if (a->reduce)
        return dc_nest_refuse(v, "%s is a reduction, its iterations add up", a->name);
    if (a->extent < 1 || a->extent > MAX_THREADS)
        return dc_nest_refuse(v, "a group has 1 to %d threads, %s has %lld iterations", MAX_THREADS,
                              a->name, (long long)a->extent);
    if (!dc_nest_each_loop(v, &k->root, axis, bind_loop, NULL))
        return false;
    k->axis.at[axis].kind = m->kind == DC_MOVE_LANE ? DC_AXIS_LANE : DC_AXIS_BLOCK;
    return true;
}

/* Nesting ------------------------------------------------------------------------------------- */

typedef struct nesting { /* of the loops around a list */
    const dc_axis *lane;
    int64_t threads;
} nesting;

static bool check_list(dc_nest_edit *v, const dc_stmt *first, nesting around);

/* The least and the most threads that execute a phase in the list. */
static void count_threads(const dc_kernel *k, const dc_stmt *first, int64_t *least, int64_t *most)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        int64_t lo = INT64_MAX, hi = 0;
        count_threads(k, t->body, &lo, &hi);
        if (dc_axis_is_thread(k->axis.at[t->axis].kind)) {
            hi = dc_max_i64(hi, 1) * k->axis.at[t->axis].extent;
            lo = hi;
        }
        *least = dc_min_i64(*least, lo);
        *most = dc_max_i64(*most, hi);
    }
}

/* A block loop with thread loops inside. */
static bool check_block(dc_nest_edit *v, const dc_stmt *loop)
{
    const char *name = v->k->axis.at[loop->axis].name;
    int64_t least = INT64_MAX, most = 0;
    for (const dc_stmt *t = loop->body; t != NULL; t = t->next)
        if (t->kind != DC_STMT_LOOP)
            return dc_nest_refuse(v, "beside parallel loops in the block %s stand only loops",
                                  name);
    count_threads(v->k, loop->body, &least, &most);
    return least == most || dc_nest_refuse(v,
                                           "parallel loops that follow one another in the block "
                                           "%s have %lld and %lld threads",
                                           name, (long long)least, (long long)most);
}

static bool check_thread_loop(dc_nest_edit *v, const dc_stmt *loop, nesting *around)
{
    const dc_axis *a = &v->k->axis.at[loop->axis];
    if (around->lane != NULL)
        return dc_nest_refuse(v, "%s is parallel inside %s, whose iterations are lanes", a->name,
                              around->lane->name);
    if (a->kind == DC_AXIS_LANE)
        around->lane = a;
    else if (has_threads(v->k, loop->body) && !check_block(v, loop))
        return false;
    around->threads *= a->extent;
    return around->threads <= MAX_THREADS ||
           dc_nest_refuse(v, "the group would have %lld threads, at most %d are allowed",
                          (long long)around->threads, MAX_THREADS);
}

static bool check_loop(dc_nest_edit *v, const dc_stmt *loop, nesting around)
{
    const dc_axis *a = &v->k->axis.at[loop->axis];
    if (dc_axis_is_thread(a->kind) && !check_thread_loop(v, loop, &around))
        return false;
    for (const dc_stmt *t = loop->body; t != NULL && a->kind == DC_AXIS_VECTOR; t = t->next)
        if (t->kind != DC_STMT_SET)
            return dc_nest_refuse(v, "inside the vector %s stand only assignments", a->name);
    return check_list(v, loop->body, around);
}

static bool check_list(dc_nest_edit *v, const dc_stmt *first, nesting around)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && !check_loop(v, t, around))
            return false;
    return true;
}

static bool is_grid(const dc_kernel *k, const dc_stmt *t)
{
    return t->kind == DC_STMT_LOOP && k->axis.at[t->axis].kind == DC_AXIS_GRID;
}

bool dc_move_check_nesting(dc_nest_edit *v)
{
    const dc_kernel *k = v->k;
    bool grid = false, other = false;
    for (const dc_stmt *t = k->root; t != NULL; t = t->next) {
        grid |= is_grid(k, t);
        other |= !is_grid(k, t);
    }
    if (grid && other)
        return dc_nest_refuse(v, "beside the grid nothing else stands at the root");
    return check_list(v, k->root, (nesting){.threads = 1});
}

/* Independence -------------------------------------------------------------------------------- */

static bool check_independence(dc_nest_edit *v, dc_stmt *first)
{
    for (dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const uint8_t kind = v->k->axis.at[t->axis].kind;
        const bool serial = kind == DC_AXIS_SERIAL || kind == DC_AXIS_UNROLL;
        if ((!serial && !dc_nest_independent(v, t, t)) || !check_independence(v, t->body))
            return false;
    }
    return true;
}

bool dc_move_check_independence(dc_nest_edit *v)
{
    return check_independence(v, v->k->root);
}
