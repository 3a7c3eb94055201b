/*
 * Typed functions as people look at them:
 *
 *   f:explain()            text: specialisations, why each was made, kernels, memory, cells, captures
 *   f:kernels()            a list of tables { name, launches, calls, ms, gflops, gbs, lines }
 *   f:source(n [, form])   the text of kernel n: "nest", "schedule", "flat" or "text"
 *   f:plan()               text: what runs in which order, what it writes and reads
 *
 * Kernels are numbered through all specialisations. They are timed from the first f:kernels() on,
 * and always at the prompt.
 */
#include "core/base/number.h"
#include "core/base/shown.h"
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

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

/* Ends a text for people: names of layers, cells and files in it may have any characters. */
static void finish_shown(lua_State *L)
{
    size_t n;
    luaL_Buffer b;
    dc_fntext_finish(L);
    const char *text = lua_tolstring(L, -1, &n);
    if (dc_shown_is_plain(text, n, true))
        return;
    const size_t m = dc_shown_put(NULL, 0, text, n, true);
    dc_shown_put(luaL_buffinitsize(L, &b, m + 1), m + 1, text, n, true);
    luaL_pushresultsize(&b, m);
    lua_remove(L, -2);
}

/* ---- specialisations ------------------------------------------------------------------------- */

typedef struct looking {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    dc_text *out;
    uint32_t kernel; /* of the executable */
    int number;      /* of the specialisation, from 1; of the first kernel */
    dc_form form;
    const char *guards; /* names of what is compared before calls */
} looking;

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

/* ---- kernels --------------------------------------------------------------------------------- */

static void set_number(lua_State *L, const char *name, double v)
{
    lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static void push_lines(lua_State *L, const dc_exec_kernel *k)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < DC_COUNTOF(k->where) && k->where[i] != NULL; i++) {
        luaL_addstring(&b, i > 0 ? " " : "");
        luaL_addstring(&b, k->where[i]);
    }
    luaL_pushresult(&b);
}

void dc_fnreport_push_kernel(lua_State *L, const dc_exec_kernel *k, int spec)
{
    const bool rated = k->ns > 0 && !k->bounded;
    lua_createtable(L, 0, 10);
    lua_pushstring(L, k->name);
    lua_setfield(L, -2, "name");
    push_lines(L, k);
    lua_setfield(L, -2, "lines");
    dc_binding_set_number(L, "specialisation", (uint64_t)spec);
    dc_binding_set_number(L, "launches", k->launches);
    dc_binding_set_number(L, "flops", (uint64_t)k->flops);
    dc_binding_set_number(L, "bytes", (uint64_t)k->bytes);
    dc_binding_set_number(L, "calls", k->calls);
    set_number(L, "ms", (double)k->ns / 1e6);
    set_number(L, "gflops", rated ? k->done_flops / (double)k->ns : 0);
    set_number(L, "gbs", rated ? k->done_bytes / (double)k->ns : 0);
}

static dc_status measure_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    DC_UNUSED(j);
    dc_exec_measure(a->s->exec);
    return DC_OK;
}

int dc_fnreport_kernels(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = dc_fn_check(L, 1);
    const int n = push_specs(L, d), list = lua_gettop(L);
    lua_newtable(L);
    for (int i = 1; i <= n; i++) {
        looking a = {.d = d, .fn = fn, .s = spec_at(L, list, i)};
        if (is_bare(a.s))
            continue;
        for (uint32_t k = 0; k < dc_exec_kernel_count(a.s->exec); k++) {
            dc_exec_kernel facts;
            dc_exec_kernel_of(a.s->exec, k, &facts);
            dc_fnreport_push_kernel(L, &facts, i);
            lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        }
        dc_run(L, d, measure_body, &a);
    }
    return 1;
}

/* ---- source ---------------------------------------------------------------------------------- */

static dc_status source_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    return dc_exec_source(a->s->exec, j, a->kernel, a->form, a->out);
}

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
    looking a = {.d = d, .fn = fn, .form = read_form(L, d, 3)};
    const int n = push_specs(L, d), list = lua_gettop(L);
    int64_t count = 0;
    for (int i = 1; i <= n; i++) {
        dc_spec *s = spec_at(L, list, i);
        const uint32_t here = is_bare(s) ? 0 : dc_exec_kernel_count(s->exec);
        if (wanted > count && wanted <= count + here) {
            a.s = s;
            a.kernel = (uint32_t)(wanted - count - 1);
        }
        count += here;
    }
    if (a.s == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, "source", "no kernel %" PRId64 "; '%s' has %" PRId64,
                        wanted, fn->name, count);
    a.out = dc_fntext_push(L);
    dc_run(L, d, source_body, &a);
    finish_shown(L);
    return 1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void print_bytes(dc_text *out, size_t bytes)
{
    char text[DC_NUMBER_TEXT];
    dc_text_puts(out, dc_number_bytes(bytes, text));
}

static const char *cell_name(const dc_cell *c)
{
    return c->label != NULL ? c->label : c->trainable ? "a parameter" : "a state";
}

static void print_cells(const dc_spec *s, dc_text *out)
{
    const dc_trace *t = s->trace;
    uint32_t in_place = 0;
    bool set;
    for (uint32_t c = 0; c < t->cell.n; c++)
        if (dc_exec_denied(s->exec, c, &set) == NULL && set)
            dc_text_printf(out, "%s%s%s", in_place++ == 0 ? "     set in place  " : ", ",
                           cell_name(t->cell.at[c].cell),
                           dc_exec_in_part(s->exec, c) ? " (what changes alone)" : "");
    if (in_place > 0)
        dc_text_puts(out, "\n");
    for (uint32_t c = 0; c < t->cell.n; c++) {
        const char *why = dc_exec_denied(s->exec, c, &set);
        if (why != NULL && set)
            dc_text_printf(out, "     set by a copy %s: %s\n", cell_name(t->cell.at[c].cell), why);
    }
}

/* A cell's memory in another order: "stored as     f32[3, 3, 64, 64]: net.1.weight, velocity". */
static void print_layouts(const dc_spec *s, dc_text *out)
{
    const dc_trace *t = s->trace;
    char text[DC_TYPE_TEXT];
    for (uint32_t c = 0; c < t->cell.n; c++) {
        const dc_cell *cell = t->cell.at[c].cell;
        const dc_type memory = dc_cell_layout_type(dc_exec_layout(s->exec, c), &cell->type);
        if (!dc_exec_layout(s->exec, c)->turned)
            continue;
        dc_type_print(&memory, text, sizeof text);
        dc_text_printf(out, "     laid out      %s as %s, as it is read\n", cell_name(cell), text);
    }
}

static void print_memory(const dc_spec *s, const dc_exec_info *info, dc_text *out)
{
    dc_text_puts(out, "     temporaries   ");
    print_bytes(out, info->arena_bytes);
    if (info->arena_bytes > info->arena_lower_bound) {
        dc_text_puts(out, ", of which ");
        print_bytes(out, info->arena_lower_bound);
        dc_text_puts(out, " are in use at once");
    }
    dc_text_puts(out, "\n");
    print_cells(s, out);
    print_layouts(s, out);
}

/* "kept          3 values, 44.6 MiB, computed again when what they are made of has changed". */
static void print_derived(const dc_spec *s, const dc_exec_info *info, dc_text *out)
{
    if (info->derived == 0)
        return;
    dc_text_printf(out, "     derived       %u value%s, ", info->derived,
                   info->derived == 1 ? "" : "s");
    print_bytes(out, info->derived_bytes);
    dc_text_printf(out,
                   ", kept from call to call; computed in %u launch%s when what they are made of "
                   "has changed\n",
                   info->prologue_launches, info->prologue_launches == 1 ? "" : "es");
    for (uint32_t i = 0; i < info->derived; i++) {
        const dc_exec_derived x = dc_exec_derived_of(s->exec, i);
        dc_text_printf(out, "       %u. %s %s%s%s\n", i + 1, x.op, x.type,
                       x.where != NULL ? "   " : "", x.where != NULL ? x.where : "");
    }
}

/* ---- explain --------------------------------------------------------------------------------- */

static void print_captures(const dc_spec *s, dc_text *out)
{
    const dc_trace *t = s->trace;
    for (uint32_t i = 0; i < t->captured.n; i++) {
        char type[DC_TYPE_TEXT];
        const dc_trace_capture *c = &t->captured.at[i];
        dc_type_print(c->tensor != NULL ? &c->tensor->type : &c->lazy->type, type, sizeof type);
        dc_text_printf(out, "%s%s", i == 0 ? "     captured      " : ", ", type);
    }
    if (t->captured.n > 0)
        dc_text_puts(out, "\n");
}

static void print_kernels(const looking *a, dc_text *out)
{
    const uint32_t n = dc_exec_kernel_count(a->s->exec);
    for (uint32_t k = 0; k < n; k++) {
        dc_exec_kernel f;
        dc_exec_kernel_of(a->s->exec, k, &f);
        const bool once = f.launches == 0 && f.prologue > 0;
        dc_text_printf(out, "     %3u  %-20s %3u %s  %9.3g MFLOP  %9.3g MB ",
                       (unsigned)a->number + k, f.name, once ? f.prologue : f.launches,
                       once ? "at times" : "per call", (double)f.flops / 1e6,
                       (double)f.bytes / 1e6);
        for (size_t i = 0; i < DC_COUNTOF(f.where) && f.where[i] != NULL; i++)
            dc_text_printf(out, " %s", f.where[i]);
        if (f.gain > 0)
            dc_text_printf(out, "  schedule: tuned, %.2f times as fast as the rules'", f.gain);
        if (f.idle > 0)
            dc_text_printf(out, "  %" PRId64 " work item%s for more threads", f.idle,
                           f.idle == 1 ? "" : "s");
        dc_text_puts(out, "\n");
    }
}

/*
 * "stored  exp f32[64, 10] for 2 kernels: 5.0 KiB moved, not 10240 operations more", or without a choice
 * "stored  matmul f32[64, 10]: operand of a contraction".
 */
static void print_choices(const looking *a, dc_text *out)
{
    uint32_t n;
    const dc_exec_choice *c = dc_exec_choices(a->s->exec, &n);
    for (uint32_t i = 0; i < n; i++) {
        char text[DC_NUMBER_TEXT];
        const char *moved = dc_number_bytes((size_t)c[i].moved, text);
        dc_text_printf(out, "     %-13s %s %s", c[i].stored ? "stored" : "recomputed", c[i].op,
                       c[i].type);
        if (c[i].times > 0)
            dc_text_printf(out, " for %" PRId64 " %s", c[i].times, c[i].times_of);
        dc_text_puts(out, ": ");
        if (c[i].times == 0)
            dc_text_puts(out, c[i].but);
        else if (c[i].stored)
            dc_text_printf(out, "%s moved, not %.0f operations more", moved, c[i].again);
        else
            dc_text_printf(out, "%.0f operations more, not %s moved%s%s", c[i].again, moved,
                           c[i].but != NULL ? "; " : "", c[i].but != NULL ? c[i].but : "");
        dc_text_printf(out, "%s%s\n", c[i].where != NULL ? "   " : "",
                       c[i].where != NULL ? c[i].where : "");
    }
}

/* "loop          500 iterations, of a gradient: reads 2.1 MiB that the forward pass keeps" */
static void print_loops(const looking *a, dc_text *out)
{
    dc_exec_loop l = {0};
    while (dc_exec_next_loop(a->s->exec, &l)) {
        char text[DC_NUMBER_TEXT];
        dc_text_puts(out, "     loop          ");
        if (l.n == INT32_MAX)
            dc_text_puts(out, "as many iterations as it takes");
        else
            dc_text_printf(out, "%s%" PRId64 " iteration%s", l.may_end ? "at most " : "", l.n,
                           l.n == 1 ? "" : "s");
        if (l.kept > 0)
            dc_text_printf(out, ", of a gradient: reads %s that the forward pass keeps",
                           dc_number_bytes((size_t)l.kept, text));
        dc_text_printf(out, "%s%s\n", l.where != NULL ? "   " : "", l.where != NULL ? l.where : "");
    }
}

static dc_status explain_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    dc_text *out = a->out;
    dc_exec_info info;
    DC_UNUSED(j);
    dc_exec_info_of(a->s->exec, &info);
    if (dc_rt_has_others(a->s->rt))
        dc_text_printf(out, "     computes on   %s\n", a->s->rt->device_name);
    if (info.interpreted) {
        dc_text_printf(out, "     run by the reference interpreter%s\n",
                       a->s->rt->interpret ? "" : ", since a compiler failed (see the notes)");
    } else {
        dc_text_printf(out, "     per call      %u launches of %u kernels, %u copies\n",
                       info.launches, info.kernels, info.copies);
        print_memory(a->s, &info, out);
        dc_spec_print_exchanges(a->s, out);
        print_derived(a->s, &info, out);
        print_choices(a, out);
    }
    print_loops(a, out);
    print_captures(a->s, out);
    if (*a->guards != '\0')
        dc_text_printf(out, "     watched       %s\n", a->guards);
    print_kernels(a, out);
    return DC_OK;
}

static dc_status plan_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    dc_exec_info info;
    DC_UNUSED(j);
    dc_exec_info_of(a->s->exec, &info);
    dc_exec_plan(a->s->exec, a->out);
    print_memory(a->s, &info, a->out);
    return DC_OK;
}

/* What the specialisation is for. */
static void print_sizes(const dc_fn *fn, const dc_spec *s, dc_text *out)
{
    char sizes[400];
    dc_sig_bind_print(&fn->sig, &s->key.bind, sizes, sizeof sizes);
    dc_text_puts(out, sizes);
    if (fn->sig.nvar == 0)
        dc_text_puts(out, "all sizes are given");
}

static dc_status heading_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    const dc_spec *s = a->s;
    dc_text *out = a->out;
    DC_UNUSED(j);
    dc_text_printf(out, "\n  %d. ", a->number);
    print_sizes(a->fn, s, out);
    const uint64_t calls = s->inst != NULL ? dc_inst_calls(s->inst) : 0;
    dc_text_printf(out, "   %" PRIu64 " call%s", calls, calls == 1 ? "" : "s");
    if (s->why != NULL)
        dc_text_printf(out, "   made for %s", s->why);
    dc_text_puts(out, "\n");
    if (s->refused != NULL)
        dc_text_printf(out, "     refused       %s\n", s->refused);
    return DC_OK;
}

static dc_status title_body(dc_job *j, void *arg)
{
    const looking *a = arg;
    const char *made = a->number == 1 ? "specialisation" : "specialisations";
    DC_UNUSED(j);
    dc_text_printf(a->out, "  %d %s, at most %d%s\n", a->number, made, a->fn->limit,
                   a->number == 0 ? "; one is made at the first call" : "");
    return DC_OK;
}

/* Pushes the names of captured locals and fields that calls compare. */
static const char *push_guards(lua_State *L, const dc_spec *s)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    if (s->guards != NULL)
        dc_guard_list(s->guards, &b);
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* Pushes a text with a part for each specialisation. */
static void push_parts(lua_State *L, dc_dsl *d, const dc_fn *fn,
                       dc_status (*part)(dc_job *, void *))
{
    const int n = push_specs(L, d), list = lua_gettop(L);
    looking a = {.d = d, .fn = fn, .out = dc_fntext_push(L), .number = n};
    int first = 1;
    dc_run(L, d, title_body, &a);
    for (int i = 1; i <= n; i++) {
        a.s = spec_at(L, list, i);
        a.number = i;
        dc_run(L, d, heading_body, &a);
        a.number = first;
        if (is_bare(a.s))
            continue;
        a.guards = push_guards(L, a.s);
        dc_run(L, d, part, &a);
        lua_pop(L, 1);
        first += (int)dc_exec_kernel_count(a.s->exec);
    }
    finish_shown(L);
}

static int push_page(lua_State *L, dc_status (*part)(dc_job *, void *))
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = dc_fn_check(L, 1);
    luaL_checkstack(L, 8, "text");
    luaL_tolstring(L, 1, NULL);
    lua_pushstring(L, fn->place);
    lua_pushliteral(L, "\n");
    lua_concat(L, 3);
    push_parts(L, d, fn, part);
    lua_remove(L, -2); /* the specialisations */
    lua_concat(L, 2);
    return 1;
}

int dc_fnreport_explain(lua_State *L)
{
    lua_settop(L, 1);
    return push_page(L, explain_body);
}

int dc_fnreport_plan(lua_State *L)
{
    lua_settop(L, 1);
    return push_page(L, plan_body);
}
