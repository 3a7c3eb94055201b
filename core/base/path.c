#define _GNU_SOURCE /* O_PATH, O_DIRECTORY */
#include "core/base/path.h"

#include "core/base/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct folder {
    int fd;
    bool use[2];
    char *text; /* "/srv/data": no "", "." or ".." in it, no slash at the end */
} folder;

struct dc_folders {
    char *cwd; /* relative paths begin there; "" where it has no name */
    size_t n;
    folder at[];
};

/* ---- failures -------------------------------------------------------------------------------- */

static const char *end_of(const char *path)
{
    enum { MOST = 200 };
    const size_t n = strlen(path);
    return n > MOST ? path + n - MOST : path;
}

dc_status dc_path_fail(dc_job *j, dc_err_id id, const char *path, const char *fmt, ...)
{
    char text[280];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dc_fail(j, id, &(dc_fact){.word = {end_of(path), text}});
}

dc_status dc_path_fail_errno(dc_job *j, const char *path, const char *doing)
{
    const int error = errno;
    char text[280];
    snprintf(text, sizeof text, "%s%s%s", doing != NULL ? doing : "", doing != NULL ? ": " : "",
             strerror(error));
    const dc_status status =
        dc_fail(j, DC_ERR_FILE, &(dc_fact){.error = error, .word = {end_of(path), text}});
    errno = error;
    return status;
}

dc_status dc_path_allow(dc_job *j, const char *path)
{
    return dc_opts_files(j->opt)
               ? DC_OK
               : dc_path_fail(j, DC_ERR_ALLOW, path, "%s", "files may not be opened here");
}

/* One sentence for all that is outside; it depends on the path and the folders alone. */
static dc_status refuse_path(dc_job *j, dc_folder_use use, const char *path)
{
    const dc_folders *f = j->folders;
    bool any = false;
    for (size_t i = 0; i < f->n; i++)
        any = any || f->at[i].use[use];
    if (f->n == 0)
        return dc_path_fail(j, DC_ERR_ALLOW, path, "%s", "files may not be opened here");
    if (!any)
        return dc_path_fail(j, DC_ERR_ALLOW, path, "files may not be %s here",
                            use == DC_FOLDER_READ ? "read" : "written");
    return dc_path_fail(j, DC_ERR_ALLOW, path, "outside the folders that may be %s here",
                        use == DC_FOLDER_READ ? "read" : "written");
}

dc_status dc_folders_no_link(dc_job *j, const char *path, int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode))
        return DC_OK;
    return dc_path_fail(j, DC_ERR_ALLOW, path, "%s", "a symbolic link, which is not followed here");
}

/* ---- texts of paths -------------------------------------------------------------------------- */

/*
 * Appends the names of a path to out, each behind a slash, without "" and "."; false where one is "..". out has
 * room for as many bytes as the path has, a slash and a zero.
 */
static bool append_names(char *out, const char *path)
{
    char *at = out + strlen(out);
    while (*path != '\0') {
        const size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.')
            return false;
        if (n > 0 && !(n == 1 && path[0] == '.')) {
            *at++ = '/';
            memcpy(at, path, n);
            at += n;
        }
        path += n + (path[n] == '/');
    }
    *at = '\0';
    return true;
}

/* The whole path from the root; NULL where it goes up, or begins where there is no name. */
static char *whole_path(dc_job *j, const char *cwd, const char *path)
{
    char *out = dc_arena_alloc(&j->scratch, strlen(cwd) + strlen(path) + 2);
    out[0] = '\0';
    if (path[0] != '/') {
        if (cwd[0] == '\0')
            return NULL;
        append_names(out, cwd);
    }
    return append_names(out, path) ? out : NULL;
}

/* The longest folder that a whole path lies beneath, or is; NULL none. */
static const folder *find_folder(const dc_folders *f, dc_folder_use use, const char *path)
{
    const folder *best = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const size_t n = strlen(f->at[i].text);
        if (f->at[i].use[use] && strncmp(path, f->at[i].text, n) == 0 &&
            (path[n] == '/' || path[n] == '\0') && (best == NULL || n > strlen(best->text)))
            best = &f->at[i];
    }
    return best;
}

/* ---- opening folders ------------------------------------------------------------------------- */

static dc_status add_folder(dc_job *j, dc_folders *f, const char *path, dc_folder_use use)
{
    const char *text = whole_path(j, f->cwd, path);
    if (text == NULL)
        return dc_path_fail(j, DC_ERR_FILE, path, "%s", "a folder is named without '..'");
    folder *to = &f->at[f->n];
    to->text = dc_xalloc(strlen(text) + 1);
    strcpy(to->text, text);
    to->use[use] = true;
    to->fd = -1;
    f->n++;
    to->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return to->fd >= 0 ? DC_OK : dc_path_fail_errno(j, path, NULL);
}

static size_t length_of(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

static void release_folders(void *f)
{
    dc_folders_free(f);
}

dc_status dc_folders_new(dc_job *j, const char *const *read, const char *const *write,
                         dc_folders **out)
{
    const size_t nread = length_of(read), nwrite = length_of(write);
    dc_folders *f = dc_xalloc(sizeof *f + (nread + nwrite) * sizeof *f->at);
    dc_job_defer(j, release_folders, f);
    char *cwd = dc_arena_alloc(&j->scratch, PATH_MAX);
    if (getcwd(cwd, PATH_MAX) == NULL || cwd[0] != '/')
        cwd[0] = '\0';
    f->cwd = dc_xalloc(strlen(cwd) + 1);
    strcpy(f->cwd, cwd);
    for (size_t i = 0; i < nread; i++)
        DC_TRY(add_folder(j, f, read[i], DC_FOLDER_READ));
    for (size_t i = 0; i < nwrite; i++)
        DC_TRY(add_folder(j, f, write[i], DC_FOLDER_WRITE));
    dc_job_keep(j, f);
    *out = f;
    return DC_OK;
}

void dc_folders_free(dc_folders *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n; i++) {
        if (f->at[i].fd >= 0)
            close(f->at[i].fd);
        dc_xfree(f->at[i].text);
    }
    dc_xfree(f->cwd);
    dc_xfree(f);
}

/* ---- going down ------------------------------------------------------------------------------ */

/* From *dir, which is closed, to its folder of that name. False with errno. */
static bool step(int *dir, const char *name)
{
    const int next = openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return false;
    close(*dir);
    *dir = next;
    return true;
}

static dc_status fail_step(dc_job *j, const char *path, int *dir, const char *name)
{
    const int because = errno;
    dc_status status = dc_folders_no_link(j, path, *dir, name);
    errno = because;
    if (status == DC_OK)
        status = dc_path_fail_errno(j, path, NULL);
    close(*dir);
    *dir = -1;
    errno = because;
    return status;
}

dc_status dc_folders_enter(dc_job *j, dc_folder_use use, const char *path, int *dir,
                           const char **name)
{
    char *at = whole_path(j, j->folders->cwd, path);
    const folder *in = at != NULL ? find_folder(j->folders, use, at) : NULL;
    *dir = -1;
    if (in == NULL)
        return refuse_path(j, use, path);
    if (path[0] != '\0' && path[strlen(path) - 1] == '/')
        return dc_path_fail(j, DC_ERR_FILE, path, "is no name of a file");
    *dir = fcntl(in->fd, F_DUPFD_CLOEXEC, 0);
    if (*dir < 0)
        return dc_path_fail_errno(j, path, NULL);
    at += strlen(in->text);
    at += *at == '/';
    for (char *slash; (slash = strchr(at, '/')) != NULL; at = slash + 1) {
        *slash = '\0';
        if (!step(dir, at))
            return fail_step(j, path, dir, at);
    }
    *name = *at != '\0' ? at : ".";
    return DC_OK;
}

dc_status dc_path_open(dc_job *j, const char *path, int *fd)
{
    const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK; /* a pipe does not wait for its writer */
    const char *name;
    int dir;
    DC_TRY(dc_path_allow(j, path));
    if (j->folders == NULL) {
        *fd = open(path, how);
        return *fd >= 0 ? DC_OK : dc_path_fail_errno(j, path, NULL);
    }
    DC_TRY(dc_folders_enter(j, DC_FOLDER_READ, path, &dir, &name));
    *fd = openat(dir, name, how | O_NOFOLLOW);
    if (*fd < 0)
        return fail_step(j, path, &dir, name);
    close(dir);
    return DC_OK;
}

dc_status dc_path_exists(dc_job *j, dc_folder_use use, const char *path, bool *there)
{
    const char *name;
    struct stat st;
    int dir;
    DC_TRY(dc_path_allow(j, path));
    if (j->folders == NULL) {
        *there = access(path, F_OK) == 0;
        return DC_OK;
    }
    const dc_status status = dc_folders_enter(j, use, path, &dir, &name);
    *there = false;
    if (status != DC_OK)
        return j->err.id == DC_ERR_FILE ? DC_OK : status;
    *there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    close(dir);
    return DC_OK;
}

dc_status dc_path_remove(dc_job *j, const char *path)
{
    const char *name = path;
    int dir = AT_FDCWD;
    DC_TRY(dc_path_allow(j, path));
    if (j->folders != NULL)
        DC_TRY(dc_folders_enter(j, DC_FOLDER_WRITE, path, &dir, &name));
    const int failed = unlinkat(dir, name, 0) != 0 && errno != ENOENT ? errno : 0;
    if (dir != AT_FDCWD)
        close(dir);
    errno = failed;
    return failed == 0 ? DC_OK : dc_path_fail_errno(j, path, "removing it");
}
