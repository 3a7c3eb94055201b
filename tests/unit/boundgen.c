#include "tests/unit/boundgen.h"

#include "core/base/bits.h"
#include "core/graph/conv.h"
#include "core/graph/dot.h"
#include "core/graph/grad.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 2, RANK = 3, MOST = 5, LARGEST = 2500, PARAMS = 12, RESULTS = 4, TRIES = 8 };

typedef struct gen {
    rng *r;
    dc_job *j;
    dc_func *f;
    const boundgen *b;
    int depth;  /* of bodies around */
    int params; /* that may be added */
} gen;

static int below(gen *g, int n)
{
    return rng_below(g->r, n);
}

static bool chance(gen *g, int percent)
{
    return below(g, 100) < percent;
}

/* ---- sizes ------------------------------------------------------------------------------------ */

static void add_dim(boundgen *b, int64_t dim)
{
    if (dim != DC_EXTENT_NONE && dc_extent_lo(b->table, dim) >= 0 && dc_extent_bound(dim) > 0 &&
        dc_extent_bound(dim) <= 40 && b->ndim < BOUNDGEN_DIMS)
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
        b->most[v] = b->least[v] + rng_below(r, 7);
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
            add_dim(b, dc_extent_div(e, dc_extent_add(e, n, k), 2));
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

static int64_t any_dim(gen *g)
{
    return g->b->dim[below(g, g->b->ndim)];
}

static dc_type random_type(gen *g, int most_rank)
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

/* 0: such a node is not allowed. */
static dc_ref make(gen *g, dc_op op, const dc_ref *in, int nin, const int64_t *attr, int nattr,
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

static dc_ref make2(gen *g, dc_op op, dc_ref a, dc_ref b)
{
    return make(g, op, (dc_ref[]){a, b}, 2, NULL, 0, NULL);
}

static bool may_be_read(gen *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->f, r);
    return !dc_is_control(n) && n->rank <= RANK + 1 && dc_node_count(n) <= LARGEST &&
           (n->dtype == DC_F32 || n->dtype == DC_I32 || n->dtype == DC_BOOL);
}

static dc_ref any_node(gen *g)
{
    for (;;) {
        const dc_ref r = 1 + (dc_ref)below(g, (int)g->f->node.n - 1);
        if (may_be_read(g, r))
            return r;
    }
}

static dc_type type_of(gen *g, dc_ref r)
{
    return dc_node_type(g->f, r);
}

/* Whole numbers from -limit to limit. */
static dc_ref within(gen *g, dc_ref r, double limit)
{
    if (r == 0 || dc_node_at(g->f, r)->dtype == DC_BOOL)
        return r;
    r = dc_graph_op2(g->f, DC_OP_MIN, r, dc_graph_like(g->f, r, limit));
    return dc_graph_op2(g->f, DC_OP_MAX, r, dc_graph_like(g->f, r, -limit));
}

static dc_ref tamed(gen *g, dc_ref r)
{
    return within(g, r, 8);
}

static dc_ref cast(gen *g, dc_ref r, dc_dtype t)
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
    r = cast(g, r, t->dtype == DC_BOOL ? DC_I32 : (dc_dtype)t->dtype);
    if (all != 0)
        r = dc_graph_reduce(g->f, chance(g, 50) ? DC_OP_SUM : DC_OP_MAXR, r, all);
    r = dc_graph_expand(g->f, dc_graph_reshape(g->f, tamed(g, r), t->rank, ones), t->dim);
    return cast(g, r, (dc_dtype)t->dtype);
}

static dc_ref constant_of(gen *g, const dc_type *t)
{
    const int64_t axis = below(g, t->rank + 1);
    if (axis == t->rank || t->dtype == DC_BOOL)
        return dc_graph_const(g->f, t, t->dtype == DC_BOOL ? below(g, 2) : below(g, 7) - 3);
    return cast(g,
                tamed(g, dc_graph_make(g->f, DC_OP_IOTA, NULL, 0, &axis, 1,
                                       &(dc_type){.dtype = DC_I32,
                                                  .rank = t->rank,
                                                  .dim = {t->dim[0], t->dim[1], t->dim[2],
                                                          t->dim[3], t->dim[4]}})),
                (dc_dtype)t->dtype);
}

/* A node of the type: one that is there, a parameter, or made. */
static dc_ref fetch(gen *g, const dc_type *t)
{
    for (int tries = 0; tries < TRIES; tries++) {
        const dc_ref s = any_node(g);
        const dc_type is = type_of(g, s);
        if (dc_type_same(&is, t))
            return s;
    }
    if (g->params > 0 && chance(g, 70)) {
        g->params--;
        return dc_graph_param(g->f, t, "x");
    }
    return chance(g, 30) ? constant_of(g, t) : spread(g, any_node(g), t);
}

static dc_ref fetch_as(gen *g, dc_dtype dtype, int rank, const int64_t *dim)
{
    const dc_type t = dc_type_make(dtype, rank, dim);
    return dc_type_count(&t) > LARGEST ? 0 : fetch(g, &t);
}

/* ---- element by element, reductions, sources -------------------------------------------------- */

static void step_element_wise(gen *g)
{
    static const dc_op two[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MUL, DC_OP_MAX, DC_OP_MIN};
    const dc_ref a = any_node(g);
    dc_type t = type_of(g, a), flag = t;
    flag.dtype = DC_BOOL;
    if (chance(g, 15))
        make(g, DC_OP_WHERE, (dc_ref[]){fetch(g, &flag), a, fetch(g, &t)}, 3, NULL, 0, NULL);
    else if (t.dtype == DC_BOOL)
        make2(g, DC_OP_XOR, a, fetch(g, &t));
    else if (chance(g, 10))
        cast(g, a, t.dtype == DC_F32 ? DC_I32 : DC_F32);
    else
        tamed(g, make2(g, two[below(g, 5)], a, fetch(g, &t)));
}

static void step_reduce(gen *g)
{
    static const dc_op ops[] = {DC_OP_SUM, DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR, DC_OP_PROD};
    const dc_op op = ops[below(g, 5)];
    dc_type t = random_type(g, RANK);
    dc_ref a = any_node(g);
    if (chance(g, 10) && t.rank > 0)
        a = constant_of(g, &t);
    const int rank = dc_node_at(g->f, a)->rank;
    if (rank == 0)
        return;
    if (op != DC_OP_SUM && dc_node_at(g->f, a)->dtype == DC_BOOL)
        a = cast(g, a, DC_I32);
    if (op == DC_OP_PROD)
        a = within(g, a, 1);
    const int64_t mask = 1 + below(g, (1 << rank) - 1);
    tamed(g, make(g, op, &a, 1, &mask, 1, NULL));
}

static void step_source(gen *g)
{
    const dc_type t = random_type(g, RANK);
    constant_of(g, &t);
}

static void step_expand(gen *g)
{
    const dc_ref a = any_node(g);
    dc_type t = type_of(g, a);
    if (t.rank > RANK)
        return;
    const int at = below(g, t.rank + 1);
    memmove(&t.dim[at + 1], &t.dim[at], sizeof *t.dim * (size_t)(t.rank - at));
    t.dim[at] = 1;
    t.rank++;
    const dc_ref one = make(g, DC_OP_RESHAPE, &a, 1, NULL, 0, &t);
    t.dim[at] = any_dim(g);
    make(g, DC_OP_EXPAND, &one, 1, NULL, 0, &t);
}

/* ---- movement --------------------------------------------------------------------------------- */

static void step_permute(gen *g)
{
    const dc_ref a = any_node(g);
    const int rank = dc_node_at(g->f, a)->rank;
    int64_t perm[DC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int k = below(g, i + 1);
        perm[i] = perm[k];
        perm[k] = i;
    }
    make(g, DC_OP_PERMUTE, &a, 1, perm, rank, NULL);
}

/* Dims whose product is that of all: a divisor, what is left, that divided again. */
static void step_reshape(gen *g)
{
    const dc_ref a = any_node(g);
    dc_type t = type_of(g, a);
    dc_extents *e = g->b->table;
    const dc_type was = t;
    int64_t rest = dc_extent_product(e, t.rank, t.dim);
    t.rank = 0;
    for (int tries = 0; tries < 3 * TRIES && t.rank < RANK && rest != DC_EXTENT_NONE; tries++) {
        int64_t d = chance(g, 50) ? any_dim(g) : 1 + below(g, 4);
        if (was.rank > 0 && chance(g, 40))
            d = was.dim[below(g, was.rank)];
        const int64_t q = d == 0 ? DC_EXTENT_NONE : dc_extent_quotient(e, rest, d);
        if (q == DC_EXTENT_NONE || d == 1)
            continue;
        t.dim[t.rank++] = d;
        rest = q;
    }
    if (rest == DC_EXTENT_NONE)
        return;
    if (rest != 1 || t.rank == 0 || chance(g, 10)) { /* the rest goes somewhere */
        const int at = below(g, t.rank + 1);
        memmove(&t.dim[at + 1], &t.dim[at], sizeof *t.dim * (size_t)(t.rank - at));
        t.dim[at] = rest;
        t.rank++;
    }
    make(g, DC_OP_RESHAPE, &a, 1, NULL, 0, &t);
}

static void step_slice(gen *g)
{
    const dc_ref a = any_node(g);
    dc_type t = type_of(g, a);
    dc_extents *e = g->b->table;
    int64_t attr[2 * DC_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        const int64_t dim = t.dim[i], k = 1 + below(g, 2);
        int64_t start = 0, step = 1;
        switch (below(g, 10)) {
        case 0:
            start = k;
            t.dim[i] = dc_extent_sub(e, dim, k);
            break;
        case 1:
            t.dim[i] = dc_extent_sub(e, dim, k);
            break;
        case 2:
            step = k + 1;
            t.dim[i] = dc_extent_div(e, dc_extent_add(e, dim, step - 1), step);
            break;
        case 3:
            start = dc_extent_sub(e, dim, k);
            t.dim[i] = k;
            break;
        case 4:
            start = any_dim(g);
            t.dim[i] = dc_extent_sub(e, dim, start);
            break;
        case 5:
            t.dim[i] = any_dim(g);
            start = dc_extent_sub(e, dim, t.dim[i]);
            break;
        case 6:
            t.dim[i] = any_dim(g);
            break;
        case 7:
            start = any_dim(g);
            step = k + 1;
            t.dim[i] =
                dc_extent_div(e, dc_extent_add(e, dc_extent_sub(e, dim, start), step - 1), step);
            break;
        default:
            break;
        }
        const bool bad = start == DC_EXTENT_NONE || t.dim[i] == DC_EXTENT_NONE ||
                         dc_extent_lo(e, t.dim[i]) < 0 || dc_extent_lo(e, start) < 0;
        attr[i] = bad ? 0 : start;
        attr[t.rank + i] = bad ? 1 : step;
        t.dim[i] = bad ? dim : t.dim[i];
    }
    make(g, DC_OP_SLICE, &a, 1, attr, 2 * t.rank, &t);
}

static void step_pad(gen *g)
{
    const dc_ref a = any_node(g);
    dc_type t = type_of(g, a);
    dc_extents *e = g->b->table;
    int64_t attr[2 * DC_MAX_RANK + 1];
    for (int i = 0; i < t.rank; i++) {
        const int64_t dim = t.dim[i];
        attr[i] = chance(g, 40) ? 0 : chance(g, 40) ? any_dim(g) : below(g, 3);
        attr[t.rank + i] = chance(g, 80) ? 1 : 2;
        const int64_t more = chance(g, 50) ? 0 : chance(g, 30) ? any_dim(g) : below(g, 3);
        const int64_t steps = dc_extent_mul(e, dc_extent_sub(e, dim, 1), attr[t.rank + i]);
        t.dim[i] =
            attr[t.rank + i] == 1
                ? dc_extent_add(e, dc_extent_add(e, dim, attr[i]), more)
                : dc_extent_add(e, dc_extent_add(e, dc_extent_add(e, steps, 1), attr[i]), more);
        if (t.dim[i] == DC_EXTENT_NONE || dc_extent_bound(t.dim[i]) > 60 ||
            dc_extent_lo(e, t.dim[i]) < 0) {
            attr[i] = 0;
            attr[t.rank + i] = 1;
            t.dim[i] = dim;
        }
    }
    const dc_dtype dtype = (dc_dtype)t.dtype;
    attr[2 * t.rank] = (int64_t)dc_bits_of(dtype, dtype == DC_BOOL ? below(g, 2) : below(g, 5) - 2);
    make(g, DC_OP_PAD, &a, 1, attr, 2 * t.rank + 1, &t);
}

static void step_flip(gen *g)
{
    const dc_ref a = any_node(g);
    const int64_t mask = below(g, 1 << dc_node_at(g->f, a)->rank);
    make(g, DC_OP_FLIP, &a, 1, &mask, 1, NULL);
}

/* ---- contractions and integers that index ----------------------------------------------------- */

/* Axes of a by chance in common, contracted, or free; the other operand has some of its own. */
static void step_dot(gen *g)
{
    const dc_ref a = any_node(g);
    const dc_type t = type_of(g, a);
    dc_dot d = {0};
    int64_t attr[DC_DOT_ATTRS], dim[DC_MAX_RANK];
    int rank = 0;
    if (t.dtype == DC_BOOL || t.rank == 0)
        return;
    for (int i = 0; i < t.rank; i++) {
        const int what = below(g, 5);
        if (what > 2 || rank == RANK)
            continue;
        if (rank + 1 < RANK && chance(g, 30))
            dim[rank++] = any_dim(g);
        int64_t *to[2];
        for (int side = 0; side < 2; side++)
            to[side] = what == 0 ? &d.batch[side][d.nbatch] : &d.contract[side][d.ncontract];
        *to[0] = i;
        *to[1] = rank;
        dim[rank++] = t.dim[i];
        d.nbatch += what == 0;
        d.ncontract += what != 0;
    }
    if (rank == 0 || (rank < RANK && chance(g, 50)))
        dim[rank++] = any_dim(g);
    const int nattr = dc_dot_write(&d, attr);
    const dc_ref b = fetch_as(g, (dc_dtype)t.dtype, rank, dim);
    tamed(g, make(g, DC_OP_DOT, (dc_ref[]){a, b}, 2, attr, nattr, NULL));
}

/* The window goes along an axis of fixed size. */
static void step_conv(gen *g)
{
    const int64_t channels = any_dim(g), taps = 1 + below(g, 3), width = taps + 1 + below(g, 4);
    int64_t attr[DC_CONV_ATTRS];
    dc_conv c = dc_conv_plain(1);
    c.dim[0].stride = 1 + below(g, 2);
    c.dim[0].lo = below(g, 3);
    c.dim[0].hi = below(g, 3) - 1;
    c.dim[0].reversed = below(g, 2);
    const dc_ref x = fetch_as(g, DC_F32, 3, (const int64_t[]){any_dim(g), channels, width});
    const dc_ref w = fetch_as(g, DC_F32, 3, (const int64_t[]){any_dim(g), channels, taps});
    const int nattr = dc_conv_write(&c, attr);
    tamed(g, make(g, DC_OP_CONV, (dc_ref[]){x, w}, 2, attr, nattr, NULL));
}

typedef struct picking {
    dc_ref x, index;
    int64_t attr[2];
    dc_type picked;
} picking;

static bool choose_picking(gen *g, picking *p)
{
    static const dc_dtype dtypes[] = {DC_I8, DC_U8, DC_I16, DC_I64, DC_U32, DC_U64};
    int64_t dim[RANK];
    p->x = any_node(g);
    const dc_type t = type_of(g, p->x);
    if (t.rank == 0)
        return false;
    const int axis = below(g, t.rank), nb = axis > 0 && chance(g, 30) ? 1 : 0;
    const int own = below(g, 3);
    if (nb)
        dim[0] = t.dim[0];
    for (int i = 0; i < own && nb + i < RANK; i++)
        dim[nb + i] = any_dim(g);
    p->index = fetch_as(g, DC_I32, nb + own, dim);
    if (p->index != 0 && chance(g, 30))
        p->index = dc_graph_cast(g->f, p->index, dtypes[below(g, 6)]);
    p->attr[0] = axis;
    p->attr[1] = nb;
    p->picked = t;
    p->picked.rank = 0;
    for (int i = 0; i < axis; i++)
        p->picked.dim[p->picked.rank++] = t.dim[i];
    for (int i = 0; i < own; i++)
        p->picked.dim[p->picked.rank++] = dim[nb + i];
    for (int i = axis + 1; i < t.rank; i++)
        p->picked.dim[p->picked.rank++] = t.dim[i];
    return p->index != 0 && dc_type_count(&p->picked) <= LARGEST;
}

/* An axis without elements has nothing to pick. */
static void step_gather(gen *g)
{
    picking p;
    if (choose_picking(g, &p) &&
        dc_extent_lo(g->b->table, dc_node_at(g->f, p.x)->dim[p.attr[0]]) > 0)
        make(g, DC_OP_GATHER, (dc_ref[]){p.x, p.index}, 2, p.attr, 2, NULL);
}

static void step_scatter(gen *g)
{
    picking p;
    if (!choose_picking(g, &p))
        return;
    const bool add = p.picked.dtype != DC_BOOL && chance(g, 50);
    const dc_ref in[3] = {p.x, p.index, fetch(g, &p.picked)};
    tamed(g, make(g, add ? DC_OP_SCATTER_ADD : DC_OP_SCATTER, in, 3, p.attr, 2, NULL));
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
        const dc_ref r = fetch(&inner, &result[i]);
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
            make(g, DC_OP_PICK, &control, 1, &i, 1, NULL);
}

static void step_branch(gen *g)
{
    dc_type param[MOST], result[MOST];
    dc_ref in[MOST + 1];
    int64_t attr[DC_BRANCH_ATTRS];
    const int nparam = below(g, MOST), nresult = 1 + below(g, 3);
    in[0] = fetch_as(g, DC_BOOL, 0, NULL);
    for (int i = 0; i < nparam; i++) {
        in[1 + i] = any_node(g);
        param[i] = type_of(g, in[1 + i]);
    }
    for (int i = 0; i < nresult; i++)
        result[i] = nparam > 0 && chance(g, 50) ? param[below(g, nparam)] : random_type(g, RANK);
    for (int i = 0; i < DC_BRANCH_ATTRS; i++)
        attr[i] = make_body(g, param, nparam, result, nresult, 1 + below(g, 4));
    pick_some(g, make(g, DC_OP_BRANCH, in, nparam + 1, attr, DC_BRANCH_ATTRS, NULL), nresult);
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
        p.in[p.nin++] = fetch_as(g, DC_I32, 0, NULL);
    p.l.nconst = below(g, 3);
    for (int i = 0; i < p.l.nconst; i++) {
        const dc_ref r = any_node(g);
        const dc_type t = type_of(g, r);
        add_operand(g, &p, &t, r);
    }
    p.l.ncarry = below(g, 3) + (p.l.flags & DC_LOOP_TEST ? 1 : 0);
    for (int i = 0; i < p.l.ncarry; i++) {
        const dc_type t = i == 0 && p.l.flags & DC_LOOP_TEST ? flag : random_type(g, RANK);
        p.result[i] = t;
        add_operand(g, &p, &t, 0);
    }
    p.l.nx = below(g, 3);
    for (int i = 0; i < p.l.nx; i++) {
        const dc_type t = random_type(g, RANK - 1), all = dc_type_stacked(&t, p.l.n);
        add_operand(g, &p, &t, fetch(g, &all));
    }
    p.l.ny = below(g, 3) + (p.l.ncarry == 0);
    for (int i = 0; i < p.l.ny; i++) {
        const dc_type y = random_type(g, RANK - 1), all = dc_type_stacked(&y, p.l.n);
        p.result[p.l.ncarry + i] = y;
        if (dc_loop_may_end(&p.l))
            p.in[p.nin++] = fetch(g, &all);
    }
    p.l.body = make_body(g, p.param, p.nparam, p.result, p.l.ncarry + p.l.ny, 2 + below(g, 5));
    dc_loop_write(&p.l, attr);
    pick_some(g, make(g, DC_OP_LOOP, p.in, p.nin, attr, DC_LOOP_ATTRS, NULL), p.l.ncarry + p.l.ny);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static void grow(gen *g, int size)
{
    typedef void step(gen * g);
    static step *const of_all[] = {
        step_element_wise, step_element_wise, step_element_wise, step_element_wise, step_reduce,
        step_reduce,       step_dot,          step_dot,          step_reshape,      step_reshape,
        step_reshape,      step_slice,        step_slice,        step_pad,          step_pad,
        step_flip,         step_permute,      step_expand,       step_source,       step_gather,
        step_gather,       step_scatter,      step_scatter,      step_conv,
    };
    for (int i = 0; i < size; i++) {
        const int what = below(g, 100);
        if (g->depth < DEPTH && what < 9)
            step_loop(g);
        else if (g->depth < DEPTH && what < 13)
            step_branch(g);
        else
            of_all[below(g, DC_COUNTOF(of_all))](g);
    }
}

/* Of the sum of a node with a float parameter. */
static void add_gradient(gen *g)
{
    dc_func *f = g->f;
    dc_ref loss = any_node(g), wrt[2], d[2] = {0};
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
        const dc_type t = random_type(&g, RANK);
        dc_graph_param(g.f, &t, "x");
    }
    grow(&g, size);
    for (int i = 0; i < RESULTS; i++) {
        dc_ref s = g.f->node.n - 1;
        if (i > 0 || !may_be_read(&g, s))
            s = any_node(&g);
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
