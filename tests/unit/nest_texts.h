/*
 * Nests as text, for tests of printing and parsing.
 *
 *   nest_open(); dc_kernel *k = nest_of(text); ...; nest_close();
 */
#ifndef DC_TESTS_NEST_TEXTS_H
#define DC_TESTS_NEST_TEXTS_H

#include "jit/nest/nest_print.h"
#include "jit/schedule/schedule.h"

#include "tests/t.h"

static dc_opts nest_opts;
static dc_log nest_log;
static dc_job nest_job;
static const dc_target nest_target = {.name = "test", .vector_bytes = 64, .vector_registers = 32};

static inline void nest_open(void)
{
    const char *bad;
    dc_opts_init(&nest_opts, &bad);
    dc_job_init(&nest_job, &nest_opts, &nest_log);
}

static inline void nest_close(void)
{
    dc_job_fini(&nest_job);
}

/* The sentence of the last failure, which is forgotten. */
static inline const char *nest_said(void)
{
    static char text[600];
    dc_err_render(&nest_job.err, 0, text, sizeof text);
    nest_job.err = (dc_err){0};
    return text;
}

/* NULL after a failed check. */
static inline dc_kernel *nest_of(const char *text)
{
    dc_kernel *k = NULL;
    if (!CHECK(dc_nest_parse(&nest_job, text, &k) == DC_OK))
        printf("    %s\n%s\n", nest_said(), text);
    return k;
}

/* Texts with all constructs, as they are printed: they come back byte by byte. */
static const char *const nest_texts[] = {
    "kernel empty() {\n}\n",
    "kernel none(x0: f32[0], out0: bool[0] out) strict {\n"
    "  for i in 0\n"
    "}\n",
    "kernel bounds(out0: f32[40] out, x0: f32[1600]) {\n"
    "  for i in 40\n"
    "    out0[i] = 0:f32\n"
    "    for b in 5 from ((i + 4)/8) - 3 to ((i)/8) + 1\n"
    "      for j in 8 to 7\n"
    "        out0[i] = add(out0[i], x0[40*i + 8*b + j])\n"
    "}\n",
    "kernel all.kinds(out0: f32[1024] out, x0: f32[1024], state: f32[64] inout) {\n"
    "  local acc: f32[1]\n"
    "  group tile: f32[64] swizzle 16 stages 3\n"
    "  group rows: f16[1024] swizzle 64 atoms\n"
    "  thread r: f32[128]\n"
    "  local part: f32[4]\n"
    "  for g in 4 grid\n"
    "    for k in 3\n"
    "      for b in 2 block\n"
    "        for l in 32 lane\n"
    "          tile[32*b + l] = x0[256*g + 64*k + 32*b + l]\n"
    "      tile[0] = 0:f32 if g in 2 && k - 1 in 1\n"
    "      for b in 2 block\n"
    "        for l in 32 lane\n"
    "          for u in 2 unroll\n"
    "            r[64*b + 2*l + u] = tile[32*b + ((l + 1)%32)]\n"
    "      for b in 2 block\n"
    "        for l in 32 lane\n"
    "          acc[0] = -inf:f32\n"
    "          for j in 2 reduce\n"
    "            acc[0] maximum= r[64*b + 2*((l + 16)%32) + j]\n"
    "          for v in 4 vector\n"
    "            part[v] = acc[0]\n"
    "          for w in 4 reduce vector\n"
    "            acc[0] add= part[w]\n"
    "          out0[256*g + 32*b + l] = add(acc[0], state[32*b + l])\n"
    "}\n",
    "kernel values(out0: f32[10] out, out1: i32[10] out, x0: f32[12], x1: u8[10]) {\n"
    "  for i in 10\n"
    "    t0 = mul(x0[-i + 9], 0.1:f32)\n"
    "    t1 = exp(t0)\n"
    "    out0[i] = where(test(i - 2 in 5), add(t0, t1), div(t1, cast.f32(x1[i if i in 10])))\n"
    "    & out1[((i + 3)%10)] = bit_xor(i32(2*i - 7), 2147483647:i32) if 3*((i)/4) - 1 in 9\n"
    "}\n",
    "kernel roles(out0: f32[24] out, x0: f32[24], x1: f32[12]) {\n"
    "  local acc: f32[1]\n"
    "  for b: batch in 1\n"
    "    for i: m in 2\n"
    "      for y: spatial in 3\n"
    "        for j: n in 4\n"
    "          acc[0] = 0:f32\n"
    "          for t: window in 2 reduce\n"
    "            for k: k in 1 reduce unroll\n"
    "              acc[0] add= mul(x0[12*i + y + t], x1[4*t + j])\n"
    "          out0[12*i + 4*y + j] = acc[0]\n"
    "  for r: row in 1\n"
    "    for n: column in 1\n"
    "      out0[0] = x0[0]\n"
    "}\n",
    "kernel gather(out0: f32[32] out, x0: f32[80] uncached, at: i32[8]) {\n"
    "  for i in 8 grid prefetch x0 i 1\n"
    "    for j in 4 vector\n"
    "      out0[4*i + j] = x0[8*int(minimum(maximum(at[i], 0:i32), 9:i32)) + j]\n"
    "}\n",
    "kernel stages(out0: f32[240] out nontemporal, x0: f32[240]) {\n"
    "  local a: f32[48]\n"
    "  for i in 5 grid pipeline\n"
    "    for n in 12 prefetch x0 i 2\n"
    "      for v in 4 vector\n"
    "        a[4*n + v] = x0[48*i + 4*n + v]\n"
    "    for m in 12\n"
    "      for w in 4\n"
    "        out0[48*i + 4*m + w] = a[4*m + w]\n"
    "}\n",
    "kernel twice(out0: f32[8] out, x0: f32[256], at: u8[8]) {\n"
    "  for i in 8\n"
    "    t0 = shift_right(at[i], 1:u8)\n"
    "    t1 = x0[int(t0)]\n"
    "    out0[i] = add(mul(t1, t1), x0[-int(t0) + 255 if int(t0) in 100])\n"
    "}\n",
    "kernel tiles(out0: f32[64] out, x0: f32[64], x1: f32[64]) {\n"
    "  local acc: f32[16]\n"
    "  for i in 2 grid\n"
    "    for j in 2\n"
    "      for z in 16 vector\n"
    "        acc[z] = 0:f32\n"
    "      for k in 2 reduce\n"
    "        mma_4x4x4(acc[0 by 4, 1], x0[32*i + 4*k by 8, 1], x1[32*k + 4*j by 8, 1]) if k in 2\n"
    "      for a in 4\n"
    "        for b in 4\n"
    "          out0[32*i + 8*a + 4*j + b] = acc[4*a + b]\n"
    "}\n",
    "kernel two(out0: f32[4] out, out1: f32[3] out) {\n"
    "  for i in 4 grid\n"
    "    out0[i] = 1.5:f32\n"
    "  for j in 3 grid\n"
    "    out1[j] = nan(0x7fc00001):f32\n"
    "}\n",
    "kernel both(out0: f32[4] out, out1: f32[4] out, x0: f32[4]) {\n"
    "  local acc: f32[1]\n"
    "  for i in 4\n"
    "    acc[0] = 0:f32\n"
    "    t0 = mul(x0[i], x0[i])\n"
    "    t1 = mul(t0, t0)\n"
    "    acc[0] add= t1\n"
    "    & out1[i] = sub(add(acc[0], t1), t0)\n"
    "    out0[i] = acc[0]\n"
    "}\n",
};

#endif
