/*
 * Random numbers as graphs: Threefry-2x32 of (key, element, word). The same key gives the same
 * numbers, to the last bit, on every device: no product is added to anything before it has been
 * rounded, and nothing but + - * / and sqrt is done to floats.
 *
 * The state of a generator is u32[4]: a key and how often it has advanced, low word first. Draws
 * outside compiled functions are site 0 of an advance each; a call of a compiled function advances
 * once, and its draws are sites 1, 2 ... In a body of a loop the number of the element is folded into the key, of the
 * outermost loop first.
 */
#ifndef DC_CORE_BUILD_RANDOM_H
#define DC_CORE_BUILD_RANDOM_H

#include "core/build/build.h"

enum { DC_RANDOM_STATE = 4 };

/* What a key is made for, so that equal seeds of different kinds give different numbers. */
enum { DC_RANDOM_GENERATOR = 1, DC_RANDOM_SEED = 2, DC_RANDOM_ORDER = 3 };

/* ---- on the host ---- */

void dc_random_seed(uint64_t seed, uint32_t purpose, uint32_t key[2]);
void dc_random_key(const uint32_t state[DC_RANDOM_STATE], uint32_t site, uint32_t key[2]);
void dc_random_advance(uint32_t state[DC_RANDOM_STATE]);

/* ---- in a graph; keys and numbers are scalars ---- */

/* The keys of a call and the state after it. */
dc_status dc_random_call(dc_job *j, dc_func *f, dc_val state, dc_val call[2], dc_val *next);
dc_status dc_random_site(dc_job *j, dc_func *f, const dc_val call[2], uint32_t site, dc_val key[2]);

/* The key of iteration i of a loop, i32[], from 0: every draw of a body has a key for each iteration. */
dc_status dc_random_fold(dc_job *j, dc_func *f, dc_val i, dc_val key[2]);

/* t is a float type; numbers are of its dtype. NULL, NULL: from 0 to 1; mean 0, deviation 1. */
dc_status dc_random_uniform(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                            const dc_val *low, const dc_val *high, dc_val *out);
dc_status dc_random_normal(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                           const dc_val *mean, const dc_val *std, dc_val *out);
/* Exponential of rate 1, never 0 but where t has no such small number. */
dc_status dc_random_exponential(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                                dc_val *out);
/* t is an integer type, low of its dtype; range is u32[]: low <= v < low + range. */
dc_status dc_random_integer(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                            dc_val low, dc_val range, dc_val *out);

#endif
