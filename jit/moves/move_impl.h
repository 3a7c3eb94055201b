/*
 * What the files of the schedule moves share. jit/moves/move.c runs every move on a copy of the tree and
 * puts the kernel back where it is refused, at whatever point; so moves may check while they
 * rewrite. After a move it checks how parallel loops may stand (dc_move_stands), gives buffers that
 * threads now share another scope (dc_move_settle), and checks that iterations of parallel loops are
 * still independent (dc_move_keeps).
 */
#ifndef DC_JIT_MOVES_MOVE_IMPL_H
#define DC_JIT_MOVES_MOVE_IMPL_H

#include "core/base/job.h"
#include "jit/moves/move.h"

typedef struct dc_moving {
    dc_kernel *k;
    const dc_move *m;
    dc_arena *tmp; /* gone after the move */
    const char *why;
} dc_moving;

/* False. The first reason stays. */
bool dc_move_refuse(dc_moving *v, const char *fmt, ...) DC_PRINTF(2, 3);

/* Moves, by file ----------------------------------------------------------------------------- */

bool dc_move_split(dc_moving *v); /* move_loops.c */
bool dc_move_part(dc_moving *v);
bool dc_move_reorder(dc_moving *v);
bool dc_move_fuse(dc_moving *v);
bool dc_move_pad(dc_moving *v);
bool dc_move_vectorize(dc_moving *v);
bool dc_move_unroll(dc_moving *v);
bool dc_move_cut(dc_moving *v);  /* move_cut.c */
bool dc_move_grid(dc_moving *v); /* move_bind.c */
bool dc_move_block(dc_moving *v);
bool dc_move_scope(dc_moving *v);      /* move_scope.c */
bool dc_move_cache_read(dc_moving *v); /* move_cache.c */
bool dc_move_cache_write(dc_moving *v);
bool dc_move_compute_at(dc_moving *v);   /* move_fill.c */
bool dc_move_split_reduce(dc_moving *v); /* move_reduce.c */
bool dc_move_subtotal(dc_moving *v);
bool dc_move_tensorize(dc_moving *v);
bool dc_move_window_read(dc_moving *v); /* move_window.c */

/* Do parallel, vector and grid loops stand as jit/nest/nest.h says? move_bind.c */
bool dc_move_stands(dc_moving *v);
/* Are iterations of parallel and vector loops independent, as they were promised to be? */
bool dc_move_keeps(dc_moving *v);
/* Gives locals that several threads reach to them: a row each, or all to the group. move_scope.c */
bool dc_move_settle(dc_moving *v);

/* Names -------------------------------------------------------------------------------------- */

/* Argument i as an axis that some loop runs over, as a buffer; false with the reason. */
bool dc_move_axis(dc_moving *v, int i, uint32_t *axis);
bool dc_move_serial_axis(dc_moving *v, int i, uint32_t *axis);
bool dc_move_buffer(dc_moving *v, int i, uint32_t *buf);

/* New ones; false where the name would be cut or is taken. */
bool dc_move_new_axis(dc_moving *v, uint32_t *axis, int64_t extent, bool reduce, const char *fmt,
                      ...) DC_PRINTF(5, 6);
/* "NAME<suffix>", then with 2, 3, ... behind it. */
bool dc_move_new_buffer(dc_moving *v, uint32_t *buf, uint32_t like, const char *suffix,
                        int64_t count);
/* "BUF.<axis>", then with 2, 3, ... behind it. */
bool dc_move_copy_axis(dc_moving *v, uint32_t *axis, uint32_t buf, uint32_t of);

/* Walking ------------------------------------------------------------------------------------ */

typedef struct dc_path { /* loops round a place, innermost first */
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
    int64_t lo, hi; /* TILE: it spans at + lo .. at + hi; else 0 */
    dc_stmt *stmt;
    const dc_path *path;
} dc_access;

typedef DC_VEC(dc_access) dc_accesses;

/* All accesses in a list of statements, in order; those inside maps and tests too. */
dc_accesses dc_move_accesses(dc_moving *v, dc_stmt *first, const dc_path *up);
/* Those of one statement that is no loop. */
dc_accesses dc_move_accesses_of(dc_moving *v, dc_stmt *stmt, const dc_path *up);

bool dc_path_has(const dc_path *path, const dc_stmt *loop);
/* Is a buffer loaded from (stored to) in what was gathered? */
bool dc_move_loads(const dc_accesses *a, uint32_t buf);
bool dc_move_stores(const dc_accesses *a, uint32_t buf);

/* Calls see(v, slot, arg) for each loop over the axis; slot is the link that holds the loop. */
typedef bool (*dc_loop_fn)(dc_moving *v, dc_stmt **slot, void *arg);
bool dc_move_each_loop(dc_moving *v, dc_stmt **first, uint32_t axis, dc_loop_fn see, void *arg);
bool dc_move_has_loop(const dc_stmt *first, uint32_t axis);

/* Sets in `set`, by axis, those that loops in the list run over. */
void dc_move_axes_of(const dc_stmt *first, bool *set);
bool *dc_move_axis_set(dc_moving *v);
/* Does the expression depend on an axis of the set; on an integer that is loaded? */
bool dc_move_ix_uses(const dc_kernel *k, dc_ix a, const bool *set);
bool dc_move_vx_uses(const dc_kernel *k, dc_vx a, const bool *set);
bool dc_move_ix_loads(const dc_kernel *k, dc_ix a);

typedef struct dc_vx_map { /* new value by old one, 0 for those that stay */
    dc_vx *to;
    uint32_t n;
} dc_vx_map;

dc_vx_map dc_move_vx_map(dc_moving *v);
/* In one statement that is no loop. */
void dc_move_replace(dc_moving *v, dc_stmt *stmt, dc_vx_map map);

/* One copy of the buffer for each iteration of the loop, in which all its uses are. */
bool dc_move_widen(dc_moving *v, dc_stmt *loop, uint32_t buf);
/* Access i of those to the buffer goes to to[i]. Not for matrix instructions. */
void dc_move_place(dc_moving *v, const dc_accesses *all, uint32_t buf, const dc_ix *to);

/* May maps grow by the factor a / b without leaving 64 bits? */
bool dc_move_fits(dc_moving *v, int64_t a, int64_t b);
/* May the axis, in pieces of the count of the move, run beyond its extent? move_loops.c */
bool dc_move_may_grow(dc_moving *v, uint32_t axis);

/* Positions, move_apart.c -------------------------------------------------------------------- */

/*
 * Range of a map where tests hold. Sums that are tested as a whole count with the range of the
 * test.
 */
void dc_move_range(dc_moving *v, dc_ix a, dc_pred p, dc_pred q, int64_t *lo, int64_t *hi);

/*
 * Do two accesses in different iterations of the axis never meet, whatever the axes that move do
 * in each of them?
 */
bool dc_move_apart(dc_moving *v, const dc_access *a, const dc_access *b, uint32_t axis,
                   const bool *moves);
/* Are positions with different iterations of the axis different, whatever the axes `with` do? */
bool dc_move_distinct(dc_moving *v, dc_ix at, dc_pred p, uint32_t axis, const bool *with);

/* Dependences, move_deps.c ------------------------------------------------------------------- */

/*
 * Does no iteration of `loop` touch what another one writes, in whatever iterations of the other
 * loops inside `whole` (the loop itself, or one round it)? What only one iteration sees does not
 * count. False with the reason.
 */
bool dc_move_independent(dc_moving *v, dc_stmt *whole, dc_stmt *loop);

/* The same for one buffer, its privacy aside. */
bool dc_move_buffer_apart(dc_moving *v, const dc_accesses *all, dc_stmt *whole, uint32_t axis,
                          uint32_t buf);

/* Are all loads of the buffer in the list of elements that the list has stored before? */
bool dc_move_written_first(dc_moving *v, dc_stmt *first, uint32_t buf);
/* Does p hold wherever a and b do? */
bool dc_move_implied(dc_pred p, dc_pred a, dc_pred b);

#endif
