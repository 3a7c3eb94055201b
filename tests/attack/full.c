/*
 * Disks that are full after so many bytes, for everything that is written: checkpoints, safetensors, function files,
 * charts, the cache, dumps of kernels, the history of the prompt. A message or success; the file before stays whole,
 * and nothing half written is left.
 *
 *     full [FOLDER]
 *
 * Full is a file that reaches the process's limit (RLIMIT_FSIZE) at any byte, and where file systems may be mounted a
 * tmpfs without a page or without a file left.
 */
#define _GNU_SOURCE /* unshare, mkdtemp, setenv */
#include "core/base/type.h"
#include "vm/deepc.h"
#include "vm/program/prompt.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/t.h"

static char folder[400], disk[440]; /* disk: what may be a file system of its own */

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct bytes {
    char *s;
    size_t n;
} bytes;

static const char *in(const char *where, const char *name)
{
    static char path[800];
    snprintf(path, sizeof path, "%.400s/%.300s", where, name);
    return path;
}

/* Of a file that is not there: no bytes. */
static bytes read_file(const char *path)
{
    enum { MOST = 4 << 20 };
    bytes b = {malloc(MOST), 0};
    FILE *f = fopen(path, "r");
    if (f == NULL || b.s == NULL)
        return b;
    b.n = fread(b.s, 1, MOST, f);
    fclose(f);
    return b;
}

static bool same(bytes a, bytes b)
{
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

static bool file_is(const char *path, bytes b)
{
    const bytes now = read_file(path);
    const bool is = same(now, b);
    free(now.s);
    return is;
}

static bool is_name(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* How many names there are in a folder; removes them where `away`. */
static int names(const char *where, bool away)
{
    int n = 0;
    DIR *d = opendir(where);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (is_name(e->d_name)) {
            n++;
            CHECK(!away || unlinkat(dirfd(d), e->d_name, 0) == 0);
        }
    if (d != NULL)
        closedir(d);
    return n;
}

/* ---- full disks ------------------------------------------------------------------------------ */

/* Files of at most so many bytes; < 0: of any size. */
static void limit_files(long most)
{
    struct rlimit l;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = most < 0 ? l.rlim_max : (rlim_t)most;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static long pages_left(void)
{
    struct statvfs s;
    return statvfs(disk, &s) == 0 ? (long)s.f_bavail : -1;
}

/* A file "filler" takes all but so many pages of the disk; < 0: it is removed. */
static void leave_pages(long pages)
{
    static const char page[4096];
    unlink(in(disk, "filler"));
    if (pages < 0)
        return;
    const int fd = open(in(disk, "filler"), O_WRONLY | O_CREAT, 0600);
    while (pages_left() > pages && write(fd, page, sizeof page) == (ssize_t)sizeof page)
        ;
    close(fd);
    CHECK_EQ(pages_left(), pages);
}

/* No file more than there are; false: any. */
static void leave_no_file(bool none)
{
    char name[40];
    int fd = 0;
    for (int i = 0; fd >= 0; i++) {
        snprintf(name, sizeof name, "filler-%d", i);
        if (!none) {
            if (unlink(in(disk, name)) != 0)
                return;
            continue;
        }
        fd = open(in(disk, name), O_WRONLY | O_CREAT, 0600);
        if (fd >= 0)
            close(fd);
    }
    CHECK_EQ(errno, ENOSPC);
}

static bool mount_disk(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", disk, "tmpfs", 0, "size=256k,nr_inodes=24") == 0;
}

/* ---- writers --------------------------------------------------------------------------------- */

static const char script[] =
    "local dc, plot = require 'deepc', require 'deepc.plot'\n"
    "local w = dc.param 'f32[600]'\n"
    "local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x * w:sum() end)\n"
    "local function series(v) local y = {} for i = 1, 40 do y[i] = i * v % 7 end\n"
    "  return { { y = y, name = 'loss' } } end\n"
    "local writers = {\n"
    "  ['a.st'] = function(path, v) dc.save(path, { w = w }, { v = tostring(v) }) end,\n"
    "  ['a.gguf'] = function(path, v) dc.save(path, { w = w }, { v = v }) end,\n"
    "  ['a.ck'] = function(path, v) dc.checkpoint(path, { model = { w = w } }):save { v = v } "
    "end,\n"
    "  ['a.fn'] = function(path) f:export(path, { n = 2 }, { n = 3 }) end,\n"
    "  ['a.svg'] = function(path, v) plot.lines(path, series(v)) end,\n"
    "  ['a.png'] = function(path, v) plot.lines(path, series(v), { width = 200, height = 200 }) "
    "end,\n"
    "}\n"
    "function write(folder, name, v)\n"
    "  w:set(dc.full('f32[600]', v))\n"
    "  writers[name](folder .. '/' .. name, v)\n"
    "end\n";

static const char *const written[] = {"a.st", "a.gguf", "a.ck", "a.fn", "a.svg", "a.png"};

static lua_State *L;
static char message[600];

static void open_writers(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    cfg.device = "eval";
    cfg.cache = "off";
    L = luaL_newstate();
    luaL_openlibs(L);
    if (!CHECK(dc_open(&cfg, &ctx) == DC_OK) || !CHECK(dc_attach(L, ctx) == DC_OK) ||
        !CHECK(luaL_dostring(L, script) == LUA_OK))
        exit(t_done());
}

/* Is it written? Else message says why not. */
static bool put(const char *where, const char *name, int v)
{
    lua_getglobal(L, "write");
    lua_pushstring(L, where);
    lua_pushstring(L, name);
    lua_pushinteger(L, v);
    const int status = dc_pcall(L, 3, 0, 0, 0);
    message[0] = '\0';
    if (status != LUA_OK)
        dc_error_text(L, -1, message, sizeof message);
    lua_settop(L, 0);
    return status == LUA_OK;
}

/* After a try to write `fresh` over `old`, for which there was room or not. */
static void check_file(const char *where, const char *name, bool done, bytes old, bytes fresh,
                       const char *words)
{
    const bool good = CHECK(file_is(in(where, name), done ? fresh : old)) &
                      CHECK(done || strstr(message, words) != NULL) &
                      CHECK_EQ(names(where, false), 1);
    if (!good)
        printf("%s, %s: %s\n", name, words, message);
    if (done)
        CHECK(put(where, name, 1));
}

static void limit_writer(const char *name, bytes old, bytes fresh)
{
    enum { PARTS = 20 };
    const long n = (long)fresh.n;
    for (int i = 0; i <= PARTS + 2; i++) {
        const long k = i < PARTS ? i * n / PARTS : n - 1 + (i - PARTS);
        limit_files(k);
        const bool done = put(disk, name, 2);
        limit_files(-1);
        CHECK_EQ(done, k >= n);
        check_file(disk, name, done, old, fresh, "cannot be written: File too large");
    }
}

static void fill_writer(const char *name, bytes old, bytes fresh)
{
    const long pages = (long)(fresh.n + 4095) / 4096;
    for (long k = 0; k <= pages + 1; k++) {
        leave_pages(k);
        const bool done = put(disk, name, 2);
        leave_pages(-1);
        CHECK_EQ(done, k >= pages);
        check_file(disk, name, done, old, fresh, "cannot be written: No space left on device");
    }
    leave_no_file(true);
    const bool done = put(disk, name, 2);
    leave_no_file(false);
    CHECK(!done);
    check_file(disk, name, done, old, fresh, "cannot be written: No space left on device");
}

static void test_writers(void (*fill)(const char *name, bytes old, bytes fresh))
{
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        const char *path = in(disk, written[i]);
        CHECK(put(disk, written[i], 2));
        const bytes fresh = read_file(path);
        CHECK(put(disk, written[i], 1));
        const bytes old = read_file(path);
        CHECK(fresh.n > 1000 && old.n > 1000 && !same(old, fresh));
        fill(written[i], old, fresh);
        free(old.s);
        free(fresh.s);
        names(disk, true);
    }
}

/* ---- what compilations write ----------------------------------------------------------------- */

static const char computing[] =
    "local dc = require 'deepc'\n"
    "local f = dc.fn('f(x: f32[3000]) -> f32[]', function(x) return (x * 2 + 1):sum() end)\n"
    "assert(f(dc.ones 'f32[3000]'):item() == 9000)\n";

/* A context of its own computes that on the CPU. Is it right? Else message says what was said instead. */
static bool compute(const char *cache)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    cfg.device = "cpu";
    cfg.cache = cache;
    message[0] = '\0';
    if (dc_open(&cfg, &ctx) != DC_OK) {
        snprintf(message, sizeof message, "%s", dc_errmsg(ctx));
        dc_close(ctx);
        return false;
    }
    lua_State *own = luaL_newstate();
    luaL_openlibs(own);
    CHECK_EQ(dc_attach(own, ctx), DC_OK);
    const bool right = luaL_dostring(own, computing) == LUA_OK;
    if (!right)
        dc_error_text(own, -1, message, sizeof message);
    lua_close(own);
    return right;
}

static bool any_unfinished(void)
{
    bool any = false;
    DIR *d = opendir(disk);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        any |= strncmp(e->d_name, "new-", 4) == 0;
    if (d != NULL)
        closedir(d);
    return any;
}

/* A full disk is no reason not to compute, and what is found afterwards neither. */
static void test_cache(void (*fill)(long), const long *room, int n)
{
    for (int i = 0; i < n; i++) {
        fill(room[i]);
        CHECK(compute(disk));
        fill(-1);
        CHECK(!any_unfinished());
        CHECK(compute(disk));
        CHECK(compute(disk)); /* from the cache */
        CHECK(names(disk, false) > 0);
        names(disk, true);
    }
}

typedef struct dumped {
    char name[300];
    bytes content;
} dumped;

/* Each file of the disk is one of these, whole. */
static void check_dumped(const dumped *d, int n)
{
    DIR *at = opendir(disk);
    for (const struct dirent *e; at != NULL && (e = readdir(at)) != NULL;) {
        bool known = !is_name(e->d_name);
        for (int i = 0; i < n && !known; i++)
            known = strcmp(d[i].name, e->d_name) == 0 && file_is(in(disk, e->d_name), d[i].content);
        if (!CHECK(known))
            printf("%s is not whole\n", e->d_name);
    }
    if (at != NULL)
        closedir(at);
}

static int read_dumped(dumped *d, int most)
{
    int n = 0;
    DIR *at = opendir(disk);
    for (const struct dirent *e; at != NULL && (e = readdir(at)) != NULL && n < most;)
        if (is_name(e->d_name)) {
            snprintf(d[n].name, sizeof d[n].name, "%s", e->d_name);
            d[n++].content = read_file(in(disk, e->d_name));
        }
    if (at != NULL)
        closedir(at);
    return n;
}

static void test_dump(void)
{
    enum { MOST = 20 };
    static dumped d[MOST];
    setenv("DEEPC_DUMP", disk, 1);
    CHECK(compute("off"));
    const int n = read_dumped(d, MOST);
    CHECK(n > 0 && n < MOST);
    const long size = n > 0 ? (long)d[0].content.n : 0;
    for (long k = 0; k <= size + 1; k += size / 5 + 1) {
        names(disk, true);
        limit_files(k);
        const bool right = compute("off");
        limit_files(-1);
        if (!CHECK(right || strstr(message, "File too large") != NULL))
            printf("%s\n", message);
        check_dumped(d, n);
    }
    unsetenv("DEEPC_DUMP");
    for (int i = 0; i < n; i++)
        free(d[i].content.s);
    names(disk, true);
}

/* ---- the history of the prompt --------------------------------------------------------------- */

static void test_history_add(void)
{
    const char *piece = "for i = 1, 2 do\nprint(i)\nend";
    const char line[] = "for i = 1, 2 do\\nprint(i)\\nend\n";
    char path[800];
    snprintf(path, sizeof path, "%s", in(disk, "history"));
    for (size_t room = 0; room <= strlen(line); room++) {
        unlink(path);
        dc_history_add(path, "6 * 7");
        limit_files((long)(6 + room));
        dc_history_add(path, piece);
        limit_files(-1);
        dc_history_add(path, "last");
        char wanted[100];
        const int n =
            snprintf(wanted, sizeof wanted, "6 * 7\n%slast\n", room < strlen(line) ? "" : line);
        if (!CHECK(file_is(path, (bytes){wanted, (size_t)n})))
            printf("with room for %zu bytes\n", room);
    }
    names(disk, true);
}

static void count_piece(void *ctx, const char *piece)
{
    (void)piece;
    ++*(int *)ctx;
}

/*
 * A history that is cut when it is read: 4001 lines, of which 2000 stay. Their sizes are such that a buffer of 4096
 * bytes is empty at the end where each write fails.
 */
static void test_history_cut(void)
{
    enum { LINES = 4001, KEPT = 2000, WIDTH = 16, BYTES = 8 * 4097 };
    char path[800];
    bytes old = {malloc(BYTES * 3), 0}, fresh;
    snprintf(path, sizeof path, "%s", in(disk, "history"));
    for (int i = 1; i < LINES; i++)
        old.n += (size_t)sprintf(old.s + old.n, "line %010d\n", i);
    old.n += (size_t)sprintf(old.s + old.n, "%0*d\n", BYTES - (KEPT - 1) * WIDTH - 1, 0);
    fresh = (bytes){old.s + old.n - BYTES, BYTES};
    CHECK(strncmp(fresh.s, "line 0000002002\n", WIDTH) == 0);
    const long room[] = {0, 1, 4095, 4096, 4097, 20000, BYTES - 1, BYTES};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        FILE *f = fopen(path, "w");
        int n = 0;
        CHECK(f != NULL && fwrite(old.s, 1, old.n, f) == old.n && fclose(f) == 0);
        limit_files(room[i]);
        dc_history_load(path, count_piece, &n);
        limit_files(-1);
        CHECK_EQ(n, KEPT);
        CHECK_EQ(names(disk, false), 1);
        if (!CHECK(file_is(path, room[i] < BYTES ? old : fresh)))
            printf("with room for %ld bytes\n", room[i]);
    }
    free(old.s);
    names(disk, true);
}

int main(int argc, char **argv)
{
    static const long some_bytes[] = {0, 1, 50, 500, 3000, 8000}, some_pages[] = {0, 1, 2, 4};
    signal(SIGXFSZ, SIG_IGN); /* as in any host that wants to hear of it by write */
    snprintf(folder, sizeof folder, "%.300s/deepc-full-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!CHECK(mkdtemp(folder) != NULL))
        return t_done();
    snprintf(disk, sizeof disk, "%s/disk", folder);
    CHECK_EQ(mkdir(disk, 0700), 0);
    const bool mounted = mount_disk();
    CHECK_EQ(chmod(disk, 0700), 0);
    open_writers();
    test_writers(limit_writer);
    test_cache(limit_files, some_bytes, sizeof some_bytes / sizeof *some_bytes);
    test_dump();
    test_history_add();
    test_history_cut();
    if (mounted) {
        test_writers(fill_writer);
        test_cache(leave_pages, some_pages, sizeof some_pages / sizeof *some_pages);
    } else {
        T_SKIP("no file systems may be mounted here: a disk without a page or a file left");
    }
    lua_close(L);
    CHECK(!mounted || umount(disk) == 0);
    CHECK(rmdir(disk) == 0 && rmdir(folder) == 0);
    return t_done();
}
