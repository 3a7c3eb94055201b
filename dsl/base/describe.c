/*
 * What a Lua value is called in the sentences of errors.
 */
#include "core/base/shown.h"
#include "dsl/base/handle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* By the name of its metatable, if it has one: "an nn.Linear", "a Block"; else by its type. */
static const char *describe_class(lua_State *L, int idx)
{
    const char *name = luaL_typename(L, idx);
    if (luaL_getmetafield(L, idx, "__name") == LUA_TSTRING)
        name = lua_tostring(L, -1);
    const bool vowel = strchr("aeiou", *name) != NULL || strncmp(name, "nn.", 3) == 0;
    return lua_pushfstring(L, "%s %s", vowel ? "an" : "a", name);
}

const char *dc_handle_describe(lua_State *L, int idx)
{
    char text[DC_TYPE_TEXT];
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL && h->kind != DC_HANDLE_CLOSED) {
        dc_type_print(dc_handle_type(h), text, sizeof text);
        return lua_pushstring(L, text);
    }
    if (h != NULL || dc_handle_was(L, idx))
        return lua_pushliteral(L, "a closed tensor");
    switch (lua_type(L, idx)) {
    case LUA_TNONE:
    case LUA_TNIL:
        return lua_pushliteral(L, "nil");
    case LUA_TBOOLEAN:
        return lua_pushstring(L, lua_toboolean(L, idx) ? "true" : "false");
    case LUA_TNUMBER:
        return lua_pushfstring(L, "the number %s",
                               isnan(lua_tonumber(L, idx)) ? "nan" : luaL_tolstring(L, idx, NULL));
    case LUA_TSTRING:
        return lua_pushfstring(L, "the string '%s'", dc_show_name(lua_tostring(L, idx)).s);
    default:
        return describe_class(L, idx);
    }
}
