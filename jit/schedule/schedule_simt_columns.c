/*
 * Few sums over leading axes by groups of threads (jit/schedule/schedule_simt_impl.h). A warp reads neighbouring columns of a
 * row, the other warps of its group other rows; what each has added up meets in shared memory, where one warp adds it up, in
 * a fixed order. Where there are as many sums as threads on the device, each thread has one, and reads all its rows.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

/* Is it one sum, read along the last axis of the result? */
static bool is_columns(const dc_sketch *s, const dc_shape *p)
{
    if (p->add == NULL || p->by_rows || p->nout == 0 || p->nred == 0)
        return false;
    const dc_strides along = dc_strides_of(s->k, dc_shape_term(s->k, p), p->out[p->nout - 1]);
    return along.unit && !along.strided && !along.irregular &&
           dc_sketch_extent(s, p->out[p->nout - 1]) >= DC_TUNE_COLUMNS;
}

/* Warps that share the rows: as many as occupy the device, if each still has several rows. */
static int64_t warps_of(const dc_sketch *s, const dc_shape *p, int64_t terms)
{
    const int64_t sums = dc_simt_product(s, p->out, p->nout);
    const int64_t most = dc_simt_threads(s) / DC_TUNE_ROW_LANES;
    int64_t warps = 1;
    while (warps < most && terms >= 2 * DC_TUNE_COLUMN_TERMS * warps &&
           sums * warps < dc_simt_many(s) * dc_simt_threads(s))
        warps *= 2;
    static const int32_t others[] = {8, 4, 16, 2, 32, 1, 0};
    return dc_sketch_knob(s, DC_KNOB_WARPS, warps, others,
                          dc_min_i64(s->t->group_threads / DC_TUNE_ROW_LANES, terms));
}

/* Long chains of additions become sums of sums. */
static bool shorten(dc_sketch *s, uint32_t axis)
{
    dc_split block;
    int64_t n = 1;
    if (dc_sketch_extent(s, axis) < DC_TUNE_CHAIN_TERMS)
        return true;
    while (n * n < dc_sketch_extent(s, axis))
        n *= 2;
    return dc_do_split(s, axis, n, &block) && dc_do_subtotal(s, block.o);
}

bool dc_simt_columns(dc_sketch *s, dc_shape *p, bool *is)
{
    uint32_t k, all;
    dc_partial sum;
    dc_split n;
    *is = is_columns(s, p);
    if (!*is)
        return true;
    const int64_t warps = warps_of(s, p, dc_simt_product(s, p->red, p->nred));
    *is = warps > 1;
    if (!*is)
        return true;
    const uint32_t part = s->k->buf.n; /* the first partial sums */
    if (!dc_simt_fuse(s, p->red, p->nred, &k) || !dc_do_split_reduce(s, k, warps, &sum))
        return false;
    const uint32_t made = s->k->buf.n;
    if (!dc_do_reorder(s, sum.i, sum.o) || !shorten(s, sum.o) ||
        !dc_do_split(s, p->out[p->nout - 1], DC_TUNE_ROW_LANES, &n) ||
        !dc_do_reorder(s, sum.i, n.i) || !dc_do_lane(s, n.i) || !dc_do_block(s, sum.i))
        return false;
    for (uint32_t b = part; b < made; b++) /* else columns of partial sums meet in banks */
        dc_do_pad_rows(s, b, warps);       /* refused where they are rows of threads */
    uint32_t out[DC_SHAPE_AXES];
    for (int i = 0; i < p->nout - 1; i++)
        out[i] = p->out[i];
    out[p->nout - 1] = n.o;
    return dc_simt_fuse(s, out, p->nout, &all) && dc_do_grid(s, all);
}
