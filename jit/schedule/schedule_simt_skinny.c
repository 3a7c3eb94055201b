/*
 * Contractions of few rows or columns for groups of threads (jit/schedule/schedule.h): a vector or a few of
 * them by a matrix. Memory decides: the matrix is read once, 16 bytes at a time, several reads in flight.
 *
 *   grid      runs of the long side of the result; other axes outside of them
 *   threads   p along the long side, and inside of them w that share the terms of a sum: 32 where the matrix lies
 *             along the terms, else few, so that threads p read whole lines of its rows
 *   k.o       in each iteration every thread has `terms` of its own of both operands, in registers
 *   own       a thread has all rows of the short side by a run of the long one
 *
 * What threads w have added up is combined by butterflies (`replicate`), in an order that depends on the shape alone.
 * Terms and results beyond the extents are zeros, so no loop has a tail of its own.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_tile.h"

#include <string.h>

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

typedef struct skinny {
    dc_simt_product q; /* the sketch, reductions, the type of sums */
    uint32_t few[DC_SHAPE_AXES], other[DC_SHAPE_AXES], side;
    int nfew, nother;
    int64_t rows, extent, others; /* of few, of side, of other */
    dc_factor matrix, rest;       /* operands: with the long side, with the few rows */
    int64_t p, w, own, terms;     /* threads; of a thread: results of each row, terms at a time */
    uint32_t group, thread, run;  /* loops over the long side */
    uint32_t stages, share, k;    /* loops over terms: k.o, threads w, those of a thread */
    uint32_t copies;              /* threads w where there is a number for each */
} skinny;

/* Looking at it ------------------------------------------------------------------------------- */

/* The axes of the result: rows m and columns n, of which one side is few. */
static bool find_sides(skinny *x, const dc_shape *p, int64_t most)
{
    int64_t m = 1, n = 1;
    uint32_t longest = DC_NO_AXIS;
    for (int i = 0; i < p->nout; i++) {
        const int64_t extent = dc_sketch_extent(x->q.s, p->out[i]);
        if (dc_axis_role(x->q.s->k, p->out[i]) == DC_ROLE_N)
            n *= extent;
        if (!dc_axis_is_rows(x->q.s->k, p->out[i]))
            continue;
        m *= extent;
        if (longest == DC_NO_AXIS || extent > dc_sketch_extent(x->q.s, longest))
            longest = p->out[i];
    }
    const bool few_rows = m <= n;
    if (dc_min_i64(m, n) > most)
        return false;
    x->rows = few_rows ? m : n;
    x->side = few_rows ? p->out[p->nout - 1] : longest;
    x->extent = dc_sketch_extent(x->q.s, x->side);
    x->others = 1;
    for (int i = 0; i < p->nout; i++) {
        const dc_role role = dc_axis_role(x->q.s->k, p->out[i]);
        if (p->out[i] == x->side)
            continue;
        if (few_rows ? dc_role_is_rows(role) : role == DC_ROLE_N) {
            x->few[x->nfew++] = p->out[i];
        } else {
            x->other[x->nother++] = p->out[i];
            x->others *= dc_sketch_extent(x->q.s, p->out[i]);
        }
    }
    return true;
}

static bool read_product(skinny *x, const dc_shape *p, int64_t most)
{
    dc_operands o;
    if (!dc_simt_read_sum(&x->q, p, &o) || !find_sides(x, p, most))
        return false;
    const uint32_t n = p->out[p->nout - 1];
    const bool right = x->side == n;
    x->matrix = dc_simt_factor(&x->q, right ? o.right : o.left, x->side);
    x->rest =
        dc_simt_factor(&x->q, right ? o.left : o.right, x->nfew > 0 ? x->few[x->nfew - 1] : n);
    return true;
}

/* Choosing sizes ------------------------------------------------------------------------------- */

static int64_t lanes_of(const skinny *x)
{
    return x->q.s->t->lanes > 0 ? x->q.s->t->lanes : DC_TUNE_ROW_LANES;
}

/* A power of two up to `most`. */
static int64_t ask(const skinny *x, dc_knob knob, int64_t rule, int64_t most)
{
    static const int32_t others[] = {4, 8, 2, 16, 1, 32, 0};
    return dc_sketch_knob(x->q.s, knob, rule, others, most);
}

/* Of a thread in each row. */
static int64_t most_results(const skinny *x, int64_t most)
{
    return dc_min_i64(most, dc_max_i64(DC_TUNE_SKINNY_OWN / x->rows, 1));
}

/* Along the terms: warps read rows, as vectors; several rows each, where there are enough. */
static void size_along_terms(skinny *x)
{
    const int64_t many = dc_simt_units(x->q.s) * DC_TUNE_SKINNY_WARPS;
    x->terms = ask(x, DC_KNOB_SKINNY_TERMS, x->matrix.wide, x->matrix.wide);
    x->w = ask(x, DC_KNOB_SKINNY_SHARE, lanes_of(x), lanes_of(x));
    x->own = DC_TUNE_SKINNY_RESULTS;
    while (x->own > 1 &&
           (x->others * x->extent / x->own < many || x->own * x->rows > DC_TUNE_SKINNY_OWN ||
            x->own * x->terms > DC_TUNE_SKINNY_OWN))
        x->own /= 2;
    x->own = ask(x, DC_KNOB_SKINNY_OWN, x->own, most_results(x, DC_TUNE_SKINNY_OWN / x->terms));
}

/* Along the results, or in no order: so many neighbours to a thread, few threads to a sum. */
static void size_along_side(skinny *x)
{
    x->terms = ask(x, DC_KNOB_SKINNY_TERMS, DC_TUNE_SKINNY_TERMS, 16);
    x->w = ask(x, DC_KNOB_SKINNY_SHARE, DC_TUNE_SKINNY_SHARE, lanes_of(x));
    x->own = x->matrix.along_side ? x->matrix.wide : 1;
    while (x->own > 1 && x->own * x->rows > DC_TUNE_SKINNY_OWN)
        x->own /= 2;
    x->own = ask(x, DC_KNOB_SKINNY_OWN, x->own, most_results(x, x->matrix.wide));
}

/* False: sums are so short that a thread for each is as well. */
static bool choose_sizes(skinny *x)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)x->q.sum);
    if (x->matrix.along_k)
        size_along_terms(x);
    else
        size_along_side(x);
    while (x->terms > 1 && x->rows * x->terms > DC_TUNE_SKINNY_OWN)
        x->terms /= 2;
    while (x->w > 1 && x->w * x->terms > x->q.K)
        x->w /= 2;
    if (x->w < 2)
        return false;
    static const int32_t others[] = {256, 64, 512, 32, 0};
    const int64_t threads = dc_sketch_knob(x->q.s, DC_KNOB_SKINNY_GROUP, DC_TUNE_SKINNY_THREADS,
                                           others, x->q.s->t->group_threads);
    x->p = dc_max_i64(dc_min_i64(threads, x->q.s->t->group_threads) / x->w, 1);
    /* threads that have no shuffles exchange their results in shared memory */
    while (x->p > 1 && (x->p * x->own >= 2 * x->extent ||
                        (x->q.s->t->lanes == 0 && 4 * x->p * x->w * x->own * x->rows * size >
                                                      (int64_t)x->q.s->t->group_bytes)))
        x->p /= 2;
    return true;
}

/* Doing it ------------------------------------------------------------------------------------- */

/* A loop goes outside of those in `over`, which stand in each other, the innermost last. */
static bool lift(skinny *x, uint32_t axis, const uint32_t *over, int n)
{
    for (int i = n - 1; i >= 0; i--)
        TRY(dc_do_reorder(x->q.s, axis, over[i]));
    return true;
}

/*
 * The loops of the result: groups, few rows, the run of a thread, and inside threads p. Loops over other axes stay
 * outside.
 */
static bool split_side(skinny *x, const dc_shape *p, uint32_t *inner, int *ninner)
{
    dc_sketch *s = x->q.s;
    uint32_t now[DC_SHAPE_AXES + 3], want[DC_SHAPE_AXES + 3];
    int n = 0, w = 0;
    dc_split group, run;
    TRY(dc_do_split_full(s, x->side, x->p * x->own, &group));
    TRY(dc_do_split(s, group.i, x->own, &run));
    x->group = group.o;
    x->thread = run.o;
    x->run = run.i;
    for (int i = 0; i < p->nout; i++) {
        if (p->out[i] != x->side)
            now[n++] = p->out[i];
        else
            for (int j = 0; j < 3; j++)
                now[n++] = (uint32_t[]){x->group, x->thread, x->run}[j];
    }
    for (int i = 0; i < x->nother; i++)
        want[w++] = x->other[i];
    want[w++] = x->group;
    *ninner = 0;
    for (int i = 0; i < x->nfew; i++)
        inner[(*ninner)++] = want[w++] = x->few[i];
    inner[(*ninner)++] = want[w++] = x->run;
    want[w++] = x->thread;
    TRY(dc_simt_arrange(s, now, want, n));
    for (int i = 1; i <= x->nother; i++)
        TRY(dc_do_fuse(s, want[0], want[i], &want[0]));
    x->group = want[0];
    return true;
}

/* Partial sums of threads w, inside threads p, outside of which go the loops over what a thread has itself. */
static bool share_terms(skinny *x, const uint32_t *inner, int ninner)
{
    dc_sketch *s = x->q.s;
    const int last = x->q.nred - 1;
    dc_split k, own;
    dc_partial sum;
    TRY(dc_do_split_full(s, x->q.red[last], x->w * x->terms, &k));
    TRY(dc_do_split(s, k.i, x->terms, &own));
    TRY(dc_do_split_reduce(s, own.o, x->w, &sum));
    x->stages = k.o;
    x->share = sum.i;
    x->k = own.i;
    TRY(dc_do_replicate(s, x->thread, x->w, &x->copies));
    uint32_t chain[DC_SHAPE_AXES + 3];
    int n = 0;
    for (int i = 0; i < last; i++)
        chain[n++] = x->q.red[i];
    chain[n++] = k.o;
    chain[n++] = sum.o;
    chain[n++] = own.i;
    TRY(lift(x, x->share, chain, n));
    TRY(dc_do_reorder(s, x->share, x->thread)); /* sums get a number for each thread p, */
    TRY(dc_do_reorder(s, x->thread, x->share)); /* beside those of threads w */
    TRY(lift(x, x->thread, inner, ninner));
    TRY(lift(x, x->share, inner, ninner));
    TRY(lift(x, x->copies, inner, ninner));
    for (int i = 0; i < n; i++)
        TRY(lift(x, chain[i], inner, ninner));
    return true;
}

/* A copy along memory, in vectors of so many elements. */
static void copy_vectors(dc_sketch *s, uint32_t copy, int64_t wide)
{
    const int64_t n = dc_sketch_extent(s, copy);
    dc_split vectors;
    if (wide > 1 && n > wide && n % wide == 0 && dc_do_split(s, copy, wide, &vectors)) {
        dc_do_unroll(s, vectors.o);
        copy = vectors.i;
    }
    if (wide % dc_sketch_extent(s, copy) != 0 || !dc_do_vectorize(s, copy))
        dc_do_unroll(s, copy);
}

/* What a thread needs of an operand at a time, in vectors along memory; what is refused is left out. */
static void to_registers(skinny *x, const dc_factor *f, const uint32_t *axis, int n)
{
    dc_sketch *s = x->q.s;
    uint32_t dim[DC_SHAPE_AXES], made;
    int d = 0;
    if (f->buf == DC_NO_BUF || !f->alone)
        return;
    if (!f->along_k)
        dim[d++] = x->k;
    memcpy(dim + d, axis, (size_t)n * sizeof *dim);
    d += n;
    if (f->along_k)
        dim[d++] = x->k;
    if (!dc_do_pack(s, f->buf, x->stages, dim, d, &made))
        return;
    for (int i = 0; i < d; i++) {
        const uint32_t copy = dc_sketch_copy_of(s, made, dim[i], 0);
        if (copy == DC_NO_AXIS)
            continue;
        if (i == d - 1)
            copy_vectors(s, copy, f->wide);
        else
            dc_do_unroll(s, copy);
    }
}

static bool apply(skinny *x, const dc_shape *p)
{
    dc_sketch *s = x->q.s;
    uint32_t inner[DC_SHAPE_AXES + 1];
    int ninner;
    TRY(split_side(x, p, inner, &ninner));
    TRY(share_terms(x, inner, ninner));
    TRY(dc_do_grid(s, x->group));
    to_registers(x, &x->matrix, &x->run, 1);
    to_registers(x, &x->rest, x->few, x->nfew);
    TRY(dc_do_block(s, x->thread));
    TRY(dc_do_lane(s, x->share));
    TRY(dc_do_lane(s, x->copies));
    dc_do_unroll(s, x->k);
    for (int i = 0; i < ninner; i++)
        dc_do_unroll(s, inner[i]);
    return true;
}

bool dc_schedule_simt_skinny(dc_sketch *s, const dc_shape *p, int64_t most, bool *is)
{
    skinny x = {.q = {.s = s}};
    *is = read_product(&x, p, most) && choose_sizes(&x);
    return !*is || apply(&x, p);
}
