/*
 * dc_stop and deadlines: scripts that do what they can to go on, each ended by dc_pcall's deadline, by dc_stop in
 * dc_pcall, and by dc_stop in plain lua_pcall. After each the context is used.
 */
#define _POSIX_C_SOURCE 200809L
#include "core/runtime/entry.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/lua_run.h"

static const char setup[] =
    "dc = require 'deepc'\n"
    "spin = function() while true do end end\n"
    "before = coroutine.create(function() while true do pcall(spin) end end)\n"
    "double = dc.fn('double(x: f32[]) -> f32[]', function(x) return x * 2 end)\n"
    "assert(double(1):item() == 2)\n";

static const char *const stubborn[] = {
    "while true do end",
    "while true do pcall(spin) end",
    "while true do local ok, err = pcall(spin) local t = { err, ok } end",
    "while true do xpcall(spin, spin) end",
    "while true do xpcall(spin, function() while true do pcall(spin) end end) end",
    "while true do xpcall(error, spin) end",
    "coroutine.wrap(spin)()",
    "while true do pcall(coroutine.wrap(spin)) end",
    "while true do coroutine.resume(coroutine.create(spin)) end",
    "coroutine.resume(before)",
    "while true do coroutine.wrap(function() coroutine.wrap(function() pcall(spin) end)() end)() "
    "end",
    "local function deep(n) if n == 0 then spin() end pcall(coroutine.wrap(function() deep(n - 1) "
    "end)) spin() end\n"
    "deep(50)",
    "local co = coroutine.wrap(function() while true do pcall(coroutine.yield) end end)\n"
    "while true do co() end",
    "local loop = setmetatable({}, { __close = spin })\n"
    "while true do pcall(function() local a <close> = loop error 'x' end) end",
    "local loop = setmetatable({}, { __close = function() while true do pcall(spin) end end })\n"
    "local co = coroutine.create(function() local a <close> = loop coroutine.yield() end)\n"
    "coroutine.resume(co) coroutine.close(co) spin()",
    "local co = coroutine.wrap(function() local a <close> = setmetatable({}, { __close = spin }) "
    "error 'x' end)\n"
    "pcall(co) spin()",
    "coroutine.wrap(function() local a <close> = setmetatable({}, { __close = spin }) spin() "
    "end)()",
    "local w = coroutine.wrap(function() local a <close> = setmetatable({}, { __close = spin }) "
    "coroutine.yield() spin() end)\n"
    "w() pcall(w) spin()",
    "pcall(dc.fn, 'f(x: f32[]) -> f32[]', function(x) error { coroutine.create(spin) } end)\n"
    "local _, made = pcall(dc.fn, 'f(x: f32[]) -> f32[]', function(x) error { "
    "coroutine.create(spin) } end)\n"
    "coroutine.resume(made[1])",
    "xpcall(dc.fn, spin, 'f(x: f32[]) -> f32[]', function(x) math.random() end)",
    "dc.fn('f(x: f32[]) -> f32[]', function(x) dc.fn('g(y: f32[]) -> f32[]', function(y) spin() "
    "end) "
    "end)",
    "table.sort({ 3, 2, 1, 5, 6, 7 }, function() while true do pcall(spin) end end)",
    "local s = ('x'):rep(1000) while true do s:gsub('x', pcall) end",
    "local s = ('x'):rep(1000) s:gsub('x', function() while true do pcall(spin) end end)",
    "while true do load(function() while true do pcall(spin) end end) end",
    "while true do load(function() spin() end) end",
    "local function f() error(setmetatable({}, { __tostring = spin })) end while true do pcall(f) "
    "end",
    "local function f() f() end while true do xpcall(f, f) end",
    "local function f() local ok = pcall(f) f() end f()",
    "local t = setmetatable({}, { __index = function(t, k) while true do pcall(spin) end end }) "
    "return t.x",
    "local t = setmetatable({}, { __lt = spin }) return t < t",
    "for _ in spin do end",
    "while true do pcall(double, 'nonsense') end",
    "while true do pcall(double, 1) end",
    "while true do pcall(dc.fn, 'f(x: f32[]) -> f32[]', function(x) spin() end) end",
    "while true do pcall(dc.fn, 'f(x: f32[]) -> f32[]', function(x) pcall(spin) pcall(spin) return "
    "x end) end",
    "local x = dc.ones 'f32[100]' while true do pcall(function() x = (x * 1.5):sin() return "
    "x:sum():item() end) end",
    "local c = dc.custom_grad(function(x) while true do pcall(spin) end end, spin)\n"
    "while true do pcall(dc.fn, 'f(x: f32[]) -> f32[]', function(x) return c(x) end) end",
    "while true do pcall(error, nil) end",
    "local f f = function(...) return pcall(f, ...) end while true do f(spin) end",
    "goto a ::a:: goto a",
    "repeat until false",
    "for i = 1, math.huge do pcall(spin) end",
};

typedef struct stopper {
    dc_rt *ctx;
    long after_ns;
} stopper;

static void *stop_soon(void *arg)
{
    const stopper *s = arg;
    const struct timespec wait = {.tv_nsec = s->after_ns};
    nanosleep(&wait, NULL);
    dc_stop(s->ctx);
    return NULL;
}

static lua_State *open_state(const char *device, dc_rt **ctx)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = device;
    CHECK_EQ(dc_open(&cfg, ctx), DC_OK);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, *ctx), DC_OK);
    CHECK(lua_run(L, setup));
    return L;
}

static const char *text_of(lua_State *L)
{
    return luaL_tolstring(L, -1, NULL);
}

/* Of code that was ended: what stays is a context that works. */
static void check_usable(lua_State *L, dc_rt *ctx, const char *code)
{
    lua_settop(L, 0);
    CHECK(!atomic_load(&ctx->interrupt));
    CHECK(!atomic_load(&ctx->insist));
    CHECK(ctx->entry == NULL);
    CHECK(lua_gethook(L) == NULL);
    if (!lua_run(L, "for _ = 1, 20000 do end assert(double(4):item() == 8) "
                    "assert(coroutine.wrap(function(a) return a end)(3) == 3)"))
        printf("after: %s\n", code);
    CHECK(lua_run(L, setup));
    lua_settop(L, 0);
}

static void end_by_deadline(lua_State *L, dc_rt *ctx, const char *code)
{
    const uint64_t start = dc_clock_ns();
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    CHECK_EQ(dc_pcall(L, 0, 0, 0, 15), DC_E_STOPPED);
    CHECK(strstr(text_of(L), "ran longer than 15 ms") != NULL);
    CHECK(dc_clock_ns() - start < 3000000000u);
    check_usable(L, ctx, code);
}

static void end_by_stop(lua_State *L, dc_rt *ctx, const char *code, bool plain)
{
    pthread_t thread;
    stopper s = {ctx, 15000000};
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    CHECK_EQ(pthread_create(&thread, NULL, stop_soon, &s), 0);
    const int status = plain ? lua_pcall(L, 0, 0, 0) : dc_pcall(L, 0, 0, 0, 0);
    pthread_join(thread, NULL);
    if (plain)
        CHECK(status != LUA_OK);
    else
        CHECK_EQ(status, DC_E_STOPPED);
    if (plain) {
        CHECK(luaL_dostring(L, "for _ = 1, 10 do end") != LUA_OK); /* still asked for */
        dc_resume(ctx);
        CHECK_EQ(luaL_dostring(L, "for _ = 1, 10 do end"), LUA_OK); /* takes the hook away */
    }
    CHECK(strstr(text_of(L), "stopped by the host") != NULL);
    check_usable(L, ctx, code);
}

static void check_stubborn(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    for (size_t i = 0; i < sizeof stubborn / sizeof *stubborn; i++) {
        if (getenv("STOP_VERBOSE"))
            printf("%s\n", stubborn[i]), fflush(stdout);
        end_by_deadline(L, ctx, stubborn[i]);
        end_by_stop(L, ctx, stubborn[i], false);
        end_by_stop(L, ctx, stubborn[i], true);
    }
    lua_close(L);
}

/* A coroutine that was ended, and is closed later, when nothing is to end any more. */
static void check_closed_later(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    CHECK_EQ(luaL_loadstring(L, "co = coroutine.create(function()\n"
                                "  local a <close> = setmetatable({}, { __close = spin }) spin()\n"
                                "end)\n"
                                "coroutine.resume(co)"),
             LUA_OK);
    CHECK_EQ(dc_pcall(L, 0, 0, 0, 15), DC_E_STOPPED);
    check_usable(L, ctx, "closed later");
    CHECK_EQ(luaL_loadstring(L, "assert(coroutine.status(co) == 'dead')\n"
                                "local ok, err = coroutine.close(co)\n"
                                "assert(not ok and err.code == 'DC0708')"),
             LUA_OK);
    CHECK_EQ(dc_pcall(L, 0, 0, 0, 5000), LUA_OK);
    lua_close(L);
}

/* Of an error that a hook raises handlers see what they see of others, once. */
static void check_handlers(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    CHECK(lua_run(L, "local function draws(x) math.random() return x end\n"
                     "local function try(handler)\n"
                     "  return xpcall(dc.fn, handler, 'f(x: f32[]) -> f32[]', draws)\n"
                     "end\n"
                     "local n = 0\n"
                     "local ok, text, more = try(function(e) n = n + 1 return e.code, 2 end)\n"
                     "assert(not ok and text == 'DC0612' and more == nil and n == 1, text)\n"
                     "ok, text = try(function() end)\n"
                     "assert(not ok and text == nil)\n"
                     "ok, text = try(function() coroutine.yield() end)\n"
                     "assert(not ok and text:find 'attempt to yield', text)\n"
                     "ok, text = try(function() error('again', 0) end)\n"
                     "assert(not ok and text == 'again', text)"));
    lua_close(L);
}

/* dc_pcall of the function at 1 with the deadline at 2; gives its status and how long it took. */
static int l_enter(lua_State *L)
{
    const uint64_t start = dc_clock_ns();
    const lua_Integer ms = lua_tointeger(L, 2);
    lua_settop(L, 1);
    const int status = dc_pcall(L, 0, 0, 0, ms);
    lua_pushinteger(L, status);
    lua_pushnumber(L, (double)(dc_clock_ns() - start) * 1e-6);
    return 2;
}

static int run_in(lua_State *L, const char *code, int64_t ms)
{
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    return dc_pcall(L, 0, 0, 0, ms);
}

/* None lasts longer than the one round it; each ends by its own. */
static void check_nested(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    lua_register(L, "enter", l_enter);
    CHECK_EQ(run_in(L, "local s, ms = enter(spin, 5) assert(s == 9 and ms < 1000) pcall(spin)", 40),
             DC_E_STOPPED);
    CHECK(strstr(text_of(L), "ran longer than 40 ms") != NULL);
    check_usable(L, ctx, "inside first");
    CHECK_EQ(run_in(L, "enter(spin, 100000) spin()", 10), DC_E_STOPPED);
    CHECK(strstr(text_of(L), "ran longer than 10 ms") != NULL);
    check_usable(L, ctx, "outside first");
    CHECK_EQ(run_in(L, "for _ = 1, 3 do assert(enter(spin, 3) == 9) end", 1000), LUA_OK);
    CHECK_EQ(run_in(L, "for _ = 1, 3 do assert(enter(spin, 3) == 9) end", 0), LUA_OK);
    CHECK_EQ(run_in(L, "coroutine.wrap(function() assert(enter(spin, 3) == 9) spin() end)()", 20),
             DC_E_STOPPED);
    check_usable(L, ctx, "in a coroutine");
    dc_stop(ctx); /* ends all of them */
    CHECK_EQ(run_in(L, "enter(function() enter(spin, 0) spin() end, 0) spin()", 0), DC_E_STOPPED);
    check_usable(L, ctx, "all");
    CHECK_EQ(run_in(L, "error 'own'", 1000), LUA_ERRRUN);
    CHECK(strstr(text_of(L), "own") != NULL);
    check_usable(L, ctx, "own error");
    lua_close(L);
}

/* Short deadlines one after the other: none ends an entry that is not its own. */
static void check_storm(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    int ended = 0, whole = 0;
    for (int i = 0; i < 3000; i++) {
        const bool endless = i % 16 == 0;
        const int status = run_in(L, endless ? "spin()" : "double(1)", endless ? 1 : 1000);
        ended += endless && status == DC_E_STOPPED;
        whole += !endless && status == LUA_OK;
        lua_settop(L, 0);
    }
    CHECK_EQ(ended + whole, 3000);
    check_usable(L, ctx, "storm");
    lua_close(L);
}

static void check_unattached(void)
{
    lua_State *L = luaL_newstate();
    CHECK_EQ(luaL_loadstring(L, "return ..."), LUA_OK);
    lua_pushinteger(L, 1);
    CHECK_EQ(dc_pcall(L, 1, 1, 0, 5), LUA_ERRRUN);
    CHECK_EQ(lua_gettop(L), 1);
    CHECK(strstr(lua_tostring(L, -1), "not attached") != NULL);
    lua_close(L);
}

/* ---- work of compiled functions and the interpreter -------------------------------------------- */

/* Each takes seconds to hours; one launch, one work item, many launches, the interpreter, lazy code. */
static const char *const kernels[] = {
    "long(1.5)",
    "one(3)",
    "while true do pcall(long, 1.5) end",
    "local w = dc.ones 'f32[1500, 1500]' for _ = 1, 1e9 do w = w:matmul(w) * 0.001 local y = "
    "w:sum():item() end",
    "local x = dc.iota 'f32[2000000]' while true do pcall(function() x = (x * 1.1):sin() "
    "x:sum():item() end) end",
    "local job = long:start(1.5) while not job:poll { ms = 1e6 } do end",
    "steady() spin()",
};

static const char kernel_setup[] =
    "long = dc.fn('long(k: f32[]) -> f32[]', function(k)\n"
    "  return (dc.iota 'f32[2000000000000]' * k):sin():sum() end)\n"
    "one = dc.fn('one(k: i32[]) -> i32[]', function(k)\n"
    "  return ((dc.iota 'i32[2000000000]' * k) % 1000003):max() end)\n"
    "w = dc.param('f32[300, 300]', dc.ones 'f32[300, 300]')\n"
    "steady = dc.fn('steady() -> ()', function() w:set(w:matmul(w) * (1 / 300)) end)\n";

enum { LATE_MS = 1500 };

/* Milliseconds from the deadline to the end. */
static double end_late(lua_State *L, dc_rt *ctx, const char *code, int64_t ms)
{
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    const uint64_t start = dc_clock_ns();
    CHECK_EQ(dc_pcall(L, 0, 0, 0, ms), DC_E_STOPPED);
    const double late = (double)(dc_clock_ns() - start) * 1e-6 - (double)ms;
    CHECK(strstr(text_of(L), "ran longer than") != NULL);
    check_usable(L, ctx, code);
    return late;
}

/* The worst of several deadlines. One that a busy machine made late is tried again: what is late by itself stays so. */
static double worst_late(lua_State *L, dc_rt *ctx, const char *code)
{
    double worst = 0;
    for (int64_t ms = 30; ms < 60; ms += 7) {
        double late = end_late(L, ctx, code, ms);
        for (int again = 0; late >= LATE_MS && again < 3; again++)
            late = end_late(L, ctx, code, ms);
        worst = late > worst ? late : worst;
    }
    return worst;
}

static void check_kernels(const char *device)
{
    dc_rt *ctx;
    lua_State *L = open_state(device, &ctx);
    const bool eval = strcmp(device, "eval") == 0;
    CHECK(lua_run(L, kernel_setup));
    if (!eval)
        CHECK(lua_run(L, "long:info() one:info() steady()")); /* waits until they are compiled */
    for (size_t i = eval ? 3 : 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (eval && strstr(kernels[i], "long") != NULL)
            continue;
        const double late = worst_late(L, ctx, kernels[i]);
        CHECK(lua_run(L, "assert(w[1][1]:item() == 1)"));
        if (getenv("STOP_VERBOSE"))
            printf("%s: %.1f ms: %s\n", device, late, kernels[i]);
        CHECK(late < LATE_MS);
    }
    lua_close(L);
}

/* ---- files, copies, tables ---------------------------------------------------------------------- */

static const char data_setup[] =
    "big = dc.iota 'i32[6000000]' % 1000\n"
    "list = big:totable()\n"
    "rows = {} for i = 1, 2000 do rows[i] = table.move(list, i, i + 999, 1, {}) end\n"
    "net, twin = dc.state('i32[6000000]', big), dc.state('i32[6000000]', big)\n"
    "dc.save(path, { net = net })\n"
    "whole = function(x) return #x == 6000000 and x[1]:item() == 0 and x[6000000]:item() "
    "== 999 end\n";

/* Each goes on without end, in one function of the library after the other. */
static const char *const moves[] = {
    "while true do pcall(dc.save, path, { net = net }) end",
    "while true do pcall(dc.load, path) end",
    "while true do pcall(dc.load, path, { net = net }) end",
    "while true do pcall(net.set, net, big) end",
    "while true do pcall(net.set, net, twin) end",
    "while true do pcall(net.set, net, 3) end",
    "while true do pcall(big.clone, big) end",
    "while true do pcall(big.totable, big) end",
    "while true do pcall(dc.tensor, list, 'i32') end",
    "while true do pcall(dc.tensor, rows, 'i32') end",
    "while true do pcall(dc.zeros, 'i32[20000000]') end",
    "while true do pcall(function() return big:reshape '[1000, 6000]':transpose():totable() end) "
    "end",
};

/* A parameter that was being written is whole or refused, and can be set; the file is whole; nothing is beside it. */
static const char data_check[] = "assert(whole(big) and whole(twin) and whole(dc.load(path).net))\n"
                                 "local ok, err = pcall(whole, net)\n"
                                 "assert(ok or err.message:find 'half of a value', err)\n"
                                 "net:set(big) assert(whole(net))";

static void check_data(const char *device)
{
    dc_rt *ctx;
    lua_State *L = open_state(device, &ctx);
    CHECK(folder_make());
    lua_pushstring(L, folder_path("file"));
    lua_setglobal(L, "path");
    CHECK(lua_run(L, data_setup));
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        const double late = worst_late(L, ctx, moves[i]);
        if (getenv("STOP_VERBOSE"))
            printf("%s: %.1f ms: %s\n", device, late, moves[i]);
        CHECK(late < LATE_MS);
        CHECK_EQ(folder_entries(""), 1);
        if (!CHECK(lua_run(L, data_check)))
            printf("%s: after: %s\n", device, moves[i]);
    }
    lua_close(L);
    CHECK(folder_remove());
}

/* An update that takes long: what it was writing is half written, and good again when it is set. */
static void check_torn(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("cpu", &ctx);
    CHECK(lua_run(L, "w = dc.param('f32[64]', dc.zeros 'f32[64]')\n"
                     "f = dc.fn('f(k: f32[]) -> ()', function(k)\n"
                     "  w:set(w + (dc.iota 'f32[2000000000000]' * k):sin():sum()) end) f:info()"));
    CHECK_EQ(run_in(L, "f(1.5)", 30), DC_E_STOPPED);
    check_usable(L, ctx, "torn");
    CHECK(lua_run(L, "local ok, err = pcall(function() return w[1]:item() end)\n"
                     "assert(ok or err.message:find 'half of a value')\n"
                     "w:set(dc.ones 'f32[64]') assert(w[1]:item() == 1)"));
    lua_close(L);
}

int main(void)
{
    check_torn();
    check_data("eval");
    check_data("cpu");
    check_kernels("eval");
    check_kernels("cpu");
    check_kernels("cpu:cc");
    check_unattached();
    check_nested();
    check_storm();
    check_stubborn();
    check_closed_later();
    check_handlers();
    return t_done();
}
