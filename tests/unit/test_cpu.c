/*
 * backends/cpu and the registry: kernels compile and run through the interface of core/runtime/device.h,
 * failures of the compiler arrive as sentences, runs copy, check and stop.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/cpu_impl.h"
#include "backends/registry.h"

#include <stdlib.h>

#include "tests/t.h"

typedef struct world {
    dc_opts opt;
    dc_job j;
    dc_device *d;
} world;

static const char *said(const world *w)
{
    const char *s = w->j.err.fact.word[0];
    return s != NULL ? s : "";
}

/* What recording, running and freeing look like from above: through the table. */
#define CALL(w, verb, ...) ((w)->d->ops->verb((w)->d, __VA_ARGS__))

/* c[i] = a[i] * lr + b[i], 16 at a time, lr from the argument block; grid: groups of 16. */
static const char *const axpy =
    "define void @axpy(ptr %buf, ptr %block, ptr %scratch, i64 %begin, i64 %end) #0 {\n"
    "entry:\n"
    "  %ap = load ptr, ptr %buf\n"
    "  %bq = getelementptr ptr, ptr %buf, i64 1\n"
    "  %bp = load ptr, ptr %bq\n"
    "  %cq = getelementptr ptr, ptr %buf, i64 2\n"
    "  %cp = load ptr, ptr %cq\n"
    "  %lr = load float, ptr %block\n"
    "  %l0 = insertelement <16 x float> undef, float %lr, i32 0\n"
    "  %l = shufflevector <16 x float> %l0, <16 x float> undef, <16 x i32> zeroinitializer\n"
    "  %some = icmp slt i64 %begin, %end\n"
    "  br i1 %some, label %loop, label %done\n"
    "loop:\n"
    "  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]\n"
    "  %o = mul i64 %i, 16\n"
    "  %pa = getelementptr float, ptr %ap, i64 %o\n"
    "  %pb = getelementptr float, ptr %bp, i64 %o\n"
    "  %pc = getelementptr float, ptr %cp, i64 %o\n"
    "  %a = load <16 x float>, ptr %pa, align 4\n"
    "  %b = load <16 x float>, ptr %pb, align 4\n"
    "  %m = fmul <16 x float> %a, %l\n"
    "  %s = fadd <16 x float> %m, %b\n"
    "  store <16 x float> %s, ptr %pc, align 4\n"
    "  %next = add i64 %i, 1\n"
    "  %more = icmp slt i64 %next, %end\n"
    "  br i1 %more, label %loop, label %done\n"
    "done:\n"
    "  ret void\n"
    "}\n"
    /* Writes the block's second number to scratch, reads it back from the last of 4096 bytes. */
    "define void @through(ptr %buf, ptr %block, ptr %scratch, i64 %begin, i64 %end) #0 {\n"
    "  %op = load ptr, ptr %buf\n"
    "  %bq = getelementptr float, ptr %block, i64 1\n"
    "  %v = load float, ptr %bq\n"
    "  %sq = getelementptr float, ptr %scratch, i64 1023\n"
    "  store volatile float %v, ptr %sq\n"
    "  %back = load volatile float, ptr %sq\n"
    "  store float %back, ptr %op\n"
    "  ret void\n"
    "}\n"
    "define void @floors(ptr %buf, ptr %block, ptr %scratch, i64 %begin, i64 %end) #0 {\n"
    "  %p = load ptr, ptr %buf\n"
    "  %v = load <4 x float>, ptr %p, align 4\n"
    "  %f = call <4 x float> @llvm.floor.v4f32(<4 x float> %v)\n"
    "  store <4 x float> %f, ptr %p, align 4\n"
    "  ret void\n"
    "}\n"
    "declare <4 x float> @llvm.floor.v4f32(<4 x float>)\n"
    "attributes #0 = { nounwind \"prefer-vector-width\"=\"512\" \"no-builtins\" }\n";

static const char *const entries[] = {"axpy", "through", "floors"};
static const dc_source axpy_source = {axpy, "llvm", entries, 3};

static void *alloc_floats(world *w, int n)
{
    void *p = NULL;
    CHECK_EQ(CALL(w, alloc, &w->j, (size_t)n * sizeof(float), &p), DC_OK);
    CHECK_EQ((uintptr_t)p % 64, 0);
    return p;
}

static void test_memory(world *w)
{
    static const size_t sizes[] = {0, 1, 64, 65, 4 << 20, (4 << 20) + 1};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        void *p = NULL;
        if (!CHECK_EQ(CALL(w, alloc, &w->j, sizes[i], &p), DC_OK))
            continue;
        CHECK_EQ((uintptr_t)p % 64, 0);
        memset(p, 5, sizes[i]);
        w->d->ops->release(w->d, p);
    }
    void *p;
    CHECK_EQ(CALL(w, alloc, &w->j, SIZE_MAX - 10, &p), DC_E_NOMEM);
    w->j.err = (dc_err){0};

    float in[3] = {1, 2, 3}, out[3] = {0};
    void *mem = alloc_floats(w, 3);
    CHECK_EQ(CALL(w, upload, &w->j, mem, in, sizeof in), DC_OK);
    CHECK_EQ(CALL(w, download, &w->j, out, mem, sizeof out), DC_OK);
    CHECK(memcmp(in, out, sizeof in) == 0);
    w->d->ops->release(w->d, mem);
}

static void test_target(world *w)
{
    const dc_target *t = w->d->ops->target(w->d);
    CHECK(t->vector_bytes == 16 || t->vector_bytes == 32 || t->vector_bytes == 64);
    CHECK(t->vector_registers == 16 || t->vector_registers == 32);
    CHECK(t->l1 >= 4096 && t->l2 >= t->l1);
    CHECK(strncmp(t->name, "cpu", 3) == 0);
    CHECK(strncmp(t->triple, "x86_64", 6) == 0);
}

enum { GROUPS = 5, COUNT = GROUPS * 16, OFFSET = 4 * sizeof(float) };

/* Slot 0 block, 1 a and b (in one allocation), 2 c. */
static void test_launches(world *w, dc_program *p)
{
    const dc_bind abc[] = {{1, 0}, {1, COUNT * sizeof(float)}, {2, OFFSET}};
    const dc_bind out[] = {{2, 0}};
    const dc_bind last[] = {{1, 0}};
    dc_command items[] = {
        {.kind = DC_COMMAND_LAUNCH,
         .program = p,
         .entry = 0,
         .grid = GROUPS,
         .nbind = 3,
         .bind = abc},
        {.kind = DC_COMMAND_LAUNCH,
         .program = p,
         .entry = 1,
         .grid = 1,
         .scratch = 4096,
         .nbind = 1,
         .bind = out},
        {.kind = DC_COMMAND_LAUNCH, .program = p, .entry = 2, .grid = 1, .nbind = 1, .bind = last},
    };
    dc_recording *r;
    if (!CHECK_EQ(CALL(w, record, &w->j, items, 3, &r), DC_OK))
        return;
    memset(items, 0, sizeof items);           /* copied */
    for (int round = 0; round < 2; round++) { /* other addresses, other scalars, one recording */
        float block[2] = {(float)round + 0.5f, (float)round + 40};
        float *ab = alloc_floats(w, 2 * COUNT), *c = alloc_floats(w, COUNT + 4);
        for (int i = 0; i < 2 * COUNT; i++)
            ab[i] = (float)i - 3.25f;
        void *const slot[] = {block, ab, c};
        CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
        int wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += c[4 + i] != ((float)i - 3.25f) * block[0] + ((float)(i + COUNT) - 3.25f);
        CHECK_EQ(wrong, 0);
        CHECK(c[0] == block[1]);
        CHECK(ab[0] == -4 && ab[1] == -3 && ab[2] == -2 && ab[3] == -1 && ab[4] == 0.75f);
        w->d->ops->release(w->d, ab);
        w->d->ops->release(w->d, c);
    }
    w->d->ops->recording_free(w->d, r);
}

/* copy, check, copy: the second copy happens only when the check finds -1. */
static void test_copy_check(world *w)
{
    const dc_bind first[] = {{2, 0}, {1, 4}}, checked[] = {{1, 0}}, second[] = {{2, 4}, {1, 8}};
    const dc_command items[] = {
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = first, .bytes = 4},
        {.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = checked},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = second, .bytes = 4},
    };
    dc_recording *r;
    if (!CHECK_EQ(CALL(w, record, &w->j, items, 3, &r), DC_OK))
        return;
    int32_t in[3] = {-1, 10, 20}, out[2] = {0, 0};
    uint64_t spent[3] = {0};
    const dc_run_watch watch = {.ns = spent};
    dc_run_info info = {.watch = &watch};
    void *const slot[] = {NULL, in, out};
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_command, -1);
    CHECK(out[0] == 10 && out[1] == 20);
    CHECK(spent[0] > 0 && spent[2] > 0);

    in[0] = 17, in[1] = 11, in[2] = 21, info.watch = NULL;
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_command, 1);
    CHECK_EQ(info.fault_value, 17);
    CHECK(out[0] == 11 && out[1] == 20);

    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_E_DEVICE); /* without a place for the fault */
    w->j.err = (dc_err){0};
    w->d->ops->recording_free(w->d, r);
}

static void test_empty(world *w)
{
    dc_recording *r;
    CHECK_EQ(CALL(w, record, &w->j, NULL, 0, &r), DC_OK);
    CHECK_EQ(CALL(w, run, &w->j, r, NULL, NULL), DC_OK);
    w->d->ops->recording_free(w->d, r);
    w->d->ops->recording_free(w->d, NULL);
    w->d->ops->program_free(w->d, NULL);
}

static void refused(world *w, const dc_source *src, const char *part)
{
    dc_program *p;
    w->j.err = (dc_err){0};
    CHECK_EQ(CALL(w, compile, &w->j, src, &p), DC_E_BUILD);
    if (!CHECK(strstr(said(w), part) != NULL))
        printf("said: %s\n", said(w));
    w->j.err = (dc_err){0};
}

static void test_refusals(world *w)
{
    static const char *const k[] = {"k"};
    refused(w,
            &(dc_source){"define void @k() {\n  %x = fadd i32 1, 2\n  ret void\n}\n", "llvm", k, 1},
            "kernel:2:13: error: ");
    refused(w, &(dc_source){"", "llvm", k, 1}, "no code");
    refused(w, &(dc_source){"void k(void) {}", "c", k, 1}, "not as 'c'");
    refused(w, &(dc_source){"define void @other() {\n  ret void\n}\n", "llvm", k, 1}, "'k'");
    refused(w,
            &(dc_source){"@g = external global i32\n"
                         "define i32 @k() {\n %v = load i32, ptr @g\n ret i32 %v\n}\n",
                         "llvm", k, 1},
            "needs 'g'");
    refused(w,
            &(dc_source){"define void @k() {\n  %x = add i32 %y, 2\n  %y = add i32 %x, 1\n"
                         "  ret void\n}\n",
                         "llvm", k, 1},
            "illegal");
    refused(w,
            &(dc_source){"define void @k() {\n"
                         "  call void asm \"nonsense\", \"~{memory}\"()\n  ret void\n}\n",
                         "llvm", k, 1},
            "cannot");
}

/* What would keep LLVM for long is not given to it: it cannot be ended. */
static void test_long_text(world *w)
{
    static const char *const k[] = {"k"};
    static const char rest[] = "\ndefine void @k() {\n  ret void\n}\n";
    const size_t most = 8u << 20, begin = most - strlen(rest);
    dc_program *p;
    char *text = malloc(most + 2);
    memset(text, ';', begin + 1);
    strcpy(text + begin + 1, rest);
    refused(w, &(dc_source){text, "llvm", k, 1}, "is given 8 at most; DEEPC_COMPILE=process");
    CHECK_EQ(CALL(w, compile, &w->j, &(dc_source){text + 1, "llvm", k, 1}, &p), DC_OK);
    w->d->ops->program_free(w->d, p);
    free(text);
}

static bool open_with(world *w, const char *llvm, const char *set)
{
    const char *bad;
    dc_opts_init(&w->opt, &bad);
    if (llvm != NULL)
        snprintf(w->opt.llvm, sizeof w->opt.llvm, "%s", llvm);
    dc_job_init(&w->j, &w->opt, NULL);
    return dc_cpu_open(&w->j, set, &w->d) == DC_OK;
}

static void close_world(world *w)
{
    w->d->ops->free(w->d);
    dc_job_fini(&w->j);
}

static void test_no_library(const char *path, const char *part)
{
    world w;
    dc_program *p;
    if (!CHECK(open_with(&w, path, "")))
        return;
    CHECK(w.d->ops->target(w.d)->vector_bytes > 0); /* needs no compiler */
    CHECK_EQ(CALL(&w, compile, &w.j, &axpy_source, &p), DC_E_DEVICE);
    if (!CHECK(strstr(said(&w), part) != NULL))
        printf("said: %s\n", said(&w));
    close_world(&w);
}

static void test_targets(void)
{
    static const struct {
        const char *set;
        int vector_bytes;
    } rows[] = {{"baseline", 16}, {"avx2", 32}, {"avx512", 64}, {"native", 0}};
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        world w;
        dc_program *p;
        if (!open_with(&w, NULL, rows[i].set)) {
            T_SKIP(said(&w));
            dc_job_fini(&w.j);
            continue;
        }
        if (rows[i].vector_bytes > 0)
            CHECK_EQ(w.d->ops->target(w.d)->vector_bytes, rows[i].vector_bytes);
        if (CHECK_EQ(CALL(&w, compile, &w.j, &axpy_source, &p), DC_OK)) {
            test_launches(&w, p);
            w.d->ops->program_free(w.d, p);
        } else {
            printf("said: %s\n", said(&w));
        }
        close_world(&w);
    }
}

static bool says(dc_job *j, const char *part)
{
    char text[600];
    dc_err_render(&j->err, 1, text, sizeof text);
    if (strstr(text, part) == NULL)
        printf("said: %s\n", text);
    return strstr(text, part) != NULL;
}

/* What machines of all kinds make of what is asked for. */
static void test_sets(void)
{
    static const struct {
        const char *set, *target;
        int machine, vector_bytes; /* 0: refused */
        const char *words;
    } rows[] = {
        {"avx512", "", 4, 64, ""},
        {"avx2", "", 4, 32, ""},
        {"avx2", "", 3, 32, ""},
        {"baseline", "", 1, 16, ""},
        {"", "avx2", 3, 32, ""},
        {"avx512", "", 3, 0, "no instruction set 'avx512'; it has native, avx2, baseline"},
        {"avx2", "", 1, 0, "no instruction set 'avx2'; it has native, baseline"},
        {"", "avx2", 1, 0, "no instruction set 'avx2'; it has native, baseline"},
        {"pentium", "", 4, 0,
         "no device is called 'cpu:pentium'; instruction sets are cpu:native, cpu:avx512, "
         "cpu:avx2, "
         "cpu:baseline"},
        {"", "pentium", 4, 0, "DEEPC_TARGET: native, avx512, avx2, baseline"},
        {"avx2", "avx2", 4, 0, "DEEPC_TARGET: nothing, as the device's name says it"},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_opts opt = {0};
        dc_job j;
        dc_cpu cpu = {0};
        snprintf(opt.target, sizeof opt.target, "%s", rows[i].target);
        dc_job_init(&j, &opt, NULL);
        const dc_status s = dc_host_choose(&j, rows[i].set, rows[i].machine, &cpu);
        CHECK_EQ(s == DC_OK, rows[i].vector_bytes > 0);
        CHECK_EQ(cpu.target.vector_bytes, rows[i].vector_bytes);
        CHECK(s == DC_OK || says(&j, rows[i].words));
        dc_job_fini(&j);
    }
}

/* DEEPC_MACHINE: what it says is taken, the rest is this machine's. */
static void test_machine(void)
{
    static const struct {
        const char *text;
        bool fine;
        int64_t l1, l2, l3, cores; /* -1: this machine's */
    } rows[] = {
        {"", true, -1, -1, -1, -1},
        {"l2=512K", true, -1, 512 << 10, -1, -1},
        {"baseline,l2=512K", true, -1, 512 << 10, -1, -1},
        {"native", false, 0, 0, 0, 0},
        {"pentium", false, 0, 0, 0, 0},
        {"baseline,avx2", false, 0, 0, 0, 0},
        {"a_word_that_is_too_long", false, 0, 0, 0, 0},
        {"cores=8,l1=48K,l3=8M,l2=1048576", true, 48 << 10, 1 << 20, 8 << 20, 8},
        {"l3=0,cores=1", true, -1, -1, 0, 1},
        {"l2=0", false, 0, 0, 0, 0},
        {"l2=512K,", false, 0, 0, 0, 0},
        {",l2=512K", false, 0, 0, 0, 0},
        {"l2=512K,l2=512K", false, 0, 0, 0, 0},
        {"l4=1M", false, 0, 0, 0, 0},
        {"l2", false, 0, 0, 0, 0},
        {"l2=", false, 0, 0, 0, 0},
        {"l2=2G", false, 0, 0, 0, 0},
        {"l2=99999999999999999999999999999999999", false, 0, 0, 0, 0},
        {"cores=0", false, 0, 0, 0, 0},
        {"cores=2K", false, 0, 0, 0, 0},
        {"cores=-1", false, 0, 0, 0, 0},
    };
    dc_cpu plain = {0};
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_opts opt = {0};
        dc_job j;
        dc_cpu cpu = {0};
        snprintf(opt.machine, sizeof opt.machine, "%s", rows[i].text);
        dc_job_init(&j, &opt, NULL);
        const dc_status s = dc_host_detect(&j, "", &cpu);
        if (i == 0)
            plain = cpu;
        CHECK_EQ(s == DC_OK, rows[i].fine);
        CHECK(s == DC_OK || says(&j, "DEEPC_MACHINE"));
        if (s == DC_OK) {
            CHECK_EQ(cpu.target.l1, rows[i].l1 < 0 ? plain.target.l1 : (size_t)rows[i].l1);
            CHECK_EQ(cpu.target.l2, rows[i].l2 < 0 ? plain.target.l2 : (size_t)rows[i].l2);
            CHECK_EQ(cpu.target.l3, rows[i].l3 < 0 ? plain.target.l3 : (size_t)rows[i].l3);
            CHECK_EQ(cpu.cores, rows[i].cores < 0 ? 0 : rows[i].cores);
            const bool less = strncmp(rows[i].text, "baseline", 8) == 0;
            CHECK_EQ(cpu.target.vector_bytes, less ? 16 : plain.target.vector_bytes);
            CHECK_STR(cpu.target.name, less ? "cpu x86-64" : plain.target.name);
            if (less) { /* nothing of this machine's is left */
                dc_cpu whole = {0};
                strcpy(opt.machine, strchr(rows[i].text, ',') + 1);
                CHECK(dc_host_detect(&j, "baseline", &whole) == DC_OK);
                CHECK_EQ(memcmp(&whole.target, &cpu.target, sizeof whole.target), 0);
            }
        }
        dc_job_fini(&j);
    }
}

/* Names of the whole device. */
static void test_names(world *w)
{
    static const struct {
        const char *name, *device,
            *target; /* NULL: there is none, and `device` is in the sentence */
    } rows[] = {
        {"cpu:baseline", "cpu", "cpu x86-64"},
        {"cpu:cc:baseline", "cpu:cc", "cpu:cc x86-64"},
        {"cpu:native", "cpu", "cpu x86-64"},
        {"cpu:", "no device is called 'cpu:'", NULL},
        {"cpu:cc:", "cpu:cc:", NULL},
        {"cpu:baseline:cc", "no device is called 'cpu:baseline:cc'", NULL},
        {"cpu:sse9", "cpu:baseline", NULL},
        {"cpu2", "there are cpu, cpu:cc", NULL},
        {"eval:avx2", "no device is called", NULL},
    };
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        dc_device *d;
        bool interpret;
        const dc_status s = dc_backend_open(&w->j, rows[i].name, &d, &interpret);
        if (rows[i].target == NULL) {
            CHECK_EQ(s, DC_E_DEVICE);
            CHECK(says(&w->j, rows[i].device));
            w->j.err = (dc_err){0};
        } else if (CHECK_EQ(s, DC_OK)) {
            CHECK_STR(d->ops->name, rows[i].device);
            const char *target = d->ops->target(d)->name;
            CHECK(strncmp(target, rows[i].target, strlen(rows[i].target)) == 0);
            d->ops->free(d);
        }
    }
}

typedef struct listing {
    int n;
    bool usable[8];
    char text[8][400];
} listing;

static void see_device(void *ctx, const char *name, bool usable, const char *line)
{
    listing *l = ctx;
    l->usable[l->n] = usable;
    snprintf(l->text[l->n++], sizeof l->text[0], "%s: %s", name, line);
    printf("%s\n", l->text[l->n - 1]);
}

static void test_registry(world *w)
{
    dc_device *d;
    bool interpret;
    CHECK_EQ(dc_backend_open(&w->j, "cpu", &d, &interpret), DC_OK);
    CHECK(!interpret);
    CHECK_STR(d->ops->name, "cpu");
    d->ops->free(d);
    CHECK_EQ(dc_backend_open(&w->j, "eval", &d, &interpret), DC_OK);
    CHECK(interpret);
    d->ops->free(d);
    CHECK_EQ(dc_backend_open(&w->j, "gpu9", &d, &interpret), DC_E_DEVICE);
    CHECK(strstr(said(w), "cpu, ") != NULL && strstr(said(w), "eval, ") != NULL);
    w->j.err = (dc_err){0};

    listing l = {0};
    dc_backend_list(&w->opt, see_device, &l);
    CHECK(l.n >= 2);
    CHECK(strncmp(l.text[0], "cpu: ", 5) == 0);
    CHECK(strstr(l.text[0], "vectors of ") != NULL);
    CHECK(strstr(l.text[0], "LLVM") != NULL);
    CHECK(strstr(l.text[0], "instruction sets: native") != NULL);
    CHECK(strstr(l.text[0], "baseline") != NULL);
    int eval = 0;
    while (eval < l.n && strncmp(l.text[eval], "eval: ", 6) != 0)
        eval++;
    CHECK(eval < l.n && l.usable[eval]);

    dc_opts without = w->opt;
    snprintf(without.llvm, sizeof without.llvm, "/nonexistent.so");
    l.n = 0;
    dc_backend_list(&without, see_device, &l);
    CHECK(!l.usable[0]);
    CHECK(strstr(l.text[0], "/nonexistent.so") != NULL);
}

/* Two devices side by side: nothing is shared that freeing one takes from the other. */
static void test_two_devices(void)
{
    world a, b;
    dc_program *p, *q;
    if (!CHECK(open_with(&a, NULL, "")) || !CHECK(open_with(&b, NULL, "")))
        return;
    CHECK_EQ(CALL(&a, compile, &a.j, &axpy_source, &p), DC_OK);
    CHECK_EQ(CALL(&b, compile, &b.j, &axpy_source, &q), DC_OK);
    a.d->ops->program_free(a.d, p);
    close_world(&a);
    test_launches(&b, q);
    b.d->ops->program_free(b.d, q);
    CHECK_EQ(CALL(&b, compile, &b.j, &axpy_source, &q), DC_OK);
    b.d->ops->program_free(b.d, q);
    close_world(&b);
}

int main(void)
{
    world w;
    char line[400];
    if (!CHECK(open_with(&w, NULL, "")))
        return t_done();
    test_memory(&w);
    test_target(&w);
    test_copy_check(&w);
    test_empty(&w);
    test_registry(&w);
    test_sets();
    test_machine();
    test_names(&w);
    test_no_library("/nonexistent.so", "/nonexistent.so");
    test_no_library("libm.so.6", "is not LLVM");
    if (dc_cpu_describe(&w.opt, "", line, sizeof line)) {
        test_refusals(&w);
        test_long_text(&w);
        test_targets();
        test_two_devices();
    } else {
        T_SKIP(line);
    }
    close_world(&w);
    return t_done();
}
