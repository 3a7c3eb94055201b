/*
 * Files of a job with folders: what lies beneath them is read and replaced, whatever leads elsewhere is refused
 * with a sentence that does not depend on what is there.
 */
#define _GNU_SOURCE /* renameat2 */

#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"

static dc_job job;

/* ---- what a script does ---------------------------------------------------------------------- */

typedef struct attempt {
    const char *path;
    char found[100];
    bool there;
} attempt;

static dc_status read_body(dc_job *j, void *arg)
{
    attempt *a = arg;
    struct stat st;
    size_t got;
    int fd;
    DC_TRY(dc_infile_open(j, a->path, &fd, &st));
    const dc_status status = dc_infile_read(j, a->path, fd, 0, a->found, sizeof a->found - 1, &got);
    a->found[got] = '\0';
    close(fd);
    return status;
}

static dc_status write_body(dc_job *j, void *arg)
{
    const attempt *a = arg;
    return dc_outfile_put(j, a->path, "written", 7);
}

static dc_status exists_body(dc_job *j, void *arg)
{
    attempt *a = arg;
    return dc_path_exists(j, DC_FOLDER_READ, a->path, &a->there);
}

typedef dc_status body(dc_job *, void *);

/* The words of what was refused; "" where it was not. */
static const char *try(body *what, const char *path)
{
    static char words[600];
    attempt a = {.path = path};
    words[0] = '\0';
    if (dc_protect(&job, what, &a) != DC_OK)
        snprintf(words, sizeof words, "%d %s", dc_err_row_of(job.err.id)->code,
                 job.err.fact.word[1]);
    return words;
}

typedef struct opening {
    const char *const *read, *const *write;
    dc_folders *out;
} opening;

static dc_status open_body(dc_job *j, void *arg)
{
    opening *a = arg;
    return dc_folders_new(j, a->read, a->write, &a->out);
}

static dc_folders *open_folders(const char *const *read, const char *const *write)
{
    opening a = {.read = read, .write = write};
    CHECK_EQ(dc_protect(&job, open_body, &a), DC_OK);
    return a.out;
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define OUTSIDE_READ  "805 outside the folders that may be read here"
#define OUTSIDE_WRITE "805 outside the folders that may be written here"

static void expect(body *what, const char *path, const char *words)
{
    if (!CHECK_STR(try(what, path), words))
        printf("%s\n", path);
}

static void test_inside(void)
{
    attempt a = {.path = folder_path("in/a/x")};
    CHECK_EQ(dc_protect(&job, read_body, &a), DC_OK);
    CHECK_STR(a.found, "inside");
    expect(read_body, folder_path("in/./a//x"), "");
    expect(read_body, folder_path("in/none"), "801 No such file or directory");
    expect(read_body, folder_path("in/none/x"), "801 No such file or directory");
    expect(read_body, folder_path("in/a/x/y"), "801 Not a directory");
    expect(read_body, folder_path("in/a/x/"), "801 is no name of a file");
    expect(read_body, folder_path("in"), "801 is a directory");
    expect(read_body, folder_path("in/a"), "801 is a directory");
    expect(read_body, folder_path("in/pipe"), "801 is not a regular file");
    expect(write_body, folder_path("out/new"), "");
    CHECK(folder_has("out/new", "written"));
    CHECK(folder_put("out/old", "before"));
    expect(write_body, folder_path("out/old"), "");
    CHECK(folder_has("out/old", "written"));
    expect(write_body, folder_path("out/none/x"), "801 No such file or directory");
    expect(write_body, folder_path("out"), "801 is a directory");
    expect(write_body, folder_path("out/new/"), "801 is no name of a file");
    a.path = folder_path("in/a/x");
    CHECK_EQ(dc_protect(&job, exists_body, &a), DC_OK);
    CHECK(a.there);
    a.path = folder_path("in/none/x");
    CHECK_EQ(dc_protect(&job, exists_body, &a), DC_OK);
    CHECK(!a.there);
}

/* Each is refused in the same words, there or not. */
static void test_outside(void)
{
    static const char *const paths[] = {
        "secret",
        "none",
        "in/../secret",
        "in/../none",
        "in/a/../x",
        "in/a/../../secret",
        "in/..",
        "inside",
        "in2/x",
        "out/new",
        "..",
        "in/.../../secret",
        "in/a/../../in2/x",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        expect(read_body, folder_path(paths[i]), OUTSIDE_READ);
        expect(exists_body, folder_path(paths[i]), OUTSIDE_READ);
    }
    static const char *const absolute[] = {"/etc/passwd",
                                           "/etc/none",
                                           "/proc/self/environ",
                                           "/dev/null",
                                           "/",
                                           "",
                                           "x",
                                           "../x",
                                           ".",
                                           "/proc/self/root/etc/passwd",
                                           "~/x",
                                           "file:///etc/passwd"};
    for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++) {
        expect(read_body, absolute[i], OUTSIDE_READ);
        expect(write_body, absolute[i], OUTSIDE_WRITE);
    }
    expect(write_body, folder_path("in/a/x"), OUTSIDE_WRITE);
    expect(write_body, folder_path("out/../secret"), OUTSIDE_WRITE);
    CHECK(folder_has("secret", "secret"));
    CHECK(folder_has("in/a/x", "inside"));
}

static void test_links(void)
{
    const char *const link = "805 a symbolic link, which is not followed here";
    expect(read_body, folder_path("in/link"), link);
    expect(read_body, folder_path("in/dangling"), link);
    expect(read_body, folder_path("in/up/secret"), link);
    expect(read_body, folder_path("in/up/none"), link);
    expect(exists_body, folder_path("in/up/secret"), link);
    expect(exists_body, folder_path("in/up/none"), link);
    expect(write_body, folder_path("out/link"), link);
    expect(write_body, folder_path("out/dangling"), link);
    expect(write_body, folder_path("out/up/secret"), link);
    CHECK(folder_has("secret", "secret"));
    CHECK(folder_has("made", NULL));
}

/* A folder and a link of one name change places while a file beneath it is asked for. */
static atomic_bool stop_swapping;

static void *swap(void *arg)
{
    const int in = *(const int *)arg;
    while (!atomic_load(&stop_swapping))
        renameat2(in, "b", in, "c", RENAME_EXCHANGE);
    return NULL;
}

static void test_race(void)
{
    pthread_t thread;
    char path[200];
    snprintf(path, sizeof path, "%s", folder_path("in/b/secret"));
    int in = open(folder_path("in"), O_RDONLY | O_DIRECTORY);
    if (renameat2(in, "b", in, "c", RENAME_EXCHANGE) != 0) {
        T_SKIP("no exchange of names here");
        return;
    }
    CHECK_EQ(pthread_create(&thread, NULL, swap, &in), 0);
    int read = 0, escaped = 0;
    for (int i = 0; i < 3000; i++) {
        attempt a = {.path = path};
        if (dc_protect(&job, read_body, &a) == DC_OK) {
            read += strcmp(a.found, "harmless") == 0;
            escaped += strcmp(a.found, "secret") == 0;
        }
    }
    atomic_store(&stop_swapping, true);
    pthread_join(thread, NULL);
    close(in);
    CHECK_EQ(escaped, 0);
    CHECK(read > 0);
}

static void test_sets(void)
{
    static const char *const none[] = {NULL}, *const here[] = {".", NULL};
    const dc_folders *kept = job.folders;
    dc_folders *f = open_folders(none, NULL);
    job.folders = f;
    expect(read_body, folder_path("in/a/x"), "805 files may not be opened here");
    expect(write_body, folder_path("out/new"), "805 files may not be opened here");
    dc_folders_free(f);
    char before[200];
    CHECK(getcwd(before, sizeof before) != NULL && chdir(folder_path("in")) == 0);
    f = open_folders(here, none);
    CHECK(chdir("/") == 0); /* paths of scripts count from where the host was */
    job.folders = f;
    expect(read_body, "a/x", "");
    expect(read_body, "./a/x", "");
    expect(read_body, folder_path("in/a/x"), "");
    expect(read_body, "../secret", OUTSIDE_READ);
    expect(write_body, "a/y", "805 files may not be written here");
    dc_folders_free(f);
    CHECK(chdir(before) == 0);
    job.folders = NULL;
    const char *const bad[][2] = {
        {folder_path("none"), NULL}, {folder_path("secret"), NULL}, {"in/..", NULL}};
    const char *const why[] = {"801 No such file or directory", "801 Not a directory",
                               "801 a folder is named without '..'"};
    for (int i = 0; i < 3; i++) {
        opening a = {.read = bad[i]};
        CHECK_EQ(dc_protect(&job, open_body, &a), DC_E_FILE);
        CHECK_STR(job.err.fact.word[1], why[i] + 4);
    }
    job.folders = kept;
}

static void test_all_of_the_disk(void)
{
    static const char *const all[] = {"/", NULL};
    const dc_folders *kept = job.folders;
    dc_folders *f = open_folders(all, all);
    job.folders = f;
    expect(read_body, folder_path("secret"), "");
    expect(read_body, "/proc/self/root/etc/passwd",
           "805 a symbolic link, which is not followed here");
    expect(read_body, "/../etc/passwd", OUTSIDE_READ);
    dc_folders_free(f);
    job.folders = kept;
}

static void make_world(void)
{
    static const char *const folders[] = {"in", "in/a", "in/c", "out", "in2"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        CHECK_EQ(mkdir(folder_path(folders[i]), 0700), 0);
    CHECK(folder_put("secret", "secret"));
    CHECK(folder_put("in2/x", "beside"));
    CHECK(folder_put("inside", "beside"));
    CHECK(folder_put("in/a/x", "inside"));
    CHECK(folder_put("in/c/secret", "harmless"));
    CHECK_EQ(symlink("..", folder_path("in/b")), 0);
    CHECK_EQ(symlink("..", folder_path("in/up")), 0);
    CHECK_EQ(symlink(folder_path("secret"), folder_path("in/link")), 0);
    CHECK_EQ(symlink(folder_path("none"), folder_path("in/dangling")), 0);
    CHECK_EQ(symlink(folder_root(), folder_path("out/up")), 0);
    CHECK_EQ(symlink(folder_path("secret"), folder_path("out/link")), 0);
    CHECK_EQ(symlink(folder_path("made"), folder_path("out/dangling")), 0);
    CHECK_EQ(mkfifo(folder_path("in/pipe"), 0600), 0);
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
    make_world();
    const char *const read[] = {folder_path("in"), NULL}, *const write[] = {folder_path("out"),
                                                                            NULL};
    dc_folders *f = open_folders(read, write);
    job.folders = f;
    test_inside();
    test_outside();
    test_links();
    test_race();
    test_sets();
    test_all_of_the_disk();
    dc_folders_free(f);
    job.folders = NULL;
    expect(read_body, folder_path("in/link"), ""); /* without folders links are followed */
    dc_job_fini(&job);
    CHECK(folder_remove());
    return t_done();
}
