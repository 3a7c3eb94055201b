/* formats/fnfile.c: counts and numbers of a function file are what they say, or the file is refused by its line. */
#include "formats/fnfile.h"

#include "tests/t.h"

typedef struct parsing {
    const char *text;
    dc_fnfile_variant v;
    bool whole; /* the variant has what the text of `good` says */
} parsing;

static dc_status parse(dc_job *j, void *arg)
{
    parsing *p = arg;
    dc_module *m = NULL;
    DC_TRY(dc_fnfile_parse(j, &j->scratch, p->text, &p->v, &m));
    const dc_fnfile_variant *v = &p->v;
    p->whole = v->narg == 1 && v->nresult == 2 && v->nset == 1 && v->set[0] == 0 && v->ncell == 1 &&
               strcmp(v->cell[0], "w") == 0 && strcmp(v->arg[0], "x") == 0 && v->ncheck == 1 &&
               v->check[0].axis == 0 && v->check[0].classes == 10 && !v->check[0].position &&
               strcmp(v->check[0].op, "index") == 0 && strcmp(v->check[0].role, "i") == 0 &&
               v->fn->param.n == 2;
    dc_module_free(m);
    return DC_OK;
}

static const char *error_of(const char *text, parsing *p)
{
    static char why[400];
    dc_opts opt;
    dc_job j;
    const char *bad;
    *p = (parsing){.text = text};
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    why[0] = '\0';
    if (dc_protect(&j, parse, p) != DC_OK)
        dc_err_render(&j.err, 0, why, sizeof why);
    dc_job_fini(&j);
    return why;
}

#define COUNTS "counts: arguments 1 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n"
#define NAMES  "argument: x\ncell: w\n"
#define SET    "set: 0\n"
#define CHECKS "check: class 0 10 i32[64]\tindex\ti\n"
#define MODULE                                                                                     \
    "module:\nfunc f(%1: f32[2] \"x\", %2: f32[2] \"w\") {\n  %3 = add %1, %2 : f32[2]\n  return " \
    "%3, %3\n}\n"

static void test_good(void)
{
    parsing p;
    CHECK_STR(error_of(COUNTS NAMES SET CHECKS MODULE, &p), "");
    CHECK(p.whole);
    CHECK_STR(error_of(COUNTS "set: 0\n" CHECKS NAMES MODULE, &p), ""); /* in any order */
    CHECK(p.whole);
}

/* Each of these was once taken for another number, or for one to allocate. */
static void test_counts(void)
{
    static const char *const bad[] = {
        "counts: arguments 1 captured 0 cells 0 results -1 printed 3 sets 0 checks 0\n",
        "counts: arguments 1 captured 0 cells 0 results 2 printed 0 sets -1 checks 0\n",
        "counts: arguments +1 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 01 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments  1 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 1  captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 0x1 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 1000000 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 4294967297 captured 0 cells 1 results 2 printed 0 sets 1 checks 1\n",
        "counts: arguments 1 captured 0 cells 1 results 2 printed 0 sets 1 checks\n",
        "counts: arguments 1 captured 0 cells 1 results 2 printed 0 sets 1\n",
        "counts: arguments1captured0cells1results2printed0sets1checks1\n",
        "counts: \n",
    };
    parsing p;
    char text[1000];
    for (size_t i = 0; i < DC_COUNTOF(bad); i++) {
        snprintf(text, sizeof text, "%s%s", bad[i], NAMES SET CHECKS MODULE);
        CHECK_STR(error_of(text, &p),
                  "line 1: counts expected, each a word and a number up to 999999");
    }
    CHECK_STR(error_of("counts: arguments 1 captured 0 cells 1 results 2 printed 0 sets 1 checks 1 "
                       "\n" NAMES SET CHECKS MODULE,
                       &p),
              "line 1: counts expected and nothing behind them");
    CHECK_STR(error_of(COUNTS COUNTS NAMES SET CHECKS MODULE, &p),
              "line 2: counts are there twice");
    CHECK_STR(error_of(MODULE, &p), "line 1: counts expected before 'module:'");
    CHECK_STR(error_of(NAMES COUNTS SET CHECKS MODULE, &p),
              "line 1: more names than the counts say");
    CHECK_STR(error_of(COUNTS NAMES CHECKS MODULE, &p), "line 5: fewer names than the counts say");
    CHECK_STR(error_of(COUNTS NAMES SET SET CHECKS MODULE, &p),
              "line 5: more cells are set than the counts say");
}

/* Counts without lines cost nothing, however many they are. */
static void test_no_memory_for_counts(void)
{
    parsing p;
    CHECK_STR(error_of("counts: arguments 999999 captured 999999 cells 999999 results 999999 "
                       "printed 999999 sets 999999 checks 999999\n" MODULE,
                       &p),
              "line 2: fewer names than the counts say");
    CHECK(p.v.arg == NULL && p.v.set == NULL && p.v.check == NULL);
}

static void test_lines(void)
{
    static const char *const sets[] = {"-1", "+0", " 0", "0 ", "00", "", "1000000", "a"};
    static const char *const checks[] = {
        "class -1 10 i32[64]",   "class 8 10 i32[64]",
        "class 0 -1 i32[64]",    "class 0 9223372036854775808 i32[64]",
        "class 0  10 i32[64]",   "clas 0 10 i32[64]",
        "class0 10 i32[64]",     "class 0 10i32[64]",
        "position 00 10 i32[64]"};
    parsing p;
    char text[1000];
    for (size_t i = 0; i < DC_COUNTOF(sets); i++) {
        snprintf(text, sizeof text, "%sset: %s\n%s", COUNTS NAMES, sets[i], CHECKS MODULE);
        CHECK_STR(error_of(text, &p), "line 4: the number of a cell expected");
    }
    for (size_t i = 0; i < DC_COUNTOF(checks); i++) {
        snprintf(text, sizeof text, "%scheck: %s\top\trole\n%s", COUNTS NAMES SET, checks[i],
                 MODULE);
        CHECK_STR(error_of(text, &p),
                  "line 5: a check expected: class or position, an axis, a number, a type");
    }
    CHECK_STR(error_of(COUNTS NAMES SET "check: class 0 10 i32[64] \ta\tb\n" MODULE, &p),
              "line 5: a check with more than its type");
    CHECK_STR(error_of(COUNTS NAMES SET "check: class 0 10 i32[64]\ta\n" MODULE, &p),
              "line 5: a check expected: a test, an operation and a role, with tabs between");
    CHECK_STR(error_of(COUNTS NAMES SET CHECKS CHECKS MODULE, &p),
              "line 6: more checks than the counts say");
    CHECK_STR(error_of(COUNTS "what\n" MODULE, &p), "line 2: 'word: text' expected");
    CHECK_STR(error_of(COUNTS "what: ever\n" MODULE, &p), "line 2: an unknown word");
}

/* What the compiler makes and gradients do not know. */
static void test_loops_of_the_compiler(void)
{
    parsing p;
    CHECK_STR(error_of(COUNTS NAMES SET CHECKS
                       "module:\nbody 0(%1: i32[], %2: f32[2], %3: f32[1]) {\n  return %2, %3\n}\n"
                       "func f(%1: f32[2] \"x\", %2: f32[2] \"w\") {\n"
                       "  %3 = loop %1, %2 {0, 2, 16, 0, 1, 1, 1} : bool[0]\n"
                       "  %4 = pick %3 {1} : f32[2]\n  return %4, %4\n}\n",
                       &p),
              "line 6: a loop with a flag of the compiler");
}

int main(void)
{
    test_loops_of_the_compiler();
    test_good();
    test_counts();
    test_no_memory_for_counts();
    test_lines();
    return t_done();
}
