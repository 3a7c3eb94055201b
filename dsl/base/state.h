/*
 * The state of a context in Lua, which every binding gets as its first upvalue.
 *
 * Every binding has three parts: parse (may raise, owns nothing), act (C in a body of run.h, never
 * touches L) and push (what was made belongs to a userdata already). A userdata is made empty and
 * valid first and filled second.
 */
#ifndef DC_DSL_BASE_STATE_H
#define DC_DSL_BASE_STATE_H

#include "core/runtime/rt.h"
#include "core/runtime/storage.h"
#include "dsl/base/udata.h"
#include "dsl/base/uses.h"

#include <lauxlib.h>
#include <lua.h>

#include <stdatomic.h>

typedef struct dc_trace dc_trace;
typedef struct dc_handle dc_handle;
typedef struct dc_scope dc_scope;
typedef struct dc_blame dc_blame;
typedef struct dc_operand dc_operand;

/* Of one context in one lua_State: the first upvalue of every binding. */
typedef struct dc_dsl {
    dc_uhead head;
    dc_rt *rt;
    dc_trace *trace; /* of the typed function being traced, innermost; or NULL */
    uint64_t serial; /* of traces made so far */
    uint64_t born;   /* handles made so far */
    uint64_t
        effect; /* `born` when a script last did what outlives its values: set a cell, printed */
    dc_cell *generator; /* of random numbers, see rand.c; NULL before the first draw */
    uint64_t seed;      /* what it was started with */
    dc_cell *
        token; /* what messages to other ranks come after in a trace; NULL before there is a mesh. Of stdlib/ranks.lua */
    uint8_t
        autocast; /* dc_dtype that products are computed in, see dc.autocast; DC_BOOL: as they are */
    const char *
        mapping; /* dsl/control/vmap.c: where dc.vmap was called, which runs as a loop of Lua; or NULL */
    /* collector.c: dc_rt.handed when the collector was last stepped, and ran whole; what that left */
    uint64_t stepped, collected, left;
    uint64_t kept;        /* of what counts towards the limit of memory, that left */
    bool hit_limit;       /* there was no memory since */
    uint64_t collections; /* whole ones that it was asked for */
    dc_handle *live;      /* all that hold something, linked */
    uint64_t nlive;       /* so many */
    dc_unodes nodes;      /* of userdata that own something */
    uint64_t losing;      /* udata.c: random numbers of builds that lose finalizers */
    struct dc_fn *fns;    /* all that own something, linked; as are specialisations */
    struct dc_spec *specs;
    struct dc_batches *batches; /* loops over data sets that have not ended, linked */
    struct dc_work *loader; /* threads that read and decode rows of files; NULL before the first */
    struct dc_gather *gathers;   /* what gathers them on other devices than the host, linked */
    struct dc_uses_watch *watch; /* for `deepc check`; or NULL */
    dc_uses_places places;
    dc_scope *scope;             /* the open ones, innermost first */
    uint64_t scopes;             /* made so far */
    lua_CFunction ipairs;        /* its iterator */
    /* guard_trace.c, by hash, in pairs: functions in C that were found plain; those in Lua that a trace has seen */
    lua_CFunction plain[256];
    struct dc_seen {
        const void *fn;
        uint64_t serial; /* of the trace, which keeps the function alive */
    } seen[256];
    const char *made_at, *made; /* place.c: what was said of a place last */
    bool sees_tables;           /* dc_luatable_known */
    void (*closed)(void *);
    void *arg;
    /* interrupt.c; another thread, or a signal handler, reads and writes what is atomic */
    _Atomic(lua_State *) running; /* the main thread, or the coroutine that runs */
    _Atomic(lua_Hook) hook;       /* the one that stood where ours was put */
    atomic_int hook_mask, hook_count;
    atomic_bool arming; /* lock of hooks and of `running` */
    uint64_t
        ended; /* dc_rt.taken_back + 1 when the error value of a persistent interruption was made */
    int watched;    /* entries of the host that look by themselves */
    lua_Hook below; /* the one under theirs */
    int below_mask, below_count;
    lua_Hook stop_hook; /* interrupt.c: the one that raises */
    /* fncall.c: of what a check found after its call had returned. Raises */
    void (*raise_late)(lua_State *L, struct dc_dsl *d, const struct dc_outcome *o);
    lua_Hook
        trace_hook;    /* guard_trace.c: of a trace; a coroutine that was made in one has it, too */
    uintptr_t closing; /* coroutine.c: where in the C stack the outermost close runs; 0 none */
} dc_dsl;

extern const dc_utype dc_dsl_type;

/* Closed with its state, or of a process that this one was forked from: nothing of it is touched any more. */
static inline bool dc_dsl_gone(const dc_dsl *d)
{
    return d->rt == NULL || dc_rt_forked(d->rt);
}

/* Raises: a finalizer of the script calls us after the context was closed, or a child of fork does. */
DC_NORETURN void dc_dsl_refuse_closed(lua_State *L);

static inline dc_dsl *dc_dsl_of(lua_State *L)
{
    const dc_uref *r = lua_touserdata(L, lua_upvalueindex(1));
    if (r == NULL || r->type != &dc_dsl_type || dc_dsl_gone((dc_dsl *)r->node))
        dc_dsl_refuse_closed(L);
    return (dc_dsl *)r->node;
}

/* The same for what may run after the context was closed: d->rt is NULL then. */
static inline dc_dsl *dc_dsl_of_any(lua_State *L)
{
    const dc_uref *r = lua_touserdata(L, lua_upvalueindex(1));
    if (r == NULL || r->type != &dc_dsl_type)
        dc_dsl_refuse_closed(L);
    return (dc_dsl *)r->node;
}

/* The context of a state, where no binding is running; or NULL. */
dc_dsl *dc_dsl_in(lua_State *L);

/* Makes the context, which is in the registry from now on; pushes nothing. gc: its finalizer. */
dc_dsl *dc_dsl_new(lua_State *L, lua_CFunction gc);

#endif
