/*
 * Values as the prompt shows them: as `print` would, but tables with what is in them, two levels
 * deep, keys in order, long ones cut.
 */
#include "core/base/shown.h"
#include "dsl/base/handle.h"
#include "vm/program/prompt.h"
#include "vm/program/say.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, DEEP = 2, FIELDS = 24, INNER_FIELDS = 8, TEXT = 60 };

/* ---- keys ------------------------------------------------------------------------------------ */

static bool is_name(const char *s, size_t n)
{
    static const char *const reserved[] = {"and",   "break", "do",       "else", "elseif", "end",
                                           "false", "for",   "function", "goto", "if",     "in",
                                           "local", "nil",   "not",      "or",   "repeat", "return",
                                           "then",  "true",  "until",    "while"};
    if (n == 0 ||
        strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != n ||
        strchr("0123456789", *s) != NULL)
        return false;
    for (size_t i = 0; i < DC_COUNTOF(reserved); i++)
        if (strcmp(s, reserved[i]) == 0)
            return false;
    return true;
}

/* Order of keys: numbers, then texts, then the rest by kind. Upvalue-free, for table.sort. */
static int l_before(lua_State *L)
{
    const int a = lua_type(L, 1), b = lua_type(L, 2);
    bool less;
    if (a == b && (a == LUA_TNUMBER || a == LUA_TSTRING))
        less = lua_compare(L, 1, 2, LUA_OPLT);
    else if (a != b && (a == LUA_TNUMBER || b == LUA_TNUMBER))
        less = a == LUA_TNUMBER;
    else if (a != b && (a == LUA_TSTRING || b == LUA_TSTRING))
        less = a == LUA_TSTRING;
    else if (a == b)
        less = lua_topointer(L, 1) < lua_topointer(L, 2);
    else
        less = a < b;
    lua_pushboolean(L, less);
    return 1;
}

/* Pushes the sorted list of keys that are not in 1..n; returns n. */
static lua_Integer push_keys(lua_State *L, int table)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(L, table);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        int is_integer;
        const lua_Integer k = lua_isinteger(L, -2) ? lua_tointegerx(L, -2, &is_integer) : 0;
        if (k >= 1 && k <= n)
            continue;
        lua_pushvalue(L, -2);
        lua_rawseti(L, -4, (lua_Integer)lua_rawlen(L, -4) + 1);
    }
    const int keys = lua_gettop(L);
    lua_getglobal(L, "table");
    if (lua_type(L, -1) == LUA_TTABLE && lua_getfield(L, -1, "sort") == LUA_TFUNCTION) {
        lua_pushvalue(L, keys);
        lua_pushcfunction(L, l_before);
        lua_call(L, 2, 0);
    }
    lua_settop(L, keys);
    return n;
}

/* ---- one value ------------------------------------------------------------------------------- */

/* The first characters, as core/base/shown.h has them, which Lua reads, too. */
static void push_quoted(lua_State *L, const char *s, size_t n)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '"');
    size_t i = 0, m;
    while (i < n && i < TEXT) {
        char piece[DC_SHOWN_PIECE];
        if (s[i] == '"' || s[i] == '\\')
            luaL_addchar(&b, '\\');
        i += dc_shown_next(s + i, n - i, false, piece, &m);
        luaL_addlstring(&b, piece, m);
    }
    luaL_addstring(&b, i < n ? "...\"" : "\"");
    luaL_pushresult(&b);
}

static bool has_tostring(lua_State *L, int idx)
{
    const bool has = luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL;
    if (has)
        lua_pop(L, 1);
    return has;
}

static void push_table(lua_State *L, int idx, int level);

/* Pushes the text of a value inside a table. */
static void push_inner(lua_State *L, int idx, int level)
{
    char type[DC_TYPE_TEXT];
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL && h->kind != DC_HANDLE_CLOSED) {
        dc_type_print(dc_handle_type(h), type, sizeof type);
        lua_pushstring(L, type);
    } else if (lua_type(L, idx) == LUA_TSTRING) {
        size_t n;
        const char *s = lua_tolstring(L, idx, &n);
        push_quoted(L, s, n);
    } else if (lua_type(L, idx) == LUA_TTABLE && !has_tostring(L, idx)) {
        if (level < DEEP)
            push_table(L, idx, level + 1);
        else
            lua_pushliteral(L, "{ ... }");
    } else {
        luaL_tolstring(L, idx, NULL);
    }
}

static void push_key(lua_State *L, int idx)
{
    if (lua_type(L, idx) == LUA_TSTRING) {
        size_t n;
        const char *s = lua_tolstring(L, idx, &n);
        if (is_name(s, n)) {
            lua_pushfstring(L, "%s = ", s);
            return;
        }
    }
    push_inner(L, idx, DEEP);
    lua_pushfstring(L, "[%s] = ", lua_tostring(L, -1));
    lua_remove(L, -2);
}

/* Appends the text on top to the list of texts below it. */
static void append_text(lua_State *L, int list)
{
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* Pushes the texts of the fields, no more than `most`; then a text about the rest. */
static void push_fields(lua_State *L, int table, int level)
{
    const lua_Integer most = level == 1 ? FIELDS : INNER_FIELDS;
    lua_newtable(L);
    const int list = lua_gettop(L);
    const lua_Integer n = push_keys(L, table);
    const int keys = lua_gettop(L);
    const lua_Integer nkey = (lua_Integer)lua_rawlen(L, keys);
    lua_Integer shown = 0;
    for (lua_Integer i = 1; i <= n && shown < most; i++, shown++) {
        lua_rawgeti(L, table, i);
        push_inner(L, lua_gettop(L), level);
        append_text(L, list);
        lua_pop(L, 1);
    }
    for (lua_Integer i = 1; i <= nkey && shown < most; i++, shown++) {
        lua_rawgeti(L, keys, i);
        const int key = lua_gettop(L);
        push_key(L, key);
        lua_pushvalue(L, key);
        lua_rawget(L, table);
        push_inner(L, key + 2, level);
        lua_remove(L, key + 2);
        lua_concat(L, 2);
        append_text(L, list);
        lua_pop(L, 1);
    }
    if (n + nkey > shown) {
        lua_pushfstring(L, "... %I more", (LUAI_UACINT)(n + nkey - shown));
        append_text(L, list);
    }
    lua_settop(L, list);
}

/* Joins the list of texts on top: in one line where it is short. Pops the list, pushes the text. */
static void join_texts(lua_State *L, int level)
{
    const int list = lua_gettop(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    size_t length = 4;
    bool one_line = true;
    for (lua_Integer i = 1; i <= n; i++) {
        size_t k;
        lua_rawgeti(L, list, i);
        const char *s = lua_tolstring(L, -1, &k);
        length += k + 2;
        one_line = one_line && memchr(s, '\n', k) == NULL;
        lua_pop(L, 1);
    }
    one_line = one_line && length <= (size_t)(WIDTH - 2 * (level - 1));
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, n == 0 ? "{" : one_line ? "{ " : "{\n");
    for (lua_Integer i = 1; i <= n; i++) {
        for (int k = 0; !one_line && k < level; k++)
            luaL_addstring(&b, "  ");
        lua_rawgeti(L, list, i);
        luaL_addvalue(&b);
        luaL_addstring(&b, i == n ? "" : one_line ? ", " : ",\n");
    }
    if (n > 0)
        luaL_addstring(&b, one_line ? " " : "\n");
    for (int k = 1; !one_line && k < level; k++)
        luaL_addstring(&b, "  ");
    luaL_addchar(&b, '}');
    luaL_pushresult(&b);
    lua_remove(L, list);
}

static void push_table(lua_State *L, int idx, int level)
{
    luaL_checkstack(L, 20, "a table");
    push_fields(L, idx, level);
    join_texts(L, level);
}

void dc_prompt_push_table(lua_State *L, int idx)
{
    push_table(L, lua_absindex(L, idx), 1);
}

void dc_prompt_show(lua_State *L, int n)
{
    const int first = lua_gettop(L) - n + 1;
    for (int i = first; i < first + n; i++) {
        size_t size;
        if (lua_type(L, i) == LUA_TTABLE && !has_tostring(L, i))
            push_table(L, i, 1);
        else
            luaL_tolstring(L, i, NULL);
        const char *text = lua_tolstring(L, -1, &size);
        dc_say(stdout, text, size);
        putchar('\n');
        lua_pop(L, 1);
    }
    lua_settop(L, first - 1);
}

int dc_prompt_is_tensor(lua_State *L)
{
    const dc_handle *h = dc_handle_test(L, 1);
    lua_pushboolean(L, h != NULL && h->kind != DC_HANDLE_CLOSED);
    return 1;
}

/* ---- :type ----------------------------------------------------------------------------------- */

void dc_prompt_push_type(lua_State *L, int idx)
{
    char type[DC_TYPE_TEXT];
    idx = lua_absindex(L, idx);
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL && h->kind != DC_HANDLE_CLOSED) {
        dc_type_print(dc_handle_type(h), type, sizeof type);
        lua_pushfstring(L, "%s%s", type,
                        h->kind != DC_HANDLE_CELL ? ""
                        : h->cell->trainable      ? "   a parameter"
                                                  : "   a state");
    } else if (lua_type(L, idx) == LUA_TTABLE && !has_tostring(L, idx)) {
        const lua_Integer n = push_keys(L, idx), keys = (lua_Integer)lua_rawlen(L, -1);
        lua_pop(L, 1);
        if (luaL_getmetafield(L, idx, "__name") == LUA_TSTRING)
            lua_pushfstring(L, "%s", lua_tostring(L, -1));
        else
            lua_pushfstring(L, "table, %I elements and %I fields", (LUAI_UACINT)n,
                            (LUAI_UACINT)keys);
    } else if (lua_type(L, idx) == LUA_TUSERDATA || lua_type(L, idx) == LUA_TTABLE) {
        luaL_tolstring(L, idx, NULL);
    } else if (lua_type(L, idx) == LUA_TNUMBER) {
        lua_pushstring(L, lua_isinteger(L, idx) ? "integer" : "float");
    } else {
        lua_pushstring(L, luaL_typename(L, idx));
    }
}
