/* For targets whose reader is written in Lua, or called by it: a state with deepc in it. */
#ifndef DC_TESTS_FUZZ_LUA_H
#define DC_TESTS_FUZZ_LUA_H

#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { FUZZ_LUA_INPUTS = 300 };

/* A state with deepc on the interpreter, and the function that the code returns on its stack. */
static inline lua_State *fuzz_lua_open(const char *code, dc_rt **out)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt;
    cfg.device = "eval";
    cfg.threads = 1;
    cfg.cache = "off";
    cfg.memory_limit = 64 << 20;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (dc_open(&cfg, &rt) != DC_OK || dc_attach(L, rt) != DC_OK)
        fuzz_finding("open: %s", dc_errmsg(rt));
    if (luaL_dostring(L, code) != LUA_OK)
        fuzz_finding("%s", lua_tostring(L, -1));
    *out = rt;
    return L;
}

/*
 * Calls the function that the code returns with the text. An error is what Lua code has to expect, unless deepc broke
 * a promise. The state is a new one now and then: opening one takes longer than most inputs.
 */
static inline void fuzz_lua(const char *code, const char *text, size_t n)
{
    static lua_State *L;
    static dc_rt *rt;
    static int calls;
    if (L == NULL)
        L = fuzz_lua_open(code, &rt);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, text, n);
    lua_pcall(L, 1, 0, 0);
    if (rt->broken)
        fuzz_finding("%s", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 1);
    if (++calls % FUZZ_LUA_INPUTS == 0) {
        lua_close(L);
        L = NULL;
    }
}

#endif
