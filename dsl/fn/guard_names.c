/*
 * Which names the functions that ran say. A field that none of them names can only be read by a key that is
 * computed, or by going over keys. The names are the words among the constants of a function and of those
 * inside it, taken from its binary form: there the length of a string stands before it and no letter can
 * stand behind it, so a constant that is a word is a word of the form.
 */
#include "dsl/fn/guard_impl.h"

#include <string.h>

typedef struct writing {
    luaL_Buffer text;
    bool begun;
} writing;

static int write_part(lua_State *L, const void *at, size_t n, void *ud)
{
    writing *w = ud;
    if (!w->begun)
        luaL_buffinit(L, &w->text);
    w->begun = true;
    luaL_addlstring(&w->text, at, n);
    return 0;
}

/* Of names, whatever the locale. */
static bool in_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!in_word(s[i]))
            return false;
    return n > 0 && n < 100;
}

/* The words of the text on top go into the set at idx. */
static void add_words(lua_State *L, int set)
{
    size_t n, at = 0;
    const char *text = lua_tolstring(L, -1, &n);
    while (at < n) {
        const size_t start = at;
        while (at < n && in_word(text[at]))
            at++;
        if (at > start) {
            lua_pushlstring(L, text + start, at - start);
            lua_pushboolean(L, 1);
            lua_rawset(L, set);
        } else {
            at++;
        }
    }
}

static bool function_is_library(lua_State *L, int fn)
{
    lua_Debug ar;
    lua_pushvalue(L, fn);
    lua_getinfo(L, ">S", &ar);
    return strncmp(ar.source, "=deepc/", 7) == 0;
}

void dc_guard_collect_names(lua_State *L, int refs)
{
    luaL_checkstack(L, 12, "captured names");
    lua_newtable(L);
    const int set = lua_gettop(L);
    lua_getfield(L, refs, "seen");
    for (lua_pushnil(L); lua_next(L, set + 1) != 0; lua_settop(L, set + 2)) {
        if (function_is_library(L, set + 2))
            continue;
        writing w = {.begun = false};
        lua_pushvalue(L, set + 2);
        const bool whole = lua_dump(L, write_part, &w, 1) == 0 && w.begun;
        if (w.begun)
            luaL_pushresult(&w.text);
        if (whole)
            add_words(L, set);
    }
    lua_settop(L, set);
    lua_setfield(L, refs, "names");
}

bool dc_guard_is_named(lua_State *L, int refs, int idx)
{
    size_t n;
    if (lua_type(L, idx) != LUA_TSTRING)
        return true;
    const char *text = lua_tolstring(L, idx, &n);
    if (!is_word(text, n) || strncmp(text, "__", 2) == 0)
        return true;
    idx = lua_absindex(L, idx);
    lua_getfield(L, refs, "names");
    lua_pushvalue(L, idx);
    const bool found = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}
