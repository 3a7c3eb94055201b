/*
 * Ranks that are threads of a host, each with a context and a lua_State: what they exchange, what they hear of each other, and
 * ranks that a host may not have.
 */
#include "core/base/thread.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>

#include "tests/t.h"

enum { RANKS = 3, ROUNDS = 8 };

typedef struct one {
    dc_ranks *ranks;
    int rank;
    const char *script; /* NULL: the context is closed at once */
    const char *device; /* that is not there; NULL: one that is */
    double result;
    char error[600];
} one;

/* What the script returns, or why not. */
static void run_script(one *o, dc_rt *rt)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(dc_attach(L, rt) == DC_OK);
    lua_pushinteger(L, o->rank);
    lua_setglobal(L, "rank");
    if (luaL_dostring(L, o->script) == LUA_OK)
        o->result = lua_tonumber(L, -1);
    else
        dc_error_text(L, -1, o->error, sizeof o->error);
    lua_close(L);
}

static void *live(void *arg)
{
    one *o = arg;
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = o->device != NULL ? o->device : "eval";
    cfg.ranks = o->ranks;
    cfg.rank = o->rank;
    CHECK((dc_open(&cfg, &rt) == DC_OK) == (o->device == NULL));
    if (o->script != NULL && o->device == NULL)
        run_script(o, rt);
    else
        dc_close(rt);
    return NULL;
}

/* All ranks run what is theirs, at once. */
static void run_all(one at[RANKS])
{
    pthread_t thread[RANKS];
    dc_ranks *ranks = NULL;
    CHECK(dc_ranks_new(RANKS, &ranks) == DC_OK);
    for (int r = 0; r < RANKS; r++) {
        at[r].ranks = ranks;
        at[r].rank = r;
        if (!dc_thread_start(&thread[r], "rank", DC_THREAD_DEEP_STACK, live, &at[r]))
            abort();
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    dc_ranks_free(ranks);
}

static const char sums[] =
    "local dc = require 'deepc'\n"
    "dc.mesh { data = 3 }\n"
    "local f = dc.fn('f(x: f32[6 @ data]) -> f32[]', function(x) return (x * x):sum() end)\n"
    "local x = dc.part(dc.iota 'f32[6]', 'f32[6 @ data]')\n"
    "return f(x):item() + 100 * dc.all_reduce(dc.ones 'f32[]' * rank):item() + 1000 * "
    "dc.world().rank\n";

static void test_sums(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        one at[RANKS] = {{.script = sums}, {.script = sums}, {.script = sums}};
        run_all(at);
        for (int r = 0; r < RANKS; r++) {
            CHECK_STR(at[r].error, "");
            CHECK_NEAR(at[r].result, 55 + 300 + 1000 * r, 0);
        }
    }
}

static bool ends_with_rank_1(const one *o)
{
    return strstr(o->error, "rank 1 (") != NULL && strstr(o->error, "has ended, and rank") != NULL;
}

/* One context is closed before it was a member of anything: those that wait for it hear of it. */
static void test_left(void)
{
    one at[RANKS] = {{.script = sums}, {.script = NULL}, {.script = sums}};
    run_all(at);
    CHECK(ends_with_rank_1(&at[0]));
    CHECK(ends_with_rank_1(&at[2]));
}

/* And one whose script has failed, when its state is closed. */
static void test_error(void)
{
    one at[RANKS] = {{.script = sums}, {.script = "error 'boom'"}, {.script = sums}};
    run_all(at);
    CHECK(strstr(at[1].error, "boom") != NULL);
    CHECK(ends_with_rank_1(&at[0]));
    CHECK(ends_with_rank_1(&at[2]));
}

static void test_not_opened(void)
{
    one at[RANKS] = {{.script = sums}, {.device = "nowhere"}, {.script = sums}};
    run_all(at);
    CHECK(ends_with_rank_1(&at[0]));
    CHECK(ends_with_rank_1(&at[2]));
}

/* None exchanges anything: contexts may then be closed one after the other, on one thread. */
static void test_in_turn(void)
{
    dc_ranks *ranks = NULL;
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt[RANKS + 1];
    cfg.device = "eval";
    CHECK(dc_ranks_new(RANKS, &ranks) == DC_OK);
    cfg.ranks = ranks;
    for (cfg.rank = 0; cfg.rank < RANKS; cfg.rank++)
        CHECK(dc_open(&cfg, &rt[cfg.rank]) == DC_OK);
    cfg.rank = 1;
    CHECK(dc_open(&cfg, &rt[RANKS]) == DC_E_VALUE);
    CHECK(strstr(dc_errmsg(rt[RANKS]), "one that no other context is") != NULL);
    for (int r = 0; r <= RANKS; r++)
        dc_close(rt[r]);
    dc_ranks_free(ranks);
}

static void refused(dc_ranks *ranks, int rank, const char *device, dc_status status,
                    const char *words)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = device;
    cfg.ranks = ranks;
    cfg.rank = rank;
    CHECK_EQ(dc_open(&cfg, &rt), status);
    CHECK(strstr(dc_errmsg(rt), words) != NULL);
    dc_close(rt);
}

static void test_refused(void)
{
    dc_ranks *ranks = NULL;
    CHECK_EQ(dc_ranks_new(0, &ranks), DC_E_VALUE);
    CHECK_EQ(dc_ranks_new(DC_RANKS_MOST + 1, &ranks), DC_E_VALUE);
    CHECK_EQ(dc_ranks_new(2, NULL), DC_E_VALUE);
    CHECK(ranks == NULL);
    dc_ranks_free(NULL);
    CHECK(dc_ranks_new(2, &ranks) == DC_OK);
    refused(ranks, 2, "eval", DC_E_VALUE, "dc_config.rank: one of 2, counted from 0");
    refused(ranks, -1, "eval", DC_E_VALUE, "dc_config.rank: one of 2, counted from 0");
    refused(NULL, 1, "eval", DC_E_VALUE, "dc_config.rank: none, where dc_config.ranks is NULL");
    refused(ranks, 0, "nowhere", DC_E_DEVICE, "nowhere");
    refused(ranks, 0, "eval", DC_E_VALUE, "dc_config.rank: one that no other context is");
    dc_ranks_free(ranks);
}

int main(void)
{
    test_sums();
    test_left();
    test_error();
    test_not_opened();
    test_in_turn();
    test_refused();
    return t_done();
}
