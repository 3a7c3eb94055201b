/*
 * The transform of a few numbers as a straight line (jit/lower/lower_fft.h): a composite length is taken apart again, with
 * factors that are constants; of a prime one, sums and differences of opposite inputs are added up.
 */
#include "jit/lower/lower_fft.h"

#include <math.h>

static dc_vx op(const dc_line *l, dc_op o, dc_vx a, dc_vx b)
{
    return dc_vx_op(l->k, o, l->t, (const dc_vx[]){a, b}, 2);
}

static dc_vx times(const dc_line *l, dc_vx a, double by)
{
    return op(l, DC_OP_MUL, a, dc_vx_const(l->k, l->t, dc_bits_of(l->t, by)));
}

static dc_vx negative(const dc_line *l, dc_vx a)
{
    return dc_vx_op(l->k, DC_OP_NEG, l->t, &a, 1);
}

static dc_number sum(const dc_line *l, dc_number a, dc_number b)
{
    return (dc_number){op(l, DC_OP_ADD, a.re, b.re), op(l, DC_OP_ADD, a.im, b.im)};
}

static dc_number difference(const dc_line *l, dc_number a, dc_number b)
{
    return (dc_number){op(l, DC_OP_SUB, a.re, b.re), op(l, DC_OP_SUB, a.im, b.im)};
}

/* a (c + i s) */
static dc_number product(const dc_line *l, dc_number a, dc_vx c, dc_vx s)
{
    return (dc_number){op(l, DC_OP_SUB, op(l, DC_OP_MUL, a.re, c), op(l, DC_OP_MUL, a.im, s)),
                       op(l, DC_OP_ADD, op(l, DC_OP_MUL, a.re, s), op(l, DC_OP_MUL, a.im, c))};
}

/* a exp(sign 2 pi i e / n), without multiplications by 0 and 1. */
static dc_number turned(const dc_line *l, dc_number a, int e, int n)
{
    e = (l->sign * e % n + n) % n;
    if (e == 0)
        return a;
    if (4 * e == n)
        return (dc_number){negative(l, a.im), a.re};
    if (2 * e == n)
        return (dc_number){negative(l, a.re), negative(l, a.im)};
    if (4 * e == 3 * n)
        return (dc_number){a.im, negative(l, a.re)};
    const double angle = 2 * acos(-1) * e / n, c = cos(angle), s = sin(angle);
    if (8 * e % n == 0) { /* an odd number of eighths: both are as large */
        const dc_vx plus = op(l, DC_OP_ADD, a.re, a.im), minus = op(l, DC_OP_SUB, a.re, a.im);
        const double h = sqrt(0.5);
        return 8 * e == n       ? (dc_number){times(l, minus, h), times(l, plus, h)}
               : 8 * e == 3 * n ? (dc_number){times(l, plus, -h), times(l, minus, h)}
               : 8 * e == 5 * n ? (dc_number){times(l, minus, -h), times(l, plus, -h)}
                                : (dc_number){times(l, plus, h), times(l, minus, -h)};
    }
    return product(l, a, dc_vx_const(l->k, l->t, dc_bits_of(l->t, c)),
                   dc_vx_const(l->k, l->t, dc_bits_of(l->t, s)));
}

/* An odd prime: y[k], y[p - k] = x[0] + sum of (x[j] + x[p - j]) cos +- i (x[j] - x[p - j]) sin. */
static void prime(const dc_line *l, int p, dc_number *x)
{
    dc_number plus[DC_DFT_RADIX], minus[DC_DFT_RADIX], y[DC_DFT_RADIX];
    const int half = p / 2;
    y[0] = x[0];
    for (int j = 1; j <= half; j++) {
        plus[j] = sum(l, x[j], x[p - j]);
        minus[j] = difference(l, x[j], x[p - j]);
        y[0] = sum(l, y[0], plus[j]);
    }
    for (int k = 1; k <= half; k++) {
        dc_number even = x[0], odd = {0};
        for (int j = 1; j <= half; j++) {
            const double angle = 2 * acos(-1) * (j * k % p) / p;
            const double c = cos(angle), s = l->sign * sin(angle);
            const dc_number a = {times(l, plus[j].re, c), times(l, plus[j].im, c)};
            const dc_number b = {times(l, minus[j].re, s), times(l, minus[j].im, s)};
            even = sum(l, even, a);
            odd = j == 1 ? b : sum(l, odd, b);
        }
        y[k] = (dc_number){op(l, DC_OP_SUB, even.re, odd.im), op(l, DC_OP_ADD, even.im, odd.re)};
        y[p - k] =
            (dc_number){op(l, DC_OP_ADD, even.re, odd.im), op(l, DC_OP_SUB, even.im, odd.re)};
    }
    for (int k = 0; k < p; k++)
        x[k] = y[k];
}

/* The first factor: 4 before 2, which saves multiplications. */
static int factor_of(int n)
{
    if (n % 4 == 0)
        return n == 8 ? 2 : 4;
    for (int p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static void four(const dc_line *l, dc_number *x)
{
    const dc_number a = sum(l, x[0], x[2]), b = difference(l, x[0], x[2]);
    const dc_number c = sum(l, x[1], x[3]), d = turned(l, difference(l, x[1], x[3]), 1, 4);
    x[0] = sum(l, a, c);
    x[1] = sum(l, b, d);
    x[2] = difference(l, a, c);
    x[3] = difference(l, b, d);
}

/* n = p m: p transforms of length m, their results turned, m transforms of length p. */
static void composite(const dc_line *l, int p, int m, dc_number *x)
{
    dc_number part[DC_DFT_RADIX][DC_DFT_RADIX], across[DC_DFT_RADIX];
    for (int j = 0; j < p; j++) {
        for (int i = 0; i < m; i++)
            part[j][i] = x[j + i * p];
        dc_lower_butterfly(l, m, part[j]);
    }
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < p; j++)
            across[j] = turned(l, part[j][k], j * k, p * m);
        dc_lower_butterfly(l, p, across);
        for (int i = 0; i < p; i++)
            x[k + i * m] = across[i];
    }
}

void dc_lower_butterfly(const dc_line *l, int n, dc_number *x)
{
    const int p = factor_of(n);
    if (n == 4) {
        four(l, x);
    } else if (n == 2) {
        const dc_number a = x[0];
        x[0] = sum(l, a, x[1]);
        x[1] = difference(l, a, x[1]);
    } else if (p < n) {
        composite(l, p, n / p, x);
    } else if (n > 1) {
        prime(l, n, x);
    }
}

dc_number dc_lower_twiddle(const dc_line *l, dc_number x, dc_vx c, dc_vx s)
{
    return product(l, x, c, l->sign > 0 ? s : negative(l, s));
}
