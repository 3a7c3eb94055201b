#include "core/base/outfile.h"
#include "formats/convert.h"
#include "formats/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 32, CHUNK = 1 << 13 }; /* elements that are converted at once */

typedef struct writing {
    dc_job *job;
    const dc_gguf_item *item;
    const dc_gguf_item **sorted;
    uint32_t n;
    dc_outfile *file;
    uint64_t at; /* written so far */
} writing;

static dc_status put(writing *w, const void *bytes, size_t n)
{
    w->at += n;
    return dc_outfile_write(w->file, bytes, n);
}

static dc_status put_number(writing *w, uint64_t v, size_t n)
{
    unsigned char b[8];
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(v >> 8 * i);
    return put(w, b, n);
}

static dc_status pad(writing *w)
{
    static const char zeros[ALIGN] = {0};
    return put(w, zeros, dc_align_up((size_t)w->at, ALIGN) - (size_t)w->at);
}

static size_t bytes_of(const dc_gguf_item *item)
{
    const size_t n = (size_t)dc_type_count(&item->type);
    return item->packing != NULL ? dc_packing_bytes(item->packing, n)
                                 : n * dc_dtype_size(item->dtype);
}

/* ---- the header ------------------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
    const dc_gguf_item *a = *(dc_gguf_item *const *)x, *b = *(dc_gguf_item *const *)y;
    return strcmp(a->name, b->name);
}

static dc_status check_item(dc_job *j, const dc_gguf_item *item)
{
    char type[DC_TYPE_TEXT];
    const int rank = item->type.rank;
    dc_type_print(&item->type, type, sizeof type);
    if (dc_gguf_number(item->dtype, item->packing) < 0)
        return dc_failf(j, DC_ERR_ARG, "save", "'%.60s' is %.80s, a type that GGUF does not have",
                        item->name, type);
    if (rank > DC_GGUF_AXES)
        return dc_failf(j, DC_ERR_ARG, "save", "'%.60s' is %.80s: GGUF has %d axes at most",
                        item->name, type, DC_GGUF_AXES);
    if (strlen(item->name) > DC_GGUF_NAME)
        return dc_failf(j, DC_ERR_ARG, "save",
                        "the name '%.80s' has %zu bytes, GGUF has %d at most", item->name,
                        strlen(item->name), DC_GGUF_NAME);
    const int64_t row = rank > 0 ? item->type.dim[rank - 1] : 1;
    if (item->packing != NULL && row % item->packing->elements != 0)
        return dc_failf(j, DC_ERR_ARG, "save", "'%.60s' is %.80s: rows of %s are multiples of %u",
                        item->name, type, item->packing->name, item->packing->elements);
    return DC_OK;
}

static dc_status sort(writing *w)
{
    w->sorted = DC_NEW_ARRAY(&w->job->scratch, const dc_gguf_item *, w->n + 1);
    for (uint32_t i = 0; i < w->n; i++) {
        DC_TRY(check_item(w->job, &w->item[i]));
        w->sorted[i] = &w->item[i];
    }
    qsort(w->sorted, w->n, sizeof *w->sorted, by_name);
    for (uint32_t i = 1; i < w->n; i++)
        if (strcmp(w->sorted[i - 1]->name, w->sorted[i]->name) == 0)
            return dc_failf(w->job, DC_ERR_ARG, "save", "tensor '%.60s' occurs twice",
                            w->sorted[i]->name);
    return DC_OK;
}

static dc_status put_item(writing *w, const dc_gguf_item *item, uint64_t *at)
{
    const int rank = item->type.rank;
    DC_TRY(put_number(w, strlen(item->name), 8));
    DC_TRY(put(w, item->name, strlen(item->name)));
    DC_TRY(put_number(w, (uint64_t)rank, 4));
    for (int i = rank; i-- > 0;)
        DC_TRY(put_number(w, (uint64_t)item->type.dim[i], 8));
    DC_TRY(put_number(w, (uint64_t)dc_gguf_number(item->dtype, item->packing), 4));
    DC_TRY(put_number(w, *at, 8));
    *at = dc_align_up((size_t)*at + bytes_of(item), ALIGN);
    return DC_OK;
}

/* ---- elements --------------------------------------------------------------------------------- */

static dc_status refuse_elements(const writing *w, const dc_gguf_item *item)
{
    return dc_failf(w->job, DC_ERR_ARG, "save",
                    "'%.60s' has an element that %s does not hold: %s too large", item->name,
                    item->packing != NULL ? item->packing->name : dc_dtype_name(item->dtype),
                    item->packing != NULL ? "NaN, an infinity or one that is" : "it is");
}

/* Are all that are infinite now infinite before? */
static bool same_infinities(const float *x, const uint16_t *h, uint32_t infinity, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((h[i] & 0x7fffu) == infinity && !isinf(x[i]))
            return false;
    return true;
}

/* CHUNK elements at most of one type to those of the file. */
static dc_status put_chunk(writing *w, const dc_gguf_item *item, const char *from, size_t n)
{
    float x[CHUNK];
    union {
        unsigned char bytes[CHUNK * 8];
        uint16_t half[CHUNK];
        double aligned;
    } to;
    const dc_dtype own = (dc_dtype)item->type.dtype;
    if (item->packing != NULL) {
        dc_convert(own, from, DC_F32, x, n);
        if (!item->packing->pack(x, to.bytes, n / item->packing->elements))
            return refuse_elements(w, item);
        return put(w, to.bytes, dc_packing_bytes(item->packing, n));
    }
    dc_convert(own, from, item->dtype, to.bytes, n);
    if (dc_dtype_is_short(item->dtype)) {
        dc_convert(own, from, DC_F32, x, n);
        if (!same_infinities(x, to.half, item->dtype == DC_F16 ? 0x7c00 : 0x7f80, n))
            return refuse_elements(w, item);
    }
    return put(w, to.bytes, n * dc_dtype_size(item->dtype));
}

static dc_status put_elements(writing *w, uint32_t index, dc_st_fetch *fetch, void *ctx)
{
    const dc_gguf_item *item = &w->item[index];
    const size_t bytes = dc_type_bytes(&item->type),
                 size = dc_dtype_size((dc_dtype)item->type.dtype);
    const bool as_is = item->packing == NULL && item->dtype == (dc_dtype)item->type.dtype;
    for (size_t at = 0, n; at < bytes; at += n) {
        const void *from;
        n = bytes - at < DC_ST_PIECE ? bytes - at : DC_ST_PIECE;
        DC_TRY(fetch(w->job, ctx, index, at, n, &from));
        if (as_is)
            DC_TRY(put(w, from, n));
        for (size_t i = 0, k; i < n / size && !as_is; i += k) {
            k = n / size - i < CHUNK ? n / size - i : CHUNK;
            DC_TRY(put_chunk(w, item, (const char *)from + i * size, k));
        }
    }
    return pad(w);
}

dc_status dc_gguf_write(dc_job *j, const char *path, const dc_gguf_item *item, uint32_t n,
                        const dc_gguf_entries *entries, dc_st_fetch *fetch, void *ctx)
{
    writing w = {.job = j, .item = item, .n = n};
    uint64_t at = 0;
    DC_TRY(sort(&w));
    DC_TRY(dc_outfile_open(j, path, &w.file));
    DC_TRY(put(&w, "GGUF", 4));
    DC_TRY(put_number(&w, 3, 4));
    DC_TRY(put_number(&w, n, 8));
    DC_TRY(put_number(&w, entries->count, 8));
    DC_TRY(put(&w, entries->bytes, entries->n));
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_item(&w, w.sorted[i], &at));
    DC_TRY(pad(&w));
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_elements(&w, (uint32_t)(w.sorted[i] - item), fetch, ctx));
    return dc_outfile_commit(w.file);
}
