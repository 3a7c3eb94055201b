#include "tests/unit/loopgen.h"

#include "core/base/bits.h"
#include "core/ir/dot.h"

enum { DEPTH = 3, RANK = 3, MOST = 6, TYPES = 3, RESULTS = 4 };

typedef struct gen {
    rng *r;
    dc_func *f;
    int depth; /* of bodies around */
} gen;

static int64_t below(gen *g, int64_t n)
{
    return rng_below(g->r, n);
}

static bool chance(gen *g, int percent)
{
    return below(g, 100) < percent;
}

static dc_type random_type(gen *g)
{
    static const dc_dtype dtypes[] = {DC_F32, DC_F32, DC_F32, DC_I32, DC_BOOL};
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17};
    int64_t dim[RANK];
    const int rank = (int)below(g, RANK + 1);
    for (int i = 0; i < rank; i++)
        dim[i] = sizes[below(g, 9)];
    return dc_type_make(dtypes[below(g, 5)], rank, dim);
}

static dc_ref any_node(gen *g)
{
    for (;;) { /* of a function with one that is neither control flow nor empty */
        const dc_ref r = 1 + (dc_ref)below(g, g->f->node.n - 1);
        const dc_node *n = dc_node_at(g->f, r);
        if (!dc_is_control(n) && dc_node_count(n) > 0)
            return r;
    }
}

static dc_ref constant(gen *g, dc_ref like, double v)
{
    return dc_graph_like(g->f, like, v);
}

/* Whole numbers from -8 to 8. */
static dc_ref tamed(gen *g, dc_ref r)
{
    const dc_dtype t = (dc_dtype)dc_node_at(g->f, r)->dtype;
    if (t == DC_BOOL)
        return r;
    r = dc_graph_op2(g->f, DC_OP_MIN, r, constant(g, r, 8));
    return dc_graph_op2(g->f, DC_OP_MAX, r, constant(g, r, -8));
}

static dc_ref cast(gen *g, dc_ref r, dc_dtype t)
{
    if ((dc_dtype)dc_node_at(g->f, r)->dtype == t)
        return r;
    if (t == DC_BOOL)
        return dc_graph_op2(g->f, DC_OP_LT, r, constant(g, r, 1));
    return dc_graph_cast(g->f, r, t);
}

/* Of other dims: repeated, cut or added up. */
static dc_ref shaped(gen *g, dc_ref r, const dc_type *t)
{
    const dc_type is = dc_node_type(g->f, r);
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], ones[DC_MAX_RANK];
    bool cuts = is.rank == t->rank;
    for (int i = 0; i < t->rank; i++)
        step[i] = ones[i] = 1;
    for (int i = 0; i < t->rank; i++)
        cuts = cuts && is.dim[i] >= t->dim[i];
    if (cuts)
        return dc_graph_slice(g->f, r, start, step, t->dim);
    const uint32_t all = (1u << is.rank) - 1;
    if (is.rank > 0)
        r = dc_graph_reduce(g->f, is.dtype == DC_F32 && chance(g, 50) ? DC_OP_SUM : DC_OP_MAXR, r,
                            all);
    return dc_graph_expand(g->f, dc_graph_reshape(g->f, tamed(g, r), t->rank, ones), t->dim);
}

/* A node of the type, made of one that is there. */
static dc_ref fetch(gen *g, const dc_type *t)
{
    dc_ref r = any_node(g);
    for (int tries = 0; tries < 8; tries++) { /* some have it */
        const dc_ref s = any_node(g);
        const dc_type is = dc_node_type(g->f, s);
        if (dc_type_same(&is, t))
            return s;
    }
    if (dc_node_at(g->f, r)->dtype == DC_BOOL)
        r = cast(g, r, DC_I32);
    r = shaped(g, tamed(g, r), t);
    return cast(g, r, (dc_dtype)t->dtype);
}

static dc_ref scalar(gen *g, dc_dtype t)
{
    const dc_type type = dc_type_make(t, 0, NULL);
    return fetch(g, &type);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void step_element_wise(gen *g)
{
    static const dc_op two[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MUL, DC_OP_MAX, DC_OP_MIN};
    const dc_ref a = any_node(g);
    dc_type t = dc_node_type(g->f, a), flag = t;
    flag.dtype = DC_BOOL;
    if (t.dtype == DC_BOOL)
        dc_graph_op2(g->f, DC_OP_XOR, a, fetch(g, &t));
    else if (chance(g, 20))
        dc_graph_op3(g->f, DC_OP_WHERE, fetch(g, &flag), a, fetch(g, &t));
    else
        tamed(g, dc_graph_op2(g->f, two[below(g, 5)], a, fetch(g, &t)));
}

static void step_reduce(gen *g)
{
    const dc_ref a = any_node(g);
    const dc_node *n = dc_node_at(g->f, a);
    if (n->rank > 0 && n->dtype != DC_BOOL)
        tamed(g, dc_graph_reduce(g->f, chance(g, 60) ? DC_OP_SUM : DC_OP_MAXR, a,
                                 1u << below(g, n->rank)));
}

static void step_permute(gen *g)
{
    const dc_ref a = any_node(g);
    if (dc_node_at(g->f, a)->rank == 2)
        dc_graph_permute(g->f, a, (const int64_t[]){1, 0});
}

static void step_dot(gen *g)
{
    const int64_t m = 1 + below(g, 9), k = 1 + below(g, 17), n = 1 + below(g, 17);
    const dc_type left = dc_type_make(DC_F32, 2, (const int64_t[]){m, k});
    const dc_type right = dc_type_make(DC_F32, 2, (const int64_t[]){k, n});
    const int64_t one = 1, zero = 0;
    const dc_ref a = fetch(g, &left), b = fetch(g, &right);
    tamed(g, dc_graph_dot(g->f, a, b, 0, NULL, NULL, 1, &one, &zero));
}

static void step_gather(gen *g)
{
    const dc_ref a = any_node(g);
    const int rank = dc_node_at(g->f, a)->rank;
    if (rank > 0)
        dc_graph_gather(g->f, a, scalar(g, DC_I32), (int)below(g, rank), 0);
}

/* One row of a is put. */
static void step_scatter(gen *g)
{
    const dc_ref a = any_node(g);
    const dc_type t = dc_node_type(g->f, a);
    if (t.rank == 0)
        return;
    const dc_type row = dc_type_make((dc_dtype)t.dtype, t.rank - 1, t.dim + 1);
    dc_graph_scatter(g->f, DC_OP_SCATTER, a, scalar(g, DC_I32), fetch(g, &row), 0, 0);
}

/* ---- control flow ---------------------------------------------------------------------------- */

static void grow(gen *g, int size);

/* What `from` is closed to: parameters of these types, results of those. */
static uint32_t make_body(gen *g, const dc_type *param, int nparam, const dc_type *result,
                          int nresult, int size)
{
    gen inner = {.r = g->r, .f = dc_func_new(g->f->module, ""), .depth = g->depth + 1};
    for (int i = 0; i < nparam; i++)
        dc_graph_param(inner.f, &param[i], NULL);
    if (nparam == 0) {
        const dc_type t = dc_type_make(DC_F32, 0, NULL);
        dc_graph_const(inner.f, &t, 3);
    }
    grow(&inner, size);
    for (int i = 0; i < nresult; i++) {
        const dc_ref r = fetch(&inner, &result[i]);
        DC_PUSH(inner.f->result, r);
    }
    const uint32_t body = dc_body_add(g->f->module, inner.f);
    dc_func_drop(inner.f);
    return body;
}

static void pick_some(gen *g, dc_ref control, int n)
{
    for (int i = 0; i < n; i++)
        if (chance(g, 80))
            dc_graph_pick(g->f, control, i);
}

static void step_branch(gen *g)
{
    dc_type param[MOST], result[MOST];
    dc_ref in[MOST + 1];
    const int nparam = (int)below(g, MOST), nresult = 1 + (int)below(g, 3);
    in[0] = scalar(g, DC_BOOL);
    for (int i = 0; i < nparam; i++) {
        in[1 + i] = any_node(g);
        param[i] = dc_node_type(g->f, in[1 + i]);
    }
    for (int i = 0; i < nresult; i++)
        result[i] = nparam > 0 && chance(g, 50) ? param[below(g, nparam)] : random_type(g);
    const uint32_t yes = make_body(g, param, nparam, result, nresult, 1 + (int)below(g, 5));
    const uint32_t no = make_body(g, param, nparam, result, nresult, 1 + (int)below(g, 5));
    pick_some(g, dc_graph_branch(g->f, yes, no, in, nparam + 1), nresult);
}

typedef struct parts { /* of a loop */
    dc_loop l;
    dc_type param[1 + 4 * MOST], result[2 * MOST];
    dc_ref in[1 + 5 * MOST];
    int nparam, nin;
} parts;

static void add_operand(gen *g, parts *p, const dc_type *t, dc_ref r)
{
    p->in[p->nin++] = r != 0 ? r : fetch(g, t);
    p->param[p->nparam++] = *t;
}

static void choose_flags(gen *g, parts *p)
{
    p->l.flags = (chance(g, 30) ? DC_LOOP_REVERSE : 0) | (chance(g, 25) ? DC_LOOP_LIMIT : 0) |
                 (chance(g, 20) ? DC_LOOP_TEST : 0);
    if (p->l.flags & DC_LOOP_TEST)
        p->l.flags &= ~(uint32_t)DC_LOOP_REVERSE;
    if (p->l.flags & DC_LOOP_LIMIT)
        p->in[p->nin++] = scalar(g, DC_I32);
}

static void step_loop(gen *g)
{
    parts p = {0};
    const dc_type flag = dc_type_make(DC_BOOL, 0, NULL);
    dc_type y[MOST];
    p.l.n = chance(g, 90) ? 1 + below(g, 6) : 0;
    p.param[p.nparam++] = dc_type_make(DC_I32, 0, NULL);
    choose_flags(g, &p);
    p.l.nconst = (int)below(g, 3);
    for (int i = 0; i < p.l.nconst; i++) {
        const dc_ref r = any_node(g);
        const dc_type t = dc_node_type(g->f, r);
        add_operand(g, &p, &t, r);
    }
    p.l.ncarry = (int)below(g, 3) + (p.l.flags & DC_LOOP_TEST ? 1 : 0);
    for (int i = 0; i < p.l.ncarry; i++) {
        const dc_type t = i == 0 && p.l.flags & DC_LOOP_TEST ? flag : random_type(g);
        p.result[i] = t;
        add_operand(g, &p, &t, 0);
    }
    p.l.nx = (int)below(g, 3);
    for (int i = 0; i < p.l.nx; i++) {
        const dc_type t = random_type(g), all = dc_type_stacked(&t, p.l.n);
        add_operand(g, &p, &t, fetch(g, &all));
    }
    p.l.ny = (int)below(g, 3) + (p.l.ncarry == 0);
    for (int i = 0; i < p.l.ny; i++) {
        y[i] = p.result[p.l.ncarry + i] =
            p.l.ncarry > 0 && chance(g, 50) ? p.result[below(g, p.l.ncarry)] : random_type(g);
        if (y[i].rank >= RANK)
            y[i] = p.result[p.l.ncarry + i] = dc_type_make(DC_F32, 0, NULL);
        const dc_type all = dc_type_stacked(&y[i], p.l.n);
        if (dc_loop_may_end(&p.l))
            p.in[p.nin++] = fetch(g, &all);
    }
    p.l.body = make_body(g, p.param, p.nparam, p.result, p.l.ncarry + p.l.ny, 2 + (int)below(g, 6));
    pick_some(g, dc_graph_loop(g->f, &p.l, p.in), p.l.ncarry + p.l.ny);
}

static void grow(gen *g, int size)
{
    for (int i = 0; i < size; i++) {
        const int64_t what = below(g, 100);
        if (g->depth < DEPTH && what < 15)
            step_loop(g);
        else if (g->depth < DEPTH && what < 22)
            step_branch(g);
        else if (what < 60)
            step_element_wise(g);
        else if (what < 72)
            step_dot(g);
        else if (what < 80)
            step_reduce(g);
        else if (what < 86)
            step_permute(g);
        else if (what < 93)
            step_gather(g);
        else
            step_scatter(g);
    }
}

dc_func *loopgen_func(dc_module *m, uint64_t seed, int size)
{
    rng r = {seed};
    gen g = {.r = &r, .f = dc_func_new(m, "loops")};
    for (int i = 0; i < 4; i++) {
        const dc_type t = random_type(&g);
        dc_graph_param(g.f, &t, "x");
    }
    grow(&g, size / 2);
    step_loop(&g);
    grow(&g, size / 2);
    for (int i = 0; i < RESULTS; i++) {
        const dc_ref last = g.f->node.n - 1, s = i == 0 ? last : any_node(&g);
        DC_PUSH(g.f->result, dc_is_control(dc_node_at(g.f, s)) ? any_node(&g) : s);
    }
    return g.f;
}

void loopgen_input(rng *r, const dc_type *t, void *out)
{
    const int64_t n = dc_type_count(t);
    const dc_dtype d = (dc_dtype)t->dtype;
    for (int64_t i = 0; i < n; i++) {
        const double v = d == DC_BOOL ? (double)rng_below(r, 2) : (double)(rng_below(r, 17) - 8);
        dc_bits_store(d, (char *)out + (size_t)i * dc_dtype_size(d), dc_bits_of(d, v));
    }
}
