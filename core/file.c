#define _POSIX_C_SOURCE 200809L
#include "core/file.h"

#include <errno.h>
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
