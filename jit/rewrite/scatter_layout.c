/*
 * Scatters that add, or combine in another way (jit/rewrite/scatter_layout.h). On thread groups each warp has a range of places and looks through all
 * integers (jit/schedule/schedule_simt_scatter.c): nothing is added by atomics, so sums have the same bits in each run. Here
 * such scatters get more ranges, or fewer integers to look through:
 *
 *   parts  the updates are cut in so many parts, a fixed number each, which have sums of their own;
 *   lanes  places without columns are put in rows, whose places are the columns.
 */
#include "jit/rewrite/scatter_layout.h"

#include "jit/base/tuning.h"

/*
 * How many parts of the updates have sums of their own where a scatter has too few places for thread groups, which have a
 * range of places each: so many that all of these sums are few beside the updates. Small integers have sums of another type.
 */
static int64_t scatter_parts(const dc_node *x, int64_t updates, int axis)
{
    const int64_t places = x->dim[axis], results = dc_node_count(x);
    if (results == 0 || x->rank == DC_MAX_RANK || !dc_dtype_is_float((dc_dtype)x->dtype))
        return 1;
    const int64_t threads = (int64_t)DC_TUNE_SPLIT_GROUPS * DC_TUNE_GROUP_THREADS;
    const int64_t enough = threads * (DC_TUNE_ACCESS_BYTES / 4) / results;
    return dc_max_i64(dc_min_i64(enough, updates / (DC_TUNE_SCATTER_SHARE * places)), 1);
}

/*
 * The same where places are in rows of lanes (below): each warp looks through all integers of a part for its range, so more
 * parts are less to look through, and more sums to add up. Both take as long with about 25 * sqrt(updates / places).
 */
static int64_t scatter_parts_of_lanes(const dc_node *x, int64_t updates)
{
    const int64_t sums = dc_node_count(x);
    int64_t parts = 1;
    while (parts * parts <= 156 * updates / sums && 2 * parts * sums <= DC_TUNE_SCATTER_SUMS &&
           updates / parts >= DC_TUNE_SCATTER_PART)
        parts *= 2;
    return parts;
}

static dc_op reduction_of(const dc_node *n)
{
    return dc_op_reduction((dc_op)dc_op_row_of((dc_op)n->op)->combine);
}

/* Of type t, what changes nothing where it is combined. */
static dc_ref neutral(dc_func *to, const dc_node *n, const dc_type *t)
{
    const int64_t bits = (int64_t)dc_op_identity(reduction_of(n), (dc_dtype)t->dtype);
    return dc_graph_make(to, DC_OP_CONST, NULL, 0, &bits, 1, t);
}

/* Updates are padded to a multiple: by integers that are no places, or whatever they are, by what changes nothing. */
static dc_ref padded(dc_func *to, dc_ref r, int axis, int64_t n, uint64_t fill)
{
    const dc_node x = *dc_node_at(to, r);
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int d = 0; d < x.rank; d++) {
        step[d] = 1;
        dim[d] = d == axis ? n : x.dim[d];
    }
    return n == x.dim[axis] ? r : dc_graph_pad(to, r, lo, step, dim, fill);
}

/* Scatters of parts of the updates into zeros, or what else is neutral. */
static dc_ref sums_of_parts(dc_func *to, const dc_node *n, const dc_ref *in, int axis,
                            int64_t parts)
{
    const dc_node x = *dc_node_at(to, in[0]), i = *dc_node_at(to, in[1]);
    const int64_t updates = dc_node_count(&i), all = (updates + parts - 1) / parts * parts;
    const int64_t index[2] = {parts, all / parts};
    int64_t value[DC_MAX_RANK], first[DC_MAX_RANK] = {axis};
    dc_type zeros = {.dtype = x.dtype, .rank = (uint8_t)(x.rank + 1), .dim = {parts}};
    for (int d = 0; d < x.rank; d++) {
        zeros.dim[d + 1] = x.dim[d];
        value[d + (d >= axis)] = x.dim[d];
        first[d + 1] = d < axis ? d : d + 1;
    }
    int64_t flat[DC_MAX_RANK];
    for (int d = 0; d < x.rank; d++)
        flat[d] = d == axis ? updates : x.dim[d];
    value[axis] = index[0];
    value[axis + 1] = index[1];
    const dc_ref at = padded(to, dc_graph_reshape(to, in[1], 1, &updates), 0, all,
                             dc_bits_of((dc_dtype)i.dtype, -1));
    const dc_ref u = padded(to, dc_graph_reshape(to, in[2], x.rank, flat), axis, all,
                            dc_op_identity(reduction_of(n), (dc_dtype)x.dtype));
    return dc_graph_scatter(
        to, (dc_op)n->op, neutral(to, n, &zeros), dc_graph_reshape(to, at, 2, index),
        dc_graph_permute(to, dc_graph_reshape(to, u, x.rank + 1, value), first), axis + 1, 1);
}

/*
 * A scatter whose elements have no columns is one into rows of as many places as a warp has lanes with vectors: of each row an
 * update changes one place, and adds zeros to the others. So a warp looks at 32 integers at a time, as for an embedding.
 */
static bool may_have_lanes(const dc_node *n, const dc_node *x, const dc_node *i)
{
    const int axis = (int)n->attr[0];
    return n->attr[1] == 0 && axis == x->rank - 1 && x->rank + 2 <= DC_MAX_RANK &&
           x->dim[axis] >= DC_TUNE_SCATTER_PLACES && dc_dtype_is_float((dc_dtype)x->dtype) &&
           (i->dtype == DC_I32 || i->dtype == DC_I64) && dc_node_count(i) >= DC_TUNE_SCATTER_LANES;
}

static dc_ref scatter_to_lanes(dc_func *to, const dc_node *n, const dc_ref *in)
{
    const dc_node x = *dc_node_at(to, in[0]), i = *dc_node_at(to, in[1]);
    const int64_t lanes = DC_TUNE_SCATTER_LANES, updates = dc_node_count(&i), last = x.rank;
    const int axis = (int)n->attr[0];
    int shift = 0;
    while (lanes >> shift > 1)
        shift++;
    const int64_t rows = (x.dim[axis] + lanes - 1) / lanes;
    dc_type zeros = {.dtype = x.dtype, .rank = (uint8_t)(x.rank + 1)};
    dc_type number = {.dtype = i.dtype, .rank = (uint8_t)(x.rank + 1)};
    int64_t one[DC_MAX_RANK], own[DC_MAX_RANK], flat[DC_MAX_RANK], start[DC_MAX_RANK] = {0};
    int64_t step[DC_MAX_RANK], result[DC_MAX_RANK];
    for (int d = 0; d < x.rank; d++) {
        zeros.dim[d] = d == axis ? rows : x.dim[d];
        number.dim[d] = one[d] = d == axis ? updates : x.dim[d];
        own[d] = d == axis ? updates : 1;
        flat[d + 1] = d == axis ? rows * lanes : x.dim[d];
        result[d + 1] = x.dim[d];
        step[d] = step[d + 1] = 1;
    }
    zeros.dim[last] = number.dim[last] = lanes;
    dc_type value = number;
    value.dtype = x.dtype;
    one[last] = own[last] = 1;
    const dc_ref at = dc_graph_reshape(to, in[1], 1, &updates);
    const dc_ref lane = dc_graph_op2(to, DC_OP_AND, at, dc_graph_like(to, at, (double)(lanes - 1)));
    const dc_ref row = dc_graph_op2(to, DC_OP_SHR, at, dc_graph_like(to, at, shift));
    const dc_ref mine =
        dc_graph_op2(to, DC_OP_EQ, dc_graph_make(to, DC_OP_IOTA, NULL, 0, &last, 1, &number),
                     dc_graph_expand(to, dc_graph_reshape(to, lane, x.rank + 1, own), number.dim));
    const dc_ref u = dc_graph_expand(to, dc_graph_reshape(to, in[2], x.rank + 1, one), number.dim);
    const dc_ref all[3] = {neutral(to, n, &zeros), row,
                           dc_graph_op3(to, DC_OP_WHERE, mine, u, neutral(to, n, &value))};
    const int64_t parts = scatter_parts_of_lanes(dc_node_at(to, all[0]), updates);
    flat[0] = result[0] = parts;
    dc_ref sum = dc_graph_reshape(to, sums_of_parts(to, n, all, axis, parts), x.rank + 1, flat);
    if (flat[axis + 1] != x.dim[axis])
        sum = dc_graph_slice(to, sum, start, step, result);
    sum = parts > 1 ? dc_graph_reduce(to, reduction_of(n), sum, 1)
                    : dc_graph_reshape(to, sum, x.rank, x.dim);
    return n->op == DC_OP_SCATTER_ADD && dc_is_const(to, in[0], 0)
               ? sum
               : dc_graph_op2(to, (dc_op)dc_op_row_of((dc_op)n->op)->combine, in[0], sum);
}

/* The same without dims of one element behind the places, which are no columns; 0: there are others. */
static dc_ref without_columns(dc_func *to, const dc_node *n, const dc_ref *in)
{
    const dc_node x = *dc_node_at(to, in[0]), u = *dc_node_at(to, in[2]);
    const int behind = x.rank - 1 - (int)n->attr[0];
    for (int d = x.rank - behind; d < x.rank; d++)
        if (x.dim[d] != 1)
            return 0;
    const dc_ref own[3] = {dc_graph_reshape(to, in[0], x.rank - behind, x.dim), in[1],
                           dc_graph_reshape(to, in[2], u.rank - behind, u.dim)};
    const dc_node y = *dc_node_at(to, own[0]), i = *dc_node_at(to, in[1]);
    return may_have_lanes(n, &y, &i)
               ? dc_graph_reshape(to, scatter_to_lanes(to, n, own), x.rank, x.dim)
               : 0;
}

static dc_ref scatter_of_groups(dc_func *to, const dc_node *n, const dc_ref *in)
{
    const dc_node x = *dc_node_at(to, in[0]), i = *dc_node_at(to, in[1]);
    const int axis = (int)n->attr[0];
    const dc_ref lanes = without_columns(to, n, in);
    if (lanes != 0)
        return lanes;
    const int64_t parts = n->attr[1] == 0 ? scatter_parts(&x, dc_node_count(&i), axis) : 1;
    return parts > 1 ? dc_graph_op2(to, (dc_op)dc_op_row_of((dc_op)n->op)->combine, in[0],
                                    dc_graph_reduce(to, reduction_of(n),
                                                    sums_of_parts(to, n, in, axis, parts), 1))
                     : 0;
}

dc_ref dc_scatter_layout(dc_func *to, const dc_node *n, const dc_ref *in, bool groups)
{
    const bool narrow = dc_dtype_is_short((dc_dtype)n->dtype);
    const dc_ref wide[3] = {narrow ? dc_graph_cast(to, in[0], DC_F32) : in[0], in[1],
                            narrow ? dc_graph_cast(to, in[2], DC_F32) : in[2]};
    dc_ref sum = groups ? scatter_of_groups(to, n, wide) : 0;
    if (sum == 0)
        sum = dc_graph_make(to, n->op, wide, 3, n->attr, n->nattr, NULL);
    return narrow ? dc_graph_cast(to, sum, (dc_dtype)n->dtype) : sum;
}
