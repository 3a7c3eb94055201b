/*
 * The planner on functions written by hand: the model of tests/unit/plan_model.h finds nothing wrong, and
 * cells are updated in place where they should be.
 */
#include "core/ir/gtext.h"

#include "tests/unit/plan_model.h"

typedef struct expected {
    uint32_t donated, denied, copies;
} expected;

static void load(trial *t, const char *text, uint32_t nfree, uint32_t nresult, uint32_t nset,
                 uint32_t ncheck)
{
    begin(t);
    CHECK_EQ(dc_module_parse(&t->job, text, &t->m), DC_OK);
    if (t->m == NULL)
        exit(1);
    t->fn = t->m->func.at[0];
    t->desc = (dc_exec_desc){.fn = t->fn, .name = "f", .nfree = nfree};
    t->desc.ncell = t->fn->param.n - nfree;
    t->desc.nresult = nresult;
    t->desc.nset = nset;
    t->desc.ncheck = ncheck;
    for (uint32_t i = 0; i < nset; i++)
        t->set[i] = i;
    one_group_each(t);
}

static void expect(trial *t, uint32_t donated, uint32_t denied, uint32_t copies)
{
    uint32_t n = 0;
    make_plan(t);
    CHECK_STR(watch(t), "right");
    CHECK_EQ(t->plan.donated, donated);
    CHECK_EQ(t->plan.denied, denied);
    for (uint32_t i = 0; i < t->plan.nstep; i++)
        n += t->plan.step[i].kind == DC_STEP_COPY;
    CHECK_EQ(n, copies);
    end(t);
}

static void test_update(void)
{
    static const char sgd[] = "func f(%1: f32[8] \"g\", %2: f32[8] \"w\") {\n"
                              "  %3 = sub %2, %1 : f32[8]\n"
                              "  return %3\n}\n";
    trial t;
    load(&t, sgd, 1, 0, 1, 0);
    expect(&t, 1, 0, 0);
    load(&t, sgd, 1, 0, 1, 0);
    t.allow = false; /* the kernel reads it at other positions */
    expect(&t, 0, 1, 1);
    load(&t, sgd, 1, 1, 0, 0); /* a result only: nothing is set */
    expect(&t, 0, 0, 0);
}

/* The other reader of the old value runs first, and the plan says so in whichever order it is met.
 */
static void test_readers_first(void)
{
    trial t;
    load(&t,
         "func f(%1: f32[8], %2: f32[8]) {\n"
         "  %3 = sub %2, %1 : f32[8]\n"
         "  %4 = mul %2, %2 : f32[8]\n"
         "  %5 = neg %4 : f32[8]\n"
         "  return %5, %3\n}\n",
         1, 1, 1, 0);
    expect(&t, 1, 0, 0);
    load(&t, /* the reader needs the new value: a cycle */
         "func f(%1: f32[8], %2: f32[8]) {\n"
         "  %3 = sub %2, %1 : f32[8]\n"
         "  %4 = mul %3, %2 : f32[8]\n"
         "  return %4, %3\n}\n",
         1, 1, 1, 0);
    expect(&t, 0, 1, 1);
}

static void test_crossed(void)
{
    static const char crossed[] = "func f(%1: f32[8], %2: f32[8]) {\n"
                                  "  %3 = sub %1, %2 : f32[8]\n"
                                  "  %4 = add %1, %2 : f32[8]\n"
                                  "  return %3, %4\n}\n";
    trial t;
    load(&t, crossed, 0, 0, 2, 0); /* each needs the old value of the other */
    expect(&t, 1, 1, 1);
    load(&t, crossed, 0, 0, 2, 0);
    join_groups(&t, 0, 1); /* one kernel reads both before it stores */
    expect(&t, 2, 0, 0);
}

static void test_swap(void)
{
    trial t;
    load(&t, "func f(%1: f32[8], %2: f32[8]) {\n  return %2, %1\n}\n", 0, 0, 2, 0);
    expect(&t, 0, 2, 4); /* both old values are kept aside */
    load(&t, "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n  return %2, %3, %1\n}\n", 0, 0, 3, 0);
    expect(&t, 0, 3, 6);
    load(&t, /* b = a, a = -a */
         "func f(%1: f32[8], %2: f32[8]) {\n  %3 = neg %1 : f32[8]\n  return %3, %1\n}\n", 0, 0, 2,
         0);
    expect(&t, 0, 2, 3);
    load(&t, "func f(%1: f32[8], %2: f32[8]) {\n  return %2\n}\n", 0, 0, 1, 0); /* a = b */
    expect(&t, 0, 1, 1);
    load(&t, "func f(%1: f32[8]) {\n  return %1\n}\n", 0, 0, 1, 0); /* a = a */
    expect(&t, 0, 0, 0);
}

static void test_shared_values(void)
{
    trial t;
    load(&t, /* one value for two cells and two results */
         "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = neg %1 : f32[8]\n"
         "  return %4, %4, %4, %4\n}\n",
         1, 2, 2, 0);
    expect(&t, 1, 1, 3);
    load(&t, /* results that are parameters: an argument, a scalar, an old value */
         "func f(%1: f32[8], %2: f32[], %3: f32[8]) {\n"
         "  %4 = neg %3 : f32[8]\n"
         "  return %1, %2, %3, %4\n}\n",
         2, 3, 1, 0);
    expect(&t, 1, 0, 3);
    load(&t, /* cells set to an argument and to a constant */
         "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = const {0} : f32[8]\n"
         "  return %1, %4\n}\n",
         1, 0, 2, 0);
    expect(&t, 1, 1, 1);
}

static void test_checks(void)
{
    trial t;
    load(&t, /* the kernel that a check waits for may not write a cell */
         "func f(%1: i32[], %2: i32[]) {\n"
         "  %3 = sub %2, %1 : i32[]\n"
         "  return %3, %3, %1\n}\n",
         1, 0, 1, 1);
    expect(&t, 0, 1, 1);
    load(&t, /* one that is independent of it waits */
         "func f(%1: i32[], %2: f32[8]) {\n"
         "  %3 = neg %2 : f32[8]\n"
         "  %4 = neg %1 : i32[]\n"
         "  return %3, %4, %1\n}\n",
         1, 0, 1, 1);
    expect(&t, 1, 0, 0);
    load(&t, /* a check of a cell's old value, which the cell's own update waits for */
         "func f(%1: i32[]) {\n"
         "  %2 = neg %1 : i32[]\n"
         "  return %2, %1, %1\n}\n",
         0, 0, 1, 1);
    expect(&t, 1, 0, 0);
}

static void test_empty(void)
{
    trial t;
    load(&t,
         "func f(%1: f32[0, 4], %2: f32[0, 4]) {\n"
         "  %3 = neg %1 : f32[0, 4]\n"
         "  %4 = sum %3 {3} : f32[]\n"
         "  return %3, %4, %1\n}\n",
         1, 2, 1, 0);
    make_plan(&t);
    CHECK_STR(watch(&t), "right");
    CHECK_EQ(t.plan.nstep, 1); /* the sum of nothing is a value, the rest are none */
    CHECK_EQ(t.plan.bytes, 0);
    end(&t);
}

/* Kernels that do not wait for each other are one launch; what a check or a donor orders is not. */
static void expect_bundles(trial *t, const char *sizes)
{
    char found[200] = "";
    t->in.bundles = true;
    t->in.cache = 1 << 20;
    make_plan(t);
    CHECK_STR(watch(t), "right");
    for (uint32_t i = 0; i < t->plan.nstep; i = next_unit(t, i)) {
        const dc_step *s = &t->plan.step[i];
        const size_t at = strlen(found);
        if (s->kind == DC_STEP_CHECK || s->kind == DC_STEP_COPY)
            snprintf(found + at, sizeof found - at, " %s",
                     s->kind == DC_STEP_COPY ? "copy" : "check");
        else
            snprintf(found + at, sizeof found - at, " %u",
                     s->kind == DC_STEP_BUNDLE ? s->nbody : 1);
    }
    CHECK_STR(found, sizes);
    end(t);
}

static void test_bundles(void)
{
    trial t;
    load(&t, /* two updates, and what both need */
         "func f(%1: f32[8] \"a\", %2: f32[40] \"b\", %3: f32[] \"r\") {\n"
         "  %4 = neg %3 : f32[]\n"
         "  %5 = reshape %4 : f32[1]\n"
         "  %6 = expand %5 : f32[8]\n"
         "  %7 = expand %5 : f32[40]\n"
         "  %8 = mul %1, %6 : f32[8]\n"
         "  %9 = mul %2, %7 : f32[40]\n"
         "  return %8, %9, %4\n}\n",
         0, 0, 3, 0);
    expect_bundles(&t, " 1 1 2 2");
    load(&t, /* the old value is read first, by a kernel of its own */
         "func f(%1: f32[8]) {\n"
         "  %2 = neg %1 : f32[8]\n"
         "  %3 = abs %1 : f32[8]\n"
         "  return %2, %3\n}\n",
         0, 1, 1, 0);
    t.desc.nresult = 1;
    expect_bundles(&t, " 1 1");
    load(&t, /* the update waits for the check, the result does not */
         "func f(%1: i32[], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = neg %3 : f32[8]\n"
         "  %5 = abs %2 : f32[8]\n"
         "  %6 = neg %1 : i32[]\n"
         "  return %5, %4, %6, %1\n}\n",
         2, 1, 1, 1);
    expect_bundles(&t, " 2 check 1");
}

int main(void)
{
    test_update();
    test_readers_first();
    test_crossed();
    test_swap();
    test_shared_values();
    test_checks();
    test_empty();
    test_bundles();
    return t_done();
}
