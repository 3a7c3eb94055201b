/*
 * Convolutions as users write them, and what of sizes known at run time they share with pools.
 */
#include "core/build/build_conv.h"

#include "core/base/extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes known at run time ---- */

dc_status dc_window_places(dc_job *j, const dc_type *x, int axis, int64_t window, int64_t margin,
                           int64_t stride, int64_t *out)
{
    dc_extents *e = j->extents;
    const int64_t room = dc_extent_add(e, x->dim[axis], margin);
    const int64_t steps = dc_extent_div(e, dc_extent_sub(e, room, window), stride);
    *out = dc_extent_add(e, steps, 1);
    if (*out != DC_EXTENT_NONE && dc_extent_at_least(e, room, window))
        return DC_OK;
    return dc_fail(j, DC_ERR_EXTENT, &(dc_fact){.axis = {axis}, .type = {*x}, .operand = 1});
}

uint32_t dc_window_axes(const dc_type *x, int n)
{
    return x->rank == n + 2 ? ((1u << n) - 1) << 2 : 0;
}

/* A convolution over the bounds, with zeros behind the sizes; of its result what these give. */
static dc_status conv_bounded(dc_job *j, dc_func *f, dc_val x, dc_val kernel, const dc_conv *c,
                              dc_val *out)
{
    int64_t dim[DC_MAX_RANK];
    dc_val whole;
    DC_TRY(dc_build_at_bound(j, f, x, dc_window_axes(&x.type, c->n), 0, &whole));
    DC_TRY(dc_build_conv(j, f, whole, kernel, c, out));
    memcpy(dim, out->type.dim, sizeof dim);
    for (int i = 0; i < c->n; i++) {
        const dc_conv_dim *d = &c->dim[i];
        const int64_t window = (kernel.type.dim[2 + i] - 1) * d->dilate + 1;
        if (dc_extent_is(x.type.dim[2 + i]))
            DC_TRY(
                dc_window_places(j, &x.type, 2 + i, window, d->lo + d->hi, d->stride, &dim[2 + i]));
    }
    return dc_build_up_to(j, f, *out, dim, out);
}

dc_status dc_build_conv(dc_job *j, dc_func *f, dc_val x, dc_val kernel, const dc_conv *c,
                        dc_val *out)
{
    if (dc_build_is_bounded(&x.type, dc_window_axes(&x.type, c->n)) &&
        !dc_build_is_bounded(&kernel.type, dc_window_axes(&kernel.type, c->n)))
        return conv_bounded(j, f, x, kernel, c, out);

    dc_val in[2] = {x, kernel};
    const dc_dtype t = (dc_dtype)x.type.dtype;
    dc_type types[2], type;
    int64_t attr[DC_CONV_ATTRS];
    const int n = dc_conv_write(c, attr);
    for (int i = 0; i < 2; i++)
        types[i] = in[i].type;
    DC_TRY(dc_infer(j, DC_OP_CONV, types, 2, attr, n, NULL, &type));
    for (int i = 0; i < 2 && !dc_dtype_is_float(t) && dc_dtype_bits(t) < 32; i++) {
        DC_TRY(dc_build_cast(j, f, in[i], DC_I32, &in[i]));
        types[i] = in[i].type;
    }
    DC_TRY(dc_infer(j, DC_OP_CONV, types, 2, attr, n, NULL, &type));
    out->ref = dc_graph_conv(f, in[0].ref, in[1].ref, c);
    out->type = type;
    return DC_OK;
}

/* ---- transposed convolutions ---- */

/* Attributes of the convolution over x with its elements `stride` apart. */
static dc_conv transposed(const dc_conv_back *b, const dc_type *kernel)
{
    dc_conv c = dc_conv_plain(b->n);
    c.groups = b->groups;
    c.kernel[0] = 1;
    c.kernel[1] = 0;
    for (int i = 0; i < b->n; i++) {
        const int64_t reach = (kernel->dim[2 + i] - 1) * b->dilate[i];
        c.dim[i] = (dc_conv_dim){.stride = 1,
                                 .lo = reach - b->lo[i],
                                 .hi = reach - b->hi[i] + b->more[i],
                                 .dilate_in = b->stride[i],
                                 .dilate = b->dilate[i],
                                 .reversed = 1};
    }
    return c;
}

static dc_status check_transposed(dc_job *j, const dc_type *x, const dc_type *kernel,
                                  const dc_conv_back *b)
{
    const dc_type *types[2] = {x, kernel};
    for (int i = 0; i < 2; i++) {
        char words[40];
        if (types[i]->rank == 2 + b->n)
            continue;
        snprintf(words, sizeof words, "%d are needed", 2 + b->n);
        return dc_fail(
            j, i == 0 && x->rank == 1 + b->n ? DC_ERR_CONV_RANK : DC_ERR_RANK,
            &(dc_fact){
                .num = {types[i]->rank}, .type = {*types[i]}, .word = {words}, .operand = 1 + i});
    }
    if (x->dim[1] != kernel->dim[0])
        return dc_fail(
            j, DC_ERR_CHANNELS,
            &(dc_fact){.axis = {1, 0}, .num = {x->dim[1], kernel->dim[0]}, .type = {*x, *kernel}});
    if (kernel->dim[0] % b->groups != 0)
        return dc_fail(
            j, DC_ERR_CONV_GROUPS,
            &(dc_fact){
                .axis = {0}, .num = {kernel->dim[0], b->groups}, .type = {*kernel}, .operand = 2});
    for (int i = 0; i < b->n; i++) {
        const int64_t window = (kernel->dim[2 + i] - 1) * b->dilate[i] + 1;
        const int64_t whole =
            (dc_extent_lo(j->extents, x->dim[2 + i]) - 1) * b->stride[i] + window + b->more[i];
        if (dc_extent_is(kernel->dim[2 + i]) || x->dim[2 + i] == 0 || kernel->dim[2 + i] == 0)
            continue; /* told as of any convolution */
        if (whole <= b->lo[i] + b->hi[i])
            return dc_failf(j, DC_ERR_ARG, NULL,
                            "axis %d: a result of %" PRId64 " elements, of which %" PRId64
                            " and %" PRId64 " are cut",
                            3 + i, whole, b->lo[i], b->hi[i]);
    }
    return DC_OK;
}

dc_status dc_build_conv_transpose(dc_job *j, dc_func *f, dc_val x, dc_val kernel,
                                  const dc_conv_back *b, dc_val *out)
{
    int64_t dim[DC_MAX_RANK];
    const uint32_t axes = dc_window_axes(&x.type, b->n);
    DC_TRY(check_transposed(j, &x.type, &kernel.type, b));
    const dc_conv c = transposed(b, &kernel.type);
    dc_val whole = x;
    if (dc_build_is_bounded(&x.type, axes))
        DC_TRY(dc_build_at_bound(j, f, x, axes, 0, &whole));
    if (b->groups > 1) {
        kernel.ref = dc_conv_regroup(f, kernel.ref, 0, 1, b->groups);
        kernel.type.dim[0] /= b->groups;
        kernel.type.dim[1] *= b->groups;
    }
    DC_TRY(dc_build_conv(j, f, whole, kernel, &c, out));
    if (!dc_build_is_bounded(&x.type, axes))
        return DC_OK;
    memcpy(dim, out->type.dim, sizeof dim);
    for (int i = 0; i < b->n;
         i++) { /* as many fewer as elements of x are missing, each a stride apart */
        const int64_t n = x.type.dim[2 + i];
        const int64_t rest = dim[2 + i] - dc_extent_bound(n) * b->stride[i];
        if (dc_extent_is(n))
            dim[2 + i] =
                dc_extent_add(j->extents, dc_extent_mul(j->extents, n, b->stride[i]), rest);
    }
    return dc_build_up_to(j, f, *out, dim, out);
}
