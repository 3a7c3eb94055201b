/*
 * exp where one instruction multiplies by powers of two (DC_K_SCALE) and where there is none: the same
 * bits, as machine code and in the interpreter of the flat form.
 */
#include "jit/moves/move.h"
#include "jit/sim/flat_interp.h"

#include <math.h>

#include "tests/unit/kernel_run.h"
#include "tests/unit/rng.h"

enum { N = 1 << 14 };

static float of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Both ends of what has an exponential and a normal one, what is no number, then anything. */
static void fill(float *x)
{
    static const float ends[] = {0x1.62e42ep6f, 0x1.62e43p6f, 89,   0x1.fffffep127f,
                                 -87.336f,      -103.97f,     -104, 0};
    rng r = {7};
    int n = 0;
    for (size_t e = 0; e < DC_COUNTOF(ends); e++) {
        uint32_t at;
        memcpy(&at, &ends[e], sizeof at);
        for (uint32_t d = 0; d < 64; d++) {
            x[n++] = of_bits(at + d - 32);
            x[n++] = -of_bits(at + d - 32);
        }
    }
    x[n++] = INFINITY;
    x[n++] = -INFINITY;
    for (; n < N / 2; n++)
        x[n] = of_bits((uint32_t)rng_next(&r));
    for (; n < N; n++)
        x[n] = (float)(rng_below(&r, 220000) - 110000) / 1000;
}

static dc_kernel *kernel_of(runner *r, int lanes)
{
    static const char text[] = "kernel k(out0: f32[16384] out, x0: f32[16384]) strict {\n"
                               "  for i in 16384\n"
                               "    out0[i] = exp(x0[i])\n"
                               "}\n";
    dc_kernel *k = NULL;
    const char *why = "";
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    CHECK(dc_move_apply_text(k, dc_arena_printf(&r->job.scratch, "split i %d", lanes), &why));
    CHECK(dc_move_apply_text(k, "vectorize i.i", &why));
    CHECK(dc_move_apply_text(k, "grid i.o", &why));
    return k;
}

static bool scales(const dc_flat *f)
{
    for (uint32_t n = 0; n < f->order.n; n++)
        if (f->inst.at[f->order.at[n]].op == DC_K_SCALE)
            return true;
    return false;
}

static void same(const float *a, const float *b)
{
    for (int i = 0; i < N; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a) != 0) {
            CHECK(false);
            return;
        }
    CHECK(true);
}

static void test_exp(runner *r)
{
    static const int lanes[] = {8, 16, 32, 64};
    enum { LANES = DC_COUNTOF(lanes) };
    static float x[N], out[N], plain[N], run[N];
    int number[LANES], without[LANES];
    fill(x);
    for (int n = 0; n < LANES; n++) {
        dc_kernel *k = kernel_of(r, lanes[n]), *again = kernel_of(r, lanes[n]);
        number[n] = runner_add(r, k, 0);
        r->portable = true;
        without[n] = runner_add(r, again, 0);
        r->portable = false;
        CHECK_EQ(scales(r->flat.at[number[n]]), lanes[n] >= 16);
        CHECK(!scales(r->flat.at[without[n]]));
        dc_kernel_free(k);
        dc_kernel_free(again);
    }
    if (!runner_build(r))
        return;
    for (int n = 0; n < LANES; n++) {
        runner_run_range(r, without[n], N / lanes[n], (void *[]){plain, x});
        runner_run_range(r, number[n], N / lanes[n], (void *[]){out, x});
        same(out, plain);
        CHECK(dc_flat_run(&r->job, r->flat.at[number[n]], (void *[]){run, x}, 0, N / lanes[n]) ==
              DC_OK);
        same(out, run);
    }
}

int main(void)
{
    runner r;
    if (runner_open(&r)) {
        if (r.device->ops->target(r.device)->scales)
            test_exp(&r);
        else
            T_SKIP("no instruction that multiplies by powers of two");
        runner_close(&r);
    }
    return t_done();
}
