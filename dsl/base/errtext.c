/*
 * The text of an error value, for hosts: from any value to bytes in memory of the caller.
 *
 * It is asked for when things went wrong, so nothing here can raise: a value is looked at through functions of Lua
 * that neither allocate nor call; the one thing that can fail, a __tostring of the script, runs in a call of its own,
 * and not at all while an interruption is pending, which it would consume.
 */
#include "core/base/number.h"
#include "dsl/base/error.h"
#include "dsl/base/host.h"

#include <stdio.h>
#include <string.h>

typedef struct copying {
    char *out;
    size_t room, length;
    bool done;
} copying;

static void copy_text(copying *c, const char *text, size_t n)
{
    c->length = n;
    c->done = true;
    if (c->room == 0)
        return;
    const size_t fits = n < c->room ? n : c->room - 1;
    memcpy(c->out, text, fits);
    for (size_t i = 0; i < fits; i++)
        if (c->out[i] == '\0')
            c->out[i] = '?'; /* the text ends where it ends */
    c->out[fits] = '\0';
}

static void put_string(lua_State *L, int idx, copying *c)
{
    size_t n;
    const char *text = lua_tolstring(L, idx, &n);
    copy_text(c, text, n);
}

/* Arguments: the value, the copying. A value without a __tostring is left to others. */
static int by_tostring(lua_State *L)
{
    copying *c = lua_touserdata(L, 2);
    if (luaL_getmetafield(L, 1, "__tostring") == LUA_TNIL)
        return 0;
    luaL_tolstring(L, 1, NULL);
    put_string(L, -1, c);
    return 0;
}

/* May code of the script run on this thread? Not where it has died, and not in place of what is to end. */
static bool may_call(lua_State *L)
{
    const dc_dsl *d = dc_dsl_in(L);
    const bool waits = d != NULL && d->rt != NULL && atomic_load(&d->rt->interrupt);
    return !waits && lua_status(L) == LUA_OK;
}

static void try_tostring(lua_State *L, int idx, copying *c)
{
    const int top = lua_gettop(L);
    copying text = *c;
    lua_pushcfunction(L, by_tostring);
    lua_pushvalue(L, idx);
    lua_pushlightuserdata(L, &text);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK)
        *c = text;
    lua_settop(L, top);
}

/* The field `message`, a string. Going over the table allocates nothing, as asking by name might. */
static void try_message(lua_State *L, int idx, copying *c)
{
    const int top = lua_gettop(L);
    for (lua_pushnil(L); !c->done && lua_next(L, idx) != 0; lua_settop(L, top + 1))
        if (lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -2), "message") == 0)
            put_string(L, -1, c);
    lua_settop(L, top);
}

static void put_plain(lua_State *L, int idx, copying *c)
{
    char text[80];
    switch (lua_type(L, idx)) {
    case LUA_TBOOLEAN:
        snprintf(text, sizeof text, "%s", lua_toboolean(L, idx) ? "true" : "false");
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, idx))
            snprintf(text, sizeof text, LUA_INTEGER_FMT, (LUAI_UACINT)lua_tointeger(L, idx));
        else
            dc_number_format(text, sizeof text, "%.14g", lua_tonumber(L, idx));
        break;
    case LUA_TNONE:
        snprintf(text, sizeof text, "no error value");
        break;
    default:
        snprintf(text, sizeof text, "(error object is a %s value)", luaL_typename(L, idx));
        break;
    }
    copy_text(c, text, strlen(text));
}

/* Is there something at idx? Any other index is undefined in Lua. */
static bool is_index(lua_State *L, int idx)
{
    return idx > LUA_REGISTRYINDEX && idx != 0 && (idx < 0 ? -idx : idx) <= lua_gettop(L);
}

size_t dc_dsl_error_copy(lua_State *L, int idx, char *out, size_t room)
{
    copying c = {.out = out, .room = room};
    if (!is_index(L, idx)) {
        copy_text(&c, "no error value", strlen("no error value"));
        return c.length;
    }
    idx = lua_absindex(L, idx);
    const int type = lua_type(L, idx);
    const bool object = (type == LUA_TTABLE || type == LUA_TUSERDATA) && lua_checkstack(L, 8);
    if (type == LUA_TSTRING)
        put_string(L, idx, &c);
    if (object && !dc_error_is(L, idx) && may_call(L))
        try_tostring(L, idx, &c);
    if (object && !c.done && type == LUA_TTABLE)
        try_message(L, idx, &c);
    if (!c.done)
        put_plain(L, idx, &c);
    return c.length;
}
