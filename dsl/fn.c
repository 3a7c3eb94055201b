/*
 * Typed functions: dc.fn(signature, body [, sizes [, options]]), and their calls.
 *
 * A function whose sizes are all known is traced and checked where it is defined, and begins to
 * compile there on another thread; one with names of dims without a size, at the first call with
 * each set of sizes (dsl/spec.c). A compiler's failure is raised by the call that needs the code.
 *
 * A typed function called while another is traced is checked and becomes part of that one.
 */
#include "dsl/fn.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char FN[] = "deepc.fn";

enum { LIMIT = 8 };

dc_fn *dc_fn_check(lua_State *L, int idx)
{
    return luaL_checkudata(L, idx, FN);
}

/* ---- arguments of a call --------------------------------------------------------------------- */

static DC_NORETURN void wrong_argument(lua_State *L, dc_dsl *d, const dc_fn *fn, int i, int idx,
                                       const int64_t *size, int axis)
{
    char declared[DC_TYPE_TEXT], text[2 * DC_TYPE_TEXT + 200];
    const dc_oldsig_param *p = &fn->sig.param[i];
    dc_handle *h = dc_handle_test(L, idx);
    const bool tensor = h != NULL && h->kind != DC_HANDLE_CLOSED;
    const char *given = dc_args_describe(L, idx), *hint = NULL;
    char cast[60];
    dc_oldsig_type_print(&p->type, size, declared, sizeof declared);
    int n =
        snprintf(text, sizeof text, "argument '%s' is %s, declared %s", p->name, given, declared);
    const dc_operand in = {.h = h, .role = p->name, .type = tensor ? *dc_handle_type(h) : p->type};
    if (tensor && axis >= 0 && n < (int)sizeof text) {
        const int64_t want = p->type.dim[axis] < 0 ? size[~p->type.dim[axis]] : p->type.dim[axis];
        snprintf(text + n, sizeof text - (size_t)n, ": axis %d: %" PRId64 " against %" PRId64,
                 axis + 1, in.type.dim[axis], want);
    } else if (tensor && in.type.dtype != p->type.dtype) {
        snprintf(cast, sizeof cast, ":cast \"%s\" converts",
                 dc_dtype_name((dc_dtype)p->type.dtype));
        hint = cast;
    }
    dc_error_fact(
        L, d, DC_ERR_ARG_KIND, &(dc_fact){.op = fn->name, .word = {text}},
        &(dc_blame){.in = &in, .n = tensor, .hint = hint, .expected = declared, .got = given});
}

static void check_count(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    const int given = lua_gettop(L) - 1;
    if (given != fn->sig.nparam)
        dc_error_fact(L, d, DC_ERR_ARG_COUNT,
                      &(dc_fact){.op = fn->name, .num = {given, fn->sig.nparam}}, NULL);
}

/* Binds sizes by the tensors among the arguments and checks their types. */
static void match_arguments(lua_State *L, dc_dsl *d, const dc_fn *fn, int64_t *size)
{
    for (int i = 0; i < fn->sig.nparam; i++) {
        int axis;
        const dc_type *declared = &fn->sig.param[i].type;
        if (dc_handle_test(L, i + 2) == NULL)
            continue;
        const dc_handle *h = dc_handle_check(L, d, i + 2, fn->name);
        if (!dc_oldsig_match(declared, dc_handle_type(h), size, &axis))
            wrong_argument(L, d, fn, i, i + 2, size, axis);
    }
}

/* A table of numbers becomes a tensor in its place. */
static void make_tensors(lua_State *L, dc_dsl *d, const dc_fn *fn, int64_t *size)
{
    for (int i = 0; i < fn->sig.nparam; i++) {
        const dc_oldsig_param *p = &fn->sig.param[i];
        const int type = lua_type(L, i + 2);
        dc_type want;
        int axis;
        if (dc_handle_test(L, i + 2) != NULL ||
            ((type == LUA_TNUMBER || type == LUA_TBOOLEAN) && p->type.rank == 0))
            continue;
        if (type != LUA_TTABLE)
            wrong_argument(L, d, fn, i, i + 2, size, -1);
        const bool known = dc_oldsig_resolve(&p->type, size, &want);
        const dc_type scalar = dc_type_scalar((dc_dtype)p->type.dtype);
        dc_make_from_table(L, d, i + 2, known ? &want : &scalar, !known, fn->name);
        lua_replace(L, i + 2);
        const dc_handle *h = dc_handle_test(L, i + 2);
        if (!dc_oldsig_match(&p->type, dc_handle_type(h), size, &axis))
            wrong_argument(L, d, fn, i, i + 2, size, axis);
    }
}

static dc_spec *find_spec(lua_State *L, dc_dsl *d, dc_fn *fn, const int64_t *size)
{
    if (fn->only != NULL)
        return fn->only;
    lua_getiuservalue(L, 1, DC_FN_SPECS);
    const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
    dc_spec *s = NULL;
    for (int i = 1; i <= n && s == NULL; i++) {
        lua_rawgeti(L, list, i);
        s = lua_touserdata(L, -1);
        if (memcmp(s->size, size, sizeof s->size) != 0)
            s = NULL;
        lua_pop(L, 1);
    }
    if (s == NULL && n >= fn->limit)
        dc_error_fact(L, d, DC_ERR_REENTER,
                      &(dc_fact){.op = fn->name,
                                 .word = {lua_pushfstring(
                                     L, "%d sets of sizes are compiled, more than its limit", n)}},
                      &(dc_blame){.hint = "pad to fewer sizes, or raise it: dc.fn(sig, body, nil, "
                                          "{ limit = 32 })"});
    if (s == NULL) {
        s = dc_spec_make(L, d, 1, size);
        lua_rawseti(L, list, n + 1);
    }
    lua_pop(L, 1);
    return s;
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct calling {
    dc_dsl *d;
    dc_spec *s;
    dc_handle *out[DC_OLDSIG_RESULTS];
    dc_tensor *made[DC_OLDSIG_RESULTS];
    dc_fault fault;
} calling;

static dc_status call_body(dc_job *j, void *arg)
{
    calling *a = arg;
    a->fault = (dc_fault){.check = -1};
    DC_TRY(dc_spec_ready(a->d, j, a->s));
    DC_TRY(dc_inst_call(a->s->inst, j, a->s->arg, a->made, &a->fault));
    for (uint32_t i = 0; i < a->s->nresult; i++)
        dc_handle_fill(a->out[i], a->made[i]);
    return DC_OK;
}

typedef struct showing {
    dc_handle *cell, *out;
} showing;

static dc_status show_body(dc_job *j, void *arg)
{
    const showing *a = arg;
    DC_TRY(dc_cell_check(a->cell->cell, j, NULL, true));
    dc_handle_fill(a->out, dc_cell_show(a->cell->cell));
    return DC_OK;
}

/* A cell among the arguments becomes its value; a lazy tensor gets one. */
static void show_cell(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx)
{
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL && h->kind == DC_HANDLE_LAZY)
        dc_handle_realize(L, d, h, fn->name);
    if (h == NULL || h->kind != DC_HANDLE_CELL)
        return;
    showing a = {h, dc_handle_new(L, d)};
    a.out->origin = h->origin;
    dc_error_check(L, d, dc_protect(&d->rt->job, show_body, &a), fn->name);
    lua_replace(L, idx);
}

/* Between this and the call nothing may allocate in Lua: a finalizer may call the same function. */
static void set_argument(lua_State *L, dc_dsl *d, const dc_fn *fn, int i, dc_arg *arg)
{
    const int idx = i + 2;
    if (dc_handle_test(L, idx) == NULL) {
        *arg = (dc_arg){
            .bits = dc_args_element(L, d, idx, fn->name, (dc_dtype)fn->sig.param[i].type.dtype)};
        return;
    }
    const dc_handle *h = dc_handle_check(L, d, idx, fn->name);
    *arg = (dc_arg){.tensor = dc_handle_held(h)};
    if (arg->tensor == NULL)
        dc_error_fact(L, d, DC_ERR_LEAKED, &(dc_fact){.op = fn->name, .word = {h->fn}}, NULL);
}

static DC_NORETURN void raise_fault(lua_State *L, dc_dsl *d, const calling *a)
{
    const dc_trace_check *c = &a->s->trace->check.at[a->fault.check];
    dc_check_raise(L, d, c, NULL, a->fault.value, a->fault.position);
}

static int run(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s)
{
    calling a = {.d = d, .s = s};
    size_t bytes = 0;
    for (int i = 0; i < fn->sig.nparam; i++)
        show_cell(L, d, fn, i + 2);
    for (uint32_t i = 0; i < s->nresult; i++) {
        a.out[i] = dc_handle_new(L, d);
        a.out[i]->origin = fn->origin;
        a.out[i]->compiled = fn->name;
    }
    for (int i = 0; i < fn->sig.nparam; i++)
        set_argument(L, d, fn, i, &s->arg[i]);
    const dc_status status = dc_handle_act(L, d, call_body, &a);
    if (status != DC_OK && a.fault.check >= 0)
        raise_fault(L, d, &a);
    dc_error_check(L, d, status, fn->name);
    for (uint32_t i = 0; i < s->nresult; i++)
        bytes += dc_type_bytes(&a.made[i]->type);
    dc_handle_pressure(L, d, bytes);
    return (int)s->nresult;
}

typedef struct number {
    dc_type type;
    uint64_t bits;
} number;

/* Numbers become traced scalars of the declared type. */
static dc_status build_number(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const number *a = arg;
    DC_UNUSED(in);
    return dc_b_const(j, f, &a->type, dc_value_of((dc_dtype)a->type.dtype, a->bits), out);
}

/* Pushes the number at idx as a scalar of the function being traced. */
static void trace_number(lua_State *L, dc_dsl *d, const char *op, const dc_type *type, int idx)
{
    number t = {.type = *type};
    t.bits = dc_args_element(L, d, idx, op, (dc_dtype)type->dtype);
    dc_apply a = {.op = op, .nout = 1, .build = build_number, .arg = &t};
    dc_apply_run(L, d, &a);
}

/* Part of the function being traced: its body, between two checks. */
static int inline_call(lua_State *L, dc_dsl *d, const dc_fn *fn, const int64_t *size)
{
    const int n = fn->sig.nparam;
    lua_getiuservalue(L, 1, DC_FN_BODY);
    lua_replace(L, 1);
    for (int i = 0; i < n; i++) {
        if (dc_handle_test(L, i + 2) != NULL)
            continue;
        trace_number(L, d, fn->name, &fn->sig.param[i].type, i + 2);
        lua_replace(L, i + 2);
    }
    lua_call(L, n, LUA_MULTRET);
    const int nresult = lua_gettop(L);
    dc_spec_check_results(L, d, fn, size, 1, nresult);
    luaL_checkstack(L, 8, "results");
    for (int i = 0; i < nresult; i++)
        if (dc_handle_test(L, i + 1) == NULL) {
            trace_number(L, d, fn->name, &fn->sig.result[i], i + 1);
            lua_replace(L, i + 1);
        }
    return nresult;
}

static int l_call(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn *fn = luaL_checkudata(L, 1, FN);
    int64_t size[DC_OLDSIG_VARS];
    check_count(L, d, fn);
    luaL_checkstack(L, DC_OLDSIG_RESULTS + 16, "a call");
    memcpy(size, fn->sig.size, sizeof size);
    match_arguments(L, d, fn, size);
    make_tensors(L, d, fn, size);
    if (dc_trace_here(L, d) != NULL)
        return inline_call(L, d, fn, size);
    for (int v = 0; v < fn->sig.nvar; v++)
        if (size[v] < 0)
            dc_error_raisef(L, d, DC_ERR_ARG, fn->name, "no argument tells the size '%s'",
                            fn->sig.var[v]);
    return run(L, d, fn, find_spec(L, d, fn, size));
}

/* ---- definition ------------------------------------------------------------------------------ */

typedef struct parsing {
    dc_names *names;
    const char *text;
    dc_oldsig *out;
} parsing;

static dc_status parse_body(dc_job *j, void *arg)
{
    const parsing *a = arg;
    return dc_oldsig_parse(j, a->names, a->text, a->out);
}

/* The body's own parameters are those of the signature, in name and number. */
static void check_body(lua_State *L, dc_dsl *d, int idx, const dc_oldsig *sig)
{
    lua_Debug ar;
    if (lua_type(L, idx) != LUA_TFUNCTION) {
        if (!luaL_getmetafield(L, idx, "__call"))
            dc_error_raisef(L, d, DC_ERR_ARG, "fn", "a function is needed, not %s",
                            dc_args_describe(L, idx));
        lua_pop(L, 1);
        return;
    }
    if (lua_iscfunction(L, idx))
        return;
    lua_pushvalue(L, idx);
    lua_getinfo(L, ">u", &ar);
    if (ar.isvararg)
        dc_error_raisef(L, d, DC_ERR_ARG, sig->name != NULL ? sig->name : "fn",
                        "the function takes '...'; its parameters are those of its signature");
    if (ar.nparams != sig->nparam)
        dc_error_fact(L, d, DC_ERR_ARG_COUNT,
                      &(dc_fact){.op = sig->name != NULL ? sig->name : "fn",
                                 .num = {ar.nparams, sig->nparam}},
                      &(dc_blame){.hint = "the function has as many parameters as its signature"});
    lua_pushvalue(L, idx);
    for (int i = 0; i < sig->nparam; i++) {
        const char *name = lua_getlocal(L, NULL, i + 1);
        if (name != NULL && *name != '(' && strcmp(name, sig->param[i].name) != 0)
            dc_error_raisef(L, d, DC_ERR_ARG, sig->name != NULL ? sig->name : "fn",
                            "parameter %d is '%s' in the signature and '%s' in the function", i + 1,
                            sig->param[i].name, name);
    }
    lua_pop(L, 1);
}

/* { batch = 64 } gives sizes to names. */
static void read_sizes(lua_State *L, dc_dsl *d, int idx, dc_oldsig *sig)
{
    if (lua_isnil(L, idx))
        return;
    dc_args_options(L, d, idx, "fn", (const char *const *)sig->var);
    for (int v = 0; v < sig->nvar; v++) {
        if (lua_getfield(L, idx, sig->var[v]) != LUA_TNIL) {
            const int64_t n = dc_args_integer(L, d, lua_gettop(L), "fn", sig->var[v]);
            if (n < 0 || (sig->size[v] >= 0 && sig->size[v] != n))
                dc_error_raisef(L, d, DC_ERR_ARG, "fn", "'%s' cannot be %" PRId64, sig->var[v], n);
            sig->size[v] = n;
        }
        lua_pop(L, 1);
    }
}

static int read_limit(lua_State *L, dc_dsl *d, int idx)
{
    const double n = dc_args_option(L, d, idx, "fn", "limit", LIMIT);
    if (!(n >= 1))
        dc_error_raisef(L, d, DC_ERR_ARG, "fn", "limit is at least 1");
    return n < INT_MAX ? (int)n : INT_MAX;
}

static void name_fn(dc_dsl *d, dc_fn *fn, const char *where)
{
    fn->name = fn->sig.name != NULL ? fn->sig.name : dc_place_intern(d, "function");
    fn->place = where != NULL ? dc_place_intern(d, ", %s", where) : dc_place_intern(d, "%s", "");
    fn->origin = dc_place_intern(d, "result of %s%s", fn->name, fn->place);
}

static int l_fn(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 4);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "fn",
                        "a signature such as \"step(x: f32[64]) -> f32[]\" "
                        "is needed, not %s",
                        dc_args_describe(L, 1));
    dc_fn *fn = lua_newuserdatauv(L, sizeof *fn, 2);
    const int at = lua_gettop(L);
    memset(fn, 0, sizeof *fn);
    luaL_setmetatable(L, FN);
    parsing p = {d->rt->names, dc_args_text(L, d, 1, "fn"), &fn->sig};
    dc_error_check(L, d, dc_protect(&d->rt->job, parse_body, &p), "fn");
    check_body(L, d, 2, &fn->sig);
    read_sizes(L, d, 3, &fn->sig);
    dc_args_options(L, d, 4, "fn", (const char *const[]){"limit", NULL});
    fn->limit = read_limit(L, d, 4);
    name_fn(d, fn, dc_place_find(L, d).where);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, at, DC_FN_BODY);
    lua_newtable(L);
    lua_setiuservalue(L, at, DC_FN_SPECS);
    for (int v = 0; v < fn->sig.nvar; v++)
        if (fn->sig.size[v] < 0)
            return 1; /* at the first call */
    dc_spec *s = dc_spec_make(L, d, at, fn->sig.size);
    lua_getiuservalue(L, at, DC_FN_SPECS);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_settop(L, at);
    fn->only = s;
    return 1;
}

/* ---- looking at them ------------------------------------------------------------------------- */

static void set_count(lua_State *L, const char *name, uint64_t n)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, name);
}

static dc_status info_body(dc_job *j, void *arg)
{
    const calling *a = arg;
    return dc_exec_wait(a->d->rt, j, a->s->exec);
}

static void push_info(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s)
{
    dc_exec_info info;
    calling a = {.d = d, .s = s};
    dc_error_check(L, d, dc_protect(&d->rt->job, info_body, &a), fn->name);
    dc_exec_info_of(s->exec, &info);
    lua_newtable(L);
    set_count(L, "launches", info.launches);
    set_count(L, "copies", info.copies);
    set_count(L, "kernels", info.kernels);
    set_count(L, "arena_bytes", info.arena_bytes);
    set_count(L, "arena_lower_bound", info.arena_lower_bound);
    lua_pushnumber(L, info.arena_lower_bound == 0
                          ? 1.0
                          : (double)info.arena_bytes / (double)info.arena_lower_bound);
    lua_setfield(L, -2, "arena_ratio");
    set_count(L, "donated", info.donated);
    set_count(L, "denied", info.denied);
    set_count(L, "nodes", info.nodes);
    lua_pushboolean(L, info.interpreted);
    lua_setfield(L, -2, "interpreted");
}

/* f:info(): a list with one table of counts for each specialisation. */
static int l_info(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = luaL_checkudata(L, 1, FN);
    lua_getiuservalue(L, 1, DC_FN_SPECS);
    const int n = (int)lua_rawlen(L, -1);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -2, i);
        push_info(L, d, fn, lua_touserdata(L, -1));
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    return 1;
}

static int l_tostring(lua_State *L)
{
    const dc_fn *fn = luaL_checkudata(L, 1, FN);
    char type[DC_TYPE_TEXT];
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, fn->name);
    luaL_addchar(&b, '(');
    for (int i = 0; i < fn->sig.nparam; i++) {
        dc_oldsig_type_print(&fn->sig.param[i].type, fn->sig.size, type, sizeof type);
        luaL_addstring(&b, i ? ", " : "");
        luaL_addstring(&b, fn->sig.param[i].name);
        luaL_addstring(&b, ": ");
        luaL_addstring(&b, type);
    }
    luaL_addchar(&b, ')');
    for (int i = 0; i < fn->sig.nresult; i++) {
        dc_oldsig_type_print(&fn->sig.result[i], fn->sig.size, type, sizeof type);
        luaL_addstring(&b, i ? ", " : " -> ");
        luaL_addstring(&b, type);
    }
    luaL_pushresult(&b);
    return 1;
}

static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = luaL_checkudata(L, 1, FN);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "name") == 0) {
        lua_pushstring(L, fn->name);
    } else if (strcmp(name, "info") == 0) {
        dc_lib_push(L, d, l_info);
    } else if (!dc_look_push(L, d, name)) {
        dc_error_fact(L, d, DC_ERR_FIELD,
                      &(dc_fact){.word = {"a typed function", luaL_tolstring(L, 2, NULL)}}, NULL);
    }
    return 1;
}

void dc_fn_register(lua_State *L, dc_dsl *d, int module)
{
    static const luaL_Reg fn_meta[] = {
        {"__call", l_call}, {"__index", l_index}, {"__tostring", l_tostring}, {NULL, NULL}};
    static const luaL_Reg fn[] = {{"fn", l_fn}, {NULL, NULL}};
    luaL_newmetatable(L, FN);
    dc_lib_add(L, d, fn_meta);
    dc_spec_register(L);
    lua_pushvalue(L, module);
    dc_lib_add(L, d, fn);
    lua_pop(L, 2);
}
