/*
 * Contractions for groups of threads (jit/schedule/schedule.h). From the outside in:
 *
 *   grid      tiles of m x n, one for each group; other axes of the result outside of them
 *   k.o       stages of the reduction: the group copies a tile of each operand to shared memory, [k][m] and [k][n],
 *             in the order in which memory is contiguous, casts and scales done
 *   warps, lanes   a thread has a few runs of rows by a few runs of columns, apart from each other, so that the
 *             lanes of a warp read neighbouring runs
 *   k.i       a row of each tile to registers, all products of them
 *
 * Which sizes: tile_of. Tiles that reach beyond the result work on zeros, so no loop has a tail of its own. A copy, a
 * vector or an unrolled loop that is refused is left out; only what remains decides how fast the kernel is. Matrix
 * instructions are taken where there are any for the types (schedule_simt_mma.c).
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_tile.h"

#include <string.h>

enum { RUN = 4 };                  /* neighbouring rows or columns of a thread: a vector of f32 */
enum { LANES_M = 4, LANES_N = 8 }; /* of a warp */

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

/* Looking at it ------------------------------------------------------------------------------- */

dc_factor dc_simt_factor(const dc_simt_product *q, dc_vx v, uint32_t axis)
{
    dc_kernel *k = q->s->k;
    const dc_vx load = dc_operand_main_load(k, v);
    dc_factor f = {.buf = DC_NO_BUF, .vector = 1, .wide = 1};
    if (load == 0)
        return f;
    const dc_vx_node n = k->vx.at[load];
    const uint32_t along_k = q->red[q->nred - 1];
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)q->sum);
    f.buf = n.buf;
    f.dtype = n.dtype;
    f.alone = dc_sketch_loads(k, f.buf) == 1;
    f.plain = dc_operand_load(k, v) == load;
    const int64_t most = 16 / (int64_t)dc_dtype_size(f.dtype);
    const int64_t side = dc_simt_run(k, &n, axis, most), terms = dc_simt_run(k, &n, along_k, most);
    f.along_side = side > 0;
    f.along_k = side == 0 && terms > 0;
    f.wide = dc_max_i64(f.along_side ? side : terms, 1);
    f.vector = dc_min_i64(f.wide, 16 / size);
    return f;
}

/* Rows: of the axes along which the left operand moves alone the longest. */
static bool find_rows(dc_simt_product *q, const dc_shape *p)
{
    q->m.axis = DC_NO_AXIS;
    for (int i = p->nout - 2; i >= 0; i--)
        if (dc_axis_is_rows(q->s->k, p->out[i]) &&
            (q->m.axis == DC_NO_AXIS || dc_sketch_extent(q->s, p->out[i]) > q->m.extent)) {
            q->m.axis = p->out[i];
            q->m.extent = dc_sketch_extent(q->s, p->out[i]);
        }
    return q->m.axis != DC_NO_AXIS;
}

bool dc_simt_read_sum(dc_simt_product *q, const dc_shape *p, dc_operands *operands)
{
    const dc_kernel *k = q->s->k;
    if (!dc_simt_is_contraction(q->s, p, operands))
        return false;
    q->nred = p->nred;
    memcpy(q->red, p->red, sizeof q->red);
    q->K = dc_sketch_extent(q->s, p->red[p->nred - 1]);
    q->sum = k->vx.at[p->add->put[0].value].dtype;
    return true;
}

/* Is it a contraction of two operands, both with an axis of their own? */
static bool read_product(dc_simt_product *q, const dc_shape *p)
{
    dc_operands o;
    if (!dc_simt_read_sum(q, p, &o) || !find_rows(q, p))
        return false;
    q->n.axis = p->out[p->nout - 1];
    q->n.extent = dc_sketch_extent(q->s, q->n.axis);
    q->others = 1;
    for (int i = 0; i < p->nout; i++)
        if (p->out[i] != q->m.axis && p->out[i] != q->n.axis) {
            q->out[q->nout++] = p->out[i];
            q->others *= dc_sketch_extent(q->s, p->out[i]);
        }
    q->a = dc_simt_factor(q, o.left, q->m.axis);
    q->b = dc_simt_factor(q, o.right, q->n.axis);
    return true;
}

/* Choosing sizes ------------------------------------------------------------------------------- */

static dc_tile_size size_of(const dc_gpu_tile *t)
{
    return (dc_tile_size){t->m, t->n, t->threads.down, t->threads.across};
}

static int64_t own_of(const dc_tile_size *t)
{
    return RUN * RUN * t->down * t->across;
}

/* Most runs by runs of a thread: sums of 8 bytes need twice the registers. */
static int64_t most_runs(const dc_simt_product *q)
{
    return dc_dtype_size((dc_dtype)q->sum) > 4 ? 2 : 4;
}

static bool fits(const dc_simt_product *q, const dc_tile_size *t, int64_t depth)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)q->sum);
    return t->m * t->n / own_of(t) <= q->s->t->group_threads &&
           (t->m + t->n) * depth * size <= (int64_t)q->s->t->group_bytes &&
           t->down * t->across <= most_runs(q);
}

/* Elements as they are, of which a target copies 4 bytes or more to shared memory without waiting. */
static bool is_copied(const dc_simt_product *q, const dc_factor *f)
{
    return q->s->t->sm >= 80 && f->plain && f->dtype == q->sum && dc_dtype_size(q->sum) >= 4;
}

static bool are_copied(const dc_simt_product *q)
{
    return is_copied(q, &q->a) && is_copied(q, &q->b);
}

/*
 * Cycles: so many rounds of all processors, each as long as the tile is large and slow. A group that is alone on its
 * processor waits for each stage of its operands, too, unless later ones are on their way meanwhile.
 */
static int64_t time_of(const dc_simt_product *q, const dc_gpu_tile *t, int64_t depth)
{
    const int64_t work = t->m * t->n * depth * 100 / (t->threads.busy * DC_TUNE_RATE);
    const int64_t stages = (q->K + depth - 1) / depth;
    const int64_t alone = are_copied(q)
                              ? dc_max_i64(work, DC_TUNE_STAGE_CYCLES / (DC_TUNE_GROUP_STAGES - 1))
                              : work + DC_TUNE_STAGE_CYCLES;
    return stages * dc_max_i64(dc_simt_rounds(q, t->m, t->n) * work, alone);
}

/*
 * Terms of a stage: those with which the tile takes least time. Stages of few sums to a thread may be twice as deep: there are
 * registers for them.
 */
static int64_t depth_of(const dc_simt_product *q, const dc_gpu_tile *t)
{
    const int64_t usual = DC_TUNE_GROUP_DEPTH, deep = 2 * usual;
    const dc_tile_size is = size_of(t);
    const bool may = own_of(&is) <= DC_TUNE_DEEP_OWN && deep < q->K && fits(q, &is, deep);
    return may && time_of(q, t, deep) < time_of(q, t, usual) ? deep : usual;
}

/* The tile that takes least time, or what is asked for, and the terms of its stages. False: there is no room for any. */
static bool choose_tile(dc_simt_product *q, dc_tile_size *out)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)q->sum);
    dc_tile_choice all = {.n = 0};
    for (int i = 0; i < DC_GPU_TILES; i++) {
        const dc_gpu_tile *t = &dc_gpu_tiles[i];
        const dc_tile_size is = size_of(t);
        if (is.down > 0 && fits(q, &is, DC_TUNE_GROUP_DEPTH))
            dc_simt_rank_tile(&all, &is, time_of(q, t, depth_of(q, t)));
    }
    if (all.n == 0)
        return false;
    const dc_tile_form form = {
        RUN * LANES_M, RUN * LANES_N, most_runs(q), DC_TUNE_GROUP_DEPTH * size, all.tile, all.n};
    *out = dc_simt_ask_tile(q, &form, all.tile[0]);
    q->depth = DC_TUNE_GROUP_DEPTH;
    for (int i = 0; i < DC_GPU_TILES; i++) {
        const dc_tile_size is = size_of(&dc_gpu_tiles[i]);
        if (memcmp(&is, out, sizeof is) == 0)
            q->depth = depth_of(q, &dc_gpu_tiles[i]);
    }
    q->depth = dc_simt_ask_depth(q, out, q->depth, DC_TUNE_GROUP_DEPTH / 2, size);
    return true;
}

/* Doing it ------------------------------------------------------------------------------------- */

/* Rows as runs, warps, lanes, and in a run. */
static bool split_side(dc_simt_product *q, dc_side *d, int64_t block, int64_t runs, int64_t lanes)
{
    dc_split tiles_of, far, near, threads;
    d->block = block;
    d->lanes = lanes;
    d->warps = block / (runs * lanes * RUN);
    TRY(dc_do_split_full(q->s, d->axis, block, &tiles_of));
    TRY(dc_do_split(q->s, tiles_of.i, block / runs, &far));
    TRY(dc_do_split(q->s, far.i, RUN, &near));
    TRY(dc_do_split(q->s, near.o, lanes, &threads));
    d->o = tiles_of.o;
    d->warp = threads.o;
    d->lane = threads.i;
    d->own[0] = far.o;
    d->own[1] = near.i;
    d->nparts = 4;
    memcpy(d->part, (uint32_t[]){far.o, threads.o, threads.i, near.i}, 4 * sizeof *d->part);
    return true;
}

/* A row of a staged tile in registers. */
static bool to_registers(dc_simt_product *q, uint32_t buf, const dc_side *d)
{
    uint32_t made;
    TRY(dc_do_pack(q->s, buf, q->k, d->own, 2, &made));
    const uint32_t runs = dc_sketch_copy_of(q->s, made, d->own[0], 0);
    if (runs != DC_NO_AXIS)
        TRY(dc_do_unroll(q->s, runs));
    return dc_do_vectorize(q->s, dc_sketch_copy_of(q->s, made, d->own[1], 0));
}

/* What is refused here is left out. The tile in shared memory, or DC_NO_BUF. */
static uint32_t stage_factor(dc_simt_product *q, const dc_factor *f, const dc_side *d, bool copied)
{
    const uint32_t staged = q->s->k->buf.n;
    dc_factor how = *f;
    if (copied && !f->along_side)
        how.wide = 1; /* neighbours in memory go to different rows */
    if (f->buf == DC_NO_BUF || !f->alone || !dc_simt_stage(q, &how, d, false, !copied))
        return DC_NO_BUF;
    to_registers(q, staged, d);
    return staged;
}

static bool apply(dc_simt_product *q, const dc_shape *p, const dc_tile_size *t)
{
    TRY(split_side(q, &q->m, t->m, t->down, LANES_M));
    TRY(split_side(q, &q->n, t->n, t->across, LANES_N));
    const uint32_t inner[4] = {q->m.own[0], q->m.own[1], q->n.own[0], q->n.own[1]};
    TRY(dc_simt_make_loops(q, p, inner));
    const bool copied = are_copied(q);
    const uint32_t a = stage_factor(q, &q->a, &q->m, copied);
    const uint32_t b = stage_factor(q, &q->b, &q->n, copied);
    TRY(dc_simt_bind_threads(q));
    for (int i = 0; i < 3; i++)
        dc_do_unroll(q->s, inner[i]);
    dc_do_vectorize(q->s, inner[3]);
    if (copied && a != DC_NO_BUF && b != DC_NO_BUF)
        dc_simt_run_ahead(q, a, b, dc_simt_ask_stages(q, DC_TUNE_GROUP_STAGES));
    return true;
}

bool dc_simt_has_few(dc_sketch *s, const dc_shape *p)
{
    dc_simt_product q = {.s = s};
    return read_product(&q, p) && q.n.extent <= DC_TUNE_SKINNY_ROWS && !dc_simt_has_matrices(&q);
}

enum { TILES = 1, SKINNY = 2 }; /* of the knob */

/* 0: rows as few as the rule says. TF32 would round where there are tiles alone, so there is no choice. */
static int ask_skinny(const dc_simt_product *q)
{
    static const int32_t both[] = {SKINNY, TILES, 0};
    const bool is = dc_min_i64(q->m.extent, q->n.extent) <= DC_TUNE_SKINNY_ASKED && !q->s->k->tf32;
    return (int)dc_sketch_knob(q->s, DC_KNOB_SKINNY, 0, both, is ? SKINNY : 0);
}

bool dc_schedule_simt_product(dc_sketch *s, dc_shape *p, bool *is)
{
    dc_simt_product q = {.s = s};
    *is =
        read_product(&q, p) && q.m.extent >= DC_TUNE_GROUP_ROWS && q.n.extent >= DC_TUNE_GROUP_ROWS;
    if (!*is)
        return true;
    const int asked = ask_skinny(&q);
    if (asked == SKINNY) {
        const bool done = dc_schedule_simt_skinny(s, p, DC_TUNE_SKINNY_ASKED, is);
        if (*is)
            return done;
    }
    bool matrices;
    const bool groups = dc_schedule_simt_wgmma(&q, p, &matrices);
    if (matrices)
        return groups;
    const bool done = dc_schedule_simt_mma(&q, p, &matrices);
    if (matrices)
        return done;
    const bool few = asked != TILES && dc_schedule_simt_skinny(s, p, DC_TUNE_SKINNY_ROWS, is);
    if (asked != TILES && *is)
        return few;
    dc_tile_size t;
    *is = choose_tile(&q, &t);
    return !*is || apply(&q, p, &t);
}
