/*
 * Models in several files, safetensors or PyTorch's, with an index: {"metadata": {...}, "weight_map": {"tensor": "file", ...}}
 * (https://huggingface.co/docs/transformers/big_models). The files lie beside it. What the index does not name is not there.
 *
 * What ranks have written (stdlib/rank_files.lua) may be in parts, which are equal in size: of a tensor NAME the metadata
 * "deepc.whole:NAME" have the sizes, "784,256", and "NAME@0,128" is the part that begins at [0, 128]. It is one tensor here.
 */
#define _GNU_SOURCE
#include "core/base/digits.h"
#include "core/base/path.h"
#include "core/base/sort.h"
#include "formats/box.h"
#include "formats/infile.h"
#include "formats/json.h"
#include "formats/tensor_formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_INDEX = 1 << 28 };

typedef struct place {
    const char *name, *file;
} place;

/* A part of a tensor. */
typedef struct fragment {
    uint32_t of, file; /* number of the joined tensor; of the file */
    uint64_t number;   /* among the parts, in the order of where they begin */
    const dc_file_tensor *t;
    dc_box box;
} fragment;

typedef struct joined {
    const char *name, *sizes; /* "784,256" */
    int rank;
    int64_t dim[DC_MAX_RANK];
    uint32_t first, n; /* of the fragments */
    size_t element;    /* its bytes */
} joined;

typedef struct shards {
    char *path;
    char *text; /* of the index, decoded where it lies */
    size_t n;
    DC_VEC(place) place;
    DC_VEC(dc_tensor_file *) part;
    DC_VEC(joined) joined;     /* by name */
    DC_VEC(fragment) fragment; /* by tensor and number */
} shards;

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, s->path, __VA_ARGS__)

static void close_shards(void *file)
{
    shards *s = file;
    for (uint32_t i = 0; i < s->part.n; i++)
        dc_tensor_file_close(s->part.at[i]);
    DC_VEC_FREE(s->part);
    DC_VEC_FREE(s->place);
    DC_VEC_FREE(s->joined);
    DC_VEC_FREE(s->fragment);
    dc_xfree(s->text);
    dc_xfree(s->path);
    dc_xfree(s);
}

/* Elements lo to hi - 1 of a part, which are some of those from `from` on; by way of memory of its own where they scatter. */
static dc_status read_fragment(const shards *s, dc_job *j, const fragment *f, size_t element,
                               size_t from, size_t lo, size_t hi, char *to)
{
    size_t i, at, n;
    dc_box_walk w = dc_box_begin(&f->box, lo, hi);
    char *there = NULL;
    if (!dc_box_next(&w, &i, &at, &n))
        return DC_OK;
    if (n == hi - lo)
        return dc_tensor_file_stretch(s->part.at[f->file], j, f->t, lo * element, n * element,
                                      to + (at - from) * element);
    there = dc_try_realloc(NULL, (hi - lo) * element + 1);
    if (there == NULL)
        return dc_fail_memory(j, (hi - lo) * element);
    dc_job_defer(j, dc_xfree, there);
    DC_TRY(dc_tensor_file_stretch(s->part.at[f->file], j, f->t, lo * element, (hi - lo) * element,
                                  there));
    do
        memcpy(to + (at - from) * element, there + (i - lo) * element, n * element);
    while (dc_box_next(&w, &i, &at, &n));
    dc_job_keep(j, there);
    dc_xfree(there);
    return DC_OK;
}

static dc_status read_joined(const shards *s, dc_job *j, const joined *x, size_t from, size_t n,
                             char *to)
{
    from /= x->element;
    n /= x->element;
    for (uint32_t i = 0; i < x->n; i++) {
        const fragment *f = &s->fragment.at[x->first + i];
        DC_TRY(read_fragment(s, j, f, x->element, from, dc_box_below(&f->box, from),
                             dc_box_below(&f->box, from + n), to));
    }
    return DC_OK;
}

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    const shards *s = file;
    if (t->parts > 0)
        return read_joined(s, j, &s->joined.at[t->index], from, n, to);
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

static const dc_tensor_file_ops ops = {"safetensors", close_shards, read_bytes,
                                       unchanged,     NULL,         NULL};

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
    DC_TRY(dc_sort(j, s->place.at, s->place.n, sizeof *s->place.at, by_file));
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

/* ---- tensors in parts -------------------------------------------------------------------------- */

#define WHOLE "deepc.whole:"

static int by_name(const void *x, const void *y)
{
    const joined *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static int by_number(const void *x, const void *y)
{
    const fragment *a = x, *b = y;
    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* "784,256"; false: it is no list of sizes. */
static bool read_sizes(const char *text, int *rank, int64_t *dim)
{
    for (*rank = 0; *rank < DC_MAX_RANK; text++) {
        const char *end = strchr(text, ',');
        uint64_t n;
        if (dc_digits_unsigned(&text, end, INT64_MAX, &n) != DC_DIGITS_OK ||
            (*text != ',' && *text != '\0'))
            return false;
        dim[(*rank)++] = (int64_t)n;
        if (*text == '\0')
            return true;
    }
    return false;
}

/* What the metadata say of whole tensors is taken out of them. */
static dc_status find_wholes(reading *r)
{
    shards *s = r->s;
    dc_job *j = r->job;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->entry.n; i++) {
        const dc_meta_entry *e = &r->entry.at[i];
        joined x = {.name = e->key + strlen(WHOLE)};
        if (strncmp(e->key, WHOLE, strlen(WHOLE)) != 0 || e->value.kind != DC_META_TEXT) {
            r->entry.at[kept++] = *e;
            continue;
        }
        if (!read_sizes(e->value.text, &x.rank, x.dim))
            return REFUSE("index: the sizes of '%s' are '%.40s'", dc_show_name(x.name).s,
                          dc_show_name(e->value.text).s);
        x.sizes = e->value.text;
        DC_PUSH(s->joined, x);
    }
    r->entry.n = kept;
    DC_TRY(dc_sort(j, s->joined.at, s->joined.n, sizeof *s->joined.at, by_name));
    return DC_OK;
}

/* The tensor that "NAME@0,128" is a part of; NULL: it is none. */
static const joined *whole_of(reading *r, const char *name)
{
    const shards *s = r->s;
    const char *at = strrchr(name, '@');
    if (at == NULL || s->joined.n == 0)
        return NULL;
    const joined key = {.name = dc_arena_printf(&r->job->scratch, "%.*s", (int)(at - name), name)};
    return bsearch(&key, s->joined.at, s->joined.n, sizeof key, by_name);
}

static dc_status add_fragment(reading *r, const joined *x, const dc_file_tensor *t)
{
    shards *s = r->s;
    dc_job *j = r->job;
    fragment f = {.of = (uint32_t)(x - s->joined.at), .file = t->index};
    f.t = dc_tensor_file_find(s->part.at[t->index], t->name);
    f.box.rank = x->rank;
    memcpy(f.box.whole, x->dim, sizeof x->dim);
    memcpy(f.box.dim, t->type.dim, sizeof f.box.dim);
    int64_t parts = 1;
    int rank;
    bool fits = read_sizes(strrchr(t->name, '@') + 1, &rank, f.box.start) && rank == x->rank &&
                t->type.rank == x->rank;
    for (int k = 0; k < x->rank && fits; k++) {
        const int64_t size = f.box.dim[k];
        fits = size > 0 && x->dim[k] % size == 0 && f.box.start[k] % size == 0 &&
               f.box.start[k] < x->dim[k];
        fits = fits && dc_mul_ok(parts, x->dim[k] / size, &parts); /* so no number overflows */
        if (fits)
            f.number = f.number * (uint64_t)(x->dim[k] / size) + (uint64_t)(f.box.start[k] / size);
    }
    if (!fits)
        return REFUSE("'%s' is [%s], of which '%s' is no part", dc_show_name(x->name).s, x->sizes,
                      dc_show_name(t->name).s);
    DC_PUSH(s->fragment, f);
    return DC_OK;
}

static dc_status refuse_gap(const shards *s, dc_job *j, const joined *x, uint64_t number)
{
    const dc_box *b = &s->fragment.at[x->first].box;
    char text[DC_MAX_RANK * 22] = "";
    int64_t start[DC_MAX_RANK];
    for (int k = x->rank; k-- > 0;) {
        const uint64_t parts = (uint64_t)(x->dim[k] / b->dim[k]);
        start[k] = (int64_t)(number % parts) * b->dim[k];
        number /= parts;
    }
    size_t n = 0;
    for (int k = 0; k < x->rank; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRId64, k > 0 ? "," : "", start[k]);
    return REFUSE("'%s' is [%s], of which the part '@%s' is missing", dc_show_name(x->name).s,
                  x->sizes, text);
}

/* All parts are there, of one type and size. */
static dc_status check_joined(shards *s, dc_job *j, joined *x, dc_file_tensor *out)
{
    if (x->n == 0)
        return REFUSE("'%s' is [%s], of which there is no part", dc_show_name(x->name).s, x->sizes);
    const fragment *f = &s->fragment.at[x->first];
    uint64_t parts = 1;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (strcmp(f[i].t->format, f->t->format) != 0 ||
            memcmp(f[i].box.dim, f->box.dim, (size_t)x->rank * sizeof f->box.dim[0]) != 0)
            return REFUSE("parts of '%s' are of different types or sizes", dc_show_name(x->name).s);
        if (f[i].number != i)
            return refuse_gap(s, j, x, i);
        bytes += f[i].t->bytes;
    }
    for (int k = 0; k < x->rank; k++)
        parts *= (uint64_t)(x->dim[k] / f->box.dim[k]); /* no overflow: add_fragment */
    if (parts != x->n)
        return refuse_gap(s, j, x, x->n);
    *out = *f->t;
    out->name = x->name;
    out->type.rank = (uint8_t)x->rank;
    memcpy(out->type.dim, x->dim, sizeof x->dim);
    out->bytes = bytes;
    out->index = f->of;
    out->parts = x->n;
    x->element = (size_t)f->t->bytes / dc_box_count(&f->box);
    return DC_OK;
}

static dc_status join_tensors(reading *r)
{
    shards *s = r->s;
    uint32_t kept = 0, at = 0;
    DC_TRY(find_wholes(r));
    if (s->joined.n == 0)
        return DC_OK;
    for (uint32_t i = 0; i < r->tensor.n; i++) {
        const joined *x = whole_of(r, r->tensor.at[i].name);
        if (x == NULL)
            r->tensor.at[kept++] = r->tensor.at[i];
        else
            DC_TRY(add_fragment(r, x, &r->tensor.at[i]));
    }
    r->tensor.n = kept;
    DC_TRY(dc_sort(r->job, s->fragment.at, s->fragment.n, sizeof *s->fragment.at, by_number));
    for (uint32_t i = 0; i < s->joined.n; i++) {
        joined *x = &s->joined.at[i];
        dc_file_tensor t;
        for (x->first = at; at < s->fragment.n && s->fragment.at[at].of == i;)
            at++;
        x->n = at - x->first;
        DC_TRY(check_joined(s, r->job, x, &t));
        DC_PUSH(r->tensor, t);
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
    DC_TRY(join_tensors(r));
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
        DC_TRY(dc_path_exists(j, DC_FOLDER_READ, path, &there));
        if (there)
            return known[i].index ? dc_shards_open(j, path, out)
                                  : dc_tensor_file_open_part(j, path, out);
    }
    return dc_path_fail(j, DC_ERR_FILE, folder, "is a directory without %s or %s", known[0].name,
                        known[1].name);
}
