#define _POSIX_C_SOURCE 200809L
#include "formats/infile.h"

#include "core/base/path.h"
#include "formats/gunzip.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dc_status dc_infile_open(dc_job *j, const char *path, int *fd, struct stat *st)
{
    DC_TRY(dc_path_open(j, path, fd));
    dc_status status = DC_OK;
    if (fstat(*fd, st) != 0)
        status = dc_path_fail_errno(j, path, NULL);
    else if (!S_ISREG(st->st_mode))
        status = dc_path_fail(j, DC_ERR_FILE, path, "%s",
                              S_ISDIR(st->st_mode) ? "is a directory" : "is not a regular file");
    if (status == DC_OK)
        return DC_OK;
    close(*fd);
    *fd = -1;
    return status;
}

static void close_fd(void *fd)
{
    close(*(int *)fd);
}

void dc_infile_defer(dc_job *j, int fd)
{
    int *at = DC_NEW(&j->scratch, int); /* nothing can unwind between here and the list */
    *at = fd;
    dc_job_defer(j, close_fd, at);
}

dc_status dc_infile_read(dc_job *j, const char *path, int fd, int64_t at, void *to, size_t n,
                         size_t *got)
{
    enum { MOST = 1 << 20 }; /* what a slow disk takes some milliseconds for */
    *got = 0;
    while (*got < n) {
        DC_TRY(dc_job_ended(j));
        const size_t want = n - *got < MOST ? n - *got : MOST;
        const ssize_t k = pread(fd, (char *)to + *got, want, (off_t)at + (off_t)*got);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return dc_path_fail_errno(j, path, NULL);
        if (k == 0)
            break;
        *got += (size_t)k;
    }
    return DC_OK;
}

dc_status dc_infile_unchanged(dc_job *j, const char *path, int fd, const struct stat *was)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return dc_path_fail_errno(j, path, NULL);
    if (st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
        st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "was changed while it was read");
    return DC_OK;
}

/* ---- whole files ------------------------------------------------------------------------------ */

typedef struct whole {
    dc_job *job;
    const char *path;
    int64_t length;
    char *bytes;
    size_t n;
} whole;

/* Makes room for n bytes and a zero. */
static dc_status grow(whole *w, size_t n)
{
    char *grown = dc_try_realloc(w->bytes, n + 1);
    if (grown == NULL)
        return dc_fail_memory(w->job, n + 1);
    w->bytes = grown;
    return DC_OK;
}

/* Piece by piece: how much it is, is known at its end. */
static dc_status unpack(whole *w, dc_gunzip *g, size_t most)
{
    enum { PIECE = 1 << 20 };
    for (size_t size = 0;;) {
        size_t got;
        if (size - w->n < PIECE) {
            size = size * 2 + PIECE;
            DC_TRY(grow(w, size));
        }
        DC_TRY(dc_gunzip_read(g, w->job, w->bytes + w->n, PIECE, &got));
        w->n += got;
        if (w->n > most)
            return dc_path_fail(w->job, DC_ERR_FORMAT, w->path, "unpacks to more than %zu bytes",
                                most);
        if (got < PIECE)
            return DC_OK;
    }
}

static dc_status read_plain(whole *w, dc_gunzip *g, size_t most)
{
    if ((uint64_t)w->length > most)
        return dc_path_fail(w->job, DC_ERR_FORMAT, w->path,
                            "has %" PRId64 " bytes, %zu are the most", w->length, most);
    DC_TRY(grow(w, (size_t)w->length));
    return dc_gunzip_read(g, w->job, w->bytes, (size_t)w->length, &w->n);
}

dc_status dc_infile_all(dc_job *j, const char *path, size_t most, char **bytes, size_t *n)
{
    whole w = {.job = j, .path = path};
    struct stat st;
    dc_gunzip *g;
    int fd;
    *bytes = NULL;
    DC_TRY(dc_infile_open(j, path, &fd, &st));
    w.length = st.st_size;
    DC_TRY(dc_gunzip_open(j, path, fd, w.length, &g));
    const dc_status status = dc_gunzip_packs(g) ? unpack(&w, g, most) : read_plain(&w, g, most);
    dc_gunzip_close(g);
    if (status != DC_OK) {
        dc_xfree(w.bytes);
        return status;
    }
    w.bytes[w.n] = '\0';
    *bytes = w.bytes;
    *n = w.n;
    return DC_OK;
}
