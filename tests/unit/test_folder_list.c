/* formats/folder.c: names in the order of their bytes, links, folders that are none; patterns beside what they mean. */
#define _GNU_SOURCE
#include "tests/t.h"

#include "core/base/heap.h"
#include "formats/folder.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/folder.h"

static dc_job job;

typedef struct reading {
    const char *path;
    dc_folder_list list;
} reading;

static dc_status read_body(dc_job *j, void *arg)
{
    reading *a = arg;
    return dc_folder_read(j, a->path, &a->list);
}

/* What is in a folder, with blanks for the zeros; the failure's words where it cannot be read. */
static const char *list_of(const char *path)
{
    static char text[1000];
    reading a = {.path = path};
    if (dc_protect(&job, read_body, &a) != DC_OK) {
        snprintf(text, sizeof text, "%d %s", dc_err_row_of(job.err.id)->code, job.err.fact.word[1]);
        job.err = (dc_err){0};
        return text;
    }
    CHECK(a.list.n < sizeof text);
    for (size_t i = 0; i < a.list.n; i++)
        text[i] = a.list.text[i] == '\0' ? ' ' : a.list.text[i];
    text[a.list.n] = '\0';
    dc_xfree(a.list.text);
    return text;
}

static void test_lists(void)
{
    CHECK_STR(list_of(folder_root()), "");
    static const char *const names[] = {"b", "a10", "a9", "B", "\xc3\xa9", ".x", "a b"};
    for (size_t i = 0; i < DC_COUNTOF(names); i++)
        CHECK(folder_put(names[i], ""));
    CHECK_EQ(mkdir(folder_path("aa"), 0700), 0);
    CHECK_EQ(mkfifo(folder_path("pipe"), 0600), 0);
    CHECK_EQ(symlink("b", folder_path("to-b")), 0);
    CHECK_EQ(symlink("aa", folder_path("to-aa")), 0);
    CHECK_EQ(symlink("nothing", folder_path("to-nothing")), 0);
    CHECK_STR(list_of(folder_root()),
              "f.x fB fa b fa10 fa9 daa fb dto-aa fto-b fto-nothing f\xc3\xa9 ");
    CHECK_STR(list_of(folder_path("to-aa")), "");
    CHECK_STR(list_of(folder_path("b")), "801 Not a directory");
    CHECK_STR(list_of(folder_path("none")), "801 No such file or directory");
}

/* Two paths of one folder have one id. */
static void test_ids(void)
{
    reading a = {.path = folder_path("aa")}, b = {.path = folder_path("to-aa")},
            c = {.path = folder_root()};
    CHECK_EQ(dc_protect(&job, read_body, &a), DC_OK);
    CHECK_EQ(dc_protect(&job, read_body, &b), DC_OK);
    CHECK_EQ(dc_protect(&job, read_body, &c), DC_OK);
    CHECK(memcmp(a.list.id, b.list.id, sizeof a.list.id) == 0);
    CHECK(memcmp(a.list.id, c.list.id, sizeof a.list.id) != 0);
    dc_xfree(a.list.text);
    dc_xfree(b.list.text);
    dc_xfree(c.list.text);
}

static const struct {
    const char *pattern, *name;
    bool fits;
} cases[] = {
    {"*", "", true},
    {"", "", true},
    {"", "a", false},
    {"*.png", "a.png", true},
    {"*.png", "a.PNG", false},
    {"*.png", ".png", true},
    {"*.[pP][nN][gG]", "a.PnG", true},
    {"a*b*c", "a1b2b3c", true},
    {"a*b*c", "a1b2b3", false},
    {"**a**", "xax", true},
    {"a?c", "abc", true},
    {"a?c", "ac", false},
    {"a?c",
     "a\xc3\xa9"
     "c",
     true}, /* one character of two bytes */
    {"a?c",
     "a\xff"
     "c",
     true},
    {"a??c",
     "a\xc3\xa9"
     "c",
     false},
    {"[a-c]", "b", true},
    {"[a-c]", "d", false},
    {"[!a-c]", "d", true},
    {"[!a-c]", "b", false},
    {"[!a-c]", "", false},
    {"[]]", "]", true},
    {"[]a]", "a", true},
    {"[!]]", "a", true},
    {"[!]]", "]", false},
    {"[a-]", "-", true},
    {"[-a]", "-", true},
    {"[a-]", "b", false},
    {"[c-a]", "b", false},
    {"[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true},
    {"[\xc3\xa0-\xc3\xaf]", "\xc3\xbf", false},
    {"[abc", "[abc", true},
    {"[abc", "a", false},
    {"[", "[", true},
    {"[!", "[!", true},
    {"[]", "[]", true},
    {"[*]", "*", true},
    {"[*]", "a", false},
    {"\\*", "\\a", true},
    {"*[0-9].txt", "run12.txt", true},
    {"*[0-9].txt", "run.txt", false},
};

static void test_patterns(void)
{
    for (size_t i = 0; i < DC_COUNTOF(cases); i++)
        if (!CHECK_EQ(dc_folder_match(cases[i].pattern, cases[i].name), cases[i].fits))
            printf("%s %s\n", cases[i].pattern, cases[i].name);
}

/* Many stars take no time that grows with a power of them. */
static void test_time(void)
{
    char pattern[401], name[256];
    for (int i = 0; i < 200; i++)
        memcpy(pattern + 2 * i, "*a", 3);
    memcpy(pattern + 398, "*b", 3);
    memset(name, 'a', 255);
    name[255] = '\0';
    const clock_t began = clock();
    for (int i = 0; i < 100; i++)
        CHECK(!dc_folder_match(pattern, name));
    CHECK((double)(clock() - began) / CLOCKS_PER_SEC < 5);
}

int main(void)
{
    dc_opts opt;
    dc_log log = {.write = NULL};
    const char *bad;
    if (!CHECK(folder_make()))
        return t_done();
    dc_opts_init(&opt, &bad);
    dc_job_init(&job, &opt, &log);
    test_lists();
    test_ids();
    test_patterns();
    test_time();
    CHECK(folder_remove());
    dc_job_fini(&job);
    return t_done();
}
