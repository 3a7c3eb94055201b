/*
 * Loops that end before their extent, and iterations that are left out, by the limits of what stands in them
 * (jit/nest/nest_limit.h).
 *
 * Where a limit rises with the loop's axis, the loop has a bound that is computed in front of it; where it rises and
 * falls again, since the axis was made of several, an IF stands round the body. Loops of a whole group of threads
 * take no part of a limit that differs between threads, so all threads end them together.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/nest_limit.h"

static dc_fv index_const(flattener *l, int64_t c)
{
    return dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)c);
}

/* a - b, 0 where it would be negative. */
static dc_fv less(flattener *l, dc_fv a, dc_fv b)
{
    return dc_fb_op3(l->b, DC_K_SELECT, dc_fb_op2(l->b, DC_K_LT, a, b), index_const(l, 0),
                     dc_fb_op2(l->b, DC_K_SUB, a, b));
}

static dc_fv smaller(flattener *l, dc_fv a, dc_fv b)
{
    return a == 0   ? b
           : b == 0 ? a
                    : dc_fb_op3(l->b, DC_K_SELECT, dc_fb_op2(l->b, DC_K_LT, a, b), a, b);
}

static dc_fv divided_up(flattener *l, dc_fv a, int64_t by)
{
    return by == 1 ? a
                   : dc_fb_op2(l->b, DC_K_DIV, dc_fb_op2(l->b, DC_K_ADD, a, index_const(l, by - 1)),
                               index_const(l, by));
}

/* The number in the buffer, but no more than can matter: a negative one is all there is. */
static dc_fv limit_value(flattener *l, dc_limit limit)
{
    const dc_finst mem = {.op = DC_K_LOAD,
                          .lanes = 1,
                          .imm = 1,
                          .buf = limit.buf,
                          .align = (uint16_t)dc_dtype_size(DC_I32),
                          .in = {index_const(l, 0)}};
    const dc_fv most = index_const(l, fl_ix(l, limit.ix)->hi + 1);
    return smaller(l, dc_fb_convert(l->b, dc_fb_mem(l->b, &mem), DC_INDEX), most);
}

/* The first iteration with limit.ix >= the value. */
static dc_fv first_behind(flattener *l, dc_limit limit, uint32_t axis)
{
    dc_fv value = limit_value(l, limit);
    for (dc_ix ix = limit.ix; ix != 0;) {
        dc_limit_step s;
        if (!dc_nest_limit_step(l->k, ix, axis, &s))
            DC_BUG("%s: a limit that does not rise", l->k->name);
        l->now++;
        value = less(l, value, dc_flatten_scalar_index(l, s.rest));
        value = divided_up(l, value, s.coef);
        if (s.of != 0)
            value = dc_fb_op2(l->b, DC_K_MUL, value, index_const(l, s.divisor));
        ix = s.of;
    }
    return value;
}

/* Do all numbers on the way fit where indices are counted in 32 bits? */
static bool fits(const flattener *l, dc_ix a)
{
    const dc_ix_node *x = fl_ix(l, a);
    return l->b->f->index_bits == 64 || (x->lo >= 0 && x->hi < (int64_t)1 << 30);
}

fl_live dc_flatten_live(flattener *l, const dc_stmt *loop)
{
    fl_live live = {0};
    dc_nest_edit v = {.k = l->k, .tmp = &l->j->scratch};
    const dc_mark mark = dc_arena_mark(v.tmp);
    bool *known = DC_NEW_ARRAY(v.tmp, bool, l->k->axis.n);
    for (uint32_t a = 0; a < l->k->axis.n; a++)
        known[a] = l->bind[a].kind != BIND_NONE && l->bind[a].kind != BIND_LANES &&
                   !(l->b->f->simt && dc_axis_is_thread(l->k->axis.at[a].kind));
    const dc_limits all = dc_nest_limits(&v, (dc_stmt *)loop, known);
    dc_arena_rewind(v.tmp, mark);
    for (int i = 0; i < all.n; i++) {
        if (!fits(l, all.at[i].ix))
            continue;
        if (dc_nest_limit_rises(l->k, all.at[i].ix, loop->axis))
            live.end = smaller(l, live.end, first_behind(l, all.at[i], loop->axis));
        else if (dc_ix_uses(l->k, all.at[i].ix, loop->axis))
            live.test.at[live.test.n++] = all.at[i];
    }
    return live;
}

dc_fv dc_flatten_live_end(flattener *l, const fl_live *live, dc_fv all)
{
    return smaller(l, live->end, all);
}

dc_fv dc_flatten_live_test(flattener *l, const fl_live *live)
{
    dc_fv is = 0;
    for (int i = 0; i < live->test.n; i++) {
        l->now++;
        const dc_fv at = dc_flatten_scalar_index(l, live->test.at[i].ix);
        const dc_fv one = dc_fb_op2(l->b, DC_K_LT, at, limit_value(l, live->test.at[i]));
        is = dc_flatten_both(l, is, one);
    }
    return is;
}
