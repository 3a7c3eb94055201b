/* An exported function: what it takes and gives, and one call for several requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Bytes behind the axes from `axis` on. */
static size_t bytes_from(const dc_array *a, int axis)
{
    size_t n = a->bytes;
    for (int k = 0; k < axis; k++)
        n /= a->dim[k] > 0 ? (size_t)a->dim[k] : 1;
    return n;
}

static bool same_but_rows(const dc_array *a, const dc_array *b)
{
    if (a->rank != b->rank || a->rank == 0)
        return false;
    for (int k = 1; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

static int64_t rows_of(const model *m, size_t variant)
{
    dc_array a;
    return dc_function_argument(m->fn, variant, 0, NULL, &a) ? a.dim[0] : 0;
}

/* The first axis of everything in a variant is the same, and all else as in variant 0. */
static bool has_rows(const model *m, size_t variant)
{
    dc_array a;
    int64_t rows = rows_of(m, variant);
    if (rows < 1)
        return false;
    for (size_t i = 0; dc_function_argument(m->fn, variant, i, NULL, &a); i++)
        if (!same_but_rows(&a, &m->in[i].type) || a.dim[0] != rows)
            return false;
    for (size_t i = 0; dc_function_result(m->fn, variant, i, &a); i++)
        if (!same_but_rows(&a, &m->out[i].type) || a.dim[0] != rows)
            return false;
    return true;
}

/* Arguments of lists and static values differ in more than sizes; requests are read by the kinds of variant 0. */
static bool same_kinds(const model *m, size_t variant)
{
    const char *name;
    dc_array a;
    size_t i = 0, k = 0;
    for (; dc_function_argument(m->fn, variant, i, &name, &a); i++)
        if (i >= m->nin || a.dtype != m->in[i].type.dtype || a.rank != m->in[i].type.rank ||
            strcmp(name, m->in[i].name) != 0)
            return false;
    for (; dc_function_result(m->fn, variant, k, &a); k++)
        if (k >= m->nout || a.dtype != m->out[k].type.dtype || a.rank != m->out[k].type.rank)
            return false;
    return i == m->nin && k == m->nout;
}

static bool describe(model *m, char *error)
{
    m->variants = dc_function_variants(m->fn);
    while (m->nin < MOST_ARRAYS &&
           dc_function_argument(m->fn, 0, m->nin, &m->in[m->nin].name, &m->in[m->nin].type))
        m->nin++;
    while (m->nout < MOST_ARRAYS && dc_function_result(m->fn, 0, m->nout, &m->out[m->nout].type))
        m->nout++;
    if (dc_function_argument(m->fn, 0, MOST_ARRAYS, NULL, NULL) ||
        dc_function_result(m->fn, 0, MOST_ARRAYS, NULL) || m->nin == 0) {
        snprintf(error, TEXT, "it has no arguments, or more than %d arguments or results",
                 MOST_ARRAYS);
        return false;
    }
    for (size_t i = 0; i < m->nin + m->nout; i++) {
        const array_kind *kind = i < m->nin ? &m->in[i] : &m->out[i - m->nin];
        if (!tensors_can(kind->type.dtype)) {
            snprintf(
                error, TEXT,
                "an argument or result is a float of 16 or 8 bits, which JSON is not read as here");
            return false;
        }
    }
    for (size_t v = 1; v < m->variants; v++)
        if (!same_kinds(m, v)) {
            snprintf(error, TEXT, "variants 0 and %zu of %.200s differ in more than sizes", v,
                     dc_function_signature(m->fn));
            return false;
        }
    m->rows = true;
    for (size_t v = 0; v < m->variants; v++) {
        m->rows = m->rows && has_rows(m, v);
        if (rows_of(m, v) > m->most)
            m->most = rows_of(m, v);
    }
    if (!m->rows)
        m->most = 1;
    for (size_t i = 0; i < m->nin; i++)
        m->in[i].row = bytes_from(&m->in[i].type, m->rows ? 1 : 0);
    for (size_t i = 0; i < m->nout; i++)
        m->out[i].row = bytes_from(&m->out[i].type, m->rows ? 1 : 0);
    for (size_t i = 0; m->rows && i < m->nin; i++)
        if ((m->at[i] = malloc(m->in[i].row * (size_t)m->most + 1)) == NULL) {
            snprintf(error, TEXT, "no memory");
            return false;
        }
    return true;
}

bool model_open(model *m, const settings *s, char *error)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.threads = s->threads;
    cfg.memory_limit = (size_t)s->memory;
    memset(m, 0, sizeof *m);
    if (dc_open(&cfg, &m->ctx) != DC_OK || dc_load(m->ctx, s->file, &m->fn) != DC_OK) {
        snprintf(error, TEXT, "%s", dc_errmsg(m->ctx));
        return false;
    }
    dc_deadline(m->ctx, s->timeout_ms);
    return describe(m, error);
}

void model_close(model *m)
{
    dc_unload(m->fn);
    dc_close(m->ctx);
    for (size_t i = 0; i < MOST_ARRAYS; i++)
        free(m->at[i]);
}

void request_clear(request *r)
{
    for (size_t i = 0; i < MOST_ARRAYS; i++) {
        free(r->in[i]);
        free(r->out[i]);
        r->in[i] = r->out[i] = NULL;
    }
}

/* The smallest variant with room for so many rows. */
static size_t variant_for(const model *m, int64_t rows)
{
    size_t best = 0;
    int64_t least = INT64_MAX;
    for (size_t v = 0; v < m->variants; v++) {
        int64_t n = rows_of(m, v);
        if (n >= rows && n < least) {
            least = n;
            best = v;
        }
    }
    return best;
}

/* Rows of all requests one behind the other, then zeros. */
static void *gather(model *m, size_t i, request **list, size_t n, int64_t room)
{
    size_t row = m->in[i].row, at = 0;
    if (!m->rows || (n == 1 && list[0]->rows == room))
        return list[0]->in[i];
    for (size_t k = 0; k < n; k++) {
        memcpy((char *)m->at[i] + at, list[k]->in[i], row * (size_t)list[k]->rows);
        at += row * (size_t)list[k]->rows;
    }
    memset((char *)m->at[i] + at, 0, row * (size_t)room - at);
    return m->at[i];
}

static bool scatter(model *m, const dc_array *out, request **list, size_t n)
{
    for (size_t i = 0; i < m->nout; i++) {
        const char *from = out[i].data;
        for (size_t k = 0; k < n; k++) {
            size_t bytes = m->rows ? m->out[i].row * (size_t)list[k]->rows : out[i].bytes;
            if ((list[k]->out[i] = malloc(bytes + 1)) == NULL)
                return false;
            memcpy(list[k]->out[i], from, bytes);
            from += bytes;
        }
    }
    return true;
}

static void refuse(model *m, request **list, size_t n, dc_status why)
{
    if (why == DC_E_STATE)
        m->torn = true;
    for (size_t k = 0; k < n; k++) {
        list[k]->code = why == DC_E_VALUE || why == DC_E_TYPE ? 400
                        : why == DC_E_STOPPED                 ? 504
                        : why == DC_E_STATE                   ? 503
                                                              : 500;
        snprintf(list[k]->error, TEXT, "%s", why == DC_E_NOMEM ? "no memory" : dc_errmsg(m->ctx));
        list[k]->error[strcspn(list[k]->error, "\n")] =
            0; /* the sentence, without hints for who wrote the function */
    }
}

void model_run(model *m, request **list, size_t n)
{
    dc_array in[MOST_ARRAYS], out[MOST_ARRAYS] = {{0}};
    int64_t rows = 0;
    for (size_t k = 0; k < n; k++)
        rows += list[k]->rows;
    size_t variant = m->rows ? variant_for(m, rows) : list[0]->variant;
    for (size_t i = 0; i < m->nin; i++) {
        dc_function_argument(m->fn, variant, i, NULL, &in[i]);
        in[i].data = gather(m, i, list, n, m->rows ? in[i].dim[0] : 1);
    }
    dc_status status = dc_call(m->fn, in, m->nin, out, m->nout);
    if (status == DC_OK && !scatter(m, out, list, n))
        status = DC_E_NOMEM;
    if (status == DC_OK) {
        for (size_t k = 0; k < n; k++)
            list[k]->code = 200;
    } else if (n > 1 && status == DC_E_VALUE) { /* the data of one of them: each by itself */
        for (size_t k = 0; k < n; k++)
            model_run(m, &list[k], 1);
    } else {
        refuse(m, list, n, status);
    }
}
