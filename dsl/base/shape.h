/*
 * What x.shape is: a table of sizes that compares and prints as a shape. Tables of the same sizes are equal to it, and
 * an index below 1 is an error.
 */
#ifndef DC_DSL_BASE_SHAPE_H
#define DC_DSL_BASE_SHAPE_H

#include "dsl/base/state.h"

/* Pushes the metatable of shapes, made once. Before any of them. */
void dc_shape_open(lua_State *L, const dc_dsl *d);
/* Pushes the shape of t. meta: where the metatable is. */
void dc_shape_push(lua_State *L, const dc_type *t, int meta);
/* Is the metatable on top that of shapes? Pops it. */
bool dc_shape_pop_is(lua_State *L);

#endif
