/*
 * DC_ALLOW_COMPUTE, as a host meets it: whatever opens a file is refused with nothing written, settings
 * that need files are refused when the context is opened, and everything else works.
 */
#define _POSIX_C_SOURCE 200809L /* setenv, mkdtemp */

#include "vm/deepc.h"

#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

static char folder[] = "/tmp/deepc-allow-XXXXXX";

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static lua_State *open_state(const dc_config *cfg)
{
    dc_rt *rt;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (!CHECK(dc_open(cfg, &rt) == DC_OK) || !CHECK(dc_attach(L, rt) == DC_OK)) {
        printf("%s\n", dc_errmsg(rt));
        exit(t_done());
    }
    lua_pushstring(L, folder);
    lua_setglobal(L, "folder");
    return L;
}

/* Training goes on, through compiled kernels, without a trace on the disk. */
static void test_computing(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.allow = DC_ALLOW_COMPUTE;
    cfg.device = "cpu";
    lua_State *L = open_state(&cfg);
    CHECK(lua_run(
        L, "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
           "local net = nn.Linear(3, 2)\n"
           "local opt = optim.SGD(net:parameters(), { lr = 0.1 })\n"
           "local step = dc.fn('step(x: f32[4, 3]) -> f32[]', function(x)\n"
           "  local loss = net(x):square():mean()\n"
           "  opt:step(loss)\n"
           "  return loss\n"
           "end)\n"
           "local x = dc.ones 'f32[4, 3]'\n"
           "local first = step(x):item()\n"
           "for _ = 1, 20 do assert(step(x):item() <= first) end\n"
           "assert(step(x):item() < first / 2)"));
    lua_close(L);
    CHECK_EQ(entries(folder), 0);
}

/* Each of them, in a state that has io: the file is there all the time, and is not touched. */
static void test_scripts(void)
{
    static const char *const calls[] = {
        "dc.save(there, { w = w })",
        "dc.load(there, { w = w })",
        "dc.load(there)",
        "data.idx(there)",
        "f:export(there)",
        "plot.lines(folder .. '/loss.svg', { { y = { 1, 2, 3 } } })",
        "plot.lines(folder .. '/loss.png', { { y = { 1, 2, 3 } } })",
        "dc.checkpoint(there, { w = w }):save()",
        "dc.checkpoint(there, { w = w }):load()",
        "dc.checkpoint(folder .. '/nothing', { w = w }):load()",
        "data.fashion_mnist { dir = folder }",
        "data.fashion_mnist { dir = folder .. '/nothing' }",
    };
    dc_config cfg = DC_CONFIG_INIT;
    cfg.allow = DC_ALLOW_COMPUTE;
    cfg.device = "eval";
    lua_State *L = open_state(&cfg);
    CHECK(lua_run(L,
                  "dc, data, plot = require 'deepc', require 'deepc.data', require 'deepc.plot'\n"
                  "w = dc.param('f32[2]', { 1, 2 })\n"
                  "f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x * w end)\n"
                  "there = folder .. '/there'\n"
                  "local file = io.open(there, 'wb')\n"
                  "file:write 'as it was'\n"
                  "file:close()"));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char code[400];
        snprintf(code, sizeof code,
                 "local ok, err = pcall(function() %s end)\n"
                 "assert(not ok, 'no error')\n"
                 "assert(err.code == 'DC0805', tostring(err))\n"
                 "assert(err.message:find('files may not be opened here', 1, true), err.message)",
                 calls[i]);
        if (!CHECK(lua_run(L, code)))
            printf("%s\n", calls[i]);
    }
    CHECK(lua_run(L, "local file = io.open(there)\n"
                     "assert(file:read 'a' == 'as it was')\n"
                     "file:close()\n"
                     "assert(w:totable()[2] == 2)\n"
                     "os.remove(there)"));
    lua_close(L);
    CHECK_EQ(entries(folder), 0);
}

static void test_functions_without_lua(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    dc_function *f = NULL;
    char path[100];
    snprintf(path, sizeof path, "%s/f.dcfn", folder);
    cfg.device = "eval";
    lua_State *L = open_state(&cfg);
    CHECK(lua_run(L, "local dc = require 'deepc'\n"
                     "local f = dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x + 1 end)\n"
                     "f:export(folder .. '/f.dcfn')"));
    lua_close(L);
    for (int i = 0; i < 2; i++) {
        cfg.allow = i == 0 ? DC_ALLOW_ALL : DC_ALLOW_COMPUTE;
        CHECK(dc_open(&cfg, &rt) == DC_OK);
        CHECK_EQ(dc_load(rt, path, &f), i == 0 ? DC_OK : DC_E_FILE);
        CHECK(i == 0 || strstr(dc_errmsg(rt), "DC0805") != NULL);
        dc_close(rt);
    }
    CHECK_EQ(unlink(path), 0);
}

static void expect_refused(const dc_config *cfg, const char *part)
{
    dc_rt *rt;
    if (!CHECK_EQ(dc_open(cfg, &rt), DC_E_VALUE) || !CHECK(strstr(dc_errmsg(rt), part) != NULL))
        printf("'%s' is not in:\n%s\n", part, dc_errmsg(rt));
    dc_close(rt);
}

static void test_settings(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.allow = 2;
    expect_refused(&cfg, "dc_config.allow: no dc_allow that this version knows");
    cfg.allow = DC_ALLOW_COMPUTE;
    cfg.cache = folder;
    expect_refused(&cfg, "cache: a folder, where no files may be opened");
    cfg.cache = "off";
    cfg.compile = "cache";
    expect_refused(&cfg, "compile: 'cache', where no files may be opened");
    cfg.compile = NULL;
    cfg.device = "cpu:cc";
    expect_refused(&cfg, "device: 'cpu:cc', where no processes may be started");
    cfg.device = "eval";
    CHECK(dc_open(&cfg, &rt) == DC_OK);
    dc_close(rt);
    cfg.allow = DC_ALLOW_ALL;
    setenv("DEEPC_ALLOW", "nothing", 1);
    expect_refused(&cfg, "DEEPC_ALLOW: 'all' or 'compute'");
    setenv("DEEPC_ALLOW", "compute", 1); /* a host does not take it back */
    cfg.device = "cpu:cc";
    expect_refused(&cfg, "no processes");
    unsetenv("DEEPC_ALLOW");
}

/* Compiled when the member was not there: what lies behind is not read. */
static void test_older_host(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.size = offsetof(dc_config, allow);
    cfg.allow = 77;
    cfg.device = "eval";
    lua_State *L = open_state(&cfg);
    CHECK(lua_run(L, "local dc, path = require 'deepc', folder .. '/w'\n"
                     "dc.save(path, { w = dc.param('f32[2]', { 1, 2 }) })\n"
                     "assert(os.remove(path))"));
    lua_close(L);
}

int main(void)
{
    char cache[100];
    if (!CHECK(mkdtemp(folder) != NULL))
        return t_done();
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("DEEPC_CACHE", cache, 1);
    setenv("DEEPC_DUMP", folder, 1);
    test_computing();
    test_scripts();
    unsetenv("DEEPC_DUMP");
    setenv("DEEPC_CACHE", "off", 1);
    test_functions_without_lua();
    test_settings();
    test_older_host();
    CHECK_EQ(rmdir(folder), 0);
    return t_done();
}
