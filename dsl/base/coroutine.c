/*
 * Functions of Lua's libraries that hide from an interruption what runs, or hide the interruption itself: replaced
 * by some that do the same and report it (dsl/base/interrupt.c).
 *
 *   coroutine.resume, wrap, close   what runs is another coroutine meanwhile
 *   xpcall                          its handler does not see an interruption: Lua calls it with hooks off, so
 *                                   nothing could end it; of other errors that a hook raises (dsl/fn/guard_trace.c) it
 *                                   sees what there is, in a coroutine of its own
 *
 * resume and wrap are written again after lcorolib.c.
 *
 * An error that a hook raises leaves the hooks of a coroutine that dies of it off for good, and what it has to close
 * runs afterwards. So the body of a coroutine whose variables Lua closes by itself, or those of scripts of others, is
 * called by a protected call inside the coroutine: its variables are closed there, where hooks are on again.
 *
 * Closing: Lua before 5.4.5 counts the C stack of a coroutine that is closed from where it was resumed last, not
 * from the coroutine that closes it. A chain of coroutines that close each other would go through the C stack
 * uncounted, so its bytes are counted here.
 */
#include "dsl/base/error.h"
#include "dsl/base/host.h"
#include "dsl/base/interrupt.h"

#include <lualib.h>

#include <string.h>

static dc_dsl *context(lua_State *L)
{
    return dc_dsl_of_any(L);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

static lua_State *check_coroutine(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co != NULL, 1, "coroutine");
    return co;
}

/* The values on top, n of them, go in; what comes out is on top. How many, or -1: an error value. */
static int resume(lua_State *L, lua_State *co, int n)
{
    dc_dsl *d = context(L);
    int nresult = 0;
    if (!lua_checkstack(co, n)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    dc_interrupt_poll(L, d);
    lua_xmove(L, co, n);
    dc_interrupt_switch(d, L, co);
    const int status = lua_resume(co, L, n, &nresult);
    dc_interrupt_switch(d, co, L);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, nresult + 1)) {
        lua_pop(co, nresult);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, nresult);
    return nresult;
}

static int l_resume(lua_State *L)
{
    lua_State *co = check_coroutine(L);
    const int n = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, n >= 0);
    lua_insert(L, n >= 0 ? -(n + 1) : -2);
    return n >= 0 ? n + 1 : 2;
}

/* The error of a coroutine, or of what it had to close, goes on in its caller. */
static int pass_error(lua_State *L, lua_State *co)
{
    int status = lua_status(co);
    if (status != LUA_OK && status != LUA_YIELD) {
        dc_dsl *d = context(L);
        dc_interrupt_switch(d, L, co);
        status = lua_resetthread(co);
        dc_interrupt_switch(d, co, L);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* Upvalues: the context, the coroutine. */
static int l_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(2));
    const int n = resume(L, co, lua_gettop(L));
    return n >= 0 ? n : pass_error(L, co);
}

static int end_body(lua_State *L, int status, lua_KContext ctx)
{
    DC_UNUSED(ctx);
    return status == LUA_OK || status == LUA_YIELD ? lua_gettop(L) : lua_error(L);
}

/* Upvalue: the function of the script. */
static int run_body(lua_State *L)
{
    const int n = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return end_body(L, lua_pcallk(L, n, LUA_MULTRET, 0, 0, end_body), 0);
}

void dc_dsl_push_body(lua_State *L, int idx)
{
    lua_pushvalue(L, idx);
    lua_pushcclosure(L, run_body, 1);
}

static int l_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_State *co = lua_newthread(L);
    dc_dsl_push_body(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, l_wrapped, 2);
    return 1;
}

enum { CLOSING = 1 << 18 }; /* bytes of the C stack between the outermost close and the innermost */

/* Notes the outermost close of those that run; raises where they have gone too deep. Returns the note of before. */
static uintptr_t begin_close(lua_State *L, dc_dsl *d)
{
    const volatile char here = 0;
    const uintptr_t at = (uintptr_t)&here, outer = d->closing;
    if (outer != 0 && (outer > at ? outer - at : at - outer) > CLOSING)
        luaL_error(L, "C stack overflow: too many coroutines close each other");
    if (outer == 0)
        d->closing = at;
    return outer;
}

/* Was the coroutine ended by an interruption? Then what it left open stays so: no hook would end it. */
static bool died_by_end(lua_State *L, lua_State *co)
{
    const int status = lua_status(co);
    if (status == LUA_OK || status == LUA_YIELD || lua_gettop(co) == 0)
        return false;
    lua_xmove(co, L, 1);
    const bool is = dc_interrupt_is_end(L, -1);
    lua_xmove(L, co, 1);
    return is;
}

/* Upvalues: the context, coroutine.close as it was. */
static int l_close(lua_State *L)
{
    lua_State *co = check_coroutine(L);
    dc_dsl *d = context(L);
    lua_settop(L, 1);
    if (died_by_end(L, co)) {
        lua_pushboolean(L, 0);
        lua_xmove(co, L, 1);
        return 2;
    }
    const uintptr_t outer = begin_close(L, d);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    dc_interrupt_switch(d, L, co);
    const int status = lua_pcall(L, 1, LUA_MULTRET, 0);
    dc_interrupt_switch(d, co, L);
    d->closing = outer;
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* ---- xpcall ---------------------------------------------------------------------------------- */

/* Was the error raised in a hook? Then whatever is called before it is caught runs with hooks off. */
static bool is_of_hook(lua_State *L)
{
    lua_Debug ar;
    return lua_getstack(L, 0, &ar) != 0 && lua_getinfo(L, "n", &ar) != 0 &&
           strcmp(ar.namewhat, "hook") == 0;
}

/* Calls the handler with the error value at 1 in a coroutine of its own, which has hooks. */
static int handle_apart(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    int n = 0;
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 2);
    dc_interrupt_switch(d, L, co);
    const int status = lua_resume(co, L, 1, &n);
    dc_interrupt_switch(d, co, L);
    if (status == LUA_YIELD) { /* no error: a handler would be called for it */
        lua_pushliteral(L, "attempt to yield across a C-call boundary");
        return 1;
    }
    if (status == LUA_OK && n != 1)
        lua_settop(co, lua_gettop(co) - n + 1); /* one result */
    lua_xmove(co, L, 1);
    return 1;
}

/* Upvalue: the handler of the script. */
static int handle(lua_State *L)
{
    lua_settop(L, 1);
    if (dc_interrupt_is_end(L, 1))
        return 1;
    if (is_of_hook(L))
        return handle_apart(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int finish(lua_State *L, int status, lua_KContext first)
{
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - (int)first;
    lua_pushboolean(L, 0);
    lua_pushvalue(L, -2);
    return 2;
}

static int l_xpcall(lua_State *L)
{
    const int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1); /* the first result */
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    return finish(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish), 2);
}

/* ---- the libraries --------------------------------------------------------------------------- */

/* Replaces a function of the table on top; upvalues: the context, the one that was there. */
static void replace(lua_State *L, dc_dsl *d, const char *name, lua_CFunction fn)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushstring(L, name);
    if (lua_rawget(L, -3) != LUA_TFUNCTION) {
        lua_pop(L, 2);
        return;
    }
    lua_pushcclosure(L, fn, 2);
    lua_pushstring(L, name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
}

void dc_coroutine_open(lua_State *L, dc_dsl *d, int globals)
{
    lua_pushvalue(L, globals);
    replace(L, d, "xpcall", l_xpcall);
    lua_pushliteral(L, LUA_COLIBNAME);
    if (lua_rawget(L, -2) == LUA_TTABLE) {
        replace(L, d, "resume", l_resume);
        replace(L, d, "wrap", l_wrap);
        replace(L, d, "close", l_close);
    }
    lua_pop(L, 2);
}
