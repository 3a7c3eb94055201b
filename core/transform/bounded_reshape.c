/*
 * Reshapes of tensors with sizes known at run time.
 *
 * From the left, axes of operand and result that hold equally many elements, for all sizes, are a part. A part whose
 * size is known at run time along its first axis alone, in the operand and in the result, keeps its elements where
 * they are, for what is behind the end is behind all of them. Of any other part the elements move: element p of
 * the result, counted by its actual sizes, is picked from where element p of the operand lies.
 */
#include "core/transform/bounded_impl.h"

typedef struct part {
    int from, nfrom, to, nto; /* axes of operand and result */
} part;

/* The next one behind *p; false where none is found. */
static bool next_part(dc_extents *e, const dc_node *x, const dc_node *n, part *p)
{
    int64_t a = 1, b = 1;
    *p = (part){p->from + p->nfrom, 0, p->to + p->nto, 0};
    if (p->from < x->rank && p->to < n->rank) {
        a = x->dim[p->from + p->nfrom++];
        b = n->dim[p->to + p->nto++];
    } else if (p->from < x->rank) {
        a = x->dim[p->from + p->nfrom++];
    } else {
        b = n->dim[p->to + p->nto++];
    }
    while (a != b) {
        /* the smaller one grows; of sizes that cannot be told apart, the one with fewer axes */
        const bool right =
            p->to + p->nto < n->rank &&
            (p->from + p->nfrom == x->rank || (dc_extent_at_least(e, a, b) || p->nfrom > p->nto));
        if (right)
            b = dc_extent_mul(e, b, n->dim[p->to + p->nto++]);
        else if (p->from + p->nfrom < x->rank)
            a = dc_extent_mul(e, a, x->dim[p->from + p->nfrom++]);
        else
            return false;
        if (a == DC_EXTENT_NONE || b == DC_EXTENT_NONE)
            return false;
    }
    return true;
}

/* Is a size known at run time in [at, at + n) anywhere but at the first one that is not 1? */
static bool only_first(const int64_t *dim, int n)
{
    int first = 0;
    while (first < n && dim[first] == 1)
        first++;
    for (int i = first + 1; i < n; i++)
        if (dc_extent_is(dim[i]))
            return false;
    return true;
}

static int64_t bound_product(const int64_t *dim, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        p *= dc_extent_bound(dim[i]);
    return p;
}

static bool is_still(const dc_node *x, const dc_node *n, const part *p)
{
    bool any = false;
    for (int i = 0; i < p->nfrom; i++)
        any = any || dc_extent_is(x->dim[p->from + i]);
    for (int i = 0; i < p->nto; i++)
        any = any || dc_extent_is(n->dim[p->to + i]);
    return !any ||
           (bound_product(x->dim + p->from, p->nfrom) == bound_product(n->dim + p->to, p->nto) &&
            only_first(x->dim + p->from, p->nfrom) && only_first(n->dim + p->to, p->nto));
}

/* Where the elements of a part of the result lie in that of the operand, i32 of its bounds in a row. */
static dc_ref element_places(const lowering *l, const dc_node *x, const dc_node *n, const part *p)
{
    dc_func *f = l->to;
    dc_type t = {.dtype = DC_I32, .rank = (uint8_t)p->nto};
    for (int i = 0; i < p->nto; i++)
        t.dim[i] = dc_extent_bound(n->dim[p->to + i]);
    dc_ref number = 0, at = 0;
    for (int i = 0; i < p->nto; i++) {
        const dc_ref k = dc_bound_iota(f, &t, i);
        const dc_ref size = dc_bound_spread(f, dc_bound_size(l, n->dim[p->to + i]), &t);
        number = number == 0
                     ? k
                     : dc_graph_op2(f, DC_OP_ADD, dc_graph_op2(f, DC_OP_MUL, number, size), k);
    }
    int64_t stride = 1;
    for (int i = p->nfrom - 1; i >= 0; i--) {
        const int64_t dim = x->dim[p->from + i];
        const dc_ref size = dc_bound_spread(f, dc_bound_size(l, dim), &t);
        const dc_ref k = i == 0 ? number : dc_graph_op2(f, DC_OP_REM, number, size);
        const dc_ref place = dc_graph_op2(f, DC_OP_MUL, k, dc_graph_const(f, &t, (double)stride));
        at = at == 0 ? place : dc_graph_op2(f, DC_OP_ADD, at, place);
        number = i == 0 ? number : dc_graph_op2(f, DC_OP_DIV, number, size);
        stride *= dc_extent_bound(dim);
    }
    const int64_t count = bound_product(t.dim, t.rank);
    return dc_graph_reshape(f, at, 1, &count);
}

static bool any_bounded(const dc_node *n)
{
    for (int i = 0; i < n->rank; i++)
        if (dc_extent_is(n->dim[i]))
            return true;
    return false;
}

/*
 * The operand, told its sizes where its axes become others: from an axis of the result nothing is known then of what is
 * needed of them.
 */
static dc_ref sized_operand(const lowering *l, const dc_node *n)
{
    const dc_node *x = dc_node_at(l->from, n->in[0]);
    const dc_ref v = l->map[n->in[0]];
    part p = {0};
    bool become = false;
    while (p.from + p.nfrom < x->rank || p.to + p.nto < n->rank) {
        if (!next_part(l->j->extents, x, n, &p))
            return v;
        for (int i = 0; i < p.nfrom && p.nfrom + p.nto > 2; i++)
            become |= dc_extent_is(x->dim[p.from + i]);
    }
    return become ? dc_bound_with_sizes(l, v, x->dim, x->rank) : v;
}

dc_status dc_bound_reshape(const lowering *l, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(l->from, r), *x = dc_node_at(l->from, n->in[0]);
    const dc_type want = dc_bound_type(l->from, r);
    dc_func *f = l->to;
    dc_ref v = sized_operand(l, n);
    part p = {0};
    int64_t dim[2 * DC_MAX_RANK];
    if (dc_node_count(x) == 0 || dc_type_count(&want) == 0) {
        *out = dc_graph_const(f, &want, 0); /* there is nothing, whatever the sizes */
        return DC_OK;
    }
    if (!any_bounded(x) && !any_bounded(n)) {
        *out = dc_graph_reshape(f, v, want.rank, want.dim);
        return DC_OK;
    }
    int done = 0; /* dims of the result so far; those of the operand that are left follow */
    while (p.from + p.nfrom < x->rank || p.to + p.nto < n->rank) {
        if (!next_part(l->j->extents, x, n, &p))
            return dc_bound_refuse(l, r, "the elements cannot be told apart");
        if (!is_still(x, n, &p)) {
            const int64_t count = bound_product(x->dim + p.from, p.nfrom);
            if (count > INT32_MAX || bound_product(n->dim + p.to, p.nto) > INT32_MAX)
                return dc_bound_refuse(l, r, "it is too large");
            int rank = done;
            dim[rank++] = count;
            for (int i = p.from + p.nfrom; i < x->rank; i++)
                dim[rank++] = dc_extent_bound(x->dim[i]);
            if (rank > DC_MAX_RANK)
                return dc_bound_refuse(l, r, "it has too many axes");
            v = dc_graph_reshape(f, v, rank, dim);
            v = dc_graph_gather(f, v, element_places(l, x, n, &p), done, 0);
        }
        for (int i = 0; i < p.nto; i++)
            dim[done++] = want.dim[p.to + i];
        int rank = done;
        for (int i = p.from + p.nfrom; i < x->rank; i++)
            dim[rank++] = dc_extent_bound(x->dim[i]);
        if (rank > DC_MAX_RANK)
            return dc_bound_refuse(l, r, "it has too many axes");
        v = dc_graph_reshape(f, v, rank, dim);
    }
    *out = dc_graph_reshape(f, v, want.rank, want.dim);
    return DC_OK;
}
