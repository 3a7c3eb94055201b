#define _GNU_SOURCE /* madvise */
#include "backends/cpu/huge_chunks.h"

#include "core/base/heap.h"

#include <stdlib.h>
#include <sys/mman.h>

static dc_chunk *add_chunk(dc_chunks *c)
{
    if (c->at.n == c->at.cap) { /* room that cannot be had is no failure */
        const uint32_t cap = c->at.cap > 0 ? 2 * c->at.cap : 8;
        dc_chunk **at = dc_try_realloc(c->at.at, cap * sizeof *at);
        if (at == NULL)
            return NULL;
        c->at.at = at;
        c->at.cap = cap;
    }
    dc_chunk *x = dc_try_alloc(sizeof *x);
    char *mem = x != NULL ? dc_try_aligned(DC_HUGE_PAGE, DC_CHUNK_BYTES) : NULL;
    if (mem == NULL) {
        dc_xfree(x);
        return NULL;
    }
    madvise(mem, DC_CHUNK_BYTES, MADV_HUGEPAGE); /* a wish; refusal changes nothing */
    x->mem = mem;
    x->largest = DC_SPANS;
    x->span[0] = -DC_SPANS;
    c->at.at[c->at.n++] = x;
    return x;
}

static uint32_t pages_of(const dc_chunk *x, uint32_t at)
{
    return (uint32_t)abs(x->span[at]);
}

static int16_t as_free(uint32_t pages)
{
    return (int16_t)(-(int)pages);
}

/* The first free span of so many pages; DC_SPANS: there is none, and x->largest says so from now on. */
static uint32_t find_free(dc_chunk *x, uint32_t pages)
{
    uint32_t largest = 0;
    if (x->largest < pages)
        return DC_SPANS;
    for (uint32_t i = 0; i < DC_SPANS; i += pages_of(x, i)) {
        const uint32_t free = x->span[i] < 0 ? pages_of(x, i) : 0;
        if (free >= pages)
            return i;
        largest = free > largest ? free : largest;
    }
    x->largest = largest;
    return DC_SPANS;
}

static void *take_of(dc_chunk *x, uint32_t pages)
{
    const uint32_t at = find_free(x, pages);
    if (at == DC_SPANS)
        return NULL;
    const uint32_t rest = pages_of(x, at) - pages;
    x->span[at] = (int16_t)pages;
    if (rest > 0)
        x->span[at + pages] = as_free(rest);
    x->used += pages;
    return x->mem + (size_t)at * DC_SPAN_BYTES;
}

void *dc_chunks_take(dc_chunks *c, size_t bytes)
{
    const uint32_t pages = (uint32_t)((bytes + DC_SPAN_BYTES - 1) / DC_SPAN_BYTES);
    void *mem = c->last != NULL ? take_of(c->last, pages) : NULL;
    for (uint32_t i = 0; i < c->at.n && mem == NULL; i++) {
        c->last = c->at.at[i];
        mem = take_of(c->last, pages);
    }
    if (mem == NULL) {
        dc_chunk *x = add_chunk(c);
        mem = x != NULL ? take_of(x, pages) : NULL;
        c->last = x != NULL ? x : c->last;
    }
    return mem;
}

/* The span at `at` is free from now on, joined with those beside it. */
static void give_to(dc_chunk *x, uint32_t at)
{
    uint32_t begin = 0, pages = pages_of(x, at);
    x->used -= pages;
    while (begin + pages_of(x, begin) < at)
        begin += pages_of(x, begin);
    if (begin < at && x->span[begin] < 0)
        pages += pages_of(x, begin);
    else
        begin = at;
    const uint32_t next = begin + pages;
    if (next < DC_SPANS && x->span[next] < 0)
        pages += pages_of(x, next);
    x->span[begin] = as_free(pages);
    x->largest = pages > x->largest ? pages : x->largest;
}

static void free_chunk(dc_chunk *x)
{
    dc_free_aligned(x->mem);
    dc_xfree(x);
}

static bool another_is_empty(const dc_chunks *c, uint32_t but)
{
    for (uint32_t i = 0; i < c->at.n; i++)
        if (i != but && c->at.at[i]->used == 0)
            return true;
    return false;
}

bool dc_chunks_give(dc_chunks *c, void *mem)
{
    for (uint32_t i = 0; i < c->at.n; i++) {
        dc_chunk *x = c->at.at[i];
        const uintptr_t at = (uintptr_t)mem - (uintptr_t)x->mem;
        if (at >= DC_CHUNK_BYTES)
            continue;
        give_to(x, (uint32_t)(at / DC_SPAN_BYTES));
        if (x->used == 0 && another_is_empty(c, i)) {
            c->at.at[i] = c->at.at[--c->at.n];
            c->last = NULL;
            free_chunk(x);
        }
        return true;
    }
    return false;
}

void dc_chunks_free(dc_chunks *c)
{
    for (uint32_t i = 0; i < c->at.n; i++)
        free_chunk(c->at.at[i]);
    DC_VEC_FREE(c->at);
    c->last = NULL;
}
