/*
 * Lua in tests of hosts.
 */
#ifndef DC_TESTS_LUA_RUN_H
#define DC_TESTS_LUA_RUN_H

#include <lauxlib.h>

#include <stdbool.h>
#include <stdio.h>

/* False, and the message is printed, where it raises. */
static inline bool lua_run(lua_State *L, const char *code)
{
    const bool good = luaL_dostring(L, code) == LUA_OK;
    if (!good)
        printf("%s\n", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    return good;
}

#endif
