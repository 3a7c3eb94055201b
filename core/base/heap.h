/*
 * Memory of the host. Everything that is allocated anywhere below dsl/, and there too, comes from here:
 * from malloc, or from the function that the host gave for its context (dc_config.alloc).
 *
 * Which one is known from the job of the innermost recovery point (dc_job_here): its settings have the
 * context's. Each block remembers where it is from, so it may be freed anywhere, on any thread.
 *
 * A context with a limit (dc_config.memory_limit) has a heap even where the memory is malloc's: it counts the bytes
 * of all blocks but those that become memory of the device (dc_try_aligned), which core/runtime/storage.c counts and
 * reports by dc_heap_tell_device. A block that would bring the sum of both above the limit is refused. A context
 * without a limit counts nothing.
 *
 * dc_x... never return NULL: they unwind to the recovery point. dc_try_... may.
 */
#ifndef DC_CORE_BASE_HEAP_H
#define DC_CORE_BASE_HEAP_H

#include "core/base/base.h"

#include <stdatomic.h>

/* As lua_Alloc: gives, resizes (block, had > 0) and takes back (want = 0) memory; NULL: there is none. */
typedef void *dc_heap_fn(void *ctx, void *block, size_t had, size_t want);

typedef struct dc_heap {
    dc_heap_fn *fn; /* NULL: malloc and its like */
    void *ctx;
    atomic_size_t used;   /* bytes of blocks that count, the heap's own included */
    atomic_size_t device; /* bytes of the device that values need */
    size_t base;          /* of used: what the context needs for itself */
    size_t limit;         /* most of used - base + device; 0: none */
} dc_heap;

/*
 * A heap lies in its own memory and is the first of its blocks, and the last: one of malloc's lives until all blocks
 * are freed. NULL where there is none.
 */
dc_heap *dc_heap_new(dc_heap_fn *fn, void *ctx);
void dc_heap_free(dc_heap *h); /* NULL is fine */

/* From now on no more than `limit` bytes come on top of those in use. */
void dc_heap_limit(dc_heap *h, size_t limit);
void dc_heap_tell_device(dc_heap *h, size_t bytes); /* NULL is fine */
/* What counts towards the limit: of metadata, and with the device's; 0 for NULL. */
size_t dc_heap_used(const dc_heap *h);
size_t dc_heap_counted(const dc_heap *h);

/*
 * Counts memory that is not from here, code that was mapped, as a block of the heap of the entry that runs; false: it
 * would be above the limit. *of, which may become NULL, is for the end of it.
 */
bool dc_heap_count(size_t bytes, dc_heap **of);
void dc_heap_uncount(dc_heap *of, size_t bytes); /* NULL is fine */

/* Is the memory of the entry that runs the host's? */
bool dc_heap_is_given(void);

void *dc_xalloc(size_t bytes);            /* zeroed */
void *dc_xrealloc(void *p, size_t bytes); /* new part not zeroed */
void *dc_try_alloc(size_t bytes);         /* zeroed */
void *dc_try_realloc(void *p, size_t bytes);
void dc_xfree(void *p); /* of all four */

/* Memory of the device, which counts as such. Not zeroed; align is a power of two. */
void *dc_try_aligned(size_t align, size_t bytes);
void dc_free_aligned(void *p);

#endif
