/*
 * C11 with the builtins of gcc and clang; functions for threads of a CPU. No file is included and, with the
 * options that jit/render/render_c.h names, nothing is called.
 */
#include "jit/render/dialect.h"

/* clang-format off: one function after the other */
const char dc_dialect_common[] =
    "INLINE i8 i8_of_f32(f32 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p7f ? 127 : x < -0x1p7f ? -128 : (i8)x;\n"
    "}\n"
    "INLINE i16 i16_of_f32(f32 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p15f ? 32767 : x < -0x1p15f ? -32768 : (i16)x;\n"
    "}\n"
    "INLINE i32 i32_of_f32(f32 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p31f ? 2147483647 : x < -0x1p31f ? -2147483647 - 1 : (i32)x;\n"
    "}\n"
    "INLINE i64 i64_of_f32(f32 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p63f ? 9223372036854775807 : x < -0x1p63f ? "
    "-9223372036854775807 - 1 : (i64)x;\n"
    "}\n"
    "INLINE u8 u8_of_f32(f32 x)\n"
    "{\n"
    "    return x >= 0x1p8f ? 255 : x > 0 ? (u8)x : 0;\n"
    "}\n"
    "INLINE u16 u16_of_f32(f32 x)\n"
    "{\n"
    "    return x >= 0x1p16f ? 65535 : x > 0 ? (u16)x : 0;\n"
    "}\n"
    "INLINE u32 u32_of_f32(f32 x)\n"
    "{\n"
    "    return x >= 0x1p32f ? 4294967295u : x > 0 ? (u32)x : 0;\n"
    "}\n"
    "INLINE u64 u64_of_f32(f32 x)\n"
    "{\n"
    "    return x >= 0x1p64f ? ~(u64)0 : x > 0 ? (u64)x : 0;\n"
    "}\n";

const char dc_dialect_common_f64[] =
    "INLINE i8 i8_of_f64(f64 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p7 ? 127 : x < -0x1p7 ? -128 : (i8)x;\n"
    "}\n"
    "INLINE i16 i16_of_f64(f64 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p15 ? 32767 : x < -0x1p15 ? -32768 : (i16)x;\n"
    "}\n"
    "INLINE i32 i32_of_f64(f64 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p31 ? 2147483647 : x < -0x1p31 ? -2147483647 - 1 : (i32)x;\n"
    "}\n"
    "INLINE i64 i64_of_f64(f64 x)\n"
    "{\n"
    "    return x != x ? 0 : x >= 0x1p63 ? 9223372036854775807 : x < -0x1p63 ? "
    "-9223372036854775807 - 1 : (i64)x;\n"
    "}\n"
    "INLINE u8 u8_of_f64(f64 x)\n"
    "{\n"
    "    return x >= 0x1p8 ? 255 : x > 0 ? (u8)x : 0;\n"
    "}\n"
    "INLINE u16 u16_of_f64(f64 x)\n"
    "{\n"
    "    return x >= 0x1p16 ? 65535 : x > 0 ? (u16)x : 0;\n"
    "}\n"
    "INLINE u32 u32_of_f64(f64 x)\n"
    "{\n"
    "    return x >= 0x1p32 ? 4294967295u : x > 0 ? (u32)x : 0;\n"
    "}\n"
    "INLINE u64 u64_of_f64(f64 x)\n"
    "{\n"
    "    return x >= 0x1p64 ? ~(u64)0 : x > 0 ? (u64)x : 0;\n"
    "}\n";
/* clang-format on */

static const char prelude[] =
    "typedef _Bool bool;\n"
    "typedef signed char i8;\n"
    "typedef short i16;\n"
    "typedef unsigned char u8;\n"
    "typedef unsigned short u16;\n"
    "typedef int i32;\n"
    "typedef unsigned int u32;\n"
    "typedef __INT64_TYPE__ i64;\n"
    "typedef __UINT64_TYPE__ u64;\n"
    "typedef float f32;\n"
    "\n"
    "/* No lane reads or writes what another one writes. */\n"
    "#ifdef __clang__\n"
    "#define LANES(n) _Pragma(\"clang loop vectorize(assume_safety)\") for (int l = 0; l < n; "
    "l++)\n"
    "#else\n"
    "#define LANES(n) _Pragma(\"GCC ivdep\") for (int l = 0; l < n; l++)\n"
    "#endif\n"
    "#define INLINE static inline __attribute__((always_inline, unused))\n"
    "#define sqrt(x) __builtin_sqrtf(x)\n"
    "#ifdef __FMA__\n"
    "#define fma(a, b, c) __builtin_fmaf(a, b, c)\n"
    "#else\n"
    "#define fma(a, b, c) ((a) * (b) + (c))\n"
    "#endif\n"
    "INLINE f32 f32_of_bits(u32 x)\n"
    "{\n"
    "    return (union { u32 u; f32 f; }){.u = x}.f;\n"
    "}\n"
    "INLINE u32 bits_of_f32(f32 x)\n"
    "{\n"
    "    return (union { f32 f; u32 u; }){.f = x}.u;\n"
    "}\n"
    "INLINE u32 dp4a(u32 a, u32 b, u32 c)\n"
    "{\n"
    "    for (int n = 0; n < 32; n += 8)\n"
    "        c += (u32)((i32)(u8)(a >> n) * (i8)(u8)(b >> n));\n"
    "    return c;\n"
    "}\n";

/* gcc 12 takes (float)(int)x for trunc(x) where nothing traps, which is -0 for -0.3, and then knows that it is not -0. */
static const char truncation[] = "#if defined __GNUC__ && !defined __clang__\n"
                                 "#pragma GCC optimize(\"trapping-math\")\n"
                                 "#endif\n";

static const char prelude_f64[] = "typedef double f64;\n"
                                  "#define sqrt_f64(x) __builtin_sqrt(x)\n"
                                  "#ifdef __FMA__\n"
                                  "#define fma_f64(a, b, c) __builtin_fma(a, b, c)\n"
                                  "#else\n"
                                  "#define fma_f64(a, b, c) ((a) * (b) + (c))\n"
                                  "#endif\n"
                                  "INLINE f64 f64_of_bits(u64 x)\n"
                                  "{\n"
                                  "    return (union { u64 u; f64 f; }){.u = x}.f;\n"
                                  "}\n"
                                  "INLINE u64 bits_of_f64(f64 x)\n"
                                  "{\n"
                                  "    return (union { f64 f; u64 u; }){.f = x}.u;\n"
                                  "}\n";

static void open_kernel(const dc_flat *f, dc_text *out)
{
    dc_text_printf(out,
                   "void %s(void *const *buf, const void *block, void *scratch, i64 begin, "
                   "i64 end)\n{\n",
                   f->name);
}

const dc_dialect dc_dialect_c11 = {
    .name = "c11",
    .prelude = prelude,
    .prelude_f64 = prelude_f64,
    .truncation = truncation,
    .workers = true,
    .global = "",
    .param = "buf[#]",
    .open = open_kernel,
};
