/*
 * Discrete Fourier transforms of the interpreter: lines of doubles, by the smallest prime factor and then the rest; and
 * a stage of one as compilation makes them, term by term.
 */
#include "core/eval/eval_impl.h"
#include "core/ir/dft.h"

#include <math.h>
#include <string.h>

/* exp(sign 2 pi i a / n), of an angle that is brought into a turn as a whole number. */
static void turn(int sign, int64_t a, int64_t n, double *c, double *s)
{
    static const double quarter[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const int64_t e = a % n;
    const double angle = 2 * acos(-1) * (double)e / (double)n;
    const bool exact = 4 * e % n == 0;
    *c = exact ? quarter[4 * e / n][0] : cos(angle);
    *s = sign * (exact ? quarter[4 * e / n][1] : sin(angle));
}

/* n numbers, `step` apart, to the first n of `to`; work has room for 2 n. */
static void transform(int64_t n, int sign, const double *from, int64_t step, double *to,
                      double *work)
{
    int64_t p = 2;
    while (p * p <= n && n % p != 0)
        p++;
    p = n % p == 0 ? p : n;
    const int64_t m = n / p;
    if (n == 1) {
        to[0] = from[0];
        to[1] = from[1];
        return;
    }
    for (int64_t j = 0; j < p && m > 1; j++)
        transform(m, sign, from + 2 * j * step, step * p, work + 2 * j * m, to + 2 * j * m);
    for (int64_t j = 0; j < p && m == 1; j++) {
        work[2 * j] = from[2 * j * step];
        work[2 * j + 1] = from[2 * j * step + 1];
    }
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0, c, s;
        for (int64_t j = 0; j < p; j++) {
            const double *x = work + 2 * (j * m + k % m);
            turn(sign, j * k, n, &c, &s);
            re += x[0] * c - x[1] * s;
            im += x[0] * s + x[1] * c;
        }
        to[2 * k] = re;
        to[2 * k + 1] = im;
    }
}

/* Lines of a whole transform: before, n, after, 2. */
static dc_status run_lines(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t axis = n->attr[0], len = n->dim[axis];
    int64_t before = 1, after = 1;
    for (int k = 0; k < n->rank - 1; k++) {
        before *= k < axis ? n->dim[k] : 1;
        after *= k > axis ? n->dim[k] : 1;
    }
    DC_TRY(dc_eval_alloc(s, 6 * len, sizeof(double), &s->temp[0]));
    double *line = s->temp[0], *to = line + 2 * len, *work = to + 2 * len;
    for (int64_t b = 0; b < before; b++)
        for (int64_t a = 0; a < after; a++) {
            const int64_t at = (b * len * after + a) * 2;
            dc_job_look();
            for (int64_t k = 0; k < len; k++)
                dc_eval_get_f(s->mode, t, s->value[n->in[0]], at + 2 * k * after, 2, line + 2 * k);
            transform(len, (int)n->attr[1], line, 1, to, work);
            for (int64_t k = 0; k < len; k++)
                dc_eval_put_f(s->mode, t, s->value[r], at + 2 * k * after, 2, to + 2 * k);
        }
    return DC_OK;
}

/* ---- a stage --------------------------------------------------------------------------------- */

/* The element of part `part` at position i along the axis. */
static int64_t place(const dc_stage *x, bool planes, int64_t before, int part, int64_t i,
                     int64_t after)
{
    const int64_t n = x->radix * x->m * x->s;
    return planes ? ((before * 2 + part) * n + i) * x->after + after
                  : ((before * n + i) * x->after + after) * 2 + part;
}

static double element(const dc_eval_state *s, dc_ref r, int64_t at)
{
    double v;
    dc_eval_get_f(s->mode, (dc_dtype)dc_node_at(s->f, r)->dtype, s->value[r], at, 1, &v);
    return v;
}

static void run_result(dc_eval_state *s, dc_ref r, const dc_stage *x, int64_t before, int64_t p,
                       int64_t q, int64_t after, int64_t k)
{
    const dc_node *n = dc_node_at(s->f, r);
    double re = 0, im = 0, c, d;
    for (int64_t j = 0; j < x->radix; j++) {
        const int64_t at = (j * x->m + p) * x->s + q;
        const double a = element(s, n->in[0], place(x, x->from_planes, before, 0, at, after));
        const double b = element(s, n->in[0], place(x, x->from_planes, before, 1, at, after));
        turn(x->sign, j * k, x->radix, &c, &d);
        re += a * c - b * d;
        im += a * d + b * c;
    }
    if (x->m > 1) {
        const double a = re, b = im;
        c = element(s, n->in[1], k * x->m + p);
        d = x->sign * element(s, n->in[2], k * x->m + p);
        re = a * c - b * d;
        im = a * d + b * c;
    }
    const int64_t at = (p * x->radix + k) * x->s + q;
    const dc_dtype t = (dc_dtype)n->dtype;
    dc_eval_put_f(s->mode, t, s->value[r], place(x, x->to_planes, before, 0, at, after), 1, &re);
    dc_eval_put_f(s->mode, t, s->value[r], place(x, x->to_planes, before, 1, at, after), 1, &im);
}

dc_status dc_eval_fft(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    if (n->op == DC_OP_DFT)
        return run_lines(s, r);
    const dc_stage x = dc_stage_of(s->f, n);
    for (int64_t b = 0; b < x.before; b++)
        for (int64_t p = 0; p < x.m; p++)
            for (int64_t q = 0; q < x.s; q++)
                for (int64_t a = 0; a < x.after; a++)
                    for (int64_t k = 0; k < x.radix; k++)
                        run_result(s, r, &x, b, p, q, a, k);
    return DC_OK;
}
