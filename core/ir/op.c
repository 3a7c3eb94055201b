/*
 * The op table as rows, and scalar meanings generated from its evalf and evali columns.
 *
 * Patterns that enter and leave are canonical: zero-extended for unsigned and float, sign-extended
 * for signed, 0 or 1 for bool. Floats are computed in double and rounded once.
 */
#include "core/ir/op.h"

#include "core/ir/power.h"
#include "core/ir/special.h"

#include <math.h>
#include <string.h>

/* clang-format off: it breaks a #define of a row */
static const dc_op_row rows[] = {
#define COMM   DC_OPF_COMM
#define ASSOC  DC_OPF_ASSOC
#define IDEM   DC_OPF_IDEM
#define CMP    DC_OPF_CMP
#define COSTLY DC_OPF_COSTLY
#define NEAR   DC_OPF_NEAR
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = {lua, DC_CLASS_EW, n, flags, 0, lo, hi},
#define RED(id, lua, combine, type, names, grad, lo, hi) \
    [DC_OP_##id] = {lua, DC_CLASS_RED, 1, 0, DC_OP_##combine, lo, hi},
#define MOV(id, lua, names, grad)               [DC_OP_##id] = {lua, DC_CLASS_MOV, 1, 0, 0, -4, 4},
#define SRC(id, lua)                            [DC_OP_##id] = {lua, DC_CLASS_SRC, 0, 0, 0, 0, 0},
#define CON(id, lua, type, names, grad, lo, hi) [DC_OP_##id] = {lua, DC_CLASS_CON, 2, 0, 0, lo, hi},
#define IDX(id, lua, n, combine, type, grad, lo, hi) \
    [DC_OP_##id] = {lua, DC_CLASS_IDX, n, 0, combine, lo, hi},
#define SAME(id, lua, n, grad) [DC_OP_##id] = {lua, DC_CLASS_SAME, n, 0, 0, -4, 4},
#define PART(id, lua, n)       [DC_OP_##id] = {lua, DC_CLASS_PART, n, 0, 0, -4, 4},
#define CTL(id, lua, n)        [DC_OP_##id] = {lua, DC_CLASS_CTL, n, 0, 0, 0, 0},
#define HST(id, lua, n, rule, grad, lo, hi) [DC_OP_##id] = {lua, DC_CLASS_HST, n, 0, 0, lo, hi},
#define COM(id, lua, grad, lo, hi) [DC_OP_##id] = {lua, DC_CLASS_COM, 1, 0, 0, lo, hi},
#define MSG(id, lua, n, grad)  [DC_OP_##id] = {lua, DC_CLASS_COM, n, 0, 0, -4, 4},
#define FFT(id, lua, grad)                      [DC_OP_##id] = {lua, DC_CLASS_FFT, 0, 0, 0, -2, 2},
#include "core/ir/ops.def"
#undef COMM
#undef ASSOC
#undef IDEM
#undef CMP
#undef COSTLY
#undef NEAR
};
/* clang-format on */

const dc_op_row *dc_op_row_of(dc_op op)
{
    return &rows[op];
}

const char *dc_op_class_name(dc_op op)
{
    switch ((dc_op_class)rows[op].cls) {
    case DC_CLASS_EW:
        return "element-wise";
    case DC_CLASS_RED:
        return "reduction";
    case DC_CLASS_MOV:
        return "movement";
    case DC_CLASS_SRC:
        return "source";
    case DC_CLASS_CON:
        return "contraction";
    case DC_CLASS_IDX:
        return "indexing";
    case DC_CLASS_HST:
        return "on the host";
    case DC_CLASS_COM:
        return "collective";
    case DC_CLASS_FFT:
        return "transform";
    case DC_CLASS_SAME:
        return "identity";
    case DC_CLASS_PART:
        return "part";
    case DC_CLASS_CTL:
        return "control flow";
    }
    return "";
}

bool dc_op_find(const char *name, size_t n, dc_op *out)
{
    for (int op = 0; op < DC_OP__COUNT; op++)
        if (strlen(rows[op].name) == n && memcmp(rows[op].name, name, n) == 0) {
            *out = (dc_op)op;
            return true;
        }
    return false;
}

dc_op dc_op_reduction(dc_op combine)
{
    for (int op = 0; op < DC_OP__COUNT; op++)
        if (rows[op].cls == DC_CLASS_RED && rows[op].combine == combine)
            return (dc_op)op;
    DC_BUG("no reduction combines by %s", rows[combine].name);
}

uint64_t dc_op_identity(dc_op reduction, dc_dtype t)
{
    const bool flt = dc_dtype_is_float(t);
    const uint64_t ones = dc_bits_canonical(t, UINT64_MAX);
    const uint64_t top =
        dc_bits_canonical(t, (uint64_t)1 << (dc_bits_width(t) - 1)); /* INT_MIN if signed */
    if (reduction == DC_OP_SUM)
        return 0;
    if (reduction == DC_OP_PROD)
        return dc_bits_of(t, 1);
    const uint64_t most = dc_dtype_is_finite(t) ? dc_bits_infinity(t) - 1 : dc_bits_of(t, INFINITY);
    if (reduction == DC_OP_MAXR)
        return flt ? most | top : dc_dtype_is_signed(t) ? top : 0;
    if (reduction == DC_OP_MINR)
        return flt ? most : dc_dtype_is_signed(t) ? ~top : ones;
    DC_BUG("%d is not a reduction", (int)reduction);
}

/* IEEE 754-2019 maximum and minimum: NaN wins, -0 is less than +0. */
static double dc_flt_max(double a, double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    if (a == b)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

static double dc_flt_min(double a, double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static bool dc_int_lt(uint64_t a, uint64_t b, bool sg)
{
    return sg ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t dc_int_magnitude(uint64_t a, bool sg)
{
    return sg && (int64_t)a < 0 ? 0 - a : a;
}

/* Truncates; x / 0 is all ones. On magnitudes, so that the smallest / -1 wraps. */
static uint64_t dc_int_div(uint64_t a, uint64_t b, int w, bool sg)
{
    DC_UNUSED(w); /* canonical patterns: the caller cuts the result */
    if (b == 0)
        return UINT64_MAX;
    const uint64_t q = dc_int_magnitude(a, sg) / dc_int_magnitude(b, sg);
    return sg && ((int64_t)(a ^ b) < 0) ? 0 - q : q;
}

/* The sign of the dividend; x % 0 is x. */
static uint64_t dc_int_rem(uint64_t a, uint64_t b, int w, bool sg)
{
    DC_UNUSED(w);
    if (b == 0)
        return a;
    const uint64_t r = dc_int_magnitude(a, sg) % dc_int_magnitude(b, sg);
    return sg && (int64_t)a < 0 ? 0 - r : r;
}

/* By squaring. */
static uint64_t dc_int_pow(uint64_t a, uint64_t b, bool sg)
{
    const bool odd = b & 1;
    uint64_t r = 1;
    if (sg && (int64_t)b < 0)
        return a == 0 ? UINT64_MAX : a == 1 ? 1 : a == UINT64_MAX ? (odd ? a : 1) : 0;
    for (; b != 0; b >>= 1, a *= a)
        if (b & 1)
            r *= a;
    return r;
}

/* The amount counts as unsigned, so a negative one is larger than the width. */
static uint64_t dc_int_shl(uint64_t a, uint64_t b, int w)
{
    return b >= (uint64_t)w ? 0 : a << b;
}

static uint64_t dc_int_shr(uint64_t a, uint64_t b, int w, bool sg)
{
    if (sg)
        return (uint64_t)((int64_t)a >> (b >= (uint64_t)w ? w - 1 : (int)b));
    return b >= (uint64_t)w ? 0 : a >> b;
}

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t dc_dp4a(uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t sum = (uint32_t)c;
    for (int byte = 0; byte < 32; byte += 8)
        sum += (uint32_t)((int32_t)(uint8_t)(a >> byte) * (int8_t)(uint8_t)(b >> byte));
    return sum;
}

/*
 * Threefry-2x32, 20 rounds, its first word. Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
 * easy as 1, 2, 3. SC 2011.
 */
#define MIX(r)              \
    do {                    \
        x0 += x1;           \
        x1 = rotate(x1, r) ^ x0; \
    } while (0)
#define FOUR(r0, r1, r2, r3, ka, kb, n) \
    do {                                \
        MIX(r0);                        \
        MIX(r1);                        \
        MIX(r2);                        \
        MIX(r3);                        \
        x0 += ka;                       \
        x1 += kb + n;                   \
    } while (0)

uint32_t dc_threefry(uint64_t k0, uint64_t k1, uint64_t c0, uint64_t c1)
{
    const uint32_t a = (uint32_t)k0, b = (uint32_t)k1, c = 0x1bd11bdau ^ a ^ b;
    uint32_t x0 = (uint32_t)c0 + a, x1 = (uint32_t)c1 + b;
    FOUR(13, 15, 26, 6, b, c, 1);
    FOUR(17, 29, 16, 24, c, a, 2);
    FOUR(13, 15, 26, 6, a, b, 3);
    FOUR(17, 29, 16, 24, b, c, 4);
    FOUR(13, 15, 26, 6, c, a, 5);
    return x0;
}

/* clang-format off */
#define NONE 0 /* the dtype rule keeps the case away */

double dc_op_evalf(dc_op op, double a, double b, double c)
{
    switch ((int)op) {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    case DC_OP_##id:                                                                  \
        return (double)(evalf);
#include "core/ir/ops.def"
    }
    DC_BUG("%d is not element-wise", (int)op);
}

static void loop_bits(dc_op op, int64_t count, const uint64_t *const *in, int w, bool sg,
                      uint64_t *out)
{
    const int nin = rows[op].n;
    const uint64_t *x = in[0], *y = in[nin > 1 ? 1 : 0], *z = in[nin > 2 ? 2 : 0],
                   *u = in[nin > 3 ? 3 : 0];
    switch ((int)op) {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    case DC_OP_##id:                                                                  \
        for (int64_t i = 0; i < count; i++) {                                         \
            const uint64_t a = x[i], b = y[i], c = z[i], d = u[i];                    \
            DC_UNUSED(a), DC_UNUSED(b), DC_UNUSED(c), DC_UNUSED(d);                   \
            out[i] = (uint64_t)(evali);                                               \
        }                                                                             \
        return;
#include "core/ir/ops.def"
    }
    DC_BUG("%d is not element-wise", (int)op);
}
/* clang-format on */

void dc_op_eval_many(dc_op op, dc_dtype t, dc_dtype rt, int64_t count, const uint64_t *const *in,
                     uint64_t *out)
{
    const int unused = 64 - dc_bits_width(rt);
    loop_bits(op, count, in, dc_bits_width(t), dc_dtype_is_signed(t), out);
    if (op == DC_OP_WHERE || op == DC_OP_STOP) /* these move patterns as they are */
        return;
    if (dc_dtype_is_signed(rt))
        for (int64_t i = 0; i < count; i++)
            out[i] = (uint64_t)((int64_t)(out[i] << unused) >> unused);
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = out[i] << unused >> unused;
}

uint64_t dc_op_eval(dc_op op, dc_dtype t, dc_dtype rt, const uint64_t *in)
{
    if (op == DC_OP_CAST)
        return dc_bits_cast(t, rt, in[0]);
    const int n = rows[op].n;
    if (op == DC_OP_WHERE || op == DC_OP_STOP || op == DC_OP_BITCAST || !dc_dtype_is_float(t)) {
        const uint64_t *at[4] = {in, n > 1 ? in + 1 : NULL, n > 2 ? in + 2 : NULL,
                                 n > 3 ? in + 3 : NULL};
        uint64_t out;
        dc_op_eval_many(op, t, rt, 1, at, &out);
        return out;
    }
    const double a = dc_value_of(t, in[0]);
    const double b = n > 1 ? dc_value_of(t, in[1]) : 0;
    const double c = n > 2 ? dc_value_of(t, in[2]) : 0;
    if (op == DC_OP_POW && t != DC_F64)
        return dc_bits_of(rt, (double)dc_power_f32((float)a, (float)b));
    if (op == DC_OP_POWER && t != DC_F64)
        return dc_bits_of(rt, (double)dc_short_power_f32((float)a, (float)b));
    return dc_bits_of(rt, dc_op_evalf(op, a, b, c));
}
