/*
 * The limit of memory, as a host with Lua meets it: functions that need too much are refused when they
 * are compiled, before they allocate, with their largest values and lines; tensors when they are made.
 */
#define _POSIX_C_SOURCE 200809L /* setenv, mkstemp */

#include "tests/t.h"

#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <unistd.h>

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

/* Tensors add up; unreachable ones do not count. */
static void test_tensors(const char *device)
{
    lua_State *L = open_state(device, 10 * MIB);
    CHECK(runs(L, "dc = require 'deepc'; t = {}\n"
                  "for i = 1, 6 do t[i] = dc.ones('f32[256, 1024]'):clone() end"));
    CHECK(rt->held >= 6 * MIB && rt->held <= 10 * MIB);
    const char *text = run(
        L,
        "for i = 7, 12 do\n  t[i] = dc.tensor({{1}}, 'f32[1, 1]'):expand({ 256, 1024 }):clone()\n"
        "  t[i]:sum():item()\nend");
    CHECK(has(text, "more than the "));
    CHECK(has(text, "the limit is 10.0 MiB"));
    CHECK(runs(L, "t[9] = nil; t[8] = nil; collectgarbage()"));
    CHECK(runs(L, "for i = 1, 50 do assert(dc.ones('f32[256, 1024]'):sum():item() == 2^18) end"));
    CHECK(runs(L, "t = nil; collectgarbage(); u = dc.ones('f32[1024, 1024]'):clone()\n"
                  "assert(u:sum():item() == 2^20)"));
    CHECK(has(run(L, "v = dc.zeros('f32[4096, 1024]'):clone(); print(v:sum())"), "DC1006"));
    lua_close(L);
}

/* ---- metadata ---------------------------------------------------------------------------------- */

typedef struct counted {
    _Atomic size_t now, most;
} counted;

static void *count_bytes(void *ctx, void *block, size_t had, size_t want)
{
    counted *c = ctx;
    void *p = NULL;
    if (want == 0)
        free(block);
    else if ((p = realloc(block, want)) == NULL)
        return NULL;
    c->now += want - had;
    if (c->now > c->most)
        c->most = c->now;
    return p;
}

/* A file of one variant with so many nodes, each of a type of its own. */
static void write_nodes(const char *path, int nodes)
{
    dc_text t = {0};
    dc_text_puts(
        &t, "{\"__metadata__\":{\"deepc.function\":\"1\",\"name\":\"f\",\"signature\":"
            "\"f()\",\"variant.1\":\"counts: arguments 1 captured 0 cells 0 results 1 printed 0 "
            "sets 0 checks 0\\nargument: x\\nmodule:\\nfunc f(%1: f32[1]) {\\n");
    for (int i = 2; i < nodes; i++)
        dc_text_printf(&t, "%%%d = add %%%d, %%1 : f32[1]\\n", i, i - 1);
    dc_text_printf(&t, "return %%%d\\n}\\n\"}}", nodes - 1);
    FILE *f = fopen(path, "wb");
    const uint64_t n = t.n;
    CHECK(f != NULL && fwrite(&n, sizeof n, 1, f) == 1 && fwrite(t.s, 1, t.n, f) == t.n);
    if (f != NULL)
        fclose(f);
    dc_text_free(&t);
}

/* Nothing of a file that is refused takes more than the limit, not for a moment either, and nothing is left of it. */
static void test_hostile_file(void)
{
    char path[] = "/tmp/test_limit.XXXXXX";
    const int fd = mkstemp(path);
    counted c = {0};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    dc_function *f;
    cfg.device = "eval";
    cfg.memory_limit = 2 * MIB;
    cfg.alloc = count_bytes;
    cfg.alloc_ctx = &c;
    if (!CHECK(fd >= 0) || !CHECK(dc_open(&cfg, &ctx) == DC_OK))
        return;
    close(fd);
    write_nodes(path, 100);
    CHECK(dc_load(ctx, path, &f) == DC_OK);
    dc_unload(f);
    const size_t base = c.now;
    for (int times = 0; times < 2; times++) {
        c.most = 0;
        write_nodes(path, 20000);
        CHECK_EQ(dc_load(ctx, path, &f), DC_E_NOMEM);
        CHECK(f == NULL && has(dc_errmsg(ctx), "DC1006") && has(dc_errmsg(ctx), "the limit is 2"));
        CHECK(c.most > base && c.most <= base + 2 * MIB);
        CHECK(c.now <= base + 4096);
    }
    write_nodes(path, 200000); /* its header alone is more */
    CHECK_EQ(dc_load(ctx, path, &f), DC_E_NOMEM);
    CHECK(f == NULL && has(dc_errmsg(ctx), "the limit is 2") && c.now <= base + 4096);
    write_nodes(path, 100);
    CHECK(dc_load(ctx, path, &f) == DC_OK);
    dc_close(ctx);
    CHECK_EQ(c.now, 0);
    unlink(path);
}

/* The graph of a function, and expressions outside of any, beside tensors; afterwards all is as before. */
static void test_graphs(const char *device)
{
    lua_State *L = open_state(device, 6 * MIB);
    CHECK(runs(L, "dc = require 'deepc'; big = dc.ones('f32[512, 1024]'):clone()"));
    CHECK(has(run(L, "f = dc.fn('f(x: f32[1]) -> f32[1]', function(x)\n"
                     "  for i = 1, 3e5 do x = x + i end return x end)\nf(dc.ones 'f32[1]')"),
              "DC1006"));
    CHECK(rt->held + dc_heap_used(rt->heap) <= 6 * MIB);
    CHECK(runs(L, "g = dc.fn('g(x: f32[4]) -> f32[4]', function(x) return x * 2 end)\n"
                  "assert(g(dc.ones 'f32[4]')[2]:item() == 2 and big:sum():item() == 2^19)"));
    lua_close(L);
}

static size_t largest; /* that Lua was asked for at once */

static void *watch(void *ctx, void *block, size_t had, size_t want)
{
    (void)ctx;
    (void)had;
    largest = want > largest ? want : largest;
    if (want > 0)
        return realloc(block, want);
    free(block);
    return NULL;
}

/* What is kept for the next one that asks gives way, however many functions and structures there are, one after the other. */
static void test_caches(const char *device)
{
    lua_State *L = open_state(device, 12 * MIB);
    CHECK(runs(L, "local dc = require 'deepc'\n"
                  "for i = 1, 300 do\n"
                  "  local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return (x * (i + 0.25)):exp() + i end)\n"
                  "  f(dc.ones(('f32[%d]'):format(i % 7 + 3))):sum():item()\n"
                  "end"));
    CHECK(runs(L, "local dc = require 'deepc'\n"
                  "for i = 1, 600 do\n"
                  "  local x = dc.ones(('f32[%d]'):format(i + 3))\n"
                  "  for k = 1, i % 9 do x = i % (k + 2) == 0 and x:exp() or x * 2 + k end\n"
                  "  assert(x:sum():item() > 0)\n"
                  "end"));
    lua_close(L);
}

/* Values on their way from or to Lua are copied in memory of Lua's: not before the limit was asked. */
static void test_copies(const char *device)
{
    static const char *const code[] = {
        "dc.tensor({ 1, 2 }, 'bf16[4444444444]')",
        "dc.tensor(setmetatable({}, { __len = function() return 4444444444 end }), 'f32')",
        "dc.param('f32[4444444444]', 1)",
        "dc.state('f32[4444444444]', { 1 })",
        "dc.zeros('f32[4444444444]'):totable()",
        "dc.zeros('f32[4444444444]'):clone()",
        "dc.tensor({ 1 }):expand({ 4444444444 }):totable()",
    };
    lua_State *L = open_state(device, 4 * MIB);
    lua_setallocf(L, watch, NULL);
    CHECK(runs(L, "dc = require 'deepc'"));
    for (size_t i = 0; i < sizeof code / sizeof *code; i++) {
        largest = 0;
        CHECK(has(run(L, code[i]), "the limit is 4096.0 KiB"));
        if (!CHECK(largest < MIB))
            printf("%zu bytes for %s\n", largest, code[i]);
    }
    CHECK(runs(L, "assert(dc.tensor({ 1, 2 }):sum():item() == 3)"));
    CHECK(runs(L, "local t = dc.ones('f32[300000]'):totable(); assert(#t == 300000)"));
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
    test_hostile_file();
    test_graphs("cpu");
    test_graphs("eval");
    test_caches("cpu");
    test_caches("eval");
    test_copies("cpu");
    test_copies("eval");
    test_environment();
    test_size();
    return t_done();
}
