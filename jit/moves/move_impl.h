/*
 * What the files of the schedule moves share. jit/moves/move.c runs every move on a copy of the tree and
 * restores the kernel where it is refused, at whatever point; so moves may check while they rewrite.
 * After a move it checks how parallel loops are nested, gives buffers that threads now share another
 * scope, and checks that iterations of parallel loops are still independent.
 */
#ifndef DC_JIT_MOVES_MOVE_IMPL_H
#define DC_JIT_MOVES_MOVE_IMPL_H

#include "core/base/job.h"
#include "jit/moves/move.h"
#include "jit/nest/nest_dependence.h"
#include "jit/nest/nest_disjoint.h"

/* Applies a move; false with the reason. */
#define MOVE(id, name, function, ...) bool dc_move_##function(dc_nest_edit *v, const dc_move *m);
#include "jit/moves/moves.def"

/* Are parallel, vector and grid loops nested as jit/nest/nest.h says? move_bind.c */
bool dc_move_check_nesting(dc_nest_edit *v);
/* Are iterations of parallel and vector loops independent, as their kinds promise? */
bool dc_move_check_independence(dc_nest_edit *v);
/* Locals that several threads access get another scope: a row for each thread, or group memory. move_scope.c */
bool dc_move_settle_scopes(dc_nest_edit *v, const dc_move *m);

/* Axes and buffers, move_name.c -------------------------------------------------------------- */

/* Does some loop run over the axis; a serial one; is there such a buffer? False with the reason. */
bool dc_move_has_axis(dc_nest_edit *v, uint32_t axis);
bool dc_move_has_serial_axis(dc_nest_edit *v, const dc_move *m, uint32_t axis);
bool dc_move_has_buffer(dc_nest_edit *v, uint32_t buf);

/* A new axis "<of>.<suffix>"; false where the name is taken. */
bool dc_move_new_axis(dc_nest_edit *v, uint32_t *axis, uint32_t of, int64_t extent, bool reduce,
                      const char *suffix);
/* One for a loop over a dim of a copy, "BUF.<number>"; false where the name is taken. */
bool dc_move_dim_axis(dc_nest_edit *v, uint32_t *axis, uint32_t buf, int dim, int64_t extent);
/* One for a loop that copies, "BUF.<axis>", then with 2, 3, ... behind it; as long as `of`. */
uint32_t dc_move_copy_axis(dc_nest_edit *v, uint32_t buf, uint32_t of);
/* A new local "<like><suffix>", then with 2, 3, ... behind it. */
uint32_t dc_move_new_buffer(dc_nest_edit *v, uint32_t like, const char *suffix, dc_dtype t,
                            int64_t count);

/* A new local "<of>.<number>" for partial results; of long names the first letters. */
uint32_t dc_move_new_part(dc_nest_edit *v, uint32_t of, dc_dtype t, int64_t count);

/* May the axis, in pieces of n, run beyond its extent? move_loops.c */
bool dc_move_may_grow(dc_nest_edit *v, uint32_t axis, int64_t n);

#endif
