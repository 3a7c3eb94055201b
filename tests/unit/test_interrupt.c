/* dc_interrupt, called by another thread while a script runs. */
#define _POSIX_C_SOURCE 200809L
#include "tests/t.h"

#include "core/base/base.h"
#include "core/runtime/entry.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/unit/lua_run.h"

static void *interrupt_soon(void *ctx)
{
    const struct timespec wait = {.tv_nsec = 300000000};
    nanosleep(&wait, NULL);
    dc_interrupt(ctx);
    return NULL;
}

/* Runs code; a thread interrupts it. The error's text or "". */
static const char *run_interrupted(lua_State *L, dc_rt *ctx, const char *code)
{
    pthread_t thread;
    lua_settop(L, 0);
    CHECK_EQ(luaL_loadstring(L, code), LUA_OK);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, ctx), 0);
    const int status = lua_pcall(L, 0, 0, 0);
    pthread_join(thread, NULL);
    return status == LUA_OK ? "" : luaL_tolstring(L, -1, NULL);
}

static const char setup[] =
    "dc = require 'deepc'\n"
    "w = dc.param('f32[400, 400]', dc.ones 'f32[400, 400]')\n"
    "chain = dc.fn('chain() -> ()', function()\n"
    "  local x = w\n"
    "  for _ = 1, 3000 do x = x:matmul(w) * (1 / 400) end\n"
    "  w:set(x * 2)\n"
    "end)\n"
    "short = dc.fn('short(x: f32[]) -> f32[]', function(x) return x * 2 end)\n"
    "assert(short(1):item() == 2)\n";

static lua_State *open_state(const char *device, dc_rt **ctx)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = device;
    if (dc_open(&cfg, ctx) != DC_OK) {
        dc_close(*ctx);
        return NULL;
    }
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, *ctx), DC_OK);
    return L;
}

static void check_scripts(lua_State *L, dc_rt *ctx)
{
    CHECK(strstr(run_interrupted(L, ctx, "while true do end"), "interrupted") != NULL);
    CHECK(lua_run(L, "return 1"));
    CHECK(strstr(run_interrupted(L, ctx,
                                 "local f = function() while true do end end\n"
                                 "local ok, err = pcall(f)\n"
                                 "assert(not ok and err.code == 'DC0708')\n"
                                 "error 'caught'"),
                 "caught") != NULL);
    CHECK(lua_run(L, "for _ = 1, 1000 do end"));
}

/* The graph has many kernels and writes the parameter with the last one. */
static void check_call(lua_State *L, dc_rt *ctx)
{
    CHECK(lua_run(L, setup));
    CHECK(lua_run(L, "chain:info()")); /* waits until it is compiled */
    const uint64_t start = dc_clock_ns();
    const char *text = run_interrupted(L, ctx, "chain()");
    CHECK(strstr(text, "interrupted") != NULL);
    CHECK(dc_clock_ns() - start < 5000000000u);
    CHECK(lua_run(L, "assert(w[1][1]:item() == 1, 'the parameter has changed')"));
    CHECK(lua_run(L, "assert(short(3):item() == 6)"));
}

static void check_device(const char *device)
{
    dc_rt *ctx;
    lua_State *L = open_state(device, &ctx);
    if (L == NULL) {
        T_SKIP("the device cannot be opened");
        return;
    }
    check_scripts(L, ctx);
    check_call(L, ctx);
    lua_close(L);
}

/* A compilation goes on after the call that waited for it has been ended. */
static void check_compilation(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("cpu", &ctx);
    if (L == NULL) {
        T_SKIP("the device cannot be opened");
        return;
    }
    CHECK(lua_run(L, setup));
    const char *text = run_interrupted(L, ctx, "chain()"); /* at once: it may not be compiled yet */
    CHECK(strstr(text, "interrupted") != NULL);
    CHECK(lua_run(L, "assert(short(3):item() == 6)"));
    CHECK(lua_run(L, "assert(chain:info()[1].launches > 0)"));
    lua_close(L);
}

/* Without a script: what is asked for between two calls ends the next one, once. */
static void check_pending(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    CHECK(L != NULL);
    CHECK(lua_run(L, setup));
    dc_interrupt(ctx);
    CHECK(!lua_run(L, "return short(1)"));
    CHECK(lua_run(L, "assert(short(1):item() == 2)"));
    lua_close(L);
}

static int l_press(lua_State *L)
{
    dc_entry_ask(lua_touserdata(L, lua_upvalueindex(1)), DC_WHY_USER);
    return 0;
}

/* In a body: afterwards neither the hook of the interruption nor that of the trace stays. */
static void check_tracing(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    CHECK(L != NULL);
    CHECK(lua_run(L, setup));
    lua_pushlightuserdata(L, ctx);
    lua_pushcclosure(L, l_press, 1);
    lua_setglobal(L, "press");
    const int status =
        luaL_dostring(L, "dc.fn('f(x: f32[]) -> f32[]', function(x) press() return x * 2 end)");
    dc_dsl_resume(L);
    CHECK(status != LUA_OK);
    CHECK(lua_gethook(L) == NULL);
    lua_settop(L, 0);
    CHECK(lua_run(L, "assert(short(1):item() == 2)"));
    lua_close(L);
}

/* Between the call of dc.fn and the trace, where no hook runs. */
static int l_press_and_trace(lua_State *L)
{
    dc_entry_ask(lua_touserdata(L, lua_upvalueindex(1)), 0);
    lua_call(L, 2, 0);
    return 0;
}

static void check_before_tracing(void)
{
    dc_rt *ctx;
    lua_State *L = open_state("eval", &ctx);
    CHECK(L != NULL);
    CHECK(lua_run(L, setup));
    lua_getglobal(L, "dc");
    lua_getfield(L, -1, "fn");
    lua_pushstring(L, "f(x: f32[]) -> f32[]");
    CHECK_EQ(luaL_dostring(L, "return function(x) return x * 2 end"), LUA_OK);
    lua_pushlightuserdata(L, ctx);
    lua_pushcclosure(L, l_press_and_trace, 1);
    lua_insert(L, -4);
    CHECK(lua_pcall(L, 3, 0, 0) != LUA_OK);
    CHECK(lua_gethook(L) == NULL);
    lua_settop(L, 0);
    CHECK(lua_run(L, "assert(short(1):item() == 2)"));
    lua_close(L);
}

int main(void)
{
    check_pending();
    check_tracing();
    check_before_tracing();
    check_device("eval");
    check_device("cpu");
    check_compilation();
    return t_done();
}
