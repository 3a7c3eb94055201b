/*
 * What the rules for groups of threads share (schedule_simt.c and its parts).
 *
 * A thread reads and writes 16 bytes at a time where rows allow it, neighbouring threads what follows; a warp is
 * dc_target.lanes threads. How many threads a kernel has follows from its shape and the target alone.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_SIMT_IMPL_H
#define DC_JIT_SCHEDULE_SCHEDULE_SIMT_IMPL_H

#include "jit/schedule/schedule_impl.h"

/* Threads of a group at most. */
int64_t dc_simt_threads(const dc_sketch *s);
/* Bytes that a group shares at most, where nothing is gained by more. */
int64_t dc_simt_shared(const dc_sketch *s);
/* Groups that occupy the device several times over. */
int64_t dc_simt_many(const dc_sketch *s);
/* The product of extents. */
int64_t dc_simt_product(const dc_sketch *s, const uint32_t *axis, int n);
/* The loops, each directly inside the one before, become one. */
bool dc_simt_fuse(dc_sketch *s, const uint32_t *axis, int n, uint32_t *all);
/*
 * Elements of one access of 16 bytes to the widest type of parameters that loads and stores along an axis of so many
 * iterations use: a divisor of the extent.
 */
int64_t dc_simt_vector(const dc_sketch *s, int64_t extent);
/* Elements of an access as the rule has it, or fewer, if a search asks for that. */
int64_t dc_simt_ask_access(const dc_sketch *s, int64_t rule, int64_t most);
/* The outermost loop, a short one, becomes the threads of a group of its own. */
bool dc_simt_own_group(dc_sketch *s, uint32_t axis);
/* The outermost loop becomes groups of so many threads; what is left over has a group of its own, or is masked where there are locals. */
bool dc_simt_groups(dc_sketch *s, uint32_t axis, int64_t threads);

/* Do all operands in the list go along the axis as what is stored does, or not at all? */
bool dc_simt_goes_along(dc_sketch *s, const dc_stmt *first, uint32_t axis);

/* An output to each thread. */
dc_sketch_rule dc_simt_flat;
/* No reduction, schedule_simt_map.c. */
dc_sketch_rule dc_simt_map;
/* One with transposed operands, whose loops were merged, schedule_simt_turn.c; *is as below. */
bool dc_simt_turn(dc_sketch *s, const dc_shape *p, bool *is);
/* The loops over rows of a product, and those of its sum, become one each for the rules behind it, schedule_simt_conv.c. */
dc_sketch_rule dc_simt_join_loops;
/* Products of tiny matrices, schedule_simt_tiny.c. */
dc_sketch_rule dc_simt_tiny;
/* Rows of reductions and stores, schedule_simt_rows.c. */
dc_sketch_rule dc_simt_rows;
/* Short sums along the last axis, schedule_simt_window.c. */
dc_sketch_rule dc_simt_windows;
/* The loop of a sum that goes along memory goes inside the others for the rules behind it, schedule_simt_across.c. */
dc_sketch_rule dc_simt_turn_sum;
/* Rows whose columns lie across memory, schedule_simt_across.c. */
dc_sketch_rule dc_simt_across;
/* Sums over leading axes, schedule_simt_columns.c. */
dc_sketch_rule dc_simt_columns;
/* Updates of places that integers choose, schedule_simt_scatter.c. */
dc_sketch_rule dc_simt_scatter;

#endif
