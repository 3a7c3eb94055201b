/*
 * In the steady state a call takes no memory: neither the device's nor, on the CPU, the host's. Also where the
 * last results are held, which costs their memory and no copy.
 */
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/world.h"

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

/* ---- calls ---- */

/* Once warm, a call takes no memory: neither the device's nor, on the CPU, the host's. */
static void test_steady(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
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
    world_close(&w);
}

/* w is 1 2 .. 8 before call 0; each call takes 0.5 * (0 1 .. 7) away: element 7, and the sum before. */
static float w_after(int call)
{
    return 8 - 3.5f * (float)(call + 1);
}

static float sum_before(int call)
{
    return 36 - 14 * (float)call;
}

/* The last results are held, and stay what they were. */
static void test_held(where on, const char *device)
{
    enum { HELD = 3, CALLS = 20, WARM = 6 };
    world w;
    dc_fault fault;
    dc_tensor *out[CALLS][2];
    uint64_t allocs = 0;
    long host = 0;
    world_open(&w, on, NULL, "");
    if (device != NULL && !world_device(&w, device)) {
        world_failure(&w);
        world_close(&w);
        return;
    }
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
    const dc_arg arg[] = {given(g), number(0.5f)};
    for (int n = 0; n < CALLS; n++) {
        if (n == WARM) {
            allocs = w.rt->stats.allocs;
            host = mallocs;
        }
        CHECK_EQ(dc_inst_call(i, w.j, arg, out[n], &fault), DC_OK);
        CHECK(n == 0 || dc_tensor_mem(out[n][1]) != dc_tensor_mem(out[n - 1][1]));
        if (n >= HELD)
            world_release(out[n - HELD], 2);
    }
    CHECK_EQ(w.rt->stats.allocs, allocs);
    CHECK_EQ(w.rt->stats.moved_out, 0);
    if (on == ON_CPU && device == NULL)
        CHECK_EQ(mallocs, host);
    for (int n = CALLS - HELD; n < CALLS; n++) {
        CHECK_NEAR(value_at(out[n][0], 0), sum_before(n), 0);
        CHECK_NEAR(value_at(out[n][1], 7), w_after(n), 0);
        world_release(out[n], 2);
    }
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

/* A result is the argument of the next call, and each one is kept to the end. */
static void test_fed_back(where on)
{
    enum { CALLS = 6 };
    world w;
    dc_fault fault;
    dc_tensor *y[CALLS + 1];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(
        &w, "func f(%1: f32[5] \"x\") {\n  %2 = add %1, %1 : f32[5]\n  return %2, %1\n}\n",
        &(signature){.nfree = 1, .nresult = 2});
    dc_inst *i = world_bind(&w, e, NULL);
    y[0] = world_tensor(&w, DC_F32, 5, 1);
    for (int n = 0; n < CALLS; n++) {
        dc_tensor *out[2];
        CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(y[n])}, out, &fault), DC_OK);
        CHECK_NEAR(value_at(out[1], 4), (double)(5 << n), 0); /* its argument again */
        dc_tensor_release(out[1]);
        y[n + 1] = out[0];
    }
    for (int n = 0; n <= CALLS; n++)
        CHECK_NEAR(value_at(y[n], 4), (double)(5 << n), 0);
    CHECK_EQ(w.rt->stats.moved_out, 0);
    world_release(y, CALLS + 1);
    dc_inst_free(i);
    dc_exec_release(e);
    world_close(&w);
}

/* A call that fails leaves what earlier ones gave, and the next one works. */
static void test_failing(bool in_run)
{
    world w;
    dc_fault fault;
    dc_tensor *old[2], *out[2];
    world_open(&w, ON_CPU, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
    const dc_arg arg[] = {given(g), number(0.5f)};
    CHECK_EQ(dc_inst_call(i, w.j, arg, old, &fault), DC_OK);
    dc_tensor *const was = old[1];
    w.dev->fail_run = in_run;
    w.dev->fail_late = !in_run;
    CHECK(dc_inst_call(i, w.j, arg, out, &fault) != DC_OK);
    world_failure(&w);
    w.dev->fail_run = w.dev->fail_late = false;
    CHECK(old[1] == was);
    CHECK_NEAR(value_at(old[0], 0), sum_before(0), 0);
    CHECK_NEAR(value_at(old[1], 7), w_after(0), 0);
    world_release(old, 2);
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

int main(void)
{
    start_counting();
    test_steady(ON_EVAL);
    test_steady(ON_CPU);
    test_held(ON_EVAL, NULL);
    test_held(ON_CPU, NULL);
    test_held(ON_CPU, "sim:cpu");
    test_held(ON_CPU, "sim:cuda");
    test_held(ON_CPU, "opencl:0");
    test_fed_back(ON_EVAL);
    test_fed_back(ON_CPU);
    test_failing(true);
    test_failing(false);
    return t_done();
}
