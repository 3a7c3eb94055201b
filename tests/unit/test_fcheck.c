/*
 * The verifier of the flat form: kernels that one changed instruction makes illegal.
 */
#include "tests/unit/flat_run.h"

static const char map_text[] = "kernel map (out0: f32[100] out, x0: f32[100]) positions 7 {\n"
                               "  %1 = lanes u32x16 1\n"
                               "  %2 = loop begin, end\n"
                               "    %3 = mul index %2, 16\n"
                               "    %4 = convert u32 %2\n"
                               "    %5 = mul u32 %4, 16\n"
                               "    %6 = splat u32x16 %5\n"
                               "    %7 = add u32x16 %6, %1\n"
                               "    %8 = lt boolx16 %7, 100\n"
                               "    %9 = load f32x16 x0[%3], mask %8, align 64\n"
                               "    %10 = mul f32x16 %9, %9\n"
                               "    store f32x16 out0[%3], %10, mask %8, align 64\n"
                               "  end\n"
                               "}\n";

/* One instruction of a legal kernel is changed. */
static void expect_refusal(void (*spoil)(dc_flat *f), const char *reason)
{
    dc_flat *f = flat_of(map_text);
    if (f == NULL)
        return;
    spoil(f);
    CHECK(dc_flat_check(&flat_job, f) == DC_E_BUG);
    flat_says(reason);
    dc_flat_free(f);
}

static dc_finst *first_of(dc_flat *f, dc_kop op)
{
    for (uint32_t n = 0; n < f->order.n; n++)
        if (f->inst.at[f->order.at[n]].op == op)
            return &f->inst.at[f->order.at[n]];
    DC_BUG("no %s", dc_kop_row_of(op)->name);
}

static void store_to_input(dc_flat *f)
{
    first_of(f, DC_K_STORE)->buf = 1;
}

static void other_lanes(dc_flat *f)
{
    first_of(f, DC_K_MUL)->lanes = 4;
}

static void other_type(dc_flat *f)
{
    first_of(f, DC_K_STORE)->in[1] = (dc_fv)(first_of(f, DC_K_LT) - f->inst.at);
}

static void late_operand(dc_flat *f)
{
    const dc_fv first = f->order.at[0];
    f->order.at[0] = f->order.at[f->order.n - 2];
    f->order.at[f->order.n - 2] = first;
}

static void open_end(dc_flat *f)
{
    f->order.n--;
}

static void out_of_scope(dc_flat *f)
{
    const dc_fv store = f->order.at[f->order.n - 2];
    f->order.at[f->order.n - 2] = f->order.at[f->order.n - 1];
    f->order.at[f->order.n - 1] = store;
}

int main(void)
{
    flat_open();
    expect_refusal(store_to_input, "an input is stored to");
    expect_refusal(other_lanes, "operand");
    expect_refusal(other_type, "another type");
    expect_refusal(late_operand, "not computed before");
    expect_refusal(open_end, "stays open");
    expect_refusal(out_of_scope, "scope that is closed");
    flat_close();
    return t_done();
}
