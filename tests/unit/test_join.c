/*
 * jit/rewrite/disjoint_sum.c: which sums of padded pieces become joins, how many, and that the function gives the same bits as
 * before, zeros of both signs included.
 *
 *   test_join [SEED]
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/disjoint_sum.h"

#include <string.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { ROWS = 12, COLUMNS = 40, ALL = ROWS * COLUMNS, MOST = 64 };

static dc_job job;
static const int64_t whole_dim[2] = {ROWS, COLUMNS};

typedef struct part { /* of each axis */
    int64_t lo[2], step[2], n[2];
} part;

typedef struct graph {
    dc_module *m;
    dc_func *f;
    dc_ref x, piece[MOST];
    int n;
} graph;

static void begin(graph *g)
{
    const dc_type whole = dc_type_make(DC_F32, 2, whole_dim);
    *g = (graph){.m = dc_module_new()};
    g->f = dc_func_new(g->m, "joined");
    g->x = dc_graph_param(g->f, &whole, "x");
}

/* x in this part, times its number, padded to the whole. */
static dc_ref piece(graph *g, const part *p)
{
    dc_ref r = dc_graph_slice(g->f, g->x, p->lo, p->step, p->n);
    r = dc_graph_op2(g->f, DC_OP_MUL, r, dc_graph_like(g->f, r, ++g->n));
    return dc_graph_pad(g->f, r, p->lo, p->step, whole_dim, 0);
}

static dc_ref plus(graph *g, dc_ref a, dc_ref b)
{
    return dc_graph_op2(g->f, DC_OP_ADD, a, b);
}

static uint32_t count(const dc_func *f, dc_op op)
{
    const bool *live = dc_func_live(f, &job.scratch);
    uint32_t n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        n += live[r] && dc_node_at(f, r)->op == op;
    return n;
}

static void run(const dc_func *f, const float *x, float *out)
{
    const void *const param[1] = {x};
    void *const result[1] = {out};
    CHECK(dc_eval(&job, f, DC_EVAL_ROUND, param, result) == DC_OK);
}

/* The joins of the sum; -1: none, and NULL is what dc_disjoint_sum gives. */
static int joins_of(graph *g, dc_ref sum)
{
    static float x[ALL], want[ALL], got[ALL];
    int n = -1;
    DC_PUSH(g->f->result, sum);
    dc_func *f = dc_disjoint_sum(&job.scratch, g->f);
    if (f != NULL) {
        for (int i = 0; i < ALL; i++)
            x[i] = i % 5 == 0 ? -0.0f : (float)(i % 7) - 3.25f;
        run(g->f, x, want);
        run(f, x, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        CHECK(dc_func_check(&job, f) == DC_OK);
        n = (int)count(f, DC_OP_JOIN);
    }
    dc_module_free(g->m);
    return n;
}

/* One after the other, as they are. */
static int joins_of_parts(const part *p, int n)
{
    graph g;
    begin(&g);
    dc_ref sum = piece(&g, &p[0]);
    for (int i = 1; i < n; i++)
        sum = plus(&g, sum, piece(&g, &p[i]));
    return joins_of(&g, sum);
}

static void whole_columns(void)
{
    part p[20];
    for (int i = 0; i < 20; i++)
        p[i] = (part){{0, 2 * i}, {1, 1}, {ROWS, 2}};
    CHECK_EQ(joins_of_parts(p, 20), 1);
    CHECK_EQ(joins_of_parts(p, 12), 1); /* what none covers is filled */
    CHECK_EQ(joins_of_parts(p, DC_TUNE_JOIN_PIECES), -1);
    for (int i = 0; i < 20; i++) /* rows 3 to 8 of them, every second column */
        p[i] = (part){{3, i}, {1, 20}, {6, 2}};
    CHECK_EQ(joins_of_parts(p, 20), -1); /* gaps, and no axis along which they lie */
    for (int i = 0; i < 20; i++)
        p[i] = (part){{3, i}, {1, 1}, {6, 1}};
    CHECK_EQ(joins_of_parts(p, 20), 1);
}

static void tiles(void)
{
    part p[40];
    for (int i = 0; i < 40; i++)
        p[i] = (part){{i % 4 * 3, i / 4 * 4}, {1, 1}, {3, 4}};
    CHECK_EQ(joins_of_parts(p, 40), 1);
    CHECK_EQ(joins_of_parts(p, 39), -1);
    for (int i = 0; i < 40; i++) /* combs */
        p[i] = (part){{i / 10, i % 10}, {4, 10}, {3, 4}};
    CHECK_EQ(joins_of_parts(p, 40), 1);
}

/* As core/autodiff/gradsum.c adds them up: layers of windows that lie apart become joins, then they are added. */
static void layers(void)
{
    graph g;
    dc_ref sum = 0;
    begin(&g);
    for (int k = 0; k < 3; k++) {
        dc_ref layer = 0;
        for (int i = k; i + 3 <= COLUMNS; i += 3) {
            const dc_ref r = piece(&g, &(part){{0, i}, {1, 1}, {ROWS, 3}});
            layer = layer == 0 ? r : plus(&g, layer, r);
        }
        sum = sum == 0 ? layer : plus(&g, sum, layer);
    }
    CHECK_EQ(joins_of(&g, sum), 3);
}

/* A layer of few beside one of many, and something that is no pad. */
static void mixed(void)
{
    graph g;
    begin(&g);
    dc_ref many = 0, few = piece(&g, &(part){{0, 1}, {1, 1}, {ROWS, 9}});
    for (int i = 0; i < COLUMNS; i += 4) {
        const dc_ref r = piece(&g, &(part){{0, i}, {1, 1}, {ROWS, 4}});
        many = many == 0 ? r : plus(&g, many, r);
    }
    few = plus(&g, few, piece(&g, &(part){{0, 20}, {1, 1}, {ROWS, 5}}));
    CHECK_EQ(joins_of(&g, plus(&g, plus(&g, many, few), g.x)), 1);
}

/* Windows in the order of a script: pieces that overlap their neighbours, in no layers. */
static void overlapping(void)
{
    part p[38];
    for (int i = 0; i < 38; i++)
        p[i] = (part){{0, i}, {1, 1}, {ROWS, 3}};
    CHECK_EQ(joins_of_parts(p, 38), -1);
}

static dc_ref random_sum(graph *g, rng *r, const part *p, int n)
{
    if (n == 1)
        return piece(g, p);
    const int left = rng_below(r, 3) == 0 ? 1 + rng_below(r, n - 1) : n - 1;
    const dc_ref a = random_sum(g, r, p, left);
    return plus(g, a, random_sum(g, r, p + left, n - left));
}

/* Blocks of columns, in steps or not, in any order, added up in any way; some overlap. */
static void random_sums(rng *r)
{
    int some = 0;
    for (int t = 0; t < 300; t++) {
        graph g;
        part p[MOST];
        int n = 0;
        begin(&g);
        for (int at = rng_below(r, 2); at < COLUMNS && n < MOST;) {
            const int64_t step = 1 + rng_below(r, 2), wide = 1 + rng_below(r, 3);
            const int64_t down = 1 + rng_below(r, 3), lo = rng_below(r, 3);
            p[n] = (part){{lo, at}, {down, step}, {(ROWS - lo + down - 1) / down, wide}};
            if (p[n].lo[1] + (wide - 1) * step < COLUMNS)
                n++;
            at += (int)((wide - 1) * step) + 1 - (rng_below(r, 12) == 0) + (rng_below(r, 8) == 0);
        }
        for (int i = n - 1; i > 0; i--) {
            const int k = rng_below(r, i + 1);
            const part q = p[i];
            p[i] = p[k];
            p[k] = q;
        }
        if (n > 0)
            some += joins_of(&g, random_sum(&g, r, p, n)) > 0;
        else
            dc_module_free(g.m);
    }
    CHECK(some > 20);
}

int main(int argc, char **argv)
{
    static dc_opts opt;
    static dc_log log;
    const char *bad;
    dc_opts_init(&opt, &bad);
    dc_job_init(&job, &opt, &log);
    rng r = {rng_seed(argc, argv, 7321)};
    whole_columns();
    tiles();
    layers();
    mixed();
    overlapping();
    random_sums(&r);
    dc_job_fini(&job);
    return t_done();
}
