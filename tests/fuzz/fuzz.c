#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/fuzz.h"

#include "core/ir/control.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char error[1000];
static uint64_t asked, taken; /* readers that were given something; that took it */

static void tell_taken(void)
{
    fprintf(stderr, "taken: %llu of %llu\n", (unsigned long long)taken, (unsigned long long)asked);
}

void fuzz_finding(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("FINDING: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("\n", stderr);
    va_end(ap);
    abort();
}

const char *fuzz_error(void)
{
    return error;
}

dc_status fuzz_protect(dc_status (*body)(dc_job *, void *), void *arg)
{
    return fuzz_protect_but(body, arg, NULL);
}

dc_status fuzz_protect_but(dc_status (*body)(dc_job *, void *), void *arg, const char *words)
{
    dc_opts opt;
    dc_job j;
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    const dc_status status = dc_protect(&j, body, arg);
    error[0] = '\0';
    if (status != DC_OK)
        dc_err_render(&j.err, 0, error, sizeof error);
    if (status == DC_E_BUG && (words == NULL || strstr(error, words) == NULL))
        fuzz_finding("a broken promise: %s", error);
    if (status != DC_OK && error[0] == '\0')
        fuzz_finding("status %d without a sentence", status);
    dc_job_fini(&j);
    if (asked++ == 0)
        atexit(tell_taken);
    taken += status == DC_OK;
    return status;
}

static int fd = -1;

const char *fuzz_path(void)
{
    static char path[40];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    return path;
}

const char *fuzz_file(const void *bytes, size_t n)
{
    const char *path = fuzz_path();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        abort();
    return path;
}

static int64_t count_of(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    int64_t count = 1;
    for (int i = 0; i < n->rank; i++)
        if (!dc_mul_ok(count, n->dim[i] > 0 ? n->dim[i] : 1, &count))
            return INT64_MAX;
    return count;
}

/* Elements that a body computes, as often as its node asks for; -1: too many. */
static int64_t cost_of(const dc_func *f, int64_t elements);

static int64_t bodies_of(const dc_func *f, const dc_node *n, int64_t elements)
{
    int64_t product = 0, all = 0, times = n->op == DC_OP_LOOP ? n->attr[1] : 1;
    for (int i = 0; i < dc_node_bodies(n); i++) {
        const int64_t one = cost_of(dc_body_at(f->module, n->attr[i]), elements);
        if (one < 0 || !dc_mul_ok(one, times, &product))
            return -1;
        all += product;
    }
    return all;
}

static int64_t cost_of(const dc_func *f, int64_t elements)
{
    enum { PRODUCT = 2000000 };
    int64_t all = 1, product; /* an iteration that computes nothing takes time, too */
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        const int64_t inside = dc_node_bodies(n) > 0 ? bodies_of(f, n, elements) : 0;
        if (inside < 0 || !dc_add_ok(all, count_of(f, r), &all) || !dc_add_ok(all, inside, &all) ||
            all > elements)
            return -1;
        if (dc_node_bodies(n) > 0)
            continue;
        if (n->nin >= 2 && (!dc_mul_ok(count_of(f, n->in[0]), count_of(f, n->in[1]), &product) ||
                            product > PRODUCT))
            return -1;
    }
    return all;
}

bool fuzz_is_small(const dc_func *f, int64_t elements)
{
    return dc_control_bodies(f) < 100 && cost_of(f, elements) >= 0;
}

static double number_of(dc_dtype t, uint64_t draw)
{
    static const double odd[] = {0,        -0.0,      1,   -1, 0.5, 3,   1e30,  -1e30,
                                 INFINITY, -INFINITY, NAN, 2,  7,   100, 1e-40, 255};
    if (dc_dtype_is_float(t))
        return odd[draw >> 60];
    return t == DC_BOOL ? (double)(draw >> 63) : (double)(draw >> 58 & 15);
}

void *fuzz_value(dc_arena *a, const dc_type *t, uint64_t *state)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const size_t n = (size_t)dc_type_count(t);
    char *at = dc_arena_alloc(a, dc_type_bytes(t));
    for (size_t i = 0; i < n; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        dc_bits_store(dtype, at + i * dc_dtype_size(dtype),
                      dc_bits_of(dtype, number_of(dtype, *state)));
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n)
{
    char *text = malloc(n + 1); /* of its own, so that reading past its end is seen */
    if (text == NULL)
        return 0;
    if (n > 0)
        memcpy(text, at, n);
    text[n] = '\0';
    fuzz_one(&(fuzz_input){at, n, text});
    free(text);
    return 0;
}
