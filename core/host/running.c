/*
 * Running sums, products, maxima and minima (core/ir/running.h).
 *
 * Each sum or product waits for the one before it, so several rows go side by side; where elements of the axis do not lie
 * next to each other, columns do. Sums of f32 are kept in f64 and rounded where they are stored; no order but that of the
 * elements, so running sums of numbers that are not negative never fall.
 */
#include "core/ir/running.h"

#include "core/base/bits.h"
#include "core/host/host_impl.h"

#include <math.h>

enum {
    LANES = 8,    /* sequences side by side */
    COLUMNS = 256 /* of one piece of work */
};

#define EACH(k) _Pragma("GCC unroll 8") for (int k = 0; k < LANES; k++) /* in registers */

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a)) /* a NaN stays */
#define MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

/* Rows of elements T side by side, accumulated in A, which begins with `first`. */
#define DEFINE_ROWS(name, T, A, OP, first)                                                     \
    static void name##_lanes(const dc_look *look, const T *x, T *out, int64_t n, int64_t step, \
                             int64_t apart)                                                    \
    {                                                                                          \
        A a[LANES];                                                                            \
        EACH(k) a[k] = first;                                                                  \
        DC_LOOK_PIECES (look, at, end, n)                                                      \
            for (int64_t i = at; i < end; i++)                                                 \
                EACH(k)                                                                        \
                {                                                                              \
                    a[k] = OP(a[k], (A)x[k * apart + i * step]);                               \
                    out[k * apart + i * step] = (T)a[k];                                       \
                }                                                                              \
    }                                                                                          \
    static void name##_one(const dc_look *look, const T *x, T *out, int64_t n, int64_t step)   \
    {                                                                                          \
        A acc = first;                                                                         \
        DC_LOOK_PIECES (look, at, end, n)                                                      \
            for (int64_t i = at; i < end; i++) {                                               \
                acc = OP(acc, (A)x[i * step]);                                                 \
                out[i * step] = (T)acc;                                                        \
            }                                                                                  \
    }                                                                                          \
    static void name##_rows(const dc_look *look, const T *x, T *out, int64_t rows, int64_t n,  \
                            int64_t step)                                                      \
    {                                                                                          \
        const int64_t from = step < 0 ? n - 1 : 0;                                             \
        int64_t r = 0;                                                                         \
        for (; r + LANES <= rows && !dc_look_ends(look); r += LANES)                           \
            name##_lanes(look, x + r * n + from, out + r * n + from, n, step, n);              \
        for (; r < rows && !dc_look_ends(look); r++)                                           \
            name##_one(look, x + r * n + from, out + r * n + from, n, step);                   \
    }

/* The largest or least so far: predicted, it does not wait for the one before. A NaN stays. */
#define DEFINE_EXTREME(name, T, AT_MOST, first)                                               \
    static void name##_rows(const dc_look *look, const T *x, T *out, int64_t rows, int64_t n, \
                            int64_t step)                                                     \
    {                                                                                         \
        for (int64_t r = 0; r < rows; r++) {                                                  \
            T a = first;                                                                      \
            int64_t at = r * n + (step < 0 ? n - 1 : 0);                                      \
            DC_LOOK_PIECES (look, i, end, n) {                                                \
                int64_t k = i;                                                                \
                while (k < end && a == a) {                                                   \
                    for (; k < end && x[at] AT_MOST a; k++, at += step)                       \
                        out[at] = a;                                                          \
                    if (k < end) {                                                            \
                        a = out[at] = x[at];                                                  \
                        k++, at += step;                                                      \
                    }                                                                         \
                }                                                                             \
                for (; k < end; k++, at += step)                                              \
                    out[at] = a;                                                              \
            }                                                                                 \
        }                                                                                     \
    }

/* Rows, or where q elements lie between those of a sequence, `count` of these columns. */
#define DEFINE_RUN(name, T, A, OP, first)                                                       \
    static void name##_stretch(A *restrict acc, const T *x, T *out, int64_t begin, int64_t end, \
                               int64_t step, int64_t count)                                     \
    {                                                                                           \
        for (int64_t i = begin; i < end; i++) {                                                 \
            const int64_t at = i * step;                                                        \
            for (int64_t k = 0; k < count; k++) {                                               \
                acc[k] = OP(acc[k], (A)x[at + k]);                                              \
                out[at + k] = (T)acc[k];                                                        \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    static void name##_columns(const dc_look *look, const T *x, T *out, int64_t n, int64_t q,   \
                               int64_t count, bool reverse)                                     \
    {                                                                                           \
        A acc[COLUMNS];                                                                         \
        const int64_t first_at = reverse ? (n - 1) * q : 0;                                     \
        for (int64_t k = 0; k < count; k++)                                                     \
            acc[k] = first;                                                                     \
        for (int64_t i = 0; i < n && !dc_look_ends(look); i += COLUMNS)                         \
            name##_stretch(acc, x + first_at, out + first_at, i, dc_min_i64(i + COLUMNS, n),    \
                           reverse ? -q : q, count);                                            \
    }                                                                                           \
    static void name(const dc_look *look, const void *x, void *out, int64_t rows, int64_t n,    \
                     int64_t q, int64_t count, bool reverse)                                    \
    {                                                                                           \
        if (q == 1)                                                                             \
            name##_rows(look, x, out, rows, n, reverse ? -1 : 1);                               \
        else                                                                                    \
            name##_columns(look, x, out, n, q, count, reverse);                                 \
    }

/* Sums and products of integers wrap, whatever their sign; S accumulates sums, P products. */
#define DEFINE_ALL(t, T, W, S, P, zero, least, most) \
    DEFINE_ROWS(t##_sum, W, S, ADD, zero)            \
    DEFINE_RUN(t##_sum, W, S, ADD, zero)             \
    DEFINE_ROWS(t##_prod, W, P, MUL, 1)              \
    DEFINE_RUN(t##_prod, W, P, MUL, 1)               \
    DEFINE_EXTREME(t##_max, T, <=, least)            \
    DEFINE_RUN(t##_max, T, T, MAX, least)            \
    DEFINE_EXTREME(t##_min, T, >=, most)             \
    DEFINE_RUN(t##_min, T, T, MIN, most)

DEFINE_ALL(f32, float, float, double, float, -0.0, -INFINITY, INFINITY)
DEFINE_ALL(f64, double, double, double, double, -0.0, (double)-INFINITY, (double)INFINITY)
DEFINE_ALL(i8, int8_t, uint8_t, uint32_t, uint32_t, 0, INT8_MIN, INT8_MAX)
DEFINE_ALL(i16, int16_t, uint16_t, uint32_t, uint32_t, 0, INT16_MIN, INT16_MAX)
DEFINE_ALL(i32, int32_t, uint32_t, uint32_t, uint32_t, 0, INT32_MIN, INT32_MAX)
DEFINE_ALL(i64, int64_t, uint64_t, uint64_t, uint64_t, 0, INT64_MIN, INT64_MAX)
DEFINE_ALL(u8, uint8_t, uint8_t, uint32_t, uint32_t, 0, 0, UINT8_MAX)
DEFINE_ALL(u16, uint16_t, uint16_t, uint32_t, uint32_t, 0, 0, UINT16_MAX)
DEFINE_ALL(u32, uint32_t, uint32_t, uint32_t, uint32_t, 0, 0, UINT32_MAX)
DEFINE_ALL(u64, uint64_t, uint64_t, uint64_t, uint64_t, 0, 0, UINT64_MAX)

/* ---- short floats -------------------------------------------------------------------------------- */

static double combine(dc_run_kind kind, double a, double b)
{
    switch (kind) {
    case DC_RUN_SUM:
        return ADD(a, b);
    case DC_RUN_PROD:
        return MUL(a, b);
    case DC_RUN_MAX:
        return MAX(a, b);
    case DC_RUN_MIN:
    case DC_RUN__COUNT:
        break;
    }
    return MIN(a, b);
}

static void short_column(const dc_look *look, dc_dtype t, dc_run_kind kind, const char *x,
                         char *out, int64_t n, int64_t step)
{
    static const double first[] = {-0.0, 1, (double)-INFINITY, (double)INFINITY};
    double acc = first[kind];
    DC_LOOK_PIECES (look, at, end, n)
        for (int64_t i = at; i < end; i++) {
            acc = combine(kind, acc, dc_value_of(t, dc_bits_load(t, x + i * step)));
            dc_bits_store(t, out + i * step, dc_bits_of(t, acc));
        }
}

static void shorts(const dc_look *look, dc_dtype t, dc_run_kind kind, const void *x, void *out,
                   int64_t rows, int64_t n, int64_t q, int64_t count, bool reverse)
{
    const int64_t from = reverse ? (n - 1) * q : 0, size = (int64_t)dc_dtype_size(t);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = (r * n * q + from + k) * size;
            short_column(look, t, kind, (const char *)x + at, (char *)out + at, n,
                         (reverse ? -q : q) * size);
        }
}

/* ---- the operation ------------------------------------------------------------------------------- */

typedef void run_fn(const dc_look *look, const void *x, void *out, int64_t rows, int64_t n,
                    int64_t q, int64_t count, bool reverse);

#define OF(t)                               \
    {                                       \
        t##_sum, t##_prod, t##_max, t##_min \
    }
static run_fn *const run_of[DC_DTYPE__COUNT][DC_RUN__COUNT] = {
    [DC_BOOL] = OF(u8), [DC_U8] = OF(u8),   [DC_I8] = OF(i8),   [DC_U16] = OF(u16),
    [DC_I16] = OF(i16), [DC_U32] = OF(u32), [DC_I32] = OF(i32), [DC_U64] = OF(u64),
    [DC_I64] = OF(i64), [DC_F32] = OF(f32), [DC_F64] = OF(f64),
};

/* Elements along the axis, and of all that are behind it. */
static int64_t length(const dc_host_call *c)
{
    return dc_host_dim(&c->in[0], 1 + (int)c->attr[2]);
}

static int64_t behind(const dc_host_call *c)
{
    int64_t q = 1;
    for (int k = 1; k <= c->attr[2]; k++)
        q *= dc_host_dim(&c->in[0], k);
    return q;
}

static int64_t pieces(const dc_host_call *c)
{
    return (behind(c) + COLUMNS - 1) / COLUMNS;
}

static void run_range(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                      int64_t begin, int64_t end)
{
    const dc_dtype t = (dc_dtype)c->in[0].dtype;
    const dc_run_kind kind = (dc_run_kind)c->attr[0];
    const int64_t n = length(c), q = behind(c), m = pieces(c);
    run_fn *run = run_of[t][kind];
    for (int64_t r = begin, rows; r < end; r += rows) {
        const int64_t first = r % m * COLUMNS;
        const size_t at = (size_t)(r / m * n * q + first) * dc_dtype_size(t);
        const int64_t count = dc_min_i64(COLUMNS, q - first);
        rows = q == 1 ? end - r : 1;
        if (run != NULL)
            run(look, (const char *)in + at, (char *)out + at, rows, n, q, count, c->attr[1] != 0);
        else
            shorts(look, t, kind, (const char *)in + at, (char *)out + at, rows, n, q, count,
                   c->attr[1] != 0);
    }
}

static size_t scratch(const dc_host_call *c)
{
    DC_UNUSED(c);
    return 0;
}

static double cost(const dc_host_call *c)
{
    return (double)length(c) * (double)dc_min_i64(behind(c), COLUMNS);
}

const dc_host_row dc_host_running = {
    .scratch = scratch, .cost = cost, .pieces = pieces, .run_range = run_range};
