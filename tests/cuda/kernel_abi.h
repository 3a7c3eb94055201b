/*
 * Between a kernel module (C++, made of CUDA text by cuda_host.h) and the engine that runs it (C).
 * A module calls the engine through a table of functions that `kernel_bind` of kernel_hooks.c sets.
 */
#ifndef DC_TESTS_CUDA_KERNEL_ABI_H
#define DC_TESTS_CUDA_KERNEL_ABI_H
#ifdef __cplusplus
extern "C" {
#endif

enum { KERNEL_MOST_PARAMS = 512 };

typedef struct kernel_dim3 {
    unsigned x, y, z;
} kernel_dim3;

/* The thread that runs; the engine has more behind it. */
typedef struct kernel_thread {
    kernel_dim3 thread;
    unsigned number; /* in its block */
} kernel_thread;

/* Of an entry: kernel_info_NAME of a module. */
typedef struct kernel_info {
    unsigned nparam, threads; /* threads: its __launch_bounds__, 0 where there are none */
    unsigned size[KERNEL_MOST_PARAMS];
} kernel_info;

/* What the image was compiled for: kernel_arch of a module. */
typedef struct kernel_arch {
    int sm;       /* compute capability times ten */
    int kind;     /* 0, or the letter 'a' or 'f' of sm_90a */
    int virtual_; /* PTX: runs on every later device */
    int entries;
    int checked; /* with calls at each access */
} kernel_arch;

enum kernel_mma { MMA_M16N8K16_F16, MMA_M16N8K16_BF16, MMA_M16N8K8_TF32, MMA_M16N8K32_S8 };

/* Of wgmma: n, the type by the mma that has it, descriptors, and what is not along k. */
typedef struct wgmma_operands {
    unsigned long long a, b;
    unsigned n, kind, turned_a, turned_b;
} wgmma_operands;

/* Of functions with a line, it is the line of the text: it tells two calls apart. */
typedef struct kernel_runtime {
    kernel_thread *now;
    const kernel_dim3 *block, *threads, *grid;
    void *dynamic; /* dynamic shared memory */
    void (*barrier)(int line);
    void (*warp_barrier)(unsigned mask, int line);
    unsigned long long (*exchange)(unsigned mask, unsigned long long v, int lane, int line);
    unsigned (*ballot)(unsigned mask, int yes, int line);
    void (*atomic)(void *p, unsigned bytes, const void *pc);
    void (*copy_async)(void *to, const void *from, unsigned bytes, unsigned take, int line);
    void (*copy_commit)(void);
    void (*copy_wait)(int left);
    void (*ldmatrix)(unsigned *d, const void *row, int n, int transposed, int line);
    void (*mma)(void *d, const unsigned *a, const unsigned *b, const void *c, int kind, int line);
    void (*wgmma)(float *c, const wgmma_operands *of, int line);
    void (*wgmma_fence)(int line);
    void (*wgmma_commit)(int line);
    void (*wgmma_wait)(int left, int line);
    void (*async_proxy)(void);
    unsigned (*shared_address)(const void *p);
    void (*access)(const void *p, unsigned long bytes, int store, const void *pc);
    void (*trap)(int line);
} kernel_runtime;

#ifdef __cplusplus
}
#endif
#endif
