/*
 * Memory of the device that is a host's (deepc.h): tensors over it and when it is released, addresses of tensors, calls that
 * read and write it where it is, and what is refused.
 */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include "core/runtime/rt.h"
#include "core/runtime/storage.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

enum { N = 40 };

typedef struct memory {
    float *at;
    int released;
} memory;

static void release(void *ctx)
{
    memory *m = ctx;
    m->released++;
    memset(m->at, 0xff, N * sizeof *m->at); /* a later read would show */
}

static memory new_memory(float first)
{
    memory m = {.at = aligned_alloc(64, dc_align_up(N * sizeof *m.at + 64, 64))};
    for (int i = 0; i < N; i++)
        m.at[i] = first + (float)i;
    return m;
}

static dc_array array_of(const memory *m)
{
    return (dc_array){DC_F32, 2, {4, 10}, m->at, N * sizeof *m->at};
}

static lua_State *open_state(const char *device, dc_rt **ctx)
{
    dc_config cfg = DC_CONFIG_INIT;
    lua_State *L = luaL_newstate();
    cfg.device = device;
    luaL_openlibs(L);
    CHECK_EQ(dc_open(&cfg, ctx), DC_OK);
    CHECK_EQ(dc_attach(L, *ctx), DC_OK);
    CHECK(lua_run(L, "dc = require 'deepc'"));
    return L;
}

static void collect(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);
}

/* ---- tensors over it ------------------------------------------------------------------------- */

static void give(lua_State *L, memory *m, const char *name)
{
    const dc_array a = array_of(m);
    const int top = lua_gettop(L);
    CHECK_EQ(dc_push_array(L, &a, release, m), DC_OK);
    CHECK_EQ(lua_gettop(L), top + 1);
    lua_setglobal(L, name);
}

static void test_tensors(const char *device)
{
    dc_rt *ctx;
    lua_State *L = open_state(device, &ctx);
    memory m = new_memory(1), other = new_memory(100), last = new_memory(7);
    const uint64_t live = ctx->stats.bytes_live, held = ctx->held;
    give(L, &m, "x");
    CHECK_EQ(ctx->stats.bytes_live, live);
    CHECK_EQ(ctx->held, held);
    CHECK(lua_run(L, "assert(tostring(x):find 'f32%[4, 10%]')\n"
                     "assert(x:sum():item() == 820 and x[2][1]:item() == 11)\n"
                     "f = dc.fn('f(x: f32[n, 10]) -> f32[n, 10]', function(x) return x * 2 end)\n"
                     "assert(f(x):sum():item() == 1640)\n"
                     "view = x[3]\n"
                     "lazy = x + 1\n"
                     "w = dc.param(x)\n"
                     "x = nil\n"));
    collect(L);
    CHECK_EQ(m.released, 0); /* the view shows it, the expression reads it */
    CHECK(lua_run(L, "assert(view:sum():item() == 255 and lazy:sum():item() == 860)\n"
                     "view, lazy = nil, nil\n"));
    collect(L);
    CHECK_EQ(m.released, 1);
    CHECK(lua_run(L, "assert(w:sum():item() == 820)\n")); /* a parameter has memory of its own */
    give(L, &other, "y");
    CHECK(lua_run(L, "w:set(y) y:close() w:set(w * 2) assert(w:sum():item() == 9560)\n"));
    CHECK_EQ(other.released, 1);
    give(L, &last, "z");
    CHECK(lua_run(L, "job = f:start(z) z = nil\n"));
    collect(L);
    CHECK_EQ(last.released, 0);
    CHECK(lua_run(
        L,
        "while not job:poll { ms = 10 } do end assert(job:result():sum():item() == 2 * 1060)\n"));
    lua_close(L);
    CHECK_EQ(last.released, 1);
    CHECK(m.released == 1 && other.released == 1);
    free(m.at);
    free(other.at);
    free(last.at);
}

/* ---- addresses of tensors -------------------------------------------------------------------- */

static void test_addresses(const char *device)
{
    dc_rt *ctx;
    lua_State *L = open_state(device, &ctx);
    memory m = new_memory(1);
    dc_array a = {.data = NULL};
    give(L, &m, "x");
    CHECK(lua_run(L, "function same() return x end\n"));
    lua_getglobal(L, "x");
    CHECK_EQ(dc_to_array(L, -1, &a), DC_OK);
    CHECK(a.data == m.at && a.dtype == DC_F32 && a.rank == 2 && a.dim[0] == 4 && a.dim[1] == 10);
    CHECK_EQ(a.bytes, sizeof(float) * N);
    CHECK(luaL_dostring(L, "lazy = x * 2 + 1 return lazy") == LUA_OK);
    CHECK_EQ(dc_to_array(L, -1, &a), DC_OK); /* computed for it */
    CHECK_EQ(dc_wait(ctx), DC_OK);
    const float *v = a.data;
    CHECK(v[0] == 3 && v[N - 1] == 81);
    CHECK(luaL_dostring(L, "w = dc.param('f32[4]', 3) before = w:detach() return before") ==
              LUA_OK ||
          luaL_dostring(L, "w = dc.param('f32[4]', 3) before = w * 1 return before") == LUA_OK);
    CHECK_EQ(dc_to_array(L, -1, &a), DC_OK);
    CHECK(lua_run(L, "w:set(w * 5)\n"));
    v = a.data;
    CHECK(v[0] == 3 && v[3] == 3);
    lua_close(L);
    CHECK_EQ(m.released, 1);
    free(m.at);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused(lua_State *L, dc_rt *ctx, const dc_array *a, memory *m, const char *part)
{
    const int top = lua_gettop(L);
    CHECK_EQ(dc_push_array(L, a, release, m), DC_E_VALUE);
    if (!CHECK(strstr(dc_errmsg(ctx), part) != NULL))
        printf("said: %s\n", dc_errmsg(ctx));
    CHECK_EQ(lua_gettop(L), top);
    CHECK_EQ(m->released, 0);
}

static void test_refusals(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("cpu", &ctx), *bare = luaL_newstate();
    memory m = new_memory(1);
    const dc_array good = array_of(&m);
    dc_array a = good, out;
    a.data = m.at + 1;
    refused(L, ctx, &a, &m, "a multiple of 64 is needed");
    a = good;
    a.bytes--;
    refused(L, ctx, &a, &m, "160 bytes are needed, there are 159");
    a = good;
    a.data = NULL;
    refused(L, ctx, &a, &m, "there are 0");
    a = good;
    a.dim[0] = -1;
    refused(L, ctx, &a, &m, "no type of a tensor");
    a.dim[0] = INT64_MAX;
    refused(L, ctx, &a, &m, "no type of a tensor");
    a = good;
    a.rank = 9;
    refused(L, ctx, &a, &m, "no type of a tensor");
    a = good;
    a.dtype = (dc_dtype)99;
    refused(L, ctx, &a, &m, "no type of a tensor");
    refused(L, ctx, NULL, &m, "an array is needed");
    CHECK_EQ(dc_push_array(bare, &good, release, &m), DC_E_STATE);
    CHECK_EQ(dc_push_array(NULL, &good, release, &m), DC_E_STATE);
    CHECK_EQ(dc_to_array(NULL, 1, &out), DC_E_STATE);
    CHECK_EQ(dc_to_array(bare, 1, &out), DC_E_STATE);
    CHECK_EQ(dc_wait(NULL), DC_E_STATE);

    lua_pushinteger(L, 3);
    CHECK_EQ(dc_to_array(L, -1, &out), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(ctx), "a tensor is needed") != NULL);
    CHECK(luaL_dostring(L, "return dc.param('f32[4]', 3)") == LUA_OK);
    CHECK_EQ(dc_to_array(L, -1, &out), DC_E_VALUE);
    CHECK(luaL_dostring(L, "local t = dc.ones 'f32[4]' t:close() return t") == LUA_OK);
    CHECK_EQ(dc_to_array(L, -1, &out), DC_E_VALUE);
    CHECK_EQ(dc_to_array(L, -1, NULL), DC_E_VALUE);
    CHECK_EQ(dc_push_array(L, &good, NULL, NULL), DC_OK); /* nothing is called */
    lua_close(L);
    lua_close(bare);
    CHECK_EQ(m.released, 0);

    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "cpu";
    cfg.stream = &cfg;
    CHECK_EQ(dc_open(&cfg, &ctx), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(ctx), "stream") != NULL);
    dc_close(ctx);
    free(m.at);
}

/* A device whose addresses nobody else knows. */
static void test_far(void)
{
    static dc_device_ops far;
    dc_rt *ctx;
    lua_State *L = open_state("cpu", &ctx);
    memory m = new_memory(1);
    const dc_array a = array_of(&m);
    dc_array out;
    far = *ctx->device->ops;
    far.host = false;
    ctx->device->ops = &far;
    refused(L, ctx, &a, &m, "addresses of 'cpu' are its own");
    CHECK(luaL_dostring(L, "return dc.ones 'f32[4]'") == LUA_OK);
    CHECK_EQ(dc_to_array(L, -1, &out), DC_E_VALUE);
    far.shares = true;
    CHECK_EQ(dc_to_array(L, -1, &out), DC_OK);
    give(L, &m, "x");
    CHECK(lua_run(L, "assert(x:sum():item() == 820)\n"));
    lua_close(L);
    CHECK_EQ(m.released, 1);
    free(m.at);
}

/* ---- calls without Lua ----------------------------------------------------------------------- */

/* step(x, lr) -> what w was, the sum of x; w is x * lr + w */
static void export_step(const char *path)
{
    dc_rt *ctx;
    lua_State *L = open_state("cpu", &ctx);
    lua_pushstring(L, path);
    lua_setglobal(L, "path");
    CHECK(lua_run(L, "w = dc.state('f32[16]', 0)\n"
                     "step = dc.fn('step(x: f32[n], lr: f32[]) -> f32[n], f32[]', function(x, lr)\n"
                     "  local old = w * 1\n"
                     "  w:set(w + x * lr)\n"
                     "  return old + x, x:sum()\n"
                     "end)\n"
                     "step:export(path, { n = 16 })\n"));
    lua_close(L);
}

static void test_calls(const char *device, const char *path)
{
    enum { M = 16 };
    _Alignas(64) float x[M], lr = 2, got[M + 1];
    dc_rt *ctx;
    dc_function *fn;
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = device;
    if (!CHECK_EQ(dc_open(&cfg, &ctx), DC_OK) || !CHECK_EQ(dc_load(ctx, path, &fn), DC_OK)) {
        printf("said: %s\n", dc_errmsg(ctx));
        return;
    }
    for (int i = 0; i < M; i++)
        x[i] = (float)i;
    dc_array in[2] = {{DC_F32, 1, {M}, x, sizeof x}, {DC_F32, 0, {0}, &lr, sizeof lr}},
             out[2] = {{0}};
    CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_OK);
    CHECK_EQ(dc_wait(ctx), DC_OK);
    const float *y = out[0].data;
    CHECK(y[3] == 3 && *(const float *)out[1].data == 120);

    /* a result is an argument of the next call, whose result is not written over it */
    in[0] = out[0];
    dc_array next[2] = {{.data = got + 1, .bytes = sizeof x}, {.data = NULL}};
    uint64_t allocs = 0;
    float w = lr * 3; /* of the state, its fourth element */
    for (int k = 0; k < 4; k++) {
        const float *before = in[0].data;
        const float third = before[3];
        out[0] = out[1] = (dc_array){.data = NULL};
        CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_OK);
        CHECK_EQ(dc_wait(ctx), DC_OK);
        CHECK(out[0].data != in[0].data);
        y = out[0].data;
        CHECK(y[3] == third + w);
        w += lr * third;
        in[0] = out[0];
        if (k == 1)
            allocs = ctx->stats.allocs;
    }
    CHECK_EQ(ctx->stats.allocs, allocs); /* two memories in turn */
    const float third = y[3];
    CHECK_EQ(dc_call_device(fn, in, 2, next, 2), DC_OK);
    CHECK_EQ(dc_wait(ctx), DC_OK);
    CHECK(next[0].data == got + 1 && got[4] > third); /* at any address */

    in[0] = (dc_array){DC_F32, 1, {M}, x, sizeof x};
    in[1].data = got + 1;
    CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(ctx), "argument 'lr' begins at") != NULL);
    in[1].data = &lr;
    in[0].bytes--;
    CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_E_VALUE);
    in[0].bytes++;
    in[0].dim[0] = 15;
    CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_E_TYPE);
    in[0].dim[0] = M;
    CHECK_EQ(dc_call_device(fn, in, 2, out, 1), DC_E_VALUE);
    CHECK_EQ(dc_call_device(NULL, in, 2, out, 2), DC_E_STATE);
    CHECK(x[3] == 3);
    dc_unload(fn);
    dc_close(ctx);
}

static void test_calls_far(const char *path)
{
    static dc_device_ops far;
    _Alignas(64) float x[16] = {1}, lr = 1;
    dc_rt *ctx;
    dc_function *fn;
    dc_array in[2] = {{DC_F32, 1, {16}, x, sizeof x}, {DC_F32, 0, {0}, &lr, sizeof lr}},
             out[2] = {{0}};
    CHECK_EQ(dc_open(NULL, &ctx), DC_OK);
    CHECK_EQ(dc_load(ctx, path, &fn), DC_OK);
    far = *ctx->device->ops;
    far.host = false;
    ctx->device->ops = &far;
    CHECK_EQ(dc_call_device(fn, in, 2, out, 2), DC_E_VALUE);
    CHECK(strstr(dc_errmsg(ctx), "dc_call takes memory of the host") != NULL);
    CHECK_EQ(dc_call(fn, in, 2, out, 2), DC_OK);
    dc_close(ctx);
}

int main(void)
{
    static const char *const devices[] = {"cpu", "eval", "sim:cuda"};
    char path[] = "/tmp/deepc-memory-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    export_step(path);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        test_tensors(devices[i]);
        test_addresses(devices[i]);
        test_calls(devices[i], path);
    }
    test_calls_far(path);
    test_far();
    test_refusals();
    unlink(path);
    return t_done();
}
