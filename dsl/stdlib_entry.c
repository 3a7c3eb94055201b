/*
 * Entries of what is written in Lua: functions of stdlib/ behind a C function that counts arguments, and the
 * __call of layers. Both note which of their results a script uses.
 */
#include "dsl/stdlib_entry.h"

#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/trace.h"
#include "dsl/base/uses.h"

#include <string.h>

/* ---- results --------------------------------------------------------------------------------- */

/* Is it noted whether the results of what runs are used? */
static bool notes_uses(lua_State *L, dc_dsl *d)
{
    return (d->watch != NULL || dc_trace_here(L, d) != NULL) && dc_place_by_script(L);
}

/* Is there one among the results, from index `first` on? */
static bool has_record(lua_State *L, int first)
{
    for (int i = first; i <= lua_gettop(L); i++)
        if (lua_type(L, i) == LUA_TTABLE)
            return true;
    return false;
}

/*
 * Notes those of the n results on top of the stack that were made since `born` handles were, as results of what the
 * script has called by this name; unless it did something besides (dc_dsl.effect), or gave a record, which may hold what
 * is used.
 */
static void note_results(lua_State *L, dc_dsl *d, int n, uint64_t born, const char *name)
{
    const dc_trace *t = dc_trace_here(L, d);
    const int first = lua_gettop(L) - n + 1;
    if (name == NULL || d->effect > born || has_record(L, first))
        return;
    for (int i = first; i <= lua_gettop(L); i++) {
        dc_handle *h = dc_handle_look(L, i);
        if (h == NULL || h->born <= born)
            continue;
        const bool here = t != NULL ? h->kind == DC_HANDLE_TRACED && h->serial == t->serial
                                    : h->kind == DC_HANDLE_LAZY;
        if (here && h->use == 0)
            dc_uses_add(t != NULL ? &d->trace->uses : &d->watch->lazy, h,
                        dc_name_intern_text(d->rt->names, name), dc_place_find(L, d).where,
                        dc_handle_type(h)->dtype == DC_BOOL);
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Of a layer's :forward; the call is at 1. There were `born` handles before. */
static int leave_call(lua_State *L, int status, lua_KContext born)
{
    const int n = lua_gettop(L) - 1;
    dc_dsl *d = dc_dsl_of(L);
    dc_trace *t = n == 0 ? dc_trace_here(L, d) : NULL;
    DC_UNUSED(status);
    if (t != NULL) {
        lua_pushvalue(L, 1);
        t->silent = dc_place_layer_path(L, d);
        lua_pop(L, 1);
    } else if (n > 0 && notes_uses(L, d)) {
        lua_pushvalue(L, 1);
        const char *path = dc_place_layer_path(L, d);
        lua_pop(L, 1);
        note_results(L, d, n, (uint64_t)born, path);
    }
    return n;
}

/* The text of a path on top becomes a call of that layer. */
static void open_layer(lua_State *L, dc_dsl *d)
{
    if (!dc_place_open_layer(L))
        dc_error_raisef(L, d, DC_ERR_REENTER, NULL,
                        "stack overflow: layers call each other more than %d deep",
                        DC_PLACE_LAYERS);
}

int dc_stdlib_call_layer(lua_State *L)
{
    const int n = lua_gettop(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstack(L, 8, "arguments of a layer");
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    open_layer(L, dc_dsl_of(L));
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_getfield(L, 2, "forward");
    lua_insert(L, 2);
    const lua_KContext born = (lua_KContext)dc_dsl_of(L)->born;
    lua_callk(L, n, LUA_MULTRET, born, leave_call);
    return leave_call(L, LUA_OK, born);
}

/* Of a function of stdlib/, which may be called when the context is closed. There were `born` handles before. */
static int leave(lua_State *L, int status, lua_KContext born)
{
    const int n = lua_gettop(L);
    dc_dsl *d = dc_dsl_of_any(L);
    DC_UNUSED(status);
    if (n > 0 && d->rt != NULL && notes_uses(L, d))
        note_results(L, d, n, (uint64_t)born, lua_tostring(L, lua_upvalueindex(4)));
    return n;
}

/* Upvalues: the context, the function of stdlib/, how many arguments it takes, its name, arguments before those
 * that the script wrote. Yields pass through. */
static int call_function(lua_State *L)
{
    const lua_Integer most = lua_tointeger(L, lua_upvalueindex(3));
    if (lua_gettop(L) > most)
        dc_binding_surplus(L, dc_dsl_of(L), lua_tostring(L, lua_upvalueindex(4)), (int)most,
                           (int)lua_tointeger(L, lua_upvalueindex(5)));
    const int n = lua_gettop(L);
    luaL_checkstack(L, 2, "arguments");
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    const dc_dsl *d = dc_dsl_of_any(L);
    const lua_KContext born = (lua_KContext)d->born;
    lua_callk(L, n, LUA_MULTRET, born, leave);
    return leave(L, LUA_OK, born);
}

/* Called by the library itself where a layer is made or called. */
static bool is_of_layer(const char *name)
{
    return strcmp(name, "forward") == 0 || strcmp(name, "init") == 0 || strcmp(name, "__call") == 0;
}

/* How many arguments the Lua function on top takes. */
static int parameters(lua_State *L)
{
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &ar);
    return ar.isvararg ? DC_ANY : ar.nparams;
}

/* Puts the entry in the place of the function under the key, if it is written in Lua; errors call it op. */
static void enter_field(lua_State *L, dc_dsl *d, int table, const char *key, const char *op)
{
    table = lua_absindex(L, table);
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushstring(L, key);
    if (lua_rawget(L, table) == LUA_TFUNCTION && !lua_iscfunction(L, -1)) {
        lua_pushinteger(L, parameters(L));
        lua_pushstring(L, op);
        lua_pushinteger(L, is_of_layer(key));
        lua_pushcclosure(L, call_function, 5);
        lua_pushstring(L, key);
        lua_insert(L, -2);
        lua_rawset(L, table); /* while it is traversed: the field exists */
        return;
    }
    lua_pop(L, 2);
}

/*
 * The functions of a class; what makes or calls a layer is told as the class, `owner`. Or those of a module,
 * told with its prefix.
 */
static void enter_all(lua_State *L, dc_dsl *d, int table, const char *owner, const char *prefix)
{
    table = lua_absindex(L, table);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "_";
        const char *op = key;
        const int value = lua_gettop(L);
        if (*key == '_')
            continue;
        if (owner != NULL && is_of_layer(key))
            op = owner;
        else if (*prefix != '\0')
            op = lua_pushfstring(L, "%s.%s", prefix, key);
        enter_field(L, d, table, key, op);
        lua_settop(L, value);
    }
}

void dc_stdlib_enter(lua_State *L, dc_dsl *d, int table, const char *prefix)
{
    table = lua_absindex(L, table);
    luaL_checkstack(L, 16, "entries");
    const int at = lua_gettop(L) + 1; /* the key; its value is behind it */
    enter_all(L, d, table, NULL, prefix);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, at)) {
        const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "_";
        if (lua_type(L, at + 1) != LUA_TTABLE || *key == '_')
            continue;
        const char *owner = lua_pushfstring(L, "%s.%s", prefix, key);
        enter_all(L, d, at + 1, owner, "");
        if (!lua_getmetatable(L, at + 1))
            continue;
        const int meta = lua_gettop(L);
        if (lua_getfield(L, meta, "__index") == LUA_TTABLE)
            enter_all(L, d, -1, NULL, "");
        enter_field(L, d, meta, "__call", owner);
    }
}
