/*
 * A training host (trainer.c) that is killed with SIGKILL at random moments and started again. After each kill a fresh
 * process finds the checkpoint that was last reported as saved or the one after it, other files absent or whole, and
 * right results through the cache; no process of deepc's is left. At the end the checkpoint is that of a run that was
 * never disturbed, byte for byte, and what killed processes left is gone.
 *
 *     killed TRAINER [KILLS [SEED [FOLDER]]]
 *
 * Every third host has LLVM in a process of its own, where $DEEPC is the program.
 */
#define _GNU_SOURCE /* mkdtemp, setenv */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"

enum {
    EVERY = 4,    /* steps between checkpoints (trainer.lua) */
    FILES = 5,    /* that trainer.lua writes, beside the cache */
    PATIENCE = 20 /* seconds for what has to end by itself */
};

static const char *trainer;
static char folder[400], cut[440], whole[440], cache[480]; /* cut: of the runs that are killed */

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- the host -------------------------------------------------------------------------------- */

typedef struct host {
    pid_t pid;
    int from; /* what it says */
    char line[4096];
} host;

static void start(host *h, const char *mode, const char *in, long step, const char *cached)
{
    int ends[2];
    char number[24];
    snprintf(number, sizeof number, "%ld", step);
    *h = (host){0};
    if (pipe2(ends, O_CLOEXEC) != 0 || (h->pid = fork()) < 0)
        exit(1);
    if (h->pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("DEEPC_CACHE", cached, 1);
        execl(trainer, trainer, mode, in, number, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    h->from = ends[0];
}

/* The number of the last whole line that begins with the word, up to the end of what the host says; else `dflt`. */
static long last_said(host *h, const char *word, long dflt)
{
    const size_t n = strlen(word);
    size_t had = 0;
    ssize_t got;
    while ((got = read(h->from, h->line + had, sizeof h->line - 1 - had)) > 0) {
        had += (size_t)got;
        h->line[had] = '\0';
        char *end = strrchr(h->line, '\n');
        if (end == NULL)
            continue;
        *end = '\0';
        char *line = strrchr(h->line, '\n');
        line = line != NULL ? line + 1 : h->line;
        if (strncmp(line, word, n) == 0)
            dflt = strtol(line + n, NULL, 10);
        had -= (size_t)(end + 1 - h->line);
        memmove(h->line, end + 1, had + 1);
    }
    close(h->from);
    return dflt;
}

/* The host has ended; so has, soon, whatever it started. */
static int reap(host *h)
{
    const uint64_t until = now_ns() + (uint64_t)PATIENCE * 1000000000u;
    int status = 0, other;
    pid_t pid;
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    while ((pid = waitpid(-1, &other, WNOHANG)) >= 0 && now_ns() < until)
        if (pid == 0)
            sleep_ns(2000000);
    CHECK(pid < 0 && errno == ECHILD);
    return status;
}

/* A fresh process looks; it finds step `said` or the next. What it finds. */
static long look(long said)
{
    host h;
    start(&h, "check", cut, said, cache);
    const long found = last_said(&h, "found", -1);
    const int status = reap(&h);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!CHECK(found == said || found == said + EVERY))
        printf("said %ld, found %ld\n", said, found);
    return found;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Names in a folder that begin so. */
static int count(const char *in, const char *beginning)
{
    int n = 0;
    DIR *d = opendir(in);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strncmp(e->d_name, beginning, strlen(beginning)) == 0;
    if (d != NULL)
        closedir(d);
    return n;
}

/* What is unfinished in the cache was begun some hours ago. */
static void age(void)
{
    const struct timespec then[2] = {{.tv_sec = time(NULL) - 7300}, {.tv_sec = time(NULL) - 7300}};
    DIR *d = opendir(cache);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "new-", 4) == 0)
            CHECK_EQ(utimensat(dirfd(d), e->d_name, then, 0), 0);
    if (d != NULL)
        closedir(d);
}

static char *read_all(const char *in, const char *name, size_t *n)
{
    enum { MOST = 1 << 20 };
    char path[500], *text = malloc(MOST);
    snprintf(path, sizeof path, "%s/%s", in, name);
    FILE *f = fopen(path, "r");
    *n = 0;
    if (CHECK(f != NULL && text != NULL)) {
        *n = fread(text, 1, MOST, f);
        fclose(f);
    }
    return text;
}

static void compare(const char *name)
{
    size_t na, nb;
    char *a = read_all(cut, name, &na), *b = read_all(whole, name, &nb);
    if (!CHECK(na > 0 && na == nb && memcmp(a, b, na) == 0))
        printf("%s differs from that of a run that was not disturbed\n", name);
    free(a);
    free(b);
}

/* ---- the kills ------------------------------------------------------------------------------- */

/* How long a host works until it has saved three times; then it is killed. */
static uint64_t first_kill(long *said)
{
    host h;
    const uint64_t begun = now_ns();
    start(&h, "train", cut, 1000000, cache);
    char byte;
    int lines = 0;
    while (lines < 3 && read(h.from, &byte, 1) == 1)
        lines += byte == '\n';
    CHECK_EQ(lines, 3);
    const uint64_t took = now_ns() - begun;
    kill(h.pid, SIGKILL);
    *said = last_said(&h, "saved", lines * EVERY);
    reap(&h);
    *said = look(*said);
    return took;
}

static void kill_at(uint64_t after, bool apart, long *said)
{
    host h;
    if (apart)
        setenv("DEEPC_COMPILE", "process", 1);
    start(&h, "train", cut, 1000000, cache);
    unsetenv("DEEPC_COMPILE");
    sleep_ns(after);
    kill(h.pid, SIGKILL);
    *said = last_said(&h, "saved", *said);
    const int status = reap(&h);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    *said = look(*said);
    CHECK(count(cut, ".") <= FILES);
}

static void run_to_the_end(const char *in, long last, const char *cached)
{
    host h;
    start(&h, "train", in, last, cached);
    CHECK_EQ(last_said(&h, "saved", -1), last);
    const int status = reap(&h);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void make_folders(const char *tmp)
{
    snprintf(folder, sizeof folder, "%.300s/deepc-killed-XXXXXX", tmp);
    if (mkdtemp(folder) == NULL)
        exit(1);
    snprintf(cut, sizeof cut, "%s/cut", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    CHECK(mkdir(cut, 0700) == 0 && mkdir(whole, 0700) == 0);
}

static void remove_folders(void)
{
    static const char *const names[] = {"cut", "whole", "cache", ""};
    char path[1000];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        DIR *d = opendir(path);
        for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                CHECK_EQ(unlinkat(dirfd(d), e->d_name, 0), 0);
        if (d != NULL)
            closedir(d);
        CHECK_EQ(rmdir(path), 0);
    }
}

int main(int argc, char **argv)
{
    const char *program = getenv("DEEPC");
    const int kills = argc > 2 ? atoi(argv[2]) : 40;
    uint64_t state = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
    long said = 0;
    if (argc < 2)
        return 2;
    trainer = argv[1];
    make_folders(argc > 4 ? argv[4] : "/tmp");
    printf("seed %llu\n", (unsigned long long)state);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* what a host has started becomes our child */
    if (program != NULL)
        setenv("DEEPC_COMPILER", program, 1);
    const uint64_t usual = first_kill(&said);
    int left = 0;
    for (int i = 1; i < kills; i++) {
        kill_at(next_random(&state) % (usual + usual / 2), program != NULL && i % 3 == 0, &said);
        left += count(cut, ".") > 0;
    }
    printf("%d kills within %.0f ms each, %ld steps, files left in the folder %d times, in the "
           "cache %d\n",
           kills, (double)usual * 1.5e-6, said, left, count(cache, "new-"));
    age();
    run_to_the_end(cut, said + 2 * EVERY, cache);
    run_to_the_end(whole, said + 2 * EVERY, "off");
    static const char *const names[] = {"ck", "w.st", "f.dcfn", "x.svg", "x.png"};
    for (int i = 0; i < FILES; i++)
        compare(names[i]);
    CHECK_EQ(count(cut, ""), FILES);
    CHECK_EQ(count(cache, "new-"), 0);
    remove_folders();
    return t_done();
}
