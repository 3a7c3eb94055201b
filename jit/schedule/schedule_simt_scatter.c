/*
 * Scatters by groups of threads (jit/schedule/schedule_simt_impl.h): the gradients of embeddings and of index_select.
 *
 *   for i: for n: { for a: y[i, a, n] = ... ; for k: y[i, x[k], n] += ... }
 *
 * No atomics, so that additions keep their order: each warp has a range of places (`ranges`) and some columns n of them,
 * fills these, looks through all integers and makes the updates of its range. What a warp looks at is the same for all its
 * threads, so they look at 32 integers at a time (jit/render/warp_loop.h), which costs less than the updates do.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

typedef struct scatter {
    uint32_t out[DC_SHAPE_AXES],
        k[DC_SHAPE_AXES];         /* axes of the loops round both, of those over updates */
    uint32_t before, after, fill; /* axes i, n, a, or DC_NO_AXIS */
    int nout, nafter, nk;
    int64_t places; /* that integers choose from */
    uint32_t range; /* the axis over ranges, or DC_NO_AXIS */
} scatter;

/* The loaded integer of a position, 0 where there is none or more than one. */
static dc_atom place_of(const dc_kernel *k, dc_ix at)
{
    dc_atom place = 0;
    const dc_ix_node *x = &k->ix.at[at];
    for (uint32_t i = 0; i < x->n; i++)
        if (k->atom.at[x->term[i].atom].kind == DC_ATOM_VALUE) {
            if (place != 0)
                return 0;
            place = x->term[i].atom;
        }
    return place;
}

/* The loops from t on, each alone in the one before, go to axis; what stands in them. */
static const dc_stmt *loops_of(const dc_stmt *t, uint32_t *axis, int *n)
{
    *n = 0;
    while (t != NULL && t->kind == DC_STMT_LOOP && t->next == NULL && *n < DC_SHAPE_AXES) {
        axis[(*n)++] = t->axis;
        t = t->body;
    }
    return t;
}

/* Which of the loops round the updates move what is stored, and how far; the others, the last ones, are the updates. */
static void sort_loops(const dc_sketch *s, scatter *x, dc_ix at)
{
    bool affine = true;
    while (x->nout > 0 && !dc_ix_uses(s->k, at, x->out[x->nout - 1])) {
        for (int i = x->nk++; i > 0; i--)
            x->k[i] = x->k[i - 1];
        x->k[0] = x->out[--x->nout];
    }
    x->nafter = 0;
    const dc_atom place = place_of(s->k, at);
    int64_t coef = 0;
    for (uint32_t i = 0; i < s->k->ix.at[at].n; i++)
        if (s->k->ix.at[at].term[i].atom == place)
            coef = s->k->ix.at[at].term[i].coef;
    while (x->nafter < x->nout &&
           dc_ix_stride(s->k, at, x->out[x->nout - 1 - x->nafter], &affine) < coef)
        x->nafter++;
}

/* Is the kernel a scatter: nothing but loops over updates, perhaps behind one that fills? */
static bool read_scatter(const dc_sketch *s, scatter *x)
{
    const dc_kernel *k = s->k;
    *x = (scatter){.fill = DC_NO_AXIS, .range = DC_NO_AXIS};
    const dc_stmt *t = loops_of(k->root, x->out, &x->nout), *set = t;
    if (t != NULL && t->kind == DC_STMT_LOOP && t->next != NULL && t->next->next == NULL &&
        t->body->kind == DC_STMT_SET) {
        x->fill = t->axis;
        set = loops_of(t->next, x->k, &x->nk);
    }
    if (set == NULL || set->kind != DC_STMT_SET || set->next != NULL || set->nput != 1 ||
        place_of(k, set->put[0].at) == 0)
        return false;
    if (x->fill == DC_NO_AXIS || x->nk > 0)
        sort_loops(s, x, set->put[0].at);
    x->places = k->atom.at[place_of(k, set->put[0].at)].hi + 1;
    if (x->fill != DC_NO_AXIS)
        x->places = dc_max_i64(x->places, dc_sketch_extent(s, x->fill));
    return x->nk > 0;
}

/* Rows and columns of the result as one axis each, updates too. */
static bool fuse_loops(dc_sketch *s, scatter *x)
{
    const int nbefore = x->nout - x->nafter;
    x->before = x->after = DC_NO_AXIS;
    return (nbefore == 0 || dc_simt_fuse(s, x->out, nbefore, &x->before)) &&
           (x->nafter == 0 || dc_simt_fuse(s, x->out + nbefore, x->nafter, &x->after)) &&
           dc_simt_fuse(s, x->k, x->nk, &x->k[0]);
}

static int64_t extent_of(const dc_sketch *s, uint32_t axis)
{
    return axis == DC_NO_AXIS ? 1 : dc_sketch_extent(s, axis);
}

/* Half, or twice and more; only of one result, whose ranges need not be whole. */
static int64_t ask_range(const dc_sketch *s, const scatter *x, int64_t rule)
{
    const int32_t n = (int32_t)dc_min_i64(rule, 1 << 24), half = n > 1 ? n / 2 : 2 * n;
    const int32_t others[] = {2 * n, half, 4 * n, n > 3 ? n / 4 : 2 * n, 8 * n, 0};
    return dc_sketch_knob(s, DC_KNOB_RANGE, rule, others,
                          extent_of(s, x->before) > 1 ? 0 : x->places);
}

/*
 * Places of a range, so many that there are enough ranges: a power of two, since integers are divided by it. Ranges of
 * several results are whole, else nothing proves that they are disjoint.
 */
static int64_t range_of(const dc_sketch *s, const scatter *x, int64_t enough)
{
    int64_t n = 1;
    while (n < x->places && (x->places + n - 1) / n * extent_of(s, x->before) > enough)
        n *= 2;
    while (n < x->places && extent_of(s, x->before) > 1 && x->places % n != 0)
        n++;
    return ask_range(s, x, n);
}

static bool into_ranges(dc_sketch *s, scatter *x, int64_t n)
{
    dc_split parts;
    if (n >= x->places)
        return true;
    if (!dc_do_ranges(s, x->k[0], n, &parts))
        return false;
    x->range = parts.o;
    if (x->fill != DC_NO_AXIS)
        x->fill = parts.i;
    return true;
}

/* No columns: a thread for each range. */
static bool by_threads(dc_sketch *s, scatter *x)
{
    uint32_t all = x->before;
    const int64_t threads = dc_simt_threads(s);
    const int64_t warps = dc_simt_many(s) * DC_TUNE_SCATTER_WARPS;
    if (!into_ranges(s, x, range_of(s, x, warps * DC_TUNE_ROW_LANES)))
        return false;
    if (x->range != DC_NO_AXIS && x->before != DC_NO_AXIS &&
        !dc_do_fuse(s, x->before, x->range, &all))
        return false;
    if (x->before == DC_NO_AXIS)
        all = x->range;
    return all == DC_NO_AXIS || dc_simt_groups(s, all, threads);
}

/* Columns in vectors inside of the loops, threads of whole warps for them, and groups for ranges. */
static bool by_warps(dc_sketch *s, scatter *x)
{
    const int64_t columns = dc_sketch_extent(s, x->after), warp = DC_TUNE_ROW_LANES;
    const int64_t most =
        dc_simt_goes_along(s, s->k->root, x->after) ? dc_simt_vector(s, columns) : 1;
    const int64_t v = columns > most ? most : dc_max_i64(most / 2, 1); /* of two threads at least */
    const int64_t warps = (columns / v + warp - 1) / warp;
    const int64_t group = dc_simt_threads(s) / warp;
    const int64_t parts = (warps + group - 1) / group, threads = (warps + parts - 1) / parts * warp;
    dc_split vector = {.o = x->after}, of;
    uint32_t out[3], all;
    int n = 0;
    const int64_t enough = dc_simt_many(s) * DC_TUNE_SCATTER_WARPS;
    if (!into_ranges(s, x, range_of(s, x, enough / warps)) ||
        (x->range != DC_NO_AXIS && !dc_do_reorder(s, x->range, x->after)))
        return false;
    if (v > 1 && (!dc_do_split(s, x->after, v, &vector) ||
                  (x->fill != DC_NO_AXIS && !dc_do_reorder(s, x->fill, vector.i)) ||
                  !dc_do_reorder(s, x->k[0], vector.i) || !dc_do_vectorize(s, vector.i)))
        return false;
    if (!dc_do_split(s, vector.o, threads, &of) || !dc_do_block(s, of.i))
        return false;
    if (x->before != DC_NO_AXIS)
        out[n++] = x->before;
    if (x->range != DC_NO_AXIS)
        out[n++] = x->range;
    out[n++] = of.o;
    return dc_simt_fuse(s, out, n, &all) && dc_do_grid(s, all);
}

bool dc_simt_scatter(dc_sketch *s, dc_shape *p, bool *is)
{
    DC_UNUSED(p);
    scatter x;
    *is = read_scatter(s, &x);
    if (!*is || !fuse_loops(s, &x))
        return !*is;
    return x.after == DC_NO_AXIS ? by_threads(s, &x) : by_warps(s, &x);
}
