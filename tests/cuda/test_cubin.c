/* Blocks that a multiprocessor holds; the reader of cubins, on those of NVIDIA's compiler and on damaged ones. */
#include <stdint.h>

#include "tests/cuda/cubin.h"
#include "tests/t.h"
#include "tests/unit/nvrtc.h"

static void test_blocks(void)
{
    const struct {
        int sm, registers, threads;
        size_t shared, dynamic;
        int blocks;
    } rows[] = {
        {80, 32, 256, 0, 0, 8},         /* threads */
        {80, 33, 256, 0, 0, 6},         /* registers, of which a warp takes 256 at a time */
        {80, 64, 1024, 0, 0, 1},        /* registers */
        {80, 16, 32, 0, 0, 32},         /* blocks */
        {90, 168, 384, 0, 0, 1},        /* three warps in each part */
        {80, 32, 128, 48 << 10, 0, 3},  /* shared memory and what is reserved */
        {90, 32, 128, 48 << 10, 0, 4},  /* there is more */
        {90, 32, 128, 0, 227 << 10, 1}, /* all of it */
        {80, 32, 128, 0, 227 << 10, 0}, /* too much */
        {86, 32, 1024, 0, 0, 1},        /* 48 warps */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cubin_kernel k = {.registers = rows[i].registers, .shared = rows[i].shared};
        if (!CHECK_EQ(cubin_blocks(rows[i].sm, &k, rows[i].threads, rows[i].dynamic),
                      rows[i].blocks))
            printf("    row %zu\n", i);
    }
    CHECK_EQ(cubin_warps(80), 64);
    CHECK_EQ(cubin_warps(89), 48);
}

static const char text[] =
    "extern \"C\" __global__ void __launch_bounds__(256) turn(float *a)\n"
    "{\n    __shared__ float s[256];\n    s[threadIdx.x] = a[threadIdx.x];\n    __syncthreads();\n"
    "    a[threadIdx.x] = s[255 - threadIdx.x];\n}\n"
    "extern \"C\" __global__ void spilled(int *a, int n)\n"
    "{\n    volatile int s[100];\n    for (int i = 0; i < 100; i++)\n        s[i] = a[i];\n"
    "    a[0] = s[n % 100];\n}\n";

static void test_image(const char *image, size_t bytes)
{
    cubin_kernel k;
    CHECK(cubin_find(image, bytes, "turn", &k));
    CHECK(k.registers >= 4 && k.registers < 64);
    CHECK_EQ(k.local, 0);
    CHECK_EQ(k.shared, 1024);
    CHECK(cubin_find(image, bytes, "spilled", &k));
    CHECK_EQ(k.local, 400);
    CHECK_EQ(k.shared, 0);
    CHECK(!cubin_find(image, bytes, "none", &k));
    CHECK(!cubin_find(image, bytes, "", &k));
}

/* No byte outside of the image is touched, which the address sanitizer watches. */
static void test_damaged(const char *image, size_t bytes)
{
    cubin_kernel k;
    uint32_t seed = 1;
    size_t found = 0;
    for (size_t n = 0; n < bytes; n += 7) {
        char *part = malloc(n + 1);
        memcpy(part, image, n);
        found += cubin_find(part, n, "turn", &k);
        free(part);
    }
    CHECK(found < bytes / 7);
    for (int round = 0; round < 2000; round++) {
        char *other = malloc(bytes);
        memcpy(other, image, bytes);
        for (int i = 0; i < 8; i++) {
            seed = seed * 1664525 + 1013904223;
            other[(seed >> 8) % (round % 2 == 0 ? 64 : bytes)] = (char)(seed >> 24);
        }
        found += cubin_find(other, bytes, "turn", &k);
        free(other);
    }
    CHECK(found > 0);
}

int main(void)
{
    nvrtc n;
    test_blocks();
    if (!nvrtc_open(&n) || dlsym(n.lib, "cuda_standin_compiled") != NULL) {
        T_SKIP("no NVRTC library of NVIDIA's, no cubins are read");
        return t_done();
    }
    for (int i = 0; i < 2; i++) {
        size_t bytes;
        char *image = nvrtc_image(&n, text, i == 0 ? "sm_80" : "sm_90a", &bytes);
        if (CHECK(image != NULL)) {
            test_image(image, bytes);
            test_damaged(image, bytes);
        }
        free(image);
    }
    return t_done();
}
