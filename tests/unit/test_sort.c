/* core/base/sort.c: as a stable sort, of any number of elements of any size; ended at any look it loses none. */
#define _POSIX_C_SOURCE 200809L
#include "tests/t.h"

#include "core/base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/rng.h"

static dc_opts opt;
static dc_log lines;
static dc_job job;
static atomic_bool cancel;
static long compared, most; /* the job is cancelled when so many have been */

typedef struct element {
    uint32_t key, place;
    char rest[9]; /* an odd size */
} element;

static int by_key(const void *x, const void *y)
{
    const element *a = x, *b = y;
    if (++compared == most)
        atomic_store(&cancel, true);
    return (a->key > b->key) - (a->key < b->key);
}

static dc_status sort_body(dc_job *j, void *arg)
{
    dc_text *t = arg;
    return dc_sort(j, t->s, t->n, sizeof(element), by_key);
}

static dc_status sort(element *e, size_t n)
{
    dc_text t = {.s = (char *)e, .n = n};
    job.cancel = &cancel;
    return dc_protect(&job, sort_body, &t);
}

static element *make(rng *r, size_t n, int keys)
{
    element *e = calloc(n + 1, sizeof *e);
    for (size_t i = 0; i < n; i++) {
        e[i].key = (uint32_t)rng_below(r, keys);
        e[i].place = (uint32_t)i;
        memset(e[i].rest, (int)(i % 251), sizeof e[i].rest);
    }
    return e;
}

/* Each element is there once. */
static bool has_all(const element *e, size_t n)
{
    char *seen = calloc(n + 1, 1);
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        all =
            all && e[i].place < n && !seen[e[i].place] && e[i].rest[8] == (char)(e[i].place % 251);
        if (e[i].place < n)
            seen[e[i].place] = 1;
    }
    free(seen);
    return all;
}

static bool is_sorted(const element *e, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (e[i - 1].key > e[i].key || (e[i - 1].key == e[i].key && e[i - 1].place > e[i].place))
            return false;
    return true;
}

static void test_order(rng *r)
{
    static const size_t sizes[] = {0, 1, 2, 3, 1023, 1024, 1025, 2048, 2049, 5000, 70000};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++)
        for (int keys = 1; keys <= 1000000; keys *= 1000) {
            element *e = make(r, sizes[i], keys);
            CHECK_EQ(sort(e, sizes[i]), DC_OK);
            CHECK(is_sorted(e, sizes[i]) && has_all(e, sizes[i]));
            free(e);
        }
}

/* Ended soon after, wherever it was. */
static void test_ended(rng *r)
{
    enum { N = 20000, ONE = 1024 * 12 };
    element *e = make(r, N, 1000000);
    compared = 0;
    CHECK_EQ(sort(e, N), DC_OK);
    const long all = compared;
    free(e);
    for (most = 1; most < all - ONE; most += all / 37) {
        e = make(r, N, 1000000);
        compared = 0;
        CHECK_EQ(sort(e, N), DC_E_STATE);
        CHECK(compared <= most + ONE);
        CHECK(has_all(e, N));
        atomic_store(&cancel, false);
        free(e);
    }
    most = 0;
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 1)};
    dc_job_init(&job, &opt, &lines);
    test_order(&r);
    test_ended(&r);
    dc_job_fini(&job);
    return t_done();
}
