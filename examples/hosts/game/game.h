/* What the files of this game share: balls and paddles (courts.c), what learns (learner.c), the loop and what it draws (game.c). */
#ifndef GAME_H
#define GAME_H

#include <lua.h>

#include <deepc.h>
#include <stdbool.h>

enum { COURTS = 32, INPUTS = 5, ACTIONS = 3, BATCH = 4096, MEMORY = 1 << 16, RECENT = 256 };

/* ---- courts.c ---- */

typedef struct court {
    float x, y, vx, vy, paddle; /* the court is 1 wide and 1 high, y grows downwards */
} court;

/* What happened: what was seen, what was done, what it brought, what was seen then; 0 where the ball was over. */
typedef struct memory {
    _Alignas(64) float seen[MEMORY][INPUTS];
    _Alignas(64) float after[MEMORY][INPUTS];
    int action[MEMORY];
    float reward[MEMORY], goes_on[MEMORY];
    long count;
} memory;

typedef struct world {
    court court[COURTS];
    memory *m;
    unsigned seed;
    long balls;
    bool caught[RECENT]; /* of the last ones */
} world;

void world_new(world *w, memory *m);
void world_look(const world *w, float seen[COURTS][INPUTS]);
/* A sixtieth of a second; actions are 0 left, 1 stay, 2 right. */
void world_move(world *w, const int action[COURTS]);
double world_rate(const world *w); /* of recent balls, how many were caught */
float world_random(world *w);      /* 0 to 1 */

/* ---- learner.c ---- */

typedef struct learner {
    lua_State *L;
    dc_rt *ctx;
    _Alignas(64) float seen[BATCH][INPUTS];
    _Alignas(64) float after[BATCH][INPUTS];
    _Alignas(64) int action[BATCH];
    _Alignas(64) float reward[BATCH];
    _Alignas(64) float goes_on[BATCH];
    _Alignas(64) float now[COURTS][INPUTS];
    bool working; /* a step of training has begun */
    long steps, slices, calls;
    double loss;
    double milliseconds; /* of preparing */
} learner;

/* False: it has said why on stderr. */
bool learner_open(learner *l, const char *script, const char *device);
void learner_close(learner *l);
bool learner_act(learner *l, const world *w, int action[COURTS]);
/* Trains for about so many milliseconds, at least a kernel. */
bool learner_train(learner *l, world *w, double ms);
double now_ms(void);
double cpu_ms(void); /* of this thread */

#endif
