/*
 * What flattening knows of loops and locals: tests that only the last iteration of a loop fails, and what was stored to a
 * local last.
 */
#include <math.h>

#include "tests/unit/kernel_run.h"

static int count_of(const dc_flat *f, dc_kop op)
{
    int n = 0;
    for (uint32_t i = 0; i < f->order.n; i++)
        n += f->inst.at[f->order.at[i]].op == op;
    return n;
}

/* Sums of 4 of each of 9 rows of 10: the last part of a row is by itself, the others go without a test. */
static void test_tail(runner *r)
{
    static const char text[] =
        "kernel k(out0: f32[9] out, x0: f32[90]) {\n"
        "  local acc: f32[4]\n"
        "  for i in 9 grid\n"
        "    for l in 4 vector\n"
        "      acc[l] = -inf:f32\n"
        "    for j in 3\n"
        "      for l in 4 vector\n"
        "        acc[l] = maximum(acc[l], x0[10*i + 4*j + l]) if 4*j + l in 10\n"
        "    out0[i] = acc[0]\n"
        "}\n";
    float x[90], out[9];
    dc_kernel *k = NULL;
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    const int n = runner_add(r, k, 0);
    const dc_flat *f = r->flat.at[n];
    int masks = 0, loads = 0;
    for (uint32_t i = 0; i < f->order.n; i++) {
        const dc_finst *at = &f->inst.at[f->order.at[i]];
        masks += at->op == DC_K_LOAD && at->in[1] != 0;
        loads += at->op == DC_K_LOAD && f->buf.at[at->buf].scope == DC_SCOPE_PARAM;
    }
    CHECK_EQ(masks, 1);
    CHECK_EQ(loads, 2);
    CHECK_EQ(count_of(f, DC_K_LOOP), 2);
    for (int i = 0; i < 90; i++)
        x[i] = (float)(i * 37 % 90);
    if (runner_build(r)) {
        runner_run_range(r, n, 9, (void *[]){out, x});
        for (int i = 0; i < 9; i++)
            CHECK(out[i] == fmaxf(x[10 * i], fmaxf(x[10 * i + 4], x[10 * i + 8])));
    }
    dc_kernel_free(k);
}

/* Rows in blocks of 8, tiles of 3 of them and 8 columns in tiles of 3, all of 13 by 8: tails of loops round loops. */
static void test_tiles(runner *r)
{
    static const char text[] =
        "kernel k(out0: f32[104] out, x0: f32[65], x1: f32[40]) {\n"
        "  local acc: f32[9]\n"
        "  for i in 2 grid\n"
        "    for j in 3\n"
        "      for t in 3\n"
        "        for u in 3 unroll\n"
        "          for v in 3 unroll\n"
        "            acc[3*u + v] = 0:f32\n"
        "        for k in 5 reduce\n"
        "          for u in 3 unroll\n"
        "            for v in 3 unroll\n"
        "              acc[3*u + v] add= mul(x0[40*i + 15*t + 5*u + k if 8*i + 3*t + u in 13], "
        "x1[8*k + 3*j + v]) if 3*j + v in 8\n"
        "        for u in 3 unroll\n"
        "          for v in 3 unroll\n"
        "            out0[64*i + 24*t + 8*u + 3*j + v] = acc[3*u + v] if 8*i + 3*t + u in 13 && "
        "3*t + u in 8 && 3*j + v in 8\n"
        "}\n";
    float x[65], y[40], out[104];
    dc_kernel *k = NULL;
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    const int n = runner_add(r, k, 0);
    for (int i = 0; i < 65; i++)
        x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < 40; i++)
        y[i] = (float)(i * 5 % 9 - 4);
    if (runner_build(r)) {
        CHECK(count_of(r->flat.at[n], DC_K_IF) > 0);
        runner_run_range(r, n, 2, (void *[]){out, x, y});
        for (int i = 0; i < 13; i++)
            for (int j = 0; j < 8; j++) {
                float sum = 0;
                for (int l = 0; l < 5; l++)
                    sum += x[5 * i + l] * y[8 * l + j];
                CHECK(out[8 * i + j] == sum);
            }
    }
    dc_kernel_free(k);
}

/* A window of 3 on rows of 6, whose first and last positions stand over the edge: those between go without a test. */
static void test_window(runner *r)
{
    static const char text[] = "kernel k(out0: f32[24] out, x0: f32[24]) {\n"
                               "  local acc: f32[1]\n"
                               "  for i in 4 grid\n"
                               "    for j in 6\n"
                               "      acc[0] = 0:f32\n"
                               "      for k in 3 reduce unroll\n"
                               "        acc[0] add= x0[6*i + j + k - 1 if j + k - 1 in 6]\n"
                               "      out0[6*i + j] = acc[0]\n"
                               "}\n";
    float x[24], out[24];
    dc_kernel *k = NULL;
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    const int n = runner_add(r, k, 0);
    const dc_flat *f = r->flat.at[n];
    for (uint32_t i = 0; i < f->order.n; i++)
        CHECK(f->inst.at[f->order.at[i]].op != DC_K_LOAD || f->inst.at[f->order.at[i]].in[1] == 0);
    CHECK_EQ(count_of(f, DC_K_LOOP), 2);
    CHECK_EQ(count_of(f, DC_K_LT), 0);
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i * i % 13);
    if (runner_build(r)) {
        runner_run_range(r, n, 4, (void *[]){out, x});
        for (int i = 0; i < 24; i++) {
            const int j = i % 6;
            CHECK(out[i] == (j > 0 ? x[i - 1] : 0) + x[i] + (j < 5 ? x[i + 1] : 0));
        }
    }
    dc_kernel_free(k);
}

/* What a local holds is known until something is stored there that lies otherwise, in a loop too. */
static void test_kept(runner *r)
{
    static const char text[] = "kernel k(out0: f32[8] out, x0: f32[8]) {\n"
                               "  local a: f32[4]\n"
                               "  local b: f32[2]\n"
                               "  for i in 2 grid\n"
                               "    for l in 4 vector\n"
                               "      a[l] = x0[4*i + l]\n"
                               "    b[0] = a[1]\n"
                               "    a[0] = add(a[3], b[0])\n"
                               "    for l in 4 vector\n"
                               "      a[l] = mul(a[l], 2:f32)\n"
                               "    b[1] = b[0]\n"
                               "    for j in 3\n"
                               "      b[0] = add(b[0], a[2])\n"
                               "    a[3] = sub(b[0], b[1])\n"
                               "    for l in 4 vector\n"
                               "      out0[4*i + l] = a[l]\n"
                               "}\n";
    float x[8], out[8];
    dc_kernel *k = NULL;
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    const int n = runner_add(r, k, 0);
    for (int i = 0; i < 8; i++)
        x[i] = (float)(i * i + 1);
    if (runner_build(r)) {
        runner_run_range(r, n, 2, (void *[]){out, x});
        for (int i = 0; i < 8; i += 4) {
            CHECK(out[i] == 2 * (x[i + 3] + x[i + 1]));
            CHECK(out[i + 1] == 2 * x[i + 1] && out[i + 2] == 2 * x[i + 2]);
            CHECK(out[i + 3] == 6 * x[i + 2]);
        }
    }
    dc_kernel_free(k);
}

static void with_runner(void (*test)(runner *r))
{
    runner r;
    if (!runner_open(&r))
        return;
    test(&r);
    runner_close(&r);
}

int main(void)
{
    with_runner(test_tail);
    with_runner(test_tiles);
    with_runner(test_window);
    with_runner(test_kept);
    return t_done();
}
