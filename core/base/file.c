#define _POSIX_C_SOURCE 200809L
#include "core/base/file.h"

#include "core/base/heap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool dc_file_write(int fd, const char *s, size_t n)
{
    while (n > 0) {
        const ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

/* What is left of the file, to be freed whatever is returned. The status is an errno. */
static int read_rest(FILE *f, size_t most, char **text)
{
    size_t n = 0, size = 0;
    do {
        const size_t twice = size < most / 4 ? size * 2 + 4096 : most;
        const size_t more = twice < most ? twice : most;
        if (more <= size)
            return getc(f) == EOF && !ferror(f) ? 0 : EFBIG;
        char *grown = dc_try_realloc(*text, more);
        if (grown == NULL)
            return ENOMEM;
        *text = grown;
        size = more;
        errno = EIO; /* of those that say nothing */
        n += fread(*text + n, 1, size - n - 1, f);
        if (ferror(f))
            return errno;
        (*text)[n] = '\0';
    } while (n == size - 1);
    return 0;
}

char *dc_file_read(const char *path, size_t most)
{
    FILE *f = fopen(path, "rbe");
    char *text = NULL;
    if (f == NULL)
        return NULL;
    const int e = read_rest(f, most, &text);
    fclose(f);
    if (e == 0)
        return text;
    dc_xfree(text);
    errno = e;
    return NULL;
}

void dc_file_make_folders(const char *path)
{
    char part[PATH_MAX];
    const int n = snprintf(part, sizeof part, "%s", path);
    if (n <= 0 || n >= (int)sizeof part)
        return;
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0700);
        *slash = '/';
    }
    mkdir(part, 0700);
}
