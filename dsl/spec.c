/*
 * Specialisations: a typed function for one set of sizes. Its body is run once with traced
 * arguments, its results are checked against the signature, and the graph is on its way to an
 * executable, on another thread. After that only captured tensors, cells and the sentences of
 * run-time checks stay. The first call waits for the executable and makes an instance of it.
 */
#include "dsl/fn.h"

#include <stdio.h>
#include <string.h>

static const char SPEC[] = "deepc.specialisation";
static const char GUARD[] = "deepc.tracing";

/* ---- specialisations: life ------------------------------------------------------------------- */

static int l_spec_gc(lua_State *L)
{
    dc_spec *s = luaL_checkudata(L, 1, SPEC);
    dc_inst_free(s->inst);
    dc_exec_release(s->exec);
    dc_trace_free(s->trace);
    dc_xfree(s->arg);
    *s = (dc_spec){0};
    return 0;
}

/* Ends a trace when it goes out of scope, by an error too. */
typedef struct guard {
    dc_dsl *d;
    dc_trace *trace;
} guard;

static int l_guard_close(lua_State *L)
{
    const guard *g = luaL_checkudata(L, 1, GUARD);
    if (g->d->trace == g->trace)
        g->d->trace = g->trace->outer;
    return 0;
}

static void push_guard(lua_State *L, dc_dsl *d, dc_trace *t)
{
    guard *g = lua_newuserdatauv(L, sizeof *g, 0);
    *g = (guard){d, t};
    luaL_setmetatable(L, GUARD);
    lua_toclose(L, -1);
    t->L = L;
    t->depth = dc_trace_depth(L);
    t->outer = d->trace;
    d->trace = t;
}

/* ---- tracing --------------------------------------------------------------------------------- */

typedef struct beginning {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    const char *where;
} beginning;

static dc_status begin_body(dc_job *j, void *arg)
{
    const beginning *a = arg;
    DC_UNUSED(j);
    a->s->trace = dc_trace_new(a->d, a->fn->name, a->where);
    a->d->rt->stats.traces++;
    return DC_OK;
}

typedef struct argument {
    dc_trace *t;
    dc_handle *h;
    const char *label;
    dc_type type;
} argument;

static dc_status argument_body(dc_job *j, void *arg)
{
    const argument *a = arg;
    const dc_val v = {dc_g_param(a->t->f, &a->type, a->label), a->type};
    DC_UNUSED(j);
    DC_PUSH(a->t->arg, v.ref);
    dc_handle_trace(a->h, a->t, &v);
    return DC_OK;
}

static void push_arguments(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s)
{
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_oldsig_param *p = &fn->sig.param[i];
        argument a = {.t = s->trace, .h = dc_handle_new_traced(L, d), .label = p->name};
        a.h->origin = dc_place_intern(d, "argument '%s' of %s%s", p->name, fn->name, fn->place);
        if (!dc_oldsig_resolve(&p->type, s->size, &a.type))
            DC_BUG("parameter '%s' of '%s' has an unknown size", p->name, fn->name);
        dc_error_check(L, d, dc_protect(&d->rt->job, argument_body, &a), fn->name);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static DC_NORETURN void wrong_result(lua_State *L, dc_dsl *d, const dc_fn *fn, int i, int idx,
                                     const dc_type *want)
{
    char type[DC_TYPE_TEXT], text[2 * DC_TYPE_TEXT + 60];
    dc_handle *h = dc_handle_test(L, idx);
    dc_fact f = {.op = fn->name, .num = {i + 1}};
    if (h == NULL || h->kind == DC_HANDLE_CLOSED) {
        dc_type_print(want, type, sizeof type);
        snprintf(text, sizeof text, "result %d is %s, declared %s", i + 1, dc_args_describe(L, idx),
                 type);
        f.word[0] = text;
        dc_error_fact(L, d, DC_ERR_RESULT_KIND, &f, &(dc_blame){.expected = type});
    }
    const dc_operand in = {.h = h, .role = "result", .type = *dc_handle_type(h)};
    f.type[0] = in.type;
    f.type[1] = *want;
    dc_error_fact(L, d, DC_ERR_RESULT_TYPE, &f,
                  &(dc_blame){.in = &in,
                              .n = 1,
                              .hint = want->rank == 0 && in.type.dtype == want->dtype
                                          ? "loss:mean() or :sum()"
                                          : NULL});
}

void dc_spec_check_results(lua_State *L, dc_dsl *d, const dc_fn *fn, const int64_t *size, int idx,
                           int n)
{
    const dc_oldsig *sig = &fn->sig;
    if (n > DC_OLDSIG_RESULTS)
        dc_error_raisef(L, d, DC_ERR_ARG, fn->name, "%d results returned, %d is the most", n,
                        DC_OLDSIG_RESULTS);
    if (!sig->any_result && n != sig->nresult)
        dc_error_fact(L, d, DC_ERR_RESULT_COUNT,
                      &(dc_fact){.op = fn->name, .num = {n, sig->nresult}}, NULL);
    for (int i = 0; i < n; i++) {
        dc_handle *h = dc_handle_test(L, idx + i);
        if (sig->any_result) {
            dc_handle_check(L, d, idx + i, fn->name);
            continue;
        }
        dc_type want = sig->result[i];
        for (int k = 0; k < want.rank; k++)
            if (want.dim[k] < 0)
                want.dim[k] = size[~want.dim[k]];
        for (int k = 0; k < want.rank && h != NULL && h->kind != DC_HANDLE_CLOSED; k++)
            if (want.dim[k] < 0 && dc_handle_type(h)->rank == want.rank)
                want.dim[k] = dc_handle_type(h)->dim[k]; /* a size that only the result has */
        if (h == NULL && lua_type(L, idx + i) == LUA_TNUMBER && want.rank == 0)
            continue;
        if (h == NULL || h->kind == DC_HANDLE_CLOSED || !dc_type_same(dc_handle_type(h), &want))
            wrong_result(L, d, fn, i, idx + i, &want);
    }
}

typedef struct taking {
    dc_trace *t;
    dc_handle *h;
    dc_type type;
    uint64_t bits;
} taking;

static dc_status take_body(dc_job *j, void *arg)
{
    const taking *a = arg;
    dc_val v;
    if (a->h != NULL)
        DC_TRY(dc_trace_value(j, a->t, a->h, &v));
    else
        DC_TRY(dc_b_const(j, a->t->f, &a->type, dc_value_of((dc_dtype)a->type.dtype, a->bits), &v));
    DC_PUSH(a->t->result, v);
    return DC_OK;
}

static void take_results(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_trace *t, int idx, int n)
{
    for (int i = 0; i < n; i++) {
        taking a = {.t = t, .h = dc_handle_test(L, idx + i)};
        if (a.h == NULL) {
            a.type = fn->sig.result[i];
            a.bits = dc_args_element(L, d, idx + i, fn->name, (dc_dtype)a.type.dtype);
        }
        dc_error_check(L, d, dc_protect(&d->rt->job, take_body, &a), fn->name);
    }
}

/* ---- compiling ------------------------------------------------------------------------------- */

typedef struct compiling {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
} compiling;

static dc_status compile_body(dc_job *j, void *arg)
{
    const compiling *a = arg;
    dc_spec *s = a->s;
    dc_trace *t = s->trace;
    uint32_t *set = DC_NEW_ARRAY(&j->scratch, uint32_t, t->cell.n + 1);
    dc_exec_desc desc = {.name = a->fn->name,
                         .nfree = t->arg.n + t->captured.n,
                         .ncell = t->cell.n,
                         .nresult = t->result.n,
                         .ncheck = t->check.n,
                         .set = set};
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set)
            set[desc.nset++] = i;
    desc.fn = dc_trace_close(t);
    s->nresult = t->result.n;
    s->arg = dc_xalloc(sizeof *s->arg * (desc.nfree + 1));
    for (uint32_t i = 0; i < t->captured.n; i++)
        s->arg[t->arg.n + i].tensor = t->captured.at[i].tensor;
    DC_TRY(dc_exec_start(a->d->rt, j, &desc, &s->exec));
    dc_trace_settle(t);
    return DC_OK;
}

/* Captured lazy tensors get their values. */
static dc_status realize_captures(dc_dsl *d, dc_job *j, dc_spec *s)
{
    for (uint32_t i = 0; i < s->trace->captured.n; i++) {
        dc_trace_capture *c = &s->trace->captured.at[i];
        if (c->lazy == NULL)
            continue;
        DC_TRY(dc_lazy_realize(d->rt, j, c->lazy));
        if (c->lazy == NULL) /* by a sink of log lines that called the function */
            continue;
        c->tensor = dc_tensor_retain(c->lazy->value);
        s->arg[s->trace->arg.n + i].tensor = c->tensor;
        dc_lazy_release(c->lazy);
        c->lazy = NULL;
    }
    return DC_OK;
}

/* A sink of log lines may call the function while this waits: then the instance is there already.
 */
dc_status dc_spec_ready(dc_dsl *d, dc_job *j, dc_spec *s)
{
    const dc_trace *t = s->trace;
    if (s->inst != NULL)
        return DC_OK;
    DC_TRY(dc_exec_wait(d->rt, j, s->exec));
    DC_TRY(realize_captures(d, j, s));
    if (s->inst != NULL)
        return DC_OK;
    dc_cell **cell = DC_NEW_ARRAY(&j->scratch, dc_cell *, t->cell.n + 1);
    for (uint32_t i = 0; i < t->cell.n; i++)
        cell[i] = t->cell.at[i].cell;
    return dc_inst_new(d->rt, j, s->exec, cell, &s->inst);
}

dc_spec *dc_spec_make(lua_State *L, dc_dsl *d, int fn_idx, const int64_t *size)
{
    dc_fn *fn = lua_touserdata(L, fn_idx);
    luaL_checkstack(L, DC_OLDSIG_PARAMS + 16, "a typed function");
    dc_spec *s = lua_newuserdatauv(L, sizeof *s, 0);
    const int at = lua_gettop(L);
    *s = (dc_spec){0};
    memcpy(s->size, size, sizeof s->size);
    luaL_setmetatable(L, SPEC);
    lua_getiuservalue(L, fn_idx, DC_FN_BODY);
    const char *where = dc_place_of_function(L, d, at + 1);
    lua_pop(L, 1);
    beginning b = {d, fn, s, where};
    dc_error_check(L, d, dc_protect(&d->rt->job, begin_body, &b), fn->name);
    push_guard(L, d, s->trace); /* at + 1; results from at + 2 on */
    lua_getiuservalue(L, fn_idx, DC_FN_BODY);
    push_arguments(L, d, fn, s);
    lua_call(L, fn->sig.nparam, LUA_MULTRET);
    const int n = lua_gettop(L) - at - 1;
    dc_spec_check_results(L, d, fn, size, at + 2, n);
    take_results(L, d, fn, s->trace, at + 2, n);
    lua_settop(L, at);
    compiling c = {d, fn, s};
    dc_error_check(L, d, dc_protect(&d->rt->job, compile_body, &c), fn->name);
    return s;
}

/* ---- registration ---------------------------------------------------------------------------- */

void dc_spec_register(lua_State *L)
{
    luaL_newmetatable(L, SPEC);
    lua_pushcfunction(L, l_spec_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newmetatable(L, GUARD);
    lua_pushcfunction(L, l_guard_close);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 2);
}
