#include "vm/program/module_option.h"

#include "dsl/dsl.h"

#include <lauxlib.h>

static const char KEY = 0; /* its address: where the registry has what follows */
enum { FINISH = 1, SCRIPT, COMMAND, ERROR };

/* Pushes its table; false, and nothing, where there is no such option. */
static bool push_state(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &KEY) == LUA_TTABLE)
        return true;
    lua_pop(L, 1);
    return false;
}

/* ---- the end ----------------------------------------------------------------------------------- */

static void copy_field(lua_State *L, int state, int from, const char *to)
{
    lua_rawgeti(L, state, from);
    lua_setfield(L, -2, to);
}

/* Once, whatever calls it. */
static int finish(lua_State *L)
{
    if (!push_state(L))
        return 0;
    const int state = lua_gettop(L);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &KEY);
    lua_rawgeti(L, state, FINISH);
    lua_newtable(L);
    copy_field(L, state, SCRIPT, "script");
    copy_field(L, state, COMMAND, "command");
    copy_field(L, state, ERROR, "error");
    lua_call(L, 1, 0);
    return 0;
}

bool dc_module_option_push_end(lua_State *L)
{
    const bool wanted = push_state(L);
    if (wanted) {
        lua_pop(L, 1);
        lua_pushcfunction(L, finish);
    }
    return wanted;
}

void dc_module_option_failed(lua_State *L, const char *text, size_t n)
{
    if (dc_dsl_rt(L) == NULL || !push_state(L))
        return;
    lua_pushlstring(L, text, n);
    lua_rawseti(L, -2, ERROR);
    lua_pop(L, 1);
}

/* ---- the beginning ----------------------------------------------------------------------------- */

/* "train.lua --epochs 3" */
static void push_command(lua_State *L, int arg)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (lua_Integer i = 0; lua_rawgeti(L, arg, i) == LUA_TSTRING; i++) {
        if (i > 0) {
            lua_pushliteral(L, " ");
            lua_insert(L, -2);
            lua_concat(L, 2);
        }
        luaL_addvalue(&b);
    }
    lua_pop(L, 1);
    luaL_pushresult(&b);
}

/* The option's argument, the script or nil, the table arg, the module's name. */
static int begin(lua_State *L)
{
    if (dc_dsl_rt(L)->launched != 0) /* the first rank does it */
        return 0;
    lua_settop(L, 4);
    lua_getglobal(L, "require");
    lua_insert(L, 4);
    lua_call(L, 1, 1);
    lua_getfield(L, 4, "_program");
    lua_newtable(L);
    lua_replace(L, 4);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_rawseti(L, 4, FINISH);
    lua_pushvalue(L, 2);
    lua_rawseti(L, 4, SCRIPT);
    if (lua_type(L, 3) == LUA_TTABLE && lua_type(L, 2) == LUA_TSTRING) {
        push_command(L, 3);
        lua_rawseti(L, 4, COMMAND);
    }
    lua_pushvalue(L, 4);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &KEY);
    return 0;
}

void dc_module_option_push_begin(lua_State *L)
{
    lua_pushcfunction(L, begin);
}
