/*
 * Contractions in tiles for groups of threads (jit/schedule/schedule_simt_tile.h): the moves from a naive nest to
 * tiles, stages and threads, and the copies to shared memory.
 */
#include "jit/schedule/schedule_simt_tile.h"

#include "jit/base/tuning.h"

#include <string.h>

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

int64_t dc_simt_units(const dc_sketch *s)
{
    return s->t->units > 0 ? s->t->units : DC_TUNE_GROUP_UNITS;
}

int64_t dc_simt_rounds(const dc_simt_product *q, int64_t m, int64_t n)
{
    const int64_t units = dc_simt_units(q->s);
    const int64_t groups = q->others * ((q->m.extent + m - 1) / m) * ((q->n.extent + n - 1) / n);
    return (groups + units - 1) / units;
}

/* Loops --------------------------------------------------------------------------------------- */

bool dc_simt_arrange(dc_sketch *s, uint32_t *now, const uint32_t *want, int n)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        while (now[at] != want[i])
            at++;
        for (; at > i; at--) {
            TRY(dc_do_reorder(s, want[i], now[at - 1]));
            now[at] = now[at - 1];
        }
        now[i] = want[i];
    }
    return true;
}

static int push_side(uint32_t *now, int n, const dc_side *d)
{
    now[n++] = d->o;
    memcpy(now + n, d->part, (size_t)d->nparts * sizeof *now);
    return n + d->nparts;
}

/* The reduction in stages; the loops over a stage go inside those of threads. */
static bool make_stages(dc_simt_product *q, const uint32_t threads[4])
{
    dc_split k;
    TRY(dc_do_split_full(q->s, q->red[q->nred - 1], q->depth, &k));
    q->stage = k.o;
    q->k = k.i;
    TRY(dc_sketch_grid_outer(q->s));
    for (int i = 0; i < 4; i++)
        TRY(dc_do_reorder(q->s, threads[i], q->k));
    return true;
}

bool dc_simt_make_loops(dc_simt_product *q, const dc_shape *p, const uint32_t inner[4])
{
    const uint32_t threads[4] = {q->m.warp, q->n.warp, q->m.lane, q->n.lane};
    uint32_t now[DC_SHAPE_AXES + 12], want[DC_SHAPE_AXES + 12];
    int n = 0, w = 0;
    for (int i = 0; i < p->nout; i++) {
        if (p->out[i] == q->m.axis)
            n = push_side(now, n, &q->m);
        else if (p->out[i] == q->n.axis)
            n = push_side(now, n, &q->n);
        else
            now[n++] = p->out[i];
    }
    for (int i = 0; i < q->nout; i++)
        want[w++] = q->out[i];
    want[w++] = q->m.o;
    want[w++] = q->n.o;
    memcpy(want + w, threads, sizeof threads);
    memcpy(want + w + 4, inner, 4 * sizeof *inner);
    TRY(dc_simt_arrange(q->s, now, want, n));
    for (int i = 1; i < w; i++)
        TRY(dc_do_fuse(q->s, want[0], want[i], &want[0]));
    for (int i = 3; i >= 0; i--)
        TRY(dc_sketch_hoist(q->s, q->red, q->nred, inner[i]));
    for (int i = 3; i >= 0; i--)
        TRY(dc_sketch_hoist(q->s, q->red, q->nred, threads[i]));
    return make_stages(q, threads);
}

bool dc_simt_bind_threads(dc_simt_product *q)
{
    const uint32_t threads[4] = {q->m.warp, q->n.warp, q->m.lane, q->n.lane};
    for (int i = 0; i < 4; i++)
        TRY(dc_do_block(q->s, threads[i]));
    return true;
}

/* Copies --------------------------------------------------------------------------------------- */

static int64_t threads_of(const dc_simt_product *q)
{
    return q->m.warps * q->m.lanes * q->n.warps * q->n.lanes;
}

/* One loop of those that copy along the loops of a side, which stand in each other. */
static bool join_copies(dc_simt_product *q, uint32_t made, const dc_side *d, uint32_t *all)
{
    *all = DC_NO_AXIS;
    for (int i = 0; i < d->nparts; i++) {
        const uint32_t copy = dc_sketch_copy_of(q->s, made, d->part[i], 0);
        if (copy == DC_NO_AXIS)
            continue;
        if (*all == DC_NO_AXIS)
            *all = copy;
        else
            TRY(dc_do_fuse(q->s, *all, copy, all));
    }
    return *all != DC_NO_AXIS;
}

/*
 * Threads for a copy of outer by inner iterations, the inner along memory: vectors of inner ones, then as many of
 * both as there are threads. What remains of the outer loop each thread does by itself, unrolled, so that its loads
 * are on their way together.
 */
static bool find_threads(dc_simt_product *q, uint32_t outer, uint32_t inner, int64_t vector,
                         uint32_t thread[2])
{
    dc_split v = {.o = inner}, rows = {.i = outer};
    if (vector > 1) {
        TRY(dc_do_split(q->s, inner, vector, &v));
        TRY(dc_do_vectorize(q->s, v.i));
    }
    const int64_t threads = dc_max_i64(threads_of(q) / dc_sketch_extent(q->s, v.o), 1);
    if (dc_sketch_extent(q->s, outer) > threads) {
        TRY(dc_do_split(q->s, outer, threads, &rows));
        TRY(dc_do_reorder(q->s, rows.i, rows.o));
        TRY(dc_do_reorder(q->s, v.o, rows.o));
        dc_do_unroll(q->s, rows.o);
    }
    thread[0] = rows.i;
    thread[1] = v.o;
    return true;
}

static bool share_copy(dc_simt_product *q, uint32_t outer, uint32_t inner, int64_t vector)
{
    uint32_t thread[2];
    return find_threads(q, outer, inner, vector, thread) && dc_do_block(q->s, thread[0]) &&
           dc_do_block(q->s, thread[1]);
}

/*
 * A copy whose inner iterations go to rows of shared memory below each other. A warp has as many of them as are rotated
 * to different banks, and neighbours of each; others are a loop of the thread, and threads that would have nothing to do.
 */
static bool share_across(dc_simt_product *q, uint32_t outer, uint32_t inner, int64_t vector)
{
    enum { BELOW = 8 };
    dc_split below;
    uint32_t thread[2];
    if (dc_sketch_extent(q->s, inner) <= BELOW)
        return share_copy(q, outer, inner, vector);
    TRY(dc_do_split(q->s, inner, BELOW, &below));
    const int64_t each = dc_sketch_extent(q->s, outer) * BELOW / vector;
    const int64_t groups = dc_sketch_extent(q->s, below.o);
    const int64_t spare = dc_min_i64(dc_max_i64(threads_of(q) / each, 1), groups);
    TRY(dc_do_reorder(q->s, below.o, outer));
    dc_split of = {.o = below.o, .i = DC_NO_AXIS};
    if (spare > 1) {
        TRY(dc_do_split(q->s, below.o, spare, &of));
        TRY(dc_do_reorder(q->s, of.i, of.o));
    }
    TRY(find_threads(q, outer, below.i, vector, thread));
    TRY(dc_do_reorder(q->s, thread[0], of.o));
    TRY(dc_do_reorder(q->s, thread[1], of.o));
    dc_do_unroll(q->s, of.o);
    return (of.i == DC_NO_AXIS || dc_do_block(q->s, of.i)) && dc_do_block(q->s, thread[0]) &&
           dc_do_block(q->s, thread[1]);
}

bool dc_simt_stage(dc_simt_product *q, const dc_factor *f, const dc_side *d, bool by_rows,
                   bool computed)
{
    const uint32_t staged = q->s->k->buf.n;
    uint32_t dims[6], made, side;
    int n = 0;
    if (!by_rows)
        dims[n++] = q->k;
    memcpy(dims + n, d->part, (size_t)d->nparts * sizeof *dims);
    n += d->nparts;
    if (by_rows)
        dims[n++] = q->k;
    const bool copied = computed ? dc_do_pack(q->s, f->buf, q->stage, dims, n, &made)
                                 : dc_do_cache_elements(q->s, f->buf, q->stage, dims, n, &made);
    if (!copied)
        return false;
    const uint32_t k = dc_sketch_copy_of(q->s, made, q->k, 0);
    const bool k_inside = f->along_k || (by_rows && !f->along_side);
    TRY(join_copies(q, made, d, &side));
    if (k_inside != by_rows)
        TRY(dc_do_reorder(q->s, by_rows ? k : side, by_rows ? side : k));
    /* what is read or written across its rows */
    const int64_t row = by_rows ? q->depth : d->block;
    if (q->atoms)
        TRY(dc_do_swizzle_atoms(q->s, staged, row));
    else if (by_rows || f->along_k || !computed)
        dc_do_swizzle(q->s, staged, row);
    const int64_t vector = computed ? f->vector : f->wide;
    if (k_inside != by_rows)
        return k_inside ? share_across(q, side, k, vector) : share_across(q, k, side, vector);
    return k_inside ? share_copy(q, side, k, vector) : share_copy(q, k, side, vector);
}

void dc_simt_run_ahead(dc_simt_product *q, uint32_t a, uint32_t b, int64_t most)
{
    const dc_buffer *x = &q->s->k->buf.at[a], *y = &q->s->k->buf.at[b];
    const int64_t bytes = x->count * (int64_t)dc_dtype_size((dc_dtype)x->dtype) +
                          y->count * (int64_t)dc_dtype_size((dc_dtype)y->dtype);
    const int64_t stages = dc_min_i64(most, (int64_t)q->s->t->group_bytes / bytes);
    if (stages >= 2 && dc_do_stage(q->s, b, stages))
        dc_do_stage(q->s, a, stages);
}
