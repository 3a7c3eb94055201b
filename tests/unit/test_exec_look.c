/* Looking inside: comparison with the interpreter, times, guard zones, what is told of an executable. */
#include "core/ir/gtext.h"

#include "tests/t.h"
#include "tests/unit/world.h"

static void test_compare(void)
{
    dc_opts opt = {.opt = 2, .compare = "eval"};
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    world_open(&w, ON_CPU, &opt, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
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
    world_close(&w);

    dc_opts wrong = {.opt = 2, .compare = "gpu"};
    world_open(&w, ON_CPU, &wrong, "");
    dc_module *m;
    CHECK_EQ(dc_module_parse(w.j, "func f() {\n  return\n}\n", &m), DC_OK);
    const dc_exec_desc d = {.fn = m->func.at[0], .name = "f"};
    CHECK_EQ(dc_exec_build(w.rt, w.j, &d, &e), DC_E_VALUE);
    CHECK_EQ(w.j->err.id, DC_ERR_OPTION);
    dc_module_free(m);
    world_close(&w);
}

static void test_time(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    world_open(&w, on, NULL, "time");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
    for (int n = 0; n < 3; n++) {
        CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, out, &fault), DC_OK);
        dc_tensor_release(out[0]);
        dc_tensor_release(out[1]);
    }
    CHECK(w.said.s == NULL); /* not before it is asked for */
    dc_profile_report_all(w.rt);
    CHECK(w.said.s != NULL && strstr(w.said.s, "[time] step: 3 calls, ") == w.said.s);
    if (on == ON_CPU)
        CHECK(strstr(w.said.s, " GFLOP/s") != NULL);
    const size_t n = w.said.n;
    dc_profile_report_all(w.rt);
    CHECK_EQ(w.said.n, n); /* counting starts again */
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    CHECK_EQ(w.said.n, n);
    world_close(&w);
}

static char *arena_of(const world *w)
{
    return w->rt->arena_at != NULL ? w->rt->arena_at : w->rt->arena->mem;
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
    world_open(&w, ON_CPU, &opt, "");
    dc_exec *e = world_build(&w, text, &(signature){.nfree = 1, .nresult = 1});
    dc_exec_info_of(e, &info);
    CHECK(info.arena_bytes > 0);
    dc_inst *i = world_bind(&w, e, NULL);
    dc_tensor *x = world_tensor(&w, DC_F32, 5, -2);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK(value_at(out[0], 4) == 3.0f);
    dc_tensor_release(out[0]);
    char *spots[] = {arena_of(&w),                                  /* before a temporary */
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
    world_close(&w);
}

static void test_info(void)
{
    world w;
    dc_exec_info info;
    world_open(&w, ON_CPU, NULL, "plan");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
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
    CHECK(strstr(w.said.s, "   2  copy result.1 <- cell.0 32 bytes  after 1\n") != NULL);
    CHECK(strstr(w.said.s, "arena 0 bytes, 1.000 of the 0 alive at once; cells in place 1, by copy "
                           "0\n") != NULL);
    dc_exec_release(e);

    /* Equal kernels are compiled once, and launched together. */
    e = world_build(&w,
                    "func f(%1: f32[8], %2: f32[8]) {\n"
                    "  %3 = sum %1 {1} : f32[]\n"
                    "  %4 = sum %2 {1} : f32[]\n"
                    "  return %3, %4\n}\n",
                    &(signature){.nfree = 2, .nresult = 2});
    dc_exec_info_of(e, &info);
    CHECK_EQ(info.launches, 1);
    CHECK_EQ(info.kernels, 1);
    dc_exec_release(e);
    world_close(&w);
}

int main(void)
{
    test_compare();
    test_time(ON_EVAL);
    test_time(ON_CPU);
    test_guards();
    test_info();
    return t_done();
}
