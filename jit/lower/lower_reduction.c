/* Loops of a naive kernel, and the reductions in them (jit/lower/lower_impl.h). */
#include "core/ir/dot.h"
#include "jit/lower/lower_impl.h"

#include <stdio.h>

/* Loops ------------------------------------------------------------------------------------- */

int64_t dc_lower_product(int rank, const int64_t *dim)
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
        const int64_t total = dc_lower_product(rank, dim);
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

/* Positions in the operands, of a term at the current reduce axes. */
static void operand_positions(lowering *w, const dc_node *n, const dc_ix *red_pos,
                              dc_ix pos[2][DC_MAX_RANK])
{
    if (n->op != DC_OP_DOT) {
        const dc_node *a = dc_node_at(w->fn, n->in[0]);
        for (int i = 0, o = 0, r = 0; i < a->rank; i++)
            pos[0][i] = n->attr[0] >> i & 1 ? red_pos[r++] : w->out_pos[o++];
        return;
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
}

/* An operand of a dot; the right one may read what the left one does by another name. */
static dc_vx dot_operand(lowering *w, const dc_node *n, int side, const dc_ix *pos)
{
    if (side == 0 || w->right == 0)
        return dc_lower_node(w, n->in[side], pos);
    lower_fact *f = dc_lower_fact(w, w->right);
    const uint32_t buf = f->buf;
    w->scratch->loop++; /* what is known of values names the other buffer */
    dc_lower_fact(w, w->right)->buf = w->right_buf;
    const dc_vx v = dc_lower_node(w, n->in[1], pos);
    dc_lower_fact(w, w->right)->buf = buf;
    w->scratch->loop++;
    return v;
}

/* The term that a reduction or product adds up at the current reduce axes. */
static dc_vx reduction_term(lowering *w, const dc_node *n, const dc_ix *red_pos)
{
    dc_kernel *k = w->k;
    dc_ix pos[2][DC_MAX_RANK];
    if (n->op == DC_OP_CONV)
        return dc_lower_conv_term(w, n, red_pos);
    operand_positions(w, n, red_pos, pos);
    if (n->op != DC_OP_DOT)
        return dc_lower_node(w, n->in[0], pos[0]);
    dc_vx in[2];
    for (int s = 0; s < 2; s++)
        in[s] = dc_lower_cast(w, dot_operand(w, n, s, pos[s]), dc_lower_computed(n->dtype));
    dc_lower_settle_roles(w, in);
    return dc_vx_op(k, DC_OP_MUL, dc_lower_computed(n->dtype), in, 2);
}

int dc_lower_reduced_dims(const lowering *w, const dc_node *n, int64_t *dim)
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
    const uint64_t identity = dc_lower_identity(is_product ? DC_OP_SUM : (dc_op)n->op, n->dtype);
    x.init->put[0] = (dc_put){acc, zero, dc_vx_const(k, t, identity)};
    const dc_vx in[2] = {dc_vx_load(k, acc, zero, (dc_pred){0}), dc_lower_cast(w, term, t)};
    x.add->put[0] = (dc_put){acc, zero, dc_vx_op(k, combine, t, in, 2)};
    x.add->reduces = true;
    dc_lower_fact(w, r)->buf = acc;
    dc_lower_fact(w, r)->is_local = true;
    return x;
}

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

/* At the position of the outputs, whose shape is that of the reduction. */
static void limit_accumulation(lowering *w, dc_ref r, const accumulation *x, const dc_ix *term)
{
    dc_lower_limit(w, x->init, r, w->out_pos);
    dc_lower_limit(w, x->add, r, w->out_pos);
    if (w->groups->needs.end == NULL)
        return;
    const dc_node *n = dc_node_at(w->fn, r);
    dc_ix pos[2][DC_MAX_RANK];
    if (n->op == DC_OP_CONV)
        dc_lower_conv_operands(w, n, term, pos);
    else
        operand_positions(w, n, term, pos);
    dc_lower_limit_terms(w, x->add, r, (const dc_ix *[]){pos[0], pos[1]});
}

/*
 * acc = identity; for each reduce position: acc = acc (combine) term, in the loops before if it may. Where
 * there is one term there are no loops to join: their end is where the next statement goes.
 */
dc_stmt *dc_lower_reduction(lowering *w, uint32_t which, bool flat, dc_lower_terms *s)
{
    const dc_ref r = w->group->reduce[which];
    const dc_node *n = dc_node_at(w->fn, r);
    const char prefix[3] = {'k', which > 0 ? (char)('a' + which) : '\0', '\0'};
    int64_t dim[DC_MAX_RANK];
    const int rank = dc_lower_reduced_dims(w, n, dim);

    if (s->add != NULL && s->loops.n > 0 && w->last != DC_NO_AXIS) {
        const dc_vx term = reduction_term(w, n, s->pos);
        if (may_join(w, term)) {
            const accumulation x = dc_lower_accumulate(w, r, term);
            limit_accumulation(w, r, &x, s->pos);
            x.init->next = s->init->next;
            s->init->next = x.init;
            s->add = s->add->next = x.add;
            return NULL;
        }
        dc_lower_forget(w);
    }
    *s = (dc_lower_terms){0};
    dc_lower_axes(w, flat, prefix, rank, dim, true, &s->loops, s->pos);
    if (dc_op_is((dc_op)n->op, DC_CLASS_CON))
        dc_lower_term_roles(w, n, &s->loops, s->pos);
    const accumulation x = dc_lower_accumulate(w, r, reduction_term(w, n, s->pos));
    limit_accumulation(w, r, &x, s->pos);
    s->init = x.init;
    s->add = x.add;
    x.init->next = dc_lower_wrap(w->k, &s->loops, x.add);
    return x.init;
}
