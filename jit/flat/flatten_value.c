/*
 * Flattening of values (jit/flat/flatten.h): loads, operations, tests. Tests become masks of loads that they keep
 * inside the buffer.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/nest_in_place.h"

#include <string.h>

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

/*
 * A swizzled position: those pieces of a row that go round all banks once rotate by its number, so that rows so many
 * further on rotate alike. A piece is what a thread reads at once, or a row of a matrix; short rows that go round all banks
 * together rotate alike.
 */
static dc_ix swizzled(flattener *l, const dc_buffer *b, dc_ix at)
{
    enum { PIECE = 16, BANKS = 128 };
    dc_kernel *k = l->k;
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)b->dtype);
    const int64_t piece = PIECE / size;
    const int64_t pieces = dc_min_i64(b->swizzle, BANKS / size) / piece;
    const int64_t rows = dc_max_i64(BANKS / (b->swizzle * size), 1);
    const dc_ix which = dc_ix_div(k, at, piece), row = dc_ix_div(k, at, b->swizzle);
    const dc_ix turned = dc_ix_add(k, which, dc_ix_div(k, row, rows));
    dc_ix to = dc_ix_mul(k, dc_ix_div(k, which, pieces), pieces * piece);
    to = dc_ix_add(k, to, dc_ix_mul(k, dc_ix_mod(k, turned, pieces), piece));
    return dc_ix_add(k, to, dc_ix_mod(k, at, piece));
}

/* One of two numbers below 8 and the other's last bits, exclusive or. */
static dc_ix exclusive_or(dc_kernel *k, dc_ix a, dc_ix b)
{
    dc_ix all = dc_ix_const(k, 0);
    for (int64_t bit = 1; bit < 8; bit *= 2) {
        const dc_ix sum = dc_ix_add(k, dc_ix_div(k, a, bit), dc_ix_div(k, b, bit));
        all = dc_ix_add(k, all, dc_ix_mul(k, dc_ix_mod(k, sum, 2), bit));
    }
    return all;
}

/* A position in atoms: columns of 128 bytes behind each other, piece p of row r of one at p ^ r % 8. */
static dc_ix in_atoms(flattener *l, const dc_buffer *b, dc_ix at)
{
    enum { PIECE = 16, ROW = 128 };
    dc_kernel *k = l->k;
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)b->dtype), n = b->swizzle;
    const int64_t piece = PIECE / size, width = ROW / size;
    const dc_ix row = dc_ix_div(k, at, n), col = dc_ix_mod(k, at, n);
    const dc_ix which = dc_ix_div(k, dc_ix_mod(k, col, width), piece);
    dc_ix to = dc_ix_mul(k, dc_ix_div(k, col, width), b->count / n * width);
    to = dc_ix_add(k, to, dc_ix_mul(k, row, width));
    to = dc_ix_add(k, to, dc_ix_mul(k, exclusive_or(k, which, row), piece));
    return dc_ix_add(k, to, dc_ix_mod(k, col, piece));
}

dc_ix dc_flatten_place(flattener *l, uint32_t buf, dc_ix at)
{
    const dc_buffer b = l->k->buf.at[buf];
    if (l->row != NULL && b.swizzle != 0 && b.scope == DC_SCOPE_GROUP && b.count % b.swizzle == 0)
        at = b.atoms ? in_atoms(l, &b, at) : swizzled(l, &b, at);
    if (l->slot != NULL && l->slot[buf] != DC_NO_AXIS)
        return dc_ix_add(l->k, at, dc_ix_mul(l->k, dc_ix_axis(l->k, l->slot[buf]), b.count));
    if (l->row == NULL || l->row[buf] != ROW_PRIVATE)
        return at;
    const int64_t n = l->b->f->buf.at[buf].count;
    if (dc_flatten_is_foreign(l, buf, at))
        return dc_ix_mod(l->k, at, n);
    return dc_ix_add(l->k, at, dc_ix_mul(l->k, l->thread_ix, -n));
}

/*
 * Is it an input that may lie in the memory of an output? Then a load under a test that fails is left out: another work
 * item or thread may be storing the element.
 */
static bool may_be_stored(flattener *l, uint32_t buf)
{
    dc_nest_edit v = {.k = l->k, .tmp = &l->j->scratch};
    if (l->k->buf.at[buf].scope != DC_SCOPE_PARAM)
        return false;
    if (l->stored[buf] == FL_NOT_KNOWN)
        l->stored[buf] = dc_nest_may_be_in_place(&v, buf) ? FL_MAY_BE : FL_NEVER;
    return l->stored[buf] == FL_MAY_BE;
}

static dc_fv load_scalar(flattener *l, const dc_vx_node *v, cond c)
{
    const dc_dtype t = (dc_dtype)v->dtype;
    const dc_fv at = dc_flatten_index_under(l, c, v->at, false),
                lanes = dc_flatten_both(l, l->mask, c.lane);
    dc_fv when = dc_flatten_both(l, l->guard, c.all);
    if (lanes != 0)
        when = dc_flatten_both(l, when, dc_fb_op1(l->b, DC_K_ANY, lanes));
    if (l->guard == 0 && dc_flatten_within(l, v->at, v->buf) &&
        ((c.all == 0 && c.lane == 0) || !may_be_stored(l, v->buf)))
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

static bool stores_to(const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        for (uint32_t n = 0; n < s->nput; n++)
            if (s->put[n].buf == buf)
                return true;
        if (stores_to(s->body, buf))
            return true;
    }
    return false;
}

/* Is the buffer, a local, stored to in a loop over the axis? */
static bool is_stored_over(const dc_stmt *first, uint32_t axis, uint32_t buf)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP &&
            (s->axis == axis ? stores_to(s->body, buf) : is_stored_over(s->body, axis, buf)))
            return true;
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
                    .in = {dc_flatten_index_under(l, under, at, false)}};
    if (b->columns < n)
        mem.in[1] = dc_fb_op2(
            l->b, DC_K_LT, dc_fb_lanes(l->b, DC_U32, n, 1),
            dc_fb_splat(l->b, dc_flatten_const_index(l, (fl_want){DC_U32, true}, b->columns), n));
    return dc_fb_mem(l->b, &mem);
}

/* The columns of a block, transposed in registers: log2(lanes) times zipping its first half with its second. */
static const dc_fv *transposed(flattener *l, const dc_vx_node *v, cond under, const block *of)
{
    const int n = l->lanes;
    dc_fv *row = DC_NEW_ARRAY(&l->j->scratch, dc_fv, 2 * (size_t)n), *next = row + n;
    for (int r = 0; r < n; r++)
        row[r] = load_row(l, v, under, of, r % of->rows);
    for (int half = n / 2; half > 0; half /= 2) {
        for (int r = 0; r < n / 2; r++) {
            next[2 * r] = dc_fb_op2(l->b, DC_K_ZIP_LOW, row[r], row[r + n / 2]);
            next[2 * r + 1] = dc_fb_op2(l->b, DC_K_ZIP_HIGH, row[r], row[r + n / 2]);
        }
        dc_fv *done = row;
        row = next;
        next = done;
    }
    return row;
}

/* The same of a local, whose loads are not made once for several: kept until a local is stored to, or the scope ends. */
static const dc_fv *transposed_once(flattener *l, const dc_vx_node *v, const block *of)
{
    fl_block *kept = &l->block;
    const dc_ix at = dc_ix_add(l->k, v->at, dc_ix_const(l->k, of->first));
    const dc_fv first = dc_flatten_scalar_index(l, at);
    if (kept->column != NULL && kept->first == first && kept->buf == v->buf &&
        kept->since == l->b->since && kept->lanes == l->lanes)
        return kept->column;
    const dc_fv *column = transposed(l, v, (cond){0}, of);
    dc_fv *copy = DC_NEW_ARRAY(&l->b->f->arena, dc_fv, (size_t)l->lanes);
    memcpy(copy, column, (size_t)l->lanes * sizeof *copy);
    *kept = (fl_block){copy, first, l->b->since, v->buf, l->lanes};
    return copy;
}

/*
 * Column c of a block of as many rows as there are lanes, each a vector. All columns of an unrolled loop share the work of
 * transposing it. 0 where there is no block.
 */
static dc_fv load_column(flattener *l, const dc_vx_node *v, cond under, int64_t step)
{
    int64_t c = 0;
    const int n = l->lanes;
    const dc_buffer *b = &l->b->f->buf.at[v->buf];
    bool affine = true;
    const bool local =
        b->scope != DC_SCOPE_PARAM && !l->b->f->simt && b->count > DC_FLAT_REGISTERS * n;
    if (step == 1 || step == 0 || (n & (n - 1)) != 0 || v->dtype == DC_BOOL ||
        (b->mode != DC_MODE_IN && !local))
        return 0;
    const uint32_t axis = axis_of_rows(l, v->at, &c);
    if (axis == DC_NO_AXIS || dc_ix_stride(l->k, v->at, axis, &affine) != 1 || !affine ||
        (local ? is_stored_over(l->k->root, axis, v->buf) : is_stored_at(l->k, l->k->root, v->at)))
        return 0;
    const bool whole = dc_flatten_within(l, v->at, v->buf);
    const int64_t left = l->k->axis.at[axis].extent - (c - c % n);
    const block of = {step, -(c % n), dc_min_i64(left, n), whole ? n : l->on};
    if (of.columns < FEW_COLUMNS || (!whole && (l->on == 0 || v->pred.n > 0)))
        return 0;
    if (local && (!whole || under.all != 0 || under.lane != 0))
        return 0;
    return (local ? transposed_once(l, v, &of) : transposed(l, v, under, &of))[c % n];
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
        mem.in[0] = dc_flatten_index_under(l, c, v->at, false);
    } else {
        mem.in[0] = dc_flatten_index_under(l, c, v->at, true);
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
    const dc_fv own = dc_flatten_both(l, c.all, c.lane);
    const bool whole = l->guard == 0 && !shared && dc_flatten_within(l, v->at, v->buf) &&
                       (own == 0 || !may_be_stored(l, v->buf));
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
    const dc_fv swapped = dc_flatten_exchange(l, v->buf, v->at);
    if (swapped != 0)
        return c.all == 0 ? swapped
                          : dc_fb_op3(l->b, DC_K_SELECT, c.all, swapped, zero_of(l, v->dtype, 1));
    const dc_ix lane = dc_ix_mod(l->k, dc_ix_div(l->k, v->at, n), l->warp);
    const dc_fv when = dc_flatten_both(l, l->guard, c.all);
    const dc_fv at = dc_flatten_scalar_index(l, dc_flatten_place(l, v->buf, v->at));
    const dc_fv mine = dc_fb_mem(l->b, &(dc_finst){.op = DC_K_LOAD,
                                                   .lanes = 1,
                                                   .imm = 1,
                                                   .buf = v->buf,
                                                   .align = (uint16_t)dc_dtype_size(v->dtype),
                                                   .in = {at}});
    dc_fv from = dc_flatten_index(l, lane, (fl_want){DC_U32, false});
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
    if (l->facts != NULL && dc_flatten_is_known(l, v))
        return dc_fb_const(l->b, DC_BOOL, 1, 1);
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
