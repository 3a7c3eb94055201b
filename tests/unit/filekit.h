/*
 * What tests of readers of files share: a job, a file of a test's own, the sentence of a failure; files cut at every byte
 * and with changed bits. A reader is a body: it runs under dc_protect, and leaves nothing that is not freed by it.
 */
#ifndef DC_TESTS_FILEKIT_H
#define DC_TESTS_FILEKIT_H

#include "core/base/job.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"

typedef struct filekit {
    char dir[32], path[64];
    dc_opts opt;
    dc_log log;
    dc_job job;
    char message[1024];
    dc_status (*read)(dc_job *j, void *arg);
    void *arg;
} filekit;

static inline void filekit_init(filekit *k, dc_status (*read)(dc_job *, void *), void *arg)
{
    *k = (filekit){.dir = "/tmp/test_file.XXXXXX", .read = read, .arg = arg};
    if (mkdtemp(k->dir) == NULL)
        exit(1);
    snprintf(k->path, sizeof k->path, "%s/file", k->dir);
    dc_job_init(&k->job, &k->opt, &k->log);
}

static inline void filekit_fini(filekit *k)
{
    dc_job_fini(&k->job);
    unlink(k->path);
    rmdir(k->dir);
}

static inline void filekit_write(filekit *k, const void *bytes, size_t n)
{
    FILE *f = fopen(k->path, "wb");
    if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        printf("broken: %s\n", k->path);
        exit(1);
    }
}

static inline size_t filekit_slurp(filekit *k, void *to, size_t most)
{
    FILE *f = fopen(k->path, "rb");
    const size_t n = f != NULL ? fread(to, 1, most, f) : 0;
    if (f != NULL)
        fclose(f);
    return n;
}

static inline dc_status filekit_run(filekit *k, dc_status (*body)(dc_job *, void *), void *arg)
{
    const dc_status status = dc_protect(&k->job, body, arg);
    k->message[0] = '\0';
    if (status != DC_OK)
        dc_err_render(&k->job.err, 1, k->message, sizeof k->message);
    return status;
}

static inline dc_status filekit_read(filekit *k)
{
    return filekit_run(k, k->read, k->arg);
}

/* The bytes must be refused with "path: reason". */
static inline bool filekit_refused(filekit *k, const void *bytes, size_t n, const char *reason)
{
    char want[1024];
    filekit_write(k, bytes, n);
    snprintf(want, sizeof want, "%s: %s", k->path, reason);
    const dc_status status = filekit_read(k);
    const bool ok = status == DC_E_FILE && strcmp(k->message, want) == 0;
    if (!ok)
        printf("status %d: '%s' instead of '%s'\n", (int)status, k->message, want);
    return t_count(ok);
}

/* Any outcome but a crash or a leak. */
static inline void filekit_any(filekit *k, const void *bytes, size_t n)
{
    filekit_write(k, bytes, n);
    const dc_status status = filekit_read(k);
    CHECK(status == DC_OK ||
          ((status == DC_E_FILE || status == DC_E_NOMEM) && k->message[0] != '\0'));
}

/* Cut at every byte, which must be refused if `refused`; then `rounds` with changed bits. */
static inline void filekit_damage(filekit *k, const unsigned char *bytes, size_t n, bool refused,
                                  int rounds, uint32_t seed)
{
    unsigned char *b = malloc(n > 0 ? n : 1);
    for (size_t cut = 0; cut < n; cut++) {
        filekit_any(k, bytes, cut);
        if (refused)
            CHECK_EQ(k->job.err.status, DC_E_FILE);
    }
    printf("mutations: seed %u\n", seed);
    for (int round = 0; round < rounds; round++) {
        memcpy(b, bytes, n);
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t i = 0; i <= seed >> 30; i++) {
            seed = seed * 1664525u + 1013904223u;
            b[(seed >> 8) % n] ^= (unsigned char)(1u << (seed & 7));
        }
        filekit_any(k, b, n);
    }
    free(b);
}

#endif
