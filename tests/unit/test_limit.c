/*
 * The limit of memory, as a host with Lua meets it: functions that need too much are refused when they
 * are compiled, before they allocate, with their largest values and lines; tensors when they are made.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "tests/t.h"

#include "core/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>

enum { MIB = 1 << 20 };

static dc_rt *rt;

static lua_State *open_state(const char *device, size_t limit)
{
    dc_config cfg = DC_CONFIG_INIT;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    cfg.device = device;
    cfg.memory_limit = limit;
    if (!CHECK(dc_open(&cfg, &rt) == DC_OK) || !CHECK(dc_attach(L, rt) == DC_OK))
        exit(t_done());
    return L;
}

/* NULL: it ran; else the text of the error. */
static const char *run(lua_State *L, const char *code)
{
    lua_settop(L, 0);
    if (luaL_loadbuffer(L, code, strlen(code), "@big.lua") == LUA_OK &&
        lua_pcall(L, 0, 0, 0) == LUA_OK)
        return NULL;
    return luaL_tolstring(L, -1, NULL);
}

static bool has(const char *text, const char *part)
{
    const bool found = text != NULL && strstr(text, part) != NULL;
    if (!found)
        printf("'%s' is not in:\n%s\n", part, text != NULL ? text : "(no error)");
    return found;
}

static bool runs(lua_State *L, const char *code)
{
    const char *text = run(L, code);
    if (text != NULL)
        printf("%s\n", text);
    return text == NULL;
}

/* 1 MiB of argument, 4 MiB of parameter, a value of 16 MiB that has to be kept. */
static const char define[] =
    "dc = require 'deepc'\n"
    "w = dc.param('f32[1024, 1024]', 1)\n"
    "function make() f = dc.fn('f(x: f32[4096, 8]) -> f32[]', function(x)\n"
    "  local y = x:matmul(w:slice { [1] = { 1, 8 } })\n"
    "  return (y:exp():matmul(w:slice { [2] = { 1, 4 } }) + w:sum()):sum()\n"
    "end) end\n"
    "g = dc.fn('g(x: f32[4]) -> f32[4]', function(x) return x * 2 end)\n";

static void test_functions(const char *device)
{
    lua_State *L = open_state(device, 18 * MIB);
    CHECK(runs(L, define));
    CHECK(runs(L, "x = dc.ones('f32[4096, 8]'):clone(); print(x[1][1])"));
    const uint64_t before = rt->stats.bytes_live;
    const char *text = run(L, "make() f(x)");
    CHECK(has(text, "f: needs "));
    CHECK(has(text, " of memory, the limit is 18.0 MiB: "));
    CHECK(has(text, " between its operations, 4096.0 KiB in parameters and states, 128.0 KiB in "
                    "arguments, 4 bytes in results\n"));
    CHECK(has(text, "\n    16.0 MiB   f32[4096, 1024]  "));
    CHECK(has(text, "  exp, big.lua:5\n"));
    CHECK(has(text, "\n    4096.0 KiB f32[1024, 1024]  "));
    CHECK(has(text, "[DC1006; deepc explain DC1006]"));
    CHECK(rt->stats.bytes_live <= before + 1024); /* nothing of the function */
    CHECK(run(L, "make() f(x)") != NULL);         /* once more */
    CHECK(runs(L, "assert(g(dc.ones 'f32[4]')[2]:item() == 2 and w:sum():item() == 2^20)"));
    lua_close(L);

    L = open_state(device, 80 * MIB);
    CHECK(runs(L, define));
    CHECK(runs(L, "make() f(dc.zeros 'f32[4096, 8]')"));
    lua_close(L);
}

/* Tensors add up; those that nobody reaches do not count. */
static void test_tensors(const char *device)
{
    lua_State *L = open_state(device, 10 * MIB);
    CHECK(runs(L, "dc = require 'deepc'; t = {}\n"
                  "for i = 1, 8 do t[i] = dc.ones('f32[256, 1024]'):clone() end"));
    CHECK(rt->held >= 8 * MIB && rt->held <= 10 * MIB);
    const char *text = run(
        L,
        "for i = 9, 12 do\n  t[i] = dc.tensor({{1}}, 'f32[1, 1]'):expand({ 256, 1024 }):clone()\n"
        "  t[i]:sum():item()\nend");
    CHECK(has(text, "more than the "));
    CHECK(has(text, "the limit is 10.0 MiB"));
    CHECK(runs(L, "for i = 1, 50 do assert(dc.ones('f32[256, 1024]'):sum():item() == 2^18) end"));
    CHECK(runs(L, "t = nil; collectgarbage(); u = dc.ones('f32[1024, 1024]'):clone()\n"
                  "assert(u:sum():item() == 2^20)"));
    CHECK(has(run(L, "v = dc.zeros('f32[4096, 1024]'):clone(); print(v:sum())"), "DC1006"));
    lua_close(L);
}

/* The limit of the environment, as scripts have it; a host's own comes before it. */
static void test_environment(void)
{
    setenv("DEEPC_MEMORY", "3M", 1);
    lua_State *L = open_state("eval", 0);
    CHECK_EQ(rt->opt.memory, 3 * MIB);
    lua_close(L);
    L = open_state("eval", 5 * MIB);
    CHECK_EQ(rt->opt.memory, 5 * MIB);
    lua_close(L);
    setenv("DEEPC_MEMORY", "3 MB", 1);
    dc_rt *out;
    CHECK(dc_open(NULL, &out) == DC_E_VALUE);
    CHECK(
        has(dc_errmsg(out), "DEEPC_MEMORY: not a number of bytes, which may end in K, M, G or T"));
    dc_close(out);
    unsetenv("DEEPC_MEMORY");
}

/* A header of another version. */
static void test_size(void)
{
    struct {
        dc_config known;
        long later;
    } cfg = {.known = DC_CONFIG_INIT};
    dc_rt *out;
    cfg.known.size = offsetof(dc_config, memory_limit);
    cfg.known.memory_limit = 1;
    cfg.known.device = "eval";
    CHECK(dc_open(&cfg.known, &out) == DC_OK);
    CHECK(out->opt.memory == 0);
    dc_close(out);
    cfg.known.size = sizeof cfg;
    CHECK(dc_open(&cfg.known, &out) == DC_OK);
    CHECK(out->opt.memory == 1);
    dc_close(out);
    cfg.later = 1;
    CHECK(dc_open(&cfg.known, &out) == DC_E_VALUE);
    CHECK(has(dc_errmsg(out), "dc_config.size"));
    dc_close(out);
}

int main(void)
{
    test_functions("cpu");
    test_functions("eval");
    test_tensors("cpu");
    test_tensors("eval");
    test_environment();
    test_size();
    return t_done();
}
