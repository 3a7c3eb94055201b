/*
 * SIGINT of the program (vm/signals.h).
 *
 * A handler finds what it is about in variables of the file: a process has one handler.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/signals.h"

#include "dsl/dsl.h"

#include <lauxlib.h>
#include <lualib.h>

#include <signal.h>

static dc_rt *_Atomic target;
static atomic_int presses;
static volatile sig_atomic_t at_prompt;
static struct sigaction before;

static void on_interrupt(int sig)
{
    dc_rt *rt = atomic_load(&target);
    const int n = atomic_fetch_add(&presses, 1);
    if (rt == NULL)
        return;
    dc_rt_interrupt(rt, n > 0);
    if (!at_prompt)
        signal(sig, SIG_DFL);
}

void dc_signals_catch(dc_rt *rt, bool prompt)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    at_prompt = prompt;
    atomic_store(&presses, 0);
    sigemptyset(&action.sa_mask);
    action.sa_flags = prompt ? 0 : SA_RESTART;
    if (atomic_exchange(&target, rt) == NULL)
        sigaction(SIGINT, &action, &before);
    else
        sigaction(SIGINT, &action, NULL);
}

void dc_signals_leave(void)
{
    if (atomic_exchange(&target, (dc_rt *)NULL) != NULL)
        sigaction(SIGINT, &before, NULL);
}

int dc_signals_pending(void)
{
    return atomic_load(&presses);
}

void dc_signals_forget(lua_State *L)
{
    atomic_store(&presses, 0);
    dc_dsl_resume(L);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

/*
 * Calls the function below its arguments, n values in all, while `co` is what runs. Whatever it
 * raises passes on.
 */
static int call_running(lua_State *L, lua_State *co, int n)
{
    lua_State *outer = dc_dsl_running(L, co);
    const int status = lua_pcall(L, n - 1, LUA_MULTRET, 0);
    dc_dsl_running(L, outer);
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* Upvalue: coroutine.resume. */
static int l_resume(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return call_running(L, co != NULL ? co : L, lua_gettop(L));
}

/* Upvalues: what coroutine.wrap made, its thread. */
static int l_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(2));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return call_running(L, co, lua_gettop(L));
}

/* Upvalue: coroutine.wrap. */
static int l_wrap(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    if (lua_getupvalue(L, 1, 1) == NULL || lua_tothread(L, -1) == NULL) {
        lua_settop(L, 1);
        return 1;
    }
    lua_pushcclosure(L, l_wrapped, 2);
    return 1;
}

void dc_signals_watch_coroutines(lua_State *L)
{
    if (lua_getglobal(L, LUA_COLIBNAME) == LUA_TTABLE) {
        lua_getfield(L, -1, "resume");
        lua_pushcclosure(L, l_resume, 1);
        lua_setfield(L, -2, "resume");
        lua_getfield(L, -1, "wrap");
        lua_pushcclosure(L, l_wrap, 1);
        lua_setfield(L, -2, "wrap");
    }
    lua_pop(L, 1);
}
