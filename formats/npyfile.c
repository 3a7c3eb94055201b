/*
 * Arrays of NumPy as a file of tensors: an archive has one for each array, an .npy file one of the name "value". Elements in
 * the order and the bytes that we have are read where they lie; others, and deflated ones, by formats/npz.c and npy.c.
 */
#define _GNU_SOURCE
#include "core/base/path.h"
#include "formats/npy_stream.h"
#include "formats/tensor_formats.h"
#include "formats/zip.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct npyfile {
    char *path;
    int fd;
    struct stat st;
    dc_npz *npz;            /* NULL: one array */
    dc_zip *zip;            /* the same archive */
    dc_file_tensors tensor; /* index: in npz */
    dc_meta_entries entry;
    int64_t total;       /* bytes of all of them */
    dc_arena arena;      /* of names */
    const char *note[1]; /* about what follows an array */
    uint32_t notes;
} npyfile;

/* An archive may say one place many times: what all arrays take is bounded by what deflate can make of a file. */
enum { MOST_TIMES = 1032, SLACK = 1 << 26 };

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, f->path, __VA_ARGS__)

static void close_npyfile(void *file)
{
    npyfile *f = file;
    if (f->fd >= 0)
        close(f->fd);
    dc_npz_close(f->npz);
    dc_zip_close(f->zip);
    DC_VEC_FREE(f->tensor);
    DC_VEC_FREE(f->entry);
    dc_arena_free(&f->arena);
    dc_xfree(f->path);
    dc_xfree(f);
}

/* ---- elements --------------------------------------------------------------------------------- */

/* Memory of its own for an array that is unpacked, turned round or both. */
typedef struct unpacked {
    char *at;
    size_t bytes;
} unpacked;

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    unpacked *u = ctx;
    u->bytes = dc_type_bytes(type);
    u->at = dc_try_realloc(NULL, u->bytes + 1);
    if (u->at == NULL)
        return dc_fail_memory(j, u->bytes);
    dc_job_defer(j, dc_xfree, u->at);
    *at = u->at;
    return DC_OK;
}

/* The file of one array. */
typedef struct array_stream {
    dc_npy_stream in;
    const npyfile *f;
    int64_t at;
} array_stream;

static dc_status read_array(dc_npy_stream *in, dc_job *j, void *to, size_t n, size_t *got)
{
    array_stream *s = (array_stream *)in;
    DC_TRY(dc_infile_read(j, in->path, s->f->fd, s->at, to, n, got));
    s->at += (int64_t)*got;
    return DC_OK;
}

static dc_status read_unpacked(const npyfile *f, dc_job *j, const dc_file_tensor *t, size_t from,
                               size_t n, void *to)
{
    unpacked u = {0};
    const dc_room room = {make_room, &u};
    array_stream s = {{read_array, f->path, NULL, f->st.st_size}, f, 0};
    DC_TRY(f->npz != NULL ? dc_npz_read(f->npz, j, t->index, &room)
                          : dc_npy_read_stream(j, &s.in, &room));
    if (from > u.bytes || n > u.bytes - from)
        return REFUSE("tensor '%s' was changed while it was read", dc_show_name(t->name).s);
    memcpy(to, u.at + from, n);
    dc_job_keep(j, u.at);
    dc_xfree(u.at);
    return DC_OK;
}

static dc_status read_bytes(const void *file, dc_job *j, const dc_file_tensor *t, size_t from,
                            size_t n, void *to)
{
    const npyfile *f = file;
    size_t got;
    if (t->whole)
        return read_unpacked(f, j, t, from, n, to);
    DC_TRY(dc_infile_read(j, f->path, f->fd, t->at + (int64_t)from, to, n, &got));
    return got == n ? DC_OK
                    : REFUSE("tensor '%s' has been cut off since the file was opened",
                             dc_show_name(t->name).s);
}

static dc_status unchanged(const void *file, dc_job *j)
{
    const npyfile *f = file;
    return dc_infile_unchanged(j, f->path, f->fd, &f->st);
}

static const char *const *notes(const void *file, uint32_t *n)
{
    const npyfile *f = file;
    *n = f->notes;
    return f->note;
}

static const dc_tensor_file_ops ops = {"numpy", close_npyfile, read_bytes, unchanged, NULL, notes};

/* ---- headers ---------------------------------------------------------------------------------- */

/* In the list, and not read. */
static dc_status leave_tensor(npyfile *f, const char *name, const char *format, const char *why)
{
    const dc_file_tensor t = {.name = name, .bytes = -1, .unread = true};
    DC_PUSH(f->tensor, t);
    f->tensor.at[f->tensor.n - 1].format = dc_arena_strdup(&f->arena, format);
    f->tensor.at[f->tensor.n - 1].why = dc_arena_strdup(&f->arena, why);
    return DC_OK;
}

/* Of an array whose header has been read and which takes `length` bytes from `at` on; packed: it is deflated. */
static dc_status add_tensor(npyfile *f, dc_job *j, const char *name, uint32_t index,
                            const dc_npy_header *head, int64_t at, int64_t length, bool packed)
{
    dc_file_tensor t = {.name = name, .index = index, .type = head->type};
    if (head->unread[0] != '\0')
        return leave_tensor(f, name, head->descr, head->unread);
    const int64_t bytes = (int64_t)dc_type_bytes(&head->type);
    const int64_t behind = length - (int64_t)head->bytes - bytes;
    if (behind > 0 && f->npz == NULL) {
        f->note[f->notes++] = dc_arena_printf(
            &f->arena, "'%s' is the first array of the file; %" PRId64 " bytes behind it are left",
            dc_show_name(name).s, behind);
    } else if (behind != 0)
        return REFUSE("'%s' has %" PRId64 " bytes of data, not %" PRId64, dc_show_name(name).s,
                      length - (int64_t)head->bytes, bytes);
    t.format = dc_dtype_name((dc_dtype)head->type.dtype);
    t.bytes = bytes;
    t.at = at + (int64_t)head->bytes;
    /* Truth values are looked at by the other reader. */
    t.whole = packed || head->swap || (head->fortran && head->type.rank > 1) ||
              head->type.dtype == DC_BOOL;
    if (!packed && (t.at > f->st.st_size || bytes > f->st.st_size - t.at))
        return REFUSE("'%s' lies outside of the file", dc_show_name(name).s);
    f->total += bytes;
    if (f->total / MOST_TIMES > f->st.st_size + SLACK)
        return REFUSE("arrays of %" PRId64 " bytes in a file of %" PRId64, f->total,
                      (int64_t)f->st.st_size);
    DC_PUSH(f->tensor, t);
    return DC_OK;
}

static dc_status add_entry(npyfile *f, dc_job *j, const dc_zip_entry *e, uint32_t index)
{
    unsigned char start[DC_NPY_HEADER];
    dc_zip_stream *s;
    dc_npy_header head;
    uint64_t at;
    size_t got;
    const size_t most = e->size < sizeof start ? (size_t)e->size : sizeof start;
    const int length = (int)(strlen(e->name) - strlen(".npy"));
    const char *name = dc_arena_printf(&f->arena, "%.*s", length, e->name);
    const char *why = dc_zip_unread(f->zip, e);
    if (why != NULL)
        return leave_tensor(f, name, "packed", why);
    DC_TRY(dc_zip_stream_open(f->zip, j, e, &s));
    DC_TRY(dc_zip_stream_read(s, j, start, most, &got));
    dc_zip_stream_close(s, j);
    DC_TRY(dc_npy_parse(j, f->path, e->name, start, got, &head));
    DC_TRY(dc_zip_place(f->zip, j, e, &at));
    return add_tensor(f, j, name, index, &head, (int64_t)at, (int64_t)e->size,
                      e->method != DC_ZIP_STORED);
}

/* Names of an archive lose ".npy". */
static dc_status open_archive(npyfile *f, dc_job *j)
{
    uint32_t index = 0;
    DC_TRY(dc_npz_open(j, f->path, &f->npz));
    DC_TRY(dc_zip_open(j, f->path, "an npz file", &f->zip));
    DC_TRY(dc_infile_open(j, f->path, &f->fd, &f->st));
    for (uint32_t i = 0; i < f->zip->n; i++)
        if (dc_npz_is_array(f->zip->entry[i].name)) {
            DC_TRY(dc_job_ended(j));
            DC_TRY(index < dc_npz_count(f->npz) ? add_entry(f, j, &f->zip->entry[i], index)
                                                : REFUSE("was changed while it was read"));
            index++;
        }
    return DC_OK;
}

static dc_status open_array(npyfile *f, dc_job *j)
{
    unsigned char start[DC_NPY_HEADER];
    dc_npy_header head;
    size_t got;
    DC_TRY(dc_infile_open(j, f->path, &f->fd, &f->st));
    DC_TRY(dc_infile_read(j, f->path, f->fd, 0, start, sizeof start, &got));
    DC_TRY(dc_npy_parse(j, f->path, NULL, start, got, &head));
    if (head.unread[0] != '\0') /* there is nothing else in it */
        return REFUSE("%s", head.unread);
    return add_tensor(f, j, "value", 0, &head, 0, f->st.st_size, false);
}

static dc_status open_npyfile(npyfile *f, dc_job *j, bool archive, dc_tensor_file **out)
{
    DC_TRY(archive ? open_archive(f, j) : open_array(f, j));
    return dc_tensor_file_make(j, f->path, &ops, f, &f->tensor, &f->entry, out);
}

dc_status dc_npyfile_open(dc_job *j, const char *path, bool archive, dc_tensor_file **out)
{
    npyfile *f = dc_xalloc(sizeof *f);
    f->fd = -1;
    dc_job_defer(j, close_npyfile, f);
    f->path = dc_xalloc(strlen(path) + 1);
    strcpy(f->path, path);
    return dc_job_settle(j, f, open_npyfile(f, j, archive, out));
}
