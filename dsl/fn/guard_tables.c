/*
 * Captured tables, when a trace ends: the fields of tables and objects that captured locals hold become
 * guards, and so do those of tables in them, and of the class of an object (its metatable, and the tables
 * that __index leads to), breadth first. Raw access only: no code of the script runs.
 *
 * Tables that fit into DC_GUARD_EACH fields in all are compared at each call, others now and then. What a
 * layer or an optimiser is has a number of its own (static.c) and is left out, as are weak tables, since
 * guards keep what they compare alive, and Lua's library and deepc's. Of globals, which are many, those count
 * whose names a function that ran says.
 */
#include "dsl/base/run.h"
#include "dsl/fn/guard_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64, DEEPEST_UNNAMED = 4 }; /* tables in tables */

typedef struct walk {
    lua_State *L;
    dc_dsl *d;
    dc_guards *g;
    int refs;
} walk;

/* ---- names ----------------------------------------------------------------------------------- */

/* A field of the table called `name`: "cfg.lr", "list[3]"; of globals the key alone. */
static const char *field_name(const walk *w, const char *name, int key)
{
    lua_State *L = w->L;
    char text[200];
    if (lua_type(L, key) == LUA_TSTRING && *name == '\0')
        snprintf(text, sizeof text, "%s", lua_tostring(L, key));
    else if (lua_type(L, key) == LUA_TSTRING)
        snprintf(text, sizeof text, "%s.%s", name, lua_tostring(L, key));
    else if (lua_isinteger(L, key))
        snprintf(text, sizeof text, "%s[%" PRId64 "]", name, (int64_t)lua_tointeger(L, key));
    else
        snprintf(text, sizeof text, "%s[a %s]", name, luaL_typename(L, key));
    return dc_place_name(L, w->d, "%s", text);
}

static bool is_key(lua_State *L, int idx, const char *text)
{
    return lua_type(L, idx) == LUA_TSTRING && strcmp(lua_tostring(L, idx), text) == 0;
}

/* ---- which tables ---------------------------------------------------------------------------- */

static bool has_field(lua_State *L, int table, const char *key)
{
    table = lua_absindex(L, table);
    lua_pushstring(L, key);
    const bool found = lua_rawget(L, table) != LUA_TNIL;
    lua_pop(L, 1);
    return found;
}

/* A table that is no layer, no optimiser and not weak. */
static bool is_guarded(lua_State *L, int idx)
{
    if (lua_type(L, idx) != LUA_TTABLE)
        return false;
    if (!lua_getmetatable(L, idx))
        return true;
    const bool other = has_field(L, -1, "_versioned") || has_field(L, -1, "__mode");
    lua_pop(L, 1);
    return !other;
}

/* Tables at the key idx - 1 that are not looked at: modules of Lua and of deepc, and what the latter hold. */
static void leave_out(lua_State *L, int set, int idx)
{
    lua_pushvalue(L, idx);
    lua_pushboolean(L, 1);
    lua_rawset(L, set);
    if (strncmp(lua_tostring(L, idx - 1), "deepc", 5) != 0 || lua_type(L, idx) != LUA_TTABLE)
        return;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        if (lua_type(L, -1) == LUA_TTABLE) {
            lua_pushvalue(L, -1);
            lua_pushboolean(L, 1);
            lua_rawset(L, set);
        }
}

static bool module_is_library(const char *name)
{
    static const char *const of_lua[] = {"package", "coroutine", "table", "io",   "os",
                                         "string",  "math",      "utf8",  "debug"};
    for (size_t i = 0; i < DC_COUNTOF(of_lua); i++)
        if (strcmp(name, of_lua[i]) == 0)
            return true;
    return strcmp(name, "deepc") == 0 || strncmp(name, "deepc.", 6) == 0;
}

/* refs.tables: those that were looked at, libraries to begin with. */
static void begin_tables(lua_State *L, int refs)
{
    lua_newtable(L);
    const int set = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (lua_pushnil(L); lua_next(L, set + 1) != 0; lua_settop(L, set + 2)) {
        if (lua_type(L, set + 2) == LUA_TSTRING && module_is_library(lua_tostring(L, set + 2)))
            leave_out(L, set, set + 3);
    }
    lua_settop(L, set);
    lua_setfield(L, refs, "tables");
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* The table at idx, if it is one to be looked at. */
static void enqueue(const walk *w, int idx, dc_guard_todo todo)
{
    if (todo.depth >= (todo.named ? DEEPEST : DEEPEST_UNNAMED) || !is_guarded(w->L, idx))
        return;
    todo.ref = dc_guard_ref(w->L, w->refs, idx);
    DC_PUSH_OR_RAISE(w->L, w->d, w->g->todo, todo);
}

/* The class of the object at idx; its fields are called as the object's. */
static void enqueue_class(const walk *w, int idx, const dc_guard_todo *object)
{
    if (!lua_getmetatable(w->L, idx))
        return;
    dc_guard_todo todo = *object;
    todo.meta = true;
    todo.depth++;
    enqueue(w, lua_gettop(w->L), todo);
    lua_pop(w->L, 1);
}

/* Key and value are on top. */
static void guard_field(const walk *w, const dc_guard_todo *at, int holder)
{
    lua_State *L = w->L;
    const int key = lua_gettop(L) - 1;
    const bool index = at->meta && is_key(L, key, "__index");
    const char *name = index ? at->name : field_name(w, at->name, key);
    const bool named = at->named && dc_guard_is_named(L, w->refs, key);
    const dc_guard field = {.holder = holder,
                            .key = dc_guard_ref(L, w->refs, key),
                            .name = name,
                            .was = dc_guard_keep(L, key + 1, w->refs),
                            .named = named,
                            .seldom = at->globals && !named};
    DC_PUSH_OR_RAISE(L, w->d, w->g->field, field);
    const dc_guard_todo inside = {
        .name = name, .named = named, .depth = at->depth + 1, .globals = index && at->globals};
    enqueue(w, key + 1, inside);
}

/* Fields of the table on top; of globals those that count. */
static uint32_t count_fields(const walk *w, const dc_guard_todo *at)
{
    lua_State *L = w->L;
    const int table = lua_gettop(L);
    uint32_t n = 0;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, table + 1))
        n += !at->globals || dc_guard_is_named(L, w->refs, table + 1);
    return n;
}

static void note_beyond(dc_guards *g, const dc_guard_todo *at, uint32_t count)
{
    if (g->nbeyond++ > 0)
        return;
    g->beyond = at->name;
    g->beyond_has = count;
}

/* The table on top. */
static void guard_table(const walk *w, const dc_guard_todo *at)
{
    lua_State *L = w->L;
    dc_guards *g = w->g;
    const int table = lua_gettop(L);
    const uint32_t count = count_fields(w, at);
    dc_guard_table t = {.ref = at->ref,
                        .at = lua_topointer(L, table),
                        .name = at->name,
                        .first = g->field.n,
                        .globals = at->globals,
                        .named = at->named,
                        .seldom = at->globals};
    t.each = at->named && g->each + count <= DC_GUARD_EACH;
    if (t.each)
        g->each += count;
    else if (at->named)
        note_beyond(g, at, count);
    if (lua_getmetatable(L, table)) {
        t.metatable = lua_topointer(L, -1);
        dc_guard_ref(L, w->refs, table + 1);
        lua_pop(L, 1);
    }
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, table + 1)) {
        if ((t.cut = g->field.n >= DC_GUARD_FIELDS)) {
            lua_settop(L, table);
            break;
        }
        guard_field(w, at, at->ref);
    }
    t.count = g->field.n - t.first;
    DC_PUSH_OR_RAISE(L, w->d, g->table, t);
    enqueue_class(w, table, at);
}

/* What is named comes first, so that it is what fits. */
static void visit(const walk *w, bool named)
{
    lua_State *L = w->L;
    for (uint32_t i = 0; i < w->g->todo.n && w->g->field.n < DC_GUARD_FIELDS; i++) {
        const dc_guard_todo at = w->g->todo.at[i];
        if (at.named != named)
            continue;
        luaL_checkstack(L, 16, "captured tables");
        lua_rawgeti(L, w->refs, at.ref);
        if (is_guarded(L, -1) && dc_guard_take_once(L, w->refs, "tables", lua_gettop(L)))
            guard_table(w, &at);
        lua_pop(L, 1);
    }
}

static void enqueue_locals(const walk *w)
{
    lua_State *L = w->L;
    for (uint32_t i = 0; i < w->g->local.n; i++) {
        const dc_guard l = w->g->local.at[i];
        dc_guard_push_local(L, &l, w->refs);
        const bool globals = strcmp(l.name, "_ENV") == 0;
        const dc_guard_todo todo = {
            .name = globals ? "" : l.name, .named = true, .globals = globals};
        enqueue(w, lua_gettop(L), todo);
        lua_pop(L, 1);
    }
}

void dc_guard_tables(lua_State *L, dc_dsl *d, dc_guards *g, int refs)
{
    const walk w = {L, d, g, refs};
    luaL_checkstack(L, 16, "captured tables");
    begin_tables(L, refs);
    enqueue_locals(&w);
    visit(&w, true);
    visit(&w, false);
    lua_pushnil(L);
    lua_setfield(L, refs, "tables");
    for (uint32_t i = 0; i < g->table.n; i++)
        dc_guard_take_image(L, d, &g->table.at[i]);
}
