/*
 * The nest form as text: kernels of random graphs, before and after each move of their schedule,
 * printed, parsed, printed again; texts written by hand with all constructs; constants; every
 * message of the parser; texts damaged at random, which must be refused or make a kernel that can be
 * verified and run.
 *
 *   test_ntext [seed [graphs [damaged texts]]]
 */
#include "tests/t.h"

#include "core/simplify.h"
#include "jit/fuse.h"
#include "jit/lower.h"
#include "jit/move.h"
#include "jit/ninterp.h"
#include "jit/ntext.h"
#include "jit/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/graphgen.h"

static dc_opts opts;
static dc_job job;
static const dc_target target = {.name = "test", .vector_bytes = 64, .vector_registers = 32};
static long printed_kernels;

static const char *last_error(void)
{
    static char text[600];
    dc_err_render(&job.err, 0, text, sizeof text);
    job.err = (dc_err){0};
    return text;
}

static dc_kernel *parse(const char *text)
{
    dc_kernel *k = NULL;
    if (!CHECK(dc_nest_parse(&job, text, &k) == DC_OK))
        printf("    %s\n%s\n", last_error(), text);
    return k;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void round_trip(dc_kernel *k)
{
    dc_text a = {0}, b = {0};
    dc_nest_print(k, &a);
    printed_kernels++;
    dc_kernel *back = parse(a.s);
    if (back != NULL) {
        dc_nest_print(back, &b);
        CHECK_STR(b.s, a.s);
        if (!CHECK(dc_nest_check(&job, k) == DC_OK) || !CHECK(dc_nest_check(&job, back) == DC_OK))
            printf("    %s\n%s\n", last_error(), a.s);
    }
    dc_kernel_free(back);
    dc_text_free(&a);
    dc_text_free(&b);
}

/* After every prefix of its moves; the moves again on what was parsed at the start. */
static void round_trips(const dc_groups *gs, uint32_t g, bool strict)
{
    dc_kernel *plan, *k;
    const char *why = "";
    CHECK(dc_lower(&job, gs, g, &plan) == DC_OK);
    CHECK(dc_lower(&job, gs, g, &k) == DC_OK);
    CHECK(dc_schedule(&job, plan, &target, 2) == DC_OK);
    plan->strict = k->strict = strict;
    dc_text text = {0}, direct = {0}, again = {0};
    dc_nest_print(k, &text);
    dc_kernel *back = parse(text.s);
    round_trip(k);
    for (uint32_t i = 0; i < plan->moves.n; i++) {
        CHECK(dc_move_do(k, &why, "%s", plan->moves.at[i]));
        CHECK(back != NULL && dc_move_do(back, &why, "%s", plan->moves.at[i]));
        round_trip(k);
    }
    dc_nest_print(k, &direct);
    dc_nest_print(back, &again);
    CHECK_STR(again.s, direct.s); /* equal kernels print alike, however they were made */
    dc_kernel_free(back);
    dc_kernel_free(k);
    dc_kernel_free(plan);
    dc_text_free(&text);
    dc_text_free(&direct);
    dc_text_free(&again);
}

static dc_status test_graph(dc_job *j, void *arg)
{
    const uint64_t seed = *(const uint64_t *)arg;
    dc_groups gs;
    dc_module *m = dc_module_new();
    const dc_func *f = graphgen_func(m, seed, 5 + (int)(seed % 40));
    if (seed % 3 != 0)
        f = dc_simplify(f);
    if (CHECK(dc_fuse(j, &j->scratch, f, seed % 4 ? 2 : 0, &gs) == DC_OK))
        for (uint32_t g = 0; g < gs.n; g++)
            round_trips(&gs, g, seed % 5 == 0);
    dc_module_free(m);
    return DC_OK;
}

/* ---- texts by hand --------------------------------------------------------------------------- */

/* As printed: comes back byte by byte. */
static const char *const canonical[] = {
    "kernel empty() {\n}\n",
    "kernel none(x0: f32[0], out0: bool[0] out) strict {\n"
    "  for i in 0\n"
    "}\n",
    "kernel all.kinds(out0: f32[1024] out, x0: f32[1024], state: f32[64] inout) {\n"
    "  local acc: f32[1]\n"
    "  group tile: f32[64]\n"
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
    "kernel gather(out0: f32[32] out, x0: f32[80], at: i32[8]) {\n"
    "  for i in 8\n"
    "    for j in 4\n"
    "      out0[4*i + j] = x0[8*int(minimum(maximum(at[i], 0:i32), 9:i32)) + j]\n"
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

static void test_canonical(void)
{
    for (size_t i = 0; i < DC_COUNTOF(canonical); i++) {
        dc_text text = {0};
        dc_kernel *k = parse(canonical[i]);
        if (k == NULL)
            continue;
        dc_nest_print(k, &text);
        CHECK_STR(text.s, canonical[i]);
        if (!CHECK(dc_nest_check(&job, k) == DC_OK))
            printf("    %s\n%s\n", last_error(), text.s);
        dc_text_free(&text);
        dc_kernel_free(k);
    }
}

static void test_people(void)
{
    static const char written[] = "\n# Sums of rows.\n"
                                  "kernel rows ( out0 : f32 [ 8 ] out , # first the result\n"
                                  "    x0: f32[64])   strict {   # strict: no FMA\n"
                                  "\n"
                                  "      local acc: f32[1]\n"
                                  "   for i in 8 grid\r\n"
                                  "     # a comment at its own indentation\n"
                                  "         acc[7 - 7] = -0x0p+0:f32\n"
                                  "         for k in 8 reduce # the row\n"
                                  "           acc[0] add= mul(x0[i*4*2 + (8*k + 3)/8],\n"
                                  "               0x1p-1:f32) if k in 9\n"
                                  "         out0[(64*i + 5)/64] = acc[0]\n"
                                  "}\n\n# the end";
    static const char printed[] = "kernel rows(out0: f32[8] out, x0: f32[64]) strict {\n"
                                  "  local acc: f32[1]\n"
                                  "  for i in 8 grid\n"
                                  "    acc[0] = -0:f32\n"
                                  "    for k in 8 reduce\n"
                                  "      acc[0] add= mul(x0[8*i + k], 0.5:f32) if k in 9\n"
                                  "    out0[i] = acc[0]\n"
                                  "}\n";
    dc_text text = {0};
    dc_kernel *k = parse(written);
    if (k == NULL)
        return;
    dc_nest_print(k, &text);
    CHECK_STR(text.s, printed);
    CHECK(dc_nest_check(&job, k) == DC_OK);
    dc_text_free(&text);
    dc_kernel_free(k);
}

/* A chain of many operations gets lines in between, so that it can be read back. */
static void test_deep(void)
{
    dc_kernel *k = dc_kernel_new("deep");
    dc_text text = {0};
    dc_buffer_new(k, "out0", DC_F32, 1, DC_SCOPE_PARAM, DC_MODE_OUT);
    dc_buffer_new(k, "x0", DC_F32, 1, DC_SCOPE_PARAM, DC_MODE_IN);
    dc_vx v = dc_vx_load(k, 1, dc_ix_const(k, 0), (dc_pred){0});
    for (int i = 0; i < 3000; i++)
        v = dc_vx_op(k, i % 2 ? DC_OP_NEG : DC_OP_EXP, DC_F32, &v, 1);
    k->root = dc_stmt_set(k, 1);
    k->root->put[0] = (dc_put){0, dc_ix_const(k, 0), v};
    round_trip(k);
    dc_nest_print(k, &text);
    CHECK(strstr(text.s, "t70 = ") != NULL);
    dc_text_free(&text);
    dc_kernel_free(k);
}

/* ---- constants ------------------------------------------------------------------------------- */

static void check_constant(dc_dtype t, uint64_t bits, const char *want)
{
    dc_text text = {0};
    dc_dtype back_t;
    uint64_t back = ~bits;
    const char *why;
    dc_const_print(t, bits, &text);
    const char *at = text.s;
    if (want != NULL)
        CHECK_STR(text.s, want);
    if (t != DC_BOOL &&
        !CHECK(dc_const_parse(&at, &back_t, &back, &why) && back == bits && back_t == t && !*at))
        printf("    %s: %llx, not %llx\n", text.s, (unsigned long long)back,
               (unsigned long long)bits);
    dc_text_free(&text);
}

static void test_constants(uint64_t seed)
{
    static const struct {
        uint32_t bits;
        const char *text;
    } floats[] = {
        {0x00000000, "0:f32"},
        {0x80000000, "-0:f32"},
        {0x7f800000, "inf:f32"},
        {0xff800000, "-inf:f32"},
        {0x7fc00000, "nan:f32"},
        {0xffc00000, "nan(0xffc00000):f32"},
        {0x7f800001, "nan(0x7f800001):f32"},
        {0x3dcccccd, "0.1:f32"},
        {0x3f800000, "1:f32"},
        {0xbfc00000, "-1.5:f32"},
        {0x4b800000, "16777216:f32"},
        {0x3727c5ac, "1e-5:f32"},
        {0x501502f9, "1e10:f32"},
        {0x3eaaaaab, "0.33333334:f32"},
        {0x7f7fffff, "0x1.fffffep127:f32"},
        {0x00000001, "0x0.000002p-126:f32"},
        {0x00800000, "0x1p-126:f32"},
    };
    rng r = {seed};
    for (size_t i = 0; i < DC_COUNTOF(floats); i++)
        check_constant(DC_F32, floats[i].bits, floats[i].text);
    for (int i = 0; i < 20000; i++)
        check_constant(DC_F32, (uint32_t)rng_next(&r), NULL);
    for (uint32_t p = 0; p < 65536; p++) {
        check_constant(DC_F16, p, NULL);
        check_constant(DC_BF16, p, NULL);
    }
    for (int i = 0; i < 20000; i++)
        check_constant(DC_F64, rng_next(&r), NULL);
    check_constant(DC_F16, 0x3c00, "1:f16");
    check_constant(DC_F16, 0x7bff, "65500:f16");
    check_constant(DC_BF16, 0x3dcd, "0.1:bf16");
    check_constant(DC_F64, 0x3fb999999999999a, "0.1:f64");
    check_constant(DC_F64, 0x7ff8000000000000, "nan:f64");
    check_constant(DC_F64, 1, "0x0.0000000000001p-1022:f64");
    check_constant(DC_I64, (uint64_t)1 << 63, "-9223372036854775808:i64");
    check_constant(DC_U64, UINT64_MAX, "18446744073709551615:u64");
    check_constant(DC_I8, (uint64_t)INT64_C(-128), "-128:i8");
    check_constant(DC_I32, (uint64_t)INT64_C(-2147483648), "-2147483648:i32");
    check_constant(DC_I32, 5, "5:i32");
    check_constant(DC_U32, 4294967295u, "4294967295:u32");
    check_constant(DC_U8, 255, "255:u8");
    check_constant(DC_BOOL, 1, "true");
    check_constant(DC_BOOL, 0, "false");
}

static void test_bad_constants(void)
{
    static const char *const bad[] = {
        "",
        "-",
        "1",
        "1:",
        "1:f17",
        "0x1.001p0:f16",
        "70000:f16",
        "nan(0x7c00):f16",
        "1:bool",
        "1.5:i32",
        "1e2:i32",
        "256:u8",
        "-1:u8",
        "2147483648:i32",
        "-2147483649:i32",
        "inf:i32",
        "-nan:f32",
        "nan(0x7f800000):f32",
        "nan(0x1ffffffff):f32",
        "nan(7):f32",
        "0x:f32",
        "0x1p:f32",
        "0x1p128:f32",
        "0x1.000001p0:f32",
        "0x1p-150:f32",
        "1e39:f32",
        "1e-30:f32",
        "1e:f32",
        "99999999999999999999:f32",
        "0x1p99999999999:f32",
        ".:f32",
        "1.2.3:f32",
        "0x1p-99999999999999999999:f32",
        "1e99999999999999:f32",
    };
    for (size_t i = 0; i < DC_COUNTOF(bad); i++) {
        const char *at = bad[i], *why = NULL;
        dc_dtype t;
        uint64_t bits;
        if (!CHECK(!dc_const_parse(&at, &t, &bits, &why)))
            printf("    %s\n", bad[i]);
        CHECK(at == bad[i] && why != NULL);
    }
}

/* ---- what the parser refuses ----------------------------------------------------------------- */

#define HEAD "kernel k(o: f32[9] out, x: f32[9], n: i32[9]) {\n"

static const struct {
    const char *text;
    int line;
    const char *says;
} refusals[] = {
    {"", 1, "'kernel' expected, not the end of the text"},
    {"\n\n# only this", 3, "'kernel' expected"},
    {"kernel", 1, "the name of a kernel expected"},
    {"kernel 9", 1, "the name of a kernel expected, not '9'"},
    {"kernel k(", 1, "the name of a buffer expected"},
    {"kernel k(x)", 1, "':' expected, not ')'"},
    {"kernel k(x: f17[1])", 1, "a dtype expected, not 'f17[1])'"},
    {"kernel k(x: f32[])", 1, "a number expected"},
    {"kernel k(x: f32[-1])", 1, "a number expected"},
    {"kernel k(x: f32[99999999999999999999])", 1, "a number beyond 281474976710656"},
    {"kernel k(x: f32[1] f32)", 1, "')' expected"},
    {"kernel k(x: f32[1],\n  x: f32[2]) {\n}", 2, "two buffers 'x'"},
    {"kernel k(abcdefghijklmnop: f32[1]) {\n}", 1, "has more than 15 letters"},
    {"kernel k() strict strict {\n}", 1, "'{' expected, not 'strict'"},
    {"kernel k() { }", 1, "the end of the line expected, not '}'"},
    {"kernel k() {\n", 2, "'}' expected, not the end of the text"},
    {"kernel k() {\n} }", 2, "the end of the line expected"},
    {"kernel k() {\n}\nkernel", 3, "the end of the text expected, not 'kernel'"},
    {HEAD "  local x: f32[1]\n}", 2, "two buffers 'x'"},
    {HEAD "  local a: f32[1] out\n}", 2, "the end of the line expected, not 'out'"},
    {HEAD "  for i 4\n}", 2, "'in' expected, not '4'"},
    {HEAD "  for i in four\n}", 2, "a number expected, not 'four'"},
    {HEAD "  for i in 4 grid block\n}", 2, "the end of the line expected, not 'block'"},
    {HEAD "  for i in 4\n    for i in 5\n}", 3, "loops over 'i' differ"},
    {HEAD "  for i in 4\n  for i in 4 grid\n}", 3, "loops over 'i' differ"},
    {HEAD "  for i in 4\n    o[i] = x[i]\n   o[i] = x[i]\n}", 4, "indented unlike the lines above"},
    {HEAD "  for i in 4\n\to[i] = x[i]\n}", 3, "a tab"},
    {HEAD "  for a.name.of.more.than.23.letters in 4\n}", 2, "more than 23 letters"},
    {HEAD "  y[0] = 1:f32\n}", 2, "no buffer 'y'"},
    {HEAD "  o[j] = 1:f32\n}", 2, "no loop over 'j'"},
    {HEAD "  o[] = 1:f32\n}", 2, "an index expected, not ']'"},
    {HEAD "  o[0 = 1:f32\n}", 2, "']' expected, not '='"},
    {HEAD "  o[0] 1:f32\n}", 2, "'=' expected, not '1:f32'"},
    {HEAD "  o[0] sub= 1:f32\n}", 2, "'=' or an operation that accumulates expected, not 'sub='"},
    {HEAD "  o[0] = x[0]\n  & o[1] add= x[0]\n}", 3, "'=' expected, not 'add='"},
    {HEAD "  o[0] = x[0] if 0 in 1\n  & o[1] = x[0]\n}", 3,
     "the tests stand behind the last store"},
    {HEAD "  & o[1] = x[0]\n}", 2, "a buffer expected, not '&'"},
    {HEAD "  o[0] = n[0]\n}", 2, "o holds f32, not i32"},
    {HEAD "  o[0] bit_or= x[0]\n}", 2, "bit_or does not accumulate f32"},
    {HEAD "  o[0] =\n}", 2, "a value expected, not the end of the line"},
    {HEAD "  o[0] = 1\n}", 2, "a number looks like"},
    {HEAD "  o[0] = 1e-30:f32\n}", 2, "write it as a hexadecimal float"},
    {HEAD "  o[0] = y\n}", 2, "a value expected, not 'y'"},
    {HEAD "  o[0] = add(x[0])\n}", 2, "',' expected, not ')'"},
    {HEAD "  o[0] = neg(x[0], x[1])\n}", 2, "')' expected, not ','"},
    {HEAD "  o[0] = sum(x[0])\n}", 2, "no operation 'sum'"},
    {HEAD "  o[0] = cast(x[0])\n}", 2, "no operation 'cast'"},
    {HEAD "  o[0] = cast.f65(x[0])\n}", 2, "no operation 'cast.f65'"},
    {HEAD "  o[0] = add(x[0], n[0])\n}", 2, "add does not take operands of these dtypes"},
    {HEAD "  o[0] = exp(n[0])\n}", 2, "exp does not take"},
    {HEAD "  o[0] = where(x[0], x[1], x[2])\n}", 2, "where does not take"},
    {HEAD "  o[0] = cast.f32(neg(true))\n}", 2, "neg does not take"},
    {HEAD "  o[0] = cast.f32(shift_left(true, true))\n}", 2, "shift_left does not take"},
    {HEAD "  o[0] = t0\n}", 2, "no value t0 before this line"},
    {HEAD "  t1 = x[0]\n  o[0] = t1\n}", 2, "t0 is the next value"},
    {HEAD "  t0 = x[0]\n}", 3, "a store expected on the line after t0"},
    {HEAD "  t0 = x[0]\n  for i in 2\n    o[i] = t0\n}", 3, "no buffer 'for'"},
    {HEAD "  t0 = x[0]\n  o[0] = t0\n  o[1] = t0\n}", 4, "no value t0 before this line"},
    {HEAD "  o[int(x[0])] = x[0]\n}", 2, "a float as index"},
    {HEAD "  for i in 9\n    o[i*i] = x[0]\n}", 3, "a constant expected beside *"},
    {HEAD "  for i in 9\n    o[9/i] = x[0]\n}", 3, "a constant expected beside /"},
    {HEAD "  for i in 9\n    o[i%0] = x[0]\n}", 3, "a division by 0"},
    {HEAD "  for i in 9\n    o[i/(2 - 3)] = x[0]\n}", 3, "a division by -1"},
    {HEAD "  for i in 9\n    o[i*72057594037927936] = x[0]\n}", 3, "too large"},
    {HEAD "  o[int(n[0])*100000000] = x[0]\n}", 2, "too large"},
    {HEAD "  o[0] = x[0] if\n}", 2, "an index expected, not the end of the line"},
    {HEAD "  o[0] = x[0] if 0\n}", 2, "'in' expected"},
    {HEAD "  o[0] = x[0] if 0 in -1\n}", 2, "a number expected"},
    {HEAD "  o[0] = x[0] if 0 in 1 &&\n}", 2, "an index expected"},
    {HEAD "  mma_9x9x9(o[0 by 1, 1], x[0 by 1, 1], x[0 by 1, 1])\n}", 2, "no matrix instruction"},
    {HEAD "  mma_4x4x4(o[0], x[0 by 1, 1], x[0 by 1, 1])\n}", 2, "'by' expected, not '],'"},
    {HEAD "  mma_4x4x4(o[0 by 1], x[0 by 1, 1], x[0 by 1, 1])\n}", 2, "',' expected, not '],'"},
    {HEAD "  mma_4x4x4(o[0 by 4, 1], x[0 by 1, 1])\n}", 2, "',' expected, not ')'"},
    {HEAD "  o[0] = \x01\n}", 2, "a value expected, not bytes that are no text"},
    {HEAD "  \xff[0] = x[0]\n}", 2, "a buffer expected, not bytes"},
};

static void check_refused(const char *text, int line, const char *says)
{
    char want[120];
    dc_kernel *k = NULL;
    const dc_status s = dc_nest_parse(&job, text, &k);
    const bool right = s == DC_E_VALUE && job.err.id == DC_ERR_PARSE && k == NULL;
    const char *error = last_error();
    snprintf(want, sizeof want, "line %d: ", line);
    if (!CHECK(right) || !CHECK(strncmp(error, want, strlen(want)) == 0) ||
        !CHECK(strstr(error, says) != NULL))
        printf("    says '%s', should say '%s%s':\n%.2000s\n", error, want, says, text);
    dc_kernel_free(k);
}

/* head, n times middle, tail */
static void check_refused_many(const char *head, const char *middle, int n, const char *tail,
                               int line, const char *says)
{
    dc_text text = {0};
    dc_text_puts(&text, head);
    for (int i = 0; i < n; i++)
        dc_text_puts(&text, middle);
    dc_text_puts(&text, tail);
    check_refused(text.s, line, says);
    dc_text_free(&text);
}

static void test_refusals(void)
{
    for (size_t i = 0; i < DC_COUNTOF(refusals); i++)
        check_refused(refusals[i].text, refusals[i].line, refusals[i].says);
    check_refused_many(HEAD "  o[0] = ", "neg(", 100000, "", 2, "nested too deeply");
    check_refused_many(HEAD "  o[", "(", 100000, "", 2, "nested too deeply");
    check_refused_many(HEAD "  o[0] = x[0] if ", "int(n[", 100000, "", 2, "nested too deeply");

    dc_text text = {0};
    dc_text_puts(&text, HEAD);
    for (int i = 0; i < 100; i++)
        dc_text_printf(&text, "%*sfor i%d in 2\n", 2 + i, "", i);
    check_refused(text.s, 62, "loops nested too deeply");
    text.n = 0;
    dc_text_puts(&text, HEAD "  t0 = x[0]\n");
    for (int i = 1; i < 5000; i++)
        dc_text_printf(&text, "  t%d = neg(t%d)\n", i, i - 1);
    check_refused(text.s, 4001, "expressions nested too deeply");
    text.n = 0;
    dc_text_puts(&text, "kernel k(");
    for (int i = 0; i < 5000; i++)
        dc_text_printf(&text, "%sx%d: u8[1]", i ? ", " : "", i);
    check_refused(text.s, 1, "more than 4096 buffers");
    text.n = 0;
    dc_text_puts(&text, HEAD);
    for (int i = 0; i < 40; i++)
        dc_text_printf(&text, "%*sfor i%d in 2\n", 2 + i, "", i);
    dc_text_printf(&text, "%*so[0", 50, "");
    for (int i = 0; i < 40; i++)
        dc_text_printf(&text, " + i%d", i);
    check_refused(text.s, 42, "more than 32 terms");
    dc_text_free(&text);
}

/* ---- damaged texts --------------------------------------------------------------------------- */

enum { MAX_TEXT = 6000, MAX_WORK = 3000, MAX_ELEMENTS = 1 << 16 };

static double work_of(const dc_kernel *k, const dc_stmt *first)
{
    double work = 1;
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        work += t->kind == DC_STMT_TILE ? 600
                : t->kind == DC_STMT_SET
                    ? 2
                    : 1 + (double)k->axis.at[t->axis].extent * work_of(k, t->body);
    return work;
}

static bool is_small(const dc_kernel *k)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < k->buf.n; i++)
        count += k->buf.at[i].count;
    return count <= MAX_ELEMENTS && work_of(k, k->root) <= MAX_WORK;
}

static long parsed, legal, ran, failed_runs;

/* On memory of exactly the size of each parameter. */
static void run_damaged(const dc_kernel *k)
{
    void **mem = calloc(k->nparam + 1, sizeof *mem);
    for (uint32_t i = 0; i < k->buf.n; i++) {
        const dc_buffer *b = &k->buf.at[i];
        const size_t bytes = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        if (b->scope == DC_SCOPE_PARAM)
            mem[b->param] = memset(malloc(bytes + !bytes), 1, bytes + !bytes);
    }
    const dc_status s = dc_nest_run(&job, k, mem);
    CHECK(s == DC_OK || (s == DC_E_BUG && job.err.id == DC_ERR_BUG));
    ran++;
    failed_runs += s != DC_OK;
    for (uint32_t i = 0; i < k->nparam; i++)
        free(mem[i]);
    free(mem);
}

/* Whatever is parsed prints and parses again; what verifies also runs. */
static dc_status try_damaged(dc_job *j, void *arg)
{
    const char *text = arg;
    dc_text a = {0}, b = {0};
    dc_kernel *k, *back;
    if (dc_nest_parse(j, text, &k) != DC_OK) {
        CHECK(j->err.id == DC_ERR_PARSE && k == NULL);
        return DC_OK;
    }
    parsed++;
    dc_nest_print(k, &a);
    if (CHECK(dc_nest_parse(j, a.s, &back) == DC_OK)) {
        dc_nest_print(back, &b);
        if (!CHECK(strcmp(a.s, b.s) == 0))
            printf("    %s\n    %s\n", a.s, b.s);
    } else {
        printf("    %s\n%s\n", last_error(), a.s);
    }
    if (dc_nest_check(j, k) == DC_OK) {
        legal++;
        if (is_small(k))
            run_damaged(k);
    } else {
        CHECK(j->err.id == DC_ERR_BUG);
    }
    dc_text_free(&a);
    dc_text_free(&b);
    dc_kernel_free(k);
    dc_kernel_free(back);
    return DC_OK;
}

static size_t replace(char *text, size_t n, size_t at, size_t cut, const char *put, size_t len)
{
    cut = cut < n - at ? cut : n - at;
    if (n - cut + len >= MAX_TEXT)
        return n;
    memmove(text + at + len, text + at + cut, n - at - cut);
    memcpy(text + at, put, len);
    return n - cut + len;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || c == '.' || (c >= '0' && c <= '9');
}

/* The word or number at or behind a place; what is no word has length 0. */
static size_t word_at(const char *text, size_t n, size_t *at)
{
    size_t len = 0;
    while (*at < n && !is_word(text[*at]))
        ++*at;
    while (*at > 0 && is_word(text[*at - 1]))
        --*at;
    while (*at + len < n && is_word(text[*at + len]))
        len++;
    return len;
}

/* Bytes: most of what comes out is no text of a nest. */
static size_t damage_bytes(rng *r, char *text, size_t n, const char *other)
{
    static const char *const pieces[] = {
        "0",      "1",         "2",       "-",     "9999999999", "72057594037927935",
        "(",      ")",         "[",       "]",     "*",          "/",
        "%",      " + ",       " if ",    " in ",  "&& ",        "& ",
        "\n",     "  ",        "int(",    "grid",  "block",      "lane",
        "vector", "reduce",    "local",   "group", "add=",       "neg(",
        "thread", "cast.i32(", "nan:f32", "test(", "#",          "for i in 2\n",
    };
    const size_t at = (size_t)rng_below(r, (int)n + 1);
    const char *piece = other + rng_below(r, (int)strlen(other) + 1);
    size_t len = (size_t)rng_below(r, 60);
    switch (rng_below(r, 4)) {
    case 0:
        if (at < n)
            text[at] = (char)(rng_below(r, 3) ? ' ' + rng_below(r, 95) : 1 + rng_below(r, 255));
        return n;
    case 1:
        return replace(text, n, at, rng_below(r, 4) ? (size_t)rng_below(r, 12) : n, "", 0);
    case 2:
        len = strlen(piece) < len ? strlen(piece) : len;
        return replace(text, n, at, 0, piece, len);
    default:
        piece = pieces[rng_below(r, (int)DC_COUNTOF(pieces))];
        return replace(text, n, at, (size_t)rng_below(r, 5), piece, strlen(piece));
    }
}

/* Words, numbers and lines: much of what comes out can be parsed. */
static size_t damage_words(rng *r, char *text, size_t n)
{
    static const char *const numbers[] = {"0", "1", "2",  "3",  "4",   "5",
                                          "7", "8", "16", "64", "1000"};
    static const char *const kinds[] = {"",        " grid",   " block", " lane",
                                        " vector", " unroll", " reduce"};
    size_t at = (size_t)rng_below(r, (int)n + 1), from = (size_t)rng_below(r, (int)n + 1);
    char copy[200];
    size_t len = word_at(text, n, &at);
    const char *number = numbers[rng_below(r, (int)DC_COUNTOF(numbers))];
    const char *kind = kinds[rng_below(r, (int)DC_COUNTOF(kinds))];
    if (len > 0 && text[at] >= '0' && text[at] <= '9')
        return replace(text, n, at, len, number, strlen(number));
    const char *in = len > 0 ? strstr(text + at, " in ") : NULL;
    switch (rng_below(r, 4)) {
    case 0: /* another kind of loop */
        if (in == NULL)
            return n;
        at = (size_t)(in - text) + 4;
        at += word_at(text, n, &at);
        for (len = 0; at + len < n && text[at + len] != '\n';)
            len++;
        return replace(text, n, at, len, kind, strlen(kind));
    case 1: /* a line again, elsewhere or not at all */
        while (at > 0 && text[at - 1] != '\n')
            at--;
        for (len = 0; at + len < n && len < sizeof copy && text[at + len - (len > 0)] != '\n';)
            len++;
        memcpy(copy, text + at, len);
        if (rng_below(r, 2))
            n = replace(text, n, at, len, "", 0);
        from = from < n ? from : n;
        while (from > 0 && text[from - 1] != '\n')
            from--;
        return rng_below(r, 3) ? replace(text, n, from, 0, copy, len) : n;
    default: { /* a word from elsewhere */
        const size_t have = word_at(text, n, &from);
        if (have == 0 || have > sizeof copy || (text[from] >= '0' && text[from] <= '9'))
            return n;
        memcpy(copy, text + from, have);
        return replace(text, n, at, len, copy, have);
    }
    }
}

static void test_damaged(uint64_t seed, long times, const char *const *corpus, size_t ncorpus)
{
    rng r = {seed};
    char *text = malloc(MAX_TEXT + 1);
    for (long i = 0; i < times; i++) {
        const char *from = corpus[rng_below(&r, (int)ncorpus)];
        size_t n = strlen(from) < MAX_TEXT ? strlen(from) : MAX_TEXT - 1;
        memcpy(text, from, n);
        text[n] = '\0';
        const bool words = rng_below(&r, 3) > 0;
        for (int d = 1 + rng_below(&r, 4); d > 0; d--) {
            const char *other = corpus[rng_below(&r, (int)ncorpus)];
            n = words ? damage_words(&r, text, n) : damage_bytes(&r, text, n, other);
            text[n] = '\0';
        }
        if (!CHECK(dc_protect(&job, try_damaged, text) == DC_OK))
            printf("    %s\n%s\n", last_error(), text);
    }
    free(text);
    printf("%ld damaged texts: %ld parsed, %ld legal, %ld ran, %ld of them reported\n", times,
           parsed, legal, ran, failed_runs);
    CHECK(times < 1000 || (parsed > times / 50 && legal > times / 100 && failed_runs > 0));
}

/* ---------------------------------------------------------------------------------------------- */

/* Texts of kernels of random graphs, as lowered and scheduled. */
static dc_status collect(dc_job *j, void *arg)
{
    DC_VEC(const char *) *out = arg;
    for (uint64_t seed = 1; seed < 40; seed++) {
        dc_groups gs;
        dc_module *m = dc_module_new();
        CHECK(dc_fuse(j, &j->scratch, graphgen_func(m, seed, 25), 2, &gs) == DC_OK);
        for (uint32_t g = 0; g < gs.n; g++) {
            dc_kernel *k;
            dc_text text = {0};
            CHECK(dc_lower(j, &gs, g, &k) == DC_OK);
            if (seed % 2)
                CHECK(dc_schedule(j, k, &target, 2) == DC_OK);
            dc_nest_print(k, &text);
            DC_PUSH(*out, text.s); /* freed by main */
            dc_kernel_free(k);
        }
        dc_module_free(m);
    }
    return DC_OK;
}

static dc_status by_hand(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    test_canonical();
    test_people();
    test_deep();
    test_constants(*(const uint64_t *)arg);
    test_bad_constants();
    test_refusals();
    return DC_OK;
}

int main(int argc, char **argv)
{
    static dc_log log;
    const char *bad;
    uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 100;
    const long times = argc > 3 ? strtol(argv[3], NULL, 0) : 20000;
    dc_opts_init(&opts, &bad);
    dc_job_init(&job, &opts, &log);
    CHECK(dc_protect(&job, by_hand, &seed) == DC_OK);
    for (uint64_t i = 0; i < graphs; i++) {
        uint64_t s = seed + i;
        if (!CHECK(dc_protect(&job, test_graph, &s) == DC_OK))
            printf("    seed %llu: %s\n", (unsigned long long)s, last_error());
    }
    printf("%ld kernels printed\n", printed_kernels);

    DC_VEC(const char *) corpus = {0};
    CHECK(dc_protect(&job, collect, &corpus) == DC_OK);
    const uint32_t made = corpus.n;
    for (int copies = 0; copies < 20; copies++) /* half of the cases */
        for (size_t i = 0; i < DC_COUNTOF(canonical); i++)
            DC_PUSH(corpus, canonical[i]);
    test_damaged(seed, times, corpus.at, corpus.n);
    for (uint32_t i = 0; i < made; i++) {
        char *text;
        memcpy(&text, &corpus.at[i], sizeof text);
        dc_xfree(text);
    }
    DC_VEC_FREE(corpus);
    dc_job_fini(&job);
    return t_done();
}
