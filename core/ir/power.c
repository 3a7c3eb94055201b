/*
 * Powers of numbers: the steps of core/ir/power_steps.def in C, which is compiled without contraction.
 */
#include "core/ir/power.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

dc_power_whole dc_power_whole_of(const dc_power_kind *k, int n)
{
    const int size = n < 0 ? -n : n, bias = (int)k->bias;
    const int by = size < bias ? (bias - 1) / size : 1, back = by * size;
    const double infinite = exp2((bias + 2.0) / size), edge = exp2(-(double)k->reach / size);
    const double none = exp2(-(bias + k->fraction + 2.0) / size);
    dc_power_whole w = {.n = n, .most = infinite, .least = none, .edge = edge};
    w.scale = ldexp(1, by);
    w.back[0] = ldexp(1, back < bias ? -back : -back / 2);
    w.back[1] = back < bias ? 1 : ldexp(1, back / 2 - back); /* 2^-back is no normal number */
    if (n < 0) {
        w.most = 1 / none;
        w.least = 1 / infinite;
        w.edge = 1 / edge;
        w.scale = ldexp(1, -by);
    }
    return w;
}

#define CTX
#define PASS
#define TEST           bool
#define ADD(a, b)      ((a) + (b))
#define SUB(a, b)      ((a) - (b))
#define MUL(a, b)      ((a) * (b))
#define DIV(a, b)      ((a) / (b))
#define LT(a, b)       ((a) < (b))
#define LE(a, b)       ((a) <= (b))
#define EQ(a, b)       ((a) == (b))
#define BOTH(a, b)     ((a) && (b))
#define EITHER(a, b)   ((a) || (b))
#define DIFFER(a, b)   ((a) != (b))
#define LOST(a, b, p)  (void)0
#define REST(a, b, c)  (void)0
#define SUM(a, b, c)   (void)0
#define SCALED(p, n)   (void)(n)
#define PICK(c, a, b)  ((c) ? (a) : (b))
#define TIMES(c, a, b) ((c) ? (a) * (b) : (a))
#define NUM(v)         ((FLT)(v))
#define WORD(v)        ((INT)(v))
#define IADD(a, b)     ((a) + (b))
#define ISUB(a, b)     ((a) - (b))
#define IAND(a, b)     ((a) & (b))
#define IOR(a, b)      ((a) | (b))
#define ISHL(a, b)     ((a) << (b))

static inline uint32_t bits_of_f32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint64_t bits_of_f64(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline double f64_of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

#define FLT              float
#define INT              uint32_t
#define POWER_NAME(part) part##_f32
#define BITS             bits_of_f32
#define FROM_BITS        f32_of_bits
#define TO_FLT(i)        ((float)(int32_t)(i))
#define ISHR(a, b)       ((uint32_t)((int32_t)(a) >> (b)))
#define SQRT(a)          sqrtf(a)
#include "core/ir/power_steps.def"
#undef FLT
#undef INT
#undef POWER_NAME
#undef BITS
#undef FROM_BITS
#undef TO_FLT
#undef ISHR
#undef SQRT

#define FLT              double
#define INT              uint64_t
#define POWER_NAME(part) part##_f64
#define BITS             bits_of_f64
#define FROM_BITS        f64_of_bits
#define TO_FLT(i)        ((double)(int64_t)(i))
#define ISHR(a, b)       ((uint64_t)((int64_t)(a) >> (b)))
#define SQRT(a)          sqrt(a)
#include "core/ir/power_steps.def"

void dc_power_log2(dc_power_number *of, double x, bool wide)
{
    if (wide) {
        log2_f64(&dc_power_of_f64, x, &of->high, &of->low);
        return;
    }
    float high, low;
    log2_f32(&dc_power_of_f32, (float)x, &high, &low);
    *of = (dc_power_number){(double)high, (double)low};
}

float dc_power_f32(float x, float y)
{
    return power_f32(&dc_power_of_f32, x, y);
}

double dc_power(double x, double y)
{
    return power_f64(&dc_power_of_f64, x, y);
}

float dc_short_power_f32(float x, float y)
{
    return dc_power_is_short(y) ? short_power_f32(&dc_power_of_f32, x, y) : dc_power_f32(x, y);
}

double dc_short_power(double x, double y)
{
    return dc_power_is_short(y) ? short_power_f64(&dc_power_of_f64, x, y) : dc_power(x, y);
}

void dc_short_powers(int64_t n, const double *x, const double *y, bool wide, double *out)
{
    const dc_power_kind *k = wide ? &dc_power_of_f64 : &dc_power_of_f32;
    dc_power_whole w = {0};
    for (int64_t i = 0; i < n; i++) {
        if (!dc_power_is_short(y[i]) || y[i] != floor(y[i])) {
            out[i] = wide ? dc_short_power(x[i], y[i])
                          : (double)dc_short_power_f32((float)x[i], (float)y[i]);
            continue;
        }
        if (w.n != y[i]) /* mostly all have one exponent */
            w = dc_power_whole_of(k, (int)y[i]);
        out[i] = wide ? whole_power_f64(k, x[i], &w) : (double)whole_power_f32(k, (float)x[i], &w);
    }
}
