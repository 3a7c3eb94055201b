/*
 * Shapes of results: a rule for each word of the column in core/ir/ops.def, and one for each operation
 * that has no such column. It checks attributes and dims of the operands and writes rank and dims of the
 * result, whose dtype is there.
 */
#include "core/base/extent.h"
#include "core/ir/conv.h"
#include "core/ir/dft.h"
#include "core/ir/exchange.h"
#include "core/ir/infer_impl.h"

#include <stdio.h>
#include <string.h>

typedef dc_status rule(const dc_site *s);

static dc_dtype dtype_of(const dc_type *t)
{
    return (dc_dtype)t->dtype;
}

static dc_status attr_count(const dc_site *s, int n)
{
    if (s->nattr == n)
        return DC_OK;
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%d attributes given, %d needed", s->nattr,
                    n);
}

/* As users count axes, from 1. */
static int64_t counted(int64_t axis)
{
    return axis < INT64_MAX ? axis + 1 : axis;
}

static dc_status bad_axis(const dc_site *s, const dc_type *t, int64_t axis)
{
    return dc_fail(
        s->j, DC_ERR_AXIS,
        &(dc_fact){.op = dc_site_name(s), .num = {counted(axis), t->rank}, .type = {*t}});
}

static void copy_dims(dc_type *to, const dc_type *from)
{
    to->rank = from->rank;
    memcpy(to->dim, from->dim, sizeof to->dim);
}

static dc_status shape_same(const dc_site *s)
{
    for (int i = 1; i < s->nin; i++) {
        const dc_type *a = &s->in[0], *b = &s->in[i];
        if (a->rank != b->rank)
            return dc_fail(s->j, DC_ERR_RANK,
                           &(dc_fact){.op = dc_site_name(s),
                                      .num = {b->rank},
                                      .type = {*b, *a},
                                      .word = {"the other operand has another number"},
                                      .operand = i + 1});
        for (int k = 0; k < a->rank; k++)
            if (a->dim[k] != b->dim[k])
                return dc_fail(s->j, DC_ERR_DIMS,
                               &(dc_fact){.op = dc_site_name(s),
                                          .axis = {k, k},
                                          .num = {a->dim[k], b->dim[k]},
                                          .type = {*a, *b},
                                          .operand = i + 1});
    }
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

/* A mask of axes is one attribute. */
static dc_status check_mask(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    const uint64_t beyond = (uint64_t)s->attr[0] >> s->in[0].rank;
    return beyond ? bad_axis(s, &s->in[0], s->in[0].rank + __builtin_ctzll(beyond)) : DC_OK;
}

static dc_status shape_reduce(const dc_site *s)
{
    DC_TRY(check_mask(s));
    for (int i = 0; i < s->in[0].rank; i++)
        if ((s->attr[0] >> i & 1) == 0)
            s->out->dim[s->out->rank++] = s->in[0].dim[i];
    return DC_OK;
}

/* The operation is not defined where a size of these is known at run time only. */
static dc_status needs_size(const dc_site *s, int axis)
{
    return dc_fail(
        s->j, DC_ERR_EXTENT,
        &(dc_fact){.op = dc_site_name(s), .axis = {axis}, .type = {s->in[0]}, .operand = 1});
}

static int first_extent(const dc_type *t)
{
    int axis = 0;
    while (axis + 1 < t->rank && !dc_extent_is(t->dim[axis]))
        axis++;
    return axis;
}

dc_status dc_infer_extents(const dc_site *s)
{
    for (int i = 0; i < s->out->rank; i++)
        if (s->out->dim[i] < 0 || (dc_extent_is(s->out->dim[i]) &&
                                   (!dc_extent_known(s->j->extents, s->out->dim[i]) ||
                                    !dc_extent_at_least(s->j->extents, s->out->dim[i], 0))))
            return dc_fail(s->j, DC_ERR_EXTENT,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {i},
                                      .type = {s->nin > 0 ? s->in[0] : *s->out},
                                      .operand = s->nin > 0 ? 1 : 0});
    return DC_OK;
}

/* Are the dims the same but for ones? */
static bool same_but_ones(const dc_type *a, const dc_type *b)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dim[i] == 1)
            i++;
        while (k < b->rank && b->dim[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dim[i++] != b->dim[k++])
            return false;
    }
}

static dc_status shape_RESHAPE(const dc_site *s)
{
    DC_TRY(attr_count(s, 0));
    if (same_but_ones(&s->in[0], s->want)) { /* whether or not their product is one of the table */
        copy_dims(s->out, s->want);
        return DC_OK;
    }
    dc_extents *e = s->j->extents;
    const int64_t n = dc_extent_product(e, s->in[0].rank, s->in[0].dim);
    const int64_t m = dc_extent_product(e, s->want->rank, s->want->dim);
    if (n == DC_EXTENT_NONE || m == DC_EXTENT_NONE)
        return needs_size(s, first_extent(&s->in[0]));
    if (n != m)
        return dc_fail(
            s->j, DC_ERR_ELEMENTS,
            &(dc_fact){
                .op = dc_site_name(s), .num = {n, m}, .type = {s->in[0], *s->want}, .operand = 1});
    copy_dims(s->out, s->want);
    return DC_OK;
}

/* Are axis[0..n-1] different axes of t? Adds them to *seen. */
static dc_status distinct_axes(const dc_site *s, const dc_type *t, const int64_t *axis, int64_t n,
                               uint32_t *seen)
{
    for (int64_t i = 0; i < n; i++) {
        if (axis[i] < 0 || axis[i] >= t->rank)
            return bad_axis(s, t, axis[i]);
        if (*seen >> axis[i] & 1)
            return dc_fail(s->j, DC_ERR_AXIS_TWICE,
                           &(dc_fact){.op = dc_site_name(s), .axis = {(int)axis[i]}, .type = {*t}});
        *seen |= 1u << axis[i];
    }
    return DC_OK;
}

static dc_status shape_PERMUTE(const dc_site *s)
{
    uint32_t seen = 0;
    DC_TRY(attr_count(s, s->in[0].rank));
    DC_TRY(distinct_axes(s, &s->in[0], s->attr, s->nattr, &seen));
    s->out->rank = s->in[0].rank;
    for (int i = 0; i < s->out->rank; i++)
        s->out->dim[i] = s->in[0].dim[s->attr[i]];
    return DC_OK;
}

static dc_status same_rank_as_wanted(const dc_site *s)
{
    if (s->want->rank == s->in[0].rank)
        return DC_OK;
    char words[40];
    snprintf(words, sizeof words, "%d are wanted", s->want->rank);
    return dc_fail(s->j, DC_ERR_RANK,
                   &(dc_fact){.op = dc_site_name(s),
                              .num = {s->in[0].rank},
                              .type = {s->in[0], *s->want},
                              .word = {words},
                              .operand = 1});
}

static dc_status shape_EXPAND(const dc_site *s)
{
    DC_TRY(attr_count(s, 0));
    DC_TRY(same_rank_as_wanted(s));
    for (int i = 0; i < s->want->rank; i++)
        if (s->in[0].dim[i] != s->want->dim[i] && s->in[0].dim[i] != 1)
            return dc_fail(s->j, DC_ERR_DIMS,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {i, i},
                                      .num = {s->in[0].dim[i], s->want->dim[i]},
                                      .type = {s->in[0], *s->want},
                                      .operand = 1});
    copy_dims(s->out, s->want);
    return DC_OK;
}

/* start + (n - 1) * step, the last of n positions; the largest number if it overflows. */
static int64_t last_of(int64_t start, int64_t step, int64_t n)
{
    int64_t last;
    return dc_mul_ok(n - 1, step, &last) && dc_add_ok(last, start, &last) ? last : INT64_MAX;
}

/* start + (n - 1) * step < dim, for all sizes; or there is no position */
static bool positions_fit(const dc_site *s, int64_t start, int64_t step, int64_t n, int64_t dim)
{
    dc_extents *e = s->j->extents;
    const int64_t steps = dc_extent_mul(e, n, step); /* (n - 1 of a size of at most 0 is none) */
    const int64_t end = dc_extent_sub(e, dc_extent_add(e, start, steps), step - 1);
    return !dc_extent_is(step) && dc_extent_at_least(e, start, 0) &&
           dc_extent_at_least(e, dim, end);
}

static bool any_extent(int64_t a, int64_t b, int64_t c)
{
    return dc_extent_is(a) || dc_extent_is(b) || dc_extent_is(c);
}

static dc_status shape_SLICE(const dc_site *s)
{
    const int rank = s->in[0].rank;
    DC_TRY(attr_count(s, 2 * rank));
    DC_TRY(same_rank_as_wanted(s));
    for (int i = 0; i < rank; i++) {
        const int64_t start = s->attr[i], step = s->attr[rank + i], n = s->want->dim[i];
        if (step < 1)
            return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a step is at least 1");
        if (any_extent(start, n, s->in[0].dim[i])) {
            if (!positions_fit(s, start, step, n, s->in[0].dim[i]))
                return needs_size(s, i);
            continue;
        }
        /* of no elements, the start may lie just behind the axis */
        const int64_t last = start < 0 ? start : n == 0 ? start - 1 : last_of(start, step, n);
        if (start < 0 || last >= s->in[0].dim[i])
            return dc_fail(s->j, DC_ERR_SLICE,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {i},
                                      .num = {start < INT64_MAX ? start + 1 : start,
                                              last < INT64_MAX ? last + 1 : last},
                                      .type = {s->in[0]},
                                      .operand = 1});
    }
    copy_dims(s->out, s->want);
    return DC_OK;
}

/* Does the attribute hold a canonical pattern of the dtype? */
static dc_status check_pattern(const dc_site *s, int64_t attr, dc_dtype t)
{
    unsigned char element[16]; /* the largest: c128 */
    dc_bits_store(t, element, (uint64_t)attr);
    if (dc_bits_load(t, element) == (uint64_t)attr)
        return DC_OK;
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%lld is no pattern of %s", (long long)attr,
                    dc_dtype_name(t));
}

static dc_status shape_PAD(const dc_site *s)
{
    const int rank = s->in[0].rank;
    DC_TRY(attr_count(s, 2 * rank + 1));
    DC_TRY(same_rank_as_wanted(s));
    DC_TRY(check_pattern(s, s->attr[2 * rank], dtype_of(&s->in[0])));
    for (int i = 0; i < rank; i++) {
        const int64_t lo = s->attr[i], step = s->attr[rank + i], n = s->in[0].dim[i];
        if (step < 1 || lo < 0)
            return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a step is at least 1, a margin 0");
        if (any_extent(lo, n, s->want->dim[i])) {
            if (!positions_fit(s, lo, step, n, s->want->dim[i]))
                return needs_size(s, i);
            continue;
        }
        if (n > 0 && last_of(lo, step, n) >= s->want->dim[i])
            return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                            "axis %d: %lld elements from %lld by %lld do not fit %lld", i + 1,
                            (long long)n, (long long)lo, (long long)step,
                            (long long)s->want->dim[i]);
    }
    copy_dims(s->out, s->want);
    return DC_OK;
}

static dc_status shape_FLIP(const dc_site *s)
{
    DC_TRY(check_mask(s));
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

static dc_status shape_CONST(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    DC_TRY(check_pattern(s, s->attr[0], dtype_of(s->want)));
    copy_dims(s->out, s->want);
    return DC_OK;
}

static dc_status shape_PARAM(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    copy_dims(s->out, s->want);
    return DC_OK;
}

static dc_status shape_IOTA(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    if (s->attr[0] < 0 || s->attr[0] >= s->want->rank)
        return bad_axis(s, s->want, s->attr[0]);
    copy_dims(s->out, s->want);
    return DC_OK;
}

dc_status dc_infer_dot(const dc_site *s, dc_dot *d)
{
    const int nattr = dc_dot_nattr(s->attr, s->nattr);
    if (nattr < 0)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "counts of axes are missing");
    DC_TRY(attr_count(s, nattr));
    *d = dc_dot_read(s->attr, s->in[0].rank, s->in[1].rank);
    for (int side = 0; side < 2; side++) {
        uint32_t used = 0;
        DC_TRY(distinct_axes(s, &s->in[side], d->batch[side], d->nbatch, &used));
        DC_TRY(distinct_axes(s, &s->in[side], d->contract[side], d->ncontract, &used));
    }
    return DC_OK;
}

static dc_status same_extents(const dc_site *s, dc_err_id id, const int64_t *left,
                              const int64_t *right, int n)
{
    for (int i = 0; i < n; i++) {
        const int64_t a = s->in[0].dim[left[i]], b = s->in[1].dim[right[i]];
        if (a != b)
            return dc_fail(s->j, id,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {(int)left[i], (int)right[i]},
                                      .num = {a, b},
                                      .type = {s->in[0], s->in[1]}});
    }
    return DC_OK;
}

static dc_status shape_DOT(const dc_site *s)
{
    dc_dot d;
    DC_TRY(dc_infer_dot(s, &d));
    DC_TRY(same_extents(s, DC_ERR_DIMS, d.batch[0], d.batch[1], d.nbatch));
    DC_TRY(same_extents(s, DC_ERR_INNER, d.contract[0], d.contract[1], d.ncontract));
    const int rank = d.nbatch + d.nfree[0] + d.nfree[1];
    if (rank > DC_MAX_RANK)
        return dc_fail(s->j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = dc_site_name(s), .num = {rank, DC_MAX_RANK}});
    for (int i = 0; i < d.nbatch; i++)
        s->out->dim[s->out->rank++] = s->in[0].dim[d.batch[0][i]];
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d.nfree[side]; i++)
            s->out->dim[s->out->rank++] = s->in[side].dim[d.free[side][i]];
    return DC_OK;
}

static dc_status shape_CONV(const dc_site *s)
{
    dc_conv c;
    if (!dc_conv_read(s->attr, s->nattr, &c))
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "these attributes are no convolution's");
    return dc_conv_shape(s->j, dc_site_name(s), &c, &s->in[0], &s->in[1], s->out);
}

/*
 * Elements of operand 1 that operand 2, integers, picks: dims into *out. Where each axis comes from
 * is in core/ir/ops.def.
 */
static dc_status picked_dims(const dc_site *s, dc_type *out)
{
    const dc_type *x = &s->in[0], *i = &s->in[1];
    DC_TRY(attr_count(s, 2));
    const int64_t axis = s->attr[0], nb = s->attr[1];
    if (axis < 0 || axis >= x->rank)
        return bad_axis(s, x, axis);
    if (nb < 0 || nb > axis || nb > i->rank)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%lld axes in common, at most %lld are",
                        (long long)nb, (long long)dc_min_i64(axis, i->rank));
    if (x->rank - 1 + i->rank - nb > DC_MAX_RANK)
        return dc_fail(
            s->j, DC_ERR_TOO_MANY_AXES,
            &(dc_fact){.op = dc_site_name(s), .num = {x->rank - 1 + i->rank - nb, DC_MAX_RANK}});
    for (int k = 0; k < nb; k++)
        if (x->dim[k] != i->dim[k])
            return dc_fail(s->j, DC_ERR_DIMS,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {k, k},
                                      .num = {x->dim[k], i->dim[k]},
                                      .type = {*x, *i},
                                      .operand = 2});
    out->rank = 0;
    for (int k = 0; k < axis; k++)
        out->dim[out->rank++] = x->dim[k];
    for (int k = (int)nb; k < i->rank; k++)
        out->dim[out->rank++] = i->dim[k];
    for (int k = (int)axis + 1; k < x->rank; k++)
        out->dim[out->rank++] = x->dim[k];
    return DC_OK;
}

static dc_status shape_GATHER(const dc_site *s)
{
    DC_TRY(picked_dims(s, s->out));
    if (s->in[0].dim[s->attr[0]] == 0 && dc_type_count(s->out) > 0)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "axis %lld has no elements to pick from",
                        (long long)s->attr[0] + 1);
    return DC_OK;
}

static dc_status shape_scatter(const dc_site *s)
{
    dc_type picked = s->in[2];
    DC_TRY(picked_dims(s, &picked));
    if (picked.rank != s->in[2].rank)
        return dc_fail(s->j, DC_ERR_RANK,
                       &(dc_fact){.op = dc_site_name(s),
                                  .num = {s->in[2].rank},
                                  .type = {s->in[2], picked},
                                  .word = {"the integers pick another number"},
                                  .operand = 3});
    for (int k = 0; k < picked.rank; k++)
        if (picked.dim[k] != s->in[2].dim[k])
            return dc_fail(s->j, DC_ERR_DIMS,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {k, k},
                                      .num = {picked.dim[k], s->in[2].dim[k]},
                                      .type = {picked, s->in[2]},
                                      .operand = 3});
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

#define shape_SCATTER     shape_scatter
#define shape_SCATTER_ADD shape_scatter
#define shape_SCATTER_MUL shape_scatter
#define shape_SCATTER_MAX shape_scatter
#define shape_SCATTER_MIN shape_scatter

static dc_status shape_HOLE(const dc_site *s)
{
    DC_TRY(attr_count(s, 2));
    copy_dims(s->out, s->want);
    return DC_OK;
}

static dc_status shape_BARRIER(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

static dc_status shape_SET_SIZE(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    if (s->attr[0] < 0 || s->attr[0] >= s->in[0].rank)
        return bad_axis(s, &s->in[0], s->attr[0]);
    if (s->in[1].rank != 0 || s->in[1].dtype != DC_I32)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "the size is no i32[]");
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

/* As many elements as the block that it says it is. */
static dc_status shape_PIECE(const dc_site *s)
{
    const int rank = (s->nattr - 2) / 3;
    int64_t block = 1, count = 1;
    if (s->nattr < 2 || s->nattr != 2 + 3 * rank || rank > DC_MAX_RANK)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%d attributes", s->nattr);
    for (int i = 0; i < rank; i++)
        block *= s->attr[2 + 2 * rank + i];
    for (int i = 0; i < s->in[0].rank; i++)
        count *= s->in[0].dim[i];
    if (block != count)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "another number of elements");
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

static dc_status shape_JOIN(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

static dc_status shape_RESHARD(const dc_site *s)
{
    DC_TRY(attr_count(s, DC_MESH_AXES));
    for (int i = 0; i < DC_MESH_AXES; i++)
        if (s->attr[i] < 0 || s->attr[i] > s->in[0].rank)
            return bad_axis(s, &s->in[0], s->attr[i] - 1);
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

/* Gradients have the types of their inputs. */
static dc_status shape_CUSTOM(const dc_site *s)
{
    DC_TRY(attr_count(s, 3));
    const int64_t n = s->attr[0];
    const uint64_t mask = (uint64_t)s->attr[2];
    if (n < 0 || n > DC_CUSTOM_INPUTS || mask >> n != 0 ||
        s->nin != 1 + n + __builtin_popcountll(mask))
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%d operands for %lld inputs", s->nin,
                        (long long)n);
    for (int64_t i = 0, at = 1 + n; i < n; i++) {
        if ((mask >> i & 1) == 0)
            continue;
        const dc_type *x = &s->in[1 + i], *dx = &s->in[at++];
        if (!dc_type_same(x, dx) || !dc_dtype_is_float(dtype_of(x)))
            return dc_fail(
                s->j, DC_ERR_DTYPE_MIX,
                &(dc_fact){.op = dc_site_name(s), .type = {*x, *dx}, .operand = (int)at});
    }
    copy_dims(s->out, &s->in[0]);
    return DC_OK;
}

static dc_status table_fits(const dc_site *s, int i, int64_t r, int64_t m)
{
    for (int k = i; k < i + 2; k++)
        if (k >= s->nin || s->in[k].rank != 2 || s->in[k].dim[0] != r || s->in[k].dim[1] != m)
            return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a table of other dims");
    return DC_OK;
}

static dc_status shape_DFT(const dc_site *s)
{
    const dc_type *x = &s->in[0];
    int radix[DC_DFT_STAGES];
    DC_TRY(attr_count(s, DC_DFT_ATTRS));
    const int64_t axis = s->attr[0], sign = s->attr[1];
    if (x->rank < 2 || axis < 0 || axis > x->rank - 2 || (sign != 1 && sign != -1) ||
        x->dim[x->rank - 1] != 2)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "an axis in front of that of the parts");
    if (dc_extent_is(x->dim[axis]))
        return dc_fail(s->j, DC_ERR_EXTENT,
                       &(dc_fact){.op = dc_site_name(s), .axis = {(int)axis}, .type = {*x}});
    const int n = x->dim[axis] < 1 ? 0 : dc_dft_radices(x->dim[axis], radix);
    if (n == 0 || s->nin != 1 + 2 * (n - 1))
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a length of other radices");
    for (int64_t i = 0, m = x->dim[axis]; i + 1 < n; i++) {
        m /= radix[i];
        DC_TRY(table_fits(s, 1 + 2 * (int)i, radix[i], m));
    }
    copy_dims(s->out, x);
    return DC_OK;
}

static dc_status shape_STAGE(const dc_site *s)
{
    dc_stage x;
    DC_TRY(attr_count(s, DC_STAGE_ATTRS));
    if (!dc_stage_read(s->attr, s->in[0].rank, s->in[0].dim, &x) || s->nin != (x.m > 1 ? 3 : 1))
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a stage of another shape");
    if (x.m > 1)
        DC_TRY(table_fits(s, 1, x.radix, x.m));
    const int64_t n = x.radix * x.m * x.s;
    const dc_type planes = dc_type_make(dtype_of(s->out), 4, (int64_t[]){x.before, 2, n, x.after});
    const dc_type pairs = dc_type_make(dtype_of(s->out), 4, (int64_t[]){x.before, n, x.after, 2});
    /* The last one may store its pairs as a tensor of the transform's axes, so that no copy follows it. */
    const bool as_wanted = !x.to_planes && s->want != NULL && s->want->rank > 0 &&
                           s->want->dim[s->want->rank - 1] == 2 &&
                           dc_type_count(s->want) == dc_type_count(&pairs);
    copy_dims(s->out, x.to_planes ? &planes : as_wanted ? s->want : &pairs);
    return DC_OK;
}

/* The dtype rule has refused it. */
static dc_status shape_control(const dc_site *s)
{
    DC_BUG("the shape of %s", dc_site_name(s));
}

/* ---- the table ---- */

static rule *const rules[] = {
/* clang-format off */
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = shape_##shape,
#define RED(id, lua, combine, type, names, grad, lo, hi) \
    [DC_OP_##id] = shape_reduce,
#define MOV(id, lua, names, grad)                  [DC_OP_##id] = shape_##id,
#define SRC(id, lua)                               [DC_OP_##id] = shape_##id,
#define CON(id, lua, type, names, grad, lo, hi)    [DC_OP_##id] = shape_##id,
#define IDX(id, lua, n, combine, type, grad, lo, hi) [DC_OP_##id] = shape_##id,
#define HST(id, lua, n, rule, grad, lo, hi)        [DC_OP_##id] = dc_infer_host_shape,
#define FFT(id, lua, grad)                         [DC_OP_##id] = shape_##id,
#define SAME(id, lua, n, grad)                     [DC_OP_##id] = shape_##id,
#define PART(id, lua, n)                           [DC_OP_##id] = shape_##id,
#define COM(id, lua, grad, lo, hi)                 [DC_OP_##id] = dc_infer_exchange_shape,
#define MSG(id, lua, n, grad)                      [DC_OP_##id] = dc_infer_exchange_shape,
#define CTL(id, lua, n)                            [DC_OP_##id] = shape_control,
#include "core/ir/ops.def"
    /* clang-format on */
};

dc_status dc_infer_shape(const dc_site *s)
{
    if (dc_op_is(s->op, DC_CLASS_EW))
        DC_TRY(attr_count(s, 0));
    return rules[s->op](s);
}
