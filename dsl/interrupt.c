/*
 * Interruptions: dc_interrupt sets a flag of the context, from a signal handler or another thread;
 * whatever runs looks at it. Lua does so through a hook that is put in place with the flag, as the
 * stand-alone interpreter of Lua does it, and that raises at the next instruction.
 *
 * Where somebody insists (the second Ctrl-C within a moment), the flag and the hook stay until
 * dc_dsl_resume: the error is raised again wherever a script catches it.
 */
#include "dsl/interrupt.h"

#include "dsl/error.h"

static void put_back(lua_State *L, dc_dsl *d)
{
    lua_sethook(L, d->hook, d->hook_mask, d->hook_count);
}

static void poll(lua_State *L, dc_dsl *d)
{
    dc_rt *rt = d->rt;
    if (rt == NULL || !atomic_load(&rt->interrupt))
        return;
    dc_rt_interrupted(rt, &rt->job, NULL);
    dc_error_raise(L, d, NULL);
}

/* Is a C function about to run? It may be the __close that ends a trace: that has to happen. */
static bool enters_c(lua_State *L, lua_Debug *ar)
{
    return ar->event == LUA_HOOKCALL && lua_getinfo(L, "S", ar) != 0 && *ar->what == 'C';
}

/* Of the thread it was put in, or one that such a thread has made. */
static void stop(lua_State *L, lua_Debug *ar)
{
    dc_dsl *d = dc_dsl_in(L);
    if (enters_c(L, ar))
        return;
    if (d->rt == NULL || !atomic_load(&d->rt->insist))
        put_back(L, d);
    poll(L, d);
}

/* The hook is read last: where it is not ours, mask and count are not either, whoever else arms. */
static void arm(dc_dsl *d, lua_State *L)
{
    const int mask = lua_gethookmask(L), count = lua_gethookcount(L);
    const lua_Hook hook = lua_gethook(L);
    if (hook == stop)
        return;
    d->hook = hook;
    d->hook_mask = mask;
    d->hook_count = count;
    lua_sethook(L, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

void dc_interrupt_arm(void *what)
{
    dc_dsl *d = what;
    lua_State *L = d->running;
    if (L != NULL)
        arm(d, L);
}

void dc_interrupt_rearm(lua_State *L, dc_dsl *d)
{
    if (d->rt != NULL && atomic_load(&d->rt->interrupt))
        arm(d, L);
}

lua_Hook dc_interrupt_below(lua_State *L, dc_dsl *d, int *mask, int *count)
{
    const lua_Hook hook = lua_gethook(L);
    *mask = hook == stop ? d->hook_mask : lua_gethookmask(L);
    *count = hook == stop ? d->hook_count : lua_gethookcount(L);
    return hook == stop ? d->hook : hook;
}

void dc_interrupt_register(lua_State *L, dc_dsl *d)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    d->running = lua_tothread(L, -1);
    lua_pop(L, 1);
}

void dc_dsl_resume(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d == NULL || d->rt == NULL)
        return;
    dc_rt_resume(d->rt);
    if (lua_gethook(L) == stop)
        put_back(L, d);
}

lua_State *dc_dsl_running(lua_State *L, lua_State *now)
{
    dc_dsl *d = dc_dsl_in(L);
    lua_State *before = d->running;
    d->running = now;
    return before;
}
