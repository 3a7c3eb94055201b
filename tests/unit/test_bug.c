/*
 * Broken promises in compilations and calls: the status is BUG at the call, the context can only be
 * closed, a file tells what it takes to see it again, and the host hears of it. Where $DEEPC is the
 * program, the files are given to it.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/slow.h"

static char folder[] = "/tmp/deepc-test-bug-XXXXXX";

/* ---- what the host hears --------------------------------------------------------------------- */

typedef struct heard {
    int times;
    char file[300]; /* "" none */
    bool broken;    /* the context was, then */
    dc_rt *rt;
} heard;

static void hear_bug(void *ctx, const char *file)
{
    heard *h = ctx;
    h->times++;
    h->broken = h->rt->broken;
    snprintf(h->file, sizeof h->file, "%s", file != NULL ? file : "");
}

static void dump_here(dc_opts *opt)
{
    snprintf(opt->dump, sizeof opt->dump, "%s", folder);
    strcpy(opt->math, "strict");
}

static void open_world(slow_world *w, heard *h)
{
    slow_open(w, dump_here);
    *h = (heard){.rt = w->rt};
    w->rt->on_bug = hear_bug;
    w->rt->on_bug_ctx = h;
    w->rt->version = "1.2.3";
}

/* ---- the file -------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
    static char text[1 << 14];
    FILE *f = fopen(path, "r");
    text[0] = '\0';
    if (CHECK(f != NULL)) {
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
    }
    return text;
}

static bool has(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        return true;
    printf("no '%s' in:\n%s\n", part, text);
    return false;
}

static void check_file(const heard *h, const char *error)
{
    struct stat s;
    const char *text = read_file(h->file);
    CHECK(strncmp(h->file, folder, strlen(folder)) == 0);
    CHECK(stat(h->file, &s) == 0 && (s.st_mode & 0777) == 0600);
    CHECK(has(text, error));
    CHECK(has(text, "\nversion: 1.2.3\n"));
    CHECK(has(text, "\nsetting: DEEPC_MATH=strict\n"));
    CHECK(has(text, "\nname: f2\n"));
    CHECK(has(text, "\nmodule:\nfunc f2(%1: f32[10] \"x\") {\n"));
}

/* Exit status of `deepc --replay FILE`, -1 where there is no program; its words in the folder. */
static int replay(const char *file, const char *words)
{
    const char *program = getenv("DEEPC");
    char command[1000], out[100];
    if (program == NULL)
        return -1;
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(command, sizeof command, "'%s' --replay '%s' >%s 2>&1", program, file, out);
    const int status = system(command);
    CHECK(has(read_file(out), words));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static void expect_replay(int status, int want)
{
    if (status < 0)
        T_SKIP("DEEPC does not name the program: files are not replayed");
    else
        CHECK_EQ(status, want);
}

static void expect_broken(slow_world *w, const heard *h)
{
    CHECK(w->rt->broken);
    CHECK_EQ(h->times, 1);
    CHECK(h->broken);
    CHECK(has(w->j->err.hint, h->file) && has(w->j->err.hint, "deepc --replay"));
}

/* ---- where it happens ------------------------------------------------------------------------ */

static void test_in_a_job(void)
{
    slow_world w;
    heard h;
    open_world(&w, &h);
    slow_fail(w.dev, SLOW_BUG, 1);
    dc_exec *e = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_exec *other = slow_start(&w, 3); /* nothing is known of it yet */
    CHECK_EQ(slow_wait(&w, other), DC_OK);
    CHECK(!w.rt->broken && h.times == 0);
    CHECK_EQ(slow_wait(&w, e), DC_E_BUG);
    expect_broken(&w, &h);
    check_file(&h, "error: broken promise at");
    check_file(&h, "1 is not 2\n");
    CHECK_EQ(slow_wait(&w, e), DC_E_STATE); /* not written again */
    CHECK_EQ(h.times, 1);
    expect_replay(replay(h.file, "no failure"), 0); /* the device was to blame */
    dc_exec_release(e);
    dc_exec_release(other);
    slow_close(&w);
}

/* In each context once, in a file of its own. */
static void test_in_a_call(char *file)
{
    slow_world w;
    heard h;
    float x[10] = {0}, y[10];
    open_world(&w, &h);
    dc_exec *e = slow_start(&w, 2);
    slow_call(&w, e, 2, 10);
    w.dev->bug_run = true;
    slow_calling c = {.w = &w, .e = e, .x = x, .y = y, .count = 10};
    CHECK_EQ(slow_try_call(&c), DC_E_BUG);
    expect_broken(&w, &h);
    check_file(&h, "3 is not 4\n");
    CHECK_EQ(slow_try_call(&c), DC_E_STATE);
    CHECK_EQ(h.times, 1);
    strcpy(file, h.file);
    dc_exec_release(e);
    slow_close(&w);
}

/* The description of a function is wrong: that much is in the file. */
static void test_description(void)
{
    slow_world w;
    heard h;
    open_world(&w, &h);
    dc_module *m = slow_function(&w, 2, 10);
    const dc_exec_desc d = {.fn = m->func.at[0], .name = "f2", .nfree = 1, .nresult = 2};
    slow_asking a = {.w = &w, .way = dc_exec_build, .d = &d};
    CHECK_EQ(dc_protect(w.j, slow_ask, &a), DC_E_BUG);
    dc_module_free(m);
    expect_broken(&w, &h);
    check_file(&h, "1 + 0 and 2 + 0");
    CHECK(has(read_file(h.file), "\ncounts: nfree 1 ncell 0 nresult 2 nset 0 ncheck 0\n"));
    expect_replay(replay(h.file, "it fails: broken promise"), 1);
    slow_close(&w);
}

static void test_nobody_asks(void)
{
    slow_world w;
    heard h;
    open_world(&w, &h);
    slow_fail(w.dev, SLOW_BUG, 1);
    dc_exec *e = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_exec *other = slow_start(&w, 3);
    CHECK_EQ(slow_wait(&w, other), DC_OK);
    dc_exec_release(e);
    CHECK(!w.rt->broken && h.times == 0);
    dc_exec_release(other);
    slow_close(&w);
}

static void only_math(dc_opts *opt)
{
    strcpy(opt->math, "strict");
}

static void test_no_folder(void)
{
    slow_world w;
    heard h = {0};
    setenv("TMPDIR", "/nonexistent", 1);
    slow_open(&w, only_math);
    h.rt = w.rt;
    w.rt->on_bug = hear_bug;
    w.rt->on_bug_ctx = &h;
    slow_fail(w.dev, SLOW_BUG, 1);
    dc_exec *e = slow_start(&w, 2);
    CHECK_EQ(slow_wait(&w, e), DC_E_BUG);
    CHECK_EQ(h.times, 1);
    CHECK_STR(h.file, "");
    CHECK_STR(w.j->err.hint, "");
    dc_exec_release(e);
    slow_close(&w);
    setenv("TMPDIR", folder, 1);
    slow_open(&w, only_math);
    slow_fail(w.dev, SLOW_BUG, 1);
    e = slow_start(&w, 2);
    CHECK_EQ(slow_wait(&w, e), DC_E_BUG); /* nobody asked to be told */
    CHECK(has(w.j->err.hint, folder));
    dc_exec_release(e);
    slow_close(&w);
}

static void remove_folder(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d != NULL)
        closedir(d);
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    char first[300], second[300];
    if (!CHECK(mkdtemp(folder) != NULL))
        return t_done();
    test_in_a_job();
    test_in_a_call(first);
    test_in_a_call(second);
    CHECK(strcmp(first, second) != 0);
    test_description();
    test_nobody_asks();
    test_no_folder();
    remove_folder();
    return t_done();
}
