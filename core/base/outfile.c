#define _GNU_SOURCE /* realpath, O_DIRECTORY, O_TMPFILE, fdopendir, sync_file_range */
#include "core/base/outfile.h"

#include "core/base/file.h"
#include "core/base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 }; /* what a slow disk takes some milliseconds for */

struct dc_outfile {
    dc_job *job;
    const char *path; /* as given, for messages */
    int dir;          /* the folder that it stands in; -1 before it is known */
    const char *name; /* in it: of path, or of where the link leads to */
    char *temp;       /* beside it, what is written once it has a name */
    int fd;
    bool exists;   /* temp does */
    size_t bytes;  /* written */
    uint64_t word; /* of names */
};

static dc_status fail_errno(const dc_outfile *f, const char *doing)
{
    return dc_path_fail_errno(f->job, f->path, doing);
}

/* Gives it up; the place keeps what it had. */
static void abandon(void *what)
{
    dc_outfile *f = what;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->exists)
        unlinkat(f->dir, f->temp, 0);
    f->exists = false;
    if (f->dir >= 0)
        close(f->dir);
    f->dir = -1;
}

/* The length of the folder in a path, its last slash included. */
static size_t folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* Where links lead to that lead to nothing yet; the path itself if it is no link. */
static char *end_of_links(const dc_outfile *f)
{
    enum { MOST = 40 };
    dc_arena *a = &f->job->scratch;
    char *path = dc_arena_strdup(a, f->path), *to = dc_arena_alloc(a, PATH_MAX);
    for (int i = 0; i < MOST; i++) {
        const ssize_t n = readlink(path, to, PATH_MAX);
        if (n <= 0)
            break;
        const size_t folder = to[0] == '/' ? 0 : folder_of(path);
        path = dc_arena_printf(a, "%.*s%.*s", (int)folder, path, (int)n, to);
    }
    return path;
}

/* The folder and the name of a path that leads there without links. */
static dc_status open_folder(dc_outfile *f, const char *path)
{
    const size_t n = folder_of(path);
    f->name = path + n;
    if (*f->name == '\0')
        return dc_path_fail(f->job, DC_ERR_FILE, f->path, "is no name of a file");
    const char *folder = n == 0 ? "." : dc_arena_printf(&f->job->scratch, "%.*s", (int)n, path);
    f->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return f->dir >= 0 ? DC_OK : fail_errno(f, "cannot be written");
}

/* May what is there be replaced? *mode: that of the file. */
static dc_status check_there(const dc_outfile *f, const struct stat *st, mode_t *mode)
{
    if (!S_ISREG(st->st_mode))
        return dc_path_fail(f->job, DC_ERR_FILE, f->path, "%s",
                            S_ISDIR(st->st_mode) ? "is a directory" : "is not a regular file");
    *mode = st->st_mode & 0777;
    return DC_OK;
}

/* Where the file is to stand: anywhere, at the end of links. *mode: that of the one it replaces, else as it was. */
static dc_status find_anywhere(dc_outfile *f, mode_t *mode)
{
    struct stat st;
    char *real = dc_arena_alloc(&f->job->scratch, PATH_MAX);
    if (stat(f->path, &st) == 0) {
        DC_TRY(check_there(f, &st, mode));
        if (access(f->path, W_OK) != 0 || realpath(f->path, real) == NULL)
            return fail_errno(f, "cannot be replaced");
        return open_folder(f, real);
    }
    if (errno != ENOENT)
        return fail_errno(f, "cannot be written");
    return open_folder(f, end_of_links(f));
}

/* The same beneath the folders of the job, through no link. */
static dc_status find_beneath(dc_outfile *f, mode_t *mode)
{
    struct stat st;
    DC_TRY(dc_folders_enter(f->job, DC_FOLDER_WRITE, f->path, &f->dir, &f->name));
    DC_TRY(dc_folders_no_link(f->job, f->path, f->dir, f->name));
    if (fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        DC_TRY(check_there(f, &st, mode));
        return faccessat(f->dir, f->name, W_OK, 0) == 0 ? DC_OK
                                                        : fail_errno(f, "cannot be replaced");
    }
    return errno == ENOENT ? DC_OK : fail_errno(f, "cannot be written");
}

enum {
    TRIES = 100,     /* to find a name */
    NAME_KEPT = 200, /* of f->name in f->temp, so that it is no longer than names may be */
    NAME_ROOM = NAME_KEPT + 24
};

/* The temporary names of this file, up to their digits. */
static size_t print_start(const dc_outfile *f, char *out)
{
    return (size_t)snprintf(out, NAME_ROOM, ".%.*s.deepc-", NAME_KEPT, f->name);
}

/* A name for f->temp that may be free. */
static void name_temp(dc_outfile *f)
{
    char start[NAME_ROOM];
    print_start(f, start);
    f->word = dc_hash_mix(f->word, dc_clock_ns());
    f->temp = dc_arena_printf(&f->job->scratch, "%s%08x", start, (unsigned)f->word);
}

/* The lock tells other processes that the file is being written. Where there are no locks, it is not removed. */
static bool lock_temp(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

/* The descriptor of a file that has no name before the commit; -1 where the system has none. */
static int open_unnamed(const dc_outfile *f)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) /* which gives it a name */
        return openat(f->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
#endif
    return -1;
}

/* Without a name, a process that is killed leaves nothing behind. */
static dc_status make_temp(dc_outfile *f)
{
    f->fd = open_unnamed(f);
    if (f->fd >= 0) {
        flock(f->fd, LOCK_EX | LOCK_NB); /* before it has a name; see lock_temp */
        return DC_OK;
    }
    for (int i = 0; i < TRIES && f->fd < 0; i++) {
        name_temp(f);
        f->fd = openat(f->dir, f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd < 0 && errno != EEXIST)
            break;
        if (f->fd >= 0 && !lock_temp(f->fd)) { /* another process removes it */
            close(f->fd);
            f->fd = -1;
        }
    }
    f->exists = f->fd >= 0;
    return f->exists ? DC_OK : fail_errno(f, "cannot be written");
}

/* ---- what others left ------------------------------------------------------------------------ */

static bool is_temp(const char *name, const char *start, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    return strncmp(name, start, n) == 0 && strlen(name + n) == 8 && strspn(name + n, digits) == 8;
}

/* Removes one whose lock is free: its process has ended. */
static void remove_one(const dc_outfile *f, const char *name)
{
    struct stat st;
    if (fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid())
        return;
    const int fd = openat(f->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(f->dir, name, 0);
    close(fd);
}

static void remove_left(const dc_outfile *f)
{
    char start[NAME_ROOM];
    const size_t n = print_start(f, start);
    const int again = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    if (d == NULL) {
        if (again >= 0)
            close(again);
        return;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (is_temp(e->d_name, start, n))
            remove_one(f, e->d_name);
    closedir(d);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Gives a file without a name one. */
static bool link_temp(dc_outfile *f)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", f->fd);
    for (int i = 0; i < TRIES && !f->exists; i++) {
        name_temp(f);
        f->exists = linkat(AT_FDCWD, open_file, f->dir, f->temp, AT_SYMLINK_FOLLOW) == 0;
        if (!f->exists && errno != EEXIST)
            break;
    }
    return f->exists;
}

dc_status dc_outfile_open(dc_job *j, const char *path, dc_outfile **out)
{
    enum { AS_MADE = 07777 };
    dc_outfile *f = DC_NEW(&j->scratch, dc_outfile);
    mode_t mode = AS_MADE;
    *f = (dc_outfile){.job = j, .path = path, .dir = -1, .fd = -1, .word = (uint64_t)getpid()};
    DC_TRY(dc_path_allow(j, path));
    dc_job_defer(j, abandon, f);
    DC_TRY(j->folders != NULL ? find_beneath(f, &mode) : find_anywhere(f, &mode));
    remove_left(f);
    DC_TRY(make_temp(f));
    if (mode != AS_MADE && fchmod(f->fd, mode) != 0)
        return fail_errno(f, "cannot be written");
    *out = f;
    return DC_OK;
}

dc_status dc_outfile_write(dc_outfile *f, const void *bytes, size_t n)
{
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        DC_TRY(dc_job_ended(f->job));
        if (!dc_file_write(f->fd, (const char *)bytes + at, k))
            return fail_errno(f, "cannot be written");
    }
    f->bytes += n;
    return DC_OK;
}

/*
 * Waits for the disk as fsync does, but piece by piece, some of them ahead, so that it can be ended. A file system that
 * knows none of this leaves all to fsync.
 */
static dc_status write_back(const dc_outfile *f)
{
    enum { AHEAD = 16 * PIECE };
    if (f->bytes <= PIECE)
        return DC_OK;
    for (off_t at = -(off_t)AHEAD, all = (off_t)f->bytes; at < all; at += PIECE) {
        DC_TRY(dc_job_ended(f->job));
        const bool begun = at + AHEAD >= all ||
                           sync_file_range(f->fd, at + AHEAD, PIECE, SYNC_FILE_RANGE_WRITE) == 0;
        if (begun &&
            (at < 0 || sync_file_range(f->fd, at, PIECE, SYNC_FILE_RANGE_WAIT_BEFORE) == 0))
            continue;
        const bool disk = errno == EIO || errno == ENOSPC || errno == EDQUOT;
        return disk ? fail_errno(f, "cannot be written") : DC_OK;
    }
    return DC_OK;
}

/* The new name is on the disk too; file systems that cannot be asked for that have no choice. */
static dc_status sync_folder(const dc_outfile *f)
{
    const int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return DC_OK; /* a folder that may be written and not read */
    const bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
    const int because = errno;
    close(fd);
    errno = because;
    return ok ? DC_OK : fail_errno(f, "is written, but its folder cannot be forced to the disk");
}

/* Closed after the rename, with the lock: what a close could tell, fsync has told. */
static dc_status commit(dc_outfile *f)
{
    DC_TRY(write_back(f));
    if (fsync(f->fd) != 0 || (!f->exists && !link_temp(f)))
        return fail_errno(f, "cannot be written");
    if (renameat(f->dir, f->temp, f->dir, f->name) != 0)
        return fail_errno(f, "cannot be replaced");
    f->exists = false;
    return sync_folder(f);
}

dc_status dc_outfile_commit(dc_outfile *f)
{
    const dc_status status = commit(f);
    dc_job_keep(f->job, f);
    abandon(f);
    return status;
}

dc_status dc_outfile_put(dc_job *j, const char *path, const void *bytes, size_t n)
{
    dc_outfile *f;
    DC_TRY(dc_outfile_open(j, path, &f));
    DC_TRY(dc_outfile_write(f, bytes, n));
    return dc_outfile_commit(f);
}
