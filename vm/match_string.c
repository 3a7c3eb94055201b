/* string.find, match, gmatch and gsub over the matcher that counts (match.h). */
#define _GNU_SOURCE /* memmem */
#include "dsl/dsl.h"
#include "vm/match.h"

#include <lauxlib.h>

#include <stdbool.h>
#include <string.h>

/* The place that an argument names, from 0 on; n + 1 where it is behind the end. */
static size_t start_index(lua_Integer at, size_t n)
{
    if (at > 0)
        return (lua_Unsigned)at > n + 1 ? n + 1 : (size_t)at - 1;
    if (at == 0 || at < -(lua_Integer)n)
        return 0;
    return n - (size_t)(-at);
}

static bool is_plain_pattern(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr("^$*+?.([%-", p[i]) != NULL && p[i] != '\0')
            return false;
    return true;
}

static int push_pair(lua_State *L, const char *s, const char *from, const char *to)
{
    lua_pushinteger(L, from - s + 1);
    lua_pushinteger(L, to - s);
    return 2;
}

static int find_or_match(lua_State *L, bool find)
{
    size_t n, length;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &length);
    const size_t from = start_index(luaL_optinteger(L, 3, 1), n);
    if (from > n) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || is_plain_pattern(p, length))) {
        const char *at = length > 0 ? memmem(s + from, n - from, p, length) : s + from;
        if (at != NULL)
            return push_pair(L, s, at, at + length);
        lua_pushnil(L);
        return 1;
    }
    dc_match m;
    const bool anchored = length > 0 && *p == '^';
    dc_match_begin(&m, L, s, n, p, length);
    p += anchored;
    for (const char *at = s + from; at <= m.end; at++) {
        const char *to = dc_match_at(&m, at, p);
        if (to != NULL && find)
            return push_pair(L, s, at, to) + dc_match_push(&m, NULL, NULL, false);
        if (to != NULL)
            return dc_match_push(&m, at, to, true);
        if (anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

static int l_find(lua_State *L)
{
    return find_or_match(L, true);
}

static int l_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* ---- gmatch ------------------------------------------------------------------------------------ */

/* Upvalues: the subject, the pattern, where to go on, the end of the last match (0: none). Steps are by match. */
static int next_match(lua_State *L)
{
    size_t n, length;
    dc_match m;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &n);
    const char *p = lua_tolstring(L, lua_upvalueindex(2), &length);
    const char *at = s + lua_tointeger(L, lua_upvalueindex(3));
    const lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    dc_match_begin(&m, L, s, n, p, length);
    for (; at <= m.end; at++) {
        const char *to = dc_match_at(&m, at, p);
        if (to == NULL || to - s + 1 == last)
            continue;
        lua_pushinteger(L, to - s);
        lua_replace(L, lua_upvalueindex(3));
        lua_pushinteger(L, to - s + 1);
        lua_replace(L, lua_upvalueindex(4));
        return dc_match_push(&m, at, to, true);
    }
    return 0;
}

static int l_gmatch(lua_State *L)
{
    size_t n;
    luaL_checklstring(L, 1, &n);
    luaL_checkstring(L, 2);
    const size_t from = start_index(luaL_optinteger(L, 3, 1), n);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)from);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_match, 4);
    return 1;
}

/* ---- gsub -------------------------------------------------------------------------------------- */

typedef struct replacing {
    dc_match m;
    luaL_Buffer b;
    int kind; /* of the replacement, argument 3 */
} replacing;

/* The text of a replacement, its %1 filled in. */
static void add_text(replacing *r, const char *from, const char *to)
{
    lua_State *L = r->m.L;
    size_t n;
    const char *text = lua_tolstring(L, 3, &n), *const end = text + n;
    for (const char *sign; (sign = memchr(text, '%', (size_t)(end - text))) != NULL;
         text = sign + 2) {
        luaL_addlstring(&r->b, text, (size_t)(sign - text));
        const char c = sign + 1 < end ? sign[1] : '\0';
        if (c == '%') {
            luaL_addchar(&r->b, '%');
        } else if (c == '0') {
            luaL_addlstring(&r->b, from, (size_t)(to - from));
        } else if (c >= '1' && c <= '9') {
            dc_match_push_one(&r->m, c - '1', from, to);
            luaL_tolstring(L, -1, NULL);
            lua_remove(L, -2);
            luaL_addvalue(&r->b);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
    luaL_addlstring(&r->b, text, (size_t)(end - text));
}

/* What a table or a function gives for the match. */
static void add_value(replacing *r, const char *from, const char *to)
{
    lua_State *L = r->m.L;
    dc_dsl_poll(L); /* it may be a function in C that takes its time, and so may a metamethod */
    if (r->kind == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, dc_match_push(&r->m, from, to, true), 1);
    } else {
        dc_match_push_one(&r->m, 0, from, to);
        lua_gettable(L, 3);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(&r->b, from, (size_t)(to - from));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    } else {
        luaL_addvalue(&r->b);
    }
}

static int l_gsub(lua_State *L)
{
    size_t n, length;
    replacing r = {.kind = lua_type(L, 3)};
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &length);
    const char *last = NULL, *at = s;
    const lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)n + 1);
    const bool anchored = length > 0 && *p == '^';
    lua_Integer count = 0;
    luaL_argexpected(L,
                     r.kind == LUA_TNUMBER || r.kind == LUA_TSTRING || r.kind == LUA_TFUNCTION ||
                         r.kind == LUA_TTABLE,
                     3, "string/function/table");
    dc_match_begin(&r.m, L, s, n, p, length);
    luaL_buffinit(L, &r.b);
    p += anchored;
    while (count < most) {
        const char *to = dc_match_at(&r.m, at, p);
        if (to != NULL && to != last) {
            count++;
            (r.kind == LUA_TFUNCTION || r.kind == LUA_TTABLE ? add_value : add_text)(&r, at, to);
            at = last = to;
        } else if (at < r.m.end) {
            luaL_addchar(&r.b, *at++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    luaL_addlstring(&r.b, at, (size_t)(r.m.end - at));
    luaL_pushresult(&r.b);
    lua_pushinteger(L, count);
    return 2;
}

void dc_match_register(lua_State *L)
{
    static const luaL_Reg fn[] = {
        {"find", l_find}, {"match", l_match}, {"gmatch", l_gmatch}, {"gsub", l_gsub}, {NULL, NULL}};
    luaL_setfuncs(L, fn, 0);
}
