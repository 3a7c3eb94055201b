/*
 * A table of text. Its first byte chooses options; what was found is read once more with the types that were found, which
 * must give the same number of rows, and as a matrix.
 */
#include "formats/csv.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

typedef struct reading {
    const fuzz_input *in;
    dc_csv_column column[32];
    int64_t rows[2];
} reading;

static void close_csv(void *c)
{
    dc_csv_close(c);
}

static dc_status parse(dc_csv *c, dc_job *j, reading *a, size_t n, int round)
{
    DC_TRY(dc_csv_parse(c, j, a->column, false, &a->rows[round]));
    for (size_t i = 0; i < n; i++) {
        const dc_csv_text *t = a->column[i].data;
        for (int64_t k = 0; a->column[i].kind == DC_CSV_TEXTS && k < a->rows[round]; k++)
            dc_csv_copy(c, &t[k], dc_arena_alloc(&j->scratch, t[k].n + 1));
        dc_xfree(a->column[i].data);
        a->column[i].data = NULL;
    }
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    static const dc_csv_text missing[] = {{"NA", 2, false}, {"-1", 2, false}};
    reading *a = arg;
    const unsigned how = a->in->n > 0 ? a->in->at[0] : 0;
    const dc_csv_options o = {.separator = how & 1 ? ';' : ',',
                              .quote = how & 2 ? '\0' : '"',
                              .comment = how & 4 ? '#' : '\0',
                              .header = (how & 8) != 0,
                              .skip = how >> 6,
                              .rows = how & 16 ? 3 : -1,
                              .missing = missing,
                              .nmissing = how & 32 ? 2 : 1};
    dc_csv *c;
    size_t n;
    DC_TRY(
        dc_csv_open(j, fuzz_file(a->in->at + (a->in->n > 0), a->in->n - (a->in->n > 0)), &o, &c));
    dc_job_defer(j, close_csv, c);
    dc_csv_first(c, &n);
    if (n > DC_COUNTOF(a->column))
        return DC_OK;
    for (size_t i = 0; i < n; i++)
        a->column[i] = (dc_csv_column){.kind = DC_CSV_FIND};
    DC_TRY(parse(c, j, a, n, 0));
    DC_TRY(parse(c, j, a, n, 1));
    if (a->rows[0] != a->rows[1])
        fuzz_finding("%ld rows, then %ld", (long)a->rows[0], (long)a->rows[1]);
    for (size_t i = 0; i < n; i++)
        a->column[i] = (dc_csv_column){.kind = DC_CSV_GIVEN, .dtype = DC_F32};
    DC_TRY(dc_csv_parse(c, j, a->column, true, &a->rows[0]));
    dc_xfree(a->column[0].data);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    static reading a; /* outlives the entry */
    a = (reading){.in = in};
    fuzz_protect(body, &a);
}
