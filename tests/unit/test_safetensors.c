/*
 * formats/safetensors.c and stwrite.c: what is written is read back, every way of being wrong, files
 * cut at every byte, random changes, files that are replaced whole or not at all.
 */
#define _GNU_SOURCE
#include "core/base/outfile.h"
#include "formats/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

static char dir[] = "/tmp/test_st.XXXXXX";
static char path[64];
static dc_job job;
static char message[1024];

static void must(bool ok)
{
    if (!ok) {
        printf("broken: %s\n", strerror(errno));
        exit(1);
    }
}

static void put_file(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    must(f != NULL && fwrite(bytes, 1, n, f) == n);
    must(fclose(f) == 0);
}

static size_t get_file(void *to, size_t most)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, most, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* A file of this header and so many bytes of data, 0 1 2 ... */
static size_t make(char *to, const char *header, size_t data)
{
    const size_t n = strlen(header);
    for (int i = 0; i < 8; i++)
        to[i] = (char)((uint64_t)n >> 8 * i);
    memcpy(to + 8, header, n);
    for (size_t i = 0; i < data; i++)
        to[8 + n + i] = (char)i;
    return 8 + n + data;
}

static void put(const char *header, size_t data)
{
    char bytes[8192];
    put_file(bytes, make(bytes, header, data));
}

/* ---- reading --------------------------------------------------------------------------------- */

static dc_st_file *file;

static dc_status open_body(dc_job *j, void *arg)
{
    return dc_safetensors_open(j, arg, &file);
}

static dc_status open_file(void)
{
    dc_safetensors_close(file);
    file = NULL;
    message[0] = '\0';
    const dc_status status = dc_protect(&job, open_body, path);
    must((status == DC_OK) == (file != NULL));
    if (status != DC_OK)
        dc_err_render(&job.err, 1, message, sizeof message);
    return status;
}

static void refused(dc_err_id id, const char *reason)
{
    char want[1024];
    snprintf(want, sizeof want, "%s: %s", path, reason);
    CHECK_EQ(open_file(), DC_E_FILE);
    CHECK_EQ(job.err.id, id);
    CHECK_STR(message, want);
}

#define REFUSED(header, data, reason)   \
    do {                                \
        put(header, data);              \
        refused(DC_ERR_FORMAT, reason); \
    } while (0)

typedef struct fetching {
    uint32_t tensor;
    size_t from, n;
    void *to;
} fetching;

static dc_status read_body(dc_job *j, void *arg)
{
    const fetching *a = arg;
    uint32_t n;
    const dc_st_tensor *t = dc_safetensors_tensors(file, &n);
    return dc_safetensors_read(file, j, &t[a->tensor], a->from, a->n, a->to);
}

static dc_status read_part(uint32_t tensor, size_t from, size_t n, void *to)
{
    fetching a = {tensor, from, n, to};
    const dc_status status = dc_protect(&job, read_body, &a);
    if (status != DC_OK)
        dc_err_render(&job.err, 1, message, sizeof message);
    return status;
}

static const char good[] =
    "{\"__metadata__\":{\"epoch\":\"5\",\"by\":\"\\u00e9\\ud83d\\ude00\\n\"},"
    "\"b\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[3,11]},"
    "\"a\":{\"shape\":[3],\"data_offsets\":[0,3],\"dtype\":\"U8\"},"
    "\"none\":{\"dtype\":\"F64\",\"shape\":[0,4],\"data_offsets\":[3,3]},"
    "\"s\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[11,13]}}   ";

static void test_good(void)
{
    uint32_t n;
    unsigned char b[8];
    put(good, 13);
    if (!CHECK_EQ(open_file(), DC_OK)) {
        printf("%s\n", message);
        return;
    }
    const dc_st_tensor *t = dc_safetensors_tensors(file, &n);
    CHECK_EQ(n, 4);
    CHECK_STR(t[0].name, "a");
    CHECK_STR(t[1].name, "b");
    CHECK_STR(t[2].name, "none");
    CHECK_STR(t[3].name, "s");
    CHECK_EQ(t[1].type.dtype, DC_I32);
    CHECK(t[1].type.rank == 2 && t[1].type.dim[0] == 2 && t[1].type.dim[1] == 1);
    CHECK_EQ(t[3].type.rank, 0);
    CHECK_EQ(read_part(1, 2, 4, b), DC_OK); /* which lies at no multiple of 4 */
    CHECK(b[0] == 5 && b[3] == 8);
    CHECK_EQ(read_part(2, 0, 0, b), DC_OK);
    CHECK(dc_safetensors_find(file, "b") == &t[1] && dc_safetensors_find(file, "c") == NULL);
    const dc_st_text *text = dc_safetensors_texts(file, &n);
    CHECK_EQ(n, 2);
    CHECK_STR(text[0].key, "by");
    CHECK_STR(text[0].value, "\xc3\xa9\xf0\x9f\x98\x80\n");
    CHECK_STR(dc_safetensors_text(file, "epoch"), "5");
    CHECK(dc_safetensors_text(file, "none") == NULL);
    put("{}", 0);
    CHECK_EQ(open_file(), DC_OK);
    CHECK(dc_safetensors_find(file, "a") == NULL);
    put("{\"__metadata__\":{}}", 0);
    CHECK_EQ(open_file(), DC_OK);
}

/* What the reference implementation reads, too: no metadata, further fields, any byte for true, more axes than we have. */
static void test_lenient(void)
{
    uint32_t n;
    unsigned char b[8];
    put("{\"__metadata__\":null,\"b\":{\"x\":[1.5,{\"y\":null}],\"dtype\":\"BOOL\",\"shape\":[3],"
        "\"data_offsets\":[0,3],\"z\":\"\"},"
        "\"c\":{\"dtype\":\"C64\",\"shape\":[1,1,1,1,1,1,1,0],\"data_offsets\":[3,3]},"
        "\"r\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[3,4]},"
        "\"f\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[4,6]}}",
        6);
    if (!CHECK_EQ(open_file(), DC_OK)) {
        printf("%s\n", message);
        return;
    }
    const dc_st_tensor *t = dc_safetensors_tensors(file, &n);
    CHECK_EQ(n, 4);
    CHECK_EQ(read_part(0, 0, 3, b), DC_OK);
    CHECK(b[0] == 0 && b[1] == 1 && b[2] == 1);
    CHECK(t[1].why != NULL && t[3].why != NULL && t[2].why == NULL);
    CHECK_STR(t[2].unread, "F8_E8M0");
    CHECK_EQ(t[2].type.dim[0], 2);
}

static void test_files(void)
{
    unlink(path);
    refused(DC_ERR_FILE, "No such file or directory");
    CHECK_EQ(mkdir(path, 0700), 0);
    refused(DC_ERR_FILE, "is a directory");
    CHECK_EQ(rmdir(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    refused(DC_ERR_FILE, "is not a regular file");
    CHECK_EQ(unlink(path), 0);
}

static void test_lengths(void)
{
    put_file("", 0);
    refused(DC_ERR_FORMAT, "not a safetensors file: 0 bytes long");
    put_file("\3\0\0\0\0\0\0", 7);
    refused(DC_ERR_FORMAT, "not a safetensors file: 7 bytes long");
    put_file("\3\0\0\0\0\0\0\0{}", 10);
    refused(DC_ERR_FORMAT, "truncated: got 2 of 3 bytes of the header");
    put_file("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    refused(DC_ERR_FORMAT, "not a safetensors file: a header of 18446744073709551615 bytes");
    put_file("\0\0\0\0\0\0\0\0", 8);
    refused(DC_ERR_FORMAT, "header: does not begin with '{'");
    put_file("PK\3\4 a zip file, perhaps", 24);
    CHECK_EQ(open_file(), DC_E_FILE);
}

static void test_json(void)
{
    REFUSED(" {}", 0, "header: does not begin with '{'");
    REFUSED("[]", 0, "header: does not begin with '{'");
    REFUSED("{", 0, "header: at byte 1: a string expected, not the end");
    REFUSED("{}x", 0, "header: at byte 2: the end expected, not 'x'");
    REFUSED("{\"a\"}", 0, "header: at byte 4: ':' expected, not '}'");
    REFUSED("{\"a\":[[[[[[", 0, "header: at byte 5: '{' expected, not '['");
    REFUSED("{\"a\":{\"dtype\":{\"a\":", 0, "header: at byte 14: a string expected, not '{'");
    REFUSED("{\"__metadata__\":{\"a\":{}}}", 0, "header: at byte 21: a string expected, not '{'");
    REFUSED("{\"__metadata__\":nil}", 0, "header: at byte 16: a value expected, not 'n'");
    REFUSED("{\"a\":{\"shape\":[1,],", 0, "header: at byte 17: a whole number expected, not ']'");
    REFUSED("{\"a\":{\"shape\":[-1]}}", 0, "header: at byte 15: a whole number expected, not '-'");
    REFUSED("{\"a\":{\"shape\":[01]}}", 0, "header: at byte 15: a number with leading zeros");
    REFUSED("{\"a\":{\"shape\":[1.0]}}", 0,
            "header: at byte 15: a whole number expected, not a fraction");
    REFUSED("{\"a\":{\"shape\":[1e3]}}", 0,
            "header: at byte 15: a whole number expected, not a fraction");
    REFUSED("{\"a\":{\"shape\":[9223372036854775808]}}", 0,
            "header: at byte 15: a number beyond 2^63");
    REFUSED("{\"a\":{},}", 0, "tensor 'a' has no dtype");
    REFUSED("{\"\\u0000\":{}}", 0, "header: at byte 4: a zero byte in a string");
    REFUSED("{\"\\ud800\":{}}", 0, "header: at byte 4: half of a surrogate pair");
    REFUSED("{\"\\ude00\\ud83d\":{}}", 0, "header: at byte 4: half of a surrogate pair");
    REFUSED("{\"\\u12x4\":{}}", 0, "header: at byte 4: four hexadecimal digits expected");
    REFUSED("{\"\\x\":{}}", 0, "header: at byte 3: an escape expected, not 'x'");
    REFUSED("{\"\n\":{}}", 0, "header: at byte 2: a control character in a string");
    REFUSED("{\"\xff\":{}}", 0, "header: at byte 2: a string that is not UTF-8");
    REFUSED("{\"\xc0\x80\":{}}", 0, "header: at byte 2: a string that is not UTF-8");
    REFUSED("{\"\xed\xa0\x80\":{}}", 0, "header: at byte 2: a string that is not UTF-8");
    REFUSED("{\"abc", 0, "header: at byte 5: the end of a string expected, not the end");
    REFUSED("{\"abc\xe2\x82", 0, "header: at byte 5: a string that is not UTF-8");
}

#define U8(name, shape, offsets) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_entries(void)
{
    REFUSED("{\"a\":{\"dtype\":\"U8\"}}", 0, "tensor 'a' has no shape");
    REFUSED("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "tensor 'a' has no data_offsets");
    REFUSED("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "tensor 'a' has a field twice");
    REFUSED("{\"a\":{\"strides\":[1,]}}", 0, "header: at byte 19: a value expected, not ']'");
    REFUSED("{\"a\":{\"strides\":[1]}}", 0, "tensor 'a' has no dtype");
    REFUSED("{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[0,2]}}", 1,
            "tensor 'a' has data_offsets 0 to 2 in 1 bytes of data");
    REFUSED("{\"a\":{\"dtype\":\"u8\",\"shape\":[],\"data_offsets\":[0,1]}}", 2,
            "1 bytes at the end belong to no tensor");
    REFUSED("{" U8("a", "[4294967296,4294967296]", "[0,0]") "}", 0,
            "tensor 'a' is too large to address");
    REFUSED("{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
            "tensor 'a' is too large to address");
    REFUSED("{" U8("a", "[4611686018427387906]", "[0,2]") "}", 2,
            "tensor 'a' is too large to address"); /* a code of core/base/extent.h */
    REFUSED("{" U8("a", "[3]", "[0,4]") "}", 4,
            "tensor 'a' is u8[3], 3 bytes, and has data_offsets 0 to 4");
    REFUSED("{" U8("a", "[2]", "[1,0]") "}", 1,
            "tensor 'a' has data_offsets 1 to 0 in 1 bytes of data");
    REFUSED("{" U8("a", "[2]", "[0,2]") "}", 1,
            "tensor 'a' has data_offsets 0 to 2 in 1 bytes of data");
    REFUSED("{" U8("a", "[1]", "[9223372036854775806,9223372036854775807]") "}", 1,
            "tensor 'a' has data_offsets 9223372036854775806 to 9223372036854775807 in 1 bytes of "
            "data");
    REFUSED("{\"x\\ty\\u007f\":{}}", 0, "tensor 'x\\ty\\x7f' has no dtype");
    REFUSED(
        "{\"0123456789012345678901234567890123456789012345678901234567890123456789\":{}}", 0,
        "tensor '012345678901234567890123456789012345678901234567890123456789...' has no dtype");
}

static void test_together(void)
{
    REFUSED("{" U8("a", "[2]", "[0,2]") "," U8("b", "[2]", "[1,3]") "}", 3,
            "tensors 'a' and 'b' overlap");
    REFUSED("{" U8("a", "[2]", "[0,2]") "," U8("b", "[2]", "[0,2]") "}", 2,
            "tensors 'a' and 'b' overlap");
    REFUSED("{" U8("a", "[2]", "[0,2]") "," U8("b", "[1]", "[3,4]") "}", 4,
            "1 bytes before tensor 'b' belong to no tensor");
    REFUSED("{" U8("a", "[2]", "[1,3]") "}", 3, "1 bytes before tensor 'a' belong to no tensor");
    REFUSED("{" U8("a", "[2]", "[0,2]") "}", 3, "1 bytes at the end belong to no tensor");
    REFUSED("{}", 1, "1 bytes at the end belong to no tensor");
    REFUSED("{" U8("a", "[1]", "[0,1]") "," U8("b", "[1]", "[1,2]") "," U8("\\u0061", "[1]",
                                                                           "[2,3]") "}",
            3, "tensor 'a' occurs twice");
    REFUSED("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ occurs twice");
    REFUSED("{\"__metadata__\":{\"k\":\"1\",\"k\":\"1\"}}", 0, "__metadata__ 'k' occurs twice");
}

static dc_status unchanged_body(dc_job *j, void *arg)
{
    DC_UNUSED(arg);
    return dc_safetensors_unchanged(file, j);
}

/* It is written to after it was opened. */
static void test_changed(void)
{
    unsigned char b[16];
    put(good, 13);
    CHECK_EQ(open_file(), DC_OK);
    CHECK_EQ(dc_protect(&job, unchanged_body, NULL), DC_OK);
    CHECK_EQ(truncate(path, (off_t)strlen(good) + 8 + 12), 0);
    CHECK_EQ(read_part(0, 0, 3, b), DC_OK);
    CHECK_EQ(read_part(3, 0, 2, b), DC_E_FILE);
    CHECK(strstr(message, ": tensor 's' has been cut off since the file was opened") != NULL);
    CHECK_EQ(dc_protect(&job, unchanged_body, NULL), DC_E_FILE);
    dc_err_render(&job.err, 1, message, sizeof message);
    CHECK(strstr(message, ": was changed while it was read") != NULL);
}

/* ---- random files ---------------------------------------------------------------------------- */

/* Whatever was accepted lies in the file, without gaps, and can be read. */
static void check_accepted(size_t length)
{
    uint32_t n;
    const dc_st_tensor *t = dc_safetensors_tensors(file, &n);
    size_t bytes = 0;
    char *room = malloc(length + 1);
    must(room != NULL);
    for (uint32_t i = 0; i < n; i++) {
        const size_t size = dc_type_bytes(&t[i].type);
        bytes += size;
        if (CHECK(t[i].at >= 8 && t[i].at + (int64_t)size <= (int64_t)length))
            CHECK_EQ(read_part(i, 0, size, room), DC_OK);
        CHECK(i == 0 || strcmp(t[i - 1].name, t[i].name) < 0);
    }
    CHECK(bytes + 10 <= length);
    free(room);
}

static void test_cut_everywhere(void)
{
    char b[1024];
    const size_t n = make(b, good, 13);
    for (size_t cut = 0; cut < n; cut++) {
        put_file(b, cut);
        CHECK_EQ(open_file(), DC_E_FILE);
        CHECK_EQ(job.err.id, DC_ERR_FORMAT);
    }
    for (size_t cut = 0; cut < strlen(good); cut++) { /* and the header with it */
        char header[sizeof good];
        snprintf(header, sizeof header, "%.*s", (int)cut, good);
        put(header, 13);
        const dc_status status = open_file();
        CHECK(status == DC_OK ? cut >= strlen(good) - 3 : job.err.id == DC_ERR_FORMAT);
    }
}

/* Bits, bytes of the kind that headers are made of, stretches doubled, left out, exchanged. */
static size_t mutate(rng *r, char *b, size_t n, size_t room)
{
    static const char signs[] = "{}[]\",:0123456789\\ue-. \x80\xff";
    const size_t at = (size_t)rng_below(r, (int)n), left = n - at;
    const size_t len = (size_t)rng_below(r, 20) % (left + 1);
    switch (rng_below(r, 6)) {
    case 0:
        b[at] ^= (char)(1 << rng_below(r, 8));
        return n;
    case 1:
        b[at] = (char)rng_next(r);
        return n;
    case 2:
    case 3:
        b[at] = signs[rng_below(r, sizeof signs - 1)];
        return n;
    case 4: /* once more */
        if (n + len > room)
            return n;
        memmove(b + at + len, b + at, left);
        return n + len;
    default:
        memmove(b + at, b + at + len, left - len);
        return n - len > 0 ? n - len : 1;
    }
}

static void test_mutations(rng *r)
{
    char b[2048];
    int accepted = 0;
    for (int round = 0; round < 6000; round++) {
        size_t n = make(b, good, 13);
        for (int k = rng_below(r, 4); k >= 0; k--)
            n = mutate(r, b, n, sizeof b);
        if (rng_below(r, 2) == 0 && n > 21) { /* its length agrees again */
            const size_t header = n - 8 - 13;
            for (int i = 0; i < 8; i++)
                b[i] = (char)((uint64_t)header >> 8 * i);
        }
        put_file(b, n);
        if (open_file() == DC_OK) {
            accepted++;
            check_accepted(n);
        } else {
            CHECK(job.err.status == DC_E_FILE && message[0] != '\0');
        }
    }
    printf("mutations: %d of 6000 accepted\n", accepted);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct content {
    const dc_st_item *item;
    uint32_t ncommand;
    const dc_st_text *text;
    uint32_t ntext;
    const unsigned char *const *bytes;
    uint32_t fails; /* 1 + the item that cannot be fetched */
} content;

static dc_status fetch(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n,
                       const void **bytes)
{
    const content *c = ctx;
    CHECK(n <= DC_ST_PIECE);
    if (c->fails == item + 1)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "no such device any more");
    *bytes = c->bytes[item] + from;
    return DC_OK;
}

static dc_status write_body(dc_job *j, void *arg)
{
    content *c = arg;
    return dc_safetensors_write(j, path, c->item, c->ncommand, c->text, c->ntext, fetch, c);
}

static dc_status write_file(content *c)
{
    const dc_status status = dc_protect(&job, write_body, c);
    message[0] = '\0';
    if (status != DC_OK)
        dc_err_render(&job.err, 1, message, sizeof message);
    return status;
}

static int files_in_dir(void)
{
    DIR *d = opendir(dir);
    int n = 0;
    must(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

enum { ITEMS = DC_DTYPE__COUNT + 2 };

/* One of every dtype, an empty one, a scalar; random shapes and bytes. */
static void make_items(rng *r, dc_st_item *item, unsigned char **bytes, char (*name)[16])
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        int64_t dim[3] = {1 + rng_below(r, 5), 1 + rng_below(r, 5), 1 + rng_below(r, 5)};
        const dc_dtype t = (dc_dtype)(i % DC_DTYPE__COUNT);
        snprintf(name[i], sizeof name[i], "%s%u", i % 2 ? "z\xc3\xa9\"\n." : "a.", i);
        dim[1] *= i != DC_DTYPE__COUNT;
        item[i] =
            (dc_st_item){name[i], dc_type_make(t, i == DC_DTYPE__COUNT + 1 ? 0 : 3, dim), NULL};
        const size_t n = dc_type_bytes(&item[i].type);
        bytes[i] = malloc(n + 1);
        must(bytes[i] != NULL);
        for (size_t k = 0; k < n; k++)
            bytes[i][k] = (unsigned char)(rng_next(r) & (t == DC_BOOL ? 1 : 0xff));
    }
}

static void check_items(const content *c)
{
    uint32_t n;
    const dc_st_tensor *t = dc_safetensors_tensors(file, &n);
    CHECK_EQ(n, c->ncommand);
    for (uint32_t i = 0; i < c->ncommand; i++) {
        unsigned char room[1024];
        const dc_st_tensor *found = dc_safetensors_find(file, c->item[i].name);
        if (!CHECK(found != NULL))
            continue;
        const size_t size = dc_type_bytes(&found->type);
        CHECK(dc_type_same(&found->type, &c->item[i].type));
        CHECK_EQ(found->at % (int64_t)dc_dtype_size((dc_dtype)found->type.dtype), 0);
        CHECK_EQ(read_part((uint32_t)(found - t), 0, size, room), DC_OK);
        CHECK_EQ(memcmp(room, c->bytes[i], size), 0);
    }
    for (uint32_t i = 0; i < c->ntext; i++)
        CHECK_STR(dc_safetensors_text(file, c->text[i].key), c->text[i].value);
}

static void test_round_trip(rng *r)
{
    dc_st_item item[ITEMS], turned[ITEMS];
    unsigned char *bytes[ITEMS], *turned_bytes[ITEMS];
    char name[ITEMS][16], first[8192], second[8192];
    const dc_st_text text[] = {{"z", ""}, {"a", "\xf0\x9f\x98\x80 \"quoted\" \\ \x01\x7f"}};
    const dc_st_text turned_text[] = {text[1], text[0]};
    make_items(r, item, bytes, name);
    content c = {item, ITEMS, text, 2, (const unsigned char *const *)bytes, 0};
    CHECK_EQ(write_file(&c), DC_OK);
    CHECK_EQ(open_file(), DC_OK);
    check_items(&c);
    const size_t n = get_file(first, sizeof first);
    CHECK(n < sizeof first && ((unsigned char)first[0] + 8) % 64 == 0);
    for (int i = 0; i < ITEMS; i++) {
        turned[i] = item[ITEMS - 1 - i];
        turned_bytes[i] = bytes[ITEMS - 1 - i];
    }
    content d = {turned, ITEMS, turned_text, 2, (const unsigned char *const *)turned_bytes, 0};
    CHECK_EQ(write_file(&d), DC_OK);
    CHECK_EQ(get_file(second, sizeof second), n);
    CHECK_EQ(memcmp(first, second, n), 0);
    content none = {0};
    CHECK_EQ(write_file(&none), DC_OK);
    CHECK_EQ(open_file(), DC_OK);
    CHECK_EQ(get_file(second, sizeof second), 64);
    for (int i = 0; i < ITEMS; i++)
        free(bytes[i]);
}

/* Bytes under the name of another dtype. */
static void test_written_as(void)
{
    const dc_type t = dc_type_make(DC_U8, 2, (int64_t[]){2, 3});
    const dc_st_item item[] = {{"a", t, "F8_E4M3"}, {"b", t, NULL}};
    const unsigned char data[] = {1, 2, 3, 4, 5, 6};
    content c = {item, 2, NULL, 0, (const unsigned char *const[]){data, data}, 0};
    CHECK_EQ(write_file(&c), DC_OK);
    CHECK_EQ(open_file(), DC_OK);
    const dc_st_tensor *a = dc_safetensors_find(file, "a");
    CHECK(a->unread == NULL && a->type.dtype == DC_F8E4M3FN);
    CHECK(a->bytes == 6 && a->type.dim[0] == 2 && a->type.dim[1] == 3);
    CHECK(dc_safetensors_find(file, "b")->unread == NULL);
}

/* A tensor of more than one piece. */
static void test_large(void)
{
    const size_t n = DC_ST_PIECE * 2 + 100;
    unsigned char *bytes = malloc(n), *back = malloc(n);
    must(bytes != NULL && back != NULL);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    const dc_st_item item = {"large", dc_type_make(DC_U8, 1, (int64_t[]){(int64_t)n}), NULL};
    content c = {&item, 1, NULL, 0, (const unsigned char *const[]){bytes}, 0};
    CHECK_EQ(write_file(&c), DC_OK);
    CHECK_EQ(open_file(), DC_OK);
    CHECK_EQ(read_part(0, 0, n, back), DC_OK);
    CHECK_EQ(memcmp(bytes, back, n), 0);
    free(bytes);
    free(back);
}

static void test_refused_content(void)
{
    const dc_type t = dc_type_scalar(DC_U8);
    const dc_st_item twice[] = {{"a", t, NULL}, {"b", t, NULL}, {"a", t, NULL}},
                     kept[] = {{"__metadata__", t, NULL}};
    const dc_st_item wrong[] = {{"a\xff", t, NULL}};
    const dc_st_text keys[] = {{"k", "1"}, {"k", "2"}}, bad[] = {{"k", "\xc3"}};
    const unsigned char byte = 1, *const bytes[] = {&byte, &byte, &byte};
    content c = {twice, 3, NULL, 0, bytes, 0};
    unlink(path);
    CHECK_EQ(write_file(&c), DC_E_VALUE);
    CHECK_STR(message, "tensor 'a' occurs twice");
    c = (content){kept, 1, NULL, 0, bytes, 0};
    CHECK_EQ(write_file(&c), DC_E_VALUE);
    CHECK_STR(message, "tensor '__metadata__' has a name that the format keeps for itself");
    c = (content){wrong, 1, NULL, 0, bytes, 0};
    CHECK_EQ(write_file(&c), DC_E_VALUE);
    c = (content){twice, 2, keys, 2, bytes, 0};
    CHECK_EQ(write_file(&c), DC_E_VALUE);
    CHECK_STR(message, "metadata 'k' occurs twice");
    c = (content){twice, 2, bad, 1, bytes, 0};
    CHECK_EQ(write_file(&c), DC_E_VALUE);
    CHECK_STR(message, "a name or a text of metadata is not UTF-8");
    CHECK_EQ(files_in_dir(), 0);
}

/* ---- whole or not at all --------------------------------------------------------------------- */

static void check_untouched(int files)
{
    char b[16] = {0};
    CHECK_EQ(get_file(b, sizeof b), 3);
    CHECK_STR(b, "old");
    CHECK_EQ(files_in_dir(), files);
}

/* The disk is full after so many bytes. */
static void limit_files(size_t bytes)
{
    struct rlimit l;
    must(getrlimit(RLIMIT_FSIZE, &l) == 0);
    l.rlim_cur = bytes == 0 ? l.rlim_max : bytes;
    must(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static void test_whole_or_not(void)
{
    const dc_st_item item[] = {{"a", dc_type_make(DC_U8, 1, (int64_t[]){3000}), NULL},
                               {"b", dc_type_make(DC_U8, 1, (int64_t[]){3000}), NULL}};
    unsigned char data[3000] = {1};
    content c = {item, 2, NULL, 0, (const unsigned char *const[]){data, data}, 0};
    put_file("old", 3);
    must(chmod(path, 0640) == 0);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t room = 4; room < 6000; room += 700) {
        limit_files(room);
        CHECK_EQ(write_file(&c), DC_E_FILE);
        limit_files(0);
        CHECK(strstr(message, "cannot be written: File too large") != NULL);
        check_untouched(1);
    }
    c.fails = 2;
    CHECK_EQ(write_file(&c), DC_E_DEVICE);
    check_untouched(1);
    c.fails = 0;
    CHECK_EQ(write_file(&c), DC_OK);
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0640); /* as it was */
    CHECK_EQ(files_in_dir(), 1);
    CHECK_EQ(open_file(), DC_OK);
}

static void test_places(void)
{
    char far[128];
    content none = {0};
    snprintf(far, sizeof far, "%s/no/file", dir);
    char before[64];
    strcpy(before, path);
    must(strlen(far) < sizeof path);
    strcpy(path, far);
    CHECK_EQ(write_file(&none), DC_E_FILE);
    CHECK(strstr(message, "/no/file: cannot be written: No such file or directory") != NULL);
    snprintf(path, sizeof path, "%s", dir);
    CHECK_EQ(write_file(&none), DC_E_FILE);
    CHECK(strstr(message, ": is a directory") != NULL);
    strcpy(path, before);

    /* What a symbolic link leads to is replaced, the link stays. */
    char target[80];
    struct stat st;
    snprintf(target, sizeof target, "%s/target", dir);
    unlink(path);
    FILE *f = fopen(target, "w");
    must(f != NULL && fclose(f) == 0 && symlink("target", path) == 0);
    CHECK_EQ(write_file(&none), DC_OK);
    CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(target, &st) == 0 && st.st_size == 64);
    unlink(path);
    unlink(target);

    if (geteuid() == 0) {
        T_SKIP("permissions do not bind the superuser");
        return;
    }
    put_file("old", 3);
    must(chmod(dir, 0500) == 0);
    CHECK_EQ(write_file(&none), DC_E_FILE);
    CHECK(strstr(message, "cannot be written: Permission denied") != NULL);
    must(chmod(dir, 0700) == 0 && chmod(path, 0400) == 0);
    CHECK_EQ(write_file(&none), DC_E_FILE);
    CHECK(strstr(message, "cannot be replaced: Permission denied") != NULL);
    check_untouched(1);
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 20261121)};
    if (!CHECK(mkdtemp(dir) != NULL))
        return t_done();
    snprintf(path, sizeof path, "%s/file", dir);
    dc_opts opt = {0};
    dc_log log = {0};
    dc_job_init(&job, &opt, &log);

    test_good();
    test_lenient();
    test_files();
    test_lengths();
    test_json();
    test_entries();
    test_together();
    test_changed();
    test_cut_everywhere();
    test_mutations(&r);
    test_round_trip(&r);
    test_written_as();
    test_large();
    test_refused_content();
    test_whole_or_not();
    test_places();

    dc_safetensors_close(file);
    dc_job_fini(&job);
    unlink(path);
    CHECK_EQ(rmdir(dir), 0);
    return t_done();
}
