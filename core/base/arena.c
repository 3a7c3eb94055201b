#include "core/base/arena.h"

#include "core/base/job.h"
#include "core/base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#ifndef DC_ARENA_BLOCK /* tests make it tiny: every object a block of its own */
#define DC_ARENA_BLOCK (1 << 16)
#endif

enum { BLOCK_BYTES = DC_ARENA_BLOCK, ALIGN = 16 };

struct dc_block {
    dc_block *older;
    size_t size;
    _Alignas(ALIGN) unsigned char data[];
};

static void push_block(dc_arena *a, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    dc_block *b = dc_xrealloc(NULL, sizeof *b + size);
    b->older = a->top;
    b->size = size;
    ASAN_POISON_MEMORY_REGION(b->data, size);
    a->top = b;
    a->used = 0;
    a->total += size;
}

static void clear_long(unsigned char *p, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = dc_piece_of(bytes - at);
        memset(p + at, 0, n);
        dc_job_look();
    }
}

void *dc_arena_alloc(dc_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        dc_nomem(bytes);
    size_t need = dc_align_up(bytes ? bytes : 1, ALIGN);
    if (a->top == NULL || a->top->size - a->used < need)
        push_block(a, need);
    void *p = a->top->data + a->used;
    a->used += need;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    if (bytes > DC_PIECE_BYTES)
        clear_long(p, bytes);
    else
        memset(p, 0, bytes);
    return p;
}

char *dc_arena_strdup(dc_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(dc_arena_alloc(a, n), s, n);
}

char *dc_arena_printf(dc_arena *a, const char *fmt, ...)
{
    if (fmt == NULL) /* never; without it gcc 12 warns under -fsanitize=undefined */
        DC_BUG("no format");
    va_list ap;
    va_start(ap, fmt);
    const int n = dc_number_vformat(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = dc_arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    dc_number_vformat(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

dc_mark dc_arena_mark(const dc_arena *a)
{
    return (dc_mark){a->top, a->used};
}

void dc_arena_rewind(dc_arena *a, dc_mark m)
{
    while (a->top != m.top) {
        dc_block *b = a->top;
        a->top = b->older;
        a->total -= b->size;
        ASAN_UNPOISON_MEMORY_REGION(b->data, b->size);
        dc_xfree(b);
    }
    a->used = m.used;
    if (a->top != NULL)
        ASAN_POISON_MEMORY_REGION(a->top->data + m.used, a->top->size - m.used);
}

void dc_arena_free(dc_arena *a)
{
    dc_arena_rewind(a, (dc_mark){NULL, 0});
}
