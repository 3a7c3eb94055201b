/*
 * Loops and branches (core/ir/control.h) to fewer, shorter and simpler ones, inside of bodies, too.
 *
 *   - Loops that run over the same elements and carry the same values become one (a forward loop and the copy of it
 *     that keeps more for the gradient).
 *   - Carries, ys, constants and xs that nothing reads are dropped; equal ones are one; what a loop carries and does not
 *     change is a constant; constants that cost nothing are made in the body.
 *   - What a body computes of constants alone is computed before the loop.
 *   - Contractions of xs and constants are computed before the loop, for all iterations at once; contractions that only
 *     ys need are computed behind it, of the values of all iterations (core/transform/batch.h).
 *   - Loops whose stacks of such contractions no cache would hold go by chunks, with a stack for each.
 *   - Matrices that do not change in a loop are laid out in panels before it.
 *   - Loops of no and of one iteration, and short ones of small bodies, are written out; so is what a branch on a
 *     constant chooses.
 *
 * In:  a function after simplification. Out: another one of the same module, or the same where there is no loop and no
 *      branch. Exact for every value. Constants that were found leave work to dc_simplify. Runs below a recovery
 *      point.
 */
#ifndef DC_JIT_REWRITE_LOOPS_H
#define DC_JIT_REWRITE_LOOPS_H

#include "core/ir/graph.h"

/* What depends on the machine. */
typedef struct dc_loop_sizes {
    /* Which constant matrices become panels: see jit/rewrite/loop_panels.c. */
    int vector_bytes; /* 0: none do */
    int64_t panel_bytes, panel_rows, panel_work;
    int64_t stream_bytes, stream_work; /* for one row */
    /* Which loops go by chunks: see jit/rewrite/loop_split.c. */
    int64_t stack_bytes; /* what contractions of all iterations may have, at most; 0: as much as they want */
    int64_t chunk_bytes, chunk_rows;
} dc_loop_sizes;

const dc_func *dc_loops(dc_job *j, const dc_func *f, const dc_loop_sizes *sizes);

#endif
