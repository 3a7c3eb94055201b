/*
 * The graph of one specialisation, as it was traced, as one table: what modules that write it in a language of others
 * start from.
 *
 *   function_graph(f, op [, sizes])   op: who asks, for messages; sizes: as f:check takes them; nil: of the only
 *                                     specialisation that there is
 *
 * The table has
 *
 *   name, where       of the function
 *   function, bodies  the graph; bodies of loops and branches by the number that attributes have
 *   values            of each parameter { role = "argument", "captured", "parameter", "state" or "generator", type =,
 *                     value = of those that are no arguments, a tensor or a cell, complex = true }
 *   results           of each result that calls return { complex = true or nil }; what dc.print shows is behind them,
 *   printed           so many; then new values of cells; checks are last
 *   sets              of each new value of a cell the number of its parameter
 *
 * and a graph { nodes =, parameters =, labels =, results = }: lists; parameters and results are numbers of nodes, operands
 * have smaller ones than their users. A node is { op =, dtype =, shape =, operands =, attributes =, where =, path = }, whose
 * attributes are those of core/ir/ops.def: axes count from 0, constants are patterns.
 */
#include "core/ir/control.h"
#include "core/runtime/devices.h"
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"

#include <string.h>

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Which bodies are pushed already, by number in the module. */
typedef struct bodies {
    const dc_module *module;
    int idx; /* of their table */
} bodies;

static void push_integers(lua_State *L, const int64_t *at, int n)
{
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)at[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_refs(lua_State *L, const dc_ref *at, uint32_t n)
{
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)at[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_node(lua_State *L, const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    const dc_origin *o = n->origin != 0 ? &f->origins.at[n->origin] : NULL;
    lua_createtable(L, 0, 7);
    dc_report_set_text(L, "op", dc_op_row_of((dc_op)n->op)->name);
    dc_report_set_text(L, "dtype", dc_dtype_name((dc_dtype)n->dtype));
    push_integers(L, n->dim, n->rank);
    lua_setfield(L, -2, "shape");
    push_refs(L, n->in, n->nin);
    lua_setfield(L, -2, "operands");
    push_integers(L, n->attr, n->nattr);
    lua_setfield(L, -2, "attributes");
    dc_report_set_text(L, "where", o != NULL ? o->where : NULL);
    dc_report_set_text(L, "path", o != NULL ? o->path : NULL);
}

static void push_graph(lua_State *L, const dc_func *f)
{
    lua_createtable(L, 0, 4);
    lua_createtable(L, (int)f->node.n, 0);
    for (dc_ref r = 1; r < f->node.n; r++) {
        push_node(L, f, r);
        lua_rawseti(L, -2, (lua_Integer)r);
    }
    lua_setfield(L, -2, "nodes");
    push_refs(L, f->param.at, f->param.n);
    lua_setfield(L, -2, "parameters");
    push_refs(L, f->result.at, f->result.n);
    lua_setfield(L, -2, "results");
    lua_createtable(L, (int)f->label.n, 0);
    for (uint32_t i = 0; i < f->label.n; i++) {
        lua_pushstring(L, f->label.at[i] != NULL ? f->label.at[i] : "");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "labels");
}

/* Bodies name bodies with smaller numbers alone, so that this comes to an end. */
static void set_bodies(lua_State *L, const bodies *b, const dc_func *f)
{
    luaL_checkstack(L, 16, "bodies of loops");
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        for (int i = 0; i < dc_node_bodies(n); i++) {
            const dc_func *body = dc_body_at(b->module, n->attr[i]);
            const bool known = lua_rawgeti(L, b->idx, (lua_Integer)n->attr[i]) != LUA_TNIL;
            lua_pop(L, 1);
            if (known)
                continue;
            push_graph(L, body);
            lua_rawseti(L, b->idx, (lua_Integer)n->attr[i]);
            set_bodies(L, b, body);
        }
    }
}

/* ---- what its parameters are ------------------------------------------------------------------ */

typedef struct lending {
    dc_handle *h;
    dc_cell *cell; /* one of these */
    dc_tensor *tensor;
} lending;

static dc_status lend_body(dc_job *j, void *arg)
{
    const lending *a = arg;
    DC_UNUSED(j);
    if (a->cell != NULL)
        dc_handle_fill_cell(a->h, dc_cell_retain(a->cell));
    else
        dc_handle_fill(a->h, dc_tensor_retain(a->tensor));
    return DC_OK;
}

/* The field `value` of the table on top. */
static void set_value(lua_State *L, dc_dsl *d, dc_cell *cell, dc_tensor *tensor)
{
    lending a = {dc_handle_new(L, d), cell, tensor};
    dc_run(L, d, lend_body, &a);
    lua_setfield(L, -2, "value");
}

static const char *role_of(const dc_spec *s, const dc_cell *c)
{
    return c == s->generator ? "generator" : c->trainable || c->frozen ? "parameter" : "state";
}

static void push_values(lua_State *L, dc_dsl *d, const dc_spec *s)
{
    const dc_trace *t = s->trace;
    lua_createtable(L, (int)(s->nleaf + t->captured.n + t->cell.n), 0);
    for (uint32_t i = 0; i < s->nleaf; i++) {
        lua_createtable(L, 0, 4);
        dc_report_set_text(L, "role", "argument");
        dc_report_set_flag(L, "complex", dc_dtype_is_complex((dc_dtype)s->declared.at[i]->dtype));
        dc_report_append(L);
    }
    for (uint32_t i = 0; i < t->captured.n; i++) {
        dc_tensor *x = t->captured.at[i].tensor;
        lua_createtable(L, 0, 4);
        dc_report_set_text(L, "role", "captured");
        dc_report_set_flag(L, "complex", dc_dtype_is_complex((dc_dtype)x->type.dtype));
        set_value(L, d, NULL, x);
        dc_report_append(L);
    }
    for (uint32_t i = 0; i < t->cell.n; i++) {
        dc_cell *c = t->cell.at[i].cell;
        lua_createtable(L, 0, 4);
        dc_report_set_text(L, "role", role_of(s, c));
        dc_report_set_text(L, "label", c->label);
        dc_report_set_flag(L, "complex", dc_dtype_is_complex((dc_dtype)c->type.dtype));
        set_value(L, d, c, NULL);
        dc_report_append(L);
    }
}

static void push_results(lua_State *L, const dc_spec *s)
{
    lua_createtable(L, (int)s->nresult, 0);
    for (uint32_t i = 0; i < s->nresult; i++) {
        const dc_dtype t = (dc_dtype)s->trace->result.at[i].type.dtype;
        lua_createtable(L, 0, 1);
        dc_report_set_flag(L, "complex", dc_dtype_is_complex(t));
        dc_report_append(L);
    }
}

/* ---- the binding ------------------------------------------------------------------------------ */

typedef struct readying {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    const char *op;
} readying;

/* Captured tensors have values then, and so have cells. */
static dc_status ready_body(dc_job *j, void *arg)
{
    const readying *a = arg;
    DC_TRY(dc_spec_ready(a->d, j, a->s));
    for (uint32_t c = 0; c < a->s->trace->cell.n; c++)
        DC_TRY(dc_cell_check(a->s->trace->cell.at[c].cell, j, a->op, true));
    if (a->s->nplace > 0)
        return dc_failf(j, DC_ERR_SHARDING, a->op,
                        "a program of one rank is written, and ranks share what '%s' computes",
                        a->fn->name);
    return DC_OK;
}

/* Of the specialisation on top. */
static int push_description(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = dc_fn_check(L, 1);
    const dc_spec *s = dc_spec_at(L, -1);
    const dc_exec_desc *desc = dc_exec_desc_of(s->exec);
    luaL_checkstack(L, 16, fn->name);
    lua_createtable(L, 0, 8);
    dc_report_set_text(L, "name", fn->name);
    dc_report_set_text(L, "where", s->trace->where);
    lua_newtable(L);
    const bodies b = {desc->fn->module, lua_gettop(L)};
    set_bodies(L, &b, desc->fn);
    lua_setfield(L, -2, "bodies");
    push_graph(L, desc->fn);
    lua_setfield(L, -2, "function");
    push_values(L, d, s);
    lua_setfield(L, -2, "values");
    push_results(L, s);
    lua_setfield(L, -2, "results");
    dc_report_set_number(L, "printed", (double)desc->nprint);
    lua_createtable(L, (int)desc->nset, 0);
    for (uint32_t i = 0; i < desc->nset; i++)
        dc_report_append_number(L, (double)(desc->nfree + desc->set[i]) + 1);
    lua_setfield(L, -2, "sets");
    return 1;
}

static int l_function_graph(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn *fn = dc_fn_check(L, 1);
    const char *op = luaL_checkstring(L, 2);
    luaL_checkstack(L, 16, op);
    lua_settop(L, lua_isnoneornil(L, 3) ? 2 : 3);
    dc_fn_push_meant(L, d, fn, 3, op);
    const int list = lua_gettop(L);
    if (lua_rawlen(L, list) != 1)
        dc_error_raisef(L, d, DC_ERR_ARG, op,
                        "'%s' was compiled for %s: its sizes, { batch = 1 }, say which is meant",
                        fn->name, lua_rawlen(L, list) == 0 ? "no sizes yet" : "several sizes");
    lua_rawgeti(L, list, 1);
    dc_spec *s = dc_spec_at(L, -1);
    dc_fn_check_fixed(L, d, fn, s, op);
    readying a = {d, fn, s, op};
    dc_run(L, d, ready_body, &a);
    return dc_collector_hold(L, push_description); /* a finalizer might drop the specialisation */
}

static const dc_binding rows[] = {
    {"function_graph", l_function_graph, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fngraph_bindings = DC_BINDINGS(rows);
