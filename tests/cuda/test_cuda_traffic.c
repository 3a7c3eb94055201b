/*
 * Traffic of kernels whose cost is known: sectors of 32 bytes for each request to global memory, passes
 * of the banks for each request to shared memory.
 */
#include "tests/cuda/measure.h"

/* The rows of one kind at the line where `words` stand, or at any line for NULL; loops may have been unrolled. */
static cuda_traffic row_of(const measured *m, const char *text, const char *words, bool shared,
                           bool store)
{
    const char *at = words != NULL ? strstr(text, words) : NULL;
    int line = 1, found = 0;
    cuda_traffic out = {0};
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    CHECK((words != NULL) == (at != NULL));
    for (size_t i = 0; i < m->n; i++)
        if (m->row[i].shared == shared && m->row[i].store == store &&
            (at == NULL || m->row[i].line == line)) {
            const cuda_traffic *t = &m->row[i];
            CHECK(found == 0 || t->bytes == out.bytes);
            out = (cuda_traffic){t->line,
                                 store,
                                 shared,
                                 t->bytes,
                                 out.requests + t->requests,
                                 out.units + t->units,
                                 out.least + t->least,
                                 out.moved + t->moved};
            found++;
        }
    CHECK(found > 0);
    return out;
}

static double each(cuda_traffic t)
{
    return (double)t.units / (double)t.requests;
}

static void test_transposition(void)
{
    static const struct {
        const char *pitch;
        double passes;
    } row[] = {{"#define PITCH 33", 1},
               {"#define PITCH 32", 32},
               {"#define PITCH 36", 4},
               {"#define PITCH 34", 2}};
    const size_t bytes[] = {16384, 16384};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        measured m;
        char *text = changed_text(kernel_text("turn"), "#define PITCH 33", row[i].pitch);
        if (CHECK(measure(text, "turn", 4, 256, 0, 2, bytes, &m))) {
            const cuda_traffic in = row_of(&m, text, NULL, false, false),
                               out = row_of(&m, text, NULL, false, true);
            const cuda_traffic put = row_of(&m, text, "s[r * PITCH", true, true);
            const cuda_traffic get = row_of(&m, text, "s[col * PITCH", true, false);
            CHECK_EQ(in.requests, 128); /* 4 blocks, 32 rows each */
            CHECK_EQ(in.moved, 16384);
            CHECK_NEAR(each(in), 4, 0);
            CHECK_NEAR(each(out), 4, 0);
            CHECK_EQ(in.least, in.units);
            CHECK_NEAR(each(put), 1, 0);
            CHECK_NEAR(each(get), row[i].passes, 0);
            CHECK_EQ(get.least, get.requests);
        }
        free(text);
    }
}

/* Rows of 64 bytes of a: with the swizzle each 8 of them are in different banks. */
static void test_ldmatrix(void)
{
    const size_t bytes[] = {16384, 16384, 16384};
    for (int swizzled = 0; swizzled < 2; swizzled++) {
        measured m;
        char *text = kernel_text("gemm");
        if (!swizzled) {
            text = changed_text(text, "((c) ^ (((r) >> 1) & 3))", "(c)");
            text = changed_text(text, "((c) ^ ((r) & 7))", "(c)");
        }
        if (CHECK(measure(text, "gemm", 1, 128, 0, 3, bytes, &m))) {
            const cuda_traffic a = row_of(&m, text, "ldmatrix_x4(fa", true, false);
            const cuda_traffic b = row_of(&m, text, "ldmatrix_x2_trans(fb", true, false);
            CHECK_EQ(a.requests, 4 * 4 * 2); /* warps, steps, halves */
            CHECK_EQ(a.bytes, 16);
            CHECK_NEAR(each(a), swizzled ? 4 : 16,
                       0); /* 4 matrices, a pass for each; 8 rows in 2 columns of banks */
            CHECK_NEAR(each(b), swizzled ? 2 : 16, 0);
            const cuda_traffic out = row_of(&m, text, "make_float2(acc", false, true);
            CHECK_EQ(out.bytes, 8); /* 8 rows of 4 pairs */
            CHECK_NEAR(each(out), 8, 0);
        }
        free(text);
    }
}

/* Vectors, neighbours, strides, one word for all. */
static void test_patterns(void)
{
    static const struct {
        const char *load;
        double sectors;
        unsigned bytes;
    } row[] = {
        {"x[t]", 4, 4},
        {"x[t * 8]", 32, 4},
        {"x[t * 2]", 8, 4},
        {"x[0]", 1, 4},
        {"x[t / 4]", 1, 4},
        {"x[31 - t]", 4, 4},
        {"x[t + 1]", 5, 4},
        {"((const unsigned char *)x)[t]", 1, 1},
        {"(float)((const double *)x)[t]", 8, 8},
        {"((const float4 *)x)[t].y + ((const float4 *)x)[t].x", 16, 4},
    };
    const size_t bytes[] = {4096, 4096};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[600];
        measured m;
        snprintf(text, sizeof text,
                 "extern \"C\" __global__ void k(float *out, const float *x)\n{\n"
                 "    const unsigned t = threadIdx.x;\n    float4 x4 = ((const float4 *)x)[t];\n   "
                 " float v = %s;\n    out[t] = v;\n}\n",
                 row[i].load);
        if (!CHECK(measure(text, "k", 1, 32, 0, 2, bytes, &m)))
            continue;
        for (size_t k = 0; k < m.n; k++)
            if (!m.row[k].store) {
                CHECK_EQ(m.row[k].requests, 1);
                CHECK_EQ(m.row[k].bytes, row[i].bytes);
                if (!CHECK_NEAR(each(m.row[k]), row[i].sectors, 0))
                    printf("    %s\n", row[i].load);
            }
        CHECK_NEAR(each(row_of(&m, text, "out[t]", false, true)), 4, 0);
    }
}

/* The entry of the CUDA dialect. */
static void test_entry(void)
{
    const size_t bytes[] = {4096, 4096};
    measured m;
    char *text = kernel_text("entry");
    if (CHECK(measure(text, "entry", 8, 128, 0, 2, bytes, &m)))
        CHECK_NEAR(each(row_of(&m, text, "__fmul_rn(x[i]", false, true)), 4, 0);
    free(text);
}

int main(void)
{
    cuda_standin_set("WRONG", "report");
    if (!have_compiler())
        return t_done();
    cuda_standin_set("TRAFFIC", "1");
    test_transposition();
    test_ldmatrix();
    test_patterns();
    test_entry();
    return t_done();
}
