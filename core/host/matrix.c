#include "core/host/matrix.h"

/* In blocks that stay in the cache. */
#define DEFINE_TURN(name, type)                                      \
    static void name(type *to, const type *from, size_t n, size_t m) \
    {                                                                \
        enum { SIDE = 16 };                                          \
        for (size_t i = 0; i < n; i += SIDE)                         \
            for (size_t k = 0; k < m; k += SIDE)                     \
                for (size_t x = i; x < n && x < i + SIDE; x++)       \
                    for (size_t y = k; y < m && y < k + SIDE; y++)   \
                        to[y * n + x] = from[x * m + y];             \
    }

DEFINE_TURN(turn_f32, float)
DEFINE_TURN(turn_f64, double)

void dc_matrix_turn(const dc_host_call *c, void *to, const void *from, size_t n, size_t m)
{
    if (dc_matrix_f64(c))
        turn_f64(to, from, n, m);
    else
        turn_f32(to, from, n, m);
}

size_t dc_matrix_svd_space(const dc_host_call *c)
{
    const size_t k = (size_t)dc_matrix_smaller(c);
    return 4 * k * k + 7 * k +
           DC_MATRIX_BLOCK * (size_t)(dc_matrix_rows(c, 0) + dc_matrix_columns(c, 0)) + 1;
}

/* A^T is n x m column by column: its left vectors are V. */
bool dc_matrix_svd(const dc_host_call *c, const dc_lapack *l, void *s, void *u_t, void *v,
                   const void *from, void *a, void *space)
{
    const int m = dc_matrix_rows(c, 0), n = dc_matrix_columns(c, 0), k = dc_matrix_smaller(c);
    const int lwork = (int)dc_matrix_svd_space(c);
    const size_t size = (size_t)m * (size_t)n;
    int *whole = dc_matrix_at(c, space, (size_t)lwork);
    int info = 1;
    if (!dc_matrix_finite(c, from, size))
        return false;
    dc_matrix_copy(c, a, from, size);
    l->gesdd[dc_matrix_f64(c)](u_t != NULL ? "S" : "N", &n, &m, a, &n, s, v, &n, u_t, &k, space,
                               &lwork, whole, &info, 1);
    return info == 0;
}
