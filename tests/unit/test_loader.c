/*
 * backends/cpu/loader.c: objects from LLVM load and run; objects that were cut or damaged are
 * refused with a sentence or loaded, but never read or write outside.
 */
#include "backends/cpu/llvm.h"
#include "backends/cpu/loader.h"

#include <elf.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

static const char *const text =
    "@table = private unnamed_addr constant [4 x i32] [i32 3, i32 1, i32 4, i32 159], align 16\n"
    "@where = private constant [2 x ptr] [ptr @first, ptr @second]\n"
    "@count = internal global i32 5\n"
    "@room = internal global [16 x i32] zeroinitializer\n"
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    "declare float @fmodf(float, float)\n"
    "declare ptr @memmove(ptr, ptr, i64)\n"
    "define i32 @first(i64 %i) {\n"
    "  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i\n"
    "  %v = load i32, ptr %p\n"
    "  ret i32 %v\n"
    "}\n"
    "define i32 @second(i64 %i) {\n"
    "  %c = load i32, ptr @count\n"
    "  %d = add i32 %c, 1\n"
    "  store i32 %d, ptr @count\n"
    "  ret i32 %d\n"
    "}\n"
    "define i32 @either(i64 %which, i64 %i) {\n"
    "  %p = getelementptr [2 x ptr], ptr @where, i64 0, i64 %which\n"
    "  %f = load ptr, ptr %p\n"
    "  %v = call i32 %f(i64 %i)\n"
    "  ret i32 %v\n"
    "}\n"
    "define void @clear(ptr %p, i64 %n) {\n"
    "  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)\n"
    "  ret void\n"
    "}\n"
    "define float @rest(float %a, float %b) {\n"
    "  %r = call float @fmodf(float %a, float %b)\n"
    "  ret float %r\n"
    "}\n"
    "define ptr @mover() {\n"
    "  ret ptr @memmove\n"
    "}\n"
    "define i32 @sum() {\n"
    "  %q = getelementptr [16 x i32], ptr @room, i64 0, i64 15\n"
    "  %old = load volatile i32, ptr %q\n"
    "  store volatile i32 7, ptr %q\n"
    "  ret i32 %old\n"
    "}\n"
    "define <8 x float> @vec(<8 x float> %v) \"prefer-vector-width\"=\"512\" {\n"
    "  %r = fmul <8 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0,"
    " float 7.0, float 8.0>\n"
    "  ret <8 x float> %r\n"
    "}\n"
    "define i32 @pick(i32 %k) {\n"
    "  switch i32 %k, label %z [i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d\n"
    "    i32 4, label %e i32 5, label %f]\n"
    "a: call void @clear(ptr @room, i64 4) ret i32 11\n"
    "b: call i32 @first(i64 0) ret i32 37\n"
    "c: call i32 @sum() ret i32 12\n"
    "d: call i32 @second(i64 0) ret i32 77\n"
    "e: call i32 @either(i64 0, i64 1) ret i32 5\n"
    "f: call i32 @sum() ret i32 99\n"
    "z: ret i32 -1\n"
    "}\n";

enum { FIRST, SECOND, EITHER, CLEAR, REST, MOVER, SUM, PICK, NENTRY };

static const char *const entry[NENTRY] = {"first", "second", "either", "clear",
                                          "rest",  "mover",  "sum",    "pick"};

#define AS(type, p) \
    ((union {       \
         void *v;   \
         type f;    \
     }){.v = (p)}   \
         .f)

typedef int (*int_of_int)(int64_t);
typedef int (*int_of_two)(int64_t, int64_t);
typedef int (*int_of_none)(void);
typedef int (*int_of_i32)(int);
typedef void (*void_of_block)(void *, int64_t);
typedef float (*float_of_two)(float, float);
typedef void *(*ptr_of_none)(void);

static dc_status load(dc_job *j, const void *object, size_t n, dc_image **out)
{
    j->err = (dc_err){0};
    return dc_loader_load(j, object, n, entry, NENTRY, out);
}

static void test_runs(dc_job *j, const void *object, size_t n)
{
    dc_image *im;
    if (!CHECK_EQ(load(j, object, n, &im), DC_OK)) {
        printf("%s\n", j->err.fact.word[0]);
        return;
    }
    CHECK_EQ(im->nentry, NENTRY);
    CHECK_EQ(AS(int_of_int, im->entry[FIRST])(3), 159);
    CHECK_EQ(AS(int_of_int, im->entry[SECOND])(0), 6);
    CHECK_EQ(AS(int_of_two, im->entry[EITHER])(0, 2), 4);
    CHECK_EQ(AS(int_of_two, im->entry[EITHER])(1, 2), 7);
    CHECK_EQ(AS(int_of_none, im->entry[SUM])(), 0);
    CHECK_EQ(AS(int_of_none, im->entry[SUM])(), 7);
    for (int k = 0; k < 6; k++)
        CHECK_EQ(AS(int_of_i32, im->entry[PICK])(k), ((const int[]){11, 37, 12, 77, 5, 99})[k]);
    CHECK_EQ(AS(int_of_i32, im->entry[PICK])(6), -1);
    CHECK(AS(float_of_two, im->entry[REST])(7.5f, 2.0f) == 1.5f);

    char *block = malloc(1000);
    memset(block, 1, 1000);
    AS(void_of_block, im->entry[CLEAR])(block, 999);
    CHECK_EQ(block[0] | block[998], 0);
    CHECK_EQ(block[999], 1);
    free(block);
    CHECK(AS(ptr_of_none, im->entry[MOVER])() != NULL);
    dc_loader_unload(im);
}

/* Protection of the page at `p`: "r-xp". */
static const char *protection_of(const void *p, char out[8])
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    strcpy(out, "");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char prot[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, prot) == 3 && (uintptr_t)p >= from &&
            (uintptr_t)p < to)
            strcpy(out, prot);
    }
    if (maps != NULL)
        fclose(maps);
    return out;
}

static void test_protection(dc_job *j, const void *object, size_t n)
{
    char prot[8];
    dc_image *im;
    if (!CHECK_EQ(load(j, object, n, &im), DC_OK))
        return;
    const char *base = im->base;
    CHECK_STR(protection_of(im->entry[FIRST], prot), "r-xp");
    for (size_t at = 0; at < im->bytes; at += 4096) {
        protection_of(base + at, prot);
        CHECK(prot[1] != 'w' || prot[2] != 'x');
    }
    CHECK_STR(protection_of(base + 4096, prot), "r--p"); /* one page of text, one of constants */
    CHECK_STR(protection_of(base + 8192, prot), "rw-p");
    dc_loader_unload(im);
}

/* Rewrites the kind of the first relocation of the text. */
static void refused_as(dc_job *j, const void *object, size_t n, uint32_t kind, const char *part)
{
    unsigned char *copy = malloc(n);
    Elf64_Ehdr h;
    Elf64_Shdr s;
    Elf64_Rela r;
    dc_image *im;
    memcpy(copy, object, n);
    memcpy(&h, copy, sizeof h);
    for (uint32_t i = 0; i < h.e_shnum; i++) {
        memcpy(&s, copy + h.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type == SHT_RELA)
            break;
    }
    memcpy(&r, copy + s.sh_offset, sizeof r);
    r.r_info = ELF64_R_INFO(ELF64_R_SYM(r.r_info), kind);
    memcpy(copy + s.sh_offset, &r, sizeof r);
    CHECK_EQ(load(j, copy, n, &im), DC_E_BUILD);
    CHECK(j->err.fact.word[0] != NULL && strstr(j->err.fact.word[0], part) != NULL);
    free(copy);
}

static void test_relocation_kinds(dc_job *j, const void *object, size_t n)
{
    refused_as(j, object, n, R_X86_64_32S, "does not reach");
    refused_as(j, object, n, R_X86_64_32, "does not reach");
    refused_as(j, object, n, R_X86_64_TPOFF32, "unknown");
}

static void test_two_images(dc_job *j, const void *object, size_t n)
{
    dc_image *a, *b;
    if (!CHECK_EQ(load(j, object, n, &a), DC_OK) || !CHECK_EQ(load(j, object, n, &b), DC_OK))
        return;
    AS(int_of_int, a->entry[SECOND])(0);
    CHECK_EQ(AS(int_of_int, a->entry[SECOND])(0), 7);
    CHECK_EQ(AS(int_of_int, b->entry[SECOND])(0), 6);
    dc_loader_unload(a);
    CHECK_EQ(AS(int_of_int, b->entry[SECOND])(0), 7);
    dc_loader_unload(b);
}

static void test_missing(dc_job *j, dc_llvm *l, const void *object, size_t n)
{
    static const char *const nowhere[] = {"first", "table_of_nothing"};
    dc_image *im;
    j->err = (dc_err){0};
    CHECK_EQ(dc_loader_load(j, object, n, nowhere, 2, &im), DC_E_BUILD);
    CHECK(strstr(j->err.fact.word[0], "'table_of_nothing'") != NULL);

    static const char *const one[] = {"k"};
    const void *far_call;
    size_t bytes;
    j->err = (dc_err){0};
    CHECK_EQ(dc_llvm_compile(l, j,
                             "declare i32 @getpid()\n"
                             "define i32 @k() {\n %r = call i32 @getpid()\n ret i32 %r\n}\n",
                             &far_call, &bytes),
             DC_OK);
    CHECK_EQ(dc_loader_load(j, far_call, bytes, one, 1, &im), DC_E_BUILD);
    CHECK(strstr(j->err.fact.word[0], "'getpid'") != NULL);
}

typedef struct counting {
    const void *object;
    size_t n;
    dc_image *im;
} counting;

static dc_status load_counted(dc_job *j, void *arg)
{
    counting *c = arg;
    return load(j, c->object, c->n, &c->im);
}

/* The mapping counts towards the limit of the context's memory. */
static void test_limit(const void *object, size_t n)
{
    dc_opts opt = {0};
    dc_job j;
    dc_heap *h = opt.heap = dc_heap_new(NULL, NULL);
    counting c = {object, n, NULL};
    opt.memory = 1 << 20;
    dc_job_init(&j, &opt, NULL);
    dc_heap_limit(h, 1 << 20);
    if (CHECK_EQ(dc_protect(&j, load_counted, &c), DC_OK)) {
        const size_t with = dc_heap_used(h), bytes = c.im->bytes;
        dc_loader_unload(c.im);
        CHECK(dc_heap_used(h) + bytes < with);
        CHECK(dc_heap_used(h) + bytes + 4096 > with); /* what lies beside it is little */
        dc_job_fini(&j);
        dc_job_init(&j, &opt, NULL);
        dc_heap_limit(h, bytes);
        CHECK_EQ(dc_protect(&j, load_counted, &c), DC_E_NOMEM);
    }
    dc_job_fini(&j);
    CHECK_EQ(dc_heap_used(h), 0);
    dc_heap_free(h);
}

/* An object in a block of its own size, so that the sanitizer sees a read behind it. */
static bool try_damaged(dc_job *j, const unsigned char *bytes, size_t n)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_image *im;
    unsigned char *tight = malloc(n > 0 ? n : 1);
    memcpy(tight, bytes, n);
    const dc_status status = load(j, tight, n, &im);
    const bool said = status == DC_OK || j->err.fact.word[0] != NULL || status == DC_E_NOMEM;
    if (status == DC_OK)
        dc_loader_unload(im);
    free(tight);
    dc_arena_rewind(&j->scratch, mark);
    return said;
}

static void test_truncated(dc_job *j, const void *object, size_t n)
{
    long unsaid = 0;
    for (size_t cut = 0; cut < n; cut++)
        unsaid += !try_damaged(j, object, cut);
    CHECK_EQ(unsaid, 0);
    dc_image *im;
    CHECK(load(j, object, 0, &im) == DC_E_BUILD);
    CHECK(load(j, object, n / 2, &im) == DC_E_BUILD);
    CHECK(load(j, object, n - 1, &im) == DC_E_BUILD);
}

/* Flips bits anywhere, or overwrites whole fields of the tables with extreme values. */
static void damage(rng *r, unsigned char *object, size_t n)
{
    static const uint64_t extreme[] = {
        0,          1,          4096,       0x100000,  0x7fffffff,
        0x80000000, 0xffffffff, UINT64_MAX, INT64_MAX, 0xfffffffffff};
    const uint64_t value = extreme[rng_below(r, DC_COUNTOF(extreme))];
    Elf64_Ehdr h;
    memcpy(&h, object, sizeof h);
    size_t at = rng_next(r) % n;
    if (rng_below(r, 3) == 0 && h.e_shoff < n) /* more often than their size asks for */
        at = h.e_shoff + rng_next(r) % (n - h.e_shoff);
    const size_t field = at & ~(size_t)3, width = rng_below(r, 2) ? 8 : 4;
    if (rng_below(r, 3) == 0 || n - field < width)
        object[at] ^= (unsigned char)(1u << rng_below(r, 8));
    else
        memcpy(object + field, &value, width);
}

static void test_damaged(dc_job *j, rng *r, const void *object, size_t n)
{
    unsigned char *copy = malloc(n);
    long unsaid = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, object, n);
        for (int k = rng_below(r, 4); k >= 0; k--)
            damage(r, copy, n);
        unsaid += !try_damaged(j, copy, n);
        refused += j->err.status != DC_OK;
    }
    CHECK_EQ(unsaid, 0);
    printf("%ld of 20000 refused\n", refused);
    CHECK(refused > 2000 && refused < 18000); /* both ways were taken */
    free(copy);
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 20240229)};
    dc_opts opt;
    dc_job j;
    dc_llvm *l;
    const char *bad;
    const void *object;
    size_t n;
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    const dc_llvm_conf conf = {
        .path = opt.llvm, .triple = "x86_64-pc-linux-gnu", .features = "", .level = 2};
    if (dc_llvm_open(&j, &conf, &l) != DC_OK) {
        T_SKIP(j.err.fact.word[0]);
        dc_job_fini(&j);
        return t_done();
    }
    if (CHECK_EQ(dc_llvm_compile(l, &j, text, &object, &n), DC_OK)) {
        test_runs(&j, object, n);
        test_protection(&j, object, n);
        test_relocation_kinds(&j, object, n);
        test_two_images(&j, object, n);
        test_missing(&j, l, object, n);
        test_limit(object, n);
        test_truncated(&j, object, n);
        test_damaged(&j, &r, object, n);
    } else {
        printf("%s\n", j.err.fact.word[0]);
    }
    dc_llvm_close(l);
    dc_job_fini(&j);
    return t_done();
}
