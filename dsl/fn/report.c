/*
 * What an executable is, as one table: what stdlib/report.lua writes its texts of, stdlib/graphs.lua its graphs, and
 * extras/viz/viz.lua its page.
 *
 *   report_begin()                kernels are timed, and executables that were called stay, from now on
 *   executables()                 a list of reports { exec, name, where, device, calls, ... } with their graphs, the
 *                                 oldest first
 *   executable_source(exec, n, form)   the text of kernel n in a form of f:source
 *   report_forget(f, ...)         calls of typed functions until now, as if there had been none
 *
 * docs/profiling.md lists the fields. What is numbered counts from 1.
 */
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"

#include <string.h>

static void drop_executable(void *node)
{
    dc_report_holder *h = node;
    if (h->exec == NULL)
        return;
    dc_exec_graph_free(&h->graph);
    dc_exec_release(h->exec);
    h->exec = NULL;
}

const dc_utype dc_executable_type = {.name = "deepc.executable", .drop = drop_executable};

dc_report_holder *dc_report_holder_push(lua_State *L, dc_exec *e)
{
    dc_report_holder *h = dc_udata_new(L, &dc_executable_type, sizeof *h, 0);
    h->exec = dc_exec_retain(e);
    return h;
}

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

static void set_binds(lua_State *L, dc_dsl *d, const char *name, const dc_report_holder *h,
                      uint32_t command, uint32_t from, uint32_t n)
{
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = from; i < from + n; i++) {
        binding a = {h->exec, command, i, dc_fntext_push(L)};
        dc_run(L, d, bind_body, &a);
        dc_fntext_finish(L);
        dc_report_append(L);
    }
    lua_setfield(L, -2, name);
}

static void set_lines(lua_State *L, const char *const where[3])
{
    lua_newtable(L);
    for (int i = 0; i < 3 && where[i] != NULL; i++) {
        lua_pushstring(L, where[i]);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "lines");
}

static void set_computed(lua_State *L, const dc_report_holder *h, uint32_t command)
{
    if (!h->graph.exact)
        return;
    const dc_exec_computed *x = &h->graph.command[command];
    lua_newtable(L);
    for (uint32_t i = 0; x->part != DC_EXEC_NONE && i < x->n; i++)
        if (h->number[x->part][x->node[i]] != 0)
            dc_report_append_number(L, h->number[x->part][x->node[i]]);
    lua_setfield(L, -2, "nodes");
}

/* Kernels that a launch was joined of. */
static void set_joined(lua_State *L, dc_dsl *d, const dc_report_holder *h, uint32_t command,
                       const dc_exec_command *c)
{
    uint32_t out = 0, in = c->nout;
    if (c->npart == 0)
        return;
    lua_createtable(L, (int)c->npart, 0);
    for (uint32_t i = 0; i < c->npart; i++) {
        const dc_exec_joined x = dc_exec_joined_of(h->exec, command, i);
        lua_createtable(L, 0, 3);
        dc_report_set_text(L, "name", x.name);
        set_binds(L, d, "writes", h, command, out, x.nout);
        set_binds(L, d, "reads", h, command, in, x.nin);
        dc_report_append(L);
        out += x.nout;
        in += x.nin;
    }
    lua_setfield(L, -2, "joined");
}

static void set_exchange(lua_State *L, const dc_mesh *m, const dc_exec_command *c)
{
    if (!c->exchange)
        return;
    lua_createtable(L, 0, 6);
    dc_report_set_text(L, "op", dc_op_row_of(c->op)->name);
    lua_newtable(L);
    for (uint32_t a = 0; a < m->naxis; a++)
        if (c->attr.group.mask >> a & 1) {
            lua_pushstring(L, m->name[a]);
            dc_report_append(L);
        }
    lua_setfield(L, -2, "over");
    if (dc_op_is_message(c->op))
        dc_report_set_number(L, "peer", (double)c->attr.other);
    dc_report_set_number(L, "ranks", (double)dc_group_size(&c->attr.group));
    dc_report_set_number(L, "bytes", (double)dc_type_bytes(&c->type));
    lua_setfield(L, -2, "exchange");
}

/* `first`: what it waits for is numbered from there. */
static void set_after(lua_State *L, const dc_exec_command *c, uint32_t first)
{
    lua_createtable(L, (int)c->ndep, 0);
    for (uint32_t i = 0; i < c->ndep; i++)
        dc_report_append_number(L, first + c->dep[i] + 1);
    lua_setfield(L, -2, "after");
}

static void push_command(lua_State *L, dc_dsl *d, const dc_report_holder *h, uint32_t i,
                         uint32_t nprologue)
{
    dc_exec_command c;
    dc_exec_command_of(h->exec, i, &c);
    lua_createtable(L, 0, 20);
    dc_report_set_text(L, "kind", c.kind);
    dc_report_set_text(L, "label", c.label);
    if (c.kernel >= 0)
        dc_report_set_number(L, "kernel", (double)c.kernel + 1);
    dc_report_set_number(L, "grid", (double)c.grid);
    dc_report_set_number(L, "flops", (double)c.flops);
    dc_report_set_number(L, "bytes", (double)c.bytes);
    dc_report_set_number(L, "ns", (double)c.ns);
    dc_report_set_number(L, "runs", (double)c.runs);
    dc_report_set_number(L, "times", (double)c.times);
    dc_report_set_number(L, "body", c.nbody);
    dc_report_set_number(L, "otherwise", c.nelse);
    dc_report_set_flag(L, "prologue", c.prologue);
    dc_report_set_flag(L, "bounded", c.bounded);
    dc_report_set_flag(L, "inside", c.inside);
    set_lines(L, c.where);
    set_binds(L, d, "writes", h, i, 0, c.nout);
    set_binds(L, d, "reads", h, i, c.nout, c.nbind - c.nout);
    set_joined(L, d, h, i, &c);
    set_after(L, &c, c.prologue ? 0 : nprologue);
    set_exchange(L, d->rt->mesh, &c);
    set_computed(L, h, i);
}

static void set_commands(lua_State *L, dc_dsl *d, const dc_report_holder *h)
{
    const uint32_t n = dc_exec_command_count(h->exec);
    uint32_t nprologue = 0;
    lua_createtable(L, (int)n, 0);
    for (uint32_t i = 0; i < n; i++) {
        dc_exec_command c;
        dc_exec_command_of(h->exec, i, &c);
        nprologue += c.prologue;
        push_command(L, d, h, i, nprologue);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "commands");
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* With what they hold where that is known. */
static void set_temps(lua_State *L, const dc_report_holder *h)
{
    const dc_exec_graph *g = &h->graph;
    const uint32_t n = g->exact ? g->ntemp : dc_exec_temp_count(h->exec);
    lua_createtable(L, (int)n, 0);
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
        dc_report_set_number(L, "offset", (double)t.offset);
        dc_report_set_number(L, "bytes", (double)t.bytes);
        dc_report_set_number(L, "first", (double)t.first + 1);
        dc_report_set_number(L, "last", (double)t.last + 1);
        if (t.part != DC_EXEC_NONE && t.ref != 0 && h->number[t.part][t.ref] != 0)
            dc_report_set_number(L, "node", h->number[t.part][t.ref]);
        dc_report_set_flag(L, "inner",
                           t.part != DC_EXEC_NONE && g->part[t.part].parent != DC_EXEC_NONE);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "temps");
}

/* Of cell i: why it is not set in place, or what stands in its memory alone. */
static void set_cell(lua_State *L, const dc_report_holder *h, uint32_t i, const dc_type *t)
{
    bool set;
    const dc_cell_layout *layout = dc_exec_layout(h->exec, i);
    const char *why = dc_exec_denied(h->exec, i, &set);
    if (set)
        dc_report_set_text(L, "set", why != NULL ? why : "in place");
    dc_report_set_flag(L, "in_part", set && dc_exec_in_part(h->exec, i));
    if (layout->turned) {
        const dc_type memory = dc_cell_layout_type(layout, t);
        char text[DC_TYPE_TEXT];
        dc_type_print(&memory, text, sizeof text);
        dc_report_set_text(L, "laid_out", text);
    }
}

/* Arguments, what was captured, cells. */
static void set_parameters(lua_State *L, const dc_report_holder *h)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    lua_newtable(L);
    for (uint32_t i = 0; i < desc->nfree + desc->ncell; i++) {
        const dc_type t = dc_node_type(desc->fn, desc->fn->param.at[i]);
        lua_createtable(L, 0, 6);
        dc_report_set_text(L, "name", desc->fn->label.at[i]);
        dc_report_set_text(L, "role", i < desc->nfree ? dc_report_role(desc, i) : "cell");
        dc_report_set_type(L, &t);
        dc_report_set_number(L, "bytes", (double)dc_type_bytes(&t));
        if (i >= desc->nfree)
            set_cell(L, h, i - desc->nfree, &t);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "parameters");
}

static void set_results(lua_State *L, const dc_report_holder *h)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    lua_newtable(L);
    for (uint32_t i = 0; i < desc->nresult; i++) {
        const dc_type t = dc_node_type(desc->fn, desc->fn->result.at[i]);
        lua_createtable(L, 0, 3);
        dc_report_set_flag(L, "printed", i >= desc->nresult - desc->nprint);
        dc_report_set_type(L, &t);
        dc_report_set_number(L, "bytes", (double)dc_type_bytes(&t));
        dc_report_append(L);
    }
    lua_setfield(L, -2, "results");
}

/* ---- what was decided -------------------------------------------------------------------------- */

static void set_derived(lua_State *L, const dc_report_holder *h, uint32_t n)
{
    lua_newtable(L);
    for (uint32_t i = 0; i < n; i++) {
        const dc_exec_derived x = dc_exec_derived_of(h->exec, i);
        lua_createtable(L, 0, 3);
        dc_report_set_text(L, "op", x.op);
        dc_report_set_text(L, "type", x.type);
        dc_report_set_text(L, "where", x.where);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "derived");
}

static void set_choices(lua_State *L, const dc_report_holder *h)
{
    uint32_t n;
    const dc_exec_choice *c = dc_exec_choices(h->exec, &n);
    lua_newtable(L);
    for (uint32_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 9);
        lua_pushboolean(L, c[i].stored);
        lua_setfield(L, -2, "stored");
        dc_report_set_text(L, "op", c[i].op);
        dc_report_set_text(L, "type", c[i].type);
        dc_report_set_text(L, "where", c[i].where);
        dc_report_set_text(L, "why", c[i].but);
        if (c[i].times > 0) {
            dc_report_set_number(L, "times", (double)c[i].times);
            dc_report_set_text(L, "times_of", c[i].times_of);
            dc_report_set_number(L, "operations", c[i].again);
            dc_report_set_number(L, "bytes", c[i].moved);
        }
        dc_report_append(L);
    }
    lua_setfield(L, -2, "choices");
}

static void set_loops(lua_State *L, const dc_report_holder *h)
{
    dc_exec_loop l = {0};
    lua_newtable(L);
    while (dc_exec_next_loop(h->exec, &l)) {
        lua_createtable(L, 0, 4);
        if (l.n != INT32_MAX)
            dc_report_set_number(L, "iterations", (double)l.n);
        dc_report_set_flag(L, "may_end", l.may_end);
        dc_report_set_number(L, "kept", (double)l.kept);
        dc_report_set_text(L, "where", l.where);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "loops");
}

/* ---- kernels ----------------------------------------------------------------------------------- */

static void set_kernel_lines(lua_State *L, const dc_exec_kernel *k)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < DC_COUNTOF(k->where) && k->where[i] != NULL; i++) {
        luaL_addstring(&b, i > 0 ? " " : "");
        luaL_addstring(&b, k->where[i]);
    }
    luaL_pushresult(&b);
    lua_setfield(L, -2, "lines");
}

static void set_rate(lua_State *L, const char *name, double rate)
{
    lua_pushnumber(L, rate);
    lua_setfield(L, -2, name);
}

static void push_kernel(lua_State *L, const dc_exec_kernel *k)
{
    const bool rated = k->ns > 0 && !k->bounded;
    lua_createtable(L, 0, 14);
    dc_report_set_text(L, "name", k->name);
    set_kernel_lines(L, k);
    dc_report_set_number(L, "launches", k->launches);
    dc_report_set_number(L, "prologue", k->prologue);
    dc_report_set_number(L, "flops", (double)k->flops);
    dc_report_set_number(L, "bytes", (double)k->bytes);
    dc_report_set_number(L, "calls", (double)k->calls);
    set_rate(L, "ms", (double)k->ns / 1e6);
    set_rate(L, "gflops", rated ? k->done_flops / (double)k->ns : 0);
    set_rate(L, "gbs", rated ? k->done_bytes / (double)k->ns : 0);
    if (k->gain > 0)
        dc_report_set_number(L, "gain", k->gain);
    if (k->idle > 0)
        dc_report_set_number(L, "idle", (double)k->idle);
}

static void set_kernels(lua_State *L, const dc_report_holder *h)
{
    lua_newtable(L);
    for (uint32_t k = 0; k < dc_exec_kernel_count(h->exec); k++) {
        dc_exec_kernel facts;
        dc_exec_kernel_of(h->exec, k, &facts);
        push_kernel(L, &facts);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "kernels");
}

/* ---- executables ------------------------------------------------------------------------------- */

static void set_facts(lua_State *L, const dc_report_holder *h, const dc_exec_info *info)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    const dc_exec_calls calls = dc_exec_calls_of(h->exec);
    dc_report_set_text(L, "name", desc->name);
    dc_report_set_text(L, "where", desc->where);
    dc_report_set_text(L, "device", dc_exec_device(h->exec));
    dc_report_set_flag(L, "lazy", desc->once);
    dc_report_set_flag(L, "interpreted", info->interpreted);
    dc_report_set_number(L, "calls", (double)calls.calls);
    dc_report_set_number(L, "prologues", (double)calls.prologues);
    dc_report_set_number(L, "ns", (double)calls.ns);
    dc_report_set_number(L, "launches", info->launches);
    dc_report_set_number(L, "copies", info->copies);
    dc_report_set_number(L, "arena", (double)info->arena_bytes);
    dc_report_set_number(L, "least", (double)info->arena_lower_bound);
    dc_report_set_number(L, "derived_bytes", (double)info->derived_bytes);
    dc_report_set_number(L, "prologue_launches", info->prologue_launches);
}

void dc_report_set_executable(lua_State *L, dc_dsl *d, dc_report_holder *h, dc_report_graph graph)
{
    dc_exec_info info;
    dc_exec_info_of(h->exec, &info);
    set_facts(L, h, &info);
    set_parameters(L, h);
    set_results(L, h);
    set_derived(L, h, info.interpreted ? 0 : info.derived);
    set_choices(L, h);
    set_loops(L, h);
    set_kernels(L, h);
    if (graph != DC_REPORT_NO_GRAPH)
        dc_report_set_graph(L, d, h, graph);
    set_commands(L, d, h);
    set_temps(L, h);
    dc_exec_graph_free(&h->graph);
}

void dc_report_set_refused(lua_State *L, dc_dsl *d, dc_report_holder *h)
{
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    dc_report_set_text(L, "name", desc->name);
    dc_report_set_text(L, "where", desc->where);
    set_parameters(L, h);
    set_results(L, h);
    dc_report_set_graph(L, d, h, DC_REPORT_TRACED);
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
        dc_report_holder_push(L, e);
        dc_report_append(L);
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
        lua_createtable(L, 0, 28);
        lua_rawgeti(L, list, i);
        dc_report_holder *h = dc_udata_check(L, -1, &dc_executable_type);
        lua_setfield(L, -2, "exec");
        dc_report_set_executable(L, d, h, DC_REPORT_COMPILED);
        dc_report_append(L);
    }
    return 1;
}

/* ---- source ------------------------------------------------------------------------------------ */

typedef struct reading {
    dc_exec *e;
    uint32_t kernel;
    dc_form form;
    dc_text *out;
} reading;

static dc_status source_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    return dc_exec_source(a->e, j, a->kernel, a->form, a->out);
}

void dc_report_push_source(lua_State *L, dc_dsl *d, dc_exec *e, uint32_t kernel, dc_form form)
{
    reading a = {e, kernel, form, dc_fntext_push(L)};
    dc_run(L, d, source_body, &a);
    dc_fntext_finish(L);
}

static int l_source(lua_State *L)
{
    const dc_report_holder *h = dc_udata_check(L, 1, &dc_executable_type);
    const lua_Integer n = luaL_checkinteger(L, 2);
    dc_form form;
    luaL_argcheck(L, n >= 1 && n <= (lua_Integer)dc_exec_kernel_count(h->exec), 2, "a kernel");
    luaL_argcheck(L, dc_form_find(luaL_checkstring(L, 3), &form), 3, "a form");
    dc_report_push_source(L, dc_dsl_of(L), h->exec, (uint32_t)n - 1, form);
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
    {"report_begin", l_begin, DC_ANY, DC_IN_LIBRARY},
    {"executables", l_executables, DC_ANY, DC_IN_LIBRARY},
    {"executable_source", l_source, DC_ANY, DC_IN_LIBRARY},
    {"report_forget", l_forget, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_report_bindings = DC_BINDINGS(rows);
