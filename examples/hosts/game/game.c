/*
 * Thirty-two paddles learn to catch balls while the game runs. Each frame has two milliseconds for that, with which the paddles act and
 * a step of training goes on by a slice.
 *
 *     game [--frames N] [--until RATE] [--budget MS] [--fast] [--bmp FILE] [--script learner.lua]
 *
 * --fast does not wait for the screen; --until ends when so many of the last balls were caught.
 */
#include "game.h"

#include <SDL.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACROSS = 8, DOWN = 4, SIZE = 80, GAP = 6, GRAPH = 120, FIRST = 64, MOST_FRAMES = 1 << 20 };

typedef struct options {
    long frames;
    double until, budget;
    bool fast;
    const char *bmp, *script, *device;
} options;

typedef struct game {
    options o;
    world w;
    learner l;
    SDL_Window *window;
    SDL_Renderer *renderer;
    float *spent, *cpu,
        *rate; /* per frame: milliseconds of learning and acting, of the processor too; balls caught */
    double first; /* of the first balls */
    long frame;
} game;

/* ---- the screen ---- */

static void fill(SDL_Renderer *r, int rgb, int x, int y, int width, int height)
{
    SDL_Rect at = {x, y, width, height};
    SDL_SetRenderDrawColor(r, (Uint8)(rgb >> 16), (Uint8)(rgb >> 8), (Uint8)rgb, 255);
    SDL_RenderFillRect(r, &at);
}

static void draw_court(game *g, int i)
{
    const court *c = &g->w.court[i];
    int left = GAP + i % ACROSS * (SIZE + GAP), top = GAP + i / ACROSS * (SIZE + GAP);
    fill(g->renderer, 0x20242c, left, top, SIZE, SIZE);
    fill(g->renderer, 0x8fd18f, left + (int)((c->paddle - 0.125f) * SIZE), top + SIZE - 4, SIZE / 4,
         4);
    fill(g->renderer, 0xf0c060, left + (int)(c->x * (SIZE - 6)), top + (int)(c->y * (SIZE - 6)), 6,
         6);
}

/* The last frames: bars are milliseconds, the budget a line at two thirds; above them the share of balls that were caught. */
static void draw_graph(game *g, int top, int width)
{
    const int bars = 50, height = GRAPH - GAP;
    fill(g->renderer, 0x20242c, GAP, top, width - 2 * GAP, height);
    for (int x = 0; x < width - 2 * GAP; x++) {
        long i = g->frame - (width - 2 * GAP) + x;
        if (i < 0)
            continue;
        int ms = (int)((double)g->spent[i] / g->o.budget * bars / 1.5);
        ms = ms > bars ? bars : ms;
        fill(g->renderer, (double)g->spent[i] > g->o.budget ? 0xe07060 : 0x6090d0, GAP + x,
             top + height - ms, 1, ms);
        fill(g->renderer, 0x8fd18f, GAP + x,
             top + 2 + (int)((1 - g->rate[i]) * (float)(height - bars - 6)), 1, 2);
    }
    fill(g->renderer, 0xd0d0d0, GAP, top + height - bars * 2 / 3, width - 2 * GAP, 1);
}

static void draw(game *g)
{
    char title[120];
    fill(g->renderer, 0x101318, 0, 0, ACROSS * (SIZE + GAP) + GAP,
         DOWN * (SIZE + GAP) + GRAPH + GAP);
    for (int i = 0; i < COURTS; i++)
        draw_court(g, i);
    draw_graph(g, DOWN * (SIZE + GAP) + GAP, ACROSS * (SIZE + GAP) + GAP);
    SDL_RenderPresent(g->renderer);
    if (g->frame % 30 == 0) {
        snprintf(title, sizeof title, "%.0f %% caught, %ld steps of training, loss %.3f",
                 100 * world_rate(&g->w), g->l.steps, g->l.loss);
        SDL_SetWindowTitle(g->window, title);
    }
}

static void save(game *g)
{
    int width, height;
    SDL_GetRendererOutputSize(g->renderer, &width, &height);
    SDL_Surface *s = SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_ARGB8888);
    draw(g); /* what was presented is not there any more */
    if (s == NULL ||
        SDL_RenderReadPixels(g->renderer, NULL, s->format->format, s->pixels, s->pitch) != 0 ||
        SDL_SaveBMP(s, g->o.bmp) != 0)
        fprintf(stderr, "game: %s: %s\n", g->o.bmp, SDL_GetError());
    SDL_FreeSurface(s);
}

/* ---- the loop ---- */

/* Of the last frames' actions some are by chance, fewer and fewer. */
static bool play(game *g)
{
    int action[COURTS];
    double begin = now_ms(), cpu = cpu_ms(), chance = 1 - (double)g->l.steps / 100;
    if (!learner_act(&g->l, &g->w, action))
        return false;
    if (!learner_train(&g->l, &g->w, g->o.budget - (now_ms() - begin)))
        return false;
    g->spent[g->frame] = (float)(now_ms() - begin);
    g->cpu[g->frame] = (float)(cpu_ms() - cpu);
    for (int i = 0; i < COURTS; i++)
        if ((double)world_random(&g->w) < (chance > 0.02 ? chance : 0.02))
            action[i] = (int)(world_random(&g->w) * ACTIONS) % ACTIONS;
    world_move(&g->w, action);
    g->rate[g->frame] = (float)world_rate(&g->w);
    if (g->w.balls <= FIRST)
        g->first = world_rate(&g->w);
    return true;
}

static bool over(const game *g)
{
    SDL_Event event;
    while (SDL_PollEvent(&event))
        if (event.type == SDL_QUIT)
            return true;
    return g->frame >= g->o.frames || (g->w.balls >= RECENT && world_rate(&g->w) >= g->o.until);
}

static bool loop(game *g)
{
    for (; !over(g); g->frame++) {
        Uint32 begin = SDL_GetTicks();
        if (!play(g))
            return false;
        draw(g);
        Uint32 took = SDL_GetTicks() - begin;
        if (!g->o.fast && took < 16)
            SDL_Delay(16 - took);
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void report_times(const game *g, const char *name, float *ms)
{
    long n = g->frame, beyond = 0;
    qsort(ms, (size_t)n, sizeof *ms, by_size);
    for (long i = 0; i < n; i++)
        beyond += (double)ms[i] > g->o.budget;
    printf("%s: median %.2f ms, 99 %% %.2f ms, worst %.2f ms; %.1f %% of frames beyond %.1f ms\n",
           name, (double)ms[n / 2], (double)ms[n * 99 / 100], (double)ms[n - 1],
           100.0 * (double)beyond / (double)n, g->o.budget);
}

static void report(game *g)
{
    if (g->frame == 0)
        return;
    printf("prepared in %.0f ms, %ld frames\n", g->l.milliseconds, g->frame);
    report_times(g, "by the clock", g->spent);
    report_times(g, "of the processor", g->cpu);
    printf("%ld steps of training in %ld slices, %ld calls, each with a deadline; loss %.4f\n",
           g->l.steps, g->l.slices, g->l.calls, g->l.loss);
    printf("%ld balls: %.0f %% of the first %d caught, %.0f %% of the last %d\n", g->w.balls,
           100 * g->first, FIRST, 100 * world_rate(&g->w), RECENT);
}

/* ---- the program ---- */

static bool read_options(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "--fast") == 0) {
            o->fast = true;
            continue;
        }
        if (strcmp(name, "--frames") == 0)
            o->frames = atol(value);
        else if (strcmp(name, "--until") == 0)
            o->until = atof(value);
        else if (strcmp(name, "--budget") == 0)
            o->budget = atof(value);
        else if (strcmp(name, "--bmp") == 0)
            o->bmp = value;
        else if (strcmp(name, "--script") == 0)
            o->script = value;
        else if (strcmp(name, "--device") == 0)
            o->device = value;
        else
            return false;
        i++;
    }
    return o->frames > 0 && o->frames <= MOST_FRAMES && o->budget > 0;
}

static bool open_screen(game *g)
{
    const int width = ACROSS * (SIZE + GAP) + GAP, height = DOWN * (SIZE + GAP) + GRAPH + GAP;
    if (SDL_Init(SDL_INIT_VIDEO) == 0 &&
        SDL_CreateWindowAndRenderer(width, height, 0, &g->window, &g->renderer) == 0)
        return true;
    fprintf(stderr, "game: %s\n", SDL_GetError());
    return false;
}

int main(int argc, char **argv)
{
    static game g = {
        .o = {.frames = MOST_FRAMES, .until = 2, .budget = 2, .script = "learner.lua"}};
    static memory m;
    if (!read_options(&g.o, argc, argv)) {
        fprintf(stderr, "game [--frames N] [--until RATE] [--budget MS] [--fast] [--bmp FILE] "
                        "[--script FILE] [--device NAME]\n");
        return EXIT_FAILURE;
    }
    g.spent = calloc((size_t)g.o.frames + 1, sizeof *g.spent);
    g.cpu = calloc((size_t)g.o.frames + 1, sizeof *g.cpu);
    g.rate = calloc((size_t)g.o.frames + 1, sizeof *g.rate);
    world_new(&g.w, &m);
    bool ok = g.spent != NULL && g.cpu != NULL && g.rate != NULL && open_screen(&g) &&
              learner_open(&g.l, g.o.script, g.o.device) && loop(&g);
    if (ok && g.o.bmp != NULL)
        save(&g);
    if (ok)
        report(&g);
    learner_close(&g.l);
    SDL_Quit();
    free(g.spent);
    free(g.cpu);
    free(g.rate);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
