/*
 * Running reductions along an axis: cumsum, cumprod, cummax, cummin, logcumsumexp.
 *
 *   x:cumsum(2)   x:cumsum "time"   x:cumsum { axis = -1, reverse = true, dtype = "i32" }
 *
 * The operation is that of core/ir/running.h; what it does not do is said in blocks.
 */
#include "core/base/extent.h"
#include "core/build/complex.h"
#include "core/ir/running.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <string.h>

typedef struct running {
    int axis;
    bool reverse;
    int dtype; /* what is computed in, and the result; -1: that of the operation */
} running;

/* ---- the operations -------------------------------------------------------------------------- */

typedef enum kind { SUM, PROD, MAX, MIN, LOGSUMEXP } kind;

static dc_run_kind run_of(kind k)
{
    static const dc_run_kind of[] = {DC_RUN_SUM, DC_RUN_PROD, DC_RUN_MAX, DC_RUN_MIN};
    return of[k];
}

/* Few elements, what the host does not compute, and where how many are behind the axis is not known. */
static bool in_blocks(kind k, const dc_type *t, int axis)
{
    if (k == LOGSUMEXP || dc_running_is_short(run_of(k), t->dim[axis]))
        return true;
    for (int i = axis + 1; i < t->rank; i++)
        if (dc_extent_is(t->dim[i]))
            return true;
    return false;
}

static dc_status build_blocks(dc_job *j, dc_func *f, kind k, const running *x, dc_val *a)
{
    const dc_type t = a->type;
    int64_t dim[3];
    if (!dc_running_flat(j->extents, &t, x->axis, dim))
        return dc_fail(j, DC_ERR_EXTENT, &(dc_fact){.type = {t}, .operand = 1});
    const dc_ref flat = dc_graph_reshape(f, a->ref, 3, dim),
                 y = k == LOGSUMEXP ? dc_running_logsumexp(f, x->reverse, flat)
                                    : dc_running_blocks(f, run_of(k), x->reverse, flat);
    a->ref = dc_graph_reshape(f, y, t.rank, t.dim);
    return DC_OK;
}

static bool adds_up(kind k)
{
    return k == SUM || k == PROD;
}

/* The operand in the dtype that the reduction gives: of integers 64 bits, unless it is asked for 32; of bool i32. */
static dc_status widened(dc_job *j, dc_func *f, kind k, const running *x, dc_val a, dc_val *out)
{
    dc_dtype t = (dc_dtype)a.type.dtype;
    *out = a;
    if (!adds_up(k) || dc_dtype_is_smooth(t))
        return DC_OK;
    if (t != DC_BOOL && x->dtype < 0)
        return dc_build_wide(j, f, a, out);
    DC_TRY(dc_infer_dtype(j, k == SUM ? DC_OP_SUM : DC_OP_PROD, &a.type, 1, NULL, &t));
    return dc_build_cast(j, f, a, t, out);
}

static dc_status build(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                       dc_val *out);

/* Along the bound: what changes nothing stands behind the size. */
static dc_status build_bounded(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                               dc_val *out)
{
    const dc_dtype t = (dc_dtype)in[0].type.dtype;
    const dc_op op = k == SUM    ? DC_OP_SUM
                     : k == PROD ? DC_OP_PROD
                     : k == MIN  ? DC_OP_MINR
                                 : DC_OP_MAXR;
    dc_val all;
    DC_TRY(
        dc_build_at_bound(j, f, in[0], 1u << x->axis, dc_value_of(t, dc_op_identity(op, t)), &all));
    DC_TRY(build(j, f, k, x, &all, out));
    DC_TRY(dc_build_up_to(j, f, *out, in[0].type.dim, out));
    memcpy(out->type.name, in[0].type.name, sizeof out->type.name);
    return DC_OK;
}

/* ---- products of complex numbers -------------------------------------------------------------- */

static dc_status complex_products(dc_job *j, dc_func *f, const running *x, dc_val a, dc_val *out)
{
    const dc_type t = a.type;
    dc_val part[2];
    dc_ref flat[2];
    int64_t dim[3];
    if (dc_build_is_bounded(&t, 1u << x->axis)) {
        DC_TRY(dc_build_at_bound(j, f, a, 1u << x->axis, 1, &a));
        DC_TRY(complex_products(j, f, x, a, out));
        DC_TRY(dc_build_up_to(j, f, *out, t.dim, out));
        memcpy(out->type.name, t.name, sizeof out->type.name);
        return DC_OK;
    }
    *out = a;
    if (dc_type_count(&t) == 0)
        return DC_OK;
    if (!dc_running_flat(j->extents, &t, x->axis, dim))
        return dc_fail(j, DC_ERR_EXTENT, &(dc_fact){.type = {t}, .operand = 1});
    for (int i = 0; i < 2; i++) {
        part[i] = dc_complex_part(f, a, i);
        flat[i] = dc_graph_reshape(f, part[i].ref, 3, dim);
    }
    dc_running_complex(f, x->reverse, flat);
    for (int i = 0; i < 2; i++)
        part[i].ref = dc_graph_reshape(f, flat[i], t.rank, t.dim);
    return dc_complex_join(j, f, part[0], part[1], out);
}

static dc_status build(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                       dc_val *out)
{
    const dc_type t = in[0].type;
    dc_val a;
    if (k == PROD && dc_complex_is(&in[0]))
        return complex_products(j, f, x, in[0], out);
    if (k == SUM && dc_complex_is(&in[0])) {
        dc_val part[2];
        for (int i = 0; i < 2; i++) {
            const dc_val of = dc_complex_part(f, in[0], i);
            DC_TRY(build(j, f, k, x, &of, &part[i]));
        }
        return dc_complex_join(j, f, part[0], part[1], out);
    }
    if (dc_complex_is(&in[0]))
        return dc_fail(j, DC_ERR_DTYPE,
                       &(dc_fact){.type = {t}, .word = {"a real number"}, .operand = 1});
    if (dc_build_is_bounded(&t, 1u << x->axis))
        return build_bounded(j, f, k, x, in, out);
    if (k == LOGSUMEXP && !dc_dtype_is_float((dc_dtype)t.dtype)) /* told of the operand as it is */
        return dc_ops_1(j, f, DC_OP_EXP, in[0], out);
    DC_TRY(widened(j, f, k, x, in[0], &a));
    if (dc_type_count(&t) > 0 && in_blocks(k, &t, x->axis))
        DC_TRY(build_blocks(j, f, k, x, &a));
    else if (dc_type_count(&t) > 0)
        a.ref = dc_running(f, run_of(k), x->reverse, a.ref, x->axis);
    out->ref = a.ref;
    const uint8_t dtype = a.type.dtype;
    out->type = t;
    out->type.dtype = dtype;
    return DC_OK;
}

/* The operation in the dtype that was asked for. */
static dc_status in_dtype(dc_job *j, dc_func *f, kind k, const running *x, dc_val a, dc_val *out)
{
    if (x->dtype < 0)
        return build(j, f, k, x, &a, out);
    DC_TRY(dc_build_cast(j, f, a, (dc_dtype)x->dtype, &a));
    DC_TRY(build(j, f, k, x, &a, out));
    return dc_build_cast(j, f, *out, (dc_dtype)x->dtype, out);
}

static dc_status build_sum(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return in_dtype(j, f, SUM, arg, in[0], out);
}

static dc_status build_prod(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return in_dtype(j, f, PROD, arg, in[0], out);
}

static dc_status build_max(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, MAX, arg, in, out);
}

static dc_status build_min(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, MIN, arg, in, out);
}

static dc_status build_logsumexp(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    return build(j, f, LOGSUMEXP, arg, in, out);
}

/* ---- bindings -------------------------------------------------------------------------------- */

static int l_running(lua_State *L);

static int l_interleave(lua_State *L);

static const struct row {
    dc_binding bound;
    dc_build_fn *build;
} rows[] = {
    {{"interleave", l_interleave, DC_ANY, DC_IN_LIBRARY}, NULL},
    {{"cumsum", l_running, 2, DC_IN_BOTH}, build_sum},
    {{"cumprod", l_running, 2, DC_IN_BOTH}, build_prod},
    {{"cummax", l_running, 2, DC_IN_BOTH}, build_max},
    {{"cummin", l_running, 2, DC_IN_BOTH}, build_min},
    {{"logcumsumexp", l_running, 2, DC_IN_BOTH}, build_logsumexp},
};

/* { axis = .., reverse = .., dtype = .. } at 2 gives way to the axis. */
static void take_options(lua_State *L, dc_dsl *d, const char *op, bool has_dtype, running *x)
{
    if (lua_type(L, 2) != LUA_TTABLE || lua_rawlen(L, 2) > 0)
        return;
    dc_args_options(L, d, 2, op,
                    (const char *const[]){"axis", "reverse", has_dtype ? "dtype" : NULL, NULL});
    if (has_dtype)
        x->dtype = dc_args_dtype(L, d, 2, op);
    if (lua_getfield(L, 2, "reverse") != LUA_TNIL && lua_type(L, -1) != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "reverse must be true or false, not %s",
                        dc_handle_describe(L, -1));
    x->reverse = lua_toboolean(L, -1);
    lua_getfield(L, 2, "axis");
    lua_replace(L, 2);
    lua_settop(L, 2);
}

static int l_running(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = (const struct row *)dc_binding_of(L); /* its first member */
    const char *name = r->bound.name;
    static const int at[1] = {1};
    const dc_handle *h = dc_handle_check(L, d, 1, name);
    running x = {.axis = -1, .dtype = -1};
    bool keep;
    lua_settop(L, 2);
    take_options(L, d, name, r->build == build_sum || r->build == build_prod, &x);
    const uint32_t mask = dc_args_axes(L, d, 2, h, name, &keep);
    if (mask == 0 || (mask & (mask - 1)) != 0)
        dc_error_raisef(L, d, DC_ERR_ARG, name, "one axis is needed, as in x:%s(-1)", name);
    x.axis = __builtin_ctz(mask);
    dc_apply a = {.build = r->build, .arg = &x, .once = true};
    dc_apply_operands(L, d, &a, name, at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* Elements of both in turn, for dc.associative_scan; the first one has as many along the axis, or one more. */
static dc_status build_interleave(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    const int axis = *(const int *)arg;
    const dc_dtype t = (dc_dtype)in[0].type.dtype;
    const bool flt = dc_dtype_is_smooth(t);
    dc_type all = in[0].type;
    dc_val v[2];
    all.dim[axis] = dc_extent_add(j->extents, in[0].type.dim[axis], in[1].type.dim[axis]);
    for (int i = 0; i < 2; i++) {
        int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
        for (int k = 0; k < DC_MAX_RANK; k++)
            step[k] = k == axis ? 2 : 1;
        lo[axis] = i;
        DC_TRY(dc_build_pad(j, f, in[i], lo, step, &all, flt ? -0.0 : 0, &v[i]));
    }
    return dc_ops_2(j, f, flt ? DC_OP_ADD : DC_OP_OR, v[0], v[1], out);
}

/* interleave(a, b, axis) */
static int l_interleave(lua_State *L)
{
    static const int first_two[2] = {1, 2};
    const int axis = (int)luaL_checkinteger(L, 3) - 1;
    lua_settop(L, 2);
    dc_apply_to(L, dc_dsl_of(L), "associative_scan", first_two, 2, build_interleave, &axis);
    return 1;
}

const dc_bindings dc_cumulative_bindings = {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]};
