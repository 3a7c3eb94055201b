/*
 * Element-wise operations: a method and a function of the module for every row of the op table,
 * the operators, and composites of rows where the language means more than one row does:
 *
 *   /  and ^   integers become f32
 *   // and %   floor, as in Lua (rows div and rem truncate)
 *
 * Gradients are taken of the steps as they stand here, so no step may overflow where the whole does
 * not: infinity times a zero gradient is NaN, and `where` does not stop it.
 */
#include "core/autodiff/custom.h"
#include "core/ir/power.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>
#include <string.h>

/* ---- steps ----------------------------------------------------------------------------------- */

dc_status dc_ops_1(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val *out)
{
    return dc_build_ew(j, f, op, &a, 1, out);
}

dc_status dc_ops_2(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val b, dc_val *out)
{
    const dc_val in[2] = {a, b};
    return dc_build_ew(j, f, op, in, 2, out);
}

dc_status dc_ops_where(dc_job *j, dc_func *f, dc_val m, dc_val a, dc_val b, dc_val *out)
{
    const dc_val in[3] = {m, a, b};
    return dc_build_ew(j, f, DC_OP_WHERE, in, 3, out);
}

dc_status dc_ops_number(dc_job *j, dc_func *f, dc_val like, double v, dc_val *out)
{
    const dc_type t = dc_type_scalar((dc_dtype)like.type.dtype);
    return dc_build_const(j, f, &t, v, out);
}

dc_status dc_ops_float(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    *out = a;
    return dc_dtype_is_smooth((dc_dtype)a.type.dtype) ? DC_OK : dc_build_cast(j, f, a, DC_F32, out);
}

/* ---- builds ---------------------------------------------------------------------------------- */

static dc_status build_row(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const dc_op op = *(const dc_op *)arg;
    return dc_build_ew(j, f, op, in, dc_op_row_of(op)->n, out);
}

static dc_status build_div(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val a, b;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    DC_TRY(dc_ops_float(j, f, in[1], &b));
    return dc_ops_2(j, f, DC_OP_DIV, a, b, out);
}

/* Is the remainder r (of a signed division by b) to be moved by b? r != 0 and of the other sign. */
static dc_status other_sign(dc_job *j, dc_func *f, dc_val r, dc_val b, dc_val *out)
{
    dc_val zero, r_neg, b_neg, not_zero, b_not_zero;
    DC_TRY(dc_ops_number(j, f, r, 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, r, zero, &r_neg));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, b, zero, &b_neg));
    DC_TRY(dc_ops_2(j, f, DC_OP_XOR, r_neg, b_neg, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, r, zero, &not_zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_NE, b, zero, &b_not_zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_AND, *out, not_zero, out));
    return dc_ops_2(j, f, DC_OP_AND, *out, b_not_zero, out);
}

static bool is_unsigned(dc_val a)
{
    return dc_dtype_kind((dc_dtype)a.type.dtype) == DC_KIND_UINT;
}

static dc_status build_floor_div(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    dc_val q, r, move, one, less;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, in[0], in[1], &q));
    if (dc_dtype_is_float((dc_dtype)q.type.dtype))
        return dc_ops_1(j, f, DC_OP_FLOOR, q, out);
    *out = q;
    if (is_unsigned(q))
        return DC_OK;
    DC_TRY(dc_ops_2(j, f, DC_OP_REM, in[0], in[1], &r));
    DC_TRY(other_sign(j, f, r, in[1], &move));
    DC_TRY(dc_ops_number(j, f, q, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, q, one, &less));
    return dc_ops_where(j, f, move, less, q, out);
}

static dc_status build_mod(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val r, move, more;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_2(j, f, DC_OP_REM, in[0], in[1], &r));
    *out = r;
    if (is_unsigned(r))
        return DC_OK;
    DC_TRY(other_sign(j, f, r, in[1], &move));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, r, in[1], &more));
    return dc_ops_where(j, f, move, more, r, out);
}

/* a to the n-th by squaring; n >= 1. */
static dc_status whole_power(dc_job *j, dc_func *f, dc_val a, int n, dc_val *out)
{
    if (n == 1) {
        *out = a;
        return DC_OK;
    }
    dc_val half;
    DC_TRY(whole_power(j, f, a, n / 2, &half));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, half, half, out));
    return n % 2 ? dc_ops_2(j, f, DC_OP_MUL, *out, a, out) : DC_OK;
}

/* The exponent of a power where it is a number. */
typedef struct power {
    bool known;
    double value;
} power;

enum { WHOLE_POWER = 1024 }; /* of complex numbers up to here by squaring */
enum { FEW_FACTORS = 10 };   /* exponents up to here are worth a kernel of their own in lazy code */

/* 1 in the shape of a, whatever is in it. */
static dc_status power_of_none(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    dc_val one, zero;
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, zero, out));
    return dc_ops_where(j, f, *out, one, one, out);
}

static dc_status whole_number_power(dc_job *j, dc_func *f, dc_val a, double n, dc_val *out)
{
    dc_val one;
    if (n == 0)
        return power_of_none(j, f, a, out);
    DC_TRY(whole_power(j, f, a, (int)fabs(n), out));
    if (n > 0)
        return DC_OK;
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    return dc_ops_2(j, f, DC_OP_DIV, one, *out, out);
}

/* exp(b log a) of complex numbers; of 0 it is 0, to the power of 0 it is 1. */
static dc_status complex_power(dc_job *j, dc_func *f, const power *e, dc_val a, dc_val b,
                               dc_val *out)
{
    dc_val zero, one, is_zero, none, of_zero;
    if (e->known && e->value == 0.5)
        return dc_ops_1(j, f, DC_OP_SQRT, a, out);
    if (e->known && e->value == floor(e->value) && fabs(e->value) <= WHOLE_POWER)
        return whole_number_power(j, f, a, e->value, out);
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, zero, &is_zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, b, zero, &none));
    DC_TRY(dc_ops_where(j, f, is_zero, one, a, &a));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, a, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, b, out));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, *out, out));
    DC_TRY(dc_ops_where(j, f, none, one, zero, &of_zero));
    return dc_ops_where(j, f, is_zero, of_zero, *out, out);
}

/*
 * The value *y of a with a gradient that is made of the value alone, slope(y) times the cotangent, so that
 * the operands are not kept for it.
 */
static dc_status by_result(dc_job *j, dc_func *f, const dc_val *a, dc_val *y,
                           dc_ref (*slope)(dc_func *f, dc_ref y, dc_ref dy))
{
    dc_custom c;
    if (!dc_dtype_is_float((dc_dtype)a->type.dtype))
        return DC_OK;
    dc_custom_given(f, &a->ref, 1, y->ref, &c);
    const dc_ref dx = slope(f, c.y_again, c.dy);
    return dc_custom_end(j, &c, &dx, &y->ref);
}

static dc_ref root_slope(dc_func *f, dc_ref y, dc_ref dy)
{
    const dc_ref half = dc_graph_op2(f, DC_OP_MUL, dy, dc_graph_like(f, dy, 0.5));
    return dc_graph_op2(f, DC_OP_DIV, half, y);
}

/* The root, but for -infinity, whose power is infinite, and -0. */
static dc_status root_power(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    dc_val least, is_least, most, root;
    DC_TRY(dc_ops_number(j, f, a, -INFINITY, &least));
    DC_TRY(dc_ops_number(j, f, a, INFINITY, &most));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, least, &is_least));
    DC_TRY(dc_ops_1(j, f, DC_OP_SQRT, a, &root));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, root, &root));
    DC_TRY(dc_ops_where(j, f, is_least, most, root, out));
    return by_result(j, f, &a, out, root_slope);
}

/*
 * The exponent of a power by products, which kernels are made for, so that it is a constant. Lazy code has numbers as
 * arguments, and of whole ones past some a kernel that serves for all of them (jit/flat/expand_pow.c).
 */
static dc_status short_exponent(dc_job *j, dc_func *f, double y, dc_val a, dc_val *b)
{
    if (dc_node_at(f, b->ref)->op == DC_OP_CONST || fabs(y) <= FEW_FACTORS || y != floor(y))
        return dc_ops_number(j, f, a, y, b);
    b->ref = dc_graph_cast(f, dc_graph_cast(f, b->ref, DC_I8), (dc_dtype)a.type.dtype);
    return DC_OK;
}

/* Exponents of which products, a quotient or a root are as good as the row, or faster by much and nearly as good (3). */
static dc_status build_pow(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const power *e = arg;
    const bool few =
        e->value == -1 || e->value == 0 || e->value == 1 || e->value == 2 || e->value == 3;
    dc_val a, b;
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    DC_TRY(dc_ops_float(j, f, in[1], &b));
    if (dc_dtype_is_complex((dc_dtype)a.type.dtype))
        return complex_power(j, f, e, a, b, out);
    if (e->known && few)
        return whole_number_power(j, f, a, e->value, out);
    if (e->known && e->value == 0.5)
        return root_power(j, f, a, out);
    if (!e->known || !dc_power_is_short(e->value))
        return dc_ops_2(j, f, DC_OP_POW, a, b, out);
    DC_TRY(short_exponent(j, f, e->value, a, &b));
    return dc_ops_2(j, f, DC_OP_POWER, a, b, out);
}

static dc_status build_integer_pow(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                   dc_val *out)
{
    DC_UNUSED(arg);
    for (int i = 0; i < 2; i++)
        if (dc_dtype_is_smooth((dc_dtype)in[i].type.dtype) || in[i].type.dtype == DC_BOOL)
            return dc_fail(j, DC_ERR_DTYPE,
                           &(dc_fact){.op = "integer_pow",
                                      .type = {in[i].type},
                                      .word = {"an integer"},
                                      .operand = i + 1});
    return dc_ops_2(j, f, DC_OP_POW, in[0], in[1], out);
}

static dc_ref relu_slope(dc_func *f, dc_ref y, dc_ref dy)
{
    const dc_ref none = dc_graph_like(f, dy, 0);
    return dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, none, y), dy, none);
}

static dc_status build_relu(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val zero;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[0], 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_MAX, in[0], zero, out));
    return by_result(j, f, &in[0], out, relu_slope);
}

/* a + a^3 P(a^2), for a of 0 .. 0.55: Chebyshev fits (scripts/minimax); where a is not near, of 0. */
static dc_status near_tanh(dc_job *j, dc_func *f, dc_val a, dc_val near, dc_val *out)
{
    static const double of_f32[] = {-0.00661022783111, 0.0213093886644, -0.0539094288275,
                                    0.13333113729, -0.33333332008};
    static const double of_f64[] = {
        -0.000020602765376366341605, 0.000085113136855776715155, -0.00023463474108872371445,
        0.00058893605200740577697,   -0.0014556618301007160336,  0.0035921103786890238773,
        -0.0088632343978143548378,   0.021869488493666941903,    -0.053968253967434014504,
        0.13333333333332714826,      -0.33333333333333332561};
    const bool wide = a.type.dtype == DC_F64;
    const double *c = wide ? of_f64 : of_f32;
    const size_t n = wide ? DC_COUNTOF(of_f64) : DC_COUNTOF(of_f32);
    dc_val zero, k, u;
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_where(j, f, near, a, zero, &a));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, a, a, &u));
    DC_TRY(dc_ops_number(j, f, a, c[0], out));
    for (size_t i = 1; i < n; i++) {
        DC_TRY(dc_ops_number(j, f, a, c[i], &k));
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, u, out));
        DC_TRY(dc_ops_2(j, f, DC_OP_ADD, *out, k, out));
    }
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, u, a, &u));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, *out, u, out));
    return dc_ops_2(j, f, DC_OP_ADD, a, *out, out);
}

/* (1 - y) (1 + y), which is exact where 1 - y * y would cancel. */
static dc_ref tanh_slope(dc_func *f, dc_ref y, dc_ref dy)
{
    const dc_ref one = dc_graph_like(f, y, 1);
    const dc_ref product = dc_graph_op2(f, DC_OP_MUL, dc_graph_op2(f, DC_OP_SUB, one, y),
                                        dc_graph_op2(f, DC_OP_ADD, one, y));
    return dc_graph_op2(f, DC_OP_MUL, dy, product);
}

/* (1 - e) / (1 + e) with e = exp(-2|a|) and the sign of a; near 0, where that cancels, a polynomial. */
static dc_status build_tanh(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    dc_val one, size, limit, minus_two, e, up, down, near, low;
    DC_UNUSED(arg);
    DC_TRY(dc_ops_number(j, f, in[0], 1, &one));
    DC_TRY(dc_ops_number(j, f, in[0], -2, &minus_two));
    DC_TRY(dc_ops_number(j, f, in[0], 0.55, &limit));
    DC_TRY(dc_ops_2(j, f, DC_OP_COPYSIGN, in[0], one, &size)); /* |a|, of real numbers alone */
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, size, minus_two, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &e));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, one, e, &up));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, one, e, &down));
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, up, down, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, size, limit, &near));
    DC_TRY(near_tanh(j, f, size, near, &low));
    DC_TRY(dc_ops_where(j, f, near, low, *out, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_COPYSIGN, *out, in[0], out));
    return by_result(j, f, &in[0], out, tanh_slope);
}

/* a > b is b < a; what is said of it is said of a and b. */
static dc_status swapped(dc_job *j, dc_func *f, dc_op op, const dc_val *in, dc_val *out)
{
    dc_fact *e = &j->err.fact;
    if (dc_ops_2(j, f, op, in[1], in[0], out) == DC_OK)
        return DC_OK;
    const dc_fact was = *e;
    if (j->err.id == DC_ERR_STRETCH || j->err.id == DC_ERR_DTYPE ||
        j->err.id == DC_ERR_NAME_TWICE) /* of one of them, or of the result */
        return j->err.status;
    for (int i = 0; i < 2; i++) {
        e->axis[i] = was.axis[1 - i];
        e->num[i] = was.num[1 - i];
        e->type[i] = was.type[1 - i];
        e->word[i] = was.word[1 - i];
    }
    return j->err.status;
}

static dc_status build_gt(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return swapped(j, f, DC_OP_LT, in, out);
}

static dc_status build_ge(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return swapped(j, f, DC_OP_LE, in, out);
}

/* ---- bindings -------------------------------------------------------------------------------- */

static int l_row(lua_State *L);

/*
 * Of every element-wise row of the op table; the others are empty. cast, bitcast and gelu, which have
 * more arguments, are replaced; threefry, power and gelu_tanh have no name in the language.
 */
#define HAS_NAME(op) ((op) != DC_OP_THREEFRY && (op) != DC_OP_POWER && (op) != DC_OP_GELU_TANH)

static const dc_binding row_of_op[DC_OP__COUNT] = {
/* clang-format off */
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = {lua, l_row, n, HAS_NAME(DC_OP_##id) ? DC_IN_BOTH : 0},
#include "core/ir/ops.def"
    /* clang-format on */
};

static int l_row(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_op op = (dc_op)(dc_binding_of(L) - row_of_op);
    const dc_op_row *row = dc_op_row_of(op);
    static const int at[DC_APPLY_IN] = {1, 2, 3, 4};
    dc_apply a = {.build = build_row, .arg = &op, .alike = op != DC_OP_WHERE, .pairs = true};
    luaL_checkstack(L, DC_APPLY_IN, "operands");
    if (lua_gettop(L) > row->n)
        lua_settop(L, row->n);
    dc_apply_operands(L, d, &a, row->name, at, row->n);
    dc_apply_run(L, d, &a);
    return 1;
}

static const dc_composite composites[] = {
    {{"div", dc_ops_composite, 2, DC_IN_BOTH}, build_div, true, false},
    {{"floor_div", dc_ops_composite, 2, DC_IN_BOTH}, build_floor_div, false, true},
    {{"mod", dc_ops_composite, 2, DC_IN_BOTH}, build_mod, false, true},
    {{"pow", dc_ops_composite, 2, DC_IN_BOTH}, build_pow, true, true},
    {{"integer_pow", dc_ops_composite, 2, DC_IN_BOTH}, build_integer_pow, false, false},
    {{"gt", dc_ops_composite, 2, DC_IN_BOTH}, build_gt, false, false},
    {{"ge", dc_ops_composite, 2, DC_IN_BOTH}, build_ge, false, false},
    {{"relu", dc_ops_composite, 1, DC_IN_BOTH}, build_relu, false, false},
    {{"tanh", dc_ops_composite, 1, DC_IN_BOTH}, build_tanh, false, true},
};

int dc_ops_composite(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_composite *c = (const dc_composite *)dc_binding_of(L); /* its first member */
    static const int at[3] = {1, 2, 3};
    lua_settop(L, c->bound.most);
    const power e = {lua_type(L, 2) == LUA_TNUMBER, lua_tonumber(L, 2)};
    dc_apply a = {.build = c->build,
                  .arg = &e,
                  .as_f32 = c->as_f32,
                  .once = c->once,
                  .alike = true,
                  .pairs = true};
    dc_apply_operands(L, d, &a, c->bound.name, at, c->bound.most);
    dc_apply_run(L, d, &a);
    return 1;
}

/* x:cast "f32"  x:cast("f8e4m3fn", { saturate = true }) */
typedef struct casting {
    dc_dtype to;
    bool saturates;
} casting;

/* The largest number of `to`, or that less than 0, as one of `from` that is no larger in size. */
static double most_of(dc_dtype from, dc_dtype to, double sign)
{
    const double most = dc_value_of(to, dc_bits_infinity(to) - 1);
    const uint64_t bits = dc_bits_of(from, sign * most);
    return dc_value_of(from, fabs(dc_value_of(from, bits)) > most ? bits - 1 : bits);
}

/* What is beyond the largest number becomes that one; NaN stays NaN. */
static dc_status build_cast(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const casting *c = arg;
    const dc_dtype from = (dc_dtype)in[0].type.dtype;
    dc_val x = in[0], limit;
    if (c->saturates && from != DC_BOOL) {
        DC_TRY(dc_ops_number(j, f, x, most_of(from, c->to, 1), &limit));
        DC_TRY(dc_ops_2(j, f, DC_OP_MIN, x, limit, &x));
        if (dc_dtype_kind(from) != DC_KIND_UINT) {
            DC_TRY(dc_ops_number(j, f, x, most_of(from, c->to, -1), &limit));
            DC_TRY(dc_ops_2(j, f, DC_OP_MAX, x, limit, &x));
        }
    }
    return dc_build_cast(j, f, x, c->to, out);
}

/* The dtype that argument 2 names. */
static dc_dtype wanted(lua_State *L, dc_dsl *d, const char *op)
{
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    dc_dtype t;
    dc_handle_check(L, d, 1, op);
    if (name != NULL && dc_dtype_find(name, strlen(name), &t))
        return t;
    const char *here = name != NULL ? dc_dtype_elsewhere(name, strlen(name)) : NULL;
    dc_error_fact(
        L, d, DC_ERR_ARG,
        &(dc_fact){.op = op,
                   .word = {lua_pushfstring(L, "a dtype such as \"f32\" is needed, not %s",
                                            dc_handle_describe(L, 2))}},
        &(dc_blame){.hint = here != NULL ? lua_pushfstring(L, "x:%s \"%s\"", op, here) : NULL});
}

static int l_cast(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_dtype t = wanted(L, d, "cast");
    static const int at[1] = {1};
    casting c = {.to = t};
    dc_apply a = {.build = build_cast, .arg = &c};
    lua_settop(L, 3);
    dc_args_options(L, d, 3, "cast", (const char *const[]){"saturate", NULL});
    c.saturates =
        lua_istable(L, 3) && lua_getfield(L, 3, "saturate") != LUA_TNIL && lua_toboolean(L, -1);
    const dc_type *of = dc_handle_type(dc_handle_check(L, d, 1, "cast"));
    if (c.saturates && (!dc_dtype_is_float(t) || dc_dtype_is_complex((dc_dtype)of->dtype)))
        dc_error_raisef(
            L, d, DC_ERR_ARG, "cast",
            "saturate is for casts to floats; integers saturate, complex numbers do not");
    lua_settop(L, 1);
    dc_apply_operands(L, d, &a, "cast", at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* x:bitcast "u32" */
static dc_status build_bitcast(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    return dc_build_bitcast(j, f, in[0], *(const dc_dtype *)arg, out);
}

static int l_bitcast(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const int at[1] = {1};
    const dc_dtype t = wanted(L, d, "bitcast");
    dc_apply a = {.build = build_bitcast, .arg = &t};
    lua_settop(L, 1);
    dc_apply_operands(L, d, &a, "bitcast", at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* a:matmul(b)  a:matmul(b, { dtype = "i32" }) */
static dc_status build_matmul(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_matmul_in(j, f, in[0], in[1], *(const int *)arg, out);
}

static int l_matmul(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const int at[2] = {1, 2};
    int dtype = -1;
    dc_apply a = {.build = build_matmul, .arg = &dtype, .product = true};
    dc_handle_check(L, d, 1, "matmul");
    dc_handle_check(L, d, 2, "matmul");
    lua_settop(L, 3);
    dc_args_options(L, d, 3, "matmul", (const char *const[]){"dtype", NULL});
    if (!lua_isnil(L, 3))
        dtype = dc_args_dtype(L, d, 3, "matmul");
    lua_settop(L, 2);
    dc_apply_operands(L, d, &a, "matmul", at, 2);
    dc_apply_run(L, d, &a);
    return 1;
}

static const dc_binding others[] = {
    {"cast", l_cast, 3, DC_IN_BOTH},
    {"bitcast", l_bitcast, 2, DC_IN_BOTH},
    {"matmul", l_matmul, 3, DC_IN_BOTH},
};

const dc_bindings dc_operator_bindings[] = {
    DC_BINDINGS(row_of_op),
    {&composites[0].bound, DC_COUNTOF(composites), sizeof composites[0]},
    DC_BINDINGS(others),
};

/* ---- metamethods ----------------------------------------------------------------------------- */

static void rename_field(lua_State *L, int table, const char *from, const char *to)
{
    lua_getfield(L, table, from);
    lua_setfield(L, table, to);
    lua_pushnil(L);
    lua_setfield(L, table, from);
}

/* Lua calls those of one operand with two, so that they are not counted. */
static void set_operators(lua_State *L, int methods, int meta)
{
    static const char *const names[][2] = {
        {"__add", "add"},        {"__sub", "sub"},         {"__mul", "mul"},
        {"__div", "div"},        {"__idiv", "floor_div"},  {"__mod", "mod"},
        {"__pow", "pow"},        {"__unm", "neg"},         {"__band", "bit_and"},
        {"__bor", "bit_or"},     {"__bxor", "bit_xor"},    {"__bnot", "bit_not"},
        {"__shl", "shift_left"}, {"__shr", "shift_right"},
    };
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        lua_getfield(L, methods, names[i][1]);
        const int fn = lua_gettop(L);
        lua_getupvalue(L, fn, 1);
        lua_getupvalue(L, fn, 2);
        const dc_binding *b = lua_touserdata(L, -1);
        lua_pushcclosure(L, b->fn, 2);
        lua_setfield(L, meta, names[i][0]);
        lua_settop(L, fn - 1);
    }
}

void dc_operators_open(lua_State *L, int methods, int module, int meta)
{
    rename_field(L, methods, "not", "bit_not"); /* `not` is a word of Lua */
    rename_field(L, module, "not", "bit_not");
    set_operators(L, methods, meta);
}
