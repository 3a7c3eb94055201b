#include "formats/tensor_file.h"

#include "core/base/path.h"
#include "core/base/sort.h"
#include "core/runtime/split.h"
#include "formats/convert.h"
#include "formats/infile.h"
#include "formats/tensor_formats.h"
#include "formats/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dc_tensor_file {
    const dc_tensor_file_ops *ops;
    void *file;
    char *path;
    dc_file_tensors tensor;
    dc_meta_entries entry;
};

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, f->path, __VA_ARGS__)

void dc_make_bools(unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b[i] = b[i] != 0;
}

const char *dc_meta_kind_name(dc_meta_kind k)
{
    static const char *const name[] = {"u8",   "i8",   "u16",  "i16", "u32", "i32", "f32",
                                       "bool", "text", "list", "u64", "i64", "f64"};
    return name[k];
}

/* ---- opening ---------------------------------------------------------------------------------- */

void dc_tensor_file_close(dc_tensor_file *f)
{
    if (f == NULL)
        return;
    if (f->file != NULL)
        f->ops->close(f->file);
    DC_VEC_FREE(f->tensor);
    DC_VEC_FREE(f->entry);
    dc_xfree(f->path);
    dc_xfree(f);
}

static void close_file(void *f)
{
    dc_tensor_file_close(f);
}

void dc_tensor_file_defer(dc_job *j, dc_tensor_file *f)
{
    dc_job_defer(j, close_file, f);
}

static int by_name(const void *x, const void *y)
{
    const dc_file_tensor *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static int by_key(const void *x, const void *y)
{
    const dc_meta_entry *a = x, *b = y;
    return strcmp(a->key, b->key);
}

static dc_status check_names(dc_tensor_file *f, dc_job *j)
{
    DC_TRY(dc_sort(j, f->tensor.at, f->tensor.n, sizeof *f->tensor.at, by_name));
    DC_TRY(dc_sort(j, f->entry.at, f->entry.n, sizeof *f->entry.at, by_key));
    for (uint32_t i = 1; i < f->tensor.n; i++)
        if (by_name(&f->tensor.at[i - 1], &f->tensor.at[i]) == 0)
            return REFUSE("tensor '%s' occurs twice", dc_show_name(f->tensor.at[i].name).s);
    for (uint32_t i = 1; i < f->entry.n; i++)
        if (by_key(&f->entry.at[i - 1], &f->entry.at[i]) == 0)
            return REFUSE("metadata '%s' occurs twice", dc_show_name(f->entry.at[i].key).s);
    return DC_OK;
}

dc_status dc_tensor_file_make(dc_job *j, const char *path, const dc_tensor_file_ops *ops,
                              void *file, dc_file_tensors *tensors, dc_meta_entries *entries,
                              dc_tensor_file **out)
{
    dc_tensor_file *f = dc_xalloc(sizeof *f);
    dc_tensor_file_defer(j, f);
    f->path = dc_xalloc(strlen(path) + 1);
    strcpy(f->path, path);
    f->ops = ops;
    f->tensor = *tensors;
    f->entry = *entries;
    *tensors = (dc_file_tensors){0};
    *entries = (dc_meta_entries){0};
    const dc_status status = check_names(f, j);
    f->file = status == DC_OK ? file : NULL;
    DC_TRY(dc_job_settle(j, f, status));
    *out = f;
    return DC_OK;
}

static void close_zip(void *z)
{
    dc_zip_close(z);
}

/* PyTorch's archives have a pickle, NumPy's arrays alone. */
static dc_status open_archive(dc_job *j, const char *path, dc_tensor_file **out)
{
    dc_zip *z;
    bool arrays = false, pickle = false;
    DC_TRY(dc_zip_open(j, path, "an archive of PyTorch or NumPy", &z));
    dc_job_defer(j, close_zip, z);
    for (uint32_t i = 0; i < z->n; i++) {
        const char *name = z->entry[i].name, *end = strrchr(name, '.');
        arrays = arrays || (end != NULL && strcmp(end, ".npy") == 0);
        pickle = pickle || (strlen(name) > 9 && strcmp(name + strlen(name) - 9, "/data.pkl") == 0);
    }
    const uint32_t n = z->n;
    dc_job_keep(j, z);
    dc_zip_close(z);
    return (arrays || n == 0) && !pickle ? dc_npyfile_open(j, path, true, out)
                                         : dc_torch_open(j, path, out);
}

enum { BEGIN = 9 }; /* bytes that tell formats apart */

static dc_status read_begin(dc_job *j, const char *path, int fd, unsigned char begin[BEGIN],
                            size_t *got)
{
    memset(begin, 0, BEGIN);
    return dc_infile_read(j, path, fd, 0, begin, BEGIN, got);
}

/* The length of a header, in 8 bytes, and the header: a length such as 640 begins as a pickle does. */
static bool is_safetensors(const unsigned char *begin)
{
    return memcmp(begin + 4, "\0\0\0\0", 4) == 0 && begin[8] == '{';
}

/* Which format begins so? What is none of the others is read as safetensors, whose reader says what is wrong. */
static dc_status open_as(dc_job *j, const char *path, const unsigned char *begin,
                         dc_tensor_file **out)
{
    if (is_safetensors(begin))
        return dc_safetensors_open_file(j, path, out);
    if (memcmp(begin, "GGUF", 4) == 0)
        return dc_gguf_open(j, path, out);
    if (memcmp(begin, "PK\3\4", 4) == 0 || memcmp(begin, "PK\5\6", 4) == 0)
        return open_archive(j, path, out);
    if (begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5)
        return dc_torch_open(j, path, out);
    if (memcmp(begin, "\x93NUMPY", 6) == 0)
        return dc_npyfile_open(j, path, false, out);
    return dc_safetensors_open_file(j, path, out);
}

dc_status dc_tensor_file_open_part(dc_job *j, const char *path, dc_tensor_file **out)
{
    unsigned char begin[BEGIN];
    struct stat st;
    size_t got;
    int fd;
    DC_TRY(dc_infile_open(j, path, &fd, &st));
    const dc_status status = read_begin(j, path, fd, begin, &got);
    close(fd);
    return status == DC_OK ? open_as(j, path, begin, out) : status;
}

dc_status dc_tensor_file_open(dc_job *j, const char *path, dc_tensor_file **out)
{
    unsigned char begin[BEGIN] = {0};
    struct stat st;
    size_t got = 0;
    int fd;
    DC_TRY(dc_path_open(j, path, &fd));
    const bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    const bool file = !folder && S_ISREG(st.st_mode);
    const dc_status status = file ? read_begin(j, path, fd, begin, &got) : DC_OK;
    close(fd);
    DC_TRY(status);
    if (folder)
        return dc_shards_open_folder(j, path, out);
    /* No safetensors file begins with a brace: its header would be too long. */
    const bool index = got >= 8 && begin[0] == '{' && memchr(begin, '\0', 8) == NULL;
    return index ? dc_shards_open(j, path, out) : open_as(j, path, begin, out);
}

/* ---- what is in it ---------------------------------------------------------------------------- */

const char *dc_tensor_file_format(const dc_tensor_file *f)
{
    return f->ops->format;
}

const dc_file_tensor *dc_tensor_file_list(const dc_tensor_file *f, uint32_t *n)
{
    *n = f->tensor.n;
    return f->tensor.at;
}

const dc_meta_entry *dc_tensor_file_metadata(const dc_tensor_file *f, uint32_t *n)
{
    *n = f->entry.n;
    return f->entry.at;
}

const dc_file_tensor *dc_tensor_file_find(const dc_tensor_file *f, const char *name)
{
    const dc_file_tensor key = {.name = name};
    return f->tensor.n == 0
               ? NULL
               : bsearch(&key, f->tensor.at, f->tensor.n, sizeof *f->tensor.at, by_name);
}

const dc_tree *dc_tensor_file_tree(const dc_tensor_file *f)
{
    return f->ops->tree != NULL ? f->ops->tree(f->file) : NULL;
}

const char *const *dc_tensor_file_notes(const dc_tensor_file *f, uint32_t *n)
{
    *n = 0;
    return f->ops->notes != NULL ? f->ops->notes(f->file, n) : NULL;
}

/* ---- reading ---------------------------------------------------------------------------------- */

dc_status dc_tensor_file_readable(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t)
{
    if (!t->unread)
        return DC_OK;
    if (t->why != NULL)
        return REFUSE("tensor '%s' is not read: %s", dc_show_name(t->name).s, t->why);
    return REFUSE("tensor '%s' has dtype '%s', which is not read", dc_show_name(t->name).s,
                  dc_show_name(t->format).s);
}

dc_status dc_tensor_file_unchanged(const dc_tensor_file *f, dc_job *j)
{
    return f->ops->unchanged(f->file, j);
}

/* On several threads, where there may be any and it is worth it. */
static dc_status split(dc_job *j, bool large, size_t pieces, dc_piece piece, void *ctx)
{
    if (large && pieces > 1 && pieces <= UINT32_MAX && (j->opt == NULL || j->opt->threads != 1))
        return dc_split(j, (uint32_t)pieces, piece, ctx);
    for (size_t i = 0; i < pieces; i++)
        DC_TRY(piece(j, ctx, (uint32_t)i));
    return DC_OK;
}

/* Elements of a piece that one thread reads, and of what is converted at once and stays in its cache. */
enum { PIECE = 1 << 20, CHUNK = 1 << 13 };

typedef struct reading {
    const dc_tensor_file *f;
    const dc_file_read *read;
    uint32_t n;
    uint32_t *first; /* the number of each one's first piece; behind them how many there are */
} reading;

/* Bytes in the file of n elements, a multiple of a block's. */
static size_t file_bytes(const dc_file_tensor *t, size_t n)
{
    return t->packing != NULL ? dc_packing_bytes(t->packing, n)
                              : n * dc_dtype_size((dc_dtype)t->type.dtype);
}

static bool is_as_is(const dc_file_read *r)
{
    return r->tensor->packing == NULL && (dc_dtype)r->tensor->type.dtype == r->dtype;
}

/* Elements as they lie to those that are wanted, CHUNK at most. */
static void convert(const dc_file_read *r, const unsigned char *from, size_t n, char *to)
{
    float floats[CHUNK];
    const dc_packing *p = r->tensor->packing;
    const bool here = r->dtype == DC_F32;
    if (p == NULL) {
        dc_convert((dc_dtype)r->tensor->type.dtype, from, r->dtype, to, n);
        return;
    }
    p->unpack(from, here ? (float *)(void *)to : floats, n / p->elements);
    if (!here)
        dc_convert(DC_F32, floats, r->dtype, to, n);
}

static dc_status convert_chunk(const dc_tensor_file *f, dc_job *j, const dc_file_read *r,
                               size_t from, size_t n, char *to)
{
    union {
        unsigned char bytes[CHUNK * 8];
        double aligned;
    } there;
    DC_TRY(f->ops->read(f->file, j, r->tensor, file_bytes(r->tensor, from),
                        file_bytes(r->tensor, n), there.bytes));
    convert(r, there.bytes, n, to);
    return DC_OK;
}

/* At once, by way of memory of its own where it is converted. */
static dc_status read_whole(const dc_tensor_file *f, dc_job *j, const dc_file_read *r)
{
    const dc_file_tensor *t = r->tensor;
    const size_t bytes = file_bytes(t, r->n), size = dc_dtype_size(r->dtype);
    if (is_as_is(r))
        return f->ops->read(f->file, j, t, file_bytes(t, r->from), bytes, r->to);
    unsigned char *there = dc_try_realloc(NULL, bytes + 1);
    if (there == NULL)
        return dc_fail_memory(j, bytes + 1);
    dc_job_defer(j, dc_xfree, there);
    DC_TRY(f->ops->read(f->file, j, t, file_bytes(t, r->from), bytes, there));
    for (size_t at = 0, n; at < r->n; at += n) {
        n = r->n - at < CHUNK ? r->n - at : CHUNK;
        convert(r, there + file_bytes(t, at), n, (char *)r->to + at * size);
    }
    dc_job_keep(j, there);
    dc_xfree(there);
    return DC_OK;
}

/* The read that a piece belongs to. */
static uint32_t read_of(const reading *r, uint32_t piece)
{
    uint32_t low = 0, high = r->n;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (r->first[middle] <= piece)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static dc_status read_piece(dc_job *j, void *ctx, uint32_t piece)
{
    const reading *all = ctx;
    const uint32_t which = read_of(all, piece);
    const dc_file_read *r = &all->read[which];
    if (r->tensor->whole)
        return read_whole(all->f, j, r);
    const size_t begin = (size_t)(piece - all->first[which]) * PIECE, rest = r->n - begin;
    const size_t n = rest < PIECE ? rest : PIECE, size = dc_dtype_size(r->dtype);
    char *to = (char *)r->to + begin * size;
    if (is_as_is(r))
        return all->f->ops->read(all->f->file, j, r->tensor, (r->from + begin) * size, n * size,
                                 to);
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < CHUNK ? n - at : CHUNK;
        DC_TRY(convert_chunk(all->f, j, r, r->from + begin + at, k, to + at * size));
    }
    return DC_OK;
}

/* What has no elements has no pieces. */
static uint32_t pieces_of(const dc_file_read *r)
{
    return r->tensor->whole ? r->n > 0 : (uint32_t)(r->n / PIECE + (r->n % PIECE != 0));
}

dc_status dc_tensor_file_read(const dc_tensor_file *f, dc_job *j, const dc_file_read *read,
                              uint32_t n)
{
    reading r = {.f = f, .read = read, .n = n};
    uint32_t pieces = 0;
    size_t elements = 0;
    uint32_t only[2]; /* a single one, of memory that is being written, takes no memory */
    r.first = n == 1 ? only : DC_NEW_ARRAY(&j->scratch, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        DC_ASSERT(!read[i].tensor->unread, "tensor '%s' is not read", read[i].tensor->name);
        r.first[i] = pieces;
        pieces += pieces_of(&read[i]);
        elements += read[i].n;
    }
    return split(j, elements > PIECE, pieces, read_piece, &r);
}

typedef struct bytes_reading {
    const dc_tensor_file *f;
    const dc_file_tensor *t;
    size_t from, n;
    char *to;
} bytes_reading;

static dc_status read_bytes_piece(dc_job *j, void *ctx, uint32_t piece)
{
    const bytes_reading *r = ctx;
    const size_t begin = piece * DC_PIECE_BYTES;
    return r->f->ops->read(r->f->file, j, r->t, r->from + begin, dc_piece_of(r->n - begin),
                           r->to + begin);
}

dc_status dc_tensor_file_bytes(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                               size_t from, size_t n, void *to)
{
    bytes_reading r = {f, t, from, n, to};
    return split(j, true, n / DC_PIECE_BYTES + (n % DC_PIECE_BYTES != 0), read_bytes_piece, &r);
}

dc_status dc_tensor_file_numbers(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                                 size_t from, size_t n, const unsigned char *codes)
{
    if (t->type.dtype != DC_F8E4M3FN)
        return DC_OK;
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (codes[i] & 0x7f) == 0x7f;
    for (size_t i = 0; i < n && found; i++)
        if ((codes[i] & 0x7f) == 0x7f)
            return REFUSE("element %zu of tensor '%s' is NaN, and weights that are multiplied as "
                          "they are have to be numbers",
                          from + i, dc_show_name(t->name).s);
    return DC_OK;
}

dc_status dc_tensor_file_stretch(const dc_tensor_file *f, dc_job *j, const dc_file_tensor *t,
                                 size_t from, size_t n, void *to)
{
    return f->ops->read(f->file, j, t, from, n, to);
}
