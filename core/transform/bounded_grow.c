/*
 * Values of states that grow (dc_bounded_lower_into). A state has the memory of its largest size, and its new value is
 * stored there. Where that is the old value with rows behind its last one, dc.concat({ state, x }, 1), it is written as
 * a scatter of these rows into the memory: a scatter is done in place, and takes the time of what is added.
 *
 * What is known of the sizes makes this right: a call whose new size is above the room does not run (dc_spec_growth).
 */
#include "core/transform/bounded_impl.h"

static dc_ref below_stops(const dc_func *f, dc_ref r)
{
    while (dc_node_at(f, r)->op == DC_OP_STOP)
        r = dc_node_at(f, r)->in[0];
    return r;
}

bool dc_bound_is_changed(const lowering *l, dc_ref r)
{
    const dc_node *n = dc_node_at(l->from, below_stops(l->from, r));
    return dc_op_is((dc_op)n->op, DC_CLASS_IDX) && n->op != DC_OP_GATHER;
}

bool dc_bound_is_param(const lowering *l, dc_ref r)
{
    return dc_node_at(l->from, below_stops(l->from, r))->op == DC_OP_PARAM;
}

bool dc_bound_is_changed_param(const lowering *l, dc_ref r)
{
    r = below_stops(l->from, r);
    if (l->in_body || l->place == NULL)
        return l->in_body && dc_bound_is_param(l, r);
    for (uint32_t i = 0; i < l->from->result.n; i++)
        if (l->place[i].rows > 0 && l->from->param.at[l->place[i].param] == r)
            return true;
    return false;
}

/* ---- rows that are added ----------------------------------------------------------------------- */

/* One of two operands, padded along the first axis alone by what adds nothing, from `lo` on. */
static bool is_part(const dc_func *f, dc_ref r, int64_t lo)
{
    const dc_node *n = dc_node_at(f, r);
    const bool flt = dc_dtype_is_float((dc_dtype)n->dtype);
    if (n->op != DC_OP_PAD ||
        (uint64_t)n->attr[2 * n->rank] != (flt ? dc_bits_of((dc_dtype)n->dtype, -0.0) : 0))
        return false;
    for (int i = 0; i < n->rank; i++)
        if (n->attr[i] != (i == 0 ? lo : 0) || n->attr[n->rank + i] != 1 ||
            (i > 0 && n->dim[i] != dc_node_at(f, n->in[0])->dim[i]))
            return false;
    return true;
}

typedef struct joined {
    dc_ref old, added;
} joined;

/* As dc.concat writes it (dsl/ops/concat.c): `added` behind `old`. */
static bool is_concat(const lowering *l, dc_ref r, joined *out)
{
    const dc_func *f = l->from;
    const dc_node *n = dc_node_at(f, r);
    const bool flt = dc_dtype_is_float((dc_dtype)n->dtype);
    if (n->op != (flt ? DC_OP_ADD : DC_OP_OR) || n->rank == 0)
        return false;
    for (int i = 0; i < 2; i++) {
        const dc_node *a = dc_node_at(f, n->in[i]), *b = dc_node_at(f, n->in[1 - i]);
        if (a->op != DC_OP_PAD || b->op != DC_OP_PAD)
            return false;
        const int64_t first = dc_node_at(f, a->in[0])->dim[0];
        const int64_t more = dc_node_at(f, b->in[0])->dim[0];
        *out = (joined){a->in[0], b->in[0]};
        if (is_part(f, n->in[i], 0) && is_part(f, n->in[1 - i], first) &&
            dc_extent_add(l->j->extents, first, more) == n->dim[0])
            return true;
    }
    return false;
}

/*
 * From a new value to the parameter that it is made of by changes and by rows behind the last one: those get the rows of
 * the memory. False where it is not made so.
 */
static bool walk_growth(const lowering *l, dc_ref r, const dc_bounded_place *p, bool mark)
{
    for (;;) {
        const dc_node *n = dc_node_at(l->from, r);
        joined x;
        if (r == l->from->param.at[p->param])
            return true;
        if (n->op == DC_OP_STOP || dc_bound_is_changed(l, r))
            r = n->in[0];
        else if (is_concat(l, r, &x)) {
            if (mark)
                l->grown[r] = p->rows;
            r = x.old;
        } else
            return false;
    }
}

void dc_bound_find_growth(lowering *l)
{
    dc_arena *a = &l->j->scratch;
    if (l->place == NULL)
        return;
    l->grown = DC_NEW_ARRAY(a, int64_t, l->from->node.n);
    l->room = DC_NEW_ARRAY(a, dc_ref, l->from->node.n);
    for (uint32_t i = 0; i < l->from->result.n; i++) {
        const dc_ref r = l->from->result.at[i];
        if (l->place[i].rows > 0 && walk_growth(l, r, &l->place[i], false))
            walk_growth(l, r, &l->place[i], true);
    }
}

/* ---- values in the memory of a state ----------------------------------------------------------- */

/* So many rows of a value, or with zeros behind its own. */
static dc_ref with_rows(dc_func *f, dc_ref v, int64_t rows)
{
    const dc_type t = dc_node_type(f, v);
    int64_t first[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    if (rows == t.dim[0])
        return v;
    for (int i = 0; i < t.rank; i++) {
        step[i] = 1;
        dim[i] = i == 0 ? rows : t.dim[i];
    }
    return rows < t.dim[0] ? dc_graph_slice(f, v, first, step, dim)
                           : dc_graph_pad(f, v, first, step, dim, dc_bits_of((dc_dtype)t.dtype, 0));
}

/* As it lies in memory of so many rows. */
static dc_ref in_room(const lowering *l, dc_ref r, int64_t rows)
{
    r = below_stops(l->from, r);
    return l->room != NULL && l->room[r] != 0 ? l->room[r] : with_rows(l->to, l->map[r], rows);
}

bool dc_bound_append(const lowering *l, dc_ref r, dc_ref *out)
{
    joined x;
    if (l->grown == NULL || l->grown[r] == 0 || !is_concat(l, r, &x))
        return false;
    dc_func *f = l->to;
    const dc_node *old = dc_node_at(l->from, x.old), *added = dc_node_at(l->from, x.added);
    const dc_type bound = dc_bound_type(l->from, r);
    const int64_t n = dc_extent_bound(added->dim[0]), attr[2] = {0, 0};
    const dc_type at = dc_type_make(DC_I32, 1, &n);
    const dc_ref index = dc_graph_op2(f, DC_OP_ADD, dc_bound_iota(f, &at, 0),
                                      dc_bound_spread(f, dc_bound_size(l, old->dim[0]), &at));
    const dc_ref in[3] = {in_room(l, x.old, l->grown[r]),
                          dc_bound_mask(l, index, added->dim, 1, dc_bits_of(DC_I32, -1)),
                          dc_bound_operand(l, x.added)};
    l->room[r] = dc_graph_make(f, DC_OP_SCATTER, in, 3, attr, 2, NULL);
    *out = with_rows(f, l->room[r], bound.dim[0]);
    return true;
}

dc_ref dc_bound_place(const lowering *l, uint32_t result)
{
    const dc_ref r = l->from->result.at[result];
    if (l->place == NULL || l->place[result].rows == 0)
        return l->map[below_stops(l->from, r)];
    return in_room(l, r, l->place[result].rows);
}

bool dc_bound_is_returned(const lowering *l, uint32_t result)
{
    const dc_ref r = below_stops(l->from, l->from->result.at[result]);
    if (l->place == NULL || l->place[result].rows > 0)
        return false;
    for (uint32_t i = 0; i < l->from->result.n; i++)
        if (l->place[i].rows > 0 && below_stops(l->from, l->from->result.at[i]) == r)
            return true;
    return false;
}

bool dc_bound_is_in_room(const lowering *l, uint32_t result)
{
    const dc_ref r = below_stops(l->from, l->from->result.at[result]);
    if (dc_bound_is_returned(l, result))
        return false;
    return dc_bound_is_changed(l, r) || dc_node_at(l->from, r)->op == DC_OP_PICK ||
           (l->room != NULL && l->room[r] != 0);
}
