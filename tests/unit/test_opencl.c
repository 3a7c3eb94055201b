/*
 * backends/opencl: addresses with arithmetic over handles, kernels of both kinds through compile,
 * record and run, slots that move, loops, branches, checks and slices, times, threads that compile at
 * once, contexts side by side and one after the other. What fails is in test_opencl_fails.c.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw, setenv */
#include "backends/registry.h"

#include "tests/unit/opencl_run.h"

/* --- memory ------------------------------------------------------------------------------- */

enum { MANY = 40 };

/* Released in an order of their own; what is alive keeps its content, no address comes again. */
static void test_addresses(ocl *w)
{
    char *at[MANY];
    for (int i = 0; i < MANY; i++) {
        const int32_t v[2] = {i, -i};
        at[i] = ocl_alloc(w, 4096 + (size_t)i);
        ocl_put(w, at[i] + 4088, v, sizeof v);
        for (int k = 0; k < i; k++)
            CHECK(at[k] + 4096 + k < at[i] || at[i] + 4096 + i < at[k]);
    }
    for (int i = 0; i < MANY; i += 3)
        ocl_release(w, at[i]);
    char *later = ocl_alloc(w, 10);
    for (int i = 0; i < MANY; i++)
        CHECK(later != at[i]);
    for (int i = 0; i < MANY; i++) {
        int32_t v[2] = {0, 0};
        if (i % 3 == 0)
            continue;
        ocl_get(w, v, at[i] + 4088, sizeof v);
        CHECK(v[0] == i && v[1] == -i);
        ocl_release(w, at[i]);
    }
    ocl_release(w, later);
    ocl_release(w, NULL);
}

static void test_sizes(ocl *w)
{
    char *nothing = ocl_alloc(w, 0), byte = 5;
    ocl_put(w, nothing, NULL, 0);
    ocl_get(w, NULL, nothing, 0);
    char *one = ocl_alloc(w, 1);
    CHECK(one != nothing);
    ocl_put(w, one, &byte, 1);
    byte = 0;
    ocl_get(w, &byte, one, 1);
    CHECK_EQ(byte, 5);
    CHECK_EQ(CALL(w, copy, &w->j, one + 1, one, 0), DC_OK); /* at the end of an allocation */
    ocl_release(w, one);
    ocl_release(w, nothing);

    static const size_t sizes[] = {(size_t)1 << 60, SIZE_MAX - 10, SIZE_MAX};
    for (size_t i = 0; i < DC_COUNTOF(sizes); i++) {
        void *p;
        CHECK_EQ(CALL(w, alloc, &w->j, sizes[i], &p), DC_E_NOMEM);
        ocl_check_said(w, "the device gives ");
    }
}

enum { BYTES = 300 };

/* A copy inside one allocation, against memmove. */
static void copy_inside(ocl *w, char *mem, size_t to, size_t from, size_t bytes)
{
    unsigned char want[BYTES], got[BYTES];
    for (int i = 0; i < BYTES; i++)
        want[i] = (unsigned char)(i * 7);
    ocl_put(w, mem, want, BYTES);
    memmove(want + to, want + from, bytes);
    CHECK_EQ(CALL(w, copy, &w->j, mem + to, mem + from, bytes), DC_OK);
    ocl_get(w, got, mem, BYTES);
    CHECK(memcmp(want, got, BYTES) == 0);
}

static void test_copies(ocl *w)
{
    char *a = ocl_alloc(w, BYTES), *b = ocl_alloc(w, BYTES);
    copy_inside(w, a, 0, 150, 150);
    copy_inside(w, a, 150, 0, 150);
    copy_inside(w, a, 1, 0, 299);
    copy_inside(w, a, 0, 1, 299);
    copy_inside(w, a, 100, 104, 64);
    copy_inside(w, a, 17, 17, 30);
    unsigned char in[BYTES], out[BYTES];
    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(255 - i);
    ocl_put(w, a, in, BYTES);
    ocl_put(w, b, in, BYTES);
    CHECK_EQ(CALL(w, copy, &w->j, b + 9, a + 3, 200), DC_OK);
    ocl_get(w, out, b, BYTES);
    CHECK(memcmp(out, in, 9) == 0 && memcmp(out + 9, in + 3, 200) == 0 &&
          memcmp(out + 209, in + 209, BYTES - 209) == 0);
    ocl_release(w, a);
    ocl_release(w, b);
}

/* --- kernels ------------------------------------------------------------------------------ */

/* Slot 0 block, 1 a and b (in one allocation), 2 c: they move between the runs. */
static void test_launches(ocl *w, dc_program *p)
{
    enum { OFFSET = 4 * sizeof(float) };
    const dc_bind axpy[] = {{1, 0}, {1, COUNT * sizeof(float)}, {0, 8}, {2, OFFSET}};
    const dc_bind sums[] = {{2, OFFSET + COUNT * sizeof(float)}};
    const dc_bind copy[] = {{2, 0}, {1, 4}};
    dc_command items[] = {
        ocl_launch(p, AXPY, COUNT, 4, axpy),
        ocl_launch(p, STACKED, COUNT, 1, sums),
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = copy, .bytes = 8},
        ocl_launch(p, AXPY, 0, 4, axpy),
    };
    dc_recording *r = ocl_record(w, items, 4);
    memset(items, 0, sizeof items); /* copied */
    char *block = ocl_alloc(w, 16), *ab = NULL, *c = NULL;
    for (int round = 0; round < 3; round++) {
        const float scalar = (float)round + 0.5f;
        float in[2 * COUNT], out[4 + COUNT];
        int32_t sum[COUNT];
        for (int i = 0; i < 2 * COUNT; i++)
            in[i] = (float)(i + round) - 3.25f;
        if (round < 2) { /* the last round runs where the second ran */
            ocl_release(w, ab);
            ocl_release(w, c);
            ab = ocl_alloc(w, sizeof in);
            c = ocl_alloc(w, sizeof out + sizeof sum);
        }
        ocl_put(w, ab, in, sizeof in);
        ocl_put(w, block + 8, &scalar, sizeof scalar);
        void *const slot[] = {block, ab, c};
        CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
        ocl_get(w, out, c, sizeof out);
        ocl_get(w, sum, c + sizeof out, sizeof sum);
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            wrong += out[4 + i] != in[i] * scalar + in[COUNT + i];
            wrong += sum[i] != 16 * i + 120;
        }
        CHECK_EQ(wrong, 0);
        CHECK(out[0] == in[1] && out[1] == in[2]);
    }
    ocl_release(w, ab);
    ocl_release(w, c);
    ocl_release(w, block);
    w->d->ops->recording_free(w->d, r);
}

/* copy, check, copy: the second copy happens only when the check finds -1. */
static void test_check(ocl *w)
{
    const dc_bind first[] = {{1, 0}, {0, 4}}, checked[] = {{0, 0}}, second[] = {{1, 4}, {0, 8}};
    const dc_command items[] = {
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = first, .bytes = 4},
        {.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = checked},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = second, .bytes = 4},
    };
    dc_recording *r = ocl_record(w, items, 3);
    int32_t in[3] = {-1, 10, 20}, out[2] = {0, 0};
    char *from = ocl_alloc(w, sizeof in), *to = ocl_alloc(w, sizeof out);
    ocl_put(w, from, in, sizeof in);
    ocl_put(w, to, out, sizeof out);
    dc_run_info info = {.fault_command = 3};
    void *const slot[] = {from, to};
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_command, -1);
    ocl_get(w, out, to, sizeof out);
    CHECK(out[0] == 10 && out[1] == 20);

    in[0] = 17, in[1] = 11, in[2] = 21;
    ocl_put(w, from, in, sizeof in);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK_EQ(info.fault_command, 1);
    CHECK_EQ(info.fault_value, 17);
    ocl_get(w, out, to, sizeof out);
    CHECK(out[0] == 11 && out[1] == 20);

    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_E_DEVICE); /* without a place for the fault */
    ocl_forget(w);
    w->d->ops->recording_free(w->d, r);
    ocl_release(w, from);
    ocl_release(w, to);
}

/* In one buffer: x 0, iteration 4, limit 8, going 12, which side 13, what the sides copy 16. */
typedef struct state {
    int32_t x, iteration, limit;
    bool going, side;
    int32_t taken, one, two;
} state;

static void run_slices(ocl *w, dc_recording *r, void *const *slot, uint64_t deadline, int most)
{
    dc_run_info info = {.deadline_ns = deadline};
    int slices = 0;
    do {
        CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
        CHECK_EQ(info.fault_command, -1);
        slices++;
    } while (info.next != 0 && slices < 100);
    CHECK_EQ(info.next, 0);
    CHECK_EQ(slices > 1, most > 1);
}

/* x = 0 + 1 + 2 + ... while it is below the limit; then one of two copies. */
static void test_control(ocl *w, dc_program *p)
{
#define AT(field)                 \
    {                             \
        0, offsetof(state, field) \
    }
    const dc_bind loop[] = {AT(going), AT(iteration)};
    const dc_bind step[] = {AT(x), AT(iteration), AT(going), AT(limit)};
    const dc_bind side[] = {AT(side)}, one[] = {AT(taken), AT(one)}, two[] = {AT(taken), AT(two)};
#undef AT
    const dc_command items[] = {
        {.kind = DC_COMMAND_LOOP, .grid = 50, .nbind = 2, .bind = loop, .nbody = 1},
        ocl_launch(p, ADVANCE, 1, 4, step),
        {.kind = DC_COMMAND_BRANCH, .nbind = 1, .bind = side, .nbody = 1, .nelse = 1},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = one, .bytes = 4},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = two, .bytes = 4},
    };
    dc_recording *r = ocl_record(w, items, 5);
    char *mem = ocl_alloc(w, sizeof(state));
    void *const slot[] = {mem};
    for (int round = 0; round < 4; round++) {
        const bool cut = round >= 2;
        state s = {.limit = 20, .going = true, .side = round % 2 == 1, .one = 111, .two = 222};
        ocl_put(w, mem, &s, sizeof s);
        run_slices(w, r, slot, cut ? 1 : 0, cut ? 2 : 1);
        ocl_get(w, &s, mem, sizeof s);
        CHECK_EQ(s.x, 21); /* 0 + 1 + ... + 6 */
        CHECK_EQ(s.iteration, 6);
        CHECK(!s.going);
        CHECK_EQ(s.taken, round % 2 == 1 ? 111 : 222);
    }
    state s = {.limit = 1 << 30, .going = true, .side = true, .one = 1};
    ocl_put(w, mem, &s, sizeof s);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
    ocl_get(w, &s, mem, sizeof s);
    CHECK_EQ(s.x, 49 * 25); /* the most iterations there are */
    CHECK_EQ(s.iteration, 49);
    w->d->ops->recording_free(w->d, r);
    ocl_release(w, mem);
}

static void test_times(ocl *w, dc_program *p)
{
    const dc_bind sums[] = {{0, 0}}, copy[] = {{0, 4096}, {0, 0}};
    const dc_command items[] = {
        ocl_launch(p, STACKED, COUNT, 1, sums),
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = copy, .bytes = 64},
        ocl_launch(p, STACKED, 0, 1, sums),
    };
    dc_recording *r = ocl_record(w, items, 3);
    char *mem = ocl_alloc(w, 8192);
    uint64_t spent[3] = {0};
    int32_t out[16];
    const dc_run_watch watch = {.ns = spent};
    dc_run_info info = {.watch = &watch};
    void *const slot[] = {mem};
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), DC_OK);
    CHECK(spent[0] > 0 && spent[0] < UINT64_C(60000000000));
    CHECK(spent[1] > 0);
    CHECK_EQ(spent[2], 0); /* nothing was launched */
    ocl_get(w, out, mem + 4096, sizeof out);
    CHECK_EQ(out[15], 16 * 15 + 120);
    w->d->ops->recording_free(w->d, r);
    ocl_release(w, mem);
}

/* Launches, counted by `enqueue`, which raises `asked` at the one that is told. */
static struct counted {
    int launches, at;
    atomic_bool asked, insist;
    cl_int (*launch)(cl_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                     cl_uint, const cl_event *, cl_event *);
} counted;

static cl_int enqueue(cl_queue q, cl_kernel k, cl_uint n, const size_t *offset,
                      const size_t *global, const size_t *local, cl_uint waits,
                      const cl_event *wait, cl_event *out)
{
    if (++counted.launches == counted.at)
        atomic_store(&counted.asked, true);
    return counted.launch(q, k, n, offset, global, local, waits, wait, out);
}

/* A launch that is cut in parts: how many of its sums were computed, from the begin on. */
static int run_parts(ocl *w, dc_recording *r, char *mem, int at, uint32_t whole, dc_status status)
{
    int32_t sum[COUNT] = {0};
    int n = 0, more = 0;
    dc_halt halt = {.asked = &counted.asked, .insist = &counted.insist, .whole = whole};
    dc_run_info info = {.halt = &halt};
    void *const slot[] = {mem};
    ocl_put(w, mem, sum, sizeof sum);
    counted.launches = 0;
    counted.at = at;
    atomic_store(&counted.asked, at == 0);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, &info), status);
    ocl_forget(w);
    ocl_get(w, sum, mem, sizeof sum);
    while (n < COUNT && sum[n] == 16 * n + 120)
        n++;
    for (int i = n; i < COUNT; i++)
        more += sum[i] != 0;
    CHECK_EQ(more, 0);
    return n;
}

/* A long launch goes to the device in parts, between which a run can be ended. */
static void test_ended(ocl *w, dc_program *p)
{
    dc_cl *cl = dc_cl_of(w->d);
    const dc_bind sums[] = {{0, 0}};
    dc_command item = ocl_launch(p, STACKED, COUNT, 1, sums);
    item.cost_ns = UINT64_C(1000000000000); /* so far off that a few runs do not correct it */
    const int parts = (int)((COUNT + cl->limits.compute_units - 1) / cl->limits.compute_units);
    dc_recording *r = ocl_record(w, &item, 1);
    char *mem = ocl_alloc(w, COUNT * sizeof(int32_t));
    counted.launch = cl->lib.fn.EnqueueNDRangeKernel;
    cl->lib.fn.EnqueueNDRangeKernel = enqueue;

    CHECK_EQ(run_parts(w, r, mem, -1, 1, DC_OK), COUNT);
    CHECK_EQ(counted.launches, parts);
    CHECK_EQ(run_parts(w, r, mem, 0, 1, DC_E_STATE), 0);
    CHECK_EQ(counted.launches, 0);
    if (parts > 2) {
        const int n = run_parts(w, r, mem, 2, 1, DC_E_STATE);
        CHECK_EQ(n, 2 * (int)cl->limits.compute_units);
        CHECK_EQ(counted.launches, 2);
        CHECK_EQ(run_parts(w, r, mem, 2, 0, DC_OK), COUNT); /* it writes cells: to its end */
    }
    dc_run_info info = {.fault_command = -1};
    CHECK_EQ(CALL(w, run, &w->j, r, (void *const[]){mem}, &info), DC_OK);
    CHECK_EQ(counted.launches, parts > 2 ? parts + 1 : 1); /* it cannot be ended: one launch */

    cl->lib.fn.EnqueueNDRangeKernel = counted.launch;
    w->d->ops->recording_free(w->d, r);
    ocl_release(w, mem);
}

static void test_empty(ocl *w)
{
    dc_recording *r = ocl_record(w, NULL, 0);
    CHECK_EQ(CALL(w, run, &w->j, r, NULL, NULL), DC_OK);
    w->d->ops->recording_free(w->d, r);
    w->d->ops->recording_free(w->d, NULL);
    w->d->ops->program_free(w->d, NULL);
}

/* --- several of them ---------------------------------------------------------------------- */

enum { COMPILERS = 4 };

typedef struct compiler {
    pthread_t thread;
    ocl *w;
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
             "__kernel void k(__global uchar *b, ulong o, __global uchar *s, long n, long m)\n"
             "{ *(__global int *)(b + o) = %d; }\n",
             100 + c->number);
    DC_TRY(CALL(c->w, compile, j, (&(dc_source){text, "opencl", k, 1}), &c->own));
    return CALL(c->w, compile, j,
                (&(dc_source){"__kernel void k(__global uchar *b, ulong o, __global uchar *s, "
                              "long n, long m) { *(__global int *)(b + o) = 7; }\n",
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
static void test_threads(ocl *w)
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
    char *mem = ocl_alloc(w, 4);
    void *const slot[] = {mem};
    for (int i = 0; i < started; i++) {
        const dc_command item = ocl_launch(i % 2 == 0 ? c[i].own : c[i].same, 0, 1, 1, bind);
        dc_recording *r = ocl_record(w, &item, 1);
        int32_t v = 0;
        CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
        ocl_get(w, &v, mem, sizeof v);
        CHECK_EQ(v, i % 2 == 0 ? 100 + i : 7);
        w->d->ops->recording_free(w->d, r);
        w->d->ops->program_free(w->d, c[i].own);
        w->d->ops->program_free(w->d, c[i].same);
    }
    ocl_release(w, mem);
}

/* The same text again costs no build, even after its program was freed. */
static void test_cache(ocl *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    const unsigned before = atomic_load(&cl->builds);
    dc_program *p = ocl_compile(w), *q = ocl_compile(w);
    CHECK_EQ(atomic_load(&cl->builds), before);
    w->d->ops->program_free(w->d, p);
    test_launches(w, q);
    w->d->ops->program_free(w->d, q);
}

/* More texts than are kept: the oldest goes, the one in use between stays. */
static void test_cache_full(ocl *w)
{
    dc_cl *cl = dc_cl_of(w->d);
    static const char *const k[] = {"k"};
    w->d->ops->program_free(w->d, ocl_compile(w));
    const unsigned before = atomic_load(&cl->builds);
    for (int i = 0; i < DC_CL_BUILT + 2; i++) {
        dc_program *p = NULL;
        char text[100];
        snprintf(text, sizeof text, "__kernel void k(__global int *a) { a[0] = %d; }\n", i);
        CHECK_EQ(CALL(w, compile, &w->j, (&(dc_source){text, "opencl", k, 1}), &p), DC_OK);
        w->d->ops->program_free(w->d, p);
        w->d->ops->program_free(w->d, ocl_compile(w));
    }
    CHECK_EQ(atomic_load(&cl->builds), before + DC_CL_BUILT + 2);
    CHECK_EQ(atomic_load(&cl->objects), DC_CL_BUILT);
}

static void test_two_devices(ocl *a)
{
    ocl b;
    if (!ocl_open(&b, a->opt.target))
        return;
    dc_program *p = ocl_compile(a), *q = ocl_compile(&b);
    a->d->ops->program_free(a->d, p);
    test_launches(&b, q);
    test_check(a);
    b.d->ops->program_free(b.d, q);
    ocl_close(&b);
}

static void test_many_devices(void)
{
    for (int i = 0; i < 100; i++) {
        ocl w;
        if (!ocl_open(&w, ""))
            return;
        char *mem = ocl_alloc(&w, 100);
        ocl_put(&w, mem, "abc", 4);
        if (i % 2 == 0) /* memory that was not given back is with the device */
            ocl_release(&w, mem);
        dc_cl_memory_close(dc_cl_of(w.d));
        ocl_close(&w);
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

static void test_registry(ocl *w)
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
        ocl_check_said(w, "opencl:0");
    }
    CHECK_EQ(dc_backend_open(&w->j, "opencl:999999", &d, &interpret), DC_E_DEVICE);
    ocl_check_said(w, "no device opencl:999999");

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

static void test_target(ocl *w)
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

static void test_form(const char *target)
{
    ocl w;
    if (!ocl_open(&w, target))
        return;
    test_target(&w);
    dc_program *p = ocl_compile(&w);
    if (p != NULL) {
        test_launches(&w, p);
        test_control(&w, p);
        test_times(&w, p);
        test_ended(&w, p);
        w.d->ops->program_free(w.d, p);
        test_cache(&w);
        test_two_devices(&w);
    }
    ocl_close(&w);
}

static void test_all(void)
{
    ocl w;
    if (!ocl_open(&w, "workers"))
        return;
    test_addresses(&w);
    test_sizes(&w);
    test_copies(&w);
    test_check(&w);
    test_empty(&w);
    test_registry(&w);
    test_threads(&w);
    test_cache_full(&w);
    ocl_close(&w);
    test_form("workers");
    test_form("simt");
    test_many_devices();
}

int main(void)
{
    return ocl_main(test_all);
}
