#include "core/base/heap.h"

#include "core/base/job.h"

#include <stdlib.h>
#include <string.h>

/* Before each block. */
typedef struct head {
    _Alignas(16) dc_heap *heap; /* NULL: malloc's, which counts nothing */
    size_t bytes;               /* head included */
} head;

#define DEVICE ((size_t)1 << 63) /* in head.bytes: does not count */

static dc_heap *heap_here(void)
{
    const dc_job *j = dc_job_here();
    return j != NULL && j->opt != NULL ? j->opt->heap : NULL;
}

bool dc_heap_is_given(void)
{
    const dc_heap *h = heap_here();
    return h != NULL && h->fn != NULL;
}

/* ---- the heap itself ------------------------------------------------------------------------- */

static void *give(const dc_heap *h, void *block, size_t had, size_t want)
{
    return h != NULL && h->fn != NULL ? h->fn(h->ctx, block, had, want) : realloc(block, want);
}

dc_heap *dc_heap_new(dc_heap_fn *fn, void *ctx)
{
    const dc_heap plan = {.fn = fn, .ctx = ctx};
    dc_heap *h = give(&plan, NULL, 0, sizeof *h);
    if (h != NULL) {
        *h = plan;
        atomic_init(&h->used, sizeof *h);
    }
    return h;
}

/* The release of its last block frees a heap over malloc. */
static void uncount(dc_heap *h, size_t bytes)
{
    if (atomic_fetch_sub_explicit(&h->used, bytes, memory_order_acq_rel) == bytes && h->fn == NULL)
        free(h);
}

void dc_heap_free(dc_heap *h)
{
    if (h == NULL)
        return;
    if (h->fn != NULL)
        h->fn(h->ctx, h, sizeof *h, 0);
    else
        uncount(h, sizeof *h);
}

void dc_heap_limit(dc_heap *h, size_t limit)
{
    h->base = atomic_load(&h->used);
    h->limit = limit;
}

void dc_heap_tell_device(dc_heap *h, size_t bytes)
{
    if (h != NULL)
        atomic_store_explicit(&h->device, bytes, memory_order_relaxed);
}

size_t dc_heap_used(const dc_heap *h)
{
    const size_t used = h != NULL ? atomic_load_explicit(&h->used, memory_order_relaxed) : 0;
    return h != NULL && used > h->base ? used - h->base : 0;
}

size_t dc_heap_counted(const dc_heap *h)
{
    return dc_heap_used(h) +
           (h != NULL ? atomic_load_explicit(&h->device, memory_order_relaxed) : 0);
}

/* Counts so many bytes more; false, with nothing counted, where they are above the limit. */
static bool count_bytes(dc_heap *h, size_t bytes)
{
    size_t used = atomic_load_explicit(&h->used, memory_order_relaxed);
    do {
        const size_t device = atomic_load_explicit(&h->device, memory_order_relaxed);
        const size_t own = used > h->base ? used - h->base : 0;
        if (h->limit != 0 &&
            (device > h->limit || own > h->limit - device || bytes > h->limit - device - own))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&h->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool dc_heap_count(size_t bytes, dc_heap **of)
{
    *of = heap_here();
    return *of == NULL || count_bytes(*of, bytes);
}

void dc_heap_uncount(dc_heap *of, size_t bytes)
{
    if (of != NULL)
        uncount(of, bytes);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void *begin_block(head *b, dc_heap *heap, size_t bytes)
{
    b->heap = heap;
    b->bytes = bytes;
    return b + 1;
}

void *dc_try_alloc(size_t bytes)
{
    dc_heap *h = heap_here();
    const size_t n = bytes + sizeof(head);
    if (bytes > PTRDIFF_MAX || (h != NULL && !count_bytes(h, n)))
        return NULL;
    head *b = h == NULL || h->fn == NULL ? calloc(1, n) : h->fn(h->ctx, NULL, 0, n);
    if (b != NULL)
        return begin_block(h == NULL || h->fn == NULL ? b : memset(b, 0, n), h, n);
    if (h != NULL)
        uncount(h, n);
    return NULL;
}

void *dc_try_realloc(void *p, size_t bytes)
{
    head *b = p != NULL ? (head *)p - 1 : NULL;
    dc_heap *h = b != NULL ? b->heap : heap_here();
    const size_t n = bytes + sizeof(head), had = b != NULL ? b->bytes : 0;
    const size_t more = n > had ? n - had : 0;
    if (bytes > PTRDIFF_MAX || (h != NULL && more > 0 && !count_bytes(h, more)))
        return NULL;
    b = give(h, b, had, n);
    if (b == NULL && h != NULL && more > 0)
        uncount(h, more);
    if (b != NULL && h != NULL && had > n)
        uncount(h, had - n);
    return b != NULL ? begin_block(b, h, n) : NULL;
}

void *dc_xalloc(size_t bytes)
{
    void *p = dc_try_alloc(bytes);
    if (p == NULL)
        dc_nomem(bytes);
    return p;
}

void *dc_xrealloc(void *p, size_t bytes)
{
    void *q = dc_try_realloc(p, bytes);
    if (q == NULL)
        dc_nomem(bytes);
    return q;
}

void dc_xfree(void *p)
{
    head *b = p != NULL ? (head *)p - 1 : NULL;
    dc_heap *h = b != NULL ? b->heap : NULL;
    if (h == NULL) {
        free(b);
        return;
    }
    const size_t bytes = b->bytes;
    if (h->fn != NULL)
        h->fn(h->ctx, b, bytes & ~DEVICE, 0);
    else
        free(b);
    if ((bytes & DEVICE) == 0)
        uncount(h, bytes);
}

/* A block that does not count. Of malloc's there is no more to know. */
static void *try_device(size_t bytes)
{
    dc_heap *h = dc_heap_is_given() ? heap_here() : NULL;
    const size_t n = bytes + sizeof(head);
    head *b = give(h, NULL, 0, n);
    return b != NULL ? begin_block(b, h, h != NULL ? n | DEVICE : n) : NULL;
}

/* What is given out is preceded by the address of the block that it lies in. */
void *dc_try_aligned(size_t align, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - align)
        return NULL;
    char *block = try_device(bytes + align + sizeof(void *));
    if (block == NULL)
        return NULL;
    char *p = block + sizeof(void *);
    p += (align - (uintptr_t)p % align) % align;
    memcpy(p - sizeof block, &block, sizeof block);
    return p;
}

void dc_free_aligned(void *p)
{
    void *block;
    if (p == NULL)
        return;
    memcpy(&block, (char *)p - sizeof block, sizeof block);
    dc_xfree(block);
}
