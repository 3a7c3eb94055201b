#include "core/ir/conv.h"

#include "core/base/extent.h"

#include <stdio.h>
#include <string.h>

/* Sums and products of a few of these do not overflow. */
static const int64_t most_pad = (int64_t)1 << 60, most_extent = (int64_t)1 << 58,
                     most_step = INT32_MAX;

dc_conv dc_conv_plain(int n)
{
    dc_conv c = {.n = n, .groups = 1, .batch_groups = 1};
    for (int i = 0; i < 2 + n; i++)
        c.in[i] = c.kernel[i] = c.out[i] = i;
    for (int i = 0; i < n; i++)
        c.dim[i] = (dc_conv_dim){.stride = 1, .dilate_in = 1, .dilate = 1};
    return c;
}

/* ---- attributes ---- */

/* Is axis[0..n-1] a permutation of 0..n-1? */
static bool is_permutation(const int64_t *axis, int n)
{
    uint32_t seen = 0;
    for (int i = 0; i < n; i++) {
        if (axis[i] < 0 || axis[i] >= n || (seen >> axis[i] & 1))
            return false;
        seen |= 1u << axis[i];
    }
    return true;
}

static bool in_bounds(const dc_conv *c)
{
    if (c->groups < 1 || c->batch_groups < 1 || (c->groups > 1 && c->batch_groups > 1) ||
        c->groups > most_step || c->batch_groups > most_step)
        return false;
    for (int i = 0; i < c->n; i++) {
        const dc_conv_dim *d = &c->dim[i];
        const int64_t steps[3] = {d->stride, d->dilate_in, d->dilate}, pads[2] = {d->lo, d->hi};
        for (int k = 0; k < 3; k++)
            if (steps[k] < 1 || steps[k] > most_step)
                return false;
        for (int k = 0; k < 2; k++)
            if (pads[k] < -most_pad || pads[k] > most_pad)
                return false;
        if (d->reversed != 0 && d->reversed != 1)
            return false;
    }
    return is_permutation(c->in, 2 + c->n) && is_permutation(c->kernel, 2 + c->n) &&
           is_permutation(c->out, 2 + c->n);
}

bool dc_conv_read(const int64_t *attr, int nattr, dc_conv *out)
{
    if (nattr < 3 || attr[0] < 1 || attr[0] > DC_CONV_DIMS ||
        nattr != 3 + 3 * (2 + attr[0]) + 6 * attr[0])
        return false;
    const int n = (int)attr[0];
    dc_conv c = {.n = n, .groups = attr[1], .batch_groups = attr[2]};
    attr += 3;
    int64_t *const axes[3] = {c.in, c.kernel, c.out};
    for (int k = 0; k < 3; k++, attr += 2 + n)
        memcpy(axes[k], attr, (size_t)(2 + n) * sizeof *attr);
    for (int i = 0; i < n; i++, attr += 6)
        c.dim[i] = (dc_conv_dim){attr[0], attr[1], attr[2], attr[3], attr[4], attr[5]};
    *out = c;
    return in_bounds(&c);
}

int dc_conv_write(const dc_conv *c, int64_t attr[DC_CONV_ATTRS])
{
    const int64_t *const axes[3] = {c->in, c->kernel, c->out};
    int at = 0;
    attr[at++] = c->n;
    attr[at++] = c->groups;
    attr[at++] = c->batch_groups;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2 + c->n; i++)
            attr[at++] = axes[k][i];
    for (int i = 0; i < c->n; i++) {
        const dc_conv_dim *d = &c->dim[i];
        const int64_t part[6] = {d->stride, d->lo, d->hi, d->dilate_in, d->dilate, d->reversed};
        memcpy(attr + at, part, sizeof part);
        at += 6;
    }
    return at;
}

dc_conv dc_conv_of(const dc_node *n)
{
    dc_conv c = {0};
    const bool read = dc_conv_read(n->attr, n->nattr, &c);
    DC_ASSERT(read, "%d attributes of a convolution", n->nattr);
    (void)read;
    return c;
}

dc_ref dc_graph_conv(dc_func *f, dc_ref input, dc_ref kernel, const dc_conv *c)
{
    int64_t attr[DC_CONV_ATTRS];
    const int n = dc_conv_write(c, attr);
    return dc_graph_make(f, DC_OP_CONV, (dc_ref[]){input, kernel}, 2, attr, n, NULL);
}

/* ---- shape ---- */

static dc_status check_rank(dc_job *j, const char *op, const dc_conv *c, const dc_type *t,
                            int which)
{
    char words[40];
    if (t->rank == 2 + c->n)
        return DC_OK;
    snprintf(words, sizeof words, "%d are needed", 2 + c->n);
    return dc_fail(
        j, t->rank == 1 + c->n && which == 1 ? DC_ERR_CONV_RANK : DC_ERR_RANK,
        &(dc_fact){.op = op, .num = {t->rank}, .type = {*t}, .word = {words}, .operand = which});
}

static dc_status check_groups(dc_job *j, const char *op, const dc_type *t, int64_t axis,
                              int64_t groups, int which)
{
    if (groups == 1 || (!dc_extent_is(t->dim[axis]) && t->dim[axis] % groups == 0))
        return DC_OK;
    return dc_fail(j, DC_ERR_CONV_GROUPS,
                   &(dc_fact){.op = op,
                              .axis = {(int)axis},
                              .num = {t->dim[axis], groups},
                              .type = {*t},
                              .operand = which});
}

static dc_status check_channels(dc_job *j, const char *op, const dc_conv *c, const dc_type *x,
                                const dc_type *w)
{
    const int64_t has = x->dim[c->in[1]], needs = w->dim[c->kernel[1]];
    dc_fact fact = {.op = op,
                    .axis = {(int)c->in[1], (int)c->kernel[1]},
                    .num = {has, needs, c->groups},
                    .type = {*x, *w}};
    if (has / c->groups == needs)
        return DC_OK;
    return dc_fail(j, c->groups > 1 ? DC_ERR_CONV_GROUPED : DC_ERR_CHANNELS, &fact);
}

/* (n - 1) * step + 1 elements; none of none. Saturates. */
static int64_t dilated(int64_t n, int64_t step)
{
    int64_t last;
    if (n == 0)
        return 0;
    return dc_mul_ok(n - 1, step, &last) && last < INT64_MAX / 2 ? last + 1 : INT64_MAX / 2;
}

static dc_status too_large(dc_job *j, const char *op, const dc_type *t)
{
    char text[DC_TYPE_TEXT];
    dc_type_print(t, text, sizeof text);
    return dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.op = op, .word = {text}});
}

dc_status dc_conv_shape(dc_job *j, const char *op, const dc_conv *c, const dc_type *x,
                        const dc_type *w, dc_type *out)
{
    DC_TRY(check_rank(j, op, c, x, 1));
    DC_TRY(check_rank(j, op, c, w, 2));
    DC_TRY(check_groups(j, op, x, c->in[1], c->groups, 1));
    DC_TRY(check_groups(j, op, x, c->in[0], c->batch_groups, 1));
    DC_TRY(check_groups(j, op, w, c->kernel[0], c->groups * c->batch_groups, 2));
    DC_TRY(check_channels(j, op, c, x, w));
    out->rank = (uint8_t)(2 + c->n);
    out->dim[c->out[0]] = x->dim[c->in[0]] / c->batch_groups;
    out->dim[c->out[1]] = w->dim[c->kernel[0]];
    for (int i = 0; i < c->n; i++) {
        const dc_conv_dim *d = &c->dim[i];
        const int64_t ax = c->in[2 + i], aw = c->kernel[2 + i];
        if (dc_extent_is(x->dim[ax]) || dc_extent_is(w->dim[aw])) {
            const bool first = dc_extent_is(x->dim[ax]);
            return dc_fail(j, DC_ERR_EXTENT,
                           &(dc_fact){.op = op,
                                      .axis = {(int)(first ? ax : aw)},
                                      .type = {first ? *x : *w},
                                      .operand = first ? 1 : 2});
        }
        const int64_t window = dilated(w->dim[aw], d->dilate);
        const int64_t input = dilated(x->dim[ax], d->dilate_in), room = input + d->lo + d->hi;
        if (window > most_extent || input > most_extent)
            return too_large(j, op, window > most_extent ? w : x);
        if (window < 1 || room < window)
            return dc_fail(j, DC_ERR_CONV_WINDOW,
                           &(dc_fact){.op = op,
                                      .axis = {(int)ax, (int)aw},
                                      .num = {window, x->dim[ax], d->lo, d->hi},
                                      .type = {*x, *w}});
        out->dim[c->out[2 + i]] = (room - window) / d->stride + 1;
    }
    return DC_OK;
}

/* ---- gradients ---- */

dc_ref dc_conv_regroup(dc_func *f, dc_ref r, int64_t from, int64_t to, int64_t g)
{
    const dc_node n = *dc_node_at(f, r);
    int64_t split[DC_CONV_AXES + 1], perm[DC_CONV_AXES + 1], dim[DC_CONV_AXES];
    if (g == 1)
        return r;
    int at = 0, group = 0;
    for (int i = 0; i < n.rank; i++) {
        dim[i] = i == from ? n.dim[i] / g : i == to ? n.dim[i] * g : n.dim[i];
        if (i == from) {
            group = at;
            split[at++] = g;
        }
        split[at++] = i == from ? n.dim[i] / g : n.dim[i];
    }
    at = 0;
    for (int i = 0; i < n.rank; i++) {
        if (i == to)
            perm[at++] = group;
        perm[at++] = i + (i >= group);
    }
    r = dc_graph_permute(f, dc_graph_reshape(f, r, n.rank + 1, split), perm);
    return dc_graph_reshape(f, r, n.rank, dim);
}

/*
 * For the input: the window runs over the cotangent in reverse, whose elements are as far apart as
 * the stride was. Channels change roles, within their groups.
 */
static dc_ref input_part(dc_func *f, dc_ref r, dc_ref g)
{
    const dc_node n = *dc_node_at(f, r), x = *dc_node_at(f, n.in[0]), w = *dc_node_at(f, n.in[1]);
    const dc_conv c = dc_conv_of(&n);
    const int64_t groups = c.groups * c.batch_groups;
    dc_conv d = {.n = c.n, .groups = groups, .batch_groups = 1};
    memcpy(d.in, c.out, sizeof d.in);
    memcpy(d.out, c.in, sizeof d.out);
    memcpy(d.kernel, c.kernel, sizeof d.kernel);
    d.kernel[0] = c.kernel[1];
    d.kernel[1] = c.kernel[0];
    for (int i = 0; i < c.n; i++) {
        const dc_conv_dim *e = &c.dim[i];
        const int64_t window = dilated(w.dim[c.kernel[2 + i]], e->dilate), lo = window - 1 - e->lo;
        const int64_t need = dilated(x.dim[c.in[2 + i]], e->dilate_in) - 1 + window;
        d.dim[i] = (dc_conv_dim){.stride = e->dilate_in,
                                 .lo = lo,
                                 .hi = need - dilated(n.dim[c.out[2 + i]], e->stride) - lo,
                                 .dilate_in = e->stride,
                                 .dilate = e->dilate,
                                 .reversed = 1 - e->reversed};
    }
    const dc_ref kernel = dc_conv_regroup(f, n.in[1], c.kernel[0], c.kernel[1], groups);
    const dc_ref part = dc_graph_conv(f, g, kernel, &d);
    return dc_conv_regroup(f, part, c.in[1], c.in[0], c.batch_groups);
}

/* Has the input holes, and the window none of its own that the cotangent would get? */
static bool is_over_holes(const dc_conv *c)
{
    bool holes = false;
    for (int i = 0; i < c->n; i++) {
        if (c->dim[i].stride > 1)
            return false;
        holes = holes || c->dim[i].dilate_in > 1;
    }
    return holes && c->groups == 1 && c->batch_groups == 1;
}

/*
 * For the kernel, where the input has holes: the input is the window, its elements as far apart as they were, over the
 * cotangent, so that holes take no time. Positions come from the last tap to the first.
 */
static dc_ref kernel_part_over_cotangent(dc_func *f, dc_ref r, dc_ref g)
{
    const dc_node n = *dc_node_at(f, r), x = *dc_node_at(f, n.in[0]), w = *dc_node_at(f, n.in[1]);
    const dc_conv c = dc_conv_of(&n);
    dc_conv d = {.n = c.n, .groups = 1, .batch_groups = 1};
    uint32_t forward = 0;
    memcpy(d.in, c.out, sizeof d.in);
    memcpy(d.kernel, c.in, sizeof d.kernel);
    memcpy(d.out, c.kernel, sizeof d.out);
    d.in[0] = c.out[1];
    d.in[1] = c.out[0];
    d.kernel[0] = c.in[1];
    d.kernel[1] = c.in[0];
    for (int i = 0; i < c.n; i++) {
        const dc_conv_dim *e = &c.dim[i];
        const int64_t reach = (w.dim[c.kernel[2 + i]] - 1) * e->dilate, lo = reach - e->lo;
        const int64_t window = dilated(x.dim[c.in[2 + i]], e->dilate_in);
        d.dim[i] = (dc_conv_dim){.stride = e->dilate,
                                 .lo = lo,
                                 .hi = reach + window - n.dim[c.out[2 + i]] - lo,
                                 .dilate_in = 1,
                                 .dilate = e->dilate_in};
        forward |= e->reversed ? 0 : 1u << c.kernel[2 + i];
    }
    return dc_graph_flip(f, dc_graph_conv(f, g, n.in[0], &d), forward);
}

/* For the kernel: the cotangent is the window, its elements as far apart as the stride was. */
static dc_ref kernel_part(dc_func *f, dc_ref r, dc_ref g)
{
    const dc_node n = *dc_node_at(f, r), x = *dc_node_at(f, n.in[0]), w = *dc_node_at(f, n.in[1]);
    const dc_conv c = dc_conv_of(&n);
    dc_conv d = {.n = c.n, .groups = c.batch_groups, .batch_groups = c.groups};
    uint32_t reversed = 0;
    memcpy(d.in, c.in, sizeof d.in);
    memcpy(d.kernel, c.out, sizeof d.kernel);
    memcpy(d.out, c.kernel, sizeof d.out);
    d.in[0] = c.in[1];
    d.in[1] = c.in[0];
    d.kernel[0] = c.out[1];
    d.kernel[1] = c.out[0];
    d.out[0] = c.kernel[1];
    d.out[1] = c.kernel[0];
    for (int i = 0; i < c.n; i++) {
        const dc_conv_dim *e = &c.dim[i];
        const int64_t window = dilated(n.dim[c.out[2 + i]], e->stride);
        const int64_t need = dilated(w.dim[c.kernel[2 + i]], e->dilate) - 1 + window;
        d.dim[i] = (dc_conv_dim){.stride = e->dilate,
                                 .lo = e->lo,
                                 .hi = need - dilated(x.dim[c.in[2 + i]], e->dilate_in) - e->lo,
                                 .dilate_in = e->dilate_in,
                                 .dilate = e->stride};
        reversed |= e->reversed ? 1u << c.kernel[2 + i] : 0;
    }
    return dc_graph_flip(f, dc_graph_conv(f, n.in[0], g, &d), reversed);
}

dc_ref dc_conv_grad(dc_func *f, dc_ref r, dc_ref g, int side)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_node *mine = dc_node_at(f, n.in[side]);
    if (dc_node_count(mine) == 0 || dc_node_count(&n) == 0)
        return dc_graph_like(f, n.in[side], 0);
    if (side == 0)
        return input_part(f, r, g);
    const dc_conv c = dc_conv_of(&n);
    return is_over_holes(&c) ? kernel_part_over_cotangent(f, r, g) : kernel_part(f, r, g);
}
