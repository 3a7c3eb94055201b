/*
 * The last axis of a map in vectors, whatever its extent (jit/schedule/schedule_impl.h).
 *
 *   - Axes that all accesses go through as if they were one become one.
 *   - A long axis is cut where vectors end, so that only the tail is masked, and around the places where
 *     a test along it changes: the seam of two inputs, a border. Elsewhere such tests are decided.
 *   - Blocks of a transposed operand (jit/schedule/schedule_map.c) end in strips of fewer rows or columns.
 *   - Rows shorter than half a vector are taken several at a time, as many as fill vectors. Lanes then stand at
 *     constant distances in what is read, which a few loads and shuffles do (jit/render/llvm_gather.c).
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_impl.h"

enum { MOST_CUTS = 8 };

/* axes that are one ---------------------------------------------------------------------------- */

static bool one_in(dc_kernel *k, dc_ix at, uint32_t outer, uint32_t inner)
{
    bool affine = true;
    const int64_t over = dc_ix_stride(k, at, outer, &affine);
    const int64_t near = dc_ix_stride(k, at, inner, &affine);
    return affine && over == near * k->axis.at[inner].extent;
}

static bool one_in_pred(dc_kernel *k, dc_pred p, uint32_t outer, uint32_t inner)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (!one_in(k, p.range[i].ix, outer, inner))
            return false;
    return true;
}

static bool one_in_value(dc_kernel *k, dc_vx v, uint32_t outer, uint32_t inner)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    bool one = true;
    for (dc_vx i = 1; i <= v && one; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i])
            continue;
        if (n->kind == DC_VX_LOAD || n->kind == DC_VX_INDEX)
            one = one_in(k, n->at, outer, inner);
        one = one && one_in_pred(k, n->pred, outer, inner);
    }
    dc_arena_rewind(&k->arena, mark);
    return one;
}

static bool one_in_stmts(dc_kernel *k, const dc_stmt *first, uint32_t outer, uint32_t inner)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->tile != NULL || !one_in_pred(k, t->pred, outer, inner) ||
            !one_in_stmts(k, t->body, outer, inner))
            return false;
        for (uint32_t i = 0; i < t->nput; i++)
            if (!one_in(k, t->put[i].at, outer, inner) ||
                !one_in_value(k, t->put[i].value, outer, inner))
                return false;
    }
    return true;
}

void dc_sketch_merge(dc_sketch *s, dc_shape *p)
{
    for (int i = p->nout - 2; i >= 0; i--) {
        const uint32_t outer = p->out[i], inner = p->out[i + 1];
        uint32_t one;
        if (one_in_stmts(s->k, s->k->root, outer, inner) && dc_do_fuse(s, outer, inner, &one))
            *p = dc_shape_of(s->k);
    }
}

bool dc_sketch_merge_rows(dc_sketch *s, dc_shape *p, bool *is)
{
    *is = false;
    for (int i = p->nout - 2; i >= 0 && p->one_sum && !p->by_rows; i--) {
        const uint32_t outer = p->out[i], inner = p->out[i + 1];
        uint32_t one;
        if (s->k->axis.at[outer].role == DC_ROLE_M && s->k->axis.at[inner].role == DC_ROLE_M &&
            one_in_stmts(s->k, s->k->root, outer, inner) && dc_do_fuse(s, outer, inner, &one))
            *p = dc_shape_of(s->k);
    }
    return true;
}

/* pieces --------------------------------------------------------------------------------------- */

/* The axis in vectors of n lanes, or so many vectors. */
static bool make_vectors(dc_sketch *s, uint32_t axis, int64_t n)
{
    dc_split v;
    return dc_do_split(s, axis, n, &v) && dc_do_vectorize(s, v.i);
}

/* One vector for all of it, of which some lanes are masked. */
static bool schedule_tail(dc_sketch *s, uint32_t axis, int64_t extent)
{
    int64_t lanes = 1;
    dc_split v;
    while (lanes < extent)
        lanes *= 2;
    if (extent == 1 || !dc_do_split(s, axis, lanes, &v))
        return true; /* as it is: what is picked by integers has no tail */
    return dc_do_vectorize(s, v.i);
}

static bool schedule_piece(dc_sketch *s, uint32_t axis, int64_t extent, int64_t step)
{
    const int64_t rest = extent % step;
    dc_split parts = {.o = axis};
    if (extent <= step)
        return schedule_tail(s, axis, extent);
    if (rest > 0 &&
        (!dc_do_cut(s, axis, extent - rest, &parts) || !schedule_tail(s, parts.i, rest)))
        return false;
    return make_vectors(s, parts.o, step);
}

typedef struct cuts {
    int64_t at[MOST_CUTS];
    int n;
    bool many;
} cuts;

static void add_cut(cuts *c, int64_t at, int64_t extent)
{
    int i = c->n;
    if (at <= 0 || at >= extent)
        return;
    for (int k = 0; k < c->n; k++)
        if (c->at[k] == at)
            return;
    if (c->n == MOST_CUTS) {
        c->many = true;
        return;
    }
    for (; i > 0 && c->at[i - 1] > at; i--)
        c->at[i] = c->at[i - 1];
    c->at[i] = at;
    c->n++;
}

/* Round the iterations of the axis from which on `ix` is not less than `limit` (or less, where it falls). */
static void add_crossing(dc_kernel *k, cuts *c, dc_ix ix, uint32_t axis, int64_t limit,
                         int64_t lanes)
{
    bool affine = true;
    const int64_t step = dc_ix_stride(k, ix, axis, &affine);
    const dc_ix_node *x = &k->ix.at[ix];
    if (!affine || step == 0 || x->n != 1) /* other axes move the place */
        return;
    const int64_t at =
        step > 0 ? -dc_floor_div(x->c - limit, step) : dc_floor_div(x->c - limit, -step) + 1;
    const int64_t extent = k->axis.at[axis].extent, begin = dc_floor_div(at, lanes) * lanes;
    if (at <= 0 || at >= extent)
        return;
    add_cut(c, begin, extent);
    if (begin != at)
        add_cut(c, begin + lanes, extent);
}

static cuts cuts_of(dc_kernel *k, uint32_t axis, int64_t lanes)
{
    cuts c = {.n = 0};
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        for (uint32_t i = 0; n->kind == DC_VX_TEST && i < n->pred.n; i++) {
            add_crossing(k, &c, n->pred.range[i].ix, axis, 0, lanes);
            add_crossing(k, &c, n->pred.range[i].ix, axis, n->pred.range[i].n, lanes);
        }
    }
    if (c.many)
        c.n = 0;
    return c;
}

bool dc_schedule_vectors(dc_sketch *s, const dc_shape *p, int64_t vectors)
{
    uint32_t axis = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, axis), step = vectors * s->lanes;
    const cuts c = extent > step ? cuts_of(s->k, axis, s->lanes) : (cuts){.n = 0};
    int64_t from = 0;
    for (int i = 0; i < c.n; i++) {
        dc_split parts;
        if (!dc_do_cut(s, axis, c.at[i] - from, &parts) ||
            !schedule_piece(s, parts.o, c.at[i] - from, step))
            return false;
        axis = parts.i;
        from = c.at[i];
    }
    return schedule_piece(s, axis, extent - from, step) && dc_sketch_grid_all(s);
}

/* short rows ----------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* So many rows at a time, one behind the other, in vectors that are written out. */
static bool schedule_block(dc_sketch *s, uint32_t rows, int64_t count, uint32_t row, int64_t extent)
{
    uint32_t all;
    dc_split block, v;
    if (!dc_do_split(s, rows, count, &block) || !dc_do_fuse(s, block.i, row, &all))
        return false;
    if (count * extent <= s->lanes)
        return schedule_tail(s, all, count * extent);
    return !dc_do_split(s, all, s->lanes, &v) || (dc_do_unroll(s, v.o) && dc_do_vectorize(s, v.i));
}

int64_t dc_sketch_block(const dc_sketch *s, int64_t extent)
{
    return extent / common_divisor(s->lanes, extent);
}

bool dc_schedule_short_rows(dc_sketch *s, const dc_shape *p, int64_t vectors)
{
    const uint32_t row = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, row);
    const int64_t count = dc_sketch_extent(s, p->out[p->nout - 2]);
    int64_t block = s->lanes / common_divisor(s->lanes, extent);
    uint32_t rows = p->out[p->nout - 2];
    while (block * extent < vectors * s->lanes)
        block *= 2;
    if (count % block != 0 && count > block) {
        dc_split parts;
        if (!dc_do_cut(s, rows, count - count % block, &parts) ||
            !schedule_block(s, parts.i, count % block, row, extent))
            return false;
        rows = parts.o;
    }
    return schedule_block(s, rows, dc_min_i64(count, block), row, extent) && dc_sketch_grid_all(s);
}

/* transposed operands ------------------------------------------------------------------------------ */

/* A part of an axis: whole blocks of it, or what is left behind them. */
typedef struct strip {
    uint32_t axis;
    int64_t extent;   /* 0: there is none of it */
    dc_split vectors; /* of columns */
} strip;

/* Cuts the axis behind its last whole block of the lanes. */
static bool cut_strips(dc_sketch *s, uint32_t axis, strip part[2])
{
    const int64_t extent = dc_sketch_extent(s, axis), rest = extent % s->lanes;
    dc_split parts;
    part[0] = (strip){.axis = axis, .extent = extent - rest};
    part[1] = (strip){.axis = axis, .extent = rest};
    if (rest == 0 || rest == extent)
        return true;
    if (!dc_do_cut(s, axis, extent - rest, &parts))
        return false;
    part[0].axis = parts.o;
    part[1].axis = parts.i;
    return true;
}

static bool schedule_strip_columns(dc_sketch *s, strip *n)
{
    const int64_t lanes = dc_sketch_lanes(s, n->extent);
    return n->extent == 0 || (dc_do_split(s, n->axis, lanes, &n->vectors) &&
                              (lanes == 1 || dc_do_vectorize(s, n->vectors.i)));
}

int64_t dc_sketch_blocks(const dc_sketch *s, int64_t rule)
{
    return dc_sketch_knob(s, DC_KNOB_BLOCKS, rule, (const int32_t[]){1, 2, 4, 8, 0}, 8);
}

/* Blocks along m are beside each other where that many divide it, as those of even extents are. */
static bool schedule_strip_rows(dc_sketch *s, const dc_shape *p, int at, const strip *m,
                                const strip n[2])
{
    const int64_t lanes = dc_min_i64(m->extent, s->lanes);
    /* the corner is not worth the text of a block */
    const bool few_are_left = m->extent < s->lanes && n[0].extent > 0 && n[1].extent > 0;
    int64_t blocks = dc_sketch_blocks(s, DC_TUNE_TRANSPOSED_BLOCKS);
    uint32_t corner;
    dc_split rows, block;
    if (m->extent == 0)
        return true;
    while (m->extent % (blocks * lanes) != 0)
        blocks /= 2;
    if (!dc_do_split(s, m->axis, blocks * lanes, &rows))
        return false;
    for (int i = at + 1; i < p->nout - 1; i++)
        if (!dc_do_reorder(s, p->out[i], rows.i))
            return false;
    for (int b = 0; b < 2; b++)
        if (n[b].extent > 0 && !dc_do_reorder(s, n[b].vectors.o, rows.i))
            return false;
    if (few_are_left && !dc_do_part(s, rows.i, n[0].vectors.i, &corner))
        return false;
    if (blocks == 1)
        return dc_do_unroll(s, rows.i);
    return dc_do_split(s, rows.i, lanes, &block) && dc_do_unroll(s, block.i);
}

bool dc_schedule_transposed_strips(dc_sketch *s, const dc_shape *p, int at)
{
    strip m[2], n[2];
    return cut_strips(s, p->out[p->nout - 1], n) && cut_strips(s, p->out[at], m) &&
           schedule_strip_columns(s, &n[0]) && schedule_strip_columns(s, &n[1]) &&
           schedule_strip_rows(s, p, at, &m[0], n) && schedule_strip_rows(s, p, at, &m[1], n) &&
           dc_sketch_grid_all(s);
}
