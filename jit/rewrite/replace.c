#include "jit/rewrite/replace.h"

static bool is_replaced(const dc_replacing *x, const dc_node *n)
{
    return n->op == x->op && (x->is == NULL || x->is(x->ctx, n));
}

static bool has_one(const dc_func *f, const bool *live, const dc_replacing *x)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && is_replaced(x, dc_node_at(f, r)))
            return true;
    return false;
}

dc_func *dc_replace(dc_arena *scratch, const dc_func *f, const dc_replacing *x)
{
    const bool *live = dc_func_live(f, scratch);
    if (!has_one(f, live, x))
        return NULL;
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(scratch, dc_ref, f->node.n), in[DC_MAX_OPERANDS];
    dc_graph_params(to, f, map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        const dc_type t = dc_node_type(f, r);
        if (!live[r] || map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_ref first = to->node.n;
        map[r] = is_replaced(x, n)
                     ? x->make(x->ctx, to, n, in)
                     : dc_graph_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
        for (dc_ref q = first; q < to->node.n; q++)
            dc_func_copy_origin(to, q, f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}
