/*
 * The yardstick of bench/mlp.py: the same training step by hand, its products through cblas_sgemm of
 * whatever library is given, the rest as loops that the compiler makes vectors of.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef void sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                   int lda, const float *b, int ldb, float beta, float *c, int ldc);

enum { ROWS = 101, PLAIN = 111, TURNED = 112, MOST = 8 };

typedef struct net {
    int layers, batch, sizes[MOST + 1], adam;
    float rate, power1, power2;
    sgemm *product;
    const unsigned char *x;
    const int *y;
    float *w[2 * MOST], *m[2 * MOST], *v[2 * MOST],
        *g[2 * MOST];                 /* weights, then bias, of each layer */
    float *h[MOST + 1], *d[MOST + 1]; /* what goes into a layer, and its gradient */
} net;

static float *room(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    memset(p, 0, n * sizeof *p);
    return p;
}

static long count_of(const net *a, int p)
{
    const int l = p / 2;
    return (long)a->sizes[l + 1] * (p % 2 == 0 ? a->sizes[l] : 1);
}

net *mlp_new(int layers, const int *sizes, int batch, int adam, float rate, sgemm *product,
             const unsigned char *x, const int *y, float *const *w)
{
    net *a = calloc(1, sizeof *a);
    *a = (net){.layers = layers, .batch = batch, .adam = adam, .rate = rate, .product = product};
    a->power1 = a->power2 = 1;
    a->x = x;
    a->y = y;
    memcpy(a->sizes, sizes, (size_t)(layers + 1) * sizeof *sizes);
    for (int p = 0; p < 2 * layers; p++) {
        const size_t n = (size_t)count_of(a, p);
        a->w[p] = room(n);
        memcpy(a->w[p], w[p], n * sizeof(float));
        a->m[p] = room(n);
        a->v[p] = room(n);
        a->g[p] = room(n);
    }
    for (int l = 0; l <= layers; l++) {
        a->h[l] = room((size_t)batch * (size_t)sizes[l]);
        a->d[l] = room((size_t)batch * (size_t)sizes[l]);
    }
    return a;
}

static void forward(net *a)
{
    const long pixels = (long)a->batch * a->sizes[0];
#pragma omp parallel for simd if (pixels > 20000)
    for (long i = 0; i < pixels; i++)
        a->h[0][i] = (float)a->x[i] * (1.0f / 255);
    for (int l = 0; l < a->layers; l++) {
        const int from = a->sizes[l], to = a->sizes[l + 1], last = l == a->layers - 1;
        float *h = a->h[l + 1];
        const float *bias = a->w[2 * l + 1];
        a->product(ROWS, PLAIN, PLAIN, a->batch, to, from, 1, a->h[l], from, a->w[2 * l], to, 0, h,
                   to);
        for (int r = 0; r < a->batch; r++)
#pragma omp simd
            for (int c = 0; c < to; c++) {
                const float z = h[r * to + c] + bias[c];
                h[r * to + c] = last || z > 0 ? z : 0;
            }
    }
}

/* And the gradient of the last layer's output. */
static float loss_of(net *a)
{
    const int n = a->sizes[a->layers];
    float loss = 0;
    for (int r = 0; r < a->batch; r++) {
        const float *z = a->h[a->layers] + r * n;
        float *d = a->d[a->layers] + r * n, most = z[0], sum = 0;
        for (int c = 1; c < n; c++)
            most = z[c] > most ? z[c] : most;
        for (int c = 0; c < n; c++)
            sum += d[c] = expf(z[c] - most);
        loss -= z[a->y[r]] - most - logf(sum);
        for (int c = 0; c < n; c++)
            d[c] = (d[c] / sum - (float)(c == a->y[r])) / (float)a->batch;
    }
    return loss / (float)a->batch;
}

static void backward(net *a)
{
    for (int l = a->layers - 1; l >= 0; l--) {
        const int from = a->sizes[l], to = a->sizes[l + 1];
        const float *d = a->d[l + 1], *h = a->h[l];
        float *bias = a->g[2 * l + 1], *below = a->d[l];
        a->product(ROWS, TURNED, PLAIN, from, to, a->batch, 1, h, from, d, to, 0, a->g[2 * l], to);
        memset(bias, 0, (size_t)to * sizeof *bias);
        for (int r = 0; r < a->batch; r++)
#pragma omp simd
            for (int c = 0; c < to; c++)
                bias[c] += d[r * to + c];
        if (l == 0)
            return;
        a->product(ROWS, PLAIN, TURNED, a->batch, from, to, 1, d, to, a->w[2 * l], to, 0, below,
                   from);
#pragma omp simd
        for (int i = 0; i < a->batch * from; i++)
            below[i] = h[i] > 0 ? below[i] : 0;
    }
}

static void update(net *a)
{
    a->power1 *= 0.9f;
    a->power2 *= 0.999f;
    const float rate = a->rate / (1 - a->power1), scale = 1 / (1 - a->power2);
    for (int p = 0; p < 2 * a->layers; p++) {
        const long n = count_of(a, p);
        float *restrict w = a->w[p], *restrict m = a->m[p], *restrict v = a->v[p];
        const float *restrict g = a->g[p];
        if (a->adam) {
#pragma omp parallel for simd if (n > 20000)
            for (long i = 0; i < n; i++) {
                m[i] = 0.9f * m[i] + 0.1f * g[i];
                v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
                w[i] -= rate * m[i] / (sqrtf(v[i] * scale) + 1e-8f);
            }
        } else {
#pragma omp parallel for simd if (n > 20000)
            for (long i = 0; i < n; i++)
                w[i] -= a->rate * g[i];
        }
    }
}

float mlp_run(net *a, long n)
{
    float loss = 0;
    while (n-- > 0) {
        forward(a);
        loss = loss_of(a);
        backward(a);
        update(a);
    }
    return loss;
}
