/*
 * Loops and branches in executables: lists made by hand, called whole, in slices, in other orders,
 * and against plain C.
 */
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/itemkit.h"

enum { N = 8, F = N * sizeof(float) };

/* ---- kernels --------------------------------------------------------------------------------- */

static const char one_text[] = "func one(%1: f32[8]) {\n"
                               "  %2 = const {0} : f32[8]\n"
                               "  %3 = mul %1, %2 : f32[8]\n"
                               "  %4 = const {1065353216} : f32[8]\n"
                               "  %5 = add %3, %4 : f32[8]\n"
                               "  return %5\n}\n";
/* x = (x + a / x) / 2 */
static const char newton_text[] = "func newton(%1: f32[8], %2: f32[8]) {\n"
                                  "  %3 = div %2, %1 : f32[8]\n"
                                  "  %4 = add %1, %3 : f32[8]\n"
                                  "  %5 = const {1056964608} : f32[8]\n"
                                  "  %6 = mul %4, %5 : f32[8]\n"
                                  "  return %6\n}\n";
/* 1/8 < max |x * x - a| */
static const char far_text[] = "func far(%1: f32[8], %2: f32[8]) {\n"
                               "  %3 = mul %1, %1 : f32[8]\n"
                               "  %4 = sub %3, %2 : f32[8]\n"
                               "  %5 = abs %4 : f32[8]\n"
                               "  %6 = max %5 {1} : f32[]\n"
                               "  %7 = const {1040187392} : f32[]\n"
                               "  %8 = lt %7, %6 : bool[]\n"
                               "  return %8\n}\n";
static const char true_text[] = "func yes() {\n  %1 = const {1} : bool[]\n  return %1\n}\n";
/* 2 * x + i */
static const char horner_text[] = "func horner(%1: f32[8], %2: i32[]) {\n"
                                  "  %3 = cast %2 : f32[]\n"
                                  "  %4 = reshape %3 : f32[1]\n"
                                  "  %5 = expand %4 : f32[8]\n"
                                  "  %6 = add %1, %1 : f32[8]\n"
                                  "  %7 = add %6, %5 : f32[8]\n"
                                  "  return %7\n}\n";
static const char double_text[] = "func double(%1: f32[8]) {\n"
                                  "  %2 = add %1, %1 : f32[8]\n"
                                  "  return %2\n}\n";
static const char negate_text[] = "func negate(%1: f32[8]) {\n"
                                  "  %2 = neg %1 : f32[8]\n"
                                  "  return %2\n}\n";
/* at iteration 3 and later: the iteration, else -1 */
static const char late_text[] = "func late(%1: i32[]) {\n"
                                "  %2 = const {2} : i32[]\n"
                                "  %3 = lt %2, %1 : bool[]\n"
                                "  %4 = const {-1} : i32[]\n"
                                "  %5 = where %3, %1, %4 : i32[]\n"
                                "  return %5\n}\n";

static const dc_type vector = {.dtype = DC_F32, .rank = 1, .dim = {N}};
static const dc_type flag = {.dtype = DC_BOOL};

/* ---- running one list in every way ----------------------------------------------------------- */

static const char *device; /* NULL: cpu */

typedef struct trial {
    world w;
    itemkit k;
    dc_exec *e;
    dc_cell *cell;
    float start; /* of the cell */
} trial;

static void open_trial(trial *t, const dc_opts *opt, uint64_t seed)
{
    *t = (trial){0};
    world_open(&t->w, ON_CPU, opt, "");
    if (device != NULL)
        CHECK(world_device(&t->w, device));
    t->k.w = &t->w;
    t->k.desc.name = "commands";
    t->w.dev->seed = seed;
}

static void close_trial(trial *t)
{
    if (t->cell != NULL)
        dc_cell_release(t->cell);
    if (t->e != NULL)
        dc_exec_release(t->e);
    itemkit_free(&t->k);
    world_close(&t->w);
}

static void set_cell(trial *t)
{
    dc_tensor *x = world_tensor(&t->w, DC_F32, N, t->start);
    if (t->cell == NULL)
        CHECK_EQ(dc_cell_new(t->w.rt, t->w.j, &vector, "c", false, &t->cell), DC_OK);
    CHECK_EQ(dc_cell_write(t->cell, t->w.j, x), DC_OK);
    dc_tensor_release(x);
}

static dc_inst *instance(trial *t)
{
    if (t->e->desc.ncell > 0)
        set_cell(t);
    return world_bind(&t->w, t->e, &t->cell);
}

/* A call, or as many slices as possible. Returns how many. */
static int run(trial *t, dc_inst *i, const dc_arg *arg, bool sliced, dc_tensor **out,
               dc_status *status, dc_fault *fault)
{
    bool done = false;
    int slices = 0;
    if (!sliced) {
        *status = dc_inst_call(i, t->w.j, arg, out, fault);
        return 1;
    }
    *status = dc_inst_start(i, t->w.j, arg);
    while (*status == DC_OK && !done) {
        *status = dc_inst_poll(i, t->w.j, 0, &done, fault);
        slices++;
    }
    if (*status == DC_OK)
        CHECK_EQ(dc_inst_take(i, t->w.j, out), DC_OK);
    return slices;
}

/* ---- a loop that ends by a condition --------------------------------------------------------- */

enum { NEWTON_X = 0, NEWTON_FAR = 64, NEWTON_COUNT = 128 };

static void make_newton(trial *t)
{
    static const dc_type result[] = {{.dtype = DC_F32, .rank = 1, .dim = {N}}, {.dtype = DC_I32}};
    itemkit *k = &t->k;
    const uint32_t one = itemkit_kernel(k, one_text), step = itemkit_kernel(k, newton_text),
                   far = itemkit_kernel(k, far_text);
    const dc_bind x = in_arena(NEWTON_X), yes = in_arena(NEWTON_FAR),
                  count = in_arena(NEWTON_COUNT), a = {dc_slot_free(0), 0};
    k->desc.nfree = 1;
    k->desc.param = &vector;
    k->desc.nresult = 2;
    k->desc.result = result;
    k->desc.arena_bytes = 192;
    itemkit_launch(k, one, &x, &a);
    itemkit_launch(k, far, &yes, (dc_bind[]){x, a});
    const uint32_t loop = itemkit_loop(k, 40, (dc_bind[]){yes, count}, 2);
    itemkit_launch(k, step, &x, (dc_bind[]){x, a});
    itemkit_launch(k, far, &yes, (dc_bind[]){x, a});
    itemkit_end(k, loop);
    itemkit_copy(k, (dc_bind){DC_SLOT_FIRST + 1, 0}, x, F);
    itemkit_copy(k, (dc_bind){DC_SLOT_FIRST + 2, 0}, count, sizeof(int32_t));
    t->e = itemkit_exec(k);
}

static int newton_steps(void)
{
    int n = 0;
    double x[N], far = 1;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    for (; far > 0.125; n++) {
        far = 0;
        for (int i = 0; i < N; i++) {
            x[i] = (x[i] + (5 + i) / x[i]) / 2;
            far = fmax(far, fabs(x[i] * x[i] - (5 + i)));
        }
    }
    return n;
}

static void test_while(const dc_opts *opt, uint64_t seed)
{
    trial t;
    open_trial(&t, opt, seed);
    make_newton(&t);
    dc_inst *i = instance(&t);
    dc_tensor *a = world_tensor(&t.w, DC_F32, N, 5);
    for (int sliced = 0; sliced < 2; sliced++) {
        dc_tensor *out[2];
        dc_status status;
        dc_fault fault;
        const int n = run(&t, i, (dc_arg[]){given(a)}, sliced, out, &status, &fault);
        CHECK_EQ(status, DC_OK);
        const int32_t last = (int32_t)dc_f32_bits(value_at(out[1], 0));
        CHECK_EQ(last, newton_steps() - 1);
        for (int k = 0; k < N; k++)
            CHECK_NEAR(value_at(out[0], k), sqrt(5 + k), 0.02);
        CHECK_EQ(n, sliced ? 4 + 2 * (last + 1) : 1); /* every launch and copy */
        world_release(out, 2);
    }
    dc_tensor_release(a);
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- a loop that counts ---------------------------------------------------------------------- */

/* x = 2 * x + i, ten times; the flag of the loop is never false. into: the cell, or the arena. */
static void make_count(trial *t, bool in_cell)
{
    static const uint32_t set[] = {0};
    static const dc_type types[] = {{.dtype = DC_F32, .rank = 1, .dim = {N}},
                                    {.dtype = DC_F32, .rank = 1, .dim = {N}}};
    itemkit *k = &t->k;
    const uint32_t yes = itemkit_kernel(k, true_text), step = itemkit_kernel(k, horner_text);
    const dc_bind first = {DC_SLOT_FIRST, 0}, second = {DC_SLOT_FIRST + 1, 0};
    const dc_bind x = in_cell ? first : in_arena(0), count = in_arena(64), go = in_arena(128);
    k->desc.param = types;
    k->desc.result = types;
    k->desc.nresult = 1;
    k->desc.set = set;
    k->desc.ncell = k->desc.nset = in_cell;
    k->desc.nfree = !in_cell;
    k->desc.arena_bytes = 192;
    itemkit_launch(k, yes, &go, NULL);
    if (!in_cell)
        itemkit_copy(k, x, first, F);
    const uint32_t loop = itemkit_loop(k, 10, (dc_bind[]){go, count}, 2);
    itemkit_launch(k, step, &x, (dc_bind[]){x, count});
    itemkit_end(k, loop);
    itemkit_copy(k, second, x, F);
    t->e = itemkit_exec(k);
}

static float counted(float x)
{
    for (int i = 0; i < 10; i++)
        x = 2 * x + (float)i;
    return x;
}

static void test_counted(bool in_cell, const dc_opts *opt, uint64_t seed)
{
    trial t;
    open_trial(&t, opt, seed);
    t.start = 3;
    make_count(&t, in_cell);
    dc_inst *i = instance(&t);
    dc_tensor *x = world_tensor(&t.w, DC_F32, N, 3);
    CHECK(t.e->cell_read != NULL && (!in_cell || t.e->cell_read[0]));
    for (int sliced = 0; sliced < 2; sliced++) {
        dc_tensor *out[1];
        dc_status status;
        dc_fault fault;
        if (in_cell)
            set_cell(&t);
        run(&t, i, (dc_arg[]){given(x)}, sliced, out, &status, &fault);
        CHECK_EQ(status, DC_OK);
        for (int k = 0; k < N; k++) {
            CHECK(value_at(out[0], k) == counted(3 + (float)k));
            CHECK(!in_cell || cell_at(t.cell, k) == counted(3 + (float)k));
        }
        world_release(out, 1);
    }
    dc_tensor_release(x);
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* which ? x * 2^(3 * 2) : -x; two loops inside each other stand in the branch */
static void make_branch(trial *t)
{
    static const dc_type param[] = {{.dtype = DC_F32, .rank = 1, .dim = {N}}, {.dtype = DC_BOOL}};
    itemkit *k = &t->k;
    const uint32_t twice = itemkit_kernel(k, double_text), minus = itemkit_kernel(k, negate_text);
    const dc_bind x = {dc_slot_free(0), 0}, y = {DC_SLOT_FIRST + 2, 0};
    k->desc.nfree = 2;
    k->desc.param = param;
    k->desc.nresult = 1;
    k->desc.result = &vector;
    const uint32_t branch = itemkit_branch(k, (dc_bind){DC_SLOT_BLOCK, dc_exec_block_at(param, 1)});
    itemkit_copy(k, y, x, F);
    const uint32_t outer = itemkit_loop(k, 3, NULL, 0), inner = itemkit_loop(k, 2, NULL, 0);
    itemkit_launch(k, twice, &y, &y);
    itemkit_end(k, inner);
    itemkit_end(k, outer);
    itemkit_end(k, branch);
    itemkit_launch(k, minus, &y, &x);
    itemkit_else(k, branch);
    t->e = itemkit_exec(k);
}

static void test_branch(const dc_opts *opt, uint64_t seed)
{
    trial t;
    open_trial(&t, opt, seed);
    make_branch(&t);
    dc_inst *i = instance(&t);
    dc_tensor *x = world_tensor(&t.w, DC_F32, N, 1);
    CHECK(dc_type_same(&t.e->param[1], &flag));
    for (int n = 0; n < 4; n++) {
        const bool which = n & 1, sliced = n & 2;
        const dc_arg arg[] = {given(x), {.bits = which}};
        dc_tensor *out[1];
        dc_status status;
        dc_fault fault;
        const int slices = run(&t, i, arg, sliced, out, &status, &fault);
        CHECK_EQ(status, DC_OK);
        for (int k = 0; k < N; k++)
            CHECK(value_at(out[0], k) == (which ? 64.0f : -1.0f) * (float)(1 + k));
        CHECK(!sliced || (which ? slices >= 7 : slices == 1));
        world_release(out, 1);
    }
    dc_tensor_release(x);
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- a check in a loop ----------------------------------------------------------------------- */

/* The cell is negated, unless the loop of `rounds` iterations comes to iteration 3. */
static void make_check(trial *t, int rounds)
{
    static const uint32_t set[] = {0};
    itemkit *k = &t->k;
    const uint32_t yes = itemkit_kernel(k, true_text), late = itemkit_kernel(k, late_text),
                   minus = itemkit_kernel(k, negate_text);
    const dc_bind go = in_arena(0), count = in_arena(64), found = in_arena(128);
    const dc_bind cell = {DC_SLOT_FIRST, 0};
    k->desc.ncell = k->desc.nset = k->desc.ncheck = 1;
    k->desc.set = set;
    k->desc.param = k->desc.result = &vector;
    k->desc.arena_bytes = 192;
    itemkit_launch(k, yes, &go, NULL);
    const uint32_t loop = itemkit_loop(k, rounds, (dc_bind[]){go, count}, 2);
    itemkit_launch(k, late, &found, &count);
    itemkit_check(k, 0, found, count);
    itemkit_end(k, loop);
    itemkit_launch(k, minus, &cell, &cell);
    t->e = itemkit_exec(k);
}

static void test_check(int rounds, const dc_opts *opt, uint64_t seed)
{
    trial t;
    open_trial(&t, opt, seed);
    t.start = 1;
    make_check(&t, rounds);
    dc_inst *i = instance(&t);
    for (int sliced = 0; sliced < 2; sliced++) {
        dc_status status;
        dc_fault fault;
        set_cell(&t);
        run(&t, i, NULL, sliced, NULL, &status, &fault);
        CHECK_EQ(status, rounds > 3 ? DC_E_VALUE : DC_OK);
        CHECK_EQ(fault.check, rounds > 3 ? 0 : -1);
        CHECK(rounds <= 3 || (fault.position == 3 && fault.value == 3));
        CHECK(cell_at(t.cell, 2) == (rounds > 3 ? 3.0f : -3.0f));
        CHECK(!t.cell->torn && t.cell->job == NULL);
        CHECK_EQ(t.w.j->err.status, DC_OK);
    }
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- jobs that are dropped ------------------------------------------------------------------- */

/* After n slices: is the cell torn? */
static bool torn_after(int n, void (*make)(trial *), float *first)
{
    trial t;
    bool done = false;
    dc_fault fault;
    open_trial(&t, NULL, 0);
    t.start = 1;
    make(&t);
    dc_inst *i = instance(&t);
    CHECK_EQ(dc_inst_start(i, t.w.j, NULL), DC_OK);
    for (; n > 0; n--)
        CHECK_EQ(dc_inst_poll(i, t.w.j, 0, &done, &fault), DC_OK);
    CHECK(!done);
    dc_inst_cancel(i);
    const bool torn = t.cell->torn;
    *first = cell_at(t.cell, 0);
    CHECK(t.cell->job == NULL && !t.w.rt->arena_busy);
    set_cell(&t); /* whole again */
    dc_tensor *out[1];
    CHECK_EQ(dc_inst_call(i, t.w.j, NULL, out, &fault), DC_OK);
    world_release(out, t.e->desc.nresult);
    dc_inst_free(i);
    close_trial(&t);
    return torn;
}

static void make_cell_loop(trial *t)
{
    make_count(t, true);
}

static void make_cell_last(trial *t)
{
    make_check(t, 3);
}

static void test_dropped(void)
{
    float first;
    CHECK(!torn_after(0, make_cell_loop, &first) && first == 1.0f);
    for (int n = 2; n < 11; n++)
        CHECK(torn_after(n, make_cell_loop, &first) && first > 1.0f);
    for (int n = 0; n < 4; n++) /* the cell is written behind the loop */
        CHECK(!torn_after(n, make_cell_last, &first) && first == 1.0f);
}

/* The device fails in a slice, somewhere in the loop that writes the cell; then all goes again. */
static void test_fails(void)
{
    trial t;
    bool done;
    dc_fault fault;
    dc_tensor *out[1];
    open_trial(&t, NULL, 0);
    t.start = 3;
    make_count(&t, true);
    dc_inst *i = instance(&t);
    CHECK_EQ(dc_inst_start(i, t.w.j, NULL), DC_OK);
    for (int n = 0; n < 5; n++)
        CHECK_EQ(dc_inst_poll(i, t.w.j, 0, &done, &fault), DC_OK);
    t.w.dev->fail_late = true;
    CHECK_EQ(dc_inst_poll(i, t.w.j, 0, &done, &fault), DC_E_DEVICE);
    t.w.dev->fail_late = false;
    CHECK_EQ(world_failure(&t.w), DC_ERR_DEVICE);
    CHECK(t.cell->torn && t.cell->job == NULL && !t.w.rt->arena_busy);
    CHECK_EQ(dc_inst_start(i, t.w.j, NULL), DC_E_STATE); /* the loop begins with the old value */
    CHECK_EQ(world_failure(&t.w), DC_ERR_TORN);
    set_cell(&t);
    CHECK_EQ(dc_inst_call(i, t.w.j, NULL, out, &fault), DC_OK);
    CHECK(cell_at(t.cell, 1) == counted(4));
    world_release(out, 1);
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- a broken promise in a call ---- */

static void break_promise(void *ctx, void *to)
{
    DC_UNUSED(ctx);
    DC_UNUSED(to);
    DC_BUG("%d is not %d", 1, 2);
}

static void hear_bug(void *ctx, const char *file)
{
    *(int *)ctx += file == NULL ? 1 : 100;
}

static dc_status call_body(dc_job *j, void *arg)
{
    dc_tensor *out[1];
    dc_fault fault;
    return dc_inst_call(arg, j, NULL, out, &fault);
}

/* There is no function to write down: the host hears of it all the same. */
static void test_bug(void)
{
    trial t;
    int heard = 0;
    open_trial(&t, NULL, 0);
    t.start = 3;
    make_count(&t, true);
    t.w.rt->on_bug = hear_bug;
    t.w.rt->on_bug_ctx = &heard;
    dc_inst *i = instance(&t);
    t.w.dev->on_run = break_promise;
    CHECK_EQ(dc_protect(t.w.j, call_body, i), DC_E_BUG);
    t.w.dev->on_run = NULL;
    CHECK_EQ(heard, 1);
    CHECK(t.w.rt->broken && t.cell->torn && t.cell->job == NULL && !t.w.rt->arena_busy);
    CHECK_EQ(dc_protect(t.w.j, call_body, i), DC_E_STATE);
    dc_inst_free(i);
    close_trial(&t);
}

/* ---- lists that are refused ------------------------------------------------------------------ */

static void write_argument(itemkit *k, uint32_t twice)
{
    const dc_bind x = {dc_slot_free(0), 0};
    itemkit_launch(k, twice, &x, &x);
}

static void leave_arena(itemkit *k, uint32_t twice)
{
    const dc_bind x = {dc_slot_free(0), 0}, at = in_arena(64);
    itemkit_launch(k, twice, &at, &x);
}

static void leave_slots(itemkit *k, uint32_t twice)
{
    const dc_bind x = {dc_slot_free(0), 0}, at = {DC_SLOT_FIRST + 3, 0};
    itemkit_launch(k, twice, &at, &x);
}

static void check_late(itemkit *k, uint32_t twice)
{
    const dc_bind x = {dc_slot_free(0), 0}, cell = {DC_SLOT_FIRST + 1, 0};
    itemkit_launch(k, twice, &cell, &x);
    itemkit_check(k, 0, in_arena(0), in_arena(0));
}

/* The first iteration writes, the second checks. */
static void check_around(itemkit *k, uint32_t twice)
{
    const dc_bind x = {dc_slot_free(0), 0}, cell = {DC_SLOT_FIRST + 1, 0};
    const uint32_t loop = itemkit_loop(k, 2, NULL, 0);
    itemkit_check(k, 0, in_arena(0), in_arena(0));
    itemkit_launch(k, twice, &cell, &x);
    itemkit_end(k, loop);
}

static void test_refused(void (*make)(itemkit *, uint32_t), const char *says)
{
    static const uint32_t set[] = {0};
    static const dc_type types[] = {{.dtype = DC_F32, .rank = 1, .dim = {N}},
                                    {.dtype = DC_F32, .rank = 1, .dim = {N}}};
    trial t;
    open_trial(&t, NULL, 0);
    t.k.desc.nfree = t.k.desc.ncell = t.k.desc.nset = 1;
    t.k.desc.set = set;
    t.k.desc.param = t.k.desc.result = types;
    t.k.desc.arena_bytes = 64 + F - 4;
    make(&t.k, itemkit_kernel(&t.k, double_text));
    CHECK_EQ(dc_protect(t.w.j, itemkit_try, &t.k), DC_E_BUG);
    CHECK(t.w.j->err.fact.word[1] != NULL && strstr(t.w.j->err.fact.word[1], says) != NULL);
    CHECK(t.w.rt->execs == t.k.kernel[0]); /* nothing is left of it */
    close_trial(&t);
}

static void test_everywhere(const dc_opts *opt, uint64_t seed)
{
    test_while(opt, seed);
    test_counted(false, opt, seed);
    test_counted(true, opt, seed);
    test_branch(opt, seed);
    test_check(3, opt, seed);
    test_check(4, opt, seed);
    test_check(10, opt, seed);
}

/* The same on what else is there. */
static void test_device(const char *name)
{
    world w;
    world_open(&w, ON_CPU, NULL, "");
    const bool there = world_device(&w, name);
    if (!there) {
        char why[600];
        dc_err_render(&w.j->err, 0, why, sizeof why);
        T_SKIP(why);
    }
    world_close(&w);
    if (!there)
        return;
    device = name;
    test_while(NULL, 0);
    test_counted(true, NULL, 7);
    test_branch(NULL, 7);
    test_check(4, NULL, 0);
    device = NULL;
}

int main(void)
{
    const dc_opts guarded = {.opt = 2, .check = 2};
    test_everywhere(NULL, 0);
    test_everywhere(&guarded, 0);
    for (uint64_t seed = 1; seed < 4; seed++)
        test_everywhere(NULL, seed);
    test_device("cpu:cc");
    test_device("sim:cpu");
    test_device("sim:cuda");
    test_device("opencl:0");
    test_dropped();
    test_fails();
    test_bug();
    test_refused(write_argument, "command 0 of 'commands' writes slot 3");
    test_refused(leave_arena, "command 0 of 'commands' leaves slot 1");
    test_refused(leave_slots, "command 0 of 'commands' leaves slot 6");
    test_refused(check_late, "check 1 of 'commands' may run after a cell was written");
    test_refused(check_around, "loop 0 of 'commands' checks and writes a cell");
    return t_done();
}
