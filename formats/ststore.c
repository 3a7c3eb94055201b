#include "formats/ststore.h"

#include "core/base/outfile.h"
#include "formats/json.h"

#include <inttypes.h>
#include <string.h>

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
    const dc_st_memory *mem; /* of each */
    void *piece;             /* where the memory is not the host's */
} writing;

/* What was begun on the devices has ended then. */
static dc_status begin_writing(dc_job *j, writing *w, const dc_st_memory *mem, uint32_t n)
{
    *w = (writing){.mem = mem};
    for (uint32_t i = 0; i < n; i++) {
        dc_device *dev = mem[i].dev;
        if (!dev->ops->host && w->piece == NULL)
            w->piece = dc_arena_alloc(&j->scratch, DC_ST_PIECE);
        if (dev->ops->finish != NULL && (i == 0 || dev != mem[i - 1].dev))
            DC_TRY(dev->ops->finish(dev, j));
    }
    return DC_OK;
}

static dc_status fetch(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n,
                       const void **bytes)
{
    const writing *w = ctx;
    dc_device *dev = w->mem[item].dev;
    const char *at = (const char *)w->mem[item].at + from;
    *bytes = dev->ops->host ? at : w->piece;
    return dev->ops->host ? DC_OK : dev->ops->download(dev, j, w->piece, at, n);
}

dc_status dc_ststore_write(dc_job *j, const char *path, const dc_st_item *item,
                           const dc_st_memory *mem, uint32_t ncommand, const dc_st_text *text,
                           uint32_t ntext)
{
    writing w;
    DC_TRY(begin_writing(j, &w, mem, ncommand));
    return dc_safetensors_write(j, path, item, ncommand, text, ntext, fetch, &w);
}

dc_status dc_ststore_write_gguf(dc_job *j, const char *path, const dc_gguf_item *item,
                                const dc_st_memory *mem, uint32_t n, const dc_gguf_entries *entries)
{
    writing w;
    DC_TRY(begin_writing(j, &w, mem, n));
    return dc_gguf_write(j, path, item, n, entries, fetch, &w);
}

/* ---- in pieces -------------------------------------------------------------------------------- */

typedef struct piece {
    uint32_t first, n; /* of the items */
    const char *path, *name;
    dc_outfile *file;
} piece;

typedef DC_VEC(piece) pieces;

static void sort_by_name(dc_st_item *item, dc_st_memory *mem, uint32_t n)
{
    for (uint32_t gap = n / 2; gap > 0; gap /= 2) /* Shell's: two arrays go together */
        for (uint32_t i = gap; i < n; i++) {
            const dc_st_item moved = item[i];
            const dc_st_memory at = mem[i];
            uint32_t k = i;
            for (; k >= gap && strcmp(item[k - gap].name, moved.name) > 0; k -= gap) {
                item[k] = item[k - gap];
                mem[k] = mem[k - gap];
            }
            item[k] = moved;
            mem[k] = at;
        }
}

/* As many tensors in each as fit. */
static void cut(dc_job *j, const dc_st_item *item, uint32_t n, int64_t most, pieces *out)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t more = (int64_t)dc_type_bytes(&item[i].type);
        if (i == 0 || more > most - bytes) {
            DC_PUSH_IN(&j->scratch, *out, ((piece){.first = i}));
            bytes = 0;
        }
        out->at[out->n - 1].n++;
        bytes += more < most ? more : most;
    }
}

static void name_pieces(dc_job *j, const char *path, pieces *p)
{
    const size_t stem = strlen(path) - strlen(".safetensors.index.json");
    const char *slash = strrchr(path, '/');
    for (uint32_t i = 0; i < p->n; i++) {
        p->at[i].path =
            dc_arena_printf(&j->scratch, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".safetensors",
                            (int)stem, path, i + 1, p->n);
        p->at[i].name = p->at[i].path + (slash != NULL ? slash - path + 1 : 0);
    }
}

static dc_status print_pair(dc_job *j, dc_text *t, bool first, const char *key, const char *value)
{
    dc_text_puts(t, first ? "\n" : ",\n");
    dc_text_puts(t, "    ");
    bool ok = dc_json_print(t, key);
    dc_text_puts(t, ": ");
    ok = ok && dc_json_print(t, value);
    return ok ? DC_OK : dc_failf(j, DC_ERR_ARG, NULL, "a name or a text of metadata is not UTF-8");
}

static dc_status print_index(dc_job *j, dc_text *t, const dc_st_item *item, const pieces *p,
                             const dc_st_text *text, uint32_t ntext)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->at[i].n; k++)
            total += (int64_t)dc_type_bytes(&item[p->at[i].first + k].type);
    dc_text_printf(t, "{\n  \"metadata\": {\n    \"total_size\": %" PRId64, total);
    for (uint32_t i = 0; i < ntext; i++)
        DC_TRY(print_pair(j, t, false, text[i].key, text[i].value));
    dc_text_puts(t, "\n  },\n  \"weight_map\": {");
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->at[i].n; k++)
            DC_TRY(print_pair(j, t, i + k == 0, item[p->at[i].first + k].name, p->at[i].name));
    dc_text_puts(t, "\n  }\n}\n");
    return DC_OK;
}

dc_status dc_ststore_write_pieces(dc_job *j, const char *path, dc_st_item *item, dc_st_memory *mem,
                                  uint32_t ncommand, const dc_st_text *text, uint32_t ntext,
                                  int64_t piece_bytes)
{
    pieces p = {0};
    dc_outfile *index;
    dc_text *t = dc_job_text(j);
    sort_by_name(item, mem, ncommand);
    cut(j, item, ncommand, piece_bytes, &p);
    name_pieces(j, path, &p);
    DC_TRY(print_index(j, t, item, &p, text, ntext));
    for (uint32_t i = 0; i < p.n; i++) {
        piece *one = &p.at[i];
        writing *w = DC_NEW(&j->scratch, writing);
        DC_TRY(begin_writing(j, w, mem + one->first, one->n));
        DC_TRY(dc_safetensors_begin(j, one->path, item + one->first, one->n, NULL, 0, fetch, w,
                                    &one->file));
    }
    DC_TRY(dc_outfile_open(j, path, &index));
    DC_TRY(dc_outfile_write(index, t->s, t->n));
    for (uint32_t i = 0; i < p.n; i++)
        DC_TRY(dc_outfile_commit(p.at[i].file));
    DC_TRY(dc_outfile_commit(index));
    dc_job_text_end(j, t);
    return DC_OK;
}
