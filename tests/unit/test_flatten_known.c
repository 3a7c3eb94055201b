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
    with_runner(test_kept);
    return t_done();
}
