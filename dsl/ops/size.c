/*
 * Arithmetic of sizes that are known when the function runs (dsl/base/size.h).
 */
#include "dsl/base/size.h"

#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <string.h>

/* ---- as a tensor ------------------------------------------------------------------------------ */

typedef struct counted {
    int64_t dim;
    dc_dtype dtype;
} counted;

/* One that may be below 0, n - 3, is counted with so many more. */
static dc_status build_size(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const counted *x = arg;
    const int64_t more = dc_max_i64(-dc_extent_lo(j->extents, x->dim), 0);
    const int64_t dim = dc_extent_add(j->extents, x->dim, more);
    const dc_type t = dc_type_make(DC_I32, 1, &dim), scalar = dc_type_make(DC_I32, 0, NULL);
    DC_UNUSED(in);
    if (dim == DC_EXTENT_NONE)
        return dc_failf(j, DC_ERR_EXTENT_TEXT, "size",
                        "no size of a form that is known at each call");
    DC_TRY(dc_build_count(j, f, &t, 1, out));
    if (more > 0) {
        dc_val by;
        DC_TRY(dc_build_const(j, f, &scalar, (double)more, &by));
        out->ref = dc_graph_op2(f, DC_OP_SUB, out->ref, by.ref);
    }
    return x->dtype == DC_I32 ? DC_OK : dc_build_cast(j, f, *out, x->dtype, out);
}

void dc_ops_size(lua_State *L, dc_dsl *d, int idx, dc_dtype dtype)
{
    counted x = {.dtype = dtype};
    if (!dc_size_test(L, idx, &x.dim))
        return;
    if (dc_trace_here(L, d) == NULL)
        dc_error_raisef(L, d, DC_ERR_DIM, "size",
                        "the size of a bounded dim is known only while its function is traced");
    dc_apply a = {.op = "size", .nout = 1, .build = build_size, .arg = &x, .step = true};
    idx = lua_absindex(L, idx);
    dc_apply_run(L, d, &a);
    lua_replace(L, idx);
}

/* ---- arithmetic ------------------------------------------------------------------------------- */

typedef struct operation {
    const char *name;
    int op;                                             /* of lua_arith */
    int64_t (*of)(dc_extents *e, int64_t a, int64_t b); /* NULL: never a size */
} operation;

static int64_t quotient(dc_extents *e, int64_t a, int64_t b)
{
    return b > 0 && !dc_extent_is(b) ? dc_extent_div(e, a, b) : dc_extent_quotient(e, a, b);
}

static int64_t rest(dc_extents *e, int64_t a, int64_t b)
{
    return dc_extent_sub(e, a, dc_extent_mul(e, quotient(e, a, b), b));
}

static const operation operations[] = {
    {"__add", LUA_OPADD, dc_extent_add}, {"__sub", LUA_OPSUB, dc_extent_sub},
    {"__mul", LUA_OPMUL, dc_extent_mul}, {"__idiv", LUA_OPIDIV, quotient},
    {"__mod", LUA_OPMOD, rest},          {"__div", LUA_OPDIV, NULL},
    {"__pow", LUA_OPPOW, NULL},
};

/* A whole number, or a size. */
static bool read_whole(lua_State *L, int idx, int64_t *out)
{
    int exact;
    if (dc_size_test(L, idx, out))
        return true;
    if (lua_type(L, idx) != LUA_TNUMBER)
        return false;
    *out = dc_extent_number(lua_tointegerx(L, idx, &exact));
    return exact != 0;
}

/* Is it a value that is never a size since it is always below 0, n - 10 or n * -2? It is a scalar, then. */
static bool is_negative(dc_extents *e, const operation *o, int64_t a, int64_t b)
{
    int64_t n = DC_EXTENT_NONE;
    if (o->op == LUA_OPSUB)
        n = dc_extent_sub(e, b, a);
    else if (o->op == LUA_OPADD && !dc_extent_is(a) && a > -INT32_MAX)
        n = dc_extent_sub(e, -a, b);
    else if (o->op == LUA_OPADD && !dc_extent_is(b) && b > -INT32_MAX)
        n = dc_extent_sub(e, -b, a);
    else if (o->op == LUA_OPMUL)
        return (!dc_extent_is(a) && a < 0) != (!dc_extent_is(b) && b < 0);
    return n != DC_EXTENT_NONE;
}

/* The dtype that the other operand asks of a size. */
static dc_dtype dtype_beside(lua_State *L, int other)
{
    const dc_handle *h = dc_handle_test(L, other);
    return h != NULL && h->kind != DC_HANDLE_CLOSED ? (dc_dtype)dc_handle_type(h)->dtype : DC_F32;
}

static int arithmetic(lua_State *L, const operation *o)
{
    dc_dsl *d = dc_dsl_of(L);
    int64_t a, b;
    lua_settop(L, 2);
    if (o->of != NULL && read_whole(L, 1, &a) && read_whole(L, 2, &b)) {
        const int64_t dim = o->of(d->rt->extents, a, b);
        if (dim != DC_EXTENT_NONE) {
            dc_size_push(L, dim);
            return 1;
        }
        if (!is_negative(d->rt->extents, o, a, b))
            dc_error_raisef(L, d, DC_ERR_EXTENT_TEXT, o->name + 2,
                            "no size of a form that is known at each call");
        dc_ops_size(L, d, 1, DC_I32);
        dc_ops_size(L, d, 2, DC_I32);
        lua_arith(L, o->op);
        return 1;
    }
    const dc_dtype left = dtype_beside(L, 2), right = dtype_beside(L, 1);
    dc_ops_size(L, d, 1, left);
    dc_ops_size(L, d, 2, right);
    lua_arith(L, o->op);
    return 1;
}

static int l_add(lua_State *L)
{
    return arithmetic(L, &operations[0]);
}

static int l_sub(lua_State *L)
{
    return arithmetic(L, &operations[1]);
}

static int l_mul(lua_State *L)
{
    return arithmetic(L, &operations[2]);
}

static int l_idiv(lua_State *L)
{
    return arithmetic(L, &operations[3]);
}

static int l_mod(lua_State *L)
{
    return arithmetic(L, &operations[4]);
}

static int l_div(lua_State *L)
{
    return arithmetic(L, &operations[5]);
}

static int l_pow(lua_State *L)
{
    return arithmetic(L, &operations[6]);
}

static int l_unm(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 1);
    dc_ops_size(L, d, 1, DC_I32);
    lua_arith(L, LUA_OPUNM);
    return 1;
}

/* ---- what it is not --------------------------------------------------------------------------- */

static int l_order(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_error_fact(
        L, d, DC_ERR_EXTENT_TEXT,
        &(dc_fact){.op = "size",
                   .word = {"order comparison of a size that is known when the function "
                            "runs; Lua decides when it is traced"}},
        &(dc_blame){.hint = "size:cast \"i32\" is a tensor, which dc.where and dc.cond compare"});
}

static int l_concat(lua_State *L)
{
    dc_error_fact(
        L, dc_dsl_of(L), DC_ERR_EXTENT_TEXT,
        &(dc_fact){.op = "size", .word = {"text of a size that is known when the function runs"}},
        &(dc_blame){.hint =
                        "types have the names of dims, dc.zeros \"f32[t, 4]\"; dc.print shows a "
                        "size at each call"});
    return 0;
}

static int l_eq(lua_State *L)
{
    int64_t a, b;
    lua_pushboolean(L, dc_size_test(L, 1, &a) && dc_size_test(L, 2, &b) && a == b);
    return 1;
}

static int l_tostring(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    char text[DC_EXTENT_TEXT];
    int64_t dim = 0;
    dc_size_test(L, 1, &dim);
    dc_extent_print(d->rt->extents, dim, text, sizeof text);
    lua_pushfstring(L, "%s (up to %I)", text, (LUAI_UACINT)dc_extent_bound(dim));
    return 1;
}

/* n:cast "f32": a scalar tensor. */
static int l_cast(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_dtype dtype;
    int64_t dim;
    lua_settop(L, 2);
    if (!dc_size_test(L, 1, &dim))
        dc_error_raisef(L, d, DC_ERR_ARG, "cast", "with a colon: n:cast \"f32\"");
    const char *name = dc_args_text(L, d, 2, "cast");
    if (!dc_dtype_find(name, strlen(name), &dtype))
        dc_error_raisef(L, d, DC_ERR_ARG, "cast", "unknown dtype '%.40s'", name);
    lua_settop(L, 1);
    dc_ops_size(L, d, 1, dtype);
    return 1;
}

static const dc_binding of_size[] = {
    {"__add", l_add, DC_ANY, DC_IN_META},       {"__sub", l_sub, DC_ANY, DC_IN_META},
    {"__mul", l_mul, DC_ANY, DC_IN_META},       {"__idiv", l_idiv, DC_ANY, DC_IN_META},
    {"__mod", l_mod, DC_ANY, DC_IN_META},       {"__div", l_div, DC_ANY, DC_IN_META},
    {"__pow", l_pow, DC_ANY, DC_IN_META},       {"__unm", l_unm, DC_ANY, DC_IN_META},
    {"__lt", l_order, DC_ANY, DC_IN_META},      {"__le", l_order, DC_ANY, DC_IN_META},
    {"__eq", l_eq, DC_ANY, DC_IN_META},         {"__tostring", l_tostring, DC_ANY, DC_IN_META},
    {"__concat", l_concat, DC_ANY, DC_IN_META}, {"cast", l_cast, 2, DC_IN_METHODS},
};

const dc_bindings dc_size_methods = DC_BINDINGS(of_size);
