/*
 * Loops written out: of one iteration always, of few where the body is small and has no large contraction. Rows of ys are
 * put together as concatenations are, by sums of padded values, here with -0 between them, which changes no element.
 */
#include "core/ir/exchange.h"
#include "core/ir/flops.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/loops_impl.h"

static bool is_small(const dc_loopedit *w)
{
    const dc_func *b = w->body;
    const bool *needed = dc_loop_needed(w);
    int64_t nodes = 0;
    for (dc_ref r = 1; r < b->node.n; r++) {
        const dc_op op = (dc_op)dc_node_at(b, r)->op;
        if (!needed[r])
            continue;
        if (dc_op_is(op, DC_CLASS_CTL) || dc_exchange_is_written(dc_node_at(b, r)) ||
            (dc_op_is(op, DC_CLASS_CON) && dc_flops_node(b, r) / 2 > DC_TUNE_LOOP_UNROLLED_WORK))
            return false;
        nodes += !dc_op_is(op, DC_CLASS_SRC);
    }
    return nodes <= DC_TUNE_LOOP_UNROLLED_NODES;
}

static bool is_wanted(const dc_loopedit *w)
{
    if ((w->flags & (DC_LOOP_LIMIT | DC_LOOP_TEST)) != 0)
        return false;
    return w->n == 1 || (w->n <= DC_TUNE_LOOP_UNROLLED && is_small(w));
}

/* Element e of axis 0. */
static dc_ref element(dc_func *f, dc_ref r, int64_t e)
{
    const dc_type t = dc_node_type(f, r);
    int64_t start[DC_MAX_RANK] = {e}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        step[i] = 1;
        dim[i] = i == 0 ? 1 : t.dim[i];
    }
    return dc_graph_reshape(f, dc_graph_slice(f, r, start, step, dim), t.rank - 1, t.dim + 1);
}

/* r as element e of n, with what adds nothing elsewhere. */
static dc_ref placed(dc_func *f, dc_ref r, int64_t e, int64_t n)
{
    const dc_type t = dc_node_type(f, r), one = dc_loop_stacked(&t, 1),
                  all = dc_loop_stacked(&t, n);
    int64_t lo[DC_MAX_RANK] = {e}, step[DC_MAX_RANK];
    for (int i = 0; i < all.rank; i++)
        step[i] = 1;
    return dc_graph_pad(f, dc_graph_reshape(f, r, one.rank, one.dim), lo, step, all.dim,
                        dc_bits_of((dc_dtype)t.dtype, -0.0));
}

static dc_ref put(dc_func *f, dc_ref all, dc_ref r, int64_t e, int64_t n)
{
    const dc_ref part = placed(f, r, e, n);
    if (all == 0)
        return part;
    return dc_graph_op2(f, dc_node_at(f, part)->dtype == DC_BOOL ? DC_OP_OR : DC_OP_ADD, all, part);
}

static void run_iteration(dc_loopedit *w, int64_t e, dc_ref *carry, dc_ref *y)
{
    dc_arena *a = &w->j->scratch;
    const dc_type i32 = dc_type_scalar(DC_I32);
    dc_ref *param = DC_NEW_ARRAY(a, dc_ref, w->body->param.n);
    dc_ref *result = DC_NEW_ARRAY(a, dc_ref, w->body->result.n);
    int at = 0;
    param[at++] = dc_graph_const(w->f, &i32, (double)e);
    for (uint32_t i = 0; i < w->constant.n; i++)
        param[at++] = w->constant.at[i].in;
    for (uint32_t i = 0; i < w->carry.n; i++)
        param[at++] = carry[i];
    for (uint32_t i = 0; i < w->x.n; i++)
        param[at++] = element(w->f, w->x.at[i].in, e);
    dc_graph_inline(w->f, w->body, param, result);
    for (uint32_t i = 0; i < w->carry.n; i++)
        carry[i] = result[i];
    for (uint32_t i = 0; i < w->y.n; i++)
        y[i] = put(w->f, y[i], result[w->carry.n + i], e, w->n);
}

bool dc_loop_unroll(dc_loopedit *w, dc_ref *out)
{
    dc_arena *a = &w->j->scratch;
    dc_ref *carry = DC_NEW_ARRAY(a, dc_ref, w->carry.n), *y = DC_NEW_ARRAY(a, dc_ref, w->y.n);
    if ((w->flags & DC_LOOP_ROWS) != 0 || !is_wanted(w))
        return false;
    dc_loop_remake(w, NULL, NULL); /* its parameters are in order */
    for (uint32_t i = 0; i < w->carry.n; i++) {
        carry[i] = w->carry.at[i].in;
        DC_PUSH(w->body->result, w->carry.at[i].next);
    }
    for (uint32_t i = 0; i < w->y.n; i++)
        DC_PUSH(w->body->result, w->y.at[i].value);
    for (int64_t k = 0; k < w->n; k++)
        run_iteration(w, w->flags & DC_LOOP_REVERSE ? w->n - 1 - k : k, carry, y);
    for (uint32_t i = 0; i < w->nresult; i++) {
        const dc_loop_result *r = &w->result[i];
        out[i] = r->kind == DC_LOOP_VALUE     ? r->value
                 : r->kind == DC_LOOP_CARRIED ? carry[r->at]
                 : r->kind == DC_LOOP_STACKED ? y[r->at]
                                              : 0;
    }
    return true;
}
