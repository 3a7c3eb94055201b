/*
 * Reachability, breadth first over a queue in a Lua table. Runs no Lua code: raw access only.
 */
#include "dsl/fn/reach.h"

#include "dsl/base/state.h"

#include <lauxlib.h>

#include <stdbool.h>

enum { LIMIT = 20000 };

/* Positions on the stack, from dc_reach_push on. */
typedef struct walk {
    int found, queue;
    lua_Integer n; /* in the queue */
} walk;

/* Adds the value on top if it is new; pops it. */
static void add_object(lua_State *L, walk *w)
{
    const int type = lua_type(L, -1);
    const bool object = type == LUA_TFUNCTION || type == LUA_TTABLE || type == LUA_TUSERDATA;
    if (!object || w->n >= LIMIT) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -1);
    if (lua_rawget(L, w->found) == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, w->found);
        lua_pushvalue(L, -2);
        lua_rawseti(L, w->queue, ++w->n);
    }
    lua_pop(L, 2);
}

static void enter_function(lua_State *L, walk *w, int at)
{
    for (int i = 1; lua_getupvalue(L, at, i) != NULL; i++)
        add_object(L, w);
}

static void enter_table(lua_State *L, walk *w, int at)
{
    for (lua_pushnil(L); lua_next(L, at) != 0;) {
        add_object(L, w);
        lua_pushvalue(L, -1);
        add_object(L, w);
    }
}

/* The context's own are those of all userdata. */
static void enter_userdata(lua_State *L, walk *w, int at)
{
    if (dc_udata_test(L, at, &dc_dsl_type) != NULL)
        return;
    for (int i = 1; lua_getiuservalue(L, at, i) != LUA_TNONE; i++)
        add_object(L, w);
    lua_pop(L, 1);
}

static void enter_value(lua_State *L, walk *w)
{
    const int at = lua_gettop(L);
    if (lua_getmetatable(L, at))
        add_object(L, w);
    switch (lua_type(L, at)) {
    case LUA_TFUNCTION:
        enter_function(L, w, at);
        break;
    case LUA_TTABLE:
        enter_table(L, w, at);
        break;
    default:
        enter_userdata(L, w, at);
        break;
    }
    lua_settop(L, at - 1);
}

void dc_reach_push(lua_State *L)
{
    luaL_checkstack(L, 12, "captured values");
    const int from = lua_gettop(L);
    walk w = {.found = from + 1, .queue = from + 2};
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, from);
    add_object(L, &w);
    for (lua_Integer i = 1; i <= w.n; i++) {
        lua_rawgeti(L, w.queue, i);
        enter_value(L, &w);
    }
    lua_settop(L, w.found);
    lua_replace(L, from);
}
