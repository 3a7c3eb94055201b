/* Archives of arrays, in the zip format (formats/zip.h). */
#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/flow.h"
#include "formats/npy_stream.h"
#include "formats/zip.h"

#include <stdio.h>
#include <string.h>

struct dc_npz {
    dc_zip *zip;
    const dc_zip_entry **entry; /* those that are arrays */
    uint32_t n;
};

bool dc_npz_is_array(const char *name)
{
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

void dc_npz_close(dc_npz *z)
{
    if (z == NULL)
        return;
    dc_zip_close(z->zip);
    dc_xfree(z->entry);
    dc_xfree(z);
}

static void close_npz(void *z)
{
    dc_npz_close(z);
}

dc_status dc_npz_open(dc_job *j, const char *path, dc_npz **out)
{
    dc_npz *z = dc_xalloc(sizeof *z);
    dc_job_defer(j, close_npz, z);
    DC_TRY(dc_zip_open(j, path, "an npz file", &z->zip));
    z->entry = dc_xalloc((z->zip->n + 1) * sizeof *z->entry);
    for (uint32_t i = 0; i < z->zip->n; i++)
        if (dc_npz_is_array(z->zip->entry[i].name)) /* or something else that lies there */
            z->entry[z->n++] = &z->zip->entry[i];
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
    return z->entry[i]->name;
}

/* ---- entries ---------------------------------------------------------------------------------- */

typedef struct packed_stream {
    dc_npy_stream in;
    dc_zip_stream *zip;
} packed_stream;

static dc_status read_packed(dc_npy_stream *in, dc_job *j, void *to, size_t n, size_t *got)
{
    return dc_zip_stream_read(((packed_stream *)in)->zip, j, to, n, got);
}

dc_status dc_npz_unread(dc_npz *z, dc_job *j, uint32_t i, const char **why)
{
    const dc_zip_entry *e = z->entry[i];
    packed_stream s = {.in = {read_packed, z->zip->path, e->name, (int64_t)e->size}};
    dc_npy_header head;
    *why = dc_zip_unread(z->zip, e);
    if (*why != NULL)
        return DC_OK;
    DC_TRY(dc_zip_stream_open(z->zip, j, e, &s.zip));
    const dc_status status = dc_npy_read_header(j, &s.in, &head);
    dc_zip_stream_close(s.zip, j);
    if (status == DC_OK && head.unread[0] != '\0')
        *why = dc_arena_strdup(&z->zip->arena, head.unread);
    return status;
}

dc_status dc_npz_read(dc_npz *z, dc_job *j, uint32_t i, const dc_room *room)
{
    const dc_zip_entry *e = z->entry[i];
    packed_stream s = {.in = {read_packed, z->zip->path, e->name, (int64_t)e->size}};
    DC_TRY(dc_zip_stream_open(z->zip, j, e, &s.zip));
    const dc_status status = dc_npy_read_stream(j, &s.in, room);
    dc_zip_stream_close(s.zip, j);
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------- */

typedef struct writer {
    dc_job *job;
    const char *path;
    dc_outfile *f;
    uint64_t at;
    dc_zip_entry *entry; /* written so far */
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

static bool is_wide(const dc_zip_entry *e)
{
    return e->size >= 0xffffffff || e->packed >= 0xffffffff || e->at >= 0xffffffff;
}

/* What a local header and one of the directory share: from the version to the length of the name. No time: equal
 * values are equal bytes. */
static unsigned char *put_common(unsigned char *p, const dc_zip_entry *e)
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

static dc_status put_local(writer *w, const dc_zip_entry *e)
{
    unsigned char head[DC_ZIP_LOCAL + 20];
    unsigned char *p = put_common(put32(head, 0x04034b50), e);
    p = put16(p, is_wide(e) ? 20 : 0);
    DC_TRY(put(w, head, DC_ZIP_LOCAL));
    DC_TRY(put(w, e->name, strlen(e->name)));
    if (!is_wide(e))
        return DC_OK;
    p = put64(put64(put16(put16(head, 1), 16), e->size), e->packed);
    return put(w, head, (size_t)(p - head));
}

static dc_status put_in_directory(writer *w, const dc_zip_entry *e)
{
    unsigned char head[DC_ZIP_ENTRY];
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
    unsigned char end[DC_ZIP_END64 + DC_ZIP_LOCATOR64 + DC_ZIP_END];
    const uint64_t begin = w->at;
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_in_directory(w, &w->entry[i]));
    const uint64_t size = w->at - begin;
    unsigned char *p = end;
    if (n >= 0xffff || begin >= 0xffffffff) {
        p = put64(put32(p, 0x06064b50), DC_ZIP_END64 - 12);
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

/* n bytes more; `last` ends the stream. There is room for all. */
static dc_status pack_more(writer *w, z_stream *z, dc_flow *f, const void *from, size_t n,
                           bool last)
{
    enum { PIECE = 1 << 20 };
    dc_flowed how = DC_FLOWED_SOME;
    f->from = from;
    do {
        f->nfrom = n < PIECE ? n : PIECE;
        n -= f->nfrom;
        DC_TRY(dc_job_ended(w->job));
        how = dc_deflate(z, f, last && n == 0 ? Z_FINISH : Z_NO_FLUSH);
        if (f->nfrom > 0 || how != (last && n == 0 ? DC_FLOWED_ALL : DC_FLOWED_SOME))
            return dc_path_fail(w->job, DC_ERR_FILE, w->path,
                                "cannot be written: zlib does not pack the data whole");
    } while (n > 0);
    return DC_OK;
}

/* The whole entry, header of the array and elements, deflated in memory. */
static dc_status pack(writer *w, const char *head, size_t n, const void *data, size_t size,
                      unsigned char **out, uint64_t *packed)
{
    dc_job *j = w->job;
    z_stream *z = DC_NEW(&j->scratch, z_stream);
    if (deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    dc_job_defer(j, end_deflate, z);
    const size_t room = deflateBound(z, (uLong)(n + size)) + 64;
    unsigned char *to = dc_try_realloc(NULL, room);
    if (to == NULL)
        return dc_fail_memory(j, room);
    dc_job_defer(j, dc_xfree, to);
    dc_flow f = {.to = to, .nto = room};
    DC_TRY(pack_more(w, z, &f, head, n, false));
    DC_TRY(pack_more(w, z, &f, data, size, true));
    dc_job_keep(j, z);
    end_deflate(z);
    *out = to;
    *packed = room - f.nto;
    return DC_OK;
}

static dc_status put_item(writer *w, const dc_npy_item *item, bool compress, dc_zip_entry *e)
{
    char head[DC_NPY_ROOM];
    unsigned char *packed = NULL;
    const size_t n = dc_npy_header_write(&item->type, head), size = dc_type_bytes(&item->type);
    e->name = dc_arena_printf(&w->job->scratch, "%s.npy", item->name);
    if (strlen(e->name) > UINT16_MAX)
        return dc_path_fail(w->job, DC_ERR_FILE, w->path,
                            "cannot be written: a name has more than %d bytes",
                            UINT16_MAX - (int)strlen(".npy"));
    e->at = w->at;
    e->packed = e->size = n + size;
    e->crc = (uint32_t)crc32_z(crc32_z(0, (const unsigned char *)head, n), item->data, size);
    if (compress) {
        e->method = DC_ZIP_DEFLATED;
        DC_TRY(pack(w, head, n, item->data, size, &packed, &e->packed));
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
    writer w = {.job = j, .path = path, .entry = DC_NEW_ARRAY(&j->scratch, dc_zip_entry, n + 1)};
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(dc_npy_check(j, path, &item[i]));
    DC_TRY(dc_outfile_open(j, path, &w.f));
    for (uint32_t i = 0; i < n; i++)
        DC_TRY(put_item(&w, &item[i], compress, &w.entry[i]));
    DC_TRY(put_directory(&w, n));
    return dc_outfile_commit(w.f);
}
