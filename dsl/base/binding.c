/*
 * Functions that scripts call: each knows how many arguments it takes, and more are an error, so that none
 * is ignored. Functions in C are rows of dc_binding behind one entry; functions of stdlib/ are entered
 * through stdlib_entry.c, which counts their parameters. nil at the end counts as not given.
 */
#include "dsl/base/binding.h"

#include "dsl/base/error.h"
#include "dsl/base/hints.h"
#include "dsl/base/interrupt.h"

#include <stdio.h>
#include <string.h>

/* ---- surplus arguments ----------------------------------------------------------------------- */

/* Was a function of a module called with a colon? The table at 1 has it under the name of the call. */
static bool is_of_table(lua_State *L, lua_Debug *ar)
{
    if (ar->name == NULL || lua_type(L, 1) != LUA_TTABLE)
        return false;
    lua_getinfo(L, "f", ar);
    lua_pushstring(L, ar->name);
    lua_rawget(L, 1);
    const bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

/*
 * Is the running function called as x:name()? Of a module's function the hint is told. A function of stdlib/ may be
 * called by the C function that loads it.
 */
static bool has_self(lua_State *L, const char **hint)
{
    lua_Debug ar = {.namewhat = ""};
    for (int level = 0; level < 2 && *ar.namewhat == '\0'; level++)
        if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "n", &ar))
            return false;
    if (strcmp(ar.namewhat, "method") != 0)
        return false;
    if (!is_of_table(L, &ar))
        return true;
    *hint = lua_pushfstring(L, "with a dot, not a colon: .%s(...)", ar.name);
    return false;
}

DC_NORETURN static void refuse(lua_State *L, dc_dsl *d, const char *op, int most, int own)
{
    char text[120], taken[40] = "none is taken";
    const int top = lua_gettop(L);
    luaL_checkstack(L, 12, "an error");
    const char *hint = dc_hint_surplus(L, op, most + 1);
    if (own == 0 && has_self(L, &hint))
        own = 1;
    if (most > own)
        snprintf(taken, sizeof taken, "at most %d %s taken", most - own,
                 most - own == 1 ? "is" : "are");
    snprintf(text, sizeof text, "%d argument%s given, %s", top - own, top - own == 1 ? "" : "s",
             taken);
    dc_error_fact(L, d, DC_ERR_ARG_COUNT_TEXT, &(dc_fact){.op = op, .word = {text}},
                  &(dc_blame){.hint = hint});
}

void dc_binding_surplus(lua_State *L, dc_dsl *d, const char *op, int most, int own)
{
    int given = lua_gettop(L);
    while (given > most && lua_isnil(L, given))
        given--;
    lua_settop(L, given);
    if (given > most)
        refuse(L, d, op, most, own);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Upvalues: the context, the row. Looks whether it is to end: a loop of Lua's in C may call it, which no hook ends. */
static int call_counted(lua_State *L)
{
    const dc_binding *b = lua_touserdata(L, lua_upvalueindex(2));
    const dc_uref *r = lua_touserdata(L, lua_upvalueindex(1));
    if (r != NULL && r->type == &dc_dsl_type)
        dc_interrupt_look(L, (dc_dsl *)r->node);
    if (lua_gettop(L) > b->most)
        dc_binding_surplus(L, dc_dsl_of(L), b->name, b->most, 0);
    return b->fn(L);
}

static void push_counted(lua_State *L, dc_dsl *d, const dc_binding *b)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushlightuserdata(L, (void *)b);
    lua_pushcclosure(L, call_counted, 2);
}

static void push_uncounted(lua_State *L, dc_dsl *d, const dc_binding *b)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushcclosure(L, b->fn, 1);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const dc_binding *row_at(const dc_bindings *b, size_t i)
{
    return (const dc_binding *)((const char *)b->first + i * b->size);
}

/* The function on top becomes a field of the table, if there is one. */
static void set_field(lua_State *L, int table, const char *name)
{
    if (table == 0)
        return;
    lua_pushvalue(L, -1);
    lua_setfield(L, table, name);
}

void dc_binding_add(lua_State *L, dc_dsl *d, const dc_bindings *b, const dc_binding_tables *to)
{
    for (size_t i = 0; i < b->n; i++) {
        const dc_binding *row = row_at(b, i);
        if (row->in & DC_IN_BOTH) {
            push_counted(L, d, row);
            set_field(L, row->in & DC_IN_MODULE ? to->module : 0, row->name);
            set_field(L, row->in & DC_IN_METHODS ? to->methods : 0, row->name);
            lua_pop(L, 1);
        }
        if (row->in & (DC_IN_META | DC_IN_LIBRARY)) {
            push_uncounted(L, d, row);
            set_field(L, row->in & DC_IN_META ? to->meta : to->library, row->name);
            lua_pop(L, 1);
        }
    }
}

static bool has_methods(const dc_bindings *b)
{
    bool found = false;
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(row_at(b, i)->name, "__index") == 0)
            return false;
        found = found || (row_at(b, i)->in & DC_IN_METHODS) != 0;
    }
    return found;
}

void dc_binding_add_type(lua_State *L, dc_dsl *d, const dc_utype *type, const dc_bindings *rows)
{
    dc_udata_register(L, type);
    dc_binding_tables to = {.meta = lua_gettop(L)};
    if (rows != NULL && has_methods(rows)) {
        lua_newtable(L);
        to.methods = lua_gettop(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, to.meta, "__index");
    }
    if (rows != NULL)
        dc_binding_add(L, d, rows, &to);
    lua_settop(L, to.meta);
    if (type->drop != NULL)
        dc_udata_set_gc(L, d, type);
    lua_settop(L, to.meta - 1);
}

bool dc_binding_find(lua_State *L, dc_dsl *d, const dc_bindings *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        const dc_binding *row = row_at(b, i);
        if ((row->in & DC_IN_METHODS) && strcmp(row->name, name) == 0) {
            push_counted(L, d, row);
            return true;
        }
    }
    return false;
}

void dc_binding_set_number(lua_State *L, const char *name, uint64_t n)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}

bool dc_binding_provides(lua_State *L, const char *module)
{
    const int top = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    const bool has = lua_getfield(L, -2, module) == LUA_TTABLE ||
                     lua_getfield(L, top + 2, module) == LUA_TFUNCTION;
    lua_settop(L, top);
    return has;
}

void dc_binding_require(lua_State *L, const char *module)
{
    const int top = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, module) != LUA_TTABLE) {
        lua_pop(L, 1);
        luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
        lua_getfield(L, -1, module);
        lua_call(L, 0, 1);
        lua_pushvalue(L, -1);
        lua_setfield(L, top + 1, module);
    }
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}
