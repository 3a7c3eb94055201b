/* Libraries opened at run time: a table of functions, what is missing; what compilers among them say. */
#include "backends/build_log.h"
#include "backends/library.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "tests/t.h"

typedef struct table {
    double (*sine)(double x);
    double (*nothing)(double x);
    double (*root)(double x);
} table;

static void test_table(void *handle)
{
    const dc_library_symbol some[] = {{"sin", offsetof(table, sine), false},
                                      {"deepc_nothing", offsetof(table, nothing), true},
                                      {"sqrt", offsetof(table, root), false}};
    table t = {.nothing = sin};
    CHECK(dc_library_resolve(handle, some, DC_COUNTOF(some), &t) == NULL);
    CHECK(t.sine(0) == 0 && t.root(9) == 3 && t.nothing == NULL);
}

/* The first one is named; those behind it are there all the same. */
static void test_missing(void *handle)
{
    const dc_library_symbol some[] = {{"deepc_none", offsetof(table, sine), false},
                                      {"deepc_nothing", offsetof(table, nothing), false},
                                      {"sqrt", offsetof(table, root), true}};
    table t = {0};
    CHECK_STR(dc_library_resolve(handle, some, DC_COUNTOF(some), &t), "deepc_none");
    CHECK(t.sine == NULL && t.root != NULL && t.root(16) == 4);
}

static void test_no_library(void)
{
    char why[200] = "";
    CHECK(dc_library_open("libdeepc_nowhere.so", RTLD_NOW, why, sizeof why) == NULL);
    CHECK(strstr(why, "libdeepc_nowhere.so") != NULL);
}

static void line_is(const char *log, const char *want)
{
    char line[80];
    size_t n;
    const char *at = dc_build_log_line(log, &n);
    snprintf(line, sizeof line, "%.*s", (int)n, at);
    CHECK_STR(line, want);
}

static void test_log(void)
{
    line_is("", "no reason given");
    line_is(" \n\t\n", "no reason given");
    line_is("k.cl:1: warning: w\n  k.cl:2: error: e\r\n    here\n", "k.cl:2: error: e");
    line_is("\n  a word\nanother\n", "a word");
    line_is("error", "error");
}

int main(void)
{
    char why[200] = "";
    void *handle = dc_library_open("libm.so.6", RTLD_NOW, why, sizeof why);
    CHECK_STR(why, "");
    test_table(handle);
    test_missing(handle);
    dc_library_close(&handle);
    CHECK(handle == NULL);
    dc_library_close(&handle); /* once more does nothing */
    test_no_library();
    test_log();
    return t_done();
}
