#include "jit/sim/sim_target.h"

#include <string.h>

#define KIB ((size_t)1024)

/*
 * Vectors and caches of sim:cpu are small, so that small tests have several vectors, tails and
 * tiles.
 */
static const dc_target targets[] = {
    {.name = "cpu",
     .dialect = "llvm",
     .bundles = true,
     .vector_bytes = 64,
     .vector_registers = 32,
     .l1 = 32 * KIB,
     .l2 = 1024 * KIB},
    {.name = "c11",
     .dialect = "c11",
     .bundles = true,
     .vector_bytes = 64,
     .vector_registers = 32,
     .l1 = 32 * KIB,
     .l2 = 1024 * KIB},
    {.name = "opencl",
     .dialect = "opencl",
     .buffers = 63, /* 1024 bytes of parameters */
     .simt = true,
     .vector_bytes = 4,
     .vector_registers = 64,
     .group_threads = 256,
     .group_bytes = 32 * KIB,
     .l1 = 16 * KIB,
     .l2 = 1024 * KIB},
    {.name = "cuda",
     .dialect = "cuda",
     .buffers = 500, /* 4096 bytes of parameters */
     .simt = true,
     .vector_bytes = 4,
     .vector_registers = 64,
     .group_threads = 1024,
     .lanes = 32,
     .group_bytes = 48 * KIB,
     .l1 = 128 * KIB,
     .l2 = 4096 * KIB},
    {.name = "sim:cpu",
     .dialect = "flat",
     .bundles = true,
     .vector_bytes = 16,
     .vector_registers = 16,
     .l1 = 8 * KIB,
     .l2 = 64 * KIB},
    {.name = "sim:opencl",
     .buffers = 63,
     .dialect = "flat",
     .simt = true,
     .vector_bytes = 4,
     .vector_registers = 64,
     .group_threads = 256,
     .group_bytes = 32 * KIB,
     .l1 = 16 * KIB,
     .l2 = 1024 * KIB},
    {.name = "sim:cuda",
     .dialect = "flat",
     .simt = true,
     .vector_bytes = 4,
     .vector_registers = 64,
     .group_threads = 1024,
     .lanes = 32,
     .group_bytes = 48 * KIB,
     .l1 = 128 * KIB,
     .l2 = 4096 * KIB},
};

const dc_target *dc_sim_target_named(const char *name)
{
    for (size_t i = 0; i < DC_COUNTOF(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}
