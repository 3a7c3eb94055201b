/* What masks leave of the loop over blocks of terms. */
#include "jit/lower/lower_attention_impl.h"

#include <math.h>

/* An index behind casts; 0: it is no index. */
static dc_ix index_of(const dc_kernel *k, dc_vx v)
{
    while (k->vx.at[v].kind == DC_VX_OP && k->vx.at[v].op == DC_OP_CAST)
        v = k->vx.at[v].in[0];
    return k->vx.at[v].kind == DC_VX_INDEX ? k->vx.at[v].at : 0;
}

/*
 * Blocks outside of [*from, *to) have no term with room >= 0 for any of the rows, where room rises or falls with the number of
 * the term by one.
 */
static void bound_blocks(attending *x, dc_ix room, const axes *a, dc_ix *from, dc_ix *to)
{
    dc_kernel *k = x->w->k;
    bool affine = true;
    const int64_t by_term = dc_ix_stride(k, room, a->term, &affine);
    const int64_t by_block = dc_ix_stride(k, room, a->block, &affine);
    const int64_t by_lane = dc_ix_stride(k, room, a->lane, &affine);
    if (!affine || (by_term != 1 && by_term != -1) || by_block != by_term * x->step)
        return;
    const uint32_t all[3] = {a->block, a->term, a->lane};
    for (int i = 0; i < 3; i++) {
        const int64_t most = i == 2 && by_lane > 0 ? WIDTH - 1 : 0;
        dc_subst s = dc_subst_axis(k, all[i], dc_ix_const(k, most));
        room = dc_subst_ix(&s, room);
    }
    if (by_term < 0) {
        const dc_ix end = dc_ix_add(k, dc_ix_div(k, room, x->step), dc_ix_const(k, 1));
        *to = *to == 0 ? end : *to;
    } else {
        const dc_ix first = dc_ix_div(k, dc_ix_mul(k, room, -1), x->step);
        *from = *from == 0 ? first : *from;
    }
}

/* The same for a condition without which a score is -inf. */
static void bound_by(attending *x, dc_vx test, const axes *a, dc_ix *from, dc_ix *to)
{
    dc_kernel *k = x->w->k;
    const dc_vx_node n = k->vx.at[test];
    if (n.kind != DC_VX_OP)
        return;
    if (n.op == DC_OP_AND) {
        bound_by(x, n.in[0], a, from, to);
        bound_by(x, n.in[1], a, from, to);
        return;
    }
    if (n.op != DC_OP_LT && n.op != DC_OP_LE)
        return;
    const dc_ix left = index_of(k, n.in[0]), right = index_of(k, n.in[1]);
    if (left == 0 || right == 0)
        return;
    const dc_ix room = dc_ix_add(k, right, dc_ix_mul(k, left, -1));
    bound_blocks(x, n.op == DC_OP_LE ? room : dc_ix_add(k, room, dc_ix_const(k, -1)), a, from, to);
}

static bool is_number(const attending *x, dc_vx v, double n)
{
    const dc_vx_node *c = &x->w->k->vx.at[v];
    return c->kind == DC_VX_CONST && dc_value_of((dc_dtype)c->dtype, c->bits) == n;
}

/*
 * The condition without which a value is 0 (a weight), or -inf (a score); 0: there is none. A product is 0 where a factor is,
 * and so is the exponential of -inf less anything.
 */
static dc_vx condition_of(const attending *x, dc_vx v, double nothing)
{
    const dc_vx_node n = x->w->k->vx.at[v];
    if (n.kind != DC_VX_OP)
        return 0;
    if (n.op == DC_OP_WHERE && is_number(x, n.in[2], nothing))
        return n.in[0];
    if (nothing < 0)
        return n.op == DC_OP_SUB ? condition_of(x, n.in[0], nothing) : 0;
    if (n.op == DC_OP_EXP)
        return condition_of(x, n.in[0], -INFINITY);
    if (n.op != DC_OP_MUL)
        return 0;
    const dc_vx first = condition_of(x, n.in[0], 0);
    return first != 0 ? first : condition_of(x, n.in[1], 0);
}

void dc_attend_bound_loop(attending *x, dc_stmt *blocks)
{
    const bool online = x->a->max != 0;
    x->axis.block = blocks->ranges = blocks->axis;
    for (int i = 0; i < (online ? 1 : results_of(x)); i++) {
        dc_ix from = 0, to = 0;
        const dc_vx test =
            online ? condition_of(x, x->score, -INFINITY) : condition_of(x, x->element[i], 0);
        if (test != 0)
            bound_by(x, test, &x->axis, &from, &to);
        blocks->from = i == 0 || from == blocks->from ? from : 0;
        blocks->to = i == 0 || to == blocks->to ? to : 0;
    }
}
