#define _POSIX_C_SOURCE 200809L
#include "formats/gunzip.h"

#include "core/base/heap.h"
#include "core/base/path.h"
#include "formats/flow.h"
#include "formats/infile.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct dc_gunzip {
    const char *path;
    int fd;
    int64_t length, at;        /* of the file; the next byte that is not in `piece` */
    const unsigned char *next; /* in `piece`: what has been read and not been given yet */
    size_t left;
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
    if (g->left > 0)
        memmove(g->piece, g->next, g->left);
    g->next = g->piece;
    DC_TRY(dc_infile_read(j, g->path, g->fd, g->at, g->piece + g->left, sizeof g->piece - g->left,
                          &got));
    g->at += (int64_t)got;
    g->left += got;
    return DC_OK;
}

static bool has_magic(const dc_gunzip *g)
{
    return g->left >= 2 && g->next[0] == 0x1f && g->next[1] == 0x8b;
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
    if (g->left < 2)
        DC_TRY(fill(g, j));
    if (has_magic(g)) {
        inflateReset(&g->z);
        return DC_OK;
    }
    g->done = true;
    const int64_t left = g->length - g->at + (int64_t)g->left;
    if (g->left == 0)
        return DC_OK;
    return dc_path_fail(j, DC_ERR_FORMAT, g->path, "%" PRId64 " byte%s behind the gzip stream",
                        left, left == 1 ? "" : "s");
}

static dc_status fail_as(const dc_gunzip *g, dc_job *j, dc_flowed how)
{
    if (how == DC_FLOWED_MEMORY)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    if (how == DC_FLOWED_WRONG)
        return dc_path_fail(j, DC_ERR_FORMAT, g->path, "zlib gives wrong counts of bytes");
    if (how == DC_FLOWED_SOME)
        return dc_path_fail(j, DC_ERR_FORMAT, g->path, "the gzip stream is cut off");
    return dc_path_fail(j, DC_ERR_FORMAT, g->path, "the gzip stream is damaged: %s",
                        g->z.msg != NULL ? g->z.msg : "unknown data");
}

/* Up to n bytes; 0 at the end alone. */
static dc_status unpack(dc_gunzip *g, dc_job *j, unsigned char *to, size_t n, size_t *got)
{
    enum { PIECE = 1 << 20 /* what takes some milliseconds */ };
    const size_t room = n < PIECE ? n : PIECE;
    *got = 0;
    while (*got == 0 && !g->done) {
        DC_TRY(dc_job_ended(j));
        if (g->left == 0)
            DC_TRY(fill(g, j));
        dc_flow f = {g->next, g->left, to, room};
        const dc_flowed how = dc_inflate(&g->z, &f);
        const bool moved = f.nfrom < g->left || f.nto < room;
        g->next = f.from;
        g->left = f.nfrom;
        *got = room - f.nto;
        if (how == DC_FLOWED_ALL)
            DC_TRY(next_member(g, j));
        else if (how != DC_FLOWED_SOME || !moved)
            return fail_as(g, j, how);
    }
    return DC_OK;
}

/* What was looked at comes from memory, the rest from the file. */
static dc_status copy(dc_gunzip *g, dc_job *j, void *to, size_t n, size_t *got)
{
    *got = g->left < n ? g->left : n;
    memcpy(to, g->next, *got);
    g->next += *got;
    g->left -= *got;
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
