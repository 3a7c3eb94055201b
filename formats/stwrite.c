/* Writing safetensors (formats/safetensors.h). */
#include "core/base/outfile.h"
#include "formats/json.h"
#include "formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8, ALIGN = 64, MOST_HEADER = 100000000 };

typedef struct writing {
    dc_job *job;
    const char *path;
    const dc_st_item *item;
    uint32_t ncommand;
    dc_st_text *text; /* sorted */
    uint32_t ntext;
    uint32_t *order;           /* of items, as they are written */
    const dc_st_item **sorted; /* items as they are written */
    dc_text header;
} writing;

static int by_size_and_name(const void *x, const void *y)
{
    const dc_st_item *a = *(dc_st_item *const *)x, *b = *(dc_st_item *const *)y;
    const size_t m = dc_dtype_size((dc_dtype)a->type.dtype);
    const size_t n = dc_dtype_size((dc_dtype)b->type.dtype);
    return m != n ? (m < n) - (m > n) : strcmp(a->name, b->name);
}

static int by_name(const void *x, const void *y)
{
    const dc_st_item *a = *(dc_st_item *const *)x, *b = *(dc_st_item *const *)y;
    return strcmp(a->name, b->name);
}

static int by_key(const void *x, const void *y)
{
    const dc_st_text *a = x, *b = y;
    return strcmp(a->key, b->key);
}

static dc_status refuse_name(const writing *w, const char *what, const char *name)
{
    return dc_failf(w->job, DC_ERR_ARG, NULL, "%s '%.60s' %s", what, name,
                    strcmp(name, "__metadata__") == 0
                        ? "has a name that the format keeps for itself"
                        : "occurs twice");
}

/* Items in the order of the file; each name once. */
static dc_status sort(writing *w, const dc_st_text *text)
{
    dc_arena *a = &w->job->scratch;
    w->sorted = DC_NEW_ARRAY(a, const dc_st_item *, w->ncommand + 1);
    w->text = DC_NEW_ARRAY(a, dc_st_text, w->ntext + 1);
    for (uint32_t i = 0; i < w->ncommand; i++)
        w->sorted[i] = &w->item[i];
    qsort(w->sorted, w->ncommand, sizeof *w->sorted, by_name);
    for (uint32_t i = 0; i < w->ncommand; i++)
        if (strcmp(w->sorted[i]->name, "__metadata__") == 0 ||
            (i > 0 && strcmp(w->sorted[i - 1]->name, w->sorted[i]->name) == 0))
            return refuse_name(w, "tensor", w->sorted[i]->name);
    qsort(w->sorted, w->ncommand, sizeof *w->sorted, by_size_and_name);
    if (w->ntext > 0)
        memcpy(w->text, text, w->ntext * sizeof *text);
    qsort(w->text, w->ntext, sizeof *w->text, by_key);
    for (uint32_t i = 1; i < w->ntext; i++)
        if (strcmp(w->text[i - 1].key, w->text[i].key) == 0)
            return refuse_name(w, "metadata", w->text[i].key);
    return DC_OK;
}

static dc_status print_string(writing *w, const char *s)
{
    if (dc_json_print(&w->header, s))
        return DC_OK;
    return dc_failf(w->job, DC_ERR_ARG, NULL, "a name or a text of metadata is not UTF-8");
}

static dc_status print_metadata(writing *w)
{
    dc_text_puts(&w->header, "\"__metadata__\":{");
    for (uint32_t i = 0; i < w->ntext; i++) {
        dc_text_puts(&w->header, i > 0 ? "," : "");
        DC_TRY(print_string(w, w->text[i].key));
        dc_text_puts(&w->header, ":");
        DC_TRY(print_string(w, w->text[i].value));
    }
    dc_text_puts(&w->header, "}");
    return DC_OK;
}

static dc_status print_item(writing *w, const dc_st_item *item, int64_t *at)
{
    const int64_t bytes = (int64_t)dc_type_bytes(&item->type);
    DC_TRY(print_string(w, item->name));
    dc_text_printf(&w->header, ":{\"dtype\":\"%s\",\"shape\":[",
                   item->as != NULL ? item->as : dc_safetensors_dtype((dc_dtype)item->type.dtype));
    for (int i = 0; i < item->type.rank; i++)
        dc_text_printf(&w->header, "%s%" PRId64, i > 0 ? "," : "", item->type.dim[i]);
    if (!dc_add_ok(*at, bytes, at))
        return dc_failf(w->job, DC_ERR_ARG, NULL, "too much for one file");
    dc_text_printf(&w->header, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", *at - bytes, *at);
    return DC_OK;
}

/* Padded with blanks, so that data begins aligned. */
static dc_status print_header(writing *w)
{
    int64_t at = 0;
    dc_text_puts(&w->header, "{");
    if (w->ntext > 0)
        DC_TRY(print_metadata(w));
    for (uint32_t i = 0; i < w->ncommand; i++) {
        DC_TRY(dc_job_ended(w->job));
        dc_text_puts(&w->header, i > 0 || w->ntext > 0 ? "," : "");
        DC_TRY(print_item(w, w->sorted[i], &at));
    }
    dc_text_puts(&w->header, "}");
    while ((w->header.n + LENGTH) % ALIGN != 0)
        dc_text_puts(&w->header, " ");
    if (w->header.n > MOST_HEADER)
        return dc_failf(w->job, DC_ERR_ARG, NULL, "names and metadata take more than %d bytes",
                        MOST_HEADER);
    return DC_OK;
}

static dc_status write_item(const writing *w, dc_outfile *out, uint32_t i, dc_st_fetch *fetch,
                            void *ctx)
{
    const size_t bytes = dc_type_bytes(&w->item[i].type);
    for (size_t at = 0, n; at < bytes; at += n) {
        const void *from;
        n = bytes - at < DC_ST_PIECE ? bytes - at : DC_ST_PIECE;
        DC_TRY(fetch(w->job, ctx, i, at, n, &from));
        DC_TRY(dc_outfile_write(out, from, n));
    }
    return DC_OK;
}

dc_status dc_safetensors_begin(dc_job *j, const char *path, const dc_st_item *item,
                               uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                               dc_st_fetch *fetch, void *ctx, dc_outfile **out)
{
    writing *w = DC_NEW(&j->scratch, writing);
    unsigned char length[LENGTH];
    *w = (writing){.job = j, .path = path, .item = item, .ncommand = ncommand, .ntext = ntext};
    dc_job_defer_text(j, &w->header);
    DC_TRY(sort(w, text));
    DC_TRY(print_header(w));
    for (int i = 0; i < LENGTH; i++)
        length[i] = (unsigned char)((uint64_t)w->header.n >> 8 * i);
    DC_TRY(dc_outfile_open(j, path, out));
    DC_TRY(dc_outfile_write(*out, length, sizeof length));
    DC_TRY(dc_outfile_write(*out, w->header.s, w->header.n));
    for (uint32_t i = 0; i < ncommand; i++)
        DC_TRY(write_item(w, *out, (uint32_t)(w->sorted[i] - item), fetch, ctx));
    return DC_OK;
}

dc_status dc_safetensors_write(dc_job *j, const char *path, const dc_st_item *item,
                               uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                               dc_st_fetch *fetch, void *ctx)
{
    dc_outfile *out;
    DC_TRY(dc_safetensors_begin(j, path, item, ncommand, text, ntext, fetch, ctx, &out));
    return dc_outfile_commit(out);
}
