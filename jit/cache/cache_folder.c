/*
 * The folder of the cache (jit/cache/cache_folder.h). Files of ours end in ".dco"; one that is being written
 * is called "new-PROCESS-NUMBER" until it is renamed, and is removed by a later clean-up, if
 * its writer died.
 */
#define _GNU_SOURCE /* O_NOFOLLOW, fdopendir, futimens */
#include "jit/cache/cache_folder.h"

#include "core/base/file.h"
#include "core/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_BYTES = 1 << 28, /* of a file */
    USED_AGAIN = 600,     /* seconds before the time of its use is noted anew */
    ABANDONED = 3600      /* seconds after which a file that was not renamed is abandoned */
};

static const char suffix[] = ".dco", unfinished[] = "new-";

/* ---- the folder ------------------------------------------------------------------------------ */

bool dc_cache_folder_place(const dc_opts *opt, char *path, size_t size)
{
    const char *base = dc_opts_system("XDG_CACHE_HOME"), *home = dc_opts_system("HOME");
    int n = 0;
    if (opt->cache[0] == '\0' || strcmp(opt->cache, "off") == 0)
        return false;
    if (strcmp(opt->cache, "auto") != 0)
        n = snprintf(path, size, "%s", opt->cache);
    else if (base[0] == '/')
        n = snprintf(path, size, "%s/deepc", base);
    else if (home[0] == '/')
        n = snprintf(path, size, "%s/.cache/deepc", home);
    return n > 0 && (size_t)n < size;
}

static bool is_private(const struct stat *s)
{
    return s->st_uid == geteuid() && (s->st_mode & 077) == 0;
}

int dc_cache_folder_open(const char *path, bool make, char *why, size_t size)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat s;
    why[0] = '\0';
    int dir = open(path, flags);
    if (dir < 0 && errno == ENOENT && make) {
        dc_file_make_folders(path);
        dir = open(path, flags);
    }
    if (dir < 0) {
        if (errno != ENOENT && errno != EACCES && errno != EROFS)
            snprintf(why, size, "%s", strerror(errno));
        return -1;
    }
    if (fstat(dir, &s) == 0 && is_private(&s))
        return dir;
    if (s.st_uid != geteuid())
        snprintf(why, size, "it belongs to another user");
    else
        snprintf(why, size, "others can look into it (mode %03o instead of 700)",
                 (unsigned)s.st_mode & 0777);
    close(dir);
    return -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool read_all(int file, char *to, size_t n)
{
    while (n > 0) {
        const ssize_t got = read(file, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

/* A file's time is so many seconds off: ago, or in a future from which the clock was set back. */
static bool is_off(const struct stat *s, time_t seconds)
{
    const time_t ago = time(NULL) - s->st_mtime;
    return ago > seconds || ago < -seconds;
}

/* A note of the use, now and then: the folder may be on a slow disk, or not ours to write. */
static void note_use(int file, const struct stat *s)
{
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    if (is_off(s, USED_AGAIN) && futimens(file, now) != 0)
        return;
}

void *dc_cache_folder_read(int dir, const char *name, size_t *bytes)
{
    struct stat s;
    /* O_NONBLOCK: a pipe cannot make us wait */
    const int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return NULL;
    char *text = NULL;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && is_private(&s) && s.st_size > 0 &&
        s.st_size <= MOST_BYTES)
        text = dc_try_alloc((size_t)s.st_size);
    if (text != NULL && !read_all(file, text, (size_t)s.st_size)) {
        dc_xfree(text);
        text = NULL;
    }
    if (text != NULL)
        note_use(file, &s);
    *bytes = text != NULL ? (size_t)s.st_size : 0;
    close(file);
    return text;
}

/* Several contexts of the process may write at once, and earlier processes had the same number. */
static int create(int dir, char *name, size_t size)
{
    static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    for (unsigned n = 0; n < 1000; n++) {
        snprintf(name, size, "%s%ld-%u", unfinished, (long)getpid(), n);
        const int file = openat(dir, name, flags, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

bool dc_cache_folder_write(int dir, const char *name, const void *head, size_t nhead,
                           const void *body, size_t nbody)
{
    char fresh[64];
    const int file = create(dir, fresh, sizeof fresh);
    if (file < 0)
        return false;
    bool ok =
        dc_file_write(file, head, nhead) && dc_file_write(file, body, nbody) && fsync(file) == 0;
    int e = errno;
    if (close(file) != 0 && ok) {
        ok = false;
        e = errno;
    }
    if (ok && renameat(dir, fresh, dir, name) == 0)
        return true;
    if (ok)
        e = errno;
    unlinkat(dir, fresh, 0);
    errno = e;
    return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

typedef struct entry {
    char name[40];
    uint64_t bytes;
    struct timespec used;
} entry;

typedef DC_VEC(entry) entries;

static bool ends_as_ours(const char *name)
{
    const size_t n = strlen(name), m = sizeof suffix - 1;
    return n > m && strcmp(name + n - m, suffix) == 0;
}

uint64_t dc_cache_folder_bytes(uint64_t size)
{
    return dc_align_up(size, 4096);
}

static void see(int dir, const char *name, entries *list, dc_cachedir_use *use)
{
    struct stat s;
    if (fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(s.st_mode))
        return;
    if (strncmp(name, unfinished, sizeof unfinished - 1) == 0) {
        if (is_off(&s, ABANDONED))
            unlinkat(dir, name, 0);
        return;
    }
    entry e = {.bytes = dc_cache_folder_bytes((uint64_t)s.st_size), .used = s.st_mtim};
    if (!ends_as_ours(name) || strlen(name) >= sizeof e.name)
        return;
    if (is_off(&s, USED_AGAIN) && s.st_mtime > time(NULL))
        e.used = (struct timespec){0}; /* it tells nothing, and would stay for as long as that */
    strcpy(e.name, name);
    use->bytes += e.bytes;
    use->files++;
    if (list->n < list->cap)
        list->at[list->n++] = e;
}

/* All are counted; as many listed as there is room for, so that nothing here unwinds. */
static void list_files(int dir, entries *list, dc_cachedir_use *use)
{
    const int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    if (d == NULL) {
        if (again >= 0)
            close(again);
        return;
    }
    for (const struct dirent *f; (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.')
            see(dir, f->d_name, list, use);
    closedir(d);
}

static bool before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static int by_use(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return before(&x->used, &y->used) ? -1 : before(&y->used, &x->used);
}

/* Of those listed, the oldest first. */
static bool remove_some(int dir, entries *list, uint64_t most, dc_cachedir_use *use)
{
    bool any = false;
    qsort(list->at, list->n, sizeof *list->at, by_use);
    for (uint32_t i = 0; i < list->n && use->bytes > most; i++)
        if (unlinkat(dir, list->at[i].name, 0) == 0) {
            use->bytes -= list->at[i].bytes;
            use->files--;
            any = true;
        }
    return any;
}

dc_cachedir_use dc_cache_folder_trim(int dir, uint64_t most)
{
    enum { MOST_FILES = 1 << 16 };
    dc_cachedir_use use;
    entries list = {.at = dc_try_alloc(MOST_FILES * sizeof *list.at), .cap = MOST_FILES};
    if (list.at == NULL)
        return (dc_cachedir_use){0};
    do { /* again where there are more files than room for them */
        use = (dc_cachedir_use){0};
        list.n = 0;
        list_files(dir, &list, &use);
    } while (use.bytes > most && remove_some(dir, &list, most, &use) && use.bytes > most);
    dc_xfree(list.at);
    return use;
}

dc_cachedir_use dc_cache_folder_measure(int dir)
{
    return dc_cache_folder_trim(dir, UINT64_MAX);
}
