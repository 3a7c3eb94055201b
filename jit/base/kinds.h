/* The kinds of kernels: jit/base/kinds.def. */
#ifndef DC_JIT_BASE_KINDS_H
#define DC_JIT_BASE_KINDS_H

typedef enum dc_kernel_kind {
#define KIND(id, letter) DC_KERNEL_##id,
#include "jit/base/kinds.def"
#undef KIND
    DC_KERNEL__COUNT
} dc_kernel_kind;

static inline char dc_kernel_letter(dc_kernel_kind kind)
{
    static const char letter[] = {
#define KIND(id, letter) letter,
#include "jit/base/kinds.def"
#undef KIND
    };
    return letter[kind];
}

#endif
