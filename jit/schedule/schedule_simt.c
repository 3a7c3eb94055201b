/*
 * Schedules by rule for devices that run groups of threads. Two sketches:
 *
 *   flat    a thread for each output, outputs numbered through all their axes, THREADS of them to a
 *           group; a reduction is a loop of its thread.
 *   shared  few outputs with long reductions: a group for each, its threads add up every THREADS-th
 *           term, then the partial sums.
 *
 * Tiles in shared memory are schedules written by hand so far (tests/kernel).
 */
#include "jit/moves/move.h"
#include "jit/schedule/schedule_impl.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256, MANY_OUTPUTS = 1024, LONG_REDUCTION = 128 };

/* One axis for all outputs; its name in *all. */
static bool fuse_outputs(dc_kernel *k, const dc_shape *p, dc_axis_name *all, const char **why)
{
    *all = dc_axis_name_of(k, p->out[0]);
    for (int i = 1; i < p->nout; i++) {
        const dc_axis_name next = dc_axis_name_of(k, p->out[i]);
        if (!dc_move_do(k, why, "fuse %s %s", all->s, next.s))
            return false;
        snprintf(all->s, sizeof all->s, "%s", k->axis.at[k->axis.n - 1].name);
    }
    return true;
}

static int64_t product(const dc_kernel *k, const uint32_t *axis, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        p *= k->axis.at[axis[i]].extent;
    return p;
}

static bool schedule_flat(dc_kernel *k, int threads, const dc_shape *p, const char **why)
{
    dc_axis_name all;
    if (p->nout == 0)
        return true;
    if (!fuse_outputs(k, p, &all, why))
        return false;
    if (product(k, p->out, p->nout) <= threads)
        return dc_move_do(k, why, "block %s", all.s);
    return dc_move_do(k, why, "split %s %d", all.s, threads) &&
           dc_move_do(k, why, "grid %s.o", all.s) && dc_move_do(k, why, "block %s.i", all.s);
}

static bool schedule_shared(dc_kernel *k, int threads, const dc_shape *p, const char **why)
{
    const dc_axis_name r = dc_axis_name_of(k, p->red[p->nred - 1]);
    dc_axis_name all = {""};
    if (!dc_move_do(k, why, "split_reduce %s %d", r.s, threads))
        return false;
    /* the partial sums come to stand outside of all the reduction's loops */
    bool ok = dc_move_do(k, why, "reorder %s.i %s.o", r.s, r.s);
    for (int i = p->nred - 2; i >= 0 && ok; i--)
        ok = dc_move_do(k, why, "reorder %s.i %s", r.s, dc_axis_name_of(k, p->red[i]).s);
    if (!ok || !dc_move_do(k, why, "block %s.i", r.s))
        return false;
    if (p->nout == 0)
        return true;
    return fuse_outputs(k, p, &all, why) && dc_move_do(k, why, "grid %s", all.s);
}

bool dc_schedule_simt(dc_kernel *k, const dc_target *t, const dc_shape *p, const char **why)
{
    const int threads = t->group_threads < THREADS ? t->group_threads : THREADS;
    const bool few = p->nred > 0 && product(k, p->out, p->nout) < MANY_OUTPUTS;
    if (few && k->axis.at[p->red[p->nred - 1]].extent >= LONG_REDUCTION)
        return schedule_shared(k, threads, p, why);
    return schedule_flat(k, threads, p, why);
}
