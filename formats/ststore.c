#include "formats/ststore.h"

dc_status dc_ststore_read(dc_st_file *f, dc_job *j, const dc_st_tensor *t, dc_storage *to)
{
    dc_device *dev = to->rt->device;
    const size_t bytes = dc_type_bytes(&t->type);
    if (dev->ops->host)
        return dc_safetensors_read(f, j, t, 0, bytes, to->mem);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    void *piece = dc_arena_alloc(&j->scratch, DC_ST_PIECE);
    dc_status status = DC_OK;
    for (size_t at = 0, n; at < bytes && status == DC_OK; at += n) {
        n = bytes - at < DC_ST_PIECE ? bytes - at : DC_ST_PIECE;
        status = dc_safetensors_read(f, j, t, at, n, piece);
        if (status == DC_OK)
            status = dev->ops->upload(dev, j, (char *)to->mem + at, piece, n);
    }
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

typedef struct writing {
    dc_device *dev;
    const void *const *mem; /* of each */
    void *piece;            /* where the memory is not the host's */
} writing;

static dc_status fetch(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n,
                       const void **bytes)
{
    const writing *w = ctx;
    const char *at = (const char *)w->mem[item] + from;
    *bytes = w->dev->ops->host ? at : w->piece;
    return w->dev->ops->host ? DC_OK : w->dev->ops->download(w->dev, j, w->piece, at, n);
}

dc_status dc_ststore_write(dc_job *j, dc_device *dev, const char *path, const dc_st_item *item,
                           const void *const *mem, uint32_t ncommand, const dc_st_text *text,
                           uint32_t ntext)
{
    writing w = {.dev = dev, .mem = mem};
    if (!dev->ops->host)
        w.piece = dc_arena_alloc(&j->scratch, DC_ST_PIECE);
    if (dev->ops->finish != NULL)
        DC_TRY(dev->ops->finish(dev, j));
    return dc_safetensors_write(j, path, item, ncommand, text, ntext, fetch, &w);
}
