/*
 * The rule for kernels that go through rows (jit/schedule/schedule_impl.h): under the loops over rows stand
 * parts one after the other, each a loop over the columns around one assignment, which adds up or
 * stores. Softmax has three: a maximum, a sum of exponentials, quotients; a plain sum has one.
 *
 * Each part is put into vectors by itself: sums as partial sums, several vectors of them, added up at
 * the end; the others along their last axis. A row is read from memory by the first part and from the
 * cache by those that follow. Where rows are too short for vectors, as many rows as there are lanes go
 * side by side; so do columns of a scatter, whose updates come one after the other; rows of a scatter do not. Columns that
 * are no whole vectors are the innermost loop.
 *
 * Rows of row blocks (jit/lower/lower_rows.c) stand one loop deeper, and the launch is over blocks.
 */
#include "jit/base/tuning.h"
#include "jit/nest/nest_access.h"
#include "jit/schedule/schedule_impl.h"

#include <string.h>

enum { MAX_PARTS = 32 };

typedef struct part {
    uint32_t axis[DC_SHAPE_AXES]; /* outermost first */
    int64_t extent[DC_SHAPE_AXES];
    int n;
    bool reduces;
    dc_vx value; /* that is set */
    dc_ix at;    /* and where */
    int along;   /* the axis of vectors; -1: none is worth it */
} part;

typedef struct parts {
    part at[MAX_PARTS];
    int n;
    int64_t height; /* rows of a block; 0: there are no blocks */
} parts;

/* What stands in the loops over rows; NULL: nothing does. */
static const dc_stmt *body_of(const dc_kernel *k, const dc_shape *p)
{
    const dc_stmt *t = k->root;
    for (int i = 0; i < p->nout; i++)
        t = t->body;
    return t;
}

/* The innermost axis of a reduction that is long enough and read along memory (apart: or strided). */
static int sum_axis(const dc_sketch *s, const part *x, dc_vx term, bool apart)
{
    for (int i = x->n - 1; i >= 0; i--) {
        const dc_strides along = dc_strides_of(s->k, term, x->axis[i]);
        if (x->extent[i] >= s->lanes && !along.irregular &&
            (apart || (along.unit && !along.strided)))
            return i;
    }
    return -1;
}

static int axis_of_vectors(const dc_sketch *s, const part *x, const dc_stmt *set)
{
    int64_t terms = 1;
    for (int i = 0; i < x->n; i++)
        terms *= x->extent[i];
    if (!x->reduces) /* updates at loaded places are one after the other */
        return x->extent[x->n - 1] >= 4 && !dc_ix_loads(s->k, x->at) ? x->n - 1 : -1;
    const dc_vx term = s->k->vx.at[set->put[0].value].in[1];
    if (terms < 2 * s->lanes)
        return -1;
    const int near = sum_axis(s, x, term, false);
    return near >= 0 ? near : sum_axis(s, x, term, true);
}

static bool read_part(const dc_sketch *s, const dc_stmt *loop, part *x)
{
    *x = (part){0};
    for (; loop != NULL && loop->kind == DC_STMT_LOOP && x->n < DC_SHAPE_AXES; loop = loop->body) {
        if (x->n > 0 && loop->next != NULL)
            return false;
        x->extent[x->n] = dc_sketch_extent(s, loop->axis);
        x->axis[x->n++] = loop->axis;
    }
    if (loop == NULL || loop->kind != DC_STMT_SET || loop->next != NULL)
        return false;
    x->reduces = loop->reduces;
    x->value = loop->put[0].value;
    x->at = loop->put[0].at;
    x->along = axis_of_vectors(s, x, loop);
    return true;
}

/* All parts; false where something else stands among them. */
static bool read_parts(const dc_sketch *s, const dc_stmt *first, parts *all)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        if (s->k->axis.at[t->axis].role == DC_ROLE_ROW) { /* the rows of a block */
            all->height = dc_sketch_extent(s, t->axis);
            if (!read_parts(s, t->body, all))
                return false;
        } else if (all->n == MAX_PARTS || !read_part(s, t, &all->at[all->n++])) {
            return false;
        }
    }
    return true;
}

/* each by itself ------------------------------------------------------------------------------ */

/* Combines `sums` partial results along axis r, by halves once they fill one vector. */
static bool add_sums(dc_sketch *s, uint32_t r, int64_t sums)
{
    while (sums > s->lanes || sums > DC_TUNE_HALVED_LANES) {
        const int64_t next = sums > s->lanes ? s->lanes : sums / 2;
        dc_partial half;
        if (!dc_do_split_reduce(s, r, next, &half) || !dc_do_vectorize(s, half.i) ||
            !dc_do_unroll(s, half.o))
            return false;
        sums = next;
        r = half.j;
    }
    return dc_do_unroll(s, r);
}

/* The larger of two floats is several instructions one after the other: NaN, zeros of both signs. */
static bool takes_long(const dc_sketch *s, dc_vx value)
{
    const dc_vx_node *n = &s->k->vx.at[value];
    return (n->op == DC_OP_MAX || n->op == DC_OP_MIN) && dc_dtype_is_float((dc_dtype)n->dtype) &&
           s->t->vector_registers >= DC_TUNE_MANY_REGISTERS;
}

/*
 * Vectors that are added up beside each other: as many as hide how long an addition takes, and fill the last round.
 * What counts is how many are added, how long the rounds wait for each other, and how many are put together at the end.
 */
static int64_t vectors_of(const dc_sketch *s, const part *x)
{
    const int64_t n = (x->extent[x->along] + s->lanes - 1) / s->lanes;
    const int64_t slow = takes_long(s, x->value) ? 2 : 1, most = slow * DC_TUNE_SUM_VECTORS;
    int64_t best = 1, least = INT64_MAX;
    for (int64_t v = dc_min_i64(most, n); v >= 1; v--) {
        const int64_t rounds = (n + v - 1) / v;
        const int64_t cost = rounds * dc_max_i64(v, DC_TUNE_SUM_VECTORS) + v;
        if (cost < least) {
            least = cost;
            best = v;
        }
    }
    return dc_sketch_knob(s, DC_KNOB_SUM_VECTORS, best, (const int32_t[]){1, 2, 4, 6, 8, 0},
                          dc_min_i64(n, s->t->vector_registers / 2));
}

/* The reduction of a part, in vectors along one of its axes. */
static bool schedule_sum(dc_sketch *s, const part *x)
{
    const int64_t sums = vectors_of(s, x) * s->lanes;
    dc_chain sum = {.total = x->value, .n = x->along + 1, .side = sums, .inside = 1};
    dc_partial r;
    dc_split vectors;
    memcpy(sum.red, x->axis, (size_t)sum.n * sizeof *sum.red);
    memcpy(sum.extent, x->extent, (size_t)sum.n * sizeof *sum.extent);
    for (int i = sum.n; i < x->n; i++)
        sum.inside *= x->extent[i];
    dc_sketch_subtotal(s, &sum);
    return dc_do_split_reduce(s, sum.red[sum.n - 1], sums, &r) &&
           dc_do_split(s, r.i, s->lanes, &vectors) && dc_do_vectorize(s, vectors.i) &&
           dc_do_unroll(s, vectors.o) && add_sums(s, r.j, sums);
}

static bool schedule_stores(dc_sketch *s, uint32_t n, int64_t extent, int64_t rows)
{
    const int64_t lanes = dc_sketch_lanes(s, extent);
    const int64_t vectors = dc_sketch_vectors(s, rows * extent, extent, lanes);
    dc_split v;
    return dc_do_split(s, n, lanes * vectors, &v) && dc_do_vectorize(s, v.i);
}

static bool schedule_each(dc_sketch *s, const dc_shape *p, const parts *all)
{
    bool done = true;
    int64_t rows = 1;
    for (int i = 0; i < p->nout; i++)
        rows *= dc_sketch_extent(s, p->out[i]);
    rows *= dc_max_i64(all->height, 1);
    for (int i = 0; i < all->n; i++) {
        const part *x = &all->at[i];
        if (x->along < 0)
            continue;
        const int64_t extent = x->extent[x->along];
        done = (x->reduces ? schedule_sum(s, x)
                           : schedule_stores(s, x->axis[x->along], extent, rows)) &&
               done;
    }
    return p->nout == 0 || (dc_sketch_grid(s) && done);
}

/* rows side by side --------------------------------------------------------------------------- */

/* Are there too few columns for vectors, but rows? */
static bool are_short(const dc_sketch *s, const dc_shape *p, const parts *all)
{
    if (p->nout == 0 || dc_sketch_extent(s, p->out[p->nout - 1]) < 4)
        return false;
    for (int i = 0; i < all->n; i++) {
        int64_t columns = 1;
        for (int a = 0; a < all->at[i].n; a++)
            columns *= all->at[i].extent[a];
        if (columns >= 2 * s->lanes)
            return false;
    }
    return true;
}

static bool schedule_beside(dc_sketch *s, const dc_shape *p, const parts *all)
{
    const uint32_t m = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, m);
    dc_split rows;
    int64_t lanes = dc_sketch_lanes(s, extent);
    if (p->add == NULL)
        lanes *= dc_sketch_vectors(s, DC_TUNE_FOUR_VECTORS, extent, lanes);
    if (!dc_do_split(s, m, lanes, &rows))
        return false;
    for (int i = 0; i < all->n; i++)
        for (int a = 0; a < all->at[i].n; a++)
            if (!dc_do_reorder(s, all->at[i].axis[a], rows.i))
                return false;
    if (!dc_do_vectorize(s, rows.i))
        return false;
    for (int a = 0; p->add != NULL && all->n == 1 && a < all->at[0].n; a++)
        if (all->at[0].extent[a] <= DC_TUNE_UNROLLED_SUMS && /* sums stay in registers */
            !dc_do_unroll(s, all->at[0].axis[a]))
            return false;
    return dc_sketch_grid(s);
}

/*
 * Are iterations of the last loop over rows neighbours in memory, in what a scatter changes, or in the integers and values
 * that it reads for its updates? Else updates are, and rows that go side by side would be far apart.
 */
static bool are_columns(const dc_sketch *s, const dc_shape *p, const parts *all)
{
    const dc_kernel *k = s->k;
    const uint32_t m = p->out[p->nout - 1];
    bool affine = true;
    int beside = 0, along = 0;
    if (all->n == 0)
        return false;
    const part *updates = &all->at[all->n - 1];
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].mode != DC_MODE_IN)
            continue;
        beside += dc_ix_stride(k, n->at, m, &affine) == 1;
        along += dc_ix_stride(k, n->at, updates->axis[updates->n - 1], &affine) == 1;
    }
    return dc_ix_stride(k, updates->at, m, &affine) == 1 || beside > along;
}

/*
 * Rows side by side: as many in one work item as hold a cache line several times and divide all, the loop over them
 * innermost; in the longest vectors that divide them, or one by one.
 */
static bool schedule_inner_rows(dc_sketch *s, const parts *all, uint32_t m)
{
    const int64_t extent = dc_sketch_extent(s, m);
    int64_t lanes = s->lanes, block;
    dc_split rows, vectors;
    while (extent % lanes != 0)
        lanes /= 2;
    for (block = DC_TUNE_ROWS_INSIDE; block < extent; block++)
        if (extent % block == 0 && block % lanes == 0)
            break;
    if (!dc_do_split(s, m, dc_min_i64(block, extent), &rows))
        return false;
    for (int i = 0; i < all->n; i++)
        for (int a = 0; a < all->at[i].n; a++)
            if (!dc_do_reorder(s, all->at[i].axis[a], rows.i))
                return false;
    return lanes == 1 || (dc_do_split(s, rows.i, lanes, &vectors) && dc_do_vectorize(s, vectors.i));
}

/* Of rows that no vector worth it divides, those behind the last whole vector are by themselves. */
static bool schedule_inside(dc_sketch *s, const dc_shape *p, const parts *all)
{
    const uint32_t m = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, m), rest = extent % s->lanes;
    dc_split cut = {.o = m};
    if (rest % 4 != 0 && extent > s->lanes &&
        (!dc_do_cut(s, m, extent - rest, &cut) || !schedule_inner_rows(s, all, cut.i)))
        return false;
    return schedule_inner_rows(s, all, cut.o) && dc_sketch_grid_all(s);
}

/*
 * Lanes of vectors that go twice at least into each sum, instead of rows side by side, which are apart in memory. Where
 * rows are stored, too, only those that have a rest beside whole vectors of rows.
 */
static int lanes_of_sums(const dc_sketch *s, const dc_shape *p, const parts *all)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < all->n; i++) {
        int64_t columns = 1;
        for (int a = 0; a < all->at[i].n; a++)
            columns *= all->at[i].extent[a];
        least = all->at[i].reduces ? dc_min_i64(least, columns) : least;
    }
    int lanes = s->lanes;
    while (lanes > DC_TUNE_HALVED_LANES && least < 2 * lanes)
        lanes /= 2;
    const bool whole = dc_sketch_extent(s, p->out[p->nout - 1]) % s->lanes == 0;
    const bool pays = !p->by_rows || (!whole && least >= s->lanes);
    return pays && least >= 2 * lanes ? lanes : s->lanes;
}

bool dc_schedule_rows(dc_sketch *s, dc_shape *p, bool *is)
{
    parts all = {0};
    *is = true;
    if (!read_parts(s, body_of(s->k, p), &all))
        return p->nout == 0 || dc_sketch_grid(s);
    if (p->add != NULL && are_short(s, p, &all)) {
        s->lanes = lanes_of_sums(s, p, &all);
        all = (parts){0};
        if (!read_parts(s, body_of(s->k, p), &all))
            return p->nout == 0 || dc_sketch_grid(s);
    }
    const int64_t last = p->nout > 0 ? dc_sketch_extent(s, p->out[p->nout - 1]) : 0;
    /* whole vectors only: lanes of a tail would read what another work item writes */
    const bool columns = p->add == NULL && all.height == 0 && last >= 4 && are_columns(s, p, &all);
    const bool whole = columns && last % dc_sketch_lanes(s, last) == 0;
    const bool may = columns || (p->add != NULL && are_short(s, p, &all));
    if (!may || dc_sketch_knob(s, DC_KNOB_BESIDE, 2, (const int32_t[]){1, 0}, 2) != 2)
        return schedule_each(s, p, &all);
    return columns && !whole ? schedule_inside(s, p, &all) : schedule_beside(s, p, &all);
}
