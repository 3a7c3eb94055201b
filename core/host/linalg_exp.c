/*
 * The exponential of a matrix by scaling, the Padé approximant of order 13 or less, and squaring (Higham 2005, "The scaling
 * and squaring method for the matrix exponential revisited"), in f64 whatever the matrix has. The exponential of the
 * transpose is the transpose, so how the matrix lies plays no part.
 */
#include "core/host/matrix.h"

#include <math.h>

/* Coefficients, from the constant on, of the approximants of these orders; norms up to which they are exact. */
static const struct order {
    int m;
    double most, b[14];
} orders[] = {
    {3, 1.495585217958292e-2, {120, 60, 12, 1}},
    {5, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7, 9.504178996162932e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     2.097847961257068,
     {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
    {13,
     5.371920351148152,
     {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
      10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}},
};

enum { MATRICES = 6 };

typedef struct work {
    const dc_lapack *l;
    int n;
    size_t size;
} work;

static void multiply(const work *w, const double *a, const double *b, double *out)
{
    const double one = 1, zero = 0;
    w->l->gemm[1]("N", "N", &w->n, &w->n, &w->n, &one, a, &w->n, b, &w->n, &zero, out, &w->n, 1, 1);
}

/* to += by * a */
static void add(const work *w, double *to, double by, const double *a)
{
    for (size_t i = 0; i < w->size; i++)
        to[i] += by * a[i];
}

static void add_identity(const work *w, double *to, double by)
{
    for (size_t i = 0; i < w->size; i += (size_t)w->n + 1)
        to[i] += by;
}

/* The largest sum of absolute values along an axis; NaN if one is. */
static double norm(const work *w, const double *a)
{
    double most = 0;
    for (size_t k = 0; k < w->size; k += (size_t)w->n) {
        double sum = 0;
        for (size_t i = 0; i < (size_t)w->n; i++)
            sum += fabs(a[k + i]);
        most = sum > most || isnan(sum) ? sum : most;
    }
    return most;
}

static const struct order *order_for(double norm)
{
    size_t i = 0;
    while (i + 1 < DC_COUNTOF(orders) && norm > orders[i].most)
        i++;
    return &orders[i];
}

/* U, the odd powers, and V, the even ones, of orders up to 9: powers of A^2 one after the other. */
static void sums(const work *w, const struct order *o, const double *a, const double *a2,
                 double *power, double *temp, double *u, double *v)
{
    memset(temp, 0, w->size * sizeof *temp);
    memset(v, 0, w->size * sizeof *v);
    add_identity(w, temp, o->b[1]);
    add_identity(w, v, o->b[0]);
    memcpy(power, a2, w->size * sizeof *power);
    for (int k = 2; k < o->m; k += 2) {
        add(w, v, o->b[k], power);
        add(w, temp, o->b[k + 1], power);
        if (k + 2 < o->m) {
            multiply(w, power, a2, u);
            memcpy(power, u, w->size * sizeof *power);
        }
    }
    multiply(w, a, temp, u);
}

/* The same of order 13, of powers up to 6. `a` is lost. */
static void sums_13(const work *w, double *a, double *a2, double *a4, double *a6, double *u,
                    double *v)
{
    const double *b = orders[DC_COUNTOF(orders) - 1].b;
    multiply(w, a2, a2, a4);
    multiply(w, a4, a2, a6);
    memset(v, 0, w->size * sizeof *v);
    add(w, v, b[13], a6);
    add(w, v, b[11], a4);
    add(w, v, b[9], a2);
    multiply(w, a6, v, u);
    add(w, u, b[7], a6);
    add(w, u, b[5], a4);
    add(w, u, b[3], a2);
    add_identity(w, u, b[1]);
    multiply(w, a, u, v);
    memcpy(u, v, w->size * sizeof *u);
    memset(v, 0, w->size * sizeof *v);
    add(w, v, b[12], a6);
    add(w, v, b[10], a4);
    add(w, v, b[8], a2);
    multiply(w, a6, v, a);
    memcpy(v, a, w->size * sizeof *v);
    add(w, v, b[6], a6);
    add(w, v, b[4], a4);
    add(w, v, b[2], a2);
    add_identity(w, v, b[0]);
}

/* (V - U)^-1 (V + U) to x, by LU; q is scratch memory. */
static void divide(const work *w, const double *u, const double *v, double *q, double *x, int *swap)
{
    const double one = 1;
    int info = -1;
    for (size_t i = 0; i < w->size; i++) {
        q[i] = v[i] - u[i];
        x[i] = v[i] + u[i];
    }
    w->l->getrf[1](&w->n, &w->n, q, &w->n, swap, &info);
    if (info < 0 || !dc_matrix_swaps(swap, w->n)) {
        for (size_t i = 0; i < w->size; i++)
            x[i] = NAN;
        return;
    }
    for (int i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->size && swap[i] - 1 != i; k += (size_t)w->n) {
            const double other = x[k + (size_t)i];
            x[k + (size_t)i] = x[k + (size_t)swap[i] - 1];
            x[k + (size_t)swap[i] - 1] = other;
        }
    w->l->trsm[1]("L", "L", "N", "U", &w->n, &w->n, &one, q, &w->n, x, &w->n, 1, 1, 1, 1);
    w->l->trsm[1]("L", "U", "N", "N", &w->n, &w->n, &one, q, &w->n, x, &w->n, 1, 1, 1, 1);
}

static size_t exp_scratch(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return MATRICES * n * n * sizeof(double) + n * sizeof(int);
}

static double exp_cost(const dc_host_call *c)
{
    return dc_matrix_work(20 * pow(dc_matrix_rows(c, 0), 3));
}

static void matrix_exp(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                       void *scratch)
{
    const work w = {l, dc_matrix_rows(c, 0),
                    (size_t)dc_matrix_rows(c, 0) * (size_t)dc_matrix_rows(c, 0)};
    double *m[MATRICES];
    for (size_t i = 0; i < MATRICES; i++)
        m[i] = (double *)scratch + i * w.size;
    int *swap = (int *)((double *)scratch + MATRICES * w.size);
    for (size_t i = 0; i < w.size; i++)
        m[0][i] = dc_matrix_get(c, in[0], i);
    const double size = norm(&w, m[0]);
    if (!isfinite(size)) {
        dc_matrix_fill(c, out, w.size, NAN);
        return;
    }
    const struct order *o = order_for(size);
    int squarings = size > o->most ? (int)ceil(log2(size / o->most)) : 0;
    for (size_t i = 0; i < w.size; i++)
        m[0][i] = ldexp(m[0][i], -squarings);
    multiply(&w, m[0], m[0], m[1]);
    if (o->m < 13)
        sums(&w, o, m[0], m[1], m[2], m[3], m[4], m[5]);
    else
        sums_13(&w, m[0], m[1], m[2], m[3], m[4], m[5]);
    divide(&w, m[4], m[5], m[0], m[1], swap);
    double *x = m[1], *y = m[2];
    for (; squarings > 0; squarings--) {
        multiply(&w, x, x, y);
        double *const other = x;
        x = y;
        y = other;
    }
    for (size_t i = 0; i < w.size; i++)
        dc_matrix_put(c, out, i, x[i]);
}

const dc_host_row dc_host_matrix_exp = {
    .run = matrix_exp, .scratch = exp_scratch, .cost = exp_cost, .needs_lapack = true};
