/* What NVIDIA's compiler says of a kernel in its own ELF image, and how many blocks of it a multiprocessor holds. */
#ifndef DC_TESTS_CUDA_CUBIN_H
#define DC_TESTS_CUDA_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cubin_kernel {
    int registers; /* of a thread */
    size_t
        local; /* bytes of a thread in memory: registers that were spilled, arrays without a place in registers */
    size_t shared; /* bytes of the arrays in the text */
} cubin_kernel;

/* Of any n bytes: false where they hold no such kernel. */
bool cubin_find(const void *image, size_t n, const char *name, cubin_kernel *out);

/* Blocks on a multiprocessor of compute capability sm / 10: the least of what registers, threads and memory allow. */
int cubin_blocks(int sm, const cubin_kernel *k, int threads, size_t dynamic);
/* Warps that it holds at most. */
int cubin_warps(int sm);

#endif
