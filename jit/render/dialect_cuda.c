/*
 * CUDA C++, for groups of threads. The compiler contracts unless functions that round by themselves
 * are written, which strict kernels do.
 */
#include "jit/render/dialect.h"

static const char prelude[] = "typedef signed char i8;\n"
                              "typedef short i16;\n"
                              "typedef unsigned char u8;\n"
                              "typedef unsigned short u16;\n"
                              "typedef int i32;\n"
                              "typedef unsigned int u32;\n"
                              "typedef long long i64;\n"
                              "typedef unsigned long long u64;\n"
                              "typedef float f32;\n"
                              "\n"
                              "#define LANES(n) _Pragma(\"unroll\") for (int l = 0; l < n; l++)\n"
                              "#define INLINE static __device__ __forceinline__\n"
                              "#define f32_of_bits(x) __uint_as_float(x)\n"
                              "#define bits_of_f32(x) __float_as_uint(x)\n";

static const char prelude_f64[] = "typedef double f64;\n"
                                  "#define sqrt_f64(x) sqrt(x)\n"
                                  "#define fma_f64(a, b, c) fma(a, b, c)\n"
                                  "#define f64_of_bits(x) __longlong_as_double((i64)(x))\n"
                                  "#define bits_of_f64(x) ((u64)__double_as_longlong(x))\n";

static void open_kernel(const dc_flat *f, dc_text *out)
{
    dc_text_printf(out, "extern \"C\" __global__ void __launch_bounds__(%u) %s(",
                   (unsigned)f->threads, f->name);
    for (uint32_t p = 0; p < f->nparam; p++)
        dc_text_printf(out, "%su8 *p%u", p > 0 ? ", " : "", (unsigned)p);
    dc_text_puts(out, ")\n{\n    const u64 group = blockIdx.x, thread = threadIdx.x;\n");
}

const dc_dialect dc_dialect_cuda = {
    .name = "cuda",
    .prelude = prelude,
    .prelude_f64 = prelude_f64,
    .groups = true,
    .global = "",
    .shared = "__shared__ ",
    .barrier = {"__syncthreads()", "__syncwarp()"},
    .add = {"__fadd_rn(", "__dadd_rn("},
    .sub = {"__fsub_rn(", "__dsub_rn("},
    .mul = {"__fmul_rn(", "__dmul_rn("},
    .shuffle = "__shfl_sync(0xffffffffu, ",
    .param = "p#",
    .open = open_kernel,
};
