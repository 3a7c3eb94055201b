/*
 * What the instructions of the flat form do to values, all lanes one after the other. Must agree
 * with jit/render/render_llvm.c bit for bit, but for contraction: here every row is rounded, and FMA is
 * rounded once unless the kernel is strict.
 *
 * Two sets of integer functions: `u` for types whose patterns are extended by zeros (bool, unsigned
 * integers, the index type), `s` for those that are extended by the sign. Two of floats: `f` for f32,
 * `d` for f64.
 */
#include "jit/sim/flat_interp_impl.h"

#include <inttypes.h>
#include <math.h>

#define EACH for (int n = 0; n < s->lanes; n++)

typedef bool step_run(fi *m, const fi_step *s, uint64_t *v);

/* Cut to the width of the result, extended by its sign. */
static inline uint64_t extended(const fi_step *s, uint64_t x)
{
    const uint64_t top = (s->mask >> 1) + 1;
    return ((x & s->mask) ^ top) - top;
}

static inline double fi_double(uint64_t bits)
{
    return dc_value_of(DC_F64, bits);
}

static inline uint64_t double_bits(double v)
{
    return dc_bits_of(DC_F64, v);
}

/* name##_u and name##_s: expr of a and b, both patterns. */
#define INTEGER(name, expr)                                          \
    static bool name##_u(fi *m, const fi_step *s, uint64_t *v)       \
    {                                                                \
        DC_UNUSED(m);                                                \
        EACH                                                         \
        {                                                            \
            const uint64_t a = v[s->in[0] + n], b = v[s->in[1] + n]; \
            v[s->out + n] = (expr)&s->mask;                          \
        }                                                            \
        return true;                                                 \
    }                                                                \
    static bool name##_s(fi *m, const fi_step *s, uint64_t *v)       \
    {                                                                \
        DC_UNUSED(m);                                                \
        EACH                                                         \
        {                                                            \
            const uint64_t a = v[s->in[0] + n], b = v[s->in[1] + n]; \
            v[s->out + n] = extended(s, expr);                       \
        }                                                            \
        return true;                                                 \
    }

/* name: expr of a and b of the given type, which gives the pattern. */
#define PLAIN(name, type, read, expr)                                        \
    static bool name(fi *m, const fi_step *s, uint64_t *v)                   \
    {                                                                        \
        DC_UNUSED(m);                                                        \
        EACH                                                                 \
        {                                                                    \
            const type a = read(v[s->in[0] + n]), b = read(v[s->in[1] + n]); \
            v[s->out + n] = (expr);                                          \
        }                                                                    \
        return true;                                                         \
    }

#define SAME_BITS(x) (x)
#define SIGNED(x)    ((int64_t)(x))

INTEGER(add, a + b)
INTEGER(sub, a - b)
INTEGER(mul, a *b)
INTEGER(and, a &b)
INTEGER(or, a | b)
INTEGER(xor, a ^ b)
INTEGER(shl, b < 64 ? a << b : 0)
PLAIN(shr_u, uint64_t, SAME_BITS, b < 64 ? a >> b : 0)
PLAIN(shr_s, int64_t, SIGNED, (uint64_t)(a >> (b & 63)))
PLAIN(lt_u, uint64_t, SAME_BITS, a < b)
PLAIN(le_u, uint64_t, SAME_BITS, a <= b)
PLAIN(eq_u, uint64_t, SAME_BITS, a == b)
PLAIN(ne_u, uint64_t, SAME_BITS, a != b)
PLAIN(lt_s, int64_t, SIGNED, a < b)
PLAIN(le_s, int64_t, SIGNED, a <= b)

/* Of floats: of f32, and of f64. */
#define FLOATS(name, of_f32, of_f64, expr)         \
    PLAIN(name##_f, float, fi_float, of_f32(expr)) \
    PLAIN(name##_d, double, fi_double, of_f64(expr))

FLOATS(add, dc_f32_bits, double_bits, a + b)
FLOATS(sub, dc_f32_bits, double_bits, a - b)
FLOATS(mul, dc_f32_bits, double_bits, a *b)
FLOATS(div, dc_f32_bits, double_bits, a / b)
/* Past 400 it is infinite or 0 anyway. */
static float scaled(float a, float b)
{
    return isnan(b) ? b : ldexpf(a, (int)fmaxf(fminf(b, 400), -400));
}

PLAIN(scale_f, float, fi_float, dc_f32_bits(scaled(a, b)))
FLOATS(max, dc_f32_bits, double_bits, dc_op_evalf(DC_OP_MAX, a, b, 0))
FLOATS(min, dc_f32_bits, double_bits, dc_op_evalf(DC_OP_MIN, a, b, 0))
FLOATS(lt, SAME_BITS, SAME_BITS, a < b)
FLOATS(le, SAME_BITS, SAME_BITS, a <= b)
FLOATS(eq, SAME_BITS, SAME_BITS, a == b)
FLOATS(ne, SAME_BITS, SAME_BITS, a != b)

/* Division ---------------------------------------------------------------------------------- */

static bool div_rem_u(fi *m, const fi_step *s, uint64_t *v)
{
    EACH
    {
        const uint64_t a = v[s->in[0] + n], b = v[s->in[1] + n];
        if (b == 0)
            return dc_fi_fail(m, s, "an integer is divided by 0");
        v[s->out + n] = s->op == DC_K_DIV ? a / b : a % b;
    }
    return true;
}

static bool div_rem_s(fi *m, const fi_step *s, uint64_t *v)
{
    EACH
    {
        const int64_t a = (int64_t)v[s->in[0] + n], b = (int64_t)v[s->in[1] + n];
        if (b == 0)
            return dc_fi_fail(m, s, "an integer is divided by 0");
        if (b == -1 && a == (int64_t) ~(s->mask >> 1))
            return dc_fi_fail(m, s, "the quotient of integers does not fit");
        v[s->out + n] = (uint64_t)(s->op == DC_K_DIV ? a / b : a % b);
    }
    return true;
}

/* One and three operands -------------------------------------------------------------------- */

static bool neg(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = v[s->in[0] + n] ^ ((s->mask >> 1) + 1);
    return true;
}

static bool sqrt_f(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = dc_f32_bits(sqrtf(fi_float(v[s->in[0] + n])));
    return true;
}

static bool sqrt_d(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = double_bits(sqrt(fi_double(v[s->in[0] + n])));
    return true;
}

static bool fma_f(fi *m, const fi_step *s, uint64_t *v)
{
    EACH
    {
        const float a = fi_float(v[s->in[0] + n]), b = fi_float(v[s->in[1] + n]);
        const float c = fi_float(v[s->in[2] + n]), product = a * b;
        v[s->out + n] = dc_f32_bits(m->f->strict ? product + c : fmaf(a, b, c));
    }
    return true;
}

static bool fma_d(fi *m, const fi_step *s, uint64_t *v)
{
    EACH
    {
        const double a = fi_double(v[s->in[0] + n]), b = fi_double(v[s->in[1] + n]);
        const double c = fi_double(v[s->in[2] + n]), product = a * b;
        v[s->out + n] = double_bits(m->f->strict ? product + c : fma(a, b, c));
    }
    return true;
}

static bool dp4a(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH
    {
        const uint64_t in[] = {v[s->in[0] + n], v[s->in[1] + n], v[s->in[2] + n]};
        v[s->out + n] = dc_op_eval(DC_OP_DP4A, DC_U32, DC_U32, in);
    }
    return true;
}

static bool pick(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = v[s->in[v[s->in[0] + n] != 0 ? 1 : 2] + n];
    return true;
}

static bool splat(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = v[s->in[0]];
    return true;
}

/* Conversion -------------------------------------------------------------------------------- */

/* Of an integer, or of a pattern to another type of its width. */
static bool recast(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    if (dc_ftype_is_signed(s->type))
        EACH v[s->out + n] = extended(s, v[s->in[0] + n]);
    else
        EACH v[s->out + n] = v[s->in[0] + n] & s->mask;
    return true;
}

/* From or to a float; the index type as the integer that it is. */
static bool convert(fi *m, const fi_step *s, uint64_t *v)
{
    const dc_dtype index = m->f->index_bits == 32 ? DC_U32 : DC_U64;
    const dc_dtype from = s->from == DC_INDEX ? index : (dc_dtype)s->from;
    const dc_dtype to = s->type == DC_INDEX ? index : (dc_dtype)s->type;
    EACH v[s->out + n] = dc_bits_cast(from, to, v[s->in[0] + n]);
    return true;
}

/* From 1 on true: what a conversion to an integer of one bit is. */
static bool float_to_bool(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = dc_value_of((dc_dtype)s->from, v[s->in[0] + n]) >= 1;
    return true;
}

static bool copy(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = v[s->in[0] + n];
    return true;
}

/* `imm` are the lanes of the operand. */
static bool any(fi *m, const fi_step *s, uint64_t *v)
{
    uint64_t found = 0;
    DC_UNUSED(m);
    for (uint64_t n = 0; n < s->imm; n++)
        found |= v[s->in[0] + n];
    v[s->out] = found;
    return true;
}

static bool zip_from(const fi_step *s, uint64_t *v, int first)
{
    EACH v[s->out + n] = v[s->in[n & 1] + first + n / 2];
    return true;
}

static bool zip_low(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    return zip_from(s, v, 0);
}

static bool zip_high(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    return zip_from(s, v, s->lanes / 2);
}

/* Choice ------------------------------------------------------------------------------------ */

typedef struct row {
    step_run *f32, *f64, *sgn, *uns;
} row;

static const row rows[DC_K__COUNT] = {
    [DC_K_ADD] = {add_f, add_d, add_s, add_u},
    [DC_K_SUB] = {sub_f, sub_d, sub_s, sub_u},
    [DC_K_MUL] = {mul_f, mul_d, mul_s, mul_u},
    [DC_K_MUL_ALONE] = {mul_f, mul_d, NULL, NULL},
    [DC_K_DIV] = {div_f, div_d, div_rem_s, div_rem_u},
    [DC_K_REM] = {NULL, NULL, div_rem_s, div_rem_u},
    [DC_K_NEG] = {neg, neg, NULL, NULL},
    [DC_K_SQRT] = {sqrt_f, sqrt_d, NULL, NULL},
    [DC_K_FMA] = {fma_f, fma_d, NULL, NULL},
    [DC_K_SCALE] = {scale_f, NULL, NULL, NULL},
    [DC_K_DP4A] = {NULL, NULL, NULL, dp4a},
    [DC_K_MIN] = {min_f, min_d, NULL, NULL},
    [DC_K_MAX] = {max_f, max_d, NULL, NULL},
    [DC_K_AND] = {NULL, NULL, and_s, and_u},
    [DC_K_OR] = {NULL, NULL, or_s, or_u},
    [DC_K_XOR] = {NULL, NULL, xor_s, xor_u},
    [DC_K_SHL] = {NULL, NULL, shl_s, shl_u},
    [DC_K_SHR] = {NULL, NULL, shr_s, shr_u},
    [DC_K_LT] = {lt_f, lt_d, lt_s, lt_u},
    [DC_K_LE] = {le_f, le_d, le_s, le_u},
    [DC_K_EQ] = {eq_f, eq_d, eq_u, eq_u},
    [DC_K_NE] = {ne_f, ne_d, ne_u, ne_u},
};

static bool cell(fi *m, const fi_step *s, uint64_t *v)
{
    const dc_ftable *t = &m->f->table.at[s->imm >> 32];
    const uint64_t at = v[s->in[0]];
    if (at >= t->rows)
        return dc_fi_fail(m, s, "table %" PRIu64 " has no row %" PRIu64, s->imm >> 32, at);
    v[s->out] = t->cell[at * t->columns + (uint32_t)s->imm];
    return true;
}

static step_run *conversion(const fi_step *s)
{
    const bool from = dc_ftype_is_float(s->from), to = dc_ftype_is_float(s->type);
    if (s->from == s->type)
        return copy;
    if (s->op == DC_K_BITCAST || (!from && !to))
        return recast;
    return s->type == DC_BOOL ? float_to_bool : convert;
}

bool (*dc_fi_value_step(const fi *m, const fi_step *s))(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    switch ((int)s->op) {
    case DC_K_CONVERT:
    case DC_K_BITCAST:
        return conversion(s);
    case DC_K_SELECT:
        return pick;
    case DC_K_SPLAT:
        return splat;
    case DC_K_ANY:
        return any;
    case DC_K_CELL:
        return cell;
    case DC_K_ZIP_LOW:
        return zip_low;
    case DC_K_ZIP_HIGH:
        return zip_high;
    }
    const row *r = &rows[s->op];
    if (dc_ftype_is_float(s->from))
        return s->from == DC_F32 ? r->f32 : s->from == DC_F64 ? r->f64 : NULL;
    return dc_ftype_is_signed(s->from) ? r->sgn : r->uns;
}
