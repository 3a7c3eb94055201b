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
 *            most is held that is unreachable, however old it became
 *   at last  whole, after OLD times as much was handed out, since much of what was left may have been dropped
 *   limited  whole, where a limit is set and half of what the last whole collection left free of it is taken, by
 *            graphs and functions too; and behind an error for lack of memory, whose makings are garbage then
 *
 * Lua's own memory counts as held, since going through it is what a collection costs. Work is therefore in
 * proportion to what is handed out, however much is alive.
 *
 * A collector that the script or the host has stopped stays stopped, and one that runs a finalizer is left
 * alone. Only when no memory is left does it run all the same.
 */
#include "core/base/heap.h"
#include "dsl/base/handle.h"

enum { STEP = 1 << 22, SLACK = 1 << 26, OLD = 8 };

/* Most of it is of tensors; lazy expressions are nodes of about this size. */
static uint64_t held(const dc_rt *rt)
{
    return rt->stats.bytes_live + rt->stats.lazy_nodes * sizeof(dc_lazy);
}

static uint64_t towards_limit(const dc_rt *rt)
{
    return rt->stats.bytes_live + dc_heap_used(rt->heap);
}

void dc_collector_run(lua_State *L, dc_dsl *d)
{
    for (dc_rt *rt = d->rt; rt != NULL && d->hit_limit; rt = rt->next)
        dc_lazy_trim(rt, 0);
    int refused = lua_gc(L, LUA_GCCOLLECT);
    if (d->hit_limit) /* what finalizers have let go of is garbage of the next one */
        refused = lua_gc(L, LUA_GCCOLLECT);
    if (refused == 0)
        dc_udata_sweep(L, d);
    for (dc_rt *rt = d->rt; rt != NULL; rt = rt->next)
        if (rt->opt.memory != 0) /* metadata may need what waits */
            dc_pool_drain(rt);
        else
            dc_pool_trim(rt);
    d->collections++;
    d->left = held(d->rt);
    d->kept = towards_limit(d->rt);
    d->hit_limit = false;
    d->collected = d->stepped = d->rt->handed;
}

static bool is_near_limit(const dc_dsl *d)
{
    const uint64_t limit = (uint64_t)d->rt->opt.memory;
    if (limit == 0)
        return false;
    const uint64_t left = d->kept < limit ? (limit - d->kept) / 2 : 0;
    return towards_limit(d->rt) > d->kept + (left > limit / 16 ? left : limit / 16);
}

void dc_collector_make_room(dc_dsl *d)
{
    if (dc_rt_is_short(d->rt))
        for (dc_rt *rt = d->rt; rt != NULL; rt = rt->next)
            dc_pool_drain(rt);
}

void dc_collector_step(lua_State *L, dc_dsl *d)
{
    const dc_rt *rt = d->rt;
    const uint64_t since = rt->handed - d->stepped;
    if (d->hit_limit || (is_near_limit(d) && lua_gc(L, LUA_GCISRUNNING) == 1)) {
        dc_collector_run(L, d);
        return;
    }
    if (since < STEP || lua_gc(L, LUA_GCISRUNNING) != 1)
        return;
    if (held(rt) < d->left) /* more than that cannot have been alive */
        d->left = held(rt);
    const uint64_t room = SLACK + d->left + ((uint64_t)lua_gc(L, LUA_GCCOUNT) << 10);
    if (held(rt) > d->left + room || rt->handed - d->collected > OLD * room) {
        dc_collector_run(L, d);
        return;
    }
    d->stepped = rt->handed;
    lua_gc(L, LUA_GCSTEP, (int)(since >> 10 < 1 << 20 ? since >> 10 : 1 << 20));
}

int dc_collector_hold(lua_State *L, lua_CFunction f)
{
    const bool runs = lua_gc(L, LUA_GCISRUNNING) == 1;
    lua_gc(L, LUA_GCSTOP);
    lua_pushvalue(L, lua_upvalueindex(1)); /* of the binding that calls this: dc_dsl_of */
    lua_pushcclosure(L, f, 1);
    lua_insert(L, 1);
    const int status = lua_pcall(L, lua_gettop(L) - 1, 1, 0);
    if (runs)
        lua_gc(L, LUA_GCRESTART);
    return status == LUA_OK ? 1 : lua_error(L);
}
