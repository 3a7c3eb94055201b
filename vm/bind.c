/*
 * The way into a lua_State: `require "deepc"` from any Lua 5.4 (luaopen_deepc makes a context of
 * its own), and dc_attach for a host that made one. Either way the context closes with the state.
 */
#include "vm/bind.h"

#include "core/runtime/entry.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"
#include "vm/sink.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdio.h>
#include <string.h>

static void closed(void *rt)
{
    dc_close(rt);
}

/* Leaves the module table on the stack; nothing is owned yet. */
static int open_module(lua_State *L)
{
    dc_dsl_open(L);
    lua_pushstring(L, DC_VERSION);
    lua_setfield(L, -2, "_VERSION");
    return 1;
}

int luaopen_deepc(lua_State *L);

/* The text leaves the context before what may raise. */
static int raise_and_close(lua_State *L, dc_rt *rt)
{
    char text[2000];
    snprintf(text, sizeof text, "%s", dc_errmsg(rt));
    dc_close(rt);
    lua_pushstring(L, text);
    return lua_error(L);
}

DC_API int luaopen_deepc(lua_State *L)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = dc_dsl_rt(L);
    const bool own = rt == NULL;
    cfg.log = dc_sink_stderr; /* there is no host that could receive it */
    if (own && dc_open(&cfg, &rt) != DC_OK)
        return raise_and_close(L, rt);
    lua_pushcfunction(L, open_module);
    if (lua_pcall(L, 0, 1, 0) != LUA_OK) {
        if (own)
            dc_close(rt);
        return lua_error(L);
    }
    if (own)
        dc_dsl_own(L, rt, closed, rt);
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

/* Argument: the context. Opens the module and leaves it in package.preload; then the state owns the context. */
static int attach(lua_State *L)
{
    dc_rt *rt = lua_touserdata(L, 1);
    lua_settop(L, 0);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    open_module(L);
    lua_pushcclosure(L, give_module, 1);
    lua_setfield(L, -2, "deepc");
    dc_dsl_own(L, rt, closed, rt);
    return 0;
}

/* Nothing outside of the lua_pcall allocates in Lua or raises. */
static dc_status attach_here(lua_State *L, dc_rt *rt)
{
    dc_err_clear(&rt->job.err);
    if (dc_rt_forked(rt))
        return dc_job_refuse_child(&rt->job);
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
    return dc_fail(&rt->job, DC_ERR_NOMEM, NULL);
}

DC_API dc_status dc_attach(lua_State *L, dc_rt *rt)
{
    bool first;
    if (L == NULL || rt == NULL || rt->broken || !dc_job_enter(&rt->job, &first))
        return DC_E_STATE;
    const dc_status status = attach_here(L, rt);
    dc_job_leave(&rt->job, first);
    return status;
}

DC_API size_t dc_error_text(lua_State *L, int idx, char *buf, size_t n)
{
    static const char none[] = "no lua_State";
    if (buf == NULL)
        n = 0;
    const dc_rt *rt = L != NULL && lua_checkstack(L, 1) ? dc_dsl_rt(L) : NULL;
    const char *text = L == NULL ? none : DC_JOB_ELSEWHERE;
    if (L != NULL && (rt == NULL || !dc_job_elsewhere(&rt->job)))
        return dc_dsl_error_copy(L, idx, buf, n);
    if (n > 0)
        snprintf(buf, n, "%s", text);
    return strlen(text);
}

/* ---- the host's entry ------------------------------------------------------------------------ */

static int raise_text(lua_State *L)
{
    lua_pushstring(L, lua_touserdata(L, 1));
    return lua_error(L);
}

/* The function and its arguments give way to an error value. */
static int refuse_call(lua_State *L, int nargs, const char *text)
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
    if (L == NULL)
        return DC_E_STATE;
    dc_rt *rt = lua_checkstack(L, 4) ? dc_dsl_rt(L) : NULL;
    if (rt == NULL)
        return refuse_call(L, nargs, "deepc is not attached to this lua_State");
    if (dc_job_elsewhere(&rt->job)) /* the state is another thread's, too */
        return DC_E_STATE;
    if (dc_entry_begin(rt, &e, ms) != DC_OK)
        return refuse_call(L, nargs, dc_errmsg(rt));
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
