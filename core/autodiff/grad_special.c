/*
 * Gradient rules of functions of one number, of atan2 and copysign. Their factors are no numbers of 16 bits, so those are
 * computed in f32.
 */
#include "core/autodiff/grad_impl.h"

#include <math.h>

/* What a rule reads, as f32 where it has 16 bits: the operand, the result, the cotangent. */
typedef struct slope {
    dc_func *f;
    dc_dtype t;
    dc_ref a, r, g;
} slope;

static dc_ref widened(dc_func *f, dc_ref r)
{
    const dc_dtype t = (dc_dtype)dc_node_at(f, r)->dtype;
    return dc_dtype_is_short(t) ? dc_graph_cast(f, r, DC_F32) : r;
}

static slope slope_of(const dc_vjp *v)
{
    slope s = {.f = v->f, .t = (dc_dtype)v->n.dtype};
    s.a = widened(v->f, v->n.in[0]);
    s.r = widened(v->f, v->r);
    s.g = widened(v->f, v->g);
    return s;
}

static void give(const dc_vjp *v, int i, const slope *s, dc_ref part)
{
    dc_vjp_give(v, i, dc_dtype_is_short(s->t) ? dc_graph_cast(s->f, part, s->t) : part);
}

static dc_ref add(const slope *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_ADD, a, b);
}

static dc_ref sub(const slope *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_SUB, a, b);
}

static dc_ref mul(const slope *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_MUL, a, b);
}

static dc_ref over(const slope *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_DIV, a, b);
}

static dc_ref apply(const slope *s, dc_op op, dc_ref a)
{
    return dc_graph_op1(s->f, op, a);
}

static dc_ref number(const slope *s, double v)
{
    return dc_graph_like(s->f, s->a, v);
}

/* (1 - a) (1 + a), exact where 1 - a^2 would cancel */
static dc_ref one_less_square(const slope *s)
{
    const dc_ref one = number(s, 1);
    return mul(s, sub(s, one, s->a), add(s, one, s->a));
}

static dc_ref one_and_square(const slope *s, dc_ref a)
{
    return add(s, number(s, 1), mul(s, a, a));
}

void dc_grad_tan(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, one_and_square(&s, s.r)));
}

void dc_grad_asin(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, apply(&s, DC_OP_SQRT, one_less_square(&s))));
}

void dc_grad_acos(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref part = over(&s, s.g, apply(&s, DC_OP_SQRT, one_less_square(&s)));
    give(v, 0, &s, apply(&s, DC_OP_NEG, part));
}

void dc_grad_atan(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, one_and_square(&s, s.a)));
}

void dc_grad_sinh(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, apply(&s, DC_OP_COSH, s.a)));
}

void dc_grad_cosh(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, apply(&s, DC_OP_SINH, s.a)));
}

void dc_grad_asinh(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, apply(&s, DC_OP_SQRT, one_and_square(&s, s.a))));
}

/* 1 / (sqrt(a - 1) sqrt(a + 1)) */
void dc_grad_acosh(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref one = number(&s, 1);
    const dc_ref root =
        mul(&s, apply(&s, DC_OP_SQRT, sub(&s, s.a, one)), apply(&s, DC_OP_SQRT, add(&s, s.a, one)));
    give(v, 0, &s, over(&s, s.g, root));
}

void dc_grad_atanh(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, one_less_square(&s)));
}

static const double log_2 = 0.693147180559945309, log_10 = 2.30258509299404568,
                    half_root_pi = 0.886226925452758014, pi = 3.14159265358979324;

void dc_grad_exp2(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, mul(&s, s.r, number(&s, log_2))));
}

void dc_grad_log2(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, mul(&s, s.a, number(&s, log_2))));
}

void dc_grad_log10(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, mul(&s, s.a, number(&s, log_10))));
}

/* 1 / (3 r^2), infinite at 0 */
void dc_grad_cbrt(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, over(&s, s.g, mul(&s, mul(&s, s.r, s.r), number(&s, 3))));
}

/* 2 / sqrt(pi) exp(-a^2) */
static dc_ref bell(const slope *s)
{
    const dc_ref e = apply(s, DC_OP_EXP, apply(s, DC_OP_NEG, mul(s, s->a, s->a)));
    return mul(s, e, number(s, 1 / half_root_pi));
}

void dc_grad_erf(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, bell(&s)));
}

void dc_grad_erfc(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, apply(&s, DC_OP_NEG, mul(&s, s.g, bell(&s))));
}

/* sqrt(pi) / 2 exp(r^2) */
void dc_grad_erf_inv(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref e = apply(&s, DC_OP_EXP, mul(&s, s.r, s.r));
    give(v, 0, &s, mul(&s, s.g, mul(&s, e, number(&s, half_root_pi))));
}

static dc_ref rest_of(const slope *s, dc_ref a)
{
    return sub(s, number(s, 1), a);
}

/* r (1 - r), of 16-bit floats with an r that has the digits of f32 */
void dc_grad_sigmoid(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref r = dc_dtype_is_short(s.t) ? apply(&s, DC_OP_SIGMOID, s.a) : s.r;
    give(v, 0, &s, mul(&s, s.g, mul(&s, r, rest_of(&s, r))));
}

/*
 * a, but no further from 0 than `most`, or `most_f64` in f64: where a gate is open or shut to the last bit. Beyond, an infinite
 * number would meet a slope of 0.
 */
static dc_ref within(const slope *s, double most, double most_f64)
{
    const double end = s->t == DC_F64 ? most_f64 : most;
    const dc_ref below = dc_graph_op2(s->f, DC_OP_MIN, s->a, number(s, end));
    return dc_graph_op2(s->f, DC_OP_MAX, below, number(s, -end));
}

/* p (1 + a (1 - p)) with p = sigmoid(a) */
void dc_grad_silu(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref a = within(&s, 112, 760), p = apply(&s, DC_OP_SIGMOID, a);
    const dc_ref factor = add(&s, mul(&s, a, rest_of(&s, p)), number(&s, 1));
    give(v, 0, &s, mul(&s, s.g, mul(&s, p, factor)));
}

/* (1 + erf(a / sqrt(2))) / 2 + a exp(-a^2 / 2) / sqrt(2 pi) */
void dc_grad_gelu(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref a = within(&s, 14.5, 38.7), t = mul(&s, a, number(&s, 0.707106781186547524));
    const dc_ref part = mul(&s, add(&s, apply(&s, DC_OP_ERF, t), number(&s, 1)), number(&s, 0.5));
    const dc_ref e = apply(&s, DC_OP_EXP, apply(&s, DC_OP_NEG, mul(&s, t, t)));
    const dc_ref bell_part = mul(&s, mul(&s, a, number(&s, 0.398942280401432678)), e);
    give(v, 0, &s, mul(&s, s.g, add(&s, part, bell_part)));
}

/* p (1 + a (1 - p) y') with p = sigmoid(y), y = 2 sqrt(2 / pi) (a + 0.044715 a^3) */
void dc_grad_gelu_tanh(const dc_vjp *v)
{
    const double first = 1.59576912160573071, third = 0.0713548162726002488;
    const slope s = slope_of(v);
    const dc_ref a = within(&s, 15, 25), square = mul(&s, a, a);
    const dc_ref y = mul(&s, a, add(&s, mul(&s, square, number(&s, third)), number(&s, first)));
    const dc_ref p = apply(&s, DC_OP_SIGMOID, y);
    const dc_ref slope_y = add(&s, mul(&s, square, number(&s, 3 * third)), number(&s, first));
    const dc_ref factor =
        add(&s, mul(&s, mul(&s, a, rest_of(&s, p)), slope_y), number(&s, 1));
    give(v, 0, &s, mul(&s, s.g, mul(&s, p, factor)));
}

void dc_grad_lgamma(const dc_vjp *v)
{
    const slope s = slope_of(v);
    give(v, 0, &s, mul(&s, s.g, apply(&s, DC_OP_DIGAMMA, s.a)));
}

enum { TRIGAMMA_STEPS = 10 };

/* The sum of 1 / (t + k)^2 for k from 0 on: some terms, then the asymptotic series, of t + 10. For t > 0. */
static dc_ref positive_trigamma(const slope *s, dc_ref t)
{
    static const double coef[] = {-3617. / 510, 7. / 6,   -691. / 2730, 5. / 66,
                                  -1. / 30,     1. / 42., -1. / 30,     1. / 6};
    const dc_ref one = number(s, 1);
    dc_ref sum = 0;
    for (int k = 0; k < TRIGAMMA_STEPS; k++) {
        const dc_ref inverse = over(s, one, k == 0 ? t : add(s, t, number(s, k)));
        const dc_ref term = mul(s, inverse, inverse);
        sum = k == 0 ? term : add(s, sum, term);
    }
    const dc_ref inverse = over(s, one, add(s, t, number(s, TRIGAMMA_STEPS)));
    const dc_ref square = mul(s, inverse, inverse);
    dc_ref series = number(s, coef[0]);
    for (size_t i = 1; i < DC_COUNTOF(coef); i++)
        series = add(s, mul(s, series, square), number(s, coef[i]));
    series = mul(s, add(s, mul(s, series, inverse), number(s, 0.5)), square);
    return add(s, sum, add(s, series, inverse));
}

/* Its derivative, of steps that have derivatives of every order; up to 0 (pi / sin(pi a))^2 - trigamma(1 - a). */
void dc_grad_digamma(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref one = number(&s, 1);
    const dc_ref left = dc_graph_op2(s.f, DC_OP_LE, s.a, number(&s, 0));
    const dc_ref t = dc_graph_op3(s.f, DC_OP_WHERE, left, sub(&s, one, s.a), s.a);
    const dc_ref r = positive_trigamma(&s, t);
    const dc_ref turn = sub(&s, s.a, apply(&s, DC_OP_ROUND, s.a));
    const dc_ref safe = dc_graph_op3(s.f, DC_OP_WHERE, left, turn, number(&s, 0.5));
    const dc_ref sine = apply(&s, DC_OP_SIN, mul(&s, safe, number(&s, pi)));
    const dc_ref ratio = over(&s, number(&s, pi), sine);
    const dc_ref other = sub(&s, mul(&s, ratio, ratio), r);
    give(v, 0, &s, mul(&s, s.g, dc_graph_op3(s.f, DC_OP_WHERE, left, other, r)));
}

/*
 * b / (a^2 + b^2) and -a / (a^2 + b^2); 0 at the origin. The larger of |a| and |b|, which only scales, keeps the squares
 * from overflow, and no derivative goes through it.
 */
void dc_grad_atan2(const dc_vjp *v)
{
    const slope s = slope_of(v);
    const dc_ref a = s.a, b = widened(s.f, v->n.in[1]), zero = number(&s, 0);
    dc_ref size = dc_graph_op2(s.f, DC_OP_MAX, apply(&s, DC_OP_ABS, a), apply(&s, DC_OP_ABS, b));
    size = dc_graph_op3(s.f, DC_OP_WHERE, dc_graph_op2(s.f, DC_OP_EQ, size, zero), number(&s, 1),
                        size);
    size = apply(&s, DC_OP_STOP, size);
    const dc_ref x = over(&s, b, size), y = over(&s, a, size);
    const dc_ref sum = add(&s, mul(&s, x, x), mul(&s, y, y));
    const dc_ref origin = dc_graph_op2(s.f, DC_OP_EQ, sum, zero);
    const dc_ref safe = dc_graph_op3(s.f, DC_OP_WHERE, origin, number(&s, 1), sum);
    const dc_ref g = over(&s, over(&s, s.g, size), safe);
    if (dc_vjp_wants(v, 0))
        give(v, 0, &s, mul(&s, g, x));
    if (dc_vjp_wants(v, 1))
        give(v, 1, &s, apply(&s, DC_OP_NEG, mul(&s, g, y)));
}

/*
 * b a^(b - 1) and r log a. Where b is 0 the first is 0, also where 1 / a is infinite or a is: the power is 1 there then. The
 * second is 0 where r is: of 0, of infinity with a negative b. NaN for a negative base.
 */
void dc_grad_pow(const dc_vjp *v)
{
    const slope s = slope_of(v);
    dc_func *f = s.f;
    const dc_ref a = s.a, b = widened(f, v->n.in[1]), zero = number(&s, 0), one = number(&s, 1);
    const dc_ref most = number(&s, INFINITY);
    if (dc_vjp_wants(v, 0)) {
        const bool known = dc_node_at(f, b)->op == DC_OP_CONST;
        dc_ref less = sub(&s, b, one);
        if (!known) {
            const dc_ref size = apply(&s, DC_OP_ABS, a);
            const dc_ref least = number(&s, s.t == DC_F64 ? 0x1p-1022 : 0x1p-126);
            const dc_ref inside = dc_graph_op2(f, DC_OP_AND, dc_graph_op2(f, DC_OP_LE, least, size),
                                               dc_graph_op2(f, DC_OP_LT, size, most));
            const dc_ref flat = dc_graph_op2(f, DC_OP_EQ, b, zero);
            const dc_ref there = dc_graph_op3(f, DC_OP_WHERE, inside, less, zero);
            less = dc_graph_op3(f, DC_OP_WHERE, flat, there, less);
        }
        const dc_ref power = dc_graph_op2(f, known ? (dc_op)v->n.op : DC_OP_POW, a, less);
        give(v, 0, &s, mul(&s, s.g, mul(&s, b, power)));
    }
    if (dc_vjp_wants(v, 1)) {
        const dc_ref falls = dc_graph_op2(f, DC_OP_LT, b, zero);
        const dc_ref of_zero = dc_graph_op2(f, DC_OP_EQ, a, zero);
        const dc_ref of_most = dc_graph_op2(f, DC_OP_EQ, a, most);
        const dc_ref at_one =
            dc_graph_op3(f, DC_OP_WHERE, falls, dc_graph_op3(f, DC_OP_WHERE, of_most, one, a),
                         dc_graph_op3(f, DC_OP_WHERE, of_zero, one, a));
        give(v, 1, &s, mul(&s, s.g, mul(&s, s.r, apply(&s, DC_OP_LOG, at_one))));
    }
}

/* 1 or -1, 0 where a is 0; the sign of b is flat. */
void dc_grad_copysign(const dc_vjp *v)
{
    const slope s = slope_of(v);
    if (!dc_vjp_wants(v, 0))
        return;
    const dc_ref one = number(&s, 1), zero = dc_graph_like(s.f, s.g, 0);
    const dc_ref signs = mul(&s, dc_graph_op2(s.f, DC_OP_COPYSIGN, one, s.a),
                             dc_graph_op2(s.f, DC_OP_COPYSIGN, one, s.r));
    const dc_ref none = dc_graph_op2(s.f, DC_OP_EQ, s.a, number(&s, 0));
    give(v, 0, &s, dc_graph_op3(s.f, DC_OP_WHERE, none, zero, mul(&s, s.g, signs)));
}
