/* Balls fall, paddles move, and what happened is remembered. */
#include <math.h>
#include <string.h>

#include "game.h"

static const float step = 1.0f / 60, paddle_width = 0.25f, speed = 1.5f;

float world_random(world *w)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (float)(w->seed >> 8) / (float)(1 << 24);
}

static void new_ball(world *w, court *c)
{
    c->x = world_random(w);
    c->y = 0;
    c->vx = 2 * world_random(w) - 1;
    c->vy = 0.8f + 0.4f * world_random(w);
}

void world_new(world *w, memory *m)
{
    memset(w, 0, sizeof *w);
    w->m = m;
    w->seed = 1;
    for (int i = 0; i < COURTS; i++) {
        w->court[i].paddle = 0.5f;
        new_ball(w, &w->court[i]);
        w->court[i].y = world_random(w);
    }
}

static void look(const court *c, float seen[INPUTS])
{
    const float all[INPUTS] = {2 * c->x - 1, 2 * c->y - 1, c->vx, 2 * c->paddle - 1,
                               4 * (c->x - c->paddle)};
    memcpy(seen, all, sizeof all);
}

void world_look(const world *w, float seen[COURTS][INPUTS])
{
    for (int i = 0; i < COURTS; i++)
        look(&w->court[i], seen[i]);
}

static float clamp(float x, float edge)
{
    return x < edge ? edge : x > 1 - edge ? 1 - edge : x;
}

/* Moves one ball and its paddle; what that brought. */
static float move(world *w, court *c, int action, bool *over)
{
    c->paddle = clamp(c->paddle + (float)(action - 1) * speed * step, paddle_width / 2);
    c->x += c->vx * step;
    c->y += c->vy * step;
    if (c->x < 0 || c->x > 1) {
        c->x = clamp(c->x, 0);
        c->vx = -c->vx;
    }
    *over = c->y >= 1;
    if (!*over)
        return -0.1f * fabsf(c->x - c->paddle);
    bool caught = fabsf(c->x - c->paddle) <= paddle_width / 2;
    w->caught[w->balls++ % RECENT] = caught;
    return caught ? 1 : -1;
}

void world_move(world *w, const int action[COURTS])
{
    for (int i = 0; i < COURTS; i++) {
        court *c = &w->court[i];
        memory *m = w->m;
        long at = m->count++ % MEMORY;
        bool over;
        look(c, m->seen[at]);
        m->action[at] = action[i];
        m->reward[at] = move(w, c, action[i], &over);
        m->goes_on[at] = over ? 0 : 1;
        look(c, m->after[at]);
        if (over)
            new_ball(w, c);
    }
}

double world_rate(const world *w)
{
    long n = w->balls < RECENT ? w->balls : RECENT, caught = 0;
    for (long i = 0; i < n; i++)
        caught += w->caught[i];
    return n > 0 ? (double)caught / (double)n : 0;
}
