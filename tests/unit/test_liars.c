/*
 * Libraries that lie about numbers: each that deepc opens at run time for files and texts is stood in for by functions
 * here, and zlib's by some that are called first; LAPACK's come in a table. What they say is refused or NaN, and nothing is
 * written or read out of bounds, which the sanitizers see.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "core/host/host_impl.h"
#include "core/host/lapack.h"
#include "formats/gunzip.h"
#include "formats/image.h"
#include "formats/npy.h"
#include "extras/llm/tokenizer/tokenizer.h"
#include "formats/trace_events.h"
#include "formats/zip.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "tests/unit/filekit.h"

/* The lie that is told; each function knows its own. */
static int64_t lie;
static filekit kit;

/* Of these libraries the functions below are found. */
DC_API void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    static const char *const stood_for[] = {"libpcre2-8.so.0", "libturbojpeg.so.0", "libbz2.so.1.0",
                                            "liblzma.so.5"};
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof found);
    for (size_t i = 0; name != NULL && i < DC_COUNTOF(stood_for); i++)
        if (strcmp(name, stood_for[i]) == 0)
            name = NULL;
    return real(name, flags);
}

#define IT(type, name, ...)        \
    DC_API type name(__VA_ARGS__); \
    DC_API type name(__VA_ARGS__)

static bool says(dc_status status, const char *words)
{
    return CHECK(status != DC_OK) && CHECK(strstr(kit.message, words) != NULL);
}

/* ---- PCRE2: places ------------------------------------------------------------------------------- */

static size_t place[2];
static int code = 1;

IT(void *, pcre2_compile_8, const void *p, size_t n, uint32_t o, int *e, size_t *at, void *c)
{
    DC_UNUSED(p), DC_UNUSED(n), DC_UNUSED(o), DC_UNUSED(e), DC_UNUSED(at);
    return c == NULL ? place : NULL;
}
IT(int, pcre2_jit_compile_8, void *p, uint32_t o)
{
    DC_UNUSED(p);
    return o == 0;
}
IT(void *, pcre2_match_data_create_from_pattern_8, void *p, void *c)
{
    return c == NULL ? p : NULL;
}
IT(void *, pcre2_match_context_create_8, void *c)
{
    return c == NULL ? place : NULL;
}
IT(void *, pcre2_jit_stack_create_8, size_t least, size_t most, void *c)
{
    return c == NULL && least < most ? place : NULL;
}
IT(int, pcre2_match_8, void *p, const void *s, size_t n, size_t at, uint32_t o, void *d, void *c)
{
    DC_UNUSED(p), DC_UNUSED(s), DC_UNUSED(n), DC_UNUSED(at), DC_UNUSED(o), DC_UNUSED(d);
    return c != NULL ? code : 0;
}
IT(size_t *, pcre2_get_ovector_pointer_8, void *d)
{
    return d != NULL ? place : NULL;
}
IT(int, pcre2_set_match_limit_8, void *p, uint32_t n)
{
    return p == NULL || n == 0;
}
IT(int, pcre2_set_heap_limit_8, void *p, uint32_t n)
{
    return p == NULL || n == 0;
}
IT(int, pcre2_set_callout_8, void *p, void *f, void *a)
{
    return p == NULL || f == a;
}
IT(int, pcre2_get_error_message_8, int e, void *s, size_t n)
{
    return s != NULL && n > 0 ? e : 0;
}
IT(void, pcre2_jit_stack_assign_8, void *p, void *f, void *a)
{
    DC_UNUSED(p), DC_UNUSED(f), DC_UNUSED(a);
}
IT(void, pcre2_code_free_8, void *p)
{
    DC_UNUSED(p);
}
IT(void, pcre2_match_data_free_8, void *p)
{
    DC_UNUSED(p);
}
IT(void, pcre2_match_context_free_8, void *p)
{
    DC_UNUSED(p);
}
IT(void, pcre2_jit_stack_free_8, void *p)
{
    DC_UNUSED(p);
}

static void free_it(void *t)
{
    dc_tokenizer_free(t);
}

static dc_status tokenize(dc_job *j, void *arg)
{
    char json[] =
        "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"b.\"}, \"content\": "
        "\"-\"},"
        "\"decoder\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"c.\"}, \"content\": "
        "\"-\"},"
        "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a.\"}, \"behavior\": "
        "\"Isolated\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": "
        "{\"?\": 0, \"abc\": 1}}}";
    dc_tokenizer *t;
    dc_encoded e;
    dc_span s;
    const uint32_t id = 1;
    const dc_encode in = {.text = {"abcdefgh", 8}, .offsets = true, .most = -1};
    DC_TRY(dc_tokenizer_new(j, "x", json, sizeof json - 1, NULL, &t));
    dc_job_defer(j, free_it, t);
    return arg != NULL ? dc_tokenizer_decode(t, j, &id, 1, false, &s)
                       : dc_tokenizer_encode(t, j, &in, &e);
}

static void test_pcre2(void)
{
    static const size_t lies[][2] = {{3, 2},  {0, 9},        {SIZE_MAX, SIZE_MAX},
                                     {9, 10}, {0, SIZE_MAX}, {8, 3}};
    for (size_t i = 0; i < DC_COUNTOF(lies) * 2; i++) {
        memcpy(place, lies[i / 2], sizeof place);
        says(filekit_run(&kit, tokenize, i % 2 == 0 ? NULL : &kit), "has a match from byte ");
    }
    place[0] = 0, place[1] = 3; /* again and again the same: the second time it begins before */
    says(filekit_run(&kit, tokenize, NULL),
         "has a match from byte 0 to 3 of a text in which it is to be looked for from 3 to 8");
    code = -2; /* it came to the end, where it was given all */
    says(filekit_run(&kit, tokenize, NULL), "cannot be matched");
}

/* ---- libjpeg-turbo: bytes ------------------------------------------------------------------------ */

static unsigned char few[16];

IT(void *, tjInitCompress, void)
{
    return place;
}
IT(void *, tjInitDecompress, void)
{
    return place;
}
IT(int, tjDestroy, void *h)
{
    return h == NULL;
}
IT(void, tjFree, void *p)
{
    DC_UNUSED(p);
}
IT(char *, tjGetErrorStr, void)
{
    static char text[] = "none";
    return text;
}
IT(int, tjDecompressHeader3, void *h, const void *s, unsigned long n, int *w, int *v, int *sub,
   int *col)
{
    DC_UNUSED(h), DC_UNUSED(s), DC_UNUSED(n);
    *w = *v = *sub = *col = (int)lie;
    return 0;
}
IT(int, tjDecompress2, void *h, const void *s, unsigned long n, void *to, int w, int p, int v,
   int f, int o)
{
    DC_UNUSED(h), DC_UNUSED(s), DC_UNUSED(n), DC_UNUSED(to), DC_UNUSED(w), DC_UNUSED(p),
        DC_UNUSED(v), DC_UNUSED(f);
    return o;
}
IT(int, tjCompress2, void *h, const void *s, int w, int p, int v, int f, unsigned char **to,
   unsigned long *n, int sub, int q, int o)
{
    DC_UNUSED(h), DC_UNUSED(s), DC_UNUSED(w), DC_UNUSED(p), DC_UNUSED(v), DC_UNUSED(f),
        DC_UNUSED(sub), DC_UNUSED(q);
    *to = lie == 0 ? NULL : few;
    *n = (unsigned long)lie;
    return o;
}

static unsigned char pixels[3 * 64];
static const unsigned char jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 0, 0};

static dc_status put_jpeg(dc_job *j, void *arg)
{
    const dc_image m = {.height = 8, .width = 8, .channels = 3, .depth = 8, .pixel = pixels};
    DC_UNUSED(arg);
    return dc_jpeg_put(j, kit.path, &m, 90);
}

static dc_status get_jpeg(dc_job *j, void *arg)
{
    dc_image m;
    DC_UNUSED(arg);
    return dc_jpeg_decode(j, "x", jpeg, sizeof jpeg, NULL, &m);
}

static void test_images(void)
{
    static const int64_t sizes[] = {0, 1 << 20, INT64_MAX, -1};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        lie = sizes[i];
        says(filekit_run(&kit, put_jpeg, NULL), "libturbojpeg gives ");
    }
    static const int64_t sides[] = {0, -5, INT32_MAX, INT32_MIN, 1 << 14};
    for (size_t i = 0; i < DC_COUNTOF(sides); i++) {
        lie = sides[i];
        says(filekit_run(&kit, get_jpeg, NULL), "pixels");
    }
}

/* ---- zlib, bzip2, LZMA: counts of bytes ------------------------------------------------------------ */

/* What is said of a step: more room is left than there was, more input, places elsewhere; nothing is done; or the room
 * is filled and no input taken. */
static enum step_lie { HONEST, MORE_ROOM, MORE_INPUT, MUCH_INPUT, ELSEWHERE, IDLE, ENDLESS } step_lie;
static int64_t kit_bytes;

static void lie_of_step(z_stream *z)
{
    static unsigned char elsewhere;
    if (step_lie == MORE_ROOM)
        z->avail_out = UINT32_MAX;
    else if (step_lie == MORE_INPUT)
        z->avail_in += 100;
    else if (step_lie == MUCH_INPUT)
        z->avail_in = UINT32_MAX;
    else if (step_lie == ENDLESS)
        z->avail_out = 0;
    else if (step_lie == ELSEWHERE)
        z->next_in = z->next_out = &elsewhere;
}

typedef int step(z_stream *, int);

static int lying_step(const char *name, z_stream *z, int flush)
{
    step *real;
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(&real, &found, sizeof found);
    const int result = step_lie >= IDLE ? Z_OK : real(z, flush);
    lie_of_step(z);
    return result;
}

IT(int, inflate, z_stream *z, int flush)
{
    return lying_step("inflate", z, flush);
}
IT(int, deflate, z_stream *z, int flush)
{
    return lying_step("deflate", z, flush);
}

static dc_status read_png(dc_job *j, void *arg)
{
    const dc_image m = {.height = 8, .width = 8, .channels = 3, .depth = 8, .pixel = pixels};
    const enum step_lie then = step_lie;
    const void *bytes;
    size_t n;
    dc_image back;
    DC_UNUSED(arg);
    step_lie = HONEST;
    DC_TRY(dc_png_encode(j, &m, &bytes, &n));
    step_lie = then;
    DC_TRY(dc_png_decode(j, "x", bytes, n, &back));
    dc_xfree(back.pixel);
    return DC_OK;
}

static dc_status read_gzip(dc_job *j, void *arg)
{
    char to[20];
    size_t got;
    dc_gunzip *g;
    const int fd = open(kit.path, O_RDONLY);
    DC_UNUSED(arg);
    DC_TRY(dc_gunzip_open(j, kit.path, fd, kit_bytes, &g));
    const dc_status status = dc_gunzip_read(g, j, to, sizeof to, &got);
    dc_gunzip_close(g);
    CHECK(status != DC_OK || (got == 9 && memcmp(to, "abcabcabc", got) == 0));
    return status;
}

static dc_status write_npz(dc_job *j, void *arg)
{
    const int64_t all[] = {sizeof pixels};
    const dc_npy_item item = {"a", dc_type_make(DC_U8, 1, all), pixels};
    DC_UNUSED(arg);
    return dc_npz_write(j, kit.path, &item, 1, true);
}

static dc_status write_trace(dc_job *j, void *arg)
{
    const dc_trace_facts facts = {"0", "cpu", "here", 0, 1, 1};
    char path[80];
    DC_UNUSED(arg);
    snprintf(path, sizeof path, "%s.gz", kit.path);
    dc_spans *s = dc_spans_new();
    const dc_status status = dc_trace_events_write(j, s, &facts, path);
    dc_spans_free(s);
    unlink(path);
    return status;
}

static void check_endless(dc_status (*body)(dc_job *, void *), const char *words)
{
    step_lie = ENDLESS;
    says(filekit_run(&kit, body, NULL), words);
    step_lie = HONEST;
}

static void check_steps(dc_status (*body)(dc_job *, void *), const char *words)
{
    for (enum step_lie l = MORE_ROOM; l <= IDLE; l++) {
        step_lie = l;
        if (l != ELSEWHERE)
            says(filekit_run(&kit, body, NULL), words);
        step_lie = l == ELSEWHERE ? l : HONEST;
        CHECK_EQ(filekit_run(&kit, body, NULL), DC_OK);
    }
    step_lie = HONEST;
}

static void test_zlib(void)
{
    static const char gzip[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x4c\x4a\x4e\x04\x23"
                               "\x00\x18\x48\x2d\x46\x09\x00\x00\x00";
    kit_bytes = sizeof gzip - 1;
    filekit_write(&kit, gzip, sizeof gzip - 1);
    check_steps(read_gzip, "zlib gives wrong counts of bytes");
    check_steps(read_png, "zlib gives wrong counts of bytes");
    check_steps(write_npz, "cannot be written: zlib does not pack the data whole");
    check_steps(write_trace, "cannot be written: zlib does not pack the data whole");
    check_endless(write_npz, "cannot be written: zlib does not pack the data whole");
    check_endless(write_trace, "cannot be written: zlib does not pack the data whole");
}

/* Of bzlib.h and lzma/base.h, as far as it is used. */
typedef struct bz_step {
    char *next_in;
    unsigned avail_in, total_in[2];
    char *next_out;
    unsigned avail_out;
} bz_step;

typedef struct lzma_step {
    const uint8_t *next_in;
    size_t avail_in;
    uint64_t total_in;
    uint8_t *next_out;
    size_t avail_out;
} lzma_step;

static int step_says; /* the code of each step */

IT(int, BZ2_bzDecompressInit, bz_step *s, int verbosity, int small)
{
    return s == NULL ? verbosity + small : 0;
}
IT(int, BZ2_bzDecompressEnd, bz_step *s)
{
    return s == NULL;
}
IT(int, BZ2_bzDecompress, bz_step *s)
{
    z_stream z = {.avail_in = s->avail_in, .avail_out = s->avail_out};
    lie_of_step(&z);
    s->avail_in = z.avail_in;
    s->avail_out = z.avail_out;
    return step_says;
}
IT(int, lzma_alone_decoder, lzma_step *s, uint64_t most)
{
    return s == NULL || most == 0;
}
IT(void, lzma_end, lzma_step *s)
{
    DC_UNUSED(s);
}
IT(int, lzma_code, lzma_step *s, int action)
{
    if (step_lie == MORE_ROOM)
        s->avail_out = SIZE_MAX;
    else if (step_lie != IDLE)
        s->avail_in = step_lie == MUCH_INPUT ? SIZE_MAX : s->avail_in + 100;
    return step_says + action;
}

static void close_zip(void *z)
{
    dc_zip_close(z);
}

static dc_status read_zip(dc_job *j, void *arg)
{
    char to[20];
    size_t got;
    dc_zip *z;
    dc_zip_stream *s;
    DC_UNUSED(arg);
    DC_TRY(dc_zip_open(j, kit.path, "an archive", &z));
    dc_job_defer(j, close_zip, z);
    DC_TRY(dc_zip_stream_open(z, j, dc_zip_find(z, "a"), &s));
    return dc_zip_stream_read(s, j, to, sizeof to, &got);
}

/* An entry "a" of 9 bytes, 30 packed ones. */
static void write_zip(unsigned char method)
{
    unsigned char b[30 + 1 + 30 + 46 + 1 + 22] = {'P', 'K', 3, 4}, *d = b + 61, *end = d + 47;
    b[26] = d[28] = 1; /* lengths of the name */
    b[30] = d[46] = 'a';
    b[31 + 2] = 5; /* properties of LZMA */
    memcpy(d, "PK\1\2", 4);
    d[10] = method;
    d[20] = 30;
    d[24] = 9;
    memcpy(end, "PK\5\6", 4);
    end[8] = end[10] = 1;
    end[12] = 47;
    end[16] = 61;
    filekit_write(&kit, b, sizeof b);
}

static void test_archives(void)
{
    static const struct {
        unsigned char method;
        int code;
        const char *words;
    } row[] = {{DC_ZIP_DEFLATED, 0, "zlib gives wrong counts of bytes"},
               {DC_ZIP_BZIP2, 0, "libbz2.so.1.0 gives wrong counts of bytes"},
               {DC_ZIP_LZMA, 0, "liblzma.so.5 gives wrong counts of bytes"},
               {DC_ZIP_LZMA, 10 /* LZMA_BUF_ERROR */, "liblzma.so.5 gives wrong counts of bytes"}};
    for (size_t i = 0; i < DC_COUNTOF(row); i++) {
        write_zip(row[i].method);
        step_says = row[i].code;
        for (step_lie = MORE_ROOM; step_lie <= IDLE; step_lie++)
            if (step_lie != ELSEWHERE)
                says(filekit_run(&kit, read_zip, NULL), row[i].words);
    }
    step_lie = HONEST;
}

/* ---- LAPACK: pivots, info, pairs ----------------------------------------------------------------- */

static int pivot, info_said;

static void getrf(const int *m, const int *n, void *a, const int *lda, int *swap, int *info)
{
    DC_UNUSED(a), DC_UNUSED(lda), DC_UNUSED(m);
    for (int i = 0; i < *n; i++)
        swap[i] = pivot != 0 ? pivot : i + 1;
    *info = info_said;
}

/* Nothing is wrong with any matrix, of which nothing is done. */
static void potrf(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t x)
{
    DC_UNUSED(uplo), DC_UNUSED(n), DC_UNUSED(a), DC_UNUSED(lda), DC_UNUSED(x);
    *info = 0;
}

static void geev(const char *vl, const char *vr, const int *n, void *a, const int *lda, void *re,
                 void *im, void *l, const int *ldl, void *r, const int *ldr, void *work,
                 const int *lwork, int *info, size_t x, size_t y)
{
    DC_UNUSED(vl), DC_UNUSED(vr), DC_UNUSED(a), DC_UNUSED(lda), DC_UNUSED(l), DC_UNUSED(ldl),
        DC_UNUSED(ldr);
    DC_UNUSED(work), DC_UNUSED(lwork), DC_UNUSED(x), DC_UNUSED(y);
    memset(re, 0, (size_t)*n * sizeof(double));
    memset(im, 0, (size_t)*n * sizeof(double));
    memset(r, 0, (size_t)*n * (size_t)*n * sizeof(double));
    ((double *)im)[*n - 1] = 1; /* half a pair */
    *info = 0;
}

/* Of a 3 x 3 matrix: the last numbers of what comes out, in memory of that size. */
static void run(const dc_host_row *row, dc_op op, int64_t results, double *out)
{
    const int64_t square[] = {3, 3}, all[] = {results};
    dc_lapack l = {.getrf = {NULL, getrf}, .potrf = {NULL, potrf}, .geev = {NULL, geev}};
    dc_host_call c = {.op = op, .nin = 1, .nattr = 1};
    c.in[0] = dc_type_make(DC_F64, 2, square);
    c.out = dc_type_make(DC_F64, 1, all);
    double *const in = calloc(9, sizeof *in), *const to = calloc((size_t)results, sizeof *to);
    const void *const operands[] = {in};
    void *scratch = calloc(1, row->scratch(&c) + 64);
    row->run(&c, &l, to, operands, scratch);
    memcpy(out, to, (size_t)results * sizeof *to);
    free(in);
    free(to);
    free(scratch);
}

static void test_lapack(void)
{
    static const int pivots[] = {4, -1, INT32_MAX, INT32_MIN, 1};
    double out[32];
    run(&dc_host_lu, DC_OP_LU, 12, out);
    CHECK(out[0] == 0 && out[11] == 2);
    for (size_t i = 0; i <= DC_COUNTOF(pivots); i++) {
        pivot = i < DC_COUNTOF(pivots) ? pivots[i] : 0;
        info_said = i < DC_COUNTOF(pivots) ? 0 : -3;
        run(&dc_host_lu, DC_OP_LU, 12, out);
        CHECK(isnan(out[0]) && isnan(out[8]) && out[9] == 0 && out[10] == 1 && out[11] == 2);
    }
    info_said = pivot = 0;
    run(&dc_host_cholesky, DC_OP_CHOLESKY, 9, out); /* of zeros: no pivot is positive */
    CHECK(isnan(out[0]) && isnan(out[8]));
    run(&dc_host_eig, DC_OP_EIG, 24, out);
    CHECK(isnan(out[0]) && isnan(out[23]));
}

int main(void)
{
    filekit_init(&kit, NULL, NULL);
    test_pcre2();
    test_images();
    test_zlib();
    test_archives();
    test_lapack();
    filekit_fini(&kit);
    return t_done();
}
