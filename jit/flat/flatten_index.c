/*
 * Flattening of index expressions and of conditions on them (jit/flat/flatten.h).
 *
 * An index is evaluated twofold: as a scalar (at lane 0) for addresses that are affine in the lane,
 * and as a vector for the others and for tests. Vectors of indices are computed in u32 where the
 * ranges allow it, which is half as wide as the index type.
 */
#include "jit/flat/flatten_impl.h"

#include <stdlib.h>

/* Both with the lanes of the wider one. */
static dc_fv op2_splat(flattener *l, dc_kop op, dc_fv a, dc_fv c)
{
    const int n =
        dc_fb_at(l->b, a)->lanes > 1 ? dc_fb_at(l->b, a)->lanes : dc_fb_at(l->b, c)->lanes;
    return dc_fb_op2(l->b, op, dc_fb_splat(l->b, a, n), dc_fb_splat(l->b, c, n));
}

dc_fv dc_flatten_both(flattener *l, dc_fv a, dc_fv c)
{
    return a == 0 ? c : c == 0 ? a : op2_splat(l, DC_K_AND, a, c);
}

/* Index expressions ------------------------------------------------------------------------- */

bool dc_flatten_uses_lanes(const flattener *l, dc_ix a)
{
    return l->vaxis != DC_NO_AXIS && dc_ix_uses(l->k, a, l->vaxis);
}

/* Stride in the vector axis; *affine false where there is none. */
int64_t dc_flatten_lane_stride(const flattener *l, dc_ix a, bool *affine)
{
    *affine = true;
    return l->vaxis == DC_NO_AXIS ? 0 : dc_ix_stride(l->k, a, l->vaxis, affine);
}

/* May the expression and all inside it be computed in 32 bits? With room for div_value's lift. */
static bool narrow(const flattener *l, dc_ix a)
{
    const int64_t limit = 1 << 30;
    const dc_ix_node *x = fl_ix(l, a);
    if (x->lo < -limit || x->hi >= limit)
        return false;
    for (uint32_t n = 0; n < x->n; n++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[n].atom];
        const bool divides = t->kind == DC_ATOM_DIV || t->kind == DC_ATOM_MOD;
        if (divides && (!narrow(l, t->of) || t->k > limit))
            return false;
    }
    return true;
}

dc_fv dc_flatten_const_index(flattener *l, fl_want w, int64_t c)
{
    return dc_fb_const(l->b, w.type, 1, w.type == DC_INDEX ? (uint64_t)c : (uint32_t)c);
}

static dc_fv axis_value(flattener *l, uint32_t axis, fl_want w)
{
    const bind *at = &l->bind[axis];
    switch (at->kind) {
    case BIND_CONST:
        return dc_flatten_const_index(l, w, at->c);
    case BIND_VALUE:
        return dc_fb_convert(l->b, at->v, w.type);
    case BIND_LANES:
        return w.lanes ? dc_fb_lanes(l->b, w.type, l->lanes, 1) : dc_flatten_const_index(l, w, 0);
    case BIND_NONE:
        break;
    }
    DC_BUG("axis %s of %s is used outside its loop", l->k->axis.at[axis].name, l->k->name);
}

/* Floor division or remainder: of an unsigned number, after adding a multiple of the divisor. */
static dc_fv div_value(flattener *l, const dc_atom_node *t, fl_want w)
{
    const int64_t lo = fl_ix(l, t->of)->lo;
    const int64_t lift = lo < 0 ? (-lo + t->k - 1) / t->k : 0;
    dc_fv x = dc_flatten_index(l, t->of, w);
    x = op2_splat(l, DC_K_ADD, x, dc_flatten_const_index(l, w, lift * t->k));
    x = op2_splat(l, t->kind == DC_ATOM_DIV ? DC_K_DIV : DC_K_REM, x,
                  dc_flatten_const_index(l, w, t->k));
    return t->kind == DC_ATOM_DIV ? op2_splat(l, DC_K_SUB, x, dc_flatten_const_index(l, w, lift))
                                  : x;
}

static dc_fv atom_value(flattener *l, dc_atom atom, fl_want w)
{
    const dc_atom_node *t = &l->k->atom.at[atom];
    switch ((dc_atom_kind)t->kind) {
    case DC_ATOM_AXIS:
        return axis_value(l, t->axis, w);
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        return div_value(l, t, w);
    case DC_ATOM_VALUE:
        return dc_fb_convert(l->b, dc_flatten_value(l, t->value), w.type);
    }
    DC_BUG("atom of kind %d", t->kind);
}

typedef struct addend {
    dc_fv v;
    uint16_t level;
    uint32_t at; /* place in the sum: qsort is not stable */
} addend;

static int by_level(const void *a, const void *c)
{
    const addend *x = a, *y = c;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * The sum, what depends on outer loops first, so that it leaves the inner ones; constants last, so
 * that copies of an unrolled body share the rest; lanes after all scalars.
 */
dc_fv dc_flatten_index(flattener *l, dc_ix a, fl_want w)
{
    const dc_ix_node *x = fl_ix(l, a);
    addend *part = DC_NEW_ARRAY(&l->j->scratch, addend, x->n);
    int64_t c = x->c;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_CONST) {
            c += x->term[i].coef * l->bind[t->axis].c;
            continue;
        }
        dc_fv v = t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_LANES && w.lanes
                      ? dc_fb_lanes(l->b, w.type, l->lanes, x->term[i].coef)
                      : op2_splat(l, DC_K_MUL, atom_value(l, x->term[i].atom, w),
                                  dc_flatten_const_index(l, w, x->term[i].coef));
        const uint16_t level = dc_fb_at(l->b, v)->level;
        part[n] = (addend){v, dc_fb_at(l->b, v)->lanes > 1 ? UINT16_MAX : level, n};
        n++;
    }
    if (n > 1)
        qsort(part, n, sizeof *part, by_level);
    dc_fv sum = dc_flatten_const_index(l, w, 0);
    bool added = false; /* the constant: last of the scalars */
    for (uint32_t i = 0; i < n; i++) {
        if (part[i].level == UINT16_MAX && !added) {
            sum = op2_splat(l, DC_K_ADD, sum, dc_flatten_const_index(l, w, c));
            added = true;
        }
        sum = op2_splat(l, DC_K_ADD, sum, part[i].v);
    }
    return added ? sum : op2_splat(l, DC_K_ADD, sum, dc_flatten_const_index(l, w, c));
}

dc_fv dc_flatten_scalar_index(flattener *l, dc_ix a)
{
    return dc_flatten_index(l, a, (fl_want){DC_INDEX, false});
}

dc_fv dc_flatten_lane_index(flattener *l, dc_ix a)
{
    return dc_fb_splat(
        l->b, dc_flatten_index(l, a, (fl_want){narrow(l, a) ? DC_U32 : DC_INDEX, true}), l->lanes);
}

/* Conditions -------------------------------------------------------------------------------- */

static bool is_const_bool(const flattener *l, dc_fv v, bool which)
{
    uint64_t bits;
    return dc_fb_is_const(l->b, v, &bits) && bits == which;
}

/* What the sum can be here, where axes of unrolled loops are constants. */
static void range_here(const flattener *l, dc_ix a, int64_t *lo, int64_t *hi)
{
    const dc_ix_node *x = fl_ix(l, a);
    *lo = *hi = x->c;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        const int64_t coef = x->term[i].coef;
        int64_t first = t->lo, last = t->hi;
        if (t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_CONST)
            first = last = l->bind[t->axis].c;
        if (t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_VALUE &&
            l->bind[t->axis].to > 0) {
            first = l->bind[t->axis].from;
            last = l->bind[t->axis].to - 1;
        }
        const int64_t low = coef * first, high = coef * last;
        *lo += dc_min_i64(low, high);
        *hi += dc_max_i64(low, high);
    }
}

/*
 * Do all lanes of a thread of a group pass the test, or none? The lanes of a whole vector do, if the test is at a
 * multiple of them: then its access needs no mask.
 */
static bool lanes_agree(const flattener *l, dc_range r)
{
    const dc_ix_node *x = fl_ix(l, r.ix);
    int64_t step = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        if (t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_LANES)
            step = x->term[i].coef;
    }
    const int64_t whole = step * l->lanes;
    if (!l->b->f->simt || step <= 0 || r.n % whole != 0 || x->c % whole != 0)
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        const bool lane = t->kind == DC_ATOM_AXIS && l->bind[t->axis].kind == BIND_LANES;
        const bool inside =
            (t->kind == DC_ATOM_DIV || t->kind == DC_ATOM_MOD) && dc_flatten_uses_lanes(l, t->of);
        if (!lane && (inside || t->kind == DC_ATOM_VALUE || x->term[i].coef % whole != 0))
            return false;
    }
    return true;
}

/* 0 <= ix < n is one unsigned comparison. */
static void and_range(flattener *l, cond *c, dc_range r)
{
    const dc_ix_node *x = fl_ix(l, r.ix);
    int64_t lo, hi;
    range_here(l, r.ix, &lo, &hi);
    if (lo >= 0 && hi < r.n)
        return;
    if (r.n <= 0 || hi < 0 || lo >= r.n) {
        c->never = true;
        return;
    }
    const bool by_lane = dc_flatten_uses_lanes(l, r.ix) && !lanes_agree(l, r);
    const dc_fv v = by_lane ? dc_flatten_lane_index(l, r.ix) : dc_flatten_scalar_index(l, r.ix);
    const int64_t most = dc_min_i64(r.n, x->hi + 1); /* fits the type of v */
    const dc_fv n = dc_flatten_const_index(l, (fl_want){dc_fb_at(l->b, v)->type, false}, most);
    const dc_fv test = op2_splat(l, DC_K_LT, v, n);
    if (is_const_bool(l, test, false))
        c->never = true;
    if (is_const_bool(l, test, true))
        return;
    if (dc_fb_at(l->b, test)->lanes > 1)
        c->lane = dc_flatten_both(l, c->lane, test);
    else
        c->all = dc_flatten_both(l, c->all, test);
}

/* A test may load the integer it tests; such a load stands under the tests before it. */
cond dc_flatten_cond(flattener *l, dc_pred p)
{
    const dc_fv mask = l->mask, guard = l->guard;
    cond c = {0};
    for (uint32_t n = 0; n < p.n && !c.never; n++) {
        and_range(l, &c, p.range[n]);
        l->mask = dc_flatten_both(l, mask, c.lane);
        l->guard = dc_flatten_both(l, guard, c.all);
    }
    l->mask = mask;
    l->guard = guard;
    return c;
}

/* Index of a load under its own test, which what the index itself loads stands under too. */
dc_fv dc_flatten_index_under(flattener *l, cond c, dc_ix a, bool lanes)
{
    const dc_fv mask = l->mask, guard = l->guard;
    l->mask = dc_flatten_both(l, mask, c.lane);
    l->guard = dc_flatten_both(l, guard, c.all);
    l->nested++;
    const dc_fv v = lanes ? dc_flatten_lane_index(l, a) : dc_flatten_scalar_index(l, a);
    l->nested--;
    l->mask = mask;
    l->guard = guard;
    return v;
}
