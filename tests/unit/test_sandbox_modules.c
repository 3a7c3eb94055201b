/*
 * Each public module in a sandbox with each capability alone, with none and with all: it works, or fails with a text
 * that names the capability. What is tried of each is a row of unit/sandbox_modules.lua; the modules are those that
 * the help knows, and one without a row fails.
 */
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"
#include "tests/unit/lua_run.h"

enum { READ = 1, WRITE = 2, CLOCK = 4 };

static const struct {
    const char *name;
    int what;
} sets[] = {{"nothing", 0},
            {"read", READ},
            {"write", WRITE},
            {"clock", CLOCK},
            {"all", READ | WRITE | CLOCK}};

static const char driver[] = "require 'rows'.try(module, has, given, made)";

static char rows[1 << 16];

static const char *on_require(void *ctx, const char *name, size_t *n)
{
    (void)ctx;
    *n = strlen(rows);
    return strcmp(name, "rows") == 0 ? rows : NULL;
}

static void discard(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)ctx, (void)channel, (void)text, (void)n;
}

static dc_rt *open_context(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = "eval";
    cfg.log = discard;
    if (!CHECK_EQ(dc_open(&cfg, &rt), DC_OK))
        exit(t_done());
    return rt;
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setglobal(L, name);
}

static void try_module(const char *module, size_t set)
{
    const char *const given[] = {folder_path("given"), NULL}, *const made[] = {
                                                                  folder_path(sets[set].name),
                                                                  NULL};
    dc_sandbox_options o = DC_SANDBOX_INIT;
    char has[40];
    lua_State *L = luaL_newstate();
    o.context = open_context();
    o.read = sets[set].what & READ ? given : NULL;
    o.write = sets[set].what & WRITE ? made : NULL;
    o.clock = (sets[set].what & CLOCK) != 0;
    o.require = on_require;
    CHECK_EQ(dc_sandbox(L, &o), DC_OK);
    snprintf(has, sizeof has, "%s %s %s", o.read != NULL ? "read" : "",
             o.write != NULL ? "write" : "", o.clock ? "clock" : "");
    set_text(L, "has", has);
    set_text(L, "module", module);
    set_text(L, "given", given[0]);
    set_text(L, "made", made[0]);
    if (!CHECK_EQ(dc_sandbox_run(L, "script", driver, strlen(driver), 0), DC_OK))
        printf("    %s with %s: %s\n", module, sets[set].name, lua_tostring(L, -1));
    lua_close(L);
}

/* Files that are there for scripts, written by a host without bounds; leaves the names of modules and rows' numbers. */
static lua_State *prepare(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK_EQ(dc_attach(L, open_context()), DC_OK);
    set_text(L, "given", folder_path("given"));
    set_text(L, "text", rows);
    CHECK(lua_run(L,
                  "local rows = assert(load(text, '=rows'))()\n"
                  "for _, f in pairs(rows.prepare) do f(given) end\n"
                  "names, known = require 'deepc.help'.modules(), {}\n"
                  "for _, name in ipairs(names) do known[name] = true end\n"
                  "for name in pairs(rows.rows) do assert(known[name], 'no module ' .. name) end"));
    return L;
}

int main(void)
{
    FILE *f = fopen("tests/unit/sandbox_modules.lua", "r");
    if (!CHECK(f != NULL) || !CHECK(fread(rows, 1, sizeof rows, f) < sizeof rows) ||
        !CHECK(folder_make()))
        return t_done();
    fclose(f);
    CHECK_EQ(mkdir(folder_path("given"), 0700), 0);
    for (size_t set = 0; set < sizeof sets / sizeof *sets; set++)
        CHECK_EQ(mkdir(folder_path(sets[set].name), 0700), 0);
    lua_State *L = prepare();
    lua_getglobal(L, "names");
    const size_t n = lua_rawlen(L, -1);
    CHECK(n >= 18);
    for (size_t i = 0; i < n; i++)
        for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
            lua_rawgeti(L, -1, (lua_Integer)i + 1);
            try_module(lua_tostring(L, -1), set);
            lua_pop(L, 1);
        }
    lua_close(L);
    CHECK(folder_remove());
    return t_done();
}
