/*
 * Lowering of a stage of a transform (core/graph/dft.h): loops over what its transforms of length r have in common, and
 * one assignment that reads r numbers and stores r. Its values are a straight line: a composite r is taken apart again,
 * with factors that are constants; of a prime one, sums and differences of opposite inputs are added up.
 */
#include "core/graph/dft.h"
#include "jit/lower/lower_impl.h"

#include <math.h>

typedef struct number { /* real and imaginary part */
    dc_vx re, im;
} number;

typedef struct line { /* what it is computed in */
    dc_kernel *k;
    dc_dtype t;
    int sign;
} line;

static dc_vx op(const line *l, dc_op o, dc_vx a, dc_vx b)
{
    return dc_vx_op(l->k, o, l->t, (const dc_vx[]){a, b}, 2);
}

static dc_vx times(const line *l, dc_vx a, double by)
{
    return op(l, DC_OP_MUL, a, dc_vx_const(l->k, l->t, dc_bits_of(l->t, by)));
}

static dc_vx negative(const line *l, dc_vx a)
{
    return dc_vx_op(l->k, DC_OP_NEG, l->t, &a, 1);
}

static number sum(const line *l, number a, number b)
{
    return (number){op(l, DC_OP_ADD, a.re, b.re), op(l, DC_OP_ADD, a.im, b.im)};
}

static number difference(const line *l, number a, number b)
{
    return (number){op(l, DC_OP_SUB, a.re, b.re), op(l, DC_OP_SUB, a.im, b.im)};
}

/* a (c + i s) */
static number product(const line *l, number a, dc_vx c, dc_vx s)
{
    return (number){op(l, DC_OP_SUB, op(l, DC_OP_MUL, a.re, c), op(l, DC_OP_MUL, a.im, s)),
                    op(l, DC_OP_ADD, op(l, DC_OP_MUL, a.re, s), op(l, DC_OP_MUL, a.im, c))};
}

/* a exp(sign 2 pi i e / n), without multiplications by 0 and 1. */
static number turned(const line *l, number a, int e, int n)
{
    e = (l->sign * e % n + n) % n;
    if (e == 0)
        return a;
    if (4 * e == n)
        return (number){negative(l, a.im), a.re};
    if (2 * e == n)
        return (number){negative(l, a.re), negative(l, a.im)};
    if (4 * e == 3 * n)
        return (number){a.im, negative(l, a.re)};
    const double angle = 2 * acos(-1) * e / n, c = cos(angle), s = sin(angle);
    if (8 * e % n == 0) { /* an odd number of eighths: both are as large */
        const dc_vx plus = op(l, DC_OP_ADD, a.re, a.im), minus = op(l, DC_OP_SUB, a.re, a.im);
        const double h = sqrt(0.5);
        return 8 * e == n       ? (number){times(l, minus, h), times(l, plus, h)}
               : 8 * e == 3 * n ? (number){times(l, plus, -h), times(l, minus, h)}
               : 8 * e == 5 * n ? (number){times(l, minus, -h), times(l, plus, -h)}
                                : (number){times(l, plus, h), times(l, minus, -h)};
    }
    return product(l, a, dc_vx_const(l->k, l->t, dc_bits_of(l->t, c)),
                   dc_vx_const(l->k, l->t, dc_bits_of(l->t, s)));
}

/* An odd prime: y[k], y[p - k] = x[0] + sum of (x[j] + x[p - j]) cos +- i (x[j] - x[p - j]) sin. */
static void prime(const line *l, int p, number *x)
{
    number plus[DC_DFT_RADIX], minus[DC_DFT_RADIX], y[DC_DFT_RADIX];
    const int half = p / 2;
    y[0] = x[0];
    for (int j = 1; j <= half; j++) {
        plus[j] = sum(l, x[j], x[p - j]);
        minus[j] = difference(l, x[j], x[p - j]);
        y[0] = sum(l, y[0], plus[j]);
    }
    for (int k = 1; k <= half; k++) {
        number even = x[0], odd = {0};
        for (int j = 1; j <= half; j++) {
            const double angle = 2 * acos(-1) * (j * k % p) / p;
            const double c = cos(angle), s = l->sign * sin(angle);
            const number a = {times(l, plus[j].re, c), times(l, plus[j].im, c)};
            const number b = {times(l, minus[j].re, s), times(l, minus[j].im, s)};
            even = sum(l, even, a);
            odd = j == 1 ? b : sum(l, odd, b);
        }
        y[k] = (number){op(l, DC_OP_SUB, even.re, odd.im), op(l, DC_OP_ADD, even.im, odd.re)};
        y[p - k] = (number){op(l, DC_OP_ADD, even.re, odd.im), op(l, DC_OP_SUB, even.im, odd.re)};
    }
    for (int k = 0; k < p; k++)
        x[k] = y[k];
}

/* The first factor: 4 before 2, which saves multiplications. */
static int factor_of(int n)
{
    if (n % 4 == 0)
        return n == 8 ? 2 : 4;
    for (int p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static void transform(const line *l, int n, number *x);

static void four(const line *l, number *x)
{
    const number a = sum(l, x[0], x[2]), b = difference(l, x[0], x[2]);
    const number c = sum(l, x[1], x[3]), d = turned(l, difference(l, x[1], x[3]), 1, 4);
    x[0] = sum(l, a, c);
    x[1] = sum(l, b, d);
    x[2] = difference(l, a, c);
    x[3] = difference(l, b, d);
}

/* n = p m: p transforms of length m, their results turned, m transforms of length p. */
static void composite(const line *l, int p, int m, number *x)
{
    number part[DC_DFT_RADIX][DC_DFT_RADIX], across[DC_DFT_RADIX];
    for (int j = 0; j < p; j++) {
        for (int i = 0; i < m; i++)
            part[j][i] = x[j + i * p];
        transform(l, m, part[j]);
    }
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < p; j++)
            across[j] = turned(l, part[j][k], j * k, p * m);
        transform(l, p, across);
        for (int i = 0; i < p; i++)
            x[k + i * m] = across[i];
    }
}

static void transform(const line *l, int n, number *x)
{
    const int p = factor_of(n);
    if (n == 4) {
        four(l, x);
    } else if (n == 2) {
        const number a = x[0];
        x[0] = sum(l, a, x[1]);
        x[1] = difference(l, a, x[1]);
    } else if (p < n) {
        composite(l, p, n / p, x);
    } else if (n > 1) {
        prime(l, n, x);
    }
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Where part `part` of element i along the axis is, i and what lies after the axis being one sum with `inner`. */
static void place(const lowering *w, const dc_stage *s, bool planes, dc_ix before, int part,
                  dc_ix row, dc_ix inner, dc_ix pos[4])
{
    dc_kernel *k = w->k;
    const dc_ix q = s->after == 1 ? inner : dc_ix_div(k, inner, s->after);
    pos[0] = before;
    pos[planes ? 1 : 3] = dc_ix_const(k, part);
    pos[planes ? 2 : 1] = dc_ix_add(k, dc_ix_mul(k, row, s->s), q);
    pos[planes ? 3 : 2] = dc_ix_mod(k, inner, s->after);
}

/* Where it stores: the last stage of a transform has whatever axes that has. */
static dc_ix linear(dc_kernel *k, const dc_stage *s, const dc_ix pos[4])
{
    const int64_t n = s->radix * s->m * s->s;
    const int64_t planes[4] = {s->before, 2, n, s->after}, pairs[4] = {s->before, n, s->after, 2};
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < 4; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, (s->to_planes ? planes : pairs)[i]), pos[i]);
    return at;
}

static dc_ix row_of(dc_kernel *k, dc_ix p, int64_t by, int64_t more)
{
    return dc_ix_add(k, dc_ix_mul(k, p, by), dc_ix_const(k, more));
}

void dc_lower_stage(lowering *w, dc_ref r)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_stage s = dc_stage_of(w->fn, n);
    const int64_t dim[3] = {s.before, s.m, s.s * s.after};
    const line l = {k, (dc_dtype)n->dtype, s.sign};
    const int radix = (int)s.radix;
    number x[DC_DFT_RADIX];
    nest loops = {0};
    dc_ix at[3], pos[4];
    dc_lower_axes(w, false, "i", 3, dim, false, &loops, at);
    for (int j = 0; j < radix; j++) {
        const dc_ix row = row_of(k, at[1], 1, j * s.m);
        place(w, &s, s.from_planes, at[0], 0, row, at[2], pos);
        x[j].re = dc_lower_node(w, n->in[0], pos);
        place(w, &s, s.from_planes, at[0], 1, row, at[2], pos);
        x[j].im = dc_lower_node(w, n->in[0], pos);
    }
    transform(&l, radix, x);
    dc_stmt *store = dc_stmt_set(k, 2 * (uint32_t)radix);
    for (int i = 0; i < radix; i++) {
        if (s.m > 1 && i > 0) {
            const dc_ix factor[2] = {dc_ix_const(k, i), at[1]};
            const dc_vx c = dc_lower_node(w, n->in[1], factor);
            const dc_vx d = dc_lower_node(w, n->in[2], factor);
            x[i] = product(&l, x[i], c, s.sign > 0 ? d : negative(&l, d));
        }
        for (int part = 0; part < 2; part++) {
            place(w, &s, s.to_planes, at[0], part, row_of(k, at[1], radix, i), at[2], pos);
            store->put[2 * i + part] =
                (dc_put){0, linear(k, &s, pos), part == 0 ? x[i].re : x[i].im};
        }
    }
    k->root = dc_lower_wrap(k, &loops, store);
    for (uint32_t v = 1; v < k->vx.n; v++)
        k->flops += k->vx.at[v].kind == DC_VX_OP;
    k->flops *= dim[0] * dim[1] * dim[2];
}
