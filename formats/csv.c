/*
 * Tables of text to columns. The file lies in memory; a field that is a number is read where it stands, in one pass over
 * its bytes. What is found about a column may turn out wrong in a later record: whole numbers then become floats where
 * they are, anything else makes the column one of texts, and the file is gone through a second time.
 */
#include "formats/csv.h"

#include "core/base/bits.h"
#include "core/base/path.h"
#include "core/base/real.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct dc_csv {
    char *path;
    dc_csv_options o;
    char *bytes;
    const char *end;   /* a '\n' stands there */
    const char *begin; /* of the first record; line begin_line */
    int64_t begin_line;
    bool ends[256];         /* bytes that end a field without quotes */
    bool is_number_missing; /* one of the words for missing values is a number */
    dc_csv_text *first;
    size_t n;
};

/* Of a column while it is found: what its values were so far. */
typedef enum finding { NOTHING, WHOLE, UNSIGNED, REAL, TRUTH } finding;

typedef struct state {
    dc_csv *c;
    dc_job *job;
    dc_csv_column *column;
    finding *found; /* of columns to find */
    bool *late;     /* texts, as was found now: elements are too narrow for them */
    size_t *size;   /* of an element */
    char **base;    /* where the element of row 0 is */
    size_t *stride;
    bool matrix, again;
    int64_t row, room, line;
    const char *at;
} state;

/* ---- lines and fields ------------------------------------------------------------------------- */

/* Behind the end of a line at p. */
static const char *next_line(const dc_csv *c, const char *p)
{
    if (p >= c->end)
        return c->end;
    return p + (*p == '\r' && p + 1 < c->end && p[1] == '\n' ? 2 : 1);
}

static const char *end_of_line(const dc_csv *c, const char *p)
{
    while (p < c->end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

static bool is_comment(const dc_csv *c, const char *p)
{
    return c->o.comment != '\0' && *p == c->o.comment;
}

/* Moves to the next record; false at the end of the file. */
static bool next_record(const dc_csv *c, const char **at, int64_t *line)
{
    const char *p = *at;
    while (p < c->end && (*p == '\n' || *p == '\r' || is_comment(c, p))) {
        p = next_line(c, end_of_line(c, p));
        ++*line;
    }
    *at = p;
    return p < c->end;
}

/* "line 7, column 2 ('price')"; the column counts from 0. */
static const char *place(const state *s, size_t column, char out[160])
{
    const dc_csv *c = s->c;
    int n = snprintf(out, 160, "line %" PRId64 ", column %zu", s->line, column + 1);
    if (c->o.header && column < c->n)
        snprintf(out + n, 160 - (size_t)n, " ('%.*s')",
                 (int)dc_min_i64((int64_t)c->first[column].n, 60), c->first[column].at);
    return out;
}

#define fail(s, ...) dc_path_fail((s)->job, DC_ERR_FORMAT, (s)->c->path, __VA_ARGS__)

/* A field in quotes; *at moves behind it. */
static dc_status take_quoted(state *s, size_t column, dc_csv_text *out)
{
    const dc_csv *c = s->c;
    const int64_t line = s->line;
    char room[160];
    const char *p = s->at + 1;
    *out = (dc_csv_text){.at = p};
    for (;; p++) {
        if (p >= c->end) {
            s->line = line;
            return fail(s, "%s: the quote is not closed", place(s, column, room));
        }
        if (*p == '\n' || (*p == '\r' && p[1] != '\n'))
            s->line++;
        if (*p != c->o.quote)
            continue;
        if (p + 1 == c->end || p[1] != c->o.quote)
            break;
        out->doubled = true;
        p++;
    }
    out->n = (size_t)(p - out->at);
    s->at = p + 1;
    if (!c->ends[(unsigned char)*s->at])
        return fail(s, "%s: '%.10s' follows the closing quote", place(s, column, room),
                    (char[2]){*s->at, '\0'});
    return DC_OK;
}

static dc_status take_field(state *s, size_t column, dc_csv_text *out)
{
    const char *p = s->at;
    if (s->c->o.quote != '\0' && *p == s->c->o.quote)
        return take_quoted(s, column, out);
    while (!s->c->ends[(unsigned char)*p])
        p++;
    *out = (dc_csv_text){.at = s->at, .n = (size_t)(p - s->at)};
    s->at = p;
    return DC_OK;
}

/* Behind a field: true where another one follows. Else `at` is behind the end of the line. */
static inline bool another(state *s)
{
    const dc_csv *c = s->c;
    if (*s->at == c->o.separator && s->at < c->end) {
        s->at++;
        return true;
    }
    s->at = next_line(c, is_comment(c, s->at) ? end_of_line(c, s->at) : s->at);
    s->line++;
    return false;
}

/* ---- values ----------------------------------------------------------------------------------- */

static bool is_blank(const state *s, char ch)
{
    return (ch == ' ' || ch == '\t') && ch != s->c->o.separator;
}

static void trim(const state *s, dc_csv_text *t)
{
    while (t->n > 0 && is_blank(s, t->at[0])) {
        t->at++;
        t->n--;
    }
    while (t->n > 0 && is_blank(s, t->at[t->n - 1]))
        t->n--;
}

static bool is_missing(const dc_csv *c, const dc_csv_text *t)
{
    bool is = t->n == 0;
    for (size_t i = 0; i < c->o.nmissing && !is; i++)
        is = c->o.missing[i].n == t->n && memcmp(c->o.missing[i].at, t->at, t->n) == 0;
    return is;
}

/* true, True, TRUE: 1; false: 0; else -1 */
static int truth_of(const dc_csv_text *t)
{
    static const char *const words[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
    for (int i = 0; i < 6; i++)
        if (strlen(words[i]) == t->n && memcmp(words[i], t->at, t->n) == 0)
            return i / 3;
    return -1;
}

static inline char *element(const state *s, size_t column)
{
    return s->base[column] + (size_t)s->row * s->stride[column];
}

static void put_f64(const state *s, size_t column, double v)
{
    memcpy(element(s, column), &v, sizeof v);
}

static void put_i64(const state *s, size_t column, int64_t v)
{
    memcpy(element(s, column), &v, sizeof v);
}

static const double EXACT =
    9007199254740992.0; /* 2^53: up to it a double holds each whole number */

/* Is v the number, where that is a whole one? */
static bool is_exact(dc_real_kind kind, double v, int64_t whole)
{
    if (kind == DC_REAL_FLOAT || fabs(v) < EXACT)
        return true;
    if (kind == DC_REAL_UNSIGNED)
        return v < 0x1p64 && (uint64_t)v == (uint64_t)whole;
    return kind == DC_REAL_WHOLE && v < 0x1p63 && (int64_t)v == whole;
}

/* The values so far become floats, where they are. */
static void make_real(state *s, size_t column)
{
    const finding was = s->found[column];
    for (int64_t i = 0; (was == WHOLE || was == UNSIGNED) && i < s->row; i++) {
        int64_t whole;
        char *at = s->base[column] + (size_t)i * s->stride[column];
        memcpy(&whole, at, sizeof whole);
        const dc_real_kind kind = was == UNSIGNED ? DC_REAL_UNSIGNED : DC_REAL_WHOLE;
        const double v = was == UNSIGNED ? (double)(uint64_t)whole : (double)whole;
        s->column[column].rounded += !is_exact(kind, v, whole);
        memcpy(at, &v, sizeof v);
    }
    for (int64_t i = 0; s->found[column] == NOTHING && i < s->row; i++) {
        const double v = (double)NAN;
        memcpy(s->base[column] + (size_t)i * s->stride[column], &v, sizeof v);
    }
    s->found[column] = REAL;
}

/* What is there is no number: texts from the first record on, the next time. */
static void make_texts(state *s, size_t column)
{
    s->column[column].kind = DC_CSV_TEXTS;
    s->late[column] = s->again = true;
}

/* Whole numbers so far, and this one is another of those that one dtype of 64 bits holds: which. */
static finding whole_with(const state *s, size_t column, dc_real_kind kind, int64_t whole)
{
    const finding was = s->found[column];
    const bool none = was == NOTHING && s->row == 0;
    if (kind == DC_REAL_WHOLE && (was == WHOLE || none))
        return WHOLE;
    if (kind == DC_REAL_WHOLE)
        return was == UNSIGNED && whole >= 0 ? UNSIGNED : NOTHING;
    if (kind != DC_REAL_UNSIGNED || (was != WHOLE && was != UNSIGNED && !none))
        return NOTHING;
    for (int64_t i = 0; was == WHOLE && i < s->row; i++) {
        int64_t before;
        memcpy(&before, s->base[column] + (size_t)i * s->stride[column], sizeof before);
        if (before < 0)
            return NOTHING;
    }
    return UNSIGNED;
}

/* A value of a column whose type is found. */
static void put_found(state *s, size_t column, dc_real_kind kind, double v, int64_t whole,
                      const dc_csv_text *t)
{
    const finding was = s->found[column];
    const bool none = kind == DC_REAL_NONE && is_missing(s->c, t);
    const int truth = kind == DC_REAL_NONE && !none ? truth_of(t) : -1;
    const finding with = whole_with(s, column, kind, whole);
    if (none && was == NOTHING)
        return; /* still nothing */
    if (truth >= 0 && (was == TRUTH || (was == NOTHING && s->row == 0))) {
        s->found[column] = TRUTH;
        put_i64(s, column, truth);
    } else if (with != NOTHING) {
        s->found[column] = with;
        put_i64(s, column, whole);
    } else if ((kind != DC_REAL_NONE || none) && was != TRUTH) {
        if (was != REAL)
            make_real(s, column);
        s->column[column].rounded += !none && !is_exact(kind, v, whole);
        put_f64(s, column, none ? (double)NAN : v);
    } else {
        make_texts(s, column);
    }
}

static dc_status refuse(state *s, size_t column, const dc_csv_text *t, int64_t line)
{
    char room[160];
    const dc_csv_column *col = &s->column[column];
    const char *name = dc_dtype_name(col->dtype);
    s->line = line;
    if (is_missing(s->c, t))
        return fail(s, "%s: there is no value, and %s has none for that", place(s, column, room),
                    name);
    return fail(s, "%s: '%.*s' is no %s", place(s, column, room),
                (int)dc_min_i64((int64_t)t->n, 40), t->at, name);
}

/* A value of a column whose dtype is given. */
static dc_status put_given(state *s, size_t column, dc_real_kind kind, double v, int64_t whole,
                           const dc_csv_text *t, int64_t line)
{
    const dc_csv_column *col = &s->column[column];
    const dc_dtype dtype = col->dtype;
    const bool none = kind == DC_REAL_NONE && is_missing(s->c, t);
    const int truth = kind == DC_REAL_NONE ? truth_of(t) : -1;
    uint64_t bits;
    if (none && col->fills) {
        bits = dc_bits_of(dtype, col->fill);
    } else if (dc_dtype_is_float(dtype)) {
        if (kind == DC_REAL_NONE && !none)
            return refuse(s, column, t, line);
        bits = dc_bits_of(dtype, none ? (double)NAN : v);
    } else if (dtype == DC_BOOL) {
        if (truth < 0 && !(kind == DC_REAL_WHOLE && (whole == 0 || whole == 1)))
            return refuse(s, column, t, line);
        bits = truth >= 0 ? (uint64_t)truth : (uint64_t)whole;
    } else {
        if (kind == DC_REAL_FLOAT && v == floor(v) && fabs(v) < EXACT) {
            kind = DC_REAL_WHOLE; /* 3.0 */
            whole = (int64_t)v;
        }
        bits = dc_bits_canonical(dtype, (uint64_t)whole);
        const bool fits = kind == DC_REAL_UNSIGNED
                              ? dtype == DC_U64
                              : kind == DC_REAL_WHOLE && (whole >= 0 || dc_dtype_is_signed(dtype));
        if (!fits || (int64_t)bits != whole)
            return refuse(s, column, t, line);
    }
    dc_bits_store(dtype, element(s, column), bits);
    return DC_OK;
}

/* A field with quotes, or which is no number: by its bytes. */
static dc_status take_slowly(state *s, size_t column)
{
    const int64_t line = s->line;
    int64_t whole = 0;
    double v = 0;
    dc_csv_text t;
    DC_TRY(take_field(s, column, &t));
    if (s->column[column].kind == DC_CSV_TEXTS) {
        if (!s->late[column])
            memcpy(element(s, column), &t, sizeof t);
        return DC_OK;
    }
    trim(s, &t);
    const char *p = t.at;
    dc_real_kind kind = DC_REAL_NONE;
    if (!is_missing(s->c, &t))
        kind = dc_real_read(&p, t.at + t.n, &v, &whole);
    if (p != t.at + t.n)
        kind = DC_REAL_NONE;
    if (s->column[column].kind == DC_CSV_GIVEN)
        return put_given(s, column, kind, v, whole, &t, line);
    put_found(s, column, kind, v, whole, &t);
    return DC_OK;
}

static dc_status take_value(state *s, size_t column)
{
    const dc_csv_column *col = &s->column[column];
    const dc_csv *c = s->c;
    if (col->kind == DC_CSV_SKIP) {
        dc_csv_text t;
        return take_field(s, column, &t);
    }
    if (col->kind == DC_CSV_TEXTS)
        return take_slowly(s, column);
    const char *p = s->at;
    double v;
    int64_t whole = 0;
    while (is_blank(s, *p))
        p++;
    const bool digit = (unsigned char)(*p - '0') < 10 || *p == '-' || *p == '.' || *p == '+';
    const dc_real_kind kind = digit ? dc_real_read(&p, c->end, &v, &whole) : DC_REAL_NONE;
    while (kind != DC_REAL_NONE && is_blank(s, *p))
        p++;
    if (kind == DC_REAL_NONE || !c->ends[(unsigned char)*p] || c->is_number_missing)
        return take_slowly(s, column);
    const int64_t line = s->line;
    const dc_csv_text t = {.at = s->at, .n = (size_t)(p - s->at)};
    s->at = p;
    if (col->kind == DC_CSV_GIVEN && col->dtype == DC_F32) {
        const float f = (float)v;
        memcpy(element(s, column), &f, sizeof f);
    } else if (col->kind == DC_CSV_GIVEN) {
        return put_given(s, column, kind, v, whole, &t, line);
    } else if (s->found[column] == REAL && (kind == DC_REAL_FLOAT || fabs(v) < EXACT)) {
        put_f64(s, column, v);
    } else {
        put_found(s, column, kind, v, whole, &t);
    }
    return DC_OK;
}

/* ---- records ---------------------------------------------------------------------------------- */

static dc_status grow(state *s, size_t column, int64_t rows)
{
    dc_csv_column *col = &s->column[column];
    int64_t bytes;
    char *grown = NULL;
    if (dc_mul_ok(rows, (int64_t)s->stride[column], &bytes))
        grown = dc_try_realloc(col->data, (size_t)bytes);
    if (grown == NULL)
        return dc_fail_memory(s->job, (uint64_t)rows * s->stride[column]);
    s->base[column] = col->data = grown;
    return DC_OK;
}

/* Room for more rows: as many as the bytes so far promise. */
static dc_status make_room(state *s)
{
    const dc_csv *c = s->c;
    const double done = (double)(s->at - c->begin) + 1, all = (double)(c->end - c->begin) + 1;
    const int64_t promised = (int64_t)((double)s->row * all / done * 1.01);
    const int64_t rows = dc_max_i64(promised, s->row + s->row / 2) + 1024;
    char *block = NULL; /* of a matrix: that of its first column */
    for (size_t i = 0; i < c->n; i++) {
        if (s->size[i] == 0)
            continue;
        if (block == NULL)
            DC_TRY(grow(s, i, rows));
        else
            s->base[i] = block;
        if (s->matrix)
            block = s->base[i] + s->size[i];
    }
    s->room = rows;
    return DC_OK;
}

static dc_status take_record(state *s)
{
    const size_t n = s->c->n;
    const int64_t line = s->line;
    size_t i = 0;
    do {
        if (i == n) {
            s->line = line;
            return fail(s, "line %" PRId64 " has more than the %zu fields of the first", line, n);
        }
        DC_TRY(take_value(s, i++));
    } while (another(s));
    if (i == n)
        return DC_OK;
    return fail(s, "line %" PRId64 " has %zu field%s, the first has %zu", line, i,
                i == 1 ? "" : "s", n);
}

static dc_status take_all(state *s)
{
    const dc_csv *c = s->c;
    s->at = c->begin;
    s->line = c->begin_line;
    s->row = 0;
    s->again = false;
    if (c->o.header && next_record(c, &s->at, &s->line)) {
        dc_csv_text t;
        do
            DC_TRY(take_field(s, 0, &t));
        while (another(s));
    }
    while ((c->o.rows < 0 || s->row < c->o.rows) && next_record(c, &s->at, &s->line)) {
        if (s->row == s->room)
            DC_TRY(make_room(s));
        if (s->row % 256 == 0)
            DC_TRY(dc_job_ended(s->job));
        DC_TRY(take_record(s));
        if (s->again && s->row == 0) /* the usual case: begin again at once */
            break;
        s->row++;
    }
    return DC_OK;
}

/* Sizes of elements; what is found has eight bytes. */
static void prepare(state *s)
{
    size_t all = 0;
    for (size_t i = 0; i < s->c->n; i++) {
        const dc_csv_column *col = &s->column[i];
        s->size[i] = col->kind == DC_CSV_TEXTS   ? sizeof(dc_csv_text)
                     : col->kind == DC_CSV_GIVEN ? dc_dtype_size(col->dtype)
                     : col->kind == DC_CSV_FIND  ? 8
                                                 : 0;
        all += s->size[i];
    }
    for (size_t i = 0; i < s->c->n; i++) {
        s->stride[i] = s->matrix ? all : s->size[i];
        s->late[i] = false;
    }
}

/* A column of texts has wider elements than it began with. */
static void drop_data(state *s)
{
    for (size_t i = 0; i < s->c->n; i++) {
        dc_xfree(s->column[i].data);
        s->column[i].data = NULL;
        s->base[i] = NULL;
        s->found[i] = NOTHING;
        s->column[i].rounded = 0;
    }
    s->room = 0;
}

/* What was found, as a dtype. */
static void conclude(state *s)
{
    for (size_t i = 0; i < s->c->n; i++) {
        dc_csv_column *col = &s->column[i];
        if (col->kind != DC_CSV_FIND)
            continue;
        if (s->found[i] == NOTHING)
            make_real(s, i); /* no value at all */
        col->kind = DC_CSV_GIVEN;
        col->dtype = s->found[i] == WHOLE      ? DC_I64
                     : s->found[i] == UNSIGNED ? DC_U64
                     : s->found[i] == REAL     ? DC_F64
                                               : DC_BOOL;
        for (int64_t k = 0; s->found[i] == TRUTH && k < s->row; k++)
            ((char *)col->data)[k] = ((char *)col->data)[(size_t)k * 8]; /* little-endian */
    }
}

typedef struct owned {
    dc_csv_column *column;
    size_t n;
} owned;

static void free_columns(void *what)
{
    const owned *o = what;
    for (size_t i = 0; i < o->n; i++) {
        dc_xfree(o->column[i].data);
        o->column[i].data = NULL;
    }
}

dc_status dc_csv_parse(dc_csv *c, dc_job *j, dc_csv_column *column, bool matrix, int64_t *rows)
{
    const size_t n = c->n;
    state s = {.c = c, .job = j, .column = column, .matrix = matrix};
    s.found = DC_NEW_ARRAY(&j->scratch, finding, n + 1);
    s.late = DC_NEW_ARRAY(&j->scratch, bool, n + 1);
    s.size = DC_NEW_ARRAY(&j->scratch, size_t, n + 1);
    s.stride = DC_NEW_ARRAY(&j->scratch, size_t, n + 1);
    s.base = DC_NEW_ARRAY(&j->scratch, char *, n + 1);
    owned *o = DC_NEW(&j->scratch, owned);
    *o = (owned){column, n};
    dc_job_defer(j, free_columns, o);
    do { /* a second time for texts, whose elements are wider: at most once for each column */
        if (s.room > 0)
            drop_data(&s);
        prepare(&s);
        DC_TRY(make_room(&s));
        DC_TRY(take_all(&s));
    } while (s.again);
    conclude(&s);
    dc_job_keep(j, o);
    *rows = s.row;
    return DC_OK;
}

/* ---- opening ---------------------------------------------------------------------------------- */

void dc_csv_close(dc_csv *c)
{
    if (c == NULL)
        return;
    dc_xfree(c->first);
    dc_xfree(c->bytes);
    dc_xfree(c->path);
    dc_xfree(c);
}

static void close_csv(void *c)
{
    dc_csv_close(c);
}

/* The fields of the record at s->at. */
static dc_status read_first(dc_csv *c, state *s)
{
    size_t room = 0;
    bool more;
    if (!next_record(c, &s->at, &s->line))
        return DC_OK;
    c->begin = s->at;
    c->begin_line = s->line;
    do {
        dc_csv_text t;
        const bool quoted = c->o.quote != '\0' && *s->at == c->o.quote;
        if (c->n == room) {
            room = room * 2 + 16;
            c->first = dc_xrealloc(c->first, room * sizeof *c->first);
        }
        DC_TRY(take_field(s, c->n, &t));
        if (!quoted)
            trim(s, &t);
        more = another(s);
        c->first[c->n++] = t;
    } while (more);
    return DC_OK;
}

dc_status dc_csv_open(dc_job *j, const char *path, const dc_csv_options *options, dc_csv **out)
{
    size_t n;
    dc_csv *c = dc_xalloc(sizeof *c);
    state s = {.c = c, .job = j, .line = 1};
    dc_job_defer(j, close_csv, c);
    c->o = *options;
    c->path = dc_xalloc(strlen(path) + 1);
    memcpy(c->path, path, strlen(path));
    DC_TRY(dc_infile_all(j, path, PTRDIFF_MAX, &c->bytes, &n));
    c->end = c->bytes + n;
    c->bytes[n] = '\n';
    c->ends['\n'] = c->ends['\r'] = c->ends[(unsigned char)c->o.separator] = true;
    c->ends[(unsigned char)c->o.comment] |= c->o.comment != '\0';
    for (size_t i = 0; i < c->o.nmissing; i++)
        c->is_number_missing |=
            c->o.missing[i].n > 0 && strchr("+-.0123456789", *c->o.missing[i].at);
    s.at = c->bytes + (n >= 3 && memcmp(c->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    for (int64_t i = 0; i < c->o.skip && s.at < c->end; i++, s.line++)
        s.at = next_line(c, end_of_line(c, s.at));
    c->begin = c->end;
    c->begin_line = s.line;
    DC_TRY(read_first(c, &s));
    dc_job_keep(j, c);
    *out = c;
    return DC_OK;
}

const dc_csv_text *dc_csv_first(const dc_csv *c, size_t *n)
{
    *n = c->n;
    return c->first;
}

size_t dc_csv_copy(const dc_csv *c, const dc_csv_text *t, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        to[n++] = t->at[i];
        i += t->doubled && t->at[i] == c->o.quote;
    }
    return n;
}
