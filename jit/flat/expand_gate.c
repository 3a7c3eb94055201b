/*
 * Expansions of functions that gate a number: x, or 1, times how likely a smaller one is. sigmoid(x) = 1 / (1 + exp(-x)),
 * silu(x) = x sigmoid(x), gelu(x) = x Phi(x), and x sigmoid(y) with y = 2 sqrt(2 / pi) (x + 0.044715 x^3), which is gelu with
 * tanh. Exponents have two parts: what is lost of a large one would be lost many times of the result.
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* x, but no less than what the gate closes for: a product with the least quotient is 0. NaN stays. */
static dc_fv no_less(const use *u, dc_fv x, dc_fv least)
{
    return pick(u, op2(u, DC_K_LT, x, least), least, x);
}

dc_fv dc_expand_sigmoid(const use *u)
{
    double c;
    const dc_fv below = dc_expand_gate(u, no_less(u, u->in[0], flt_of(u, -112, -760)), NULL, &c);
    return op2(u, DC_K_DIV, flt(u, c), below);
}

/* x / (1 + exp(-y - more)), which is x where that is large: the quotient might overflow before its product with c. */
static dc_fv gated(const use *u, dc_fv x, dc_fv y, const dc_fv *more)
{
    double c;
    const dc_fv below = dc_expand_gate(u, y, more, &c);
    const dc_fv r = op2(u, DC_K_MUL, op2(u, DC_K_DIV, x, below), flt(u, c));
    return pick(u, op2(u, DC_K_LT, flt(u, 0x1p60), x), x, r);
}

dc_fv dc_expand_silu(const use *u)
{
    const dc_fv x = no_less(u, u->in[0], flt_of(u, -112, -760));
    return gated(u, x, x, NULL);
}

/* The numbers of y = c1 a^3 + c0 a, in two parts, of which the first is short. */
typedef struct cubic {
    dc_fv first, third, first_low, third_low, whole;
} cubic;

/* y as a float, and what it lacks: what is left of products and sums is one fma each. */
static dc_fv cubic_fused(const use *u, const cubic *c, dc_fv a, dc_fv *more)
{
    dc_fv square_low;
    const dc_fv square = square_by(u, a, 1, &square_low);
    const dc_fv sum = fma3(u, c->third, square, c->first);
    const dc_fv left = fma3(u, c->third, square, op2(u, DC_K_SUB, c->first, sum)); /* exact */
    const dc_fv low = fma3(u, c->third_low, square, fma3(u, c->whole, square_low, c->first_low));
    const dc_fv y = op2(u, DC_K_MUL, a, sum);
    *more = fma3(u, a, op2(u, DC_K_ADD, left, low), fma3(u, a, sum, op1(u, DC_K_NEG, y)));
    return y;
}

/* The same where there is no such fma: c1 a^2 + c0 and its product with a have high parts that are exact products. */
static dc_fv cubic_of_halves(const use *u, const cubic *c, dc_fv a, dc_fv *more)
{
    const dc_fv high = short_of(u, a), low = op2(u, DC_K_SUB, a, high),
                square = op2(u, DC_K_MUL, high, high);
    const dc_fv square_high = short_of(u, square);
    const dc_fv square_low =
        fma3(u, low, op2(u, DC_K_ADD, a, high), op2(u, DC_K_SUB, square, square_high));
    const dc_fv cube = op2(u, DC_K_MUL, c->third, square_high),
                sum = op2(u, DC_K_ADD, cube, c->first);
    const dc_fv left =
        op2(u, DC_K_SUB, cube, op2(u, DC_K_SUB, sum, c->first)); /* exact: `first` is short */
    dc_fv rest = fma3(u, c->third_low, square_high, fma3(u, c->whole, square_low, c->first_low));
    rest = op2(u, DC_K_ADD, left, rest);
    const dc_fv sum_high = short_of(u, sum);
    rest = op2(u, DC_K_ADD, rest, op2(u, DC_K_SUB, sum, sum_high));
    *more = fma3(u, high, rest, op2(u, DC_K_MUL, low, op2(u, DC_K_ADD, sum_high, rest)));
    return op2(u, DC_K_MUL, high, sum_high);
}

dc_fv dc_expand_gelu_tanh(const use *u)
{
    const dc_fv x = no_less(u, u->in[0], flt_of(u, -15, -25)), end = flt_of(u, 15, 25);
    const dc_fv a = pick(u, op2(u, DC_K_LT, end, x), end, x);
    const cubic c = {.first = flt_of(u, 0x1.988p0, 0x1.98846p0),
                     .third = flt_of(u, 0x1.244p-4, 0x1.24450p-4),
                     .first_low = flt_of(u, 0x1.14cf50d942344p-14, -0x1.9857935ee5e07p-21),
                     .third_low = flt_of(u, 0x1.3ca9362d2bd27p-18, -0x1.ab64e96a16c84p-25),
                     .whole = flt(u, 0.0713548162726002488)};
    dc_fv more;
    const dc_fv y = u->b->fused ? cubic_fused(u, &c, a, &more) : cubic_of_halves(u, &c, a, &more);
    return gated(u, x, no_less(u, y, flt_of(u, -112, -760)), &more);
}

/* a - q b, of which q is the rounded quotient. */
static dc_fv remainder_of(const use *u, dc_fv a, dc_fv q, dc_fv b)
{
    if (u->b->fused)
        return fma3(u, op1(u, DC_K_NEG, q), b, a);
    const dc_fv q0 = short_of(u, q), q1 = op2(u, DC_K_SUB, q, q0);
    const dc_fv b0 = short_of(u, b), b1 = op2(u, DC_K_SUB, b, b0);
    const dc_fv high = op2(u, DC_K_SUB, a, op2(u, DC_K_MUL, q0, b0));
    const dc_fv low = op2(u, DC_K_ADD, op2(u, DC_K_MUL, q0, b1), op2(u, DC_K_MUL, q1, b));
    return op2(u, DC_K_SUB, high, low);
}

/*
 * max(x, 0) - R(s) exp(-s^2 / 2), s = |x|: R(s) = s / 2 erfc(s / sqrt(2)) exp(s^2 / 2) is -h (1 + P(h)) with
 * h = -s / 2 / (s + m). Below 0.6 it is x / 2 + y Q(y) with y = -x^2 / 2.
 */
dc_fv dc_expand_gelu(const use *u)
{
    static const series near_f32 = {5,
                                    {-0.003432795499552, -0.01895666489152, -0.07978586236064,
                                     -0.2659614620652, -0.797884560594}};
    static const series near_f64 = {
        10,
        {-1.0669366482095545e-07, -1.160642022636756e-06, -1.0553312504434855e-05,
         -8.524398574608637e-05, -0.000604457993398908, -0.003693910003369972,
         -0.018997251447677672, -0.0797884560802864, -0.26596152026762176, -0.7978845608028654}};
    static const series tail_f32 = {10,
                                    {-531.110803729408, -12.8906402592256, 75.015053900288,
                                     -30.178210543872, -0.050070922127104, 7.701490715232,
                                     -3.498751163808, -1.267335757032, 1.860910661124,
                                     0.267650211054}};
    static const series tail_f64 = {
        24, {102346.25108894643,  -88846.82703376989,  -16872.761727877198, 43163.64554729555,
             -7304.572197983163,  -11739.877412861018, 5324.941376839285,   2334.834506702083,
             -2193.7916021052843, -338.06654117173684, 794.5928729533234,   24.047325904371203,
             -294.81500730833113, -4.001907674994145,  121.16030152109069,  17.477705709431266,
             -53.43865921932812,  -28.50563987363697,  15.442307003860524,  30.923046344159335,
             23.87479781883612,   12.388396823750865,  4.863173135775137,   0.510570260831503}};
    const dc_fv x = u->in[0], end = flt_of(u, 14.4, 38.7), one = flt(u, 1);
    dc_fv s = magnitude_of(u, x), left;
    s = pick(u, op2(u, DC_K_LT, end, s), end, s); /* NaN stays */
    const dc_fv exponent = square_by(u, s, -0.5, &left);
    const dc_fv half = op2(u, DC_K_MUL, s, flt(u, -0.5));
    const dc_fv m = flt_of(u, 1.625, 4), below = op2(u, DC_K_ADD, s, m);
    const dc_fv h = op2(u, DC_K_DIV, half, below), middle = op2(u, DC_K_ADD, h, flt(u, 0.25));
    const dc_fv lost = op2(u, DC_K_SUB, s, op2(u, DC_K_SUB, below, m)); /* by the denominator */
    const dc_fv p = series_at(u, middle, &tail_f32, &tail_f64);
    dc_fv more;
    if (u->t == DC_F64) {
        const dc_fv slope = fma3(u, h, flt(u, 0.5), flt(u, 0.25)); /* R by `below` */
        more = fma3(u, op1(u, DC_K_NEG, lost), slope, left);
    } else { /* R by h, times 1 / below: what the quotient leaves counts, too */
        const dc_fv off =
            op2(u, DC_K_SUB, remainder_of(u, half, h, below), op2(u, DC_K_MUL, h, lost));
        more = fma3(u, off, fma3(u, h, flt(u, -4.5), flt(u, -1.9)), left);
    }
    dc_exp_scale scale;
    const dc_fv rest = dc_expand_exp_rest(u, exponent, more, false, &scale);
    /* h (1 + p) (1 + rest), of which h and what is added to it are rounded once */
    const dc_fv part = op2(u, DC_K_MUL, h, p);
    dc_fv tail = u->b->fused ? fma3(u, h, fma3(u, op2(u, DC_K_ADD, p, one), rest, p), h)
                             : op2(u, DC_K_ADD, fma3(u, h, rest, fma3(u, part, rest, part)), h);
    tail = dc_expand_by_exp_scale(u, tail, &scale);
    const dc_fv zero = flt(u, 0), top = pick(u, op2(u, DC_K_LT, x, zero), zero, x);
    const dc_fv y = op2(u, DC_K_MUL, s, half);
    const dc_fv near =
        fma3(u, y, series_at(u, y, &near_f32, &near_f64), op2(u, DC_K_MUL, x, flt(u, 0.5)));
    const dc_fv r = pick(u, op2(u, DC_K_LT, s, flt(u, 0.6)), near, op2(u, DC_K_ADD, top, tail));
    const dc_dtype un = unsigned_word(u); /* a zero has the sign of x, others have it */
    return as(u, op2(u, DC_K_OR, as(u, r, un), sign_bit_of(u, x)), u->t);
}
