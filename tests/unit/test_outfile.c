/*
 * What a process that was killed while it replaced a file left beside it: the next one that writes that file removes
 * it, and nothing else.
 */
#define _GNU_SOURCE /* unshare */
#include "core/base/outfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/t.h"

static char dir[] = "/tmp/deepc-outfile-XXXXXX";
static dc_opts opt;
static dc_log no_log;

static const char *at(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static dc_status put_body(dc_job *j, void *arg)
{
    return dc_outfile_put(j, at(arg), "whole", 5);
}

static dc_status put(const char *name)
{
    dc_job job;
    dc_job_init(&job, &opt, &no_log);
    const dc_status status = dc_protect(&job, put_body, (void *)(uintptr_t)name);
    dc_job_fini(&job);
    return status;
}

static bool there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

static void make(const char *name)
{
    const int fd = open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, "part", 4) == 4 && close(fd) == 0);
}

static bool is_hidden(const char *name)
{
    return name[0] == '.' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* How many names begin with a dot. */
static int hidden(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += is_hidden(e->d_name);
    if (d != NULL)
        closedir(d);
    return n;
}

static void empty_folder(void)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlink(at(e->d_name)) != 0)
            CHECK_EQ(rmdir(at(e->d_name)), 0);
    if (d != NULL)
        closedir(d);
}

static void test_names(void)
{
    static const char *const others[] = {
        ".x.deepc-1234567",  ".x.deepc-123456789", ".x.deepc-1234567g",
        ".x.deepc-1234567A", ".x.12345678",        ".y.deepc-12345678",
        "x.deepc-12345678",  ".xx.deepc-12345678", ".x.st.deepc-1234567f"};
    enum { N = sizeof others / sizeof *others };
    for (int i = 0; i < N; i++)
        make(others[i]);
    make(".x.deepc-12345678");
    make(".x.deepc-0a1b2c3d");
    CHECK(mkdir(at(".x.deepc-00000001"), 0700) == 0);
    CHECK(symlink(".x.12345678", at(".x.deepc-00000002")) == 0);
    CHECK(mkfifo(at(".x.deepc-00000003"), 0600) == 0);
    CHECK_EQ(put("x"), DC_OK);
    CHECK(there("x") && !there(".x.deepc-12345678") && !there(".x.deepc-0a1b2c3d"));
    for (int i = 0; i < N; i++)
        CHECK(there(others[i]));
    CHECK(there(".x.deepc-00000001") && there(".x.deepc-00000002") && there(".x.deepc-00000003"));
    empty_folder();
}

/* Of a name that has as many bytes as names may have, a part is in that of the temporary file. */
static void test_long_name(void)
{
    char name[256], left[300];
    memset(name, 'n', 255);
    name[255] = '\0';
    snprintf(left, sizeof left, ".%.200s.deepc-12345678", name);
    make(left);
    CHECK_EQ(put(name), DC_OK);
    CHECK(there(name) && hidden() == 0);
    empty_folder();
}

static void test_lock(void)
{
    make(".x.deepc-12345678");
    const int fd = open(at(".x.deepc-12345678"), O_RDONLY);
    CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    CHECK_EQ(put("x"), DC_OK);
    CHECK(there(".x.deepc-12345678")); /* a process writes it */
    close(fd);
    CHECK_EQ(put("x"), DC_OK);
    CHECK_EQ(hidden(), 0);
    empty_folder();
}

/* ---- a process that is killed ---------------------------------------------------------------- */

/* Without /proc a file gets its temporary name when it is opened. */
static bool hide_proc(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/proc", "tmpfs", 0, NULL) == 0;
}

static dc_status write_and_wait(dc_job *j, void *arg)
{
    dc_outfile *f;
    const int *to = arg;
    DC_TRY(dc_outfile_open(j, at("x"), &f));
    DC_TRY(dc_outfile_write(f, "part", 4));
    if (write(*to, "w", 1) != 1)
        return DC_E_FILE;
    for (;;)
        pause();
}

static void child(int to, bool named)
{
    dc_job job;
    if (named && !hide_proc())
        _exit(write(to, "-", 1) != 1);
    dc_job_init(&job, &opt, &no_log);
    dc_protect(&job, write_and_wait, &to);
    _exit(1);
}

static void test_killed(bool named)
{
    int ends[2], status;
    char said = 0;
    CHECK_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0)
        child(ends[1], named);
    close(ends[1]);
    CHECK_EQ(read(ends[0], &said, 1), 1);
    close(ends[0]);
    if (said == 'w') {
        CHECK_EQ(hidden(), named ? 1 : 0);
        CHECK_EQ(put("x"), DC_OK);
        CHECK_EQ(hidden(), named ? 1 : 0); /* it lives */
    }
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (said == 'w') {
        CHECK_EQ(hidden(), named ? 1 : 0);
        CHECK_EQ(put("x"), DC_OK);
        CHECK_EQ(hidden(), 0);
    } else if (CHECK(named && said == '-')) {
        T_SKIP("no file systems may be mounted here: files with a temporary name");
    }
    empty_folder();
}

int main(void)
{
    if (!CHECK(mkdtemp(dir) != NULL))
        return t_done();
    test_names();
    test_long_name();
    test_lock();
    test_killed(false);
    test_killed(true);
    CHECK_EQ(rmdir(dir), 0);
    return t_done();
}
