/*
 * Powers of core/ir/power.h beside those of long doubles: how far off, exact ones, and what IEEE 754 says of special values.
 * Kernels give the same bits, which unit/test_expand compares.
 */
#include "core/ir/power.h"

#include <math.h>
#include <stdio.h>

#include "tests/t.h"
#include "tests/unit/near.h"

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

/* In 0..1 */
static double fraction(void)
{
    return ldexp((double)(random_bits() >> 11), -53);
}

static double power_of(dc_dtype t, double x, double y)
{
    return t == DC_F64 ? dc_power(x, y) : (double)dc_power_f32((float)x, (float)y);
}

static double short_power_of(dc_dtype t, double x, double y)
{
    return t == DC_F64 ? dc_short_power(x, y) : (double)dc_short_power_f32((float)x, (float)y);
}

static double rounded(dc_dtype t, long double v)
{
    return t == DC_F64 ? (double)v : (double)(float)v;
}

static double ulps(dc_dtype t, long double exact, double got)
{
    const int digits = dc_dtype_fraction(t) + 1, least = t == DC_F64 ? -1074 : -149;
    const double right = rounded(t, exact);
    int e;
    if (isinf(right) || isinf(got) || isnan(got))
        return right == got ? 0 : INFINITY;
    frexpl(exact, &e);
    return (double)(fabsl(got - exact) / ldexpl(1, e - digits < least ? least : e - digits));
}

/* A base, and an exponent such that the power is a float: of any, of those near 1, of tiny ones. */
static void draw(dc_dtype t, int i, double *x, double *y)
{
    const double range = t == DC_F64 ? 1080 : 152, most = t == DC_F64 ? 1000 : 125;
    const double near = t == DC_F64 ? 0x1p-30 : 0x1p-10;
    switch (i % 5) {
    case 0:
        *x = exp2((2 * fraction() - 1) * most);
        break;
    case 1:
        *x = 1 + (fraction() - 0.5) * near;
        break;
    case 2:
        *x = dc_value_of(t, random_bits() >> (t == DC_F64 ? 12 : 41)); /* no normal number */
        break;
    default:
        *x = 0.5 + 1.5 * fraction();
    }
    *x = rounded(t, *x);
    *y = rounded(t, (2 * fraction() - 1) * (i % 5 == 4 ? 4 : range / log2(*x)));
}

static void test_error(dc_dtype t)
{
    double worst = 0, at[2] = {0};
    for (int i = 0; i < 200000; i++) {
        double x, y;
        draw(t, i, &x, &y);
        const double e = isfinite(y) ? ulps(t, powl(x, y), power_of(t, x, y)) : 0;
        if (e > worst) {
            worst = e;
            at[0] = x;
            at[1] = y;
        }
    }
    printf("    %s: %.4f ulp at most, of %a ^ %a\n", dc_dtype_name(t), worst, at[0], at[1]);
    CHECK(worst < near_limit(DC_OP_POW, t == DC_F64));
}

/* Powers that are floats. */
static void test_exact(dc_dtype t)
{
    int wrong = 0, all = 0;
    for (int x = 2; x < 2000; x++)
        for (int y = 1; y < 64; y++) {
            const long double exact = powl(x, y);
            if (ldexpl(1, dc_dtype_fraction(t) + 1) < exact)
                break;
            all++;
            wrong += power_of(t, x, y) != exact || power_of(t, -x, y) != (y % 2 ? -exact : exact);
            wrong += short_power_of(t, x, y) != exact;
            wrong += short_power_of(t, -x, y) != (y % 2 ? -exact : exact);
            wrong += short_power_of(t, ldexp(x, -20), y) != rounded(t, ldexpl(exact, -20 * y));
            wrong += power_of(t, ldexp(x, -20), y) != rounded(t, ldexpl(exact, -20 * y));
            wrong += power_of(t, rounded(t, exact), 1) != exact;
            wrong += y % 2 == 0 && power_of(t, rounded(t, exact), 0.5) != sqrtl(exact);
        }
    for (int e = t == DC_F64 ? -1074 : -149; e < (t == DC_F64 ? 1024 : 128); e++)
        for (int k = 0; k < 2; k++) {
            double (*of)(dc_dtype, double, double) = k == 0 ? power_of : short_power_of;
            wrong += of(t, 2, e) != ldexp(1, e) || of(t, 0.5, -e) != ldexp(1, e);
        }
    CHECK(all > 2000);
    CHECK_EQ(wrong, 0);
}

/* Bases whose power is a float, of each short exponent: nothing but the last step rounds, and what is no normal number twice. */
static void test_short(dc_dtype t)
{
    const double range = t == DC_F64 ? 1080 : 152, most = t == DC_F64 ? 1022 : 126;
    static const int edge[2][4] = {{0, 128, -126, -149}, {0, 1024, -1022, -1074}}; /* of powers */
    double worst = 0, worst_tiny = 0, worst_at[2] = {0};
    int exponents = 0;
    for (int quarters = -520; quarters <= 520; quarters++) {
        const double y = quarters / 4.0;
        if (!dc_power_is_short(y))
            continue;
        exponents++;
        const double reach = fmin(range / fabs(y), most);
        for (int i = 0; i < 2000; i++) {
            const double part = 2 * fraction() - 1, at = edge[t == DC_F64][i / 4 % 4] + part;
            const double log = i % 4 != 3 ? part * reach : fmax(-reach, fmin(reach, at / y));
            const double size = rounded(t, exp2(log));
            const double x = quarters % 4 == 0 && i % 2 ? -size : size;
            const long double exact = powl(x, y);
            const double got = short_power_of(t, x, y), e = ulps(t, exact, got);
            if (fabsl(exact) < ldexpl(1, (int)-most))
                worst_tiny = fmax(worst_tiny, e);
            else if (e > worst) {
                worst = e;
                worst_at[0] = x;
                worst_at[1] = y;
            }
        }
    }
    printf("    %s: %.4f ulp at most, of %a ^ %g; %.4f of tiny ones\n", dc_dtype_name(t), worst,
           worst_at[0], worst_at[1], worst_tiny);
    CHECK_EQ(exponents, 255 + 2 * 9);
    CHECK(worst < 0.501);
    CHECK(worst_tiny < 0.76);
}

static void test_special(dc_dtype t, double (*of)(dc_dtype, double, double))
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1,
                                     -1,
                                     2,
                                     -2,
                                     0.5,
                                     -0.5,
                                     3,
                                     -3,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     0x1p-149,
                                     -0x1p-149,
                                     0x1.fffffep127,
                                     0x1p24,
                                     0x1p23,
                                     8388607,
                                     8388609,
                                     -8388609,
                                     16777215,
                                     16777217,
                                     0x1p52,
                                     0x1p53,
                                     -0x1.fffffffffffffp52,
                                     0x1.fffffffffffffp51,
                                     1.5,
                                     -1.5,
                                     0x1p-126,
                                     127,
                                     128,
                                     -149,
                                     -150,
                                     1023,
                                     1024,
                                     -1074,
                                     -1075,
                                     0x1.000002p0,
                                     0x1.fffffep-1,
                                     0x1p-1074,
                                     0x1.fffffffffffffp1023,
                                     0x1p64,
                                     -0x1p64,
                                     4,
                                     5,
                                     -4,
                                     -5,
                                     10,
                                     -7,
                                     33,
                                     -34,
                                     -127,
                                     -128,
                                     0.25,
                                     -0.25,
                                     2.5,
                                     -2.75};
    int wrong = 0;
    for (size_t i = 0; i < DC_COUNTOF(special); i++)
        for (size_t k = 0; k < DC_COUNTOF(special); k++) {
            const double x = rounded(t, special[i]), y = rounded(t, special[k]);
            const double got = of(t, x, y);
            const long double exact = powl(x, y);
            const bool same = isnan(exact)
                                  ? isnan(got)
                                  : ulps(t, exact, got) < 1 && !signbit(got) == !signbit(exact);
            if (!same && wrong++ < 5)
                printf("    %s: %a ^ %a gives %a, not %La\n", dc_dtype_name(t), x, y, got, exact);
        }
    CHECK_EQ(wrong, 0);
}

int main(void)
{
    for (int k = 0; k < 2; k++) {
        const dc_dtype t = k == 0 ? DC_F32 : DC_F64;
        test_error(t);
        test_exact(t);
        test_special(t, power_of);
        test_special(t, short_power_of);
        test_short(t);
    }
    return t_done();
}
