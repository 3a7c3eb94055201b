/*
 * Joins (jit/rewrite/disjoint_sum.h): sums are found bottom up, their pieces collected with the place of each, checked
 * for overlap, and the function is made again with pieces beside what they hold.
 */
#include "jit/rewrite/disjoint_sum.h"

#include "jit/base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { ARITY = 100 }; /* operands of a join */

/* A block of the whole: element p of an axis lies at lo + p * step. */
typedef struct block {
    int64_t lo[DC_MAX_RANK], step[DC_MAX_RANK], dim[DC_MAX_RANK];
} block;

typedef struct piece {
    dc_ref value; /* in the old function; 0: the fill of the sum */
    dc_ref made;  /* in the new one */
    block at;     /* in the order of the elements of the value */
    block inside; /* padded: where the value lies in what is stored at `at` */
    bool padded;
    uint32_t sum;
    uint32_t next; /* piece of the same value, by number + 1 */
} piece;

typedef struct sum {
    dc_ref root;
    int rank, along; /* along: the axis on which pieces lie one behind the other */
    const int64_t *dim;
    uint64_t fill;
    uint32_t first, n; /* pieces */
} sum;

typedef struct joining {
    dc_arena *a;
    const dc_func *f;
    dc_func *to;
    const bool *live;
    uint32_t *uses;   /* by ref */
    uint32_t *leaves; /* by ref: pieces that a sum of pads has, 0 if it is none */
    uint64_t *fill;   /* by ref, of those */
    uint32_t *sum_of; /* by ref: number of the sum that it is the root of, + 1 */
    uint32_t *held;   /* by ref: the first piece that holds it, + 1 */
    bool *seen;       /* by ref: part of a sum that was looked at */
    bool *gone;       /* by ref: part of one that became a join */
    uint64_t effort;
    dc_ref *map;
    DC_VEC(dc_ref) parts; /* sums and pads of the sum that is being looked at */
    DC_VEC(piece) piece;
    DC_VEC(sum) sum;
} joining;

static const dc_node *at(const joining *w, dc_ref r)
{
    return dc_node_at(w->f, r);
}

/* ---- which sums ------------------------------------------------------------------------------ */

static void count_uses(joining *w)
{
    for (dc_ref r = 1; r < w->f->node.n; r++)
        for (int i = 0; w->live[r] && i < at(w, r)->nin; i++)
            w->uses[at(w, r)->in[i]]++;
    for (uint32_t i = 0; i < w->f->result.n; i++)
        w->uses[w->f->result.at[i]] += 2; /* it has to be there itself */
}

/* Does combining with the fill change nothing but -0 to +0? */
static bool is_neutral(dc_dtype t, dc_op op, uint64_t fill)
{
    if (op == DC_OP_OR || !dc_dtype_is_float(t))
        return fill == 0;
    return fill == 0 || fill == dc_bits_of(t, -0.0);
}

static bool combines(const joining *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    return n->op == DC_OP_ADD || (n->op == DC_OP_OR && !dc_dtype_is_float((dc_dtype)n->dtype));
}

/* A pad, or what is below one: may it be taken apart as an operand of `op`? */
static bool goes_on(const joining *w, dc_ref r, dc_op op)
{
    return w->leaves[r] > 0 && w->uses[r] == 1 && (at(w, r)->op == DC_OP_PAD || at(w, r)->op == op);
}

static void count_leaves(joining *w)
{
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        const dc_node *n = at(w, r);
        if (!w->live[r])
            continue;
        if (n->op == DC_OP_PAD) {
            w->leaves[r] = 1;
            w->fill[r] = (uint64_t)n->attr[2 * n->rank];
        } else if (combines(w, r) && n->in[0] != n->in[1] && goes_on(w, n->in[0], (dc_op)n->op) &&
                   goes_on(w, n->in[1], (dc_op)n->op) && w->fill[n->in[0]] == w->fill[n->in[1]] &&
                   is_neutral((dc_dtype)n->dtype, (dc_op)n->op, w->fill[n->in[0]])) {
            w->leaves[r] = w->leaves[n->in[0]] + w->leaves[n->in[1]];
            w->fill[r] = w->fill[n->in[0]];
        }
    }
}

/* ---- the pieces of one ----------------------------------------------------------------------- */

typedef struct visit {
    dc_ref r;
    block at;
} visit;

/* A pad and what it pads, which may be a sum itself. */
static visit below_pad(const joining *w, dc_ref r, const block *b)
{
    const dc_node *n = at(w, r);
    visit v = {.r = n->in[0]};
    for (int i = 0; i < n->rank; i++) {
        v.at.lo[i] = b->lo[i] + n->attr[i] * b->step[i];
        v.at.step[i] = b->step[i] * n->attr[n->rank + i];
        v.at.dim[i] = at(w, n->in[0])->dim[i];
    }
    return v;
}

static void collect(joining *w, sum *s)
{
    const dc_op op = (dc_op)at(w, s->root)->op;
    DC_VEC(visit) todo = {0};
    w->parts.n = 0;
    visit v = {.r = s->root};
    for (int i = 0; i < s->rank; i++) {
        v.at.step[i] = 1;
        v.at.dim[i] = s->dim[i];
    }
    DC_PUSH_IN(w->a, todo, v);
    while (todo.n > 0) {
        v = todo.at[--todo.n];
        const dc_node *n = at(w, v.r);
        const bool root = v.r == s->root;
        const bool adds = n->op == op && (root || (goes_on(w, v.r, op) && w->fill[v.r] == s->fill));
        const bool pad = n->op == DC_OP_PAD && w->uses[v.r] == 1 && w->fill[v.r] == s->fill;
        if (adds || pad) {
            w->seen[v.r] = true;
            DC_PUSH_IN(w->a, w->parts, v.r);
        }
        if (adds) {
            for (int i = 0; i < 2; i++) {
                visit part = {.r = n->in[i], .at = v.at};
                DC_PUSH_IN(w->a, todo, part);
            }
        } else if (pad) {
            DC_PUSH_IN(w->a, todo, below_pad(w, v.r, &v.at));
        } else if (dc_node_count(n) > 0) {
            DC_PUSH_IN(w->a, w->piece, ((piece){.value = v.r, .at = v.at}));
        }
    }
    s->n = w->piece.n - s->first;
}

/* ---- where they lie -------------------------------------------------------------------------- */

static int64_t last_of(const block *b, int axis)
{
    return b->lo[axis] + (b->dim[axis] - 1) * b->step[axis];
}

typedef struct span {
    int64_t lo, hi;
    uint32_t piece;
} span;

static int by_lo(const void *x, const void *y)
{
    const span *a = x, *b = y;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->piece < b->piece ? -1 : 1;
}

/* Spans of the pieces on an axis, in order; false where two of them overlap. */
static bool lie_along(joining *w, const sum *s, int axis, span *at)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const block *b = &w->piece.at[s->first + i].at;
        at[i] = (span){b->lo[axis], last_of(b, axis), s->first + i};
    }
    qsort(at, s->n, sizeof *at, by_lo);
    for (uint32_t i = 1; i < s->n; i++)
        if (at[i].lo <= at[i - 1].hi)
            return false;
    return true;
}

static bool blocks_apart(const block *a, const block *b, int rank)
{
    for (int i = 0; i < rank; i++)
        if (last_of(a, i) < b->lo[i] || last_of(b, i) < a->lo[i] ||
            (a->lo[i] - b->lo[i]) % dc_gcd_i64(a->step[i], b->step[i]) != 0)
            return true;
    return false;
}

static bool all_apart(joining *w, const sum *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < i; k++, w->effort++)
            if (!blocks_apart(&w->piece.at[s->first + i].at, &w->piece.at[s->first + k].at,
                              s->rank))
                return false;
    return true;
}

static int64_t count_of(const block *b, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= b->dim[i];
    return n;
}

static bool cover_all(const joining *w, const sum *s)
{
    int64_t covered = 0, all = 1;
    for (uint32_t i = 0; i < s->n; i++)
        covered += count_of(&w->piece.at[s->first + i].at, s->rank);
    for (int i = 0; i < s->rank; i++)
        all *= s->dim[i];
    return covered == all;
}

/* The whole but for one axis, from lo to hi. */
static block slab(const sum *s, int64_t lo, int64_t hi)
{
    block b = {0};
    for (int i = 0; i < s->rank; i++) {
        b.step[i] = 1;
        b.dim[i] = s->dim[i];
    }
    b.lo[s->along] = lo;
    b.dim[s->along] = hi - lo + 1;
    return b;
}

/* Each piece is padded to all of the axes beside `along`; what lies between them becomes pieces. */
static void fill_gaps(joining *w, sum *s, const span *sorted)
{
    const uint32_t n = s->n;
    int64_t next = 0;
    for (uint32_t i = 0; i <= n; i++) {
        const int64_t lo = i < n ? sorted[i].lo : s->dim[s->along];
        if (lo > next) {
            DC_PUSH_IN(w->a, w->piece, ((piece){.at = slab(s, next, lo - 1)}));
            s->n++;
        }
        if (i == n)
            break;
        piece *p = &w->piece.at[sorted[i].piece];
        const block whole = slab(s, sorted[i].lo, sorted[i].hi);
        p->padded = memcmp(&whole, &p->at, sizeof whole) != 0;
        p->inside = p->at;
        p->inside.lo[s->along] = 0;
        p->at = whole;
        next = sorted[i].hi + 1;
    }
}

/* Are the pieces apart, and what no piece covers filled? */
static bool make_partition(joining *w, sum *s)
{
    span *sorted = DC_NEW_ARRAY(w->a, span, s->n);
    while (s->along < s->rank && !lie_along(w, s, s->along, sorted))
        s->along++;
    if (cover_all(w, s))
        return s->along < s->rank || (s->n <= DC_TUNE_JOIN_COMPARED && all_apart(w, s));
    if (s->along == s->rank)
        return false;
    fill_gaps(w, s, sorted);
    return true;
}

/* The sums that it is made of are looked at by themselves: pieces of each may be apart. */
static void take_back(joining *w, const sum *s)
{
    w->piece.n = s->first;
    for (uint32_t i = 0; i < w->parts.n; i++)
        w->seen[w->parts.at[i]] = false;
}

static void find_sums(joining *w)
{
    for (dc_ref r = w->f->node.n; r-- > 1 && w->effort < DC_TUNE_JOIN_EFFORT;) {
        const dc_node *n = at(w, r);
        if (!w->live[r] || w->seen[r] || w->leaves[r] == 0 || !combines(w, r) || n->rank == 0)
            continue;
        sum s = {
            .root = r, .rank = n->rank, .dim = n->dim, .fill = w->fill[r], .first = w->piece.n};
        collect(w, &s);
        w->effort += s.n;
        if (s.n <= DC_TUNE_JOIN_PIECES || !make_partition(w, &s)) {
            take_back(w, &s);
            continue;
        }
        DC_PUSH_IN(w->a, w->sum, s);
        w->sum_of[r] = w->sum.n;
        for (uint32_t i = 0; i < w->parts.n; i++)
            w->gone[w->parts.at[i]] = w->parts.at[i] != r;
        for (uint32_t i = s.first; i < s.first + s.n; i++) {
            piece *p = &w->piece.at[i];
            p->sum = w->sum.n - 1;
            p->next = p->value != 0 ? w->held[p->value] : 0;
            if (p->value != 0)
                w->held[p->value] = i + 1;
        }
    }
}

/* ---- the function again ---------------------------------------------------------------------- */

/* What is under movements that leave the elements in their order. */
static dc_ref without_reshapes(const dc_func *f, dc_ref r)
{
    while (dc_node_at(f, r)->op == DC_OP_RESHAPE)
        r = dc_node_at(f, r)->in[0];
    return r;
}

static void make_piece(joining *w, uint32_t number, dc_ref value)
{
    piece *p = &w->piece.at[number];
    const sum *s = &w->sum.at[p->sum];
    const int rank = s->rank;
    int64_t attr[2 + 3 * DC_MAX_RANK] = {p->sum, number};
    if (p->padded)
        value = dc_graph_pad(w->to, dc_graph_reshape(w->to, value, rank, p->inside.dim),
                             p->inside.lo, p->inside.step, p->at.dim, s->fill);
    value = without_reshapes(w->to, value);
    const dc_dtype t = (dc_dtype)dc_node_at(w->to, value)->dtype;
    if (dc_dtype_is_float(t) && s->fill == 0 && p->value != 0)
        value = dc_graph_op2(w->to, DC_OP_ADD, value,
                             dc_graph_like(w->to, value, 0)); /* -0 + 0 is +0 */
    memcpy(attr + 2, p->at.lo, (size_t)rank * sizeof *attr);
    memcpy(attr + 2 + rank, p->at.step, (size_t)rank * sizeof *attr);
    memcpy(attr + 2 + 2 * rank, p->at.dim, (size_t)rank * sizeof *attr);
    p->made = dc_graph_make(w->to, DC_OP_PIECE, &value, 1, attr, 2 + 3 * rank, NULL);
}

static dc_ref make_join(joining *w, const sum *s)
{
    const dc_type whole = dc_node_type(w->f, s->root);
    const int64_t attr = s - w->sum.at, fill = (int64_t)s->fill;
    dc_ref in[1 + ARITY];
    in[0] = dc_graph_make(w->to, DC_OP_CONST, NULL, 0, &fill, 1, &whole);
    int n = 1;
    for (uint32_t i = s->first; i < s->first + s->n; i++) {
        piece *p = &w->piece.at[i];
        if (p->value == 0) {
            dc_type gap = whole;
            memcpy(gap.dim, p->at.dim, (size_t)s->rank * sizeof *gap.dim);
            make_piece(w, i, dc_graph_make(w->to, DC_OP_CONST, NULL, 0, &fill, 1, &gap));
        }
        in[n++] = p->made;
        if (n <= ARITY && i + 1 < s->first + s->n)
            continue;
        in[0] = dc_graph_make(w->to, DC_OP_JOIN, in, n, &attr, 1, NULL);
        n = 1;
    }
    return in[0];
}

static dc_ref again(joining *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    const dc_type t = dc_node_type(w->f, r);
    dc_ref in[DC_MAX_OPERANDS];
    if (w->sum_of[r] != 0)
        return make_join(w, &w->sum.at[w->sum_of[r] - 1]);
    for (int i = 0; i < n->nin; i++)
        in[i] = w->map[n->in[i]];
    return dc_graph_make(w->to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
}

/* Pieces stand right behind what they hold, before its other users: fusion goes the other way. */
static void make_again(joining *w)
{
    const dc_func *f = w->f;
    dc_graph_params(w->to, f, w->map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!w->live[r] || w->gone[r])
            continue;
        if (w->map[r] == 0) {
            w->map[r] = again(w, r);
            dc_func_copy_origin(w->to, w->map[r], f, r);
        }
        for (uint32_t i = w->held[r]; i != 0; i = w->piece.at[i - 1].next)
            make_piece(w, i - 1, w->map[r]);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(w->to->result, w->map[f->result.at[i]]);
}

dc_func *dc_disjoint_sum(dc_arena *scratch, const dc_func *f)
{
    joining w = {.a = scratch, .f = f, .live = dc_func_live(f, scratch)};
    const uint32_t n = f->node.n;
    w.uses = DC_NEW_ARRAY(scratch, uint32_t, n);
    w.leaves = DC_NEW_ARRAY(scratch, uint32_t, n);
    w.fill = DC_NEW_ARRAY(scratch, uint64_t, n);
    w.sum_of = DC_NEW_ARRAY(scratch, uint32_t, n);
    w.held = DC_NEW_ARRAY(scratch, uint32_t, n);
    w.seen = DC_NEW_ARRAY(scratch, bool, n);
    w.gone = DC_NEW_ARRAY(scratch, bool, n);
    w.map = DC_NEW_ARRAY(scratch, dc_ref, n);
    count_uses(&w);
    count_leaves(&w);
    find_sums(&w);
    if (w.sum.n == 0)
        return NULL;
    w.to = dc_func_new(f->module, f->name);
    make_again(&w);
    return w.to;
}
