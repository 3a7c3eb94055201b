#define _POSIX_C_SOURCE 200809L
#include "formats/infile.h"

#include "core/base/path.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

dc_status dc_infile_open(dc_job *j, const char *path, int *fd, struct stat *st)
{
    DC_TRY(dc_path_open(j, path, fd));
    dc_status status = DC_OK;
    if (fstat(*fd, st) != 0)
        status = dc_path_fail(j, DC_ERR_FILE, path, "%s", strerror(errno));
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
            return dc_path_fail(j, DC_ERR_FILE, path, "%s", strerror(errno));
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
        return dc_path_fail(j, DC_ERR_FILE, path, "%s", strerror(errno));
    if (st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
        st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
        return dc_path_fail(j, DC_ERR_FORMAT, path, "was changed while it was read");
    return DC_OK;
}

/* ---- whole files ------------------------------------------------------------------------------ */

typedef struct whole {
    dc_job *job;
    const char *path;
    int fd;
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

static dc_status read_plain(whole *w)
{
    size_t got;
    DC_TRY(grow(w, (size_t)w->length));
    DC_TRY(dc_infile_read(w->job, w->path, w->fd, 0, w->bytes, (size_t)w->length, &got));
    w->n = got;
    return DC_OK;
}

/* What gzread has to say; zlib's own words have the form "<fd:3>: reason". */
static dc_status gzip_status(const whole *w, gzFile gz)
{
    int code;
    const char *words = gzerror(gz, &code);
    const char *reason = strstr(words, ">: ");
    if (code == Z_OK || code == Z_STREAM_END)
        return DC_OK;
    if (code == Z_MEM_ERROR)
        return dc_fail(w->job, DC_ERR_NOMEM, NULL);
    if (code == Z_ERRNO)
        return dc_path_fail(w->job, DC_ERR_FILE, w->path, "%s", strerror(errno));
    if (code == Z_BUF_ERROR)
        return dc_path_fail(w->job, DC_ERR_FORMAT, w->path, "the gzip stream is cut off");
    return dc_path_fail(w->job, DC_ERR_FORMAT, w->path, "the gzip stream is damaged: %s",
                        reason != NULL ? reason + 3 : words);
}

static dc_status unpack(whole *w, gzFile gz, size_t most)
{
    enum { PIECE = 1 << 20 };
    for (size_t size = 0;;) {
        DC_TRY(dc_job_ended(w->job));
        if (size - w->n < PIECE) {
            size = size * 2 + PIECE;
            DC_TRY(grow(w, size));
        }
        const int got = gzread(gz, w->bytes + w->n, PIECE);
        if (got > 0)
            w->n += (size_t)got;
        if (w->n > most)
            return dc_path_fail(w->job, DC_ERR_FORMAT, w->path, "unpacks to more than %zu bytes",
                                most);
        if (got < PIECE)
            return gzip_status(w, gz);
    }
}

/* The descriptor is closed. */
static dc_status read_gzip(whole *w, size_t most)
{
    gzFile gz = gzdopen(w->fd, "rb");
    if (gz == NULL) {
        close(w->fd);
        return dc_fail(w->job, DC_ERR_NOMEM, NULL);
    }
    gzbuffer(gz, 1 << 17);
    const dc_status status = unpack(w, gz, most);
    gzclose_r(gz);
    return status;
}

static dc_status read_all(whole *w, size_t most)
{
    unsigned char magic[2] = {0};
    size_t got;
    dc_status status = dc_infile_read(w->job, w->path, w->fd, 0, magic, sizeof magic, &got);
    if (status == DC_OK && magic[0] == 0x1f && magic[1] == 0x8b)
        return read_gzip(w, most);
    if (status == DC_OK && (uint64_t)w->length > most)
        status = dc_path_fail(w->job, DC_ERR_FORMAT, w->path,
                              "has %" PRId64 " bytes, %zu are the most", w->length, most);
    if (status == DC_OK)
        status = read_plain(w);
    close(w->fd);
    return status;
}

dc_status dc_infile_all(dc_job *j, const char *path, size_t most, char **bytes, size_t *n)
{
    whole w = {.job = j, .path = path};
    struct stat st;
    *bytes = NULL;
    DC_TRY(dc_infile_open(j, path, &w.fd, &st));
    w.length = st.st_size;
    const dc_status status = read_all(&w, most);
    if (status != DC_OK) {
        dc_xfree(w.bytes);
        return status;
    }
    w.bytes[w.n] = '\0';
    *bytes = w.bytes;
    *n = w.n;
    return DC_OK;
}
