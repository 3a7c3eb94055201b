/*
 * A hierarchical bitset: a set of numbers below a limit that finds the last member up to a number, and the first
 * from a number on, in a few steps. Each level has a bit for every word of the one below that is not zero.
 */
#ifndef DC_JIT_PLAN_BITSET_H
#define DC_JIT_PLAN_BITSET_H

#include "core/base/arena.h"

#define DC_BITSET_NONE UINT32_MAX /* C11 has no constant of an enum beyond int */
enum { DC_BITSET_LEVELS = 6 };

typedef struct dc_bitset {
    uint64_t *word[DC_BITSET_LEVELS];
    uint32_t nword[DC_BITSET_LEVELS];
    int nlevel;
} dc_bitset;

dc_bitset dc_bitset_make(dc_arena *a, uint32_t n); /* of numbers below n, empty */
bool dc_bitset_has(const dc_bitset *b, uint32_t i);
void dc_bitset_add(dc_bitset *b, uint32_t i);
void dc_bitset_drop(dc_bitset *b, uint32_t i);
uint32_t dc_bitset_last(const dc_bitset *b, uint32_t i);  /* up to i, or DC_BITSET_NONE */
uint32_t dc_bitset_first(const dc_bitset *b, uint32_t i); /* from i on, or DC_BITSET_NONE */

#endif
