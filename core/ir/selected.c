#include "core/ir/selected.h"

#include "core/ir/running.h"

dc_selected dc_selected_in(const dc_func *f, dc_arena *a)
{
    return (dc_selected){.f = f, .seen = DC_NEW_ARRAY(a, uint32_t, f->node.n)};
}

static dc_op_class class_of(const dc_node *n)
{
    return (dc_op_class)dc_op_row_of((dc_op)n->op)->cls;
}

/* Is each element of r one of its operand's, or that in another dtype? */
static bool is_renamed(const dc_node *n)
{
    return class_of(n) == DC_CLASS_MOV || class_of(n) == DC_CLASS_SAME || n->op == DC_OP_CAST ||
           n->op == DC_OP_BITCAST || n->op == DC_OP_STOP || n->op == DC_OP_PIECE;
}

/* Blocks beside each other, as dc.concat makes them: each is padded to the whole. */
static bool is_joined(const dc_func *f, dc_ref r, int depth)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op == DC_OP_PAD)
        return true;
    return depth > 0 && (n->op == DC_OP_ADD || n->op == DC_OP_OR) &&
           is_joined(f, n->in[0], depth - 1) && is_joined(f, n->in[1], depth - 1);
}

/* Operands among whose elements r selects: bits. */
static uint32_t selects(const dc_func *f, dc_ref r)
{
    enum { JOINS = 32 };
    const dc_node *n = dc_node_at(f, r);
    switch ((int)n->op) {
    case DC_OP_MAXR:
    case DC_OP_MINR:
    case DC_OP_GATHER:
        return 1;
    case DC_OP_RUN:
        return n->attr[0] == DC_RUN_MAX || n->attr[0] == DC_RUN_MIN;
    case DC_OP_MAX:
    case DC_OP_MIN:
        return 3;
    case DC_OP_WHERE:
        return 6;
    case DC_OP_SCATTER:
    case DC_OP_SCATTER_MAX:
    case DC_OP_SCATTER_MIN:
        return 5;
    case DC_OP_JOIN:
        return UINT32_MAX;
    case DC_OP_ADD:
    case DC_OP_OR:
        return is_joined(f, r, JOINS) ? 3 : 0;
    default:
        return is_renamed(n) ? 1 : 0;
    }
}

static void go_through(dc_selected *s, dc_ref r)
{
    if (s->seen[r] == s->search)
        return;
    s->seen[r] = s->search;
    const dc_node *n = dc_node_at(s->f, r);
    const uint32_t which = selects(s->f, r);
    for (int i = 0; i < n->nin; i++)
        if ((which >> (i < 31 ? i : 31) & 1) != 0)
            go_through(s, n->in[i]);
}

bool dc_selected_saw(const dc_selected *s, dc_ref r)
{
    return s->seen[r] == s->search;
}

/* Is `from` selected among the elements of `of`, or of what that is another name of? Which of these. */
static dc_ref selected_among(dc_selected *s, dc_ref from, dc_ref of)
{
    s->search++;
    go_through(s, from);
    while (!dc_selected_saw(s, of)) {
        const dc_node *n = dc_node_at(s->f, of);
        if (n->nin == 0 || !is_renamed(n))
            return 0;
        of = n->in[0];
    }
    return dc_node_at(s->f, of)->op == DC_OP_CONST ? 0 : of; /* maximum(x, 0) > 0 */
}

dc_ref dc_selected_by(dc_selected *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    if ((dc_op_row_of((dc_op)n->op)->flags & DC_OPF_CMP) == 0 || n->in[0] == n->in[1] ||
        !dc_dtype_is_float((dc_dtype)dc_node_at(s->f, n->in[0])->dtype))
        return 0;
    const dc_ref x = selected_among(s, n->in[1], n->in[0]);
    return x != 0 ? x : selected_among(s, n->in[0], n->in[1]);
}
