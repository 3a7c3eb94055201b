/*
 * Schedules by rule for devices that run groups of threads. Two sketches:
 *
 *   flat    a thread for each output, outputs numbered through all their axes, DC_TUNE_GROUP_THREADS of them to a
 *           group; a reduction is a loop of its thread.
 *   shared  few outputs with long reductions: a group for each, its threads add up every DC_TUNE_GROUP_THREADS-th
 *           term, then the partial sums.
 *
 * Tiles in shared memory are schedules written by hand so far (tests/kernel).
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_impl.h"

/* One axis for all outputs. */
static bool fuse_outputs(dc_sketch *s, const dc_shape *p, uint32_t *all)
{
    *all = p->out[0];
    for (int i = 1; i < p->nout; i++)
        if (!dc_do_fuse(s, *all, p->out[i], all))
            return false;
    return true;
}

static int64_t product(const dc_sketch *s, const uint32_t *axis, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        p *= dc_sketch_extent(s, axis[i]);
    return p;
}

static bool schedule_flat(dc_sketch *s, int threads, const dc_shape *p)
{
    const int64_t outputs = product(s, p->out, p->nout);
    uint32_t all;
    dc_split groups;
    if (p->nout == 0)
        return true;
    if (!fuse_outputs(s, p, &all))
        return false;
    if (outputs <= threads)
        return dc_do_block(s, all);
    return dc_do_split(s, all, threads, &groups) && dc_do_grid(s, groups.o) &&
           dc_do_block(s, groups.i);
}

static bool schedule_shared(dc_sketch *s, int threads, const dc_shape *p)
{
    uint32_t all;
    dc_partial r;
    if (!dc_do_split_reduce(s, p->red[p->nred - 1], threads, &r))
        return false;
    /* partial sums go outside of all loops of the reduction */
    bool ok = dc_do_reorder(s, r.i, r.o);
    for (int i = p->nred - 2; i >= 0 && ok; i--)
        ok = dc_do_reorder(s, r.i, p->red[i]);
    if (!ok || !dc_do_block(s, r.i))
        return false;
    if (p->nout == 0)
        return true;
    return fuse_outputs(s, p, &all) && dc_do_grid(s, all);
}

bool dc_schedule_simt(dc_sketch *s, const dc_shape *p)
{
    const int threads =
        s->t->group_threads < DC_TUNE_GROUP_THREADS ? s->t->group_threads : DC_TUNE_GROUP_THREADS;
    const bool few = p->nred > 0 && product(s, p->out, p->nout) < DC_TUNE_GROUP_OUTPUTS;
    if (few && dc_sketch_extent(s, p->red[p->nred - 1]) >= DC_TUNE_GROUP_TERMS)
        return schedule_shared(s, threads, p);
    return schedule_flat(s, threads, p);
}
