/*
 * Calls in slices: a job gives what a call gives, whatever happens between two slices to its
 * arguments, its cells and the arena; other calls that touch what is the job's fail; a job that is
 * dropped leaves everything as it was, or says that it did not.
 */
#include "jit/exec/exec.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/world.h"

/* Four kernels at DEEPC_OPT=0 and a cell that only the last writes; b is read. */
static const char chain_text[] =
    "func chain(%1: f32[8] \"x\", %2: f32[8] \"b\", %3: f32[8] \"w\") {\n"
    "  %4 = mul %1, %3 : f32[8]\n"
    "  %5 = exp %4 : f32[8]\n"
    "  %6 = sum %5 {1} : f32[]\n"
    "  %7 = add %5, %2 : f32[8]\n"
    "  %8 = sub %7, %3 : f32[8]\n"
    "  return %6, %8\n}\n";
static const signature chain_signature = {.nfree = 1, .nresult = 1, .nset = 1, .set = {1}};
enum { N = 8, BYTES = N * sizeof(float), SLICES_MOST = 40 };

typedef struct trial {
    world w;
    dc_exec *e;
    dc_cell *cell[2]; /* b, w */
    dc_inst *i;
    dc_tensor *x;
} trial;

static void open_trial(trial *t, where on, const dc_opts *opt)
{
    static const dc_opts naive = {.opt = 0};
    world_open(&t->w, on, opt != NULL ? opt : &naive, "");
    t->e = world_build(&t->w, chain_text, &chain_signature);
    t->cell[0] = world_cell(&t->w, N, 1, "b");
    t->cell[1] = world_cell(&t->w, N, -4, "w");
    t->i = world_bind(&t->w, t->e, t->cell);
    t->x = world_tensor(&t->w, DC_F32, N, -0.5f);
}

static void close_trial(trial *t)
{
    dc_tensor_release(t->x);
    dc_inst_free(t->i);
    dc_exec_release(t->e);
    dc_cell_release(t->cell[0]);
    dc_cell_release(t->cell[1]);
    world_close(&t->w);
}

static void reset(trial *t)
{
    for (int c = 0; c < 2; c++) {
        dc_tensor *x = world_tensor(&t->w, DC_F32, N, c == 0 ? 1 : -4);
        CHECK_EQ(dc_cell_write(t->cell[c], t->w.j, x), DC_OK);
        dc_tensor_release(x);
    }
}

typedef struct outcome {
    float sum, w[N];
} outcome;

static outcome outcome_of(const trial *t, dc_tensor **out)
{
    outcome o = {.sum = value_at(out[0], 0)};
    memcpy(o.w, t->cell[1]->store->mem, BYTES);
    world_release(out, 1);
    return o;
}

static outcome by_call(trial *t)
{
    dc_tensor *out[1];
    dc_fault fault;
    reset(t);
    CHECK_EQ(dc_inst_call(t->i, t->w.j, (dc_arg[]){given(t->x)}, out, &fault), DC_OK);
    return outcome_of(t, out);
}

static bool same(const outcome *a, const outcome *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void start(trial *t)
{
    reset(t);
    CHECK_EQ(dc_inst_start(t->i, t->w.j, (dc_arg[]){given(t->x)}), DC_OK);
}

/* n slices, or (-1) all. Returns whether the job has ended. */
static bool poll(trial *t, int n)
{
    bool done = false;
    dc_fault fault;
    while (n-- != 0 && !done)
        if (!CHECK_EQ(dc_inst_poll(t->i, t->w.j, 0, &done, &fault), DC_OK))
            exit(1);
    return done;
}

static outcome take(trial *t)
{
    dc_tensor *out[1];
    CHECK_EQ(dc_inst_take(t->i, t->w.j, out), DC_OK);
    return outcome_of(t, out);
}

static int count_slices(trial *t)
{
    int n = 0;
    start(t);
    while (!poll(t, 1))
        n++;
    take(t);
    return n + 1;
}

/* ---- the same as a call ---- */

static void test_same(where on, const dc_opts *opt)
{
    trial t;
    open_trial(&t, on, opt);
    const outcome want = by_call(&t);
    const uint64_t calls = t.w.rt->stats.calls, launches = t.w.rt->stats.launches;
    const int n = count_slices(&t);
    CHECK(on == ON_EVAL || t.e == NULL || n >= 2 || opt != NULL);
    start(&t);
    CHECK(poll(&t, -1));
    outcome got = take(&t);
    CHECK(same(&got, &want));
    CHECK_EQ(t.w.rt->stats.calls, calls + 2);
    CHECK(on == ON_EVAL || t.w.rt->stats.launches > launches);

    bool done; /* a budget that is enough, and one without end */
    dc_fault fault;
    for (int k = 0; k < 2; k++) {
        start(&t);
        CHECK_EQ(dc_inst_poll(t.i, t.w.j, k == 0 ? UINT64_MAX : 10000000000u, &done, &fault),
                 DC_OK);
        CHECK(done);
        got = take(&t);
        CHECK(same(&got, &want));
    }
    close_trial(&t);
}

/* ---- what is the job's ---- */

static void refused(trial *t, dc_status status, dc_err_id id)
{
    CHECK_EQ(status, DC_E_STATE);
    CHECK_EQ(world_failure(&t->w), id);
}

static void test_refusals(where on)
{
    trial t;
    dc_fault fault;
    bool done;
    dc_tensor *out[1];
    open_trial(&t, on, NULL);
    const outcome want = by_call(&t);
    const dc_arg arg[] = {given(t.x)};
    dc_inst *other = world_bind(&t.w, t.e, t.cell);
    refused(&t, dc_inst_poll(t.i, t.w.j, 0, &done, &fault), DC_ERR_REENTER);
    refused(&t, dc_inst_take(t.i, t.w.j, out), DC_ERR_REENTER);
    dc_inst_cancel(t.i); /* nothing to drop */

    start(&t);
    for (int n = 0; n < 2; n++) {
        CHECK_STR(t.cell[1]->job, "chain");
        refused(&t, dc_cell_write(t.cell[1], t.w.j, t.x), DC_ERR_JOB);
        refused(&t, dc_cell_check(t.cell[1], t.w.j, "read", true), DC_ERR_JOB);
        refused(&t, dc_inst_call(t.i, t.w.j, arg, out, &fault), DC_ERR_REENTER);
        refused(&t, dc_inst_start(t.i, t.w.j, arg), DC_ERR_REENTER);
        refused(&t, dc_inst_take(t.i, t.w.j, out), DC_ERR_REENTER);
        refused(&t, dc_inst_call(other, t.w.j, arg, out, &fault), DC_ERR_JOB);
        refused(&t, dc_inst_start(other, t.w.j, arg), DC_ERR_JOB);
        CHECK_EQ(dc_cell_check(t.cell[0], t.w.j, "read", true), DC_OK);
        if (n == 0 && on == ON_CPU)
            CHECK(!poll(&t, 1));
    }
    CHECK(poll(&t, -1));
    CHECK(t.cell[1]->job == NULL && !t.w.rt->arena_busy);
    refused(&t, dc_inst_call(t.i, t.w.j, arg, out, &fault), DC_ERR_REENTER); /* not taken yet */
    CHECK_EQ(dc_inst_poll(t.i, t.w.j, 0, &done, &fault), DC_OK);
    CHECK(done);
    outcome got = take(&t);
    CHECK(same(&got, &want));
    refused(&t, dc_inst_take(t.i, t.w.j, out), DC_ERR_REENTER);
    got = by_call(&t);
    CHECK(same(&got, &want));
    dc_inst_free(other);
    close_trial(&t);
}

static void test_sentence(void)
{
    trial t;
    char text[300];
    open_trial(&t, ON_CPU, NULL);
    start(&t);
    CHECK_EQ(dc_cell_check(t.cell[1], t.w.j, "set", false), DC_E_STATE);
    dc_err_render(&t.w.j->err, 1, text, sizeof text);
    CHECK_STR(text, "set: w is being set by a job of 'chain' that has not ended");
    world_failure(&t.w);
    dc_inst_cancel(t.i);
    close_trial(&t);
}

/* ---- what happens between two slices ---- */

/* The argument is given up and its memory used again; other tensors move. */
static void let_argument_go(trial *t)
{
    dc_tensor_release(t->x);
    t->x = world_tensor(&t->w, DC_F32, N, 100);
}

/* A cell that the job reads gets another value. */
static void set_read_cell(trial *t)
{
    CHECK_EQ(dc_cell_write(t->cell[0], t->w.j, t->x), DC_OK);
}

/* Calls that want the arena, and more of it. */
static void call_others(trial *t)
{
    static const char text[] = "func big(%1: f32[4096]) {\n"
                               "  %2 = exp %1 : f32[4096]\n"
                               "  %3 = neg %2 : f32[4096]\n"
                               "  %4 = mul %3, %2 : f32[4096]\n"
                               "  %5 = sum %4 {1} : f32[]\n"
                               "  return %5\n}\n";
    dc_tensor *out[1], *x = world_tensor(&t->w, DC_F32, 4096, -4096);
    dc_fault fault;
    dc_exec *e = world_build(&t->w, text, &(signature){.nfree = 1, .nresult = 1});
    dc_inst *i = world_bind(&t->w, e, NULL);
    dc_cell *own[2] = {world_cell(&t->w, N, 5, "b2"), world_cell(&t->w, N, 6, "w2")};
    dc_inst *twin = world_bind(&t->w, t->e, own);
    CHECK_EQ(dc_inst_call(i, t->w.j, (dc_arg[]){given(x)}, out, &fault), DC_OK);
    CHECK(t->w.on == ON_EVAL || (t->w.rt->arena_busy == (t->e->info.arena_bytes > 0)));
    world_release(out, 1);
    CHECK_EQ(dc_inst_call(twin, t->w.j, (dc_arg[]){given(t->x)}, out, &fault), DC_OK);
    world_release(out, 1);
    dc_tensor_release(x);
    dc_inst_free(twin);
    dc_inst_free(i);
    dc_exec_release(e);
    dc_cell_release(own[0]);
    dc_cell_release(own[1]);
}

static void test_between(where on, void (*what)(trial *), bool no_space)
{
    trial t;
    open_trial(&t, on, NULL);
    t.w.dev->no_space = no_space;
    const outcome want = by_call(&t);
    const int n = count_slices(&t);
    for (int at = 0; at < n; at++) {
        dc_tensor_release(t.x);
        t.x = world_tensor(&t.w, DC_F32, N, -0.5f);
        start(&t);
        CHECK(!poll(&t, at));
        what(&t);
        CHECK(poll(&t, -1));
        const outcome got = take(&t);
        CHECK(same(&got, &want));
    }
    close_trial(&t);
}

/* Arguments that show a cell the job reads, a cell it sets, and another instance's result. */
static void test_arguments(void)
{
    trial t;
    dc_fault fault;
    dc_tensor *out[1];
    open_trial(&t, ON_CPU, NULL);
    for (int kind = 0; kind < 2; kind++) {
        reset(&t);
        dc_tensor *shown = dc_cell_show(t.cell[kind]);
        CHECK_EQ(dc_inst_call(t.i, t.w.j, (dc_arg[]){given(shown)}, out, &fault), DC_OK);
        const outcome want = outcome_of(&t, out);
        dc_tensor_release(shown);
        reset(&t);
        shown = dc_cell_show(t.cell[kind]);
        CHECK_EQ(dc_inst_start(t.i, t.w.j, (dc_arg[]){given(shown)}), DC_OK);
        dc_tensor_release(shown);
        poll(&t, 1);
        set_read_cell(&t);
        CHECK(poll(&t, -1));
        const outcome got = take(&t);
        CHECK(same(&got, &want));
    }
    close_trial(&t);
}

/* A number that is a tensor, which nobody else holds any more, and whose memory others would get. */
static void test_number(where on)
{
    static const dc_opts naive = {.opt = 0};
    world w;
    dc_fault fault;
    dc_tensor *out[2];
    bool done = false;
    world_open(&w, on, &naive, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    dc_tensor *g = world_tensor(&w, DC_F32, 8, 0), *lr = world_tensor(&w, DC_F32, 0, 0.5f);
    CHECK_EQ(dc_inst_start(i, w.j, (dc_arg[]){given(g), given(lr)}), DC_OK);
    dc_tensor_release(lr);
    dc_tensor *other = world_tensor(&w, DC_F32, 0, 99);
    while (!done)
        if (!CHECK_EQ(dc_inst_poll(i, w.j, 0, &done, &fault), DC_OK))
            exit(1);
    CHECK_EQ(dc_inst_take(i, w.j, out), DC_OK);
    CHECK(cell_at(c, 2) == 2.0f && cell_at(c, 7) == 4.5f);
    dc_tensor *all[] = {g, other, out[0], out[1]};
    world_release(all, 4);
    dc_inst_free(i);
    dc_cell_release(c);
    dc_exec_release(e);
    world_close(&w);
}

/* Three jobs of one executable at the same time, their slices in turn. */
static void test_three(void)
{
    trial t;
    dc_cell *cell[3][2];
    dc_inst *i[3];
    bool done[3] = {false};
    dc_fault fault;
    open_trial(&t, ON_CPU, NULL);
    for (int k = 0; k < 3; k++) {
        cell[k][0] = world_cell(&t.w, N, 1, "b");
        cell[k][1] = world_cell(&t.w, N, (float)-k, "w");
        i[k] = world_bind(&t.w, t.e, cell[k]);
        CHECK_EQ(dc_inst_start(i[k], t.w.j, (dc_arg[]){given(t.x)}), DC_OK);
    }
    for (int n = 0; n < SLICES_MOST; n++)
        if (!done[n % 3])
            CHECK_EQ(dc_inst_poll(i[n % 3], t.w.j, 0, &done[n % 3], &fault), DC_OK);
    for (int k = 0; k < 3; k++) {
        dc_tensor *out[1], *other[1];
        CHECK(done[k]);
        CHECK_EQ(dc_inst_take(i[k], t.w.j, out), DC_OK);
        dc_tensor *w = world_tensor(&t.w, DC_F32, N, (float)-k),
                  *b = world_tensor(&t.w, DC_F32, N, 1);
        CHECK_EQ(dc_cell_write(t.cell[1], t.w.j, w), DC_OK);
        CHECK_EQ(dc_cell_write(t.cell[0], t.w.j, b), DC_OK);
        CHECK_EQ(dc_inst_call(t.i, t.w.j, (dc_arg[]){given(t.x)}, other, &fault), DC_OK);
        CHECK(value_at(out[0], 0) == value_at(other[0], 0));
        CHECK_EQ(memcmp(cell[k][1]->store->mem, t.cell[1]->store->mem, BYTES), 0);
        dc_tensor *all[] = {out[0], other[0], w, b};
        world_release(all, 4);
        dc_inst_free(i[k]);
        dc_cell_release(cell[k][0]);
        dc_cell_release(cell[k][1]);
    }
    close_trial(&t);
}

/* ---- the end before the end ---- */

/* Dropped after each number of slices, by cancel or with the instance. */
static void test_dropped(const dc_opts *opt)
{
    trial t;
    open_trial(&t, ON_CPU, opt);
    const outcome want = by_call(&t);
    const int slices = count_slices(&t);
    int torn = 0;
    CHECK(slices >= 4 && slices < SLICES_MOST);
    for (int n = 0; n < 2 * slices; n++) {
        start(&t);
        const bool done = poll(&t, n / 2);
        CHECK(!done);
        if (n % 2 == 0)
            dc_inst_cancel(t.i);
        else {
            dc_inst_free(t.i);
            t.i = world_bind(&t.w, t.e, t.cell);
        }
        CHECK(t.cell[1]->job == NULL && !t.w.rt->arena_busy && !t.cell[0]->torn);
        torn += t.cell[1]->torn;
        if (!t.cell[1]->torn)
            CHECK(cell_at(t.cell[1], 0) == -4.0f && cell_at(t.cell[1], 7) == 3.0f);
        const outcome got = by_call(&t);
        CHECK(same(&got, &want));
    }
    /* the last kernel writes the cell: dropped before it, all is as it was */
    CHECK_EQ(torn, 0);
    start(&t);
    CHECK(poll(&t, -1));
    dc_inst_cancel(t.i); /* results that are not taken; the cell has its new value */
    CHECK(!t.cell[1]->torn && cell_at(t.cell[1], 0) == want.w[0]);
    close_trial(&t);
}

/* Two cells, two kernels: between them one cell is new and the other is not. */
static void test_half(void)
{
    static const char text[] = "func half(%1: f32[8], %2: f32[16]) {\n"
                               "  %3 = neg %1 : f32[8]\n"
                               "  %4 = neg %2 : f32[16]\n"
                               "  return %3, %4\n}\n";
    world w;
    bool done;
    dc_fault fault;
    world_open(&w, ON_CPU, &(dc_opts){.opt = 0, .skip = "bundle"}, "");
    dc_exec *e = world_build(&w, text, &(signature){.nset = 2, .set = {0, 1}});
    dc_cell *c[] = {world_cell(&w, 8, 1, "a"), world_cell(&w, 16, 1, "b")};
    dc_inst *i = world_bind(&w, e, c);
    CHECK_EQ(dc_inst_start(i, w.j, NULL), DC_OK);
    dc_inst_cancel(i);
    CHECK(!c[0]->torn && !c[1]->torn);
    CHECK_EQ(dc_inst_start(i, w.j, NULL), DC_OK);
    CHECK_EQ(dc_inst_poll(i, w.j, 0, &done, &fault), DC_OK);
    CHECK(!done && (cell_at(c[0], 0) == -1.0f) != (cell_at(c[1], 0) == -1.0f));
    dc_inst_cancel(i);
    CHECK(c[0]->torn && c[1]->torn);
    CHECK_EQ(dc_inst_call(i, w.j, NULL, NULL, &fault), DC_E_STATE);
    CHECK_EQ(world_failure(&w), DC_ERR_TORN);
    CHECK_EQ(dc_inst_start(i, w.j, NULL), DC_E_STATE);
    CHECK_EQ(world_failure(&w), DC_ERR_TORN);
    dc_inst_free(i);
    dc_exec_release(e);
    dc_cell_release(c[0]);
    dc_cell_release(c[1]);
    world_close(&w);
}

static void test_device_fails(void)
{
    trial t;
    bool done;
    dc_fault fault;
    open_trial(&t, ON_CPU, NULL);
    const outcome want = by_call(&t);
    start(&t);
    poll(&t, 2);
    t.w.dev->fail_run = true;
    CHECK_EQ(dc_inst_poll(t.i, t.w.j, 0, &done, &fault), DC_E_DEVICE);
    CHECK(!done && t.cell[1]->torn && !t.cell[0]->torn && t.cell[1]->job == NULL);
    CHECK(!t.w.rt->arena_busy);
    world_failure(&t.w);
    t.w.dev->fail_run = false;
    CHECK_EQ(dc_inst_poll(t.i, t.w.j, 0, &done, &fault), DC_E_STATE); /* it has ended */
    CHECK_EQ(world_failure(&t.w), DC_ERR_REENTER);
    const outcome got = by_call(&t);
    CHECK(same(&got, &want) && !t.cell[1]->torn);
    close_trial(&t);
}

typedef struct polling {
    trial *t;
    bool done;
    dc_fault fault;
} polling;

static dc_status poll_body(dc_job *j, void *arg)
{
    polling *p = arg;
    return dc_inst_poll(p->t->i, j, 0, &p->done, &p->fault);
}

static void run_out(void *ctx, void *to)
{
    DC_UNUSED(ctx);
    DC_UNUSED(to);
    dc_nomem(0);
}

/* A device that unwinds in the middle of a slice. */
static void test_unwinding(void)
{
    trial t;
    open_trial(&t, ON_CPU, NULL);
    start(&t);
    poll(&t, 1);
    polling p = {.t = &t};
    t.w.dev->on_run = run_out;
    CHECK_EQ(dc_protect(t.w.j, poll_body, &p), DC_E_NOMEM);
    t.w.dev->on_run = NULL;
    world_failure(&t.w);
    CHECK(t.cell[1]->torn && t.cell[1]->job == NULL && !t.w.rt->arena_busy);
    by_call(&t);
    close_trial(&t);
}

/* A check that fails in one of the slices. */
static void test_fault(where on)
{
    static const char text[] = "func f(%1: i32[] \"p\", %2: i32[] \"v\", %3: f32[8] \"w\") {\n"
                               "  %4 = neg %3 : f32[8]\n"
                               "  %5 = neg %1 : i32[]\n"
                               "  return %4, %5, %2\n}\n";
    const signature s = {.nfree = 2, .nset = 1, .ncheck = 1};
    world w;
    dc_fault fault;
    world_open(&w, on, &(dc_opts){.opt = 0}, "");
    dc_exec *e = world_build(&w, text, &s);
    dc_cell *c = world_cell(&w, 8, 1, "w");
    dc_inst *i = world_bind(&w, e, &c);
    for (int n = 0; n < 2; n++) {
        bool done = false;
        dc_status status =
            dc_inst_start(i, w.j, (dc_arg[]){{.bits = (uint32_t)(n == 0 ? -6 : 1)}, {.bits = 42}});
        while (status == DC_OK && !done)
            status = dc_inst_poll(i, w.j, 0, &done, &fault);
        CHECK_EQ(status, n == 0 ? DC_E_VALUE : DC_OK);
        CHECK_EQ(fault.check, n == 0 ? 0 : -1);
        CHECK(n == 1 || (fault.position == 6 && fault.value == 42));
        CHECK(cell_at(c, 0) == (n == 0 ? 1.0f : -1.0f) && !c->torn && c->job == NULL);
        CHECK_EQ(w.j->err.status, DC_OK);
        if (n == 1)
            CHECK_EQ(dc_inst_take(i, w.j, NULL), DC_OK);
    }
    dc_inst_free(i);
    dc_exec_release(e);
    dc_cell_release(c);
    world_close(&w);
}

static void test_time(void)
{
    trial t;
    open_trial(&t, ON_CPU, NULL);
    close_trial(&t);
    world_open(&t.w, ON_CPU, &(dc_opts){.opt = 0}, "time");
    t.e = world_build(&t.w, chain_text, &chain_signature);
    t.cell[0] = world_cell(&t.w, N, 1, "b");
    t.cell[1] = world_cell(&t.w, N, -4, "w");
    t.i = world_bind(&t.w, t.e, t.cell);
    t.x = world_tensor(&t.w, DC_F32, N, -0.5f);
    start(&t);
    CHECK(poll(&t, -1));
    take(&t);
    dc_profile_report_all(t.w.rt);
    CHECK(t.w.said.s != NULL && strstr(t.w.said.s, "[time] chain: 1 calls, ") == t.w.said.s);
    close_trial(&t);
}

int main(void)
{
    const dc_opts guarded = {.opt = 0, .check = 2}, compared = {.opt = 0, .compare = "eval"},
                  fast = {.opt = 2};
    for (int on = ON_EVAL; on <= ON_CPU; on++) {
        test_same((where)on, NULL);
        test_same((where)on, &guarded);
        test_same((where)on, &fast);
        test_refusals((where)on);
        test_fault((where)on);
        test_number((where)on);
        for (int space = 0; space < 2; space++) {
            test_between((where)on, let_argument_go, space);
            test_between((where)on, set_read_cell, space);
            test_between((where)on, call_others, space);
        }
    }
    test_same(ON_CPU, &compared);
    test_sentence();
    test_arguments();
    test_three();
    test_dropped(NULL);
    test_dropped(&guarded);
    test_half();
    test_device_fails();
    test_unwinding();
    test_time();
    return t_done();
}
