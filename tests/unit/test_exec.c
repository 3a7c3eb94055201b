/*
 * Executables and instances through jit/jit.h, on the interpreter and on the CPU: what calls
 * return, what cells hold, what holders of older values see, what happens when something fails half
 * way.
 *
 * The device under test stands behind a shim that forwards everything and can be told to call back,
 * to fail or to write where it should not.
 */
#include "backends/registry.h"
#include "core/gtext.h"
#include "jit/jit.h"

#include <stdlib.h>

#include "tests/t.h"

/* ---- counting of malloc ---- */

static long mallocs;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_HOOKS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_HOOKS
#endif

#if defined(HAS_HOOKS)
extern int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *,
                                                                       size_t),
                                                     void (*on_free)(const volatile void *));

static void count_malloc(const volatile void *p, size_t n)
{
    (void)p;
    (void)n;
    mallocs++;
}

static void ignore_free(const volatile void *p)
{
    (void)p;
}

static void start_counting(void)
{
    __sanitizer_install_malloc_and_free_hooks(count_malloc, ignore_free);
}
#else /* glibc lets a program have its own malloc */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n)
{
    mallocs++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    mallocs++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    mallocs++;
    return __libc_realloc(p, n);
}

static void start_counting(void) {}
#endif

/* ---- a device that can misbehave ---- */

typedef struct shim {
    dc_device base;
    dc_device *inner;
    void (*on_upload)(void *ctx, void *to); /* called before an upload */
    void (*on_run)(void *ctx, void *to);    /* called before a run */
    void *ctx;
    bool fail_upload, fail_run;
    char *spoil; /* one byte here is overwritten by the next run */
} shim;

static shim *of(const dc_device *d)
{
    return (shim *)(uintptr_t)d;
}

static void shim_free(dc_device *d)
{
    of(d)->inner->ops->free(of(d)->inner);
    free(d);
}

static const dc_target *shim_target(const dc_device *d)
{
    return of(d)->inner->ops->target(of(d)->inner);
}

static dc_status shim_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    return of(d)->inner->ops->alloc(of(d)->inner, j, bytes, out);
}

static void shim_release(dc_device *d, void *mem)
{
    of(d)->inner->ops->release(of(d)->inner, mem);
}

static dc_status shim_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    shim *s = of(d);
    if (s->on_upload != NULL)
        s->on_upload(s->ctx, to);
    if (s->fail_upload)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "the cable fell out");
    return s->inner->ops->upload(s->inner, j, to, from, bytes);
}

static dc_status shim_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    return of(d)->inner->ops->download(of(d)->inner, j, to, from, bytes);
}

static dc_status shim_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    return of(d)->inner->ops->compile(of(d)->inner, j, src, out);
}

static void shim_program_free(dc_device *d, dc_program *p)
{
    of(d)->inner->ops->program_free(of(d)->inner, p);
}

static dc_status shim_record(dc_device *d, dc_job *j, const dc_item *item, uint32_t n,
                             dc_recording **out)
{
    return of(d)->inner->ops->record(of(d)->inner, j, item, n, out);
}

static void shim_recording_free(dc_device *d, dc_recording *r)
{
    of(d)->inner->ops->recording_free(of(d)->inner, r);
}

static dc_status shim_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                          dc_run_info *info)
{
    shim *s = of(d);
    if (s->on_run != NULL)
        s->on_run(s->ctx, NULL);
    if (s->fail_run)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "the fan stopped");
    const dc_status status = s->inner->ops->run(s->inner, j, r, slot, info);
    if (s->spoil != NULL)
        *s->spoil ^= 1;
    s->spoil = NULL;
    return status;
}

static dc_device *shim_new(dc_device *inner)
{
    static const dc_device_ops ops = {.name = "shim",
                                      .free = shim_free,
                                      .target = shim_target,
                                      .alloc = shim_alloc,
                                      .release = shim_release,
                                      .upload = shim_upload,
                                      .download = shim_download,
                                      .compile = shim_compile,
                                      .program_free = shim_program_free,
                                      .record = shim_record,
                                      .recording_free = shim_recording_free,
                                      .run = shim_run};
    shim *s = calloc(1, sizeof *s);
    s->base.ops = &ops;
    s->inner = inner;
    return &s->base;
}

/* ---- a context ---- */

typedef enum where { ON_EVAL, ON_CPU, ON_NOTHING } where; /* the last compiles nothing */

typedef struct world {
    where on;
    dc_opts opt;
    dc_log log;
    dc_text said;
    dc_rt *rt;
    dc_job *j;
    shim *dev;
} world;

static void hear(void *ctx, const char *text, size_t n)
{
    world *w = ctx;
    dc_text_printf(&w->said, "%.*s", (int)n, text);
}

static void open_world(world *w, where on, const dc_opts *opt, const char *channels)
{
    static const dc_opts none = {.opt = 2};
    dc_device *d = NULL;
    *w = (world){.on = on, .opt = opt != NULL ? *opt : none};
    w->log = (dc_log){.write = hear, .ctx = w};
    dc_log_select(&w->log, channels);
    w->rt = dc_rt_new(&w->opt, &w->log);
    w->j = &w->rt->job;
    bool interpret = false;
    if (on == ON_NOTHING)
        d = dc_host_device_new();
    else if (!CHECK_EQ(dc_backend_open(w->j, on == ON_CPU ? "cpu" : "eval", &d, &interpret), DC_OK))
        exit(1);
    CHECK(interpret == (on == ON_EVAL));
    w->dev = of(shim_new(d));
    dc_rt_set_device(w->rt, &w->dev->base, on == ON_EVAL);
}

static void close_world(world *w)
{
    CHECK_EQ(w->rt->arena_users, 0);
    CHECK(w->rt->arena == NULL && w->rt->execs == NULL);
    CHECK_EQ(w->rt->stats.bytes_live, 0);
    dc_rt_free(w->rt);
    dc_text_free(&w->said);
}

typedef struct signature {
    uint32_t nfree, nresult, nset, ncheck;
    uint32_t set[4];
} signature;

static dc_exec *build(world *w, const char *text, const signature *s)
{
    dc_module *m = NULL;
    dc_exec *e = NULL;
    CHECK_EQ(dc_module_parse(w->j, text, &m), DC_OK);
    if (m == NULL)
        exit(1);
    const dc_func *fn = m->func.at[0];
    const dc_exec_desc d = {.fn = fn,
                            .name = fn->name,
                            .nfree = s->nfree,
                            .ncell = fn->param.n - s->nfree,
                            .nresult = s->nresult,
                            .nset = s->nset,
                            .ncheck = s->ncheck,
                            .set = s->set};
    const dc_status status = dc_exec_build(w->rt, w->j, &d, &e);
    dc_module_free(m);
    if (!CHECK_EQ(status, DC_OK)) {
        char why[600];
        dc_err_render(&w->j->err, 0, why, sizeof why);
        printf("%s\n", why);
        exit(1);
    }
    return e;
}

static dc_inst *bind(world *w, dc_exec *e, dc_cell *const *cell)
{
    dc_inst *i = NULL;
    if (!CHECK_EQ(dc_inst_new(w->rt, w->j, e, cell, &i), DC_OK))
        exit(1);
    return i;
}

static dc_tensor *tensor(world *w, dc_dtype t, int64_t n, float first)
{
    dc_tensor *x;
    const dc_type type = n == 0 ? dc_type_scalar(t) : dc_type_make(t, 1, (int64_t[]){n});
    CHECK_EQ(dc_tensor_new(w->rt, w->j, &type, &x), DC_OK);
    for (int64_t i = 0; i < (n == 0 ? 1 : n); i++)
        dc_bits_store(t, (char *)dc_tensor_mem(x) + (size_t)i * dc_dtype_size(t),
                      dc_bits_of(t, (double)first + (double)i));
    return x;
}

static dc_cell *cell(world *w, int64_t n, float first, const char *label)
{
    dc_cell *c;
    dc_tensor *x = tensor(w, DC_F32, n, first);
    CHECK_EQ(dc_cell_new(w->rt, w->j, &x->type, label, true, &c), DC_OK);
    CHECK_EQ(dc_cell_write(c, w->j, x), DC_OK);
    dc_tensor_release(x);
    return c;
}

static float at(const dc_tensor *x, int i)
{
    return ((const float *)dc_tensor_mem(x))[i];
}

static float cell_at(const dc_cell *c, int i)
{
    return ((const float *)c->store->mem)[i];
}

static dc_arg number(float x)
{
    return (dc_arg){.bits = dc_f32_bits(x)};
}

static dc_arg given(const dc_tensor *x)
{
    return (dc_arg){.tensor = x};
}

/* ---- calls ---- */

/* w = w - lr * g, returns the sum of the old w and the new w */
static const char step_text[] =
    "func step(%1: f32[8] \"g\", %2: f32[] \"lr\", %3: f32[8] \"w\") {\n"
    "  %4 = reshape %2 : f32[1]\n"
    "  %5 = expand %4 : f32[8]\n"
    "  %6 = mul %5, %1 : f32[8]\n"
    "  %7 = sub %3, %6 : f32[8]\n"
    "  %8 = sum %3 {1} : f32[]\n"
    "  return %8, %7, %7\n}\n";
static const signature step_signature = {.nfree = 2, .nresult = 2, .nset = 1};

static void test_call(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2], *old[2];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *c = cell(&w, 8, 1, "w"); /* 1 .. 8 */
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 0), *before = dc_cell_show(c); /* 0 .. 7 */
    const uint64_t compiles = w.rt->stats.compiles;

    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, old, &fault), DC_OK);
    CHECK_EQ(fault.check, -1);
    CHECK(at(old[0], 0) == 36.0f);
    CHECK(at(old[1], 2) == 2.0f && at(old[1], 7) == 4.5f);
    CHECK(cell_at(c, 2) == 2.0f && cell_at(c, 7) == 4.5f);
    CHECK(at(before, 2) == 3.0f); /* holders of the old value see no change */

    /* another number, as a tensor; an argument that shows the cell itself */
    dc_tensor *lr = tensor(&w, DC_F32, 0, 1), *self = dc_cell_show(c);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(self), given(lr)}, out, &fault), DC_OK);
    CHECK(cell_at(c, 2) == 0.0f && cell_at(c, 7) == 0.0f);
    CHECK(at(self, 7) == 4.5f);
    CHECK(at(old[0], 0) == 36.0f && at(old[1], 2) == 2.0f); /* nor do those of results */
    CHECK(at(out[0], 0) == 22.0f && at(out[1], 7) == 0.0f);

    /* an argument that is the last call's result */
    dc_tensor *third[2];
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(old[1]), number(-1)}, third, &fault), DC_OK);
    CHECK(at(third[1], 7) == 4.5f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(third[1]), number(-1)}, out, &fault), DC_OK);
    CHECK(at(out[1], 7) == 9.0f && at(third[1], 7) == 4.5f);

    CHECK_EQ(w.rt->stats.compiles, compiles); /* new numbers are no reason to compile */
    CHECK_EQ(w.rt->stats.calls, 4);
    CHECK_EQ(w.rt->stats.interpreted, on == ON_CPU ? 0 : 4);
    dc_tensor *all[] = {g, before, lr, self, old[0], old[1], out[0], out[1], third[0], third[1]};
    dc_inst_free(i);
    CHECK(at(out[1], 7) == 9.0f); /* results outlive the instance */
    for (size_t k = 0; k < DC_COUNTOF(all); k++)
        dc_tensor_release(all[k]);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);
}

/* Once warm, a call takes no memory: neither the device's nor, on the CPU, the host's. */
static void test_steady(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *c = cell(&w, 8, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 0);
    const dc_arg arg[] = {given(g), number(0.5f)};
    uint64_t allocs = 0, moved = 0;
    long host = 0;
    for (int n = 0; n < 10; n++) {
        if (n == 3) {
            allocs = w.rt->stats.allocs;
            moved = w.rt->stats.moved_out;
            host = mallocs;
        }
        CHECK_EQ(dc_inst_call(i, w.j, arg, out, &fault), DC_OK);
        dc_tensor_release(out[0]);
        dc_tensor_release(out[1]);
    }
    CHECK_EQ(w.rt->stats.allocs, allocs);
    CHECK_EQ(w.rt->stats.moved_out, moved);
    if (on == ON_CPU)
        CHECK_EQ(mallocs, host);
    CHECK(mallocs > 0); /* they are counted at all */
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);
}

static void test_instances(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *a = cell(&w, 8, 1, "a"), *b = cell(&w, 8, 2, "b");
    dc_inst *ia = bind(&w, e, &a), *ib = bind(&w, e, &b), *again = bind(&w, e, &a);
    dc_exec_release(e); /* the instances keep it */
    dc_tensor *g = tensor(&w, DC_F32, 8, 1);
    dc_inst *order[] = {ia, ib, again, ia};
    for (size_t n = 0; n < DC_COUNTOF(order); n++) {
        CHECK_EQ(dc_inst_call(order[n], w.j, (dc_arg[]){given(g), number(1)}, out, &fault), DC_OK);
        dc_tensor_release(out[0]);
        dc_tensor_release(out[1]);
    }
    CHECK(cell_at(a, 0) == -2.0f); /* 1 - 3: shared by two instances */
    CHECK(cell_at(b, 0) == 1.0f);
    dc_tensor_release(g);
    dc_inst_free(ia);
    dc_inst_free(ib);
    dc_inst_free(again);
    dc_cell_release(a);
    dc_cell_release(b);
    close_world(&w);
}

/* ---- cells and parameters in all combinations ---- */

static void test_sets(where on)
{
    static const char text[] = "func f(%1: f32[4] \"x\", %2: f32[] \"s\", %3: f32[4] \"a\", "
                               "%4: f32[4] \"b\", %5: f32[4] \"c\", %6: f32[] \"d\") {\n"
                               "  %7 = neg %5 : f32[4]\n"
                               "  return %1, %2, %5, %7, %7, %4, %3, %7, %2\n}\n";
    const signature s = {.nfree = 2, .nresult = 5, .nset = 4, .set = {0, 1, 2, 3}};
    world w;
    dc_fault fault;
    dc_tensor *out[5];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, text, &s);
    dc_cell *c[] = {cell(&w, 4, 10, "a"), cell(&w, 4, 20, "b"), cell(&w, 4, 30, "c"),
                    cell(&w, 0, 5, "d")};
    dc_inst *i = bind(&w, e, c);
    dc_tensor *x = tensor(&w, DC_F32, 4, 1);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x), number(7)}, out, &fault), DC_OK);
    CHECK(at(out[0], 3) == 4.0f && at(out[1], 0) == 7.0f && at(out[2], 3) == 33.0f);
    CHECK(at(out[3], 3) == -33.0f && at(out[4], 3) == -33.0f);
    CHECK(cell_at(c[0], 3) == 23.0f && cell_at(c[1], 3) == 13.0f); /* swapped */
    CHECK(cell_at(c[2], 3) == -33.0f && cell_at(c[3], 0) == 7.0f);
    for (int k = 0; k < 5; k++)
        dc_tensor_release(out[k]);
    dc_tensor_release(x);
    dc_inst_free(i);
    for (int k = 0; k < 4; k++)
        dc_cell_release(c[k]);
    dc_exec_release(e);
    close_world(&w);
}

/* Nothing is computed, or nothing comes out. */
static void test_nothing(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, "func f() {\n  return\n}\n", &(signature){0});
    dc_inst *i = bind(&w, e, NULL);
    CHECK_EQ(dc_inst_call(i, w.j, NULL, NULL, &fault), DC_OK);
    dc_inst_free(i);
    dc_exec_release(e);
    e = build(&w,
              "func f(%1: f32[0, 4]) {\n"
              "  %2 = neg %1 : f32[0, 4]\n"
              "  %3 = sum %2 {3} : f32[]\n"
              "  return %2, %3\n}\n",
              &(signature){.nfree = 1, .nresult = 2});
    i = bind(&w, e, NULL);
    dc_tensor *x;
    const dc_type type = dc_type_make(DC_F32, 2, (int64_t[]){0, 4});
    CHECK_EQ(dc_tensor_new(w.rt, w.j, &type, &x), DC_OK);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK_EQ(dc_type_count(&out[0]->type), 0);
    CHECK(at(out[1], 0) == 0.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(x);
    dc_inst_free(i);
    dc_exec_release(e);
    close_world(&w);
}

/* ---- checks ---- */

/* w = w + 1 unless a class is outside 0..2: the check gives the last offender's position */
static const char check_text[] = "func f(%1: i32[4] \"y\", %2: f32[4] \"w\") {\n"
                                 "  %3 = const {1065353216} : f32[4]\n"
                                 "  %4 = add %2, %3 : f32[4]\n"
                                 "  %5 = const {2} : i32[4]\n"
                                 "  %6 = lt %5, %1 : bool[4]\n"
                                 "  %7 = iota {0} : i32[4]\n"
                                 "  %8 = const {-1} : i32[4]\n"
                                 "  %9 = where %6, %7, %8 : i32[4]\n"
                                 "  %10 = max %9 {1} : i32[]\n"
                                 "  %11 = max %1 {1} : i32[]\n"
                                 "  return %4, %4, %10, %11\n}\n";

static void test_checks(where on)
{
    const signature s = {.nfree = 1, .nresult = 1, .nset = 1, .ncheck = 1};
    world w;
    dc_fault fault;
    dc_tensor *out[1] = {NULL};
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, check_text, &s);
    dc_cell *c = cell(&w, 4, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *good = tensor(&w, DC_I32, 4, -1), *bad = tensor(&w, DC_I32, 4, 1);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(good)}, out, &fault), DC_OK);
    CHECK_EQ(fault.check, -1);
    CHECK(cell_at(c, 3) == 5.0f);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(bad)}, NULL, &fault), DC_E_VALUE);
    CHECK_EQ(fault.check, 0);
    CHECK_EQ(fault.position, 3);
    CHECK_EQ(fault.value, 4);
    CHECK_EQ(w.j->err.status, DC_OK); /* the caller makes the record */
    CHECK(cell_at(c, 3) == 5.0f && !c->torn);
    CHECK(at(out[0], 3) == 5.0f);
    dc_tensor_release(out[0]);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(good)}, out, &fault), DC_OK);
    CHECK(cell_at(c, 3) == 6.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(good);
    dc_tensor_release(bad);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);
}

/* ---- calls inside calls ---- */

typedef struct nested {
    world *w;
    dc_inst *same, *other;
    const dc_arg *arg;
    int calls, when; /* the `when`-th time, so that the outer call is half done */
} nested;

static void call_inside(void *ctx, void *to)
{
    nested *n = ctx;
    dc_job j;
    dc_fault fault;
    dc_tensor *out[2];
    DC_UNUSED(to);
    if (++n->calls != n->when)
        return;
    CHECK(n->w->on == ON_EVAL || n->w->rt->arena_busy);
    dc_job_init(&j, &n->w->opt, &n->w->log);
    CHECK_EQ(dc_inst_call(n->same, &j, n->arg, out, &fault), DC_E_STATE);
    CHECK_EQ(j.err.id, DC_ERR_REENTER);
    j.err = (dc_err){0};
    CHECK_EQ(dc_inst_call(n->other, &j, n->arg, out, &fault), DC_OK);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_job_fini(&j);
}

static void test_nested(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    dc_opts opt = {.opt = 0, .check = 2}; /* a kernel per node and a run per kernel */
    open_world(&w, on, &opt, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *a = cell(&w, 8, 1, "a"), *b = cell(&w, 8, 2, "b");
    dc_inst *ia = bind(&w, e, &a), *ib = bind(&w, e, &b);
    dc_tensor *g = tensor(&w, DC_F32, 8, 1);
    const dc_arg arg[] = {given(g), number(1)};
    nested n = {.w = &w, .same = ia, .other = ib, .arg = arg, .when = on == ON_CPU ? 3 : 1};
    if (on == ON_CPU)
        w.dev->on_run = call_inside;
    else
        w.dev->on_upload = call_inside;
    w.dev->ctx = &n;
    CHECK_EQ(dc_inst_call(ia, w.j, arg, out, &fault), DC_OK);
    w.dev->on_upload = w.dev->on_run = NULL;
    CHECK(n.calls >= n.when && !w.rt->arena_busy);
    CHECK(at(out[0], 0) == 36.0f && cell_at(a, 7) == 0.0f && cell_at(b, 7) == 1.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    CHECK_EQ(dc_inst_call(ia, w.j, arg, out, &fault), DC_OK); /* it is free again */
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(g);
    dc_inst_free(ia);
    dc_inst_free(ib);
    dc_cell_release(a);
    dc_cell_release(b);
    dc_exec_release(e);
    close_world(&w);
}

/* ---- failures ---- */

static void fail_at_cell(void *ctx, void *to)
{
    const dc_cell *c = ((void **)ctx)[0];
    shim *s = ((void **)ctx)[1];
    s->fail_upload = to == c->store->mem;
}

static void test_torn(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, on, NULL, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *c = cell(&w, 8, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 1);
    const dc_arg arg[] = {given(g), number(1)};
    w.dev->fail_run = on == ON_CPU;
    w.dev->on_upload = on == ON_CPU ? NULL : fail_at_cell;
    w.dev->ctx = (void *[]){c, w.dev};
    CHECK_EQ(dc_inst_call(i, w.j, arg, out, &fault), DC_E_DEVICE);
    CHECK(c->torn);
    w.dev->fail_run = w.dev->fail_upload = false;
    w.dev->on_upload = NULL;
    w.j->err = (dc_err){0};
    CHECK_EQ(dc_inst_call(i, w.j, arg, out, &fault), DC_E_STATE);
    CHECK_EQ(w.j->err.id, DC_ERR_TORN);
    CHECK_STR(w.j->err.fact.word[0], "w");
    w.j->err = (dc_err){0};
    CHECK_EQ(dc_cell_write(c, w.j, g), DC_OK);
    CHECK_EQ(dc_inst_call(i, w.j, arg, out, &fault), DC_OK);
    CHECK(cell_at(c, 5) == 0.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);
}

typedef struct twice {
    world *w;
    dc_exec *e;
    dc_cell *c;
} twice;

static dc_status bind_twice(dc_job *j, void *arg)
{
    twice *t = arg;
    dc_cell *both[] = {t->c, t->c};
    dc_inst *i;
    return dc_inst_new(t->w->rt, j, t->e, both, &i);
}

/* An unfinished instance is released by whoever catches the failure. */
static void test_unwinding(where on)
{
    world w;
    open_world(&w, on, NULL, "");
    twice t = {.w = &w, .c = cell(&w, 2, 0, "c")};
    t.e =
        build(&w, "func f(%1: f32[2], %2: f32[2]) {\n  %3 = add %1, %2 : f32[2]\n  return %3\n}\n",
              &(signature){.nresult = 1});
    CHECK_EQ(dc_protect(w.j, bind_twice, &t), DC_E_BUG);
    CHECK_EQ(t.c->refs, 1);
    dc_cell_release(t.c);
    dc_exec_release(t.e);
    close_world(&w);
}

/* A compiler that fails is no reason not to answer. */
static void test_fallback(void)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    dc_exec_info info;
    open_world(&w, ON_NOTHING, NULL, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    CHECK(strstr(w.said.s, "[note] jit: step falls back to the interpreter: ") == w.said.s);
    CHECK_EQ(w.rt->stats.fallbacks, 1);
    dc_exec_info_of(e, &info);
    CHECK(info.interpreted);
    dc_cell *c = cell(&w, 8, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 0);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, out, &fault), DC_OK);
    CHECK(at(out[0], 0) == 36.0f && cell_at(c, 7) == 4.5f);
    CHECK_EQ(w.rt->stats.interpreted, 1);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);
}

/* ---- looking inside, on the CPU ---- */

static void test_compare(void)
{
    dc_opts opt = {.opt = 2, .compare = "eval"};
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, ON_CPU, &opt, "");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *c = cell(&w, 8, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 0);
    for (int n = 0; n < 2; n++) {
        CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, out, &fault), DC_OK);
        dc_tensor_release(out[0]);
        dc_tensor_release(out[1]);
    }
    CHECK_STR(w.said.s, "[compare] step call 1: result 1 eval 0x1.2p+5 shim 0x1.2p+5 (0) result 2 "
                        "(0) w (0)\n"
                        "[compare] step call 2: result 1 eval 0x1.6p+4 shim 0x1.6p+4 (0) result 2 "
                        "(0) w (0)\n");
    CHECK(w.rt->stats.compare_max == 0.0);
    CHECK(cell_at(c, 7) == 1.0f); /* stepped once per call */
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    close_world(&w);

    dc_opts wrong = {.opt = 2, .compare = "gpu"};
    open_world(&w, ON_CPU, &wrong, "");
    dc_module *m;
    CHECK_EQ(dc_module_parse(w.j, "func f() {\n  return\n}\n", &m), DC_OK);
    const dc_exec_desc d = {.fn = m->func.at[0], .name = "f"};
    CHECK_EQ(dc_exec_build(w.rt, w.j, &d, &e), DC_E_VALUE);
    CHECK_EQ(w.j->err.id, DC_ERR_OPTION);
    dc_module_free(m);
    close_world(&w);
}

static void test_time(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    open_world(&w, on, NULL, "time");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_cell *c = cell(&w, 8, 1, "w");
    dc_inst *i = bind(&w, e, &c);
    dc_tensor *g = tensor(&w, DC_F32, 8, 0);
    for (int n = 0; n < 3; n++) {
        CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, out, &fault), DC_OK);
        dc_tensor_release(out[0]);
        dc_tensor_release(out[1]);
    }
    CHECK(w.said.s == NULL); /* not before it is asked for */
    dc_time_report(w.rt);
    CHECK(w.said.s != NULL && strstr(w.said.s, "[time] step: 3 calls, ") == w.said.s);
    if (on == ON_CPU)
        CHECK(strstr(w.said.s, " GFLOP/s") != NULL);
    const size_t n = w.said.n;
    dc_time_report(w.rt);
    CHECK_EQ(w.said.n, n); /* counting starts again */
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    CHECK_EQ(w.said.n, n);
    close_world(&w);
}

/* Guard zones name the kernel that wrote past its output. */
static void test_guards(void)
{
    static const char text[] = "func f(%1: f32[5] \"x\") {\n"
                               "  %2 = sum %1 {1} : f32[]\n"
                               "  %3 = reshape %2 : f32[1]\n"
                               "  %4 = exp %3 : f32[1]\n"
                               "  %5 = expand %4 : f32[5]\n"
                               "  %6 = add %5, %1 : f32[5]\n"
                               "  return %6\n}\n";
    dc_opts opt = {.opt = 0, .check = 2};
    world w;
    dc_fault fault;
    dc_tensor *out[1];
    dc_exec_info info;
    open_world(&w, ON_CPU, &opt, "");
    dc_exec *e = build(&w, text, &(signature){.nfree = 1, .nresult = 1});
    dc_exec_info_of(e, &info);
    CHECK(info.arena_bytes > 0);
    dc_inst *i = bind(&w, e, NULL);
    dc_tensor *x = tensor(&w, DC_F32, 5, -2);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK(at(out[0], 4) == 3.0f);
    dc_tensor_release(out[0]);
    char *spots[] = {(char *)w.rt->arena->mem,                      /* before a temporary */
                     (char *)dc_tensor_mem(x) + 5 * sizeof(float)}; /* behind an argument */
    for (size_t k = 0; k < DC_COUNTOF(spots); k++) {
        w.dev->spoil = spots[k];
        CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_E_BUG);
        CHECK_EQ(w.j->err.id, DC_ERR_GUARD);
        CHECK(w.j->err.fact.word[0] != NULL && strchr(w.j->err.fact.word[0], '_') != NULL);
        w.j->err = (dc_err){0};
        *spots[k] ^= 1;
    }
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    dc_tensor_release(out[0]);
    dc_tensor_release(x);
    dc_inst_free(i);
    dc_exec_release(e);
    close_world(&w);
}

static void test_info(void)
{
    world w;
    dc_exec_info info;
    open_world(&w, ON_CPU, NULL, "plan");
    dc_exec *e = build(&w, step_text, &step_signature);
    dc_exec_info_of(e, &info);
    CHECK(!info.interpreted);
    CHECK_EQ(info.donated, 1);
    CHECK_EQ(info.denied, 0);
    CHECK_EQ(info.copies, 1); /* the new value is a result, too */
    CHECK_EQ(info.launches, 2);
    CHECK_EQ(info.kernels, 2);
    CHECK_EQ(info.nodes, 8);
    CHECK_EQ(w.rt->stats.compiles, 1);
    CHECK_EQ(w.rt->stats.kernels, 2);
    CHECK(strstr(w.said.s, "cells in place 1, by copy 0") != NULL);
    dc_exec_release(e);

    /* Equal kernels are compiled once. */
    e = build(&w,
              "func f(%1: f32[8], %2: f32[8]) {\n"
              "  %3 = sum %1 {1} : f32[]\n"
              "  %4 = sum %2 {1} : f32[]\n"
              "  return %3, %4\n}\n",
              &(signature){.nfree = 2, .nresult = 2});
    dc_exec_info_of(e, &info);
    CHECK_EQ(info.launches, 2);
    CHECK_EQ(info.kernels, 1);
    dc_exec_release(e);
    close_world(&w);
}

static void test_everywhere(where on)
{
    test_call(on);
    test_steady(on);
    test_instances(on);
    test_sets(on);
    test_nothing(on);
    test_checks(on);
    test_nested(on);
    test_torn(on);
    test_unwinding(on);
    test_time(on);
}

int main(void)
{
    start_counting();
    test_everywhere(ON_EVAL);
    test_fallback();
    test_everywhere(ON_CPU);
    test_compare();
    test_guards();
    test_info();
    return t_done();
}
