/*
 * Simplification of element-wise operations: constant folding, `where` with a known condition, and the
 * identities of core/ir/simplify.def, whose columns name the predicates, guards and actions below.
 */
#include "core/ir/simplify_impl.h"

#include <math.h>

static dc_ref emit_unary(const dc_simplify_site *s, dc_op op, dc_ref a)
{
    return dc_simplify_emit(
        &(dc_simplify_site){.f = s->f, .op = op, .in = {a}, .nin = 1, .type = s->type});
}

static dc_ref emit_binary(const dc_simplify_site *s, dc_op op, dc_ref a, dc_ref b)
{
    return dc_simplify_emit(
        &(dc_simplify_site){.f = s->f, .op = op, .in = {a, b}, .nin = 2, .type = s->type});
}

/* ---- facts ---- */

/* Is every element +0, more, or NaN? Looks a few nodes deep; false when it does not know. */
static bool is_positive(const dc_func *f, dc_ref r, int depth)
{
    const dc_node *n = dc_node_at(f, r);
    if (depth == 0)
        return false;
    switch ((int)n->op) {
    case DC_OP_CONST:
        return !signbit(dc_value_of((dc_dtype)n->dtype, (uint64_t)n->attr[0]));
    case DC_OP_EXP:
    case DC_OP_ABS:
    case DC_OP_IOTA:
        return true;
    case DC_OP_MAX:
        return is_positive(f, n->in[0], depth - 1) || is_positive(f, n->in[1], depth - 1);
    case DC_OP_RESHAPE:
    case DC_OP_PERMUTE:
    case DC_OP_EXPAND:
    case DC_OP_SLICE:
    case DC_OP_FLIP:
        return is_positive(f, n->in[0], depth - 1);
    }
    return false;
}

bool dc_simplify_no_minus_zero(const dc_func *f, dc_ref r, int depth)
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
        return dc_simplify_no_minus_zero(f, n->in[0], depth - 1) ||
               dc_simplify_no_minus_zero(f, n->in[1], depth - 1);
    case DC_OP_MAX: /* of -0 and less it is -0 */
        if (is_positive(f, n->in[0], depth - 1) || is_positive(f, n->in[1], depth - 1))
            return true;
        return dc_simplify_no_minus_zero(f, n->in[0], depth - 1) &&
               dc_simplify_no_minus_zero(f, n->in[1], depth - 1);
    case DC_OP_MIN:
        return dc_simplify_no_minus_zero(f, n->in[0], depth - 1) &&
               dc_simplify_no_minus_zero(f, n->in[1], depth - 1);
    case DC_OP_WHERE:
        return dc_simplify_no_minus_zero(f, n->in[1], depth - 1) &&
               dc_simplify_no_minus_zero(f, n->in[2], depth - 1);
    case DC_OP_SQRT:
    case DC_OP_RESHAPE:
    case DC_OP_PERMUTE:
    case DC_OP_EXPAND:
    case DC_OP_SLICE:
    case DC_OP_FLIP:
        return dc_simplify_no_minus_zero(f, n->in[0], depth - 1);
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
    case DC_KIND_COMPLEX: /* no node has one */
        break;
    }
    return false;
}

/* ---- element-wise: what the columns of core/ir/simplify.def mean ---- */

static bool const_is(const dc_simplify_site *s, dc_ref r, uint64_t bits)
{
    const dc_node *n = dc_node_at(s->f, r);
    return n->op == DC_OP_CONST && (uint64_t)n->attr[0] == bits;
}

static bool is_any(const dc_simplify_site *s, dc_ref r)
{
    DC_UNUSED(s);
    DC_UNUSED(r);
    return true;
}

static bool is_same(const dc_simplify_site *s, dc_ref r)
{
    return r == s->in[0];
}

static bool is_zero(const dc_simplify_site *s, dc_ref r)
{
    return const_is(s, r, 0);
}

static bool is_minus_zero(const dc_simplify_site *s, dc_ref r)
{
    return dc_dtype_is_float(dc_simplify_dtype(s, r)) && dc_is_const(s->f, r, -0.0);
}

static bool is_one(const dc_simplify_site *s, dc_ref r)
{
    return dc_is_const(s->f, r, 1);
}

static bool is_minus_one(const dc_simplify_site *s, dc_ref r)
{
    return dc_is_const(s->f, r, -1);
}

static bool is_least(const dc_simplify_site *s, dc_ref r)
{
    return const_is(s, r, dc_op_identity(DC_OP_MAXR, dc_simplify_dtype(s, r)));
}

static bool is_largest(const dc_simplify_site *s, dc_ref r)
{
    return const_is(s, r, dc_op_identity(DC_OP_MINR, dc_simplify_dtype(s, r)));
}

static bool is_all_ones(const dc_simplify_site *s, dc_ref r)
{
    const uint64_t zero = 0; /* not 0, cut to the dtype */
    return const_is(s, r,
                    dc_op_eval(DC_OP_NOT, dc_simplify_dtype(s, r), dc_simplify_dtype(s, r), &zero));
}

static bool is_lossless(const dc_simplify_site *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    if (n->op != DC_OP_CAST || !keeps_values(dc_simplify_dtype(s, n->in[0]), (dc_dtype)n->dtype))
        return false;
    const dc_dtype from = dc_simplify_dtype(s, n->in[0]), to = (dc_dtype)s->type.dtype;
    /* a kernel computes short floats in more digits: back to one is a place where it rounds */
    if (dc_dtype_is_short(to) && to == from)
        return false;
    /* a float saturates, an integer is cut */
    return dc_dtype_is_float(from) || !dc_dtype_is_float((dc_dtype)n->dtype) ||
           dc_dtype_is_float(to) || to == DC_BOOL || keeps_values(from, to);
}

#define IS_OP(word, id)                                        \
    static bool is_##word(const dc_simplify_site *s, dc_ref r) \
    {                                                          \
        return dc_node_at(s->f, r)->op == DC_OP_##id;          \
    }
IS_OP(neg, NEG)
IS_OP(not, NOT)
IS_OP(abs, ABS)
IS_OP(floor, FLOOR)
IS_OP(bitcast, BITCAST)
IS_OP(eq, EQ)
IS_OP(ne, NE)

static bool always(const dc_simplify_site *s)
{
    DC_UNUSED(s);
    return true;
}

static bool ints(const dc_simplify_site *s)
{
    return !dc_dtype_is_float(dc_simplify_dtype(s, s->in[0]));
}

static bool no_sign(const dc_simplify_site *s)
{
    return dc_dtype_kind(dc_simplify_dtype(s, s->in[0])) == DC_KIND_UINT;
}

static bool bools(const dc_simplify_site *s)
{
    return dc_simplify_dtype(s, s->in[0]) == DC_BOOL;
}

static bool no_minus_zero(const dc_simplify_site *s)
{
    return dc_simplify_no_minus_zero(s->f, s->in[0], 8);
}

/* A kernel computes short floats in more digits, and rounds where their pattern is taken: a place to keep. */
static bool not_rounded(const dc_simplify_site *s)
{
    const dc_dtype to = (dc_dtype)s->type.dtype;
    return !dc_dtype_is_short(to) || dc_simplify_dtype(s, dc_simplify_operand(s, 0)->in[0]) != to;
}

static dc_ref do_left(const dc_simplify_site *s)
{
    return s->in[0];
}

static dc_ref do_right(const dc_simplify_site *s)
{
    return s->in[1];
}

/* The operand of the left operand. */
static dc_ref do_inner(const dc_simplify_site *s)
{
    return dc_simplify_operand(s, 0)->in[0];
}

static dc_ref do_again(const dc_simplify_site *s)
{
    return emit_unary(s, s->op, dc_simplify_operand(s, 0)->in[0]);
}

static dc_ref do_opposite(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    return emit_binary(s, n->op == DC_OP_EQ ? DC_OP_NE : DC_OP_EQ, n->in[0], n->in[1]);
}

static dc_ref do_recast(const dc_simplify_site *s)
{
    return emit_unary(s, DC_OP_CAST, dc_simplify_operand(s, 0)->in[0]);
}

static dc_ref do_rebitcast(const dc_simplify_site *s)
{
    return emit_unary(s, DC_OP_BITCAST, dc_simplify_operand(s, 0)->in[0]);
}

static dc_ref do_sub(const dc_simplify_site *s)
{
    return emit_binary(s, DC_OP_SUB, s->in[0], dc_simplify_operand(s, 1)->in[0]);
}

static dc_ref do_sub_swapped(const dc_simplify_site *s)
{
    return emit_binary(s, DC_OP_SUB, s->in[1], dc_simplify_operand(s, 0)->in[0]);
}

static dc_ref do_add(const dc_simplify_site *s)
{
    return emit_binary(s, DC_OP_ADD, s->in[0], dc_simplify_operand(s, 1)->in[0]);
}

static dc_ref do_neg_left(const dc_simplify_site *s)
{
    return emit_unary(s, DC_OP_NEG, s->in[0]);
}

static dc_ref do_neg_right(const dc_simplify_site *s)
{
    return emit_unary(s, DC_OP_NEG, s->in[1]);
}

static dc_ref do_zero(const dc_simplify_site *s)
{
    return dc_simplify_const(s, 0);
}

static dc_ref do_true(const dc_simplify_site *s)
{
    return dc_simplify_const(s, 1);
}

static const struct {
    dc_op root;
    bool (*left)(const dc_simplify_site *, dc_ref), (*right)(const dc_simplify_site *, dc_ref);
    bool (*guard)(const dc_simplify_site *);
    dc_ref (*action)(const dc_simplify_site *);
} rules[] = {
#define RULE(root, left, right, guard, action) \
    {DC_OP_##root, is_##left, is_##right, guard, do_##action},
#include "core/ir/simplify.def"
};

/* 0 when there is nothing to do, as for all functions below. */
static dc_ref apply_rules(const dc_simplify_site *s)
{
    for (size_t i = 0; i < DC_COUNTOF(rules); i++)
        if (rules[i].root == s->op && rules[i].left(s, s->in[0]) &&
            (s->nin < 2 || rules[i].right(s, s->in[1])) && rules[i].guard(s))
            return rules[i].action(s);
    return 0;
}

static dc_ref fold_consts(const dc_simplify_site *s)
{
    uint64_t in[4];
    for (int i = 0; i < s->nin; i++) {
        if (dc_simplify_operand(s, i)->op != DC_OP_CONST)
            return 0;
        in[i] = (uint64_t)dc_simplify_operand(s, i)->attr[0];
    }
    const dc_dtype t = dc_simplify_dtype(s, s->in[s->nin - 1]);
    return dc_simplify_const(s, dc_op_eval(s->op, t, (dc_dtype)s->type.dtype, in));
}

static dc_ref simplify_where(const dc_simplify_site *s)
{
    const dc_node *c = dc_simplify_operand(s, 0);
    if (s->in[1] == s->in[2])
        return s->in[1];
    if (c->op == DC_OP_CONST)
        return s->in[c->attr[0] ? 1 : 2];
    if (c->op == DC_OP_NOT) {
        dc_simplify_site t = *s;
        t.in[0] = c->in[0];
        t.in[1] = s->in[2];
        t.in[2] = s->in[1];
        return dc_simplify_emit(&t);
    }
    return 0;
}

dc_ref dc_simplify_ew(const dc_simplify_site *s)
{
    const dc_ref folded = fold_consts(s);
    if (folded != 0)
        return folded;
    if (s->op == DC_OP_WHERE)
        return simplify_where(s);
    if ((s->op == DC_OP_CAST || s->op == DC_OP_BITCAST) &&
        dc_simplify_operand(s, 0)->dtype == s->type.dtype)
        return s->in[0];
    return apply_rules(s);
}
