/*
 * Layout of products: the right-hand side of a dot is read as vectors along its last free axis, so
 * that axis must be the last of its memory. Where it is not, a permute is put in front; fusion gives
 * right-hand sides memory, so this becomes one transposing kernel, worth its pass over the operand
 * as soon as the left-hand side has a few rows (MIN_ROWS). A scatter that adds 16-bit floats is done in
 * f32, a large sum to few numbers in two steps (jit/partial.h). A new function of the same module.
 */
#ifndef DC_JIT_LAYOUT_H
#define DC_JIT_LAYOUT_H

#include "core/graph.h"

dc_func *dc_layout(dc_arena *scratch, const dc_func *f);

#endif
