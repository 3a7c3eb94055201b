/*
 * Lowering of one group to a naive kernel (jit/lower.h).
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
#include "jit/lower.h"

#include <stdio.h>
#include <string.h>

typedef struct memo_entry {
    dc_ix pos[DC_MAX_RANK];
    const dc_range *guard;
    dc_vx value;
    struct memo_entry *next;
} memo_entry;

typedef struct lowering {
    dc_job *j;
    const dc_group *group;
    const dc_func *fn;
    dc_kernel *k;
    uint32_t *buf_of; /* kernel buffer by ref, DC_NO_BUF elsewhere */
    uint32_t acc;     /* local that holds the reduction, DC_NO_BUF before it exists */
    dc_ix out_pos[DC_MAX_RANK];
    dc_pred guard;     /* range tests of the paddings above */
    memo_entry **memo; /* by ref */
} lowering;

static dc_vx lower_node(lowering *w, dc_ref r, const dc_ix *pos);

/* Positions --------------------------------------------------------------------------------- */

static dc_ix linear(dc_kernel *k, const dc_node *n, const dc_ix *pos)
{
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < n->rank; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, n->dim[i]), pos[i]);
    return at;
}

static void delinear(dc_kernel *k, dc_ix at, int rank, const int64_t *dim, dc_ix *pos)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        pos[i] = dc_ix_mod(k, dc_ix_div(k, at, stride), dim[i] > 0 ? dim[i] : 1);
        stride *= dim[i] > 0 ? dim[i] : 1;
    }
}

/* Dtypes ------------------------------------------------------------------------------------ */

/* What values of the dtype are computed as. */
static dc_dtype computed(dc_dtype t)
{
    return dc_dtype_is_short(t) ? DC_F32 : t;
}

static dc_vx cast(lowering *w, dc_vx v, dc_dtype t)
{
    return w->k->vx.at[v].dtype == t ? v : dc_vx_op(w->k, DC_OP_CAST, t, &v, 1);
}

static dc_vx constant(lowering *w, dc_dtype t, uint64_t bits)
{
    return dc_vx_const(w->k, computed(t), dc_bits_cast(t, computed(t), bits));
}

/* The value, computed of a node of dtype t, as it is in memory. */
static dc_vx as_stored(lowering *w, dc_vx v, dc_dtype t)
{
    const dc_vx_node *n = &w->k->vx.at[v];
    const bool widened = n->kind == DC_VX_OP && n->op == DC_OP_CAST;
    if (widened && dc_dtype_is_short(t) && w->k->vx.at[n->in[0]].dtype == t)
        return n->in[0];
    return cast(w, v, t);
}

static dc_vx rounded(lowering *w, dc_vx v, dc_dtype t)
{
    return dc_dtype_is_short(t) ? cast(w, as_stored(w, v, t), DC_F32) : v;
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
    const dc_vx value = lower_node(w, n->in[0], inner);
    w->guard = outer;
    if (here.n == 0)
        return value;
    const uint64_t fill = (uint64_t)n->attr[2 * n->rank];
    const dc_vx in[3] = {dc_vx_test(k, here), value, constant(w, n->dtype, fill)};
    return dc_vx_op(k, DC_OP_WHERE, computed(n->dtype), in, 3);
}

static dc_vx lower_move(lowering *w, const dc_node *n, const dc_ix *pos)
{
    dc_kernel *k = w->k;
    const dc_node *a = dc_node_at(w->fn, n->in[0]);
    dc_ix to[DC_MAX_RANK] = {0};
    switch ((int)n->op) {
    case DC_OP_RESHAPE:
        delinear(k, linear(k, n, pos), a->rank, a->dim, to);
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
    return lower_node(w, n->in[0], to);
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
        to[axis] = loaded_index(w->k, lower_node(w, n->in[1], from), 0, x->dim[axis] - 1);
    return lower_node(w, n->in[0], to);
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
        return cast(w, cast(w, from, n->dtype), computed(n->dtype));
    }
    const dc_vx v = dc_vx_op(w->k, n->op, computed(n->dtype), in, n->nin);
    return w->k->strict ? rounded(w, v, n->dtype) : v;
}

static dc_vx lower_fresh(lowering *w, dc_ref r, const dc_ix *pos)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    dc_vx in[4];

    if (r == w->group->reduce) {
        if (w->acc == DC_NO_BUF)
            DC_BUG("%%%u reads its own reduction", r);
        const dc_vx sum = dc_vx_load(k, w->acc, dc_ix_const(k, 0), (dc_pred){0});
        return k->strict ? rounded(w, sum, n->dtype) : sum;
    }
    switch ((dc_op_class)dc_op_row_of(n->op)->cls) {
    case DC_CLASS_SRC:
        if (n->op == DC_OP_CONST || n->op == DC_OP_HOLE)
            return constant(w, n->dtype, n->op == DC_OP_CONST ? (uint64_t)n->attr[0] : 0);
        if (n->op == DC_OP_IOTA)
            return lower_iota(w, n, pos[n->attr[0]]);
        DC_BUG("parameter %%%u is not among the inputs of its group", r);
    case DC_CLASS_EW:
        for (int i = 0; i < n->nin; i++)
            in[i] = lower_node(w, n->in[i], pos);
        return lower_ew(w, n, in);
    case DC_CLASS_MOV:
        return lower_move(w, n, pos);
    case DC_CLASS_SAME:
        return lower_node(w, n->in[0], pos);
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

static bool is_input(const lowering *w, dc_ref r)
{
    for (uint32_t i = 0; i < w->group->nin; i++)
        if (w->group->in[i] == r)
            return true;
    return false;
}

static dc_vx lower_node(lowering *w, dc_ref r, const dc_ix *pos)
{
    const dc_node *n = dc_node_at(w->fn, r);
    if (is_input(w, r))
        return cast(w, dc_vx_load(w->k, w->buf_of[r], linear(w->k, n, pos), w->guard),
                    computed(n->dtype));
    for (memo_entry *e = w->memo[r]; e != NULL; e = e->next)
        if (e->guard == w->guard.range && memcmp(e->pos, pos, n->rank * sizeof *pos) == 0)
            return e->value;
    memo_entry *e = DC_NEW(&w->j->scratch, memo_entry);
    e->guard = w->guard.range;
    if (n->rank > 0)
        memcpy(e->pos, pos, n->rank * sizeof *pos);
    e->value = lower_fresh(w, r, pos);
    e->next = w->memo[r];
    w->memo[r] = e;
    return e->value;
}

/* Loops ------------------------------------------------------------------------------------- */

typedef struct nest {
    uint32_t axis[2 * DC_MAX_RANK];
    int n;
} nest;

static int64_t product(int rank, const int64_t *dim)
{
    int64_t p = 1;
    for (int i = 0; i < rank; i++)
        p *= dim[i];
    return p;
}

/* Axes for the dims given: one flat one, or one each (none for size 1). Fills pos. */
static void make_axes(lowering *w, bool flat, const char *prefix, int rank, const int64_t *dim,
                      bool reduce, nest *loops, dc_ix *pos)
{
    dc_kernel *k = w->k;
    char name[8];
    if (flat && rank > 1) {
        const int64_t total = product(rank, dim);
        const uint32_t a = dc_axis_new(k, prefix, total, reduce);
        loops->axis[loops->n++] = a;
        delinear(k, dc_ix_axis(k, a), rank, dim, pos);
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

static dc_stmt *wrap(dc_kernel *k, const nest *loops, dc_stmt *body)
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
    if (n->op != DC_OP_DOT) {
        const dc_node *a = dc_node_at(w->fn, n->in[0]);
        for (int i = 0, o = 0, r = 0; i < a->rank; i++)
            pos[0][i] = n->attr[0] >> i & 1 ? red_pos[r++] : w->out_pos[o++];
        return lower_node(w, n->in[0], pos[0]);
    }
    const int nb = (int)n->attr[0], nc = (int)n->attr[1];
    const int64_t *batch = n->attr + 2, *contracted = n->attr + 2 + 2 * nb;
    int next = nb;
    for (int s = 0; s < 2; s++) {
        const dc_node *a = dc_node_at(w->fn, n->in[s]);
        for (int i = 0; i < a->rank; i++)
            pos[s][i] = 0;
        for (int i = 0; i < nb; i++)
            pos[s][batch[s * nb + i]] = w->out_pos[i];
        for (int i = 0; i < nc; i++)
            pos[s][contracted[s * nc + i]] = red_pos[i];
        for (int i = 0; i < a->rank; i++)
            if (pos[s][i] == 0)
                pos[s][i] = w->out_pos[next++];
    }
    dc_vx in[2];
    for (int s = 0; s < 2; s++)
        in[s] = cast(w, lower_node(w, n->in[s], pos[s]), computed(n->dtype));
    return dc_vx_op(k, DC_OP_MUL, computed(n->dtype), in, 2);
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
    if (n->op == DC_OP_DOT) {
        const int nb = (int)n->attr[0], nc = (int)n->attr[1];
        for (int i = 0; i < nc; i++)
            dim[rank++] = a->dim[n->attr[2 + 2 * nb + i]];
        return rank;
    }
    for (int i = 0; i < a->rank; i++)
        if (n->attr[0] >> i & 1)
            dim[rank++] = a->dim[i];
    return rank;
}

/* acc = identity; for each reduce position: acc = acc (combine) term. */
static dc_stmt *lower_reduction(lowering *w, bool flat)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, w->group->reduce);
    const bool is_dot = n->op == DC_OP_DOT;
    const dc_op combine = is_dot ? DC_OP_ADD : (dc_op)dc_op_row_of(n->op)->combine;
    const dc_ix zero = dc_ix_const(k, 0);
    const dc_dtype t = computed(n->dtype);
    int64_t dim[DC_MAX_RANK];
    dc_ix pos[DC_MAX_RANK];
    nest loops = {0};

    const int rank = reduced_dims(w, n, dim);
    make_axes(w, flat, "k", rank, dim, true, &loops, pos);
    const dc_vx term = cast(w, reduction_term(w, n, pos), t);
    const uint32_t acc = dc_buffer_new(k, "acc", t, 1, DC_SCOPE_LOCAL, DC_MODE_OUT);
    dc_stmt *init = dc_stmt_set(k, 1), *add = dc_stmt_set(k, 1);
    const uint64_t identity = dc_op_identity(is_dot ? DC_OP_SUM : n->op, t);
    init->put[0] = (dc_put){acc, zero, dc_vx_const(k, t, identity)};
    const dc_vx in[2] = {dc_vx_load(k, acc, zero, (dc_pred){0}), term};
    add->put[0] = (dc_put){acc, zero, dc_vx_op(k, combine, t, in, 2)};
    add->reduces = true;
    init->next = wrap(k, &loops, add);
    w->acc = acc;
    return init;
}

/* Is a division or remainder left in any map that is used? */
static bool maps_divide(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (n->kind != DC_VX_LOAD && n->kind != DC_VX_INDEX)
            continue;
        const dc_ix_node *x = &k->ix.at[n->at];
        for (uint32_t i = 0; i < x->n; i++)
            if (k->atom.at[x->term[i].atom].kind == DC_ATOM_DIV ||
                k->atom.at[x->term[i].atom].kind == DC_ATOM_MOD)
                return true;
    }
    return false;
}

static const char *kernel_name(const lowering *w, char *name, size_t size)
{
    const dc_node *out = dc_node_at(w->fn, w->group->out[0]);
    const dc_op reduce =
        w->group->reduce == 0 ? DC_OP_NEG : (dc_op)dc_node_at(w->fn, w->group->reduce)->op;
    const char kind = w->group->reduce == 0            ? 'E'
                      : reduce == DC_OP_DOT            ? 'D'
                      : dc_op_is(reduce, DC_CLASS_IDX) ? 'S'
                                                       : 'R';
    int n = snprintf(name, size, "%c", kind);
    for (int i = 0; i < out->rank && n < (int)size; i++)
        n += snprintf(name + n, size - (size_t)n, "_%lld", (long long)out->dim[i]);
    if (w->group->reduce != 0) {
        int64_t dim[DC_MAX_RANK];
        const int rank = reduced_dims(w, dc_node_at(w->fn, w->group->reduce), dim);
        for (int i = 0; i < rank && n < (int)size; i++)
            n += snprintf(name + n, size - (size_t)n, "%s%lld", i ? "_" : "_k", (long long)dim[i]);
    }
    return name;
}

static void declare_buffers(lowering *w)
{
    const dc_group *g = w->group;
    char name[16];
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_node *n = dc_node_at(w->fn, g->out[i]);
        snprintf(name, sizeof name, "out%u", i);
        dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_OUT);
    }
    for (uint32_t i = 0; i < g->nin; i++) {
        const dc_node *n = dc_node_at(w->fn, g->in[i]);
        snprintf(name, sizeof name, "x%u", i);
        w->buf_of[g->in[i]] =
            dc_buffer_new(w->k, name, n->dtype, dc_node_count(n), DC_SCOPE_PARAM, DC_MODE_IN);
    }
}

static int64_t bytes_touched(const dc_kernel *k)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].scope == DC_SCOPE_PARAM)
            bytes += k->buf.at[i].count * (int64_t)dc_dtype_size(k->buf.at[i].dtype);
    return bytes;
}

static bool is_scatter(const lowering *w)
{
    return w->group->reduce != 0 &&
           dc_op_is((dc_op)dc_node_at(w->fn, w->group->reduce)->op, DC_CLASS_IDX);
}

/* Arithmetic per launch: a product counts 2 per term, other kernels 1 per operation and position.
 */
static int64_t operations(const lowering *w, int64_t positions)
{
    int64_t terms = 1, ops = 0;
    for (uint32_t i = 1; i < w->k->vx.n; i++)
        ops += w->k->vx.at[i].kind == DC_VX_OP;
    if (w->group->reduce != 0) {
        int64_t dim[DC_MAX_RANK];
        const dc_node *n = dc_node_at(w->fn, w->group->reduce);
        terms = is_scatter(w) ? 1 : product(reduced_dims(w, n, dim), dim);
        if (n->op == DC_OP_DOT)
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
    const dc_node *n = dc_node_at(w->fn, w->group->reduce), *i = dc_node_at(w->fn, n->in[1]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1], own = i->rank - nb;
    dc_ix pos[DC_MAX_RANK], of[DC_MAX_RANK], from[DC_MAX_RANK];
    nest beside = {0}, along = {0}, updates = {0};
    dc_stmt *fill = dc_stmt_set(k, 1), *update = dc_stmt_set(k, 1);
    const dc_dtype t = n->dtype;

    make_axes(w, flat, "i", axis, n->dim, false, &beside, pos);
    make_axes(w, flat, "n", n->rank - axis - 1, n->dim + axis + 1, false, &beside, pos + axis + 1);
    make_axes(w, flat, "a", 1, n->dim + axis, false, &along, pos + axis);
    fill->put[0] = (dc_put){0, linear(k, n, pos), as_stored(w, lower_node(w, n->in[0], pos), t)};

    memcpy(of, pos, (size_t)axis * sizeof *of);
    make_axes(w, flat, "k", own, i->dim + nb, false, &updates, of + axis);
    for (int d = axis + 1; d < n->rank; d++)
        of[d - 1 + own] = pos[d];
    index_position(w, n, of, from);
    const dc_vx at = lower_node(w, n->in[1], from), value = lower_node(w, n->in[2], of);
    update->pred =
        dc_pred_and(k, (dc_pred){0}, loaded_index(k, at, -1, n->dim[axis]), n->dim[axis]);
    pos[axis] = loaded_index(k, at, 0, n->dim[axis] - 1);
    const dc_ix to = linear(k, n, pos);
    const dc_vx sum[2] = {cast(w, dc_vx_load(k, 0, to, (dc_pred){0}), computed(t)), value};
    const dc_vx v = n->op == DC_OP_SCATTER ? value : dc_vx_op(k, DC_OP_ADD, computed(t), sum, 2);
    update->put[0] = (dc_put){0, to, as_stored(w, v, t)};

    dc_stmt *body = wrap(k, &along, fill);
    body->next = wrap(k, &updates, update);
    k->root = wrap(k, &beside, body);
    k->flops = operations(w, dc_node_count(dc_node_at(w->fn, n->in[2])));
}

static dc_kernel *lower_as(lowering *w, bool flat)
{
    const dc_group *g = w->group;
    const dc_node *shape = dc_node_at(w->fn, g->reduce ? g->reduce : g->out[0]);
    char name[64];
    nest loops = {0};

    dc_kernel *k = w->k = dc_kernel_new(kernel_name(w, name, sizeof name));
    dc_job_defer(w->j, free_kernel, k);
    k->strict = strcmp(w->j->opt->math, "strict") == 0;
    w->memo = DC_NEW_ARRAY(&w->j->scratch, memo_entry *, w->fn->node.n);
    w->acc = DC_NO_BUF;
    w->guard = (dc_pred){0};
    declare_buffers(w);
    k->bytes = bytes_touched(k);
    if (is_scatter(w)) {
        lower_scatter(w, flat);
        return k;
    }
    make_axes(w, flat, "i", shape->rank, shape->dim, false, &loops, w->out_pos);

    dc_stmt *body = NULL;
    if (g->reduce != 0)
        body = lower_reduction(w, flat);
    memset(w->memo, 0, w->fn->node.n * sizeof *w->memo);
    dc_stmt *store = dc_stmt_set(k, g->nout);
    for (uint32_t i = 0; i < g->nout; i++) {
        const dc_vx v = lower_node(w, g->out[i], w->out_pos);
        const dc_dtype t = dc_node_at(w->fn, g->out[i])->dtype;
        store->put[i] = (dc_put){i, linear(k, shape, w->out_pos), as_stored(w, v, t)};
    }
    if (body != NULL)
        body->next->next = store;
    else
        body = store;
    k->root = wrap(k, &loops, body);
    k->flops = operations(w, dc_node_count(shape));
    return k;
}

dc_status dc_lower(dc_job *j, const dc_groups *groups, uint32_t index, dc_kernel **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    lowering w = {.j = j, .group = &groups->at[index], .fn = groups->fn};
    w.buf_of = DC_NEW_ARRAY(&j->scratch, uint32_t, w.fn->node.n);
    memset(w.buf_of, 0xff, w.fn->node.n * sizeof *w.buf_of);

    dc_kernel *k = lower_as(&w, true);
    if (maps_divide(k)) {
        dc_job_keep(j, k);
        dc_kernel_free(k);
        k = lower_as(&w, false);
    }
    dc_job_keep(j, k);
    dc_arena_rewind(&j->scratch, mark);
    *out = k;
    return DC_OK;
}

/* In place ---------------------------------------------------------------------------------- */

static bool index_reads_only_at(dc_kernel *k, dc_ix a, uint32_t buf, dc_ix at);

static bool pred_reads_only_at(dc_kernel *k, dc_pred p, uint32_t buf, dc_ix at)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (!index_reads_only_at(k, p.range[i].ix, buf, at))
            return false;
    return true;
}

/* Do all loads of buf below v stand at `at`? */
static bool reads_only_at(dc_kernel *k, dc_vx v, uint32_t buf, dc_ix at)
{
    const dc_mark mark = dc_arena_mark(&k->arena);
    const bool *part = dc_vx_parts(k, &k->arena, v);
    bool only = true;
    for (dc_vx i = 1; i <= v && only; i++) {
        const dc_vx_node *n = &k->vx.at[i];
        if (!part[i])
            continue;
        only = n->kind != DC_VX_LOAD || n->buf != buf || n->at == at;
        if (n->kind == DC_VX_LOAD || n->kind == DC_VX_INDEX)
            only = only && index_reads_only_at(k, n->at, buf, at);
        only = only && pred_reads_only_at(k, n->pred, buf, at);
    }
    dc_arena_rewind(&k->arena, mark);
    return only;
}

/* The same for integers that a position is made of. */
static bool index_reads_only_at(dc_kernel *k, dc_ix a, uint32_t buf, dc_ix at)
{
    const dc_ix_node x = k->ix.at[a];
    for (uint32_t i = 0; i < x.n; i++) {
        const dc_atom_node t = k->atom.at[x.term[i].atom];
        if (t.kind == DC_ATOM_VALUE && !reads_only_at(k, t.value, buf, at))
            return false;
        if ((t.kind == DC_ATOM_DIV || t.kind == DC_ATOM_MOD) &&
            !index_reads_only_at(k, t.of, buf, at))
            return false;
    }
    return true;
}

typedef struct allowing { /* input `buf` in the memory of `out`, which is first stored at `at` */
    uint32_t buf, out;
    dc_ix at;
    bool stored;
} allowing;

/* Only statements up to the first that stores may read the input, and there at its own position. */
static bool stmt_allows(dc_kernel *k, const dc_stmt *first, allowing *w)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            if (!stmt_allows(k, t->body, w))
                return false;
            continue;
        }
        const dc_ix at = t->reduces || w->stored ? 0 : w->at;
        if (!pred_reads_only_at(k, t->pred, w->buf, at))
            return false;
        for (uint32_t i = 0; i < t->nput; i++) {
            if (!reads_only_at(k, t->put[i].value, w->buf, at) ||
                !index_reads_only_at(k, t->put[i].at, w->buf, at))
                return false;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            w->stored |= t->put[i].buf == w->out;
    }
    return true;
}

static dc_ix store_map(const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            const dc_ix at = store_map(t->body, buf);
            if (at != 0)
                return at;
            continue;
        }
        for (uint32_t i = 0; i < t->nput; i++)
            if (t->put[i].buf == buf)
                return t->put[i].at;
    }
    return 0;
}

bool dc_lower_in_place(dc_kernel *k, const dc_group *g, uint32_t out, uint32_t in)
{
    const uint32_t in_buf = g->nout + in;
    if (k->buf.at[out].dtype != k->buf.at[in_buf].dtype ||
        k->buf.at[out].count != k->buf.at[in_buf].count)
        return false;
    allowing w = {.buf = in_buf, .out = out, .at = store_map(k->root, out)};
    return stmt_allows(k, k->root, &w);
}
