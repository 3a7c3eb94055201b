/*
 * Kernels of tests/cuda/kernels on the stand-in: a text, perhaps with a change, compiled and run once.
 * Tests that include it are linked with the stand-in itself and run in the root of the repository.
 */
#ifndef DC_TESTS_CUDA_HARNESS_H
#define DC_TESTS_CUDA_HARNESS_H

#include <stdlib.h>

#include "tests/cuda/cuda_driver.h"
#include "tests/cuda/cuda_nvrtc.h"
#include "tests/cuda/kernel_cases.h"
#include "tests/cuda/standin_api.h"
#include "tests/t.h"

/* An image for sm_90a, to be freed; NULL, and the compiler's words printed. */
static inline char *kernel_image(const char *text)
{
    static const char *const option[] = {"--gpu-architecture=sm_90a", "--std=c++17",
                                         "--fmad=false"};
    nvrtcProgram p;
    size_t n = 0;
    char *image = NULL;
    if (nvrtcCreateProgram(&p, text, "kernel.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
        return NULL;
    if (nvrtcCompileProgram(p, 3, option) == NVRTC_SUCCESS &&
        nvrtcGetCUBINSize(p, &n) == NVRTC_SUCCESS) {
        image = malloc(n);
        nvrtcGetCUBIN(p, image);
    } else if (nvrtcGetProgramLogSize(p, &n) == NVRTC_SUCCESS) {
        char *log = calloc(n, 1);
        nvrtcGetProgramLog(p, log);
        if (log[0] != '\0')
            printf("%s\n", log);
        free(log);
    }
    nvrtcDestroyProgram(&p);
    return image;
}

/* False, and a skip, where there is no C++ compiler. */
static inline bool have_compiler(void)
{
    nvrtcProgram p;
    if (nvrtcCreateProgram(&p, "", "none.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
        return false;
    const bool ok = nvrtcCompileProgram(p, 0, NULL) != NVRTC_ERROR_INTERNAL_ERROR;
    nvrtcDestroyProgram(&p);
    if (!ok)
        T_SKIP("no g++, CUDA texts are not run on the host");
    return ok;
}

static inline void no_misuse(void)
{
    const char *why;
    while ((why = cuda_standin_take_wrong()) != NULL)
        CHECK_STR(why, NULL);
}

static inline CUcontext open_device(int d)
{
    CUcontext ctx = NULL;
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, d), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    return ctx;
}

static inline void close_device(int d)
{
    CHECK_EQ(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(d), CUDA_SUCCESS);
}

#endif
