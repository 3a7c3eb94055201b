#include "core/vec.h"

#include "core/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *dc_vec_grow(void *at, uint32_t *cap, size_t size)
{
    uint32_t want = *cap ? *cap * 2 : 8;
    if (want <= *cap)
        dc_nomem();
    void *grown = dc_xrealloc(at, want * size);
    *cap = want;
    return grown;
}

void *dc_vec_grow_in(dc_arena *a, void *at, uint32_t *cap, size_t size)
{
    uint32_t want = *cap ? *cap * 2 : 8;
    if (want <= *cap)
        dc_nomem();
    void *grown = dc_arena_alloc(a, want * size);
    if (*cap)
        memcpy(grown, at, *cap * size);
    *cap = want;
    return grown;
}

static void reserve(dc_text *t, size_t more)
{
    if (t->n + more + 1 <= t->cap)
        return;
    size_t cap = t->cap * 2 > t->n + more + 1 ? t->cap * 2 : t->n + more + 1;
    t->s = dc_xrealloc(t->s, cap);
    t->cap = cap;
}

void dc_text_printf(dc_text *t, const char *fmt, ...)
{
    if (fmt == NULL) /* never; without it gcc 12 warns under -fsanitize=undefined */
        DC_BUG("no format");
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    reserve(t, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

void dc_text_puts(dc_text *t, const char *s)
{
    size_t n = strlen(s);
    reserve(t, n);
    memcpy(t->s + t->n, s, n + 1);
    t->n += n;
}

void dc_text_free(dc_text *t)
{
    dc_xfree(t->s);
    *t = (dc_text){0};
}
