/*
 * What scripts tell those who watch (core/runtime/monitor.h), and how they may be watched.
 *
 *   dc.monitor()              opens a monitor; the path of its socket
 *   watched()                 is there one?
 *   metric_due(name)          somebody watches, and has not been told this metric yet
 *   tell_metric(name, value)
 *   hold_metrics(true)        those that are told now belong together; false: that was all
 *   loop_begin(title, total, size)   number of a loop, or nil
 *   loop_at(loop, done)       a round is done; true: metrics are due. A safe point
 *   loop_end(loop)
 */
#include "core/runtime/monitor.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/internals.h"

static dc_status open_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    return rt->open_monitor(rt, j);
}

/* Where nothing is computed there is nothing to watch: nil. */
static int l_monitor(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_rt *rt = d->rt;
    if (rt->open_monitor == NULL || rt->check || rt->planned != NULL)
        return 0;
    dc_run(L, d, open_body, rt);
    lua_pushstring(L, rt->monitor->path);
    return 1;
}

/* A child of fork has none: its lock may be held there for ever. */
static dc_monitor *monitor_of(lua_State *L)
{
    const dc_rt *rt = dc_dsl_of(L)->rt;
    return rt->monitor != NULL && !dc_rt_forked(rt) ? rt->monitor : NULL;
}

static int l_watched(lua_State *L)
{
    lua_pushboolean(L, monitor_of(L) != NULL);
    return 1;
}

static int l_metric_due(lua_State *L)
{
    dc_monitor *m = monitor_of(L);
    lua_pushboolean(L, m != NULL && dc_monitor_is_due(m, luaL_checkstring(L, 1)));
    return 1;
}

static int l_tell_metric(lua_State *L)
{
    dc_monitor *m = monitor_of(L);
    if (m != NULL) {
        dc_monitor_tell(m, luaL_checkstring(L, 1), luaL_checknumber(L, 2));
        dc_monitor_breathe(dc_dsl_of(L)->rt);
    }
    return 0;
}

static int l_hold_metrics(lua_State *L)
{
    if (monitor_of(L) != NULL)
        dc_monitor_hold(dc_dsl_of(L)->rt, lua_toboolean(L, 1));
    return 0;
}

static int l_loop_begin(lua_State *L)
{
    dc_monitor *m = monitor_of(L);
    const int loop =
        m == NULL ? -1
                  : dc_monitor_loop_begin(m, luaL_optstring(L, 1, ""), luaL_optinteger(L, 2, -1),
                                          luaL_optinteger(L, 3, 0));
    if (loop < 0)
        return 0;
    lua_pushinteger(L, loop);
    return 1;
}

static int l_loop_at(lua_State *L)
{
    dc_rt *rt = dc_dsl_of(L)->rt;
    dc_monitor *m = monitor_of(L);
    if (m == NULL)
        return 0;
    const bool due = dc_monitor_loop_at(m, (int)luaL_checkinteger(L, 1), luaL_checkinteger(L, 2));
    if (!due)
        dc_monitor_breathe(rt);
    lua_pushboolean(L, due);
    return 1;
}

static int l_loop_end(lua_State *L)
{
    if (monitor_of(L) != NULL)
        dc_monitor_loop_end(monitor_of(L), (int)luaL_checkinteger(L, 1));
    return 0;
}

static const dc_binding bindings[] = {
    {"monitor", l_monitor, 0, DC_IN_MODULE},
    {"watched", l_watched, DC_ANY, DC_IN_LIBRARY},
    {"metric_due", l_metric_due, DC_ANY, DC_IN_LIBRARY},
    {"tell_metric", l_tell_metric, DC_ANY, DC_IN_LIBRARY},
    {"hold_metrics", l_hold_metrics, DC_ANY, DC_IN_LIBRARY},
    {"loop_begin", l_loop_begin, DC_ANY, DC_IN_LIBRARY},
    {"loop_at", l_loop_at, DC_ANY, DC_IN_LIBRARY},
    {"loop_end", l_loop_end, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_monitor_bindings = DC_BINDINGS(bindings);
