/*
 * Maxima that are found on the way (jit/rewrite/attention.h): what exponentials of a block go by, and what was added up before by
 * smaller ones, corrected.
 */
#include "jit/lower/lower_attention_impl.h"

#include <math.h>

static void for_lanes(attending *x, uint32_t buf, dc_vx (*f)(attending *, dc_ix))
{
    nest loops = {0};
    const dc_ix v = dc_attend_lanes(x, &loops);
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, set(x, buf, v, f(x, v))));
}

static dc_vx lowest(attending *x, dc_ix v)
{
    (void)v;
    return number(x, -INFINITY);
}

static dc_vx zero(attending *x, dc_ix v)
{
    (void)v;
    return number(x, 0);
}

static dc_vx one(attending *x, dc_ix v)
{
    (void)v;
    return number(x, 1);
}

static dc_vx max_so_far(attending *x, dc_ix v)
{
    return load(x, x->max, v);
}

static dc_vx next_max(attending *x, dc_ix v)
{
    return load(x, x->next, v);
}

static dc_vx is_lowest(const attending *x, dc_vx v)
{
    return op2(x, DC_OP_EQ, v, number(x, -INFINITY));
}

/* What exponentials of a block go by. */
static dc_vx base_of(attending *x, dc_ix v)
{
    const dc_vx m = load(x, x->next, v);
    return choose(x, is_lowest(x, m), number(x, 0), m);
}

/* What the exponential subtracts where the maximum of the row stands in this local. */
static dc_vx subtracted(attending *x, uint32_t buf, dc_ix v)
{
    const dc_node *e = dc_node_at(x->w->fn, x->a->exp);
    dc_lower_forget(x->w);
    dc_attend_stands_in(x, x->a->max, buf, true);
    return dc_attend_element(x, dc_node_at(x->w->fn, e->in[0])->in[1], dc_ix_const(x->w->k, 0), v);
}

/* exp(subtracted before - subtracted now) */
static dc_vx correction(attending *x, dc_ix v)
{
    const dc_vx before = load(x, x->max, v), now = load(x, x->next, v);
    const dc_vx less = op2(x, DC_OP_SUB, subtracted(x, x->max, v), subtracted(x, x->base, v));
    const dc_vx moved = choose(x, is_lowest(x, before), number(x, 0), exponential(x, less));
    return choose(x, op2(x, DC_OP_EQ, before, now), number(x, 1), moved);
}

/* exp(subtracted so far - subtracted), of rows of nothing but -inf; of all others that is 1. */
static dc_vx last_correction(attending *x, dc_ix v)
{
    const dc_vx less = op2(x, DC_OP_SUB, subtracted(x, x->base, v), subtracted(x, x->max, v));
    return choose(x, is_lowest(x, load(x, x->max, v)), exponential(x, less), number(x, 1));
}

static void correct_totals(attending *x)
{
    for (int i = 0; i < x->a->n; i++) {
        nest loops = {0};
        const dc_ix n =
            dc_attend_loop(x, "n", dc_attend_columns_of(x, i), DC_ROLE_NONE, false, &loops);
        const dc_ix v = dc_attend_lanes(x, &loops), at = place(x, n, v);
        const dc_vx y = op2(x, DC_OP_MUL, load(x, x->total[i], at), load(x, x->factor, v));
        dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, set(x, x->total[i], at, y)));
    }
    if (x->sum == DC_NO_BUF)
        return;
    nest loops = {0};
    const dc_ix v = dc_attend_lanes(x, &loops);
    const dc_vx y = op2(x, DC_OP_MUL, load(x, x->sum, v), load(x, x->factor, v));
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, set(x, x->sum, v, y)));
}

void dc_attend_begin_maxima(attending *x)
{
    for_lanes(x, x->max, lowest);
    for_lanes(x, x->base, zero);
    if (x->sum != DC_NO_BUF)
        for_lanes(x, x->sum, zero);
    for_lanes(x, x->factor, one);
}

void dc_attend_find_maxima(attending *x)
{
    const dc_ref score = x->a->score;
    const uint32_t tile = x->tile[0];
    nest loops = {0};
    for_lanes(x, x->next, max_so_far);
    const dc_ix y = dc_attend_loop(x, "y", x->height, DC_ROLE_NONE, false, &loops),
                v = dc_attend_lanes(x, &loops);
    dc_stmt *s = dc_stmt_set(x->w->k, 2);
    const dc_vx value = x->score = dc_attend_element(x, score, y, v);
    x->axis = (axes){.term = loops.axis[0], .lane = loops.axis[1]};
    s->put[0] = (dc_put){x->next, v, op2(x, DC_OP_MAX, load(x, x->next, v), value)};
    s->put[1] = (dc_put){tile, place(x, y, v), value};
    dc_attend_append(x, dc_lower_wrap(x->w->k, &loops, s));
    dc_attend_stands_in(x, score, tile, false);
    for_lanes(x, x->base, base_of);
    for_lanes(x, x->factor, correction);
    for_lanes(x, x->max, next_max);
    correct_totals(x);
    dc_attend_stands_in(x, x->a->max, x->base, true);
}

void dc_attend_end_maxima(attending *x)
{
    for_lanes(x, x->factor, last_correction);
    correct_totals(x);
    dc_attend_stands_in(x, x->a->max, x->max, true);
}
