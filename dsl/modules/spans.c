/*
 * What dc.trace and dc.span ask of the context. Internals for stdlib/trace:
 *
 *   trace_start(path, most)    records from now on
 *   trace_stop()               writes the file; its path, the spans in it, those that were left out
 *   span_begin()               a moment as an integer, or nil where nothing is recorded
 *   span_end(moment, name, file)  what ran since then; file: it was one of a file
 */
#include "core/base/spans.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/trace_events.h"

typedef struct tracing {
    dc_rt *rt;
    const char *path;
    lua_Integer most;
    uint64_t count, lost;
} tracing;

static dc_status start_body(dc_job *j, void *arg)
{
    const tracing *a = arg;
    return dc_trace_start(a->rt, j, a->path, (uint64_t)a->most);
}

/* Where nothing is computed there is nothing to record, and no file is written. */
static bool records(const dc_rt *rt)
{
    return !rt->check && rt->planned == NULL;
}

static int l_start(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    tracing a = {
        .rt = d->rt, .path = dc_args_text(L, d, 1, "trace"), .most = luaL_checkinteger(L, 2)};
    if (!records(d->rt))
        return 0;
    dc_run(L, d, start_body, &a);
    return 0;
}

static dc_status stop_body(dc_job *j, void *arg)
{
    tracing *a = arg;
    const char *path;
    DC_TRY(dc_trace_stop(a->rt, j, &path, &a->count, &a->lost));
    return DC_OK;
}

static int l_stop(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    tracing a = {.rt = d->rt};
    lua_pushstring(L, d->rt->first->trace_path);
    if (records(d->rt))
        dc_run(L, d, stop_body, &a);
    lua_pushinteger(L, (lua_Integer)a.count);
    lua_pushinteger(L, (lua_Integer)a.lost);
    return 3;
}

static int l_begin(lua_State *L)
{
    const uint64_t begun = dc_span_begin(&dc_dsl_of(L)->rt->log);
    if (begun == 0)
        return 0;
    lua_pushinteger(L, (lua_Integer)begun);
    return 1;
}

static int l_end(lua_State *L)
{
    const dc_dsl *d = dc_dsl_of(L);
    dc_span_end(&d->rt->log, (uint64_t)luaL_checkinteger(L, 1),
                lua_toboolean(L, 3) ? DC_SPAN_FILE : DC_SPAN_USER, luaL_checkstring(L, 2));
    return 0;
}

static const dc_binding bindings[] = {
    {"trace_start", l_start, DC_ANY, DC_IN_LIBRARY},
    {"trace_stop", l_stop, DC_ANY, DC_IN_LIBRARY},
    {"span_begin", l_begin, DC_ANY, DC_IN_LIBRARY},
    {"span_end", l_end, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_span_bindings = DC_BINDINGS(bindings);
