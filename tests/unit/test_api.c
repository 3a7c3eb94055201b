/*
 * deepc.h as a host uses it: contexts opened, attached to Lua states, closed; failures as statuses
 * and sentences; two contexts side by side; the log callback.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

typedef struct heard {
    size_t bytes, graph; /* of all channels, of one */
    bool whole_lines;
} heard;

static void listen(void *ctx, const char *channel, const char *text, size_t n)
{
    heard *h = ctx;
    h->bytes += n;
    h->graph += strcmp(channel, "graph") == 0 ? n : 0;
    h->whole_lines = n > 0 && text[n - 1] == '\n';
}

static const char train[] = "local dc = require 'deepc'\n"
                            "local w = dc.param('f32[3]', 1)\n"
                            "local f = dc.fn('f(x: f32[3]) -> f32[]', function(x)\n"
                            "  local loss = (w * x - 1):sum()\n"
                            "  w:set(w - 0.5 * dc.grad(loss, w))\n"
                            "  return loss\n"
                            "end)\n"
                            "assert(f(dc.ones 'f32[3]'):item() == 0)\n"
                            "assert(f(dc.ones 'f32[3]'):item() == -1.5)\n";

static void test_refusals(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = "abacus";
    CHECK(dc_open(&cfg, &rt) == DC_E_DEVICE);
    if (CHECK(rt != NULL)) {
        CHECK(strstr(dc_errmsg(rt), "no device is called 'abacus'; there are cpu, ") ==
              dc_errmsg(rt));
        CHECK(strstr(dc_errmsg(rt), ", eval") != NULL);
        lua_State *L = luaL_newstate();
        CHECK(dc_attach(L, rt) == DC_E_STATE);
        lua_close(L);
    }
    dc_close(rt);

    cfg.device = "eval";
    cfg.debug = "graph,everything";
    CHECK(dc_open(&cfg, &rt) == DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "no channel 'everything'") != NULL);
    dc_close(rt);

    cfg.debug = "";
    cfg.size = 4;
    CHECK(dc_open(&cfg, &rt) == DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt), "DC_CONFIG_INIT sets it") != NULL);
    dc_close(rt);
    CHECK_STR(dc_errmsg(NULL), "out of memory");
    dc_close(NULL);
}

static const char *field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it */
    return text != NULL ? text : "";
}

/* What a host reads of a failure: the table that lua_pcall leaves, and the record for C. */
static void test_failure(lua_State *L, dc_rt *rt)
{
    static const char script[] = "local dc = require 'deepc'\n"
                                 "local a = dc.ones 'f32[2, 3]'\n"
                                 "local b = a:matmul(dc.ones 'f32[4, 5]')\n";
    static const char sentence[] = "matmul: inner dims differ: axis 2 = 3 against axis 1 = 4";
    CHECK(luaL_loadbuffer(L, script, sizeof script - 1, "@host.lua") == LUA_OK);
    CHECK(lua_pcall(L, 0, 0, 0) != LUA_OK);
    if (CHECK(lua_istable(L, -1))) {
        CHECK_STR(field(L, "code"), "DC0301");
        CHECK_STR(field(L, "op"), "matmul");
        CHECK_STR(field(L, "at"), "host.lua:3");
        CHECK(strstr(field(L, "message"), sentence) != NULL);
        CHECK(strstr(field(L, "traceback"), "stack traceback:") != NULL);
        const char *message = field(L, "message");
        CHECK_STR(luaL_tolstring(L, -1, NULL), message);
    }
    lua_settop(L, 0);
    CHECK(strstr(dc_errmsg(rt), sentence) == dc_errmsg(rt));
    CHECK(strstr(dc_errmsg(rt), "[DC0301; deepc explain DC0301]") != NULL);
}

static void test_attach(const char *device)
{
    heard log = {0};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = device;
    cfg.debug = "graph,time";
    cfg.log = listen;
    cfg.log_ctx = &log;
    if (!CHECK(dc_open(&cfg, &rt) == DC_OK))
        return;
    CHECK_STR(dc_errmsg(rt), "no failure");
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(dc_attach(L, rt) == DC_OK);
    CHECK_EQ(lua_gettop(L), 0);
    CHECK(dc_attach(L, rt) == DC_E_STATE);
    CHECK(dc_attach(NULL, rt) == DC_E_STATE);
    lua_State *other = luaL_newstate();
    CHECK(dc_attach(other, rt) == DC_E_STATE);
    CHECK(strstr(dc_errmsg(rt), "another lua_State has this context") != NULL);
    lua_close(other);
    dc_close(rt); /* it is the state's */
    dc_interrupt(NULL);
    CHECK(lua_run(L, train));
    CHECK(lua_run(L, "assert(require 'deepc' == require 'deepc')"));
    CHECK(lua_run(L, "assert(require 'deepc'._VERSION == '" DC_VERSION "')"));
    CHECK(log.bytes > 0 && log.whole_lines);
    CHECK(log.graph > 0);
    test_failure(L, rt);
    lua_close(L); /* closes the context too */
}

/* Runs a function in a context of its own; what it was made of. */
static dc_stats compiled(const char *how, const char *cache)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_stats stats = {0};
    dc_rt *rt;
    cfg.compile = how;
    cfg.cache = cache;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (CHECK(dc_open(&cfg, &rt) == DC_OK) && CHECK(dc_attach(L, rt) == DC_OK)) {
        CHECK(lua_run(L, train));
        stats = rt->stats;
        lua_close(L);
    }
    return stats;
}

/* A cache that is empty, that another context fills, that is all there is. */
static void test_compile(void)
{
    char folder[] = "/tmp/deepc-api-XXXXXX", command[100];
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    dc_stats s = compiled("cache", folder);
    CHECK(s.kernels == 0 && s.fallbacks > 0 && s.interpreted > 0);
    s = compiled(NULL, folder);
    CHECK(s.kernels > 0 && s.fallbacks == 0);
    s = compiled("cache", folder);
    CHECK(s.kernels == 0 && s.kernels_cached > 0 && s.fallbacks == 0 && s.launches > 0);
    s = compiled("off", folder);
    CHECK(s.kernels == 0 && s.kernels_cached == 0 && s.fallbacks == 0 && s.interpreted > 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ(system(command), 0);
    cfg.compile = "never";
    CHECK(dc_open(&cfg, &rt) == DC_E_VALUE);
    dc_close(rt);
}

static void test_two_states(void)
{
    lua_State *L[2];
    for (int i = 0; i < 2; i++) {
        dc_rt *rt;
        dc_config cfg = DC_CONFIG_INIT;
        cfg.device = i == 0 ? "cpu" : "eval";
        L[i] = luaL_newstate();
        luaL_openlibs(L[i]);
        CHECK(dc_open(&cfg, &rt) == DC_OK);
        CHECK(dc_attach(L[i], rt) == DC_OK);
        CHECK(lua_run(L[i], "dc = require 'deepc'; dc.seed(7); x = dc.rand 'f32[5]'"));
    }
    CHECK(lua_run(L[0], "y = x:totable()"));
    for (int i = 0; i < 2; i++)
        CHECK(lua_run(L[i], train));
    lua_close(L[0]);
    CHECK(lua_run(L[1], "assert(#x == 5 and x:sum():item() > 0)"));
    lua_close(L[1]);
}

/* An error of the script leaves the host's state usable. */
static void test_errors(void)
{
    dc_rt *rt;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(dc_open(NULL, &rt) == DC_OK);
    CHECK(dc_attach(L, rt) == DC_OK);
    CHECK(luaL_dostring(L, "local dc = require 'deepc'\n"
                           "return dc.ones 'f32[2, 3]':matmul(dc.ones 'f32[4, 5]')") != LUA_OK);
    CHECK(strstr(luaL_tolstring(L, -1, NULL), "inner dims differ: axis 2 = 3 against axis 1 = 4"));
    lua_settop(L, 0);
    CHECK(lua_run(L, train));
    lua_close(L);
}

int main(void)
{
    test_refusals();
    test_attach("eval");
    test_attach("cpu");
    test_two_states();
    test_compile();
    test_errors();
    for (int i = 0; i < 20; i++) {
        dc_rt *rt;
        CHECK(dc_open(NULL, &rt) == DC_OK);
        dc_close(rt);
    }
    return t_done();
}
