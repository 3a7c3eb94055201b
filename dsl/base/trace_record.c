/*
 * Tracing: what a typed function did, as a closed function of core/.
 *
 * While the body runs, parameters are made as they are met: arguments first, then captured tensors
 * and cells in any order. dc_trace_close writes the function again with them in the order that
 * executables want (jit/jit.h).
 *
 * Each set of a cell leaves a new version: the value behind a stop_gradient, so that it is a leaf
 * for gradients taken later, while an older loss still finds the version that it read.
 */
#include "core/autodiff/custom.h"
#include "core/runtime/devices.h"
#include "core/runtime/outcome.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"

#include <string.h>

static void release_trace(void *t)
{
    dc_trace_free(t);
}

dc_trace *dc_trace_new(dc_dsl *d, const char *name, const char *where)
{
    dc_job *j = dc_job_here();
    dc_trace *t = dc_xalloc(sizeof *t);
    dc_job_defer(j, release_trace, t);
    t->d = d;
    t->name = name;
    t->where = where;
    t->serial = ++d->serial;
    t->born = d->born;
    t->cells = d->rt->next_cell;
    t->module = dc_module_new();
    t->module->extents = d->rt->extents;
    t->f = dc_func_new(t->module, name);
    dc_job_keep(j, t);
    return t;
}

void dc_trace_free(dc_trace *t)
{
    if (t == NULL)
        return;
    for (dc_trace **at = &t->d->trace; *at != NULL; at = &(*at)->outer)
        if (*at == t) { /* of a coroutine whose variables could not be closed */
            *at = t->outer;
            break;
        }
    for (uint32_t i = 0; i < t->captured.n; i++) {
        dc_tensor_release(t->captured.at[i].tensor);
        dc_lazy_release(t->captured.at[i].lazy);
    }
    for (uint32_t i = 0; i < t->cell.n; i++) {
        dc_cell_release(t->cell.at[i].cell);
        DC_VEC_FREE(t->cell.at[i].read);
    }
    DC_VEC_FREE(t->arg);
    DC_VEC_FREE(t->captured);
    DC_VEC_FREE(t->cell);
    dc_ptrmap_free(&t->known);
    DC_VEC_FREE(t->check);
    DC_VEC_FREE(t->result);
    DC_VEC_FREE(t->print);
    DC_VEC_FREE(t->dep);
    dc_uses_free(&t->uses);
    dc_module_free(t->module);
    dc_xfree(t);
}

void dc_trace_settle(dc_trace *t)
{
    dc_module_free(t->module);
    t->module = NULL;
    t->f = NULL;
}

/* Of the bytes of a tensor: one that the body makes is another one in each trace. */
static dc_status content_id(dc_job *j, const dc_tensor *t, uint64_t *out)
{
    dc_device *dev = t->store->rt->device;
    const size_t bytes = dc_type_bytes(&t->type);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *copy = dc_arena_alloc(&j->scratch, bytes + 8);
    DC_TRY(dc_outcome_settle(t->store, j));
    DC_TRY(dev->ops->download(dev, j, copy, dc_tensor_mem(t), bytes));
    *out = dc_hash_mix(t->type.dtype, bytes);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = dc_piece_of(bytes - at);
        DC_TRY(dc_job_ended(j));
        *out = dc_hash_bytes(*out, copy + at, n);
    }
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

/* ---- where it lies --------------------------------------------------------------------------- */

dc_status dc_trace_lies(dc_job *j, dc_trace *t, dc_rt *rt, const char *what)
{
    if (t->rt == rt)
        return DC_OK;
    if (t->rt == NULL) {
        t->rt = rt;
        const dc_mark mark = dc_arena_mark(&j->scratch);
        t->told = dc_name_intern_text(t->d->rt->names, dc_arena_printf(&j->scratch, "%s is", what));
        dc_arena_rewind(&j->scratch, mark);
        return DC_OK;
    }
    return dc_failf(j, DC_ERR_DEVICES, t->name, "'%s' computes on %s, where %s, and %s is on %s",
                    t->name, t->rt->device_name, t->told, what, rt->device_name);
}

dc_status dc_trace_cell_lies(dc_job *j, dc_trace *t, const dc_cell *c)
{
    if (t->rt == c->rt || c == t->d->generator || c->id > t->cells)
        return DC_OK;
    return dc_trace_lies(j, t, c->rt,
                         c->label != NULL ? c->label
                         : c->trainable   ? "a parameter"
                                          : "a state");
}

static dc_status bring_capture(dc_job *j, dc_trace *t, dc_trace_capture *c)
{
    dc_tensor *there;
    if (c->tensor == NULL || c->tensor->store->rt == t->rt)
        return DC_OK;
    DC_TRY(dc_tensor_copy_to(t->rt, j, c->tensor, &there));
    dc_tensor_release(c->tensor);
    c->tensor = there;
    return DC_OK;
}

dc_status dc_trace_place(dc_job *j, dc_trace *t, bool move)
{
    if (t->rt == NULL)
        t->rt = t->d->rt;
    for (uint32_t i = 0; i < t->captured.n; i++)
        DC_TRY(bring_capture(j, t, &t->captured.at[i]));
    for (uint32_t i = 0; i < t->cell.n; i++) {
        dc_cell *c = t->cell.at[i].cell;
        DC_TRY(dc_trace_cell_lies(j, t, c));
        if (move && c->id > t->cells && c != t->d->generator)
            DC_TRY(dc_cell_move(c, j, t->rt));
    }
    return DC_OK;
}

/* ---- what it reads --------------------------------------------------------------------------- */

/* A tensor is captured once; a lazy one gets its value at the first call. */
static dc_status capture(dc_job *j, dc_trace *t, dc_handle *h, dc_val *out)
{
    dc_tensor *tensor = dc_handle_held(h);
    const bool inside = h->born > t->born;
    dc_trace_capture c = {.id = h->born};
    if (inside)
        DC_TRY(dc_handle_tensor(j, h, &tensor));
    else if (!dc_handle_roams(h))
        DC_TRY(dc_trace_lies(j, t, dc_handle_rt(h), "a tensor that it captures"));
    out->type = *dc_handle_type(h);
    const void *key = tensor != NULL ? (const void *)tensor : h->lazy;
    uint32_t at;
    if (dc_ptrmap_find(&t->known, key, &at)) {
        out->ref = t->captured.at[at].ref;
        return DC_OK;
    }
    if (inside)
        DC_TRY(content_id(j, tensor, &c.id));
    out->ref = c.ref = dc_graph_param(t->f, &out->type, h->origin != NULL ? h->origin : "captured");
    c.tensor = tensor;
    c.lazy = tensor == NULL ? h->lazy : NULL;
    DC_ROOM(t->captured);
    dc_ptrmap_add(&t->known, key, t->captured.n);
    DC_PUSH(t->captured, c);
    if (tensor != NULL)
        dc_tensor_retain(tensor);
    else
        dc_lazy_retain(h->lazy);
    return DC_OK;
}

dc_trace_cell *dc_trace_cell_of(dc_trace *t, dc_cell *c)
{
    uint32_t at;
    if (dc_ptrmap_find(&t->known, c, &at))
        return &t->cell.at[at];
    const dc_type type = c->growth != NULL ? c->growth->inside : *dc_cell_whole(c);
    const dc_val v = {dc_graph_param(t->f, &type, c->label != NULL ? c->label : "cell"), type};
    dc_trace_cell entry = {.cell = c};
    DC_ROOM(t->cell); /* an entry without a value is never seen */
    dc_ptrmap_add(&t->known, c, t->cell.n);
    DC_PUSH(entry.read, v);
    DC_PUSH(t->cell, entry);
    dc_cell_retain(c);
    return &t->cell.at[t->cell.n - 1];
}

const dc_type *dc_trace_growing(dc_dsl *d, dc_cell *c)
{
    const dc_trace *t = d->trace != NULL ? dc_trace_here(d->trace->L, d) : NULL;
    uint32_t at;
    if (t == NULL)
        return &c->type;
    if (c->growth == NULL)
        return dc_cell_whole(c);
    const bool known = dc_ptrmap_find(&t->known, c, &at);
    c->growth->shown = known ? *dc_trace_cell_type(&t->cell.at[at]) : c->growth->inside;
    return &c->growth->shown;
}

static dc_status refuse_left(dc_job *j, const dc_trace_body *b)
{
    return dc_fail(j, b->loop ? DC_ERR_LEFT_LOOP : DC_ERR_LEFT_BRANCH,
                   &(dc_fact){.word = {b->op, b->where != NULL ? b->where : "?"}});
}

dc_status dc_trace_value(dc_job *j, dc_trace *t, dc_handle *h, dc_val *out)
{
    switch (h->kind) {
    case DC_HANDLE_VALUE:
    case DC_HANDLE_LAZY:
        return capture(j, t, h, out);
    case DC_HANDLE_CELL: {
        DC_TRY(dc_trace_cell_lies(j, t, h->cell));
        const dc_trace_cell *entry = dc_trace_cell_of(t, h->cell);
        *out = entry->read.at[entry->read.n - 1];
        return DC_OK;
    }
    case DC_HANDLE_TRACED:
        if (h->serial != t->serial)
            return dc_fail(j, DC_ERR_LEAKED, &(dc_fact){.word = {h->fn}});
        if (t->left != NULL && dc_trace_body_left(t, h->born) != NULL)
            return refuse_left(j, dc_trace_body_left(t, h->born));
        dc_uses_mark(h);
        *out = h->val;
        return DC_OK;
    case DC_HANDLE_CLOSED: /* by a finalizer, since it was looked at */
        break;
    }
    return dc_failf(j, DC_ERR_CLOSED, NULL, "the tensor is closed");
}

typedef struct reading {
    dc_trace *t;
    const dc_operand *in;
    dc_val out;
} reading;

static dc_status read_operand_body(dc_job *j, void *arg)
{
    reading *a = arg;
    return a->in->h != NULL ? dc_trace_value(j, a->t, a->in->h, &a->out)
                            : dc_build_bits(j, a->t->f, &a->in->type, a->in->bits, &a->out);
}

dc_val dc_trace_operand(lua_State *L, dc_trace *t, const dc_operand *in)
{
    reading a = {.t = t, .in = in};
    dc_run(L, t->d, read_operand_body, &a);
    return a.out;
}

/* ---- what it keeps in Lua --------------------------------------------------------------------- */

void dc_trace_push_refs(lua_State *L, const dc_trace *t)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, t);
}

int dc_trace_hold(lua_State *L, const dc_trace *t, int idx)
{
    idx = lua_absindex(L, idx);
    dc_trace_push_refs(L, t);
    const int n = (int)lua_rawlen(L, -1) + 1;
    lua_pushvalue(L, idx);
    lua_rawseti(L, -2, n);
    lua_pop(L, 1);
    return n;
}

/* Pushes the subtable of the references on top. */
static void push_part(lua_State *L, const char *name)
{
    if (lua_getfield(L, -1, name) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
}

void dc_trace_push_prints(lua_State *L, const dc_trace *t)
{
    dc_trace_push_refs(L, t);
    push_part(L, "prints");
    lua_remove(L, -2);
}

/* Pushes "state@train.lua:12#3"; counts only where `next` is asked for. The references are on top. */
static void push_cell_key(lua_State *L, const char *op, const dc_place *place, bool next)
{
    const int refs = lua_gettop(L);
    push_part(L, "count");
    lua_pushfstring(L, "%s@%s", op, place->where != NULL ? place->where : "?");
    lua_pushvalue(L, -1);
    lua_rawget(L, refs + 1);
    const lua_Integer n = lua_tointeger(L, -1) + next;
    lua_pushvalue(L, refs + 2);
    lua_pushinteger(L, n);
    lua_rawset(L, refs + 1);
    lua_pushfstring(L, "%s#%d", lua_tostring(L, refs + 2), (int)n);
    lua_replace(L, refs + 1);
    lua_settop(L, refs + 1);
}

bool dc_trace_made(lua_State *L, dc_dsl *d, const char *op, const dc_place *place, const dc_type *t)
{
    const int top = lua_gettop(L);
    if (dc_trace_here(L, d) == NULL)
        return false;
    luaL_checkstack(L, 12, "a cell");
    dc_trace_push_refs(L, d->trace);
    lua_getfield(L, top + 1, "made");
    lua_pushvalue(L, top + 1);
    push_cell_key(L, op, place, true);
    lua_rawget(L, top + 2);
    dc_handle *h = dc_handle_test(L, -1);
    if (h == NULL || h->kind != DC_HANDLE_CELL) {
        lua_settop(L, top);
        return false;
    }
    const dc_type made = dc_cell_room_type(h->cell); /* as t is of one that grows */
    if (!dc_type_same(&made, t)) {
        const dc_fact f = {.op = op, .type = {h->cell->type, *t}, .word = {"the cell made here"}};
        dc_error_fact(L, d, DC_ERR_CELL_TYPE, &f,
                      &(dc_blame){.hint = "one cell serves all specialisations; make it outside"});
    }
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return true;
}

void dc_trace_keep(lua_State *L, dc_dsl *d, const char *op, const dc_place *place)
{
    const int cell = lua_gettop(L);
    if (dc_trace_here(L, d) == NULL)
        return;
    dc_trace_push_refs(L, d->trace);
    push_part(L, "fresh");
    lua_pushvalue(L, cell + 1);
    push_cell_key(L, op, place, false);
    lua_pushvalue(L, cell);
    lua_rawset(L, cell + 2);
    lua_settop(L, cell);
}

void dc_trace_commit(lua_State *L, int refs)
{
    static const char *const done[] = {"made", "fresh", "count", "prints"};
    lua_getfield(L, refs, "made");
    if (lua_getfield(L, refs, "fresh") == LUA_TTABLE)
        for (lua_pushnil(L); lua_next(L, -2) != 0;) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -5);
        }
    for (size_t i = 0; i < DC_COUNTOF(done); i++) {
        lua_pushnil(L);
        lua_setfield(L, refs, done[i]);
    }
    lua_settop(L, refs);
}

/* ---- the closed function --------------------------------------------------------------------- */

static void move_param(dc_func *to, const dc_func *from, dc_ref r, dc_ref *map)
{
    const int64_t index = dc_node_at(from, r)->attr[0];
    const dc_type type = dc_node_type(from, r);
    map[r] = dc_graph_param(to, &type, from->label.at[index]);
}

static void list_results(dc_trace *t, dc_func *f)
{
    for (uint32_t i = 0; i < t->result.n; i++)
        DC_PUSH(f->result, t->result.at[i].ref);
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set)
            DC_PUSH(f->result, t->cell.at[i].set.ref);
    for (uint32_t i = 0; i < t->check.n; i++) {
        DC_PUSH(f->result, t->check.at[i].position);
        DC_PUSH(f->result, t->check.at[i].value);
    }
}

dc_func *dc_trace_close(dc_trace *t)
{
    dc_func *from = t->f, *to = dc_func_new(t->module, t->name);
    list_results(t, from);
    dc_ref *map = DC_NEW_ARRAY(&t->module->arena, dc_ref, from->node.n);
    for (uint32_t i = 0; i < t->arg.n; i++)
        move_param(to, from, t->arg.at[i], map);
    for (uint32_t i = 0; i < t->captured.n; i++)
        move_param(to, from, t->captured.at[i].ref, map);
    for (uint32_t i = 0; i < t->cell.n; i++)
        move_param(to, from, t->cell.at[i].read.at[0].ref, map);
    dc_custom_strip(to, from, map); /* no gradient is taken any more */
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(to->result, map[from->result.at[i]]);
    return to;
}
