/*
 * Memory of the host. Everything that is allocated anywhere below dsl/, and there too, comes from here:
 * from malloc, or from the function that the host gave for its context (dc_config.alloc).
 *
 * Which one is known from the job of the innermost recovery point (dc_job_here): its settings have the
 * context's. Each block remembers where it is from, so it may be freed anywhere, on any thread.
 *
 * dc_x... never return NULL: they unwind to the recovery point. dc_try_... may.
 */
#ifndef DC_CORE_HEAP_H
#define DC_CORE_HEAP_H

#include "core/base.h"

/* As lua_Alloc: gives, resizes (block, had > 0) and takes back (want = 0) memory; NULL: there is none. */
typedef void *dc_heap_fn(void *ctx, void *block, size_t had, size_t want);

typedef struct dc_heap {
    dc_heap_fn *fn;
    void *ctx;
} dc_heap;

/* A heap lies in its own memory and is the first and the last of its blocks. NULL where there is none. */
dc_heap *dc_heap_new(dc_heap_fn *fn, void *ctx);
void dc_heap_free(dc_heap *h); /* NULL is fine */

/* Is the memory of the entry that runs the host's? */
bool dc_heap_is_given(void);

void *dc_xalloc(size_t bytes);            /* zeroed */
void *dc_xrealloc(void *p, size_t bytes); /* new part not zeroed */
void *dc_try_alloc(size_t bytes);         /* zeroed */
void *dc_try_realloc(void *p, size_t bytes);
void dc_xfree(void *p); /* of all four */

/* Not zeroed; align is a power of two. */
void *dc_try_aligned(size_t align, size_t bytes);
void dc_free_aligned(void *p);

#endif
