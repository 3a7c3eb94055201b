#include "tests/unit/bodygen.h"

#include "core/ir/control.h"

enum { MAX_N = 4, MAX_PARAMS = 16, MAX_RESULTS = 32, MAX_STACKED = 4000 };

typedef struct gen {
    rng rnd;
    int depth;
    dc_func *f;
} gen;

static int below(gen *g, int n)
{
    return rng_below(&g->rnd, n);
}

static bool chance(gen *g, int percent)
{
    return below(g, 100) < percent;
}

dc_ref bodygen_fit(dc_func *f, dc_ref r, const dc_type *t)
{
    const int64_t have = dc_node_count(dc_node_at(f, r)), need = dc_type_count(t);
    if (have == 0 || need == 0)
        return dc_graph_const(f, t, 1);
    r = dc_graph_reshape(f, dc_graph_cast(f, r, (dc_dtype)t->dtype), 1, &have);
    if (have < need) {
        const int64_t times = (need + have - 1) / have, all = times * have;
        r = dc_graph_reshape(f, r, 2, (const int64_t[]){1, have});
        r = dc_graph_expand(f, r, (const int64_t[]){times, have});
        r = dc_graph_reshape(f, r, 1, &all);
    }
    r = dc_graph_slice(f, r, (const int64_t[]){0}, (const int64_t[]){1}, &need);
    return dc_graph_reshape(f, r, t->rank, t->dim);
}

static dc_ref any_operand(gen *g, const dc_type *t)
{
    return bodygen_fit(g->f, graphgen_whole(g->f, 1 + (dc_ref)below(g, (int)g->f->node.n - 1)), t);
}

/* Floats that go round in a loop stay small. */
static dc_ref tamed(dc_func *f, dc_ref r)
{
    if (!dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype))
        return r;
    r = dc_graph_op2(f, DC_OP_MAX, r, dc_graph_like(f, r, -8));
    return dc_graph_op2(f, DC_OP_MIN, r, dc_graph_like(f, r, 8));
}

static dc_func *inner(gen *g)
{
    const uint64_t seed = rng_next(&g->rnd) >> 16;
    const int size = 2 + below(g, 6);
    return bodygen_func(g->f->module, seed, size, g->depth > 0 && chance(g, 30) ? g->depth - 1 : 0);
}

/* x W + h U + b, limited, and a product of that. */
static dc_func *recurrent(gen *g)
{
    const int64_t n = 1 + below(g, 3), in = 1 + below(g, 3), own = 1 + below(g, 3);
    const int64_t dim[6][2] = {{n, in}, {in, own}, {n, own}, {own, own}, {n, own}, {own, in}};
    static const char *const label[6] = {"x", "w", "h", "u", "b", "v"};
    dc_func *f = dc_func_new(g->f->module, "cell");
    dc_ref p[6];
    for (int i = 0; i < 6; i++) {
        const dc_type t = dc_type_make(DC_F32, 2, dim[i]);
        p[i] = dc_graph_param(f, &t, label[i]);
    }
    const int64_t left = 1, right = 0;
    dc_ref r = dc_graph_dot(f, p[0], p[1], 0, NULL, NULL, 1, &left, &right);
    r = dc_graph_op2(f, DC_OP_ADD, r, chance(g, 50) ? p[4] : dc_graph_op1(f, DC_OP_NEG, p[4]));
    r = dc_graph_op2(f, DC_OP_ADD, r, dc_graph_dot(f, p[2], p[3], 0, NULL, NULL, 1, &left, &right));
    r = tamed(f, r);
    DC_PUSH(f->result, r);
    if (chance(g, 50))
        r = dc_graph_op1(f, DC_OP_ABS, r);
    DC_PUSH(f->result, dc_graph_dot(f, r, p[5], 0, NULL, NULL, 1, &left, &right));
    return f;
}

/* ---- loops ----------------------------------------------------------------------------------- */

enum { CONSTANT, CARRY, X };

typedef struct looping {
    gen *g;
    const dc_func *h; /* what the body computes, on its parameters, */
    bool cell;        /* of a recurrent network */
    int role[MAX_PARAMS];
    dc_func *body;
    dc_ref i, test, param[MAX_PARAMS]; /* which these are in the body; its results: */
    dc_ref result[MAX_RESULTS];
    dc_loop l;
    dc_ref in[MAX_PARAMS + MAX_RESULTS + 2];
    int nin;
} looping;

static bool may_stack(const dc_type *t)
{
    return t->rank < DC_MAX_RANK - 1 && dc_type_count(t) * MAX_N <= MAX_STACKED;
}

static void choose_roles(looping *w)
{
    for (uint32_t i = 0; i < w->h->param.n; i++) {
        const dc_type t = dc_node_type(w->h, w->h->param.at[i]);
        const char *label = w->h->label.at[i];
        w->role[i] = below(w->g, 3);
        if (w->cell)
            w->role[i] = label[0] == 'x' ? X : label[0] == 'h' ? CARRY : CONSTANT;
        if (w->role[i] == X && !may_stack(&t))
            w->role[i] = CARRY;
        w->l.nconst += w->role[i] == CONSTANT;
        w->l.ncarry += w->role[i] == CARRY;
        w->l.nx += w->role[i] == X;
    }
}

/* Parameters of the body with their operands, of one role. */
static void add_role(looping *w, int role)
{
    for (uint32_t i = 0; i < w->h->param.n; i++) {
        dc_type t = dc_node_type(w->h, w->h->param.at[i]);
        if (w->role[i] != role)
            continue;
        w->param[i] = dc_graph_param(w->body, &t, w->h->label.at[i]);
        if (role == X)
            t = dc_type_stacked(&t, w->l.n);
        w->in[w->nin] = any_operand(w->g, &t);
        if (w->nin > 0 && chance(w->g, 10)) { /* one that was given before, if it fits */
            const dc_type last = dc_node_type(w->g->f, w->in[w->nin - 1]);
            if (dc_type_same(&last, &t))
                w->in[w->nin] = w->in[w->nin - 1];
        }
        w->nin++;
    }
}

static void add_test(looping *w)
{
    const dc_type flag = dc_type_scalar(DC_BOOL);
    w->test = dc_graph_param(w->body, &flag, "test");
    w->in[w->nin++] =
        chance(w->g, 70) ? dc_graph_const(w->g->f, &flag, 1) : any_operand(w->g, &flag);
    w->l.ncarry++;
}

static void add_params(looping *w)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    w->i = dc_graph_param(w->body, &i32, "i");
    if (w->l.flags & DC_LOOP_LIMIT) {
        const dc_ref r = any_operand(w->g, &i32);
        w->in[w->nin++] = dc_graph_op2(w->g->f, DC_OP_REM, r, dc_graph_like(w->g->f, r, 2 + MAX_N));
    }
    add_role(w, CONSTANT);
    if (w->l.flags & DC_LOOP_TEST)
        add_test(w);
    add_role(w, CARRY);
    add_role(w, X);
}

/* What a carry is next: itself, another one, or something made of a result. */
static dc_ref next_carry(looping *w, dc_ref own)
{
    const dc_type t = dc_node_type(w->body, own);
    const int kind = below(w->g, 10);
    dc_ref r = own;
    if (w->cell)
        return w->result[0];
    if (kind == 0)
        return own;
    if (kind > 1 && w->h->result.n > 0)
        r = w->result[below(w->g, (int)w->h->result.n)];
    else
        r = w->param[below(w->g, (int)w->h->param.n)];
    r = tamed(w->body, bodygen_fit(w->body, r, &t));
    if (t.dtype != DC_BOOL && chance(w->g, 40))
        r = dc_graph_op2(w->body, DC_OP_ADD, r, kind < 6 ? own : bodygen_fit(w->body, w->i, &t));
    return r;
}

static dc_ref next_test(looping *w)
{
    const dc_type flag = dc_type_scalar(DC_BOOL);
    if (chance(w->g, 30) || w->h->result.n == 0)
        return dc_graph_op2(w->body, DC_OP_NE, w->i, dc_graph_like(w->body, w->i, below(w->g, 4)));
    const dc_ref r = bodygen_fit(w->body, w->result[0], &flag);
    return dc_graph_op2(w->body, DC_OP_OR, r, dc_graph_op2(w->body, DC_OP_NE, w->test, r));
}

static void add_y(looping *w, dc_ref r)
{
    const dc_type t = dc_node_type(w->body, r), all = dc_type_stacked(&t, w->l.n);
    if (!may_stack(&t) || w->l.ny == MAX_RESULTS)
        return;
    DC_PUSH(w->body->result, r);
    w->l.ny++;
    if (dc_loop_may_end(&w->l))
        w->in[w->nin++] = any_operand(w->g, &all);
}

static void add_results(looping *w)
{
    dc_graph_inline(w->body, w->h, w->param, w->result);
    if (w->l.flags & DC_LOOP_TEST)
        DC_PUSH(w->body->result, next_test(w));
    for (uint32_t i = 0; i < w->h->param.n; i++)
        if (w->role[i] == CARRY)
            DC_PUSH(w->body->result, next_carry(w, w->param[i]));
    for (uint32_t i = 0; i < w->h->result.n; i++)
        if (chance(w->g, 70))
            add_y(w, w->result[i]);
    if (chance(w->g, 20))
        add_y(w, w->i);
    if (w->h->param.n > 0 && chance(w->g, 20))
        add_y(w, w->param[below(w->g, (int)w->h->param.n)]);
}

/* Another loop on the same operands that keeps more, as the gradient makes one. */
static dc_ref add_longer(looping *w)
{
    gen *g = w->g;
    dc_func *body = dc_func_clone(g->f->module, dc_body_at(g->f->module, w->l.body), NULL);
    w->body = body;
    for (int i = 0; i < 2; i++)
        if (body->node.n > 1)
            add_y(w, graphgen_whole(body, 1 + (dc_ref)below(g, (int)body->node.n - 1)));
    w->l.body = dc_body_add(g->f->module, body);
    dc_func_drop(body);
    return dc_graph_loop(g->f, &w->l, w->in);
}

static void read_results(gen *g, dc_ref r);

static dc_ref add_loop(gen *g)
{
    const bool cell = chance(g, 35);
    dc_func *h = cell ? recurrent(g) : inner(g);
    looping w = {.g = g, .h = h, .cell = cell && chance(g, 80), .l = {.n = below(g, MAX_N + 1)}};
    if (cell && chance(g, 70))
        w.l.n += 4;
    w.l.flags = chance(g, 40) ? 0 : (uint32_t)below(g, 8);
    w.body = dc_func_new(g->f->module, "body");
    choose_roles(&w);
    add_params(&w);
    add_results(&w);
    w.l.body = dc_body_add(g->f->module, w.body);
    dc_func_drop(w.body);
    const dc_ref r = dc_graph_loop(g->f, &w.l, w.in);
    if (chance(g, 30))
        read_results(g, add_longer(&w));
    dc_func_drop(h);
    return r;
}

/* ---- branches -------------------------------------------------------------------------------- */

/* A body on parameters like those of h, whose results are like those of h, too. */
static uint32_t make_side(gen *g, const dc_func *h, const dc_func *what)
{
    dc_func *body = dc_func_new(g->f->module, "side");
    dc_ref param[MAX_PARAMS], fit[MAX_PARAMS], result[MAX_RESULTS] = {0};
    for (uint32_t i = 0; i < h->param.n; i++) {
        const dc_type t = dc_node_type(h, h->param.at[i]);
        param[i] = dc_graph_param(body, &t, h->label.at[i]);
    }
    for (uint32_t i = 0; i < what->param.n; i++) {
        const dc_type t = dc_node_type(what, what->param.at[i]);
        fit[i] = h->param.n > 0 ? bodygen_fit(body, param[i % h->param.n], &t)
                                : dc_graph_const(body, &t, 1);
    }
    dc_graph_inline(body, what, fit, result);
    for (uint32_t i = 0; i < h->result.n; i++) {
        const dc_type t = dc_node_type(h, h->result.at[i]);
        dc_ref r = result[i % (what->result.n > 0 ? what->result.n : 1)];
        if (h->param.n > 0 && chance(g, 15))
            r = param[0];
        DC_PUSH(body->result, r == 0 ? dc_graph_const(body, &t, 2) : bodygen_fit(body, r, &t));
    }
    const uint32_t made = dc_body_add(g->f->module, body);
    dc_func_drop(body);
    return made;
}

static dc_ref add_branch(gen *g)
{
    dc_func *h = inner(g), *other = inner(g);
    const dc_type flag = dc_type_scalar(DC_BOOL);
    dc_ref in[1 + MAX_PARAMS];
    in[0] = any_operand(g, &flag);
    if (chance(g, 20))
        in[0] = dc_graph_const(g->f, &flag, below(g, 2));
    for (uint32_t i = 0; i < h->param.n; i++) {
        const dc_type t = dc_node_type(h, h->param.at[i]);
        in[1 + i] = any_operand(g, &t);
    }
    const uint32_t yes = make_side(g, h, h), no = make_side(g, h, other);
    const dc_ref r = dc_graph_branch(g->f, yes, no, in, 1 + (int)h->param.n);
    dc_func_drop(h);
    dc_func_drop(other);
    return r;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Picks of most results; what they are may be an operand of what comes next. */
static void read_results(gen *g, dc_ref r)
{
    const int n = dc_control_results(g->f, dc_node_at(g->f, r));
    for (int i = 0; i < n && g->f->result.n < MAX_RESULTS; i++)
        if (chance(g, 80))
            DC_PUSH(g->f->result, dc_graph_pick(g->f, r, i));
}

dc_func *bodygen_func(dc_module *m, uint64_t seed, int size, int depth)
{
    gen g = {{seed * 77 + 1}, depth, graphgen_func(m, seed, size)};
    const int n = depth == 0 ? 0 : 1 + below(&g, 2);
    for (int i = 0; i < n; i++)
        read_results(&g, chance(&g, 70) ? add_loop(&g) : add_branch(&g));
    return g.f;
}
