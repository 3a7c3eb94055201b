/*
 * Memory that runs out, for one test program: the n-th allocation of an operation fails, for rising
 * n until the operation succeeds; once alone, and once with all that follow it. Where there are too
 * many, one of every stretch is taken: other ones in each run, since how many there are, and which is the
 * n-th, depends on the machine. Seed and stretch are printed.
 *
 *   test_nomem_NAME [SEED]    a share; a fresh one without a seed
 *   test_nomem_NAME all       each of them (scripts/test long)
 *
 * After each failure the status is NOMEM, what the operation held is given back to the last block,
 * and the same operation then succeeds with the result that it has otherwise.
 *
 * The linker sends allocations of our own objects through the functions below
 * (tests/CMakeLists.txt); shared libraries keep theirs. Arenas are built with blocks for one
 * object, so that each of their objects is an allocation, too.
 */
#ifndef DC_TESTS_NOMEM_H
#define DC_TESTS_NOMEM_H

#include "backends/registry.h"
#include "core/runtime/storage.h"
#include "jit/jit.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/rng.h"
#include "tests/unit/trim.h"

/* ---- memory that runs out ---- */

static struct {
    _Atomic bool counting;
    _Atomic long n;   /* asked for since start_failing(), by any thread */
    long first, last; /* these fail */
    _Atomic long failed;
    _Atomic long blocks; /* held by us, always counted */
} mem;

static inline bool refused(void)
{
    if (!mem.counting)
        return false;
    const long n = ++mem.n;
    const bool no = n >= mem.first && n <= mem.last;
    mem.failed += no;
    return no;
}

static inline void *got(void *p)
{
    mem.blocks += p != NULL;
    return p;
}

static inline void start_failing(long first, long last)
{
    mem.n = 0;
    mem.failed = 0;
    mem.first = first;
    mem.last = last;
    mem.counting = true;
}

/* Did anything fail? */
static inline bool stop_failing(void)
{
    mem.counting = false;
    return mem.failed > 0;
}

#define WRAP(result, name, parameters)      \
    extern result __real_##name parameters; \
    extern result __wrap_##name parameters; \
    result __wrap_##name parameters

WRAP(void *, malloc, (size_t n))
{
    return refused() ? NULL : got(__real_malloc(n));
}

WRAP(void *, calloc, (size_t n, size_t size))
{
    return refused() ? NULL : got(__real_calloc(n, size));
}

WRAP(void *, realloc, (void *p, size_t n))
{
    void *q = refused() ? NULL : __real_realloc(p, n);
    mem.blocks += p == NULL && q != NULL;
    return q;
}

WRAP(void *, aligned_alloc, (size_t align, size_t n))
{
    return refused() ? NULL : got(__real_aligned_alloc(align, n));
}

WRAP(void, free, (void *p))
{
    mem.blocks -= p != NULL;
    __real_free(p);
}

WRAP(void *, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t from))
{
    return refused() ? MAP_FAILED : got(__real_mmap(at, n, protection, flags, fd, from));
}

WRAP(int, munmap, (void *at, size_t n))
{
    mem.blocks--;
    return __real_munmap(at, n);
}

/* ---- results ---- */

/* What the first run of a trial, in which nothing fails, found; the others must find the same. */
static struct {
    bool known;
    unsigned char at[1 << 15];
    size_t n, read;
} expected;

static inline void same(const void *bytes, size_t n)
{
    if (!expected.known && expected.n + n <= sizeof expected.at) {
        memcpy(expected.at + expected.n, bytes, n);
        expected.n += n;
        return;
    }
    CHECK(expected.read + n <= expected.n && memcmp(expected.at + expected.read, bytes, n) == 0);
    expected.read += n;
}

/* ---- a context ---- */

static dc_rt *rt;
static dc_job *job;
static rng dice;
static bool every; /* allocation fails once; else a share of them */
static size_t heard;

static inline void nomem_begin(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that a crash has a place */
    every = argc > 1 && strcmp(argv[1], "all") == 0;
    dice.state = every ? 0 : rng_seed(argc, argv, (uint64_t)time(NULL));
}

static inline void hear(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    (void)ctx;
    (void)text;
    heard += n;
}

static inline void must(bool ok, const char *what)
{
    if (ok)
        return;
    char why[600] = "";
    if (job != NULL)
        dc_err_render(&job->err, 0, why, sizeof why);
    printf("broken: %s: %s\n", what, why);
    exit(1);
}

static inline void open_world(const char *device, const dc_opts *opt, const char *channels)
{
    dc_device *d;
    bool interpret;
    dc_log log = {.write = hear};
    dc_log_select(&log, channels);
    rt = dc_rt_new(opt, &log);
    job = &rt->job;
    interpret = false;
    must((dc_sim_is(device) ? dc_sim_open(job, device, &d)
                            : dc_backend_open(job, device, &d, &interpret)) == DC_OK,
         device);
    dc_rt_set_device(rt, d, interpret);
}

static inline void close_world(void)
{
    CHECK_EQ(rt->stats.bytes_live, 0);
    CHECK(rt->arena == NULL && rt->execs == NULL && rt->arena_users == 0);
    dc_rt_free(rt);
    CHECK_EQ(mem.blocks, 0);
    rt = NULL;
    job = NULL;
}

/* ---- trials ---- */

typedef struct trial {
    const char *name;
    void (*before)(void);                   /* makes what the operation works on; or NULL */
    dc_status (*body)(dc_job *, void *ctx); /* the operation */
    void (*refused)(void);                  /* it changed nothing; or NULL */
    void (*after)(bool done);               /* the result is right; everything is given back */
    int most;                               /* allocations that are made to fail */
    bool bare;                              /* an entry: sets its own recovery point */
    bool evicts; /* holders of old values may have got copies of their own before it failed */
    bool timed;  /* by the clock: how many allocations there are differs from run to run */
} trial;

static inline dc_status attempt(const trial *t)
{
    return t->bare ? t->body(NULL, NULL) : dc_protect(job, t->body, NULL);
}

/* Is all scratch memory of an entry given back? A context keeps a block of it. */
static inline bool is_rewound(void)
{
    const dc_mark none = {0}, idle = job == &rt->job ? rt->idle : none;
    return job->scratch.top == idle.top && job->scratch.used == idle.used;
}

static inline void check_failure(const trial *t, dc_status status, uint64_t live)
{
    CHECK_EQ(status, DC_E_NOMEM);
    if (!t->bare) {
        CHECK_EQ(job->err.id, DC_ERR_NOMEM);
        CHECK_EQ(job->err.status, DC_E_NOMEM);
        CHECK_EQ(job->cleanup.n, 0);
        CHECK(is_rewound() && !rt->broken);
    }
    if (rt != NULL && !t->evicts)
        CHECK_EQ(rt->stats.bytes_live, live);
    if (t->refused != NULL)
        t->refused();
}

/* The cleanup list keeps its memory from entry to entry; here every entry is the first. */
static inline void forget_list(void)
{
    if (job != NULL && CHECK_EQ(job->cleanup.n, 0))
        DC_VEC_FREE(job->cleanup);
}

/* One run in which allocations first to last fail. Tells whether one did and all was well. */
static inline bool run(const trial *t, long first, long last)
{
    const long blocks = mem.blocks, failures = t_failed;
    const bool again = first == last; /* else see that nothing is left without it */
    const uint64_t bytes = rt != NULL ? rt->stats.bytes_live : 0;
    expected.read = 0;
    if (t->before != NULL)
        t->before();
    const uint64_t live = rt != NULL ? rt->stats.bytes_live : 0;
    forget_list();
    start_failing(first, last);
    dc_status status = attempt(t);
    const bool failed = stop_failing();
    const long n = mem.n;
    if (status != DC_OK) {
        CHECK(failed);
        check_failure(t, status, live);
        if (again)
            CHECK_EQ(status = attempt(t), DC_OK);
    }
    t->after(status == DC_OK);
    if (rt != NULL) {
        CHECK_EQ(rt->stats.bytes_live, bytes);
        dc_pool_drain(rt);
        trim_kernels(rt);
        forget_list();
    }
    if (expected.known)
        CHECK_EQ(mem.blocks, blocks);
    mem.n = n;
    if (t_failed == failures)
        return failed;
    printf("in '%s', allocations %ld to %ld fail\n", t->name, first, last);
    return false;
}

/* One of so many allocations fails, where these are at most. With sanitizers, which take three times as long, half of them. */
static inline long stretch_of(long all, int most)
{
#ifdef __SANITIZE_ADDRESS__
    most = (most + 1) / 2;
#endif
    return !every && most > 0 && all > most ? (all - 1) / most + 1 : 1;
}

/* Fails where one was to fail and none did, unless there were fewer allocations this time: threads that compile take turns. */
static inline bool run_from(const trial *t, long first, long last)
{
    const long failures = t_failed;
    return run(t, first, last) || t->timed || (t_failed == failures && mem.n < first);
}

static inline void try(const trial *t)
{
    expected.known = false;
    expected.n = 0;
    run(t, 0, 0); /* what grows once and stays is there from now on */
    expected.known = true;
    CHECK(!run(t, 0, 0));
    const long all = mem.n, stretch = stretch_of(all, t->most);
    printf("%-28s %6ld allocations, 1 of %ld fails\n", t->name, all, stretch);
    for (int follow = 0; follow < 2; follow++)
        for (long from = 1; from <= all; from += stretch) {
            const long n = from + rng_below(&dice, (int)stretch);
            if (n <= all && !CHECK(run_from(t, n, follow ? LONG_MAX : n)))
                return; /* the others would say the same */
        }
    /* The end, where most is held, in full. */
    for (long n = all - 8; n <= all && stretch > 1; n++)
        if (n > 0)
            CHECK(run_from(t, n, n));
}

#endif
