/* One launch of a kernel whose parameters are memory, with its traffic counted. */
#ifndef DC_TESTS_CUDA_MEASURE_H
#define DC_TESTS_CUDA_MEASURE_H

#include <stdint.h>

#include "tests/cuda/harness.h"

enum { MEASURE_MOST = 500 };

typedef struct measured {
    const cuda_traffic *row; /* until the next measurement */
    size_t n;
} measured;

/* Puts something into parameter p, which is full of 0xff. */
typedef bool measure_fill(unsigned p, CUdeviceptr at, size_t bytes);

static inline bool small_numbers(unsigned p, CUdeviceptr at, size_t bytes)
{
    return cuMemsetD8_v2(at, (unsigned char)(p + 1), bytes) == CUDA_SUCCESS;
}

/*
 * Parameters of `bytes` each; an entry with two parameters more than that is one of the CUDA dialect and gets a null
 * base and no stop word before them. False: a failure, which was printed.
 */
static inline bool measure_with(const char *text, const char *entry, unsigned grid,
                                unsigned threads, unsigned dynamic, unsigned n, const size_t *bytes,
                                measure_fill *fill, measured *out)
{
    CUdeviceptr at[MEASURE_MOST], none = 0;
    void *argument[MEASURE_MOST + 2];
    CUmodule m = NULL;
    CUfunction f = NULL;
    size_t offset;
    char *image = kernel_image(text);
    if (image == NULL)
        return false;
    open_device(0);
    bool ok = cuModuleLoadData(&m, image) == CUDA_SUCCESS &&
              cuModuleGetFunction(&f, m, entry) == CUDA_SUCCESS;
    unsigned first = ok && cuFuncGetParamInfo(f, n, &offset, NULL) == CUDA_SUCCESS ? 2 : 0;
    argument[0] = argument[1] = &none;
    size_t size = 0; /* of an array, which all of them are */
    const bool array = ok && n > 1 && cuFuncGetParamInfo(f, 2, &offset, &size) == CUDA_SUCCESS &&
                       size == n * sizeof *at;
    first = array ? 2 : first;
    ok = ok &&
         (array || cuFuncGetParamInfo(f, n + first, &offset, NULL) == CUDA_ERROR_INVALID_VALUE);
    if (ok && dynamic > 48 << 10)
        cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)dynamic);
    for (unsigned p = 0; p < n; p++) {
        ok = ok && cuMemAlloc_v2(&at[p], bytes[p]) == CUDA_SUCCESS;
        ok = ok && fill(p, at[p], bytes[p]);
        argument[first + p] = &at[p];
    }
    ok = ok &&
         cuLaunchKernel(f, grid, 1, 1, threads, 1, 1, dynamic, NULL, argument, NULL) ==
             CUDA_SUCCESS &&
         cuCtxSynchronize() == CUDA_SUCCESS;
    for (unsigned p = 0; ok && p < n; p++)
        ok = cuMemFree_v2(at[p]) == CUDA_SUCCESS;
    if (m != NULL)
        cuModuleUnload(m);
    close_device(0);
    free(image);
    for (const char *why; (why = cuda_standin_take_wrong()) != NULL; ok = false)
        printf("%s\n", why);
    out->n = cuda_standin_traffic(entry, &out->row);
    return ok && out->n > 0;
}

/* Parameters are filled with small numbers. */
static inline bool measure(const char *text, const char *entry, unsigned grid, unsigned threads,
                           unsigned dynamic, unsigned n, const size_t *bytes, measured *out)
{
    return measure_with(text, entry, grid, threads, dynamic, n, bytes, small_numbers, out);
}

#endif
