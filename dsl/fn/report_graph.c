/* The graph of an executable as tables for reports: its nodes, and the parts that they are in. */
#include "core/base/number.h"
#include "core/ir/control.h"
#include "core/ir/flops.h"
#include "dsl/base/run.h"
#include "dsl/fn/report_impl.h"

/* ---- nodes ------------------------------------------------------------------------------------- */

/* Nodes that results depend on, and all parameters of the call, numbered through all parts. */
static bool is_told(const dc_exec_part *x, dc_ref r)
{
    return x->live[r] || (x->kind == DC_PART_CALL && dc_node_at(x->fn, r)->op == DC_OP_PARAM);
}

typedef struct finding {
    dc_report_holder *h;
    bool traced;
} finding;

static dc_status find_body(dc_job *j, void *arg)
{
    const finding *a = arg;
    dc_report_holder *h = a->h;
    uint32_t n = 0;
    DC_TRY(dc_exec_graph_make(h->exec, j, a->traced, &h->graph));
    h->number = DC_NEW_ARRAY(&h->graph.mem, uint32_t *, h->graph.npart);
    for (uint32_t p = 0; p < h->graph.npart; p++) {
        const dc_exec_part *x = &h->graph.part[p];
        h->number[p] = DC_NEW_ARRAY(&h->graph.mem, uint32_t, x->fn->node.n);
        for (dc_ref r = 1; r < x->fn->node.n; r++)
            h->number[p][r] = is_told(x, r) ? ++n : 0;
    }
    return DC_OK;
}

static void push_origins(lua_State *L, const dc_func *fn, const dc_node *n)
{
    lua_newtable(L);
    for (uint32_t o = n->origin; o != 0; o = fn->origins.at[o].next) {
        const dc_origin *x = &fn->origins.at[o];
        lua_pushstring(L, x->where != NULL ? x->where : "");
        dc_report_append(L);
        lua_pushstring(L, x->path != NULL ? x->path : "");
        dc_report_append(L);
    }
}

/* A number as it is written, else attributes as they are. */
static void push_attributes(lua_State *L, const dc_node *n)
{
    enum { MOST = 48 };
    char text[DC_NUMBER_TEXT];
    lua_newtable(L);
    if (n->op == DC_OP_CONST) {
        dc_fntext_const(n, 9, text, sizeof text);
        lua_pushstring(L, text);
        dc_report_append(L);
        return;
    }
    for (int i = dc_node_bodies(n); i < n->nattr && i < MOST && n->op != DC_OP_PARAM; i++) {
        lua_pushinteger(L, (lua_Integer)n->attr[i]);
        dc_report_append(L);
    }
}

static const char *class_of(const dc_node *n)
{
    return n->op == DC_OP_PARAM ? "input" : dc_op_class_name((dc_op)n->op);
}

static const char *role_of(const dc_exec_part *x, uint32_t index, const dc_exec_desc *d)
{
    if (x->parent != DC_EXEC_NONE)
        return index < x->nfree ? "value" : "carry";
    if (index < x->nfree)
        return dc_report_role(d, index);
    return index < x->nfree + x->ncell ? "cell" : "derived";
}

/* Which parameter a node is, and what it is called. */
static void set_parameter(lua_State *L, const dc_exec_part *x, const dc_node *n,
                          const dc_exec_desc *d)
{
    if (n->op != DC_OP_PARAM)
        return;
    const uint32_t index = (uint32_t)n->attr[0];
    if (index >= x->fn->param.n)
        return;
    dc_report_set_text(L, "label", x->fn->label.at[index]);
    dc_report_set_text(L, "role", role_of(x, index, d));
    if (x->parent == DC_EXEC_NONE && index < x->nfree + x->ncell)
        dc_report_set_number(L, "parameter", (double)index + 1);
}

static void push_node(lua_State *L, const dc_report_holder *h, uint32_t part, dc_ref r)
{
    const dc_exec_part *x = &h->graph.part[part];
    const dc_node *n = dc_node_at(x->fn, r);
    const dc_type t = dc_node_type(x->fn, r);
    lua_createtable(L, 0, 12);
    dc_report_set_text(L, "op", dc_op_row_of((dc_op)n->op)->name);
    dc_report_set_text(L, "class", class_of(n));
    dc_report_set_type(L, &t);
    dc_report_set_number(L, "part", (double)part + 1);
    dc_report_set_number(L, "bytes", (double)dc_type_bytes(&t));
    dc_report_set_number(L, "flops", dc_flops_node(x->fn, r));
    dc_report_set_number(L, "work", dc_exec_node_work(x->fn, r));
    set_parameter(L, x, n, dc_exec_desc_of(h->exec));
    if (x->home[r] != DC_EXEC_NONE)
        dc_report_set_number(L, "home", (double)x->home[r] + 1);
    lua_createtable(L, n->nin, 0);
    for (int i = 0; i < n->nin; i++)
        dc_report_append_number(L, h->number[part][n->in[i]]);
    lua_setfield(L, -2, "ins");
    push_attributes(L, n);
    lua_setfield(L, -2, "attributes");
    push_origins(L, x->fn, n);
    lua_setfield(L, -2, "origins");
}

static void set_nodes(lua_State *L, const dc_report_holder *h)
{
    lua_newtable(L);
    for (uint32_t p = 0; p < h->graph.npart; p++)
        for (dc_ref r = 1; r < h->graph.part[p].fn->node.n; r++)
            if (h->number[p][r] != 0) {
                push_node(L, h, p, r);
                dc_report_append(L);
            }
    lua_setfield(L, -2, "nodes");
}

/* ---- parts ------------------------------------------------------------------------------------- */

static const char *kind_of(dc_exec_part_kind kind)
{
    switch (kind) {
    case DC_PART_PROLOGUE:
        return "prologue";
    case DC_PART_CALL:
        return "call";
    case DC_PART_LOOP:
        return "loop";
    case DC_PART_THEN:
        return "then";
    case DC_PART_ELSE:
        return "else";
    }
    return "";
}

static const char *result_role(const dc_exec_part *x, uint32_t i, uint32_t nprint)
{
    return x->kind == DC_PART_CALL && i >= x->nresult - nprint ? "printed" : "result";
}

/* Results of calls, then new values of cells by their number; those behind are checks. */
static void push_results(lua_State *L, const dc_report_holder *h, uint32_t part)
{
    const dc_exec_part *x = &h->graph.part[part];
    const dc_exec_desc *desc = dc_exec_desc_of(h->exec);
    lua_newtable(L);
    for (uint32_t i = 0; i < x->fn->result.n; i++) {
        const uint32_t set = i - x->nresult;
        lua_createtable(L, 0, 3);
        dc_report_set_number(L, "node", h->number[part][x->fn->result.at[i]]);
        dc_report_set_text(L, "role",
                           i < x->nresult  ? result_role(x, i, desc->nprint)
                           : set < x->nset ? "set"
                                           : "check");
        if (i >= x->nresult && set < x->nset && x->parent == DC_EXEC_NONE)
            dc_report_set_number(L, "cell", (double)desc->set[set] + 1);
        dc_report_append(L);
    }
}

static void set_parts(lua_State *L, const dc_report_holder *h)
{
    lua_newtable(L);
    for (uint32_t p = 0; p < h->graph.npart; p++) {
        const dc_exec_part *x = &h->graph.part[p];
        lua_newtable(L);
        dc_report_set_text(L, "kind", kind_of(x->kind));
        if (x->parent != DC_EXEC_NONE) {
            dc_report_set_number(L, "parent", (double)x->parent + 1);
            dc_report_set_number(L, "node", h->number[x->parent][x->control]);
        }
        push_results(L, h, p);
        lua_setfield(L, -2, "results");
        dc_report_append(L);
    }
    lua_setfield(L, -2, "parts");
    dc_report_set_flag(L, "exact", h->graph.exact);
}

void dc_report_set_graph(lua_State *L, dc_dsl *d, dc_report_holder *h, dc_report_graph graph)
{
    finding a = {h, graph == DC_REPORT_TRACED};
    dc_run(L, d, find_body, &a);
    set_parts(L, h);
    set_nodes(L, h);
}
