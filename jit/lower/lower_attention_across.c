/*
 * The result across (jit/rewrite/attention.h): what terms get of each block of rows. A work item has all rows of a batch, or of a
 * part of one, so sums stand in the result itself, from zeros on, whatever the number of threads is.
 */
#include "jit/lower/lower_attention_impl.h"

/* Where the result across has a column of a term of the block; pos: the same by dims. */
static dc_ix place_across(attending *x, dc_ix term, dc_ix column, dc_ix *pos)
{
    const dc_node *n = dc_node_at(x->w->fn, x->a->dot[x->a->n]);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    for (int k = 0; k < d.nbatch; k++)
        pos[k] = dc_attend_batch(x, &d, x->a->n, k);
    pos[d.nbatch] = plus(x, x->first_term, term);
    pos[d.nbatch + 1] = column;
    return dc_lower_linear(x->w->k, n, pos);
}

void dc_attend_clear_across(attending *x)
{
    nest loops = {0};
    dc_ix pos[DC_MAX_RANK];
    x->first_term = dc_ix_const(x->w->k, 0);
    const dc_ix t = dc_attend_loop(x, "t", x->weights->dim[x->a->y], DC_ROLE_NONE, false, &loops);
    const dc_ix n =
        dc_attend_loop(x, "n", dc_attend_columns_of(x, x->a->n), DC_ROLE_LANE, false, &loops);
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops,
                                      set(x, x->across, place_across(x, t, n, pos), number(x, 0))));
}

void dc_attend_finish_across(attending *x)
{
    const dc_ref dot = x->a->dot[x->a->n], top = x->a->top[x->a->n];
    lowering *w = x->w;
    if (top == dot)
        return;
    nest loops = {0};
    dc_ix pos[DC_MAX_RANK];
    x->first_term = dc_ix_const(w->k, 0);
    const dc_ix t = dc_attend_loop(x, "t", x->weights->dim[x->a->y], DC_ROLE_NONE, false, &loops);
    const dc_ix n =
        dc_attend_loop(x, "n", dc_attend_columns_of(x, x->a->n), DC_ROLE_LANE, false, &loops);
    w->column = place_across(x, t, n, pos);
    dc_attend_stands_in(x, dot, x->across, false);
    const dc_vx v = dc_lower_node(w, top, pos);
    dc_attend_append(x, dc_lower_wrap(w->k, &loops, set(x, x->across, w->column, v)));
    dc_attend_leaves(x, dot);
}

void dc_attend_turn_rows(attending *x)
{
    const int64_t columns = dc_attend_columns_of(x, x->a->n);
    nest loops = {0};
    const dc_ix v = dc_attend_loop(x, "v", WIDTH, DC_ROLE_NONE, false, &loops);
    const dc_ix n = dc_attend_loop(x, "n", columns, DC_ROLE_LANE, false, &loops);
    const dc_ix row = plus(x, x->first_row, v);
    x->w->guard = is_row(x, row);
    const dc_vx value = dc_attend_value_of(x, x->a->n, row, n);
    x->w->guard = (dc_pred){0};
    const dc_ix at = plus(x, dc_ix_mul(x->w->k, v, columns), n);
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, set(x, x->turned, at, value)));
}

/* Sums of the patch, columns of some terms, come from memory, or go there. */
static void move_across(attending *x, const patch *p, bool begin)
{
    nest loops = {0};
    dc_ix v, column, pos[DC_MAX_RANK];
    const dc_ix i = dc_attend_loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    dc_attend_lanes_of(x, p, &loops, &v, &column);
    const dc_ix there = place_across(x, plus(x, p->first, i), column, pos);
    const dc_ix here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    dc_stmt *body = begin ? set(x, x->strip, here, load(x, x->across, there))
                          : set(x, x->across, there, load(x, x->strip, here));
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, body));
}

/* sums[term][column] += weights[term][row] * turned[row][column] over the rows. */
static void add_across(attending *x, const patch *p)
{
    nest loops = {0};
    dc_ix v, column;
    const dc_ix row = dc_attend_loop(x, "k", WIDTH, DC_ROLE_K, true, &loops);
    const dc_ix i = dc_attend_loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    dc_attend_lanes_of(x, p, &loops, &v, &column);
    const dc_ix here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    const dc_ix at = plus(x, dc_ix_mul(x->w->k, row, dc_attend_columns_of(x, x->a->n)), column);
    const dc_vx a = load(x, x->weight[x->a->n], place(x, plus(x, p->first, i), row));
    const dc_vx product = op2(x, DC_OP_MUL, a, load(x, x->turned, at));
    dc_stmt *body = set(x, x->strip, here, op2(x, DC_OP_ADD, load(x, x->strip, here), product));
    body->reduces = true;
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, body));
}

static void contract_patch(attending *x, const patch *p, int inner, int out)
{
    (void)inner;
    (void)out;
    move_across(x, p, true);
    add_across(x, p);
    move_across(x, p, false);
}

void dc_attend_contract_across(attending *x)
{
    const int64_t columns = dc_attend_columns_of(x, x->a->n);
    dc_attend_patches(x, x->height, columns, contract_patch, -1, x->a->n);
}
