#include "jit/sim/sim_target.h"

#include <string.h>

#define KIB ((size_t)1024)

/* What kernels are made for, whichever the text is that they become. */
#define WORKERS \
    .bundles = true, .vector_bytes = 64, .vector_registers = 32, .l1 = 32 * KIB, .l2 = 1024 * KIB
#define GROUPS .simt = true, .bundles = true, .vector_bytes = 4, .vector_registers = 64
#define OPENCL                                                                  \
    GROUPS, .buffers = 63 /* 1024 bytes of parameters */, .group_threads = 256, \
            .group_bytes = 32 * KIB, .l1 = 16 * KIB, .l2 = 1024 * KIB
#define CUDA                                                                               \
    GROUPS, .group_threads = 1024, .lanes = 32, .group_bytes = 163 * KIB, .l1 = 128 * KIB, \
            .l2 = 4096 * KIB, .half = true, .bfloat = true

static const dc_target targets[] = {
    {.name = "cpu", .dialect = "llvm", WORKERS},
    {.name = "c11", .dialect = "c11", WORKERS},
    {.name = "opencl", .dialect = "opencl", OPENCL},
    {.name = "cuda",
     .dialect = "cuda",
     CUDA,
     .buffers = 500, /* 4096 bytes of parameters */
     .units = 108,
     .sm = 80},
    {.name = "cuda:wgmma",
     .dialect = "cuda",
     CUDA,
     .buffers = 500,
     .units = 132,
     .sm = 90,
     .warpgroups = true},
    {.name = "sim:opencl", .dialect = "flat", OPENCL},
    {.name = "sim:cuda", .dialect = "flat", CUDA, .units = 4, .sm = 80},
    {.name = "sim:few",
     .dialect = "flat",
     GROUPS,
     .buffers = 63,
     .group_threads = 64,
     .group_bytes = 16 * KIB,
     .l1 = 8 * KIB,
     .l2 = 64 * KIB},
    {.name = "sim:wgmma", .dialect = "flat", CUDA, .units = 4, .sm = 90, .warpgroups = true},
    /* Vectors and caches are small, so that small tests have several vectors, tails and tiles. */
    {.name = "sim:cpu",
     .dialect = "flat",
     .bundles = true,
     .vector_bytes = 16,
     .vector_registers = 16,
     .l1 = 8 * KIB,
     .l2 = 64 * KIB},
};

const dc_target *dc_sim_target_named(const char *name)
{
    for (size_t i = 0; i < DC_COUNTOF(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}
