/*
 * What goes into a function and comes out of it: numbers as text, with spaces or commas between them, or bytes as the processor has
 * them. DEEPC.RUN key [BYTES] [VARIANT n] input ...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "module.h"

/* row(type, its C type, format, as what it is printed, smallest and largest value) */
#define INTEGERS(row)                                                              \
    row(DC_I8, int8_t, PRId64, int64_t, INT8_MIN, INT8_MAX)                        \
        row(DC_I16, int16_t, PRId64, int64_t, INT16_MIN, INT16_MAX)                \
            row(DC_I32, int32_t, PRId64, int64_t, INT32_MIN, INT32_MAX)            \
                row(DC_I64, int64_t, PRId64, int64_t, INT64_MIN, INT64_MAX)        \
                    row(DC_U8, uint8_t, PRIu64, uint64_t, 0, UINT8_MAX)            \
                        row(DC_U16, uint16_t, PRIu64, uint64_t, 0, UINT16_MAX)     \
                            row(DC_U32, uint32_t, PRIu64, uint64_t, 0, UINT32_MAX) \
                                row(DC_U64, uint64_t, PRIu64, uint64_t, 0, INT64_MAX)

static const char *type_name(dc_dtype type)
{
    static const char *const names[] = {
        [DC_BOOL] = "bool",     [DC_I8] = "i8",
        [DC_I16] = "i16",       [DC_I32] = "i32",
        [DC_I64] = "i64",       [DC_U8] = "u8",
        [DC_U16] = "u16",       [DC_U32] = "u32",
        [DC_U64] = "u64",       [DC_F16] = "f16",
        [DC_BF16] = "bf16",     [DC_F32] = "f32",
        [DC_F64] = "f64",       [DC_F8E4M3FN] = "f8e4m3fn",
        [DC_F8E5M2] = "f8e5m2",
    };
    return names[type];
}

static bool has_text(dc_dtype type)
{
    return type != DC_F16 && type != DC_BF16 && type != DC_F8E4M3FN && type != DC_F8E5M2;
}

static size_t elements(const dc_array *a)
{
    size_t n = 1;
    for (int k = 0; k < a->rank; k++)
        n *= (size_t)a->dim[k];
    return n;
}

/* ---- text ---- */

/* Stores the number at *text as element i and goes behind it; false: it is no such number. */
static bool store(dc_dtype type, void *at, size_t i, const char **text)
{
    char *end = NULL;
    double x = strtod(*text, &end);
    bool number = end != *text && (*end == 0 || *end == ' ' || *end == ',');
    char *whole = NULL;
    errno = 0;
    const int64_t n = strtoll(*text, &whole, 10);
    bool integer = whole == end && errno == 0;
    *text = end;
    if (!number)
        return false;
    switch (type) {
#define ROW(id, ctype, format, shown, lo, hi) \
    case id:                                  \
        ((ctype *)at)[i] = (ctype)n;          \
        return integer && n >= (int64_t)(lo) && n <= (int64_t)(hi);
        INTEGERS(ROW)
#undef ROW
    case DC_BOOL:
        ((uint8_t *)at)[i] = n != 0;
        return integer && (n == 0 || n == 1);
    case DC_F32:
        ((float *)at)[i] = (float)x;
        return true;
    case DC_F64:
        ((double *)at)[i] = x;
        return true;
    case DC_F16:
    case DC_BF16:
    case DC_F8E4M3FN:
    case DC_F8E5M2:
        break;
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == ',';
}

static size_t count_numbers(const blob *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += !is_space(b->at[i]) && (i == 0 || is_space(b->at[i - 1]));
    return n;
}

static bool read_text(job *j, const blob *b, const char *name, const dc_array *a, void *at)
{
    const char *text = b->at;
    if (strlen(text) != b->n)
        return say(j->error, "%.80s: a zero byte; binary inputs stand behind BYTES", name), false;
    for (size_t i = 0; i < elements(a); i++) {
        while (is_space(*text))
            text++;
        const char *word = text;
        if (!store(a->dtype, at, i, &text))
            return say(j->error, "%.80s: '%.*s' is no %s", name, (int)strcspn(word, " ,") % 40,
                       word, type_name(a->dtype)),
                   false;
    }
    return true;
}

static char *write_text(const dc_array *a, size_t *n)
{
    enum { MOST = 32 }; /* characters of a number */
    char *text = RedisModule_TryAlloc(elements(a) * MOST + 1), *to = text;
    for (size_t i = 0; text != NULL && i < elements(a); i++) {
        if (i > 0)
            *to++ = ' ';
        switch (a->dtype) {
#define ROW(id, ctype, format, shown, lo, hi)                              \
    case id:                                                               \
        to += sprintf(to, "%" format, (shown)((const ctype *)a->data)[i]); \
        break;
            INTEGERS(ROW)
#undef ROW
        case DC_BOOL:
            *to++ = ((const uint8_t *)a->data)[i] ? '1' : '0';
            break;
        case DC_F32:
            to += sprintf(to, "%.9g", (double)((const float *)a->data)[i]);
            break;
        case DC_F64:
            to += sprintf(to, "%.17g", ((const double *)a->data)[i]);
            break;
        case DC_F16:
        case DC_BF16:
        case DC_F8E4M3FN:
        case DC_F8E5M2:
            break;
        }
    }
    *n = text != NULL ? (size_t)(to - text) : 0;
    return text;
}

/* ---- a call ---- */

typedef struct call {
    bool bytes;
    long variant; /* -1: the one that fits */
    const blob *in;
    size_t nin, nout;
} call;

/* Words before the inputs are options; how many inputs there are is known, at most MOST_ARRAYS (worker.c). */
static bool read_options(job *j, call *c)
{
    const dc_function *fn = j->m->fn;
    *c = (call){.variant = -1};
    while (dc_function_argument(fn, 0, c->nin, NULL, NULL))
        c->nin++;
    while (dc_function_result(fn, 0, c->nout, NULL))
        c->nout++;
    size_t options = j->n >= c->nin ? j->n - c->nin : 0, i = 0;
    if (i < options && strcasecmp(j->in[i].at, "BYTES") == 0) {
        c->bytes = true;
        i++;
    }
    if (i + 1 < options && strcasecmp(j->in[i].at, "VARIANT") == 0) {
        char *end;
        c->variant = strtol(j->in[i + 1].at, &end, 10);
        if (*end != 0 || c->variant < 0 || (size_t)c->variant >= dc_function_variants(fn))
            return say(j->error, "there are variants 0 to %zu", dc_function_variants(fn) - 1),
                   false;
        i += 2;
    }
    if (i != options || j->n < c->nin)
        return say(j->error,
                   "%.200s wants %zu input%s, behind BYTES and VARIANT n if these are given",
                   dc_function_signature(fn), c->nin, c->nin == 1 ? "" : "s"),
               false;
    c->in = j->in + i;
    return true;
}

static bool fits(const dc_function *fn, const call *c, size_t variant)
{
    dc_array a;
    for (size_t i = 0; i < c->nin; i++) {
        if (!dc_function_argument(fn, variant, i, NULL, &a))
            return false;
        if (c->bytes ? c->in[i].n != a.bytes : count_numbers(&c->in[i]) != elements(&a))
            return false;
    }
    return true;
}

static bool find_variant(job *j, call *c)
{
    const dc_function *fn = j->m->fn;
    long found = -1;
    for (size_t v = 0; v < dc_function_variants(fn); v++) {
        if (!fits(fn, c, v) || (c->variant >= 0 && (size_t)c->variant != v))
            continue;
        if (found >= 0)
            return say(j->error,
                       "inputs of these sizes fit variants %ld and %zu: VARIANT n says which",
                       found, v),
                   false;
        found = (long)v;
    }
    c->variant = found;
    if (found < 0)
        return say(j->error,
                   "no variant of %.200s has inputs of these sizes; DEEPC.INFO lists them",
                   dc_function_signature(fn)),
               false;
    return true;
}

static bool read_input(job *j, const call *c, size_t i, dc_array *a)
{
    const char *name;
    dc_function_argument(j->m->fn, (size_t)c->variant, i, &name, a);
    if (c->bytes) {
        a->data = c->in[i].at;
        return true;
    }
    if (!has_text(a->dtype))
        return say(j->error, "%.80s is %s, which has no text: give it behind BYTES", name,
                   type_name(a->dtype)),
               false;
    char *at = RedisModule_TryAlloc(a->bytes + 1);
    if (at == NULL)
        return say(j->error, "no memory"), false;
    if (!read_text(j, &c->in[i], name, a, at)) {
        RedisModule_Free(at);
        return false;
    }
    RedisModule_Free(j->in[c->in - j->in + (ptrdiff_t)i]
                         .at); /* the text: the job holds the numbers from here on */
    a->data = j->in[c->in - j->in + (ptrdiff_t)i].at = at;
    return true;
}

static bool write_output(job *j, const call *c, const dc_array *a)
{
    blob *b = &j->out[j->nout];
    if (!c->bytes && !has_text(a->dtype))
        return say(j->error, "a result is %s, which has no text: ask behind BYTES",
                   type_name(a->dtype)),
               false;
    b->n = a->bytes;
    if (!c->bytes)
        b->at = write_text(a, &b->n);
    else if ((b->at = RedisModule_TryAlloc(a->bytes + 1)) != NULL)
        memcpy(b->at, a->data, a->bytes);
    if (b->at == NULL)
        return say(j->error, "no memory"), false;
    j->nout++;
    return true;
}

dc_status values_run(dc_rt *ctx, job *j)
{
    call c;
    dc_array in[MOST_ARRAYS], out[MOST_ARRAYS] = {{0}};
    if (!read_options(j, &c) || !find_variant(j, &c))
        return DC_E_VALUE;
    for (size_t i = 0; i < c.nin; i++)
        if (!read_input(j, &c, i, &in[i]))
            return DC_E_VALUE;
    const dc_status status = dc_call(j->m->fn, in, c.nin, out, c.nout);
    if (status != DC_OK) {
        say(j->error, "%s", dc_errmsg(ctx));
        return status;
    }
    for (size_t i = 0; i < c.nout; i++)
        if (!write_output(j, &c, &out[i]))
            return DC_E_VALUE;
    return DC_OK;
}

/* ---- what there is ---- */

__attribute__((format(printf, 2, 3))) static void line(job *j, const char *format, ...)
{
    enum { MOST = 5000 };
    va_list args;
    blob *b = &j->out[j->nout];
    if ((b->at = RedisModule_TryAlloc(MOST)) == NULL)
        return;
    va_start(args, format);
    int n = vsnprintf(b->at, MOST, format, args);
    va_end(args);
    b->n = n < MOST ? (size_t)n : MOST - 1;
    j->nout++;
}

static int describe(char *text, size_t room, const char *name, const dc_array *a)
{
    int n = snprintf(text, room, " %.60s%s%s[", name, *name ? ": " : "", type_name(a->dtype));
    for (int k = 0; k < a->rank; k++)
        n += snprintf(text + n, room - (size_t)n, "%s%" PRId64, k > 0 ? ", " : "", a->dim[k]);
    return n + snprintf(text + n, room - (size_t)n, "]");
}

void values_info(job *j)
{
    enum { LINES = 4 };
    const model *m = j->m;
    const char *name;
    dc_array a;
    size_t variants = dc_function_variants(m->fn);
    line(j, "%s", dc_function_signature(m->fn));
    line(j, "file %s", m->path);
    line(j, "parameters %zu bytes", m->bytes);
    line(j, "calls %" PRIu64 ", failed %" PRIu64, m->calls, m->failures);
    for (size_t v = 0; v < variants && v < MOST_ARRAYS - LINES; v++) {
        char text[4000];
        size_t n = (size_t)snprintf(text, sizeof text, "variant %zu:", v);
        for (size_t i = 0; n < sizeof text - 300 && dc_function_argument(m->fn, v, i, &name, &a);
             i++)
            n += (size_t)describe(text + n, 300, name, &a);
        n += (size_t)snprintf(text + n, 4, " ->");
        for (size_t i = 0; n < sizeof text - 300 && dc_function_result(m->fn, v, i, &a); i++)
            n += (size_t)describe(text + n, 300, "", &a);
        line(j, "%s%s", text, v + 1 == MOST_ARRAYS - LINES && v + 1 < variants ? " ..." : "");
    }
}
