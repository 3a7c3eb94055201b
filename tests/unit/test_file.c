/* Whole files as text: sizes round the bound, and what is no file of bytes. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include "core/base/file.h"
#include "core/base/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/t.h"

static void test_sizes(const char *path, int fd)
{
    enum { MOST = 20000 };
    static char bytes[MOST + 10];
    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 0; n <= sizeof bytes; n += n < 4000 || (n > 4200 && n < MOST - 100) ? 100 : 1) {
        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
        errno = 0;
        char *text = dc_file_read(path, MOST);
        if (n < MOST)
            CHECK(text != NULL && strlen(text) == n);
        else
            CHECK(text == NULL && errno == EFBIG);
        dc_xfree(text);
    }
    CHECK(dc_file_read(path, 100) == NULL && errno == EFBIG);
    char *text = dc_file_read(path, SIZE_MAX);
    CHECK(text != NULL && strlen(text) == sizeof bytes);
    dc_xfree(text);
}

static void test_failures(void)
{
    CHECK(dc_file_read("/nowhere/at/all", 100) == NULL && errno == ENOENT);
    CHECK(dc_file_read("/", 10000) == NULL && errno == EISDIR); /* opens, and cannot be read */
    CHECK(dc_file_read("/dev/zero", 10000) == NULL && errno == EFBIG);
}

int main(void)
{
    char path[] = "/tmp/test_file.XXXXXX";
    const int fd = mkstemp(path);
    if (CHECK(fd >= 0))
        test_sizes(path, fd);
    test_failures();
    unlink(path);
    close(fd);
    return t_done();
}
