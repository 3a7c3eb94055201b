#define _DEFAULT_SOURCE /* d_type */
#include "formats/folder.h"

#include "core/base/heap.h"
#include "core/base/path.h"
#include "core/base/sort.h"
#include "core/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    dc_job *job;
    const char *path;
    int fd; /* -1: `dir` owns it */
    DIR *dir;
    dc_text text; /* kind, name, zero of each entry, as the folder gives them */
    size_t count;
} reader;

static void end_reader(void *what)
{
    reader *r = what;
    if (r->dir != NULL)
        closedir(r->dir);
    else if (r->fd >= 0)
        close(r->fd);
    dc_text_free(&r->text);
}

/* 'f', 'd' or 0: none of the two. */
static char kind_by_stat(const reader *r, const char *name)
{
    struct stat st;
    const int how = r->job->folders != NULL ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(dirfd(r->dir), name, &st, how) != 0)
        return how == 0 ? 'f' : 0; /* whoever reads it is told */
    return S_ISREG(st.st_mode) ? 'f' : S_ISDIR(st.st_mode) ? 'd' : 0;
}

static char kind_of(const reader *r, const struct dirent *e)
{
    switch (e->d_type) {
    case DT_REG:
        return 'f';
    case DT_DIR:
        return 'd';
    case DT_LNK:
    case DT_UNKNOWN:
        return kind_by_stat(r, e->d_name);
    default:
        return 0;
    }
}

static dc_status read_entries(reader *r)
{
    for (;;) {
        DC_TRY(dc_job_ended(r->job));
        errno = 0;
        const struct dirent *e = readdir(r->dir);
        if (e == NULL)
            return errno == 0 ? DC_OK : dc_path_fail_errno(r->job, r->path, NULL);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        const char kind = kind_of(r, e);
        if (kind == 0)
            continue;
        dc_text_put(&r->text, &kind, 1);
        dc_text_put(&r->text, e->d_name, strlen(e->d_name) + 1);
        r->count++;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

static dc_status sort_entries(const reader *r, dc_folder_list *out)
{
    const char **entry = dc_arena_alloc(&r->job->scratch, (r->count + 1) * sizeof *entry);
    const char *from = r->text.s;
    for (size_t i = 0; i < r->count; i++, from += strlen(from) + 1)
        entry[i] = from;
    DC_TRY(dc_sort(r->job, entry, r->count, sizeof *entry, by_name));
    out->n = r->text.n;
    out->text = dc_xalloc(out->n + 1);
    char *to = out->text;
    for (size_t i = 0; i < r->count; i++) {
        const size_t n = strlen(entry[i]) + 1;
        memcpy(to, entry[i], n);
        to += n;
    }
    return DC_OK;
}

dc_status dc_folder_read(dc_job *j, const char *path, dc_folder_list *out)
{
    reader *r = DC_NEW(&j->scratch, reader);
    struct stat st;
    *out = (dc_folder_list){0};
    *r = (reader){.job = j, .path = path, .fd = -1};
    dc_job_defer(j, end_reader, r);
    DC_TRY(dc_path_open(j, path, &r->fd));
    if (fstat(r->fd, &st) != 0 || (r->dir = fdopendir(r->fd)) == NULL)
        return dc_path_fail_errno(j, path, NULL);
    out->id[0] = (uint64_t)st.st_dev;
    out->id[1] = (uint64_t)st.st_ino;
    DC_TRY(read_entries(r));
    return sort_entries(r, out);
}

/* ---- patterns --------------------------------------------------------------------------------- */

/* Of the character at s, which is not the end; a byte that begins none is one by itself. */
static size_t length_of(const char *s)
{
    const unsigned char first = (unsigned char)*s;
    const size_t want = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (size_t n = 1; n < want; n++)
        if (((unsigned char)s[n] & 0xc0) != 0x80)
            return 1;
    return want;
}

/* Characters of UTF-8 have the order of their bytes. */
static int compare(const char *a, const char *b)
{
    const size_t n = length_of(a), m = length_of(b);
    const int c = memcmp(a, b, n < m ? n : m);
    return c != 0 ? c : (n > m) - (n < m);
}

/* The ] of the set that p, behind its [, begins with; NULL: it has none. */
static const char *end_of_set(const char *p)
{
    p += *p == '!';
    return *p != '\0' ? strchr(p + 1, ']') : NULL; /* a ] in front is one of the set */
}

static bool in_set(const char *p, const char *end, const char *s)
{
    const bool other = *p == '!';
    bool found = false;
    p += other;
    while (p < end) {
        const char *low = p, *high = p;
        p += length_of(p);
        if (*p == '-' && p + 1 < end) {
            high = p + 1;
            p = high + length_of(high);
        }
        found = found || (compare(low, s) <= 0 && compare(s, high) <= 0);
    }
    return found != other;
}

/* Behind the part of the pattern at p that the character at s has the form of; NULL where it has not. */
static const char *match_one(const char *p, const char *s)
{
    const char *end = *p == '[' ? end_of_set(p + 1) : NULL;
    if (*p == '?')
        return p + 1;
    if (end != NULL)
        return in_set(p + 1, end, s) ? end + 1 : NULL;
    return *p != '\0' && compare(p, s) == 0 ? p + length_of(p) : NULL;
}

bool dc_folder_match(const char *pattern, const char *name)
{
    const char *p = pattern, *s = name;
    const char *star = NULL,
               *from = NULL; /* behind the last *, and where what follows it was tried */
    while (*s != '\0') {
        const char *next = *p == '*' ? NULL : match_one(p, s);
        if (next != NULL) {
            p = next;
            s += length_of(s);
        } else if (*p == '*') {
            star = ++p;
            from = s;
        } else if (star != NULL) {
            from += length_of(from);
            p = star;
            s = from;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return *p == '\0';
}
