/*
 * Lowering of one group to a naive kernel (jit/lower/lower.h).
 *
 * An expression is lowered at a position: one index expression per dim of the node. Movement
 * operations only change the position; element-wise ones keep it. Padding adds a range test that
 * guards every load below it.
 *
 * Floats of 16 bits are memory: a load is brought to f32, what is computed from it is f32, and rounding
 * to 16 bits happens where the value is stored and at casts, which are those that the user wrote. A
 * strict kernel rounds every operation.
 *
 * The shape is first tried as one flat axis (and the reduced dims as another): most kernels are
 * linear in memory, and a long axis schedules better. Where division or remainder is left over in
 * an access map, the kernel is lowered again with an axis per dim.
 */
#include "core/graph/dot.h"
#include "jit/lower/lower_impl.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/select_fold.h"

#include <stdio.h>
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

void dc_lower_at(lowering *w, const dc_node *n, int rank, const int64_t *dim, const dc_ix *at,
                 dc_ix *pos)
{
    dc_kernel *k = w->k;
    int same = 0;
    while (same < rank && same < n->rank && n->dim[same] == dim[same])
        same++;
    bool ones = true;
    for (int i = same; i < n->rank; i++)
        ones &= n->dim[i] == 1;
    if (same == rank && ones) {
        for (int i = 0; i < n->rank; i++)
            pos[i] = i < rank ? at[i] : dc_ix_const(k, 0);
        return;
    }
    dc_ix all = dc_ix_const(k, 0);
    for (int i = 0; i < rank; i++)
        all = dc_ix_add(k, dc_ix_mul(k, all, dim[i]), at[i]);
    dc_lower_delinear(k, all, n->rank, n->dim, pos);
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
        dc_lower_delinear(k, dc_lower_linear(k, n, pos), a->rank, a->dim, to);
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
static dc_ix loaded_index(dc_kernel *k, dc_vx v, int64_t lo, int64_t hi)
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
static void index_position(const lowering *w, const dc_node *n, const dc_ix *pos, dc_ix *out)
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
    index_position(w, n, pos, from);
    for (int i = 0; i < x->rank; i++)
        to[i] = i < axis ? pos[i] : i > axis ? pos[i + more] : dc_ix_const(w->k, 0);
    if (x->dim[axis] > 1)
        to[axis] = loaded_index(w->k, dc_lower_node(w, n->in[1], from), 0, x->dim[axis] - 1);
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
    dc_vx v = n->op == DC_OP_ADD || n->op == DC_OP_OR ? dc_select_sum(w->k, in[0], in[1]) : 0;
    if (v == 0)
        v = dc_vx_op(w->k, n->op, dc_lower_computed(n->dtype), in, n->nin);
    return w->k->strict ? rounded(w, v, n->dtype) : v;
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
    const dc_ix at = k->buf.at[buf].count == 1 ? dc_ix_const(k, 0) : w->column;
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

/* Loops ------------------------------------------------------------------------------------- */

static int64_t product(int rank, const int64_t *dim)
{
    int64_t p = 1;
    for (int i = 0; i < rank; i++)
        p *= dim[i];
    return p;
}

/* Axes for the dims given: one flat one, or one each (none for size 1). Fills pos. */
void dc_lower_axes(lowering *w, bool flat, const char *prefix, int rank, const int64_t *dim,
                   bool reduce, nest *loops, dc_ix *pos)
{
    dc_kernel *k = w->k;
    char name[8];
    if (flat && rank > 1) {
        const int64_t total = product(rank, dim);
        const uint32_t a = dc_axis_new(k, prefix, total, reduce);
        loops->axis[loops->n++] = a;
        dc_lower_delinear(k, dc_ix_axis(k, a), rank, dim, pos);
        return;
    }
    for (int i = 0; i < rank; i++) {
        snprintf(name, sizeof name, rank > 1 ? "%s%d" : "%s", prefix, i);
        if (dim[i] == 1) {
            pos[i] = dc_ix_const(k, 0);
            continue;
        }
        const uint32_t a = dc_axis_new(k, name, dim[i], reduce);
        loops->axis[loops->n++] = a;
        pos[i] = dc_ix_axis(k, a);
    }
}

dc_stmt *dc_lower_wrap(dc_kernel *k, const nest *loops, dc_stmt *body)
{
    for (int i = loops->n - 1; i >= 0; i--)
        body = dc_stmt_loop(k, loops->axis[i], body);
    return body;
}

/* The term that a reduction or product adds up at the current reduce axes. */
static dc_vx reduction_term(lowering *w, const dc_node *n, const dc_ix *red_pos)
{
    dc_kernel *k = w->k;
    dc_ix pos[2][DC_MAX_RANK];
    if (n->op == DC_OP_CONV)
        return dc_lower_conv_term(w, n, red_pos);
    if (n->op != DC_OP_DOT) {
        const dc_node *a = dc_node_at(w->fn, n->in[0]);
        for (int i = 0, o = 0, r = 0; i < a->rank; i++)
            pos[0][i] = n->attr[0] >> i & 1 ? red_pos[r++] : w->out_pos[o++];
        return dc_lower_node(w, n->in[0], pos[0]);
    }
    const dc_dot d = dc_dot_of(w->fn, n);
    int next = d.nbatch;
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < d.nbatch; i++)
            pos[s][d.batch[s][i]] = w->out_pos[i];
        for (int i = 0; i < d.ncontract; i++)
            pos[s][d.contract[s][i]] = red_pos[i];
        for (int i = 0; i < d.nfree[s]; i++)
            pos[s][d.free[s][i]] = w->out_pos[next++];
    }
    dc_vx in[2];
    for (int s = 0; s < 2; s++)
        in[s] = dc_lower_cast(w, dc_lower_node(w, n->in[s], pos[s]), dc_lower_computed(n->dtype));
    dc_lower_settle_roles(w, in);
    return dc_vx_op(k, DC_OP_MUL, dc_lower_computed(n->dtype), in, 2);
}

static int reduced_dims(const lowering *w, const dc_node *n, int64_t *dim)
{
    const dc_node *a = dc_node_at(w->fn, n->in[0]);
    int rank = 0;
    if (dc_op_is((dc_op)n->op, DC_CLASS_IDX)) { /* the integers' own axes */
        const dc_node *i = dc_node_at(w->fn, n->in[1]);
        for (int k = (int)n->attr[1]; k < i->rank; k++)
            dim[rank++] = i->dim[k];
        return rank;
    }
    if (n->op == DC_OP_CONV)
        return dc_lower_conv_terms(w->fn, n, dim);
    if (n->op == DC_OP_DOT) {
        const dc_dot d = dc_dot_of(w->fn, n);
        for (int i = 0; i < d.ncontract; i++)
            dim[rank++] = a->dim[d.contract[0][i]];
        return rank;
    }
    for (int i = 0; i < a->rank; i++)
        if (n->attr[0] >> i & 1)
            dim[rank++] = a->dim[i];
    return rank;
}

accumulation dc_lower_accumulate(lowering *w, dc_ref r, dc_vx term)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    const bool is_product = dc_op_is((dc_op)n->op, DC_CLASS_CON);
    const dc_op combine = is_product ? DC_OP_ADD : (dc_op)dc_op_row_of(n->op)->combine;
    const dc_ix zero = dc_ix_const(k, 0);
    const dc_dtype t = dc_lower_computed(n->dtype);
    char name[16] = "acc";
    if (r != w->group->reduce[0])
        snprintf(name, sizeof name, "acc%u", k->buf.n);
    const uint32_t acc = dc_buffer_new(k, name, t, 1, DC_SCOPE_LOCAL, DC_MODE_OUT);
    const accumulation x = {dc_stmt_set(k, 1), dc_stmt_set(k, 1)};
    const uint64_t identity = dc_op_identity(is_product ? DC_OP_SUM : n->op, t);
    x.init->put[0] = (dc_put){acc, zero, dc_vx_const(k, t, identity)};
    const dc_vx in[2] = {dc_vx_load(k, acc, zero, (dc_pred){0}), dc_lower_cast(w, term, t)};
    x.add->put[0] = (dc_put){acc, zero, dc_vx_op(k, combine, t, in, 2)};
    x.add->reduces = true;
    dc_lower_fact(w, r)->buf = acc;
    dc_lower_fact(w, r)->is_local = true;
    return x;
}

typedef struct summing { /* loops over terms */
    nest loops;
    dc_ix pos[DC_MAX_RANK];
    dc_stmt *init, *add; /* in front of them; the last assignment in them */
} summing;

/*
 * May the term be added up in loops that add up others already? None of their results may be part of
 * it, and all are read along the last output axis or not at all, so that one schedule suits them.
 */
static bool may_join(lowering *w, dc_vx term)
{
    dc_kernel *k = w->k;
    const bool *part = dc_vx_parts(k, &w->j->scratch, term);
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *x = &k->vx.at[v];
        bool affine = true;
        if (x->kind != DC_VX_LOAD)
            continue;
        if (k->buf.at[x->buf].scope != DC_SCOPE_PARAM) {
            if (v <= term && part[v])
                return false;
            continue;
        }
        const int64_t step = dc_ix_stride(k, x->at, w->last, &affine);
        if (!affine || (step != 0 && step != 1))
            return false;
    }
    return true;
}

/*
 * acc = identity; for each reduce position: acc = acc (combine) term, in the loops before if it may. Where
 * there is one term there are no loops to join: their end is where the next statement goes.
 */
static dc_stmt *lower_reduction(lowering *w, uint32_t which, bool flat, summing *s)
{
    const dc_ref r = w->group->reduce[which];
    const dc_node *n = dc_node_at(w->fn, r);
    const char prefix[3] = {'k', which > 0 ? (char)('a' + which) : '\0', '\0'};
    int64_t dim[DC_MAX_RANK];
    const int rank = reduced_dims(w, n, dim);

    if (s->add != NULL && s->loops.n > 0 && w->last != DC_NO_AXIS) {
        const dc_vx term = reduction_term(w, n, s->pos);
        if (may_join(w, term)) {
            const accumulation x = dc_lower_accumulate(w, r, term);
            x.init->next = s->init->next;
            s->init->next = x.init;
            s->add = s->add->next = x.add;
            return NULL;
        }
        dc_lower_forget(w);
    }
    *s = (summing){0};
    dc_lower_axes(w, flat, prefix, rank, dim, true, &s->loops, s->pos);
    if (dc_op_is((dc_op)n->op, DC_CLASS_CON))
        dc_lower_term_roles(w, n, &s->loops, s->pos);
    const accumulation x = dc_lower_accumulate(w, r, reduction_term(w, n, s->pos));
    s->init = x.init;
    s->add = x.add;
    x.init->next = dc_lower_wrap(w->k, &s->loops, x.add);
    return x.init;
}

static bool tests_divide(const dc_kernel *k, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (dc_lower_divides(k, p.range[i].ix))
            return true;
    return false;
}

/* Is a division or remainder left in any map that is used, or in a test where nothing is added up? */
static bool maps_divide(const lowering *w)
{
    const dc_kernel *k = w->k;
    const bool is_map = w->group->nreduce == 0 && !w->group->row_wise;
    if (w->divides)
        return true;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (is_map && tests_divide(k, n->pred))
            return true;
        if (n->kind != DC_VX_LOAD && n->kind != DC_VX_INDEX)
            continue;
        if (dc_lower_divides(k, n->at))
            return true;
    }
    return false;
}

static dc_ref first_reduction(const lowering *w)
{
    return w->group->nreduce > 0 ? w->group->reduce[0] : 0;
}

static bool reduces_by(const lowering *w, dc_op op)
{
    const dc_ref r = first_reduction(w);
    return r != 0 && dc_node_at(w->fn, r)->op == op;
}

/* Of values whose node does not say what its dims mean: they may be products of two of other dims. */
static bool is_plain_reduction(const lowering *w)
{
    const dc_ref r = first_reduction(w);
    return r != 0 && !w->group->row_wise && dc_op_is((dc_op)dc_node_at(w->fn, r)->op, DC_CLASS_RED);
}

static bool is_conv(const lowering *w)
{
    return reduces_by(w, DC_OP_CONV);
}

/* E_64_10 element-wise, R_64_k10 a reduction, D a product, C a convolution, S a scatter, W several steps
 * to a row. */
static const char *kernel_name(const lowering *w, char *name, size_t size)
{
    const bool rows = w->group->row_wise;
    const dc_ref r = first_reduction(w);
    const dc_node *shape = dc_node_at(w->fn, rows ? w->group->shape : w->group->out[0]);
    const dc_op reduce = r == 0 ? DC_OP_NEG : (dc_op)dc_node_at(w->fn, r)->op;
    const char kind = rows                             ? 'W'
                      : r == 0                         ? 'E'
                      : reduce == DC_OP_DOT            ? 'D'
                      : reduce == DC_OP_CONV           ? 'C'
                      : dc_op_is(reduce, DC_CLASS_IDX) ? 'S'
                                                       : 'R';
    int n = snprintf(name, size, "%c", kind);
    for (int i = 0; i < shape->rank && n < (int)size; i++)
        n += snprintf(name + n, size - (size_t)n, "_%lld", (long long)shape->dim[i]);
    if (r != 0 && !rows) {
        int64_t dim[DC_MAX_RANK];
        const int rank = reduced_dims(w, dc_node_at(w->fn, r), dim);
        for (int i = 0; i < rank && n < (int)size; i++)
            n += snprintf(name + n, size - (size_t)n, "%s%lld", i ? "_" : "_k", (long long)dim[i]);
    }
    return name;
}

/* A buffer that begins so many elements behind the beginning of memory. */
static void begins_at(dc_buffer *b, int64_t first)
{
    const size_t size = dc_dtype_size((dc_dtype)b->dtype);
    b->align = (uint64_t)first * size % DC_BUFFER_ALIGN == 0 ? 0 : (uint8_t)size;
}

static void declare_buffers(lowering *w)
{
    const dc_group *g = w->group;
    char name[16];
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        snprintf(name, sizeof name, "out%u", i);
        const uint32_t b =
            dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_OUT);
        if (n->op != DC_OP_PIECE)
            continue;
        const dc_window x = dc_group_window(w->groups, g->out[i]);
        w->k->buf.at[b].count = x.span + 1;
        begins_at(&w->k->buf.at[b], x.first);
    }
    for (uint32_t i = 0; i < g->nin; i++) {
        const dc_node *n = dc_node_at(w->fn, g->in[i]);
        snprintf(name, sizeof name, "x%u", i);
        dc_lower_fact(w, g->in[i])->buf =
            dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_IN);
    }
}

static int64_t bytes_touched(const lowering *w)
{
    const dc_group *g = w->group;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->nout + g->nin; i++) {
        const dc_node *n = dc_node_at(w->fn, i < g->nout ? g->out[i] : g->in[i - g->nout]);
        bytes += dc_node_count(n) * (int64_t)dc_dtype_size((dc_dtype)n->dtype);
    }
    return bytes;
}

static bool is_scatter(const lowering *w)
{
    const dc_ref r = first_reduction(w);
    return r != 0 && dc_op_is((dc_op)dc_node_at(w->fn, r)->op, DC_CLASS_IDX);
}

/* Arithmetic per launch: a product counts 2 per term, other kernels 1 per operation and position.
 */
static int64_t operations(const lowering *w, int64_t positions)
{
    const dc_ref r = first_reduction(w);
    int64_t terms = 1, ops = 0;
    for (uint32_t i = 1; i < w->k->vx.n; i++)
        ops += w->k->vx.at[i].kind == DC_VX_OP;
    if (r != 0 && !is_scatter(w)) {
        int64_t dim[DC_MAX_RANK];
        const dc_node *n = dc_node_at(w->fn, r);
        terms = product(reduced_dims(w, n, dim), dim);
        if (dc_op_is((dc_op)n->op, DC_CLASS_CON))
            return positions * (2 * terms + ops - 2);
    }
    return positions * terms * ops;
}

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

/*
 * Two phases for each position beside the axis: the axis is filled, then one update follows the
 * other in the order of the integers. Positions beside the axis are independent.
 */
static void lower_scatter(lowering *w, bool flat)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, first_reduction(w)), *i = dc_node_at(w->fn, n->in[1]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1], own = i->rank - nb;
    dc_ix pos[DC_MAX_RANK], of[DC_MAX_RANK], from[DC_MAX_RANK];
    nest beside = {0}, along = {0}, updates = {0};
    dc_stmt *fill = dc_stmt_set(k, 1), *update = dc_stmt_set(k, 1), *body = NULL;
    const dc_dtype t = n->dtype;

    dc_lower_axes(w, flat, "i", axis, n->dim, false, &beside, pos);
    dc_lower_axes(w, flat, "n", n->rank - axis - 1, n->dim + axis + 1, false, &beside,
                  pos + axis + 1);
    if (!w->updates_only) {
        dc_lower_axes(w, flat, "a", 1, n->dim + axis, false, &along, pos + axis);
        fill->put[0] = (dc_put){0, dc_lower_linear(k, n, pos),
                                dc_lower_as_stored(w, dc_lower_node(w, n->in[0], pos), t)};
        body = dc_lower_wrap(k, &along, fill);
    }

    memcpy(of, pos, (size_t)axis * sizeof *of);
    dc_lower_axes(w, flat, "k", own, i->dim + nb, false, &updates, of + axis);
    for (int d = axis + 1; d < n->rank; d++)
        of[d - 1 + own] = pos[d];
    index_position(w, n, of, from);
    const dc_vx at = dc_lower_node(w, n->in[1], from), value = dc_lower_node(w, n->in[2], of);
    update->pred =
        dc_pred_and(k, (dc_pred){0}, loaded_index(k, at, -1, n->dim[axis]), n->dim[axis]);
    pos[axis] = loaded_index(k, at, 0, n->dim[axis] - 1);
    const dc_ix to = dc_lower_linear(k, n, pos);
    const dc_vx sum[2] = {
        dc_lower_cast(w, dc_vx_load(k, 0, to, (dc_pred){0}), dc_lower_computed(t)), value};
    const dc_vx v =
        n->op == DC_OP_SCATTER ? value : dc_vx_op(k, DC_OP_ADD, dc_lower_computed(t), sum, 2);
    update->put[0] = (dc_put){0, to, dc_lower_as_stored(w, v, t)};

    if (!w->updates_only) { /* two steps for each row */
        dc_lower_set_role(k, &beside, DC_ROLE_ROW);
        dc_lower_set_role(k, &along, DC_ROLE_COLUMN);
        dc_lower_set_role(k, &updates, DC_ROLE_COLUMN);
    }
    *(body != NULL ? &body->next : &body) = dc_lower_wrap(k, &updates, update);
    k->root = dc_lower_wrap(k, &beside, body);
    k->flops = operations(w, dc_node_count(dc_node_at(w->fn, n->in[2])));
    if (w->updates_only) {
        k->buf.at[0].mode = DC_MODE_INOUT;
        k->bytes = 2 * dc_node_count(dc_node_at(w->fn, n->in[2])) * (int64_t)dc_dtype_size(t);
    }
}

void dc_lower_forget(lowering *w)
{
    w->scratch->loop++;
}

/* The reductions one after the other, then the outputs, at the position w->out_pos of `shape`. */
static dc_stmt *lower_position(lowering *w, const dc_node *shape, bool flat)
{
    const dc_group *g = w->group;
    dc_stmt *first = NULL, **last = &first;
    summing s = {0};
    for (uint32_t i = 0; i < g->nreduce; i++) {
        *last = lower_reduction(w, i, flat, &s);
        while (*last != NULL)
            last = &(*last)->next;
        dc_lower_forget(w);
    }
    const dc_ix at = dc_lower_linear(w->k, shape, w->out_pos);
    dc_stmt *store = *last = dc_stmt_set(w->k, g->nout);
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        dc_ix pos[DC_MAX_RANK];
        dc_lower_at(w, n, shape->rank, shape->dim, w->out_pos, pos);
        const dc_vx v = dc_lower_node(w, g->out[i], pos);
        store->put[i] =
            (dc_put){i, dc_lower_place(w, g->out[i], at), dc_lower_as_stored(w, v, n->dtype)};
    }
    return first;
}

static dc_kernel *lower_as(lowering *w, bool flat)
{
    const dc_group *g = w->group;
    const dc_node *shape = dc_node_at(w->fn, g->nreduce > 0 ? g->reduce[0] : g->out[0]);
    char name[64];
    nest loops = {0};

    dc_kernel *k = w->k = dc_kernel_new(kernel_name(w, name, sizeof name));
    dc_job_defer(w->j, free_kernel, k);
    k->strict = strcmp(w->j->opt->math, "strict") == 0;
    w->scratch->kernel++;
    w->scratch->loop++;
    w->guard = (dc_pred){0};
    w->divides = false;
    w->last = DC_NO_AXIS;
    declare_buffers(w);
    k->bytes = bytes_touched(w);
    if (is_scatter(w)) {
        lower_scatter(w, flat);
        return k;
    }
    if (w->updates_only) {
        dc_lower_put(w, flat);
        k->flops = operations(w, k->bytes / (2 * (int64_t)dc_dtype_size(k->buf.at[0].dtype)));
        return k;
    }
    if (g->row_wise) {
        const dc_node *full = dc_node_at(w->fn, g->shape);
        k->root = dc_lower_rows(w, flat);
        k->flops = operations(w, product(g->split, full->dim));
        return k;
    }
    if (is_conv(w))
        dc_lower_conv_loops(w, shape, &loops);
    else
        dc_lower_axes(w, flat, "i", shape->rank, shape->dim, false, &loops, w->out_pos);
    if (reduces_by(w, DC_OP_DOT))
        dc_lower_dot_roles(w, shape, &loops);
    if (loops.n > 0)
        w->last = loops.axis[loops.n - 1];
    k->root = dc_lower_wrap(k, &loops, lower_position(w, shape, flat));
    k->flops = operations(w, dc_node_count(shape));
    return k;
}

static struct dc_lower_scratch *new_scratch(dc_arena *a, uint32_t nodes)
{
    struct dc_lower_scratch *s = DC_NEW(a, struct dc_lower_scratch);
    s->fact = DC_NEW_ARRAY(a, lower_fact, nodes);
    return s;
}

void dc_lower_prepare(dc_groups *groups, dc_arena *a)
{
    groups->lower = new_scratch(a, groups->fn->node.n);
}

static dc_status lower(dc_job *j, const dc_groups *groups, uint32_t index, bool updates_only,
                       dc_kernel **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    lowering w = {.j = j,
                  .groups = groups,
                  .group = &groups->at[index],
                  .fn = groups->fn,
                  .scratch = groups->lower,
                  .updates_only = updates_only};
    if (w.scratch == NULL)
        w.scratch = new_scratch(&j->scratch, groups->fn->node.n);

    dc_kernel *k = lower_as(&w, !is_conv(&w));
    if (!is_conv(&w) && maps_divide(&w)) {
        dc_job_keep(j, k);
        dc_kernel_free(k);
        k = lower_as(&w, false);
    }
    if (is_plain_reduction(&w))
        dc_roles_derive(k);
    dc_job_keep(j, k);
    dc_arena_rewind(&j->scratch, mark);
    *out = k;
    return DC_OK;
}

dc_status dc_lower(dc_job *j, const dc_groups *groups, uint32_t index, dc_kernel **out)
{
    return lower(j, groups, index, false, out);
}

dc_status dc_lower_updates(dc_job *j, const dc_groups *groups, uint32_t index, dc_kernel **out)
{
    return lower(j, groups, index, true, out);
}

dc_ref dc_lower_changes(const dc_groups *groups, uint32_t index)
{
    const dc_group *g = &groups->at[index];
    const dc_node *n = dc_node_at(groups->fn, g->nreduce == 1 ? g->reduce[0] : g->out[0]);
    return dc_op_is((dc_op)n->op, DC_CLASS_IDX) && g->nreduce == 1 ? n->in[0]
                                                                   : dc_lower_put_in(groups, index);
}
