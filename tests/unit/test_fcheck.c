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
static void expect_refusal_of(const char *text, void (*spoil)(dc_flat *f), const char *reason)
{
    dc_flat *f = flat_of(text);
    if (f == NULL)
        return;
    spoil(f);
    CHECK(dc_flat_check(&flat_job, f) == DC_E_BUG);
    flat_says(reason);
    dc_flat_free(f);
}

static void expect_refusal(void (*spoil)(dc_flat *f), const char *reason)
{
    expect_refusal_of(map_text, spoil, reason);
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

/* A product of matrices that 32 lanes hold: all ones, and 1 in c. */
static const char mma_text[] = "kernel mma (out0: f32[128] out, a: f16[256] group, b: f16[128] "
                               "group) simt 32 lanes 32 index 32 positions 1 {\n"
                               "  %1 = mul index thread, 8\n"
                               "  %2 = mul index thread, 4\n"
                               "  store f16x8 a[%1], f16x8 1, align 16\n"
                               "  store f16x4 b[%2], f16x4 1, align 8\n"
                               "  barrier group\n"
                               "  %3 = rem index thread, 16\n"
                               "  %4 = mul index %3, 16\n"
                               "  %5 = div index thread, 16\n"
                               "  %6 = mul index %5, 8\n"
                               "  %7 = add index %4, %6\n"
                               "  %8 = ldmatrix f16x8 a[%7], align 16\n"
                               "  %9 = mul index %3, 8\n"
                               "  %10 = ldmatrix f16x4 b[%9] transposed, align 16\n"
                               "  %11 = mma f32x4 %8, %10, 1\n"
                               "  store f32x4 out0[%2], %11, align 16\n"
                               "}\n";

static void expect_matrix_refusal(void (*spoil)(dc_flat *f), const char *reason)
{
    expect_refusal_of(mma_text, spoil, reason);
}

static void few_lanes(dc_flat *f)
{
    f->lanes = 16;
}

static void narrow_row(dc_flat *f)
{
    first_of(f, DC_K_LDMATRIX)->align = 8;
}

static void three_matrices(dc_flat *f)
{
    first_of(f, DC_K_LDMATRIX)->lanes = 6;
}

static void private_matrix(dc_flat *f)
{
    f->buf.at[1].scope = DC_SCOPE_LOCAL;
}

static void wide_sum(dc_flat *f)
{
    first_of(f, DC_K_MMA)->lanes = 8;
}

static void swapped_matrices(dc_flat *f)
{
    dc_finst *i = first_of(f, DC_K_MMA);
    const dc_fv a = i->in[0];
    i->in[0] = i->in[1];
    i->in[1] = a;
}

static void rounded_halves(dc_flat *f)
{
    first_of(f, DC_K_LDMATRIX)->imm = 2;
}

/* The same of TF32, sums of 9, and of bytes, of 32: 0x3f801000 and 1 in b are ties that are rounded up to 1 + 2^-10. */
static const char tf32_text[] = "kernel mma (out0: f32[128] out, a: f32[128] group, b: f32[64] "
                                "group) simt 32 lanes 32 index 32 positions 1 {\n"
                                "  %1 = mul index thread, 4\n"
                                "  %2 = mul index thread, 2\n"
                                "  store f32x4 a[%1], f32x4 0x3f801000, align 16\n"
                                "  store f32x2 b[%2], f32x2 1, align 8\n"
                                "  barrier group\n"
                                "  %3 = rem index thread, 8\n"
                                "  %4 = mul index thread, 4\n"
                                "  %5 = mul index %3, 4\n"
                                "  %6 = rem index thread, 16\n"
                                "  %7 = mul index %6, 4\n"
                                "  %8 = ldmatrix f32x4 a[%4] rounded, align 16\n"
                                "  %9 = ldmatrix f32x2 b[%7] rounded, align 16\n"
                                "  %10 = mma f32x4 %8, %9, 1\n"
                                "  store f32x4 out0[%1], %10, align 16\n"
                                "}\n";
static const char s8_text[] = "kernel mma (out0: i32[128] out, a: i8[512] group, b: i8[256] "
                              "group) simt 32 lanes 32 index 32 positions 1 {\n"
                              "  %1 = mul index thread, 16\n"
                              "  %2 = mul index thread, 8\n"
                              "  %3 = mul index thread, 4\n"
                              "  store i8x16 a[%1], i8x16 -3, align 16\n"
                              "  store i8x8 b[%2], i8x8 5, align 8\n"
                              "  barrier group\n"
                              "  %4 = rem index thread, 16\n"
                              "  %5 = mul index %4, 16\n"
                              "  %6 = ldmatrix i8x16 a[%1], align 16\n"
                              "  %7 = ldmatrix i8x8 b[%5], align 16\n"
                              "  %8 = mma i32x4 %6, %7, 1\n"
                              "  store i32x4 out0[%3], %8, align 16\n"
                              "}\n";

static void unrounded_factor(dc_flat *f)
{
    first_of(f, DC_K_LDMATRIX)->imm = 0;
}

static void float_sum(dc_flat *f)
{
    first_of(f, DC_K_MMA)->type = DC_F32;
}

static void test_other_matrices(void)
{
    float out[128];
    int32_t whole[128];
    void *mem[1] = {out};
    dc_flat *f = flat_of(tf32_text);
    if (f != NULL && CHECK(dc_flat_run(&flat_job, f, mem, 0, 1) == DC_OK))
        for (int i = 0; i < 128; i++)
            CHECK_EQ(dc_f32_bits(out[i]), dc_f32_bits(9 + 0x1p-7f));
    dc_flat_free(f);
    mem[0] = whole;
    f = flat_of(s8_text);
    if (f != NULL && CHECK(dc_flat_run(&flat_job, f, mem, 0, 1) == DC_OK))
        for (int i = 0; i < 128; i++)
            CHECK_EQ(whole[i], 1 - 32 * 15);
    dc_flat_free(f);
    expect_refusal_of(tf32_text, unrounded_factor, "factors of f32 are rounded");
    expect_refusal_of(s8_text, rounded_halves, "not transposed or rounded");
    expect_refusal_of(s8_text, float_sum, "the sum is no matrix");
}

/* Products of 128 threads: ones by twos, 16 of them, and 1 before. */
static const char wgmma_text[] = "kernel groups (out0: f32[4096] out, acc: f32[32] local, a: "
                                 "f16[4096] group atoms, b: f16[4096] "
                                 "group atoms) simt 128 lanes 32 index 32 positions 1 {\n"
                                 "  %1 = mul index thread, 32\n"
                                 "  store f16x32 a[%1], 1, align 64\n"
                                 "  store f16x32 b[%1], 2, align 64\n"
                                 "  store f32x32 acc[0], 1, align 64\n"
                                 "  barrier async\n"
                                 "  %2 = matrix f16 a[0]\n"
                                 "  %3 = matrix f16 b[0] turned 8192\n"
                                 "  wgmma f32x32 acc[0], %2, %3 begin end\n"
                                 "  wgmma_wait f32x32 acc[0], 0\n"
                                 "  %4 = load f32x32 acc[0], align 64\n"
                                 "  store f32x32 out0[%1], %4, align 64\n"
                                 "}\n";

static void few_threads(dc_flat *f)
{
    f->threads = 64;
}

static void loose_rows(dc_flat *f)
{
    f->buf.at[2].atoms = false;
}

static void shared_sums(dc_flat *f)
{
    f->buf.at[1].scope = DC_SCOPE_GROUP;
}

static void number_for_matrix(dc_flat *f)
{
    first_of(f, DC_K_WGMMA)->in[2] = first_of(f, DC_K_STORE)->in[0];
}

static void odd_columns(dc_flat *f)
{
    first_of(f, DC_K_WGMMA)->lanes = 24;
}

static void split_atoms(dc_flat *f)
{
    first_of(f, DC_K_MATRIX)->imm = 512;
}

static void test_warpgroups(void)
{
    static float out[4096];
    void *mem[1] = {out};
    dc_text printed = {0};
    dc_flat *f = flat_of(wgmma_text);
    if (f != NULL && CHECK(dc_flat_run(&flat_job, f, mem, 0, 1) == DC_OK))
        for (int i = 0; i < 4096; i++)
            CHECK_EQ(out[i], 33);
    if (f != NULL) {
        dc_flat_print(f, &printed);
        CHECK_STR(printed.s, wgmma_text);
    }
    dc_text_free(&printed);
    dc_flat_free(f);
    expect_refusal_of(wgmma_text, few_threads, "there are no 128 threads");
    expect_refusal_of(wgmma_text, loose_rows, "a matrix that is not in atoms");
    expect_refusal_of(wgmma_text, shared_sums, "the sums are none of a thread");
    expect_refusal_of(wgmma_text, number_for_matrix, "are operands of wgmma");
    expect_refusal_of(wgmma_text, odd_columns, "the sums are none of a thread");
    expect_refusal_of(wgmma_text, split_atoms, "parts of rows that are no atoms");
}

static void test_matrices(void)
{
    float out[128];
    void *mem[1] = {out};
    dc_flat *f = flat_of(mma_text);
    if (f != NULL && CHECK(dc_flat_run(&flat_job, f, mem, 0, 1) == DC_OK))
        for (int i = 0; i < 128; i++)
            CHECK_EQ(out[i], 17);
    dc_flat_free(f);
    expect_matrix_refusal(few_lanes, "no 32 lanes");
    expect_matrix_refusal(narrow_row, "a row of a matrix has 16 bytes");
    expect_matrix_refusal(three_matrices, "one, two or four matrices");
    expect_matrix_refusal(private_matrix, "no 32 lanes share");
    expect_matrix_refusal(wide_sum, "the sum is no matrix");
    expect_matrix_refusal(rounded_halves, "not transposed or rounded");
    expect_matrix_refusal(swapped_matrices, "the operands are no matrices");
}

int main(void)
{
    flat_open();
    test_matrices();
    test_other_matrices();
    test_warpgroups();
    expect_refusal(store_to_input, "an input is stored to");
    expect_refusal(other_lanes, "operand");
    expect_refusal(other_type, "another type");
    expect_refusal(late_operand, "not computed before");
    expect_refusal(open_end, "stays open");
    expect_refusal(out_of_scope, "scope that is closed");
    flat_close();
    return t_done();
}
