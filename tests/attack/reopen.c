/*
 * Hosts that open deepc, use it, close it and take it out of the process, several times: the Lua module, which lua_close
 * unloads, and libdeepc.so by dlopen. Afterwards no thread, descriptor or mapping of it is left, whatever was under way,
 * and the next time all works.
 *
 *     reopen FOLDER [ROUNDS]
 *
 * FOLDER has deepc.so and libdeepc.so. The program has Lua, and nothing of deepc.
 */
#define _GNU_SOURCE
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/t.h"

static const char *folder;
static char path[400]; /* of a function file */

/* ---- the process ------------------------------------------------------------------------------ */

static int entries_of(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

/* Lines of the process's maps that name the file. */
static int mappings_of(const char *name)
{
    char line[1000];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        n += strstr(line, name) != NULL;
    if (f != NULL)
        fclose(f);
    return n;
}

typedef struct held {
    int threads, files;
} held;

static held held_now(void)
{
    return (held){entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
}

/* A thread that was joined may be listed for a moment. */
static void check_gone(held before, const char *library, const char *what)
{
    held now = held_now();
    for (int i = 0; i < 2000 && now.threads > before.threads; i++, now = held_now())
        usleep(5000);
    const long failed = t_failed;
    CHECK_EQ(now.threads, before.threads);
    CHECK_EQ(now.files, before.files);
    CHECK_EQ(mappings_of(library), 0);
    if (t_failed > failed)
        printf("after: %s\n", what);
}

/* ---- the module ------------------------------------------------------------------------------- */

static const char begin[] =
    "dc = require 'deepc'\n"
    "f = dc.fn('f(x: f32[64, 8]) -> f32[64]', function(x) return dc.exp(x):sum(2) end)\n"
    "x = dc.ones 'f32[64, 8]'\n";

/* What may be under way when the state is closed. */
static const char *const scripts[] = {
    "assert(math.abs(f(x):sum():item() - 64 * 8 * math.exp(1)) < 0.1)\n",
    "f:export(PATH)\n",
    "for i = 1, 4 do\n" /* compiled while it is closed */
    "  dc.fn('g(x: f32[64]) -> f32[64]', function(x) for k = 1, i do x = dc.sin(x) end return x "
    "end)\n"
    "end\n",
    "it = require 'deepc.data'.set(dc.ones 'f32[4096, 8]', dc.ones 'f32[4096]')\n"
    "  :batches { size = 16 }\n"
    "it()\n",
    "co = coroutine.wrap(function() local y <close> = dc.ones 'f32[3]' coroutine.yield(y + 1) "
    "end)\n"
    "co()\n",
    "error 'it ends with an error'\n",
    "y = dc.tanh(x * 2) + 1\n", /* not computed */
    "setmetatable({}, { __gc = function() f(x) dc.ones 'f32[3]' end })\n",
    "dc.ones 'f32[512, 512]':matmul(dc.ones 'f32[512, 512]')\n",
    "require 'deepc.linalg'.svd(dc.ones 'f32[8, 8]')\n",
    "dc.device 'eval'\n",
    "package.loaded.deepc = nil collectgarbage() dc = require 'deepc' dc.ones "
    "'f32[3]':sum():item()\n",
};

static lua_State *open_lua(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_pushfstring(L, "package.cpath = '%s/?.so' package.path = '' PATH = '%s'", folder, path);
    if (luaL_dostring(L, lua_tostring(L, -1)) != LUA_OK || luaL_dostring(L, begin) != LUA_OK)
        printf("failed: %s\n", lua_tostring(L, -1));
    CHECK(lua_gettop(L) == 1);
    lua_settop(L, 0);
    return L;
}

static void run(lua_State *L, const char *script)
{
    const bool fine = luaL_dostring(L, script) == LUA_OK;
    if (!CHECK(fine || strncmp(script, "error", 5) == 0 || strstr(script, "dc.device") != NULL))
        printf("%s\n", lua_tostring(L, -1));
    lua_settop(L, 0);
}

static void test_module(const char *script)
{
    const held before = held_now();
    lua_State *L = open_lua();
    run(L, script);
    CHECK(mappings_of("/deepc.so") > 0);
    lua_close(L);
    check_gone(before, "/deepc.so", script);
}

/* Of two states one goes on when the other has been closed. */
static void test_two(void)
{
    const held before = held_now();
    lua_State *a = open_lua(), *b = open_lua();
    run(a, scripts[0]);
    run(b, scripts[0]);
    lua_close(a);
    run(b, scripts[0]);
    lua_close(b);
    check_gone(before, "/deepc.so", "two states");
}

static void *use_module(void *arg)
{
    lua_State *L = open_lua();
    run(L, arg);
    lua_close(L);
    return NULL;
}

/* In a thread that ends when the library is no longer there. */
static void test_thread(void)
{
    pthread_t t;
    const held before = held_now();
    CHECK(pthread_create(&t, NULL, use_module, (void *)(uintptr_t)scripts[0]) == 0);
    pthread_join(t, NULL);
    check_gone(before, "/deepc.so", "a thread of its own");
}

/* ---- the library ------------------------------------------------------------------------------ */

typedef struct api {
    void *handle;
    dc_status (*open)(const dc_config *, dc_rt **);
    void (*close)(dc_rt *);
    dc_status (*load)(dc_rt *, const char *, dc_function **);
    void (*unload)(dc_function *);
    dc_status (*call)(dc_function *, const dc_array *, int, dc_array *, int);
    const char *(*errmsg)(dc_rt *);
} api;

static void find(api *a, const char *name, void *to)
{
    void *p = dlsym(a->handle, name);
    if (!CHECK(p != NULL))
        printf("%s\n", dlerror());
    memcpy(to, &p, sizeof p);
}

static bool open_api(api *a)
{
    char name[500];
    snprintf(name, sizeof name, "%s/libdeepc.so", folder);
    a->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(a->handle != NULL)) {
        printf("%s\n", dlerror());
        return false;
    }
    find(a, "dc_open", &a->open);
    find(a, "dc_close", &a->close);
    find(a, "dc_load", &a->load);
    find(a, "dc_unload", &a->unload);
    find(a, "dc_call", &a->call);
    find(a, "dc_errmsg", &a->errmsg);
    return true;
}

static float x[64 * 8], y[64];

/* How a context is used before it is closed. */
typedef struct use {
    const char *device, *compile;
    int threads;
    bool loads, calls, unloads;
} use;

static const use uses[] = {
    {"eval", "off", 1, true, true, true}, {NULL, NULL, 2, true, true, true},
    {NULL, NULL, 2, true, false, true}, /* is compiled while it is closed */
    {NULL, "now", 2, true, true, false},  {NULL, "off", 0, false, false, false},
};

static void test_library(const use *u)
{
    dc_config cfg = DC_CONFIG_INIT;
    const held before = held_now();
    dc_function *f = NULL;
    dc_rt *rt;
    api a;
    if (!open_api(&a))
        return;
    cfg.device = u->device;
    cfg.compile = u->compile;
    cfg.threads = u->threads;
    cfg.cache = "off";
    if (!CHECK_EQ(a.open(&cfg, &rt), DC_OK))
        printf("%s\n", a.errmsg(rt));
    if (u->loads && !CHECK_EQ(a.load(rt, path, &f), DC_OK))
        printf("%s\n", a.errmsg(rt));
    const dc_array in = {DC_F32, 2, {64, 8}, x, sizeof x};
    dc_array out = {.data = y, .bytes = sizeof y};
    if (u->calls) {
        CHECK_EQ(a.call(f, &in, 1, &out, 1), DC_OK);
        CHECK_NEAR(y[63], 8, 1e-4);
    }
    if (u->unloads)
        a.unload(f);
    a.close(rt);
    CHECK(dlclose(a.handle) == 0);
    check_gone(before, "/libdeepc.so", u->device != NULL ? u->device : "the library");
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    const int rounds = argc > 2 ? atoi(argv[2]) : 2;
    if (argc < 2)
        return 1;
    folder = argv[1];
    snprintf(path, sizeof path, "%s/reopen-%d.dcfn", tmp != NULL ? tmp : "/tmp", (int)getpid());
    test_module(scripts[1]); /* what stays of other libraries is there from now on */
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        test_module(scripts[i]);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
            test_module(scripts[i]);
        for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
            test_library(&uses[i]);
        test_two();
        test_thread();
    }
    unlink(path);
    return t_done();
}
