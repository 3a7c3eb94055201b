/*
 * The open scopes of a context: dc_dsl.scope is the innermost one of all coroutines. They are opened and
 * closed by scope.c; a new handle notes the one that it belongs to.
 */
#ifndef DC_DSL_BASE_SCOPE_H
#define DC_DSL_BASE_SCOPE_H

#include "dsl/base/binding.h"

struct dc_scope {
    dc_uhead head;
    dc_dsl *d;
    uint64_t id;
    const lua_State *L; /* the coroutine, which a user value keeps alive */
    dc_scope *next;     /* of the open ones of all coroutines, innermost first */
    bool open;
    const char *where; /* it was made; interned or NULL */
};

/* The innermost open scope of a coroutine, from s on; or NULL. */
static inline dc_scope *dc_scope_of(dc_scope *s, const lua_State *L)
{
    while (s != NULL && s->L != L)
        s = s->next;
    return s;
}

/* The number of the innermost open scope of L; 0: none. */
static inline uint64_t dc_scope_here(const lua_State *L, const dc_dsl *d)
{
    const dc_scope *s = dc_scope_of(d->scope, L);
    return s != NULL ? s->id : 0;
}

extern const dc_utype dc_scope_type;
extern const dc_bindings dc_scope_methods, dc_scope_bindings;

#endif
