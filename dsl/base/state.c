/*
 * The context in Lua: a userdata in the registry, made before anything that it owns, so that its
 * finalizer runs last when the state closes.
 */
#include "dsl/base/state.h"

const dc_utype dc_dsl_type = {.name = "deepc.context"};

static const char CONTEXT[] = "the context"; /* its address is a key of the registry */

dc_dsl *dc_dsl_new(lua_State *L, lua_CFunction gc)
{
    dc_udata_register(L, &dc_dsl_type);
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    dc_dsl *d = dc_udata_new(L, &dc_dsl_type, sizeof *d, DC_UDATA_USER);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, d);
    lua_rawsetp(L, LUA_REGISTRYINDEX, CONTEXT);
    dc_udata_open(L, d);
    return d;
}

void dc_dsl_refuse_closed(lua_State *L)
{
    const dc_dsl *d = dc_udata_test(L, lua_upvalueindex(1), &dc_dsl_type);
    if (d != NULL && d->rt != NULL)
        luaL_error(L, "this context was opened by another process; open one of its own after fork");
    luaL_error(L, "deepc is closed: the state that it belongs to is being closed");
    DC_BUG("luaL_error returned");
}

dc_dsl *dc_dsl_in(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, CONTEXT);
    dc_dsl *d = dc_udata_test(L, -1, &dc_dsl_type);
    lua_pop(L, 1);
    return d;
}
