/*
 * One operation, in one of two ways: recorded in the function being traced, or as a lazy tensor
 * (core/runtime/lazy.h), which is computed when its value is read, or when much is pending.
 */
#include "dsl/ops/apply.h"

#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/base/size.h"
#include "dsl/base/trace.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

static const char *const roles[DC_APPLY_IN][DC_APPLY_IN] = {
    {"of"},
    {"left", "right"},
    {"first", "second", "third"},
    {"first", "second", "third", "fourth"},
    {"first", "second", "third", "fourth", "fifth"}};

/* A number takes the dtype of the tensors beside it; the condition of `where` is not beside them. */
static dc_dtype dtype_for_numbers(const dc_apply *a)
{
    for (int i = a->n - 1; i >= (a->n == 3 && !a->alike); i--) {
        const dc_dtype t = (dc_dtype)a->in[i].type.dtype;
        if (a->in[i].h != NULL)
            return a->as_f32 && !dc_dtype_is_smooth(t) ? DC_F32 : t;
    }
    return DC_F32;
}

/* Sizes among the operands become tensors, of the dtype that a number would have. */
static void take_sizes(lua_State *L, dc_dsl *d, const dc_apply *a, const int *idx)
{
    const int n = a->n;
    int64_t dim;
    dc_dtype t = DC_F32;
    for (int i = n - 1; i >= (n == 3 && !a->alike); i--) {
        const dc_handle *h = dc_handle_test(L, idx[i]);
        if (h != NULL && h->kind != DC_HANDLE_CLOSED)
            t = (dc_dtype)dc_handle_type(h)->dtype;
    }
    for (int i = 0; i < n; i++)
        if (dc_size_test(L, idx[i], &dim))
            dc_ops_size(L, d, idx[i], a->as_f32 && !dc_dtype_is_smooth(t) ? DC_F32 : t);
}

void dc_apply_operands(lua_State *L, dc_dsl *d, dc_apply *a, const char *op, const int *idx, int n)
{
    a->op = op;
    a->n = n;
    a->nout = 1;
    take_sizes(L, d, a, idx);
    for (int i = 0; i < n; i++) {
        dc_operand *in = &a->in[i];
        *in = (dc_operand){.role = roles[n - 1][i], .idx = idx[i]};
        const int type = lua_type(L, idx[i]);
        if (type == LUA_TNUMBER || type == LUA_TBOOLEAN)
            continue;
        if (type == LUA_TTABLE)
            dc_error_raisef(L, d, DC_ERR_ARG, op,
                            "a tensor or a number is needed, not a table; "
                            "dc.tensor makes one of it");
        if (i > 0 && lua_isnone(L, idx[i]) && dc_handle_test(L, idx[0]) != NULL)
            dc_error_fact(L, d, DC_ERR_ARG,
                          &(dc_fact){.op = op, .word = {"a second tensor or number is needed"}},
                          &(dc_blame){.hint = lua_pushfstring(L, "with a colon: x:%s(y)", op)});
        if (dc_handle_test(L, idx[i]) == NULL)
            dc_error_raisef(L, d, DC_ERR_ARG, op, "a tensor or a number is needed, not %s",
                            dc_handle_describe(L, idx[i]));
        in->h = dc_handle_check(L, d, idx[i], op);
        in->type = *dc_handle_type(in->h);
    }
    for (int i = 0; i < n; i++)
        if (a->in[i].h == NULL) {
            const bool test = n == 3 && i == 0 && !a->alike;
            const dc_dtype t = test ? DC_BOOL : dtype_for_numbers(a);
            a->in[i].type = dc_type_scalar(t);
            a->in[i].bits = dc_args_element(L, d, idx[i], op, t);
        }
}

/* ---- acting ---------------------------------------------------------------------------------- */

typedef struct action {
    dc_dsl *d;
    dc_rt *rt; /* outside of traces: of the device of its operands */
    const dc_apply *a;
    const dc_place *place;
    bool by_script; /* whether its results are used is noted */
    dc_handle *out[DC_APPLY_OUT];
} action;

static dc_status number(dc_job *j, dc_func *f, const dc_operand *in, dc_val *out)
{
    return dc_build_bits(j, f, &in->type, in->bits, out);
}

/* The short float that all float operands have, else `none`: mixed ones are the operation's error. */
static dc_dtype short_float(const dc_apply *a, const dc_val *in, dc_dtype none)
{
    dc_dtype found = none;
    for (int i = 0; i < a->n; i++) {
        const dc_dtype t = (dc_dtype)in[i].type.dtype;
        if (!dc_dtype_is_float(t))
            continue;
        if (!dc_dtype_is_short(t) || (found != none && found != t))
            return none;
        found = t;
    }
    return found;
}

/* Steps that round to short floats each would add up to something else than a kernel, which rounds at its end. */
static dc_status build_once(dc_job *j, dc_func *f, const dc_apply *a, const dc_val *in, dc_val *out)
{
    const dc_dtype t = a->once ? short_float(a, in, DC_F32) : DC_F32;
    dc_val wide[DC_APPLY_IN];
    if (t == DC_F32)
        return a->build(j, f, a->arg, in, out);
    for (int i = 0; i < a->n; i++) {
        wide[i] = in[i];
        if ((dc_dtype)in[i].type.dtype == t)
            DC_TRY(dc_build_cast(j, f, in[i], DC_F32, &wide[i]));
    }
    DC_TRY(a->build(j, f, a->arg, wide, out));
    for (int i = 0; i < a->nout; i++)
        if (out[i].type.dtype == DC_F32)
            DC_TRY(dc_build_cast(j, f, out[i], t, &out[i]));
    return DC_OK;
}

/* dc.autocast: operands of f32 are rounded to 16 bits, and so is the result, which is f32 again. */
static dc_status build_narrow(dc_job *j, dc_func *f, const dc_apply *a, const dc_val *in,
                              dc_dtype narrow, dc_val *out)
{
    dc_val cast[DC_APPLY_IN];
    bool wide = false;
    for (int i = 0; i < a->n; i++) {
        const dc_dtype t = (dc_dtype)in[i].type.dtype;
        wide = wide || t == DC_F32;
        if (t != DC_F32 && !dc_dtype_is_half(t))
            return build_once(j, f, a, in, out);
    }
    if (!wide)
        return build_once(j, f, a, in, out);
    for (int i = 0; i < a->n; i++)
        DC_TRY(dc_build_cast(j, f, in[i], narrow, &cast[i]));
    DC_TRY(a->build(j, f, a->arg, cast, out));
    return dc_build_cast(j, f, out[0], DC_F32, &out[0]);
}

static dc_status build_op(dc_job *j, dc_func *f, const action *x, const dc_val *in, dc_val *out)
{
    const dc_dtype narrow = (dc_dtype)x->d->autocast;
    if (x->a->product && x->a->n == 2 && narrow != DC_BOOL)
        return build_narrow(j, f, x->a, in, narrow, out);
    return build_once(j, f, x->a, in, out);
}

static bool is_test(const dc_handle *h)
{
    return dc_handle_type(h)->dtype == DC_BOOL;
}

static dc_status record_op_body(dc_job *j, void *arg)
{
    const action *x = arg;
    const dc_apply *a = x->a;
    dc_trace *t = x->d->trace;
    dc_val in[DC_APPLY_IN], out[DC_APPLY_OUT];
    dc_func_from(t->f, x->place->where, x->place->path);
    for (int i = 0; i < a->n; i++)
        if (a->in[i].h != NULL)
            DC_TRY(dc_trace_value(j, t, a->in[i].h, &in[i]));
        else
            DC_TRY(number(j, t->f, &a->in[i], &in[i]));
    DC_TRY(build_op(j, t->f, x, in, out));
    for (int i = 0; i < a->nout; i++) {
        dc_handle_trace(x->out[i], t, &out[i]);
        if (x->by_script)
            dc_uses_add(&t->uses, x->out[i], a->op, x->place->where, is_test(x->out[i]));
    }
    return DC_OK;
}

/* What is made by rule gets to the device of the operation; the entry lets go of it. *out: NULL where it is there. */
static dc_status bring_operand(dc_job *j, dc_rt *rt, const dc_operand *in, dc_lazy **out)
{
    *out = NULL;
    if (in->h == NULL || !dc_handle_roams(in->h) || dc_handle_rt(in->h) == rt)
        return DC_OK;
    DC_TRY(dc_lazy_on(rt, j, in->h->lazy, out));
    dc_lazy_defer(j, *out);
    return DC_OK;
}

/* A number that the operation is made of is part of the graph, and of complex ones all; others are arguments. */
static dc_status lazy_operand(dc_job *j, dc_rt *rt, dc_func *f, const dc_operand *in,
                              dc_lazy *there, dc_val *out)
{
    const dc_dtype t = (dc_dtype)in->type.dtype;
    dc_lazy *n;
    if (in->h == NULL && (dc_lazy_is_plain(t, in->bits) || dc_dtype_is_complex(t)))
        return number(j, f, in, out);
    if (there != NULL)
        n = dc_lazy_retain(there);
    else if (in->h != NULL)
        DC_TRY(dc_handle_lazy(j, in->h, &n));
    else
        n = dc_lazy_number(rt, t, in->bits);
    dc_lazy_defer(j, n);
    *out = dc_lazy_operand(rt, n);
    dc_job_keep(j, n);
    dc_lazy_release(n);
    return DC_OK;
}

static dc_status lazy_op_body(dc_job *j, void *arg)
{
    const action *x = arg;
    const dc_apply *a = x->a;
    dc_rt *rt = x->rt;
    dc_val in[DC_APPLY_IN], out[DC_APPLY_OUT];
    dc_lazy *made[DC_APPLY_OUT], *there[DC_APPLY_IN];
    for (int i = 0; i < a->n; i++)
        DC_TRY(bring_operand(j, rt, &a->in[i], &there[i]));
    dc_func *f = dc_lazy_begin(rt, j);
    for (int i = 0; i < a->n; i++)
        DC_TRY(lazy_operand(j, rt, f, &a->in[i], there[i], &in[i]));
    DC_TRY(build_op(j, f, x, in, out));
    dc_lazy_end(rt, j, out, a->nout, x->place->where, x->place->path, made);
    for (int i = 0; i < a->nout; i++)
        dc_handle_fill_lazy(x->out[i], made[i]);
    for (int i = 0; i < a->nout && x->by_script; i++)
        dc_uses_add(&x->d->watch->lazy, x->out[i], a->op, x->place->where, is_test(x->out[i]));
    dc_status status = DC_OK;
    for (int i = 0; i < a->nout && status == DC_OK; i++)
        status = dc_lazy_limit(rt, j, made[i]);
    return status;
}

/* What fails is the operation, or one before it that it realized. */
static DC_NORETURN void raise_failure(lua_State *L, const action *x, dc_status status)
{
    const dc_apply *a = x->a;
    const char *where, *path;
    dc_lazy_place(x->d->rt, &where, &path);
    const bool own = status != DC_E_BUG && where == NULL;
    dc_handle_raise(L, x->d,
                    &(dc_blame){.op = own ? a->op : NULL, /* not that of a step of it */
                                .in = a->in,
                                .n = a->n,
                                .place = x->place});
}

/* Of tensors, and called by the script itself: what the library leaves unused is its own business. */
static bool is_of_script(lua_State *L, const dc_apply *a)
{
    bool tensors = false;
    for (int i = 0; i < a->n; i++)
        tensors = tensors || a->in[i].h != NULL;
    return tensors && dc_place_by_script(L);
}

/* Where an operation is computed; raises where its operands lie on several devices. */
static dc_rt *find_device(lua_State *L, dc_dsl *d, const dc_apply *a)
{
    const dc_operand *told = NULL;
    dc_rt *rt = d->rt;
    for (int i = 0; i < a->n && dc_rt_has_others(d->rt); i++) {
        const dc_operand *in = &a->in[i];
        dc_rt *its = in->h != NULL && !dc_handle_roams(in->h) ? dc_handle_rt(in->h) : NULL;
        if (its == NULL || (told != NULL && its == rt))
            continue;
        if (told != NULL)
            dc_error_fact(L, d, DC_ERR_DEVICES,
                          &(dc_fact){.op = a->op,
                                     .word = {lua_pushfstring(
                                         L, "the %s tensor is on %s, the %s one on %s", told->role,
                                         rt->device_name, in->role, its->device_name)}},
                          &(dc_blame){.in = a->in, .n = a->n});
        told = in;
        rt = its;
    }
    return rt;
}

void dc_apply_run(lua_State *L, dc_dsl *d, dc_apply *a)
{
    const dc_place place = dc_place_find(L, d);
    action x = {.d = d, .a = a, .place = &place};
    const bool tracing = dc_trace_here(L, d) != NULL;
    x.by_script = !a->step && (tracing || d->watch != NULL) && is_of_script(L, a);
    if (d->rt->broken)
        dc_error_raisef(L, d, DC_ERR_REENTER, a->op,
                        "the context is broken and can only be closed");
    if (!tracing) {
        dc_collector_step(L, d);
        x.rt = find_device(L, d, a);
    }
    for (int i = 0; i < a->nout; i++) {
        x.out[i] = tracing ? dc_handle_new_traced(L, d) : dc_handle_new(L, d);
        x.out[i]->origin = dc_place_made(d, place.where);
    }
    dc_status status = dc_run_once(d, tracing ? record_op_body : lazy_op_body, &x);
    if (status != DC_OK && !tracing) {
        const dc_run_made made = {.out = x.out, .nout = a->nout};
        status = dc_run_recover(L, d, lazy_op_body, &x, &made, status);
    }
    if (status != DC_OK)
        raise_failure(L, &x, status);
    if (a->pairs && dc_pairs_any(a) && is_of_script(L, a))
        dc_pairs_look(L, d, a, x.out[0], &place);
    if (a->pairs && dc_wraps_any(a) && is_of_script(L, a))
        dc_wraps_look(d, a, &place);
    if (!tracing && a->nout == 1 && is_test(x.out[0]) && !a->step && is_of_script(L, a))
        dc_uses_unread(x.out[0], a->op);
}

void dc_apply_to(lua_State *L, dc_dsl *d, const char *op, const int *idx, int n, dc_build_fn *build,
                 const void *arg)
{
    dc_apply_step(L, d, op, idx, n, build, arg, true);
}

void dc_apply_step(lua_State *L, dc_dsl *d, const char *op, const int *idx, int n,
                   dc_build_fn *build, const void *arg, bool last)
{
    dc_apply a = {.build = build, .arg = arg, .step = !last};
    dc_apply_operands(L, d, &a, op, idx, n);
    dc_apply_run(L, d, &a);
}
