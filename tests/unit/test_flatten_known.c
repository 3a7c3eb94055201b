/* What flattening knows of locals: what was stored there last. */
#include "tests/unit/kernel_run.h"

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
    with_runner(test_kept);
    return t_done();
}
