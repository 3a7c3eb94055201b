/*
 * Layout of images: convolutions read and write channels as vectors, so channels get to be the last
 * axis of memory, and stay there from one convolution to the next.
 *
 * Where a tensor [batch, channels, dims...] is made by a convolution, or of one that is, it is made as
 * [batch, dims..., channels]: element-wise operations, sums over dims, padding, slices and reshapes of
 * the dims work with either. What needs the other order gets a permute, as do parameters and
 * results. Weights become [window..., channels of the input, channels of the result], by one
 * transposing kernel each; their gradients are made like that, too.
 *
 * Where matrix instructions multiply 16-bit floats, images get channels of zeros, so that the channels are whole vectors.
 *
 * Terms of convolutions are added up in another order afterwards (core/ir/conv.h), so strict arithmetic
 * does without. A new function of the same module; the same one where no convolution is.
 */
#ifndef DC_JIT_REWRITE_CONV_LAYOUT_H
#define DC_JIT_REWRITE_CONV_LAYOUT_H

#include "core/ir/graph.h"
#include "core/runtime/device.h"

/* groups: the target, if it runs groups of threads, else NULL. */
const dc_func *dc_conv_layout(dc_arena *scratch, const dc_func *f, const dc_target *groups);

#endif
