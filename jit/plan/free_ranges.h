/*
 * Room in a piece of memory that grows: taken and given back piece by piece. A piece goes into a gap that is next to
 * the tightest one: gaps are kept by size, in classes that are exact for small ones and within a 64th for others.
 * Taking and giving back cost the same however many there are.
 */
#ifndef DC_JIT_PLAN_FREE_RANGES_H
#define DC_JIT_PLAN_FREE_RANGES_H

#include "jit/plan/bitset.h"

typedef struct dc_gap dc_gap; /* a piece: a gap, or taken */

typedef struct dc_gaps {
    dc_arena *a;
    dc_gap *last;      /* the piece that reaches highest, which is no gap */
    dc_gap **of_class; /* a list of gaps for each class of sizes */
    dc_bitset some;    /* classes that have any */
    dc_gap *spare;     /* pieces of nothing, to be used again */
} dc_gaps;

dc_gaps dc_gaps_make(dc_arena *a);
/* `size` bytes, a multiple of DC_PLAN_ALIGN; they begin at dc_gap_at. */
dc_gap *dc_gaps_take(dc_gaps *g, size_t size);
size_t dc_gap_at(const dc_gap *piece);
void dc_gaps_give(dc_gaps *g, dc_gap *piece);

#endif
