/*
 * Special functions of double, simple and a few units of the last place off. Beside the zero of digamma, 1.4616, its
 * error is one of its terms.
 */
#include "core/graph/special.h"

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
