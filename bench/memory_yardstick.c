/*
 * What the machine's memory gives, for bench/memory.py: the best copy and the best loop that only
 * reads. A number of threads share the bytes; each repeats its part together with the others. The
 * times of the repetitions go to `seconds`.
 */
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { COPY, COPY_PAST_CACHES, READ };

typedef struct part {
    char *to;
    const char *from;
    long bytes, n;
    int what, first;
    double *seconds;
    pthread_barrier_t *meet;
    float sum;
} part;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__AVX512F__)
#define V            __m512
#define LOAD(p)      _mm512_load_ps((const float *)(p))
#define STORE(p, v)  _mm512_store_ps((float *)(p), v)
#define STREAM(p, v) _mm512_stream_ps((float *)(p), v)
#define ADD(a, b)    _mm512_add_ps(a, b)
#define ZERO         _mm512_setzero_ps()
#define FIRST(v)     _mm512_cvtss_f32(v)
#else
#define V            __m256
#define LOAD(p)      _mm256_load_ps((const float *)(p))
#define STORE(p, v)  _mm256_store_ps((float *)(p), v)
#define STREAM(p, v) _mm256_stream_ps((float *)(p), v)
#define ADD(a, b)    _mm256_add_ps(a, b)
#define ZERO         _mm256_setzero_ps()
#define FIRST(v)     _mm256_cvtss_f32(v)
#endif

enum { STEP = 8 * (int)sizeof(V) };

static void once(part *p)
{
    const long w = (long)sizeof(V);
    if (p->what == COPY) {
        for (long i = 0; i < p->bytes; i += w)
            STORE(p->to + i, LOAD(p->from + i));
    } else if (p->what == COPY_PAST_CACHES) {
        for (long i = 0; i < p->bytes; i += 4 * w) {
            const V a = LOAD(p->from + i), b = LOAD(p->from + i + w), c = LOAD(p->from + i + 2 * w),
                    d = LOAD(p->from + i + 3 * w);
            STREAM(p->to + i, a);
            STREAM(p->to + i + w, b);
            STREAM(p->to + i + 2 * w, c);
            STREAM(p->to + i + 3 * w, d);
        }
        _mm_sfence();
    } else {
        V s[8] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
        for (long i = 0; i < p->bytes; i += STEP)
            for (int k = 0; k < 8; k++)
                s[k] = ADD(s[k], LOAD(p->from + i + k * w));
        for (int k = 1; k < 8; k++)
            s[0] = ADD(s[0], s[k]);
        p->sum += FIRST(s[0]);
    }
}

static void *work(void *arg)
{
    part *p = arg;
    for (long r = 0; r < p->n; r++) {
        pthread_barrier_wait(p->meet);
        const double start = now();
        once(p);
        pthread_barrier_wait(p->meet);
        if (p->first)
            p->seconds[r] = now() - start;
    }
    return 0;
}

float yardstick(int what, void *to, const void *from, long bytes, int threads, long n,
                double *seconds)
{
    pthread_t thread[64];
    part p[64];
    pthread_barrier_t meet;
    float sum = 0;
    pthread_barrier_init(&meet, 0, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        const long at = bytes / STEP * t / threads * STEP,
                   end = bytes / STEP * (t + 1) / threads * STEP;
        p[t] = (part){
            (char *)to + at, (const char *)from + at, end - at, n, what, t == 0, seconds, &meet, 0};
        if (t > 0)
            pthread_create(&thread[t], 0, work, &p[t]);
    }
    work(&p[0]);
    for (int t = 1; t < threads; t++)
        pthread_join(thread[t], 0);
    for (int t = 0; t < threads; t++)
        sum += p[t].sum;
    pthread_barrier_destroy(&meet);
    return sum;
}
