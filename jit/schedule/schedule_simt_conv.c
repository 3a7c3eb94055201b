/*
 * Convolutions for groups of threads (jit/schedule/schedule_simt_impl.h): products whose operands are read through
 * access maps.
 *
 * Loops over images and positions, or over taps and channels, become one: rows m of the product. Loops that are added
 * up become one too: terms k. So tiles know neither of edges nor of taps, and odd sizes are no slower: what stands outside of
 * an image is a test of the copy to shared memory.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

/* Loops i to j, each directly in the one before. */
static void join(dc_sketch *s, const uint32_t *axis, int i, int j)
{
    uint32_t all = axis[i];
    while (++i <= j && dc_do_fuse(s, all, axis[i], &all))
        continue;
}

/* The last loops over rows that stand in each other: first to last; false where one is too short for tiles. */
static bool find_rows(const dc_sketch *s, const dc_shape *p, int *first, int *last)
{
    *last = p->nout - 2;
    while (*last > 0 && !dc_axis_is_rows(s->k, p->out[*last]))
        --*last;
    *first = *last;
    while (*first > 0 && dc_axis_is_rows(s->k, p->out[*first - 1]))
        --*first;
    return dc_axis_is_rows(s->k, p->out[*last]) &&
           dc_simt_product(s, p->out + *first, *last - *first + 1) >= DC_TUNE_GROUP_ROWS;
}

/* Has the innermost loop of the sum enough terms for threads to share them? */
static bool is_long(const dc_sketch *s, const dc_shape *p)
{
    return dc_sketch_extent(s, p->red[p->nred - 1]) >= DC_TUNE_SHARED_TERMS;
}

/* Few rows or columns are no tile: threads share the terms along memory, of one loop if it is long, else of all. */
bool dc_simt_join_loops(dc_sketch *s, dc_shape *p, bool *is)
{
    int first, last;
    *is = false;
    dc_operands o;
    if (p->nout < 2 || !dc_simt_is_contraction(s, p, &o) ||
        dc_sketch_extent(s, p->out[p->nout - 1]) < DC_TUNE_GROUP_ROWS)
        return true;
    const bool rows = find_rows(s, p, &first, &last);
    if (is_long(s, p) && (!rows || dc_simt_has_few(s, p)))
        return true;
    if (rows)
        join(s, p->out, first, last);
    join(s, p->red, 0, p->nred - 1);
    *p = dc_shape_of(s->k);
    return true;
}
