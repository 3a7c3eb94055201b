/*
 * The functions of Lua's table library, for scripts of others. Each is a loop in C, which no hook ends, so each goes
 * over a bounded number of elements. That bounds the time only where an element is read and compared in no time: what
 * a metatable, or a comparison by a function in C, may do for each is not known. Such tables are gone through here,
 * with a look for an interruption at each element; others by Lua's own function, the first upvalue.
 *
 * The loops are those of ltablib.c (Lua 5.4, MIT licence, Copyright (C) 1994-2023 Lua.org, PUC-Rio).
 */
#include "vm/sandbox_table.h"

#include "dsl/dsl.h"
#include "vm/sandbox.h"

#include <lauxlib.h>

#include <limits.h>

enum { SHORT = 1 << 10 }; /* bytes of a string that is compared in no time */

/* Calls Lua's function with the arguments. */
static int original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static void check_count(lua_State *L, const char *name, lua_Unsigned n)
{
    if (n > DC_SANDBOX_COUNT)
        luaL_error(L, "%s: %f elements; one call goes over at most %d here", name,
                   (LUAI_UACNUMBER)n, (int)DC_SANDBOX_COUNT);
}

/* The length of the list at 1, which Lua's function is going to find too: nothing of the script is asked. */
static lua_Integer list_length(lua_State *L, const char *name)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL)
        luaL_error(L, "%s: lists have no __len here", name);
    const lua_Unsigned n = lua_rawlen(L, 1);
    check_count(L, name, n);
    return (lua_Integer)n;
}

/* Strings have one, and no elements. */
static bool has_metatable(lua_State *L, int idx)
{
    const bool has = lua_type(L, idx) != LUA_TSTRING && lua_getmetatable(L, idx) != 0;
    if (has)
        lua_pop(L, 1);
    return has;
}

static void get(lua_State *L, int list, lua_Integer i)
{
    dc_dsl_poll(L);
    lua_geti(L, list, i);
}

/* list[to] = from[i] */
static void copy_item(lua_State *L, int from, lua_Integer i, int list, lua_Integer to)
{
    get(L, from, i);
    lua_seti(L, list, to);
}

static int l_insert(lua_State *L)
{
    const lua_Integer e = list_length(L, "table.insert") + 1;
    const int n = lua_gettop(L);
    if (!has_metatable(L, 1) || n < 2 || n > 3)
        return original(L);
    const lua_Integer pos = n == 2 ? e : luaL_checkinteger(L, 2);
    luaL_argcheck(L, (lua_Unsigned)pos - 1u < (lua_Unsigned)e, 2, "position out of bounds");
    for (lua_Integer i = e; i > pos; i--)
        copy_item(L, 1, i - 1, 1, i);
    lua_seti(L, 1, pos);
    return 0;
}

static int l_remove(lua_State *L)
{
    const lua_Integer size = list_length(L, "table.remove");
    if (!has_metatable(L, 1))
        return original(L);
    lua_Integer pos = luaL_optinteger(L, 2, size);
    luaL_argcheck(L, pos == size || (lua_Unsigned)pos - 1u <= (lua_Unsigned)size, 2,
                  "position out of bounds");
    lua_settop(L, 1);
    get(L, 1, pos);
    for (; pos < size; pos++)
        copy_item(L, 1, pos + 1, 1, pos);
    lua_pushnil(L);
    lua_seti(L, 1, pos);
    return 1;
}

static int l_concat(lua_State *L)
{
    luaL_Buffer b;
    size_t n;
    const lua_Integer length = list_length(L, "table.concat");
    lua_Integer i = luaL_optinteger(L, 3, 1);
    const lua_Integer last = luaL_optinteger(L, 4, length);
    const char *between = luaL_optlstring(L, 2, "", &n);
    if (last >= i)
        check_count(L, "table.concat", (lua_Unsigned)last - (lua_Unsigned)i);
    if (!has_metatable(L, 1))
        return original(L);
    luaL_buffinit(L, &b);
    while (i <= last) {
        get(L, 1, i);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "invalid value (at index %I) in table for 'concat'",
                              (LUAI_UACINT)i);
        luaL_addvalue(&b);
        if (i == last)
            break;
        i++;
        luaL_addlstring(&b, between, n);
    }
    luaL_pushresult(&b);
    return 1;
}

static int l_move(lua_State *L)
{
    const lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    const int to = lua_isnoneornil(L, 5) ? 1 : 5;
    if (last >= first)
        check_count(L, "table.move", (lua_Unsigned)last - (lua_Unsigned)first);
    if (!has_metatable(L, 1) && !has_metatable(L, to))
        return original(L);
    const lua_Integer at = luaL_checkinteger(L, 4);
    lua_settop(L, 5);
    if (last >= first) {
        const lua_Integer n = last - first + 1;
        luaL_argcheck(L, at <= LUA_MAXINTEGER - n + 1, 4, "destination wrap around");
        if (at > last || at <= first || (to != 1 && !lua_compare(L, 1, to, LUA_OPEQ)))
            for (lua_Integer i = 0; i < n; i++)
                copy_item(L, 1, first + i, to, at + i);
        else
            for (lua_Integer i = n - 1; i >= 0; i--)
                copy_item(L, 1, first + i, to, at + i);
    }
    lua_pushvalue(L, to);
    return 1;
}

static int l_unpack(lua_State *L)
{
    if (!has_metatable(L, 1))
        return original(L);
    const lua_Integer first = luaL_optinteger(L, 2, 1);
    const lua_Integer last = luaL_opt(L, luaL_checkinteger, 3, luaL_len(L, 1));
    const lua_Unsigned n = (lua_Unsigned)last - (lua_Unsigned)first;
    if (first > last)
        return 0;
    if (n >= INT_MAX || !lua_checkstack(L, (int)n + 1))
        return luaL_error(L, "too many results to unpack");
    for (lua_Unsigned i = 0; i <= n; i++)
        get(L, 1, (lua_Integer)((lua_Unsigned)first + i));
    return (int)n + 1;
}

/* ---- sorting ---------------------------------------------------------------------------------- */

/* Upvalue: the function of the script, or nil. */
static int compare(lua_State *L)
{
    dc_dsl_poll(L);
    lua_settop(L, 2);
    if (lua_isnil(L, lua_upvalueindex(1))) {
        lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

/* Are the n elements of the list at 1 numbers and short strings, which Lua compares by itself? */
static bool is_plain_list(lua_State *L, lua_Integer n)
{
    bool plain = !has_metatable(L, 1);
    for (lua_Integer i = 1; plain && i <= n; i++) {
        const int type = lua_rawgeti(L, 1, i);
        plain = type == LUA_TNUMBER || (type == LUA_TSTRING && lua_rawlen(L, -1) <= SHORT);
        lua_pop(L, 1);
    }
    return plain;
}

static int l_sort(lua_State *L)
{
    const lua_Integer n = list_length(L, "table.sort");
    lua_settop(L, 2);
    const bool given = lua_type(L, 2) == LUA_TFUNCTION;
    if (given ? lua_iscfunction(L, 2) : lua_isnil(L, 2) && !is_plain_list(L, n))
        lua_pushcclosure(L, compare, 1);
    return original(L);
}

void dc_sandbox_table(lua_State *L, int table)
{
    static const luaL_Reg fn[] = {{"insert", l_insert}, {"remove", l_remove}, {"concat", l_concat},
                                  {"move", l_move},     {"unpack", l_unpack}, {"sort", l_sort},
                                  {NULL, NULL}};
    for (const luaL_Reg *f = fn; f->name != NULL; f++) {
        lua_getfield(L, table, f->name);
        lua_pushcclosure(L, f->func, 1);
        lua_setfield(L, table, f->name);
    }
}
