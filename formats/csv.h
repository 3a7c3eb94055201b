/*
 * Tables as text: values between separators, a record a line (RFC 4180). A field in quotes may hold separators, ends of
 * lines and, doubled, quotes. Lines end with \n, \r\n or \r; empty ones are left out. A gzipped file is unpacked.
 *
 * A file is opened, which reads its first record, then parsed for the columns that are wanted, with types that are given
 * or found: whole numbers are i64, or u64 where one is beyond it and none negative; others f64, true and false bool, and a
 * column with anything else is texts.
 */
#ifndef DC_FORMATS_CSV_H
#define DC_FORMATS_CSV_H

#include "formats/infile.h"

typedef struct dc_csv_text {
    const char *at; /* between the quotes */
    size_t n;
    bool doubled; /* it has quotes, each of which is written twice */
} dc_csv_text;

typedef struct dc_csv_options {
    char separator, quote, comment; /* 0: none; a comment goes to the end of its line */
    bool header;                    /* the first record are names */
    int64_t skip;                   /* lines in front of it */
    int64_t rows;                   /* most that are read; negative: all */
    const dc_csv_text *missing;     /* words that stand for no value, besides nothing at all */
    size_t nmissing;
} dc_csv_options;

typedef struct dc_csv dc_csv;

/* Options are copied, the words for missing values are not. */
dc_status dc_csv_open(dc_job *j, const char *path, const dc_csv_options *options, dc_csv **out);
void dc_csv_close(dc_csv *c); /* NULL is fine */

/* The fields of the first record; with a header they are names. They live as long as c. */
const dc_csv_text *dc_csv_first(const dc_csv *c, size_t *n);
/* The bytes of a text into a buffer of t->n bytes; how many they are. */
size_t dc_csv_copy(const dc_csv *c, const dc_csv_text *t, char *to);

typedef enum dc_csv_kind { DC_CSV_SKIP, DC_CSV_FIND, DC_CSV_GIVEN, DC_CSV_TEXTS } dc_csv_kind;

typedef struct dc_csv_column {
    dc_csv_kind kind; /* afterwards SKIP, GIVEN or TEXTS */
    dc_dtype dtype;   /* of GIVEN */
    bool fills; /* missing values are `fill`; else NaN, and an error where the dtype has none */
    double fill;
    /* afterwards: whole numbers that a column which was found to be f64 does not hold exactly */
    int64_t rounded;
    void *
        data; /* afterwards: elements, or of TEXTS dc_csv_text; dc_xfree. In a matrix of the first column alone */
} dc_csv_column;

/*
 * All records, for as many columns as the first record has fields. `matrix`: all that are not skipped are GIVEN with one
 * dtype, and stand side by side in rows. Failures name the line and the column; nothing is left of them. `column` outlives
 * the running entry.
 */
dc_status dc_csv_parse(dc_csv *c, dc_job *j, dc_csv_column *column, bool matrix, int64_t *rows);

/* A column of a table that is written: elements on the host, or texts. */
typedef struct dc_csv_source {
    dc_csv_text name;
    const dc_csv_text *text; /* NULL: elements */
    dc_dtype dtype;
    const void *data;
    size_t stride; /* bytes from one element to the next */
} dc_csv_source;

/* Whole or not at all (core/base/outfile.h). Numbers are written with the fewest digits that read back. */
dc_status dc_csv_write(dc_job *j, const char *path, const dc_csv_source *column, size_t n,
                       int64_t rows, char separator, bool header);

#endif
