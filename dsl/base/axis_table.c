/*
 * Tables keyed by axes: { batch = ..., [2] = ..., [-1] = ... }, as :slice, :rename and :pad take
 * them. A positional list is one of these. Tables are read raw, so that what they hold cannot
 * change while they are read, and nothing depends on the order of a traversal.
 */
#include "dsl/base/args.h"
#include "dsl/base/error.h"

#include <string.h>

/* Is the key on top what is meant by a number, a negative number or the name of this axis? */
static bool key_means(lua_State *L, const dc_type *t, int axis)
{
    int exact;
    if (lua_type(L, -1) == LUA_TNUMBER) {
        const lua_Integer k = lua_tointegerx(L, -1, &exact);
        return exact && (k == axis + 1 || k == axis - t->rank);
    }
    if (lua_type(L, -1) != LUA_TSTRING || t->name[axis] == NULL)
        return false;
    for (int k = 0; k < t->rank; k++)
        if (k != axis && t->name[k] == t->name[axis])
            return false; /* which of the two? */
    return strcmp(lua_tostring(L, -1), t->name[axis]) == 0;
}

/* Numbers first, then strings, then the rest as they come. */
static bool key_before(lua_State *L, int a, int b)
{
    if (lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER)
        return lua_tonumber(L, a) < lua_tonumber(L, b);
    if (lua_type(L, a) == LUA_TSTRING && lua_type(L, b) == LUA_TSTRING)
        return strcmp(lua_tostring(L, a), lua_tostring(L, b)) < 0;
    return lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) != LUA_TNUMBER;
}

/* The least key that means no axis, pushed; or nil. */
static void push_other_key(lua_State *L, int idx, const dc_type *t)
{
    lua_pushnil(L);
    const int least = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, idx) != 0;) {
        bool means = false;
        lua_pop(L, 1);
        for (int k = 0; k < t->rank; k++)
            means = means || key_means(L, t, k);
        if (!means && (lua_isnil(L, least) || key_before(L, lua_gettop(L), least))) {
            lua_pushvalue(L, -1);
            lua_replace(L, least);
        }
    }
}

void dc_axis_table_check(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op)
{
    push_other_key(L, idx, t);
    if (lua_type(L, -1) == LUA_TNUMBER || lua_type(L, -1) == LUA_TSTRING)
        dc_args_axis_of(L, d, lua_gettop(L), t, op); /* raises */
    if (!lua_isnil(L, -1))
        dc_error_raisef(L, d, DC_ERR_ARG, op, "an axis is a number or a name, not %s",
                        dc_handle_describe(L, lua_gettop(L)));
    lua_pop(L, 1);
}

void dc_axis_table_push(lua_State *L, dc_dsl *d, int idx, const dc_type *t, int axis,
                        const char *op)
{
    lua_pushnil(L);
    const int item = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, idx) != 0;) {
        lua_pushvalue(L, -2);
        const bool means = key_means(L, t, axis);
        lua_pop(L, 1);
        if (means && !lua_isnil(L, item))
            dc_error_fact(L, d, DC_ERR_AXIS_TWICE,
                          &(dc_fact){.op = op, .axis = {axis}, .type = {*t}}, NULL);
        if (means)
            lua_replace(L, item);
        else
            lua_pop(L, 1);
    }
}
