/*
 * A context that two threads use at the same time: the second one gets DC_E_STATE and a sentence, and changes nothing,
 * whichever function of deepc.h it calls; the first one's entry ends as it would have. Afterwards the other may use it.
 */
#define _GNU_SOURCE /* usleep */
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/folder.h"

static const char why[] = "another thread uses this context";

typedef struct host {
    dc_rt *rt, *other; /* attached; without a state */
    lua_State *L;
    dc_function *fn; /* of `other` */
    const char *path;
    sem_t inside, leave;
    int result;
    atomic_bool end;
} host;

static host *of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* A function of the host's, called by the script: the entry stays open until the other thread is through. */
static int l_stay(lua_State *L)
{
    host *h = of(L);
    sem_post(&h->inside);
    sem_wait(&h->leave);
    return 0;
}

static void *enter(void *arg)
{
    host *h = arg;
    luaL_loadstring(h->L, "local dc = require 'deepc' local x = dc.ones 'f32[4]' stay() "
                          "return (x + 1):sum():item()");
    h->result = dc_pcall(h->L, 0, 1, 0, 0);
    return NULL;
}

/* All that a second thread may get of a context that is attached. */
static void refuse_attached(host *h)
{
    float data[2] = {1, 2};
    dc_array a = {.dtype = DC_F32, .rank = 1, .dim = {2}, .bytes = sizeof data, .data = data};
    dc_function *f = NULL;
    dc_sandbox_options o = DC_SANDBOX_INIT;
    char text[100];
    lua_State *L2 = luaL_newstate();
    const int top = lua_gettop(h->L);
    o.context = h->rt;
    CHECK_EQ(dc_load(h->rt, h->path, &f), DC_E_STATE);
    CHECK(f == NULL);
    CHECK(strstr(dc_errmsg(h->rt), why) != NULL);
    CHECK_EQ(dc_wait(h->rt), DC_E_STATE);
    CHECK_EQ(dc_attach(L2, h->rt), DC_E_STATE);
    CHECK_EQ(dc_sandbox(L2, &o), DC_E_STATE);
    dc_deadline(h->rt, 1);
    dc_close(h->rt);
    CHECK_EQ(dc_pcall(h->L, 0, 0, 0, 0), DC_E_STATE);
    CHECK_EQ(dc_sandbox_run(h->L, "x", "", 0, 0), DC_E_STATE);
    CHECK_EQ(dc_push_array(h->L, &a, NULL, NULL), DC_E_STATE);
    CHECK_EQ(dc_to_array(h->L, -1, &a), DC_E_STATE);
    CHECK(dc_error_text(h->L, -1, text, sizeof text) > 0 && strstr(text, why) != NULL);
    CHECK_EQ(lua_gettop(h->L), top);
    lua_close(L2);
}

static void test_attached(host *h)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, enter, h), 0);
    sem_wait(&h->inside);
    refuse_attached(h);
    sem_post(&h->leave);
    pthread_join(thread, NULL);
    CHECK_EQ(h->result, LUA_OK);
    CHECK(lua_tonumber(h->L, -1) == 8);
    lua_settop(h->L, 0);
    luaL_loadstring(h->L, "return require 'deepc'.ones 'f32[3]':sum():item()");
    CHECK_EQ(dc_pcall(h->L, 0, 1, 0, 0), LUA_OK); /* on this thread now */
    CHECK(lua_tonumber(h->L, -1) == 3);
    lua_settop(h->L, 0);
}

/* ---- one context, called from two threads as fast as they can --------------------------------- */

static void *hammer(void *arg)
{
    host *h = arg;
    long *refused = calloc(1, sizeof *refused);
    while (!atomic_load(&h->end)) {
        float x[4] = {1, 2, 3, 4};
        dc_array in = {.dtype = DC_F32, .rank = 1, .dim = {4}, .bytes = sizeof x, .data = x},
                 out = {.data = NULL};
        const dc_status s = dc_call(h->fn, &in, 1, &out, 1);
        *refused += s == DC_E_STATE;
        if (s != DC_OK && s != DC_E_STATE)
            *refused = -(1L << 40);
        const dc_status waited = dc_wait(h->other);
        if (waited != DC_OK && waited != DC_E_STATE)
            *refused = -(1L << 40);
    }
    return refused;
}

static void test_hammer(host *h)
{
    pthread_t thread[2];
    long all = 0;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, hammer, h), 0);
    usleep(300000);
    atomic_store(&h->end, true);
    for (int i = 0; i < 2; i++) {
        void *refused;
        pthread_join(thread[i], &refused);
        CHECK(*(long *)refused >= 0);
        all += *(long *)refused;
        free(refused);
    }
    printf("%ld calls were refused\n", all);
    float x[4] = {1, 2, 3, 4};
    dc_array in = {.dtype = DC_F32, .rank = 1, .dim = {4}, .bytes = sizeof x, .data = x},
             out = {.data = NULL};
    CHECK_EQ(dc_call(h->fn, &in, 1, &out, 1), DC_OK);
    CHECK(((const float *)out.data)[3] == 8);
}

int main(void)
{
    char path[300];
    host h = {0};
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "eval";
    sem_init(&h.inside, 0, 0);
    sem_init(&h.leave, 0, 0);
    CHECK(folder_make());
    snprintf(path, sizeof path, "%s", folder_path("f.dcfn"));
    h.path = path;
    CHECK_EQ(dc_open(&cfg, &h.rt), DC_OK);
    CHECK_EQ(dc_open(&cfg, &h.other), DC_OK);
    h.L = luaL_newstate();
    luaL_openlibs(h.L);
    CHECK_EQ(dc_attach(h.L, h.rt), DC_OK);
    lua_pushlightuserdata(h.L, &h);
    lua_pushcclosure(h.L, l_stay, 1);
    lua_setglobal(h.L, "stay");
    lua_pushstring(h.L, path);
    lua_setglobal(h.L, "path");
    luaL_loadstring(h.L, "local dc = require 'deepc' local f = dc.fn('f(x: f32[4]) -> f32[4]', "
                         "function(x) return x * 2 end) f:export(path)");
    CHECK_EQ(dc_pcall(h.L, 0, 0, 0, 0), LUA_OK);
    CHECK_EQ(dc_load(h.other, path, &h.fn), DC_OK);
    test_attached(&h);
    test_hammer(&h);
    lua_close(h.L);
    dc_close(h.other);
    folder_remove();
    return t_done();
}
