/*
 * Special functions of double, simple and a few units of the last place off. Beside the zero of digamma, 1.4616, its
 * error is one of its terms.
 */
#include "core/ir/special.h"

#include <math.h>
#include <stddef.h>

static const double pi = 3.14159265358979324;

/* The asymptotic series from 16 on, to where digamma(x + 1) = digamma(x) + 1 / x leads. */
double dc_digamma(double x)
{
    static const double coef[] = {1. / 12,  -691. / 32760, 1. / 132, -1. / 240,
                                  1. / 252, -1. / 120,     1. / 12};
    double sum = 0, series = 0;
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0)
        return x == floor(x) ? NAN : dc_digamma(1 - x) - pi / tan(pi * (x - rint(x)));
    for (; x < 16; x++)
        sum += 1 / x;
    const double square = 1 / (x * x);
    for (size_t i = 0; i < sizeof coef / sizeof *coef; i++)
        series = series * square + coef[i];
    return log(x) - 0.5 / x - series * square - sum;
}

/* Halley's steps for erf(y) = |x|, of erfc where that is the smaller one; from a first y that is 1 % off at most. */
double dc_erf_inv(double x)
{
    const double size = fabs(x), rest = 1 - size;
    if (!(size < 1))
        return size == 1 ? copysign(INFINITY, x) : NAN;
    if (size < 1e-8)
        return x * sqrt(pi) / 2;
    const double l = log(rest * (1 + size)),
                 half = 2 / (pi * 0.147) + l / 2; /* S. Winitzki, 2008 */
    double y = sqrt(sqrt(half * half - l / 0.147) - half);
    for (int i = 0; i < 3; i++) {
        const double off = size < 0.5 ? erf(y) - size : rest - erfc(y);
        const double step = off * sqrt(pi) / 2 * exp(y * y);
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

/* x / (1 + exp(-y - more)), for a small `more`; where exp(y) is no normal number, it is the product of two. */
static double gate(double x, double y, double more)
{
    if (y < -700)
        return x * exp(y / 2) * (1 + more) * exp(y / 2);
    const double e = exp(-fabs(y)) * (y < 0 ? 1 + more : 1 - more);
    return y < 0 ? x * (e / (1 + e)) : x / (1 + e);
}

double dc_sigmoid(double x)
{
    return gate(1, x, 0);
}

/* 0 for -infinity, as the next two */
double dc_silu(double x)
{
    return x < -1000 ? -0.0 : gate(x, x, 0);
}

/*
 * x / 2 erfc(-x / sqrt(2)), with what the argument's rounding leaves. Where erfc is no normal number, exp(-x^2 / 2) by the
 * asymptotic series.
 */
double dc_gelu(double x)
{
    const double inverse = -0x1.6a09e667f3bcdp-1, a = x * inverse;
    if (fabs(x) > 1000)
        return x < 0 ? -0.0 : x;
    if (x < -30) {
        const double high = (double)(float)x, t = 1 / (x * x);
        double series = 1;
        for (int i = 15; i > 0; i -= 2)
            series = 1 - i * t * series;
        const double rest = exp(-(x - high) * (x + high) / 2), half = exp(-high * high / 4);
        return -series / sqrt(2 * pi) * half * rest * half;
    }
    const double left = fma(x, inverse, -a) + x * 0x1.bdd3413b26456p-55;
    return x / 2 * (erfc(a) - 2 / sqrt(pi) * exp(-a * a) * left);
}

/* x sigmoid(y) with y = 2 sqrt(2 / pi) (x + 0.044715 x^3) in two parts */
double dc_gelu_tanh(double x)
{
    const double first = 0x1.9884533d43651p+0, third = 0x1.2444f2a4d8b4bp-4;
    if (fabs(x) > 1000)
        return x < 0 ? -0.0 : x;
    const double square = x * x, cube = square * third, sum = cube + first, part = sum - cube;
    double more = fma(square, third, -cube) + fma(x, x, -square) * third;
    more += (cube - (sum - part)) + (first - part);
    more -= 0x1.cbc0d30ebfd15p-54 + square * 0x1.6c843a29d1c70p-61;
    const double y = x * sum;
    return gate(x, y, fma(x, sum, -y) + x * more);
}
