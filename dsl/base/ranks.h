/*
 * The ranks as scripts see them: the world, opened when it is first asked for, the mesh, and types that split axes.
 */
#ifndef DC_DSL_BASE_RANKS_H
#define DC_DSL_BASE_RANKS_H

#include "core/transform/partition.h"
#include "dsl/base/state.h"

/* NULL: there is one rank. Raises where the others cannot be reached. */
dc_world *dc_ranks_world(lua_State *L, dc_dsl *d);
/* The state is closed: no failure of another rank ends its script any more. */
void dc_ranks_leave(dc_dsl *d);
/* os.exit with the status at 1: the world ends in order, or the other ranks hear where that was. */
void dc_ranks_exit(lua_State *L, dc_dsl *d);
/* Raises for op where there is none. */
const dc_mesh *dc_ranks_mesh(lua_State *L, dc_dsl *d, const char *op);
/* Axes of the mesh that a text names, "data+model", or all of them where it is nil; raises. */
uint32_t dc_ranks_mask(lua_State *L, dc_dsl *d, int idx, const char *op);
/* The axis of the mesh called so; raises. */
int dc_ranks_axis(lua_State *L, dc_dsl *d, const char *op, const char *name);

/* Has the string at idx an "@"? */
bool dc_ranks_splits(lua_State *L, int idx);
/* The type that it says, "f32[784, 256 @ model]", and how that lies; raises. */
void dc_ranks_type(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *whole,
                   dc_sharding *s);
/* The part of a rank; raises where an axis does not divide. */
void dc_ranks_check(lua_State *L, dc_dsl *d, const char *op, const dc_type *whole,
                    const dc_sharding *s, dc_type *part);
/* The part of this rank, and where it begins; raises where an axis does not divide. */
void dc_ranks_part(lua_State *L, dc_dsl *d, const char *op, const dc_type *whole,
                   const dc_sharding *s, dc_type *part, int64_t *start);

#endif
