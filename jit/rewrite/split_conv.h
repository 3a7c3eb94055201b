/*
 * Convolutions of few results and long sums on thread groups, in two steps: the gradient of a kernel adds up over all images
 * and positions, and has fewer tiles than a device has multiprocessors. Channels of the input fall into parts, which are
 * groups of one convolution, and then their results are added up. How many there are depends on shapes alone.
 */
#ifndef DC_JIT_REWRITE_SPLIT_CONV_H
#define DC_JIT_REWRITE_SPLIT_CONV_H

#include "core/ir/graph.h"

/* Convolution r of a function in another one, where its operands are `in`; 0: one step will do. */
dc_ref dc_split_conv(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *in);

#endif
