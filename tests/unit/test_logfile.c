/*
 * Logs: appended to, cut to a length, refused where they are shorter than that; folders for them. With folders of a
 * job, nothing outside.
 */
#define _GNU_SOURCE /* mkdtemp, symlink */
#include "core/base/file.h"
#include "core/base/heap.h"
#include "core/base/logfile.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"

static char dir[] = "/tmp/deepc-logfile-XXXXXX";
static dc_opts opt;
static dc_log no_log;

typedef struct call {
    const char *name, *text; /* no text: a folder */
    int64_t keep, size;
} call;

static const char *at(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static dc_status body(dc_job *j, void *arg)
{
    call *c = arg;
    if (c->text == NULL)
        return dc_logfile_folder(j, at(c->name));
    return dc_logfile_append(j, at(c->name), c->keep, c->text, strlen(c->text), &c->size);
}

static dc_status run(call *c, dc_folders *folders)
{
    dc_job job;
    dc_job_init(&job, &opt, &no_log);
    job.folders = folders;
    const dc_status status = dc_protect(&job, body, c);
    dc_job_fini(&job);
    return status;
}

static bool holds(const char *name, const char *text)
{
    char *is = dc_file_read(at(name), 1000);
    const bool same = is != NULL && strcmp(is, text) == 0;
    dc_xfree(is);
    return same;
}

static void check_logs(void)
{
    call c = {"log", "one\n", -1, 0};
    CHECK(run(&c, NULL) == DC_OK && c.size == 4);
    c.text = "two\n";
    CHECK(run(&c, NULL) == DC_OK && c.size == 8 && holds("log", "one\ntwo\n"));
    c = (call){"log", "2\n", 4, 0};
    CHECK(run(&c, NULL) == DC_OK && c.size == 6 && holds("log", "one\n2\n"));
    c = (call){"log", "x", 7, 0};
    CHECK(run(&c, NULL) == DC_E_FILE && holds("log", "one\n2\n"));
    c = (call){"log", "", 0, 0};
    CHECK(run(&c, NULL) == DC_OK && c.size == 0 && holds("log", ""));
    c = (call){"none/log", "x", -1, 0};
    CHECK(run(&c, NULL) == DC_E_FILE);
}

/* A disk that is full after so many bytes. */
static void check_full(void)
{
    const struct rlimit few = {10, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    call c = {"log", "one\n", 0, 0};
    CHECK(run(&c, NULL) == DC_OK);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
    c = (call){"log", "a line that is longer\n", -1, 0};
    CHECK(run(&c, NULL) == DC_E_FILE && holds("log", "one\n"));
    CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
    CHECK(run(&c, NULL) == DC_OK && holds("log", "one\na line that is longer\n"));
    c = (call){"log", "", 0, 0};
    CHECK(run(&c, NULL) == DC_OK);
}

static void check_folders(void)
{
    call c = {"logs", NULL, 0, 0};
    CHECK(run(&c, NULL) == DC_OK && run(&c, NULL) == DC_OK);
    c.name = "log";
    CHECK(run(&c, NULL) == DC_E_FILE);
    c.name = "none/logs";
    CHECK(run(&c, NULL) == DC_E_FILE);
    c = (call){"logs", "x", -1, 0};
    CHECK(run(&c, NULL) == DC_E_FILE);
}

typedef struct opening {
    dc_folders *folders;
} opening;

static dc_status open_body(dc_job *j, void *arg)
{
    opening *o = arg;
    char logs[300];
    snprintf(logs, sizeof logs, "%s", at("logs"));
    const char *const write[] = {logs, NULL};
    return dc_folders_new(j, NULL, write, &o->folders);
}

/* Only beneath what the host named, and through no link. */
static void check_beneath(void)
{
    opening o = {0};
    dc_job job;
    dc_job_init(&job, &opt, &no_log);
    CHECK(dc_protect(&job, open_body, &o) == DC_OK);
    dc_job_fini(&job);
    call c = {"logs/log", "x", -1, 0};
    CHECK(run(&c, o.folders) == DC_OK && holds("logs/log", "x"));
    c.name = "log";
    CHECK(run(&c, o.folders) != DC_OK && holds("log", ""));
    CHECK(symlink("../log", at("logs/link")) == 0);
    c.name = "logs/link";
    CHECK(run(&c, o.folders) != DC_OK && holds("log", ""));
    c = (call){"logs/more", NULL, 0, 0};
    CHECK(run(&c, o.folders) == DC_OK);
    c.name = "more";
    CHECK(run(&c, o.folders) != DC_OK);
    dc_folders_free(o.folders);
}

int main(void)
{
    CHECK(mkdtemp(dir) != NULL);
    check_logs();
    check_full();
    check_folders();
    check_beneath();
    static const char *const made[] = {"logs/link", "logs/log", "log"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(at(made[i]));
    rmdir(at("logs/more"));
    rmdir(at("logs"));
    rmdir(dir);
    return t_done();
}
