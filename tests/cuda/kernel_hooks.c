/*
 * Linked into every kernel module: the pointer to the engine, the bounds of its shared arrays, and
 * the functions that a compiler calls at each access with -fsanitize=thread (libtsan is not linked).
 */
#include "kernel_abi.h"

#define HIDDEN  __attribute__((visibility("hidden")))
#define VISIBLE __attribute__((visibility("default")))
#define PC      __builtin_return_address(0)

/* clang-format off */
HIDDEN const kernel_runtime *kernel_rt;
VISIBLE void kernel_bind(const kernel_runtime *r);
void kernel_bind(const kernel_runtime *r) { kernel_rt = r; }

/* Names that the linker makes for a section. */
extern char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
VISIBLE char *kernel_shared(unsigned long *bytes);
char *kernel_shared(unsigned long *bytes)
{
    *bytes = (unsigned long)(__stop_cuda_shared - __start_cuda_shared);
    return __start_cuda_shared;
}

#define HOOK(name, reads, writes, n)       \
    HIDDEN void __tsan_##name(void *p);    \
    void __tsan_##name(void *p)            \
    {                                      \
        if (reads)                         \
            kernel_rt->access(p, n, 0, PC); \
        if (writes)                        \
            kernel_rt->access(p, n, 1, PC); \
    }
#define HOOKS(n)                       \
    HOOK(read##n, 1, 0, n)             \
    HOOK(write##n, 0, 1, n)            \
    HOOK(unaligned_read##n, 1, 0, n)   \
    HOOK(unaligned_write##n, 0, 1, n)  \
    HOOK(read_write##n, 1, 1, n)       \
    HOOK(volatile_read##n, 1, 0, n)    \
    HOOK(volatile_write##n, 0, 1, n)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)

HIDDEN void __tsan_read_range(void *p, unsigned long n);
void __tsan_read_range(void *p, unsigned long n) { kernel_rt->access(p, n, 0, PC); }
HIDDEN void __tsan_write_range(void *p, unsigned long n);
void __tsan_write_range(void *p, unsigned long n) { kernel_rt->access(p, n, 1, PC); }
HIDDEN void *__tsan_memcpy(void *to, const void *from, unsigned long n);
void *__tsan_memcpy(void *to, const void *from, unsigned long n)
{
    kernel_rt->access(from, n, 0, PC);
    kernel_rt->access(to, n, 1, PC);
    return __builtin_memcpy(to, from, n);
}
HIDDEN void *__tsan_memset(void *to, int byte, unsigned long n);
void *__tsan_memset(void *to, int byte, unsigned long n)
{
    kernel_rt->access(to, n, 1, PC);
    return __builtin_memset(to, byte, n);
}
HIDDEN void __tsan_init(void);
void __tsan_init(void) {}
HIDDEN void __tsan_func_entry(void *p);
void __tsan_func_entry(void *p) { (void)p; }
HIDDEN void __tsan_func_exit(void *p);
void __tsan_func_exit(void *p) { (void)p; }
