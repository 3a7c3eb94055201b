/*
 * The nest form as text: kernels of random graphs, before and after each move of their schedule,
 * printed, parsed, printed again; texts written by hand with all constructs; constants; every
 * message of the parser. Damaged texts are in test_ntext_damaged.c.
 *
 *   test_ntext [seed [graphs]]
 */
#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/moves/move.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/graphgen.h"
#include "tests/unit/nest_texts.h"

static long printed_kernels;

/* ---- round trips ----------------------------------------------------------------------------- */

static void round_trip(dc_kernel *k)
{
    dc_text a = {0}, b = {0};
    dc_nest_print(k, &a);
    printed_kernels++;
    dc_kernel *back = nest_of(a.s);
    if (back != NULL) {
        dc_nest_print(back, &b);
        CHECK_STR(b.s, a.s);
        if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK) ||
            !CHECK(dc_nest_check(&nest_job, back) == DC_OK))
            printf("    %s\n%s\n", nest_said(), a.s);
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
    CHECK(dc_lower(&nest_job, gs, g, &plan) == DC_OK);
    CHECK(dc_lower(&nest_job, gs, g, &k) == DC_OK);
    CHECK(dc_schedule(&nest_job, plan, &nest_target, 2) == DC_OK);
    plan->strict = k->strict = strict;
    dc_text text = {0}, direct = {0}, again = {0};
    dc_nest_print(k, &text);
    dc_kernel *back = nest_of(text.s);
    round_trip(k);
    for (uint32_t i = 0; i < plan->moves.n; i++) {
        const char *move = dc_move_text(plan, plan->moves.at[i], &nest_job.scratch);
        CHECK(dc_move_apply_text(k, move, &why));
        CHECK(back != NULL && dc_move_apply_text(back, move, &why));
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

static void test_canonical(void)
{
    for (size_t i = 0; i < DC_COUNTOF(nest_texts); i++) {
        dc_text text = {0};
        dc_kernel *k = nest_of(nest_texts[i]);
        if (k == NULL)
            continue;
        dc_nest_print(k, &text);
        CHECK_STR(text.s, nest_texts[i]);
        if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK))
            printf("    %s\n%s\n", nest_said(), text.s);
        dc_text_free(&text);
        dc_kernel_free(k);
    }
}

static void test_people(void)
{
    static const char written[] =
        "\n# Sums of rows.\n"
        "kernel rows ( out0 : f32 [ 8 ] out uncached nontemporal, # first the result\n"
        "    x0: f32[64] uncached)   strict {   # strict: no FMA\n"
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
    static const char printed[] =
        "kernel rows(out0: f32[8] out uncached nontemporal, x0: f32[64] uncached) strict {\n"
        "  local acc: f32[1]\n"
        "  for i in 8 grid\n"
        "    acc[0] = -0:f32\n"
        "    for k in 8 reduce\n"
        "      acc[0] add= mul(x0[8*i + k], 0.5:f32) if k in 9\n"
        "    out0[i] = acc[0]\n"
        "}\n";
    dc_text text = {0};
    dc_kernel *k = nest_of(written);
    if (k == NULL)
        return;
    dc_nest_print(k, &text);
    CHECK_STR(text.s, printed);
    CHECK(dc_nest_check(&nest_job, k) == DC_OK);
    dc_text_free(&text);
    dc_kernel_free(k);
}

/* A chain of many operations gets lines in between, so that it can be read back. */
static void test_long_names(void)
{
    dc_kernel *k = nest_of("kernel k(out0: f32[8] out, a.parameter.with.a.long.name: f32[8]) {\n"
                           "  for an.axis.with.many.suffixes.o.i.o.i.o.i in 8\n"
                           "    out0[an.axis.with.many.suffixes.o.i.o.i.o.i] = "
                           "a.parameter.with.a.long.name[an.axis.with.many.suffixes.o.i.o.i.o.i]\n"
                           "}\n");
    if (CHECK(k != NULL))
        round_trip(k);
    dc_kernel_free(k);
}

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
    for (uint32_t p = 0; p < 256; p++) {
        check_constant(DC_F8E4M3FN, p, NULL);
        check_constant(DC_F8E5M2, p, NULL);
    }
    check_constant(DC_F8E4M3FN, 0x7e, "450:f8e4m3fn");
    check_constant(DC_F8E4M3FN, 0x7f, "nan:f8e4m3fn");
    check_constant(DC_F8E5M2, 0xfc, "-inf:f8e5m2");
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
        "0x7fc0f:c64",
        "1:c128",
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
    {"", 1, "'kernel' expected, not the end"},
    {"\n\n# only this", 3, "'kernel' expected"},
    {"kernel", 1, "the name of a kernel expected"},
    {"kernel 9", 1, "the name of a kernel expected, not '9'"},
    {"kernel k(", 1, "the name of a buffer expected"},
    {"kernel k(x)", 1, "':' expected, not ')'"},
    {"kernel k(x: f17[1])", 1, "a dtype expected, not 'f17'"},
    {"kernel k(x: f32[])", 1, "a number expected"},
    {"kernel k(x: f32[-1])", 1, "a number expected"},
    {"kernel k(x: f32[99999999999999999999])", 1, "a number beyond 281474976710656"},
    {"kernel k(x: f32[007])", 1, "a number has leading zeros"},
    {"kernel k(x: f32[+7])", 1, "a number expected"},
    {"kernel k(x: f32[1] f32)", 1, "')' expected"},
    {"kernel k(x: f32[1],\n  x: f32[2]) {\n}", 2, "two buffers 'x'"},
    {"kernel k(o: f32[8] inout nontemporal) {\n}", 1, "')' expected, not 'nontemporal'"},
    {"kernel k() {\n  local a: f32[8] uncached\n}", 2, "the end of the line expected"},
    {"kernel k(x: f32[8]) {\n  for i in 8 prefetch x j 1\n}", 2, "no loop over 'j' here"},
    {"kernel k(x: f32[8]) {\n  for i in 8 prefetch x i\n}", 2, "a number expected"},
    {"kernel k() strict strict {\n}", 1, "'{' expected, not 'strict'"},
    {"kernel k() { }", 1, "the end of the line expected, not '}'"},
    {"kernel k() {\n", 2, "'}' expected, not the end"},
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
    {HEAD "  y[0] = 1:f32\n}", 2, "no buffer 'y'"},
    {HEAD "  o[j] = 1:f32\n}", 2, "no loop over 'j'"},
    {HEAD "  o[] = 1:f32\n}", 2, "an index expected, not ']'"},
    {HEAD "  o[0 = 1:f32\n}", 2, "']' expected, not '='"},
    {HEAD "  o[0] 1:f32\n}", 2, "'=' expected, not '1'"},
    {HEAD "  o[0] sub= 1:f32\n}", 2, "'=' or an operation that accumulates expected, not 'sub'"},
    {HEAD "  o[0] = x[0]\n  & o[1] add= x[0]\n}", 3, "'=' expected, not 'add'"},
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
    {HEAD "  mma_4x4x4(o[0], x[0 by 1, 1], x[0 by 1, 1])\n}", 2, "'by' expected, not ']'"},
    {HEAD "  mma_4x4x4(o[0 by 1], x[0 by 1, 1], x[0 by 1, 1])\n}", 2, "',' expected, not ']'"},
    {HEAD "  mma_4x4x4(o[0 by 4, 1], x[0 by 1, 1])\n}", 2, "',' expected, not ')'"},
    {HEAD "  o[0] = \x01\n}", 2, "a value expected, not byte 1"},
    {HEAD "  \xff[0] = x[0]\n}", 2, "a buffer expected, not byte 255"},
};

static void check_refused(const char *text, int line, const char *says)
{
    char want[120];
    dc_kernel *k = NULL;
    const dc_status s = dc_nest_parse(&nest_job, text, &k);
    const bool right = s == DC_E_VALUE && nest_job.err.id == DC_ERR_PARSE && k == NULL;
    const char *error = nest_said();
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

static dc_status by_hand(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    test_canonical();
    test_people();
    test_long_names();
    test_deep();
    test_constants(*(const uint64_t *)arg);
    test_bad_constants();
    test_refusals();
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 100;
    nest_open();
    CHECK(dc_protect(&nest_job, by_hand, &seed) == DC_OK);
    for (uint64_t i = 0; i < graphs; i++) {
        uint64_t s = seed + i;
        if (!CHECK(dc_protect(&nest_job, test_graph, &s) == DC_OK))
            printf("    seed %llu: %s\n", (unsigned long long)s, nest_said());
    }
    printf("%ld kernels printed\n", printed_kernels);
    nest_close();
    return t_done();
}
