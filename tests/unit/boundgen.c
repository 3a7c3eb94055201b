#include "core/autodiff/grad.h"
#include "core/base/bits.h"

#include <math.h>
#include <string.h>

#include "tests/unit/boundgen_impl.h"

enum { DEPTH = 2, MOST = 5, PARAMS = 12, RESULTS = 4 };

/* ---- sizes ------------------------------------------------------------------------------------ */

static void add_dim(boundgen *b, int64_t dim)
{
    if (dim != DC_EXTENT_NONE && dc_extent_lo(b->table, dim) >= 0 && dc_extent_bound(dim) >= 0 &&
        dc_extent_bound(dim) <= 100 && b->ndim < BOUNDGEN_DIMS)
        b->dim[b->ndim++] = dim;
}

static void make_dims(boundgen *b, rng *r)
{
    static const char *const name[BOUNDGEN_VARS] = {"n", "m", "t"};
    static const int least[] = {0, 1, 1, 3};
    dc_extents *e = b->table;
    b->nvar = 1 + rng_below(r, BOUNDGEN_VARS);
    for (int v = 0; v < b->nvar; v++) {
        b->least[v] = least[rng_below(r, 4)];
        b->most[v] = b->least[v] + (rng_below(r, 6) == 0 ? 10 + rng_below(r, 60) : rng_below(r, 7));
        b->most[v] += b->most[v] == 0;
        b->var[v] = dc_extent_var(e, name[v], b->least[v], b->most[v]);
        add_dim(b, b->var[v]);
        add_dim(b, b->var[v]);
    }
    for (int i = 0; i < 4; i++)
        add_dim(b, 1 + rng_below(r, 5));
    for (int i = 0; i < 8; i++) {
        const int64_t n = b->var[rng_below(r, b->nvar)], m = b->var[rng_below(r, b->nvar)];
        const int64_t k = 1 + rng_below(r, 3);
        switch (rng_below(r, 7)) {
        case 0:
            add_dim(b, dc_extent_add(e, n, k));
            break;
        case 1:
            add_dim(b, dc_extent_mul(e, n, k));
            break;
        case 2:
            add_dim(b, dc_extent_mul(e, n, m));
            break;
        case 3:
            add_dim(b, dc_extent_add(e, n, m));
            break;
        case 4:
            add_dim(b, dc_extent_div(e, dc_extent_add(e, n, k), rng_below(r, 4) == 0 ? 6 : 2));
            break;
        case 5:
            add_dim(b, dc_extent_sub(e, dc_extent_mul(e, n, k), 1));
            break;
        default:
            add_dim(b, dc_extent_sub(e, n, dc_extent_mul(e, dc_extent_div(e, n, 2), 2)));
            break;
        }
    }
}

dc_type bg_random_type(gen *g, int most_rank)
{
    static const dc_dtype dtypes[] = {DC_F32, DC_F32, DC_F32, DC_F32, DC_I32, DC_BOOL};
    int64_t dim[RANK];
    for (;;) {
        const int rank = below(g, most_rank + 1);
        for (int i = 0; i < rank; i++)
            dim[i] = any_dim(g);
        const dc_type t = dc_type_make(dtypes[below(g, 6)], rank, dim);
        if (dc_type_count(&t) <= LARGEST / 8)
            return t;
    }
}

/* ---- nodes ------------------------------------------------------------------------------------ */

dc_ref bg_make(gen *g, dc_op op, const dc_ref *in, int nin, const int64_t *attr, int nattr,
               const dc_type *want)
{
    static const dc_type none = {0};
    dc_ref r = 0;
    for (int i = 0; i < nin; i++)
        if (in[i] == 0)
            return 0;
    if (dc_make(g->j, g->f, op, in, nin, attr, nattr, want != NULL ? want : &none, &r) == DC_OK)
        return r;
    g->j->err = (dc_err){0};
    return 0;
}

static bool may_be_read(gen *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->f, r);
    return !dc_is_control(n) && n->rank <= RANK + 1 && dc_node_count(n) <= LARGEST &&
           (n->dtype == DC_F32 || n->dtype == DC_I32 || n->dtype == DC_BOOL);
}

dc_ref bg_any_node(gen *g)
{
    for (;;) {
        const dc_ref r = 1 + (dc_ref)below(g, (int)g->f->node.n - 1);
        if (may_be_read(g, r))
            return r;
    }
}

dc_ref bg_within(gen *g, dc_ref r, double limit)
{
    if (r == 0 || dc_node_at(g->f, r)->dtype == DC_BOOL)
        return r;
    r = dc_graph_op2(g->f, DC_OP_MIN, r, dc_graph_like(g->f, r, limit));
    return dc_graph_op2(g->f, DC_OP_MAX, r, dc_graph_like(g->f, r, -limit));
}

dc_ref bg_tamed(gen *g, dc_ref r)
{
    return bg_within(g, r, 8);
}

dc_ref bg_cast(gen *g, dc_ref r, dc_dtype t)
{
    if (r == 0 || (dc_dtype)dc_node_at(g->f, r)->dtype == t)
        return r;
    if (t == DC_BOOL)
        return dc_graph_op2(g->f, DC_OP_LT, r, dc_graph_like(g->f, r, 1));
    return dc_graph_cast(g->f, r, t);
}

/* All of r, in one number, everywhere. */
static dc_ref spread(gen *g, dc_ref r, const dc_type *t)
{
    const uint32_t all = (1u << dc_node_at(g->f, r)->rank) - 1;
    int64_t ones[DC_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        ones[i] = 1;
    r = bg_cast(g, r, t->dtype == DC_BOOL ? DC_I32 : (dc_dtype)t->dtype);
    if (all != 0)
        r = dc_graph_reduce(g->f, chance(g, 50) ? DC_OP_SUM : DC_OP_MAXR, r, all);
    r = dc_graph_expand(g->f, dc_graph_reshape(g->f, bg_tamed(g, r), t->rank, ones), t->dim);
    return bg_cast(g, r, (dc_dtype)t->dtype);
}

dc_ref bg_constant_of(gen *g, const dc_type *t)
{
    const int64_t axis = below(g, t->rank + 1);
    if (axis == t->rank || t->dtype == DC_BOOL)
        return dc_graph_const(g->f, t, t->dtype == DC_BOOL ? below(g, 2) : below(g, 7) - 3);
    return bg_cast(g,
                   bg_tamed(g, dc_graph_make(g->f, DC_OP_IOTA, NULL, 0, &axis, 1,
                                             &(dc_type){.dtype = DC_I32,
                                                        .rank = t->rank,
                                                        .dim = {t->dim[0], t->dim[1], t->dim[2],
                                                                t->dim[3], t->dim[4]}})),
                   (dc_dtype)t->dtype);
}

dc_ref bg_fetch(gen *g, const dc_type *t)
{
    for (int tries = 0; tries < TRIES; tries++) {
        const dc_ref s = bg_any_node(g);
        const dc_type is = type_of(g, s);
        if (dc_type_same(&is, t))
            return s;
    }
    if (g->params > 0 && chance(g, 70)) {
        g->params--;
        return dc_graph_param(g->f, t, "x");
    }
    return chance(g, 30) ? bg_constant_of(g, t) : spread(g, bg_any_node(g), t);
}

dc_ref bg_fetch_as(gen *g, dc_dtype dtype, int rank, const int64_t *dim)
{
    const dc_type t = dc_type_make(dtype, rank, dim);
    return dc_type_count(&t) > LARGEST ? 0 : bg_fetch(g, &t);
}

/* ---- control flow ----------------------------------------------------------------------------- */

static void grow(gen *g, int size);

static uint32_t make_body(gen *g, const dc_type *param, int nparam, const dc_type *result,
                          int nresult, int size)
{
    gen inner = *g;
    inner.f = dc_func_new(g->f->module, "");
    inner.depth++;
    inner.params = 0;
    for (int i = 0; i < nparam; i++)
        dc_graph_param(inner.f, &param[i], NULL);
    if (nparam == 0) {
        const dc_type t = dc_type_scalar(DC_F32);
        dc_graph_const(inner.f, &t, 3);
    }
    grow(&inner, size);
    for (int i = 0; i < nresult; i++) {
        const dc_ref r = bg_fetch(&inner, &result[i]);
        DC_PUSH(inner.f->result, r);
    }
    const uint32_t body = dc_body_add(g->f->module, inner.f);
    dc_func_drop(inner.f);
    return body;
}

static void pick_some(gen *g, dc_ref control, int n)
{
    for (int64_t i = 0; control != 0 && i < n; i++)
        if (chance(g, 80))
            bg_make(g, DC_OP_PICK, &control, 1, &i, 1, NULL);
}

static void step_branch(gen *g)
{
    dc_type param[MOST], result[MOST];
    dc_ref in[MOST + 1];
    int64_t attr[DC_BRANCH_ATTRS];
    const int nparam = below(g, MOST), nresult = 1 + below(g, 3);
    in[0] = bg_fetch_as(g, DC_BOOL, 0, NULL);
    for (int i = 0; i < nparam; i++) {
        in[1 + i] = bg_any_node(g);
        param[i] = type_of(g, in[1 + i]);
    }
    for (int i = 0; i < nresult; i++)
        result[i] = nparam > 0 && chance(g, 50) ? param[below(g, nparam)] : bg_random_type(g, RANK);
    for (int i = 0; i < DC_BRANCH_ATTRS; i++)
        attr[i] = make_body(g, param, nparam, result, nresult, 1 + below(g, 4));
    pick_some(g, bg_make(g, DC_OP_BRANCH, in, nparam + 1, attr, DC_BRANCH_ATTRS, NULL), nresult);
}

typedef struct parts { /* of a loop */
    dc_loop l;
    dc_type param[1 + 4 * MOST], result[2 * MOST];
    dc_ref in[1 + 5 * MOST];
    int nparam, nin;
} parts;

static void add_operand(gen *g, parts *p, const dc_type *t, dc_ref r)
{
    p->in[p->nin++] = r != 0 ? r : bg_fetch(g, t);
    p->param[p->nparam++] = *t;
}

static void step_loop(gen *g)
{
    parts p = {.l = {.n = chance(g, 75) ? any_dim(g) : below(g, 5)}};
    const dc_type flag = dc_type_scalar(DC_BOOL);
    int64_t attr[DC_LOOP_ATTRS];
    p.param[p.nparam++] = dc_type_scalar(DC_I32);
    p.l.flags = (chance(g, 30) ? DC_LOOP_REVERSE : 0) | (chance(g, 25) ? DC_LOOP_LIMIT : 0) |
                (chance(g, 20) ? DC_LOOP_TEST : 0);
    if (p.l.flags & DC_LOOP_TEST)
        p.l.flags &= ~(uint32_t)DC_LOOP_REVERSE;
    if (p.l.flags & DC_LOOP_LIMIT)
        p.in[p.nin++] = bg_fetch_as(g, DC_I32, 0, NULL);
    p.l.nconst = below(g, 3);
    for (int i = 0; i < p.l.nconst; i++) {
        const dc_ref r = bg_any_node(g);
        const dc_type t = type_of(g, r);
        add_operand(g, &p, &t, r);
    }
    p.l.ncarry = below(g, 3) + (p.l.flags & DC_LOOP_TEST ? 1 : 0);
    for (int i = 0; i < p.l.ncarry; i++) {
        const dc_type t = i == 0 && p.l.flags & DC_LOOP_TEST ? flag : bg_random_type(g, RANK);
        p.result[i] = t;
        add_operand(g, &p, &t, 0);
    }
    p.l.nx = below(g, 3);
    for (int i = 0; i < p.l.nx; i++) {
        const dc_type t = bg_random_type(g, RANK - 1), all = dc_type_stacked(&t, p.l.n);
        add_operand(g, &p, &t, bg_fetch(g, &all));
    }
    p.l.ny = below(g, 3) + (p.l.ncarry == 0);
    for (int i = 0; i < p.l.ny; i++) {
        const dc_type y = bg_random_type(g, RANK - 1), all = dc_type_stacked(&y, p.l.n);
        p.result[p.l.ncarry + i] = y;
        if (dc_loop_may_end(&p.l))
            p.in[p.nin++] = bg_fetch(g, &all);
    }
    p.l.body = make_body(g, p.param, p.nparam, p.result, p.l.ncarry + p.l.ny, 2 + below(g, 5));
    dc_loop_write(&p.l, attr);
    pick_some(g, bg_make(g, DC_OP_LOOP, p.in, p.nin, attr, DC_LOOP_ATTRS, NULL),
              p.l.ncarry + p.l.ny);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static void grow(gen *g, int size)
{
    for (int i = 0; i < size; i++) {
        const int what = below(g, 100);
        if (g->depth < DEPTH && what < 9)
            step_loop(g);
        else if (g->depth < DEPTH && what < 13)
            step_branch(g);
        else
            bg_step(g);
    }
}

/* Of the sum of a node with a float parameter. */
static void add_gradient(gen *g)
{
    dc_func *f = g->f;
    dc_ref loss = bg_any_node(g), wrt[2], d[2] = {0};
    int n = 0;
    const dc_node *x = dc_node_at(f, loss);
    if (x->dtype != DC_F32)
        return;
    if (x->rank > 0)
        loss = dc_graph_reduce(f, DC_OP_SUM, loss, (1u << x->rank) - 1);
    for (uint32_t i = 0; i < f->param.n && n < 2; i++)
        if (dc_node_at(f, f->param.at[i])->dtype == DC_F32)
            wrt[n++] = f->param.at[i];
    if (n == 0)
        return;
    if (dc_grad(g->j, f, loss, wrt, n, d) != DC_OK) {
        g->j->err = (dc_err){0};
        return;
    }
    for (int i = 0; i < n; i++)
        if (d[i] != 0)
            DC_PUSH(f->result, d[i]);
}

void boundgen_make(dc_job *j, dc_module *m, uint64_t seed, int size, boundgen *out)
{
    rng r = {seed * 2654435761u + 12345};
    *out = (boundgen){.table = dc_extents_new()};
    j->extents = m->extents = out->table;
    make_dims(out, &r);
    out->f = dc_func_new(m, "bounded");
    gen g = {.r = &r, .j = j, .f = out->f, .b = out, .params = PARAMS};
    for (int i = 0; i < 4; i++) {
        const dc_type t = bg_random_type(&g, RANK);
        dc_graph_param(g.f, &t, "x");
    }
    grow(&g, size);
    for (int i = 0; i < RESULTS; i++) {
        dc_ref s = g.f->node.n - 1;
        if (i > 0 || !may_be_read(&g, s))
            s = bg_any_node(&g);
        DC_PUSH(g.f->result, s);
    }
    if (chance(&g, 40))
        add_gradient(&g);
}

int64_t boundgen_value(void *ctx, int64_t var)
{
    const boundgen_sizes *s = ctx;
    for (int v = 0; v < s->g->nvar; v++)
        if (s->g->var[v] == var)
            return s->value[v];
    DC_BUG("a variable of another function");
}

boundgen_sizes boundgen_choose(const boundgen *g, rng *r, int number)
{
    boundgen_sizes s = {.g = g};
    for (int v = 0; v < g->nvar; v++) {
        const int64_t some = g->least[v] + rng_below(r, (int)(g->most[v] - g->least[v] + 1));
        s.value[v] = number == 0 ? g->least[v] : number == 1 ? g->most[v] : some;
    }
    return s;
}

void boundgen_copy(const dc_type *part, const dc_type *whole, void *to, const void *from,
                   bool to_whole)
{
    const size_t size = dc_dtype_size((dc_dtype)part->dtype);
    const int64_t count = dc_type_count(part);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0, step = 1, rest = i;
        for (int k = part->rank - 1; k >= 0; k--) {
            at += rest % part->dim[k] * step;
            rest /= part->dim[k];
            step *= whole->dim[k];
        }
        const int64_t a = to_whole ? at : i, b = to_whole ? i : at;
        memcpy((char *)to + (size_t)a * size, (const char *)from + (size_t)b * size, size);
    }
}

void boundgen_junk(rng *r, const dc_type *t, void *out)
{
    const dc_dtype d = (dc_dtype)t->dtype;
    for (int64_t i = 0; i < dc_type_count(t); i++) {
        const int sign = rng_below(r, 2);
        const double large = sign ? 2e9 + rng_below(r, 1000) : -2e9 - rng_below(r, 1000);
        const double v = d == DC_BOOL ? 1 : dc_dtype_is_float(d) ? (double)NAN : large;
        dc_bits_store(d, (char *)out + (size_t)i * dc_dtype_size(d), dc_bits_of(d, v));
    }
}
