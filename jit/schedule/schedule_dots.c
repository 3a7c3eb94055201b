/*
 * Schedules of contractions with few rows and a transposed matrix: both operands are contiguous along k
 * (jit/schedule/schedule.h), as in x W' with a weight of [out, in].
 *
 * Panels of W would have to be transposed, which takes longer than the few multiplications with each. Instead
 * vectors lie along k, in a tile of rows by columns of the result: an element of the result is one vector of
 * partial sums, which are added up at the end. Every row of W is read once, contiguously.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_impl.h"

enum { MAX_HALVINGS = 8 };

/* Rows of a tile: all where they are few, else a number that divides them, if there is one. */
static int64_t rows_of(int64_t m)
{
    for (int64_t r = DC_TUNE_DOT_TILE_ROWS; r >= DC_TUNE_DOT_TILE_ROWS / 2; r--)
        if (m <= r || m % r == 0)
            return dc_min_i64(m, r);
    return DC_TUNE_DOT_TILE_ROWS - 2;
}

/* Columns of a tile: sums, a vector of each row, and one of a column are in registers. */
static int64_t columns_of(const dc_sketch *s, int64_t rows, int64_t n)
{
    int64_t c = 8;
    while (c > 1 && (c > n || rows * c + rows + 1 >= s->t->vector_registers))
        c /= 2;
    return c;
}

typedef struct halves { /* of a reduction: partial ones, partial ones of these, and so on */
    dc_partial at[MAX_HALVINGS];
    int n;
    uint32_t last; /* the axis that combines what is left */
} halves;

/* The reduction over k in vectors, whose lanes are combined by halves. */
static bool split_sum(dc_sketch *s, uint32_t k, halves *h)
{
    int64_t lanes = s->lanes;
    h->n = 0;
    h->last = k;
    for (;; lanes /= 2) {
        if (!dc_do_split_reduce(s, h->last, lanes, &h->at[h->n]))
            return false;
        h->last = h->at[h->n++].j;
        if (lanes <= DC_TUNE_HALVED_LANES || h->n == MAX_HALVINGS)
            return true;
    }
}

/* Lanes of the partial sums. */
static bool bind_sum(dc_sketch *s, const halves *h)
{
    for (int i = 0; i < h->n; i++)
        if (!dc_do_vectorize(s, h->at[i].i) || (i > 0 && !dc_do_unroll(s, h->at[i].o)))
            return false;
    return dc_do_unroll(s, h->last);
}

/* Loop distribution: the epilogue gets loops of its own, in vectors along n. */
static bool part_epilogue(dc_sketch *s, const dc_dots *d, const halves *h)
{
    const uint32_t sum = h->at[0].o;
    uint32_t m, n;
    dc_split lanes;
    return dc_do_reorder(s, h->last, d->n) && (!d->has_m || dc_do_reorder(s, h->last, d->m)) &&
           (!d->has_m || dc_do_part(s, d->m, sum, &m)) && dc_do_part(s, d->n, sum, &n) &&
           dc_do_split(s, n, dc_sketch_lanes(s, d->block), &lanes) && dc_do_vectorize(s, lanes.i);
}

/* Tiles of rows by columns, over which the loop over k goes; one row has no loop over m. */
static bool make_tile(dc_sketch *s, const dc_dots *d, const halves *h, int64_t rows,
                      int64_t columns)
{
    const uint32_t k = h->at[0].o;
    dc_split m, n;
    if (!d->has_m) {
        if (!dc_do_split(s, d->n, columns, &n) || !dc_do_reorder(s, k, n.i) || !bind_sum(s, h) ||
            !dc_do_unroll(s, n.i))
            return false;
        if (d->streamed != 0) /* where it does not apply, it is left out */
            dc_do_prefetch(s, d->streamed, n.o, k, 1);
        return true;
    }
    return dc_do_split(s, d->m, rows, &m) && dc_do_split(s, d->n, columns, &n) &&
           dc_do_reorder(s, n.o, m.i) && dc_do_reorder(s, n.o, m.o) && dc_do_reorder(s, k, n.i) &&
           dc_do_reorder(s, k, m.i) && bind_sum(s, h) && dc_do_unroll(s, n.i) &&
           dc_do_unroll(s, m.i);
}

bool dc_schedule_dots(dc_sketch *s, const dc_dots *d)
{
    const int64_t rows = d->has_m ? dc_sketch_knob(s, DC_KNOB_DOT_ROWS, rows_of(d->M),
                                                   (const int32_t[]){1, 2, 3, 4, 5, 6, 8, 0}, d->M)
                                  : 1;
    const int64_t columns = dc_sketch_knob(s, DC_KNOB_DOT_COLUMNS, columns_of(s, rows, d->block),
                                           (const int32_t[]){1, 2, 3, 4, 6, 8, 0}, d->block);
    halves h;
    return split_sum(s, d->k, &h) && (!d->apart || part_epilogue(s, d, &h)) &&
           make_tile(s, d, &h, rows, columns) && dc_sketch_grid_outer(s);
}
