/*
 * Executables and instances through jit/jit.h, on the interpreter and on the CPU: what calls
 * return, what cells hold, what holders of older values see.
 */
#include "tests/t.h"
#include "tests/unit/world.h"

/* ---- calls ---- */

static void test_call(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2], *old[2];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w"); /* 1 .. 8 */
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0), *before = dc_cell_show(c); /* 0 .. 7 */
    const uint64_t compiles = w.rt->stats.compiles;

    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, old, &fault), DC_OK);
    CHECK_EQ(fault.check, -1);
    CHECK(value_at(old[0], 0) == 36.0f);
    CHECK(value_at(old[1], 2) == 2.0f && value_at(old[1], 7) == 4.5f);
    CHECK(cell_at(c, 2) == 2.0f && cell_at(c, 7) == 4.5f);
    CHECK(value_at(before, 2) == 3.0f); /* holders of the old value see no change */

    /* another number, as a tensor; an argument that shows the cell itself */
    dc_tensor *lr = world_tensor(&w, DC_F32, 0, 1), *self = dc_cell_show(c);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(self), given(lr)}, out, &fault), DC_OK);
    CHECK(cell_at(c, 2) == 0.0f && cell_at(c, 7) == 0.0f);
    CHECK(value_at(self, 7) == 4.5f);
    CHECK(value_at(old[0], 0) == 36.0f &&
          value_at(old[1], 2) == 2.0f); /* nor do those of results */
    CHECK(value_at(out[0], 0) == 22.0f && value_at(out[1], 7) == 0.0f);

    /* an argument that is the last call's result */
    dc_tensor *third[2];
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(old[1]), number(-1)}, third, &fault), DC_OK);
    CHECK(value_at(third[1], 7) == 4.5f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(third[1]), number(-1)}, out, &fault), DC_OK);
    CHECK(value_at(out[1], 7) == 9.0f && value_at(third[1], 7) == 4.5f);

    CHECK_EQ(w.rt->stats.compiles, compiles); /* new numbers are no reason to compile */
    CHECK_EQ(w.rt->stats.calls, 4);
    CHECK_EQ(w.rt->stats.interpreted, on == ON_CPU ? 0 : 4);
    dc_tensor *all[] = {g, before, lr, self, old[0], old[1], out[0], out[1], third[0], third[1]};
    dc_inst_free(i);
    CHECK(value_at(out[1], 7) == 9.0f); /* results outlive the instance */
    for (size_t k = 0; k < DC_COUNTOF(all); k++)
        dc_tensor_release(all[k]);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

static void test_instances(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *a = world_cell(&w, 8, 1, "a"), *b = world_cell(&w, 8, 2, "b");
    dc_inst *ia = world_bind(&w, e, &a), *ib = world_bind(&w, e, &b),
            *again = world_bind(&w, e, &a);
    dc_exec_release(e); /* the instances keep it */
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 1);
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
    world_close(&w);
}

/* A number of the device beside one of the host: it is bound where it stands, and nothing is read back. */
static void test_numbers(where on)
{
    static const char text[] = "func f(%1: f32[] \"a\", %2: f32[] \"b\") {\n"
                               "  %3 = sub %1, %2 : f32[]\n"
                               "  return %3, %1, %2\n}\n";
    const signature s = {.nfree = 2, .nresult = 3};
    world w;
    dc_fault fault;
    dc_tensor *out[3];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, text, &s);
    dc_inst *i = world_bind(&w, e, NULL);
    dc_tensor *four = world_tensor(&w, DC_F32, 0, 4);
    const dc_arg arg[][2] = {{given(four), number(1)},
                             {number(9), given(four)},
                             {given(four), given(four)},
                             {number(6), number(2)}};
    const float expect[][2] = {{4, 1}, {9, 4}, {4, 4}, {6, 2}};
    for (size_t k = 0; k < DC_COUNTOF(arg); k++) {
        const uint64_t uploads = w.dev->uploads, downloads = w.dev->downloads;
        CHECK_EQ(dc_inst_call(i, w.j, arg[k], out, &fault), DC_OK);
        if (on == ON_CPU) {
            CHECK_EQ(w.dev->downloads, downloads);
            CHECK_EQ(w.dev->uploads, uploads + (k == 2 ? 0 : 1));
        }
        CHECK(value_at(out[0], 0) == expect[k][0] - expect[k][1]);
        CHECK(value_at(out[1], 0) == expect[k][0] && value_at(out[2], 0) == expect[k][1]);
        world_release(out, 3);
    }
    CHECK(value_at(four, 0) == 4);
    dc_tensor_release(four);
    dc_inst_free(i);
    dc_exec_release(e);
    world_close(&w);
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
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, text, &s);
    dc_cell *c[] = {world_cell(&w, 4, 10, "a"), world_cell(&w, 4, 20, "b"),
                    world_cell(&w, 4, 30, "c"), world_cell(&w, 0, 5, "d")};
    dc_inst *i = world_bind(&w, e, c);
    dc_tensor *x = world_tensor(&w, DC_F32, 4, 1);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x), number(7)}, out, &fault), DC_OK);
    CHECK(value_at(out[0], 3) == 4.0f && value_at(out[1], 0) == 7.0f &&
          value_at(out[2], 3) == 33.0f);
    CHECK(value_at(out[3], 3) == -33.0f && value_at(out[4], 3) == -33.0f);
    CHECK(cell_at(c[0], 3) == 23.0f && cell_at(c[1], 3) == 13.0f); /* swapped */
    CHECK(cell_at(c[2], 3) == -33.0f && cell_at(c[3], 0) == 7.0f);
    for (int k = 0; k < 5; k++)
        dc_tensor_release(out[k]);
    dc_tensor_release(x);
    dc_inst_free(i);
    for (int k = 0; k < 4; k++)
        dc_cell_release(c[k]);
    dc_exec_release(e);
    world_close(&w);
}

/* Nothing is computed, or nothing comes out. */
static void test_nothing(where on)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, "func f() {\n  return\n}\n", &(signature){0});
    dc_inst *i = world_bind(&w, e, NULL);
    CHECK_EQ(dc_inst_call(i, w.j, NULL, NULL, &fault), DC_OK);
    dc_inst_free(i);
    dc_exec_release(e);
    e = world_build(&w,
                    "func f(%1: f32[0, 4]) {\n"
                    "  %2 = neg %1 : f32[0, 4]\n"
                    "  %3 = sum %2 {3} : f32[]\n"
                    "  return %2, %3\n}\n",
                    &(signature){.nfree = 1, .nresult = 2});
    i = world_bind(&w, e, NULL);
    dc_tensor *x;
    const dc_type type = dc_type_make(DC_F32, 2, (int64_t[]){0, 4});
    CHECK_EQ(dc_tensor_new(w.rt, w.j, &type, &x), DC_OK);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK_EQ(dc_type_count(&out[0]->type), 0);
    CHECK(value_at(out[1], 0) == 0.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(x);
    dc_inst_free(i);
    dc_exec_release(e);
    world_close(&w);
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
    world_open(&w, on, NULL, "");
    dc_exec *e = world_build(&w, check_text, &s);
    dc_cell *c = world_cell(&w, 4, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *good = world_tensor(&w, DC_I32, 4, -1), *bad = world_tensor(&w, DC_I32, 4, 1);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(good)}, out, &fault), DC_OK);
    CHECK_EQ(fault.check, -1);
    CHECK(cell_at(c, 3) == 5.0f);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(bad)}, NULL, &fault), DC_E_VALUE);
    CHECK_EQ(fault.check, 0);
    CHECK_EQ(fault.position, 3);
    CHECK_EQ(fault.value, 4);
    CHECK_EQ(w.j->err.status, DC_OK); /* the caller makes the record */
    CHECK(cell_at(c, 3) == 5.0f && !c->torn);
    CHECK(value_at(out[0], 3) == 5.0f);
    dc_tensor_release(out[0]);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(good)}, out, &fault), DC_OK);
    CHECK(cell_at(c, 3) == 6.0f);
    dc_tensor_release(out[0]);
    dc_tensor_release(good);
    dc_tensor_release(bad);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

static void test_everywhere(where on)
{
    test_call(on);
    test_instances(on);
    test_numbers(on);
    test_sets(on);
    test_nothing(on);
    test_checks(on);
}

int main(void)
{
    test_everywhere(ON_EVAL);
    test_everywhere(ON_CPU);
    return t_done();
}
