/*
 * jit/cache/disk_cache.c, jit/cache/cache_folder.c: what was stored is found, by other caches on the same folder too;
 * whatever else lies there is not, and is replaced. Executables: a second context finds them whole, or
 * their kernels, with the same bits, whatever became of the files between.
 */
#define _GNU_SOURCE
#include "jit/cache/build_id.h"
#include "jit/cache/cache_folder.h"
#include "jit/cache/disk_cache.h"
#include "jit/cache/kernel_needs.h"
#include "jit/exec/exec_pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/commands_text.h"
#include "tests/unit/rng.h"
#include "tests/unit/world.h"

static char folder[256];
static dc_opts opt;
static dc_text said;
static dc_job job;

static void hear(void *ctx, const char *channel, const char *text, size_t n)
{
    DC_UNUSED(ctx);
    DC_UNUSED(channel);
    dc_text_printf(&said, "%.*s", (int)n, text);
}

static dc_cache *open_cache(void)
{
    said.n = 0;
    return dc_cache_new(&opt);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void path_of(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

/* Calls see for each file; returns how many there are. */
static int each_file(void (*see)(const char *path, void *ctx), void *ctx)
{
    char path[600];
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.') {
            path_of(path, sizeof path, f->d_name);
            n++;
            if (see != NULL)
                see(path, ctx);
        }
    if (d != NULL)
        closedir(d);
    return n;
}

static void remove_file(const char *path, void *ctx)
{
    DC_UNUSED(ctx);
    if (unlink(path) != 0)
        rmdir(path);
}

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n + 1);
    *n = fread(bytes, 1, *n, f);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    chmod(path, 0600);
}

/* ---- entries --------------------------------------------------------------------------------- */

enum { MAKER = 40, HEADER = 64 }; /* bytes of a file before its maker, its data */

static const char data[] = "what a compiler made";
static const dc_cache_maker no_toolchain;

static dc_cache_key key_of(const char *text)
{
    return dc_cache_key_of(text, strlen(text));
}

static void entry_path(char *path, size_t size, const char *text)
{
    const dc_cache_key key = key_of(text);
    snprintf(path, size, "%s/%016llx%016llx.dco", folder, (unsigned long long)key.word[0],
             (unsigned long long)key.word[1]);
}

/* The entry of the text is there and is `want`; NULL: it is not. */
static bool finds(dc_cache *c, const char *text, const void *want, size_t n)
{
    const void *got;
    size_t bytes;
    if (!dc_cache_find(c, &job, key_of(text), no_toolchain, &got, &bytes))
        return want == NULL;
    return want != NULL && bytes == n && memcmp(got, want, n) == 0;
}

static void store(dc_cache *c, const char *text)
{
    dc_cache_store(c, &job, key_of(text), no_toolchain, data, sizeof data);
    dc_cache_flush(c);
}

static void test_keys(void)
{
    char text[64] = "define void @kernel(ptr %b0) { ret void }";
    const size_t n = strlen(text);
    const dc_cache_key whole = dc_cache_key_of(text, n);
    const dc_cache_key again = dc_cache_key_of(text, n);
    CHECK(memcmp(&whole, &again, sizeof whole) == 0);
    for (size_t i = 0; i < n; i++) {
        const dc_cache_key shorter = dc_cache_key_of(text, i);
        CHECK(shorter.word[0] != whole.word[0] && shorter.word[1] != whole.word[1]);
        text[i] ^= 1;
        const dc_cache_key other = dc_cache_key_of(text, n);
        CHECK(other.word[0] != whole.word[0] && other.word[1] != whole.word[1]);
        text[i] ^= 1;
    }
}

static void test_store_and_find(void)
{
    dc_cache *c = open_cache(), *other = dc_cache_new(&opt);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));
    CHECK(finds(other, "a", data, sizeof data));
    CHECK(finds(other, "b", NULL, 0));
    /* in its place; written by the end */
    dc_cache_store(other, &job, key_of("a"), no_toolchain, "x", 1);
    dc_cache_free(other);
    CHECK(finds(c, "a", "x", 1));
    dc_cache_store(c, &job, key_of("none"), no_toolchain, "", 0);
    dc_cache_free(c);
    c = open_cache();
    CHECK(finds(c, "none", "", 0));
    dc_cache_free(c);
    CHECK_EQ(each_file(remove_file, NULL), 2);
}

/* Each bit pattern of a byte that is wrong, each length, and more than there was. */
static void test_damage(void)
{
    char path[600];
    size_t n;
    dc_cache *c = open_cache();
    entry_path(path, sizeof path, "a");
    store(c, "a");
    char *bytes = read_file(path, &n);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            write_file(path, bytes, n);
            CHECK(finds(c, "a", NULL, 0));
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
    for (size_t i = 0; i < n; i++) {
        write_file(path, bytes, i);
        CHECK(finds(c, "a", NULL, 0));
    }
    bytes[n] = 0;
    write_file(path, bytes, n + 1);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a"); /* replaced */
    CHECK(finds(c, "a", data, sizeof data));
    store(c, "b");
    unlink(path);
    write_file(path, bytes, n); /* as it was */
    CHECK(finds(c, "a", data, sizeof data));
    free(bytes);
    dc_cache_free(c);
    each_file(remove_file, NULL);
}

/* A sound entry under another's name; links, pipes, folders, files that others can read. */
static void test_foreign(void)
{
    char a[600], b[600], away[600];
    dc_cache *c = open_cache();
    entry_path(a, sizeof a, "a");
    entry_path(b, sizeof b, "b");
    path_of(away, sizeof away, "away");
    store(c, "b");
    CHECK(rename(b, a) == 0);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));

    rename(a, away);
    CHECK(symlink(away, a) == 0);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));
    unlink(a);
    CHECK(mkfifo(a, 0600) == 0);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));
    CHECK(chmod(a, 0640) == 0);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));
    if (geteuid() == 0) {
        CHECK(chown(a, 12345, (gid_t)-1) == 0);
        CHECK(finds(c, "a", NULL, 0));
        store(c, "a");
        CHECK(finds(c, "a", data, sizeof data));
    }
    unlink(a);
    CHECK(mkdir(a, 0700) == 0);
    CHECK(finds(c, "a", NULL, 0));
    store(c, "a"); /* cannot be, and is no harm */
    CHECK(finds(c, "a", NULL, 0));
    dc_cache_free(c);
    CHECK_STR(said.n > 0 ? said.s : "", "");
    each_file(remove_file, NULL);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void test_folder(void)
{
    CHECK(chmod(folder, 0750) == 0);
    dc_cache *c = open_cache();
    store(c, "a");
    CHECK(finds(c, "a", NULL, 0));
    dc_cache_free(c);
    CHECK_EQ(each_file(NULL, NULL), 0);
    const char *line = strstr(said.s, "is not used: others can look into it (mode 750");
    CHECK(line != NULL && strstr(line + 1, "is not used") == NULL);
    CHECK(chmod(folder, 0700) == 0);

    dc_opts elsewhere = opt;
    char path[600];
    path_of(path, sizeof path, "a/b/c");
    strcpy(elsewhere.cache, path);
    c = dc_cache_new(&elsewhere);
    CHECK(finds(c, "a", NULL, 0)); /* makes them */
    struct stat s;
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0700);
    dc_cache_free(c);
    for (int i = 0; i < 3; i++, *strrchr(path, '/') = '\0')
        CHECK(rmdir(path) == 0);

    said.n = 0;
    strcpy(elsewhere.cache, "/dev/null/nowhere");
    c = dc_cache_new(&elsewhere);
    store(c, "a");
    CHECK(finds(c, "a", NULL, 0));
    dc_cache_free(c);
    strcpy(elsewhere.cache, "off");
    CHECK(dc_cache_new(&elsewhere) == NULL);
    elsewhere.cache[0] = '\0';
    CHECK(dc_cache_new(&elsewhere) == NULL);
}

/* Files end at half an entry, as on a full disk: nothing stays behind. */
static void test_no_room(void)
{
    struct rlimit before, low;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    low = before;
    low.rlim_cur = 40;
    dc_cache *c = open_cache();
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
    store(c, "a");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(finds(c, "a", NULL, 0));
    CHECK_EQ(each_file(NULL, NULL), 0);
    store(c, "b"); /* it does not try again */
    CHECK_EQ(each_file(NULL, NULL), 0);
    dc_cache_free(c);
}

/* The oldest go; one that is used in between stays. */
static void test_limit(void)
{
    enum { EACH = 60000, MOST = 1 << 20 };
    static char large[EACH];
    char text[32], path[600], oldest[600];
    dc_cache_report r;
    dc_cache *c = open_cache();
    dc_cache_store(c, &job, key_of("first"), no_toolchain, large, EACH);
    dc_cache_flush(c);
    entry_path(oldest, sizeof oldest, "first");
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    for (int i = 0; i < 100; i++) {
        CHECK(utimensat(AT_FDCWD, oldest, long_ago, 0) == 0);
        CHECK(finds(c, "first", large, EACH)); /* its time is now */
        snprintf(text, sizeof text, "%d", i);
        dc_cache_store(c, &job, key_of(text), no_toolchain, large, EACH);
        dc_cache_flush(c);
        dc_cache_look(&opt, false, &r);
        CHECK(r.bytes <= MOST);
    }
    CHECK(r.bytes >= MOST / 2);
    CHECK(finds(c, "99", large, EACH));
    CHECK(finds(c, "0", NULL, 0));
    dc_cache_store(c, &job, key_of("too large"), no_toolchain, large, MOST); /* is not read */
    dc_cache_free(c);
    path_of(path, sizeof path, "new-1-0"); /* of a process that died */
    write_file(path, "x", 1);
    dc_cache_look(&opt, false, &r);
    CHECK(access(path, F_OK) == 0);
    CHECK(utimensat(AT_FDCWD, path, long_ago, 0) == 0);
    dc_cache_look(&opt, false, &r);
    CHECK(access(path, F_OK) != 0);
    dc_cache_look(&opt, true, &r);
    CHECK_EQ(r.files, 0);
    CHECK_EQ(each_file(NULL, NULL), 0);
}

/* Times that lie in the future, from which the clock was set back: what has one is no newer than what was just used. */
static void test_future(void)
{
    enum { EACH = 60000 };
    static char large[EACH];
    char text[32], used[600], unused[600], path[600];
    struct stat s;
    dc_cache_report r;
    dc_cache *c = open_cache();
    const struct timespec future[2] = {{.tv_sec = time(NULL) + 100000000},
                                       {.tv_sec = time(NULL) + 100000000}};
    dc_cache_store(c, &job, key_of("used"), no_toolchain, large, EACH);
    dc_cache_store(c, &job, key_of("unused"), no_toolchain, large, EACH);
    dc_cache_flush(c);
    entry_path(used, sizeof used, "used");
    entry_path(unused, sizeof unused, "unused");
    CHECK(utimensat(AT_FDCWD, used, future, 0) == 0);
    CHECK(utimensat(AT_FDCWD, unused, future, 0) == 0);
    CHECK(finds(c, "used", large, EACH));
    CHECK(stat(used, &s) == 0 && s.st_mtime < future[0].tv_sec - 1000); /* its time is now */
    for (int i = 0; access(unused, F_OK) == 0 && i < 40; i++) {
        snprintf(text, sizeof text, "%d", i);
        dc_cache_store(c, &job, key_of(text), no_toolchain, large, EACH);
        dc_cache_flush(c);
        CHECK(access(unused, F_OK) != 0 || access(used, F_OK) == 0);
    }
    CHECK(access(unused, F_OK) != 0); /* the first that goes */
    dc_cache_free(c);
    path_of(path, sizeof path, "new-1-0");
    write_file(path, "x", 1);
    CHECK(utimensat(AT_FDCWD, path, future, 0) == 0);
    dc_cache_look(&opt, false, &r);
    CHECK(access(path, F_OK) != 0);
    dc_cache_look(&opt, true, &r);
}

/* Where there is no compiler, whatever one made will do; else it has to be that one's. */
static void test_makers(void)
{
    const dc_cache_maker one = {{1, 2}}, two = {{1, 3}};
    dc_cache *c = open_cache();
    const void *got;
    size_t n;
    dc_cache_store(c, &job, key_of("made"), one, data, sizeof data);
    dc_cache_flush(c);
    CHECK(dc_cache_find(c, &job, key_of("made"), one, &got, &n));
    CHECK(dc_cache_find(c, &job, key_of("made"), no_toolchain, &got, &n));
    CHECK(!dc_cache_find(c, &job, key_of("made"), two, &got, &n));
    dc_cache_store(c, &job, key_of("made"), two, data, sizeof data);
    dc_cache_flush(c);
    CHECK(dc_cache_find(c, &job, key_of("made"), two, &got, &n));
    CHECK(!dc_cache_find(c, &job, key_of("made"), one, &got, &n));
    CHECK(!dc_cache_maker_known(no_toolchain) && dc_cache_maker_known(one));
    dc_cache_free(c);
    CHECK_EQ(each_file(remove_file, NULL), 1);
}

/* ---- several at once ------------------------------------------------------------------------- */

static void *race(void *arg)
{
    dc_log log = {0};
    dc_job j;
    char text[16], want[4000];
    dc_cache *c = dc_cache_new(&opt);
    bool *good = arg;
    dc_job_init(&j, &opt, &log);
    *good = true;
    for (int round = 0; round < 200; round++) {
        const void *got;
        size_t bytes;
        snprintf(text, sizeof text, "%d", round % 5);
        memset(want, 'a' + round % 5, sizeof want);
        if (dc_cache_find(c, &j, key_of(text), no_toolchain, &got, &bytes))
            *good = *good && bytes == sizeof want && memcmp(got, want, bytes) == 0;
        dc_cache_store(c, &j, key_of(text), no_toolchain, want, sizeof want);
    }
    dc_job_fini(&j);
    dc_cache_free(c);
    return NULL;
}

static void test_race(void)
{
    enum { N = 4 };
    pthread_t thread[N];
    bool good[N];
    for (int i = 0; i < N; i++)
        CHECK(pthread_create(&thread[i], NULL, race, &good[i]) == 0);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        CHECK(good[i]);
    }
    CHECK_EQ(each_file(remove_file, NULL), 5);
}

/* ---- executables ----------------------------------------------------------------------------- */

static const char *const module = "func f(%1: f32[40, 7] \"x\") {\n"
                                  "  %2 = exp %1 : f32[40, 7]\n"
                                  "  %3 = sum %2 {2} : f32[40]\n"
                                  "  %4 = sum %2 {1} : f32[7]\n"
                                  "  return %3, %4\n"
                                  "}\n";

typedef struct outcome {
    float result[47];
    uint64_t compiled, cached;
    bool whole; /* as an executable */
    char looks[4000];
} outcome;

/* What there is to look at: the plan, the text of each kernel, facts. */
static void look(dc_exec *e, dc_job *j, char *out, size_t size)
{
    dc_exec_info info;
    dc_text text = {0};
    commands_text(e, &text);
    for (uint32_t k = 0; k < dc_exec_kernel_count(e); k++) {
        dc_exec_kernel x;
        dc_exec_kernel_of(e, k, &x);
        dc_text_printf(&text, "%s %u %lld %lld\n", x.name, x.launches, (long long)x.flops,
                       (long long)x.bytes);
        CHECK_EQ(dc_exec_source(e, j, k, DC_FORM_NEST, &text), DC_OK);
    }
    dc_exec_info_of(e, &info);
    dc_text_printf(&text, "%u %u %u %zu %zu %u %u %d %llu\n", info.launches, info.copies,
                   info.kernels, info.arena_bytes, info.arena_lower_bound, info.donated,
                   info.denied, info.interpreted, (unsigned long long)info.nodes);
    CHECK(text.n > 100 && text.n < size);
    snprintf(out, size, "%s", text.s);
    dc_text_free(&text);
}

/* Two kernels with one text: they differ in the number of rows alone. */
static const char *const sizes = "func f(%1: f32[64, 7] \"x\", %2: f32[48, 7] \"y\") {\n"
                                 "  %3 = sum %1 {2} : f32[64]\n"
                                 "  %4 = sum %2 {2} : f32[48]\n"
                                 "  return %3, %4\n"
                                 "}\n";

static void build(outcome *o)
{
    world w;
    world_open(&w, ON_CPU, &opt, "cache");
    dc_exec *e = world_build(&w, sizes, &(signature){.nfree = 2, .nresult = 2});
    dc_inst *i = world_bind(&w, e, NULL);
    o->whole = w.said.s != NULL && strstr(w.said.s, "found whole") != NULL;
    o->compiled = w.rt->stats.kernels;
    o->cached = w.rt->stats.kernels_cached;
    dc_inst_free(i);
    dc_exec_release(e);
    world_close(&w);
}

static void test_one_text(void)
{
    outcome o;
    build(&o);
    CHECK(!o.whole && o.compiled == 1 && o.cached == 1);
    CHECK_EQ(each_file(NULL, NULL), 2);
    build(&o);
    CHECK(o.whole && o.compiled == 0 && o.cached == 2);
    each_file(remove_file, NULL);
}

/* The folder is removed while it is open: what is computed is right, nothing comes back, the next one makes it again. */
static void test_gone(void)
{
    outcome warm = {0}, cold = {0};
    dc_cache *c = open_cache();
    store(c, "a");
    CHECK(finds(c, "a", data, sizeof data));
    each_file(remove_file, NULL);
    CHECK(rmdir(folder) == 0);
    store(c, "b");
    CHECK(finds(c, "a", NULL, 0));
    CHECK(finds(c, "b", NULL, 0));
    CHECK(access(folder, F_OK) != 0);
    dc_cache_free(c);
    CHECK_STR(said.n > 0 ? said.s : "", "");
    build(&cold);
    CHECK(!cold.whole && cold.compiled == 1);
    build(&warm);
    CHECK(warm.whole && warm.compiled == 0);
    each_file(remove_file, NULL);
}

/* As a user who may not write there, which root always may. */
static int be_reader(void)
{
    enum { NOBODY = 65534 };
    outcome o = {0};
    if (geteuid() == 0 && (chown(folder, NOBODY, NOBODY) != 0 || seteuid(NOBODY) != 0))
        return 2;
    if (chmod(folder, 0500) != 0)
        return 3;
    build(&o); /* nothing is there */
    if (o.whole || o.compiled != 2 || o.cached != 0)
        return 4;
    dc_cache *c = open_cache();
    store(c, "a");
    const bool silent = said.n == 0;
    dc_cache_free(c);
    if (!silent || each_file(NULL, NULL) != 0)
        return 5;
    if (chmod(folder, 0700) != 0)
        return 6;
    build(&o);
    if (chmod(folder, 0500) != 0)
        return 7;
    build(&o); /* what is there is found, though its use cannot be noted */
    const bool found = o.whole && o.compiled == 0;
    chmod(folder, 0700);
    each_file(remove_file, NULL);
    return found && t_failed == 0 ? 0 : 8;
}

static void test_read_only(void)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(be_reader());
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    if (geteuid() == 0)
        CHECK(chown(folder, 0, 0) == 0);
}

/* ---- kills ----------------------------------------------------------------------------------- */

enum { KILLED_KEYS = 20, KILLED_MOST = 40000 };

/* The bytes that belong to a key; returns how many. */
static size_t bytes_of(int key, char text[16], char *to)
{
    const size_t n = 100 + (size_t)key * (KILLED_MOST / KILLED_KEYS - 6);
    snprintf(text, 16, "killed %d", key);
    for (size_t i = 0; i < n; i++)
        to[i] = (char)((i * 31 + (size_t)key * 7) % 251);
    return n;
}

/* Writes until it is killed. */
static void write_without_end(void)
{
    static char bytes[KILLED_MOST];
    char text[16];
    dc_cache *c = open_cache();
    for (int i = (int)getpid();; i++) {
        const size_t n = bytes_of(i % KILLED_KEYS, text, bytes);
        dc_cache_store(c, &job, key_of(text), no_toolchain, bytes, n);
        dc_cache_flush(c);
    }
}

static int unfinished_files(bool age)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char path[600];
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
        if (strncmp(f->d_name, "new-", 4) == 0) {
            path_of(path, sizeof path, f->d_name);
            n += !age || utimensat(AT_FDCWD, path, long_ago, 0) == 0;
        }
    if (d != NULL)
        closedir(d);
    return n;
}

/* Of what processes wrote that were killed meanwhile each entry is whole or not there. */
static void test_killed(rng *r)
{
    enum { KILLS = 60 };
    static char bytes[KILLED_MOST];
    char text[16];
    int whole = 0;
    dc_cache_report report;
    for (int i = 0; i < KILLS; i++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            write_without_end();
        usleep((useconds_t)rng_below(r, 20000));
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        CHECK(unfinished_files(false) <= i + 1);
        dc_cache *c = open_cache();
        for (int key = 0; key < KILLED_KEYS; key++) {
            const size_t n = bytes_of(key, text, bytes);
            const bool found = !finds(c, text, NULL, 0);
            CHECK(!found || finds(c, text, bytes, n));
            whole += found;
        }
        dc_cache_free(c);
    }
    printf("killed %d times: %d entries found, %d files unfinished\n", KILLS, whole,
           unfinished_files(true));
    CHECK(whole > 0);
    dc_cache_look(&opt, false, &report);
    CHECK_EQ(unfinished_files(false), 0);
    dc_cache_look(&opt, true, &report);
}

static dc_kernel_needs *needs_of(uint64_t text, uint64_t bytes)
{
    dc_kernel_needs *out = dc_xalloc(sizeof *out + 2 * sizeof(dc_need));
    out->text.word[0] = text;
    out->nparam = 2;
    out->param[1].bytes = bytes;
    return out;
}

/* Of kernel i, whose second parameter has 10 i bytes. */
static bool has_needs(const dc_text *entry, uint64_t i)
{
    dc_kernel_needs *found = dc_kernel_entry_needs(entry->s, entry->n, (dc_cache_key){{i, 0}});
    const bool has = found != NULL;
    if (has)
        CHECK(found->nparam == 2 && found->param[1].bytes == 10 * i);
    dc_xfree(found);
    return has;
}

static dc_status grow_entry(dc_job *j, void *ctx)
{
    DC_UNUSED(j);
    DC_UNUSED(ctx);
    dc_text entry = {0};
    size_t code;
    dc_kernel_needs *x = needs_of(1, 10);
    dc_kernel_entry_put("code", 4, x, &entry);
    dc_xfree(x);
    for (uint64_t i = 2; i < 100; i++) {
        dc_text more = {0};
        x = needs_of(i, 10 * i);
        CHECK(dc_kernel_entry_add(entry.s, entry.n, x, &more));
        CHECK(!dc_kernel_entry_add(more.s, more.n, x, &more));
        dc_xfree(x);
        dc_text_free(&entry);
        entry = more;
        CHECK(dc_kernel_entry_code(entry.s, entry.n, &code) && code == 4);
        CHECK(memcmp(entry.s, "code", 4) == 0);
        CHECK(has_needs(&entry, i) && !has_needs(&entry, i + 1));
        CHECK(has_needs(&entry, 1) == (i <= 64) && has_needs(&entry, i - 1) == (i != 65));
    }
    for (size_t n = 0; n < entry.n; n++) {
        CHECK(!dc_kernel_entry_code(entry.s, n, &code));
        CHECK(!has_needs(&(dc_text){.s = entry.s, .n = n}, 1));
    }
    dc_text_free(&entry);
    return DC_OK;
}

static void test_entries(void)
{
    CHECK_EQ(dc_protect(&job, grow_entry, NULL), DC_OK);
}

static void build_and_call(outcome *o)
{
    world w;
    world_open(&w, ON_CPU, &opt, "cache");
    dc_exec *e = world_build(&w, module, &(signature){.nfree = 1, .nresult = 2});
    dc_inst *i = world_bind(&w, e, NULL);
    look(e, w.j, o->looks, sizeof o->looks);
    o->whole = w.said.s != NULL && strstr(w.said.s, "found whole") != NULL;
    const dc_type type = dc_type_make(DC_F32, 2, (int64_t[]){40, 7});
    dc_tensor *x, *out[2];
    CHECK(dc_tensor_new(w.rt, w.j, &type, &x) == DC_OK);
    float *at = dc_tensor_mem(x);
    for (int k = 0; k < 280; k++)
        at[k] = (float)k / 100;
    dc_fault fault;
    CHECK(dc_inst_call(i, w.j, &(dc_arg){.tensor = x}, out, &fault) == DC_OK);
    memcpy(o->result, dc_tensor_mem(out[0]), 40 * sizeof(float));
    memcpy(o->result + 40, dc_tensor_mem(out[1]), 7 * sizeof(float));
    o->compiled = w.rt->stats.kernels;
    o->cached = w.rt->stats.kernels_cached;
    world_release(out, 2);
    world_release(&x, 1);
    dc_inst_free(i);
    dc_exec_release(e);
    world_close(&w);
}

static void damage(const char *path, void *ctx)
{
    size_t n;
    char *bytes = read_file(path, &n);
    const int at = rng_below(ctx, (int)n);
    bytes[at] = (char)(bytes[at] + 1 + rng_below(ctx, 255));
    write_file(path, bytes, n);
    free(bytes);
}

/* Entries that are sound, but for what is in them: the loader of objects has to refuse it. */
static void replace(const char *path, void *ctx)
{
    dc_cache_key key;
    const char *name = strrchr(path, '/') + 1;
    char word[17] = "";
    for (int i = 0; i < 2; i++) {
        memcpy(word, name + 16 * i, 16);
        key.word[i] = strtoull(word, NULL, 16);
    }
    dc_cache_maker maker;
    size_t n;
    char *bytes = read_file(path, &n);
    memcpy(&maker, bytes + MAKER, sizeof maker);
    free(bytes);
    dc_cache_store(ctx, &job, key, maker, data, sizeof data);
}

static bool same(const outcome *a, const outcome *b)
{
    if (strcmp(a->looks, b->looks) != 0)
        printf("it looked like\n%sand now\n%s", a->looks, b->looks);
    return memcmp(a->result, b->result, sizeof a->result) == 0 && strcmp(a->looks, b->looks) == 0;
}

/* Kernels are objects, the other file is the executable. */
static bool is_kernel(const char *path)
{
    size_t n;
    char *bytes = read_file(path, &n);
    const bool object = n > HEADER + 4 && memcmp(bytes + HEADER, "\177ELF", 4) == 0;
    free(bytes);
    return object;
}

static void damage_kernel(const char *path, void *ctx)
{
    if (is_kernel(path))
        damage(path, ctx);
}

static void damage_executable(const char *path, void *ctx)
{
    if (!is_kernel(path))
        damage(path, ctx);
}

/* One of the two without the other. */
static void test_halves(rng *r, const outcome *cold)
{
    outcome warm;
    for (int round = 0; round < 5; round++) {
        each_file(damage_executable, r);
        build_and_call(&warm);
        CHECK(!warm.whole);
        CHECK_EQ(warm.compiled, 0);
        CHECK_EQ(warm.cached, cold->compiled);
        CHECK(same(cold, &warm));
        each_file(damage_kernel, r);
        build_and_call(&warm);
        CHECK(!warm.whole);
        CHECK_EQ(warm.compiled, cold->compiled);
        CHECK(same(cold, &warm));
        build_and_call(&warm);
        CHECK(warm.whole);
        CHECK_EQ(warm.cached, cold->compiled);
        CHECK(same(cold, &warm));
    }
}

static void test_executables(rng *r)
{
    outcome cold, warm;
    build_and_call(&cold);
    CHECK(cold.compiled > 0);
    CHECK_EQ(cold.cached, 0);
    CHECK_EQ(each_file(NULL, NULL), (int)cold.compiled + 1);
    build_and_call(&warm);
    CHECK(warm.whole);
    CHECK_EQ(warm.compiled, 0);
    CHECK_EQ(warm.cached, cold.compiled);
    CHECK(same(&cold, &warm));
    for (int round = 0; round < 10; round++) {
        each_file(damage, r);
        build_and_call(&warm);
        CHECK_EQ(warm.compiled, cold.compiled);
        CHECK(same(&cold, &warm));
    }
    test_halves(r, &cold);
    dc_cache *c = open_cache();
    each_file(replace, c);
    dc_cache_free(c);
    build_and_call(&warm);
    CHECK_EQ(warm.compiled, cold.compiled);
    CHECK(same(&cold, &warm));
    build_and_call(&warm);
    CHECK(warm.whole && same(&cold, &warm));
}

/* Whatever the stages read makes another executable; settings that show the stages run them. */
static void test_settings(void)
{
    outcome warm;
    dc_opts env;
    const char *bad;
    dc_opts_init(&env, &bad);
    strcpy(opt.skip, "cache");
    build_and_call(&warm);
    CHECK_EQ(warm.cached, 0);
    opt.skip[0] = '\0';
    strcpy(opt.target, "baseline");
    build_and_call(&warm);
    CHECK(warm.cached == 0 ||
          strstr(env.machine, "baseline") != NULL); /* that is pretended, it is no other */
    opt.target[0] = '\0';
    static const char *const skips[] = {"fuse", "schedule", "licm"};
    for (size_t i = 0; i < DC_COUNTOF(skips); i++) {
        strcpy(opt.skip, skips[i]);
        build_and_call(&warm);
        CHECK(!warm.whole);
        build_and_call(&warm);
        CHECK(warm.whole);
    }
    strcpy(opt.skip, "share");
    build_and_call(&warm);
    build_and_call(&warm);
    CHECK(!warm.whole);
    opt.skip[0] = '\0';
    for (opt.opt = 0; opt.opt < 2; opt.opt++) {
        build_and_call(&warm);
        CHECK(!warm.whole);
    }
    strcpy(opt.math, "strict");
    build_and_call(&warm);
    CHECK(!warm.whole);
    opt.math[0] = '\0';
    opt.memory = 1 << 20;
    build_and_call(&warm);
    CHECK(!warm.whole);
    opt.memory = 0;
    opt.check = 1;
    build_and_call(&warm);
    CHECK(!warm.whole);
    opt.check = 0;
    build_and_call(&warm);
    CHECK(warm.whole);
    each_file(remove_file, NULL);
}

/* ---- an executable as bytes ------------------------------------------------------------------ */

/* What bytes were unpacked to, forgotten again. */
static bool unpacks(dc_exec *e, const void *bytes, size_t n)
{
    dc_packed_kernel *kernel;
    const dc_exec before = *e;
    const dc_mark mark = dc_arena_mark(&e->mem);
    const bool good = dc_exec_unpack(e, bytes, n, &kernel);
    dc_arena_rewind(&e->mem, mark);
    const dc_arena mem = e->mem;
    *e = before;
    e->mem = mem;
    return good;
}

typedef struct unpacking {
    dc_exec *e;
    rng *r;
} unpacking;

static dc_status unpack_damaged(dc_job *j, void *ctx)
{
    DC_UNUSED(j);
    const unpacking *u = ctx;
    dc_exec *e = u->e;
    dc_text text = {0};
    CHECK(dc_exec_pack(e, &text));
    CHECK(unpacks(e, text.s, text.n));
    for (size_t n = 0; n < text.n; n++)
        CHECK(!unpacks(e, text.s, n));
    dc_text_put(&text, "12345678", 8);
    CHECK(!unpacks(e, text.s, text.n));
    text.n -= 8;
    int refused = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char before = text.s[i];
        text.s[i] = (char)(before + 1 + rng_below(u->r, 255));
        refused += !unpacks(e, text.s, text.n);
        text.s[i] = before;
    }
    /* Each word as a count: a little too small or too large, and as large as what is left. */
    for (size_t i = 0; i + 8 <= text.n; i++) {
        uint64_t before, now;
        memcpy(&before, text.s + i, 8);
        const uint64_t tries[] = {before + 1, before - 1, text.n - i, text.n - i - 8, UINT64_MAX};
        for (size_t k = 0; k < DC_COUNTOF(tries); k++) {
            now = tries[k];
            memcpy(text.s + i, &now, 8);
            refused += !unpacks(e, text.s, text.n);
        }
        memcpy(text.s + i, &before, 8);
    }
    CHECK(refused > 0); /* a number of flops is as good as another */
    dc_text_free(&text);
    return DC_OK;
}

static void test_pack(rng *r)
{
    world w;
    dc_text id = {0};
    CHECK(dc_build_id_put(&id) && id.n >= 16);
    dc_text_free(&id);
    world_open(&w, ON_CPU, &opt, "");
    dc_exec *e = world_build(&w, module, &(signature){.nfree = 1, .nresult = 2});
    CHECK_EQ(dc_protect(w.j, unpack_damaged, &(unpacking){e, r}), DC_OK);
    dc_exec_release(e);
    world_close(&w);
    each_file(remove_file, NULL);
}

/* A file takes a block at least, however little is in it. */
static void test_small_entries(void)
{
    char text[32], path[600];
    dc_cache_report r;
    dc_cache *c = open_cache();
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "%d", i);
        entry_path(path, sizeof path, text);
        write_file(path, "x", 1);
    }
    dc_cache_look(&opt, false, &r);
    CHECK_EQ(r.bytes, 300 * 4096);
    dc_cache_store(c, &job, key_of("one more"), no_toolchain, "x", 1);
    dc_cache_free(c);
    dc_cache_look(&opt, false, &r);
    CHECK(r.bytes <= 1 << 20 && r.bytes > 1 << 19);
    dc_cache_look(&opt, true, &r);
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 20261121)};
    dc_log log = {.on = 1u << DC_CH_NOTE, .write = hear};
    snprintf(folder, sizeof folder, "%s/deepc-cache-XXXXXX", dc_opts_temporary());
    if (mkdtemp(folder) == NULL) {
        T_SKIP("no temporary folder");
        return t_done();
    }
    opt.opt = 2;
    opt.cache_size = 1;
    strcpy(opt.cache, folder);
    dc_job_init(&job, &opt, &log);
    test_keys();
    test_makers();
    test_store_and_find();
    test_damage();
    test_foreign();
    test_folder();
    test_no_room();
    test_limit();
    test_future();
    test_small_entries();
    test_race();
    test_entries();
    test_one_text();
    test_gone();
    test_read_only();
    test_killed(&r);
    test_executables(&r);
    test_settings();
    test_pack(&r);
    dc_job_fini(&job);
    dc_text_free(&said);
    rmdir(folder);
    return t_done();
}
