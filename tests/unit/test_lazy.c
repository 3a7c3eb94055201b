/*
 * Lazy expressions through core/runtime/lazy.h, as hosts without Lua use them: on the interpreter and with
 * compiled programs.
 */
#include "core/runtime/lazy.h"

#include <string.h>

#include "tests/t.h"
#include "tests/unit/world.h"

/* ---- making ---- */

typedef struct making {
    world *w;
    dc_op op;
    dc_lazy *in[2];
    int n, nout;
    const dc_type *want; /* of a reshape */
    dc_lazy *out[2];
} making;

static dc_status build_body(dc_job *j, void *arg)
{
    making *m = arg;
    dc_val in[2], out[2];
    dc_func *f = dc_lazy_begin(m->w->rt, j);
    for (int i = 0; i < m->n; i++)
        in[i] = dc_lazy_operand(m->w->rt, m->in[i]);
    if (m->want != NULL)
        DC_TRY(dc_build_reshape(j, f, in[0], m->want, out));
    else if (m->op == DC_OP_SUM)
        DC_TRY(dc_build_reduce(j, f, m->op, in[0], (1u << in[0].type.rank) - 1, false, out));
    else
        DC_TRY(dc_build_ew(j, f, m->op, in, m->n, out));
    if (m->nout == 2)
        DC_TRY(dc_build_ew(j, f, DC_OP_NEG, out, 1, &out[1]));
    dc_lazy_end(m->w->rt, j, out, m->nout, "a.lua:7", NULL, m->out);
    return DC_OK;
}

static dc_lazy *build(world *w, making m)
{
    m.w = w;
    m.nout = m.nout == 0 ? 1 : m.nout;
    CHECK_EQ(dc_protect(w->j, build_body, &m), DC_OK);
    return m.out[0];
}

static dc_lazy *op1(world *w, dc_op op, dc_lazy *a)
{
    return build(w, (making){.op = op, .in = {a}, .n = 1});
}

static dc_lazy *op2(world *w, dc_op op, dc_lazy *a, dc_lazy *b)
{
    return build(w, (making){.op = op, .in = {a, b}, .n = 2});
}

typedef struct leafing {
    world *w;
    dc_tensor *t;
    dc_cell *c;
    float number;
    dc_lazy *out;
} leafing;

static dc_status leaf_body(dc_job *j, void *arg)
{
    leafing *l = arg;
    if (l->c != NULL)
        return dc_lazy_read(l->w->rt, j, l->c, &l->out);
    l->out = l->t != NULL ? dc_lazy_leaf(l->w->rt, l->t)
                          : dc_lazy_number(l->w->rt, DC_F32, dc_f32_bits(l->number));
    return DC_OK;
}

static dc_lazy *leaf(world *w, leafing l)
{
    l.w = w;
    CHECK_EQ(dc_protect(w->j, leaf_body, &l), DC_OK);
    return l.out;
}

/* first, first + 1, ...; the caller has the only reference */
static dc_lazy *data(world *w, int64_t n, float first)
{
    dc_tensor *t = world_tensor(w, DC_F32, n, first);
    dc_lazy *l = leaf(w, (leafing){.t = t});
    dc_tensor_release(t);
    return l;
}

static dc_lazy *num(world *w, float v)
{
    return leaf(w, (leafing){.number = v});
}

typedef struct realizing {
    world *w;
    dc_lazy *n;
} realizing;

static dc_status realize_body(dc_job *j, void *arg)
{
    const realizing *r = arg;
    return dc_lazy_realize(r->w->rt, j, r->n);
}

static float at(world *w, dc_lazy *n, int i)
{
    realizing r = {w, n};
    CHECK_EQ(dc_protect(w->j, realize_body, &r), DC_OK);
    return n->value != NULL ? value_at(n->value, i) : -1;
}

static void give_back(dc_lazy *const *n, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dc_lazy_release(n[i]);
}

#define GIVE_BACK(...) \
    give_back((dc_lazy *[]){__VA_ARGS__}, sizeof((dc_lazy *[]){__VA_ARGS__}) / sizeof(dc_lazy *))

static void open_auto(world *w, where on, const char *channels)
{
    world_open(w, on, NULL, channels);
    CHECK_EQ(dc_jit_open(w->rt, w->j), DC_OK); /* as contexts of hosts are */
}

/* What is compiled is so at once. */
static void open_world(world *w, where on, const char *channels)
{
    open_auto(w, on, channels);
    w->rt->steady = true;
}

static void close_world(world *w)
{
    CHECK_EQ(w->rt->stats.lazy_nodes, 0);
    dc_lazy_close(w->rt); /* so that the world sees what is left besides */
    world_close(w);
}

/* ---- values ---- */

static void test_values(where on, int64_t n)
{
    world w;
    open_world(&w, on, "");
    dc_lazy *x = data(&w, n, 1), *k = num(&w, 2.5f), *c = num(&w, 7);
    dc_lazy *y = op2(&w, DC_OP_MUL, x, k), *z = op2(&w, DC_OP_ADD, y, c);
    CHECK(y->value == NULL && z->value == NULL);
    CHECK_EQ(w.rt->stats.realized, 0);
    CHECK(at(&w, z, 0) == 9.5f && at(&w, z, 3) == 17.0f);
    CHECK_EQ(w.rt->stats.realized, 1);
    CHECK(z->dropped && z->nin == 0 && y->value == NULL);
    CHECK(strcmp(z->where, "a.lua:7") == 0);
    const uint64_t compiles = w.rt->stats.compiles;
    CHECK_EQ(compiles > 0, on == ON_CPU && n > DC_LAZY_WORK);

    /* other numbers and values: the same program */
    dc_lazy *x2 = data(&w, n, -3), *k2 = num(&w, -1.5f);
    dc_lazy *y2 = op2(&w, DC_OP_MUL, x2, k2), *z2 = op2(&w, DC_OP_ADD, y2, c);
    CHECK(at(&w, z2, 0) == 11.5f && at(&w, z2, 3) == 7.0f);
    CHECK_EQ(w.rt->stats.lazy_programs, 1);
    CHECK_EQ(w.rt->stats.compiles, compiles);
    CHECK(at(&w, z, 0) == 9.5f); /* the first result is still what it was */

    /* one tensor twice is another structure, and so is a tensor for a number */
    dc_lazy *sq = op2(&w, DC_OP_MUL, x, x), *s = op2(&w, DC_OP_ADD, sq, c);
    CHECK(at(&w, s, 1) == 11.0f);
    CHECK_EQ(w.rt->stats.lazy_programs, 2);
    GIVE_BACK(x, k, c, y, z, x2, k2, y2, z2, sq, s);
    close_world(&w);
}

static void test_several(where on)
{
    world w;
    open_world(&w, on, "");
    dc_lazy *x = data(&w, 4, 1);
    making m = {.w = &w, .op = DC_OP_MUL, .in = {x, x}, .n = 2, .nout = 2};
    CHECK_EQ(dc_protect(w.j, build_body, &m), DC_OK);
    CHECK(m.out[0]->kind == DC_LAZY_PICK && m.out[1]->kind == DC_LAZY_PICK);
    dc_lazy *sum = op2(&w, DC_OP_ADD, m.out[0], m.out[1]);
    CHECK(at(&w, sum, 3) == 0.0f); /* the pair is a program of its own */
    CHECK_EQ(w.rt->stats.realized, 2);
    CHECK(at(&w, m.out[0], 3) == 16.0f && at(&w, m.out[1], 3) == -16.0f);
    CHECK_EQ(w.rt->stats.realized, 2);
    GIVE_BACK(x, m.out[0], m.out[1], sum);
    close_world(&w);
}

static void test_views(where on)
{
    world w;
    open_world(&w, on, "");
    const int64_t dim[2] = {2, 3};
    const dc_type want = dc_type_make(DC_F32, 2, dim);
    dc_lazy *x = data(&w, 6, 1), *v = build(&w, (making){.in = {x}, .n = 1, .want = &want});
    const uint64_t live = w.rt->stats.bytes_live;
    CHECK(at(&w, v, 5) == 6.0f);
    CHECK_EQ(w.rt->stats.realized, 0);
    CHECK_EQ(w.rt->stats.bytes_live, live); /* the same memory */
    CHECK_EQ(v->value->type.rank, 2);
    GIVE_BACK(x);
    CHECK(at(&w, v, 5) == 6.0f);
    GIVE_BACK(v);
    close_world(&w);
}

static void test_read_elsewhere(where on)
{
    world w;
    open_world(&w, on, "");
    dc_lazy *x = data(&w, 4, 1), *k = num(&w, 3), *y = op2(&w, DC_OP_MUL, x, k);
    dc_lazy *a = op1(&w, DC_OP_NEG, y), *b = op2(&w, DC_OP_ADD, y, y);
    CHECK(at(&w, a, 1) == -6.0f);
    CHECK(y->value != NULL); /* b reads it */
    CHECK_EQ(w.rt->stats.realized, 1);
    CHECK(at(&w, b, 1) == 12.0f);
    GIVE_BACK(a, b);
    a = op1(&w, DC_OP_EXP, y);
    b = op2(&w, DC_OP_MUL, a, a); /* only b reads a */
    CHECK(at(&w, b, 0) > 400.0f && a->value == NULL);
    GIVE_BACK(x, k, y, a, b);
    close_world(&w);
}

/* ---- cells ---- */

static void test_cells(where on)
{
    world w;
    open_world(&w, on, "");
    dc_cell *p = world_cell(&w, 4, 1, "p"), *s = world_cell(&w, 4, 10, "s");
    p->trainable = true;
    s->trainable = false;
    dc_lazy *lp = leaf(&w, (leafing){.c = p}), *ls = leaf(&w, (leafing){.c = s});
    dc_lazy *y = op2(&w, DC_OP_ADD, lp, ls), *z = op2(&w, DC_OP_ADD, ls, ls);
    CHECK(y->param && !z->param);
    dc_tensor *fresh = world_tensor(&w, DC_F32, 4, 100);
    CHECK_EQ(dc_cell_write(p, w.j, fresh), DC_OK);
    CHECK_EQ(dc_cell_write(s, w.j, fresh), DC_OK);
    CHECK(at(&w, y, 1) == 13.0f && at(&w, z, 1) == 22.0f); /* what was read */
    CHECK_EQ(y->nin, 2);
    CHECK_EQ(z->nin, 0); /* recipes stay where a parameter is read */
    p->job = "train";
    leafing l = {.w = &w, .c = p};
    CHECK_EQ(dc_protect(w.j, leaf_body, &l), DC_E_STATE);
    CHECK_EQ(world_failure(&w), DC_ERR_JOB);
    p->job = NULL;
    GIVE_BACK(lp, ls, y, z);
    dc_tensor_release(fresh);
    dc_cell_release(p);
    dc_cell_release(s);
    close_world(&w);
}

/* ---- limits ---- */

static dc_status limit_body(dc_job *j, void *arg)
{
    const realizing *r = arg;
    return dc_lazy_limit(r->w->rt, j, r->n);
}

static dc_status limit(world *w, dc_lazy *n)
{
    realizing r = {w, n};
    return dc_protect(w->j, limit_body, &r);
}

static void test_limits(void)
{
    world w;
    open_world(&w, ON_EVAL, "");
    dc_lazy *x = data(&w, 2, 0), *one = num(&w, 2);
    for (int i = 1; i <= 200; i++) {
        dc_lazy *y = op2(&w, DC_OP_ADD, x, one);
        dc_lazy_release(x);
        x = y;
        CHECK_EQ(limit(&w, x), DC_OK);
        CHECK_EQ(x->value != NULL, i % DC_LAZY_PENDING == 0);
    }
    CHECK(at(&w, x, 1) == 401.0f);
    dc_cell *p = world_cell(&w, 2, 0, "p");
    p->trainable = true;
    dc_lazy *y = leaf(&w, (leafing){.c = p});
    for (int i = 1; i <= DC_LAZY_RECIPE + 1; i++) {
        dc_lazy *z = op2(&w, DC_OP_ADD, y, i % 2 ? one : y); /* shared: bounds are far too high */
        dc_lazy_release(y);
        y = z;
        CHECK_EQ(limit(&w, y), i > DC_LAZY_RECIPE ? DC_E_STATE : DC_OK);
    }
    CHECK_EQ(world_failure(&w), DC_ERR_LAZY_LONG);
    GIVE_BACK(x, y, one);
    dc_cell_release(p);
    close_world(&w);
}

/* A chain that would overflow the stack of a recursive walk. */
static void test_long_chains(void)
{
    world w;
    open_world(&w, ON_EVAL, "");
    dc_cell *p = world_cell(&w, 2, 0, "p");
    p->trainable = true;
    dc_lazy *x = leaf(&w, (leafing){.c = p});
    for (int i = 0; i < 200000; i++) {
        dc_lazy *y = op1(&w, DC_OP_NEG, x);
        dc_lazy_release(x);
        x = y;
    }
    CHECK_EQ(limit(&w, x), DC_E_STATE); /* walks it */
    CHECK(w.rt->stats.lazy_nodes > 200000);
    dc_lazy_release(x);
    dc_cell_release(p);
    close_world(&w);
}

static void test_table_is_bounded(void)
{
    world w;
    open_world(&w, ON_EVAL, "");
    dc_lazy *one = num(&w, 2);
    for (int round = 0; round < 2; round++)
        for (int i = 1; i <= 300; i++) {
            dc_lazy *x = data(&w, i, 0), *y = op2(&w, DC_OP_ADD, x, one);
            CHECK(at(&w, y, i - 1) == (float)(i + 1));
            GIVE_BACK(x, y);
        }
    CHECK_EQ(w.rt->stats.lazy_programs, 600); /* each was gone when it was wanted again */
    CHECK(w.rt->lazy->nentry <= 256);
    GIVE_BACK(one);
    close_world(&w);
}

/* ---- gradients ---- */

typedef struct differentiating {
    world *w;
    dc_lazy *loss;
    dc_lazy_wrt wrt[2];
    int n;
    bool zero;
    dc_lazy *out[2];
} differentiating;

static dc_status grad_body(dc_job *j, void *arg)
{
    differentiating *d = arg;
    dc_lazy *message;
    return dc_lazy_grad(d->w->rt, j, d->loss, d->wrt, d->n, d->zero, "a.lua:9", NULL, d->out,
                        &message);
}

static void test_gradients(where on)
{
    world w;
    open_world(&w, on, "");
    dc_cell *p = world_cell(&w, 4, 1, "p"), *q = world_cell(&w, 4, 1, "q");
    p->trainable = q->trainable = true;
    dc_lazy *x = data(&w, 4, 2), *lp = leaf(&w, (leafing){.c = p});
    dc_lazy *again = leaf(&w, (leafing){.c = p}); /* the same version */
    dc_lazy *y = op2(&w, DC_OP_MUL, lp, again), *z = op2(&w, DC_OP_MUL, y, x);
    dc_lazy *loss = op1(&w, DC_OP_SUM, z);
    differentiating d = {.w = &w,
                         .loss = loss,
                         .wrt = {{.cell = p, .name = "p", .type = p->type},
                                 {.node = x, .name = "x", .type = x->type}},
                         .n = 2};
    CHECK_EQ(dc_protect(w.j, grad_body, &d), DC_OK);
    CHECK(at(&w, d.out[0], 2) == 2 * 3 * 4.0f);
    CHECK_EQ(w.rt->stats.realized, 1);
    CHECK(at(&w, d.out[1], 2) == 9.0f && at(&w, loss, 0) == 1 * 2 + 4 * 3 + 9 * 4 + 16 * 5);
    CHECK_EQ(w.rt->stats.realized, 1); /* all of them are one program */

    /* of the gradient, whose value is there already */
    dc_lazy *total = op1(&w, DC_OP_SUM, d.out[0]);
    differentiating second = {.w = &w, .loss = total, .wrt = {d.wrt[0]}, .n = 1};
    CHECK_EQ(dc_protect(w.j, grad_body, &second), DC_OK);
    CHECK(at(&w, second.out[0], 2) == 8.0f);

    differentiating unused = {
        .w = &w, .loss = loss, .wrt = {{.cell = q, .name = "q", .type = q->type}}, .n = 1};
    CHECK_EQ(dc_protect(w.j, grad_body, &unused), DC_E_TYPE);
    CHECK_EQ(world_failure(&w), DC_ERR_GRAD_UNUSED);
    unused.zero = true;
    CHECK_EQ(dc_protect(w.j, grad_body, &unused), DC_OK);
    CHECK(at(&w, unused.out[0], 3) == 0.0f);

    /* a recipe that is gone */
    dc_lazy *x2 = op2(&w, DC_OP_MUL, x, x);
    CHECK(at(&w, x2, 0) == 4.0f);
    dc_lazy *behind = op1(&w, DC_OP_SUM, x2);
    differentiating gone = {.w = &w, .loss = behind, .wrt = {d.wrt[1]}, .n = 1, .zero = true};
    CHECK_EQ(dc_protect(w.j, grad_body, &gone), DC_E_STATE);
    CHECK_EQ(world_failure(&w), DC_ERR_GRAD_DROPPED);
    GIVE_BACK(x, lp, again, y, z, loss, d.out[0], d.out[1], total, second.out[0], unused.out[0], x2,
              behind);
    dc_cell_release(p);
    dc_cell_release(q);
    close_world(&w);
}

/* ---- what computes ---- */

/* (x * x + x):sum() of n elements: is it compiled? */
static bool computes(world *w, int64_t n)
{
    const uint64_t compiles = w->rt->stats.compiles, interpreted = w->rt->stats.interpreted;
    dc_lazy *x = data(w, n, 1), *y = op2(w, DC_OP_MUL, x, x), *z = op2(w, DC_OP_ADD, y, x);
    dc_lazy *sum = op1(w, DC_OP_SUM, z);
    const double m = (double)n, want = m * (m + 1) * (2 * m + 1) / 6 + m * (m + 1) / 2;
    CHECK_NEAR(at(w, sum, 0), want, want * 1e-5);
    const bool compiled = w->rt->stats.interpreted == interpreted;
    CHECK_EQ(w->rt->stats.interpreted - interpreted, !compiled);
    CHECK(compiled || w->rt->stats.compiles == compiles);
    GIVE_BACK(x, y, z, sum);
    return compiled;
}

/* How often it is interpreted before it is compiled; `most` and it has not been. */
static int interpretations(world *w, int64_t n, int most)
{
    int i = 0;
    while (i < most && !computes(w, n))
        i++;
    for (int k = 0; i < most && k < 3; k++)
        CHECK(computes(w, n)); /* and so it stays */
    return i;
}

/*
 * The interpreter, until what it has taken is what a compilation costs, the first one more than later ones. Much work is
 * compiled at once; little never; the counts are the same in each context; other sizes have their own.
 */
static void test_rents(void)
{
    int before[2] = {0};
    for (int round = 0; round < 2; round++) {
        world w;
        open_auto(&w, ON_CPU, "");
        CHECK_EQ(interpretations(&w, 1000, 300), 300);
        const int first = interpretations(&w, 60000, 1000);
        CHECK(first > 10 && first < 300);
        const int later = interpretations(&w, 60001, 1000);
        CHECK(later > 3 && later <= first / 2 + 1);
        CHECK(round == 0 || (first == before[0] && later == before[1]));
        before[0] = first;
        before[1] = later;
        const int seldom = interpretations(&w, 300000, 1000);
        CHECK(seldom >= 1 && seldom < later);
        CHECK_EQ(interpretations(&w, 2000000, 10), 0);
        close_world(&w);
    }
}

/* Many sizes, once each: none is compiled. What was compiled before keeps its program. */
static void test_many_sizes(void)
{
    world w;
    open_auto(&w, ON_CPU, "");
    CHECK(interpretations(&w, 200000, 1000) < 1000);
    const uint64_t compiles = w.rt->stats.compiles;
    for (int64_t n = 5000; n < 5300; n++)
        CHECK(!computes(&w, n));
    CHECK_EQ(w.rt->stats.compiles, compiles);
    CHECK(w.rt->lazy->nentry <= 256);
    CHECK(computes(&w, 200000));
    CHECK_EQ(w.rt->stats.compiles, compiles);
    close_world(&w);
}

/* By structure and sizes alone. */
static void test_steady(void)
{
    world w;
    open_auto(&w, ON_CPU, "");
    CHECK(!computes(&w, 20000));
    w.rt->steady = true;
    CHECK(!computes(&w, DC_LAZY_WORK / 4));
    CHECK(computes(&w, 20000));
    CHECK(computes(&w, 20000));
    close_world(&w);
}

/* Where memory is short, no array for each operation. */
static void test_short_memory(void)
{
    for (int limit = 0; limit < 2; limit++) {
        world w;
        open_auto(&w, ON_CPU, "");
        w.rt->opt.memory = limit ? 4 << 20 : 0;
        CHECK_EQ(computes(&w, 100000), limit);
        w.rt->opt.memory = 0;
        close_world(&w);
    }
}

/* ---- while it runs ---- */

typedef struct listener {
    world *w;
    dc_lazy *n;
    int heard;
} listener;

/* The log sink realizes the same node. */
static void on_line(void *ctx)
{
    listener *l = ctx;
    if (l->heard++ > 0)
        return;
    realizing r = {l->w, l->n};
    dc_job own;
    dc_job_init(&own, &l->w->opt, &l->w->rt->log);
    CHECK_EQ(dc_protect(&own, realize_body, &r), DC_OK);
    dc_job_fini(&own);
}

static void test_realized_by_a_listener(void)
{
    world w;
    open_world(&w, ON_CPU, "plan");
    dc_lazy *x = data(&w, 10000, 1), *y = op2(&w, DC_OP_MUL, x, x), *z = op2(&w, DC_OP_ADD, y, x);
    listener l = {&w, z, 0};
    GIVE_BACK(x, y); /* only z holds them */
    w.on_line = on_line;
    w.line_ctx = &l;
    CHECK(at(&w, z, 2) == 12.0f);
    CHECK(l.heard > 0);
    w.on_line = NULL;
    GIVE_BACK(z);
    close_world(&w);
}

static void test_failures(void)
{
    world w;
    open_world(&w, ON_CPU, "");
    dc_lazy *x = data(&w, 10000, 1), *y = op2(&w, DC_OP_MUL, x, x);
    realizing r = {&w, y};
    const char *at_line, *path;
    w.dev->fail_run = true;
    CHECK_EQ(dc_protect(w.j, realize_body, &r), DC_E_DEVICE);
    dc_lazy_place(w.rt, &at_line, &path);
    CHECK(at_line != NULL && strcmp(at_line, "a.lua:7") == 0);
    w.dev->fail_run = false;
    CHECK(y->value == NULL);
    CHECK(at(&w, y, 2) == 9.0f); /* nothing had changed */
    dc_lazy_place(w.rt, &at_line, &path);
    CHECK(at_line == NULL);
    GIVE_BACK(x, y);
    close_world(&w);
}

int main(void)
{
    for (where on = ON_EVAL; on <= ON_CPU; on++) {
        test_values(on, 4);
        test_values(on, 10000);
        test_several(on);
        test_views(on);
        test_read_elsewhere(on);
        test_cells(on);
        test_gradients(on);
    }
    test_limits();
    test_long_chains();
    test_table_is_bounded();
    test_rents();
    test_many_sizes();
    test_steady();
    test_short_memory();
    test_realized_by_a_listener();
    test_failures();
    return t_done();
}
