/*
 * Arming: the hook that ends what runs is put into a thread of Lua. interrupt.c tells when, and is that hook
 * (dc_dsl.stop_hook): it raises errors, and errors arm.
 */
#include "core/runtime/entry.h"
#include "dsl/base/interrupt.h"

#include <sched.h>

enum { ALL = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT };

static const char ENDED =
    0; /* its address: the error value of a persistent interruption, in the registry */

bool dc_interrupt_wanted(const dc_dsl *d)
{
    return d->rt != NULL && atomic_load(&d->rt->interrupt);
}

void dc_interrupt_put_back(lua_State *L, dc_dsl *d)
{
    lua_sethook(L, d->hook, d->hook_mask, d->hook_count);
}

/* With the lock. */
static void put_stop(dc_dsl *d, lua_State *L)
{
    const lua_Hook hook = lua_gethook(L);
    if (hook == d->stop_hook)
        return;
    d->hook = hook;
    d->hook_mask = lua_gethookmask(L);
    d->hook_count = lua_gethookcount(L);
    lua_sethook(L, d->stop_hook, ALL, 1);
}

static bool try_lock(dc_dsl *d)
{
    return !atomic_exchange(&d->arming, true);
}

/* The holder is another thread that arms, which takes no time. */
void dc_interrupt_lock(dc_dsl *d)
{
    while (!try_lock(d))
        sched_yield();
}

/*
 * What the owner of the state names; of others (NULL) what runs, unless it looks by itself. A thread
 * that could not get the lock meanwhile leaves the work to this one, so the flag is looked at once more.
 */
void dc_interrupt_arm_in(dc_dsl *d, lua_State *own)
{
    bool again = true;
    while (again && dc_interrupt_wanted(d) && try_lock(d)) {
        lua_State *L = own != NULL ? own : d->running;
        const bool may = L != NULL && (own != NULL || d->watched == 0),
                   now = may && dc_interrupt_wanted(d);
        if (now)
            put_stop(d, L);
        atomic_store(&d->arming, false);
        again = may && !now;
    }
}

void dc_interrupt_unlock(dc_dsl *d)
{
    lua_State *L = d->running;
    atomic_store(&d->arming, false);
    dc_interrupt_arm_in(d, L);
}

void dc_interrupt_arm(void *what)
{
    dc_interrupt_arm_in(what, NULL);
}

void dc_interrupt_sethook(lua_State *L, dc_dsl *d, lua_Hook hook, int mask, int count)
{
    dc_interrupt_lock(d);
    lua_sethook(L, hook, mask, count);
    dc_interrupt_unlock(d);
}

lua_Hook dc_interrupt_below(lua_State *L, dc_dsl *d, int *mask, int *count)
{
    const lua_Hook hook = lua_gethook(L);
    *mask = hook == d->stop_hook ? d->hook_mask : lua_gethookmask(L);
    *count = hook == d->stop_hook ? d->hook_count : lua_gethookcount(L);
    return hook == d->stop_hook ? d->hook : hook;
}

/* ---- errors that end what runs ----------------------------------------------------------------- */

void dc_interrupt_told(lua_State *L, dc_dsl *d)
{
    dc_rt_told(d->rt, d->rt->job.err.status);
    if (dc_err_ends(d->rt->job.err.id))
        dc_interrupt_arm_in(d, L);
}

void dc_interrupt_raised(lua_State *L, dc_dsl *d)
{
    const uint64_t now = atomic_load(&d->rt->taken_back) + 1;
    if (!atomic_load(&d->rt->insist))
        return;
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ENDED);
    d->ended = now;
}

static bool has_value(const dc_dsl *d)
{
    return atomic_load(&d->rt->insist) && d->ended == atomic_load(&d->rt->taken_back) + 1;
}

/* A persistent interruption is raised often, with one value. */
void dc_interrupt_raise_again(lua_State *L, const dc_dsl *d)
{
    if (!has_value(d))
        return;
    luaL_checkstack(L, 4, "an error");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &ENDED);
    lua_error(L);
}
