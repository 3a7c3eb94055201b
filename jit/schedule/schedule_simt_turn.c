/*
 * Maps with transposed operands by groups of threads (jit/schedule/schedule_simt_impl.h). What is read across the result's
 * order goes through a tile in shared memory: both sides go along memory, and rows of the tile are a bank further apart,
 * so that columns meet in no bank.
 *
 * Where the axis along memory is short, as the taps of a kernel are, runs go on in the next one. A tile has a part of that one
 * with all of the short one, on one side of the copy; on the other
 *
 *   runs     rows along that next axis                                  [o][i][taps] to [o][taps][i]
 *   tiles    rows along a third one, of which the tile has a part, too  [o][i][taps] to [taps][i][o]
 *
 * Where places along the result are no linear function of it, as where phases of an image are joined, its last axes become one,
 * everything is computed along memory of what is read, and the result goes through the tile.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

#include <string.h>

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

/* Axes by number in the shape. A short one is directly inside of `next` in memory. */
typedef struct turn {
    int along;       /* of what is read: its elements are neighbours */
    int inner, next; /* the short axis and the one that it goes on in */
    int row;         /* of tiles: the third one */
    bool loads;      /* it is so in what is read, else in the result */
    bool runs;       /* else tiles */
    uint8_t dtype;   /* of what has the runs */
} turn;

/* What the kernel reads of parameters before any move: loads in ascending order. */
typedef struct reads {
    const dc_vx *at;
    int n;
} reads;

/* Looking at it ------------------------------------------------------------------------------- */

static int64_t extent_of(const dc_sketch *s, const dc_shape *p, int at)
{
    return dc_sketch_extent(s, p->out[at]);
}

/* 0: it does not move, or by no constant step. */
static int64_t step_of(const dc_kernel *k, const dc_shape *p, dc_ix at, int axis)
{
    bool affine = true;
    const int64_t step = dc_ix_stride(k, at, p->out[axis], &affine);
    return affine ? step : 0;
}

static bool is_input(const dc_kernel *k, const dc_vx_node *n)
{
    return n->kind == DC_VX_LOAD && k->buf.at[n->buf].scope == DC_SCOPE_PARAM &&
           k->buf.at[n->buf].mode == DC_MODE_IN;
}

static reads reads_of(const dc_sketch *s)
{
    dc_kernel *k = s->k;
    const bool *used = dc_sketch_used(k, &k->arena);
    dc_vx *at = DC_NEW_ARRAY(&k->arena, dc_vx, k->vx.n);
    reads l = {.at = at};
    for (dc_vx v = 1; v < k->vx.n; v++)
        if (used[v] && is_input(k, &k->vx.at[v]))
            at[l.n++] = v;
    return l;
}

/* Is it a load along axis number `at` in memory, across the last one? */
static bool is_transposed(const dc_kernel *k, const dc_shape *p, const dc_vx_node *n, int at)
{
    return step_of(k, p, n->at, at) == 1 && step_of(k, p, n->at, p->nout - 1) > 1;
}

static bool is_long(const dc_sketch *s, const dc_shape *p, int at)
{
    return extent_of(s, p, at) >= DC_TUNE_TILE_LEAST;
}

/* The number of the axis along which transposed operands go; -1: there are none, or it is too short for a tile. */
static int transposed_axis(const dc_sketch *s, const dc_shape *p, const reads *l)
{
    for (int i = 0; i < l->n; i++)
        for (int at = p->nout - 2; at >= 0; at--)
            if (is_transposed(s->k, p, &s->k->vx.at[l->at[i]], at) && is_long(s, p, at) &&
                is_long(s, p, p->nout - 1))
                return at;
    return -1;
}

/* The axis with that step at a position, long enough with n iterations of a shorter one; -1: there is none. */
static int axis_of_step(const dc_sketch *s, const dc_shape *p, dc_ix at, int64_t step, int64_t n)
{
    for (int i = 0; i < p->nout; i++)
        if (step_of(s->k, p, at, i) == step && n * extent_of(s, p, i) >= DC_TUNE_TILE_LEAST)
            return i;
    return -1;
}

/* Does the load go along a short axis, then along another? */
static bool reads_short(const dc_sketch *s, const dc_shape *p, const dc_vx_node *n, turn *t)
{
    const int last = p->nout - 1;
    t->inner = axis_of_step(s, p, n->at, 1, DC_TUNE_TILE_LEAST);
    if (t->inner < 0 || t->inner == last || is_long(s, p, t->inner) || !is_long(s, p, last))
        return false;
    const int64_t e = extent_of(s, p, t->inner);
    t->next = axis_of_step(s, p, n->at, e, e);
    t->runs = t->next == last;
    t->along = t->inner;
    t->row = last;
    return e > 1 && t->next >= 0 && step_of(s->k, p, n->at, last) > 1;
}

/* What the kernel stores, if it is one element of a parameter. */
static const dc_put *only_store(const dc_kernel *k, const dc_stmt *first)
{
    for (; first != NULL && first->kind == DC_STMT_LOOP; first = first->body)
        if (first->next != NULL)
            return NULL;
    if (first == NULL || first->next != NULL || first->nput != 1 || first->pred.n > 0)
        return NULL;
    return k->buf.at[first->put[0].buf].scope == DC_SCOPE_PARAM ? &first->put[0] : NULL;
}

/* Does the result go along a short axis, then along another, and the load along a long one? */
static bool stores_short(const dc_sketch *s, const dc_shape *p, const dc_vx_node *n, turn *t)
{
    const int last = p->nout - 1;
    const int64_t e = extent_of(s, p, last);
    const dc_put *put = only_store(s->k, s->k->root);
    if (is_long(s, p, last) || e < 2 || put == NULL || step_of(s->k, p, put->at, last) != 1 ||
        step_of(s->k, p, n->at, last) <= 1)
        return false;
    t->inner = last;
    t->dtype = s->k->buf.at[put->buf].dtype;
    t->next = axis_of_step(s, p, put->at, e, e);
    t->along = t->row = axis_of_step(s, p, n->at, 1, 1);
    t->runs = t->next == t->along;
    return t->next >= 0 && t->along >= 0;
}

static bool find_short(const dc_sketch *s, const dc_shape *p, const reads *l, turn *t)
{
    for (int i = 0; i < l->n; i++) {
        const dc_vx_node *n = &s->k->vx.at[l->at[i]];
        t->dtype = n->dtype;
        t->loads = reads_short(s, p, n, t);
        if (t->loads || stores_short(s, p, n, t))
            return true;
    }
    return false;
}

/* Tiles --------------------------------------------------------------------------------------- */

/* Rows of a tile by threads: so many of them one below the other to a thread, the columns by neighbours. */
static bool share_by(dc_sketch *s, uint32_t row, int64_t n, uint32_t column)
{
    dc_split rows;
    return dc_do_split(s, row, n, &rows) && dc_do_reorder(s, column, rows.i) &&
           dc_do_block(s, rows.o) && dc_do_lane(s, column) && dc_do_unroll(s, rows.i);
}

/* Rows of a thread, of so many rows. */
static int64_t rows_each(int64_t rows)
{
    int64_t n = DC_TUNE_TILE_ROWS;
    while (rows % n != 0)
        n--;
    return n;
}

static bool share_tile(dc_sketch *s, uint32_t row, uint32_t column)
{
    return share_by(s, row, rows_each(dc_sketch_extent(s, row)), column);
}

/* A transposed operand comes into tiles of rows along its memory, one for each place of it. */
static bool stage(dc_sketch *s, uint32_t buf, uint32_t group, uint32_t m, uint32_t n)
{
    const uint32_t tile = s->k->buf.n, dims[2] = {n, m};
    uint32_t made;
    TRY(dc_do_pack(s, buf, group, dims, 2, &made));
    const uint32_t tiles = s->k->buf.n - tile;
    for (uint32_t i = 0; i < tiles; i++)
        TRY(dc_do_pad_rows(s, tile + i, DC_TUNE_TILE) &&
            share_tile(s, dc_sketch_copy_of(s, made, n, (int)i),
                       dc_sketch_copy_of(s, made, m, (int)i)));
    return true;
}

/* Loads of the buffer: each has a tile of its own, unless it is the same. */
static size_t loads_from(const dc_sketch *s, const reads *l, uint32_t buf)
{
    size_t n = 0;
    for (int i = 0; i < l->n; i++)
        n += s->k->vx.at[l->at[i]].buf == buf;
    return n;
}

/*
 * Buffers that are read along the axis, and across the last one, as many as have room for their
 * tiles of so many elements in shared memory. Others are read where they are.
 */
static int transposed_operands(const dc_sketch *s, const dc_shape *p, const reads *l, int at,
                               size_t elements, uint32_t *operand)
{
    size_t bytes = 0;
    int n = 0;
    for (int i = 0; i < l->n && n < DC_TUNE_TILE_OPERANDS; i++) {
        const dc_vx_node *load = &s->k->vx.at[l->at[i]];
        bool known =
            step_of(s->k, p, load->at, at) != 1 || step_of(s->k, p, load->at, p->nout - 1) == 1;
        for (int o = 0; o < n; o++)
            known = known || operand[o] == load->buf;
        const size_t tiles = elements * dc_dtype_size((dc_dtype)load->dtype) *
                             (known ? 0 : loads_from(s, l, load->buf));
        if (known || bytes + tiles > (size_t)dc_simt_shared(s))
            continue;
        bytes += tiles;
        operand[n++] = load->buf;
    }
    return n;
}

/* Square tiles of the axis and the last one. */
static bool schedule_tiles(dc_sketch *s, const dc_shape *p, const reads *l, int at)
{
    uint32_t operand[DC_TUNE_TILE_OPERANDS], out[DC_SHAPE_AXES + 1], group;
    const uint32_t last = p->out[p->nout - 1];
    const int operands =
        transposed_operands(s, p, l, at, DC_TUNE_TILE * (DC_TUNE_TILE + 4), operand);
    int n = 0;
    dc_split m, c;
    if (!dc_do_split(s, p->out[at], DC_TUNE_TILE, &m) || !dc_do_split(s, last, DC_TUNE_TILE, &c))
        return false;
    for (int i = 0; i < p->nout - 1; i++)
        out[n++] = i == at ? m.o : p->out[i];
    out[n++] = c.o;
    for (int i = at + 1; i < p->nout; i++)
        if (!dc_do_reorder(s, out[i], m.i))
            return false;
    if (!dc_simt_fuse(s, out, n, &group) || !dc_do_grid(s, group))
        return false;
    bool staged = true;
    for (int i = 0; i < operands && staged; i++)
        staged = stage(s, operand[i], group, m.i, c.i);
    return share_tile(s, m.i, c.i) && staged;
}

/* Short axes ---------------------------------------------------------------------------------- */

/* Loops in the order: others, then these of the tile. */
static bool bring_together(dc_sketch *s, dc_shape *p, const uint32_t *tile, int ntile)
{
    uint32_t want[DC_SHAPE_AXES];
    int n = 0;
    for (int i = 0; i < p->nout; i++) {
        bool others = true;
        for (int j = 0; j < ntile; j++)
            others = others && p->out[i] != tile[j];
        if (others)
            want[n++] = p->out[i];
    }
    memcpy(want + n, tile, (size_t)ntile * sizeof *want);
    return dc_simt_arrange(s, p->out, want, p->nout);
}

/* The outer loops, of parts too, become the grid. */
static bool make_grid(dc_sketch *s, dc_shape *p, const dc_split *part, int nparts, uint32_t *group)
{
    const int others = p->nout - nparts - 1; /* the short one stays */
    for (int i = 0; i < nparts; i++)
        p->out[others + i] = part[i].o;
    for (int i = 1; i < nparts; i++)
        for (int j = 0; j < i; j++)
            TRY(dc_do_reorder(s, part[i].o, part[j].i));
    return dc_simt_fuse(s, p->out, others + nparts, group) && dc_do_grid(s, *group);
}

/* Rows of a tile of so many elements stand apart where threads that read a column would meet. */
static bool pad(dc_sketch *s, uint32_t tile, int64_t row)
{
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)s->k->buf.at[tile].dtype);
    return row * size % 8 != 0 || dc_do_pad_rows(s, tile, row);
}

/* Iterations of the long axis for a tile: more, of few terms, where groups remain for the whole device. */
static int64_t width_of(const dc_sketch *s, const dc_shape *p, int64_t extent, int64_t each)
{
    const int64_t all = dc_simt_product(s, p->out, p->nout), rows = each / rows_each(each);
    int64_t n = DC_TUNE_TILE;
    while (n * each < DC_TUNE_TILE * DC_TUNE_TILE && 2 * n <= extent &&
           2 * n <= dc_simt_threads(s) && 2 * n * rows <= s->t->group_threads &&
           all / (2 * n * each) >= dc_simt_many(s))
        n *= 2;
    return n;
}

/* [part][inner] as one run, in rows of threads that follow one another. */
static bool share_run(dc_sketch *s, uint32_t part, uint32_t inner)
{
    const int64_t width = dc_sketch_extent(s, part);
    uint32_t all;
    dc_split rows;
    return dc_do_fuse(s, part, inner, &all) && dc_do_split(s, all, width, &rows) &&
           share_tile(s, rows.o, rows.i);
}

/* The same as rows along `part`. */
static bool share_rows(dc_sketch *s, uint32_t part, uint32_t inner)
{
    return dc_do_reorder(s, inner, part) && share_tile(s, inner, part);
}

static bool stage_run(dc_sketch *s, uint32_t buf, uint32_t group, uint32_t part, uint32_t inner,
                      bool loads)
{
    const uint32_t tile = s->k->buf.n, dims[2] = {part, inner};
    uint32_t made;
    TRY(dc_do_pack(s, buf, group, dims, 2, &made));
    const uint32_t tiles = s->k->buf.n - tile;
    for (uint32_t i = 0; i < tiles; i++) {
        TRY(pad(s, tile + i, dc_sketch_extent(s, inner)));
        const uint32_t outer = dc_sketch_copy_of(s, made, part, (int)i);
        const uint32_t in = dc_sketch_copy_of(s, made, inner, (int)i);
        TRY(loads ? share_run(s, outer, in) : share_rows(s, outer, in));
    }
    return true;
}

static bool schedule_runs(dc_sketch *s, dc_shape *p, const reads *l, const turn *t)
{
    const uint32_t inner = p->out[t->inner], next = p->out[t->next];
    const int64_t each = dc_sketch_extent(s, inner);
    const int64_t width = width_of(s, p, dc_sketch_extent(s, next), each);
    uint32_t operand[DC_TUNE_TILE_OPERANDS], group;
    const int n = transposed_operands(s, p, l, t->along, (size_t)(width * (each + 4)), operand);
    dc_split part;
    TRY(bring_together(s, p, (const uint32_t[]){next, inner}, 2));
    TRY(dc_do_split(s, next, width, &part));
    TRY(make_grid(s, p, &part, 1, &group));
    bool staged = true;
    for (int i = 0; i < n && staged; i++)
        staged = stage_run(s, operand[i], group, part.i, inner, t->loads);
    return (t->loads ? share_rows(s, part.i, inner) : share_run(s, part.i, inner)) && staged;
}

/* How many rows a thread has, so that all are shared by as many threads as the columns of n parts are, and a group has room. */
static int64_t shared_rows(const dc_sketch *s, uint32_t row, uint32_t column, int64_t n)
{
    const int64_t rows = dc_sketch_extent(s, row), columns = dc_sketch_extent(s, column);
    while (rows % n != 0)
        n--;
    while (n < rows && (rows % n != 0 || rows / n * columns > s->t->group_threads))
        n++;
    return n;
}

/* A tile [row][part][inner] by threads along the two others. */
static bool share_columns(dc_sketch *s, const uint32_t axis[3])
{
    const int64_t n = dc_sketch_extent(s, axis[1]);
    uint32_t column;
    return dc_do_fuse(s, axis[1], axis[2], &column) &&
           share_by(s, axis[0], shared_rows(s, axis[0], column, n), column);
}

/* The same by threads along [inner] and [row]. */
static bool share_across(dc_sketch *s, const uint32_t axis[3])
{
    uint32_t now[3];
    memcpy(now, axis, sizeof now);
    return dc_simt_arrange(s, now, (const uint32_t[]){axis[2], axis[0], axis[1]}, 3) &&
           dc_do_block(s, axis[2]) && dc_do_lane(s, axis[0]) && dc_do_unroll(s, axis[1]);
}

/*
 * As it is read: [row][part][inner], or [part][inner][row]. Copies have one loop over [part][inner], so that rows are seen to
 * be whole, wherever they stand.
 */
static bool stage_tile(dc_sketch *s, uint32_t buf, uint32_t group, const uint32_t axis[3],
                       bool loads)
{
    const uint32_t tile = s->k->buf.n, across[3] = {axis[1], axis[2], axis[0]};
    const int64_t n = dc_sketch_extent(s, axis[1]);
    uint32_t made, column;
    TRY(dc_do_pack(s, buf, group, loads ? axis : across, 3, &made));
    const uint32_t tiles = s->k->buf.n - tile;
    for (uint32_t i = 0; i < tiles; i++) {
        const uint32_t row = dc_sketch_copy_of(s, made, axis[0], (int)i);
        TRY(dc_do_fuse(s, dc_sketch_copy_of(s, made, axis[1], (int)i),
                       dc_sketch_copy_of(s, made, axis[2], (int)i), &column));
        TRY(pad(s, tile + i, dc_sketch_extent(s, loads ? column : row)));
        TRY(loads ? share_by(s, row, shared_rows(s, row, column, n), column)
                  : share_by(s, column, n, row));
    }
    return true;
}

/* Iterations of the next axis for a tile: with any number of taps they are whole sectors, or they are all. */
static int64_t part_of(const dc_sketch *s, const turn *t, const dc_shape *p)
{
    enum { SECTOR = 32 };
    const int64_t extent = extent_of(s, p, t->next);
    const int64_t n = SECTOR / (int64_t)dc_dtype_size((dc_dtype)t->dtype);
    return extent < 2 * n ? extent : n;
}

static bool schedule_joined(dc_sketch *s, dc_shape *p, const reads *l, const turn *t)
{
    const uint32_t inner = p->out[t->inner], next = p->out[t->next], row = p->out[t->row];
    const int64_t each = dc_sketch_extent(s, inner), n = part_of(s, t, p);
    uint32_t operand[DC_TUNE_TILE_OPERANDS], group;
    const int operands =
        transposed_operands(s, p, l, t->along, (size_t)(DC_TUNE_TILE * (n * each + 4)), operand);
    dc_split part[2];
    TRY(bring_together(s, p, (const uint32_t[]){row, next, inner}, 3));
    TRY(dc_do_split(s, row, DC_TUNE_TILE, &part[0]));
    TRY(dc_do_split(s, next, n, &part[1]));
    TRY(make_grid(s, p, part, 2, &group));
    const uint32_t axis[3] = {part[0].i, part[1].i, inner};
    bool staged = true;
    for (int i = 0; i < operands && staged; i++)
        staged = stage_tile(s, operand[i], group, axis, t->loads);
    return (t->loads ? share_across(s, axis) : share_columns(s, axis)) && staged;
}

/* Results ------------------------------------------------------------------------------------- */

/* Stored along the axes behind number `at` as if they were one, read along `at`. */
typedef struct result {
    int at;
    dc_vx value;
    const bool *live; /* by value, up to it: it is computed of it */
    uint32_t buf, along[DC_TUNE_TILE_OPERANDS];
    int nalong;   /* operands that lie as the result does */
    size_t bytes; /* of one element of all their tiles */
} result;

/* Is there one run of elements along the axes behind `axis`? */
static bool goes_behind(const dc_sketch *s, const dc_shape *p, dc_ix at, int axis)
{
    int64_t step = 1;
    for (int i = p->nout - 1; i > axis; i--) {
        if (step_of(s->k, p, at, i) != step)
            return false;
        step *= extent_of(s, p, i);
    }
    return true;
}

/* Does the load go along axis number `at`, at places that are no linear function of what is behind it? */
static bool is_scattered(const dc_sketch *s, const dc_shape *p, dc_vx load, int at)
{
    const dc_vx_node *n = &s->k->vx.at[load];
    bool irregular = false;
    for (int i = at + 1; i < p->nout; i++)
        irregular = irregular || dc_strides_of(s->k, load, p->out[i]).irregular;
    return irregular && is_input(s->k, n) && step_of(s->k, p, n->at, at) == 1;
}

/* The load goes along `at` too, or not with it, or as the result does; false: in another way. */
static bool read_operand(const dc_sketch *s, const dc_shape *p, dc_vx load, result *r)
{
    const dc_vx_node *n = &s->k->vx.at[load];
    const dc_strides across = dc_strides_of(s->k, load, p->out[r->at]);
    if (s->k->buf.at[n->buf].mode != DC_MODE_IN)
        return false;
    if (across.unit || across.invariant)
        return true;
    r->bytes += dc_dtype_size((dc_dtype)n->dtype);
    for (int i = 0; i < r->nalong; i++)
        if (r->along[i] == n->buf)
            return goes_behind(s, p, n->at, r->at);
    if (across.irregular || !goes_behind(s, p, n->at, r->at) || r->nalong == DC_TUNE_TILE_OPERANDS)
        return false;
    r->along[r->nalong++] = n->buf;
    return true;
}

static bool read_operands(const dc_sketch *s, const dc_shape *p, result *r)
{
    r->bytes = dc_dtype_size((dc_dtype)s->k->buf.at[r->buf].dtype);
    for (dc_vx v = 1; v <= r->value; v++)
        if (r->live[v] && s->k->vx.at[v].kind == DC_VX_LOAD && !read_operand(s, p, v, r))
            return false;
    return r->bytes * DC_TUNE_TILE * (DC_TUNE_TILE + 4) <= (size_t)dc_simt_shared(s);
}

/* The number of the axis along which operands go at scattered places; -1: there are none. */
static int scattered_axis(const dc_sketch *s, const dc_shape *p, const result *r)
{
    for (dc_vx v = 1; v <= r->value; v++)
        for (int at = p->nout - 2; r->live[v] && at >= 0; at--)
            if (is_scattered(s, p, v, at))
                return at;
    return -1;
}

static bool find_result(dc_sketch *s, const dc_shape *p, result *r)
{
    const dc_put *put = only_store(s->k, s->k->root);
    if (put == NULL || dc_ix_any_value(s->k))
        return false;
    *r = (result){.value = put->value, .buf = put->buf};
    r->live = dc_vx_parts(s->k, &s->k->arena, put->value);
    r->at = scattered_axis(s, p, r);
    return r->at >= 0 && is_long(s, p, r->at) && step_of(s->k, p, put->at, r->at) > 1 &&
           goes_behind(s, p, put->at, r->at) && read_operands(s, p, r) &&
           dc_simt_product(s, p->out + r->at + 1, p->nout - r->at - 1) >= DC_TUNE_TILE_LEAST;
}

/* Computed by threads along m, stored by threads along c. */
static bool schedule_result(dc_sketch *s, dc_shape *p, const result *r)
{
    uint32_t made, behind, group;
    dc_split m, c;
    TRY(dc_simt_fuse(s, p->out + r->at + 1, p->nout - r->at - 1, &behind));
    TRY(dc_do_split(s, p->out[r->at], DC_TUNE_TILE, &m));
    TRY(dc_do_split(s, behind, DC_TUNE_TILE, &c));
    TRY(dc_do_reorder(s, c.o, m.i));
    p->out[r->at] = m.o;
    p->out[r->at + 1] = c.o;
    TRY(dc_simt_fuse(s, p->out, r->at + 2, &group));
    for (int i = 0; i < r->nalong; i++)
        TRY(stage(s, r->along[i], group, c.i, m.i));
    const uint32_t tile = s->k->buf.n;
    TRY(dc_do_cache_write(s, r->buf, group, &made));
    TRY(dc_do_pad_rows(s, tile, DC_TUNE_TILE));
    TRY(share_tile(s, dc_sketch_copy_of(s, made, m.i, 0), dc_sketch_copy_of(s, made, c.i, 0)));
    return dc_do_reorder(s, c.i, m.i) && share_tile(s, c.i, m.i) && dc_do_grid(s, group);
}

/* Has the device room for a tile of it? */
static bool has_room(const dc_sketch *s, const dc_shape *p, const turn *t)
{
    const int64_t each = extent_of(s, p, t->inner), n = t->runs ? 1 : part_of(s, t, p);
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)t->dtype);
    return DC_TUNE_TILE * each <= s->t->group_threads && n * each <= s->t->group_threads &&
           DC_TUNE_TILE * (n * each + 4) * size <= dc_simt_shared(s);
}

bool dc_simt_turn(dc_sketch *s, const dc_shape *shape, bool *is)
{
    dc_shape p = *shape;
    turn t = {0};
    result r;
    const reads l = reads_of(s);
    const int at = transposed_axis(s, &p, &l);
    *is = true;
    if (at >= 0)
        return schedule_tiles(s, &p, &l, at);
    if (find_short(s, &p, &l, &t) && has_room(s, &p, &t))
        return t.runs ? schedule_runs(s, &p, &l, &t) : schedule_joined(s, &p, &l, &t);
    *is = find_result(s, &p, &r);
    return !*is || schedule_result(s, &p, &r);
}
