/* formats/csv.c: tables that are found and given, every way of being wrong, truncations and mutations. */
#define _POSIX_C_SOURCE 200809L
#include "formats/csv.h"

#include <inttypes.h>

#include "tests/unit/filekit.h"

enum { MOST = 8 };

typedef struct reading {
    filekit *k;
    dc_csv_options o;
    dc_csv_column want[MOST], column[MOST];
    bool matrix;
    char shown[2000]; /* what was read, as text */
} reading;

static filekit kit;
static reading r = {.k = &kit};

static void close_csv(void *c)
{
    dc_csv_close(c);
}

static void show(reading *a, const dc_csv *c, const dc_csv_column *col, int64_t rows)
{
    char *out = a->shown + strlen(a->shown), *end = a->shown + sizeof a->shown;
    for (int64_t i = 0; i < rows && end - out > 200; i++) {
        const double *f = col->data;
        const int64_t *w = col->data;
        if (col->kind == DC_CSV_TEXTS) {
            char copy[100];
            const dc_csv_text *t = (const dc_csv_text *)col->data + i;
            const size_t n = t->n < sizeof copy ? dc_csv_copy(c, t, copy) : 0;
            out += snprintf(out, 100, "<%.*s>", (int)n, copy);
        } else if (col->dtype == DC_F64)
            out += snprintf(out, 100, "%g ", f[i]);
        else if (col->dtype == DC_I64)
            out += snprintf(out, 100, "%" PRId64 " ", w[i]);
        else if (col->dtype == DC_U64)
            out += snprintf(out, 100, "u%" PRIu64 " ", (uint64_t)w[i]);
        else if (col->dtype == DC_BOOL)
            out += snprintf(out, 100, "%s ", ((char *)col->data)[i] ? "T" : "F");
        else
            out += snprintf(out, 100, "%d ", ((unsigned char *)col->data)[i]);
    }
    if (col->rounded > 0)
        out += snprintf(out, 100, "(%" PRId64 " rounded) ", col->rounded);
    snprintf(out, 3, "| ");
}

static dc_status read_body(dc_job *j, void *arg)
{
    reading *a = arg;
    dc_csv *c;
    dc_csv_column *const column = a->column;
    int64_t rows;
    size_t n;
    a->shown[0] = '\0';
    DC_TRY(dc_csv_open(j, a->k->path, &a->o, &c));
    dc_job_defer(j, close_csv, c);
    dc_csv_first(c, &n);
    if (n > MOST)
        return dc_failf(j, DC_ERR_FILE_TEXT, NULL, "too many columns");
    memcpy(column, a->want, sizeof a->want);
    DC_TRY(dc_csv_parse(c, j, column, a->matrix, &rows));
    for (size_t i = 0; i < n; i++) {
        if (column[i].kind != DC_CSV_SKIP && !a->matrix)
            show(a, c, &column[i], rows);
        dc_xfree(column[i].data);
        column[i].data = NULL;
    }
    return DC_OK;
}

static void find_all(void)
{
    static const dc_csv_text missing[] = {{"NA", 2, false}};
    r.o = (dc_csv_options){.separator = ',',
                           .quote = '"',
                           .header = true,
                           .rows = -1,
                           .missing = missing,
                           .nmissing = 1};
    for (int i = 0; i < MOST; i++)
        r.want[i] = (dc_csv_column){.kind = DC_CSV_FIND};
}

static void reads(const char *text, const char *shown)
{
    filekit_write(&kit, text, strlen(text));
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_STR(kit.message, "");
    CHECK_STR(r.shown, shown);
}

static void test_found(void)
{
    find_all();
    reads("a,b,c\n1,2.5,x\n2,,\"y,\"\"z\"\"\"\n3,1e3,w\n",
          "1 2 3 | 2.5 nan 1000 | <x><y,\"z\"><w>| ");
    reads("a,b\r\n1,true\r\n\r\n2,False", "1 2 | T F | ");
    reads("a\n1\n2\nNA\n4\n", "1 2 nan 4 | ");
    reads("a\nNA\n2\n", "nan 2 | ");
    reads("a\n1\n2\n2.5\n", "1 2 2.5 | ");
    reads("a,b\n1,2\n3,zz\n5,6\n", "1 3 5 | <2><zz><6>| "); /* texts, found late */
    reads("a\ntrue\n1\n", "<true><1>| ");
    reads("a,b\n \"x\" , 1 \n",
          "< \"x\" >| 1 | "); /* blanks round numbers; a quote inside a text */
    reads("a\n\"1\"\n\"2\"\n", "1 2 | ");
    reads("a\n\"1\n2\"\nx\n", "<1\n2><x>| ");
    reads("\xef\xbb\xbf"
          "a\n7\n",
          "7 | ");
    reads("a,b\n", "| | ");
    reads("", "");
    reads("a\r1\r2\r", "1 2 | ");
    reads("a\n12345678901234567890\n", "u12345678901234567890 | ");
    reads("a,b\n,\n,\n", "nan nan | nan nan | ");
}

/* Whole numbers stay exact where one dtype has all of them; where none has, they are counted. */
static void test_large(void)
{
    find_all();
    reads("a\n-9223372036854775808\n9223372036854775807\n",
          "-9223372036854775808 9223372036854775807 | ");
    reads("a\n1\n18446744073709551615\n0\n", "u1 u18446744073709551615 u0 | ");
    reads("a\n18446744073709551616\n1\n", "1.84467e+19 1 (1 rounded) | ");
    reads("a\n-1\n18446744073709551615\n", "-1 1.84467e+19 (1 rounded) | ");
    reads("a\n18446744073709551615\n-1\n", "1.84467e+19 -1 (1 rounded) | ");
    reads("a\n9223372036854775808\n-1\n", "9.22337e+18 -1 | ");
    reads("a\n9007199254740993\n9007199254740992\n0.5\n-9007199254740993\n1e300\n",
          "9.0072e+15 9.0072e+15 0.5 -9.0072e+15 1e+300 (2 rounded) | ");
    reads("a\nNA\n9007199254740993\n", "nan 9.0072e+15 (1 rounded) | ");
    reads("a\n9007199254740993\n0.5\nx\n", "<9007199254740993><0.5><x>| ");
    reads("a,b\n9007199254740993,1\n0.5,x\n", "9.0072e+15 0.5 (1 rounded) | <1><x>| ");
    r.want[0] = (dc_csv_column){.kind = DC_CSV_GIVEN, .dtype = DC_U64};
    reads("a\n18446744073709551615\n3.0\n", "u18446744073709551615 u3 | ");
    r.want[0].dtype = DC_F64;
    reads("a\n9007199254740993\n", "9.0072e+15 | ");
}

static void test_options(void)
{
    find_all();
    r.o.separator = ';';
    r.o.comment = '#';
    r.o.skip = 1;
    reads("to skip;;;\n# comment\na;b # c\n1;2 # d\n# e\n3;4", "1 3 | 2 4 | ");
    find_all();
    r.o.header = false;
    r.o.rows = 2;
    reads("1,2\n3,4\n5,x\n", "1 3 | 2 4 | ");
    find_all();
    r.want[0].kind = DC_CSV_SKIP;
    r.want[1].kind = DC_CSV_TEXTS;
    r.want[2] = (dc_csv_column){.kind = DC_CSV_GIVEN, .dtype = DC_U8, .fills = true, .fill = 9};
    reads("a,b,c\nx,1,255\ny,2,\nz,3,3.0\n", "<1><2><3>| 255 9 3 | ");
    static const dc_csv_text number[] = {{"-1", 2, false}};
    find_all();
    r.o.missing = number;
    reads("a\n1\n-1\n", "1 nan | ");
}

static void refused(const char *text, const char *reason)
{
    filekit_refused(&kit, text, strlen(text), reason);
}

static void test_wrong(void)
{
    find_all();
    refused("a,b\n1,2\n3\n", "line 3 has 1 field, the first has 2");
    refused("a,b\n\n1,2\n3,4,5\n", "line 4 has more than the 2 fields of the first");
    refused("a,b\n1,\"2\n3", "line 2, column 2 ('b'): the quote is not closed");
    refused("a\n\"1\"2\n", "line 2, column 1 ('a'): '2' follows the closing quote");
    r.want[1] = (dc_csv_column){.kind = DC_CSV_GIVEN, .dtype = DC_U8};
    refused("a,b\n\"1\n\",2\n3,256\n", "line 4, column 2 ('b'): '256' is no u8");
    refused("a,b\n1,-1\n", "line 2, column 2 ('b'): '-1' is no u8");
    refused("a,b\n1,1.5\n", "line 2, column 2 ('b'): '1.5' is no u8");
    refused("a,b\n1,\n", "line 2, column 2 ('b'): there is no value, and u8 has none for that");
    r.want[1].dtype = DC_F32;
    refused("a,b\n1,12z\n", "line 2, column 2 ('b'): '12z' is no f32");
    r.want[1].dtype = DC_BOOL;
    refused("a,b\n1,2\n", "line 2, column 2 ('b'): '2' is no bool");
    r.o.header = false;
    refused("1,1\n1,yes\n", "line 2, column 2: 'yes' is no bool");
}

static void test_damage(void)
{
    static const char text[] =
        "a,b,\"c\"\"\"\n1,2.5,x\r\n2,,\"y,\"\"z\"\"\"\n# 3\n-4,1e3,w\n5,6,NA\n";
    find_all();
    r.o.comment = '#';
    filekit_damage(&kit, (const unsigned char *)text, strlen(text), false, 3000, 11u);
    for (int i = 0; i < MOST; i++)
        r.want[i] = (dc_csv_column){.kind = DC_CSV_GIVEN, .dtype = DC_F16};
    r.matrix = true;
    filekit_damage(&kit, (const unsigned char *)text, strlen(text), false, 1000, 12u);
    r.matrix = false;
}

int main(void)
{
    filekit_init(&kit, read_body, &r);
    test_found();
    test_large();
    test_options();
    test_wrong();
    test_damage();
    filekit_fini(&kit);
    return t_done();
}
