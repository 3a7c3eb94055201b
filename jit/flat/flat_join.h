/*
 * Several kernels of thread groups as one (horizontal fusion): a launch of it does the work items of each, one kernel
 * behind the other. The parts do not depend on each other: none writes what another one touches.
 *
 * Neighbours that are alike but for buffers and numbers (jit/flat/flat_alike.h) are one body, which has a table of what
 * differs: the text grows by a row for each of them, and registers are those of one.
 *
 * Its parameters are the outputs of all parts, then their inputs, both in the order of the parts. A group finds its
 * part by its number. A part whose threads never meet (no memory of a group, no barrier, no shuffle) may have been made
 * for smaller groups: several of them are one then.
 */
#ifndef DC_JIT_FLAT_FLAT_JOIN_H
#define DC_JIT_FLAT_FLAT_JOIN_H

#include "jit/flat/flat_alike.h"

/* Do threads of a group wait for each other, or share anything? */
bool dc_flat_threads_meet(const dc_flat *f);

/* Leading parameters that are written. */
uint32_t dc_flat_outputs(const dc_flat *f);

/* May a and b be parts of one kernel? Then a third one may be with both if it may with each. */
bool dc_flat_may_join(const dc_flat *a, const dc_flat *b);

/* Each two of the parts may be joined; the same one may be there several times. */
dc_flat *dc_flat_join(dc_job *j, const dc_flat *const *part, uint32_t n, const char *name);

#endif
