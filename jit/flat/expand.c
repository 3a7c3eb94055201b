/*
 * Expansions (jit/flat/expand.h): one small function for each F(name) of core/ir/ops.def.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* The dtype of the same width whose comparisons and shifts are unsigned. */
dc_dtype dc_expand_word(dc_dtype t)
{
    switch (dc_bits_width(t)) {
    case 8:
        return DC_U8;
    case 16:
        return DC_U16;
    case 32:
        return DC_U32;
    case 64:
        return DC_U64;
    }
    return t;
}

/* All bits of a float but its sign. */
static dc_fv without_sign(const use *u, dc_fv a)
{
    const dc_dtype un = dc_expand_word(u->t);
    const uint64_t most = UINT64_MAX >> (65 - dc_dtype_bits(u->t));
    return op2(u, DC_K_AND, as(u, a, un), bits(u, un, most));
}

static dc_fv expand_copysign(const use *u)
{
    return with_sign_of(u, u->in[0], u->in[1]);
}

/* Small ones -------------------------------------------------------------------------------- */

static dc_fv expand_stop(const use *u)
{
    return u->in[0];
}

static dc_fv expand_not(const use *u)
{
    return op2(u, DC_K_XOR, u->in[0], bits(u, u->t, u->t == DC_BOOL ? 1 : UINT64_MAX));
}

static dc_fv expand_abs(const use *u)
{
    const dc_fv a = u->in[0];
    if (dc_dtype_is_float(u->t))
        return as(u, without_sign(u, a), u->t);
    if (!dc_dtype_is_signed(u->t))
        return a;
    return pick(u, op2(u, DC_K_LT, a, bits(u, u->t, 0)), op1(u, DC_K_NEG, a), a);
}

/*
 * Adding 2^23 (2^52 in f64) rounds to an integer, then one less where that went up. Not the machine's
 * instruction, which the oldest x86-64 does not have and LLVM would call libm for.
 */
static dc_fv expand_floor(const use *u)
{
    const dc_dtype un = dc_expand_word(u->t);
    const dc_fv a = u->in[0], big = flt(u, ldexp(1, dc_dtype_fraction(u->t)));
    const dc_fv sign_bit = bits(u, un, (uint64_t)1 << (dc_dtype_bits(u->t) - 1));
    const dc_fv pattern = as(u, a, un), size = as(u, without_sign(u, a), u->t);
    const dc_fv near = op2(u, DC_K_SUB, op2(u, DC_K_ADD, size, big), big);
    const dc_fv sign = op2(u, DC_K_AND, pattern, sign_bit);
    const dc_fv r = as(u, op2(u, DC_K_OR, as(u, near, un), sign), u->t);
    const dc_fv lower = op2(u, DC_K_SUB, r, flt(u, 1));
    const dc_fv down = pick(u, op2(u, DC_K_LT, a, r), lower, r);
    return pick(u, op2(u, DC_K_LT, size, big), down, a); /* a where it is an integer or NaN */
}

static dc_fv expand_cast(const use *u)
{
    if (u->to == DC_BOOL && dc_dtype_is_short(u->t)) { /* true for NaN too */
        const dc_fv size = without_sign(u, u->in[0]);
        return op2(u, DC_K_NE, size, bits(u, dc_expand_word(u->t), 0));
    }
    if (u->to == DC_BOOL && u->t != DC_BOOL)
        return op2(u, DC_K_NE, u->in[0], bits(u, u->t, 0));
    dc_fv x = u->in[0];
    if (u->t == u->to)
        return x;
    if (dc_dtype_is_short(u->t))
        x = dc_expand_widen(u, x, u->t);
    if (dc_dtype_is_short(u->to))
        return dc_expand_shorten(u, x, u->to);
    return dc_fb_convert(u->b, x, u->to);
}

/* By way of an integer without a sign, so that renderers know few of them. */
static dc_fv expand_bitcast(const use *u)
{
    return as(u, as(u, u->in[0], dc_expand_word(u->t)), u->to);
}

/* Shifts: the amount counts as unsigned; the width or more gives 0, or the sign. */
static dc_fv shift(const use *u, dc_kop op, bool keeps_sign)
{
    const int w = dc_dtype_bits(u->t);
    const dc_dtype un = dc_expand_word(u->t);
    const dc_fv fits = op2(u, DC_K_LT, as(u, u->in[1], un), bits(u, un, (uint64_t)w));
    const dc_fv most = bits(u, u->t, keeps_sign ? (uint64_t)w - 1 : 0);
    const dc_fv r = op2(u, op, u->in[0], pick(u, fits, u->in[1], most));
    return keeps_sign ? r : pick(u, fits, r, bits(u, u->t, 0));
}

static dc_fv expand_shl(const use *u)
{
    return shift(u, DC_K_SHL, false);
}

static dc_fv expand_shr(const use *u)
{
    return shift(u, DC_K_SHR, dc_dtype_is_signed(u->t));
}

/* Maximum and minimum ----------------------------------------------------------------------- */

/*
 * With a constant that is no NaN one comparison does: x <= c ? c : x is right for a NaN x, and for
 * zeros of both signs unless c would win the tie wrongly; then x < c ? c : x.
 */
static dc_fv extreme_const(const use *u, bool max, dc_fv x, dc_fv c, bool tie_is_c)
{
    const dc_kop test = tie_is_c ? DC_K_LE : DC_K_LT;
    return pick(u, max ? op2(u, test, x, c) : op2(u, test, c, x), c, x);
}

static dc_fv extreme_float(const use *u, bool max)
{
    const dc_dtype un = dc_expand_word(u->t);
    const uint64_t negative_zero = (uint64_t)1 << (dc_dtype_bits(u->t) - 1);
    for (int n = 0; n < 2; n++) {
        uint64_t p;
        if (!dc_fb_is_const(u->b, u->in[n], &p) || isnan(dc_value_of(u->t, p)))
            continue;
        if (dc_value_of(u->t, p) == (max ? -INFINITY : INFINITY))
            return u->in[1 - n];
        const bool tie_is_c = max ? p != negative_zero : p == negative_zero;
        return extreme_const(u, max, u->in[1 - n], u->in[n], tie_is_c);
    }
    const dc_fv a = u->in[0], c = u->in[1];
    if (u->b->ranges)
        return op2(u, max ? DC_K_MAX : DC_K_MIN, a, c);
    const dc_fv beyond = max ? op2(u, DC_K_LT, a, c) : op2(u, DC_K_LT, c, a);
    const dc_fv zeros = op2(u, max ? DC_K_AND : DC_K_OR, as(u, a, un), as(u, c, un));
    dc_fv r = pick(u, beyond, c, a); /* a where a is NaN */
    r = pick(u, op2(u, DC_K_EQ, a, c), as(u, zeros, u->t), r);
    return pick(u, op2(u, DC_K_NE, c, c), c, r);
}

static dc_fv extreme(const use *u, bool max)
{
    const dc_fv a = u->in[0], c = u->in[1];
    if (dc_dtype_is_float(u->t))
        return extreme_float(u, max);
    return pick(u, max ? op2(u, DC_K_LT, a, c) : op2(u, DC_K_LT, c, a), c, a);
}

static dc_fv expand_max(const use *u)
{
    return extreme(u, true);
}

static dc_fv expand_min(const use *u)
{
    return extreme(u, false);
}

/* Division ---------------------------------------------------------------------------------- */

/*
 * The divisor, made 1 where the quotient does not exist (zero) or not fit (smallest / -1); one after
 * the other, for the first is a form that renderers know (jit/render/render_llvm.c).
 */
static dc_fv safe_divisor(const use *u, dc_fv is_zero)
{
    const dc_fv a = u->in[0], c = u->in[1], one = bits(u, u->t, 1);
    const dc_fv d = pick(u, is_zero, one, c);
    if (!dc_dtype_is_signed(u->t))
        return d;
    const dc_fv least = bits(u, u->t, dc_op_identity(DC_OP_MAXR, u->t));
    const dc_fv overflow =
        op2(u, DC_K_AND, op2(u, DC_K_EQ, a, least), op2(u, DC_K_EQ, c, bits(u, u->t, UINT64_MAX)));
    return pick(u, overflow, one, d);
}

static dc_fv expand_div(const use *u)
{
    if (dc_dtype_is_float(u->t))
        return op2(u, DC_K_DIV, u->in[0], u->in[1]);
    const dc_fv is_zero = op2(u, DC_K_EQ, u->in[1], bits(u, u->t, 0));
    const dc_fv q = op2(u, DC_K_DIV, u->in[0], safe_divisor(u, is_zero));
    return pick(u, is_zero, bits(u, u->t, UINT64_MAX), q);
}

/* A finite float's magnitude is mantissa * 2^(exponent - 150), the exponent 1 or more. */
typedef struct parts {
    dc_fv magnitude, mantissa, exponent; /* bits as u32; u32; i32 */
} parts;

static parts take_apart(const use *u, dc_fv x)
{
    parts p;
    p.magnitude = op2(u, DC_K_AND, as(u, x, DC_U32), bits(u, DC_U32, 0x7fffffff));
    const dc_fv field = op2(u, DC_K_SHR, p.magnitude, bits(u, DC_U32, 23));
    const dc_fv fraction = op2(u, DC_K_AND, p.magnitude, bits(u, DC_U32, 0x7fffff));
    const dc_fv normal = op2(u, DC_K_LT, bits(u, DC_U32, 0), field);
    p.mantissa = pick(u, normal, op2(u, DC_K_OR, fraction, bits(u, DC_U32, 0x800000)), fraction);
    p.exponent = as(u, pick(u, normal, field, bits(u, DC_U32, 1)), DC_I32);
    return p;
}

/*
 * (mantissa * 2^shift) mod divisor, all below 2^24, shift in 0..253: long division, as many bits at
 * a time as the index type has room for.
 */
static dc_fv long_division(const use *u, dc_fv mantissa, dc_fv shift_by, dc_fv divisor)
{
    const int room = u->b->f->index_bits - 24;
    const dc_fv most = bits(u, DC_I32, (uint64_t)room);
    const dc_fv d = dc_fb_convert(u->b, divisor, DC_INDEX);
    dc_fv r = op2(u, DC_K_REM, dc_fb_convert(u->b, mantissa, DC_INDEX), d);
    for (int done = 0; done < 253; done += room) {
        const dc_fv step = pick(u, op2(u, DC_K_LT, shift_by, most), shift_by, most);
        const dc_fv moved = op2(u, DC_K_SHL, r, dc_fb_convert(u->b, step, DC_INDEX));
        r = op2(u, DC_K_REM, moved, d);
        shift_by = op2(u, DC_K_SUB, shift_by, step);
    }
    return dc_fb_convert(u->b, r, DC_U32);
}

/* fmod: exact for all operands. */
static dc_fv rem_float(const use *u)
{
    const dc_fv x = u->in[0], y = u->in[1], zero = bits(u, DC_U32, 0);
    const dc_fv infinite = bits(u, DC_U32, 0x7f800000);
    const parts a = take_apart(u, x), c = take_apart(u, y);
    const dc_fv shift_by = op2(u, DC_K_SUB, a.exponent, c.exponent);
    const dc_fv none = bits(u, DC_I32, 0);
    const dc_fv y_zero = op2(u, DC_K_EQ, c.magnitude, zero);
    const dc_fv r =
        long_division(u, a.mantissa, pick(u, op2(u, DC_K_LT, shift_by, none), none, shift_by),
                      pick(u, y_zero, bits(u, DC_U32, 1), c.mantissa));
    const dc_fv magnitude = dc_expand_scale(u, dc_fb_convert(u->b, as(u, r, DC_I32), DC_F32),
                                            op2(u, DC_K_SUB, c.exponent, bits(u, DC_I32, 150)));
    const dc_fv sign = op2(u, DC_K_AND, as(u, x, DC_U32), bits(u, DC_U32, 0x80000000));
    const dc_fv exact = as(u, op2(u, DC_K_OR, as(u, magnitude, DC_U32), sign), DC_F32);
    /* |x| < |y| keeps x, infinite y included; then what has no remainder */
    const dc_fv result = pick(u, op2(u, DC_K_LT, a.magnitude, c.magnitude), x, exact);
    dc_fv none_of = op2(u, DC_K_OR, y_zero, op2(u, DC_K_LE, infinite, a.magnitude));
    none_of = op2(u, DC_K_OR, none_of, op2(u, DC_K_LT, infinite, c.magnitude));
    return pick(u, none_of, bits(u, DC_F32, 0x7fc00000), result);
}

static dc_fv expand_rem(const use *u)
{
    if (u->t == DC_F64)
        return dc_expand_rem_f64(u);
    if (dc_dtype_is_float(u->t))
        return rem_float(u);
    const dc_fv is_zero = op2(u, DC_K_EQ, u->in[1], bits(u, u->t, 0));
    const dc_fv r = op2(u, DC_K_REM, u->in[0], safe_divisor(u, is_zero));
    return pick(u, is_zero, u->in[0], r);
}

/* Of exp and log --------------------------------------------------------------------------- */

/* Adding 2^23 (2^52 in f64) rounds to an integer, ties to even. */
dc_fv dc_expand_round(const use *u)
{
    const int width = dc_dtype_bits(u->t);
    const dc_dtype un = dc_expand_word(u->t);
    const dc_fv a = u->in[0], pattern = as(u, a, un);
    const dc_fv sign_bit = bits(u, un, (uint64_t)1 << (width - 1));
    const dc_fv sign = op2(u, DC_K_AND, pattern, sign_bit);
    const dc_fv size = as(u, op2(u, DC_K_XOR, pattern, sign), u->t);
    const dc_fv big = flt(u, width == 64 ? 4503599627370496 : 8388608);
    const dc_fv near = op2(u, DC_K_SUB, op2(u, DC_K_ADD, size, big), big);
    const dc_fv r = as(u, op2(u, DC_K_OR, as(u, near, un), sign), u->t);
    return pick(u, op2(u, DC_K_LT, size, big), r, a); /* a where it is an integer or NaN */
}

static dc_fv exp_of(const use *u, dc_fv x)
{
    use inner = *u;
    inner.in[0] = x;
    return dc_expand_exp(&inner);
}

static dc_fv log_of(const use *u, dc_fv x)
{
    use inner = *u;
    inner.in[0] = x;
    return dc_expand_log(&inner);
}

static dc_fv expand_expm1(const use *u)
{
    const dc_fv x = u->in[0], one = flt(u, 1), e = exp_of(u, x);
    const dc_fv far =
        op2(u, DC_K_OR, op2(u, DC_K_LT, x, flt(u, -40)), op2(u, DC_K_LT, flt(u, 40), x));
    const dc_fv near = dc_expand_expm1_near(u);
    const dc_fv r = pick(u, far, op2(u, DC_K_SUB, e, one), near);
    return pick(u, op2(u, DC_K_EQ, x, flt(u, 0)), x, r);
}

/* log(w) for a rounded w = 1 + x, and what the rounding left, by w. */
static dc_fv expand_log1p(const use *u)
{
    const dc_fv x = u->in[0], one = flt(u, 1), w = op2(u, DC_K_ADD, x, one), l = log_of(u, w);
    const dc_fv small = op2(u, DC_K_SUB, x, op2(u, DC_K_SUB, w, one));
    const dc_fv large = op2(u, DC_K_SUB, one, op2(u, DC_K_SUB, w, x));
    const dc_fv left = pick(u, op2(u, DC_K_LT, x, one), small, large);
    const dc_fv r = op2(u, DC_K_ADD, l, op2(u, DC_K_DIV, left, w));
    const dc_fv inside =
        op2(u, DC_K_AND, op2(u, DC_K_LT, flt(u, 0), w), op2(u, DC_K_LT, w, flt(u, INFINITY)));
    return pick(u, op2(u, DC_K_EQ, w, one), x, pick(u, inside, r, l));
}

/* Threefry ---------------------------------------------------------------------------------- */

static dc_fv rotate(const use *u, dc_fv x, int by)
{
    const dc_fv up = op2(u, DC_K_SHL, x, bits(u, DC_U32, (uint64_t)by));
    const dc_fv down = op2(u, DC_K_SHR, x, bits(u, DC_U32, (uint64_t)(32 - by)));
    return op2(u, DC_K_OR, up, down);
}

/* dc_threefry of core/ir/op.c, step by step. */
static dc_fv expand_threefry(const use *u)
{
    static const int rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const dc_fv parity = bits(u, DC_U32, 0x1bd11bda);
    const dc_fv last = op2(u, DC_K_XOR, parity, op2(u, DC_K_XOR, u->in[0], u->in[1]));
    const dc_fv key[3] = {u->in[0], u->in[1], last};
    dc_fv x0 = op2(u, DC_K_ADD, u->in[2], key[0]);
    dc_fv x1 = op2(u, DC_K_ADD, u->in[3], key[1]);
    for (int round = 1; round <= 20; round++) {
        x0 = op2(u, DC_K_ADD, x0, x1);
        x1 = op2(u, DC_K_XOR, rotate(u, x1, rotation[(round - 1) % 8]), x0);
        if (round % 4 == 0) {
            const int n = round / 4;
            const dc_fv count = bits(u, DC_U32, (uint64_t)n);
            x0 = op2(u, DC_K_ADD, x0, key[n % 3]);
            x1 = op2(u, DC_K_ADD, x1, op2(u, DC_K_ADD, key[(n + 1) % 3], count));
        }
    }
    return x0;
}

static dc_fv expand_half(const use *u)
{
    return dc_expand_pattern(u, u->in[0]);
}

/* dc_dp4a of core/ir/op.c. */
static dc_fv expand_dp4a(const use *u)
{
    if (u->b->dp4a)
        return dc_fb_op3(u->b, DC_K_DP4A, u->in[0], u->in[1], u->in[2]);
    const dc_fv low = bits(u, DC_U32, 0xff), end = bits(u, DC_I32, 24);
    dc_fv sum = u->in[2];
    for (int byte = 0; byte < 4; byte++) {
        const dc_fv at = bits(u, DC_U32, 8 * (uint64_t)byte),
                    up = bits(u, DC_U32, 24 - 8 * (uint64_t)byte);
        const dc_fv a = op2(u, DC_K_AND, op2(u, DC_K_SHR, u->in[0], at), low);
        const dc_fv b = op2(u, DC_K_SHR, as(u, op2(u, DC_K_SHL, u->in[1], up), DC_I32), end);
        sum = op2(u, DC_K_ADD, sum, op2(u, DC_K_MUL, a, as(u, b, DC_U32)));
    }
    return sum;
}

/* The table --------------------------------------------------------------------------------- */

typedef struct row {
    dc_kop op; /* one instruction, or */
    dc_fv (*expand)(const use *u);
} row;

/* clang-format off */
#define K(instruction) {DC_K_##instruction, NULL}
#define F(name)        {DC_K_CONST, expand_##name}
#define expand_exp     dc_expand_exp
#define expand_log     dc_expand_log
#define expand_erf     dc_expand_erf
#define expand_sin     dc_expand_sin
#define expand_cos     dc_expand_cos
#define expand_round   dc_expand_round
#define expand_tan     dc_expand_tan
#define expand_asin    dc_expand_asin
#define expand_acos    dc_expand_acos
#define expand_atan    dc_expand_atan
#define expand_atan2   dc_expand_atan2
#define expand_pow     dc_expand_pow
#define expand_power   dc_expand_power
#define expand_sinh    dc_expand_sinh
#define expand_cosh    dc_expand_cosh
#define expand_asinh   dc_expand_asinh
#define expand_acosh   dc_expand_acosh
#define expand_atanh   dc_expand_atanh
#define expand_exp2    dc_expand_exp2
#define expand_log2    dc_expand_log2
#define expand_log10   dc_expand_log10
#define expand_cbrt    dc_expand_cbrt
#define expand_erfc    dc_expand_erfc
#define expand_erf_inv dc_expand_erf_inv
#define expand_sigmoid dc_expand_sigmoid
#define expand_silu    dc_expand_silu
#define expand_gelu    dc_expand_gelu
#define expand_gelu_tanh dc_expand_gelu_tanh
#define expand_lgamma  dc_expand_lgamma
#define expand_digamma dc_expand_digamma
static const row rows[] = {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = expand,
#include "core/ir/ops.def"
};
/* clang-format on */

dc_fv dc_expand(dc_fbuild *b, dc_op op, dc_dtype to, const dc_fv *in)
{
    const int n = dc_op_row_of(op)->n;
    use u = {.b = b, .to = to};
    for (int i = 0; i < n; i++)
        u.in[i] = in[i];
    u.t = (dc_dtype)dc_fb_at(b, in[n - 1])->type;
    u.lanes = dc_fb_at(b, in[n - 1])->lanes;
    if (rows[op].expand != NULL)
        return rows[op].expand(&u);
    if (n == 1)
        return op1(&u, rows[op].op, in[0]);
    if (n == 2)
        return op2(&u, rows[op].op, in[0], in[1]);
    return dc_fb_op3(b, rows[op].op, in[0], in[1], in[2]);
}
