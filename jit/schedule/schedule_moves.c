/*
 * Schedule moves as rules apply them (jit/schedule/schedule_impl.h): a function for each, which hands back the
 * axes that the move made.
 */
#include "jit/base/tuning.h"
#include "jit/moves/move.h"
#include "jit/schedule/schedule_impl.h"

#include <string.h>

static bool apply(dc_sketch *s, const dc_move *m)
{
    return dc_move_apply(s->k, m, &s->why);
}

static bool on_axis(dc_sketch *s, dc_move_kind kind, uint32_t axis)
{
    return apply(s, &(dc_move){.kind = kind, .naxis = 1, .axis = {axis}});
}

static bool on_two(dc_sketch *s, dc_move_kind kind, uint32_t a, uint32_t b)
{
    return apply(s, &(dc_move){.kind = kind, .naxis = 2, .axis = {a, b}});
}

/* One that takes a count and makes two axes. */
static bool in_two(dc_sketch *s, dc_move_kind kind, uint32_t axis, int64_t n, dc_split *out)
{
    const uint32_t made = s->k->axis.n;
    *out = (dc_split){made, made + 1};
    return apply(s, &(dc_move){.kind = kind, .naxis = 1, .axis = {axis}, .count = n});
}

bool dc_do_split(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out)
{
    return in_two(s, DC_MOVE_SPLIT, axis, n, out);
}

bool dc_do_split_full(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out)
{
    return in_two(s, DC_MOVE_SPLIT_FULL, axis, n, out);
}

bool dc_do_cut(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out)
{
    return in_two(s, DC_MOVE_CUT, axis, n, out);
}

bool dc_do_split_reduce(dc_sketch *s, uint32_t axis, int64_t n, dc_partial *out)
{
    const uint32_t made = s->k->axis.n;
    const dc_move m = {.kind = DC_MOVE_SPLIT_REDUCE, .naxis = 1, .axis = {axis}, .count = n};
    *out = (dc_partial){made, made + 1, made + 2};
    return apply(s, &m);
}

bool dc_do_ranges(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out)
{
    return in_two(s, DC_MOVE_RANGES, axis, n, out);
}

bool dc_do_part(dc_sketch *s, uint32_t axis, uint32_t with, uint32_t *own)
{
    *own = s->k->axis.n;
    return on_two(s, DC_MOVE_PART, axis, with);
}

bool dc_do_part_after(dc_sketch *s, uint32_t axis, uint32_t with, uint32_t *own)
{
    *own = s->k->axis.n;
    return on_two(s, DC_MOVE_PART_AFTER, axis, with);
}

bool dc_do_fuse(dc_sketch *s, uint32_t outer, uint32_t inner, uint32_t *fused)
{
    *fused = s->k->axis.n;
    return on_two(s, DC_MOVE_FUSE, outer, inner);
}

bool dc_do_reorder(dc_sketch *s, uint32_t inner, uint32_t outer)
{
    return on_two(s, DC_MOVE_REORDER, inner, outer);
}

bool dc_do_reorder_reduce(dc_sketch *s, uint32_t inner, uint32_t outer)
{
    return on_two(s, DC_MOVE_REORDER_REDUCE, inner, outer);
}

bool dc_do_vectorize(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_VECTORIZE, axis);
}

bool dc_do_unroll(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_UNROLL, axis);
}

bool dc_do_block(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_BLOCK, axis);
}

bool dc_do_lane(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_LANE, axis);
}

bool dc_do_replicate(dc_sketch *s, uint32_t axis, int64_t threads, uint32_t *made)
{
    *made = s->k->axis.n;
    return apply(
        s, &(dc_move){.kind = DC_MOVE_REPLICATE, .naxis = 1, .axis = {axis}, .count = threads});
}

bool dc_do_scope(dc_sketch *s, uint32_t buf, dc_scope scope)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_SCOPE, .buf = buf, .scope = scope});
}

bool dc_do_pad_rows(dc_sketch *s, uint32_t buf, int64_t n)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_PAD_ROWS, .buf = buf, .count = n});
}

bool dc_do_subtotal(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_SUBTOTAL, axis);
}

bool dc_do_grid(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_GRID, axis);
}

bool dc_do_swizzle(dc_sketch *s, uint32_t buf, int64_t n)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_SWIZZLE, .buf = buf, .count = n});
}

bool dc_do_swizzle_atoms(dc_sketch *s, uint32_t buf, int64_t n)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_SWIZZLE_ATOMS, .buf = buf, .count = n});
}

bool dc_do_tensorize(dc_sketch *s, uint32_t axis, uint32_t tile)
{
    const dc_move m = {.kind = DC_MOVE_TENSORIZE, .naxis = 1, .axis = {axis}, .tile = tile};
    return apply(s, &m);
}

bool dc_do_stage(dc_sketch *s, uint32_t buf, int64_t stages)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_STAGE, .buf = buf, .count = stages});
}

bool dc_do_nontemporal(dc_sketch *s, uint32_t buf)
{
    return apply(s, &(dc_move){.kind = DC_MOVE_NONTEMPORAL, .buf = buf});
}

int dc_sketch_level(const dc_sketch *s, int rule)
{
    return (int)dc_sketch_knob(s, DC_KNOB_PREFETCH, rule + 1, (const int32_t[]){1, 2, 3, 0}, 3) - 1;
}

bool dc_do_prefetch(dc_sketch *s, uint32_t buf, uint32_t over, uint32_t within, int level)
{
    const dc_move m = {
        .kind = DC_MOVE_PREFETCH, .buf = buf, .naxis = 2, .axis = {over, within}, .count = level};
    return apply(s, &m);
}

bool dc_do_pipeline(dc_sketch *s, uint32_t axis)
{
    return on_axis(s, DC_MOVE_PIPELINE, axis);
}

/* Copies -------------------------------------------------------------------------------------- */

static bool copy_in(dc_sketch *s, dc_move_kind kind, uint32_t buf, uint32_t axis,
                    const uint32_t *dim, int n, uint32_t *made)
{
    dc_move m = {.kind = kind, .buf = buf, .naxis = 1 + (uint32_t)n, .axis = {axis}};
    if (n > 0)
        memcpy(m.axis + 1, dim, (size_t)n * sizeof *dim);
    *made = s->k->axis.n;
    return apply(s, &m);
}

bool dc_do_pack(dc_sketch *s, uint32_t buf, uint32_t axis, const uint32_t *dim, int n,
                uint32_t *made)
{
    return copy_in(s, DC_MOVE_PACK, buf, axis, dim, n, made);
}

bool dc_do_cache_read(dc_sketch *s, uint32_t buf, uint32_t axis, uint32_t *made)
{
    return dc_do_pack(s, buf, axis, NULL, 0, made);
}

bool dc_do_cache_elements(dc_sketch *s, uint32_t buf, uint32_t axis, const uint32_t *dim, int n,
                          uint32_t *made)
{
    return copy_in(s, DC_MOVE_CACHE_READ, buf, axis, dim, n, made);
}

bool dc_do_cache_write(dc_sketch *s, uint32_t buf, uint32_t axis, uint32_t *made)
{
    *made = s->k->axis.n;
    return apply(s,
                 &(dc_move){.kind = DC_MOVE_CACHE_WRITE, .buf = buf, .naxis = 1, .axis = {axis}});
}

bool dc_do_window_read(dc_sketch *s, uint32_t buf, uint32_t axis)
{
    return apply(s,
                 &(dc_move){.kind = DC_MOVE_WINDOW_READ, .buf = buf, .naxis = 1, .axis = {axis}});
}

uint32_t dc_sketch_copy_of(const dc_sketch *s, uint32_t made, uint32_t axis, int which)
{
    for (uint32_t a = made; a < s->k->axis.n; a++)
        if (s->k->axis.at[a].of == axis && which-- == 0)
            return a;
    return DC_NO_AXIS;
}

/* The launch ---------------------------------------------------------------------------------- */

/* A serial loop that is all there is inside the outermost one, which is all there is; NULL: there is none. */
static const dc_stmt *only_loop_inside(const dc_kernel *k)
{
    const dc_stmt *inner = k->root->body;
    const bool only = k->root->next == NULL && inner != NULL && inner->next == NULL;
    return only && inner->kind == DC_STMT_LOOP && k->axis.at[inner->axis].kind == DC_AXIS_SERIAL &&
                   !k->axis.at[inner->axis].reduce
               ? inner
               : NULL;
}

bool dc_sketch_grid_outer(dc_sketch *s)
{
    return s->k->root->kind != DC_STMT_LOOP || dc_do_grid(s, s->k->root->axis);
}

bool dc_sketch_grid(dc_sketch *s)
{
    const dc_kernel *k = s->k;
    uint32_t all;
    if (k->root->kind != DC_STMT_LOOP)
        return true;
    while (!s->t->simt && k->flops + k->bytes / 4 > DC_TUNE_IDLE_WORK &&
           dc_sketch_extent(s, k->root->axis) < DC_TUNE_WORK_ITEMS && only_loop_inside(k) != NULL)
        if (!dc_do_fuse(s, k->root->axis, only_loop_inside(k)->axis, &all))
            break;
    return dc_do_grid(s, k->root->axis);
}

bool dc_sketch_grid_all(dc_sketch *s)
{
    dc_move m = {.kind = DC_MOVE_GRID};
    if (s->k->root != NULL && s->k->root->next == NULL)
        return dc_sketch_grid(s);
    for (const dc_stmt *t = s->k->root; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        if (m.naxis == DC_MOVE_AXES) {
            s->why = "a move has at most eight words";
            return false;
        }
        m.axis[m.naxis++] = t->axis;
    }
    return m.naxis == 0 || apply(s, &m);
}
