/*
 * Functions of one tensor that are made of rows: signs, rounding, powers, tests, activations; clamp.
 *
 * What is flat has a gradient of zero, also where it jumps: a step that would let one pass is
 * stopped.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>
#include <string.h>

/* 1, -1, or the value itself: zero of either sign, NaN */
static dc_status build_sign(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val zero, one, test, rest;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[0], 0, &zero));
    DC_TRY(dc_ops_number(j, f, in[0], 1, &one));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, in[0], &rest));
    if (dc_dtype_kind((dc_dtype)in[0].type.dtype) != DC_KIND_UINT) {
        dc_val minus;
        DC_TRY(dc_ops_1(j, f, DC_OP_NEG, one, &minus));
        DC_TRY(dc_ops_2(j, f, DC_OP_LT, in[0], zero, &test));
        DC_TRY(dc_ops_where(j, f, test, minus, rest, &rest));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, zero, in[0], &test));
    return dc_ops_where(j, f, test, one, rest, out);
}

static dc_status ceil_of(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    DC_TRY(dc_ops_1(j, f, DC_OP_NEG, a, out));
    DC_TRY(dc_ops_1(j, f, DC_OP_FLOOR, *out, out));
    return dc_ops_1(j, f, DC_OP_NEG, *out, out);
}

static dc_status build_ceil(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return ceil_of(j, f, in[0], out);
}

static dc_status build_trunc(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val zero, neg, up, down;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_1(j, f, DC_OP_FLOOR, in[0], &down));
    DC_TRY(ceil_of(j, f, in[0], &up));
    DC_TRY(dc_ops_number(j, f, in[0], 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, in[0], zero, &neg));
    return dc_ops_where(j, f, neg, up, down, out);
}

static dc_status build_square(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return dc_ops_2(j, f, DC_OP_MUL, in[0], in[0], out);
}

/* 1 / a; integers become f32 */
static dc_status build_reciprocal(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    dc_val a, one;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    return dc_ops_2(j, f, DC_OP_DIV, one, a, out);
}

static dc_status build_rsqrt(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val root;
    DC_TRY(dc_ops_1(j, f, DC_OP_SQRT, in[0], &root));
    return build_reciprocal(j, f, arg, &root, out);
}

static dc_status build_isnan(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return dc_ops_2(j, f, DC_OP_NE, in[0], in[0], out);
}

/* |a| against infinity; integers have none */
static dc_status against_infinity(dc_job *j, dc_func *f, dc_val a, dc_op flt, dc_op other,
                                  dc_val *out)
{
    dc_val size, inf;
    if (!dc_dtype_is_smooth((dc_dtype)a.type.dtype))
        return dc_ops_2(j, f, other, a, a, out);
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, a, &size));
    DC_TRY(dc_ops_number(j, f, size, INFINITY, &inf));
    return dc_ops_2(j, f, flt, size, inf, out);
}

static dc_status build_isfinite(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    DC_UNUSED(arg);
    return against_infinity(j, f, in[0], DC_OP_LT, DC_OP_EQ, out);
}

static dc_status build_isinf(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return against_infinity(j, f, in[0], DC_OP_EQ, DC_OP_NE, out);
}

/* ---- activations ------------------------------------------------------------------------------ */

/* Is a negative, and exp(-|a|), which never overflows. */
static dc_status decay(dc_job *j, dc_func *f, dc_val a, dc_val *neg, dc_val *out)
{
    dc_val zero, minus;
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, a, zero, neg));
    DC_TRY(dc_ops_1(j, f, DC_OP_NEG, a, &minus));
    DC_TRY(dc_ops_where(j, f, *neg, a, minus, out));
    return dc_ops_1(j, f, DC_OP_EXP, *out, out);
}

/*
 * log(1 + exp(a)), as a + log1p(exp(-a)), or log1p(exp(a)) for negative a: neither overflows, and both have all
 * derivatives at 0.
 */
static dc_status build_softplus(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    dc_val zero, top, e, neg;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[0], 0, &zero));
    DC_TRY(decay(j, f, in[0], &neg, &e));
    DC_TRY(dc_ops_where(j, f, neg, zero, in[0], &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG1P, e, &e));
    return dc_ops_2(j, f, DC_OP_ADD, top, e, out);
}

/* a Phi(a) = a / 2 (1 + erf(a / sqrt 2)), or with tanh(sqrt(2 / pi) (a + 0.044715 a^3)) for erf */
static dc_status build_gelu(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const bool with_tanh = *(const bool *)arg;
    return dc_ops_1(j, f, with_tanh ? DC_OP_GELU_TANH : DC_OP_GELU, in[0], out);
}

/* x:gelu()  x:gelu { approximate = "tanh" } */
static int l_gelu(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    bool with_tanh = false;
    lua_settop(L, 2);
    dc_handle_check(L, d, 1, "gelu");
    dc_args_options(L, d, 2, "gelu", (const char *const[]){"approximate", NULL});
    if (lua_type(L, 2) == LUA_TTABLE && lua_getfield(L, 2, "approximate") != LUA_TNIL) {
        const char *text = lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : "";
        with_tanh = strcmp(text, "tanh") == 0;
        if (!with_tanh && strcmp(text, "none") != 0)
            dc_error_raisef(L, d, DC_ERR_ARG, "gelu", "approximate is \"tanh\" or \"none\", not %s",
                            dc_handle_describe(L, 3));
    }
    dc_apply a = {.build = build_gelu, .arg = &with_tanh};
    dc_apply_operands(L, d, &a, "gelu", (const int[]){1}, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* ---- clamp ------------------------------------------------------------------------------------ */

static dc_status build_least(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return dc_ops_2(j, f, DC_OP_MAX, in[0], in[1], out);
}

static dc_status build_most(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return dc_ops_2(j, f, DC_OP_MIN, in[0], in[1], out);
}

static void limit(lua_State *L, dc_dsl *d, int bound, dc_build_fn *build, bool last)
{
    dc_apply a = {.build = build, .step = !last};
    if (lua_isnil(L, bound))
        return;
    dc_apply_operands(L, d, &a, "clamp", (const int[]){1, bound}, 2);
    dc_apply_run(L, d, &a);
    lua_replace(L, 1);
}

/* x:clamp(lo, hi), one of which may be nil: min(max(x, lo), hi) */
static int l_clamp(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 3);
    if (lua_isnil(L, 2) && lua_isnil(L, 3))
        dc_error_raisef(L, d, DC_ERR_ARG, "clamp", "a bound is needed, as in x:clamp(0, 1)");
    dc_handle_check(L, d, 1, "clamp");
    limit(L, d, 2, build_least, lua_isnil(L, 3));
    limit(L, d, 3, build_most, true);
    lua_settop(L, 1);
    return 1;
}

/* ---- registration ----------------------------------------------------------------------------- */

static const dc_composite rows[] = {
    {{"sign", dc_ops_composite, 1, DC_IN_BOTH}, build_sign, false, false},
    {{"ceil", dc_ops_composite, 1, DC_IN_BOTH}, build_ceil, false, false},
    {{"trunc", dc_ops_composite, 1, DC_IN_BOTH}, build_trunc, false, false},
    {{"square", dc_ops_composite, 1, DC_IN_BOTH}, build_square, false, false},
    {{"rsqrt", dc_ops_composite, 1, DC_IN_BOTH}, build_rsqrt, false, true},
    {{"reciprocal", dc_ops_composite, 1, DC_IN_BOTH}, build_reciprocal, true, false},
    {{"isnan", dc_ops_composite, 1, DC_IN_BOTH}, build_isnan, false, false},
    {{"isfinite", dc_ops_composite, 1, DC_IN_BOTH}, build_isfinite, false, false},
    {{"isinf", dc_ops_composite, 1, DC_IN_BOTH}, build_isinf, false, false},
    {{"softplus", dc_ops_composite, 1, DC_IN_BOTH}, build_softplus, false, true},
};

static const dc_binding others[] = {
    {"clamp", l_clamp, 3, DC_IN_BOTH},
    {"gelu", l_gelu, 2, DC_IN_BOTH},
};

const dc_bindings dc_unary_bindings[] = {
    {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]},
    DC_BINDINGS(others),
};
