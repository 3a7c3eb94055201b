/*
 * Factorizations, one matrix at a time, by LAPACK. Its matrices lie column by column, so it sees
 * A^T of a matrix that lies row by row. Where that serves as well it is taken as it is: the lower triangle is the upper
 * one, Q R of A is (L Q)^T of A^T, U S V^T of A is V S U^T of A^T. Only LU needs the matrix turned.
 */
#include "core/host/matrix.h"

#include <math.h>

/* ---- Cholesky ------------------------------------------------------------------------------------ */

static double cholesky_cost(const dc_host_call *c)
{
    return dc_matrix_work(pow(dc_matrix_rows(c, 0), 3) / 3);
}

/* What libraries say of a NaN differs: OpenBLAS calls a pivot that is none success in some of its kernels. */
static bool pivots_positive(const dc_host_call *c, const void *factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(dc_matrix_get(c, factor, i * n + i) > 0))
            return false;
    return true;
}

static void cholesky(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                     void *scratch)
{
    const int n = dc_matrix_rows(c, 0);
    const size_t size = (size_t)n * (size_t)n;
    int info = 0;
    DC_UNUSED(scratch);
    dc_matrix_copy(c, out, in[0], size);
    l->potrf[dc_matrix_f64(c)]("U", &n, out, &n, &info, 1);
    const bool done = info == 0 && pivots_positive(c, out, (size_t)n);
    if (!done)
        dc_matrix_fill(c, out, size, NAN);
    for (size_t i = 0; i < (size_t)n && done; i++)
        dc_matrix_fill(c, dc_matrix_at(c, out, i * (size_t)n + i + 1), (size_t)n - i - 1, 0);
}

const dc_host_row dc_host_cholesky = {
    .run = cholesky, .scratch = dc_matrix_no_scratch, .cost = cholesky_cost, .needs_lapack = true};

/* ---- LU ------------------------------------------------------------------------------------------ */

static bool as_it_lies(const dc_host_call *c)
{
    return c->attr[0] != 0;
}

static size_t lu_scratch(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return (as_it_lies(c) ? 0 : n * n * dc_matrix_element(c)) + 2 * n * sizeof(int);
}

static double lu_cost(const dc_host_call *c)
{
    return dc_matrix_work(pow(dc_matrix_rows(c, 0), 3) * 2 / 3);
}

/* The numbers of the rows that the exchanges lead to. */
static void put_rows(const dc_host_call *c, void *out, int n, const int *swap, int *row)
{
    for (int i = 0; i < n; i++)
        row[i] = i;
    for (int i = 0; i < n; i++) {
        const int k = swap[i] - 1, other = row[k];
        row[k] = row[i];
        row[i] = other;
    }
    for (size_t i = 0; i < (size_t)n; i++)
        dc_matrix_put(c, out, i, row[i]);
}

/* P A = L U; with the attribute P A^T = L U, and the transpose of both factors: nothing is turned. */
static void lu(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
               void *scratch)
{
    const int n = dc_matrix_rows(c, 0);
    const size_t size = (size_t)n * (size_t)n;
    void *a = as_it_lies(c) ? out : scratch;
    int info = -1, *swap = as_it_lies(c) ? scratch : dc_matrix_at(c, scratch, size);
    if (as_it_lies(c))
        dc_matrix_copy(c, a, in[0], size);
    else
        dc_matrix_turn(c, a, in[0], (size_t)n, (size_t)n);
    l->getrf[dc_matrix_f64(c)](&n, &n, a, &n, swap, &info); /* info > 0: a zero in U, which shows */
    if (!as_it_lies(c))
        dc_matrix_turn(c, out, a, (size_t)n, (size_t)n);
    if (n > 0 && (info < 0 || !dc_matrix_swaps(swap, n))) {
        dc_matrix_fill(c, out, size, NAN);
        for (int i = 0; i < n; i++)
            swap[i] = i + 1;
    }
    put_rows(c, dc_matrix_at(c, out, size), n, swap, swap + n);
}

const dc_host_row dc_host_lu = {
    .run = lu, .scratch = lu_scratch, .cost = lu_cost, .needs_lapack = true};

/* ---- QR ------------------------------------------------------------------------------------------ */

static size_t qr_work(const dc_host_call *c)
{
    return DC_MATRIX_BLOCK * (size_t)(dc_matrix_rows(c, 0) + dc_matrix_columns(c, 0));
}

static size_t qr_scratch(const dc_host_call *c)
{
    return ((size_t)dc_matrix_rows(c, 0) * (size_t)dc_matrix_columns(c, 0) +
            (size_t)dc_matrix_smaller(c) + qr_work(c)) *
           dc_matrix_element(c);
}

static double qr_cost(const dc_host_call *c)
{
    return dc_matrix_work(4.0 * dc_matrix_rows(c, 0) * dc_matrix_smaller(c) *
                          (c->attr[0] ? dc_matrix_rows(c, 0) : dc_matrix_columns(c, 0)));
}

static void qr(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
               void *scratch)
{
    const int m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0), k = dc_matrix_smaller(c),
              columns = c->attr[0] ? m : k, t = dc_matrix_f64(c);
    const size_t size = (size_t)m * (size_t)n;
    const int lwork = (int)qr_work(c);
    void *tau = dc_matrix_at(c, scratch, size), *space = dc_matrix_at(c, tau, (size_t)k);
    void *r = dc_matrix_at(c, out, (size_t)m * (size_t)columns);
    int info = 0, first = 0;
    dc_matrix_copy(c, scratch, in[0], size);
    dc_matrix_fill(c, dc_matrix_at(c, r, (size_t)k * (size_t)n), (size_t)(columns - k) * (size_t)n,
                   0);
    if (size > 0)
        l->gelqf[t](&n, &m, scratch, &n, tau, space, &lwork, &first); /* A^T is n x m */
    for (size_t i = 0; i < (size_t)k; i++) { /* column i of L is row i of R, from i on */
        dc_matrix_fill(c, dc_matrix_at(c, r, i * (size_t)n), i, 0);
        dc_matrix_copy(c, dc_matrix_at(c, r, i * (size_t)n + i),
                       dc_matrix_at(c, scratch, i * (size_t)n + i), (size_t)n - i);
    }
    for (size_t i = 0; i < (size_t)m; i++) /* Q^T is made of the reflections, in place */
        dc_matrix_copy(c, dc_matrix_at(c, out, i * (size_t)columns),
                       dc_matrix_at(c, scratch, i * (size_t)n), (size_t)k);
    l->orglq[t](&columns, &m, &k, out, &columns, tau, space, &lwork, &info);
    if (first != 0 || info != 0)
        dc_matrix_fill(c, out, (size_t)dc_host_result_count(c), NAN);
}

const dc_host_row dc_host_qr = {
    .run = qr, .scratch = qr_scratch, .cost = qr_cost, .needs_lapack = true};

/* ---- eigenvalues of symmetric matrices ----------------------------------------------------------- */

static size_t eigh_work(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return 1 + 6 * n + 2 * n * n + DC_MATRIX_BLOCK * n;
}

static size_t eigh_scratch(const dc_host_call *c)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    return (n * n + eigh_work(c)) * dc_matrix_element(c) + (3 + 5 * n) * sizeof(int);
}

static double eigh_cost(const dc_host_call *c)
{
    return dc_matrix_work(9 * pow(dc_matrix_rows(c, 0), 3));
}

static double eigvalsh_cost(const dc_host_call *c)
{
    return dc_matrix_work(3 * pow(dc_matrix_rows(c, 0), 3));
}

/* The values to out; with vectors, the rows of scratch are the vectors. */
static bool symmetric(const dc_host_call *c, const dc_lapack *l, bool vectors, void *out,
                      const void *in, void *scratch)
{
    const int n = dc_matrix_rows(c, 0), lwork = (int)eigh_work(c), liwork = 3 + 5 * n;
    const size_t size = (size_t)n * (size_t)n;
    void *space = dc_matrix_at(c, scratch, size);
    int *whole = dc_matrix_at(c, space, (size_t)lwork);
    int info = 1;
    if (dc_matrix_finite(c, in, size)) {
        dc_matrix_copy(c, scratch, in, size);
        l->syevd[dc_matrix_f64(c)](vectors ? "V" : "N", "U", &n, scratch, &n, out, space, &lwork,
                                   whole, &liwork, &info, 1, 1);
    }
    return info == 0;
}

static void eigh(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                 void *scratch)
{
    const size_t n = (size_t)dc_matrix_rows(c, 0);
    if (symmetric(c, l, true, out, in[0], scratch))
        dc_matrix_turn(c, dc_matrix_at(c, out, n), scratch, n, n);
    else
        dc_matrix_fill(c, out, n * n + n, NAN);
}

static void eigvalsh(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                     void *scratch)
{
    if (!symmetric(c, l, false, out, in[0], scratch))
        dc_matrix_fill(c, out, (size_t)dc_matrix_rows(c, 0), NAN);
}

const dc_host_row dc_host_eigh = {
    .run = eigh, .scratch = eigh_scratch, .cost = eigh_cost, .needs_lapack = true};
const dc_host_row dc_host_eigvalsh = {
    .run = eigvalsh, .scratch = eigh_scratch, .cost = eigvalsh_cost, .needs_lapack = true};

/* ---- singular values ----------------------------------------------------------------------------- */

static size_t svd_scratch(const dc_host_call *c)
{
    return ((size_t)dc_matrix_rows(c, 0) * (size_t)dc_matrix_columns(c, 0) +
            dc_matrix_svd_space(c)) *
               dc_matrix_element(c) +
           8 * (size_t)dc_matrix_smaller(c) * sizeof(int);
}

static double svd_cost(const dc_host_call *c)
{
    return dc_matrix_work(14.0 * dc_matrix_rows(c, 0) * dc_matrix_columns(c, 0) *
                          dc_matrix_smaller(c));
}

static double svdvals_cost(const dc_host_call *c)
{
    return svd_cost(c) / 4;
}

/* U, S, V^T: of U^T and V column by column. */
static void svd(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                void *scratch)
{
    const size_t m = (size_t)dc_matrix_rows(c, 0), n = (size_t)dc_matrix_columns(c, 0),
                 k = (size_t)dc_matrix_smaller(c);
    void *s = dc_matrix_at(c, out, m * k);
    if (!dc_matrix_svd(c, l, s, out, dc_matrix_at(c, s, k), in[0], scratch,
                       dc_matrix_at(c, scratch, m * n)))
        dc_matrix_fill(c, out, (size_t)dc_host_result_count(c), NAN);
}

static void svdvals(const dc_host_call *c, const dc_lapack *l, void *out, const void *const *in,
                    void *scratch)
{
    const size_t size = (size_t)dc_matrix_rows(c, 0) * (size_t)dc_matrix_columns(c, 0);
    if (!dc_matrix_svd(c, l, out, NULL, NULL, in[0], scratch, dc_matrix_at(c, scratch, size)))
        dc_matrix_fill(c, out, (size_t)dc_matrix_smaller(c), NAN);
}

const dc_host_row dc_host_svd = {
    .run = svd, .scratch = svd_scratch, .cost = svd_cost, .needs_lapack = true};
const dc_host_row dc_host_svdvals = {
    .run = svdvals, .scratch = svd_scratch, .cost = svdvals_cost, .needs_lapack = true};
