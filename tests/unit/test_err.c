/* Failure records and the text made of them, as hosts without Lua read it. */
#include "core/base/err.h"
#include "core/base/job.h"

#include <string.h>

#include "tests/t.h"

static dc_job job;
static char text[4000];

static const char *print(const dc_err_scene *scene)
{
    const int n = dc_err_print(&job.err, scene, 1, text, sizeof text);
    CHECK_EQ(n, (int)strlen(text));
    return text;
}

static void begin(void)
{
    job.err = (dc_err){0};
}

static dc_type type(const char *words)
{
    static dc_names *names;
    dc_type t = {0};
    if (names == NULL)
        names = dc_names_new();
    if (words == NULL) {
        dc_names_free(names);
        names = NULL;
        return t;
    }
    CHECK(dc_type_parse(&job, names, &words, &t) == DC_OK);
    return t;
}

static void test_first_failure_stays(void)
{
    char word[20] = "one";
    begin();
    CHECK(dc_fail(&job, DC_ERR_ARG, &(dc_fact){.op = "add", .word = {word}}) == DC_E_VALUE);
    strcpy(word, "overwritten");
    CHECK(dc_fail(&job, DC_ERR_NOMEM, NULL) == DC_E_VALUE);
    CHECK_STR(print(&(dc_err_scene){0}), "add: one\n  [DC0101; deepc explain DC0101]");
}

/* What is empty is written over: a later failure has nothing of an earlier one. */
static void test_cleared(void)
{
    begin();
    dc_fail(&job, DC_ERR_ARG, &(dc_fact){.op = "add", .word = {"one"}, .axis = {1, 2}});
    snprintf(job.err.hint, sizeof job.err.hint, "%s", "another one");
    dc_err_at(&job, "train.lua:15", "net.2");
    dc_err_clear(&job.err);
    CHECK_EQ(job.err.status, DC_OK);
    CHECK(dc_fail(&job, DC_ERR_ARG, NULL) == DC_E_VALUE);
    CHECK(job.err.fact.op == NULL && job.err.fact.word[0] == NULL && job.err.fact.axis[1] == 0);
    CHECK_STR(job.err.hint, "");
    CHECK_STR(job.err.where, "");
    CHECK_STR(job.err.path, "");
}

static void test_all_parts(void)
{
    begin();
    dc_fail(&job, DC_ERR_INNER,
            &(dc_fact){.op = "matmul",
                       .axis = {2, 0},
                       .num = {28, 784},
                       .type = {type("f32[batch=32, 28, 28]"), type("f32[784, 10]")}});
    const dc_err_scene scene = {.where = "train.lua:15",
                                .path = "net.2 (nn.Linear 784 -> 10)",
                                .dims = "batch=32",
                                .in = {{"left", "f32[batch=32, 28, 28]", "argument 'img' of step"},
                                       {"right", "f32[784, 10]", NULL}},
                                .n = 2};
    CHECK_STR(print(&scene),
              "train.lua:15: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784\n"
              "    left   f32[batch=32, 28, 28]   argument 'img' of step\n"
              "    right  f32[784, 10]\n"
              "    in     net.2 (nn.Linear 784 -> 10)\n"
              "    dims   batch=32\n"
              "  hint: 28 * 28 = 784; :flatten(2) first?\n"
              "  [DC0301; deepc explain DC0301]");
    CHECK(dc_err_render(&job.err, 0, text, sizeof text) > 0);
    CHECK_STR(text, "matmul: inner dims differ: axis 2 = 28 against axis 0 = 784");
}

/* Whatever the room: never beyond it, always ended, the wanted length told. */
static void test_little_room(void)
{
    begin();
    dc_fail(&job, DC_ERR_OPTION, &(dc_fact){.word = {"DEEPC_X", "not a number"}});
    const dc_err_scene none = {0};
    const int whole = dc_err_print(&job.err, &none, 1, NULL, 0);
    char small[64];
    for (size_t size = 1; size < sizeof small; size++) {
        memset(small, 'x', sizeof small);
        CHECK_EQ(dc_err_print(&job.err, &none, 1, small, size), whole);
        CHECK_EQ(strlen(small), size - 1);
        CHECK(size == sizeof small || small[size] == 'x');
    }
    CHECK(strncmp(small, "DEEPC_X: not a number\n  hint: deepc --options", 40) == 0);
}

static const char *hint(dc_err_id id, const dc_fact *fact)
{
    static char room[480];
    begin();
    dc_fail(&job, id, fact);
    return dc_err_hint(&job.err, room, sizeof room);
}

static void test_hints(void)
{
    CHECK_STR(hint(DC_ERR_DIMS,
                   &(dc_fact){.op = "mul", .type = {type("f32[64, 784]"), type("f32[784, 10]")}}),
              "* is element-wise, the product is x:matmul(w)");
    CHECK_STR(hint(DC_ERR_DIMS,
                   &(dc_fact){.op = "add", .type = {type("f32[64, 784]"), type("f32[784, 10]")}}),
              "");
    CHECK_STR(hint(DC_ERR_DIMS_ALIGN,
                   &(dc_fact){.op = "add", .type = {type("f32[64, 10]"), type("f32[64]")}}),
              "axes align from the right: f32[64] as :reshape(64, 1)");
    CHECK_STR(hint(DC_ERR_INNER,
                   &(dc_fact){.num = {3, 5}, .type = {type("f32[8, 3]"), type("f32[5, 3]")}}),
              "the right one :transpose()d would fit");
    CHECK_STR(hint(DC_ERR_INNER,
                   &(dc_fact){.num = {3, 5}, .type = {type("f32[2, 8, 3]"), type("f32[2, 5, 3]")}}),
              "the right one with :transpose(2, 3) would fit");
    CHECK_STR(
        hint(DC_ERR_DTYPE_MIX, &(dc_fact){.op = "add", .type = {type("u8[2]"), type("i32[2]")}}),
        "dtypes never mix; :cast \"i32\" converts");
    CHECK_STR(
        hint(DC_ERR_DTYPE_MIX, &(dc_fact){.op = "put", .type = {type("u8[2]"), type("f32[]")}}),
        "dtypes never mix; :cast \"u8\" converts");
    CHECK_STR(hint(DC_ERR_INDEX, &(dc_fact){.num = {0, 3}}),
              "positions start at 1, values of argmax and labels at 0");
    CHECK_STR(hint(DC_ERR_INDEX, &(dc_fact){.num = {4, 3}}), "");
    CHECK_STR(hint(DC_ERR_NAMES, &(dc_fact){.word = {"batch", "time"}}),
              "if they are the same: :rename { time = \"batch\" }");
    begin();
    dc_fail(&job, DC_ERR_INDEX, &(dc_fact){.num = {0, 3}});
    strcpy(job.err.hint, "the record's own");
    CHECK(strstr(print(&(dc_err_scene){0}), "\n  hint: the record's own\n") != NULL);
    CHECK(strstr(print(&(dc_err_scene){.hint = "of the caller"}), "\n  hint: of the caller\n") !=
          NULL);
    CHECK(strstr(print(&(dc_err_scene){.hint = ""}), "hint") == NULL);
}

/* No row has a field that the record does not have, and all codes lie in their class. */
static void test_rows(void)
{
    for (int id = 1; id < DC_ERR__COUNT; id++) {
        const dc_err_row *row = dc_err_row_of((dc_err_id)id);
        CHECK(row->code > 100 && row->code < 1100 && row->status != DC_OK);
        for (const char *t = row->text; (t = strchr(t, '{')) != NULL; t++)
            CHECK(strchr("antw", t[1]) != NULL && t[2] >= '0' &&
                  t[2] <= (t[1] == 'n' ? '3' : '1') && t[3] == '}');
    }
}

static void count_release(void *n)
{
    ++*(int *)n;
}

/* Something is released where a status is a failure, and then or never again. */
static void test_settled(void)
{
    int kept = 0, lost = 0;
    dc_job_defer(&job, count_release, &kept);
    dc_job_defer(&job, count_release, &lost);
    CHECK_EQ(dc_job_settle(&job, &kept, DC_OK), DC_OK);
    CHECK_EQ(dc_job_settle(&job, &lost, DC_E_FILE), DC_E_FILE);
    CHECK_EQ(dc_job_settle(&job, &lost, DC_E_FILE), DC_E_FILE);
    CHECK_EQ(kept, 0);
    CHECK_EQ(lost, 1);
    CHECK_EQ(job.cleanup.n, 0);
}

int main(void)
{
    static const dc_opts opt;
    dc_job_init(&job, &opt, NULL);
    test_first_failure_stays();
    test_cleared();
    test_settled();
    test_all_parts();
    test_little_room();
    test_hints();
    test_rows();
    type(NULL);
    dc_job_fini(&job);
    return t_done();
}
