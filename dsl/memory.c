/*
 * When the collector of Lua runs because of memory that it cannot see: that of tensors, and of what is not
 * computed yet. A handle is a small userdata to it, whatever hangs on it.
 *
 * It is asked before an operation makes its results, not behind: the value that the variable of a loop held
 * before the last call is garbage then, while behind the call two are held. So each result of `x = f(x)` is seen
 * alive once only, and dies young where there are generations.
 *
 *   often    a step for each STEP bytes handed out
 *   seldom   whole, where more is held than twice what the last whole collection left, and SLACK: so much at
 *            most is held that nobody can reach, however old it became
 *   at last  whole, after OLD times as much was handed out, since much of what was left may have been dropped
 *
 * Lua's own memory counts as held, since going through it is what a collection costs. Work is therefore in
 * proportion to what is handed out, however much is alive.
 *
 * A collector that the script or the host has stopped stays stopped, and one that runs a finalizer is left
 * alone. Only when no memory is left does it run all the same.
 */
#include "dsl/handle.h"

enum { STEP = 1 << 22, SLACK = 1 << 26, OLD = 8 };

/* Most of it is of tensors; lazy expressions are nodes of about this size. */
static uint64_t held(const dc_rt *rt)
{
    return rt->stats.bytes_live + rt->stats.lazy_nodes * sizeof(dc_lazy);
}

void dc_handle_collect(lua_State *L, dc_dsl *d)
{
    lua_gc(L, LUA_GCCOLLECT);
    dc_pool_trim(d->rt);
    d->collections++;
    d->left = held(d->rt);
    d->collected = d->stepped = d->rt->handed;
}

void dc_handle_pressure(lua_State *L, dc_dsl *d)
{
    const dc_rt *rt = d->rt;
    const uint64_t since = rt->handed - d->stepped;
    if (since < STEP || lua_gc(L, LUA_GCISRUNNING) != 1)
        return;
    if (held(rt) < d->left) /* more than that cannot have been alive */
        d->left = held(rt);
    const uint64_t room = SLACK + d->left + ((uint64_t)lua_gc(L, LUA_GCCOUNT) << 10);
    if (held(rt) > d->left + room || rt->handed - d->collected > OLD * room) {
        dc_handle_collect(L, d);
        return;
    }
    d->stepped = rt->handed;
    lua_gc(L, LUA_GCSTEP, (int)(since >> 10 < 1 << 20 ? since >> 10 : 1 << 20));
}

dc_status dc_handle_act(lua_State *L, dc_dsl *d, dc_status (*body)(dc_job *, void *), void *arg)
{
    const dc_status status = dc_protect(&d->rt->job, body, arg);
    if (status != DC_E_NOMEM)
        return status;
    dc_handle_collect(L, d); /* what the script no longer needs may be enough */
    return dc_protect(&d->rt->job, body, arg);
}
