/*
 * Which typed function is being traced, asked by whatever a script calls.
 */
#include "dsl/base/trace.h"

#include "core/signature/signature.h"

#include <string.h>

/* A coroutine that died of an error, or was closed, without running what was to be closed. */
static bool is_dead(lua_State *L)
{
    const int status = lua_status(L);
    lua_Debug ar;
    return (status != LUA_OK && status != LUA_YIELD) ||
           (status == LUA_OK && lua_getstack(L, 0, &ar) == 0 && lua_gettop(L) == 0);
}

dc_trace *dc_trace_current(lua_State *L, dc_dsl *d)
{
    while (d->trace != NULL && is_dead(d->trace->L)) {
        dc_trace *t = d->trace;
        d->trace = t->outer;
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, t); /* the specialisation, too, may be collected now */
    }
    for (dc_trace *t = d->trace; t != NULL && t->frame != NULL && is_dead(t->frame->L);)
        t->frame = t->frame->outer;
    for (dc_trace *t = d->trace; t != NULL && t->body != NULL && is_dead(t->body->L);)
        dc_trace_body_end(t, t->body);
    return d->trace;
}

/*
 * Is a finalizer running? The collector does not run then, and from Lua 5.4.4 on answers with -1. Before, one
 * that a script has stopped looks the same, so that the stack has to tell: its end that is near.
 */
bool dc_trace_finalizing(lua_State *L)
{
    enum { LEVELS = 200 };
    lua_Debug ar;
    const int runs = lua_gc(L, LUA_GCISRUNNING);
    for (int level = 0; runs == 0 && level < LEVELS && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "n", &ar);
        if (strcmp(ar.namewhat, "metamethod") == 0 && strcmp(ar.name, "__gc") == 0)
            return true;
    }
    return runs < 0;
}

/* Finalizers do not interrupt each other: what was begun in one is not interrupted. */
dc_trace *dc_trace_here(lua_State *L, dc_dsl *d)
{
    dc_trace *t = dc_trace_current(L, d);
    return t != NULL && (t->finalizing || !dc_trace_finalizing(L)) ? t : NULL;
}

void dc_trace_bound(const dc_trace *t, char *out, size_t room)
{
    *out = '\0';
    if (t->frame != NULL)
        dc_sig_bind_print(t->frame->sig, t->frame->bind, out, room);
}
