/*
 * Contractions of few tiles and long sums, for thread groups: a product whose tiles are fewer than multiprocessors becomes
 * a batched one over parts of the sums, and a sum over the parts, which takes in what follows the product. What is left
 * over, where parts do not divide the terms, is a small product of its own. 16-bit floats have partial sums in f32, rounded
 * once. How many parts there are depends on shapes and the kind of device alone.
 */
#ifndef DC_JIT_REWRITE_SPLIT_CONTRACTION_H
#define DC_JIT_REWRITE_SPLIT_CONTRACTION_H

#include "core/ir/graph.h"
#include "core/runtime/device.h"

/* The dot r of a function in two steps in the same function; 0: one step will do. */
dc_ref dc_split_contraction(dc_func *f, dc_ref r, const dc_target *t);

#endif
