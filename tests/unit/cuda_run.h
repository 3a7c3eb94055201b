/*
 * deepc on the stand-in for CUDA (tests/cuda), in this process: its counters, and Lua with them.
 *
 * The libraries are those that DEEPC_CUDA and DEEPC_NVRTC name. Scripts find
 *
 *   check(condition, what)     counted as CHECK counts
 *   standin.calls(entry)       how often an entry of the driver was called so far; "*": all
 *   standin.compiled()         texts compiled
 *   standin.bytes(device)      allocated now
 *   standin.set(name, value)   sets CUDA_STANDIN_name
 */
#ifndef DC_TESTS_CUDA_RUN_H
#define DC_TESTS_CUDA_RUN_H

#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_api.h"
#include "tests/t.h"

static struct standin {
    void *cuda, *nvrtc;
    uint64_t (*calls)(const char *entry);
    uint64_t (*compiled)(void);
    size_t (*bytes)(int device);
    void (*set)(const char *name, const char *value);
    unsigned (*wrong)(void);
    const char *(*take_wrong)(void);
} standin;

static inline void *standin_symbol(void *lib, const char *name, void *place)
{
    void *p = lib != NULL ? dlsym(lib, name) : NULL;
    memcpy(place, &p, sizeof p);
    return p;
}

/* False where the libraries are not the stand-in's. */
static inline bool standin_open(void)
{
    const char *cuda = getenv("DEEPC_CUDA"), *nvrtc = getenv("DEEPC_NVRTC");
    struct standin *s = &standin;
    s->cuda = cuda != NULL ? dlopen(cuda, RTLD_NOW | RTLD_LOCAL) : NULL;
    s->nvrtc = nvrtc != NULL ? dlopen(nvrtc, RTLD_NOW | RTLD_LOCAL) : NULL;
    return standin_symbol(s->cuda, "cuda_standin_calls", &s->calls) &&
           standin_symbol(s->cuda, "cuda_standin_bytes", &s->bytes) &&
           standin_symbol(s->cuda, "cuda_standin_set", &s->set) &&
           standin_symbol(s->cuda, "cuda_standin_wrong", &s->wrong) &&
           standin_symbol(s->cuda, "cuda_standin_take_wrong", &s->take_wrong) &&
           standin_symbol(s->nvrtc, "cuda_standin_compiled", &s->compiled);
}

/* ---- Lua ---------------------------------------------------------------------------------------- */

static inline int cuda_lua_calls(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)standin.calls(luaL_checkstring(L, 1)));
    return 1;
}

static inline int cuda_lua_compiled(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)standin.compiled());
    return 1;
}

static inline int cuda_lua_bytes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)standin.bytes((int)luaL_optinteger(L, 1, 0)));
    return 1;
}

static inline int cuda_lua_set(lua_State *L)
{
    standin.set(luaL_checkstring(L, 1), luaL_checkstring(L, 2));
    return 0;
}

static inline int cuda_lua_check(lua_State *L)
{
    if (!t_count(lua_toboolean(L, 1))) {
        luaL_where(L, 1);
        printf("%s failed: %s\n", lua_tostring(L, -1), luaL_optstring(L, 2, ""));
    }
    return 0;
}

typedef struct cuda_host {
    lua_State *L;
    dc_rt *rt;
} cuda_host;

/* A state with such a context. The status of dc_open. */
static inline dc_status cuda_host_open_as(cuda_host *h, const dc_config *cfg)
{
    static const luaL_Reg functions[] = {{"calls", cuda_lua_calls},
                                         {"compiled", cuda_lua_compiled},
                                         {"bytes", cuda_lua_bytes},
                                         {"set", cuda_lua_set},
                                         {NULL, NULL}};
    h->L = luaL_newstate();
    luaL_openlibs(h->L);
    luaL_newlib(h->L, functions);
    lua_setglobal(h->L, "standin");
    lua_register(h->L, "check", cuda_lua_check);
    const dc_status status = dc_open(cfg, &h->rt);
    if (status == DC_OK)
        CHECK_EQ(dc_attach(h->L, h->rt), DC_OK);
    return status;
}

/* NULL: cuda:0 */
static inline dc_status cuda_host_open(cuda_host *h, const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = device != NULL ? device : "cuda:0";
    return cuda_host_open_as(h, &cfg);
}

/* Also where it was not opened whole; its context goes with the state it is attached to. */
static inline void cuda_host_close(cuda_host *h, dc_status opened)
{
    if (opened != DC_OK)
        dc_close(h->rt);
    lua_close(h->L);
}

/* False, and the message is left on the stack, where it raises. */
static inline bool cuda_host_call(cuda_host *h, const char *name, const char *text)
{
    return luaL_loadbuffer(h->L, text, strlen(text), name) == LUA_OK &&
           lua_pcall(h->L, 0, LUA_MULTRET, 0) == LUA_OK;
}

/* Of a state of its own; what it raises is a check that failed. */
static inline void cuda_script(const char *name, const char *text)
{
    cuda_host h = {0};
    const dc_status status = cuda_host_open(&h, NULL);
    if (!CHECK_EQ(status, DC_OK))
        printf("%s: %s\n", name, dc_errmsg(h.rt));
    else if (!CHECK(cuda_host_call(&h, name, text)))
        printf("%s: %s\n", name, luaL_tolstring(h.L, -1, NULL));
    cuda_host_close(&h, status);
}

#endif
