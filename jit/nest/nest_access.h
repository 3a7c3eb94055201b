/*
 * Accesses of a nest: which statements load and store what, at which positions, under which tests and
 * inside which loops; and rewriting of positions. Analyses and rewrites share a dc_nest_edit, which its user
 * sets up: results are in `tmp`, or in the kernel where they become part of it.
 */
#ifndef DC_JIT_NEST_NEST_ACCESS_H
#define DC_JIT_NEST_NEST_ACCESS_H

#include "jit/nest/nest.h"

typedef struct dc_nest_edit {
    dc_kernel *k;
    dc_arena *tmp;   /* rewound by its user */
    const char *why; /* of the first refusal, in the kernel's arena; NULL: none */
} dc_nest_edit;

/* Records the reason unless there is one; false. */
bool dc_nest_refuse(dc_nest_edit *v, const char *fmt, ...) DC_PRINTF(2, 3);

/* Accesses ----------------------------------------------------------------------------------- */

typedef struct dc_path { /* the loops around a statement, innermost first */
    const struct dc_path *up;
    dc_stmt *loop;
} dc_path;

typedef struct dc_access {
    uint32_t buf;
    dc_ix at;
    dc_pred pred; /* of a load */
    dc_vx load;   /* 0: a store, or of a TILE */
    uint32_t put; /* of a store of a SET: which */
    bool store, tile;
    bool test;      /* a load that decides whether the statement is executed */
    int64_t lo, hi; /* TILE: it spans at + lo .. at + hi; else 0 */
    dc_stmt *stmt;
    const dc_path *path;
} dc_access;

typedef DC_VEC(dc_access) dc_accesses;

/* The tests that hold where the access is made: a load in a test of its statement stands under none. */
static inline dc_pred dc_access_tests(const dc_access *x)
{
    return x->test ? (dc_pred){0} : x->stmt->pred;
}

/* All accesses in a list of statements, in order; those inside maps and tests too. */
dc_accesses dc_nest_accesses(dc_nest_edit *v, dc_stmt *first, const dc_path *up);
/* Those of one statement that is no loop. */
dc_accesses dc_nest_accesses_of(dc_nest_edit *v, dc_stmt *stmt, const dc_path *up);

bool dc_path_has(const dc_path *path, const dc_stmt *loop);
/* Is there a load of the buffer (a store to it) among the accesses? */
bool dc_access_loads(const dc_accesses *a, uint32_t buf);
bool dc_access_stores(const dc_accesses *a, uint32_t buf);

/* Loops and axes ----------------------------------------------------------------------------- */

/* Calls see(v, slot, arg) for each loop over the axis; slot is the link that holds the loop. */
typedef bool (*dc_loop_fn)(dc_nest_edit *v, dc_stmt **slot, void *arg);
bool dc_nest_each_loop(dc_nest_edit *v, dc_stmt **first, uint32_t axis, dc_loop_fn see, void *arg);
bool dc_nest_has_loop(const dc_stmt *first, uint32_t axis);

/* Sets in `set`, by axis, those that loops in the list run over. */
void dc_nest_axes_of(const dc_stmt *first, bool *set);
/* An empty set of axes, in tmp. */
bool *dc_nest_axis_set(dc_nest_edit *v);
/* Does the expression depend on an axis of the set; on an integer that is loaded? */
bool dc_ix_uses_any(const dc_kernel *k, dc_ix a, const bool *set);
bool dc_vx_uses_any(const dc_kernel *k, dc_vx a, const bool *set);
bool dc_ix_loads(const dc_kernel *k, dc_ix a);
/* Does a position, a test or a number of an index depend on an integer that is loaded along the axis? */
bool dc_nest_picks_along(dc_nest_edit *v, uint32_t axis);

/* Rewriting ---------------------------------------------------------------------------------- */

typedef struct dc_vx_map { /* new value by old one, 0 for those that stay */
    dc_vx *to;
    uint32_t n;
} dc_vx_map;

dc_vx_map dc_nest_vx_map(dc_nest_edit *v);
/* In one statement that is no loop. */
void dc_nest_replace(dc_nest_edit *v, dc_stmt *stmt, dc_vx_map map);

/* One copy of the buffer for each iteration of the loop, which contains all its uses. */
bool dc_nest_widen(dc_nest_edit *v, dc_stmt *loop, uint32_t buf);
/* Access i of those to the buffer goes to to[i]. Not for matrix instructions. */
void dc_nest_place(dc_nest_edit *v, const dc_accesses *all, uint32_t buf, const dc_ix *to);

/* May maps grow by the factor a / b without leaving 64 bits? */
bool dc_nest_fits(dc_nest_edit *v, int64_t a, int64_t b);

#endif
