/*
 * CUDA C++, for groups of threads. NVRTC is told not to contract (--fmad=false): the flat form says where. Strict
 * kernels use functions that round by themselves.
 *
 * A kernel gets a null pointer, from whose sums with numbers the compiler sees that they are addresses of global memory;
 * the address of an i32 that ends the kernel at once where it is not 0, or 0; and a number for each buffer: its
 * address, or, with its highest bit set, that of the word in device memory that holds it. So a launch that was recorded
 * in a CUDA graph finds memory that moves from call to call. Those of a kernel with tables are one array, so that they
 * can be found by their number; where they lie is the same.
 */
#include "jit/render/dialect.h"

static const char prelude[] =
    "typedef signed char i8;\n"
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
    "#define bits_of_f32(x) __float_as_uint(x)\n"
    "#ifndef DEEPC_CUDA_HOST /* a compiler of the host has its own (tests/cuda) */\n"
    "#define SHARED_DYNAMIC(name) extern __shared__ __align__(1024) u8 name[]\n"
    "#endif\n"
    "INLINE u8 *at(u8 *base, u64 p)\n"
    "{\n"
    "    return base + ((i64)p < 0 ? *(const u64 *)(base + (p & ~0ull >> 1)) : p);\n"
    "}\n"
    "INLINE u32 dp4a(u32 a, u32 b, u32 c)\n"
    "{\n"
    "#ifdef DEEPC_CUDA_HOST\n"
    "    for (int n = 0; n < 32; n += 8)\n"
    "        c += (u32)((i32)(u8)(a >> n) * (i8)(u8)(b >> n));\n"
    "#else\n"
    "    asm(\"dp4a.u32.s32 %0, %1, %2, %0;\" : \"+r\"(c) : \"r\"(a), \"r\"(b));\n"
    "#endif\n"
    "    return c;\n"
    "}\n";

static const char prelude_f64[] = "typedef double f64;\n"
                                  "#define sqrt_f64(x) sqrt(x)\n"
                                  "#define fma_f64(a, b, c) fma(a, b, c)\n"
                                  "#define f64_of_bits(x) __longlong_as_double((i64)(x))\n"
                                  "#define bits_of_f64(x) ((u64)__double_as_longlong(x))\n";

/*
 * The instructions make one NaN of all; here a NaN keeps its sign and fraction, as where integers convert. bf16_of_f32
 * needs compute capability 8.0.
 */
static const char prelude_half[] =
    "#ifndef DEEPC_CUDA_HOST\n"
    "INLINE u16 f16_of_f32(f32 x)\n"
    "{\n"
    "    u16 r;\n"
    "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n"
    "    return r;\n"
    "}\n"
    "INLINE u16 bf16_of_f32(f32 x)\n"
    "{\n"
    "    u16 r;\n"
    "    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n"
    "    return r;\n"
    "}\n"
    "INLINE f32 f32_of_f16(u16 x)\n"
    "{\n"
    "    f32 r;\n"
    "    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));\n"
    "    return r;\n"
    "}\n"
    "#endif\n"
    "INLINE u16 to_f16(f32 x)\n"
    "{\n"
    "    const u32 p = bits_of_f32(x), nan = (p >> 13 & 0x7fff) | (p >> 16 & 0x8000) | 0x200;\n"
    "    return x == x ? f16_of_f32(x) : (u16)nan;\n"
    "}\n"
    "INLINE u16 to_bf16(f32 x)\n"
    "{\n"
    "    return x == x ? bf16_of_f32(x) : (u16)(bits_of_f32(x) >> 16 | 0x40);\n"
    "}\n"
    "INLINE f32 from_f16(u16 x)\n"
    "{\n"
    "    const f32 r = f32_of_f16(x);\n"
    "    return r == r ? r : f32_of_bits((u32)(i16)x << 13 | 0x7f800000);\n"
    "}\n";

/* A host's compiler that has functions of these names says so by DEEPC_CUDA_HOST. */
static const char prelude_shared[] = "#ifndef DEEPC_CUDA_HOST\n"
                                     "INLINE u32 shared_address(const void *p)\n"
                                     "{\n"
                                     "    return (u32)__cvta_generic_to_shared(p);\n"
                                     "}\n"
                                     "#endif\n";

/* Copies of 16 bytes pass by the L1 cache. */
static const char prelude_async[] =
    "#ifndef DEEPC_CUDA_HOST\n"
    "#define CP_ASYNC(n, how) \\\n"
    "INLINE void cp_async##n##_zfill(void *to, const void *from, u32 bytes) \\\n"
    "{ \\\n"
    "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #n \", %2;\" \\\n"
    "                 :: \"r\"(shared_address(to)), \"l\"(__cvta_generic_to_global(from)), "
    "\"r\"(bytes) : \"memory\"); \\\n"
    "} \\\n"
    "INLINE void cp_async##n(void *to, const void *from) \\\n"
    "{ \\\n"
    "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #n \";\" \\\n"
    "                 :: \"r\"(shared_address(to)), \"l\"(__cvta_generic_to_global(from)) : "
    "\"memory\"); \\\n"
    "}\n"
    "CP_ASYNC(4, \"ca\")\n"
    "CP_ASYNC(8, \"ca\")\n"
    "CP_ASYNC(16, \"cg\")\n"
    "#define cp_async_commit() asm volatile(\"cp.async.commit_group;\" ::: \"memory\")\n"
    "#define cp_async_wait(n) asm volatile(\"cp.async.wait_group \" #n \";\" ::: \"memory\")\n"
    "#endif\n";

static const char prelude_matrices[] =
    "#ifndef DEEPC_CUDA_HOST\n"
    "#define LDMATRIX_X2(name, how) \\\n"
    "INLINE void name(u32 *v, const void *row) \\\n"
    "{ \\\n"
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x2\" how \".shared.b16 {%0, %1}, [%2];\" \\\n"
    "                 : \"=r\"(v[0]), \"=r\"(v[1]) : \"r\"(shared_address(row)) : \"memory\"); \\\n"
    "}\n"
    "#define LDMATRIX_X4(name, how) \\\n"
    "INLINE void name(u32 *v, const void *row) \\\n"
    "{ \\\n"
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4\" how \".shared.b16 {%0, %1, %2, %3}, "
    "[%4];\" \\\n"
    "                 : \"=r\"(v[0]), \"=r\"(v[1]), \"=r\"(v[2]), \"=r\"(v[3]) \\\n"
    "                 : \"r\"(shared_address(row)) : \"memory\"); \\\n"
    "}\n"
    "LDMATRIX_X2(ldmatrix_x2, \"\")\n"
    "LDMATRIX_X2(ldmatrix_x2_trans, \".trans\")\n"
    "LDMATRIX_X4(ldmatrix_x4, \"\")\n"
    "LDMATRIX_X4(ldmatrix_x4_trans, \".trans\")\n"
    "#define MMA(shape, type, sum, c_type, how) \\\n"
    "INLINE void mma_##shape##_##type(c_type *c, const u32 *a, const u32 *b) \\\n"
    "{ \\\n"
    "    asm volatile(\"mma.sync.aligned.\" #shape \".row.col.\" sum \".\" #type \".\" #type \".\" "
    "sum "
    "\" \" \\\n"
    "                 \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\\n"
    "                 : how(c[0]), how(c[1]), how(c[2]), how(c[3]) \\\n"
    "                 : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), "
    "\"r\"(b[1])); \\\n"
    "}\n"
    "MMA(m16n8k16, f16, \"f32\", f32, \"+f\")\n"
    "MMA(m16n8k16, bf16, \"f32\", f32, \"+f\")\n"
    "MMA(m16n8k8, tf32, \"f32\", f32, \"+f\")\n"
    "MMA(m16n8k32, s8, \"s32\", i32, \"+r\")\n"
    "INLINE u32 tf32_of_f32(f32 x)\n"
    "{\n"
    "    u32 r;\n"
    "    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(r) : \"f\"(x));\n"
    "    return r;\n"
    "}\n"
    "#endif\n";

/*
 * Products of 64 rows that four warps begin together (sm_90a). The descriptor of a matrix in atoms that begin at multiples of
 * 1024 bytes; the registers that a wait is for are its operands, so that none of their uses goes before it.
 */
static const char prelude_wgmma[] =
    "#ifndef DEEPC_CUDA_HOST\n"
    "INLINE u64 matrix_descriptor(const void *p, u32 leading, u32 stride)\n"
    "{\n"
    "    return (u64)(shared_address(p) >> 4 & 0x3fff) | (u64)(leading >> 4) << 16 |\n"
    "           (u64)(stride >> 4) << 32 | 1ull << 62;\n"
    "}\n"
    "#define fence_async_proxy() asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\")\n"
    "#define wgmma_fence() asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\")\n"
    "#define wgmma_commit() asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\")\n"
    "#define wgmma_wait(groups, n, c) do { \\\n"
    "    asm volatile(\"wgmma.wait_group.sync.aligned \" #groups \";\" ::: \"memory\"); \\\n"
    "    LANES(n) asm volatile(\"\" : \"+f\"((c)[l]) :: \"memory\"); \\\n"
    "} while (0)\n"
    "#define R10(d) \"%\" #d \"0,%\" #d \"1,%\" #d \"2,%\" #d \"3,%\" #d \"4,%\" #d \"5,%\" #d "
    "\"6,%\" "
    "#d \"7,%\" #d \"8,%\" #d \"9,\"\n"
    "#define C4(i) \"+f\"(c[i]), \"+f\"(c[i + 1]), \"+f\"(c[i + 2]), \"+f\"(c[i + 3])\n"
    "#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)\n"
    "#define C64(i) C16(i), C16(i + 16), C16(i + 32), C16(i + 48)\n"
    "#define WGMMA(n, type, turned_a, turned_b, registers, operands, ...) \\\n"
    "INLINE void wgmma_n##n##_##type##_##turned_a##turned_b(f32 *c, u64 a, u64 b) \\\n"
    "{ \\\n"
    "    asm volatile(\"{.reg .pred p; setp.ne.b32 p, 1, 0;\" \\\n"
    "                 \"wgmma.mma_async.sync.aligned.m64n\" #n \"k16.f32.\" #type \".\" #type \" "
    "{\" \\\n"
    "                 registers \"}, \" operands \", p, 1, 1, \" #turned_a \", \" #turned_b \";}\" "
    "\\\n"
    "                 : __VA_ARGS__ : \"l\"(a), \"l\"(b) : \"memory\"); \\\n"
    "}\n"
    "#define WGMMA_N(type, a, b) \\\n"
    "WGMMA(64, type, a, b, R10() R10(1) R10(2) \"%30,%31\", \"%32, %33\", C16(0), C16(16)) \\\n"
    "WGMMA(128, type, a, b, R10() R10(1) R10(2) R10(3) R10(4) R10(5) \"%60,%61,%62,%63\", \\\n"
    "      \"%64, %65\", C64(0)) \\\n"
    "WGMMA(256, type, a, b, R10() R10(1) R10(2) R10(3) R10(4) R10(5) R10(6) R10(7) R10(8) R10(9) "
    "\\\n"
    "      R10(10) R10(11) \"%120,%121,%122,%123,%124,%125,%126,%127\", \"%128, %129\", \\\n"
    "      C64(0), C64(64))\n"
    "#define WGMMA_TURNED(type) WGMMA_N(type, 0, 0) WGMMA_N(type, 0, 1) WGMMA_N(type, 1, 0) "
    "WGMMA_N(type, 1, 1)\n"
    "WGMMA_TURNED(f16)\n"
    "WGMMA_TURNED(bf16)\n"
    "#define wgmma(n, type, turned_a, turned_b, c, a, b) \\\n"
    "    wgmma_n##n##_##type##_##turned_a##turned_b(c, a, b)\n"
    "#endif\n";

static void open_kernel(const dc_flat *f, dc_text *out)
{
    const bool array = f->table.n > 0 && f->nparam > 0;
    if (array)
        dc_text_printf(out, "struct params_%s { u64 at[%u]; };\n", f->name, (unsigned)f->nparam);
    dc_text_printf(
        out, "extern \"C\" __global__ void __launch_bounds__(%u) %s(u8 *const base, const u64 stop",
        (unsigned)f->threads, f->name);
    if (array)
        dc_text_printf(out, ", const __grid_constant__ params_%s p", f->name);
    for (uint32_t p = 0; p < f->nparam && !array; p++)
        dc_text_printf(out, ", const u64 p%u", (unsigned)p);
    dc_text_puts(out, ")\n"
                      "{\n"
                      "    if (stop != 0 && *(const i32 *)(base + stop) != 0)\n"
                      "        return;\n"
                      "    const u64 group = blockIdx.x, thread = threadIdx.x;\n");
}

static const char *wide_type(size_t size, size_t bytes)
{
    DC_UNUSED(size);
    return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "u32" : "u16";
}

const dc_dialect dc_dialect_cuda = {
    .name = "cuda",
    .prelude = prelude,
    .prelude_f64 = prelude_f64,
    .groups = true,
    .global = "",
    .shared = "__shared__ ",
    .most_shared = 48 << 10,
    .pointed = "",
    .barrier = {"__syncthreads()", "__syncwarp()"},
    .add = {"__fadd_rn(", "__dadd_rn("},
    .sub = {"__fsub_rn(", "__dsub_rn("},
    .mul = {"__fmul_rn(", "__dmul_rn("},
    .shuffle = "__shfl_sync(0xffffffffu, ",
    .vote = "__ballot_sync(0xffffffffu, yes)",
    .first_bit = "(u32)__ffs((int)vote) - 1",
    .unroll = "#pragma unroll",
    .param = "at(base, p#)",
    .param_at = "at(base, p.at[#])",
    .constant = "__constant__ ",
    .wide = wide_type,
    .aligned = "__align__(16) ",
    .prelude_matrices = prelude_matrices,
    .prelude_half = prelude_half,
    .prelude_async = prelude_async,
    .prelude_wgmma = prelude_wgmma,
    .prelude_shared = prelude_shared,
    .open = open_kernel,
};
