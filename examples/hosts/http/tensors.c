/*
 * Arrays as JSON: {"x": [[0.1, 0.2], [0.3, 0.4]]} in, {"results": [[0.9, 0.1]]} out. Every number is checked against its
 * type, every list against its axis.
 */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* ---- numbers ---- */

/* type, its C type, smallest and largest value; of those that JSON's integers go into */
#define INTEGERS(row)                                                                         \
    row(DC_I8, int8_t, INT8_MIN, INT8_MAX) row(DC_I16, int16_t, INT16_MIN, INT16_MAX)         \
        row(DC_I32, int32_t, INT32_MIN, INT32_MAX) row(DC_I64, int64_t, INT64_MIN, INT64_MAX) \
            row(DC_U8, uint8_t, 0, UINT8_MAX) row(DC_U16, uint16_t, 0, UINT16_MAX)            \
                row(DC_U32, uint32_t, 0, UINT32_MAX) row(DC_U64, uint64_t, 0, INT64_MAX)

static const char *type_name(dc_dtype type)
{
    static const char *const names[] = {
        [DC_BOOL] = "bool", [DC_I8] = "i8",   [DC_I16] = "i16", [DC_I32] = "i32",
        [DC_I64] = "i64",   [DC_U8] = "u8",   [DC_U16] = "u16", [DC_U32] = "u32",
        [DC_U64] = "u64",   [DC_F32] = "f32", [DC_F64] = "f64",
    };
    return (size_t)type < sizeof names / sizeof *names ? names[type] : NULL;
}

bool tensors_can(dc_dtype type)
{
    return type_name(type) != NULL;
}

static size_t width(dc_dtype type)
{
    switch (type) {
#define ROW(id, ctype, lo, hi) \
    case id:                   \
        return sizeof(ctype);
        INTEGERS(ROW)
#undef ROW
    case DC_F32:
        return sizeof(float);
    case DC_F64:
        return sizeof(double);
    case DC_BOOL:
    case DC_F16:
    case DC_BF16:
    case DC_F8E4M3FN:
    case DC_F8E5M2:
        break;
    }
    return 1;
}

/* Stores v as element i; false: it is no such number. */
static bool store(dc_dtype type, void *at, size_t i, const json_t *v)
{
    const json_int_t n = json_integer_value(v);
    const double x = json_number_value(v);
    switch (type) {
#define ROW(id, ctype, lo, hi)                                                   \
    case id:                                                                     \
        if (!json_is_integer(v) || n < (json_int_t)(lo) || n > (json_int_t)(hi)) \
            return false;                                                        \
        ((ctype *)at)[i] = (ctype)n;                                             \
        return true;
        INTEGERS(ROW)
#undef ROW
    case DC_BOOL:
        ((uint8_t *)at)[i] = json_is_true(v);
        return json_is_boolean(v);
    case DC_F32:
        ((float *)at)[i] = (float)x;
        return json_is_number(v) && isfinite((float)x);
    case DC_F64:
        ((double *)at)[i] = x;
        return json_is_number(v);
    case DC_F16:
    case DC_BF16:
    case DC_F8E4M3FN:
    case DC_F8E5M2:
        break;
    }
    return false;
}

/* ---- reading ---- */

typedef struct reading {
    const char *name;
    dc_dtype type;
    int rank;
    const int64_t *dim;
    void *at;
    size_t i;       /* elements that are stored */
    size_t path[8]; /* where we are */
    char *error;
} reading;

__attribute__((format(printf, 3, 4))) static bool wrong(const reading *r, int depth,
                                                        const char *format, ...)
{
    va_list args;
    int n = snprintf(r->error, TEXT, "%.80s", r->name);
    for (int k = 0; k < depth; k++)
        n += snprintf(r->error + n, TEXT - (size_t)n, "[%zu]", r->path[k]);
    n += snprintf(r->error + n, TEXT - (size_t)n, ": ");
    va_start(args, format);
    vsnprintf(r->error + n, TEXT - (size_t)n, format, args);
    va_end(args);
    return false;
}

static const char *kind_of(const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",       [JSON_STRING] = "a string",
        [JSON_REAL] = "a number",    [JSON_INTEGER] = "an integer", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return names[json_typeof(v)];
}

static bool read_axis(reading *r, const json_t *v, int depth)
{
    if (depth == r->rank) {
        if (store(r->type, r->at, r->i++, v))
            return true;
        if (json_is_number(v))
            return wrong(r, depth, "%.17g is no %s", json_number_value(v), type_name(r->type));
        return wrong(r, depth, "expected %s, found %s", type_name(r->type), kind_of(v));
    }
    if (!json_is_array(v))
        return wrong(r, depth, "expected a list of %lld, found %s", (long long)r->dim[depth],
                     kind_of(v));
    if (json_array_size(v) != (size_t)r->dim[depth])
        return wrong(r, depth, "expected a list of %lld, found one of %zu",
                     (long long)r->dim[depth], json_array_size(v));
    for (r->path[depth] = 0; r->path[depth] < json_array_size(v); r->path[depth]++)
        if (!read_axis(r, json_array_get(v, r->path[depth]), depth + 1))
            return false;
    return true;
}

/* A new array of what v has, whose axes are dim. */
static void *read_array(const array_kind *kind, const int64_t *dim, const json_t *v, char *error)
{
    size_t elements = 1;
    for (int k = 0; k < kind->type.rank; k++)
        elements *= (size_t)dim[k];
    reading r = {.name = kind->name,
                 .type = kind->type.dtype,
                 .rank = kind->type.rank,
                 .dim = dim,
                 .error = error};
    r.at = malloc(elements * width(r.type) + 1);
    if (r.at == NULL)
        snprintf(error, TEXT, "no memory");
    else if (read_axis(&r, v, 0))
        return r.at;
    free(r.at);
    return NULL;
}

/* The axes of nested lists, by their first elements. */
static bool shape_is(const json_t *v, const dc_array *a)
{
    for (int k = 0; k < a->rank; k++) {
        if (!json_is_array(v) || json_array_size(v) != (size_t)a->dim[k])
            return false;
        v = json_array_get(v, 0);
    }
    return !json_is_array(v);
}

static bool find_rows(const model *m, json_t *const *values, request *r, char *error)
{
    for (size_t i = 0; i < m->nin; i++) {
        size_t rows = json_array_size(values[i]); /* 0 of what is no list */
        if (rows < 1 || rows > (size_t)m->most)
            return snprintf(error, TEXT, "%.80s: expected a list of 1 to %lld rows, found %s",
                            m->in[i].name, (long long)m->most,
                            json_is_array(values[i]) ? "another number" : kind_of(values[i])),
                   false;
        if (i > 0 && (int64_t)rows != r->rows)
            return snprintf(error, TEXT, "%.80s has %zu rows, %.80s has %lld", m->in[i].name, rows,
                            m->in[0].name, (long long)r->rows),
                   false;
        r->rows = (int64_t)rows;
    }
    return true;
}

static bool find_variant(const model *m, json_t *const *values, request *r, char *error)
{
    dc_array a;
    r->rows = 1;
    for (r->variant = 0; r->variant < m->variants; r->variant++) {
        size_t i = 0;
        while (i < m->nin && dc_function_argument(m->fn, r->variant, i, NULL, &a) &&
               shape_is(values[i], &a))
            i++;
        if (i == m->nin)
            return true;
    }
    snprintf(error, TEXT,
             "no variant of the function has arguments of these sizes; GET /model lists them");
    return false;
}

static bool read_values(const model *m, const json_t *body, request *r, char *error)
{
    json_t *values[MOST_ARRAYS];
    const char *key;
    json_t *value;
    if (!json_is_object(body))
        return snprintf(error, TEXT, "expected an object with the arguments, found %s",
                        kind_of(body)),
               false;
    for (size_t i = 0; i < m->nin; i++)
        if ((values[i] = json_object_get(body, m->in[i].name)) == NULL)
            return snprintf(error, TEXT, "the argument %.80s is missing", m->in[i].name), false;
    json_object_foreach((json_t *)body, key, value)
    {
        size_t i = 0;
        while (i < m->nin && strcmp(m->in[i].name, key) != 0)
            i++;
        if (i == m->nin)
            return snprintf(error, TEXT, "there is no argument %.80s", key), false;
    }
    if (m->rows ? !find_rows(m, values, r, error) : !find_variant(m, values, r, error))
        return false;
    for (size_t i = 0; i < m->nin; i++) {
        dc_array a = m->in[i].type;
        if (m->rows)
            a.dim[0] = r->rows;
        else
            dc_function_argument(m->fn, r->variant, i, NULL, &a);
        if ((r->in[i] = read_array(&m->in[i], a.dim, values[i], error)) == NULL)
            return false;
    }
    return true;
}

bool tensors_read(const model *m, const char *text, size_t n, request *r, char *error)
{
    json_error_t where;
    json_t *body = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (body == NULL) {
        snprintf(error, TEXT, "the body is not the JSON that is expected: %.150s at byte %d",
                 where.text, where.position);
        return false;
    }
    bool ok = read_values(m, body, r, error);
    json_decref(body);
    return ok;
}

/* ---- writing ---- */

typedef struct text {
    char *at;
    size_t n, room;
} text;

/* Room for n bytes more; NULL without memory. */
static char *grow(text *t, size_t n)
{
    if (t->at == NULL || t->room - t->n < n) {
        char *at = realloc(t->at, t->room = 2 * t->room + n);
        if (at == NULL)
            return NULL;
        t->at = at;
    }
    return t->at + t->n;
}

static int print(dc_dtype type, const void *at, size_t i, char *to, size_t room)
{
    double x = 0;
    switch (type) {
#define ROW(id, ctype, lo, hi)                                                                    \
    case id:                                                                                      \
        return (lo) == 0 ? snprintf(to, room, "%llu", (unsigned long long)((const ctype *)at)[i]) \
                         : snprintf(to, room, "%lld", (long long)((const ctype *)at)[i]);
        INTEGERS(ROW)
#undef ROW
    case DC_BOOL:
        return snprintf(to, room, "%s", ((const uint8_t *)at)[i] ? "true" : "false");
    case DC_F32:
        x = ((const float *)at)[i];
        break;
    case DC_F64:
        x = ((const double *)at)[i];
        break;
    case DC_F16:
    case DC_BF16:
    case DC_F8E4M3FN:
    case DC_F8E5M2:
        break;
    }
    if (!isfinite(x)) /* JSON has no word for it */
        return snprintf(to, room, "null");
    return snprintf(to, room, "%.*g", type == DC_F32 ? 9 : 17, x);
}

static bool write_axis(text *t, const dc_array *a, int depth, size_t *i)
{
    enum { MOST = 40 }; /* characters of a number */
    char *to = grow(t, MOST);
    if (to == NULL)
        return false;
    if (depth == a->rank) {
        t->n += (size_t)print(a->dtype, a->data, (*i)++, to, MOST);
        return true;
    }
    t->at[t->n++] = '[';
    for (int64_t k = 0; k < a->dim[depth]; k++) {
        if (k > 0)
            t->at[t->n++] = ',';
        if (!write_axis(t, a, depth + 1, i) || grow(t, 2) == NULL)
            return false;
    }
    t->at[t->n++] = ']';
    return true;
}

char *tensors_write(const model *m, const request *r, size_t *n)
{
    text t = {NULL, 0, 256};
    bool ok = grow(&t, 16) != NULL;
    if (ok)
        t.n = (size_t)sprintf(t.at, "{\"results\":[");
    for (size_t k = 0; ok && k < m->nout; k++) {
        size_t i = 0;
        dc_array a = m->out[k].type;
        if (m->rows)
            a.dim[0] = r->rows;
        else
            dc_function_result(m->fn, r->variant, k, &a);
        a.data = r->out[k];
        if (k > 0)
            t.at[t.n++] = ',';
        ok = write_axis(&t, &a, 0, &i) && grow(&t, 4) != NULL;
    }
    if (!ok) {
        free(t.at);
        return NULL;
    }
    memcpy(t.at + t.n, "]}\n", 3);
    *n = t.n + 3;
    return t.at;
}
