/*
 * Interrupt storms: dc_interrupt and dc_stop again and again, at random moments, while scripts recurse deeply, collect
 * garbage, make coroutines, trace functions and catch errors. From another thread into dc_pcall; from a signal
 * handler of the same thread into plain lua_pcall.
 *
 *     storm [SECONDS [SEED]]      for each of the two
 */
#define _POSIX_C_SOURCE 200809L
#include "core/base/base.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

static const char setup[] =
    "dc = require 'deepc'\n"
    "function deep(k) if k == 0 then return 0 end return 1 + deep(k - 1) end\n"
    "function spin() while true do end end\n"
    "f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x + 1 end)\n"
    "w = dc.state(dc.zeros 'f32[8]')\n"
    "count = dc.fn('count() -> ()', function() w:set(w + 1) end)\n"
    "f(dc.ones 'f32[4]') count()\n";

static const char *const scripts[] = {
    "pcall(deep, 150000) pcall(collectgarbage) pcall(deep, 3000) collectgarbage()",
    "pcall(function() f(dc.ones 'f32[4]'):sum():item() end) pcall(count) deep(20000) "
    "collectgarbage 'step'",
    "for _ = 1, 200 do pcall(function() coroutine.wrap(function() pcall(deep, 1000) "
    "coroutine.yield() end)() end) end",
    "for i = 1, 20 do pcall(dc.fn, 'g(x: f32[n]) -> f32[n]', function(x) deep(100) return x * i "
    "end) end",
    "for i = 1, 50 do local t = {} for k = 1, 200 do t[k] = coroutine.create(deep) end\n"
    "pcall(coroutine.resume, t[1], 500) t = nil pcall(collectgarbage) end",
    "table.sort({ 5, 4, 3, 2, 1 }, function(a, b) pcall(deep, 2000) return a < b end)",
    "local function nest(k) local co = coroutine.wrap(function() if k > 0 then nest(k - 1) end "
    "deep(50) end)\n"
    "pcall(co) end for _ = 1, 20 do nest(30) end",
};

static dc_rt *ctx; /* a process has one handler */
static atomic_bool over;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void *ask_again(void *seed)
{
    uint64_t state = *(const uint64_t *)seed;
    while (!atomic_load(&over)) {
        const uint64_t r = next_random(&state);
        const struct timespec wait = {.tv_nsec = (long)(r % 700000)};
        nanosleep(&wait, NULL);
        if (r % 8 == 0)
            dc_stop(ctx);
        else
            dc_interrupt(ctx);
    }
    return NULL;
}

static void on_alarm(int sig)
{
    (void)sig;
    dc_interrupt(ctx);
}

static lua_State *open_state(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.threads = 2;
    CHECK_EQ(dc_open(&cfg, &ctx), DC_OK);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, ctx), DC_OK);
    CHECK(lua_run(L, setup));
    return L;
}

/* The state is as good as before; the counter has counted whole steps. */
static void close_state(lua_State *L, const char *mode, long runs, long ended)
{
    dc_resume(ctx);
    lua_sethook(L, NULL, 0, 0);
    lua_settop(L, 0);
    CHECK(lua_run(L, "assert(f(dc.ones 'f32[4]'):sum():item() == 8)"));
    CHECK(lua_run(
        L, "local t = w:totable() for i = 2, 8 do assert(t[i] == t[1]) end assert(t[1] % 1 == 0)"));
    CHECK(lua_run(L, "assert(deep(1000) == 1000) collectgarbage() collectgarbage()"));
    CHECK(ended > 0);
    lua_close(L);
    printf("%s: %ld runs, %ld ended\n", mode, runs, ended);
}

static void storm_of_thread(double seconds, uint64_t seed)
{
    pthread_t thread;
    long runs = 0, ended = 0;
    lua_State *L = open_state();
    const uint64_t until = dc_clock_ns() + (uint64_t)(seconds * 1e9);
    CHECK_EQ(pthread_create(&thread, NULL, ask_again, &seed), 0);
    for (; dc_clock_ns() < until; runs++) {
        CHECK_EQ(luaL_loadstring(L, scripts[(size_t)runs % DC_COUNTOF(scripts)]), LUA_OK);
        ended += dc_pcall(L, 0, 0, 0, runs % 3 == 0 ? 2 : 0) != LUA_OK;
        lua_settop(L, 0);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    close_state(L, "another thread, dc_pcall", runs, ended);
}

static void storm_of_signals(double seconds)
{
    struct itimerval every = {.it_interval = {.tv_usec = 430}, .it_value = {.tv_usec = 430}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, before;
    long runs = 0, ended = 0;
    lua_State *L = open_state();
    const uint64_t until = dc_clock_ns() + (uint64_t)(seconds * 1e9);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &every, NULL);
    for (; dc_clock_ns() < until; runs++) {
        const char *code = scripts[(size_t)runs % DC_COUNTOF(scripts)];
        lua_pushlightuserdata(L, (void *)(uintptr_t)code);
        ended += luaL_loadstring(L, code) != LUA_OK || lua_pcall(L, 0, 0, 0) != LUA_OK;
        lua_settop(L, 0);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    sigaction(SIGALRM, &before, NULL);
    close_state(L, "signal handler, lua_pcall", runs, ended);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 3;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    storm_of_signals(seconds);
    storm_of_thread(seconds, seed);
    return t_done();
}
