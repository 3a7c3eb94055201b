/*
 * OpenCL C 1.2. Whatever is contracted stands in the text as fma, and only where the device says
 * that it is fast; so contraction by the compiler is off.
 */
#include "jit/render/dialect.h"

static const char prelude[] = "#pragma OPENCL FP_CONTRACT OFF\n"
                              "typedef char i8;\n"
                              "typedef short i16;\n"
                              "typedef uchar u8;\n"
                              "typedef ushort u16;\n"
                              "typedef int i32;\n"
                              "typedef uint u32;\n"
                              "typedef long i64;\n"
                              "typedef ulong u64;\n"
                              "typedef float f32;\n"
                              "\n"
                              "/* No lane reads or writes what another one writes. */\n"
                              "#ifdef __clang__\n"
                              "#define LANES(n) _Pragma(\"clang loop vectorize(assume_safety)\") "
                              "for (int l = 0; l < n; l++)\n"
                              "#else\n"
                              "#define LANES(n) for (int l = 0; l < n; l++)\n"
                              "#endif\n"
                              "#define INLINE static\n"
                              "#ifndef FP_FAST_FMAF\n"
                              "#define fma(a, b, c) ((a) * (b) + (c))\n"
                              "#endif\n"
                              "#define f32_of_bits(x) as_float(x)\n"
                              "#define bits_of_f32(x) as_uint(x)\n";

static const char prelude_f64[] = "#if __OPENCL_VERSION__ < 120\n"
                                  "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                                  "#endif\n"
                                  "typedef double f64;\n"
                                  "#define sqrt_f64(x) sqrt(x)\n"
                                  "#ifdef FP_FAST_FMA\n"
                                  "#define fma_f64(a, b, c) fma(a, b, c)\n"
                                  "#else\n"
                                  "#define fma_f64(a, b, c) ((a) * (b) + (c))\n"
                                  "#endif\n"
                                  "#define f64_of_bits(x) as_double((u64)(x))\n"
                                  "#define bits_of_f64(x) as_ulong(x)\n";

static void put_parameters(const dc_flat *f, dc_text *out)
{
    for (uint32_t p = 0; p < f->nparam; p++)
        dc_text_printf(out, "%s__global u8 *g%u, u64 o%u", p > 0 ? ", " : "", (unsigned)p,
                       (unsigned)p);
    if (!f->simt)
        dc_text_printf(out, "%s__global u8 *scratches, i64 first, i64 last",
                       f->nparam > 0 ? ", " : "");
}

static void open_kernel(const dc_flat *f, dc_text *out)
{
    dc_text_puts(out, "__kernel ");
    if (f->simt)
        dc_text_printf(out, "__attribute__((reqd_work_group_size(%u, 1, 1))) ",
                       (unsigned)f->threads);
    dc_text_printf(out, "void %s(", f->name);
    put_parameters(f, out);
    dc_text_puts(out, ")\n{\n");
    if (f->simt) {
        dc_text_printf(out,
                       "    const u64 group = get_global_offset(0) / %u + get_group_id(0);\n"
                       "    const u64 thread = get_local_id(0);\n",
                       (unsigned)f->threads);
        return;
    }
    dc_text_puts(out, "    const i64 worker = get_global_id(0), workers = get_global_size(0);\n"
                      "    const i64 begin = first + (last - first) * worker / workers;\n"
                      "    const i64 end = first + (last - first) * (worker + 1) / workers;\n");
    if (f->scratch > 0)
        dc_text_printf(out, "    __global u8 *const scratch = scratches + worker * %zu;\n",
                       f->scratch);
}

/* Vectors of the element's size: one of them aliases the elements. */
static const char *wide_type(size_t size, size_t bytes)
{
    static const char *const type[4][4] = {{"uchar2", "uchar4", "uchar8", "uchar16"},
                                           {NULL, "ushort2", "ushort4", "ushort8"},
                                           {NULL, NULL, "uint2", "uint4"},
                                           {NULL, NULL, NULL, "ulong2"}};
    return type[size == 1   ? 0
                : size == 2 ? 1
                : size == 4 ? 2
                            : 3][bytes == 2   ? 0
                                 : bytes == 4 ? 1
                                 : bytes == 8 ? 2
                                              : 3];
}

const dc_dialect dc_dialect_opencl = {
    .name = "opencl",
    .prelude = prelude,
    .prelude_f64 = prelude_f64,
    .workers = true,
    .groups = true,
    .global = "__global ",
    .shared = "__local ",
    .pointed = "__local ",
    .barrier = {"barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)", NULL},
    .param = "(g# + o#)",
    .constant = "__constant ",
    .open = open_kernel,
    .wide = wide_type,
    .aligned = "__attribute__((aligned(16))) ",
};
