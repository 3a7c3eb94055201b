/*
 * Rows whose columns lie across memory, by groups of threads (jit/schedule/schedule_simt_impl.h): softmax and losses over an
 * axis that is not the last one in memory. Neighbouring threads have neighbouring rows, which they read side by side. A row
 * that is short has one thread, a longer one W, each in a warp of its own with as many columns of it; what these have added
 * up meets in shared memory. Loops over the columns of a thread are unrolled, so that what is read stays in registers.
 *
 * What lies along the columns all the same is copied through shared memory.
 *
 * A sum over several axes of which another one than the last lies along memory first gets its loops in that order.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"
#include "jit/schedule/schedule_simt_run.h"

enum { MOST_PARTS = 32, MOST_STAGED = 4 };

typedef struct span { /* loops over columns */
    uint32_t axis[DC_SHAPE_AXES];
    int n;
    bool reduces;
    uint32_t warp, own; /* made of them: threads of a row, columns of a thread */
} span;

typedef struct across {
    dc_sketch *s;
    span part[MOST_PARTS];
    int n, sums;
    int64_t rows, columns;
    uint32_t staged[MOST_STAGED]; /* parameters that lie along the columns */
    int nstaged;
    size_t staged_bytes; /* of a row of them */
    int64_t kept;        /* bytes of a row that one part keeps for another */
    bool any;            /* something lies along the rows */
    int64_t side, warps; /* rows of a group, threads of a row */
} across;

/* Looking at it ------------------------------------------------------------------------------- */

static bool read_part(across *a, const dc_stmt *loop)
{
    const dc_kernel *k = a->s->k;
    span *x = &a->part[a->n++];
    int64_t extent = 1;
    *x = (span){.reduces = k->axis.at[loop->axis].reduce};
    for (; loop->kind == DC_STMT_LOOP && x->n < DC_SHAPE_AXES; loop = loop->body) {
        if (loop->next != NULL && x->n > 0)
            return false;
        if (k->axis.at[loop->axis].reduce != x->reduces)
            return false;
        x->axis[x->n++] = loop->axis;
        extent *= dc_sketch_extent(a->s, loop->axis);
    }
    a->sums += x->reduces;
    if (a->n > 1 && extent != a->columns)
        return false;
    a->columns = extent;
    return loop->kind == DC_STMT_SET && loop->next == NULL && loop->reduces == x->reduces;
}

static bool read_parts(across *a, const dc_shape *p)
{
    const dc_stmt *t = a->s->k->root;
    for (int i = 0; i < p->nout; i++)
        t = t->body;
    for (; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP && (a->n == MOST_PARTS || !read_part(a, t)))
            return false;
    return a->n > 0;
}

static bool is_staged(const across *a, uint32_t buf)
{
    for (int i = 0; i < a->nstaged; i++)
        if (a->staged[i] == buf)
            return true;
    return false;
}

/* An access to a parameter: along the rows, or staged if it is along the columns. False: neither, or too many. */
static bool read_access(across *a, const dc_shape *p, uint32_t buf, dc_ix at)
{
    dc_kernel *k = a->s->k;
    const dc_vx_node load = {.buf = buf, .at = at, .dtype = k->buf.at[buf].dtype};
    bool moves = false, along = false;
    if (k->buf.at[buf].scope != DC_SCOPE_PARAM)
        return true;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < a->part[i].n; j++) {
            const uint32_t axis = a->part[i].axis[j];
            moves |= dc_ix_uses(k, at, axis);
            along |= j == a->part[i].n - 1 && dc_simt_run(k, &load, axis, 1) > 0;
        }
    if (!moves)
        return true;
    if (!along) {
        a->any = true;
        return dc_simt_run(k, &load, p->out[p->nout - 1], 1) > 0;
    }
    if (is_staged(a, buf))
        return true;
    if (a->nstaged == MOST_STAGED)
        return false;
    a->staged_bytes += (size_t)a->columns * dc_dtype_size((dc_dtype)load.dtype);
    a->staged[a->nstaged++] = buf;
    return true;
}

static bool read_stores(across *a, const dc_shape *p, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->body != NULL && !read_stores(a, p, t->body))
            return false;
        for (uint32_t i = 0; i < t->nput; i++)
            if (!read_access(a, p, t->put[i].buf, t->put[i].at))
                return false;
    }
    return true;
}

static bool read_accesses(across *a, const dc_shape *p)
{
    const dc_kernel *k = a->s->k;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node n = k->vx.at[v];
        if (n.kind == DC_VX_LOAD && !read_access(a, p, n.buf, n.at))
            return false;
    }
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_LOCAL && k->buf.at[b].count > 1)
            a->kept += k->buf.at[b].count * (int64_t)dc_dtype_size((dc_dtype)k->buf.at[b].dtype);
    return a->any && read_stores(a, p, k->root);
}

/* Choosing sizes ------------------------------------------------------------------------------- */

/*
 * About as many threads of a row, if there are some to which it gives equally many columns: else a test on each column keeps
 * what is read from being read once.
 */
static int64_t even_warps(const across *a, int64_t about, int64_t most)
{
    for (int64_t w = about; w * DC_TUNE_ROW_MOST >= a->columns && w > 1; w--)
        if (a->columns % w == 0)
            return w;
    for (int64_t w = about; w <= dc_min_i64(2 * about, most); w++)
        if (a->columns % w == 0)
            return w;
    return about;
}

/* Partial results of all sums, of the longest type. */
static size_t sums_bytes(const across *a, int64_t warps)
{
    return (size_t)((warps + 2) * a->sums * 8 * DC_TUNE_ROW_LANES);
}

/* False: rows are too long for what a group has to share of them. */
static bool choose_sizes(across *a)
{
    const int64_t lanes = DC_TUNE_ROW_LANES;
    const int64_t threads = dc_simt_many(a->s) * dc_simt_threads(a->s);
    const size_t room = (size_t)dc_simt_shared(a->s);
    int64_t most = dc_min_i64(a->s->t->group_threads, DC_TUNE_ROW_THREADS) / lanes;
    while (most > 1 && sums_bytes(a, most) > room)
        most /= 2;
    int64_t warps =
        dc_min_i64((a->columns + DC_TUNE_ROW_ELEMENTS - 1) / DC_TUNE_ROW_ELEMENTS, most);
    while (2 * warps <= most && a->rows * warps < threads &&
           a->columns >= 2 * DC_TUNE_COLUMN_TERMS * warps)
        warps *= 2;
    a->warps = warps == 1 ? 1 : even_warps(a, warps, most);
    a->side = a->warps == 1 ? dc_simt_threads(a->s) : lanes;
    while (a->side > lanes &&
           (a->rows / a->side < dc_simt_many(a->s) || 2 * a->staged_bytes * (size_t)a->side > room))
        a->side /= 2;
    size_t bytes = (a->staged_bytes + 8 * (size_t)a->nstaged) * (size_t)a->side;
    if (a->warps > 1)
        bytes += sums_bytes(a, a->warps);
    if (a->columns % a->warps != 0)
        bytes += (size_t)(a->kept * a->side);
    return bytes <= a->s->t->group_bytes &&
           (a->warps == 1 || a->columns <= a->warps * DC_TUNE_ROW_MOST);
}

/* Doing it ------------------------------------------------------------------------------------- */

/* Loops over columns become one, or one over the threads of a row and one over the columns of each. */
static bool share_columns(across *a, span *x)
{
    dc_sketch *s = a->s;
    dc_partial sum;
    dc_split c;
    if (!dc_simt_fuse(s, x->axis, x->n, &x->own))
        return false;
    if (a->warps == 1)
        return true;
    if (x->reduces ? !dc_do_split_reduce(s, x->own, a->warps, &sum)
                   : !dc_do_split(s, x->own, a->warps, &c))
        return false;
    x->warp = x->reduces ? sum.i : c.i;
    x->own = x->reduces ? sum.o : c.o;
    return dc_do_reorder(s, x->warp, x->own);
}

/* Threads of a row go outside of its neighbours. */
static bool share_rows(across *a, const span *x, uint32_t row)
{
    dc_sketch *s = a->s;
    const int64_t n = dc_sketch_extent(s, x->own);
    if (a->warps > 1 && !dc_do_reorder(s, x->warp, row))
        return false;
    return n < 2 || n > DC_TUNE_ROW_MOST || dc_do_unroll(s, x->own);
}

/* What lies along the columns, copied by all threads of a group. */
static bool stage(across *a, uint32_t buf, uint32_t group)
{
    dc_sketch *s = a->s;
    const bool in = s->k->buf.at[buf].mode == DC_MODE_IN;
    uint32_t made, all;
    dc_split each;
    if (in ? !dc_do_cache_read(s, buf, group, &made) : !dc_do_cache_write(s, buf, group, &made))
        return false;
    uint32_t axis[DC_SHAPE_AXES + 1];
    int n = 0;
    for (uint32_t i = made; i < s->k->axis.n && n <= DC_SHAPE_AXES; i++)
        axis[n++] = i;
    return dc_simt_fuse(s, axis, n, &all) && dc_do_split(s, all, a->side * a->warps, &each) &&
           dc_do_lane(s, each.i);
}

static bool apply(across *a, const dc_shape *p)
{
    dc_sketch *s = a->s;
    uint32_t all;
    dc_split row;
    if (!dc_simt_fuse(s, p->out, p->nout, &all) || !dc_do_split(s, all, a->side, &row))
        return false;
    const uint32_t copies = s->k->buf.n;
    for (int i = 0; i < a->nstaged; i++)
        if (!stage(a, a->staged[i], row.o))
            return false;
    const uint32_t partial = s->k->buf.n;
    for (int i = 0; i < a->n; i++)
        if (!share_columns(a, &a->part[i]))
            return false;
    const uint32_t made = s->k->buf.n;
    for (int i = 0; i < a->n; i++)
        if (!share_rows(a, &a->part[i], row.i))
            return false;
    for (int i = 0; i < a->n; i++)
        if (a->warps > 1 && !dc_do_block(s, a->part[i].warp))
            return false;
    if (!dc_do_lane(s, row.i) || !dc_do_grid(s, row.o))
        return false;
    for (uint32_t b = partial; b < made && a->warps % 2 == 0; b++)
        dc_do_pad_rows(s, b, a->warps); /* refused where they are rows of threads */
    for (uint32_t b = copies; b < copies + (uint32_t)a->nstaged && a->columns % 2 == 0; b++)
        dc_do_pad_rows(s, b, a->columns);
    return true;
}

bool dc_simt_across(dc_sketch *s, dc_shape *p, bool *is)
{
    across a = {.s = s};
    *is = false;
    if (p->nout == 0 || dc_ix_any_value(s->k))
        return true;
    a.rows = dc_simt_product(s, p->out, p->nout);
    *is = read_parts(&a, p) && read_accesses(&a, p) && a.columns > 1 && choose_sizes(&a);
    return !*is || apply(&a, p);
}

/* Sums over several axes ------------------------------------------------------------------------ */

/* Bytes of what the sum reads side by side along the axis, one element of each load. */
static int64_t along(dc_sketch *s, const dc_shape *p, uint32_t axis)
{
    dc_kernel *k = s->k;
    const dc_vx term = dc_shape_term(k, p);
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, term);
    int64_t bytes = 0;
    for (dc_vx v = 1; v <= term; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (part[v] && n->kind == DC_VX_LOAD && dc_simt_run(k, n, axis, 1) > 0)
            bytes += (int64_t)dc_dtype_size((dc_dtype)n->dtype);
    }
    dc_arena_rewind(&k->arena, mark);
    return bytes;
}

bool dc_simt_turn_sum(dc_sketch *s, dc_shape *p, bool *is)
{
    *is = false;
    if (p->add == NULL || !p->one_sum || p->by_rows || p->nred < 2 || dc_ix_any_value(s->k))
        return true;
    int best = p->nred - 1;
    for (int i = p->nred - 2; i >= 0; i--)
        if (along(s, p, p->red[i]) > along(s, p, p->red[best]))
            best = i;
    for (int i = best + 1; i < p->nred; i++)
        if (!dc_do_reorder_reduce(s, p->red[i], p->red[best]))
            break;
    *p = dc_shape_of(s->k);
    return true;
}
