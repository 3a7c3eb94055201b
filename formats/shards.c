/*
 * Models in several files, safetensors or PyTorch's, with an index: {"metadata": {...}, "weight_map": {"tensor": "file", ...}}
 * (https://huggingface.co/docs/transformers/big_models). The files lie beside it. What the index does not name is not there.
 */
#define _GNU_SOURCE
#include "core/base/path.h"
#include "formats/infile.h"
#include "formats/json.h"
#include "formats/tensor_formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_INDEX = 1 << 28 };

typedef struct place {
    const char *name, *file;
} place;

typedef struct shards {
    char *path;
    char *text; /* of the index, decoded where it lies */
    size_t n;
    DC_VEC(place) place;
    DC_VEC(dc_tensor_file *) part;
} shards;

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, s->path, __VA_ARGS__)

static void close_shards(void *file)
{
    shards *s = file;
    for (uint32_t i = 0; i < s->part.n; i++)
        dc_tensor_file_close(s->part.at[i]);
    DC_VEC_FREE(s->part);
    DC_VEC_FREE(s->place);
    dc_xfree(s->text);
    dc_xfree(s->path);
    dc_xfree(s);
}

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    const shards *s = file;
    const dc_tensor_file *part = s->part.at[t->index];
    return dc_tensor_file_stretch(part, j, dc_tensor_file_find(part, t->name), from, n, to);
}

static dc_status unchanged(const void *file, dc_job *j)
{
    const shards *s = file;
    for (uint32_t i = 0; i < s->part.n; i++)
        DC_TRY(dc_tensor_file_unchanged(s->part.at[i], j));
    return DC_OK;
}

static const dc_tensor_file_ops ops = {"safetensors", close_shards, read_bytes, unchanged, NULL};

/* ---- the index -------------------------------------------------------------------------------- */

typedef struct reading {
    shards *s;
    dc_job *job;
    dc_json json;
    bool has_map;
    dc_file_tensors tensor;
    dc_meta_entries entry;
} reading;

static void free_reading(void *at)
{
    reading *r = at;
    DC_VEC_FREE(r->tensor);
    DC_VEC_FREE(r->entry);
}

static dc_status refuse_json(const reading *r)
{
    const shards *s = r->s;
    dc_job *j = r->job;
    return REFUSE("index: %s", r->json.why);
}

/* A text or a whole number; anything else is stepped over. */
static dc_status read_metadata(reading *r, char *key)
{
    dc_json *json = &r->json;
    dc_meta v = {.kind = DC_META_TEXT};
    char *text;
    int64_t whole;
    const char begin = dc_json_peek(json);
    if (begin == '"') {
        if (!dc_json_string(json, &text))
            return refuse_json(r);
        v.text = text;
        v.n = strlen(text);
    } else if (begin >= '0' && begin <= '9' && dc_json_try_whole(json, &whole)) {
        v.kind = DC_META_I64;
        v.i = whole;
    } else {
        return dc_json_skip(json) ? DC_OK : refuse_json(r);
    }
    DC_PUSH(r->entry, ((dc_meta_entry){key, v}));
    return DC_OK;
}

static dc_status read_place(reading *r, char *key)
{
    const shards *s = r->s;
    dc_job *j = r->job;
    char *file;
    if (!dc_json_string(&r->json, &file))
        return refuse_json(r);
    if (file[0] == '\0' || strchr(file, '/') != NULL || strcmp(file, ".") == 0 ||
        strcmp(file, "..") == 0)
        return REFUSE("index: tensor '%s' is in '%s', which is no name of a file beside it",
                      dc_show_name(key).s, dc_show_name(file).s);
    DC_PUSH(r->s->place, ((place){key, file}));
    return DC_OK;
}

/* An object, each of whose values `read` reads. */
static dc_status read_object(reading *r, dc_status (*read)(reading *r, char *key))
{
    char *key;
    if (!dc_json_expect(&r->json, '{'))
        return refuse_json(r);
    if (dc_json_accept(&r->json, '}'))
        return DC_OK;
    do {
        DC_TRY(dc_job_ended(r->job));
        if (!dc_json_string(&r->json, &key) || !dc_json_expect(&r->json, ':'))
            return refuse_json(r);
        DC_TRY(read(r, key));
    } while (dc_json_accept(&r->json, ','));
    return dc_json_expect(&r->json, '}') ? DC_OK : refuse_json(r);
}

static dc_status read_field(reading *r, char *key)
{
    if (strcmp(key, "weight_map") == 0 && !r->has_map) {
        r->has_map = true;
        return read_object(r, read_place);
    }
    if (strcmp(key, "metadata") == 0 && r->entry.n == 0)
        return read_object(r, read_metadata);
    return dc_json_skip(&r->json) ? DC_OK : refuse_json(r);
}

/* ---- the files -------------------------------------------------------------------------------- */

static int by_file(const void *x, const void *y)
{
    const place *a = x, *b = y;
    const int order = strcmp(a->file, b->file);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static dc_status open_part(shards *s, dc_job *j, const char *file)
{
    dc_tensor_file *f;
    const char *slash = strrchr(s->path, '/');
    const int folder = slash != NULL ? (int)(slash - s->path) + 1 : 0;
    DC_ROOM(s->part);
    DC_TRY(dc_tensor_file_open_part(
        j, dc_arena_printf(&j->scratch, "%.*s%s", folder, s->path, file), &f));
    s->part.at[s->part.n++] = f;
    return DC_OK;
}

static dc_status find_tensors(reading *r)
{
    shards *s = r->s;
    dc_job *j = r->job;
    if (s->place.n > 1)
        qsort(s->place.at, s->place.n, sizeof *s->place.at, by_file);
    for (uint32_t i = 0; i < s->place.n; i++) {
        const place *p = &s->place.at[i];
        if (i == 0 || strcmp(p->file, s->place.at[i - 1].file) != 0)
            DC_TRY(open_part(s, j, p->file));
        const dc_file_tensor *t = dc_tensor_file_find(s->part.at[s->part.n - 1], p->name);
        if (t == NULL)
            return REFUSE("index: file '%s' has no tensor '%s'", dc_show_name(p->file).s,
                          dc_show_name(p->name).s);
        dc_file_tensor of = *t;
        of.index = s->part.n - 1;
        DC_PUSH(r->tensor, of);
    }
    return DC_OK;
}

static dc_status open_shards(shards *s, dc_job *j, dc_tensor_file **out)
{
    reading *r = DC_NEW(&j->scratch, reading);
    r->s = s;
    r->job = j;
    dc_job_defer(j, free_reading, r);
    DC_TRY(dc_infile_all(j, s->path, MOST_INDEX, &s->text, &s->n));
    dc_json_init(&r->json, s->text, s->n);
    DC_TRY(read_object(r, read_field));
    if (!dc_json_end(&r->json))
        return refuse_json(r);
    if (!r->has_map)
        return REFUSE("no safetensors file and no index of such files: it has no 'weight_map'");
    DC_TRY(find_tensors(r));
    DC_TRY(dc_tensor_file_make(j, s->path, &ops, s, &r->tensor, &r->entry, out));
    dc_job_keep(j, r);
    return DC_OK;
}

dc_status dc_shards_open(dc_job *j, const char *path, dc_tensor_file **out)
{
    shards *s = dc_xalloc(sizeof *s);
    dc_job_defer(j, close_shards, s);
    s->path = dc_xalloc(strlen(path) + 1);
    strcpy(s->path, path);
    return dc_job_settle(j, s, open_shards(s, j, out));
}

dc_status dc_shards_open_folder(dc_job *j, const char *folder, dc_tensor_file **out)
{
    static const struct {
        const char *name;
        bool index;
    } known[] = {
        {"model.safetensors.index.json", true},
        {"model.safetensors", false},
        {"pytorch_model.bin.index.json", true},
        {"pytorch_model.bin", false},
    };
    for (size_t i = 0; i < DC_COUNTOF(known); i++) {
        const char *path = dc_arena_printf(&j->scratch, "%s/%s", folder, known[i].name);
        bool there;
        DC_TRY(dc_path_exists(j, path, &there));
        if (there)
            return known[i].index ? dc_shards_open(j, path, out)
                                  : dc_tensor_file_open_part(j, path, out);
    }
    return dc_path_fail(j, DC_ERR_FILE, folder, "is a directory without %s or %s", known[0].name,
                        known[1].name);
}
