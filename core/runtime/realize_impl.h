/* What core/runtime/realize*.c share. */
#ifndef DC_CORE_RUNTIME_REALIZE_IMPL_H
#define DC_CORE_RUNTIME_REALIZE_IMPL_H

#include "core/runtime/lazy.h"

/* One realization. Arrays are in the job's scratch memory. */
typedef struct dc_realize_task {
    dc_rt *rt;
    dc_job *j;
    dc_lazy_walk walk;
    DC_VEC(dc_lazy *) result;
    DC_VEC(uint64_t) word;
    double work;
    bool compiled;
    dc_tensor **given; /* by leaf, when compiled; NULL of a number */
} dc_realize_task;

/*
 * Runs the program that t->word describes, made where the context has none, and gives the results their
 * values. Leaves and results are held by the caller: the log sink may realize the same nodes meanwhile.
 */
dc_status dc_realize_compute(dc_realize_task *t);

uint64_t dc_realize_hash(const dc_realize_task *t); /* of t->word */

/*
 * Is the interpreter to compute it, and is what it will have taken for this structure then no more than a compilation?
 * Counted in estimates (core/runtime/realize_cost.c).
 */
bool dc_realize_rents(const dc_realize_task *t, uint64_t structure);

#endif
