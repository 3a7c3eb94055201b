/*
 * Expansions of sine, cosine and tangent, of f32 and f64: within 2 ulp for arguments of every size.
 *
 * The argument's mantissa is multiplied by those bits of 1 / (2 pi) that do not make whole turns
 * (M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983); what is left, at most an
 * eighth of a turn, goes through a polynomial, after Cephes (f32) and fdlibm (f64). Both floats take
 * the same steps, in words of their width.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* The bits of 1 / (2 pi) behind the point: for the largest double, 3 words from bit 971 on. */
static const uint64_t turn_bits[] = {
    0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158,
    0x6dc91b8e909374b8, 0x01924bba82746487, 0x3f877ac72c4a69cf, 0xba208d7d4baed121,
    0x3a671c09ad17df90, 0x4e64758e60d4ce7d, 0x272117e2ef7e4a0e, 0xc7fe25fff7816603,
    0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b, 0x5d49eeb1faf97c5e,
    0xcf41ce7de294a4ba, 0x9afed7ec47e35742, 0x1580cc11bf1edaea};

/*
 * What differs. `high` are so many bits of 2 pi that the product with what coarse() keeps is exact,
 * `low` the rest, both by 2^-width.
 */
typedef struct kind {
    dc_dtype word, number;      /* unsigned and signed, of the float's width */
    int width, fraction, spare; /* bits; spare: of a word, more than the float has */
    int words, index_bits;      /* of the table: a zero word, then turn_bits; to number them */
    uint64_t one_field, below;  /* fields of exponents: where the table begins, of |x| < pi / 4 */
    int fine_bits;              /* that coarse() leaves over */
    double high, low, two_pi;
    double sine[6], cosine[6];
    int terms;
} kind;

static const kind f32_kind = {
    .word = DC_U32,
    .number = DC_I32,
    .width = 32,
    .fraction = 23,
    .spare = 8,
    .words = 8,
    .index_bits = 3,
    .one_field = 118,
    .below = 126,
    .fine_bits = 17,
    .high = 0x1.92p-30,
    .low = 0x1.fb54442d1846ap-42,
    .two_pi = 0x1.921fb54442d18p-30,
    .sine = {2.72498646551e-6, -0.000198400862638, 0.00833333187384, -0.166666666639},
    .cosine = {-2.7300908168e-7, 2.48005999835e-5, -0.00138888876713, 0.0416666666643},
    .terms = 4,
};

static const kind f64_kind = {
    .word = DC_U64,
    .number = DC_I64,
    .width = 64,
    .fraction = 52,
    .spare = 11,
    .words = 20,
    .index_bits = 5,
    .one_field = 1011,
    .below = 1022,
    .fine_bits = 33,
    .high = 0x1.921fb6p-62,
    .low = -0x1.777a5cf72cecep-87,
    .two_pi = 0x1.921fb54442d18p-62,
    .sine = {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
             -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01},
    .cosine = {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
               2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02},
    .terms = 6,
};

static const kind *kind_of(const use *u)
{
    return u->t == DC_F64 ? &f64_kind : &f32_kind;
}

static dc_fv word_of(const use *u, uint64_t v)
{
    return bits(u, kind_of(u)->word, v);
}

/* A word of 32 bits as one of 64. */
static dc_fv as_wide(const use *u, dc_fv word)
{
    return dc_fb_convert(u->b, word, DC_U64);
}

/* Word i of the table. */
static dc_fv table_word(const use *u, int i)
{
    if (i == 0)
        return word_of(u, 0);
    if (u->t == DC_F64)
        return word_of(u, turn_bits[i - 1]);
    return word_of(u, turn_bits[(i - 1) / 2] >> (i % 2 ? 32 : 0) & UINT32_MAX);
}

/* The product of a mantissa and a word, in two words. */
static void multiply_words(const use *u, dc_fv m, dc_fv w, dc_fv *high, dc_fv *low)
{
    const int bits_of_half = kind_of(u)->width / 2;
    const dc_fv half = word_of(u, (uint64_t)bits_of_half);
    const dc_fv mask = word_of(u, ((uint64_t)1 << bits_of_half) - 1);
    const dc_fv mh = op2(u, DC_K_SHR, m, half), ml = op2(u, DC_K_AND, m, mask);
    const dc_fv wh = op2(u, DC_K_SHR, w, half), wl = op2(u, DC_K_AND, w, mask);
    const dc_fv ll = op2(u, DC_K_MUL, ml, wl), lh = op2(u, DC_K_MUL, ml, wh);
    const dc_fv hl = op2(u, DC_K_MUL, mh, wl), hh = op2(u, DC_K_MUL, mh, wh);
    const dc_fv mid = op2(
        u, DC_K_ADD, op2(u, DC_K_ADD, op2(u, DC_K_SHR, ll, half), op2(u, DC_K_AND, lh, mask)), hl);
    *low = op2(u, DC_K_OR, op2(u, DC_K_AND, ll, mask), op2(u, DC_K_SHL, mid, half));
    *high = op2(u, DC_K_ADD, op2(u, DC_K_ADD, op2(u, DC_K_SHR, lh, half), hh),
                op2(u, DC_K_SHR, mid, half));
}

/*
 * The middle of the product of a mantissa and three words, the first word the highest: the last word of what is before the
 * point, *top, and the first one behind it, *low. Of f32 in words of 64 bits, where a product of two words is one
 * instruction; with 64 bits there are no wider ones.
 */
static void middle_of_product(const use *u, dc_fv m, const dc_fv *w, dc_fv *top, dc_fv *low)
{
    if (u->t != DC_F64) {
        const dc_fv wide = as_wide(u, m), half = bits(u, DC_U64, 32);
        const dc_fv first = op2(u, DC_K_SHL, as_wide(u, op2(u, DC_K_MUL, m, w[0])), half);
        const dc_fv second = op2(u, DC_K_MUL, wide, as_wide(u, w[1]));
        const dc_fv third = op2(u, DC_K_SHR, op2(u, DC_K_MUL, wide, as_wide(u, w[2])), half);
        const dc_fv sum = op2(u, DC_K_ADD, op2(u, DC_K_ADD, first, second), third);
        *top = dc_fb_convert(u->b, op2(u, DC_K_SHR, sum, half), DC_U32);
        *low = dc_fb_convert(u->b, sum, DC_U32);
        return;
    }
    dc_fv high, mid_high, mid_low, ignored;
    multiply_words(u, m, w[0], &ignored, top);
    multiply_words(u, m, w[1], &mid_high, &mid_low);
    multiply_words(u, m, w[2], &high, &ignored);
    *low = op2(u, DC_K_ADD, mid_low, high);
    const dc_fv carry = pick(u, op2(u, DC_K_LT, *low, mid_low), word_of(u, 1), word_of(u, 0));
    *top = op2(u, DC_K_ADD, op2(u, DC_K_ADD, *top, mid_high), carry);
}

/* Three words of the table from bit `place` on: words, then bits, are moved to the front. */
static void window(const use *u, dc_fv place, dc_fv *out)
{
    const kind *k = kind_of(u);
    const int word_bits = k->width == 64 ? 6 : 5;
    const dc_fv last = word_of(u, (uint64_t)k->width - 1), zero = word_of(u, 0);
    const dc_fv shift_by = op2(u, DC_K_AND, place, last), back = op2(u, DC_K_SUB, last, shift_by);
    dc_fv word[20];
    for (int i = 0; i < k->words; i++)
        word[i] = table_word(u, i);
    for (int bit = k->index_bits - 1; bit >= 0; bit--) {
        const int by = 1 << bit, needed = 4 + by - 1;
        const dc_fv digit = word_of(u, (uint64_t)1 << (word_bits + bit));
        const dc_fv set = op2(u, DC_K_NE, op2(u, DC_K_AND, place, digit), zero);
        for (int i = 0; i < needed && i + by < k->words; i++)
            word[i] = pick(u, set, word[i + by], word[i]);
    }
    for (int n = 0; n < 3; n++) {
        const dc_fv rest = op2(u, DC_K_SHR, op2(u, DC_K_SHR, word[n + 1], word_of(u, 1)), back);
        out[n] = op2(u, DC_K_OR, op2(u, DC_K_SHL, word[n], shift_by), rest);
    }
}

/* What the rounding of a + b left, |a| the larger one. */
static dc_fv rest_of(const use *u, dc_fv sum, dc_fv a, dc_fv b)
{
    return op2(u, DC_K_SUB, b, op2(u, DC_K_SUB, sum, a));
}

/*
 * What is left behind the quarter turns, `left` in 2^-width turns and `low` behind its point, as an
 * angle; *less, if asked for: what its rounding left. The high bits of `left` make an exact product with the high bits of
 * 2 pi, of f32 the low bits as well.
 */
static dc_fv angle_of(const use *u, dc_fv left, dc_fv low, dc_fv *less)
{
    const kind *k = kind_of(u);
    const uint64_t unit = (uint64_t)1 << k->fine_bits;
    const dc_fv near_it = op2(u, DC_K_ADD, left, word_of(u, unit / 2));
    const dc_fv coarse = op2(u, DC_K_AND, near_it, word_of(u, ~(unit - 1)));
    const dc_fv fine = op2(u, DC_K_SUB, left, coarse);
    const dc_fv digits = op2(u, DC_K_SHR, low, word_of(u, (uint64_t)k->spare));
    const dc_fv tail = op2(u, DC_K_MUL, dc_fb_convert(u->b, as(u, digits, k->number), u->t),
                           flt(u, ldexp(1, k->spare - k->width)));
    const dc_fv large = dc_fb_convert(u->b, as(u, coarse, k->number), u->t);
    const dc_fv some = dc_fb_convert(u->b, as(u, fine, k->number), u->t);
    const dc_fv pi = flt(u, k->two_pi), pi_high = flt(u, k->high), pi_low = flt(u, k->low);
    if (less == NULL) {
        const dc_fv small = op2(u, DC_K_MUL, op2(u, DC_K_ADD, some, tail), pi);
        return fma3(u, large, pi_high, fma3(u, large, pi_low, small));
    }
    const dc_fv one = op2(u, DC_K_MUL, large, pi_high), other = op2(u, DC_K_MUL, some, pi_high);
    const dc_fv sum = op2(u, DC_K_ADD, one, other); /* of what is exact */
    dc_fv rest = fma3(u, tail, pi, rest_of(u, sum, one, other));
    rest = fma3(u, some, pi_low, fma3(u, large, pi_low, rest));
    const dc_fv r = op2(u, DC_K_ADD, sum, rest);
    *less = rest_of(u, r, sum, rest);
    return r;
}

/* |x| by quarter turns: how many, modulo 4, and what is left, between -pi/4 and pi/4, in two parts. */
static dc_fv quarter_turns(const use *u, dc_fv size, dc_fv *rest, dc_fv *less)
{
    const kind *k = kind_of(u);
    const uint64_t leading = (uint64_t)1 << k->fraction;
    const dc_fv pattern = as(u, size, k->word), two = word_of(u, (uint64_t)k->width - 2);
    const dc_fv field = op2(u, DC_K_SHR, pattern, word_of(u, (uint64_t)k->fraction));
    const dc_fv fraction = op2(u, DC_K_AND, pattern, word_of(u, leading - 1));
    const dc_fv m = op2(u, DC_K_OR, fraction, word_of(u, leading));
    const dc_fv near = op2(u, DC_K_LT, size, flt(u, 0.78539816));
    const dc_fv safe = pick(u, near, word_of(u, k->below), field);
    dc_fv w[3], top, low;
    window(u, op2(u, DC_K_SUB, safe, word_of(u, k->one_field)), w);
    middle_of_product(u, m, w, &top, &low);
    const dc_fv eighth = word_of(u, (uint64_t)1 << (k->width - 3));
    const dc_fv quarters = op2(u, DC_K_SHR, op2(u, DC_K_ADD, top, eighth), two);
    const dc_fv left = op2(u, DC_K_SUB, top, op2(u, DC_K_SHL, quarters, two));
    *rest = pick(u, near, size, angle_of(u, left, low, less));
    if (less != NULL)
        *less = pick(u, near, flt(u, 0), *less);
    return pick(u, near, word_of(u, 0), quarters);
}

static dc_fv sine_of(const use *u, dc_fv r, dc_fv square)
{
    const kind *k = kind_of(u);
    return fma3(u, op2(u, DC_K_MUL, square, r), polynomial(u, square, k->sine, k->terms), r);
}

/* Of an angle whose square is given. With `less`, that times what its rounding left: *rest is what the cosine's left. */
static dc_fv cosine_of(const use *u, dc_fv square, dc_fv less, dc_fv *rest)
{
    const kind *k = kind_of(u);
    const dc_fv p = op2(u, DC_K_MUL, op2(u, DC_K_MUL, square, square),
                        polynomial(u, square, k->cosine, k->terms));
    const dc_fv one = flt(u, 1), half = op2(u, DC_K_MUL, square, flt(u, 0.5));
    const dc_fv w = op2(u, DC_K_SUB, one, half);
    dc_fv left = op2(u, DC_K_SUB, op2(u, DC_K_SUB, one, w), half);
    if (less != 0)
        left = op2(u, DC_K_SUB, left, less);
    left = op2(u, DC_K_ADD, left, p);
    const dc_fv r = op2(u, DC_K_ADD, w, left);
    if (rest != NULL)
        *rest = rest_of(u, r, w, left);
    return r;
}

/* Is bit `bit` of a number of quarter turns set? */
static dc_fv turned(const use *u, dc_fv quarters, uint64_t bit)
{
    return op2(u, DC_K_NE, op2(u, DC_K_AND, quarters, word_of(u, bit)), word_of(u, 0));
}

/* The sine of |x| and a number of quarter turns more; `negative` has the sign it needs. */
static dc_fv wave(const use *u, dc_fv size, uint64_t more, dc_fv *negative)
{
    const kind *k = kind_of(u);
    dc_fv r;
    const dc_fv quarters = op2(u, DC_K_ADD, quarter_turns(u, size, &r, NULL), word_of(u, more));
    const dc_fv square = op2(u, DC_K_MUL, r, r);
    const dc_fv sine = sine_of(u, r, square), cosine = cosine_of(u, square, 0, NULL);
    *negative = op2(u, DC_K_SHL, op2(u, DC_K_AND, quarters, word_of(u, 2)),
                    word_of(u, (uint64_t)k->width - 2));
    return pick(u, turned(u, quarters, 1), cosine, sine);
}

static dc_fv with_sign(const use *u, dc_fv v, dc_fv size, dc_fv sign)
{
    const dc_fv r = as(u, op2(u, DC_K_XOR, as(u, v, kind_of(u)->word), sign), u->t);
    return pick(u, op2(u, DC_K_LT, size, flt(u, INFINITY)), r, flt(u, NAN));
}

/* x apart: its sign bit and |x|. */
static dc_fv sign_of(const use *u, dc_fv *size)
{
    const kind *k = kind_of(u);
    const dc_fv pattern = as(u, u->in[0], k->word);
    const dc_fv sign = op2(u, DC_K_AND, pattern, word_of(u, (uint64_t)1 << (k->width - 1)));
    *size = as(u, op2(u, DC_K_XOR, pattern, sign), u->t);
    return sign;
}

dc_fv dc_expand_sin(const use *u)
{
    dc_fv size, negative;
    const dc_fv sign = sign_of(u, &size), v = wave(u, size, 0, &negative);
    return with_sign(u, v, size, op2(u, DC_K_XOR, sign, negative));
}

dc_fv dc_expand_cos(const use *u)
{
    dc_fv size, negative;
    sign_of(u, &size);
    const dc_fv v = wave(u, size, 1, &negative);
    return with_sign(u, v, size, negative);
}

/* After an odd number of quarter turns it is minus the inverse. What sine and cosine are rounded by counts, too. */
dc_fv dc_expand_tan(const use *u)
{
    const kind *k = kind_of(u);
    dc_fv size, r, less;
    const dc_fv sign = sign_of(u, &size), quarters = quarter_turns(u, size, &r, &less);
    const dc_fv square = op2(u, DC_K_MUL, r, r), odd = turned(u, quarters, 1);
    const dc_fv bend =
        fma3(u, op2(u, DC_K_MUL, square, r), polynomial(u, square, k->sine, k->terms), less);
    const dc_fv sine = op2(u, DC_K_ADD, r, bend), sine_less = rest_of(u, sine, r, bend);
    dc_fv cosine_less;
    const dc_fv cosine = cosine_of(u, square, op2(u, DC_K_MUL, r, less), &cosine_less);
    const dc_fv top = pick(u, odd, cosine, sine), bottom = pick(u, odd, sine, cosine);
    const dc_fv top_less = pick(u, odd, cosine_less, sine_less),
                bottom_less = pick(u, odd, sine_less, cosine_less);
    const dc_fv q = op2(u, DC_K_DIV, top, bottom);
    const dc_fv off = op2(u, DC_K_SUB, top_less, op2(u, DC_K_MUL, q, bottom_less));
    const dc_fv v = op2(u, DC_K_ADD, q, op2(u, DC_K_DIV, off, bottom));
    const dc_fv other = op2(u, DC_K_SHL, op2(u, DC_K_AND, quarters, word_of(u, 1)),
                            word_of(u, (uint64_t)k->width - 1));
    return with_sign(u, v, size, op2(u, DC_K_XOR, sign, other));
}
