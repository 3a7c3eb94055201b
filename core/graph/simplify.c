/*
 * Simplification: one walk over the live nodes in order, which makes each again in a new function,
 * from operands that are simple already. emit_site() is that maker: it folds constants, tries the rules
 * (core/graph/simplify.def for element-wise operations, one small function per movement operation and
 * reduction below), and only then adds a node. What a rule builds goes through emit_site() again.
 *
 * The walk leaves behind nodes that lost their last user, so the result is cloned once more.
 */
#include "core/graph/simplify.h"

#include "core/graph/custom.h"
#include "core/graph/dot.h"

#include <math.h>
#include <string.h>

/* A node about to be made. */
typedef struct site {
    dc_func *f;
    dc_op op;
    dc_ref in[4];
    int nin;
    const int64_t *attr;
    int nattr;
    dc_type type;
} site;

static dc_ref emit_site(const site *s);

static const dc_node *operand(const site *s, int i)
{
    return dc_node_at(s->f, s->in[i]);
}

static dc_ref emit_unary(const site *s, dc_op op, dc_ref a)
{
    return emit_site(&(site){.f = s->f, .op = op, .in = {a}, .nin = 1, .type = s->type});
}

static dc_ref emit_binary(const site *s, dc_op op, dc_ref a, dc_ref b)
{
    return emit_site(&(site){.f = s->f, .op = op, .in = {a, b}, .nin = 2, .type = s->type});
}

static dc_ref emit_const(const site *s, uint64_t bits)
{
    const int64_t attr = (int64_t)bits;
    return dc_graph_make(s->f, DC_OP_CONST, NULL, 0, &attr, 1, &s->type);
}

/* The same operation on another operand with other attributes. */
static dc_ref emit_again(const site *s, dc_ref a, const int64_t *attr, int nattr)
{
    return emit_site(&(site){.f = s->f,
                             .op = s->op,
                             .in = {a},
                             .nin = 1,
                             .attr = attr,
                             .nattr = nattr,
                             .type = s->type});
}

static dc_ref emit_reshape(const site *s, dc_ref a)
{
    return emit_site(&(site){.f = s->f, .op = DC_OP_RESHAPE, .in = {a}, .nin = 1, .type = s->type});
}

/* ---- facts ---- */

/* Can no element be -0? Looks a few nodes deep; false when it does not know. */
static bool no_minus_zero_at(const dc_func *f, dc_ref r, int depth)
{
    const dc_node *n = dc_node_at(f, r);
    if (!dc_dtype_is_float((dc_dtype)n->dtype))
        return true;
    if (depth == 0)
        return false;
    switch ((int)n->op) {
    case DC_OP_CONST:
        return (uint64_t)n->attr[0] != dc_bits_of((dc_dtype)n->dtype, -0.0);
    case DC_OP_EXP:
    case DC_OP_ABS:
    case DC_OP_IOTA:
    case DC_OP_SUM: /* begins with +0, and only -0 + -0 is -0; a product may round to -0 */
        return true;
    case DC_OP_CAST:
        return !dc_dtype_is_float((dc_dtype)dc_node_at(f, n->in[0])->dtype);
    case DC_OP_ADD:
    case DC_OP_MAX:
        return no_minus_zero_at(f, n->in[0], depth - 1) || no_minus_zero_at(f, n->in[1], depth - 1);
    case DC_OP_MIN:
        return no_minus_zero_at(f, n->in[0], depth - 1) && no_minus_zero_at(f, n->in[1], depth - 1);
    case DC_OP_WHERE:
        return no_minus_zero_at(f, n->in[1], depth - 1) && no_minus_zero_at(f, n->in[2], depth - 1);
    case DC_OP_SQRT:
    case DC_OP_RESHAPE:
    case DC_OP_PERMUTE:
    case DC_OP_EXPAND:
    case DC_OP_SLICE:
    case DC_OP_FLIP:
        return no_minus_zero_at(f, n->in[0], depth - 1);
    }
    return false;
}

/* Does every value of `from` exist in `to`, so that a cast to it can be undone? */
static bool keeps_values(dc_dtype from, dc_dtype to)
{
    const int bits = from == DC_BOOL ? 1 : dc_dtype_bits(from);
    if (from == to)
        return true;
    switch (dc_dtype_kind(to)) {
    case DC_KIND_BOOL:
        return false;
    case DC_KIND_UINT:
        return (from == DC_BOOL || dc_dtype_kind(from) == DC_KIND_UINT) &&
               bits <= dc_dtype_bits(to);
    case DC_KIND_SINT:
        return !dc_dtype_is_float(from) &&
               bits + (dc_dtype_kind(from) != DC_KIND_SINT) <= dc_dtype_bits(to);
    case DC_KIND_FLOAT:
        if (dc_dtype_is_float(from))
            return bits < dc_dtype_bits(to);
        return bits <= dc_dtype_fraction(to) + 1;
    }
    return false;
}

/* ---- element-wise: what the columns of core/graph/simplify.def mean ---- */

static bool const_is(const site *s, dc_ref r, uint64_t bits)
{
    const dc_node *n = dc_node_at(s->f, r);
    return n->op == DC_OP_CONST && (uint64_t)n->attr[0] == bits;
}

static dc_dtype dtype_at(const site *s, dc_ref r)
{
    return (dc_dtype)dc_node_at(s->f, r)->dtype;
}

static bool is_any(const site *s, dc_ref r)
{
    DC_UNUSED(s);
    DC_UNUSED(r);
    return true;
}

static bool is_same(const site *s, dc_ref r)
{
    return r == s->in[0];
}

static bool is_zero(const site *s, dc_ref r)
{
    return const_is(s, r, 0);
}

static bool is_minus_zero(const site *s, dc_ref r)
{
    return dc_dtype_is_float(dtype_at(s, r)) && dc_is_const(s->f, r, -0.0);
}

static bool is_one(const site *s, dc_ref r)
{
    return dc_is_const(s->f, r, 1);
}

static bool is_minus_one(const site *s, dc_ref r)
{
    return dc_is_const(s->f, r, -1);
}

static bool is_least(const site *s, dc_ref r)
{
    return const_is(s, r, dc_op_identity(DC_OP_MAXR, dtype_at(s, r)));
}

static bool is_largest(const site *s, dc_ref r)
{
    return const_is(s, r, dc_op_identity(DC_OP_MINR, dtype_at(s, r)));
}

static bool is_all_ones(const site *s, dc_ref r)
{
    const uint64_t zero = 0; /* not 0, cut to the dtype */
    return const_is(s, r, dc_op_eval(DC_OP_NOT, dtype_at(s, r), dtype_at(s, r), &zero));
}

static bool is_lossless(const site *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    if (n->op != DC_OP_CAST || !keeps_values(dtype_at(s, n->in[0]), (dc_dtype)n->dtype))
        return false;
    const dc_dtype from = dtype_at(s, n->in[0]), to = (dc_dtype)s->type.dtype;
    /* a kernel computes short floats in more digits: back to one is a place where it rounds */
    if (dc_dtype_is_short(to) && to == from)
        return false;
    /* a float saturates, an integer is cut */
    return dc_dtype_is_float(from) || !dc_dtype_is_float((dc_dtype)n->dtype) ||
           dc_dtype_is_float(to) || to == DC_BOOL || keeps_values(from, to);
}

#define IS_OP(word, id)                               \
    static bool is_##word(const site *s, dc_ref r)    \
    {                                                 \
        return dc_node_at(s->f, r)->op == DC_OP_##id; \
    }
IS_OP(neg, NEG)
IS_OP(not, NOT)
IS_OP(abs, ABS)
IS_OP(floor, FLOOR)
IS_OP(eq, EQ)
IS_OP(ne, NE)

static bool always(const site *s)
{
    DC_UNUSED(s);
    return true;
}

static bool ints(const site *s)
{
    return !dc_dtype_is_float(dtype_at(s, s->in[0]));
}

static bool no_sign(const site *s)
{
    return dc_dtype_kind(dtype_at(s, s->in[0])) == DC_KIND_UINT;
}

static bool bools(const site *s)
{
    return dtype_at(s, s->in[0]) == DC_BOOL;
}

static bool no_minus_zero(const site *s)
{
    return no_minus_zero_at(s->f, s->in[0], 8);
}

static dc_ref do_left(const site *s)
{
    return s->in[0];
}

static dc_ref do_right(const site *s)
{
    return s->in[1];
}

/* The operand of the left operand. */
static dc_ref do_inner(const site *s)
{
    return operand(s, 0)->in[0];
}

static dc_ref do_again(const site *s)
{
    return emit_unary(s, s->op, operand(s, 0)->in[0]);
}

static dc_ref do_opposite(const site *s)
{
    const dc_node *n = operand(s, 0);
    return emit_binary(s, n->op == DC_OP_EQ ? DC_OP_NE : DC_OP_EQ, n->in[0], n->in[1]);
}

static dc_ref do_recast(const site *s)
{
    return emit_unary(s, DC_OP_CAST, operand(s, 0)->in[0]);
}

static dc_ref do_sub(const site *s)
{
    return emit_binary(s, DC_OP_SUB, s->in[0], operand(s, 1)->in[0]);
}

static dc_ref do_sub_swapped(const site *s)
{
    return emit_binary(s, DC_OP_SUB, s->in[1], operand(s, 0)->in[0]);
}

static dc_ref do_add(const site *s)
{
    return emit_binary(s, DC_OP_ADD, s->in[0], operand(s, 1)->in[0]);
}

static dc_ref do_neg_left(const site *s)
{
    return emit_unary(s, DC_OP_NEG, s->in[0]);
}

static dc_ref do_neg_right(const site *s)
{
    return emit_unary(s, DC_OP_NEG, s->in[1]);
}

static dc_ref do_zero(const site *s)
{
    return emit_const(s, 0);
}

static dc_ref do_true(const site *s)
{
    return emit_const(s, 1);
}

static const struct {
    dc_op root;
    bool (*left)(const site *, dc_ref), (*right)(const site *, dc_ref);
    bool (*guard)(const site *);
    dc_ref (*action)(const site *);
} rules[] = {
#define RULE(root, left, right, guard, action) \
    {DC_OP_##root, is_##left, is_##right, guard, do_##action},
#include "core/graph/simplify.def"
};

/* 0 when there is nothing to do, as for all functions below. */
static dc_ref apply_rules(const site *s)
{
    for (size_t i = 0; i < DC_COUNTOF(rules); i++)
        if (rules[i].root == s->op && rules[i].left(s, s->in[0]) &&
            (s->nin < 2 || rules[i].right(s, s->in[1])) && rules[i].guard(s))
            return rules[i].action(s);
    return 0;
}

static dc_ref fold_consts(const site *s)
{
    uint64_t in[4];
    for (int i = 0; i < s->nin; i++) {
        if (operand(s, i)->op != DC_OP_CONST)
            return 0;
        in[i] = (uint64_t)operand(s, i)->attr[0];
    }
    const dc_dtype t = dtype_at(s, s->in[s->nin - 1]);
    return emit_const(s, dc_op_eval(s->op, t, (dc_dtype)s->type.dtype, in));
}

static dc_ref simplify_where(const site *s)
{
    const dc_node *c = operand(s, 0);
    if (s->in[1] == s->in[2])
        return s->in[1];
    if (c->op == DC_OP_CONST)
        return s->in[c->attr[0] ? 1 : 2];
    if (c->op == DC_OP_NOT) {
        site t = *s;
        t.in[0] = c->in[0];
        t.in[1] = s->in[2];
        t.in[2] = s->in[1];
        return emit_site(&t);
    }
    return 0;
}

static dc_ref simplify_ew(const site *s)
{
    const dc_ref folded = fold_consts(s);
    if (folded != 0)
        return folded;
    if (s->op == DC_OP_WHERE)
        return simplify_where(s);
    if (s->op == DC_OP_CAST && operand(s, 0)->dtype == s->type.dtype)
        return s->in[0];
    return apply_rules(s);
}

/* ---- movement ---- */

static bool same_dims(const site *s)
{
    const dc_type t = dc_node_type(s->f, s->in[0]);
    return dc_type_same(&t, &s->type);
}

/* A const moved is the const of the new type; only a pad may bring in another value. */
static dc_ref move_const(const site *s)
{
    const dc_node *n = operand(s, 0);
    if (n->op != DC_OP_CONST)
        return 0;
    if (s->op == DC_OP_PAD && s->attr[s->nattr - 1] != n->attr[0])
        return 0;
    return emit_const(s, (uint64_t)n->attr[0]);
}

static dc_ref simplify_reshape(const site *s)
{
    if (same_dims(s))
        return s->in[0];
    return operand(s, 0)->op == DC_OP_RESHAPE ? emit_again(s, operand(s, 0)->in[0], NULL, 0) : 0;
}

static dc_ref simplify_permute(const site *s)
{
    const dc_node *n = operand(s, 0);
    int64_t perm[DC_MAX_RANK], last = -1;
    bool in_order = true; /* do the axes that are not of size 1 stay in order? */
    for (int i = 0; i < s->nattr; i++)
        if (s->type.dim[i] != 1) {
            in_order = in_order && s->attr[i] > last;
            last = s->attr[i];
        }
    if (in_order)
        return emit_reshape(s, s->in[0]);
    if (n->op != DC_OP_PERMUTE)
        return 0;
    for (int i = 0; i < s->nattr; i++)
        perm[i] = n->attr[s->attr[i]];
    return emit_again(s, n->in[0], perm, s->nattr);
}

static dc_ref simplify_expand(const site *s)
{
    if (same_dims(s))
        return s->in[0];
    return operand(s, 0)->op == DC_OP_EXPAND ? emit_again(s, operand(s, 0)->in[0], NULL, 0) : 0;
}

static dc_ref simplify_slice(const site *s)
{
    const dc_node *n = operand(s, 0);
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK];
    if (same_dims(s))
        return s->in[0];
    if (n->op != DC_OP_SLICE)
        return 0;
    for (int i = 0; i < rank; i++) {
        const int64_t start = s->attr[i], step = s->attr[rank + i];
        attr[i] = n->attr[i] + start * n->attr[rank + i];
        if (s->type.dim[i] <= 1)
            attr[rank + i] = 1;
        else if (!dc_mul_ok(step, n->attr[rank + i], &attr[rank + i]))
            return 0;
    }
    return emit_again(s, n->in[0], attr, 2 * rank);
}

static dc_ref simplify_pad(const site *s)
{
    const dc_node *n = operand(s, 0);
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK + 1];
    if (same_dims(s))
        return s->in[0];
    if (n->op != DC_OP_PAD || n->attr[2 * rank] != s->attr[2 * rank])
        return 0;
    for (int i = 0; i < rank; i++) { /* in range, for both lie inside the result */
        const int64_t lo = s->attr[i], step = s->attr[rank + i];
        if (!dc_mul_ok(n->attr[i], step, &attr[i]) || !dc_add_ok(attr[i], lo, &attr[i]) ||
            !dc_mul_ok(n->attr[rank + i], step, &attr[rank + i]))
            return 0;
    }
    attr[2 * rank] = s->attr[2 * rank];
    return emit_again(s, n->in[0], attr, 2 * rank + 1);
}

static dc_ref simplify_flip(const site *s)
{
    const dc_node *n = operand(s, 0);
    int64_t mask = s->attr[0];
    for (int i = 0; i < n->rank; i++)
        if (n->dim[i] <= 1)
            mask &= ~((int64_t)1 << i);
    if (mask == 0)
        return s->in[0];
    if (n->op == DC_OP_FLIP) {
        mask ^= n->attr[0];
        return mask == 0 ? n->in[0] : emit_again(s, n->in[0], &mask, 1);
    }
    return mask == s->attr[0] ? 0 : emit_again(s, s->in[0], &mask, 1);
}

static dc_ref simplify_move(const site *s)
{
    const dc_ref moved = move_const(s);
    if (moved != 0)
        return moved;
    switch ((int)s->op) {
    case DC_OP_RESHAPE:
        return simplify_reshape(s);
    case DC_OP_PERMUTE:
        return simplify_permute(s);
    case DC_OP_EXPAND:
        return simplify_expand(s);
    case DC_OP_SLICE:
        return simplify_slice(s);
    case DC_OP_PAD:
        return simplify_pad(s);
    case DC_OP_FLIP:
        return simplify_flip(s);
    }
    return 0;
}

/* ---- reductions and the rest ---- */

/* Elements that make one of the result. */
static int64_t reduced_count(const site *s)
{
    int64_t count = 1;
    for (int i = 0; i < operand(s, 0)->rank; i++)
        if (s->attr[0] >> i & 1)
            count *= operand(s, 0)->dim[i];
    return count;
}

/*
 * n times a constant, when every partial sum is a float, so that no order of additions rounds:
 * the constant is m * 2^e with m * n at most 2^24 (in f64 2^53). Short floats are added up as f32.
 */
static dc_ref sum_of_const(const site *s, int64_t n)
{
    const dc_dtype t = dtype_at(s, s->in[0]);
    const uint64_t bits = (uint64_t)operand(s, 0)->attr[0];
    if (!dc_dtype_is_float(t)) {
        const uint64_t product[2] = {dc_bits_cast(t, (dc_dtype)s->type.dtype, bits), (uint64_t)n};
        return emit_const(
            s, dc_op_eval(DC_OP_MUL, (dc_dtype)s->type.dtype, (dc_dtype)s->type.dtype, product));
    }
    int e;
    const double v = dc_value_of(t, bits);
    const int digits = t == DC_F64 ? 53 : 24, range = t == DC_F64 ? 1023 : 127;
    double m = isfinite(v) ? ldexp(fabs(frexp(v, &e)), digits) : INFINITY; /* a whole number */
    while (m > 0 && isfinite(m) && fmod(m, 2) == 0)
        m /= 2;
    if (m * (double)n > ldexp(1, digits) || fabs(v) * (double)n > ldexp(1, range))
        return 0;
    return emit_const(s, dc_bits_of(t, v * (double)n + 0.0)); /* a sum begins with +0 */
}

static dc_ref reduce_const(const site *s, int64_t n)
{
    if (n == 0)
        return emit_const(s, dc_op_identity(s->op, (dc_dtype)s->type.dtype));
    if (operand(s, 0)->op != DC_OP_CONST)
        return 0;
    if (s->op == DC_OP_SUM)
        return sum_of_const(s, n);
    if (s->op == DC_OP_PROD)
        return dc_is_const(s->f, s->in[0], 1)
                   ? emit_const(s, dc_op_identity(s->op, (dc_dtype)s->type.dtype))
                   : 0;
    return emit_const(s, (uint64_t)operand(s, 0)->attr[0]);
}

/* Axes of the inner reduction, then those of the outer one, which counts without them. */
static int64_t join_masks(const dc_node *inner, int rank, int64_t outer)
{
    int64_t mask = inner->attr[0];
    for (int i = 0, kept = 0; i < rank; i++)
        if ((inner->attr[0] >> i & 1) == 0 && (outer >> kept++ & 1) != 0)
            mask |= (int64_t)1 << i;
    return mask;
}

static dc_ref simplify_reduce(const site *s)
{
    const dc_node *n = operand(s, 0);
    const int64_t count = reduced_count(s);
    const dc_ref constant = reduce_const(s, count);
    if (constant != 0)
        return constant;
    if (count == 1 && n->dtype == s->type.dtype &&
        (s->op != DC_OP_SUM || no_minus_zero_at(s->f, s->in[0], 8))) /* 0 + -0 is 0 */
        return emit_reshape(s, s->in[0]);
    if (n->op == s->op && s->op != DC_OP_SUM && s->op != DC_OP_PROD) {
        const int64_t mask = join_masks(n, dc_node_at(s->f, n->in[0])->rank, s->attr[0]);
        return emit_again(s, n->in[0], &mask, 1);
    }
    return 0;
}

/* A product over no elements is a sum of nothing. */
static dc_ref simplify_dot(const site *s)
{
    if (s->op == DC_OP_CONV)
        return dc_node_count(operand(s, 1)) == 0 ? emit_const(s, 0) : 0;
    const dc_dot d = dc_dot_read(s->attr, operand(s, 0)->rank, operand(s, 1)->rank);
    for (int i = 0; i < d.ncontract; i++)
        if (operand(s, 0)->dim[d.contract[0][i]] == 0)
            return emit_const(s, 0);
    return 0;
}

/* Of equal elements it does not matter which are picked; where nothing is put, nothing changes. */
static dc_ref simplify_index(const site *s)
{
    if (s->op == DC_OP_GATHER)
        return operand(s, 0)->op == DC_OP_CONST ? emit_const(s, (uint64_t)operand(s, 0)->attr[0])
                                                : 0;
    return dc_node_count(operand(s, 2)) == 0 ? s->in[0] : 0;
}

static dc_ref simplify_site(const site *s)
{
    if (dc_type_count(&s->type) == 0 && s->op != DC_OP_CONST)
        return emit_const(s, 0); /* no element is ever read */
    switch ((dc_op_class)dc_op_row_of(s->op)->cls) {
    case DC_CLASS_EW:
        return simplify_ew(s);
    case DC_CLASS_RED:
        return simplify_reduce(s);
    case DC_CLASS_MOV:
        return simplify_move(s);
    case DC_CLASS_CON:
        return simplify_dot(s);
    case DC_CLASS_IDX:
        return simplify_index(s);
    case DC_CLASS_SAME: /* walk_node makes them */
    case DC_CLASS_PART:
        return 0;
    case DC_CLASS_SRC:
        return s->op == DC_OP_IOTA && s->type.dim[s->attr[0]] == 1 ? emit_const(s, 0) : 0;
    }
    return 0;
}

static dc_ref emit_site(const site *s)
{
    const dc_ref r = simplify_site(s);
    return r != 0 ? r : dc_graph_make(s->f, s->op, s->in, s->nin, s->attr, s->nattr, &s->type);
}

/* Makes node r of `from` again; map holds its operands. */
static dc_ref walk_node(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *map)
{
    const dc_node *n = dc_node_at(from, r);
    if (n->op == DC_OP_CUSTOM)
        return map[n->in[0]];
    if (n->op == DC_OP_BARRIER)
        return dc_graph_barrier(to, map[n->in[0]], map[n->in[1]]);
    site s = {.f = to,
              .op = (dc_op)n->op,
              .nin = n->nin,
              .attr = n->attr,
              .nattr = n->nattr,
              .type = dc_node_type(from, r)};
    for (int i = 0; i < n->nin; i++)
        s.in[i] = map[n->in[i]];
    return emit_site(&s);
}

static bool is_shared(const dc_func *f, dc_ref r)
{
    const int op = dc_node_at(f, r)->op;
    return op == DC_OP_CONST || op == DC_OP_PARAM;
}

dc_func *dc_simplify(const dc_func *f)
{
    dc_arena *a = &f->module->arena;
    const bool *live = dc_func_live(f, a);
    dc_ref *map = DC_NEW_ARRAY(a, dc_ref, f->node.n);
    dc_func *work = dc_func_new(f->module, f->name);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        map[f->param.at[i]] = dc_graph_param(work, &t, f->label.at[i]);
        dc_func_copy_origin(work, work->param.at[i], f, f->param.at[i]);
    }
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!live[r] || map[r] != 0)
            continue;
        map[r] = walk_node(work, f, r, map);
        if (!is_shared(work, map[r])) /* they would collect the lines of all that vanished */
            dc_func_copy_origin(work, map[r], f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(work->result, map[f->result.at[i]]);
    dc_func *out = dc_func_clone(f->module, work, NULL);
    dc_func_drop(work);
    return out;
}
