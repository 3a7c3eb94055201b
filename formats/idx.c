/*
 * idx files to a type and its elements. What is read is checked in the order of the file, so the
 * message names the first thing that is wrong; the sizes are compared with what a file of this
 * length can hold before memory is asked for.
 */
#define _GNU_SOURCE
#include "formats/idx.h"

#include "core/base/path.h"
#include "formats/gunzip.h"
#include "formats/infile.h"

#include <inttypes.h>
#include <sys/stat.h>

enum { CODE_U8 = 0x08 };

typedef struct idx_file {
    dc_job *job;
    const char *path;
    dc_gunzip *in;
    int64_t length; /* bytes on disk */
    int64_t most;   /* elements that are read */
} idx_file;

#define fail(f, id, ...) dc_path_fail((f)->job, id, (f)->path, __VA_ARGS__)

/* Reads n bytes, or fewer at the end of the file: *got tells. */
static dc_status read_bytes(const idx_file *f, void *to, int64_t n, int64_t *got)
{
    size_t bytes = 0;
    const dc_status status = dc_gunzip_read(f->in, f->job, to, (size_t)n, &bytes);
    *got = (int64_t)bytes;
    return status;
}

static const char *name_of_code(int code)
{
    switch (code) {
    case CODE_U8:
        return "u8";
    case 0x09:
        return "i8";
    case 0x0b:
        return "i16";
    case 0x0c:
        return "i32";
    case 0x0d:
        return "f32";
    case 0x0e:
        return "f64";
    default:
        return NULL;
    }
}

/* Magic number: 0 0 code axes. */
static dc_status read_magic(const idx_file *f, dc_type *type)
{
    unsigned char m[4];
    int64_t got;
    DC_TRY(read_bytes(f, m, sizeof m, &got));
    if (got < (int64_t)sizeof m)
        return fail(f, DC_ERR_FORMAT, "not an idx file: %" PRId64 " bytes long", got);
    if (m[0] != 0 || m[1] != 0)
        return fail(f, DC_ERR_FORMAT, "not an idx file: starts with %02x %02x %02x %02x", m[0],
                    m[1], m[2], m[3]);
    const char *name = name_of_code(m[2]);
    if (name == NULL)
        return fail(f, DC_ERR_FORMAT, "not an idx file: unknown element type 0x%02x", m[2]);
    if (m[2] != CODE_U8)
        return fail(f, DC_ERR_FORMAT, "elements are %s (type 0x%02x), only u8 (0x08) is read", name,
                    m[2]);
    if (m[3] == 0)
        return fail(f, DC_ERR_FORMAT, "no axes are declared");
    if (m[3] > DC_MAX_RANK)
        return fail(f, DC_ERR_FORMAT, "%d axes are declared, %d is the most", m[3], DC_MAX_RANK);
    *type = (dc_type){.dtype = DC_U8, .rank = m[3]};
    return DC_OK;
}

/* Before memory is asked for: can a file of this length hold so many elements? */
static dc_status check_sizes(const idx_file *f, const dc_type *type)
{
    char text[DC_TYPE_TEXT];
    dc_type_print(type, text, sizeof text);
    if (!dc_dims_fit(type->rank, type->dim, dc_dtype_size(DC_U8)))
        return fail(f, DC_ERR_FORMAT, "%s is too large to address", text);
    const int64_t n = dc_type_count(type), header = 4 + 4 * type->rank;
    if (!dc_gunzip_packs(f->in) && n > f->length - header)
        return fail(f, DC_ERR_FORMAT, "truncated: got %" PRId64 " of %" PRId64 " bytes of data",
                    f->length - header, n);
    if (dc_gunzip_packs(f->in) && n / DC_GUNZIP_BEST > f->length)
        return fail(f, DC_ERR_FORMAT,
                    "%s is declared, more than %" PRId64 " compressed bytes can hold", text,
                    f->length);
    return DC_OK;
}

static dc_status read_sizes(const idx_file *f, dc_type *type)
{
    unsigned char b[4 * DC_MAX_RANK];
    int64_t got;
    DC_TRY(read_bytes(f, b, 4 * type->rank, &got));
    if (got < 4 * type->rank)
        return fail(f, DC_ERR_FORMAT,
                    "truncated: the sizes of %d axes need %d bytes, %" PRId64 " are there",
                    type->rank, 4 * type->rank, got);
    for (int i = 0; i < type->rank; i++) {
        const unsigned char *p = b + 4 * i;
        type->dim[i] = (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
        if (type->dim[i] == 0)
            return fail(f, DC_ERR_FORMAT, "axis %d has size 0", i + 1);
    }
    return check_sizes(f, type);
}

/* The elements, and nothing behind them. */
static dc_status read_elements(const idx_file *f, const dc_type *type, unsigned char *data)
{
    const int64_t n = dc_type_count(type);
    int64_t got, more;
    unsigned char extra;
    DC_TRY(read_bytes(f, data, n, &got));
    if (got < n)
        return fail(f, DC_ERR_FORMAT, "truncated: got %" PRId64 " of %" PRId64 " bytes of data",
                    got, n);
    /* Also has the checksum at the end of the stream compared, and looks behind it. */
    DC_TRY(read_bytes(f, &extra, 1, &more));
    if (more > 0)
        return fail(f, DC_ERR_FORMAT, "bytes follow the %" PRId64 " bytes of data", n);
    return DC_OK;
}

static dc_status read_open(const idx_file *f, dc_type *type, void **data)
{
    DC_TRY(read_magic(f, type));
    DC_TRY(read_sizes(f, type));
    const int64_t n = dc_type_count(type);
    if (n > f->most)
        return DC_OK;
    unsigned char *room = dc_try_realloc(NULL, (size_t)n);
    if (room == NULL)
        return dc_fail_memory(f->job, (uint64_t)n);
    const dc_status status = read_elements(f, type, room);
    if (status != DC_OK) {
        dc_xfree(room);
        return status;
    }
    *data = room;
    return DC_OK;
}

dc_status dc_idx_read(dc_job *j, const char *path, dc_type *type, void **data)
{
    return dc_idx_read_small(j, path, INT64_MAX, type, data);
}

dc_status dc_idx_read_small(dc_job *j, const char *path, int64_t most, dc_type *type, void **data)
{
    idx_file f = {.job = j, .path = path, .most = most};
    *data = NULL;
    struct stat st;
    int fd;
    DC_TRY(dc_infile_open(j, path, &fd, &st));
    f.length = st.st_size;
    DC_TRY(dc_gunzip_open(j, path, fd, f.length, &f.in));
    const dc_status status = read_open(&f, type, data);
    dc_gunzip_close(f.in);
    return status;
}
