/* In the steady state a call takes no memory: neither the device's nor, on the CPU, the host's. */
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

int main(void)
{
    start_counting();
    test_steady(ON_EVAL);
    test_steady(ON_CPU);
    return t_done();
}
