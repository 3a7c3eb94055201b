/*
 * The functions of learner.lua. Every call of Lua goes through `call`, which gives it a deadline; arrays are tensors over memory of
 * the game, nothing is copied.
 */
#include <lauxlib.h>
#include <lualib.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "game.h"

enum {
    FRAME_MS = 2000,
    PREPARE_MS = 60000
}; /* what a call may take at the very most; slices end by themselves */

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The function and nargs arguments are on the stack. */
static bool call(learner *l, int nargs, int nresults, int64_t ms)
{
    char text[2000];
    l->calls++;
    if (dc_pcall(l->L, nargs, nresults, 0, ms) == LUA_OK)
        return true;
    dc_error_text(l->L, -1, text, sizeof text);
    fprintf(stderr, "game: %s\n", text);
    lua_pop(l->L, 1);
    return false;
}

static void push(learner *l, dc_dtype type, void *data, int64_t rows, int64_t columns)
{
    dc_array a = {type, columns > 1 ? 2 : 1, {rows, columns}, data, (size_t)(4 * rows * columns)};
    if (dc_push_array(l->L, &a, NULL, NULL) != DC_OK)
        lua_pushnil(l->L); /* the script says what it misses */
}

/* Without metamethods: outside of `call` an error of the script would end the process. */
static void push_function(learner *l, const char *name)
{
    lua_rawgetp(l->L, LUA_REGISTRYINDEX, l);
    lua_pushstring(l->L, name);
    lua_rawget(l->L, -2);
    lua_remove(l->L, -2);
}

static int push_batch(learner *l)
{
    push(l, DC_F32, l->seen, BATCH, INPUTS);
    push(l, DC_I32, l->action, BATCH, 1);
    push(l, DC_F32, l->reward, BATCH, 1);
    push(l, DC_F32, l->after, BATCH, INPUTS);
    push(l, DC_F32, l->goes_on, BATCH, 1);
    return 5;
}

bool learner_open(learner *l, const char *script, const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    memset(l, 0, sizeof *l);
    cfg.threads = 1; /* the game has the other cores */
    cfg.device = device;
    cfg.memory_limit = (size_t)256 << 20;
    l->L = luaL_newstate();
    if (l->L == NULL)
        return false;
    luaL_openlibs(l->L);
    if (dc_open(&cfg, &l->ctx) != DC_OK || dc_attach(l->L, l->ctx) != DC_OK) {
        fprintf(stderr, "game: %s\n", dc_errmsg(l->ctx));
        dc_close(l->ctx);
        return false;
    }
    double begin = now_ms();
    if (luaL_loadfile(l->L, script) != LUA_OK) {
        fprintf(stderr, "game: %s\n", lua_tostring(l->L, -1));
        return false;
    }
    lua_pushinteger(l->L, COURTS);
    lua_pushinteger(l->L, INPUTS);
    lua_pushinteger(l->L, ACTIONS);
    if (!call(l, 3, 1, PREPARE_MS))
        return false;
    if (!lua_istable(l->L, -1)) {
        fprintf(stderr, "game: %s returned no table of functions\n", script);
        return false;
    }
    lua_rawsetp(l->L, LUA_REGISTRYINDEX, l);
    push_function(l, "prepare");
    push(l, DC_F32, l->now, COURTS, INPUTS);
    if (!call(l, 1 + push_batch(l), 0, PREPARE_MS))
        return false;
    l->milliseconds = now_ms() - begin;
    return true;
}

void learner_close(learner *l)
{
    if (l->L != NULL)
        lua_close(l->L);
}

static bool take_actions(const dc_array *a, int action[COURTS])
{
    bool ok = a->dtype == DC_I32 && a->bytes == COURTS * sizeof *action;
    if (ok)
        memcpy(action, a->data, a->bytes);
    for (int i = 0; ok && i < COURTS; i++)
        ok = action[i] >= 0 && action[i] < ACTIONS;
    if (!ok)
        fprintf(stderr, "game: learner.act has to give i32[%d], from 0 to %d\n", COURTS,
                ACTIONS - 1);
    return ok;
}

bool learner_act(learner *l, const world *w, int action[COURTS])
{
    dc_array a;
    world_look(w, l->now);
    push_function(l, "act");
    push(l, DC_F32, l->now, COURTS, INPUTS);
    if (!call(l, 1, 1, FRAME_MS))
        return false;
    bool ok = dc_to_array(l->L, -1, &a) == DC_OK;
    if (ok)
        ok = take_actions(&a, action);
    else
        fprintf(stderr, "game: %s\n", dc_errmsg(l->ctx));
    lua_pop(l->L, 1);
    return ok;
}

/* A batch of what is remembered, and a step of training with it. */
static bool begin(learner *l, world *w)
{
    const memory *m = w->m;
    long n = m->count < MEMORY ? m->count : MEMORY;
    for (int i = 0; i < BATCH; i++) {
        long at = (long)(world_random(w) * (float)n) % n;
        memcpy(l->seen[i], m->seen[at], sizeof l->seen[i]);
        memcpy(l->after[i], m->after[at], sizeof l->after[i]);
        l->action[i] = m->action[at];
        l->reward[i] = m->reward[at];
        l->goes_on[i] = m->goes_on[at];
    }
    push_function(l, "begin");
    l->working = call(l, push_batch(l), 0, FRAME_MS);
    return l->working;
}

bool learner_train(learner *l, world *w, double ms)
{
    double until = now_ms() + ms;
    if (w->m->count == 0 || (!l->working && !begin(l, w)))
        return w->m->count == 0;
    double left = until - now_ms();
    push_function(l, "continue");
    lua_pushnumber(l->L, left > 0 ? left : 0);
    if (!call(l, 1, 1, FRAME_MS))
        return false;
    l->slices++;
    if (!lua_isnil(l->L, -1)) {
        l->loss = lua_tonumber(l->L, -1);
        l->steps++;
        l->working = false;
    }
    lua_pop(l->L, 1);
    return true;
}
