/*
 * Random lists of schedule moves (tests/unit/schedule_random.h) that come to rings of shared memory (`stage`), which moves
 * drawn one by one never make: a reduction in stages, each of which begins by copies of inputs that threads share.
 *
 *   for o: for k          for k.o: for o: for k.i          for k.o: copies by threads; for o by threads: for k.i
 */
#ifndef DC_TESTS_SCHEDULE_RINGS_H
#define DC_TESTS_SCHEDULE_RINGS_H

#include "tests/unit/schedule_random.h"

enum { SR_RINGS = 2 };

typedef struct sr_ring {
    char stage[80], over[80]; /* loops over stages and, inside, over results */
    uint32_t buf[SR_RINGS];   /* copies of inputs, in the order in which they are filled */
    int n;
} sr_ring;

/* A serial loop of a sum in a serial loop over results. */
static inline const dc_stmt *sr_ring_loop(sr_maker *m, const dc_stmt **over)
{
    const dc_stmt *found = NULL;
    int n = 0;
    m->t = sr_tree_of(m->k);
    for (int i = 0; i < m->t.n; i++) {
        const dc_stmt *loop = m->t.loop[i], *up = m->t.up[i];
        if (up == NULL || !m->k->axis.at[loop->axis].reduce || m->k->axis.at[up->axis].reduce ||
            sr_kind(m, loop) != DC_AXIS_SERIAL || sr_kind(m, up) != DC_AXIS_SERIAL ||
            sr_extent(m, loop) < 2 || rng_below(m->r, ++n) > 0)
            continue;
        found = loop;
        *over = up;
    }
    return found;
}

/* The loop over stages goes outside of that over results. */
static inline bool sr_ring_stages(sr_maker *m, sr_ring *x)
{
    char move[200];
    const dc_stmt *over = NULL, *loop = sr_ring_loop(m, &over);
    if (loop == NULL)
        return false;
    const int64_t extent = sr_extent(m, loop);
    snprintf(x->over, sizeof x->over, "%s", sr_name(m, over));
    snprintf(x->stage, sizeof x->stage, "%.70s", sr_name(m, loop));
    if (extent > 3 && rng_below(m->r, 4) > 0) {
        snprintf(move, sizeof move, "%s %s %d", rng_below(m->r, 3) ? "split" : "split_full",
                 x->stage, 2 + rng_below(m->r, (int)dc_min_i64(extent, 9) - 2));
        if (!sr_do(m, move))
            return false;
        strcat(x->stage, ".o");
    }
    snprintf(move, sizeof move, "reorder %s %s", x->stage, x->over);
    return sr_do(m, move);
}

/* Loops that copy become threads, all or some of them. */
static inline void sr_ring_threads(sr_maker *m, uint32_t from)
{
    char move[200];
    const uint32_t to = m->k->axis.n;
    int64_t threads = 1;
    for (uint32_t a = from; a < to; a++) {
        const dc_axis *axis = &m->k->axis.at[a];
        if (threads * axis->extent > 64 || rng_below(m->r, 5) == 0)
            continue;
        snprintf(move, sizeof move, "block %s", axis->name);
        if (sr_do(m, move))
            threads *= axis->extent;
    }
}

static inline void sr_ring_copy(sr_maker *m, sr_ring *x)
{
    char move[200];
    uint32_t input[SR_PARAMS];
    int n = 0;
    for (uint32_t b = 0; b < m->k->buf.n; b++)
        if (m->k->buf.at[b].scope == DC_SCOPE_PARAM && m->k->buf.at[b].mode == DC_MODE_IN &&
            n < SR_PARAMS)
            input[n++] = b;
    if (n == 0)
        return;
    const uint32_t made = m->k->buf.n, axes = m->k->axis.n;
    snprintf(move, sizeof move, "cache_read %s %s", m->k->buf.at[input[rng_below(m->r, n)]].name,
             x->stage);
    if (!sr_do(m, move) || m->k->buf.n == made)
        return;
    x->buf[x->n++] = made;
    sr_ring_threads(m, axes);
}

/* Of what was filled first first; now and then in another order, which is refused. */
static inline void sr_ring_stage(sr_maker *m, const sr_ring *x, int stages)
{
    char move[200];
    const bool turned = rng_below(m->r, 8) == 0;
    for (int i = 0; i < x->n; i++) {
        const uint32_t buf = x->buf[turned ? i : x->n - 1 - i];
        if (m->k->buf.at[buf].scope != DC_SCOPE_GROUP) {
            snprintf(move, sizeof move, "scope %s group", m->k->buf.at[buf].name);
            sr_do(m, move);
        }
    }
    for (int i = 0; i < x->n; i++) { /* each copy stands before those made earlier */
        const uint32_t buf = x->buf[turned ? i : x->n - 1 - i];
        snprintf(move, sizeof move, "stage %s %d", m->k->buf.at[buf].name, stages);
        sr_do(m, move);
    }
}

/* A random list with a ring in it, if the kernel has a sum that takes one. */
static inline void sr_make_ring(sr_maker *m)
{
    static const int grid[DC_MOVE__COUNT] = {[DC_MOVE_GRID] = 1};
    char move[200];
    sr_ring x = {.n = 0};
    m->team = 4;
    sr_some(m, rng_below(m->r, 4), sr_weight.shape);
    if (!sr_ring_stages(m, &x)) {
        sr_make(m);
        return;
    }
    for (int n = 1 + rng_below(m->r, SR_RINGS); n > 0; n--)
        sr_ring_copy(m, &x);
    snprintf(move, sizeof move, "block %s", x.over);
    if (rng_below(m->r, 5) > 0)
        sr_do(m, move);
    if (rng_below(m->r, 2) > 0)
        sr_some(m, 1, grid);
    sr_some(m, rng_below(m->r, 3), sr_weight.late);
    sr_ring_stage(m, &x, 2 + rng_below(m->r, 3));
    sr_some(m, rng_below(m->r, 3) ? 0 : rng_below(m->r, 4), sr_traffic);
}

#endif
