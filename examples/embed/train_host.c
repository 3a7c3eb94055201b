/*
 * A host that trains a small network through its own lua_State: the network and its training step are
 * written in Lua, data and loop are the host's.
 *
 *     train_host
 */
#include <lauxlib.h>
#include <lualib.h>

#include <deepc.h>
#include <stdio.h>
#include <stdlib.h>

static const char model[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local net = nn.Sequential { nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1) }\n"
    "local opt = optim.Adam(net:parameters(), { lr = 1e-2 })\n"
    "step = dc.fn('step(x: f32[n, 1], y: f32[n, 1]) -> f32[]', function(x, y)\n"
    "  local loss = (net(x) - y):square():mean()\n"
    "  opt:step(loss)\n"
    "  return loss\n"
    "end)\n"
    "function train(x, y) return step(x, y):item() end\n";

enum { POINTS = 32, STEPS = 500 };

/* What deepc has to say: notes, and the channels of cfg.debug. Whole lines. */
static void on_log(void *file, const char *channel, const char *text, size_t n)
{
    (void)channel;
    fwrite(text, 1, n, file);
}

/* An error value may be anything; dc_error_text gives its text and never raises an error itself. */
static int failed(lua_State *L)
{
    char text[2000];
    dc_error_text(L, -1, text, sizeof text);
    fprintf(stderr, "train_host: %s\n", text);
    lua_close(L);
    return EXIT_FAILURE;
}

/* Pushes { { v[0] }, { v[1] }, ... }, which is taken for an f32[n, 1]. */
static void push_column(lua_State *L, const double *v)
{
    lua_createtable(L, POINTS, 0);
    for (int i = 0; i < POINTS; i++) {
        lua_createtable(L, 1, 0);
        lua_pushnumber(L, v[i]);
        lua_rawseti(L, -2, 1);
        lua_rawseti(L, -2, i + 1);
    }
}

/* One step of training; leaves the loss, a number, on the stack. */
static int train(lua_State *L, const double *x, const double *y)
{
    lua_getglobal(L, "train");
    push_column(L, x);
    push_column(L, y);
    return lua_pcall(L, 2, 1, 0);
}

int main(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    double x[POINTS], y[POINTS], first = 0, last = 0;

    lua_State *L = luaL_newstate();
    if (L == NULL)
        return EXIT_FAILURE;
    luaL_openlibs(L);

    cfg.log = on_log;
    cfg.log_ctx = stderr;
    cfg.allow = DC_ALLOW_COMPUTE;
    if (dc_open(&cfg, &ctx) != DC_OK || dc_attach(L, ctx) != DC_OK) {
        fprintf(stderr, "train_host: %s\n", dc_errmsg(ctx));
        dc_close(ctx);
        return EXIT_FAILURE;
    }
    /* The context is the state's from here on: lua_close closes both. */

    if (luaL_dostring(L, model) != LUA_OK)
        return failed(L);
    for (int i = 0; i < POINTS; i++) {
        x[i] = 2.0 * i / (POINTS - 1) - 1;
        y[i] = x[i] * x[i];
    }
    for (int i = 0; i < STEPS; i++) {
        if (train(L, x, y) != LUA_OK)
            return failed(L);
        last = lua_tonumber(L, -1);
        first = i == 0 ? last : first;
        lua_pop(L, 1);
    }
    printf("loss %.4f, after %d steps %.4f\n", first, STEPS, last);
    lua_close(L);
    return last < first / 10 ? EXIT_SUCCESS : EXIT_FAILURE;
}
