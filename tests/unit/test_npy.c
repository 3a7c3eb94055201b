/* formats/npy.c, npz.c: what is read and written, every way of being wrong, truncations and mutations. */
#define _POSIX_C_SOURCE 200809L
#include "core/base/bits.h"
#include "formats/npy.h"

#include "tests/unit/filekit.h"

typedef struct reading {
    filekit *k;
    bool archive;
    uint32_t i; /* of an archive */
    dc_type type;
    char data[4096];
} reading;

static filekit kit;
static reading r = {.k = &kit};

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    reading *a = ctx;
    a->type = *type;
    *at = a->data;
    return dc_type_bytes(type) <= sizeof a->data ? DC_OK : dc_fail_memory(j, dc_type_bytes(type));
}

static void close_npz(void *z)
{
    dc_npz_close(z);
}

static dc_status read_body(dc_job *j, void *arg)
{
    reading *a = arg;
    const dc_room room = {make_room, a};
    dc_npz *z;
    if (!a->archive)
        return dc_npy_read(j, a->k->path, &room, &(int64_t){0});
    DC_TRY(dc_npz_open(j, a->k->path, &z));
    dc_job_defer(j, close_npz, z);
    for (uint32_t i = 0; i < dc_npz_count(z); i++)
        if (i <= a->i)
            DC_TRY(dc_npz_read(z, j, i, &room));
    return dc_npz_count(z) > 0 ? DC_OK : dc_failf(j, DC_ERR_ARG, NULL, "empty");
}

typedef struct writing {
    dc_npy_item item[3];
    uint32_t n;
    bool archive, compress;
} writing;

static dc_status write_body(dc_job *j, void *arg)
{
    const writing *a = arg;
    return a->archive ? dc_npz_write(j, kit.path, a->item, a->n, a->compress)
                      : dc_npy_write(j, kit.path, a->item);
}

static void test_every_dtype(void)
{
    static const char bytes[96] = {1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0};
    const int64_t dim[] = {2, 3, 2};
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int rank = 0; rank <= 3; rank++) {
            writing w = {.item = {{.type = dc_type_make((dc_dtype)t, rank, dim), .data = bytes}}};
            const bool has = dc_dtype_size((dc_dtype)t) > 1 || !dc_dtype_is_float((dc_dtype)t);
            CHECK_EQ(filekit_run(&kit, write_body, &w), has ? DC_OK : DC_E_FILE);
            if (!has)
                continue;
            CHECK_EQ(filekit_read(&kit), DC_OK);
            CHECK(dc_type_same(&r.type, &w.item[0].type));
            CHECK_EQ(memcmp(r.data, bytes, dc_type_bytes(&r.type)), 0);
        }
}

/* A file of version 1.0 with this header; returns its size. */
static size_t make_file(unsigned char *out, const char *header, const void *data, size_t n)
{
    const size_t length = strlen(header);
    memcpy(out, "\x93NUMPY\x01\0", 8);
    out[8] = (unsigned char)length;
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + 10, header, length);
    memcpy(out + 10 + length, data, n);
    return 10 + length + n;
}

static void test_orders(void)
{
    unsigned char file[300];
    const unsigned char swapped[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    const int16_t rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 3, 5, 2, 4, 6};
    size_t n = make_file(file, "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }\n",
                         swapped, 12);
    filekit_write(&kit, file, n);
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(memcmp(r.data, rows, sizeof rows), 0);
    n = make_file(file, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\">i2\"}", swapped, 12);
    filekit_write(&kit, file, n);
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(memcmp(r.data, columns, sizeof columns), 0);
    CHECK_EQ(r.type.dim[0], 2);
    /* of complex numbers each part is turned by itself, and both move together */
    const unsigned char parts[] = {0x3f, 0x80, 0, 0, 0x40, 0,    0, 0,
                                   0x40, 0x40, 0, 0, 0x40, 0x80, 0, 0};
    const float numbers[] = {1, 2, 3, 4};
    n = make_file(file, "{'descr': '>c8', 'fortran_order': True, 'shape': (1, 2)}", parts, 16);
    filekit_write(&kit, file, n);
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(memcmp(r.data, numbers, sizeof numbers), 0);
    CHECK_EQ(r.type.dtype, DC_C64);
    /* as Python 2 wrote it; another array follows */
    n = make_file(file, "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 1L), }\n", rows,
                  12);
    filekit_write(&kit, file, n);
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(r.type.dim[0], 2);
    CHECK_EQ(memcmp(r.data, rows, 4), 0);
}

static void refused(const char *header, size_t bytes, const char *reason)
{
    unsigned char file[600];
    static const char data[64] = {2};
    const size_t n = make_file(file, header, data, bytes);
    filekit_refused(&kit, file, n, reason);
}

static void test_wrong(void)
{
    filekit_refused(&kit, "", 0, "not an npy file");
    filekit_refused(&kit, "hello, world", 12, "not an npy file");
    filekit_refused(&kit, "\x93NUMPY\x04\0\x01\0", 10,
                    "version 4.0 of the format, 1.0 to 3.0 are read");
    filekit_refused(&kit, "\x93NUMPY\x01\0\xff\xff", 10,
                    "a header of 65535 bytes, 16374 are the most");
    filekit_refused(&kit, "\x93NUMPY\x01\0\x09\0{}", 12,
                    "truncated: the header has 9 bytes, 2 are there");
    refused("", 0, "the header is no dictionary");
    refused("{}", 0, "the header has no 'descr'");
    refused("{'descr': '<f4', 'descr': '<f4'}", 0, "the header has the key 'descr' twice");
    refused("{'descr': '<f4', 'x': 1}", 0, "the header has the key 'x' besides");
    refused("{'descr': '|O', 'fortran_order': False, 'shape': ()}", 0,
            "elements are objects of Python, which are not read");
    refused("{'descr': [('a', '<f4'), ('b', [('c', '|S1', (2,))])], 'fortran_order': False, "
            "'shape': ()}",
            0, "elements are records, which are not read");
    refused("{'descr': ('<f4', (2, 3)), 'fortran_order': False, 'shape': ()}", 0,
            "elements are records, which are not read");
    refused("{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': ()}", 0,
            "the header is damaged");
    refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 0,
            "elements are records, which are not read");
    refused("{'descr': '<c4', 'fortran_order': False, 'shape': ()}", 0,
            "elements are '<c4', which is not read");
    refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1)}", 8,
            "it is complex, and has more than 7 axes");
    refused("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", 0,
            "'fortran_order' is neither True nor False");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 0,
            "the size of axis 1 has no digits");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0,
            "the size of axis 1 is too large");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4,
            "it has more than 8 axes");
    refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,4)}", 0,
            "the array is too large to address");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387906,)}", 8,
            "the array is too large to address");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,)}", 8,
            "truncated: got 8 of 4000000 bytes of data");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8,
            "something follows the header's dictionary");
}

static writing three(bool compress)
{
    static float data[256];
    for (int i = 0; i < 256; i++)
        data[i] = (float)(i % 7);
    return (writing){.item = {{"a", dc_type_make(DC_F32, 1, (int64_t[]){200}), data},
                              {"none", dc_type_make(DC_U8, 2, (int64_t[]){0, 3}), data},
                              {"c", dc_type_make(DC_I64, 0, NULL), data}},
                     .n = 3,
                     .archive = true,
                     .compress = compress};
}

static void test_archives(void)
{
    unsigned char stored[4096], packed[4096];
    r.archive = true;
    r.i = 9;
    writing w = three(false);
    CHECK_EQ(filekit_run(&kit, write_body, &w), DC_OK);
    const size_t n = filekit_slurp(&kit, stored, sizeof stored);
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(r.type.rank, 0);
    r.i = 0;
    CHECK_EQ(filekit_read(&kit), DC_OK);
    CHECK_EQ(memcmp(r.data, w.item[0].data, 800), 0);
    w = three(true);
    CHECK_EQ(filekit_run(&kit, write_body, &w), DC_OK);
    const size_t m = filekit_slurp(&kit, packed, sizeof packed);
    CHECK(m > 100 && m < n);
    r.i = 9;
    filekit_damage(&kit, packed, m, true, 1500, 7u);
    filekit_damage(&kit, stored, n, true, 1500, 8u);
    stored[400] ^= 1; /* an element */
    filekit_refused(&kit, stored, n, "'a.npy': the data differ from the archive's checksum");
    filekit_refused(&kit, stored, 100, "not an npz file: no directory of an archive at its end");
    r.archive = false;
}

static void test_damage(void)
{
    unsigned char file[1000];
    static const char bytes[96] = {1};
    writing w = {.item = {{.type = dc_type_make(DC_F32, 2, (int64_t[]){4, 3}), .data = bytes}}};
    CHECK_EQ(filekit_run(&kit, write_body, &w), DC_OK);
    const size_t n = filekit_slurp(&kit, file, sizeof file);
    CHECK_EQ(n % 64, 48);
    filekit_damage(&kit, file, n, true, 2000, 9u);
}

int main(void)
{
    filekit_init(&kit, read_body, &r);
    test_every_dtype();
    test_orders();
    test_wrong();
    test_archives();
    test_damage();
    filekit_fini(&kit);
    return t_done();
}
