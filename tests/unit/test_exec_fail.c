/* Executables and instances when something fails: a device half way, a compiler, a promise. */
#include "tests/t.h"
#include "tests/unit/world.h"

static void fail_at_cell(void *ctx, void *to)
{
    const dc_cell *c = ((void **)ctx)[0];
    shim *s = ((void **)ctx)[1];
    s->fail_upload = to == c->store->mem;
}

/* The step of tests/unit/world.h with a cell and arguments. */
typedef struct stepping {
    world w;
    dc_exec *e;
    dc_cell *c;
    dc_inst *i;
    dc_tensor *g, *out[2];
    dc_arg arg[2];
} stepping;

static void open_step(stepping *t, where on)
{
    world_open(&t->w, on, NULL, "");
    t->e = world_build(&t->w, world_step, &world_step_signature);
    t->c = world_cell(&t->w, 8, 1, "w");
    t->i = world_bind(&t->w, t->e, &t->c);
    t->g = world_tensor(&t->w, DC_F32, 8, 1);
    t->arg[0] = given(t->g);
    t->arg[1] = number(1);
}

static dc_status call_step(stepping *t)
{
    dc_fault fault;
    return dc_inst_call(t->i, t->w.j, t->arg, t->out, &fault);
}

static void drop_results(stepping *t)
{
    dc_tensor_release(t->out[0]);
    dc_tensor_release(t->out[1]);
}

static void close_step(stepping *t)
{
    dc_tensor_release(t->g);
    dc_inst_free(t->i);
    dc_cell_release(t->c);
    dc_exec_release(t->e);
    world_close(&t->w);
}

static void test_torn(where on)
{
    stepping t;
    open_step(&t, on);
    t.w.dev->fail_run = on == ON_CPU;
    t.w.dev->on_upload = on == ON_CPU ? NULL : fail_at_cell;
    t.w.dev->ctx = (void *[]){t.c, t.w.dev};
    CHECK_EQ(call_step(&t), DC_E_DEVICE);
    CHECK(t.c->torn);
    t.w.dev->fail_run = t.w.dev->fail_upload = false;
    t.w.dev->on_upload = NULL;
    t.w.j->err = (dc_err){0};
    CHECK_EQ(call_step(&t), DC_E_STATE);
    CHECK_EQ(t.w.j->err.id, DC_ERR_TORN);
    CHECK_STR(t.w.j->err.fact.word[0], "w");
    t.w.j->err = (dc_err){0};
    CHECK_EQ(dc_cell_write(t.c, t.w.j, t.g), DC_OK);
    CHECK_EQ(call_step(&t), DC_OK);
    CHECK(cell_at(t.c, 5) == 0.0f);
    drop_results(&t);
    close_step(&t);
}

/* A run that fails before it has begun leaves the cells as they are. */
static void test_unbegun(void)
{
    stepping t;
    open_step(&t, ON_CPU);
    const float before = cell_at(t.c, 5);
    t.w.dev->fail_run = t.w.dev->fail_unbegun = true;
    CHECK_EQ(call_step(&t), DC_E_DEVICE);
    CHECK_EQ(world_failure(&t.w), DC_ERR_DEVICE);
    CHECK(!t.c->torn && t.c->job == NULL && cell_at(t.c, 5) == before);
    t.w.dev->fail_run = false;
    CHECK_EQ(call_step(&t), DC_OK);
    CHECK(cell_at(t.c, 5) == before - 1.0f * value_at(t.g, 5));
    drop_results(&t);
    close_step(&t);
}

/* A device that fails after it has done everything: whether it has cannot be known. */
static void test_late(void)
{
    stepping t;
    open_step(&t, ON_CPU);
    t.w.dev->fail_late = true;
    CHECK_EQ(call_step(&t), DC_E_DEVICE);
    CHECK(t.c->torn && t.c->job == NULL);
    CHECK_EQ(world_failure(&t.w), DC_ERR_DEVICE);
    t.w.dev->fail_late = false;
    CHECK_EQ(dc_cell_check(t.c, t.w.j, "read", true), DC_E_STATE);
    CHECK_EQ(world_failure(&t.w), DC_ERR_TORN);
    CHECK_EQ(dc_cell_check(t.c, t.w.j, "set", false), DC_OK);
    close_step(&t);
}

typedef struct calling {
    dc_inst *i;
    const dc_arg *arg;
} calling;

static dc_status call_body(dc_job *j, void *arg)
{
    const calling *a = arg;
    dc_fault fault;
    dc_tensor *out[2];
    return dc_inst_call(a->i, j, a->arg, out, &fault);
}

static void break_promise(void *ctx, void *to)
{
    DC_UNUSED(ctx);
    DC_UNUSED(to);
    DC_BUG("a kernel that is none");
}

static void run_out(void *ctx, void *to)
{
    DC_UNUSED(ctx);
    DC_UNUSED(to);
    dc_nomem(0);
}

/* Unwinding out of a run: what it had written is unknown; everything else is as before. */
static void test_unwound(bool bug)
{
    stepping t;
    open_step(&t, ON_CPU);
    calling a = {t.i, t.arg};
    t.w.dev->on_run = bug ? break_promise : run_out;
    CHECK_EQ(dc_protect(t.w.j, call_body, &a), bug ? DC_E_BUG : DC_E_NOMEM);
    t.w.dev->on_run = NULL;
    CHECK(t.c->torn && t.c->job == NULL && !t.w.rt->arena_busy);
    CHECK(t.w.rt->broken == bug);
    world_failure(&t.w);
    CHECK_EQ(dc_protect(t.w.j, call_body, &a), DC_E_STATE);
    CHECK_EQ(world_failure(&t.w), bug ? DC_ERR_REENTER : DC_ERR_TORN);
    close_step(&t);
}

/* ---- while memory is made ---- */

typedef struct making {
    world *w;
    int what;
    dc_cell *c;
    dc_tensor *x;
} making;

static dc_status make_body(dc_job *j, void *arg)
{
    const making *m = arg;
    dc_rt *rt = m->w->rt;
    dc_cell *c = NULL;
    dc_tensor *t = NULL;
    switch (m->what) {
    case 0:
        return dc_cell_new(rt, j, &m->c->type, "new", true, &c);
    case 1:
        return dc_tensor_new(rt, j, &m->c->type, &t); /* guards are uploaded */
    default:
        return dc_cell_write(m->c, j, m->x); /* holders are moved out by way of the host */
    }
}

/* The device breaks a promise: what was half made goes, and the context can be closed. */
static void test_making(bool bug)
{
    const dc_opts guarded = {.opt = 2, .check = 2};
    for (int what = 0; what < 3; what++) {
        world w;
        world_open(&w, ON_CPU, what == 1 ? &guarded : NULL, "");
        making m = {&w, what, world_cell(&w, 8, 1, "w"), world_tensor(&w, DC_F32, 8, 1)};
        dc_tensor *shown = dc_cell_show(m.c);
        const uint64_t live = w.rt->stats.bytes_live;
        w.dev->ops.copy = NULL;
        w.dev->on_upload = bug ? break_promise : run_out;
        CHECK_EQ(dc_protect(w.j, make_body, &m), bug ? DC_E_BUG : DC_E_NOMEM);
        w.dev->on_upload = NULL;
        CHECK(w.rt->broken == bug);
        CHECK_EQ(w.rt->stats.bytes_live, live);
        CHECK(value_at(shown, 0) == 1 && cell_at(m.c, 0) == 1);
        dc_tensor_release(shown);
        dc_tensor_release(m.x);
        dc_cell_release(m.c);
        world_close(&w);
    }
}

/* Should anything be lost all the same, closing does not mind. */
static void test_lost(void)
{
    world w;
    world_open(&w, ON_CPU, NULL, "");
    w.rt->broken = true;
    world_tensor(&w, DC_F32, 8, 1);
    dc_rt_free(w.rt);
    dc_text_free(&w.said);
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

/* An unfinished instance is released by the code that catches the failure. */
static void test_unwinding(where on)
{
    world w;
    world_open(&w, on, NULL, "");
    twice t = {.w = &w, .c = world_cell(&w, 2, 0, "c")};
    t.e = world_build(
        &w, "func f(%1: f32[2], %2: f32[2]) {\n  %3 = add %1, %2 : f32[2]\n  return %3\n}\n",
        &(signature){.nresult = 1});
    CHECK_EQ(dc_protect(w.j, bind_twice, &t), DC_E_BUG);
    CHECK_EQ(t.c->refs, 1);
    dc_cell_release(t.c);
    dc_exec_release(t.e);
    world_close(&w);
}

/* A compiler that fails is no reason not to answer. */
static void test_fallback(void)
{
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    dc_exec_info info;
    world_open(&w, ON_NOTHING, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    CHECK(strstr(w.said.s, "[note] jit: step falls back to the interpreter: ") == w.said.s);
    CHECK_EQ(w.rt->stats.fallbacks, 1);
    dc_exec_info_of(e, &info);
    CHECK(info.interpreted);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0);
    CHECK_EQ(dc_inst_call(i, w.j, (dc_arg[]){given(g), number(0.5f)}, out, &fault), DC_OK);
    CHECK(value_at(out[0], 0) == 36.0f && cell_at(c, 7) == 4.5f);
    CHECK_EQ(w.rt->stats.interpreted, 1);
    dc_tensor_release(out[0]);
    dc_tensor_release(out[1]);
    dc_tensor_release(g);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

static void test_everywhere(where on)
{
    test_torn(on);
    if (on == ON_CPU)
        test_unbegun();
    test_unwinding(on);
}

int main(void)
{
    test_everywhere(ON_EVAL);
    test_fallback();
    test_everywhere(ON_CPU);
    test_late();
    test_unwound(false);
    test_unwound(true);
    test_making(false);
    test_making(true);
    test_lost();
    return t_done();
}
