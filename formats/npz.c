/*
 * Archives of arrays. Of the zip format (APPNOTE.TXT 6.3) what archives of NumPy have: stored and deflated entries, sizes
 * beyond 4 GiB. The central directory says where entries are and how large; an entry's own header is only stepped over.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/npy_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    END = 22, /* bytes of the records of the format, without what varies */
    END64 = 56,
    LOCATOR64 = 20,
    ENTRY = 46,
    LOCAL = 30,
    STORED = 0,
    DEFLATED = 8,
    DIRECTORY_MAX = 1 << 26,
    DEFLATE_BEST = 1032 /* deflate cannot shrink by more than this factor (zlib's manual) */
};

typedef struct zip_entry {
    const char *name; /* as in the archive */
    uint64_t at, packed, size;
    uint32_t crc;
    unsigned method;
} zip_entry;

struct dc_npz {
    char *path;
    int fd;
    int64_t length;
    zip_entry *entry;
    uint32_t n;
    dc_arena arena; /* of names and entries */
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

/* Exactly n bytes. */
static dc_status read_at(const dc_npz *z, dc_job *j, uint64_t at, void *to, size_t n)
{
    size_t got = 0;
    if (at > (uint64_t)z->length || n > (uint64_t)z->length - at)
        return fail(z, j, "not an npz file: it points behind its end");
    DC_TRY(dc_infile_read(j, z->path, z->fd, (int64_t)at, to, n, &got));
    return got == n ? DC_OK : fail(z, j, "has become shorter");
}

/* ---- the directory ---------------------------------------------------------------------------- */

typedef struct directory {
    uint64_t at, size, count;
} directory;

/* The end record has been found at `at`. */
static dc_status read_end(const dc_npz *z, dc_job *j, uint64_t at, const unsigned char *end,
                          directory *out)
{
    unsigned char locator[LOCATOR64], wide[END64];
    *out = (directory){get32(end + 16), get32(end + 12), get16(end + 10)};
    if (at >= LOCATOR64) {
        DC_TRY(read_at(z, j, at - LOCATOR64, locator, sizeof locator));
        if (get32(locator) == 0x07064b50) {
            DC_TRY(read_at(z, j, get64(locator + 8), wide, sizeof wide));
            if (get32(wide) != 0x06064b50)
                return fail(z, j, "not an npz file: the archive's end record is damaged");
            *out = (directory){get64(wide + 48), get64(wide + 40), get64(wide + 32)};
        }
    }
    if (out->size > DIRECTORY_MAX || out->count > out->size / ENTRY)
        return fail(z, j, "not an npz file: the archive's directory is damaged");
    return DC_OK;
}

static dc_status find_end(const dc_npz *z, dc_job *j, directory *out)
{
    const size_t most = 65535 + END;
    const size_t n = (uint64_t)z->length < most ? (size_t)z->length : most;
    unsigned char *tail = dc_arena_alloc(&j->scratch, n + 1);
    const uint64_t from = (uint64_t)z->length - n;
    DC_TRY(read_at(z, j, from, tail, n));
    for (size_t i = n < END ? 0 : n - END + 1; i-- > 0;)
        if (get32(tail + i) == 0x06054b50 && get16(tail + i + 20) == n - i - END)
            return read_end(z, j, from + i, tail + i, out);
    return fail(z, j, "not an npz file: no directory of an archive at its end");
}

/* Sizes beyond 32 bits, in the order in which the entry has none of its own. */
static dc_status read_wide(const dc_npz *z, dc_job *j, const unsigned char *extra, size_t n,
                           zip_entry *e)
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
                    return fail(z, j, "not an npz file: sizes of '%.80s' are damaged", e->name);
                *field[i] = get64(at);
                at += 8;
            }
        extra = end;
        n -= size + 4;
    }
    return DC_OK;
}

/* One entry of the directory; *size becomes what it takes there. */
static dc_status read_entry(dc_npz *z, dc_job *j, const unsigned char *p, size_t left, size_t *size)
{
    if (left < ENTRY || get32(p) != 0x02014b50)
        return fail(z, j, "not an npz file: the archive's directory is damaged");
    const size_t name = get16(p + 28), extra = get16(p + 30), note = get16(p + 32);
    *size = ENTRY + name + extra + note;
    if (*size > left || memchr(p + ENTRY, '\0', name) != NULL)
        return fail(z, j, "not an npz file: the archive's directory is damaged");
    zip_entry *e = &z->entry[z->n++];
    e->name = dc_arena_printf(&z->arena, "%.*s", (int)name, (const char *)p + ENTRY);
    e->method = get16(p + 10);
    e->crc = get32(p + 16);
    e->packed = get32(p + 20);
    e->size = get32(p + 24);
    e->at = get32(p + 42);
    DC_TRY(read_wide(z, j, p + ENTRY + name, extra, e));
    if ((get16(p + 8) & 1) != 0)
        return fail(z, j, "'%.80s' is encrypted", e->name);
    if (e->method != STORED && e->method != DEFLATED)
        return fail(z, j, "'%.80s' is packed by method %u; stored and deflated ones are read",
                    e->name, e->method);
    const bool fits =
        e->method == STORED ? e->packed == e->size : e->size / DEFLATE_BEST <= e->packed;
    if (e->packed > (uint64_t)z->length || !fits)
        return fail(z, j,
                    "'%.80s' declares %" PRIu64 " bytes, more than %" PRIu64 " packed ones hold",
                    e->name, e->size, e->packed);
    return DC_OK;
}

static bool is_array(const char *name)
{
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

static dc_status read_directory(dc_npz *z, dc_job *j)
{
    directory d = {0};
    DC_TRY(find_end(z, j, &d));
    unsigned char *p = dc_arena_alloc(&j->scratch, (size_t)d.size + 1);
    DC_TRY(read_at(z, j, d.at, p, (size_t)d.size));
    z->entry = DC_NEW_ARRAY(&z->arena, zip_entry, d.count + 1);
    size_t left = (size_t)d.size, size = 0;
    for (uint64_t i = 0; i < d.count; i++, p += size, left -= size) {
        DC_TRY(read_entry(z, j, p, left, &size));
        if (!is_array(z->entry[z->n - 1].name))
            z->n--; /* something else that lies there */
    }
    return DC_OK;
}

void dc_npz_close(dc_npz *z)
{
    if (z == NULL)
        return;
    if (z->fd >= 0)
        close(z->fd);
    dc_arena_free(&z->arena);
    dc_xfree(z->path);
    dc_xfree(z);
}

static void close_npz(void *z)
{
    dc_npz_close(z);
}

dc_status dc_npz_open(dc_job *j, const char *path, dc_npz **out)
{
    struct stat st;
    dc_npz *z = dc_xalloc(sizeof *z);
    z->fd = -1;
    dc_job_defer(j, close_npz, z);
    z->path = dc_xalloc(strlen(path) + 1);
    memcpy(z->path, path, strlen(path));
    DC_TRY(dc_infile_open(j, path, &z->fd, &st));
    z->length = st.st_size;
    DC_TRY(read_directory(z, j));
    dc_job_keep(j, z);
    *out = z;
    return DC_OK;
}

uint32_t dc_npz_count(const dc_npz *z)
{
    return z->n;
}

const char *dc_npz_name(const dc_npz *z, uint32_t i)
{
    return z->entry[i].name;
}

/* ---- entries ---------------------------------------------------------------------------------- */

typedef struct packed_stream {
    dc_npy_stream in;
    const dc_npz *z;
    const zip_entry *e;
    uint64_t at, left; /* in the file: packed bytes */
    uint64_t given;    /* unpacked ones so far */
    uint32_t crc;
    z_stream flate;
    bool flating, done;
    unsigned char piece[1 << 16];
} packed_stream;

static dc_status fill(packed_stream *s, dc_job *j)
{
    const size_t n = s->left < sizeof s->piece ? (size_t)s->left : sizeof s->piece;
    DC_TRY(read_at(s->z, j, s->at, s->piece, n));
    s->at += n;
    s->left -= n;
    s->flate.next_in = s->piece;
    s->flate.avail_in = (unsigned)n;
    return DC_OK;
}

static dc_status inflate_some(packed_stream *s, dc_job *j, unsigned char *to, size_t n, size_t *got)
{
    enum { PIECE = 1 << 20 };
    *got = 0;
    while (*got < n && !s->done) {
        DC_TRY(dc_job_ended(j));
        if (s->flate.avail_in == 0 && s->left > 0)
            DC_TRY(fill(s, j));
        const unsigned room = (unsigned)dc_min_i64((int64_t)(n - *got), PIECE);
        s->flate.next_out = to + *got;
        s->flate.avail_out = room;
        const int code = inflate(&s->flate, Z_NO_FLUSH);
        *got += room - s->flate.avail_out;
        s->done = code == Z_STREAM_END;
        if (code == Z_MEM_ERROR)
            return dc_fail(j, DC_ERR_NOMEM, NULL);
        if (code == Z_BUF_ERROR && s->flate.avail_in == 0 && s->left == 0)
            return dc_npy_fail(j, s->in.path, s->in.entry, "the deflated data is cut off");
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return dc_npy_fail(j, s->in.path, s->in.entry, "the deflated data is damaged: %s",
                               s->flate.msg != NULL ? s->flate.msg : "unknown data");
    }
    return DC_OK;
}

static dc_status read_packed(dc_npy_stream *in, dc_job *j, void *to, size_t n, size_t *got)
{
    packed_stream *s = (packed_stream *)in;
    if (s->e->method == DEFLATED) {
        DC_TRY(inflate_some(s, j, to, n, got));
    } else {
        *got = s->left < n ? (size_t)s->left : n;
        DC_TRY(read_at(s->z, j, s->at, to, *got));
        s->at += *got;
        s->left -= *got;
    }
    s->given += *got;
    s->crc = (uint32_t)crc32_z(s->crc, to, *got);
    if (*got < n && (s->crc != s->e->crc || s->given != s->e->size || s->left > 0))
        return dc_npy_fail(j, in->path, in->entry, "the data differ from the archive's checksum");
    return DC_OK;
}

static void end_flate(void *s)
{
    inflateEnd(&((packed_stream *)s)->flate);
}

dc_status dc_npz_read(dc_npz *z, dc_job *j, uint32_t i, const dc_room *room)
{
    const zip_entry *e = &z->entry[i];
    unsigned char local[LOCAL];
    packed_stream *s = DC_NEW(&j->scratch, packed_stream);
    s->in = (dc_npy_stream){read_packed, z->path, e->name, (int64_t)e->size};
    s->z = z;
    s->e = e;
    s->left = e->packed;
    DC_TRY(read_at(z, j, e->at, local, sizeof local));
    if (get32(local) != 0x04034b50)
        return dc_npy_fail(j, z->path, e->name, "the archive points to something else");
    s->at = e->at + LOCAL + get16(local + 26) + get16(local + 28);
    if (e->method == DEFLATED) {
        if (inflateInit2(&s->flate, -MAX_WBITS) != Z_OK)
            return dc_fail(j, DC_ERR_NOMEM, NULL);
        dc_job_defer(j, end_flate, s);
    }
    const dc_status status = dc_npy_read_stream(j, &s->in, room);
    if (e->method == DEFLATED) {
        dc_job_keep(j, s);
        end_flate(s);
    }
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------- */

typedef struct writer {
    dc_job *job;
    dc_outfile *f;
    uint64_t at;
    zip_entry *entry; /* written so far */
} writer;

static dc_status put(writer *w, const void *bytes, size_t n)
{
    w->at += n;
    return dc_outfile_write(w->f, bytes, n);
}

static unsigned char *put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
    return p + 2;
}

static unsigned char *put32(unsigned char *p, uint64_t v)
{
    return put16(put16(p, (uint32_t)v & 0xffff), (uint32_t)(v >> 16) & 0xffff);
}

static unsigned char *put64(unsigned char *p, uint64_t v)
{
    return put32(put32(p, v & 0xffffffff), v >> 32);
}

static uint64_t low32(uint64_t v)
{
    return v < 0xffffffff ? v : 0xffffffff;
}

static bool is_wide(const zip_entry *e)
{
    return e->size >= 0xffffffff || e->packed >= 0xffffffff || e->at >= 0xffffffff;
}

/* What a local header and one of the directory share: from the version to the length of the name. No time: equal
 * values are equal bytes. */
static unsigned char *put_common(unsigned char *p, const zip_entry *e)
{
    p = put16(p, is_wide(e) ? 45 : 20);
    p = put16(p, 0x0800); /* the name is UTF-8 */
    p = put16(p, e->method);
    p = put16(p, 0);
    p = put16(p, 0x21); /* 1980-01-01 */
    p = put32(p, e->crc);
    p = put32(p, is_wide(e) ? 0xffffffff : e->packed);
    p = put32(p, is_wide(e) ? 0xffffffff : e->size);
    return put16(p, (uint32_t)strlen(e->name));
}

static dc_status put_local(writer *w, const zip_entry *e)
{
    unsigned char head[LOCAL + 20];
    unsigned char *p = put_common(put32(head, 0x04034b50), e);
    p = put16(p, is_wide(e) ? 20 : 0);
    DC_TRY(put(w, head, LOCAL));
    DC_TRY(put(w, e->name, strlen(e->name)));
    if (!is_wide(e))
        return DC_OK;
    p = put64(put64(put16(put16(head, 1), 16), e->size), e->packed);
    return put(w, head, (size_t)(p - head));
}

static dc_status put_in_directory(writer *w, const zip_entry *e)
{
    unsigned char head[ENTRY];
    unsigned char *p = put_common(put16(put32(head, 0x02014b50), 45), e);
    p = put16(p, is_wide(e) ? 28 : 0);
    p = put16(put16(put16(p, 0), 0), 0); /* no note, disk 0, attributes */
    p = put32(p, 0);
    put32(p, is_wide(e) ? 0xffffffff : e->at);
    DC_TRY(put(w, head, sizeof head));
    DC_TRY(put(w, e->name, strlen(e->name)));
    if (!is_wide(e))
        return DC_OK;
    p = put64(put64(put64(put16(put16(head, 1), 24), e->size), e->packed), e->at);
    return put(w, head, (size_t)(p - head));
}

static dc_status put_directory(writer *w, uint32_t n)
{
    unsigned char end[END64 + LOCATOR64 + END];
    const uint64_t begin = w->at;
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_in_directory(w, &w->entry[i]));
    const uint64_t size = w->at - begin;
    unsigned char *p = end;
    if (n >= 0xffff || begin >= 0xffffffff) {
        p = put64(put32(p, 0x06064b50), END64 - 12);
        p = put16(put16(p, 45), 45);
        p = put64(put64(put64(p, 0), n), n);
        p = put64(put64(p, size), begin);
        p = put64(put32(put32(p, 0x07064b50), 0), begin + size);
        p = put32(p, 1);
    }
    p = put32(put32(p, 0x06054b50), 0);
    p = put16(put16(p, n < 0xffff ? n : 0xffff), n < 0xffff ? n : 0xffff);
    p = put32(put32(p, low32(size)), low32(begin));
    p = put16(p, 0);
    return put(w, end, (size_t)(p - end));
}

static void end_deflate(void *z)
{
    deflateEnd(z);
}

typedef struct packing {
    z_stream *z;
    unsigned char *to;
    size_t used, room;
} packing;

/* n bytes more; `last` ends the stream. There is room for all. */
static dc_status pack_more(packing *p, dc_job *j, const char *from, size_t n, bool last)
{
    enum { PIECE = 1 << 20 };
    do {
        const size_t piece = n < PIECE ? n : PIECE;
        const int64_t left = (int64_t)(p->room - p->used);
        const unsigned room = (unsigned)dc_min_i64(left, INT32_MAX);
        const bool end = last && piece == n;
        DC_TRY(dc_job_ended(j));
        memcpy(&p->z->next_in, &from, sizeof from); /* not const before zlib 1.2.14 */
        p->z->avail_in = (unsigned)piece;
        p->z->next_out = p->to + p->used;
        p->z->avail_out = room;
        const int code = deflate(p->z, end ? Z_FINISH : Z_NO_FLUSH);
        if (code != (end ? Z_STREAM_END : Z_OK))
            DC_BUG("deflate gives %d", code);
        p->used += room - p->z->avail_out;
        from += piece;
        n -= piece;
    } while (n > 0);
    return DC_OK;
}

/* The whole entry, header of the array and elements, deflated in memory. */
static dc_status pack(dc_job *j, const char *head, size_t n, const void *data, size_t size,
                      unsigned char **out, uint64_t *packed)
{
    packing p = {.z = DC_NEW(&j->scratch, z_stream)};
    if (deflateInit2(p.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    dc_job_defer(j, end_deflate, p.z);
    p.room = deflateBound(p.z, (uLong)(n + size)) + 64;
    p.to = dc_try_realloc(NULL, p.room);
    if (p.to == NULL)
        return dc_fail_memory(j, p.room);
    dc_job_defer(j, dc_xfree, p.to);
    DC_TRY(pack_more(&p, j, head, n, false));
    DC_TRY(pack_more(&p, j, data, size, true));
    dc_job_keep(j, p.z);
    end_deflate(p.z);
    *out = p.to;
    *packed = p.used;
    return DC_OK;
}

static dc_status put_item(writer *w, const dc_npy_item *item, bool compress, zip_entry *e)
{
    char head[DC_NPY_ROOM];
    unsigned char *packed = NULL;
    const size_t n = dc_npy_header_write(&item->type, head), size = dc_type_bytes(&item->type);
    e->name = dc_arena_printf(&w->job->scratch, "%s.npy", item->name);
    e->at = w->at;
    e->packed = e->size = n + size;
    e->crc = (uint32_t)crc32_z(crc32_z(0, (const unsigned char *)head, n), item->data, size);
    if (compress) {
        e->method = DEFLATED;
        DC_TRY(pack(w->job, head, n, item->data, size, &packed, &e->packed));
    }
    DC_TRY(put_local(w, e));
    if (compress) {
        DC_TRY(put(w, packed, (size_t)e->packed));
        dc_job_keep(w->job, packed);
        dc_xfree(packed);
        return DC_OK;
    }
    DC_TRY(put(w, head, n));
    return put(w, item->data, size);
}

dc_status dc_npz_write(dc_job *j, const char *path, const dc_npy_item *item, uint32_t n,
                       bool compress)
{
    writer w = {.job = j, .entry = DC_NEW_ARRAY(&j->scratch, zip_entry, n + 1)};
    DC_TRY(dc_outfile_open(j, path, &w.f));
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_item(&w, &item[i], compress, &w.entry[i]));
    DC_TRY(put_directory(&w, n));
    return dc_outfile_commit(w.f);
}
