/*
 * Eigenvalues and right eigenvectors of any square matrix, by LAPACK's geev: complex numbers, as pairs. Vectors have the
 * norm 1 and a real largest element. Conjugate pairs stand side by side, that with the positive imaginary part first.
 */
#include "core/host/matrix.h"

#include <math.h>

static size_t work_of(const dc_host_call *c)
{
    return (4 + DC_MATRIX_BLOCK) * (size_t)dc_matrix_rows(c, 0);
}

/* The matrix, its vectors, both parts of the values, what geev asks for. */
static size_t eig_scratch(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return (2 * n * n + 2 * n + work_of(c)) * dc_matrix_element(c);
}

static size_t eigvals_scratch(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return (n * n + 2 * n + work_of(c)) * dc_matrix_element(c);
}

static double eig_cost(const dc_host_call *c)
{
    return dc_matrix_work(25 * pow(dc_matrix_rows(c, 0), 3));
}

static double eigvals_cost(const dc_host_call *c)
{
    return dc_matrix_work(10 * pow(dc_matrix_rows(c, 0), 3));
}

static void put_pair(const dc_host_call *c, void *out, size_t i, double re, double im)
{
    dc_matrix_put(c, out, 2 * i, re);
    dc_matrix_put(c, out, 2 * i + 1, im);
}

/* Columns k and k + 1 of v, n numbers each, are the parts of a vector and, with the sign turned, of its conjugate. */
static void put_conjugates(const dc_host_call *c, void *out, const void *v, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++) {
        const double re = dc_matrix_get(c, v, k * n + i), im = dc_matrix_get(c, v, (k + 1) * n + i);
        put_pair(c, out, i * n + k, re, im);
        put_pair(c, out, i * n + k + 1, re, -im);
    }
}

static void put_real(const dc_host_call *c, void *out, const void *v, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        put_pair(c, out, i * n + k, dc_matrix_get(c, v, k * n + i), 0);
}

/* v is NULL where no vectors are wanted. */
static void general(const dc_host_call *c, const dc_lapack *l, void *out, const void *in, void *a,
                    void *re, void *v)
{
    const int n = dc_matrix_rows(c, 0), lwork = (int)work_of(c);
    const size_t size = (size_t)n * (size_t)n, all = (size_t)n;
    void *im = dc_matrix_at(c, re, all), *work = dc_matrix_at(c, im, all);
    int info = 1;
    if (dc_matrix_finite(c, in, size)) {
        dc_matrix_turn(c, a, in, all, all);
        l->geev[dc_matrix_f64(c)]("N", v != NULL ? "V" : "N", &n, a, &n, re, im, NULL, &n, v, &n,
                                  work, &lwork, &info, 1, 1);
    }
    /* Pairs of conjugates: the last number has its other half before it. */
    bool pairs = info == 0;
    for (size_t k = 0; pairs && k < all; k++)
        if (dc_matrix_get(c, im, k) != 0)
            pairs = ++k < all;
    if (!pairs) {
        dc_matrix_fill(c, out, (size_t)dc_host_result_count(c), NAN);
        return;
    }
    for (size_t k = 0; k < all; k++)
        put_pair(c, out, k, dc_matrix_get(c, re, k), dc_matrix_get(c, im, k));
    void *vectors = dc_matrix_at(c, out, 2 * all);
    for (size_t k = 0; v != NULL && k < all; k++) {
        if (dc_matrix_get(c, im, k) == 0)
            put_real(c, vectors, v, all, k);
        else
            put_conjugates(c, vectors, v, all, k++);
    }
}

static void eig(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                void *scratch)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    void *v = dc_matrix_at(c, scratch, n * n);
    general(c, l, out, in[0], scratch, dc_matrix_at(c, v, n * n), v);
}

static void eigvals(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                    void *scratch)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    general(c, l, out, in[0], scratch, dc_matrix_at(c, scratch, n * n), NULL);
}

const dc_host_row dc_host_eig = {
    .run = eig, .scratch = eig_scratch, .cost = eig_cost, .needs_lapack = true};
const dc_host_row dc_host_eigvals = {
    .run = eigvals, .scratch = eigvals_scratch, .cost = eigvals_cost, .needs_lapack = true};
