#define _POSIX_C_SOURCE 200809L
#include "core/file.h"

#include "core/heap.h"

#include <errno.h>
#include <stdio.h>
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

char *dc_file_read(const char *path, size_t most)
{
    FILE *f = fopen(path, "rbe");
    char *text = NULL;
    size_t n = 0, size = 0;
    if (f == NULL)
        return NULL;
    do {
        size = size * 2 + 4096;
        char *grown = size <= most ? dc_try_realloc(text, size) : NULL;
        if (grown == NULL) {
            dc_xfree(text);
            fclose(f);
            errno = size <= most ? ENOMEM : EFBIG;
            return NULL;
        }
        text = grown;
        n += fread(text + n, 1, size - n - 1, f);
    } while (n == size - 1);
    text[n] = '\0';
    fclose(f);
    return text;
}
