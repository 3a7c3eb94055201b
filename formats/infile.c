#define _POSIX_C_SOURCE 200809L
#include "formats/infile.h"

#include "core/base/path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
