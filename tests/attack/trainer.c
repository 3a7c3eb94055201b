/*
 * A training host: trainer.lua in a state of its own, and its exported function without Lua. killed.c starts and kills
 * it; scripts/valgrind runs it.
 *
 *     trainer train FOLDER STEPS    trains, from the checkpoint on; "saved N" for each new one
 *     trainer check FOLDER STEP     looks at what is there (trainer.lua); "found N"
 */
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lualib.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "trainer: %s: %s\n", what, why);
    return 1;
}

/* At once, in one piece: the process may be killed after it. */
static int l_say(lua_State *L)
{
    char line[80];
    const int n = snprintf(line, sizeof line, "%.20s %lld\n", luaL_checkstring(L, 1),
                           (long long)luaL_checkinteger(L, 2));
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        return luaL_error(L, "nobody listens");
    return 0;
}

static int run_script(const char *mode, const char *folder, long step)
{
    char text[1000];
    dc_rt *ctx;
    if (dc_open(NULL, &ctx) != DC_OK) {
        fail("dc_open", dc_errmsg(ctx));
        dc_close(ctx);
        return 1;
    }
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    int status = dc_attach(L, ctx) == DC_OK ? LUA_OK : LUA_ERRRUN;
    if (status == LUA_OK)
        status = luaL_loadfile(L, "tests/attack/trainer.lua");
    if (status == LUA_OK) {
        lua_pushstring(L, mode);
        lua_pushstring(L, folder);
        lua_pushinteger(L, step);
        lua_pushcfunction(L, l_say);
        status = dc_pcall(L, 4, 0, 0, 0);
    }
    if (status != LUA_OK) {
        dc_error_text(L, -1, text, sizeof text);
        fail(mode, text);
    }
    lua_close(L);
    return status != LUA_OK;
}

/* Parameters and the numbers beside them are of one moment. */
static const char *call(dc_rt *ctx, dc_function *f)
{
    float x[2][8] = {{1, 2, 3}, {4, 5, 6}}, y[2][4], kept[2], total;
    const dc_array in = {DC_F32, 2, {2, 8}, x, sizeof x};
    dc_array out[3] = {{.data = y, .bytes = sizeof y},
                       {.data = kept, .bytes = sizeof kept},
                       {.data = &total, .bytes = sizeof total}};
    if (dc_call(f, &in, 1, out, 3) != DC_OK)
        return dc_errmsg(ctx);
    if (fmodf(kept[0], 4) != 0 || !(fabsf(kept[1] - total) <= 1e-5f * total))
        return "parameters of several moments";
    return isfinite(y[1][3]) ? NULL : "not finite";
}

/* The exported function, if there is one. */
static int check_function(const char *folder)
{
    char path[1000];
    dc_rt *ctx;
    dc_function *f;
    snprintf(path, sizeof path, "%s/f.dcfn", folder);
    if (access(path, F_OK) != 0)
        return 0;
    const char *bad = dc_open(NULL, &ctx) != DC_OK || dc_load(ctx, path, &f) != DC_OK
                          ? dc_errmsg(ctx)
                          : call(ctx, f);
    if (bad != NULL)
        fail(path, bad);
    dc_close(ctx);
    return bad != NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "train") != 0 && strcmp(argv[1], "check") != 0)) {
        fputs("usage: trainer train|check FOLDER STEP\n", stderr);
        return 2;
    }
    int bad = run_script(argv[1], argv[2], strtol(argv[3], NULL, 10));
    if (!bad && strcmp(argv[1], "check") == 0)
        bad = check_function(argv[2]);
    return bad;
}
