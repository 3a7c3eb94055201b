/* formats/gguf.c, tensor_file.c: what is read, truncations and mutations, every block of packed floats. */
#define _POSIX_C_SOURCE 200809L
#include "formats/blocks.h"
#include "formats/convert.h"
#include "formats/floats.h"
#include "formats/tensor_file.h"

#include <float.h>
#include <math.h>

#include "tests/unit/filekit.h"

static filekit kit;
static float values[1024];
static uint32_t ntensor, nvalue;

static void walk(dc_meta v)
{
    nvalue++;
    while (v.kind == DC_META_LIST && v.n > 0)
        walk(dc_meta_next(&v));
}

/* All there is in a file. */
static dc_status read_body(dc_job *j, void *arg)
{
    dc_tensor_file *f;
    DC_UNUSED(arg);
    DC_TRY(dc_tensor_file_open(j, kit.path, &f));
    dc_tensor_file_defer(j, f);
    const dc_meta_entry *e = dc_tensor_file_metadata(f, &nvalue);
    const uint32_t n = nvalue;
    nvalue = 0;
    for (uint32_t i = 0; i < n; i++)
        walk(e[i].value);
    const dc_file_tensor *t = dc_tensor_file_list(f, &ntensor);
    for (uint32_t i = 0; i < ntensor; i++) {
        const size_t count = (size_t)dc_type_count(&t[i].type);
        DC_TRY(dc_tensor_file_readable(f, j, &t[i]));
        if (count <= DC_COUNTOF(values) && dc_dtype_is_float((dc_dtype)t[i].type.dtype))
            DC_TRY(dc_tensor_file_read(f, j, &(dc_file_read){&t[i], 0, count, DC_F32, values}, 1));
    }
    return dc_tensor_file_unchanged(f, j);
}

/* ---- a file by hand --------------------------------------------------------------------------- */

static unsigned char bytes[4096];
static size_t length;

static void put(uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        bytes[length++] = (unsigned char)(v >> 8 * i);
}

static void put_text(const char *s)
{
    put(strlen(s), 8);
    memcpy(bytes + length, s, strlen(s));
    length += strlen(s);
}

static void put_tensor(const char *name, uint32_t type, int64_t columns, int64_t rows, uint64_t at)
{
    put_text(name);
    put(2, 4);
    put((uint64_t)columns, 8);
    put((uint64_t)rows, 8);
    put(type, 4);
    put(at, 8);
}

/* Metadata of most kinds; a tensor as it is and two packed ones. */
static void make(void)
{
    length = 0;
    memcpy(bytes, "GGUF", 4);
    length = 4;
    put(3, 4);
    put(3, 8);
    put(5, 8);
    put_text("a");
    put(DC_META_U32, 4);
    put(7, 4);
    put_text("b");
    put(DC_META_BOOL, 4);
    put(1, 1);
    put_text("c");
    put(DC_META_LIST, 4);
    put(DC_META_TEXT, 4);
    put(2, 8);
    put_text("x");
    put_text("yz");
    put_text("d");
    put(DC_META_LIST, 4);
    put(DC_META_LIST, 4);
    put(2, 8);
    put(DC_META_I16, 4);
    put(2, 8);
    put(0x0000ffff, 4);
    put(DC_META_BOOL, 4);
    put(1, 8);
    put(1, 1);
    put_text("general.alignment");
    put(DC_META_U32, 4);
    put(8, 4);
    put_tensor("w", 0, 2, 2, 0);
    put_tensor("q", 8, 32, 2, 16);
    put_tensor("k", 14, 256, 1, 88);
    length = dc_align_up(length, 8);
    for (size_t i = 0; i < 88 + 210; i++)
        bytes[length++] = (unsigned char)(i * 37);
}

static void test_good(void)
{
    make();
    filekit_write(&kit, bytes, length);
    if (!CHECK_EQ(filekit_read(&kit), DC_OK))
        printf("%s\n", kit.message);
    CHECK_EQ(ntensor, 3);
    CHECK_EQ(nvalue, 1 + 1 + 3 + 6 + 1);
}

static void test_damage(void)
{
    make();
    filekit_damage(&kit, bytes, length, true, 6000, 11u);
}

/* ---- floats ----------------------------------------------------------------------------------- */

static void test_floats(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = dc_float_of_half(h), b = dc_float_of_bfloat(h);
        if (isnan(f) ? (dc_half_of_float(f) & 0x7c00) != 0x7c00 : dc_half_of_float(f) != h)
            CHECK_EQ(dc_half_of_float(f), h);
        if (isnan(b) ? !isnan(dc_float_of_bfloat(dc_bfloat_of_float(b)))
                     : dc_bfloat_of_float(b) != h)
            CHECK_EQ(dc_bfloat_of_float(b), h);
    }
    CHECK_EQ(dc_half_of_float(65519.996f), 0x7bff);
    CHECK_EQ(dc_half_of_float(65520), 0x7c00);
    CHECK_EQ(dc_half_of_float(2.9802322e-8f), 0); /* half of the least: ties to even */
    CHECK_EQ(dc_half_of_float(2.9802326e-8f), 1);
    CHECK_EQ(dc_half_of_float(-8.940697e-8f), 0x8002); /* 1.5 of the least */
    CHECK_EQ(dc_half_of_float(6.1020e-5f), 0x0400);    /* a denormal that becomes normal */
}

/* Many at once have the bits of one: all halves and bfloats, and floats of every exponent, ties among them. */
static void test_many_conversions(void)
{
    enum { N = 65536 };
    static uint16_t h[N], back[N];
    static float f[N];
    uint32_t state = 99, wrong = 0;
    for (uint32_t i = 0; i < N; i++)
        h[i] = (uint16_t)i;
    dc_convert(DC_F16, h, DC_F32, f, N);
    for (uint32_t i = 0; i < N; i++)
        wrong += dc_f32_bits(f[i]) != dc_f32_bits(dc_float_of_half(i));
    dc_convert(DC_BF16, h, DC_F32, f, N);
    for (uint32_t i = 0; i < N; i++)
        wrong += dc_f32_bits(f[i]) != dc_f32_bits(dc_float_of_bfloat(i));
    CHECK_EQ(wrong, 0);
    for (int round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < N; i++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t low = round % 4 == 0   ? state >> 9
                                 : round % 4 == 1 ? (state >> 22) << 13 | 0x1000
                                 : round % 4 == 2 ? (state >> 22) << 13 | (0x0fff + (state >> 30))
                                                  : 0x7fffff & ((1u << (state >> 27)) - 1);
            const uint32_t u = (i & 0x1ff) << 23 | (low & 0x7fffff);
            f[i] = dc_bits_f32(u);
        }
        dc_convert(DC_F32, f, DC_F16, back, N);
        for (uint32_t i = 0; i < N; i++)
            wrong += back[i] != dc_half_of_float(f[i]);
        dc_convert(DC_F32, f, DC_BF16, back, N - 3);
        for (uint32_t i = 0; i < N - 3; i++)
            wrong += back[i] != dc_bfloat_of_float(f[i]);
        CHECK_EQ(wrong, 0);
    }
}

static void test_conversions(void)
{
    const uint16_t half[3] = {0x3c00, 0x0001, 0xfbff};
    double d[3];
    uint16_t b[3];
    dc_convert(DC_F16, half, DC_F64, d, 3);
    CHECK(d[0] == 1 && d[1] == 0x1p-24 && d[2] == -65504);
    dc_convert(DC_F64, d, DC_BF16, b, 3);
    CHECK(b[0] == 0x3f80 && b[1] == 0x3380 && b[2] == 0xc780);
    CHECK(dc_convert_exact(DC_F16, DC_F32) && dc_convert_exact(DC_F32, DC_F64));
    CHECK(!dc_convert_exact(DC_F16, DC_BF16) && !dc_convert_exact(DC_F64, DC_F32));
}

/* What is packed and unpacked again is near; what cannot be packed says so. */
static void test_packing(void)
{
    const char *const name[] = {"q8_0", "q4_0"};
    float x[64], y[64];
    unsigned char packed[128];
    for (size_t i = 0; i < DC_COUNTOF(name); i++) {
        const dc_packing *p = dc_packing_find(name[i]);
        for (int k = 0; k < 64; k++)
            x[k] = (float)(k * 37 % 61 - 30) / 8;
        CHECK(p->pack(x, packed, 2));
        p->unpack(packed, y, 2);
        for (int k = 0; k < 64; k++)
            CHECK(fabsf(x[k] - y[k]) <= (i == 0 ? 0.02f : 0.6f));
        x[40] = NAN;
        CHECK(!p->pack(x, packed, 2));
        x[40] = INFINITY;
        CHECK(!p->pack(x, packed, 2));
        x[40] = 1e8f;
        CHECK(!p->pack(x, packed, 2));
        x[40] = 0;
        memset(x, 0, sizeof x);
        x[3] = 1e-42f;
        CHECK(p->pack(x, packed, 2));
    }
    CHECK(dc_packing_find("q9") == NULL);
}

/* What element (r, c) of a laid out matrix means. */
static float laid(const dc_blocks *b, const uint32_t *words, const void *scales, const void *mins,
                  int columns, int r, int c)
{
    const int strip = r / 16, lane = r % 16, parts = columns / b->block, part = c / b->block;
    int in = c % b->block, shift = 0;
    if (b->bits == 4 && in >= b->block / 2) {
        in -= b->block / 2;
        shift = 4;
    }
    const size_t scale_at = (size_t)((strip * parts + part) * 16 + lane);
    const size_t word_at =
        (size_t)(((strip * parts + part) * dc_blocks_words(b) + in / 4) * 16 + lane);
    const int q = (int)(words[word_at] >> (in % 4 * 8 + shift) & (b->bits == 4 ? 15 : 255));
    const bool half = b->scale == DC_F16;
    const float d = half ? dc_float_of_half(((const uint16_t *)scales)[scale_at])
                         : ((const float *)scales)[scale_at];
    if (!b->mins)
        return d * (float)(q - b->zero);
    const float m = half ? dc_float_of_half(((const uint16_t *)mins)[scale_at])
                         : ((const float *)mins)[scale_at];
    return d * (float)q + m;
}

/* Rows of any bytes, laid out, mean what they mean unpacked, to the bit; rows that are not there are zeros. */
static void test_blocks(void)
{
    static const char *const name[] = {"q4_0", "q4_1", "q5_0", "q5_1",
                                       "q8_0", "q4_k", "q5_k", "q6_k"};
    enum { ROWS = 21, COLUMNS = 512 };
    static unsigned char rows[ROWS * COLUMNS * 2];
    static uint32_t words[2 * 16 * COLUMNS / 4];
    static float scales[2 * 16 * COLUMNS / 16], mins[2 * 16 * COLUMNS / 16], want[ROWS * COLUMNS];
    uint32_t state = 12345;
    for (size_t i = 0; i < DC_COUNTOF(name); i++) {
        const dc_packing *p = dc_packing_find(name[i]);
        const dc_blocks *b = dc_blocks_find(name[i]);
        const size_t blocks = (size_t)ROWS * COLUMNS / p->elements;
        for (size_t k = 0; k < blocks * p->bytes; k++) {
            state = state * 1664525u + 1013904223u;
            rows[k] = (unsigned char)(state >> 24);
        }
        for (size_t k = 0; k < blocks; k++) /* scales are finite */
            for (size_t at = strcmp(name[i], "q6_k") == 0 ? 208 : 0, n = 0;
                 n < 2 && at + 2 * n + 1 < p->bytes; n++)
                rows[k * p->bytes + at + 2 * n + 1] &= 0xbf;
        memset(words, 0xff, sizeof words);
        memset(scales, 0xff, sizeof scales);
        memset(mins, 0xff, sizeof mins);
        p->unpack(rows, want, blocks);
        dc_blocks_lay(b, rows, ROWS, COLUMNS, words, scales, mins);
        for (int r = 0; r < 32; r++)
            for (int c = 0; c < COLUMNS; c++) {
                const float v = laid(b, words, scales, mins, COLUMNS, r, c);
                if (r < ROWS ? v != want[r * COLUMNS + c] : v != 0) {
                    printf("%s: %g, not %g, at %d, %d\n", name[i], (double)v,
                           r < ROWS ? (double)want[r * COLUMNS + c] : 0.0, r, c);
                    CHECK(false);
                    c = COLUMNS;
                }
            }
        const size_t groups = (size_t)COLUMNS / (size_t)b->block * (size_t)dc_blocks_words(b);
        for (size_t k = 0; k < 2 * groups * 16; k++) /* the second 16 rows have 5 */
            if (k >= groups * 16 && k % 16 >= ROWS - 16)
                CHECK(words[k] == 0);
    }
    CHECK(dc_blocks_find("f8_e4m3") == NULL);
}

/* Numbers of 8 bits are their own nearest ones; between two neighbours the middle goes to the even one. */
static void check_f8(dc_dtype t, uint8_t (*of)(float), uint32_t most, float largest)
{
    unsigned char code[256];
    float v[256];
    for (int i = 0; i < 256; i++)
        code[i] = (unsigned char)i;
    dc_convert(t, code, DC_F32, v, 256);
    CHECK(v[most] == largest && v[most | 0x80] == -largest);
    for (uint32_t i = 0; i <= most; i++) {
        CHECK_EQ(of(v[i]), i);
        CHECK_EQ(of(-v[i]), i | 0x80);
        if (i == most)
            break;
        const float middle = (v[i] + v[i + 1]) / 2;
        CHECK_EQ(of(middle), i + (i & 1));
        CHECK_EQ(of(-middle), (i + (i & 1)) | 0x80);
        CHECK_EQ(of(nextafterf(middle, 0)), i);
        CHECK_EQ(of(nextafterf(middle, INFINITY)), i + 1);
    }
    CHECK_EQ(of(largest * 1.5f), most);
    CHECK_EQ(of(-FLT_MAX), most | 0x80);
    CHECK_EQ(of(FLT_TRUE_MIN), 0);
}

static void test_f8(void)
{
    check_f8(DC_F8E4M3FN, dc_f8_e4m3_of_float, 0x7e, 448);
    check_f8(DC_F8E5M2, dc_f8_e5m2_of_float, 0x7b, 57344);
    CHECK_EQ(dc_f8_e4m3_of_float(1), 0x38);
    CHECK_EQ(dc_f8_e4m3_of_float(-0.3f), 0xaa);       /* -0.3125 */
    CHECK_EQ(dc_f8_e4m3_of_float(0x1.8p-9f), 0x02);   /* 1.5 of the least one */
    CHECK_EQ(dc_f8_e5m2_of_float(0.3f), 0x35);        /* 0.3125 */
    CHECK_EQ(dc_f8_e5m2_of_float(-0x1.4p-15f), 0x82); /* 2.5 of the least one */
}

int main(void)
{
    filekit_init(&kit, read_body, NULL);
    test_good();
    test_damage();
    test_floats();
    test_conversions();
    test_many_conversions();
    test_packing();
    test_blocks();
    test_f8();
    filekit_fini(&kit);
    return t_done();
}
