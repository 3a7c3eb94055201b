#define _POSIX_C_SOURCE 200809L
#include "formats/gunzip.h"

#include "core/base/heap.h"
#include "core/base/path.h"
#include "formats/infile.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct dc_gunzip {
    const char *path;
    int fd;
    int64_t length, at; /* of the file; the next byte that is not in `piece` */
    z_stream z;
    bool packs, begun, done;
    unsigned char piece[1 << 16];
};

/* zlib's memory is that of the entry that runs. */
static void *give(void *ctx, unsigned n, unsigned size)
{
    DC_UNUSED(ctx);
    return dc_try_alloc((size_t)n * size);
}

static void take_back(void *ctx, void *p)
{
    DC_UNUSED(ctx);
    dc_xfree(p);
}

/* Puts more of the file behind what is left of it. */
static dc_status fill(dc_gunzip *g, dc_job *j)
{
    size_t got;
    if (g->z.avail_in > 0)
        memmove(g->piece, g->z.next_in, g->z.avail_in);
    DC_TRY(dc_infile_read(j, g->path, g->fd, g->at, g->piece + g->z.avail_in,
                          sizeof g->piece - g->z.avail_in, &got));
    g->at += (int64_t)got;
    g->z.next_in = g->piece;
    g->z.avail_in += (unsigned)got;
    return DC_OK;
}

static bool has_magic(const dc_gunzip *g)
{
    return g->z.avail_in >= 2 && g->z.next_in[0] == 0x1f && g->z.next_in[1] == 0x8b;
}

dc_status dc_gunzip_open(dc_job *j, const char *path, int fd, int64_t length, dc_gunzip **out)
{
    dc_gunzip *g = dc_try_alloc(sizeof *g);
    if (g == NULL) {
        close(fd);
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    }
    *g = (dc_gunzip){
        .path = path, .fd = fd, .length = length, .z = {.zalloc = give, .zfree = take_back}};
    dc_status status = fill(g, j);
    g->packs = has_magic(g);
    if (status == DC_OK && g->packs) {
        g->begun = inflateInit2(&g->z, 16 + MAX_WBITS) == Z_OK;
        if (!g->begun)
            status = dc_fail(j, DC_ERR_NOMEM, NULL);
    }
    if (status == DC_OK)
        *out = g;
    else
        dc_gunzip_close(g);
    return status;
}

bool dc_gunzip_packs(const dc_gunzip *g)
{
    return g->packs;
}

void dc_gunzip_close(dc_gunzip *g)
{
    if (g->begun)
        inflateEnd(&g->z);
    close(g->fd);
    dc_xfree(g);
}

/* Behind a member: the next one, or the end. */
static dc_status next_member(dc_gunzip *g, dc_job *j)
{
    if (g->z.avail_in < 2)
        DC_TRY(fill(g, j));
    if (has_magic(g)) {
        inflateReset(&g->z);
        return DC_OK;
    }
    g->done = true;
    const int64_t left = g->length - g->at + g->z.avail_in;
    if (g->z.avail_in == 0)
        return DC_OK;
    return dc_path_fail(j, DC_ERR_FORMAT, g->path, "%" PRId64 " byte%s behind the gzip stream",
                        left, left == 1 ? "" : "s");
}

static dc_status fail_code(const dc_gunzip *g, dc_job *j, int code)
{
    if (code == Z_MEM_ERROR)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    if (code == Z_BUF_ERROR)
        return dc_path_fail(j, DC_ERR_FORMAT, g->path, "the gzip stream is cut off");
    return dc_path_fail(j, DC_ERR_FORMAT, g->path, "the gzip stream is damaged: %s",
                        g->z.msg != NULL ? g->z.msg : "unknown data");
}

/* Up to n bytes; 0 at the end alone. */
static dc_status unpack(dc_gunzip *g, dc_job *j, unsigned char *to, size_t n, size_t *got)
{
    enum { PIECE = 1 << 20 /* what takes some milliseconds */ };
    const unsigned room = n < PIECE ? (unsigned)n : PIECE;
    *got = 0;
    while (*got == 0 && !g->done) {
        DC_TRY(dc_job_ended(j));
        if (g->z.avail_in == 0)
            DC_TRY(fill(g, j));
        g->z.next_out = to;
        g->z.avail_out = room;
        const int code = inflate(&g->z, Z_NO_FLUSH);
        if (g->z.avail_out > room || g->z.avail_in > sizeof g->piece)
            return dc_path_fail(j, DC_ERR_FORMAT, g->path,
                                "zlib gives more than there is room for");
        *got = room - g->z.avail_out;
        if (code == Z_STREAM_END)
            DC_TRY(next_member(g, j));
        else if (code != Z_OK)
            return fail_code(g, j, code);
    }
    return DC_OK;
}

/* What was looked at comes from memory, the rest from the file. */
static dc_status copy(dc_gunzip *g, dc_job *j, void *to, size_t n, size_t *got)
{
    *got = g->z.avail_in < n ? g->z.avail_in : n;
    memcpy(to, g->z.next_in, *got);
    g->z.next_in += *got;
    g->z.avail_in -= (unsigned)*got;
    if (*got > 0 || n == 0)
        return DC_OK;
    DC_TRY(dc_infile_read(j, g->path, g->fd, g->at, to, n, got));
    g->at += (int64_t)*got;
    return DC_OK;
}

dc_status dc_gunzip_read(dc_gunzip *g, dc_job *j, void *to, size_t n, size_t *got)
{
    size_t more = 1;
    for (*got = 0; *got < n && more > 0; *got += more) {
        unsigned char *at = (unsigned char *)to + *got;
        if (g->packs)
            DC_TRY(unpack(g, j, at, n - *got, &more));
        else
            DC_TRY(copy(g, j, at, n - *got, &more));
    }
    return DC_OK;
}
