/* Short runs by qsort, then pairs of them are merged, to the other place and back. */
#include "core/base/sort.h"

#include "core/base/heap.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 1024 }; /* elements: what is sorted or merged between two looks */

typedef struct sorting {
    dc_job *job;
    char *from, *to;
    size_t n, size;
    int (*compare)(const void *, const void *);
} sorting;

static dc_status sort_runs(sorting *s)
{
    for (size_t at = 0; at < s->n; at += RUN) {
        DC_TRY(dc_job_ended(s->job));
        qsort(s->from + at * s->size, s->n - at < RUN ? s->n - at : RUN, s->size, s->compare);
    }
    return DC_OK;
}

/* Two runs that follow each other. */
static dc_status merge(const sorting *s, size_t first, size_t middle, size_t end)
{
    const size_t size = s->size;
    size_t a = first, b = middle;
    for (size_t i = first; i < end; i++) {
        if (i % RUN == 0)
            DC_TRY(dc_job_ended(s->job));
        const bool left =
            b == end || (a < middle && s->compare(s->from + a * size, s->from + b * size) <= 0);
        memcpy(s->to + i * size, s->from + (left ? a++ : b++) * size, size);
    }
    return DC_OK;
}

static dc_status merge_all(sorting *s)
{
    for (size_t run = RUN; run < s->n; run *= 2) {
        for (size_t at = 0; at < s->n; at += 2 * run) {
            const size_t left = s->n - at;
            DC_TRY(merge(s, at, at + (run < left ? run : left),
                         at + (2 * run < left ? 2 * run : left)));
        }
        char *swap = s->from;
        s->from = s->to;
        s->to = swap;
    }
    return DC_OK;
}

dc_status dc_sort(dc_job *j, void *at, size_t n, size_t size,
                  int (*compare)(const void *, const void *))
{
    sorting s = {.job = j, .from = at, .n = n, .size = size, .compare = compare};
    if (n < 2)
        return DC_OK;
    char *other = n > RUN ? dc_try_realloc(NULL, n * size) : NULL;
    if (n > RUN && other == NULL)
        return dc_fail_memory(j, n * size);
    s.to = other;
    dc_status status = sort_runs(&s);
    if (status == DC_OK)
        status = merge_all(&s);
    if (s.from != at) /* all of them, sorted so far */
        memcpy(at, s.from, n * size);
    dc_xfree(other);
    return status;
}
