/*
 * The traceback of an error, as luaL_traceback writes it. That looks through all modules for the name of each function
 * on the stack, which takes ten times as long as the rest of an error; here names are in a table of the state. It is
 * made at the first error and when there are more modules, or fewer.
 */
#include "dsl/base/error.h"

#include <lauxlib.h>

#include <string.h>

enum {
    FIRST = 10,
    LAST = 11,
    MOST = 1 << 14
}; /* frames that are shown of a deep stack; that are counted */

static const char
    names_key; /* in the registry: function = name, weak; and at 1 how many modules there were */

static lua_Integer count_modules(lua_State *L, int loaded)
{
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, loaded) != 0; lua_pop(L, 1))
        n++;
    return n;
}

/* The function has the name on top of it; the first of several stays. */
static void name_function(lua_State *L, int names)
{
    lua_pushvalue(L, -2);
    if (lua_rawget(L, names) == LUA_TNIL) {
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        lua_rawset(L, names);
    }
    lua_pop(L, 2);
}

/* Functions of the module on top, whose name lies under it. */
static void name_fields(lua_State *L, int names)
{
    const int module = lua_gettop(L);
    const char *of = lua_tostring(L, module - 1);
    for (lua_pushnil(L); lua_next(L, module) != 0; lua_settop(L, module + 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
            continue;
        if (strcmp(of, LUA_GNAME) == 0)
            lua_pushvalue(L, -2);
        else
            lua_pushfstring(L, "%s.%s", of, lua_tostring(L, -2));
        name_function(L, names);
    }
}

/* Pushes the table of names, which may be empty. */
static void push_names(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    const int loaded = lua_gettop(L);
    const bool any = lua_istable(L, loaded);
    const lua_Integer modules = any ? count_modules(L, loaded) : 0;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key) == LUA_TTABLE) {
        lua_rawgeti(L, -1, 1);
        const bool same = lua_tointeger(L, -1) == modules;
        lua_pop(L, 1);
        if (same) {
            lua_remove(L, loaded);
            return;
        }
    }
    lua_pop(L, 1);
    lua_createtable(L, 0, 0);
    const int names = lua_gettop(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, names);
    if (any) {
        for (lua_pushnil(L); lua_next(L, loaded) != 0; lua_settop(L, names + 1))
            if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1))
                name_fields(L, names);
    }
    lua_pushinteger(L, modules);
    lua_rawseti(L, names, 1);
    lua_pushvalue(L, names);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
    lua_remove(L, loaded);
}

/* Pushes what the function of a frame is called. */
static void push_function(lua_State *L, lua_Debug *ar, int names)
{
    lua_getinfo(L, "f", ar);
    if (lua_rawget(L, names) == LUA_TSTRING)
        lua_pushfstring(L, "function '%s'", lua_tostring(L, -1));
    else if (strcmp(ar->namewhat, "global") == 0)
        lua_pushfstring(L, "function '%s'", ar->name);
    else if (*ar->namewhat != '\0')
        lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
    else if (*ar->what == 'm')
        lua_pushliteral(L, "main chunk");
    else if (*ar->what != 'C')
        lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
    else
        lua_pushliteral(L, "?");
    lua_remove(L, -2);
}

/*
 * Lua walks from the top to each level that is asked for: where the stack is deeper than MOST, which takes a second at
 * the end of it, the levels at its bottom are left alone, and it is MOST.
 */
static int count_frames(lua_State *L)
{
    lua_Debug ar;
    int there = 0, above = 1; /* that there is, that there may not be */
    while (lua_getstack(L, above, &ar)) {
        there = above;
        above *= 2;
        if (there >= MOST)
            return MOST;
    }
    while (above - there > 1) {
        const int middle = there + (above - there) / 2;
        if (lua_getstack(L, middle, &ar))
            there = middle;
        else
            above = middle;
    }
    return above;
}

void dc_error_traceback(lua_State *L)
{
    luaL_Buffer text;
    lua_Debug ar;
    const int frames = count_frames(L), skipped = frames - 1 - FIRST - LAST;
    push_names(L);
    const int names = lua_gettop(L);
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "stack traceback:");
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        if (frames == MOST && level == 1 + FIRST) {
            lua_pushfstring(L, "\n\t...\t(skipping more than %d levels)", skipped);
            luaL_addvalue(&text);
            break;
        }
        if (skipped > 1 && level == 1 + FIRST) {
            lua_pushfstring(L, "\n\t...\t(skipping %d levels)", skipped);
            luaL_addvalue(&text);
            level += skipped - 1;
            continue;
        }
        lua_getinfo(L, "Slnt", &ar);
        if (ar.currentline > 0)
            lua_pushfstring(L, "\n\t%s:%d: in ", ar.short_src, ar.currentline);
        else
            lua_pushfstring(L, "\n\t%s: in ", ar.short_src);
        luaL_addvalue(&text);
        push_function(L, &ar, names);
        luaL_addvalue(&text);
        if (ar.istailcall)
            luaL_addstring(&text, "\n\t(...tail calls...)");
    }
    luaL_pushresult(&text);
    lua_remove(L, names);
}
