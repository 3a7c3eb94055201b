/*
 * A context and fork: a child is told that the context is another process's, closes it without waiting, and
 * opens one of its own that computes the same, whatever the threads of the parent were doing just then. The
 * parent goes on with right results.
 */
#define _GNU_SOURCE
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/lua_run.h"

enum { SECONDS = 60 };

static char path[300], cache[300] = "off";
static float x[64 * 32];

/* ---- what is computed ------------------------------------------------------------------------ */

static const char make_file[] = "local dc = require 'deepc'\n"
                                "local w = dc.param(dc.ones 'f32[32, 16]')\n"
                                "local f = dc.fn('f(x: f32[64, 32]) -> f32[]', function(x)\n"
                                "  local loss = dc.tanh(x:matmul(w)):mean()\n"
                                "  return loss + dc.grad(loss, w):sum()\n"
                                "end)\n"
                                "f:export(PATH)\n";

static dc_rt *open_context(const char *compile)
{
    dc_rt *rt;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.threads = 3;
    cfg.compile = compile;
    cfg.cache = cache;
    if (!CHECK(dc_open(&cfg, &rt) == DC_OK))
        printf("    %s\n", dc_errmsg(rt));
    return rt;
}

static dc_status call(dc_function *f, float *result)
{
    const dc_array in = {DC_F32, 2, {64, 32}, x, sizeof x};
    dc_array out = {.data = result, .bytes = sizeof *result};
    return dc_call(f, &in, 1, &out, 1);
}

/* A context of its own, from the beginning to the end. */
static float compute(const char *compile)
{
    float result = -1;
    dc_function *f;
    dc_rt *rt = open_context(compile);
    if (dc_load(rt, path, &f) != DC_OK || call(f, &result) != DC_OK)
        printf("    %s\n", dc_errmsg(rt));
    dc_close(rt);
    return result;
}

/* ---- children -------------------------------------------------------------------------------- */

static bool ended_well(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool says_other_process(dc_rt *rt)
{
    return strstr(dc_errmsg(rt), "opened by another process; open one of its own after fork") !=
           NULL;
}

/* All that a child may do with what it inherited, and a context of its own. 0: all was right. */
static int be_child(dc_rt *rt, dc_function *f, float want)
{
    float y = -1;
    dc_function *again = NULL;
    char name[] = "w";
    dc_array value = {.data = &y, .bytes = sizeof y};
    alarm(SECONDS);
    if (f != NULL && (call(f, &y) != DC_E_STATE || !says_other_process(rt)))
        return 2;
    if (f != NULL && dc_function_get(f, name, &value) != DC_E_STATE)
        return 3;
    if (dc_load(rt, path, &again) != DC_E_STATE || !says_other_process(rt))
        return 4;
    dc_interrupt(rt);
    dc_unload(f);
    dc_close(rt);
    return compute(NULL) == want ? 0 : 5;
}

/*
 * With all that the libraries do then. A child leaves what its parent's context holds to the end of the process,
 * which the leak sanitizer would report: scripts/test runs this file in the release build, too.
 */
static void leave_by_exit(int result)
{
#ifdef __SANITIZE_ADDRESS__
    _exit(result);
#else
    exit(result);
#endif
}

/* leave: exit(), with all that the libraries do then, or _exit(). */
static void fork_child(dc_rt *rt, dc_function *f, float want, bool leave)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const int result = be_child(rt, f, want);
        if (leave)
            leave_by_exit(result);
        _exit(result);
    }
    CHECK(ended_well(child));
}

static void test_idle(float want)
{
    float y = -1;
    dc_function *f;
    dc_rt *rt = open_context(NULL);
    CHECK(dc_load(rt, path, &f) == DC_OK && call(f, &y) == DC_OK && y == want);
    for (int i = 0; i < 4; i++) {
        fork_child(rt, f, want, i % 2 == 0);
        CHECK(call(f, &y) == DC_OK && y == want);
    }
    dc_close(rt);
}

/* ---- while others work ----------------------------------------------------------------------- */

typedef struct busy {
    atomic_bool stop;
    atomic_int rounds;
    bool loads; /* compiles, else calls */
    float want;
    dc_rt *rt; /* that children inherit in the middle of something */
    int wrong;
} busy;

static void *work(void *arg)
{
    busy *b = arg;
    float y = -1;
    dc_function *f = NULL;
    b->wrong += dc_load(b->rt, path, &f) != DC_OK;
    while (!atomic_load(&b->stop) && b->wrong == 0) {
        if (b->loads) {
            dc_unload(f);
            b->wrong += dc_load(b->rt, path, &f) != DC_OK;
        }
        b->wrong += call(f, &y) != DC_OK || y != b->want;
        atomic_fetch_add(&b->rounds, 1);
    }
    return NULL;
}

static void wait_for_round(busy *b)
{
    const int seen = atomic_load(&b->rounds);
    while (atomic_load(&b->rounds) == seen && b->wrong == 0)
        usleep(100);
}

static void test_busy(bool loads, float want, int children)
{
    pthread_t thread;
    busy b = {.loads = loads, .want = want, .rt = open_context(NULL)};
    CHECK(pthread_create(&thread, NULL, work, &b) == 0);
    for (int i = 0; i < children; i++) {
        wait_for_round(&b);
        usleep((useconds_t)(i * 137 % 1000));
        fork_child(b.rt, NULL, want, i % 2 == 0);
    }
    atomic_store(&b.stop, true);
    pthread_join(thread, NULL);
    CHECK_EQ(b.wrong, 0);
    dc_close(b.rt);
}

/* With a cache, which a thread of the parent writes just then; the child finds there what is whole. */
static void test_cache(float want)
{
    CHECK(folder_make());
    for (int i = 0; i < 3; i++) {
        static const char *const name[] = {"a", "b", "c"}; /* each is empty at first */
        snprintf(cache, sizeof cache, "%s", folder_path(name[i]));
        test_idle(want);
    }
#ifndef __SANITIZE_ADDRESS__
    test_busy(true, want, 8);
#endif
    strcpy(cache, "off");
    CHECK(folder_remove());
}

/* ---- Lua ------------------------------------------------------------------------------------- */

static const char script[] =
    "dc = require 'deepc'\n"
    "f = dc.fn('f(x: f32[64]) -> f32[64]', function(x) return dc.exp(x) end)\n"
    "x = dc.ones 'f32[64]'\n"
    "y = f(x)\n"
    "z = dc.tanh(y)\n"
    "local data = require 'deepc.data'\n"
    "it = data.set(dc.ones 'f32[4096, 8]', dc.ones 'f32[4096]'):batches { size = 16 }\n"
    "it()\n";

static const char in_child[] =
    "for _, act in ipairs { function() return f(x) end, function() return x + 1 end,\n"
    "    function() return tostring(z) end, function() return dc.stats() end,\n"
    "    function() return f:info() end, function() x:close() return dc.zeros 'f32[2]' end } do\n"
    "  local ok, e = pcall(act)\n"
    "  assert(not ok and tostring(e):find('opened by another process', 1, true), tostring(e))\n"
    "end\n"
    "f, x, y, z, it = nil\n"
    "collectgarbage() collectgarbage()\n";

static int be_lua_child(lua_State *L, float want)
{
    alarm(SECONDS);
    if (!lua_run(L, in_child))
        return 2;
    lua_close(L);
    return compute(NULL) == want ? 0 : 3;
}

static void test_lua(float want)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    dc_rt *rt = open_context(NULL);
    CHECK(dc_attach(L, rt) == DC_OK);
    CHECK(lua_run(L, script));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        leave_by_exit(be_lua_child(L, want));
    CHECK(ended_well(child));
    CHECK(lua_run(L, "assert(tostring(f(x)) == tostring(y) and tostring(z))"));
    lua_close(L);
}

/* A state that never knew the context is not given another process's. */
static void test_attach(void)
{
    dc_rt *rt = open_context(NULL);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        lua_State *L = luaL_newstate();
        _exit(dc_attach(L, rt) == DC_E_STATE && says_other_process(rt) ? 0 : 1);
    }
    CHECK(ended_well(child));
    dc_close(rt);
}

/* A child may become the owner of what has no threads: the language server's checks. */
static void test_adopted(void)
{
    int status;
    dc_rt *rt;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    CHECK(dc_open(&cfg, &rt) == DC_OK);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool forked = dc_rt_forked(rt);
        dc_owner_adopt(&rt->owner);
        lua_State *L = luaL_newstate();
        luaL_openlibs(L);
        const bool attached = !dc_rt_forked(rt) && dc_attach(L, rt) == DC_OK;
        _exit(forked && attached &&
                      lua_run(L, "assert(require 'deepc'.ones 'f32[3]':sum():item() == 3)")
                  ? 0
                  : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(!dc_rt_forked(rt));
    dc_close(rt);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/deepc-fork-%d.dcfn", tmp != NULL ? tmp : "/tmp", (int)getpid());
    for (int i = 0; i < 64 * 32; i++)
        x[i] = (float)(i * 37 % 100) / 100;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(dc_attach(L, open_context("off")) == DC_OK);
    lua_pushstring(L, path);
    lua_setglobal(L, "PATH");
    CHECK(lua_run(L, make_file));
    lua_close(L);
    const float want = compute(NULL);
    CHECK(want > 0);
    test_idle(want);
    test_busy(false, want, 8);
#ifdef __SANITIZE_ADDRESS__
    T_SKIP("the sanitizer's allocator may be locked where another thread allocates during fork");
#else
    test_busy(true, want, 8);
#endif
    test_cache(want);
    test_lua(want);
    test_attach();
    test_adopted();
    unlink(path);
    return t_done();
}
