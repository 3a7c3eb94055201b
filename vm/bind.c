/*
 * The way into a lua_State: `require "deepc"` from any Lua 5.4 (luaopen_deepc makes a context of
 * its own), and dc_attach for a host that made one. Either way the context closes with the state.
 */
#include "vm/bind.h"

#include "core/entry.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdio.h>

static void closed(void *rt)
{
    dc_close(rt);
}

/* Argument: the context. Returns the module table. */
static int open_dsl(lua_State *L)
{
    dc_rt *rt = lua_touserdata(L, 1);
    lua_settop(L, 0);
    return dc_dsl_open(L, rt, closed, rt);
}

int luaopen_deepc(lua_State *L);

DC_API int luaopen_deepc(lua_State *L)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = dc_dsl_rt(L);
    const bool own = rt == NULL;
    cfg.log = dc_sink_stderr; /* there is no host that could receive it */
    if (own && dc_open(&cfg, &rt) != DC_OK) {
        lua_pushstring(L, dc_errmsg(rt));
        dc_close(rt);
        return lua_error(L);
    }
    lua_pushcfunction(L, open_dsl);
    lua_pushlightuserdata(L, rt);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        if (own)
            dc_close(rt);
        return lua_error(L);
    }
    return 1;
}

int dc_bind_module(lua_State *L, const char *name)
{
    luaL_requiref(L, "deepc", luaopen_deepc, 0);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_getfield(L, -1, name);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    return 1;
}

static int give_module(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/*
 * Argument: the context. Opens the module and leaves it in package.preload, where its place is made first: once the
 * module is open the context is the state's, so nothing may fail from there on.
 */
static int attach(lua_State *L)
{
    dc_rt *rt = lua_touserdata(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushnil(L);
    lua_pushcclosure(L, give_module, 1);
    lua_pushvalue(L, 3);
    lua_setfield(L, 2, "deepc");
    dc_dsl_open(L, rt, closed, rt);
    lua_setupvalue(L, 3, 1);
    return 0;
}

/* What attach has begun and not ended is taken back. */
static int detach(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushnil(L);
    lua_setfield(L, -2, "deepc");
    return 0;
}

DC_API dc_status dc_attach(lua_State *L, dc_rt *rt)
{
    if (L == NULL || rt == NULL || rt->broken)
        return DC_E_STATE;
    rt->job.err = (dc_err){0};
    if (!lua_checkstack(L, 4))
        return dc_fail(&rt->job, DC_ERR_NOMEM, NULL);
    if (dc_dsl_rt(L) != NULL)
        return dc_failf(&rt->job, DC_ERR_REENTER, NULL, "this lua_State has a context already");
    if (rt->stop_lua != NULL)
        return dc_failf(&rt->job, DC_ERR_REENTER, NULL, "another lua_State has this context");
    lua_pushcfunction(L, attach);
    lua_pushlightuserdata(L, rt);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK)
        return DC_OK;
    lua_pop(L, 1);
    lua_pushcfunction(L, detach);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK)
        lua_pop(L, 1);
    return dc_fail(&rt->job, DC_ERR_NOMEM, NULL);
}

/* ---- the host's entry ------------------------------------------------------------------------ */

static int raise_text(lua_State *L)
{
    lua_pushstring(L, lua_touserdata(L, 1));
    return lua_error(L);
}

/* The function and its arguments give way to an error value. */
static int refuse(lua_State *L, int nargs, const char *text)
{
    lua_pop(L, nargs);
    lua_pushlightuserdata(L,
                          (void *)(uintptr_t)text); /* made a string where an error can be caught */
    lua_replace(L, -2);
    lua_pushcfunction(L, raise_text);
    lua_insert(L, -2);
    return lua_pcall(L, 1, 0, 0);
}

DC_API int dc_pcall(lua_State *L, int nargs, int nresults, int msgh, int64_t ms)
{
    dc_entry e;
    dc_dsl_watch w;
    dc_rt *rt = lua_checkstack(L, 4) ? dc_dsl_rt(L) : NULL;
    if (rt == NULL)
        return refuse(L, nargs, "deepc is not attached to this lua_State");
    if (dc_entry_begin(rt, &e, ms) != DC_OK)
        return refuse(L, nargs, dc_errmsg(rt));
    dc_dsl_enter(L, &w);
    int status = lua_pcall(L, nargs, nresults, msgh);
    dc_dsl_leave(L, &w);
    if (status != LUA_OK && atomic_load(&rt->insist)) {
        lua_pushcfunction(L, dc_dsl_ended);
        lua_insert(L, -2);
        lua_pcall(L, 1, 1, 0);
        status = DC_E_STOPPED;
    }
    dc_entry_end(rt, &e);
    return status;
}
