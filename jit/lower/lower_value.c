/*
 * The value of a node at a position: one index expression per dim (jit/lower/lower.h).
 *
 * Movement operations only change the position; element-wise ones keep it. Padding adds a range test that
 * guards every load below it.
 *
 * Floats of 16 bits are memory: a load is brought to f32, what is computed from it is f32, and rounding
 * to 16 bits happens where the value is stored and at casts, which are those that the user wrote. A
 * strict kernel rounds every operation.
 */
#include "jit/lower/lower_impl.h"
#include "jit/nest/select_fold.h"

#include <string.h>

/* Positions --------------------------------------------------------------------------------- */

bool dc_lower_divides(const dc_kernel *k, dc_ix at)
{
    const dc_ix_node *x = &k->ix.at[at];
    for (uint32_t i = 0; i < x->n; i++)
        if (k->atom.at[x->term[i].atom].kind == DC_ATOM_DIV ||
            k->atom.at[x->term[i].atom].kind == DC_ATOM_MOD)
            return true;
    return false;
}

dc_ix dc_lower_place(lowering *w, dc_ref out, dc_ix number)
{
    if (dc_node_at(w->fn, out)->op != DC_OP_PIECE)
        return number;
    const dc_window x = dc_group_window(w->groups, out);
    dc_ix pos[DC_MAX_RANK], at = dc_ix_const(w->k, 0);
    dc_lower_delinear(w->k, number, x.rank, x.dim, pos);
    for (int i = 0; i < x.rank; i++)
        at = dc_ix_add(w->k, at, dc_ix_mul(w->k, pos[i], x.stride[i]));
    w->divides |= dc_lower_divides(w->k, at);
    return at;
}

dc_ix dc_lower_linear(dc_kernel *k, const dc_node *n, const dc_ix *pos)
{
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < n->rank; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, n->dim[i]), pos[i]);
    return at;
}

void dc_lower_delinear(dc_kernel *k, dc_ix at, int rank, const int64_t *dim, dc_ix *pos)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        pos[i] = dc_ix_mod(k, dc_ix_div(k, at, stride), dim[i] > 0 ? dim[i] : 1);
        stride *= dim[i] > 0 ? dim[i] : 1;
    }
}

/* A position by some dims, and by others of the same elements. */
typedef struct dims {
    int rank;
    const int64_t *dim;
    dc_ix *at;
} dims;

/* Of dims from `first` on: how many make a group whose size is that of a group of others. */
static void group_of(const dims *a, int i, const dims *b, int j, int *na, int *nb)
{
    int64_t x = a->dim[i], y = b->dim[j];
    *na = *nb = 1;
    while (x != y && (x < y ? i + *na < a->rank : j + *nb < b->rank))
        if (x < y)
            x *= a->dim[i + (*na)++];
        else
            y *= b->dim[j + (*nb)++];
}

/*
 * From one to the other, group by group of the same size. A dim that both have keeps its position as it is, also where that may
 * lie behind the end: what is computed there is not used.
 */
static void regroup(dc_kernel *k, const dims *from, const dims *to)
{
    int i = 0, j = 0, na, nb;
    for (;;) {
        while (i < from->rank && from->dim[i] == 1)
            i++;
        while (j < to->rank && to->dim[j] == 1)
            to->at[j++] = dc_ix_const(k, 0);
        if (i == from->rank || j == to->rank)
            break;
        group_of(from, i, to, j, &na, &nb);
        dc_ix all = from->at[i];
        for (int n = 1; n < na; n++)
            all = dc_ix_add(k, dc_ix_mul(k, all, from->dim[i + n]), from->at[i + n]);
        if (nb == 1)
            to->at[j] = all;
        else
            dc_lower_delinear(k, all, nb, to->dim + j, to->at + j);
        i += na;
        j += nb;
    }
    while (j < to->rank) /* of no elements */
        to->at[j++] = dc_ix_const(k, 0);
}

void dc_lower_at(lowering *w, const dc_node *n, int rank, const int64_t *dim, const dc_ix *at,
                 dc_ix *pos)
{
    regroup(w->k, &(dims){rank, dim, (dc_ix *)at}, &(dims){n->rank, n->dim, pos});
}

/* Dtypes ------------------------------------------------------------------------------------ */

dc_vx dc_lower_cast(lowering *w, dc_vx v, dc_dtype t)
{
    return w->k->vx.at[v].dtype == t ? v : dc_vx_op(w->k, DC_OP_CAST, t, &v, 1);
}

static dc_vx constant(lowering *w, dc_dtype t, uint64_t bits)
{
    return dc_vx_const(w->k, dc_lower_computed(t), dc_bits_cast(t, dc_lower_computed(t), bits));
}

/* The value, computed of a node of dtype t, as it is in memory. */
dc_vx dc_lower_as_stored(lowering *w, dc_vx v, dc_dtype t)
{
    const dc_vx as_it_was = dc_dtype_is_short(t) ? dc_select_short(w->k, v, t) : 0;
    return as_it_was != 0 ? as_it_was : dc_lower_cast(w, v, t);
}

static dc_vx rounded(lowering *w, dc_vx v, dc_dtype t)
{
    return dc_dtype_is_short(t) ? dc_lower_cast(w, dc_lower_as_stored(w, v, t), DC_F32) : v;
}

/* pad: element p of the operand lands at lo + p * step; elsewhere the fill. */
static dc_vx lower_pad(lowering *w, const dc_node *n, const dc_ix *pos)
{
    dc_kernel *k = w->k;
    const dc_node *a = dc_node_at(w->fn, n->in[0]);
    dc_ix inner[DC_MAX_RANK];
    dc_pred here = {0};
    const dc_pred outer = w->guard;

    for (int i = 0; i < n->rank; i++) {
        const int64_t lo = n->attr[i], step = n->attr[n->rank + i];
        const dc_ix from_lo = dc_ix_add(k, pos[i], dc_ix_const(k, -lo));
        inner[i] = dc_ix_div(k, from_lo, step);
        here = dc_pred_and(k, here, inner[i], a->dim[i]);
        if (step > 1)
            here = dc_pred_and(k, here, dc_ix_mod(k, from_lo, step), 1);
    }
    for (uint32_t i = 0; i < here.n; i++)
        w->guard = dc_pred_and(k, w->guard, here.range[i].ix, here.range[i].n);
    const dc_vx value = dc_lower_node(w, n->in[0], inner);
    w->guard = outer;
    if (here.n == 0)
        return value;
    const uint64_t fill = (uint64_t)n->attr[2 * n->rank];
    const dc_vx in[3] = {dc_vx_test(k, here), value, constant(w, n->dtype, fill)};
    return dc_vx_op(k, DC_OP_WHERE, dc_lower_computed(n->dtype), in, 3);
}

static dc_vx lower_move(lowering *w, const dc_node *n, const dc_ix *pos)
{
    dc_kernel *k = w->k;
    const dc_node *a = dc_node_at(w->fn, n->in[0]);
    dc_ix to[DC_MAX_RANK] = {0};
    switch ((int)n->op) {
    case DC_OP_RESHAPE:
        dc_lower_at(w, a, n->rank, n->dim, pos, to);
        break;
    case DC_OP_PERMUTE:
        for (int i = 0; i < n->rank; i++)
            to[n->attr[i]] = pos[i];
        break;
    case DC_OP_EXPAND:
        for (int i = 0; i < n->rank; i++)
            to[i] = a->dim[i] == 1 ? dc_ix_const(k, 0) : pos[i];
        break;
    case DC_OP_SLICE:
        for (int i = 0; i < n->rank; i++)
            to[i] = dc_ix_add(k, dc_ix_mul(k, pos[i], n->attr[n->rank + i]),
                              dc_ix_const(k, n->attr[i]));
        break;
    case DC_OP_FLIP:
        for (int i = 0; i < n->rank; i++)
            to[i] = n->attr[0] >> i & 1
                        ? dc_ix_add(k, dc_ix_const(k, n->dim[i] - 1), dc_ix_mul(k, pos[i], -1))
                        : pos[i];
        break;
    case DC_OP_PAD:
        return lower_pad(w, n, pos);
    default:
        DC_BUG("%s is no movement", dc_op_row_of(n->op)->name);
    }
    return dc_lower_node(w, n->in[0], to);
}

/* Indices ----------------------------------------------------------------------------------- */

static bool fits(dc_dtype t, int64_t v)
{
    return dc_value_of(t, dc_bits_of(t, (double)v)) == (double)v;
}

/* An integer as part of a position: moved into lo..hi, as i32 where that can hold it. */
dc_ix dc_lower_loaded_index(dc_kernel *k, dc_vx v, int64_t lo, int64_t hi)
{
    dc_dtype t = (dc_dtype)k->vx.at[v].dtype;
    if (dc_dtype_bits(t) < 32)
        v = dc_vx_op(k, DC_OP_CAST, t = DC_I32, &v, 1);
    const dc_op op[2] = {DC_OP_MAX, DC_OP_MIN};
    const int64_t limit[2] = {lo, hi};
    for (int i = 0; i < 2; i++)
        if (fits(t, limit[i])) {
            const dc_vx in[2] = {v, dc_vx_const(k, t, dc_bits_of(t, (double)limit[i]))};
            v = dc_vx_op(k, op[i], t, in, 2);
        }
    if (dc_dtype_bits(t) > 32 && fits(DC_I32, lo) && fits(DC_I32, hi))
        v = dc_vx_op(k, DC_OP_CAST, DC_I32, &v, 1);
    return dc_ix_value(k, v);
}

/* Position in the integers of gather or scatter n, given one in the elements that they pick. */
void dc_lower_index_position(const lowering *w, const dc_node *n, const dc_ix *pos, dc_ix *out)
{
    const int axis = (int)n->attr[0], nb = (int)n->attr[1];
    for (int i = 0; i < dc_node_at(w->fn, n->in[1])->rank; i++)
        out[i] = i < nb ? pos[i] : pos[axis + i - nb];
}

/* The integers take the place of the axis. */
static dc_vx lower_gather(lowering *w, const dc_node *n, const dc_ix *pos)
{
    const dc_node *x = dc_node_at(w->fn, n->in[0]);
    const int axis = (int)n->attr[0], more = n->rank - x->rank;
    dc_ix from[DC_MAX_RANK], to[DC_MAX_RANK];
    dc_lower_index_position(w, n, pos, from);
    for (int i = 0; i < x->rank; i++)
        to[i] = i < axis ? pos[i] : i > axis ? pos[i + more] : dc_ix_const(w->k, 0);
    if (x->dim[axis] > 1)
        to[axis] =
            dc_lower_loaded_index(w->k, dc_lower_node(w, n->in[1], from), 0, x->dim[axis] - 1);
    return dc_lower_node(w, n->in[0], to);
}

/* Expressions ------------------------------------------------------------------------------- */

static dc_vx lower_iota(lowering *w, const dc_node *n, dc_ix at)
{
    const dc_dtype t = dc_dtype_bits(n->dtype) == 64 ? DC_I64 : DC_I32;
    const dc_vx in[1] = {dc_vx_index(w->k, at, t)};
    return dc_vx_op(w->k, DC_OP_CAST, n->dtype, in, 1);
}

static dc_vx lower_ew(lowering *w, const dc_node *n, const dc_vx *in)
{
    if (n->op == DC_OP_CAST) {
        const dc_vx from = rounded(w, in[0], dc_node_at(w->fn, n->in[0])->dtype);
        return dc_lower_cast(w, dc_lower_cast(w, from, n->dtype), dc_lower_computed(n->dtype));
    }
    if (n->op == DC_OP_BITCAST) {
        const dc_vx from = dc_lower_as_stored(w, in[0], dc_node_at(w->fn, n->in[0])->dtype);
        return dc_lower_cast(w, dc_vx_op(w->k, DC_OP_BITCAST, n->dtype, &from, 1),
                             dc_lower_computed(n->dtype));
    }
    dc_vx v = n->op == DC_OP_ADD || n->op == DC_OP_OR ? dc_select_sum(w->k, in[0], in[1]) : 0;
    if (v == 0)
        v = dc_vx_op(w->k, n->op, dc_lower_computed(n->dtype), in, n->nin);
    return w->k->strict ? rounded(w, v, n->dtype) : v;
}

/* Does no load of r need a guard: is there none but of numbers? */
static bool is_of_numbers(const lowering *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    if (dc_lower_fact(w, r)->buf != DC_NO_BUF)
        return n->rank == 0;
    for (int i = 0; i < n->nin; i++)
        if (!is_of_numbers(w, n->in[i]))
            return false;
    return true;
}

/* The size that a mask ends at is read whatever is padded: so the test is known for one of it (dc_nest_limit_test). */
static dc_vx lower_mask(lowering *w, const dc_node *n, const dc_ix *pos)
{
    const dc_pred guard = w->guard;
    w->guard = (dc_pred){0};
    dc_vx in[3] = {dc_lower_node(w, n->in[0], pos)};
    w->guard = guard;
    for (int i = 1; i < 3; i++)
        in[i] = dc_lower_node(w, n->in[i], pos);
    return lower_ew(w, n, in);
}

static dc_vx lower_fresh(lowering *w, dc_ref r, const dc_ix *pos)
{
    const dc_node *n = dc_node_at(w->fn, r);
    dc_vx in[4];

    switch ((dc_op_class)dc_op_row_of(n->op)->cls) {
    case DC_CLASS_SRC:
        if (n->op == DC_OP_CONST || n->op == DC_OP_HOLE)
            return constant(w, n->dtype, n->op == DC_OP_CONST ? (uint64_t)n->attr[0] : 0);
        if (n->op == DC_OP_IOTA)
            return lower_iota(w, n, pos[n->attr[0]]);
        DC_BUG("parameter %%%u is not among the inputs of its group", r);
    case DC_CLASS_EW:
        if (w->guard.n > 0 && dc_needs_is_mask(&w->groups->needs, r) && is_of_numbers(w, n->in[0]))
            return lower_mask(w, n, pos);
        for (int i = 0; i < n->nin; i++)
            in[i] = dc_lower_node(w, n->in[i], pos);
        return lower_ew(w, n, in);
    case DC_CLASS_MOV:
        return lower_move(w, n, pos);
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
        return dc_lower_node(w, n->in[0], pos);
    case DC_CLASS_IDX:
        if (n->op == DC_OP_GATHER)
            return lower_gather(w, n, pos);
        break;
    case DC_CLASS_RED:
    case DC_CLASS_CON:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_FFT:
    case DC_CLASS_CTL:
        break;
    }
    DC_BUG("%s %%%u inside the group of another node", dc_op_row_of(n->op)->name, r);
}

/* What stands in a local: a reduction of one element, or a kept value of one or of a whole row. */
static dc_vx lower_local(lowering *w, dc_ref r)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    const uint32_t buf = dc_lower_fact(w, r)->buf;
    const dc_ix at = k->buf.at[buf].count == 1     ? dc_ix_const(k, 0)
                     : dc_lower_fact(w, r)->is_row ? w->lane
                                                   : w->column;
    const dc_vx v = dc_vx_load(k, buf, at, (dc_pred){0});
    return k->strict && !dc_op_is((dc_op)n->op, DC_CLASS_EW) ? rounded(w, v, n->dtype) : v;
}

dc_vx dc_lower_node(lowering *w, dc_ref r, const dc_ix *pos)
{
    const dc_node *n = dc_node_at(w->fn, r);
    if (dc_lower_fact(w, r)->is_local)
        return lower_local(w, r);
    if (dc_lower_fact(w, r)->buf != DC_NO_BUF)
        return dc_lower_cast(
            w, dc_vx_load(w->k, dc_lower_fact(w, r)->buf, dc_lower_linear(w->k, n, pos), w->guard),
            dc_lower_computed(n->dtype));
    for (memo_entry *e = dc_lower_fact(w, r)->memo; e != NULL; e = e->next)
        if (e->guard == w->guard.range && memcmp(e->pos, pos, n->rank * sizeof *pos) == 0)
            return e->value;
    memo_entry *e = DC_NEW(&w->j->scratch, memo_entry);
    e->guard = w->guard.range;
    if (n->rank > 0)
        memcpy(e->pos, pos, n->rank * sizeof *pos);
    e->value = lower_fresh(w, r, pos);
    e->next = dc_lower_fact(w, r)->memo;
    dc_lower_fact(w, r)->memo = e;
    return e->value;
}
