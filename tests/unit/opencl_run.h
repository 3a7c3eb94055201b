/*
 * A device of OpenCL, opened by itself, and three kernels in both forms, for the tests of
 * backends/opencl.
 *
 *   ocl w;
 *   if (ocl_open(&w, "workers")) { p = ocl_compile(&w); ...; ocl_close(&w); }
 *   int main(void) { return ocl_main(test); }       skips where there is no such device
 *
 * A kernel costs PoCL some 100 ms where it is launched first, so there are few and each does a lot.
 */
#ifndef DC_TESTS_OPENCL_RUN_H
#define DC_TESTS_OPENCL_RUN_H

#ifndef _XOPEN_SOURCE
#error "mkdtemp, nftw, setenv: the test defines _XOPEN_SOURCE 700 first"
#endif

#include "backends/opencl/cl_impl.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"

typedef struct ocl {
    dc_opts opt;
    dc_job j;
    dc_device *d;
} ocl;

#define CALL(w, verb, ...) ((w)->d->ops->verb((w)->d, __VA_ARGS__))

static inline const char *ocl_said(const ocl *w)
{
    const char *s = w->j.err.fact.word[0];
    return s != NULL ? s : "";
}

static inline void ocl_forget(ocl *w)
{
    w->j.err = (dc_err){0};
}

/* The failure that the last call left speaks of `part`. */
static inline void ocl_check_said(ocl *w, const char *part)
{
    if (!CHECK(strstr(ocl_said(w), part) != NULL))
        printf("said: %s\n", ocl_said(w));
    ocl_forget(w);
}

static inline void ocl_begin(ocl *w, const char *library, const char *target)
{
    const char *bad;
    dc_opts_init(&w->opt, &bad);
    snprintf(w->opt.opencl, sizeof w->opt.opencl, "%s", library);
    snprintf(w->opt.target, sizeof w->opt.target, "%s", target);
    dc_job_init(&w->j, &w->opt, NULL);
    w->d = NULL;
}

static inline bool ocl_open(ocl *w, const char *target)
{
    ocl_begin(w, "", target);
    if (CHECK_EQ(dc_opencl_open(&w->j, 0, &w->d), DC_OK))
        return true;
    printf("said: %s\n", ocl_said(w));
    dc_job_fini(&w->j);
    return false;
}

/* Nothing of OpenCL is left when memory and the cache of programs are gone. */
static inline void ocl_close(ocl *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    CHECK_EQ(cl->range.n, 0);
    dc_cl_programs_close(cl);
    CHECK_EQ(atomic_load(&cl->objects), 0);
    w->d->ops->free(w->d);
    dc_job_fini(&w->j);
}

static inline char *ocl_alloc(ocl *w, size_t bytes)
{
    void *p = NULL;
    CHECK_EQ(CALL(w, alloc, &w->j, bytes, &p), DC_OK);
    CHECK_EQ((uintptr_t)p % 4096, 0);
    return p;
}

static inline void ocl_release(ocl *w, void *p)
{
    w->d->ops->release(w->d, p);
}

static inline void ocl_put(ocl *w, void *to, const void *from, size_t bytes)
{
    CHECK_EQ(CALL(w, upload, &w->j, to, from, bytes), DC_OK);
}

static inline void ocl_get(ocl *w, void *to, const void *from, size_t bytes)
{
    CHECK_EQ(CALL(w, download, &w->j, to, from, bytes), DC_OK);
}

/*
 * axpy      c[i] = a[i] * block[0] + b[i]; at work item i
 * advance   x[0] += number of the iteration; going = x[0] < limit
 */
#define BODY_AXPY                                                            \
    "    __global const float *a = (__global const float *)(b0 + o0);\n"     \
    "    __global const float *b = (__global const float *)(b1 + o1);\n"     \
    "    __global const float *block = (__global const float *)(b2 + o2);\n" \
    "    __global float *c = (__global float *)(b3 + o3);\n"
#define BODY_ADVANCE                                                  \
    "    *(__global int *)(b0 + o0) += *(__global int *)(b1 + o1);\n" \
    "    *(b2 + o2) = *(__global int *)(b0 + o0) < *(__global int *)(b3 + o3);\n"
#define BUFFERS                                                                        \
    "__global uchar *b0, ulong o0, __global uchar *b1, ulong o1, __global uchar *b2, " \
    "ulong o2, __global uchar *b3, ulong o3"

/* stacked: each thread fills its scratch and sums it up; scratch is 64 bytes. */
static const char *const ocl_for_workers =
    "__kernel void axpy(" BUFFERS ", __global uchar *scratch, long first, long last)\n"
    "{\n" BODY_AXPY
    "    for (long i = first + get_global_id(0); i < last; i += get_global_size(0))\n"
    "        c[i] = a[i] * block[0] + b[i];\n"
    "}\n"
    "__kernel void advance(" BUFFERS ", __global uchar *scratch, long first, long last)\n"
    "{\n" BODY_ADVANCE "}\n"
    "__kernel void stacked(__global uchar *b0, ulong o0, __global uchar *scratch,\n"
    "                      long first, long last)\n"
    "{\n"
    "    __global int *mine = (__global int *)(scratch + 64 * get_global_id(0));\n"
    "    for (long p = first + get_global_id(0); p < last; p += get_global_size(0)) {\n"
    "        for (int i = 0; i < 16; i++)\n"
    "            mine[i] = (int)p + i;\n"
    "        int sum = 0;\n"
    "        for (int i = 0; i < 16; i++)\n"
    "            sum += mine[i];\n"
    "        ((__global int *)(b0 + o0))[p] = sum;\n"
    "    }\n"
    "}\n";

/* stacked: the same numbers, made by a group whose threads read what others wrote. */
static const char *const ocl_for_groups =
    "__kernel void axpy(" BUFFERS ")\n"
    "{\n" BODY_AXPY "    const long i = get_group_id(0) + get_global_offset(0) / 16;\n"
    "    if (get_local_id(0) == 0)\n"
    "        c[i] = a[i] * block[0] + b[i];\n"
    "}\n"
    "__kernel void advance(" BUFFERS ")\n"
    "{\n"
    "    if (get_local_id(0) > 0)\n"
    "        return;\n" BODY_ADVANCE "}\n"
    "__kernel void stacked(__global uchar *b0, ulong o0)\n"
    "{\n"
    "    __local int all[16];\n"
    "    const int t = (int)get_local_id(0);\n"
    "    const int group = (int)(get_group_id(0) + get_global_offset(0) / 16);\n"
    "    all[15 - t] = group + t;\n"
    "    for (int n = 8; n > 0; n /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (t < n)\n"
    "            all[t] += all[t + n];\n"
    "    }\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (t == 5)\n"
    "        ((__global int *)(b0 + o0))[group] = all[0];\n"
    "}\n";

enum { AXPY, ADVANCE, STACKED, COUNT = 37, THREADS = 16 };
static const char *const ocl_entries[] = {"axpy", "advance", "stacked"};

static inline dc_program *ocl_compile(ocl *w)
{
    const bool simt = w->d->ops->target(w->d)->simt;
    const dc_source src = {simt ? ocl_for_groups : ocl_for_workers, "opencl", ocl_entries, 3};
    dc_program *p = NULL;
    if (!CHECK_EQ(CALL(w, compile, &w->j, &src, &p), DC_OK))
        printf("said: %s\n", ocl_said(w));
    return p;
}

static inline dc_command ocl_launch(dc_program *p, uint32_t entry, int64_t grid, uint32_t nbind,
                                    const dc_bind *bind)
{
    return (dc_command){.kind = DC_COMMAND_LAUNCH,
                        .program = p,
                        .entry = entry,
                        .grid = grid,
                        .threads = THREADS,
                        .scratch = entry == STACKED ? 64 : 0,
                        .nbind = nbind,
                        .bind = bind};
}

static inline dc_recording *ocl_record(ocl *w, const dc_command *item, uint32_t n)
{
    dc_recording *r = NULL;
    if (!CHECK_EQ(CALL(w, record, &w->j, item, n, &r), DC_OK))
        printf("said: %s\n", ocl_said(w));
    return r;
}

static inline int ocl_drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    DC_UNUSED(st);
    DC_UNUSED(kind);
    DC_UNUSED(ftw);
    return remove(path);
}

static inline int ocl_main(void (*test)(void))
{
    char cache[] = "/tmp/deepc-pocl-XXXXXX", line[400];
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    setenv("POCL_KERNEL_CACHE", "1", 1); /* within this run */
    if (mkdtemp(cache) == NULL)
        cache[0] = '\0';
    else
        setenv("POCL_CACHE_DIR", cache, 1);
    if (dc_opencl_describe(&opt, 0, line, sizeof line)) {
        test();
    } else {
        T_SKIP(line);
    }
    if (cache[0] != '\0')
        nftw(cache, ocl_drop, 16, FTW_DEPTH | FTW_PHYS);
    return t_done();
}

#endif
