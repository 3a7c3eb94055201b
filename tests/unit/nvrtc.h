/*
 * CUDA C++ to machine code by NVRTC, and its run where there is a driver. Both libraries are opened at
 * run time; the prototypes are our own. A part that is absent is told by `why`.
 */
#ifndef DC_TESTS_NVRTC_H
#define DC_TESTS_NVRTC_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  result, name, parameters */
#define NVRTC_API(F)                                                                          \
    F(int, Version, (int *major, int *minor))                                                 \
    F(int, CreateProgram,                                                                     \
      (void **program, const char *text, const char *name, int n, const char *const *headers, \
       const char *const *names))                                                             \
    F(int, DestroyProgram, (void **program))                                                  \
    F(int, CompileProgram, (void *program, int n, const char *const *options))                \
    F(int, GetProgramLogSize, (void *program, size_t *size))                                  \
    F(int, GetProgramLog, (void *program, char *log))                                         \
    F(int, GetCUBINSize, (void *program, size_t *size))                                       \
    F(int, GetCUBIN, (void *program, char *image))

enum { NVRTC_INVALID_OPTION = 5 };

typedef struct nvrtc {
    void *lib;
    int major, minor;
#define FIELD(result, name, parameters) result(*name) parameters;
    NVRTC_API(FIELD)
#undef FIELD
} nvrtc;

static inline bool nvrtc_resolve(nvrtc *n)
{
    bool all = true;
#define RESOLVE(result, name, parameters)       \
    {                                           \
        void *p = dlsym(n->lib, "nvrtc" #name); \
        all = all && p != NULL;                 \
        memcpy(&n->name, &p, sizeof p);         \
    }
    NVRTC_API(RESOLVE)
#undef RESOLVE
    return all && n->Version(&n->major, &n->minor) == 0;
}

static inline bool nvrtc_open_file(nvrtc *n, const char *path)
{
    n->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return n->lib != NULL && nvrtc_resolve(n);
}

static inline bool nvrtc_open(nvrtc *n)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
            char path[100];
            snprintf(path, sizeof path, "%s%s", folders[k], names[i]);
            if (nvrtc_open_file(n, path))
                return true;
        }
    return false;
}

/* ptxas made products of warp groups wait for each other: notes C7510 to C7519 of it. */
static inline bool nvrtc_serializes(const nvrtc *n, void *program)
{
    size_t size = 0;
    if (n->GetProgramLogSize(program, &size) != 0)
        return false;
    char *log = calloc(size + 1, 1);
    n->GetProgramLog(program, log);
    const bool found = strstr(log, "(C751") != NULL;
    free(log);
    return found;
}

/* A cubin of *bytes for "sm_80" or the like, to be freed; NULL, and the compiler's words printed. */
static inline void *nvrtc_image(const nvrtc *n, const char *text, const char *arch, size_t *bytes)
{
    char option[40];
    void *program = NULL, *image = NULL;
    size_t size = 0;
    *bytes = 0;
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    const char *const options[] = {option, "--std=c++17", "--fmad=false",
                                   "--minimal"}; /* the last where known */
    if (n->CreateProgram(&program, text, "kernels.cu", 0, NULL, NULL) != 0)
        return NULL;
    int status = n->CompileProgram(program, 4, options);
    if (status == NVRTC_INVALID_OPTION)
        status = n->CompileProgram(program, 3, options);
    if (status == 0 && n->GetCUBINSize(program, &size) == 0 && size > 0) {
        image = malloc(size);
        *bytes = size;
        if (n->GetCUBIN(program, image) != 0) {
            free(image);
            image = NULL;
        }
    }
    if (image != NULL && nvrtc_serializes(n, program)) {
        free(image);
        image = NULL;
    }
    if (image == NULL && n->GetProgramLogSize(program, &size) == 0) {
        char *log = calloc(size + 1, 1);
        n->GetProgramLog(program, log);
        printf("    %s: status %d\n%.3000s\n", arch, status, log);
        free(log);
    }
    n->DestroyProgram(&program);
    return image;
}

static inline void *nvrtc_compile(const nvrtc *n, const char *text, const char *arch)
{
    size_t bytes;
    return nvrtc_image(n, text, arch, &bytes);
}

/* The driver -------------------------------------------------------------------------------- */

typedef unsigned long long cuda_address;

/*  name of the function, name in the library, parameters */
#define CUDA_API(F)                                                                            \
    F(Init, "cuInit", (unsigned flags))                                                        \
    F(DeviceGet, "cuDeviceGet", (int *device, int number))                                     \
    F(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int which, int device))         \
    F(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **context, int device))              \
    F(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                         \
    F(CtxSetCurrent, "cuCtxSetCurrent", (void *context))                                       \
    F(CtxSynchronize, "cuCtxSynchronize", (void))                                              \
    F(ModuleLoadData, "cuModuleLoadData", (void **module, const void *image))                  \
    F(ModuleUnload, "cuModuleUnload", (void *module))                                          \
    F(ModuleGetFunction, "cuModuleGetFunction", (void **fn, void *module, const char *name))   \
    F(MemAlloc, "cuMemAlloc_v2", (cuda_address * at, size_t bytes))                            \
    F(MemFree, "cuMemFree_v2", (cuda_address at))                                              \
    F(CopyTo, "cuMemcpyHtoD_v2", (cuda_address to, const void *from, size_t bytes))            \
    F(CopyFrom, "cuMemcpyDtoH_v2", (void *to, cuda_address from, size_t bytes))                \
    F(LaunchKernel, "cuLaunchKernel",                                                          \
      (void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
       unsigned shared, void *stream, void **arguments, void **extra))

enum { CUDA_MAJOR = 75, CUDA_MINOR = 76 }; /* attributes: compute capability */

typedef struct cuda {
    void *lib, *context;
    int device;
    char arch[16];
#define FIELD(name, symbol, parameters) int(*name) parameters;
    CUDA_API(FIELD)
#undef FIELD
} cuda;

static inline bool cuda_resolve(cuda *c)
{
    bool all = true;
#define RESOLVE(name, symbol, parameters) \
    {                                     \
        void *p = dlsym(c->lib, symbol);  \
        all = all && p != NULL;           \
        memcpy(&c->name, &p, sizeof p);   \
    }
    CUDA_API(RESOLVE)
#undef RESOLVE
    return all;
}

/* False where there is no driver or no GPU. */
static inline bool cuda_open(cuda *c)
{
    int major = 0, minor = 0;
    c->lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (c->lib == NULL || !cuda_resolve(c) || c->Init(0) != 0 || c->DeviceGet(&c->device, 0) != 0)
        return false;
    if (c->DeviceGetAttribute(&major, CUDA_MAJOR, c->device) != 0 ||
        c->DeviceGetAttribute(&minor, CUDA_MINOR, c->device) != 0)
        return false;
    snprintf(c->arch, sizeof c->arch, "sm_%d%d", major, minor);
    return c->PrimaryCtxRetain(&c->context, c->device) == 0 && c->CtxSetCurrent(c->context) == 0;
}

static inline void cuda_close(cuda *c)
{
    c->PrimaryCtxRelease(c->device);
}

/* Content of mem[p] to the device, the launch, and back. The first two parameters of a kernel are 0. */
static inline bool cuda_launch(const cuda *c, void *module, const char *name, unsigned groups,
                               unsigned threads, int n, void *const *mem, const size_t *bytes)
{
    cuda_address at[64] = {0}, none = 0;
    void *argument[66] = {&none, &none}, *fn;
    bool ok = n <= 64 && c->ModuleGetFunction(&fn, module, name) == 0;
    for (int p = 0; p < n && ok; p++) {
        argument[2 + p] = &at[p];
        ok = c->MemAlloc(&at[p], bytes[p] + 64) == 0 && c->CopyTo(at[p], mem[p], bytes[p]) == 0;
    }
    ok = ok && c->LaunchKernel(fn, groups, 1, 1, threads, 1, 1, 0, NULL, argument, NULL) == 0 &&
         c->CtxSynchronize() == 0;
    for (int p = 0; p < n; p++) {
        ok = ok && c->CopyFrom(mem[p], at[p], bytes[p]) == 0;
        if (at[p] != 0)
            c->MemFree(at[p]);
    }
    return ok;
}

#endif
