/*
 * dc.custom_grad(forward, backward) and dc.remat(f): functions whose gradient is given by hand, or
 * whose value is computed again for it (core/autodiff/custom.h).
 *
 *   local clip = dc.custom_grad(function(x) return x end,
 *                               function(dy, y, x) return dy:maximum(-1):minimum(1) end)
 *
 * Both give back a function of the same arguments. Its bodies run when it is called, with tensors of
 * the function being traced; what is no tensor among the arguments is handed on as it is. Outside
 * typed functions nothing is gained by computing again: dc.remat(f) is f there.
 */
#include "core/autodiff/custom.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { FORWARD = 2, BACKWARD = 3 }; /* upvalues, behind the context */

typedef struct custom {
    dc_dsl *d;
    const char *op;
    dc_place place;
    int n;                              /* arguments */
    int at[DC_CUSTOM_INPUTS];           /* of each tensor among them, its number from 0 */
    dc_handle *in[DC_CUSTOM_INPUTS];    /* tensors given */
    dc_handle *made[DC_CUSTOM_INPUTS];  /* stand-ins for them; later their gradients */
    dc_type type[DC_CUSTOM_INPUTS + 1]; /* with names; behind them that of the value */
    dc_handle *y, *dy, *again;
    dc_operand captured; /* what the forward function must not read, if h is set */
    dc_handle shown;
    dc_custom c;
} custom;

static DC_NORETURN void raise_failure(lua_State *L, const custom *x)
{
    dc_error_raise(
        L, x->d,
        &(dc_blame){
            .op = x->op, .in = &x->captured, .n = x->captured.h != NULL, .place = &x->place});
}

/* ---- recording ------------------------------------------------------------------------------- */

static dc_status begin_custom_body(dc_job *j, void *arg)
{
    custom *x = arg;
    dc_trace *t = x->d->trace;
    dc_ref ref[DC_CUSTOM_INPUTS];
    dc_val v;
    dc_func_from(t->f, x->place.where, x->place.path);
    for (int i = 0; i < x->c.n; i++) {
        DC_TRY(dc_trace_value(j, t, x->in[i], &v));
        ref[i] = v.ref;
        x->type[i] = v.type;
    }
    dc_custom_begin(t->f, ref, x->c.n, &x->c);
    for (int i = 0; i < x->c.n; i++)
        dc_handle_trace(x->made[i], t, &(dc_val){x->c.stand_in[i], x->type[i]});
    return DC_OK;
}

/* What node r is for a message: the label of a parameter, or where it was made. */
static const char *origin_of(dc_dsl *d, const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op == DC_OP_PARAM && f->label.at[n->attr[0]] != NULL)
        return dc_place_intern(d, "%s", f->label.at[n->attr[0]]);
    return n->origin != 0 ? dc_place_made(d, f->origins.at[n->origin].where) : NULL;
}

static dc_status forward_value_body(dc_job *j, void *arg)
{
    custom *x = arg;
    dc_trace *t = x->d->trace;
    dc_ref captured = 0;
    dc_val v;
    dc_func_from(t->f, x->place.where, x->place.path);
    DC_TRY(dc_trace_value(j, t, x->y, &v));
    const dc_status status = dc_custom_value(j, &x->c, v.ref, &captured);
    if (captured != 0)
        x->captured =
            (dc_operand){.h = &x->shown, .role = "reads", .type = dc_node_type(t->f, captured)};
    if (captured != 0)
        x->shown = (dc_handle){.kind = DC_HANDLE_TRACED, .origin = origin_of(x->d, t->f, captured)};
    DC_TRY(status);
    x->type[x->c.n] = v.type;
    dc_handle_trace(x->dy, t, &(dc_val){x->c.dy, v.type});
    dc_handle_trace(x->again, t, &(dc_val){x->c.y_again, v.type});
    return DC_OK;
}

static dc_status end_custom_body(dc_job *j, void *arg)
{
    custom *x = arg;
    dc_trace *t = x->d->trace;
    dc_ref dx[DC_CUSTOM_INPUTS] = {0};
    dc_val v = {0, x->type[x->c.n]};
    dc_func_from(t->f, x->place.where, x->place.path);
    for (int i = 0; i < x->c.n; i++) {
        dc_val g;
        if (x->made[i] == NULL)
            continue;
        DC_TRY(dc_trace_value(j, t, x->made[i], &g));
        dx[i] = g.ref;
    }
    DC_TRY(dc_custom_end(j, &x->c, dx, &v.ref));
    dc_handle_trace(x->y, t, &v);
    return DC_OK;
}

static dc_status remat_body(dc_job *j, void *arg)
{
    custom *x = arg;
    dc_trace *t = x->d->trace;
    dc_val v;
    dc_func_from(t->f, x->place.where, x->place.path);
    DC_TRY(dc_trace_value(j, t, x->y, &v));
    DC_TRY(dc_custom_remat(j, &x->c, v.ref, &v.ref));
    dc_handle_trace(x->dy, t, &v);
    return DC_OK;
}

static void run_or_raise(lua_State *L, custom *x, dc_run_body *body)
{
    if (dc_run_once(x->d, body, x) != DC_OK)
        raise_failure(L, x);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Tensors among the arguments, 1 to n, and the stand-ins that are pushed for all of them. */
static void push_stand_ins(lua_State *L, custom *x)
{
    for (int i = 0; i < x->n; i++) {
        if (dc_handle_test(L, i + 1) == NULL)
            continue;
        if (x->c.n == DC_CUSTOM_INPUTS)
            dc_error_raisef(L, x->d, DC_ERR_ARG, x->op, "%d tensors are the most",
                            DC_CUSTOM_INPUTS);
        x->at[x->c.n] = i;
        x->in[x->c.n++] = dc_handle_check(L, x->d, i + 1, x->op);
    }
    for (int i = 0, k = 0; i < x->n; i++) {
        if (k == x->c.n || x->at[k] != i) {
            lua_pushvalue(L, i + 1);
            continue;
        }
        x->made[k] = dc_handle_new_traced(L, x->d);
        x->made[k++]->origin = dc_place_intern(x->d, "argument %d of %s", i + 1, x->op);
    }
    run_or_raise(L, x, begin_custom_body);
}

static dc_handle *push_traced(lua_State *L, const custom *x, const char *what)
{
    dc_handle *h = dc_handle_new_traced(L, x->d);
    h->origin = x->place.where == NULL ? dc_place_intern(x->d, "%s", what)
                                       : dc_place_intern(x->d, "%s, %s", what, x->place.where);
    return h;
}

/* The place and the arguments of a call; what follows is at n + 1. */
static void begin_call(lua_State *L, custom *x, const char *op)
{
    *x = (custom){.d = dc_dsl_of(L), .op = op, .n = lua_gettop(L)};
    luaL_checkstack(L, 2 * x->n + 16, op);
    x->place = dc_place_find(L, x->d);
}

/* Runs the forward body on stand-ins; its result is at n + 1. */
static void run_forward(lua_State *L, custom *x)
{
    lua_pushvalue(L, lua_upvalueindex(FORWARD));
    push_stand_ins(L, x);
    lua_call(L, x->n, LUA_MULTRET);
    const int results = lua_gettop(L) - x->n;
    if (results != 1 || dc_handle_test(L, x->n + 1) == NULL)
        dc_error_raisef(L, x->d, DC_ERR_GRAD_CUSTOM, x->op,
                        "the forward function returns %s, one tensor is needed",
                        results == 1 ? dc_handle_describe(L, x->n + 1)
                                     : lua_pushfstring(L, "%d values", results));
    x->y = dc_handle_check(L, x->d, x->n + 1, x->op);
}

/* What the backward body returned: nil or a tensor for each argument, from `first` on. */
static void read_gradients(lua_State *L, custom *x, int first)
{
    const int results = lua_gettop(L) - first + 1;
    const char *where = dc_place_of_function(L, x->d, lua_upvalueindex(BACKWARD));
    const char *at = where != NULL ? lua_pushfstring(L, " (%s)", where) : "";
    if (results != x->n)
        dc_error_raisef(L, x->d, DC_ERR_GRAD_CUSTOM, x->op,
                        "the backward function%s returns %d gradient%s for %d argument%s", at,
                        results, results == 1 ? "" : "s", x->n, x->n == 1 ? "" : "s");
    for (int i = 0, k = 0; i < x->n; i++) {
        const bool tensor = k < x->c.n && x->at[k] == i, none = lua_isnil(L, first + i);
        if (!none && (!tensor || dc_handle_test(L, first + i) == NULL))
            dc_error_raisef(L, x->d, DC_ERR_GRAD_CUSTOM, x->op,
                            tensor ? "the backward function%s returns %s as gradient of argument %d"
                                   : "the backward function%s returns %s for argument %d, which is "
                                     "no tensor: nil stands for none",
                            at, dc_handle_describe(L, first + i), i + 1);
        if (tensor)
            x->made[k++] = none ? NULL : dc_handle_check(L, x->d, first + i, x->op);
    }
}

static int l_custom_call(lua_State *L)
{
    custom x;
    begin_call(L, &x, "custom_grad");
    if (dc_trace_here(L, x.d) == NULL)
        dc_error_raisef(L, x.d, DC_ERR_GRAD_CUSTOM, x.op,
                        "a gradient of its own works inside typed functions only");
    run_forward(L, &x);
    lua_pushvalue(L, lua_upvalueindex(BACKWARD));
    x.dy = push_traced(L, &x, "gradient of the value");
    x.again = push_traced(L, &x, "value");
    run_or_raise(L, &x, forward_value_body);
    for (int i = 0; i < x.n; i++)
        lua_pushvalue(L, i + 1);
    lua_call(L, x.n + 2, LUA_MULTRET);
    read_gradients(L, &x, x.n + 2);
    x.y = push_traced(L, &x, "result of a custom gradient");
    run_or_raise(L, &x, end_custom_body);
    return 1;
}

static int l_remat_call(lua_State *L)
{
    custom x;
    begin_call(L, &x, "remat");
    if (dc_trace_here(L, x.d) == NULL) {
        lua_pushvalue(L, lua_upvalueindex(FORWARD));
        lua_insert(L, 1);
        lua_call(L, x.n, LUA_MULTRET);
        return lua_gettop(L);
    }
    run_forward(L, &x);
    x.dy = push_traced(L, &x, "result of a remat");
    run_or_raise(L, &x, remat_body);
    return 1;
}

/* ---- definition ------------------------------------------------------------------------------ */

static void check_callable(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what)
{
    if (lua_type(L, idx) == LUA_TFUNCTION)
        return;
    if (luaL_getmetafield(L, idx, "__call") == LUA_TNIL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%s is a function, not %s", what,
                        dc_handle_describe(L, idx));
    lua_pop(L, 1);
}

static int l_custom_grad(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 2);
    check_callable(L, d, 1, "custom_grad", "the first argument");
    check_callable(L, d, 2, "custom_grad", "the second argument");
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_insert(L, 1);
    lua_pushcclosure(L, l_custom_call, 3);
    return 1;
}

static int l_remat(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 1);
    check_callable(L, d, 1, "remat", "the argument");
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_insert(L, 1);
    lua_pushcclosure(L, l_remat_call, 2);
    return 1;
}

static const dc_binding bindings[] = {
    {"custom_grad", l_custom_grad, 2, DC_IN_MODULE},
    {"remat", l_remat, 1, DC_IN_MODULE},
};

const dc_bindings dc_custom_grad_bindings = DC_BINDINGS(bindings);
