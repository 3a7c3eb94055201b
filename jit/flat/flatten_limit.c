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

/* The number in the buffer, 0 for a negative one, but no more than can matter. */
static dc_fv limit_value(flattener *l, dc_limit limit)
{
    const dc_finst mem = {.op = DC_K_LOAD,
                          .lanes = 1,
                          .imm = 1,
                          .buf = limit.buf,
                          .align = (uint16_t)dc_dtype_size(DC_I32),
                          .in = {index_const(l, 0)}};
    const dc_fv most = index_const(l, fl_ix(l, limit.ix)->hi + 1);
    const dc_fv zero = dc_fb_const(l->b, DC_I32, 1, 0);
    dc_fv v = dc_fb_mem(l->b, &mem);
    v = dc_fb_op3(l->b, DC_K_SELECT, dc_fb_op2(l->b, DC_K_LT, v, zero), zero, v);
    return smaller(l, dc_fb_convert(l->b, v, DC_INDEX), most);
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

bool dc_flatten_is_known(const flattener *l, const dc_vx_node *v)
{
    for (const fl_fact *f = l->facts; f != NULL; f = f->outer) {
        dc_ix at;
        if (!dc_nest_limit_test(l->k, v, f->limit.buf, &at))
            continue;
        const dc_ix room = dc_ix_add(l->k, f->limit.ix, dc_ix_mul(l->k, at, -1));
        if (fl_ix(l, room)->lo >= 0)
            return true;
    }
    return false;
}

/* Are there tests of the number in the statements? How many assignments these are is added to *size. */
static bool any_test(const flattener *l, const dc_stmt *first, uint32_t buf, int64_t *size)
{
    bool any = false;
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        int64_t inside = s->nput;
        if (s->kind == DC_STMT_LOOP) {
            const dc_axis *a = &l->k->axis.at[s->axis];
            inside = 0;
            any |= any_test(l, s->body, buf, &inside);
            inside *= a->kind == DC_AXIS_UNROLL ? a->extent : 1;
        }
        *size += inside;
        for (uint32_t n = 0; n < s->nput && !any; n++) {
            const dc_mark mark = dc_arena_mark(&l->j->scratch);
            const bool *part = dc_vx_parts(l->k, &l->j->scratch, s->put[n].value);
            dc_ix at;
            for (dc_vx v = 1; v <= s->put[n].value && !any; v++)
                any = part[v] && dc_nest_limit_test(l->k, &l->k->vx.at[v], buf, &at);
            dc_arena_rewind(&l->j->scratch, mark);
        }
    }
    return any;
}

/*
 * The iterations in which all of a limit's expressions are below the number, so that tests of it are answered. Where
 * these are all that are left, nothing is written twice.
 */
static void find_whole(flattener *l, const dc_stmt *loop, dc_limit limit, int64_t more,
                       fl_live *live)
{
    enum { MOST_TWICE = 128 };
    int64_t size = 0;
    const dc_limit known = {dc_ix_add(l->k, limit.ix, dc_ix_const(l->k, more)), limit.buf};
    if (live->whole != 0 || more < 0 || !any_test(l, loop->body, limit.buf, &size) ||
        (more > 0 && (size > MOST_TWICE || l->b->f->simt)))
        return;
    live->whole = first_behind(l, known, loop->axis);
    live->known = known;
}

/* Does a loop round this place leave out what is behind the limit? */
static bool is_ended(const flattener *l, dc_limit limit)
{
    for (uint32_t a = 0; a < l->k->axis.n; a++)
        for (int i = 0; l->bind[a].kind != BIND_NONE && i < l->ended[a].n; i++)
            if (l->ended[a].at[i].ix == limit.ix && l->ended[a].at[i].buf == limit.buf)
                return true;
    return false;
}

/* All iterations, or none, by a limit that is the same for all. */
static void end_all(flattener *l, const dc_stmt *loop, dc_limit limit, fl_live *live)
{
    const int64_t extent = l->k->axis.at[loop->axis].extent;
    l->now++;
    const dc_fv at = dc_flatten_scalar_index(l, limit.ix);
    const dc_fv any = dc_fb_op2(l->b, DC_K_LT, at, limit_value(l, limit));
    live->end = smaller(
        l, live->end, dc_fb_op3(l->b, DC_K_SELECT, any, index_const(l, extent), index_const(l, 0)));
}

/* Indices have no sign: is nothing that is divided negative? */
static bool divides_none_below(const flattener *l, dc_ix a)
{
    const dc_ix_node *x = fl_ix(l, a);
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        const bool divides = t->kind == DC_ATOM_DIV || t->kind == DC_ATOM_MOD;
        if (divides && (fl_ix(l, t->of)->lo < 0 || !divides_none_below(l, t->of)))
            return false;
    }
    return true;
}

/* Has the axis one value at this place, the same for all threads of a group? */
static bool is_known(const flattener *l, uint32_t axis)
{
    return l->bind[axis].kind != BIND_NONE && l->bind[axis].kind != BIND_LANES &&
           !(l->b->f->simt && dc_axis_is_thread(l->k->axis.at[axis].kind));
}

static bool is_of_known(const flattener *l, dc_ix a)
{
    for (uint32_t x = 0; x < l->k->axis.n; x++)
        if (dc_ix_uses(l->k, a, x) && !is_known(l, x))
            return false;
    return true;
}

/* A bound of a loop as an iteration, 0 where it is less; 0: it cannot be told. */
static dc_fv bound_value(flattener *l, dc_ix bound)
{
    const int64_t lo = fl_ix(l, bound)->lo;
    if (!divides_none_below(l, bound) || !is_of_known(l, bound))
        return 0;
    l->now++;
    if (lo >= 0)
        return dc_flatten_scalar_index(l, bound);
    const dc_ix above = dc_ix_add(l->k, bound, dc_ix_const(l->k, -lo));
    return less(l, dc_flatten_scalar_index(l, above), index_const(l, -lo));
}

static void set_bounds(flattener *l, const dc_stmt *loop, fl_live *live)
{
    if (l->b->f->simt)
        return;
    if (dc_stmt_from(loop) != 0)
        live->begin = bound_value(l, loop->from);
    if (dc_stmt_to(loop) != 0)
        live->end = bound_value(l, loop->to);
}

fl_live dc_flatten_live(flattener *l, const dc_stmt *loop)
{
    fl_live live = {0};
    set_bounds(l, loop, &live);
    dc_nest_edit v = {.k = l->k, .tmp = &l->j->scratch};
    const dc_mark mark = dc_arena_mark(v.tmp);
    bool *known = DC_NEW_ARRAY(v.tmp, bool, l->k->axis.n);
    for (uint32_t a = 0; a < l->k->axis.n; a++)
        known[a] = is_known(l, a);
    const dc_limits all = dc_nest_limits(&v, (dc_stmt *)loop, known);
    int64_t c;
    dc_arena_rewind(v.tmp, mark);
    l->ended[loop->axis] = (dc_limits){0};
    for (int i = 0; i < all.n; i++) {
        if (!fits(l, all.at[i].ix))
            continue;
        if (dc_nest_limit_rises(l->k, all.at[i].ix, loop->axis)) {
            live.end = smaller(l, live.end, first_behind(l, all.at[i], loop->axis));
            find_whole(l, loop, all.at[i], all.more[i], &live);
        } else if (dc_ix_uses(l->k, all.at[i].ix, loop->axis)) {
            live.test.at[live.test.n++] = all.at[i];
        } else if (l->b->f->simt || dc_ix_is_const(l->k, all.at[i].ix, &c) ||
                   is_ended(l, all.at[i])) {
            continue;
        } else {
            end_all(l, loop, all.at[i], &live);
        }
        l->ended[loop->axis].at[l->ended[loop->axis].n++] = all.at[i];
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
