/* Operations of tests/unit/boundgen.h, but loops and branches. One that is not allowed is not made. */
#include "core/base/bits.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"

#include <string.h>

#include "tests/unit/boundgen_impl.h"

/* ---- element by element, reductions, sources -------------------------------------------------- */

static void step_element_wise(gen *g)
{
    static const dc_op two[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MUL, DC_OP_MAX, DC_OP_MIN};
    const dc_ref a = bg_any_node(g);
    dc_type t = type_of(g, a), flag = t;
    flag.dtype = DC_BOOL;
    if (chance(g, 15))
        bg_make(g, DC_OP_WHERE, (dc_ref[]){bg_fetch(g, &flag), a, bg_fetch(g, &t)}, 3, NULL, 0,
                NULL);
    else if (t.dtype == DC_BOOL)
        make2(g, DC_OP_XOR, a, bg_fetch(g, &t));
    else if (chance(g, 10))
        bg_cast(g, a, t.dtype == DC_F32 ? DC_I32 : DC_F32);
    else
        bg_tamed(g, make2(g, two[below(g, 5)], a, bg_fetch(g, &t)));
}

static void step_reduce(gen *g)
{
    static const dc_op ops[] = {DC_OP_SUM, DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR, DC_OP_PROD};
    const dc_op op = ops[below(g, 5)];
    dc_type t = bg_random_type(g, RANK);
    dc_ref a = bg_any_node(g);
    if (chance(g, 10) && t.rank > 0)
        a = bg_constant_of(g, &t);
    const int rank = dc_node_at(g->f, a)->rank;
    if (rank == 0)
        return;
    if (op != DC_OP_SUM && dc_node_at(g->f, a)->dtype == DC_BOOL)
        a = bg_cast(g, a, DC_I32);
    if (op == DC_OP_PROD)
        a = bg_within(g, a, 1);
    const int64_t mask = 1 + below(g, (1 << rank) - 1);
    bg_tamed(g, bg_make(g, op, &a, 1, &mask, 1, NULL));
}

static void step_source(gen *g)
{
    const dc_type t = bg_random_type(g, RANK);
    bg_constant_of(g, &t);
}

static void step_expand(gen *g)
{
    const dc_ref a = bg_any_node(g);
    dc_type t = type_of(g, a);
    if (t.rank > RANK)
        return;
    const int at = below(g, t.rank + 1);
    memmove(&t.dim[at + 1], &t.dim[at], sizeof *t.dim * (size_t)(t.rank - at));
    t.dim[at] = 1;
    t.rank++;
    const dc_ref one = bg_make(g, DC_OP_RESHAPE, &a, 1, NULL, 0, &t);
    t.dim[at] = any_dim(g);
    bg_make(g, DC_OP_EXPAND, &one, 1, NULL, 0, &t);
}

/* ---- movement --------------------------------------------------------------------------------- */

static void step_permute(gen *g)
{
    const dc_ref a = bg_any_node(g);
    const int rank = dc_node_at(g->f, a)->rank;
    int64_t perm[DC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int k = below(g, i + 1);
        perm[i] = perm[k];
        perm[k] = i;
    }
    bg_make(g, DC_OP_PERMUTE, &a, 1, perm, rank, NULL);
}

/* Dims whose product is that of all: a divisor, what is left, that divided again. */
static void step_reshape(gen *g)
{
    const dc_ref a = bg_any_node(g);
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
    bg_make(g, DC_OP_RESHAPE, &a, 1, NULL, 0, &t);
}

static void step_slice(gen *g)
{
    const dc_ref a = bg_any_node(g);
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
    bg_make(g, DC_OP_SLICE, &a, 1, attr, 2 * t.rank, &t);
}

static void step_pad(gen *g)
{
    const dc_ref a = bg_any_node(g);
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
        if (t.dim[i] == DC_EXTENT_NONE || dc_extent_bound(t.dim[i]) > 160 ||
            dc_extent_lo(e, t.dim[i]) < 0) {
            attr[i] = 0;
            attr[t.rank + i] = 1;
            t.dim[i] = dim;
        }
    }
    const dc_dtype dtype = (dc_dtype)t.dtype;
    attr[2 * t.rank] = (int64_t)dc_bits_of(dtype, dtype == DC_BOOL ? below(g, 2) : below(g, 5) - 2);
    bg_make(g, DC_OP_PAD, &a, 1, attr, 2 * t.rank + 1, &t);
}

static void step_flip(gen *g)
{
    const dc_ref a = bg_any_node(g);
    const int64_t mask = below(g, 1 << dc_node_at(g->f, a)->rank);
    bg_make(g, DC_OP_FLIP, &a, 1, &mask, 1, NULL);
}

/* ---- contractions and integers that index ----------------------------------------------------- */

/* Axes of a by chance in common, contracted, or free; the other operand has some of its own. */
static void step_dot(gen *g)
{
    const dc_ref a = bg_any_node(g);
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
    const dc_ref b = bg_fetch_as(g, (dc_dtype)t.dtype, rank, dim);
    bg_tamed(g, bg_make(g, DC_OP_DOT, (dc_ref[]){a, b}, 2, attr, nattr, NULL));
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
    const dc_ref x = bg_fetch_as(g, DC_F32, 3, (const int64_t[]){any_dim(g), channels, width});
    const dc_ref w = bg_fetch_as(g, DC_F32, 3, (const int64_t[]){any_dim(g), channels, taps});
    const int nattr = dc_conv_write(&c, attr);
    bg_tamed(g, bg_make(g, DC_OP_CONV, (dc_ref[]){x, w}, 2, attr, nattr, NULL));
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
    p->x = bg_any_node(g);
    const dc_type t = type_of(g, p->x);
    if (t.rank == 0)
        return false;
    const int axis = below(g, t.rank), nb = axis > 0 && chance(g, 30) ? 1 : 0;
    const int own = below(g, 3);
    if (nb)
        dim[0] = t.dim[0];
    for (int i = 0; i < own && nb + i < RANK; i++)
        dim[nb + i] = any_dim(g);
    p->index = bg_fetch_as(g, DC_I32, nb + own, dim);
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
        bg_make(g, DC_OP_GATHER, (dc_ref[]){p.x, p.index}, 2, p.attr, 2, NULL);
}

static void step_scatter(gen *g)
{
    picking p;
    if (!choose_picking(g, &p))
        return;
    static const dc_op ops[] = {DC_OP_SCATTER,     DC_OP_SCATTER_MAX, DC_OP_SCATTER_MIN,
                                DC_OP_SCATTER_ADD, DC_OP_SCATTER_ADD, DC_OP_SCATTER_MUL};
    const dc_op op = ops[below(g, p.picked.dtype == DC_BOOL ? 3 : DC_COUNTOF(ops))];
    const dc_ref in[3] = {p.x, p.index, bg_fetch(g, &p.picked)};
    bg_tamed(g, bg_make(g, op, in, 3, p.attr, 2, NULL));
}

void bg_step(gen *g)
{
    typedef void step(gen * g);
    static step *const of_all[] = {
        step_element_wise, step_element_wise, step_element_wise, step_element_wise, step_reduce,
        step_reduce,       step_dot,          step_dot,          step_reshape,      step_reshape,
        step_reshape,      step_slice,        step_slice,        step_pad,          step_pad,
        step_flip,         step_permute,      step_expand,       step_source,       step_gather,
        step_gather,       step_scatter,      step_scatter,      step_conv,
    };
    of_all[below(g, DC_COUNTOF(of_all))](g);
}
