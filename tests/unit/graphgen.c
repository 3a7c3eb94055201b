/*
 * The generator: a step picks a class of operations, an operation by its row, and operands among
 * the nodes made so far, bringing them to the dtype and dims needed through casts and movement.
 */
#include "tests/unit/graphgen.h"

#include "core/autodiff/custom.h"
#include "core/ir/exchange.h"
#include "core/ir/running.h"

#include <math.h>
#include <string.h>

#include "tests/unit/convgen.h"
#include "tests/unit/hostgen.h"

enum { MAX_PARAMS = 6, MAX_RESULTS = 4, MAX_DIMS = 5 };
enum {
    MAX_COUNT = 1500,
    MAX_LARGE = 1 << 17,
    MAX_TERMS = 1 << 22
}; /* elements; terms of a product */

typedef struct gen {
    rng rnd;
    bool mixed;   /* of all dtypes; else of few */
    int64_t most; /* elements of a node */
    dc_func *f;
} gen;

typedef struct dims {
    int rank;
    int64_t dim[DC_MAX_RANK];
} dims;

typedef enum type_rule {
    RULE_any,
    RULE_num,
    RULE_flt,
    RULE_bits,
    RULE_sel,
    RULE_u32,
    RULE_half,
    RULE_pattern,
    RULE_int,
    RULE_accum
} type_rule;

/* clang-format off */
static const type_rule rules[DC_OP__COUNT] = {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = RULE_##type,
#define RED(id, lua, combine, type, names, grad, lo, hi) [DC_OP_##id] = RULE_##type,
#define CON(id, lua, type, names, grad, lo, hi)          [DC_OP_##id] = RULE_##type,
#include "core/ir/ops.def"
};
/* clang-format on */

static int below(gen *g, int n)
{
    return rng_below(&g->rnd, n);
}

static bool chance(gen *g, int percent)
{
    return below(g, 100) < percent;
}

static int64_t count_of(const dims *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++)
        n *= d->dim[i];
    return n;
}

static dims dims_of(gen *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->f, r);
    dims d = {.rank = n->rank};
    for (int i = 0; i < n->rank; i++)
        d.dim[i] = n->dim[i];
    return d;
}

static int64_t extent(gen *g)
{
    static const int64_t common[] = {1, 1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 33};
    static const int64_t large[] = {1,   2,   3,   8,   17,  32,  33,  64,   65,  100,
                                    128, 130, 256, 300, 512, 515, 784, 1000, 2048};
    if (g->most == MAX_LARGE && chance(g, 80))
        return large[below(g, DC_COUNTOF(large))];
    return chance(g, 3) ? 0 : common[below(g, DC_COUNTOF(common))];
}

static dims random_dims(gen *g)
{
    dims d = {.rank = below(g, 4)};
    do
        for (int i = 0; i < d.rank; i++)
            d.dim[i] = extent(g);
    while (count_of(&d) > g->most);
    return d;
}

static dc_type type_of(dc_dtype t, const dims *d)
{
    return dc_type_make(t, d->rank, d->dim);
}

static dc_dtype any_dtype(gen *g)
{
    static const dc_dtype few[] = {DC_F32, DC_F32, DC_F32, DC_I32, DC_U32, DC_U8, DC_BOOL};
    if (!g->mixed)
        return few[below(g, DC_COUNTOF(few))];
    for (;;) {
        const dc_dtype t = (dc_dtype)below(g, DC_DTYPE__COUNT);
        if (dc_dtype_is_float(t) || chance(g, 30))
            return t;
    }
}

/* Another dtype, mostly, whose numbers are as wide. */
static dc_dtype as_wide(gen *g, dc_dtype t)
{
    for (;;) {
        const dc_dtype to = (dc_dtype)below(g, DC_DTYPE__COUNT);
        if (dc_bits_width(to) == dc_bits_width(t) && !dc_dtype_is_complex(to))
            return to;
    }
}

static dc_dtype dtype_for(gen *g, type_rule rule)
{
    for (;;) {
        const dc_dtype t = any_dtype(g);
        switch (rule) {
        case RULE_any:
        case RULE_sel:
        case RULE_accum:
            return t;
        case RULE_num:
        case RULE_pattern:
            if (t != DC_BOOL)
                return t;
            break;
        case RULE_flt:
            if (!g->mixed)
                return DC_F32;
            if (dc_dtype_is_float(t))
                return t;
            break;
        case RULE_bits:
            if (!dc_dtype_is_float(t))
                return t;
            break;
        case RULE_u32:
            return DC_U32;
        case RULE_half:
            return DC_U16;
        case RULE_int:
            if (!dc_dtype_is_float(t) && t != DC_BOOL)
                return t;
            break;
        }
    }
}

/* ---- operands ---- */

static dc_ref any_node(gen *g)
{
    const int n = (int)g->f->node.n - 1, recent = n < 12 ? n : 12;
    return graphgen_whole(g->f, (dc_ref)(chance(g, 60) ? n - below(g, recent) : 1 + below(g, n)));
}

static bool fits(const dc_node *n, const dims *d)
{
    return n->rank == d->rank &&
           (d->rank == 0 || memcmp(n->dim, d->dim, (size_t)d->rank * sizeof *d->dim) == 0);
}

/* May the node be stretched to d after ones are put in front? */
static bool stretches(const dc_node *n, const dims *d)
{
    const int off = d->rank - n->rank;
    for (int i = 0; i < n->rank && off >= 0; i++)
        if (n->dim[i] != 1 && n->dim[i] != d->dim[off + i])
            return false;
    return off >= 0;
}

static dc_ref stretch(gen *g, dc_ref r, const dims *d)
{
    const dims from = dims_of(g, r);
    dims ones = {.rank = d->rank};
    for (int i = 0; i < d->rank; i++)
        ones.dim[i] = i < d->rank - from.rank ? 1 : from.dim[i - (d->rank - from.rank)];
    return dc_graph_expand(g->f, dc_graph_reshape(g->f, r, ones.rank, ones.dim), d->dim);
}

static dc_ref source(gen *g, dc_dtype t, const dims *d)
{
    const dc_type type = type_of(t, d);
    const bool counts = dc_dtype_bits(t) >= 32;
    if (g->f->param.n < MAX_PARAMS && chance(g, 60)) {
        char label[8];
        snprintf(label, sizeof label, "p%u", g->f->param.n);
        return dc_graph_param(g->f, &type, label);
    }
    if (counts && d->rank > 0 && chance(g, 40)) {
        const int64_t axis = below(g, d->rank);
        return dc_graph_make(g->f, DC_OP_IOTA, NULL, 0, &axis, 1, &type);
    }
    return dc_graph_const(g->f, &type,
                          dc_dtype_is_float(t) ? below(g, 33) * 0.25 - 4 : below(g, 40) - 8);
}

/* A node of this dtype and these dims: one that is there, one adapted, or a new one. */
static dc_ref fetch(gen *g, dc_dtype t, const dims *d)
{
    for (int attempt = 0; attempt < 12 && g->f->node.n > 1; attempt++) {
        const dc_ref r = any_node(g);
        const dc_node *n = dc_node_at(g->f, r);
        const int64_t count = dc_node_count(n);
        if (n->dtype != t) {
            if (fits(n, d) && chance(g, 20))
                return dc_graph_cast(g->f, r, t);
            continue;
        }
        if (fits(n, d))
            return r;
        if (stretches(n, d) && chance(g, 70))
            return stretch(g, r, d);
        if (count == count_of(d) && chance(g, 70))
            return dc_graph_reshape(g->f, r, d->rank, d->dim);
    }
    return source(g, t, d);
}

/* Keeps floats where the row's function is tame, so that few values overflow. */
static dc_ref tamed(gen *g, dc_ref r, const dc_op_row *row, int percent)
{
    if (!dc_dtype_is_float(dc_node_at(g->f, r)->dtype) || !chance(g, percent))
        return r;
    const dc_ref low = dc_graph_op2(g->f, DC_OP_MAX, r, dc_graph_like(g->f, r, (float)row->lo));
    return dc_graph_op2(g->f, DC_OP_MIN, low, dc_graph_like(g->f, low, (float)row->hi));
}

/* ---- one step per class ---- */

/* Functions of one float, of which there are many, are drawn less often; patterns, too, of which many are NaN. */
static dc_op op_of_class(gen *g, dc_op_class cls)
{
    for (;;) {
        const dc_op op = (dc_op)below(g, DC_OP__COUNT);
        const bool rare = (dc_op_row_of(op)->flags & DC_OPF_NEAR) != 0 || op == DC_OP_BITCAST;
        if (dc_op_is(op, cls) && !(rare && chance(g, 70)))
            return op;
    }
}

/* Mostly, of an integer whose pattern a float becomes: small ones beside that of 1, negative ones beside -4. */
static dc_ref near_one(gen *g, dc_ref r, dc_dtype to)
{
    const bool whole = !dc_dtype_is_float(dc_node_at(g->f, r)->dtype);
    if (!whole || !dc_dtype_is_float(to) || chance(g, 20))
        return r;
    const double one = (double)dc_bits_of(to, 1);
    return dc_graph_op2(g->f, DC_OP_XOR, r, dc_graph_like(g->f, r, one));
}

static void step_element_wise(gen *g)
{
    const dc_op op = op_of_class(g, DC_CLASS_EW);
    const dc_op_row *row = dc_op_row_of(op);
    const dims d = g->f->node.n > 1 && chance(g, 80) ? dims_of(g, any_node(g)) : random_dims(g);
    const dc_dtype t = dtype_for(g, rules[op]);
    const int percent = row->flags & DC_OPF_COSTLY ? 85 : 15;
    dc_ref in[4];
    for (int i = 0; i < row->n; i++) {
        in[i] = fetch(g, rules[op] == RULE_sel && i == 0 ? DC_BOOL : t, &d);
        in[i] = tamed(g, in[i], row, percent);
    }
    const bool converts = op == DC_OP_CAST || op == DC_OP_BITCAST;
    const dc_type want = type_of(op == DC_OP_BITCAST ? as_wide(g, t) : dtype_for(g, RULE_any), &d);
    if (op == DC_OP_BITCAST)
        in[0] = near_one(g, in[0], (dc_dtype)want.dtype);
    dc_graph_make(g->f, op, in, row->n, NULL, 0, converts ? &want : NULL);
}

static void step_reduction(gen *g)
{
    const dc_op op = op_of_class(g, DC_CLASS_RED);
    const dc_dtype t = dtype_for(g, rules[op]);
    const dims d = g->f->node.n > 1 ? dims_of(g, any_node(g)) : random_dims(g);
    const dc_ref a = fetch(g, t, &d);
    const int64_t axes = below(g, 1 << d.rank);
    dc_graph_make(g->f, op, &a, 1, &axes, 1, NULL);
}

/* x op its own reduction over the last axes, as in softmax and layer norm. */
static void step_rows(gen *g)
{
    const dc_op op = op_of_class(g, DC_CLASS_RED), with = chance(g, 50) ? DC_OP_SUB : DC_OP_MUL;
    const dc_dtype t = dtype_for(g, rules[op]);
    const dims d = g->f->node.n > 1 ? dims_of(g, any_node(g)) : random_dims(g);
    const dc_ref a = fetch(g, t, &d);
    const int columns = d.rank > 0 ? 1 + below(g, d.rank) : 0;
    const int64_t axes = ((INT64_C(1) << columns) - 1) << (d.rank - columns);
    const dc_ref sum = dc_graph_make(g->f, op, &a, 1, &axes, 1, NULL);
    const dc_ref wide = dc_graph_unreduce(g->f, sum, (uint64_t)axes, d.rank, d.dim);
    const dc_ref other = fetch(g, (dc_dtype)dc_node_at(g->f, sum)->dtype, &d);
    if (dc_node_at(g->f, sum)->dtype != DC_BOOL)
        dc_graph_op2(g->f, with, other, wide);
    else
        dc_graph_op2(g->f, DC_OP_EQ, other, wide);
}

static void shuffle(gen *g, int n, int64_t *perm)
{
    for (int i = 0; i < n; i++)
        perm[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int k = below(g, i + 1);
        const int64_t swap = perm[i];
        perm[i] = perm[k];
        perm[k] = swap;
    }
}

static void do_reshape(gen *g, dc_ref r)
{
    const dims d = dims_of(g, r);
    dims to = {.rank = 1 + below(g, 4)};
    int64_t left = count_of(&d);
    for (int i = 0; i < to.rank; i++)
        to.dim[i] = 1;
    if (left == 0)
        to.dim[below(g, to.rank)] = 0;
    for (int64_t p = 2; left > 1; p++)
        for (; left % p == 0; left /= p)
            to.dim[below(g, to.rank)] *= p;
    dc_graph_reshape(g->f, r, to.rank, to.dim);
}

static void do_expand(gen *g, dc_ref r)
{
    dims d = dims_of(g, r);
    if (d.rank < MAX_DIMS && chance(g, 50)) {
        const int at = below(g, d.rank + 1);
        memmove(d.dim + at + 1, d.dim + at, (size_t)(d.rank - at) * sizeof *d.dim);
        d.dim[at] = 1;
        r = dc_graph_reshape(g->f, r, ++d.rank, d.dim);
    }
    for (int i = 0; i < d.rank; i++) {
        const int64_t n = extent(g);
        if (d.dim[i] == 1 && count_of(&d) * n <= g->most)
            d.dim[i] = n;
    }
    dc_graph_expand(g->f, r, d.dim);
}

static void do_slice(gen *g, dc_ref r)
{
    dims d = dims_of(g, r);
    int64_t start[DC_MAX_RANK], step[DC_MAX_RANK];
    for (int i = 0; i < d.rank; i++) {
        step[i] = 1 + below(g, 3);
        start[i] = d.dim[i] == 0 ? 0 : below(g, (int)d.dim[i]);
        const int64_t most = (d.dim[i] - start[i] + step[i] - 1) / step[i];
        d.dim[i] = most == 0 || chance(g, 3) ? 0 : 1 + below(g, (int)most);
    }
    dc_graph_slice(g->f, r, start, step, d.dim);
}

static void do_pad(gen *g, dc_ref r)
{
    dims d = dims_of(g, r);
    const dc_dtype t = (dc_dtype)dc_node_at(g->f, r)->dtype;
    int64_t lo[DC_MAX_RANK], step[DC_MAX_RANK];
    for (int i = 0; i < d.rank; i++) {
        const int64_t n = d.dim[i];
        lo[i] = below(g, 3);
        step[i] = 1 + below(g, 2);
        d.dim[i] = lo[i] + (n == 0 ? 0 : (n - 1) * step[i] + 1) + below(g, 3);
    }
    if (count_of(&d) <= g->most)
        dc_graph_pad(g->f, r, lo, step, d.dim, dc_bits_of(t, below(g, 9) - 2));
}

static void do_permute(gen *g, dc_ref r)
{
    int64_t perm[DC_MAX_RANK];
    shuffle(g, dc_node_at(g->f, r)->rank, perm);
    dc_graph_permute(g->f, r, perm);
}

static void step_movement(gen *g)
{
    const dc_ref r = any_node(g);
    if (chance(g, 8)) {
        const dc_ref pair[2] = {r, any_node(g)};
        const dc_type t = dc_node_type(g->f, r);
        const int64_t id[3] = {1, below(g, 3), 0};
        const dc_type size = dc_type_scalar(DC_I32);
        switch (below(g, t.rank > 0 ? 5 : 4)) {
        case 4: /* all there are, for results are compared */
            dc_graph_set_size(g->f, r, 0, dc_graph_const(g->f, &size, (double)t.dim[0]));
            return;
        case 0:
            dc_graph_make(g->f, DC_OP_CUSTOM, pair, 2, id, 3, NULL);
            return;
        case 1:
            dc_graph_make(g->f, DC_OP_HOLE, NULL, 0, id, 2, &t);
            return;
        default:
            dc_graph_barrier(g->f, pair[0], pair[1]);
            return;
        }
    }
    switch ((int)op_of_class(g, DC_CLASS_MOV)) {
    case DC_OP_RESHAPE:
        do_reshape(g, r);
        return;
    case DC_OP_PERMUTE:
        do_permute(g, r);
        return;
    case DC_OP_EXPAND:
        do_expand(g, r);
        return;
    case DC_OP_SLICE:
        do_slice(g, r);
        return;
    case DC_OP_PAD:
        do_pad(g, r);
        return;
    case DC_OP_FLIP:
        dc_graph_flip(g->f, r, (uint32_t)below(g, 1 << dc_node_at(g->f, r)->rank));
        return;
    default:
        break;
    }
    DC_BUG("a movement operation without a case");
}

static void step_conv(gen *g)
{
    dc_conv c;
    dims d[2];
    const dc_dtype t = dtype_for(g, rules[DC_OP_CONV]);
    convgen(&g->rnd, &c, d[0].dim, d[1].dim);
    d[0].rank = d[1].rank = 2 + c.n;
    const dc_ref x = tamed(g, fetch(g, t, &d[0]), dc_op_row_of(DC_OP_CONV), 60);
    const dc_ref w = tamed(g, fetch(g, t, &d[1]), dc_op_row_of(DC_OP_CONV), 60);
    dc_graph_conv(g->f, x, w, &c);
}

/* Axes of an existing node become batch, contracted or own; the other operand is made to fit. */
static void step_dot(gen *g)
{
    const dc_op op = op_of_class(g, DC_CLASS_CON);
    if (op == DC_OP_CONV) {
        step_conv(g);
        return;
    }
    const dc_dtype t = dtype_for(g, rules[op]);
    const dims da = dims_of(g, any_node(g));
    const dc_ref a = tamed(g, fetch(g, t, &da), dc_op_row_of(op), 60);
    int64_t axis[DC_MAX_RANK], place[DC_MAX_RANK], attr[2 + 4 * DC_MAX_RANK];
    const int nb = below(g, 3) % (da.rank + 1), nc = below(g, da.rank - nb + 1);
    dims db = {.rank = nb + nc + below(g, 3)}, result = {.rank = 1, .dim = {1}};
    if (db.rank > DC_MAX_RANK)
        return;
    shuffle(g, da.rank, axis);
    shuffle(g, db.rank, place);
    for (int i = 0; i < db.rank; i++)
        db.dim[place[i]] = i < nb + nc ? da.dim[axis[i]] : extent(g);
    for (int i = 0; i < da.rank; i++)
        result.dim[0] *= i < nb || i >= nb + nc ? da.dim[axis[i]] : 1;
    for (int i = nb + nc; i < db.rank; i++)
        result.dim[0] *= db.dim[place[i]];
    int64_t terms = result.dim[0];
    for (int i = nb; i < nb + nc; i++)
        terms *= da.dim[axis[i]];
    if (count_of(&db) > g->most || result.dim[0] > g->most || terms > MAX_TERMS ||
        da.rank + db.rank - nb - 2 * nc > DC_MAX_RANK - 2)
        return;
    attr[0] = nb;
    attr[1] = nc;
    for (int i = 0; i < nb; i++) {
        attr[2 + i] = axis[i];
        attr[2 + nb + i] = place[i];
    }
    for (int i = 0; i < nc; i++) {
        attr[2 + 2 * nb + i] = axis[nb + i];
        attr[2 + 2 * nb + nc + i] = place[nb + i];
    }
    const dc_ref b = tamed(g, fetch(g, t, &db), dc_op_row_of(op), 60);
    dc_graph_make(g->f, op, (const dc_ref[]){a, b}, 2, attr, 2 + 2 * (nb + nc), NULL);
}

/* Gather or scatter along an axis of an existing node; some integers are outside. */
static void step_index(gen *g)
{
    const dc_op op = op_of_class(g, DC_CLASS_IDX);
    const dc_ref x = any_node(g);
    const dims d = dims_of(g, x);
    const dc_dtype t = (dc_dtype)dc_node_at(g->f, x)->dtype;
    if (d.rank == 0 || ((op == DC_OP_SCATTER_ADD || op == DC_OP_SCATTER_MUL) && t == DC_BOOL))
        return;
    const int axis = below(g, d.rank), nb = chance(g, 40) ? below(g, axis + 1) : 0;
    const int own = below(g, 3);
    dims index = {.rank = nb + own}, picked = {.rank = d.rank - 1 + own};
    if (index.rank > MAX_DIMS || picked.rank > MAX_DIMS)
        return;
    for (int i = 0; i < index.rank; i++)
        index.dim[i] = i < nb ? d.dim[i] : extent(g);
    for (int i = 0; i < picked.rank; i++)
        picked.dim[i] = i < axis         ? d.dim[i]
                        : i < axis + own ? index.dim[nb + i - axis]
                                         : d.dim[i + 1 - own];
    if (count_of(&picked) > g->most || count_of(&index) > g->most || d.dim[axis] == 0)
        return;
    const dc_dtype kind = (const dc_dtype[]){DC_I32, DC_I32, DC_U32, DC_U8}[below(g, 4)];
    dc_ref i = fetch(g, kind, &index);
    if (chance(g, 70)) /* inside, or near */
        i = dc_graph_op2(g->f, DC_OP_REM, i,
                         dc_graph_like(g->f, i, (double)(d.dim[axis] + below(g, 3))));
    if (op == DC_OP_GATHER)
        dc_graph_gather(g->f, x, i, axis, nb);
    else
        dc_graph_scatter(g->f, op, x, i, fetch(g, t, &picked), axis, nb);
}

/* Nothing is demanded of their values: they are made of nodes that are no definite matrices. */
static void step_factors(gen *g, dc_op op)
{
    const dims a = {.rank = 2, .dim = {extent(g), extent(g)}};
    const dims square = {.rank = 2, .dim = {a.dim[0], a.dim[0]}},
               factors = {.rank = 2, .dim = {a.dim[0] + 1, a.dim[0]}};
    const int64_t attr[3] = {below(g, 2), below(g, 2), below(g, 2)};
    const dc_dtype t = chance(g, 50) ? DC_F32 : DC_F64;
    const int n = dc_op_row_of(op)->n;
    if (count_of(&a) > g->most || count_of(&factors) > g->most)
        return;
    dc_ref in[3] = {fetch(g, t, hostgen_is_square(op) ? &square : &a)};
    if (op == DC_OP_LUSOLVE || op == DC_OP_DET)
        in[1] = fetch(g, t, &factors);
    if (n > 1 && in[n - 1] == 0)
        in[n - 1] = fetch(g, t, &a);
    dc_graph_make(g->f, op, in, n, attr, hostgen_attrs(op), NULL);
}

/* What the host computes, along the last axis of an existing node. Factors have no bound, so they are the fewer. */
static void step_host(gen *g)
{
    const dc_op op =
        chance(g, 40) ? (dc_op)(DC_OP_SORT + below(g, 4)) : op_of_class(g, DC_CLASS_HST);
    if (!hostgen_can(op))
        return;
    if (op > DC_OP_RUN) {
        step_factors(g, op);
        return;
    }
    const dc_ref x = any_node(g);
    const dims d = dims_of(g, x);
    if (d.rank == 0)
        return;
    const int64_t descending = below(g, 2), k = below(g, (int)d.dim[d.rank - 1] + 1);
    if (op == DC_OP_RUN && dc_node_at(g->f, x)->dtype != DC_BOOL)
        dc_graph_make(g->f, op, &x, 1,
                      (const int64_t[]){below(g, DC_RUN__COUNT), descending, below(g, d.rank)}, 3,
                      NULL);
    else if (op == DC_OP_RUN)
        return;
    else if (op == DC_OP_TOPK)
        dc_graph_make(g->f, op, &x, 1, (const int64_t[]){k, descending}, 2, NULL);
    else
        dc_graph_make(g->f, op, &x, 1, &descending, 1, NULL);
}

/* What a group of one does together: its operand, in memory. */
static void step_exchange(gen *g)
{
    dc_op op = op_of_class(g, DC_CLASS_COM);
    while (dc_op_is_message(op)) /* there is no other one */
        op = op_of_class(g, DC_CLASS_COM);
    const dc_ref x = any_node(g);
    if (chance(g, 20)) { /* where values are in no parts it is the value */
        const int64_t whole[DC_MESH_AXES] = {below(g, dims_of(g, x).rank + 1)};
        dc_graph_make(g->f, DC_OP_RESHARD, &x, 1, whole, DC_MESH_AXES, NULL);
        return;
    }
    const dc_exchange_attr alone = {.group = {1, 1, {1}}};
    const bool any = op == DC_OP_ALL_REDUCE || op == DC_OP_BROADCAST;
    const bool sums = op == DC_OP_ALL_REDUCE || op == DC_OP_REDUCE_SCATTER;
    if ((any || dims_of(g, x).rank > 0) && !(sums && dc_node_at(g->f, x)->dtype == DC_BOOL))
        dc_graph_exchange(g->f, op, x, &alone);
}

/* A number that masks end at: one of the parameters, or a new one. */
static dc_ref any_number(gen *g)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    for (uint32_t i = 0; i < g->f->param.n; i++) {
        const dc_node *n = dc_node_at(g->f, g->f->param.at[i]);
        if (n->rank == 0 && n->dtype == DC_I32 && chance(g, 60))
            return g->f->param.at[i];
    }
    return dc_graph_param(g->f, &i32, "size");
}

/* where(i < size, r, bits) along an axis; of r only what is before the size may be there. */
static dc_ref masked(gen *g, dc_ref r, int axis, dc_ref size, uint64_t bits)
{
    dc_func *f = g->f;
    const dc_type t = dc_node_type(f, r);
    int64_t ones[DC_MAX_RANK], at = axis, attr = (int64_t)bits;
    dc_type i32 = t;
    i32.dtype = DC_I32;
    for (int i = 0; i < t.rank; i++)
        ones[i] = 1;
    if (chance(g, 50))
        r = dc_graph_set_size(f, r, axis, size);
    const dc_ref position = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &at, 1, &i32);
    const dc_ref end = dc_graph_expand(f, dc_graph_reshape(f, size, t.rank, ones), t.dim);
    return dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_LT, position, end), r,
                        dc_graph_make(f, DC_OP_CONST, NULL, 0, &attr, 1, &t));
}

/* A mask by a number known when it runs, often below what it is there for: a reduction, a product. */
static void step_mask(gen *g)
{
    const dc_ref r = any_node(g);
    const dc_type t = dc_node_type(g->f, r);
    if (t.rank == 0)
        return;
    const int axis = below(g, t.rank);
    const dc_ref size = any_number(g);
    const dc_op op = op_of_class(g, DC_CLASS_RED);
    const bool adds = (op == DC_OP_SUM || op == DC_OP_PROD) && t.dtype == DC_BOOL;
    const dc_ref m = masked(g, r, axis, size, adds ? 0 : dc_op_identity(op, (dc_dtype)t.dtype));
    if (!adds && chance(g, 60))
        dc_graph_reduce(g->f, op, m, 1u << axis | (uint32_t)below(g, 1 << t.rank));
    if (op != DC_OP_SUM || t.dtype == DC_BOOL || !chance(g, 70))
        return;
    const dims d = {.rank = 2, .dim = {t.dim[axis], extent(g)}};
    const int64_t left[] = {axis}, right[] = {0};
    if (dc_type_count(&t) * d.dim[1] > MAX_TERMS || t.rank > DC_MAX_RANK - 3 || t.dim[axis] == 0)
        return;
    dc_graph_dot(g->f, m, masked(g, fetch(g, (dc_dtype)t.dtype, &d), 0, size, 0), 0, NULL, NULL, 1,
                 left, right);
}

/* ---- the whole ---- */

/* Nodes that nothing reads, the newest first; the last node in any case. */
static void choose_results(gen *g)
{
    bool *read = dc_xalloc(g->f->node.n * sizeof *read);
    for (dc_ref r = 1; r < g->f->node.n; r++)
        for (int i = 0; i < dc_node_at(g->f, r)->nin; i++)
            read[dc_node_at(g->f, r)->in[i]] = true;
    for (dc_ref r = g->f->node.n; r-- > 1 && g->f->result.n < MAX_RESULTS;)
        if (!read[r] &&
            (!dc_op_is((dc_op)dc_node_at(g->f, r)->op, DC_CLASS_SRC) || r == g->f->node.n - 1))
            DC_PUSH(g->f->result, r);
    if (chance(g, 15)) /* an inner node, or one that is a result already */
        DC_PUSH(g->f->result, any_node(g));
    dc_xfree(read);
}

static dc_func *make_func(dc_module *m, uint64_t seed, int size, int64_t most, bool host)
{
    gen g = {{seed}, seed % 3 != 2, most, dc_func_new(m, "random")};
    const bool by_rows = (seed >> 3) % 4 == 1;
    const bool masks = (seed >> 4) % 8 == 3 || (seed >> 4) % 8 == 6; /* no graph of a corpus */
    const dims first = random_dims(&g);
    source(&g, DC_F32, &first);
    for (int i = 0; i < size; i++) {
        const int kind = below(&g, 100);
        if (masks && chance(&g, 20))
            step_mask(&g);
        else if (host && chance(&g, 15))
            step_host(&g);
        else if (host && chance(&g, 5))
            step_exchange(&g);
        else if (kind < 55)
            step_element_wise(&g);
        else if (kind < 70 && by_rows)
            step_rows(&g);
        else if (kind < 70)
            step_reduction(&g);
        else if (kind < 84)
            step_movement(&g);
        else if (kind < 89)
            step_index(&g);
        else
            step_dot(&g);
    }
    choose_results(&g);
    return g.f;
}

dc_func *graphgen_func(dc_module *m, uint64_t seed, int size)
{
    return make_func(m, seed, size, MAX_COUNT, false);
}

dc_func *graphgen_host(dc_module *m, uint64_t seed, int size)
{
    return make_func(m, seed, size, MAX_COUNT, true);
}

dc_func *graphgen_large(dc_module *m, uint64_t seed, int size)
{
    return make_func(m, seed, size, MAX_LARGE, false);
}

/* ---- inputs ---- */

static double ordinary(rng *r, dc_dtype t)
{
    const int kind = rng_below(r, 4);
    switch (dc_dtype_kind(t)) {
    case DC_KIND_FLOAT: /* small whole numbers make ties */
        return kind == 0 ? rng_below(r, 7) - 3 : rng_uniform(r, -4, 4);
    case DC_KIND_BOOL:
        return rng_below(r, 2);
    case DC_KIND_UINT:
        return kind == 0 && t != DC_U8 ? rng_uniform(r, 0, ldexp(1, dc_dtype_bits(t)))
                                       : rng_below(r, 256);
    case DC_KIND_SINT:
        return (kind == 0 ? rng_uniform(r, -0x1p31, 0x1p31) : rng_below(r, 41) - 20) *
               (kind == 0 && dc_dtype_bits(t) == 64 ? 0x1p32 : 1);
    case DC_KIND_COMPLEX: /* no node has one */
        break;
    }
    return 0;
}

static double unusual(rng *r, dc_dtype t)
{
    static const double of_float[] = {NAN,      INFINITY,  -INFINITY, -0.0,   0,
                                      0x1p-149, -0x1p-126, 3.4e38,    -1e-30, 16777217,
                                      0x1p-24,  0x1p-1074, 1e300,     65504,  -0x1.fep127};
    static const double of_int[] = {-0x1p31, 0x1p31 - 1, 0,          -1,      1,      31,
                                    32,      255,        0x1p32 - 1, -0x1p63, 0x1p63, 0x1p64,
                                    64,      127,        32767,      16777217};
    if (dc_dtype_is_float(t))
        return of_float[rng_below(r, DC_COUNTOF(of_float))];
    return of_int[rng_below(r, DC_COUNTOF(of_int))];
}

void graphgen_input(rng *r, const dc_type *t, bool special, void *out)
{
    const dc_dtype dt = (dc_dtype)t->dtype;
    for (int64_t i = 0; i < dc_type_count(t); i++) {
        const double v = special && rng_below(r, 8) == 0 ? unusual(r, dt) : ordinary(r, dt);
        dc_bits_store(dt, (char *)out + (size_t)i * dc_dtype_size(dt), dc_bits_of(dt, v));
    }
}
