/*
 * Completion of names: the expression before the cursor, such as `net[1].weight:su`, is followed
 * through tables and metatables, never through functions, so nothing of a script runs.
 *
 * Where an object's __index is a function of ours, its methods are the table among its upvalues:
 * any table in C, the one named `class` in stdlib/. Layers and optimisers there keep their parts in
 * `_own`, settings in `_own.hyper`.
 */
#include "dsl/base/handle.h"
#include "dsl/dsl.h"
#include "vm/program/prompt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 20 }; /* metatables behind one another, at most */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t begin_of_word(const char *line, size_t at)
{
    while (at > 0 && is_word(line[at - 1]))
        at--;
    return at;
}

/* ---- the expression before the word ---------------------------------------------------------- */

static size_t skip_back(const char *line, size_t at)
{
    while (at > 0 && (line[at - 1] == ' ' || line[at - 1] == '\t'))
        at--;
    return at;
}

/* Where the expression begins that ends before `at`: names joined by dots, indices in brackets. */
static bool find_begin(const char *line, size_t at, size_t *begin)
{
    for (;;) {
        at = skip_back(line, at);
        if (at > 0 && line[at - 1] == ']') {
            while (at > 0 && line[at - 1] != '[')
                at--;
            if (at == 0)
                return false;
            at = skip_back(line, at - 1);
            if (at > 0 && line[at - 1] == ']')
                continue;
        }
        const size_t word = begin_of_word(line, at);
        if (word == at || isdigit((unsigned char)line[word]))
            return false;
        *begin = word;
        at = skip_back(line, word);
        if (at == 0 || line[at - 1] != '.')
            return at == 0 || line[at - 1] != ':';
        at--;
    }
}

/* Replaces the function on top by the table of methods that it looks in, or pops it. */
static bool take_methods(lua_State *L)
{
    const int fn = lua_gettop(L);
    const bool in_c = lua_iscfunction(L, fn);
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, fn, i)) != NULL; i++) {
        if (lua_type(L, -1) == LUA_TTABLE && (in_c || strcmp(name, "class") == 0)) {
            lua_replace(L, fn);
            return true;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return false;
}

/* Replaces the value on top by where its missing fields are looked up, or leaves it. A metatable may name its class. */
static bool go_up(lua_State *L)
{
    if (!luaL_getmetafield(L, -1, "_class") && !luaL_getmetafield(L, -1, "__index"))
        return false;
    if (lua_type(L, -1) == LUA_TFUNCTION && !take_methods(L))
        return false;
    lua_remove(L, -2);
    return true;
}

/* Pushes the table that the one on top keeps under this name; false: nothing is pushed. */
static bool push_part(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    if (lua_rawget(L, -2) == LUA_TTABLE)
        return true;
    lua_pop(L, 1);
    return false;
}

/* Pushes a field of the table on top, or of its parts; the key is at idx. false: nothing pushed. */
static bool push_own(lua_State *L, int key)
{
    const int table = lua_gettop(L);
    static const char *const part[] = {"_own", "hyper"};
    for (size_t i = 0; i <= DC_COUNTOF(part); i++) {
        lua_pushvalue(L, key);
        if (lua_rawget(L, -2) != LUA_TNIL) {
            lua_copy(L, -1, table + 1);
            lua_settop(L, table + 1);
            return true;
        }
        lua_pop(L, 1);
        if (i == DC_COUNTOF(part) || !push_part(L, part[i]))
            break;
    }
    lua_settop(L, table);
    return false;
}

bool dc_prompt_get_field(lua_State *L)
{
    const int key = lua_gettop(L);
    bool found = false;
    lua_pushvalue(L, key - 1);
    for (int i = 0; i < CHAIN && !found; i++) {
        found = lua_type(L, -1) == LUA_TTABLE && push_own(L, key);
        if (!found && !go_up(L))
            break;
    }
    if (found)
        lua_copy(L, -1, key - 1);
    lua_settop(L, key - 1);
    return found;
}

/* Pushes what stands in brackets at line[at]; returns the place behind them, or 0. */
static size_t push_index(lua_State *L, const char *line, size_t at)
{
    const char *close = strchr(line + at, ']');
    if (close == NULL)
        return 0;
    size_t from = at + 1, to = (size_t)(close - line);
    while (from < to && line[from] == ' ')
        from++;
    to = skip_back(line, to);
    if (to - from >= 2 && (line[from] == '"' || line[from] == '\'') && line[to - 1] == line[from]) {
        lua_pushlstring(L, line + from + 1, to - from - 2);
    } else {
        lua_pushlstring(L, line + from, to - from);
        const bool number = lua_stringtonumber(L, lua_tostring(L, -1)) != 0;
        if (!number)
            return 0;
        lua_remove(L, -2);
    }
    return (size_t)(close - line) + 1;
}

/* Pushes the value of line[at..end), or returns false. */
static bool push_value(lua_State *L, const char *line, size_t at, size_t end)
{
    lua_pushglobaltable(L);
    while (at < end) {
        if (line[at] == '[') {
            at = push_index(L, line, at);
            if (at == 0 || !dc_prompt_get_field(L))
                return false;
        } else if (is_word(line[at])) {
            size_t n = 0;
            while (at + n < end && is_word(line[at + n]))
                n++;
            lua_pushlstring(L, line + at, n);
            if (!dc_prompt_get_field(L))
                return false;
            at += n;
        } else {
            at++;
        }
    }
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *begin;
    size_t n;
    bool methods; /* functions alone */
    int found;    /* set of words */
} wanted;

static void add_word(lua_State *L, const wanted *w, const char *word)
{
    if (strncmp(word, w->begin, w->n) != 0 || (*word == '_' && w->n == 0))
        return;
    lua_pushboolean(L, 1);
    lua_setfield(L, w->found, word);
}

static bool is_name(const char *s)
{
    const size_t n = strlen(s);
    return n > 0 && begin_of_word(s, n) == 0 && !isdigit((unsigned char)*s);
}

static bool is_callable(lua_State *L, int idx)
{
    if (lua_type(L, idx) == LUA_TFUNCTION)
        return true;
    if (!luaL_getmetafield(L, idx, "__call"))
        return false;
    lua_pop(L, 1);
    return true;
}

/* Of the table on top. */
static void add_keys(lua_State *L, const wanted *w)
{
    const int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && is_name(lua_tostring(L, -2)) &&
            (!w->methods || is_callable(L, -1)))
            add_word(L, w, lua_tostring(L, -2));
}

/* A typed function's, which its __index makes when asked. */
static void add_methods_of_functions(lua_State *L, const wanted *w)
{
    static const char *const words[] = {"check",  "dot",    "exchanges", "explain",
                                        "export", "info",   "kernels",   "plan",
                                        "ready",  "report", "source",    "start"};
    if (!dc_dsl_is_function(L, -1))
        return;
    for (size_t i = 0; i < DC_COUNTOF(words); i++)
        add_word(L, w, words[i]);
    if (!w->methods)
        add_word(L, w, "name");
}

/* Fields of the value on top, its own and through its metatables. */
static void add_fields(lua_State *L, const wanted *w)
{
    const int base = lua_gettop(L);
    if (dc_handle_test(L, base) != NULL && !w->methods) {
        add_word(L, w, "shape");
        add_word(L, w, "dtype");
    }
    add_methods_of_functions(L, w);
    lua_pushvalue(L, base);
    for (int i = 0; i < CHAIN; i++) {
        if (lua_type(L, -1) == LUA_TTABLE) {
            const int table = lua_gettop(L);
            add_keys(L, w);
            if (push_part(L, "_own")) {
                add_keys(L, w);
                if (push_part(L, "hyper"))
                    add_keys(L, w);
            }
            lua_settop(L, table);
        }
        if (!go_up(L))
            break;
    }
    lua_settop(L, base);
}

static void add_keywords(lua_State *L, const wanted *w)
{
    static const char *const words[] = {"and",      "break", "else", "elseif", "false",
                                        "function", "local", "nil",  "not",    "repeat",
                                        "return",   "then",  "true", "until",  "while"};
    for (size_t i = 0; w->n > 0 && i < DC_COUNTOF(words); i++)
        add_word(L, w, words[i]);
}

/* The keys of the set become a sorted list in its place. */
static void list_found(lua_State *L, int found)
{
    lua_newtable(L);
    const int list = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, found) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    }
    const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    for (lua_Integer i = 2; i <= n; i++)
        for (lua_Integer k = i; k > 1; k--) { /* some dozens of words */
            lua_rawgeti(L, list, k - 1);
            lua_rawgeti(L, list, k);
            if (strcmp(lua_tostring(L, -2), lua_tostring(L, -1)) > 0) {
                lua_rawseti(L, list, k - 1);
                lua_rawseti(L, list, k);
            } else {
                lua_pop(L, 2);
                break;
            }
        }
    lua_replace(L, found);
    lua_settop(L, found);
}

void dc_prompt_push_fields(lua_State *L, int idx)
{
    luaL_checkstack(L, 16, "fields");
    idx = lua_absindex(L, idx);
    lua_newtable(L);
    const int found = lua_gettop(L);
    const wanted w = {"", 0, false, found};
    lua_pushvalue(L, idx);
    add_fields(L, &w);
    lua_settop(L, found);
    list_found(L, found);
}

/* ":he" at the begin of the line. */
static bool is_command(const char *line, size_t from)
{
    const size_t first = strspn(line, " \t");
    return line[first] == ':' && line[first + 1] != ':' && from == first + 1;
}

size_t dc_prompt_complete(lua_State *L, const char *line, size_t at)
{
    luaL_checkstack(L, 16, "completion");
    lua_newtable(L);
    const int found = lua_gettop(L);
    const size_t from = begin_of_word(line, at), before = skip_back(line, from);
    const char joint = before > 0 ? line[before - 1] : '\0';
    wanted w = {line + from, at - from, joint == ':', found};
    size_t begin;
    if (is_command(line, from)) {
        for (int i = 0; dc_prompt_command_name(i) != NULL; i++)
            add_word(L, &w, dc_prompt_command_name(i));
    } else if ((joint == '.' && !(before > 1 && line[before - 2] == '.')) || joint == ':') {
        if (find_begin(line, before - 1, &begin) && push_value(L, line, begin, before - 1))
            add_fields(L, &w);
    } else {
        lua_pushglobaltable(L);
        add_fields(L, &w);
        add_keywords(L, &w);
    }
    lua_settop(L, found);
    list_found(L, found);
    return from;
}
