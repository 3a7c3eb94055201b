/*
 * The numbers that a power of f32 or f64 is made of; its steps are core/ir/power_steps.def. Polynomials, the highest power
 * first, are minimax polynomials of f32, Chebyshev fits of f64 (scripts/minimax).
 */
#ifndef DC_CORE_IR_POWER_H
#define DC_CORE_IR_POWER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_power_kind {
    int fraction;     /* bits */
    uint64_t bias;    /* of exponents */
    uint64_t sign;    /* its bit */
    uint64_t least_m; /* the bits of sqrt(3) / 2 */
    uint64_t
        half; /* half of the last place of a number of so few digits that the product of two is exact */
    double least; /* normal number */
    double most;  /* |y| that matters: x^y is 0, 1 or infinite from there on */
    int reach;    /* products of sizes from 2^-reach to 2^reach have errors that are floats */
    double range; /* 2^range is infinite, 2^-range 0, 2^(range / 2) a normal number */
    double log_scale[2]; /* 2 / (3 ln 2) in two parts */
    double offset[2];    /* log2 1.5 in two parts, the first of few digits */
    double ln2;
    int log_terms, exp_terms;
    double log_coef[6];  /* 3 (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2, s up to 0.102 */
    double exp_coef[11]; /* (2^r - 1 - r ln 2) / r^2, |r| up to 1/2 */
} dc_power_kind;

static const dc_power_kind dc_power_of_f32 = {
    .fraction = 23,
    .bias = 127,
    .sign = 0x80000000,
    .least_m = 0x3f5db3d7,
    .half = 1 << 11,
    .least = 0x1p-126,
    .most = 0x1p40,
    .reach = 100,
    .range = 252,
    .log_scale = {0x1.ec709ep-1, -0x1.e2fe0145b01f5p-28},
    .offset = {0x1.2b80000000000p-1, 0x1.a39fbd6879fa0p-20},
    .ln2 = 0x1.62e42fefa39efp-1,
    .log_terms = 2,
    .exp_terms = 5,
    .log_coef = {0.433929355201, 0.599979662286},
    .exp_coef = {0.0001532115767, 0.00133901637439, 0.009618526315, 0.0555036224876,
                 0.240226475495},
};

static const dc_power_kind dc_power_of_f64 = {
    .fraction = 52,
    .bias = 1023,
    .sign = 0x8000000000000000,
    .least_m = 0x3febb67ae8584caa,
    .half = 1 << 26,
    .least = 0x1p-1022,
    .most = 0x1p80,
    .reach = 900,
    .range = 2000,
    .log_scale = {0x1.ec709dc3a03fdp-1, 0x1.d27f05548af0cp-55},
    .offset = {0x1.2b80380000000p-1, -0x1.c6042978605ffp-24},
    .ln2 = 0x1.62e42fefa39efp-1,
    .log_terms = 6,
    .exp_terms = 11,
    .log_coef = {0.20549708663040315847, 0.23070576277166759083, 0.27272760947838374228,
                 0.33333333252670620023, 0.42857142857213468351, 0.59999999999999989989},
    .exp_coef = {2.5725082444272935614e-11, 4.4549609754607059351e-10, 7.0548999554389263411e-9,
                 1.0178062443959398566e-7, 1.3215486802905462979e-6, 0.000015252733829839213219,
                 0.00015403530393375912417, 0.0013333558146416933468, 0.0096181291076284778742,
                 0.055504108664821594342, 0.24022650695910071233},
};

/* log2 of a number > 0 in two parts, as a power of it has it. */
typedef struct dc_power_number {
    double high, low;
} dc_power_number;
void dc_power_log2(dc_power_number *of, double x, bool wide);

/* What x^n of a whole number n other than 0 needs (power_steps.def): bounds of |x|, and by what it is multiplied. */
typedef struct dc_power_whole {
    int n;
    double most, least;    /* all from there on have the same power */
    double edge;           /* what is beyond has a small power, and is multiplied */
    double scale, back[2]; /* by this one; the power by those, one of which may be 1 */
} dc_power_whole;
dc_power_whole dc_power_whole_of(const dc_power_kind *k, int n);

float dc_power_f32(float x, float y);
double dc_power(double x, double y); /* of f64 */

/*
 * Exponents of which the power is a product of few factors, a fourth root or a square root among them: whole numbers of 8
 * bits but 0, and quarters below 3, of both signs.
 */
static inline bool dc_power_is_short(double y)
{
    if (!(y >= -128 && y <= 127))
        return false;
    const int quarters = (int)(4 * y);
    return quarters == 4 * y &&
           (quarters % 4 == 0 ? quarters != 0 : quarters > -12 && quarters < 12);
}

/* The same power within 0.51 ulp for those, 0.76 where it is no normal number, by the steps of power_steps.def; for others what is above. */
float dc_short_power_f32(float x, float y);
double dc_short_power(double x, double y);
void dc_short_powers(int64_t n, const double *x, const double *y, bool wide,
                     double *out); /* wide: of f64 */

#endif
