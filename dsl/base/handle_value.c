/*
 * What bindings ask of a handle: that it is open, its tensor, its elements in host memory. What cannot be
 * had is raised.
 */
#include "core/base/spans.h"
#include "core/runtime/devices.h"
#include "core/runtime/outcome.h"
#include "dsl/base/error.h"
#include "dsl/base/late.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/base/uses.h"

#include <stdio.h>
#include <string.h>

/* ---- open handles ---------------------------------------------------------------------------- */

/* Is there a method of this name? The second upvalue of __index has them all. */
static bool is_method(lua_State *L, const char *op)
{
    const int top = lua_gettop(L);
    bool is = false;
    dc_udata_push_meta(L, &dc_handle_utype);
    lua_getfield(L, -1, "__index");
    if (lua_getupvalue(L, -1, 2) != NULL && lua_istable(L, -1)) {
        lua_pushstring(L, op);
        is = lua_rawget(L, -2) != LUA_TNIL;
    }
    lua_settop(L, top);
    return is;
}

DC_NORETURN static void refuse_other(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    luaL_checkstack(L, 8, "an error");
    if (dc_handle_was(L, idx))
        dc_error_raisef(L, d, DC_ERR_CLOSED, op, "the tensor is closed: it was collected");
    const char *text = lua_pushfstring(L, "a tensor is needed, not %s", dc_handle_describe(L, idx));
    const char *hint = NULL;
    if (idx == 1 && lua_type(L, 1) != LUA_TTABLE && dc_place_by_script(L) && is_method(L, op))
        hint = lua_pushfstring(L, "with a colon: x:%s()", op);
    dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                  &(dc_blame){.hint = hint});
}

dc_handle *dc_handle_check(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    dc_handle *h = dc_handle_test(L, idx);
    if (h == NULL)
        refuse_other(L, d, idx, op);
    if (h->kind == DC_HANDLE_TRACED)
        dc_uses_mark(h);
    if (h->kind != DC_HANDLE_CLOSED)
        return h;
    if (h->loan) {
        const dc_blame b = {.hint = "x:clone() keeps one"};
        dc_fact f = {.op = op, .word = {"a batch is on loan until the next iteration"}};
        dc_error_fact(L, d, DC_ERR_CLOSED, &f, &b);
    }
    if (h->closed == NULL)
        dc_error_raisef(L, d, DC_ERR_CLOSED, op, "the tensor is closed");
    if (h->by_scope)
        dc_error_fact(L, d, DC_ERR_CLOSED,
                      &(dc_fact){.op = op,
                                 .word = {lua_pushfstring(
                                     L, "the tensor was closed by its scope at %s", h->closed)}},
                      &(dc_blame){.hint = "s:keep(x) keeps one"});
    dc_error_raisef(L, d, DC_ERR_CLOSED, op, "the tensor was closed at %s", h->closed);
}

int dc_handle_leave(lua_State *L)
{
    dc_handle *h = dc_udata_test(L, 1, &dc_handle_utype);
    if (h == NULL && dc_handle_was(L, 1))
        return 0;
    if (h == NULL)
        refuse_other(L, dc_dsl_of(L), 1, "close");
    if (h->kind == DC_HANDLE_CLOSED)
        return 0;
    const dc_place place = dc_place_find(L, h->d);
    h->loan = false;
    h->unread = false;
    dc_handle_close(h);
    h->closed = place.where;
    return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

dc_status dc_handle_tensor(dc_job *j, dc_handle *h, dc_tensor **out)
{
    if (h->kind == DC_HANDLE_CLOSED)
        return dc_failf(j, DC_ERR_CLOSED, NULL, "the tensor is closed");
    if (h->kind == DC_HANDLE_LAZY)
        DC_TRY(dc_lazy_realize(h->d->rt, j, h->lazy));
    *out = dc_handle_held(h);
    if (*out == NULL)
        DC_BUG("a tensor is asked of a handle of kind %d", (int)h->kind);
    return dc_outcome_settle((*out)->store, j);
}

typedef struct realizing {
    dc_handle *h;
    dc_tensor *t;
} realizing;

static dc_status realize_body(dc_job *j, void *arg)
{
    realizing *a = arg;
    return dc_handle_tensor(j, a->h, &a->t);
}

dc_tensor *dc_handle_realize(lua_State *L, dc_dsl *d, dc_handle *h)
{
    realizing a = {.h = h, .t = dc_handle_held(h)};
    if (a.t != NULL)
        return a.t;
    if (dc_run_again(L, d, realize_body, &a, NULL) != DC_OK)
        dc_handle_raise(L, d, &(dc_blame){0});
    return a.t;
}

dc_status dc_handle_lazy(dc_job *j, dc_handle *h, dc_lazy **out)
{
    dc_rt *rt = h->d->rt;
    switch (h->kind) {
    case DC_HANDLE_CELL:
        return dc_lazy_read(rt, j, h->cell, out);
    case DC_HANDLE_VALUE:
        if (h->lazy == NULL)
            h->lazy = dc_lazy_leaf(rt, h->tensor);
        h->lazy->call = h->compiled != NULL;
        break;
    case DC_HANDLE_LAZY:
        break;
    case DC_HANDLE_TRACED:
        return dc_fail(j, DC_ERR_LEAKED, &(dc_fact){.word = {h->fn}});
    case DC_HANDLE_CLOSED: /* by a finalizer, since it was looked at */
        return dc_failf(j, DC_ERR_CLOSED, NULL, "the tensor is closed");
    }
    *out = dc_lazy_retain(h->lazy);
    return DC_OK;
}

void dc_handle_raise(lua_State *L, dc_dsl *d, const dc_blame *b)
{
    dc_blame blame = *b;
    dc_place at;
    dc_lazy_place(d->rt, &at.where, &at.path);
    if (at.where != NULL) {
        blame.place = &at;
        blame.n = 0;
    }
    dc_error_raise(L, d, &blame);
}

typedef struct transfer {
    dc_dsl *d;
    dc_handle *h;
    const dc_type *type;
    const void *from;
    void *to;
    const dc_part *part;
    int n;
} transfer;

/* Between the memory of a device and the script's; where the device's is the host's, it is not worth telling. */
static void tell_copy(const dc_job *j, uint64_t begun, const dc_rt *rt, const char *how,
                      int64_t bytes)
{
    char text[300];
    if (begun == 0 || rt->device->ops->host)
        return;
    snprintf(text, sizeof text, "%s %s", how, rt->device_name);
    dc_span_end_of(j->log, begun, &(dc_span_name){.kind = DC_SPAN_COPY, .text = text}, bytes);
}

static dc_status download_cell(dc_job *j, const transfer *a, size_t size)
{
    dc_device *dev = a->h->cell->rt->device;
    char *to = a->to;
    DC_TRY(dc_cell_check(a->h->cell, j, NULL, true));
    for (int i = 0; i < a->n; i++) {
        const char *from = (const char *)a->h->cell->store->mem + (size_t)a->part[i].from * size;
        DC_TRY(dev->ops->download(dev, j, to, from, (size_t)a->part[i].count * size));
        to += (size_t)a->part[i].count * size;
    }
    return DC_OK;
}

/* A view is read where it stands. */
static dc_status download_view(dc_job *j, const transfer *a, size_t size)
{
    dc_lazy_view v;
    char *to = a->to;
    if (a->h->kind == DC_HANDLE_LAZY) {
        DC_TRY(dc_lazy_look(a->d->rt, j, a->h->lazy, &v));
    } else {
        DC_TRY(dc_handle_tensor(j, a->h, &v.of));
        const dc_type parts = dc_type_parts(&v.of->type);
        v.at = dc_view_whole(&parts);
    }
    const int64_t each = dc_dtype_is_complex((dc_dtype)dc_handle_type(a->h)->dtype) ? 2 : 1;
    for (int i = 0; i < a->n; i++) {
        DC_TRY(dc_lazy_read_view(a->d->rt, j, &v, each * a->part[i].from, each * a->part[i].count,
                                 to));
        to += (size_t)a->part[i].count * size;
    }
    return DC_OK;
}

static dc_status download_body(dc_job *j, void *arg)
{
    const transfer *a = arg;
    const size_t size = dc_dtype_size((dc_dtype)dc_handle_type(a->h)->dtype);
    const uint64_t begun = dc_span_begin(j->log);
    const dc_rt *rt = dc_handle_rt(a->h);
    int64_t bytes = 0;
    for (int i = 0; i < a->n; i++)
        bytes += a->part[i].count * (int64_t)size;
    DC_TRY(a->h->kind == DC_HANDLE_CELL ? download_cell(j, a, size) : download_view(j, a, size));
    tell_copy(j, begun, rt, "read from", bytes);
    return DC_OK;
}

/* Raises where a handle has no value to read. */
static void refuse_traced(lua_State *L, dc_dsl *d, dc_handle *h, const char *op)
{
    if (h->kind != DC_HANDLE_TRACED && (h->kind != DC_HANDLE_CELL || dc_trace_here(L, d) == NULL))
        return;
    const dc_trace *t = dc_trace_current(L, d);
    if (h->kind == DC_HANDLE_TRACED && (t == NULL || h->serial != t->serial))
        dc_error_fact(L, d, DC_ERR_LEAKED,
                      &(dc_fact){.op = op, .word = {h->fn != NULL ? h->fn : d->trace->name}}, NULL);
    const dc_operand in = {.h = h, .role = "of", .type = *dc_handle_type(h)};
    const bool makes_cell = strcmp(op, "param") == 0 || strcmp(op, "state") == 0;
    dc_error_fact(L, d, DC_ERR_NO_VALUE, &(dc_fact){.op = op, .type = {in.type}, .word = {t->name}},
                  &(dc_blame){.in = &in,
                              .n = 1,
                              .hint = makes_cell
                                          ? "a cell begins with a value; then cell:set(x), which "
                                            "may be inside. Layers are made before the function"
                                          : NULL});
}

typedef struct looking {
    dc_handle *h;
    size_t bytes;
} looking;

/* Computes what is pending, so that a value that the limit refuses is refused before there is a copy of it. */
static dc_status look_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    dc_rt *rt = a->h->d->rt;
    dc_lazy_view v;
    if (a->h->kind == DC_HANDLE_LAZY)
        DC_TRY(dc_lazy_look(rt, j, a->h->lazy, &v));
    return rt->opt.memory != 0 && a->bytes > (uint64_t)rt->opt.memory
               ? dc_storage_admit(rt, j, a->bytes)
               : DC_OK;
}

const void *dc_handle_read_parts(lua_State *L, dc_dsl *d, dc_handle *h, const dc_part *part, int n,
                                 const char *op)
{
    looking first = {.h = h};
    refuse_traced(L, d, h, op);
    dc_late_check(L, d, true);
    for (int i = 0; i < n; i++)
        first.bytes += (size_t)part[i].count * dc_dtype_size((dc_dtype)dc_handle_type(h)->dtype);
    transfer a = {.d = d, .h = h, .part = part, .n = n};
    if (dc_run_again(L, d, look_body, &first, NULL) != DC_OK)
        dc_handle_raise(L, d, &(dc_blame){0});
    a.to = lua_newuserdatauv(L, first.bytes > 0 ? first.bytes : 1, 0);
    if (dc_run_again(L, d, download_body, &a, NULL) != DC_OK)
        dc_handle_raise(L, d, &(dc_blame){0});
    return a.to;
}

const void *dc_handle_read(lua_State *L, dc_dsl *d, dc_handle *h, const char *op)
{
    const dc_part all = {0, dc_type_count(dc_handle_type(h))};
    return dc_handle_read_parts(L, d, h, &all, 1, op);
}

static dc_status upload_body(dc_job *j, void *arg)
{
    const transfer *a = arg;
    dc_device *dev = a->d->rt->device;
    dc_tensor *t;
    DC_TRY(dc_tensor_new(a->d->rt, j, a->type, &t));
    dc_handle_fill(a->h, t);
    if (a->from == NULL)
        return dc_storage_clear(t->store, j);
    const uint64_t begun = dc_span_begin(j->log);
    DC_TRY(dev->ops->upload(dev, j, dc_tensor_mem(t), a->from, dc_type_bytes(a->type)));
    tell_copy(j, begun, a->d->rt, "give to", (int64_t)dc_type_bytes(a->type));
    return DC_OK;
}

typedef struct copying {
    dc_handle *of, *h;
    dc_rt *to;
} copying;

static dc_status copy_body(dc_job *j, void *arg)
{
    const copying *a = arg;
    dc_tensor *from, *t;
    if (a->of->kind == DC_HANDLE_CELL) {
        DC_TRY(dc_cell_check(a->of->cell, j, NULL, true));
        from = dc_cell_show(a->of->cell);
        dc_tensor_defer(j, from);
        const dc_status status = dc_tensor_copy_to(a->to, j, from, &t);
        dc_job_keep(j, from);
        dc_tensor_release(from);
        DC_TRY(status);
    } else {
        DC_TRY(dc_handle_tensor(j, a->of, &from));
        DC_TRY(dc_tensor_copy_to(a->to, j, from, &t));
    }
    dc_handle_fill(a->h, t);
    return DC_OK;
}

void dc_handle_copy(lua_State *L, dc_dsl *d, dc_handle *of, dc_rt *to, dc_handle *h)
{
    copying a = {of, h, to};
    const dc_run_made made = {.out = &a.h, .nout = 1};
    if (dc_run_again(L, d, copy_body, &a, &made) != DC_OK)
        dc_handle_raise(L, d, &(dc_blame){0});
}

typedef struct admitting {
    dc_dsl *d;
    size_t bytes;
} admitting;

static dc_status admit_body(dc_job *j, void *arg)
{
    const admitting *a = arg;
    return dc_storage_admit(a->d->rt, j, a->bytes);
}

void *dc_handle_room(lua_State *L, dc_dsl *d, const dc_type *t)
{
    admitting a = {.d = d, .bytes = dc_type_bytes(t)};
    dc_error_check(L, d, dc_run_again(L, d, admit_body, &a, NULL));
    return lua_newuserdatauv(L, a.bytes > 0 ? a.bytes : 1, 0);
}

void dc_handle_upload(lua_State *L, dc_dsl *d, dc_handle *h, const dc_type *t, const void *from)
{
    transfer a = {.d = d, .h = h, .type = t, .from = from};
    dc_collector_step(L, d);
    const dc_run_made made = {.out = &a.h, .nout = 1};
    dc_error_check(L, d, dc_run_again(L, d, upload_body, &a, &made));
}
