/*
 * Functions that scripts call, and how they get into tables.
 */
#ifndef DC_DSL_BASE_BINDING_H
#define DC_DSL_BASE_BINDING_H

#include "dsl/base/state.h"

#include <limits.h>

/*
 * A function that scripts call. More arguments than `most` are an error (dsl/base/binding.c); of a method, x of
 * x:name() is one. Rows live as long as the program; a binding finds its own in dc_binding_of.
 */
typedef struct dc_binding {
    const char *name;
    lua_CFunction fn;
    int most;
} dc_binding;

enum { DC_ANY = INT_MAX }; /* the function reads all there are */

static inline const dc_binding *dc_binding_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(2));
}

/* Adds functions to a table; dc_lib_publish adds one to two. */
void dc_lib_add(lua_State *L, dc_dsl *d, int table, const dc_binding *rows, size_t n);
void dc_lib_publish(lua_State *L, dc_dsl *d, const dc_binding *b, int methods, int module);
void dc_lib_push(lua_State *L, dc_dsl *d, const dc_binding *b);
/* Adds what Lua or stdlib/ alone calls, whose arguments nobody counts, to the table on top. */
void dc_lib_inner(lua_State *L, dc_dsl *d, const luaL_Reg *fn);
/*
 * Raises where more than `most` arguments are on the stack, but for nil at the end. The script did not write
 * the first `own` of them, nor x of x:name().
 */
void dc_lib_surplus(lua_State *L, dc_dsl *d, const char *op, int most, int own);
/* t[name] = n for the table on top. */
void dc_lib_set(lua_State *L, const char *name, uint64_t n);

#endif
