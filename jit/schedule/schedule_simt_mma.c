/*
 * Products by matrix instructions (jit/schedule/schedule_simt_tile.h): of 16-bit floats, of bytes with sums in i32, of f32
 * where a kernel says tf32. 32 lanes hold 16 x 8 sums, over 32 bytes of terms at a time:
 *
 *   warps     each has a part of the tile, several matrices down and across
 *   lanes     8 by 4: a lane has two rows, 8 apart, and two neighbouring columns of each matrix
 *   k.o       stages: the operands go to shared memory as they are, [m][k] or [k][m], whichever is along memory;
 *             the instructions that load matrices from there transpose. They transpose 16-bit elements alone: others are
 *             [m][k] always
 *
 * The instruction adds products of floats in an order of its own, and so does not serve strict kernels.
 */
#include "jit/base/tuning.h"
#include "jit/nest/matrix_tile.h"
#include "jit/schedule/schedule_simt_tile.h"

#include <string.h>

enum { ROWS = 16, COLUMNS = 8, MATRICES = 32 };

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

/* By the type of both operands, to sums of the type; DC_TILE__COUNT: there is none. */
static uint32_t instruction_of(const dc_simt_product *q, dc_dtype t)
{
    const dc_kernel *k = q->s->k;
    for (uint32_t i = 0; i < DC_TILE__COUNT; i++) {
        const dc_tile_row *row = dc_tile_row_of(i);
        if (strcmp(row->dialect, "cuda") == 0 && row->ab == t && row->c == q->sum &&
            !(k->strict && dc_dtype_is_float(t)) && (k->tf32 || !dc_tile_rounds(row)))
            return i;
    }
    return DC_TILE__COUNT;
}

/* Both operands are elements of one type, which nothing else reads. */
static bool fits(const dc_simt_product *q, uint32_t *which)
{
    const dc_factor *a = &q->a, *b = &q->b;
    *which = DC_TILE__COUNT;
    if (q->s->t->sm >= 80 && q->s->t->lanes == 32 && a->dtype == b->dtype && a->plain && b->plain &&
        a->alone && b->alone)
        *which = instruction_of(q, (dc_dtype)a->dtype);
    return *which < DC_TILE__COUNT;
}

bool dc_simt_has_matrices(const dc_simt_product *q)
{
    uint32_t which;
    return fits(q, &which);
}

/* The tile that takes least time, or what is asked for; false: there is no room for any. */
static bool choose_tile(const dc_simt_product *q, dc_tile_size *out)
{
    const dc_tile_choice all = dc_simt_rank_matrices(q, false, 2 * DC_TUNE_MATRIX_DEPTH);
    if (all.n == 0)
        return false;
    const dc_tile_form form = {ROWS, COLUMNS, MATRICES, 2 * DC_TUNE_MATRIX_DEPTH, all.tile, all.n};
    *out = dc_simt_ask_tile(q, &form, all.tile[0]);
    return true;
}

/* Rows as warps, matrices of a warp, and in a matrix two for each of 8 lanes, 8 apart. */
static bool split_rows(dc_simt_product *q, const dc_tile_size *t)
{
    dc_side *d = &q->m;
    dc_split block, warp, matrix, lane;
    d->block = t->m;
    d->lanes = 8;
    d->warps = t->m / (t->down * ROWS);
    TRY(dc_do_split_full(q->s, d->axis, t->m, &block));
    TRY(dc_do_split(q->s, block.i, t->down * ROWS, &warp));
    TRY(dc_do_split(q->s, warp.i, ROWS, &matrix));
    TRY(dc_do_split(q->s, matrix.i, d->lanes, &lane));
    d->o = block.o;
    d->warp = warp.o;
    d->lane = lane.i;
    d->own[0] = matrix.o;
    d->own[1] = lane.o;
    d->nparts = 4;
    memcpy(d->part, (uint32_t[]){warp.o, matrix.o, lane.o, lane.i}, 4 * sizeof *d->part);
    return true;
}

/* Columns as warps, matrices of a warp, and in a matrix two neighbours for each of 4 lanes. */
static bool split_columns(dc_simt_product *q, const dc_tile_size *t)
{
    dc_side *d = &q->n;
    dc_split block, warp, matrix, lane;
    d->block = t->n;
    d->lanes = 4;
    d->warps = t->n / (t->across * COLUMNS);
    TRY(dc_do_split_full(q->s, d->axis, t->n, &block));
    TRY(dc_do_split(q->s, block.i, t->across * COLUMNS, &warp));
    TRY(dc_do_split(q->s, warp.i, COLUMNS, &matrix));
    TRY(dc_do_split(q->s, matrix.i, 2, &lane));
    d->o = block.o;
    d->warp = warp.o;
    d->lane = lane.o;
    d->own[0] = matrix.o;
    d->own[1] = lane.i;
    d->nparts = 4;
    memcpy(d->part, (uint32_t[]){warp.o, matrix.o, lane.o, lane.i}, 4 * sizeof *d->part);
    return true;
}

bool dc_simt_split_matrices(dc_simt_product *q, const dc_tile_size *t)
{
    return split_rows(q, t) && split_columns(q, t);
}

bool dc_simt_make_matrices(dc_simt_product *q, const uint32_t inner[4], uint32_t which)
{
    dc_split k;
    TRY(dc_do_split(q->s, q->k, dc_tile_row_of(which)->k, &k));
    for (int i = 0; i < 4; i++)
        TRY(dc_do_reorder(q->s, inner[i], k.i));
    TRY(dc_simt_bind_threads(q));
    TRY(dc_do_tensorize(q->s, inner[2], which));
    dc_do_unroll(q->s, k.o);
    return true;
}

/* What goes across to rows along k goes by elements. */
static dc_factor copied(const dc_factor *f, bool by_rows)
{
    dc_factor how = *f;
    if (by_rows && f->along_side)
        how.wide = dc_min_i64(how.wide, dc_dtype_size((dc_dtype)f->dtype) >= 4 ? 1 : 4);
    return how;
}

static bool is_async(const dc_factor *f, bool by_rows)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)f->dtype);
    return (by_rows && f->along_side ? 1 : f->wide) * size >= 4;
}

static bool apply(dc_simt_product *q, const dc_shape *p, const dc_tile_size *t, uint32_t which)
{
    const uint32_t sums = p->add->put[0].buf;
    const bool exchange = t->across % 2 == 0 && dc_simt_exchange_pays(q);
    const bool turns = dc_dtype_size((dc_dtype)q->a.dtype) == 2;
    const bool rows[2] = {!turns || !q->a.along_side, !turns || !q->b.along_side};
    const dc_factor left = copied(&q->a, rows[0]), right = copied(&q->b, rows[1]);
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)q->a.dtype);
    q->depth =
        dc_simt_ask_depth(q, t, DC_TUNE_MATRIX_DEPTH / size, DC_TUNE_MATRIX_DEPTH / size, 2 * size);
    TRY(dc_simt_split_matrices(q, t));
    const uint32_t inner[4] = {q->m.own[0], q->n.own[0], q->m.own[1], q->n.own[1]};
    TRY(dc_simt_make_loops(q, p, inner));
    const uint32_t a = q->s->k->buf.n;
    TRY(dc_simt_stage(q, &left, &q->m, rows[0], false));
    const uint32_t b = q->s->k->buf.n;
    TRY(dc_simt_stage(q, &right, &q->n, rows[1], false));
    if (exchange)
        TRY(dc_simt_exchange(q, sums));
    TRY(dc_simt_make_matrices(q, inner, which));
    for (int i = 0; i < 3; i++)
        dc_do_unroll(q->s, inner[i]);
    dc_do_vectorize(q->s, inner[3]);
    if (is_async(&q->a, rows[0]) && is_async(&q->b, rows[1]))
        dc_simt_run_ahead(q, a, b, dc_simt_ask_stages(q, DC_TUNE_MATRIX_STAGES));
    return true;
}

bool dc_schedule_simt_mma(dc_simt_product *q, const dc_shape *p, bool *is)
{
    uint32_t which;
    dc_tile_size t;
    *is = fits(q, &which) && choose_tile(q, &t);
    return !*is || apply(q, p, &t, which);
}
