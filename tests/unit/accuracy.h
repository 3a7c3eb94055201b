/*
 * How far functions of tensors are off, in units of the last place: each as a typed function of a script, on a device, beside
 * the C library's of more digits. Of f32 the double is right enough, of f64 the long double.
 *
 *   accuracy_open("cpu");
 *   accuracy_unary(&accuracy_of_one[i], DC_F32, 1)   of every float whose pattern is a multiple of the step
 */
#ifndef DC_TESTS_ACCURACY_H
#define DC_TESTS_ACCURACY_H

#include "core/ir/special.h"
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/near.h"

/* ---- what is right ---- */

#define DIGITS(T, s)                                                                        \
    static T right_sigmoid##s(T x)                                                          \
    {                                                                                       \
        const T e = exp##s(-fabs##s(x));                                                    \
        return x < 0 ? e / (1 + e) : 1 / (1 + e);                                           \
    }                                                                                       \
    static T right_silu##s(T x)                                                             \
    {                                                                                       \
        return x == -INFINITY ? 0 : x * right_sigmoid##s(x);                                \
    }                                                                                       \
    static T right_softplus##s(T x)                                                         \
    {                                                                                       \
        return x != x ? x : (x > 0 ? x : 0) + log1p##s(exp##s(-fabs##s(x)));                \
    }                                                                                       \
    static T right_gelu##s(T x)                                                             \
    {                                                                                       \
        return x == -INFINITY ? 0 : x / 2 * erfc##s(x * (T)-0.707106781186547524400844362L);\
    }                                                                                       \
    /* a sigmoid(2 b), where tanh is near -1 */                                             \
    static T right_gelu_tanh##s(T x)                                                        \
    {                                                                                       \
        const T b = (T)0.797884560802865355879892119869L * (x + (T)0.044715L * x * x * x);  \
        return x == -INFINITY ? 0 : x * right_sigmoid##s(2 * b);                            \
    }                                                                                       \
    static T right_sinc##s(T x)                                                             \
    {                                                                                       \
        const T pi = (T)3.14159265358979323846264338L, a = fabs##s(x), r = fmod##s(a, 2);   \
        const T turn = r <= 0.5L ? r : r <= 1.5L ? 1 - r : r - 2;                           \
        return a == 0 ? 1 : a == INFINITY ? NAN : sin##s(pi * turn) / (pi * a);             \
    }                                                                                       \
    static T right_logit##s(T x)                                                            \
    {                                                                                       \
        return x > 0.25L && x < 0.75L ? 2 * atanh##s(2 * x - 1) : log##s(x) - log1p##s(-x); \
    }                                                                                       \
    static T right_rsqrt##s(T x)                                                            \
    {                                                                                       \
        return 1 / sqrt##s(x);                                                              \
    }                                                                                       \
    static T right_reciprocal##s(T x)                                                       \
    {                                                                                       \
        return 1 / x;                                                                       \
    }                                                                                       \
    static T right_cube##s(T x)                                                             \
    {                                                                                       \
        return x * x * x;                                                                   \
    }                                                                                       \
    static T right_power##s(T x)                                                            \
    {                                                                                       \
        return pow##s(x, (T)1.875L);                                                        \
    }                                                                                       \
    static T right_whole##s(T x)                                                            \
    {                                                                                       \
        return pow##s(x, 33);                                                               \
    }                                                                                       \
    static T right_quarters##s(T x)                                                         \
    {                                                                                       \
        return pow##s(x, (T)1.75L);                                                         \
    }                                                                                       \
    static T right_of_10##s(T x)                                                            \
    {                                                                                       \
        return pow##s(10, x);                                                               \
    }                                                                                       \
    static T right_logaddexp##s(T a, T b)                                                   \
    {                                                                                       \
        return a == b ? a + (T)0.693147180559945309417232121458L                            \
                      : fmax##s(a, b) + log1p##s(exp##s(-fabs##s(a - b)));                  \
    }                                                                                       \
    static T right_logaddexp2##s(T a, T b)                                                  \
    {                                                                                       \
        return a == b ? a + 1                                                               \
                      : fmax##s(a, b) + log1p##s(exp2##s(-fabs##s(a - b))) *                \
                                            (T)1.44269504088896340735992468100189L;         \
    }                                                                                       \
    static T right_xlogy##s(T a, T b)                                                       \
    {                                                                                       \
        return a == 0 && b == b ? 0 : a * log##s(b);                                        \
    }

DIGITS(double, )
DIGITS(long double, l)

static double right_digamma(double x)
{
    return x > 1.5 ? dc_digamma(x) : (double)near_digamma((long double)x);
}

/*
 * ---- terms ----
 *
 * Where a result is a difference, how large they are: units are of these. Negative arguments of lgamma and digamma are
 * reflected.
 */

static double terms_lgamma(double x, double y, dc_dtype t)
{
    DC_UNUSED(y), DC_UNUSED(t);
    return x < 0 ? (double)near_terms(DC_OP_LGAMMA, (long double)x) : 0;
}

static double terms_digamma(double x, double y, dc_dtype t)
{
    DC_UNUSED(y), DC_UNUSED(t);
    return x < 0 ? (double)near_terms(DC_OP_DIGAMMA, (long double)x) : 0;
}

static double terms_sum(double a, double b, dc_dtype t)
{
    DC_UNUSED(t);
    return fmax(fabs(fmax(a, b)), 0.5);
}

/* ---- the functions ---- */

typedef struct accuracy_row {
    const char *name, *lua; /* of x, and of y */
    double (*right)(double);
    long double (*right_l)(long double);
    double (*right2)(double, double);
    long double (*right2_l)(long double, long double);
    double low, high; /* where every other sample is drawn, 0 to 0: of f32 and f64 as in `dense` */
    double limit[2];  /* ulp: of f32, of f64 */
    /* How large the terms are that the result is made of, where units are of them. */
    double (*terms)(double, double, dc_dtype);
} accuracy_row;

/* clang-format off */
#define ONE(name, low, high, of_f32, of_f64) \
    {#name, "x:" #name "()", name, name##l, NULL, NULL, low, high, {of_f32, of_f64}, NULL}
#define OWN(name, lua, low, high, of_f32, of_f64) \
    {#name, lua, right_##name, right_##name##l, NULL, NULL, low, high, {of_f32, of_f64}, NULL}
#define TWO(name, lua, right, low, high, of_f32, of_f64, terms) \
    {name, lua, NULL, NULL, right, right##l, low, high, {of_f32, of_f64}, terms}

static const accuracy_row accuracy_of_one[] = {
    ONE(exp, -1100, 1100, 2, 4),      ONE(exp2, -1100, 1100, 2, 4),   ONE(expm1, -40, 40, 2, 4),
    ONE(log, 0, 4, 2, 4),             ONE(log1p, -1, 4, 2, 4),        ONE(log2, 0, 4, 2, 4),
    ONE(log10, 0, 4, 2, 4),           ONE(cbrt, -4, 4, 2, 4),         ONE(sqrt, 0, 4, 0.5, 0.5),
    ONE(sin, -100, 100, 2, 4),        ONE(cos, -100, 100, 2, 4),      ONE(tan, -100, 100, 2, 4),
    ONE(asin, -1, 1, 2, 4),           ONE(acos, -1, 1, 2, 4),         ONE(atan, -4, 4, 2, 4),
    ONE(sinh, -720, 720, 2, 4),       ONE(cosh, -720, 720, 2, 4),     ONE(tanh, -22, 22, 2, 4),
    ONE(asinh, -4, 4, 2, 4),          ONE(acosh, 1, 4, 2, 4),         ONE(atanh, -1, 1, 2, 4),
    ONE(erf, -6, 6, 2, 4),            ONE(erfc, -6, 28, 2, 4),
    {"erf_inv", "x:erf_inv()", dc_erf_inv, near_erf_inv, NULL, NULL, -1, 1, {2, 4}, NULL},
    {"lgamma", "x:lgamma()", lgamma, lgammal, NULL, NULL, -4, 12, {2, 4}, terms_lgamma},
    {"digamma", "x:digamma()", right_digamma, near_digamma, NULL, NULL, -4, 12, {2, 4.5}, terms_digamma},
    OWN(sigmoid, "x:sigmoid()", -750, 40, 2, 4),
    OWN(silu, "x:silu()", -750, 40, 2, 4),
    OWN(softplus, "x:softplus()", -750, 40, 2, 4),
    OWN(gelu, "x:gelu()", -40, 8, 2, 4),
    OWN(gelu_tanh, "x:gelu { approximate = 'tanh' }", -22, 8, 2, 4),
    OWN(sinc, "x:sinc()", -10, 10, 2, 4),
    OWN(logit, "x:logit()", 0, 1, 2, 4),
    OWN(rsqrt, "x:rsqrt()", 0, 4, 2, 4),
    OWN(reciprocal, "x:reciprocal()", -4, 4, 0.5, 0.5),
    OWN(cube, "x ^ 3", -4, 4, 1.5, 1.5),
    OWN(power, "x ^ 1.875", 0, 4, 1, 1),
    OWN(whole, "x ^ 33", -4, 4, 0.76, 0.76),
    OWN(quarters, "x ^ 1.75", 0, 4, 0.76, 0.76),
    OWN(of_10, "10 ^ x", -320, 310, 1, 1),
};

static const accuracy_row accuracy_of_two[] = {
    TWO("atan2", "x:atan2(y)", atan2, -4, 4, 2, 4, NULL),
    TWO("hypot", "x:hypot(y)", hypot, -4, 4, 2, 4, NULL),
    TWO("pow", "x ^ y", pow, 0, 4, 1, 1, NULL),
    TWO("rem", "x:rem(y)", fmod, -40, 40, 0.5, 0.5, NULL),
    TWO("logaddexp", "x:logaddexp(y)", right_logaddexp, -8, 8, 2, 4, terms_sum),
    TWO("logaddexp2", "x:logaddexp2(y)", right_logaddexp2, -8, 8, 2, 4, terms_sum),
    TWO("xlogy", "x:xlogy(y)", right_xlogy, 0, 8, 2, 4, NULL),
};
/* clang-format on */

/* ---- running ---- */

enum { ACCURACY_CHUNK = 1 << 16 };

typedef struct accuracy {
    lua_State *L;
    dc_rt *rt;
    void *in[2]; /* arrays of a chunk, aligned */
    double worst, at[2];
} accuracy;

static bool accuracy_open(accuracy *a, const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    *a = (accuracy){.L = luaL_newstate()};
    luaL_openlibs(a->L);
    cfg.device = device;
    if (dc_open(&cfg, &a->rt) != DC_OK || dc_attach(a->L, a->rt) != DC_OK)
        return false;
    for (int i = 0; i < 2; i++)
        a->in[i] = aligned_alloc(64, ACCURACY_CHUNK * sizeof(double));
    return true;
}

static void accuracy_close(accuracy *a)
{
    lua_close(a->L);
    for (int i = 0; i < 2; i++)
        free(a->in[i]);
}

/* Leaves the typed function of a chunk on the stack. */
static void accuracy_compile(accuracy *a, const accuracy_row *r, dc_dtype t)
{
    const char *name = dc_dtype_name(t);
    lua_settop(a->L, 0);
    lua_pushfstring(a->L,
                    "return require('deepc').fn('f(x: %s[%d], y: %s[%d])', function(x, y) return "
                    "%s end)",
                    name, ACCURACY_CHUNK, name, ACCURACY_CHUNK, r->lua);
    if (luaL_loadstring(a->L, lua_tostring(a->L, 1)) != LUA_OK ||
        lua_pcall(a->L, 0, 1, 0) != LUA_OK) {
        printf("%s: %s\n", r->name, luaL_tolstring(a->L, -1, NULL));
        exit(1);
    }
}

static inline double accuracy_ulps(dc_dtype t, long double exact, double got, double terms)
{
    const int digits = dc_dtype_fraction(t) + 1, least = t == DC_F64 ? -1074 : -149;
    const double right = t == DC_F64 ? (double)exact : (double)(float)exact;
    int e;
    if (got == right || (isnan(exact) && isnan(got))) /* 0.5 at most */
        return 0;
    if (isinf(right) || isinf(got) || isnan(exact) || isnan(got))
        return INFINITY;
    frexpl(fmaxl(fabsl(exact), (long double)terms), &e);
    return (double)(fabsl(got - exact) / ldexpl(1, e - digits < least ? least : e - digits));
}

/* Calls the function on the arrays, and compares the results. */
static void accuracy_chunk(accuracy *a, const accuracy_row *r, dc_dtype t)
{
    dc_array array = {t, 1, {ACCURACY_CHUNK}, NULL, ACCURACY_CHUNK * dc_dtype_size(t)}, out;
    lua_pushvalue(a->L, -1);
    for (int i = 0; i < 2; i++) {
        array.data = a->in[i];
        dc_push_array(a->L, &array, NULL, NULL);
    }
    if (lua_pcall(a->L, 2, 1, 0) != LUA_OK || dc_to_array(a->L, -1, &out) != DC_OK) {
        printf("%s: %s\n", r->name, luaL_tolstring(a->L, -1, NULL));
        exit(1);
    }
    for (int i = 0; i < ACCURACY_CHUNK; i++) {
        double e;
        if (t == DC_F32) {
            const double x = (double)((float *)a->in[0])[i], y = (double)((float *)a->in[1])[i];
            const double right = r->right != NULL ? r->right(x) : r->right2(x, y);
            e = accuracy_ulps(t, (long double)right, (double)((float *)out.data)[i],
                              r->terms != NULL ? r->terms(x, y, t) : 0);
        } else {
            const double x = ((double *)a->in[0])[i], y = ((double *)a->in[1])[i];
            const long double right = r->right_l != NULL ? r->right_l(x) : r->right2_l(x, y);
            e = accuracy_ulps(t, right, ((double *)out.data)[i],
                              r->terms != NULL ? r->terms(x, y, t) : 0);
        }
        if (e > a->worst) {
            a->worst = e;
            for (int k = 0; k < 2; k++)
                a->at[k] = t == DC_F32 ? (double)((float *)a->in[k])[i] : ((double *)a->in[k])[i];
        }
    }
    lua_pop(a->L, 1);
}

/* The largest error over all floats of f32 whose pattern is first, first + step, ... */
static inline double accuracy_all(accuracy *a, const accuracy_row *r, uint32_t first, uint32_t step)
{
    uint64_t pattern = first;
    accuracy_compile(a, r, DC_F32);
    memset(a->in[1], 0, ACCURACY_CHUNK * sizeof(float));
    a->worst = 0;
    while (pattern <= UINT32_MAX) {
        uint32_t *x = a->in[0];
        for (int i = 0; i < ACCURACY_CHUNK; i++) {
            x[i] = (uint32_t)(pattern <= UINT32_MAX ? pattern : 0);
            pattern += step;
        }
        accuracy_chunk(a, r, DC_F32);
    }
    return a->worst;
}

static inline uint64_t accuracy_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1du;
}

/* Of any pattern, in the row's range, or of all magnitudes below its end. */
static double accuracy_draw(const accuracy_row *r, dc_dtype t, int i, uint64_t *state)
{
    const uint64_t word = accuracy_random(state);
    const double part = ldexp((double)(word >> 11), -53),
                 scale = t == DC_F32 && r->high > 300 ? 8 : 1;
    switch (i % 4) {
    case 0:
        return dc_value_of(t, t == DC_F32 ? word >> 32 : word);
    case 1: {
        const double end = accuracy_random(state) & 1 ? r->high : r->low;
        return end / scale * exp2(-60 * part * part);
    }
    default:
        return (r->low + (r->high - r->low) * part) / scale;
    }
}

/* Of so many chunks of samples. */
static inline double accuracy_samples(accuracy *a, const accuracy_row *r, dc_dtype t, int chunks,
                                      uint64_t seed)
{
    accuracy_compile(a, r, t);
    a->worst = 0;
    for (int c = 0; c < chunks; c++) {
        for (int i = 0; i < ACCURACY_CHUNK; i++)
            for (int k = 0; k < 2; k++) {
                const double v = accuracy_draw(r, t, k == 0 ? i : i / 4, &seed);
                if (t == DC_F32)
                    ((float *)a->in[k])[i] = (float)v;
                else
                    ((double *)a->in[k])[i] = v;
            }
        accuracy_chunk(a, r, t);
    }
    return a->worst;
}

#endif
