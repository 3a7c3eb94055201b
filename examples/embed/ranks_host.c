/*
 * A host that trains one network on several devices: each thread of it is a rank, with a context and a lua_State of its own.
 *
 *     ranks_host DEVICE DEVICE...        ranks_host cuda:0 cuda:1
 */
#include <lauxlib.h>
#include <lualib.h>

#include <deepc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char model[] =
    "local dc, nn, optim = require 'deepc', require 'deepc.nn', require 'deepc.optim'\n"
    "local world = dc.world()\n"
    "dc.mesh { data = world.size }\n"
    "dc.seed(1)\n"
    "local rows = 32 * world.size\n"
    "local net = nn.Sequential { nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1) }\n"
    "local opt = optim.Adam(net:parameters(), { lr = 1e-2 })\n"
    "local type = ('f32[%d @ data, 1]'):format(rows)\n"
    "local step = dc.fn(('step(x: %s, y: %s) -> f32[]'):format(type, type), function(x, y)\n"
    "  local loss = (net(x) - y):square():mean()\n"
    "  opt:step(loss)\n"
    "  return loss\n"
    "end)\n"
    "local x = dc.part(dc.rand('f32[' .. rows .. ', 1]') * 2 - 1, type)\n"
    "local y = x * x\n"
    "local first, last = step(x, y):item(), 0\n"
    "for i = 2, 500 do last = step(x, y):item() end\n"
    "return first, last\n";

enum { MOST = 8 };

typedef struct rank {
    dc_ranks *ranks;
    int number;
    const char *device;
    double first, last;
    int failed;
} rank;

static void *run(void *arg)
{
    rank *r = arg;
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx;
    char text[2000];

    r->failed = 1;
    lua_State *L = luaL_newstate();
    if (L == NULL)
        return NULL;
    luaL_openlibs(L);
    cfg.device = r->device;
    cfg.ranks = r->ranks;
    cfg.rank = r->number;
    if (dc_open(&cfg, &ctx) != DC_OK || dc_attach(L, ctx) != DC_OK) {
        fprintf(stderr, "rank %d: %s\n", r->number, dc_errmsg(ctx));
        dc_close(ctx);
    } else if (luaL_dostring(L, model) != LUA_OK) {
        dc_error_text(L, -1, text, sizeof text);
        fprintf(stderr, "rank %d: %s\n", r->number, text);
    } else {
        r->first = lua_tonumber(L, -2);
        r->last = lua_tonumber(L, -1);
        r->failed = 0;
    }
    lua_close(L); /* waits for the other ranks, as long as none has failed */
    return NULL;
}

int main(int argc, char **argv)
{
    const int n = argc - 1;
    rank at[MOST] = {0};
    pthread_t thread[MOST];
    dc_ranks *ranks;
    int failed = 0;

    if (n < 1 || n > MOST || dc_ranks_new(n, &ranks) != DC_OK)
        return EXIT_FAILURE;
    for (int i = 0; i < n; i++) {
        at[i].ranks = ranks;
        at[i].number = i;
        at[i].device = argv[i + 1];
        if (pthread_create(&thread[i], NULL, run, &at[i]) != 0)
            return EXIT_FAILURE;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        failed |= at[i].failed;
    }
    dc_ranks_free(ranks);
    if (!failed)
        printf("%d ranks: loss %.4f, after 500 steps %.4f\n", n, at[0].first, at[0].last);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
