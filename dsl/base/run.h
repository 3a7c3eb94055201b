/*
 * Protected bodies: the part of a binding that runs in C with a recovery point (core/base/job.h), and what is taken
 * back where it fails. A body is given no lua_State, so no Lua error can jump over its recovery point.
 *
 * Who frees, where a body fails:
 *
 *   what lives on      belongs to a handle, or another userdata, from the line that makes it; dc_run_again empties
 *                      the handles that it is told of, before a second try and before the failure is raised
 *   what ends with it  scratch memory, and the job's cleanup list (dc_job_defer): gone when the body returns, either way
 */
#ifndef DC_DSL_BASE_RUN_H
#define DC_DSL_BASE_RUN_H

#include "dsl/base/state.h"

typedef dc_status dc_run_body(dc_job *j, void *arg);

/* What a body that fails may leave behind. */
typedef struct dc_run_made {
    dc_handle *const *out; /* pushed empty before, filled by the body: emptied */
    int nout;
    void (*undo)(void *arg); /* takes back anything else; NULL: there is nothing */
} dc_run_made;

/* Runs body once; raises nothing. */
static inline dc_status dc_run_once(dc_dsl *d, dc_run_body *body, void *arg)
{
    return dc_protect(&d->rt->job, body, arg);
}

/* The same; raises its failure. Nothing is taken back: for bodies that fail before they change anything. */
void dc_run(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg);

/* After `status`: takes back what was made (NULL: nothing) and, where there was no memory, runs body a second time. */
dc_status dc_run_recover(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg,
                         const dc_run_made *made, dc_status status);

/*
 * Runs body, and again after a whole collection where there is no memory; raises nothing. Not for what is recorded in a
 * trace: a second try would record it twice.
 */
static inline dc_status dc_run_again(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg,
                                     const dc_run_made *made)
{
    const dc_status status = dc_run_once(d, body, arg);
    return status == DC_OK ? status : dc_run_recover(L, d, body, arg, made, status);
}

/* DC_PUSH for where no recovery point is: raises where there is no memory. */
#define DC_PUSH_OR_RAISE(L, d, v, x)                                          \
    do {                                                                      \
        if ((v).n == (v).cap)                                                 \
            (v).at = dc_run_grow((L), (d), (v).at, &(v).cap, sizeof *(v).at); \
        (v).at[(v).n++] = (x);                                                \
    } while (0)

void *dc_run_grow(lua_State *L, dc_dsl *d, void *at, uint32_t *cap, size_t size);

#endif
