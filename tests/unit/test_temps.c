/* The arena of a context: it grows where it is, serves each instance that runs, and is freed with the last one. */
#include "jit/exec/exec.h"
#include "jit/exec/temp_arena.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/world.h"

/* A function that keeps n elements alive at once, and an instance of it. */
static dc_inst *instance(world *w, int n)
{
    char text[600];
    snprintf(text, sizeof text,
             "func f(%%1: f32[%d]) {\n"
             "  %%2 = exp %%1 : f32[%d]\n"
             "  %%3 = max %%2 {1} : f32[]\n"
             "  %%4 = reshape %%3 : f32[1]\n"
             "  %%5 = expand %%4 : f32[%d]\n"
             "  %%6 = add %%2, %%5 : f32[%d]\n"
             "  return %%6\n}\n",
             n, n, n, n);
    dc_exec *e = world_build(w, text, &(signature){.nfree = 1, .nresult = 1});
    CHECK(e->info.arena_bytes >= (size_t)n * sizeof(float));
    dc_inst *i = world_bind(w, e, NULL);
    dc_exec_release(e);
    return i;
}

static void call(world *w, dc_inst *i, int n)
{
    dc_tensor *out[1], *x = world_tensor(w, DC_F32, n, (float)-n);
    dc_fault fault;
    CHECK_EQ(dc_inst_call(i, w->j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK_NEAR(value_at(out[0], n - 1), 2 * exp(-1.0), 1e-5);
    world_release(out, 1);
    dc_tensor_release(x);
}

static void test_grows(bool no_space)
{
    static const dc_opts naive = {.opt = 0};
    world w;
    bool done;
    dc_fault fault;
    world_open(&w, ON_CPU, &naive, "");
    w.dev->no_space = no_space;
    dc_inst *small = instance(&w, 100);
    call(&w, small, 100);
    const bool space = w.rt->arena_at != NULL;
    CHECK(space != no_space);
    CHECK((w.rt->arena == NULL) == space);
    const void *at = w.rt->arena_at;
    const size_t bytes = w.rt->arena_bytes, live = w.rt->stats.bytes_live;

    dc_tensor *x = world_tensor(&w, DC_F32, 100, -100), *out[1];
    CHECK_EQ(dc_inst_start(small, w.j, (dc_arg[]){given(x)}), DC_OK);
    CHECK_EQ(dc_inst_poll(small, w.j, 0, &done, &fault), DC_OK);
    CHECK(!done && w.rt->arena_busy);
    dc_inst *large = instance(&w, 1000000); /* while a job has it */
    call(&w, large, 1000000);
    CHECK(w.rt->arena_busy);
    CHECK(w.rt->arena_at == at);
    CHECK(!space || w.rt->arena_bytes >= 4000000);
    CHECK_EQ(dc_inst_poll(small, w.j, UINT64_MAX, &done, &fault), DC_OK);
    CHECK(done && !w.rt->arena_busy);
    CHECK_EQ(dc_inst_take(small, w.j, out), DC_OK);
    CHECK_NEAR(value_at(out[0], 99), 2 * exp(-1.0), 1e-5);
    world_release(out, 1);

    call(&w, large, 1000000); /* now in the arena */
    CHECK(w.rt->arena_at == at);
    call(&w, small, 100);
    const uint64_t allocs = w.rt->stats.allocs;
    call(&w, small, 100);
    call(&w, large, 1000000);
    CHECK_EQ(w.rt->stats.allocs, allocs);
    CHECK(!space || (bytes < w.rt->arena_bytes && live < w.rt->stats.bytes_live));
    dc_inst_free(large);
    CHECK(w.rt->arena_at == at);
    dc_inst_free(small);
    CHECK(w.rt->arena_at == NULL && w.rt->arena == NULL && w.rt->arena_bytes == 0);
    dc_inst *again = instance(&w, 50);
    call(&w, again, 50);
    dc_inst_free(again);
    dc_tensor_release(x);
    world_close(&w);
}

/* Plans that are larger than any arena can be have no memory at all; others get by. */
static void test_too_much(void)
{
    world w;
    void *mem;
    dc_storage *own;
    world_open(&w, ON_CPU, NULL, "");
    dc_temp_arena_retain(w.rt);
    CHECK_EQ(dc_temp_arena_take(w.rt, w.j, 1000, &mem, &own), DC_OK);
    CHECK(own == NULL && (uintptr_t)mem % 64 == 0);
    memset(mem, 1, 1000);
    void *mine;
    dc_storage *second;
    CHECK_EQ(dc_temp_arena_take(w.rt, w.j, 1000, &mine, &second), DC_OK);
    CHECK(second != NULL && mine != mem);
    memset(mine, 2, 1000);
    CHECK_EQ(((unsigned char *)mem)[999], 1);
    CHECK_EQ(dc_temp_arena_grow(w.rt, w.j, 100000), DC_OK); /* under the user's feet */
    CHECK_EQ(((unsigned char *)mem)[999], 1);
    dc_temp_arena_give(w.rt, second);
    CHECK(w.rt->arena_busy);
    CHECK_EQ(dc_temp_arena_take(w.rt, w.j, SIZE_MAX / 2, &mine, &second), DC_E_NOMEM);
    CHECK_EQ(world_failure(&w), DC_ERR_NOMEM);
    dc_temp_arena_give(w.rt, NULL);
    CHECK_EQ(dc_temp_arena_take(w.rt, w.j, SIZE_MAX / 2, &mine, &second), DC_E_NOMEM);
    CHECK_EQ(world_failure(&w), DC_ERR_NOMEM);
    CHECK(!w.rt->arena_busy);
    CHECK_EQ(dc_temp_arena_take(w.rt, w.j, 100000, &mem, &own), DC_OK);
    CHECK(own == NULL);
    dc_temp_arena_give(w.rt, own);
    dc_temp_arena_release(w.rt);
    world_close(&w);
}

int main(void)
{
    test_grows(false);
    test_grows(true);
    test_too_much();
    return t_done();
}
