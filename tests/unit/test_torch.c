/* formats/torch.c, pickle.c, zip.c: files of torch.save, cut and changed. */
#define _POSIX_C_SOURCE 200809L
#include "formats/tensor_file.h"

#include <string.h>

#include "tests/unit/filekit.h"

static filekit kit;
static uint32_t ntensor, nvalue;
static char values[1 << 12];

static uint64_t walk(const dc_tree *t, int depth)
{
    uint64_t n = 1;
    CHECK(depth < 100);
    for (uint32_t i = 0; i < t->n && n < 100000; i++)
        n += walk(t->item[i], depth + 1);
    return n;
}

/* All there is in a file. */
static dc_status read_body(dc_job *j, void *arg)
{
    dc_tensor_file *f;
    DC_UNUSED(arg);
    DC_TRY(dc_tensor_file_open(j, kit.path, &f));
    dc_tensor_file_defer(j, f);
    dc_tensor_file_metadata(f, &nvalue);
    if (dc_tensor_file_tree(f) != NULL)
        walk(dc_tensor_file_tree(f), 0);
    const dc_file_tensor *t = dc_tensor_file_list(f, &ntensor);
    for (uint32_t i = 0; i < ntensor; i++) {
        const size_t count = (size_t)dc_type_count(&t[i].type);
        DC_TRY(dc_tensor_file_readable(f, j, &t[i]));
        if (dc_type_bytes(&t[i].type) <= sizeof values)
            DC_TRY(dc_tensor_file_read(
                f, j, &(dc_file_read){&t[i], 0, count, (dc_dtype)t[i].type.dtype, values}, 1));
    }
    return dc_tensor_file_unchanged(f, j);
}

static void test_file(const char *path, int rounds, uint32_t seed)
{
    static unsigned char bytes[1 << 14];
    FILE *f = fopen(path, "rb");
    if (!CHECK(f != NULL))
        return;
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    filekit_write(&kit, bytes, n);
    if (!CHECK_EQ(filekit_read(&kit), DC_OK))
        printf("%s\n", kit.message);
    CHECK_EQ(ntensor, 23);
    CHECK_EQ(nvalue, 16);
    filekit_damage(&kit, bytes, n, true, rounds, seed);
}

/* ---- storages that are ambiguous -------------------------------------------------------------- */

static size_t put(unsigned char *to, size_t n, const char *bytes, size_t more)
{
    memcpy(to + n, bytes, more);
    return n + more;
}

#define PUT(text) n = put(b, n, text, sizeof(text) - 1)

/* A tensor of two elements of storage "0", under a name of one letter. */
static size_t put_tensor(unsigned char *b, size_t n, char name, const char *type)
{
    PUT("X\1\0\0\0");
    n = put(b, n, &name, 1);
    PUT("ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n");
    n = put(b, n, type, strlen(type));
    PUT("\nX\1\0\0\0000X\3\0\0\0cpuK\2NtQK\0K\2\x85K\1\x85\x89}tR");
    return n;
}

/* An older file: two tensors of these types, the keys, storages of so many elements of eight bytes. */
static size_t make_legacy(unsigned char *b, const char *one, const char *two, int keys)
{
    size_t n = 0;
    PUT("\x80\2\x8a\12l\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}.\x80\2}(");
    n = put_tensor(b, n, 'a', one);
    n = put_tensor(b, n, 'b', two);
    PUT("u.\x80\2](");
    for (int i = 0; i < keys; i++)
        PUT("X\1\0\0\0000");
    PUT("e.");
    for (int i = 0; i < keys; i++)
        PUT("\2\0\0\0\0\0\0\0"
            "abcdefgh"
            "ABCDEFGH");
    return n;
}

static void test_ambiguous(void)
{
    unsigned char b[1000];
    filekit_write(&kit, b, make_legacy(b, "DoubleStorage", "DoubleStorage", 1));
    if (!CHECK_EQ(filekit_read(&kit), DC_OK))
        printf("%s\n", kit.message);
    CHECK_EQ(ntensor, 2);
    filekit_refused(&kit, b, make_legacy(b, "DoubleStorage", "DoubleStorage", 2),
                    "has two storages '0'");
    filekit_refused(&kit, b, make_legacy(b, "DoubleStorage", "FloatStorage", 1),
                    "has a storage '0' whose elements have 4 bytes, and 8");
}

int main(void)
{
    filekit_init(&kit, read_body, NULL);
    test_ambiguous();
    test_file("tests/lua/tensors/torch.pt", 3000, 21u);
    test_file("tests/lua/tensors/torch_legacy.pt", 6000, 22u);
    filekit_fini(&kit);
    return t_done();
}
