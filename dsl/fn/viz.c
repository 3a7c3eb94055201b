/*
 * What extras/viz/viz.lua makes its page of: the executables that were called, as tables.
 *
 *   viz_begin()                  kernels are timed, and executables that were called stay, from now on
 *   viz_executables()            a list of { exec, name, where, device, calls, ... }, the oldest first
 *   viz_source(exec, n, form)    the text of kernel n, from 1, in a form of f:source
 *   viz_forget(f, ...)           calls of typed functions until now, as if there had been none
 *
 * Numbers of nodes, commands, parts and kernels count from 0 here, as in the page.
 */
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/viz_impl.h"

#include <string.h>

static void drop_executable(void *node)
{
    dc_viz_holder *h = node;
    if (h->exec == NULL)
        return;
    dc_exec_graph_free(&h->graph);
    dc_exec_release(h->exec);
    h->exec = NULL;
}

const dc_utype dc_fnviz_type = {.name = "deepc.executable", .drop = drop_executable};

/* ---- commands ---------------------------------------------------------------------------------- */

typedef struct binding {
    const dc_exec *e;
    uint32_t command, bind;
    dc_text *out;
} binding;

static dc_status bind_body(dc_job *j, void *arg)
{
    const binding *a = arg;
    DC_UNUSED(j);
    dc_exec_print_bind(a->e, a->command, a->bind, a->out);
    return DC_OK;
}

static void set_binds(lua_State *L, dc_dsl *d, const char *name, const dc_viz_holder *h,
                      uint32_t command, uint32_t from, uint32_t to)
{
    lua_newtable(L);
    for (uint32_t i = from; i < to; i++) {
        binding a = {h->exec, command, i, dc_fntext_push(L)};
        dc_run(L, d, bind_body, &a);
        dc_fntext_finish(L);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, name);
}

static void set_lines(lua_State *L, const char *const where[3])
{
    lua_newtable(L);
    for (int i = 0; i < 3 && where[i] != NULL; i++) {
        lua_pushstring(L, where[i]);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "lines");
}

static void set_computed(lua_State *L, const dc_viz_holder *h, uint32_t command)
{
    lua_newtable(L);
    if (h->graph.exact && h->graph.command[command].part != DC_EXEC_NONE) {
        const dc_exec_computed *x = &h->graph.command[command];
        for (uint32_t i = 0; i < x->n; i++)
            if (h->number[x->part][x->node[i]] != DC_EXEC_NONE)
                dc_viz_append_number(L, h->number[x->part][x->node[i]]);
    }
    lua_setfield(L, -2, "nodes");
}

static void push_command(lua_State *L, dc_dsl *d, const dc_viz_holder *h, uint32_t i)
{
    dc_exec_command c;
    dc_exec_command_of(h->exec, i, &c);
    lua_createtable(L, 0, 16);
    dc_viz_set_text(L, "kind", c.kind);
    dc_viz_set_text(L, "label", c.label);
    if (c.kernel >= 0)
        dc_viz_set_number(L, "kernel", (double)c.kernel);
    dc_viz_set_number(L, "grid", (double)c.grid);
    dc_viz_set_number(L, "flops", (double)c.flops);
    dc_viz_set_number(L, "bytes", (double)c.bytes);
    dc_viz_set_number(L, "ns", (double)c.ns);
    dc_viz_set_number(L, "runs", (double)c.runs);
    dc_viz_set_number(L, "body", c.nbody);
    dc_viz_set_number(L, "otherwise", c.nelse);
    dc_viz_set_flag(L, "prologue", c.prologue);
    dc_viz_set_flag(L, "bounded", c.bounded);
    dc_viz_set_flag(L, "inside", c.inside);
    set_lines(L, c.where);
    set_binds(L, d, "writes", h, i, 0, c.nout);
    set_binds(L, d, "reads", h, i, c.nout, c.nbind);
    set_computed(L, h, i);
}

static void set_commands(lua_State *L, dc_dsl *d, const dc_viz_holder *h)
{
    lua_newtable(L);
    for (uint32_t i = 0; i < dc_exec_command_count(h->exec); i++) {
        push_command(L, d, h, i);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "commands");
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* With what they hold where that is known. */
static void set_temps(lua_State *L, const dc_viz_holder *h)
{
    const dc_exec_graph *g = &h->graph;
    const uint32_t n = g->exact ? g->ntemp : dc_exec_temp_count(h->exec);
    lua_newtable(L);
    for (uint32_t i = 0; i < n; i++) {
        dc_exec_held t = {.part = DC_EXEC_NONE};
        if (g->exact) {
            t = g->temp[i];
        } else {
            const dc_exec_temp x = dc_exec_temp_of(h->exec, i);
            t.offset = x.offset;
            t.bytes = x.bytes;
            t.first = x.first;
            t.last = x.last;
        }
        lua_createtable(L, 0, 6);
        dc_viz_set_number(L, "offset", (double)t.offset);
        dc_viz_set_number(L, "bytes", (double)t.bytes);
        dc_viz_set_number(L, "first", t.first);
        dc_viz_set_number(L, "last", t.last);
        if (t.part != DC_EXEC_NONE && t.ref != 0 && h->number[t.part][t.ref] != DC_EXEC_NONE)
            dc_viz_set_number(L, "node", h->number[t.part][t.ref]);
        dc_viz_set_flag(L, "inner",
                        t.part != DC_EXEC_NONE && g->part[t.part].parent != DC_EXEC_NONE);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "temps");
}

/* Arguments, what was captured, cells. */
static void set_parameters(lua_State *L, const dc_viz_holder *h)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    bool set;
    lua_newtable(L);
    for (uint32_t i = 0; i < desc->nfree + desc->ncell; i++) {
        const dc_type t = dc_node_type(desc->fn, desc->fn->param.at[i]);
        lua_createtable(L, 0, 6);
        dc_viz_set_text(L, "name", desc->fn->label.at[i]);
        dc_viz_set_text(L, "role", i < desc->nfree ? dc_viz_role(desc, i) : "cell");
        dc_viz_set_type(L, &t);
        dc_viz_set_number(L, "bytes", dc_viz_type_bytes(&t));
        if (i >= desc->nfree) {
            const char *why = dc_exec_denied(h->exec, i - desc->nfree, &set);
            if (set)
                dc_viz_set_text(L, "set", why != NULL ? why : "in place");
        }
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "parameters");
}

static void set_results(lua_State *L, const dc_viz_holder *h)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    lua_newtable(L);
    for (uint32_t i = 0; i < desc->nresult; i++) {
        const dc_type t = dc_node_type(desc->fn, desc->fn->result.at[i]);
        lua_createtable(L, 0, 3);
        dc_viz_set_flag(L, "printed", i >= desc->nresult - desc->nprint);
        dc_viz_set_type(L, &t);
        dc_viz_set_number(L, "bytes", dc_viz_type_bytes(&t));
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "results");
}

static void set_derived(lua_State *L, const dc_viz_holder *h, uint32_t n)
{
    lua_newtable(L);
    for (uint32_t i = 0; i < n; i++) {
        const dc_exec_derived x = dc_exec_derived_of(h->exec, i);
        lua_createtable(L, 0, 3);
        dc_viz_set_text(L, "op", x.op);
        dc_viz_set_text(L, "type", x.type);
        dc_viz_set_text(L, "where", x.where);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "derived");
}

/* ---- executables ------------------------------------------------------------------------------- */

static void set_kernels(lua_State *L, const dc_viz_holder *h)
{
    lua_newtable(L);
    for (uint32_t k = 0; k < dc_exec_kernel_count(h->exec); k++) {
        dc_exec_kernel facts;
        dc_exec_kernel_of(h->exec, k, &facts);
        dc_fnreport_push_kernel(L, &facts, 0);
        if (facts.gain > 0)
            dc_viz_set_number(L, "gain", facts.gain);
        dc_viz_append(L);
    }
    lua_setfield(L, -2, "kernels");
}

static void set_facts(lua_State *L, const dc_viz_holder *h, const dc_exec_info *info)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    const dc_exec_calls calls = dc_exec_calls_of(h->exec);
    dc_viz_set_text(L, "name", desc->name);
    dc_viz_set_text(L, "where", desc->where);
    dc_viz_set_text(L, "device", dc_exec_device(h->exec));
    dc_viz_set_flag(L, "lazy", desc->once);
    dc_viz_set_flag(L, "interpreted", info->interpreted);
    dc_viz_set_number(L, "calls", (double)calls.calls);
    dc_viz_set_number(L, "prologues", (double)calls.prologues);
    dc_viz_set_number(L, "ns", (double)calls.ns);
    dc_viz_set_number(L, "launches", info->launches);
    dc_viz_set_number(L, "copies", info->copies);
    dc_viz_set_number(L, "arena", (double)info->arena_bytes);
    dc_viz_set_number(L, "least", (double)info->arena_lower_bound);
    dc_viz_set_number(L, "derived_bytes", (double)info->derived_bytes);
}

/* The executable of the dc_viz_holder on top, as a table on top of it. */
static void push_executable(lua_State *L, dc_dsl *d, dc_viz_holder *h)
{
    dc_exec_info info;
    dc_exec_info_of(h->exec, &info);
    dc_run(L, d, dc_viz_number_body, h);
    lua_createtable(L, 0, 24);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "exec");
    set_facts(L, h, &info);
    set_parameters(L, h);
    set_results(L, h);
    set_derived(L, h, info.interpreted ? 0 : info.derived);
    dc_viz_set_parts(L, h);
    dc_viz_set_nodes(L, h);
    set_commands(L, d, h);
    set_kernels(L, h);
    set_temps(L, h);
    dc_exec_graph_free(&h->graph);
}

/* Retains all that were called, before anything runs that could free one. */
static int push_holders(lua_State *L)
{
    const dc_dsl *d = dc_dsl_of(L);
    luaL_checkstack(L, 8, "executables");
    lua_newtable(L);
    for (dc_exec *e = dc_exec_next(d->rt, NULL); e != NULL; e = dc_exec_next(d->rt, e)) {
        if (dc_exec_calls_of(e).calls == 0)
            continue;
        dc_viz_holder *h = dc_udata_new(L, &dc_fnviz_type, sizeof *h, 0);
        h->exec = dc_exec_retain(e);
        dc_viz_append(L);
    }
    return 1;
}

static int l_executables(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 0);
    dc_collector_hold(L, push_holders);
    const int list = lua_gettop(L);
    lua_newtable(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, list); i > 0; i--) {
        lua_rawgeti(L, list, i);
        push_executable(L, d, dc_udata_check(L, -1, &dc_fnviz_type));
        lua_remove(L, -2);
        dc_viz_append(L);
    }
    return 1;
}

/* ---- source ------------------------------------------------------------------------------------ */

typedef struct reading {
    dc_viz_holder *h;
    uint32_t kernel;
    dc_form form;
    dc_text *out;
} reading;

static dc_status source_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    return dc_exec_source(a->h->exec, j, a->kernel, a->form, a->out);
}

static int l_source(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    reading a = {.h = dc_udata_check(L, 1, &dc_fnviz_type)};
    const lua_Integer n = luaL_checkinteger(L, 2);
    luaL_argcheck(L, n >= 1 && n <= (lua_Integer)dc_exec_kernel_count(a.h->exec), 2, "a kernel");
    luaL_argcheck(L, dc_form_find(luaL_checkstring(L, 3), &a.form), 3, "a form");
    a.kernel = (uint32_t)n - 1;
    a.out = dc_fntext_push(L);
    dc_run(L, d, source_body, &a);
    dc_fntext_finish(L);
    return 1;
}

static int l_forget(lua_State *L)
{
    for (int f = lua_gettop(L); f > 0; f--) {
        dc_fn_check(L, f);
        dc_fn_push_specs(L, f);
        for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
            lua_rawgeti(L, -1, i);
            const dc_spec *s = dc_spec_at(L, -1);
            if (s->exec != NULL && dc_exec_calls_of(s->exec).calls > 0)
                dc_exec_forget_times(s->exec);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    return 0;
}

static int l_begin(lua_State *L)
{
    dc_rt *rt = dc_dsl_of(L)->rt;
    rt->measure = true;
    dc_exec_keep(rt);
    return 0;
}

static const dc_binding rows[] = {
    {"viz_begin", l_begin, DC_ANY, DC_IN_LIBRARY},
    {"viz_executables", l_executables, DC_ANY, DC_IN_LIBRARY},
    {"viz_source", l_source, DC_ANY, DC_IN_LIBRARY},
    {"viz_forget", l_forget, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fnviz_bindings = DC_BINDINGS(rows);
