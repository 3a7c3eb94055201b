/*
 * The part of a binding that runs in C, with a recovery point (core/base/job.h). It never touches the state.
 */
#ifndef DC_DSL_BASE_RUN_H
#define DC_DSL_BASE_RUN_H

#include "dsl/base/state.h"

typedef dc_status dc_run_body(dc_job *j, void *arg);

/* Runs body; raises its failure. */
void dc_run(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg);
/* Runs body, and again after a whole collection where there is no memory; raises nothing. */
dc_status dc_run_again(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg);

/* DC_PUSH for where no recovery point is: raises where there is no memory. */
#define DC_PUSH_OR_RAISE(L, d, v, x)                                          \
    do {                                                                      \
        if ((v).n == (v).cap)                                                 \
            (v).at = dc_run_grow((L), (d), (v).at, &(v).cap, sizeof *(v).at); \
        (v).at[(v).n++] = (x);                                                \
    } while (0)

void *dc_run_grow(lua_State *L, dc_dsl *d, void *at, uint32_t *cap, size_t size);

#endif
