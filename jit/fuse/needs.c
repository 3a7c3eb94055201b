#include "jit/fuse/needs.h"

#include "core/ir/conv.h"
#include "core/ir/dot.h"

#include <string.h>

/* What nobody has asked for yet. */
#define NOBODY UINT32_MAX

/* The axis of dims `to` that axis i of `from`, of as many elements, becomes as it is; -1: none. */
static int same_dim(const int64_t *from, int i, const int64_t *to, int rank)
{
    int64_t before = 1, have = 1;
    for (int d = 0; d < i; d++)
        before *= from[d];
    for (int d = 0; d < rank; d++) {
        if (have == before && to[d] == from[i])
            return d;
        have *= to[d];
    }
    return -1;
}

static int same_axis(const dc_node *from, int i, const dc_node *to)
{
    return same_dim(from->dim, i, to->dim, to->rank);
}

/* Is each element its position along the axis? */
static bool is_position(const dc_func *f, dc_ref r, int axis)
{
    for (;;) {
        const dc_node *n = dc_node_at(f, r);
        if (n->dim[axis] == 1)
            return false;
        switch ((int)n->op) {
        case DC_OP_IOTA:
            return n->attr[0] == axis;
        case DC_OP_PERMUTE:
            axis = (int)n->attr[axis];
            break;
        case DC_OP_EXPAND:
            if (dc_node_at(f, n->in[0])->dim[axis] != n->dim[axis])
                return false;
            break;
        case DC_OP_RESHAPE:
            axis = same_axis(n, axis, dc_node_at(f, n->in[0]));
            if (axis < 0)
                return false;
            break;
        default:
            return false;
        }
        r = n->in[0];
    }
}

/* Is r true exactly before a number along the axis? That number; 0: it is something else. */
static dc_ref is_before(const dc_func *f, dc_ref r, int axis)
{
    for (;;) {
        const dc_node *n = dc_node_at(f, r);
        if (n->op == DC_OP_LT)
            return dc_node_at(f, n->in[0])->dtype == DC_I32 && is_position(f, n->in[0], axis)
                       ? dc_number_param(f, n->in[1])
                       : 0;
        if (n->op == DC_OP_PERMUTE)
            axis = (int)n->attr[axis];
        else if (n->op == DC_OP_RESHAPE)
            axis = same_axis(n, axis, dc_node_at(f, n->in[0]));
        else if (n->op != DC_OP_EXPAND || dc_node_at(f, n->in[0])->dim[axis] != n->dim[axis])
            return 0;
        if (axis < 0)
            return 0;
        r = n->in[0];
    }
}

static bool is_const(const dc_func *f, dc_ref r, uint64_t bits)
{
    const dc_node *n = dc_node_at(f, r);
    return n->op == DC_OP_CONST && (uint64_t)n->attr[0] == bits;
}

dc_ref dc_needs_before(const dc_needs *needs, dc_ref r, int axis)
{
    return needs->end == NULL ? 0 : is_before(needs->fn, r, axis);
}

dc_ref dc_needs_through(const dc_needs *needs, dc_ref r, uint64_t bits)
{
    const dc_node *n = dc_node_at(needs->fn, r);
    switch ((int)n->op) {
    case DC_OP_WHERE:
        return is_const(needs->fn, n->in[2], bits) ? n->in[1] : 0;
    case DC_OP_CAST:
        return bits == 0 ? n->in[0] : 0;
    case DC_OP_BARRIER:
    case DC_OP_SET_SIZE:
    case DC_OP_PERMUTE:
    case DC_OP_EXPAND:
    case DC_OP_RESHAPE:
        return n->in[0];
    default:
        return 0;
    }
}

uint64_t dc_needs_neutral(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    return dc_op_is((dc_op)n->op, DC_CLASS_CON)
               ? 0
               : dc_op_identity((dc_op)n->op, (dc_dtype)dc_node_at(f, n->in[0])->dtype);
}

dc_ref dc_needs_term_number(const dc_needs *needs, dc_ref r, int i)
{
    const dc_func *f = needs->fn;
    const dc_node *n = dc_node_at(f, r);
    if (needs->end == NULL ||
        (!dc_op_is((dc_op)n->op, DC_CLASS_CON) && !dc_op_is((dc_op)n->op, DC_CLASS_RED)))
        return 0;
    const uint64_t bits = dc_needs_neutral(f, r);
    for (dc_ref x = n->in[0]; x != 0; x = dc_needs_through(needs, x, bits)) {
        const dc_node *at = dc_node_at(f, x);
        if (at->op != DC_OP_WHERE || !is_const(f, at->in[2], bits))
            continue;
        for (int axis = 0; axis < at->rank; axis++) {
            const dc_ref end = is_before(f, at->in[0], axis);
            if (end != 0 && i-- == 0)
                return end;
        }
    }
    return 0;
}

bool dc_needs_is_mask(const dc_needs *needs, dc_ref r)
{
    const dc_func *f = needs->fn;
    const dc_node *n = dc_node_at(f, r);
    bool is = false;
    if (needs->end == NULL || n->op != DC_OP_WHERE || dc_node_at(f, n->in[2])->op != DC_OP_CONST)
        return false;
    for (int i = 0; i < n->rank && !is; i++)
        is = is_before(f, n->in[0], i) != 0;
    return is;
}

bool dc_needs_is_zero_mask(const dc_needs *needs, dc_ref r)
{
    return dc_needs_is_mask(needs, r) && is_const(needs->fn, dc_node_at(needs->fn, r)->in[2], 0);
}

/* ---- the walk from users to what they use ------------------------------------------------------ */

static void ask(const dc_needs *w, dc_ref r, int axis, dc_ref end)
{
    dc_ref *have = &w->end[r][axis];
    *have = *have == NOBODY || *have == end ? end : 0;
}

static void ask_all(const dc_needs *w, dc_ref r)
{
    for (int i = 0; i < dc_node_at(w->fn, r)->rank; i++)
        ask(w, r, i, 0);
}

/* The same elements of an operand of the same dims. */
static void ask_same(const dc_needs *w, dc_ref r, dc_ref of)
{
    for (int i = 0; i < dc_node_at(w->fn, r)->rank; i++)
        ask(w, r, i, w->end[of][i]);
}

/* The number behind which where(test, x, c) is c along the axis whatever the test is, since x is; 0: there is none. */
static dc_ref decided_behind(const dc_func *f, const dc_node *n, int axis)
{
    const dc_node *x = dc_node_at(f, n->in[1]), *c = dc_node_at(f, n->in[2]);
    return c->op == DC_OP_CONST && x->op == DC_OP_WHERE &&
                   is_const(f, x->in[2], (uint64_t)c->attr[0])
               ? is_before(f, x->in[0], axis)
               : 0;
}

/* Is the test true exactly before a number along some axis, so that x is not asked for behind it? */
static bool ends_somewhere(const dc_func *f, const dc_node *n)
{
    for (int i = 0; i < n->rank; i++)
        if (is_before(f, n->in[0], i) != 0)
            return true;
    return false;
}

/* Either the test may be anything somewhere, or x: where both are, nothing is decided. */
static void ask_where(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const bool ends = ends_somewhere(w->fn, n);
    ask_same(w, n->in[2], r);
    for (int i = 0; i < n->rank; i++) {
        const dc_ref end = is_before(w->fn, n->in[0], i);
        const dc_ref decided = ends ? 0 : decided_behind(w->fn, n, i);
        ask(w, n->in[0], i, decided != 0 ? decided : w->end[r][i]);
        ask(w, n->in[1], i, end != 0 ? end : w->end[r][i]);
    }
}

static void ask_moved(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r), *x = dc_node_at(w->fn, n->in[0]);
    for (int i = 0; i < x->rank; i++) {
        int from = i; /* the axis of the result */
        bool same = true;
        switch ((int)n->op) {
        case DC_OP_PERMUTE:
            for (from = 0; n->attr[from] != i;)
                from++;
            break;
        case DC_OP_RESHAPE:
            from = same_axis(x, i, n);
            same = from >= 0;
            break;
        case DC_OP_EXPAND:
            same = x->dim[i] == n->dim[i];
            break;
        case DC_OP_SLICE:
        case DC_OP_PAD:
            same = n->attr[i] == 0 && n->attr[n->rank + i] == 1;
            break;
        default: /* flip */
            same = (n->attr[0] >> i & 1) == 0;
            break;
        }
        ask(w, n->in[0], i, same ? w->end[r][from] : 0);
    }
}

/* All terms, which are looked at even where they add nothing. */
static void ask_reduced(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r), *x = dc_node_at(w->fn, n->in[0]);
    for (int i = 0, o = 0; i < x->rank; i++)
        ask(w, n->in[0], i, n->attr[0] >> i & 1 ? 0 : w->end[r][o++]);
}

static void ask_dot(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_dot d = dc_dot_of(w->fn, n);
    int next = d.nbatch;
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < d.nbatch; i++)
            ask(w, n->in[s], (int)d.batch[s][i], w->end[r][i]);
        for (int i = 0; i < d.ncontract; i++)
            ask(w, n->in[s], (int)d.contract[s][i], 0);
        for (int i = 0; i < d.nfree[s]; i++)
            ask(w, n->in[s], (int)d.free[s][i], w->end[r][next++]);
    }
}

/* Images of the batch, and channels of the result, that are no groups; all terms. */
static void ask_conv(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_conv c = dc_conv_of(n);
    const bool grouped = c.groups * c.batch_groups > 1;
    for (int i = 0; i < n->rank; i++) {
        const bool batch = i == c.in[0] && c.batch_groups == 1;
        const bool channel = i == c.kernel[0] && !grouped;
        ask(w, n->in[0], i, batch ? w->end[r][c.out[0]] : 0);
        ask(w, n->in[1], i, channel ? w->end[r][c.out[1]] : 0);
    }
}

static void ask_gather(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_node *x = dc_node_at(w->fn, n->in[0]), *at = dc_node_at(w->fn, n->in[1]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1], own = at->rank - nb;
    for (int i = 0; i < x->rank; i++)
        ask(w, n->in[0], i, i == axis ? 0 : i < axis ? w->end[r][i] : w->end[r][i - 1 + own]);
    for (int i = 0; i < at->rank; i++)
        ask(w, n->in[1], i, w->end[r][i < nb ? i : axis + i - nb]);
}

/* What is changed at some places is needed where the result is; integers, and what goes there, whole along their own axes. */
static void ask_scatter(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r), *at = dc_node_at(w->fn, n->in[1]);
    const dc_node *from = dc_node_at(w->fn, n->in[2]);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1], own = at->rank - nb;
    ask_same(w, n->in[0], r);
    for (int i = 0; i < at->rank; i++)
        ask(w, n->in[1], i, i < nb ? w->end[r][i] : 0);
    for (int i = 0; i < from->rank; i++)
        ask(w, n->in[2], i, i < axis ? w->end[r][i] : i >= axis + own ? w->end[r][i - own + 1] : 0);
}

/* Of a piece what is needed of the whole, along axes that it covers; a join of more pieces begins with one of the others. */
static void ask_pieces(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    for (int p = 0; p < n->nin; p++) {
        const dc_node *x = dc_node_at(w->fn, n->in[p]);
        if (n->op == DC_OP_PIECE || x->op != DC_OP_PIECE) {
            ask_same(w, n->in[p], r);
            continue;
        }
        const int64_t *lo = x->attr + 2, *step = lo + n->rank, *dim = step + n->rank;
        for (int i = 0; i < x->rank; i++) {
            const int of = same_dim(x->dim, i, dim, n->rank);
            const bool whole = of >= 0 && lo[of] == 0 && step[of] == 1 && dim[of] == n->dim[of];
            ask(w, n->in[p], i, whole ? w->end[r][of] : 0);
        }
    }
}

static void ask_operands(const dc_needs *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->fn, r);
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_EW:
        if (n->op == DC_OP_WHERE) {
            ask_where(w, r);
            return;
        }
        for (int i = 0; i < n->nin; i++)
            ask_same(w, n->in[i], r);
        return;
    case DC_CLASS_RED:
        ask_reduced(w, r);
        return;
    case DC_CLASS_MOV:
        ask_moved(w, r);
        return;
    case DC_CLASS_SAME:
        ask_same(w, n->in[0], r);
        for (int i = 1; i < n->nin; i++)
            ask_all(w, n->in[i]);
        return;
    case DC_CLASS_CON:
        if (n->op == DC_OP_DOT) {
            ask_dot(w, r);
            return;
        }
        if (n->op == DC_OP_CONV) {
            ask_conv(w, r);
            return;
        }
        break;
    case DC_CLASS_IDX:
        if (n->op == DC_OP_GATHER)
            ask_gather(w, r);
        else
            ask_scatter(w, r);
        return;
    case DC_CLASS_PART:
        ask_pieces(w, r);
        return;
    case DC_CLASS_FFT:
    case DC_CLASS_SRC:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_CTL:
        break;
    }
    for (int i = 0; i < n->nin; i++)
        ask_all(w, n->in[i]);
}

/* Is there a number that a value can be needed before? */
static bool any_number(const dc_func *f)
{
    for (uint32_t i = 0; i < f->param.n; i++)
        if (dc_number_param(f, f->param.at[i]) != 0)
            return true;
    return false;
}

dc_needs dc_needs_of(const dc_func *fn, dc_arena *a)
{
    dc_needs w = {.fn = fn};
    if (!any_number(fn))
        return w;
    w.end = dc_arena_alloc(a, fn->node.n * sizeof *w.end);
    for (dc_ref r = 0; r < fn->node.n; r++)
        for (int i = 0; i < DC_MAX_RANK; i++)
            w.end[r][i] = NOBODY;
    for (uint32_t i = 0; i < fn->result.n; i++)
        ask_all(&w, fn->result.at[i]);
    for (dc_ref r = fn->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(fn, r);
        for (int i = 0; i < DC_MAX_RANK; i++)
            if (i >= n->rank || w.end[r][i] == NOBODY)
                w.end[r][i] = 0;
        for (const dc_node *x = n; x->op == DC_OP_SET_SIZE; x = dc_node_at(fn, x->in[0]))
            if (w.end[r][x->attr[0]] == 0)
                w.end[r][x->attr[0]] = dc_number_param(fn, x->in[1]);
        ask_operands(&w, r);
    }
    return w;
}
