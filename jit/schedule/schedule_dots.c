/*
 * Schedules of products with few rows whose matrix is stored the other way round: rows of both operands
 * lie along the sum (jit/schedule/schedule.h), as in x W' with a weight of [out, in].
 *
 * Panels of W would have to be transposed, which takes longer than the few products made of each. Instead
 * the sum goes in vectors, in a tile of so many rows by so many columns of the result: an element of the
 * result is one vector of partial sums, which are added up at the end of the row. Every row of W is read once,
 * from one end to the other.
 */
#include "jit/moves/move.h"
#include "jit/schedule/schedule_impl.h"

#include <stdio.h>

enum { MOST_ROWS = 6, LAST_LANES = 4 };

#define TRY(...)                                     \
    do {                                             \
        if (!dc_move_do(s->k, &s->why, __VA_ARGS__)) \
            return false;                            \
    } while (0)

/* Rows of a tile: all where they are few, else a number that divides them, if there is one. */
static int64_t rows_of(int64_t m)
{
    for (int64_t r = MOST_ROWS; r >= MOST_ROWS / 2; r--)
        if (m <= r || m % r == 0)
            return dc_min_i64(m, r);
    return MOST_ROWS - 2;
}

/* Columns of a tile: sums, a vector of each row, and one of a column are in registers. */
static int64_t columns_of(const dc_sketch *s, int64_t rows, int64_t n)
{
    int64_t c = 8;
    while (c > 1 && (c > n || rows * c + rows + 1 >= s->t->vector_registers))
        c /= 2;
    return c;
}

/* The sum over k in vectors, whose lanes are added up by halves; last: the axis that adds the rest. */
static bool split_sum(dc_sketch *s, const char *k, dc_axis_name *last)
{
    int64_t lanes = s->lanes;
    TRY("split_reduce %s %lld", k, (long long)lanes);
    snprintf(last->s, sizeof last->s, "%.18s.j", k);
    for (; lanes > LAST_LANES; lanes /= 2) {
        TRY("split_reduce %s %lld", last->s, (long long)lanes / 2);
        char next[32];
        snprintf(next, sizeof next, "%s.j", last->s);
        snprintf(last->s, sizeof last->s, "%.23s", next);
    }
    return true;
}

/* Lanes of the partial sums. */
static bool bind_sum(dc_sketch *s, const char *k)
{
    char name[24];
    TRY("vectorize %s.i", k);
    snprintf(name, sizeof name, "%.18s.j", k);
    for (int64_t lanes = s->lanes; lanes > LAST_LANES; lanes /= 2) {
        char next[32];
        TRY("vectorize %s.i", name);
        TRY("unroll %s.o", name);
        snprintf(next, sizeof next, "%s.j", name);
        snprintf(name, sizeof name, "%.23s", next);
    }
    TRY("unroll %s", name);
    return true;
}

/* What follows the sums gets loops of its own, in vectors along n. */
static bool part_epilogue(dc_sketch *s, const dc_dots *d, const char *last)
{
    TRY("reorder %s %s.i", last, d->n.s);
    TRY("reorder %s %s.i", last, d->m.s);
    TRY("part %s.i %s.o", d->m.s, d->k.s);
    TRY("part %s.i %s.o", d->n.s, d->k.s);
    TRY("split %s.i.x %lld", d->n.s, (long long)dc_sketch_lanes(s, d->block));
    TRY("vectorize %s.i.x.i", d->n.s);
    return true;
}

bool dc_schedule_dots(dc_sketch *s, const dc_dots *d)
{
    const int64_t rows = rows_of(d->M), columns = columns_of(s, rows, d->block);
    dc_axis_name last;
    if (!split_sum(s, d->k.s, &last) || (d->apart && !part_epilogue(s, d, last.s)))
        return false;
    TRY("split %s.i %lld", d->m.s, (long long)rows);
    TRY("split %s.i %lld", d->n.s, (long long)columns);
    TRY("reorder %s.i.o %s.i.i", d->n.s, d->m.s);
    TRY("reorder %s.i.o %s.i.o", d->n.s, d->m.s);
    TRY("reorder %s.o %s.i.i", d->k.s, d->n.s);
    TRY("reorder %s.o %s.i.i", d->k.s, d->m.s);
    if (!bind_sum(s, d->k.s))
        return false;
    TRY("unroll %s.i.i", d->n.s);
    TRY("unroll %s.i.i", d->m.s);
    return dc_sketch_grid(s);
}
