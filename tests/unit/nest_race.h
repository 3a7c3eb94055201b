/*
 * Race detection while a nest runs (tests/unit/nest_interp.c): finds iterations of a parallel axis
 * that are not independent, reads of what has not been stored, reads of an input after an output that
 * shares its memory was stored there.
 *
 * Iterations run one after the other, so of each element the last store and one load are enough: a
 * load is kept while later ones may run at the same time, since whatever may meet one of those may
 * meet the one that is kept. Elements of parameters are known by address, because several parameters
 * may share memory.
 */
#ifndef DC_TESTS_NEST_RACE_H
#define DC_TESTS_NEST_RACE_H

#include "jit/nest/nest.h"

typedef struct dc_race_who { /* position: the work item, from 1; 0 none */
    uint32_t position, node;
} dc_race_who;

typedef struct dc_race_cell {
    dc_race_who stored, loaded;
} dc_race_cell;

typedef struct dc_race_node { /* an iteration of a thread loop, inside that of its parent */
    uint32_t parent, depth;
    uint32_t loop; /* number of the execution of the loop */
    uint32_t axis;
    int64_t iteration;
} dc_race_node;

typedef struct dc_race_memory { /* of one buffer; several parameters may have the same cells */
    dc_race_cell *cell;         /* NULL: not watched */
    size_t first;               /* cell of element 0 */
    uint32_t each;              /* cells of an element */
} dc_race_memory;

typedef struct dc_race {
    dc_job *j; /* memory in its scratch arena */
    const dc_kernel *k;
    dc_race_memory *memory;    /* by buffer */
    DC_VEC(dc_race_node) node; /* of this work item; [0] is what stands outside all thread loops */
    uint32_t position, now, loops, grid_axis;
} dc_race;

/* mem as dc_nest_run takes it. */
void dc_race_init(dc_race *r, dc_job *j, const dc_kernel *k, void *const *mem);

/* The next iteration of a grid loop. */
void dc_race_position(dc_race *r, uint32_t axis);
/* An iteration of a thread loop begins; number: of dc_race_loop. Returns what dc_race_leave takes. */
uint32_t dc_race_enter(dc_race *r, uint32_t axis, uint32_t number, int64_t iteration);
void dc_race_leave(dc_race *r, uint32_t outside);
static inline uint32_t dc_race_loop(dc_race *r)
{
    return ++r->loops;
}

/* False, and the reason, where the access breaks a promise. The element must be inside the buffer. */
bool dc_race_touch(dc_race *r, uint32_t buf, int64_t at, bool stores, char *why, size_t size);

#endif
