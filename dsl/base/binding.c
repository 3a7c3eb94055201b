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

/* Is the running function called as x:name()? Of a module's function the hint is told. */
static bool has_self(lua_State *L, const char **hint)
{
    lua_Debug ar;
    if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar) || strcmp(ar.namewhat, "method") != 0)
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
                  &(dc_blame){.op = op, .hint = hint});
}

void dc_lib_surplus(lua_State *L, dc_dsl *d, const char *op, int most, int own)
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
static int enter(lua_State *L)
{
    const dc_binding *b = lua_touserdata(L, lua_upvalueindex(2));
    dc_dsl *d = lua_touserdata(L, lua_upvalueindex(1));
    if (d != NULL && d->head.type == &dc_dsl_type)
        dc_interrupt_look(L, d);
    if (lua_gettop(L) > b->most)
        dc_lib_surplus(L, dc_dsl_of(L), b->name, b->most, 0);
    return b->fn(L);
}

void dc_lib_push(lua_State *L, dc_dsl *d, const dc_binding *b)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushlightuserdata(L, (void *)b);
    lua_pushcclosure(L, enter, 2);
}

void dc_lib_add(lua_State *L, dc_dsl *d, int table, const dc_binding *rows, size_t n)
{
    table = lua_absindex(L, table);
    for (size_t i = 0; i < n; i++) {
        dc_lib_push(L, d, &rows[i]);
        lua_setfield(L, table, rows[i].name);
    }
}

void dc_lib_publish(lua_State *L, dc_dsl *d, const dc_binding *b, int methods, int module)
{
    dc_lib_push(L, d, b);
    lua_pushvalue(L, -1);
    lua_setfield(L, methods, b->name);
    lua_setfield(L, module, b->name);
}

void dc_lib_inner(lua_State *L, dc_dsl *d, const luaL_Reg *fn)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    luaL_setfuncs(L, fn, 1);
}

void dc_lib_set(lua_State *L, const char *name, uint64_t n)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}
