/*
 * Sizes of bounded dims in Lua: what x:size(1), x.shape, #x and dc.dim give where the size is known when the function
 * runs. Such a value stands wherever a size is asked for (x:reshape, dc.zeros, dc.fori), and + - * // and % of it are
 * sizes again. Beside tensors, and with / and ^, it is a scalar tensor. It has no order: what depends on it in Lua
 * would be decided once, when the function is traced.
 */
#ifndef DC_DSL_BASE_SIZE_H
#define DC_DSL_BASE_SIZE_H

#include "core/base/extent.h"
#include "dsl/base/state.h"

extern const dc_utype dc_size_type;

/* Pushes an integer, or a size of this code. */
void dc_size_push(lua_State *L, int64_t dim);
/* The code, if the value at idx is a size; else false. */
bool dc_size_test(lua_State *L, int idx, int64_t *dim);
/* The integer or size at idx as a dim. Raises as dc_args_integer does. */
int64_t dc_size_read(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what);
/* The integer or size at idx, which the library gives, as a dim. */
int64_t dc_size_check_dim(lua_State *L, int idx);
/* Raises where a size of t is known at run time only, and no function is traced that would know it. */
void dc_size_check(lua_State *L, dc_dsl *d, const char *op, const dc_type *t);
/* Raises where the size is known at run time only: EXTENT. */
int64_t dc_size_fixed(lua_State *L, dc_dsl *d, const char *op, const dc_type *t, int axis);

#endif
