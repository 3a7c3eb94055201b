/*
 * Recordings of the CPU device: loops, branches, checks, copies, slices and scratch with 1, 2, 3 and
 * 8 threads do what plain C does; memory that grows where it is.
 *
 * DEEPC_DEVICE=cpu:cc runs the same kernels from C.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/cpu_impl.h"
#include "backends/registry.h"

#include "tests/t.h"

enum { WIDE = 1000, SLOTS = 2, LIMIT = 5 };

static const int64_t widths[] = {1, 2, 3, 8};

/*
 * acc: out[i] = 3 out[i] + i + k, the sum by way of scratch. below: flag = k < limit, that stands in
 * the argument block.
 */
static const char *const llvm_text =
    "define void @acc(ptr %buf, ptr %block, ptr %scratch, i64 %begin, i64 %end) #0 {\n"
    "entry:\n"
    "  %op = load ptr, ptr %buf\n"
    "  %kq = getelementptr ptr, ptr %buf, i64 1\n"
    "  %kp = load ptr, ptr %kq\n"
    "  %k = load i32, ptr %kp\n"
    "  %last = getelementptr i32, ptr %scratch, i64 24\n"
    "  %some = icmp slt i64 %begin, %end\n"
    "  br i1 %some, label %loop, label %done\n"
    "loop:\n"
    "  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]\n"
    "  %o = getelementptr i32, ptr %op, i64 %i\n"
    "  %old = load i32, ptr %o\n"
    "  %m = mul i32 %old, 3\n"
    "  %t = trunc i64 %i to i32\n"
    "  %a = add i32 %t, %k\n"
    "  store volatile i32 %a, ptr %last\n"
    "  %b = load volatile i32, ptr %last\n"
    "  %s = add i32 %m, %b\n"
    "  store i32 %s, ptr %o\n"
    "  %next = add i64 %i, 1\n"
    "  %more = icmp slt i64 %next, %end\n"
    "  br i1 %more, label %loop, label %done\n"
    "done:\n"
    "  ret void\n"
    "}\n"
    "define void @below(ptr %buf, ptr %block, ptr %scratch, i64 %begin, i64 %end) #0 {\n"
    "  %fp = load ptr, ptr %buf\n"
    "  %kq = getelementptr ptr, ptr %buf, i64 1\n"
    "  %kp = load ptr, ptr %kq\n"
    "  %k = load i32, ptr %kp\n"
    "  %limit = load i32, ptr %block\n"
    "  %c = icmp slt i32 %k, %limit\n"
    "  %b = zext i1 %c to i8\n"
    "  store i8 %b, ptr %fp\n"
    "  ret void\n"
    "}\n"
    "attributes #0 = { nounwind \"no-builtins\" }\n";

static const char *const c_text =
    "#include <stdint.h>\n"
    "void acc(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)\n"
    "{\n"
    "    uint32_t *out = buf[0];\n"
    "    volatile uint32_t *last = (uint32_t *)scratch + 24;\n"
    "    (void)block;\n"
    "    for (int64_t i = begin; i < end; i++) {\n"
    "        *last = (uint32_t)i + *(const uint32_t *)buf[1];\n"
    "        out[i] = 3 * out[i] + *last;\n"
    "    }\n"
    "}\n"
    "void below(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)\n"
    "{\n"
    "    (void)scratch, (void)begin, (void)end;\n"
    "    *(uint8_t *)buf[0] = *(const int32_t *)buf[1] < *(const int32_t *)block;\n"
    "}\n";

static const char *const entries[] = {"acc", "below"};

typedef struct memory { /* slot 1 */
    int32_t counter, fault;
    uint8_t again, side;
    uint32_t a[WIDE], b[WIDE];
} memory;

static dc_opts opt;
static dc_job job;
static dc_device *dev;

/* clang-format off */
#define CALL(verb, ...) (dev->ops->verb(dev, __VA_ARGS__))
#define AT(member)      {1, offsetof(memory, member)}
#define BINDS(...) \
    .nbind = sizeof((const dc_bind[]){__VA_ARGS__}) / sizeof(dc_bind), \
    .bind = (const dc_bind[]){__VA_ARGS__}
/* clang-format on */

/*
 *   while again, at most 9 times:
 *     acc a; again = counter < limit; if side: acc b; else: b = a
 *     3 times: acc b
 *   check fault; acc a
 */
static dc_recording *record(dc_program *p)
{
    const dc_command command[] = {
        {.kind = DC_COMMAND_LOOP, .grid = 9, .nbody = 7, BINDS(AT(again), AT(counter))},
        {.program = p, .entry = 0, .grid = WIDE, .scratch = 100, BINDS(AT(a), AT(counter))},
        {.program = p, .entry = 1, .grid = 1, BINDS(AT(again), AT(counter))},
        {.kind = DC_COMMAND_BRANCH, .nbody = 1, .nelse = 1, BINDS(AT(side))},
        {.program = p, .entry = 0, .grid = WIDE, .scratch = 100, BINDS(AT(b), AT(counter))},
        {.kind = DC_COMMAND_COPY, .bytes = WIDE * 4, BINDS(AT(b), AT(a))},
        {.kind = DC_COMMAND_LOOP, .grid = 3, .nbody = 1},
        {.program = p, .entry = 0, .grid = WIDE, .scratch = 100, BINDS(AT(b), AT(counter))},
        {.kind = DC_COMMAND_CHECK, BINDS(AT(fault))},
        {.program = p, .entry = 0, .grid = WIDE, .scratch = 100, BINDS(AT(a), AT(counter))},
    };
    dc_recording *r = NULL;
    CHECK_EQ(CALL(record, &job, command, DC_COUNTOF(command), &r), DC_OK);
    return r;
}

static void acc(uint32_t *out, int32_t k)
{
    for (uint32_t i = 0; i < WIDE; i++)
        out[i] = 3 * out[i] + i + (uint32_t)k;
}

static void expect(memory *m)
{
    for (int32_t k = 0; k < 9 && m->again; k++) {
        m->counter = k;
        acc(m->a, k);
        m->again = k < LIMIT;
        if (m->side)
            acc(m->b, k);
        else
            memcpy(m->b, m->a, sizeof m->b);
        for (int i = 0; i < 3; i++)
            acc(m->b, k);
    }
    if (m->fault < 0)
        acc(m->a, m->counter);
}

static void start(memory *m, int how)
{
    memset(m, 0, sizeof *m);
    m->side = how & 1;
    m->again = (how & 2) != 0;
    m->fault = (how & 4) != 0 ? 77 : -1;
    for (uint32_t i = 0; i < WIDE; i++)
        m->a[i] = m->b[i] = i * i;
}

static void run_all(dc_recording *r, bool sliced)
{
    static memory want, got;
    int32_t limit[16] = {LIMIT};
    void *const slot[] = {limit, &got};
    uint64_t ns[10];
    for (int how = 0; how < 8; how++) {
        const dc_run_watch watch = {.ns = ns};
        dc_run_info info = {.deadline_ns = sliced ? 1 : 0, .watch = &watch};
        int slices = 0;
        memset(ns, 0, sizeof ns);
        start(&want, how);
        start(&got, how);
        expect(&want);
        do {
            CHECK_EQ(CALL(run, &job, r, slot, &info), DC_OK);
            slices++;
        } while (info.next != 0 && slices < 1000);
        CHECK(slices == 1 || (sliced && slices > 1));
        CHECK(!sliced || !want.again || slices > 30);
        CHECK_EQ(info.fault_command, want.fault < 0 ? -1 : 8);
        CHECK_EQ(info.fault_value, want.fault);
        CHECK(memcmp(&want, &got, sizeof got) == 0);
        CHECK((ns[9] > 0) == (want.fault < 0));
    }
}

/* Big enough, by its guess or after trials, to be split without being made to. */
static void test_chosen(dc_program *p)
{
    enum { MANY = 400000 };
    static uint32_t want[MANY], got[MANY];
    int32_t k[16] = {3};
    void *const slot[] = {k, got};
    for (int certain = 0; certain < 2; certain++) {
        const dc_command command = {.program = p,
                                    .grid = MANY,
                                    .scratch = 100,
                                    .cost_ns = certain ? 1000000000 : 0,
                                    BINDS({1, 0}, {0, 0})};
        dc_recording *r = NULL;
        CHECK_EQ(CALL(record, &job, &command, 1, &r), DC_OK);
        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        for (int turn = 0; turn < 6; turn++) {
            CHECK_EQ(CALL(run, &job, r, slot, NULL), DC_OK);
            for (uint32_t i = 0; i < MANY; i++)
                want[i] = 3 * want[i] + i + 3;
            CHECK(memcmp(want, got, sizeof got) == 0);
        }
        CALL(recording_free, r);
    }
}

static void test_reserve(void)
{
    const size_t mib = 1 << 20;
    void *mem[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(CALL(reserve, &job, (size_t)(i + 1) << 30, &mem[i]), DC_OK);
        CHECK_EQ((uintptr_t)mem[i] % 64, 0);
    }
    void *plain;
    CHECK_EQ(CALL(alloc, &job, 100, &plain), DC_OK);
    CALL(release, mem[1]);
    for (size_t size = 1; size <= 64 * mib; size = size * 5 + 3)
        for (int i = 0; i < 3; i += 2) {
            CHECK_EQ(CALL(commit, &job, mem[i], size), DC_OK);
            ((char *)mem[i])[size - 1] = (char)size;
            ((char *)mem[i])[0] = 42; /* what was written stays */
        }
    CHECK_EQ(CALL(commit, &job, mem[0], 1), DC_OK); /* never less */
    CHECK_EQ(((char *)mem[0])[0], 42);
    CALL(release, plain);
    CALL(release, mem[0]);
    CALL(release, mem[2]);
    CHECK_EQ(CALL(reserve, &job, SIZE_MAX / 2, &mem[0]), DC_E_NOMEM);
    job.err = (dc_err){0};
    CHECK_EQ(CALL(reserve, &job, PTRDIFF_MAX / 2, &mem[0]), DC_E_NOMEM);
    job.err = (dc_err){0};
    CHECK_EQ(CALL(reserve, &job, 0, &mem[0]), DC_OK);
    CALL(release, mem[0]);
}

static void test_width(int64_t width, bool split_all)
{
    bool interpret;
    dc_program *p;
    opt.threads = width;
    opt.check = split_all ? 2 : 0;
    if (!CHECK_EQ(dc_backend_open(&job, opt.device, &dev, &interpret), DC_OK))
        return;
    CHECK_EQ(dc_cpu_pool_width(((dc_cpu *)dev)->pool), width);
    const char *dialect = dev->ops->target(dev)->dialect;
    const bool c = strcmp(dialect, "c11") == 0;
    if (CHECK_EQ(CALL(compile, &job, &(dc_source){c ? c_text : llvm_text, dialect, entries, 2}, &p),
                 DC_OK)) {
        dc_recording *r = record(p);
        run_all(r, false);
        run_all(r, true);
        CALL(recording_free, r);
        test_chosen(p);
        CALL(program_free, p);
    }
    if (width == 1)
        test_reserve();
    dev->ops->free(dev);
}

int main(void)
{
    const char *bad;
    char line[400];
    dc_opts_init(&opt, &bad);
    dc_job_init(&job, &opt, NULL);
    if (strncmp(opt.device, "cpu", 3) != 0)
        snprintf(opt.device, sizeof opt.device, "cpu");
    if (strcmp(opt.device, "cpu") == 0 && !dc_cpu_describe(&opt, "", line, sizeof line)) {
        T_SKIP(line);
        return t_done();
    }
    for (size_t w = 0; w < DC_COUNTOF(widths); w++) {
        test_width(widths[w], true);
        test_width(widths[w], false);
    }
    dc_job_fini(&job);
    return t_done();
}
