/*
 * backends/opencl: addresses with arithmetic over handles, kernels of both kinds through compile,
 * record and run, slots that move, loops, branches, checks and slices, times, failures with their
 * words, threads that compile at once, contexts side by side and one after the other.
 *
 * A kernel costs PoCL some 100 ms where it is launched first, so there are few and each does a lot.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw, setenv */
#include "backends/opencl/internal.h"
#include "backends/registry.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"

typedef struct world {
    dc_opts opt;
    dc_job j;
    dc_device *d;
} world;

#define CALL(w, verb, ...) ((w)->d->ops->verb((w)->d, __VA_ARGS__))

static const char *said(const world *w)
{
    const char *s = w->j.err.fact.word[0];
    return s != NULL ? s : "";
}

static void forget(world *w)
{
    w->j.err = (dc_err){0};
}

/* The failure that the last call left speaks of `part`. */
static void check_said(world *w, const char *part)
{
    if (!CHECK(strstr(said(w), part) != NULL))
        printf("said: %s\n", said(w));
    forget(w);
}

static void begin_world(world *w, const char *library, const char *target)
{
    const char *bad;
    dc_opts_init(&w->opt, &bad);
    snprintf(w->opt.opencl, sizeof w->opt.opencl, "%s", library);
    snprintf(w->opt.target, sizeof w->opt.target, "%s", target);
    dc_job_init(&w->j, &w->opt, NULL);
    w->d = NULL;
}

static bool open_world(world *w, const char *target)
{
    begin_world(w, "", target);
    if (CHECK_EQ(dc_opencl_open(&w->j, 0, &w->d), DC_OK))
        return true;
    printf("said: %s\n", said(w));
    dc_job_fini(&w->j);
    return false;
}

/* Nothing of OpenCL is left when memory and the cache of programs are gone. */
static void close_world(world *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    CHECK_EQ(cl->range.n, 0);
    dc_cl_programs_close(cl);
    CHECK_EQ(atomic_load(&cl->objects), 0);
    w->d->ops->free(w->d);
    dc_job_fini(&w->j);
}

static char *alloc(world *w, size_t bytes)
{
    void *p = NULL;
    CHECK_EQ(CALL(w, alloc, &w->j, bytes, &p), DC_OK);
    CHECK_EQ((uintptr_t)p % 4096, 0);
    return p;
}

static void release(world *w, void *p)
{
    w->d->ops->release(w->d, p);
}

static void put(world *w, void *to, const void *from, size_t bytes)
{
    CHECK_EQ(CALL(w, upload, &w->j, to, from, bytes), DC_OK);
}

static void get(world *w, void *to, const void *from, size_t bytes)
{
    CHECK_EQ(CALL(w, download, &w->j, to, from, bytes), DC_OK);
}

/* --- memory ------------------------------------------------------------------------------- */

enum { MANY = 40 };

/* Released in an order of their own; what is alive keeps its content, no address comes again. */
static void test_addresses(world *w)
{
    char *at[MANY];
    for (int i = 0; i < MANY; i++) {
        const int32_t v[2] = {i, -i};
        at[i] = alloc(w, 4096 + (size_t)i);
        put(w, at[i] + 4088, v, sizeof v);
        for (int k = 0; k < i; k++)
            CHECK(at[k] + 4096 + k < at[i] || at[i] + 4096 + i < at[k]);
    }
    for (int i = 0; i < MANY; i += 3)
        release(w, at[i]);
    char *later = alloc(w, 10);
    for (int i = 0; i < MANY; i++)
        CHECK(later != at[i]);
    for (int i = 0; i < MANY; i++) {
        int32_t v[2] = {0, 0};
        if (i % 3 == 0)
            continue;
        get(w, v, at[i] + 4088, sizeof v);
        CHECK(v[0] == i && v[1] == -i);
        release(w, at[i]);
    }
    release(w, later);
    release(w, NULL);
}

static void test_sizes(world *w)
{
    char *nothing = alloc(w, 0), byte = 5;
    put(w, nothing, NULL, 0);
    get(w, NULL, nothing, 0);
    char *one = alloc(w, 1);
    CHECK(one != nothing);
    put(w, one, &byte, 1);
    byte = 0;
    get(w, &byte, one, 1);
    CHECK_EQ(byte, 5);
    CHECK_EQ(CALL(w, copy, &w->j, one + 1, one, 0), DC_OK); /* at the end of an allocation */
    release(w, one);
    release(w, nothing);

    static const size_t sizes[] = {(size_t)1 << 60, SIZE_MAX - 10, SIZE_MAX};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        void *p;
        CHECK_EQ(CALL(w, alloc, &w->j, sizes[i], &p), DC_E_NOMEM);
        check_said(w, "the device gives ");
    }
}

enum { BYTES = 300 };

/* A copy inside one allocation, against memmove. */
static void copy_inside(world *w, char *mem, size_t to, size_t from, size_t bytes)
{
    unsigned char want[BYTES], got[BYTES];
    for (int i = 0; i < BYTES; i++)
        want[i] = (unsigned char)(i * 7);
    put(w, mem, want, BYTES);
    memmove(want + to, want + from, bytes);
    CHECK_EQ(CALL(w, copy, &w->j, mem + to, mem + from, bytes), DC_OK);
    get(w, got, mem, BYTES);
    CHECK(memcmp(want, got, BYTES) == 0);
}

static void test_copies(world *w)
{
    char *a = alloc(w, BYTES), *b = alloc(w, BYTES);
    copy_inside(w, a, 0, 150, 150);
    copy_inside(w, a, 150, 0, 150);
    copy_inside(w, a, 1, 0, 299);
    copy_inside(w, a, 0, 1, 299);
    copy_inside(w, a, 100, 104, 64);
    copy_inside(w, a, 17, 17, 30);
    unsigned char in[BYTES], out[BYTES];
    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(255 - i);
    put(w, a, in, BYTES);
    put(w, b, in, BYTES);
    CHECK_EQ(CALL(w, copy, &w->j, b + 9, a + 3, 200), DC_OK);
    get(w, out, b, BYTES);
    CHECK(memcmp(out, in, 9) == 0 && memcmp(out + 9, in + 3, 200) == 0 &&
          memcmp(out + 209, in + 209, BYTES - 209) == 0);
    release(w, a);
    release(w, b);
}

/* --- kernels ------------------------------------------------------------------------------ */

/*
 * axpy      c[i] = a[i] * block[0] + b[i]; at position i
 * advance   x[0] += number of the iteration; going = x[0] < limit
 */
#define BODY_AXPY                                                            \
    "    __global const float *a = (__global const float *)(b0 + o0);\n"     \
    "    __global const float *b = (__global const float *)(b1 + o1);\n"     \
    "    __global const float *block = (__global const float *)(b2 + o2);\n" \
    "    __global float *c = (__global float *)(b3 + o3);\n"
#define BODY_ADVANCE                                                  \
    "    *(__global int *)(b0 + o0) += *(__global int *)(b1 + o1);\n" \
    "    *(b2 + o2) = *(__global int *)(b0 + o0) < *(__global int *)(b3 + o3);\n"
#define BUFFERS                                                                        \
    "__global uchar *b0, ulong o0, __global uchar *b1, ulong o1, __global uchar *b2, " \
    "ulong o2, __global uchar *b3, ulong o3"

/* stacked: each worker fills its scratch and sums it up; scratch is 64 bytes. */
static const char *const for_workers =
    "__kernel void axpy(" BUFFERS ", __global uchar *scratch, long positions)\n"
    "{\n" BODY_AXPY "    for (long i = get_global_id(0); i < positions; i += get_global_size(0))\n"
    "        c[i] = a[i] * block[0] + b[i];\n"
    "}\n"
    "__kernel void advance(" BUFFERS ", __global uchar *scratch, long positions)\n"
    "{\n" BODY_ADVANCE "}\n"
    "__kernel void stacked(__global uchar *b0, ulong o0, __global uchar *scratch,\n"
    "                      long positions)\n"
    "{\n"
    "    __global int *mine = (__global int *)(scratch + 64 * get_global_id(0));\n"
    "    for (long p = get_global_id(0); p < positions; p += get_global_size(0)) {\n"
    "        for (int i = 0; i < 16; i++)\n"
    "            mine[i] = (int)p + i;\n"
    "        int sum = 0;\n"
    "        for (int i = 0; i < 16; i++)\n"
    "            sum += mine[i];\n"
    "        ((__global int *)(b0 + o0))[p] = sum;\n"
    "    }\n"
    "}\n";

/* stacked: the same numbers, made by a group whose threads read what others wrote. */
static const char *const for_groups =
    "__kernel void axpy(" BUFFERS ")\n"
    "{\n" BODY_AXPY "    const long i = get_group_id(0);\n"
    "    if (get_local_id(0) == 0)\n"
    "        c[i] = a[i] * block[0] + b[i];\n"
    "}\n"
    "__kernel void advance(" BUFFERS ")\n"
    "{\n"
    "    if (get_local_id(0) > 0)\n"
    "        return;\n" BODY_ADVANCE "}\n"
    "__kernel void stacked(__global uchar *b0, ulong o0)\n"
    "{\n"
    "    __local int all[16];\n"
    "    const int t = (int)get_local_id(0);\n"
    "    all[15 - t] = (int)get_group_id(0) + t;\n"
    "    for (int n = 8; n > 0; n /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (t < n)\n"
    "            all[t] += all[t + n];\n"
    "    }\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (t == 5)\n"
    "        ((__global int *)(b0 + o0))[get_group_id(0)] = all[0];\n"
    "}\n";

enum { AXPY, ADVANCE, STACKED, COUNT = 37, THREADS = 16 };
static const char *const entries[] = {"axpy", "advance", "stacked"};

static dc_program *compile_all(world *w)
{
    const bool simt = w->d->ops->target(w->d)->simt;
    const dc_source src = {simt ? for_groups : for_workers, "opencl", entries, 3};
    dc_program *p = NULL;
    if (!CHECK_EQ(CALL(w, compile, &w->j, &src, &p), DC_OK))
        printf("said: %s\n", said(w));
    return p;
}

static dc_item launch(dc_program *p, uint32_t entry, int64_t grid, uint32_t nbind,
                      const dc_bind *bind)
{
    return (dc_item){.kind = DC_ITEM_LAUNCH,
                     .program = p,
                     .entry = entry,
                     .grid = grid,
                     .threads = THREADS,
                     .scratch = entry == STACKED ? 64 : 0,
                     .nbind = nbind,
                     .bind = bind};
}

static dc_recording *record(world *w, const dc_item *item, uint32_t n)
{
    dc_recording *r = NULL;
    if (!CHECK_EQ(CALL(w, record, &w->j, item, n, &r), DC_OK))
        printf("said: %s\n", said(w));
    return r;
}

/* Slot 0 block, 1 a and b (in one allocation), 2 c: they move between the runs. */
static void test_launches(world *w, dc_program *p)
{
    enum { OFFSET = 4 * sizeof(float) };
    const dc_bind axpy[] = {{1, 0}, {1, COUNT * sizeof(float)}, {0, 8}, {2, OFFSET}};
    const dc_bind sums[] = {{2, OFFSET + COUNT * sizeof(float)}};
    const dc_bind copy[] = {{2, 0}, {1, 4}};
    dc_item items[] = {
        launch(p, AXPY, COUNT, 4, axpy),
        launch(p, STACKED, COUNT, 1, sums),
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = copy, .bytes = 8},
        launch(p, AXPY, 0, 4, axpy),
    };
    dc_recording *r = record(w, items, 4);
    memset(items, 0, sizeof items); /* copied */
    char *block = alloc(w, 16), *ab = NULL, *c = NULL;
    for (int round = 0; round < 3; round++) {
        const float scalar = (float)round + 0.5f;
        float in[2 * COUNT], out[4 + COUNT];
        int32_t sum[COUNT];
        for (int i = 0; i < 2 * COUNT; i++)
            in[i] = (float)(i + round) - 3.25f;
        if (round < 2) { /* the last round runs where the second ran */
            release(w, ab);
            release(w, c);
            ab = alloc(w, sizeof in);
            c = alloc(w, sizeof out + sizeof sum);
        }
        put(w, ab, in, sizeof in);
        put(w, block + 8, &scalar, sizeof scalar);
        void *const slot[] = {block, ab, c};
        CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
        get(w, out, c, sizeof out);
        get(w, sum, c + sizeof out, sizeof sum);
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            wrong += out[4 + i] != in[i] * scalar + in[COUNT + i];
            wrong += sum[i] != 16 * i + 120;
        }
        CHECK_EQ(wrong, 0);
        CHECK(out[0] == in[1] && out[1] == in[2]);
    }
    release(w, ab);
    release(w, c);
    release(w, block);
    w->d->ops->recording_free(w->d, r);
}

/* copy, check, copy: the second copy happens only when the check finds -1. */
static void test_check(world *w)
{
    const dc_bind first[] = {{1, 0}, {0, 4}}, checked[] = {{0, 0}}, second[] = {{1, 4}, {0, 8}};
    const dc_item items[] = {
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = first, .bytes = 4},
        {.kind = DC_ITEM_CHECK, .nbind = 1, .bind = checked},
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = second, .bytes = 4},
    };
    dc_recording *r = record(w, items, 3);
    int32_t in[3] = {-1, 10, 20}, out[2] = {0, 0};
    char *from = alloc(w, sizeof in), *to = alloc(w, sizeof out);
    put(w, from, in, sizeof in);
    put(w, to, out, sizeof out);
    dc_run_info info = {.fault_item = 3};
    void *const slot[] = {from, to};
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_item, -1);
    get(w, out, to, sizeof out);
    CHECK(out[0] == 10 && out[1] == 20);

    in[0] = 17, in[1] = 11, in[2] = 21;
    put(w, from, in, sizeof in);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_item, 1);
    CHECK_EQ(info.fault_value, 17);
    get(w, out, to, sizeof out);
    CHECK(out[0] == 11 && out[1] == 20);

    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_E_DEVICE); /* nobody to tell */
    forget(w);
    w->d->ops->recording_free(w->d, r);
    release(w, from);
    release(w, to);
}

/* In one buffer: x 0, iteration 4, limit 8, going 12, which side 13, what the sides copy 16. */
typedef struct state {
    int32_t x, iteration, limit;
    bool going, side;
    int32_t taken, one, two;
} state;

static void run_slices(world *w, dc_recording *r, void *const *slot, uint64_t deadline, int most)
{
    dc_run_info info = {.deadline_ns = deadline};
    int slices = 0;
    do {
        CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
        CHECK_EQ(info.fault_item, -1);
        slices++;
    } while (info.next != 0 && slices < 100);
    CHECK_EQ(info.next, 0);
    CHECK_EQ(slices > 1, most > 1);
}

/* x = 0 + 1 + 2 + ... while it is below the limit; then one of two copies. */
static void test_control(world *w, dc_program *p)
{
#define AT(field)                 \
    {                             \
        0, offsetof(state, field) \
    }
    const dc_bind loop[] = {AT(going), AT(iteration)};
    const dc_bind step[] = {AT(x), AT(iteration), AT(going), AT(limit)};
    const dc_bind side[] = {AT(side)}, one[] = {AT(taken), AT(one)}, two[] = {AT(taken), AT(two)};
#undef AT
    const dc_item items[] = {
        {.kind = DC_ITEM_LOOP, .grid = 50, .nbind = 2, .bind = loop, .nbody = 1},
        launch(p, ADVANCE, 1, 4, step),
        {.kind = DC_ITEM_BRANCH, .nbind = 1, .bind = side, .nbody = 1, .nelse = 1},
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = one, .bytes = 4},
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = two, .bytes = 4},
    };
    dc_recording *r = record(w, items, 5);
    char *mem = alloc(w, sizeof(state));
    void *const slot[] = {mem};
    for (int round = 0; round < 4; round++) {
        const bool cut = round >= 2;
        state s = {.limit = 20, .going = true, .side = round % 2 == 1, .one = 111, .two = 222};
        put(w, mem, &s, sizeof s);
        run_slices(w, r, slot, cut ? 1 : 0, cut ? 2 : 1);
        get(w, &s, mem, sizeof s);
        CHECK_EQ(s.x, 21); /* 0 + 1 + ... + 6 */
        CHECK_EQ(s.iteration, 6);
        CHECK(!s.going);
        CHECK_EQ(s.taken, round % 2 == 1 ? 111 : 222);
    }
    state s = {.limit = 1 << 30, .going = true, .side = true, .one = 1};
    put(w, mem, &s, sizeof s);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
    get(w, &s, mem, sizeof s);
    CHECK_EQ(s.x, 49 * 25); /* the most iterations there are */
    CHECK_EQ(s.iteration, 49);
    w->d->ops->recording_free(w->d, r);
    release(w, mem);
}

static void test_times(world *w, dc_program *p)
{
    const dc_bind sums[] = {{0, 0}}, copy[] = {{0, 4096}, {0, 0}};
    const dc_item items[] = {
        launch(p, STACKED, COUNT, 1, sums),
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = copy, .bytes = 64},
        launch(p, STACKED, 0, 1, sums),
    };
    dc_recording *r = record(w, items, 3);
    char *mem = alloc(w, 8192);
    uint64_t spent[3] = {0};
    int32_t out[16];
    dc_run_info info = {.nanoseconds = spent};
    void *const slot[] = {mem};
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK(spent[0] > 0 && spent[0] < UINT64_C(60000000000));
    CHECK(spent[1] > 0);
    CHECK_EQ(spent[2], 0); /* nothing was launched */
    get(w, out, mem + 4096, sizeof out);
    CHECK_EQ(out[15], 16 * 15 + 120);
    w->d->ops->recording_free(w->d, r);
    release(w, mem);
}

static void test_empty(world *w)
{
    dc_recording *r = record(w, NULL, 0);
    CHECK_EQ(CALL(w, run, &w->j, r, NULL, NULL), DC_OK);
    w->d->ops->recording_free(w->d, r);
    w->d->ops->recording_free(w->d, NULL);
    w->d->ops->program_free(w->d, NULL);
}

/* --- failures ----------------------------------------------------------------------------- */

static void refused(world *w, const dc_source *src, const char *part)
{
    dc_program *p;
    const int objects = atomic_load(&dc_cl_of(w->d)->objects);
    forget(w);
    CHECK_EQ(CALL(w, compile, &w->j, src, &p), DC_E_BUILD);
    check_said(w, part);
    CHECK(atomic_load(&dc_cl_of(w->d)->objects) <= objects + 1); /* what built may be kept */
}

/* A kernel of n buffers. */
static void many_buffers(world *w, uint32_t n, dc_text *out)
{
    dc_text_puts(out, "__kernel void k(");
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, "%s__global uchar *b%u, ulong o%u", i > 0 ? ", " : "", i, i);
    if (!w->d->ops->target(w->d)->simt)
        dc_text_puts(out, ", __global uchar *scratch, long positions");
    dc_text_puts(out, ") { b0[o0] = 1; }\n");
}

static void test_refusals(world *w)
{
    static const char *const k[] = {"k"};
    dc_text text = {0};
    refused(w,
            &(dc_source){"__kernel void k(__global int *a)\n{\n    a[0] = b;\n}\n", "opencl", k, 1},
            "refuses a kernel: 3:12: use of undeclared identifier 'b'");
    refused(w, &(dc_source){"__kernel void other(__global int *a) { a[0] = 1; }\n", "opencl", k, 1},
            "kernel 'k': CL_INVALID_KERNEL_NAME");
    refused(w, &(dc_source){"", "llvm", k, 1}, "not as 'llvm'");
    const size_t most = dc_cl_of(w->d)->limits.max_parameters / 16;
    if (most > 500) {
        T_SKIP("the device takes any number of parameters");
        return;
    }
    many_buffers(w, (uint32_t)most + 1, &text);
    refused(w, &(dc_source){text.s, "opencl", k, 1}, "bytes of parameters, the device takes ");
    dc_text_free(&text);
}

/* A group that is larger than the device runs. */
static void test_large_group(world *w, dc_program *p)
{
    const dc_bind sums[] = {{0, 0}};
    dc_item item = launch(p, STACKED, COUNT, 1, sums);
    dc_recording *r;
    const int objects = atomic_load(&dc_cl_of(w->d)->objects);
    item.threads = 1 << 20;
    CHECK_EQ(CALL(w, record, &w->j, &item, 1, &r), DC_E_BUILD);
    check_said(w, "kernel 'stacked' needs groups of 1048576 threads");
    CHECK_EQ(atomic_load(&dc_cl_of(w->d)->objects), objects);
}

static void not_opened(uint32_t number, const char *library, const char *target, dc_status status,
                       const char *part)
{
    world w;
    begin_world(&w, library, target);
    CHECK_EQ(dc_opencl_open(&w.j, number, &w.d), status);
    check_said(&w, part);
    dc_job_fini(&w.j);
}

static void test_not_opened(void)
{
    not_opened(0, "/nonexistent.so", "", DC_E_DEVICE, "/nonexistent.so");
    not_opened(0, "libm.so.6", "", DC_E_DEVICE, "libm.so.6 has no clGetPlatformIDs");
    not_opened(9999, "", "", DC_E_DEVICE, "no device opencl:9999");
    not_opened(0, "", "avx2", DC_E_VALUE, "DEEPC_TARGET");
}

/* --- calls of OpenCL that fail ------------------------------------------------------------ */

/*
 * The calls below, whose table the test changes, do what they always do until `left` have been made;
 * then one fails. There is one of these at a time.
 */
static struct faults {
    dc_cl_api real;
    int left;
    cl_int error;
} faults;

static bool fails(cl_int *error)
{
    const bool now = faults.left-- == 0;
    *error = now ? faults.error : CL_SUCCESS;
    return now;
}

static cl_mem create_buffer(cl_context context, uint64_t flags, size_t bytes, void *host,
                            cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateBuffer(context, flags, bytes, host, error);
}

static cl_program create_program(cl_context context, cl_uint n, const char **text,
                                 const size_t *length, cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateProgramWithSource(context, n, text, length, error);
}

static cl_int build_program(cl_program program, cl_uint n, const cl_device *device,
                            const char *options, void (*notify)(cl_program, void *), void *arg)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.BuildProgram(program, n, device, options, notify, arg);
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateKernel(program, name, error);
}

static cl_int set_arg(cl_kernel kernel, cl_uint i, size_t bytes, const void *value)
{
    cl_int error;
    return fails(&error) ? error : faults.real.SetKernelArg(kernel, i, bytes, value);
}

static cl_int enqueue(cl_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                      const size_t *global, const size_t *local, cl_uint nwait,
                      const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueNDRangeKernel(queue, kernel, dims, offset, global,
                                                            local, nwait, wait, event);
}

static cl_int enqueue_copy(cl_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at,
                           size_t bytes, cl_uint nwait, const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueCopyBuffer(queue, from, to, from_at, to_at, bytes,
                                                         nwait, wait, event);
}

static cl_int read_buffer(cl_queue queue, cl_mem from, cl_uint blocking, size_t at, size_t bytes,
                          void *to, cl_uint nwait, const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueReadBuffer(queue, from, blocking, at, bytes, to,
                                                         nwait, wait, event);
}

static cl_int finish(cl_queue queue)
{
    cl_int error;
    return fails(&error) ? error : faults.real.Finish(queue);
}

static void begin_faults(world *w, int left, cl_int error)
{
    dc_cl_api *fn = &dc_cl_of(w->d)->lib.fn;
    faults.left = left;
    faults.error = error;
    fn->CreateBuffer = create_buffer;
    fn->CreateProgramWithSource = create_program;
    fn->BuildProgram = build_program;
    fn->CreateKernel = create_kernel;
    fn->SetKernelArg = set_arg;
    fn->EnqueueNDRangeKernel = enqueue;
    fn->EnqueueCopyBuffer = enqueue_copy;
    fn->EnqueueReadBuffer = read_buffer;
    fn->Finish = finish;
}

static void end_faults(world *w)
{
    dc_cl_of(w->d)->lib.fn = faults.real;
}

/* What a caller holds while it compiles, records and runs; all of it goes at the end. */
typedef struct holding {
    world *w;
    dc_program *p;
    dc_recording *r;
    void *mem;
    int32_t out[COUNT];
} holding;

/* The launch goes through the slot `mem`, whose content is copied from its first half. */
static dc_status use_device(dc_job *j, void *arg)
{
    holding *h = arg;
    world *w = h->w;
    const dc_bind sums[] = {{0, 0}}, copy[] = {{0, 4096}, {0, 0}}, checked[] = {{0, 8000}};
    const int32_t minus = -1;
    const dc_source src = {for_workers, "opencl", entries, 3};
    DC_TRY(CALL(w, compile, j, &src, &h->p));
    const dc_item items[] = {
        launch(h->p, STACKED, COUNT, 1, sums),
        {.kind = DC_ITEM_CHECK, .nbind = 1, .bind = checked},
        {.kind = DC_ITEM_COPY, .nbind = 2, .bind = copy, .bytes = sizeof h->out},
    };
    DC_TRY(CALL(w, alloc, j, 8192, &h->mem));
    DC_TRY(CALL(w, upload, j, (char *)h->mem + 8000, &minus, sizeof minus));
    DC_TRY(CALL(w, record, j, items, 3, &h->r));
    void *const slot[] = {h->mem};
    dc_run_info info = {.deadline_ns = dc_clock_ns() + UINT64_C(60000000000)};
    DC_TRY(CALL(w, run, j, h->r, slot, &info));
    return CALL(w, download, j, h->out, (char *)h->mem + 4096, sizeof h->out);
}

static void give_back(holding *h)
{
    const dc_device_ops *ops = h->w->d->ops;
    ops->recording_free(h->w->d, h->r);
    ops->program_free(h->w->d, h->p);
    ops->release(h->w->d, h->mem);
    dc_cl_programs_close(dc_cl_of(h->w->d));
    CHECK_EQ(atomic_load(&dc_cl_of(h->w->d)->objects), 0);
}

/* Whichever call fails, the failure is a record and nothing stays behind. */
static void test_faults(void)
{
    world w;
    dc_status status = DC_E_DEVICE;
    int n = 0;
    if (!open_world(&w, "workers"))
        return;
    faults.real = dc_cl_of(w.d)->lib.fn;
    for (; status != DC_OK && n < 100; n++) {
        holding h = {.w = &w};
        char text[300];
        begin_faults(&w, n, CL_OUT_OF_RESOURCES);
        status = dc_protect(&w.j, use_device, &h);
        end_faults(&w);
        dc_err_render(&w.j.err, 0, text, sizeof text);
        if (status == DC_OK)
            CHECK_EQ(h.out[COUNT - 1], 16 * (COUNT - 1) + 120);
        else if (!CHECK(status == DC_E_NOMEM || strstr(text, "CL_OUT_OF_RESOURCES") != NULL))
            printf("call %d: %s\n", n, text);
        forget(&w);
        give_back(&h);
    }
    CHECK(n > 12 && n < 100);
    close_world(&w);
}

/* A run that failed at a parameter is run again, and sets it then. */
static void test_run_again(void)
{
    world w;
    holding h = {.w = &w};
    if (!open_world(&w, "workers"))
        return;
    faults.real = dc_cl_of(w.d)->lib.fn;
    CHECK_EQ(dc_protect(&w.j, use_device, &h), DC_OK);
    void *moved = alloc(&w, 8192);
    const int32_t minus = -1;
    put(&w, (char *)moved + 8000, &minus, sizeof minus);
    void *const slot[] = {moved};
    for (int n = 0; n < 3; n++) { /* buffer, offset, launch */
        begin_faults(&w, n, CL_INVALID_MEM_OBJECT);
        CHECK_EQ(CALL(&w, run, &w.j, h.r, slot, NULL), DC_E_DEVICE);
        end_faults(&w);
        check_said(&w, n < 2 ? "of kernel 'stacked': CL_INVALID_MEM_OBJECT"
                             : "a run, at kernel 'stacked': CL_INVALID_MEM_OBJECT");
    }
    CHECK_EQ(CALL(&w, run, &w.j, h.r, slot, NULL), DC_OK);
    memset(h.out, 0, sizeof h.out);
    get(&w, h.out, (char *)moved + 4096, sizeof h.out);
    CHECK_EQ(h.out[COUNT - 1], 16 * (COUNT - 1) + 120);
    release(&w, moved);
    give_back(&h);
    close_world(&w);
}

/* --- several of them ---------------------------------------------------------------------- */

enum { COMPILERS = 4 };

typedef struct compiler {
    pthread_t thread;
    world *w;
    int number;
    dc_status status;
    dc_program *own, *same;
    char error[200];
} compiler;

static dc_status compile_two(dc_job *j, void *arg)
{
    compiler *c = arg;
    static const char *const k[] = {"k"};
    char text[200];
    snprintf(text, sizeof text,
             "__kernel void k(__global uchar *b, ulong o, __global uchar *s, long n)\n"
             "{ *(__global int *)(b + o) = %d; }\n",
             100 + c->number);
    DC_TRY(CALL(c->w, compile, j, (&(dc_source){text, "opencl", k, 1}), &c->own));
    return CALL(c->w, compile, j,
                (&(dc_source){"__kernel void k(__global uchar *b, ulong o, __global uchar *s, "
                              "long n) { *(__global int *)(b + o) = 7; }\n",
                              "opencl", k, 1}),
                &c->same);
}

static void *compile_thread(void *arg)
{
    compiler *c = arg;
    dc_job j;
    dc_job_init(&j, &c->w->opt, NULL);
    c->status = dc_protect(&j, compile_two, c);
    if (c->status != DC_OK)
        dc_err_render(&j.err, 0, c->error, sizeof c->error);
    dc_job_fini(&j);
    return NULL;
}

/* Meanwhile the context's thread uses memory. */
static void test_threads(world *w)
{
    compiler c[COMPILERS];
    int started = 0;
    for (; started < COMPILERS; started++) {
        c[started] = (compiler){.w = w, .number = started};
        if (!CHECK_EQ(pthread_create(&c[started].thread, NULL, compile_thread, &c[started]), 0))
            break;
    }
    test_addresses(w);
    for (int i = 0; i < started; i++) {
        pthread_join(c[i].thread, NULL);
        if (!CHECK_EQ(c[i].status, DC_OK))
            printf("said: %s\n", c[i].error);
    }
    const dc_bind bind[] = {{0, 0}};
    char *mem = alloc(w, 4);
    void *const slot[] = {mem};
    for (int i = 0; i < started; i++) {
        const dc_item item = launch(i % 2 == 0 ? c[i].own : c[i].same, 0, 1, 1, bind);
        dc_recording *r = record(w, &item, 1);
        int32_t v = 0;
        CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
        get(w, &v, mem, sizeof v);
        CHECK_EQ(v, i % 2 == 0 ? 100 + i : 7);
        w->d->ops->recording_free(w->d, r);
        w->d->ops->program_free(w->d, c[i].own);
        w->d->ops->program_free(w->d, c[i].same);
    }
    release(w, mem);
}

/* The same text again costs no build, even after its program was freed. */
static void test_cache(world *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    const unsigned before = atomic_load(&cl->builds);
    dc_program *p = compile_all(w), *q = compile_all(w);
    CHECK_EQ(atomic_load(&cl->builds), before);
    w->d->ops->program_free(w->d, p);
    test_launches(w, q);
    w->d->ops->program_free(w->d, q);
}

/* More texts than are kept: the oldest goes, the one in use between stays. */
static void test_cache_full(world *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    static const char *const k[] = {"k"};
    w->d->ops->program_free(w->d, compile_all(w));
    const unsigned before = atomic_load(&cl->builds);
    for (int i = 0; i < DC_CL_BUILT + 2; i++) {
        dc_program *p = NULL;
        char text[100];
        snprintf(text, sizeof text, "__kernel void k(__global int *a) { a[0] = %d; }\n", i);
        CHECK_EQ(CALL(w, compile, &w->j, (&(dc_source){text, "opencl", k, 1}), &p), DC_OK);
        w->d->ops->program_free(w->d, p);
        w->d->ops->program_free(w->d, compile_all(w));
    }
    CHECK_EQ(atomic_load(&cl->builds), before + DC_CL_BUILT + 2);
    CHECK_EQ(atomic_load(&cl->objects), DC_CL_BUILT);
}

static void test_two_devices(world *a)
{
    world b;
    if (!open_world(&b, a->opt.target))
        return;
    dc_program *p = compile_all(a), *q = compile_all(&b);
    a->d->ops->program_free(a->d, p);
    test_launches(&b, q);
    test_check(a);
    b.d->ops->program_free(b.d, q);
    close_world(&b);
}

static void test_many_devices(void)
{
    for (int i = 0; i < 100; i++) {
        world w;
        if (!open_world(&w, ""))
            return;
        char *mem = alloc(&w, 100);
        put(&w, mem, "abc", 4);
        if (i % 2 == 0) /* memory that was not given back is with the device */
            release(&w, mem);
        dc_cl_memory_close(dc_cl_of(w.d));
        close_world(&w);
    }
}

/* --- the registry ------------------------------------------------------------------------- */

typedef struct listing {
    int n;
    char text[400];
    bool usable;
} listing;

static void see_device(void *ctx, const char *name, bool usable, const char *line)
{
    listing *l = ctx;
    if (strncmp(name, "opencl", 6) != 0)
        return;
    l->n++;
    l->usable = usable;
    snprintf(l->text, sizeof l->text, "%s: %s", name, line);
    printf("%s\n", l->text);
}

static void test_registry(world *w)
{
    static const char *const names[] = {"opencl", "opencl:0"};
    static const char *const others[] = {"opencl:", "opencl:x", "opencl0", "opencl:0x", "openc"};
    dc_device *d;
    bool interpret = true;
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        CHECK_EQ(dc_backend_open(&w->j, names[i], &d, &interpret), DC_OK);
        CHECK(!interpret);
        CHECK_STR(d->ops->name, "opencl");
        d->ops->free(d);
    }
    for (size_t i = 0; i < DC_COUNTOF(others); i++) {
        CHECK_EQ(dc_backend_open(&w->j, others[i], &d, &interpret), DC_E_DEVICE);
        check_said(w, "opencl:0");
    }
    CHECK_EQ(dc_backend_open(&w->j, "opencl:999999", &d, &interpret), DC_E_DEVICE);
    check_said(w, "no device opencl:999999");

    listing l = {0};
    dc_backend_list(&w->opt, see_device, &l);
    CHECK_EQ(l.n, dc_opencl_count(&w->opt));
    CHECK(l.n > 0 && strncmp(l.text, "opencl:", 7) == 0);

    dc_opts without = w->opt;
    snprintf(without.opencl, sizeof without.opencl, "/nonexistent.so");
    l = (listing){0};
    dc_backend_list(&without, see_device, &l);
    CHECK_EQ(l.n, 1);
    CHECK(!l.usable && strncmp(l.text, "opencl: ", 8) == 0);
    CHECK(strstr(l.text, "/nonexistent.so") != NULL);
}

static void test_target(world *w)
{
    const dc_target *t = w->d->ops->target(w->d);
    CHECK_STR(t->dialect, "opencl");
    CHECK_EQ(t->simt, strcmp(w->opt.target, "simt") == 0);
    if (t->simt)
        CHECK_EQ(t->vector_bytes, 4);
    else
        CHECK(t->vector_bytes == 16 || t->vector_bytes == 32 || t->vector_bytes == 64);
    CHECK(t->group_threads >= 1 && t->group_threads <= 256);
    CHECK(t->group_bytes > 0);
    CHECK_EQ(t->lanes, 0);
    CHECK(strlen(t->name) > strlen("opencl simt 0123456789abcdef "));
}

/* --- all ---------------------------------------------------------------------------------- */

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    DC_UNUSED(st);
    DC_UNUSED(kind);
    DC_UNUSED(ftw);
    return remove(path);
}

static void test_form(const char *target)
{
    world w;
    if (!open_world(&w, target))
        return;
    test_target(&w);
    dc_program *p = compile_all(&w);
    if (p != NULL) {
        test_launches(&w, p);
        test_control(&w, p);
        test_times(&w, p);
        if (strcmp(target, "simt") == 0)
            test_large_group(&w, p);
        w.d->ops->program_free(w.d, p);
        test_cache(&w);
        test_two_devices(&w);
    }
    test_refusals(&w);
    close_world(&w);
}

static void test_all(void)
{
    world w;
    if (!open_world(&w, "workers"))
        return;
    test_addresses(&w);
    test_sizes(&w);
    test_copies(&w);
    test_check(&w);
    test_empty(&w);
    test_registry(&w);
    test_threads(&w);
    test_cache_full(&w);
    close_world(&w);
    test_form("workers");
    test_form("simt");
    test_faults();
    test_run_again();
    test_many_devices();
}

int main(void)
{
    char cache[] = "/tmp/deepc-pocl-XXXXXX", line[400];
    dc_opts opt;
    const char *bad;
    dc_opts_init(&opt, &bad);
    setenv("POCL_KERNEL_CACHE", "1", 1); /* within this run */
    if (mkdtemp(cache) == NULL)
        cache[0] = '\0';
    else
        setenv("POCL_CACHE_DIR", cache, 1);
    if (dc_opencl_describe(&opt, 0, line, sizeof line)) {
        test_not_opened();
        test_all();
    } else {
        T_SKIP(line);
    }
    if (cache[0] != '\0')
        nftw(cache, drop, 16, FTW_DEPTH | FTW_PHYS);
    return t_done();
}
