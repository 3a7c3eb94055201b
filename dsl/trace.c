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
#include "dsl/impl.h"

#include <limits.h>
#include <string.h>

dc_trace *dc_trace_new(dc_dsl *d, const char *name, const char *where)
{
    dc_trace *t = dc_xalloc(sizeof *t);
    t->d = d;
    t->name = name;
    t->where = where;
    t->serial = ++d->serial;
    t->module = dc_module_new();
    t->f = dc_func_new(t->module, name);
    return t;
}

void dc_trace_free(dc_trace *t)
{
    if (t == NULL)
        return;
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
    DC_VEC_FREE(t->check);
    DC_VEC_FREE(t->result);
    dc_module_free(t->module);
    dc_xfree(t);
}

void dc_trace_settle(dc_trace *t)
{
    dc_module_free(t->module);
    t->module = NULL;
    t->f = NULL;
}

int dc_trace_depth(lua_State *L)
{
    lua_Debug ar;
    int n = 0;
    while (lua_getstack(L, n, &ar))
        n++;
    return n;
}

dc_trace *dc_trace_here(lua_State *L, const dc_dsl *d)
{
    dc_trace *t = d->trace;
    lua_Debug ar;
    if (t == NULL)
        return NULL;
    const int inside = L == t->L ? dc_trace_depth(L) - t->depth : INT_MAX;
    for (int level = 0; level < inside && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "n", &ar);
        if (strcmp(ar.namewhat, "metamethod") == 0 && strcmp(ar.name, "__gc") == 0)
            return NULL;
    }
    return t;
}

static dc_ref capture(dc_trace *t, dc_tensor *tensor, const char *origin)
{
    for (uint32_t i = 0; i < t->captured.n; i++)
        if (t->captured.at[i].tensor == tensor)
            return t->captured.at[i].ref;
    const dc_ref ref = dc_g_param(t->f, &tensor->type, origin != NULL ? origin : "captured");
    DC_PUSH(t->captured, ((dc_trace_capture){.tensor = tensor, .ref = ref}));
    dc_tensor_retain(tensor);
    return ref;
}

/* A lazy tensor without a value gets one at the first call. */
static dc_ref capture_lazy(dc_trace *t, dc_lazy *n, const char *origin)
{
    if (n->value != NULL)
        return capture(t, n->value, origin);
    for (uint32_t i = 0; i < t->captured.n; i++)
        if (t->captured.at[i].lazy == n)
            return t->captured.at[i].ref;
    const dc_ref ref = dc_g_param(t->f, &n->type, origin != NULL ? origin : "captured");
    DC_PUSH(t->captured, ((dc_trace_capture){.lazy = n, .ref = ref}));
    dc_lazy_retain(n);
    return ref;
}

dc_trace_cell *dc_trace_cell_of(dc_trace *t, dc_cell *c)
{
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].cell == c)
            return &t->cell.at[i];
    const dc_val v = {dc_g_param(t->f, &c->type, c->label != NULL ? c->label : "cell"), c->type};
    DC_PUSH(t->cell, ((dc_trace_cell){.cell = c}));
    dc_cell_retain(c);
    dc_trace_cell *entry = &t->cell.at[t->cell.n - 1];
    DC_PUSH(entry->read, v);
    return entry;
}

dc_status dc_trace_value(dc_job *j, dc_trace *t, dc_handle *h, dc_val *out)
{
    switch (h->kind) {
    case DC_HANDLE_VALUE:
        *out = (dc_val){capture(t, h->tensor, h->origin), h->tensor->type};
        return DC_OK;
    case DC_HANDLE_LAZY:
        *out = (dc_val){capture_lazy(t, h->lazy, h->origin), h->lazy->type};
        return DC_OK;
    case DC_HANDLE_CELL: {
        const dc_trace_cell *entry = dc_trace_cell_of(t, h->cell);
        *out = entry->read.at[entry->read.n - 1];
        return DC_OK;
    }
    case DC_HANDLE_TRACED:
        if (h->serial != t->serial)
            return dc_fail(j, DC_ERR_LEAKED, &(dc_fact){.word = {h->fn}});
        *out = h->val;
        return DC_OK;
    case DC_HANDLE_CLOSED:
        break;
    }
    DC_BUG("the value of a closed handle");
}

/* ---- the closed function --------------------------------------------------------------------- */

static void move_param(dc_func *to, const dc_func *from, dc_ref r, dc_ref *map)
{
    const int64_t index = dc_node_at(from, r)->attr[0];
    const dc_type type = dc_node_type(from, r);
    map[r] = dc_g_param(to, &type, from->label.at[index]);
}

static void copy_nodes(dc_func *to, const dc_func *from, const bool *live, dc_ref *map)
{
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        dc_ref in[DC_APPLY_IN];
        if (!live[r] || map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_type type = dc_node_type(from, r);
        map[r] = dc_g_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &type);
        dc_func_copy_origin(to, map[r], from, r);
    }
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
    const bool *live = dc_func_live(from, &t->module->arena);
    for (uint32_t i = 0; i < t->arg.n; i++)
        move_param(to, from, t->arg.at[i], map);
    for (uint32_t i = 0; i < t->captured.n; i++)
        move_param(to, from, t->captured.at[i].ref, map);
    for (uint32_t i = 0; i < t->cell.n; i++)
        move_param(to, from, t->cell.at[i].read.at[0].ref, map);
    copy_nodes(to, from, live, map);
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(to->result, map[from->result.at[i]]);
    return to;
}
