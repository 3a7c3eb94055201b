/*
 * One operation, in one of two ways: recorded in the function being traced, or computed at once by
 * the interpreter in a function made for it alone.
 */
#include "core/eval.h"
#include "dsl/impl.h"

#include <stdio.h>
#include <string.h>

static const char *const roles[3][3] = {{"of"}, {"left", "right"}, {"first", "second", "third"}};

/* A number takes the dtype of the tensors beside it; the condition of `where` is not beside them. */
static dc_dtype dtype_for_numbers(const dc_apply *a)
{
    if (a->as_f32)
        return DC_F32;
    for (int i = a->n - 1; i >= (a->n == 3); i--)
        if (a->in[i].h != NULL)
            return (dc_dtype)a->in[i].type.dtype;
    return DC_F32;
}

void dc_apply_operands(lua_State *L, dc_dsl *d, dc_apply *a, const char *op, const int *idx, int n)
{
    a->op = op;
    a->n = n;
    a->nout = 1;
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
        if (dc_handle_test(L, idx[i]) == NULL)
            dc_error_raisef(L, d, DC_ERR_ARG, op, "a tensor or a number is needed, not %s",
                            dc_args_describe(L, idx[i]));
        in->h = dc_handle_check(L, d, idx[i], op);
        in->type = *dc_handle_type(in->h);
    }
    for (int i = 0; i < n; i++)
        if (a->in[i].h == NULL) {
            const dc_dtype t = n == 3 && i == 0 ? DC_BOOL : dtype_for_numbers(a);
            a->in[i].type = dc_type_scalar(t);
            a->in[i].bits = dc_args_element(L, d, idx[i], op, t);
        }
}

/* ---- acting ---------------------------------------------------------------------------------- */

typedef struct action {
    dc_dsl *d;
    const dc_apply *a;
    const dc_place *place;
    dc_handle *out[DC_APPLY_OUT];
} action;

static dc_status number(dc_job *j, dc_func *f, const dc_operand *in, dc_val *out)
{
    return dc_b_const(j, f, &in->type, dc_value_of((dc_dtype)in->type.dtype, in->bits), out);
}

static dc_status record_body(dc_job *j, void *arg)
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
    DC_TRY(a->build(j, t->f, a->arg, in, out));
    for (int i = 0; i < a->nout; i++)
        dc_handle_trace(x->out[i], t, &out[i]);
    return DC_OK;
}

static void free_module(void *m)
{
    dc_module_free(m);
}

static void release_tensor(void *t)
{
    dc_tensor_release(t);
}

/* Where the interpreter reads it: a copy where memory of the device is not the host's. */
static dc_status on_host(dc_job *j, dc_device *dev, const void *mem, size_t bytes, const void **out)
{
    *out = mem;
    if (dev->ops->host || bytes == 0)
        return DC_OK;
    void *copy = dc_arena_alloc(&j->scratch, bytes);
    *out = copy;
    return dev->ops->download(dev, j, copy, mem, bytes);
}

static dc_status operand(dc_job *j, dc_device *dev, dc_func *f, const dc_operand *in,
                         const void **mem, dc_val *out)
{
    if (in->h == NULL)
        return number(j, f, in, out);
    if (in->h->kind == DC_HANDLE_CLOSED) /* by a finalizer, since it was looked at */
        return dc_failf(j, DC_ERR_CLOSED, NULL, "the tensor is closed");
    const bool is_cell = in->h->kind == DC_HANDLE_CELL;
    if (is_cell)
        DC_TRY(dc_cell_check(in->h->cell, j, NULL, true));
    const void *at = is_cell ? in->h->cell->store->mem : dc_tensor_mem(in->h->tensor);
    DC_TRY(on_host(j, dev, at, dc_type_bytes(&in->type), &mem[f->param.n]));
    *out = (dc_val){dc_g_param(f, &in->type, NULL), in->type};
    return DC_OK;
}

static dc_status compute_body(dc_job *j, void *arg)
{
    const action *x = arg;
    const dc_apply *a = x->a;
    dc_rt *rt = x->d->rt;
    dc_device *dev = rt->device;
    dc_val in[DC_APPLY_IN], out[DC_APPLY_OUT];
    const void *params[DC_APPLY_IN] = {0};
    void *results[DC_APPLY_OUT];
    dc_tensor *made[DC_APPLY_OUT];
    dc_module *m = dc_module_new();
    dc_job_defer(j, free_module, m);
    dc_func *f = dc_func_new(m, a->op);
    for (int i = 0; i < a->n; i++) {
        if (a->in[i].h != NULL && a->in[i].h->kind == DC_HANDLE_TRACED)
            return dc_fail(j, DC_ERR_LEAKED, &(dc_fact){.op = a->op, .word = {a->in[i].h->fn}});
        DC_TRY(operand(j, dev, f, &a->in[i], params, &in[i]));
    }
    DC_TRY(a->build(j, f, a->arg, in, out));
    for (int i = 0; i < a->nout; i++) {
        DC_PUSH(f->result, out[i].ref);
        DC_TRY(dc_tensor_new(rt, j, &out[i].type, &made[i]));
        dc_job_defer(j, release_tensor, made[i]);
        results[i] = dev->ops->host ? dc_tensor_mem(made[i])
                                    : dc_arena_alloc(&j->scratch, dc_type_bytes(&out[i].type));
    }
    DC_TRY(dc_eval(j, f, DC_EVAL_ROUND, params, results));
    for (int i = 0; i < a->nout && !dev->ops->host; i++)
        DC_TRY(dev->ops->upload(dev, j, dc_tensor_mem(made[i]), results[i],
                                dc_type_bytes(&out[i].type)));
    rt->stats.interpreted++;
    for (int i = 0; i < a->nout; i++) {
        dc_job_keep(j, made[i]);
        dc_handle_fill(x->out[i], made[i]);
    }
    return DC_OK;
}

void dc_apply_run(lua_State *L, dc_dsl *d, dc_apply *a)
{
    const dc_place place = dc_place_find(L, d);
    action x = {.d = d, .a = a, .place = &place};
    const bool tracing = dc_trace_here(L, d) != NULL;
    dc_job *j = &d->rt->job;
    if (d->rt->broken)
        dc_error_raisef(L, d, DC_ERR_REENTER, a->op,
                        "the context is broken and can only be closed");
    for (int i = 0; i < a->nout; i++) {
        x.out[i] = tracing ? dc_handle_new_traced(L, d) : dc_handle_new(L, d);
        x.out[i]->origin =
            place.where == NULL ? NULL : dc_place_intern(d, "made at %s", place.where);
    }
    dc_status status = dc_protect(j, tracing ? record_body : compute_body, &x);
    if (status == DC_E_NOMEM && !tracing) {
        lua_gc(L, LUA_GCCOLLECT);
        status = dc_protect(j, compute_body, &x);
    }
    if (status != DC_OK && status != DC_E_BUG)
        j->err.fact.op = a->op; /* not that of a step of it */
    if (status != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = a->op, .in = a->in, .n = a->n, .place = &place});
    for (int i = 0; i < a->nout && !tracing; i++)
        dc_handle_pressure(L, d, dc_type_bytes(dc_handle_type(x.out[i])));
}
