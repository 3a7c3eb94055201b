/*
 * The rule for memory traffic (jit/schedule/schedule_memory.c): which of the moves nontemporal, pipeline and prefetch
 * follow from the parameters that a text calls uncached.
 */
#include "jit/moves/move.h"
#include "jit/schedule/schedule.h"

#include <string.h>

#include "tests/unit/nest_texts.h"

/* The moves of memory traffic that the rules choose for a text, "; " between them. */
static const char *traffic(const char *text)
{
    static char out[400];
    dc_kernel *k = nest_of(text);
    size_t n = 0;
    out[0] = '\0';
    if (k == NULL || !CHECK(dc_schedule(&nest_job, k, &nest_target, 2) == DC_OK))
        return "";
    for (uint32_t i = 0; i < k->moves.n; i++)
        if (dc_move_effect_of(k->moves.at[i]->kind) == DC_MOVE_TRAFFIC)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n > 0 ? "; " : "",
                                  dc_move_text(k, k->moves.at[i], &k->arena));
    CHECK(dc_nest_check(&nest_job, k) == DC_OK);
    dc_kernel_free(k);
    return out;
}

#define MAP(out, in)                                                 \
    "kernel map(out0: f32[65536] " out ", x0: f32[65536]" in ") {\n" \
    "  for i in 65536\n    out0[i] = mul(x0[i], x0[i])\n}\n"

static void test_maps(void)
{
    CHECK_STR(traffic(MAP("out", "")), "");
    CHECK_STR(traffic(MAP("out", " uncached")), "");
    CHECK_STR(traffic(MAP("out uncached", " uncached")), "nontemporal out0");
    CHECK_STR(traffic(MAP("inout uncached", " uncached")), "");
}

/* Softmax without the maximum, of rows of so many columns. */
#define ROWS(out, in, all, columns)                                               \
    "kernel rows(out0: f32[" all "] " out ", x0: f32[" all "]" in ") {\n"         \
    "  local e: f32[" columns "]\n  local sum: f32[1]\n"                          \
    "  for i: row in 64\n"                                                        \
    "    for n: column in " columns "\n      e[n] = exp(x0[" columns "*i + n])\n" \
    "    sum[0] = 0:f32\n"                                                        \
    "    for k: column in " columns " reduce\n      sum[0] add= e[k]\n"           \
    "    for m: column in " columns "\n      out0[" columns "*i + m] = div(e[m], sum[0])\n}\n"

static void test_rows(void)
{
    CHECK_STR(traffic(ROWS("out", "", "65536", "1024")), "");
    CHECK_STR(traffic(ROWS("out", " uncached", "65536", "1024")), "prefetch x0 i n.o 1");
    CHECK_STR(traffic(ROWS("out uncached", "", "65536", "1024")), "nontemporal out0; pipeline i");
    CHECK_STR(traffic(ROWS("out uncached", " uncached", "65536", "1024")),
              "nontemporal out0; pipeline i; prefetch x0 i n.o 1");
    /* rows of 512 bytes: what the machine prefetches by itself is enough */
    CHECK_STR(traffic(ROWS("out", " uncached", "8192", "128")), "");
}

/* Two inputs, which are fetched by different parts into L2, not by the one that stores past the caches. */
static void test_two_inputs(void)
{
    CHECK_STR(traffic("kernel two(out0: f32[65536] out uncached, x0: f32[65536] uncached, "
                      "x1: f32[65536] uncached) {\n"
                      "  local a: f32[1]\n  local b: f32[1]\n"
                      "  for i: row in 64\n"
                      "    a[0] = 0:f32\n"
                      "    for k: column in 1024 reduce\n"
                      "      a[0] add= mul(x0[1024*i + k], x1[1024*i + k])\n"
                      "    b[0] = 0:f32\n"
                      "    for l: column in 1024 reduce\n"
                      "      b[0] add= mul(x0[1024*i + l], a[0])\n"
                      "    for m: column in 1024\n"
                      "      out0[1024*i + m] = sub(mul(x0[1024*i + m], b[0]), x1[1024*i + m])\n"
                      "}\n"),
              "nontemporal out0; prefetch x0 i l.o 2; prefetch x1 i k.o 2");
}

/* Rows that integers choose, whichever the next one is. */
static void test_chosen_rows(void)
{
    CHECK_STR(traffic("kernel take(out0: f32[65536] out, x0: f32[65536] uncached, at: i32[64]) {\n"
                      "  for i in 64\n    for j in 1024\n"
                      "      out0[1024*i + j] = x0[1024*int(minimum(maximum(at[i], 0:i32), "
                      "63:i32)) + j]\n}\n"),
              "prefetch x0 i i 1");
}

int main(void)
{
    nest_open();
    test_maps();
    test_rows();
    test_two_inputs();
    test_chosen_rows();
    nest_close();
    return t_done();
}
