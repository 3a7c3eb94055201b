/*
 * Userdata of ours: making them, and their metatables.
 */
#include "dsl/base/udata.h"

#include <string.h>

void *dc_udata_check(lua_State *L, int idx, const dc_utype *type)
{
    void *at = dc_udata_test(L, idx, type);
    if (at == NULL)
        luaL_typeerror(L, idx, type->name);
    return at;
}

void dc_udata_push_meta(lua_State *L, const dc_utype *type)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, type) != LUA_TTABLE)
        luaL_error(L, "the registry has lost the metatable of %s", type->name);
}

/* The word in front is written last: without its finalizer a value is of no type. */
void *dc_udata_new(lua_State *L, const dc_utype *type, size_t size, int nuser)
{
    dc_uhead *head = lua_newuserdatauv(L, size, nuser);
    memset(head, 0, size);
    dc_udata_push_meta(L, type);
    lua_setmetatable(L, -2);
    head->type = type;
    return head;
}

void dc_udata_table(lua_State *L, int idx, int n)
{
    if (lua_getiuservalue(L, idx, n) != LUA_TTABLE)
        luaL_error(L, "a value of deepc has lost what belongs to it");
}

bool dc_udata_has_meta(lua_State *L, int idx, const dc_utype *type)
{
    if (!lua_getmetatable(L, idx))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, type);
    const bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

void dc_udata_hide(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

void dc_udata_register(lua_State *L, const dc_utype *type)
{
    lua_createtable(L, 0, 8);
    lua_pushstring(L, type->name);
    lua_setfield(L, -2, "__name");
    dc_udata_hide(L, type->name);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, type);
}
