#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY */
#include "core/base/logfile.h"

#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the job may: any path, or one beneath its folders, through no link. */
static dc_status open_to_append(dc_job *j, const char *path, int *fd)
{
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    const char *name;
    int dir;
    DC_TRY(dc_path_allow(j, path));
    if (j->folders == NULL) {
        *fd = open(path, how, 0666);
        return *fd >= 0 ? DC_OK : dc_path_fail_errno(j, path, "cannot be written");
    }
    DC_TRY(dc_folders_enter(j, DC_FOLDER_WRITE, path, &dir, &name));
    dc_status status = dc_folders_no_link(j, path, dir, name);
    if (status == DC_OK) {
        *fd = openat(dir, name, how | O_NOFOLLOW, 0666);
        if (*fd < 0)
            status = dc_path_fail_errno(j, path, "cannot be written");
    }
    close(dir);
    return status;
}

/* What stands behind `size` bytes of a write that failed is no whole record. */
static void cut_back(int fd, int64_t size, size_t n)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_size > size && st.st_size < size + (int64_t)n &&
        ftruncate(fd, (off_t)size) != 0)
        return; /* the write's error is told */
}

static dc_status append(dc_job *j, const char *path, int fd, int64_t keep, const void *bytes,
                        size_t n, int64_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return dc_path_fail(j, DC_ERR_FILE, path, "is not a regular file");
    if (keep > (int64_t)st.st_size)
        return dc_path_fail(j, DC_ERR_FILE, path, "has %" PRId64 " bytes, and %" PRId64 " are kept",
                            (int64_t)st.st_size, keep);
    if (keep >= 0 && keep < (int64_t)st.st_size && ftruncate(fd, (off_t)keep) != 0)
        return dc_path_fail_errno(j, path, "cannot be cut");
    const int64_t before = keep >= 0 ? keep : (int64_t)st.st_size;
    if (!dc_file_write(fd, bytes, n)) {
        const int error = errno;
        cut_back(fd, before, n);
        errno = error;
        return dc_path_fail_errno(j, path, "cannot be written");
    }
    *size = before + (int64_t)n;
    return DC_OK;
}

dc_status dc_logfile_append(dc_job *j, const char *path, int64_t keep, const void *bytes, size_t n,
                            int64_t *size)
{
    int fd = -1;
    DC_TRY(open_to_append(j, path, &fd));
    dc_status status = append(j, path, fd, keep, bytes, n, size);
    if (close(fd) != 0 && status == DC_OK)
        status = dc_path_fail_errno(j, path, "cannot be written");
    return status;
}

dc_status dc_logfile_folder(dc_job *j, const char *path)
{
    struct stat st;
    const char *name;
    int dir;
    DC_TRY(dc_path_allow(j, path));
    if (j->folders == NULL) {
        if (mkdir(path, 0777) == 0 ||
            (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
            return DC_OK;
        return dc_path_fail_errno(j, path, "is no folder and cannot be made");
    }
    DC_TRY(dc_folders_enter(j, DC_FOLDER_WRITE, path, &dir, &name));
    const bool there = mkdirat(dir, name, 0777) == 0 ||
                       (errno == EEXIST && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISDIR(st.st_mode));
    const int error = errno;
    close(dir);
    errno = error;
    return there ? DC_OK : dc_path_fail_errno(j, path, "is no folder and cannot be made");
}
