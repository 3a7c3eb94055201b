/*
 * What rows marked NEAR are compared with: the exact value as a long double, and how many units of the last place a kernel
 * may be off it.
 */
#ifndef DC_TESTS_NEAR_H
#define DC_TESTS_NEAR_H

#include "core/ir/op.h"

#include <math.h>

static inline long double near_pi(void)
{
    return acosl(-1);
}

/* Its Taylor series about its zero, where the terms of others cancel. */
static inline long double near_digamma_zero(long double x)
{
    static const long double coef[] = {
        0.9676722454476211704274L,  -0.4427631689835921060929L,  0.2584997609556510106244L,
        -0.1639427054424065275043L, 0.1078240506912623657572L,   -0.07219956125645471092612L,
        0.04880428816414310722509L, -0.03316112647484735929226L, 0.02259764823221810465962L,
        -0.0154247659049489591388L, 0.01053879161661217538812L,  -0.00720453438635686824097L,
        0.004926781395729853446354L};
    const long double d = (x - 1.461632144968362341172496L) - 9.016312093258695918614428e-20L;
    long double r = 0;
    for (size_t i = DC_COUNTOF(coef); i-- > 0;)
        r = (r + coef[i]) * d;
    return r;
}

/* By digamma(x + 1) = digamma(x) + 1 / x to where the asymptotic series has all digits. */
static inline long double near_digamma(long double x)
{
    static const long double coef[] = {-1.0L / 12,  1.0L / 120,     -1.0L / 252, 1.0L / 240,
                                       -1.0L / 132, 691 / 32760.0L, -1.0L / 12,  3617 / 8160.0L};
    if (x == 0)
        return copysignl(INFINITY, -x);
    if (fabsl(x - 1.4616L) < 0.02L)
        return near_digamma_zero(x);
    if (x < 0)
        return x == floorl(x) ? NAN
                              : near_digamma(1 - x) - near_pi() / tanl(near_pi() * (x - rintl(x)));
    long double sum = 0, power = 1;
    for (; x < 32; x++)
        sum -= 1 / x;
    sum += logl(x) - 0.5L / x;
    for (size_t i = 0; i < DC_COUNTOF(coef); i++)
        sum += coef[i] * (power /= x * x);
    return sum;
}

static inline long double near_erf_inv(long double x)
{
    const long double rest = 1 - fabsl(x);
    if (!(rest > 0))
        return rest == 0 ? copysignl(INFINITY, x) : NAN;
    long double y = sqrtl(-logl(rest * (1 + fabsl(x)))) * 0.886L;
    for (int i = 0; i < 100; i++) {
        const long double off = fabsl(x) < 0.5L ? erfl(y) - fabsl(x) : rest - erfcl(y);
        const long double step = off * sqrtl(near_pi()) / 2 * expl(y * y);
        y -= step / (1 + y * step);
        if (fabsl(step) < 1e-20L * y)
            break;
    }
    return copysignl(y, x);
}

static inline long double near_sigmoid(long double x)
{
    const long double e = expl(-fabsl(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static inline long double near_gelu(long double x)
{
    return x == -INFINITY ? -0.0L : x / 2 * erfcl(x * -0.707106781186547524400844362L);
}

/* x sigmoid(2 b), where tanh is near -1 */
static inline long double near_gelu_tanh(long double x)
{
    const long double b = 0.797884560802865355879892119869L * (x + 0.044715L * x * x * x);
    return x == -INFINITY ? -0.0L : x * near_sigmoid(2 * b);
}

static inline long double near_exact(dc_op op, long double a, long double b)
{
    switch ((int)op) {
    case DC_OP_EXP:
        return expl(a);
    case DC_OP_LOG:
        return logl(a);
    case DC_OP_EXPM1:
        return expm1l(a);
    case DC_OP_LOG1P:
        return log1pl(a);
    case DC_OP_ERF:
        return erfl(a);
    case DC_OP_SIN:
        return sinl(a);
    case DC_OP_COS:
        return cosl(a);
    case DC_OP_TAN:
        return tanl(a);
    case DC_OP_ASIN:
        return asinl(a);
    case DC_OP_ACOS:
        return acosl(a);
    case DC_OP_ATAN:
        return atanl(a);
    case DC_OP_ATAN2:
        return atan2l(a, b);
    case DC_OP_SINH:
        return sinhl(a);
    case DC_OP_COSH:
        return coshl(a);
    case DC_OP_ASINH:
        return asinhl(a);
    case DC_OP_ACOSH:
        return acoshl(a);
    case DC_OP_ATANH:
        return atanhl(a);
    case DC_OP_EXP2:
        return exp2l(a);
    case DC_OP_LOG2:
        return log2l(a);
    case DC_OP_LOG10:
        return log10l(a);
    case DC_OP_CBRT:
        return cbrtl(a);
    case DC_OP_ERFC:
        return erfcl(a);
    case DC_OP_ERF_INV:
        return near_erf_inv(a);
    case DC_OP_SIGMOID:
        return near_sigmoid(a);
    case DC_OP_SILU:
        return a == -INFINITY ? -0.0L : a * near_sigmoid(a);
    case DC_OP_GELU:
        return near_gelu(a);
    case DC_OP_GELU_TANH:
        return near_gelu_tanh(a);
    case DC_OP_LGAMMA:
        return lgammal(a);
    case DC_OP_DIGAMMA:
        return near_digamma(a);
    }
    return NAN;
}

/* Units of the last place, of what is computed in f32 and in f64; unit/test_accuracy has tighter ones of f32. */
static inline double near_limit(dc_op op, bool f64)
{
    switch ((int)op) {
    case DC_OP_ASINH:
    case DC_OP_ACOSH:
    case DC_OP_ERF_INV:
    case DC_OP_GELU:
    case DC_OP_GELU_TANH:
        return f64 ? 3 : 2;
    case DC_OP_LGAMMA:
        return f64 ? 4 : 2;
    case DC_OP_DIGAMMA:
        return f64 ? 5 : 2;
    case DC_OP_POW:
    case DC_OP_POWER:
        return 1;
    default:
        return 2;
    }
}

/*
 * How large terms are that the result is a difference of: units are of the largest of these and the result. For negative
 * arguments lgamma and digamma are reflected.
 */
static inline long double near_terms(dc_op op, long double a)
{
    if (op == DC_OP_LGAMMA && a < 0)
        return fmaxl(1, lgammal(-a));
    if (op == DC_OP_DIGAMMA && a < 0)
        return fmaxl(near_digamma(1 - a), fabsl(near_digamma(1 - a) - near_digamma(a)));
    return 0;
}

#endif
