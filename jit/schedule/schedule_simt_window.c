/*
 * Short sums through windows by groups of threads (jit/schedule/schedule_simt_impl.h): convolutions of each channel by itself,
 * pools. All operands go along the last axis of the result. A thread has a vector of it at several neighbouring positions:
 * taps of all of them are added up together, so that weights and elements that several windows see are read once.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

typedef struct window {
    int64_t vector, positions, threads; /* of a thread; of a group */
} window;

/* Is it one short sum that is read along the last axis of the result? */
static bool is_window(const dc_sketch *s, const dc_shape *p)
{
    if (p->add == NULL || !p->one_sum || p->by_rows || p->nout < 2 || p->nred == 0 ||
        dc_simt_product(s, p->red, p->nred) > DC_TUNE_WINDOW_TERMS ||
        dc_sketch_extent(s, p->out[p->nout - 1]) < DC_TUNE_GROUP_ROWS)
        return false;
    const dc_strides along = dc_strides_of(s->k, dc_shape_term(s->k, p), p->out[p->nout - 1]);
    return along.unit && !along.strided && !along.irregular;
}

/* Positions of a thread that leave none over, if there are; else a few, the last ones of which may do nothing. */
static int64_t positions_of(int64_t extent)
{
    static const int64_t n[] = {4, 7, 5, 6, 3, 2};
    for (size_t i = 0; i < DC_COUNTOF(n); i++)
        if (extent % n[i] == 0)
            return n[i];
    return extent > 4 * n[0] ? n[0] : 1;
}

/* Fewer elements to a thread where there are few threads. */
static window choose(const dc_sketch *s, const dc_shape *p)
{
    const int64_t all = dc_simt_product(s, p->out, p->nout);
    const int64_t enough = dc_simt_many(s) * dc_simt_threads(s);
    window w = {.vector = dc_simt_vector(s, dc_sketch_extent(s, p->out[p->nout - 1])),
                .positions = positions_of(dc_sketch_extent(s, p->out[p->nout - 2])),
                .threads = dc_simt_threads(s)};
    static const int32_t others[] = {2, 4, 1, 3, 7, 8, 0};
    const int64_t widest = w.vector;
    if (all / (w.vector * w.positions) < enough)
        w.positions = 1;
    w.positions = dc_sketch_knob(s, DC_KNOB_POSITIONS, w.positions, others,
                                 dc_sketch_extent(s, p->out[p->nout - 2]));
    while (w.vector > 1 && all / (w.vector * w.positions) < enough)
        w.vector /= 2;
    w.vector = dc_simt_ask_access(s, w.vector, widest);
    while (w.threads > DC_TUNE_ROW_LANES &&
           all / (w.vector * w.positions * w.threads) < dc_simt_many(s))
        w.threads /= 2;
    return w;
}

/* The loops over what a thread has go inside those of the sum. */
static bool make_own(dc_sketch *s, const dc_shape *p, const window *w, uint32_t *out)
{
    dc_split x, c;
    const int at = p->nout - 2;
    if (!dc_do_split(s, p->out[at], w->positions, &x) ||
        !dc_do_split(s, p->out[at + 1], w->vector, &c) || !dc_do_reorder(s, c.o, x.i) ||
        !dc_sketch_hoist(s, p->red, p->nred, c.i) || !dc_sketch_hoist(s, p->red, p->nred, x.i) ||
        (w->vector > 1 && !dc_do_vectorize(s, c.i)) || !dc_do_unroll(s, x.i))
        return false;
    const uint32_t taps = p->red[p->nred - 1];
    if (dc_sketch_extent(s, taps) * w->positions <= DC_TUNE_WINDOW_UNROLLED)
        dc_do_unroll(s, taps);
    out[at] = x.o;
    out[at + 1] = c.o;
    return true;
}

bool dc_simt_windows(dc_sketch *s, dc_shape *p, bool *is)
{
    uint32_t out[DC_SHAPE_AXES], all;
    *is = is_window(s, p);
    if (!*is)
        return true;
    const window w = choose(s, p);
    *is = w.vector > 1 || w.positions > 1;
    if (!*is)
        return true;
    for (int i = 0; i < p->nout; i++)
        out[i] = p->out[i];
    return make_own(s, p, &w, out) && dc_simt_fuse(s, out, p->nout, &all) &&
           dc_simt_groups(s, all, w.threads);
}
