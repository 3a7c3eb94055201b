/* Safetensors as a file of tensors (formats/tensor_file.h). */
#include "formats/safetensors.h"
#include "formats/tensor_formats.h"

#include <string.h>

static void close_file(void *file)
{
    dc_safetensors_close(file);
}

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    uint32_t count;
    const dc_st_file *f = file;
    return dc_safetensors_read(f, j, &dc_safetensors_tensors(f, &count)[t->index], from, n, to);
}

static dc_status unchanged(const void *file, dc_job *j)
{
    return dc_safetensors_unchanged(file, j);
}

static const dc_tensor_file_ops ops = {"safetensors", close_file, read_bytes,
                                       unchanged,     NULL,       NULL};

/* Floats of 8 bits: dtypes that are read as others. */
static const dc_packing *packing_of(const dc_st_tensor *t)
{
    const char *name =
        t->unread != NULL && t->why == NULL ? dc_safetensors_packing(t->unread) : NULL;
    return name != NULL ? dc_packing_find(name) : NULL;
}

static dc_file_tensor tensor_of(const dc_st_tensor *t, uint32_t index)
{
    dc_file_tensor out = {.name = t->name, .type = t->type, .at = t->at, .bytes = t->bytes};
    out.index = index;
    out.packing = packing_of(t);
    out.asks = out.packing != NULL;
    out.unread = t->unread != NULL && out.packing == NULL;
    out.why = t->why;
    out.format = t->unread != NULL ? t->unread : dc_safetensors_dtype((dc_dtype)t->type.dtype);
    if (out.packing != NULL)
        out.type.dtype = DC_F32;
    return out;
}

typedef struct lists {
    dc_file_tensors tensor;
    dc_meta_entries entry;
} lists;

static void free_lists(void *at)
{
    lists *l = at;
    DC_VEC_FREE(l->tensor);
    DC_VEC_FREE(l->entry);
}

dc_status dc_safetensors_open_file(dc_job *j, const char *path, dc_tensor_file **out)
{
    dc_st_file *f;
    uint32_t n;
    lists *l = DC_NEW(&j->scratch, lists);
    DC_TRY(dc_safetensors_open(j, path, &f));
    dc_safetensors_defer(j, f);
    dc_job_defer(j, free_lists, l);
    const dc_st_tensor *t = dc_safetensors_tensors(f, &n);
    for (uint32_t i = 0; i < n; i++)
        DC_PUSH(l->tensor, tensor_of(&t[i], i));
    const dc_st_text *text = dc_safetensors_texts(f, &n);
    for (uint32_t i = 0; i < n; i++) {
        const dc_meta v = {.kind = DC_META_TEXT, .text = text[i].value, .n = strlen(text[i].value)};
        DC_PUSH(l->entry, ((dc_meta_entry){text[i].key, v}));
    }
    DC_TRY(dc_tensor_file_make(j, path, &ops, f, &l->tensor, &l->entry, out));
    dc_job_keep(j, l);
    dc_job_keep(j, f);
    return DC_OK;
}
