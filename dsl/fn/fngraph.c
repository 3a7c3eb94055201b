/*
 * The graph of a typed function for stdlib/graphs.lua, which draws it, and the work of a trace for net:summary.
 *
 *   function_graph(op, f, n, compiled)   a text of the n-th specialisation, nil for the last one; its number, how many
 *                         there are. As it was traced, or if `compiled` as it is simplified and split, with groups
 *   function_graphs()     those of all specialisations there are, the first one first, with groups
 *   f:dot(options)        stdlib/dot.lua
 *   trace_length()        nodes of the function that is being traced
 *   trace_work(marks, ...)   operations (core/ir/flops.h) of what the tensors and the cells that were set need, between
 *                         each of the marks and the next one, the last one and the end
 *
 * The text has lines of fields with tabs between them:
 *
 *   F name                              a function begins: the traced one, the prologue, the body that is left
 *   B number                            or a body of a loop or a branch, which are behind the function
 *   N ref op type operations kind label where path operands attributes groups bodies
 *                                       kind: argument, size, captured, parameter, state, derived; body: of a body
 *   R ref label                         a result: "result", "printed", a cell that is set, "check"
 */
#include "core/base/number.h"
#include "core/base/shown.h"
#include "core/ir/control.h"
#include "core/ir/flops.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

#include <inttypes.h>
#include <string.h>

typedef struct drawing {
    dc_dsl *d;
    dc_spec *s;
    dc_text *out;
    bool compiled;
    dc_job *j;
} drawing;

/* ---- nodes ------------------------------------------------------------------------------------ */

/* Names of tables may have any characters in them. */
static void put_field(dc_text *out, const char *text)
{
    char piece[DC_SHOWN_PIECE];
    size_t m;
    dc_text_puts(out, "\t");
    for (size_t at = 0, n = text != NULL ? strlen(text) : 0; at < n; dc_text_put(out, piece, m))
        at += dc_shown_next(text + at, n - at, false, piece, &m);
}

static const char *cell_label(const drawing *a, uint32_t cell)
{
    const dc_cell *c = a->s->trace->cell.at[cell].cell;
    return c->label != NULL ? c->label : c->trainable ? "parameter" : "state";
}

static void put_param(const drawing *a, const dc_func *f, uint32_t i)
{
    const dc_exec_desc *d = dc_exec_desc_of(a->s->exec);
    const char *label = f->label.at[i];
    if (i < a->s->nleaf)
        put_field(a->out, "argument");
    else if (i < d->nfree)
        put_field(a->out, i < d->nfree - d->nfixed ? "size" : "captured");
    else if (i >= d->nfree + d->ncell)
        put_field(a->out, "derived");
    else {
        const dc_cell *c = a->s->trace->cell.at[i - d->nfree].cell;
        put_field(a->out, c->trainable || c->frozen ? "parameter" : "state");
        label = cell_label(a, i - d->nfree);
    }
    put_field(a->out, label);
}

static void put_refs(dc_text *out, const dc_ref *at, int n)
{
    dc_text_puts(out, "\t");
    for (int i = 0; i < n; i++)
        dc_text_printf(out, "%s%u", i > 0 ? "," : "", at[i]);
}

static void put_attrs(dc_text *out, const dc_node *n)
{
    const int first = dc_node_bodies(n);
    dc_text_puts(out, "\t");
    if (n->op == DC_OP_CONST) {
        char text[DC_NUMBER_TEXT];
        dc_fntext_const(n, 6, text, sizeof text);
        dc_text_puts(out, text);
        return;
    }
    for (int i = first; i < n->nattr; i++)
        dc_text_printf(out, "%s%" PRId64, i > first ? "," : "", n->attr[i]);
}

static void put_node(const drawing *a, const dc_func *f, dc_ref r, bool body)
{
    const dc_node *n = dc_node_at(f, r);
    const dc_origin *from = n->origin != 0 ? &f->origins.at[n->origin] : NULL;
    const dc_type t = dc_node_type(f, r);
    char type[DC_TYPE_TEXT];
    dc_type_print(&t, type, sizeof type);
    dc_text_printf(a->out, "N\t%u\t%s\t%s\t%.0f", r, dc_op_row_of((dc_op)n->op)->name, type,
                   dc_flops_node(f, r));
    if (n->op == DC_OP_PARAM && !body) {
        put_param(a, f, (uint32_t)n->attr[0]);
    } else {
        put_field(a->out, n->op == DC_OP_PARAM ? "body" : NULL);
        put_field(a->out, n->op == DC_OP_PARAM ? f->label.at[n->attr[0]] : NULL);
    }
    put_field(a->out, from != NULL ? from->where : NULL);
    put_field(a->out, from != NULL ? from->path : NULL);
    put_refs(a->out, n->in, n->nin);
    put_attrs(a->out, n);
}

/* ---- functions -------------------------------------------------------------------------------- */

/* Result i; the prologue's are derived values. */
static void put_result(const drawing *a, const dc_func *f, uint32_t i, bool derived)
{
    const dc_exec_desc *d = dc_exec_desc_of(a->s->exec);
    dc_text_printf(a->out, "R\t%u", f->result.at[i]);
    if (derived)
        put_field(a->out, "derived");
    else if (i < d->nresult)
        put_field(a->out, i < a->s->nresult ? "result" : "printed");
    else if (i < d->nresult + d->nset)
        put_field(a->out, cell_label(a, d->set[i - d->nresult]));
    else
        put_field(a->out, "check");
    dc_text_puts(a->out, "\n");
}

static void note_bodies(const dc_func *f, const bool *live, bool *named)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        for (int i = 0; live[r] && i < dc_node_bodies(dc_node_at(f, r)); i++)
            named[dc_node_at(f, r)->attr[i]] = true;
}

static void put_bodies_of(const drawing *a, const dc_node *n)
{
    dc_text_puts(a->out, "\t");
    for (int i = 0; i < dc_node_bodies(n); i++)
        dc_text_printf(a->out, "%s%" PRId64, i > 0 ? "," : "", n->attr[i]);
    dc_text_puts(a->out, "\n");
}

/* Bodies name those with smaller numbers alone. */
static void put_bodies(const drawing *a, const dc_module *m, bool *named)
{
    for (uint32_t b = m->body.n; b-- > 0;) {
        if (!named[b])
            continue;
        const dc_func *f = m->body.at[b].fn;
        const bool *live = dc_func_live(f, &a->j->scratch);
        dc_text_printf(a->out, "B\t%u\n", b);
        for (dc_ref r = 1; r < f->node.n; r++)
            if (live[r] || dc_node_at(f, r)->op == DC_OP_PARAM) {
                put_node(a, f, r, true);
                dc_text_puts(a->out, "\t");
                put_bodies_of(a, dc_node_at(f, r));
            }
        for (uint32_t i = 0; i < f->result.n; i++)
            dc_text_printf(a->out, "R\t%u\t\n", f->result.at[i]);
        note_bodies(f, live, named);
    }
}

/* `group`: by ref the first of its groups among those of g, and one more; NULL: there are none. */
static void put_function(const drawing *a, const dc_func *f, const dc_exec_groups *g)
{
    dc_arena *arena = &a->j->scratch;
    const bool *live = dc_func_live(f, arena), derived = g != NULL && g->prologue;
    uint32_t *first = DC_NEW_ARRAY(arena, uint32_t, f->node.n);
    uint32_t *next = DC_NEW_ARRAY(arena, uint32_t, g != NULL ? g->n + 1 : 1);
    for (uint32_t i = g != NULL ? g->n : 0; i-- > 0;) {
        next[i] = first[g->ref[i]];
        first[g->ref[i]] = i + 1;
    }
    dc_text_puts(a->out, "F");
    put_field(a->out, derived ? "prologue" : f->name);
    dc_text_puts(a->out, "\n");
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!live[r])
            continue;
        put_node(a, f, r, false);
        dc_text_puts(a->out, "\t");
        for (uint32_t i = first[r]; i != 0; i = next[i - 1])
            dc_text_printf(a->out, "%s%u", i != first[r] ? "," : "", g->group[i - 1]);
        put_bodies_of(a, dc_node_at(f, r));
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        put_result(a, f, i, derived);
    bool *named = DC_NEW_ARRAY(arena, bool, f->module->body.n + 1);
    note_bodies(f, live, named);
    put_bodies(a, f->module, named);
}

static void see_groups(void *ctx, const dc_exec_groups *g)
{
    put_function(ctx, g->fn, g);
}

static dc_status draw_body(dc_job *j, void *arg)
{
    drawing *a = arg;
    dc_exec_info info = {.interpreted = true};
    a->j = j;
    if (a->compiled && a->s->refused == NULL)
        dc_exec_info_of(a->s->exec, &info);
    if (a->compiled && !info.interpreted)
        return dc_exec_groups_of(a->s->exec, j, see_groups, a);
    put_function(a, dc_exec_desc_of(a->s->exec)->fn, NULL);
    return DC_OK;
}

/* The specialisation at 3 of the function at 2, left on the stack. */
static dc_spec *find_spec(lua_State *L, dc_dsl *d, const dc_fn *fn, const char *op)
{
    dc_fn_push_specs(L, 2);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    const lua_Integer wanted = luaL_optinteger(L, 3, n);
    if (n == 0)
        dc_error_fact(
            L, d, DC_ERR_ARG,
            &(dc_fact){.op = op,
                       .word = {lua_pushfstring(L, "'%s' has not been traced", fn->name)}},
            &(dc_blame){.hint = "call it once, or give its sizes where it is defined: "
                                "dc.fn(signature, f, { batch = 64 })"});
    if (wanted < 1 || wanted > n)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "no specialisation %" PRId64 "; '%s' has %d",
                        (int64_t)wanted, fn->name, (int)n);
    lua_rawgeti(L, -1, wanted);
    dc_spec *s = dc_spec_at(L, -1);
    if (s->exec == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "'%s' has been checked, and not compiled", fn->name);
    lua_pushinteger(L, wanted);
    lua_pushinteger(L, n);
    return s;
}

static int l_function_graph(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    if (dc_udata_test(L, 2, &dc_fn_type) == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a typed function is needed, not %s",
                        dc_handle_describe(L, 2));
    const dc_fn *fn = dc_fn_check(L, 2);
    lua_settop(L, 4);
    drawing a = {.d = d, .s = find_spec(L, d, fn, op), .compiled = lua_toboolean(L, 4)};
    if (a.compiled)
        dc_spec_wait(L, d, a.s);
    a.out = dc_fntext_push(L);
    dc_run(L, d, draw_body, &a);
    dc_fntext_finish(L);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    return 3;
}

/* A finalizer would drop specialisations from the list. */
static int push_graphs(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_newtable(L);
    for (dc_spec *s = d->specs; s != NULL; s = s->next) {
        drawing a = {.d = d, .s = s, .compiled = true};
        if (s->exec == NULL)
            continue;
        dc_spec_wait(L, d, s);
        a.out = dc_fntext_push(L);
        const dc_status status = dc_run_once(d, draw_body, &a);
        if (status == DC_OK) {
            dc_fntext_finish(L);
            lua_rawseti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1);
        } else {
            dc_err_clear(&d->rt->job.err);
        }
        lua_settop(L, 1);
    }
    return 1;
}

static int l_function_graphs(lua_State *L)
{
    lua_settop(L, 0);
    return dc_collector_hold(L, push_graphs);
}

int dc_fngraph_dot(lua_State *L)
{
    dc_fn_check(L, 1);
    dc_binding_require(L, "deepc.dot");
    lua_getfield(L, -1, "dot");
    lua_insert(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

/* ---- the trace at hand ------------------------------------------------------------------------ */

static int l_trace_length(lua_State *L)
{
    const dc_trace *t = dc_trace_here(L, dc_dsl_of(L));
    lua_pushinteger(L, t != NULL ? (lua_Integer)t->f->node.n : 0);
    return 1;
}

typedef struct working {
    dc_trace *t;
    dc_handle **tensor;
    int ntensor;
    uint32_t *mark;
    double *work; /* [nmark] */
    int nmark;
} working;

static dc_status work_body(dc_job *j, void *arg)
{
    const working *a = arg;
    const dc_func *f = a->t->f;
    const uint32_t n = f->node.n;
    bool *live = DC_NEW_ARRAY(&j->scratch, bool, n + 1);
    for (int i = 0; i < a->ntensor; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(j, a->t, a->tensor[i], &v));
        if (v.ref < n)
            live[v.ref] = true;
    }
    for (uint32_t i = 0; i < a->t->cell.n; i++)
        if (a->t->cell.at[i].is_set)
            live[a->t->cell.at[i].set.ref] = true;
    for (dc_ref r = n; r-- > 1;) {
        const dc_node *x = dc_node_at(f, r);
        const int reads = x->op == DC_OP_CUSTOM ? 1 : x->nin; /* behind its value are gradients */
        for (int i = 0; live[r] && i < reads; i++)
            live[x->in[i]] = true;
    }
    for (int m = 0; m < a->nmark; m++)
        for (dc_ref r = a->mark[m]; r < (m + 1 < a->nmark ? a->mark[m + 1] : n); r++)
            a->work[m] += r > 0 && live[r] ? dc_flops_node(f, r) : 0;
    return DC_OK;
}

static int l_trace_work(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    working a = {.t = dc_trace_here(L, d), .nmark = (int)lua_rawlen(L, 1)};
    const int top = lua_gettop(L);
    luaL_argcheck(L, a.t != NULL, 1, "nothing is traced");
    a.tensor = lua_newuserdatauv(L, (size_t)top * sizeof *a.tensor, 0);
    for (int i = 2; i <= top; i++)
        a.tensor[a.ntensor++] = dc_handle_check(L, d, i, "summary");
    a.mark = lua_newuserdatauv(L, (size_t)(a.nmark + 1) * sizeof *a.mark, 0);
    a.work = lua_newuserdatauv(L, (size_t)(a.nmark + 1) * sizeof *a.work, 0);
    for (int i = 0; i < a.nmark; i++) {
        lua_rawgeti(L, 1, i + 1);
        a.mark[i] = (uint32_t)luaL_checkinteger(L, -1);
        a.work[i] = 0;
        lua_pop(L, 1);
    }
    dc_run(L, d, work_body, &a);
    lua_createtable(L, a.nmark, 0);
    for (int i = 0; i < a.nmark; i++) {
        lua_pushnumber(L, a.work[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const dc_binding bindings[] = {
    {"function_graph", l_function_graph, DC_ANY, DC_IN_LIBRARY},
    {"function_graphs", l_function_graphs, DC_ANY, DC_IN_LIBRARY},
    {"trace_length", l_trace_length, DC_ANY, DC_IN_LIBRARY},
    {"trace_work", l_trace_work, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fngraph_bindings = DC_BINDINGS(bindings);
