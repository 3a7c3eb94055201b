/*
 * What makes chains of attention of a graph (jit/rewrite/attention.h):
 *
 *   dot(w * row, v)            ->  dot(w, v) * row       weights that are divided by their sum, which is known at the end
 *   sum(w * dot(g, v^T))       ->  sum(g * dot(w, v))    in the gradient of a softmax: over the features, not the keys
 *   dot(a, w)                  ->  permute(dot(w, a))
 *
 * w is made of exponentials of a contraction. Terms are added in another order, as everywhere in kernels of attention.
 */
#include "jit/rewrite/attention_impl.h"

#include <string.h>

typedef struct rewriting {
    dc_func *to;
    const dc_func *f;
    const uint8_t *carries; /* by ref of f */
    dc_ref *map;
} rewriting;

/* A step that is the same for all terms of a row: it is done behind the contraction. */
typedef struct row_step {
    dc_op op;   /* MUL, DIV or WHERE with zeros */
    dc_ref row; /* what an EXPAND repeats */
} row_step;

enum { MOST_STEPS = 6 };

/* What an EXPAND repeats along the axis, whatever else it does; 0: it does not. */
static dc_ref repeated_along(const dc_func *f, dc_ref r, int axis)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_EXPAND || dc_node_at(f, n->in[0])->dim[axis] != 1 || n->dim[axis] == 1)
        return 0;
    return n->in[0];
}

/* Is r one such step behind *rest? */
static bool row_step_of(const dc_func *f, dc_ref r, int axis, row_step *s, dc_ref *rest)
{
    const dc_node *n = dc_node_at(f, r);
    *s = (row_step){(dc_op)n->op, 0};
    if (n->op == DC_OP_WHERE && dc_is_const(f, n->in[2], 0)) {
        s->row = repeated_along(f, n->in[0], axis);
        *rest = n->in[1];
    } else if (n->op == DC_OP_MUL || n->op == DC_OP_DIV) {
        s->row = repeated_along(f, n->in[1], axis);
        *rest = n->in[0];
        if (s->row == 0 && n->op == DC_OP_MUL) {
            s->row = repeated_along(f, n->in[0], axis);
            *rest = n->in[1];
        }
    }
    return s->row != 0;
}

/* Axes of the weights in the order of the result: batches, rows, terms. */
static void order_of(const dc_dot *d, int side, int64_t *perm)
{
    int n = 0;
    for (int i = 0; i < d->nbatch; i++)
        perm[n++] = d->batch[side][i];
    perm[n++] = d->free[side][0];
    perm[n++] = d->contract[side][0];
}

/*
 * 1 / sum, made of the sum as it comes, so that nothing outside of the kernel reads the same node: what a kernel makes of its
 * own sums is not to be stored by another one.
 */
static dc_ref own_row(rewriting *w, dc_ref row)
{
    const dc_node *n = dc_node_at(w->f, row);
    dc_ref inverse = 0;
    if (n->op == DC_OP_DIV && dc_is_const(w->f, n->in[0], 1))
        inverse = n->in[1];
    while (inverse != 0 && dc_node_at(w->f, inverse)->op == DC_OP_RESHAPE)
        inverse = dc_node_at(w->f, inverse)->in[0];
    if (inverse == 0 || dc_node_at(w->f, inverse)->op != DC_OP_SUM)
        return w->map[row];
    const dc_ref sum = w->map[inverse];
    const dc_ref one = dc_graph_op2(w->to, DC_OP_DIV, dc_graph_like(w->to, sum, 1), sum);
    return dc_graph_reshape(w->to, one, n->rank, n->dim);
}

static dc_ref apply_step(rewriting *w, const row_step *s, const int64_t *perm, dc_ref y)
{
    const int64_t *dim = dc_node_at(w->to, y)->dim;
    dc_ref row = dc_graph_permute(w->to, own_row(w, s->row), perm);
    row = dc_graph_expand(w->to, row, dim);
    if (s->op == DC_OP_WHERE)
        return dc_graph_op3(w->to, DC_OP_WHERE, row, y, dc_graph_like(w->to, y, 0));
    return dc_graph_op2(w->to, s->op, y, row);
}

/* Steps of rows from r down to what carries these bits, or to a contraction where bits are 0. */
static dc_ref below_steps(const rewriting *w, dc_ref r, int axis, int bits, row_step *step, int *n)
{
    dc_ref rest = 0;
    while (*n < MOST_STEPS && row_step_of(w->f, r, axis, &step[*n], &rest) &&
           (w->carries[rest] & bits) == bits) {
        ++*n;
        r = rest;
    }
    return r;
}

/* dot n of f with its weights, on this side, to the left, and steps of rows behind it; 0: it is no such contraction. */
static dc_ref weighted(rewriting *w, dc_ref r, int side)
{
    const dc_node *n = dc_node_at(w->f, r);
    const dc_dot d = dc_dot_of(w->f, n);
    row_step step[MOST_STEPS];
    int64_t perm[DC_MAX_RANK], back[DC_MAX_RANK];
    int nstep = 0;
    dc_ref weights = n->in[side];
    if (!dc_attention_is_chain(w->f, &d, w->carries, n, side))
        return 0;
    weights = below_steps(w, weights, (int)d.contract[side][0], DC_CARRIES_EXP, step, &nstep);
    dc_dot turned = d;
    if (side == 1) {
        memcpy(turned.batch[0], d.batch[1], sizeof d.batch[0]);
        memcpy(turned.batch[1], d.batch[0], sizeof d.batch[0]);
        memcpy(turned.contract[0], d.contract[1], sizeof d.contract[0]);
        memcpy(turned.contract[1], d.contract[0], sizeof d.contract[0]);
    }
    order_of(&d, side, perm);
    dc_ref y = dc_dot_make(w->to, w->map[weights], w->map[n->in[1 - side]], &turned);
    dc_func_copy_origin(w->to, y, w->f, r);
    while (nstep > 0)
        y = apply_step(w, &step[--nstep], perm, y);
    if (side == 0)
        return y;
    for (int i = 0; i < n->rank; i++)
        back[i] = i < d.nbatch ? i : i == d.nbatch ? i + 1 : i - 1;
    return dc_graph_permute(w->to, y, back);
}

/* A step for a sum over the last axis. */
static dc_ref apply_to_sum(rewriting *w, const row_step *s, int64_t *dim, int rank, dc_ref sum)
{
    dc_ref row = dc_graph_expand(w->to, w->map[s->row], dim);
    row = dc_graph_reshape(w->to, row, rank - 1, dim);
    if (s->op == DC_OP_WHERE)
        return dc_graph_op3(w->to, DC_OP_WHERE, row, sum, dc_graph_like(w->to, sum, 0));
    return dc_graph_op2(w->to, s->op, sum, row);
}

/*
 * sum over y of weights[.., x, y] * dot(g, v)[.., x, y] as a sum over what g and v are contracted along, with steps of rows
 * behind it; 0: it is no such sum.
 */
static dc_ref features_of(rewriting *w, const dc_node *m, int side)
{
    row_step step[2 * MOST_STEPS];
    int nstep = 0;
    const int last = m->rank - 1;
    const dc_ref weights = below_steps(w, m->in[side], last, DC_CARRIES_EXP, step, &nstep);
    const dc_ref product = below_steps(w, m->in[1 - side], last, DC_CARRIES_DOT, step, &nstep);
    const dc_node *p = dc_node_at(w->f, product);
    if ((w->carries[weights] & DC_CARRIES_EXP) == 0 || p->op != DC_OP_DOT)
        return 0;
    const dc_dot d = dc_dot_of(w->f, p);
    if (d.nbatch != m->rank - 2 || d.nfree[0] != 1 || d.ncontract != 1)
        return 0;
    dc_dot mixed = {.nbatch = d.nbatch, .ncontract = 1};
    int64_t order[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int k = 0; k < d.nbatch; k++) {
        mixed.batch[0][k] = k;
        mixed.batch[1][k] = d.batch[1][k];
    }
    mixed.contract[0][0] = last;
    mixed.contract[1][0] = d.free[1][0];
    order_of(&d, 0, order);
    const dc_ref y = dc_dot_make(w->to, w->map[weights], w->map[p->in[1]], &mixed);
    const dc_ref g = dc_graph_permute(w->to, w->map[p->in[0]], order);
    dc_func_copy_origin(w->to, y, w->f, product);
    dc_ref sum =
        dc_graph_reduce(w->to, DC_OP_SUM, dc_graph_op2(w->to, DC_OP_MUL, g, y), 1u << last);
    memcpy(dim, m->dim, (size_t)m->rank * sizeof *dim);
    dim[last] = 1;
    while (nstep > 0)
        sum = apply_to_sum(w, &step[--nstep], dim, m->rank, sum);
    return sum;
}

static dc_ref sum_of_features(rewriting *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->f, r);
    const dc_node *m = dc_node_at(w->f, n->in[0]);
    if (m->op != DC_OP_MUL || m->rank < 2 || n->attr[0] != (int64_t)1 << (m->rank - 1))
        return 0;
    const dc_ref y = features_of(w, m, 0);
    return y != 0 ? y : features_of(w, m, 1);
}

static dc_ref rewritten(rewriting *w, dc_ref r)
{
    const dc_node *n = dc_node_at(w->f, r);
    if (n->op == DC_OP_DOT) {
        const dc_ref y = weighted(w, r, 0);
        return y != 0 ? y : weighted(w, r, 1);
    }
    if (n->op == DC_OP_SUM)
        return sum_of_features(w, r);
    if (n->op == DC_OP_PERMUTE && dc_node_at(w->to, w->map[n->in[0]])->op == DC_OP_PERMUTE) {
        const dc_node *inner = dc_node_at(w->to, w->map[n->in[0]]);
        int64_t perm[DC_MAX_RANK];
        for (int i = 0; i < n->rank; i++)
            perm[i] = inner->attr[n->attr[i]];
        return dc_graph_permute(w->to, inner->in[0], perm);
    }
    return 0;
}

dc_func *dc_attention_rewrite(dc_arena *scratch, const dc_func *f)
{
    const bool *live = dc_func_live(f, scratch);
    rewriting w = {.f = f, .map = DC_NEW_ARRAY(scratch, dc_ref, f->node.n)};
    w.carries = dc_attention_carries(f, live, scratch);
    if (w.carries == NULL)
        return NULL;
    w.to = dc_func_new(f->module, f->name);
    dc_graph_params(w.to, f, w.map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (w.map[r] != 0 || !live[r])
            continue;
        w.map[r] = rewritten(&w, r);
        if (w.map[r] == 0) {
            dc_ref in[DC_MAX_OPERANDS];
            for (int i = 0; i < n->nin; i++)
                in[i] = w.map[n->in[i]];
            const dc_type t = dc_node_type(f, r);
            w.map[r] = dc_graph_make(w.to, n->op, in, n->nin, n->attr, n->nattr, &t);
        }
        dc_func_copy_origin(w.to, w.map[r], f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(w.to->result, w.map[f->result.at[i]]);
    return w.to;
}
