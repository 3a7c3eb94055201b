/*
 * Lowering of attention (jit/rewrite/attention.h): a work item has a block of rows of the results, which lie side by side as
 * lanes of vectors, and goes through all terms in blocks. For a block of terms it computes tiles [terms][rows]: of the scores
 * and whatever else is contracted, then, by elements, of the weights; and adds what they contribute to its results,
 * [columns][rows]. So everything is vertical: maxima and sums of rows are those of lanes, the operands that terms have are
 * read element by element and broadcast, and only what the rows have is copied, transposed, once.
 *
 * With a maximum of its own, a row goes by the largest score so far; what was added up is corrected when that grows. A row of
 * nothing but -inf goes by 0 instead, and is corrected at the end.
 */
#include "core/graph/dot.h"
#include "jit/base/tuning.h"
#include "jit/lower/lower_impl.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH =
        DC_TUNE_ATTENTION_WIDTH, /* rows of a block, and what is from one term to the next in a tile */
    STRIP = DC_TUNE_ATTENTION_STRIP /* terms, or columns, that are computed at a time, at most */
};

typedef struct axes { /* of a loop over blocks of terms, and over what is in one */
    uint32_t block, term, lane;
} axes;

typedef struct attending {
    lowering *w;
    const dc_attention_kernel *a;
    const dc_node *weights;
    dc_ix batch[DC_MAX_RANK], first_row, first_term;
    int64_t step, height; /* terms of whole blocks, of this one */
    bool covers;          /* the last block of rows reaches behind them */
    int64_t lanes;        /* rows that are computed at a time */
    uint32_t rows[DC_ATTENTION_INNER], tile[DC_ATTENTION_INNER], weight[DC_ATTENTION_OUT],
        total[DC_ATTENTION_OUT], strip;
    uint32_t max, next, base, factor, sum;  /* by row; NONE: there are none */
    dc_vx score, element[DC_ATTENTION_OUT]; /* of an element, and its weights, in loops over */
    axes axis;
    uint32_t loops;
    dc_stmt **last;
} attending;

static dc_dtype kind_of(const attending *x)
{
    return dc_lower_computed((dc_dtype)x->weights->dtype);
}

/* ---- loops ------------------------------------------------------------------------------------ */

static void append(attending *x, dc_stmt *s)
{
    *x->last = s;
    while (*x->last != NULL)
        x->last = &(*x->last)->next;
}

static dc_ix loop(attending *x, const char *prefix, int64_t extent, dc_role role, bool reduce,
                  nest *loops)
{
    char name[16];
    dc_kernel *k = x->w->k;
    snprintf(name, sizeof name, "%s%u", prefix, ++x->loops);
    const uint32_t a = dc_axis_new(k, name, extent, reduce);
    k->axis.at[a].role = role;
    loops->axis[loops->n++] = a;
    return dc_ix_axis(k, a);
}

/* The loop over rows, innermost. */
static dc_ix lanes(attending *x, nest *loops)
{
    dc_lower_forget(x->w);
    return x->w->lane = loop(x, "v", WIDTH, DC_ROLE_LANE, false, loops);
}

static dc_ix plus(const attending *x, dc_ix a, dc_ix b)
{
    return dc_ix_add(x->w->k, a, b);
}

/* Element of a local [..][WIDTH]. */
static dc_ix place(const attending *x, dc_ix row, dc_ix lane)
{
    return plus(x, dc_ix_mul(x->w->k, row, WIDTH), lane);
}

static dc_vx load(const attending *x, uint32_t buf, dc_ix at)
{
    return dc_vx_load(x->w->k, buf, at, (dc_pred){0});
}

static dc_vx number(const attending *x, double v)
{
    return dc_vx_const(x->w->k, kind_of(x), dc_bits_of(kind_of(x), v));
}

static dc_vx op2(const attending *x, dc_op op, dc_vx a, dc_vx b)
{
    const dc_vx in[2] = {a, b};
    const bool test = (dc_op_row_of(op)->flags & DC_OPF_CMP) != 0;
    return dc_vx_op(x->w->k, op, test ? DC_BOOL : kind_of(x), in, 2);
}

static dc_vx choose(const attending *x, dc_vx test, dc_vx a, dc_vx b)
{
    const dc_vx in[3] = {test, a, b};
    return dc_vx_op(x->w->k, DC_OP_WHERE, kind_of(x), in, 3);
}

static dc_vx exponential(const attending *x, dc_vx a)
{
    return dc_vx_op(x->w->k, DC_OP_EXP, kind_of(x), &a, 1);
}

static dc_stmt *set(attending *x, uint32_t buf, dc_ix at, dc_vx v)
{
    dc_stmt *s = dc_stmt_set(x->w->k, 1);
    s->put[0] = (dc_put){buf, at, v};
    return s;
}

static uint32_t local(attending *x, const char *name, int64_t rows)
{
    char full[16];
    snprintf(full, sizeof full, "%s%u", name, x->w->k->buf.n);
    return dc_buffer_new(x->w->k, full, kind_of(x), rows * WIDTH, DC_SCOPE_LOCAL, DC_MODE_OUT);
}

/* From now on node r is read there. */
static void stands_in(attending *x, dc_ref r, uint32_t buf, bool by_row)
{
    lower_fact *f = dc_lower_fact(x->w, r);
    f->buf = buf;
    f->is_local = true;
    f->is_row = by_row;
}

/* It is computed anew. */
static void leaves(attending *x, dc_ref r)
{
    lower_fact *f = dc_lower_fact(x->w, r);
    f->is_local = f->is_row = false;
    f->buf = DC_NO_BUF;
}

/* ---- positions -------------------------------------------------------------------------------- */

/* What is behind the last row is neither read nor stored. */
static dc_pred is_row(attending *x, dc_ix row)
{
    return x->covers ? dc_pred_and(x->w->k, (dc_pred){0}, row, x->weights->dim[x->a->x])
                     : (dc_pred){0};
}

/* Of an element of the weights. */
static void at_weights(const attending *x, dc_ix row, dc_ix term, dc_ix *pos)
{
    for (int i = 0; i < x->weights->rank; i++)
        pos[i] = x->batch[i];
    pos[x->a->x] = row;
    pos[x->a->y] = term;
}

/* The value of a node that has an element for each of the weights. */
static dc_vx element(attending *x, dc_ref r, dc_ix term, dc_ix lane)
{
    dc_ix at[DC_MAX_RANK], pos[DC_MAX_RANK];
    const dc_ix row = plus(x, x->first_row, lane);
    x->w->column = place(x, term, lane);
    x->w->guard = is_row(x, row);
    at_weights(x, row, plus(x, x->first_term, term), at);
    dc_lower_at(x->w, dc_node_at(x->w->fn, r), x->weights->rank, x->weights->dim, at, pos);
    const dc_vx v = dc_lower_cast(x->w, dc_lower_node(x->w, r, pos), kind_of(x));
    x->w->guard = (dc_pred){0};
    return v;
}

/* Of inner contraction i: the operand that rows have, or the one that terms have, at a position along it and along the sum. */
static dc_vx operand(attending *x, dc_ref dot, bool of_rows, dc_ix at, dc_ix c)
{
    const dc_node *n = dc_node_at(x->w->fn, dot);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    const int left = x->a->x == x->weights->rank - 2 ? 0 : 1, side = of_rows ? left : 1 - left;
    dc_ix pos[DC_MAX_RANK];
    for (int i = 0; i < d.nbatch; i++)
        pos[d.batch[side][i]] = x->batch[i];
    pos[d.free[side][0]] = at;
    pos[d.contract[side][0]] = c;
    x->w->guard = of_rows ? is_row(x, at) : (dc_pred){0};
    const dc_vx v = dc_lower_cast(x->w, dc_lower_node(x->w, n->in[side], pos), kind_of(x));
    x->w->guard = (dc_pred){0};
    return v;
}

/* What a term has for a column of result i. */
static dc_vx value_of(attending *x, int i, dc_ix term, dc_ix column)
{
    const dc_node *n = dc_node_at(x->w->fn, x->a->dot[i]);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    dc_ix pos[DC_MAX_RANK];
    for (int k = 0; k < d.nbatch; k++)
        pos[d.batch[1][k]] = x->batch[d.batch[0][k]];
    pos[d.contract[1][0]] = term;
    pos[d.free[1][0]] = column;
    return dc_lower_cast(x->w, dc_lower_node(x->w, n->in[1], pos), kind_of(x));
}

static int64_t features_of(const attending *x, dc_ref dot)
{
    const dc_node *n = dc_node_at(x->w->fn, dot);
    const dc_dot d = dc_dot_of(x->w->fn, n);
    return dc_node_at(x->w->fn, n->in[0])->dim[d.contract[0][0]];
}

static int64_t columns_of(const attending *x, int i)
{
    const dc_node *n = dc_node_at(x->w->fn, x->a->dot[i]);
    return n->dim[n->rank - 1];
}

/* ---- contractions ----------------------------------------------------------------------------- */

/* So many strips of one size, from a first element on. */
typedef struct strips {
    int64_t first, count, size;
} strips;

/* Those of a size, then what is left. */
static int strips_of(int64_t all, int64_t size, strips out[2])
{
    int n = 0;
    if (all >= size)
        out[n++] = (strips){0, all / size, size};
    if (all % size > 0)
        out[n++] = (strips){all / size * size, 1, all % size};
    return n;
}

/* One size for all of them where there is one, so that the kernel has it once. */
static int64_t strip_of(int64_t all)
{
    for (int64_t n = STRIP; n >= 4; n--)
        if (all % n == 0)
            return n;
    return STRIP;
}

/* Terms of a block: such a number of them, near what the caches want, that no block has fewer. */
static int64_t step_of(int64_t terms)
{
    int64_t best = dc_min_i64(terms, DC_TUNE_ATTENTION_TERMS);
    bool found = false;
    for (int64_t n = DC_TUNE_ATTENTION_TERMS * 5 / 4; n >= DC_TUNE_ATTENTION_TERMS / 2; n--)
        if (terms % n == 0 && (!found || (best % strip_of(best) != 0 && n % strip_of(n) == 0))) {
            best = n;
            found = true;
        }
    return best;
}

/* Terms, or columns, from `first` on by rows from `row` on, whose sums are in registers. */
typedef struct patch {
    dc_ix first, row;
    int64_t size, rows;
} patch;

static dc_ix first_of(attending *x, const strips *s, nest *loops)
{
    dc_kernel *k = x->w->k;
    const dc_ix first = dc_ix_const(k, s->first);
    return s->count == 1
               ? first
               : plus(x, first,
                      dc_ix_mul(k, loop(x, "s", s->count, DC_ROLE_NONE, false, loops), s->size));
}

/* The loop over the rows of a patch; *here: of them, *there: of all. */
static void lanes_of(attending *x, const patch *p, nest *loops, dc_ix *here, dc_ix *there)
{
    dc_lower_forget(x->w);
    *here = loop(x, "v", p->rows, DC_ROLE_LANE, false, loops);
    *there = plus(x, p->row, *here);
}

/* Its sums begin with zeros, or what stands in a local; or they go there. */
static void move_sums(attending *x, const patch *p, uint32_t buf, bool begin)
{
    nest loops = {0};
    dc_ix v, lane;
    const dc_ix i = loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    lanes_of(x, p, &loops, &v, &lane);
    const dc_ix there = place(x, plus(x, p->first, i), lane);
    const dc_ix here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    dc_stmt *body = !begin             ? set(x, buf, there, load(x, x->strip, here))
                    : buf == DC_NO_BUF ? set(x, x->strip, here, number(x, 0))
                                       : set(x, x->strip, here, load(x, buf, there));
    append(x, dc_lower_wrap(x->w->k, &loops, body));
}

/* sums[i] += operand(i, c) * vectors[c] over c. */
static void add_products(attending *x, const patch *p, int64_t terms, uint32_t vectors, int inner,
                         int out)
{
    nest loops = {0};
    dc_ix v, lane;
    const dc_ix c = loop(x, "k", terms, DC_ROLE_K, true, &loops);
    const dc_ix i = loop(x, "i", p->size, DC_ROLE_M, false, &loops);
    lanes_of(x, p, &loops, &v, &lane);
    const dc_ix at = plus(x, p->first, i), here = plus(x, dc_ix_mul(x->w->k, i, x->lanes), v);
    const dc_vx a = inner >= 0
                        ? operand(x, x->a->inner[inner], false, plus(x, x->first_term, at), c)
                        : value_of(x, out, plus(x, x->first_term, c), at);
    const dc_vx product = op2(x, DC_OP_MUL, a, load(x, vectors, place(x, c, lane)));
    dc_stmt *body = set(x, x->strip, here, op2(x, DC_OP_ADD, load(x, x->strip, here), product));
    body->reduces = true;
    append(x, dc_lower_wrap(x->w->k, &loops, body));
}

static void contract_patch(attending *x, const patch *p, int inner, int out)
{
    if (inner >= 0) {
        move_sums(x, p, DC_NO_BUF, true);
        add_products(x, p, features_of(x, x->a->inner[inner]), x->rows[inner], inner, -1);
        move_sums(x, p, x->tile[inner], false);
    } else {
        move_sums(x, p, x->total[out], true);
        add_products(x, p, x->height, x->weight[out], -1, out);
        move_sums(x, p, x->total[out], false);
    }
}

/* A tile of an inner contraction, or what the block adds to a result, patch by patch. */
static void contract(attending *x, int inner, int out)
{
    strips part[2], side[2];
    const int64_t all = inner >= 0 ? x->height : columns_of(x, out);
    const int n = strips_of(all, strip_of(all), part);
    const int m = strips_of(WIDTH, x->lanes, side);
    for (int i = 0; i < n * m; i++) {
        const strips *a = &part[i / m], *b = &side[i % m];
        nest outer = {0};
        dc_stmt *body = NULL, **last = x->last;
        const dc_ix first = first_of(x, a, &outer);
        const patch p = {first, first_of(x, b, &outer), a->size, b->size};
        x->last = &body;
        contract_patch(x, &p, inner, out);
        x->last = last;
        append(x, dc_lower_wrap(x->w->k, &outer, body));
    }
}

/* ---- rows ------------------------------------------------------------------------------------- */

static void for_lanes(attending *x, uint32_t buf, dc_vx (*f)(attending *, dc_ix))
{
    nest loops = {0};
    const dc_ix v = lanes(x, &loops);
    append(x, dc_lower_wrap(x->w->k, &loops, set(x, buf, v, f(x, v))));
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
    stands_in(x, x->a->max, buf, true);
    return element(x, dc_node_at(x->w->fn, e->in[0])->in[1], dc_ix_const(x->w->k, 0), v);
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
        const dc_ix n = loop(x, "n", columns_of(x, i), DC_ROLE_NONE, false, &loops);
        const dc_ix v = lanes(x, &loops), at = place(x, n, v);
        const dc_vx y = op2(x, DC_OP_MUL, load(x, x->total[i], at), load(x, x->factor, v));
        append(x, dc_lower_wrap(x->w->k, &loops, set(x, x->total[i], at, y)));
    }
    if (x->sum == DC_NO_BUF)
        return;
    nest loops = {0};
    const dc_ix v = lanes(x, &loops);
    const dc_vx y = op2(x, DC_OP_MUL, load(x, x->sum, v), load(x, x->factor, v));
    append(x, dc_lower_wrap(x->w->k, &loops, set(x, x->sum, v, y)));
}

/* ---- masks ------------------------------------------------------------------------------------ */

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

/*
 * What a mask leaves of the loop over blocks: a block whose scores are all -inf changes neither maxima nor sums, and one whose
 * weights are all 0 adds nothing. Where a row has no other scores, its result is the same NaN without it.
 */
static void bound_loop(attending *x, dc_stmt *blocks)
{
    const bool online = x->a->max != 0;
    x->axis.block = blocks->ranges = blocks->axis;
    for (int i = 0; i < (online ? 1 : x->a->n); i++) {
        dc_ix from = 0, to = 0;
        const dc_vx test =
            online ? condition_of(x, x->score, -INFINITY) : condition_of(x, x->element[i], 0);
        if (test != 0)
            bound_by(x, test, &x->axis, &from, &to);
        blocks->from = i == 0 || from == blocks->from ? from : 0;
        blocks->to = i == 0 || to == blocks->to ? to : 0;
    }
}

/* The scores of the block, their maxima, and what was added up before by them. */
static void find_maxima(attending *x)
{
    const dc_ref score = x->a->score;
    const uint32_t tile = x->tile[0];
    nest loops = {0};
    for_lanes(x, x->next, max_so_far);
    const dc_ix y = loop(x, "y", x->height, DC_ROLE_NONE, false, &loops), v = lanes(x, &loops);
    dc_stmt *s = dc_stmt_set(x->w->k, 2);
    const dc_vx value = x->score = element(x, score, y, v);
    x->axis = (axes){.term = loops.axis[0], .lane = loops.axis[1]};
    s->put[0] = (dc_put){x->next, v, op2(x, DC_OP_MAX, load(x, x->next, v), value)};
    s->put[1] = (dc_put){tile, place(x, y, v), value};
    append(x, dc_lower_wrap(x->w->k, &loops, s));
    stands_in(x, score, tile, false);
    for_lanes(x, x->base, base_of);
    for_lanes(x, x->factor, correction);
    for_lanes(x, x->max, next_max);
    correct_totals(x);
    stands_in(x, x->a->max, x->base, true);
}

/* The weights of the block, and the sums of exponentials. */
static void find_weights(attending *x)
{
    const dc_attention_kernel *a = x->a;
    nest loops = {0};
    const bool sums = x->sum != DC_NO_BUF;
    const dc_ix y = loop(x, "y", x->height, DC_ROLE_NONE, false, &loops), v = lanes(x, &loops);
    dc_stmt *s = dc_stmt_set(x->w->k, (uint32_t)a->n + sums);
    for (int i = 0; i < a->n; i++) {
        const dc_ref r = dc_node_at(x->w->fn, a->dot[i])->in[0];
        x->element[i] = element(x, r, y, v);
        s->put[i] = (dc_put){x->weight[i], place(x, y, v), x->element[i]};
    }
    if (a->max == 0)
        x->axis = (axes){.term = loops.axis[0], .lane = loops.axis[1]};
    if (sums)
        s->put[a->n] =
            (dc_put){x->sum, v, op2(x, DC_OP_ADD, load(x, x->sum, v), element(x, a->exp, y, v))};
    append(x, dc_lower_wrap(x->w->k, &loops, s));
}

/* ---- blocks ----------------------------------------------------------------------------------- */

/* Terms from `first` on. */
static void add_block(attending *x, dc_ix first, int64_t height)
{
    x->first_term = first;
    x->height = height;
    for (int i = 0; i < x->a->ninner; i++) {
        contract(x, i, -1);
        stands_in(x, x->a->inner[i], x->tile[i], false);
    }
    if (x->a->max != 0)
        find_maxima(x);
    find_weights(x);
    for (int i = 0; i < x->a->n; i++)
        contract(x, -1, i);
    if (x->a->max != 0)
        leaves(x, x->a->score);
    for (int i = 0; i < x->a->ninner; i++)
        leaves(x, x->a->inner[i]);
}

static void add_blocks(attending *x)
{
    const int64_t all = x->weights->dim[x->a->y], whole = all / x->step, rest = all % x->step;
    if (whole > 0) {
        nest outer = {0};
        dc_stmt *body = NULL, **last = x->last;
        const dc_ix b = loop(x, "b", whole, DC_ROLE_NONE, false, &outer);
        x->last = &body;
        add_block(x, dc_ix_mul(x->w->k, b, x->step), x->step);
        x->last = last;
        dc_stmt *blocks = dc_lower_wrap(x->w->k, &outer, body);
        bound_loop(x, blocks);
        append(x, blocks);
    }
    if (rest > 0)
        add_block(x, dc_ix_const(x->w->k, whole * x->step), rest);
}

/* What the rows have, transposed; totals at zero. */
static void begin_rows(attending *x)
{
    dc_kernel *k = x->w->k;
    for (int i = 0; i < x->a->ninner; i++) {
        nest loops = {0};
        const dc_ix c = loop(x, "c", features_of(x, x->a->inner[i]), DC_ROLE_NONE, false, &loops);
        const dc_ix v = lanes(x, &loops);
        const dc_vx value = operand(x, x->a->inner[i], true, plus(x, x->first_row, v), c);
        append(x, dc_lower_wrap(k, &loops, set(x, x->rows[i], place(x, c, v), value)));
    }
    for (int i = 0; i < x->a->n; i++) {
        nest loops = {0};
        const dc_ix n = loop(x, "n", columns_of(x, i), DC_ROLE_NONE, false, &loops);
        const dc_ix v = lanes(x, &loops);
        append(x, dc_lower_wrap(k, &loops, set(x, x->total[i], place(x, n, v), number(x, 0))));
    }
    if (x->max != DC_NO_BUF)
        for_lanes(x, x->max, lowest);
    if (x->base != DC_NO_BUF)
        for_lanes(x, x->base, zero);
    if (x->sum != DC_NO_BUF)
        for_lanes(x, x->sum, zero);
    if (x->factor != DC_NO_BUF)
        for_lanes(x, x->factor, one);
}

static void store_rows(attending *x)
{
    lowering *w = x->w;
    for (uint32_t o = 0; o < w->group->nout; o++) {
        const dc_ref r = w->group->out[o];
        const dc_node *n = dc_node_at(w->fn, r);
        int which = -1;
        for (int i = 0; i < x->a->n; i++)
            which = x->a->top[i] == r ? i : which;
        nest loops = {0};
        dc_ix pos[DC_MAX_RANK], row;
        if (which >= 0) {
            const dc_dot d = dc_dot_of(w->fn, dc_node_at(w->fn, x->a->dot[which]));
            const dc_ix c = loop(x, "n", columns_of(x, which), DC_ROLE_NONE, false, &loops);
            const dc_ix v = lanes(x, &loops);
            row = plus(x, x->first_row, v);
            w->column = place(x, c, v);
            for (int i = 0; i < d.nbatch; i++)
                pos[i] = x->batch[d.batch[0][i]];
            pos[d.nbatch] = row;
            pos[d.nbatch + 1] = c;
        } else { /* of its rows, which may have other dims */
            dc_ix at[DC_MAX_RANK];
            int64_t dim[DC_MAX_RANK];
            int rank = 0;
            row = plus(x, x->first_row, lanes(x, &loops));
            for (int i = 0; i < x->weights->rank; i++)
                if (i != x->a->y) {
                    at[rank] = i == x->a->x ? row : x->batch[i];
                    dim[rank++] = x->weights->dim[i];
                }
            dc_lower_at(w, n, rank, dim, at, pos);
        }
        const dc_vx v = dc_lower_as_stored(w, dc_lower_node(w, r, pos), (dc_dtype)n->dtype);
        dc_stmt *store = set(x, o, dc_lower_linear(w->k, n, pos), v);
        store->pred = is_row(x, row);
        append(x, dc_lower_wrap(w->k, &loops, store));
    }
}

/* So many blocks of rows, from this one on. */
static dc_stmt *work(attending *x, int64_t begin, int64_t count)
{
    lowering *w = x->w;
    dc_kernel *k = w->k;
    int64_t dim[DC_MAX_RANK], batches = 1;
    for (int i = 0; i < x->weights->rank; i++) {
        dim[i] = i == x->a->x || i == x->a->y ? 1 : x->weights->dim[i];
        batches *= dim[i];
    }
    nest loops = {0};
    const dc_ix g = loop(x, "g", batches * count, DC_ROLE_ROW, false, &loops);
    dc_lower_delinear(k, dc_ix_div(k, g, count), x->weights->rank, dim, x->batch);
    x->first_row = dc_ix_mul(k, plus(x, dc_ix_const(k, begin), dc_ix_mod(k, g, count)), WIDTH);
    x->covers = (begin + count) * WIDTH > x->weights->dim[x->a->x];
    dc_stmt *body = NULL;
    x->last = &body;
    begin_rows(x);
    add_blocks(x);
    if (x->a->max != 0) {
        for_lanes(x, x->factor, last_correction);
        correct_totals(x);
        stands_in(x, x->a->max, x->max, true);
    }
    if (x->a->sum != 0)
        stands_in(x, x->a->sum, x->sum, true);
    for (int i = 0; i < x->a->n; i++)
        stands_in(x, x->a->dot[i], x->total[i], false);
    store_rows(x);
    for (int i = 0; i < x->a->n; i++)
        leaves(x, x->a->dot[i]);
    if (x->a->max != 0)
        leaves(x, x->a->max);
    if (x->a->sum != 0)
        leaves(x, x->a->sum);
    return dc_lower_wrap(k, &loops, body);
}

void dc_lower_attention(lowering *w)
{
    const dc_attention_kernel *a = w->group->attention;
    const dc_node *dot = dc_node_at(w->fn, a->dot[0]);
    attending x = {.w = w, .a = a, .weights = dc_node_at(w->fn, dot->in[0])};
    x.step = step_of(x.weights->dim[a->y]);
    const bool wide = w->groups->vector_bytes == 0 || w->groups->vector_bytes >= 64;
    x.lanes =
        wide ? WIDTH : DC_TUNE_ATTENTION_LANES; /* STRIP times as many sums stay in registers */
    int64_t flops = 0;
    for (int i = 0; i < a->ninner; i++) {
        const int64_t features = features_of(&x, a->inner[i]);
        x.rows[i] = local(&x, "rows", features);
        x.tile[i] = local(&x, "tile", x.step);
        flops += 2 * features;
    }
    for (int i = 0; i < a->n; i++) {
        x.total[i] = local(&x, "total", columns_of(&x, i));
        x.weight[i] = i < a->ninner ? x.tile[i] : local(&x, "weight", x.step);
        flops += 2 * columns_of(&x, i);
    }
    x.strip =
        dc_buffer_new(w->k, "strip", kind_of(&x), STRIP * x.lanes, DC_SCOPE_LOCAL, DC_MODE_OUT);
    x.max = x.next = x.base = x.factor = x.sum = DC_NO_BUF;
    if (a->max != 0) {
        x.max = local(&x, "max", 1);
        x.next = local(&x, "next", 1);
        x.base = local(&x, "base", 1);
        x.factor = local(&x, "factor", 1);
    }
    if (a->sum != 0)
        x.sum = local(&x, "sum", 1);
    w->k->flops = dc_node_count(x.weights) * flops;
    /* where there are many, those that are whole are not tested for rows behind the last one */
    const int64_t rows = x.weights->dim[a->x], all = (rows + WIDTH - 1) / WIDTH;
    const bool apart = rows % WIDTH != 0 && all >= DC_TUNE_ATTENTION_APART;
    w->k->root = work(&x, 0, apart ? all - 1 : all);
    w->k->root->next = apart ? work(&x, all - 1, 1) : NULL;
}
