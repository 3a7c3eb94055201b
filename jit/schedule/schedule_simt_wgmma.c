/*
 * Products of 16-bit floats by instructions of four warps (jit/schedule/schedule_simt_tile.h), where the device has them and
 * the user asks for them (dc_target.warpgroups):
 *
 *   warps     each has 16 rows of the tile and all of its columns; four of them begin one instruction of 64 rows
 *   lanes     8 by 4, as those of matrix instructions of a warp: the results lie alike
 *   k.o       stages of 128 bytes of k: both operands go to shared memory as they are, [m][k] or [k][m], whichever is
 *             along memory, in atoms, 16 bytes at a time
 *
 * Elements that do not come in runs of 16 bytes, and results of too few tiles, are left to the instructions of a warp.
 */
#include "jit/base/tuning.h"
#include "jit/nest/matrix_tile.h"
#include "jit/schedule/schedule_simt_tile.h"

enum { DEPTH = 64, RUN = 8, STAGES = 4 };

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

static uint32_t instruction_of(const dc_simt_product *q)
{
    for (uint32_t i = 0; i < DC_TILE__COUNT; i++)
        if (dc_tile_by_warpgroups(i) && dc_tile_row_of(i)->ab == q->a.dtype &&
            dc_tile_row_of(i)->c == q->sum)
            return i;
    return DC_TILE__COUNT;
}

static bool comes_in_runs(const dc_factor *f)
{
    return f->plain && f->alone && f->wide == RUN && (f->along_k || f->along_side);
}

static bool fits(const dc_simt_product *q, uint32_t *which)
{
    *which = DC_TILE__COUNT;
    if (q->s->t->warpgroups && q->s->t->lanes == 32 && !q->s->k->strict &&
        q->a.dtype == q->b.dtype && comes_in_runs(&q->a) && comes_in_runs(&q->b))
        *which = instruction_of(q);
    return *which < DC_TILE__COUNT;
}

/* The one that takes least time. Where most multiprocessors had none, smaller ones of another instruction do better. */
static bool choose_tile(const dc_simt_product *q, dc_tile_size *out)
{
    const dc_tile_choice all = dc_simt_rank_matrices(q, true, 3 * DEPTH * 2);
    *out = all.tile[0];
    const int64_t m = (q->m.extent + 63) / 64, n = (q->n.extent + 63) / 64;
    return all.n > 0 && 2 * q->others * m * n >= dc_simt_units(q->s);
}

/* A warp has one matrix of rows and all columns. */
static bool apply(dc_simt_product *q, const dc_shape *p, const dc_tile_size *t, uint32_t which)
{
    const uint32_t sums = p->add->put[0].buf;
    const bool exchange = dc_simt_exchange_pays(q);
    q->depth = DEPTH;
    q->atoms = true;
    TRY(dc_simt_split_matrices(q, t));
    const uint32_t inner[4] = {q->m.own[0], q->n.own[0], q->m.own[1], q->n.own[1]};
    TRY(dc_simt_make_loops(q, p, inner));
    const uint32_t a = q->s->k->buf.n;
    TRY(dc_simt_stage(q, &q->a, &q->m, !q->a.along_side, false));
    const uint32_t b = q->s->k->buf.n;
    TRY(dc_simt_stage(q, &q->b, &q->n, !q->b.along_side, false));
    if (exchange)
        TRY(dc_simt_exchange(q, sums));
    TRY(dc_simt_make_matrices(q, inner, which));
    for (int i = 0; i < 3; i++)
        dc_do_unroll(q->s, inner[i]);
    dc_do_vectorize(q->s, inner[3]);
    dc_simt_run_ahead(q, a, b, STAGES);
    return true;
}

bool dc_schedule_simt_wgmma(dc_simt_product *q, const dc_shape *p, bool *is)
{
    uint32_t which;
    dc_tile_size t;
    *is = fits(q, &which) && choose_tile(q, &t);
    return !*is || apply(q, p, &t, which);
}
