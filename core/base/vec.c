#include "core/base/vec.h"

#include "core/base/job.h"
#include "core/base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *dc_vec_grow(void *at, uint32_t *cap, size_t size)
{
    uint32_t want = *cap ? *cap * 2 : 8;
    if (want <= *cap)
        dc_nomem(0);
    void *grown = dc_xrealloc(at, want * size);
    *cap = want;
    return grown;
}

void *dc_vec_grow_in(dc_arena *a, void *at, uint32_t *cap, size_t size)
{
    uint32_t want = *cap ? *cap * 2 : 8;
    if (want <= *cap)
        dc_nomem(0);
    void *grown = dc_arena_alloc(a, want * size);
    if (*cap)
        memcpy(grown, at, *cap * size);
    *cap = want;
    return grown;
}

static void reserve_text(dc_text *t, size_t more)
{
    if (t->n + more + 1 <= t->cap)
        return;
    size_t cap = t->cap * 2 > t->n + more + 1 ? t->cap * 2 : t->n + more + 1;
    t->s = dc_xrealloc(t->s, cap);
    t->cap = cap;
}

void dc_text_put(dc_text *t, const char *s, size_t n)
{
    reserve_text(t, n);
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static void put_number(dc_text *t, uint64_t v, unsigned base, bool minus)
{
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = "0123456789abcdef"[v % base];
    while ((v /= base) != 0);
    if (minus)
        *--at = '-';
    dc_text_put(t, at, (size_t)(digits + sizeof digits - at));
}

/* A whole number of the conversion c, which has `longs` times l, or z, before it. */
static void put_whole(dc_text *t, char c, int longs, va_list *ap)
{
    if (c == 'd') {
        const int64_t v = longs == 0   ? va_arg(*ap, int)
                          : longs == 1 ? va_arg(*ap, long)
                                       : va_arg(*ap, long long);
        put_number(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, v < 0);
    } else {
        const uint64_t v = longs == 0   ? va_arg(*ap, unsigned)
                           : longs == 1 ? va_arg(*ap, unsigned long)
                                        : va_arg(*ap, unsigned long long);
        put_number(t, v, c == 'x' ? 16 : 10, false);
    }
}

/*
 * Most of what printers print, many times faster than the C library: %s, %c, %% and plain whole
 * numbers. False where anything else is asked for.
 */
static bool print_plainly(dc_text *t, const char *fmt, va_list *ap)
{
    _Static_assert(sizeof(size_t) == sizeof(long), "z counts as l");
    for (;;) {
        size_t n = 0; /* pieces are too short for strcspn */
        while (fmt[n] != '\0' && fmt[n] != '%')
            n++;
        dc_text_put(t, fmt, n);
        fmt += n;
        if (*fmt == '\0')
            return true;
        int longs = 0;
        while (*++fmt == 'l' || *fmt == 'z')
            longs++;
        if (*fmt == 's' && longs == 0) {
            const char *s = va_arg(*ap, const char *);
            dc_text_put(t, s, strlen(s));
        } else if (*fmt == 'c' && longs == 0) {
            const char c = (char)va_arg(*ap, int);
            dc_text_put(t, &c, 1);
        } else if (*fmt == '%') {
            dc_text_put(t, "%", 1);
        } else if (*fmt == 'd' || *fmt == 'u' || *fmt == 'x') {
            put_whole(t, *fmt, longs, ap);
        } else {
            return false;
        }
        fmt++;
    }
}

void dc_text_printf(dc_text *t, const char *fmt, ...)
{
    if (fmt == NULL) /* never; without it gcc 12 warns under -fsanitize=undefined */
        DC_BUG("no format");
    const size_t before = t->n;
    va_list ap;
    va_start(ap, fmt);
    const bool done = print_plainly(t, fmt, &ap);
    va_end(ap);
    if (done)
        return;
    t->n = before;
    va_start(ap, fmt);
    const int n = dc_number_vformat(NULL, 0, fmt, ap);
    va_end(ap);
    reserve_text(t, (size_t)n);
    va_start(ap, fmt);
    dc_number_vformat(t->s + t->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

void dc_text_puts(dc_text *t, const char *s)
{
    dc_text_put(t, s, strlen(s));
}

void dc_text_free(dc_text *t)
{
    dc_xfree(t->s);
    *t = (dc_text){0};
}
