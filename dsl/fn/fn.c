/*
 * Typed functions: dc.fn(signature, body [, sizes [, options]]).
 *
 * A function whose sizes are all known, by its text or by the third argument, is traced and checked
 * where it is defined, and begins to compile there on another thread; others at the first call with
 * each key (dsl/fn/fncall.c). Static parameters, lists and "..." are known at calls only. A compiler's
 * failure is raised by the call that needs the code.
 */
#include "dsl/fn/fn.h"

#include "core/base/digits.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT = 8 };

/* ---- definition ------------------------------------------------------------------------------ */

typedef struct parsing {
    dc_names *names;
    const char *text;
    dc_fn *fn;
} parsing;

static dc_status parse_signature_body(dc_job *j, void *arg)
{
    const parsing *a = arg;
    DC_TRY(dc_sig_parse(j, a->names, a->text, &a->fn->sig));
    a->fn->ready = true;
    a->fn->next = a->fn->d->fns;
    if (a->fn->next != NULL)
        a->fn->next->prev = a->fn;
    a->fn->d->fns = a->fn;
    return DC_OK;
}

static const char *title(const dc_sig *sig)
{
    return sig->name != NULL ? sig->name : "fn";
}

/* "the function takes 1 parameter, its signature has 2: 'y' is missing" */
DC_NORETURN static void refuse_count(lua_State *L, dc_dsl *d, int given, const dc_sig *sig)
{
    const int n = sig->nparam;
    const char *text = lua_pushfstring(L, "the function takes %d parameter%s, its signature has %d",
                                       given, given == 1 ? "" : "s", n);
    if (given < n)
        text = lua_pushfstring(L, "%s: '%s' is missing", text, sig->param[given].name);
    dc_error_fact(L, d, DC_ERR_ARG_COUNT_TEXT, &(dc_fact){.op = title(sig), .word = {text}},
                  &(dc_blame){.hint = given < n ? "one that is not used may be called _"
                                                : "the signature declares every parameter"});
}

/* The body's own parameters are those of the signature, in name and number; one that is not used may be _. */
static void check_body(lua_State *L, dc_dsl *d, int idx, const dc_sig *sig)
{
    lua_Debug ar;
    if (lua_type(L, idx) != LUA_TFUNCTION) {
        if (!luaL_getmetafield(L, idx, "__call"))
            dc_error_raisef(L, d, DC_ERR_ARG, "fn", "a function is needed, not %s",
                            dc_handle_describe(L, idx));
        lua_pop(L, 1);
        return;
    }
    if (lua_iscfunction(L, idx))
        return;
    lua_pushvalue(L, idx);
    lua_getinfo(L, ">u", &ar);
    if (ar.isvararg)
        dc_error_raisef(L, d, DC_ERR_ARG, title(sig),
                        "the function takes '...'; its parameters are those of its signature");
    if (ar.nparams != sig->nparam)
        refuse_count(L, d, ar.nparams, sig);
    lua_pushvalue(L, idx);
    for (int i = 0; i < sig->nparam; i++) {
        const char *name = lua_getlocal(L, NULL, i + 1);
        if (name != NULL && *name != '(' && strcmp(name, "_") != 0 &&
            strcmp(name, sig->param[i].name) != 0)
            dc_error_raisef(L, d, DC_ERR_ARG, title(sig),
                            "parameter %d is '%s' in the signature and '%s' in the function", i + 1,
                            sig->param[i].name, name);
    }
    lua_pop(L, 1);
}

static int read_limit(lua_State *L, dc_dsl *d, int idx)
{
    const double n = dc_args_option(L, d, idx, "fn", "limit", LIMIT);
    if (!(n >= 1))
        dc_error_raisef(L, d, DC_ERR_ARG, "fn", "limit is at least 1");
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* strict = true; reduce = "f32" */
static void read_ranks(lua_State *L, dc_dsl *d, dc_fn *fn, int idx)
{
    if (lua_isnoneornil(L, idx))
        return;
    if (lua_getfield(L, idx, "strict") != LUA_TNIL && !lua_isboolean(L, -1))
        dc_error_raisef(L, d, DC_ERR_ARG, "fn", "strict is true or false");
    fn->strict = lua_toboolean(L, -1);
    if (lua_getfield(L, idx, "reduce") != LUA_TNIL) {
        const char *text = dc_args_text(L, d, lua_gettop(L), "fn");
        if (strcmp(text, "f32") != 0)
            dc_error_raisef(L, d, DC_ERR_ARG, "fn", "reduce is \"f32\", not '%.40s'", text);
        fn->wide = true;
    }
    lua_pop(L, 2);
}

static bool is_fixed(const dc_sig_type *t)
{
    bool fixed = t != NULL && t->kind != DC_SHAPE_LIST;
    for (int i = 0; fixed && t->kind == DC_SHAPE_RECORD && i < t->nfield; i++)
        fixed = is_fixed(t->field[i].type);
    return fixed;
}

static void name_function(lua_State *L, dc_dsl *d, dc_fn *fn, const char *where)
{
    const dc_sig *sig = &fn->sig;
    fn->name = sig->name != NULL ? sig->name : dc_place_name(L, d, "function");
    fn->place = where != NULL ? dc_place_name(L, d, ", %s", where) : "";
    fn->origin = dc_place_intern(d, "result of %s%s", fn->name, fn->place);
    fn->plain = fn->fixed = fn->flat_results = true;
    for (int i = 0; i < sig->nparam; i++) {
        const dc_sig_param *p = &sig->param[i];
        if (p->optional || p->type == NULL || p->type->kind != DC_SHAPE_TENSOR)
            fn->plain = false;
        fn->fixed = fn->fixed && !p->optional && is_fixed(p->type);
    }
    for (int i = 0; i < sig->nresult; i++)
        fn->flat_results = fn->flat_results && sig->result[i]->kind == DC_SHAPE_TENSOR;
}

/* ---- sizes given ------------------------------------------------------------------------------ */

static void trace_early(lua_State *L, dc_dsl *d, int fn_idx, const dc_fn_key *key)
{
    const dc_fn *fn = dc_udata_node(L, fn_idx);
    dc_fn_push_specs(L, fn_idx);
    const int list = lua_gettop(L);
    if ((int)lua_rawlen(L, list) >= fn->limit)
        dc_error_raisef(L, d, DC_ERR_LIMIT, fn->name, "more sizes are given than its limit, %d",
                        fn->limit);
    const dc_spec *s = dc_spec_make(L, d, fn_idx, key, false);
    dc_fn_add_spec(L, list, s);
    lua_settop(L, list - 1);
}

/*
 * Goes through all choices from the lists of sizes at idx ({ batch = { 64, 32 } }), from the given
 * variable on, and traces for each.
 */
static void each_choice(lua_State *L, dc_dsl *d, int fn_idx, int idx, int var, const dc_fn_key *key)
{
    const dc_fn *fn = dc_udata_node(L, fn_idx);
    dc_fn_key here = *key;
    luaL_checkstack(L, 8, "sizes");
    dc_interrupt_look(L, d); /* there may be many choices that trace nothing */
    if (var == fn->sig.nvar) {
        dc_fn_check_sizes(L, d, fn, &here.bind);
        dc_fn_bound(L, d, fn, &here, false);
        if (dc_fn_early_key(fn, &here))
            trace_early(L, d, fn_idx, &here);
        return;
    }
    const int type = lua_isnil(L, idx) ? LUA_TNIL : lua_getfield(L, idx, fn->sig.var[var]);
    if (type == LUA_TNIL || type == LUA_TSTRING) { /* a bound */
        each_choice(L, d, fn_idx, idx, var + 1, key);
    } else if (type == LUA_TTABLE) {
        const int list = lua_gettop(L);
        for (lua_Integer i = 1, n = luaL_len(L, list); i <= n; i++) {
            lua_geti(L, list, i);
            here = *key;
            dc_fn_give_size(L, d, fn, &here.bind, fn->sig.var[var],
                            dc_args_count(L, d, list + 1, "fn", fn->sig.var[var]));
            lua_settop(L, list);
            each_choice(L, d, fn_idx, idx, var + 1, &here);
        }
    } else {
        dc_fn_give_size(L, d, fn, &here.bind, fn->sig.var[var],
                        dc_args_count(L, d, lua_gettop(L), "fn", fn->sig.var[var]));
        each_choice(L, d, fn_idx, idx, var + 1, &here);
    }
    if (!lua_isnil(L, idx))
        lua_pop(L, 1);
}

typedef struct limiting {
    dc_fn *fn;
    const char *name;
    int64_t least, most;
} limiting;

static dc_status limit_body(dc_job *j, void *arg)
{
    const limiting *a = arg;
    return dc_sig_limit(j, &a->fn->sig, a->name, a->least, a->most);
}

/* "<= 64", or "0 <= 64". */
static bool read_bound(const char *at, int64_t *least, int64_t *most)
{
    at = dc_expr_skip_blanks(at);
    if (*at != '<') {
        if (dc_digits_signed(&at, NULL, 0, INT32_MAX, least) != DC_DIGITS_OK)
            return false;
        at = dc_expr_skip_blanks(at);
    }
    if (strncmp(at, "<=", 2) != 0)
        return false;
    at = dc_expr_skip_blanks(at + 2);
    return dc_digits_signed(&at, NULL, 0, INT32_MAX, most) == DC_DIGITS_OK &&
           *dc_expr_skip_blanks(at) == '\0';
}

/* The bound of a name, at the top of the stack. */
static void read_limit_of(lua_State *L, dc_dsl *d, dc_fn *fn, const char *name)
{
    const char *text = dc_args_text(L, d, lua_gettop(L), "fn");
    int64_t least = 1, most = 0;
    if (!read_bound(text, &least, &most))
        dc_error_raisef(L, d, DC_ERR_ARG, "fn",
                        "'%s' = \"%.40s\": a size, or a bound such as \"<= 64\"", name, text);
    limiting a = {fn, name, least, most};
    dc_run(L, d, limit_body, &a);
}

/* Bounds of names and single sizes of the table at idx: calls may need them where no argument tells. */
static void read_given(lua_State *L, dc_dsl *d, dc_fn *fn, int idx)
{
    dc_sig_begin(&fn->sig, &fn->given);
    for (int v = 0; v < fn->sig.nvar && !lua_isnil(L, idx); v++) {
        if (lua_getfield(L, idx, fn->sig.var[v]) == LUA_TNUMBER) {
            dc_fn_give_size(L, d, fn, &fn->given, fn->sig.var[v],
                            dc_args_count(L, d, lua_gettop(L), "fn", fn->sig.var[v]));
            fn->has_given = true;
        } else if (lua_type(L, -1) == LUA_TSTRING) {
            read_limit_of(L, d, fn, fn->sig.var[v]);
        }
        lua_pop(L, 1);
    }
    for (int v = 0; v < fn->sig.nvar; v++)
        fn->bounded = fn->bounded || fn->sig.most[v] >= 0;
}

static int l_fn(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 4);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "fn",
                        "a signature such as \"step(x: f32[64]) -> f32[]\" "
                        "is needed, not %s",
                        dc_handle_describe(L, 1));
    dc_collector_step(L, d);
    dc_fn *fn = dc_udata_new(L, &dc_fn_type, sizeof *fn, DC_FN__USER);
    const int at = lua_gettop(L);
    fn->d = d;
    parsing p = {d->rt->names, dc_args_text(L, d, 1, "fn"), fn};
    dc_run(L, d, parse_signature_body, &p);
    check_body(L, d, 2, &fn->sig);
    dc_args_options(L, d, 3, "fn", (const char *const *)fn->sig.var);
    dc_args_options(L, d, 4, "fn", (const char *const[]){"limit", "strict", "reduce", NULL});
    fn->limit = read_limit(L, d, 4);
    read_ranks(L, d, fn, 4);
    name_function(L, d, fn, dc_place_find(L, d).where);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, at, DC_FN_BODY);
    for (int i = DC_FN_BODY + 1; i <= DC_FN__USER; i++) {
        lua_newtable(L);
        lua_setiuservalue(L, at, i);
    }
    dc_fn_key key = {.nshape = 0};
    dc_fn_check_mesh(L, d, fn);
    read_given(L, d, fn, 3);
    dc_sig_begin(&fn->sig, &key.bind);
    each_choice(L, d, at, 3, 0, &key);
    lua_settop(L, at);
    return 1;
}

/* ---- methods ------------------------------------------------------------------------- */

/*
 * f:check { batch = 64 }: traces and checks for these sizes; nothing is compiled or computed.
 * Static parameters are given by name, as are lengths of lists; optional parameters are there if their
 * name is given (m = true).
 */
static int l_check(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 2);
    const dc_fn *fn = dc_fn_check(L, 1);
    dc_fn_key key;
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    dc_fn_key_of(L, d, fn, 2, "check", &key);
    dc_spec_make(L, d, 1, &key, true);
    return 0;
}

static void push_info(lua_State *L, dc_dsl *d, dc_spec *s)
{
    dc_exec_info info;
    lua_newtable(L);
    if (!dc_spec_wait(L, d, s)) {
        lua_pushstring(L, s->refused);
        lua_setfield(L, -2, "refused");
        return;
    }
    dc_exec_info_of(s->exec, &info);
    dc_binding_set_number(L, "launches", info.launches);
    dc_binding_set_number(L, "copies", info.copies);
    dc_binding_set_number(L, "kernels", info.kernels);
    dc_binding_set_number(L, "arena_bytes", info.arena_bytes);
    dc_binding_set_number(L, "arena_lower_bound", info.arena_lower_bound);
    lua_pushnumber(L, info.arena_lower_bound == 0
                          ? 1.0
                          : (double)info.arena_bytes / (double)info.arena_lower_bound);
    lua_setfield(L, -2, "arena_ratio");
    dc_binding_set_number(L, "donated", info.donated);
    dc_binding_set_number(L, "denied", info.denied);
    dc_binding_set_number(L, "nodes", info.nodes);
    dc_binding_set_number(L, "derived", info.derived);
    dc_binding_set_number(L, "derived_bytes", info.derived_bytes);
    lua_pushboolean(L, info.interpreted);
    lua_setfield(L, -2, "interpreted");
}

/* f:info(): a list with one table of counts for each specialisation. */
static int l_info(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn_check(L, 1);
    dc_fn_push_specs(L, 1);
    const int n = (int)lua_rawlen(L, -1);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -2, i);
        push_info(L, d, dc_spec_at(L, -1));
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    return 1;
}

static int l_tostring(lua_State *L)
{
    const dc_fn *fn = dc_fn_check(L, 1);
    char text[2000];
    dc_sig_print(&fn->sig, NULL, text, sizeof text);
    lua_pushstring(L, text);
    return 1;
}

static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_fn *fn = dc_fn_check(L, 1);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "name") == 0) {
        lua_pushstring(L, fn->name);
        return 1;
    }
    if (dc_binding_find(L, d, &dc_fn_methods, name))
        return 1;
    dc_error_fact(L, d, DC_ERR_FIELD,
                  &(dc_fact){.word = {"a typed function", luaL_tolstring(L, 2, NULL)}}, NULL);
}

/*
 * found(f, seconds): is all that is traced of it there, without a compiler being asked? Waits until that is known, or so
 * long.
 */
static int l_found(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn_check(L, 1);
    const uint64_t ns = (uint64_t)(luaL_checknumber(L, 2) * 1e9);
    bool found = true;
    dc_fn_push_specs(L, 1);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0 && found; i--, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, i);
        const dc_spec *s = dc_spec_at(L, -1);
        found = s->exec == NULL || dc_exec_found(d->rt, s->exec, ns);
    }
    lua_pushboolean(L, found);
    return 1;
}

static const dc_binding of_fn[] = {
    {"info", l_info, 1, DC_IN_METHODS},
    {"check", l_check, 2, DC_IN_METHODS},
    {"export", dc_fn_export, DC_ANY, DC_IN_METHODS},
    {"start", dc_fnjob_start, DC_ANY, DC_IN_METHODS},
    {"ready", dc_fnjob_ready, DC_ANY, DC_IN_METHODS},
    {"report", dc_fnreport_report, 2, DC_IN_METHODS},
    {"explain", dc_fnreport_explain, 1, DC_IN_METHODS},
    {"kernels", dc_fnreport_kernels, 1, DC_IN_METHODS},
    {"source", dc_fnreport_source, 3, DC_IN_METHODS},
    {"exchanges", dc_fn_push_exchanges, 1, DC_IN_METHODS},
    {"plan", dc_fnreport_plan, 1, DC_IN_METHODS},
    {"dot", dc_fnreport_dot, 2, DC_IN_METHODS},
    {"__call", dc_fn_call, DC_ANY, DC_IN_META},
    {"__index", l_index, DC_ANY, DC_IN_META},
    {"__tostring", l_tostring, DC_ANY, DC_IN_META},
};

const dc_bindings dc_fn_methods = DC_BINDINGS(of_fn);

static const dc_binding bindings[] = {
    {"fn", l_fn, 4, DC_IN_MODULE},
    {"found", l_found, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fn_bindings = DC_BINDINGS(bindings);
