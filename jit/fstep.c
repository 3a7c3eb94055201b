/*
 * What the instructions of the flat form do to values, all lanes one after the other. Must agree
 * with jit/render_llvm.c bit for bit, but for contraction: here every row is rounded, and FMA is
 * rounded once unless the kernel is strict.
 *
 * Two sets of integer functions: `u` for types whose patterns are extended by zeros (bool, u8, u32,
 * the index type), `s` for i32, whose are extended by the sign.
 */
#include "jit/finterp_impl.h"

#include <math.h>

#define EACH for (int n = 0; n < s->lanes; n++)

typedef bool step_run(fi *m, const fi_step *s, uint64_t *v);

/* name##_u and name##_s: expr of a and b, both patterns. */
#define INTEGER(name, expr)                                               \
    static bool name##_u(fi *m, const fi_step *s, uint64_t *v)            \
    {                                                                     \
        DC_UNUSED(m);                                                     \
        EACH                                                              \
        {                                                                 \
            const uint64_t a = v[s->in[0] + n], b = v[s->in[1] + n];      \
            v[s->out + n] = (expr)&s->mask;                               \
        }                                                                 \
        return true;                                                      \
    }                                                                     \
    static bool name##_s(fi *m, const fi_step *s, uint64_t *v)            \
    {                                                                     \
        DC_UNUSED(m);                                                     \
        EACH                                                              \
        {                                                                 \
            const uint64_t a = v[s->in[0] + n], b = v[s->in[1] + n];      \
            v[s->out + n] = (uint64_t)(int64_t)(int32_t)(uint32_t)(expr); \
        }                                                                 \
        return true;                                                      \
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
INTEGER(shl, b < 32 || s->mask >> 32 != 0 ? a << (b & 63) : 0)
PLAIN(shr_u, uint64_t, SAME_BITS, b < 64 ? a >> b : 0)
PLAIN(shr_s, int64_t, SIGNED, (uint64_t)(a >> (b & 31)))
PLAIN(lt_u, uint64_t, SAME_BITS, a < b)
PLAIN(le_u, uint64_t, SAME_BITS, a <= b)
PLAIN(eq_u, uint64_t, SAME_BITS, a == b)
PLAIN(ne_u, uint64_t, SAME_BITS, a != b)
PLAIN(lt_s, int64_t, SIGNED, a < b)
PLAIN(le_s, int64_t, SIGNED, a <= b)
PLAIN(add_f, float, fi_float, dc_f32_bits(a + b))
PLAIN(sub_f, float, fi_float, dc_f32_bits(a - b))
PLAIN(mul_f, float, fi_float, dc_f32_bits(a *b))
PLAIN(div_f, float, fi_float, dc_f32_bits(a / b))
PLAIN(lt_f, float, fi_float, a < b)
PLAIN(le_f, float, fi_float, a <= b)
PLAIN(eq_f, float, fi_float, a == b)
PLAIN(ne_f, float, fi_float, a != b)

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
        if (a == INT32_MIN && b == -1)
            return dc_fi_fail(m, s, "the quotient of integers does not fit");
        v[s->out + n] = (uint64_t)(s->op == DC_K_DIV ? a / b : a % b);
    }
    return true;
}

/* One and three operands -------------------------------------------------------------------- */

static bool neg_f(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = v[s->in[0] + n] ^ 0x80000000u;
    return true;
}

static bool sqrt_f(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = dc_f32_bits(sqrtf(fi_float(v[s->in[0] + n])));
    return true;
}

static bool fma_once(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = dc_f32_bits(
        fmaf(fi_float(v[s->in[0] + n]), fi_float(v[s->in[1] + n]), fi_float(v[s->in[2] + n])));
    return true;
}

static bool fma_twice(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH
    {
        const float product = fi_float(v[s->in[0] + n]) * fi_float(v[s->in[1] + n]);
        v[s->out + n] = dc_f32_bits(product);
        v[s->out + n] = dc_f32_bits(fi_float(v[s->out + n]) + fi_float(v[s->in[2] + n]));
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
    if (s->type == DC_I32)
        EACH v[s->out + n] = (uint64_t)(int64_t)(int32_t)(uint32_t)v[s->in[0] + n];
    else
        EACH v[s->out + n] = v[s->in[0] + n] & s->mask;
    return true;
}

static bool to_float(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    if (s->from == DC_I32)
        EACH v[s->out + n] = dc_f32_bits((float)(int64_t)v[s->in[0] + n]);
    else
        EACH v[s->out + n] = dc_f32_bits((float)v[s->in[0] + n]);
    return true;
}

/* Truncates and saturates, NaN gives 0. */
static uint64_t integer_of(const fi_step *s, float x)
{
    if (s->type == DC_I32)
        return isnan(x)             ? 0
               : x >= 2147483648.0f ? (uint64_t)INT32_MAX
               : x < -2147483648.0f ? (uint64_t)(int64_t)INT32_MIN
                                    : (uint64_t)(int64_t)x;
    if (!(x > 0))
        return 0;
    return x >= 18446744073709551616.0f || (uint64_t)x > s->mask ? s->mask : (uint64_t)x;
}

static bool from_float(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    EACH v[s->out + n] = integer_of(s, fi_float(v[s->in[0] + n]));
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

/* Choice ------------------------------------------------------------------------------------ */

typedef struct row {
    step_run *flt, *sgn, *uns;
} row;

static const row rows[DC_K__COUNT] = {
    [DC_K_ADD] = {add_f, add_s, add_u},
    [DC_K_SUB] = {sub_f, sub_s, sub_u},
    [DC_K_MUL] = {mul_f, mul_s, mul_u},
    [DC_K_DIV] = {div_f, div_rem_s, div_rem_u},
    [DC_K_REM] = {NULL, div_rem_s, div_rem_u},
    [DC_K_NEG] = {neg_f, NULL, NULL},
    [DC_K_SQRT] = {sqrt_f, NULL, NULL},
    [DC_K_FMA] = {fma_once, NULL, NULL},
    [DC_K_AND] = {NULL, and_s, and_u},
    [DC_K_OR] = {NULL, or_s, or_u},
    [DC_K_XOR] = {NULL, xor_s, xor_u},
    [DC_K_SHL] = {NULL, shl_s, shl_u},
    [DC_K_SHR] = {NULL, shr_s, shr_u},
    [DC_K_LT] = {lt_f, lt_s, lt_u},
    [DC_K_LE] = {le_f, le_s, le_u},
    [DC_K_EQ] = {eq_f, eq_u, eq_u},
    [DC_K_NE] = {ne_f, ne_u, ne_u},
    [DC_K_SELECT] = {pick, pick, pick},
    [DC_K_SPLAT] = {splat, splat, splat},
    [DC_K_ANY] = {any, any, any},
};

static step_run *conversion(const fi_step *s)
{
    if (s->op == DC_K_BITCAST || (s->from != DC_F32 && s->type != DC_F32))
        return recast;
    return s->from == s->type ? copy : s->from == DC_F32 ? from_float : to_float;
}

bool (*dc_fi_value_step(const fi *m, const fi_step *s))(fi *m, const fi_step *s, uint64_t *v)
{
    if (s->op == DC_K_CONVERT || s->op == DC_K_BITCAST)
        return conversion(s);
    if (s->op == DC_K_FMA && m->f->strict)
        return fma_twice;
    const row *r = &rows[s->op];
    return s->from == DC_F32 ? r->flt : s->from == DC_I32 ? r->sgn : r->uns;
}
