/*
 * Scopes: tensors made since are freed together.
 *
 *   local s <close> = dc.scope()      at the end of the block, also by an error
 *   s:keep(x, ...)                    these outlive it      return s:close(x)   keeps x, closes
 *   local y = dc.scope(f, ...)        the same round a call; its results are kept
 *
 * A scope is of the coroutine that opened it: what other coroutines make is not in it. Cells are
 * not either. What one scope keeps belongs to the one around it. A handle knows the number of its
 * scope; numbers are never used again, so a scope that was only collected frees nothing.
 */
#include "dsl/base/scope.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/base/interrupt.h"

#include <string.h>

enum { DEEP = 100 };

static void unlink_scope(dc_scope *s)
{
    dc_scope **at = &s->d->scope;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->open = false;
}

/* One that was only collected frees nothing. */
static void drop_scope(void *node)
{
    dc_scope *s = node;
    if (s->open)
        unlink_scope(s);
}

const dc_utype dc_scope_type = {.name = "deepc.scope", .drop = drop_scope};

static void free_tensors(const dc_scope *s)
{
    dc_handle *next;
    for (dc_handle *h = s->d->live; h != NULL; h = next) {
        next = h->next;
        if (h->scope != s->id || h->kind == DC_HANDLE_CELL)
            continue;
        dc_handle_close(h);
        h->closed = s->where;
        h->by_scope = true;
    }
}

/* Those inside it that are still open go first: many of them, with many tensors, take their time. */
static void close_scope(lua_State *L, dc_scope *s)
{
    while (s->open) {
        dc_interrupt_look(L, s->d);
        dc_scope *inner = dc_scope_of(s->d->scope, s->L);
        free_tensors(inner);
        unlink_scope(inner);
    }
}

static dc_scope *push_scope(lua_State *L, dc_dsl *d)
{
    const dc_place place = dc_place_find(L, d);
    dc_scope *s = dc_udata_new(L, &dc_scope_type, sizeof *s, 1);
    s->d = d;
    lua_pushthread(L);
    lua_setiuservalue(L, -2, 1);
    s->L = L;
    s->where = place.where;
    s->id = ++d->scopes;
    s->next = d->scope;
    s->open = true;
    d->scope = s;
    return s;
}

static dc_scope *check_scope(lua_State *L, dc_dsl *d, const char *op)
{
    dc_scope *s = dc_udata_test(L, 1, &dc_scope_type);
    if (s == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a scope is needed, not %s; s:%s(x) has a colon",
                        dc_handle_describe(L, 1), op);
    return s;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static bool is_inside(const dc_scope *s, uint64_t id)
{
    for (const dc_scope *at = dc_scope_of(s->d->scope, s->L); at != NULL;
         at = at == s ? NULL : dc_scope_of(at->next, s->L))
        if (at->id == id)
            return true;
    return false;
}

static void keep_handle(dc_scope *s, dc_handle *h)
{
    const dc_scope *outer = dc_scope_of(s->next, s->L);
    if (h->kind != DC_HANDLE_CLOSED && is_inside(s, h->scope))
        h->scope = outer != NULL ? outer->id : 0;
}

/* A tensor, or the tensors in a table, in its tables ...; `seen` has the tables met. */
static void keep_value(lua_State *L, dc_scope *s, int idx, int seen, int depth)
{
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL)
        keep_handle(s, h);
    if (lua_type(L, idx) != LUA_TTABLE || depth == DEEP)
        return;
    luaL_checkstack(L, 4, "tables of tensors");
    lua_pushvalue(L, idx);
    const bool met = lua_rawget(L, seen) != LUA_TNIL;
    lua_pop(L, 1);
    if (met)
        return;
    lua_pushvalue(L, idx);
    lua_pushboolean(L, 1);
    lua_rawset(L, seen);
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        keep_value(L, s, lua_gettop(L), seen, depth + 1);
}

/* Those at 2 and above. */
static void keep_all(lua_State *L, dc_scope *s)
{
    const int top = lua_gettop(L);
    luaL_checkstack(L, 4, "tensors to keep");
    lua_newtable(L);
    for (int i = 2; i <= top; i++)
        keep_value(L, s, i, top + 1, 0);
    lua_settop(L, top);
}

/* s:keep(x, ...): its arguments */
static int l_keep(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_scope *s = check_scope(L, d, "keep");
    if (!s->open)
        dc_error_raisef(L, d, DC_ERR_CLOSED, "keep", "the scope is closed");
    keep_all(L, s);
    return lua_gettop(L) - 1;
}

/* s:close(x, ...): keeps them and returns them */
static int l_close(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_scope *s = check_scope(L, d, "close");
    if (s->open) {
        keep_all(L, s);
        close_scope(L, s);
    }
    return lua_gettop(L) - 1;
}

/* __close(scope, error) */
static int l_leave(lua_State *L)
{
    close_scope(L, dc_udata_check(L, 1, &dc_scope_type));
    return 0;
}

static int l_tostring(lua_State *L)
{
    const dc_scope *s = dc_udata_test(L, 1, &dc_scope_type);
    if (s == NULL) /* its finalizer has run */
        lua_pushliteral(L, "scope (gone)");
    else
        lua_pushfstring(L, "scope (%s%s%s)", s->open ? "open" : "closed",
                        s->where != NULL ? ", made at " : "", s->where != NULL ? s->where : "");
    return 1;
}

static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *name = luaL_tolstring(L, 2, NULL);
    if (dc_binding_find(L, d, &dc_scope_methods, name))
        return 1;
    dc_error_fact(L, d, DC_ERR_FIELD, &(dc_fact){.word = {"a scope", name}}, NULL);
}

/* ---- round a call ---------------------------------------------------------------------------- */

/* The scope is at 1, to be closed; results above. */
static int finish(lua_State *L, int status, lua_KContext ctx)
{
    dc_scope *s = dc_udata_check(L, 1, &dc_scope_type);
    DC_UNUSED(status);
    DC_UNUSED(ctx);
    if (s->open) {
        keep_all(L, s);
        close_scope(L, s);
    }
    return lua_gettop(L) - 1;
}

/* dc.scope()   dc.scope(f, ...) */
static int l_scope(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const bool call = !lua_isnoneornil(L, 1);
    if (call && lua_type(L, 1) != LUA_TFUNCTION)
        dc_error_raisef(L, d, DC_ERR_ARG, "scope", "a function is needed, or nothing, not %s",
                        dc_handle_describe(L, 1));
    luaL_checkstack(L, 8, "a scope");
    push_scope(L, d);
    if (!call)
        return 1;
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_callk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, finish);
    return finish(L, LUA_OK, 0);
}

static const dc_binding of_scope[] = {
    {"keep", l_keep, DC_ANY, DC_IN_METHODS},  {"close", l_close, DC_ANY, DC_IN_METHODS},
    {"__index", l_index, DC_ANY, DC_IN_META}, {"__tostring", l_tostring, DC_ANY, DC_IN_META},
    {"__close", l_leave, DC_ANY, DC_IN_META},
};

const dc_bindings dc_scope_methods = DC_BINDINGS(of_scope);

static const dc_binding bindings[] = {
    {"scope", l_scope, DC_ANY, DC_IN_MODULE},
};

const dc_bindings dc_scope_bindings = DC_BINDINGS(bindings);
