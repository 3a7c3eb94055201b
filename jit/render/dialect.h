/*
 * What differs between the dialects of the C family: one dc_dialect each, for jit/render/render_c.c.
 *
 * The text of all of them speaks of the types bool, i8 .. u64, f32, f64, of the loop
 * LANES(n) over l, and of these functions, which a prelude declares where the language has them not:
 *   sqrt(x)  fma(a, b, c)                    of f32; sqrt_f64, fma_f64
 *   f32_of_bits(u32)  bits_of_f32(f32)       patterns; f64_of_bits, bits_of_f64
 *   i32_of_f32(x) and its like               truncate and saturate, NaN to 0 (dc_dialect_common)
 * What is about f64 stands in texts that use it.
 */
#ifndef DC_JIT_RENDER_DIALECT_H
#define DC_JIT_RENDER_DIALECT_H

#include "jit/flat/flat.h"

typedef struct dc_dialect {
    const char *name;        /* dc_target.dialect */
    const char *prelude;     /* types and functions, before dc_dialect_common */
    const char *prelude_f64; /* the same of f64 */
    /* in front of all, where floats become signed integers and these floats; or NULL */
    const char *truncation;
    bool workers, groups;    /* kinds of kernels that can be said in it */
    const char *global; /* qualifier of pointers to memory of parameters, with a blank behind */
    const char *shared; /* of arrays that a group shares; NULL: there are none */
    size_t
        most_shared; /* bytes of them that a text may have; 0: any number. Kernels with more have one of SHARED_DYNAMIC(name) */
    const char *pointed;    /* of pointers to them */
    const char *barrier[2]; /* by dc_kbarrier; NULL: cannot be said */
    /* strict, of f32 and f64: functions "name(", or NULL where operators do */
    const char *add[2], *sub[2], *mul[2];
    const char *shuffle;   /* "name(" of a value, a lane and how many lanes; or NULL */
    const char *vote;      /* bits of the lanes of a warp in which `yes` is true; or NULL */
    const char *first_bit; /* the number of the lowest bit of `vote`, which is not 0 */
    const char
        *unroll; /* a line in front of a loop of few iterations that is to be unrolled; or NULL */
    const char *param;    /* where parameter # begins */
    const char *param_at; /* the same where # is an expression; NULL: there is no such thing */
    const char *constant; /* of arrays of constants outside of kernels; NULL: there are none */
    /*
     * Of simt kernels: a type of so many bytes (2, 4, 8, 16), through which elements of `size` bytes are loaded and
     * stored at once; NULL: there is none. And what makes an array as aligned.
     */
    const char *(*wide)(size_t size, size_t bytes);
    const char *aligned;
    /*
     * Functions of matrices that 32 lanes hold: ldmatrix_xN(d, row), ldmatrix_xN_trans, mma_m16n8kK_TYPE(c, a, b),
     * of N matrices and elements of a type, and tf32_of_f32(x); NULL: there are none.
     */
    const char *prelude_matrices;
    /* Functions cp_async4, 8 and 16(to, from), cp_asyncN_zfill(to, from, bytes), cp_async_commit(), cp_async_wait(groups);
     * NULL: there are none. */
    const char *prelude_async;
    /* matrix_descriptor(p, leading, stride), fence_async_proxy(), wgmma(n, type, turned_a, turned_b, c, a, b), wgmma_fence(),
     * wgmma_commit(), wgmma_wait(groups, n, c); NULL: there are none. */
    const char *prelude_wgmma;
    const char *prelude_shared; /* before any of the three: addresses of shared memory */
    /* Functions from_f16(u16), to_f16(f32), to_bf16(f32) of converts; NULL: there are none. */
    const char *prelude_half;
    /* The entry, and what the arguments of the kernel and `scratch` are. */
    void (*open)(const dc_flat *f, dc_text *out);
} dc_dialect;

extern const dc_dialect dc_dialect_c11, dc_dialect_opencl, dc_dialect_cuda;
extern const char dc_dialect_common[], dc_dialect_common_f64[];

#endif
