#define _POSIX_C_SOURCE 200809L
#include "formats/zip.h"

#include "core/base/path.h"
#include "formats/flow.h"
#include "formats/infile.h"
#include "formats/unpack.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DIRECTORY_MAX = 1 << 26,
    DEFLATE_BEST = 1032,  /* deflate cannot shrink by more than this factor (zlib's manual) */
    OTHERS_FREE = 1 << 26 /* other methods may, for so many bytes */
};

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

#define fail(z, j, ...) dc_path_fail((j), DC_ERR_FORMAT, (z)->path, __VA_ARGS__)
/* "not an npz file: ..." */
#define fail_as(z, j, text) fail((z), (j), "not %s: " text, (z)->what)

/* "path: 'entry': sentence". */
static dc_status fail_in(dc_job *j, const dc_zip *z, const dc_zip_entry *e, const char *fmt, ...)
    DC_PRINTF(4, 5);

static dc_status fail_in(dc_job *j, const dc_zip *z, const dc_zip_entry *e, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fail(z, j, "'%.80s': %s", e->name, text);
}

/* Exactly n bytes. */
static dc_status read_at(const dc_zip *z, dc_job *j, uint64_t at, void *to, size_t n)
{
    size_t got = 0;
    if (at > (uint64_t)z->length || n > (uint64_t)z->length - at)
        return fail_as(z, j, "it points behind its end");
    DC_TRY(dc_infile_read(j, z->path, z->fd, (int64_t)at, to, n, &got));
    return got == n ? DC_OK : fail(z, j, "has become shorter");
}

/* ---- the directory ---------------------------------------------------------------------------- */

typedef struct directory {
    uint64_t at, size, count;
} directory;

/* The end record has been found at `at`. */
static dc_status read_end(const dc_zip *z, dc_job *j, uint64_t at, const unsigned char *end,
                          directory *out)
{
    unsigned char locator[DC_ZIP_LOCATOR64], wide[DC_ZIP_END64];
    *out = (directory){get32(end + 16), get32(end + 12), get16(end + 10)};
    if (at >= DC_ZIP_LOCATOR64) {
        DC_TRY(read_at(z, j, at - DC_ZIP_LOCATOR64, locator, sizeof locator));
        if (get32(locator) == 0x07064b50) {
            DC_TRY(read_at(z, j, get64(locator + 8), wide, sizeof wide));
            if (get32(wide) != 0x06064b50)
                return fail_as(z, j, "the archive's end record is damaged");
            *out = (directory){get64(wide + 48), get64(wide + 40), get64(wide + 32)};
        }
    }
    if (out->size > DIRECTORY_MAX || out->count > out->size / DC_ZIP_ENTRY)
        return fail_as(z, j, "the archive's directory is damaged");
    return DC_OK;
}

static dc_status find_end(const dc_zip *z, dc_job *j, directory *out)
{
    const size_t most = 65535 + DC_ZIP_END;
    const size_t n = (uint64_t)z->length < most ? (size_t)z->length : most;
    unsigned char *tail = dc_arena_alloc(&j->scratch, n + 1);
    const uint64_t from = (uint64_t)z->length - n;
    DC_TRY(read_at(z, j, from, tail, n));
    for (size_t i = n < DC_ZIP_END ? 0 : n - DC_ZIP_END + 1; i-- > 0;)
        if (get32(tail + i) == 0x06054b50 && get16(tail + i + 20) == n - i - DC_ZIP_END)
            return read_end(z, j, from + i, tail + i, out);
    return fail_as(z, j, "no directory of an archive at its end");
}

/* Sizes beyond 32 bits, in the order in which the entry has none of its own. */
static dc_status read_wide(const dc_zip *z, dc_job *j, const unsigned char *extra, size_t n,
                           dc_zip_entry *e)
{
    uint64_t *const field[] = {&e->size, &e->packed, &e->at};
    while (n >= 4) {
        const size_t size = get16(extra + 2);
        const unsigned char *at = extra + 4, *end = at + size;
        if (size > n - 4)
            break;
        for (size_t i = 0; get16(extra) == 1 && i < DC_COUNTOF(field); i++)
            if (*field[i] == 0xffffffff) {
                if (end - at < 8)
                    return fail(z, j, "not %s: sizes of '%.80s' are damaged", z->what, e->name);
                *field[i] = get64(at);
                at += 8;
            }
        extra = end;
        n -= size + 4;
    }
    return DC_OK;
}

/* One entry of the directory; *size becomes what it takes there. */
static dc_status read_entry(dc_zip *z, dc_job *j, const unsigned char *p, size_t left, size_t *size)
{
    if (left < DC_ZIP_ENTRY || get32(p) != 0x02014b50)
        return fail_as(z, j, "the archive's directory is damaged");
    const size_t name = get16(p + 28), extra = get16(p + 30), note = get16(p + 32);
    *size = DC_ZIP_ENTRY + name + extra + note;
    if (*size > left || memchr(p + DC_ZIP_ENTRY, '\0', name) != NULL)
        return fail_as(z, j, "the archive's directory is damaged");
    dc_zip_entry *e = &z->entry[z->n++];
    e->name = dc_arena_printf(&z->arena, "%.*s", (int)name, (const char *)p + DC_ZIP_ENTRY);
    e->method = get16(p + 10);
    e->crc = get32(p + 16);
    e->packed = get32(p + 20);
    e->size = get32(p + 24);
    e->at = get32(p + 42);
    DC_TRY(read_wide(z, j, p + DC_ZIP_ENTRY + name, extra, e));
    e->encrypted = (get16(p + 8) & 1) != 0;
    e->ends = (get16(p + 8) & 2) != 0;
    const bool fits =
        e->method == DC_ZIP_STORED ? e->packed == e->size || e->encrypted
        : e->method == DC_ZIP_DEFLATED
            ? e->size / DEFLATE_BEST <= e->packed
            : (e->size - OTHERS_FREE) / DEFLATE_BEST <= e->packed || e->size <= OTHERS_FREE;
    if (e->packed > (uint64_t)z->length || !fits)
        return fail(z, j,
                    "'%.80s' declares %" PRIu64 " bytes, more than %" PRIu64 " packed ones hold",
                    e->name, e->size, e->packed);
    return DC_OK;
}

static dc_status read_directory(dc_zip *z, dc_job *j)
{
    directory d = {0};
    DC_TRY(find_end(z, j, &d));
    unsigned char *p = dc_arena_alloc(&j->scratch, (size_t)d.size + 1);
    DC_TRY(read_at(z, j, d.at, p, (size_t)d.size));
    z->entry = DC_NEW_ARRAY(&z->arena, dc_zip_entry, d.count + 1);
    size_t left = (size_t)d.size, size = 0;
    for (uint64_t i = 0; i < d.count; i++, p += size, left -= size)
        DC_TRY(read_entry(z, j, p, left, &size));
    return DC_OK;
}

void dc_zip_close(dc_zip *z)
{
    if (z == NULL)
        return;
    if (z->fd >= 0)
        close(z->fd);
    dc_arena_free(&z->arena);
    dc_xfree(z->path);
    dc_xfree(z);
}

static void close_zip(void *z)
{
    dc_zip_close(z);
}

dc_status dc_zip_open(dc_job *j, const char *path, const char *what, dc_zip **out)
{
    dc_zip *z = dc_xalloc(sizeof *z);
    z->fd = -1;
    z->what = what;
    dc_job_defer(j, close_zip, z);
    z->path = dc_xalloc(strlen(path) + 1);
    memcpy(z->path, path, strlen(path));
    DC_TRY(dc_infile_open(j, path, &z->fd, &z->st));
    z->length = z->st.st_size;
    DC_TRY(read_directory(z, j));
    dc_job_keep(j, z);
    *out = z;
    return DC_OK;
}

const dc_zip_entry *dc_zip_find(const dc_zip *z, const char *name)
{
    for (uint32_t i = 0; i < z->n; i++)
        if (strcmp(z->entry[i].name, name) == 0)
            return &z->entry[i];
    return NULL;
}

/* ---- entries ---------------------------------------------------------------------------------- */

struct dc_zip_stream {
    const dc_zip *z;
    const dc_zip_entry *e;
    uint64_t at, left;         /* in the file: packed bytes */
    const unsigned char *next; /* packed bytes that have been read */
    size_t nnext;
    uint64_t given; /* unpacked ones so far */
    uint32_t crc;
    z_stream flate;
    dc_unpack *unpack; /* of other methods */
    bool flating, done;
    unsigned char piece[1 << 16];
};

static dc_status fill(dc_zip_stream *s, dc_job *j)
{
    const size_t n = s->left < sizeof s->piece ? (size_t)s->left : sizeof s->piece;
    DC_TRY(read_at(s->z, j, s->at, s->piece, n));
    s->at += n;
    s->left -= n;
    s->next = s->piece;
    s->nnext = n;
    return DC_OK;
}

static const char *word(const dc_zip_stream *s)
{
    return s->flating ? "deflated" : "packed";
}

static dc_status fail_damaged(const dc_zip_stream *s, dc_job *j)
{
    return fail_in(j, s->z, s->e, "the %s data is damaged%s%s", word(s),
                   s->flating && s->flate.msg != NULL ? ": " : "",
                   s->flating && s->flate.msg != NULL ? s->flate.msg : "");
}

/* At most `room` bytes more; *used is how many there were. */
static dc_status step(dc_zip_stream *s, dc_job *j, unsigned char *to, size_t room, size_t *used)
{
    dc_flow f = {s->next, s->nnext, to, room};
    const dc_flowed how = s->flating ? dc_inflate(&s->flate, &f) : dc_unpack_some(s->unpack, &f);
    const bool moved = f.nfrom < s->nnext || f.nto < room;
    *used = room - f.nto;
    s->next = f.from;
    s->nnext = f.nfrom;
    s->done = how == DC_FLOWED_ALL;
    if (how == DC_FLOWED_MEMORY)
        return s->flating ? dc_fail(j, DC_ERR_NOMEM, NULL)
                          : fail_in(j, s->z, s->e, "unpacking it takes more memory than it may");
    if (how == DC_FLOWED_WRONG)
        return fail_in(j, s->z, s->e, "%s gives wrong counts of bytes",
                       s->flating ? "zlib" : dc_unpack_library(s->unpack));
    if (how == DC_FLOWED_DAMAGED)
        return fail_damaged(s, j);
    return how == DC_FLOWED_ALL || moved || s->left > 0
               ? DC_OK
               : fail_in(j, s->z, s->e, "the %s data is cut off", word(s));
}

static dc_status unpack_some(dc_zip_stream *s, dc_job *j, unsigned char *to, size_t n, size_t *got)
{
    enum { PIECE = 1 << 20 };
    *got = 0;
    while (*got < n && !s->done) {
        size_t used;
        DC_TRY(dc_job_ended(j));
        if (s->nnext == 0 && s->left > 0)
            DC_TRY(fill(s, j));
        DC_TRY(step(s, j, to + *got, n - *got < PIECE ? n - *got : PIECE, &used));
        *got += used;
    }
    return DC_OK;
}

dc_status dc_zip_stream_read(dc_zip_stream *s, dc_job *j, void *to, size_t n, size_t *got)
{
    if (s->e->method != DC_ZIP_STORED) {
        DC_TRY(unpack_some(s, j, to, n, got));
    } else {
        *got = s->left < n ? (size_t)s->left : n;
        DC_TRY(read_at(s->z, j, s->at, to, *got));
        s->at += *got;
        s->left -= *got;
    }
    s->given += *got;
    s->crc = (uint32_t)crc32_z(s->crc, to, *got);
    if (*got < n && s->done && (s->nnext > 0 || s->left > 0))
        return fail_in(j, s->z, s->e, "bytes follow the %s data", word(s));
    if (*got < n && (s->crc != s->e->crc || s->given != s->e->size || s->left > 0))
        return fail_in(j, s->z, s->e, "the data differ from the archive's checksum");
    return DC_OK;
}

dc_status dc_zip_place(const dc_zip *z, dc_job *j, const dc_zip_entry *e, uint64_t *at)
{
    unsigned char local[DC_ZIP_LOCAL];
    DC_TRY(read_at(z, j, e->at, local, sizeof local));
    if (get32(local) != 0x04034b50)
        return fail_in(j, z, e, "the archive points to something else");
    *at = e->at + DC_ZIP_LOCAL + get16(local + 26) + get16(local + 28);
    return DC_OK;
}

static bool is_packed_otherwise(const dc_zip_entry *e)
{
    return e->method == DC_ZIP_BZIP2 || e->method == DC_ZIP_LZMA;
}

static dc_unpack_kind kind_of(const dc_zip_entry *e)
{
    return e->method == DC_ZIP_LZMA ? DC_UNPACK_LZMA : DC_UNPACK_BZIP2;
}

const char *dc_zip_unread(dc_zip *z, const dc_zip_entry *e)
{
    if (e->encrypted)
        return "it is encrypted";
    if (is_packed_otherwise(e))
        return dc_unpack_missing(kind_of(e));
    if (e->method == DC_ZIP_STORED || e->method == DC_ZIP_DEFLATED)
        return NULL;
    return dc_arena_printf(&z->arena, "it is packed by method %u, which is not known", e->method);
}

static void end_stream(void *stream)
{
    dc_zip_stream *s = stream;
    if (s->flating)
        inflateEnd(&s->flate);
    dc_unpack_close(s->unpack);
}

/*
 * Of LZMA the entry has a version, the size of the properties and these; a stream by itself has the properties and its length,
 * which is not said where it tells its end.
 */
static dc_status begin_lzma(dc_zip_stream *s, dc_job *j)
{
    enum { HEAD = 9, PROPERTIES = 5 };
    unsigned char head[HEAD];
    if (s->left < HEAD)
        return fail_in(j, s->z, s->e, "the packed data is cut off");
    DC_TRY(read_at(s->z, j, s->at, head, HEAD));
    if (get16(head + 2) != PROPERTIES)
        return fail_in(j, s->z, s->e, "the packed data is damaged");
    memcpy(s->piece, head + 4, PROPERTIES);
    for (int i = 0; i < 8; i++)
        s->piece[PROPERTIES + i] = s->e->ends ? 0xff : (unsigned char)(s->e->size >> 8 * i);
    s->at += HEAD;
    s->left -= HEAD;
    s->nnext = PROPERTIES + 8;
    return DC_OK;
}

static dc_status begin_unpack(dc_zip_stream *s, dc_job *j)
{
    const char *missing = dc_unpack_missing(kind_of(s->e));
    if (missing != NULL)
        return dc_path_fail(j, DC_ERR_FILE, s->z->path, "'%.80s': %s", s->e->name, missing);
    s->unpack = dc_unpack_open(kind_of(s->e));
    if (s->unpack == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    dc_job_defer(j, end_stream, s);
    return s->e->method == DC_ZIP_LZMA ? begin_lzma(s, j) : DC_OK;
}

dc_status dc_zip_stream_open(const dc_zip *z, dc_job *j, const dc_zip_entry *e, dc_zip_stream **out)
{
    dc_zip_stream *s = DC_NEW(&j->scratch, dc_zip_stream);
    s->z = z;
    s->e = e;
    s->left = e->packed;
    s->next = s->piece;
    if (e->encrypted)
        return fail(z, j, "'%.80s' is encrypted", e->name);
    DC_TRY(dc_zip_place(z, j, e, &s->at));
    *out = s;
    if (is_packed_otherwise(e))
        return begin_unpack(s, j);
    if (e->method == DC_ZIP_STORED)
        return DC_OK;
    if (e->method != DC_ZIP_DEFLATED)
        return fail(z, j, "'%.80s' is packed by method %u, which is not known", e->name, e->method);
    if (inflateInit2(&s->flate, -MAX_WBITS) != Z_OK)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    s->flating = true;
    dc_job_defer(j, end_stream, s);
    return DC_OK;
}

void dc_zip_stream_close(dc_zip_stream *s, dc_job *j)
{
    if (!s->flating && s->unpack == NULL)
        return;
    dc_job_keep(j, s);
    end_stream(s);
}

dc_status dc_zip_read(const dc_zip *z, dc_job *j, uint64_t from, void *to, size_t n)
{
    return read_at(z, j, from, to, n);
}
