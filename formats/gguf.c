/*
 * Reading GGUF.
 *
 * A file is: "GGUF", a version, the numbers of tensors and of metadata, the metadata, the list of tensors, and from the
 * next multiple of the alignment on the data. How long all that stands before the data is nobody says: it is read into
 * memory, twice as much each time, until it has been parsed to its end. Every count is compared with the bytes that are
 * left in the file before anything is kept.
 */
#define _GNU_SOURCE
#include "formats/gguf.h"

#include "core/base/path.h"
#include "core/base/sort.h"
#include "formats/infile.h"
#include "formats/tensor_formats.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIRST = 1 << 20, /* bytes that are read at first */
    DEEPEST = 4,     /* lists in lists */
    ALIGNMENT = 32,  /* unless metadata say another one */
    MOST_ALIGNMENT = 1 << 20,
    LEAST_ENTRY = 8 + 4 + 1, /* bytes of metadata, of a tensor in the list */
    LEAST_TENSOR = 8 + 4 + 4 + 8
};

/* A type of tensors by its number. */
typedef struct ggml_type {
    const char *name;    /* NULL: there is none of this number */
    int dtype;           /* of ours, or -1 */
    const char *packing; /* formats/packing.h, or NULL */
} ggml_type;

static const ggml_type types[] = {
    [0] = {"F32", DC_F32, NULL},  [1] = {"F16", DC_F16, NULL},    [2] = {"Q4_0", -1, "q4_0"},
    [3] = {"Q4_1", -1, "q4_1"},   [6] = {"Q5_0", -1, "q5_0"},     [7] = {"Q5_1", -1, "q5_1"},
    [8] = {"Q8_0", -1, "q8_0"},   [9] = {"Q8_1", -1, NULL},       [10] = {"Q2_K", -1, NULL},
    [11] = {"Q3_K", -1, NULL},    [12] = {"Q4_K", -1, "q4_k"},    [13] = {"Q5_K", -1, "q5_k"},
    [14] = {"Q6_K", -1, "q6_k"},  [15] = {"Q8_K", -1, NULL},      [16] = {"IQ2_XXS", -1, NULL},
    [17] = {"IQ2_XS", -1, NULL},  [18] = {"IQ3_XXS", -1, NULL},   [19] = {"IQ1_S", -1, NULL},
    [20] = {"IQ4_NL", -1, NULL},  [21] = {"IQ3_S", -1, NULL},     [22] = {"IQ2_S", -1, NULL},
    [23] = {"IQ4_XS", -1, NULL},  [24] = {"I8", DC_I8, NULL},     [25] = {"I16", DC_I16, NULL},
    [26] = {"I32", DC_I32, NULL}, [27] = {"I64", DC_I64, NULL},   [28] = {"F64", DC_F64, NULL},
    [29] = {"IQ1_M", -1, NULL},   [30] = {"BF16", DC_BF16, NULL}, [34] = {"TQ1_0", -1, NULL},
    [35] = {"TQ2_0", -1, NULL},   [39] = {"MXFP4", -1, NULL},
};

int dc_gguf_number(dc_dtype dtype, const dc_packing *packing)
{
    for (size_t i = 0; i < DC_COUNTOF(types); i++) {
        const ggml_type *t = &types[i];
        if (t->name == NULL)
            continue;
        if (packing == NULL ? t->dtype == (int)dtype
                            : t->packing != NULL && strcmp(t->packing, packing->name) == 0)
            return (int)i;
    }
    return -1;
}

typedef struct gguf {
    char *path;
    int fd;
    struct stat st;
    unsigned char *header;
    dc_arena arena; /* of names */
} gguf;

static void close_gguf(void *file)
{
    gguf *f = file;
    if (f->fd >= 0)
        close(f->fd);
    dc_xfree(f->header);
    dc_arena_free(&f->arena);
    dc_xfree(f->path);
    dc_xfree(f);
}

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, f->path, __VA_ARGS__)

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    const gguf *f = file;
    size_t got;
    DC_ASSERT((int64_t)from <= t->bytes && (int64_t)n <= t->bytes - (int64_t)from,
              "%zu bytes from %zu on", n, from);
    DC_TRY(dc_infile_read(j, f->path, f->fd, t->at + (int64_t)from, to, n, &got));
    return got == n ? DC_OK
                    : REFUSE("tensor '%s' has been cut off since the file was opened",
                             dc_show_name(t->name).s);
}

static dc_status unchanged(const void *file, dc_job *j)
{
    const gguf *f = file;
    return dc_infile_unchanged(j, f->path, f->fd, &f->st);
}

static const dc_tensor_file_ops ops = {"gguf", close_gguf, read_bytes, unchanged, NULL, NULL};

/* ---- numbers and texts ------------------------------------------------------------------------ */

static uint64_t get(const unsigned char *p, int n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static const unsigned char size_of[DC_META__COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* A number or a bool. */
static dc_meta number_at(dc_meta_kind kind, const unsigned char *p)
{
    const int n = size_of[kind];
    const uint64_t u = get(p, n);
    dc_meta v = {.kind = kind, .u = u};
    const float f = dc_bits_f32((uint32_t)u);
    if (kind == DC_META_F32)
        v.f = f;
    else if (kind == DC_META_F64)
        memcpy(&v.f, &u, sizeof v.f);
    else if (kind == DC_META_I8 || kind == DC_META_I16 || kind == DC_META_I32)
        v.i = (int64_t)(u << (64 - 8 * n)) >> (64 - 8 * n);
    return v;
}

static dc_meta text_at(const unsigned char *p)
{
    return (dc_meta){.kind = DC_META_TEXT, .text = (const char *)p + 8, .n = get(p, 8)};
}

/* Bytes behind a list that has been checked. */
static const unsigned char *behind(const dc_meta *list)
{
    dc_meta rest = *list;
    while (rest.n > 0)
        dc_meta_next(&rest);
    return rest.at;
}

dc_meta dc_meta_next(dc_meta *list)
{
    dc_meta v;
    list->n--;
    if (list->of == DC_META_TEXT) {
        v = text_at(list->at);
        list->at += 8 + v.n;
    } else if (list->of == DC_META_LIST) {
        v = (dc_meta){.kind = DC_META_LIST, .of = (dc_meta_kind)get(list->at, 4)};
        v.n = get(list->at + 4, 8);
        v.at = list->at + 12;
        list->at = behind(&v);
    } else {
        v = number_at(list->of, list->at);
        list->at += size_of[list->of];
    }
    return v;
}

/* ---- the header ------------------------------------------------------------------------------- */

/* What stands before the data, as far as it is in memory. */
typedef struct header {
    gguf *f;
    dc_job *job;
    size_t at, n;    /* read so far, in memory */
    bool needs_more; /* of the file, to go on */
    uint64_t alignment;
    dc_file_tensors tensor; /* at: from the beginning of the data on */
    dc_meta_entries entry;
} header;

static void free_header(void *at)
{
    header *h = at;
    DC_VEC_FREE(h->tensor);
    DC_VEC_FREE(h->entry);
}

/* Bytes left in the file. */
static uint64_t left(const header *h)
{
    return (uint64_t)h->f->st.st_size - h->at;
}

static dc_status truncated(header *h, const char *what)
{
    return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path, "truncated: the file ends within %s",
                        what);
}

/* n bytes, which are stepped over; *out is NULL where more has to be read first. */
static dc_status take(header *h, uint64_t n, const char *what, const unsigned char **out)
{
    *out = NULL;
    if (n > left(h))
        return truncated(h, what);
    h->needs_more = n > h->n - h->at;
    if (h->needs_more)
        return DC_OK;
    *out = h->f->header + h->at;
    h->at += (size_t)n;
    return DC_OK;
}

/* Takes n bytes or leaves the function: with a failure, or to read more. */
#define TAKE(h, n, what, out)                  \
    do {                                       \
        DC_TRY(take((h), (n), (what), (out))); \
        if (*(out) == NULL)                    \
            return DC_OK;                      \
    } while (0)

static dc_status take_text(header *h, const char *what, const unsigned char **text, uint64_t *n)
{
    const unsigned char *p;
    const size_t begin = h->at;
    *text = NULL;
    TAKE(h, 8, what, &p);
    *n = get(p, 8);
    TAKE(h, *n, what, text);
    *text = h->f->header + begin + 8;
    return DC_OK;
}

/* A name as a text of C. */
static dc_status take_name(header *h, const char *what, const char **out)
{
    const unsigned char *p;
    uint64_t n;
    *out = NULL;
    DC_TRY(take_text(h, what, &p, &n));
    if (p == NULL)
        return DC_OK;
    if (memchr(p, '\0', (size_t)n) != NULL)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path, "%s has a zero byte in its name",
                            what);
    char *name = dc_arena_alloc(&h->f->arena, (size_t)n + 1);
    memcpy(name, p, (size_t)n);
    *out = name;
    return DC_OK;
}

static dc_status check_bool(header *h, const char *key, const unsigned char *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] > 1)
            return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                                "metadata '%s' is bool and has a byte 0x%02x", dc_show_name(key).s,
                                p[i]);
    return DC_OK;
}

static dc_status take_list(header *h, const char *key, int depth, dc_meta *out);

/* The elements of a list, which are only stepped over. */
static dc_status skip_elements(header *h, const char *key, int depth, const dc_meta *list)
{
    const unsigned char *p;
    uint64_t n;
    dc_meta inner;
    if (size_of[list->of] != 0) {
        if (list->n > left(h) / size_of[list->of])
            return truncated(h, "metadata");
        TAKE(h, list->n * size_of[list->of], "metadata", &p);
        return list->of == DC_META_BOOL ? check_bool(h, key, p, list->n) : DC_OK;
    }
    for (uint64_t i = 0; i < list->n && !h->needs_more; i++) {
        if (i % 4096 == 0)
            DC_TRY(dc_job_ended(h->job));
        DC_TRY(list->of == DC_META_TEXT ? take_text(h, "metadata", &p, &n)
                                        : take_list(h, key, depth + 1, &inner));
    }
    return DC_OK;
}

static dc_status take_list(header *h, const char *key, int depth, dc_meta *out)
{
    const unsigned char *p;
    TAKE(h, 12, "metadata", &p);
    const uint64_t kind = get(p, 4);
    if (kind >= DC_META__COUNT)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "metadata '%s' is a list of type %" PRIu64 ", 0 to 12 are known",
                            dc_show_name(key).s, kind);
    if (depth == DEEPEST)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "metadata '%s' has lists in lists, more than %d deep",
                            dc_show_name(key).s, DEEPEST);
    *out = (dc_meta){.kind = DC_META_LIST, .of = (dc_meta_kind)kind, .n = get(p + 4, 8)};
    out->at = h->f->header + h->at;
    return skip_elements(h, key, depth, out);
}

static dc_status take_value(header *h, const char *key, dc_meta *out)
{
    const unsigned char *p;
    TAKE(h, 4, "metadata", &p);
    const uint64_t kind = get(p, 4);
    if (kind >= DC_META__COUNT)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "metadata '%s' has type %" PRIu64 ", 0 to 12 are known",
                            dc_show_name(key).s, kind);
    if (kind == DC_META_LIST)
        return take_list(h, key, 0, out);
    if (kind == DC_META_TEXT) {
        *out = (dc_meta){.kind = DC_META_TEXT};
        DC_TRY(take_text(h, "metadata", &p, &out->n));
        out->text = (const char *)p;
        return DC_OK;
    }
    TAKE(h, size_of[kind], "metadata", &p);
    *out = number_at((dc_meta_kind)kind, p);
    return kind == DC_META_BOOL ? check_bool(h, key, p, 1) : DC_OK;
}

static dc_status take_entry(header *h)
{
    dc_meta_entry e = {0};
    DC_TRY(take_name(h, "metadata", &e.key));
    if (e.key == NULL)
        return DC_OK;
    DC_TRY(take_value(h, e.key, &e.value));
    if (h->needs_more)
        return DC_OK;
    if (strcmp(e.key, "general.alignment") == 0) {
        h->alignment = e.value.kind == DC_META_U32 ? e.value.u : 0;
        if (h->alignment == 0 || (h->alignment & (h->alignment - 1)) != 0 ||
            h->alignment > MOST_ALIGNMENT)
            return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                                "general.alignment is no power of two up to %d, of type u32",
                                MOST_ALIGNMENT);
    }
    DC_PUSH(h->entry, e);
    return DC_OK;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

/* Its type and the bytes that it takes. */
static dc_status fill_type(header *h, dc_file_tensor *t, uint64_t number, int rank, int64_t *dim)
{
    gguf *f = h->f;
    dc_job *j = h->job;
    const ggml_type *known =
        number < DC_COUNTOF(types) && types[number].name != NULL ? &types[number] : NULL;
    t->format = known != NULL ? known->name : dc_arena_printf(&f->arena, "type %" PRIu64, number);
    t->packing = known != NULL && known->packing != NULL ? dc_packing_find(known->packing) : NULL;
    t->unread = known == NULL || (known->dtype < 0 && t->packing == NULL);
    const dc_dtype dtype = known != NULL && known->dtype >= 0 ? (dc_dtype)known->dtype : DC_F32;
    if (!dc_dims_known(rank, dim) || !dc_dims_fit(rank, dim, dc_dtype_size(dtype)))
        return REFUSE("tensor '%s' is too large to address", dc_show_name(t->name).s);
    t->type = dc_type_make(dtype, rank, dim);
    t->bytes = t->unread ? -1 : (int64_t)dc_type_bytes(&t->type);
    if (t->packing == NULL)
        return DC_OK;
    const int64_t row = rank > 0 ? dim[rank - 1] : 1;
    if (row % t->packing->elements != 0)
        return REFUSE("tensor '%s' is %s and has rows of %" PRId64
                      " elements, which are no multiple of %u",
                      dc_show_name(t->name).s, t->format, row, t->packing->elements);
    t->bytes = (int64_t)dc_packing_bytes(t->packing, (size_t)dc_type_count(&t->type));
    return DC_OK;
}

static dc_status take_tensor(header *h)
{
    const unsigned char *p;
    dc_file_tensor t = {0};
    int64_t dim[DC_MAX_RANK];
    DC_TRY(take_name(h, "the list of tensors", &t.name));
    if (t.name == NULL)
        return DC_OK;
    TAKE(h, 4, "the list of tensors", &p);
    const uint64_t rank = get(p, 4);
    if (rank > DC_MAX_RANK)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "tensor '%s' has %" PRIu64 " axes, %d is the most",
                            dc_show_name(t.name).s, rank, DC_MAX_RANK);
    TAKE(h, rank * 8 + 12, "the list of tensors", &p);
    for (uint64_t i = 0; i < rank; i++) {
        const uint64_t size = get(p + i * 8, 8);
        dim[rank - 1 - i] = size <= INT64_MAX ? (int64_t)size : -1;
    }
    const uint64_t number = get(p + rank * 8, 4), at = get(p + rank * 8 + 4, 8);
    DC_TRY(fill_type(h, &t, number, (int)rank, dim));
    if (at % h->alignment != 0 || at > INT64_MAX / 2)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "tensor '%s' begins at byte %" PRIu64
                            " of the data, no multiple of %" PRIu64,
                            dc_show_name(t.name).s, at, h->alignment);
    t.at = (int64_t)at;
    DC_PUSH(h->tensor, t);
    return DC_OK;
}

/* Empty ones come before what begins at the same place. */
static int by_place(const void *x, const void *y)
{
    const dc_file_tensor *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* All of them lie in the file, and in no other one. */
static dc_status check_places(header *h)
{
    const gguf *f = h->f;
    dc_job *j = h->job;
    const int64_t data = (int64_t)dc_align_up(h->at, (size_t)h->alignment);
    const int64_t length = data < f->st.st_size ? (int64_t)f->st.st_size - data : 0;
    int64_t end = 0;
    DC_TRY(dc_sort(j, h->tensor.at, h->tensor.n, sizeof *h->tensor.at, by_place));
    for (uint32_t i = 0; i < h->tensor.n; i++) {
        dc_file_tensor *t = &h->tensor.at[i];
        const int64_t bytes = t->unread ? 0 : t->bytes;
        if (t->at > length || bytes > length - t->at)
            return REFUSE("tensor '%s' has %" PRId64 " bytes from byte %" PRId64 " on, in %" PRId64
                          " bytes of data",
                          dc_show_name(t->name).s, bytes, t->at, length);
        if (t->at < end)
            return REFUSE("tensors '%s' and '%s' overlap", dc_show_name(h->tensor.at[i - 1].name).s,
                          dc_show_name(t->name).s);
        end = t->at + bytes;
    }
    for (uint32_t i = 0; i < h->tensor.n; i++)
        h->tensor.at[i].at += data;
    return DC_OK;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static dc_status check_version(header *h, const unsigned char *p)
{
    const gguf *f = h->f;
    dc_job *j = h->job;
    const uint32_t version = (uint32_t)get(p, 4);
    if (version != 0 && (version & 0xffff) == 0)
        return REFUSE("a GGUF file of big-endian numbers, which are not read");
    if (version != 2 && version != 3)
        return REFUSE("GGUF version %" PRIu32 ", 2 and 3 are read", version);
    return DC_OK;
}

static dc_status parse(header *h)
{
    const unsigned char *p;
    h->at = 0;
    h->tensor.n = h->entry.n = 0;
    h->alignment = ALIGNMENT;
    TAKE(h, 24, "its first 24 bytes", &p);
    DC_TRY(check_version(h, p + 4));
    const uint64_t tensors = get(p + 8, 8), entries = get(p + 16, 8);
    if (tensors > left(h) / LEAST_TENSOR || entries > left(h) / LEAST_ENTRY)
        return dc_path_fail(h->job, DC_ERR_FORMAT, h->f->path,
                            "%" PRIu64 " tensors and %" PRIu64 " metadata in a file of %" PRId64
                            " bytes",
                            tensors, entries, (int64_t)h->f->st.st_size);
    for (uint64_t i = 0; i < entries && !h->needs_more; i++) {
        DC_TRY(dc_job_ended(h->job));
        DC_TRY(take_entry(h));
    }
    for (uint64_t i = 0; i < tensors && !h->needs_more; i++) {
        DC_TRY(dc_job_ended(h->job));
        DC_TRY(take_tensor(h));
    }
    return h->needs_more ? DC_OK : check_places(h);
}

static dc_status read_header(header *h)
{
    gguf *f = h->f;
    for (size_t want = FIRST;; want *= 2) {
        size_t got;
        if (want > (uint64_t)f->st.st_size)
            want = (size_t)f->st.st_size;
        unsigned char *grown = dc_try_realloc(f->header, want + 1);
        if (grown == NULL)
            return dc_fail_memory(h->job, want + 1);
        f->header = grown;
        DC_TRY(
            dc_infile_read(h->job, f->path, f->fd, (int64_t)h->n, grown + h->n, want - h->n, &got));
        if (got < want - h->n)
            return truncated(h, "what stands before the data");
        h->n = want;
        h->needs_more = false;
        dc_arena_free(&f->arena);
        DC_TRY(parse(h));
        if (!h->needs_more)
            return DC_OK;
    }
}

static dc_status open_gguf(gguf *f, dc_job *j, const char *path, dc_tensor_file **out)
{
    header *h = DC_NEW(&j->scratch, header);
    *h = (header){.f = f, .job = j};
    dc_job_defer(j, free_header, h);
    DC_TRY(dc_infile_open(j, path, &f->fd, &f->st));
    DC_TRY(read_header(h));
    DC_TRY(dc_tensor_file_make(j, path, &ops, f, &h->tensor, &h->entry, out));
    dc_job_keep(j, h);
    return DC_OK;
}

dc_status dc_gguf_open(dc_job *j, const char *path, dc_tensor_file **out)
{
    gguf *f = dc_xalloc(sizeof *f);
    f->fd = -1;
    dc_job_defer(j, close_gguf, f);
    f->path = dc_xalloc(strlen(path) + 1);
    strcpy(f->path, path);
    return dc_job_settle(j, f, open_gguf(f, j, path, out));
}
