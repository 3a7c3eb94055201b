/*
 * Gzipped files, through each reader that takes them: members one behind the other are one file, what stands behind the
 * last one and is none is refused, wherever in the reader's memory that falls.
 */
#include "core/base/heap.h"
#include "core/base/opt.h"
#include "formats/gunzip.h"
#include "formats/idx.h"
#include "formats/infile.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/rng.h"

static dc_job job;
static char message[600];

static void put(const char *path, const void *bytes, size_t n, const char *mode)
{
    FILE *f = fopen(path, mode);
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* Appends a member. */
static void put_member(const char *path, const void *bytes, unsigned n)
{
    gzFile f = gzopen(path, "ab9");
    CHECK(f != NULL && (n == 0 || gzwrite(f, bytes, n) == (int)n) && gzclose(f) == Z_OK);
}

static bool fails_with(dc_status status, const char *words)
{
    message[0] = '\0';
    if (status != DC_OK)
        dc_err_render(&job.err, 0, message, sizeof message);
    if (words == NULL ? status == DC_OK : status != DC_OK && strstr(message, words) != NULL)
        return true;
    printf("    '%s' instead of '%s'\n", message, words != NULL ? words : "");
    return false;
}

/* As text and as an index: words NULL, or what both say. */
static void expect(const char *path, const unsigned char *wanted, size_t n, const char *words)
{
    char *bytes;
    void *data;
    dc_type type;
    size_t got;
    job.err = (dc_err){0};
    if (CHECK(fails_with(dc_infile_all(&job, path, 1 << 24, &bytes, &got), words)) &&
        words == NULL) {
        CHECK_EQ(got, n);
        CHECK(got == n && memcmp(bytes, wanted, n) == 0);
    }
    dc_xfree(bytes);
    job.err = (dc_err){0};
    if (CHECK(fails_with(dc_idx_read(&job, path, &type, &data), words)) && words == NULL)
        CHECK(dc_type_count(&type) == (int64_t)n - 8 && memcmp(data, wanted + 8, n - 8) == 0);
    dc_xfree(data);
}

/* An index of n - 8 bytes that do not become much smaller. */
static unsigned char *make_index(size_t n)
{
    rng dice = {7};
    unsigned char *bytes = malloc(n);
    const unsigned char head[8] = {0,
                                   0,
                                   8,
                                   1,
                                   (unsigned char)((n - 8) >> 24),
                                   (unsigned char)((n - 8) >> 16),
                                   (unsigned char)((n - 8) >> 8),
                                   (unsigned char)(n - 8)};
    memcpy(bytes, head, sizeof head);
    for (size_t i = 8; i < n; i++)
        bytes[i] = (unsigned char)rng_next(&dice);
    return bytes;
}

static void test_members(const char *path)
{
    const size_t n = 300000;
    unsigned char *bytes = make_index(n);
    const unsigned cuts[][2] = {
        {0, 300000}, {300000, 0}, {1, 299999}, {150000, 150000}, {8, 299992}};
    for (size_t i = 0; i < DC_COUNTOF(cuts); i++) {
        remove(path);
        put_member(path, bytes, cuts[i][0]);
        put_member(path, bytes + cuts[i][0], cuts[i][1]);
        expect(path, bytes, n, NULL);
    }
    remove(path);
    for (unsigned at = 0; at < n; at += 1000) {
        put_member(path, bytes + at, 1000);
        put_member(path, bytes, 0);
    }
    expect(path, bytes, n, NULL);
    free(bytes);
}

static void test_behind(const char *path)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } behind[] = {{"x", 1, "1 byte behind the gzip stream"},
                  {"\0", 1, "1 byte behind the gzip stream"},
                  {"\x1f", 1, "1 byte behind the gzip stream"},
                  {"\x1f\x8c\x08", 3, "3 bytes behind the gzip stream"},
                  {"\0\0\0\0\0\0\0\0", 8, "8 bytes behind the gzip stream"},
                  {"\x1f\x8b", 2, "the gzip stream is cut off"},
                  {"\x1f\x8b\x08\0\0\0\0\0\0\3", 10, "the gzip stream is cut off"},
                  {"\x1f\x8b\x09\0\0\0\0\0\0\3", 10, "the gzip stream is damaged"},
                  {"\x1f\x8b nothing", 10, "the gzip stream is damaged"}};
    /* The member ends wherever in what is read at once, also right at its end. */
    for (size_t n = 65400; n < 65700; n += n % 7 == 0 ? 1 : 13) {
        unsigned char *bytes = make_index(n);
        for (size_t i = 0; i < DC_COUNTOF(behind); i++) {
            if (n > 65410 && i % 4 != n % 4)
                continue;
            remove(path);
            put_member(path, bytes, (unsigned)n);
            put(path, behind[i].bytes, behind[i].n, "ab");
            expect(path, bytes, n, behind[i].words);
        }
        free(bytes);
    }
    unsigned char *bytes = make_index(100), *much = calloc(1, 200000);
    remove(path);
    put_member(path, bytes, 100);
    put(path, much, 200000, "ab");
    expect(path, bytes, 100, "200000 bytes behind the gzip stream");
    free(bytes);
    free(much);
}

/* What is not packed comes as it is, though it has such bytes. */
static void test_plain(const char *path)
{
    unsigned char *bytes = make_index(100000);
    bytes[8] = 0x1f;
    bytes[9] = 0x8b;
    put(path, bytes, 100000, "wb");
    expect(path, bytes, 100000, NULL);
    free(bytes);
    char *text;
    size_t n;
    put(path, "\x1f", 1, "wb");
    CHECK(dc_infile_all(&job, path, 10, &text, &n) == DC_OK && n == 1 && text[0] == 0x1f);
    dc_xfree(text);
    put(path, "", 0, "wb");
    CHECK(dc_infile_all(&job, path, 10, &text, &n) == DC_OK && n == 0 && text[0] == 0);
    dc_xfree(text);
}

int main(void)
{
    if (!CHECK(folder_make()))
        return t_done();
    dc_opts opt = {0};
    dc_log log = {0};
    dc_job_init(&job, &opt, &log);
    test_members(folder_path("x"));
    test_behind(folder_path("x"));
    test_plain(folder_path("x"));
    dc_job_fini(&job);
    CHECK(folder_remove());
    return t_done();
}
