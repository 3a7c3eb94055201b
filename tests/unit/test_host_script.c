/*
 * A host whose memory runs out while a script trains, saves and loads: an allocation of the context, or of
 * the Lua state, fails alone or with all that follow. The script receives an error; then, with memory
 * again, the same script in the same state has the result that it has otherwise; closing the state gives
 * everything back. And one whose collector is in either mode: unreachable results do not pile up.
 */
#include "tests/t.h"

#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>

#include "tests/unit/hostmem.h"
#include "tests/unit/rng.h"

static const char script[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local data = require 'deepc.data'\n"
    "dc.seed(5)\n"
    "local net = nn.Sequential { nn.Linear(4, 8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 3) }\n"
    "local opt = optim.Adam(net:parameters(), { clip_norm = 1 })\n"
    "local step = dc.fn('step(x: f32[8, 4], y: i32[8]) -> f32[]', function(x, y)\n"
    "  local loss = nn.cross_entropy(net(x), y)\n"
    "  opt:step(loss)\n"
    "  return loss\n"
    "end)\n"
    "local set = data.set(dc.rand('f32[36, 4]', { seed = 1 }), dc.iota 'i32[36]' % 3)\n"
    "local sum = 0\n"
    "for x, y in set:batches { size = 8, shuffle = true, last = 'drop' } do\n"
    "  sum = sum + step(x, y):item()\n"
    "end\n"
    "local path = os.tmpname()\n"
    "dc.save(path, net)\n"
    "local ok, err = pcall(dc.load, path, net)\n"
    "os.remove(path)\n"
    "return sum + (ok and 0 or error(err))\n";

static bool has(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

/* Calls the chunk at the top of the stack, again and again if it is asked to: it stays there. */
static bool call(lua_State *L, double *result)
{
    lua_pushvalue(L, -1);
    if (lua_pcall(L, 0, 1, 0) != LUA_OK)
        return false;
    *result = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return true;
}

/* One state: the script while `tight`, one of the two, is short of memory, then with enough of it. */
static void visit(hostmem *host, hostmem *lua, hostmem *tight, long first, long last, double want)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    double result = 0;
    lua_State *L = lua_newstate(hostmem_give, lua);
    luaL_openlibs(L);
    CHECK(luaL_loadstring(L, script) == LUA_OK);
    cfg.alloc = hostmem_give;
    cfg.alloc_ctx = host;
    cfg.compile = "off"; /* LLVM does not survive a process without memory; this is not one */
    CHECK(dc_open(&cfg, &rt) == DC_OK && dc_attach(L, rt) == DC_OK);
    tight->n = 0;
    tight->first = first;
    tight->last = last;
    const bool ran = call(L, &result);
    hostmem_allow(tight);
    if (ran) {
        CHECK_NEAR(result, want, 0);
    } else {
        CHECK(tight->refused > 0);
        const char *text = luaL_tolstring(L, -1, NULL);
        if (!CHECK(has(text, "memory")))
            printf("allocation %ld to %ld: %s\n", first, last, text);
        lua_pop(L, 2);
        if (!CHECK(call(L, &result)))
            printf("allocation %ld to %ld, then: %s\n", first, last, luaL_tolstring(L, -1, NULL));
        CHECK_NEAR(result, want, 0);
    }
    lua_close(L);
    CHECK_EQ(host->bytes, 0);
    CHECK_EQ(lua->bytes, 0);
}

/* How many allocations of each the whole takes, and what it gives. */
static double measure(long *host_n, long *lua_n)
{
    hostmem host = {0}, lua = {0};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    double result = 0;
    lua_State *L = lua_newstate(hostmem_give, &lua);
    luaL_openlibs(L);
    CHECK(luaL_loadstring(L, script) == LUA_OK);
    cfg.alloc = hostmem_give;
    cfg.alloc_ctx = &host;
    cfg.compile = "off";
    CHECK(dc_open(&cfg, &rt) == DC_OK && dc_attach(L, rt) == DC_OK);
    host.n = lua.n = 0;
    CHECK(call(L, &result));
    *host_n = host.n;
    *lua_n = lua.n;
    lua_close(L);
    return result;
}

/* A host that calls a script, in either mode of the collector: dead results are never many. */
static void test_garbage(bool generations)
{
    static const char text[] =
        "local dc = require 'deepc'\n"
        "local f = dc.fn('f(x: f32[1048576]) -> f32[1048576]', function(x) return x * 0.5 end)\n"
        "local y = dc.ones 'f32[1048576]'\n"
        "return function() y = f(y); return dc.stats().bytes_live end\n";
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    double live = 0, most = 0;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (generations)
        lua_gc(L, LUA_GCGEN, 0, 0);
    cfg.compile = "off";
    CHECK(dc_open(&cfg, &rt) == DC_OK && dc_attach(L, rt) == DC_OK);
    CHECK(luaL_loadstring(L, text) == LUA_OK && lua_pcall(L, 0, 1, 0) == LUA_OK);
    for (int i = 0; i < 60 && CHECK(call(L, &live)); i++)
        most = live > most ? live : most;
    CHECK(live > 1 << 22 && most <= 96 << 20);
    lua_close(L);
}

int main(int argc, char **argv)
{
    enum { VISITS = 40 };
    rng r = {rng_seed(argc, argv, 1)};
    long n[2];
    test_garbage(false);
    test_garbage(true);
    const double want = measure(&n[0], &n[1]);
    CHECK(n[0] > 100 && n[1] > 100);
    for (int i = 0; i < VISITS; i++) {
        hostmem host = {0}, lua = {0};
        const int which = i % 2;
        const long first = 1 + (long)(rng_next(&r) % (uint64_t)n[which]);
        visit(&host, &lua, which == 0 ? &host : &lua, first, i % 4 < 2 ? first : 1L << 40, want);
    }
    return t_done();
}
