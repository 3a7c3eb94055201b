/* Matrices of f32 or f64 in the host's memory, one of a batch: what the functions of linear algebra share. */
#ifndef DC_CORE_HOST_MATRIX_H
#define DC_CORE_HOST_MATRIX_H

#include "core/host/host_impl.h"

#include <string.h>

enum { DC_MATRIX_BLOCK = 64 }; /* columns that LAPACK works on at a time, at most */

static inline bool dc_matrix_f64(const dc_host_call *c)
{
    return c->in[0].dtype == DC_F64;
}

static inline size_t dc_matrix_element(const dc_host_call *c)
{
    return dc_matrix_f64(c) ? sizeof(double) : sizeof(float);
}

/* Of an operand. */
static inline int dc_matrix_rows(const dc_host_call *c, int operand)
{
    return (int)dc_host_dim(&c->in[operand], 2);
}

static inline int dc_matrix_columns(const dc_host_call *c, int operand)
{
    return (int)dc_host_dim(&c->in[operand], 1);
}

/* The smaller one of the first operand. */
static inline int dc_matrix_smaller(const dc_host_call *c)
{
    const int m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0);
    return m < n ? m : n;
}

static inline void *dc_matrix_at(const dc_host_call *c, const void *a, size_t i)
{
    return (char *)(uintptr_t)a + i * dc_matrix_element(c);
}

static inline double dc_matrix_get(const dc_host_call *c, const void *a, size_t i)
{
    return dc_matrix_f64(c) ? ((const double *)a)[i] : (double)((const float *)a)[i];
}

static inline void dc_matrix_put(const dc_host_call *c, void *a, size_t i, double v)
{
    if (dc_matrix_f64(c))
        ((double *)a)[i] = v;
    else
        ((float *)a)[i] = (float)v;
}

static inline void dc_matrix_fill(const dc_host_call *c, void *a, size_t n, double v)
{
    for (size_t i = 0; i < n; i++)
        dc_matrix_put(c, a, i, v);
}

static inline void dc_matrix_copy(const dc_host_call *c, void *to, const void *from, size_t n)
{
    memcpy(to, from, n * dc_matrix_element(c));
}

/* Do exchanges of n rows, as LAPACK numbers them, stay among the rows? */
static inline bool dc_matrix_swaps(const int *swap, int n)
{
    for (int i = 0; i < n; i++)
        if (swap[i] <= i || swap[i] > n)
            return false;
    return true;
}

static inline bool dc_matrix_finite(const dc_host_call *c, const void *a, size_t n)
{
    double sum = 0; /* of zeros, or NaN */
    for (size_t i = 0; i < n; i++)
        sum += 0 * dc_matrix_get(c, a, i);
    return sum == 0;
}

/* n x m to m x n. */
void dc_matrix_turn(const dc_host_call *c, void *to, const void *from, size_t n, size_t m);

/* Nanoseconds of n operations at 8 GFLOP/s, and a call. */
static inline double dc_matrix_work(double n)
{
    return 500 + n / 8;
}

static inline size_t dc_matrix_no_scratch(const dc_host_call *c)
{
    DC_UNUSED(c);
    return 0;
}

/*
 * Singular values of operand 0, m x n, k = min(m, n): s has k, descending. With vectors u_t (k x m) is U^T and v (n x k) is
 * V, both column by column; without, they are NULL. `a` has m n elements, `space` what dc_matrix_svd_space says, in
 * elements, then 8 k ints. False: a value that is not finite, or the iterations did not end.
 */
size_t dc_matrix_svd_space(const dc_host_call *c);
bool dc_matrix_svd(const dc_host_call *c, const dc_lapack *l, void *s, void *u_t, void *v,
                   const void *from, void *a, void *space);

#endif
