/* formats/idx.c: good files, every way of being wrong, truncations and mutations. */
#define _GNU_SOURCE
#include "formats/idx.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/t.h"

#define FASHION "/usr/share/datasets/fashion-mnist/"

static char dir[] = "/tmp/test_idx.XXXXXX";
static char path[64];
static dc_job job;
static dc_type type;
static void *data;
static char message[1024];

/* What everything else stands on: files can be written, a failure leaves no data. */
static void must(bool ok)
{
    if (!ok) {
        printf("broken: %s\n", path);
        exit(1);
    }
}

static void write_plain(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    must(f != NULL && fwrite(bytes, 1, n, f) == n);
    must(fclose(f) == 0);
}

static void write_gzip(const void *bytes, unsigned n)
{
    gzFile f = gzopen(path, "wb9");
    must(f != NULL && gzwrite(f, bytes, n) == (int)n);
    must(gzclose(f) == Z_OK);
}

static size_t slurp(unsigned char *to, size_t most)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, most, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* Reads `from`, leaving type, data and message. */
static dc_status read_from(const char *from)
{
    dc_xfree(data);
    job.err = (dc_err){0};
    message[0] = '\0';
    const dc_status status = dc_idx_read(&job, from, &type, &data);
    if (status != DC_OK) {
        must(data == NULL && status == job.err.status);
        dc_err_render(&job.err, 1, message, sizeof message);
    }
    return status;
}

/* The file at `path` must be refused with "path: reason". */
static void refused(dc_err_id id, const char *reason)
{
    char want[1024];
    snprintf(want, sizeof want, "%s: %s", path, reason);
    CHECK_EQ(read_from(path), DC_E_FILE);
    CHECK_EQ(job.err.id, id);
    CHECK_STR(message, want);
}

#define REFUSED(bytes, reason)            \
    do {                                  \
        const unsigned char b_[] = bytes; \
        write_plain(b_, sizeof b_);       \
        refused(DC_ERR_FORMAT, reason);   \
    } while (0)
#define B(...)      \
    {               \
        __VA_ARGS__ \
    }

static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 255};

static void check_good(void)
{
    CHECK_EQ(read_from(path), DC_OK);
    CHECK_EQ(type.dtype, DC_U8);
    CHECK_EQ(type.rank, 2);
    CHECK_EQ(type.dim[0], 2);
    CHECK_EQ(type.dim[1], 3);
    if (CHECK(data != NULL))
        CHECK_EQ(memcmp(data, good + 12, 6), 0);
}

static void test_good(void)
{
    write_plain(good, sizeof good);
    check_good();
    write_gzip(good, sizeof good);
    check_good();
    unsigned char b[4 + 4 * DC_MAX_RANK + 1] = {0, 0, 8, DC_MAX_RANK};
    for (int i = 0; i < DC_MAX_RANK; i++)
        b[4 + 4 * i + 3] = 1;
    b[sizeof b - 1] = 77;
    write_plain(b, sizeof b);
    CHECK_EQ(read_from(path), DC_OK);
    CHECK_EQ(type.rank, DC_MAX_RANK);
    CHECK(data != NULL && *(unsigned char *)data == 77);
}

static void test_files(void)
{
    unlink(path);
    refused(DC_ERR_FILE, "No such file or directory");
    CHECK_EQ(mkdir(path, 0700), 0);
    refused(DC_ERR_FILE, "is a directory");
    CHECK_EQ(rmdir(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    const int keep = open(path, O_RDWR);
    refused(DC_ERR_FILE, "is not a regular file");
    close(keep);
    CHECK_EQ(unlink(path), 0);

    /* A long path loses its beginning, never the reason. */
    char far[1500];
    memset(far, 'x', sizeof far);
    far[sizeof far - 1] = '\0';
    for (size_t i = 0; i < sizeof far - 1; i += 100)
        far[i] = '/';
    CHECK_EQ(read_from(far), DC_E_FILE);
    CHECK(strstr(message, "x: No such file or directory") != NULL);
}

static void test_wrong(void)
{
    write_plain("", 0);
    refused(DC_ERR_FORMAT, "not an idx file: 0 bytes long");
    REFUSED(B(0, 0, 8), "not an idx file: 3 bytes long");
    REFUSED(B(0x89, 'P', 'N', 'G'), "not an idx file: starts with 89 50 4e 47");
    REFUSED(B(0, 1, 8, 1, 0, 0, 0, 1, 5), "not an idx file: starts with 00 01 08 01");
    REFUSED(B(0, 0, 7, 1, 0, 0, 0, 1, 5), "not an idx file: unknown element type 0x07");
    REFUSED(B(0, 0, 0x0d, 1, 0, 0, 0, 1, 5, 5, 5, 5),
            "elements are f32 (type 0x0d), only u8 (0x08) is read");
    REFUSED(B(0, 0, 8, 0), "no axes are declared");
    REFUSED(B(0, 0, 8, 9), "9 axes are declared, 8 is the most");
    REFUSED(B(0, 0, 8, 2, 0, 0, 0, 2, 0),
            "truncated: the sizes of 2 axes need 8 bytes, 5 are there");
    REFUSED(B(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 0), "axis 2 has size 0");
    REFUSED(B(0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255),
            "u8[4294967295, 4294967295, 4294967295] is too large to address");
    REFUSED(B(0, 0, 8, 1, 255, 255, 255, 255, 1, 2),
            "truncated: got 2 of 4294967295 bytes of data");
    REFUSED(B(0, 0, 8, 1, 0, 0, 0, 2, 1), "truncated: got 1 of 2 bytes of data");
    REFUSED(B(0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3), "bytes follow the 2 bytes of data");
}

static void test_wrong_inside_gzip(void)
{
    const unsigned char huge[] = {0, 0, 8, 1, 255, 255, 255, 255, 1, 2};
    write_gzip(huge, sizeof huge);
    CHECK_EQ(read_from(path), DC_E_FILE);
    CHECK(strstr(message, "u8[4294967295] is declared, more than ") != NULL);

    const unsigned char few[] = {0, 0, 8, 1, 0, 0, 0, 9, 1, 2};
    write_gzip(few, sizeof few);
    refused(DC_ERR_FORMAT, "truncated: got 2 of 9 bytes of data");

    const unsigned char many[] = {0, 0, 8, 1, 0, 0, 0, 1, 1, 2};
    write_gzip(many, sizeof many);
    refused(DC_ERR_FORMAT, "bytes follow the 1 bytes of data");
}

/* A small file whose compressed form has more than one byte of everything. */
static unsigned make_larger(unsigned char *b)
{
    const unsigned char head[] = {0, 0, 8, 2, 0, 0, 0, 20, 0, 0, 0, 30};
    memcpy(b, head, sizeof head);
    uint32_t x = 1;
    for (int i = 0; i < 600; i++) {
        x = x * 1664525u + 1013904223u;
        b[sizeof head + (size_t)i] = (unsigned char)((x >> 24) & (i % 3 == 0 ? 0xff : 0x03));
    }
    return sizeof head + 600;
}

static void test_cut_everywhere(void)
{
    unsigned char plain[700], packed[1024];
    const unsigned n = make_larger(plain);
    write_gzip(plain, n);
    const size_t m = slurp(packed, sizeof packed);
    CHECK(m > 100 && m < sizeof packed);
    CHECK_EQ(read_from(path), DC_OK);
    CHECK(data != NULL && memcmp(data, plain + 12, 600) == 0);

    for (size_t cut = 0; cut < m; cut++) {
        write_plain(packed, cut);
        CHECK_EQ(read_from(path), DC_E_FILE);
        CHECK_EQ(job.err.id, DC_ERR_FORMAT);
        if (cut >= 2)
            CHECK(strstr(message, "the gzip stream is cut off") != NULL);
    }
    for (size_t cut = 0; cut < n; cut++) {
        write_plain(plain, cut);
        CHECK_EQ(read_from(path), DC_E_FILE);
        CHECK(strstr(message, "truncated: ") != NULL || strstr(message, "bytes long") != NULL);
    }

    packed[m - 6] ^= 1; /* the checksum */
    write_plain(packed, m);
    refused(DC_ERR_FORMAT, "the gzip stream is damaged: incorrect data check");
    packed[m - 6] ^= 1;
    packed[m - 2] ^= 1; /* the length */
    write_plain(packed, m);
    refused(DC_ERR_FORMAT, "the gzip stream is damaged: incorrect length check");
}

/* Changed bytes: any outcome but a crash, a leak or wrong elements behind a good checksum. */
static void mutate(const unsigned char *from, size_t n, const unsigned char *elements, int rounds,
                   uint32_t seed)
{
    unsigned char b[1024];
    for (int round = 0; round < rounds; round++) {
        size_t len = n;
        memcpy(b, from, n);
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t k = 0; k <= seed >> 30; k++) {
            seed = seed * 1664525u + 1013904223u;
            b[(seed >> 8) % n] ^= (unsigned char)(1u << (seed & 7));
        }
        seed = seed * 1664525u + 1013904223u;
        if (seed >> 29 == 0)
            len = (seed >> 8) % n;
        write_plain(b, len);
        const dc_status status = read_from(path);
        if (status != DC_OK)
            CHECK(status == DC_E_FILE && message[0] != '\0');
        else if (elements != NULL)
            CHECK(memcmp(data, elements, 600) == 0);
        else
            CHECK(data != NULL && dc_type_count(&type) == (int64_t)len - 4 - 4 * type.rank);
    }
}

static void test_mutations(void)
{
    const uint32_t seed = 20240607u;
    unsigned char plain[700], packed[1024];
    const unsigned n = make_larger(plain);
    printf("mutations: seed %u\n", seed);
    mutate(plain, n, NULL, 1500, seed);
    mutate(plain, 16, NULL, 1500, seed + 1); /* mostly the header */
    write_gzip(plain, n);
    const size_t m = slurp(packed, sizeof packed);
    mutate(packed, m, plain + 12, 3000, seed + 2);
}

static void test_fashion_mnist(void)
{
    if (access(FASHION "t10k-images-idx3-ubyte.gz", R_OK) != 0) {
        T_SKIP(FASHION " is not there (Debian: dataset-fashion-mnist)");
        return;
    }
    CHECK_EQ(read_from(FASHION "t10k-images-idx3-ubyte.gz"), DC_OK);
    CHECK_EQ(type.rank, 3);
    CHECK_EQ(type.dim[0], 10000);
    CHECK_EQ(type.dim[1], 28);
    CHECK_EQ(type.dim[2], 28);
    CHECK_EQ(read_from(FASHION "t10k-labels-idx1-ubyte.gz"), DC_OK);
    CHECK_EQ(type.rank, 1);
    CHECK_EQ(type.dim[0], 10000);
    int count[256] = {0};
    for (int i = 0; i < 10000 && data != NULL; i++)
        count[((unsigned char *)data)[i]]++;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(count[i], 1000);
}

int main(void)
{
    if (!CHECK(mkdtemp(dir) != NULL))
        return t_done();
    snprintf(path, sizeof path, "%s/file", dir);
    dc_opts opt = {0};
    dc_log log = {0};
    dc_job_init(&job, &opt, &log);

    test_good();
    test_files();
    test_wrong();
    test_wrong_inside_gzip();
    test_cut_everywhere();
    test_mutations();
    test_fashion_mnist();

    dc_xfree(data);
    dc_job_fini(&job);
    unlink(path);
    rmdir(dir);
    return t_done();
}
