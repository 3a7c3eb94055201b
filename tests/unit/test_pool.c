/*
 * backends/cpu/pool: every work item is run exactly once, whatever the number of threads;
 * scratch belongs to one thread; threads sleep, wake up and end.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "backends/cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "tests/t.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { MOST = 5000 };

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void use(dc_job *j)
{
    static const dc_opts opt;
    dc_job_init(j, &opt, NULL);
}

/* What a piece of work leaves behind; work items are apart, the rest is counted. */
typedef struct ledger {
    uint32_t runs[MOST];
    int64_t step;
    _Atomic uint32_t pieces, odd, elsewhere;
    void *mine;    /* scratch of the caller */
    long nap;      /* microseconds that other threads take longer for a piece */
    bool use_room; /* write to scratch */
    bool alone;    /* one thread takes all at once */
    bool patient;  /* the caller rests at its first piece until another thread has begun one */
} ledger;

static void note(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    ledger *l = ctx;
    atomic_fetch_add(&l->pieces, 1);
    if (begin % l->step != 0 || (end - begin > l->step && !l->alone) || end <= begin)
        atomic_fetch_add(&l->odd, 1);
    if (scratch != l->mine) {
        atomic_fetch_add(&l->elsewhere, 1);
        if (l->nap > 0)
            sleep_us(l->nap);
    } else if (l->patient) {
        for (int ms = 0; ms < 60000 && atomic_load(&l->elsewhere) == 0; ms++)
            sleep_us(1000);
    }
    int64_t *room = scratch;
    for (int64_t i = begin; i < end; i++) {
        if (l->use_room)
            room[0] = room[7] = i;
        l->runs[i]++;
        if (l->use_room && (room[0] != i || room[7] != i))
            atomic_fetch_add(&l->odd, 1);
    }
}

static void find_mine(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    ledger *l = ctx;
    (void)begin, (void)end;
    l->mine = scratch;
}

static bool run_all(dc_cpu_pool *p, ledger *l, int64_t n, int64_t step)
{
    memset(l->runs, 0, sizeof l->runs);
    l->step = step;
    atomic_store(&l->pieces, 0);
    atomic_store(&l->odd, 0);
    dc_cpu_pool_run(p, note, l, n, step);
    for (int64_t i = 0; i < MOST; i++)
        if (l->runs[i] != (i < n))
            return false;
    return atomic_load(&l->odd) == 0 &&
           atomic_load(&l->pieces) <= (uint32_t)((n + step - 1) / step);
}

static dc_cpu_pool *open_pool(dc_job *j, int64_t threads, ledger *l)
{
    dc_cpu_pool *p = dc_cpu_pool_new(threads);
    *l = (ledger){.use_room = true, .alone = threads == 1};
    CHECK_EQ(dc_cpu_pool_scratch(p, j, 64), DC_OK);
    dc_cpu_pool_run_here(p, find_mine, l, 1);
    return p;
}

static void test_cover(dc_job *j)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 999, 1000, 1001, 4999};
    static const int64_t steps[] = {1, 2, 3, 64, 700, 10000};
    static ledger l;
    for (int64_t threads = 1; threads <= 8; threads++) {
        dc_cpu_pool *p = open_pool(j, threads, &l);
        CHECK_EQ(dc_cpu_pool_width(p), threads);
        for (size_t n = 0; n < DC_COUNTOF(sizes); n++)
            for (size_t s = 0; s < DC_COUNTOF(steps); s++)
                if (!CHECK(run_all(p, &l, sizes[n], steps[s] < sizes[n] ? steps[s] : sizes[n] + 1)))
                    printf("%d threads, %d in pieces of %d\n", (int)threads, (int)sizes[n],
                           (int)steps[s]);
        dc_cpu_pool_free(p);
    }
}

static void add_up(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    _Atomic int64_t *sum = ctx;
    int64_t part = 0;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        part += i;
    atomic_fetch_add(sum, part);
}

/* One after the other with no time between, then with pauses in which all threads fall asleep. */
static void test_many(void)
{
    for (int64_t threads = 2; threads <= 8; threads *= 2) {
        dc_cpu_pool *p = dc_cpu_pool_new(threads);
        _Atomic int64_t sum = 0;
        for (int k = 0; k < 3000; k++)
            dc_cpu_pool_run(p, add_up, &sum, 100, 7);
        CHECK_EQ(sum, 3000 * 4950);
        atomic_store(&sum, 0);
        for (int k = 0; k < 40; k++) {
            sleep_us(k % 4 * 300);
            dc_cpu_pool_run(p, add_up, &sum, 1000, 9);
        }
        CHECK_EQ(sum, 40 * 499500);
        dc_cpu_pool_free(p);
    }
}

/* A thread that is slow: the caller has nothing left, spins, and sleeps until it is through. */
static void test_slow_worker(dc_job *j)
{
    static ledger l;
    dc_cpu_pool *p = open_pool(j, 2, &l);
    l.nap = 2000;
    for (int k = 0; k < 20; k++) {
        CHECK(run_all(p, &l, 4000, 1000));
        if (k == 0)
            sleep_us(1000);
    }
    _Atomic int64_t sum = 0;
    dc_cpu_pool_run(p, add_up, &sum, 100, 50); /* usable afterwards */
    CHECK_EQ(sum, 4950);
    dc_cpu_pool_free(p);
}

/* While the caller is held up, others do what is left; however busy the machine is. */
static void test_shared(dc_job *j)
{
    static ledger l;
    for (int64_t threads = 2; threads <= 4; threads++) {
        dc_cpu_pool *p = open_pool(j, threads, &l);
        l.patient = true;
        CHECK(run_all(p, &l, MOST, 1));
        CHECK(atomic_load(&l.elsewhere) > 0);
        dc_cpu_pool_free(p);
    }
}

static void test_start_stop(dc_job *j)
{
    static ledger l;
    for (int k = 0; k < 200; k++) {
        dc_cpu_pool *p = open_pool(j, 1 + k % 5, &l);
        if (k % 7 != 0) /* else its threads are never started */
            CHECK(run_all(p, &l, 500, 1 + k));
        if (k % 11 == 0)
            sleep_us(200);
        dc_cpu_pool_free(p);
    }
    dc_cpu_pool_free(NULL);
}

static void *run_pool(void *arg)
{
    ledger *l = calloc(1, sizeof *l);
    dc_job j;
    bool ok = true;
    use(&j);
    dc_cpu_pool *p = dc_cpu_pool_new(3);
    ok &= dc_cpu_pool_scratch(p, &j, 64) == DC_OK;
    l->use_room = true;
    for (int k = 0; k < 100; k++)
        ok &= run_all(p, l, 1000 + k, 1 + k);
    dc_cpu_pool_free(p);
    dc_job_fini(&j);
    free(l);
    *(bool *)arg = ok;
    return NULL;
}

static void test_together(void)
{
    pthread_t thread[4];
    bool ok[4] = {0};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, run_pool, &ok[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(ok[i]);
    }
}

static void touch(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    const size_t bytes = *(const size_t *)ctx;
    for (int64_t i = begin; i < end; i++)
        memset(scratch, (int)i, bytes);
}

static void test_scratch(dc_job *j)
{
    static const size_t sizes[] = {1, 64, 10, 100000, 3};
    dc_cpu_pool *p = dc_cpu_pool_new(3);
    CHECK_EQ(dc_cpu_pool_scratch(p, j, 0), DC_OK);
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        size_t bytes = sizes[i];
        CHECK_EQ(dc_cpu_pool_scratch(p, j, bytes), DC_OK);
        dc_cpu_pool_run(p, touch, &bytes, 30, 1);
    }
    CHECK_EQ(dc_cpu_pool_scratch(p, j, SIZE_MAX / 2), DC_E_NOMEM);
    j->err = (dc_err){0};
    dc_cpu_pool_run(p, touch, &(size_t){100000}, 30, 1); /* what there was is still there */
    dc_cpu_pool_free(p);
}

#if defined(__x86_64__)
static void flush_a_denormal(void *ctx, void *scratch, int64_t begin, int64_t end)
{
    _Atomic uint32_t *wrong = ctx;
    volatile float tiny = 1e-38f, out;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        out = tiny * 0.01f;
        if (out != 0)
            atomic_fetch_add(wrong, 1);
    }
    sleep_us(100);
}

/* All threads compute as the caller does, whatever it set after they were started. */
static void test_rounding(void)
{
    const unsigned before = _mm_getcsr();
    _Atomic uint32_t wrong = 0;
    dc_cpu_pool *p = dc_cpu_pool_new(2);
    dc_cpu_pool_run(p, flush_a_denormal, &wrong, 40, 1);
    CHECK_EQ(wrong, 40);
    wrong = 0;
    _mm_setcsr(before | 0x8000);
    dc_cpu_pool_run(p, flush_a_denormal, &wrong, 40, 1);
    _mm_setcsr(before);
    CHECK_EQ(wrong, 0);
    dc_cpu_pool_run(p, flush_a_denormal, &wrong, 40, 1);
    CHECK_EQ(wrong, 40);
    dc_cpu_pool_free(p);
}
#else
static void test_rounding(void)
{
    T_SKIP("the control word of the FPU is known for x86-64 only");
}
#endif

static void test_width(void)
{
    dc_cpu_pool *p = dc_cpu_pool_new(0);
    CHECK(dc_cpu_pool_width(p) >= 1 && dc_cpu_pool_width(p) <= DC_CPU_POOL_MOST);
    dc_cpu_pool_free(p);
    p = dc_cpu_pool_new(1000);
    CHECK_EQ(dc_cpu_pool_width(p), DC_CPU_POOL_MOST);
    dc_cpu_pool_free(p);
    p = dc_cpu_pool_new(-1);
    CHECK(dc_cpu_pool_width(p) >= 1);
    dc_cpu_pool_free(p);
}

int main(void)
{
    dc_job j;
    use(&j);
    test_width();
    test_cover(&j);
    test_many();
    test_slow_worker(&j);
    test_shared(&j);
    test_start_stop(&j);
    test_together();
    test_scratch(&j);
    test_rounding();
    dc_job_fini(&j);
    return t_done();
}
