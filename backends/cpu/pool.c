/*
 * The threads of the pool and their synchronization.
 *
 * One word says all that is decided together: the number of the piece of work (so that a thread
 * takes part once), whether it is open, and how many threads are inside. A thread enters by
 * counting itself in while the word says open; the caller works along, closes it when nothing is
 * left to take and waits until those inside have left. What describes the work is written before
 * the word that opens it and not touched while a thread is inside.
 *
 * Each thread begins in a share of its own, the same at every run over the same work items, so that
 * what it touched last time is in its core's cache; then it helps with the others' shares. A single
 * counter for all costs as little but gives each core other data each time (README.md).
 *
 * A thread that the system wakes on the caller's core would keep the caller from working while it
 * spins: it moves to another one.
 */
#define _GNU_SOURCE /* sched_getaffinity, madvise */
#include "backends/cpu/pool.h"

#include "core/base/control_word.h"
#include "core/base/thread.h"
#include "core/runtime/halt.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum {
    LINE = 64,            /* bytes that cores exchange */
    WORKER_SPINS = 50000, /* nanoseconds before a thread sleeps: the small launches of a step */
    CALLER_SPINS = 50000, /* the same for the caller, once it has nothing left to do */
    PAUSES = 16,          /* between two looks at the clock */
    HUGE_PAGE = 2 << 20,
    HUGE_FROM =
        128 << 10 /* scratch: panels of products, which scattered pages would keep out of L2 */
};

#define INSIDE 0x7fffffffu /* of the word: threads inside */
#define OPEN   0x80000000u /* above it the number of the work */

typedef struct share { /* work items that are not taken yet */
    _Alignas(LINE) _Atomic int64_t next;
    int64_t end;
} share;

typedef struct worker {
    _Alignas(LINE) dc_cpu_pool *pool;
    uint32_t index;
    void *scratch;
    pthread_t thread;
    _Alignas(
        LINE) char before[LINE]; /* room for a dc_look in front of scratch memory of no bytes */
} worker;

struct dc_cpu_pool {
    _Alignas(LINE) _Atomic uint64_t word;
    atomic_int core; /* that the caller was on when it opened the last work */
    /* The work, constant while it is open or a thread is inside. */
    _Alignas(LINE) dc_cpu_pool_work work;
    void *ctx;
    dc_cpu_pool_seen seen; /* NULL: nobody asks */
    int64_t step;
    uint32_t nshare;
    uint64_t control; /* control word of the caller: all threads compute as it does */
    bool stop;
    /* Sleeping. */
    _Alignas(LINE) _Atomic uint32_t sleepers;
    atomic_bool caller_sleeps;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    /* Of the caller. */
    uint32_t width, started;
    bool tried, spins;
    dc_cpu_pool_seen next_seen; /* of the works to come */
    cpu_set_t allowed;
    size_t scratch;
    share *share;
    worker worker[];
};

/* ---- small things ---------------------------------------------------------------------------- */

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

static uint32_t allowed_cores(cpu_set_t *set)
{
    CPU_ZERO(set);
    if (sched_getaffinity(0, sizeof *set, set) != 0)
        return 1;
    const int n = CPU_COUNT(set);
    return n > 0 ? (uint32_t)n : 1;
}

uint32_t dc_cpu_pool_cores(void)
{
    cpu_set_t allowed;
    return allowed_cores(&allowed);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void take_part(dc_cpu_pool *p, const worker *w)
{
    for (uint32_t k = 0; k < p->nshare; k++) {
        share *s = &p->share[(w->index + k) % p->nshare];
        for (;;) {
            const int64_t begin =
                atomic_fetch_add_explicit(&s->next, p->step, memory_order_relaxed);
            if (begin >= s->end)
                break;
            p->work(p->ctx, w->scratch, begin, dc_min_i64(begin + p->step, s->end));
        }
    }
}

/* Off the caller's core, if there is another one; where that is refused, it stays. */
static void move_aside(dc_cpu_pool *p)
{
    const int core = sched_getcpu();
    if (!p->spins || core < 0 || core != atomic_load(&p->core) || CPU_COUNT(&p->allowed) < 2)
        return;
    cpu_set_t others = p->allowed;
    CPU_CLR((size_t)core, &others);
    sched_setaffinity(0, sizeof others, &others);
}

/* Counts a thread in, unless the work `number` is over. */
static bool join_work(dc_cpu_pool *p, uint32_t number)
{
    uint64_t word = atomic_load(&p->word);
    while (number_of(word) == number && (word & OPEN) != 0)
        if (atomic_compare_exchange_weak(&p->word, &word, word + 1))
            return true;
    return false;
}

static void leave(dc_cpu_pool *p)
{
    const uint64_t word = atomic_fetch_sub(&p->word, 1) - 1;
    if ((word & (OPEN | INSIDE)) != 0 || !atomic_load(&p->caller_sleeps))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* Spins, then sleeps, until there is other work than `seen`. */
static uint32_t await_work(dc_cpu_pool *p, uint32_t seen)
{
    uint32_t number = number_of(atomic_load(&p->word));
    const uint64_t until = p->spins && number == seen ? dc_clock_ns() + WORKER_SPINS : 0;
    while (number == seen && until != 0) {
        for (int i = 0; i < PAUSES && number == seen; i++) {
            relax();
            number = number_of(atomic_load(&p->word));
        }
        if (dc_clock_ns() >= until)
            break;
    }
    if (number != seen)
        return number;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while ((number = number_of(atomic_load(&p->word))) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    return number;
}

static void *run_worker(void *arg)
{
    const worker *w = arg;
    dc_cpu_pool *p = w->pool;
    for (uint32_t seen = 0;;) {
        seen = await_work(p, seen);
        move_aside(p);
        if (!join_work(p, seen))
            continue;
        const bool stop = p->stop;
        if (!stop) {
            const uint64_t begun = p->seen != NULL ? dc_clock_ns() : 0;
            dc_set_control_word(p->control);
            take_part(p, w);
            if (p->seen != NULL)
                p->seen(p->ctx, begun);
        }
        leave(p);
        if (stop)
            return NULL;
    }
}

/* With fewer threads than wished the others do all. */
static void start_workers(dc_cpu_pool *p)
{
    p->tried = true;
    while (p->started + 1 < p->width) {
        char name[16];
        worker *w = &p->worker[p->started + 1];
        snprintf(name, sizeof name, "deepc worker %u", (unsigned)(p->started + 1) % 100);
        if (!dc_thread_start(&w->thread, name, 0, run_worker, w))
            break;
        p->started++;
    }
}

/* ---- the caller ------------------------------------------------------------------------------ */

/* Opens what has been described, for `helpers` threads or more. */
static void open_work(dc_cpu_pool *p, uint32_t helpers)
{
    const uint64_t word = atomic_load(&p->word);
    atomic_store(&p->word, ((uint64_t)(number_of(word) + 1) << 32) | OPEN);
    const uint32_t asleep = atomic_load(&p->sleepers);
    if (asleep == 0)
        return;
    pthread_mutex_lock(&p->lock);
    if (asleep <= helpers)
        pthread_cond_broadcast(&p->wake);
    else
        for (uint32_t i = 0; i < helpers; i++)
            pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static bool threads_inside(dc_cpu_pool *p)
{
    return (atomic_load(&p->word) & INSIDE) != 0;
}

static void close_work(dc_cpu_pool *p)
{
    atomic_fetch_and(&p->word, ~(uint64_t)OPEN);
    const uint64_t until = p->spins && threads_inside(p) ? dc_clock_ns() + CALLER_SPINS : 0;
    while (until != 0 && threads_inside(p)) {
        for (int i = 0; i < PAUSES; i++)
            relax();
        if (dc_clock_ns() >= until)
            break;
    }
    if (!threads_inside(p))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (threads_inside(p))
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

/* Cuts 0..n-1 into shares of whole steps. */
static void cut_shares(dc_cpu_pool *p, int64_t n, int64_t step)
{
    const int64_t pieces = (n - 1) / step + 1;
    p->step = step;
    p->nshare = (uint32_t)dc_min_i64(p->width, pieces);
    int64_t at = 0;
    for (uint32_t i = 0; i < p->nshare; i++) {
        const int64_t more = pieces / p->nshare + (i < pieces % p->nshare);
        atomic_store_explicit(&p->share[i].next, at, memory_order_relaxed);
        at = dc_min_i64(n, at + more * step);
        p->share[i].end = at;
    }
}

void dc_cpu_pool_run_here(dc_cpu_pool *p, dc_cpu_pool_work work, void *ctx, int64_t n)
{
    work(ctx, p->worker[0].scratch, 0, n);
}

void dc_cpu_pool_watch(dc_cpu_pool *p, dc_cpu_pool_seen seen)
{
    p->next_seen = seen;
}

void dc_cpu_pool_run(dc_cpu_pool *p, dc_cpu_pool_work work, void *ctx, int64_t n, int64_t step)
{
    if (n <= 0)
        return;
    DC_ASSERT(step > 0, "pieces of %d", (int)step);
    if (!p->tried && p->width > 1)
        start_workers(p);
    if (p->started == 0 || n <= step) {
        dc_cpu_pool_run_here(p, work, ctx, n);
        return;
    }
    p->work = work;
    p->ctx = ctx;
    p->seen = p->next_seen;
    p->control = dc_control_word();
    atomic_store(&p->core, sched_getcpu());
    cut_shares(p, n, step);
    open_work(p, p->nshare - 1);
    take_part(p, &p->worker[0]);
    close_work(p);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

dc_cpu_pool *dc_cpu_pool_new(int64_t threads)
{
    cpu_set_t allowed;
    const uint32_t cores = allowed_cores(&allowed);
    const int64_t wish = dc_min_i64(threads > 0 ? threads : cores, DC_CPU_POOL_MOST);
    const uint32_t width = (uint32_t)dc_max_i64(wish, 1);
    const size_t workers = sizeof(dc_cpu_pool) + width * sizeof(worker);
    const size_t bytes = workers + width * sizeof(share);
    dc_cpu_pool *p = dc_try_aligned(LINE, bytes);
    if (p == NULL)
        dc_nomem(0);
    memset(p, 0, bytes);
    p->width = width;
    p->spins = width <= cores;
    p->allowed = allowed;
    p->share = (share *)(void *)((char *)p + workers);
    for (uint32_t i = 0; i < width; i++) {
        p->worker[i].pool = p;
        p->worker[i].index = i;
        p->worker[i].scratch = p->worker[i].before + DC_LOOK_BYTES;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

static void free_scratch(worker *w)
{
    if (w->scratch != w->before + DC_LOOK_BYTES)
        dc_free_aligned((char *)w->scratch - DC_LOOK_BYTES);
}

void dc_cpu_pool_free(dc_cpu_pool *p)
{
    if (p == NULL)
        return;
    if (p->started > 0) {
        p->stop = true;
        open_work(p, p->started);
        for (uint32_t i = 1; i <= p->started; i++)
            pthread_join(p->worker[i].thread, NULL);
    }
    for (uint32_t i = 0; i < p->width; i++)
        free_scratch(&p->worker[i]);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    dc_free_aligned(p);
}

uint32_t dc_cpu_pool_width(const dc_cpu_pool *p)
{
    return p->width;
}

dc_status dc_cpu_pool_scratch(dc_cpu_pool *p, dc_job *j, size_t bytes)
{
    if (bytes <= p->scratch)
        return DC_OK;
    if (bytes > PTRDIFF_MAX / 2)
        return dc_fail_memory(j, bytes);
    for (uint32_t i = 0; i < p->width; i++) {
        const size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : LINE;
        const size_t room = dc_align_up(bytes + DC_LOOK_BYTES, align);
        char *mem = dc_try_aligned(align, room);
        if (mem == NULL)
            return dc_fail_memory(j, bytes); /* p->scratch still tells the least */
        if (align == HUGE_PAGE)
            madvise(mem, room, MADV_HUGEPAGE); /* a wish */
        free_scratch(&p->worker[i]);
        p->worker[i].scratch = mem + DC_LOOK_BYTES;
    }
    p->scratch = bytes;
    return DC_OK;
}
