/*
 * Handles: the userdata that scripts hold. A realized tensor, a lazy one, a cell and a traced tensor
 * look the same from outside; they share one metatable.
 *
 * A handle that holds a reference is in the context's list, so that closing a state also releases
 * those whose finalizer never runs, and scopes find what they free.
 */
#include "dsl/base/handle.h"

#include "dsl/base/scope.h"
#include "dsl/base/trace.h"
#include "dsl/base/uses.h"

#include <string.h>

static void drop_handle(void *h)
{
    dc_handle_close(h);
}

const dc_utype dc_handle_utype = {.name = "deepc.tensor", .drop = drop_handle};

dc_handle *dc_handle_look(lua_State *L, int idx)
{
    return dc_udata_test(L, idx, &dc_handle_utype);
}

bool dc_handle_was(lua_State *L, int idx)
{
    return dc_udata_has_meta(L, idx, &dc_handle_utype);
}

dc_handle *dc_handle_test(lua_State *L, int idx)
{
    dc_handle *h = dc_udata_test(L, idx, &dc_handle_utype);
    if (h != NULL && h->unread)
        dc_uses_read(h);
    if (h != NULL && h->d->watch != NULL && h->kind != DC_HANDLE_TRACED)
        dc_uses_mark(h);
    return h;
}

const dc_type *dc_handle_type(const dc_handle *h)
{
    static const dc_type none = {.dtype = DC_F32};
    switch (h->kind) {
    case DC_HANDLE_VALUE:
        return &h->tensor->type;
    case DC_HANDLE_LAZY:
        return &h->lazy->type;
    case DC_HANDLE_CELL:
        return h->cell->growth != NULL || h->cell->split != NULL ? dc_trace_growing(h->d, h->cell)
                                                                 : &h->cell->type;
    case DC_HANDLE_TRACED:
        return &h->val.type;
    case DC_HANDLE_CLOSED: /* by a finalizer, since it was looked at; using its value fails */
        return &none;
    }
    return &none;
}

static dc_handle *make_handle(lua_State *L, dc_dsl *d, size_t size)
{
    dc_handle *h = dc_udata_new_pooled(L, d, &dc_handle_utype, size);
    h->kind = DC_HANDLE_CLOSED;
    h->d = d;
    h->scope = dc_scope_here(L, d);
    h->born = ++d->born;
    return h;
}

dc_handle *dc_handle_new(lua_State *L, dc_dsl *d)
{
    return make_handle(L, d, d->watch != NULL ? sizeof(dc_handle) : offsetof(dc_handle, val));
}

dc_handle *dc_handle_new_traced(lua_State *L, dc_dsl *d)
{
    return make_handle(L, d, sizeof(dc_handle));
}

static void link_handle(dc_handle *h)
{
    h->prev = NULL;
    h->next = h->d->live;
    if (h->next != NULL)
        h->next->prev = h;
    h->d->live = h;
    h->d->nlive++;
}

void dc_handle_fill(dc_handle *h, dc_tensor *t)
{
    h->tensor = t;
    h->kind = DC_HANDLE_VALUE;
    link_handle(h);
}

void dc_handle_fill_cell(dc_handle *h, dc_cell *c)
{
    h->cell = c;
    h->kind = DC_HANDLE_CELL;
    link_handle(h);
}

void dc_handle_fill_lazy(dc_handle *h, dc_lazy *n)
{
    h->lazy = n;
    h->kind = DC_HANDLE_LAZY;
    link_handle(h);
}

void dc_handle_trace(dc_handle *h, const dc_trace *t, const dc_val *v)
{
    h->val = *v;
    h->serial = t->serial;
    h->fn = t->name;
    h->kind = DC_HANDLE_TRACED;
}

void dc_handle_close(dc_handle *h)
{
    const dc_handle_kind kind = h->kind;
    if (kind == DC_HANDLE_CLOSED || dc_dsl_gone(h->d))
        return;
    if (h->unread)
        dc_uses_tell_unread(h);
    h->kind = DC_HANDLE_CLOSED;
    h->closed = NULL;
    if (kind != DC_HANDLE_VALUE && kind != DC_HANDLE_LAZY && kind != DC_HANDLE_CELL)
        return;
    h->d->nlive--;
    if (h->prev != NULL)
        h->prev->next = h->next;
    else
        h->d->live = h->next;
    if (h->next != NULL)
        h->next->prev = h->prev;
    dc_tensor_release(h->tensor);
    dc_cell_release(h->cell);
    dc_lazy_release(h->lazy);
    h->tensor = NULL;
    h->cell = NULL;
    h->lazy = NULL;
}

void dc_handle_empty(dc_handle *h)
{
    const uint64_t scope = h->scope;
    if (h->kind == DC_HANDLE_CLOSED)
        return;
    h->unread = false;
    dc_handle_close(h);
    h->scope = scope; /* where closing says that it was closed */
}

void dc_handle_close_all(dc_dsl *d)
{
    while (d->live != NULL)
        dc_handle_close(d->live);
}

dc_tensor *dc_handle_held(const dc_handle *h)
{
    if (h->kind == DC_HANDLE_LAZY)
        return h->lazy->value;
    return h->kind == DC_HANDLE_VALUE ? h->tensor : NULL;
}
