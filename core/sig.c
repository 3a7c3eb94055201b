/*
 * The signature parser: one pass over the text with one character of lookahead.
 *
 * The same dim name means the same size everywhere in a signature, whether it is given once
 * (batch=64) or not at all (batch).
 */
#include "core/sig.h"

#include "core/job.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    dc_job *j;
    dc_names *intern;
    const char *text, *at;
    dc_oldsig *sig;
} reader;

static dc_status refuse(reader *r, const char *fmt, ...) DC_PRINTF(2, 3);

static dc_status refuse(reader *r, const char *fmt, ...)
{
    char quoted[200], reason[160];
    size_t n = 0;
    for (const char *s = r->text; *s != '\0' && n + 1 < sizeof quoted; s++)
        if (!isspace((unsigned char)*s) || (n > 0 && quoted[n - 1] != ' '))
            quoted[n++] = isspace((unsigned char)*s) ? ' ' : *s;
    while (n > 0 && quoted[n - 1] == ' ')
        n--;
    quoted[n] = '\0';
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    return dc_fail(r->j, DC_ERR_SIGNATURE, &(dc_fact){.word = {quoted, reason}});
}

static void skip_blanks(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(reader *r, const char *token)
{
    const size_t n = strlen(token);
    skip_blanks(r);
    if (strncmp(r->at, token, n) != 0)
        return false;
    r->at += n;
    return true;
}

static dc_status expect(reader *r, const char *token)
{
    if (take(r, token))
        return DC_OK;
    if (*r->at == '\0')
        return refuse(r, "'%s' expected at its end", token);
    return refuse(r, "'%s' expected before '%.12s'", token, r->at);
}

/* A name, interned; NULL if none stands here. */
static const char *take_name(reader *r)
{
    skip_blanks(r);
    const char *start = r->at;
    if (!isalpha((unsigned char)*start) && *start != '_')
        return NULL;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    return dc_name_intern(r->intern, start, (size_t)(r->at - start));
}

static dc_status take_size(reader *r, int64_t *out)
{
    skip_blanks(r);
    if (!isdigit((unsigned char)*r->at))
        return refuse(r, "a size expected before '%.12s'", r->at);
    int64_t n = 0;
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (!dc_mul_ok(n, 10, &n) || !dc_add_ok(n, *r->at - '0', &n))
            return refuse(r, "a size is too large");
    *out = n;
    return DC_OK;
}

/* ---- dims and types ---- */

static dc_status find_var(reader *r, const char *name, int *out)
{
    dc_oldsig *s = r->sig;
    for (*out = 0; *out < s->nvar; ++*out)
        if (s->var[*out] == name)
            return DC_OK;
    if (s->nvar == DC_OLDSIG_VARS)
        return refuse(r, "more than %d names of dims", DC_OLDSIG_VARS);
    s->var[s->nvar] = name;
    s->size[s->nvar++] = -1;
    return DC_OK;
}

static dc_status read_dim(reader *r, dc_type *t)
{
    const int k = t->rank;
    if (k == DC_MAX_RANK)
        return refuse(r, "a type has more than %d axes", DC_MAX_RANK);
    if (take(r, "..."))
        return refuse(r, "'...' is not supported yet");
    const char *name = take_name(r);
    t->rank++;
    t->name[k] = name;
    if (name == NULL)
        DC_TRY(take_size(r, &t->dim[k]));
    else {
        int var;
        DC_TRY(find_var(r, name, &var));
        t->dim[k] = ~(int64_t)var;
        if (take(r, "=")) {
            int64_t size;
            DC_TRY(take_size(r, &size));
            if (r->sig->size[var] >= 0 && r->sig->size[var] != size)
                return refuse(r, "'%s' is %" PRId64 " and %" PRId64, name, r->sig->size[var], size);
            r->sig->size[var] = size;
        }
    }
    skip_blanks(r);
    if (*r->at != '\0' && strchr("+-*/%(", *r->at) != NULL)
        return refuse(r, "arithmetic on sizes is not supported yet");
    return DC_OK;
}

static dc_status read_type(reader *r, dc_type *out)
{
    dc_dtype dtype;
    skip_blanks(r);
    if (*r->at == '{')
        return refuse(r, "records and lists are not supported yet");
    const char *start = r->at, *name = take_name(r);
    if (name == NULL)
        return refuse(r, "a type expected before '%.12s'", r->at);
    if (!dc_dtype_find(name, strlen(name), &dtype)) {
        r->at = start; /* the type parser knows the dtypes and says so */
        return dc_type_parse(r->j, r->intern, &r->at, out);
    }
    *out = dc_type_scalar(dtype);
    DC_TRY(expect(r, "["));
    if (take(r, "]"))
        return DC_OK;
    do
        DC_TRY(read_dim(r, out));
    while (take(r, ","));
    return expect(r, "]");
}

/* ---- the whole ---- */

static dc_status read_param(reader *r)
{
    dc_oldsig *s = r->sig;
    const char *name = take_name(r);
    if (name == NULL)
        return refuse(r, "a parameter's name expected before '%.12s'", r->at);
    for (int i = 0; i < s->nparam; i++)
        if (s->param[i].name == name)
            return refuse(r, "parameter '%s' is given twice", name);
    if (s->nparam == DC_OLDSIG_PARAMS)
        return refuse(r, "more than %d parameters", DC_OLDSIG_PARAMS);
    if (take(r, "?"))
        return refuse(r, "optional parameters are not supported yet");
    if (!take(r, ":"))
        return refuse(r, "parameter '%s' needs a type, as in %s: f32[]", name, name);
    s->param[s->nparam].name = name;
    return read_type(r, &s->param[s->nparam++].type);
}

static dc_status read_results(reader *r)
{
    dc_oldsig *s = r->sig;
    if (take(r, "("))
        return expect(r, ")");
    do {
        if (s->nresult == DC_OLDSIG_RESULTS)
            return refuse(r, "more than %d results", DC_OLDSIG_RESULTS);
        DC_TRY(read_type(r, &s->result[s->nresult++]));
    } while (take(r, ","));
    return DC_OK;
}

/* Puts the sizes known by now into the types and checks that they can be addressed. */
static dc_status settle(reader *r, dc_type *t)
{
    dc_type full;
    for (int k = 0; k < t->rank; k++)
        if (t->dim[k] < 0 && r->sig->size[~t->dim[k]] >= 0)
            t->dim[k] = r->sig->size[~t->dim[k]];
    if (dc_oldsig_resolve(t, r->sig->size, &full) &&
        !dc_dims_fit(full.rank, full.dim, dc_dtype_size((dc_dtype)full.dtype)))
        return refuse(r, "a type is too large to address");
    return DC_OK;
}

dc_status dc_oldsig_parse(dc_job *j, dc_names *intern, const char *text, dc_oldsig *out)
{
    *out = (dc_oldsig){0};
    reader r = {j, intern, text, text, out};
    out->name = take_name(&r);
    DC_TRY(expect(&r, "("));
    if (!take(&r, ")")) {
        do
            DC_TRY(read_param(&r));
        while (take(&r, ","));
        DC_TRY(expect(&r, ")"));
    }
    out->any_result = !take(&r, "->");
    if (!out->any_result)
        DC_TRY(read_results(&r));
    skip_blanks(&r);
    if (*r.at != '\0')
        return refuse(&r, "nothing expected behind '%.12s'", r.at);
    for (int i = 0; i < out->nparam; i++)
        DC_TRY(settle(&r, &out->param[i].type));
    for (int i = 0; i < out->nresult; i++)
        DC_TRY(settle(&r, &out->result[i]));
    return DC_OK;
}

bool dc_oldsig_resolve(const dc_type *t, const int64_t *size, dc_type *out)
{
    *out = *t;
    for (int k = 0; k < t->rank; k++)
        if (t->dim[k] < 0 && (out->dim[k] = size[~t->dim[k]]) < 0)
            return false;
    return true;
}

bool dc_oldsig_match(const dc_type *declared, const dc_type *given, int64_t *size, int *axis)
{
    *axis = -1;
    if (declared->dtype != given->dtype || declared->rank != given->rank)
        return false;
    for (int k = 0; k < declared->rank; k++) {
        int64_t want = declared->dim[k];
        if (want < 0) {
            int64_t *var = &size[~want];
            if (*var < 0)
                *var = given->dim[k];
            want = *var;
        }
        if (want != given->dim[k]) {
            *axis = k;
            return false;
        }
    }
    return true;
}

int dc_oldsig_type_print(const dc_type *t, const int64_t *size, char *out, size_t room)
{
    size_t n = 0;
    char dim[96];
#define PUT(s) \
    (n += (size_t)snprintf(out + (n < room ? n : room), n < room ? room - n : 0, "%s", (s)))
    PUT(dc_dtype_name((dc_dtype)t->dtype));
    PUT("[");
    for (int k = 0; k < t->rank; k++) {
        const int64_t d = t->dim[k] < 0 ? size[~t->dim[k]] : t->dim[k];
        if (d < 0)
            snprintf(dim, sizeof dim, "%s%.60s", k ? ", " : "", t->name[k]);
        else if (t->name[k] != NULL)
            snprintf(dim, sizeof dim, "%s%.60s=%" PRId64, k ? ", " : "", t->name[k], d);
        else
            snprintf(dim, sizeof dim, "%s%" PRId64, k ? ", " : "", d);
        PUT(dim);
    }
    PUT("]");
#undef PUT
    return (int)n;
}
