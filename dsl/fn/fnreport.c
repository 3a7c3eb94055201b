/*
 * Typed functions as people look at them:
 *
 *   f:source(n [, form])   the text of kernel n: "nest", "schedule", "flat" or "text"
 *   f:report() f:explain() f:kernels() f:plan() f:dot()   stdlib/report.lua and stdlib/dot.lua make them of
 *   function_report(f, graph, n, measure)   { name, heading, limit, specialisations }, nil of what is no typed function;
 *                          each of these is a report of
 *                          dsl/fn/report.c with what is known of the specialisation. graph: of the n-th one, or of all,
 *                          "traced" or "compiled"; nil: without. measure: its kernels are timed from now on
 *   function_reports(graph)   reports of all specialisations of all functions, the oldest one first, without what is
 *                          known of these alone
 *
 * Kernels are numbered through all specialisations. They are timed from the first f:kernels() on,
 * and always at the prompt.
 */
#include "core/base/number.h"
#include "core/base/shown.h"
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct text_holder {
    dc_uhead head;
    dc_text text;
} text_holder;

/* ---- texts made in C ------------------------------------------------------------------------- */

static void drop_text(void *node)
{
    dc_text_free(&((text_holder *)node)->text);
}

const dc_utype dc_fntext_type = {.name = "deepc.text", .drop = drop_text};

dc_text *dc_fntext_push(lua_State *L)
{
    text_holder *t = dc_udata_new(L, &dc_fntext_type, sizeof *t, 0);
    return &t->text;
}

void dc_fntext_finish(lua_State *L)
{
    dc_text *t = &((text_holder *)dc_udata_node(L, -1))->text;
    size_t n = t->n;
    while (n > 0 && t->s[n - 1] == '\n')
        n--;
    lua_pushlstring(L, t->s != NULL ? t->s : "", n);
    dc_text_free(t); /* while a state closes no finalizer is run for what is made then */
    lua_remove(L, -2);
}

void dc_fntext_const(const dc_node *n, int digits, char *out, size_t room)
{
    const dc_dtype t = (dc_dtype)n->dtype;
    if (dc_dtype_is_float(t) || dc_dtype_is_complex(t)) {
        dc_number_format(out, room, "%.*g", digits, dc_value_of(t, (uint64_t)n->attr[0]));
    } else if (t == DC_U64) {
        snprintf(out, room, "%" PRIu64, (uint64_t)n->attr[0]);
    } else {
        snprintf(out, room, "%" PRId64, n->attr[0]);
    }
}

/* The text on top for people: names of layers, cells and files in it may have any characters. */
static void shown(lua_State *L)
{
    size_t n;
    luaL_Buffer b;
    const char *text = lua_tolstring(L, -1, &n);
    if (dc_shown_is_plain(text, n, true))
        return;
    const size_t m = dc_shown_put(NULL, 0, text, n, true);
    dc_shown_put(luaL_buffinitsize(L, &b, m + 1), m + 1, text, n, true);
    luaL_pushresultsize(&b, m);
    lua_remove(L, -2);
}

/* ---- specialisations ------------------------------------------------------------------------- */

/* Pushes the list of specialisations, all of them compiled or refused; returns how many there are. */
static int push_specs(lua_State *L, dc_dsl *d)
{
    dc_fn_push_specs(L, 1);
    const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, list, i);
        dc_spec *s = dc_spec_at(L, -1);
        lua_pop(L, 1);
        if (s->exec != NULL)
            dc_spec_wait(L, d, s);
    }
    return n;
}

/* Is there nothing of it to look at? */
static bool is_bare(const dc_spec *s)
{
    return s->exec == NULL || s->refused != NULL;
}

static dc_spec *spec_at(lua_State *L, int list, int i)
{
    lua_rawgeti(L, list, i);
    dc_spec *s = dc_spec_at(L, -1);
    lua_pop(L, 1);
    return s;
}

/* What the specialisation is for. */
static void set_sizes(lua_State *L, const dc_fn *fn, const dc_spec *s)
{
    char sizes[400];
    dc_sig_bind_print(&fn->sig, &s->key.bind, sizes, sizeof sizes);
    dc_report_set_text(L, "sizes", fn->sig.nvar == 0 ? "all sizes are given" : sizes);
}

/* Names of captured locals and fields that calls compare. */
static void set_guards(lua_State *L, const dc_spec *s)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    if (s->guards != NULL)
        dc_guard_list(s->guards, &b);
    luaL_pushresult(&b);
    lua_setfield(L, -2, "watched");
}

static void set_captured(lua_State *L, const dc_spec *s)
{
    const dc_trace *t = s->trace;
    lua_newtable(L);
    for (uint32_t i = 0; i < t->captured.n; i++) {
        char type[DC_TYPE_TEXT];
        const dc_trace_capture *c = &t->captured.at[i];
        dc_type_print(c->tensor != NULL ? &c->tensor->type : &c->lazy->type, type, sizeof type);
        lua_pushstring(L, type);
        dc_report_append(L);
    }
    lua_setfield(L, -2, "captured");
}

/* What a cell is, which its executable does not know. */
static void set_cell_kinds(lua_State *L, const dc_spec *s)
{
    const dc_trace *t = s->trace;
    const uint32_t nfree = dc_exec_desc_of(s->exec)->nfree;
    lua_getfield(L, -1, "parameters");
    for (uint32_t c = 0; c < t->cell.n; c++) {
        const dc_cell *cell = t->cell.at[c].cell;
        lua_rawgeti(L, -1, (lua_Integer)(nfree + c) + 1);
        dc_report_set_text(L, "name", cell->label);
        dc_report_set_text(L, "role", cell->trainable || cell->frozen ? "parameter" : "state");
        dc_report_set_flag(L, "trainable", cell->trainable);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Fields of the table on top. */
static void set_executable(lua_State *L, dc_dsl *d, dc_spec *s, dc_report_graph graph)
{
    dc_report_holder *h = dc_report_holder_push(L, s->exec);
    lua_insert(L, -2);
    if (s->refused != NULL)
        dc_report_set_refused(L, d, h);
    else
        dc_report_set_executable(L, d, h, graph);
    set_cell_kinds(L, s);
    set_captured(L, s);
    dc_fn_push_exchanges_of(L, s);
    lua_setfield(L, -2, "exchanges");
    dc_report_set_flag(L, "several_devices", dc_rt_has_others(s->rt));
    dc_report_set_flag(L, "without_compiler", s->rt->interpret);
    lua_remove(L, -2);
}

static void push_spec(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s, dc_report_graph graph)
{
    lua_createtable(L, 0, 40);
    if (s->exec != NULL)
        set_executable(L, d, s, graph);
    set_sizes(L, fn, s);
    set_guards(L, s);
    dc_report_set_number(L, "calls", s->inst != NULL ? (double)dc_inst_calls(s->inst) : 0);
    dc_report_set_text(L, "made_for", s->why);
    dc_report_set_text(L, "refused", s->refused);
    dc_report_set_flag(L, "checked", s->exec == NULL);
}

static dc_report_graph read_graph(lua_State *L, int idx)
{
    static const char *const name[] = {"", "traced", "compiled", NULL};
    return (dc_report_graph)luaL_checkoption(L, idx, "", name);
}

static dc_status measure_body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    dc_exec_measure(arg);
    return DC_OK;
}

static int l_function_report(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 4);
    if (dc_udata_test(L, 1, &dc_fn_type) == NULL) {
        lua_pushnil(L);
        return 1;
    }
    const dc_fn *fn = dc_fn_check(L, 1);
    const dc_report_graph graph = read_graph(L, 2);
    const lua_Integer wanted = luaL_optinteger(L, 3, 0);
    const bool measure = lua_toboolean(L, 4);
    const int n = push_specs(L, d), list = lua_gettop(L);
    lua_createtable(L, 0, 4);
    dc_report_set_text(L, "name", fn->name);
    lua_pushfstring(L, "%s%s", luaL_tolstring(L, 1, NULL), fn->place);
    lua_setfield(L, -3, "heading");
    lua_pop(L, 1);
    dc_report_set_number(L, "limit", fn->limit);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        dc_spec *s = spec_at(L, list, i);
        push_spec(L, d, fn, s, wanted == 0 || wanted == i ? graph : DC_REPORT_NO_GRAPH);
        dc_report_append(L);
        if (measure && !is_bare(s))
            dc_run(L, d, measure_body, s->exec);
    }
    lua_setfield(L, -2, "specialisations");
    return 1;
}

/* A table for each, with what retains it: a finalizer would drop specialisations from the list. */
static int push_holders(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    luaL_checkstack(L, 8, "specialisations");
    lua_newtable(L);
    for (dc_spec *s = d->specs; s != NULL; s = s->next) {
        if (s->exec == NULL)
            continue;
        dc_spec_wait(L, d, s);
        lua_createtable(L, 0, 28);
        dc_report_set_text(L, "refused", s->refused);
        dc_report_holder_push(L, s->exec);
        lua_setfield(L, -2, "exec");
        dc_report_append(L);
    }
    return 1;
}

static int l_function_reports(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_report_graph graph = read_graph(L, 1);
    lua_settop(L, 0);
    dc_collector_hold(L, push_holders);
    lua_newtable(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, 1); i > 0; i--) {
        lua_rawgeti(L, 1, i);
        lua_getfield(L, -1, "exec");
        dc_report_holder *h = dc_udata_check(L, -1, &dc_executable_type);
        const bool refused = lua_getfield(L, -2, "refused") != LUA_TNIL;
        lua_pop(L, 2);
        if (refused)
            dc_report_set_refused(L, d, h);
        else
            dc_report_set_executable(L, d, h, graph);
        dc_report_append(L);
    }
    return 1;
}

static const dc_binding bindings[] = {
    {"function_report", l_function_report, DC_ANY, DC_IN_LIBRARY},
    {"function_reports", l_function_reports, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fnreport_bindings = DC_BINDINGS(bindings);

/* ---- source ---------------------------------------------------------------------------------- */

/* "llvm" and "c" are words for what the compiler is given, too. */
static dc_form read_form(lua_State *L, dc_dsl *d, int idx)
{
    static const char *const compiled[] = {"llvm", "c", "opencl", "cuda"};
    dc_form form = DC_FORM_NEST;
    if (lua_isnoneornil(L, idx))
        return form;
    const char *name = dc_args_text(L, d, idx, "source");
    for (size_t i = 0; i < DC_COUNTOF(compiled); i++)
        if (strcmp(name, compiled[i]) == 0)
            return DC_FORM_TEXT;
    if (!dc_form_find(name, &form))
        dc_error_raisef(L, d, DC_ERR_ARG, "source",
                        "no form '%.40s'; there are nest, schedule, flat and text", name);
    return form;
}

int dc_fnreport_source(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = dc_fn_check(L, 1);
    const int64_t wanted = lua_isnoneornil(L, 2) ? 1 : dc_args_count(L, d, 2, "source", "n");
    const dc_form form = read_form(L, d, 3);
    const dc_spec *found = NULL;
    uint32_t kernel = 0;
    const int n = push_specs(L, d), list = lua_gettop(L);
    int64_t count = 0;
    for (int i = 1; i <= n; i++) {
        dc_spec *s = spec_at(L, list, i);
        const uint32_t here = is_bare(s) ? 0 : dc_exec_kernel_count(s->exec);
        if (wanted > count && wanted <= count + here) {
            found = s;
            kernel = (uint32_t)(wanted - count - 1);
        }
        count += here;
    }
    if (found == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, "source", "no kernel %" PRId64 "; '%s' has %" PRId64,
                        wanted, fn->name, count);
    dc_report_push_source(L, d, found->exec, kernel, form);
    shown(L);
    return 1;
}

/* ---- what Lua makes of it --------------------------------------------------------------------- */

/* module.name(f, ...) */
static int call_module(lua_State *L, const char *module, const char *name)
{
    dc_fn_check(L, 1);
    dc_binding_require(L, module);
    lua_getfield(L, -1, name);
    lua_insert(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

#define FROM_REPORT(name, nargs)                      \
    int dc_fnreport_##name(lua_State *L)              \
    {                                                 \
        lua_settop(L, nargs);                         \
        return call_module(L, "deepc.report", #name); \
    }

FROM_REPORT(report, 2)
FROM_REPORT(explain, 1)
FROM_REPORT(kernels, 1)
FROM_REPORT(plan, 1)

int dc_fnreport_dot(lua_State *L)
{
    return call_module(L, "deepc.dot", "dot");
}
