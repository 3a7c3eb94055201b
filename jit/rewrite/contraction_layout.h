/*
 * Layout of contractions. An operand that was permuted is read as it was before where that is as good. The
 * right-hand side of a dot is read as vectors along its last free axis. Where
 * that axis is not the last of its memory, the schedule transposes while it packs (contractions of one free
 * axis a side, one contracted); for others a permute is put in front, worth its pass over the operand
 * as soon as the left-hand side has a few rows (RIGHT_ROWS of jit/base/tuning.def). The left-hand side is read
 * element by element along the contracted axis: where that axis is strided, a permute is put in front
 * (dc_layout_is_transposed) unless packing does as well. Fusion materializes both, so such a permute
 * becomes a transposing kernel.
 * Thread groups copy tiles whichever way memory goes, so nothing is turned for them, and few tiles with long sums become
 * two steps (jit/rewrite/split_contraction.h).
 * A dot whose contracted axes are of extent 1 becomes an element-wise product, a reduction of such axes movement.
 * A scatter that adds 16-bit floats is done in f32; one that adds many updates to few places has, for thread groups, sums of
 * parts of the updates, which are added up (`groups`). A large sum to few numbers in two steps
 * (jit/rewrite/split_reduction.h). A new function of the same module.
 */
#ifndef DC_JIT_REWRITE_CONTRACTION_LAYOUT_H
#define DC_JIT_REWRITE_CONTRACTION_LAYOUT_H

#include "core/ir/graph.h"
#include "core/runtime/device.h"

/*
 * Is r a permute that puts an axis last along which products read a large matrix, instead of one that
 * was last? Reading it as it was, rows of cache lines would come and go unused: packed in a product it
 * would be read, and the other operand packed, once for each few hundred rows of the sum.
 */
bool dc_layout_is_transposed(const dc_func *f, dc_ref r);

/*
 * Does a contraction fold r, on its left, into its reads, where it is not such a permute? Casts, and movement
 * but padding. Fusion (jit/fuse/fuse_operands.c) and the prologue ask both.
 */
bool dc_layout_folds(const dc_func *f, dc_ref r);

#endif
