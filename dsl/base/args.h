/*
 * What scripts give as arguments, read or refused.
 */
#ifndef DC_DSL_BASE_ARGS_H
#define DC_DSL_BASE_ARGS_H

#include "dsl/base/handle.h"

void dc_args_type(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *out);
/* A type, or a tensor that stands for its own. */
void dc_args_like(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *out);
/* The string at idx; one with a zero byte is an error. */
const char *dc_args_text(lua_State *L, dc_dsl *d, int idx, const char *op);
/* Of the list at idx: its length, its string i from 0 on, which the list keeps, and its tensor or cell. */
uint32_t dc_args_list_length(lua_State *L, int idx);
const char *dc_args_list_text(lua_State *L, dc_dsl *d, int idx, uint32_t i, const char *op);
dc_handle *dc_args_list_handle(lua_State *L, dc_dsl *d, int idx, uint32_t i, const char *op);
int dc_args_axis_of(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op);
int dc_args_axis(lua_State *L, dc_dsl *d, int idx, const dc_handle *h,
                 const char *op); /* 0-based */
/* nil: all; an axis; a list of axes; { axis = .., keep = .. } */
uint32_t dc_args_axes(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                      bool *keep);
/* A table keyed by axes (axis_table.c): refuses other keys; pushes what stands for an axis, or nil. */
void dc_axis_table_check(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op);
void dc_axis_table_push(lua_State *L, dc_dsl *d, int idx, const dc_type *t, int axis,
                        const char *op);
/* A shape from argument 2 on, for a tensor of type `from`; one size may be -1 (shape_arg.c). */
void dc_shape_arg_read(lua_State *L, dc_dsl *d, const dc_type *from, const char *op, dc_type *out);
/* A number or a boolean: what stands for a scalar. */
bool dc_args_is_scalar(lua_State *L, int idx);
/* An integer, of any 64 bits. */
int64_t dc_args_integer(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what);
/* One that is a size, a place, a count or an axis: never a code (core/base/extent.h). */
int64_t dc_args_count(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what);
/* A field of the options table at idx (which may be nil), or the default. */
double dc_args_option(lua_State *L, dc_dsl *d, int idx, const char *op, const char *name,
                      double dflt);
/* Options other than these (NULL-terminated) raise. */
void dc_args_options(lua_State *L, dc_dsl *d, int idx, const char *op, const char *const *known);
/* The option `dtype` of the table at idx, of a number; -1 if not given. */
int dc_args_dtype(lua_State *L, dc_dsl *d, int idx, const char *op);
/* The Lua value at idx as one element of this dtype; NUMBER_FIT. */
uint64_t dc_args_element(lua_State *L, dc_dsl *d, int idx, const char *op, dc_dtype t);
bool dc_args_fits(lua_State *L, int idx, dc_dtype t, uint64_t *bits);
/* Raises for one that does not; where is "[2][3]" or "". */
DC_NORETURN void dc_args_refuse_element(lua_State *L, dc_dsl *d, int idx, const char *op,
                                        dc_dtype t, const char *where);
/* A table without a metatable? */
bool dc_args_is_plain(lua_State *L, int idx);

#endif
