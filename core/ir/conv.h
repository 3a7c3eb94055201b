/*
 * Convolution: the attributes of a conv node as a structure, its shape rule and its gradients.
 *
 * Per group of channels, over the taps k of the window (each axis by itself):
 *
 *   result[b, o, y] = sum over channels i and taps k of  input[b, i, p / dilate_in] * kernel[o, i, k]
 *   where p = y * stride + k * dilate - lo  (k counted from the end where the window is reversed)
 *
 * and input is 0 where p is negative, no multiple of dilate_in or behind the end; whether such a 0 is
 * multiplied by an infinity or NaN of the kernel is left open. Which axis of an
 * operand is which is free, so the gradients for both operands are conv nodes again and channels may
 * stand where a device likes them. Terms are added in row-major order of the kernel's axes.
 *
 * groups: input channels and output channels fall into as many groups, each by itself. batch_groups:
 * the input's batch does instead, and group g of it makes group g of the output channels. One of
 * the two is 1.
 */
#ifndef DC_CORE_IR_CONV_H
#define DC_CORE_IR_CONV_H

#include "core/ir/graph.h"

enum {
    DC_CONV_DIMS = 3, /* dims of a window, at most */
    DC_CONV_AXES = 2 + DC_CONV_DIMS,
    DC_CONV_ATTRS = 3 + 3 * DC_CONV_AXES + 6 * DC_CONV_DIMS
};

typedef struct dc_conv_dim {
    int64_t stride, lo, hi;    /* lo, hi: zeros on both sides; less than 0 cuts */
    int64_t dilate_in, dilate; /* distance of elements of the input, of taps */
    int64_t reversed;          /* 0 or 1 */
} dc_conv_dim;

typedef struct dc_conv {
    int n; /* dims of the window */
    int64_t groups, batch_groups;
    int64_t in[DC_CONV_AXES];     /* of operand 1: batch, channel, then where the window goes */
    int64_t kernel[DC_CONV_AXES]; /* of operand 2: channel of the result, of the input, window */
    int64_t out[DC_CONV_AXES];    /* of the result: batch, channel, positions */
    dc_conv_dim dim[DC_CONV_DIMS];
} dc_conv;

/* Axes in the order in which they are listed above, one group, stride and dilation 1, no padding. */
dc_conv dc_conv_plain(int n);

/* Attributes to the structure and back. False: they are none of a conv, or out of all bounds. */
bool dc_conv_read(const int64_t *attr, int nattr, dc_conv *out);
int dc_conv_write(const dc_conv *c, int64_t attr[DC_CONV_ATTRS]);
dc_conv dc_conv_of(const dc_node *n); /* of a conv node */

/* Rank and dims of the result, into *out. RANK, AXIS, CHANNELS, GROUPS, WINDOW name op. */
dc_status dc_conv_shape(dc_job *j, const char *op, const dc_conv *c, const dc_type *input,
                        const dc_type *kernel, dc_type *out);

/* Axis `from` falls into so many groups; their number becomes the slower part of axis `to`. */
dc_ref dc_conv_regroup(dc_func *f, dc_ref r, int64_t from, int64_t to, int64_t groups);

dc_ref dc_graph_conv(dc_func *f, dc_ref input, dc_ref kernel, const dc_conv *c);

/* The part of operand `side` of conv node r, given the cotangent g of r. */
dc_ref dc_conv_grad(dc_func *f, dc_ref r, dc_ref g, int side);

#endif
