/*
 * The larger and the smaller of two floats where one instruction picks them (DC_K_MAX, DC_K_MIN) and where there is
 * none: what core/ir/ops.def says of NaN and of zeros of both signs, as machine code and in the interpreter of the flat
 * form.
 */
#include "jit/moves/move.h"
#include "jit/sim/flat_interp.h"

#include <math.h>

#include "tests/unit/kernel_run.h"
#include "tests/unit/rng.h"

enum { N = 1 << 10, FORMS = 2 * 2 * 7 };

typedef struct form {
    dc_op op;
    dc_dtype type;
    int lanes, number, without;
} form;

static dc_kernel *kernel_of(runner *r, const form *m)
{
    char text[200];
    dc_kernel *k = NULL;
    const char *why = "", *t = m->type == DC_F32 ? "f32" : "f64";
    snprintf(text, sizeof text,
             "kernel k(out0: %s[1024] out, x0: %s[1024], x1: %s[1024]) strict {\n"
             "  for i in 1024\n"
             "    out0[i] = %s(x0[i], x1[i])\n"
             "}\n",
             t, t, t, m->op == DC_OP_MAX ? "maximum" : "minimum");
    CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK);
    if (m->lanes > 1) {
        CHECK(
            dc_move_apply_text(k, dc_arena_printf(&r->job.scratch, "split i %d", m->lanes), &why));
        CHECK(dc_move_apply_text(k, "vectorize i.i", &why));
    }
    CHECK(dc_move_apply_text(k, m->lanes > 1 ? "grid i.o" : "grid i", &why));
    return k;
}

static bool picks(const dc_flat *f)
{
    for (uint32_t n = 0; n < f->order.n; n++) {
        const int op = f->inst.at[f->order.at[n]].op;
        if (op == DC_K_MAX || op == DC_K_MIN)
            return true;
    }
    return false;
}

static void put(dc_dtype t, void *at, int i, double v)
{
    dc_bits_store(t, (char *)at + (size_t)i * dc_dtype_size(t), dc_bits_of(t, v));
}

/* Each of some special numbers beside each other, then numbers some of which are equal. */
static void fill(dc_dtype t, void *a, void *b)
{
    static const double some[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, -NAN, 1e-40, -1e-40};
    enum { SOME = DC_COUNTOF(some) };
    rng r = {3};
    for (int i = 0; i < N; i++) {
        const bool special = i < SOME * SOME || rng_below(&r, 8) == 0;
        const int x = special ? i / SOME % SOME : 0, y = special ? i % SOME : 0;
        put(t, a, i, special ? some[x] : (double)rng_below(&r, 9) - 4);
        put(t, b, i, special ? some[y] : (double)rng_below(&r, 9) - 4);
    }
}

static void compare(const form *m, const void *a, const void *b, const void *out)
{
    const size_t size = dc_dtype_size(m->type);
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        const size_t at = (size_t)i * size;
        const double x = dc_value_of(m->type, dc_bits_load(m->type, (const char *)a + at));
        const double y = dc_value_of(m->type, dc_bits_load(m->type, (const char *)b + at));
        const double got = dc_value_of(m->type, dc_bits_load(m->type, (const char *)out + at));
        const double want = dc_op_evalf(m->op, x, y, 0);
        wrong += !(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want));
    }
    CHECK_EQ(wrong, 0);
}

static void add_forms(runner *r, form *m, bool ranges)
{
    for (int n = 0; n < FORMS; n++) {
        m[n] = (form){.op = n & 1 ? DC_OP_MIN : DC_OP_MAX,
                      .type = n & 2 ? DC_F64 : DC_F32,
                      .lanes = 1 << n / 4};
        dc_kernel *k = kernel_of(r, &m[n]), *again = kernel_of(r, &m[n]);
        m[n].number = runner_add(r, k, 0);
        r->portable = true;
        m[n].without = runner_add(r, again, 0);
        r->portable = false;
        CHECK_EQ(picks(r->flat.at[m[n].number]), ranges);
        CHECK(!picks(r->flat.at[m[n].without]));
        dc_kernel_free(k);
        dc_kernel_free(again);
    }
}

static void test_forms(runner *r)
{
    static double a[N], b[N], out[N];
    form m[FORMS];
    add_forms(r, m, r->device->ops->target(r->device)->ranges);
    if (!runner_build(r))
        return;
    for (int n = 0; n < FORMS; n++) {
        const int64_t positions = N / m[n].lanes;
        fill(m[n].type, a, b);
        runner_run_range(r, m[n].number, positions, (void *[]){out, a, b});
        compare(&m[n], a, b, out);
        runner_run_range(r, m[n].without, positions, (void *[]){out, a, b});
        compare(&m[n], a, b, out);
        CHECK(dc_flat_run(&r->job, r->flat.at[m[n].number], (void *[]){out, a, b}, 0, positions) ==
              DC_OK);
        compare(&m[n], a, b, out);
    }
}

int main(void)
{
    runner r;
    if (runner_open(&r)) {
        test_forms(&r);
        runner_close(&r);
    }
    return t_done();
}
