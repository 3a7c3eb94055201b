/*
 * Broken promises in compilations and calls: the status is BUG at the call, the context can only be
 * closed, a file tells what it takes to see it again, and the host hears of it. Where $DEEPC is the
 * program, the files are given to it.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
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
    CHECK(has(read_file(h.file),
              "\ncounts: nfree 1 ncell 0 nresult 2 nset 0 ncheck 0 nfixed 0 once 0\n"));
    expect_replay(replay(h.file, "the counts are not those of its function"), 1);
    slow_close(&w);
}

static void test_not_waited_for(void)
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

static void no_dump_folder(dc_opts *opt)
{
    strcpy(opt->math, "strict");
    snprintf(opt->dump, sizeof opt->dump, "%s/none", folder);
}

static void only_computing(dc_opts *opt)
{
    snprintf(opt->dump, sizeof opt->dump, "%s", folder);
    strcpy(opt->allow, "compute");
}

/* A BUG in a job; the file is in `where`, "" nowhere. */
static void expect_in(void (*change)(dc_opts *opt), const char *where)
{
    slow_world w;
    heard h = {0};
    char command[400];
    slow_open(&w, change);
    h.rt = w.rt;
    w.rt->on_bug = hear_bug;
    w.rt->on_bug_ctx = &h;
    slow_fail(w.dev, SLOW_BUG, 1);
    slow_shut(w.dev, true);
    dc_exec *e = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    snprintf(command, sizeof command, "rm -rf '%s/none'", folder);
    CHECK_EQ(system(command), 0); /* after it was found good, and used */
    slow_shut(w.dev, false);
    CHECK_EQ(slow_wait(&w, e), DC_E_BUG);
    CHECK_EQ(h.times, 1);
    CHECK(h.rt->broken && strncmp(h.file, where, strlen(where)) == 0);
    CHECK((h.file[0] == '\0') == (where[0] == '\0'));
    CHECK((w.j->err.hint[0] == '\0') == (where[0] == '\0'));
    if (where[0] != '\0')
        CHECK(has(read_file(h.file), "\nmodule:\nfunc f2("));
    dc_exec_release(e);
    slow_close(&w);
}

static void test_no_folder(void)
{
    char long_name[600], inside[300];
    slow_world w;
    setenv("TMPDIR", "/nonexistent", 1);
    expect_in(only_math, "");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    setenv("TMPDIR", long_name, 1);
    expect_in(only_math, "");
    setenv("TMPDIR", folder, 1);
    expect_in(only_computing, "");
    snprintf(inside, sizeof inside, "%s/deepc-bug-", folder);
    expect_in(no_dump_folder, inside); /* not there any more: the other folder */
    slow_open(&w, only_math);
    slow_fail(w.dev, SLOW_BUG, 1);
    dc_exec *e = slow_start(&w, 2);
    CHECK_EQ(slow_wait(&w, e), DC_E_BUG); /* without a hook of the host */
    CHECK(has(w.j->err.hint, folder));
    dc_exec_release(e);
    slow_close(&w);
}

static int count_files(const char *word)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, word) != NULL;
    if (d != NULL)
        closedir(d);
    return n;
}

/* An attacker has guessed the names, and has links there; then the disk is full. */
static void test_traps(void)
{
    char link[400], aim[400];
    snprintf(aim, sizeof aim, "%s/aim", folder);
    for (int n = 1; n < 50; n++) {
        snprintf(link, sizeof link, "%s/deepc-bug-%ld-%d.txt", folder, (long)getpid(), n);
        if (access(link, F_OK) != 0)
            CHECK(symlink(aim, link) == 0 || errno == EEXIST);
    }
    snprintf(link, sizeof link, "%s/deepc-bug-%ld-50.txt", folder, (long)getpid());
    expect_in(only_math, link);
    CHECK(access(aim, F_OK) != 0);

    const int files = count_files("deepc-bug");
    const struct rlimit small = {100, RLIM_INFINITY};
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && setrlimit(RLIMIT_FSIZE, &small) == 0);
    expect_in(only_math, "");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_EQ(count_files("deepc-bug"), files); /* no half of one */
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
    test_not_waited_for();
    test_no_folder();
    test_traps();
    remove_folder();
    return t_done();
}
