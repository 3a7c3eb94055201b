#include "vm/program/ending.h"

#include "dsl/dsl.h"
#include "formats/trace_events.h"
#include "vm/program/luaerror.h"
#include "vm/program/say.h"
#include "vm/program/module_option.h"

#include <lauxlib.h>
#include <lualib.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool dc_ending_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    dc_sayf(stderr, "deepc: stdout: %s\n", errno != 0 ? strerror(errno) : "cannot be written");
    return false;
}

/* Calls the function on top. */
static bool call_or_say(lua_State *L)
{
    const int top = lua_gettop(L) - 1;
    dc_luaerror e;
    lua_pushcfunction(L, dc_luaerror_handler);
    lua_insert(L, top + 1);
    const bool good = lua_pcall(L, 0, 0, top + 1) == LUA_OK;
    if (!good) {
        dc_luaerror_read(L, -1, &e);
        dc_sayf(stderr, "deepc: %.*s\n", (int)e.n, e.text);
    }
    lua_settop(L, top);
    return good;
}

/* What modules keep, if one that keeps something has been loaded. */
static bool end_modules(lua_State *L)
{
    const int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushliteral(L, "deepc.ending");
    const bool kept = lua_rawget(L, -2) == LUA_TFUNCTION;
    const bool good = !kept || call_or_say(L);
    lua_settop(L, top);
    return good;
}

bool dc_ending(lua_State *L, bool failed)
{
    dc_rt *rt = dc_dsl_rt(L);
    bool good = true;
    if (rt == NULL || !lua_checkstack(L, 10))
        return true;
    if (dc_module_option_push_end(L))
        good = call_or_say(L);
    good = end_modules(L) && good;
    dc_dsl_finish(L, failed);
    return dc_trace_end(rt) && good;
}

/* Upvalue: the function that was there. */
static int l_exit(lua_State *L)
{
    const int narg = lua_gettop(L);
    const bool fails =
        lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : narg > 0 && lua_tointeger(L, 1) != 0;
    const bool ended = dc_ending(L, fails);
    if (!(dc_ending_output() && ended) && !fails) {
        lua_settop(L, narg > 0 ? narg : 1);
        lua_pushinteger(L, 1);
        lua_replace(L, 1);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void dc_ending_guard(lua_State *L)
{
    const int top = lua_gettop(L);
    if (lua_getglobal(L, LUA_OSLIBNAME) == LUA_TTABLE && lua_getfield(L, -1, "exit") != LUA_TNIL) {
        lua_pushcclosure(L, l_exit, 1);
        lua_setfield(L, -2, "exit");
    }
    lua_settop(L, top);
}
