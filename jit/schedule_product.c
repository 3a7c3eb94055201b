/*
 * Schedules of products by rule (jit/schedule.h): tiles of m x n accumulators in registers, vectors
 * along n, the reduction outside the tile.
 */
#include "jit/move.h"
#include "jit/schedule_impl.h"

#include <stdio.h>

enum { OTHER_REGISTERS = 4, TILE_VECTORS = 2 };

/* Rows of a tile: the largest divisor of m within the registers, else as few tiles as they allow.
 */
static int64_t tile_rows(const dc_sketch *s, int64_t m, int64_t column_vectors)
{
    const int64_t most = dc_max_i64(4, (s->t->vector_registers - OTHER_REGISTERS) / column_vectors);
    for (int64_t r = most; r >= 4; r--)
        if (m % r == 0)
            return r;
    const int64_t tiles = (m + most - 1) / most;
    return (m + tiles - 1) / tiles;
}

bool dc_schedule_product(dc_sketch *s, const dc_shape *p)
{
    dc_kernel *k = s->k;
    dc_axis_name red[DC_SHAPE_AXES];
    const dc_axis_name n = dc_axis_name_of(s->k, p->out[p->nout - 1]);
    const dc_axis_name m = dc_axis_name_of(s->k, p->out[p->nout - 2]);
    const int64_t extent = dc_sketch_extent(s, p->out[p->nout - 1]);
    const int64_t lanes = dc_sketch_lanes(s, extent);
    const int64_t vectors = (extent + lanes - 1) / lanes;
    const int64_t nv = vectors % TILE_VECTORS == 0 ? TILE_VECTORS : 1;
    const int64_t height = tile_rows(s, dc_sketch_extent(s, p->out[p->nout - 2]), nv);
    for (int i = 0; i < p->nred; i++)
        red[i] = dc_axis_name_of(s->k, p->red[i]);
    char tile[32], rows[32];
    snprintf(tile, sizeof tile, "%s.i", n.s);
    snprintf(rows, sizeof rows, "%s.i", m.s);
    return dc_move_do(k, &s->why, "split %s %lld", n.s, (long long)(nv * lanes)) &&
           dc_move_do(k, &s->why, "split %s %lld", m.s, (long long)height) &&
           dc_move_do(k, &s->why, "reorder %s.o %s.i", n.s, m.s) &&
           dc_move_do(k, &s->why, "reorder %s.o %s.o", n.s, m.s) &&
           dc_sketch_hoist(s, red, p->nred, tile) && dc_sketch_hoist(s, red, p->nred, rows) &&
           dc_move_do(k, &s->why, "split %s %lld", tile, (long long)lanes) &&
           dc_move_do(k, &s->why, "vectorize %s.i", tile) &&
           dc_move_do(k, &s->why, "unroll %s.o", tile) &&
           dc_move_do(k, &s->why, "unroll %s", rows) && dc_sketch_grid(s);
}
