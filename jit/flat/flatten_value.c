/*
 * Flattening of expressions (jit/flat/flatten.h).
 *
 * An index is evaluated twofold: as a scalar (at lane 0) for addresses that are affine in the lane,
 * and as a vector for the others and for tests. Vectors of indices are computed in u32 where the
 * ranges allow it, which is half as wide as the index type.
 *
 * Tests become masks of loads that they keep inside the buffer.
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

/* How an index is wanted: its type, and whether the vector axis counts as lanes or as 0. */
typedef struct want {
    int type;
    bool lanes;
} want;

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

static dc_fv index_value(flattener *l, dc_ix a, want w);

static dc_fv const_index(flattener *l, want w, int64_t c)
{
    return dc_fb_const(l->b, w.type, 1, w.type == DC_INDEX ? (uint64_t)c : (uint32_t)c);
}

static dc_fv axis_value(flattener *l, uint32_t axis, want w)
{
    const bind *at = &l->bind[axis];
    switch (at->kind) {
    case BIND_CONST:
        return const_index(l, w, at->c);
    case BIND_VALUE:
        return dc_fb_convert(l->b, at->v, w.type);
    case BIND_LANES:
        return w.lanes ? dc_fb_lanes(l->b, w.type, l->lanes, 1) : const_index(l, w, 0);
    case BIND_NONE:
        break;
    }
    DC_BUG("axis %s of %s is used outside its loop", l->k->axis.at[axis].name, l->k->name);
}

/* Floor division or remainder: of an unsigned number, after adding a multiple of the divisor. */
static dc_fv div_value(flattener *l, const dc_atom_node *t, want w)
{
    const int64_t lo = fl_ix(l, t->of)->lo;
    const int64_t lift = lo < 0 ? (-lo + t->k - 1) / t->k : 0;
    dc_fv x = index_value(l, t->of, w);
    x = op2_splat(l, DC_K_ADD, x, const_index(l, w, lift * t->k));
    x = op2_splat(l, t->kind == DC_ATOM_DIV ? DC_K_DIV : DC_K_REM, x, const_index(l, w, t->k));
    return t->kind == DC_ATOM_DIV ? op2_splat(l, DC_K_SUB, x, const_index(l, w, lift)) : x;
}

static dc_fv atom_value(flattener *l, dc_atom atom, want w)
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
static dc_fv index_value(flattener *l, dc_ix a, want w)
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
                                  const_index(l, w, x->term[i].coef));
        const uint16_t level = dc_fb_at(l->b, v)->level;
        part[n] = (addend){v, dc_fb_at(l->b, v)->lanes > 1 ? UINT16_MAX : level, n};
        n++;
    }
    if (n > 1)
        qsort(part, n, sizeof *part, by_level);
    dc_fv sum = const_index(l, w, 0);
    bool added = false; /* the constant: last of the scalars */
    for (uint32_t i = 0; i < n; i++) {
        if (part[i].level == UINT16_MAX && !added) {
            sum = op2_splat(l, DC_K_ADD, sum, const_index(l, w, c));
            added = true;
        }
        sum = op2_splat(l, DC_K_ADD, sum, part[i].v);
    }
    return added ? sum : op2_splat(l, DC_K_ADD, sum, const_index(l, w, c));
}

dc_fv dc_flatten_scalar_index(flattener *l, dc_ix a)
{
    return index_value(l, a, (want){DC_INDEX, false});
}

dc_fv dc_flatten_lane_index(flattener *l, dc_ix a)
{
    return dc_fb_splat(l->b, index_value(l, a, (want){narrow(l, a) ? DC_U32 : DC_INDEX, true}),
                       l->lanes);
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
    const bool by_lane = dc_flatten_uses_lanes(l, r.ix);
    const dc_fv v = by_lane ? dc_flatten_lane_index(l, r.ix) : dc_flatten_scalar_index(l, r.ix);
    const int64_t most = dc_min_i64(r.n, x->hi + 1); /* fits the type of v */
    const dc_fv n = const_index(l, (want){dc_fb_at(l->b, v)->type, false}, most);
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
static dc_fv index_under(flattener *l, cond c, dc_ix a, bool lanes)
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

/* Values ------------------------------------------------------------------------------------ */

static dc_fv zero_of(flattener *l, dc_dtype t, int lanes)
{
    return dc_fb_const(l->b, t, lanes, 0);
}

/* Bytes that the address of element `a` is known to be a multiple of, 64 at most. */
uint16_t dc_flatten_align(const flattener *l, dc_ix a, uint32_t buf)
{
    const dc_ix_node *x = fl_ix(l, a);
    uint64_t all = 64, c = (uint64_t)x->c;
    for (uint32_t n = 0; n < x->n; n++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[n].atom];
        const int kind = t->kind == DC_ATOM_AXIS ? (int)l->bind[t->axis].kind : BIND_NONE;
        if (kind == BIND_CONST)
            c += (uint64_t)(x->term[n].coef * l->bind[t->axis].c);
        else if (kind != BIND_LANES)
            all |= (uint64_t)x->term[n].coef;
    }
    all |= c;
    const uint64_t elements = all & (0 - all);
    const uint64_t bytes = elements * dc_dtype_size((dc_dtype)l->k->buf.at[buf].dtype);
    const uint64_t base = l->k->buf.at[buf].align != 0 ? l->k->buf.at[buf].align : 64;
    return (uint16_t)(bytes > base ? base : bytes);
}

bool dc_flatten_within(const flattener *l, dc_ix a, uint32_t buf)
{
    return fl_ix(l, a)->lo >= 0 && fl_ix(l, a)->hi < l->b->f->buf.at[buf].count;
}

dc_ix dc_flatten_place(flattener *l, uint32_t buf, dc_ix at)
{
    if (l->row == NULL || l->row[buf] != ROW_PRIVATE)
        return at;
    const int64_t n = l->b->f->buf.at[buf].count;
    if (dc_flatten_is_foreign(l, buf, at))
        return dc_ix_mod(l->k, at, n);
    return dc_ix_add(l->k, at, dc_ix_mul(l->k, l->thread_ix, -n));
}

static dc_fv load_scalar(flattener *l, const dc_vx_node *v, cond c)
{
    const dc_dtype t = (dc_dtype)v->dtype;
    const dc_fv at = index_under(l, c, v->at, false), lanes = dc_flatten_both(l, l->mask, c.lane);
    dc_fv when = dc_flatten_both(l, l->guard, c.all);
    if (lanes != 0)
        when = dc_flatten_both(l, when, dc_fb_op1(l->b, DC_K_ANY, lanes));
    if (l->guard == 0 && dc_flatten_within(l, v->at, v->buf))
        when = 0; /* under a guard there are threads beyond the extent of their axis, too */
    dc_fv r = dc_fb_mem(l->b, &(dc_finst){.op = DC_K_LOAD,
                                          .lanes = 1,
                                          .imm = 1,
                                          .buf = v->buf,
                                          .align = (uint16_t)dc_dtype_size(t),
                                          .in = {at, when}});
    if (c.all != 0 && when == 0)
        r = dc_fb_op3(l->b, DC_K_SELECT, c.all, r, zero_of(l, t, 1));
    if (c.lane != 0)
        r = dc_fb_op3(l->b, DC_K_SELECT, c.lane, dc_fb_splat(l->b, r, l->lanes),
                      zero_of(l, t, l->lanes));
    return r;
}

/*
 * An unrolled axis along which the index moves by 1. *c is its step; DC_NO_AXIS: there is none.
 */
static uint32_t axis_of_rows(const flattener *l, dc_ix a, int64_t *c)
{
    const dc_ix_node *x = fl_ix(l, a);
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
        if (t->kind != DC_ATOM_AXIS || x->term[i].coef != 1 || l->bind[t->axis].kind != BIND_CONST)
            continue;
        *c = l->bind[t->axis].c;
        return t->axis;
    }
    return DC_NO_AXIS;
}

/*
 * Does some statement store to an output at that index? Only there may the output lie in the memory
 * of an input (jit/lower/lower.h), whose other columns other work items may then be writing.
 */
static bool is_stored_at(const dc_kernel *k, const dc_stmt *first, dc_ix at)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP && is_stored_at(k, s->body, at))
            return true;
        for (uint32_t n = 0; n < s->nput; n++)
            if (s->put[n].at == at && k->buf.at[s->put[n].buf].scope == DC_SCOPE_PARAM)
                return true;
    }
    return false;
}

enum { FEW_COLUMNS = 4 }; /* that are not worth a block */

/* Rows `step` apart, as many as lanes, of which the first `rows` are there; columns from place `first` on. */
typedef struct block {
    int64_t step, first, columns;
    int rows;
} block;

/*
 * Row r of a block, masked where it has fewer columns than there are lanes.
 */
static dc_fv load_row(flattener *l, const dc_vx_node *v, cond under, const block *b, int r)
{
    const int n = l->lanes;
    const dc_ix at = dc_ix_add(l->k, v->at, dc_ix_const(l->k, r * b->step + b->first));
    dc_finst mem = {.op = DC_K_LOAD,
                    .lanes = (uint16_t)n,
                    .imm = 1,
                    .buf = v->buf,
                    .align = dc_flatten_align(l, at, v->buf),
                    .in = {index_under(l, under, at, false)}};
    if (b->columns < n)
        mem.in[1] =
            dc_fb_op2(l->b, DC_K_LT, dc_fb_lanes(l->b, DC_U32, n, 1),
                      dc_fb_splat(l->b, const_index(l, (want){DC_U32, true}, b->columns), n));
    return dc_fb_mem(l->b, &mem);
}

/*
 * Column c of a block of as many rows as there are lanes, each a vector: the block is transposed in
 * registers, log2(lanes) times zipping its first half with its second. All columns of an unrolled
 * loop share that work. 0 where there is no block.
 */
static dc_fv load_column(flattener *l, const dc_vx_node *v, cond under, int64_t step)
{
    int64_t c = 0;
    const int n = l->lanes;
    const dc_buffer *b = &l->b->f->buf.at[v->buf];
    bool affine = true;
    if (step == 1 || step == 0 || (n & (n - 1)) != 0 || v->dtype == DC_BOOL ||
        b->mode != DC_MODE_IN)
        return 0;
    const uint32_t axis = axis_of_rows(l, v->at, &c);
    if (axis == DC_NO_AXIS || dc_ix_stride(l->k, v->at, axis, &affine) != 1 || !affine ||
        is_stored_at(l->k, l->k->root, v->at))
        return 0;
    const bool whole = dc_flatten_within(l, v->at, v->buf);
    const int64_t left = l->k->axis.at[axis].extent - (c - c % n);
    const block of = {step, -(c % n), dc_min_i64(left, n), whole ? n : l->on};
    if (of.columns < FEW_COLUMNS || (!whole && (l->on == 0 || v->pred.n > 0)))
        return 0;
    dc_fv *row = DC_NEW_ARRAY(&l->j->scratch, dc_fv, 2 * (size_t)n), *next = row + n;
    for (int r = 0; r < n; r++)
        row[r] = load_row(l, v, under, &of, r % of.rows);
    for (int half = n / 2; half > 0; half /= 2) {
        for (int r = 0; r < n / 2; r++) {
            next[2 * r] = dc_fb_op2(l->b, DC_K_ZIP_LOW, row[r], row[r + n / 2]);
            next[2 * r + 1] = dc_fb_op2(l->b, DC_K_ZIP_HIGH, row[r], row[r + n / 2]);
        }
        dc_fv *done = row;
        row = next;
        next = done;
    }
    return row[c % n];
}

/* What is computed for it is not taken for a value of this row, nor the other way round. */
static dc_fv index_in_next_row(flattener *l, dc_ix at)
{
    const bind here = l->bind[l->rows];
    l->bind[l->rows] = (bind){.kind = BIND_VALUE, .v = l->next_row};
    l->now++;
    const dc_fv v = dc_flatten_scalar_index(l, at);
    l->now++;
    l->bind[l->rows] = here;
    return v;
}

/* Of element 0 of what a vector load in this place fetches for the next iteration, too; 0: it fetches nothing. */
static dc_fv prefetched_index(flattener *l, const dc_vx_node *v, dc_fv index)
{
    const dc_buffer *b = &l->k->buf.at[v->buf];
    bool affine = true;
    if (b->prefetch == 0 || l->b->f->simt || l->bind[b->within].kind == BIND_NONE)
        return 0;
    const int64_t step = dc_ix_stride(l->k, v->at, b->over, &affine);
    if (affine)
        return step == 0 ? 0
                         : dc_fb_op2(l->b, DC_K_ADD, index,
                                     dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)step));
    return l->next_row != 0 && l->rows == b->over ? index_in_next_row(l, v->at) : 0;
}

static dc_fv load_spread(flattener *l, const dc_vx_node *v, cond c, dc_fv mask)
{
    bool affine;
    const int64_t step = dc_flatten_lane_stride(l, v->at, &affine);
    dc_finst mem = {.op = DC_K_GATHER,
                    .lanes = (uint16_t)l->lanes,
                    .imm = 1,
                    .buf = v->buf,
                    .align = (uint16_t)dc_dtype_size((dc_dtype)v->dtype)};
    mem.in[1] = mask != 0 ? dc_fb_splat(l->b, mask, l->lanes) : 0;
    if (affine && (step == 1 || mask == 0)) {
        mem.op = DC_K_LOAD;
        mem.imm = (uint64_t)step;
        mem.align = step == 1 ? dc_flatten_align(l, v->at, v->buf) : mem.align;
        mem.in[0] = index_under(l, c, v->at, false);
    } else {
        mem.in[0] = index_under(l, c, v->at, true);
    }
    if (mem.op == DC_K_LOAD && step == 1 && mask == 0 && c.all == 0 && c.lane == 0)
        mem.in[2] = prefetched_index(l, v, mem.in[0]);
    return dc_fb_mem(l->b, &mem);
}

/*
 * Where all lanes stay inside the buffer it is read whole, and what the mask excludes is cleared
 * afterwards: masked accesses are slower, and to a local would keep it out of registers. Not where an output
 * may lie in the same memory: other work items may be storing what is masked.
 */
static dc_fv load_lanes(flattener *l, const dc_vx_node *v, cond c)
{
    bool affine;
    const int64_t step = dc_flatten_lane_stride(l, v->at, &affine);
    const bool shared = l->mask != 0 && l->b->f->buf.at[v->buf].scope == DC_SCOPE_PARAM &&
                        is_stored_at(l->k, l->k->root, v->at);
    const bool whole = l->guard == 0 && !shared && dc_flatten_within(l, v->at, v->buf);
    const dc_fv own = dc_flatten_both(l, c.all, c.lane);
    dc_fv r = l->guard == 0 && affine ? load_column(l, v, c, step) : 0;
    if (r == 0)
        r = load_spread(l, v, c,
                        whole ? 0 : dc_flatten_both(l, dc_flatten_both(l, l->guard, l->mask), own));
    if (!whole || own == 0)
        return r;
    return dc_fb_op3(l->b, DC_K_SELECT, dc_fb_splat(l->b, own, l->lanes), r,
                     zero_of(l, (dc_dtype)v->dtype, l->lanes));
}

/*
 * All threads of the lanes read, whatever the test says; it chooses afterwards. Where the test fails
 * there may be no such thread: then it is the first one.
 */
static dc_fv load_foreign(flattener *l, const dc_vx_node *v, cond c)
{
    const int64_t n = l->b->f->buf.at[v->buf].count;
    const dc_ix lane = dc_ix_mod(l->k, dc_ix_div(l->k, v->at, n), l->warp);
    const dc_fv when = dc_flatten_both(l, l->guard, c.all);
    const dc_fv at = dc_flatten_scalar_index(l, dc_flatten_place(l, v->buf, v->at));
    const dc_fv mine = dc_fb_mem(l->b, &(dc_finst){.op = DC_K_LOAD,
                                                   .lanes = 1,
                                                   .imm = 1,
                                                   .buf = v->buf,
                                                   .align = (uint16_t)dc_dtype_size(v->dtype),
                                                   .in = {at}});
    dc_fv from = index_value(l, lane, (want){DC_U32, false});
    if (when != 0)
        from = dc_fb_op3(l->b, DC_K_SELECT, when, from, dc_fb_const(l->b, DC_U32, 1, 0));
    const dc_fv r = dc_fb_shuffle(l->b, mine, from);
    return c.all == 0 ? r
                      : dc_fb_op3(l->b, DC_K_SELECT, c.all, r, zero_of(l, (dc_dtype)v->dtype, 1));
}

static dc_fv load_value(flattener *l, const dc_vx_node *v)
{
    l->nested++;
    const cond c = dc_flatten_cond(l, v->pred);
    l->nested--;
    if (c.never || l->k->buf.at[v->buf].count <= 0)
        return zero_of(l, (dc_dtype)v->dtype, 1);
    if (l->row != NULL && dc_flatten_is_foreign(l, v->buf, v->at))
        return load_foreign(l, v, c);
    dc_vx_node here = *v;
    here.at = dc_flatten_place(l, v->buf, v->at);
    return dc_flatten_uses_lanes(l, here.at) ? load_lanes(l, &here, c) : load_scalar(l, &here, c);
}

static dc_fv op_value(flattener *l, const dc_vx_node *v)
{
    dc_fv in[4];
    int lanes = 1;
    for (int n = 0; n < v->n; n++) {
        in[n] = dc_flatten_value(l, v->in[n]);
        if (dc_fb_at(l->b, in[n])->lanes > 1)
            lanes = dc_fb_at(l->b, in[n])->lanes;
    }
    for (int n = 0; n < v->n; n++)
        in[n] = dc_fb_splat(l->b, in[n], lanes);
    return dc_expand(l->b, (dc_op)v->op, (dc_dtype)v->dtype, in);
}

static dc_fv position_value(flattener *l, const dc_vx_node *v)
{
    const dc_fv i = dc_flatten_uses_lanes(l, v->at) ? dc_flatten_lane_index(l, v->at)
                                                    : dc_flatten_scalar_index(l, v->at);
    const int bits = dc_flat_width(l->b->f, dc_fb_at(l->b, i)->type);
    const dc_dtype with_sign = bits == 32 ? DC_I32 : DC_I64;
    if (dc_fb_at(l->b, i)->type == DC_U32)
        return dc_fb_convert(l->b, dc_fb_bitcast(l->b, i, DC_I32), v->dtype);
    if (!dc_dtype_is_float(v->dtype) && dc_dtype_bits(v->dtype) <= bits)
        return dc_fb_convert(l->b, i, v->dtype);
    return dc_fb_convert(l->b, dc_fb_convert(l->b, i, with_sign), v->dtype);
}

static dc_fv test_value(flattener *l, const dc_vx_node *v)
{
    l->nested++;
    const cond c = dc_flatten_cond(l, v->pred);
    l->nested--;
    const dc_fv r = dc_flatten_both(l, c.all, c.lane);
    return r == 0 || c.never ? dc_fb_const(l->b, DC_BOOL, 1, !c.never) : r;
}

static dc_fv compute(flattener *l, const dc_vx_node *v)
{
    switch ((dc_vx_kind)v->kind) {
    case DC_VX_OP:
        return op_value(l, v);
    case DC_VX_LOAD:
        return load_value(l, v);
    case DC_VX_CONST:
        return dc_fb_const(l->b, v->dtype, 1, v->bits);
    case DC_VX_INDEX:
        return position_value(l, v);
    case DC_VX_TEST:
        return test_value(l, v);
    }
    DC_BUG("value of kind %d", v->kind);
}

static dc_fv value_under(flattener *l, dc_vx v)
{
    enum { FEW_UNDER = 64 }; /* a value is in the text again where there are more */
    fl_under *u = l->under[v];
    if (u != NULL && u->now != l->now)
        u = NULL; /* of another assignment, and so are those behind it */
    fl_under *const all = u;
    for (int n = 0; u != NULL && (u->mask != l->mask || u->guard != l->guard); n++)
        u = n < FEW_UNDER ? u->next : NULL;
    if (u != NULL)
        return u->v;
    const dc_fv r = compute(l, &l->k->vx.at[v]);
    u = DC_NEW(&l->k->arena, fl_under);
    *u = (fl_under){all, l->now, l->mask, l->guard, r};
    l->under[v] = u;
    l->nunder++;
    return r;
}

/*
 * Once per assignment: an operand that two stores share is read once. What was computed under
 * narrower conditions may lack lanes, and is kept for those alone.
 */
dc_fv dc_flatten_value(flattener *l, dc_vx v)
{
    if (l->epoch[v] == l->now)
        return l->value[v];
    if (fl_is_full(l))
        return zero_of(l, (dc_dtype)l->k->vx.at[v].dtype, 1);
    if (l->nested > 0)
        return value_under(l, v);
    l->value[v] = compute(l, &l->k->vx.at[v]);
    l->epoch[v] = l->now;
    return l->value[v];
}
