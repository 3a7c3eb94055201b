/*
 * Memory traffic of a nest, as schedules choose it (jit/moves/move_traffic.c): stores that pass by the caches, loads that
 * fetch what the next iteration reads, and loops whose last part runs in the next iteration. None of
 * them changes a result. Structural moves do not carry them along, so they come last.
 *
 * Pipelined are grid loops. Copies to the memory of a thread group have stages (jit/nest/nest_stage.h).
 */
#ifndef DC_JIT_NEST_NEST_TRAFFIC_H
#define DC_JIT_NEST_NEST_TRAFFIC_H

#include "jit/nest/nest.h"

/* Has the schedule chosen any of it? */
bool dc_nest_has_traffic(const dc_kernel *k);

/*
 * Software pipelining of a loop with two stages. Its last part `late` stores results; an earlier one, `with`, runs over as
 * many iterations and only fills buffers of the work item. Then iteration i of `late` may run
 * inside `with` of iteration i + 1, and stores overlap with computation:
 *
 *   for i in begin .. end:   parts before `with`;  late of i - 1 and `with` of i, in one loop;  parts after it
 *
 * It is right where what `late` reads is not overwritten in between: not by the parts before `with`, and by `with`
 * only at the element that the same iteration of `late` has read before. Every element is computed as
 * before, so bits are the same.
 */
typedef struct dc_overlap {
    const dc_stmt *with, *late;
} dc_overlap;

/* NULL, or why the loop cannot be pipelined, static. */
const char *dc_nest_overlap(const dc_kernel *k, dc_arena *scratch, const dc_stmt *loop,
                            dc_overlap *out);

/* Is the buffer loaded in vectors that are contiguous in memory, in the loop or further inside? */
bool dc_nest_loads_vectors(const dc_kernel *k, dc_arena *scratch, const dc_stmt *loop,
                           uint32_t buf);

/*
 * NULL, or why loads of the buffer in loops over `within` cannot fetch what the next iteration of `over` loads,
 * static. Where that is at a constant distance any loop will do, elsewhere `over` is the grid.
 */
const char *dc_nest_prefetches(const dc_kernel *k, dc_arena *scratch, uint32_t buf, uint32_t over,
                               uint32_t within);

/* What is wrong with the traffic that a text names; what NULL: nothing is. */
typedef struct dc_traffic_fault {
    const char *what, *which; /* static; a buffer or an axis */
    const dc_stmt *loop;      /* NULL: it is said of a parameter */
} dc_traffic_fault;

dc_traffic_fault dc_nest_traffic_fault(const dc_kernel *k, dc_arena *scratch);

#endif
