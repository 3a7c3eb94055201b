/*
 * Pools are made of operations that there are: what a window sees at one of its places (a tap) is a
 * slice with a step, so a window of few elements is few slices, element by element. Windows that
 * tile x are a reshape, in which a gradient is an expand.
 */
#include "core/autodiff/custom.h"
#include "core/base/extent.h"
#include "core/build/build_conv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIRECT_TAPS = 32 }; /* more: one axis of the window after the other */

/* ---- windows ---- */

/* A pool over x as a node: axes, the room it has with padding, and the result. */
typedef struct pooling {
    dc_func *f;
    dc_pool p;
    dc_node x;
    int first;                                   /* axis of x under dim 0 of the window */
    int64_t room[DC_MAX_RANK], dim[DC_MAX_RANK]; /* of x with padding; of the result */
    bool padded;
    bool beyond; /* a window looks behind the padding */
    bool tiles;  /* windows stand side by side, nothing between them and no padding */
} pooling;

static dc_status check_dim(dc_job *j, const dc_type *x, const dc_pool *p, int i)
{
    const int axis = x->rank - p->n + i;
    const int64_t window = (p->window[i] - 1) * p->dilate[i] + 1, lo = p->lo[i], hi = p->hi[i];
    if (p->window[i] > DC_POOL_WINDOW)
        return dc_failf(j, DC_ERR_ARG, NULL,
                        "a window over %" PRId64 " elements of axis %d; %d is the most",
                        p->window[i], axis + 1, DC_POOL_WINDOW);
    if (lo >= window || hi >= window)
        return dc_failf(j, DC_ERR_ARG, NULL,
                        "axis %d: padding of %" PRId64 " for a window over %" PRId64
                        ", which would see nothing else",
                        axis + 1, lo >= window ? lo : hi, window);
    if (x->dim[axis] + lo + hi < window &&
        !(p->ceil && window - x->dim[axis] - lo - hi < p->stride[i]))
        return dc_fail(
            j, DC_ERR_CONV_WINDOW,
            &(dc_fact){.axis = {axis}, .num = {window, x->dim[axis], lo, hi}, .type = {*x}});
    return DC_OK;
}

/* How many places window i has on n elements. */
static int64_t places_of(const dc_pool *p, int i, int64_t n, int64_t window)
{
    const int64_t left = n + p->lo[i] + p->hi[i] - window;
    if (!p->ceil)
        return left / p->stride[i] + 1;
    const int64_t steps = left <= 0 ? 0 : (left + p->stride[i] - 1) / p->stride[i];
    return steps * p->stride[i] >= n + p->lo[i] ? steps : steps + 1;
}

static dc_status begin_pool(dc_job *j, dc_func *f, const dc_val *x, const dc_pool *p, pooling *out)
{
    const dc_type *t = &x->type;
    if (t->rank != 2 + p->n) {
        char words[40];
        snprintf(words, sizeof words, "%d are needed", 2 + p->n);
        return dc_fail(j, t->rank == 1 + p->n ? DC_ERR_CONV_RANK : DC_ERR_RANK,
                       &(dc_fact){.num = {t->rank}, .type = {*t}, .word = {words}, .operand = 1});
    }
    *out = (pooling){.f = f, .p = *p, .x = *dc_node_at(f, x->ref), .first = 2, .tiles = true};
    for (int i = 0; i < t->rank; i++)
        out->room[i] = out->dim[i] = t->dim[i];
    for (int i = 0; i < p->n; i++) {
        const int axis = out->first + i;
        DC_TRY(check_dim(j, t, p, i));
        const int64_t window = (p->window[i] - 1) * p->dilate[i] + 1;
        out->room[axis] += p->lo[i] + p->hi[i];
        out->dim[axis] = places_of(p, i, t->dim[axis], window);
        const int64_t behind =
            dc_max_i64((out->dim[axis] - 1) * p->stride[i] + window - out->room[axis], 0);
        out->room[axis] += behind;
        out->beyond = out->beyond || behind > 0;
        out->padded = out->padded || p->lo[i] > 0 || p->hi[i] > 0 || behind > 0;
        out->tiles =
            out->tiles && p->stride[i] == p->window[i] && (p->dilate[i] == 1 || p->window[i] == 1);
    }
    out->tiles = out->tiles && !out->padded;
    return DC_OK;
}

static dc_type result_type(const pooling *v, const dc_type *x, dc_dtype t)
{
    dc_type type = dc_type_make(t, v->x.rank, v->dim);
    for (int i = 0; i < v->first; i++)
        type.name[i] = x->name[i];
    return type;
}

static int64_t taps_of(const pooling *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->p.n; i++)
        n *= v->p.window[i];
    return n;
}

/* x with its padding. */
static dc_ref pad(const pooling *v, dc_ref x, double fill)
{
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    const dc_dtype t = (dc_dtype)dc_node_at(v->f, x)->dtype;
    for (int i = 0; i < v->x.rank; i++)
        step[i] = 1;
    for (int i = 0; i < v->p.n; i++)
        lo[v->first + i] = v->p.lo[i];
    return dc_graph_pad(v->f, x, lo, step, v->room, dc_bits_of(t, fill));
}

/* Where the windows have tap k: starts and steps by axis. */
static void places(const pooling *v, int64_t k, int64_t *start, int64_t *step)
{
    for (int i = 0; i < v->x.rank; i++) {
        start[i] = 0;
        step[i] = 1;
    }
    for (int i = v->p.n - 1; i >= 0; i--) {
        start[v->first + i] = k % v->p.window[i] * v->p.dilate[i];
        step[v->first + i] = v->p.stride[i];
        k /= v->p.window[i];
    }
}

/* What all windows have at tap k of x with its padding. */
static dc_ref tap(const pooling *v, dc_ref padded, int64_t k)
{
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK];
    places(v, k, start, step);
    return dc_graph_slice(v->f, padded, start, step, v->dim);
}

/* ---- windows that tile: [.., n, ..] as [.., windows, taps, ..] ---- */

/* Extents of the tiled form; the axes of taps as a mask. */
static int tiled_dims(const pooling *v, int64_t *dim, uint32_t *taps)
{
    int rank = 0;
    *taps = 0;
    for (int i = 0; i < v->x.rank; i++) {
        dim[rank++] = v->dim[i];
        if (i >= v->first) {
            *taps |= 1u << rank;
            dim[rank++] = v->p.window[i - v->first];
        }
    }
    return rank;
}

/* x without what no window sees, in the tiled form. */
static dc_ref to_tiles(const pooling *v, dc_ref x, uint32_t *taps)
{
    int64_t dim[DC_MAX_RANK], cut[DC_MAX_RANK], start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    const int rank = tiled_dims(v, dim, taps);
    for (int i = 0; i < v->x.rank; i++) {
        step[i] = 1;
        cut[i] = i < v->first ? v->dim[i] : v->dim[i] * v->p.window[i - v->first];
    }
    return dc_graph_reshape(v->f, dc_graph_slice(v->f, x, start, step, cut), rank, dim);
}

/* The tiled form back to the shape of x; zeros where no window was. */
static dc_ref from_tiles(const pooling *v, dc_ref tiled)
{
    int64_t cut[DC_MAX_RANK], lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    for (int i = 0; i < v->x.rank; i++) {
        step[i] = 1;
        cut[i] = i < v->first ? v->dim[i] : v->dim[i] * v->p.window[i - v->first];
    }
    return dc_graph_pad(v->f, dc_graph_reshape(v->f, tiled, v->x.rank, cut), lo, step, v->x.dim, 0);
}

/* One value for each window, at all its taps. */
static dc_ref spread(const pooling *v, dc_ref r)
{
    int64_t dim[DC_MAX_RANK];
    uint32_t taps;
    const int rank = tiled_dims(v, dim, &taps);
    return dc_graph_unreduce(v->f, r, taps, rank, dim);
}

/* The number of each tap, in the tiled form, as u8. */
static dc_ref tap_numbers(const pooling *v)
{
    int64_t dim[DC_MAX_RANK], weight = taps_of(v);
    uint32_t taps;
    const int rank = tiled_dims(v, dim, &taps);
    const dc_type type = dc_type_make(DC_I32, rank, dim);
    dc_ref sum = 0;
    for (int i = 0, at = 0; i < rank; i++) {
        if ((taps >> i & 1) == 0)
            continue;
        weight /= v->p.window[at++];
        const int64_t axis = i;
        const dc_ref n = dc_graph_make(v->f, DC_OP_IOTA, NULL, 0, &axis, 1, &type);
        const dc_ref part =
            dc_graph_op2(v->f, DC_OP_MUL, n, dc_graph_like(v->f, n, (double)weight));
        sum = sum == 0 ? part : dc_graph_op2(v->f, DC_OP_ADD, sum, part);
    }
    return dc_graph_cast(v->f, sum, DC_U8);
}

/* ---- the largest ---- */

static double lowest(dc_dtype t)
{
    return dc_value_of(t, dc_op_identity(DC_OP_MAXR, t));
}

/* The first tap whose element is y. */
static dc_ref first_tap(const pooling *v, dc_ref padded, dc_ref y)
{
    dc_func *f = v->f;
    const dc_type type = dc_type_make(DC_U8, v->x.rank, v->dim);
    const int64_t last = taps_of(v) - 1;
    dc_ref k = dc_graph_const(f, &type, (double)last);
    for (int64_t i = last - 1; i >= 0; i--)
        k = dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, tap(v, padded, i), y),
                         dc_graph_const(f, &type, (double)i), k);
    return k;
}

/* dy goes to tap k of each window. */
static dc_ref back_to_taps(const pooling *v, dc_ref k, dc_ref dy)
{
    dc_func *f = v->f;
    if (v->tiles) {
        const dc_ref g = spread(v, dy),
                     won = dc_graph_op2(f, DC_OP_EQ, spread(v, k), tap_numbers(v));
        return from_tiles(v, dc_graph_op3(f, DC_OP_WHERE, won, g, dc_graph_like(f, g, 0)));
    }
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK];
    dc_ref sum = 0;
    for (int64_t i = 0; i < taps_of(v); i++) {
        const dc_ref won = dc_graph_op2(f, DC_OP_EQ, k, dc_graph_like(f, k, (double)i));
        const dc_ref part = dc_graph_op3(f, DC_OP_WHERE, won, dy, dc_graph_like(f, dy, 0));
        places(v, i, start, step);
        const dc_ref there = dc_graph_pad(f, part, start, step, v->room, 0);
        sum = sum == 0 ? there : dc_graph_op2(f, DC_OP_ADD, sum, there);
    }
    int64_t lo[DC_MAX_RANK] = {0}, one[DC_MAX_RANK];
    for (int i = 0; i < v->x.rank; i++)
        one[i] = 1;
    for (int i = 0; i < v->p.n; i++)
        lo[v->first + i] = v->p.lo[i];
    return dc_graph_slice(f, sum, lo, one, v->x.dim);
}

static dc_ref largest(const pooling *v, dc_ref padded)
{
    dc_ref y = tap(v, padded, 0);
    for (int64_t i = 1; i < taps_of(v); i++)
        y = dc_graph_op2(v->f, DC_OP_MAX, y, tap(v, padded, i));
    return y;
}

static dc_status max_direct(dc_job *j, const pooling *v, dc_ref x, dc_ref *out)
{
    const dc_dtype t = (dc_dtype)v->x.dtype;
    dc_custom c;
    const dc_ref padded = pad(v, x, lowest(t)), y = largest(v, padded);
    if (!dc_dtype_is_float(t)) {
        *out = y;
        return DC_OK;
    }
    dc_custom_given(v->f, &x, 1, y, &c);
    const dc_ref k = first_tap(v, padded, c.y_again);
    const dc_ref dx = back_to_taps(v, k, c.dy);
    return dc_custom_end(j, &c, &dx, out);
}

/* The windows of p along dim i alone. */
static dc_pool along_dim(const dc_pool *p, int i)
{
    dc_pool one = {.n = p->n, .ceil = p->ceil};
    for (int k = 0; k < p->n; k++) {
        const bool here = k == i;
        one.window[k] = here ? p->window[k] : 1;
        one.stride[k] = here ? p->stride[k] : 1;
        one.lo[k] = here ? p->lo[k] : 0;
        one.hi[k] = here ? p->hi[k] : 0;
        one.dilate[k] = here ? p->dilate[k] : 1;
    }
    return one;
}

/* Which is the first of equals does not change if the last axis is done first. */
static dc_status max_by_axis(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out)
{
    for (int i = p->n - 1; i >= 0; i--) {
        const dc_pool one = along_dim(p, i);
        pooling v;
        DC_TRY(begin_pool(j, f, &x, &one, &v));
        DC_TRY(max_direct(j, &v, x.ref, &x.ref));
        x.type = result_type(&v, &x.type, (dc_dtype)x.type.dtype);
    }
    *out = x;
    return DC_OK;
}

typedef dc_status build_pool(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out);

/* As conv_bounded does, with `fill` behind the sizes. */
static dc_status pool_bounded(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, double fill,
                              build_pool *build, dc_val *out)
{
    int64_t dim[DC_MAX_RANK];
    dc_val whole;
    if (p->ceil)
        return dc_failf(j, DC_ERR_ARG, NULL,
                        "ceil_mode is for sizes that are numbers; an axis of x has a bound");
    DC_TRY(dc_build_at_bound(j, f, x, dc_window_axes(&x.type, p->n), fill, &whole));
    DC_TRY(build(j, f, whole, p, out));
    memcpy(dim, out->type.dim, sizeof dim);
    for (int i = 0; i < p->n; i++) {
        const int64_t window = (p->window[i] - 1) * p->dilate[i] + 1;
        if (dc_extent_is(x.type.dim[2 + i]))
            DC_TRY(dc_window_places(j, &x.type, 2 + i, window, p->lo[i] + p->hi[i], p->stride[i],
                                    &dim[2 + i]));
    }
    return dc_build_up_to(j, f, *out, dim, out);
}

dc_status dc_build_max_pool(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out)
{
    pooling v;
    if (dc_build_is_bounded(&x.type, dc_window_axes(&x.type, p->n)))
        return pool_bounded(j, f, x, p, lowest((dc_dtype)x.type.dtype), dc_build_max_pool, out);
    DC_TRY(begin_pool(j, f, &x, p, &v));
    const dc_type type = result_type(&v, &x.type, (dc_dtype)x.type.dtype);
    if (taps_of(&v) > DIRECT_TAPS && p->n > 1)
        return max_by_axis(j, f, x, p, out);
    DC_TRY(max_direct(j, &v, x.ref, &out->ref));
    out->type = type;
    return DC_OK;
}

/* ---- where the largest is ---- */

/*
 * Positions count the elements of x along the axes of the window, the last one fastest. As in PyTorch the first of equal
 * elements is taken, of those that are NaN the last, and where nothing is above the lowest number the first element
 * that is no padding.
 */

/* How far two elements of x that are one apart along dim i of the window are in positions. */
static int64_t apart(const pooling *v, int i)
{
    int64_t n = 1;
    for (int k = i + 1; k < v->p.n; k++)
        n *= v->x.dim[v->first + k];
    return n;
}

static dc_ref times(dc_func *f, dc_ref a, int64_t by)
{
    return by == 1 ? a : dc_graph_op2(f, DC_OP_MUL, a, dc_graph_like(f, a, (double)by));
}

/* Where windows begin along dim i: coordinates in x, below 0 in the padding. */
static dc_ref begins(const pooling *v, int i)
{
    const dc_type type = dc_type_make(DC_I32, v->x.rank, v->dim);
    const int64_t axis = v->first + i;
    const dc_ref at = dc_graph_make(v->f, DC_OP_IOTA, NULL, 0, &axis, 1, &type);
    const dc_ref step = times(v->f, at, v->p.stride[i]);
    return dc_graph_op2(v->f, DC_OP_SUB, step, dc_graph_like(v->f, step, (double)v->p.lo[i]));
}

/* How far behind that its first tap outside of the padding is. */
static dc_ref skipped(const pooling *v, int i)
{
    dc_func *f = v->f;
    const dc_ref at = begins(v, i), zero = dc_graph_like(f, at, 0);
    const int64_t step = v->p.dilate[i];
    if (v->p.lo[i] == 0)
        return zero;
    const dc_ref before = dc_graph_op2(f, DC_OP_MAX, dc_graph_op1(f, DC_OP_NEG, at), zero);
    if (step == 1)
        return before;
    const dc_ref up = dc_graph_op2(f, DC_OP_ADD, before, dc_graph_like(f, at, (double)(step - 1)));
    return times(f, dc_graph_op2(f, DC_OP_DIV, up, dc_graph_like(f, at, (double)step)), step);
}

/* Of the dims in the mask, one(v, i) in positions, added up; 0: none. */
static dc_ref over_dims(const pooling *v, uint32_t dims, dc_ref one(const pooling *, int))
{
    dc_ref sum = 0;
    for (int i = 0; i < v->p.n; i++) {
        if ((dims >> i & 1) == 0)
            continue;
        const dc_ref part = times(v->f, one(v, i), apart(v, i));
        sum = sum == 0 ? part : dc_graph_op2(v->f, DC_OP_ADD, sum, part);
    }
    return sum;
}

/* What tap k of the windows `now` adds to the position of their first one. */
static int64_t tap_apart(const pooling *v, const pooling *now, int64_t k)
{
    int64_t sum = 0;
    for (int i = v->p.n - 1; i >= 0; i--) {
        sum += k % now->p.window[i] * v->p.dilate[i] * apart(v, i);
        k /= now->p.window[i];
    }
    return sum;
}

/*
 * One step of the windows v: `now`, over the dims `here`. Each element of x is the largest of a window over the dims
 * `done`, of position *at (0: there are none). Gives the largest and its position.
 */
static dc_ref largest_at(const pooling *v, const pooling *now, uint32_t here, uint32_t done,
                         dc_ref x, dc_ref *at)
{
    dc_func *f = v->f;
    const dc_dtype t = (dc_dtype)v->x.dtype;
    const dc_type type = dc_type_make(t, v->x.rank, now->dim);
    const dc_ref padded = pad(now, x, lowest(t)), under = *at == 0 ? 0 : pad(now, *at, 0);
    pooling all = *v; /* its sizes are those of this step */
    memcpy(all.dim, now->dim, sizeof all.dim);
    dc_ref best = dc_graph_const(f, &type, lowest(t)), k = over_dims(&all, here | done, skipped);
    if (done != 0)
        k = dc_graph_op2(f, DC_OP_ADD, k, over_dims(&all, done, begins));
    for (int64_t i = 0; i < taps_of(now); i++) {
        const dc_ref y = tap(now, padded, i);
        dc_ref from = dc_graph_like(f, k, (double)tap_apart(v, now, i));
        if (under != 0)
            from = dc_graph_op2(f, DC_OP_ADD, from, tap(now, under, i));
        dc_ref better = dc_graph_op2(f, DC_OP_LT, best, y);
        if (dc_dtype_is_float(t))
            better = dc_graph_op2(f, DC_OP_OR, better, dc_graph_op2(f, DC_OP_NE, y, y));
        best = dc_graph_op3(f, DC_OP_WHERE, better, y, best);
        k = dc_graph_op3(f, DC_OP_WHERE, better, from, k);
    }
    *at = dc_graph_op2(f, DC_OP_ADD, k, over_dims(&all, here, begins));
    return best;
}

static dc_status positions_by_axis(dc_job *j, const pooling *v, dc_val x, dc_ref *at)
{
    uint32_t done = 0;
    for (int i = v->p.n - 1; i >= 0; i--) {
        const dc_pool along = along_dim(&v->p, i);
        pooling one;
        DC_TRY(begin_pool(j, v->f, &x, &along, &one));
        x.ref = largest_at(v, &one, 1u << i, done, x.ref, at);
        x.type = result_type(&one, &x.type, (dc_dtype)x.type.dtype);
        done |= 1u << i;
    }
    return DC_OK;
}

dc_status dc_build_max_positions(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out)
{
    pooling v;
    dc_ref at = 0;
    const uint32_t axes = dc_window_axes(&x.type, p->n);
    for (int i = x.type.rank - 1; i > 2; i--) /* positions would depend on its size */
        if ((axes >> i & 1) != 0 && dc_extent_is(x.type.dim[i]))
            return dc_fail(j, DC_ERR_EXTENT,
                           &(dc_fact){.axis = {i}, .type = {x.type}, .operand = 1});
    if (dc_build_is_bounded(&x.type, axes))
        return pool_bounded(j, f, x, p, lowest((dc_dtype)x.type.dtype), dc_build_max_positions,
                            out);
    DC_TRY(begin_pool(j, f, &x, p, &v));
    const dc_type type = result_type(&v, &x.type, DC_I32);
    if (apart(&v, -1) > INT32_MAX)
        return dc_failf(j, DC_ERR_ARG, NULL, "positions of a channel of more than 2^31 elements");
    if (taps_of(&v) <= DIRECT_TAPS || p->n == 1)
        largest_at(&v, &v, (1u << p->n) - 1, 0, x.ref, &at);
    else
        DC_TRY(positions_by_axis(j, &v, x, &at));
    *out = (dc_val){.ref = at, .type = type};
    return DC_OK;
}

/* ---- the mean ---- */

/* Of each window; one axis of it after the other. */
static dc_ref sums(const pooling *v, dc_ref padded)
{
    pooling one = *v;
    for (int i = v->p.n - 1; i >= 0; i--) {
        for (int k = 0; k < v->p.n; k++) {
            one.p.window[k] = k == i ? v->p.window[k] : 1;
            one.p.stride[k] = k == i ? v->p.stride[k] : 1;
            one.p.dilate[k] = k == i ? v->p.dilate[k] : 1;
            one.dim[v->first + k] = k < i ? v->room[v->first + k] : v->dim[v->first + k];
        }
        dc_ref sum = tap(&one, padded, 0);
        for (int64_t t = 1; t < v->p.window[i]; t++)
            sum = dc_graph_op2(v->f, DC_OP_ADD, sum, tap(&one, padded, t));
        padded = sum;
    }
    return padded;
}

/* How many elements of x, or of x and its padding, each window sees, spread to the shape of the result. */
static dc_ref seen(const pooling *v, dc_dtype t, bool with_padding)
{
    pooling one = *v;
    dc_type ones = dc_type_make(t, v->x.rank, v->x.dim);
    for (int i = 0; i < v->p.n && with_padding; i++) {
        ones.dim[v->first + i] += v->p.lo[i] + v->p.hi[i];
        one.p.lo[i] = 0;
    }
    for (int i = 0; i < v->first; i++)
        one.room[i] = one.dim[i] = ones.dim[i] = 1;
    return dc_graph_expand(v->f, sums(&one, pad(&one, dc_graph_const(v->f, &ones, 1), 0)), v->dim);
}

/*
 * Along a bounded axis, where padding does not count: the mean that counts it, by the part of each window that is not
 * padding.
 */
static dc_status mean_of_seen(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out)
{
    dc_pool all = *p;
    dc_type type = dc_type_make((dc_dtype)x.type.dtype, x.type.rank, x.type.dim);
    dc_val ones, part;
    all.count_padding = true;
    DC_TRY(dc_build_mean_pool(j, f, x, &all, out));
    type.dim[0] = type.dim[1] = 1;
    DC_TRY(dc_build_const(j, f, &type, 1, &ones));
    DC_TRY(dc_build_mean_pool(j, f, ones, &all, &part));
    DC_TRY(dc_build_expand(j, f, part, &out->type, &part));
    out->ref = dc_graph_op2(f, DC_OP_DIV, out->ref, part.ref);
    return DC_OK;
}

dc_status dc_build_mean_pool(dc_job *j, dc_func *f, dc_val x, const dc_pool *p, dc_val *out)
{
    pooling v;
    uint32_t taps;
    dc_ref sum;
    if (!dc_dtype_is_float((dc_dtype)x.type.dtype))
        DC_TRY(dc_build_cast(j, f, x, DC_F32, &x));
    if (dc_build_is_bounded(&x.type, dc_window_axes(&x.type, p->n)) && !p->count_padding &&
        p->divisor == 0 && !p->ceil)
        return mean_of_seen(j, f, x, p, out);
    if (dc_build_is_bounded(&x.type, dc_window_axes(&x.type, p->n)))
        return pool_bounded(j, f, x, p, 0, dc_build_mean_pool, out);
    DC_TRY(begin_pool(j, f, &x, p, &v));
    const dc_dtype t = (dc_dtype)x.type.dtype;
    if (v.tiles) {
        const dc_ref tiled = to_tiles(&v, x.ref, &taps);
        sum = dc_graph_reduce(f, DC_OP_SUM, tiled, taps);
    } else {
        sum = sums(&v, pad(&v, x.ref, 0));
    }
    const bool differ = p->divisor == 0 && (p->count_padding ? v.beyond : v.padded);
    const int64_t all = p->divisor != 0 ? p->divisor : taps_of(&v);
    const dc_ref count =
        differ ? seen(&v, t, p->count_padding) : dc_graph_like(f, sum, (double)all);
    out->ref = dc_graph_op2(f, DC_OP_DIV, sum, count);
    out->type = result_type(&v, &x.type, t);
    return DC_OK;
}
