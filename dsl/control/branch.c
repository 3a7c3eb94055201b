/*
 * Branches: two sides, each of which has been traced, become one node.
 *
 *   control_side(body, results)          the side has ended; what it left is kept in the body
 *   control_branch(yes, no, condition)   a list of results
 *
 * Results, besides those of the script: the value of each cell that a side sets; what its tests of data found, nothing
 * on the other side; what it prints.
 */
#include "core/build/complex.h"
#include "dsl/base/args.h"
#include "dsl/control/control.h"
#include "dsl/ops/ops.h"

#include <string.h>

/* ---- a side ---------------------------------------------------------------------------------- */

typedef struct ending {
    dc_control *c;
    dc_handles result;
    int nline;
} ending;

static dc_status end_side_body(dc_job *j, void *arg)
{
    const ending *a = arg;
    dc_control *c = a->c;
    dc_trace *t = c->t;
    dc_arena *keep = &t->module->arena;
    dc_side *s = &c->side;
    uint32_t *set;
    *s = (dc_side){.nresult = a->result.n, .nline = a->nline};
    s->result = DC_NEW_ARRAY(keep, dc_val, (uint32_t)a->result.n + 1);
    for (int i = 0; i < a->result.n; i++)
        DC_TRY(dc_trace_value(j, t, a->result.at[i], &s->result[i]));
    DC_TRY(dc_messages_keep_in_body(j, t));
    s->nset = dc_control_sets(t, &j->scratch, &set);
    s->set = DC_NEW_ARRAY(keep, dc_side_set, s->nset + 1);
    for (uint32_t i = 0; i < s->nset; i++)
        s->set[i] = (dc_side_set){set[i], t->cell.at[set[i]].set};
    s->ncheck = t->check.n - c->body->ncheck;
    s->check = DC_NEW_ARRAY(keep, dc_trace_check, s->ncheck + 1);
    for (uint32_t i = 0; i < s->ncheck; i++)
        s->check[i] = t->check.at[c->body->ncheck + i];
    s->nprint = t->print.n - c->body->nprint;
    s->print = DC_NEW_ARRAY(keep, dc_val, s->nprint + 1);
    for (uint32_t i = 0; i < s->nprint; i++)
        s->print[i] = t->print.at[c->body->nprint + i];
    dc_trace_body_end(t, c->body);
    c->body = NULL;
    return DC_OK;
}

/* control_side(body, results) */
static int l_side(lua_State *L)
{
    ending a = {.c = dc_control_check(L, 1)};
    lua_settop(L, 2);
    a.result = dc_control_list(L, a.c->d, 2, NULL);
    dc_control_cut_lines(L, a.c->t, a.c->body->nline + 1);
    a.nline = (int)lua_rawlen(L, -1);
    lua_setiuservalue(L, 1, DC_CONTROL_LINES);
    dc_run(L, a.c->d, end_side_body, &a);
    return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

typedef struct branching {
    dc_control *side[2];
    dc_handle *condition;
    dc_handles out;
} branching;

typedef struct assembly {
    const branching *a;
    dc_job *j;
    dc_trace *t;
    dc_func *f;
    dc_ref *root; /* of both sides */
    dc_type *type;
    int n, most;
    uint32_t *set; /* cells that either sets */
    uint32_t nset;
    dc_ref node;
} assembly;

static void add_result(assembly *s, dc_ref yes, dc_ref no, const dc_type *type)
{
    s->root[s->n] = yes;
    s->root[s->most + s->n] = no;
    s->type[s->n++] = *type;
}

/* v on its side, nothing on the other one. */
static dc_status add_own(assembly *s, int side, dc_ref v, double nothing, const dc_type *names)
{
    const dc_type type = names != NULL ? dc_complex_type(s->f, v, names) : dc_node_type(s->f, v);
    dc_val none;
    DC_TRY(dc_build_const(s->j, s->f, &type, nothing, &none));
    add_result(s, side == 0 ? v : none.ref, side == 0 ? none.ref : v, &type);
    return DC_OK;
}

/* The value of a cell when a side has ended. */
static dc_ref value_after(const assembly *s, int side, uint32_t cell)
{
    const dc_side *x = &s->a->side[side]->side;
    const dc_trace_cell *c = &s->t->cell.at[cell];
    for (uint32_t i = 0; i < x->nset; i++)
        if (x->set[i].cell == cell)
            return x->set[i].v.ref;
    return c->read.at[c->read.n - 1].ref;
}

static void list_sets(assembly *s)
{
    bool *is = DC_NEW_ARRAY(&s->j->scratch, bool, s->t->cell.n + 1);
    s->set = DC_NEW_ARRAY(&s->j->scratch, uint32_t, s->t->cell.n + 1);
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < s->a->side[side]->side.nset; i++)
            is[s->a->side[side]->side.set[i].cell] = true;
    for (uint32_t i = 0; i < s->t->cell.n; i++)
        if (is[i])
            s->set[s->nset++] = i;
}

static dc_status list_results(assembly *s)
{
    const dc_side *yes = &s->a->side[0]->side, *no = &s->a->side[1]->side;
    list_sets(s);
    s->most =
        yes->nresult + (int)(s->nset + 2 * (yes->ncheck + no->ncheck) + yes->nprint + no->nprint);
    s->root = DC_NEW_ARRAY(&s->j->scratch, dc_ref, 2 * (uint32_t)s->most + 1);
    s->type = DC_NEW_ARRAY(&s->j->scratch, dc_type, (uint32_t)s->most + 1);
    for (int i = 0; i < yes->nresult; i++) {
        dc_type t = yes->result[i].type;
        for (int k = 0; k < t.rank; k++)
            t.name[k] = t.name[k] != NULL ? t.name[k] : no->result[i].type.name[k];
        add_result(s, yes->result[i].ref, no->result[i].ref, &t);
    }
    for (uint32_t i = 0; i < s->nset; i++)
        add_result(s, value_after(s, 0, s->set[i]), value_after(s, 1, s->set[i]),
                   dc_trace_cell_type(&s->t->cell.at[s->set[i]]));
    for (int side = 0; side < 2; side++) {
        const dc_side *x = &s->a->side[side]->side;
        for (uint32_t i = 0; i < x->ncheck; i++) {
            DC_TRY(add_own(s, side, x->check[i].position, -1, NULL));
            DC_TRY(add_own(s, side, x->check[i].value, 0, NULL));
        }
    }
    for (int side = 0; side < 2; side++) {
        const dc_side *x = &s->a->side[side]->side;
        for (uint32_t i = 0; i < x->nprint; i++)
            DC_TRY(add_own(s, side, x->print[i].ref, 0, &x->print[i].type));
    }
    return DC_OK;
}

static dc_status make_branch(assembly *s, dc_ref condition)
{
    dc_outline *o = DC_NEW_ARRAY(&s->j->scratch, dc_outline, 1);
    dc_ref in[DC_MAX_OPERANDS] = {condition};
    uint32_t body[2];
    *o = (dc_outline){.f = s->f, .mark = s->a->side[0]->mark, .root = s->root, .nroot = s->most};
    DC_TRY(dc_outline_branch(s->j, o, body));
    if (o->ncaptured >= DC_MAX_OPERANDS)
        return dc_failf(s->j, DC_ERR_ARG, s->a->side[0]->op, "the sides read more than %d tensors",
                        DC_MAX_OPERANDS - 1);
    memcpy(in + 1, o->captured, (size_t)o->ncaptured * sizeof *in);
    return dc_make(s->j, s->f, DC_OP_BRANCH, in, 1 + o->ncaptured,
                   (const int64_t[]){body[0], body[1]}, DC_BRANCH_ATTRS, NULL, &s->node);
}

static dc_val pick(const assembly *s, int i)
{
    return (dc_val){dc_graph_pick(s->f, s->node, i), s->type[i]};
}

static dc_status give(assembly *s, dc_val condition)
{
    dc_trace *t = s->t;
    int at = 0;
    for (; at < s->a->out.n; at++) {
        const dc_val v = pick(s, at);
        dc_handle_trace(s->a->out.at[at], t, &v);
    }
    for (uint32_t i = 0; i < s->nset; i++)
        DC_TRY(dc_param_record(s->j, t, t->cell.at[s->set[i]].cell, pick(s, at++)));
    for (int side = 0; side < 2; side++) {
        const dc_side *x = &s->a->side[side]->side;
        for (uint32_t i = 0; i < x->ncheck; i++) {
            dc_trace_check c = x->check[i];
            c.position = pick(s, at++).ref;
            c.value = pick(s, at++).ref;
            DC_PUSH(t->check, c);
        }
    }
    for (int side = 0; side < 2; side++) {
        const dc_side *x = &s->a->side[side]->side;
        if (x->nline > 0)
            DC_PUSH(t->print, condition);
        for (uint32_t i = 0; i < x->nprint; i++)
            DC_PUSH(t->print, pick(s, at++));
    }
    return DC_OK;
}

static dc_status branch_body(dc_job *j, void *arg)
{
    branching *a = arg;
    dc_control *c = a->side[0];
    assembly s = {.a = a, .j = j, .t = c->t, .f = c->t->f};
    dc_val condition;
    dc_func_from(s.f, c->place.where, c->place.path);
    DC_TRY(dc_trace_value(j, s.t, a->condition, &condition));
    DC_TRY(list_results(&s));
    DC_TRY(make_branch(&s, condition.ref));
    return give(&s, condition);
}

/* What a side printed is shown where it ran. Lines without a tensor: the condition comes with them, too. */
static void group_lines(lua_State *L, const branching *a, int side)
{
    lua_getiuservalue(L, 1 + side, DC_CONTROL_LINES);
    if (lua_rawlen(L, -1) == 0) {
        lua_pop(L, 1);
        return;
    }
    lua_pushliteral(L, "side");
    lua_setfield(L, -2, "kind");
    lua_pushboolean(L, side == 0);
    lua_setfield(L, -2, "runs");
    lua_pushinteger(L, a->side[side]->side.nprint);
    lua_setfield(L, -2, "tensors");
    dc_control_add_lines(L, a->side[0]->t);
}

/* control_branch(yes, no, condition) */
static int l_branch(lua_State *L)
{
    branching a = {
        .side = {dc_udata_check(L, 1, &dc_control_type), dc_udata_check(L, 2, &dc_control_type)}};
    dc_dsl *d = a.side[0]->d;
    lua_settop(L, 3);
    luaL_checkstack(L, 16, "a branch");
    a.condition = dc_handle_check(L, d, 3, a.side[0]->op);
    a.out = dc_control_fresh(L, a.side[0], a.side[0]->side.nresult);
    const int results = lua_gettop(L);
    if (dc_run_once(d, branch_body, &a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = a.side[0]->op, .place = &a.side[0]->place});
    group_lines(L, &a, 0);
    group_lines(L, &a, 1);
    lua_pushvalue(L, results);
    return 1;
}

static const dc_binding bindings[] = {
    {"control_side", l_side, DC_ANY, DC_IN_LIBRARY},
    {"control_branch", l_branch, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_branch_bindings = DC_BINDINGS(bindings);
