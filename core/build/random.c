/*
 * Random numbers as graphs.
 *
 * Floats must come out equal on machines that contract a * b + c and on those that do not. So every
 * product that is added to something is one of numbers that are not negative, and its magnitude is
 * taken in between, which changes nothing and keeps it from being contracted; or it is exact. (Not
 * where a compiler can see the sign: multiples of a constant are sums of constants instead.)
 */
#include "core/build/random.h"

#include "core/base/extent.h"

#include <math.h>

/* ---- on the host ----------------------------------------------------------------------------- */

void dc_random_seed(uint64_t seed, uint32_t purpose, uint32_t key[2])
{
    const uint64_t lo = seed & UINT32_MAX, hi = seed >> 32;
    key[0] = dc_threefry(lo, hi, purpose, 0);
    key[1] = dc_threefry(lo, hi, purpose, 1);
}

void dc_random_key(const uint32_t state[DC_RANDOM_STATE], uint32_t site, uint32_t key[2])
{
    const uint64_t high = (uint64_t)state[3] << 1 & UINT32_MAX;
    const uint32_t c0 = dc_threefry(state[0], state[1], state[2], high);
    const uint32_t c1 = dc_threefry(state[0], state[1], state[2], high | 1);
    key[0] = dc_threefry(c0, c1, site, 0);
    key[1] = dc_threefry(c0, c1, site, 1);
}

void dc_random_advance(uint32_t state[DC_RANDOM_STATE])
{
    if (++state[2] == 0)
        state[3]++;
}

/* ---- steps of graphs ------------------------------------------------------------------------- */

/* A graph being written; the first failure stays. */
typedef struct writer {
    dc_job *j;
    dc_func *f;
    dc_status status;
    dc_dtype t; /* of float numbers */
} writer;

static dc_val ew(writer *w, dc_op op, const dc_val *in, int n)
{
    dc_val out = in[0];
    if (w->status == DC_OK)
        w->status = dc_build_ew(w->j, w->f, op, in, n, &out);
    return out;
}

static dc_val op1(writer *w, dc_op op, dc_val a)
{
    return ew(w, op, &a, 1);
}

static dc_val op2(writer *w, dc_op op, dc_val a, dc_val b)
{
    return ew(w, op, (dc_val[]){a, b}, 2);
}

static dc_val pick(writer *w, dc_val m, dc_val a, dc_val b)
{
    return ew(w, DC_OP_WHERE, (dc_val[]){m, a, b}, 3);
}

static dc_val number(writer *w, dc_dtype t, double v)
{
    const dc_type type = dc_type_scalar(t);
    dc_val out = {0, type};
    if (w->status == DC_OK)
        w->status = dc_build_const(w->j, w->f, &type, v, &out);
    return out;
}

static dc_val u32(writer *w, uint32_t v)
{
    return number(w, DC_U32, v);
}

static dc_val flt(writer *w, double v)
{
    return number(w, w->t, v);
}

static dc_val cast(writer *w, dc_val a, dc_dtype t)
{
    dc_val out = a;
    if (w->status == DC_OK && a.type.dtype != t)
        w->status = dc_build_cast(w->j, w->f, a, t, &out);
    return out;
}

static dc_val reshape(writer *w, dc_val a, const dc_type *want)
{
    dc_type t = *want;
    dc_val out = a;
    t.dtype = a.type.dtype;
    if (w->status == DC_OK)
        w->status = dc_build_reshape(w->j, w->f, a, &t, &out);
    return out;
}

/* a * b of numbers that are not negative, rounded. */
static dc_val mul(writer *w, dc_val a, dc_val b)
{
    return op1(w, DC_OP_ABS, op2(w, DC_OP_MUL, a, b));
}

static dc_val threefry(writer *w, const dc_val key[2], dc_val c0, dc_val c1)
{
    return ew(w, DC_OP_THREEFRY, (dc_val[]){key[0], key[1], c0, c1}, 4);
}

/* The number of elements, which may be known at run time only. */
static int64_t count_of(writer *w, const dc_type *t)
{
    const int64_t n = dc_extent_product(w->j->extents, t->rank, t->dim);
    if (n == DC_EXTENT_NONE && w->status == DC_OK)
        w->status = dc_fail(w->j, DC_ERR_EXTENT, &(dc_fact){.type = {*t}});
    return n;
}

/* Word `word` of each of n elements, u32[n]. */
static dc_val bits(writer *w, const dc_val key[2], int64_t n, uint32_t word)
{
    const dc_type t = dc_type_make(DC_U32, 1, &n);
    dc_val at = {0, t};
    if (w->status == DC_OK)
        w->status = dc_build_iota(w->j, w->f, &t, 0, &at);
    return threefry(w, key, at, u32(w, word));
}

/* ---- keys ------------------------------------------------------------------------------------ */

static dc_val element(writer *w, dc_val state, int64_t i)
{
    const int64_t step = 1;
    const dc_type scalar = dc_type_scalar(DC_U32);
    dc_val out = state;
    if (w->status == DC_OK)
        w->status = dc_build_slice(w->j, w->f, state, &i, &i, &step, &out);
    return reshape(w, out, &scalar);
}

dc_status dc_random_call(dc_job *j, dc_func *f, dc_val state, dc_val call[2], dc_val *next)
{
    writer w = {j, f, DC_OK, DC_F32};
    dc_val s[DC_RANDOM_STATE], at = state;
    for (int i = 0; i < DC_RANDOM_STATE; i++)
        s[i] = element(&w, state, i);
    const dc_val high = op2(&w, DC_OP_ADD, s[3], s[3]);
    for (uint32_t i = 0; i < 2; i++)
        call[i] = threefry(&w, s, s[2], op2(&w, DC_OP_OR, high, u32(&w, i)));
    if (w.status == DC_OK)
        w.status = dc_build_iota(j, f, &state.type, 0, &at);
    const dc_val carry = op2(&w, DC_OP_EQ, s[2], u32(&w, UINT32_MAX));
    const dc_val low = op2(&w, DC_OP_EQ, at, u32(&w, 2)), top = op2(&w, DC_OP_EQ, at, u32(&w, 3));
    const dc_val add = op2(&w, DC_OP_OR, low, op2(&w, DC_OP_AND, top, carry));
    *next = op2(&w, DC_OP_ADD, state, cast(&w, add, DC_U32));
    return w.status;
}

dc_status dc_random_site(dc_job *j, dc_func *f, const dc_val call[2], uint32_t site, dc_val key[2])
{
    writer w = {j, f, DC_OK, DC_F32};
    for (uint32_t i = 0; i < 2; i++)
        key[i] = threefry(&w, call, u32(&w, site), u32(&w, i));
    return w.status;
}

dc_status dc_random_fold(dc_job *j, dc_func *f, dc_val i, dc_val key[2])
{
    writer w = {j, f, DC_OK, DC_F32};
    const dc_val n = cast(&w, i, DC_U32), old[2] = {key[0], key[1]};
    for (uint32_t k = 0; k < 2; k++)
        key[k] = threefry(&w, old, n, u32(&w, k));
    return w.status;
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Bits of the mantissa, the hidden one included. */
static int precision(dc_dtype t)
{
    return dc_dtype_fraction(t) + 1;
}

/* What to compute in: 16-bit floats in f32. */
static dc_dtype wide(dc_dtype t)
{
    return dc_dtype_bits(t) < 32 ? DC_F32 : t;
}

/* The upper p bits of u32 words as p-bit fractions, exact. */
static dc_val fraction(writer *w, dc_val word, int p)
{
    const dc_val top = op2(w, DC_OP_SHR, word, u32(w, (uint32_t)(32 - p)));
    return op2(w, DC_OP_MUL, cast(w, top, w->t), flt(w, ldexp(1, -p)));
}

static dc_val unit(writer *w, const dc_val key[2], int64_t n, int p)
{
    if (p <= 32)
        return fraction(w, bits(w, key, n, 0), p);
    const dc_val high = fraction(w, bits(w, key, n, 0), 32);
    const dc_val low = fraction(w, bits(w, key, n, 1), p - 32);
    return op2(w, DC_OP_ADD, high, op2(w, DC_OP_MUL, low, flt(w, 0x1p-32)));
}

dc_status dc_random_uniform(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                            const dc_val *low, const dc_val *high, dc_val *out)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    writer w = {j, f, DC_OK, wide(dtype)};
    const int64_t n = count_of(&w, t);
    if (low == NULL) {
        *out = reshape(&w, cast(&w, unit(&w, key, n, precision(dtype)), dtype), t);
        return w.status;
    }
    const dc_val from = cast(&w, *low, w.t);
    const dc_val room = op2(&w, DC_OP_SUB, cast(&w, *high, w.t), from);
    const dc_val u = unit(&w, key, n, precision(w.t));
    const dc_val v = cast(&w, op2(&w, DC_OP_ADD, from, mul(&w, room, u)), dtype);
    *out = reshape(&w, pick(&w, op2(&w, DC_OP_LT, v, *high), v, *low), t); /* high by rounding */
    return w.status;
}

/* c[0] + x (c[1] + x (c[2] ...)), all of them not negative. */
static dc_val horner(writer *w, dc_val x, const double *c, int n)
{
    dc_val sum = flt(w, c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        sum = op2(w, DC_OP_ADD, flt(w, c[i]), mul(w, x, sum));
    return sum;
}

/*
 * -log(u) for u = word / 2^32, of 0 as of 1: u = m 2^-k with m in [1/2, 1), found by shifts, and
 * -log(m) = 2 artanh((1 - m) / (1 + m)) by its series. More bits of m, below those of the word, are
 * in `more`.
 */
static dc_val minus_log(writer *w, dc_val word, const dc_val *more)
{
    enum { TERMS = 17 };
    double c[TERMS];
    dc_val k_log = flt(w, 0); /* k log(2), by additions alone */
    word = op2(w, DC_OP_MAX, word, u32(w, 1));
    for (int s = 16; s >= 1; s /= 2) {
        const dc_val small = op2(w, DC_OP_LT, word, u32(w, 1u << (32 - s)));
        word = pick(w, small, op2(w, DC_OP_SHL, word, u32(w, (uint32_t)s)), word);
        const dc_val part = flt(w, s * 0.69314718055994530942);
        k_log = op2(w, DC_OP_ADD, k_log, pick(w, small, part, flt(w, 0)));
    }
    dc_val m = fraction(w, word, more != NULL ? 32 : 24);
    if (more != NULL)
        m = op2(w, DC_OP_ADD, m, *more);
    const dc_val one = flt(w, 1);
    const dc_val s = op2(w, DC_OP_DIV, op2(w, DC_OP_SUB, one, m), op2(w, DC_OP_ADD, one, m));
    for (int i = 0; i < TERMS; i++)
        c[i] = 2.0 / (2 * i + 1);
    const dc_val log_m = mul(w, s, horner(w, mul(w, s, s), c, more != NULL ? TERMS : 8));
    return op2(w, DC_OP_ADD, k_log, log_m);
}

/* -log(u): u is a word of the element, and more bits below it for f64. */
static dc_val exponential(writer *w, const dc_val key[2], int64_t n, dc_val word, uint32_t second)
{
    if (dc_dtype_bits(w->t) < 64)
        return minus_log(w, word, NULL);
    const dc_val low = fraction(w, bits(w, key, n, second), 20);
    const dc_val more = op2(w, DC_OP_MUL, low, flt(w, 0x1p-32));
    return minus_log(w, word, &more);
}

dc_status dc_random_exponential(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                                dc_val *out)
{
    writer w = {j, f, DC_OK, wide((dc_dtype)t->dtype)};
    const int64_t n = count_of(&w, t);
    const dc_val e = exponential(&w, key, n, bits(&w, key, n, 0), 1);
    *out = reshape(&w, cast(&w, e, (dc_dtype)t->dtype), t);
    return w.status;
}

/* cos(v pi / 2) for 0 <= v < 1: 1 - x/2 (1 - x/12 (1 - x/30 ...)) with x the square. */
static dc_val quarter_cos(writer *w, dc_val v, int terms)
{
    const dc_val angle = mul(w, v, flt(w, 1.57079632679489661923)), x = mul(w, angle, angle);
    const dc_val one = flt(w, 1);
    dc_val sum = one;
    for (int i = terms; i >= 1; i--) {
        const dc_val part = mul(w, x, flt(w, 1.0 / ((2.0 * i - 1) * (2.0 * i))));
        sum = op2(w, DC_OP_SUB, one, mul(w, part, sum));
    }
    return sum;
}

/* Box and Muller (1958), a quarter of the circle and a sign. */
static dc_val normal(writer *w, const dc_val key[2], int64_t n)
{
    const bool is_double = dc_dtype_bits(w->t) == 64;
    const dc_val first = bits(w, key, n, 0), second = bits(w, key, n, 1);
    const dc_val r2 = op2(w, DC_OP_MUL, exponential(w, key, n, first, 2), flt(w, 2));
    const dc_val upper = op2(w, DC_OP_SHL, second, u32(w, 1));
    const dc_val v = fraction(w, upper, is_double ? 31 : 24);
    const dc_val size = mul(w, op1(w, DC_OP_SQRT, r2), quarter_cos(w, v, is_double ? 12 : 7));
    const dc_val minus = op2(w, DC_OP_LT, second, u32(w, 0x80000000));
    return pick(w, minus, op1(w, DC_OP_NEG, size), size);
}

dc_status dc_random_normal(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                           const dc_val *mean, const dc_val *std, dc_val *out)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    writer w = {j, f, DC_OK, wide(dtype)};
    dc_val z = normal(&w, key, count_of(&w, t));
    if (mean != NULL) {
        const dc_val zero = flt(&w, 0), at = cast(&w, *mean, w.t);
        const dc_val p = op2(&w, DC_OP_MUL, z, cast(&w, *std, w.t)), size = op1(&w, DC_OP_ABS, p);
        z = pick(&w, op2(&w, DC_OP_LT, p, zero), op2(&w, DC_OP_SUB, at, size),
                 op2(&w, DC_OP_ADD, at, size));
    }
    *out = reshape(&w, cast(&w, z, dtype), t);
    return w.status;
}

/* ---- integers -------------------------------------------------------------------------------- */

/* The upper word of a * b, by halves. */
static dc_val upper_product(writer *w, dc_val a, dc_val b)
{
    const dc_val mask = u32(w, 0xffff), half = u32(w, 16);
    const dc_val al = op2(w, DC_OP_AND, a, mask), ah = op2(w, DC_OP_SHR, a, half);
    const dc_val bl = op2(w, DC_OP_AND, b, mask), bh = op2(w, DC_OP_SHR, b, half);
    const dc_val low = op2(w, DC_OP_SHR, op2(w, DC_OP_MUL, al, bl), half);
    const dc_val mid = op2(w, DC_OP_ADD, op2(w, DC_OP_MUL, ah, bl), low);
    const dc_val cross = op2(w, DC_OP_ADD, op2(w, DC_OP_MUL, al, bh), op2(w, DC_OP_AND, mid, mask));
    const dc_val top = op2(w, DC_OP_ADD, op2(w, DC_OP_MUL, ah, bh), op2(w, DC_OP_SHR, mid, half));
    return op2(w, DC_OP_ADD, top, op2(w, DC_OP_SHR, cross, half));
}

dc_status dc_random_integer(dc_job *j, dc_func *f, const dc_val key[2], const dc_type *t,
                            dc_val low, dc_val range, dc_val *out)
{
    writer w = {j, f, DC_OK, DC_F32};
    const dc_val v = upper_product(&w, bits(&w, key, count_of(&w, t), 0), range);
    *out = reshape(&w, op2(&w, DC_OP_ADD, cast(&w, v, (dc_dtype)t->dtype), low), t);
    return w.status;
}
