/*
 * Ranks that an MPI launcher starts (tests/program/test_mpi.sh): mpi_ranks MODE.
 *
 *   size      says how many there are
 *   sums      exchanges of every kind, compared element by element
 *   apart     the same by messages of MPI, as if each rank were on a host of its own
 *   inited    the same in a host that has begun MPI itself, and ends it
 *   kill      the last rank is killed in the middle
 *   fail      rank 0 fails with words of its own
 *   disagree  rank 0 asks for something else
 *   bench     bytes per second of all_reduce, beside memcpy
 *
 * A rank that ends with an error prints it and exits with 1.
 */
#define _DEFAULT_SOURCE /* kill */
#include "backends/mpi/mpi_impl.h"
#include "core/base/bits.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct state {
    const char *mode;
    dc_world *w;
    int rank, size;
    long wrong;
} state;

static dc_group_axes all_of(const state *s)
{
    return (dc_group_axes){.naxis = 1, .mask = 1, .size = {s->size}};
}

static dc_status exchange(dc_job *j, state *s, dc_exchange_kind kind, const float *from, float *to,
                          int64_t n, const char *label)
{
    const dc_transfer at = {from, to, 1, n};
    const dc_exchange x = {
        .kind = kind, .dtype = DC_F32, .axes = all_of(s), .label = label, .n = 1, .at = &at};
    return dc_world_run(s->w, j, &x);
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

static float value(int rank, int64_t i)
{
    return (float)((i * 7 + rank * 13) % 101);
}

static float sum_of(const state *s, int64_t i)
{
    float sum = 0; /* whole numbers: exact in any order */
    for (int r = 0; r < s->size; r++)
        sum += value(r, i);
    return sum;
}

static dc_status check_size(dc_job *j, state *s, int64_t n)
{
    const int64_t all = n * s->size;
    float *from = dc_arena_alloc(&j->scratch, (size_t)(all + 1) * sizeof *from),
          *to = dc_arena_alloc(&j->scratch, (size_t)(all + 1) * sizeof *to);
    for (int64_t i = 0; i < all; i++)
        from[i] = value(s->rank, i);
    DC_TRY(exchange(j, s, DC_ALL_REDUCE, from, to, all, "all_reduce, a.lua:1"));
    for (int64_t i = 0; i < all; i++)
        s->wrong += to[i] != sum_of(s, i);
    DC_TRY(exchange(j, s, DC_REDUCE_SCATTER, from, to, n, "reduce_scatter, a.lua:2"));
    for (int64_t i = 0; i < n; i++)
        s->wrong += to[i] != sum_of(s, s->rank * n + i);
    DC_TRY(exchange(j, s, DC_ALL_GATHER, from, to, n, "all_gather, a.lua:3"));
    for (int64_t i = 0; i < all; i++)
        s->wrong += to[i] != value((int)(i / n), i % n);
    DC_TRY(exchange(j, s, DC_ALL_TO_ALL, from, to, n, "all_to_all, a.lua:4"));
    for (int64_t i = 0; i < all; i++)
        s->wrong += to[i] != value((int)(i / n), s->rank * n + i % n);
    DC_TRY(exchange(j, s, DC_BROADCAST, from, to, all, "broadcast, a.lua:5"));
    for (int64_t i = 0; i < all; i++)
        s->wrong += to[i] != value(0, i);
    return DC_OK;
}

static dc_status hand_on(dc_job *j, state *s)
{
    enum { N = 300000 };
    float *x = dc_arena_alloc(&j->scratch, N * sizeof *x);
    const dc_transfer at = {x, x, 1, N};
    dc_exchange e = {
        .dtype = DC_F32, .axes = all_of(s), .label = "hand on, a.lua:6", .n = 1, .at = &at};
    x[N - 1] = 1;
    for (int turn = 0; turn < 2 && s->size > 1; turn++) {
        e.kind = (s->rank == 0) == (turn == 0) ? DC_SEND : DC_RECV;
        e.peer = e.kind == DC_SEND ? (s->rank + 1) % s->size : (s->rank + s->size - 1) % s->size;
        DC_TRY(dc_world_run(s->w, j, &e));
        x[N - 1] += e.kind == DC_RECV;
    }
    s->wrong += s->size > 1 && x[N - 1] != (float)(s->rank == 0 ? s->size + 1 : s->rank + 1);
    return DC_OK;
}

static dc_status check_sums(dc_job *j, state *s)
{
    static const int64_t sizes[] = {1, 5, 1000, 100003, 1000000};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++)
        DC_TRY(check_size(j, s, sizes[i]));
    DC_TRY(hand_on(j, s));
    DC_TRY(dc_world_agree(s->w, j, "the seed", 1, "1"));
    DC_TRY(dc_world_barrier(s->w, j, "barrier, a.lua:7"));
    printf("rank %d of %d on %s: %ld wrong, %s\n", s->rank, s->size, dc_world_host(s->w, s->rank),
           s->wrong, dc_world_sent(s->w) > 0 || s->size == 1 ? "sent" : "nothing sent");
    return DC_OK;
}

/* ---- failures -------------------------------------------------------------------------------------------- */

static dc_status sum_often(dc_job *j, state *s)
{
    enum { N = 50000, TIMES = 200 };
    float *x = dc_arena_alloc(&j->scratch, N * sizeof *x);
    for (int i = 0; i < TIMES; i++) {
        const bool last = i == TIMES / 2 && s->rank == s->size - 1;
        if (last && strcmp(s->mode, "kill") == 0)
            kill(getpid(), SIGKILL);
        if (i == TIMES / 2 && s->rank == 0 && strcmp(s->mode, "fail") == 0)
            return dc_failf(j, DC_ERR_FILE_TEXT, NULL, "train.lua:3: no such file");
        if (i == TIMES / 2 && s->rank == 0 && strcmp(s->mode, "disagree") == 0)
            DC_TRY(exchange(j, s, DC_ALL_REDUCE, x, x, 7, "all_reduce, train.lua:9"));
        DC_TRY(exchange(j, s, DC_ALL_REDUCE, x, x, N, "all_reduce, train.lua:12"));
    }
    return DC_OK;
}

/* ---- times ------------------------------------------------------------------------------------------------ */

static double rate(size_t bytes, uint64_t ns)
{
    return (double)bytes / (double)(ns > 0 ? ns : 1);
}

static dc_status bench_size(dc_job *j, state *s, size_t bytes)
{
    const int64_t n = (int64_t)(bytes / sizeof(float));
    const int times = bytes > 1 << 22 ? 3 : bytes > 1 << 16 ? 50 : 1000;
    float *from = malloc(bytes), *to = malloc(bytes);
    uint64_t best = UINT64_MAX, copy = UINT64_MAX;
    memset(from, 0, bytes);
    memset(to, 0, bytes);
    for (int round = 0; round < 25; round++) {
        DC_TRY(dc_world_barrier(s->w, j, "barrier, a.lua:1"));
        uint64_t begin = dc_clock_ns();
        for (int i = 0; i < times; i++)
            DC_TRY(exchange(j, s, DC_ALL_REDUCE, from, to, n, "all_reduce, a.lua:2"));
        uint64_t ns = (dc_clock_ns() - begin) / (uint64_t)times;
        best = ns < best ? ns : best;
        begin = dc_clock_ns();
        for (int i = 0; i < times; i++) {
            memcpy(to, from, bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        ns = (dc_clock_ns() - begin) / (uint64_t)times;
        copy = ns < copy ? ns : copy;
    }
    if (s->rank == 0)
        printf("%9zu bytes: all_reduce %10.2f us %6.2f GB/s, memcpy %10.2f us %6.2f GB/s\n", bytes,
               (double)best / 1e3, rate(bytes, best), (double)copy / 1e3, rate(bytes, copy));
    free(from);
    free(to);
    return DC_OK;
}

static dc_status bench(dc_job *j, state *s)
{
    DC_TRY(bench_size(j, s, 4));
    DC_TRY(bench_size(j, s, 4 << 10));
    DC_TRY(bench_size(j, s, 64 << 10));
    DC_TRY(bench_size(j, s, 1 << 20));
    return bench_size(j, s, 64 << 20);
}

/* ---- life ------------------------------------------------------------------------------------------------- */

static dc_status open_apart(dc_job *j, state *s)
{
    dc_mpi_launch by;
    dc_mpi_lib lib;
    char why[400];
    if (!dc_mpi_find_launch(&by) || !dc_mpi_lib_open(j->opt->mpi, &by, &lib, why, sizeof why))
        return dc_failf(j, DC_ERR_WORLD, NULL, "no launcher or no library");
    return dc_world_open(j, dc_mpi_engine_new(&lib, &by, true), &s->w);
}

static dc_status live(dc_job *j, void *arg)
{
    state *s = arg;
    const bool apart = strncmp(s->mode, "apart", 5) == 0;
    s->mode += strcmp(s->mode, "apart-bench") == 0 ? 6 : 0;
    DC_TRY(apart ? open_apart(j, s) : dc_mpi_open(j, &s->w));
    s->rank = dc_world_rank(s->w);
    s->size = dc_world_size(s->w);
    if (strcmp(s->mode, "size") == 0)
        printf("rank %d of %d\n", s->rank, s->size);
    else if (strcmp(s->mode, "bench") == 0)
        return bench(j, s);
    else
        return strcmp(s->mode, "sums") == 0 || apart || strcmp(s->mode, "inited") == 0
                   ? check_sums(j, s)
                   : sum_often(j, s);
    return DC_OK;
}

/* As a host that uses MPI itself, at this level; returns its library. */
static dc_mpi_lib begin_host(int level)
{
    dc_mpi_launch by;
    dc_mpi_lib lib = {0};
    char why[400] = "no launcher";
    int provided;
    if (!dc_mpi_find_launch(&by) || !dc_mpi_lib_open("", &by, &lib, why, sizeof why))
        fprintf(stderr, "%s\n", why), exit(1);
    lib.fn.Init_thread(NULL, NULL, level, &provided);
    return lib;
}

int main(int argc, char **argv)
{
    state s = {.mode = argc > 1 ? argv[1] : "size"};
    const char *bad;
    dc_opts opt;
    dc_job j;
    dc_mpi_lib host = {0};
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    if (strcmp(s.mode, "inited") == 0)
        host = begin_host(3 /* MPI_THREAD_MULTIPLE of Open MPI and MPICH */);
    const dc_status status = dc_protect(&j, live, &s);
    if (status != DC_OK) {
        char text[600];
        dc_err_render(&j.err, 1, text, sizeof text);
        printf("rank %d: %s\n", s.rank, text);
        fflush(stdout);
        if (s.w != NULL)
            dc_world_fail(s.w, text);
    }
    dc_world_close(s.w);
    dc_job_fini(&j);
    if (host.handle != NULL)
        printf("MPI is ended by its host: %d\n", host.fn.Finalize());
    return status != DC_OK || s.wrong > 0;
}
