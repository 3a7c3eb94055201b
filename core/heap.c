#include "core/heap.h"

#include "core/job.h"

#include <stdlib.h>
#include <string.h>

/* Before each block. */
typedef struct head {
    _Alignas(16) const dc_heap *heap; /* NULL: malloc's */
    size_t bytes;                     /* head included */
} head;

static const dc_heap *heap_here(void)
{
    const dc_job *j = dc_job_here();
    return j != NULL && j->opt != NULL ? j->opt->heap : NULL;
}

bool dc_heap_is_given(void)
{
    return heap_here() != NULL;
}

/* ---- the heap itself ------------------------------------------------------------------------- */

dc_heap *dc_heap_new(dc_heap_fn *fn, void *ctx)
{
    dc_heap *h = fn(ctx, NULL, 0, sizeof *h);
    if (h != NULL)
        *h = (dc_heap){fn, ctx};
    return h;
}

void dc_heap_free(dc_heap *h)
{
    if (h == NULL)
        return;
    const dc_heap own = *h;
    own.fn(own.ctx, h, sizeof *h, 0);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void *begin(head *b, const dc_heap *heap, size_t bytes)
{
    if (b == NULL)
        return NULL;
    b->heap = heap;
    b->bytes = bytes;
    return b + 1;
}

void *dc_try_alloc(size_t bytes)
{
    const dc_heap *h = heap_here();
    const size_t n = bytes + sizeof(head);
    if (bytes > PTRDIFF_MAX)
        return NULL;
    if (h == NULL)
        return begin(calloc(1, n), NULL, n);
    head *b = h->fn(h->ctx, NULL, 0, n);
    return b != NULL ? begin(memset(b, 0, n), h, n) : NULL;
}

void *dc_try_realloc(void *p, size_t bytes)
{
    head *b = p != NULL ? (head *)p - 1 : NULL;
    const dc_heap *h = b != NULL ? b->heap : heap_here();
    const size_t n = bytes + sizeof(head);
    if (bytes > PTRDIFF_MAX)
        return NULL;
    return begin(h != NULL ? h->fn(h->ctx, b, b != NULL ? b->bytes : 0, n) : realloc(b, n), h, n);
}

void *dc_xalloc(size_t bytes)
{
    void *p = dc_try_alloc(bytes);
    if (p == NULL)
        dc_nomem();
    return p;
}

void *dc_xrealloc(void *p, size_t bytes)
{
    void *q = dc_try_realloc(p, bytes);
    if (q == NULL)
        dc_nomem();
    return q;
}

void dc_xfree(void *p)
{
    head *b = p != NULL ? (head *)p - 1 : NULL;
    if (b != NULL && b->heap != NULL)
        b->heap->fn(b->heap->ctx, b, b->bytes, 0);
    else
        free(b);
}

/* What is given out is preceded by the address of the block that it lies in. */
void *dc_try_aligned(size_t align, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - align)
        return NULL;
    char *block = dc_try_realloc(NULL, bytes + align + sizeof(void *));
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
