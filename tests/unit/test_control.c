/*
 * Loops and branches (core/ir/control.h) in text, in the interpreter, through clones and simplification.
 */
#include "core/eval/eval.h"
#include "core/ir/control.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"

#include <string.h>

#include "tests/t.h"

static dc_job job;
static char text[1024];

static dc_module *parse(const char *s)
{
    dc_module *m = NULL;
    job.err = (dc_err){0};
    if (dc_module_parse(&job, s, &m) == DC_OK)
        return m;
    dc_err_render(&job.err, 1, text, sizeof text);
    return NULL;
}

static void check_refused(const char *s, const char *want)
{
    dc_module *m = parse(s);
    if (CHECK(m == NULL) && !CHECK(strstr(text, want) != NULL))
        printf("  %s\n", text);
    dc_module_free(m);
}

/* The same of two numbers at a time. */
#define PAIRS                                       \
    "body 0(%1: i32[], %2: f32[2], %3: f32[2]) {\n" \
    "  %4 = add %2, %3 : f32[2]\n  return %4, %4\n}\n"

/* A running sum: c = c + x; y = c * i. Behind it n, the flags and the operands; then more nodes. */
#define SUM                                       \
    "body 0(%1: i32[], %2: f32[], %3: f32[]) {\n" \
    "  %4 = cast %1 : f32[]\n"                    \
    "  %5 = add %2, %3 : f32[]\n"                 \
    "  %6 = mul %4, %5 : f32[]\n"                 \
    "  return %5, %6\n"                           \
    "}\n\n"

static const char forward[] = SUM "func f(%1: f32[], %2: f32[4]) {\n"
                                  "  %3 = loop %1, %2 {0, 4, 0, 0, 1, 1, 1} : bool[0]\n"
                                  "  %4 = pick %3 {0} : f32[]\n"
                                  "  %5 = pick %3 {1} : f32[4]\n"
                                  "  return %4, %5\n"
                                  "}\n";
static const char reverse[] = SUM "func f(%1: f32[], %2: f32[4]) {\n"
                                  "  %3 = loop %1, %2 {0, 4, 1, 0, 1, 1, 1} : bool[0]\n"
                                  "  %4 = pick %3 {0} : f32[]\n"
                                  "  %5 = pick %3 {1} : f32[4]\n"
                                  "  return %4, %5\n"
                                  "}\n";
static const char limited[] = SUM "func f(%1: f32[], %2: f32[4], %3: i32[], %4: f32[4]) {\n"
                                  "  %5 = loop %3, %1, %2, %4 {0, 4, 3, 0, 1, 1, 1} : bool[0]\n"
                                  "  %6 = pick %5 {0} : f32[]\n"
                                  "  %7 = pick %5 {1} : f32[4]\n"
                                  "  return %6, %7\n"
                                  "}\n";
/* Doubles until it is more than 100, at most 20 times, and counts. */
static const char doubling[] = "body 0(%1: i32[], %2: f32[], %3: bool[], %4: f32[], %5: i32[]) {\n"
                               "  %6 = add %4, %4 : f32[]\n"
                               "  %7 = lt %6, %2 : bool[]\n"
                               "  %8 = const {1} : i32[]\n"
                               "  %9 = add %1, %8 : i32[]\n"
                               "  return %7, %6, %9\n"
                               "}\n\n"
                               "func f(%1: f32[], %2: f32[]) {\n"
                               "  %3 = lt %1, %2 : bool[]\n"
                               "  %4 = const {0} : i32[]\n"
                               "  %5 = loop %2, %3, %1, %4 {0, 20, 4, 1, 3, 0, 0} : bool[0]\n"
                               "  %6 = pick %5 {1} : f32[]\n"
                               "  %7 = pick %5 {2} : i32[]\n"
                               "  return %6, %7\n"
                               "}\n";
static const char branch[] = "body 0(%1: f32[2], %2: f32[2]) {\n"
                             "  %3 = add %1, %2 : f32[2]\n"
                             "  return %3\n"
                             "}\n\n"
                             "body 1(%1: f32[2], %2: f32[2]) {\n"
                             "  %3 = mul %1, %2 : f32[2]\n"
                             "  return %3\n"
                             "}\n\n"
                             "func f(%1: bool[], %2: f32[2], %3: f32[2]) {\n"
                             "  %4 = branch %1, %2, %3 {0, 1} : bool[0]\n"
                             "  %5 = pick %4 {0} : f32[2]\n"
                             "  return %5\n"
                             "}\n";
/* Rows of a table, and of each row its numbers, with a factor from outside. */
static const char nested[] = "body 0(%1: i32[], %2: f32[], %3: f32[], %4: f32[]) {\n"
                             "  %5 = mul %2, %4 : f32[]\n"
                             "  %6 = add %3, %5 : f32[]\n"
                             "  return %6\n"
                             "}\n\n"
                             "body 1(%1: i32[], %2: f32[], %3: f32[], %4: f32[3]) {\n"
                             "  %5 = loop %2, %3, %4 {0, 3, 0, 1, 1, 1, 0} : bool[0]\n"
                             "  %6 = pick %5 {0} : f32[]\n"
                             "  return %6, %6\n"
                             "}\n\n"
                             "func f(%1: f32[], %2: f32[], %3: f32[2, 3]) {\n"
                             "  %4 = loop %2, %1, %3 {1, 2, 0, 1, 1, 1, 1} : bool[0]\n"
                             "  %5 = pick %4 {1} : f32[2]\n"
                             "  return %5\n"
                             "}\n";

/* What print gives for what was read, and whether a clone and a simplified copy are as legal and alike. */
static void check_text(const char *s)
{
    dc_module *m = parse(s), *other = NULL;
    dc_text out = {0}, again = {0};
    if (!CHECK(m != NULL)) {
        printf("  %s\n", text);
        return;
    }
    const dc_func *f = m->func.at[0];
    CHECK_EQ(dc_func_check(&job, f), DC_OK);
    dc_module_print(m, &out);
    CHECK_STR(out.s, s);
    other = dc_module_new();
    const dc_func *c = dc_func_clone(other, f, NULL);
    CHECK(dc_func_hash(c) == dc_func_hash(f));
    dc_func_print(c, &again);
    CHECK_STR(again.s, s);
    CHECK_EQ(dc_func_check(&job, dc_simplify(c)), DC_OK);
    dc_text_free(&out);
    dc_text_free(&again);
    dc_module_free(m);
    dc_module_free(other);
}

/* The first n elements of the first two results, of the function and of what it is simplified to. */
static void run(const char *s, const void *const *param, void *first, void *second, size_t bytes)
{
    dc_module *m = parse(s);
    char one[64], two[64];
    if (!CHECK(m != NULL))
        return;
    const dc_func *f = m->func.at[0];
    CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, param, (void *[]){first, second}), DC_OK);
    CHECK_EQ(dc_eval(&job, dc_simplify(f), DC_EVAL_ROUND, param, (void *[]){one, two}), DC_OK);
    CHECK(memcmp(one, first, 4) == 0);
    CHECK(f->result.n < 2 || memcmp(two, second, bytes) == 0);
    dc_module_free(m);
}

static void check_four(const float *got, float a, float b, float c, float d)
{
    const float want[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(got[i], want[i], 0);
}

static void test_loops(void)
{
    const float start = 10, x[4] = {1, 2, 3, 4}, kept[4] = {-1, -2, -3, -4};
    float last, y[4];
    run(forward, (const void *[]){&start, x}, &last, y, sizeof y);
    CHECK_NEAR(last, 20, 0);
    check_four(y, 0, 13, 32, 60);
    run(reverse, (const void *[]){&start, x}, &last, y, sizeof y);
    CHECK_NEAR(last, 20, 0);
    check_four(y, 0, 19, 34, 42);
    for (int32_t n = -1; n < 7; n++) {
        run(limited, (const void *[]){&start, x, &n, kept}, &last, y, sizeof y);
        const float sum[] = {10, 11, 13, 16, 20};
        CHECK_NEAR(last, sum[n < 0 ? 0 : n > 4 ? 4 : n], 0);
        if (n == 3)
            check_four(y, 0, 15, 26, -4); /* from the third one down */
        if (n <= 0)
            check_four(y, -1, -2, -3, -4);
    }
}

static void test_while(void)
{
    const float most = 100, from[] = {3, 100, 1e-9f};
    const float want[] = {192, 100, 1e-9f * 1048576};
    const int32_t times[] = {6, 0, 20};
    for (int i = 0; i < 3; i++) {
        float last;
        int32_t n;
        run(doubling, (const void *[]){&from[i], &most}, &last, &n, sizeof n);
        CHECK_NEAR(last, want[i], 0);
        CHECK_EQ(n, times[i]);
    }
}

static void test_branches(void)
{
    const float a[2] = {2, 3}, b[2] = {5, 7};
    for (uint8_t p = 0; p < 2; p++) {
        float y[2];
        run(branch, (const void *[]){&p, a, b}, y, NULL, 0);
        CHECK_NEAR(y[0], p ? 7 : 10, 0);
        CHECK_NEAR(y[1], p ? 10 : 21, 0);
    }
}

static void test_nested(void)
{
    const float start = 1, by = 2, x[6] = {1, 2, 3, 4, 5, 6};
    float y[2];
    run(nested, (const void *[]){&start, &by, x}, y, NULL, 0);
    CHECK_NEAR(y[0], 13, 0);
    CHECK_NEAR(y[1], 43, 0);
}

/* Equal bodies are one, whatever their parameters are called. */
static void test_equal_bodies(void)
{
    dc_module *m = parse("body 0(%1: f32[] \"a\") {\n  %2 = neg %1 : f32[]\n  return %2\n}\n"
                         "body 1(%1: f32[] \"b\") {\n  %2 = neg %1 : f32[]\n  return %2\n}\n"
                         "func f(%1: bool[], %2: f32[]) {\n"
                         "  %3 = branch %1, %2 {0, 1} : bool[0]\n"
                         "  %4 = pick %3 {0} : f32[]\n  return %4\n}\n");
    if (!CHECK(m != NULL))
        return;
    CHECK_EQ(m->body.n, 1);
    CHECK_EQ(m->func.n, 1);
    dc_module_free(m);
}

/* Each body names the one before it twice: what follows every path would never come to its end. */
static void test_doubling(void)
{
    enum { DEEP = 60 };
    dc_text s = {0}, out = {0}, again = {0};
    dc_text_puts(&s, "body 0(%1: f32[]) {\n  return %1\n}\n\n");
    for (int i = 1; i <= DEEP; i++)
        dc_text_printf(&s,
                       "%s%d(%%1: f32[]) {\n"
                       "  %%2 = lt %%1, %%1 : bool[]\n"
                       "  %%3 = branch %%2, %%1 {%d, %d} : bool[0]\n"
                       "  %%4 = pick %%3 {0} : f32[]\n"
                       "  %%5 = neg %%4 : f32[]\n"
                       "  return %%5\n}\n%s",
                       i < DEEP ? "body " : "func f", i, i - 1, i - 1, i < DEEP ? "\n" : "");
    dc_module *m = parse(s.s), *other = dc_module_new();
    if (CHECK(m != NULL)) {
        const dc_func *f = m->func.at[0];
        CHECK_EQ(dc_func_check(&job, f), DC_OK);
        CHECK_EQ(dc_control_bodies(f), UINT32_MAX);
        const dc_func *c = dc_func_clone(other, f, NULL);
        CHECK(dc_func_hash(c) == dc_func_hash(f));
        CHECK_EQ(other->body.n, m->body.n);
        CHECK_EQ(dc_func_check(&job, dc_simplify(c)), DC_OK);
        dc_func_print(f, &out);
        dc_func_print(c, &again);
        CHECK_STR(again.s, out.s);
    }
    dc_module_free(m);
    dc_module_free(other);
    dc_text_free(&s);
    dc_text_free(&out);
    dc_text_free(&again);
}

static void test_refused(void)
{
    check_refused("func f(%1: f32[], %2: f32[4]) {\n"
                  "  %3 = loop %1, %2 {0, 4, 0, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "there is no body 0 yet");
    check_refused("body 1() { return }\n", "body 0 comes next, not 1");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 4, 0, 0, 1, 1} : bool[0]\n  return\n}\n",
                  "a loop has 7 attributes");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 5, 0, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "parameter 3 is f32[5], not f32[4]");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1 {0, 4, 0, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "the number of operands");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 4, 32, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "unknown flags");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 4, 16, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "an x has too many axes, or none");
    check_refused(PAIRS "func f(%1: f32[2], %2: f32[9]) {\n"
                        "  %3 = loop %1, %2 {0, 4, 16, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "parameter 3 is f32[8], not f32[9]");
    check_refused(SUM "func f(%1: f32[2], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 4, 0, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "parameter 2 is f32[], not f32[2]");
    check_refused(SUM "func f(%1: f32[], %2: f32[4]) {\n"
                      "  %3 = loop %1, %2 {0, 4, 4, 0, 1, 1, 1} : bool[0]\n  return\n}\n",
                  "the number of operands");
    check_refused("func f(%1: bool[0]) {\n  %2 = pick %1 {0} : f32[]\n  return\n}\n",
                  "neither a loop nor a branch");
    check_refused("body 0(%1: f32[]) { return %1 }\nbody 1(%1: f32[]) { return }\n"
                  "func f(%1: bool[], %2: f32[]) {\n"
                  "  %3 = branch %1, %2 {0, 1} : bool[0]\n  return\n}\n",
                  "another number of parameters or results");
}

int main(void)
{
    const char *const all[] = {forward, reverse, limited, doubling, branch, nested};
    for (size_t i = 0; i < DC_COUNTOF(all); i++)
        check_text(all[i]);
    test_loops();
    test_while();
    test_branches();
    test_nested();
    test_equal_bodies();
    test_doubling();
    test_refused();
    dc_arena_free(&job.scratch);
    return t_done();
}
