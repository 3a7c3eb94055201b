/*
 * A few threads that run one piece of work at a time together with the thread that asks for it.
 *
 * Work is work items 0..n-1. They are handed out in pieces of `step`, each piece to one thread, so a
 * result does not depend on how many threads there are or which is quick, as long as work items do not
 * depend on each other. Each thread has scratch memory of its own. A caller never waits for a
 * thread that has not begun: threads that are asleep or get no core make a run slower than hoped,
 * not slower than alone.
 *
 * Threads are started by the first run that needs them and stopped by dc_cpu_pool_free. A pool belongs
 * to one thread, which may be another one at another time. After fork() the child has none of the
 * threads: it may neither use nor free the pool.
 */
#ifndef DC_BACKENDS_CPU_POOL_H
#define DC_BACKENDS_CPU_POOL_H

#include "core/base/job.h"

enum { DC_CPU_POOL_MOST = 64 };

typedef struct dc_cpu_pool dc_cpu_pool;

/* Runs work items begin..end-1. May not unwind. */
typedef void (*dc_cpu_pool_work)(void *ctx, void *scratch, int64_t begin, int64_t end);

/* The thread that calls it, one of the pool's, has taken part in the work of ctx since then, and takes nothing more. */
typedef void (*dc_cpu_pool_seen)(void *ctx, uint64_t begun_ns);

/* `threads` threads, the caller counted; 0: one per core that the process may use. */
dc_cpu_pool *dc_cpu_pool_new(int64_t threads);
void dc_cpu_pool_free(dc_cpu_pool *p);

/* That the process may use. */
uint32_t dc_cpu_pool_cores(void);
uint32_t dc_cpu_pool_width(const dc_cpu_pool *p); /* threads, the caller counted */

/* Each thread's scratch holds so much at least, aligned to 64; room for a dc_look is in front. NOMEM is a status. */
dc_status dc_cpu_pool_scratch(dc_cpu_pool *p, dc_job *j, size_t bytes);

/* From now on threads of the pool tell what they took part in; NULL: they do not. */
void dc_cpu_pool_watch(dc_cpu_pool *p, dc_cpu_pool_seen seen);

/* On the calling thread alone. */
void dc_cpu_pool_run_here(dc_cpu_pool *p, dc_cpu_pool_work work, void *ctx, int64_t n);

/* On all threads (one alone takes all at once). Returns when all work items are done. */
void dc_cpu_pool_run(dc_cpu_pool *p, dc_cpu_pool_work work, void *ctx, int64_t n, int64_t step);

#endif
