/*
 * Runs kernel modules on the host: a fiber per CUDA thread, one block after the other. One launch at
 * a time; the driver's lock (standin.h) sees to it.
 *
 * Checked launches (of modules compiled with calls at each access) find races within a block, between
 * warps and between blocks, accesses outside of allocations and shared memory, wrong alignment, and
 * shared memory that is read before it is written. Every launch finds barriers and shuffles that not
 * all threads reach.
 */
#ifndef DC_TESTS_CUDA_ENGINE_H
#define DC_TESTS_CUDA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel_abi.h"

enum { ENGINE_MOST_THREADS = 1024, ENGINE_MOST_DYNAMIC = 227 << 10 };

typedef struct engine_launch {
    const char *name;
    void (*entry)(void **);
    void (*bind)(const kernel_runtime *);
    void **argument;
    kernel_dim3 grid, threads;
    char *shared; /* the module's shared arrays */
    size_t shared_bytes, dynamic_bytes;
    uint64_t seed; /* of the order of threads and blocks; 0: ascending */
    bool checked;
} engine_launch;

/* An allocation, with what checked launches note of it (engine_check.c). */
typedef struct engine_area {
    const char *begin;
    size_t bytes;
    struct engine_cell *word, *byte; /* NULL until there is something to note */
} engine_area;

/* Device memory as the engine sees it. */
typedef struct engine_memory {
    const char *base; /* the range of all addresses */
    size_t bytes;
    /* The allocation around p; NULL: there is none that a kernel may touch. */
    engine_area *(*around)(const void *p);
    /* What is wrong with an access that is in none. */
    const char *(*wrong)(const void *p, size_t bytes);
} engine_memory;

extern engine_memory engine_device;

/* The notes of an allocation that ends. */
void engine_forget(engine_area *a);

/* NULL, or what went wrong; the text lives until the next launch. *pc: where, or NULL. */
const char *engine_run(const engine_launch *l, const void **pc);

/* Called by a signal handler while a launch runs: the launch ends when the handler has returned. */
void engine_fault(void *ucontext, const char *what);

/*
 * Traffic of the last launch that counted it, a row for each place of the text and kind of access.
 * A request is one access of the lanes of a warp together. Global memory is moved in sectors of 32
 * bytes; shared memory has 32 banks of 4 bytes, and a pass takes one word from each.
 */
typedef struct engine_site {
    const void *pc;
    bool store, shared;
    unsigned bytes;                  /* of a lane */
    uint64_t requests, units, least; /* units: sectors, or passes; least: were they all full */
    uint64_t moved;                  /* bytes that lanes asked for */
} engine_site;

extern bool engine_counts_traffic;
size_t engine_traffic(const engine_site **sites);

#endif
