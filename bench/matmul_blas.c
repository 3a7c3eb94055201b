/*
 * Products by a BLAS for bench/matmul.py: so many in a row, so that the peer's language is not
 * measured. The library's function is handed in; all that are used have the arguments of cblas_sgemm
 * or of dnnl_sgemm.
 */
#include <stdint.h>
#include <string.h>

typedef void cblas_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                    int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct product {
    int64_t m, n, k, batch, chain;
    int64_t turned; /* 1: a lies transposed, 2: b */
} product;

static void multiply(void *fn, int is_dnnl, const product *p, const float *a, const float *b, float *c)
{
    const int ta = (p->turned & 1) != 0, tb = (p->turned & 2) != 0;
    const int64_t lda = ta ? p->m : p->k, ldb = tb ? p->k : p->n;
    if (is_dnnl)
        ((dnnl_fn *)fn)(ta ? 'T' : 'N', tb ? 'T' : 'N', p->m, p->n, p->k, 1, a, lda, b, ldb, 0, c, p->n);
    else
        ((cblas_fn *)fn)(101, ta ? 112 : 111, tb ? 112 : 111, (int)p->m, (int)p->n, (int)p->k, 1, a,
                         (int)lda, b, (int)ldb, 0, c, (int)p->n);
}

/* c: two results in turn, where products follow one another. Returns which has the last. */
int repeat(void *fn, int is_dnnl, const product *p, const float *a, const float *b, float *const *c,
           int64_t times)
{
    int last = 0;
    while (times-- > 0)
        for (int64_t i = 0; i < p->batch; i++) {
            const float *from = a + i * p->m * p->k;
            for (int64_t n = 0; n < p->chain; n++) {
                last = (int)(n & 1);
                multiply(fn, is_dnnl, p, from, b + i * p->k * p->n, c[last] + i * p->m * p->n);
                from = c[last];
            }
        }
    return last;
}
