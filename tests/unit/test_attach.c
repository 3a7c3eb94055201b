/*
 * A host whose Lua runs out of memory: every n-th allocation of the lua_State fails, alone or with all that follow,
 * while a context is attached, while `require` opens one, and while short scripts run. dc_attach returns a status
 * and can be tried again; a script receives an error and runs afterwards; all memory comes back.
 */
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/hostmem.h"

int luaopen_deepc(lua_State *L);

static int on_panic(lua_State *L)
{
    (void)L;
    printf("lua_atpanic: an error was raised outside of a lua_pcall\n");
    exit(1);
}

static lua_State *new_state(hostmem *m)
{
    lua_State *L = lua_newstate(hostmem_give, m);
    if (L == NULL)
        exit(1);
    lua_atpanic(L, on_panic);
    luaL_openlibs(L);
    return L;
}

static dc_rt *open_context(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.compile = "off";
    cfg.threads = 1;
    cfg.allow = DC_ALLOW_COMPUTE;
    CHECK(dc_open(&cfg, &rt) == DC_OK);
    return rt;
}

static const char works[] =
    "local dc = require 'deepc'\n"
    "local f = dc.fn('f(x: f32[n]) -> f32[n]', function(x) return x * 2 end)\n"
    "assert(f(dc.ones 'f32[2]'):sum():item() == 4 and dc._VERSION)\n"
    "assert(require 'deepc.nn')\n";

static void check_works(lua_State *L, const char *what, long n)
{
    char text[300];
    if (CHECK(luaL_dostring(L, works) == LUA_OK))
        return;
    dc_error_text(L, -1, text, sizeof text);
    printf("%s, allocation %ld: %s\n", what, n, text);
}

/* ---- dc_attach ------------------------------------------------------------------------------- */

/* Was there an allocation to refuse? */
static bool attach(long first, bool alone)
{
    hostmem m = {0};
    lua_State *L = new_state(&m);
    dc_rt *rt = open_context();
    const int top = lua_gettop(L);
    hostmem_refuse(&m, first, alone);
    dc_status status = dc_attach(L, rt);
    hostmem_allow(&m);
    const bool refused = m.refused > 0;
    CHECK_EQ(lua_gettop(L), top);
    if (status != DC_OK) {
        CHECK(status == DC_E_NOMEM && refused);
        CHECK(strstr(dc_errmsg(rt), "memory") != NULL);
        if (first % 2 == 0) { /* the context is still ours: another state may have it */
            lua_close(L);
            CHECK_EQ(m.bytes, 0);
            L = new_state(&m);
        }
        status = dc_attach(L, rt);
        CHECK(status == DC_OK);
    }
    check_works(L, "dc_attach", first);
    CHECK(luaL_dostring(L, "assert(type(os.exit) == 'function')") == LUA_OK);
    lua_close(L);
    CHECK_EQ(m.bytes, 0);
    return refused;
}

/* os.exit of a state whose context never came closes the state. */
static void test_a_state_without_its_context(void)
{
    hostmem m = {0};
    lua_State *L = new_state(&m);
    dc_rt *rt = open_context();
    long n = 1;
    for (;; n++) { /* the last one that fails */
        hostmem_refuse(&m, n, true);
        const bool failed = dc_attach(L, rt) != DC_OK;
        hostmem_allow(&m);
        if (!failed)
            break;
    }
    CHECK(n > 100);
    check_works(L, "after many failures", n);
    lua_close(L);
    CHECK_EQ(m.bytes, 0);
}

/* ---- require --------------------------------------------------------------------------------- */

static int open_module(lua_State *L)
{
    luaL_requiref(L, "deepc", luaopen_deepc, 0);
    return 0;
}

static bool require(long first, bool alone)
{
    hostmem m = {0};
    lua_State *L = new_state(&m);
    lua_pushcfunction(L, open_module);
    hostmem_refuse(&m, first, alone);
    const int status = lua_pcall(L, 0, 0, 0);
    hostmem_allow(&m);
    const bool refused = m.refused > 0;
    if (CHECK(status == LUA_OK || (refused && status == LUA_ERRMEM)) && status != LUA_OK) {
        lua_settop(L, 0);
        lua_pushcfunction(L, open_module);
        CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK);
    }
    check_works(L, "require", first);
    lua_close(L);
    CHECK_EQ(m.bytes, 0);
    return refused;
}

/* ---- scripts --------------------------------------------------------------------------------- */

static const char *const scripts[] = {
    "local dc = require 'deepc'\n"
    "local x = dc.tensor { { 1, 2 }, { 3, 4 } }\n"
    "return tostring(x + 1) .. x:sum():item() .. #x:totable() .. x[1][1]:item()\n",
    "local dc = require 'deepc'\n"
    "local ok, e = pcall(function() return dc.ones 'f32[2]' + dc.ones 'f32[3]' end)\n"
    "return tostring(e) .. #e .. (type(e) == 'table' and e.code or '') .. e:upper()\n",
    "local dc = require 'deepc'\n"
    "local w, k = dc.param('f32[2]', 1), dc.static(2)\n"
    "local f = dc.fn('f(x: f32[n], l: {f32[2]}) -> f32[]', function(x, l)\n"
    "  local loss = (x:sum() * w * k.value + l[1]):sum() w:set(w - dc.grad(loss, w)) return loss "
    "end)\n"
    "local s <close> = dc.scope()\n"
    "local y = f({ 1, 2 }, { { 3, 4 } })\n"
    "k.value = 3\n"
    "return s:keep(f({ 1 }, { { 1, 1 } })):item() .. f:explain():sub(1, 4) .. #f:info()\n",
    "local dc = require 'deepc'\n"
    "local f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x + 1 end)\n"
    "local job = f:start { 1, 2 }\n"
    "while not job:poll { ms = 1 } do end\n"
    "return tostring(job) .. job:result():sum():item()\n",
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local net = nn.Linear(2, 1)\n"
    "local opt = optim.SGD(net:parameters(), { lr = 0.1 })\n"
    "local step = dc.fn('s(x: f32[2, 2]) -> f32[]', function(x)\n"
    "  local loss = net(x):square():mean() opt:step(loss) return loss end)\n"
    "return tostring(net) .. tostring(step { { 1, 2 }, { 3, 4 } } ~= nil)\n",
};

/* Calls the chunk on top, which stays, in a state that has its context. */
static bool run(lua_State *L, hostmem *m, long first, bool alone, int script)
{
    char text[300];
    lua_pushvalue(L, -1);
    hostmem_refuse(m, first, alone);
    const int status = lua_pcall(L, 0, 1, 0);
    dc_error_text(L, -1, text, sizeof text); /* while there is none, too */
    hostmem_allow(m);
    const bool refused = m->refused > 0;
    m->refused = 0;
    const bool told = strstr(text, "memory") != NULL || strstr(text, "stack overflow (") != NULL;
    if (status != LUA_OK &&
        !CHECK(refused && told)) /* a stack that cannot grow is Lua's overflow */
        printf("script %d, allocation %ld: %s\n", script, first, text);
    lua_pop(L, 1);
    if (first % 16 == 0 && status != LUA_OK) {
        lua_pushvalue(L, -1);
        if (!CHECK(lua_pcall(L, 0, 1, 0) == LUA_OK)) {
            dc_error_text(L, -1, text, sizeof text);
            printf("script %d after allocation %ld: %s\n", script, first, text);
        }
        lua_pop(L, 1);
    }
    return refused;
}

static void test_script(int i, bool alone)
{
    hostmem m = {0};
    lua_State *L = new_state(&m);
    CHECK(dc_attach(L, open_context()) == DC_OK);
    CHECK(luaL_loadstring(L, scripts[i]) == LUA_OK);
    long n = 1;
    while (run(L, &m, n, alone, i))
        n += alone ? 1 : 7;
    CHECK(n > 20);
    lua_close(L);
    CHECK_EQ(m.bytes, 0);
}

int main(void)
{
    for (int alone = 0; alone < 2; alone++) {
        for (long n = 1; attach(n, alone); n += alone ? 3 : 17)
            ;
        for (long n = 1; require(n, alone); n += alone ? 13 : 67)
            ;
        for (int i = 0; i < (int)(sizeof scripts / sizeof *scripts); i++)
            test_script(i, alone);
    }
    test_a_state_without_its_context();
    return t_done();
}
