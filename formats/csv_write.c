/* Columns to a table of text. */
#include "core/base/bits.h"
#include "core/base/number.h"
#include "core/base/outfile.h"
#include "formats/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    dc_job *job;
    dc_outfile *f;
    dc_text *text; /* that was not written yet */
    char separator;
} writer;

static void put_text(const writer *w, const dc_csv_text *t)
{
    bool plain = true;
    for (size_t i = 0; i < t->n && plain; i++)
        plain = t->at[i] != w->separator && strchr("\"\r\n#", t->at[i]) == NULL;
    if (plain && t->n > 0 && t->at[0] != ' ' && t->at[t->n - 1] != ' ') {
        dc_text_put(w->text, t->at, t->n);
        return;
    }
    dc_text_put(w->text, "\"", 1);
    for (size_t i = 0; i < t->n; i++)
        dc_text_put(w->text, t->at[i] == '"' ? "\"\"" : &t->at[i], t->at[i] == '"' ? 2 : 1);
    dc_text_put(w->text, "\"", 1);
}

/* NaN is a field without a value. */
static void put_element(const writer *w, dc_dtype t, const void *at)
{
    char out[DC_NUMBER_TEXT];
    const uint64_t bits = dc_bits_load(t, at);
    if (!dc_dtype_is_float(t) || !isnan(dc_value_of(t, bits)))
        dc_text_puts(w->text, dc_number_print(t, bits, out));
}

static dc_status flush(const writer *w)
{
    DC_TRY(dc_outfile_write(w->f, w->text->s, w->text->n));
    w->text->n = 0;
    return DC_OK;
}

static dc_status put_row(const writer *w, const dc_csv_source *column, size_t n, int64_t row)
{
    enum { PIECE = 1 << 16 };
    const size_t begin = w->text->n;
    for (size_t i = 0; i < n; i++) {
        const dc_csv_source *c = &column[i];
        if (i > 0)
            dc_text_put(w->text, &w->separator, 1);
        if (row < 0)
            put_text(w, &c->name);
        else if (c->text != NULL)
            put_text(w, &c->text[row]);
        else
            put_element(w, c->dtype, (const char *)c->data + (size_t)row * c->stride);
    }
    if (w->text->n == begin)
        dc_text_puts(w->text, "\"\""); /* a line with nothing on it would be left out */
    dc_text_put(w->text, "\n", 1);
    return w->text->n >= PIECE ? flush(w) : DC_OK;
}

dc_status dc_csv_write(dc_job *j, const char *path, const dc_csv_source *column, size_t n,
                       int64_t rows, char separator, bool header)
{
    writer w = {.job = j, .separator = separator};
    DC_TRY(dc_outfile_open(j, path, &w.f));
    w.text = dc_job_text(j);
    for (int64_t row = header ? -1 : 0; row < rows; row++)
        DC_TRY(put_row(&w, column, n, row));
    if (w.text->n > 0)
        DC_TRY(flush(&w));
    return dc_outfile_commit(w.f);
}
