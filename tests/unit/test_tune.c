/*
 * The search for schedules (jit/tune): what it tells, that results stay, that what is found is what the next executable
 * goes by, that the rules' schedule is kept where nothing is faster; schedules that compute
 * something else are not used; and searches that fail or are ended, which leave everything as it was.
 */
#include "jit/cache/tuned_schedules.h"
#include "jit/exec/exec_task.h"
#include "jit/tune/tune.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/world.h"

enum { M = 24, K = 64, N = 48 };

static const char product[] = "func product(%1: f32[24, 64] \"x\", %2: f32[64, 48] \"w\") {\n"
                              "  %3 = dot %1, %2 {0, 1, 1, 0} : f32[24, 48]\n"
                              "  return %3\n}\n";
static const signature product_signature = {.nfree = 2, .nresult = 1};

static world w;
static dc_arena mem; /* of reports */

static dc_exec *open_product(const dc_opts *opt)
{
    world_open(&w, ON_CPU, opt, "");
    return world_build(&w, product, &product_signature);
}

static void close_product(dc_exec *e)
{
    dc_exec_release(e);
    world_close(&w);
    dc_arena_free(&mem);
}

static const dc_tuned *stored(void)
{
    return w.rt->jit->tuned->newest;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

typedef struct asked {
    dc_exec *e, *made;
    dc_tune_options options;
    dc_tune_report report;
    const char *const *move;
    uint32_t nmove;
    bool changed;
} asked;

static dc_status tune_body(dc_job *j, void *arg)
{
    asked *a = arg;
    a->report = (dc_tune_report){.mem = &mem};
    return dc_exec_tune(a->e, j, &a->options, &a->report);
}

static dc_status untune_body(dc_job *j, void *arg)
{
    asked *a = arg;
    return dc_exec_untune(a->e, j, &a->changed);
}

static dc_status remake_body(dc_job *j, void *arg)
{
    asked *a = arg;
    return dc_exec_remake(a->e, j, &a->made);
}

/* As if a search had found these moves for kernel 0. */
static dc_status plant_body(dc_job *j, void *arg)
{
    const asked *a = arg;
    dc_tuned_store *s = w.rt->jit->tuned;
    const dc_tuned found = {.kind = DC_TUNED_MOVES,
                            .kernel = dc_tuned_key(a->e->kept[0].nest),
                            .rules_ns = 3000,
                            .best_ns = 2000,
                            .move = a->move,
                            .nmove = a->nmove};
    dc_tuned_store_set(s, NULL, j, dc_tuned_add(&s->mem, s->newest, &found));
    return DC_OK;
}

static dc_status done(dc_status (*body)(dc_job *, void *), asked *a)
{
    const dc_status s = dc_protect(w.j, body, a);
    if (s != DC_OK)
        a->report.n = 0;
    return s;
}

static dc_exec *remade(dc_exec *e)
{
    asked a = {.e = e};
    CHECK(done(remake_body, &a) == DC_OK);
    return a.made;
}

/* ---- results ---------------------------------------------------------------------------------- */

static dc_tensor *operand(int64_t rows, int64_t columns)
{
    dc_tensor *t = NULL;
    const dc_type type = dc_type_make(DC_F32, 2, (const int64_t[]){rows, columns});
    CHECK(dc_tensor_new(w.rt, w.j, &type, &t) == DC_OK);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)dc_tensor_mem(t))[i] = (float)((i * 7 + rows) % 17 - 8) / 8;
    return t;
}

typedef struct result {
    float at[M * N];
} result;

static result result_of(dc_exec *e)
{
    result r = {{NAN}};
    dc_fault fault;
    dc_tensor *out = NULL, *in[] = {operand(M, K), operand(K, N)};
    dc_inst *i = world_bind(&w, e, NULL);
    CHECK(dc_inst_call(i, w.j, (const dc_arg[]){given(in[0]), given(in[1])}, &out, &fault) ==
          DC_OK);
    memcpy(r.at, dc_tensor_mem(out), sizeof r.at);
    dc_tensor_release(out);
    dc_inst_free(i);
    world_release(in, 2);
    return r;
}

/* ---- searches --------------------------------------------------------------------------------- */

/* Until something has been tried: on a busy machine the rules' schedule alone may take the time. */
static bool search(asked *a)
{
    bool fine = done(tune_body, a) == DC_OK;
    for (int again = 0; again < 8 && fine && a->report.n > 0 && a->report.row[0].tried == 0;
         again++) {
        a->options.seconds *= 2;
        fine = done(tune_body, a) == DC_OK;
    }
    return fine && a->report.n > 0 && a->report.row[0].tried > 0;
}

static void test_search(void)
{
    dc_exec *e = open_product(NULL);
    const result before = result_of(e);
    asked a = {.e = e, .options = {.seconds = 0.5}};
    CHECK(search(&a));
    CHECK_EQ((int)a.report.n, 1);
    const dc_tune_row *row = a.report.row;
    CHECK_STR(row->name, e->kept[0].name);
    CHECK_EQ((int)row->launches, 1);
    CHECK(!row->known);
    CHECK(row->rules_ns > 0 && row->best_ns > 0 && row->best_ns <= row->rules_ns);
    CHECK(row->tuned == (row->best_ns < row->rules_ns));
    CHECK(row->schedule[0] != '\0');
    CHECK(a.report.seconds <
          a.options.seconds + 10); /* it ends: a trial is not long, on a busy machine either */
    const dc_tuned *known = dc_tuned_find(stored(), dc_tuned_key(e->kept[0].nest));
    CHECK(known != NULL && (known->kind == DC_TUNED_MOVES) == row->tuned);
    dc_exec *made = remade(e);
    const result after = result_of(made);
    CHECK(memcmp(before.at, after.at, sizeof after.at) == 0); /* such sums are exact */
    CHECK(done(tune_body, &a) == DC_OK);                      /* a second time it is known */
    CHECK(a.report.row[0].known && a.report.row[0].tried == 0 && !a.report.changed);
    a.options.again = true;
    CHECK(search(&a) && !a.report.row[0].known);
    dc_exec_release(made);
    close_product(e);
}

/* In place, again and again: what the search computes with are not the cells. */
static void test_in_place(void)
{
    world_open(&w, ON_CPU, NULL, "");
    dc_exec *e = world_build(&w, world_step, &world_step_signature);
    dc_cell *c = world_cell(&w, 8, 5, "w");
    asked a = {.e = e, .options = {.seconds = 0.2}};
    CHECK(done(tune_body, &a) == DC_OK);
    CHECK(a.report.n > 0);
    for (int i = 0; i < 8; i++)
        CHECK(cell_at(c, i) == (float)(5 + i));
    dc_cell_release(c);
    close_product(e);
}

/* ---- what is known decides ----------------------------------------------------------------------- */

static bool has_moves(const dc_exec *e, const char *const *move, uint32_t n)
{
    bool same = e->kept[0].nmove == n;
    for (uint32_t m = 0; same && m < n; m++)
        same = strcmp(e->kept[0].move[m], move[m]) == 0;
    return same;
}

static void test_known(void)
{
    static const char *const found[] = {"split i0 4", "grid i0.o"};
    static const char *const unfit[] = {"split i1 8", "vectorize nothing"};
    dc_exec_kernel facts;
    dc_exec *rules = open_product(NULL);
    const result want = result_of(rules);
    asked a = {.e = rules, .move = found, .nmove = 2};
    CHECK(!dc_exec_is_stale(rules));
    CHECK(done(plant_body, &a) == DC_OK);
    CHECK(dc_exec_is_stale(rules));
    dc_exec *made = remade(rules);
    CHECK(has_moves(made, found, 2) && !dc_exec_is_stale(made));
    const result got = result_of(made);
    CHECK(memcmp(want.at, got.at, sizeof got.at) == 0);
    dc_exec_kernel_of(made, 0, &facts);
    CHECK(facts.gain == 1.5);
    dc_exec_kernel_of(rules, 0, &facts); /* it still has the other schedule */
    CHECK(facts.gain == 0);
    dc_exec_release(made);
    a.move = unfit, a.nmove = 2;
    CHECK(done(plant_body, &a) == DC_OK);
    made = remade(rules);
    CHECK(has_moves(made, rules->kept[0].move, rules->kept[0].nmove));
    dc_exec_release(made);
    CHECK(done(untune_body, &a) == DC_OK && a.changed);
    CHECK(dc_tuned_fingerprint(stored()) == 0);
    CHECK(done(untune_body, &a) == DC_OK && !a.changed);
    close_product(rules);
}

static void test_skipped(void)
{
    static const char *const found[] = {"split i0 4", "grid i0.o"};
    dc_opts opt = {.opt = 2};
    strcpy(opt.skip, "tuned");
    dc_exec *rules = open_product(&opt);
    asked a = {.e = rules, .move = found, .nmove = 2, .options = {.seconds = 0.1}};
    CHECK(done(plant_body, &a) == DC_OK);
    dc_exec *made = remade(rules);
    CHECK(has_moves(made, rules->kept[0].move, rules->kept[0].nmove));
    CHECK(done(tune_body, &a) == DC_OK && a.report.n == 0);
    dc_exec_release(made);
    close_product(rules);
}

/* ---- failures ---------------------------------------------------------------------------------- */

static atomic_bool stop;

static void stop_at_run(void *ctx, void *to)
{
    int *left = ctx;
    DC_UNUSED(to);
    if ((*left)-- == 0)
        atomic_store(&stop, true);
}

/* Ended by its user, at any time: INTERRUPTED, nothing is stored, and the same search goes through afterwards. */
static void test_stopped(void)
{
    dc_exec *e = open_product(NULL);
    for (int n = 0; n < 200; n = n * 2 + 1) {
        int left = n;
        asked a = {.e = e, .options = {.seconds = 60}}; /* it is stopped before */
        atomic_store(&stop, false);
        w.dev->on_run = stop_at_run;
        w.dev->ctx = &left;
        const atomic_bool *before = dc_job_heed(w.j, &stop);
        const dc_status s = done(tune_body, &a);
        dc_job_heed(w.j, before);
        w.dev->on_run = NULL;
        if (!CHECK(s != DC_OK && world_failure(&w) == DC_ERR_INTERRUPTED))
            printf("    at run %d\n", n);
        CHECK(stored() == NULL);
    }
    asked a = {.e = e, .options = {.seconds = 0.2}};
    CHECK(search(&a));
    close_product(e);
}

/* The result of the second set of operands, on which alternatives are compared with the rules' schedule. */
typedef struct second {
    int uploads;
    char *at;
} second;

static void find_second(void *ctx, void *to)
{
    second *s = ctx;
    if (s->uploads++ == 1) /* results are the first parameter */
        s->at = to;
}

static void spoil_second(void *ctx, void *to)
{
    const second *s = ctx;
    DC_UNUSED(to);
    w.dev->spoil = s->at + 3; /* an exponent */
}

/* Schedules that compute something else are not used, however fast they are. */
static void test_wrong(void)
{
    second s = {0};
    dc_exec *e = open_product(NULL);
    asked a = {.e = e, .options = {.seconds = 2}};
    w.dev->on_upload = find_second;
    w.dev->on_run = spoil_second;
    w.dev->ctx = &s;
    CHECK(done(tune_body, &a) == DC_OK);
    w.dev->on_upload = w.dev->on_run = NULL;
    w.dev->spoil = NULL;
    CHECK(s.uploads > 1 && a.report.n == 1);
    CHECK(a.report.row[0].tried == 0 && !a.report.row[0].tuned);
    CHECK(strstr(w.said.s != NULL ? w.said.s : "", "computes something else") != NULL);
    close_product(e);
}

/* No kernel is slower for a device that fails. */
static void test_device_fails(void)
{
    dc_exec *e = open_product(NULL);
    asked a = {.e = e, .options = {.seconds = 0.2}};
    w.dev->fail_run = true;
    CHECK(done(tune_body, &a) == DC_OK);
    CHECK(a.report.n == 1 && a.report.row[0].why != NULL && !a.report.row[0].tuned);
    CHECK(stored() == NULL);
    w.dev->fail_run = false;
    close_product(e);
}

static void test_no_time(void)
{
    dc_exec *e = open_product(NULL);
    asked a = {.e = e, .options = {.seconds = 1e-6}};
    CHECK(done(tune_body, &a) == DC_OK);
    CHECK_STR(a.report.row[0].why, "no time left");
    CHECK(stored() == NULL && !a.report.changed);
    close_product(e);
}

static void test_no_memory(void)
{
    dc_opts opt = {.opt = 2, .memory = 3 << 20};
    world_open(&w, ON_CPU, &opt, "");
    dc_exec *e = world_build(&w,
                             "func twice(%1: f32[262144] \"x\") {\n"
                             "  %2 = add %1, %1 : f32[262144]\n"
                             "  return %2\n}\n",
                             &(signature){.nfree = 1, .nresult = 1});
    asked a = {.e = e, .options = {.seconds = 0.1}};
    CHECK(done(tune_body, &a) == DC_OK);
    CHECK(a.report.n == 1);
    CHECK_STR(a.report.row[0].why, "no memory for its operands");
    CHECK(stored() == NULL);
    close_product(e);
}

static void test_interpreted(void)
{
    world_open(&w, ON_EVAL, NULL, "");
    dc_exec *e = world_build(&w, product, &product_signature);
    asked a = {.e = e, .options = {.seconds = 0.1}};
    CHECK(done(tune_body, &a) == DC_OK && a.report.n == 0);
    CHECK(done(untune_body, &a) == DC_OK && !a.changed);
    close_product(e);
}

int main(void)
{
    test_search();
    test_in_place();
    test_known();
    test_skipped();
    test_stopped();
    test_wrong();
    test_device_fails();
    test_no_time();
    test_no_memory();
    test_interpreted();
    return t_done();
}
