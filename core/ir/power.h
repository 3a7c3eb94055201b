/*
 * The numbers that a power of f32 or f64 is made of; its steps are core/ir/power_steps.def. Polynomials, the highest power
 * first, are Chebyshev fits (scripts/minimax).
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
    double least;     /* normal number */
    double most;      /* |y| that matters: x^y is 0, 1 or infinite from there on */
    int reach;        /* products of sizes from 2^-reach to 2^reach have errors that are floats */
    double high, low; /* 2^z is infinite from `high` on, 0 up to `low` */
    double log_scale[2], log_scale_whole; /* 2 / (3 ln 2) in two parts; rounded */
    double offset[2];                     /* log2 1.5 in two parts, the first of few digits */
    double exp_scale[2], exp_scale_whole; /* ln 2 alike */
    int log_terms, exp_terms;
    double log_coef[6];  /* 3 (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2, s up to 0.102 */
    double exp_coef[11]; /* (exp(w) - 1 - w) / w^2, |w| up to ln 2 / 2 */
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
    .high = 129,
    .low = -151,
    .log_scale = {0x1.ec8p-1, -0x1.ec478bf80516cp-14},
    .log_scale_whole = 0x1.ec709dc3a03fdp-1,
    .offset = {0x1.2b80000000000p-1, 0x1.a39fbd6879fa0p-20},
    .exp_scale = {0x1.62ep-1, 0x1.0bfbe8e7bcd5ep-15},
    .exp_scale_whole = 0x1.62e42fefa39efp-1,
    .log_terms = 3,
    .exp_terms = 6,
    .log_coef = {0.337549515846, 0.428555247277, 0.600000009179},
    .exp_coef = {0.000198909908247, 0.00139336499963, 0.00833331092548, 0.0416664649253,
                 0.166666666816, 0.500000001347},
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
    .high = 1025,
    .low = -1076,
    .log_scale = {0x1.ec709ep-1, -0x1.e2fe0145b01f5p-28},
    .log_scale_whole = 0x1.ec709dc3a03fdp-1,
    .offset = {0x1.2b80380000000p-1, -0x1.c6042978605ffp-24},
    .exp_scale = {0x1.62e43p-1, -0x1.05c610ca86c39p-29},
    .exp_scale_whole = 0x1.62e42fefa39efp-1,
    .log_terms = 6,
    .exp_terms = 11,
    .log_coef = {0.20549708663040315847, 0.23070576277166759083, 0.27272760947838374228,
                 0.33333333252670620023, 0.42857142857213468351, 0.59999999999999989989},
    .exp_coef = {2.0914686968086877233e-9, 2.5105217004720745164e-8, 2.7557273643110295328e-7,
                 2.755725540020642443e-6, 0.000024801587325547741216, 0.00019841269874820625271,
                 0.0013888888888883748305, 0.0083333333333261351258, 0.041666666666666669755,
                 0.16666666666666670991, 0.5},
};

float dc_power_f32(float x, float y);
double dc_power(double x, double y); /* of f64 */

/*
 * Exponents of which the power is a product of few factors, a fourth root or a square root among them: whole numbers up to
 * 10, quarters below 3, of both signs.
 */
static inline bool dc_power_is_short(double y)
{
    const double size = y < 0 ? -y : y;
    const int quarters = size <= 10 ? (int)(4 * size) : 0;
    return quarters > 0 && quarters == 4 * size && (quarters % 4 == 0 || quarters < 12);
}

/* The same power within 0.51 ulp for those, 0.76 where it is no normal number, by the steps of power_steps.def; for others what is above. */
float dc_short_power_f32(float x, float y);
double dc_short_power(double x, double y);

#endif
