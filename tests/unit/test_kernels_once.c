/*
 * Kernels that are the same are compiled once in a context: by functions one after the other and at
 * the same time, where compilations overlap in part, and where one of them fails. Unused ones
 * stay for a while.
 */
#define _POSIX_C_SOURCE 200809L
#include "jit/exec/kernel_table.h"

#include "tests/unit/slow.h"
#include "tests/unit/trim.h"

enum { N = 10, COUNT = 16 };

static void release_all(dc_exec **e, int n)
{
    for (int i = 0; i < n; i++)
        dc_exec_release(e[i]);
}

/* Functions of one kernel, whatever they are called. */
static dc_exec *start_same(slow_world *w)
{
    return slow_start_sized(w, 7, COUNT);
}

static void test_at_once(void)
{
    slow_world w;
    dc_exec *e[N];
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    for (int i = 0; i < N; i++)
        e[i] = start_same(&w);
    CHECK(slow_wait_begun(w.dev, 1));
    slow_shut(w.dev, false);
    for (int i = 0; i < N; i++)
        slow_call(&w, e[i], 7, COUNT);
    CHECK_EQ(w.dev->ended, 1);
    CHECK_EQ(w.rt->stats.kernels, 1);
    CHECK_EQ(w.rt->stats.kernels_shared, N - 1);
    release_all(e, N);
    slow_close(&w);
}

static void test_in_turn(void)
{
    slow_world w;
    slow_open(&w, NULL);
    for (int i = 0; i < N; i++) { /* it is unused in between */
        dc_exec *e = start_same(&w);
        slow_call(&w, e, 7, COUNT);
        dc_exec_release(e);
    }
    CHECK_EQ(w.dev->ended, 1);
    CHECK_EQ(w.rt->stats.kernels, 1);
    CHECK_EQ(w.rt->stats.kernels_shared, N - 1);
    CHECK_EQ(w.dev->freed, 0);
    trim_kernels(w.rt);
    CHECK_EQ(w.dev->freed, 1);
    dc_exec *e = start_same(&w);
    slow_call(&w, e, 7, COUNT);
    CHECK_EQ(w.dev->ended, 2);
    dc_exec_release(e);
    slow_close(&w);
}

/* Two results of one function, and of another that shares one of them. */
static dc_exec *start_pair(slow_world *w, const char *first, const char *second)
{
    char text[500];
    dc_module *m = NULL;
    snprintf(text, sizeof text,
             "func pair(%%1: f32[8] \"x\", %%2: f32[8, 4] \"y\") {\n"
             "  %%3 = %s %%1 : f32[8]\n"
             "  %%4 = sum %%2 {2} : f32[8]\n"
             "  %%5 = %s %%4 : f32[8]\n"
             "  return %%3, %%5\n}\n",
             first, second);
    CHECK_EQ(dc_module_parse(w->j, text, &m), DC_OK);
    const dc_exec_desc d = {.fn = m->func.at[0], .name = "pair", .nfree = 2, .nresult = 2};
    slow_asking a = {.w = w, .way = dc_exec_start, .d = &d};
    CHECK_EQ(dc_protect(w->j, slow_ask, &a), DC_OK);
    dc_module_free(m);
    return a.e;
}

static void test_in_part(void)
{
    slow_world w;
    slow_open(&w, NULL);
    dc_exec *a = start_pair(&w, "neg", "exp");
    CHECK_EQ(slow_wait(&w, a), DC_OK);
    const uint64_t both = w.rt->stats.kernels;
    CHECK_EQ(w.rt->stats.kernels_shared, 0);
    dc_exec *b = start_pair(&w, "sqrt", "exp");
    CHECK_EQ(slow_wait(&w, b), DC_OK);
    CHECK(w.rt->stats.kernels_shared > 0);
    CHECK_EQ(w.rt->stats.kernels + w.rt->stats.kernels_shared, 2 * both);
    dc_exec_release(a); /* its program stays: b uses a part of it */
    trim_kernels(w.rt);
    CHECK_EQ(w.dev->freed, 0);
    dc_exec_release(b);
    trim_kernels(w.rt);
    CHECK_EQ(w.dev->freed, w.dev->ended);
    slow_close(&w);
}

/* The call that compiles fails: those that waited for it compile for themselves. */
static void test_failure_is_ones_own(void)
{
    static const slow_failure kinds[] = {SLOW_BUILD, SLOW_NOMEM, SLOW_LARGE};
    for (size_t k = 0; k < DC_COUNTOF(kinds); k++) {
        slow_world w;
        dc_exec *e[N];
        int failed = 0;
        slow_open(&w, NULL);
        slow_shut(w.dev, true);
        slow_fail(w.dev, kinds[k], 1);
        for (int i = 0; i < N; i++)
            e[i] = start_same(&w);
        CHECK(slow_wait_begun(w.dev, 1));
        slow_shut(w.dev, false);
        for (int i = 0; i < N; i++)
            failed += slow_wait(&w, e[i]) != DC_OK;
        CHECK_EQ(failed, kinds[k] == SLOW_BUILD ? 0 : 1); /* else the interpreter steps in */
        CHECK_EQ(w.rt->stats.fallbacks, kinds[k] == SLOW_BUILD);
        CHECK_EQ(w.rt->stats.kernels, 1);
        CHECK_EQ(w.dev->ended + (kinds[k] == SLOW_NOMEM), 2);
        slow_call(&w, e[N - 1], 7, COUNT);
        release_all(e, N);
        slow_close(&w);
    }
}

/* ---- the table alone ------------------------------------------------------------------------- */

static int last_freed;
static long nfreed;

static void count_free(dc_device *d, dc_program *p)
{
    (void)d;
    nfreed++;
    last_freed = (int)(intptr_t)p;
}

static dc_program *program(int n)
{
    return (dc_program *)(intptr_t)n;
}

static dc_compiled *claim(dc_kernels *t, const char *text, bool *mine)
{
    return dc_kernels_claim(t, dc_cache_key_of(text, strlen(text)), mine);
}

/* More than it keeps: the least recently used one goes. */
static void test_bound(void)
{
    static const dc_device_ops ops = {.name = "none", .program_free = count_free};
    dc_device d = {.ops = &ops};
    dc_kernels *t = dc_kernels_new(&d);
    char text[40];
    bool mine;
    dc_compiled *c;
    for (int i = 1; i <= DC_KERNELS_SPARE + 1; i++) {
        snprintf(text, sizeof text, "kernel %d", i);
        c = claim(t, text, &mine);
        CHECK(mine);
        dc_kernels_publish(t, &c, 1, program(i), NULL);
        CHECK(dc_kernels_wait(t, c));
        dc_kernels_release(t, c);
    }
    c = claim(t, "kernel 1", &mine); /* used again, so the second is the oldest */
    CHECK(!mine && dc_compiled_program(c) == program(1));
    dc_kernels_trim(t, DC_KERNELS_SPARE);
    CHECK_EQ(nfreed, 0);
    dc_kernels_release(t, c);
    dc_kernels_trim(t, DC_KERNELS_SPARE);
    CHECK_EQ(nfreed, 1);
    CHECK_EQ(last_freed, 2);
    dc_kernels_free(t);
    CHECK_EQ(nfreed, DC_KERNELS_SPARE + 1);
}

/* A program goes with the last of its kernels. */
static void test_programs(void)
{
    static const dc_device_ops ops = {.name = "none", .program_free = count_free};
    static const char *const text[] = {"a", "b", "c"};
    dc_device d = {.ops = &ops};
    dc_kernels *t = dc_kernels_new(&d);
    dc_compiled *c[3];
    bool mine;
    nfreed = 0;
    for (int i = 0; i < 3; i++)
        c[i] = claim(t, text[i], &mine);
    dc_kernels_publish(t, c, 3, program(9), NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(dc_compiled_entry(c[i]), i);
        CHECK_EQ(nfreed, 0);
        dc_kernels_release(t, c[i]);
        dc_kernels_trim(t, 0);
    }
    CHECK_EQ(nfreed, 1);
    c[0] = claim(t, text[0], &mine);
    CHECK(mine);
    c[1] = claim(t, text[0], &mine);
    CHECK(!mine);
    dc_kernels_abandon(t, c[0]);
    CHECK(!dc_kernels_wait(t, c[1]));
    c[0] = claim(t, text[0], &mine);
    CHECK(mine);
    c[1] = claim(t, text[0], &mine);
    dc_kernels_abandon(t, c[0]);
    dc_kernels_release(t, c[1]); /* a call that waits no more may leave like this, too */
    dc_kernels_free(t);
    CHECK_EQ(nfreed, 1);
}

int main(void)
{
    test_at_once();
    test_in_turn();
    test_in_part();
    test_failure_is_ones_own();
    test_bound();
    test_programs();
    return t_done();
}
