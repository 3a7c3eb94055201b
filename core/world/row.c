/* Rows of elements in the arrays of an exchange (core/world/world_impl.h). */
#include "core/world/world_impl.h"

#include <string.h>

static dc_row row_of(const dc_call *c, bool to, int64_t part, int64_t parts)
{
    return (dc_row){.x = c->x, .size = c->size, .to = to, .part = part, .parts = parts};
}

dc_row dc_row_from(const dc_call *c, int64_t part, int64_t parts)
{
    return row_of(c, false, part, parts);
}

dc_row dc_row_to(const dc_call *c, int64_t part, int64_t parts)
{
    return row_of(c, true, part, parts);
}

static char *start_of(const dc_row *r, const dc_transfer *t)
{
    return r->to ? t->to : (char *)(uintptr_t)t->from; /* which is only read */
}

char *dc_row_at(dc_row *r, int64_t at, int64_t *run)
{
    if (r->x == NULL) {
        *run = INT64_MAX;
        return r->base + (size_t)at * r->size;
    }
    if (at < r->before)
        r->array = 0, r->before = 0;
    const dc_transfer *t = &r->x->at[r->array];
    while (at - r->before >= t->outer * t->inner) {
        r->before += t->outer * t->inner;
        t = &r->x->at[++r->array];
    }
    const int64_t i = at - r->before, row = i / t->inner, column = i % t->inner;
    *run = r->parts == 1 ? t->outer * t->inner - i : t->inner - column;
    return start_of(r, t) + (size_t)((row * r->parts + r->part) * t->inner + column) * r->size;
}

void dc_row_read(dc_row *r, int64_t at, int64_t n, void *out)
{
    for (int64_t done = 0, run; done < n; done += run) {
        const char *p = dc_row_at(r, at + done, &run);
        run = dc_min_i64(run, n - done);
        memcpy((char *)out + (size_t)done * r->size, p, (size_t)run * r->size);
    }
}

void dc_row_write(dc_row *r, int64_t at, int64_t n, const void *in)
{
    for (int64_t done = 0, run; done < n; done += run) {
        char *p = dc_row_at(r, at + done, &run);
        run = dc_min_i64(run, n - done);
        memcpy(p, (const char *)in + (size_t)done * r->size, (size_t)run * r->size);
    }
}

void dc_row_copy(dc_row *to, dc_row *from, int64_t n)
{
    for (int64_t done = 0, run; done < n; done += run) {
        int64_t other;
        char *p = dc_row_at(to, done, &run);
        const char *q = dc_row_at(from, done, &other);
        run = dc_min_i64(dc_min_i64(run, other), n - done);
        if (p != q)
            memcpy(p, q, (size_t)run * to->size);
    }
}

void dc_row_combine(dc_combine_fn *fn, dc_row *to, int64_t to_at, dc_row *own, int64_t own_at,
                    int64_t n, const char **from, int nfrom, int place, size_t size)
{
    for (int64_t done = 0, run; done < n; done += run) {
        int64_t other;
        char *p = dc_row_at(to, to_at + done, &run);
        from[place] = dc_row_at(own, own_at + done, &other);
        run = dc_min_i64(dc_min_i64(run, other), n - done);
        fn(p, (const void *const *)from, nfrom, (size_t)run);
        for (int m = 0; m < nfrom; m++)
            from[m] += (size_t)run * size;
    }
}
