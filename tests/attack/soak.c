/*
 * Contexts opened, used and closed for a long time: training, batches, jobs, checkpoints, errors, deadlines, functions
 * from files; then sixteen at once. After the first rounds memory, descriptors, threads and maps may not grow.
 *
 *     soak [SECONDS [FOLDER]]
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/base.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"

#ifdef __SANITIZE_THREAD__
enum { SLACK_KB = 600 << 10 }; /* what was freed is kept for a while */
#else
enum { SLACK_KB = 1 << 10 };
#endif
enum { AT_ONCE = 16, WARM = 8, SLACK_MAPS = 12 };

static char folder[400];

static const char script[] =
    "local dc, nn, optim, data = require 'deepc', require 'deepc.nn', require 'deepc.optim', "
    "require 'deepc.data'\n"
    "local folder = ...\n"
    "dc.seed(1)\n"
    "local net = nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4) }\n"
    "local opt = optim.Adam(net:parameters())\n"
    "local step = dc.fn('step(x: f32[n, 8], y: i32[n]) -> f32[]', function(x, y)\n"
    "  local l = nn.cross_entropy(net(x), y) opt:step(l) return l end)\n"
    "local set = data.set(dc.rand('f32[200, 8]', { seed = 1 }), dc.iota 'i32[200]' % 4)\n"
    "local n = 0\n"
    "while n < 40 do for x, y in set:batches { size = 20, shuffle = true } do step(x, y) n = n + 1 "
    "end end\n"
    "assert(not pcall(step, dc.ones 'f32[3, 8]', dc.tensor({ 0, 1, 9 }, 'i32')))\n"
    "assert(not pcall(function() return dc.ones 'f32[2]' + dc.ones 'f32[3]' end))\n"
    "local j = step:start(dc.ones 'f32[20, 8]', dc.zeros 'i32[20]') j:poll { ms = 0 } j:close()\n"
    "pcall(function() dc.fn('g(x: f32[n]) -> f32[n]', function(x) error 'x' end)(dc.ones 'f32[2]') "
    "end)\n"
    "pcall(coroutine.wrap(function() dc.fn('h(x: f32[n]) -> f32[n]', function(x) coroutine.yield() "
    "return x end)\n"
    "  (dc.ones 'f32[2]') end))\n"
    "local ck = dc.checkpoint(folder .. '/ck', { model = net, opt = opt })\n"
    "ck:save { n = n } assert(ck:load().n == n)\n"
    "assert(not pcall(dc.load, folder .. '/nothing'))\n"
    "dc.fn('inside(x: f32[n, 8]) -> f32[n, 4]', function(x) return net(x) end):export(folder .. "
    "'/fn', { n = 2 })\n"
    "for _ = 1, 5 do assert(enter(function() while true do\n"
    "  local z = dc.ones 'f32[64, 64]' for i = 1, 20 do z = z:matmul(z):tanh() end z:sum():item() "
    "end end, 3) == 9) end\n";

typedef struct figures {
    long anonymous_kb, fds, threads, maps;
} figures;

static long entries(const char *path)
{
    long n = -3; /* ., .. and its own descriptor */
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

/* What malloc keeps of freed blocks is given back first, and pages of files (LLVM's code) do not count: both grow by
 * chance. So does what is lost between the blocks of malloc's arenas, wherefore main() allows one arena: then the figure
 * stays within 100 KB. */
static long anonymous_kb(void)
{
    char line[200];
    long kb = 0;
    malloc_trim(0);
    FILE *at = fopen("/proc/self/status", "r");
    while (at != NULL && kb == 0 && fgets(line, sizeof line, at) != NULL)
        (void)sscanf(line, "RssAnon: %ld kB", &kb);
    if (at != NULL)
        fclose(at);
    return kb;
}

static figures take(void)
{
    figures f = {.anonymous_kb = anonymous_kb(),
                 .fds = entries("/proc/self/fd"),
                 .threads = entries("/proc/self/task") + 1};
    int c;
    FILE *at = fopen("/proc/self/maps", "r");
    while (at != NULL && (c = fgetc(at)) != EOF)
        f.maps += c == '\n';
    if (at != NULL)
        fclose(at);
    return f;
}

static int l_enter(lua_State *L)
{
    const lua_Integer ms = lua_tointeger(L, 2);
    lua_settop(L, 1);
    lua_pushinteger(L, dc_pcall(L, 0, 0, 0, ms));
    return 1;
}

static dc_rt *open_context(int threads)
{
    dc_rt *ctx;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.threads = threads;
    CHECK_EQ(dc_open(&cfg, &ctx), DC_OK);
    return ctx;
}

static void run_state(void)
{
    dc_rt *ctx = open_context(2);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_register(L, "enter", l_enter);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    CHECK_EQ(luaL_loadstring(L, script), LUA_OK);
    lua_pushstring(L, folder);
    if (!CHECK(dc_pcall(L, 1, 0, 0, 60000) == LUA_OK))
        printf("%s\n", luaL_tolstring(L, -1, NULL));
    lua_close(L);
}

static float call_function(int threads)
{
    char path[500];
    float x[16], y[8] = {0};
    dc_function *f = NULL;
    dc_rt *ctx = open_context(threads);
    snprintf(path, sizeof path, "%s/fn", folder);
    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    dc_deadline(ctx, 60000);
    if (!CHECK(dc_load(ctx, path, &f) == DC_OK))
        printf("%s\n", dc_errmsg(ctx));
    dc_array in = {DC_F32, 2, {2, 8}, x, sizeof x}, out = {.data = y, .bytes = sizeof y};
    for (int i = 0; f != NULL && i < 100; i++)
        if (!CHECK(dc_call(f, &in, 1, &out, 1) == DC_OK))
            printf("%s\n", dc_errmsg(ctx));
    dc_close(ctx);
    return y[0];
}

static void *call_in_thread(void *out)
{
    *(float *)out = call_function(2);
    return NULL;
}

static void run_at_once(void)
{
    pthread_t thread[AT_ONCE];
    float y[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, call_in_thread, &y[i]), 0);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < AT_ONCE; i++)
        CHECK(memcmp(&y[i], &y[0], sizeof y[0]) == 0);
}

static void tell(long round, const figures *f)
{
    printf("%ld rounds: memory %ld KB, descriptors %ld, threads %ld, maps %ld\n", round,
           f->anonymous_kb, f->fds, f->threads, f->maps);
    fflush(stdout);
}

static void remove_folder(void)
{
    struct dirent *e;
    char path[700];
    DIR *d = opendir(folder);
    while (d != NULL && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d != NULL)
        closedir(d);
    CHECK_EQ(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 12;
    const char *tmp = argc > 2 ? argv[2] : "/tmp";
    figures first = {0}, now = {0};
    long round = 0, told = 16;
    bool begun = false;
    mallopt(M_ARENA_MAX, 1);
    snprintf(folder, sizeof folder, "%s/soak-XXXXXX", tmp);
    if (mkdtemp(folder) == NULL)
        return 1;
    const uint64_t start = dc_clock_ns(), until = start + (uint64_t)(seconds * 1e9);
    const uint64_t warm =
        start + (uint64_t)(seconds * 1e9 / 4); /* what threads keep for themselves grows */
    while (dc_clock_ns() < until || !begun) {
        run_state();
        if (round % 4 == 0)
            run_at_once();
        now = take();
        const bool begins = ++round >= WARM && !begun && dc_clock_ns() >= warm;
        if (begins)
            first = now, begun = true;
        if (begins || round == told)
            tell(round, &now);
        told += round == told ? told : 0;
    }
    tell(round, &now);
    remove_folder();
    CHECK(now.fds <= first.fds);
    CHECK(now.threads <= first.threads);
#ifndef __SANITIZE_ADDRESS__ /* its allocator keeps what was freed; scripts/test runs the release build, too */
    CHECK(first.anonymous_kb > 0);
    CHECK(now.anonymous_kb <= first.anonymous_kb + SLACK_KB);
    CHECK(now.maps <= first.maps + SLACK_MAPS);
#endif
    return t_done();
}
