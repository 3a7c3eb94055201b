/*
 * Tables of the flat form: a body that stands for several kernels has the buffers and numbers of a row. Its text comes back,
 * the interpreter runs it in every row, with the sizes of that row, and what is wrong is refused.
 */
#include "tests/unit/flat_run.h"

/* out[i] = x[i] + 10 * (row + 1): of 5, 2 and 3 elements */
static const char rows_text[] =
    "kernel rows (out: f32[5] out table 0 step 1 column 0 param 0, x: f32[5] table 0 step 1 column "
    "0 param 3) simt 5 positions 3 table 2 (5 1092616192, 2 1101004800, 3 1106247680) {\n"
    "  rows 0, group\n"
    "    %1 = cell index 0 0, group\n"
    "    %2 = cell f32 0 1, group\n"
    "    %3 = lt bool thread, %1\n"
    "    if %3\n"
    "      %4 = load f32 x[thread]\n"
    "      %5 = add f32 %4, %2\n"
    "      store f32 out[thread], %5\n"
    "    end\n"
    "  end\n"
    "}\n";

static void test_rows(void)
{
    static const int count[3] = {5, 2, 3};
    float x[3][6], out[3][6];
    void *mem[6];
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 6; i++) {
            x[r][i] = (float)(100 * r + i);
            out[r][i] = -1;
        }
        mem[r] = out[r];
        mem[3 + r] = x[r];
    }
    dc_flat *f = flat_of(rows_text);
    CHECK_EQ(f->nparam, 6);
    if (!CHECK(flat_runs(f, mem, 3)))
        printf("    %s\n", flat_said());
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 6; i++)
            CHECK_EQ(out[r][i], i < count[r] ? x[r][i] + (float)(10 * (r + 1)) : -1);
    f->table.at[0].cell[2] = 3; /* of row 1, whose size it is too: one more is there now */
    CHECK(flat_runs(f, mem, 3));
    CHECK_EQ(out[1][2], x[1][2] + 20);
    CHECK(!flat_runs(f, mem, 4));
    flat_says("table 0 has no row 3");
    dc_flat_free(f);
}

/* A size is that of the row. */
static void test_bounds(void)
{
    float x[4] = {0}, out[4];
    void *mem[2] = {out, x};
    dc_flat *f =
        flat_of("kernel k (out: f32[4] out table 0 step 1 column 0 param 0, x: f32[4] table 0 "
                "step 1 param 1) simt 4 positions 1 table 1 (3) {\n"
                "  rows 0, 0\n"
                "    %1 = load f32 x[thread]\n"
                "    store f32 out[thread], %1\n"
                "  end\n"
                "}\n");
    CHECK(!flat_runs(f, mem, 1));
    flat_says("out[3] is outside the buffer of 3 elements");
    dc_flat_free(f);
}

static void test_text(void)
{
    dc_text out = {0};
    dc_flat *f = flat_of(rows_text);
    dc_flat_print(f, &out);
    CHECK_STR(out.s, rows_text);
    dc_text_free(&out);
    dc_flat_free(f);
}

/* The text with one word of it replaced. */
static void refuses(const char *word, const char *by, const char *reason)
{
    char text[2 * sizeof rows_text];
    dc_flat *f = NULL;
    const char *at = strstr(rows_text, word), *read = text;
    if (!CHECK(at != NULL))
        return;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - rows_text), rows_text, by,
             at + strlen(word));
    dc_status s = dc_flat_parse(&flat_job, &read, &f);
    if (s == DC_OK)
        s = dc_flat_check(&flat_job, f);
    CHECK(s != DC_OK);
    flat_says(reason);
    dc_flat_free(f);
}

static void test_refused(void)
{
    refuses("table 0 step", "table 1 step", "no table 1");
    refuses("column 0 param 3", "column 2 param 3", "a size in no column");
    refuses("param 3", "param 2", "two buffers are the same parameter");
    refuses("param 3", "param 4", "a parameter has no number");
    refuses("step 1 column 0 param 3", "step 0 column 0 param 3", "two buffers are the same");
    refuses("f32[5] table", "f32[4] table", "a buffer has no size");
    refuses("table 2 (5 1092616192,", "table 2 (5,", "a pattern");
    refuses("cell index 0 0", "cell index 0 2", "no such cell");
    refuses("cell index 0 0", "cell index 1 0", "no such cell");
    refuses("cell f32 0 1", "cell f32x4 0 1", "no cell of that type");
    refuses("1092616192", "10926161920", "no number of the type");
    refuses("rows 0, group", "rows 1, group", "no such table");
    refuses("rows 0, group", "rows 0, thread", "not all threads of the group are in the same row");
    refuses("  rows 0, group\n", "  rows 0, group\n  rows 0, group\n  end\n", "chosen already");
    refuses("    %1 = cell index", "  end\n    %1 = cell index", "no row of its table is chosen");
    refuses("simt 5 ", "", "workers have no");
}

int main(void)
{
    flat_open();
    test_rows();
    test_bounds();
    test_text();
    test_refused();
    flat_close();
    return t_done();
}
