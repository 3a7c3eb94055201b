/*
 * Interruptions: flags of the context (core/runtime/entry.h), which signal handlers and other threads set. Lua looks at
 * them in hooks:
 *
 *   stop    raises, at each instruction and where a function returns, while an interruption is requested. It is put
 *           in place of whatever hook there is ("armed"), and takes itself away again.
 *   watch   looks every WATCH instructions and arms. It stands from the begin to the end of an entry of the host
 *           (dc_pcall), also in the coroutines that run meanwhile, so that no other thread touches the state.
 *
 * Outside of entries the thread or handler that sets a flag arms: as the stand-alone interpreter of Lua does it, which is safe in a
 * signal handler on the state's thread; of another thread Lua promises no more than that it works in practice.
 *
 * One hook is armed at a time, that of what runs: resuming a coroutine takes the hook of the one that waits
 * away and gives it back later (dc_interrupt_switch). A try-lock guards that, and hooks: a thread that does not
 * get it leaves the arming to the holder, which looks at the flag after the release. So a coroutine that is being
 * left, and may be freed, is not touched.
 *
 * Where the interruption is persistent (dc_rt.insist), the flag and the hook stay until the end of the entry, or dc_dsl_resume: the error is
 * raised again wherever a script catches it. Handlers of xpcall do not see it (dsl/base/coroutine.c): Lua calls them
 * with hooks off.
 */
#include "dsl/base/interrupt.h"

#include "core/runtime/entry.h"
#include "dsl/base/error.h"
#include "dsl/base/host.h"
#include "dsl/base/trace.h"

#include <string.h>

enum { WATCH = 1000 };

/* ---- raising --------------------------------------------------------------------------------- */

void dc_interrupt_poll(lua_State *L, dc_dsl *d)
{
    if (!dc_interrupt_wanted(d))
        return;
    dc_interrupt_raise_again(L, d);
    dc_err_clear(&d->rt->job.err);
    dc_fail(&d->rt->job, DC_ERR_INTERRUPTED, NULL);
    dc_error_raise(L, d, NULL);
}

void dc_dsl_poll(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d != NULL)
        dc_interrupt_poll(L, d);
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
    if (d == NULL || enters_c(L, ar))
        return;
    if (d->rt == NULL || !atomic_load(&d->rt->insist))
        dc_interrupt_put_back(L, d);
    dc_interrupt_poll(L, d);
}

static void watch(lua_State *L, lua_Debug *ar)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d->below != NULL && (d->below_mask & (1 << ar->event)) != 0)
        d->below(L, ar);
    if (!dc_interrupt_wanted(d) || ar->event != LUA_HOOKCOUNT)
        return;
    dc_interrupt_arm_in(d, L);
    dc_interrupt_poll(L, d);
}

/* ---- what runs ------------------------------------------------------------------------------- */

/* The one that runs now has the hook that those have which are watched, or none of ours. */
static void put_watch(lua_State *L, const dc_dsl *d)
{
    const lua_Hook hook = lua_gethook(L);
    const int count = d->below_count > 0 && d->below_count < WATCH ? d->below_count : (int)WATCH;
    if (d->watched > 0 && (hook == NULL || hook == d->below))
        lua_sethook(L, watch, d->below_mask | LUA_MASKCOUNT, count);
    else if (d->watched == 0 && hook == watch)
        lua_sethook(L, NULL, 0, 0);
}

/* Has a coroutine a hook that it was born with and that means nothing any more? */
static bool is_left_over(const dc_dsl *d, lua_Hook hook, bool traced)
{
    return hook == stop || (!traced && hook != NULL && hook == d->trace_hook);
}

void dc_interrupt_switch(dc_dsl *d, lua_State *from, lua_State *to)
{
    const bool traced = dc_trace_current(from, d) != NULL;
    dc_interrupt_lock(d);
    if (lua_gethook(from) == stop)
        dc_interrupt_put_back(from, d);
    if (is_left_over(d, lua_gethook(to), traced))
        lua_sethook(to, lua_gethook(from), lua_gethookmask(from), lua_gethookcount(from));
    put_watch(to, d);
    d->running = to;
    dc_interrupt_unlock(d);
}

void dc_dsl_enter(lua_State *L, dc_dsl_watch *w)
{
    dc_dsl *d = dc_dsl_in(L);
    dc_interrupt_lock(d);
    if (lua_gethook(L) == stop)
        dc_interrupt_put_back(L, d);
    *w = (dc_dsl_watch){d->running, lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
    if (d->watched++ == 0) {
        d->below = w->hook;
        d->below_mask = w->mask;
        d->below_count = w->count;
    }
    put_watch(L, d);
    d->running = L;
    dc_interrupt_unlock(d);
}

void dc_dsl_leave(lua_State *L, const dc_dsl_watch *w)
{
    dc_dsl *d = dc_dsl_in(L);
    dc_interrupt_lock(d);
    if (lua_gethook(L) == stop)
        dc_interrupt_put_back(L, d);
    if (lua_gethook(L) == watch)
        lua_sethook(L, w->hook, w->mask, w->count);
    d->watched--;
    d->running = w->running;
    atomic_store(&d->arming, false);
}

bool dc_interrupt_is_end(lua_State *L, int idx)
{
    bool is = false;
    idx = lua_absindex(L, idx);
    if (lua_type(L, idx) != LUA_TTABLE || !dc_error_is(L, idx))
        return false;
    lua_pushliteral(L, "code");
    if (lua_rawget(L, idx) == LUA_TSTRING)
        is = strcmp(lua_tostring(L, -1), "DC0708") == 0;
    lua_pop(L, 1);
    return is;
}

int dc_dsl_ended(lua_State *L)
{
    lua_settop(L, 1);
    dc_dsl *d = dc_dsl_in(L);
    if (dc_interrupt_is_end(L, 1))
        return 1;
    dc_interrupt_raise_again(L, d);
    dc_rt_interrupted(d->rt, &d->rt->job, NULL);
    dc_error_raise(L, d, NULL);
}

void dc_interrupt_open(lua_State *L, dc_dsl *d)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    d->running = lua_tothread(L, -1);
    d->stop_hook = stop;
    lua_pop(L, 1);
}

void dc_dsl_resume(lua_State *L)
{
    dc_dsl *d = dc_dsl_in(L);
    if (d == NULL || d->rt == NULL)
        return;
    dc_rt_resume(d->rt);
    if (lua_gethook(L) == stop)
        dc_interrupt_put_back(L, d);
}
