/*
 * Systems of equations and determinants, one matrix at a time, by BLAS and LAPACK. B and X lie row by row, so LAPACK sees
 * their transposes: A X = B is X^T A^T = B^T, with A^T as it is seen.
 */
#include "core/host/matrix.h"

#include <math.h>

static const float one_f32 = 1, zero_f32 = 0;
static const double one_f64 = 1, zero_f64 = 0;

static const void *one(const dc_host_call *c)
{
    return dc_matrix_f64(c) ? (const void *)&one_f64 : &one_f32;
}

static const void *zero(const dc_host_call *c)
{
    return dc_matrix_f64(c) ? (const void *)&zero_f64 : &zero_f32;
}

/* ---- triangular systems -------------------------------------------------------------------------- */

typedef struct triangle {
    bool upper, transposed, unit;
} triangle;

/* x is n x k: B first, then X. */
static void solve(const dc_host_call *c, const dc_lapack *l, const void *a, triangle t, void *x,
                  int n, int k)
{
    l->trsm[dc_matrix_f64(c)]("R", t.upper ? "L" : "U", t.transposed ? "T" : "N",
                              t.unit ? "U" : "N", &k, &n, one(c), a, &n, x, &k, 1, 1, 1, 1);
}

static double trsolve_cost(const dc_host_call *c)
{
    return dc_matrix_work((double)dc_matrix_rows(c, 0) * dc_matrix_rows(c, 0) *
                          dc_matrix_columns(c, 1));
}

static void trsolve(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                    void *scratch)
{
    const int n = dc_matrix_rows(c, 0), k = dc_matrix_columns(c, 1);
    const triangle t = {c->attr[0] != 0, c->attr[1] != 0, c->attr[2] != 0};
    DC_UNUSED(scratch);
    dc_matrix_copy(c, out, in[1], (size_t)n * (size_t)k);
    solve(c, l, in[0], t, out, n, k);
}

const dc_host_row dc_host_trsolve = {
    .run = trsolve, .scratch = dc_matrix_no_scratch, .cost = trsolve_cost, .needs_lapack = true};

/* ---- systems by LU ------------------------------------------------------------------------------- */

static size_t lusolve_scratch(const dc_host_call *c)
{
    return (size_t)dc_matrix_rows(c, 0) * (size_t)dc_matrix_columns(c, 2) * dc_matrix_element(c);
}

static double lusolve_cost(const dc_host_call *c)
{
    return dc_matrix_work(2.0 * dc_matrix_rows(c, 0) * dc_matrix_rows(c, 0) *
                          dc_matrix_columns(c, 2));
}

/* The number of the row of A that row i of L U is. It is a value like others, so it may be any, or a row twice. */
static size_t row_at(const dc_host_call *c, const void *lu, int n, int i)
{
    const double v = dc_matrix_get(c, lu, (size_t)n * (size_t)n + (size_t)i);
    return v >= 0 && v < n ? (size_t)v : 0;
}

/* The rows of x at the numbers, or the rows of x put there. */
static void exchange(const dc_host_call *c, const void *lu, void *to, const void *x, int n, int k,
                     bool put)
{
    if (put)
        dc_matrix_fill(c, to, (size_t)n * (size_t)k, 0);
    for (int i = 0; i < n; i++) {
        const size_t here = (size_t)i * (size_t)k, there = row_at(c, lu, n, i) * (size_t)k;
        dc_matrix_copy(c, dc_matrix_at(c, to, put ? there : here),
                       dc_matrix_at(c, x, put ? here : there), (size_t)k);
    }
}

/*
 * P A = L U: X is U^-1 L^-1 P B; for A^T, P^T L^-T U^-T B. Factors of the transpose, P A^T = L U, lie transposed: with
 * M = U^T below and N = L^T above the diagonal A is M N P.
 */
static void lusolve(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                    void *scratch)
{
    const int n = dc_matrix_rows(c, 0), k = dc_matrix_columns(c, 2);
    const bool transposed = c->attr[0] != 0, turned = c->attr[1] != 0;
    const triangle lower = {.transposed = transposed, .unit = !turned},
                   upper = {.upper = true, .transposed = transposed, .unit = turned};
    const bool put = transposed != turned; /* rows are exchanged at the end */
    void *x = put ? scratch : out;
    if (put)
        dc_matrix_copy(c, x, in[2], (size_t)n * (size_t)k);
    else
        exchange(c, in[1], x, in[2], n, k, false);
    solve(c, l, in[1], transposed ? upper : lower, x, n, k);
    solve(c, l, in[1], transposed ? lower : upper, x, n, k);
    if (put)
        exchange(c, in[1], out, x, n, k, true);
}

const dc_host_row dc_host_lusolve = {
    .run = lusolve, .scratch = lusolve_scratch, .cost = lusolve_cost, .needs_lapack = true};

/* ---- determinants -------------------------------------------------------------------------------- */

static double det_cost(const dc_host_call *c)
{
    return 20.0 * dc_matrix_rows(c, 0);
}

static size_t det_scratch(const dc_host_call *c)
{
    return (size_t)dc_matrix_rows(c, 0);
}

/* Of the rows: 1, or -1 where an odd number of exchanges puts them in order. A cycle of n takes n - 1. */
static double sign_of(const dc_host_call *c, const void *lu, char *seen)
{
    const int n = dc_matrix_rows(c, 0);
    double sign = 1;
    memset(seen, 0, (size_t)n);
    for (int i = 0; i < n; i++) {
        int length = 0;
        for (size_t k = (size_t)i; !seen[k]; k = row_at(c, lu, n, (int)k)) {
            seen[k] = 1;
            length++;
        }
        if (length > 0 && length % 2 == 0)
            sign = -sign;
    }
    return sign;
}

/* The determinant; with the attribute its sign and the logarithm of its absolute value. */
static void det(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                void *scratch)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    double sign = sign_of(c, in[1], scratch), value = sign, log_abs = 0;
    DC_UNUSED(l);
    for (size_t i = 0; i < n; i++) {
        const double u = dc_matrix_get(c, in[1], i * n + i);
        value *= u;
        sign *= u > 0 ? 1 : u < 0 ? -1 : u; /* 0, NaN */
        log_abs += log(fabs(u));
    }
    dc_matrix_put(c, out, 0, c->attr[0] ? sign : value);
    if (c->attr[0])
        dc_matrix_put(c, out, 1, log_abs);
}

const dc_host_row dc_host_det = {.run = det, .scratch = det_scratch, .cost = det_cost};

/* ---- least squares, pseudoinverse ---------------------------------------------------------------- */

/* What counts as zero beside the largest: the attribute has the bits of an f64. */
static double tolerance(const dc_host_call *c)
{
    return dc_value_of(DC_F64, (uint64_t)c->attr[0]);
}

static size_t larger(const dc_host_call *c)
{
    const size_t m = (size_t)dc_matrix_rows(c, 0), n = (size_t)dc_matrix_columns(c, 0);
    return m > n ? m : n;
}

static size_t lstsq_work(const dc_host_call *c)
{
    const size_t k = (size_t)dc_matrix_smaller(c), n = (size_t)dc_matrix_columns(c, 0);
    return 4 * k + 3 * n + 1 + DC_MATRIX_BLOCK * (n + 1 + (size_t)dc_matrix_columns(c, 1));
}

static size_t lstsq_scratch(const dc_host_call *c)
{
    const size_t m = (size_t)dc_matrix_rows(c, 0), n = (size_t)dc_matrix_columns(c, 0);
    return (m * n + larger(c) * (size_t)dc_matrix_columns(c, 1) + lstsq_work(c)) *
               dc_matrix_element(c) +
           n * sizeof(int);
}

static double lstsq_cost(const dc_host_call *c)
{
    const double m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0);
    return dc_matrix_work(4 * m * n * (dc_matrix_smaller(c) + dc_matrix_columns(c, 1)));
}

/* The least X of those for which A X is nearest to B, by QR with columns exchanged. */
static void lstsq(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                  void *scratch)
{
    const int m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0), k = dc_matrix_columns(c, 1),
              most = (int)larger(c), lwork = (int)lstsq_work(c);
    const size_t rows = (size_t)m, columns = (size_t)n, sides = (size_t)k, step = (size_t)most;
    void *a = scratch, *b = dc_matrix_at(c, a, rows * columns),
         *space = dc_matrix_at(c, b, step * sides);
    int *order = dc_matrix_at(c, space, (size_t)lwork);
    const double eps = tolerance(c);
    const float eps_f32 = (float)eps;
    int rank, info = 1;
    if (m > 0 && dc_matrix_finite(c, in[0], rows * columns) &&
        dc_matrix_finite(c, in[1], rows * sides)) {
        dc_matrix_turn(c, a, in[0], rows, columns);
        for (size_t i = 0; i < rows * sides; i++)
            dc_matrix_put(c, b, i % sides * step + i / sides, dc_matrix_get(c, in[1], i));
        memset(order, 0, columns * sizeof *order);
        l->gelsy[dc_matrix_f64(c)](&m, &n, &k, a, &m, b, &most, order,
                                   dc_matrix_f64(c) ? (const void *)&eps : &eps_f32, &rank, space,
                                   &lwork, &info);
    }
    for (size_t i = 0; i < columns * sides; i++)
        dc_matrix_put(c, out, i,
                      info == 0 ? dc_matrix_get(c, b, i % sides * step + i / sides)
                      : m == 0  ? 0
                                : NAN);
}

const dc_host_row dc_host_lstsq = {
    .run = lstsq, .scratch = lstsq_scratch, .cost = lstsq_cost, .needs_lapack = true};

static size_t pinv_scratch(const dc_host_call *c)
{
    const size_t m = (size_t)dc_matrix_rows(c, 0), n = (size_t)dc_matrix_columns(c, 0),
                 k = (size_t)dc_matrix_smaller(c);
    return (m * n + k * (m + n + 1) + dc_matrix_svd_space(c)) * dc_matrix_element(c) +
           8 * k * sizeof(int);
}

static double pinv_cost(const dc_host_call *c)
{
    return dc_matrix_work(16.0 * dc_matrix_rows(c, 0) * dc_matrix_columns(c, 0) *
                          dc_matrix_smaller(c));
}

/* V S^-1 U^T of the singular values that are large enough. What lies n x m row by row is its transpose, U S^-1 V^T. */
static void pinv(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                 void *scratch)
{
    const int m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0), k = dc_matrix_smaller(c);
    void *s = scratch, *u_t = dc_matrix_at(c, s, (size_t)k),
         *v = dc_matrix_at(c, u_t, (size_t)k * (size_t)m),
         *a = dc_matrix_at(c, v, (size_t)k * (size_t)n),
         *space = dc_matrix_at(c, a, (size_t)m * (size_t)n);
    if (!dc_matrix_svd(c, l, s, u_t, v, in[0], a, space)) {
        dc_matrix_fill(c, out, (size_t)m * (size_t)n, NAN);
        return;
    }
    const double least = tolerance(c) * dc_matrix_get(c, s, 0);
    for (size_t i = 0; i < (size_t)k; i++) {
        const double value = dc_matrix_get(c, s, i), by = value > least ? 1 / value : 0;
        for (size_t x = i * (size_t)n; x < (i + 1) * (size_t)n; x++)
            dc_matrix_put(c, v, x, dc_matrix_get(c, v, x) * by);
    }
    l->gemm[dc_matrix_f64(c)]("T", "T", &m, &n, &k, one(c), u_t, &k, v, &n, zero(c), out, &m, 1, 1);
}

const dc_host_row dc_host_pinv = {
    .run = pinv, .scratch = pinv_scratch, .cost = pinv_cost, .needs_lapack = true};
