#define _POSIX_C_SOURCE 200809L
#include "formats/rows.h"

#include "core/base/bits.h"
#include "core/base/path.h"
#include "formats/infile.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void dc_rows_free(dc_rows *r)
{
    if (r != NULL && r->shared-- == 0)
        r->free(r);
}

dc_rows *dc_rows_share(dc_rows *r)
{
    r->shared++;
    return r;
}

int64_t dc_rows_length(const dc_rows *r, const uint32_t *order, int64_t first, int64_t count)
{
    int64_t most = 1;
    for (int64_t i = first; i < first + count; i++)
        most = dc_max_i64(most, r->length[order != NULL ? (int64_t)order[i] : i]);
    for (size_t i = 0; i < r->nbound; i++)
        if (r->bound[i] >= most)
            return r->bound[i];
    return most;
}

/* ---- of a file -------------------------------------------------------------------------------- */

typedef struct file_rows {
    dc_rows rows;
    int fd;
    int64_t at;
    bool swap;
    char path[];
} file_rows;

static void free_file(dc_rows *r)
{
    file_rows *f = (file_rows *)r;
    if (f->fd >= 0)
        close(f->fd);
    dc_xfree(f);
}

static void defer_free(void *r)
{
    dc_rows_free(r);
}

static void swap_bytes(char *at, size_t n, size_t size)
{
    for (char *e = at; e < at + n; e += size)
        for (size_t i = 0; i < size / 2; i++) {
            const char c = e[i];
            e[i] = e[size - 1 - i];
            e[size - 1 - i] = c;
        }
}

static dc_status get_of_file(const dc_rows *r, dc_job *j, int64_t first, int64_t count,
                             int64_t length, void *to)
{
    const file_rows *f = (const file_rows *)r;
    const size_t n = (size_t)count * r->row;
    const size_t size = dc_dtype_size(dc_dtype_part((dc_dtype)r->type.dtype));
    size_t got;
    DC_UNUSED(length);
    DC_TRY(dc_infile_read(j, f->path, f->fd, f->at + first * (int64_t)r->row, to, n, &got));
    if (got < n)
        return dc_path_fail(j, DC_ERR_FORMAT, f->path,
                            "has become shorter: row %" PRId64 " is missing",
                            first + (int64_t)(got / (r->row > 0 ? r->row : 1)) + 1);
    if (f->swap)
        swap_bytes(to, n, size);
    if (r->type.dtype == DC_BOOL)
        dc_make_bools(to, n);
    return DC_OK;
}

/* Opened, of no type yet; it is freed by the entry unless that keeps it. */
static dc_status open_rows(dc_job *j, const char *path, file_rows **out, int64_t *length)
{
    struct stat st;
    file_rows *f = dc_xalloc(sizeof *f + strlen(path) + 1);
    f->fd = -1;
    f->rows.free = free_file;
    f->rows.get = get_of_file;
    memcpy(f->path, path, strlen(path));
    dc_job_defer(j, defer_free, &f->rows);
    DC_TRY(dc_infile_open(j, path, &f->fd, &st));
    *length = st.st_size;
    *out = f;
    return DC_OK;
}

static dc_status finish(dc_job *j, file_rows *f, const dc_type *type, int64_t at, dc_rows **out)
{
    if (type->rank == 0)
        return dc_path_fail(j, DC_ERR_FORMAT, f->path, "a scalar has no rows");
    f->rows.type = *type;
    f->rows.row = dc_dtype_size((dc_dtype)type->dtype);
    for (int i = 1; i < type->rank; i++)
        f->rows.row *= (size_t)type->dim[i];
    f->at = at;
    dc_job_keep(j, &f->rows);
    *out = &f->rows;
    return DC_OK;
}

dc_status dc_rows_npy(dc_job *j, const char *path, dc_rows **out)
{
    unsigned char *start = dc_arena_alloc(&j->scratch, DC_NPY_HEADER);
    dc_npy_header head;
    file_rows *f;
    int64_t length;
    size_t got;
    DC_TRY(open_rows(j, path, &f, &length));
    DC_TRY(dc_infile_read(j, path, f->fd, 0, start, DC_NPY_HEADER, &got));
    DC_TRY(dc_npy_parse(j, path, NULL, start, got, &head));
    if (head.unread[0] != '\0')
        return dc_path_fail(j, DC_ERR_FORMAT, path, "%s", head.unread);
    const int64_t want = (int64_t)(head.bytes + dc_type_bytes(&head.type));
    if (length < want) /* another array may follow */
        return dc_path_fail(j, DC_ERR_FORMAT, path,
                            "has %" PRId64 " bytes, its header wants %" PRId64, length, want);
    if (head.fortran && head.type.rank > 1)
        return dc_path_fail(
            j, DC_ERR_FORMAT, path,
            "its first axis varies fastest (Fortran's order): rows are not together");
    f->swap = head.swap;
    return finish(j, f, &head.type, (int64_t)head.bytes, out);
}

static void close_st(void *f)
{
    dc_safetensors_close(f);
}

dc_status dc_rows_safetensors(dc_job *j, const char *path, const char *name, dc_rows **out)
{
    dc_st_file *st;
    file_rows *f;
    int64_t length;
    DC_TRY(dc_safetensors_open(j, path, &st));
    dc_job_defer(j, close_st, st);
    const dc_st_tensor *t = dc_safetensors_find(st, name);
    if (t == NULL)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "has no tensor '%.80s'", name);
    DC_TRY(dc_safetensors_readable(st, j, t));
    DC_TRY(open_rows(j, path, &f, &length));
    if (t->at + t->bytes > length)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "has become shorter");
    return finish(j, f, &t->type, t->at, out);
}

dc_status dc_rows_raw(dc_job *j, const char *path, const dc_type *type, int64_t at, dc_rows **out)
{
    file_rows *f;
    int64_t length;
    DC_TRY(open_rows(j, path, &f, &length));
    const int64_t want = (int64_t)dc_type_bytes(type);
    if (at < 0 || at > length || want > length - at)
        return dc_path_fail(j, DC_ERR_FORMAT, path,
                            "has %" PRId64 " bytes, %" PRId64 " from byte %" PRId64
                            " on are wanted",
                            length, want, at);
    return finish(j, f, type, at, out);
}

/* ---- of several lengths ----------------------------------------------------------------------- */

typedef struct ragged {
    dc_rows rows;
    size_t step;        /* bytes of one place */
    int64_t *length;    /* of rows, then the bounds */
    int64_t *begin;     /* in places */
    char *values, *pad; /* one place of padding */
} ragged;

static void free_ragged(dc_rows *r)
{
    ragged *g = (ragged *)r;
    dc_xfree(g->length);
    dc_xfree(g->begin);
    dc_xfree(g->values);
    dc_xfree(g->pad);
    dc_xfree(g);
}

static dc_status get_ragged(const dc_rows *r, dc_job *j, int64_t first, int64_t count,
                            int64_t length, void *to)
{
    const ragged *g = (const ragged *)r;
    char *at = to;
    DC_UNUSED(j);
    for (int64_t i = first; i < first + count; i++) {
        const size_t n = (size_t)g->length[i] * g->step;
        if (n > 0)
            memcpy(at, g->values + (size_t)g->begin[i] * g->step, n);
        at += n;
        for (int64_t k = g->length[i]; k < length; k++, at += g->step)
            memcpy(at, g->pad, g->step);
    }
    return DC_OK;
}

dc_status dc_rows_ragged(dc_job *j, const dc_type *type, const void *values, const int64_t *length,
                         int64_t n, uint64_t pad, const int64_t *bound, size_t nbound,
                         dc_rows **out)
{
    const size_t size = dc_dtype_size((dc_dtype)type->dtype), bytes = dc_type_bytes(type);
    ragged *g = dc_xalloc(sizeof *g);
    g->rows.free = free_ragged;
    g->rows.get = get_ragged;
    dc_job_defer(j, defer_free, &g->rows);
    g->step = size;
    for (int i = 1; i < type->rank; i++)
        g->step *= (size_t)type->dim[i];
    g->length = dc_xalloc(((size_t)n + nbound + 1) * sizeof *g->length);
    g->begin = dc_xalloc(((size_t)n + 1) * sizeof *g->begin);
    g->pad = dc_xalloc(g->step + 1);
    g->values = dc_xalloc(bytes + 1);
    memcpy(g->values, values, bytes);
    for (size_t i = 0; i + size <= g->step; i += size)
        dc_bits_store((dc_dtype)type->dtype, g->pad + i, pad);
    int64_t at = 0, most = 1;
    for (int64_t i = 0; i < n; at += length[i++]) {
        g->length[i] = length[i];
        g->begin[i] = at;
        most = dc_max_i64(most, length[i]);
    }
    if (at != type->dim[0])
        return dc_failf(j, DC_ERR_DIMS_TEXT, NULL,
                        "lengths are %" PRId64 " together, values %" PRId64, at, type->dim[0]);
    for (size_t i = 0; i < nbound; i++)
        g->length[n + (int64_t)i] = bound[i];
    g->rows.length = g->length;
    g->rows.bound = g->length + n;
    g->rows.nbound = nbound;
    most = nbound > 0 ? dc_max_i64(most, bound[nbound - 1]) : most;
    g->rows.type = dc_type_stacked(type, n);
    g->rows.type.dim[1] = most;
    if (!dc_dims_known(g->rows.type.rank, g->rows.type.dim) ||
        !dc_dims_fit(g->rows.type.rank, g->rows.type.dim, size))
        return dc_failf(j, DC_ERR_DIMS_TEXT, NULL, "rows of %" PRId64 " are too large to address",
                        most);
    g->rows.row = (size_t)most * g->step;
    dc_job_keep(j, &g->rows);
    *out = &g->rows;
    return DC_OK;
}
