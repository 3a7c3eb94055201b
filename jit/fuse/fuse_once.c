/*
 * Values that are computed in one place, whatever it costs: those that are compared with what is selected among them
 * (core/ir/selected.h), as far as two kernels, or two loops of one, may round them differently. Each is stored by a group
 * of its own, and all others read that.
 *
 * What is exact however it is computed needs none of this: what is read or stored anyway, choices among such values, and one
 * rounding of them. Contraction makes one rounding of two, costly operations are made of several, and numbers of 16 bits
 * are rounded where they are stored.
 */
#include "core/ir/selected.h"
#include "jit/fuse/fuse_impl.h"

/* A product, under whatever name: in a sum with it there may be one rounding or two. */
static bool is_multiplied(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    while (n->nin > 0 && (fuse_class(w, r) == DC_CLASS_MOV || fuse_class(w, r) == DC_CLASS_SAME ||
                          n->op == DC_OP_NEG || n->op == DC_OP_STOP)) {
        r = n->in[0];
        n = fuse_at(w, r);
    }
    return n->op == DC_OP_MUL;
}

static bool rounds_twice(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    const bool sum = n->op == DC_OP_ADD || n->op == DC_OP_SUB;
    if (!dc_dtype_is_float((dc_dtype)n->dtype))
        return false;
    return (dc_op_row_of((dc_op)n->op)->flags & DC_OPF_COSTLY) != 0 ||
           (dc_dtype_is_short((dc_dtype)n->dtype) &&
            (sum || n->op == DC_OP_MUL || n->op == DC_OP_CAST)) ||
           (sum && (is_multiplied(w, n->in[0]) || is_multiplied(w, n->in[1])));
}

/* By ref: may it differ in the last place where it is computed again? */
static bool *find_inexact(const fusing *w)
{
    bool *inexact = DC_NEW_ARRAY(w->a, bool, w->fn->node.n);
    for (dc_ref r = 1; r < w->fn->node.n; r++) {
        const dc_op_class c = fuse_class(w, r);
        if (!w->live[r] || fuse_is_reduction(w, r) || fuse_is_control(w, r))
            continue;
        inexact[r] = c == DC_CLASS_EW && rounds_twice(w, r);
        for (int i = 0; i < fuse_reads(w, r) && !inexact[r]; i++)
            inexact[r] = inexact[fuse_at(w, r)->in[i]];
    }
    return inexact;
}

void dc_fuse_find_once(fusing *w)
{
    const bool *inexact = NULL;
    dc_selected s = {0};
    for (dc_ref r = 1; r < w->fn->node.n && w->level > 0; r++) {
        const dc_op op = (dc_op)fuse_at(w, r)->op;
        if (!w->live[r] || (dc_op_row_of(op)->flags & DC_OPF_CMP) == 0)
            continue;
        if (s.f == NULL)
            s = dc_selected_in(w->fn, w->a);
        dc_ref x = dc_selected_by(&s, r);
        if (x == 0)
            continue;
        if (inexact == NULL)
            inexact = find_inexact(w);
        while (fuse_class(w, x) == DC_CLASS_MOV || fuse_class(w, x) == DC_CLASS_SAME)
            x = fuse_at(w, x)->in[0];
        w->node[x].once = fuse_class(w, x) == DC_CLASS_EW && inexact[x];
    }
}
