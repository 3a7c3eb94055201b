/*
 * What layers need of the language beyond internals.c: their state as a static value, tables to look at,
 * parameters that are not trained for a while.
 *
 *   static(value, what)       a static object; `what` is the layer's path
 *   watch(table, name)        the function being traced depends on the fields of the table
 *   tracing()                 is a typed function being traced?
 *   trainable(cell, whether)  of a parameter; a state is never trained
 *   optimised(params)         an optimiser was made for them
 *   cell_kind(cell)           "param", frozen or not, "state", or "growing"
 */
#include "dsl/base/binding.h"
#include "dsl/base/trace.h"
#include "dsl/fn/fn.h"

static int l_static(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *what = dc_place_name(L, d, "%s", luaL_checkstring(L, 2));
    lua_settop(L, 1);
    dc_static_push(L, d, what);
    return 1;
}

static int l_watch(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    dc_trace *t = dc_trace_here(L, d);
    if (t != NULL)
        dc_guard_watch(L, d, t, 1, dc_place_name(L, d, "%s", luaL_checkstring(L, 2)));
    return 0;
}

static int l_tracing(lua_State *L)
{
    lua_pushboolean(L, dc_trace_here(L, dc_dsl_of(L)) != NULL);
    return 1;
}

static int l_trainable(lua_State *L)
{
    const dc_handle *h = dc_handle_test(L, 1);
    if (h != NULL && h->kind == DC_HANDLE_CELL && (h->cell->trainable || h->cell->frozen)) {
        h->cell->trainable = lua_toboolean(L, 2);
        h->cell->frozen = !h->cell->trainable;
    }
    return 0;
}

/* optimised(params): an optimiser trains them */
static int l_optimised(lua_State *L)
{
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; i++, lua_pop(L, 1)) {
        const dc_handle *h = dc_handle_test(L, -1);
        if (h != NULL && h->kind == DC_HANDLE_CELL)
            h->cell->optimised = true;
    }
    return 0;
}

static int l_cell_kind(lua_State *L)
{
    const dc_handle *h = dc_handle_test(L, 1);
    if (h == NULL || h->kind != DC_HANDLE_CELL)
        return 0;
    lua_pushstring(L, h->cell->growth != NULL                 ? "growing"
                      : h->cell->trainable || h->cell->frozen ? "param"
                                                              : "state");
    return 1;
}

static const dc_binding bindings[] = {
    {"static", l_static, DC_ANY, DC_IN_LIBRARY},
    {"watch", l_watch, DC_ANY, DC_IN_LIBRARY},
    {"tracing", l_tracing, DC_ANY, DC_IN_LIBRARY},
    {"trainable", l_trainable, DC_ANY, DC_IN_LIBRARY},
    {"optimised", l_optimised, DC_ANY, DC_IN_LIBRARY},
    {"cell_kind", l_cell_kind, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_layer_bindings = DC_BINDINGS(bindings);
