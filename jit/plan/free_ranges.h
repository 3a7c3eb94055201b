/*
 * An allocator over a range of offsets that grows: good fit with segregated free lists. Gaps are listed by size,
 * in classes that are exact for small ones and within a 64th for others, so a piece goes into a gap of nearly the
 * tightest size. Taking and giving back cost the same however many there are.
 */
#ifndef DC_JIT_PLAN_FREE_RANGES_H
#define DC_JIT_PLAN_FREE_RANGES_H

#include "jit/plan/bitset.h"

typedef struct dc_free_range dc_free_range; /* a piece: a gap, or taken */

typedef struct dc_free_ranges {
    dc_arena *a;
    dc_free_range *last;      /* the piece that reaches highest, which is no gap */
    dc_free_range **of_class; /* a list of gaps for each class of sizes */
    dc_bitset some;           /* classes that have any */
    dc_free_range *spare;     /* pieces of nothing, to be used again */
} dc_free_ranges;

dc_free_ranges dc_free_ranges_make(dc_arena *a);
/* `size` bytes, a multiple of DC_PLAN_ALIGN; they begin at dc_free_range_at. */
dc_free_range *dc_free_ranges_take(dc_free_ranges *g, size_t size);
size_t dc_free_range_at(const dc_free_range *piece);
void dc_free_ranges_give(dc_free_ranges *g, dc_free_range *piece);

#endif
