/*
 * Order along an axis: sort, argsort, top_k. Operations that the host computes work on the last axes, so the axis goes
 * there and back. Along a bounded axis what lies behind its size comes last.
 */
#include "core/base/extent.h"
#include "core/ir/host_call.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>
#include <string.h>

typedef struct order {
    int axis;
    bool descending;
    int64_t k;
} order;

/* ---- building ------------------------------------------------------------------------------------ */

static dc_status to_end(dc_job *j, dc_func *f, dc_val a, int axis, dc_val *out)
{
    int64_t perm[DC_MAX_RANK];
    int to = 0;
    for (int k = 0; k < a.type.rank; k++)
        if (k != axis)
            perm[to++] = k;
    perm[to] = axis;
    return dc_build_permute(j, f, a, perm, a.type.rank, out);
}

static dc_status from_end(dc_job *j, dc_func *f, dc_val a, int axis, dc_val *out)
{
    int64_t perm[DC_MAX_RANK];
    for (int k = 0; k < a.type.rank; k++)
        perm[k] = k < axis ? k : k == axis ? a.type.rank - 1 : k - 1;
    return dc_build_permute(j, f, a, perm, a.type.rank, out);
}

/* What comes last in this order, and behind equal elements before it. */
static double last_of(const order *x, dc_dtype t)
{
    const dc_op op = x->descending ? DC_OP_MAXR : DC_OP_MINR;
    if (dc_dtype_is_float(t) && !x->descending)
        return NAN;
    return dc_value_of(t, dc_op_identity(op, t));
}

static dc_status build_order(dc_job *j, dc_func *f, dc_op op, const order *x, dc_val a, dc_val *out)
{
    const int64_t descending = x->descending;
    const dc_type t = a.type;
    const bool bounded = dc_build_is_bounded(&t, 1u << x->axis);
    if (bounded)
        DC_TRY(dc_build_at_bound(j, f, a, 1u << x->axis, last_of(x, (dc_dtype)t.dtype), &a));
    DC_TRY(to_end(j, f, a, x->axis, &a));
    DC_TRY(dc_build_host(j, f, op, &a, &descending, 1, &a));
    DC_TRY(from_end(j, f, a, x->axis, &a));
    if (bounded) {
        DC_TRY(dc_build_up_to(j, f, a, t.dim, &a));
        memcpy(a.type.name, t.name, sizeof a.type.name);
    }
    *out = a;
    return DC_OK;
}

static dc_status build_sort(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build_order(j, f, DC_OP_SORT, arg, in[0], out);
}

static dc_status build_argsort(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    return build_order(j, f, DC_OP_ARGSORT, arg, in[0], out);
}

/* The positions, and what stands there. */
static dc_status build_top_k(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const order *x = arg;
    const int64_t attr[2] = {x->k, x->descending};
    const int last = in[0].type.rank - 1;
    dc_val a, at, picked;
    DC_TRY(to_end(j, f, in[0], x->axis, &a));
    DC_TRY(dc_build_host(j, f, DC_OP_TOPK, &a, attr, 2, &at));
    DC_TRY(dc_build_gather(j, f, a, at, last, last, &picked));
    DC_TRY(from_end(j, f, picked, x->axis, &out[0]));
    return from_end(j, f, at, x->axis, &out[1]);
}

/* ---- bindings ------------------------------------------------------------------------------------ */

static int l_order(lua_State *L);
static int l_top_k(lua_State *L);

static const struct row {
    dc_binding bound;
    dc_build_fn *build;
} rows[] = {
    {{"sort", l_order, 2, DC_IN_BOTH}, build_sort},
    {{"argsort", l_order, 2, DC_IN_BOTH}, build_argsort},
    {{"top_k", l_top_k, 3, DC_IN_BOTH}, build_top_k},
};

static bool flag_of(lua_State *L, dc_dsl *d, int idx, const char *op, const char *name, bool dflt)
{
    if (lua_getfield(L, idx, name) != LUA_TNIL && lua_type(L, -1) != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%s must be true or false, not %s", name,
                        dc_handle_describe(L, -1));
    const bool set = lua_isnil(L, -1) ? dflt : lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

/* The axis at idx, or options there; nothing: the last axis. */
static int axis_at(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                   const char *const *known, const char *flag, bool *set)
{
    const int rank = dc_handle_type(h)->rank;
    if (rank == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a tensor without axes has no order");
    if (lua_isnoneornil(L, idx))
        return rank - 1;
    if (lua_type(L, idx) == LUA_TTABLE) {
        dc_args_options(L, d, idx, op, known);
        *set = flag_of(L, d, idx, op, flag, *set);
        lua_getfield(L, idx, "axis");
        lua_replace(L, idx);
        if (lua_isnil(L, idx))
            return rank - 1;
    }
    return dc_args_axis(L, d, idx, h, op);
}

/* x:sort(2)   x:sort { axis = "time", descending = true } */
static int l_order(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = (const struct row *)dc_binding_of(L); /* its first member */
    const char *name = r->bound.name;
    static const int at[1] = {1};
    static const char *const known[] = {"axis", "descending", NULL};
    const dc_handle *h = dc_handle_check(L, d, 1, name);
    order x = {0};
    lua_settop(L, 2);
    x.axis = axis_at(L, d, 2, h, name, known, "descending", &x.descending);
    dc_apply a = {.build = r->build, .arg = &x};
    dc_apply_operands(L, d, &a, name, at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* x:top_k(5)   x:top_k(5, 2)   x:top_k(5, { axis = 2, largest = false }) */
static int l_top_k(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = (const struct row *)dc_binding_of(L);
    static const int at[1] = {1};
    static const char *const known[] = {"axis", "largest", NULL};
    const dc_handle *h = dc_handle_check(L, d, 1, "top_k");
    order x = {.descending = true};
    lua_settop(L, 3);
    x.k = dc_args_count(L, d, 2, "top_k", "k");
    x.axis = axis_at(L, d, 3, h, "top_k", known, "largest", &x.descending);
    const int64_t n = dc_handle_type(h)->dim[x.axis];
    if (x.k < 0 || (!dc_extent_is(n) && x.k > n))
        dc_error_raisef(L, d, DC_ERR_ARG, "top_k", "%lld of the %lld elements of axis %d",
                        (long long)x.k, (long long)n, x.axis + 1);
    dc_apply a = {.build = r->build, .arg = &x};
    dc_apply_operands(L, d, &a, "top_k", at, 1);
    a.nout = 2;
    dc_apply_run(L, d, &a);
    return 2;
}

const dc_bindings dc_sort_bindings = {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]};
